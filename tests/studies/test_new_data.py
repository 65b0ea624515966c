"""The study of new data: its verdicts, its splits, its page, and a sample of its cells anew."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD

from studies import new_data

pytestmark = pytest.mark.untraced

DATA = json.loads(new_data.DATA.read_text(encoding="utf-8"))


def test_page_and_data_follow_from_each_other():
    assert new_data.TARGET.read_text(encoding="utf-8") == new_data.page(DATA)
    assert new_data.DATA.read_text(encoding="utf-8") == new_data.dumped(DATA)
    assert new_data.PICTURE.stat().st_size > 20_000


def test_enough_groupings_from_enough_fields():
    known = {grouping.name: grouping for grouping in new_data.GROUPINGS}
    assert list(DATA["real"]) == [name for name in known if name in DATA["real"]]
    assert len(DATA["real"]) >= 25
    assert len({known[name].field for name in DATA["real"]}) >= 6
    assert sum(known[name].fresh for name in DATA["real"]) >= 8


def test_a_verdict_is_a_corrected_t_of_two():
    # Mean 3 and variance 4: the standard error is 2 sqrt(1/6 + 1), whose double is 4.32.
    differences = np.array([1.0, 5.0, 1.0, 5.0, 3.0, 3.0])
    differences *= 2.0 / differences.std(ddof=1)
    differences += 3.0 - differences.mean()
    limit = 4.0 * math.sqrt(1.0 / 6.0 + 1.0)
    assert new_data.verdict(differences) == 0
    assert new_data.verdict(differences + 1.01 * limit - 3.0) == 1
    assert new_data.verdict(differences + 0.99 * limit - 3.0) == 0
    assert new_data.verdict(-differences - 1.01 * limit + 3.0) == -1
    assert new_data.verdict([1e-12] * 6) == 1
    assert new_data.verdict([1e-12] * 6, scale=1.0) == 0


def test_halves_have_half_of_each_group():
    labels = np.array(["a"] * 31 + ["b"] * 12)
    sizes = set()
    for seed in range(20):
        half = new_data.halves(labels, seed)
        assert half[labels == "b"].sum() == 6
        sizes.add(int(half[labels == "a"].sum()))
    assert sizes == {15, 16}
    assert (new_data.halves(labels, 3) == new_data.halves(labels, 3)).all()


def test_own_losses_are_those_of_a_singular_value_decomposition():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 8)) * np.arange(1, 9), np.repeat(["a", "b"], [40, 20])
    split = new_data.Split.of(X, labels, unit=True, seed=0)
    own = split.own_losses(3)
    for i, (fitted, judged) in enumerate(zip(split.fitted, split.judged, strict=True)):
        for name, learned, seen in (
            ("sample", fitted, fitted),
            ("train", fitted, judged),
            ("test", judged, judged),
        ):
            svd = TruncatedSVD(3, algorithm="arpack").fit(learned)
            rest = seen - svd.inverse_transform(svd.transform(seen))
            assert own[name][i] == pytest.approx(np.square(rest).sum(axis=1).mean())


def test_a_group_with_few_rows_has_other_dimensions_of_all_rows():
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(212, 6)), np.repeat(["a", "b"], [200, 12])
    own = new_data.Split.of(X, labels, unit=True, seed=0).own_losses(6)
    assert all(losses == pytest.approx(0.0, abs=1e-12) for losses in own.values())
    few = new_data.Split.of(X[:, :6], np.repeat(["a", "b"], [208, 4]), unit=True, seed=0)
    losses = few.own_losses(4)
    assert losses["sample"][1] == pytest.approx(0.0, abs=1e-12)
    assert losses["train"][1] > 0.0


@pytest.mark.long
@pytest.mark.parametrize("name", ["wine, cultivar", "iris, species"])
def test_a_grouping_anew(name):
    grouping = next(one for one in new_data.GROUPINGS if one.name == name)
    found, kept = new_data.cells_of(grouping), DATA["real"][name]
    assert found["facts"] == kept["facts"]
    assert set(found["cells"]) == set(kept["cells"])
    for r, cell in kept["cells"].items():
        for method in new_data.METHODS:
            for figure in (*new_data.FIGURES, "worst off"):
                size = 1e-3 * max(np.abs(cell["PCA"][figure]))
                anew = found["cells"][r][method][figure]
                assert anew == pytest.approx(cell[method][figure], rel=1e-3, abs=size)


def numbers_after(text, start, count):
    """The first numbers behind a place in a text."""
    rest = text[text.index(start) + len(start) :]
    return [float(found) for found in re.findall(r"\d+(?:\.\d+)?", rest)[:count]]


def test_the_page_for_users_has_the_figures_of_the_study():
    guide = Path(__file__).parents[2] / "docs" / "guide"
    page, criterion, people = (
        (guide / f"{name}.md").read_text("utf-8") for name in ("new_data", "criterion", "people")
    )
    cells = [cell for found in DATA["real"].values() for cell in found["cells"].values()]

    def counts(method, figure="mid"):
        found = new_data.verdicts(cells, method, figure)
        return [found.count(-1), found.count(1)]

    def price(method, digits):
        return round(100 * float(np.median(new_data.changes(cells, method, "total"))), digits)

    soft, plain = counts("soft"), counts("minmax")
    expected = [soft[0], len(cells), soft[1], price("soft", 2), *plain, price("minmax", 1)]
    assert numbers_after(page, "In the study the default", 7) == expected
    shares = counts("soft", "share"), counts("minmax, share, 1 %", "share")
    assert numbers_after(page, "the largest share lost may", 2) == shares[0]
    assert numbers_after(page, "max_extra_loss=0.01)` lowered it in", 2) == shares[1]
    one_more = counts("PCA, one more component")[0]
    lowers = numbers_after(criterion, "largest disparity clearly lower in", 4)
    assert lowers == [soft[0], len(cells), soft[1], price("soft", 2)]
    found = numbers_after(criterion, "on other rows lower in", 3)
    assert found == [*plain, price("minmax", 1)]
    found = numbers_after(criterion, "largest share lost clearly lower in", 3)
    assert found == [shares[1][0], len(cells), shares[1][1]]
    assert numbers_after(criterion, "lowers the largest disparity in", 1) == [one_more]
    assert numbers_after(people, "the default |", 2) == soft
    assert numbers_after(people, "one more component |", 2) == counts("PCA, one more component")
    assert numbers_after(people, "max_extra_loss=0.01)` |", 2) == shares[1]
    assert numbers_after(page, "if you can afford it: clearly better in", 1) == [one_more]
    assert numbers_after(page, "in the study it clearly lowered the", 1) == counts("balanced")[:1]
    ratios = [
        DATA["populations"][name][method][0] / DATA["populations"][name]["PCA"][0]
        for name in ("strong, smallest 20", "alike, smallest 20")
        for method in ("soft", "minmax")
    ]
    found = numbers_after(page, "one group has 20 rows, the default leaves", 5)
    assert [found[0], found[1], found[3], found[4]] == pytest.approx(ratios, rel=0.02)
    moved = [
        100 * np.median([found[name] for found in DATA["stability"].values()])
        for name in ("folds", "tables")
    ]
    assert numbers_after(page, "assignments of the rows to folds", 2) == pytest.approx(
        moved, abs=0.05
    )

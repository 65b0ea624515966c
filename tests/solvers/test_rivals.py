"""The committed table of all methods, the page that explains them, and one row of it run anew."""

import re
from pathlib import Path

import pytest

from fairpca.solvers import SOLVERS
from studies import rivals

pytestmark = pytest.mark.untraced

DOCS = Path(__file__).parents[2] / "docs"


def committed():
    """Section title -> method -> criterion, dimensions, largest, spread, total, mean gap, ratio."""
    sections, section = {}, None
    for line in rivals.TARGET.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = sections.setdefault(line[3:], {})
        elif line.startswith("| ") and not line.startswith("| method"):
            name, criterion, *numbers = (cell.strip() for cell in line.strip("|").split("|"))
            section[name] = (criterion, *map(float, numbers))
    return sections


def test_the_table_has_every_method_for_every_data_set_and_dimension():
    sections = committed()
    assert set(sections) == {f"{name}, r = {r}" for name in rivals.DATA for r in rivals.DIMENSIONS}
    for title, rows in sections.items():
        expected = [m.name for m in rivals.METHODS if "sex" in title or not m.two_groups]
        assert list(rows) == expected


def test_the_exact_solver_is_at_least_as_good_in_every_row_with_its_criterion():
    compared = 0
    for title, rows in committed().items():
        r = int(title.split()[-1])
        minmax, equal = rows["exact, min-max"][2], rows["exact, equal"]
        for criterion, dimensions, largest, spread, total, *_ in rows.values():
            if dimensions != r:
                continue
            if criterion == "min-max":
                assert minmax <= largest + 1e-5
                compared += 1
            if spread <= equal[3] and spread <= 1e-5:
                assert equal[4] <= total + 1e-5
                compared += 1
    assert compared > 100


def test_published_methods_use_no_more_dimensions_than_their_theorems_allow():
    groups = {"sex": 2, "race": 5, "marriage": 3}
    for title, rows in committed().items():
        k = next(count for name, count in groups.items() if name in title)
        r = int(title.split()[-1])
        for name, (_, dimensions, *_) in rows.items():
            if name in ("SDP + LP", "MW + LP"):
                assert r <= dimensions <= r + k - 1
            elif name in ("SDP + iterative rounding", "MW + iterative rounding"):
                assert r <= dimensions <= r + int((2 * k + 0.25) ** 0.5 - 1.5)
            else:
                assert dimensions == r


def test_methods_for_parity_have_equal_means_and_others_do_not():
    for rows in committed().values():
        for name, (criterion, *_, mean_gap, _) in rows.items():
            assert (mean_gap == 0.0) == criterion.startswith("parity"), name


@pytest.mark.filterwarnings("ignore::fairpca.FairnessWarning")
def test_one_section_of_the_table_comes_out_as_committed():
    shown = committed()["Adult, sex, r = 2"]
    results = list(rivals.compare("Adult, sex", 2, budget=0.0))
    rivals.check(results, 2, tolerance=1e-6)
    for result in results:
        criterion, dimensions, largest, spread, total, *_ = shown[result.method.name]
        assert (result.method.criterion, result.dimensions) == (criterion, dimensions)
        found = (result.largest, result.spread, result.total_loss)
        # Semidefinite programs end with few digits, and not the same ones in every version.
        assert found == pytest.approx((largest, spread, total), abs=1e-3)


def test_the_check_of_the_table_can_fail():
    exact = rivals.Result(rivals.EXACT_MINMAX, 2, rivals.np.array([1.0, 1.0]), 5.0, 0.0, 1.0)
    equal = rivals.Result(rivals.EXACT_EQUAL, 2, rivals.np.array([1.0, 1.0]), 5.0, 0.0, 1.0)
    rival = next(m for m in rivals.METHODS if m.name == "MW, last iterate")
    better = rivals.Result(rival, 2, rivals.np.array([0.9, 0.8]), 5.0, 0.0, 1.0)
    with pytest.raises(AssertionError):
        rivals.check([exact, equal, better], 2, tolerance=1e-6)


def test_the_guide_names_every_solver_and_parity_estimator():
    page = (DOCS / "which_method.md").read_text(encoding="utf-8")
    for name in SOLVERS:
        assert re.search(rf'`(solver=)?"{name}"`', page), name
    for name in ("SDPRelaxation", "EpsilonConstraint", "Lagrangian", "PelegrinaFPCA", "ParityPCA"):
        assert name in page

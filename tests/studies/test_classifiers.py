"""The study of classifiers behind a reduction: its page, figures, and a part of it again."""

import json

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from sklearn.metrics import accuracy_score, log_loss, recall_score

from studies import downstream

DATA = json.loads(downstream.DATA.read_text(encoding="utf-8"))
CASES = [case for found in DATA["real"].values() for case in found["cases"].values()]


def test_the_page_is_made_of_the_figures():
    assert downstream.TARGET.read_text(encoding="utf-8") == downstream.page(DATA)
    assert downstream.DATA.read_text(encoding="utf-8") == downstream.dumped(DATA)
    names = {method.name for method in downstream.METHODS}
    assert len(CASES) >= 40
    assert all(set(case) == names for case in CASES)


def test_other_pages_have_the_same_figures():
    docs = downstream.TARGET.parents[1] / "docs"
    written = (docs / "downstream.md").read_text(encoding="utf-8")
    assert "\n".join(downstream.short_table(DATA)) in written
    n_idle, _ = downstream.idle(DATA, "projection, PCA")
    halved = downstream.counts(CASES, "projection, PCA", "TPR difference")[2]
    assert f"In {n_idle} of the {halved} cases" in written
    advice = " ".join((docs / "guide" / "when.md").read_text(encoding="utf-8").split())
    (lower, higher, half), other = (
        downstream.counts(CASES, method, "TPR difference") for method in ("fair PCA", "min-max PCA")
    )
    assert f"behind PCA in {lower}, clearly higher in {higher}, and halved in {half}" in advice
    assert "min-max, lower in {}, higher in {} and halved in {}".format(*other) in advice
    assert f"halves the difference in {halved} of {len(CASES)} cases" in advice


def test_figures_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, groups, p = rng.integers(0, 2, 300), rng.integers(0, 3, 300), rng.random(300)
    parts = downstream.sums(p, y, groups, is_random=False)
    found, says = downstream.figures(parts.sum(axis=0)), (p >= 0.5).astype(int)
    own = [groups == i for i in range(3)]
    rates = [recall_score(y[some], says[some]) for some in own]
    expected = (
        np.ptp(rates),
        accuracy_score(y, says),
        min(accuracy_score(y[some], says[some]) for some in own),
        log_loss(y, p),
        max(abs(p[some].mean() - y[some].mean()) for some in own),
        recall_score(y, says),
    )
    np.testing.assert_allclose(found, expected)
    # A draw of rows counts them as often as it has them.
    times = rng.multinomial(300, np.full(300, 1 / 300))
    drawn = np.repeat(np.arange(300), times)
    again = downstream.sums(p[drawn], y[drawn], groups[drawn], is_random=False).sum(axis=0)
    np.testing.assert_allclose(times @ parts, again)
    # At random, the rate is that of the probabilities.
    mean = downstream.figures(downstream.sums(p, y, groups, is_random=True).sum(axis=0))
    assert mean[0] == pytest.approx(np.ptp([p[some & (y == 1)].mean() for some in own]))


def test_a_verdict_allows_for_overlap_and_for_test_rows():
    rng = np.random.default_rng(1)
    changes = rng.normal(-1.0, 1.0, 10)
    still = np.zeros((10, 5, 6))
    one = [(np.full(6, change), draw) for change, draw in zip(changes, still, strict=True)]
    none = [(np.zeros(6), draw) for draw in still]
    mean, change, by_splits, by_rows = downstream._judged(one, none)[0]
    plain = ttest_1samp(changes, 0.0)
    widened = np.sqrt(1 + 10 * 3 / 7)  # Nadeau and Bengio, 2003
    assert by_splits == pytest.approx(changes.mean() / plain.statistic * widened, abs=1e-5)
    assert (mean, by_rows) == (change, 0.0)
    limit = by_splits * 2.262157
    for at, error, expected in (
        (-1.01 * limit, 0.0, -1),
        (1.01 * limit, 0.0, 1),
        (-0.99 * limit, 0.0, 0),
        (-1.01 * limit, 2 * by_splits, 0),
    ):
        assert downstream.verdict([1.0, at, by_splits, error]) == expected
    assert downstream.is_halved([0.1, -0.1, 0.01, 0.01])
    assert not downstream.is_halved([0.11, -0.1, 0.01, 0.01])
    assert not downstream.is_halved([0.1, -0.1, 0.01, 0.1])


@pytest.mark.filterwarnings("ignore::fairpca.FairnessWarning")
def test_a_part_of_the_study_comes_out_again(monkeypatch):
    monkeypatch.setattr(downstream, "DIMENSIONS", (5,))
    some = [one for one in downstream.METHODS if one.name in ("PCA", "projection, PCA")]
    found, kept = downstream.cases_of("Credit, sex", some), DATA["real"]["Credit, sex"]
    assert json.loads(json.dumps(found["facts"])) == kept["facts"]
    for key, case in found["cases"].items():
        for method in some:
            np.testing.assert_allclose(
                case[method.name], kept["cases"][key][method.name], atol=1e-3
            )


def test_a_population_comes_out_again(monkeypatch):
    monkeypatch.setattr(downstream, "POPULATION_GROUPS", (2,))
    monkeypatch.setattr(downstream, "POPULATION_POSITIVES", (50,))
    found = downstream.populations()["2, 50"]
    np.testing.assert_allclose(found, DATA["populations"]["2, 50"], atol=1e-3)

"""compare: held-out losses of PCA and fair PCA against fits to rows, intervals, and verdicts."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t as student
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from fairpca import (
    AtMost,
    Comparison,
    ExactSolver,
    FairPCA,
    GroupMoments,
    Problem,
    SoftMinMax,
    compare,
)
from fairpca.data import prepare_data
from fairpca.datasets import load_adult
from fairpca.folds import N_FOLDS
from fairpca.folds import row_folds as fine_folds
from fairpca.inspection import compare as module
from fairpca.inspection.compare import HeldOutEstimate, HeldOutSums, Method
from fairpca.plotting import ComparisonDisplay

from texts import numbers_in, recorded, refused

pytestmark = pytest.mark.contract

mpl.use("Agg")

SOLVER = ExactSolver(gap=1e-2, n_starts=2)
CRITERIA = {"balanced PCA": "balanced", "fair PCA": "soft", "min-max PCA": "minmax"}


def row_folds(X):
    return fine_folds(X) % N_FOLDS


def rows_and_groups(n=(240, 90, 30), d=6, seed=0):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(size, d)) * rng.permutation(np.linspace(3, 1, d)) for size in n]
    X = np.vstack([part + i / 2 for i, part in enumerate(parts)])
    order = rng.permutation(len(X))
    return X[order], np.repeat([*"abc"], n)[order]


def by_hand(X, groups, r, weights=None):
    """Sums over the held-out rows of each fold: variance (J, k), and losses by method (m, J, k)."""
    folds, labels = row_folds(X), sorted(set(groups))
    weights = np.ones(len(X)) if weights is None else weights
    kinds = [("PCA", r + more) for more in (0, 1, 2)] + [(name, r) for name in CRITERIA]
    variance, losses = np.zeros((5, len(labels))), np.zeros((len(kinds), 5, len(labels)))
    for fold in range(5):
        train, test = folds != fold, folds == fold
        known = {"sensitive_features": groups[train], "sample_weight": weights[train]}
        for j, (name, size) in enumerate(kinds):
            criterion = CRITERIA.get(name, "balanced")
            fair = FairPCA(size, criterion=criterion, solver=SOLVER)
            if name == "PCA":
                fair.set_params(groups=None)
            fair.fit(X[train], **known)
            errors = np.square(X[test] - fair.inverse_transform(fair.transform(X[test]))).sum(1)
            distances = np.square(X[test] - fair.mean_).sum(1)
            for i, label in enumerate(labels):
                some = groups[test] == label
                variance[fold, i] = distances[some] @ weights[test][some]
                losses[j, fold, i] = errors[some] @ weights[test][some]
    return variance, losses


def own_by_hand(X, groups, r, power):
    """What groups lose with their own PCA, about the mean of all training rows; (J, k) each.

    First they keep the geometric mean of what they keep in the sample and held out, then the last.
    """
    folds, labels = row_folds(X), sorted(set(groups))
    kept, variance = np.zeros((2, 5, len(labels))), np.zeros((5, len(labels)))
    for fold in range(5):
        test = folds == fold
        mean = X[~test].mean(axis=0)
        for i, label in enumerate(labels):
            rows = X[test & (groups == label)] - mean
            variance[fold, i] = np.square(rows).sum()
            for part, train in enumerate((np.full(len(X), True), ~test)):
                own = X[train & (groups == label)] - X[train].mean(axis=0)
                axes = np.linalg.svd(own)[2][:r]
                kept[part, fold, i] = np.square(rows @ axes.T).sum()
    in_sample, held_out = kept.sum(axis=1)
    shares = (kept[0] / in_sample + kept[1] / held_out) / 2
    return variance - in_sample**power * held_out ** (1 - power) * shares, variance - kept[1]


def assert_intervals(found, sums, variance, limits=(-np.inf, np.inf)):
    """Intervals by the formulas for a ratio of sums of five folds, one group and method a time."""
    for name, expected in zip(("low", "high"), ends_by_hand(sums, variance, limits), strict=True):
        assert_allclose(getattr(found, name), expected, atol=2e-5)


def ends_by_hand(sums, variance, limits=(-np.inf, np.inf)):
    m, _, k = sums.shape
    ends = np.empty((2, m, k))
    for j in range(m):
        for i in range(k):
            ratio = sums[j, :, i].sum() / variance[:, i].sum()
            rest = sums[j, :, i] - ratio * variance[:, i]
            error = np.sqrt(np.var(rest, ddof=1) * 5 * (1 + 5 / 4)) / variance[:, i].sum()
            reach = student.ppf(1 - 0.05 / (2 * k), 4) * error
            ends[:, j, i] = np.clip([ratio - reach, ratio + reach], *limits)
    return ends


@pytest.mark.parametrize("weighted", [False, True])
def test_against_fits_to_rows(weighted):
    X, groups = rows_and_groups((240, 90, 60))
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X)) if weighted else None
    found = compare(X, sensitive_features=groups, n_components=2, sample_weight=weights)
    assert found.methods == ("PCA", "PCA", "PCA", "balanced PCA", "fair PCA", "min-max PCA")
    assert found.dimensions == (2, 3, 4, 2, 2, 2)
    assert found.labels == ("a", "b", "c")
    assert found.count.tolist() == [240, 90, 60]
    variance, losses = by_hand(X, groups, 2, weights)
    total = losses.sum(axis=1) / variance.sum(axis=0)
    assert_allclose(found.share_lost.value[:4], total[:4], rtol=1e-9)
    assert_allclose(found.share_lost.value, total, atol=2e-5)
    assert_allclose(found.change.value, total - total[0], atol=2e-5)
    lost = losses.sum(axis=(1, 2)) / variance.sum()
    assert_allclose(found.total_lost, lost, atol=2e-5)
    others = np.array(found.methods) != "PCA"
    changes = replace(found.change, low=found.change.low[others], high=found.change.high[others])
    assert_intervals(changes, (losses - losses[0])[others], variance)
    assert (found.change.high[~others] <= 0.0).all()
    if not weighted:
        own, held_out = own_by_hand(X, groups, 2, np.where(found.count >= 30, 5 / 9, 0.5))
        expected = (losses - own).sum(axis=1) / variance.sum(axis=0)
        assert_allclose(found.disparity.value, expected, atol=2e-5)
        assert_allclose(found.largest_disparity, expected.max(axis=1), atol=2e-5)
        assert_array_equal(found.largest_disparity_group, expected.argmax(axis=1))
        low, high = ends_by_hand(losses - own, variance)
        assert_allclose(found.disparity.high, high, atol=2e-5)
        low = np.minimum(low, ends_by_hand(losses - held_out, variance)[0])
        assert_allclose(found.disparity.low, low, atol=2e-5)
        fair = found.methods.index("fair PCA")
        assert_intervals(found.beyond_fair, losses - losses[fair], variance)
        error = (found.beyond_fair.high - found.beyond_fair.value) / student.ppf(1 - 0.05 / 6, 4)
        assert_allclose(found.beyond_fair.error, error, atol=1e-12)
        assert_intervals(found.share_lost, losses, variance, limits=(0, 1))


def test_wide_rows_against_fits_to_rows():
    X, groups = rows_and_groups((40, 30, 20), d=500)
    found = compare(X, sensitive_features=groups, n_components=3)
    variance, losses = by_hand(X, groups, 3)
    assert_allclose(found.share_lost.value, losses.sum(1) / variance.sum(0), atol=2e-5)


def bases_of_folds(monkeypatch, X, groups):
    """The subspaces that all methods find, as projectors, in the order of the folds."""
    bases, find = [], module.Method.basis

    def recorded(self, *given):
        bases.append(find(self, *given))
        return bases[-1]

    with monkeypatch.context() as patch:
        patch.setattr(module.Method, "basis", recorded)
        found = compare(X, sensitive_features=groups, n_components=2)
    return [basis @ basis.T for basis in bases], found


def test_nothing_leaks_from_held_out_rows(monkeypatch):
    X, groups = rows_and_groups()
    before, found = bases_of_folds(monkeypatch, X, groups)
    for fold in range(5):
        held_out = row_folds(X) == fold
        other, labels = X.copy(), groups.copy()
        other[held_out] *= 4.0  # which leaves rows in their fold
        labels[held_out] = np.roll(labels[held_out], 1)
        assert_array_equal(row_folds(other), row_folds(X))
        after, changed = bases_of_folds(monkeypatch, other, labels)
        m = len(found)
        for j in range(5 * m):
            same = np.abs(before[j] - after[j]).max() < 1e-9
            # PCA, balanced, … of the other folds see the change.
            assert same == (j // m == fold)
        assert np.abs(changed.share_lost.value - found.share_lost.value).max() > 0.01


def test_more_components_are_those_of_a_larger_pca():
    X, groups = rows_and_groups()
    small, large = (compare(X, sensitive_features=groups, n_components=r) for r in (2, 3))
    assert_allclose(small.share_lost.value[1:3], large.share_lost.value[:2], rtol=1e-12)
    assert_allclose(small.share_lost.high[1:3], large.share_lost.high[:2], rtol=1e-12)


@pytest.mark.parametrize(("r", "dimensions"), [(5, [5, 6]), (6, [6])])
def test_there_are_no_more_components_than_columns(r, dimensions):
    X, groups = rows_and_groups()
    found = compare(X, sensitive_features=groups, n_components=r)
    pca = [n for name, n in zip(found.methods, found.dimensions, strict=True) if name == "PCA"]
    assert pca == dimensions
    if r == 6:  # nothing is lost
        assert_allclose(found.share_lost.value, 0.0, atol=1e-12)
        assert_allclose([found.disparity.low, found.disparity.high], 0.0, atol=1e-12)
        assert found.verdict.kind == "no difference"
        assert found.verdict.numbers["more_components"] is None


def test_one_group():
    X, _ = rows_and_groups()
    found = compare(X, sensitive_features=["all"] * len(X), n_components=2)
    assert found.verdict.kind == "one group"
    assert_allclose(found.change.value[3:], 0.0, atol=1e-12)
    recorded(str(found.verdict), "one group", "use PCA")


def test_tiny_groups_have_no_interval_and_are_named():
    X, groups = rows_and_groups()
    groups = groups.astype(object)
    groups[:3] = ["lone", "pair", "pair"]
    found = compare(X, sensitive_features=groups, n_components=2)
    few = np.isin(found.labels, ["lone", "pair"])
    for estimate in (found.share_lost, found.change, found.disparity):
        assert np.isfinite(estimate.value).all()
        assert_array_equal(np.isnan(estimate.low), np.tile(few, (len(found), 1)))
        assert_array_equal(np.isnan(estimate.high), np.isnan(estimate.low))
    assert found.verdict.numbers["not_judged"] == ["lone", "pair"]
    recorded(str(found.verdict), "Too few rows", "'lone', 'pair'")
    assert not {"lone", "pair"} & {*found.better_off(3), *found.worse_off(4)}


def test_overlapping_groups_count_each_row_once():
    X, first = rows_and_groups()
    second = np.where(np.random.default_rng(1).random(len(X)) < 0.4, "x", "y")
    both = pd.DataFrame({"first": first, "second": second})
    found = compare(X, sensitive_features=both, n_components=2, groups="marginals")
    assert found.groups == [*(f"first={name}" for name in "abc"), "second=x", "second=y"]
    for labels, some in ((first, slice(0, 3)), (second, slice(3, 5))):
        variance, losses = by_hand(X, labels, 2)
        # PCA does not depend on the groups.
        alone = losses.sum(axis=1) / variance.sum(axis=0)
        assert_allclose(found.share_lost.value[:3, some], alone[:3], rtol=1e-9)
        total = losses.sum(axis=(1, 2)) / variance.sum()
        assert_allclose(found.total_lost[:3], total[:3], rtol=1e-9)


def test_a_row_that_is_there_twice_has_twice_the_weight():
    X, groups = rows_and_groups((240, 90, 60))
    times = np.random.default_rng(2).integers(1, 4, len(X))
    weighted = compare(
        X, sensitive_features=groups, sample_weight=times, n_components=2, criterion="minmax"
    )
    repeated = compare(
        np.repeat(X, times, axis=0),
        sensitive_features=np.repeat(groups, times),
        n_components=2,
        criterion="minmax",
    )
    assert weighted.methods[-1] == "fair PCA"  # which is min-max PCA here, and there once
    assert len(weighted) == 5
    assert_allclose(weighted.share_lost.value, repeated.share_lost.value, atol=1e-6)
    assert_allclose(weighted.change.low, repeated.change.low, atol=1e-5)


def same(one, other, atol=1e-6):
    assert one.methods == other.methods
    assert_allclose(one.total_lost, other.total_lost, atol=atol)
    for name in ("share_lost", "change", "disparity"):
        for part in ("value", "low", "high"):
            found, expected = (getattr(getattr(x, name), part) for x in (one, other))
            assert_allclose(found, expected, atol=atol)


def test_sparse_rows_frames_and_moments_give_the_same():
    X, groups = rows_and_groups()
    X[np.abs(X) < 0.5] = 0.0
    expected = compare(X, sensitive_features=groups, n_components=2)
    sparse = scipy.sparse.csr_matrix(X)
    same(compare(sparse, sensitive_features=groups, n_components=2), expected)
    frame = pd.DataFrame(X, columns=[*"uvwxyz"]).assign(who=groups)
    found = compare(frame, sensitive_features="who", n_components=2)
    same(found, expected)
    assert found.group_names == ("who",)
    moments = GroupMoments.from_rows(X, groups, folds=True)
    same(compare(moments, n_components=2), expected, atol=1e-9)


def test_dask_arrays_give_the_same():
    array = pytest.importorskip("dask.array")
    X, groups = rows_and_groups()
    chunks = array.from_array(X, chunks=(100, 6)), array.from_array(groups, chunks=100)
    found = compare(chunks[0], sensitive_features=chunks[1], n_components=2)
    same(found, compare(X, sensitive_features=groups, n_components=2))


def test_large_groups_are_held_out_too():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(1500, 3)) * [3, 2, 1], np.repeat([0, 1], [1300, 200])
    found = compare(X, sensitive_features=groups, n_components=1)  # 1300 > 200 rows a column
    variance, losses = by_hand_pca(X, groups, 1)
    assert_allclose(found.share_lost.value[0], losses.sum(0) / variance.sum(0), rtol=1e-9)
    moments = GroupMoments.from_rows(X, groups, folds="needed")
    with refused(ValueError, "'needed'"):
        compare(moments, n_components=1)


def by_hand_pca(X, groups, r):
    sums = np.zeros((2, 5, 2))
    for fold in range(5):
        test = row_folds(X) == fold
        pca = PCA(r).fit(X[~test])
        errors = np.square(X - pca.inverse_transform(pca.transform(X))).sum(axis=1)
        distances = np.square(X - pca.mean_).sum(axis=1)
        for i in range(2):
            some = test & (groups == i)
            sums[:, fold, i] = distances[some].sum(), errors[some].sum()
    return sums


def test_units_do_not_matter():
    X, groups = rows_and_groups()
    expected = compare(X, sensitive_features=groups, n_components=2)
    for unit in (2.0**-30, 2.0**30):
        same(compare(X * unit, sensitive_features=groups, n_components=2), expected)


@pytest.mark.parametrize("measure", ["share_lost", "loss"])
def test_other_criteria(measure):
    X, groups = rows_and_groups()
    found = compare(X, sensitive_features=groups, n_components=2, criterion=SoftMinMax(measure))
    assert len(found) == 6
    bound = AtMost({"a": 100.0, "b": 100.0, "c": 18.0}, "loss")
    bounded = compare(X, sensitive_features=groups, n_components=2, criterion=bound)
    assert bounded.methods[-2:] == ("fair PCA", "min-max PCA")
    fair = bounded.methods.index("fair PCA")
    assert (bounded.share_lost.value[fair] != bounded.share_lost.value[0]).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 7}, "n_components=7 n_features=6"),
        ({"groups": None}, "groups"),
        ({"sensitive_features": None}, "compare needs groups"),
        ({"criterion": "nothing"}, "criterion"),
        ({"keep_sensitive": "no"}, "keep_sensitive True"),
    ],
)
def test_wrong_parameters_are_refused(given, message):
    X, groups = rows_and_groups()
    with refused(ValueError, *message.split()):
        compare(X, **{"sensitive_features": groups, "n_components": 2} | given)


def test_wrong_rows_are_refused():
    X, groups = rows_and_groups()
    known = {"sensitive_features": groups, "n_components": 2}
    with refused(ValueError, "NaN"):
        compare(np.where(X > 8, np.nan, X), **known)
    with refused(ValueError, "compare", "moments by fold"):
        compare(GroupMoments.from_rows(X, groups), n_components=2)
    moments = GroupMoments.from_rows(X, groups, folds=True)
    with refused(ValueError, "Moments", "groups"):
        compare(moments, **known)
    with refused(ValueError, "different rows"):
        compare(np.ones((20, 3)), sensitive_features=groups[:20], n_components=1)
    wide = np.random.default_rng(0).normal(size=(10, 500))
    with refused(ValueError, "10 dimensions"):
        compare(wide, sensitive_features=["a", "b"] * 5, n_components=12)


# Verdicts: the rules one by one, of numbers that are made up, then of rows.


def made_up(pca, more, fair, *, reach=0.01, disparity=0.0, count=100):
    """A comparison of PCA, PCA with one more component, and fair PCA, of shares in per cent."""
    shares = np.array([pca, more, fair]) / 100.0

    def estimate(value):
        reaches = np.broadcast_to(reach, value.shape)
        return HeldOutEstimate(value, value - reaches, value + reaches, reaches / 3.0)

    k = len(pca)
    return Comparison(
        methods=("PCA", "PCA", "fair PCA"),
        dimensions=(5, 6, 5),
        labels=tuple("abcdef"[:k]),
        count=np.full(k, count),
        share_lost=estimate(shares),
        change=estimate(shares - shares[0]),
        beyond_fair=estimate(shares - shares[2]),
        disparity=estimate(np.outer([1.0, 0.8, 0.5], np.broadcast_to(disparity, k))),
        total_lost=shares.mean(axis=1),
        variance=np.arange(1.0, k + 1.0),
    )


def test_rule_one_group():
    assert made_up([12], [9], [12]).verdict.kind == "one group"


def test_rule_unclear():
    verdict = made_up([12, 8], [9, 7], [11.5, 8.1], reach=0.008).verdict
    assert verdict.kind == "unclear"  # 0.5 + 0.8 is more than a tenth of 12
    assert verdict.numbers["possible"] == ("a", pytest.approx(-0.013), pytest.approx(0.003))
    words = ("not show", "share that 'a' loses", "at least as well")
    assert numbers_in(recorded(str(verdict), *words)) == [5, -1.3, 0.3, 95, 6, 5, 9.0, 11.5]
    assert made_up([12, 8], [9, 7], [11.5, 8.1], reach=0.0065).verdict.kind == "no difference"


def test_too_few_rows_are_unclear():
    X, groups = rows_and_groups((300, 15, 12))
    verdict = compare(X, sensitive_features=groups, n_components=2).verdict
    assert verdict.kind == "unclear"
    assert verdict.numbers["not_judged"] == ["b", "c"]
    assert verdict.numbers["possible"] is None
    few = compare(X[:30], sensitive_features=["a", "b"] * 15, n_components=2).verdict
    recorded(str(few), "not show", "Too few rows", "'a', 'b'")


def test_the_group_whose_gain_is_open_is_named():
    # What 'b' may gain cannot be ruled out; 'a', which has the largest disparity, gains nothing.
    reach = np.array([0.001, 0.09])
    verdict = made_up([12, 8], [9, 7], [12, 8.1], reach=reach, disparity=np.array([0.05, 0.02]))
    assert verdict.verdict.kind == "unclear"
    name, low, high = verdict.verdict.numbers["possible"]
    assert (name, low) == ("b", pytest.approx(-0.08))  # no more than it loses
    assert high == pytest.approx(0.091)


def test_rules_no_gain_and_no_difference():
    shares, close = ([12, 8], [9, 7], [11.5, 8.1]), {"reach": 0.006}
    alike, apart = (made_up(*shares, disparity=e, **close).verdict for e in (0.005, 0.05))
    assert alike.kind == "no difference"
    numbers = numbers_in(recorded(str(alike), "Use PCA", "no group", "that of 'a'"))
    assert numbers == [0.5, -0.1, 1.1]
    assert apart.kind == "no gain"
    recorded(str(apart), "clear disparity", "5 components", "Use PCA")
    worse = made_up([12, 8], [9, 7], [11.5, 10], **close).verdict
    assert worse.kind == "no gain"
    assert worse.numbers["hurt"] == [("b", 0.08, 0.1)]
    recorded(str(worse), "5 components", "costs 'b' (8.0 → 10.0 % lost)", "Use PCA")
    words = "PCA with 6 components lowers the largest disparity from 5.0 to 4.0 %"
    assert words in " ".join(str(apart).split())
    assert [each.numbers["significant"] for each in (alike, apart)] == [[], ["a", "b"]]


def test_rule_more_components():
    verdict = made_up([12, 8], [9, 7.5], [9.2, 8.4], reach=0.003, disparity=0.06).verdict
    assert verdict.kind == "more components"
    assert verdict.numbers["more_components"] == 6
    assert verdict.numbers["worse_with_more"] == []
    assert verdict.numbers["worst_lost"] == (0.09, 0.092)
    words = ("PCA with 6 components", "'a' (12.0 → 9.2 % lost)", "'b' (8.0 → 8.4 % lost)")
    text = recorded(str(verdict), *words, "every group at least as well")
    lost = [12.0, 9.2, 8.0, 8.4]
    assert numbers_in(text) == [6, 5, 9.0, 9.2, 5, *lost, 6.0, 3.0, 12.0, 9.2, 10.0, 8.8]
    # One group that loses more than with fair PCA is enough, however wide its interval.
    for reach in (0.003, np.array([0.02, 0.003])):
        nearly = made_up([12, 8], [9.25, 7.5], [9.2, 8.4], reach=reach).verdict
        assert nearly.kind != "more components"
        assert [name for name, *_ in nearly.numbers["worse_with_more"]] == ["a"]
    trade = made_up([12, 8], [9.4, 7.5], [9.2, 8.4], reach=0.003).verdict
    assert trade.kind == "trade"
    assert trade.numbers["more_components"] == 6
    assert trade.numbers["worse_with_more"] == [("a", 0.092, 0.094)]
    recorded(str(trade), "PCA with 6 components", "1 of 2 groups", "'a' (9.2 → 9.4 % lost)")


def test_more_components_are_named_with_the_groups_that_they_serve_worse():
    verdict = made_up([12, 8, 9], [9.4, 7.4, 8.4], [9.2, 8.4, 8.0], reach=0.003).verdict
    assert verdict.kind == "trade"
    assert [name for name, *_ in verdict.numbers["worse_with_more"]] == ["c", "a"]
    recorded(str(verdict), "1 of 3 groups", "'c' (8.0 → 8.4 % lost)", "lose more than with fair")


def test_adult_by_race_names_the_components_that_serve_nearly_all_groups():
    adult = load_adult(sensitive="race")
    X = StandardScaler().fit_transform(adult.data.drop(columns="fnlwgt"))
    found = compare(X, sensitive_features=adult.sensitive_features, n_components=3)
    assert (found.change.value[2] < 0.0).all()
    assert found.verdict.numbers["more_components"] == found.dimensions[2] == 5
    # It does not serve every group as well: this one loses far more.
    worse = found.verdict.numbers["worse_with_more"]
    assert [name for name, *_ in worse] == ["Amer-Indian-Eskimo"]
    assert found.beyond_fair.low[2, 0] > 0.1
    recorded(str(found.verdict), "PCA with 5 components", "4 of 5 groups", "'Amer-Indian-Eskimo'")


def test_a_number_has_one_interval():
    """In the table of methods, in that of groups, and in the verdict."""
    adult = load_adult(sensitive="race")
    X = StandardScaler().fit_transform(adult.data.drop(columns="fnlwgt"))
    found = compare(X, sensitive_features=adult.sensitive_features, n_components=3)
    summary = found.summary()
    for name, worst, estimate in (
        ("worst", found.worst_group, found.share_lost),
        ("disparity", found.largest_disparity_group, found.disparity),
    ):
        for end in ("low", "high"):
            expected = [getattr(estimate, end)[j, i] for j, i in enumerate(worst)]
            assert_allclose(summary[f"{name} {end}"], expected)
    row = next(line for line in str(found).splitlines() if line.startswith("Amer-Indian-Eskimo"))
    ends = f"{100 * summary['worst low'][0]:.1f} to {100 * summary['worst high'][0]:.1f}"
    assert str(found).count(f"({ends})") == 2
    assert f"({ends})" in row
    assert found.verdict.numbers["unfairest"][2:] == (
        summary["disparity low"][0],
        summary["disparity high"][0],
    )


def test_rule_gain_and_trade():
    gain = made_up([12, 8], [11, 7], [9, 8.4], disparity=0.06).verdict
    assert gain.kind == "gain"
    assert gain.numbers["hurt"] == []
    words = ("Use fair PCA", "helps 'a' (12.0 → 9.0 % lost)", "costs no group")
    assert numbers_in(recorded(str(gain), *words)) == [
        12.0,
        9.0,
        6.0,
        3.0,
        12.0,
        9.0,
        10.0,
        8.7,
        6,
        1,
        2,
        9.0,
        11.0,
    ]
    trade = made_up([12, 8, 7, 6, 9], [11, 7, 7, 7, 7], [9, 10, 4.5, 3.8, 4]).verdict
    assert trade.kind == "trade"
    assert [name for name, *_ in trade.numbers["helped"]] == ["e", "a", "c", "d"]
    recorded(str(trade), "'e' (9.0 → 4.0 % lost)", "1 more", "costs 'b' (8.0 → 10.0 % lost)")


def test_groups_that_are_alike_need_no_fair_pca():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(600, 6)) * [3, 2, 2, 1, 1, 1], np.repeat([*"ab"], [450, 150])
    verdict = compare(X, sensitive_features=groups, n_components=1).verdict
    assert verdict.kind == "no difference"
    assert -0.05 < verdict.numbers["possible"][1] <= 0.0


def test_groups_that_differ_much_are_a_trade():
    # Each group varies along four columns of its own, and a few more components are not enough.
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(1200, 8)) * 0.3, np.repeat([*"ab"], [900, 300])
    X[:900, :4] *= [10, 9, 8, 7]
    X[900:, 4:] *= [10, 9, 8, 7]
    found = compare(X, sensitive_features=groups, n_components=2)
    assert found.verdict.kind == "trade"
    assert [name for name, *_ in found.verdict.numbers["helped"]] == ["b"]
    assert [name for name, *_ in found.verdict.numbers["hurt"]] == ["a"]
    fair = found.methods.index("fair PCA")
    assert found.better_off(fair) == ("b",)
    assert found.worse_off(fair) == ("a",)
    assert found.worst_group[0] == 1
    assert_allclose(found.worst_lost[0], 1.0, atol=0.03)
    assert found.disparity.low[0, 1] > 0.3


# Intervals on known populations.


def heavy_tails(rng):
    return rng.standard_t(4, size=(300, 8)) * np.sqrt(5 / np.arange(1, 9))


def part_of_adult(rng):
    adult = load_adult(as_frame=False)
    return StandardScaler().fit_transform(adult.data[rng.choice(len(adult.data), 400)])


@pytest.mark.untraced
@pytest.mark.parametrize("draw", [heavy_tails, part_of_adult])
@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.4, 0.3, 0.2, 0.1]])
def test_random_labels_rarely_have_a_significant_disparity(draw, shares):
    """In at most one of 20 tables; binomial: 18 or more of 200 have a probability of 1.2 %."""
    significant = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = draw(rng)
        data = prepare_data(X, rng.choice(len(shares), len(X), p=shares), folds="all")
        problem = Problem(data.moments, 2, SoftMinMax())
        methods = [Method("PCA", 2)]
        sums = HeldOutSums.of_folds(data.cells, "intersections", problem, methods)
        significant += bool((sums.disparity().low[0] > 1e-9).any())
    assert significant <= 17


@pytest.mark.untraced
@pytest.mark.parametrize("apart", [0.0, 0.5])
def test_intervals_hold_what_is_true_of_the_population(apart):
    """In nine of ten samples, for both groups; the truth is the mean of all samples."""
    d, r, sizes = 8, 2, (200, 60)
    for population in range(2):
        rng = np.random.default_rng(population)
        axes = [np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(3)]
        roots = [
            np.linalg.cholesky(
                (1 - apart) * (axes[0] * 5 / np.arange(1, d + 1)) @ axes[0].T
                + apart * (own * 5 / np.arange(1, d + 1)) @ own.T
            )
            for own in axes[1:]
        ]
        draws = []
        for _ in range(25):
            parts = [rng.normal(size=(n, d)) @ root.T for n, root in zip(sizes, roots, strict=True)]
            groups = np.repeat([0, 1], sizes)
            draws.append(compare(np.vstack(parts), sensitive_features=groups, n_components=r))
        for name in ("share_lost", "change"):
            parts = [getattr(draw, name) for draw in draws]
            ends = ("value", "low", "high")
            values, low, high = (np.array([getattr(p, end) for p in parts]) for end in ends)
            truth = values.mean(axis=0)
            held = ((low <= truth) & (truth <= high)).all(axis=2)
            assert held.mean() >= 0.9, (population, name)
        if not apart:
            helped = [draw.verdict.kind in ("gain", "trade", "more components") for draw in draws]
            assert np.mean(helped) <= 0.15


# What is shown.


def test_columns_and_texts():
    X, groups = rows_and_groups()
    frame = pd.DataFrame({"sex": groups, "<b>": np.where(X[:, 0] > 0, "1", "2")})
    found = compare(X, sensitive_features=frame, n_components=2)
    columns = found.to_frame()
    assert len(columns) == len(found) * len(found.labels) == 36
    fair = columns[columns["method"] == "fair PCA"]
    assert_allclose(fair["share lost"], found.share_lost.value[4])
    assert_allclose(fair["change low"], found.change.low[4])
    assert fair["rows"].tolist() == found.count.tolist()
    summary = found.summary()
    assert (
        summary["worst share lost"]
        == columns.groupby(["method", "components"], sort=False)["share lost"].max().tolist()
    )
    assert summary["components"] == [2, 3, 4, 2, 2, 2]
    assert [len(names) for names in summary["better off"]] == [
        len(found.better_off(i)) for i in range(6)
    ]
    assert_allclose(fair["disparity"] * fair["variance"], found.disparity.value[4] * found.variance)
    lines = str(found).splitlines()
    assert str(found.verdict).startswith(lines[0])
    largest = 100 * found.disparity.value[0, found.largest_disparity_group[0]]
    assert f" {largest:.1f} (" in str(found)
    assert all(len(line) <= 80 for line in str(found).splitlines())
    page = found._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count("<table>") == 2


def test_a_star_is_beside_intervals_that_exclude_0():
    found = made_up([40, 20], [30, 19.5], [40.5, 20.5], reach=np.array([0.2, 0.001]))
    lines = [line.split() for line in str(found).splitlines() if "±" in line]
    rows = {words[0]: words for words in lines}
    assert rows["a"][-6:] == ["-10.0", "±", "20.0", "0.5", "±", "20.0"]
    assert rows["b"][-6:] == ["-0.5", "±", "0.1*", "0.5", "±", "0.1*"]
    assert [found.better_off(1), found.worse_off(2)] == [("b",), ("b",)]


def test_a_column_with_most_of_the_variance_is_named():
    X, groups = rows_and_groups()
    assert compare(X, sensitive_features=groups, n_components=2).notes == ()
    X[:, 2] *= 10.0
    found = compare(X, sensitive_features=groups, n_components=2)
    assert recorded(found.notes[0], "Column 2", "Standardise") in found.text_parts()


def test_the_picture_has_the_numbers():
    X, groups = rows_and_groups()
    found = compare(X, sensitive_features=groups, n_components=2)
    try:
        display = ComparisonDisplay(found).plot()
        order = np.argsort(-found.disparity.value[0])
        names = [text.get_text() for text in display.ax_.get_yticklabels()]
        rows = {"a": "240", "b": "90", "c": "30"}
        assert names == [f"{found.labels[i]} ({rows[found.labels[i]]} rows)" for i in order]
        # Of each method the clear differences, which are filled, and the others.
        points = [line for line in display.ax_.lines if line.get_marker() not in ("", "None", "|")]
        assert len(points) == 10
        for j in range(1, 6):
            clear = found.clear_change[j, order] != 0
            for line, some in zip(points[2 * j - 2 : 2 * j], (clear, ~clear), strict=True):
                assert_allclose(line.get_xdata(), 100 * found.share_lost.value[j, order][some])
                assert (line.get_markerfacecolor() == "white") == (some is not clear)
        own = found.share_lost.value[0] - found.disparity.value[0]
        shares = (found.share_lost.value[0], own)
        for drawn, lost in zip(display.ax_.collections[:2], shares, strict=True):
            places = [line[0, 0] for line in drawn.get_segments()]
            assert_allclose(places, 100 * lost[order])
        assert str(found.verdict).startswith(display.ax_.get_title(loc="left").splitlines()[0])
        display.figure_.canvas.draw()
        _, ax = plt.subplots()
        assert ComparisonDisplay(found).plot(ax=ax).ax_ is ax
    finally:
        plt.close("all")

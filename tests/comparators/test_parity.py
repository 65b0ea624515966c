"""Demographic parity: matched means and covariances, optimality, the contract, bad input."""

import pickle

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairpca import FairnessWarning, FairPCA, GroupMoments
from fairpca.comparators import ParityPCA
from fairpca.comparators.parity import (
    equal_mean_space,
    parity_gaps,
    similar_covariance_space,
)

from texts import refused, warned

pytestmark = pytest.mark.filterwarnings("ignore:Groups with a single row:fairpca.FairnessWarning")


# Without groups there is a warning, which Python's own filters let pass.
@pytest.mark.filterwarnings("ignore:.*here are no groups:fairpca.FairnessWarning")
@parametrize_with_checks([ParityPCA(), ParityPCA(1, match="covariance")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def grouped_rows(k=2, n=120, d=6, seed=0):
    """Groups of different sizes with different means and covariances."""
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(k), rng.integers(0, k, n - k) * rng.integers(0, 2, n - k)])
    X = rng.normal(size=(n, d)) * np.linspace(2, 1, d)
    for group in range(k):
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        X[groups == group] = X[groups == group] * rng.uniform(0.5, 2, d) @ turn + rng.normal(size=d)
    return X, groups


def ugly_rows(rng):
    """Rows with some of: constant columns, tied variances, tiny groups, equal means, far scales."""
    k, d = int(rng.integers(2, 7)), int(rng.integers(7, 11))
    n = int(rng.integers(2 * k, 60))
    X, groups = grouped_rows(k, n, d, int(rng.integers(1 << 30)))
    kind = rng.choice(["plain", "constant", "tied", "equal means", "far apart", "low rank"])
    if kind == "constant":
        X[:, rng.random(d) < 0.3] = 7.0
    elif kind == "tied":  # the same few rows about every mean
        X = np.vstack([np.eye(d), -np.eye(d)])[rng.integers(0, 2 * d, n)]
        X = X + rng.integers(0, 2, (k, d))[groups]
    elif kind == "equal means":
        for group in range(k):
            X[groups == group] -= X[groups == group].mean(axis=0)
    elif kind == "far apart":
        X += 1e3 * rng.normal(size=(k, d))[groups]
    elif kind == "low rank":
        X[:, 3:] = X[:, :3] @ rng.normal(size=(3, d - 3))
    weights = rng.uniform(0.1, 2, n) if rng.random() < 0.5 else None
    return X * 10.0 ** rng.choice([-8, -3, 0, 8]), groups, weights


def group_means(rows, groups, weights=None):
    weights = np.ones(len(rows)) if weights is None else weights
    labels = sorted(set(groups))
    return np.array(
        [np.average(rows[groups == g], axis=0, weights=weights[groups == g]) for g in labels]
    )


def spread(rows):
    return np.sqrt(rows.var(axis=0).sum())


def raw_gaps(rows, groups):
    """Largest differences of means and of covariances, from the rows themselves."""
    means = group_means(rows, groups)
    covariances = [
        np.cov(rows[groups == g].T, ddof=0).reshape(2 * rows.shape[1:]) for g in set(groups)
    ]
    pairs = [(i, j) for i in range(len(means)) for j in range(i)]
    return (
        max(np.linalg.norm(means[i] - means[j]) for i, j in pairs),
        max(np.linalg.norm(covariances[i] - covariances[j], 2) for i, j in pairs),
    )


def projector(fitted):
    return fitted.components_.T @ fitted.components_


def kept_variance(X, basis):
    return np.trace(basis.T @ np.cov(X.T, ddof=0) @ basis)


@pytest.fixture
def no_work(monkeypatch):
    monkeypatch.setattr(GroupMoments, "from_groups", lambda *_: pytest.fail("rows were read"))
    monkeypatch.setattr(np.linalg, "eigh", lambda *_: pytest.fail("a matrix was decomposed"))


# --- Equal means --------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["mean", "covariance"]))
def test_projected_means_are_equal(seed, match):
    rng = np.random.default_rng(seed)
    X, groups, weights = ugly_rows(rng)
    most = ParityPCA().fit(X, sensitive_features=groups, sample_weight=weights).n_components_
    for r in {1, most}:
        parity = ParityPCA(r, match=match)
        parity.fit(X, sensitive_features=groups, sample_weight=weights)
        means = group_means(X @ parity.components_.T, groups, weights)
        assert np.abs(means - means[0]).max() <= 1e-10 * spread(X)
        assert parity.mean_gap_ <= 1e-10 * spread(X)
        np.testing.assert_allclose(parity.components_ @ parity.components_.T, np.eye(r), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_only_differences_of_means_cost_dimensions(k, scale):
    X, groups = grouped_rows(k)
    assert ParityPCA().fit(X * scale, sensitive_features=groups).n_components_ == 6 - (k - 1)
    for group in range(k):
        X[groups == group] -= X[groups == group].mean(axis=0)
    parity = ParityPCA(6).fit(X * scale, sensitive_features=groups)
    np.testing.assert_allclose(projector(parity), np.eye(6), atol=1e-12)
    X[groups == 1, 2] += 1e-4  # small, but no rounding
    with refused(ValueError, f"{k} groups", "1 dimensions"):
        ParityPCA(6).fit(X * scale, sensitive_features=groups)


@pytest.mark.parametrize("scale", [1e-8, 0.3, 1e8])
def test_rounding_of_means_far_from_zero_costs_no_dimension(scale):
    rows = np.random.default_rng(0).normal(size=(3, 3, 4))
    rows -= rows.mean(axis=1, keepdims=True)
    groups = np.repeat([0, 1, 2], 3)
    far = (rows.reshape(9, 4) + np.array([1e8, 2e8, 3e8, 4e8]) / 3) * scale
    assert np.ptp(group_means(far, groups), axis=0).max() > 1e-9 * scale
    assert ParityPCA(4).fit(far, sensitive_features=groups).n_components_ == 4


@pytest.mark.parametrize("match", ["mean", "covariance"])
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale_does_not_matter(match, scale):
    X, groups = grouped_rows(3)
    plain = ParityPCA(2, match=match).fit(X, sensitive_features=groups)
    scaled = ParityPCA(2, match=match).fit(X * scale, sensitive_features=groups)
    np.testing.assert_allclose(projector(scaled), projector(plain), atol=1e-10)
    assert scaled.covariance_gap_ == pytest.approx(plain.covariance_gap_ * scale**2, rel=1e-9)


def test_gaps_are_those_of_the_projected_rows():
    X, groups = grouped_rows(4)
    parity = ParityPCA(2).fit(X, sensitive_features=groups)
    mean_gap, covariance_gap = raw_gaps(parity.transform(X), groups)
    assert parity.mean_gap_ == pytest.approx(mean_gap, rel=1e-9, abs=1e-12)
    assert parity.covariance_gap_ == pytest.approx(covariance_gap, rel=1e-9)


def test_integer_weights_are_repeated_rows():
    X, groups = grouped_rows(3)
    weights = np.random.default_rng(3).integers(1, 4, len(X))
    weighted = ParityPCA(2, match="covariance")
    weighted.fit(X, sensitive_features=groups, sample_weight=weights)
    repeated = clone(weighted).fit(
        np.repeat(X, weights, axis=0), sensitive_features=np.repeat(groups, weights)
    )
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-9)
    assert weighted.covariance_gap_ == pytest.approx(repeated.covariance_gap_, rel=1e-9)


# --- Optimality ---------------------------------------------------------------


def test_best_direction_of_three_columns_by_brute_force():
    X, groups = grouped_rows(2, d=3)
    means = group_means(X, groups)
    plane = scipy.linalg.null_space((means[0] - means[1])[None])
    angles = np.linspace(0, np.pi, 20_001)
    directions = plane @ [np.cos(angles), np.sin(angles)]
    variances = np.var(X @ directions, axis=0)
    best = directions[:, variances.argmax()]
    parity = ParityPCA(1).fit(X, sensitive_features=groups)
    assert abs(parity.components_[0] @ best) == pytest.approx(1.0, abs=1e-6)
    assert kept_variance(X, parity.components_.T) >= variances.max()


@pytest.mark.parametrize("k", [2, 4])
def test_no_random_subspace_with_equal_means_keeps_more(k):
    X, groups = grouped_rows(k)
    parity = ParityPCA(2).fit(X, sensitive_features=groups)
    means = group_means(X, groups)
    allowed = scipy.linalg.null_space(means[1:] - means[0])
    rng = np.random.default_rng(0)
    best = kept_variance(X, parity.components_.T)
    for step in [10.0, 1.0, 0.1, 1e-2, 1e-3]:
        for _ in range(100):
            start = allowed.T @ parity.components_.T
            turned = allowed @ np.linalg.qr(start + step * rng.normal(size=start.shape))[0]
            assert kept_variance(X, turned) <= best * (1 + 1e-12)


def test_kept_variance_is_that_of_an_sdp():
    for k, r in [(2, 1), (3, 2), (4, 3)]:
        X, groups = grouped_rows(k, seed=r)
        means = group_means(X, groups)
        # In the coordinates of the directions that are allowed: P @ difference == 0 as a condition
        # would leave no inner point, and interior-point methods rely on one.
        allowed = scipy.linalg.null_space(means[1:] - means[0])
        covariance = allowed.T @ np.cov(X.T, ddof=0) @ allowed
        n = len(covariance)
        P = cp.Variable((n, n), PSD=True)
        conditions = [np.eye(n) - P >> 0, cp.trace(P) == r]
        gain = cp.trace(covariance @ P)
        value = cp.Problem(cp.Maximize(gain), conditions).solve(solver="CLARABEL")
        parity = ParityPCA(r).fit(X, sensitive_features=groups)
        assert kept_variance(X, parity.components_.T) == pytest.approx(value, rel=1e-6)


# --- Covariances --------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 5])
def test_candidates_halfway_bring_covariances_nearer(k):
    gaps = []
    for seed in range(10):
        X, groups = grouped_rows(k, n=300, d=10, seed=seed)
        plain = ParityPCA(2).fit(X, sensitive_features=groups)
        halfway = ParityPCA(2, match="covariance").fit(X, sensitive_features=groups)
        assert halfway.explained_variance_.sum() <= plain.explained_variance_.sum() * (1 + 1e-12)
        gaps.append(halfway.covariance_gap_ / plain.covariance_gap_)
        moments = GroupMoments.from_rows(X, groups)
        space = equal_mean_space(moments)
        candidates = similar_covariance_space(moments, space, (2 + space.shape[1]) // 2)
        left = halfway.components_.T - candidates @ (candidates.T @ halfway.components_.T)
        np.testing.assert_allclose(left, 0.0, atol=1e-9)
    assert np.mean(gaps) < 1.0


def equal_means(X, groups):
    """An orthonormal basis of the directions with equal means, and the covariances in them."""
    means = group_means(X, groups)
    R = scipy.linalg.null_space(means[1:] - means[0])
    return R, [R.T @ np.cov(X[groups == g].T, ddof=0) @ R for g in sorted(set(groups))]


@pytest.mark.parametrize("seed", range(3))
def test_candidates_of_two_groups_have_the_smallest_absolute_eigenvalues(seed):
    X, groups = grouped_rows(2, seed=seed)
    R, (first, second) = equal_means(X, groups)
    values, vectors = np.linalg.eigh(first - second)
    for n in (2, 3):
        expected = R @ vectors[:, np.abs(values).argsort()[:n]]
        moments = GroupMoments.from_rows(X, groups)
        candidates = similar_covariance_space(moments, equal_mean_space(moments), n)
        np.testing.assert_allclose(candidates @ candidates.T, expected @ expected.T, atol=1e-9)
        largest = np.abs(values)[np.abs(values).argsort()[n - 1]]
        assert parity_gaps(moments, candidates)[1] == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_candidates_are_eigenvectors_of_the_sum_over_pairs(k):
    X, groups = grouped_rows(k, d=8)
    R, covariances = equal_means(X, groups)
    total = sum(
        np.linalg.matrix_power(covariances[i] - covariances[j], 2)
        for i in range(k)
        for j in range(i)
    )
    expected = R @ np.linalg.eigh(total)[1][:, :3]
    moments = GroupMoments.from_rows(X, groups)
    candidates = similar_covariance_space(moments, equal_mean_space(moments), 3)
    np.testing.assert_allclose(candidates @ candidates.T, expected @ expected.T, atol=1e-9)


# --- Groups by the names of columns, and missing labels -----------------------


def test_named_columns_make_the_groups_and_are_no_features():
    X, groups = grouped_rows(3)
    frame = pd.DataFrame(X, columns=list("uvwxyz")).assign(group=groups)
    named = ParityPCA(2).fit(frame, sensitive_features="group")
    plain = ParityPCA(2).fit(frame.drop(columns="group"), sensitive_features=groups)
    assert named.feature_names_in_.tolist() == list("uvwxyz")
    assert named.sensitive_names_ == ("group",)
    expected = plain.transform(frame.drop(columns="group"))
    np.testing.assert_array_equal(named.transform(frame), expected)
    np.testing.assert_array_equal(named.transform(frame.drop(columns="group")), expected)


def test_rows_without_a_label_are_left_out():
    X, groups = grouped_rows(3)
    labels = np.array(groups, dtype=object)
    labels[::7] = None
    some = labels != None  # noqa: E711 (element by element)
    expected = ParityPCA(2).fit(X[some], sensitive_features=labels[some])
    with warned(FairnessWarning, f"{(~some).sum()} of {len(X)}", "left out"):
        found = ParityPCA(2, missing_labels="drop").fit(X, sensitive_features=labels)
    np.testing.assert_allclose(found.transform(X), expected.transform(X), atol=1e-9)
    assert found.mean_gap_ == pytest.approx(expected.mean_gap_, abs=1e-9)


# --- Without groups it is PCA -------------------------------------------------


@pytest.mark.parametrize("match", ["mean", "covariance"])
def test_without_groups_it_is_pca(match):
    X, _ = grouped_rows()
    parity, pca = ParityPCA(3, match=match), PCA(3, svd_solver="full").fit(X)
    with warned(FairnessWarning, "no groups", "PCA"):
        parity.fit(X)
    if match == "covariance":
        with warned(FairnessWarning, "y is ignored"):
            parity.fit(X, X[:, 0])
    np.testing.assert_allclose(parity.components_, pca.components_, atol=1e-9)
    np.testing.assert_allclose(parity.explained_variance_, pca.explained_variance_, rtol=1e-10)
    assert np.isnan([parity.mean_gap_, parity.covariance_gap_]).all()
    with warned(FairnessWarning, "no groups") as caught:
        assert ParityPCA(match=match).fit(X).n_components_ == 6
    assert caught[0].filename == __file__
    assert FairPCA(groups=None).fit(X).n_components_ == 6


def test_one_label_only_warns_at_the_call():
    X, _ = grouped_rows()
    with warned(FairnessWarning, "one group", "'only'") as caught:
        ParityPCA(2).fit(X, sensitive_features=["only"] * len(X))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_sparse_rows_and_single_precision_give_what_dense_double_rows_give():
    X, groups = grouped_rows()
    parity = ParityPCA(2)
    expected = clone(parity).fit(X, sensitive_features=groups).transform(X)
    rows = scipy.sparse.csr_matrix(X)
    parity.fit(rows, sensitive_features=groups)
    np.testing.assert_allclose(parity.transform(rows), expected, atol=1e-9)
    single = clone(parity).fit(X.astype(np.float32), sensitive_features=groups)
    reduced = single.transform(X.astype(np.float32))
    assert reduced.dtype == np.float32
    np.testing.assert_allclose(reduced, expected, atol=1e-4)


# --- Within scikit-learn ------------------------------------------------------


def test_parameters_and_clone():
    assert ParityPCA(3, match="covariance", missing_labels="group").get_params() == {
        "n_components": 3,
        "match": "covariance",
        "whiten": False,
        "missing_labels": "group",
    }
    X, groups = grouped_rows()
    parity = ParityPCA(3).fit(X, sensitive_features=groups)
    copy = clone(parity)
    assert copy.get_params() == parity.get_params() == ParityPCA(3).get_params()
    assert not hasattr(copy, "mean_gap_")
    with refused(TypeError, "positional"):
        ParityPCA(3, "mean")


def test_pickles_names_and_frames():
    X, groups = grouped_rows()
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    parity = ParityPCA(2).set_output(transform="pandas").fit(frame, sensitive_features=groups)
    again = pickle.loads(pickle.dumps(parity))
    names = ["paritypca0", "paritypca1"]
    assert list(parity.get_feature_names_out()) == names
    assert list(again.transform(frame).columns) == names
    np.testing.assert_array_equal(again.transform(frame), parity.transform(frame))
    with refused(ValueError, "feature names"):
        parity.transform(frame[list("zyxwvu")])


def test_routing_brings_the_groups_without_a_request():
    X, groups = grouped_rows()
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = Pipeline([("scale", StandardScaler()), ("parity", ParityPCA(2))])
        reduced = pipe.fit(X, sensitive_features=groups).transform(X)
    alone = ParityPCA(2).fit(StandardScaler().fit_transform(X), sensitive_features=groups)
    np.testing.assert_allclose(reduced, alone.transform(StandardScaler().fit_transform(X)))
    assert raw_gaps(reduced, groups)[0] < 1e-10


def test_input_is_left_alone():
    X, groups = grouped_rows()
    for rows in (np.array(X, order="C"), np.array(X, order="F")):
        rows.setflags(write=False)
        ParityPCA(2).fit(rows, sensitive_features=groups).transform(rows)
        np.testing.assert_array_equal(rows, X)


def test_missing_labels_and_intersections():
    X, groups = grouped_rows()
    labels = pd.DataFrame({"one": groups, "two": np.tile(["x", "y"], 60)})
    parity = ParityPCA(2).fit(X, sensitive_features=labels)
    joined = 2 * groups + np.tile([0, 1], 60)
    assert raw_gaps(parity.transform(X), joined)[0] < 1e-10
    missing = np.where(np.arange(120) < 10, np.nan, groups)
    with refused(ValueError, "10 missing", "120 rows"):
        ParityPCA(2).fit(X, sensitive_features=missing)
    parity = ParityPCA(2, missing_labels="group").fit(X, sensitive_features=missing)
    joined = np.where(np.isnan(missing), 2, groups)
    assert raw_gaps(parity.transform(X), joined)[0] < 1e-10


# --- Bad input ----------------------------------------------------------------


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        *[
            ({"n_components": value}, "n_components")
            for value in (0, -1, 1.0, 0.5, True, "two", [2])
        ],
        ({"match": "all"}, "match 'mean' 'covariance' 'all'"),
        ({"n_components": 7}, "n_components=7 n_features=6"),
        ({"missing_labels": "no"}, "missing_labels 'error'"),
    ],
)
def test_wrong_parameters_are_refused_before_any_work(options, words):
    X, groups = grouped_rows()
    with refused(ValueError, *words.split()) as error:
        ParityPCA(**options).fit(X, sensitive_features=groups)
    assert "\n" not in str(error.value)


def test_more_components_than_are_left():
    X, groups = grouped_rows(3)
    with refused(ValueError, "n_components=5", "left, 4:", "6 columns", "3 groups", "2 dimensions"):
        ParityPCA(5).fit(X, sensitive_features=groups)
    assert ParityPCA(4).fit(X, sensitive_features=groups).n_components_ == 4
    with refused(ValueError, "n_components=1", "left, 0"):
        ParityPCA().fit(X[:, :1], sensitive_features=groups)


def test_no_dimension_means_the_rank_that_is_left():
    X, groups = grouped_rows(3)
    X[:, 4] = X[:, 0] - X[:, 1]
    X[:, 5] = 3.0
    for scale in (1e-8, 1.0, 1e8):
        assert ParityPCA().fit(X * scale, sensitive_features=groups).n_components_ == 2
    points = group_means(X, groups)[groups]  # nothing but the differences between groups
    assert ParityPCA().fit(points, sensitive_features=groups).n_components_ == 1


@pytest.mark.parametrize(
    ("value", "words"),
    [(np.nan, "NaN"), (np.inf, "infinity"), (1e200, "squared")],
)
def test_values_that_cannot_be_used(value, words):
    X, groups = grouped_rows()
    X[3, 1] = value
    with refused(ValueError, *words.split()):
        ParityPCA(2).fit(X, sensitive_features=groups)


def test_nothing_works_before_fit():
    X, _ = grouped_rows()
    with pytest.raises(NotFittedError):
        ParityPCA(2).transform(X)

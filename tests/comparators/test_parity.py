"""Demographic parity: matched means and covariances, optimality, the contract, bad input."""

import pickle
import re
import sys

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
from sklearn.decomposition import PCA, KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairpca import FairnessWarning, FairPCA, GroupMoments
from fairpca.comparators import ConvexParityPCA, KernelParityPCA, ParityPCA

from texts import refused, warned

ESTIMATORS = [ParityPCA, KernelParityPCA, ConvexParityPCA]
LINEAR = [ParityPCA, ConvexParityPCA]

pytestmark = pytest.mark.filterwarnings("ignore:Groups with a single row:fairpca.FairnessWarning")


# Without groups there is a warning, which Python's own filters let pass.
@pytest.mark.filterwarnings("ignore:.*here are no groups:fairpca.FairnessWarning")
@parametrize_with_checks(
    [
        ParityPCA(),
        ParityPCA(1, match="covariance"),
        KernelParityPCA(),
        KernelParityPCA(1, kernel="linear"),
        ConvexParityPCA(),
        ConvexParityPCA(1, mean_tolerance=0.5, covariance_penalty=1.0),
    ]
)
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


def largest_angle(first, second):
    return scipy.linalg.subspace_angles(first.components_.T, second.components_.T).max()


def up_to_signs(actual, expected, **tolerances):
    signs = np.sign((actual * expected).sum(axis=0))
    np.testing.assert_allclose(actual, expected * signs, **tolerances)


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


@pytest.mark.parametrize("estimator", LINEAR)
def test_gaps_are_those_of_the_projected_rows(estimator):
    X, groups = grouped_rows(4)
    options = {} if estimator is ParityPCA else {"mean_tolerance": np.inf}
    parity = estimator(2, **options).fit(X, sensitive_features=groups)
    mean_gap, covariance_gap = raw_gaps(parity.transform(X), groups)
    assert parity.mean_gap_ == pytest.approx(mean_gap, rel=1e-9, abs=1e-12)
    assert parity.covariance_gap_ == pytest.approx(covariance_gap, rel=1e-9)
    assert (parity.mean_gap_ > 0.1) == (estimator is ConvexParityPCA)


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
def test_fewer_candidates_bring_covariances_nearer(k):
    gaps = []
    for seed in range(10):
        X, groups = grouped_rows(k, n=300, d=10, seed=seed)
        plain = ParityPCA(2).fit(X, sensitive_features=groups)
        left = 10 - (k - 1)
        fitted = [
            ParityPCA(2, match="covariance", n_candidates=n).fit(X, sensitive_features=groups)
            for n in range(2, left + 1)
        ]
        np.testing.assert_allclose(fitted[-1].components_, plain.components_, atol=1e-9)
        variances = [parity.explained_variance_.sum() for parity in fitted]
        assert (np.diff(variances) >= -1e-12 * variances[-1]).all()  # candidates are nested
        assert fitted[0].covariance_gap_ < plain.covariance_gap_
        gaps.append([parity.covariance_gap_ / plain.covariance_gap_ for parity in fitted])
        halfway = ParityPCA(2, match="covariance").fit(X, sensitive_features=groups)
        np.testing.assert_array_equal(halfway.components_, fitted[left // 2 - 1].components_)
    thirds = [part.mean() for part in np.array_split(np.mean(gaps, axis=0), 3)]
    assert thirds[0] < thirds[1] < thirds[2]


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
        parity = ParityPCA(n, match="covariance", n_candidates=n)
        parity.fit(X, sensitive_features=groups)
        np.testing.assert_allclose(projector(parity), expected @ expected.T, atol=1e-9)
        largest = np.abs(values)[np.abs(values).argsort()[n - 1]]
        assert parity.covariance_gap_ == pytest.approx(largest, rel=1e-9)


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
    parity = ParityPCA(3, match="covariance", n_candidates=3).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(projector(parity), expected @ expected.T, atol=1e-9)


# --- Groups by the names of columns, and missing labels -----------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_named_columns_make_the_groups_and_are_no_features(estimator):
    X, groups = grouped_rows(3)
    frame = pd.DataFrame(X, columns=list("uvwxyz")).assign(group=groups)
    named = estimator(2).fit(frame, sensitive_features="group")
    plain = estimator(2).fit(frame.drop(columns="group"), sensitive_features=groups)
    assert named.feature_names_in_.tolist() == list("uvwxyz")
    assert named.sensitive_names_ == ("group",)
    expected = plain.transform(frame.drop(columns="group"))
    np.testing.assert_array_equal(named.transform(frame), expected)
    np.testing.assert_array_equal(named.transform(frame.drop(columns="group")), expected)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_rows_without_a_label_are_left_out(estimator):
    X, groups = grouped_rows(3)
    labels = np.array(groups, dtype=object)
    labels[::7] = None
    some = labels != None  # noqa: E711 (element by element)
    expected = estimator(2).fit(X[some], sensitive_features=labels[some])
    with warned(FairnessWarning, f"{(~some).sum()} of {len(X)}", "left out"):
        found = estimator(2, missing_labels="drop").fit(X, sensitive_features=labels)
    np.testing.assert_allclose(found.transform(X), expected.transform(X), atol=1e-9)
    assert found.mean_gap_ == pytest.approx(expected.mean_gap_, abs=1e-9)


def test_rows_of_a_kernel_matrix_cannot_be_left_out():
    X, groups = grouped_rows()
    kernel = KernelParityPCA(2, kernel="precomputed", missing_labels="drop")
    with refused(ValueError, "precomputed", "left out"):
        kernel.fit(X @ X.T, sensitive_features=[None, *groups[1:]])


# --- Without groups it is PCA -------------------------------------------------


@pytest.mark.parametrize("estimator", [*LINEAR, lambda r: ParityPCA(r, match="covariance")])
def test_without_groups_it_is_pca(estimator):
    X, _ = grouped_rows()
    parity, pca = estimator(3), PCA(3, svd_solver="full").fit(X)
    with warned(FairnessWarning, "no groups", "PCA"):
        parity.fit(X)
    if parity.get_params().get("match") == "covariance":
        with warned(FairnessWarning, "y is ignored"):
            parity.set_params(n_candidates=6).fit(X, X[:, 0])  # all directions equally similar
    np.testing.assert_allclose(parity.components_, pca.components_, atol=1e-9)
    np.testing.assert_allclose(parity.explained_variance_, pca.explained_variance_, rtol=1e-10)
    assert np.isnan([parity.mean_gap_, parity.covariance_gap_]).all()
    with warned(FairnessWarning, "no groups") as caught:
        assert estimator(None).fit(X).n_components_ == 6
    assert caught[0].filename == __file__
    assert FairPCA(groups=None).fit(X).n_components_ == 6


def test_kernel_without_groups_is_kernel_pca():
    X, _ = grouped_rows()
    expected = KernelPCA(3, kernel="rbf").fit(X)
    with warned(FairnessWarning, "no groups", "KernelPCA"):
        parity = KernelParityPCA(3).fit(X)
    up_to_signs(parity.transform(X), expected.transform(X), atol=1e-9)
    total = np.trace(rbf_kernel(X) - rbf_kernel(X).mean(axis=0)) / (len(X) - 1)
    assert parity.explained_variance_ratio_ == pytest.approx(parity.explained_variance_ / total)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_label_only_warns_at_the_call(estimator):
    X, _ = grouped_rows()
    with warned(FairnessWarning, "one group", "'only'") as caught:
        estimator(2).fit(X, sensitive_features=["only"] * len(X))
    assert len(caught) == 1
    assert caught[0].filename == __file__


# --- Kernels ------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_linear_kernel_is_parity_pca(k, scale):
    X, groups = grouped_rows(k, n=60)
    X, new = X * scale, np.random.default_rng(5).normal(size=(10, 6)) * scale
    linear = ParityPCA().fit(X, sensitive_features=groups)
    kernel = KernelParityPCA(linear.n_components_, kernel="linear").fit(
        X, sensitive_features=groups
    )
    for rows in (X, new):
        up_to_signs(kernel.transform(rows), linear.transform(rows), atol=1e-9 * scale)
    np.testing.assert_allclose(kernel.explained_variance_, linear.explained_variance_, rtol=1e-9)
    assert kernel.covariance_gap_ == pytest.approx(linear.covariance_gap_, rel=1e-8)
    with refused(ValueError, f"left, {7 - k}:", "rank 6", f"{k} groups"):
        clone(kernel).set_params(n_components=8 - k).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine", "linear"])
@pytest.mark.parametrize("k", [2, 6])
def test_kernel_projections_have_equal_means(kernel, k):
    X, groups = grouped_rows(k, n=60, d=9)
    X[:5] = X[5:10]  # repeated rows
    for r in (1, 4 if kernel in ("linear", "cosine") else 20):
        parity = KernelParityPCA(r, kernel=kernel).fit(X, sensitive_features=groups)
        reduced = parity.transform(X)
        means = group_means(reduced, groups)
        assert np.abs(means - means[0]).max() <= 1e-10 * spread(reduced)
        assert parity.mean_gap_ <= 1e-10 * spread(reduced)
        assert parity.covariance_gap_ == pytest.approx(raw_gaps(reduced, groups)[1], rel=1e-6)
        np.testing.assert_allclose(
            np.cov(reduced.T).reshape(r, r),
            np.diag(parity.explained_variance_),
            atol=1e-9 * spread(reduced) ** 2,
        )


def test_components_that_rounding_would_spoil_are_refused():
    X, groups = grouped_rows(3, n=60, d=2)
    smooth = KernelParityPCA(59, gamma=1e-3)  # its eigenvalues fall by orders of magnitude
    with refused(ValueError, "n_components=59", "left") as e:
        smooth.fit(X, sensitive_features=groups)
    most = int(re.search(r"left, (\d+):", str(e.value))[1])
    parity = smooth.set_params(n_components=most).fit(X, sensitive_features=groups)
    assert parity.explained_variance_ratio_[-1] < 1e-8
    means = group_means(parity.transform(X), groups)
    assert np.abs(means - means[0]).max() <= 1e-10  # rows have the length 1 in the feature space


def test_kernel_coefficients_solve_the_stated_problem():
    X, groups = grouped_rows(3, n=40)
    parity = KernelParityPCA(2, gamma=0.05).fit(X, sensitive_features=groups)
    center = np.eye(40) - 1 / 40
    K = center @ rbf_kernel(X, gamma=0.05) @ center
    alpha, Z = parity.dual_coef_, center @ np.eye(3)[groups]
    np.testing.assert_allclose(alpha.T @ K @ alpha, np.eye(2), atol=1e-10)
    np.testing.assert_allclose(Z.T @ K @ alpha, 0.0, atol=1e-10)
    value = np.trace(alpha.T @ K @ K @ alpha)
    rng = np.random.default_rng(0)
    allowed = scipy.linalg.null_space(Z.T @ K)
    for step in [10.0, 0.1, 1e-3]:
        for _ in range(50):
            beta = allowed @ (
                allowed.T @ (alpha + step * np.linalg.norm(alpha) * rng.normal(size=(40, 2)) / 9)
            )
            beta = beta @ np.linalg.inv(np.linalg.cholesky(beta.T @ K @ beta)).T
            assert np.trace(beta.T @ K @ K @ beta) <= value * (1 + 1e-10)


def test_precomputed_and_callable_kernels_give_what_named_ones_give():
    X, groups = grouped_rows(3, n=40)
    named = KernelParityPCA(2, gamma=0.2).fit(X[:30], sensitive_features=groups[:30])
    kernel = rbf_kernel(X, X[:30], gamma=0.2)
    computed = KernelParityPCA(2, kernel="precomputed")
    computed.fit(kernel[:30], sensitive_features=groups[:30])
    np.testing.assert_allclose(computed.transform(kernel), named.transform(X), atol=1e-9)
    sparse = clone(computed).fit(
        scipy.sparse.csr_array(kernel[:30]), sensitive_features=groups[:30]
    )
    np.testing.assert_allclose(sparse.transform(kernel), named.transform(X), atol=1e-9)

    def own(u, v, width):
        return np.exp(-width * np.square(u - v).sum())

    called = KernelParityPCA(2, kernel=own, kernel_params={"width": 0.2})
    called.fit(X[:30], sensitive_features=groups[:30])
    np.testing.assert_allclose(called.transform(X), named.transform(X), atol=1e-9)


def test_sparse_rows_and_single_precision_give_what_dense_double_rows_give():
    X, groups = grouped_rows()
    for parity in (ParityPCA(2), KernelParityPCA(2), ConvexParityPCA(2)):
        expected = clone(parity).fit(X, sensitive_features=groups).transform(X)
        rows = scipy.sparse.csr_matrix(X)
        parity.fit(rows, sensitive_features=groups)
        np.testing.assert_allclose(parity.transform(rows), expected, atol=1e-9)
        single = clone(parity).fit(X.astype(np.float32), sensitive_features=groups)
        reduced = single.transform(X.astype(np.float32))
        assert reduced.dtype == np.float32
        np.testing.assert_allclose(reduced, expected, atol=1e-4)


def test_later_changes_of_the_rows_do_not_change_the_kernel():
    X, groups = grouped_rows()
    rows = X.copy()
    parity = KernelParityPCA(2).fit(rows, sensitive_features=groups)
    before = parity.transform(X)
    rows[:] = 0.0
    np.testing.assert_array_equal(parity.transform(X), before)


# --- The convex relaxation ----------------------------------------------------


def covariance_differences(X, groups):
    covariances = [np.cov(X[groups == g].T, ddof=0) for g in sorted(set(groups))]
    return [first - second for i, first in enumerate(covariances) for second in covariances[:i]]


def relaxed_gap(parity, X, groups):
    P = parity.relaxed_projector_
    return max(np.linalg.norm(P @ Q @ P, 2) for Q in covariance_differences(X, groups))


def relaxed_bound(P, X, groups):
    """The smallest t that the matrix inequalities allow, by eigenvalues."""
    differences = covariance_differences(X, groups)
    phi = max(np.linalg.norm(Q, 2) for Q in differences)
    shifted = [phi * np.eye(len(Q)) + sign * Q for Q in differences for sign in (1, -1)]
    return max(np.linalg.eigvalsh(P @ matrix @ P)[-1] for matrix in shifted)


def assert_in_fantope(P, r):
    values = np.linalg.eigvalsh(P)
    assert values[0] >= -1e-5
    assert values[-1] <= 1 + 1e-5
    assert values.sum() == pytest.approx(r, abs=1e-5)


def test_closed_forms_need_no_program(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    X, groups = grouped_rows(3)
    strict = ConvexParityPCA(2).fit(X, sensitive_features=groups)
    expected = ParityPCA(2).fit(X, sensitive_features=groups)
    np.testing.assert_array_equal(strict.components_, expected.components_)
    np.testing.assert_allclose(strict.relaxed_projector_, projector(expected), atol=1e-12)
    loose = ConvexParityPCA(2, mean_tolerance=np.inf).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(projector(loose), projector(PCA(2).fit(X)), atol=1e-10)
    with warned(FairnessWarning, "no groups"):
        ungrouped = ConvexParityPCA(2, mean_tolerance=0.1, covariance_penalty=1.0).fit(X)
    np.testing.assert_allclose(projector(ungrouped), projector(PCA(2).fit(X)), atol=1e-10)


@pytest.mark.parametrize("options", [{"mean_tolerance": 0.1}, {"covariance_penalty": 1.0}])
@pytest.mark.usefixtures("no_work")
def test_a_missing_extra_is_named_before_any_work(options, monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    X, groups = grouped_rows()
    with refused(ImportError, "fairpca[sdp]"):
        ConvexParityPCA(2, **options).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
def test_conditions_that_do_not_bind_give_pca(backend):
    X, groups = grouped_rows(3)
    pca = PCA(2).fit(X)
    gap = raw_gaps(pca.transform(X), groups)[0]
    parity = ConvexParityPCA(2, mean_tolerance=1.01 * gap, backend=backend)
    parity.fit(X, sensitive_features=groups)
    assert largest_angle(parity, pca) < 1e-6
    # It is PCA that keeps to the tolerance, not the rows themselves; the program agrees.
    moments = GroupMoments.from_rows(X, groups)
    relaxation, _ = parity._relaxation(moments, moments.total_covariance())
    assert len(relaxation.directions) > 0
    np.testing.assert_allclose(relaxation.solve(backend)[0], projector(pca), atol=1e-4)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("backend", ["clarabel", "scs"])
def test_without_tolerance_means_are_equal_whatever_the_penalty(k, backend):
    X, groups = grouped_rows(k)
    parity = ConvexParityPCA(2, covariance_penalty=0.7, backend=backend)
    parity.fit(X, sensitive_features=groups)
    assert raw_gaps(parity.transform(X), groups)[0] <= 1e-8 * spread(X)
    assert_in_fantope(parity.relaxed_projector_, 2)
    means = group_means(X, groups)
    difference = parity.relaxed_projector_ @ (means[1] - means[0])
    assert np.linalg.norm(difference) <= 1e-8 * spread(X)


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
def test_tolerance_is_used_and_respected(backend):
    X, groups = grouped_rows(2)
    pca = PCA(2).fit(X)
    strict = ParityPCA(2).fit(X, sensitive_features=groups)
    difference = np.subtract(*group_means(X, groups))
    kept = [strict.explained_variance_.sum()]
    for share in (0.1, 0.4, 0.7):
        tolerance = share * raw_gaps(pca.transform(X), groups)[0]
        parity = ConvexParityPCA(2, mean_tolerance=tolerance, backend=backend)
        parity.fit(X, sensitive_features=groups)
        P = parity.relaxed_projector_
        assert_in_fantope(P, 2)
        assert difference @ P @ difference == pytest.approx(tolerance**2, rel=1e-3)
        kept.append(np.trace(P @ np.cov(X.T)))
    kept.append(pca.explained_variance_.sum())
    assert (np.diff(kept) > 0).all()


@pytest.mark.parametrize("tolerance", [0.0, 0.5])
@pytest.mark.parametrize("k", [2, 3])
def test_bound_of_the_program_is_the_eigenvalue(k, tolerance):
    X, groups = grouped_rows(k)
    parity = ConvexParityPCA(2, mean_tolerance=tolerance, covariance_penalty=0.5)
    moments = GroupMoments.from_rows(X, groups)
    relaxation, space = parity._relaxation(moments, moments.total_covariance())
    inner, bound = relaxation.solve("clarabel")
    P = space @ inner @ space.T
    unit = max(np.linalg.norm(Q, 2) for Q in covariance_differences(X, groups))
    assert bound * unit == pytest.approx(relaxed_bound(P, X, groups), rel=1e-6)
    parity.fit(X, sensitive_features=groups)
    np.testing.assert_allclose(parity.relaxed_projector_, P, atol=1e-8)


def test_program_agrees_with_one_written_out_in_full():
    X, groups = grouped_rows(2, d=5)
    penalty, tolerance = 0.5, 0.5
    difference = np.subtract(*group_means(X, groups))
    (Q,) = covariance_differences(X, groups)
    phi = np.linalg.norm(Q, 2)
    P, t = cp.Variable((5, 5), symmetric=True), cp.Variable()
    conditions = [P >> 0, np.eye(5) - P >> 0, cp.trace(P) == 2]
    conditions.append(cp.quad_form(difference, P) <= tolerance**2)
    for sign in (1, -1):
        M = scipy.linalg.sqrtm(phi * np.eye(5) + sign * Q).real
        conditions.append(cp.sigma_max(P @ M) <= t)
    gain = cp.trace(np.cov(X.T, ddof=0) @ P) - penalty * cp.square(t)
    value = cp.Problem(cp.Maximize(gain), conditions).solve(solver="SCS", eps=1e-8)
    parity = ConvexParityPCA(2, mean_tolerance=tolerance, covariance_penalty=penalty)
    projected = parity.fit(X, sensitive_features=groups).relaxed_projector_
    found = np.trace(np.cov(X.T, ddof=0) @ projected)
    found -= penalty * relaxed_bound(projected, X, groups)
    assert found == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("k", [2, 3])
def test_a_higher_price_lowers_the_bound_and_the_gap(k):
    X, groups = grouped_rows(k, n=300)
    fitted = [
        ConvexParityPCA(2, covariance_penalty=price).fit(X, sensitive_features=groups)
        for price in (0.0, 0.1, 0.3, 1.0, 10.0)
    ]
    bounds = [relaxed_bound(parity.relaxed_projector_, X, groups) for parity in fitted]
    gaps = [relaxed_gap(parity, X, groups) for parity in fitted]
    variances = [np.trace(parity.relaxed_projector_ @ np.cov(X.T)) for parity in fitted]
    for values in (bounds, variances):
        assert (np.diff(values) <= 1e-6 * values[0]).all()
        assert values[-1] < 0.9 * values[0]
    # The gap has no price of its own, only together with how drawn out P is.
    assert (np.diff(gaps[:4]) < 0).all()
    assert gaps[4] < 0.5 * gaps[0]


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale_does_not_matter_for_the_program(backend, scale):
    X, groups = grouped_rows(2)
    options = {"covariance_penalty": 0.5, "backend": backend}
    plain = ConvexParityPCA(2, mean_tolerance=0.5, **options).fit(X, sensitive_features=groups)
    scaled = ConvexParityPCA(2, mean_tolerance=0.5 * scale, **options)
    scaled.fit(X * scale, sensitive_features=groups)
    np.testing.assert_allclose(scaled.relaxed_projector_, plain.relaxed_projector_, atol=1e-5)


def test_many_columns_go_to_scs(monkeypatch):
    solved = []
    solve = cp.Problem.solve
    monkeypatch.setattr(
        cp.Problem, "solve", lambda *args, **kw: solved.append(kw["solver"]) or solve(*args, **kw)
    )
    for d, penalty in [(20, 0.0), (61, 0.0), (31, 1.0)]:
        X, groups = grouped_rows(2, d=d, n=200)
        parity = ConvexParityPCA(2, mean_tolerance=1.0, covariance_penalty=penalty)
        assert_in_fantope(parity.fit(X, sensitive_features=groups).relaxed_projector_, 2)
    assert solved == ["CLARABEL", "SCS", "SCS"]


def test_all_dimensions_that_are_left_need_no_program():
    X, groups = grouped_rows(3)
    parity = ConvexParityPCA(covariance_penalty=1.0).fit(X, sensitive_features=groups)
    expected = ParityPCA().fit(X, sensitive_features=groups)
    assert parity.n_components_ == 4
    np.testing.assert_allclose(parity.relaxed_projector_, projector(expected), atol=1e-10)
    # With a tolerance, None leaves out what differs by more.
    means = group_means(X, groups)
    lengths = sorted(np.linalg.norm(means[i] - means[j]) for i in range(3) for j in range(i))
    for tolerance, r in [(0.5 * lengths[0], 4), (0.5 * (lengths[1] + lengths[2]), 5)]:
        parity = ConvexParityPCA(mean_tolerance=tolerance).fit(X, sensitive_features=groups)
        assert parity.n_components_ == r
    parity = ConvexParityPCA(mean_tolerance=1.01 * lengths[2]).fit(X, sensitive_features=groups)
    assert parity.n_components_ == 6


def test_equal_covariances_have_no_price():
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(40, 5)), (2, 1))
    groups = np.repeat([0, 1], 40)
    X[groups == 1] += 1.0
    priced = ConvexParityPCA(2, covariance_penalty=1e3).fit(X, sensitive_features=groups)
    plain = ParityPCA(2).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(priced.components_, plain.components_, atol=1e-9)


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
@pytest.mark.parametrize("r", [5, 6])
def test_tolerances_that_cannot_be_met(backend, r):
    X, groups = grouped_rows(3)
    with refused(ValueError, f"n_components={r}", "mean_tolerance=0.01"):
        ConvexParityPCA(r, mean_tolerance=0.01, backend=backend).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("failure", ["error", "status", "inaccurate"])
def test_a_solver_that_fails_is_said_in_a_sentence(failure, monkeypatch):
    solve = cp.Problem.solve

    def fail(self, **options):
        if failure == "error":
            raise cp.error.SolverError("no")
        if failure == "status":
            self._status = "user_limit"
            return
        solve(self, solver="SCS", max_iters=5)  # far from converged: cvxpy warns

    monkeypatch.setattr(cp.Problem, "solve", fail)
    X, groups = grouped_rows()
    with refused(RuntimeError, "'clarabel'", "not solve") as error:
        ConvexParityPCA(2, mean_tolerance=0.3).fit(X, sensitive_features=groups)
    words = {"error": "broke down", "status": "'user_limit'", "inaccurate": "violates a condition"}
    assert words[failure] in str(error.value)
    assert "\n" not in str(error.value)


# --- Within scikit-learn ------------------------------------------------------


def test_parameters_and_clone():
    assert ParityPCA(
        3, match="covariance", n_candidates=4, missing_labels="group"
    ).get_params() == {
        "n_components": 3,
        "match": "covariance",
        "n_candidates": 4,
        "whiten": False,
        "missing_labels": "group",
    }
    X, groups = grouped_rows()
    for estimator in ESTIMATORS:
        parity = estimator(3).fit(X, sensitive_features=groups)
        copy = clone(parity)
        assert copy.get_params() == parity.get_params() == estimator(3).get_params()
        assert not hasattr(copy, "mean_gap_")
        with refused(TypeError, "positional"):
            estimator(3, "mean")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pickles_names_and_frames(estimator):
    X, groups = grouped_rows()
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    parity = estimator(2).set_output(transform="pandas").fit(frame, sensitive_features=groups)
    again = pickle.loads(pickle.dumps(parity))
    names = [f"{estimator.__name__.lower()}{i}" for i in range(2)]
    assert list(parity.get_feature_names_out()) == names
    assert list(again.transform(frame).columns) == names
    np.testing.assert_array_equal(again.transform(frame), parity.transform(frame))
    with refused(ValueError, "feature names"):
        parity.transform(frame[list("zyxwvu")])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_routing_brings_the_groups_without_a_request(estimator):
    X, groups = grouped_rows()
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = Pipeline([("scale", StandardScaler()), ("parity", estimator(2))])
        reduced = pipe.fit(X, sensitive_features=groups).transform(X)
    alone = estimator(2).fit(StandardScaler().fit_transform(X), sensitive_features=groups)
    np.testing.assert_allclose(reduced, alone.transform(StandardScaler().fit_transform(X)))
    assert raw_gaps(reduced, groups)[0] < 1e-10


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_input_is_left_alone(estimator):
    X, groups = grouped_rows()
    for rows in (np.array(X, order="C"), np.array(X, order="F")):
        rows.setflags(write=False)
        estimator(2).fit(rows, sensitive_features=groups).transform(rows)
        np.testing.assert_array_equal(rows, X)
    kernel = X @ X.T
    kernel.setflags(write=False)
    KernelParityPCA(2, kernel="precomputed").fit(kernel, sensitive_features=groups).transform(
        kernel
    )
    np.testing.assert_array_equal(kernel, X @ X.T)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_missing_labels_and_intersections(estimator):
    X, groups = grouped_rows()
    labels = pd.DataFrame({"one": groups, "two": np.tile(["x", "y"], 60)})
    parity = estimator(2).fit(X, sensitive_features=labels)
    joined = 2 * groups + np.tile([0, 1], 60)
    assert raw_gaps(parity.transform(X), joined)[0] < 1e-10
    missing = np.where(np.arange(120) < 10, np.nan, groups)
    with refused(ValueError, "10 missing", "120 rows"):
        estimator(2).fit(X, sensitive_features=missing)
    parity = estimator(2, missing_labels="group").fit(X, sensitive_features=missing)
    joined = np.where(np.isnan(missing), 2, groups)
    assert raw_gaps(parity.transform(X), joined)[0] < 1e-10


# --- Bad input ----------------------------------------------------------------


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("estimator", "options", "words"),
    [
        *[
            (estimator, {"n_components": value}, "n_components")
            for estimator in LINEAR
            for value in (0, -1, 1.0, 0.5, True, "two", [2])
        ],
        (ParityPCA, {"match": "all"}, "match 'mean' 'covariance' 'all'"),
        (ParityPCA, {"n_candidates": 0, "match": "covariance"}, "n_candidates 0"),
        (ParityPCA, {"n_candidates": 2.5, "match": "covariance"}, "n_candidates 2.5"),
        (ParityPCA, {"n_candidates": 3}, "n_candidates match='covariance'"),
        (
            ParityPCA,
            {"n_components": 3, "n_candidates": 2, "match": "covariance"},
            "n_candidates=2 n_components=3",
        ),
        *[(estimator, {"n_components": 7}, "n_components=7 n_features=6") for estimator in LINEAR],
        *[
            (estimator, {"missing_labels": "no"}, "missing_labels 'error'")
            for estimator in ESTIMATORS
        ],
        *[
            (
                KernelParityPCA,
                {"n_components": value},
                "n_components",
            )
            for value in (None, 0, 1.5, True)
        ],
        (KernelParityPCA, {"kernel": "magic"}, "kernel 'linear', 'magic'"),
        (KernelParityPCA, {"gamma": -1.0}, "gamma -1"),
        (KernelParityPCA, {"gamma": "auto"}, "gamma"),
        (KernelParityPCA, {"degree": -1}, "degree -1"),
        (KernelParityPCA, {"coef0": np.inf}, "coef0 inf"),
        (KernelParityPCA, {"coef0": np.nan}, "coef0 nan"),
        (KernelParityPCA, {"kernel_params": 3}, "kernel_params 3"),
        (KernelParityPCA, {"kernel": "precomputed"}, "square matrix (120, 6)"),
        *[
            (ConvexParityPCA, {"mean_tolerance": value}, "mean_tolerance")
            for value in (-1e-9, np.nan, "small", None)
        ],
        *[
            (
                ConvexParityPCA,
                {"covariance_penalty": value},
                "covariance_penalty",
            )
            for value in (-1.0, np.nan, np.inf, "high")
        ],
        (ConvexParityPCA, {"backend": "mosek"}, "backend 'auto' 'clarabel' 'scs'"),
    ],
)
def test_wrong_parameters_are_refused_before_any_work(estimator, options, words):
    X, groups = grouped_rows()
    with refused(ValueError, *words.split()) as error:
        estimator(**options).fit(X, sensitive_features=groups)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("estimator", LINEAR)
def test_more_components_than_are_left(estimator):
    X, groups = grouped_rows(3)
    with refused(ValueError, "n_components=5", "left, 4:", "6 columns", "3 groups", "2 dimensions"):
        estimator(5).fit(X, sensitive_features=groups)
    assert estimator(4).fit(X, sensitive_features=groups).n_components_ == 4
    with refused(ValueError, "n_components=1", "left, 0"):
        estimator().fit(X[:, :1], sensitive_features=groups)


def test_more_candidates_than_are_left():
    X, groups = grouped_rows(3)
    with refused(ValueError, "n_candidates=5", "mean, 4"):
        ParityPCA(2, match="covariance", n_candidates=5).fit(X, sensitive_features=groups)
    parity = ParityPCA(match="covariance", n_candidates=3).fit(X, sensitive_features=groups)
    assert parity.n_components_ == 3


def test_no_dimension_means_the_rank_that_is_left():
    X, groups = grouped_rows(3)
    X[:, 4] = X[:, 0] - X[:, 1]
    X[:, 5] = 3.0
    for scale in (1e-8, 1.0, 1e8):
        assert ParityPCA().fit(X * scale, sensitive_features=groups).n_components_ == 2
    points = group_means(X, groups)[groups]  # nothing but the differences between groups
    assert ParityPCA().fit(points, sensitive_features=groups).n_components_ == 1


def test_kernels_that_are_none():
    X, groups = grouped_rows()
    precomputed = KernelParityPCA(2, kernel="precomputed")
    with refused(ValueError, "positive semidefinite", "eigenvalue"):
        precomputed.fit(-rbf_kernel(X), sensitive_features=groups)
    with refused(ValueError, "not symmetric"):
        precomputed.fit(np.triu(rbf_kernel(X)), sensitive_features=groups)
    for offset in (0.0, 1e3):  # where centring leaves rounding
        with refused(ValueError, "left, 0", "rank 0"):
            KernelParityPCA(1, kernel="linear").fit(np.full((9, 3), offset + 0.1))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("value", "words"),
    [(np.nan, "NaN"), (np.inf, "infinity"), (1e200, "squared")],
)
def test_values_that_cannot_be_used(estimator, value, words):
    X, groups = grouped_rows()
    X[3, 1] = value
    options = {"kernel": "linear"} if estimator is KernelParityPCA else {}
    with refused(ValueError, *words.split()):
        estimator(2, **options).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_nothing_works_before_fit_and_the_kernel_has_no_way_back(estimator):
    X, _ = grouped_rows()
    with pytest.raises(NotFittedError):
        estimator(2).transform(X)
    assert hasattr(estimator, "inverse_transform") == (estimator is not KernelParityPCA)


def test_a_kernel_matrix_that_does_not_fit_is_refused_before_any_work():
    rows = np.zeros((3_000_000, 1))
    with refused(MemoryError, "3,000,000 rows", "sample"):
        KernelParityPCA(1).fit(rows, sensitive_features=np.arange(len(rows)) % 2)

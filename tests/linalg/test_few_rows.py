"""Groups of few rows in many columns, which are kept as these: the same numbers as of
scatters."""

import pickle

import numpy as np
import pytest
import scipy.sparse

from fairpca import ExactSolver, FairPCA, GroupMoments, Problem
from fairpca._linalg.device import FactorStack, diagonals, padded_scatters, scatter_matrices
from fairpca.folds import row_folds
from fairpca.solvers import _space as space

D, SIZES = 400, (30, 45, 3, 600)


def rows(sparse=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((sum(SIZES), D)) * np.arange(1, D + 1) ** -0.5
    if sparse:
        X *= rng.random(X.shape) < 0.05
    X[:30, 7] = 0.1  # constant in the first group
    groups = rng.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
    X[np.flatnonzero(groups == 0), 8] = 0.1
    weights = rng.integers(0, 3, len(X)).astype(float)
    weights[groups == 2] = 2.0
    return X, groups, weights


def as_arrays(moments):
    arrays = GroupMoments(
        moments.labels, moments.count, moments.weight, moments.mean, np.array(moments.scatter)
    )
    assert isinstance(arrays.scatter, np.ndarray)
    return arrays


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_each_group(sparse, weighted):
    X, groups, weights = rows(sparse)
    given = scipy.sparse.csr_array(X) if sparse else X
    w = weights if weighted else np.ones(len(X))
    moments = GroupMoments.from_rows(given, groups, sample_weight=weights if weighted else None)
    assert isinstance(moments.scatter, FactorStack)
    for i in range(len(SIZES)):
        some, of = X[groups == i], w[groups == i]
        mean = of @ some / of.sum()
        scatter = ((some - mean) * of[:, None]).T @ (some - mean)
        size = np.trace(scatter)
        np.testing.assert_allclose(moments.mean[i], mean, atol=1e-13)
        np.testing.assert_allclose(moments.scatter[i], scatter, atol=1e-13 * size)
        np.testing.assert_allclose(np.asarray(moments.scatter)[i], scatter, atol=1e-13 * size)
    assert moments.count.tolist() == [int((w[groups == i] > 0).sum()) for i in range(len(SIZES))]
    assert moments.mean[0, 8] == 0.1
    assert not moments.scatter[0][8].any()


def test_what_is_done_with_the_moments_is_the_same():
    X, groups, _ = rows()
    moments = GroupMoments.from_rows(X, groups, folds=True)
    arrays, d = as_arrays(moments), moments.n_features
    pairs = [
        (moments.without_folds().scatter, arrays.without_folds().scatter),
        (moments.standardized().scatter, arrays.standardized().scatter),
        ((moments + moments).scatter, (arrays + arrays).scatter),
        (padded_scatters(moments.scatter, 3), padded_scatters(arrays.scatter, 3)),
        (diagonals(moments.scatter), diagonals(arrays.scatter)),
        (moments.total_covariance(), arrays.total_covariance()),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-12 * len(X))
    assert moments.scatter.shape == (len(moments.labels), d, d)
    assert moments.scatter.nbytes < arrays.scatter.nbytes
    again = pickle.loads(pickle.dumps(moments))
    assert type(again.scatter) is np.ndarray  # no file has the rows
    missing = np.where(np.arange(D) == 3, np.nan, X[:20])
    assert not GroupMoments.from_groups(missing, moments_groups()).is_finite


def moments_groups():
    from fairpca.groups import encode_groups

    return encode_groups(np.arange(20) % 2, 20, "error")


@pytest.mark.parametrize("r", [2, 12])
def test_own_subspaces_and_solutions(r):
    X, groups, _ = rows()
    moments = GroupMoments.from_rows(X, groups)
    few, whole = (Problem(one, r) for one in (moments, as_arrays(moments)))
    np.testing.assert_allclose(few.own_gains, whole.own_gains, rtol=1e-12)
    for i, (one, other) in enumerate(zip(few.own_subspaces, whole.own_subspaces, strict=True)):
        np.testing.assert_allclose(one.T @ one, np.eye(r), atol=1e-12)
        kept = [float(np.einsum("ia,ij,ja", U, whole.matrices[i], U)) for U in (one, other)]
        assert kept[0] == pytest.approx(kept[1], rel=1e-10)
    for weights in (np.eye(4)[1], [0.3, 0.7, 0.0, 0.0], [0.3, -0.2, 0.1, 0.8], np.zeros(4)):
        weights = np.array(weights)
        np.testing.assert_allclose(
            few.weighted_sum(weights), whole.weighted_sum(weights), atol=1e-11
        )
        block = few.own_subspaces[0]
        image = few.group_matrices.weighted_sum(weights).image(block)
        np.testing.assert_allclose(image, whole.weighted_sum(weights) @ block, atol=1e-11)
    found, expected = (ExactSolver().solve(one).certificate for one in (few, whole))
    assert found.status == expected.status
    assert found.value == pytest.approx(expected.value, rel=1e-9)


def test_default_fit_is_that_of_the_scatters():
    X, groups, _ = rows()
    cells = GroupMoments.from_rows(X, groups, folds=True)
    few, whole = (FairPCA(4).fit_moments(one) for one in (cells, as_arrays(cells)))
    assert few.certificate_.status == whole.certificate_.status == "optimal"
    assert few.certificate_.value == pytest.approx(whole.certificate_.value, rel=1e-6)
    held_out = [fair.group_table_.held_out.loss for fair in (few, whole)]
    np.testing.assert_allclose(*held_out, rtol=1e-4)


def test_folds_of_sparse_rows():
    X = rows(sparse=True)[0]
    X[4], X[5] = 0.0, np.where(np.arange(D) == 9, 2.5, 0.0)
    for made in (scipy.sparse.csr_array, scipy.sparse.csr_matrix):
        np.testing.assert_array_equal(row_folds(made(X)), row_folds(X))


@pytest.mark.parametrize("criterion", ["minmax", "equal"])
def test_a_search_that_begins_with_some_of_many_groups(monkeypatch, criterion):
    rng = np.random.default_rng(3)
    d, k = 260, 30
    X = rng.standard_normal((40 * k, d)) * np.arange(1, d + 1) ** -0.6
    groups = np.arange(len(X)) % k
    for i in range(k):
        X[groups == i] *= np.exp(0.3 * rng.standard_normal(d))
    moments = GroupMoments.from_rows(X, groups)
    solved = []
    for limit in (120, 10**9):
        monkeypatch.setattr(space, "WHOLE_LIMIT", limit)
        problem = Problem(moments, 5, criterion=criterion)
        solved.append(ExactSolver(n_starts=5).solve(problem).certificate)
    assert solved[0].status == solved[1].status
    size = abs(solved[1].value)
    assert solved[0].value == pytest.approx(solved[1].value, abs=1e-4 * size)
    assert solved[0].lower_bound == pytest.approx(solved[1].lower_bound, abs=1e-4 * size)


@pytest.mark.parametrize("weights", [(1.0, 2.0, 0.5, 1.5), (-1.0, 2.0, 0.5, -0.5), (1, -2, 0, 0)])
@pytest.mark.parametrize("copies", [1, 6])  # six times the rows are too many to be kept apart
def test_weighted_sums_are_those_of_the_scatters(weights, copies):
    X, groups, _ = rows()
    moments = GroupMoments.from_rows(X, groups)
    parts = list(moments.scatter.parts) * copies
    offsets, weight = np.tile(moments.offsets, (copies, 1)), np.tile(moments.weight, copies)
    sums = scatter_matrices(FactorStack(parts), offsets, weight)
    weights = np.tile(np.array(weights, dtype=float), copies)
    expected = np.einsum(
        "k,kij->ij",
        weights,
        [
            np.array(FactorStack([part])[0]) / size + np.outer(offset, offset)
            for part, size, offset in zip(parts, weight, offsets, strict=True)
        ],
    )
    size = np.abs(expected).max()
    assert np.abs(sums.dense(weights) - expected).max() <= 1e-13 * size
    one = sums.weighted_sum(weights)
    block = np.random.default_rng(1).standard_normal((D, 5))
    assert np.abs(one.image(block) - expected @ block).max() <= 1e-12 * size
    largest = np.linalg.eigvalsh(expected)[-1]
    nothing = np.zeros((D, 1)), np.zeros(1)
    assert sums.weighted_sum(weights).disproof(*nothing, 1.01 * largest + 1e-9) is None
    direction = one.disproof(*nothing, 0.99 * largest)
    assert direction is not None
    assert float((direction.T @ expected @ direction).item()) > 0.99 * largest

"""VR-PCA: the subspaces that it finds, and fair PCA with disparities from these."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from fairpca import ExactSolver, GroupMoments, Problem
from studies.vrpca import VRPCA, measured_from

from problems import random_basis
from texts import refused


def separated_rows(rng, n=600, d=8, k=2, r=3):
    """Rows of k groups, each with r directions that carry most of its variance."""
    groups = rng.integers(0, k, n)
    X = rng.standard_normal((n, d))
    sizes = np.r_[np.linspace(5, 3, r), np.linspace(1.0, 0.3, d - r)]
    for group in range(k):
        some = groups == group
        X[some] = X[some] * sizes @ random_basis(rng, d, d).T + rng.standard_normal(d)
    return X, groups


def leading(matrix, r):
    return np.linalg.eigh(matrix)[1][:, -r:]


def largest_angle(first, second):
    return np.linalg.norm(second - first @ (first.T @ second), 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 3])
def test_subspaces_are_those_of_the_eigenvectors(weighted, r):
    rng = np.random.default_rng(r)
    X, groups = separated_rows(rng, r=r)
    weights = rng.uniform(0.2, 2, len(X)) if weighted else None
    centers = rng.standard_normal((2, 8)) * 0.2
    found = VRPCA(tol=1e-7).subspaces(X, groups, centers, r, weights)
    for code, basis in enumerate(found):
        rows = X[groups == code] - centers[code]
        mass = np.ones(len(rows)) if weights is None else weights[groups == code]
        assert_allclose(basis.T @ basis, np.eye(r), atol=1e-12)
        assert largest_angle(basis, leading((rows.T * mass) @ rows, r)) <= 1e-5


def test_sparse_rows_give_the_same():
    rng = np.random.default_rng(2)
    X, groups = separated_rows(rng)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    centers = np.array([X[groups == code].mean(axis=0) for code in (0, 1)])
    dense = VRPCA().subspaces(X, groups, centers, 3)
    sparse = VRPCA().subspaces(scipy.sparse.csr_array(X), groups, centers, 3)
    for first, second in zip(dense, sparse, strict=True):
        assert_allclose(first, second, atol=1e-9)


def test_other_rows_are_left_out_and_seeds_repeat():
    rng = np.random.default_rng(3)
    X, groups = separated_rows(rng)
    centers = np.zeros((2, 8))
    codes = np.where(rng.random(len(X)) < 0.2, -1, groups)
    kept = codes >= 0
    some = VRPCA(random_state=4).subspaces(X, codes, centers, 2)
    same = VRPCA(random_state=4).subspaces(X[kept], codes[kept], centers, 2)
    assert all(np.array_equal(a, b) for a, b in zip(some, same, strict=True))
    other = VRPCA(random_state=5).subspaces(X, codes, centers, 2)
    assert not np.array_equal(some[0], other[0])


def test_batches_of_one_row_and_steps_of_ones_own():
    rng = np.random.default_rng(4)
    X, groups = separated_rows(rng, n=200)
    size = (X**2).sum(axis=1).mean()
    for choice in ({"batch_size": 1}, {"step_size": 0.5 / size}):
        (basis,) = VRPCA(**choice).subspaces(X, 0 * groups, np.zeros((1, 8)), 1)
        assert largest_angle(basis, leading(X.T @ X, 1)) <= 1e-4


def test_rows_without_variance_and_fewer_rows_than_dimensions():
    flat = np.ones((5, 3))
    (basis,) = VRPCA().subspaces(flat, np.zeros(5, int), np.ones((1, 3)), 2)
    assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)
    rows = np.array([[3.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])
    (basis,) = VRPCA().subspaces(rows, np.zeros(2, int), np.zeros((1, 4)), 3)
    assert_allclose(rows @ basis @ basis.T, rows, atol=1e-5)


@pytest.mark.parametrize("criterion", ["equal", "minmax"])
def test_the_recipe_finds_what_is_found_with_eigenvalues(criterion):
    X, groups = separated_rows(np.random.default_rng(5))
    problem = Problem(GroupMoments.from_rows(X, groups), 3, criterion=criterion)
    centers = np.tile(problem.moments.total_mean, (2, 1))
    own = VRPCA(tol=1e-9).subspaces(X, groups, centers, 3)
    exact, found = (ExactSolver().solve(p) for p in (problem, measured_from(problem, own)))
    size = exact.group_losses.max()
    assert_allclose(found.group_losses, exact.group_losses, atol=1e-6 * size)
    assert_allclose(found.certificate.measures, exact.certificate.measures, atol=1e-6 * size)
    assert found.certificate.status == "optimal"


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"tol": -1.0}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"step_size": 0.0}, "step_size"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_wrong_choices_are_refused(choice, words):
    with refused(ValueError, *words.split()):
        VRPCA(**choice)

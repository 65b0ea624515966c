"""Eigenpairs of large matrices, paths between subspaces, signs."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from fairpca._linalg.backends import NUMPY
from fairpca._linalg.dense import (
    DenseMatrix,
    Geodesic,
    fix_signs,
    leading_eigenpairs,
)
from fairpca._linalg.krylov import leading_sum_bound

from problems import random_basis

pytestmark = pytest.mark.contract  # LAPACK as SciPy wraps it


def spectrum_matrix(rng, spectrum):
    turn = np.linalg.qr(rng.standard_normal((len(spectrum), len(spectrum))))[0]
    matrix = (turn * spectrum) @ turn.T
    return (matrix + matrix.T) / 2


@pytest.mark.parametrize(
    "spectrum",
    [
        1.0 / np.arange(1, 501),
        np.concatenate([np.full(7, 3.0), np.linspace(2, 0, 493)]),
        np.concatenate([[5.0, 4.0], np.full(8, 3.0), np.full(490, 1.0)]),
        np.ones(500),
        np.linspace(1, -3, 500),
        np.full(500, -1.0) + 0.5 ** np.arange(500),
        np.zeros(500),
    ],
    ids=["falling", "tied on top", "tied inside", "identity", "negative", "flat", "zero"],
)
@pytest.mark.parametrize("r", [1, 5, 12, 200])
def test_leading_eigenpairs_of_large_matrices(spectrum, r):
    matrix = spectrum_matrix(np.random.default_rng(0), spectrum)
    values, vectors = leading_eigenpairs(matrix, r)
    np.testing.assert_allclose(values, np.sort(spectrum)[::-1][:r], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(r), atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-8)


@pytest.mark.parametrize("quality", [0.0, 1e-6, 1.0])
def test_starting_vectors_do_not_change_the_result(quality):
    rng = np.random.default_rng(1)
    spectrum = 1.0 / np.arange(1, 401)
    matrix = spectrum_matrix(rng, spectrum)
    start = leading_eigenpairs(matrix, 6)[1]
    start = np.linalg.qr((1 - quality) * start + quality * rng.standard_normal((400, 6)))[0]
    values, _ = leading_eigenpairs(matrix, 6, start)
    np.testing.assert_allclose(values, spectrum[:6], atol=1e-12)


def test_starting_vectors_from_another_eigenspace_do_not_mislead():
    rng = np.random.default_rng(2)
    spectrum = 1.0 / np.arange(1, 401)
    matrix = spectrum_matrix(rng, spectrum)
    wrong = np.linalg.eigh(matrix)[1][:, :6]  # exact eigenvectors, of the smallest eigenvalues
    values, _ = leading_eigenpairs(matrix, 6, wrong)
    np.testing.assert_allclose(values, spectrum[:6], atol=1e-12)


def test_a_complement_is_orthonormal():
    rng = np.random.default_rng(3)
    basis, rest = NUMPY.complement(rng.standard_normal((9, 4)))
    whole = np.hstack([basis, rest])
    np.testing.assert_allclose(whole.T @ whole, np.eye(9), atol=1e-13)


@pytest.mark.parametrize("r", [1, 3, 6])
def test_a_geodesic_joins_its_ends_by_orthonormal_bases(r):
    rng = np.random.default_rng(r)
    start, end = random_basis(rng, 8, r), random_basis(rng, 8, r)
    path = Geodesic(start, end)
    for t in (0.0, 0.3, 0.9, 1.0):
        np.testing.assert_allclose(path(t).T @ path(t), np.eye(r), atol=1e-12)
    assert subspace_angles(path(0.0), start).max() < 1e-7
    assert subspace_angles(path(1.0), end).max() < 1e-7
    whole, part = subspace_angles(start, end), subspace_angles(start, path(0.5))
    np.testing.assert_allclose(part, whole / 2, atol=1e-7)


def test_a_geodesic_between_orthogonal_or_equal_subspaces():
    eye = np.eye(4)
    across = Geodesic(eye[:, :2], eye[:, 2:])
    np.testing.assert_allclose(across(0.5).T @ across(0.5), np.eye(2), atol=1e-14)
    still = Geodesic(eye[:, :2], eye[:, [1, 0]])
    assert subspace_angles(still(0.5), eye[:, :2]).max() < 1e-12


@pytest.mark.parametrize("first", [1, 3, 200])
def test_exact_eigenvectors_of_smaller_eigenvalues_do_not_mislead(first):
    rng = np.random.default_rng(5)
    for spectrum in (
        1.0 / np.arange(1, 401),
        np.concatenate([[7.0, 5, 5, 5, 5, 5], np.zeros(394)]),
    ):
        matrix = spectrum_matrix(rng, spectrum)
        wrong = np.linalg.eigh(matrix)[1][:, ::-1][:, first : first + 4]
        values, _ = leading_eigenpairs(matrix, 4, wrong)
        np.testing.assert_allclose(values, spectrum[:4], atol=1e-12)
        bound = leading_sum_bound(DenseMatrix(matrix), 4, wrong)
        assert 0 <= bound - np.linalg.eigvalsh(matrix)[-4:].sum() + 1e-13 <= 1e-10


def test_sums_of_leading_eigenvalues_are_never_too_small():
    rng = np.random.default_rng(6)
    for spectrum in (np.ones(400), np.linspace(1, 0, 400), rng.standard_normal(400) - 5):
        matrix = spectrum_matrix(rng, np.sort(spectrum)[::-1])
        exact = np.linalg.eigvalsh(matrix)[-7:].sum()
        assert -1e-12 <= leading_sum_bound(DenseMatrix(matrix), 7) - exact <= 1e-9


def test_the_sign_of_a_column_does_not_depend_on_the_rounding_of_equal_entries():
    # As those of the two 0/1 columns of a category with two values.
    column = np.array([0.1, 0.7, -0.7, 0.2])
    for change in (-1e-15, 0.0, 1e-15):
        for sign in (-1.0, 1.0):
            turned = fix_signs(sign * (column + np.array([0.0, change, 0.0, 0.0]))[:, None])
            assert turned[1, 0] > 0.0
    # Otherwise the largest is positive.
    assert fix_signs(np.array([[0.6], [-0.8]])).ravel().tolist() == [-0.6, 0.8]


# --- Sums of the products of columns --------------------------------------------

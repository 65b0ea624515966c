"""Linear algebra that several parts share: leading eigenpairs, complements, paths, signs."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, eigsh

Array = NDArray[np.float64]

_DENSE_LIMIT = 300
"""Up to this size a full eigendecomposition is as fast as an iterative one."""


def eigh_descending(matrix: Array) -> tuple[Array, Array]:
    """Return all eigenvalues, largest first, and their eigenvectors as columns."""
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


def leading_eigenpairs(matrix: Array, r: int) -> tuple[Array, Array]:
    """Return the r largest eigenvalues, largest first, and their eigenvectors.

    Large matrices go to Lanczos iteration, whose result is only used when a Cholesky factorisation
    proves that it has missed no larger eigenvalue (it can, when eigenvalues repeat).
    """
    d = len(matrix)
    if d <= _DENSE_LIMIT:
        values, vectors = eigh_descending(matrix)
        return values[:r], vectors[:, :r]
    if r <= d // 10:
        try:
            values, vectors = eigsh(matrix, r, which="LA", v0=_start_vector(d))
        except ArpackError:
            pass
        else:
            values, vectors = values[::-1], _orthonormal(vectors[:, ::-1])
            if _nothing_above(matrix, values, vectors):
                return values, vectors
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[d - r, d - 1])
    return values[::-1], vectors[:, ::-1]


def complement(basis: Array) -> tuple[Array, Array]:
    """Return an orthonormal basis of the span of the columns, and one of what is orthogonal."""
    full, _ = np.linalg.qr(basis, mode="complete")
    r = basis.shape[1]
    return full[:, :r], full[:, r:]


def join_spans(*blocks: Array) -> Array:
    """Return an orthonormal basis of the sum of the spans of the blocks' columns."""
    columns: Array = np.hstack(blocks)
    q, triangle, _ = scipy.linalg.qr(columns, mode="economic", pivoting=True)
    size = np.abs(np.diag(triangle))
    return np.asarray(q[:, size > 1e-12 * size[0]], dtype=np.float64)


class Geodesic:
    """The shortest path between two subspaces of equal dimension: at 0 the first, at 1 the last."""

    def __init__(self, start: Array, end: Array) -> None:
        left, cosines, right = np.linalg.svd(start.T @ end)
        self._start = start @ left
        residual = end @ right.T - self._start * cosines
        sines = np.linalg.norm(residual, axis=0)
        self._angles = np.arctan2(sines, cosines)
        self._normal = residual / np.where(sines > 0, sines, 1.0)

    def __call__(self, t: float) -> Array:
        """Return an orthonormal basis of the subspace at t."""
        turn = t * self._angles
        basis: Array = self._start * np.cos(turn) + self._normal * np.sin(turn)
        return basis


def rotate_to_principal_axes(basis: Array, matrix: Array) -> tuple[Array, Array]:
    """Rotate a basis inside its span so that its columns carry falling, uncorrelated variance.

    Returns the variances and the basis. Signs are fixed as scikit-learn's PCA fixes them: the
    entry of largest magnitude in each component is positive.
    """
    values, rotation = eigh_descending(basis.T @ matrix @ basis)
    rotated = basis @ rotation
    largest = np.abs(rotated).argmax(axis=0)
    signs = np.sign(rotated[largest, np.arange(rotated.shape[1])])
    return np.maximum(values, 0.0), rotated * np.where(signs == 0, 1.0, signs)


def _start_vector(d: int) -> Array:
    # Fixed, so that results repeat; random, so that it is orthogonal to no eigenvector.
    return np.random.default_rng(0).standard_normal(d)


def _orthonormal(vectors: Array) -> Array:
    return np.linalg.qr(vectors)[0]


def _nothing_above(matrix: Array, values: Array, vectors: Array) -> bool:
    """Prove that the matrix, freed of these eigenpairs, has no eigenvalue above the last one."""
    margin = 1e-12 * max(np.abs(values).max(), float(np.abs(np.diag(matrix)).max()))
    # What has been found is moved down to the level of the smallest value found.
    deflated = (vectors * (values - values[-1])) @ vectors.T - matrix
    deflated[np.diag_indices_from(deflated)] += values[-1] + margin
    try:
        scipy.linalg.cholesky(deflated, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True

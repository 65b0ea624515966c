"""Linear algebra that several parts share: leading eigenpairs, complements, paths, signs."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.optimize import nnls

from fairpca._linalg.krylov import fits, leading_pairs, proven_pairs
from fairpca._linalg.operators import PlainMatrix
from fairpca._linalg.types import Array

_DENSE_LIMIT = 300
"""Up to this size a full eigendecomposition is as fast as an iterative one."""

_LONG_VECTORS = 2000
"""Length from which the min-norm point is found from products, which halves its digits."""


def eigh_descending(matrix: Array) -> tuple[Array, Array]:
    """Return all eigenvalues, largest first, and their eigenvectors as columns."""
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


def leading_eigenpairs(
    matrix: Array, r: int, start: Array | None = None, *, rest: bool = False
) -> tuple[Array, Array]:
    """Return the r largest eigenvalues, largest first, and their eigenvectors.

    With `rest`, all of them come back where they had to be computed anyway.

    Large matrices go to an iteration, which can begin with vectors that are thought to be nearly
    right. It takes random ones beside them, so it finds other eigenvalues as well.
    """
    d = len(matrix)
    if d <= _DENSE_LIMIT:
        values, vectors = eigh_descending(matrix)
        return (values, vectors) if rest else (values[:r], vectors[:, :r])
    if is_large(d, r):
        found = leading_pairs(PlainMatrix(matrix), r, start, exact_vectors=True)
        if found is not None:
            return found.values, found.vectors
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[d - r, d - 1])
    return values[::-1], vectors[:, ::-1]


def leading_sum_bound(matrix: Array, r: int, start: Array | None = None) -> float:
    """Return the sum of the r largest eigenvalues, or a little more, but not less.

    An iteration approaches eigenvalues from below and could miss some, so its result is proven:
    see `proven_pairs`. Starting vectors, right or wrong, only change how long it takes.
    """
    if is_large(len(matrix), r):
        bound = proven_pairs(PlainMatrix(matrix), r, start).bound
        assert bound is not None
        return bound
    return float(np.linalg.eigvalsh(matrix)[-r:].sum())


def is_large(d: int, r: int) -> bool:
    """Whether r eigenpairs of a matrix of this size are found by iteration, not all at once."""
    return d > _DENSE_LIMIT and fits(d, r)


def complement(basis: Array) -> tuple[Array, Array]:
    """Return an orthonormal basis of the span of the columns, and one of what is orthogonal."""
    full, _ = np.linalg.qr(basis, mode="complete")
    r = basis.shape[1]
    return full[:, :r], full[:, r:]


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


def polar_factor(matrix: Array) -> Array:
    """The nearest matrix with orthonormal columns."""
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    factor: Array = left @ right
    return factor


def qr_factor(matrix: Array) -> Array:
    """Orthonormal columns by QR, with the signs that make it continuous."""
    columns, triangle = np.linalg.qr(matrix)
    signs = np.sign(np.diag(triangle))
    factor: Array = columns * np.where(signs == 0, 1.0, signs)
    return factor


def min_norm_point(vectors: Array, divisors: Array | None = None) -> Array:
    """Weights on the simplex whose combination of the rows has the least norm.

    With `divisors`, one for each row, the rows are those of ``vectors / divisors``.

    Scaled to sum to one, the non-negative x that brings ``(V^T x, sum x)`` nearest to ``(0, 1)``
    is exactly that point (Lawson and Hanson), so a solver for non-negative least squares finds it.
    """
    m, n = vectors.shape
    divisors = np.ones(m) if divisors is None else divisors
    if m == 1:
        return np.ones(1)
    if m == 2:
        first, second = vectors[0] / divisors[0], vectors[1] / divisors[1]
        difference = first - second
        square = float(difference @ difference)
        share = -float(second @ difference) / square if square > 0 else 0.5
        share = min(max(share, 0.0), 1.0)
        return np.array([share, 1.0 - share])
    if n > _LONG_VECTORS:
        # A factor of the products has the same columns but for a rotation, and is much shorter.
        values, turn = np.linalg.eigh(vectors @ vectors.T / np.outer(divisors, divisors))
        rows: Array = (np.sqrt(np.maximum(values, 0.0)) * turn).T
    else:
        rows = vectors.T / divisors
    scale = float(np.abs(rows).max())
    system = np.ones((len(rows) + 1, m))
    np.divide(rows, scale if scale > 0 else 1.0, out=system[:-1])
    target = np.zeros(len(system))
    target[-1] = 1.0
    found = nnls(system, target)[0]
    weights: Array = found / found.sum()
    return weights


def fix_signs(basis: Array) -> Array:
    """Turn each column so that its entry of largest magnitude is positive."""
    largest = np.abs(basis).argmax(axis=0)
    signs = np.sign(basis[largest, np.arange(basis.shape[1])])
    turned: Array = basis * np.where(signs == 0, 1.0, signs)
    return turned

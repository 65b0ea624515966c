"""Linear algebra that several parts share: leading eigenpairs, complements, paths, signs."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import nnls

Array = NDArray[np.float64]

_DENSE_LIMIT = 300
"""Up to this size a full eigendecomposition is as fast as an iterative one."""

_LONG_VECTORS = 2000
"""Length from which the min-norm point is found from products, which halves its digits."""

_EXTRA_VECTORS, _KRYLOV_BLOCKS, _KRYLOV_RESTARTS = 6, 8, 25
_KRYLOV_RESIDUAL = 1e-9
"""Relative residual; the error of the eigenvalues' sum is of the order of its square."""


def eigh_descending(matrix: Array) -> tuple[Array, Array]:
    """Return all eigenvalues, largest first, and their eigenvectors as columns."""
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


def leading_eigenpairs(
    matrix: Array, r: int, start: Array | None = None, *, rest: bool = False
) -> tuple[Array, Array]:
    """Return the r largest eigenvalues, largest first, and their eigenvectors.

    With `rest`, all of them come back where they had to be computed anyway.

    Large matrices go to a block Krylov iteration, which can begin with vectors that are thought to
    be nearly right. Its block holds more than r vectors, random ones among them, so it finds
    eigenvalues that repeat, and others than those of the starting vectors.
    """
    d = len(matrix)
    if d <= _DENSE_LIMIT:
        values, vectors = eigh_descending(matrix)
        return (values, vectors) if rest else (values[:r], vectors[:, :r])
    width = r + _EXTRA_VECTORS
    if width * _KRYLOV_BLOCKS <= d // 3:
        found = _block_krylov(matrix, r, width, start)
        if found is not None:
            return found
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[d - r, d - 1])
    return values[::-1], vectors[:, ::-1]


def leading_sum_bound(matrix: Array, r: int, start: Array | None = None) -> float:
    """Return the sum of the r largest eigenvalues, or a little more, but not less.

    An iteration approaches eigenvalues from below and could miss some, so its result is proven:
    see `_none_above`. Starting vectors, right or wrong, only change how long it takes.
    """
    d = len(matrix)
    width = r + _EXTRA_VECTORS
    if d > _DENSE_LIMIT and width * _KRYLOV_BLOCKS <= d // 3:
        for vectors in (start, None):
            found = _block_krylov(matrix, r, width, vectors, trust_start=True)
            if found is None:
                break
            values, leading = found
            margin = 1e-12 * max(abs(values[0]), float(np.abs(np.diag(matrix)).max()))
            if _none_above(matrix, values, leading, values[-1] + margin):
                return float(values.sum() + r * margin)
    return float(np.linalg.eigvalsh(matrix)[-r:].sum())


def complement(basis: Array) -> tuple[Array, Array]:
    """Return an orthonormal basis of the span of the columns, and one of what is orthogonal."""
    full, _ = np.linalg.qr(basis, mode="complete")
    r = basis.shape[1]
    return full[:, :r], full[:, r:]


def extend_span(basis: Array, vectors: Array) -> Array:
    """Return orthonormal columns that, with those of the basis, span the vectors as well."""
    rest = vectors
    for _ in range(2):  # twice is enough for orthogonality to rounding
        rest = rest - basis @ (basis.T @ rest)
    columns, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    # A direction that is nearly in the span already is mostly rounding: clean what is kept.
    columns = columns[:, sizes > 1e-10]
    columns = columns - basis @ (basis.T @ columns)
    return np.linalg.qr(columns)[0]


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


def rotate_to_principal_axes(basis: Array, matrix: Array) -> tuple[Array, Array]:
    """Rotate a basis inside its span so that its columns carry falling, uncorrelated variance.

    Returns the variances and the basis. Signs are fixed as scikit-learn's PCA fixes them: the
    entry of largest magnitude in each component is positive.
    """
    values, rotation = eigh_descending(basis.T @ matrix @ basis)
    return np.maximum(values, 0.0), fix_signs(basis @ rotation)


def fix_signs(basis: Array) -> Array:
    """Turn each column so that its entry of largest magnitude is positive."""
    largest = np.abs(basis).argmax(axis=0)
    signs = np.sign(basis[largest, np.arange(basis.shape[1])])
    turned: Array = basis * np.where(signs == 0, 1.0, signs)
    return turned


def _block_krylov(
    matrix: Array, r: int, width: int, start: Array | None, *, trust_start: bool = False
) -> tuple[Array, Array] | None:
    """Rayleigh-Ritz on ``[Q, MQ, M^2 Q, ...]``, restarted with its leading vectors.

    Returns None when it has not converged after many restarts. Starting vectors may be exact
    eigenvectors of the wrong eigenvalues; unless they are trusted, the random vectors beside them
    get time to find larger ones.
    """
    d = len(matrix)
    rng = np.random.default_rng(0)
    block = rng.standard_normal((d, width))
    if start is not None:
        known = min(start.shape[1], r)
        block[:, width - known :] = start[:, :known]
    size = width * _KRYLOV_BLOCKS
    checks = {size // 2, size}
    if start is None or trust_start:
        checks |= {width, size // 4}
    basis, image = np.empty((d, size), order="F"), np.empty((d, size), order="F")
    for _ in range(_KRYLOV_RESTARTS):
        for j in range(0, size, width):
            end = j + width
            basis[:, j:end] = _orthonormal_block(basis[:, :j], block, rng)
            block = image[:, j:end] = matrix @ basis[:, j:end]
            if end not in checks:
                continue
            inner = basis[:, :end].T @ image[:, :end]
            values, turn = eigh_descending((inner + inner.T) / 2)
            vectors = basis[:, :end] @ turn[:, :width]
            residual = image[:, :end] @ turn[:, :r] - vectors[:, :r] * values[:r]
            largest = max(abs(values[0]), abs(values[-1]))
            if np.linalg.norm(residual) <= _KRYLOV_RESIDUAL * largest:
                return values[:r], vectors[:, :r]
        # The least converged first: orthogonalised against them, what is left of the others is
        # still significant; the other way round it would drown in rounding.
        block = vectors[:, ::-1]
    return None


def _none_above(matrix: Array, values: Array, vectors: Array, level: float) -> bool:
    """Prove that the r largest eigenvalues sum to at most ``sum(values) + r (level - values[-1])``.

    Move what was found down to the smallest value found: if the rest, M', has no eigenvalue above
    the level, which a Cholesky factorisation shows, then the r largest of M' sum to at most
    ``r * level``, and those of ``M = M' + V (values - values[-1]) V^T`` to as much and the trace of
    the second term. That holds for any orthonormal V.
    """
    rest = (vectors * (values - values[-1])) @ vectors.T - matrix
    rest[np.diag_indices_from(rest)] += level
    try:
        scipy.linalg.cholesky(rest, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True


def _orthonormal_block(basis: Array, block: Array, rng: np.random.Generator) -> Array:
    """Orthonormalise a block against a basis; what is in its span already becomes random."""
    size = float(np.linalg.norm(block))
    for _ in range(3):
        block = block - basis @ (basis.T @ block)
        # NumPy's QR, not SciPy's: each has its own threads, and taking turns makes both wait.
        block, triangle = np.linalg.qr(block)
        left = np.abs(np.diag(triangle)) / size
        spent = left <= 1e-14
        block[:, spent] = rng.standard_normal((len(block), int(spent.sum())))
        size = 1.0
        if left.min() > 0.5:  # no digits were lost, so this was the last time
            break
    return block

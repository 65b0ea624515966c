"""Linear algebra with NumPy's arrays: matrices that are whole, paths between subspaces, signs."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.linalg import LinAlgWarning
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf
from scipy.optimize import nnls
from sklearn.utils import gen_batches

from fairpca._linalg import krylov
from fairpca._linalg.backends import NUMPY
from fairpca._linalg.threads import threads_for
from fairpca._linalg.types import Array

_SAME_SIZE = 1e-9
"""Relative difference of entries that may be rounding."""

NEARLY_ORTHONORMAL = 1e-6
"""Error of products of columns up to which they count as orthonormal."""

_WELL_CONDITIONED = 0.1
"""Smallest eigenvalue of the products of columns, relative to the largest, that loses no digits."""

_LONG_VECTORS = 2000
"""Length from which the min-norm point is found from products, which halves its digits."""

BLOCK_VALUES = 2**22
"""Numbers of rows that are worked on at once: 32 MB."""


def dense_blocks(rows: Any) -> Iterator[tuple[slice, Array]]:
    """Parts of rows, as slices and as dense arrays."""
    for part in gen_batches(rows.shape[0], max(1, BLOCK_VALUES // rows.shape[1])):
        yield part, rows[part].toarray() if scipy.sparse.issparse(rows) else rows[part]


class DenseMatrix:
    """A symmetric array as a `Matrix`."""

    backend = NUMPY

    def __init__(self, array: Array, size: float | None = None) -> None:
        self._array, self._size = array, size
        self.d = len(array)

    @property
    def at_once(self) -> bool:
        return self.d <= krylov.FEW_COLUMNS

    @cached_property
    def size(self) -> float:
        if self._size is not None:
            return self._size
        rounding = np.finfo(float).eps * float(np.abs(self._array).max())
        return max(float(np.abs(np.diag(self._array)).sum()), rounding)

    def image(self, block: Array) -> Array:
        product: Array = self._array @ block
        return product

    def disproof(self, vectors: Array, drops: Array, level: float) -> Array | None:
        rest = np.negative(self._array).T  # symmetric; transposed it is in LAPACK's order
        return failed_pivot(rest, vectors, drops, level)

    def leading(self, r: int) -> tuple[Array, Array]:
        if self.d > krylov.FEW_COLUMNS:
            return some_eigenpairs(self._array.copy(), r)
        # NumPy's, as everything else then: SciPy's threads and NumPy's wait for each other.
        return NUMPY.eigh(self._array)


@dataclass(frozen=True, eq=False)
class DenseMatrices:
    """The groups' matrices as one array, (k, d, d): for few columns.

    `ScatterMatrices` in `device` is the same for many columns, and on a device.
    """

    stack: Array
    backend = NUMPY

    @cached_property
    def traces(self) -> Array:
        """Trace of each group's matrix; (k,)."""
        traces: Array = np.trace(self.stack, axis1=1, axis2=2)
        return traces

    def own_pairs(self, r: int, near: Array) -> list[tuple[Array, Array]]:
        """The r largest eigenvalues of each matrix, proven, and eigenvectors, as NumPy arrays.

        The columns of `near` are where an iteration begins.
        """
        d = self.stack.shape[1]
        if d > krylov.FEW_COLUMNS:
            return [some_eigenpairs(matrix.copy(), r) for matrix in self.stack]
        values, vectors = np.linalg.eigh(self.stack)  # all at once: of small ones calls cost most
        leading = np.ascontiguousarray(vectors[:, :, : -r - 1 : -1])
        return list(zip(values[:, : -r - 1 : -1], leading, strict=True))

    def leading(self, weights: Array, r: int) -> tuple[Array, Array]:
        """The same of a weighted sum, not proven; more than r where that is as quick."""
        return DenseMatrix(self.dense(weights)).leading(r)

    def leading_sum_bound(self, weights: Array, r: int, near: Array | None = None) -> float:
        """The sum of the r largest eigenvalues of a weighted sum, or a little more, not less."""
        return float(np.linalg.eigvalsh(self.dense(weights))[-r:].sum())

    def weighted_sum(self, weights: Array) -> DenseMatrix:
        """``sum_i weights_i * A_i``; memory that it takes is given back with the object."""
        return DenseMatrix(self.dense(weights), float(np.abs(weights) @ self.traces))

    def dense(self, weights: Array) -> Array:
        """The same as a NumPy array."""
        matrix: Array = weights @ self.stack.reshape(len(weights), -1)
        return matrix.reshape(self.stack.shape[1:])

    def images(self, block: Array) -> Array:
        """The product of each group's matrix with a block of columns."""
        images: Array = self.stack @ block
        return images

    def kept(self, basis: Array, weighted: Array) -> Array:
        """``tr(A_i basis weighted^T)`` for each group; (k,)."""
        kept: Array = np.einsum("kia,ia->k", self.stack @ basis, weighted)
        return kept

    def kept_by_each(self, bases: Sequence[Array]) -> Array:
        """``tr(A_i P_i)`` with the projector on a basis for each group; (k,)."""
        stacked = np.array(bases)
        kept: Array = np.einsum("kia,kia->k", self.stack @ stacked, stacked)
        return kept


def leading_eigenpairs(matrix: Array, r: int, start: Array | None = None) -> tuple[Array, Array]:
    """Return the r largest eigenvalues, largest first, and their eigenvectors.

    Large matrices go to an iteration, which can begin with vectors that are thought to be nearly
    right. It takes random ones beside them, so it finds other eigenvalues as well.
    """
    found = krylov.found_pairs(DenseMatrix(matrix), r, start)
    return found.values, found.vectors


def some_eigenpairs(matrix: Array, r: int) -> tuple[Array, Array]:
    """The r largest eigenvalues and their eigenvectors, by LAPACK, in the memory of the matrix."""
    d = len(matrix)
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[d - r, d - 1], overwrite_a=True)
    return values[::-1], np.ascontiguousarray(vectors[:, ::-1])


def failed_pivot(rest: Array, vectors: Array, drops: Array, level: float) -> Array | None:
    """Factorise ``rest + level * I + vectors @ diag(drops) @ vectors.T``, in the memory of rest.

    None if that is positive definite; else a direction x in which it is not: with the factor L of
    the rows before the one that fails, and l the next row of the factor, ``x = (-L^-T l, 1)``. Only
    the lower triangle of rest is used; it has to be in the order of Fortran.
    """
    # SciPy's threads would wait for NumPy's, for longer than they save.
    with threads_for(len(rest)):
        dsyrk(1.0, vectors * np.sqrt(drops), beta=1.0, c=rest, lower=1, overwrite_c=1)
        rest[np.diag_indices_from(rest)] += level
        factor, failed = dpotrf(rest, lower=1, clean=0, overwrite_a=1)
    if failed == 0:
        return None
    p = failed - 1
    direction = np.zeros((len(rest), 1))
    direction[p] = 1.0
    if p > 0:
        direction[:p, 0] = -scipy.linalg.solve_triangular(
            factor[:p, :p], factor[p, :p], lower=True, trans="T", check_finite=False
        )
    direction /= np.linalg.norm(direction)
    return direction


class Geodesic:
    """The shortest path between two subspaces of equal dimension: at 0 the first, at 1 the last.

    Each column of a basis at the start turns by its angle towards one that is normal to it.
    """

    def __init__(self, start: Array, end: Array) -> None:
        left, cosines, right = np.linalg.svd(start.T @ end)
        self.start = start @ left
        residual = end @ right.T - self.start * cosines
        sines = np.linalg.norm(residual, axis=0)
        self.angles = np.arctan2(sines, cosines)
        self.normal = residual / np.where(sines > 0, sines, 1.0)

    def __call__(self, t: float) -> Array:
        """Return an orthonormal basis of the subspace at t."""
        turn = t * self.angles
        basis: Array = self.start * np.cos(turn) + self.normal * np.sin(turn)
        return basis


def polar_factor(matrix: Array) -> Array:
    """The nearest matrix with orthonormal columns."""
    # From the products of few columns, in a third of the time; where squaring costs digits, by SVD.
    values, turn = np.linalg.eigh(matrix.T @ matrix)
    factor: Array
    if values[0] > _WELL_CONDITIONED * values[-1]:
        factor = matrix @ ((turn / np.sqrt(values)) @ turn.T)
    else:
        left, _, right = np.linalg.svd(matrix, full_matrices=False)
        factor = left @ right
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
        # A factor of the products has the same columns up to a rotation, and is much shorter.
        values, turn = np.linalg.eigh(vectors @ vectors.T / np.outer(divisors, divisors))
        rows: Array = (np.sqrt(np.maximum(values, 0.0)) * turn).T
    else:
        rows = vectors.T / divisors
    scale = float(np.abs(rows).max())
    system = np.ones((len(rows) + 1, m))
    np.divide(rows, scale if scale > 0 else 1.0, out=system[:-1])
    target = np.zeros(len(system))
    target[-1] = 1.0
    with warnings.catch_warnings():
        # SciPy before 1.15 warns where vectors are nearly dependent: then many points are as near.
        warnings.simplefilter("ignore", LinAlgWarning)
        found = nnls(system, target)[0]
    weights: Array = found / found.sum()
    return weights


def direction_of(
    gradients: Array, projected: Array, *, normalize: bool, zero: Array
) -> tuple[Array, Array, Array]:
    """The direction in which all objectives fall (equation 17), with weights and divisors.

    It is minus the sum of the gradients, each times its weight over its divisor. Gradients are
    rows; `projected` are their parts in which a direction is looked for. A gradient no longer than
    `zero`, one for each, has vanished: there is no direction in which its objective falls, and the
    one that is found is zero.
    """
    sizes = np.sqrt(np.einsum("ij,ij->i", gradients, gradients))
    vanished = sizes <= zero
    divisors = sizes if normalize else np.ones(len(gradients))
    if vanished.any():
        divisors = np.where(vanished, np.inf, divisors)
    weights = min_norm_point(projected, divisors)
    return -((weights / divisors) @ projected), weights, divisors


def fix_signs(basis: Array) -> Array:
    """Turn each column so that its entry of largest magnitude is positive.

    Of several that are as large up to rounding the first counts, or rounding would decide: the
    two 0/1 columns of a category with two values are always as large.
    """
    sizes = np.abs(basis)
    largest = (sizes >= (1.0 - _SAME_SIZE) * sizes.max(axis=0)).argmax(axis=0)
    signs = np.sign(basis[largest, np.arange(basis.shape[1])])
    turned: Array = basis * np.where(signs == 0, 1.0, signs)
    return turned


def completed(basis: Array, others: Array) -> Array:
    """Orthonormal columns, as many as `others` has: the basis, and what the others have most of.

    That is, the leading left singular vectors of the others without their part in the basis.
    """
    rest = others - basis @ (basis.T @ others)
    rest -= basis @ (basis.T @ rest)
    more = np.linalg.svd(rest, full_matrices=False)[0][:, : others.shape[1] - basis.shape[1]]
    return np.asarray(np.linalg.qr(np.hstack([basis, more]))[0])

"""All that is ever done with matrices of many columns, in one place.

Beyond a few hundred columns the exact solver touches a matrix of shape (d, d) in few ways: a
product with a block of columns, its trace, and one factorisation as the last proof (or all
eigenvalues at once, where a device is quicker at that). They are here, behind `Matrix`, with the
operations on *tall* arrays, of shape (d, m) with m far below d, and on the small matrices between
them. Another array library (of a GPU, say) offers the same: see `fairpca._linalg.device`. Tall
arrays may be of its own kind, as long as they can be cut by columns, assigned to, transposed, added
and multiplied with ``@``; only `host` and `tall` lead from one world to the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.linalg
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf

from fairpca._linalg.types import Array

if TYPE_CHECKING:
    from fairpca.moments import GroupMoments

_FEW_COLUMNS = 300
"""Up to so many, all eigenvectors are as quick as some."""

Tall = Any
"""A block of columns, (d, m), in whatever library the matrix lives in."""


class Matrix(Protocol):
    """A symmetric matrix that is known by what it does."""

    @property
    def d(self) -> int:
        """Number of rows and columns."""

    @property
    def at_once(self) -> bool:
        """Whether all eigenvalues at once are quicker than an iteration and a proof."""

    @property
    def size(self) -> float:
        """At least the sum of the absolute eigenvalues: what rounding is relative to."""

    def image(self, block: Tall) -> Tall:
        """The product with a block of columns."""

    def disproof(self, vectors: Tall, drops: Array, level: float) -> Tall | None:
        """None if ``M - vectors @ diag(drops) @ vectors.T`` has no eigenvalue above the level.

        Otherwise a direction, (d, 1), in which that matrix is above it. Drops are not negative.
        """

    def leading(self, r: int) -> tuple[Array, Tall]:
        """The r largest eigenvalues and their eigenvectors, at once: where nothing else helps."""

    def empty(self, width: int) -> Tall:
        """A tall array to be written into."""

    def tall(self, array: Array) -> Tall:
        """A NumPy array, (d, m) or small, for products with tall ones."""

    def host(self, array: Tall) -> Array:
        """The NumPy array of a tall or small one."""

    def qr(self, block: Tall) -> tuple[Tall, Array]:
        """Orthonormal columns, and the triangle as a NumPy array."""

    def eigh(self, small: Tall) -> tuple[Array, Tall]:
        """All eigenvalues of a small matrix, largest first, as a NumPy array, and eigenvectors."""


class _NumPy:
    """The operations on tall arrays, by NumPy."""

    d: int
    quick_at_once = 0
    at_once = False

    def empty(self, width: int) -> Array:
        return np.empty((self.d, width), order="F")

    def tall(self, array: Array) -> Array:
        return array

    def host(self, array: Array) -> Array:
        return array

    def qr(self, block: Array) -> tuple[Array, Array]:
        # NumPy's QR, not SciPy's: each has its own threads, and taking turns makes both wait.
        columns, triangle = np.linalg.qr(block)
        return columns, triangle

    def eigh(self, small: Array) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(small)
        return values[::-1], np.ascontiguousarray(vectors[:, ::-1])


class PlainMatrix(_NumPy):
    """A symmetric array."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self.d = len(array)
        self.size = max(
            float(np.abs(np.diag(array)).sum()), np.finfo(float).eps * float(np.abs(array).max())
        )

    def image(self, block: Array) -> Array:
        product: Array = self._array @ block
        return product

    def disproof(self, vectors: Array, drops: Array, level: float) -> Array | None:
        rest = np.negative(self._array).T  # symmetric; transposed it is in LAPACK's order
        return _failed_pivot(rest, vectors, drops, level)

    def leading(self, r: int) -> tuple[Array, Array]:
        return _leading(self._array.copy(), r)


class GroupMatrices(_NumPy):
    """The groups' matrices as their scatters and rank-one corrections; nothing is copied.

    Group i has ``A_i = scatter_i * scale_i + offset_i offset_i^T * share_i``. Weighted sums of them
    are written into one array of shape (d, d), for the weights that were last asked for.
    """

    def __init__(self, moments: GroupMoments, loss: str = "mean", centering: str = "global"):
        self._scatter = np.ascontiguousarray(moments.scatter)
        self.k, self.d, _ = self._scatter.shape
        self._scales, self._shares = scales_and_shares(moments, loss, centering)
        self._offsets: Array = moments.mean - moments.total_mean
        self._sum: Array | None = None
        self._sum_weights: Array | None = None

    def traces(self) -> Array:
        """Trace of each group's matrix; (k,)."""
        squares = np.einsum("kj,kj->k", self._offsets, self._offsets)
        traces: Array = np.einsum("kjj->k", self._scatter) * self._scales + squares * self._shares
        return traces

    def images(self, block: Array) -> list[Array]:
        """The product of each group's matrix with a block of columns."""
        return [self.image(unit, block) for unit in np.eye(self.k)]

    def image(self, weights: Array, block: Array) -> Array:
        """The product of a weighted sum with a block of columns."""
        some = np.flatnonzero(weights)
        if len(some) == 1:
            image: Array = self._scatter[some[0]] @ block
            image *= weights[some[0]] * self._scales[some[0]]
        else:
            image = self._formed(weights) @ block
        shares = weights * self._shares
        image += self._offsets.T @ (shares[:, None] * (self._offsets @ block))
        return image

    def kept(self, basis: Array, weighted: Array) -> Array:
        """``tr(A_i basis weighted^T)`` for each group; (k,)."""
        images = (self.image(unit, basis) for unit in np.eye(self.k))
        return np.array([np.einsum("ja,ja->", image, weighted) for image in images])

    def disproof(self, weights: Array, vectors: Array, drops: Array, level: float) -> Array | None:
        """See `Matrix.disproof`, for a weighted sum."""
        rest = self._combined(-weights)
        self._sum_weights = None  # the factorisation takes its memory
        shares = weights * self._shares
        for sign in (1.0, -1.0):
            factor = self._offsets.T * np.sqrt(np.maximum(sign * shares, 0.0))
            dsyrk(-sign, factor, beta=1.0, c=rest.T, lower=1, overwrite_c=1)
        return _failed_pivot(rest.T, vectors, drops, level)

    def leading(self, weights: Array, r: int) -> tuple[Array, Array]:
        """See `Matrix.leading`, for a weighted sum."""
        return _leading(self.dense(weights), r)

    def dense(self, weights: Array) -> Array:
        """A weighted sum as an array of its own."""
        scaled = self._offsets * (weights * self._shares)[:, None]
        total = (weights * self._scales) @ self._scatter.reshape(self.k, -1)
        matrix: Array = total.reshape(self.d, self.d) + scaled.T @ self._offsets
        return matrix

    def release(self) -> None:
        """Give back the memory of the last weighted sum."""
        self._sum = self._sum_weights = None

    def _formed(self, weights: Array) -> Array:
        if self._sum_weights is None or not np.array_equal(self._sum_weights, weights):
            self._combined(weights)
            self._sum_weights = weights.copy()
        assert self._sum is not None
        return self._sum

    def _combined(self, weights: Array) -> Array:
        """The weighted sum of the scatters, in the one array that there is for it."""
        if self._sum is None:
            self._sum = np.empty((self.d, self.d))
        flat = self._scatter.reshape(self.k, -1)
        np.matmul(weights * self._scales, flat, out=self._sum.reshape(-1))
        return self._sum


def scales_and_shares(moments: GroupMoments, loss: str, centering: str) -> tuple[Array, Array]:
    """What each group's scatter, and its mean's offset, are multiplied with; (k,) and (k,)."""
    ones = np.ones(len(moments.weight))
    scales = ones if loss == "sum" else 1.0 / moments.weight
    if centering == "group":
        return scales, 0.0 * ones
    return scales, moments.weight if loss == "sum" else ones


class Combination:
    """``sum_i weights_i * A_i`` as a `Matrix`."""

    def __init__(self, matrices: Any, weights: Array, traces: Array) -> None:
        self._matrices, self._weights = matrices, weights
        self.d = matrices.d
        self.size = float(np.abs(weights) @ traces)
        self.at_once = self.d <= matrices.quick_at_once
        self.empty, self.tall = matrices.empty, matrices.tall
        self.host, self.qr, self.eigh = matrices.host, matrices.qr, matrices.eigh

    def image(self, block: Tall) -> Tall:
        return self._matrices.image(self._weights, block)

    def disproof(self, vectors: Tall, drops: Array, level: float) -> Tall | None:
        return self._matrices.disproof(self._weights, vectors, drops, level)

    def leading(self, r: int) -> tuple[Array, Tall]:
        pairs: tuple[Array, Tall] = self._matrices.leading(self._weights, r)
        return pairs


def _leading(matrix: Array, r: int) -> tuple[Array, Array]:
    """By LAPACK; where there are many columns, in the memory of the matrix."""
    d = len(matrix)
    if d <= _FEW_COLUMNS:
        # NumPy's, as everything else then: SciPy's threads and NumPy's wait for each other.
        values, vectors = np.linalg.eigh(matrix)
        return values[::-1][:r], np.ascontiguousarray(vectors[:, ::-1][:, :r])
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[d - r, d - 1], overwrite_a=True)
    return values[::-1], np.ascontiguousarray(vectors[:, ::-1])


def _failed_pivot(rest: Array, vectors: Array, drops: Array, level: float) -> Array | None:
    """Factorise ``rest + level * I + vectors @ diag(drops) @ vectors.T``, in the memory of rest.

    None if that is positive definite; else a direction x in which it is not: with the factor L of
    the rows before the one that fails, and l the next row of the factor, ``x = (-L^-T l, 1)``. Only
    the lower triangle of rest is used; it has to be in the order of Fortran.
    """
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

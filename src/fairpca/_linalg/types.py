"""What matrices are to those who use them: a group's, a weighted sum, all of a problem's."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.backends import Backend

Array = NDArray[np.float64]

ROUNDING = 1e-14
"""What counts as rounding in a sum of products or of eigenvalues, relative to what is summed."""

NEGLIGIBLE = 1e-12
"""Share of a number of the data that is surely rounding: some thousand operations make less."""

Tall = Any
"""A block of columns, (d, m) with m far below d, in whatever library the matrix lives in."""


class Matrix(Protocol):
    """A symmetric matrix that is known by what it does."""

    @property
    def d(self) -> int:
        """Number of rows and columns."""

    @property
    def backend(self) -> Backend:
        """What its tall arrays are made with."""

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
        """The r largest eigenvalues, or more of them, and their eigenvectors, all at once."""


class GroupMatrices(Protocol):
    """The matrices of all groups: the one object that a Problem asks."""

    @property
    def backend(self) -> Backend:
        """What their tall arrays are made with."""

    @property
    def traces(self) -> Array:
        """Trace of each group's matrix; (k,)."""

    @property
    def stack(self) -> Array:
        """The matrices as one NumPy array, (k, d, d), which may have to be made."""

    def own_pairs(self, r: int, near: Array) -> list[tuple[Array, Array]]:
        """The r largest eigenvalues of each matrix, proven, and eigenvectors, as NumPy arrays.

        The columns of `near` are where an iteration begins.
        """

    def leading(self, weights: Array, r: int) -> tuple[Array, Array]:
        """The same of a weighted sum, not proven; more than r where that is as quick."""

    def leading_sum_bound(self, weights: Array, r: int, near: Array | None = None) -> float:
        """The sum of the r largest eigenvalues of a weighted sum, or a little more, not less."""

    def weighted_sum(self, weights: Array) -> Matrix:
        """``sum_i weights_i * A_i``; memory that it takes is given back with the object."""

    def dense(self, weights: Array) -> Array:
        """The same as a NumPy array."""

    def images(self, block: Tall) -> Iterable[Tall]:
        """The product of each group's matrix with a block of columns."""

    def kept(self, basis: Array, weighted: Array) -> Array:
        """``tr(A_i basis weighted^T)`` for each group; (k,)."""

    def kept_by_each(self, bases: Sequence[Array]) -> Array:
        """``tr(A_i P_i)`` with the projector on a basis for each group; (k,)."""

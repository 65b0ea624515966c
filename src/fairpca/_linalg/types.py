"""What a matrix is to those who use it, and what counts as rounding."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.backends import Backend

Array = NDArray[np.float64]

ROUNDING = 1e-14
"""What counts as rounding in a sum of products or of eigenvalues, relative to what is summed."""

ACCURACY = 1e-13
"""How exact values, measures and curvatures are, relative to the largest trace."""

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

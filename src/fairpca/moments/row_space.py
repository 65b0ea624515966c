"""Rows with many more columns than there are rows: their coordinates in the space they span.

The centred rows, (n, d), span at most n dimensions. With ``rows^T = Q R`` (Householder's QR, Q
whole and orthogonal, R upper triangular) the rows have the coordinates R^T in the first n columns
of Q, and zeros in the others. So moments of n columns say all that those of d columns do, and Q
takes a subspace that was found in them back.

Is the best subspace of R^d among those inside the first n dimensions? With weights that are not
negative, as for "minmax", it is: directions outside the span of the rows keep nothing. But where
equality means that a group has to lose more than it could, the best subspace may use some. It is
always among those inside the first n + r: a subspace of r dimensions uses at most r further ones,
and those can be turned into any others that are orthogonal to all rows, since no group's matrix
changes by that. Hence a problem gets r further columns of zeros, which are there to be used.
Their vectors are the next r columns of Q, so they cost nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.linalg.lapack import dgeqrf, dormqr

from fairpca._linalg.krylov import FEW_COLUMNS
from fairpca._linalg.types import Array
from fairpca.validation import explain_not_finite

_COLUMNS_PER_ROW = 2
"""From this many columns for each row the coordinates are worth their QR factorisation."""


def spanned_space(
    rows: Any, weights: Array | None = None, estimator: Any = None
) -> RowSpace | None:
    """The space of rows that have this many columns; None for others.

    Raises ValueError, in the name of the estimator, if the rows are not finite.
    """
    n, d = rows.shape
    if d <= FEW_COLUMNS or d < _COLUMNS_PER_ROW * n:
        return None
    space = RowSpace(rows, weights)
    if not space.is_finite:
        explain_not_finite(rows, estimator)
    return space


class RowSpace:
    """Coordinates of rows, and the way back; takes one dense copy of the rows as float64.

    Parameters
    ----------
    rows : array or CSR matrix of shape (n, d), with d at least n
    weights : array of shape (n,), default=None
    """

    def __init__(self, rows: Any, weights: Array | None = None) -> None:
        n, self.d = rows.shape
        sparse = scipy.sparse.issparse(rows)
        dense = rows.toarray() if sparse else rows
        if not sparse:  # which is a copy of its own already
            dense = np.array(dense, dtype=np.float64, order="C")
        centred = np.ascontiguousarray(dense, dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            weights = np.ones(n) if weights is None else weights
            self.center: Array = weights @ centred / weights.sum()
            centred -= self.center
        self.is_finite = bool(np.isfinite(centred.sum()) and np.isfinite(centred).all())
        if self.is_finite:
            # In C's order the rows are what LAPACK takes for columns: nothing is copied.
            work = int(dgeqrf(centred.T[:, :1], lwork=-1)[2][0]) * n
            self._reflectors, self._tau, _, _ = dgeqrf(centred.T, lwork=work, overwrite_a=1)
            self.rows: Array = np.ascontiguousarray(np.triu(self._reflectors[:n]).T)

    def lift(self, basis: Array) -> Array:
        """Vectors in the coordinates of `rows`, or padded ones, as columns of length d."""
        whole = np.zeros((self.d, basis.shape[1]), order="F")
        whole[: len(basis)] = basis
        work = 64 * max(basis.shape[1], 1)
        lifted, _, _ = dormqr("L", "N", self._reflectors, self._tau, whole, work, overwrite_c=1)
        return np.ascontiguousarray(lifted)

    def lift_point(self, point: Array) -> Array:
        """A point in those coordinates, in the columns that the rows came with."""
        lifted: Array = self.center + self.lift(point[:, None])[:, 0]
        return lifted

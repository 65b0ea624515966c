"""What each group loses in subspaces, by one pass over the rows and without their covariances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.backends import Backend
from fairpca._linalg.types import Array
from fairpca.estimators.tracked import CentredRows, TrackedSubspaces, block_mean


@dataclass(frozen=True, eq=False)
class SubspaceLosses:
    """Sums over all rows.

    Attributes
    ----------
    mean : array of shape (d,)
        Mean of all rows.
    count : integer array of shape (k,)
        Rows of each group.
    variance : array of shape (k,)
        Mean squared distance of each group's rows from the mean of all rows.
    inner : list of k lists of arrays of shape (r, r)
        For each group, and each of its bases, the mean of ``s s^T`` for the coordinates s of the
        centred rows along the basis.
    """

    mean: Array
    count: Any
    variance: Array
    inner: list[list[Array]]


def tracked_losses(spaces: TrackedSubspaces, shares: Array, count: Any) -> SubspaceLosses:
    """The same as far as the steps of a descent have tracked it."""
    center = np.asarray(spaces.backend.host(spaces.center(shares)))
    inner = [spaces.inner(i) for i in range(len(count))]
    return SubspaceLosses(center, count, spaces.variances.copy(), inner)


class LossSums:
    """Adds up blocks of rows; `bases` are those that each group's rows are projected on."""

    def __init__(self, bases: Sequence[Sequence[Any]], center: Any, backend: Backend) -> None:
        self._bases, self._center, self._backend = bases, center, backend
        k = len(bases)
        self._count, self._squares = np.zeros(k, dtype=np.int64), np.zeros(k)
        self._sums: list[Any] = [0.0] * k
        self._inner: list[list[Any]] = [[0.0] * len(own) for own in bases]

    def add(self, i: int, block: Any) -> None:
        """Add rows of group i."""
        rows = CentredRows(block, self._center)
        self._count[i] += rows.n
        self._squares[i] += float(rows.squares().sum())
        self._sums[i] = self._sums[i] + rows.n * (block_mean(block) - self._center)
        for j, basis in enumerate(self._bases[i]):
            scores = rows.scores(basis)
            self._inner[i][j] = self._inner[i][j] + self._backend.host(scores.T @ scores)

    def losses(self) -> SubspaceLosses:
        """The sums, about the mean of all rows, which is known by now."""
        host, count = self._backend.host, self._count
        center = host(self._center)
        offsets = [
            np.asarray(host(total)).ravel() / n for total, n in zip(self._sums, count, strict=True)
        ]
        shift = (count / count.sum()) @ np.array(offsets)
        variance = self._squares / count
        inner: list[list[Array]] = []
        for i, offset in enumerate(offsets):
            variance[i] += float(shift @ shift - 2.0 * (shift @ offset))
            inner.append([])
            for basis, products in zip(self._bases[i], self._inner[i], strict=True):
                along, moved = host(basis).T @ offset, host(basis).T @ shift
                mixed = np.outer(along, moved)
                inner[i].append(products / count[i] - mixed - mixed.T + np.outer(moved, moved))
        return SubspaceLosses(center + shift, count, variance, inner)

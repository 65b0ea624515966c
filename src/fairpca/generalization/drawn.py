"""Groups that are drawn at random from rows, and the disparities that chance gives them.

A permutation test: what groups are compared with that may differ from each other by chance alone.
Of many rows only some are looked at, every tenth, say: how the matrix of a part of them differs
from that of all these is what chance adds to the matrix of all rows. Where tails are heavy, a few
rows far out decide. They would be missing among some, so they are looked for among all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.products import column_products
from fairpca._linalg.types import Array
from fairpca.data import GroupedData
from fairpca.problem import Problem

_DRAWS, _ENOUGH = (4, 4, 8, 8, 15, 40), (2, 3, 3, 4, 4, 4)
"""How many groups are drawn, one lot after the other, until so many have a larger disparity. Among
80 that are drawn at random one has one of the four largest disparities once in 20 times. Where two
or three of the first have one, so will four of all: to stop there decides otherwise three times in
a thousand, if every 25th group has one, and more rarely if fewer or more have."""

_HOPELESS = 39
"""After so many of which none has a larger disparity, four of all will hardly have one."""

_PARTS, _MOST_NUMBERS = 64, 2**24
"""A group that is drawn is put together from so many parts, each of which serves many draws; fewer
where their matrices would have more numbers."""

_LEAST_NOISE = 0.125
"""Noise t in units of one over the number of rows that are asked: for less, groups with so much are
drawn, and what chance makes of them is scaled, as next to no rows would be left out."""

FEW_ROWS, _BLOCK = 2**12, 2**14
"""How many rows are asked at most; and of more rows, how many are looked at at once."""

_MANY_ROUNDINGS = 1e3
"""Errors of a sum of squares, in units of its rounding, that are more than it has."""

_NO_MEAN = 1e-3
"""Mean of all rows, relative to their deviation, that is left out where far rows are looked for, as
what it can add is small enough to be allowed for."""

_FAR = 2**8
"""About how many rows far out are looked for."""

_TAIL, _LIGHT = 50, 8.0
"""One row of so many says how tails fall off; and the exponent from which rows far out do not
decide. Fourth moments exist above 4; the exponent of a finite tail is not that of its end."""


@dataclass(frozen=True, eq=False)
class SomeRows:
    """Some of the rows that were fitted to, centred, and divided by the root of `unit`."""

    problem: Problem
    grouped_data: GroupedData
    unit: float

    @property
    def step(self) -> int:
        """Every so many-th row is asked."""
        return self.every(FEW_ROWS)

    def every(self, n: int) -> int:
        """The step at which there are at most n rows."""
        return -(-int(self._rows.shape[0]) // n)

    @property
    def _rows(self) -> Any:
        space = self.grouped_data.space
        return self.grouped_data.rows if space is None else space.rows

    @cached_property
    def _mean(self) -> Array:
        # In the space of wide rows, columns of zeros follow.
        return self.problem.moments.total_mean[: self._rows.shape[1]]

    @cached_property
    def few(self) -> tuple[Array, Array]:
        """The rows that are asked, and their weights."""
        return self._centred(slice(None, None, self.step))

    def blocks(self, n_rows: int) -> Iterator[tuple[Array, Array]]:
        """At most so many rows and their weights, a block at a time."""
        if n_rows == FEW_ROWS:
            yield self.few
            return
        step = self.every(n_rows)
        for start in range(0, self._rows.shape[0], step * FEW_ROWS):  # they stay in the cache
            yield self._centred(slice(start, start + step * FEW_ROWS, step))

    def _centred(self, part: slice | NDArray[np.intp]) -> tuple[Array, Array]:
        rows, weights = self._rows, self.grouped_data.weights
        found = rows[part].toarray() if scipy.sparse.issparse(rows) else rows[part]
        block: Array = np.subtract(found, self._mean, dtype=np.float64)
        if self.problem.centering == "group":
            codes = np.asarray(self.grouped_data.codes)
            block -= self.problem.moments.offsets[codes[part], : block.shape[1]]
        block /= np.sqrt(self.unit)
        return block, np.ones(len(block)) if weights is None else weights[part]

    def beyond(self, square: float) -> tuple[Array, Array]:
        """Of all rows those whose squared norm is larger, weighted."""
        found, weighing = [], []
        for start in range(0, self._rows.shape[0], _BLOCK):
            rows, weights = self._centred(self._perhaps_beyond(start, square))
            far = weights * np.einsum("ij,ij->i", rows, rows) > square
            found.append(rows[far] * np.sqrt(weights[far])[:, None])
            weighing.append(weights[far])
        return np.concatenate(found), np.concatenate(weighing)

    def _perhaps_beyond(self, start: int, square: float) -> NDArray[np.intp]:
        """Of a block of rows at least those whose squared norm is larger, without a copy of all."""
        part = slice(start, min(start + _BLOCK, self._rows.shape[0]))
        if scipy.sparse.issparse(self._rows) or self.problem.centering == "group":
            return np.arange(part.start, part.stop)
        rows, mean, weights = self._rows[part], self._mean, self.grouped_data.weights
        with np.errstate(over="ignore", invalid="ignore"):
            squares, of_mean = np.einsum("ij,ij->i", rows, rows), float(mean @ mean)
            if of_mean < _NO_MEAN**2 * self.unit:  # 2 |x| |m| <= _NO_MEAN * (|x|^2 + unit)
                squares *= 1.0 + _NO_MEAN
                squares += of_mean + _NO_MEAN * self.unit
            else:
                squares += of_mean
                squares *= 1.0 + _MANY_ROUNDINGS * float(np.finfo(rows.dtype).eps)
                squares -= 2.0 * (rows @ mean)
            if weights is not None:
                squares = squares * weights[part]
            return start + np.flatnonzero(~(squares <= square * self.unit))


@dataclass(frozen=True, eq=False)
class RandomGroups:
    """Rows that groups are drawn from, in random order, and what ordinary PCA keeps of them.

    Each of the rows stands for `step` rows, one that is far out for itself alone: `far` has the
    products of its numbers. `mean` is the matrix of the former, `missing` what all these rows lack
    to have the matrix of all rows.
    """

    rows: Array
    weights: Array
    far: Array
    of_far: Array
    step: int
    effective: float
    all_weight: float
    mean: Array
    missing: Array
    basis: Array

    @classmethod
    def from_rows(cls, some: SomeRows, r: int) -> "RandomGroups | None":
        """Groups of some rows; None where none of them has weight."""
        rows, weights = some.few
        order = np.random.default_rng(0).permutation(np.flatnonzero(weights))
        if not len(order):
            return None
        d, step = rows.shape[1], some.step
        effective = float(weights.sum() ** 2 / (weights @ weights))
        far, of_far = rows[:0], weights[:0]
        if step > 1:
            squares = (weights * np.einsum("ij,ij->i", rows, rows))[order]
            limit = _far_out(squares, step)
            if limit is not None:
                far, of_far = some.beyond(limit)
                order = order[squares <= limit]
        rows, weights = rows.take(order, axis=0), weights[order]
        if some.grouped_data.weights is not None:
            rows *= np.sqrt(weights)[:, None]
        near_weight = float(step * weights.sum())
        all_weight = near_weight + float(of_far.sum())
        mean = column_products(rows) / weights.sum()
        total = some.problem.total_matrix[:d, :d]
        missing = total / np.trace(total) - (near_weight * mean + far.T @ far) / all_weight
        basis = some.problem.pca_basis[:d, :r]
        products = np.einsum("na,nb->nab", far, far).reshape(-1, d * d)
        given = rows, weights, products, of_far, step, effective, all_weight
        return cls(*given, mean, missing, basis)

    def disparities(self, t: float) -> Iterator[Array]:
        """Disparities of groups with the noise t, one lot after the other.

        Of N rows ``1 / (t + 1 / N)`` have this noise; with weights N is the effective number.
        """
        # One for each, so that what is drawn does not depend on the lots.
        rng, rng_of_far = np.random.default_rng(1), np.random.default_rng(2)
        noise = max(t * self.effective, _LEAST_NOISE)
        parts, sums, n_parts = _parts(self.rows, self.weights, 1.0 / (1.0 + noise))
        d, r = self.basis.shape
        scale = np.sqrt(t * self.effective / noise)
        share = 1.0 / (1.0 + t * self.step * self.effective)
        for n_draws in _DRAWS:
            some = np.tile(np.arange(len(parts)) < n_parts, (n_draws, 1))
            chosen = rng.permuted(some, axis=1).astype(np.float64)
            matrices = (chosen / (chosen @ sums)[:, None] @ parts.reshape(-1, d * d)).reshape(
                -1, d, d
            )
            matrices = self.mean + scale * (matrices - self.mean)
            if len(self.far):
                drawn = rng_of_far.random((n_draws, len(self.far))) < share
                group_weight = self.all_weight * share
                matrices *= np.maximum(1.0 - drawn @ self.of_far / group_weight, 0.0)[:, None, None]
                matrices += (drawn @ self.far / group_weight).reshape(-1, d, d)
            matrices += self.missing
            own = np.linalg.eigvalsh(matrices)[:, -r:].sum(axis=1)
            yield own - np.einsum("nar,ar->n", matrices @ self.basis, self.basis)


def often_drawn(some: SomeRows, r: int, noise: Array, levels: Array) -> NDArray[np.bool_]:
    """Whether random groups reach this disparity more than once in 20 times, for each t."""
    groups = RandomGroups.from_rows(some, r)
    if groups is None:
        return np.ones(len(noise), dtype=bool)
    return np.array([_reached(groups, *each) for each in zip(noise, levels, strict=True)])


def _reached(groups: RandomGroups, t: float, level: float) -> bool:
    n_above = n_drawn = 0
    for disparities, enough in zip(groups.disparities(t), _ENOUGH, strict=True):
        n_above += int((disparities >= level).sum())
        n_drawn += len(disparities)
        if n_above >= enough:
            return True
        if n_above == 0 and n_drawn >= _HOPELESS:
            break
    return False


def _parts(rows: Array, weights: Array, share: float) -> tuple[Array, Array, int]:
    """Sums of products and of weights of parts of the rows, and how many have this share of all."""
    d = rows.shape[1]
    most_parts = min(_PARTS, _MOST_NUMBERS // (sum(_DRAWS) * d * d))
    n = max(round(len(rows) * share), 1)
    size = max(n // most_parts, 1)
    n_parts = round(n / size)
    n_all = min(len(rows) // size, n_parts * sum(_DRAWS))
    products = column_products(rows[: n_all * size].reshape(n_all, size, d))
    return products, weights[: n_all * size].reshape(n_all, size).sum(axis=1), n_parts


def _far_out(squares: Array, step: int) -> float | None:
    """The squared norm beyond which rows are far out; None where they do not decide.

    They do where tails fall off as a power, with a small exponent (Hill, 1975).
    """
    tail = len(squares) // _TAIL
    beyond = max(_FAR // step, 1)
    if tail <= beyond:
        return None
    largest = np.sort(np.partition(squares, -tail - 1)[-tail - 1 :])
    if not largest[0] > 0.0 or 2.0 / np.log(largest[1:] / largest[0]).mean() > _LIGHT:
        return None
    # A little more, so that wherever its norm is computed this row is not beyond it.
    return float(largest[-beyond]) * (1.0 + _MANY_ROUNDINGS * float(np.finfo(float).eps))

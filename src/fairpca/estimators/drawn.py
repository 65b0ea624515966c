"""Groups that are drawn at random from rows, and the disparities that chance gives them.

A permutation test: what groups are compared with that may differ from each other by chance alone.
Of many rows only some are looked at, every tenth, say. Where their tails are heavy a few rows far
out decide, which would be missing among these, so they are looked for among all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from fairpca._linalg.dense import eigh_descending
from fairpca._linalg.types import Array
from fairpca.estimators.gather import Gathered
from fairpca.problem import Problem

_DRAWS = 39
"""How many groups are drawn. Among 40 that are drawn at random one has one of the two largest
disparities once in 20 times."""

_PARTS, _MOST_NUMBERS = 64, 2**24
"""A group that is drawn is put together from so many parts, each of which serves many draws; fewer
where their matrices would have more numbers."""

_ROWS, _BLOCK = 2**15, 2**12
"""How many rows are asked at most, and how many at once, so that they stay in the cache."""

_FAR = 2**10
"""About how many rows far out are looked for."""

_TAIL, _LIGHT = 50, 8.0
"""One row of so many says how tails fall off; and the exponent from which rows far out do not
decide. Fourth moments exist above 4; the exponent of a finite tail is not that of its end."""


@dataclass(frozen=True, eq=False)
class SomeRows:
    """Some of the rows that were fitted to, centred, and divided by the root of `unit`."""

    problem: Problem
    gathered: Gathered
    unit: float

    @property
    def step(self) -> int:
        """Every so many-th row is asked."""
        return -(-int(self._rows.shape[0]) // _ROWS)

    @property
    def _rows(self) -> Any:
        space = self.gathered.space
        return self.gathered.rows if space is None else space.rows

    def blocks(self, step: int | None = None) -> Iterator[tuple[Array, Array]]:
        """Rows and their weights, a block at a time."""
        rows, step = self._rows, self.step if step is None else step
        n, d = rows.shape
        # In the space of wide rows, columns of zeros follow.
        mean = self.problem.moments.total_mean[:d]
        weights = np.ones(n) if self.gathered.weights is None else self.gathered.weights
        for start in range(0, n, step * _BLOCK):
            part = slice(start, start + step * _BLOCK, step)
            block = rows[part]
            block = (block.toarray() if scipy.sparse.issparse(block) else block) - mean
            if self.problem.centering == "group":
                codes = np.asarray(self.gathered.codes)
                block -= self.problem.moments.offsets[codes[part], :d]
            block /= np.sqrt(self.unit)
            yield block, weights[part]

    def weighted(self) -> tuple[Array, Array]:
        """Rows times the roots of their weights, and these; those without weight are left out."""
        rows, weights = (np.concatenate(parts) for parts in zip(*self.blocks(), strict=True))
        some = np.flatnonzero(weights)
        return rows[some] * np.sqrt(weights[some])[:, None], weights[some]

    def beyond(self, square: float) -> tuple[Array, Array]:
        """Of all rows those whose squared norm is larger, weighted."""
        found, weighing = [], []
        for block, weights in self.blocks(step=1):
            far = weights * np.einsum("ij,ij->i", block, block) > square
            if far.any():
                found.append(block[far] * np.sqrt(weights[far])[:, None])
                weighing.append(weights[far])
        return np.concatenate(found), np.concatenate(weighing)


def most_drawn(some: SomeRows, r: int, noise: Array) -> Array:
    """The second largest disparities of groups that are drawn, for each of these t.

    Of N rows ``1 / (t + 1 / N)`` have the noise t; with weights N is the effective number.
    """
    rng = np.random.default_rng(0)
    rows, weights = some.weighted()
    if not len(rows):
        return np.full(len(noise), np.inf)
    order = rng.permutation(len(rows))
    rows, weights = rows[order], weights[order]
    effective = weights.sum() ** 2 / (weights @ weights)
    far, of_far = rows[:0], weights[:0]
    squares = np.einsum("ij,ij->i", rows, rows)
    limit = _far_out(squares, some.step)
    if limit is not None:
        far, of_far = some.beyond(limit)
        rows, weights = rows[squares <= limit], weights[squares <= limit]
    # Each of these rows stands for `step` rows, one that is far out for itself alone.
    all_weight = some.step * weights.sum() + of_far.sum()
    total = (some.step * (rows.T @ rows) + far.T @ far) / all_weight
    basis = eigh_descending(total)[1][:, :r]
    most = np.empty(len(noise))
    for i, t in enumerate(noise):
        matrices = _drawn(rows, weights, 1.0 / (1.0 + t * effective), rng)
        if len(far):
            drawn = rng.random((_DRAWS, len(far))) < 1.0 / (1.0 + t * some.step * effective)
            group_weight = all_weight / (1.0 + t * some.step * effective)
            matrices *= np.maximum(1.0 - drawn @ of_far / group_weight, 0.0)[:, None, None]
            for matrix, chosen in zip(matrices, drawn, strict=True):
                matrix += far[chosen].T @ far[chosen] / group_weight
        own = np.linalg.eigvalsh(matrices)[:, -r:].sum(axis=1)
        most[i] = np.sort(own - np.einsum("ar,nab,br->n", basis, matrices, basis))[-2]
    return most


def _drawn(rows: Array, weights: Array, share: float, rng: np.random.Generator) -> Array:
    """Second moments of groups that have this share of the rows; (draws, d, d)."""
    d = rows.shape[1]
    most_parts = min(_PARTS, _MOST_NUMBERS // (_DRAWS * d * d))
    n = max(round(len(rows) * share), 1)
    size = max(n // most_parts, 1)
    n_parts = round(n / size)
    n_all = min(len(rows) // size, n_parts * _DRAWS)
    parts = rows[: n_all * size].reshape(n_all, size, d)
    scatters = (parts.transpose(0, 2, 1) @ parts).reshape(n_all, -1)
    sums = weights[: n_all * size].reshape(n_all, size).sum(axis=1)
    chosen = rng.permuted(np.tile(np.arange(n_all) < n_parts, (_DRAWS, 1)), axis=1) * 1.0
    return np.asarray((chosen @ scatters / (chosen @ sums)[:, None]).reshape(-1, d, d))


def _far_out(squares: Array, step: int) -> float | None:
    """The squared norm beyond which rows are far out; None where they do not decide.

    They do where tails fall off as a power, with a small exponent (Hill, 1975).
    """
    tail = len(squares) // _TAIL
    beyond = max(_FAR // step, 1)
    if step == 1 or tail <= beyond:
        return None
    largest = np.sort(np.partition(squares, -tail - 1)[-tail - 1 :])
    if not largest[0] > 0.0 or 2.0 / np.log(largest[1:] / largest[0]).mean() > _LIGHT:
        return None
    return float(largest[-beyond])

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
from numpy.typing import NDArray

from fairpca._linalg.dense import eigh_descending
from fairpca._linalg.types import Array
from fairpca.estimators.gather import Gathered
from fairpca.problem import Problem

_DRAWS, _ENOUGH = (4, 8, 27, 40), 4
"""How many groups are drawn, one lot after the other, until so many have a larger disparity. Among
80 that are drawn at random one has one of the four largest disparities once in 20 times."""

_HOPELESS = 39
"""After so many of which none has a larger disparity, four of all will hardly have one."""

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
        return self.every(_ROWS)

    def every(self, n: int) -> int:
        """The step at which there are at most n rows."""
        return -(-int(self._rows.shape[0]) // n)

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
        weights, root = self.gathered.weights, np.sqrt(self.unit)
        for start in range(0, n, step * _BLOCK):
            part = slice(start, start + step * _BLOCK, step)
            found = rows[part].toarray() if scipy.sparse.issparse(rows) else rows[part]
            # By rows, whatever their order was, as they are taken one by one.
            block = np.subtract(found, mean, out=np.empty(found.shape))
            if self.problem.centering == "group":
                codes = np.asarray(self.gathered.codes)
                block -= self.problem.moments.offsets[codes[part], :d]
            block /= root
            yield block, np.ones(len(block)) if weights is None else weights[part]

    def shuffled(self) -> tuple[Array, Array]:
        """Rows times the roots of their weights, and these; those without weight are left out.

        The rows of each block are in random order, which is much faster than to shuffle all.
        """
        rng = np.random.default_rng(0)
        shuffled = []
        for block, weights in self.blocks():
            some = rng.permutation(np.flatnonzero(weights))
            rows, chosen = block[some], weights[some]
            if self.gathered.weights is not None:
                rows *= np.sqrt(chosen)[:, None]
            shuffled.append((rows, chosen))
        rows, weights = (np.concatenate(parts) for parts in zip(*shuffled, strict=True))
        return rows, weights

    def beyond(self, square: float) -> tuple[Array, Array]:
        """Of all rows those whose squared norm is larger, weighted."""
        found, weighing = [], []
        for block, weights in self.blocks(step=1):
            far = weights * np.einsum("ij,ij->i", block, block) > square
            if far.any():
                found.append(block[far] * np.sqrt(weights[far])[:, None])
                weighing.append(weights[far])
        return np.concatenate(found), np.concatenate(weighing)


@dataclass(frozen=True, eq=False)
class RandomGroups:
    """Rows that groups are drawn from, shuffled by blocks, and what ordinary PCA keeps of them.

    Each of the rows stands for `step` rows, one that is far out for itself alone.
    """

    rows: Array
    weights: Array
    far: Array
    of_far: Array
    step: int
    effective: float
    all_weight: float
    basis: Array

    @classmethod
    def from_rows(cls, some: SomeRows, r: int) -> "RandomGroups | None":
        """Groups of some rows; None where none of them has weight."""
        rows, weights = some.shuffled()
        if not len(rows):
            return None
        effective = float(weights.sum() ** 2 / (weights @ weights))
        far, of_far = rows[:0], weights[:0]
        basis = some.problem.pca_basis[: rows.shape[1]]
        all_weight = float(weights.sum())
        if some.step > 1:
            squares = np.einsum("ij,ij->i", rows, rows)
            limit = _far_out(squares, some.step)
            if limit is not None:
                far, of_far = some.beyond(limit)
                rows, weights = rows[squares <= limit], weights[squares <= limit]
            all_weight = float(some.step * weights.sum() + of_far.sum())
            total = (some.step * (rows.T @ rows) + far.T @ far) / all_weight
            basis = eigh_descending(total)[1][:, :r]
        return cls(rows, weights, far, of_far, some.step, effective, all_weight, basis)

    def disparities(self, t: float) -> Iterator[Array]:
        """Disparities of groups with the noise t, one lot after the other.

        Of N rows ``1 / (t + 1 / N)`` have this noise; with weights N is the effective number.
        """
        rng = np.random.default_rng(1)
        parts, sums, n_parts = _parts(self.rows, self.weights, 1.0 / (1.0 + t * self.effective))
        d, r = self.basis.shape
        share = 1.0 / (1.0 + t * self.step * self.effective)
        for n_draws in _DRAWS:
            some = np.tile(np.arange(len(parts)) < n_parts, (n_draws, 1))
            chosen = rng.permuted(some, axis=1).astype(np.float64)
            matrices = (chosen @ parts / (chosen @ sums)[:, None]).reshape(-1, d, d)
            if len(self.far):
                drawn = rng.random((n_draws, len(self.far))) < share
                group_weight = self.all_weight * share
                matrices *= np.maximum(1.0 - drawn @ self.of_far / group_weight, 0.0)[:, None, None]
                for matrix, them in zip(matrices, drawn, strict=True):
                    matrix += self.far[them].T @ self.far[them] / group_weight
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
    for disparities in groups.disparities(t):
        n_above += int((disparities >= level).sum())
        n_drawn += len(disparities)
        if n_above >= _ENOUGH or (n_above == 0 and n_drawn >= _HOPELESS):
            break
    return n_above >= _ENOUGH


def _parts(rows: Array, weights: Array, share: float) -> tuple[Array, Array, int]:
    """Sums of products and of weights of parts of the rows, and how many have this share of all."""
    d = rows.shape[1]
    most_parts = min(_PARTS, _MOST_NUMBERS // (sum(_DRAWS) * d * d))
    n = max(round(len(rows) * share), 1)
    size = max(n // most_parts, 1)
    n_parts = round(n / size)
    n_all = min(len(rows) // size, n_parts * sum(_DRAWS))
    # Each part has rows of all blocks, so that their order does not matter.
    apart = len(rows) // (n_all * size)
    parts = rows[::apart][: n_all * size].reshape(size, n_all, d)
    products = (parts.transpose(1, 2, 0) @ parts.transpose(1, 0, 2)).reshape(n_all, -1)
    return products, weights[::apart][: n_all * size].reshape(size, n_all).sum(axis=0), n_parts


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
    return float(largest[-beyond])

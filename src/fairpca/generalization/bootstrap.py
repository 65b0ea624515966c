"""How surely the rows at hand tell how well off the groups are: bootstrap intervals.

The rows of each group are drawn anew, with replacement, and the group's own best subspace is found
again; the subspaces that are judged stay as they are. The own subspace of a small group fits it too
well, so its disparity is overstated. The intervals allow for that: their middle is the estimate
minus the bootstrap's estimate of its bias (Efron and Tibshirani, 1993), and they reach as far as
t standard errors and half that bias, which is itself only known roughly; t is Student's, for as
many rows as there are. A loss is a mean of squares, which a few rows can dominate, and a small
sample without them understates it: its interval is one of its logarithm, and reaches further
upwards where the draws are skewed (after Johnson, 1978, but on that side alone). Means of
differences between losses, which nothing was fitted to, reach further on the side of their skew.
studies/interval_coverage.md says how often they hold the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import stdtrit

from fairpca._linalg.dense import BLOCK_VALUES
from fairpca._linalg.types import NEGLIGIBLE, Array
from fairpca.data import GroupedData
from fairpca.measures import AffineMeasure
from fairpca.problem import Problem
from fairpca.validation import check_whole_number

SEED = 0
"""Of the draws, where none is given."""

_PIECES, _FEWEST_PIECES = 400, 50
"""A group with more rows is drawn in this many blocks of random rows, which gives the same spread
of results."""

_COLUMNS, _MORE_COLUMNS = 100, 20
"""With more columns, a group's own subspace is looked for among its leading directions only: so
many, or twice the dimension and this many more."""

_POWER_STEPS = 4
"""Steps of a power iteration that looks for those beside its own subspace, which is known."""

_LARGEST_STACK = 2**26
"""Bytes that one stack of second moments may take."""

NO_VARIANCE = NEGLIGIBLE
"""Variance of a group, relative to the largest one, that is rounding: it has no shares."""

CONFIDENCE = 0.95
"""How often intervals hold the truth."""


_SKEW, _LOG_SKEW = 3.0, 2.6
"""How much more skewed than the draws of a small sample rows with heavy tails are, so that 92 % of
the intervals hold the truth (studies/interval_coverage.md); on the scale of logarithms less is
enough."""


def few_rows(n_components: int) -> int:
    """Rows below which no interval is given: the bootstrap would promise too much."""
    return max(30, 5 * n_components)


def check_resamples(n_resamples: object) -> int:
    """The number of draws, 0 for none; raise ValueError for what is no such number."""
    check_whole_number("n_resamples", n_resamples, least=0)
    if n_resamples == 1:
        raise ValueError("n_resamples must be 0 or at least 2: one draw has no spread.")
    return int(n_resamples)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Where measures lie with about 95 % confidence; nan where that cannot be said.

    Attributes
    ----------
    low, high : arrays of shape (m, k)
        For each of m subspaces and each of k groups.
    draws : array of shape (m, k, n_resamples)
        Measures of the rows drawn anew minus those of the rows at hand; nan for groups that are
        too small.
    quantiles : array of shape (k,)
        Of Student's t distribution, for each group's number of rows.
    """

    low: Array
    high: Array
    draws: Array
    quantiles: Array


def difference_interval(
    estimates: Array, draws: Array, quantiles: Array, i: int, j: int
) -> tuple[float, float]:
    """Where the number of group i minus that of group j lies.

    The two may have been picked for their difference: the interval is one of a family that holds
    for all pairs of groups together.
    """
    middle, error, doubt = _parts(estimates[i] - estimates[j], draws[i] - draws[j])
    # Over draws, the largest deviation of any difference between two groups.
    known = draws[np.isfinite(draws).all(axis=1)]
    largest = np.zeros(draws.shape[1])
    for k in range(len(known) - 1):
        others = known[k] - known[k + 1 :]
        errors = others.std(axis=1, ddof=1, keepdims=True)
        deviations = np.abs(others - others.mean(axis=1, keepdims=True))
        np.divide(deviations, errors, where=errors > 0, out=deviations)
        largest = np.maximum(largest, deviations.max(axis=0))
    one = max(float(quantiles[i]), float(quantiles[j]))
    reach = max(float(np.quantile(largest, CONFIDENCE)), one) * float(error) + float(doubt)
    return float(middle) - reach, float(middle) + reach


def unbiased_ends(
    estimates: Array, draws: Array, quantiles: Array, least: float, most: float
) -> tuple[Array, Array]:
    """Low and high ends for numbers that may be biased, and lie between `least` and `most`."""
    middle, error, doubt = _parts(estimates, draws)
    middle, reach = np.clip(middle, least, most), quantiles * error + doubt
    return np.clip(middle - reach, least, most), np.clip(middle + reach, least, most)


def loss_ends(estimates: Array, draws: Array, quantiles: Array) -> tuple[Array, Array]:
    """Low and high ends for means of what is not negative."""
    error = draws.std(axis=-1, ddof=1)
    share = np.divide(error, estimates, out=np.zeros_like(error), where=estimates > 0.0)
    further = _LOG_SKEW * np.maximum(_skew_reach(draws, quantiles), 0.0)
    return estimates * np.exp(-quantiles * share), estimates * np.exp((quantiles + further) * share)


def mean_ends(estimates: Array, draws: Array, quantiles: Array) -> tuple[Array, Array]:
    """Low and high ends for means of any numbers, such as differences between losses."""
    error, further = draws.std(axis=-1, ddof=1), _SKEW * _skew_reach(draws, quantiles)
    below, above = quantiles - np.minimum(further, 0.0), quantiles + np.maximum(further, 0.0)
    return estimates - below * error, estimates + above * error


def _skew_reach(draws: Array, quantiles: Array) -> Array:
    """How many standard errors further intervals reach where draws are skewed, in that direction.

    The far end of a skewed mean is where a small sample, without the few rows that have much of
    it, says too little.
    """
    error = draws.std(axis=-1, ddof=1)
    cubes = ((draws - draws.mean(axis=-1, keepdims=True)) ** 3).mean(axis=-1)
    skewness = np.divide(cubes, error**3, out=np.zeros_like(error), where=error > 0.0)
    reach: Array = skewness * (1.0 + 2.0 * quantiles**2) / 6.0
    return reach


def _parts(estimates: Array, draws: Array) -> tuple[Array, Array, Array]:
    """The estimates minus their bias, their standard errors, and how unsure the bias is."""
    bias = draws.mean(axis=-1)
    return estimates - bias, draws.std(axis=-1, ddof=1), np.abs(bias) / 2


def measure_intervals(
    problem: Problem,
    grouped_data: GroupedData,
    bases: Sequence[Array],
    n_resamples: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> Intervals:
    """Intervals of the measures in each of the subspaces."""
    k, center, measure = problem.n_groups, problem.moments.total_mean, problem.goal.measured
    draws, quantiles = np.full((len(bases), k, n_resamples), np.nan), np.full(k, np.nan)
    beside = np.hstack(bases).T
    for group, seed in enumerate(group_seeds(rng, k)):
        members = np.flatnonzero(grouped_data.members(group))
        if len(members) >= few_rows(problem.n_components):
            blocks = own_blocks(problem, group, seed)
            for _, part, weights in centred_blocks(grouped_data, members, center):
                kept = np.square(beside @ part.T).reshape(len(bases), -1, len(part)).sum(axis=1)
                blocks.add(part, weights, [np.square(part).sum(axis=1), *kept])
            (trace, *kept), own = blocks.resampled(n_resamples)
            trace = np.where(trace > NO_VARIANCE * problem.traces.max(), trace, 0.0)
            affine = AffineMeasure.of(measure, trace, own, np.ones_like(trace))
            found = affine.values(np.array(kept))
            draws[:, group] = found[:, 1:] - found[:, :1]
            quantiles[group] = blocks.quantile
        if progress is not None:
            progress(group + 1, k)
    measures = np.array([problem.measures(basis) for basis in bases])
    # Nobody loses less than nothing, or keeps less; no share is more than all.
    most = 1.0 if measure.relative else np.inf
    if measure.is_disparity:
        low, high = unbiased_ends(measures, draws, quantiles, 0.0, most)
    else:
        sign = measure.sign
        ends = loss_ends(sign * measures, sign * draws, quantiles)
        low, high = np.sort(sign * np.minimum(ends, most), axis=0)
    return Intervals(low, high, draws, quantiles)


def own_blocks(problem: Problem, group: int, seed: int) -> BootstrapBlocks:
    """Blocks of rows of a group of a problem, whose own subspace is to be found again."""
    matrix = problem.weighted_sum(np.eye(problem.n_groups)[group])
    return BootstrapBlocks(
        int(problem.moments.count[group]),
        seed,
        n_components=problem.n_components,
        directions=leading_directions(matrix, problem.own_subspaces[group], seed),
    )


def leading_directions(matrix: Array, known: Array, seed: int) -> Array:
    """Directions in which a subspace is looked for: all, or with many columns the leading ones.

    `known` are the first ones, (d, r); the others are found by a power iteration.
    """
    d, r = known.shape
    width = max(_COLUMNS, 2 * r + _MORE_COLUMNS)
    directions = np.eye(d)
    if d > width:
        others = np.random.default_rng(seed).normal(size=(d, width - r))
        for _ in range(_POWER_STEPS):
            directions = np.linalg.qr(np.hstack([known, matrix @ others]))[0]
            others = directions[:, r:]
    return directions


def group_seeds(rng: np.random.Generator, k: int) -> list[int]:
    """A seed for each group, so that the draws of one do not depend on the rows of others."""
    return [int(seed) for seed in rng.integers(2**62, size=k)]


def centred_blocks(
    grouped_data: GroupedData, members: NDArray[np.int64], center: Array
) -> Iterator[tuple[NDArray[np.int64], Array, Array]]:
    """Some of all rows in blocks: which they are, themselves from the centre, and their weights."""
    rows, weights = grouped_data.rows, grouped_data.weights
    step = max(1, BLOCK_VALUES // len(center))
    for begin in range(0, len(members), step):
        some = members[begin : begin + step]
        block = rows[some]
        dense = block.toarray() if scipy.sparse.issparse(block) else block
        known = np.ones(len(some)) if weights is None else weights[some]
        yield some, np.asarray(dense, np.float64) - center, known


class BootstrapBlocks:
    """Parts of a group's rows that are drawn as a whole, as sums about one centre.

    Parameters
    ----------
    n_rows : int
        How many rows there will be.
    seed : int
        Of all that is random; batches of any size give the same.
    n_components, directions : int and array of shape (d, width), default=None
        Where the rows' own subspaces are looked for, if they are.
    """

    def __init__(
        self,
        n_rows: int,
        seed: int,
        *,
        n_components: int = 0,
        directions: Array | None = None,
    ) -> None:
        self._rng, self._r = np.random.default_rng(seed), n_components
        self._directions = np.zeros((0, 0)) if directions is None else directions
        width = self._directions.shape[1]
        limit = _LARGEST_STACK // (8 * max(width, 1) ** 2)
        count = self._most = min(int(np.clip(limit, _FEWEST_PIECES, _PIECES)), n_rows)
        self._n_rows, self._weight_squares = 0, 0.0
        self._weight = np.zeros(count)
        self._values: Array = np.zeros(())
        self._second = np.zeros((count, width * width))

    def add(self, rows: Array, weights: Array, values: Sequence[Array] | Array) -> None:
        """Take further rows, from the centre, and what comes with each of them."""
        n, most = len(rows), self._most
        alone = int(np.clip(most - self._n_rows, 0, n))
        others = (self._rng.random(n - alone) * most).astype(np.int64)
        into = np.concatenate([np.arange(self._n_rows, self._n_rows + alone), others])
        self._n_rows += n
        self._weight += np.bincount(into, weights, most)
        self._weight_squares += float(np.square(weights).sum())
        sums = [np.bincount(into, weights * value, most) for value in values]
        self._values = self._values + np.array(sums)
        if not self._second.size or not n:
            return
        order = np.argsort(into, kind="stable")
        found, starts = np.unique(into[order], return_index=True)
        inside = (rows @ self._directions * np.sqrt(weights)[:, None])[order]
        for piece, part in zip(found, np.split(inside, starts[1:]), strict=True):
            self._second[piece] += (part.T @ part).ravel()

    @property
    def quantile(self) -> float:
        """How many standard errors an interval reaches."""
        rows = float(self._weight.sum()) ** 2 / self._weight_squares
        return float(stdtrit(max(min(rows, self._most) - 1.0, 1.0), (1.0 + CONFIDENCE) / 2.0))

    def resampled(self, n_resamples: int) -> tuple[Array, Array]:
        """The blocks summed up: first as they are, then drawn with replacement, B times.

        Returns means of the values of rows, (q, 1 + B), and what the rows keep in their own best
        subspaces, (1 + B,), which is nan where these are not looked for.
        """
        n = self._most
        step = max(_LARGEST_STACK // (8 * max(self._second.shape[1], 1)), 1)
        times = [np.ones((1, n))]
        for begin in range(0, n_resamples, step):
            size = min(step, n_resamples - begin)
            times.append(self._rng.multinomial(n, np.full(n, 1.0 / n), size=size).astype(float))
        own_gains = np.hstack([self._own_gains(some) for some in times])
        every = np.vstack(times)
        return self._values @ every.T / (every @ self._weight), own_gains

    def _own_gains(self, times: Array) -> Array:
        """What rows keep in their own subspaces, where each piece is there this many times."""
        width = self._directions.shape[1]
        if not width:
            return np.full(len(times), np.nan)
        weight = (times @ self._weight)[:, None]
        matrices = (times @ self._second / weight).reshape(-1, width, width)
        return np.asarray(np.linalg.eigvalsh(matrices)[:, -self._r :].sum(axis=1))

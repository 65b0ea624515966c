"""How surely the rows at hand tell how well off the groups are: bootstrap intervals of measures.

The rows of each group are drawn anew, with replacement, and the group's own best subspace is found
again; the subspaces that are judged stay as they are. The own subspace of a small group fits it too
well, so its disparity is overstated. The intervals allow for that: their middle is the estimate
minus the bootstrap's estimate of its bias (Efron and Tibshirani, 1993), and they reach as far as
1.96 standard errors and half that bias, which is itself only known roughly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.estimators.gather import Gathered
from fairpca.problem import Problem

_PIECES, _FEWEST_PIECES = 400, 50
"""A group with more rows is drawn in this many pieces of random rows, which gives the same spread
of results."""

_COLUMNS, _MORE_COLUMNS = 100, 20
"""With more columns, a group's own subspace is looked for among its leading directions only: so
many, or twice the dimension and so many more."""

_LARGEST_STACK = 2**26
"""Bytes that one stack of second moments may take."""

NO_VARIANCE = 1e-12
"""Variance of a group, relative to the largest one, that is rounding: it has no shares."""

_QUANTILE = 1.959964
"""Of the normal distribution, for 95 % between its two ends."""


def few_rows(n_components: int) -> int:
    """Rows below which no interval is given: the bootstrap would promise too much."""
    return max(30, 5 * n_components)


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
    """

    low: Array
    high: Array
    draws: Array

    def of_difference(self, measures: Array, subspace: int, i: int, j: int) -> tuple[float, float]:
        """Where the measure of group i minus that of group j lies, in one subspace.

        The two may have been picked for their difference: the interval is one of a family that
        holds for all pairs of groups together.
        """
        draws = self.draws[subspace]
        middle, error, doubt = _parts(measures[i] - measures[j], draws[i] - draws[j])
        # Over draws, the largest deviation of any difference between two groups.
        known = draws[np.isfinite(draws).all(axis=1)]
        largest = np.zeros(draws.shape[1])
        for k in range(len(known) - 1):
            others = known[k] - known[k + 1 :]
            errors = others.std(axis=1, ddof=1, keepdims=True)
            deviations = np.abs(others - others.mean(axis=1, keepdims=True))
            np.divide(deviations, errors, where=errors > 0, out=deviations)
            largest = np.maximum(largest, deviations.max(axis=0))
        reach = max(float(np.quantile(largest, 0.95)), _QUANTILE) * float(error) + float(doubt)
        return float(middle) - reach, float(middle) + reach


def measure_intervals(
    problem: Problem,
    gathered: Gathered,
    bases: Sequence[Array],
    n_resamples: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> Intervals:
    """Intervals of the measures in each of the subspaces."""
    k, r = problem.n_groups, problem.n_components
    n = gathered.rows.shape[0]
    weights = np.ones(n) if gathered.weights is None else gathered.weights
    draws = np.full((len(bases), k, n_resamples), np.nan)
    for group in range(k):
        members = np.flatnonzero(gathered.members(group))
        if len(members) >= few_rows(r):
            rows = gathered.rows[members]
            pieces = _Pieces(problem, group, rows, weights[members], bases, rng)
            draws[:, group] = pieces.draws(n_resamples, rng)
        if progress is not None:
            progress(group + 1, k)
    measures = np.array([problem.measures(basis) for basis in bases])
    middle, error, doubt = _parts(measures, draws)
    # Nobody loses less than nothing, or keeps less; no share is more than all.
    most = 1.0 if problem.relative else np.inf
    least, most = (-most, 0.0) if problem.measure == "variance" else (0.0, most)
    middle, reach = np.clip(middle, least, most), _QUANTILE * error + doubt
    low, high = np.clip(middle - reach, least, most), np.clip(middle + reach, least, most)
    return Intervals(low, high, draws)


def _parts(estimates: Array, draws: Array) -> tuple[Array, Array, Array]:
    """The estimates minus their bias, their standard errors, and how unsure the bias is."""
    bias = draws.mean(axis=-1)
    return estimates - bias, draws.std(axis=-1, ddof=1), np.abs(bias) / 2


class _Pieces:
    """Parts of a group's rows that are drawn as a whole, as sums about the problem's center."""

    def __init__(
        self,
        problem: Problem,
        group: int,
        rows: Any,
        weights: Array,
        bases: Sequence[Array],
        rng: np.random.Generator,
    ) -> None:
        self._r, self._bases = problem.n_components, bases
        self._measure, self._relative = problem.measure, bool(problem.relative)
        self._moving_center = problem.centering == "group"
        self._scale = problem.moments.weight[group] if problem.loss == "sum" else 1.0
        self._least = NO_VARIANCE * float(problem.traces.max()) / self._scale
        center = problem.moments.total_mean
        width = max(_COLUMNS, 2 * problem.n_components + _MORE_COLUMNS)
        self._directions = np.eye(len(center))
        if len(center) > width:
            self._directions = leading_eigenpairs(problem.matrices[group], width)[1]
        width = self._directions.shape[1]
        most = int(np.clip(_LARGEST_STACK // (8 * width**2), _FEWEST_PIECES, _PIECES))
        n = rows.shape[0]
        order, count = rng.permutation(n), min(n, most)
        beside = np.hstack(bases)
        self.weight = np.empty(count)
        self.first = np.empty((count, len(center)))
        self.second = np.empty((count, width * width))
        self.trace = np.empty(count)
        self.kept = np.empty((len(bases), count))
        for i in range(count):
            members = order[i::count]
            part = rows[members]
            part = np.asarray(part.toarray() if scipy.sparse.issparse(part) else part, np.float64)
            part = part - center
            self.weight[i] = weights[members].sum()
            self.first[i] = weights[members] @ part
            part *= np.sqrt(weights[members])[:, None]
            self.trace[i] = np.square(part).sum()
            inside = part @ self._directions
            self.second[i] = (inside.T @ inside).ravel()
            squares = np.square(part @ beside).sum(axis=0)
            self.kept[:, i] = squares.reshape(len(bases), -1).sum(axis=1)

    def draws(self, n_resamples: int, rng: np.random.Generator) -> Array:
        """Measures of pieces drawn anew minus those of the pieces at hand; (m, n_resamples)."""
        n = len(self.weight)
        step = max(_LARGEST_STACK // (8 * self.second.shape[1]), 1)
        parts = []
        for begin in range(0, n_resamples, step):
            size = min(step, n_resamples - begin)
            times = rng.multinomial(n, np.full(n, 1.0 / n), size=size).astype(np.float64)
            parts.append(self._measures(times))
        return np.hstack(parts) - self._measures(np.ones((1, n)))

    def _measures(self, times: Array) -> Array:
        """Measures of rows in which each piece is there so many times; (m, len(times))."""
        weight = times @ self.weight
        trace, kept = times @ self.trace / weight, self.kept @ times.T / weight
        mean = times @ self.first / weight[:, None]
        if self._moving_center:
            trace = trace - np.square(mean).sum(axis=1)
            kept -= [np.square(mean @ basis).sum(axis=1) for basis in self._bases]
        constant = {"loss": trace, "variance": np.zeros_like(trace)}.get(self._measure)
        if constant is None:
            constant = self._own_gains(times, weight, mean)
        unit = np.full_like(trace, 1.0 / self._scale)
        if self._relative:
            unit = np.where(trace > self._least, trace, 1.0)
        measures: Array = (constant - kept) / unit
        return measures

    def _own_gains(self, times: Array, weight: Array, mean: Array) -> Array:
        """What the rows keep in their own best subspaces."""
        width = self._directions.shape[1]
        matrices = (times @ self.second / weight[:, None]).reshape(-1, width, width)
        if self._moving_center:
            inside = mean @ self._directions
            matrices -= inside[:, :, None] * inside[:, None, :]
        gains: Array = np.linalg.eigvalsh(matrices)[:, -self._r :].sum(axis=1)
        return gains

"""How surely the rows at hand tell what the groups lose: bootstrap intervals of disparities.

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

_QUANTILE = 1.959964
"""Of the normal distribution, for 95 % between its two ends."""


def few_rows(n_components: int) -> int:
    """Rows below which no interval is given: the bootstrap would promise too much."""
    return max(30, 5 * n_components)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Where disparities lie with about 95 % confidence; nan where that cannot be said.

    Attributes
    ----------
    low, high : arrays of shape (m, k)
        For each of m subspaces and each of k groups.
    draws : array of shape (m, k, n_resamples)
        Disparities of the rows drawn anew minus those of the rows at hand; nan for groups that are
        too small.
    """

    low: Array
    high: Array
    draws: Array

    def of_difference(
        self, disparities: Array, subspace: int, i: int, j: int
    ) -> tuple[float, float]:
        """Where the disparity of group i minus that of group j lies, in one subspace.

        The two may have been picked for their difference: the interval is one of a family that
        holds for all pairs of groups together.
        """
        draws = self.draws[subspace]
        middle, error, doubt = _parts(disparities[i] - disparities[j], draws[i] - draws[j])
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


def disparity_intervals(
    problem: Problem,
    gathered: Gathered,
    bases: Sequence[Array],
    n_resamples: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> Intervals:
    """Intervals of the disparities in each of the subspaces."""
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
    disparities = np.array([problem.disparities(basis) for basis in bases])
    middle, error, doubt = _parts(disparities, draws)
    middle = np.maximum(middle, 0.0)  # as disparities are
    reach = _QUANTILE * error + doubt
    return Intervals(np.maximum(middle - reach, 0.0), middle + reach, draws)


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
        self._moving_center = problem.centering == "group"
        self._scale = problem.moments.weight[group] if problem.loss == "sum" else 1.0
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
        self.kept = np.empty((len(bases), count))
        for i in range(count):
            members = order[i::count]
            part = rows[members]
            part = np.asarray(part.toarray() if scipy.sparse.issparse(part) else part, np.float64)
            part = part - center
            self.weight[i] = weights[members].sum()
            self.first[i] = weights[members] @ part
            part *= np.sqrt(weights[members])[:, None]
            inside = part @ self._directions
            self.second[i] = (inside.T @ inside).ravel()
            squares = np.square(part @ beside).sum(axis=0)
            self.kept[:, i] = squares.reshape(len(bases), -1).sum(axis=1)

    def draws(self, n_resamples: int, rng: np.random.Generator) -> Array:
        """Disparities of pieces drawn anew minus those of the pieces at hand; (m, n_resamples)."""
        n = len(self.weight)
        step = max(_LARGEST_STACK // (8 * self.second.shape[1]), 1)
        parts = []
        for begin in range(0, n_resamples, step):
            size = min(step, n_resamples - begin)
            times = rng.multinomial(n, np.full(n, 1.0 / n), size=size).astype(np.float64)
            parts.append(self._disparities(times))
        return np.hstack(parts) - self._disparities(np.ones((1, n)))

    def _disparities(self, times: Array) -> Array:
        """Disparities of rows in which each piece is there so many times; (m, len(times))."""
        weight = times @ self.weight
        width = self._directions.shape[1]
        matrices = (times @ self.second / weight[:, None]).reshape(-1, width, width)
        kept = self.kept @ times.T / weight
        if self._moving_center:
            mean = times @ self.first / weight[:, None]
            inside = mean @ self._directions
            matrices -= inside[:, :, None] * inside[:, None, :]
            kept -= [np.square(mean @ basis).sum(axis=1) for basis in self._bases]
        own = np.linalg.eigvalsh(matrices)[:, -self._r :].sum(axis=1)
        disparities: Array = self._scale * (own - kept)
        return disparities

"""How surely the rows at hand tell what the groups lose: bootstrap intervals of disparities.

The rows of each group are drawn anew, with replacement, and the group's own best subspace is found
again; the subspaces that are judged stay as they are. The own subspace of a small group fits it too
well, so its disparity is overstated. The intervals allow for that: they are the bootstrap's
standard error around the estimate less the bootstrap's estimate of its bias (Efron and Tibshirani,
1993).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from fairpca._groups import Codes
from fairpca.linalg import Array, extend_span, leading_eigenpairs
from fairpca.problem import Problem

_PIECES = 400
"""A group with more rows is drawn in this many pieces of random rows, which gives the same spread
of results and does not cost more for more rows."""

_MOST_COLUMNS = 200
"""With more columns, rows are first projected on the span of all the subspaces that matter."""

_LARGEST_STACK = 2**26
"""Bytes that the second moments of one batch of draws may take."""

_QUANTILE = 1.959964
"""Of the normal distribution, for 95 % between its two ends."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Where disparities lie with 95 % confidence; nan for groups of which that cannot be said.

    Attributes
    ----------
    low, high : arrays of shape (m, k)
        For each of m subspaces and each of k groups.
    draws : array of shape (m, k, n_resamples)
        Disparities of the rows drawn anew less those of the rows at hand.
    """

    low: Array
    high: Array
    draws: Array

    def of_difference(
        self, disparities: Array, subspace: int, i: int, j: int
    ) -> tuple[float, float]:
        """Where the disparity of group i less that of group j lies, in one subspace."""
        draws = self.draws[subspace, i] - self.draws[subspace, j]
        middle, reach = _interval(disparities[i] - disparities[j], draws)
        return float(middle - reach), float(middle + reach)


def disparity_intervals(
    problem: Problem,
    rows: Any,
    codes: Codes,
    weights: Array | None,
    bases: Sequence[Array],
    n_resamples: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Intervals:
    """Intervals of the disparities in each of the subspaces.

    `codes` has the position of each row's group among the problem's groups; other rows have -1.
    """
    k, r = problem.n_groups, problem.n_components
    disparities = np.array([problem.disparities(basis) for basis in bases])
    center = problem.moments.total_mean
    if problem.moments.n_features > _MOST_COLUMNS:
        span = _span_of_all(problem, bases)
        rows, center = rows @ span, center @ span
        bases = [span.T @ basis for basis in bases]
    projectors = np.array([(basis @ basis.T).ravel() for basis in bases])
    draws = np.empty((len(bases), k, n_resamples))
    for group in range(k):
        members = np.flatnonzero(codes == group)
        pieces = _Pieces.of(
            rows[members], None if weights is None else weights[members], center, rng
        )
        scale = problem.moments.weight[group] if problem.loss == "sum" else 1.0

        def judge(times: Array, pieces: _Pieces = pieces, scale: float = scale) -> Array:
            matrices = scale * pieces.second_moments(times, problem.centering)
            own = np.linalg.eigvalsh(matrices)[:, -r:].sum(axis=1)
            judged: Array = own - projectors @ matrices.reshape(len(times), -1).T
            return judged

        n = len(pieces.weight)
        at_hand = judge(np.ones((1, n)))
        step = max(_LARGEST_STACK // (8 * len(center) ** 2), 1)
        for begin in range(0, n_resamples, step):
            stop = min(begin + step, n_resamples)
            times = rng.multinomial(n, np.full(n, 1.0 / n), size=stop - begin).astype(np.float64)
            times[times @ pieces.weight == 0.0] = 1.0  # only rows without weight were drawn
            draws[:, group, begin:stop] = judge(times) - at_hand
            progress(group * n_resamples + stop, k * n_resamples)
        if n == 1:
            draws[:, group] = np.nan
    middle, reach = _interval(disparities, draws)
    middle = np.maximum(middle, 0.0)  # as disparities are
    return Intervals(np.maximum(middle - reach, 0.0), middle + reach, draws)


def _interval(estimates: Array, draws: Array) -> tuple[Array, Array]:
    """The middle of each interval, which allows for bias, and how far it reaches."""
    return estimates - draws.mean(axis=-1), _QUANTILE * draws.std(axis=-1, ddof=1)


def _span_of_all(problem: Problem, bases: Sequence[Array]) -> Array:
    """Orthonormal columns that span the subspaces and the leading directions of each group.

    What a group's own subspace turns to when its rows are drawn anew lies mostly in the latter.
    """
    span = bases[0]
    d, more = len(span), 2 * problem.n_components
    for matrix in problem.matrices:
        leading = leading_eigenpairs(matrix, min(more, d))[1]
        span = np.hstack([span, extend_span(span, leading)])
    for basis in bases[1:]:
        span = np.hstack([span, extend_span(span, basis)])
    return span


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Parts of a group's rows that are drawn as a whole: their sums about a fixed center."""

    weight: Array
    first: Array
    second: Array

    @classmethod
    def of(
        cls, rows: Any, weights: Array | None, center: Array, rng: np.random.Generator
    ) -> _Pieces:
        n, d = rows.shape
        order, count = rng.permutation(n), min(n, _PIECES)
        pieces = cls(np.empty(count), np.empty((count, d)), np.empty((count, d * d)))
        for i in range(count):
            members = order[i::count]
            part = rows[members]
            part = np.asarray(part.toarray() if scipy.sparse.issparse(part) else part, np.float64)
            part = part - center
            weighted = part if weights is None else part * weights[members, None]
            pieces.weight[i] = len(part) if weights is None else weights[members].sum()
            pieces.first[i] = weighted.sum(axis=0)
            pieces.second[i] = (weighted.T @ part).ravel()
        return pieces

    def second_moments(self, times: Array, centering: str) -> Array:
        """Second moments of rows in which each piece is there so many times; (m, d, d)."""
        weight = times @ self.weight
        d = self.first.shape[1]
        matrices = (times @ self.second / weight[:, None]).reshape(-1, d, d)
        if centering == "group":
            mean = times @ self.first / weight[:, None]
            matrices -= mean[:, :, None] * mean[:, None, :]
        return matrices

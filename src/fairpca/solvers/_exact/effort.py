"""How much a search may take: the gap that is enough, the time that it has, and who is told."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fairpca.criteria import CLOSED_GAP
from fairpca.problem import Problem

EXPENSIVE = 120
"""Columns beyond which eigenproblems, and so every start, are expensive."""

_EXPENSIVE_GAP = 1e-5
"""The gap at which a search ends there, unless said otherwise: a thousandth of a per cent is far
below what rows can tell."""


def is_expensive(problem: Problem) -> bool:
    """Whether the columns are so many that every start is expensive."""
    return problem.moments.n_features > EXPENSIVE


def small_enough(problem: Problem, gap: float | None) -> float:
    """The gap at which a search ends: that which is asked for, or the problem's usual one."""
    usual = _EXPENSIVE_GAP if is_expensive(problem) else CLOSED_GAP
    return usual if gap is None else max(float(gap), CLOSED_GAP)


class Effort:
    """What a search asks when it could stop, and tells when it has found something.

    Parameters
    ----------
    gap : float
        Gap, relative to the value, that is small enough.
    seconds : float or None
        The time that there is, from now on; None is all that it takes.
    progress : callable or None
        Told the best `bound` and `value` so far; returns whether to stop.
    most : int
        How often it is told, at the most.

    Attributes
    ----------
    stopped_by : str
        What has stopped the search before its end: "time limit", "callback", or nothing.
    """

    def __init__(
        self,
        gap: float = CLOSED_GAP,
        seconds: float | None = None,
        progress: Callable[..., bool] | None = None,
        most: int = 0,
    ) -> None:
        self.gap, self.stopped_by = gap, ""
        self._end = np.inf if seconds is None else time.monotonic() + seconds
        self._progress, self._left = progress, most

    def is_over(self) -> bool:
        """Whether to stop with what there is; once it is so, it stays so."""
        if not self.stopped_by and self._end < np.inf and time.monotonic() >= self._end:
            self.stopped_by = "time limit"
        return bool(self.stopped_by)

    def tell(self, **found: Any) -> None:
        """Say what has been found so far."""
        if self._progress is None or self._left == 0:
            return
        self._left -= 1
        if self._progress(**found):
            self.stopped_by = self.stopped_by or "callback"

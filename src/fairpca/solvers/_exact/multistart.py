"""Local searches from several starts, of which the best counts.

docs/exact_solver.md, section 11.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from fairpca._linalg.dense import eigh_descending
from fairpca._linalg.types import Array
from fairpca.certificate import OPTIMAL_GAP
from fairpca.problem import Problem
from fairpca.solvers._exact.criteria import Criterion
from fairpca.solvers._exact.dual import DualResult
from fairpca.solvers._exact.forms import WholeSpace
from fairpca.solvers._exact.local import LocalResult, refine

CLOSED_GAP = OPTIMAL_GAP / 10
"""Gap, relative to the value, at which a search ends: well within what counts as optimal."""

_ROUNDING_GAP = 1e-13
"""Gap, relative to tr(A), at which a search ends: rounding alone can cause it."""

_PATIENCE = 8
"""With many columns, the starts in a row that bring nothing before the search gives up."""

_GAIN = 1e-9
"""Improvement, relative to tr(A), that a start has to bring to bring something."""

_NOISE = (0.3, 0.1)
"""Sizes, in turn, of the noise that is added to the relaxed projector; its eigenvalues are at
most 1."""

_ABOVE_ALL = 1.000001
"""Factor by which a bound has to exceed the largest possible loss, so that rounding does not."""


def loss_limit(problem: Problem) -> float:
    """What the weighted disparities of no subspace exceed.

    No disparity exceeds what a group could keep, so a bound above that proves that no subspace is
    feasible.
    """
    return _ABOVE_ALL * float(problem.weights @ problem.own_gains)


def own_total(problem: Problem) -> float:
    """The total loss if every group had its own best subspace: disparities come on top."""
    return float(problem.weights @ (problem.traces - problem.own_gains))


def enough(problem: Problem, bound: float, base: float = 0.0) -> float:
    """A value so near its bound that no further start is needed; both count from the base."""
    return bound + max(CLOSED_GAP * (base + bound), _ROUNDING_GAP * problem.scale)


def refine_in(space: WholeSpace, criterion: Criterion, start: Array, weights: Array) -> LocalResult:
    """A local search inside the space, from and to coordinates of the whole space."""
    inside = refine(space.forms, criterion, space.lower(start), weights)
    return replace(inside, basis=space.lift(inside.basis))


class MultiStart:
    """Local searches on one problem, with a record of each added to a history.

    With `near`, the first half of the random starts lies near the relaxed solution.
    """

    def __init__(
        self,
        problem: Problem,
        n_starts: int,
        random_state: int | None,
        history: list[dict[str, Any]],
        *,
        near: bool = True,
    ) -> None:
        self.problem, self.n_starts, self.near = problem, n_starts, near
        self.random_state, self.history = random_state, history

    @cached_property
    def rng(self) -> np.random.Generator:
        """What random starts are drawn from, made when the first is."""
        # None is a fixed seed too: an exact solver should repeat itself.
        return np.random.default_rng(self.random_state or 0)

    def best(
        self,
        space: WholeSpace,
        criterion: Criterion,
        dual: DualResult,
        *,
        value: Callable[[Array], float],
        enough: float,
        most: int | None = None,
        first: Iterable[Array] = (),
    ) -> LocalResult:
        """The best of several local searches, or the first whose value is low enough.

        They begin at the `first` bases, then at the relaxed solution, and so on: see `starts`.
        Bases are in the coordinates of the whole space, which do not change when the search space
        grows.
        """
        best, lowest, in_vain = None, np.inf, 0
        for start in self._all_starts(space, dual, most, first):
            local = refine_in(space, criterion, start, dual.weights)
            reached = value(local.disparities)
            self.record(criterion, local, reached)
            in_vain = 0 if reached < lowest - _GAIN * self.problem.scale else in_vain + 1
            if best is None or reached < lowest:
                best, lowest = local, reached
            if lowest <= enough or (self.problem.is_large and in_vain == _PATIENCE):
                break
        assert best is not None
        return best

    def record(self, criterion: Criterion, local: LocalResult, reached: float) -> None:
        """Add a local search to the history."""
        self.history.append(
            {
                "criterion": type(criterion).__name__,
                "value": reached,
                "spread": float(np.ptp(local.disparities)),
                "steps": local.n_iter,
            }
        )

    def _all_starts(
        self, space: WholeSpace, dual: DualResult, most: int | None, first: Iterable[Array]
    ) -> Iterator[Array]:
        """Those that are given, the relaxed solution, others near it, then any."""
        yield from first
        forms = space.forms
        order = np.argsort(-dual.occupation)
        yield space.lift(dual.vectors[:, order[: forms.r]])
        relaxed = (dual.vectors * dual.occupation) @ dual.vectors.T
        n_starts = self.n_starts if most is None else min(self.n_starts, most)
        for number in range(1, n_starts):
            noise = self.rng.standard_normal((forms.d, forms.d if self.near else forms.r))
            if self.near and number < n_starts // 2:
                shaken = relaxed + _NOISE[number % 2] * (noise + noise.T) / 2
                yield space.lift(eigh_descending(shaken)[1][:, : forms.r])
            else:
                yield space.lift(np.linalg.qr(noise[:, : forms.r])[0])

"""Local searches from several starts, of which the best counts.

docs/exact_solver.md, section 11.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from fairpca._linalg.dense import eigh_descending
from fairpca._linalg.threads import threads_for
from fairpca._linalg.types import Array
from fairpca.criteria import Criterion
from fairpca.problem import Problem
from fairpca.solvers._exact.dual import DualResult
from fairpca.solvers._exact.effort import is_expensive
from fairpca.solvers._exact.forms import WholeSpace
from fairpca.solvers._exact.local import LocalResult, refine

_PATIENCE, _LITTLE_PATIENCE = 4, 2
"""Where starts are expensive, how many in a row bring nothing before the search gives up; and the
same in large problems, and once the search space is wide, to see whether that brings anything."""

_LITTLE_LEFT, _LEAST_PATIENCE = 10.0, 1
"""How many times the gap that is small enough is hardly worth further starts, and not worth a wider
search space; and the patience with such starts."""

_NEAR = 1e-2
"""A gap, relative to the value, up to which searches need not be patient: beyond it every start
counts, and every end that a firm search may come to."""

_SAME_END, _SAME_ROUNDED = 1e-7, 1e-12
"""Difference of values, relative to them, of searches that end in the same place; and relative to
tr(A), if that is more: rounding."""

_GAIN = 1e-9
"""Improvement, relative to tr(A), that a start has to bring to bring something."""

_FIRMNESS = (1.0, 100.0)
"""How firm the searches are, in pairs: soft ones end in few places, and those are good ones."""

_IN_TURN = 2 * len(_FIRMNESS)
"""How many random starts in a row lie near the relaxed solution, and how many anywhere: as many as
there are kinds of searches."""

_NEW = 1e-8
"""Size, relative to the largest, of a direction that the groups' own subspaces have."""

_NOISE = (0.3, 0.1)
"""Sizes, in turn, of the noise that is added to the relaxed projector; its eigenvalues are at
most 1."""


def refine_in(
    space: WholeSpace,
    goal: Criterion,
    start: Array,
    weights: Array,
    firmness: float = 1.0,
    *,
    patient: bool = False,
) -> LocalResult:
    """A local search inside the space, from and to coordinates of the whole space."""
    how: dict[str, Any] = {"firmness": firmness, "effort": space.effort, "patient": patient}
    below = space.lower(start)
    with threads_for(space.forms.d):
        inside = refine(space.forms, goal, below, weights, **how)
    return replace(inside, basis=space.lift(inside.basis))


class MultiStart:
    """Local searches on one problem, with a record of each added to a history."""

    def __init__(
        self,
        problem: Problem,
        n_starts: int,
        random_state: int | None,
        history: list[dict[str, Any]],
    ) -> None:
        self.problem, self.n_starts = problem, n_starts
        self.random_state, self.history = random_state, history

    @cached_property
    def rng(self) -> np.random.Generator:
        """What random starts are drawn from, made when the first is."""
        # None is a fixed seed too: an exact solver should repeat itself.
        return np.random.default_rng(self.random_state or 0)

    @cached_property
    def _own_span(self) -> Array:
        """What the groups' own subspaces span."""
        vectors, sizes, _ = np.linalg.svd(np.hstack(self.problem.own_subspaces), False)
        return np.asarray(vectors[:, sizes > _NEW * sizes[0]])

    def _among_own(self, start: Array) -> Array:
        """What the groups' own subspaces have of a random one: of many columns few matter."""
        inside = self._own_span @ (self._own_span.T @ start)
        return np.linalg.qr(inside)[0] if self._own_span.shape[1] > start.shape[1] else start

    def best(
        self,
        space: WholeSpace,
        goal: Criterion,
        dual: DualResult,
        *,
        most: int | None = None,
        first: Iterable[Array] = (),
        then: Iterable[Array] = (),
    ) -> LocalResult:
        """The best of several local searches, or the first whose value is low enough.

        They begin at the `first` bases, at the relaxed solution, at those that come `then`, and at
        random ones.
        Bases are in the coordinates of the whole space, which do not change when the search space
        grows.
        """
        starts = self._all_starts(space, dual, most, first, then)
        patience = _LITTLE_PATIENCE if self.problem.is_large else _PATIENCE
        best = self._best_of(starts, space, goal, dual, patience)
        left = goal.value(best.measures) > goal.enough(dual.value, _LITTLE_LEFT * space.effort.gap)
        if left and not space.effort.is_over() and space.widen():
            starts = self._all_starts(space, dual, most, [best.basis], ())
            wide = self._best_of(starts, space, goal, dual, _LITTLE_PATIENCE)
            best = min(best, wide, key=lambda local: goal.value(local.measures))
        return best

    def _best_of(
        self,
        starts: Iterable[Array],
        space: WholeSpace,
        goal: Criterion,
        dual: DualResult,
        patience: int,
    ) -> LocalResult:
        best, lowest, in_vain = None, np.inf, 0
        ends: list[float] = []  # those of unmet conditions, which are infinite, count one by one
        enough = goal.enough(dual.value, space.effort.gap)
        nearly = goal.enough(dual.value, _LITTLE_LEFT * space.effort.gap)
        near, expensive = goal.enough(dual.value, _NEAR), is_expensive(self.problem)
        for number, start in enumerate(starts):
            weights = dual.weights
            if number % 2:
                # The weights of the relaxed solution draw all starts to the same few ends.
                weights = goal.weights_at(space.forms.measures(space.lower(start)), weights)
            patient = not (expensive or lowest <= near)
            firmness = _FIRMNESS[number // 2 % 2]
            local = refine_in(space, goal, start, weights, firmness, patient=patient)
            reached = self.record(goal, local)
            in_vain = 0 if reached < lowest - _GAIN * goal.scale else in_vain + 1
            if best is None or reached < lowest:
                best, lowest = local, reached
            same = max(_SAME_END * abs(reached), _SAME_ROUNDED * goal.scale)
            if reached == np.inf or not any(abs(reached - end) <= same for end in ends):
                ends.append(reached)
            space.effort.tell(**self._told(goal, dual.value, lowest))
            most = _LEAST_PATIENCE if lowest <= nearly else patience
            given_up = expensive and lowest < np.inf and in_vain >= most
            seen = (expensive or lowest <= near) and _all_seen(len(ends), number + 1)
            if lowest <= enough or given_up or seen or space.effort.is_over():
                break
        assert best is not None
        return best

    def _told(self, goal: Criterion, bound: float, value: float) -> dict[str, float]:
        """Bound and value as the certificate will have them, if this is what it is about."""
        if value == np.inf or goal.name != self.problem.goal.name:
            return {}
        return {"bound": goal.shown(bound), "value": goal.shown(value)}

    def record(self, goal: Criterion, local: LocalResult) -> float:
        """Add a local search to the history; returns its value."""
        reached = goal.value(local.measures)
        self.history.append(
            {
                "criterion": goal.name,
                "value": reached,
                "spread": float(np.ptp(local.measures)),
                "steps": local.n_iter,
            }
        )
        return reached

    def _all_starts(
        self,
        space: WholeSpace,
        dual: DualResult,
        most: int | None,
        first: Iterable[Array],
        then: Iterable[Array],
    ) -> Iterator[Array]:
        """Those that are given, the relaxed solution, others near it, and any."""
        yield from first
        forms = space.forms
        order = np.argsort(-dual.occupation)
        # The space may have grown since, by further coordinates.
        vectors = np.pad(dual.vectors, ((0, forms.d - len(dual.vectors)), (0, 0)))
        yield space.lift(vectors[:, order[: forms.r]])
        yield from then
        relaxed = (vectors * dual.occupation) @ vectors.T
        n_starts = self.n_starts if most is None else min(self.n_starts, most)
        for number in range(1, n_starts):
            noise = self.rng.standard_normal((forms.d, forms.d))
            if number // _IN_TURN % 2 == 0:
                noise = space.shaped(space.shaped(noise + noise.T).T) / 2
                shaken = relaxed + _NOISE[number % 2] * noise
                yield space.lift(eigh_descending(shaken)[1][:, : forms.r])
            else:
                start = space.lift(np.linalg.qr(space.shaped(noise[:, : forms.r]))[0])
                yield start if number % 3 else self._among_own(start)


def _all_seen(n_ends: int, n_searches: int) -> bool:
    """Whether searches from random starts have most likely seen all ends that there are.

    After n searches with w different ends ``w (n - 1) / (n - w - 2)`` ends are to be expected in
    all (Boender and Rinnooy Kan, 1987).
    """
    left = n_searches - n_ends - 2
    return left > 0 and n_ends * (n_searches - 1) < (n_ends + 0.5) * left

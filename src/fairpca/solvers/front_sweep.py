"""The exact solutions along a front, each found beside its neighbour.

The first has the least total loss of all, the last is the fairest that was found. With two groups
and equal tolerances, every weight that was tried for one brackets the root for the next. Otherwise
the local search follows its solution from point to point; only where the weights that it ends with
do not prove the optimum is the dual searched too, and the subspaces from more starts:
docs/exact_solver.md, section 13.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_choice
from fairpca._rows.words import UNFAIRNESS as UNFAIRNESS
from fairpca.certificate import certify
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._exact.goals import LeastLoss, goal_of
from fairpca.solvers._exact.multistart import refine_in
from fairpca.solvers._exact.run import Workspace, search_space, with_minmax
from fairpca.solvers.exact import MOST_STARTS, solve_near

_MORE_STARTS = 5
"""Starts beside the neighbours, where following them leaves a gap."""


def sweep(
    problem: Problem,
    n_points: int,
    random_state: int | None = None,
    report: Callable[[int, int], None] = lambda ready, total: None,
    *,
    over: str = "largest",
) -> list[Solution]:
    """Solve a problem exactly at evenly spaced levels of unfairness.

    Parameters
    ----------
    problem : Problem
        What to solve; its criterion, tolerance and bounds are not used.
    n_points : int
        Number of levels, from that of the least total loss of all to the smallest one that is
        found.
    random_state : int or None, default=None
        Seed of the starts: see `ExactSolver`.
    report : callable, default=None
        Called with the number of solutions that are ready, and of all, when one more is ready.
    over : {"largest", "spread"}, default="largest"
        Whether unfairness is the largest measure of a group, or the largest difference between the
        measures of two groups.

    Returns
    -------
    list of Solution
        By falling unfairness; only one where the least total loss is also the fairest.

    See Also
    --------
    fairpca.ParetoFront : What it is for.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.solvers import sweep
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> [round(float(solution.disparities.max()), 6) for solution in sweep(problem, 3)]
    [1.0, 0.95, 0.9]
    >>> along = sweep(problem, 3, over="spread")
    >>> [round(float(np.ptp(solution.disparities)), 6) for solution in along]
    [1.0, 0.5, 0.0]
    """
    check_choice("over", over, UNFAIRNESS)
    axis: _Axis = (_Largest if over == "largest" else _Spread)(problem)
    widest = axis.level(problem.least_loss_basis)
    first = solve_near(axis.at(widest), MOST_STARTS, random_state)
    shared = Workspace(search_space(problem))
    last, least = axis.end(first, widest, random_state, shared)
    if least >= widest - problem.negligible_spread:
        report(1, 1)
        return [last]
    report(1, n_points)
    points = [first]
    levels = np.linspace(widest, least, n_points)
    for level in levels[1:-1]:
        neighbours = (points[-1], last)
        solved = solve_near(axis.at(float(level)), _MORE_STARTS, random_state, shared, neighbours)
        points.append(solved)
        report(len(points), n_points)
    points.append(last)
    if problem.n_groups > 2 or over == "largest":
        _come_back(axis, points, levels, shared)
    report(n_points, n_points)
    return points


@dataclass(frozen=True, eq=False)
class _Axis(ABC):
    """What unfairness is, and the problems that limit it."""

    problem: Problem

    @abstractmethod
    def level(self, basis: Array) -> float:
        """The unfairness of a subspace."""

    @abstractmethod
    def at(self, level: float) -> Problem:
        """The least total loss with no more than so much of it."""

    @abstractmethod
    def end(
        self, first: Solution, widest: float, random_state: int | None, shared: Workspace
    ) -> tuple[Solution, float]:
        """The fairest solution, and its level; the first one where none is fairer."""


class _Largest(_Axis):
    def level(self, basis: Array) -> float:
        return float(self.problem.measures(basis).max())

    def at(self, level: float) -> Problem:
        # What is kept has a minus sign, which bounds have not.
        bound = -level if self.problem.measure == "variance" else level
        return self.problem.with_bounds(max(bound, 0.0))

    def end(
        self, first: Solution, widest: float, random_state: int | None, shared: Workspace
    ) -> tuple[Solution, float]:
        last = solve_near(self.problem.with_minmax(), MOST_STARTS, random_state, shared)
        return last, self.level(last.basis)


class _Spread(_Axis):
    def level(self, basis: Array) -> float:
        return self.problem.spread(basis)

    def at(self, level: float) -> Problem:
        return self.problem.with_tolerance(level)

    def end(
        self, first: Solution, widest: float, random_state: int | None, shared: Workspace
    ) -> tuple[Solution, float]:
        if widest <= self.problem.negligible_spread:
            return first, widest
        last = solve_near(self.at(0.0), MOST_STARTS, random_state, shared)
        if last.certificate.status in ("optimal", "bounded"):
            return last, 0.0
        least, proof = self.level(last.basis), last.certificate.miss_multipliers
        if least >= widest - self.problem.negligible_spread:
            return _at(self.at(widest), first.basis, [first], shared, proof), widest
        return _at(self.at(least), last.basis, [last], shared, proof), least


def _come_back(axis: _Axis, points: list[Solution], levels: Array, shared: Workspace) -> None:
    """From the fairest to the first, leave no point that loses more than a fairer one."""
    problem = axis.problem
    for i in reversed(range(1, len(points) - 1)):
        point, fairer, within = points[i], points[i + 1], axis.at(float(levels[i]))
        most = float(levels[i]) + problem.negligible_spread

        def loss(basis: Array, most: float = most) -> float:
            return problem.total_loss(basis) if axis.level(basis) <= most else np.inf

        bases, goal = [point.basis, fairer.basis], goal_of(within)
        assert isinstance(goal, LeastLoss)
        if point.certificate.status != "optimal":
            # Where the local search ends from the neighbour's subspace.
            weights = goal.weights(point.certificate.multipliers)
            bases.append(refine_in(shared.space, goal, fairer.basis, weights).basis)
        best = min(bases, key=loss)
        if best is not point.basis:
            proofs = [p for p in (point, fairer) if p.certificate.goal == within.goal]
            points[i] = _at(within, best, proofs, shared)


def _at(
    problem: Problem,
    basis: Array,
    solutions: list[Solution],
    shared: Workspace,
    proof: Array | None = None,
) -> Solution:
    """The first solution with another subspace or another level, certified anew.

    Of the multipliers of the solutions those count that prove the best bound.
    """
    known, proofs = shared.space.bounds, [point.certificate.multipliers for point in solutions]
    best = max(proofs, key=partial(problem.dual_bound, known=known))
    certificate = certify(problem, basis, best, miss_multipliers=proof, known=known)
    return replace(
        solutions[0],
        basis=basis,
        group_losses=problem.group_losses(basis),
        disparities=problem.disparities(basis),
        total_loss=problem.total_loss(basis),
        certificate=with_minmax(problem, certificate, shared.minmax_measures),
    )

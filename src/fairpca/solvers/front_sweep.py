"""The exact solutions along a front, each found beside its neighbour.

The first has the least total loss of all, the last is the fairest that was found. With two groups
and equal tolerances, every weight that was tried for one brackets the root for the next. Otherwise
the local search follows its solution from point to point; only where the weights that it ends with
do not prove the optimum is the dual searched too, and the subspaces from more starts:
docs/exact_solver.md, section 13.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np

from fairpca._linalg.types import Array
from fairpca.certificate import certify
from fairpca.criteria import AtMost, Criterion, Equal, LeastLoss, MinMax, as_criterion
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._local import refine_in
from fairpca.solvers._space import WholeSpace, search_space
from fairpca.solvers.exact import (
    FEW_STARTS,
    ExactSolver,
    certified_solution,
    solve_near,
    with_minmax,
)
from fairpca.validation import Progress, check_whole_number

_POINTS, _FAIREST = "finding the points of the front", "finding the fairest point of the front"
"""What progress is told."""

_Solve = Callable[[Problem], Solution]


def sweep(
    problem: Problem,
    n_points: int,
    solver: ExactSolver | None = None,
    progress: Progress | None = None,
) -> list[Solution]:
    """Solve a problem exactly at evenly spaced levels of unfairness.

    Parameters
    ----------
    problem : Problem
        What to solve. Its criterion, `MinMax` or `Equal`, says what unfairness is: the largest
        measure of a group, or the largest difference between the measures of two groups.
    n_points : int
        Number of levels, from that of the least total loss of all to the smallest one that is
        found; 1 is the former alone.
    solver : ExactSolver, default=None
        Says when a point is good enough, when time is up, and what starts are drawn from; None is
        ``ExactSolver()``. Points that are not ready when time is up have the subspace of the next
        fairer one that is, and a certificate of their own.
    progress : callable, default=None
        Called with ``("finding the points of the front", done, total)`` at the beginning and when
        one more is ready; and while the fairest is searched for, which comes first, with
        ``("finding the fairest point of the front", searches, most)``. There are as many points as
        were asked for, or 1 where the first is as fair as can be.

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
    >>> along = sweep(problem.with_criterion("equal"), 3)
    >>> [round(float(np.ptp(solution.disparities)), 6) for solution in along]
    [1.0, 0.5, 0.0]
    """
    check_whole_number("n_points", n_points)
    problem = problem.with_criterion(end_of_front(problem.criterion))
    solver, tell = solver or ExactSolver(), progress or (lambda *what: None)
    tell(_POINTS, 0, n_points)
    done, most, random_state = count(1), solver.n_steps, solver.random_state

    def tell_search(**found: float) -> bool:
        tell(_FAIREST, next(done), most)
        return False

    # The time of both begins now.
    effort, of_ends = solver.effort(problem), solver.effort(problem, tell_search)
    axis = (_Largest if isinstance(problem.criterion, MinMax) else _Spread)(problem)
    widest = axis.level(problem.least_loss_basis)
    solve_end = partial(
        solve_near, n_starts=solver.n_starts, random_state=random_state, effort=of_ends
    )
    first = solve_end(axis.at(widest))
    if n_points == 1:
        tell(_POINTS, 1, 1)
        return [first]
    shared = search_space(problem)
    last, least = axis.end(first, widest, partial(solve_end, shared=shared), shared)
    if least >= widest - problem.negligible_spread:
        tell(_POINTS, 1, 1)
        return [last]
    tell(_POINTS, 1, n_points)
    points = [first]
    levels = np.linspace(widest, least, n_points)
    for level in levels[1:-1]:
        within, before = axis.at(float(level)), points[-1]
        if effort.is_over():
            points.append(_at(within, last.basis, [before], shared))
        else:
            # Next to a point with a gap others than the relaxed solution end where its own did.
            n_starts = 1 if before.certificate.status == "bounded" else FEW_STARTS
            near = (before, last)
            points.append(solve_near(within, n_starts, random_state, shared, near, effort))
        tell(_POINTS, len(points), n_points)
    points.append(last)
    if problem.n_groups > 2 or isinstance(axis, _Largest):
        _come_back(axis, points, levels, shared)
    tell(_POINTS, n_points, n_points)
    return points


def end_of_front(criterion: str | Criterion) -> Criterion:
    """The criterion that is the fairest point of a front, without tolerance or limit."""
    given = as_criterion(criterion)
    if not isinstance(given, MinMax | Equal):
        raise ValueError(f"A front leads to MinMax() or Equal(), not to {given!r}.")
    return MinMax(given.measure) if isinstance(given, MinMax) else Equal(0.0, given.measure)


@dataclass(frozen=True, eq=False)
class _Largest:
    """Unfairness is the largest measure of a group."""

    problem: Problem

    def level(self, basis: Array) -> float:
        """The unfairness of a subspace."""
        return float(self.problem.measures(basis).max())

    def at(self, level: float) -> Problem:
        """The least total loss with no more than so much of it."""
        # What is kept has a minus sign, which bounds have not.
        measured = self.problem.goal.measured
        bound = max(measured.sign * level, 0.0)
        return self.problem.with_criterion(AtMost(bound, measured.name))

    def end(
        self, first: Solution, widest: float, solve: _Solve, shared: WholeSpace
    ) -> tuple[Solution, float]:
        """The fairest solution, and its level; the first one where none is fairer."""
        last = solve(self.problem.with_criterion(MinMax(self.problem.goal.measure)))
        return last, self.level(last.basis)


@dataclass(frozen=True, eq=False)
class _Spread:
    """The same where it is the largest difference between two groups."""

    problem: Problem

    def level(self, basis: Array) -> float:
        return self.problem.spread(basis)

    def at(self, level: float) -> Problem:
        return self.problem.with_criterion(Equal(level, self.problem.goal.measure))

    def end(
        self, first: Solution, widest: float, solve: _Solve, shared: WholeSpace
    ) -> tuple[Solution, float]:
        if widest <= self.problem.negligible_spread:
            return first, widest
        last = solve(self.at(0.0))
        if last.certificate.status in ("optimal", "bounded"):
            return last, 0.0
        least, proof = self.level(last.basis), last.certificate.violation_multipliers
        if least >= widest - self.problem.negligible_spread:
            return _at(self.at(widest), first.basis, [first], shared, proof), widest
        return _at(self.at(least), last.basis, [last], shared, proof), least


def _come_back(
    axis: _Largest | _Spread, points: list[Solution], levels: Array, shared: WholeSpace
) -> None:
    """From the fairest to the first, leave no point that loses more than a fairer one."""
    problem = axis.problem
    for i in reversed(range(1, len(points) - 1)):
        point, fairer, within = points[i], points[i + 1], axis.at(float(levels[i]))
        most = float(levels[i]) + problem.negligible_spread

        def loss(basis: Array, most: float = most) -> float:
            return problem.total_loss(basis) if axis.level(basis) <= most else np.inf

        bases, goal = [point.basis, fairer.basis], within.goal
        assert isinstance(goal, LeastLoss)
        if point.certificate.status != "optimal":
            # Where the local search ends from the neighbour's subspace.
            weights = goal.weights_from(point.certificate.multipliers)
            bases.append(refine_in(shared, goal, fairer.basis, weights).basis)
        best = min(bases, key=loss)
        if best is not point.basis:
            proofs = [p for p in (point, fairer) if p.certificate.goal == goal.name]
            points[i] = _at(within, best, proofs, shared)


def _at(
    problem: Problem,
    basis: Array,
    solutions: list[Solution],
    shared: WholeSpace,
    proof: Array | None = None,
) -> Solution:
    """The first solution with another subspace or another level, certified anew.

    Of the multipliers of the solutions those count that prove the best bound.
    """
    proofs = [point.certificate.multipliers for point in solutions]
    best = max(proofs, key=problem.dual_bound)
    certificate = certify(problem, basis, best, violation_multipliers=proof)
    if certificate.status not in ("optimal", "infeasible"):
        ended = solutions[0].certificate.stopped_by or shared.effort.stopped_by
        certificate = replace(certificate, stopped_by=ended)
    certificate = with_minmax(problem, certificate, shared.minmax_measures)
    first = solutions[0]
    return certified_solution(
        problem,
        basis,
        certificate,
        solver=first.solver,
        n_iter=first.n_iter,
        n_eigen=first.n_eigen,
        message=first.message,
        history=first.history,
    )

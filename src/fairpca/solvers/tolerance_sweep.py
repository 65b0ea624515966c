"""The exact solutions at evenly spaced tolerances, each found beside its neighbour.

The first has the least total loss of all, the last the smallest spread that was found. With two
groups, every weight that was tried for one tolerance brackets the root for the next. With more,
the local search follows its solution from tolerance to tolerance; only where the weights that it
ends with do not prove the optimum is the dual searched too, and the subspaces from more starts:
docs/exact_solver.md, section 13.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from fairpca._linalg.types import Array
from fairpca.certificate import certify
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._exact.goals import EqualGoal
from fairpca.solvers._exact.multistart import refine_in
from fairpca.solvers.exact import MOST_STARTS, Workspace, search_space, solve_near, with_minmax

_MORE_STARTS = 5
"""Starts beside the neighbours, where following them leaves a gap."""


def sweep(
    problem: Problem,
    n_points: int,
    random_state: int | None = None,
    report: Callable[[int, int], None] = lambda ready, total: None,
) -> list[Solution]:
    """Solve a problem exactly at evenly spaced tolerances.

    Parameters
    ----------
    problem : Problem
        What to solve, with the criterion "equal"; its tolerance is not used.
    n_points : int
        Number of tolerances, from the spread of the least total loss of all to the smallest one
        that is found.
    random_state : int or None, default=None
        Seed of the starts: see `ExactSolver`.
    report : callable, default=None
        Called with the number of solutions that are ready, and of all, when one more is ready.

    Returns
    -------
    list of Solution
        By falling spread; only one where the least total loss is also the fairest.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.solvers import sweep
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> [round(float(np.ptp(solution.disparities)), 6) for solution in sweep(problem, 3)]
    [1.0, 0.5, 0.0]
    """
    widest = problem.spread(problem.least_loss_basis)
    first = solve_near(problem.with_tolerance(widest), MOST_STARTS, random_state)
    level = problem.negligible_spread
    if widest <= level:
        report(1, 1)
        return [first]
    report(1, n_points)
    shared = Workspace(search_space(problem))
    last = solve_near(problem.with_tolerance(0.0), MOST_STARTS, random_state, shared)
    least = 0.0
    if last.certificate.status not in ("optimal", "bounded"):
        least = float(np.ptp(last.disparities))
        proof = last.certificate.miss_multipliers
        if least >= widest - level:
            report(1, 1)
            return [_at(problem.with_tolerance(widest), first.basis, [first], shared, proof)]
        last = _at(problem.with_tolerance(least), last.basis, [last], shared, proof)
    points = [first]
    for tolerance in np.linspace(widest, least, n_points)[1:-1]:
        within, neighbours = problem.with_tolerance(float(tolerance)), (points[-1], last)
        points.append(solve_near(within, _MORE_STARTS, random_state, shared, neighbours))
        report(len(points), n_points)
    points.append(last)
    if problem.n_groups > 2:
        _come_back(problem, points, shared)
    report(n_points, n_points)
    return points


def _come_back(problem: Problem, points: list[Solution], shared: Workspace) -> None:
    """From the fairest to the first, leave no point that loses more than a fairer one."""
    level = problem.negligible_spread
    for i in reversed(range(1, len(points) - 1)):
        point, fairer = points[i], points[i + 1]
        tolerance = point.certificate.tolerance
        within = problem.with_tolerance(tolerance)

        def loss(basis: Array, tolerance: float = tolerance) -> float:
            fair = problem.spread(basis) <= tolerance + level
            return problem.total_loss(basis) if fair else np.inf

        bases = [point.basis, fairer.basis]
        if point.certificate.status != "optimal":
            # Where the local search ends from the neighbour's subspace.
            goal = EqualGoal(problem, tolerance)
            weights = goal.weights(point.certificate.multipliers)
            bases.append(refine_in(shared.space, goal, fairer.basis, weights).basis)
        best = min(bases, key=loss)
        if best is not point.basis:
            points[i] = _at(within, best, [point, fairer], shared)


def _at(
    problem: Problem,
    basis: Array,
    solutions: list[Solution],
    shared: Workspace,
    proof: Array | None = None,
) -> Solution:
    """The first solution with another subspace or another tolerance, certified anew.

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

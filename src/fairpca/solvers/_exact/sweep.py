"""The exact solutions at evenly spaced tolerances, each found beside its neighbour.

The first has the least total loss of all, the last the smallest spread that was found. With two
groups, every weight that was tried for one tolerance brackets the root for the next. With more,
the local search follows its solution from tolerance to tolerance; only where the weights that it
ends with do not prove the optimum is the dual searched too, and the subspaces from more starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from fairpca._linalg.types import Array
from fairpca.certificate import certify
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._exact.criteria import Equal
from fairpca.solvers._exact.local import refine
from fairpca.solvers.exact import (
    ExactSolver,
    Workspace,
    nobody_worse_off,
    solve_near,
)

_MORE_STARTS = 5
"""Starts beside the neighbours, where following them leaves a gap."""


def sweep(
    problem: Problem,
    n_points: int,
    random_state: int | None = None,
    report: Callable[[int, int], None] = lambda ready, total: None,
) -> list[Solution]:
    """Solutions by falling spread; one only where the least total loss is also the fairest.

    `report` is told how many of how many are ready, each time that one more is.
    """
    widest = problem.spread(problem.least_loss_basis)
    solver = ExactSolver(random_state=random_state)
    first = solver.solve(problem.with_tolerance(widest))
    level = problem.negligible_spread
    if widest <= level:
        report(1, 1)
        return [first]
    report(1, n_points)
    shared = Workspace(problem)
    last = solve_near(problem.with_tolerance(0.0), solver, shared)
    least = 0.0
    if last.certificate.status not in ("optimal", "bounded"):
        least = float(np.ptp(last.disparities))
        proof = last.certificate.spread_multipliers
        if least >= widest - level:
            report(1, 1)
            return [_at(problem.with_tolerance(widest), first.basis, [first], shared, proof)]
        last = _at(problem.with_tolerance(least), last.basis, [last], shared, proof)
    few = ExactSolver(n_starts=_MORE_STARTS, random_state=random_state)
    points = [first]
    for tolerance in np.linspace(widest, least, n_points)[1:-1]:
        within = problem.with_tolerance(float(tolerance))
        points.append(solve_near(within, few, shared, (points[-1], last)))
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
            bases.append(_followed(within, fairer.basis, point, shared))
        best = min(bases, key=loss)
        if best is not point.basis:
            points[i] = _at(within, best, [point, fairer], shared)


def _followed(problem: Problem, start: Array, point: Solution, shared: Workspace) -> Array:
    """Where the local search ends from a neighbour's subspace."""
    space = shared.space
    criterion = Equal(problem.weights, problem.tolerance)
    weights = problem.weights + point.certificate.multipliers
    return space.lift(refine(space.forms, criterion, space.lower(start), weights).basis)


def _at(
    problem: Problem,
    basis: Array,
    solutions: list[Solution],
    shared: Workspace,
    proof: Array | None = None,
) -> Solution:
    """The first solution with another subspace or another tolerance, judged anew.

    Of the multipliers of the solutions those count that prove the best bound.
    """
    level, known = problem.negligible_spread, shared.space.bounds
    best = max(
        (solution.certificate.multipliers for solution in solutions),
        key=partial(problem.dual_bound, known=known),
    )
    certificate = certify(problem, basis, best, spread_multipliers=proof, known=known)
    better = shared.minmax_disparities
    if better is not None and nobody_worse_off(better, certificate.disparities, level):
        certificate = replace(certificate, minmax_disparities=better)
    return replace(
        solutions[0],
        basis=basis,
        group_losses=problem.group_losses(basis),
        disparities=certificate.disparities,
        total_loss=problem.total_loss(basis),
        certificate=certificate,
    )

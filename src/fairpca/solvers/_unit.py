"""One unit for every search: rows whose unit is far from all others are solved in a nearer one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from fairpca.problem import Problem
from fairpca.solution import Solution

_SAFE = 1e60
"""Variances up to this, and from its inverse on, are left as they are."""

_MOST_POWER = 1000
"""Power of two that variances are multiplied by at most: larger numbers do not exist."""


def in_safe_unit(
    problem: Problem, solve: Callable[[Problem], Sequence[Solution]]
) -> list[Solution]:
    """Solve a problem whose squares of variances overflow, or vanish, in another unit.

    What solvers tell of the way (`history`) is in the unit in which they searched.
    """
    scaled, loss, measure = safely_posed(problem)
    found = list(solve(scaled))
    if scaled is problem:
        return found
    return [_taken_back(problem, solution, loss, measure) for solution in found]


def safely_posed(problem: Problem) -> tuple[Problem, float, float]:
    """A problem in a unit that is safe, and what losses and measures are multiplied by there.

    The unit is a power of two, which changes no digit.
    """
    size = float(problem.traces.max())
    if size == 0.0 or 1.0 / _SAFE < size < _SAFE:
        return problem, 1.0, 1.0
    goal, moments = problem.goal, problem.moments
    loss = 2.0 ** min(-2 * round(math.log2(size) / 2.0), _MOST_POWER)
    unit, measure = math.sqrt(loss), 1.0 if goal.measured.relative else loss
    given = problem.measured_by
    if given is not None:
        given = given[0] * loss, given[1] * (loss / measure)
    scaled = replace(
        problem,
        moments=replace(moments, mean=moments.mean * unit, scatter=moments.scatter * loss),
        criterion=problem.criterion.in_unit(measure),
        measured_by=given,
    )
    return scaled, loss, measure


def _taken_back(problem: Problem, found: Solution, loss: float, measure: float) -> Solution:
    """A solution in the unit of a problem, where losses and measures were times these factors."""
    certificate, goal = found.certificate, problem.goal
    # The points of a front that are not its end have the least loss under a condition.
    of_losses = goal.minimises_loss or certificate.goal != goal.name
    return replace(
        found,
        group_losses=found.group_losses / loss,
        disparities=found.disparities / loss,
        total_loss=found.total_loss / loss,
        certificate=certificate.in_unit(
            1.0 / measure,
            1.0 / (loss if of_losses else measure),
            measure / loss if of_losses else 1.0,
        ),
    )

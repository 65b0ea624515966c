"""Rows in a unit in which no square of a variance is too large or too small for a number."""

import math
from collections.abc import Callable
from dataclasses import replace

from fairpca.certificate import certify
from fairpca.problem import Problem
from fairpca.solution import Solution

_SAFE = 1e-60, 1e60
"""Variances between these are left as they are."""


def in_safe_unit(problem: Problem, solve: Callable[[Problem], Solution]) -> Solution:
    """Solve a problem with its rows in another unit, if theirs is far from all others.

    The unit is a power of two, which changes no digit.
    """
    size = float(problem.traces.max())
    goal = problem.goal
    limited = problem.measured_by is not None or goal.extra_loss is not None
    if size == 0.0 or _SAFE[0] < size < _SAFE[1] or limited:
        return solve(problem)
    unit = 2.0 ** -round(math.log2(size) / 2.0)
    moments, square = problem.moments, 1.0 if goal.measured.relative else unit * unit
    scaled = replace(
        problem,
        moments=replace(moments, mean=moments.mean * unit, scatter=moments.scatter * unit * unit),
        criterion=problem.criterion.in_unit(square),
    )
    found = solve(scaled)
    # Multipliers turn measures into losses.
    factor = square / (unit * unit) if goal.minimises_loss else 1.0
    multipliers = found.certificate.multipliers * factor
    proof = found.certificate.violation_multipliers  # of which only the ratios matter
    certificate = certify(problem, found.basis, multipliers, violation_multipliers=proof)
    better = found.certificate.minmax_measures
    return replace(
        found,
        group_losses=problem.group_losses(found.basis),
        disparities=problem.disparities(found.basis),
        total_loss=problem.total_loss(found.basis),
        certificate=replace(
            certificate,
            minmax_measures=None if better is None else better / square,
            stopped_by=found.certificate.stopped_by,
        ),
    )

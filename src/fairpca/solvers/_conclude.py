"""How a solver with a criterion of its own ends: judged by what the exact solver can prove."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairpca._linalg.types import Array
from fairpca.certificate import certify
from fairpca.problem import KeptBounds, Problem
from fairpca.solution import Solution
from fairpca.solvers._exact.relaxed import best_multipliers
from fairpca.solvers._rounding import round_relaxed


def conclude(
    problem: Problem, basis: Array, retention: Array | None = None, **about: Any
) -> Solution:
    """The solution that a basis is, with a certificate for the problem's criterion.

    For "equal" the certificate measures the distance to the frontier at the spread that was
    reached. `about` are the solver's own attributes of `Solution`.
    """
    spread = problem.spread(basis, retention)
    reached = problem.with_tolerance(max(problem.tolerance, spread))
    known = KeptBounds()
    multipliers = best_multipliers(reached, known)
    certificate = certify(reached, basis, multipliers, retention=retention, known=known)
    if problem.criterion == "equal" and spread > problem.tolerance + problem.negligible_spread:
        certificate = replace(certificate, requested_tolerance=problem.tolerance)
    return Solution.certified(problem, basis, certificate, retention, **about)


def conclude_relaxed(
    solver: Any,
    problem: Problem,
    relaxed: Array,
    *,
    history: dict[str, Any],
    offsets: Array | None = None,
    **about: Any,
) -> Solution:
    """The solution that a relaxed projector is, rounded as the solver's attributes say.

    See `round_relaxed` for the offsets.
    """
    basis, retention = round_relaxed(
        problem, relaxed, solver.rounding, extra_dimensions=solver.extra_dimensions, offsets=offsets
    )
    history = {"relaxed": relaxed, **history}
    return conclude(problem, basis, retention, solver=solver.name, history=history, **about)

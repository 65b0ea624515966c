"""How a solver with a criterion of its own ends: judged by what the exact solver can prove."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairpca._linalg.types import Array
from fairpca.certificate import certify
from fairpca.problem import KeptBounds, Problem
from fairpca.solution import Solution
from fairpca.solvers.exact import prove


def conclude(
    problem: Problem,
    basis: Array,
    *,
    solver: str,
    message: str,
    n_iter: int,
    n_eigen: int,
    shares: Array | None = None,
    history: dict[str, Any] | None = None,
) -> Solution:
    """The solution that a basis is, with a certificate for the problem's criterion.

    For "equal" the certificate measures the distance to the frontier at the spread that was
    reached.
    """
    spread = problem.spread(basis, shares)
    reached = problem.with_tolerance(max(problem.tolerance, spread))
    known = KeptBounds()
    certificate = certify(reached, basis, prove(reached, known), shares=shares, known=known)
    if problem.criterion == "equal" and spread > problem.tolerance + problem.negligible_spread:
        certificate = replace(certificate, asked_tolerance=problem.tolerance)
    return Solution(
        basis=basis,
        group_losses=problem.group_losses(basis, shares),
        disparities=certificate.disparities,
        total_loss=problem.total_loss(basis, shares),
        certificate=certificate,
        solver=solver,
        n_iter=n_iter,
        n_eigen=n_eigen,
        message=message,
        history=history or {},
        shares=shares,
    )

"""How a solver with a criterion of its own ends: judged by what the exact solver can prove."""

from dataclasses import replace
from typing import Any

from fairpca._linalg.types import Array
from fairpca.certificate import certify
from fairpca.criteria import Equal
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers.exact import best_multipliers, certified_solution


def conclude(
    solver: Any,
    problem: Problem,
    basis: Array,
    retention: Array | None = None,
    *,
    message: str,
    n_iter: int,
    n_eigen: int | None = None,
    **history: Any,
) -> Solution:
    """The solution that a basis is, with a certificate for the problem's criterion.

    For "equal" the certificate measures the distance to the frontier at the spread that was
    reached. Unless said, each iteration of the solver took one eigenproblem.
    """
    spread, judged = problem.spread(basis, retention), problem
    asked = problem.goal
    if isinstance(asked, Equal):
        judged = problem.with_criterion(Equal(max(asked.tolerance, spread), asked.measure))
    multipliers = best_multipliers(judged)
    certificate = certify(judged, basis, multipliers, retention=retention)
    if judged is not problem and spread > asked.tolerance + problem.negligible_spread:
        certificate = replace(certificate, requested_tolerance=asked.tolerance)
    n_eigen = problem.n_groups + n_iter if n_eigen is None else n_eigen
    about = {"solver": solver.name, "n_iter": n_iter, "n_eigen": n_eigen, "message": message}
    return certified_solution(problem, basis, certificate, retention, history=history, **about)

"""Many groups: where the paper's algorithm, our default and the exact solver end."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca import ExactSolver, ParetoDescent
from studies.many_groups import GROUPINGS, problem_of
from studies.reproduction.methods import EXACT, PARETO, PRINTED, printed
from studies.reproduction.runner import Task, remembered

NAMES = (*GROUPINGS, "Adult, education × sex", "Adult, education × race × sex")  # noqa: RUF001
DIMENSION, MORE_THAN, STEPS = 5, 5, 1000


def tasks(small: bool) -> list[Task]:
    """Every grouping with more than five groups, and every method."""
    names = [name for name in NAMES if problem_of(name, DIMENSION).n_groups > MORE_THAN]
    return [
        Task(ended, (name, method), f"{name}, {method}")
        for name in (names[:1] if small else names)
        for method in (PRINTED, PARETO, EXACT)
    ]


@remembered
def ended(name: str, method: str) -> dict[str, Any]:
    """Where a method ends, beside ordinary PCA."""
    problem = problem_of(name, DIMENSION)
    solver: Any = {PRINTED: printed(STEPS), PARETO: ParetoDescent(), EXACT: ExactSolver()}[method]
    found = solver.solve(problem)
    plain = problem.disparities(problem.pca_basis)
    return {
        "grouping": name,
        "groups": problem.n_groups,
        "method": method,
        "largest disparity": float(found.disparities.max()),
        "spread": float(np.ptp(found.disparities)),
        "extra loss": found.total_loss / problem.total_loss(problem.pca_basis) - 1.0,
        "gap": found.certificate.relative_gap,
        "PCA largest": float(plain.max()),
        "PCA spread": float(np.ptp(plain)),
    }

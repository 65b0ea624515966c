"""Section 4.1's remedy: relaxations that aim at r - s dimensions, so that rounding ends at r."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from fairpca import ExactSolver, Solution
from studies.reproduction.methods import PCA, WEIGHTS, methods
from studies.reproduction.runner import Task, remembered
from studies.reproduction.sweep import TASKS, Setting


def tasks(small: bool) -> list[Task]:
    """The groupings with more than two groups, where relaxations need extra dimensions."""
    found = []
    for task in TASKS[3 if small else 2 :]:
        setting = Setting(*task, n_rows=1500 if small else None)
        dimensions = (3,) if small else range(2, setting.n_features)
        found += [Task(remedied, (setting, r), f"{setting.data}, r = {r}") for r in dimensions]
    return found


@remembered
def remedied(setting: Setting, r: int) -> list[dict[str, Any]]:
    """Largest disparities of the exact optimum, the relaxation, and the remedied one.

    All are measured against own subspaces of r dimensions; s is Morgenstern et al.'s number of
    extra dimensions.
    """
    problem = replace(setting.problem(r), criterion="minmax")
    s = math.floor(math.sqrt(2 * problem.n_groups + 0.25) - 1.5)
    records = []
    for name, dimensions in (("exact", r), (PCA, r), ("relaxed", r), ("remedy", r - s)):
        if dimensions < 1:
            continue
        aimed = replace(problem, n_components=dimensions)
        found: Any = problem.pca_basis
        if name == "exact":
            found = ExactSolver().solve(aimed)
        elif name != PCA:
            found = methods()[WEIGHTS](aimed)
        basis, retention = found, None
        if isinstance(found, Solution):
            basis, retention = found.basis, found.retention
        records.append(
            {
                "data": setting.data,
                "sensitive": setting.sensitive,
                "r": r,
                "s": s,
                "name": name,
                "dimensions": basis.shape[1],
                "largest disparity": float(problem.disparities(basis, retention).max()),
                "largest loss": float(problem.group_losses(basis, retention).max()),
                "kept": float((problem.traces - problem.group_losses(basis, retention)).min()),
            }
        )
    return records

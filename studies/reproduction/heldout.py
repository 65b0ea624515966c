"""What the methods leave to the groups of rows that they have not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca import Solution
from studies.reproduction.data import mean_pairwise
from studies.reproduction.methods import EXACT, PARETO, PCA, PRINTED, methods
from studies.reproduction.runner import Task, remembered
from studies.reproduction.sweep import TASKS, Setting

METHODS = (PCA, PRINTED, PARETO, EXACT)


def tasks(small: bool) -> list[Task]:
    """Every grouping of the paper, all dimensions."""
    found = []
    for task in TASKS:
        setting = Setting(*task, n_rows=1500 if small else None)
        for r in (2,) if small else range(1, setting.n_features):
            found += [
                Task(judged, (setting, r, method), f"{setting.data}, {method}, r = {r}")
                for method in METHODS
            ]
    return found


@remembered
def judged(setting: Setting, r: int, method: str) -> list[dict[str, Any]]:
    """Fit to the training part, and judge on both: own subspaces are those of the part itself."""
    found = methods()[method](setting.problem(r, "train"))
    basis = found.basis if isinstance(found, Solution) else found
    records = []
    for part in ("train", "test"):
        problem = setting.problem(r, part)
        disparities = problem.disparities(basis)
        plain = problem.disparities(setting.problem(r, "train").pca_basis)
        records.append(
            {
                "data": setting.data,
                "sensitive": setting.sensitive,
                "r": r,
                "method": method,
                "part": part,
                "total loss": problem.total_loss(basis),
                "mean disparity": float(disparities.mean()),
                "mean pairwise": mean_pairwise(disparities),
                "spread": float(np.ptp(disparities)),
                "worse off": int((disparities > plain * (1 + 1e-9)).sum()),
            }
        )
    return records

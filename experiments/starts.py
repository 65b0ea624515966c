"""Many starts of Pareto descent beside the exact frontier, and what the steps 1/sqrt(t) do."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.runner import Task, remembered
from experiments.sweep import Setting
from fairpca import ExactSolver, ParetoDescent

DIMENSIONS = (2, 5, 10)


def tasks(small: bool) -> list[Task]:
    """One task for each start, and one for each frontier."""
    setting = Setting("Adult", "sex", n_rows=1500 if small else None)
    dimensions = (2,) if small else DIMENSIONS
    seeds = range(3) if small else range(20)
    found = [
        Task(descend, (setting, r, seed), f"start {seed + 1}, r = {r}")
        for r in dimensions
        for seed in seeds
    ]
    return found + [Task(frontier, (setting, r, 21), f"frontier, r = {r}") for r in dimensions]


@remembered
def descend(setting: Setting, r: int, seed: int) -> list[dict[str, Any]]:
    """Where one start ends, and in how many of its steps every objective fell."""
    problem = setting.problem(r)
    solution = ParetoDescent(random_state=seed + 1).solve(problem)
    values = solution.history["runs"][0].values
    return [
        {
            "kind": "start",
            "r": r,
            "seed": seed,
            "spread": float(np.ptp(solution.disparities)),
            "total loss": solution.total_loss,
            "relative gap": solution.certificate.relative_gap,
            "all fell": float((np.diff(values, axis=0) <= 0).all(axis=1).mean()),
            "steps": len(values) - 1,
        }
    ]


@remembered
def frontier(setting: Setting, r: int, n_points: int) -> list[dict[str, Any]]:
    """The least total loss for spreads from zero to that of ordinary PCA."""
    problem = setting.problem(r)
    widest = problem.spread(problem.pca_basis)
    records = []
    for tolerance in np.linspace(0.0, widest, n_points):
        solution = ExactSolver().solve(problem.with_tolerance(float(tolerance)))
        records.append(
            {
                "kind": "frontier",
                "r": r,
                "spread": float(np.ptp(solution.disparities)),
                "total loss": solution.total_loss,
            }
        )
    return records

"""Many starts of Pareto descent, printed and ours, beside the exact frontier."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca import Equal, ExactSolver, ParetoDescent
from studies.reproduction import methods
from studies.reproduction.methods import PARETO, PRINTED
from studies.reproduction.runner import Task, remembered
from studies.reproduction.sweep import Setting

DIMENSIONS = (2, 5, 10)
DATA = (("Adult", "sex"), ("Credit", "sex"))


def tasks(small: bool) -> list[Task]:
    """One task for each start of each method, and one for each frontier."""
    settings = [
        Setting(*task, n_rows=1500 if small else None) for task in DATA[: 1 if small else 2]
    ]
    dimensions = (2,) if small else DIMENSIONS
    seeds = range(3) if small else range(20)
    found = [
        Task(descend, (setting, r, method, seed), f"{method}, start {seed + 1}, r = {r}")
        for setting in settings
        for r in dimensions
        for method in (PRINTED, PARETO)
        for seed in seeds
    ]
    return found + [
        Task(frontier, (setting, r, 21), f"frontier, r = {r}")
        for setting in settings
        for r in dimensions
    ]


@remembered
def descend(setting: Setting, r: int, method: str, seed: int) -> list[dict[str, Any]]:
    """Where one start ends, and in how many of its first 1,000 steps equation 16 is satisfied."""
    problem = setting.problem(r)
    solver: ParetoDescent = ParetoDescent(random_state=seed + 1)
    if method == PRINTED:
        solver = methods.printed(methods.STEPS, "random", random_state=seed + 1)
    solution = solver.solve(problem)
    values = solution.history["runs"][0].values[:1001]
    plain = problem.total_loss(problem.pca_basis)
    height = ExactSolver().solve(problem).total_loss - plain
    return [
        {
            "kind": "start",
            "data": setting.data,
            "method": method,
            "r": r,
            "seed": seed,
            "spread": float(np.ptp(solution.disparities)),
            "total loss": solution.total_loss,
            "heights": max(solution.total_loss - solution.certificate.lower_bound, 0.0) / height,
            "all fell": float((np.diff(values, axis=0) <= 0).all(axis=1).mean()),
        }
    ]


@remembered
def frontier(setting: Setting, r: int, n_points: int) -> list[dict[str, Any]]:
    """The least total loss for spreads from zero to that of ordinary PCA."""
    problem = setting.problem(r)
    widest = problem.spread(problem.pca_basis)
    records = []
    for tolerance in np.linspace(0.0, widest, n_points):
        solution = ExactSolver().solve(problem.with_criterion(Equal(float(tolerance))))
        records.append(
            {
                "kind": "frontier",
                "data": setting.data,
                "r": r,
                "spread": float(np.ptp(solution.disparities)),
                "total loss": solution.total_loss,
            }
        )
    return records

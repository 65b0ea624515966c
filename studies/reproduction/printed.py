"""The printed algorithm with what the paper leaves open: start, steps, regularisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from studies.reproduction import methods
from studies.reproduction.data import PREPROCESSINGS, REFERENCE, mean_pairwise
from studies.reproduction.runner import Task, remembered
from studies.reproduction.sweep import TASKS, Setting, solve

SEEDS = range(2)
"""Of random starts."""

SHORT = 10
"""Steps of the long runs for each step of the short ones."""


def tasks(small: bool) -> list[Task]:
    """Every two-group setting, and all dimensions of the others in the reference preprocessing."""
    found = []
    for data, sensitive in TASKS:
        for preprocessing in PREPROCESSINGS:
            for loss in ("mean", "sum"):
                reference = preprocessing == REFERENCE and loss == "mean"
                if not reference and (small or sensitive != "sex"):
                    continue
                setting = Setting(data, sensitive, preprocessing, loss, 1500 if small else None)
                dimensions = range(1, setting.n_features) if reference else (2, 5, 10)
                for r in (2,) if small else [r for r in dimensions if r < setting.n_features]:
                    found.append(Task(variants, (setting, r), f"{data} by {sensitive}, r = {r}"))
    return found


@remembered
def variants(setting: Setting, r: int) -> list[dict[str, Any]]:
    """One record for each start, number of steps and regularisation."""
    problem = setting.problem(r)
    chosen: list[tuple[str, str | float, int]] = [("pca", 0.0, 0), ("pca", "auto", 0)]
    chosen += [("random", 0.0, seed) for seed in SEEDS]
    plain = problem.disparities(problem.pca_basis)
    own = problem.own_losses
    records = []
    for start, alpha, seed in chosen:
        for steps in (methods.STEPS // SHORT, methods.STEPS):
            if (start, alpha, steps) == ("pca", 0.0, methods.STEPS):
                # It was run already.
                found = pd.DataFrame(solve(setting, r, methods.PRINTED))
                disparities, total = found["disparity"].to_numpy(), found["total loss"].iloc[0]
            else:
                solver = methods.printed(steps, start, alpha=alpha, random_state=seed + 1)
                solution = solver.solve(problem)
                disparities, total = solution.disparities, solution.total_loss
            records.append(
                {
                    "data": setting.data,
                    "sensitive": setting.sensitive,
                    "preprocessing": setting.preprocessing,
                    "loss": setting.loss,
                    "r": r,
                    "start": start,
                    "alpha": "appendix" if alpha else "0",
                    "steps": "long" if steps == methods.STEPS else "short",
                    "seed": seed,
                    "total loss": float(total),
                    "mean disparity": float(disparities.mean()),
                    "mean pairwise": mean_pairwise(disparities),
                    "spread": float(np.ptp(disparities)),
                    "worse off": int((disparities > plain * (1 + 1e-9)).sum()),
                    "far": int((disparities > 0.05 * own).sum()),
                }
            )
    return records

"""What every method leaves to every group, by dimension: the numbers that most figures share."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairpca import Problem, Solution
from studies.reproduction.data import REFERENCE, mean_pairwise, moments_of
from studies.reproduction.methods import QUICK, methods
from studies.reproduction.runner import Task, remembered

TASKS = (("Adult", "sex"), ("Credit", "sex"), ("Adult", "race"), ("Credit", "marriage"))
THIRD = ("Diabetes", "sex")
"""A data set that the paper does not have."""

_SDP_LIMIT = 60
"""Beyond this many columns semidefinite programs take minutes each."""


@dataclass(frozen=True)
class Setting:
    """A data set with groups, prepared in a way, and how losses count."""

    data: str
    sensitive: str
    preprocessing: str = REFERENCE
    loss: str = "mean"
    n_rows: int | None = None

    def problem(self, r: int, subset: str | None = None) -> Problem:
        """The problem in r dimensions."""
        moments = moments_of(self.data, self.sensitive, self.preprocessing, self.n_rows, subset)
        return Problem(moments, r, criterion="equal", aggregation=self.loss)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return moments_of(self.data, self.sensitive, self.preprocessing, self.n_rows).n_features


def tasks(
    settings: Iterable[Setting],
    dimensions: Iterable[int] | None = None,
    chosen: Iterable[str] | None = None,
) -> list[Task]:
    """One task for each setting, dimension and method that applies."""
    found = []
    names = list(methods()) if chosen is None else list(chosen)
    for setting in settings:
        d = setting.n_features
        allowed = range(1, d) if dimensions is None else [r for r in dimensions if r < d]
        two = setting.problem(1).n_groups == 2
        for r in allowed:
            for name in names:
                if name.endswith("-fpca") and not two:
                    continue
                if name.startswith("sdp") and d > _SDP_LIMIT:
                    continue
                found.append(Task(solve, (setting, r, name), f"{setting.data}, {name}, r = {r}"))
    return found


@remembered
def solve(setting: Setting, r: int, method: str) -> list[dict[str, Any]]:
    """Run a method once: one record for each group."""
    problem = setting.problem(r)
    start = time.perf_counter()
    found = methods()[method](problem)
    seconds = time.perf_counter() - start
    retention, status = None, ""
    if isinstance(found, Solution):
        basis, retention, status = found.basis, found.retention, found.certificate.status
    else:
        basis = found
    losses = problem.group_losses(basis, retention)
    disparities = problem.disparities(basis, retention)
    common = {
        "data": setting.data,
        "sensitive": setting.sensitive,
        "preprocessing": setting.preprocessing,
        "loss": setting.loss,
        "columns": setting.n_features,
        "r": r,
        "method": method,
        "dimensions": basis.shape[1],
        "status": status,
        "total loss": problem.total_loss(basis, retention),
        "mean disparity": float(disparities.mean()),
        "mean pairwise": mean_pairwise(disparities),
        "largest disparity": float(disparities.max()),
        "spread": float(np.ptp(disparities)),
        "seconds": seconds,
    }
    return [
        {
            **common,
            "group": str(label),
            "rows": int(problem.moments.count[i]),
            "own loss": problem.own_losses[i],
            "group loss": losses[i],
            "disparity": disparities[i],
        }
        for i, label in enumerate(problem.moments.labels)
    ]


def reference_tasks(small: bool) -> list[Task]:
    """Every method on the reference preprocessing, for every dimension."""
    settings = [Setting(*task, n_rows=1500 if small else None) for task in (*TASKS, THIRD)]
    return tasks(settings, (2,) if small else None)


def preprocessing_tasks(small: bool) -> list[Task]:
    """The main methods on every preprocessing, with means and sums, for three dimensions."""
    from studies.reproduction.data import PREPROCESSINGS

    settings = [
        Setting(*task, preprocessing=name, loss=loss, n_rows=1500 if small else None)
        for task in (TASKS[:1] if small else (*TASKS, THIRD))
        for name in list(PREPROCESSINGS)[: 2 if small else None]
        for loss in ("mean", "sum")
    ]
    return tasks(settings, (2,) if small else (2, 5, 10), QUICK)


def frame_of(results: Iterable[list[dict[str, Any]]]) -> pd.DataFrame:
    """All records as a data frame."""
    return pd.DataFrame([record for records in results for record in records])


def by_setting(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each setting, dimension and method: what does not depend on the group."""
    keys = ["data", "sensitive", "preprocessing", "loss", "r", "method"]
    return frame.drop_duplicates(keys).drop(
        columns=["group", "rows", "own loss", "group loss", "disparity"]
    )

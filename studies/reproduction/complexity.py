"""How long each method takes to the same fairness, against columns, dimensions, rows and groups."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fairpca import ExactSolver, GroupMoments, ParetoDescent, Problem, Solution
from fairpca.solvers import SDPRelaxation
from fairpca.solvers.conclude import conclude
from studies.reproduction.methods import (
    EXACT,
    PARETO,
    PCA,
    PRINTED,
    PRINTED_SINGLE,
    WEIGHTS_EARLY,
    by_name,
    methods,
    printed,
)
from studies.reproduction.runner import Task, remembered

BASE = {"d": 20, "r": 4, "k": 2, "n": 20_000}
RANGES = {
    "d": (10, 20, 40, 80),
    "r": (2, 4, 8, 16),
    "k": (2, 3, 5, 8),
    "n": (5_000, 20_000, 80_000),
}
SMALL = {"d": (6, 12)}
SHARE = 0.05
"""Of the way from ordinary PCA's largest disparity to the smallest possible, what may be left."""

STEP_BASE = {"d": 20, "r": 4, "k": 2, "n": 20_000}
STEP_RANGES = {"d": (20, 50, 100, 200, 500), "k": (2, 5, 10, 20, 50)}
N_STEPS = 100
"""How many steps are taken to measure the cost of one."""

BACKENDS = {"clarabel": (10, 20, 40), "scs": (10, 20, 40, 80, 160)}
"""The solvers of the semidefinite program, and up to how many columns."""

_LONGEST = 1.5
_SDP_LIMIT = 40


def tasks(small: bool) -> list[Task]:
    """One task for each method and size; three random problems for each."""
    ranges = SMALL if small else RANGES
    base = {"d": 12, "r": 2, "k": 2, "n": 1000} if small else BASE
    found = []
    for axis, sizes in ranges.items():
        for size in sizes:
            shape = base | {axis: size}
            for name in methods():
                if name in (PCA, PRINTED_SINGLE, WEIGHTS_EARLY) or (
                    name.startswith("sdp") and shape["d"] > _SDP_LIMIT
                ):
                    continue
                if name.endswith("-fpca") and shape["k"] > 2:
                    continue
                for seed in range(1 if small else 3):
                    arguments = (axis, tuple(shape.items()), name, seed)
                    found.append(Task(timed, arguments, f"{name}, {axis} = {size}"))
    return found


def random_rows(d: int, k: int, n: int, seed: int) -> tuple[Any, Any]:
    """Groups with falling spectra along axes of their own."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(k, size=n)
    spectrum = 1.0 / np.sqrt(1.0 + np.arange(d))
    X = np.empty((n, d))
    for group in range(k):
        axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
        X[groups == group] = (rng.standard_normal(((groups == group).sum(), d)) * spectrum) @ axes
    return X, groups


@remembered
def timed(axis: str, shape: tuple[tuple[str, int], ...], method: str, seed: int) -> dict[str, Any]:
    """Seconds to the target, moments and solver apart; infinite if it is not reached."""
    size = dict(shape)
    X, groups = random_rows(size["d"], size["k"], size["n"], seed)
    start = time.perf_counter()
    moments = GroupMoments.from_rows(X, groups)
    gathered = time.perf_counter() - start
    problem = Problem(moments, size["r"], criterion="minmax")
    best = ExactSolver().solve(problem).disparities.max()
    plain = problem.disparities(problem.pca_basis).max()
    seconds, steps = _time_to(problem, method, best + SHARE * max(plain - best, 0.0))
    return {
        "axis": axis,
        **size,
        "method": method,
        "seed": seed,
        "moments seconds": gathered,
        "seconds": seconds,
        "steps": steps,
    }


def _time_to(problem: Problem, method: str, target: float) -> tuple[float, int]:
    """A solver with a number of steps gets as many as it needs, doubled each time."""
    # What all methods need, the groups' own subspaces, does not count.
    _ = problem.own_gains, problem.total_eigenpairs
    solver: Any = by_name()[method]() if method in by_name() else None
    if method == PRINTED:
        solver = printed(1)
    budgets: list[int | None] = [None]
    if solver is not None and hasattr(solver, "max_iter"):
        budgets = [2**p for p in range(15)]
    spent = 0.0
    for budget in budgets:
        chosen = solver if budget is None else replace(solver, max_iter=budget)
        run = methods()[method] if chosen is None else chosen.solve
        seconds, found = _timed_run(problem, run)
        spent += seconds
        if found.disparities.max() <= target + 1e-9 * problem.scale:
            again = [_timed_run(problem, run)[0] for _ in range(2 if seconds < 1.0 else 0)]
            return max(min([seconds, *again]), 1e-5), found.n_iter
        if spent > _LONGEST or (budget is not None and found.n_iter < budget):
            break
    return np.inf, found.n_iter


def _timed_run(problem: Problem, run: Callable[[Problem], Any]) -> tuple[float, Solution]:
    """Seconds of the search, without its certificate."""
    start = time.process_time()
    found = run(problem)
    seconds = time.process_time() - start
    return seconds - _certificate_seconds(problem, found), found


def _certificate_seconds(problem: Problem, found: Solution) -> float:
    if found.solver == "exact":  # its proof is part of its search
        return 0.0
    start = time.process_time()
    conclude(ExactSolver(), problem, found.basis, found.retention, message="", n_iter=0)
    return time.process_time() - start


@remembered
def step_cost(axis: str, shape: tuple[tuple[str, int], ...], method: str) -> dict[str, Any]:
    """Processor time of a step, whose cost does not depend on where it is."""
    size = dict(shape)
    moments = GroupMoments.from_rows(*random_rows(size["d"], size["k"], size["n"], 0))
    problem = Problem(moments, size["r"], criterion="equal")
    solver = printed(N_STEPS) if method == PRINTED else ParetoDescent(max_iter=N_STEPS, tol=0.0)
    start = solver._starts(problem)[0]
    began = time.process_time()
    steps = len(solver._descend(problem, start, None).steps)
    milliseconds = 1000.0 * (time.process_time() - began) / steps
    return {"axis": axis, **size, "method": method, "milliseconds": milliseconds}


@remembered
def against_sdp(d: int, seed: int) -> list[dict[str, Any]]:
    """Processor time to the target, of Pareto descent and of the SDP by two solvers."""
    moments = GroupMoments.from_rows(*random_rows(d, BASE["k"], BASE["n"], seed))
    problem = Problem(moments, BASE["r"], criterion="minmax")
    best = ExactSolver().solve(problem).disparities.max()
    plain = problem.disparities(problem.pca_basis).max()
    target = best + SHARE * max(plain - best, 0.0)
    found = {name: _time_to(problem, name, target)[0] for name in (PRINTED, PARETO, EXACT)}
    for backend, sizes in BACKENDS.items():
        if d in sizes:
            began = time.process_time()
            SDPRelaxation(backend=backend)._relax(problem)
            found[backend] = time.process_time() - began
    return [
        {"d": d, "seed": seed, "method": name, "seconds": taken} for name, taken in found.items()
    ]


def step_tasks(small: bool) -> list[Task]:
    """One task for each size and form of Pareto descent."""
    return [
        Task(step_cost, (axis, tuple((STEP_BASE | {axis: size}).items()), name), f"a step, {name}")
        for axis, sizes in STEP_RANGES.items()
        for size in (sizes[:2] if small else sizes)
        for name in (PRINTED, PARETO)
    ]


def sdp_tasks(small: bool) -> list[Task]:
    """One task for each size and random problem."""
    return [
        Task(against_sdp, (d, seed), f"SDP, d = {d}")
        for d in (BACKENDS["scs"][:2] if small else BACKENDS["scs"])
        for seed in range(1 if small else 3)
    ]


def exponents(frame: pd.DataFrame) -> pd.DataFrame:
    """Slope of log time against log size, for each method and axis, where it reached the target."""
    rows = []
    for (method, axis), part in frame.groupby(["method", "axis"], sort=False):
        reached = part[np.isfinite(part["seconds"])]
        medians = reached.groupby(axis)["seconds"].median()
        row = {
            "method": method,
            "axis": axis,
            "reached": len(reached) / len(part),
            "exponent": np.nan,
            "seconds": part["seconds"].median(),
        }
        if len(medians) > 1:
            row["exponent"] = np.polyfit(np.log(medians.index), np.log(medians), 1)[0]
        rows.append(row)
    return pd.DataFrame(rows)

"""What one iteration of Pareto descent costs, as a multiple of its bare linear algebra.

Run ``python benchmarks/pareto_iteration.py``. The bare linear algebra is the k products A_i U and
one thin SVD, which no implementation can do without. Both are timed in turn; the smallest counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from fairpca import GroupMoments, ParetoDescent, Problem
from fairpca._linalg.dense import min_norm_point, polar_factor
from fairpca._linalg.types import Array
from fairpca.objectives import PaperObjectives
from fairpca.solvers.pareto import _project, descend

CASES = [(2, 14, 5), (5, 14, 5), (2, 500, 20), (5, 500, 20)]
ITERATIONS, REPEATS = 200, 15


def main() -> None:
    """Measure every case and print a table."""
    print("  k     d    r       bare  iteration  ratio  what it consists of")
    for k, d, r in CASES:
        measure(k, d, r)


def measure(k: int, d: int, r: int) -> None:
    """Time the bare algebra and the iteration in turn and print a line."""
    problem, basis = make_problem(k, d, r)
    bare = iteration = np.inf
    n = ITERATIONS if d < 100 else 20
    for _ in range(REPEATS):
        bare = min(bare, per_call(lambda: bare_algebra(problem.matrices, basis), n))
        iteration = min(iteration, run(problem, basis, n))
    parts = ", ".join(f"{name} {1e6 * t:.0f}" for name, t in split(problem, basis, n).items())
    print(
        f"{k:3d} {d:5d} {r:4d} {1e6 * bare:8.0f}us {1e6 * iteration:8.0f}us "
        f"{iteration / bare:6.1f}  {parts} us"
    )


def make_problem(k: int, d: int, r: int) -> tuple[Problem, Array]:
    """Groups with random covariances, and a random basis."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((k, d, d)) * np.arange(1, d + 1) ** -0.5
    moments = GroupMoments(
        labels=tuple(range(k)),
        count=np.full(k, 100),
        weight=np.full(k, 100.0),
        mean=np.zeros((k, d)),
        scatter=100.0 * factors @ factors.transpose(0, 2, 1),
    )
    problem = Problem(moments, r)
    _ = problem.own_gains  # found once, before the first iteration
    return problem, polar_factor(rng.standard_normal((d, r)))


def bare_algebra(matrices: Array, basis: Array) -> None:
    """The k products and one thin SVD."""
    np.matmul(matrices, basis)
    np.linalg.svd(basis, full_matrices=False)


def run(problem: Problem, basis: Array, n: int) -> float:
    """Seconds for each of n iterations, with the steps 1/sqrt(t)."""
    solver = ParetoDescent(max_iter=n, tol=0.0)
    vector = PaperObjectives("adjacent")
    start = time.perf_counter()
    done = descend(
        lambda point: vector.evaluate(problem, point, _project),
        lambda point: vector.values(problem, point),
        basis,
        retract=polar_factor,
        step="sqrt",
        step_size=solver.step_size,
        normalize=solver.normalize,
        zero=np.zeros(problem.n_groups),
        tol=0.0,
        max_iter=n,
    )
    return (time.perf_counter() - start) / max(len(done.steps), 1)


def split(problem: Problem, basis: Array, n: int) -> dict[str, float]:
    """Seconds of the parts of an iteration."""
    vector = PaperObjectives("adjacent")
    flat = vector.evaluate(problem, basis, _project)[1].reshape(-1, basis.size)
    steps: dict[str, Callable[[], object]] = {
        "values and gradients": lambda: vector.evaluate(problem, basis, _project),
        "min-norm point": lambda: min_norm_point(flat),
        "retraction": lambda: polar_factor(basis),
    }
    return {name: min(per_call(step, n) for _ in range(REPEATS)) for name, step in steps.items()}


def per_call(step: Callable[[], object], n: int) -> float:
    """Mean seconds of n calls."""
    start = time.perf_counter()
    for _ in range(n):
        step()
    return (time.perf_counter() - start) / n


if __name__ == "__main__":
    main()

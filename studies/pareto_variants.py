"""Where each variant of Pareto descent ends, and whether the default converges.

Run ``python -m studies.pareto_variants`` to rewrite studies/pareto_variants.md (five minutes).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from fairpca import ExactSolver, ParetoDescent, Problem, Solution
from fairpca._linalg.types import Array
from studies.real_data import real_moments

TARGET = Path(__file__).with_name("pareto_variants.md")
DIMENSIONS = (2, 5, 10)
GROUPINGS = (
    *("Adult by sex", "Adult by race"),
    *("Credit by sex", "Credit by marriage", "Credit by education"),
)

HEAD = """# Pareto descent: where its variants end, and whether they converge

Standardised integer codes, random starts. Made by `python -m studies.pareto_variants`.

- *spread*: the difference of the disparities at the end, as a share of ordinary PCA's.
- *above the frontier*: how much the total loss is above the smallest possible at that spread, in
  heights of the frontier. One height is what equality costs: the smallest loss with equal
  disparities minus that of ordinary PCA. On Credit by sex it is 0.002 % of the loss at r = 2, so a
  distance in per cent of the loss would say nothing.
- *direction*: the norm of the direction at the end; zero means Pareto stationary.
"""

VARIANTS = """
## Variants on Adult by sex, r = {r}

Ten starts. Medians, with the largest in brackets.

| variant | spread | above the frontier | direction | steps |
|---|---|---|---|---|
"""

CONVERGENCE = """
## Does the default converge?

Thirty starts each. *Stationary*: how many ended because nothing improves; *warned*: how many gave a
ConvergenceWarning, because they did not, or because they are less fair than ordinary PCA; *silent*:
how many ended early without one. With more than two groups a point that no other dominates, pair by
pair, need not have the least loss for its spread, which is what the distance from the frontier
measures, so it is not zero where equality is impossible or far.

| | r | stationary | warned | silent | above the frontier: median | worst | spread: median | worst | steps: median | worst |
|---|---|---|---|---|---|---|---|---|---|---|
"""

STEPS = """
## Steps until the direction is short

The smallest number of steps after which its norm was at most ε once, on Adult by sex, median of ten
starts. The paper's bound is of the order of 1/ε² (theorem 3). Its own form, with Euclidean
gradients, does not get there: at a stationary point of the constrained problem they do not vanish.

| | r | ε = 0.1 | 0.01 | 0.001 | 1e-4 | 1e-5 | 1e-6 |
|---|---|---|---|---|---|---|---|
"""

ALPHA = """
## The regularisation of the appendix

Printed form from ordinary PCA, 10,000 steps: spread that is left, as a share of PCA's. And at how
many of 20 random bases the penalised difference ψ(Δ), plus α‖U‖², is convex, as equation 19 wants it:
its Euclidean second derivative has no negative eigenvalue.

| | r | losses | α = 0 | for each pair | for all pairs | convex with α = 0 | with the appendix's α |
|---|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Run everything and write the page."""
    lines = [HEAD]
    for r in DIMENSIONS:
        lines.append(VARIANTS.format(r=r) + "\n".join(table(variant_row, variants(), r)))
    cases: list[tuple[Any, ...]] = [(name, r) for name in GROUPINGS for r in DIMENSIONS]
    lines.append(CONVERGENCE + "\n".join(table(convergence_row, cases)))
    cases = [(step, r) for step in ("1/√t", "default", "printed") for r in DIMENSIONS]
    lines.append(STEPS + "\n".join(table(steps_row, cases)))
    names = ("Adult by sex", "Credit by sex")
    cases = [(name, r, loss) for name in names for r in DIMENSIONS for loss in ("mean", "sum")]
    lines.append(ALPHA + "\n".join(table(alpha_row, cases)))
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table(row: Callable[..., str], cases: Iterable[tuple[Any, ...]], *more: Any) -> list[str]:
    """The lines of a table, made side by side."""
    lines = Parallel(n_jobs=2)(delayed(row)(*case, *more) for case in cases)
    print("\n".join(lines), flush=True)
    return list(lines)


def problem_of(name: str, r: int) -> Problem:
    """Standardised codes of a table, by groups."""
    return Problem(real_moments(name), r, criterion="equal")


def variants() -> list[tuple[str, dict[str, Any]]]:
    """The variants by name."""
    printed = {"geometry": "euclidean", "step": "sqrt", "tol": 0.0, "max_iter": 1000}
    longer = printed | {"max_iter": 10_000}
    return [
        ("default", {}),
        ("steps 1/√t", {"step": "sqrt"}),
        ("constant step 0.1", {"step": "constant", "step_size": 0.1}),
        ("backtracking", {"step": "backtracking"}),
        ("gradients not normalised", {"normalize": False, "step": "sqrt"}),
        ("absolute penalty", {"penalty": "absolute"}),
        ("exponential penalty", {"penalty": "exponential"}),
        ("single disparities", {"objectives": "single"}),
        ("as printed, random start, 1,000 steps", printed),
        ("as printed, random start, 10,000 steps", longer),
        ("as printed, from ordinary PCA, 1,000 steps", printed | {"start": "pca"}),
        ("as printed, from ordinary PCA, 10,000 steps", longer | {"start": "pca"}),
        ("as printed, equation 16, random start", printed | {"step": "equation 16"}),
        (
            "as printed, α for each pair, from ordinary PCA",
            longer | {"start": "pca", "alpha": "pairs"},
        ),
    ]


def solved(problem: Problem, seed: int, **choices: Any) -> tuple[Solution, bool]:
    """The end of a run, and whether it gave a warning."""
    if not choices.get("normalize", True):
        choices["step_size"] = 1.0 / problem.scale
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        end = ParetoDescent(random_state=seed, **choices).solve(problem)
    return end, any(issubclass(each.category, ConvergenceWarning) for each in caught)


def measured(problem: Problem, end: Solution, height: float) -> list[float]:
    """Spread, distance from the frontier, norm of the direction, steps."""
    run = end.history["runs"][0]
    return [
        float(np.ptp(end.disparities)) / problem.spread(problem.pca_basis),
        max(end.total_loss - end.certificate.lower_bound, 0.0) / height,
        float(run.norms[-1]),
        float(len(run.steps)),
    ]


def height_of(problem: Problem) -> float:
    """What equality costs."""
    return ExactSolver().solve(problem).total_loss - problem.total_loss(problem.pca_basis)


def variant_row(name: str, choices: dict[str, Any], r: int) -> str:
    """A line of the first tables."""
    problem = problem_of("Adult by sex", r)
    height = height_of(problem)
    ends = [measured(problem, solved(problem, seed, **choices)[0], height) for seed in range(1, 11)]
    middle, largest = np.median(ends, axis=0), np.max(ends, axis=0)
    return (
        f"| {name} | {percent(middle[0])} ({percent(largest[0])}) | {heights(middle[1])} "
        f"({heights(largest[1])}) | {middle[2]:.0e} | {middle[3]:.0f} |"
    )


def convergence_row(name: str, r: int, n_starts: int = 30) -> str:
    """A line of the table of convergence."""
    problem = problem_of(name, r)
    height = height_of(problem)
    ends, stationary, warned, silent = [], 0, 0, 0
    for seed in range(1, n_starts + 1):
        end, said = solved(problem, seed)
        here = bool(end.history["runs"][0].stationary)
        stationary, warned, silent = (
            stationary + here,
            warned + said,
            silent + (not here and not said),
        )
        ends.append(measured(problem, end, height))
    middle, largest = np.median(ends, axis=0), np.max(ends, axis=0)
    return (
        f"| {name} | {r} | {stationary} of {n_starts} | {warned} | {silent} | {heights(middle[1])} "
        f"| {heights(largest[1])} | {percent(middle[0])} | {percent(largest[0])} | {middle[3]:.0f} "
        f"| {largest[3]:.0f} |"
    )


def steps_row(step: str, r: int) -> str:
    """A line of the table of steps."""
    problem = problem_of("Adult by sex", r)
    choices: dict[str, Any] = {
        "1/√t": {"step": "sqrt", "max_iter": 10_000},
        "default": {},
        "printed": {"geometry": "euclidean", "step": "sqrt", "tol": 0.0, "max_iter": 10_000},
    }[step]
    runs = [solved(problem, seed, **choices)[0].history["runs"][0] for seed in range(1, 11)]
    cells = []
    for epsilon in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        reached = [np.flatnonzero(run.norms <= epsilon) for run in runs]
        first = [found[0] if len(found) else np.inf for found in reached]
        cells.append(f"{np.median(first):.0f}" if np.isfinite(np.median(first)) else "never")
    return f"| {step} | {r} | {' | '.join(cells)} |"


def alpha_row(name: str, r: int, loss: str) -> str:
    """A line of the table of regularisation."""
    problem = replace(problem_of(name, r), aggregation=loss)
    left = []
    for alpha in (0.0, "pairs", "auto"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            end = ParetoDescent.as_printed(max_iter=10_000, alpha=alpha).solve(problem)
        left.append(percent(float(np.ptp(end.disparities)) / problem.spread(problem.pca_basis)))
    values = np.linalg.eigvalsh(problem.matrices)
    appendix = float(values[:, -1].max() - values[:, 0].min())
    rng = np.random.default_rng(0)
    bases = [
        np.linalg.qr(rng.standard_normal((problem.moments.n_features, r)))[0] for _ in range(20)
    ]
    convex = [
        sum(smallest_curvature(problem, basis, alpha) >= 0.0 for basis in bases)
        for alpha in (0.0, appendix)
    ]
    return (
        f"| {name} | {r} | {loss}s | {' | '.join(left)} | {convex[0]} of 20 | {convex[1]} of 20 |"
    )


def smallest_curvature(problem: Problem, basis: Array, alpha: float) -> float:
    """The least eigenvalue of the second derivative of ``Delta^2 / 2 + alpha |U|^2`` at a basis.

    With ``M = A_1 - A_2`` the first derivative of Delta is ``-2 M U``, the second ``V -> -2 M V``.
    """
    matrix = problem.matrices[0] - problem.matrices[1]
    first, second = problem.disparities(basis)
    slope = (-2.0 * matrix @ basis).ravel()
    hessian = np.outer(slope, slope)
    hessian += (first - second) * np.kron(-2.0 * matrix, np.eye(basis.shape[1]))
    hessian += 2.0 * alpha * np.eye(len(slope))
    return float(np.linalg.eigvalsh(hessian)[0])


def percent(share: float) -> str:
    """A share in per cent, with zero for what is rounding."""
    if abs(share) < 5e-8:
        return "0"
    return f"{100 * share:.0f} %" if share >= 1 else f"{100 * share:.2g} %"


def heights(distance: float) -> str:
    """A distance in heights of the frontier, with zero for what is rounding."""
    return "0" if distance < 1e-8 else f"{distance:.2g}"


if __name__ == "__main__":
    main()

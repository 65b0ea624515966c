"""What is compared: ordinary PCA and every registered solver, each with one look everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairpca import ExactSolver, MinMax, ParetoDescent, Problem, Solution
from fairpca._linalg.types import Array
from fairpca.solvers import SOLVERS, MultiplicativeWeights
from studies.nash_welfare import NashWelfare

PCA, OWN = "PCA", "own PCA"
EXACT, PARETO, PARETO_SINGLE, SDP = "exact", "pareto", "pareto, single", "sdp"
PRINTED, PRINTED_SINGLE = "printed", "printed, single"
WEIGHTS, WEIGHTS_EARLY = "mw-iterative", "mw-iterative, stopped early"
LEAST_KEPT = "max-min-variance"

MAIN = (PCA, PRINTED, PRINTED_SINGLE, PARETO, SDP, EXACT)
"""What the paper's figures show, and what we add."""

QUICK = (PCA, PRINTED, PRINTED_SINGLE, PARETO, PARETO_SINGLE, EXACT, WEIGHTS, WEIGHTS_EARLY)
"""What is run on every preprocessing, where SDPs would take long."""

STEPS = 10_000
"""Steps of the printed form: the paper's T, of which it says nothing."""

EARLY = 10
"""Steps after which multiplicative weights are stopped early."""


def by_name() -> dict[str, Callable[..., Any]]:
    """What makes a solver: those of the library, and one that is only compared with."""
    return {**SOLVERS, "nash": NashWelfare}


@dataclass(frozen=True)
class Look:
    """Colour, marker, line and name of a method in every figure."""

    color: str
    marker: str
    label: str
    line: str = "-"
    hollow: bool = False
    """Large and hollow, for what would hide behind, or hide, the exact solver."""


# The colours of Okabe and Ito, which colour-blind readers can tell apart.
LOOKS = {
    PCA: Look("#000000", "o", "ordinary PCA"),
    OWN: Look("#777777", "", "own PCA", ":"),
    EXACT: Look("#0072B2", "s", "fair PCA, exact"),
    PRINTED: Look("#D55E00", "^", "Pareto descent as printed, pairwise"),
    PRINTED_SINGLE: Look("#E69F00", "v", "Pareto descent as printed, single"),
    PARETO: Look("#CC3366", "P", "Pareto descent, our default", "--"),
    PARETO_SINGLE: Look("#E69F00", "<", "Pareto descent, our default, single", "--"),
    SDP: Look("#009E73", "D", "SDP + LP (min-max)", hollow=True),
    "sdp-iterative": Look("#009E73", "P", "SDP + iterative rounding", hollow=True),
    "mw": Look("#56B4E9", "X", "multiplicative weights + LP", hollow=True),
    "mw-iterative": Look(
        "#56B4E9", "p", "multiplicative weights + iterative rounding", hollow=True
    ),
    WEIGHTS_EARLY: Look("#56B4E9", "H", "multiplicative weights, stopped after 10 steps", ":"),
    "epsilon-constraint": Look("#CC79A7", "<", "ε-constraint"),
    "lagrangian": Look("#CC79A7", ">", "Lagrangian"),
    "nash": Look("#F0E442", "h", "Nash welfare"),
    LEAST_KEPT: Look("#F0E442", "*", "max-min variance"),
    "u-fpca": Look("#999999", "d", "u-FPCA (equal losses)"),
    "c-fpca": Look("#999999", "8", "c-FPCA (equal losses)"),
}

_SPARE = ("#332288", "#117733", "#882255", "#44AA99", "#AA4499")


def look(method: str) -> Look:
    """The look of a method; one that was registered later gets a spare colour."""
    if method in LOOKS:
        return LOOKS[method]
    later = sorted(name for name in methods() if name not in LOOKS)
    return Look(_SPARE[later.index(method) % len(_SPARE)], "o", method)


def methods() -> dict[str, Callable[[Problem], Solution | Array]]:
    """Everything that can be run on a problem, by name."""
    found: dict[str, Callable[[Problem], Solution | Array]] = {
        PCA: lambda problem: problem.pca_basis,
        PRINTED: lambda problem: printed(STEPS).solve(problem),
        PRINTED_SINGLE: lambda problem: printed(STEPS, objectives="single").solve(problem),
        WEIGHTS_EARLY: lambda problem: MultiplicativeWeights(
            "iterative", max_iter=EARLY, tol=0.0
        ).solve(problem),
        PARETO_SINGLE: lambda problem: ParetoDescent(objectives="single").solve(problem),
        LEAST_KEPT: lambda problem: ExactSolver().solve(_least_kept(problem)),
    }
    for name, make in by_name().items():
        found[name] = lambda problem, make=make: make().solve(problem)  # type: ignore[misc]
    return found


def printed(max_iter: int, start: str = "pca", **choices: Any) -> ParetoDescent:
    """The paper's algorithm as printed."""
    return ParetoDescent.as_printed(start, max_iter, **choices)


def _least_kept(problem: Problem) -> Problem:
    """The same problem, judged by the smallest variance that a group keeps."""
    return problem.with_criterion(MinMax("kept_variance"))

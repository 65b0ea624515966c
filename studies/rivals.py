"""Every method beside every other: what groups lose, how many dimensions, how long it takes.

Run ``python -m studies.rivals`` to rewrite studies/rivals.md (some minutes).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from fairpca import (
    ExactSolver,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    MinMax,
    ParetoDescent,
    Problem,
)
from fairpca._linalg.types import Array
from fairpca.comparators import ParityPCA
from fairpca.comparators.parity import parity_gaps
from fairpca.solvers import MultiplicativeWeights, SDPRelaxation
from studies.nash_welfare import NashWelfare
from studies.olfat_aswani import OlfatAswani
from studies.real_data import real_rows
from studies.vrpca import VRPCA, measured_from

TARGET = Path(__file__).with_name("rivals.md")

DATA = ("Adult, sex", "Adult, race", "Credit, sex", "Credit, marriage")

DIMENSIONS = (2, 5, 10)

HEAD = """# Every method beside every other

Adult (training part, 14 columns) and Credit (23 columns), categories as integer codes, every column
standardised, all rows, losses as means, global centring. Made by `python -m studies.rivals`;
[which_method.md](../docs/which_method.md) says what each method is for.

- *criterion*: what the method minimises. Rows with the same criterion and r dimensions can be
  compared with each other; for others the table shows what one notion of fairness costs another.
- *dimensions*: how many are used. Some published methods use more than r, and shorten what they
  project; their bound is that of r dimensions. "cut" is the version with exactly r.
- *largest disparity*, *spread*: of what groups lose beyond their own PCA in r dimensions, the
  largest, and the largest difference between two groups.
- *total loss*: averaged over all rows.
- *time*: of `fit`, from rows, divided by that of scikit-learn's `PCA.fit` in the same process. It
  includes the certificate that every `FairPCA` comes with, which for more than two groups takes as
  long as the exact solver's dual, and the encoding of the groups, whose labels are text here.
- *mean gap*: largest distance between the projected means of two groups, what the methods for
  parity make zero.

u-FPCA and c-FPCA are for two groups; as published they equalise losses,
not disparities.
"""


@dataclass(frozen=True)
class Method:
    """A row of the table: its name, what it minimises, and how it is made for r dimensions."""

    name: str
    criterion: str
    make: Callable[[int], Any]
    two_groups: bool = False


@dataclass(frozen=True)
class OwnByVRPCA:
    """The exact solver with each group's own subspace by VR-PCA, in r dimensions."""

    r: int

    def fit(self, X: Array, *, sensitive_features: Any) -> FairPCA:
        """Find own subspaces, then the fair one."""
        moments = GroupMoments.from_rows(X, sensitive_features)
        codes = np.searchsorted(np.array(moments.labels), sensitive_features)
        centers = np.tile(moments.total_mean, (len(moments.labels), 1))
        own = VRPCA().subspaces(X, codes, centers, self.r)
        problem = measured_from(Problem(moments, self.r, criterion="equal"), own)
        return FairPCA.from_solution(problem, ExactSolver().solve(problem))


def _fair(**choices: Any) -> Callable[[int], FairPCA]:
    return lambda r: FairPCA(r, **choices)


def _minmax(solver: Any) -> Callable[[int], FairPCA]:
    return _fair(criterion="minmax", solver=solver)


EXACT_EQUAL = Method("exact, equal", "equality", _fair(criterion="equal"))
EXACT_MINMAX = Method("exact, min-max", "min-max", _minmax("exact"))

METHODS = (
    Method("ordinary PCA", "total loss", PCA),
    EXACT_EQUAL,
    Method("exact, own PCA by VR-PCA", "equality", OwnByVRPCA),
    Method("Pareto descent, pairwise", "frontier", _fair(solver=ParetoDescent("pairwise"))),
    Method("Pareto descent, single", "frontier", _fair(solver=ParetoDescent(objectives="single"))),
    EXACT_MINMAX,
    Method("SDP + LP", "min-max", _minmax("sdp")),
    Method("SDP + LP, cut", "min-max", _minmax(SDPRelaxation(extra_dimensions=False))),
    Method("SDP + iterative rounding", "min-max", _minmax("sdp-iterative")),
    Method(
        "SDP + iterative rounding, cut",
        "min-max",
        _minmax(SDPRelaxation(rounding="iterative", extra_dimensions=False)),
    ),
    Method("MW + LP", "min-max", _minmax("mw")),
    Method("MW + LP, cut", "min-max", _minmax(MultiplicativeWeights(extra_dimensions=False))),
    Method("MW + iterative rounding", "min-max", _minmax("mw-iterative")),
    Method(
        "MW + iterative rounding, cut",
        "min-max",
        _minmax(MultiplicativeWeights(rounding="iterative", extra_dimensions=False)),
    ),
    Method("MW, last iterate", "min-max", _minmax(MultiplicativeWeights(iterate="last"))),
    Method("epsilon constraint", "loss within bounds", _fair(solver="epsilon-constraint")),
    Method("Lagrangian, equal weights", "weighted sum", _fair(solver="lagrangian")),
    Method("Nash welfare", "product kept", _fair(solver=NashWelfare())),
    Method("max-min variance", "least kept", _fair(criterion=MinMax("kept_variance"))),
    Method("u-FPCA", "equal losses", _fair(solver="u-fpca"), two_groups=True),
    Method("c-FPCA", "equal losses", _fair(solver="c-fpca"), two_groups=True),
    Method("null space", "parity of means", ParityPCA),
    Method(
        "null space, similar covariances",
        "parity",
        lambda r: ParityPCA(r, match="covariance"),
    ),
    Method(
        "Olfat-Aswani, penalty 1",
        "parity",
        lambda r: OlfatAswani(r, penalty=1.0),
    ),
)


@dataclass(frozen=True)
class Result:
    """What a method reached."""

    method: Method
    dimensions: int
    disparities: Array
    total_loss: float
    mean_gap: float
    ratio: float

    @property
    def largest(self) -> float:
        """Largest disparity."""
        return float(self.disparities.max())

    @property
    def spread(self) -> float:
        """Largest difference between the disparities of two groups."""
        return float(np.ptp(self.disparities))


def best_time(run: Callable[[], object], budget: float) -> float:
    """Shortest of several runs, at least one, within a budget of seconds."""
    times: list[float] = []
    while not times or (sum(times) < budget and len(times) < 10):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(name: str, r: int, budget: float = 1.0) -> Iterator[Result]:
    """Run every method that can take this data on r dimensions, for so many seconds each."""
    X, groups = real_rows(name)
    problem = Problem(GroupMoments.from_rows(X, groups), r)
    plain = best_time(lambda: PCA(r).fit(X), budget)
    for method in METHODS:
        if method.two_groups and problem.n_groups > 2:
            continue
        estimator = method.make(r)
        options = {} if isinstance(estimator, PCA) else {"sensitive_features": groups}

        fits: list[Any] = []

        def fit(estimator: Any = estimator, options: Any = options, fits: Any = fits) -> None:
            fits.append(estimator.fit(X, **options))

        seconds = best_time(fit, budget)
        fitted = fits[-1]
        basis, retention = fitted.components_.T, None
        if isinstance(fitted, FairPCA):
            basis, retention = fitted.solution_.basis, fitted.solution_.retention
        yield Result(
            method,
            int(fitted.n_components_),
            problem.disparities(basis, retention),
            problem.total_loss(basis, retention),
            parity_gaps(problem.moments, basis)[0],
            seconds / plain,
        )


def check(results: list[Result], r: int, tolerance: float) -> None:
    """The exact solver is at least as good as every method with its criterion in r dimensions."""
    exact = {result.method: result for result in results}
    for result in results:
        if result.dimensions != r:
            continue
        if result.method.criterion == "min-max":
            assert exact[EXACT_MINMAX].largest <= result.largest + tolerance, result
        if result.spread <= tolerance:
            assert exact[EXACT_EQUAL].total_loss <= result.total_loss + tolerance, result


def row(result: Result) -> str:
    """A line of the table."""
    return (
        f"| {result.method.name} | {result.method.criterion} | {result.dimensions} | "
        f"{result.largest:.5f} | {result.spread:.5f} | {result.total_loss:.5f} | "
        f"{result.mean_gap:.4f} | {result.ratio:.3g} |"
    )


def main() -> None:
    """Run everything and write the page."""
    warnings.simplefilter("ignore", FairnessWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines = [HEAD]
    for name in DATA:
        for r in DIMENSIONS:
            start = time.perf_counter()
            results = list(compare(name, r))
            check(results, r, tolerance=1e-6)
            lines.append(f"\n## {name}, r = {r}\n")
            lines.append(
                "| method | criterion | dimensions | largest disparity | spread | total loss | "
                "mean gap | time / PCA |"
            )
            lines.append("|---|---|---|---|---|---|---|---|")
            lines += [row(result) for result in results]
            print(f"{name}, r = {r}: {time.perf_counter() - start:.0f} s")
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

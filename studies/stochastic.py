"""Stochastic Pareto descent beside the exact frontier: passes, variants, own subspaces, stopping.

Run ``python -m studies.stochastic`` to rewrite studies/stochastic.md (half an hour on one core).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairpca import Equal, ExactSolver, GroupMoments, ParetoDescent, Problem, StochasticFairPCA
from fairpca._linalg.types import Array
from fairpca.groups import Groups
from fairpca.stochastic import ArrayBatches, CentredRows, MovingBasis, TrackedSubspaces
from studies.real_data import real_rows
from studies.vrpca import VRPCA

TARGET = Path(__file__).with_name("stochastic.md")
CASES = ("Adult by sex", "Adult by race", "Credit by marriage")
DIMENSIONS, BATCHES, PASSES, SEEDS = (2, 5, 10), (64, 1024), (1, 3, 10, 30), range(10)

HEAD = """# Stochastic Pareto descent: how near to the frontier, and what it takes

Made by `python -m studies.stochastic`. Standardised integer codes, random starts. Distances are
of the total loss above the smallest possible at the spread that was reached, in heights of the
frontier: one height is what equality costs, the smallest loss with equal disparities minus that of
ordinary PCA. Medians of ten seeds, with the largest in brackets. The exact solver sees the data
once and is at 0.

With more than two groups a point that no other dominates, pair by pair, need not have the least
loss for its spread, so distances need not fall to zero: `ParetoDescent` with exact gradients, run
to the end, ends up to 0.57 heights above it ([pareto_variants.md](pareto_variants.md)).

## After 1, 3, 10 and 30 passes

*Full* is `ParetoDescent`, whose every step takes one pass. *Spread*: largest difference of the
disparities after 30 passes, as a share of ordinary PCA's.

| | r | batch | 1 pass | 3 | 10 | 30 | spread |
|---|---|---|---|---|---|---|---|
"""

BELOW = """
Of {n:,} distances the least is {least:.1g}: none is below the frontier by more than rounding.
"""

VARIANTS = """
## What pays: variants on Adult by sex, r = 5, ten passes, five seeds

The direction of noisy gradients is biased; *recursive* tracks them with a correction for the way of
the basis since, *average* without, *none* takes each batch as it is. Steps are as long as the
measured noise allows, or 1/√t. `StochasticFairPCA` does what the first line says.

| variance reduction | steps | batches of 64 | batches of 1,024 |
|---|---|---|---|
"""

JOINT = """
## Own subspaces, learnt along the way

Excess of the worst group's own loss over the exact one, as a share of it: median of ten seeds, with
the largest in brackets, for batches of 1,024, from the same runs as above.

| | r | 1 pass | 3 | 10 | 30 |
|---|---|---|---|---|---|
"""

TIMES = """
Does it save time over learning own subspaces first? *First*: `VRPCA` finds them to within 1e-3 of
the exact own losses (the fewest epochs that do), then ten passes move the fair subspace alone.
*Together*: ten passes move all of them. Best of three, in one process; in seconds. *Moments* is the
exact way: `FairPCA`, with its proof.

| | r | first: own subspaces | first: fair subspace | first: sum | together | ratio | moments |
|---|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Run everything and write the page."""
    lines, own_lines, found = [HEAD], [JOINT], []
    for name in CASES:
        for r in DIMENSIONS:
            for size in BATCHES:
                runs = [stochastic_run(name, r, size, seed) for seed in SEEDS]
                distances = np.array([run[0] for run in runs])
                found.append(distances.ravel())
                spread = np.array([run[1] for run in runs])
                lines.append(row(name, r, f"{size:,}", distances, spread))
                if size == max(BATCHES):
                    errors = np.array([run[2] for run in runs])
                    own_lines.append(cells(name, r, *(errors.T)))
            full = [full_run(name, r, seed) for seed in SEEDS]
            distances = np.array([run[0] for run in full])
            lines.append(row(name, r, "full", distances, np.array([run[1] for run in full])))
    every = np.concatenate(found)
    lines.append(BELOW.format(n=len(every), least=every.min()))
    lines += [VARIANTS + "\n".join(variant_row(*variant) for variant in VARIANTS_TRIED)]
    lines += [*own_lines, TIMES]
    lines += [times_row(name, r) for name in CASES for r in DIMENSIONS]
    text = "\n".join(
        line.rstrip("\n") if "|---" in line or "rounding." in line else line for line in lines
    )
    TARGET.write_text(text + "\n", encoding="utf-8")


def said(line: str) -> str:
    """Show a line while others are made."""
    print(line, flush=True)
    return line


@lru_cache
def data(name: str) -> tuple[Array, Groups]:
    """Standardised rows, and their groups by number."""
    X, groups = real_rows(name)
    labels, codes = np.unique(groups, return_inverse=True)
    return X, Groups(tuple(range(len(labels))), codes)


@lru_cache
def yardstick(name: str, r: int) -> tuple[Problem, float, float]:
    """The problem, PCA's loss and the height of the frontier."""
    X, groups = data(name)
    problem = Problem(GroupMoments.from_groups(X, groups), r, criterion="equal")
    least = problem.total_loss(problem.pca_basis)
    return problem, least, ExactSolver().solve(problem).total_loss - least


def judged(name: str, r: int, basis: Array) -> tuple[float, float]:
    """Heights above the frontier, and the spread as a share of PCA's."""
    problem, least, height = yardstick(name, r)
    spread, plain = problem.spread(basis), problem.spread(problem.pca_basis)
    if spread < plain:
        least = ExactSolver().solve(problem.with_criterion(Equal(spread))).certificate.lower_bound
    return (problem.total_loss(basis) - least) / height, spread / plain


def stochastic_run(name: str, r: int, size: int, seed: int) -> tuple[list[float], float, Any]:
    """Distances after some passes, the last spread, and the errors of own losses."""
    X, groups = data(name)
    # As StochasticFairPCA does it, with a look at the subspace between passes.
    batches = ArrayBatches(X, groups, size, np.random.default_rng(seed))
    spaces = TrackedSubspaces(X.shape[1], r, batches.counts, np.random.default_rng(seed))
    distances, spread, errors = [], 0.0, []
    for number in range(1, max(PASSES) + 1):
        for blocks in batches.one_pass():
            spaces.take(blocks)
        if number in PASSES:
            distance, spread = judged(name, r, spaces.fair.basis)
            distances.append(distance)
            errors.append(own_error(name, r, [moving.basis for moving in spaces.own]))
    return distances, spread, errors


def own_error(name: str, r: int, bases: Sequence[Array]) -> float:
    """Excess of the worst group's own loss over the exact one, as a share of it."""
    problem = yardstick(name, r)[0]
    kept = [
        np.linalg.eigvalsh(basis.T @ matrix @ basis)[-r:].sum()
        for basis, matrix in zip(bases, problem.matrices, strict=True)
    ]
    # Where nothing is lost, rounding is relative to the variance.
    losses = np.maximum(problem.own_losses, 1e-9 * problem.traces)
    return float(((problem.own_gains - np.array(kept)) / losses).max())


def full_run(name: str, r: int, seed: int) -> tuple[list[float], float]:
    """The same of the method with exact gradients, one step for each pass."""
    problem, distances, spread = yardstick(name, r)[0], [], 0.0
    for steps in PASSES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solver = ParetoDescent(max_iter=steps, random_state=seed + 1)
            distance, spread = judged(name, r, solver.solve(problem).basis)
        distances.append(distance)
    return distances, spread


def row(name: str, r: int, batch: str, distances: Array, spread: Array) -> str:
    """A line of the first table."""
    parts = [f"{np.median(column):.2g} ({column.max():.2g})" for column in distances.T]
    share = f"{100 * np.median(spread):.0f} % ({100 * spread.max():.0f} %)"
    return said(f"| {name} | {r} | {batch} | {' | '.join(parts)} | {share} |")


def cells(name: str, r: int, *columns: Array) -> str:
    """A line with medians and maxima."""
    parts = [f"{np.median(column):.0e} ({column.max():.0e})" for column in columns]
    return said(f"| {name} | {r} | {' | '.join(parts)} |")


FOLLOW = MovingBasis.follow


def average(self: MovingBasis, i: int, rows: CentredRows) -> None:
    """Follow an image by the average of recent batches as they are."""
    last = self.images[i]
    forget(self, i, rows)
    if last is not None:
        self.images[i] = last + self.shares[i] * (self.images[i] - last)


def forget(self: MovingBasis, i: int, rows: CentredRows) -> None:
    """Take the image of the last batch."""
    FOLLOW(self, i, rows)
    self.images[i] = rows.image(self.basis)


def root_of_steps(self: TrackedSubspaces, noise: Array, parts: Array) -> float:
    """Length of a step that falls as the root of their number."""
    return 1.0 / float(np.sqrt(self.n_steps))


REDUCTIONS = {"recursive": FOLLOW, "average": average, "none": forget}
STEPS = {"by noise": TrackedSubspaces._length, "1/√t": root_of_steps}
VARIANTS_TRIED = [
    *(("recursive", "by noise"), ("average", "by noise"), ("none", "by noise")),
    *(("recursive", "1/√t"), ("none", "1/√t")),
]


def variant_row(reduction: str, steps: str) -> str:
    """A line for a variant."""
    X, groups = data("Adult by sex")
    parts = []
    for size in BATCHES:
        ends = []
        for seed in range(5):
            fair = StochasticFairPCA(5, batch_size=size, random_state=seed)
            with (
                patch.object(MovingBasis, "follow", REDUCTIONS[reduction]),
                patch.object(TrackedSubspaces, "_length", STEPS[steps]),
            ):
                fair.fit(X, sensitive_features=groups.codes.astype(str))
            ends.append(judged("Adult by sex", 5, fair.components_.T)[0])
        parts.append(f"{np.median(ends):.2g} ({max(ends):.2g})")
    return said(f"| {reduction} | {steps} | {' | '.join(parts)} |")


class GivenOwn(TrackedSubspaces):
    """The fair subspace alone, where the groups' own gains are known."""

    gains: Array

    def own_gains(self) -> Array:
        """What each group keeps in its own subspace."""
        return self.gains


def times_row(name: str, r: int) -> str:
    """A line of the table of times."""
    X, groups = data(name)
    problem = yardstick(name, r)[0]
    epochs, own, centers = 0, np.inf, np.zeros((len(groups.labels), X.shape[1]))
    bases: Sequence[Array] = ()
    while epochs == 0 or own_error(name, r, bases) > 1e-3:
        epochs += 1
        first = partial(VRPCA(tol=0.0, max_epochs=epochs).subspaces, X, groups.codes, centers, r)
        own, bases = best_of(first), first()

    def passes(kind: type[TrackedSubspaces]) -> None:
        batches = ArrayBatches(X, groups, 1024, np.random.default_rng(0))
        spaces = kind(X.shape[1], r, batches.counts, np.random.default_rng(0))
        if isinstance(spaces, GivenOwn):
            spaces.gains, spaces.own = problem.own_gains, []
        for _ in range(10):
            for blocks in batches.one_pass():
                spaces.take(blocks)

    alone, together = best_of(lambda: passes(GivenOwn)), best_of(lambda: passes(TrackedSubspaces))

    def exact() -> None:
        found = Problem(GroupMoments.from_groups(X, groups), r, criterion="equal")
        ExactSolver().solve(found)

    parts = (own, alone, own + alone, together)
    ratio = f"{together / (own + alone):.2f}"
    shown = " | ".join(f"{part:.2f}" for part in parts)
    return said(f"| {name} | {r} | {shown} | {ratio} | {best_of(exact):.2f} |")


def best_of(work: Callable[[], Any], n: int = 3) -> float:
    """The shortest time of several."""
    times = []
    for _ in range(n):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()

"""Pareto descent with many groups: which objectives end near the front, and what a step costs.

Run ``python -m studies.many_groups`` to rewrite studies/many_groups.md (ten minutes).
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from fairpca import ExactSolver, GroupMoments, ParetoDescent, Problem
from fairpca._linalg.dense import direction_of, qr_factor
from fairpca._linalg.types import Array
from fairpca.datasets import load_adult, load_credit
from fairpca.objectives import PaperObjectives
from fairpca.solvers.pareto import _project

TARGET = Path(__file__).with_name("many_groups.md")

SEEDS = {"adjacent": range(1, 4), "pooled": range(1, 6)}
"""Of random starts: runs of the former take ten times as long."""

DIMENSIONS, FEWEST_ROWS = (2, 5, 10), 30

N_BASES, ZERO = 10_000, 1e-7

ADULT = (
    *("race", "relationship", "marital-status", "workclass", "race × sex"),
    *("workclass × sex", "occupation", "education"),
)
CREDIT = (
    *("marriage", "education", "sex × marriage", "sex × education"),
    "marriage × education",
)
GROUPINGS = (*(f"Adult, {name}" for name in ADULT), *(f"Credit, {name}" for name in CREDIT))

CASES = (
    *(("synthetic, 5", 5), ("synthetic, 20", 5), ("synthetic, 50 of 60 columns", 10)),
    *((f"Adult, {name}", 5) for name in ("race", "race × sex", "education × sex")),
    ("Adult, education × race × sex", 5),
    ("Credit, marriage × education", 5),
)

HEAD = """# Pareto descent with many groups

The paper's objectives are the total loss and the differences of all k(k − 1)/2 pairs of groups. `ParetoDescent` has
them as printed (`objectives="pairwise"`), the differences of neighbours in the order of disparities
(`"adjacent"`), and half the sum of all squared differences as one objective (`"pooled"`). Made by
`python -m studies.many_groups`: standardised integer codes, groups of fewer than 30 rows merged into one; synthetic
groups with Gaussian rows, axes and scales of their own and 30 to 300 rows each.

- *largest*, *spread*: the largest disparity, and the largest difference between two, in squared units.
- *extra loss*: total loss above that of ordinary PCA.
- *room*: by how much the total loss may be lower, as a share of it, with no larger differences: at most so much, as a
  bound proves. Differences are measured as the objectives measure them: for "adjacent" by the spread, for "pooled" by the sum of
  squares.
"""


# --- The groups -----------------------------------------------------------------------------------


@cache
def problem_of(name: str, r: int) -> Problem:
    """The problem of a grouping of real rows, or of synthetic ones."""
    data, _, columns = name.partition(", ")
    rows, labels = synthetic(columns) if data == "synthetic" else real(data, columns.split(" × "))
    return Problem(GroupMoments.from_rows(rows, labels), r, criterion="equal")


def synthetic(name: str) -> tuple[Array, Any]:
    """Groups with falling spectra, axes and scales of their own."""
    k, d = int(name.split()[0]), 60 if "60" in name else 20
    rng = np.random.default_rng(k)
    sizes = rng.integers(FEWEST_ROWS, 10 * FEWEST_ROWS, k)
    spectrum = 1.0 / np.sqrt(1.0 + np.arange(d))
    blocks = [
        rng.uniform(0.7, 1.4)
        * (rng.standard_normal((size, d)) * spectrum)
        @ qr_factor(rng.standard_normal((d, d)))
        for size in sizes
    ]
    return np.vstack(blocks), np.repeat(np.arange(k), sizes)


def real(data: str, columns: list[str]) -> tuple[Array, Any]:
    """Standardised rows, and groups by any of the columns with categories."""
    every = ["sex", "race"] if data == "Adult" else ["sex", "marriage", "education"]
    bunch = (load_adult if data == "Adult" else load_credit)(sensitive=every)
    table = bunch.data.assign(**bunch.sensitive_features.astype(str))
    labels = table[columns].astype(str).agg(" ".join, axis=1).to_numpy(dtype=object)
    counts = Counter(labels)
    labels = [label if counts[label] >= FEWEST_ROWS else "others" for label in labels]
    return StandardScaler().fit_transform(bunch.data), labels


# --- The proposition ------------------------------------------------------------------------------


def slopes_of(problem: Problem, basis: Array, kind: str) -> Array:
    """Gradients at a basis, scaled to length one, in as few coordinates as they span."""
    gradients = PaperObjectives(kind).evaluate(problem, basis, _project)[1].reshape(-1, basis.size)
    rows = np.linalg.qr(gradients.T)[1].T
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


def shortest(rows: Array) -> Array:
    """The min-norm direction of gradients of length one."""
    return direction_of(rows, rows, normalize=True, zero=np.zeros(len(rows)))[0]


def steepest(rows: Array) -> float:
    """How steeply all can fall together along a direction with entries of at most one."""
    m, n = rows.shape
    conditions = np.column_stack([rows, np.ones(m)])
    bounds = [(-1.0, 1.0)] * n + [(0.0, 1.0)]
    found = linprog(np.append(np.zeros(n), -1.0), conditions, np.zeros(m), bounds=bounds)
    return -float(found.fun)


def agree(problem: Problem, basis: Array) -> tuple[bool, bool, float]:
    """Whether pairs have a common direction, whether the three agree on it, and how nearly."""
    pairs, adjacent = (slopes_of(problem, basis, kind) for kind in ("pairwise", "adjacent"))
    norms = [float(np.linalg.norm(shortest(rows))) for rows in (pairs, adjacent)]
    exists = [norms[0] > ZERO, norms[1] > ZERO, steepest(pairs) > ZERO]
    return exists[2], len(set(exists)) == 1, abs(norms[0] - norms[1])


def random_bases(n: int) -> Iterator[tuple[Problem, Array]]:
    """Random problems with 2 to 12 groups, of which most have at most 12 directions to go in."""
    rng = np.random.default_rng(0)
    for _ in range(n):
        k, d = int(rng.integers(2, 13)), int(rng.integers(3, 9))
        factors = rng.standard_normal((k, d, d)) * rng.uniform(0.2, 2.0, d)
        moments = GroupMoments(
            labels=tuple(range(k)),
            count=np.full(k, 100),
            weight=rng.uniform(10.0, 1000.0, k),
            mean=np.zeros((k, d)),
            scatter=100.0 * factors @ factors.transpose(0, 2, 1),
        )
        r = int(rng.integers(1, d))
        yield Problem(moments, r), qr_factor(rng.standard_normal((d, r)))


def proposition(n: int = N_BASES) -> str:
    """What random bases show of it."""
    found = [agree(*one) for one in random_bases(n)]
    exists, same, apart = (np.array(column) for column in zip(*found, strict=True))
    return f"""## Pairs and neighbours have the same directions

Sort the groups by disparity, no two of them equal, and let ψ be symmetric. The difference of a pair is the sum of the adjacent
differences between its two groups, so its gradient is a combination of theirs with positive weights, and whatever lowers
all adjacent ones lowers all pairs. The min-norm directions are the same too, also with gradients scaled to
length one. On {n:,} random bases (2 to 12 groups, 3 to 8 columns) there is a common
direction on {exists.sum():,}. Pairs, neighbours and a linear program agree on whether there is one on {same.sum():,}; the
norms of both directions differ by at most {apart.max():.0e}.
"""


# --- Where runs end -------------------------------------------------------------------------------


def run(problem: Problem, solver: ParetoDescent) -> tuple[Array, float]:
    """Largest disparity, spread and extra loss where a run ends, and its room."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = solver.solve(problem)
    room = solver._room(problem, solution.history["runs"][0], solution)
    return ended(problem, solution.basis), room


def ended(problem: Problem, basis: Array) -> Array:
    """Largest disparity, spread, and extra loss in per cent."""
    disparities, plain = problem.disparities(basis), problem.total_loss(problem.pca_basis)
    extra = 100.0 * (problem.total_loss(basis) / plain - 1.0)
    return np.array([disparities.max(), np.ptp(disparities), extra])


def cell(numbers: Array) -> str:
    """Three numbers in a cell."""
    largest, spread, extra = (0.0 if number < 1e-9 else number for number in numbers)
    return f"{largest:.3g} / {spread:.3g} / {extra:.2g} %"


def cases(names: tuple[tuple[str, int], ...] = CASES) -> str:
    """A table with a row for each case, for the first start."""
    lines = [
        "## Where runs end\n",
        "Largest / spread / extra loss, from the first random start; as printed from ordinary PCA, 1,000 steps. ✗: no subspace "
        "has equal disparities, which is proven; the one with the smallest spread that was found is shown.\n",
        "| groups | r | PCA | exact min-max | exact equal | adjacent | pooled | as printed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, r in names:
        problem = problem_of(name, r)
        fair = ExactSolver().solve(problem.with_criterion("minmax")).basis
        equal = ExactSolver().solve(problem)
        cross = " ✗" if equal.certificate.status == "infeasible" else ""
        descents = (
            ParetoDescent("adjacent", random_state=1),
            ParetoDescent("pooled", random_state=1),
            ParetoDescent.as_printed(),
        )
        cells = [cell(ended(problem, basis)) for basis in (problem.pca_basis, fair)]
        cells += [cell(ended(problem, equal.basis)) + cross]
        cells += [cell(run(problem, solver)[0]) for solver in descents]
        title = f"{name} ({problem.n_groups})" if "synth" not in name else name
        lines.append(f"| {title} | {r} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rooms(names: tuple[str, ...] = GROUPINGS) -> str:
    """How many runs end near the front, by the number of groups."""
    found: list[tuple[Any, ...]] = []
    for name in names:
        for r in DIMENSIONS:
            problem = problem_of(name, r)
            plain = problem.disparities(problem.pca_basis).max()
            for kind, seeds in SEEDS.items():
                for seed in seeds:
                    end, room = run(problem, ParetoDescent(kind, random_state=seed))
                    above = end[0] > plain
                    found.append((problem.n_groups, kind, room, end[1], end[2], above))
    starts = ", ".join(f"{len(seeds)} for {kind}" for kind, seeds in SEEDS.items())
    lines = [
        "## How many runs end near the front\n",
        f"{len(names)} groupings of Adult and Credit, r = {', '.join(map(str, DIMENSIONS))}; random starts: {starts}.\n",
        "| groups | objectives | runs | room at most 1 % | at most 5 % | largest room | extra loss, median | above PCA's "
        "largest disparity |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for low, high in ((3, 5), (6, 9), (10, 16)):
        for kind in SEEDS:
            some = [one for one in found if low <= one[0] <= high and one[1] == kind]
            left = np.array([one[2] for one in some])
            extra = np.median([one[4] for one in some])
            above = sum(one[5] for one in some)
            lines.append(
                f"| {low} to {high} | {kind} | {len(some)} | {share(left <= 0.01)} | {share(left <= 0.05)} "
                f"| {100 * left.max():.2g} % | {extra:.2g} % | {above} |"
            )
    lines.append(
        "\nUp to five groups neighbours mostly end near the front, and at equality where that is possible, which the sum does "
        "not: they are the default there, as the paper asks for equality. With more groups they mostly stall far above the "
        "front, and the default is the sum. The number of directions that a "
        "subspace can turn in, r(d − r), is no such limit: it is 90 for Credit at r = 5, where runs stall with six groups."
    )
    return "\n".join(lines) + "\n"


def share(which: Any) -> str:
    """A share in per cent."""
    return f"{100 * which.mean():.0f} %"


# --- What a step costs ----------------------------------------------------------------------------


def times(groups: tuple[int, ...] = (2, 5, 10, 20, 50)) -> str:
    """Milliseconds of a step, and steps to the end."""
    lines = [
        "## What a step costs\n",
        "Milliseconds of processor time a step, d = 60, r = 10, and in brackets the number of steps until the direction vanishes, 300 at most.\n",
        f"| objectives | {' | '.join(f'k = {k}' for k in groups)} |",
        f"|---|{'---|' * len(groups)}",
    ]
    solvers = {
        "as printed": ParetoDescent.as_printed(max_iter=200),
        "pairwise": ParetoDescent("pairwise", max_iter=300),
        "adjacent": ParetoDescent("adjacent", max_iter=300),
        "pooled": ParetoDescent("pooled", max_iter=300),
    }
    for name, solver in solvers.items():
        cells = []
        for k in groups:
            problem = problem_of(f"synthetic, {k} of 60 columns", 10)
            start = solver._starts(problem)[0]
            began = time.process_time()
            steps = len(solver._descend(problem, start, None).steps)
            taken = 1000.0 * (time.process_time() - began) / steps
            cells.append(f"{taken:.2g} ({steps})" if name != "as printed" else f"{taken:.2g}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    parts = [HEAD, cases(), rooms(), times(), proposition()]
    TARGET.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()

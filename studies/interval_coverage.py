"""How often the intervals of `audit` hold what is true of the population.

Run ``python -m studies.interval_coverage`` to rewrite studies/interval_coverage.md (about four
minutes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # comes with scikit-learn
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from fairpca import GroupMoments, Problem, audit
from fairpca.fair_pca import Baselines

Array = NDArray[np.float64]

TARGET = Path(__file__).with_name("interval_coverage.md")

SHAPES = ((20, 5), (10, 2))
"""Columns, and dimensions of the subspace."""

DIFFERENCES, TAILS, ROWS = (0.0, 0.3, 0.7), ("normal", "t5"), (30, 60, 100, 300, 1000)

N_GROUPS, N_POOLED, N_DRAWS, N_POPULATIONS = 4, 20_000, 75, 5

WANTED = 0.92
"""Share of intervals that are to hold the truth."""

KINDS = ("disparity", "training disparity", "loss", "difference")

HEAD = f"""# Do the intervals hold the truth?

`audit` gives 95 % intervals. Here the populations are known: in each, four groups have the
covariances (1 - s) C + s C_i, where C and each C_i have the eigenvalues 5/j, j = 1 … d, along
random axes. Rows are normal, or have the t distribution with 5 degrees of freedom (heavy tails; one
radius for all columns, the covariance as before). The subspace is that of the PCA of
{N_POOLED:,} rows, and stays as it is; then n rows of each group are drawn and audited, {N_DRAWS}
times: {N_GROUPS * N_DRAWS} intervals for each line, from {N_POPULATIONS} populations. Made by
`python -m studies.interval_coverage`.

The columns say in how many per cent of the cases an interval holds what is true of the population:

- *disparity*: `baseline="rows"`. A group's own PCA is fitted to the n rows, and
  fits them too well; *in sample* is how much larger than the truth the plain disparity is on the
  average, and *width* that of the interval, both as a multiple of the standard deviation of the
  plain disparity.
- *training disparity*: `baseline="training"`, beyond the group's own PCA of
  {N_POOLED // N_GROUPS:,} training rows.
- *loss*: with the subspace.
- *difference*: between the disparities of the two groups that differ the most, whichever they are
  in a draw: {N_DRAWS} intervals for each line.

The aim is {100 * WANTED:.0f} % for 30 rows and more; fewer rows have no interval. The first table
takes all lines of the second together that have the same tails and the same n, as a share of
{N_GROUPS * N_DRAWS} intervals is itself only known to about 1.5 per cent, and the five populations
of a line are few. The rules were set by other draws than these. Intervals of disparities
are wider than they would have to be, because the bias of a small group's disparity is only known
roughly. Heavy tails are the hard case for losses: a small sample may lack the few rows that have
much of the loss. With more than 100 columns a group's own subspace is looked for among its leading
directions only, so intervals of disparities are too narrow where no direction stands out.

"""

POOLED_COLUMNS = (
    "| rows are | n | disparity | training disparity | loss | difference |\n"
    "|---|---|---|---|---|---|"
)

COLUMNS = (
    "| d | r | s | rows are | n | in sample | width | disparity | training disparity | loss "
    "| difference |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    d: int
    r: int
    s: float
    tail: str
    n: int


@dataclass(frozen=True, eq=False)
class Found:
    """What was found for a case: whether each interval holds the truth, and two numbers."""

    held: dict[str, list[bool]]
    excess: float
    width: float

    def line(self, case: Case) -> str:
        """A line of the table."""
        about = f"{case.d} | {case.r} | {case.s:g} | {case.tail} | {case.n:,}"
        return f"| {about} | {self.excess:.1f} | {self.width:.1f} | {_shares(self.held)} |"


def cases() -> Iterator[Case]:
    """All lines, in order."""
    for d, r in SHAPES:
        for s in DIFFERENCES:
            for tail in TAILS:
                for n in ROWS:
                    yield Case(d, r, s, tail, n)


def covariances(d: int, s: float, rng: np.random.Generator) -> Array:
    """One for each group."""

    def turned() -> Array:
        axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
        matrix: Array = (axes * (5.0 / np.arange(1, d + 1))) @ axes.T
        return matrix

    common = turned()
    return np.array([(1.0 - s) * common + s * turned() for _ in range(N_GROUPS)])


def rows_of(matrices: Array, n: int, tail: str, rng: np.random.Generator) -> tuple[Array, Array]:
    """So many rows of each group with these covariances, and their groups."""
    k, d, _ = matrices.shape
    rows = rng.normal(size=(k, n, d)) @ np.linalg.cholesky(matrices).transpose(0, 2, 1)
    if tail == "t5":
        rows *= np.sqrt(3.0 / rng.chisquare(5, size=(k, n, 1)))
    return rows.reshape(-1, d), np.repeat(np.arange(k), n)


def losses_in(matrices: Array, bases: Array) -> Array:
    """What groups with known covariances lose in subspaces, one for each or one for all."""
    kept = np.trace(bases.transpose(0, 2, 1) @ matrices @ bases, axis1=1, axis2=2)
    losses: Array = np.trace(matrices, axis1=1, axis2=2) - kept
    return losses


def run(case: Case, n_draws: int = N_DRAWS, n_populations: int = N_POPULATIONS) -> Found:
    """Draw rows of a case and see which intervals hold the truth."""
    # Seeds without the 1 served to set the rules.
    rng = np.random.default_rng([3, case.d, int(10 * case.s), TAILS.index(case.tail), case.n])
    held: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    numbers: list[tuple[float, float]] = []
    for i in range(n_draws):
        if i % -(-n_draws // n_populations) == 0:
            matrices = covariances(case.d, case.s, rng)
            X, groups = rows_of(matrices, N_POOLED // N_GROUPS, case.tail, rng)
            pca = PCA(case.r, svd_solver="full").fit(X)
            known = Baselines.of_problem(Problem(GroupMoments.from_rows(X, groups), case.r))
            assert known is not None
            pca.baselines_ = known  # as a FairPCA keeps them
            lost = losses_in(matrices, pca.components_.T[None])
            own = np.linalg.eigh(matrices)[1][:, :, -case.r :]
            disparities = lost - losses_in(matrices, own)
            beyond = lost - losses_in(matrices, known.own_bases)
        X, groups = rows_of(matrices, case.n, case.tail, rng)
        choices: dict[str, Any] = {"sensitive_features": groups, "random_state": i}
        table = audit(pca, X, **choices)
        of_training = audit(pca, X, baseline="training", **choices)
        assert table.intervals is not None
        assert of_training.intervals is not None
        held["disparity"] += _holds(table.intervals.disparity, disparities)
        held["training disparity"] += _holds(of_training.intervals.disparity, beyond)
        held["loss"] += _holds(table.intervals.loss, lost)
        worst, best = table.intervals.extremes or (0, 0)
        ends = np.array([table.intervals.difference])
        held["difference"] += _holds(ends, disparities[[worst]] - disparities[best])
        widths = np.ptp(table.intervals.disparity, axis=1)
        numbers += zip(table.disparity - disparities, widths, strict=True)
    excess, widths = np.array(numbers).T
    spread = float(excess.std())
    return Found(held, float(excess.mean()) / spread, float(widths.mean()) / spread)


def _shares(held: dict[str, list[bool]]) -> str:
    return " | ".join(f"{100 * np.mean(held[kind]):.1f}" for kind in KINDS)


def _holds(ends: Array, truth: Array) -> list[bool]:
    held: list[bool] = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).tolist()
    return held


def main() -> None:
    """Write the page."""
    lines, least = [], dict.fromkeys(KINDS, 1.0)
    together: dict[tuple[str, int], dict[str, list[bool]]] = {}
    every = list(cases())
    for case, found in zip(every, Parallel(n_jobs=-1)(map(delayed(run), every)), strict=True):
        least = {kind: min(least[kind], float(np.mean(found.held[kind]))) for kind in KINDS}
        pooled = together.setdefault((case.tail, case.n), {kind: [] for kind in KINDS})
        for kind, held in found.held.items():
            pooled[kind] += held
        lines.append(found.line(case))
        print(lines[-1], flush=True)
    said = ", ".join(f"{kind} {100 * share:.1f} %" for kind, share in least.items())
    said = f"\nThe least of each column, line by line: {said}.\n"
    first = [f"| {tail} | {n:,} | {_shares(held)} |" for (tail, n), held in together.items()]
    page = [HEAD + POOLED_COLUMNS, *first, said, COLUMNS, *lines]
    TARGET.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

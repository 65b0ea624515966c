"""Columns as they are, in units of very different size, and whether what is called equal is equal.

Run ``python -m studies.raw_columns`` to rewrite studies/raw_columns.md (about a minute).
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # comes with scikit-learn

from fairpca import ExactSolver, GroupMoments, Problem
from studies.real_data import real_moments

TARGET = Path(__file__).with_name("raw_columns.md")

GROUPINGS = (
    "Adult, sex",
    "Adult, race",
    "Adult, sex × race",  # noqa: RUF001
    "Credit, sex",
    "Credit, marriage",
    "Credit, education",
    "Credit, sex × marriage",  # noqa: RUF001
)
"""What loads each grouping, and its sensitive columns."""

HEAD = """# Columns as they are

Adult and Credit with their columns unscaled: one of them has nearly all the variance, and the least
ones have 1e-10 of it. Rounding errors of what is kept are then larger than all that is lost, so the
solver works with [what is left out](../docs/exact_solver.md#17-columns-of-very-different-size).
Standardise columns in earnest; this page is about whether words can be trusted where nobody did.
Made by `python -m studies.raw_columns`.

Asked for are equal disparities, for every number of dimensions. *Apart* is the largest difference
between two groups' disparities over the largest disparity, and *gap* what a subspace with as equal
ones could lose less, over the total loss. *Rounding* is how far rounding can move the total loss.
"""


def moments_of(grouping: str) -> GroupMoments:
    """Moments of the unscaled columns."""
    return real_moments(grouping, standardised=False)


def case(grouping: str, r: int) -> dict[str, Any]:
    """What is found for one number of dimensions."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = ExactSolver().solve(Problem(moments_of(grouping), r, criterion="equal"))
    certificate, found = solution.certificate, solution.disparities
    return {
        "ending": certificate.status,
        "least": float(found.min()),
        "largest": float(found.max()),
        "apart": float(np.ptp(found) / max(found.max(), 1e-300)),
        "gap": certificate.relative_gap,
        "loss": solution.total_loss,
        "rounding": certificate.rounding,
        "says equal": "equal disparities" in str(certificate).split(" was found")[0],
        "seconds": time.perf_counter() - started,
    }


def line(grouping: str, r: int, row: dict[str, Any]) -> str:
    """A row of the table."""
    return (
        f"| {grouping} | {r} | {row['ending']} | {row['least']:.6g} | {row['largest']:.6g} | "
        f"{row['apart']:.0e} | {row['loss']:.4g} | {row['gap']:.0e} | {row['rounding']:.0e} |"
    )


def main() -> None:
    """Solve all cases and write the page."""
    tasks = [(name, r) for name in GROUPINGS for r in range(1, moments_of(name).n_features)]
    rows = Parallel(n_jobs=-1, verbose=1)(delayed(case)(*task) for task in tasks)
    said = [row for row in rows if row["says equal"] and row["ending"] in ("optimal", "bounded")]
    count = {
        ending: sum(row["ending"] == ending for row in rows)
        for ending in ("optimal", "bounded", "infeasible", "unresolved")
    }
    lines = [
        HEAD,
        f"Of {len(rows)} cases, {len(said)} are called equal; there disparities are apart by at "
        f"most {max(row['apart'] for row in said):.0e} of the largest. Endings: "
        + ", ".join(f"{n} {ending}" for ending, n in count.items())
        + ".\n",
        "| groups | r | ending | least disparity | largest | apart | total loss | gap | rounding |",
        "|---|---|---|---|---|---|---|---|---|",
        *(line(*task, row) for task, row in zip(tasks, rows, strict=True)),
    ]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

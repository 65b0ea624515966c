"""Every real case with three to ten groups: what the exact solver reaches, and how surely.

Run ``python -m studies.exact_cases`` to rewrite studies/exact_cases.md (about a minute).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairpca import ExactSolver, Problem, Solution
from studies.real_data import real_moments

TARGET = Path(__file__).with_name("exact_cases.md")

GROUPINGS = (
    "Adult, race",
    "Adult, sex × race",  # noqa: RUF001
    "Credit, marriage",
    "Credit, education",
    "Credit, sex × marriage",  # noqa: RUF001
)

HEAD = """# Every real case with three to ten groups

Adult (training part, 14 columns) and Credit (23 columns), categories as integer codes, every
column standardised, all rows; criterion "equal", tolerance 0, losses as means, global centring.
Made by `python -m studies.exact_cases`.

- *spread*: largest difference between the disparities of two groups. Where equality is possible
  it is zero up to rounding; where it is impossible, *proven* is the smallest spread that any
  subspace can have.
- *gap*: how far the total loss can be above the smallest possible, relative to the total loss;
  where equality is impossible, above the smallest possible at this spread.
- *min-max gains*: by how much, at the least, every group's disparity falls under
  criterion="minmax" (equality levels down); empty where it does not.
"""


@dataclass(frozen=True)
class Case:
    """One grouping at one dimension, solved."""

    grouping: str
    n_groups: int
    r: int
    scale: float
    solution: Solution
    seconds: float

    @property
    def relative_gap(self) -> float:
        """Gap relative to the total loss."""
        return self.solution.certificate.relative_gap


def solve(grouping: str, first: int = 1, step: int = 1) -> Iterator[Case]:
    """Solve a grouping for the dimensions from 1 to d - 1, or for a sample of them."""
    moments = real_moments(grouping)
    for r in range(first, moments.n_features, step):
        problem = Problem(moments, r, criterion="equal")
        start = time.perf_counter()
        solution = ExactSolver().solve(problem)
        seconds = time.perf_counter() - start
        yield Case(grouping, len(moments.labels), r, problem.scale, solution, seconds)


def row(case: Case) -> str:
    """A line of the table."""
    certificate = case.solution.certificate
    equal = certificate.status in ("optimal", "bounded")
    proven = f"{certificate.violation_bound:.6f}" if certificate.status == "infeasible" else ""
    spread = "0" if equal else f"{certificate.spread:.6f}"
    gap = "0" if certificate.status == "optimal" else f"{certificate.relative_gap:.1e}"
    gains = f"{certificate.least_gain:.2g}" if certificate.least_gain > 0 else ""
    return (
        f"| {case.r} | {certificate.status} | {case.solution.total_loss:.6f} | "
        f"{case.solution.disparities.max():.6f} | {spread} | {proven} | {gap} | {gains} |"
    )


def main() -> None:
    """Solve everything and write the page."""
    lines = [HEAD]
    endings: Counter[str] = Counter()
    for grouping in GROUPINGS:
        cases = list(solve(grouping))
        lines.append(f"\n## {grouping} ({cases[0].n_groups} groups)\n")
        lines.append(
            "| r | status | total loss | largest disparity | spread | proven | gap | "
            "min-max gains |"
        )
        lines.append("|---|---|---|---|---|---|---|---|")
        lines += [row(case) for case in cases]
        endings.update(case.solution.certificate.status for case in cases)
        slowest = max(case.seconds for case in cases)
        print(f"{grouping}: {len(cases)} cases, slowest {slowest:.2f} s")
    summary = ", ".join(f"{count} {status}" for status, count in endings.most_common())
    lines.insert(1, f"\nEndings over {endings.total()} cases: {summary}.")
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(summary)


if __name__ == "__main__":
    main()

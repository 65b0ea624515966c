"""Where each variant of Pareto descent ends, on Adult by sex.

Run ``python benchmarks/pareto_variants.py`` to rewrite docs/pareto_variants.md (half a minute).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from fairpca import ExactSolver, GroupMoments, ParetoDescent, Problem
from fairpca.datasets import load_adult

TARGET = Path(__file__).parents[1] / "docs" / "pareto_variants.md"
SEEDS = range(1, 11)

HEAD = """# Where each variant of Pareto descent ends

Adult by sex (training part, standardised integer codes), ten random starts, 1,000 steps at most.
Medians over the starts, with the largest in brackets. Made by
`python benchmarks/pareto_variants.py`.

- *spread*: the difference of the two disparities at the end, as a share of ordinary PCA's.
- *above the frontier*: how much the total loss is above the smallest possible at that spread.
- *above the fair optimum*: how much it is above the smallest total loss with equal disparities;
  negative where the end is less fair and therefore cheaper.
- *direction*: the norm of the direction at the end; zero means Pareto stationary.
"""


def variants(scale: float) -> dict[str, dict[str, Any]]:
    """The variants by name."""
    return {
        "default": {},
        "projection by QR": {"projection": "qr"},
        "constant step 0.1": {"step": "constant", "step_size": 0.1},
        "backtracking": {"step": "backtracking"},
        "gradients not normalised": {"normalize": False, "step_size": 1.0 / scale},
        "absolute penalty": {"penalty": "absolute"},
        "exponential penalty": {"penalty": "exponential"},
        "single disparities": {"objectives": "single"},
        "Euclidean, as printed": {"geometry": "euclidean"},
        "Euclidean, from ordinary PCA": {"geometry": "euclidean", "start": "pca"},
    }


def main() -> None:
    """Run everything and write the page."""
    adult = load_adult(as_frame=False)
    moments = GroupMoments.from_rows(
        StandardScaler().fit_transform(adult.data), adult.sensitive_features
    )
    lines = [HEAD]
    for r in (2, 5, 10):
        problem = Problem(moments, r, criterion="equal")
        fair = ExactSolver().solve(problem).total_loss
        lines.append(f"\n## r = {r}\n")
        lines.append(
            "| variant | spread | above the frontier | above the fair optimum | direction | steps |"
        )
        lines.append("|---|---|---|---|---|---|")
        for name, choices in variants(problem.scale).items():
            lines.append(row(problem, name, choices, fair))
            print(lines[-1])
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


def row(problem: Problem, name: str, choices: dict[str, Any], fair: float) -> str:
    """A line of the table."""
    unfair = problem.spread(problem.pca_basis)
    ends = []
    for seed in SEEDS:
        end = ParetoDescent(random_state=seed, **choices).solve(problem)
        frontier = end.certificate.lower_bound
        ends.append(
            [
                np.ptp(end.disparities) / unfair,
                max(end.total_loss / frontier - 1.0, 0.0),
                end.total_loss / fair - 1.0,
                end.history["runs"][0].norms[-1],
                end.n_iter,
            ]
        )
    middle, largest = np.median(ends, axis=0), np.max(ends, axis=0)
    cells = [f"{percent(m)} ({percent(x)})" for m, x in zip(middle[:3], largest[:3], strict=True)]
    return f"| {name} | {' | '.join(cells)} | {middle[3]:.0e} | {middle[4]:.0f} |"


def percent(share: float) -> str:
    """A share in per cent, with zero for what is rounding."""
    if abs(share) < 5e-8:
        return "0"
    return f"{100 * share:.0f} %" if share >= 1 else f"{100 * share:.2g} %"


if __name__ == "__main__":
    main()

"""The objectives of wcPCA and StablePCA on wcPCA's generator: endings, gaps and times.

Run ``python -m studies.worst_case_pca`` to rewrite studies/worst_case_pca.md (some minutes).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca import Certificate, ExactSolver, GroupMoments, MinMax, Problem
from studies.subspace_attack import attack, random_bases

Array = NDArray[np.float64]

TARGET = Path(__file__).with_name("worst_case_pca.md")

SIZES = ((10, 5), (10, 50), (50, 5))
DIMENSIONS, SEEDS = (2, 5, 8), range(10)
N_SHARED = N_OWN = 5
LEAST, MOST = 0.1, 1.0
"""Range of the eigenvalues."""

N_DESCENTS, N_STEPS = 10, 300
"""Starts and steps of projected gradient descent."""

SAME = 1e-9
"""Difference between values that counts as none."""

NAMES = {"disparity": "maxRegret", "loss": "maxRCS", "kept_variance": "minPCA, StablePCA"}

HEAD = """# Worst-case PCA: objectives of others as measures

wcPCA (Fries, Reichstein, Blei and Peters, 2026, arXiv:2603.11304) and StablePCA (Wang, Liu, Lei,
Bach and Guo, 2025, arXiv:2505.00940) look for the subspace that is best in the worst of several
domains. Their objectives are measures of `FairPCA`, so the exact solver and its certificate serve
them too: [which_method.md](../docs/which_method.md#one-measure-for-every-worst-case-pca) says
which is which.

The table is on wcPCA's generator: p columns and k domains; 5 shared directions with eigenvalues
uniform in [0.1, 1]; 5 directions of each domain's own, orthogonal to the shared ones, with one
further draw of eigenvalues that is common to all domains; each covariance divided by its trace.
With p = 10 the own directions of all domains span the same complement, each in a basis of its own.
As all traces are 1, relative measures are the same as absolute ones here, and maxRCS and minPCA
have the same best subspaces; both are run all the same. Domains weigh the same. Made by
`python -m studies.worst_case_pca`.

- *mean value*: of the objective, over ten seeds.
- *optimal*: how many of ten seeds end proven optimal; the others are bounded, and none ends
  otherwise. *largest gap*: how far, at the most, the value can be above the smallest possible, in
  units of the variance of a domain, which is 1.
- *seconds*: of processor time that `ExactSolver().solve` takes, median and largest. It is long
  where the relaxation leaves a gap, because all 40 starts are then tried.
- *descent*: how much larger the value of projected gradient descent is (the best of 10 random
  starts of 300 steps, written for this comparison: `studies/subspace_attack.py`), smallest,
  median and largest. Differences below 1e-9 are shown as 0; it is never better by more.
"""


@dataclass(frozen=True)
class Case:
    """One problem, solved both ways."""

    p: int
    k: int
    r: int
    seed: int
    measure: str
    certificate: Certificate
    by_descent: float
    seconds: float

    @property
    def excess(self) -> float:
        """How much larger the value of projected gradient descent is."""
        return self.by_descent - self.certificate.value


def covariances(p: int, k: int, seed: int) -> Array:
    """Draw the domains' covariances; (k, p, p)."""
    rng = np.random.default_rng([seed, p, k])
    basis = random_bases(rng, 1, p, p)[0]
    shared, rest = basis[:, :N_SHARED], basis[:, N_SHARED:]
    values = rng.uniform(LEAST, MOST, N_SHARED)
    own_values = rng.uniform(LEAST, MOST, N_OWN)
    own = rest @ random_bases(rng, k, p - N_SHARED, N_OWN)
    drawn = (shared * values) @ shared.T + (own * own_values) @ own.transpose(0, 2, 1)
    return np.asarray(drawn / (values.sum() + own_values.sum()))


def problem_of(matrices: Array, r: int, measure: str) -> Problem:
    """The problem of domains that weigh the same."""
    k, p, _ = matrices.shape
    moments = GroupMoments(
        labels=tuple(range(k)),
        count=np.full(k, 100),
        weight=np.full(k, 100.0),
        mean=np.zeros((k, p)),
        scatter=100.0 * matrices,
    )
    return Problem(moments, r, MinMax(measure))


def constants_of(matrices: Array, r: int, measure: str) -> Array:
    """The constants c_i of a measure, from their definition."""
    values = np.linalg.eigvalsh(matrices)
    kept = {"disparity": values[:, -r:], "loss": values, "kept_variance": values[:, :0]}[measure]
    return np.asarray(kept.sum(axis=1))


def solve(p: int, k: int, r: int, seed: int, *, n_steps: int = N_STEPS) -> Iterator[Case]:
    """Solve a problem for every measure, both ways."""
    matrices = covariances(p, k, seed)
    starts = random_bases(np.random.default_rng(seed), N_DESCENTS, p, r)
    for measure in NAMES:
        start = time.process_time()
        solution = ExactSolver().solve(problem_of(matrices, r, measure))
        seconds = time.process_time() - start
        ends = attack(matrices, constants_of(matrices, r, measure), starts, n_steps)
        yield Case(p, k, r, seed, measure, solution.certificate, float(ends.min()), seconds)


def row(cases: list[Case]) -> str:
    """A line of the table: one size, dimension and measure, all seeds."""
    first = cases[0]
    optimal = sum(case.certificate.status == "optimal" for case in cases)
    bounded = [case.certificate.gap for case in cases if case.certificate.status == "bounded"]
    seconds, excess = [case.seconds for case in cases], [case.excess for case in cases]
    values = [abs(case.certificate.value) for case in cases]
    cells = (
        f"{first.p} | {first.k} | {first.r} | {NAMES[first.measure]}",
        f"{np.mean(values):.6f}",
        f"{optimal} of {len(cases)}",
        f"{max(bounded):.1e}" if bounded else "0",
        f"{np.median(seconds):.2f}, {max(seconds):.2f}",
        ", ".join(_shown(found) for found in (min(excess), np.median(excess), max(excess))),
    )
    return f"| {' | '.join(cells)} |"


def _shown(excess: Any) -> str:
    return "0" if abs(excess) < SAME else f"{excess:.1e}"


def main() -> None:
    """Solve everything and write the page."""
    lines = [HEAD]
    lines.append(
        "| p | k | r | objective | mean value | optimal | largest gap | seconds | descent |"
    )
    lines.append("|---" * 9 + "|")
    for p, k in SIZES:
        for r in DIMENSIONS:
            cases = [case for seed in SEEDS for case in solve(p, k, r, seed)]
            assert all(case.certificate.status in ("optimal", "bounded") for case in cases)
            assert all(case.excess > -SAME for case in cases)
            for measure in NAMES:
                lines.append(row([case for case in cases if case.measure == measure]))
                print(lines[-1], flush=True)
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

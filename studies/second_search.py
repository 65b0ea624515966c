"""The real cases that end with a gap, searched again by a program that has nothing of ours.

SciPy's sequential quadratic programming minimises the total loss over matrices X, whose columns
span what is left out, or what is kept where that has fewer dimensions, with equal disparities as
constraints. Nothing of the relaxation, of its solution or of our local search is used.

Run ``python -m studies.second_search`` to rewrite studies/second_search.md (about ten minutes).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.optimize
from joblib import Parallel, delayed  # comes with scikit-learn
from numpy.typing import NDArray

from fairpca import ExactSolver, Problem
from studies import exact_cases
from studies.real_data import real_moments

Array = NDArray[np.float64]

TARGET = Path(__file__).with_name("second_search.md")

N_STARTS, MAX_ITER = 60, 400

MET = 1e-7
"""Spread, relative to the largest disparity, at which a result counts as equal."""

SAME = 1e-6
"""Difference of total losses, relative to them, that counts as none."""

HEAD = f"""# The cases with a gap, searched again

Where the relaxation is not attained, no bound proves that the subspace which was found for one of
[the real cases](exact_cases.md) is the best. Here each of them is searched again from {N_STARTS}
random starts by another program, SciPy's SLSQP, which knows nothing of the relaxation, its solution
or our local search. *equal* are the starts that end with equal disparities, *the same* those of
them whose total loss is ours up to {SAME:g} of it, and *least* is the least total loss that it
finds. Made by `python -m studies.second_search`.

| grouping | r | gap | ours | least | equal | the same |
|---|---|---|---|---|---|---|
"""


class Searched(NamedTuple):
    """The total losses of a case: ours, and those that the other program finds."""

    ours: float
    gap: float
    losses: Array


def search(problem: Problem, seed: int, max_iter: int = MAX_ITER) -> float:
    """The total loss where a search from a random start ends; infinity unless disparities agree."""
    matrices, weights, own = problem.matrices, problem.weights, problem.own_gains
    k, d, _ = matrices.shape
    r = problem.n_components
    inside = r <= d // 2
    m, sign = (r, 1.0) if inside else (d - r, -1.0)
    # Disparities are own - kept, or own - trace + what is left out.
    constants = own if inside else own - problem.traces

    def parts(flat: Array) -> tuple[Array, Array]:
        x = flat.reshape(d, m)
        inverse = np.linalg.inv(x.T @ x)
        images = matrices @ x @ inverse
        caught = np.einsum("ia,kia->k", x, images)
        slopes = 2.0 * (images - x @ (inverse @ x.T) @ matrices @ x @ inverse)
        return constants - sign * caught, -sign * slopes.reshape(k, -1)

    found = scipy.optimize.minimize(
        lambda flat: float(weights @ parts(flat)[0]),
        np.random.default_rng(seed).standard_normal(d * m),
        jac=lambda flat: weights @ parts(flat)[1],
        constraints={
            "type": "eq",
            "fun": lambda flat: np.diff(parts(flat)[0]),
            "jac": lambda flat: np.diff(parts(flat)[1], axis=0),
        },
        method="SLSQP",
        options={"maxiter": max_iter, "ftol": 1e-12},
    )
    disparities = parts(found.x)[0]
    if not np.ptp(disparities) <= MET * disparities.max():
        return np.inf
    return float(weights @ (disparities - own + problem.traces))


def searched(grouping: str, r: int, n_starts: int = N_STARTS, *, jobs: int = -1) -> Searched:
    """One case, by both programs."""
    problem = Problem(real_moments(grouping), r, criterion="equal")
    ours = ExactSolver().solve(problem)
    losses = Parallel(n_jobs=jobs)(delayed(search)(problem, seed) for seed in range(n_starts))
    return Searched(ours.total_loss, ours.certificate.relative_gap, np.array(losses))


def line(grouping: str, r: int, found: Searched) -> str:
    """A line of the table."""
    equal = found.losses[np.isfinite(found.losses)]
    same = int((np.abs(equal - found.ours) <= SAME * found.ours).sum())
    least = f"{equal.min():.7f}" if len(equal) else "none"
    return (
        f"| {grouping} | {r} | {found.gap:.1e} | {found.ours:.7f} | {least} | {len(equal)} "
        f"| {same} |"
    )


def cases() -> list[tuple[str, int]]:
    """Grouping and dimension of the cases that end with a gap, as committed."""
    found, grouping = [], ""
    for text in exact_cases.TARGET.read_text(encoding="utf-8").splitlines():
        if text.startswith("## "):
            grouping = text[3:].rsplit(" (", 1)[0]
        elif "| bounded |" in text:
            found.append((grouping, int(text.split("|")[1])))
    return found


def main() -> None:
    """Write the page."""
    lines = []
    for grouping, r in cases():
        lines.append(line(grouping, r, searched(grouping, r)))
        print(lines[-1], flush=True)
    TARGET.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

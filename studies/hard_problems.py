"""Problems that are made to be hard: planted, in other coordinates, and with many columns.

Run ``python -m studies.hard_problems`` to rewrite studies/hard_problems.md (about half an hour).
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed  # comes with scikit-learn
from numpy.typing import NDArray

from fairpca import ExactSolver, Problem
from fairpca.solvers import _space as space

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from problems import KINDS, padded_problem, planted_problem, problem_of, random_matrices

Array = NDArray[np.float64]

TARGET = Path(__file__).with_name("hard_problems.md")

N_PLANTED, N_NEARLY_COMMUTING, N_TURNED, N_WIDE = 1000, 200, 200, 200

N_STARTS, N_TURNED_STARTS, N_WIDE_STARTS = 10, 40, 4

SAME = 1e-8
"""Difference of values, relative to their scale, that other coordinates may make."""

ROUNDING = 1e-15
"""The same, relative to all variance: where nobody loses anything only rounding is left."""

NO_WORSE = 1e-6
"""The same for a search in a part of the space."""

HEAD = f"""# Problems that are made to be hard

Random problems with 2 to 12 groups, some with columns of very different size, by the exact solver
with {N_STARTS} starts, unless said. Made by `python -m studies.hard_problems`.
"""


class Ending(NamedTuple):
    """How a search ended."""

    status: str
    value: float
    spread: float
    gap: float
    scale: float


def ending(problem: Problem, n_starts: int = N_STARTS, gap: float | None = None) -> Ending:
    """Solve a problem."""
    found = ExactSolver(n_starts=n_starts, gap=gap).solve(problem).certificate
    scale = problem.scale if found.goal == "equal" else problem.affine.scale
    rounding = ROUNDING / SAME * problem.scale
    return Ending(found.status, found.value, found.spread, found.gap, max(scale, rounding, 1e-300))


def planted(seed: int) -> Problem:
    """A problem of any kind with a subspace in which all disparities are 1."""
    rng = np.random.default_rng([seed, 1])
    k, d = int(rng.integers(3, 9)), int(rng.integers(4, 13))
    matrices = random_matrices(rng, KINDS[seed % len(KINDS)], k, d)
    problem: Problem = planted_problem(rng, matrices, int(rng.integers(1, d)))
    return problem


def nearly_commuting(seed: int) -> Problem:
    """The same with diagonal matrices and a little of others, and up to 12 groups."""
    rng = np.random.default_rng([seed, 2])
    k, d = int(rng.integers(5, 13)), int(rng.integers(8, 13))
    diagonal = random_matrices(rng, "diagonal", k, d)
    matrices = diagonal + 1e-4 * random_matrices(rng, "general", k, d)
    problem: Problem = planted_problem(rng, matrices, int(rng.integers(2, d - 2)))
    return problem


class Drawn(NamedTuple):
    """What a problem is made from."""

    matrices: Array
    weights: Array
    r: int
    criterion: str
    rng: np.random.Generator

    def problem(self) -> Problem:
        """The problem."""
        problem: Problem = problem_of(self.matrices, self.r, self.weights, criterion=self.criterion)
        return problem


def drawn(k: int, seed: int) -> Drawn:
    """A problem of any kind; every fourth has columns of sizes from 0.01 to 100."""
    rng = np.random.default_rng([seed, k, 3])
    d = int(rng.integers(3, 11))
    matrices = random_matrices(rng, KINDS[seed % len(KINDS)], k, d)
    if seed % 4 == 0:
        sizes = 10.0 ** rng.uniform(-2, 2, d)
        matrices = matrices * sizes[:, None] * sizes
    criterion = ("equal", "minmax")[seed // len(KINDS) % 2]
    weights = rng.dirichlet(np.ones(k)) * 1000 + 1
    return Drawn(matrices, weights, int(rng.integers(1, d)), criterion, rng)


def turned(k: int, seed: int) -> list[str]:
    """What differs in another order of the groups, in turned coordinates, and times a factor."""
    here = drawn(k, seed)
    rng, (_, d, _) = here.rng, here.matrices.shape
    first, order = ending(here.problem(), N_TURNED_STARTS), rng.permutation(k)
    turn, factor = np.linalg.qr(rng.standard_normal((d, d)))[0], 10.0 ** rng.uniform(-50, 50)
    matrices = turn.T @ here.matrices @ turn
    others = {
        "order": (here.matrices[order], here.weights[order], 1.0),
        "coordinates": ((matrices + matrices.transpose(0, 2, 1)) / 2, here.weights, 1.0),
        "factor": (here.matrices * factor, here.weights, factor),
    }
    differ = []
    for name, (changed, weights, unit) in others.items():
        problem = here._replace(matrices=changed, weights=weights).problem()
        other = ending(problem, N_TURNED_STARTS)
        off = abs(other.value / unit - first.value) / first.scale
        if other.status != first.status or off > SAME:
            differ.append(f"| {k} | {seed} | {name} | {_told(first, 1.0)} | {_told(other, unit)} |")
    return differ


def _told(found: Ending, unit: float) -> str:
    return f"{found.status} | {found.value / unit:.9g} | {found.gap / unit:.1e}"


def wide(seed: int) -> tuple[str, float, str, float]:
    """Endings and largest disparities, or losses, in the search space and in the whole space."""
    rng = np.random.default_rng([seed, 4])
    d = int(rng.choice([121, 121, 121, 130, 150, 310]))
    problem = padded_problem(rng, d, criterion=("equal", "minmax")[seed % 2])
    found: list[Any] = []
    limit = space.WHOLE_LIMIT
    for most in (limit, 10**9):
        space.WHOLE_LIMIT = most
        end = ending(problem, N_WIDE_STARTS, gap=0.0)
        met = end.status in ("optimal", "bounded")
        found += [end.status, (end.value if met else end.spread) / end.scale]
    space.WHOLE_LIMIT = limit
    return tuple(found)


def lines_of_planted(name: str, ends: list[Ending]) -> Iterator[str]:
    """Endings, and how large gaps are."""
    counted = Counter(end.status for end in ends)
    gaps = [end.gap / end.value for end in ends if end.status == "bounded"]
    largest = f"{np.median(gaps):.1e} | {np.max(gaps):.1e}" if gaps else " | "
    shown = " | ".join(
        str(counted[name]) for name in ("optimal", "bounded", "unresolved", "infeasible")
    )
    yield f"| {name} | {shown} | {largest} |"


def main() -> None:
    """Write the page."""
    run, page = Parallel(n_jobs=-1), [HEAD]
    began = time.perf_counter()
    page.append("## Planted equality\n")
    page.append(
        "Some subspace near the leading one has the disparity 1 in every group, so equality is "
        "possible, except\nwhere a group loses nothing there. A gap of 1 is that of a total loss "
        "with the bound 0.\n"
    )
    page.append(
        "| kind | optimal | bounded | unresolved | infeasible | gap of the bounded, median "
        "| largest |\n|---|---|---|---|---|---|---|"
    )
    for name, make, n in (
        ("any kind", planted, N_PLANTED),
        ("nearly commuting", nearly_commuting, N_NEARLY_COMMUTING),
    ):
        page += lines_of_planted(name, run(delayed(ending)(make(seed)) for seed in range(n)))
        print(page[-1], f"{time.perf_counter() - began:.0f} s", flush=True)
    page.append("\n## Other coordinates, order and unit\n")
    asked = [(k, seed) for k in (2, 3, 5, 10) for seed in range(N_TURNED)]
    differ = [line for lines in run(delayed(turned)(*one) for one in asked) for line in lines]
    page.append(
        f"{len(asked)} problems, {N_TURNED} each with 2, 3, 5 and 10 groups, a quarter with "
        "columns of sizes from 0.01 to 100;\neach solved again with its groups in another order, "
        "in coordinates turned at random, and times a factor\nfrom 1e-50 to 1e50; with the "
        f"default of {N_TURNED_STARTS} starts. Of "
        f"{3 * len(asked)} pairs {3 * len(asked) - len(differ)} have the same ending and values "
        f"equal to {SAME:g} of their scale\n(or to {ROUNDING:g} of the variance, which is "
        f"rounding).{' The others:' if differ else ''}\n"
    )
    if differ:
        head = "| k | seed | changed | ending | value | gap | ending | value | gap |\n"
        page += [head + "|---" * 9 + "|", *differ]
    print(len(differ), f"{time.perf_counter() - began:.0f} s", flush=True)
    page.append("\n## Many columns\n")
    pairs = run(delayed(wide)(seed) for seed in range(N_WIDE))
    same = sum(one == other for one, _, other, _ in pairs)
    above = [inside - whole for one, inside, other, whole in pairs if one == other]
    page.append(
        f"{N_WIDE} problems of 121 to 310 columns: 4 to 6 that matter, all others isotropic with "
        f"a level for each\ngroup; {N_WIDE_STARTS} starts and `gap=0`, in the search space and in "
        f"the whole space. The same ending: {same}.\nThe search space ends more than "
        f"{NO_WORSE:g} of the scale above the whole one in {sum(a > NO_WORSE for a in above)} "
        f"cases, and below it in {sum(a < -NO_WORSE for a in above)}.\n"
    )
    page += [
        f"- seed {seed}: {one} {inside:.8g}, whole {other} {whole:.8g}"
        for seed, (one, inside, other, whole) in enumerate(pairs)
        if one != other or abs(inside - whole) > NO_WORSE
    ]
    TARGET.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

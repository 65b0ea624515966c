"""Try to beat the lower bounds of 1,000 random problems, for every measure.

Run ``python -m studies.attack_bounds`` to rewrite studies/attacked_bounds.md (some minutes).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca import Certificate, ExactSolver, GroupMoments, MinMax, Problem
from fairpca.solvers.relaxation import import_cvxpy, run_program
from studies.subspace_attack import attack, largest_measures, random_bases

Array = NDArray[np.float64]

TARGET = Path(__file__).with_name("attacked_bounds.md")

N_PROBLEMS, N_SHOWN, N_PROGRAMS = 1000, 12, 100
N_RANDOM, N_LOCAL, N_STEPS = 100, 10, 100

N_STARTS = 2
"""Starts of the exact solver: fewer than by default, because bounds are the subject here."""

MEASURES = {
    ("disparity", False): "disparity",
    ("disparity", True): "relative_disparity",
    ("loss", False): "loss",
    ("loss", True): "share_lost",
    ("variance", False): "kept_variance",
    ("variance", True): "share_kept",
}
"""The names that the library has for them, by what is measured and whether as a share."""

KINDS = (
    "general",
    "tied eigenvalues",
    "diagonal and tied",
    "rank-deficient groups",
    "groups smaller than r",
    "constant columns",
    "groups of other scales",
    "shared directions",
    "nearly alike",
    "a group without variance",
)

ROUNDING = 64 * float(np.finfo(float).eps)
"""What counts as beaten: by more than this, relative to the largest trace of a measure."""

BETTER = 1e-6
"""By how much an attack has to be better than the solver to be counted, in the same unit."""

HEAD = """# Bounds under attack

A certificate claims that no subspace does better than its lower bound. Here 1,000 random problems
with 3 to 12 groups, 3 to 8 columns and every number of components, in ten kinds, each kind with
rows whose size is anything between 1e-8 and 1e8, are solved for all six measures, criterion
"minmax". Each bound is then attacked with 100 random subspaces and with 10 that a descent optimises
locally: from the solver's own subspace, from that of ordinary PCA and from eight random ones. The
descent (`studies/subspace_attack.py`) shares no code with the package, and neither do the
measures it computes. On the first 100 problems the bound is compared with the optimum of the
relaxed problem as a semidefinite program (cvxpy with Clarabel), for all six measures. Made by
`python -m studies.attack_bounds`.

All numbers are in units of the largest trace of a group (of its matrix divided by its unit), so
that 1 is all there is to lose.

- *beaten*: how often an attack came below the bound by more than rounding (1.4e-14).
- *nearest*: the smallest distance from the bound that an attack reached.
- *optimal*, *bounded*: how the solver ended, with two starts instead of 40.
- *median gap*, *largest gap*: of those that are bounded.
- *attack better*: how often an attack found a subspace that is better than the solver's by 1e-6;
  after the comma, how often it still is when the solver tries again with its default of 40 starts.
- *SDP*: the largest difference between the bound and the optimum of the program.
"""


@dataclass(frozen=True)
class Drawn:
    """A random problem: second moments by group, and what to do with them."""

    index: int
    kind: str
    n_components: int
    exponent: float
    matrices: Array
    weights: Array

    def problem(self, measure: str, relative: bool) -> Problem:
        """The problem with a measure."""
        k, d, _ = self.matrices.shape
        moments = GroupMoments(
            labels=tuple(range(k)),
            count=np.full(k, 100),
            weight=self.weights,
            mean=np.zeros((k, d)),
            scatter=self.matrices * self.weights[:, None, None],
        )
        return Problem(moments, self.n_components, MinMax(MEASURES[measure, relative]))

    def measured(self, measure: str, relative: bool) -> tuple[Array, Array]:
        """Matrices A_i / s_i and constants c_i / s_i, from their definition."""
        matrices, traces = self.matrices, np.trace(self.matrices, axis1=1, axis2=2)
        # A group without variance has no measure that a subspace could change.
        matrices, traces = matrices[traces > 0], traces[traces > 0]
        values = np.linalg.eigvalsh(matrices)[:, ::-1]
        constants = {
            "disparity": values[:, : self.n_components].sum(axis=1),
            "loss": traces,
            "variance": np.zeros(len(traces)),
        }[measure]
        units = traces if relative else np.ones(len(traces))
        return matrices / units[:, None, None], constants / units


@dataclass(frozen=True)
class Attacked:
    """A bound and what the attacks came to, in units of the largest trace."""

    drawn: Drawn
    measure: str
    relative: bool
    certificate: Certificate
    unit: float
    strongest: float
    again: float
    by_program: float | None
    seconds: float

    @property
    def bound(self) -> float:
        """The bound."""
        return self.certificate.lower_bound / self.unit

    @property
    def margin(self) -> float:
        """How far above the bound the strongest attack ended."""
        return self.strongest - self.bound

    @property
    def gap(self) -> float:
        """The gap of the certificate."""
        return self.certificate.gap / self.unit

    @property
    def gain(self) -> float:
        """By how much the strongest attack is better than the solver."""
        return self.certificate.value / self.unit - self.strongest

    @property
    def gain_on_default(self) -> float:
        """The same for the solver with its default number of starts, where it had to try again."""
        return self.again / self.unit - self.strongest


def draw(index: int) -> Drawn:
    """Problem number `index`."""
    rng = np.random.default_rng([14, index])
    k, d = 3 + index % 10, int(rng.integers(3, 9))
    r = int(rng.integers(1, d))
    kind = KINDS[(index // 10) % len(KINDS)]
    exponent = float(rng.uniform(-8, 8))
    matrices = _matrices(rng, kind, k, d, r) * 10.0 ** (2 * exponent)
    matrices = (matrices + matrices.transpose(0, 2, 1)) / 2
    return Drawn(index, kind, r, exponent, matrices, 1 + 1000 * rng.dirichlet(np.ones(k)))


def _matrices(rng: np.random.Generator, kind: str, k: int, d: int, r: int) -> Array:
    turns = random_bases(rng, k, d, d)
    if kind == "tied eigenvalues":
        return _with_spectra(turns, rng.integers(1, 3, (k, d)))
    if kind == "diagonal and tied":
        return _with_spectra(np.tile(np.eye(d), (k, 1, 1)), rng.integers(0, 4, (k, d)) + 0.5)
    if kind == "rank-deficient groups":
        ranks = rng.integers(1, d + 1, k)
        return _with_spectra(turns, rng.uniform(0.1, 3, (k, d)) * (np.arange(d) < ranks[:, None]))
    if kind == "groups smaller than r":
        rows = [rng.standard_normal((int(rng.integers(1, r + 1)), d)) for _ in range(k)]
        rows[0] = rng.standard_normal((5 * d, d))
        return np.array([part.T @ part / len(part) for part in rows])
    if kind == "shared directions":
        spectra = rng.uniform(0.1, 1, (k, d))
        return _with_spectra(np.tile(turns[0], (k, 1, 1)), spectra) + 1e-3 * _gram(rng, k, d)
    if kind == "nearly alike":
        return _gram(rng, 1, d) + 1e-6 * _gram(rng, k, d)
    matrices = _gram(rng, k, d)
    if kind == "constant columns":
        gone = rng.random(d) < 0.4
        gone[0] = False
        matrices *= ~gone[:, None] & ~gone[None, :]
    elif kind == "groups of other scales":
        matrices *= 10.0 ** rng.uniform(-4, 4, (k, 1, 1))
    elif kind == "a group without variance":
        matrices[int(rng.integers(k))] = 0.0
    return matrices


def _gram(rng: np.random.Generator, k: int, d: int) -> Array:
    rows = rng.standard_normal((k, d, d)) * np.sqrt(rng.exponential(size=(k, 1, d)))
    return np.asarray(rows.transpose(0, 2, 1) @ rows)


def _with_spectra(turns: Array, spectra: Any) -> Array:
    return np.asarray((turns * spectra[:, None, :]) @ turns.transpose(0, 2, 1))


def run(drawn: Drawn, *, with_program: bool, n_steps: int = N_STEPS) -> Iterator[Attacked]:
    """Solve a problem for every measure and attack the bounds."""
    for measure, relative in MEASURES:
        rng = np.random.default_rng([15, drawn.index])
        problem = drawn.problem(measure, relative)
        start = time.perf_counter()
        solution = ExactSolver(n_starts=N_STARTS).solve(problem)
        seconds = time.perf_counter() - start
        matrices, constants = drawn.measured(measure, relative)
        unit = float(np.trace(matrices, axis1=1, axis2=2).max())
        matrices, constants = matrices / unit, constants / unit
        d, r = problem.moments.n_features, drawn.n_components
        thrown = largest_measures(matrices, constants, random_bases(rng, N_RANDOM, d, r))
        starts = random_bases(rng, N_LOCAL, d, r)
        starts[0], starts[1] = solution.basis, problem.pca_basis
        local = attack(matrices, constants, starts, n_steps)
        strongest = float(min(thrown.min(), local.min()))
        again = solution.certificate.value
        if again / unit - strongest > BETTER:
            again = ExactSolver().solve(problem).certificate.value
        yield Attacked(
            drawn,
            measure,
            relative,
            solution.certificate,
            unit,
            strongest,
            again,
            program(matrices, constants, r) if with_program else None,
            seconds,
        )


def program(matrices: Array, constants: Array, r: int) -> float:
    """Optimum of the relaxed problem."""
    cp, d = import_cvxpy(), matrices.shape[1]
    projector, largest = cp.Variable((d, d), PSD=True), cp.Variable()
    limits = [
        constant - cp.sum(cp.multiply(matrix, projector)) <= largest
        for matrix, constant in zip(matrices, constants, strict=True)
    ]
    limits += [np.eye(d) - projector >> 0, cp.trace(projector) == r]
    posed = cp.Problem(cp.Minimize(largest), limits)
    accurate = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    run_program(posed, "clarabel", **accurate)
    return float(posed.value)


def name_of(measure: str, relative: bool) -> str:
    """A measure in words."""
    return f"relative {measure}" if relative else measure


def summary(name: str, results: list[Attacked]) -> str:
    """A line of the table of measures or kinds."""
    bounded = [result.gap for result in results if result.certificate.status == "bounded"]
    gaps = (f"{np.median(bounded):.1e}", f"{max(bounded):.1e}") if bounded else ("", "")
    compared = [
        abs(result.by_program - result.bound) for result in results if result.by_program is not None
    ]
    cells = (
        name,
        str(len(results)),
        str(sum(result.margin < -ROUNDING for result in results)),
        f"{min(result.margin for result in results):.1e}",
        str(sum(result.certificate.status == "optimal" for result in results)),
        str(len(bounded)),
        *gaps,
        f"{sum(result.gain > BETTER for result in results)}, "
        f"{sum(result.gain_on_default > BETTER for result in results)}",
        f"{max(compared):.1e}" if compared else "",
    )
    return f"| {' | '.join(cells)} |"


def shown(results: Iterable[Attacked]) -> str:
    """A line of the table of single problems."""
    found = list(results)
    drawn = found[0].drawn
    k, d, _ = drawn.matrices.shape
    bounds = " | ".join(f"{result.bound:.8f}" for result in found)
    return f"| {drawn.index} | {drawn.kind} | {k} | {d} | {drawn.n_components} | {bounds} |"


def main() -> None:
    """Attack everything and write the page."""
    everything: list[Attacked] = []
    start = time.perf_counter()
    for index in range(N_PROBLEMS):
        everything += run(draw(index), with_program=index < N_PROGRAMS)
        if index % 100 == 99:
            beaten = [result for result in everything if result.margin < -ROUNDING]
            print(f"{index + 1} problems, {time.perf_counter() - start:.0f} s", len(beaten))
            for result in beaten:
                print(result.drawn.index, result.measure, result.relative, result.margin)
    columns = (
        "problems | beaten | nearest | optimal | bounded | median gap | largest gap | "
        "attack better | SDP"
    )
    lines = [HEAD, f"\n| measure | {columns} |", "|---" * 10 + "|"]
    for measure, relative in MEASURES:
        chosen = [r for r in everything if (r.measure, r.relative) == (measure, relative)]
        lines.append(summary(name_of(measure, relative), chosen))
    lines += ["\n## By kind, all measures\n", f"| kind | {columns} |", "|---" * 10 + "|"]
    for kind in KINDS:
        lines.append(summary(kind, [r for r in everything if r.drawn.kind == kind]))
    names = " | ".join(name_of(*choice) for choice in MEASURES)
    lines += [f"\n## Bounds of every {N_PROBLEMS // N_SHOWN}rd problem\n"]
    lines += [f"| problem | kind | k | d | r | {names} |", "|---" * 11 + "|"]
    for index in range(0, N_PROBLEMS, N_PROBLEMS // N_SHOWN)[:N_SHOWN]:
        lines.append(shown(r for r in everything if r.drawn.index == index))
    seconds = [result.seconds for result in everything]
    print(f"a solve takes {np.mean(seconds):.3f} s on average, {max(seconds):.1f} s at the most")
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

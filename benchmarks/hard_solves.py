"""Time of the exact solver on problems with many groups or columns, equality among them impossible.

Run ``make bench``. From the moments to the certificate, the smallest of several runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fairpca import ExactSolver, GroupMoments, Problem

Array = NDArray[np.float64]

CELLS = (8, 13, 19, 31, 43, 54, 68, 95, 129, 240)
"""Rows in each group of a table with more columns than rows, as tables of cells have."""


def main() -> None:
    """Measure every problem and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    print("| problem | criterion | seconds | ending | gap |\n|---|---|---|---|---|", flush=True)
    for name, make, r in CASES:
        for criterion in ("minmax", "equal"):
            problem = Problem(make(), r, criterion)
            fastest = np.inf
            for _ in range(runs):
                started = time.perf_counter()
                found = ExactSolver().solve(problem).certificate
                fastest = min(fastest, time.perf_counter() - started)
                # What a problem has computed it keeps: the next run is to begin anew.
                problem = Problem(problem.moments, r, criterion)
            print(
                f"| {name} | {criterion} | {fastest:.2f} | {found.status} | "
                f"{found.relative_gap:.0e} |",
                flush=True,
            )


def rotated(k: int, d: int, scales: float = 0.0) -> GroupMoments:
    """Groups with the eigenvalues 1/j in random directions; columns of sizes up to 10^scales."""
    rng = np.random.default_rng(0)
    turns = [np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(k)]
    sizes = 10.0 ** rng.uniform(-scales, scales, d)
    return moments_of(
        [(turn / np.arange(1, d + 1)) @ turn.T * np.outer(sizes, sizes) for turn in turns]
    )


def spiked(k: int, d: int, n: int) -> GroupMoments:
    """Groups with n large eigenvalues each, in directions of their own, above a level of noise."""
    rng = np.random.default_rng(0)
    matrices = []
    for _ in range(k):
        own = np.linalg.qr(rng.standard_normal((d, n)))[0]
        matrices.append(0.1 * np.eye(d) + (own * rng.uniform(1.0, 10.0, n)) @ own.T)
    return moments_of(matrices)


def permuted(n: int, d: int, k: int) -> GroupMoments:
    """Rows whose variances fall as 1/j, in another order of the columns in each group."""
    rng = np.random.default_rng(0)
    codes, X = rng.integers(0, k, n), rng.standard_normal((n, d))
    for group in range(k):
        X[codes == group] *= rng.permutation(np.arange(1, d + 1) ** -0.5)
    return GroupMoments.from_rows(X, codes)


def cells() -> GroupMoments:
    """Groups of few rows and many columns, with common directions and some of their own."""
    rng, d = np.random.default_rng(0), 765
    codes = np.repeat(np.arange(len(CELLS)), CELLS)
    common = rng.standard_normal((20, d)) / np.sqrt(np.arange(1, 21))[:, None]
    X = rng.standard_normal((len(codes), 20)) @ common + rng.standard_normal((len(codes), d))
    for group in range(len(CELLS)):
        members = codes == group
        own = rng.standard_normal((5, d))
        X[members] += rng.standard_normal((int(members.sum()), 5)) @ own + rng.standard_normal(d)
    return GroupMoments.from_rows(X, codes)


def moments_of(matrices: list[Array]) -> GroupMoments:
    """Moments of groups of equal size with these second moments about zero."""
    k, d = len(matrices), len(matrices[0])
    count = np.full(k, 100)
    return GroupMoments(
        labels=tuple(range(k)),
        count=count,
        weight=count.astype(float),
        mean=np.zeros((k, d)),
        scatter=100.0 * np.array(matrices),
    )


CASES: list[tuple[str, Callable[[], GroupMoments], int]] = [
    ("20 groups, 20 columns, r = 5", partial(rotated, 20, 20), 5),
    ("20 groups, 500 columns, r = 30", partial(rotated, 20, 500), 30),
    ("20 groups, 600 columns, r = 15", partial(rotated, 20, 600), 15),
    ("5 groups, 600 columns of other sizes, r = 60", partial(rotated, 5, 600, 1.0), 60),
    ("2,000 rows, 3 groups, 768 columns, r = 32", partial(permuted, 2000, 768, 3), 32),
    ("700 rows, 10 groups, 765 columns, r = 10", cells, 10),
    ("700 rows, 10 groups, 765 columns, r = 30", cells, 30),
    ("20 groups, 300 columns, spiked, r = 8", partial(spiked, 20, 300, 8), 8),
    ("30 groups, 300 columns, spiked, r = 6", partial(spiked, 30, 300, 6), 6),
    ("40 groups, 300 columns, spiked, r = 10", partial(spiked, 40, 300, 10), 10),
]


if __name__ == "__main__":
    main()

"""Many columns: the exact solver from moments, as a ratio to one eigenproblem of SciPy's `eigsh`.

Run ``python benchmarks/many_columns.py``, with OPENBLAS_NUM_THREADS set to the number of threads
to be used. The two are timed in turn in one process, and the smallest time of each counts. The
solver's time is that of ``ExactSolver().solve(Problem(moments, 50, criterion="equal"))``, proofs
and certificate included; `eigsh` finds the 50 leading eigenpairs of the total covariance, at its
default tolerance.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh
from threadpoolctl import threadpool_info

from fairpca import ExactSolver, FairPCA, GroupMoments, Problem, Solution

Array = NDArray[np.float64]

N_COMPONENTS = 50
BLOCK = 50
SPECTRA: dict[str, Callable[[Array], Array]] = {
    "fast decay, 0.9^j": lambda j: 0.9**j + 1e-6,
    "slow decay, 1/j": lambda j: 1.0 / j,
    "noise and 30 spikes": lambda j: _noise_and_spikes(j),
}
KINDS = (*SPECTRA, "correlated blocks")


def main() -> None:
    """Measure every kind of spectrum and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=[5_000])
    parser.add_argument("--groups", type=int, nargs="+", default=[2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--cpu", action="store_true", help="processor time, for one thread only")
    parser.add_argument("--memory", action="store_true", help="measure memory too")
    parser.add_argument("--wide", action="store_true", help="only 500 rows of 20,000 columns")
    options = parser.parse_args()
    if options.wide:
        measure_wide(500, 20_000, options.repeats)
        return
    threads = {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}
    clock = time.process_time if options.cpu else time.perf_counter
    what = "processor time" if options.cpu else "wall time"
    print(
        f"{N_COMPONENTS} components, {what}, best of {options.repeats}, BLAS threads: {threads}\n"
    )
    print(f"{'columns':>8} {'groups':>6}  {'spectrum':<20} {'eigsh':>8} {'solver':>8} {'ratio':>6}")
    for d in options.columns:
        for k in options.groups:
            for kind in options.kinds:
                measure(make_moments(kind, d, k), kind, options.repeats, clock, options.memory)


def measure(
    moments: GroupMoments, kind: str, repeats: int, clock: Callable[[], float], memory: bool
) -> None:
    """Time both in turn and print a line."""
    k, d = moments.mean.shape
    covariance = moments.total_covariance()
    best_eigsh = best_solver = np.inf
    for _ in range(repeats):
        begin = clock()
        eigsh(covariance, N_COMPONENTS, which="LA")
        middle = clock()
        certificate = solve(moments).certificate
        end = clock()
        best_eigsh, best_solver = min(best_eigsh, middle - begin), min(best_solver, end - middle)
    print(
        f"{d:>8,} {k:>6}  {kind:<20} {best_eigsh:7.2f}s {best_solver:7.2f}s "
        f"{best_solver / best_eigsh:6.1f}  {certificate.status}, "
        f"gap {certificate.relative_gap:.0e}{peak(moments) if memory else ''}",
        flush=True,
    )


def measure_wide(n: int, d: int, repeats: int) -> None:
    """Time and memory of a fit to rows with far more columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1))
    groups = np.arange(n) % 2
    X[groups == 1] = X[groups == 1][:, rng.permutation(d)]
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        fair = FairPCA(10, criterion="minmax").fit(X, sensitive_features=groups)
        seconds.append(time.perf_counter() - started)
    tracemalloc.start()
    FairPCA(10, criterion="minmax").fit(X, sensitive_features=groups)
    most = tracemalloc.get_traced_memory()[1] / X.nbytes
    tracemalloc.stop()
    status = fair.certificate_.status
    print(f"{n} rows, {d:,} columns: {min(seconds):.2f}s, {most:.2f} times the rows, {status}")


def peak(moments: GroupMoments) -> str:
    """The solver's memory beside the moments, in matrices of shape (d, d)."""
    tracemalloc.start()
    solve(moments)
    most = tracemalloc.get_traced_memory()[1] / (8 * moments.n_features**2)
    tracemalloc.stop()
    return f", memory {most:.1f} matrices"


def solve(moments: GroupMoments) -> Solution:
    """What is measured."""
    return ExactSolver().solve(Problem(moments, N_COMPONENTS, criterion="equal"))


def make_moments(kind: str, d: int, k: int) -> GroupMoments:
    """Groups that share half of their covariance and have the same spectrum in the other half."""
    rng = np.random.default_rng(d + k)
    weight = np.linspace(1.0, 2.0, k) * 1000.0
    scatter = np.empty((k, d, d))
    if kind in SPECTRA:
        spectrum = SPECTRA[kind](np.arange(1.0, d + 1))
        shared = _turned(spectrum, np.random.default_rng(0))
        for i in range(k):
            scatter[i] = (shared + _turned(spectrum, rng)) * (weight[i] / 2)
    else:
        loadings = rng.uniform(0.3, 0.9, d)
        for i in range(k):
            rows = _correlated_rows(loadings, rng)
            scatter[i] = rows.T @ rows * (weight[i] / d)
    mean = 0.02 * rng.standard_normal((k, d))
    return GroupMoments(tuple(range(k)), weight.astype(np.int64), weight, mean, scatter)


def _noise_and_spikes(j: Array) -> Array:
    """The spectrum of noise in twice as many rows as columns, and 30 directions above it."""
    noise = np.sort((1 + np.sqrt(0.5) * np.cos(np.pi * (j - 0.5) / len(j))) ** 2)[::-1]
    values: Array = noise / noise.mean()
    values[:30] = np.linspace(30, 5, 30)
    return values


def _turned(spectrum: Array, rng: np.random.Generator) -> Array:
    """A matrix with this spectrum in random directions: cosine transforms with random signs."""
    signs = rng.choice([-1.0, 1.0], (2, len(spectrum)))
    matrix = np.diag(spectrum)
    for _ in range(2):  # from the left and, transposed, from the right
        for sign in signs:
            matrix = scipy.fft.dct(matrix * sign[:, None], axis=0, norm="ortho")
        matrix = np.ascontiguousarray(matrix.T)
    turned: Array = (matrix + matrix.T) / 2
    return turned


def _correlated_rows(loadings: Array, rng: np.random.Generator) -> NDArray[np.float32]:
    """As many rows as columns; columns hang together in blocks, as genes and pixels do."""
    d = len(loadings)
    rows = rng.standard_normal((d, d), dtype=np.float32)
    for start in range(0, d, BLOCK):
        part = slice(start, start + BLOCK)
        common = rng.standard_normal((d, 1), dtype=np.float32)
        shares = loadings[part] * rng.uniform(0.5, 1.1)
        rows[:, part] *= np.sqrt(np.maximum(1 - shares**2, 0.05))
        rows[:, part] += common * shares
    return rows


if __name__ == "__main__":
    main()

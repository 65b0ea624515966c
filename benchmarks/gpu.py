"""Moments and a proven fair subspace on a GPU, against one ungrouped product there.

Run ``python benchmarks/gpu.py`` where PyTorch sees a GPU (or ``--small`` anywhere, to try it). The
rows are on the device in float32, in groups of unequal size. In the first table their spectrum
falls as 1/j, and each group has 32 directions of its own; in the second each group has the same
spectrum, with its columns in an order of its own. Best of several runs, in one process.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from fairpca import ExactSolver, FairPCA, GroupMoments, Problem

SHAPES = ((4_000_000, 1_024), (1_000_000, 4_096), (200_000, 10_000))
SHARES = (0.55, 0.25, 0.15, 0.05)
R = 64
BLOCK_BYTES = 2**30


class Permuted(NamedTuple):
    """Rows whose variances fall as a power of j, in another order of the columns in each group."""

    n: int
    d: int
    n_groups: int
    power: float
    r: int
    criterion: str = "minmax"


PERMUTED = (
    Permuted(4_000_000, 1_024, 4, 0.8, 64),
    Permuted(1_000_000, 4_096, 4, 0.5, 64),
    Permuted(200_000, 10_000, 4, 1.0, 64),
    Permuted(1_000_000, 1_024, 10, 0.6, 32, "equal"),
)
SMALL_PERMUTED = (Permuted(20_000, 512, 4, 0.8, 16), Permuted(5_000, 400, 10, 0.6, 8, "equal"))


def main() -> None:
    """Print one row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="small shapes, on the CPU too")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not options.small:
        sys.exit("PyTorch sees no GPU: use --small to try the script without one.")
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    shapes = ((20_000, 512), (5_000, 1_024)) if options.small else SHAPES
    r = 16 if options.small else R
    print(f"{name}, PyTorch {torch.__version__}, NumPy {np.__version__}; r = {r}, four groups\n")
    print("| rows, columns | one XᵀX | moments | solve | both | certificate |")
    print("|---|---|---|---|---|---|")
    for n, d in shapes:
        X, groups = make_rows(n, d, device)
        floor, _ = best_of(partial(product, X), options.runs)
        gathering, moments = best_of(partial(GroupMoments.from_rows, X, groups), options.runs)
        solving, solution = best_of(partial(solve, moments, r), options.runs)
        both, _ = best_of(partial(gather_and_solve, X, groups, r), options.runs)
        certificate = solution.certificate
        print(
            f"| {n:,}, {d:,} | {floor:.3f} s | {gathering:.3f} s | {solving:.3f} s | "
            f"{both:.3f} s | {certificate.status}, gap {certificate.relative_gap:.1e} |",
            flush=True,
        )
        del X, groups, moments
    print("\n| rows, columns, groups, spectrum, r | criterion | `FairPCA.fit` | certificate |")
    print("|---|---|---|---|")
    for case in SMALL_PERMUTED if options.small else PERMUTED:
        X, groups = make_permuted(case, device)
        fitting, fair = best_of(partial(fit, X, groups, case), options.runs)
        certificate = fair.certificate_
        print(
            f"| {case.n:,}, {case.d:,}, {case.n_groups}, j^-{case.power}, {case.r} | "
            f"{case.criterion} | {fitting:.3f} s | {certificate.status}, gap "
            f"{certificate.relative_gap:.1e} |",
            flush=True,
        )
        del X, groups


def make_rows(n: int, d: int, device: str) -> tuple[Any, Any]:
    """Rows in float32 and the number of each row's group, in random order."""
    generator = torch.Generator(device=device).manual_seed(0)
    edges = torch.tensor(np.cumsum(SHARES)[:-1], device=device)
    groups = torch.bucketize(torch.rand(n, generator=generator, device=device), edges)
    sizes = torch.arange(1, d + 1, device=device, dtype=torch.float32).rsqrt()
    own = torch.randn(len(SHARES), 32, d, generator=generator, device=device) / d**0.5
    X = torch.empty(n, d, device=device)
    step = max(BLOCK_BYTES // (8 * d), 1)
    for begin in range(0, n, step):
        part = X[begin : begin + step]
        part.normal_(generator=generator).mul_(sizes)
        codes = groups[begin : begin + step]
        for group in range(len(SHARES)):
            members = (codes == group).nonzero()[:, 0]
            extra = torch.randn(len(members), 32, generator=generator, device=device)
            part.index_add_(0, members, extra @ own[group])
    return X, groups


def make_permuted(case: Permuted, device: str) -> tuple[Any, Any]:
    """Rows in float32 and the number of each row's group, in random order."""
    generator = torch.Generator(device=device).manual_seed(0)
    shares = torch.arange(1, case.n_groups + 1, device=device, dtype=torch.float32)
    edges = (shares / shares.sum()).cumsum(0)[:-1]
    groups = torch.bucketize(torch.rand(case.n, generator=generator, device=device), edges)
    falling = torch.arange(1, case.d + 1, device=device, dtype=torch.float32) ** (-case.power / 2)
    orders = [
        torch.randperm(case.d, generator=generator, device=device) for _ in range(case.n_groups)
    ]
    sizes = torch.stack([falling[order] for order in orders])
    X = torch.empty(case.n, case.d, device=device)
    step = max(BLOCK_BYTES // (8 * case.d), 1)
    for begin in range(0, case.n, step):
        part = X[begin : begin + step]
        part.normal_(generator=generator).mul_(sizes[groups[begin : begin + step]])
    return X, groups


def fit(X: Any, groups: Any, case: Permuted) -> FairPCA:
    """The estimator, as a user calls it."""
    fair = FairPCA(case.r, criterion=case.criterion)
    return fair.fit(X, sensitive_features=groups)


def solve(moments: GroupMoments, r: int) -> Any:
    """The fair subspace, with its proof."""
    return ExactSolver().solve(Problem(moments, r, criterion="equal"))


def gather_and_solve(X: Any, groups: Any, r: int) -> Any:
    """The same, from the rows."""
    return solve(GroupMoments.from_rows(X, groups), r)


def product(X: Any) -> Any:
    """One product of all rows with themselves, in float64, block by block."""
    n, d = X.shape
    total = torch.zeros(d, d, dtype=torch.float64, device=X.device)
    step = max(BLOCK_BYTES // (8 * d), 1)
    for begin in range(0, n, step):
        block = X[begin : begin + step].double()
        total.addmm_(block.T, block)
    return total


def best_of(work: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """Seconds of the fastest run, after one to warm up, and its result."""
    result, fastest = work(), np.inf
    for _ in range(runs):
        wait()
        started = time.perf_counter()
        result = work()
        wait()
        fastest = min(fastest, time.perf_counter() - started)
    return fastest, result


def wait() -> None:
    """Let the device finish."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()

"""Fit time of FairPCA against scikit-learn's PCA, as a ratio measured in one process.

Run ``make bench``. Two groups, ten components, random data of the shapes that the literature uses.
The two are timed in turn, and the smallest time of each counts. PCA is the faster of its default
and its "covariance_eigh" solver.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from fairpca import ExactSolver, FairPCA, GroupMoments, Problem
from fairpca._rows.checks import check_rows
from fairpca._rows.groups import encode_groups

SHAPES = [(45_211, 16), (30_000, 23), (325_834, 173), (13_232, 1_764)]
N_COMPONENTS = 10


def main() -> None:
    """Measure every shape and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9, help="timed pairs, at least 7")
    least = max(parser.parse_args().pairs, 7)
    print(f"two groups, {N_COMPONENTS} components, smallest of at least {least} interleaved runs\n")
    head = f"{'shape':>16} {'labels':>8} {'PCA':>10} {'FairPCA':>10} {'ratio':>6}  eigenproblems"
    print(head + "  where the time goes")
    for n, d in SHAPES:
        X, codes = make_data(n, d)
        pairs = least if n * d > 1e7 else 10 * least  # short runs are noisier
        kinds = {"integer": codes}
        if (n, d) == SHAPES[0]:
            kinds["string"] = np.where(codes == 0, "female", "male").astype(object)
        for kind, labels in kinds.items():
            measure(X, labels, kind, pairs)


def make_data(n: int, d: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of two groups whose covariances have the same falling spectrum in other directions."""
    rng = np.random.default_rng(d)
    codes = (rng.random(n) < 0.65).astype(np.int64)
    scales = np.arange(1, d + 1) ** -0.5
    X = rng.standard_normal((n, d)) * scales
    turn = np.eye(d)
    half = max(2, d // 2)
    turn[:half, :half] = np.linalg.qr(rng.standard_normal((half, half)))[0]
    X[codes == 1] = X[codes == 1] @ turn
    X += 3.0 * rng.standard_normal(d)
    return X, codes


def measure(X: NDArray[np.float64], labels: NDArray[np.generic], kind: str, pairs: int) -> None:
    """Time PCA and FairPCA in turn and print a line."""
    candidates: list[Callable[[], object]] = [
        lambda: PCA(N_COMPONENTS, random_state=0).fit(X),
        lambda: PCA(N_COMPONENTS, svd_solver="covariance_eigh").fit(X),
    ]
    ordinary = min(candidates, key=lambda fit: min(seconds(fit) for _ in range(2)))
    fair = FairPCA(N_COMPONENTS)
    best_pca = best_fair = np.inf
    for _ in range(pairs):
        best_pca = min(best_pca, seconds(ordinary))
        best_fair = min(best_fair, seconds(lambda: fair.fit(X, sensitive_features=labels)))
    assert fair.certificate_.status == "optimal"
    parts = split(X, labels, pairs)
    shape = f"{X.shape[0]:,}×{X.shape[1]:,}"  # noqa: RUF001
    print(
        f"{shape:>16} {kind:>8} {1e3 * best_pca:8.1f}ms {1e3 * best_fair:8.1f}ms "
        f"{best_fair / best_pca:6.2f}  {fair.solution_.n_eigen:13d}  {parts}"
    )


def split(X: NDArray[np.float64], labels: NDArray[np.generic], repeats: int) -> str:
    """Time the steps of a fit one by one."""
    rows = check_rows(X)
    groups = encode_groups(labels, len(X))
    moments = GroupMoments.from_groups(rows, groups)
    steps: dict[str, Callable[[], object]] = {
        "check": lambda: check_rows(X),
        "labels": lambda: encode_groups(labels, len(X)),
        "moments": lambda: GroupMoments.from_groups(rows, groups),
        "solve": lambda: ExactSolver().solve(Problem(moments, N_COMPONENTS)),
    }
    best = {name: min(seconds(step) for _ in range(repeats)) for name, step in steps.items()}
    return ", ".join(f"{name} {1e3 * least:.1f}" for name, least in best.items()) + " ms"


def seconds(step: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

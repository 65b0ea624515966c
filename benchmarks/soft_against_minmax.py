"""What the default criterion costs: its fit beside plain min-max and PCA, in one run.

Run ``python benchmarks/soft_against_minmax.py``. The default holds rows out in ten folds, or in
five with more than 120 columns, and takes the groups' own subspaces as often; plain min-max
searches longer where groups are many.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.decomposition import PCA

from fairpca import FairPCA

COLUMNS, GROUPS, MOST_ROWS = (14, 100, 400, 765, 2000), (2, 5, 10), 6000


def main() -> None:
    """Print the best times of each case, in seconds, and the ratio to plain min-max."""
    warnings.simplefilter("ignore")
    print("columns, groups | PCA | min-max | default | ratio to min-max")
    for d in COLUMNS:
        for k in GROUPS:
            X, groups = rows(d, k)
            fits: dict[str, Callable[[], object]] = {
                "PCA": lambda X=X: PCA(5).fit(X),  # type: ignore[misc]
                **{
                    name: lambda X=X, groups=groups, name=name: FairPCA(5, criterion=name).fit(  # type: ignore[misc]
                        X, sensitive_features=groups
                    )
                    for name in ("minmax", "soft")
                },
            }
            best = dict.fromkeys(fits, np.inf)
            for _ in range(5 if d <= 400 else 2):
                for name, fit in fits.items():
                    start = time.perf_counter()
                    fit()
                    best[name] = min(best[name], time.perf_counter() - start)
            times = " | ".join(f"{seconds:.4f}" for seconds in best.values())
            print(f"{d}, {k} | {times} | {best['soft'] / best['minmax']:.1f}", flush=True)


def rows(d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of groups that have the leading columns in orders of their own."""
    rng = np.random.default_rng(0)
    n = min(20 * d, MOST_ROWS)
    X = rng.normal(size=(n, d)) * np.arange(1, d + 1) ** -0.5
    groups = np.minimum(rng.integers(0, k, n), rng.integers(0, k, n))
    for group in range(k):
        order = rng.permutation(min(d, 12))
        X[np.ix_(groups == group, np.arange(len(order)))] = X[np.ix_(groups == group, order)]
    return X, groups


if __name__ == "__main__":
    main()

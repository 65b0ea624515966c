"""What ``shrinkage="auto"`` costs: the time of a fit with it over that of a plain fit, in one run.

Run ``python benchmarks/shrinkage_cost.py``. Groups of at least 200 rows for each column are not
held out, so with large groups alone nothing but their counting is added; otherwise the small
groups' rows are read once more and 35 further problems are solved from moments.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from fairpca import FairPCA

CASES = {
    "1,000,000 x 20, two groups": ((600_000, 400_000), 20),
    "1,000,000 x 20, one more of 50 rows": ((600_000, 399_950, 50), 20),
    "1,000,000 x 100, two groups": ((600_000, 400_000), 100),
    "1,000,000 x 100, one more of 50 rows": ((600_000, 399_950, 50), 100),
    "2,380 x 20, groups of 2000, 300, 60, 20": ((2000, 300, 60, 20), 20),
}

N_RUNS = 7


def main() -> None:
    """Time both sides in turns and print the ratio of their best times."""
    warnings.simplefilter("ignore")
    for name, (sizes, d) in CASES.items():
        rng = np.random.default_rng(0)
        X = rng.normal(size=(sum(sizes), d)) * np.sqrt(5.0 / np.arange(1, d + 1))
        groups = np.repeat(np.arange(len(sizes)), sizes)
        best: dict[float | str, float] = {0: np.inf, "auto": np.inf}
        for _ in range(N_RUNS if len(X) > 10_000 else 3):
            for shrinkage in best:
                start = time.perf_counter()
                FairPCA(5, shrinkage=shrinkage).fit(X, sensitive_features=groups)
                best[shrinkage] = min(best[shrinkage], time.perf_counter() - start)
        ratio = best["auto"] / best[0]
        print(f"{name}: {best[0]:.3f} s, auto {best['auto']:.3f} s, ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()

"""What a Pareto front of 50 points costs, relative to one fit, measured in turn in one process.

Run ``python benchmarks/front_against_fit.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from fairpca import FairPCA, pareto_front
from fairpca.datasets import load_adult, load_credit

CASES = (
    ("Adult, sex", load_adult, "sex", 5),
    ("Credit, sex", load_credit, "sex", 10),
    ("Adult, race", load_adult, "race", 5),
)


def seconds(run: Callable[[], object]) -> float:
    """Time of one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ratio(load: Callable[..., Bunch], sensitive: str, r: int) -> float:
    """Best of five fronts against the best of five fits."""
    bunch = load(sensitive=sensitive, as_frame=False)
    X, groups = StandardScaler().fit_transform(bunch.data), bunch.sensitive_features
    fits, fronts = [], []
    for _ in range(5):
        fits.append(
            seconds(lambda: FairPCA(r, criterion="minmax").fit(X, sensitive_features=groups))
        )
        fronts.append(seconds(lambda: pareto_front(X, sensitive_features=groups, n_components=r)))
    return min(fronts) / min(fits)


def main() -> None:
    """Print a line for each case."""
    for name, load, sensitive, r in CASES:
        times = ratio(load, sensitive, r)
        print(f"{name}, r = {r}: 50 points take {times:.1f} times one fit")


if __name__ == "__main__":
    main()

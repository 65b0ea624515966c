"""Rows to spread over a cluster."""

from __future__ import annotations

import numpy as np
import pandas as pd

NAMES = ["a.b", "b`c", "c", "d d", "e", "f"]


def people(n=1200, seed=0):
    """A data frame of six features, two sensitive columns, weights and a number for each row.

    Groups lie in order, so that most partitions of it lack some of them.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * [3, 2.5, 2, 1, 0.7, 0.5]
    third = np.arange(n) * 3 // n
    for g in range(3):
        turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
        X[third == g] = X[third == g] @ turn + 2 * rng.normal(size=6)
    frame = pd.DataFrame(X + 100, columns=NAMES)
    frame["age"] = pd.Series(["old", "young", "middle"]).take(third).to_numpy()
    frame["sex"] = rng.choice(["f", "m"], n)
    frame["w"] = rng.exponential(size=n) * (np.arange(n) >= n // 10)  # none in the first rows
    frame["id"] = [f"row {i}" for i in range(n)]
    return frame

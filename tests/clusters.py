"""Rows to spread over a cluster, and what it means that a fit found the same."""

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


def assert_same_fit(fitted, reference):
    """The same subspace where it is unique, else the same losses."""
    table, other = fitted.group_table_, reference.group_table_
    assert table.labels == other.labels
    np.testing.assert_array_equal(table.count, other.count)
    scale = reference.explained_variance_.sum() / reference.explained_variance_ratio_.sum()
    assert np.abs(table.disparity - other.disparity).max() <= 1e-9 * scale
    assert abs(fitted.solution_.total_loss - reference.solution_.total_loss) <= 1e-9 * scale
    np.testing.assert_allclose(fitted.mean_, reference.mean_, rtol=1e-12)
    assert fitted.certificate_.status == reference.certificate_.status
    if reference.certificate_.status == "optimal":
        apart = fitted.components_.T @ fitted.components_
        apart = apart - reference.components_.T @ reference.components_
        assert np.linalg.norm(apart, 2) <= 1e-7  # sine of the largest angle

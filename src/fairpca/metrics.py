"""Metrics of reconstruction that fit fairlearn's MetricFrame, and scores on held-out rows.

`reconstruction_error` and `disparity_error` compare rows (`y_true`) with the rows after a
reduction and back (`y_pred`). In a ``MetricFrame`` by group, ``disparity_error`` is each group's
disparity and ``.difference()`` the largest pairwise one.

`WorstGroupScorer` is a scorer for scikit-learn's searches and cross-validation.
"""

from fairpca.inspection.scoring import (
    WorstGroupScorer,
    disparity_error,
    reconstruction_error,
)

__all__ = [
    "WorstGroupScorer",
    "disparity_error",
    "reconstruction_error",
]

"""Rows and choices as a problem, refused and warned of as `FairPCA.fit` does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_rows, check_whole_number
from fairpca._rows.groups import Codes
from fairpca.estimators.fair_pca import FairPCA
from fairpca.problem import Problem


@dataclass(frozen=True, eq=False)
class PosedRows:
    """A problem, and the checked rows that it was made from.

    `codes` has the position of each row's group among those of the problem, or -1 where the group
    has no weight.
    """

    problem: Problem
    rows: Any
    codes: Codes
    weights: Array | None


def pose(
    X: Any,
    *,
    sensitive_features: Any,
    n_components: int,
    loss: str,
    centering: str,
    sample_weight: ArrayLike | None,
    missing_labels: str,
    random_state: int | None,
) -> PosedRows:
    """The problem of finding equal disparities; what `fit` refuses and warns of, this does too."""
    check_whole_number("n_components", n_components)
    if sensitive_features is None:
        raise ValueError("sensitive_features must name the group of each row, got None.")
    fair = FairPCA(
        n_components,
        loss=loss,
        centering=centering,
        missing_labels=missing_labels,
        random_state=random_state,
    )
    fair._check_parameters()
    rows = check_rows(X, fair, reset=True, ensure_min_samples=2)
    fair._check_dimension(rows.shape[1])
    moments, codes, weights, _ = fair._gather(rows, sensitive_features, sample_weight)
    names = getattr(fair, "feature_names_in_", None)
    if names is not None:
        moments = replace(moments, feature_names=tuple(names))
    return PosedRows(fair._problem(moments, int(n_components)), rows, codes, weights)

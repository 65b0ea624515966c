"""gather: rows, wherever they are, as moments by group and what else is fitted to."""

import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _get_feature_names

from fairpca._linalg.backends import cluster_library, device_library, to_host
from fairpca._linalg.dense import eigh_descending
from fairpca._linalg.types import Array
from fairpca._rows.checks import check_device_rows, check_rows, check_weights, explain_not_finite
from fairpca._rows.groups import Codes, encode_groups
from fairpca._rows.row_space import RowSpace, spanned_space
from fairpca._rows.text import label_text, listed
from fairpca.exceptions import FairnessWarning
from fairpca.moments import GroupMoments
from fairpca.problem import Problem


@dataclass(frozen=True, eq=False)
class Gathered:
    """Rows as they are fitted to: checked, and summed up by group.

    Attributes
    ----------
    moments : GroupMoments
        With the names of the columns; of the coordinates in `space`, without names, if there is
        one. Groups whose rows all have no weight are left out.
    rows : array or CSR matrix of shape (n, d), or None
        The checked rows; None where they stayed where they are and only moments came.
    codes : integer array of shape (n,), or None
        Position of each row's group among those of the moments, -1 for a group without weight.
    weights : array of shape (n,), or None
        The sample weights, if there are any.
    space : RowSpace or None
        The space that the rows span, where they have far more columns than there are rows.
    """

    moments: GroupMoments
    rows: Any = None
    codes: Codes | None = None
    weights: Array | None = None
    space: RowSpace | None = None

    @property
    def n_features(self) -> int:
        """Number of columns of the rows."""
        return self.moments.n_features if self.space is None else self.space.d

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of those columns, if they have any."""
        return self.moments.feature_names

    def numerical_rank(self) -> int:
        """Dimensions along which the rows vary by more than rounding, but at least 1."""
        values, _ = eigh_descending(self.moments.total_covariance())
        level = values[0] * self.n_features * np.finfo(float).eps
        return max(int((values > level).sum()), 1)

    def problem(self, n_components: int, **choices: Any) -> Problem:
        """The problem of these rows; choices are as for `Problem`."""
        moments = self.moments
        if self.space is not None:
            moments = moments.padded(min(moments.n_features + n_components, self.n_features))
        return Problem(moments, n_components, **choices)


def gather(
    X: Any,
    sensitive_features: Any = None,
    sample_weight: ArrayLike | None = None,
    missing_labels: str = "error",
    *,
    n_components: object = None,
    estimator: Any = None,
    reset: bool = True,
    least_rows: int = 2,
    reduce_wide: bool = False,
    in_place: bool = False,
) -> Gathered:
    """Check rows and groups, and sum them up.

    Parameters
    ----------
    X, sensitive_features, sample_weight, missing_labels
        As for `FairPCA.fit`.
    n_components : object, default=None
        If an integer, no more than the number of columns; checked before the rows are read.
    estimator : object, default=None
        Whose `n_features_in_` and `feature_names_in_` are set, or with ``reset=False`` compared.
    least_rows : int, default=2
        The fewest rows.
    reduce_wide : bool, default=False
        Whether rows with far more columns are reduced to the space that they span.
    in_place : bool, default=False
        Whether rows of Dask, Spark, PyTorch and CuPy stay where they are, so that nothing but
        moments comes here. Otherwise those of a cluster are refused, and those of a device copied.

    Returns
    -------
    Gathered
    """
    on_device = device_library(X) is not None
    if in_place and (on_device or cluster_library(X) is not None):
        choices: dict[str, Any] = {"sample_weight": sample_weight, "missing_labels": missing_labels}
        if on_device:
            rows = check_device_rows(X, at_least=least_rows)
            check_dimension(n_components, rows.shape[1])
            moments = GroupMoments.from_rows(rows, sensitive_features, **choices)
        else:
            check_dimension(n_components, _most_features(X))
            moments = _cluster_moments(X, sensitive_features=sensitive_features, **choices)
        check_moments(moments, n_components)
        record_columns(estimator, moments)
        return Gathered(moments)
    X = to_host(X) if on_device else X
    rows = check_rows(X, estimator, reset=reset, ensure_min_samples=least_rows)
    check_dimension(n_components, rows.shape[1])
    labels, codes = encode_groups(sensitive_features, rows.shape[0], missing_labels)
    weights = check_weights(sample_weight, rows.shape[0])
    wide = reduce_wide and rows.shape[1] > rows.shape[0]
    space = spanned_space(rows, weights, estimator) if wide else None
    moments = GroupMoments.from_codes(rows if space is None else space.rows, codes, labels, weights)
    if not moments.is_finite:
        explain_not_finite(rows, estimator)
    if len(moments.labels) < len(labels):
        position = {label: i for i, label in enumerate(moments.labels)}
        codes = np.array([position.get(label, -1) for label in labels])[codes]
    recorded = getattr(estimator, "feature_names_in_", None)
    names = _get_feature_names(X) if estimator is None else recorded
    if names is not None and space is None:
        moments = replace(moments, feature_names=tuple(names))
    return Gathered(moments, rows, codes, weights, space)


def check_dimension(n_components: object, d: float) -> None:
    """Raise ValueError for more components than columns."""
    if isinstance(n_components, Integral) and int(n_components) > d:
        raise ValueError(f"n_components={n_components!r} must be between 1 and n_features={d}.")


def check_moments(moments: GroupMoments, n_components: object) -> None:
    """Raise ValueError for moments that nothing can be fitted to."""
    n = int(moments.count.sum())
    if n < 2:
        raise ValueError(f"The moments are those of n_samples={n}; a minimum of 2 is required.")
    if not moments.is_finite:
        raise ValueError("The moments are not finite: some of their rows were not.")
    check_dimension(n_components, moments.n_features)


def record_columns(estimator: Any, source: GroupMoments | Gathered) -> None:
    """Set number and names of an estimator's columns, as scikit-learn does for rows."""
    estimator.n_features_in_ = source.n_features
    if source.feature_names is not None:
        estimator.feature_names_in_ = np.array(source.feature_names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def warn_of_groups(moments: GroupMoments, *, stacklevel: int) -> None:
    """Warn of groups of which a result says little."""
    if len(moments.labels) == 1:
        warnings.warn(
            f"sensitive_features has one group only, {label_text(moments.labels[0])!r}: the result "
            "is that of ordinary PCA.",
            FairnessWarning,
            stacklevel=stacklevel,
        )
    if (moments.count == 1).any():
        single = [label_text(moments.labels[i]) for i in np.flatnonzero(moments.count == 1)]
        warnings.warn(
            f"Groups with a single row: {listed(single, 5)}. What is found of such a group says "
            "little; consider merging it with another.",
            FairnessWarning,
            stacklevel=stacklevel,
        )


def _most_features(X: Any) -> float:
    """How many columns of X on a cluster there are to be reduced at most."""
    if hasattr(type(X), "columns"):
        return len(X.columns)
    shape: Any = getattr(X, "shape", ())
    known = isinstance(shape, tuple) and len(shape) == 2 and shape[1] == shape[1]
    return float(shape[1]) if known else float("inf")


def _cluster_moments(X: Any, **choices: Any) -> Any:
    # Here, so that Dask and Spark are imported for their own data only.
    from fairpca.sources import read_moments

    return read_moments(X, **choices)

"""The door for rows: `prepare_data` sums them up by group, `prepare_rows` leaves them rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _get_feature_names

from fairpca._linalg.backends import cluster_library, device_library, to_host
from fairpca._linalg.device import padded_scatters
from fairpca._linalg.projection import without_gaps
from fairpca._linalg.types import NEGLIGIBLE, Array
from fairpca.exceptions import warn_user
from fairpca.folds import in_folds
from fairpca.groups import (
    Codes,
    Groups,
    chosen_columns,
    encode_groups,
    named_columns,
    overlapping,
    warn_of_dropped,
    warn_of_weightless,
    without_columns,
)
from fairpca.moments import GroupMoments
from fairpca.moments.row_space import RowSpace, spanned_space
from fairpca.problem import Problem
from fairpca.text import listed
from fairpca.validation import (
    check_device_rows,
    check_rows,
    check_same_index,
    check_weights,
    explain_not_finite,
    set_columns,
)


@dataclass(frozen=True, eq=False)
class GroupedData:
    """Rows as they are fitted to: checked, and summed up by group.

    Attributes
    ----------
    moments : GroupMoments
        With the names of the columns; of the coordinates in `space`, without names, if there is
        one. Groups whose rows all have no weight are left out.
    rows : array, CSR matrix or device array of shape (n, d), or None
        The checked rows; None where they stayed on a cluster and only moments came.
    codes : integer array of shape (n,), or None
        Position of each row's group among those of the moments, -1 for a group without weight;
        where groups overlap, among the `parts` of these.
    weights : array of shape (n,), or None
        The sample weights, if there are any; 0 for rows that are left out.
    space : RowSpace or None
        The space that the rows span, where they have far more columns than there are rows.
    cells : GroupMoments or None
        The moments of intersections by fold, where these are asked for and some group is small
        enough to need them.
    parts : boolean array of shape (k, n_parts), or None
        Which of the parts that `codes` tells apart are in each group; None where each is one.
    n_missing : array of shape (n,), or None
        How many values of each row are column means, where missing ones may be.
    """

    moments: GroupMoments
    rows: Any = None
    codes: Codes | None = None
    weights: Array | None = None
    space: RowSpace | None = None
    parts: NDArray[np.bool_] | None = None
    cells: GroupMoments | None = None
    n_missing: Array | None = None

    @classmethod
    def from_moments(
        cls, moments: GroupMoments, groups: str | None = "intersections"
    ) -> GroupedData:
        """Rows of which only moments are at hand, with folds or without."""
        cells = moments if moments.has_folds else None
        return cls(moments.without_folds(), cells=cells).grouped(groups)

    @property
    def n_features(self) -> int:
        """Number of columns of the rows."""
        return self.moments.n_features if self.space is None else self.space.d

    def grouped(self, groups: str | None) -> GroupedData:
        """The same rows by other groups, as `GroupMoments.overlapping` has them."""
        if groups == "intersections":
            return self
        _, parts = overlapping(self.moments.labels, groups)
        if parts is None:
            return self
        return replace(self, moments=self.moments.overlapping(groups), parts=parts)

    def members(self, group: int) -> NDArray[np.bool_]:
        """Which rows with a positive weight are in a group; (n,)."""
        codes = np.asarray(self.codes)
        own = codes == group if self.parts is None else (codes >= 0) & self.parts[group][codes]
        return np.asarray(own if self.weights is None else own & (self.weights > 0.0))

    def group_sums(self, values: Array) -> Array:
        """The weighted sum of a number for each row over the rows of each group; (k,)."""
        codes = np.asarray(self.codes)
        some = codes >= 0
        weighted = values if self.weights is None else values * self.weights
        n_parts = len(self.moments.labels) if self.parts is None else self.parts.shape[1]
        sums = np.asarray(np.bincount(codes[some], weighted[some], n_parts), dtype=np.float64)
        return sums if self.parts is None else np.asarray(self.parts @ sums)

    def missing_shares(self) -> Array | None:
        """The share of each group's values that are column means; (k,)."""
        if self.n_missing is None:
            return None
        counts = self.group_sums(np.ones(len(self.n_missing)))
        return self.group_sums(self.n_missing) / (counts * self.n_features)

    def dimensions(self, n_components: Any) -> Sequence[int]:
        """The dimensions to try: the first in which every group keeps its share is the answer."""
        if n_components is None or isinstance(n_components, Integral):
            return [int(n_components or numerical_rank(self.moments.total_covariance()))]
        # In no subspace does a group keep more than in its own, so start where that is enough.
        problem = self.problem(1)
        values = np.maximum(np.linalg.eigvalsh(problem.matrices)[:, ::-1], 0.0)
        needed = (1 - NEGLIGIBLE) * float(n_components) * problem.traces[:, None]
        enough = (np.cumsum(values, axis=1) >= needed).all(axis=0)
        return range(int(np.argmax(enough)) + 1, self.moments.n_features + 1)

    def problem(self, n_components: int, **choices: Any) -> Problem:
        """The problem of these rows; choices are as for `Problem`."""
        moments = self.moments
        if self.space is not None:
            moments = padded(moments, min(moments.n_features + n_components, self.n_features))
        return Problem(moments, n_components, **choices)


def prepare_data(
    X: Any,
    sensitive_features: Any = None,
    sample_weight: ArrayLike | None = None,
    missing_labels: str = "error",
    *,
    groups: str | None = "intersections",
    keep_sensitive: bool = False,
    n_components: object = None,
    estimator: Any = None,
    least_rows: int = 2,
    reduce_wide: bool = False,
    in_place: bool = False,
    folds: str | None = None,
) -> GroupedData:
    """Check rows and groups, and sum them up.

    Parameters
    ----------
    X, sensitive_features, sample_weight, missing_labels, groups, keep_sensitive
        As for `FairPCA` and its `fit`.
    n_components : object, default=None
        If an integer, no more than the number of columns; checked before the rows are read.
    estimator : object, default=None
        Whose `n_features_in_`, `feature_names_in_` and `sensitive_names_` are set.
    least_rows : int, default=2
        The fewest rows.
    reduce_wide : bool, default=False
        Whether rows with far more columns are reduced to the space that they span.
    in_place : bool, default=False
        Whether rows of Dask, Spark, PyTorch and CuPy stay where they are, so that nothing but
        moments comes here. Otherwise those of a cluster are refused, and those of a device copied.
    folds : {"needed", "all"} or None, default=None
        Whether moments are kept by fold too: "needed" leaves out the rows of large groups, which
        need not be held out, unless that is only known at the end.

    Returns
    -------
    GroupedData
    """
    on_device, on_cluster = device_library(X) is not None, cluster_library(X) is not None
    fill = getattr(estimator, "missing_values", "error") != "error"
    if fill and (on_device or on_cluster):
        raise ValueError(
            f"missing_values={estimator.missing_values!r} is for rows in memory, not for a "
            f"{type(X).__name__}: fill missing values in before, or bring the rows here."
        )
    if not on_cluster:
        X, sensitive_features = _parted(X, sensitive_features, keep_sensitive)
        check_same_index(X, sample_weight=sample_weight)
    elif in_place:
        # Here, so that Dask and Spark are imported for their own data only.
        from fairpca.sources import read_moments

        check_dimension(n_components, _most_features(X))
        choices: dict[str, Any] = {"sample_weight": sample_weight, "missing_labels": missing_labels}
        choices |= {"keep_sensitive": keep_sensitive, "folds": folds is not None}
        moments = read_moments(X, sensitive_features=sensitive_features, **choices)
        check_moments(moments, n_components)
        grouped_data = GroupedData.from_moments(moments, groups)
        if estimator is not None:
            record_columns(estimator, grouped_data)
        return grouped_data
    if on_device and in_place:
        rows = check_device_rows(X, at_least=least_rows)
        if estimator is not None:
            set_columns(estimator, rows.shape[1], None)
    else:
        X = to_host(X) if on_device else X
        rows = check_rows(X, estimator, ensure_min_samples=least_rows)
    check_dimension(n_components, rows.shape[1])
    found = encode_groups(sensitive_features, rows.shape[0], missing_labels)
    weights = check_weights(sample_weight, rows.shape[0])
    if found.kept is not None:
        weights = found.weights(weights)
        warn_of_dropped(found.n_dropped, rows.shape[0])
        left = rows.shape[0] - found.n_dropped
        if left < least_rows:
            raise ValueError(
                f"Only {left} of the rows have sensitive features, while a minimum of "
                f"{least_rows} is required: fill them in, or make the others a group with "
                "missing_labels='group'."
            )
        if not weights.any():
            raise ValueError("No row has both a label and a positive sample_weight.")
    n_missing = None
    if fill:
        rows, n_missing = _filled(rows, weights, estimator)
    wide = reduce_wide and not (on_device and in_place) and rows.shape[1] > rows.shape[0]
    space = spanned_space(rows, weights, estimator) if wide else None
    at, parted, cells = rows if space is None else space.rows, found, None
    if folds is not None:
        parted = in_folds(found, rows, weights, needed=folds == "needed")
    moments = GroupMoments.from_groups(at, parted, weights)
    if parted is not found:
        cells, moments = moments, moments.without_folds()
    if not moments.is_finite:
        explain_not_finite(rows, estimator)
    codes = found.codes
    if len(moments.labels) < len(found.labels):
        warn_of_weightless(found.labels, moments.labels, found.names)
        position = {label: i for i, label in enumerate(moments.labels)}
        codes = np.array([position.get(label, -1) for label in found.labels])[codes]
    if estimator is not None:
        estimator.sensitive_names_ = moments.group_names or ()
    recorded = getattr(estimator, "feature_names_in_", None)
    features = _get_feature_names(X) if estimator is None else recorded
    if features is not None and space is None:
        moments = replace(moments, feature_names=tuple(features))
    gathered = GroupedData(moments, rows, codes, weights, space, cells=cells, n_missing=n_missing)
    return gathered.grouped(groups)


def prepare_rows(
    X: Any,
    sensitive_features: Any,
    estimator: Any,
    *,
    n_components: object = None,
    reset: bool = True,
    in_place: bool = False,
    is_part: bool = False,
) -> tuple[Any, Groups, int]:
    """Check rows and groups, for an estimator that is fitted to the rows themselves.

    Parameters
    ----------
    X, sensitive_features
        As for the `fit` of `FairPCA`.
    estimator : Reduction
        Which says what becomes of sensitive columns and missing labels.
    n_components, in_place
        As for `prepare_data`.
    reset : bool, default=True
        Whether the names and the number of columns are set; else they are compared.
    is_part : bool, default=False
        Whether these are some of the rows only, so that there may be a single one, or none with a
        label.

    Returns
    -------
    rows : array, CSR matrix or device array
        Finite, without those that are left out for want of a label.
    groups : Groups
        Of these rows.
    n_dropped : int
        How many are left out.
    """
    known = None if reset else estimator
    X, sensitive_features = _parted(X, sensitive_features, estimator.keep_sensitive, known)
    least, on_device = 1 if is_part else 2, device_library(X) is not None
    if on_device and in_place:
        n_features = None if reset else estimator.n_features_in_
        name = type(estimator).__name__
        rows = check_device_rows(X, name, n_features, at_least=least, finite=True)
        estimator.n_features_in_ = rows.shape[1]
    else:
        X = to_host(X) if on_device else X
        rows = check_rows(X, estimator, reset=reset, ensure_min_samples=least, finite=True)
    check_dimension(n_components, rows.shape[1])
    labels = (sensitive_features, rows.shape[0], estimator.missing_labels)
    groups = encode_groups(*labels, may_be_empty=is_part)
    if reset:
        estimator.sensitive_names_ = groups.names or ()
    if groups.kept is None:
        return rows, groups, 0
    some = np.flatnonzero(groups.kept)
    return rows[some], replace(groups, codes=groups.codes[some], kept=None), groups.n_dropped


def _parted(
    X: Any, sensitive_features: Any, keep_sensitive: bool, fitted: Any = None
) -> tuple[Any, Any]:
    """What is reduced, and what makes the groups, of a table that may hold both.

    `fitted` is an estimator that knows which columns are which.
    """
    check_same_index(X, sensitive_features=sensitive_features)
    names = named_columns(X, sensitive_features)
    if names:
        sensitive_features = chosen_columns(X, names)
    if fitted is not None:
        X = fitted._without_sensitive(X)
    elif names and not keep_sensitive:
        X = without_columns(X, names)
    return X, sensitive_features


def _filled(rows: Any, weights: Array | None, estimator: Any) -> tuple[Any, Array]:
    """Rows with column means in the place of missing values, and how many each row has of them."""
    known, gaps = without_gaps(rows)
    n_missing = np.diff(gaps.indptr).astype(np.float64)
    if gaps.nnz == 0:
        return rows, n_missing
    weights = np.ones(rows.shape[0]) if weights is None else weights
    there = weights.sum() - gaps.T @ weights
    empty = np.flatnonzero(there <= weights.sum() * np.finfo(float).eps)
    if len(empty) > 0:
        names = getattr(estimator, "feature_names_in_", np.arange(rows.shape[1]))
        raise ValueError(
            f"Columns have no value in any row that counts: {listed(names[empty].tolist(), 5)}. "
            "Leave them out."
        )
    means = (known.T @ weights / there)[gaps.indices]
    if hasattr(known, "tocsr"):
        known.data[np.isnan(rows.data)] = means
    else:
        known[gaps.nonzero()] = means
    return known, n_missing


def numerical_rank(covariance: Array, space: Array | None = None) -> int:
    """Dimensions, perhaps of a space, along which rows vary by more than rounding, at least 1."""
    inside = covariance if space is None else space.T @ covariance @ space
    # The rounding errors are those of the whole covariance, of which the space may hold little.
    level = np.linalg.norm(covariance, 2) * len(covariance) * np.finfo(float).eps
    return max(int((np.linalg.eigvalsh(inside) > level).sum()), 1)


def check_dimension(n_components: object, d: float) -> None:
    """Raise ValueError for more components than columns."""
    if isinstance(n_components, Integral) and int(n_components) > d:
        raise ValueError(f"n_components={n_components!r} must be between 1 and n_features={d}.")


def check_moments(moments: GroupMoments, n_components: object) -> None:
    """Raise ValueError for moments that nothing can be fitted to."""
    n = moments.n_rows
    if n < 2:
        raise ValueError(f"The moments are those of n_samples={n}; a minimum of 2 is required.")
    if not moments.is_finite:
        raise ValueError("The moments are not finite: some of their rows were not.")
    check_dimension(n_components, moments.n_features)


def record_columns(estimator: Any, grouped_data: GroupedData) -> None:
    """Set number and names of an estimator's columns, as scikit-learn does for rows."""
    set_columns(estimator, grouped_data.n_features, grouped_data.moments.feature_names)
    estimator.sensitive_names_ = grouped_data.moments.group_names or ()


def warn_of_no_groups(y: Any, way_out: str) -> None:
    """Warn of a fit without groups, which may have been passed as y by mistake."""
    start = "There are no groups" if y is None else "y is ignored, and there are no groups"
    warn_user(
        f"{start}: the result is that of ordinary PCA. Pass the group of each row, or the name of "
        f"its column, as sensitive_features=…, or {way_out}."
    )


def padded(moments: GroupMoments, n_columns: int) -> GroupMoments:
    """The same moments with columns of zeros added, n_columns in all."""
    more = n_columns - moments.n_features
    if more == 0:
        return moments
    mean = np.pad(moments.mean, ((0, 0), (0, more)))
    return replace(moments, mean=mean, scatter=padded_scatters(moments.scatter, more))


def _most_features(X: Any) -> float:
    """How many columns of X on a cluster there are to be reduced at most."""
    if hasattr(type(X), "columns"):
        return len(X.columns)
    shape: Any = getattr(X, "shape", ())
    known = isinstance(shape, tuple) and len(shape) == 2 and shape[1] == shape[1]
    return float(shape[1]) if known else float("inf")

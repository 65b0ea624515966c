"""From sensitive features to groups: labels and an integer code for each row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._rows.checks import check_choice
from fairpca._rows.codes import (
    Codes,
    Encoded,
    column_order,
    encode_column,
    in_order,
    is_quick,
)
from fairpca._rows.labels import (
    MISSING,
    UNGROUPED,
    Labels,
    Orders,
    alike,
    check_number_of_groups,
    refuse_all_label,
    refuse_ambiguous,
    refuse_measurements,
)
from fairpca._rows.words import MISSING_LABELS as MISSING_LABELS
from fairpca.exceptions import warn_user

_INEXACT = 2.0**53
"""From here on, different whole numbers are the same as floats."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of rows.

    Attributes
    ----------
    labels : tuple of length k
        In sorted order; ordered categories keep theirs. None at all if every row is left out.
    codes : integer array of shape (n,)
        For each row the position of its label.
    names : tuple of str, or None
        Names of the sensitive columns.
    orders : tuple, or None
        For each of these columns its ordered categories, or None; None if no column has any.
    kept : boolean array of shape (n,), or None
        The rows that have labels, where others are left out; the codes of those mean nothing.
    """

    labels: Labels
    codes: Codes
    names: tuple[str, ...] | None = None
    orders: Orders | None = None
    kept: NDArray[np.bool_] | None = None

    @property
    def n_dropped(self) -> int:
        """How many rows are left out."""
        return 0 if self.kept is None else int((~self.kept).sum())

    @property
    def about(self) -> dict[str, Any]:
        """What moments keep of the sensitive columns."""
        names = {"group_names": self.names, "group_orders": self.orders}
        return {**names, "n_dropped": self.n_dropped}

    def weights(self, weights: Any) -> Any:
        """The weights of the rows, or None: rows that are left out have none."""
        if self.kept is None:
            return weights
        return self.kept.astype(np.float64) if weights is None else weights * self.kept


@dataclass(frozen=True, eq=False)
class _Column:
    """One sensitive column: its values, and what is known of it beside them.

    The values are an array, or what `is_quick`.
    """

    values: Any
    name: Any = None
    order: Labels | None = None
    is_category: bool = False


def encode_groups(
    sensitive_features: Any,
    n_rows: int,
    missing_labels: str = "error",
    *,
    may_be_empty: bool = False,
) -> Groups:
    """The groups of rows: their sorted labels and, for each row, the position of its label.

    One column gives its values as labels; several give tuples, one for each combination that
    occurs. None gives a single group. Of a part of the rows, all may be left out.
    """
    check_choice("missing_labels", missing_labels, MISSING_LABELS)
    if sensitive_features is None:
        return Groups(UNGROUPED, np.zeros(n_rows, dtype=np.int8))
    columns = _columns(sensitive_features)
    if not columns:
        raise ValueError("sensitive_features has no columns.")
    lengths = {len(column.values) for column in columns}
    if lengths != {n_rows}:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"{[n_rows, *sorted(lengths)]}; sensitive_features needs one label for each row of X."
        )
    try:
        encoded = [
            in_order(list(labels), codes, column.order) if column.order else (labels, codes)
            for column in columns
            for labels, codes in [encode_column(column.values)]
        ]
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        raise TypeError(
            f"sensitive_features must hold plain labels such as text or numbers: {error}."
        ) from error
    names = [
        column.name if isinstance(column.name, str) and column.name else None for column in columns
    ]
    for (labels, _), column, name in zip(encoded, columns, names, strict=True):
        if not column.is_category:
            refuse_measurements(labels, name)
    known = [name for name in names if name]
    groups = combine_encoded(
        encoded,
        n_rows,
        missing_labels,
        known if len(known) == len(set(known)) == len(names) else None,
        [column.order for column in columns],
    )
    if n_rows and not groups.labels and not may_be_empty:
        raise ValueError(f"sensitive_features is missing in all of the {n_rows:,} rows.")
    if not may_be_empty:
        warn_of_alike(labels for labels, _ in encoded)
    return groups


def combine_encoded(
    encoded: list[Encoded],
    n_rows: int,
    missing_labels: str,
    names: Sequence[str] | None = None,
    orders: Sequence[Labels | None] = (),
) -> Groups:
    """Groups from one or several columns as `encode_column` gives them."""
    for column, _ in encoded:
        refuse_ambiguous(column)
    kept = _check_missing(encoded, n_rows, missing_labels)
    # Of rows that are left out the labels do not count, even if other columns have some.
    dense = encoded if kept is None else [(labels, codes[kept]) for labels, codes in encoded]
    if kept is not None and not kept.any():
        return Groups((), np.zeros(n_rows, dtype=np.int8), kept=kept)
    if len(encoded) == 1:
        labels, codes = _name_missing(*dense[0])
    else:
        for column, _ in encoded:
            refuse_all_label(column)
        labels, codes = _cross([_name_missing(*column) for column in dense])
    check_number_of_groups(len(labels))
    if kept is not None:
        every = np.zeros(n_rows, dtype=codes.dtype)
        every[kept] = codes
        codes = every
    groups = Groups(labels, codes, tuple(names) if names else None, kept=kept)
    return replace(groups, orders=tuple(orders)) if any(orders) else groups


def warn_of_dropped(n_dropped: int, n_rows: int) -> None:
    """Warn of rows that are left out for want of a label."""
    if n_dropped:
        warn_user(
            f"{n_dropped:,} of {n_rows:,} rows are left out, because their sensitive features are "
            "missing."
        )


def warn_of_alike(columns: Iterable[Iterable[Hashable]]) -> None:
    """Warn of labels in a sensitive column that may be one, spelled in several ways."""
    found = [texts for labels in columns for texts in alike(labels)]
    if found:
        more = f", and {len(found) - 2} more" if len(found) > 2 else ""
        named = "; ".join(" and ".join(map(repr, texts)) for texts in found[:2])
        warn_user(
            f"Group names differ only in case or spaces: {named}{more}. They are separate groups; "
            "if that is not intended, give them one spelling."
        )


def _columns(given: Any) -> list[_Column]:
    """Split into columns."""
    if scipy.sparse.issparse(given):
        raise ValueError("sensitive_features must be dense: pass its toarray().")
    if isinstance(given, dict):
        parts = [(name, _columns(part)) for name, part in given.items()]
        return [
            replace(column, name=name) if len(columns) == 1 else column
            for name, columns in parts
            for column in columns
        ]
    if hasattr(given, "collect"):
        raise ValueError("sensitive_features is a lazy frame: call its collect() first.")
    if hasattr(given, "column_names"):  # a table of pyarrow
        return [_column(given.column(name), name) for name in given.column_names]
    if hasattr(given, "columns"):
        if hasattr(given, "iloc"):  # names may repeat in pandas
            return [_column(given.iloc[:, j], name) for j, name in enumerate(given.columns)]
        return [_column(given[name], name) for name in given.columns]
    if hasattr(given, "factorize") or (hasattr(given, "dtype") and hasattr(given, "to_numpy")):
        return [_column(given, getattr(given, "name", None))]  # a column of pandas or Polars
    if hasattr(given, "dictionary_encode"):  # of pyarrow
        return [_column(given, None)]
    values = given
    if isinstance(values, np.matrix):
        values = np.asarray(values)
    if not isinstance(values, np.ndarray):
        values = values.to_numpy() if hasattr(values, "to_numpy") else _as_array(values)
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        values = np.array(values.data, dtype=object)
        values[mask] = None
    if values.ndim == 1:
        return [_Column(values)]
    if values.ndim == 2 and values.shape[1] > 0:
        return [_Column(column) for column in values.T]
    raise ValueError(
        "sensitive_features must have one or two dimensions (rows, or rows and columns), "
        f"got shape {values.shape}."
    )


def _column(column: Any, name: Any) -> _Column:
    """A column of a data frame or a table."""
    kind = column.dtype if hasattr(column, "dtype") else column.type
    is_category = hasattr(kind, "categories") or hasattr(kind, "index_type")
    values = column if is_quick(column) else _values(column)
    return _Column(values, name, column_order(column), is_category)


def _values(column: Any) -> NDArray[Any]:
    if hasattr(column, "null_count") and hasattr(column, "to_pylist") and column.null_count:
        # Of integers of which some are missing, pyarrow makes floats.
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    return np.asarray(column)


def _as_array(values: Any) -> NDArray[Any]:
    # Through object, so that a list of mixed types is not turned into strings.
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise ValueError(
            f"sensitive_features must hold one label for each row, got {type(values).__name__}: "
            "pass the labels themselves, as an array, a list or a data frame column."
        )
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            "sensitive_features must have the same number of labels in each row."
        ) from error
    objects = np.asarray(values, dtype=object)
    if array.dtype.kind in "iuf":
        exact = array.dtype.kind != "f" or not (np.abs(array) >= _INEXACT).any()
        return array if exact and bool not in set(map(type, objects.ravel())) else objects
    return objects if array.dtype.kind in "US" else array


def _name_missing(labels: tuple[Hashable, ...], codes: Codes) -> Encoded:
    """Give the codes -1 a label; one of that name in the data is the same group."""
    if not _some_missing(codes):
        return labels, codes
    if MISSING not in labels:
        labels = (*labels, MISSING)
    return labels, np.where(codes < 0, labels.index(MISSING), codes)


def _cross(encoded: list[Encoded]) -> Encoded:
    """Groups from the combinations of several columns that occur."""
    flat = np.zeros(len(encoded[0][1]), dtype=np.int64)
    for labels, codes in encoded:
        flat = flat * len(labels) + codes
    present, codes = np.unique(flat, return_inverse=True)
    parts = []
    for labels, _ in reversed(encoded):
        present, digit = np.divmod(present, len(labels))
        parts.append([labels[i] for i in digit])
    return tuple(zip(*reversed(parts), strict=True)), codes


def _check_missing(
    encoded: list[Encoded], n_rows: int, missing_labels: str
) -> NDArray[np.bool_] | None:
    """Which rows are kept, where some are left out; raises ValueError if they must not be."""
    if missing_labels == "group" or not any(_some_missing(codes) for _, codes in encoded):
        return None
    missing: NDArray[np.bool_] = np.any([codes < 0 for _, codes in encoded], axis=0)
    n_missing = np.count_nonzero(missing)
    if missing_labels == "error":
        raise ValueError(
            f"sensitive_features has {n_missing:,} missing values in {n_rows:,} rows: leave those "
            "rows out with missing_labels='drop', or make them a group of their own with "
            "missing_labels='group'."
        )
    return ~missing


def _some_missing(codes: Codes) -> bool:
    return bool(codes.min(initial=0) < 0)

"""From sensitive features to groups: labels and an integer code for each row."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._rows.checks import check_choice

Codes = NDArray[np.integer[Any]]

Encoded = tuple[tuple[Hashable, ...], Codes]
"""Labels, and for each row the position of its label among them."""

MISSING = "(missing)"
"""Label of the group of rows whose sensitive feature is missing."""

MISSING_LABELS = ("error", "group")
"""What missing sensitive features can be."""

UNGROUPED = ("all",)
"""Labels of rows without sensitive features: they are one group."""

_MOST_GROUPS = 1000
_FEW_LABELS = 4


def encode_groups(sensitive_features: Any, n_rows: int, missing_labels: str = "error") -> Encoded:
    """Return the sorted group labels and, for each row, the position of its label among them.

    One column gives its values as labels; several give tuples, one for each combination that
    occurs. None gives a single group.
    """
    check_choice("missing_labels", missing_labels, MISSING_LABELS)
    if sensitive_features is None:
        return UNGROUPED, np.zeros(n_rows, dtype=np.int8)
    columns = _columns(sensitive_features)
    if not columns:
        raise ValueError("sensitive_features has no columns.")
    lengths = {len(column) for column in columns}
    if lengths != {n_rows}:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"{[n_rows, *sorted(lengths)]}; sensitive_features needs one label for each row of X."
        )
    try:
        encoded = [encode_column(column) for column in columns]
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        raise TypeError(
            f"sensitive_features must hold plain labels such as text or numbers: {error}."
        ) from error
    return combine_encoded(encoded, n_rows, missing_labels)


def combine_encoded(encoded: list[Encoded], n_rows: int, missing_labels: str) -> Encoded:
    """Groups from one or several columns as `encode_column` gives them."""
    _check_missing(encoded, n_rows, missing_labels)
    if len(encoded) == 1:
        labels, codes = _name_missing(*encoded[0])
    else:
        labels, codes = _cross([_name_missing(*column) for column in encoded])
    check_number_of_groups(len(labels))
    return labels, codes


def check_number_of_groups(k: int) -> None:
    """Raise ValueError if these are too many."""
    if k > _MOST_GROUPS:
        raise ValueError(
            f"sensitive_features has {k:,} different values, more than the "
            f"{_MOST_GROUPS:,} groups that are supported: bin a continuous column first."
        )


def sorted_labels(labels: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Sort labels that need not be of one type; the group of missing values comes last.

    Intersections are sorted by their first feature, then by the second, and so on.
    """
    labels = list(labels)
    tuples = [label for label in labels if isinstance(label, tuple)]
    if len(tuples) == len(labels) and len({len(label) for label in tuples}) == 1:
        columns = [sorted_labels(set(column)) for column in zip(*tuples, strict=True)]
        ranks = [{value: i for i, value in enumerate(column)} for column in columns]
        return tuple(
            sorted(tuples, key=lambda label: [r[v] for r, v in zip(ranks, label, strict=True)])
        )
    present = [label for label in labels if label != MISSING]
    try:
        ordered = sorted(present)  # type: ignore[type-var]
    except TypeError:
        ordered = sorted(present, key=lambda label: (type(label).__name__, str(label)))
    return (*ordered, *(label for label in labels if label == MISSING))


def _columns(sensitive_features: Any) -> list[Any]:
    """Split into columns, each an array or a pandas Series (for its quick factorize)."""
    if scipy.sparse.issparse(sensitive_features):
        raise ValueError("sensitive_features must be dense: pass its toarray().")
    if isinstance(sensitive_features, dict):
        return [column for part in sensitive_features.values() for column in _columns(part)]
    if hasattr(sensitive_features, "columns") and not hasattr(sensitive_features, "collect"):
        if hasattr(sensitive_features, "iloc"):  # names may repeat in pandas
            return [sensitive_features.iloc[:, j] for j in range(sensitive_features.shape[1])]
        return [sensitive_features[name] for name in sensitive_features.columns]
    if hasattr(sensitive_features, "factorize"):
        return [sensitive_features]
    values = sensitive_features
    if hasattr(values, "collect"):
        raise ValueError("sensitive_features is a lazy frame: call its collect() first.")
    if isinstance(values, np.matrix):
        values = np.asarray(values)
    if not isinstance(values, np.ndarray):
        values = values.to_numpy() if hasattr(values, "to_numpy") else _as_array(values)
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        values = np.array(values.data, dtype=object)
        values[mask] = None
    if values.ndim == 1:
        return [values]
    if values.ndim == 2 and values.shape[1] > 0:
        return list(values.T)
    raise ValueError(
        "sensitive_features must have one or two dimensions (rows, or rows and columns), "
        f"got shape {values.shape}."
    )


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
    return np.asarray(values, dtype=object) if array.dtype.kind in "US" else array


def encode_column(column: Any) -> Encoded:
    """Return the sorted labels of one column and the codes, -1 where the label is missing."""
    if hasattr(column, "factorize"):  # pandas
        codes, uniques = column.factorize()
        return _in_order(uniques.tolist(), codes)
    array = column if isinstance(column, np.ndarray) else column.to_numpy()
    if array.dtype.kind in "biu":
        return _encode_integers(array)
    peeled = _encode_few_strings(array)
    if peeled is not None:
        return _in_order(*peeled)
    values = array.tolist()
    found = set(values)
    distinct = [v for v in found if not _is_missing(v)]
    lookup = dict.fromkeys(found, -1) | {v: i for i, v in enumerate(distinct)}
    codes = np.fromiter(map(lookup.__getitem__, values), dtype=np.int32, count=len(values))
    return _in_order(distinct, codes)


def _encode_few_strings(array: NDArray[Any]) -> tuple[list[Any], Codes] | None:
    """Labels and codes of strings with few different values, else None.

    Comparing a whole array with a label is much faster than looking up its elements.
    """
    codes = np.zeros(len(array), dtype=np.int8)
    labels: list[Any] = []
    rest, places = array, None
    while len(rest):
        label = rest[0]
        if not isinstance(label, str) or len(labels) == _FEW_LABELS:
            return None
        try:
            same = np.asarray(rest == label, dtype=bool)
        except TypeError:  # pandas' NA has no truth value
            return None
        here = np.flatnonzero(same)
        codes[here if places is None else places[here]] = len(labels)
        labels.append(str(label))
        left = np.flatnonzero(~same)
        rest, places = rest[left], left if places is None else places[left]
    return labels, codes


def _encode_integers(array: NDArray[Any]) -> Encoded:
    # Counting is much faster than sorting when the values lie close together, as codes do.
    if array.dtype.kind == "b":
        array = array.view(np.int8)
        kind: type = bool
    else:
        kind = int
    if len(array) == 0:
        return (), np.zeros(0, dtype=np.int32)
    low, high = int(array.min()), int(array.max())
    if high - low < 4096:
        offset = array
        if low != 0:  # the difference may not fit the signed type, but does fit the unsigned one
            offset = (array - array.dtype.type(low)).view(f"u{array.dtype.itemsize}")
        if offset.dtype == np.uint64:  # which old versions of bincount refuse
            offset = offset.astype(np.int64)
        present = np.flatnonzero(np.bincount(offset, minlength=1))
        if len(present) == high - low + 1:
            codes: Codes = offset
        else:
            table = np.zeros(high - low + 1, dtype=np.int16)
            table[present] = np.arange(len(present))
            codes = table[offset]
        return tuple(kind(v + low) for v in present.tolist()), codes
    unique, codes = np.unique(array, return_inverse=True)
    return tuple(unique.tolist()), codes


def _in_order(values: list[Any], codes: Codes) -> Encoded:
    """Renumber codes so that the labels are sorted; -1 stays."""
    labels = sorted_labels(values)
    if list(labels) == values:
        return labels, codes
    rank = {label: i for i, label in enumerate(labels)}
    return labels, np.array([*(rank[v] for v in values), -1], dtype=np.int32)[codes]


def _name_missing(labels: tuple[Hashable, ...], codes: Codes) -> Encoded:
    """Give the codes -1 a label; one of that name in the data is the same group."""
    if not (codes < 0).any():
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


def _check_missing(encoded: list[Encoded], n_rows: int, missing_labels: str) -> None:
    if missing_labels == "group":
        return
    missing = np.count_nonzero(np.any([codes < 0 for _, codes in encoded], axis=0))
    if missing:
        raise ValueError(
            f"sensitive_features has {missing:,} missing values in {n_rows:,} rows: leave "
            "those rows out, or pass missing_labels='group' to make them a group of their own."
        )


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except TypeError:  # pandas' NA has no truth value
        return True

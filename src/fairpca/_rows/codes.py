"""From one column to codes: its labels in order, and for each row the position of its label."""

from collections.abc import Hashable, Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._rows.labels import Labels, canonical, sorted_labels

Codes = NDArray[np.integer[Any]]

Encoded = tuple[tuple[Hashable, ...], Codes]
"""Labels, and for each row the position of its label among them."""

_FEW_LABELS = 4

_TEXT_OF_POLARS = ("String", "Categorical", "Enum")
"""How the names of its types begin."""


def encode_column(column: Any) -> Encoded:
    """Return the sorted labels of one column and the codes, -1 where the label is missing."""
    if hasattr(column, "factorize"):  # pandas
        codes, uniques = column.factorize()
        if column.dtype == object:
            refuse_mixed_types(column, uniques)
        return in_order([_plain(label) for label in uniques.tolist()], codes, column_order(column))
    if is_quick(column):  # text of Polars
        texts = column.cast(str)
        found = texts.drop_nulls().unique().to_list()
        places = texts.replace_strict(found, list(range(len(found))), default=None)
        return in_order(found, places.fill_null(-1).to_numpy())
    array = column if isinstance(column, np.ndarray) else column.to_numpy()
    if array.dtype.kind in "biu":
        return _encode_integers(array)
    peeled = _encode_few_strings(array)
    if peeled is not None:
        return in_order(*peeled)
    values = array.tolist()
    found = set(values)
    refuse_mixed_types(values, found)
    distinct = [v for v in found if not _is_missing(v)]
    lookup = dict.fromkeys(found, -1) | {v: i for i, v in enumerate(distinct)}
    codes = np.fromiter(map(lookup.__getitem__, values), dtype=np.int32, count=len(values))
    return in_order(distinct, codes)


def refuse_mixed_types(values: Iterable[Any], labels: Iterable[Any]) -> None:
    """Raise ValueError if True and 1, or False and 0, are among the values: they are equal.

    The labels are the values, each once, of any type that they are equal in.
    """
    if not any(isinstance(label, Real) and label in (0, 1) for label in labels):
        return
    kinds = {type(value) for value in values}
    truths = {kind for kind in kinds if issubclass(kind, bool | np.bool_)}
    if truths and any(issubclass(kind, Real) for kind in kinds - truths):
        raise ValueError(
            "sensitive_features has both numbers and True or False in one column, of which 1 and "
            "True would be the same group: convert the column to one type."
        )


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
        except (TypeError, ValueError):  # pandas' NA has no truth value, nor has an array
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
        # The least and the largest are there: of two values, as of two groups, both.
        counts = np.bincount(offset) if high - low > 1 else np.ones(high - low + 1)
        present = np.flatnonzero(counts)
        if len(present) == high - low + 1:
            codes: Codes = offset
        else:
            table = np.zeros(high - low + 1, dtype=np.int16)
            table[present] = np.arange(len(present))
            codes = table[offset]
        return tuple(kind(v + low) for v in present.tolist()), codes
    unique, codes = np.unique(array, return_inverse=True)
    return tuple(unique.tolist()), codes


def in_order(values: list[Any], codes: Codes, order: Labels | None = None) -> Encoded:
    """Renumber codes so that the labels are sorted; -1 stays. Spellings of one text are merged."""
    if not all(isinstance(value, str) and value.isascii() for value in values):
        values = [canonical(value) for value in values]
    labels = sorted_labels(dict.fromkeys(values), None if order is None else (order,))
    if list(labels) == values:
        return labels, codes
    rank = {label: i for i, label in enumerate(labels)}
    return labels, np.array([*(rank[v] for v in values), -1], dtype=np.int32)[codes]


def is_quick(column: Any) -> bool:
    """Whether a column itself finds its labels faster than we do: of pandas, or text of Polars."""
    if hasattr(column, "factorize"):
        return True
    return hasattr(column, "replace_strict") and str(column.dtype).startswith(_TEXT_OF_POLARS)


def column_order(column: Any) -> Labels | None:
    """The categories of a column of pandas, Polars or pyarrow in their order, if they have one."""
    kind: Any = column.dtype if hasattr(column, "dtype") else getattr(column, "type", None)
    if hasattr(kind, "index_type") and kind.ordered:  # of pyarrow
        whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        whole = whole.chunk(0) if hasattr(whole, "num_chunks") and whole.num_chunks else whole
        return _ordered(whole.dictionary.to_pylist()) if hasattr(whole, "dictionary") else None
    if getattr(kind, "ordered", False) or type(kind).__name__ == "Enum":  # of pandas, of Polars
        return _ordered(map(_plain, kind.categories.to_list()))
    return None


def _ordered(categories: Iterable[Any]) -> Labels:
    return tuple(dict.fromkeys(map(canonical, categories)))


def _plain(label: Any) -> Any:
    """The label; of pandas' intervals, as its cut and qcut make them, their text."""
    return str(label) if hasattr(label, "closed_left") else label


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except TypeError:  # pandas' NA has no truth value
        return True

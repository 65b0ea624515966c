"""From sensitive features to groups: labels and an integer code for each row."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.backends import cluster_library, device_library, to_host
from fairpca._linalg.types import Array
from fairpca.choices import GROUPINGS as GROUPINGS
from fairpca.choices import MIN_ROWS
from fairpca.choices import MISSING_LABELS as MISSING_LABELS
from fairpca.exceptions import warn_user
from fairpca.text import ALL, MOST_NAMES, in_rows, joined, label_text, listed, short_text
from fairpca.validation import check_choice, refuse_anndata

# Labels of groups: their order, those of missing values, and those of groups that overlap.

Labels = tuple[Hashable, ...]


class Fold(int):
    """Label of the rows of one fold, where moments are kept by fold too."""


MISSING = "(missing)"
"""Label of the group of rows whose sensitive feature is missing."""

UNGROUPED = ("all",)
"""Labels of rows without sensitive features: they are one group."""

_MOST_GROUPS = 1000

_MOST_NUMBERS, _MOST_FRACTIONS = 50, 20
"""Different numbers in a sensitive column from which on it is a measurement, not a group: whole
ones, as there are 50 states, and ones with fractions. Codes can be had as text."""


_NUMBERS = (Real, Decimal)


def check_number_of_groups(k: int) -> None:
    """Raise ValueError if these are too many."""
    if k > _MOST_GROUPS:
        raise ValueError(
            f"sensitive_features has {k:,} different values, more than the "
            f"{_MOST_GROUPS:,} groups that are supported: bin a continuous column first."
        )


def refuse_measurements(labels: Sequence[Hashable], name: str | None = None) -> None:
    """Raise ValueError for a column of so many different numbers that they are no groups."""
    values = [label for label in labels if label != MISSING]
    if len(values) <= _MOST_FRACTIONS or not all(map(_is_number, values)):
        return
    if len(values) > _MOST_NUMBERS or any(value % 1 != 0 for value in values):  # type: ignore[operator]
        where = "" if name is None else f" in the column {name!r}"
        raise ValueError(
            f"sensitive_features has {len(values):,} different numbers{where}, too many to be "
            "groups: bin them, for example with pandas.qcut(column, 4), or, if they are codes, "
            "pass them as text, for example with astype(str)."
        )


def canonical(label: Hashable) -> Hashable:
    """The label; text in Unicode's composed form, so that an accented letter is one character."""
    if isinstance(label, tuple):
        return tuple(map(canonical, label))
    return unicodedata.normalize("NFC", label) if isinstance(label, str) else label


def refuse_ambiguous(labels: Iterable[Hashable]) -> None:
    """Raise ValueError for different labels with the same text, such as 1 and "1"."""
    seen: dict[Hashable, Hashable] = {}
    for label in labels:
        text = tuple(map(str, label)) if isinstance(label, tuple) else str(label)
        other = seen.setdefault(text, label)
        if other != label:
            raise ValueError(
                f"sensitive_features has the labels {other!r} and {label!r}, which are of "
                "different types and would be two groups of the same name: convert the column to "
                "one type, for example with astype(str)."
            )


def alike(labels: Iterable[Hashable]) -> list[list[str]]:
    """Text labels that differ only in upper and lower case, spaces or accents' encoding."""
    found: dict[str, list[str]] = {}
    for text in sorted({label for label in labels if isinstance(label, str)}):
        composed = unicodedata.normalize("NFC", text)
        found.setdefault(" ".join(composed.split()).casefold(), []).append(text)
    return [texts for texts in found.values() if len(texts) > 1]


def sorted_labels(labels: Iterable[Hashable]) -> Labels:
    """Sort labels that need not be of one type; the group of missing values comes last.

    Numbers come before labels of other types. Intersections are sorted by their first feature, then
    by the second, and so on; groups of one column alone come before them, column by column.
    """

    def place(label: Any, of: Callable[[Any], Any] = lambda part: part) -> tuple[Any, ...]:
        parts = label if isinstance(label, tuple) else (label,)
        others = [part == ALL for part in parts]
        kinds = ["" if isinstance(p, _NUMBERS) else type(p).__name__ for p in parts]
        values = [(p == MISSING, kind, of(p)) for kind, p in zip(kinds, parts, strict=True)]
        return not any(others), others, values

    labels = list(labels)
    try:
        return tuple(sorted(labels, key=place))
    except TypeError:  # of a type without an order
        return tuple(sorted(labels, key=lambda label: place(label, str)))


def n_partitions(labels: Iterable[Hashable]) -> int:
    """How many of the groups each row is in: more than one where groups overlap."""
    labels = list(labels)
    if not labels or not isinstance(labels[0], tuple):
        return 1
    return max(len({_others(label) for label in labels}), 1)


def grouping_of(labels: Labels) -> str:
    """Which of the `GROUPINGS` these groups are."""
    kept, width = n_partitions(labels), len(_others(labels[0]))
    return "intersections" if kept == 1 else "marginals" if kept == width else "both"


def are_parts(labels: Iterable[Any]) -> bool:
    """Whether these are labels of parts of groups, with the fold behind that of the group."""
    first = next(iter(labels), None)
    return isinstance(first, tuple) and isinstance(first[-1], Fold)


def groups_of_parts(
    labels: Iterable[Any],
) -> tuple[Labels, NDArray[np.intp], NDArray[np.intp]]:
    """The labels of the groups that parts are of, in order, and each part's group and fold."""
    parts = list(labels)
    whole = [label[0] if len(label) == 2 else label[:-1] for label in parts]
    position = {label: i for i, label in enumerate(dict.fromkeys(whole))}
    group_of = np.array([position[label] for label in whole], dtype=np.intp)
    return tuple(position), group_of, np.array([int(part[-1]) for part in parts], dtype=np.intp)


def overlapping(labels: Labels, groups: str | None) -> tuple[Labels, NDArray[np.bool_] | None]:
    """Groups made of groups: their labels, and which of the others are in each; (new, old).

    That is None where they are the same groups.
    """
    check_choice("groups", groups, GROUPINGS)
    width, kept = len(_others(labels[0])) if labels else 0, n_partitions(labels)
    known = {"intersections": kept, "marginals": width, "both": width + 1, None: 0}
    if groups is None and kept == 1:
        same = labels == UNGROUPED
        return UNGROUPED, None if same else np.ones((1, len(labels)), dtype=bool)
    if kept == known[groups] or (width < 2 and groups is not None):
        return labels, None
    if kept > 1:
        raise ValueError(
            f"These groups overlap already, and cannot be made into groups={groups!r}: take the "
            "moments of the intersections."
        )
    wanted: set[Hashable] = set(labels) if groups == "both" else set()
    for label in labels:
        values = label if isinstance(label, tuple) else ()
        wanted |= {(*(ALL,) * j, v, *(ALL,) * (width - j - 1)) for j, v in enumerate(values)}
    made: tuple[Any, ...] = sorted_labels(wanted)
    old: tuple[Any, ...] = labels
    covers = [[all(a in (ALL, b) for a, b in zip(g, x, strict=True)) for x in old] for g in made]
    return made, np.array(covers)


def _others(label: Hashable) -> tuple[bool, ...]:
    """Which columns a group does not go by."""
    return tuple(part == ALL for part in label) if isinstance(label, tuple) else ()


def _is_number(label: Hashable) -> bool:
    return isinstance(label, _NUMBERS) and not isinstance(label, bool)


# From one column to codes: its labels in order, and for each row the position of its label.

Codes = NDArray[np.integer[Any]]

Encoded = tuple[tuple[Hashable, ...], Codes]
"""Labels, and for each row the position of its label among them."""

_FEW_LABELS, _MOST_COUNTED = 4, 4096
"""Up to this number of labels, texts of NumPy are found by comparing all rows with each, eight
times as fast as by looking them up; whole numbers within this range are counted, ten times as
fast as by sorting."""


def encode_column(column: Any) -> Encoded:
    """Return the sorted labels of one column and the codes, -1 where the label is missing."""
    if not isinstance(column, np.ndarray):
        if hasattr(column, "factorize"):  # pandas
            codes, uniques = column.factorize()
            if column.dtype == object:
                refuse_mixed_types(column, uniques)
            # Intervals, as pandas' cut and qcut make them, are groups by their texts.
            labels = [str(v) if hasattr(v, "closed_left") else v for v in uniques.tolist()]
            return in_order(labels, codes)
        if hasattr(column, "to_pylist") and column.null_count:
            # Of integers of which some are missing, pyarrow makes floats.
            column = np.array([*column.to_pylist(), None], dtype=object)[:-1]
    array: NDArray[Any] = np.asarray(column)
    if array.dtype.kind in "biu":
        return _encode_integers(array)
    if array.dtype.kind == "U" and (found := _encode_few_strings(array)) is not None:
        return in_order(*found)
    values = array.tolist()
    different = set(values)
    refuse_mixed_types(values, different)
    distinct = [v for v in different if not _is_missing(v)]
    lookup = dict.fromkeys(different, -1) | {v: i for i, v in enumerate(distinct)}
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
    """Labels and codes of strings with few different values, else None."""
    codes = np.zeros(len(array), dtype=np.int8)
    labels: list[Any] = []
    rest, places = array, None
    while len(rest):
        if len(labels) == _FEW_LABELS:
            return None
        same = rest == rest[0]
        here, left = np.flatnonzero(same), np.flatnonzero(~same)
        codes[here if places is None else places[here]] = len(labels)
        labels.append(str(rest[0]))
        rest, places = rest[left], left if places is None else places[left]
    return labels, codes


def _encode_integers(array: NDArray[Any]) -> Encoded:
    """Labels and codes of whole numbers, or of True and False."""
    kind = bool if array.dtype.kind == "b" else int
    least, most = (int(array.min()), int(array.max())) if len(array) else (0, _MOST_COUNTED)
    if most - least >= _MOST_COUNTED or array.dtype == np.uint64:
        unique, codes = np.unique(array, return_inverse=True)
        return tuple(unique.tolist()), codes
    # Counting is much faster than sorting when the values lie close together, as codes do.
    offset = array.astype(np.int64) - least
    there = np.bincount(offset) > 0
    labels = tuple(kind(value + least) for value in np.flatnonzero(there).tolist())
    return labels, (np.cumsum(there) - 1).astype(np.int16)[offset]


def in_order(values: list[Any], codes: Codes) -> Encoded:
    """Renumber codes so that the labels are sorted; -1 stays. Spellings of one text are merged."""
    if not all(isinstance(value, str) and value.isascii() for value in values):
        values = [canonical(value) for value in values]
    labels = sorted_labels(dict.fromkeys(values))
    if list(labels) == values:
        return labels, codes
    rank = {label: i for i, label in enumerate(labels)}
    return labels, np.array([*(rank[v] for v in values), -1], dtype=np.int32)[codes]


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except TypeError:  # pandas' NA has no truth value
        return True


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of rows.

    Attributes
    ----------
    labels : tuple of length k
        In sorted order. None at all if every row is left out.
    codes : integer array of shape (n,)
        For each row the position of its label.
    names : tuple of str, or None
        Names of the sensitive columns.
    kept : boolean array of shape (n,), or None
        The rows that have labels, where others are left out; the codes of those mean nothing.
    """

    labels: Labels
    codes: Codes
    names: tuple[str, ...] | None = None
    kept: NDArray[np.bool_] | None = None

    @property
    def n_dropped(self) -> int:
        """How many rows are left out."""
        return 0 if self.kept is None else int((~self.kept).sum())

    def weights(self, weights: Any) -> Any:
        """The weights of the rows, or None: rows that are left out have none."""
        if self.kept is None:
            return weights
        return self.kept.astype(np.float64) if weights is None else weights * self.kept


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
    lengths = {len(values) for values, _ in columns}
    if lengths != {n_rows}:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"{[n_rows, *sorted(lengths)]}; sensitive_features needs one label for each row of X."
        )
    try:
        encoded = [encode_column(values) for values, _ in columns]
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        raise TypeError(
            "sensitive_features must hold plain labels such as text or numbers, and the same "
            f"number of labels in each row: {error}."
        ) from error
    names = [name for _, name in columns if isinstance(name, str) and name]
    for (labels, _), (values, name) in zip(encoded, columns, strict=True):
        kind = getattr(values, "dtype", getattr(values, "type", None))
        if not (hasattr(kind, "categories") or hasattr(kind, "index_type")):
            refuse_measurements(labels, name if name in names else None)
    groups = combine_encoded(
        encoded,
        n_rows,
        missing_labels,
        names if len(set(names)) == len(columns) else None,
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
) -> Groups:
    """Groups from one or several columns as `encode_column` gives them."""
    for labels, _ in encoded:
        refuse_ambiguous(labels)
        if len(encoded) > 1 and ALL in labels:
            raise ValueError(
                f"sensitive_features has the label {ALL!r}, which stands for the groups of the "
                "other columns: give it another name."
            )
    kept = None
    if any(codes.min(initial=0) < 0 for _, codes in encoded):
        missing: NDArray[np.bool_] = np.any([codes < 0 for _, codes in encoded], axis=0)
        if missing_labels == "error":
            raise ValueError(
                f"sensitive_features has {np.count_nonzero(missing):,} missing values in "
                f"{n_rows:,} rows: leave those rows out with missing_labels='drop', or make them "
                "a group of their own with missing_labels='group'."
            )
        if missing_labels == "group":
            encoded = [_name_missing(*column) for column in encoded]
        else:
            # Of rows that are left out the labels do not count, even if other columns have some.
            kept = ~missing
            encoded = [(labels, codes[kept]) for labels, codes in encoded]
            if not kept.any():
                return Groups((), np.zeros(n_rows, dtype=np.int8), kept=kept)
    labels, codes = encoded[0] if len(encoded) == 1 else _cross(encoded)
    check_number_of_groups(len(labels))
    if kept is not None:
        every = np.zeros(n_rows, dtype=codes.dtype)
        every[kept] = codes
        codes = every
    return Groups(labels, codes, tuple(names) if names else None, kept)


def warn_of_dropped(n_dropped: int, n_rows: int) -> None:
    """Warn of rows that are left out for want of a label."""
    if n_dropped:
        warn_user(
            f"{n_dropped:,} of {n_rows:,} rows are left out, because their sensitive features are "
            "missing."
        )


def warn_of_weightless(labels: Labels, left: Labels, names: Sequence[str] | None = None) -> None:
    """Warn of groups that are left out because none of their rows has a weight."""
    left = groups_of_parts(left)[0] if are_parts(left) else left
    texts = [label_text(label, names) for label in labels if label not in left]
    if texts:
        are = "groups are" if len(texts) > 1 else "group is"
        warn_user(
            f"No row of {listed(texts, 5)} has a positive sample_weight: the {are} left out, "
            "and nothing is said of what they lose."
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


def _columns(given: Any) -> list[tuple[Any, Any]]:
    """Split into columns, each with its name: arrays, or columns of pandas, Polars or pyarrow."""
    if scipy.sparse.issparse(given):
        raise ValueError("sensitive_features must be dense: pass its toarray().")
    if isinstance(given, dict):
        parts = [(name, _columns(part)) for name, part in given.items()]
        return [
            (values, name if len(columns) == 1 else own)
            for name, columns in parts
            for values, own in columns
        ]
    if hasattr(given, "collect"):
        raise ValueError("sensitive_features is a lazy frame: call its collect() first.")
    if hasattr(given, "column_names"):  # a table of pyarrow
        return [(given.column(name), name) for name in given.column_names]
    if hasattr(given, "columns"):
        if hasattr(given, "iloc"):  # names may repeat in pandas
            return [(given.iloc[:, j], name) for j, name in enumerate(given.columns)]
        return [(given[name], name) for name in given.columns]
    if hasattr(given, "to_numpy"):  # a column of pandas, Polars or pyarrow
        return [(given, getattr(given, "name", None))]
    values = given if device_library(given) is None else to_host(given)
    if isinstance(values, np.matrix):
        values = np.asarray(values)
    if not isinstance(values, np.ndarray):
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise ValueError(
                "sensitive_features must hold one label for each row, got "
                f"{type(values).__name__}: pass the labels themselves, as an array, a list or a "
                "data frame column."
            )
        values = np.asarray(values, dtype=object)  # so that each label stays what it is
        if any(hasattr(label, "item") for label in values.flat):  # numbers of NumPy and PyTorch
            plain = [x.item() if hasattr(x, "item") else x for x in values.flat]
            values = np.array([*plain, None], dtype=object)[:-1].reshape(values.shape)
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        values = np.array(values.data, dtype=object)
        values[mask] = None
    if values.ndim == 1:
        return [(values, None)]
    if values.ndim == 2 and values.shape[1] > 0:
        return [(column, None) for column in values.T]
    raise ValueError(
        "sensitive_features must have one or two dimensions (rows, or rows and columns), "
        f"got shape {values.shape}."
    )


def _name_missing(labels: tuple[Hashable, ...], codes: Codes) -> Encoded:
    """Give the codes -1 a label; one of that name in the data is the same group."""
    if codes.min(initial=0) >= 0:
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


# Columns of a table by their names: those that make the groups, and those that are reduced.


def table_names(X: Any) -> list[Any] | None:
    """Names of the columns of a table of pandas, Polars or pyarrow; None for anything else."""
    if hasattr(X, "column_names"):  # pyarrow has arrays under "columns"
        return list(X.column_names)
    return list(X.columns) if hasattr(X, "columns") and hasattr(X, "shape") else None


def named_columns(X: Any, sensitive_features: Any) -> tuple[str, ...]:
    """The names, if that is what the sensitive features are, else ().

    A text is a name, and so is each of a list of texts that are all columns of the table. Raises
    ValueError for names that no column of X has.
    """
    given = sensitive_features
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return ()
    refuse_anndata(X, given)
    if cluster_library(X) is not None:
        return tuple(names)  # which `fairpca.sources` looks up
    columns = table_names(X)
    if columns is None:
        if not isinstance(given, str):
            return ()
        raise ValueError(
            f"sensitive_features={given!r} names a column, but X is no table with names: pass a "
            "data frame (in a pipeline, let the steps before make one with "
            "set_output(transform='pandas')), or the labels themselves."
        )
    absent = [name for name in names if name not in columns]
    repeated = len(set(names)) < len(names)
    if not absent and not repeated:
        return tuple(names)
    as_many = len(names) == X.shape[0] or len(names) > len(columns)
    if not isinstance(given, str) and (repeated or as_many):
        return ()  # labels, one for each row
    texts = [name for name in columns if isinstance(name, str)]
    near = [n for name in absent for n in get_close_matches(name, texts, MOST_NAMES)]
    known = listed(near or texts, MOST_NAMES)
    raise ValueError(
        f"X has no column {listed(absent, MOST_NAMES)} that sensitive_features could name; "
        f"{'near names are' if near else 'its columns are'} {known}."
    )


def chosen_columns(X: Any, names: Sequence[str]) -> Any:
    """These columns of a table."""
    return X.select(list(names)) if hasattr(X, "column_names") else X[list(names)]


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """A table without these columns, as far as it has them; anything else as it is."""
    columns = table_names(X) if names else None
    there = [name for name in names if columns is not None and name in columns]
    if not there:
        return X
    if hasattr(X, "column_names"):
        return X.select([name for name in X.column_names if name not in there])
    return X.drop(columns=there) if hasattr(X, "iloc") else X.drop(there)


# Numbers that a user gives for each group.


def per_group(
    labels: Sequence[Hashable],
    name: str,
    given: Any,
    names: Sequence[str] | None = None,
    others: float | None = None,
) -> Array:
    """One non-negative number for each group, from a number, a sequence or a mapping by label.

    A mapping, or a pandas Series, has labels or the texts that groups are shown by. `names` are
    those of the sensitive columns; `others` is the number of groups that it leaves out, if it may.
    """
    if hasattr(given, "to_dict") and hasattr(given, "index"):
        given = given.to_dict()
    if isinstance(given, Mapping):
        shown: dict[Hashable, Hashable] = {label_text(label, names): label for label in labels}
        known = ((canonical(key), number) for key, number in given.items())
        given = {key if key in labels else shown.get(key, key): number for key, number in known}
        if others is not None:
            given = dict.fromkeys(labels, others) | given
        if set(given) != set(labels):
            missing = [label_text(label, names) for label in labels if label not in given]
            unknown = [key for key in given if key not in labels]
            wrong = [f"missing: {listed(missing, 5)}"] if missing else []
            wrong += [f"unknown: {listed(unknown, 5)}"] if unknown else []
            what = "have one entry for each group" if others is None else "name groups there are"
            raise ValueError(f"{name} must {what}; {'; '.join(wrong)}.")
        given = [given[label] for label in labels]
    try:
        numbers = np.broadcast_to(np.asarray(given, dtype=np.float64), (len(labels),)).copy()
    except (TypeError, ValueError):
        numbers = np.full(len(labels), np.nan)
    if not (numbers >= 0.0).all():
        raise ValueError(
            f"{name} must be a number of at least 0, or one for each of the {len(labels)} groups "
            f"(by label, or in the order of the sorted labels), got {given!r}."
        )
    return numbers


# Groups of so few rows that sums of them tell of single people.


def warn_of_small_groups(file: str, groups: Sequence[str], count: NDArray[np.int64]) -> None:
    """Warn that a file, such as "file of moments", tells of single rows, and name the groups."""
    small = [
        f"{short_text(group)!r} ({in_rows(n)})"
        for group, n in zip(groups, count.tolist(), strict=True)
        if n < MIN_ROWS
    ]
    if small:
        warn_user(
            f"This {file} holds what can tell of single rows, because groups have fewer than "
            f"{MIN_ROWS}: {joined(small)}; merge such groups or leave them "
            "out before you share it (docs/privacy.md)."
        )

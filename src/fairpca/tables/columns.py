"""Columns of a table: their names, whether they hold numbers or text, and their values.

A table is a data frame of pandas or Polars, a dictionary of columns, or a record batch or table of
pyarrow.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.groups import Codes, check_number_of_groups, encode_column
from fairpca._rows.text import listed, short_text

MOST_NAMES = 5
"""How many names a message lists."""

Encoded = tuple[tuple[Hashable, ...], Codes]
"""The labels that occur in a column, and the position of each row's among them, or -1."""


def table_columns(table: Any) -> list[str]:
    """Names of a table's columns, which must be texts and differ."""
    for attribute in ("column_names", "columns"):  # pyarrow has arrays under the second
        if hasattr(table, attribute):
            return check_column_names(list(getattr(table, attribute)))
    return check_column_names(list(table))


def check_column_names(names: list[Any]) -> list[str]:
    """Return the names, or raise ValueError unless they are texts that differ."""
    odd = [name for name in names if not isinstance(name, str)]
    if odd:
        raise ValueError(f"Names of columns must be text, got {listed(odd, MOST_NAMES)}.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"Columns have the same name: {quoted(repeated)}.")
    return names


def require_columns(names: Sequence[str], wanted: Iterable[str]) -> None:
    """Raise ValueError unless all that is wanted is among the names."""
    absent = [name for name in dict.fromkeys(wanted) if name not in names]
    if absent:
        raise ValueError(f"The table has no column {quoted(absent)}; it has {quoted(names)}.")


def quoted(names: Sequence[str]) -> str:
    """Names for a message: short ones, and not too many."""
    return listed([short_text(name) for name in names], MOST_NAMES)


def column_values(table: Any, name: str) -> Any:
    """A column as an array of pyarrow, a pandas Series (for its quick factorize), or an array."""
    if hasattr(table, "column_names"):
        column = table.column(name)
        return column.combine_chunks() if hasattr(column, "combine_chunks") else column
    column = table[name]
    if hasattr(column, "factorize"):
        return column
    return column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)


def encoded_text(source: Any, name: str) -> Encoded | None:
    """The labels and codes of a column of text, or None if it holds numbers; others are refused."""
    if hasattr(source, "dictionary_encode"):  # of pyarrow
        coded = hasattr(source.type, "index_type")
        kind = source.type.value_type if coded else source.type
        if is_numeric(kind):
            return None
        if is_text(kind):
            return encode_arrow(source)
        raise _neither(name, source.type)
    letter = getattr(source.dtype, "kind", "O")
    if letter in "biuf":
        return None
    if letter in "cmMV":
        raise _neither(name, source.dtype)
    try:
        encoded = encode_column(source)
    except TypeError as error:  # lists and the like
        raise _neither(name, source.dtype) from error
    if all(isinstance(label, Real | Decimal) for label in encoded[0]):
        return None
    if all(isinstance(label, str) for label in encoded[0]):
        return encoded
    raise _neither(name, source.dtype)


def _neither(name: str, kind: Any) -> ValueError:
    return ValueError(
        f"Column {quoted([name])} holds neither numbers alone nor text alone (its type is {kind}): "
        "turn it into one of them, or drop it."
    )


def numbers(source: Any) -> Array:
    """The values of a column of numbers as floats, NaN where they are missing."""
    if hasattr(source, "dictionary_encode"):  # of pyarrow
        plain = source.dictionary_decode() if hasattr(source, "dictionary_decode") else source
        return np.asarray(plain.to_numpy(zero_copy_only=False), dtype=np.float64)
    if hasattr(source, "factorize"):  # pandas, whose own types may hold its NA
        return source.to_numpy(dtype=np.float64, na_value=np.nan)  # type: ignore[no-any-return]
    return source.astype(np.float64)  # type: ignore[no-any-return]


def encode_arrow(column: Any) -> Encoded:
    """The labels and codes of an array of pyarrow; TypeError where its values are no labels."""
    import pyarrow

    kind = column.type
    if not pyarrow.types.is_dictionary(kind):
        try:
            column = _without_views(column).dictionary_encode()
        except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid) as error:
            raise TypeError(
                f"must hold plain labels such as text or numbers, not {kind}."
            ) from error
    if column.null_count == len(column):
        return (), np.full(len(column), -1, dtype=np.int64)
    codes = column.indices.cast(pyarrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    values = _without_views(column.dictionary)
    # A dictionary may hold labels that do not occur here, and some that mean "missing".
    present = np.flatnonzero(np.bincount(codes + 1, minlength=len(values) + 1)[1:])
    occurring = values.take(pyarrow.array(present)).to_pylist()
    labels = dict.fromkeys(label for label in occurring if label is not None and label == label)
    place = {label: i for i, label in enumerate(labels)}
    table = np.full(len(values) + 1, -1)  # whose last element is that of the code -1
    table[present] = [place.get(label, -1) for label in occurring]
    return tuple(labels), table[codes]


def encode_labels(table: Any, names: Sequence[str]) -> list[Encoded]:
    """The labels and codes of sensitive columns of a record batch."""
    encoded = []
    for name in names:
        try:
            encoded.append(encode_arrow(table.column(name)))
        except TypeError as error:
            raise TypeError(f"Column {name!r} {error}") from error
        check_number_of_groups(len(encoded[-1][0]))
    return encoded


def is_numeric(kind: Any) -> bool:
    """Whether a column of this type of pyarrow holds numbers; one without any value does."""
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    return any(test(kind) for test in tests)


def is_text(kind: Any) -> bool:
    """Whether a column of this type of pyarrow holds text."""
    from pyarrow import types

    view = getattr(types, "is_string_view", types.is_string)  # new in version 16
    return bool(types.is_string(kind) or types.is_large_string(kind) or view(kind))


def _without_views(column: Any) -> Any:
    """The column in a type that Arrow can encode: of views of text, as Polars has them, text."""
    import pyarrow

    view = getattr(pyarrow.types, "is_string_view", None)
    if view is None or not view(column.type):
        return column
    try:
        return column.cast(pyarrow.large_string())
    except pyarrow.ArrowNotImplementedError:  # in old versions of pyarrow
        return pyarrow.array(column.to_pylist(), pyarrow.large_string())

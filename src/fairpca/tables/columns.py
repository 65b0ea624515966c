"""Columns of a table: their names, which are read for what, their types and their values.

A table is a data frame of pandas or Polars, a dictionary of columns, or a record batch or table of
pyarrow. What is refused is a `TableError`, which has the words for Python and for the program.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.exceptions import warn_user
from fairpca.groups import (
    Codes,
    Groups,
    check_number_of_groups,
    combine_encoded,
    encode_column,
    encode_groups,
    in_order,
    refuse_measurements,
)
from fairpca.text import MOST_NAMES, listed, short_text


class TableError(ValueError):
    """A table that is refused, with what can be done about it.

    Parameters
    ----------
    problem : str
        What is wrong, without a full stop. "It" at the beginning is the file.
    remedy : str
        What can be done, in words that are true for every reader of the message.
    instead : str, default=""
        What else the program offers, with its options.
    **fix : str, bool or tuple of str
        Options of the program with which it goes on, by name.

    Attributes
    ----------
    also : list of TableError
        What else is wrong with the table.
    """

    def __init__(self, problem: str, remedy: str, instead: str = "", **fix: Any) -> None:
        super().__init__(f"{problem}: {remedy}.")
        self.problem, self.remedy, self.instead, self.fix = problem, remedy, instead, fix
        self.also: list[TableError] = []

    @property
    def in_options(self) -> str:
        """The sentence for those who called the program."""
        return f"{self.problem}: {self.remedy}{'; ' * bool(self.instead)}{self.instead}."

    def of_file(self, shown: str) -> TableError:
        """The same with the name of the file in front, or in the place of "It"."""
        is_it = self.problem.startswith("It ")
        problem = f"{shown} {self.problem[3:]}" if is_it else f"{shown}: {self.problem}"
        return TableError(problem, self.remedy, self.instead, **self.fix)


def refuse(errors: Sequence[TableError]) -> None:
    """Raise the first of these errors, if there is any, with the others."""
    if errors:
        first, *first.also = errors
        raise first


@contextmanager
def collecting(errors: list[TableError]) -> Iterator[None]:
    """Take the errors about the table that the body raises into a list."""
    try:
        yield
    except TableError as error:
        errors += [error, *error.also]


def typed(option: str, values: Iterable[str]) -> str:
    """An option as it is typed in a shell, once for each value."""
    return " ".join(f"{option} {shlex.quote(value)}" for value in values)


def typed_options(options: Mapping[str, Any]) -> str:
    """Options as they are typed, by their names."""
    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        values = value if isinstance(value, tuple) else (str(value),)
        words.append(option if value is True else typed(option, values))
    return " ".join(words)


def meant(name: str, known: Sequence[str]) -> str | None:
    """The name that someone who typed this one may have meant."""
    plain = {_plain(other): other for other in reversed(known)}
    close = difflib.get_close_matches(_plain(name), plain, 1, 0.75)
    return plain[close[0]] if close else None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum()) or name


MISSING_WORDS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""What is a missing number, as pandas has it."""

Encoded = tuple[tuple[Hashable, ...], Codes]
"""The labels that occur in a column, and the position of each row's among them, or -1."""


INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name in Parquet and Arrow files: it is no data."""


@dataclass(frozen=True)
class ColumnChoice:
    """What the user says of the columns; `features` is None for all numeric ones."""

    features: tuple[str, ...] | None
    sensitive: tuple[str, ...]
    weight: str | None
    keep_sensitive: bool = False

    @classmethod
    def of(
        cls,
        features: Sequence[str] | None,
        sensitive_features: str | Sequence[str] | None,
        sample_weight: str | None,
        keep_sensitive: bool = False,
    ) -> ColumnChoice:
        """Check names as the user gives them."""
        chosen = []
        for what, names in (("sensitive_features", sensitive_features), ("features", features)):
            given = (names,) if isinstance(names, str) else tuple(() if names is None else names)
            if not all(isinstance(name, str) for name in given):
                raise TypeError(f"{what} must be names of columns, not the values themselves.")
            repeated = [name for name, count in Counter(given).items() if count > 1]
            if repeated:
                raise ValueError(f"{what} names columns twice: {listed(repeated, MOST_NAMES)}.")
            chosen.append(given)
        if features is not None and not chosen[1]:
            raise ValueError("features must name at least one column.")
        if not (sample_weight is None or isinstance(sample_weight, str)):
            raise TypeError("sample_weight must be the name of a column.")
        named = None if features is None else chosen[1]
        return cls(named, chosen[0], sample_weight, bool(keep_sensitive))

    def columns(self, schema: Any, known: Columns | None = None) -> Columns:
        """The columns of a table with this schema; those of the first, where they are known.

        A warning names those that are left out because they hold no numbers.
        """
        if known is not None:
            known.check(schema)
            return known
        names = check_column_names(schema.names)
        others = {name for name in (*self.sensitive, self.weight) if name is not None}
        require_columns(names, [*others, *(self.features or ())])
        features = self.features
        if features is None:
            features = tuple(
                field.name
                for field in schema
                if is_numeric(field.type)
                and field.name not in ({self.weight} if self.keep_sensitive else others)
                and not INDEX.fullmatch(field.name)
            )
            if not features:
                raise ValueError("The table has no numeric columns besides those for groups.")
        found = Columns(features, self.sensitive, self.weight, self.features is None)
        found.check(schema)
        known_names = {*found.names, *others}
        others_left = [n for n in names if n not in known_names and not INDEX.fullmatch(n)]
        if found.all_numeric and others_left:
            warn_user(
                f"Columns without numbers are left out: {listed(others_left, MOST_NAMES)}. Convert "
                "numbers that are text or dates, and encode categories; or drop the columns, or "
                "name the features, to leave them out without this warning."
            )
        return found


@dataclass(frozen=True)
class Columns:
    """The columns that are read.

    `all_numeric` says that the features are all numeric columns that there were, so that a further
    table with more of them is another table.
    """

    features: tuple[str, ...]
    sensitive: tuple[str, ...]
    weight: str | None
    all_numeric: bool

    @property
    def names(self) -> list[str]:
        """Each column that is read, once."""
        weight = () if self.weight is None else (self.weight,)
        return list(dict.fromkeys((*self.features, *self.sensitive, *weight)))

    def types(self, schema: Any) -> dict[str, Any]:
        """The types to read a CSV file in: features and weights as numbers, labels as text."""
        import pyarrow

        kinds = dict.fromkeys(self.sensitive, pyarrow.string())
        for name in {*self.features, self.weight} - {None}:
            boolean = pyarrow.types.is_boolean(schema.field(name).type)
            kinds[name] = pyarrow.bool_() if boolean else pyarrow.float64()
        return kinds

    def check(self, schema: Any) -> None:
        """Raise ValueError unless a table with this schema has these columns, with numbers."""
        names = check_column_names(schema.names)
        require_columns(names, self.names)
        wanted = {*self.features, self.weight}
        numeric = {field.name for field in schema if is_numeric(field.type)}
        text = [name for name in names if name in wanted and name not in numeric]
        if text:
            kinds = ", ".join(str(schema.field(name).type) for name in text[:MOST_NAMES])
            raise ValueError(
                f"Columns hold no numbers: {listed(text, MOST_NAMES)} ({kinds}); encode them or "
                "leave them out."
            )
        if self.all_numeric:
            # A column without any value may well be one of text.
            known = {*self.names, *(field.name for field in schema if str(field.type) == "null")}
            new = numeric - known
            more = [n for n in names if n in new and not INDEX.fullmatch(n)]
            if more:
                raise ValueError(
                    f"The table has numeric columns that the first one has not: "
                    f"{listed(more, MOST_NAMES)}; name the features to leave them out."
                )


def table_columns(table: Any) -> dict[str, Any]:
    """The columns of a table by their names, which must be texts and differ.

    Each is an array of pyarrow, a pandas Series (for its quick factorize), or an array.
    """
    if hasattr(table, "schema") and hasattr(table, "num_rows"):  # of pyarrow
        names = check_column_names(table.schema.names)
        arrays = [c.combine_chunks() if hasattr(c, "combine_chunks") else c for c in table.columns]
        return dict(zip(names, arrays, strict=True))
    given: Any = getattr(table, "columns", None)
    names = check_column_names(list(table if given is None else given))
    columns = {name: table[name] for name in names}
    for name, column in columns.items():
        if not hasattr(column, "factorize"):
            numbers = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
            columns[name] = numbers
    return columns


def check_column_names(names: list[Any]) -> list[str]:
    """Return the names, or raise ValueError unless they are texts that differ."""
    odd = [name for name in names if not isinstance(name, str)]
    if odd:
        raise ValueError(f"Names of columns must be text, got {listed(odd, MOST_NAMES)}.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"Columns have the same name: {quoted(repeated)}; give each a name of its own."
        )
    return names


def require_columns(names: Sequence[str], wanted: Iterable[str]) -> None:
    """Raise ValueError unless all that is wanted is among the names."""
    there = {*names}
    absent = [name for name in dict.fromkeys(wanted) if name not in there]
    if not absent:
        return
    parts = [part.strip() for part in absent[0].split(",")]
    if len(parts) > 1 and all(part in names for part in parts):
        raise TableError(
            f"The table has no column {quoted(absent[:1])}",
            f"name {quoted(parts)} one by one, in the program with the option repeated",
        )
    found = (meant(name, names) for name in absent)
    close = list(dict.fromkeys(other for other in found if other is not None))
    hint = f" (did you mean {listed(close, MOST_NAMES)}?)" if close else ""
    if not close and sum(map(_is_number, names)) > len(names) / 2:
        hint = " (has its first line values, not names?)"
    raise ValueError(f"The table has no column {quoted(absent)}{hint}; it has {quoted(names)}.")


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def quoted(names: Sequence[str]) -> str:
    """Names for a message: short ones, and not too many."""
    return listed([short_text(name) for name in names], MOST_NAMES)


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
    if re.match(r"timestamp|date|datetime|time|duration", str(kind)):
        return date_error(name, f" (its type is {kind})")
    return TableError(
        f"Column {quoted([name])} holds neither numbers alone nor text alone (its type is {kind})",
        "turn it into one of them, or leave the column out",
        drop=(name,),
    )


def date_error(name: str, more: str, few: bool = True) -> TableError:
    """What is said of a column of dates and times; `few`: they may be categories."""
    each = f"{typed('--as-text', [name])} takes each for a category" if few else ""
    return TableError(
        f"Column {quoted([name])} holds dates or times{more}",
        "turn them into numbers, such as years, or leave the column out",
        each,
        drop=(name,),
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
        if pyarrow.types.is_string_view(kind):  # as Polars has text; it cannot be encoded
            try:
                column = column.cast(pyarrow.large_string())
            except pyarrow.ArrowNotImplementedError:  # in old versions of pyarrow
                column = pyarrow.array(column.to_pylist(), pyarrow.large_string())
        try:
            column = column.dictionary_encode()
        except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid) as error:
            raise TypeError(
                f"must hold plain labels such as text or numbers, not {kind}."
            ) from error
    codes = np.asarray(column.indices.to_numpy(zero_copy_only=False))
    codes = np.where(np.isnan(codes), -1, codes).astype(np.int64)
    # A dictionary may hold labels that do not occur here, and some that mean "missing".
    n = len(column.dictionary)
    present = np.flatnonzero(np.bincount(codes + 1, minlength=n + 1)[1:]).tolist()
    occurring = [column.dictionary[i].as_py() for i in present]
    labels = dict.fromkeys(label for label in occurring if label is not None and label == label)
    place = {label: i for i, label in enumerate(labels)}
    table = np.full(n + 1, -1)  # whose last element is that of the code -1
    table[present] = [place.get(label, -1) for label in occurring]
    return tuple(labels), table[codes]


def encode_labels(table: Any, names: Sequence[str]) -> list[Encoded]:
    """The labels and codes of sensitive columns of a record batch."""
    encoded = []
    for name in names:
        try:
            labels, codes = encode_arrow(table.column(name))
            encoded.append(in_order(list(labels), codes))
        except TypeError as error:
            raise TypeError(f"Column {name!r} {error}") from error
        check_number_of_groups(len(encoded[-1][0]))
        if not hasattr(table.column(name).type, "index_type"):
            refuse_measurements(encoded[-1][0], name)
    return encoded


def label_groups(table: Any, names: Sequence[str], missing_labels: str) -> Groups:
    """The groups of the rows of a record batch, by its sensitive columns; one if there are none."""
    if not names:
        return encode_groups(None, table.num_rows)
    return combine_encoded(encode_labels(table, names), table.num_rows, missing_labels, names)


def is_numeric(kind: Any) -> bool:
    """Whether a column of this type of pyarrow holds numbers; one without any value does."""
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    return any(test(kind) for test in tests)


def is_text(kind: Any) -> bool:
    """Whether a column of this type of pyarrow holds text."""
    from pyarrow import types

    return any(
        test(kind) for test in (types.is_string, types.is_large_string, types.is_string_view)
    )

"""Preparation: from a table with numbers and text to the columns of numbers that PCA works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_choice
from fairpca._rows.groups import Codes, encode_column
from fairpca._rows.text import listed, short_text

ENCODINGS = ("onehot", "codes", "error")
"""What can be made of columns of text."""

KINDS = ("number", "onehot", "codes")
"""What a column of the table can become."""

MOST_CATEGORIES = 1000
"""How many texts a column may have of which each becomes a column."""

_MOST_NAMES = 5
"""How many names a message lists."""


@dataclass(frozen=True)
class InputColumn:
    """A column of the table, and what becomes of it.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "onehot", "codes"}
        "number": it is taken as it is. "onehot": a 0/1 column for each category. "codes": the
        position of the category among all of them.
    categories : tuple of str
        The texts that occurred at the fit, sorted; empty for a column of numbers.
    """

    name: str
    kind: str = "number"
    categories: tuple[str, ...] = ()

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the columns that it becomes."""
        if self.kind == "onehot":
            return tuple(f"{self.name}={category}" for category in self.categories)
        return (self.name,)


@dataclass(frozen=True, eq=False)
class Preparation:
    """Which columns of a table enter, how text is encoded, and how columns are scaled.

    It is learned from one table and applied to others, which need the same columns, in any order.
    A table is a data frame of pandas or Polars, or a dictionary of columns.

    Attributes
    ----------
    columns : tuple of InputColumn
        The columns that enter, in the order of the table it was learned from.
    means, scales : arrays of shape (n_outputs,)
        What is subtracted from each encoded column, and what it is then divided by.
    ignored : tuple of str
        Columns of that table that do not enter. Other tables may have them or not.
    sensitive : tuple of str
        The columns that made the groups, for what wants to know them later.

    Examples
    --------
    >>> from fairpca.tables.preparation import Preparation
    >>> table = {"age": [20, 40, 60], "job": ["cook", "smith", "cook"], "sex": ["f", "m", "f"]}
    >>> preparation = Preparation.learn(table, sensitive=["sex"])
    >>> preparation.feature_names
    ('age', 'job=cook', 'job=smith')
    >>> preparation.apply({"age": [40], "job": ["smith"]}).round(4)
    array([[ 0.    , -1.4142,  1.4142]])
    """

    columns: tuple[InputColumn, ...]
    means: Array
    scales: Array
    ignored: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()

    @classmethod
    def of_numbers(cls, names: Iterable[str]) -> Preparation:
        """The one that takes columns of numbers by their names and leaves them as they are."""
        return cls.unscaled([InputColumn(name) for name in names])

    @classmethod
    def learn(
        cls,
        table: Any,
        *,
        sensitive: Sequence[str] = (),
        drop: Sequence[str] = (),
        encode: str = "onehot",
        standardize: bool = True,
        keep_sensitive: bool = False,
    ) -> Preparation:
        """Learn categories, means and scales from a table.

        Parameters
        ----------
        table : data frame or dict of columns
            Without missing values in the columns that enter.
        sensitive : sequence of str, default=()
            The columns that make the groups.
        drop : sequence of str, default=()
            Columns that do not enter, such as a target.
        encode : {"onehot", "codes", "error"}, default="onehot"
            What becomes of columns of text: a 0/1 column for each category, the position of the
            category in sorted order, or an error.
        standardize : bool, default=True
            Whether columns are brought to mean 0 and variance 1 (constant ones to 0).
        keep_sensitive : bool, default=False
            Whether the sensitive columns enter too. Other tables then need them as well.

        Returns
        -------
        Preparation
        """
        check_choice("encode", encode, ENCODINGS)
        names = table_columns(table)
        used = columns_to_reduce(names, sensitive, drop, keep_sensitive)
        plain = cls.unscaled(
            settle_columns(
                {name: text_categories(column_values(table, name), name) for name in used}, encode
            ),
            ignored=tuple(name for name in names if name not in used),
            sensitive=tuple(sensitive),
        )
        if not standardize:
            return plain
        means, scales = _means_and_scales(plain.apply(table), plain.feature_names)
        return cls(plain.columns, means, scales, plain.ignored, plain.sensitive)

    @classmethod
    def unscaled(cls, columns: Iterable[InputColumn], **names: tuple[str, ...]) -> Preparation:
        """The one that encodes columns and leaves them in their own units."""
        columns = tuple(columns)
        d = sum(len(column.output_names) for column in columns)
        return cls(columns, np.zeros(d), np.ones(d), **names)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns that come out; a category stands behind the name and "="."""
        return tuple(name for column in self.columns for name in column.output_names)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Names of the columns that are text."""
        return tuple(column.name for column in self.columns if column.kind != "number")

    def apply(self, table: Any) -> Array:
        """Encode and scale the columns of a table.

        Parameters
        ----------
        table : data frame or dict of columns
            With all of `columns`, in any order. The `ignored` ones may be there; others not, since
            nothing is known of them: they may be misspelt, or of another table.

        Returns
        -------
        array of shape (n_rows, n_outputs)
        """
        prepared, missing = self.apply_counting(table)
        if missing:
            raise ValueError(missing_sentence(missing))
        return prepared

    def apply_counting(self, table: Any) -> tuple[Array, dict[str, int]]:
        """What `apply` gives, and how many values are missing or infinite in which columns."""
        self.check_names(table_columns(table))
        prepared, missing = self._encoded(table)
        prepared -= self.means
        prepared /= self.scales
        return prepared, missing

    def undo_scaling(self, prepared: Array) -> Array:
        """The encoded columns in their own units again."""
        restored: Array = prepared * self.scales + self.means
        return restored

    def check_names(self, names: list[str]) -> None:
        """Raise ValueError unless a table with these columns can be prepared."""
        wanted = {column.name for column in self.columns}
        missing = [column.name for column in self.columns if column.name not in names]
        if missing:
            raise ValueError(f"The table lacks columns that the model needs: {quoted(missing)}.")
        unknown = [name for name in names if name not in wanted and name not in self.ignored]
        if unknown:
            raise ValueError(
                f"The table has columns that the model does not know: {quoted(unknown)}; drop "
                "them if they do not belong to it."
            )

    def _encoded(self, table: Any) -> tuple[Array, dict[str, int]]:
        sources = [column_values(table, column.name) for column in self.columns]
        lengths = {len(source) for source in sources}
        if len(lengths) > 1:
            raise ValueError(f"Columns have different numbers of rows: {sorted(lengths)}.")
        encoded = np.zeros((lengths.pop(), len(self.means)))
        not_there: dict[str, int] = {}
        start = 0
        for column, source in zip(self.columns, sources, strict=True):
            stop = start + len(column.output_names)
            if column.kind == "number":
                encoded[:, start] = _numbers(source, column.name)
                bad = int(np.count_nonzero(~np.isfinite(encoded[:, start])))
            else:
                codes = _positions(source, column)
                bad = int(np.count_nonzero(codes < 0))
                if column.kind == "codes":
                    encoded[:, start] = codes
                else:
                    rows = np.flatnonzero(codes >= 0)
                    encoded[rows, start + codes[rows]] = 1.0
            if bad:
                not_there[column.name] = bad
            start = stop
        return encoded, not_there


def table_columns(table: Any) -> list[str]:
    """Names of a table's columns, which must be texts and differ."""
    return check_column_names(list(table.columns if hasattr(table, "columns") else table))


def check_column_names(names: list[Any]) -> list[str]:
    """Return the names, or raise ValueError unless they are texts that differ."""
    odd = [name for name in names if not isinstance(name, str)]
    if odd:
        raise ValueError(f"Names of columns must be text, got {listed(odd, _MOST_NAMES)}.")
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
    return listed([short_text(name) for name in names], _MOST_NAMES)


def columns_to_reduce(
    names: Sequence[str], sensitive: Sequence[str], drop: Sequence[str], keep_sensitive: bool
) -> list[str]:
    """The columns that enter, or ValueError if there are none, or one has no name."""
    require_columns(names, [*sensitive, *drop])
    unused = {*drop, *(() if keep_sensitive else sensitive)}
    used = [name for name in names if name not in unused]
    if not used:
        raise ValueError("No columns are left to reduce: all are sensitive or dropped.")
    if "" in used:
        raise ValueError(
            "A column has no name, as an index that was written into the table has: name it, "
            "or drop the column ''."
        )
    return used


def settle_columns(
    categories: Mapping[str, tuple[str, ...] | None], encode: str
) -> list[InputColumn]:
    """What becomes of columns with these texts, or of numbers, for which there is None."""
    columns, texts = [], []
    for name, found in categories.items():
        if found is None:
            columns.append(InputColumn(name))
            continue
        texts.append(name)
        if encode == "onehot" and len(found) > MOST_CATEGORIES:
            raise ValueError(
                f"Column {quoted([name])} has {len(found):,} different texts, too many for a "
                "column each: drop it, or encode text as codes."
            )
        columns.append(InputColumn(name, encode, found))
    if texts and encode == "error":
        raise ValueError(
            f"Columns hold text where numbers belong: {quoted(texts)}; encode or drop them."
        )
    return columns


def column_values(table: Any, name: str) -> Any:
    """A column as a pandas Series, for its quick factorize, or as an array."""
    column = table[name]
    if hasattr(column, "factorize"):
        return column
    return column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)


def text_categories(source: Any, name: str) -> tuple[str, ...] | None:
    """The sorted texts of a column, or None if it holds numbers."""
    kind = getattr(source.dtype, "kind", "O")
    if kind in "biuf":
        return None
    labels: tuple[Any, ...] = ()
    if kind not in "cmMV":
        try:
            labels, _ = encode_column(source)
        except TypeError:  # lists and the like
            kind = "V"
    if kind in "cmMV" or not (_all_numbers(labels) or all(isinstance(v, str) for v in labels)):
        raise ValueError(
            f"Column {quoted([name])} holds neither numbers alone nor text alone (its type is "
            f"{source.dtype}): turn it into one of them, or drop it."
        )
    return None if _all_numbers(labels) else tuple(sorted(labels))


def _all_numbers(labels: Iterable[Any]) -> bool:
    return all(isinstance(label, Real | Decimal) for label in labels)


def _numbers(source: Any, name: str) -> Array:
    """The values as floats, NaN where they are missing."""
    if text_categories(source, name) is not None:
        raise ValueError(f"Column {quoted([name])} holds text where the model needs numbers.")
    if hasattr(source, "factorize"):  # pandas, whose own types may hold its NA
        numbers: Array = source.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers
    return source.astype(np.float64)  # type: ignore[no-any-return]


def _positions(source: Any, column: InputColumn) -> Codes:
    """The position of each row's category, -1 where it is missing."""
    labels, codes = encode_column(source)
    place = {category: i for i, category in enumerate(column.categories)}
    texts = [_as_text(label) for label in labels]
    unknown = [text for text in texts if text not in place]
    if unknown:
        raise ValueError(
            f"Column {quoted([column.name])} has values that did not occur at the fit: "
            f"{quoted(unknown)}."
        )
    return np.array([*(place[text] for text in texts), -1], dtype=np.int64)[codes]


def _as_text(label: Any) -> str:
    # Text such as "2" that is alone in a new table may have been read as a number.
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _means_and_scales(encoded: Array, names: Sequence[str]) -> tuple[Array, Array]:
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(encoded)
        # The mean of equal numbers may differ from them by rounding; their difference should not.
        constant = np.ptp(encoded, axis=0) == 0.0
    # The variance, as the scale is 1 where that is infinite.
    huge = ~constant & ~np.isfinite(scaler.var_)
    refuse_huge(names, huge)
    means = np.where(constant, encoded[0], scaler.mean_)
    return means, np.where(constant, 1.0, scaler.scale_)


def refuse_huge(names: Sequence[str], huge: Iterable[bool]) -> None:
    """Raise ValueError if the squares of some columns are too large."""
    large = [name for name, bad in zip(names, huge, strict=True) if bad]
    if large:
        raise ValueError(f"Columns have values that are too large to be squared: {quoted(large)}.")


def missing_sentence(counts: Mapping[str, int]) -> str:
    """What is said of columns with so many values that are missing."""
    shown = [f"{quoted([name])} ({count:,})" for name, count in counts.items()]
    more = f" and {len(shown) - _MOST_NAMES} more columns" if len(shown) > _MOST_NAMES else ""
    return (
        f"Values are missing or infinite in {', '.join(shown[:_MOST_NAMES])}{more}: fill them in, "
        "or leave out those rows or columns."
    )

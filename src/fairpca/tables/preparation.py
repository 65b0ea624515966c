"""Preparation: from a table with numbers and text to the columns of numbers that PCA works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_choice
from fairpca._rows.groups import Codes, encode_column
from fairpca._rows.words import ENCODINGS as ENCODINGS
from fairpca.tables.columns import (
    MOST_NAMES,
    column_values,
    encode_arrow,
    encoded_text,
    numbers,
    quoted,
    require_columns,
    table_columns,
)

KINDS = ("number", "onehot", "codes")
"""What a column of the table can become."""

_MOST_CATEGORIES = 1000
"""How many texts a column may have of which each becomes a column."""


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
    A table is a data frame of pandas or Polars, a dictionary of columns, or an Arrow table or
    record batch.

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
        columns = tuple(InputColumn(name) for name in names)
        return cls(columns, np.zeros(len(columns)), np.ones(len(columns)))

    @classmethod
    def learn(cls, table: Any, **options: Any) -> Preparation:
        """Learn categories, means and scales from a table.

        Parameters
        ----------
        table : data frame, dict of columns, or Arrow table
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
        learner = PreparationLearner(table_columns(table), **options)
        learner.see(table)
        return learner.preparation()

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
        table : data frame, dict of columns, or Arrow table
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
        sources = [column_values(table, column.name) for column in self.columns]
        lengths = {len(source) for source in sources}
        if len(lengths) > 1:
            raise ValueError(f"Columns have different numbers of rows: {sorted(lengths)}.")
        encoded = np.zeros((lengths.pop(), len(self.means)))
        missing: dict[str, int] = {}
        start = 0
        for column, source in zip(self.columns, sources, strict=True):
            if column.kind == "number":
                if encoded_text(source, column.name) is not None:
                    raise ValueError(
                        f"Column {quoted([column.name])} holds text where the model needs numbers."
                    )
                encoded[:, start] = numbers(source)
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
                missing[column.name] = bad
            start += len(column.output_names)
        encoded -= self.means
        encoded /= self.scales
        return encoded, missing

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


class PreparationLearner:
    """Learns a `Preparation` from a table in one pass over its batches.

    The parameters are those of `Preparation.learn`, with the names of the table's columns.

    Attributes
    ----------
    used : list of str
        The columns that enter, which each batch needs.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        sensitive: Sequence[str] = (),
        drop: Sequence[str] = (),
        encode: str = "onehot",
        standardize: bool = True,
        keep_sensitive: bool = False,
    ) -> None:
        check_choice("encode", encode, ENCODINGS)
        require_columns(names, [*sensitive, *drop])
        unused = {*drop, *(() if keep_sensitive else sensitive)}
        self.used = [name for name in names if name not in unused]
        if not self.used:
            raise ValueError("No columns are left to reduce: all are sensitive or dropped.")
        if "" in self.used:
            raise ValueError(
                "A column has no name, as an index that was written into the table has: name it, "
                "or drop the column ''."
            )
        self._ignored = tuple(name for name in names if name in unused)
        self._sensitive = tuple(sensitive)
        self._encode, self._standardize = encode, standardize
        self._summaries = {name: _Summary() for name in self.used}

    def see(self, batch: Any) -> None:
        """Take in a batch of rows."""
        for name, summary in self._summaries.items():
            summary.see(column_values(batch, name), name)
            # At once, as the texts of a column that names each row may not fit into memory.
            if self._encode == "onehot" and len(summary.texts or ()) > _MOST_CATEGORIES:
                raise ValueError(
                    f"Column {quoted([name])} has more than {_MOST_CATEGORIES:,} different texts, "
                    "too many for a column each: drop it, or encode text as codes."
                )

    def preparation(self) -> Preparation:
        """The preparation for the rows that have been seen, or ValueError if there is none."""
        texts = [name for name, summary in self._summaries.items() if summary.texts is not None]
        if texts and self._encode == "error":
            raise ValueError(
                f"Columns hold text where numbers belong: {quoted(texts)}; encode or drop them."
            )
        missing = {n: s.n_missing for n, s in self._summaries.items() if s.n_missing}
        if missing:
            raise ValueError(missing_sentence(missing))
        columns, means, scales = [], [], []
        for name, summary in self._summaries.items():
            column = InputColumn(name)
            if summary.texts is not None:
                column = InputColumn(name, self._encode, tuple(sorted(summary.texts)))
            columns.append(column)
            mean, scale = summary.scaling(column.kind, column.categories)
            means.append(mean)
            scales.append(scale)
        known = zip(columns, scales, strict=True)
        huge = [column.name for column, scale in known if not np.isfinite(scale).all()]
        if huge:
            raise ValueError(
                f"Columns have values that are too large to be squared: {quoted(huge)}."
            )
        mean, scale = np.concatenate(means), np.concatenate(scales)
        if not self._standardize:
            mean, scale = np.zeros_like(mean), np.ones_like(scale)
        return Preparation(tuple(columns), mean, scale, self._ignored, self._sensitive)


def missing_sentence(counts: Mapping[str, int]) -> str:
    """What is said of columns with so many values that are missing."""
    shown = [f"{quoted([name])} ({count:,})" for name, count in counts.items()]
    more = f" and {len(shown) - MOST_NAMES} more columns" if len(shown) > MOST_NAMES else ""
    return (
        f"Values are missing or infinite in {', '.join(shown[:MOST_NAMES])}{more}: fill them in, "
        "or leave out those rows or columns."
    )


@dataclass
class _Summary:
    """What is kept of a column as its batches pass by, to encode and to standardise it.

    That is mean, variance and range of the numbers of a column, or how often each text occurs.
    """

    n_rows: int = 0
    n_missing: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of the deviations from the mean
    low: float = np.inf
    high: float = -np.inf
    texts: Counter[str] | None = None

    def see(self, source: Any, name: str) -> None:
        """Take in the column of a batch, or raise ValueError if it has neither numbers nor text."""
        self.n_rows += len(source)
        encoded = encoded_text(source, name)
        if encoded is not None:
            labels, codes = encoded
            present = codes[codes >= 0]
            self.n_missing += len(codes) - len(present)
            counts = np.bincount(present, minlength=len(labels)).tolist()
            self.texts = self.texts or Counter()
            self.texts.update(dict(zip(map(str, labels), counts, strict=True)))
            return
        values = numbers(source)
        finite = np.isfinite(values)
        if not finite.all():
            values = values[finite]
            self.n_missing += len(finite) - len(values)
        if len(values) == 0:
            return
        share = len(values) / (self.n_rows - self.n_missing)
        with np.errstate(over="ignore", invalid="ignore"):
            here = values.mean()
            self.squares += np.square(values - here).sum()
            if share < 1.0:  # what the means so far and here differ by
                self.squares += np.square(here - self.mean) * (1.0 - share) * len(values)
            self.mean = here if share == 1.0 else self.mean + share * (here - self.mean)
        self.low = min(self.low, float(values.min()))
        self.high = max(self.high, float(values.max()))

    def scaling(self, kind: str, categories: Sequence[str]) -> tuple[Array, Array]:
        """Means and standard deviations of the columns that it becomes, without missing values.

        Deviations are 1 where `StandardScaler` takes them to be: in columns of equal values, and
        where they are no more than rounding. Infinite ones say that squares are too large.
        """
        n = self.n_rows
        if kind == "number":
            # The mean of equal numbers may differ from them by rounding, which should not be left.
            same = self.low == self.high
            means = np.array([self.low if same else self.mean])
            variances = np.array([0.0 if same else self.squares / n])
        else:
            found: Mapping[str, int] = self.texts or {}
            counts = np.array([found[text] for text in categories], dtype=np.float64)
            if kind == "codes":
                positions = np.arange(len(counts))
                means = np.array([counts @ positions / n])
                variances = np.array([counts @ (positions - means) ** 2 / n])
            else:
                means = counts / n
                variances = means * (1.0 - means)
        eps = np.finfo(float).eps
        with np.errstate(over="ignore", invalid="ignore"):
            rounding = np.isfinite(variances) & (
                variances <= n * eps * variances + (n * means * eps) ** 2
            )
        return means, np.where(rounding, 1.0, np.sqrt(variances))


def _positions(source: Any, column: InputColumn) -> Codes:
    """The position of each row's category, -1 where it is missing."""
    encode = encode_arrow if hasattr(source, "dictionary_encode") else encode_column
    labels, codes = encode(source)
    place = {category: i for i, category in enumerate(column.categories)}
    # Text such as "2" that is alone in a new table may have been read as a number.
    texts = [
        str(int(label) if isinstance(label, float) and label.is_integer() else label)
        for label in labels
    ]
    unknown = [text for text in texts if text not in place]
    if unknown:
        raise ValueError(
            f"Column {quoted([column.name])} has values that did not occur at the fit: "
            f"{quoted(unknown)}."
        )
    return np.array([*(place[text] for text in texts), -1], dtype=np.int64)[codes]

"""Preparation: from a table with numbers and text to the columns of numbers that PCA works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.choices import ENCODINGS, IMPUTATIONS
from fairpca.tables.columns import (
    MOST_NAMES,
    column_values,
    quoted,
    require_columns,
    table_columns,
)
from fairpca.tables.encoding import (
    POOL,
    InputColumn,
    Tally,
    encode_into,
    missing_error,
)
from fairpca.tables.looks import Judge, Looks, Places, check_categories, id_error
from fairpca.tables.outcomes import ColumnOutcome, left_out, notes_on, outcome_of
from fairpca.tables.refusals import TableError, meant, typed
from fairpca.tables.summaries import ColumnSummary
from fairpca.validation import check_choice


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
        impute : {"", "mean", "median", "most-frequent"}, default=""
            What missing and infinite numbers become, here and in other tables; text becomes the
            most frequent one. Without it they are refused. The median is the mean of the `min_rows`
            numbers in the middle.
        min_rows : int, default=1
            Categories with fewer rows become one, whose name alone is kept; and what is filled in
            is told by at least so many rows.
        as_text, as_number : sequence of str, default=()
            Columns that are not judged by their looks (`fairpca.tables.looks`): those of text with
            numbers or dates that are names of categories, and those of numbers that only seem to
            count the rows.
        decimal : {".", ","}, default="."
            The decimal point in text that may be numbers.
        places : callable, default=None
            Says where cells stand in a file, for messages.
        codes : mapping, default=None
            Columns of numbers that look like codes, with such a number of each.

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
        tally = Tally()
        prepared = self.apply_counting(table, tally)
        if tally.missing:
            raise missing_error(tally.missing)
        return prepared

    def apply_counting(self, table: Any, tally: Tally, unknown: str = "error") -> Array:
        """What `apply` gives, and into the tally what was missing, filled in or unknown.

        Parameters
        ----------
        table : data frame, dict of columns, or Arrow table
            As for `apply`.
        tally : Tally
            Is added to.
        unknown : {"error", "ignore"}, default="error"
            Whether unknown categories of 0/1 columns without a pool are refused, or 0 in all.
        """
        self.check_names(table_columns(table))
        sources = [column_values(table, column.name) for column in self.columns]
        lengths = {len(source) for source in sources}
        if len(lengths) > 1:
            raise ValueError(f"Columns have different numbers of rows: {sorted(lengths)}.")
        encoded = np.zeros((lengths.pop(), len(self.means)))
        start = 0
        for column, source in zip(self.columns, sources, strict=True):
            end = start + len(column.output_names)
            encode_into(encoded[:, start:end], source, column, tally, unknown)
            start = end
        encoded -= self.means
        encoded /= self.scales
        return encoded

    def undo_scaling(self, prepared: Array) -> Array:
        """The encoded columns in their own units again."""
        restored: Array = prepared * self.scales + self.means
        return restored

    def check_names(self, names: list[str]) -> None:
        """Raise ValueError unless a table with these columns can be prepared."""
        wanted = {column.name for column in self.columns}
        missing = [column.name for column in self.columns if column.name not in names]
        unknown = [name for name in names if name not in wanted and name not in self.ignored]
        if missing:
            other = meant(missing[0], unknown)
            hint = "" if other is None else f" (is it called {quoted([other])} here?)"
            raise ValueError(
                f"The table lacks columns that the model needs: {quoted(missing)}{hint}."
            )
        if unknown:
            raise TableError(
                f"The table has columns that the model does not know: {quoted(unknown)}",
                "drop them if they do not belong to it",
                f"leave them out with {typed('--drop', unknown[:MOST_NAMES])} if they do not "
                "belong to it",
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
        impute: str = "",
        min_rows: int = 1,
        as_text: Sequence[str] = (),
        as_number: Sequence[str] = (),
        decimal: str = ".",
        places: Places | None = None,
        codes: Mapping[str, str] | None = None,
    ) -> None:
        check_choice("encode", encode, ENCODINGS)
        check_choice("impute", impute, ("", *IMPUTATIONS))
        require_columns(names, [*sensitive, *drop, *as_text, *as_number])
        unused = {*drop, *(() if keep_sensitive else sensitive)}
        self.used = [name for name in names if name not in unused]
        if not self.used:
            raise ValueError("No columns are left to reduce: all are sensitive or dropped.")
        if "" in self.used:
            raise TableError(
                "A column has no name, as an index that was written into the table has",
                "name it, or drop the column ''",
                "name it, or leave it out with --drop ''",
            )
        self._ignored = tuple(name for name in names if name in unused)
        self._sensitive, self._as_number = tuple(sensitive), as_number
        self._encode, self._standardize, self._min_rows = encode, standardize, min_rows
        text = {*as_text, *(sensitive if keep_sensitive else ())}
        self._judge, self._codes = Judge(text, min_rows, places), codes or {}
        self._summaries = {
            name: ColumnSummary(name, impute, min_rows, Looks(decimal)) for name in self.used
        }

    def see(self, batch: Any) -> None:
        """Take in a batch of rows."""
        for name, summary in self._summaries.items():
            summary.see(column_values(batch, name))

    def preparation(self) -> Preparation:
        """The preparation for the rows that have been seen, or ValueError if there is none."""
        self._judge_all()
        columns, means, scales = [], [], []
        for summary in self._summaries.values():
            column, mean, scale = self._learned(summary)
            columns.append(column)
            means.append(mean)
            scales.append(scale)
        known = zip(columns, scales, strict=True)
        huge = [column.name for column, scale in known if not np.isfinite(scale).all()]
        if huge:
            raise TableError(
                f"Values are too large to be squared in {quoted(huge)}",
                "divide them by a large number, or leave them out",
                f"divide them by a large number, or leave them out with {typed('--drop', huge)}",
            )
        mean, scale = np.concatenate(means), np.concatenate(scales)
        if not self._standardize:
            mean, scale = np.zeros_like(mean), np.ones_like(scale)
        return Preparation(tuple(columns), mean, scale, self._ignored, self._sensitive)

    def outcomes(self, preparation: Preparation) -> tuple[ColumnOutcome, ...]:
        """What became of each column of the rows that have been seen."""
        found = []
        for column in preparation.columns:
            summary = self._summaries[column.name]
            rare = ""
            if column.pool:
                n_rare = len(summary.texts or ()) - len(column.categories) + 1
                rare = f"{n_rare:,} rare categor{'ies' if n_rare > 1 else 'y'} as {column.pool!r}"
            constant = summary.is_constant or len(column.categories) == 1
            notes = notes_on(summary.texts or (), column.categories)
            if summary.n_digits:
                notes.append(
                    f"all have {summary.n_digits} digits, as codes, telephone numbers and dates do "
                    f"({typed('--drop', [column.name])} leaves them out)"
                )
            found.append(outcome_of(column, summary.n_missing, "constant" * constant, rare, *notes))
        return (*found, *left_out(self._ignored, self._sensitive))

    def _judge_all(self) -> None:
        """Raise ValueError if a column cannot be meant as it is, or lacks values."""
        summaries = self._summaries.values()
        for summary in summaries:
            if summary.is_text:
                self._judge.text(summary.name, summary.looks, summary.texts)
        self._judge_numbers()
        keys = [s.name for s in summaries if s.is_key and s.name not in self._as_number]
        if keys:
            raise id_error(keys)
        texts = [summary.name for summary in summaries if summary.is_text]
        if texts and self._encode == "error":
            raise TableError(
                f"Columns hold text where numbers belong: {quoted(texts)}",
                "encode or drop them",
                f"leave out --encode error, or the columns with {typed('--drop', texts)}",
            )
        empty = [summary.name for summary in summaries if not summary.n_present]
        if empty:
            raise TableError(
                f"There is no value at all in {quoted(empty)}",
                "leave those columns out",
                f"leave those columns out with {typed('--drop', empty)}",
            )
        missing = {s.name: s.n_missing for s in summaries if s.n_missing and not s.impute}
        if missing:
            raise missing_error(missing)

    def _judge_numbers(self) -> None:
        """Refuse codes, and text that is said to be a measurement."""
        for name, summary in self._summaries.items():
            if summary.is_text and name in self._as_number:
                raise TableError(
                    f"Column {quoted([name])} holds text, which cannot be taken for a measurement",
                    "say that it is text",
                    f"leave out {typed('--as-number', [name])}",
                )
            if name in self._codes and not summary.is_text and name not in self._as_number:
                raise self._judge.codes(name, self._codes[name])

    def _learned(self, summary: ColumnSummary) -> tuple[InputColumn, Array, Array]:
        """What becomes of a column, and the means and deviations of the columns that it becomes.

        Deviations are 1 where `StandardScaler` takes them to be: in columns of equal values, and
        where they are no more than rounding. Infinite ones say that squares are too large.
        """
        fill, n = summary.fill(), summary.n_rows
        if not summary.is_text:
            column = InputColumn(summary.name, fill=fill)
            mean, variance = summary.moments(fill)
            return column, *_scaling(np.array([mean]), np.array([variance]), n)
        found = Counter(summary.texts)
        rare = [text for text, count in found.items() if count < self._min_rows]
        if summary.n_missing:
            found[str(fill)] += summary.n_missing
        pool = _pool_name(found) if rare else ""
        for text in rare:
            found[pool] += found.pop(text)
        categories = (*sorted({*found} - {pool}), *([pool] if pool else []))
        if self._encode == "onehot":
            check_categories(summary.name, len(categories))
        fill = pool if fill in rare else fill
        column = InputColumn(summary.name, self._encode, categories, pool, fill)
        counts = np.array([found[text] for text in categories], dtype=np.float64)
        if self._encode == "codes":
            positions = np.arange(len(counts))
            means = np.array([counts @ positions / n])
            variances = np.array([counts @ (positions - means) ** 2 / n])
        else:
            means = counts / n
            variances = means * (1.0 - means)
        return column, *_scaling(means, variances, n)


def _pool_name(texts: Collection[str]) -> str:
    """A name for rare categories that none of the texts has."""
    name = POOL
    while name in texts:
        name = f"{name}*"
    return name


def _scaling(means: Array, variances: Array, n: int) -> tuple[Array, Array]:
    eps = np.finfo(float).eps
    with np.errstate(over="ignore", invalid="ignore"):
        rounding = np.isfinite(variances) & (
            variances <= n * eps * variances + (n * means * eps) ** 2
        )
    return means, np.where(rounding, 1.0, np.sqrt(variances))

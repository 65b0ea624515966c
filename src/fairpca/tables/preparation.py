"""Preparation: from a table with numbers and text to the columns of numbers that PCA works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.choices import ENCODINGS, IMPUTATIONS
from fairpca.groups import Codes, alike, encode_column
from fairpca.tables.column_checks import (
    CellKinds,
    ColumnChecker,
    ColumnSummary,
    Places,
    check_categories,
    classify_cell,
    id_error,
)
from fairpca.tables.columns import (
    MISSING_WORDS,
    MOST_NAMES,
    TableError,
    column_values,
    encode_arrow,
    encoded_text,
    meant,
    numbers,
    quoted,
    require_columns,
    table_columns,
    typed,
)
from fairpca.validation import check_choice

KINDS = ("number", "onehot", "codes")
"""What a column of the table can become."""

POOL = "other (rare)"
"""What the categories with few rows are together."""


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
    pool : str
        The last of the categories, if it is what rare ones are together: their own names are not
        kept, so that any other text belongs to it. Empty without.
    fill : float, str or None
        What a missing value becomes; None if it is refused.
    """

    name: str
    kind: str = "number"
    categories: tuple[str, ...] = ()
    pool: str = ""
    fill: float | str | None = None

    @property
    def is_consistent(self) -> bool:
        """Whether pool and fill go with the categories, as they may not in a damaged file."""
        if self.kind == "number":
            return not self.pool and not isinstance(self.fill, str)
        pooled = not self.pool or self.categories[-1:] == (self.pool,)
        return pooled and (self.fill is None or self.fill in self.categories)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the columns that it becomes."""
        if self.kind == "onehot":
            return tuple(f"{self.name}={category}" for category in self.categories)
        return (self.name,)


@dataclass
class Tally:
    """How many values of which columns were missing, filled in, or of unknown categories."""

    missing: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    def clear(self) -> None:
        """Begin anew, as the rows will pass by again."""
        for counts in (self.missing, self.filled, self.unknown):
            counts.clear()


def missing_error(counts: Mapping[str, int]) -> TableError:
    """What is said of columns with so many values that are missing."""
    shown = [f"{quoted([name])} ({count:,})" for name, count in counts.items()]
    more = f" and {len(shown) - MOST_NAMES} more columns" if len(shown) > MOST_NAMES else ""
    return TableError(
        f"Values are missing or infinite in {', '.join(shown[:MOST_NAMES])}{more}",
        "fill them in, or leave out those rows or columns",
        f"fill them in with --impute {'|'.join(IMPUTATIONS)}, leave out those rows with "
        f"--drop-missing, or those columns with {typed('--drop', [*counts][:MOST_NAMES])}",
    )


def encode_into(
    encoded: Array, source: Any, column: InputColumn, tally: Tally, unknown: str
) -> None:
    """Write the values of a column into the columns of numbers that it becomes, which are zero."""
    if column.kind == "number":
        found = encoded_text(source, column.name)
        if found is not None:
            raise _text_error(column.name, found[0])
        encoded[:, 0] = numbers(source)
        bad = ~np.isfinite(encoded[:, 0])
    else:
        codes = _positions(source, column, tally, unknown)
        bad = codes == -1
        if column.kind == "codes":
            encoded[:, 0] = codes
        else:
            rows = np.flatnonzero(codes >= 0)
            encoded[rows, codes[rows]] = 1.0
    if bad.any():
        counts = tally.missing if column.fill is None else tally.filled
        counts[column.name] += int(np.count_nonzero(bad))
        if column.fill is not None:
            _fill(encoded, bad, column)


def _fill(encoded: Array, bad: Any, column: InputColumn) -> None:
    """Write what missing values become."""
    if column.kind == "number":
        encoded[bad, 0] = float(column.fill or 0.0)
        return
    place = column.categories.index(str(column.fill))
    if column.kind == "codes":
        encoded[bad, 0] = place
    else:
        encoded[bad, place] = 1.0


def _text_error(name: str, labels: Sequence[Any]) -> TableError:
    odd = [str(label) for label in labels if classify_cell(str(label)) != "number"]
    such = f", such as {quoted(odd[:1])}" if odd else ""
    return TableError(
        f"Column {quoted([name])} holds text where the model needs numbers{such}",
        "correct it, or say how the table is written",
        "correct it, or say how the table is written with --missing-values or --decimal",
    )


def _positions(source: Any, column: InputColumn, tally: Tally, unknown: str) -> Codes:
    """The position of each row's category, -1 where it is missing, -2 where it is to be ignored."""
    encode = encode_arrow if hasattr(source, "dictionary_encode") else encode_column
    labels, codes = encode(source)
    place = {category: i for i, category in enumerate(column.categories)}
    # Text such as "2" that is alone in a new table may have been read as a number.
    texts = [
        str(int(label) if isinstance(label, float) and label.is_integer() else label)
        for label in labels
    ]
    new = [text for text in texts if text not in place]
    ignored = unknown == "ignore" and column.kind == "onehot"
    if new and not column.pool and not ignored:
        raise TableError(
            f"Column {quoted([column.name])} has values that did not occur at the fit: "
            f"{quoted(new)}",
            "correct them, or leave out those rows",
            "correct them, leave out those rows, or take them for none of the categories with "
            "--unknown-categories ignore"
            if column.kind == "onehot"
            else None,
        )
    other = place[column.pool] if column.pool else -2
    positions = np.array([*(place.get(text, other) for text in texts), -1], dtype=np.int64)[codes]
    if new:
        odd = np.array([*(text not in place for text in texts), False])[codes]
        tally.unknown[column.name] += int(np.count_nonzero(odd))
    return positions


_MOST_ALIKE = 2
"""How many texts with spellings that differ in case or spaces are named."""


@dataclass(frozen=True)
class ColumnOutcome:
    """A column of the table as it was read, and what became of it.

    Attributes
    ----------
    name : str
        Its name in the table.
    kind : {"number", "onehot", "codes", "sensitive", "left out"}
        What it became; "sensitive" columns make the groups and do not enter.
    n_columns : int
        How many columns of numbers it became; 0 if it does not enter.
    n_missing : int
        How many of its values are missing, or infinite; they have been filled in.
    note : str
        What a person should know of it, in a few words; empty if there is nothing. Several notes
        have semicolons between them: "constant", "3 rare categories as 'other (rare)'", "2 missing
        values became 1.5", "4 values of unknown categories".
    """

    name: str
    kind: str
    n_columns: int = 0
    n_missing: int = 0
    note: str = ""


def outcome_of(column: InputColumn, n_missing: int = 0, *notes: str) -> ColumnOutcome:
    """What became of a column that enters."""
    said = [note for note in notes if note]
    if n_missing:
        shown = f"{column.fill:.6g}" if isinstance(column.fill, float) else repr(column.fill)
        said.append(f"{n_missing:,} missing value{'s' * (n_missing > 1)} became {shown}")
    n_columns = len(column.output_names)
    return ColumnOutcome(column.name, column.kind, n_columns, n_missing, "; ".join(said))


def notes_on(texts: Iterable[str], kept: Collection[str], what: str = "category") -> list[str]:
    """What a person should know of the texts of a column that may not be meant as they are.

    Parameters
    ----------
    texts : iterable of str
        The different texts.
    kept : collection of str
        Those that may be named; of others only what differs from these in case or spaces is.
    what : {"category", "group"}, default="category"
        What each of them is.
    """
    notes = [
        f"{text!r} is a {what}, not a missing value (in CSV files, "
        f"{typed('--missing-values', [text])} makes it one)"
        for text in MISSING_WORDS
        if text in kept
    ]
    same = [found for found in alike(texts) if not {*kept}.isdisjoint(found)]
    if same:
        named = [" and ".join(map(repr, found)) for found in same[:_MOST_ALIKE]]
        more = [f"{len(same) - _MOST_ALIKE} more"] if len(same) > _MOST_ALIKE else []
        notes.append(f"{', '.join([*named, *more])} differ only in case or spaces")
    return notes


def with_label_notes(
    outcomes: Sequence[ColumnOutcome], labels: Mapping[str, Collection[str]]
) -> tuple[ColumnOutcome, ...]:
    """The same, with notes on the labels of sensitive columns that make groups alone."""
    return tuple(
        replace(
            outcome, note="; ".join(notes_on(labels[outcome.name], labels[outcome.name], "group"))
        )
        if outcome.kind == "sensitive" and outcome.name in labels
        else outcome
        for outcome in outcomes
    )


def left_out(ignored: Sequence[str], sensitive: Sequence[str]) -> tuple[ColumnOutcome, ...]:
    """What became of columns that do not enter."""
    return tuple(
        ColumnOutcome(name, "sensitive" if name in sensitive else "left out") for name in ignored
    )


def outcomes_of(
    columns: Sequence[InputColumn],
    ignored: Sequence[str],
    sensitive: Sequence[str],
    tally: Tally | None = None,
) -> tuple[ColumnOutcome, ...]:
    """What became of each column with a preparation that was learned before."""
    counts = tally or Tally()
    entering = [
        outcome_of(column, counts.filled[column.name], _unknown(column, counts.unknown))
        for column in columns
    ]
    return (*entering, *left_out(ignored, sensitive))


def _unknown(column: InputColumn, counts: Mapping[str, int]) -> str:
    n = counts.get(column.name, 0)
    if not n:
        return ""
    became = repr(column.pool) if column.pool else "none of the categories"
    return f"{n:,} value{'s' * (n > 1)} not known from the fit became {became}"


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
            Columns that are not checked (`fairpca.tables.column_checks`): those of text with
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
        self._checker, self._codes = ColumnChecker(text, min_rows, places), codes or {}
        self._summaries = {
            name: ColumnSummary(name, impute, min_rows, CellKinds(decimal)) for name in self.used
        }

    def see(self, batch: Any) -> None:
        """Take in a batch of rows."""
        for name, summary in self._summaries.items():
            summary.see(column_values(batch, name))

    def preparation(self) -> Preparation:
        """The preparation for the rows that have been seen, or ValueError if there is none."""
        self._check_columns()
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

    def _check_columns(self) -> None:
        """Raise ValueError if a column cannot be meant as it is, or lacks values."""
        summaries = self._summaries.values()
        for summary in summaries:
            if summary.is_text:
                self._checker.text(summary.name, summary.kinds, summary.texts)
        self._check_numbers()
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

    def _check_numbers(self) -> None:
        """Refuse codes, and text that is said to be a measurement."""
        for name, summary in self._summaries.items():
            if summary.is_text and name in self._as_number:
                raise TableError(
                    f"Column {quoted([name])} holds text, which cannot be taken for a measurement",
                    "say that it is text",
                    f"leave out {typed('--as-number', [name])}",
                )
            if name in self._codes and not summary.is_text and name not in self._as_number:
                raise self._checker.codes(name, self._codes[name])

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

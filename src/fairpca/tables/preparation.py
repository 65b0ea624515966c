"""Preparation: from a table with numbers and text to the columns of numbers that PCA works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairpca._linalg.types import Array
from fairpca.choices import STANDARDIZATIONS
from fairpca.exceptions import warn_user
from fairpca.groups import alike, encode_column
from fairpca.tables.column_checks import MOST_CATEGORIES, ColumnSummary, Places, classify_cell
from fairpca.tables.columns import (
    MISSING_WORDS,
    TableError,
    encode_arrow,
    encoded_text,
    meant,
    numbers,
    quoted,
    refuse,
    require_columns,
    table_columns,
    typed,
)
from fairpca.text import joined
from fairpca.validation import check_choice, import_pandas

Tally = Counter[tuple[str, str]]
"""How many values were "missing", "filled" in or "unknown", by that word and the column's name."""

KINDS = ("number", "onehot")
"""What a column of the table can become."""

POOL = "other (rare)"
"""What the categories with few rows are together."""

MOSTLY_MISSING = 0.5
"""A column that lacks a larger share of its values is warned of where these are filled in."""

_AT_ONCE = 2**22
"""How many numbers are prepared at a time: scikit-learn's transformers copy what they are given."""


@dataclass(frozen=True)
class InputColumn:
    """A column of the table, and what becomes of it.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "onehot"}
        "number": it is taken as it is. "onehot": a 0/1 column for each category.
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

    def __post_init__(self) -> None:
        is_number, fill = self.kind == "number", self.fill
        if self.kind not in KINDS or is_number == bool(self.categories):
            raise ValueError(f"A column of the kind {self.kind!r} has other categories.")
        if self.pool and self.categories[-1:] != (self.pool,):
            raise ValueError(f"The pool {self.pool!r} is not the last category.")
        if fill is not None and (
            isinstance(fill, str) if is_number else fill not in self.categories
        ):
            raise ValueError(f"{fill!r} is none of the column's values.")

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the columns that it becomes."""
        return tuple(f"{self.name}={category}" for category in self.categories) or (self.name,)

    def values(self, source: Any, tally: Tally, unknown: str) -> Any:
        """The values of a column of a table: numbers with NaN, or known texts with None."""
        if self.kind != "number":
            return self._texts(source, tally, unknown)
        found = encoded_text(source, self.name)
        if found is not None:
            odd = [str(text) for text in found[0] if classify_cell(str(text)) != "number"]
            such = f", such as {quoted(odd[:1])}" if odd else ""
            raise TableError(
                f"Column {quoted([self.name])} holds text where the model needs numbers{such}",
                "correct it, or say how the table is written",
                "--missing-values and --decimal do",
            )
        values = numbers(source)
        finite = np.isfinite(values)
        if not finite.all():
            values = np.where(finite, values, np.nan)
            tally[self.when_missing] += int(np.count_nonzero(~finite))
        return values

    @property
    def when_missing(self) -> tuple[str, str]:
        """Under what missing values are counted."""
        return "missing" if self.fill is None else "filled", self.name

    def _texts(self, source: Any, tally: Tally, unknown: str) -> Any:
        encode = encode_arrow if hasattr(source, "dictionary_encode") else encode_column
        labels, codes = encode(source)
        # Text such as "2" that is alone in a new table may have been read as a number.
        texts = [
            str(int(label) if isinstance(label, float) and label.is_integer() else label)
            for label in labels
        ]
        known = {*self.categories}
        new = [text for text in texts if text not in known]
        if new and not self.pool and unknown == "error":
            raise TableError(
                f"Column {quoted([self.name])} has values that did not occur at the fit: "
                f"{quoted(new)}",
                "correct them, or leave out those rows",
                unknown_categories="ignore",
            )
        counts = np.bincount(codes + 1, minlength=len(texts) + 1).tolist()
        if counts[0]:
            tally[self.when_missing] += counts[0]
        for text, count in zip(texts, counts[1:], strict=True):
            if text not in known:
                tally["unknown", self.name] += count
        other = self.pool or "\0"  # which no category is
        values = [*(text if text in known else other for text in texts), None]
        return np.array(values, dtype=object)[codes]


def missing_error(tally: Tally, is_new: bool = False) -> list[TableError]:
    """What is said of missing values, with the columns and how many, if there are any.

    In a new table they can be filled in only where that was learned.
    """
    counts = {name: n for (what, name), n in tally.items() if what == "missing" and n}
    if not counts:
        return []
    shown = [f"{quoted([name])} ({count:,})" for name, count in counts.items()]
    problem = f"Values are missing or infinite in {joined(shown)}"
    remedy = "fill them in, or leave out those rows or columns"
    if is_new:
        return [TableError(problem, remedy, drop_missing=True)]
    instead = "--drop-missing leaves out the rows, and --drop a column"
    return [TableError(problem, remedy, instead, impute=True)]


@dataclass(frozen=True)
class ColumnOutcome:
    """A column of the table as it was read, and what became of it.

    Attributes
    ----------
    name : str
        Its name in the table.
    kind : {"number", "onehot", "sensitive", "left out"}
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
        named = [" and ".join(map(repr, found)) for found in same]
        notes.append(f"{joined(named)} differ only in case or spaces")
    return notes


@dataclass(frozen=True, eq=False)
class Preparation:
    """Which columns of a table enter, how text is encoded, and how columns are scaled.

    It is learned from one table and applied to others, which need the same columns, in any order.
    A table is a data frame of pandas or Polars, a dictionary of columns, or an Arrow table or
    record batch. What is learned is the parameters of a pipeline of scikit-learn, `transformer`;
    before it is asked, each column is checked.

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
    array([[0., 0., 1.]])
    >>> [type(step).__name__ for step in preparation.transformer]
    ['ColumnTransformer', 'StandardScaler']
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
        **options : dict
            Those of `PreparationLearner`, by name.

        Returns
        -------
        Preparation
        """
        learner = PreparationLearner([*table_columns(table)], **options)
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

    @cached_property
    def transformer(self) -> Pipeline:
        """The pipeline that takes a data frame of pandas with the columns, once they are checked.

        A `ColumnTransformer` fills in and encodes neighbours of which the same becomes together,
        and a `StandardScaler` is last. Categories, means and scales are those that were learned,
        so that the pipeline is fitted to one row: that of what missing values become.
        """
        parts: list[Any] = []
        for (kind, fills), similar in groupby(
            self.columns, lambda column: (column.kind, column.fill is not None)
        ):
            some, steps = [*similar], []
            if fills:
                missing = np.nan if kind == "number" else None
                steps.append(SimpleImputer(missing_values=missing, strategy="most_frequent"))
            categories = [np.array(column.categories, dtype=object) for column in some]
            if kind == "onehot":
                steps.append(OneHotEncoder(categories=categories, handle_unknown="ignore"))
            part = make_pipeline(*steps) if steps else "passthrough"
            parts.append((str(len(parts)), part, [column.name for column in some]))
        encode = ColumnTransformer(parts, sparse_threshold=0.0)
        pipeline = make_pipeline(encode, StandardScaler()).set_output(transform="default")
        examples = [
            [(*column.categories, 0.0)[0] if column.fill is None else column.fill]
            for column in self.columns
        ]
        scaler = pipeline.fit(self._frame(examples))[-1]
        scaler.mean_, scaler.scale_, scaler.var_ = self.means, self.scales, self.scales**2
        return pipeline

    def _frame(self, values: Iterable[Any]) -> Any:
        """A data frame of the columns, which are not copied."""
        pandas = import_pandas()
        parts = {
            column.name: part if column.kind == "number" else pandas.Series(part, dtype=object)
            for column, part in zip(self.columns, values, strict=True)
        }
        return pandas.DataFrame(parts, copy=False)

    def apply(self, table: Any, tally: Tally | None = None, unknown: str = "error") -> Array:
        """Encode and scale the columns of a table.

        Parameters
        ----------
        table : data frame, dict of columns, or Arrow table
            With all of `columns`, in any order. The `ignored` ones may be there; others not, since
            nothing is known of them: they may be misspelt, or of another table.
        tally : Tally, default=None
            Counts what is missing, filled in or unknown. Without one, missing values are refused
            unless it was learned what they become.
        unknown : {"error", "ignore"}, default="error"
            Whether unknown categories of 0/1 columns without a pool are refused, or 0 in all.

        Returns
        -------
        array of shape (n_rows, n_outputs)
        """
        counts = Tally() if tally is None else tally
        sources = table_columns(table)
        self.check_names(sources)
        lengths = {len(sources[column.name]) for column in self.columns}
        if len(lengths) > 1:
            raise ValueError(f"Columns have different numbers of rows: {sorted(lengths)}.")
        frame = self._frame(
            column.values(sources[column.name], counts, unknown) for column in self.columns
        )
        if tally is None:
            refuse(missing_error(counts))
        prepared = np.empty((len(frame), len(self.means)))
        step = max(_AT_ONCE // len(self.means), 1)
        for start in range(0, len(frame), step):
            rows = slice(start, start + step)
            prepared[rows] = self.transformer.transform(frame.iloc[rows])
        return prepared

    def undo_scaling(self, prepared: Array) -> Array:
        """The encoded columns in their own units again."""
        restored: Array = prepared * self.scales + self.means
        return restored

    def check_names(self, names: Collection[str]) -> None:
        """Raise ValueError unless a table with these columns can be prepared."""
        wanted, there = {column.name for column in self.columns}, {*names}
        missing = [column.name for column in self.columns if column.name not in there]
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
                drop=tuple(unknown),
            )

    def outcomes(
        self, tally: Tally, notes: Mapping[str, Sequence[str]]
    ) -> tuple[ColumnOutcome, ...]:
        """What became of each column of a table, by what was counted and noted of it."""
        found = []
        for column in self.columns:
            n_missing, n_unknown = tally["filled", column.name], tally["unknown", column.name]
            said = [*notes.get(column.name, ())]
            if n_unknown and column.name not in notes:  # else the rare ones of the fit
                became = repr(column.pool) if column.pool else "none of the categories"
                values = f"{n_unknown:,} value{'s' * (n_unknown > 1)}"
                said.append(f"{values} not known from the fit became {became}")
            if n_missing:
                fill = f"{column.fill:.6g}" if isinstance(column.fill, float) else repr(column.fill)
                said.append(f"{n_missing:,} missing value{'s' * (n_missing > 1)} became {fill}")
            n_columns = len(column.output_names)
            found.append(
                ColumnOutcome(column.name, column.kind, n_columns, n_missing, "; ".join(said))
            )
        for name in self.ignored:
            kind = "sensitive" if name in self.sensitive else "left out"
            found.append(ColumnOutcome(name, kind, note="; ".join(notes.get(name, ()))))
        return tuple(found)


@dataclass
class PreparationLearner:
    """Learns a `Preparation` from a table in one pass over its batches.

    Attributes
    ----------
    names : sequence of str
        The names of the table's columns.
    sensitive : sequence of str, default=()
        The columns that make the groups; they do not enter.
    drop : sequence of str, default=()
        Further columns that do not enter, such as a target.
    standardize : {"numbers", "all", "none"}, default="numbers"
        Which columns are brought to mean 0 and variance 1 (constant ones to 0): all, or those that
        are not 0/1 columns, which stay as they are.
    impute : bool, default=False
        Whether missing and infinite numbers become the mean, here and in other tables, and missing
        text the most frequent one, or are refused.
    min_rows : int, default=1
        Categories with fewer rows become one, whose name alone is kept; and what is filled in
        is told by at least this number of rows.
    as_text, as_number : sequence of str, default=()
        Columns that are not checked (`fairpca.tables.column_checks`): those of text with
        numbers or dates that are names of categories, and those of numbers that only seem to
        be keys or weights.
    decimal : {".", ","}, default="."
        The decimal point in text that may be numbers.
    places : callable, default=None
        Says where cells stand in a file, for messages.
    codes : mapping, default=None
        Columns of numbers that look like codes, with such a number of each.
    used : list of str
        The columns that enter, which each batch needs.
    """

    names: Sequence[str]
    sensitive: Sequence[str] = ()
    drop: Sequence[str] = ()
    standardize: str = "numbers"
    impute: bool = False
    min_rows: int = 1
    as_text: Sequence[str] = ()
    as_number: Sequence[str] = ()
    decimal: str = "."
    places: Places | None = None
    codes: Mapping[str, str] | None = None
    used: list[str] = field(init=False)

    def __post_init__(self) -> None:
        check_choice("standardize", self.standardize, STANDARDIZATIONS)
        unused = [*self.sensitive, *self.drop]
        require_columns(self.names, [*unused, *self.as_text, *self.as_number])
        self.used = [name for name in self.names if name not in unused]
        if not self.used:
            raise ValueError("No columns are left to reduce: all are sensitive or left out.")
        how = self.impute, self.min_rows, self.decimal, self.places
        self._summaries = {name: ColumnSummary(name, *how) for name in self.used}

    def see(self, batch: Any) -> None:
        """Take in a batch of rows; all columns that cannot be read are refused in one error."""
        columns, errors = table_columns(batch), []
        for name, summary in self._summaries.items():
            try:
                summary.see(columns[name])
            except TableError as error:
                errors.append(error)
        refuse(errors)

    def preparation(self) -> Preparation:
        """The preparation for the rows that have been seen, or TableError if there is none."""
        summaries, codes = [*self._summaries.values()], self.codes or {}
        errors = [
            summary.refusal(name in self.as_text, name in self.as_number, codes.get(name))
            for name, summary in self._summaries.items()
        ]
        found = [error for error in errors if error is not None]
        refused = {name for error in found for name in error.fix.get("drop", ())}
        left = [summary for summary in summaries if summary.name not in refused]
        missing = Tally({("missing", summary.name): summary.n_missing for summary in left})
        refuse([*found, *([] if self.impute else missing_error(missing))])
        learned = [self._learned(summary) for summary in summaries]
        columns, means, variances = zip(*learned, strict=True)
        mean, variance = np.concatenate(means), np.concatenate(variances)
        owners = np.array([c.name for c in columns for _ in c.output_names], dtype=object)
        huge = tuple(dict.fromkeys(owners[~np.isfinite(variance)]))
        if huge:
            raise TableError(
                f"Values are too large to be squared in {quoted(huge)}",
                "divide them by a large number, or leave them out",
                drop=huge,
            )
        empty = [s for s in summaries if s.n_missing > MOSTLY_MISSING * s.n_rows]
        if empty:
            shares = [f"{quoted([s.name])} ({100 * s.n_missing / s.n_rows:.0f} %)" for s in empty]
            warn_user(
                f"Most values are missing, and filled in, in {joined(shares)}: a column that is "
                "mostly filled in describes few rows, so consider leaving it out."
            )
        # As `StandardScaler`, which leaves columns alone whose values differ by rounding.
        n, eps = summaries[0].n_rows, np.finfo(float).eps
        with np.errstate(over="ignore"):
            rounding = variance <= n * eps * variance + (n * mean * eps) ** 2
        scale = np.where(rounding, 1.0, np.sqrt(variance))
        if self.standardize == "none":
            mean, scale = np.zeros_like(mean), np.ones_like(scale)
        if self.standardize == "numbers":
            binary = {s.name for s in summaries if s.is_binary}
            binary |= {column.name for column in columns if column.kind == "onehot"}
            as_they_are = np.isin(owners, [*binary])
            mean[as_they_are], scale[as_they_are] = 0.0, 1.0
        entering = {*self.used}
        ignored = tuple(name for name in self.names if name not in entering)
        return Preparation(columns, mean, scale, ignored, tuple(self.sensitive))

    def notes(self, preparation: Preparation) -> dict[str, list[str]]:
        """What a person should know of each column that enters, by what has been seen of it."""
        found = {}
        for column in preparation.columns:
            summary = self._summaries[column.name]
            texts = summary.texts or Counter[str]()
            notes = [] if summary.is_text else summary.numbers_note()
            if len(column.categories) == 1:
                notes.append("constant")
            if column.pool:
                n = len(texts) - len(column.categories) + 1
                notes.append(f"{n:,} rare categor{'ies' if n > 1 else 'y'} as {column.pool!r}")
            notes += notes_on(texts, column.categories)
            found[column.name] = notes
        return found

    def _learned(self, summary: ColumnSummary) -> tuple[InputColumn, Array, Array]:
        """What becomes of a column, and the means and variances of the columns that it becomes."""
        fill, n = summary.fill(), summary.n_rows
        if not summary.is_text:
            # Means in the place of missing values add nothing to the squares.
            variance = 0.0 if summary.low == summary.high else summary.squares / n
            column = InputColumn(summary.name, fill=fill)
            return column, np.array([summary.center]), np.array([variance])
        found = Counter(summary.texts)
        rare = [text for text, count in found.items() if count < self.min_rows]
        if summary.n_missing:
            found[str(fill)] += summary.n_missing
        pool = POOL if rare else ""
        while pool and pool in found:
            pool += "*"
        for text in rare:
            found[pool] += found.pop(text)
        pools = [pool] if pool else []
        categories = (*sorted({*found}.difference(pools)), *pools)
        if len(categories) > MOST_CATEGORIES:
            raise TableError(
                f"Column {quoted([summary.name])} has {len(categories):,} different texts, too "
                "many for a column each",
                "put them into fewer categories, or leave the column out",
                drop=(summary.name,),
            )
        fill = pool if fill in rare else fill
        column = InputColumn(summary.name, "onehot", categories, pool, fill)
        shares = np.array([found[text] for text in categories]) / n
        return column, shares, shares * (1.0 - shares)

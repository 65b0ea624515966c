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
from fairpca.tables.column_checks import (
    MOST_CATEGORIES,
    ColumnRules,
    ColumnSummary,
    classify_cell,
)
from fairpca.tables.columns import (
    MISSING_WORDS,
    TableError,
    collecting,
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
    categories : tuple of str
        The texts that occurred at the fit, sorted, each of which becomes a 0/1 column; empty for a
        column of numbers, which are taken as they are.
    pool : str
        The last of the categories, if it is what rare ones are together: their own names are not
        kept, so that any other text belongs to it. Empty without.
    fill : float, str or None
        What a missing value becomes; None if it is refused.
    """

    name: str
    categories: tuple[str, ...] = ()
    pool: str = ""
    fill: float | str | None = None

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the columns that it becomes."""
        return tuple(f"{self.name}={category}" for category in self.categories) or (self.name,)

    def values(self, source: Any, tally: Tally, unknown: str) -> Any:
        """The values of a column of a table: numbers with NaN, or known texts with None."""
        if self.categories:
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
    means: Array = field(repr=False)
    scales: Array = field(repr=False)
    ignored: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()

    @classmethod
    def learn(cls, table: Any, **options: Any) -> Preparation:
        """Learn categories, means and scales from a table.

        Parameters
        ----------
        table : data frame, dict of columns, or Arrow table
            Without missing values in the columns that enter.
        **options : dict
            Those of `fairpca.tables.column_checks.ColumnRules`, by name.

        Returns
        -------
        Preparation
        """
        learner = PreparationLearner([*table_columns(table)], ColumnRules(**options))
        learner.see(table)
        return learner.preparation()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns that come out; a category stands behind the name and "="."""
        return tuple(name for column in self.columns for name in column.output_names)

    @cached_property
    def transformer(self) -> Pipeline:
        """The pipeline that takes a data frame of pandas with the columns, once they are checked.

        A `ColumnTransformer` fills in and encodes neighbours of which the same becomes together,
        and a `StandardScaler` is last. Categories, means and scales are those that were learned,
        so that the pipeline is fitted to one row: that of what missing values become.
        """
        parts: list[Any] = []
        for (is_text, fills), similar in groupby(
            self.columns, lambda column: (bool(column.categories), column.fill is not None)
        ):
            some, steps = [*similar], []
            if fills:
                missing = None if is_text else np.nan
                steps.append(SimpleImputer(missing_values=missing, strategy="most_frequent"))
            if is_text:
                categories = [np.array(column.categories, dtype=object) for column in some]
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
            column.name: pandas.Series(part, dtype=object) if column.categories else part
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
            kind, n_columns = (
                "onehot" if column.categories else "number",
                len(column.categories) or 1,
            )
            found.append(ColumnOutcome(column.name, kind, n_columns, n_missing, "; ".join(said)))
        for name in self.ignored:
            kind = "sensitive" if name in self.sensitive else "left out"
            found.append(ColumnOutcome(name, kind, note="; ".join(notes.get(name, ()))))
        return tuple(found)


class PreparationLearner:
    """Learns a `Preparation` from a table in one pass over its batches.

    Parameters
    ----------
    names : sequence of str
        The names of the table's columns.
    rules : ColumnRules
        What is said of them.

    Attributes
    ----------
    used : list of str
        The columns that enter, which each batch needs.
    notes : dict
        Notes on each of them, once the preparation is learned.
    """

    def __init__(self, names: Sequence[str], rules: ColumnRules) -> None:
        check_choice("standardize", rules.standardize, STANDARDIZATIONS)
        unused = {*rules.sensitive, *rules.drop}
        require_columns(names, [*rules.sensitive, *rules.drop, *rules.as_text, *rules.as_number])
        self.used = [name for name in names if name not in unused]
        if not self.used:
            raise ValueError("No columns are left to reduce: all are sensitive or left out.")
        self._rules, self._ignored = rules, tuple(name for name in names if name in unused)
        self._summaries = [ColumnSummary(name, rules) for name in self.used]
        self.notes: dict[str, list[str]] = {}

    def see(self, batch: Any) -> None:
        """Take in a batch of rows; all columns that cannot be read are refused in one error."""
        columns, errors = table_columns(batch), list[TableError]()
        for summary in self._summaries:
            with collecting(errors):
                summary.see(columns[summary.name])
        refuse(errors)

    def preparation(self) -> Preparation:
        """The preparation for the rows that have been seen, or TableError if there is none."""
        rules, summaries = self._rules, self._summaries
        found = [error for error in (each.refusal() for each in summaries) if error is not None]
        refused = {name for error in found for name in error.fix.get("drop", ())}
        lacking = [s for s in summaries if s.n_missing and s.name not in refused]
        if lacking and not rules.impute:
            found += missing_error(Tally({("missing", s.name): s.n_missing for s in lacking}))
        refuse(found)
        learned = [(self._texts if s.is_text else self._numbers)(s) for s in summaries]
        columns, means, variances = zip(*learned, strict=True)
        mean, variance = np.concatenate(means), np.concatenate(variances)
        owners = np.repeat(np.arange(len(columns)), [len(part) for part in means])
        huge = tuple(columns[i].name for i in np.unique(owners[~np.isfinite(variance)]))
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
        is_binary = [s.is_text or (s.whole and (s.low, s.high) == (0.0, 1.0)) for s in summaries]
        as_they_are: dict[str, Any] = {
            "none": True,
            "numbers": np.array(is_binary)[owners],
            "all": False,
        }
        stay = as_they_are[rules.standardize]
        mean, scale = np.where(stay, 0.0, mean), np.where(stay, 1.0, scale)
        return Preparation(columns, mean, scale, self._ignored, tuple(rules.sensitive))

    def _numbers(self, summary: ColumnSummary) -> tuple[InputColumn, Array, Array]:
        """How a column of numbers is used, with its mean and variance."""
        self.notes[summary.name] = summary.note_on_numbers()
        # The mean of equal numbers is not off by rounding; means that are filled in add nothing to
        # the squares, and are of enough rows, so that they are not the value of one person.
        is_constant = summary.low == summary.high
        mean = summary.low if is_constant else float(summary.mean)
        variance = 0.0 if is_constant else summary.squares / summary.n_rows
        fills = self._rules.impute and summary.n_rows - summary.n_missing >= self._rules.min_rows
        column = InputColumn(summary.name, fill=mean if fills else None)
        return column, np.array([mean]), np.array([variance])

    def _texts(self, summary: ColumnSummary) -> tuple[InputColumn, Array, Array]:
        """How a column of text is used, with the means and variances of its 0/1 columns."""
        found, fill = Counter(summary.texts), None
        rare = [text for text, count in found.items() if count < self._rules.min_rows]
        if self._rules.impute:
            fill = min(found, key=lambda text: (-found[text], text))
            found[fill] += summary.n_missing
        pool = POOL if rare else ""
        while pool and pool in found:
            pool += "*"
        for text in rare:
            found[pool] += found.pop(text)
        categories = (*sorted({*found} - {pool}), *([pool] if pool else []))
        if len(categories) > MOST_CATEGORIES:
            raise TableError(
                f"Column {quoted([summary.name])} has {len(categories):,} different texts, too "
                "many for a column each",
                "put them into fewer categories, or leave the column out",
                drop=(summary.name,),
            )
        column = InputColumn(summary.name, categories, pool, pool if fill in rare else fill)
        notes = ["constant"] if len(categories) == 1 else []
        if pool:
            notes.append(f"{len(rare):,} rare categor{'ies' if len(rare) > 1 else 'y'} as {pool!r}")
        self.notes[summary.name] = notes + notes_on(summary.texts or (), categories)
        shares = np.array([found[text] for text in categories]) / summary.n_rows
        return column, shares, shares * (1.0 - shares)

"""What the words of a report are made from: the data, the measure, and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.dense import dense_blocks
from fairpca._linalg.device import diagonals
from fairpca._linalg.types import Array
from fairpca.certificate import rounded
from fairpca.choices import MIN_ROWS
from fairpca.data import GroupedData
from fairpca.folds import column_numbers, row_numbers
from fairpca.generalization.bootstrap import NO_VARIANCE, Intervals, difference_interval, few_rows
from fairpca.inspection.pareto_front import ParetoFront
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.report._names import harmless, in_quotes, number, percent, shown_names
from fairpca.tables.preparation import ColumnOutcome
from fairpca.text import MOST_ROWS, in_rows, joined

_MANY = 0.25
"""Share of repeated rows from which intervals are too narrow by more than a few per cent."""

_BY_CHANCE = 0.1
"""Copies that a row may have by chance for repeated rows to be worth a word: a table of a few
categories has the same row often, though each is another person."""

_ALONE = 0.1
"""Share of the different rows that one column alone may tell apart: of rows that are copies, any
column can be left out, whereas people who are alike by chance differ in their age, say."""


class Repeats(NamedTuple):
    """How many rows are in the data more than once.

    Attributes
    ----------
    rows : int
        Rows that have the same values as another one.
    different : int
        How many different rows there are.
    of : int
        How many rows there are.
    """

    rows: int
    different: int
    of: int


def repeats(grouped_data: GroupedData) -> Repeats | None:
    """Repeated rows, if there are many and chance does not explain them."""
    rows, chosen = grouped_data.rows, None
    if grouped_data.codes is not None:
        used = np.asarray(grouped_data.codes) >= 0
        used &= True if grouped_data.weights is None else np.asarray(grouped_data.weights) > 0.0
        chosen = None if used.all() else np.flatnonzero(used)
    numbers, first, counts = np.unique(
        row_numbers(rows, chosen), return_index=True, return_counts=True
    )
    n, repeated = int(counts.sum()), int(counts[counts > 1].sum())
    if repeated < _MANY * n:
        return None
    # Copies that a row would have if columns had nothing to do with each other. Columns of two
    # values do not count, as several of them may stand for one column of text.
    copies, sparse = float(n - 1), scipy.sparse.issparse(rows)
    rows = rows.tocsc() if sparse else rows
    for j in range(rows.shape[1]):
        column = rows[:, [j]].toarray()[:, 0] if sparse else rows[:, j]
        column = column if chosen is None else column[chosen]
        _, alike = np.unique(column, return_counts=True)
        if len(alike) > 2:
            copies *= float((alike * (alike - 1.0)).sum()) / (n * (n - 1.0))
        left = len(np.unique(numbers - column_numbers(column[first], j)))
        if left < (1.0 - _ALONE) * len(numbers):
            return None
    return Repeats(repeated, len(counts), n) if copies <= _BY_CHANCE else None


_NO_VARIANCE = 1e-20
"""Of the variance of all columns: a column with less does not vary but for rounding."""

_BECAME = {
    "number": "a number",
    "onehot": "text, as {} of 0 and 1",
    "sensitive": "makes the groups, is not reduced",
    "left out": "left out",
}


@dataclass(frozen=True, eq=False)
class DataFacts:
    """The data of a report.

    Attributes
    ----------
    name : str or None
        What the data set is called, as it is shown.
    attributes : list of str
        Names of the sensitive columns, as they are shown; empty where they have none.
    among : bool or None
        Whether one of them is among the columns that are reduced; None where that is not known.
    features : list of str
        Names of the columns of numbers, as they are shown: rare categories without their names.
    outcomes : list of ColumnOutcome
        What became of each column of the table, those that enter first.
    shares : array of shape (len(outcomes),)
        Share of all variance that each of them has.
    from_table : bool
        Whether what became of text is known, not only columns of numbers.
    left_out : dict
        How many rows are left out, by which they are: "with missing values", "without a label".
    repeated : Repeats or None
        Rows that are there more than once, if there are many.
    """

    name: str | None
    attributes: list[str]
    among: bool | None
    features: list[str]
    outcomes: list[ColumnOutcome]
    shares: Array
    from_table: bool
    left_out: dict[str, int]
    repeated: Repeats | None

    @property
    def quoted(self) -> str:
        """The data set in a sentence."""
        return "this data" if self.name is None else in_quotes(self.name)

    @property
    def grouped(self) -> str:
        """What the groups are made by, to follow a comma; empty where that has no name."""
        if not self.attributes:
            return ""
        return f"grouped by {' and '.join(map(in_quotes, self.attributes))}"

    def about(self) -> list[str]:
        """Which columns there are, how text was encoded, whether the attribute is one, and rows."""
        n, parts = len(self.features), []
        if self.from_table:
            numbers = sum(column.kind == "number" for column in self.outcomes)
            texts = [column.n_columns for column in self.outcomes if column.kind == "onehot"]
            parts = [f"{_columns(numbers)} of numbers"] if numbers else []
            if texts:
                new = f"{_columns(sum(texts))} of 0 and 1, one for each value"
                parts.append(f"{_columns(len(texts))} of text (as {new})")
            n = numbers + len(texts)
        entering = " and ".join(parts) or f"{_columns(n)} of numbers"
        said = [f"{entering} {'is' if n == 1 else 'are'} reduced."]
        if self.attributes:
            several = len(self.attributes) > 1
            names = " and ".join(map(in_quotes, self.attributes))
            are, itself = ("are", "are themselves") if several else ("is", "is itself")
            among = f"{itself} among the columns that are reduced."
            if not self.among:
                though = "though others may tell the groups apart."
                among = f"{are} not among the columns that are reduced, {though}"
            makes = "make" if several else "makes"
            said.append(f"{names}, which {makes} the groups, {among}")
        total = sum(self.left_out.values())
        verb = "is" if total == 1 else "are"
        if len(self.left_out) == 1:
            said.append(f"{in_rows(total)} {next(iter(self.left_out))} {verb} left out.")
        elif self.left_out:
            *others, last = [f"{count:,} {which}" for which, count in self.left_out.items()]
            said.append(f"{in_rows(total)} {verb} left out: {', '.join(others)} and {last}.")
        return said

    def sentences(self) -> list[str]:
        """The same, and what is missing, left out or constant."""
        said = self.about()
        missing = [column.n_missing for column in self.outcomes if column.n_missing]
        if missing:
            values = f"{sum(missing):,} missing value{'s' if sum(missing) > 1 else ''}"
            verb = "are" if sum(missing) > 1 else "is"
            said.append(f"{values} in {_columns(len(missing))} {verb} filled in.")
        elif self.from_table:
            rest = " in the other rows" if self.left_out else ""
            said.append(f"No values are missing{rest}.")
        out = [in_quotes(column.name) for column in self.outcomes if column.kind == "left out"]
        if out:
            said.append(f"Columns that are left out: {joined(out, 10)}.")
        still = [
            in_quotes(column.name)
            for column, share in zip(self.outcomes, self.shares, strict=True)
            if column.n_columns and share <= _NO_VARIANCE
        ]
        if still:
            verb = "has" if len(still) == 1 else "have"
            said.append(f"Without any variance, so nothing to lose, {verb}: {joined(still, 10)}.")
        return said

    def table(self) -> dict[str, Any]:
        """The columns one by one: those with something to know and the widest first."""
        noted = [bool(column.note or column.n_missing) for column in self.outcomes]
        order = np.lexsort((-self.shares, np.logical_not(noted)))
        if len(order) <= MOST_ROWS:
            order = np.arange(len(order))
        rows = []
        for j in order[:MOST_ROWS]:
            column = self.outcomes[j]
            note = column.note
            if column.n_columns and self.shares[j] <= _NO_VARIANCE:
                note = "; ".join(filter(None, [note, "does not vary"]))
            rows.append(
                {
                    "name": column.name,
                    "became": _BECAME[column.kind].format(_columns(column.n_columns)),
                    # Of columns that do not enter nobody has counted.
                    "missing": column.n_missing if self.from_table and column.n_columns else None,
                    "share": float(self.shares[j]) if column.n_columns else None,
                    "note": note,
                }
            )
        return {"columns": rows, "n_columns": len(order), "n_shown": len(rows)}


def describe(
    grouped_data: GroupedData,
    moments: GroupMoments,
    name: str | None,
    outcomes: Sequence[ColumnOutcome] | None,
    left_out: Mapping[str, int] | None = None,
) -> DataFacts:
    """Find out what there is to say about the data.

    Parameters
    ----------
    grouped_data : GroupedData
        The rows.
    moments : GroupMoments
        Those of the problem, with names.
    name : str or None
        What the data set is called.
    outcomes : sequence of ColumnOutcome, or None
        What became of the columns of a table, if that is known.
    left_out : mapping, default=None
        How many rows are left out, by which they are; None says what the moments know.
    """
    d = moments.n_features
    named = [str(each) for each in moments.feature_names or ()]
    named = named or [f"column {j}" for j in range(d)]
    entering = sum(column.n_columns for column in outcomes or ())
    from_table = outcomes is not None and entering == d
    found = (
        list(outcomes or ()) if from_table else [ColumnOutcome(each, "number", 1) for each in named]
    )
    rare = _rare(grouped_data.rows)
    attributes = list(moments.group_names or ())
    enters = [column.name for column in found if column.n_columns]
    among = any(  # itself, or what one of the usual encoders has made of it
        each == attribute or each.startswith((f"{attribute}=", f"{attribute}_"))
        for attribute in attributes
        for each in enters
    )
    source = np.repeat(np.arange(len(found)), [column.n_columns for column in found])
    heads = [
        found[j].name if from_table else named[i].partition("=")[0] for i, j in enumerate(source)
    ]
    # What a column of a table is called is no value of it.
    values = [not from_table or found[j].kind == "onehot" for j in source]
    hidden = [*named]
    for j in range(d):
        if rare[j] and values[j]:  # called by the column of the table, if that is another name
            alone = heads[j] == named[j]
            hidden[j] = f"(column {j}, a rare value)" if alone else f"{heads[j]}=(a rare value)"
    features = shown_names(hidden)
    shown = shown_names([column.name for column in found]) if from_table else features
    variances = diagonals(moments.scatter).sum(axis=0) + moments.weight @ moments.offsets**2
    total = float(variances.sum())
    counts = {"without a label": moments.n_dropped} if left_out is None else left_out
    shares = (
        np.bincount(source, variances, len(found)) / total if total > 0.0 else np.zeros(len(found))
    )
    return DataFacts(
        None if name is None else shown_names([name])[0],
        shown_names(attributes),
        among if attributes else None,
        features,
        [
            replace(column, name=text, note=harmless(column.note))
            for column, text in zip(found, shown, strict=True)
        ],
        shares,
        from_table,
        {harmless(which): count for which, count in counts.items() if count},
        repeats(grouped_data),
    )


def _rare(rows: Any) -> NDArray[np.bool_]:
    """Columns of two values, one of which few rows have."""
    if scipy.sparse.issparse(rows):
        filled = np.bincount(rows.indices, minlength=rows.shape[1])
        return np.asarray((filled > 0) & (filled < MIN_ROWS))
    n, d = rows.shape
    low, high = np.asarray(rows.min(axis=0)), np.asarray(rows.max(axis=0))
    at_low, at_high = np.zeros(d, dtype=np.int64), np.zeros(d, dtype=np.int64)
    for _, block in dense_blocks(rows):
        at_low += (block == low).sum(axis=0)
        at_high += (block == high).sum(axis=0)
    two = (low < high) & (at_low + at_high == n)
    return np.asarray(two & (np.minimum(at_low, at_high) < MIN_ROWS))


def _columns(count: int) -> str:
    return f"{count:,} column{'' if count == 1 else 's'}"


_AXES = {
    "own": "loss beyond what the group must lose, % of its variance",
    "all": "% of the group's variance that is lost",
    "none": "% of the group's variance that is kept",
}

_MEANINGS = {
    "own": "What a group loses beyond what it would lose on its own, because the reduction "
    "serves others too",
    "all": "The loss of a group",
    "none": "What the reduction keeps of a group: its variance minus its loss",
}


def amount(problem: Problem, value: float, group: int | None, *, up: bool | None = None) -> str:
    """An amount of the measure as per cent of a group's variance; without a group, as it is.

    It is rounded to one side where `up` says so.
    """
    size = 0.0 if abs(value) <= problem.negligible_spread else abs(value)
    if problem.goal.measured.relative:
        return percent(size, up=up)
    if group is not None:
        return percent(size / problem.traces[group] if size else 0.0, up=up)
    units = number(size if up is None else float(rounded(size, 4, up=up)))
    return f"{units} squared units"


class Facts:
    """What the words are made from.

    Parameters
    ----------
    front : ParetoFront
        What was found.
    groups : list of str
        Names as they are shown.
    data : DataFacts
        The data, with the names of its columns.
    intervals : Intervals or None
        Of the measures with ordinary PCA and at each point.
    significant : boolean array of shape (k,)
        Groups that differ significantly from random ones with ordinary PCA.
    use_pca : bool, default=False
        Whether held-out rows make no case for fair PCA, so that the front is ordinary PCA alone.

    Attributes
    ----------
    measure : Measure
        What fairness is judged on; `axis` and `meaning` are words for it, `verb` what a group does
        and `beyond` what makes a disparity of a loss.
    pca_measures : array of shape (k,)
        Measures with ordinary PCA; `pca_spread` is the largest difference between them, and
        `pca_is_fair` says that there is none, up to rounding.
    enough : boolean array of shape (k,)
        Groups that have the rows for a comparison, and any variance.
    worst, best : int
        The groups that are worst and best off with ordinary PCA, of those that have enough rows;
        what the worst one loses is not chance, if there is such a group.
    difference : pair of float, or None
        Interval of the difference between these two, if one is known.
    evidence : {"sure", "unsure", "few", "alike"}
        Whether the rows can tell who is worst off; "few" where there are not two groups of enough
        rows, and "alike" where all have the same.
    dimensions, cost : str
        How many dimensions there are, and what the last point costs.
    """

    def __init__(
        self,
        front: ParetoFront,
        groups: list[str],
        data: DataFacts,
        intervals: Intervals | None,
        significant: NDArray[np.bool_],
        use_pca: bool = False,
    ) -> None:
        self.front, self.groups, self.data = front, groups, data
        self.significant, self.use_pca = significant, use_pca
        self.problem = problem = front.problem
        self.measure = measure = problem.goal.measured
        self.axis = _AXES[measure.baseline]
        share = ", as a share of its variance" if measure.relative else ""
        self.meaning = f"{_MEANINGS[measure.baseline]}{share}"
        self.verb = "keeps" if measure.is_kept else "loses"
        self.beyond = " beyond what it must" if measure.is_disparity else ""
        self.amount = partial(amount, problem)
        self.pca_measures = problem.measures(problem.pca_basis)
        self.pca_spread = float(np.ptp(self.pca_measures))
        self.pca_is_fair = self.pca_spread <= problem.negligible_spread
        # A group without variance has nothing to lose, and is not the one to compare with.
        some = problem.traces > NO_VARIANCE * problem.traces.max()
        self.enough = some & (problem.moments.count >= few_rows(problem.n_components))
        # Who is said to lose more must not do so by chance; who loses less may.
        telling = self.enough & significant
        worst = next((x for x in (telling, self.enough, some) if x.any()), some | True)
        best = next((x for x in (self.enough, some) if x.any()), some | True)
        self.worst = int(np.where(worst, self.pca_measures, -np.inf).argmax())
        self.best = int(np.where(best, self.pca_measures, np.inf).argmin())
        self.difference = None
        if intervals is not None and self.worst != self.best:
            draws, quantiles = intervals.draws[0], intervals.quantiles
            found = difference_interval(self.pca_measures, draws, quantiles, self.worst, self.best)
            if measure.is_disparity:  # which neither group has below 0
                ends = intervals.high[0, [self.worst, self.best]]
                found = max(found[0], -float(ends[1])), min(found[1], float(ends[0]))
            self.difference = found if np.isfinite(found).all() else None
        self.evidence = "sure"
        if self.pca_is_fair:
            self.evidence = "alike"
        elif self.enough.sum() < 2:
            self.evidence = "few"
        elif (
            not telling[self.worst]
            or self.worst == self.best
            or (self.difference is not None and self.difference[0] <= 0.0)
        ):
            self.evidence = "unsure"
        r, extra = problem.n_components, percent(float(front.extra_loss[-1]))
        self.dimensions = f"{r} dimension{'s' if r > 1 else ''}"
        self.cost = f"{extra} more loss in total than ordinary PCA"

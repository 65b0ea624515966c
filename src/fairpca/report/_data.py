"""What a report says of the data: its columns, how text was encoded, and what is rare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.device import diagonals
from fairpca._linalg.types import Array
from fairpca.data import GroupedData
from fairpca.moments import GroupMoments
from fairpca.report._repeats import Repeats, repeats
from fairpca.report._text import and_more, harmless, in_quotes, percent, rows, shown_names
from fairpca.tables.outcomes import ColumnOutcome

_MOST_COLUMNS = 40
"""How many columns the overview lists; of others it gives the number."""

_NO_VARIANCE = 1e-20
"""Of the variance of all columns: a column with less does not vary but for rounding."""

_DOMINANT = 0.5
"""Share of all variance above which a column is said to dominate."""

_BLOCK_VALUES = 2**20
"""Numbers that are compared at once."""

_BECAME = {
    "number": "a number",
    "codes": "text, as the position of each value in sorted order",
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
    n_two_valued : int
        How many columns of numbers have two values only.
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
    n_two_valued: int
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
        return [self._what_enters(), *self._attribute(), *self._rows_left_out()]

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
            said.append(f"Columns that are left out: {and_more(out, 10)}.")
        still = [
            in_quotes(column.name)
            for column, share in zip(self.outcomes, self.shares, strict=True)
            if column.n_columns and share <= _NO_VARIANCE
        ]
        if still:
            verb = "has" if len(still) == 1 else "have"
            said.append(f"Without any variance, so nothing to lose, {verb}: {and_more(still, 10)}.")
        first = int(self.shares.argmax()) if len(self.shares) else 0
        if len(self.shares) > 1 and self.shares[first] > _DOMINANT:
            said.append(
                f"{in_quotes(self.outcomes[first].name)} dominates: it has "
                f"{percent(float(self.shares[first]))} of the variance of all columns together."
            )
        return said

    def table(self) -> dict[str, Any]:
        """The columns one by one: those with something to know and the widest first."""
        noted = [bool(column.note or column.n_missing) for column in self.outcomes]
        order = np.lexsort((-self.shares, np.logical_not(noted)))
        if len(order) <= _MOST_COLUMNS:
            order = np.arange(len(order))
        rows = []
        for j in order[:_MOST_COLUMNS]:
            column = self.outcomes[j]
            note = column.note
            if column.n_columns and self.shares[j] <= _NO_VARIANCE:
                note = "; ".join(filter(None, [note, "does not vary"]))
            rows.append(
                {
                    "name": column.name,
                    "became": _became(column),
                    # Of columns that do not enter nobody has counted.
                    "missing": column.n_missing if self.from_table and column.n_columns else None,
                    "share": float(self.shares[j]) if column.n_columns else None,
                    "note": note,
                }
            )
        return {"columns": rows, "n_columns": len(order), "n_shown": len(rows)}

    def _what_enters(self) -> str:
        n = len(self.features)
        if not self.from_table:
            two = f" ({self.n_two_valued} with two values only)" if self.n_two_valued else ""
            return (
                f"There are {_columns(n)} of numbers{two}; whether some stand for text, and how "
                "that was encoded, is not known to this page."
            )
        numbers = sum(column.kind == "number" for column in self.outcomes)
        parts = [f"{_columns(numbers)} of numbers"] if numbers else []
        for kind, made in (("onehot", "of 0 and 1, one for each value"), ("codes", "of codes")):
            texts = [column for column in self.outcomes if column.kind == kind]
            if texts:
                new = _columns(sum(column.n_columns for column in texts))
                parts.append(f"{_columns(len(texts))} of text (as {new} {made})")
        *others, last = parts
        said = f"{', '.join(others)} and {last}" if others else last
        return f"{said} {'are' if others or not said.startswith('1 column ') else 'is'} reduced."

    def _rows_left_out(self) -> list[str]:
        if not self.left_out:
            return []
        total = sum(self.left_out.values())
        verb = "is" if total == 1 else "are"
        *others, last = [f"{count:,} {which}" for which, count in self.left_out.items()]
        if not others:
            return [f"{rows(total)} {next(iter(self.left_out))} {verb} left out."]
        return [f"{rows(total)} {verb} left out: {', '.join(others)} and {last}."]

    def _attribute(self) -> list[str]:
        if not self.attributes:
            return [
                "What makes the groups has no name here, so this page cannot say whether it is "
                "itself among the columns."
            ]
        several = len(self.attributes) > 1
        names = " and ".join(map(in_quotes, self.attributes))
        start = f"{names}, which {'make' if several else 'makes'} the groups, "
        if self.among:
            itself = "are themselves" if several else "is itself"
            return [f"{start}{itself} among the columns that are reduced."]
        return [
            f"{start}{'are' if several else 'is'} not among the columns that are reduced, though "
            "others may tell the groups apart."
        ]


def describe(
    grouped_data: GroupedData,
    moments: GroupMoments,
    name: str | None,
    outcomes: Sequence[ColumnOutcome] | None,
    least_named: int,
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
    least_named : int
        Rows that a category needs for its name to be shown.
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
    rare, n_two_valued = _rare(grouped_data.rows, least_named)
    attributes = list(moments.group_names or ())
    enters = [column.name for column in found if column.n_columns]
    among = any(_stems_from(each, attribute) for attribute in attributes for each in enters)
    source = np.repeat(np.arange(len(found)), [column.n_columns for column in found])
    heads = [
        found[j].name if from_table else named[i].partition("=")[0] for i, j in enumerate(source)
    ]
    # What a column of a table is called is no value of it.
    values = [not from_table or found[j].kind == "onehot" for j in source]
    hidden = [
        _without_value(j, heads[j], named[j]) if rare[j] and values[j] else named[j]
        for j in range(d)
    ]
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
        n_two_valued,
        {harmless(which): count for which, count in counts.items() if count},
        repeats(grouped_data),
    )


def _rare(rows: Any, least_named: int) -> tuple[NDArray[np.bool_], int]:
    """Columns of two values, one of which few rows have; and how many columns have two."""
    if scipy.sparse.issparse(rows):
        filled = np.bincount(rows.indices, minlength=rows.shape[1])
        return (filled > 0) & (filled < least_named), 0
    n, d = rows.shape
    low, high = np.asarray(rows.min(axis=0)), np.asarray(rows.max(axis=0))
    at_low, at_high = np.zeros(d, dtype=np.int64), np.zeros(d, dtype=np.int64)
    step = max(1, _BLOCK_VALUES // d)
    for begin in range(0, n, step):
        block = np.asarray(rows[begin : begin + step])
        at_low += (block == low).sum(axis=0)
        at_high += (block == high).sum(axis=0)
    two = (low < high) & (at_low + at_high == n)
    return two & (np.minimum(at_low, at_high) < least_named), int(two.sum())


def _without_value(j: int, head: str, name: str) -> str:
    """What a rare column is called: by the column of the table, if that is not the name itself."""
    return f"(column {j}, a rare value)" if head == name else f"{head}=(a rare value)"


def _stems_from(feature: str, attribute: str) -> bool:
    """Whether a column is the attribute, or was made of it by one of the usual encoders."""
    return feature == attribute or feature.startswith((f"{attribute}=", f"{attribute}_"))


def _became(column: ColumnOutcome) -> str:
    if column.kind == "onehot":
        return f"text, as {_columns(column.n_columns)} of 0 and 1"
    return _BECAME.get(column.kind, column.kind)


def _columns(count: int) -> str:
    return f"{count:,} column{'' if count == 1 else 's'}"

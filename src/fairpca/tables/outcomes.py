"""What became of the columns of a table, for people and for JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fairpca.groups import alike
from fairpca.tables.columns import MISSING_WORDS
from fairpca.tables.encoding import InputColumn, Tally
from fairpca.tables.refusals import typed

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

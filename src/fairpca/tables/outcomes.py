"""What became of the columns of a table, for people and for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairpca.tables.encoding import InputColumn, Tally


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

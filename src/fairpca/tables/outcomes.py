"""What became of the columns of a table, for people and for JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairpca.tables.preparation import Preparation


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
        How many of its values are missing.
    note : str
        What a person should know of it, in a few words; empty if there is nothing.
    """

    name: str
    kind: str
    n_columns: int = 0
    n_missing: int = 0
    note: str = ""


def outcomes_of(preparation: Preparation) -> tuple[ColumnOutcome, ...]:
    """What became of each column that is known, those that enter first."""
    entering = [
        ColumnOutcome(column.name, column.kind, len(column.output_names))
        for column in preparation.columns
    ]
    others = [
        ColumnOutcome(name, "sensitive" if name in preparation.sensitive else "left out")
        for name in preparation.ignored
    ]
    return (*entering, *others)

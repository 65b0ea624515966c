"""Which rows of a table are kept, and what becomes of groups of a few rows.

The mean of a group of one row is that row: what is written about such a group tells about single
people. It is refused, put together with the other small groups, left out, or kept, as the user
chooses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow

from fairpca.groups import MISSING, check_number_of_groups
from fairpca.tables.columns import MOST_NAMES, TableError, encode_labels
from fairpca.text import group_name

if TYPE_CHECKING:  # which itself asks for what is here
    from fairpca.tables.reading import Table

POOLED = "other (small)"
"""What small groups are together."""

Label = tuple[Hashable, ...]
"""The values of the sensitive columns in a row."""


class GroupCounter:
    """Counts the rows of each group as the batches of a table pass by.

    Parameters
    ----------
    names : sequence of str
        The sensitive columns.
    missing_labels : {"error", "group", "drop"}
        Whether rows without a label are a group.
    """

    def __init__(self, names: Sequence[str], missing_labels: str) -> None:
        self._names, self._missing = tuple(names), missing_labels
        self._counts: Counter[Label] = Counter()

    def see(self, batch: Any) -> None:
        """Take in a batch of rows."""
        labels, inverse = _labels(batch, self._names)
        for label, count in zip(labels, np.bincount(inverse).tolist(), strict=True):
            if self._missing == "group" or None not in label:
                self._counts[label] += count
        check_number_of_groups(len(self._counts))

    def regrouping(self, choice: str, min_rows: int, grouping: str) -> Regrouping | None:
        """What becomes of the small groups, or None if there are none.

        Parameters
        ----------
        choice : {"error", "pool", "drop"}
            "error" raises TableError if there are any.
        min_rows : int
            Groups with fewer rows are small.
        grouping : {"intersections", "marginals", "both"}
            What several columns make groups of.
        """
        small, changes = self._small(min_rows, grouping)
        if not small or self._counts.total() < 2:  # of a single row something else is said
            return None
        shown = [f"{name!r} ({count:,})" for name, count in small.items()]
        more = f" and {len(shown) - MOST_NAMES} more" if len(shown) > MOST_NAMES else ""
        named = f"{', '.join(shown[:MOST_NAMES])}{more}"
        have = f"groups {named} have" if len(small) > 1 else f"group {named} has"
        n_rows = sum(self._counts[label] for label in changes)
        them, as_are = ("them", "they are") if len(small) > 1 else ("it", "it is")
        if choice == "error":
            ways = []
            if n_rows >= min_rows:
                ways.append("put small groups together with --small-groups pool, ")
            if n_rows < self._counts.total():
                ways.append(f"leave {them} out with --small-groups drop, ")
            raise TableError(
                f"The {have} fewer than {min_rows} rows, so that what is written of {them} would "
                "tell about single people",
                f"put small groups together or leave {them} out",
                f"{''.join(ways)}{'or ' if ways else ''}keep {them} as {as_are} with "
                "--small-groups keep",
            )
        if choice == "pool" and n_rows < min_rows:
            raise TableError(
                f"The {have} fewer than {min_rows} rows{' all together' * (len(small) > 1)}",
                f"leave {them} out",
                f"leave {them} out with --small-groups drop, or keep {them} with --small-groups "
                "keep",
            )
        if choice == "drop" and n_rows == self._counts.total():
            raise TableError(
                f"The {have} fewer than {min_rows} rows, and there is no other",
                "put the rows into fewer groups",
            )
        what = f"one group, {POOLED!r}" if choice == "pool" else "left out"
        rows = "row is" if n_rows == 1 else "rows are"
        whose = "their groups have" if len(small) > 1 else "their group has"
        whose = "its group has" if n_rows == 1 else whose
        said = f"{n_rows:,} {rows} {what}, as {whose} fewer than {min_rows}: {named}."
        return Regrouping(self._names, changes, choice == "drop", n_rows, said)

    def _small(self, min_rows: int, grouping: str) -> tuple[dict[str, int], dict[Label, Label]]:
        """The small groups with their rows, and what each label of their rows becomes in a pool."""
        if grouping != "marginals":
            small = {label: n for label, n in self._counts.items() if n < min_rows}
            named = {group_name(_shown(label), self._names): n for label, n in small.items()}
            return named, {label: (POOLED,) * len(label) for label in small}
        margins = [Counter[Hashable]() for _ in self._names]
        for label, count in self._counts.items():
            for margin, part in zip(margins, label, strict=True):
                margin[part] += count
        few = [{part: n for part, n in m.items() if n < min_rows} for m in margins]
        pooled = {
            label: tuple(POOLED if part in f else part for part, f in zip(label, few, strict=True))
            for label in self._counts
        }
        named = {
            f"{name}={MISSING if part is None else part}": n
            for name, f in zip(self._names, few, strict=True)
            for part, n in f.items()
        }
        return named, {label: new for label, new in pooled.items() if new != label}


@dataclass(frozen=True)
class Regrouping:
    """What becomes of the rows of small groups.

    Attributes
    ----------
    names : tuple of str
        The sensitive columns.
    changes : mapping
        The labels of such rows, and their new ones, where they are not left out.
    drops : bool
        Whether the rows are left out.
    n_rows : int
        How many rows that concerns.
    said : str
        What was done, in one sentence.
    """

    names: tuple[str, ...]
    changes: Mapping[Label, Label]
    drops: bool
    n_rows: int
    said: str

    def apply(self, batch: Any) -> Any:
        """The batch, without the rows that are left out, with the new labels; they are text."""
        if self.drops:
            return batch
        labels, inverse = _labels(batch, self.names)
        for j, name in enumerate(self.names):
            new = [self._new(label, j) for label in labels]
            column = pyarrow.array(np.array(new, dtype=object)[inverse], pyarrow.string())
            place = batch.schema.get_field_index(name)
            batch = batch.set_column(place, name, column)
        return batch

    def _new(self, label: Label, j: int) -> str | None:
        part = self.changes.get(label, label)[j]
        return None if part is None else str(part)


@dataclass(frozen=True)
class RowRule:
    """Which rows of a table are kept, by their labels: nothing is learned from the others.

    Attributes
    ----------
    names : tuple of str
        The sensitive columns.
    unlabelled : bool
        Whether rows without a label are kept.
    small : collection
        Labels of rows that are left out.
    """

    names: tuple[str, ...]
    unlabelled: bool = True
    small: Collection[Label] = ()

    def applied(self, batch: Any) -> Any:
        """The rows of the batch that are kept."""
        labels, inverse = _labels(batch, self.names)
        kept = [
            label not in self.small and (self.unlabelled or None not in label) for label in labels
        ]
        return batch.filter(pyarrow.array(np.array(kept)[inverse]))


def _shown(label: Label) -> Hashable:
    named = tuple(MISSING if part is None else part for part in label)
    return named if len(named) > 1 else named[0]


def _labels(batch: Any, names: Sequence[str]) -> tuple[list[Label], Any]:
    """The different labels of the rows of a batch, and which of them each row has."""
    encoded = encode_labels(batch, names)
    values = [(None, *labels) for labels, _ in encoded]
    shape = [len(found) for found in values]
    rows = np.ravel_multi_index([codes + 1 for _, codes in encoded], shape)
    present, inverse = np.unique(rows, return_inverse=True)
    parts = zip(*np.unravel_index(present, shape), strict=True)
    return [tuple(map(tuple.__getitem__, values, part)) for part in parts], inverse


class RowChoice:
    """Leaves out the rows without a label and those of small groups, where that is chosen.

    They are out of the table before anything is learned from it: from the means with and without a
    row, that row follows.

    Parameters
    ----------
    table : Table
        Keeps the rows that are kept from here on.
    names : sequence of str
        The sensitive columns.
    missing_labels : {"error", "group", "drop"}
        What becomes of rows without a label.
    small : {"error", "pool", "drop", "keep"}
        What becomes of groups with fewer than `min_rows` rows.
    min_rows, grouping
        As for `GroupCounter.regrouping`.

    Attributes
    ----------
    counts : bool
        Whether `see` has to see the labels of all rows before `regrouping` knows the groups.
    """

    def __init__(
        self,
        table: Table,
        names: Sequence[str],
        missing_labels: str,
        small: str,
        min_rows: int,
        grouping: str,
    ) -> None:
        self._counter = GroupCounter(names, missing_labels)
        self._how, self._found = (small, min_rows, grouping), None
        self.counts = bool(names) and small in ("error", "pool")
        rule = RowRule(tuple(names), unlabelled=missing_labels != "drop")
        table.keep(None if rule.unlabelled or not names else rule)
        if names and small == "drop":
            for batch in table.batches(names):
                self._counter.see(batch)
            self._found = self._counter.regrouping(*self._how)
            if self._found is not None:
                table.keep(replace(rule, small=frozenset(self._found.changes)))

    def see(self, batch: Any) -> None:
        """Take in a batch of the rows that are kept."""
        if self.counts:
            self._counter.see(batch)

    def regrouping(self) -> Regrouping | None:
        """What becomes of the small groups, once all rows have been seen."""
        return self._counter.regrouping(*self._how) if self.counts else self._found

"""Which rows of a table are kept, and what becomes of groups of a few rows.

The mean of a group of one row is that row: what is written about such a group tells about single
people. It is refused, put together with the other small groups, left out, or kept, as the user
chooses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True)
class Regrouping:
    """Which rows of a table are kept, by their labels, and the new labels of those of small groups.

    Rows that are left out are out of the table before anything is learned from it: from the means
    with and without a row, that row follows.

    Attributes
    ----------
    names : tuple of str
        The sensitive columns.
    unlabelled : bool
        Whether rows without a label are kept.
    changes : mapping
        The labels of rows of small groups, and their new ones, where they are not left out.
    drops : bool
        Whether they are left out.
    n_rows : int
        How many rows that concerns.
    said : str
        What was done, in one sentence; empty if there are no small groups.
    """

    names: tuple[str, ...]
    unlabelled: bool = True
    changes: Mapping[Label, Label] = field(default_factory=dict)
    drops: bool = False
    n_rows: int = 0
    said: str = ""

    def kept(self, batch: Any) -> Any:
        """The rows of the batch that are kept."""
        labels, inverse = _labels(batch, self.names)
        out = self.changes if self.drops else {}
        kept = [label not in out and (self.unlabelled or None not in label) for label in labels]
        return batch.filter(pyarrow.array(np.array(kept)[inverse]))

    def labelled(self, batch: Any) -> Any:
        """The batch with the new labels; they are text."""
        if self.drops or not self.changes:
            return batch
        labels, inverse = _labels(batch, self.names)
        new = [self.changes.get(label, label) for label in labels]
        for name, parts in zip(self.names, zip(*new, strict=True), strict=True):
            texts = np.array([None if part is None else str(part) for part in parts], dtype=object)
            place = batch.schema.get_field_index(name)
            column = pyarrow.array(texts[inverse], pyarrow.string())
            batch = batch.set_column(place, name, column)
        return batch


def regroup(
    table: Table,
    names: Sequence[str],
    missing_labels: str,
    choice: str,
    min_rows: int,
    grouping: str,
) -> Regrouping:
    """Have a table leave out rows without a label and those of small groups, where that is chosen.

    Parameters
    ----------
    table : Table
        Keeps the rows that are kept from here on.
    names : sequence of str
        The sensitive columns.
    missing_labels : {"error", "group", "drop"}
        What becomes of rows without a label.
    choice : {"error", "pool", "drop", "keep"}
        What becomes of groups with fewer than `min_rows` rows; "error" raises TableError if there
        are any.
    min_rows : int
        Groups with fewer rows are small.
    grouping : {"intersections", "marginals", "both"}
        What several columns make groups of.
    """
    rule = Regrouping(tuple(names), unlabelled=missing_labels != "drop")
    table.keep(rule)
    if not names or choice == "keep":
        return rule
    counts: Counter[Label] = Counter()
    for batch in table.batches(names):
        labels, inverse = _labels(batch, names)
        for label, count in zip(labels, np.bincount(inverse).tolist(), strict=True):
            if missing_labels == "group" or None not in label:
                counts[label] += count
        check_number_of_groups(len(counts))
    small, changes = _small(counts, names, min_rows, grouping)
    if not small or counts.total() < 2:  # of a single row something else is said
        return rule
    shown = [f"{name!r} ({count:,})" for name, count in small.items()]
    more = f" and {len(shown) - MOST_NAMES} more" if len(shown) > MOST_NAMES else ""
    named = f"{', '.join(shown[:MOST_NAMES])}{more}"
    have = f"groups {named} have" if len(small) > 1 else f"group {named} has"
    n_rows = sum(counts[label] for label in changes)
    them, as_are = ("them", "they are") if len(small) > 1 else ("it", "it is")
    if choice == "error":
        ways = []
        if n_rows >= min_rows:
            ways.append("put small groups together with --small-groups pool, ")
        if n_rows < counts.total():
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
            f"leave {them} out with --small-groups drop, or keep {them} with --small-groups keep",
        )
    if choice == "drop" and n_rows == counts.total():
        raise TableError(
            f"The {have} fewer than {min_rows} rows, and there is no other",
            "put the rows into fewer groups",
        )
    what = f"one group, {POOLED!r}" if choice == "pool" else "left out"
    rows = "row is" if n_rows == 1 else "rows are"
    whose = "their groups have" if len(small) > 1 else "their group has"
    whose = "its group has" if n_rows == 1 else whose
    said = f"{n_rows:,} {rows} {what}, as {whose} fewer than {min_rows}: {named}."
    found = replace(rule, changes=changes, drops=choice == "drop", n_rows=n_rows, said=said)
    table.keep(found)
    return found


def _small(
    counts: Counter[Label], names: Sequence[str], min_rows: int, grouping: str
) -> tuple[dict[str, int], dict[Label, Label]]:
    """The small groups with their rows, and what each label of their rows becomes in a pool."""
    if grouping != "marginals":
        small = {label: n for label, n in counts.items() if n < min_rows}
        named = {group_name(_shown(label), names): n for label, n in small.items()}
        return named, {label: (POOLED,) * len(label) for label in small}
    few: list[dict[Hashable, int]] = []
    for j in range(len(names)):
        margin: Counter[Hashable] = Counter()
        for label, count in counts.items():
            margin[label[j]] += count
        few.append({part: n for part, n in margin.items() if n < min_rows})
    pooled = {
        label: tuple(POOLED if part in f else part for part, f in zip(label, few, strict=True))
        for label in counts
    }
    named = {
        f"{name}={MISSING if part is None else part}": n
        for name, f in zip(names, few, strict=True)
        for part, n in f.items()
    }
    return named, {label: new for label, new in pooled.items() if new != label}


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

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

from fairpca.groups import MISSING, check_number_of_groups, refuse_measurements
from fairpca.tables.column_checks import classify_cell
from fairpca.tables.columns import MOST_NAMES, TableError, encode_labels, refuse
from fairpca.text import group_name

if TYPE_CHECKING:  # which itself asks for what is here
    from fairpca.tables.reading import Table

POOLED = "other (small)"
"""What small groups are together."""

Label = tuple[Hashable, ...]
"""The values of the sensitive columns in a row."""


@dataclass(frozen=True)
class GroupChoice:
    """What becomes of rows without a label and of groups of a few rows.

    Attributes
    ----------
    missing_labels : {"error", "group", "drop"}
        What becomes of rows without a label.
    small_groups : {"error", "pool", "drop", "keep"}
        What becomes of groups with fewer than `min_rows` rows.
    min_rows : int
        Groups with fewer rows are small.
    groups : {"intersections", "marginals", "both"}
        What several columns make groups of.
    """

    missing_labels: str
    small_groups: str
    min_rows: int
    groups: str


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
    texts : mapping
        For each of the sensitive columns its texts, in the rows that are kept.
    """

    names: tuple[str, ...]
    unlabelled: bool = True
    changes: Mapping[Label, Label] = field(default_factory=dict)
    drops: bool = False
    n_rows: int = 0
    said: str = ""
    texts: Mapping[str, set[str]] = field(default_factory=dict)

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


def regroup(table: Table, names: Sequence[str], choice: GroupChoice) -> Regrouping:
    """Check the labels of a table, and have it leave out rows where that is chosen.

    Raises TableError for rows without a label, too many numbers as labels, and small groups, unless
    it was chosen what becomes of these.

    Parameters
    ----------
    table : Table
        Keeps the rows that are kept from here on.
    names : sequence of str
        The sensitive columns.
    choice : GroupChoice
        What becomes of rows without a label and of small groups.
    """
    rule = Regrouping(tuple(names), unlabelled=choice.missing_labels != "drop")
    table.keep(rule)
    if not names:
        return rule
    counts: Counter[Label] = Counter()
    for batch in table.batches(names):
        labels, inverse = _labels(batch, names)
        counts.update(dict(zip(labels, np.bincount(inverse).tolist(), strict=True)))
        check_number_of_groups(len(counts))
    unlabelled, n = sum(n for label, n in counts.items() if None in label), counts.total()
    errors: list[TableError] = []
    if unlabelled and choice.missing_labels == "error":
        fix = {} if unlabelled == n else {"missing_labels": "drop"}
        errors.append(
            TableError(
                f"The sensitive columns have no value in {unlabelled:,} of {n:,} rows",
                "leave those rows out, or make them a group",
                "--missing-labels group does the latter",
                **fix,
            )
        )
    if choice.missing_labels != "group":
        counts = Counter({label: n for label, n in counts.items() if None not in label})
    texts = _texts(counts, names)
    for name, found in texts.items() if table.is_csv else ():
        # Labels of a CSV file are text, also where they are a measurement's numbers.
        is_number = all(classify_cell(text) == "number" for text in found)
        try:
            refuse_measurements([float(text) for text in found if is_number], name)
        except ValueError:
            errors.append(
                TableError(
                    f"The column {name!r} has {len(found):,} different numbers, too many to be "
                    "groups",
                    "bin them in a column of text, or, if they are codes, put a letter before each",
                )
            )
    rule = replace(rule, texts=texts)
    if choice.small_groups == "keep" or counts.total() < 2:  # of a single row other things are said
        refuse(errors)
        return rule
    try:
        rule = _regrouped(rule, counts, choice)
    except TableError as error:
        errors.append(error)
    refuse(errors)
    table.keep(rule)
    return rule


def _texts(counts: Counter[Label], names: Sequence[str]) -> dict[str, set[str]]:
    parts = zip(*counts, strict=True) if counts else [()] * len(names)
    return {
        name: {text for text in found if isinstance(text, str)}
        for name, found in zip(names, parts, strict=True)
    }


def _regrouped(rule: Regrouping, counts: Counter[Label], choice: GroupChoice) -> Regrouping:
    """The rule with what becomes of small groups, or TableError."""
    small, changes = _small(counts, rule.names, choice)
    if not small:
        return rule
    min_rows = choice.min_rows
    shown = [f"{name!r} ({count:,})" for name, count in small.items()]
    more = f" and {len(shown) - MOST_NAMES} more" if len(shown) > MOST_NAMES else ""
    named = f"{', '.join(shown[:MOST_NAMES])}{more}"
    have = f"groups {named} have" if len(small) > 1 else f"group {named} has"
    n_rows = sum(counts[label] for label in changes)
    them, as_are = ("them", "they are") if len(small) > 1 else ("it", "it is")
    problem = f"The {have} fewer than {min_rows} rows"
    keep = f"--small-groups keep leaves {them} as {as_are}"
    can_pool, can_drop = n_rows >= min_rows, n_rows < counts.total()
    if choice.small_groups == "error":
        fix = {"small_groups": "pool" if can_pool else "drop"} if can_pool or can_drop else {}
        other = f"--small-groups drop leaves {them} out, and " if can_pool and can_drop else ""
        raise TableError(
            f"{problem}, so that what is written of {them} would tell about single people",
            f"put small groups together or leave {them} out",
            f"{other}{keep}",
            **fix,
        )
    if choice.small_groups == "pool" and not can_pool:
        all_together = " all together" * (len(small) > 1)
        fix = {"small_groups": "drop"} if can_drop else {}
        raise TableError(f"{problem}{all_together}", f"leave {them} out", keep, **fix)
    if choice.small_groups == "drop" and not can_drop:
        raise TableError(f"{problem}, and there is no other", "put the rows into fewer groups")
    drops = choice.small_groups == "drop"
    what = "left out" if drops else f"one group, {POOLED!r}"
    rows = "row is" if n_rows == 1 else "rows are"
    whose = "their groups have" if len(small) > 1 else "their group has"
    whose = "its group has" if n_rows == 1 else whose
    said = f"{n_rows:,} {rows} {what}, as {whose} fewer than {min_rows}: {named}."
    left = {label if drops else changes.get(label, label) for label in counts}
    texts = _texts(Counter(left - {*changes} if drops else left), rule.names)
    return replace(rule, changes=changes, drops=drops, n_rows=n_rows, said=said, texts=texts)


def _small(
    counts: Counter[Label], names: Sequence[str], choice: GroupChoice
) -> tuple[dict[str, int], dict[Label, Label]]:
    """The small groups with their rows, and what each label of their rows becomes in a pool."""
    min_rows = choice.min_rows
    if choice.groups != "marginals":
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

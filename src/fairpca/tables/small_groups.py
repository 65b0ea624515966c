"""Which rows of a table are kept, and what becomes of groups of a few rows.

The mean of a group of one row is that row: what is written about such a group tells about single
people. It is refused, put together with the other small groups, left out, or kept, as the user
chooses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow

from fairpca.groups import MISSING, check_number_of_groups, refuse_measurements
from fairpca.tables.column_checks import classify_cell
from fairpca.tables.columns import MOST_NAMES, TableError, encode_labels, refuse
from fairpca.text import group_name, in_rows

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


def regroup(
    table: Table,
    names: Sequence[str],
    *,
    missing_labels: str,
    small_groups: str,
    min_rows: int,
    groups: str,
) -> Regrouping:
    """Check the labels of a table, and have it leave out rows where that is chosen.

    Raises TableError for rows without a label, too many numbers as labels, and small groups, unless
    it was chosen what becomes of these.

    Parameters
    ----------
    table : Table
        Keeps the rows that are kept from here on.
    names : sequence of str
        The sensitive columns.
    missing_labels : {"error", "group", "drop"}
        What becomes of rows without a label.
    small_groups : {"error", "pool", "drop", "keep"}
        What becomes of groups with fewer than `min_rows` rows.
    min_rows : int
        Groups with fewer rows are small.
    groups : {"intersections", "marginals", "both"}
        What several columns make groups of.
    """
    rule = Regrouping(tuple(names), unlabelled=missing_labels != "drop")
    if not names:
        return rule
    table.rule = None if rule.unlabelled else rule
    counts: Counter[Label] = Counter()
    for batch in table.batches(names):
        labels, inverse = _labels(batch, names)
        counts.update(dict(zip(labels, np.bincount(inverse).tolist(), strict=True)))
        check_number_of_groups(len(counts))
    unlabelled, n = sum(n for label, n in counts.items() if None in label), counts.total()
    errors: list[TableError] = []
    if unlabelled and missing_labels == "error":
        fix = {} if unlabelled == n else {"missing_labels": "drop"}
        errors.append(
            TableError(
                f"The sensitive columns have no value in {unlabelled:,} of {n:,} rows",
                "leave those rows out, or make them a group",
                "--missing-labels group does the latter",
                **fix,
            )
        )
    if missing_labels != "group":
        counts = Counter({label: n for label, n in counts.items() if None not in label})
    rule = replace(rule, texts=_texts(counts, names))
    for name, found in rule.texts.items() if table.places else ():
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
    small: dict[str, int] = {}
    changes: dict[Label, Label] = {}
    if small_groups != "keep" and counts.total() > 1:  # of a single row other things are said
        small, changes = _small(counts, rule.names, min_rows, groups)
    if small:
        shown = [f"{name!r} ({count:,})" for name, count in small.items()]
        named = ", ".join(shown[:MOST_NAMES])
        named += f" and {len(shown) - MOST_NAMES} more" if len(shown) > MOST_NAMES else ""
        n_rows = sum(counts[label] for label in changes)
        possible = {"pool": n_rows >= min_rows, "drop": n_rows < counts.total()}
        ways = [way for way in possible if possible[way]]
        if small_groups not in ways:
            errors.append(_refused(named, min_rows, ways, asked=small_groups))
        drops, left, made = small_groups == "drop", [*counts], f"one group, {POOLED!r}"
        if drops:
            left, made = [label for label in counts if label not in changes], "left out"
        rows = f"{in_rows(n_rows)} {'is' if n_rows == 1 else 'are'}"
        said = f"{rows} {made}, all of groups with fewer than {min_rows}: {named}."
        texts = _texts([changes.get(label, label) for label in left], names)
        rule = replace(rule, changes=changes, drops=drops, n_rows=n_rows, said=said, texts=texts)
    refuse(errors)
    if rule.drops:
        table.rule = rule
    return rule


def _refused(named: str, min_rows: int, ways: list[str], asked: str) -> TableError:
    """What is said of small groups, of which one of these ways gets rid."""
    remedies = {"pool": "put small groups together", "drop": "leave them out"}
    others = {"drop": "leaves them out", "keep": "leaves them as they are"}
    few = f"fewer than {min_rows} rows{', even together,' if asked == 'pool' else ''}"
    return TableError(
        f"Groups with {few} would tell about single people: {named}",
        " or ".join(remedies[way] for way in ways) or "put the rows into fewer groups",
        ", ".join(f"--small-groups {way} {others[way]}" for way in (*ways[1:], "keep")),
        **({"small_groups": ways[0]} if ways else {}),
    )


def _texts(labels: Collection[Label], names: Sequence[str]) -> dict[str, set[str]]:
    """For each sensitive column its texts."""
    parts = zip(*labels, strict=True) if labels else [()] * len(names)
    return {
        name: {text for text in found if isinstance(text, str)}
        for name, found in zip(names, parts, strict=True)
    }


def _small(
    counts: Counter[Label], names: Sequence[str], min_rows: int, groups: str
) -> tuple[dict[str, int], dict[Label, Label]]:
    """The small groups with their rows, and what each label of their rows becomes in a pool."""
    if groups != "marginals":
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

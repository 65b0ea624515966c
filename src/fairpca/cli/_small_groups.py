"""What becomes of groups of a few rows.

The mean of a group of one row is that row: what is written about such a group tells about single
people. It is refused, put together with the other small groups, or kept, as the user chooses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow

from fairpca.cli._options import TableOptions
from fairpca.groups import MISSING, check_number_of_groups, refuse_measurements
from fairpca.tables.column_checks import classify_cell
from fairpca.tables.columns import TableError, encode_labels, refuse
from fairpca.tables.reading import Table
from fairpca.text import group_name, in_rows, joined

POOLED = "other (small)"
"""What small groups are together."""

Label = tuple[Hashable, ...]
"""The values of the sensitive columns in a row."""


@dataclass(frozen=True)
class Regrouping:
    """The new labels of the rows of small groups.

    Attributes
    ----------
    names : tuple of str
        The sensitive columns.
    changes : mapping
        The labels of rows of small groups, and their new ones.
    said : str
        What was done, in one sentence; empty if there are no small groups.
    texts : mapping
        For each of the sensitive columns its texts.
    """

    names: tuple[str, ...]
    changes: Mapping[Label, Label] = field(default_factory=dict)
    said: str = ""
    texts: Mapping[str, set[str]] = field(default_factory=dict)

    def labelled(self, batch: Any) -> Any:
        """The batch with the new labels; they are text."""
        if not self.changes:
            return batch
        labels, inverse = _labels(batch, self.names)
        new = [self.changes.get(label, label) for label in labels]
        for name, parts in zip(self.names, zip(*new, strict=True), strict=True):
            texts = np.array([None if part is None else str(part) for part in parts], dtype=object)
            place = batch.schema.get_field_index(name)
            column = pyarrow.array(texts[inverse], pyarrow.string())
            batch = batch.set_column(place, name, column)
        return batch


def regroup(table: Table, asked: TableOptions, default: str) -> Regrouping:
    """Check the labels of a table, and leave out rows without one where that is chosen.

    Raises TableError for rows without a label, too many numbers as labels, and small groups, unless
    a treatment was chosen for these; `default` is used where none was.
    """
    names, missing_labels, min_rows = asked.sensitive, asked.missing_labels, asked.min_rows
    small_groups = asked.small_groups or default
    rule = Regrouping(tuple(names))
    table.labelled = rule.names if missing_labels == "drop" else ()
    if not names:
        return rule
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
    for name, found in rule.texts.items() if table.is_csv else ():
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
        small, changes = _small(counts, rule.names, min_rows, asked.grouping)
    if small:
        named = joined([f"{name!r} ({count:,})" for name, count in small.items()])
        n_rows = sum(counts[label] for label in changes)
        can_pool, is_asked = n_rows >= min_rows, small_groups == "pool"
        if not (can_pool and is_asked):
            together = ", even together," if is_asked else ""
            remedy = "put small groups together" if can_pool else "put the rows into other groups"
            errors.append(
                TableError(
                    f"Groups with fewer than {min_rows} rows{together} would tell about single "
                    f"people: {named}",
                    f"{remedy}, or leave them out of the table",
                    "--small-groups keep leaves them as they are",
                    **({"small_groups": "pool"} if can_pool else {}),
                )
            )
        said = f"{in_rows(n_rows)} are one group, {POOLED!r}, all of groups with fewer than "
        rule = replace(
            rule,
            changes=changes,
            said=f"{said}{min_rows}: {named}.",
            texts=_texts([changes.get(label, label) for label in counts], names),
        )
    refuse(errors)
    return rule


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
    """The small groups with their rows, and what each label of their rows becomes."""
    width, small = len(names), dict[str, int]()
    new = {label: list(label) for label in counts}
    # What makes a group: each column by itself, or all of them.
    for part in (
        map(slice, range(width), range(1, width + 1)) if groups == "marginals" else [slice(None)]
    ):
        margin: Counter[Label] = Counter()
        for label, n in counts.items():
            margin[label[part]] += n
        for label in counts:
            if margin[label[part]] < min_rows:
                new[label][part] = [POOLED] * len(label[part])
        for key, n in margin.items():
            if n < min_rows:
                shown = tuple(MISSING if value is None else value for value in key)
                small[group_name(shown if width > 1 else shown[0], names[part])] = n
    changes = {label: tuple(changed) for label, changed in new.items()}
    return small, {label: changed for label, changed in changes.items() if changed != label}


def _labels(batch: Any, names: Sequence[str]) -> tuple[list[Label], Any]:
    """The different labels of the rows of a batch, and which of them each row has."""
    encoded = encode_labels(batch, names)
    values = [(None, *labels) for labels, _ in encoded]
    shape = [len(found) for found in values]
    rows = np.ravel_multi_index([codes + 1 for _, codes in encoded], shape)
    present, inverse = np.unique(rows, return_inverse=True)
    parts = zip(*np.unravel_index(present, shape), strict=True)
    return [tuple(map(tuple.__getitem__, values, part)) for part in parts], inverse

"""Labels of groups: their order, those of missing values, and those of groups that overlap."""

import unicodedata
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from fairpca._rows.checks import check_choice
from fairpca._rows.text import ALL
from fairpca._rows.words import GROUPINGS as GROUPINGS

Labels = tuple[Hashable, ...]


class Fold(int):
    """Label of the rows of one fold, where moments are kept by fold too."""


Orders = tuple[Labels | None, ...]
"""For each sensitive column its categories in their order, or None where they have none."""

MISSING = "(missing)"
"""Label of the group of rows whose sensitive feature is missing."""

UNGROUPED = ("all",)
"""Labels of rows without sensitive features: they are one group."""

_MOST_GROUPS = 1000

_MOST_NUMBERS, _MOST_FRACTIONS = 50, 20
"""Different numbers in a sensitive column from which on it is a measurement, not a group: whole
ones, as there are 50 states, and ones with fractions. Codes can be had as text."""


def check_number_of_groups(k: int) -> None:
    """Raise ValueError if these are too many."""
    if k > _MOST_GROUPS:
        raise ValueError(
            f"sensitive_features has {k:,} different values, more than the "
            f"{_MOST_GROUPS:,} groups that are supported: bin a continuous column first."
        )


def refuse_measurements(labels: Sequence[Hashable], name: str | None = None) -> None:
    """Raise ValueError for a column of so many different numbers that they are no groups."""
    values = [label for label in labels if label != MISSING]
    if len(values) <= _MOST_FRACTIONS or not all(map(_is_number, values)):
        return
    if len(values) > _MOST_NUMBERS or any(value % 1 != 0 for value in values):  # type: ignore[operator]
        where = "" if name is None else f" in the column {name!r}"
        raise ValueError(
            f"sensitive_features has {len(values):,} different numbers{where}, too many to be "
            "groups: bin them, for example with pandas.qcut(column, 4), or, if they are codes, "
            "pass them as text, for example with astype(str)."
        )


def canonical(label: Hashable) -> Hashable:
    """The label; text in Unicode's composed form, so that an accented letter is one character."""
    if isinstance(label, tuple):
        return tuple(map(canonical, label))
    return unicodedata.normalize("NFC", label) if isinstance(label, str) else label


def refuse_ambiguous(labels: Iterable[Hashable]) -> None:
    """Raise ValueError for different labels with the same text, such as 1 and "1"."""
    seen: dict[Hashable, Hashable] = {}
    for label in labels:
        text = tuple(map(str, label)) if isinstance(label, tuple) else str(label)
        other = seen.setdefault(text, label)
        if other != label:
            raise ValueError(
                f"sensitive_features has the labels {other!r} and {label!r}, which are of "
                "different types and would be two groups of the same name: convert the column to "
                "one type, for example with astype(str)."
            )


def alike(labels: Iterable[Hashable]) -> list[list[str]]:
    """Text labels that differ only in upper and lower case, spaces or accents' encoding."""
    found: dict[str, list[str]] = {}
    for text in sorted({label for label in labels if isinstance(label, str)}):
        found.setdefault(" ".join(str(canonical(text)).split()).casefold(), []).append(text)
    return [texts for texts in found.values() if len(texts) > 1]


def sorted_labels(labels: Iterable[Hashable], orders: Orders | None = None) -> Labels:
    """Sort labels that need not be of one type; the group of missing values comes last.

    Ordered categories keep their order. Intersections are sorted by their first feature, then by
    the second, and so on; groups of one column alone come before them, column by column.
    """
    labels = list(labels)
    tuples = [label for label in labels if isinstance(label, tuple)]
    if len(tuples) < len(labels) or len({len(label) for label in tuples}) != 1:
        return _sorted_values(labels, orders[0] if orders else None)
    columns = list(zip(*tuples, strict=True))
    known = orders or (None,) * len(columns)
    ranks = [
        {value: i for i, value in enumerate(_sorted_values(list(set(column)), order))}
        for column, order in zip(columns, known, strict=True)
    ]

    def place(label: Labels) -> tuple[bool, list[bool], list[int]]:
        others = [part == ALL for part in label]
        return not any(others), others, [r[v] for r, v in zip(ranks, label, strict=True)]

    return tuple(sorted(tuples, key=place))


def merged_orders(first: Orders | None, second: Orders | None) -> Orders | None:
    """The orders of categories of which some may be in one of two parts only."""
    if first is None or second is None or first == second:
        return first or second
    return tuple(_merged_order(a, b) for a, b in zip(first, second, strict=True))


def n_partitions(labels: Iterable[Hashable]) -> int:
    """How many of the groups each row is in: more than one where groups overlap."""
    return max(len({_others(label) for label in labels}), 1)


def grouping_of(labels: Labels) -> str:
    """Which of the `GROUPINGS` these groups are."""
    kept, width = n_partitions(labels), len(_others(labels[0]))
    return "intersections" if kept == 1 else "marginals" if kept == width else "both"


def overlapping(
    labels: Labels, groups: str | None, orders: Orders | None = None
) -> tuple[Labels, NDArray[np.bool_] | None]:
    """Groups made of groups: their labels, and which of the others are in each; (new, old).

    That is None where they are the same groups.
    """
    check_choice("groups", groups, GROUPINGS)
    width, kept = len(_others(labels[0])) if labels else 0, n_partitions(labels)
    known = {"intersections": kept, "marginals": width, "both": width + 1, None: 0}
    if groups is None and kept == 1:
        same = labels == UNGROUPED
        return UNGROUPED, None if same else np.ones((1, len(labels)), dtype=bool)
    if kept == known[groups] or (width < 2 and groups is not None):
        return labels, None
    if kept > 1:
        raise ValueError(
            f"These groups overlap already, and cannot be made into groups={groups!r}: take the "
            "moments of the intersections."
        )
    wanted: set[Hashable] = set(labels) if groups == "both" else set()
    for label in labels:
        values = label if isinstance(label, tuple) else ()
        wanted |= {(*(ALL,) * j, v, *(ALL,) * (width - j - 1)) for j, v in enumerate(values)}
    made = sorted_labels(wanted, orders)
    return made, np.array([[_covers(group, label) for label in labels] for group in made])


def refuse_all_label(labels: Iterable[Hashable]) -> None:
    """Raise ValueError for a label that stands for something else where columns are several."""
    if ALL in labels:
        raise ValueError(
            f"sensitive_features has the label {ALL!r}, which stands for the groups of the other "
            "columns: give it another name."
        )


def _covers(group: Hashable, label: Hashable) -> bool:
    pairs: Callable[..., Iterable[tuple[Hashable, Hashable]]] = zip
    return all(a in (ALL, b) for a, b in pairs(group, label, strict=True))


def _others(label: Hashable) -> tuple[bool, ...]:
    """Which columns a group does not go by."""
    return tuple(part == ALL for part in label) if isinstance(label, tuple) else ()


def _sorted_values(values: list[Hashable], order: Labels | None) -> Labels:
    if order is not None:
        there, known = set(values), set(order)
        rest = _sorted_values([value for value in values if value not in known], None)
        return (*(value for value in order if value in there), *rest)
    present = [value for value in values if value != MISSING]
    try:
        ordered = sorted(present)  # type: ignore[type-var]
    except TypeError:
        ordered = sorted(present, key=lambda value: (type(value).__name__, str(value)))
    return (*ordered, *(value for value in values if value == MISSING))


def _merged_order(first: Labels | None, second: Labels | None) -> Labels | None:
    if not first or not second or first == second:
        return first or second
    sorter: TopologicalSorter[Hashable] = TopologicalSorter()
    for order in (first, second):
        sorter.add(order[0])
        for before, after in pairwise(order):
            sorter.add(after, before)
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        raise ValueError(
            "Groups of ordered categories in different orders cannot be added: bring the "
            "categories of all parts into the same order."
        ) from error


def _is_number(label: Hashable) -> bool:
    return isinstance(label, Real | Decimal) and not isinstance(label, bool)

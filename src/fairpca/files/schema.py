"""The schema of a file: what each entry of its header and each array is, written and checked by it.

A schema is a dictionary: names of entries, in the order of reading, and what they are. That is a
`Values` for an array, a dictionary for a record, a list with a dictionary for a list of records
without arrays, `Optional` of these, or a function of an entry, what messages call it and the sizes
that are known, which returns what is made of it or refuses it with a clause. Arrays inside of
records have dots in their names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np

from fairpca.files.checks import (
    MOST_ROWS,
    checked_texts,
    quoted,
    require,
)
from fairpca.folds import MOST_FOLDS
from fairpca.groups import Fold

Schema = Mapping[str, Any]
Sizes = dict[str, int]
"""How long axes are, by the letters that stand for them."""

FLOATS, COUNTS = "<f8", "<i8"
"""Types of arrays in files."""

POSITIVE = math.ulp(0.0)
"""The least positive number."""

Kind = Callable[[Any, str, Sizes], Any]


@dataclass(frozen=True)
class Values:
    """An array.

    Attributes
    ----------
    axes : str
        A letter for each axis, which is as long as others of that letter.
    least, most : float, default=-inf, inf
        Between which its numbers are; all are finite.
    type_ : str, default=FLOATS
        The type of its numbers.
    check : callable, default=None
        Refuses what else cannot be.
    """

    axes: str
    least: float = -math.inf
    most: float = math.inf
    type_: str = FLOATS
    check: Callable[[Any, str], None] | None = None

    def checked(self, array: Any, what: str, sizes: Sizes) -> Any:
        """The array, if it is there and can be what it should be."""
        require(array is not None, f"its array {what} is missing")
        fits = array.ndim == len(self.axes)
        require(fits, f"its array {what} has another number of axes than it should")
        array = array.view(self.type_)
        for axis, n in zip(self.axes, array.shape, strict=True):
            fits = n == sizes.setdefault(axis, n)
            require(fits, f"its array {what} is of another shape than the rest of it")
        inside = np.isfinite(array) & (array >= self.least) & (array <= self.most)
        require(inside.all(), f"its numbers of {what} are not all finite and in their range")
        if self.check is not None:
            self.check(array, what)
        return array


ROWS = Values("k", 1, MOST_ROWS, COUNTS)
"""Numbers of rows of k groups."""


@dataclass(frozen=True)
class Optional:
    """What may be null, or not be there."""

    kind: Any


def text(*known: str) -> Kind:
    """A text, one of those that are known if there are any."""

    def check(value: Any, what: str, sizes: Sizes) -> str:
        require(isinstance(value, str), f"its {what} is {quoted(value)}, which is no text")
        require(not known or value in known, f"its {what} is {quoted(value)}, not known")
        return str(value)

    return check


def texts(axis: str = "", *, different: bool = True) -> Kind:
    """A list of texts, as many as an axis is long."""
    return lambda value, what, sizes: checked_texts(
        value, what, sizes[axis] if axis else None, different=different
    )


def flag(value: Any, what: str, sizes: Sizes) -> bool:
    """True or false."""
    require(isinstance(value, bool), f"its {what} is {quoted(value)}, which is no true or false")
    return bool(value)


def whole(least: int) -> Kind:
    """A whole number that is not below the least; True and 1.0 are none."""

    def check(value: Any, what: str, sizes: Sizes) -> int:
        good = type(value) is int and least <= value <= MOST_ROWS
        require(good, f"its {what} is {quoted(value)}, which is no whole number from {least} on")
        return int(value)

    return check


def number(value: Any, what: str, sizes: Sizes) -> float:
    """A number, perhaps infinite."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    require(known, f"its {what} is {quoted(value)}, which is no number")
    return float(value)


def finite(value: Any, what: str, sizes: Sizes) -> float:
    """A number that is not infinite."""
    found = number(value, what, sizes)
    require(math.isfinite(found), f"its {what} is {quoted(value)}, which cannot be")
    return found


def labels(value: Any, what: str, sizes: Sizes) -> tuple[Hashable, ...]:
    """Labels that a file can have, a different one for each of k groups."""
    require(isinstance(value, list), "its groups are no list")
    found = tuple(map(_checked_label, value))
    require(len(set(found)) == len(found), "two of its groups have the same label")
    require(len(found) == sizes["k"], f"it has no labels for its {sizes['k']} groups")
    return found


def _inner(kind: Any) -> Any:
    return kind.kind if isinstance(kind, Optional) else kind


def write_record(
    schema: Schema, source: Any, prefix: str = ""
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays of a record, an object with attributes or a dictionary."""
    header: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for name, kind in schema.items():
        value: Any = source[name] if isinstance(source, dict) else getattr(source, name)
        inner = _inner(kind)
        if value is None:
            header |= {} if isinstance(inner, Values) else {name: None}
        elif isinstance(inner, Values):
            arrays[prefix + name] = np.asarray(value, inner.type_)
        elif isinstance(inner, list):
            header[name] = [write_record(inner[0], part)[0] for part in value]
        elif isinstance(inner, dict):
            header[name], more = write_record(inner, value, f"{prefix}{name}.")
            arrays |= more
        else:
            header[name] = value if isinstance(value, dict) else label_as_data(value)
    return header, arrays


def read_record(
    schema: Schema, header: Any, arrays: dict[str, Any], sizes: Sizes, prefix: str = ""
) -> dict[str, Any]:
    """What `write_record` made these of, as a dictionary, once each part has been checked.

    It takes the arrays that it knows from `arrays`.
    """
    known = {n for n, kind in schema.items() if not isinstance(_inner(kind), Values)}
    fits = isinstance(header, dict) and (not prefix or known == {*header})
    require(fits, f"its {prefix.rstrip('.')} has other entries than it should")
    found: dict[str, Any] = {}
    for name, kind in schema.items():
        inner, what = _inner(kind), prefix + name
        stored: Any = arrays.pop(what, None) if isinstance(inner, Values) else header[name]
        if stored is None and inner is not kind:
            found[name] = None
        elif isinstance(inner, Values):
            found[name] = inner.checked(stored, what, sizes)
        elif isinstance(inner, list):
            require(isinstance(stored, list), f"its {what} are no list")
            found[name] = [read_record(inner[0], part, {}, sizes, f"{what}.") for part in stored]
        elif isinstance(inner, dict):
            found[name] = read_record(inner, stored, arrays, sizes, f"{what}.")
        else:
            found[name] = inner(stored, what, sizes)
    return found


_KINDS: tuple[tuple[str, type, Any], ...] = (
    ("datetime", datetime, datetime.fromisoformat),  # before date, as each of them is one
    ("date", date, date.fromisoformat),
    ("time", time, time.fromisoformat),
    ("decimal", Decimal, Decimal),
    ("fold", Fold, Fold),
)
"""Labels that JSON does not have: what they are called, their type, and how text becomes one."""


def _checked_label(stored: Any) -> Hashable:
    parts = stored if isinstance(stored, list) else [stored]
    inside = any(isinstance(part, list) for part in parts) or not parts
    label = None if inside else label_from_data(stored)
    # Only what would be written so: no other spelling, and nothing that is unlike itself.
    good = not inside and label == label and label_as_data(label) == stored
    made = label if isinstance(label, tuple) else (label,)
    folds = [part for part in made if isinstance(part, Fold)]
    good = good and all(-1 <= fold < MOST_FOLDS for fold in folds)
    good = good and all(part is made[-1] and len(made) > 1 for part in folds)
    require(good, f"{quoted(stored)} can be no label of a group")
    return label


def label_as_data(label: Any) -> Any:
    """A label, or a list of labels, as JSON has it, from which it can be had back.

    Labels of types that a file cannot keep, such as intervals, become texts.
    """
    if isinstance(label, tuple | list):
        return [label_as_data(part) for part in label]
    value = label.item() if isinstance(label, np.generic) else label
    if value is None or (isinstance(value, str | bool | int) and not isinstance(value, Fold)):
        return value
    if isinstance(value, float) and value == value:
        return value
    for kind, type_, _ in _KINDS:
        if isinstance(value, type_):
            return {kind: value.isoformat() if hasattr(value, "isoformat") else str(value)}
    return str(value)


def label_from_data(stored: Any) -> Hashable:
    """The label that `label_as_data` made this of."""
    if isinstance(stored, list):
        return tuple(map(label_from_data, stored))
    if isinstance(stored, dict):
        ((found, text),) = stored.items()
        made: Hashable = {kind: make for kind, _, make in _KINDS}[found](text)
        return made
    label: Hashable = stored
    return label

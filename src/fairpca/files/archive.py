"""Files without pickle: a line of text, a header in JSON on a line, and arrays of numbers.

The first line has the format, its version and the SHA-256 of all that follows, which guards against
damage. The header has the shapes of the arrays under ``arrays``, in their order, and the version of
the library that wrote the file under ``fairpca``. The numbers of each array follow, 8 bytes each.

A file is read as if its writer meant harm: nothing is evaluated, and nothing is taken in but the
file itself and its header as Python's objects, whose size is limited. Each refusal is a clause
that names the invalid part and the reason.

A schema says what a file holds, and by it a file is written and checked. It is a dictionary: names
of entries, in the order of reading, and what they are. That is a `Values` for an array, a
dictionary for a record, a list with a dictionary for a list of records without arrays, `Optional`
of these, or a function of an entry, what messages call it and the sizes that are known, which
returns what is made of it or refuses it, such as an `Entry`. Arrays inside of records have dots in
their names.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._version import __version__
from fairpca.files.atomic import replacing
from fairpca.folds import MOST_FOLDS
from fairpca.groups import Fold
from fairpca.text import short_text

MOST_ROWS = 2**53
"""Counts above this cannot all be told apart as float64, in which sums of rows are divided."""

_MISFIT = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What putting the parts of a forged file together can raise."""


class UnfitError(ValueError):
    """A part of a file is invalid; the message is a clause with the reason."""


@contextmanager
def taking_for_damage(shown: str) -> Iterator[None]:
    """Take whatever fails in the body, which reads the parts of a file, for damage to it."""
    try:
        yield
    except UnfitError as error:
        raise ValueError(f"{shown} is damaged: {error}.") from error
    except _MISFIT as error:
        raise ValueError(f"{shown} is damaged: its parts do not fit together.") from error


def require(holds: bool | np.bool_, clause: str) -> None:
    """Raise UnfitError with this clause unless something holds."""
    if not holds:
        raise UnfitError(clause)


def quoted(value: object) -> str:
    """A value from a file as it stands in a message: on one line, and not long."""
    return short_text(repr(value))


def checked_texts(value: Any, what: str, *, different: bool = True) -> tuple[str, ...]:
    """A list of texts."""
    require(isinstance(value, list), f"its {what} are no list")
    wrong = [text for text in value if not isinstance(text, str)][:1]
    require(not wrong, f"of its {what}, {', '.join(map(quoted, wrong))} is no text")
    repeated = (text for text, count in Counter(value).items() if count > 1)
    twice = next(repeated, None) if different else None
    require(twice is None, f"of its {what}, {quoted(twice)} is there twice")
    return tuple(value)


Schema = Mapping[str, Any]
Sizes = dict[str, int]
"""How long axes are, by the letters that stand for them."""

FLOATS, COUNTS = "<f8", "<i8"
"""Types of arrays in files."""

POSITIVE = math.ulp(0.0)
"""The least positive number."""

LARGEST = math.nextafter(math.inf, 0.0)
"""The largest number that is not infinite."""


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


@dataclass(frozen=True)
class Entry:
    """A text, a truth value or a number of the header.

    Attributes
    ----------
    type_ : {str, bool, int, float}
        Its type; True and 1.0 are no whole numbers.
    called : str
        What it is, for messages.
    known : tuple of str, default=()
        The texts that it can be, unless that is any.
    least, most : float, default=-inf, inf
        Between which a number is.
    """

    type_: type
    called: str
    known: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf

    def __call__(self, value: Any, what: str, sizes: Sizes) -> Any:
        """The value, if it can be what it should be."""
        fits = type(value) is self.type_ or (self.type_ is float and type(value) is int)
        if self.type_ is str:
            fits = fits and (not self.known or value in self.known)
        else:
            fits = fits and self.least <= value <= self.most
        require(fits, f"its {what} is {quoted(value)}, which is no {self.called}")
        return self.type_(value)


TEXT, FLAG = Entry(str, "text"), Entry(bool, "true or false")
NUMBER = Entry(float, "number")
FINITE = Entry(float, "finite number", least=-LARGEST, most=LARGEST)
COUNT = Entry(int, "whole number from 0 on", least=0, most=MOST_ROWS)
SIZE = Entry(int, "whole number from 1 on", least=1, most=MOST_ROWS)
"""What entries usually are."""


def word(*known: str) -> Entry:
    """One of these texts."""
    return Entry(str, "text that is known", known)


@dataclass(frozen=True)
class Texts:
    """A list of texts, of the length of an axis if one is given."""

    axis: str = ""
    different: bool = True

    def __call__(self, value: Any, what: str, sizes: Sizes) -> tuple[str, ...]:
        """The texts, if they can be what they should be."""
        found = checked_texts(value, what, different=self.different)
        n = sizes[self.axis] if self.axis else len(found)
        require(len(found) == n, f"the number of its {what} is {len(found)}, not {n}")
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

    Labels that a file cannot keep, such as intervals and nanoseconds, become texts.
    """
    if isinstance(label, tuple | list):
        return [label_as_data(part) for part in label]
    value = label.item() if isinstance(label, np.generic) else label
    if value is None or (isinstance(value, str | bool | int) and not isinstance(value, Fold)):
        return value
    if isinstance(value, float) and value == value:
        return value
    for kind, type_, made_of in _KINDS:
        if isinstance(value, type_):
            shown = value.isoformat() if hasattr(value, "isoformat") else str(value)
            # Of times in nanoseconds, which pandas has, Python's own would lose the last digits.
            return {kind: shown} if made_of(shown) == value else shown
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


_FIRST_LINE = re.compile(rb"(.+) ([0-9]{1,9}) ([0-9a-f]{64})\n")

_LONGEST_LINE = 200
"""Bytes that are read in search of the end of the first line."""

_MOST_TIMES, _FREE = 8, 2**26
"""What the parsed JSON may take: this many times the file, and 64 MB."""


@dataclass(frozen=True)
class FileFormat:
    """A kind of file: what its first line says it is, what a user calls it, and what it can hold.

    Attributes
    ----------
    name : str
        Of the format, with which the file begins.
    version : int
        The version that is read and written.
    called : str
        What the file is called in messages, such as "fairpca model file".
    schema : Schema
        What it holds.
    """

    name: str
    version: int
    called: str
    schema: Schema

    def write(self, path: str | Path, source: dict[str, Any]) -> None:
        """Write a file, which is whole or not there."""
        parts = self.parts(source)
        with replacing(path) as file:
            file.writelines(parts)

    def parts(self, source: dict[str, Any]) -> list[bytes]:
        """What `write` writes, one after the other."""
        header, arrays = write_record(self.schema, source)
        shapes = {name: array.shape for name, array in arrays.items()}
        text = json.dumps({"fairpca": __version__, "arrays": shapes, **header})
        parts = [f"{text}\n".encode("ascii"), *(array.tobytes() for array in arrays.values())]
        checksum = hashlib.sha256()
        for part in parts:
            checksum.update(part)
        first = f"{self.name} {self.version} {checksum.hexdigest()}\n"
        return [first.encode("ascii"), *parts]

    def read(self, source: str | Path | bytes) -> dict[str, Any]:
        """What was written to a file, or packed; ValueError if that is not what is there."""
        shown = shown_source(source)
        with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as file:
            first = _FIRST_LINE.fullmatch(file.readline(_LONGEST_LINE))
            if first is None or first[1] != self.name.encode("ascii"):
                raise ValueError(f"{shown} is no {self.called}.")
            if int(first[2]) != self.version:
                raise ValueError(
                    f"{shown} has version {int(first[2])} of the format, and this fairpca reads "
                    f"version {self.version}: install a newer fairpca."
                )
            text, place = file.readline(), file.tell()
            data = np.empty(file.seek(0, io.SEEK_END) - place, dtype=np.uint8)
            file.seek(place)
            file.readinto(data.data)
        checksum = hashlib.sha256(text)
        checksum.update(data.data)
        with taking_for_damage(shown):
            written = checksum.hexdigest().encode("ascii") == first[3]
            require(written, "it is not what was written, or was cut short")
            require(text.isascii(), "its header has characters that are not written there")
            fits = _json_cost(text) <= _MOST_TIMES * (place + len(data)) + _FREE
            require(fits, "its header is too large for it")
            header = json.loads(text, parse_constant=_infinite)
            arrays, place = {}, 0
            for name, shape in header["arrays"].items():
                possible = all(type(n) is int and 0 <= n <= MOST_ROWS for n in shape)
                end = place + 8 * math.prod(shape) if possible else -1
                fits = place <= end <= len(data)
                require(fits, f"the shape of its array {quoted(name)} cannot be")
                arrays[name] = data[place:end].view(FLOATS).reshape(shape)
                place = end
            require(place == len(data), "it has more numbers than its arrays")
            found = read_record(self.schema, header, arrays, {})
            unknown = next(iter(arrays), None)
            require(unknown is None, f"its array {quoted(unknown)} is not known")
            return found


def shown_source(source: str | Path | bytes) -> str:
    """What a file, or bytes that are in none, are called in messages."""
    return "What was sent" if isinstance(source, bytes) else repr(str(source))


def _json_cost(text: bytes) -> int:
    """Bytes that JSON in ASCII takes when it is parsed, at the most.

    The bytes and their text, 240 for each object with its table, 64 for each key in it, 72 for each
    list, and what is between quotes or commas: 96 for a text, 40 for a number.
    """
    sizes = {b"{": 240, b":": 64, b"[": 72, b'"': 48, b",": 40}
    return 2 * len(text) + sum(size * text.count(mark) for mark, size in sizes.items())


def _infinite(text: str) -> float:
    """The number that JSON has no other way to write; "not a number" is refused."""
    if text == "NaN":
        raise UnfitError("its header has NaN in the place of a number")
    return float(text)

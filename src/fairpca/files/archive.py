"""Files without pickle: a line of text, a header in JSON on a line, and arrays of numbers.

The first line has the format, its version and the SHA-256 of all that follows, which guards against
damage. The header has the shapes of the arrays under ``arrays``, in their order, and the version of
the library that wrote the file under ``fairpca``. The numbers of each array follow, 8 bytes each.

A file is read as if its writer meant harm: nothing is evaluated, and nothing is taken in but the
file itself and its header as Python's objects, whose size is limited.
"""

import hashlib
import io
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._version import __version__
from fairpca.files.atomic import replacing
from fairpca.files.checks import MOST_ROWS, UnfitError, quoted, require, taking_for_damage
from fairpca.files.schema import FLOATS, Schema, read_record, write_record

_FIRST_LINE = re.compile(rb"(.+) ([0-9]{1,9}) ([0-9a-f]{64})\n")

_LONGEST_LINE = 200
"""Bytes that are read in search of the end of the first line."""

_MOST_AXES = 4
"""Axes of an array."""

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
        parts = self._parts(source)
        with replacing(path) as file:
            file.writelines(parts)

    def pack(self, source: dict[str, Any]) -> bytes:
        """What `write` would write, as bytes."""
        return b"".join(self._parts(source))

    def _parts(self, source: dict[str, Any]) -> list[bytes]:
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
                possible = len(shape) <= _MOST_AXES and all(
                    type(n) is int and 0 <= n <= MOST_ROWS for n in shape
                )
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

"""Files without pickle: a header in JSON and arrays with checksums, in an uncompressed zip archive.

``header.json`` begins with ``format``, ``version``, ``fairpca`` (the version of the library that
wrote the file) and ``checksums`` (SHA-256 of each array's ``.npy`` file, by name, against damage).
Each array is a ``.npy`` file of float64 or int64, so ``numpy.load(path)`` reads them too.

A file is read as if its writer meant harm, header first: the archive's directory, then the JSON,
then the head of each array, and no memory is taken before what is declared has been held against
the size of the file. Members that lie over one another, that nobody knows or that are there twice
are refused, so a load takes a small multiple of the file's size.
"""

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpca._version import __version__
from fairpca.files.atomic import replacing
from fairpca.files.checks import (
    UnfitError,
    checked_whole,
    quoted,
    require,
    taking_for_damage,
)

BYTES = "What was sent"
"""What bytes that are in no file are called in messages."""

FLOATS, COUNTS = "<f8", "<i8"
"""Types of arrays in files."""

_HEADER = "header.json"

_MOST_MEMBERS = 64
"""More members than any file of ours has."""

_PIECE = 2**17
"""Bytes that are read at once. The directory of an archive is one piece, so that one with very many
entries, of which each becomes an object, is never taken in."""

_LOCAL_HEAD = 30
"""Bytes before the name of a member of a zip archive, where it lies."""

_MOST_TIMES, _FREE = 8, 2**26
"""What the parsed JSON may take: this many times the file, and 64 MB."""

_ARRAY_HEAD = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '(<f8|<i8)', 'fortran_order': (False|True), "
    rb"'shape': \((|[0-9]{1,15},|[0-9]{1,15}(?:, [0-9]{1,15}){1,7})\), \} *\n",
    re.DOTALL,
)
"""The head of a ``.npy`` file as NumPy writes it; nothing else is evaluated."""


class _ForeignError(Exception):
    """The file is of another kind."""


@dataclass(frozen=True)
class FileFormat:
    """A kind of file: what its header says it is, what a user calls it, and what it can hold.

    Attributes
    ----------
    name : str
        What stands under ``format`` in the header.
    version : int
        The newest version that is read, and the one that is written.
    called : str
        What the file is called in messages, such as "fairpca model file".
    arrays : mapping of str to (str, int)
        The arrays that such a file can have, by name, with their types and numbers of axes.
    """

    name: str
    version: int
    called: str
    arrays: Mapping[str, tuple[str, int]]

    def write(self, path: str | Path, header: dict[str, Any], arrays: Mapping[str, Any]) -> None:
        """Write a file, which is whole or not there."""
        with replacing(path) as file:
            self._write_to(file, header, arrays)

    def pack(self, header: dict[str, Any], arrays: Mapping[str, Any]) -> bytes:
        """What `write` would write, as bytes."""
        buffer = io.BytesIO()
        self._write_to(buffer, header, arrays)
        return buffer.getvalue()

    def read(self, source: str | Path | bytes) -> tuple[dict[str, Any], dict[str, Any]]:
        """The header and the arrays of a file, or of what `pack` made.

        ValueError says that they are not what was written.
        """
        shown = shown_source(source)
        with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as file:
            try:
                with taking_for_damage(shown):
                    members, header = self._read_header(file)
                    version = checked_whole(header["version"], "version of the format", 1)
            except _ForeignError:
                raise ValueError(f"{shown} is no {self.called}.") from None
            if version > self.version:
                raise ValueError(
                    f"{shown} has version {version} of the format, and this fairpca reads up to "
                    f"{self.version}: install a newer fairpca."
                )
            with taking_for_damage(shown):
                return header, self._read_arrays(members, header["checksums"])

    def _read_header(self, file: BinaryIO) -> tuple[dict[str, Any], dict[str, Any]]:
        """The members of an archive that are arrays, by name, and its header."""
        if file.read(2) != b"PK":
            raise _ForeignError
        size = file.seek(0, io.SEEK_END)
        archive = zipfile.ZipFile(_InPieces(file))
        infos = archive.infolist()
        members = {info.filename: _Member(archive, info) for info in infos}
        stored = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
        if _HEADER not in members or not stored or len(infos) > _MOST_MEMBERS:
            raise _ForeignError
        require(len(members) == len(infos), "two of its parts have the same name")
        _check_places(infos, archive.start_dir)
        text = members.pop(_HEADER).read()
        require(text.isascii(), "its header has characters that are not written there")
        require(_json_cost(text) <= _MOST_TIMES * size + _FREE, "its header is too large for it")
        header = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
        if not isinstance(header, dict) or header.get("format") != self.name:
            raise _ForeignError
        return members, header

    def _read_arrays(self, members: dict[str, Any], sums: Any) -> dict[str, Any]:
        require(isinstance(sums, dict), "its checksums are no table")
        unknown = next((name for name in sums if name not in self.arrays), None)
        require(unknown is None, f"its array {quoted(unknown)} is not known")
        declared = {f"{name}.npy" for name in sums}
        require(declared == set(members), "some of its parts are missing or unknown")
        return {
            name: members[f"{name}.npy"].array(name, *self.arrays[name], sums[name])
            for name in sums
        }

    def _write_to(self, file: Any, header: dict[str, Any], arrays: Mapping[str, Any]) -> None:
        packed = {name: _packed(array, self.arrays[name][0]) for name, array in arrays.items()}
        head = {
            "format": self.name,
            "version": self.version,
            "fairpca": __version__,
            "checksums": {name: hashlib.sha256(data).hexdigest() for name, data in packed.items()},
            **header,
        }
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_HEADER, json.dumps(head, indent=1, allow_nan=False))
            for name, data in packed.items():
                archive.writestr(f"{name}.npy", data)


def shown_source(source: str | Path | bytes) -> str:
    """What a file, or bytes that are in none, are called in messages."""
    return BYTES if isinstance(source, bytes) else repr(str(source))


class _InPieces:
    """A file of which no more is read at once than a piece."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, n: int = -1) -> bytes:
        data = self._file.read(_PIECE + 1 if n < 0 else min(n, _PIECE + 1))
        require(len(data) <= _PIECE, "the list of its parts is too long")
        return data


@dataclass(frozen=True)
class _Member:
    """A member of an archive, whose size and place have been checked before it is read."""

    archive: zipfile.ZipFile
    info: zipfile.ZipInfo

    def read(self) -> bytearray:
        data = bytearray(self.info.file_size)
        room, place = memoryview(data), 0
        with self.archive.open(self.info) as opened:
            member: Any = opened
            while n := member.readinto(room[place : place + _PIECE]):
                place += n
        require(place == len(data), f"its part {quoted(self.info.filename)} is cut short")
        return data

    def array(self, name: str, type_: str, n_axes: int, checksum: object) -> NDArray[Any]:
        """The array, once its head agrees with what is known of it and with its size."""
        data = self.read()
        good = hashlib.sha256(data).hexdigest() == checksum
        require(good, f"its array {name} is not the one that was written")
        found = _ARRAY_HEAD.match(data)
        if found is None or found[2] != type_.encode():
            raise UnfitError(f"its array {name} is of another type than is written there")
        shape = tuple(int(n) for n in found[4].split(b",") if n.strip())
        fits = len(shape) == n_axes and found.end() + 8 * math.prod(shape) == len(data)
        fits &= int.from_bytes(found[1], "little") == found.end() - 10
        require(fits, f"the shape of its array {name} is not its size")
        values = np.frombuffer(data, type_, offset=found.end())
        return values.reshape(shape, order="F" if found[3] == b"True" else "C")


def _check_places(infos: list[zipfile.ZipInfo], end: int) -> None:
    """Refuse members that lie over one another or the directory, which begins at `end`.

    What is left cannot be larger than the file.
    """
    ordered = sorted(infos, key=lambda info: info.header_offset)
    ends = [*(info.header_offset for info in ordered[1:]), end]
    for info, limit in zip(ordered, ends, strict=True):
        plain = info.compress_size == info.file_size and not info.flag_bits & 1  # encrypted
        require(plain and info.header_offset >= 0, "the list of its parts is not as it is written")
        start = info.header_offset + _LOCAL_HEAD + len(info.filename)
        require(start + info.file_size <= limit, "its parts lie over one another")


def _json_cost(text: bytes | bytearray) -> int:
    """Bytes that JSON in ASCII takes when it is parsed, at the most.

    The bytes and their text, 240 for each object with its table, 64 for each key in it, 72 for each
    list, and what is between quotes or commas: 96 for a text, 40 for a number.
    """
    sizes = {b"{": 240, b":": 64, b"[": 72, b'"': 48, b",": 40}
    return 2 * len(text) + sum(size * text.count(mark) for mark, size in sizes.items())


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    require(len(made) == len(pairs), "a key is there twice in its header")
    return made


def _no_number(text: str) -> None:
    raise UnfitError(f"its header has {text} in the place of a number")


def _packed(array: ArrayLike, type_: str) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array, dtype=type_), allow_pickle=False)
    return buffer.getvalue()

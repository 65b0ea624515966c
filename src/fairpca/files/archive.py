"""Files without pickle: a header in JSON and arrays with checksums, in an uncompressed zip archive.

``header.json`` begins with ``format``, ``version``, ``fairpca`` (the version of the library that
wrote the file) and ``checksums`` (SHA-256 of each array's ``.npy`` file, by name, against damage).
Each array is a ``.npy`` file of float64 or int64, so ``numpy.load(path)`` reads them too.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairpca._version import __version__
from fairpca.files.atomic import replacing

BYTES = "What was sent"
"""What bytes that are in no file are called in messages."""

_HEADER = "header.json"
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,  # what zipfile says of compression that it does not know
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)
"""What reading a damaged file can raise."""


@dataclass(frozen=True)
class FileFormat:
    """A kind of file: what its header says it is, and what a user calls it.

    Attributes
    ----------
    name : str
        What stands under ``format`` in the header.
    version : int
        The newest version that is read, and the one that is written.
    called : str
        What the file is called in messages, such as "fairpca model file".
    """

    name: str
    version: int
    called: str

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
        shown = BYTES if isinstance(source, bytes) else repr(str(source))
        with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as file:
            try:
                if file.read(2) != b"PK":
                    raise KeyError("other beginning")
                # Read without unpacking, so that no small file can become a huge one.
                with zipfile.ZipFile(file) as archive:
                    infos = archive.infolist()
                    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
                        raise KeyError("compressed")
                    members = {info.filename: archive.read(info) for info in infos}
                header = json.loads(members[_HEADER])
                if header["format"] != self.name:
                    raise KeyError("other format")
                version = int(header["version"])
            except KeyError:
                raise ValueError(f"{shown} is no {self.called}.") from None
            except _DAMAGE as error:
                raise ValueError(f"{shown} is damaged or cut short, and cannot be read.") from error
        if version > self.version:
            raise ValueError(
                f"{shown} has version {version} of the format, and this fairpca reads up to "
                f"{self.version}: install a newer fairpca."
            )
        with taking_for_damage(shown):
            arrays = {}
            for name, checksum in header["checksums"].items():
                data = members[f"{name}.npy"]
                if hashlib.sha256(data).hexdigest() != checksum:
                    raise ValueError(f"the array {name} is not the one that was written")
                arrays[name] = np.load(io.BytesIO(data), allow_pickle=False)
                if arrays[name].dtype not in (np.float64, np.int64):
                    raise ValueError("an array is neither of float64 nor of int64")
        return header, arrays

    def _write_to(self, file: Any, header: dict[str, Any], arrays: Mapping[str, Any]) -> None:
        packed = {name: _packed(array) for name, array in arrays.items()}
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


@contextmanager
def taking_for_damage(shown: str) -> Iterator[None]:
    """Take whatever fails in the body, which puts a file's parts together, for damage to it."""
    try:
        yield
    except _DAMAGE as error:
        raise ValueError(f"{shown} is damaged: its parts do not fit together.") from error


def _packed(array: ArrayLike) -> bytes:
    buffer = io.BytesIO()
    values = np.asarray(array)
    dtype = "<i8" if values.dtype.kind in "iu" else "<f8"
    np.save(buffer, np.ascontiguousarray(values, dtype=dtype), allow_pickle=False)
    return buffer.getvalue()

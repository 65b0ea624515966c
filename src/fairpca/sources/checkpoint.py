"""Checkpoints: the moments of the files that have been read, and which files these are."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairpca.files import moments_file as _moments_file
from fairpca.files.checks import (
    checked_texts,
    checked_type,
    quoted,
    require,
    taking_for_damage,
)
from fairpca.moments import GroupMoments, MomentSum
from fairpca.tables.columns import ColumnChoice, Columns
from fairpca.tables.reading import TableFile

_PATIENCE = 5.0
"""Seconds between two writes, at the least: large moments are not to be written all the time."""


class Pass:
    """The sum of a pass over files, which a checkpoint may keep.

    What is written is always the moments of whole files.
    """

    def __init__(
        self, path: str | Path | None, choice: ColumnChoice, missing_labels: str, folds: bool
    ) -> None:
        self.total = MomentSum()
        self.columns: Columns | None = None
        self._path = path
        self._asked = {**_as_data(choice), "missing_labels": missing_labels, "folds": folds}
        self._done: dict[str, TableFile] = {}
        self._written = time.monotonic()
        self._dirty = False
        if path is not None and Path(path).exists():
            self._resume(Path(path))

    def _resume(self, path: Path) -> None:
        stored, reading = _moments_file.read(path)
        if reading is None:
            raise ValueError(f"{str(path)!r} holds moments, but is no checkpoint of a pass.")
        if reading.get("asked") != self._asked:
            raise ValueError(
                f"The checkpoint {str(path)!r} is of a pass with other columns or options: give "
                "the same ones, or another checkpoint."
            )
        with taking_for_damage(repr(str(path))):
            self._done = _checked_files(reading["files"])
            self.columns = _checked_columns(reading["columns"], stored.mean.shape[1])
            self.total.add(GroupMoments(**vars(stored)))

    def left(self, files: list[TableFile]) -> list[TableFile]:
        """The files that have not been read; those that have must be there as they were."""
        present = {str(file.path): file for file in files}
        for name, file in self._done.items():
            if name not in present:
                raise ValueError(
                    f"The checkpoint {str(self._path)!r} has moments of {name!r}, which is not "
                    "among the files now: start with another checkpoint."
                )
            if present[name] != file:
                raise ValueError(
                    f"{name!r} has changed since the checkpoint {str(self._path)!r} took it in: "
                    "start with another checkpoint."
                )
        return [file for name, file in present.items() if name not in self._done]

    def add(self, file: TableFile, moments: GroupMoments) -> None:
        """Take in the moments of a whole file."""
        self.total.add(moments)
        self._done[str(file.path)] = file
        self._dirty = True
        if time.monotonic() - self._written > _PATIENCE:
            self.write()

    def write(self) -> None:
        """Write the checkpoint, if there is one and anything new."""
        if self._path is None or not self._dirty or self.columns is None:
            return
        reading = {
            "asked": self._asked,
            "columns": _as_data(self.columns),
            "files": [[str(f.path), f.size, f.changed_ns] for f in self._done.values()],
        }
        _moments_file.write(self._path, self.total.moments(), reading)
        self._written, self._dirty = time.monotonic(), False


def _as_data(record: ColumnChoice | Columns) -> dict[str, Any]:
    """The record as JSON has it."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(record).items()}


def _checked_files(stored: Any) -> dict[str, TableFile]:
    """The files that were read, by name."""
    require(isinstance(stored, list), "its list of files read is no list")
    for file in stored:
        types = [type(part) for part in file] if isinstance(file, list) else []
        good = types == [str, int, int] and file[1] >= 0
        require(good, f"{quoted(file)} is no name, size and date of a file that was read")
    checked_texts([name for name, _, _ in stored], "names of files read")
    return {name: TableFile(Path(name), size, changed) for name, size, changed in stored}


def _checked_columns(stored: dict[str, Any], n_features: int) -> Columns:
    """The columns that were read, which are those of the moments."""
    weight = stored["weight"]
    require(weight is None or isinstance(weight, str), "the name of its weights is no text")
    return Columns(
        checked_texts(stored["features"], "columns that were read", n_features),
        checked_texts(stored["sensitive"], "sensitive columns"),
        weight,
        checked_type(stored["all_numeric"], "entry all_numeric", bool, "true or false"),
    )

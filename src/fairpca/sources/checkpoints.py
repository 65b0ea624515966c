"""Checkpoints: the moments of the files that have been read, and which files these are."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import pyarrow

from fairpca.choices import READABLE
from fairpca.files import moments_file as _moments_file
from fairpca.files.checks import checked_texts, quoted, require, taking_for_damage
from fairpca.moments import GroupMoments, MomentSum
from fairpca.sources.record_batches import Batch
from fairpca.tables.column_checks import ColumnSummary
from fairpca.tables.columns import MOST_NAMES, ColumnChoice, Columns, TableError, encoded_text
from fairpca.tables.reading import CsvFile, TableFile, batch_rows, cut, suffix_of
from fairpca.text import listed

# Work on items in threads while further items are being read, with results in their order.

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], n_threads: int
) -> Generator[Result, None, None]:
    """Yield ``work(item)`` for each item, in order; few items are held at a time.

    Results depend neither on the number of threads nor on their speed. If the items fail to come,
    the results of those that came are yielded first.
    """
    pending: deque[Future[Result]] = deque()
    trouble: BaseException | None = None
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            source = iter(items)
            while trouble is None:
                try:
                    item = next(source)
                except StopIteration:
                    break
                except BaseException as error:  # Ctrl-C, too
                    trouble = error
                    break
                pending.append(pool.submit(work, item))
                del item  # so that its memory can go as soon as it has been worked on
                if len(pending) > n_threads + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
    if trouble is not None:
        raise trouble


# Columns that are no numbers because of a slip, and would be left out without a word.


def refuse_slips(table: Any, known: Collection[str]) -> None:
    """Raise TableError if a text column of a CSV file is meant as numbers, by its first rows.

    Parameters
    ----------
    table : CsvFile, ParquetFile or ArrowFile
        The types of the others are written in the file, and hold.
    known : collection of str
        Columns that are read, whatever they look like.
    """
    if not isinstance(table, CsvFile):
        return
    texts = [field.name for field in table.schema if field.name not in known]
    if not texts:
        return
    batch, _ = next(table.batches(texts))
    for name in texts:
        column = batch.column(name)
        if encoded_text(column, name) is None:
            continue
        summary = ColumnSummary(name, places=table.places)
        summary.see(column)
        slip = summary.slip()
        if slip is not None:
            raise TableError(slip.problem, "correct that, or name the features")


# Which files a path, a folder or a list of them means.


def list_files(source: str | Path | Sequence[str | Path]) -> list[TableFile]:
    """The files of a path, a folder with all its subfolders, or a list of them."""
    paths = [source] if isinstance(source, str | os.PathLike) else source
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            below = sorted(each for each in path.rglob("*") if each.is_file())
            inside = [  # neither hidden nor with "_" in front
                each
                for each in below
                if not any(part.startswith((".", "_")) for part in each.relative_to(path).parts)
            ]
            if not inside:
                raise ValueError(f"The folder {str(path)!r} has no files.")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise FileNotFoundError(f"There is no file or folder {str(path)!r}.")
    unknown = [str(path) for path in found if not suffix_of(path)]
    if unknown:
        raise ValueError(
            f"Files must end in one of {listed(READABLE)}: {listed(unknown, MOST_NAMES)}; pass a "
            "list of the files that are meant."
        )
    found = [Path(os.path.abspath(path)) for path in found]
    repeated = [str(path) for path in dict.fromkeys(found) if found.count(path) > 1]
    if repeated:
        raise ValueError(f"Files are named twice: {listed(repeated, MOST_NAMES)}.")
    return [TableFile.of(path) for path in found]


def file_batches(
    files: Iterable[TableFile], choice: ColumnChoice, columns: Columns | None = None
) -> Iterator[tuple[Batch, TableFile, float]]:
    """The batches of files, each with its file and the share of it that has been read.

    `columns` are those of earlier files, where there were any; otherwise the first file says which
    they are. A file without rows has no batches.
    """
    for file in files:
        table, n_rows = file.open(), 0
        with file.naming():
            if table.is_empty:  # a head alone does not say which columns are numeric
                continue
            found = choice.columns(table.schema, columns)
            if columns is None and found.all_numeric:
                refuse_slips(table, found.names)
            columns = found
            for batch, share in table.batches(columns.names, columns.types(table.schema)):
                yield Batch(batch, columns, file.shown, n_rows), file, share
                n_rows += batch.num_rows
        file.check_unchanged()


# Tables that are no files: whatever gives Arrow record batches, a part at a time.


def stream_batches(source: Any) -> tuple[Iterator[Any], int]:
    """The record batches of a source, and its number of rows, or 0 where that is not known."""
    total = 0
    parts: Iterable[Any]
    if isinstance(source, pyarrow.Table | pyarrow.RecordBatch):
        parts, total = [source], source.num_rows
    elif hasattr(source, "to_batches"):  # a Dataset or Scanner of pyarrow
        if hasattr(source, "schema") and hasattr(source, "scanner"):
            # As little as possible is read ahead: a dataset's own choice takes gigabytes.
            source = source.scanner(
                batch_size=batch_rows(len(source.schema)), batch_readahead=2, fragment_readahead=1
            )
        parts = source.to_batches()
    elif hasattr(source, "iloc"):  # pandas, in slices: all of it would be a copy in memory
        step, total = batch_rows(source.shape[1]), len(source)
        slices = (source.iloc[start : start + step] for start in range(0, total, step))
        parts = (pyarrow.Table.from_pandas(rows, preserve_index=False) for rows in slices)
    elif hasattr(source, "collect"):
        if not hasattr(source, "collect_batches"):
            raise ValueError(
                f"A {type(source).__name__} of this version does not give its rows in parts: "
                "collect() it first, or install a newer Polars."
            )
        parts = (rows.to_arrow() for rows in source.collect_batches(maintain_order=True))
    elif hasattr(source, "slice") and hasattr(source, "to_arrow"):  # Polars
        step, total = batch_rows(source.width), source.height
        parts = (source.slice(start, step).to_arrow() for start in range(0, total, step))
    elif hasattr(source, "to_arrow_reader"):  # DuckDB
        parts = source.to_arrow_reader(2**16)
    elif hasattr(source, "fetch_arrow_reader"):  # an old DuckDB
        parts = source.fetch_arrow_reader(2**16)
    elif hasattr(source, "__arrow_c_stream__"):  # RecordBatchReader and many others
        parts = pyarrow.RecordBatchReader.from_stream(source)
    elif isinstance(source, Iterable) and not isinstance(source, dict):
        parts = (batch for part in source for batch in stream_batches(part)[0])
    else:
        raise TypeError(
            f"A {type(source).__name__} is no source of tables: pass a file, a folder, a data "
            "frame, or what gives Arrow record batches."
        )
    batches = (
        batch
        for part in parts
        for batch in (part.to_batches() if isinstance(part, pyarrow.Table) else [part])
    )
    return (piece for batch in batches for piece in cut(batch)), total


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
        self._path, self._choice = path, choice
        asked = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(choice).items()}
        self._asked = {**asked, "missing_labels": missing_labels, "folds": folds}
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
            files = reading["files"]
            require(isinstance(files, list), "its list of files read is no list")
            for file in files:
                types = [type(part) for part in file] if isinstance(file, list) else []
                good = types == [str, int, int] and file[1] >= 0
                require(good, f"{quoted(file)} is no name, size and date of a file that was read")
            checked_texts([name for name, _, _ in files], "names of files read")
            self._done = {name: TableFile(Path(name), *found) for name, *found in files}
            features, choice = stored["feature_names"], self._choice
            require(features is not None, "its columns have no names")
            named = choice.sensitive, choice.weight, choice.features is None
            self.columns = Columns(features, *named)
            self.total.add(GroupMoments(**stored))

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
        if self._path is None or not self._dirty:
            return
        reading = {
            "asked": self._asked,
            "files": [[str(f.path), f.size, f.changed_ns] for f in self._done.values()],
        }
        _moments_file.write(self._path, self.total.moments(), reading)
        self._written, self._dirty = time.monotonic(), False

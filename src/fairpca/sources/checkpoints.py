"""Files and streams: batches, their sums in threads, and checkpoints of what has been read."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import pyarrow

from fairpca._linalg.threads import one_blas_thread
from fairpca.choices import READABLE
from fairpca.files import moments_file as _moments_file
from fairpca.files.archive import checked_texts, require, taking_for_damage
from fairpca.groups import check_number_of_groups
from fairpca.moments import GroupMoments, MomentSum
from fairpca.moments.sums import worker_threads
from fairpca.sources.record_batches import Batch, batch_moments
from fairpca.tables.column_checks import ColumnSummary
from fairpca.tables.columns import ColumnChoice, Columns, TableError, encoded_text
from fairpca.tables.reading import CsvFile, TableFile, batch_rows, cut, suffix_of
from fairpca.text import MOST_NAMES, listed
from fairpca.validation import Progress

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
        summary = ColumnSummary(name)
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


def stream_batches(source: Any) -> Iterator[Any]:
    """The record batches of a source, in parts that are not too large."""
    parts: Iterable[Any]
    if isinstance(source, pyarrow.Table | pyarrow.RecordBatch):
        parts = [source]
    elif hasattr(source, "scanner") and hasattr(source, "schema"):  # a Dataset of pyarrow
        # As little as possible is read ahead: a dataset's own choice takes gigabytes.
        size = batch_rows(len(source.schema))
        scanner = source.scanner(batch_size=size, batch_readahead=2, fragment_readahead=1)
        parts = scanner.to_batches()
    elif hasattr(source, "to_batches"):  # a Scanner of pyarrow
        parts = source.to_batches()
    elif hasattr(source, "iloc"):  # pandas, in slices: all of it would be a copy in memory
        step = batch_rows(source.shape[1])
        slices = (source.iloc[start : start + step] for start in range(0, len(source), step))
        parts = (pyarrow.Table.from_pandas(rows, preserve_index=False) for rows in slices)
    elif hasattr(source, "collect_batches"):  # a lazy frame of Polars
        parts = (rows.to_arrow() for rows in source.collect_batches(maintain_order=True))
    elif hasattr(source, "to_arrow_reader"):  # DuckDB
        parts = source.to_arrow_reader(2**16)
    elif hasattr(source, "__arrow_c_stream__"):  # Polars, RecordBatchReader and many others
        parts = pyarrow.RecordBatchReader.from_stream(source)
    elif isinstance(source, Iterable) and not isinstance(source, dict):
        parts = (batch for part in source for batch in stream_batches(part))
    else:
        raise TypeError(
            f"A {type(source).__name__} is no source of tables: pass a file, a folder, a data "
            "frame, or what gives Arrow record batches."
        )
    for part in parts:
        for batch in part.to_batches() if isinstance(part, pyarrow.Table) else [part]:
            yield from cut(batch)


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
        self._asked = repr((choice, missing_labels, folds))
        self._done: dict[str, TableFile] = {}
        self._written = time.monotonic()
        if path is not None and Path(path).exists():
            self._resume(Path(path))

    def _resume(self, path: Path) -> None:
        stored, reading = _moments_file.read(path)
        if reading is None:
            raise ValueError(f"{str(path)!r} holds moments, but is no checkpoint of a pass.")
        if reading["asked"] != self._asked:
            raise ValueError(
                f"The checkpoint {str(path)!r} is of a pass with other columns or options: give "
                "the same ones, or another checkpoint."
            )
        with taking_for_damage(repr(str(path))):
            names = checked_texts([file["name"] for file in reading["files"]], "files read")
            for name, file in zip(names, reading["files"], strict=True):
                self._done[name] = TableFile(Path(name), file["size"], int(file["changed_ns"]))
            features, choice = stored["feature_names"], self._choice
            require(features is not None, "its columns have no names")
            named = choice.sensitive, choice.weight, choice.features is None
            self.columns = Columns(features, *named)
            self.total.add(GroupMoments(**stored))

    def left(self, files: list[TableFile]) -> list[TableFile]:
        """The files that have not been read; those that have must be there as they were."""
        present = {str(file.path): file for file in files}
        for name, file in self._done.items():
            if present.get(name) != file:
                raise ValueError(
                    f"The checkpoint {str(self._path)!r} has moments of {name!r}, which has "
                    "changed or is not among the files now: start with another checkpoint."
                )
        return [file for name, file in present.items() if name not in self._done]

    def add(self, file: TableFile, moments: GroupMoments) -> None:
        """Take in the moments of a whole file."""
        self.total.add(moments)
        self._done[str(file.path)] = file
        if time.monotonic() - self._written > _PATIENCE:
            self.write()

    def write(self) -> None:
        """Write the checkpoint, if there is one and anything has been read."""
        if self._path is None or not self._done:
            return
        files = [
            {"name": name, "size": file.size, "changed_ns": str(file.changed_ns)}
            for name, file in self._done.items()
        ]
        _moments_file.write(
            self._path, self.total.moments(), {"asked": self._asked, "files": files}
        )
        self._written = time.monotonic()


def read_files(
    source: Any,
    choice: ColumnChoice,
    options: tuple[str, bool],
    checkpoint: str | Path | None,
    progress: Progress | None,
) -> MomentSum:
    """The sum over files, of which a checkpoint may have some."""
    files = list_files(source)
    if not files:
        raise ValueError("The list of files is empty.")
    reading = Pass(checkpoint, choice, *options)
    left = reading.left(files)
    size = sum(file.size for file in files)
    read = size - sum(file.size for file in left)

    def items() -> Iterator[Any]:
        """Batches, and each file after its last one."""
        nonlocal read
        for file in left:
            for batch, _, share in file_batches([file], choice, reading.columns):
                reading.columns = batch.columns
                yield batch
                if progress is not None:
                    progress(f"reading {file.path.name}", read + int(share * file.size), size)
            read += file.size
            yield file

    part = MomentSum()
    try:
        for item in _summed(items(), options):
            if isinstance(item, TableFile):
                if part.n_groups or part.n_dropped:
                    reading.add(item, part.moments())
                part = MomentSum()
            else:
                part.add(item)
            check_number_of_groups(max(part.n_groups, reading.total.n_groups))
    finally:
        reading.write()
    return reading.total


def read_stream(
    source: Any, choice: ColumnChoice, options: tuple[str, bool], progress: Progress | None
) -> MomentSum:
    """The sum over the tables of a source that is no file."""

    def items() -> Iterator[Batch]:
        columns, done = None, 0
        for batch in stream_batches(source):
            columns = choice.columns(batch.schema, columns)
            yield Batch(batch.select(columns.names), columns, "", done)
            done += batch.num_rows
            if progress is not None:
                progress("reading rows", done, 0)

    found = MomentSum()
    for moments in _summed(items(), options):
        found.add(moments)
        check_number_of_groups(found.n_groups)
    return found


def _summed(items: Iterator[Any], options: tuple[str, bool]) -> Iterator[Any]:
    """Moments in place of the batches among the items; other items as they are.

    The options are those of `batch_moments`.
    """

    def work(item: Any) -> Any:
        return batch_moments(item, *options) if isinstance(item, Batch) else item

    first = next(items, None)
    if first is None:
        return
    d = len(first.columns.features) if isinstance(first, Batch) else 1
    n_threads = worker_threads(d)
    with one_blas_thread() if n_threads > 1 else nullcontext():
        yield from in_order(work, chain([first], items), n_threads)

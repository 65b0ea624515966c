"""read_moments: one pass over a source, in little memory: on all cores here, or on a cluster.

transform_distributed leaves the rows of Dask and Spark where they are.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import pyarrow
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.backends import cluster_library
from fairpca._linalg.threads import one_blas_thread
from fairpca.choices import READABLE
from fairpca.files import checks as file_checks
from fairpca.files import moments_file as _moments_file
from fairpca.files.checks import (
    checked_texts,
    checked_type,
    require,
    taking_for_damage,
)
from fairpca.folds import as_tuple
from fairpca.groups import MISSING_LABELS, check_number_of_groups, warn_of_alike, warn_of_dropped
from fairpca.moments import GroupMoments, MomentSum
from fairpca.moments.sums import worker_threads
from fairpca.tables.columns import MOST_NAMES, ColumnChoice, Columns, encoded_text, quoted
from fairpca.tables.csv_files import CsvFile
from fairpca.tables.looks import Judge
from fairpca.tables.reading import TableFile, batch_rows, cut, suffix_of
from fairpca.tables.refusals import TableError
from fairpca.tables.summaries import ColumnSummary
from fairpca.text import listed
from fairpca.validation import Progress, check_choice

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
    judge = Judge(places=table.places)
    for name in texts:
        column = batch.column(name)
        if encoded_text(column, name) is None:
            continue
        summary = ColumnSummary(name)
        summary.see(column)
        try:
            judge.numbers(name, summary.looks, summary.texts)
        except TableError as error:
            raise TableError(error.problem, "correct that, or name the features") from error


# Which files a path, a folder or a list of them means.


def list_files(source: str | Path | Sequence[str | Path]) -> list[TableFile]:
    """The files of a path, a folder with all its subfolders, or a list of them."""
    paths = [source] if isinstance(source, str | os.PathLike) else source
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = _folder(path)
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


def _folder(folder: Path) -> list[Path]:
    """Its files in the order of their names, without those that are hidden or begin with "_"."""
    inside = sorted(path for path in folder.rglob("*") if path.is_file())
    return [
        path
        for path in inside
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]


# Tables that are no files: whatever gives Arrow record batches, a part at a time.


def stream_batches(source: Any) -> tuple[Iterator[Any], int]:
    """The record batches of a source, and its number of rows, or 0 where that is not known."""
    if isinstance(source, pyarrow.Table | pyarrow.RecordBatch):
        return _of_arrow(source), source.num_rows
    if hasattr(source, "to_batches"):  # a Dataset or Scanner of pyarrow
        return _of_dataset(source), 0
    if hasattr(source, "iloc"):  # pandas, in slices: all of it would be a copy in memory
        return _of_pandas(source), len(source)
    if hasattr(source, "collect"):
        return _of_lazy_frame(source), 0
    if hasattr(source, "slice") and hasattr(source, "to_arrow"):  # Polars
        step = batch_rows(source.width)
        parts = (source.slice(i, step).to_arrow() for i in range(0, source.height, step))
        return (batch for part in parts for batch in _of_arrow(part)), source.height
    for name in ("to_arrow_reader", "fetch_arrow_reader"):  # DuckDB, new and old
        if hasattr(source, name):
            return _of_reader(getattr(source, name)(2**16)), 0
    if hasattr(source, "__arrow_c_stream__"):  # RecordBatchReader and many others
        return _of_reader(pyarrow.RecordBatchReader.from_stream(source)), 0
    if isinstance(source, Iterable) and not isinstance(source, dict):
        return _of_parts(source), 0
    raise TypeError(
        f"A {type(source).__name__} is no source of tables: pass a file, a folder, a data frame, "
        "or what gives Arrow record batches."
    )


def _of_arrow(table: Any) -> Iterator[Any]:
    batches = table.to_batches() if isinstance(table, pyarrow.Table) else [table]
    for batch in batches:
        yield from cut(batch)


def _of_reader(reader: Iterable[Any]) -> Iterator[Any]:
    for batch in reader:
        yield from cut(batch)


def _of_dataset(source: Any) -> Iterator[Any]:
    if hasattr(source, "schema") and hasattr(source, "scanner"):
        # As little as possible is read ahead: a dataset's own choice takes gigabytes.
        source = source.scanner(
            batch_size=batch_rows(len(source.schema)), batch_readahead=2, fragment_readahead=1
        )
    yield from _of_reader(source.to_batches())


def _of_pandas(frame: Any) -> Iterator[Any]:
    step = batch_rows(frame.shape[1])
    for start in range(0, len(frame), step):
        part = frame.iloc[start : start + step]
        yield from _of_arrow(pyarrow.Table.from_pandas(part, preserve_index=False))


def _of_lazy_frame(source: Any) -> Iterator[Any]:
    if not hasattr(source, "collect_batches"):
        raise ValueError(
            f"A {type(source).__name__} of this version does not give its rows in parts: collect() "
            "it first, or install a newer Polars."
        )
    for part in source.collect_batches(maintain_order=True):
        yield from _of_arrow(part.to_arrow())


def _of_parts(parts: Iterable[Any]) -> Iterator[Any]:
    for part in parts:
        batches, _ = stream_batches(part)
        yield from batches


# Checkpoints: the moments of the files that have been read, and which files these are.

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
        require(
            good, f"{file_checks.quoted(file)} is no name, size and date of a file that was read"
        )
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


def read_moments(
    source: Any,
    *,
    sensitive_features: Any = None,
    features: Sequence[str] | None = None,
    sample_weight: Any = None,
    keep_sensitive: bool = False,
    missing_labels: str = "error",
    folds: bool = False,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> GroupMoments:
    """Moments of a table that need not fit into memory, by group.

    The source is read once, a batch of rows at a time, while the cores sum those before it. Of what
    is on a cluster, each partition is summed where it lies, and nothing but moments leaves it.
    ``FairPCA.fit_moments`` makes the model; it is that of ``FairPCA.fit`` on all rows.

    Parameters
    ----------
    source : path, list of paths, or table
        Files that end in .parquet, .csv, .csv.gz, .arrow or .feather; folders with such files,
        in subfolders too (names that begin with "." or "_" are left out); a data frame of pandas
        or Polars, also a lazy one; a Table, RecordBatchReader, Dataset or Scanner of pyarrow;
        a DuckDB relation or anything else with ``__arrow_c_stream__``; or an iterable of these.
        Or an array or data frame of Dask, or a data frame of Spark (classic or Connect).
    sensitive_features : str or sequence of str, default=None
        The column that makes the groups; several make groups of their intersections. In CSV files
        labels are text, as nothing there says otherwise, and only an empty cell is missing. With
        Dask also an array, series or data frame with the same rows in the same partitions.
    features : sequence of str, default=None
        The columns to reduce, numeric and without missing values. None takes all numeric ones of
        the first table that are not named otherwise, and refuses further tables with more, and
        columns of CSV files that nearly are, because of a slip; of a
        Dask data frame all columns, where groups and weights are not given by name.
    sample_weight : str, default=None
        The column with non-negative weights of the rows. With Dask also an array or series.
    keep_sensitive : bool, default=False
        Whether the sensitive columns that are numeric are among the features where these are not
        named.
    missing_labels : {"error", "group", "drop"}, default="error"
        Whether missing sensitive features are an error or a group of their own, or their rows are
        left out, with a warning.
    folds : bool, default=False
        Whether each group is kept in five parts, as ``FairPCA(shrinkage="auto")`` needs it.
    checkpoint : str or Path, default=None
        A file of moments to keep what has been read of several files, written at least every few
        seconds between files and whenever the pass ends, by an error or Ctrl-C too. A pass that
        finds one goes on from there. Files it has must be there unchanged; further ones may come.
    progress : callable, default=None
        Called as ``progress(what, done, total)``: bytes where the source is files, else rows, with
        a total of 0 where that is not known. Clusters have their own ways to show it.

    Returns
    -------
    GroupMoments

    Raises
    ------
    ValueError
        If a table cannot be read, lacks a column, has other columns than the first, text where
        numbers belong, or missing values; the sentence names the file or the partition.

    See Also
    --------
    fairpca.GroupMoments : What is read.
    fairpca.sources.RowBatches : The rows themselves.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_credit
    >>> from fairpca.sources import read_moments
    >>> credit = load_credit()
    >>> frame = credit.data.assign(group=credit.sensitive_features)
    >>> moments = read_moments(frame, sensitive_features="group")
    >>> fair = FairPCA(3).fit_moments(moments)
    >>> fair.certificate_.status
    'optimal'
    """
    check_choice("missing_labels", missing_labels, MISSING_LABELS)
    paths = (source,) if isinstance(source, str | os.PathLike) else source
    is_files = isinstance(paths, list | tuple) and all(
        isinstance(path, str | os.PathLike) for path in paths
    )
    if checkpoint is not None and not is_files:
        raise ValueError("A checkpoint can only be kept of files.")
    library = cluster_library(source)
    if library is not None:
        from fairpca.sources import dask, spark

        prepare_data: Any = (dask if library == "dask" else spark).moments
        total = MomentSum()
        columns = (sensitive_features, features, sample_weight, keep_sensitive)
        for part in prepare_data(source, *columns, missing_labels, folds):
            total.add(part)
            check_number_of_groups(total.n_groups)
    else:
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ImportError(
                "Files and Arrow streams need pyarrow: install `fairpca[files]`."
            ) from error
        choice = ColumnChoice.of(features, sensitive_features, sample_weight, keep_sensitive)
        if is_files:
            total = _read_files(source, choice, (missing_labels, folds), checkpoint, progress)
        else:
            total = _read_stream(source, choice, (missing_labels, folds), progress)
    if total.n_groups == 0:
        raise ValueError("There are no rows, or none with a positive weight and a label.")
    moments = total.moments()
    warn_of_alike(zip(*map(as_tuple, moments.labels), strict=True))
    if moments.n_dropped:
        warn_of_dropped(moments.n_dropped, moments.n_dropped + moments.n_rows)
    return moments


def transform_distributed(fair: Any, X: Any, *, keep: str | Sequence[str] = ()) -> Any:
    """The rows of Dask or Spark, projected on the components where they lie.

    Nothing is computed until the rows are asked for. ``fair.transform(X)`` is the same with no
    other columns.

    Parameters
    ----------
    fair : FairPCA
        Fitted. Columns of data frames are taken by the names that they had at the fit.
    X : array or data frame of Dask, or data frame of Spark
        Of Spark, of a classic session or of Spark Connect.
    keep : str or sequence of str, default=()
        Other columns of a data frame to keep, before the reduced ones.

    Returns
    -------
    array or data frame, of the same library
        Of a data frame, the columns to keep and those that ``fair.get_feature_names_out()`` names.

    See Also
    --------
    fairpca.sources.read_moments : Reads what `FairPCA.fit_moments` takes.

    Examples
    --------
    >>> import dask.dataframe
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_credit
    >>> from fairpca.sources import transform_distributed
    >>> credit = load_credit()
    >>> frame = dask.dataframe.from_pandas(credit.data.assign(group=1), npartitions=4)
    >>> fair = FairPCA(2).fit(credit.data, sensitive_features=credit.sensitive_features)
    >>> list(transform_distributed(fair, frame, keep="group").columns)
    ['group', 'fairpca0', 'fairpca1']
    """
    library = cluster_library(X)
    if library is None:
        raise TypeError(f"X must be of Dask or Spark, not a {type(X).__name__}.")
    check_is_fitted(fair)
    kept = [keep] if isinstance(keep, str) else list(keep)
    lower = {name.lower() for name in kept}  # Spark does not tell them apart
    taken = [name for name in map(str, fair.get_feature_names_out()) if name.lower() in lower]
    if taken:
        raise ValueError(f"Columns to keep have names of reduced ones: {quoted(taken)}.")
    from fairpca.sources import dask, spark

    return (dask if library == "dask" else spark).transform(fair, X, kept)


def _read_files(
    source: Any,
    choice: ColumnChoice,
    options: tuple[str, bool],
    checkpoint: str | Path | None,
    progress: Progress | None,
) -> MomentSum:
    from fairpca.sources.blocks import Batch
    from fairpca.sources.reading import Pass, list_files, refuse_slips
    from fairpca.tables.csv_files import CsvRules
    from fairpca.tables.reading import TableFile

    files = list_files(source)
    if not files:
        raise ValueError("The list of files is empty.")
    reading = Pass(checkpoint, choice, *options)
    left = reading.left(files)
    size = sum(file.size for file in files)
    read = size - sum(file.size for file in left)

    def batches(file: TableFile) -> Iterator[tuple[Any, Any, float]]:
        # Names that are given may have any white space.
        given = {*choice.sensitive, *(choice.features or ()), choice.weight or ""}
        table = file.open(rules=CsvRules(names=given))
        with file.naming():
            if table.is_empty:  # a head alone does not say which columns are numeric
                return
            first = reading.columns is None
            reading.columns = columns = choice.columns(table.schema, reading.columns)
            if first and columns.all_numeric:
                refuse_slips(table, columns.names)
            for batch, share in table.batches(columns.names, columns.types(table.schema)):
                yield batch, columns, share

    def items() -> Iterator[Batch | TableFile]:
        """Batches, and each file after its last one."""
        nonlocal read
        for file in left:
            rows = 0
            for batch, columns, share in batches(file):
                yield Batch(batch, columns, file.shown, rows)
                rows += batch.num_rows
                if progress is not None:
                    progress(f"reading {file.path.name}", read + int(share * file.size), size)
            file.check_unchanged()
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


def _read_stream(
    source: Any, choice: ColumnChoice, options: tuple[str, bool], progress: Progress | None
) -> MomentSum:
    from fairpca.sources.blocks import Batch
    from fairpca.sources.reading import stream_batches

    batches, total = stream_batches(source)

    def items() -> Iterator[Batch]:
        columns, done = None, 0
        for batch in batches:
            columns = choice.columns(batch.schema, columns)
            yield Batch(batch.select(columns.names), columns, "", done)
            done += batch.num_rows
            if progress is not None:
                progress("reading rows", done, total)

    found = MomentSum()
    for moments in _summed(items(), options):
        found.add(moments)
        check_number_of_groups(found.n_groups)
    return found


def _summed(items: Iterator[Any], options: tuple[str, bool]) -> Iterator[Any]:
    """Moments in place of the batches among the items; other items as they are.

    The options are those of `batch_moments`.
    """
    from fairpca.sources.blocks import Batch, batch_moments
    from fairpca.sources.reading import in_order

    def work(item: Any) -> Any:
        return batch_moments(item, *options) if isinstance(item, Batch) else item

    first = next(items, None)
    if first is None:
        return
    d = len(first.columns.features) if isinstance(first, Batch) else 1
    n_threads = worker_threads(d)
    with (
        one_blas_thread() if n_threads > 1 else nullcontext(),
        closing(in_order(work, chain([first], items), n_threads)) as results,
    ):
        yield from results

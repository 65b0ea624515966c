"""read_moments: one pass over a source, on all cores, in little memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

from fairpca._rows.checks import check_choice
from fairpca._rows.groups import check_number_of_groups
from fairpca._rows.sums import one_blas_thread, worker_threads
from fairpca.moments import GroupMoments, MomentSum

Progress = Callable[[str, int, int], None]


def read_moments(
    source: Any,
    *,
    sensitive_features: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    missing_labels: str = "error",
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> GroupMoments:
    """Moments of a table that need not fit into memory, by group.

    The source is read once, a batch of rows at a time, while the cores sum those before it.
    ``FairPCA.fit_moments`` makes the model; it is that of ``FairPCA.fit`` on all rows.

    Parameters
    ----------
    source : path, list of paths, or table
        Files that end in .parquet, .csv, .csv.gz, .arrow or .feather; folders with such files,
        in subfolders too (names that begin with "." or "_" are left out); a data frame of pandas
        or Polars, also a lazy one; a Table, RecordBatchReader, Dataset or Scanner of pyarrow;
        a DuckDB relation or anything else with ``__arrow_c_stream__``; or an iterable of these.
    sensitive_features : str or sequence of str, default=None
        The column that makes the groups; several make groups of their intersections. In CSV files
        labels are text, as nothing there says otherwise, and only nothing is missing.
    features : sequence of str, default=None
        The columns to reduce. None takes all numeric ones of the first table that are not named
        otherwise, and refuses further tables with more.
    sample_weight : str, default=None
        The column with non-negative weights of the rows.
    missing_labels : {"error", "group"}, default="error"
        Whether missing sensitive features are an error or a group of their own.
    checkpoint : str or Path, default=None
        A file of moments to keep what has been read of several files, written at least every few
        seconds between files and whenever the pass ends, by an error or Ctrl-C too. A pass that
        finds one goes on from there. Files it has must be there unchanged; further ones may come.
    progress : callable, default=None
        Called as ``progress(what, done, total)``: bytes where the source is files, else rows, with
        a total of 0 where that is not known.

    Returns
    -------
    GroupMoments

    Raises
    ------
    ValueError
        If a table cannot be read, lacks a column, has other columns than the first, text where
        numbers belong, or missing values; the sentence names the file.

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
    _require_pyarrow()
    from fairpca.sources.columns import Choice

    check_choice("missing_labels", missing_labels, ("error", "group"))
    choice = Choice.of(features, sensitive_features, sample_weight)
    if _is_files(source):
        total = _read_files(source, choice, missing_labels, checkpoint, progress)
    elif checkpoint is not None:
        raise ValueError("A checkpoint can only be kept of files.")
    else:
        total = _read_stream(source, choice, missing_labels, progress)
    if total.n_groups == 0:
        raise ValueError("There are no rows, or none with a positive weight.")
    return total.moments()


def _is_files(source: Any) -> bool:
    paths = (source,) if isinstance(source, str | os.PathLike) else source
    return isinstance(paths, list | tuple) and all(
        isinstance(path, str | os.PathLike) for path in paths
    )


def _read_files(
    source: Any,
    choice: Any,
    missing_labels: str,
    checkpoint: str | Path | None,
    progress: Progress | None,
) -> MomentSum:
    from fairpca.sources.blocks import Batch
    from fairpca.sources.checkpoint import Pass
    from fairpca.sources.files import TableFile, list_files

    files = list_files(source)
    if not files:
        raise ValueError("The list of files is empty.")
    reading = Pass(checkpoint, choice, missing_labels)
    left = reading.left(files)
    size = sum(file.size for file in files)
    read = size - sum(file.size for file in left)

    def settle(schema: Any) -> Any:
        if reading.columns is None:
            reading.columns = choice.columns(schema)
        else:
            reading.columns.check(schema)
        return reading.columns

    def items() -> Iterator[Batch | TableFile]:
        """Batches, and each file after its last one."""
        nonlocal read
        for file in left:
            rows = 0
            for batch, share in file.batches(settle):
                yield Batch(batch, file.shown, rows)
                rows += batch.num_rows
                if progress is not None:
                    progress(f"reading {file.path.name}", read + int(share * file.size), size)
            file.check_unchanged()
            read += file.size
            yield file

    part = MomentSum()
    try:
        for item in _summed(items(), lambda: reading.columns, missing_labels):
            if isinstance(item, TableFile):
                if part.n_groups:
                    reading.add(item, part.moments())
                part = MomentSum()
            else:
                part.add(item)
            check_number_of_groups(max(part.n_groups, reading.total.n_groups))
    finally:
        reading.write()
    return reading.total


def _read_stream(
    source: Any, choice: Any, missing_labels: str, progress: Progress | None
) -> MomentSum:
    from fairpca.sources.blocks import Batch
    from fairpca.sources.streams import stream_batches

    columns = None
    batches, total = stream_batches(source)

    def items() -> Iterator[Batch]:
        nonlocal columns
        done = 0
        for batch in batches:
            if columns is None:
                columns = choice.columns(batch.schema)
            else:
                columns.check(batch.schema)
            yield Batch(batch.select(columns.names), "", done)
            done += batch.num_rows
            if progress is not None:
                progress("reading rows", done, total)

    found = MomentSum()
    for moments in _summed(items(), lambda: columns, missing_labels):
        found.add(moments)
        check_number_of_groups(found.n_groups)
    return found


def _summed(items: Iterator[Any], columns: Callable[[], Any], missing_labels: str) -> Iterator[Any]:
    """Moments in place of the batches among the items; other items as they are."""
    from fairpca.sources.blocks import Batch, batch_moments
    from fairpca.sources.pool import in_order

    def work(item: Any) -> Any:
        if not isinstance(item, Batch):
            return item
        return batch_moments(item, columns(), missing_labels)

    leading = []  # to the first batch: then the columns are known
    for item in items:
        leading.append(item)
        if isinstance(item, Batch):
            break
    else:
        yield from leading
        return
    n_threads = worker_threads(len(columns().features))
    with (
        one_blas_thread() if n_threads > 1 else nullcontext(),
        closing(in_order(work, chain(leading, items), n_threads)) as results,
    ):
        yield from results


def _require_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Files and Arrow streams need pyarrow: install `fairpca[files]`."
        ) from error

"""Tables that are no files: whatever gives Arrow record batches, a part at a time."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow

from fairpca.tables.reading import batch_rows, cut


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

"""Writing tables in batches: CSV, Parquet and Arrow files, whole or not there."""

import csv
import io
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from fairpca.files.atomic import replacing
from fairpca.tables.columns import is_text, quoted

_STEERING = r"^([=+\-@\t\r])"
"""Text that begins with one of these can be run as a formula by a spreadsheet."""


def write_batches(batches: Iterable[Any], path: Path) -> int:
    """Write record batches with the same columns, one below the other; returns how many rows.

    Codes of dictionaries are written as the values that they stand for. In CSV files, text that a
    spreadsheet would run gets a ' in front.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        At least one. What it raises leaves no file behind, and an older one as it was.
    path : Path
        The file; its suffix is one of `fairpca.choices.WRITABLE`.
    """
    suffix = path.suffix.lower()
    prepare = _harmless if suffix == ".csv" else _plain
    rows = 0
    with replacing(path) as file:
        prepared = map(prepare, batches)
        first = next(prepared)
        with _writer(suffix, file, first.schema) as writer:
            for batch in chain([first], prepared):
                writer.write_batch(batch)
                rows += batch.num_rows
    return rows


def _writer(suffix: str, file: BinaryIO, schema: Any) -> Any:
    if suffix == ".parquet":
        return pyarrow.parquet.ParquetWriter(file, schema)
    if suffix != ".csv":
        return pyarrow.ipc.new_file(file, schema)
    # pyarrow would put all names in quotes.
    head = io.TextIOWrapper(file, encoding="utf-8", newline="")
    csv.writer(head, lineterminator="\n").writerow(schema.names)
    head.detach()
    try:
        options = pyarrow.csv.WriteOptions(include_header=False)
        return pyarrow.csv.CSVWriter(file, schema, write_options=options)
    except pyarrow.ArrowInvalid as error:
        nested = [field.name for field in schema if pyarrow.types.is_nested(field.type)]
        raise ValueError(
            f"A CSV file cannot hold all columns, such as lists: {quoted(nested or schema.names)}; "
            "write another kind of file, or leave them out."
        ) from error


def _plain(batch: Any) -> Any:
    """The batch with the values of dictionaries, whose codes differ from batch to batch."""
    columns = [
        column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
        for column in batch.columns
    ]
    return pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _harmless(batch: Any) -> Any:
    """The batch as a CSV file may have it."""
    columns = [_harmless_text(c) if is_text(c.type) else c for c in _plain(batch).columns]
    names = _harmless_text(pyarrow.array(batch.schema.names, pyarrow.string())).to_pylist()
    return pyarrow.RecordBatch.from_arrays(columns, names=names)


def _harmless_text(column: Any) -> Any:
    text = column.cast(pyarrow.large_string())
    return pyarrow.compute.replace_substring_regex(text, _STEERING, r"'\1")

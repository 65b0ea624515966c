"""Writing tables in batches: the same files as in one go, whole or not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pandas
import pyarrow
import pyarrow.ipc
import pyarrow.parquet

from fairpca.cli._tables import write_csv
from fairpca.files.atomic import replacing


def write_batches(frames: Iterable[Any], path: Path, objects: Mapping[str, Any]) -> int:
    """Write data frames with the same columns, one below the other, and return how many rows.

    Parameters
    ----------
    frames : iterable of data frames
        At least one. What it raises leaves no file behind, and an older one as it was.
    path : Path
        The file; its suffix has been checked.
    objects : mapping of str to pyarrow.DataType
        The types of columns of Python objects, which a batch without values would not tell.
    """
    write = _write_csv if path.suffix.lower() == ".csv" else _write_columns
    with replacing(path) as file:
        return write(frames, file, path.suffix.lower(), objects)


def _write_csv(frames: Iterable[Any], file: BinaryIO, suffix: str, objects: Any) -> int:
    rows = 0
    for frame in frames:
        write_csv(frame, file, head=rows == 0)
        rows += len(frame)
    return rows


def _write_columns(
    frames: Iterable[Any], file: BinaryIO, suffix: str, objects: Mapping[str, Any]
) -> int:
    rest = iter(frames)
    first = next(rest)
    schema = _schema(first, objects)
    opened = (
        pyarrow.parquet.ParquetWriter(file, schema)
        if suffix == ".parquet"
        else pyarrow.ipc.new_file(file, schema)
    )
    rows = 0
    with opened as writer:
        for frame in chain([first], rest):
            table = pyarrow.Table.from_pandas(frame, schema=schema, preserve_index=False)
            writer.write_table(table.replace_schema_metadata(schema.metadata))
            rows += len(frame)
    return rows


def _schema(frame: Any, objects: Mapping[str, Any]) -> Any:
    schema = pyarrow.Schema.from_pandas(frame, preserve_index=False)
    for i, name in enumerate(frame.columns):
        if pandas.api.types.is_object_dtype(frame.dtypes.iloc[i]) and name in objects:
            schema = schema.set(i, schema.field(i).with_type(objects[name]))
    return schema

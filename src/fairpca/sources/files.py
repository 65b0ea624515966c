"""Files of tables: which there are, and their rows in batches, by suffix."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from fairpca._rows.text import listed
from fairpca.sources.columns import Columns

_CSV_BLOCK = 2**23
_PARQUET_BYTES = 2**26
"""Bytes that are read at a time, of all columns; all of a row group's would be much memory."""

_BATCH_VALUES, _MOST_ROWS = 2**22, 2**17
_MAGIC = b"ARROW1"

Settle = Callable[[Any], Columns]
"""Takes a file's schema to the columns to be read, or refuses it."""


@dataclass(frozen=True)
class TableFile:
    """A file as it was when it was listed."""

    path: Path
    size: int
    changed_ns: int

    @classmethod
    def of(cls, path: Path) -> TableFile:
        """The file under this path."""
        status = path.stat()
        return cls(path, status.st_size, status.st_mtime_ns)

    @property
    def shown(self) -> str:
        """Its name in messages."""
        return repr(str(self.path))

    def check_unchanged(self) -> None:
        """Raise ValueError if it has changed since it was listed."""
        if TableFile.of(self.path) != self:
            raise ValueError(f"{self.shown} changed while it was read: start again.")

    def batches(self, settle: Settle) -> Iterator[tuple[Any, float]]:
        """Its rows as record batches, each with the share of the file that has been read."""
        reader = _READERS[_suffix(self.path)]
        with _naming(self):
            yield from reader(self, settle)


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
    unknown = [str(path) for path in found if not _suffix(path)]
    if unknown:
        raise ValueError(
            f"Files must end in one of {listed(list(_READERS))}: {listed(unknown, 5)}; pass a list "
            "of the files that are meant."
        )
    found = [Path(os.path.abspath(path)) for path in found]
    repeated = [str(path) for path in dict.fromkeys(found) if found.count(path) > 1]
    if repeated:
        raise ValueError(f"Files are named twice: {listed(repeated, 5)}.")
    return [TableFile.of(path) for path in found]


def batch_rows(n_columns: int) -> int:
    """How many rows a batch should have."""
    return min(max(_BATCH_VALUES // max(n_columns, 1), 3 * n_columns), _MOST_ROWS)


def _folder(folder: Path) -> list[Path]:
    """Its files in the order of their names, less those that are hidden or begin with "_"."""
    inside = sorted(path for path in folder.rglob("*") if path.is_file())
    return [
        path
        for path in inside
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]


def _suffix(path: Path) -> str:
    """The suffix that says how a file is read, or nothing."""
    return next((end for end in _READERS if path.name.lower().endswith(end)), "")


@contextmanager
def _naming(file: TableFile) -> Iterator[None]:
    """Name the file in whatever goes wrong with it, in one sentence."""
    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        words = " ".join(str(error).split())
        raise ValueError(
            f"{file.shown} cannot be read, it may be damaged or cut short: {words}"
        ) from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file.shown}: {error}") from error


def _read_parquet(file: TableFile, settle: Settle) -> Iterator[tuple[Any, float]]:
    with pyarrow.parquet.ParquetFile(file.path) as parquet:
        metadata = parquet.metadata
        schema = parquet.schema_arrow
        columns = settle(schema)
    names = columns.names
    # Text that is in the file as codes stays codes, which is much quicker.
    text = [name for name in columns.sensitive if _is_text(schema.field(name).type)]
    done, total = 0, metadata.num_rows
    size = min(max(_PARQUET_BYTES // len(names), 2**16), 2**20)
    with pyarrow.parquet.ParquetFile(
        file.path, metadata=metadata, read_dictionary=text, pre_buffer=False, buffer_size=size
    ) as parquet:
        for batch in parquet.iter_batches(batch_rows(len(names)), columns=names):
            done += len(batch)
            yield batch, done / total


def _is_text(kind: Any) -> bool:
    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))


def _read_arrow(file: TableFile, settle: Settle) -> Iterator[tuple[Any, float]]:
    with pyarrow.OSFile(str(file.path), "rb") as handle:
        is_file = handle.read(len(_MAGIC)) == _MAGIC
        handle.seek(0)
        start = pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream
        schema = start(handle).schema
        columns = settle(schema)
        chosen = [i for i, name in enumerate(schema.names) if name in set(columns.names)]
        options = pyarrow.ipc.IpcReadOptions(included_fields=chosen)
        handle.seek(0)
        reader = start(handle, options=options)
        batches = (
            (reader.get_batch(i) for i in range(reader.num_record_batches)) if is_file else reader
        )
        for batch in batches:
            for part in cut(batch):
                yield part, handle.tell() / file.size


def _read_csv(file: TableFile, settle: Settle) -> Iterator[tuple[Any, float]]:
    with _open_csv(file) as (_, reader):
        schema = reader.schema  # as the first block has it
        if next((len(batch) for batch in reader), 0) == 0:
            return  # a head alone does not say which columns are numeric
    columns = settle(schema)
    text = [name for name in columns.sensitive if name not in columns.numbers]
    kinds = dict.fromkeys(text, pyarrow.string())
    for name in columns.numbers:
        boolean = pyarrow.types.is_boolean(schema.field(name).type)
        kinds[name] = pyarrow.bool_() if boolean else pyarrow.float64()
    convert = pyarrow.csv.ConvertOptions(column_types=kinds, include_columns=columns.names)
    done = 0
    with _open_csv(file, convert) as (handle, reader):
        try:
            for batch in reader:
                done += len(batch)
                yield _without_blanks(batch, text), os.lseek(handle.fileno(), 0, 1) / file.size
        except pyarrow.ArrowInvalid as error:
            raise ValueError(
                f"Behind row {done:,} there is no table of numbers: {' '.join(str(error).split())}."
            ) from error


@contextmanager
def _open_csv(file: TableFile, convert: Any = None) -> Iterator[tuple[Any, Any]]:
    with open(file.path, "rb") as handle:
        packed = file.path.name.lower().endswith(".gz")
        stream = pyarrow.CompressedInputStream(handle, "gzip") if packed else handle
        with pyarrow.csv.open_csv(
            stream,
            read_options=pyarrow.csv.ReadOptions(block_size=_CSV_BLOCK),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=convert,
        ) as reader:
            yield handle, reader


def _without_blanks(batch: Any, text: Sequence[str]) -> Any:
    """In text only nothing is missing: "NA" or "None" may well be words."""
    for name in text:
        column = batch.column(name)
        blank = pyarrow.compute.equal(column, "")
        filled = pyarrow.compute.if_else(blank, pyarrow.scalar(None, column.type), column)
        batch = batch.set_column(batch.schema.get_field_index(name), name, filled)
    return batch


def cut(batch: Any) -> Iterator[Any]:
    """A batch in parts that are not too large."""
    step = batch_rows(batch.num_columns)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


_READERS: dict[str, Callable[[TableFile, Settle], Iterator[tuple[Any, float]]]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
}

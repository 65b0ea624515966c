"""Files of tables: CSV, TSV, Parquet and Arrow, by suffix, as record batches of pyarrow."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

from fairpca.choices import READABLE
from fairpca.tables.columns import is_text
from fairpca.tables.csv_files import CsvFile, CsvRules
from fairpca.tables.csv_hints import encoding_error
from fairpca.tables.refusals import TableError

_PARQUET_BYTES = 2**26
"""Bytes that are read at a time, of all columns; all of a row group's would be much memory."""

_BATCH_VALUES, _MOST_ROWS = 2**22, 2**17
_MAGIC = b"ARROW1"


@dataclass(frozen=True)
class TableFile:
    """A file as it was when it was listed."""

    path: Path
    size: int
    changed_ns: int
    title: str = field(default="", compare=False)

    @classmethod
    def of(cls, path: Path, title: str = "") -> TableFile:
        """The file under this path, which messages may call by another name."""
        status = path.stat()
        return cls(path, status.st_size, status.st_mtime_ns, title)

    @property
    def shown(self) -> str:
        """Its name in messages."""
        return self.title or repr(str(self.path))

    def check_unchanged(self) -> None:
        """Raise ValueError if it has changed since it was listed."""
        if TableFile.of(self.path) != self:
            raise ValueError(f"{self.shown} changed while it was read: start again.")

    def open(
        self, text: Collection[str] = (), rules: CsvRules | None = None
    ) -> CsvFile | ParquetFile | ArrowFile:
        """The file by its suffix, with a `schema` and `batches`; all else is for CSV files."""
        if self.size == 0:
            raise ValueError(f"{self.shown} is empty.")
        suffix = suffix_of(self.path)
        with self.naming(rules):
            if suffix.startswith((".csv", ".tsv")):
                return CsvFile(self.path, text, rules)
            if rules not in (None, CsvRules()):
                raise TableError(
                    "It is no CSV file",
                    "leave out the rules for one",
                    "leave out --sep, --decimal, --encoding and --missing-values",
                )
            return ParquetFile(self) if suffix == ".parquet" else ArrowFile(self)

    @contextmanager
    def naming(self, rules: CsvRules | None = None) -> Iterator[None]:
        """Name the file in whatever goes wrong with it in the body, in one sentence."""
        try:
            yield
        except UnicodeError as error:
            encoding = "utf-8" if rules is None else rules.encoding
            raise encoding_error(self.shown, encoding) from error
        except TableError as error:
            raise error.of_file(self.shown) from error
        except OSError as error:
            if error.errno is None or error.strerror is None:  # of pyarrow's own
                raise self._damaged() from error
            raise ValueError(f"{self.shown} cannot be read: {error.strerror}.") from error
        except (pyarrow.ArrowException, EOFError, zlib.error) as error:
            raise self._damaged() from error
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.shown}: {error}") from error

    def _damaged(self) -> TableError:
        kind = {".parquet": "a Parquet file", "": "a table"}.get(suffix_of(self.path))
        kind = kind or ("compressed text" if self.path.suffix == ".gz" else "an Arrow file")
        return TableError(
            f"{self.shown} cannot be read as {kind}",
            "it may be damaged, cut short, or a file of another kind",
        )


def suffix_of(path: Path) -> str:
    """The suffix that says how a file is read, or nothing."""
    return next((end for end in READABLE if path.name.lower().endswith(end)), "")


def batch_rows(n_columns: int) -> int:
    """How many rows a batch should have."""
    return min(max(_BATCH_VALUES // max(n_columns, 1), 3 * n_columns), _MOST_ROWS)


def cut(batch: Any, n_columns: int = 0) -> Iterator[Any]:
    """A batch in parts that are not too large, for rows that become so many columns."""
    step = batch_rows(max(batch.num_columns, n_columns))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


class ParquetFile:
    """A Parquet file."""

    is_empty = False

    def __init__(self, file: TableFile) -> None:
        self._path = file.path
        with pyarrow.parquet.ParquetFile(file.path) as parquet:
            self._metadata = parquet.metadata
            self.schema = parquet.schema_arrow

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Any, float]]:
        """Record batches of some columns, each with the share of the rows that has been read.

        Types are those of the file. Text for which `types` has one comes as codes, which is much
        quicker where the file has it so.
        """
        text = [name for name in types or () if is_text(self.schema.field(name).type)]
        done, total = 0, self._metadata.num_rows
        with pyarrow.parquet.ParquetFile(
            self._path,
            metadata=self._metadata,
            read_dictionary=text,
            pre_buffer=False,
            buffer_size=min(max(_PARQUET_BYTES // len(columns), 2**16), 2**20),
        ) as parquet:
            for batch in parquet.iter_batches(batch_rows(len(columns)), columns=list(columns)):
                done += len(batch)
                yield batch, done / total


class ArrowFile:
    """A file or a stream of Arrow: both may have the same suffix."""

    is_empty = False

    def __init__(self, file: TableFile) -> None:
        self._file = file
        with pyarrow.OSFile(str(file.path), "rb") as handle:
            self._is_file = handle.read(len(_MAGIC)) == _MAGIC
            handle.seek(0)
            self._start = pyarrow.ipc.open_file if self._is_file else pyarrow.ipc.open_stream
            self.schema = self._start(handle).schema

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Any, float]]:
        """Record batches of some columns, each with the share of the file that has been read."""
        chosen = [i for i, name in enumerate(self.schema.names) if name in set(columns)]
        options = pyarrow.ipc.IpcReadOptions(included_fields=chosen)
        with pyarrow.OSFile(str(self._file.path), "rb") as handle:
            reader = self._start(handle, options=options)
            if self._is_file:
                reader = map(reader.get_batch, range(reader.num_record_batches))
            for batch in reader:
                for part in cut(batch):
                    yield part, handle.tell() / self._file.size

"""Files of tables: CSV, TSV, Parquet and Arrow, by suffix, as record batches of pyarrow.

One set of rules for CSV files is for the program and for `fairpca.sources`.
The file is text in UTF-8, with or without a byte order mark, and its first line has the names;
cells are separated by commas, in files that end in .tsv by tabs. `CsvRules` can say something else.
A column holds truth values (True and False in usual spellings), whole numbers, numbers or text,
whichever is the first that all its values are; dates are text. In columns of numbers and truth
values the words of `MISSING_WORDS` are missing values. In text only an empty cell is missing, as
"NA" or "None" may well be words. Rows of other lengths than the first line are refused. White space
in names of columns, line breaks too, is one space, and none at their ends: so they can be typed.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from fairpca.choices import READABLE
from fairpca.tables.columns import (
    INDEX,
    MISSING_WORDS,
    TableError,
    check_column_names,
    is_text,
    quoted,
)

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars", ",": "commas"}
"""What separates cells in files that people have."""

_NO_TEXT = (b"PK\x03\x04", b"PAR1", b"ARROW1", b"%PDF", b"\x1f\x8b")
"""How spreadsheets and other files begin that may have no NUL near."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_ZEROS = re.compile(r"\s*0\d")


def _other_separator(first: str, sep: str) -> str | None:
    """The separator that a first line has more often than the one it is to be read with."""
    outside = re.sub(r'"[^"]*"', "", first)
    counts = {other: outside.count(other) for other in _SEPARATORS}
    best = max(counts, key=lambda other: counts[other])
    return best if counts[best] > outside.count(sep) else None


def _separated(other: str, sep: str) -> TableError:
    kind, expected = _SEPARATORS[other], _SEPARATORS.get(sep, repr(sep))
    return TableError(
        f"It seems to have {kind} between its cells, not {expected}",
        f"save it with {expected}, or say what it has",
        sep="tab" if other == "\t" else other,
    )


BLOCK = 2**22
"""Bytes that are read at a time."""

_HEAD = 2**16
"""Bytes by which a file that is no table of commas is recognised."""

_NOTHING, _WHOLE = pyarrow.null(), pyarrow.int64()
_REAL, _TEXT = pyarrow.float64(), pyarrow.string()
_KNOWN = (_NOTHING, pyarrow.bool_(), _WHOLE, _REAL, _TEXT)
_WRONG_COLUMN = re.compile(r"In CSV column #(\d+): CSV conversion error")
_WRONG_VALUE = re.compile(r"invalid value '(.*)'")
_WRONG_ROW = re.compile(r"Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)


@dataclass(frozen=True)
class CsvRules:
    """How a CSV file is written.

    Attributes
    ----------
    sep : str
        What separates the cells; empty for what the suffix says.
    decimal : {".", ","}
        The decimal point.
    encoding : str
        The encoding of the text, as Python calls it.
    missing : tuple of str
        Further words for missing values, in numbers and in text.
    """

    sep: str = ""
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()


class OtherTypeError(ValueError):
    """A column holds something else than its first rows."""


class CsvFile:
    """A CSV file, and the types of its columns as far as they are known.

    Parameters
    ----------
    path : Path
        The file; one that ends in .gz is decompressed.
    text : collection of str, default=()
        Columns that are text, whatever they look like.
    rules : CsvRules, default=CsvRules()
        How it is written.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types of the columns: by the rows that have been read.
    is_empty : bool
        Whether there are no rows, which would say something about types.
    repeated : list of str
        New names of columns that have the name of another, with a number behind it.
    codes : dict of str
        Columns of whole numbers of which some, among the first rows, have zeros in front, as codes
        have, and the first of these cells.
    """

    def __init__(
        self, path: Path, text: Collection[str] = (), rules: CsvRules | None = None
    ) -> None:
        self._path, self._size = path, path.stat().st_size
        self._rules = rules or CsvRules()
        self._packed = path.name.lower().endswith(".gz")
        tabs = path.name.lower().endswith((".tsv", ".tsv.gz"))
        self._sep = self._rules.sep or ("\t" if tabs else ",")
        self._names: list[str] = []  # where they are not as they stand there
        head = self._checked_head()
        self._first = head.partition("\n")[0]
        try:
            with self._open(sample=True) as (_, reader):
                names = [
                    " ".join(name.split()) or f"Unnamed: {place}"
                    for place, name in enumerate(reader.schema.names)
                ]
                if rules is None:
                    check_column_names(names)
                given, names = names, []
                for name in given:
                    new, count = name, 1
                    while new in names:
                        count += 1
                        new = f"{name} ({count})"
                    names.append(new)
                self.repeated = [n for n, old in zip(names, given, strict=True) if n != old]
                self.is_empty = next((len(batch) for batch in reader), 0) == 0
                types = [kind if kind in _KNOWN else _TEXT for kind in reader.schema.types]
                self._names = names if names != reader.schema.names else []
        except pyarrow.ArrowInvalid as error:
            self._explain(error, 0)
        self._types = dict(zip(names, types, strict=True))
        self._types |= dict.fromkeys(set(text).intersection(names), _TEXT)
        self.schema = pyarrow.schema(self._types)
        rows = [*csv.reader(io.StringIO(head, newline=""), delimiter=self._sep)]
        self.codes = {
            name: cell
            for row in reversed(rows[1:])
            for (name, kind), cell in zip(self._types.items(), row, strict=False)
            if kind == _WHOLE and _ZEROS.match(cell)
        }

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Any, float]]:
        """Record batches of some columns, each with the share of the file that has been read.

        The types are those of the schema unless others are given. Where a column does not have its
        type, OtherTypeError is raised, and the schema has another one from then on.
        """
        kinds, last = self._types | dict(types or {}), [*self._types][-1]
        wanted = list(dict.fromkeys((*columns, last)))
        blank = pyarrow.array(["", *self._rules.missing], _TEXT)
        nothing = pyarrow.scalar(None, _TEXT)
        done = 0
        try:
            with self._open(column_types=kinds, include_columns=wanted) as (handle, reader):
                for batch in reader:
                    done += len(batch)
                    share = os.lseek(handle.fileno(), 0, 1) / self._size
                    found = batch.columns
                    for i, column in enumerate(found):
                        if column.type == _TEXT:
                            empty = pyarrow.compute.is_in(column, value_set=blank)
                            if empty.true_count:
                                found[i] = pyarrow.compute.if_else(empty, nothing, column)
                    complete = pyarrow.RecordBatch.from_arrays(found, schema=batch.schema)
                    yield complete.select(list(columns)), share
            end = complete.column(last)[-1].as_py() if done else None
            if isinstance(end, str) and "\n" in end and not self._packed:
                self._refuse_open_quote(end)
        except pyarrow.ArrowInvalid as error:
            self._explain(error, done)

    def _refuse_open_quote(self, cell: str) -> None:
        """Raise TableError if the last cell of the file goes on to its end for want of a quote."""
        with open(self._path, "rb") as handle:
            handle.seek(-min(self._size, _HEAD), os.SEEK_END)
            end = handle.read()
        if not end.rstrip(b"\r\n\0 ").endswith(b'"'):
            first, _, rest = cell.partition("\n")
            raise TableError(
                f"It has a quote before {quoted([first])} that is not closed, so that the rest of "
                f"the file, {rest.count(chr(10)) + 1:,} lines, would be one cell",
                "close the quote, or remove it",
            )

    def _widen(self, name: str, before: int) -> None:
        """Give columns types that also hold what is in the block behind this number of rows.

        In it, or in a later one, a column has a value that is not of its type.
        """
        old = self._types[name]
        with self._open(skip=before) as (_, reader):
            for column, kind in zip(reader.schema.names, reader.schema.types, strict=True):
                pair = {self._types[column], kind if kind in _KNOWN else _TEXT} - {_NOTHING}
                if len(pair) > 1:
                    self._types[column] = _REAL if pair == {_WHOLE, _REAL} else _TEXT
                elif pair:
                    (self._types[column],) = pair
        if self._types[name] == old:
            self._types[name] = _REAL if old == _WHOLE else _TEXT
        self.schema = pyarrow.schema(self._types)

    @contextmanager
    def _open(
        self, *, skip: int = 0, sample: bool = False, **convert: Any
    ) -> Iterator[tuple[Any, Any]]:
        # A file of Python's: from its own, Arrow would read dozens of blocks ahead.
        with open(self._path, "rb") as handle:
            stream = pyarrow.CompressedInputStream(handle, "gzip") if self._packed else handle
            if sample:  # more would be read ahead; the first rows end in the first two blocks
                head = stream.read(3 * BLOCK)
                # In memory of Arrow's own: a thread of Arrow's that lets go of Python's when the
                # program ends would bring it down.
                buffer = pyarrow.allocate_buffer(len(head))
                memoryview(buffer)[:] = memoryview(head).cast("b")
                stream = pyarrow.BufferReader(buffer)
            with pyarrow.csv.open_csv(
                stream,
                read_options=pyarrow.csv.ReadOptions(
                    block_size=BLOCK,
                    column_names=self._names,
                    # Where there are other names, those in the file are a row.
                    skip_rows_after_names=skip + bool(self._names),
                    encoding=self._rules.encoding,
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=self._sep, newlines_in_values=True
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    null_values=[*MISSING_WORDS, *self._rules.missing],
                    # Without pyarrow's 1 and 0, which are numbers.
                    true_values=["true", "True", "TRUE"],
                    false_values=["false", "False", "FALSE"],
                    decimal_point=self._rules.decimal,
                    **convert,
                ),
            ) as reader:
                yield handle, reader

    def _checked_head(self) -> str:
        """The first text of a file, which is refused if that shows it to be something else."""
        with (gzip.open if self._packed else open)(self._path, "rb") as handle:
            head = cast(BinaryIO, handle).read(_HEAD)
        if self._rules.encoding == "utf-8" and head.startswith(_UTF16):
            raise TableError(
                "It is not in UTF-8, but seems to be in UTF-16",
                "save it in UTF-8, or say so",
                encoding="utf-16",
            )
        if self._rules.encoding == "utf-8" and (b"\0" in head or head.startswith(_NO_TEXT)):
            raise TableError(
                "It is no text in UTF-8: it may be a spreadsheet or another file with a wrong "
                "suffix, text in UTF-16, or have damaged cells (NUL characters)",
                "save it as CSV (UTF-8), or give it the right suffix",
            )
        text = head.decode(self._rules.encoding, "replace")
        first = text.partition("\n")[0]
        other = None
        if not self._rules.sep and self._sep not in first:
            other = _other_separator(first, self._sep)
        if other is not None:
            raise _separated(other, self._sep)
        return text

    def _explain(self, error: Exception, done: int) -> NoReturn:
        words = " ".join(str(error).split())
        found, value = _WRONG_COLUMN.match(words), _WRONG_VALUE.search(words)
        if "invalid UTF8" in words:
            raise UnicodeError(words) from error
        if found is not None:
            name = [*self._types][int(found[1])]
            try:
                self._widen(name, done)
            except pyarrow.ArrowInvalid as other:
                self._explain(other, done)
            what = f"{quoted([value[1]])} is not what stands above it" if value else "see there"
            raise OtherTypeError(
                f"After row {done:,}, column {quoted([name])} changes its type: {what}."
            ) from error
        if "straddl" in words or "out of sync" in words:
            raise TableError(
                f"It has a row of more than {BLOCK // 2**20} MB",
                "close the quote that is open there, or remove it",
            ) from error
        if "Empty CSV" in words:
            raise TableError(
                "It has empty lines alone",
                "the first line should have the names of the columns, and each other one a row",
            ) from error
        raise self._ragged(str(error)) or error from error

    def _ragged(self, words: str) -> TableError | None:
        """What is said of a row that has another number of cells than the names."""
        found = _WRONG_ROW.search(words)
        if found is None:
            return None
        other = _other_separator(self._first, self._sep)
        if other is not None:
            return _separated(other, self._sep)
        expected, n, row = int(found[1]), int(found[2]), found[3]
        what = "add the cells that are missing, if only as empty ones"
        if n > expected:
            what = "put cells that contain the separator in quotes"
        if expected == 1 or self._first.startswith("sep="):
            what = "remove what stands above the names of the columns"
        elif "\n" in row:
            what = "close the quote that is open there"
        return TableError(
            f"It cannot be read, as a row has {n} cell{'s' * (n != 1)} and the first line "
            f"{expected}, {quoted([row])}",
            what,
        )


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
                    "leave out the rules for one: separator, decimal point, encoding, missing "
                    "values",
                )
            return ParquetFile(self) if suffix == ".parquet" else ArrowFile(self)

    @contextmanager
    def naming(self, rules: CsvRules | None = None) -> Iterator[None]:
        """Name the file in whatever goes wrong with it in the body, in one sentence."""
        try:
            yield
        except UnicodeError as error:
            if rules is not None and rules.encoding != "utf-8":
                problem = f"{self.shown} is not in the encoding {rules.encoding!r}"
                raise TableError(problem, "save it in UTF-8") from error
            raise TableError(
                f"{self.shown} is not in UTF-8",
                "save it in that encoding, or say which it has: files of older programs and of "
                "spreadsheets on Windows often have cp1252",
                encoding="cp1252",
            ) from error
        except TableError as error:
            raise error.of_file(self.shown) from error
        except OtherTypeError as error:
            error.args = (f"{self.shown}: {error}",)
            raise
        except OSError as error:
            if error.errno is None or error.strerror is None:  # of pyarrow's own
                raise self._damaged() from error
            raise ValueError(f"{self.shown} cannot be read: {error.strerror}.") from error
        except (pyarrow.ArrowException, EOFError, zlib.error) as error:
            raise self._damaged() from error
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.shown}: {error}") from error

    def _damaged(self) -> TableError:
        return TableError(
            f"{self.shown} cannot be read, although it ends in {self.path.suffix}",
            "it may be damaged, cut short, or a file of another kind",
        )


def suffix_of(path: Path) -> str:
    """The suffix that says how a file is read, or nothing."""
    return next((end for end in READABLE if path.name.lower().endswith(end)), "")


def batch_rows(n_columns: int) -> int:
    """How many rows a batch should have."""
    return min(max(_BATCH_VALUES // max(n_columns, 1), 3 * n_columns), _MOST_ROWS)


def cut(batch: Any, n_columns: int = 0) -> Iterator[Any]:
    """A batch in parts that are not too large, for rows that become this many columns."""
    step = batch_rows(max(batch.num_columns, n_columns))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


class ParquetFile:
    """A Parquet file."""

    is_empty, codes, repeated = False, dict[str, str](), list[str]()

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

    is_empty, codes, repeated = False, dict[str, str](), list[str]()

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


IN_MEMORY = 2**30
"""Files up to this many bytes are read once, and kept in memory as one batch."""


class Table:
    """The rows of a file in batches, as often as needed.

    Parameters
    ----------
    path : Path
        The file. It must not change as long as this is used.
    text : collection of str, default=()
        Columns that are text in a CSV file, even where they look like numbers.
    in_memory : bool, default=None
        Whether the rows are read once and kept, as one batch; None decides by the file's size.
    as_text : collection of str, default=()
        Columns that are text in files of all kinds.
    rules : CsvRules, default=None
        How a CSV file is written, where it is not as usual.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    in_memory : bool
        Whether all rows are one batch.
    is_csv : bool
        Whether it is a CSV file, whose labels are text, whatever they look like.
    codes : dict of str
        Columns of numbers with zeros in front, and such a number of each.
    repeated : list of str
        New names of columns of a CSV file that have the name of another.
    needed : sequence of str
        The columns that will be read, to be set before any is: a table in memory has these alone.
    complete : sequence of str
        Those of which a row that has no value, or an infinite one, is left out.
    labelled : sequence of str
        Those of which a further row without a value is left out.
    n_dropped : int
        How many rows the last pass left out because they are not `complete`.
    n_unlabelled : int
        How many further rows it left out because they are not `labelled`.
    """

    def __init__(
        self,
        path: Path,
        *,
        text: Collection[str] = (),
        in_memory: bool | None = None,
        as_text: Collection[str] = (),
        rules: CsvRules | None = None,
    ) -> None:
        self._file, self._rules = TableFile.of(path), rules
        self._source, self._as_text = self._file.open({*text, *as_text}, rules), frozenset(as_text)
        with self._file.naming(rules):
            names = check_column_names(self._source.schema.names)
        self.names = [name for name in names if not INDEX.fullmatch(name)]
        self.in_memory = self._file.size <= IN_MEMORY if in_memory is None else in_memory
        self.needed: Sequence[str] = self.names
        self.complete: Sequence[str] = ()
        self.labelled: Sequence[str] = ()
        self._kept: Any = None
        self.is_csv = isinstance(self._source, CsvFile)
        self.repeated, self.codes = self._source.repeated, self._source.codes
        self.n_dropped = self.n_unlabelled = 0

    def batches(
        self,
        columns: Sequence[str],
        width: int = 0,
        tell: Callable[[int, float], None] | None = None,
    ) -> Iterator[Any]:
        """Record batches with some of the columns, which together are the table.

        OtherTypeError says that a column of a CSV file is not of the type that its first rows had.
        It has another one from then on, so that the next pass may succeed.

        Parameters
        ----------
        columns : sequence of str
            The columns to read, in this order.
        width : int, default=0
            How many columns the rows will become: more of them need smaller batches.
        tell : callable, default=None
            Called with the rows and the share of the file that have been read.
        """
        rows = dropped = unlabelled = 0
        entering = self.needed if self.in_memory else columns
        wanted = list(dict.fromkeys((*entering, *self.complete, *self.labelled)))
        if self.in_memory and self._kept is None:
            parts = [batch for batch, _ in self._read(wanted)]
            self._kept, *more = pyarrow.Table.from_batches(parts).combine_chunks().to_batches()
            if more:
                raise TableError("The text is too much for memory", "read batches", stream=True)
        for batch, share in [(self._kept, 1.0)] if self.in_memory else self._read(wanted):
            for part in [batch] if self.in_memory else cut(batch, width):
                complete = _complete(part, self.complete) if self.complete else part
                dropped += part.num_rows - complete.num_rows
                kept = _complete(complete, self.labelled) if self.labelled else complete
                unlabelled += complete.num_rows - kept.num_rows
                rows += kept.num_rows
                if kept.num_rows:
                    yield kept.select(list(columns))
                if tell is not None:
                    tell(rows, share)
        self.n_dropped, self.n_unlabelled = dropped, unlabelled
        if not rows and unlabelled:
            raise ValueError("The sensitive columns have no value in any row.")
        if not rows:
            raise TableError(
                f"Each of the {dropped:,} rows lacks a value, so that none is left",
                "fill them in, or leave out the columns that lack most",
                "--impute and --drop do",
            )

    def _read(self, columns: Sequence[str]) -> Iterator[tuple[Any, float]]:
        empty = True
        with self._file.naming(self._rules):
            for batch, share in self._source.batches(columns):
                if batch.num_rows:
                    empty = False
                    yield _with_text(batch, self._as_text) if self._as_text else batch, share
        self._file.check_unchanged()
        if empty:
            raise ValueError(f"{self._file.shown} has no rows.")


def _with_text(batch: Any, names: frozenset[str]) -> Any:
    """The batch with some columns as text; those of numbers and dates are written out."""
    types = pyarrow.types
    for name in names & {*batch.schema.names}:
        place = batch.schema.get_field_index(name)
        kind = batch.schema.types[place]
        if types.is_primitive(kind) and not types.is_boolean(kind):
            batch = batch.set_column(place, name, batch.column(place).cast(pyarrow.string()))
    return batch


def _complete(batch: Any, columns: Sequence[str]) -> Any:
    """The rows of a batch that have a value, and no infinite one, in each of some columns."""
    for name in columns:
        column = batch.column(name)
        here = pyarrow.compute.is_valid(column)
        if pyarrow.types.is_floating(column.type):
            here = pyarrow.compute.fill_null(pyarrow.compute.is_finite(column), False)
        if here.true_count < len(here):
            batch = batch.filter(here)
    return batch

"""CSV files by pyarrow: one set of rules for the program and for `fairpca.sources`.

The file is text in UTF-8, with or without a byte order mark, and its first line has the names;
cells are separated by commas, in files that end in .tsv by tabs. `CsvRules` can say something else.
A column holds truth values (True and False in usual spellings), whole numbers, numbers or text,
whichever is the first that all its values are; dates are text. In columns of numbers and truth
values the words of `MISSING_WORDS` are missing values. In text only an empty cell is missing, as
"NA" or "None" may well be words. Rows of other lengths than the first line are refused. White space
in names of columns, line breaks too, is one space, and none at their ends: so they can be typed. A
first line such as "sep=;", as spreadsheets write it, says what separates the cells.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import pyarrow
import pyarrow.compute
import pyarrow.csv

from fairpca.tables.columns import MISSING_WORDS, check_column_names, quoted
from fairpca.tables.csv_hints import (
    ragged,
    refuse_other_files,
    refuse_other_separators,
    said_separator,
)
from fairpca.tables.refusals import TableError

BLOCK = 2**22
"""Bytes that are read at a time."""

_HEAD = 2**16
"""Bytes by which a file that is no table of commas is recognised."""

_NOTHING, _WHOLE, _REAL, _TEXT = (
    pyarrow.null(),
    pyarrow.int64(),
    pyarrow.float64(),
    pyarrow.string(),
)
_KNOWN = (_NOTHING, pyarrow.bool_(), _WHOLE, _REAL, _TEXT)
_WRONG_COLUMN = re.compile(r"In CSV column #(\d+): CSV conversion error")
_WRONG_VALUE = re.compile(r"invalid value '(.*)'")


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
    names : collection of str
        Names of columns that stay as they stand in the file, with all white space.
    """

    sep: str = ""
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()
    names: Collection[str] = field(default=(), compare=False)


class OtherTypeError(ValueError):
    """A column holds something else than its type says; has its name and the rows before."""

    def __init__(self, name: str, before: int, words: str) -> None:
        value = _WRONG_VALUE.search(words)
        what = f"{quoted([value[1]])} is not what stands above it" if value else "see there"
        super().__init__(f"After row {before:,}, column {quoted([name])} changes its type: {what}.")
        self.name, self.before = name, before


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
    is_empty : bool
        Whether there are no rows, which would say something about types.
    codes : dict of str
        Columns of whole numbers of which some, in the first block of rows, have zeros in front, as
        codes have, and the first of these cells.
    """

    def __init__(
        self, path: Path, text: Collection[str] = (), rules: CsvRules | None = None
    ) -> None:
        self._path, self._text, self._size = path, frozenset(text), path.stat().st_size
        self._rules = rules or CsvRules()
        self._packed = path.name.lower().endswith(".gz")
        tabs = path.name.lower().endswith((".tsv", ".tsv.gz"))
        self._sep = self._rules.sep or ("\t" if tabs else ",")
        self._first = 0  # the line, from 0 on, that has the names
        self._names: list[str] = []  # where they are not as they stand there
        self._look_at_the_head()
        try:
            with self._open(sample=3 * BLOCK) as (_, reader):
                names = [
                    name if name in self._rules.names else " ".join(name.split())
                    for name in reader.schema.names
                ]
                if names.count("") > 1:
                    raise TableError(
                        f"It has {names.count('')} columns without a name",
                        "name them, or, if they are empty, remove the separators at the ends of "
                        "the lines",
                    )
                check_column_names(names)
                self.is_empty = next((len(batch) for batch in reader), 0) == 0
                self._types = dict(zip(names, map(_known, reader.schema.types), strict=True))
        except pyarrow.ArrowInvalid as error:
            self._explain(error, 0)
        self._names = names if names != reader.schema.names else []
        self._types |= dict.fromkeys(self._text.intersection(names), _TEXT)
        self.codes = {} if self.is_empty else self._find_codes()

    @property
    def schema(self) -> Any:
        """Names and types of the columns: by the first block of rows, and by `widen`."""
        return pyarrow.schema(self._types)

    def batches(
        self, columns: Sequence[str], types: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Any, float]]:
        """Record batches of some columns, each with the share of the file that has been read.

        The types are those of the schema unless others are given. OtherTypeError says that a column
        does not have its type.
        """
        kinds = self._types | dict(types or {})
        blank = pyarrow.array(["", *self._rules.missing], _TEXT)
        done = 0
        try:
            with self._open(column_types=kinds, include_columns=list(columns)) as (handle, reader):
                for batch in reader:
                    done += len(batch)
                    share = os.lseek(handle.fileno(), 0, 1) / self._size
                    yield _without_blanks(batch, blank), share
        except pyarrow.ArrowInvalid as error:
            self._explain(error, done)

    def widen(self, error: OtherTypeError) -> None:
        """Give columns types that also hold what is in the block in which one had another."""
        before = self._types[error.name]
        with self._open(skip=error.before) as (_, reader):
            for name, kind in zip(reader.schema.names, reader.schema.types, strict=True):
                if name not in self._text:
                    self._types[name] = _joined(self._types[name], _known(kind))
        if self._types[error.name] == before:  # what is there lies in a later block
            self._types[error.name] = _REAL if before == _WHOLE else _TEXT

    def places(self, name: str, texts: Collection[str]) -> dict[str, str]:
        """The line in which each of some cells of a column first stands."""
        place, wanted = [*self._types].index(name), {*texts}
        found: dict[str, str] = {}
        records = self._records()
        next(records, None)  # the names
        for first, _, cells in records:
            text = cells[place] if place < len(cells) else ""
            if text in wanted:
                found[text] = f"line {first:,}"
                wanted.remove(text)
            if not wanted:
                break
        return found

    @contextmanager
    def _open(self, *, skip: int = 0, sample: int = 0, **convert: Any) -> Iterator[tuple[Any, Any]]:
        # A file of Python's: from its own, Arrow would read dozens of blocks ahead.
        with open(self._path, "rb") as handle:
            stream = pyarrow.CompressedInputStream(handle, "gzip") if self._packed else handle
            if sample:  # more would be read ahead; the first rows end in the first two blocks
                stream = pyarrow.BufferReader(_owned(stream.read(sample)))
            with pyarrow.csv.open_csv(
                stream,
                read_options=pyarrow.csv.ReadOptions(
                    block_size=BLOCK,
                    skip_rows=self._first,
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

    def _look_at_the_head(self) -> None:
        """Refuse a file that its first bytes show to be something else."""
        with open(self._path, "rb") as handle:
            head = handle.read(_HEAD)
        refuse_other_files(head, self._packed)
        if self._packed:
            with gzip.open(self._path) as unpacked:
                head = unpacked.read(_HEAD)
        said = said_separator(head, self._rules.encoding)
        if said:
            self._first, self._sep = 1, self._rules.sep or said
        chosen = bool(said or self._rules.sep)
        refuse_other_separators(head, self._rules.encoding, self._sep, chosen)

    def _find_codes(self) -> dict[str, str]:
        whole = [name for name, kind in self._types.items() if kind == _WHOLE]
        if not whole:  # Arrow would take none for all
            return {}
        kinds = dict.fromkeys(whole, _TEXT)
        found = {}
        with self._open(sample=3 * BLOCK, column_types=kinds, include_columns=whole) as (_, reader):
            first = next(iter(reader))
        for name in whole:
            cells = first.column(name)
            zeros = pyarrow.compute.match_substring_regex(cells, r"^\s*0\d")
            if zeros.true_count:
                found[name] = cells.filter(zeros)[0].as_py()
        return found

    def _records(self) -> Iterator[tuple[int, int, list[str]]]:
        """The rows of the file, each with its first and last line: slow, and for messages only."""
        encoding = "utf-8-sig" if self._rules.encoding == "utf-8" else self._rules.encoding
        opened = gzip.open if self._packed else open
        with (
            opened(self._path, "rb") as handle,
            io.TextIOWrapper(cast(BinaryIO, handle), encoding, "replace", newline="") as lines,
            suppress(csv.Error),  # which says that a cell is very long
        ):
            before = sum(1 for _ in islice(lines, self._first))
            reader, first = csv.reader(lines, delimiter=self._sep), before + 1
            for cells in reader:
                if cells:
                    yield first, before + reader.line_num, cells
                first = before + reader.line_num + 1

    def _explain(self, error: Exception, done: int) -> NoReturn:
        words = " ".join(str(error).split())
        found = _WRONG_COLUMN.match(words)
        if "invalid UTF8" in words:
            raise UnicodeError(words) from error
        if found is not None:
            raise OtherTypeError([*self._types][int(found[1])], done, words) from error
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
        raise ragged(self._records(), self._sep) or error from error


def _owned(data: bytes) -> Any:
    """The bytes in memory of Arrow's own.

    A thread of Arrow's that lets go of Python's memory when the program ends would bring it down.
    """
    buffer = pyarrow.allocate_buffer(len(data))
    memoryview(buffer)[:] = memoryview(data).cast("b")
    return buffer


def _known(kind: Any) -> Any:
    """The type, or text for one that has no rule of its own, such as dates."""
    return kind if kind in _KNOWN else _TEXT


def _joined(a: Any, b: Any) -> Any:
    """The narrowest type that holds the values of both."""
    if a == b or b == _NOTHING:
        return a
    if a == _NOTHING:
        return b
    return _REAL if {a, b} == {_WHOLE, _REAL} else _TEXT


def _without_blanks(batch: Any, blank: Any) -> Any:
    """The batch with empty text, and further words for it, as missing."""
    for i, found in enumerate(batch.schema):
        if found.type == _TEXT:
            empty = pyarrow.compute.is_in(batch.column(i), value_set=blank)
            if empty.true_count:
                filled = pyarrow.compute.if_else(
                    empty, pyarrow.scalar(None, _TEXT), batch.column(i)
                )
                batch = batch.set_column(i, found.name, filled)
    return batch

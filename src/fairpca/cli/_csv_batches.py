"""CSV files in batches, with the types that pandas finds when it reads the whole file.

pandas takes a column for whole numbers, numbers, truth values or text, whichever is the first that
all its values are. A first pass notes what each batch has been taken for, which says what the whole
is; the batches of later passes are then brought to that type.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import pandas
import pyarrow

from fairpca.cli._tables import EXACT_NUMBERS, csv_names, csv_options
from fairpca.sources.files import TableFile
from fairpca.tables.preparation import quoted

Kind = Literal["int", "float", "bool", "text"]

_LARGE = 2.0**63
_LARGE_WORD = r"\s*[+-]?\d{19,}\s*"
"""Whole numbers that need more than 64 bits: what pandas makes of a column that has them depends on
the order of its values."""

MISSING_WORDS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""What pandas takes for a missing number, which has to be said where text is read beside it."""


class CsvBatches:
    """A CSV file that can be read in batches many times; `text_columns` are text in any case."""

    def __init__(self, file: TableFile, text_columns: Collection[str]) -> None:
        self._file = file
        self.names = csv_names(file.path)
        self._forced = set(text_columns) & set(self.names)
        self._kinds: dict[str, Kind] = {}

    def learn_types(
        self, read: Collection[str], shown: Collection[str], step: int
    ) -> Iterator[tuple[int, float]]:
        """Go over the file for the types of its columns; how many rows, and which share, are read.

        Columns of `read` whose type is uncertain are refused.
        """
        seen = {name: _Seen() for name in self.names if name not in self._forced}
        # With all columns: of some of them pandas would not say that rows are too long.
        plain = {"dtype": dict.fromkeys(self._forced, str), **EXACT_NUMBERS}
        for frame, share in self._read(step, **plain):
            for name, column in seen.items():
                column.take(frame[name])
            yield len(frame), share
        self._kinds = {name: column.kind for name, column in seen.items()}
        self._kinds |= dict.fromkeys(self._forced, "text")
        self._refuse_large([name for name in read if name in seen and seen[name].doubtful], step)

    def _refuse_large(self, doubtful: Sequence[str], step: int) -> None:
        if not doubtful:
            return
        # By the words themselves: 1e30 is a number like others, and so many digits are not.
        for frame, _ in self._read(step, usecols=list(doubtful), dtype=str, keep_default_na=False):
            for name in doubtful:
                if frame[name].str.fullmatch(_LARGE_WORD).any():
                    raise ValueError(
                        f"Column {quoted([name])} holds whole numbers of 19 digits or more, whose "
                        "type cannot be told in batches: drop it, or use --no-stream."
                    )

    def frames(self, columns: Sequence[str], step: int) -> Iterator[tuple[Any, float]]:
        """Some columns in batches of `step` rows, each with the share of the file that was read."""
        text = [name for name in columns if self._kinds[name] == "text"]
        types = {name: _TYPES[self._kinds[name]] for name in columns if name not in text}
        # In text only nothing is missing, and "NA" may be a word.
        missing = {name: list(MISSING_WORDS if name in types else [""]) for name in columns}
        for frame, share in self._read(
            step,
            usecols=list(columns),
            dtype=dict.fromkeys(text, str),
            na_values=missing,
            keep_default_na=False,
            **EXACT_NUMBERS,
        ):
            yield frame.astype(types)[list(columns)], share

    def not_numeric(self, columns: Sequence[str]) -> list[str]:
        """Those of the columns that hold text."""
        return [name for name in columns if self._kinds[name] == "text"]

    def arrow_type(self, name: str) -> Any:
        """The type of text, which is all that pandas has as objects here."""
        return pyarrow.string()

    def _read(self, step: int, **options: Any) -> Iterator[tuple[Any, float]]:
        with open(self._file.path, "rb") as handle, warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)  # rows longer than the head
            given = csv_options(self.names) | options
            with pandas.read_csv(handle, chunksize=step, low_memory=False, **given) as reader:
                for frame in reader:
                    yield frame, handle.tell() / self._file.size


_TYPES = {"int": np.int64, "float": np.float64, "bool": np.bool_}


class _Seen:
    """What the batches of a column have been taken for."""

    def __init__(self) -> None:
        self._kinds: set[Kind] = set()
        self._words = False  # there is text that is no number
        self._missing = False
        self._large = False  # there may be whole numbers of more than 64 bits

    def take(self, column: Any) -> None:
        """Take in a batch as pandas inferred its type."""
        there = column.dropna()
        self._missing |= len(there) < len(column)
        kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else "O"
        if len(there) == 0:
            return
        if kind == "i":
            self._kinds.add("int")
        elif kind == "f":
            self._kinds.add("float")
            self._large |= bool((np.isfinite(there) & (there.abs() >= _LARGE)).any())
        elif kind == "b" or isinstance(there.iloc[0], bool):
            self._kinds.add("bool")
        elif kind == "u" or isinstance(there.iloc[0], int):
            self._large = True
        elif not self._words:
            self._kinds.add("text")
            # A batch may be text only because its numbers are too large.
            words = bool(pandas.to_numeric(there, errors="coerce").isna().any())
            self._words |= words
            self._large |= not words

    @property
    def doubtful(self) -> bool:
        """Whether the type is not certain; with a word in it a column is text in any case."""
        return self._large and not self._words

    @property
    def kind(self) -> Kind:
        """What the whole column is, unless that is doubtful."""
        if self._kinds <= {"int"}:
            return "float" if self._missing or not self._kinds else "int"
        if self._kinds <= {"int", "float"}:
            return "float"
        # Truth values with some missing have no type of their own.
        return "bool" if self._kinds == {"bool"} and not self._missing else "text"

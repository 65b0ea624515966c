"""Reading and writing tables: CSV, Parquet and Arrow files, by suffix."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pandas
import pyarrow
import pyarrow.ipc
import pyarrow.parquet

from fairpca._rows.text import listed
from fairpca.cli._terminal import BadInputError, refusing, stage
from fairpca.files.atomic import replacing
from fairpca.tables.preparation import check_column_names

_CSV_TROUBLE = (pandas.errors.ParserError, pandas.errors.ParserWarning)

_PANDAS = tuple(int(part) for part in pandas.__version__.split(".")[:2])
EXACT_NUMBERS = {"float_precision": "round_trip"} if _PANDAS < (3, 1) else {}
"""What makes pandas read the number that is written: from 3.1 on it does so by itself."""

_ENCODING = "utf-8-sig"

_INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name in Parquet and Arrow files."""

_STEERING = ("=", "+", "-", "@", "\t", "\r")
"""Text that begins with one of these can be run as a formula by a spreadsheet."""


def read_table(path: Path, text_columns: Collection[str] = ()) -> Any:
    """Read a file as a data frame; `text_columns` are text even where they look like numbers."""
    suffix = check_table(path)
    with stage(f"reading {path.name}"), reading(path):
        frame = _READERS[suffix](path, text_columns)
        if len(frame) == 0:
            raise BadInputError(f"{str(path)!r} has no rows.")
    return frame


def check_table(path: Path) -> str:
    """Refuse what is no file of a table; its suffix, in small letters."""
    if not path.exists():
        raise BadInputError(f"there is no file {str(path)!r}.")
    if path.is_dir():
        raise BadInputError(f"{str(path)!r} is a folder, not a file.")
    return _known_suffix(path, _READERS)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Take what goes wrong with a file while it is read for bad input."""
    with refusing(str(path)):
        try:
            yield
        except UnicodeDecodeError as error:
            raise BadInputError(
                f"{str(path)!r} is not in UTF-8: save it in that encoding."
            ) from error
        except pandas.errors.EmptyDataError as error:
            raise BadInputError(f"{str(path)!r} is empty.") from error
        except (OSError, pyarrow.ArrowException, *_CSV_TROUBLE) as error:
            raise BadInputError(f"cannot read {str(path)!r}: {error}") from error


def check_table_destination(path: Path | None, *others: Path | None) -> None:
    """Refuse a table that could not be written, or is one of the others, before any work."""
    if path is not None:
        _check_destination(path, _WRITERS, others)


def check_model_destination(path: Path | None, *others: Path | None) -> None:
    """The same for a model."""
    if path is not None:
        # Another suffix would be that of a file with something else, which should not be lost.
        _check_destination(path, [".fairpca"], others)


def check_report_destination(path: Path, *others: Path | None) -> None:
    """The same for a report."""
    _check_destination(path, [".html"], others)


def _check_destination(path: Path, known: Collection[str], others: Iterable[Path | None]) -> None:
    _known_suffix(path, known)
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise BadInputError(f"there is no folder {str(folder)!r} to write {path.name!r} to.")
    if path.is_dir():
        raise BadInputError(f"{str(path)!r} is a folder, not a file.")
    if not os.access(folder, os.W_OK):
        raise BadInputError(f"the folder {str(folder)!r} cannot be written to.")
    for other in others:
        if other is not None and os.path.realpath(path) == os.path.realpath(other):
            raise BadInputError(f"{str(path)!r} is named twice: it would be overwritten.")


def write_table(frame: Any, path: Path) -> None:
    """Write a data frame to a file, which is whole or not there."""
    write = _WRITERS[_known_suffix(path, _WRITERS)]
    with stage(f"writing {path.name}"), replacing(path) as file:
        write(frame, file)


def _known_suffix(path: Path, known: Collection[str]) -> str:
    suffix = path.suffix.lower()
    if suffix not in known:
        raise BadInputError(f"{str(path)!r} must end in one of {listed(list(known))}.")
    return suffix


def csv_names(path: Path) -> list[str]:
    """Names of the columns of a CSV file."""
    first = pandas.read_csv(
        path, header=None, nrows=1, dtype=str, keep_default_na=False, encoding=_ENCODING
    )
    # pandas renames columns whose names repeat, which should be refused instead.
    return check_column_names([str(name) for name in first.iloc[0]])


def csv_options(names: list[str]) -> dict[str, Any]:
    """How pandas is to read a CSV file with these columns."""
    return {"encoding": _ENCODING, "header": 0, "names": names, "index_col": False}


def _read_csv(path: Path, text_columns: Collection[str]) -> Any:
    names = csv_names(path)
    options = csv_options(names)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)  # rows longer than the head
        frame = pandas.read_csv(
            path,
            dtype=dict.fromkeys(set(text_columns) & set(names), str),
            **EXACT_NUMBERS,
            low_memory=False,  # one type for each column, not for each part of it
            **options,
        )
    # "NA" or "None" are missing numbers, but may well be words: in text only nothing is missing.
    doubtful = [
        name
        for name in names
        if frame[name].isna().any()
        and (name in text_columns or not pandas.api.types.is_numeric_dtype(frame[name]))
    ]
    if doubtful:
        texts = pandas.read_csv(path, usecols=doubtful, dtype=str, keep_default_na=False, **options)
        for name in doubtful:
            frame[name] = texts[name].mask(texts[name] == "")
    return frame


def _read_parquet(path: Path, text_columns: Collection[str]) -> Any:
    return from_arrow(pyarrow.parquet.ParquetFile(path).read())


def _read_arrow(path: Path, text_columns: Collection[str]) -> Any:
    with pyarrow.OSFile(str(path), "rb") as file:
        try:
            return from_arrow(pyarrow.ipc.open_file(file).read_all())
        except pyarrow.ArrowInvalid:  # a stream has no footer, and may have the same suffix
            file.seek(0)
            return from_arrow(pyarrow.ipc.open_stream(file).read_all())


def from_arrow(table: Any) -> Any:
    """An Arrow table as a data frame."""
    check_column_names(table.column_names)
    # What the file remembers of pandas would make indexes of columns, and numbers of names. An
    # index without a name is no data.
    nameless = [name for name in table.column_names if _INDEX.fullmatch(name)]
    return table.drop_columns(nameless).to_pandas(ignore_metadata=True)


def write_csv(frame: Any, file: BinaryIO, head: bool = True) -> None:
    """Write a data frame as lines of text, with or without the names of the columns."""
    guarded = frame.copy(deep=False)
    for j, dtype in enumerate(frame.dtypes):
        if not pandas.api.types.is_numeric_dtype(dtype):
            guarded.isetitem(j, frame.iloc[:, j].map(_harmless, na_action="ignore"))
    guarded.columns = [_harmless(name) for name in frame.columns]
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
    guarded.to_csv(text, index=False, header=head, lineterminator="\n")
    text.detach()


def _harmless(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_STEERING):
        return f"'{value}"
    return value


def _write_parquet(frame: Any, file: BinaryIO) -> None:
    pyarrow.parquet.write_table(pyarrow.Table.from_pandas(frame, preserve_index=False), file)


def _write_arrow(frame: Any, file: BinaryIO) -> None:
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    with pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


_READERS: dict[str, Callable[[Path, Collection[str]], Any]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
}
_WRITERS: dict[str, Callable[[Any, BinaryIO], None]] = {
    ".csv": write_csv,
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
}

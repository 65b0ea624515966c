"""From what the user typed as TABLE to a table that can be read."""

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairpca.choices import READABLE
from fairpca.cli._outputs import check_suffix
from fairpca.cli._reading import ReadingOptions
from fairpca.cli._terminal import BadInputError
from fairpca.tables.batches import Table

STDIN = "-"
"""What stands for the standard input in the place of a file."""

_MAGIC = {b"PAR1": ".parquet", b"ARRO": ".arrow", b"\xff\xff\xff\xff": ".arrow"}
_GZIP = b"\x1f\x8b"


def open_table(
    path: Path,
    reading: ReadingOptions,
    *,
    text: Collection[str] = (),
    as_text: Collection[str] = (),
    names: Collection[str] = (),
    stream: bool = False,
    whole: bool = False,
) -> Table:
    """Open the file of a table; `stream` wants batches of it, and `whole` all rows in memory.

    Columns of a CSV file are `text` whatever they look like, and those of any file `as_text`. Those
    of `names` are called so with all their white space, if there are any.
    """
    if stream and whole:
        raise BadInputError(
            "a report resamples the rows, which it needs in memory: leave out --report or --stream."
        )
    how: dict[str, Any] = {
        "text": text,
        "as_text": {*as_text, *reading.as_text},
        "in_memory": True if whole else False if stream else None,
        "rules": replace(reading.rules, names=frozenset(names)),
    }
    if str(path) == STDIN:
        spooled = _spooled()
        try:
            table = Table(spooled, title="standard input", **how)
        except BaseException:
            spooled.unlink()
            raise
        weakref.finalize(table, os.unlink, spooled)
        return table
    if not path.exists():
        raise BadInputError(f"there is no file {str(path)!r}.")
    if path.is_dir():
        raise BadInputError(f"{str(path)!r} is a folder, not a file.")
    check_suffix(path, READABLE)
    return Table(path, **how)


def _spooled() -> Path:
    """The standard input as a file, since a table is read more than once."""
    if sys.stdin is None or sys.stdin.isatty():
        raise BadInputError("there is no table on the standard input: pipe one in, or name a file.")
    source = sys.stdin.buffer
    head = source.read(8)
    suffix = ".csv.gz" if head.startswith(_GZIP) else _MAGIC.get(head[:4], ".csv")
    with tempfile.NamedTemporaryFile(prefix="fairpca-", suffix=suffix, delete=False) as file:
        file.write(head)
        shutil.copyfileobj(source, file)
    return Path(file.name)

"""What a file that is no CSV file as expected may be instead, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fairpca.tables.refusals import TableError, typed

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars", ",": "commas"}
"""What separates cells in files that people have."""

_MAGIC = {
    b"PK\x03\x04": "a spreadsheet or a zip archive",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"%PDF": "a PDF file",
    b"SQLite": "a database",
}
"""How files begin that are no text."""

_GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def refuse_other_files(head: bytes, packed: bool) -> None:
    """Raise TableError if a file that begins so is no text, or compressed where it should not be.

    Parameters
    ----------
    head : bytes
        The first bytes of the file.
    packed : bool
        Whether its name says that it is compressed.
    """
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            remedy = "save it as CSV (UTF-8)" if "spread" in what else "give it the right suffix"
            raise TableError(f"It is {what}, not the text that its suffix says", remedy)
    if head.startswith(_GZIP) != packed:
        if packed:
            raise TableError("It is not compressed, as its suffix says", "leave out the .gz")
        raise TableError("It is compressed by gzip", "add .gz to its name")


def refuse_other_separators(head: bytes, encoding: str, sep: str, chosen: bool) -> None:
    """Raise TableError if text that begins so is in UTF-16, or its first line has one other cell.

    Parameters
    ----------
    head : bytes
        The first bytes of the text.
    encoding, sep : str
        How it is to be read.
    chosen : bool
        Whether someone asked for this separator.
    """
    zeros = head.count(b"\0")
    if encoding == "utf-8" and (head.startswith(_UTF16) or zeros > len(head) // 4):
        kind = "utf-16" if head.startswith(_UTF16) else "utf-16-le"
        if not head.startswith(_UTF16) and head[:1] == b"\0":
            kind = "utf-16-be"
        raise TableError(
            "It is not in UTF-8, but seems to be in UTF-16",
            "save it in UTF-8",
            f"add --encoding {kind}, or save it in UTF-8",
        )
    first = next(iter(head.decode(encoding, "replace").splitlines()), "")
    other = _other_separator(first, sep)
    if other is not None and not chosen and first.count(sep) == 0:
        raise _separated(other, sep)


def said_separator(head: bytes, encoding: str) -> str:
    """The separator that a first line such as "sep=;" says, as spreadsheets write it, or none."""
    text = head.decode(encoding, "replace").removeprefix("\ufeff")
    found = re.match(r'"?sep=([^\w\s"]|\t)"?\r?\n', text, re.I)
    return found[1] if found else ""


def ragged(records: Iterable[tuple[int, int, list[str]]], sep: str) -> TableError | None:
    """What is said of the first row that has another number of cells than the names."""
    expected = 0
    for first, last, cells in records:
        if not expected:
            expected, other = len(cells), _other_separator(sep.join(cells), sep)
        elif len(cells) != expected:
            if other is not None:
                return _separated(other, sep)
            where = f"line {first:,}"
            what = "add the cells that are missing, if only as empty ones"
            if len(cells) > expected:
                what = "put cells that contain the separator in quotes"
            if expected == 1:
                what = "remove what stands above the names of the columns"
            elif last > first:
                where = f"the row in lines {first:,} to {last:,}"
                what = "close the quote that is open there"
            n = len(cells)
            return TableError(
                f"It cannot be read, as {where} has {n} cell{'s' * (n != 1)} and the first line "
                f"{expected}",
                what,
            )
    return None


def _other_separator(first: str, sep: str) -> str | None:
    """The separator that a first line has more often than the one it is to be read with."""
    outside = re.sub(r'"[^"]*"', "", first)
    counts = {other: outside.count(other) for other in _SEPARATORS}
    best = max(counts, key=lambda other: counts[other])
    return best if counts[best] > outside.count(sep) else None


def _separated(other: str, sep: str) -> TableError:
    named = "tab" if other == "\t" else f"'{other}'"
    kind, expected = _SEPARATORS[other], _SEPARATORS.get(sep, repr(sep))
    also = ", and --decimal , if its numbers have decimal commas" if other == ";" else ""
    return TableError(
        f"It seems to have {kind} between its cells, not {expected}",
        f"save it with {expected}",
        f"add --sep {named}{also}",
    )


def encoding_error(shown: str, encoding: str) -> TableError:
    """What is said of a file that is not in the encoding it should be in."""
    if encoding != "utf-8":
        return TableError(
            f"{shown} is not in the encoding {encoding!r}",
            "save it in UTF-8",
            f"save it in UTF-8, or say which it is, such as {typed('--encoding', ['cp1252'])}",
        )
    return TableError(
        f"{shown} is not in UTF-8",
        "save it in that encoding",
        "save it in that encoding, or add --encoding cp1252 (or latin-1) if it comes from an "
        "older program or a spreadsheet on Windows",
    )

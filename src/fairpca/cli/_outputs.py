"""Files that are named: those that cannot be used are refused before any work."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from fairpca.cli._terminal import BadInputError
from fairpca.text import listed

MODEL, REPORT = (".fairpca",), (".html",)
"""How files of models and of reports end."""

_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
_EXPORTED = (".sav", ".zsav", ".dta", ".sas7bdat", ".xpt", ".rds", ".rdata", ".mat", ".json")
_ELSEWHERE = {
    **dict.fromkeys(
        _SPREADSHEETS, 'a spreadsheet: save its sheet as "CSV UTF-8" and name that file'
    ),
    **dict.fromkeys(_EXPORTED, "a file of another program: export it as CSV and name that file"),
    ".zip": "an archive: unpack it and name the table in it",
}
"""What people have tables in, and how a table comes out of it."""


def check_destination(
    path: Path | None, suffixes: Sequence[str], *others: Path | None, force: bool = False
) -> None:
    """Refuse a file that could not or should not be written, before any work.

    Another suffix would be that of a file with something else, which should not be lost; nor should
    a file that is there already, unless `force` says so, or one of the others.
    """
    if path is None:
        return
    check_suffix(path, suffixes)
    folder = Path(os.path.realpath(path)).parent
    try:
        os.lstat(path)
        there = True
    except FileNotFoundError:
        there = False
    except NotADirectoryError:
        raise BadInputError(f"there is no folder {str(folder)!r} to write to.") from None
    except OSError as error:
        raise BadInputError(failure(error, "write", path)) from error
    if not folder.is_dir():
        raise BadInputError(f"there is no folder {str(folder)!r} to write {path.name!r} to.")
    if path.is_dir():
        raise BadInputError(f"{str(path)!r} is a folder, not a file.")
    for other in others:
        if other is not None and os.path.realpath(path) == os.path.realpath(other):
            raise BadInputError(f"{str(path)!r} is named twice: it would be overwritten.")
    if there and not force:
        raise BadInputError(
            f"{str(path)!r} is there already: name another file, or replace it with --force."
        )
    if path.exists() and not path.is_file():
        raise BadInputError(f"{str(path)!r} is not a regular file: name another one.")
    if not os.access(folder, os.W_OK):
        raise BadInputError(f"the folder {str(folder)!r} cannot be written to.")
    if path.exists() and not os.access(path, os.W_OK):
        raise BadInputError(f"{str(path)!r} may not be written to: name another file.")


def check_suffix(path: Path, known: Sequence[str]) -> None:
    """Refuse a file that does not end in one of these."""
    if path.name.lower().endswith(tuple(known)):
        return
    what = _ELSEWHERE.get(path.suffix.lower())
    if what is not None and ".csv.gz" in known:  # a table to be read
        raise BadInputError(f"{str(path)!r} is {what}.")
    more = ""
    if ".csv.gz" in known:
        more = ": rename it, or, if it is a table of text, pipe it in with - in place of its name"
    raise BadInputError(f"{str(path)!r} must end in one of {listed(known)}{more}.")


def failure(error: OSError, verb: str = "use", path: object = None) -> str:
    """What an operating system refused, in one sentence."""
    path = error.filename if path is None else path
    reason = _REASONS.get(error.errno or 0, (error.strerror or str(error)).lower())
    return f"cannot {'go on' if path is None else f'{verb} {str(path)!r}'}: {reason}."


_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your share of the disk is full",
    errno.EFBIG: "the file would be larger than is allowed here",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EACCES: "you have no permission",
    errno.EPERM: "you have no permission",
    errno.EROFS: "the disk can only be read",
    errno.ENOENT: "there is no such file or folder",
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EIO: "the disk does not answer as it should",
}
"""Reasons in words that need no knowledge of the system."""

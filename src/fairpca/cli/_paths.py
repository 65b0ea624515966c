"""Files that are named on the command line, looked at before any work."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from fairpca._rows.text import listed
from fairpca.cli._terminal import BadInputError, refusing
from fairpca.estimators.model_file import FairModel, load_model
from fairpca.tables import reading
from fairpca.tables.batches import Table
from fairpca.tables.preparation import Preparation

MODEL, REPORT = (".fairpca",), (".html",)
"""How files of models and of reports end."""


@refusing()
def open_table(
    path: Path, *, text: Collection[str] = (), stream: bool = False, whole: bool = False
) -> Table:
    """Open the file of a table; `stream` wants batches of it, and `whole` all rows in memory."""
    if not path.exists():
        raise BadInputError(f"there is no file {str(path)!r}.")
    if path.is_dir():
        raise BadInputError(f"{str(path)!r} is a folder, not a file.")
    _check_suffix(path, reading.SUFFIXES)
    if stream and whole:
        raise BadInputError(
            "a report resamples the rows, which it needs in memory: leave out --report or --stream."
        )
    return Table(path, text=text, in_memory=True if whole else False if stream else None)


def read_model(path: Path) -> tuple[FairModel, Preparation]:
    """Read a model file; also its preparation, which tables cannot do without."""
    try:
        with refusing():
            model = load_model(path)
    except FileNotFoundError as error:
        raise BadInputError(f"there is no file {str(path)!r}.") from error
    except OSError as error:
        raise BadInputError(f"cannot read {str(path)!r}: {error}") from error
    if model.preparation is None:
        raise BadInputError(
            f"{str(path)!r} was fitted on columns without names: tables cannot be used."
        )
    return model, model.preparation


def check_destination(path: Path | None, suffixes: Sequence[str], *others: Path | None) -> None:
    """Refuse a file that could not be written, or is one of the others, before any work.

    Another suffix would be that of a file with something else, which should not be lost.
    """
    if path is None:
        return
    _check_suffix(path, suffixes)
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


def _check_suffix(path: Path, known: Collection[str]) -> None:
    if not path.name.lower().endswith(tuple(known)):
        raise BadInputError(f"{str(path)!r} must end in one of {listed(list(known))}.")

"""Model files on the command line, and their tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairpca._linalg.types import Array
from fairpca.cli._terminal import BadInputError, refusing
from fairpca.files.model_file import FairModel, load_model
from fairpca.tables.preparation import Preparation, require_columns


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


def apply_preparation(
    preparation: Preparation, frame: Any, drop: Sequence[str], carry: Sequence[str] = ()
) -> Array:
    """The prepared columns of a new table, less those that the user says do not belong to it."""
    with refusing():
        return preparation.apply(frame[_belonging(preparation, list(frame.columns), drop, carry)])


def check_columns(
    preparation: Preparation, names: list[str], drop: Sequence[str], carry: Sequence[str] = ()
) -> None:
    """Refuse a table with these columns if `apply_preparation` would do so because of them."""
    with refusing():
        preparation.check_names(_belonging(preparation, names, drop, carry))


def _belonging(
    preparation: Preparation, names: list[str], drop: Sequence[str], carry: Sequence[str]
) -> list[str]:
    require_columns(names, drop)
    needed = {column.name for column in preparation.columns}
    unused = {*drop, *(name for name in carry if name not in needed)}
    return [name for name in names if name not in unused]

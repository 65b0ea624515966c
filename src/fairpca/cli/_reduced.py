"""The reduced table that is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas

from fairpca import FairPCA
from fairpca._linalg.types import Array
from fairpca.cli._terminal import BadInputError, refusing
from fairpca.tables.preparation import require_columns


def check_carried(names: list[str], carry: Sequence[str], output: Path | None) -> None:
    """Refuse columns to carry over that are not there, or have nowhere to go."""
    if carry and output is None:
        raise BadInputError("--carry needs --output, the table to carry columns into.")
    with refusing():
        require_columns(names, carry)


def reduced_table(fair: FairPCA, rows: Array, frame: Any, carry: Sequence[str]) -> Any:
    """The reduced rows as a data frame, behind the columns that are carried over."""
    carried = list(dict.fromkeys(carry))
    names = [str(name) for name in fair.get_feature_names_out()]
    for name in carried:
        if name in names:
            raise BadInputError(
                f"the column {name!r} cannot be carried over: a reduced one has its name."
            )
    reduced = pandas.DataFrame(fair.transform(rows), columns=names, index=frame.index)
    return pandas.concat([frame[carried], reduced], axis="columns")

"""Groups of so few rows that sums of them tell of single people."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairpca._rows.text import short_text
from fairpca._rows.words import MIN_ROWS
from fairpca.exceptions import warn_user

_NAMED = 5
"""How many groups a warning names."""


def warn_of_small_groups(file: str, groups: Sequence[str], count: NDArray[np.int64]) -> None:
    """Warn that a file, such as "file of moments", tells of single rows, and name the groups."""
    small = [
        f"{short_text(group)!r} ({n} row{'' if n == 1 else 's'})"
        for group, n in zip(groups, count.tolist(), strict=True)
        if n < MIN_ROWS
    ]
    if small:
        more = f" and {len(small) - _NAMED} more" if len(small) > _NAMED else ""
        warn_user(
            f"This {file} holds what can tell of single rows, because groups have fewer than "
            f"{MIN_ROWS}: {', '.join(small[:_NAMED])}{more}; merge such groups or leave them "
            "out before you share it (docs/privacy.md)."
        )

"""Rows that are in the data more than once: the same people, maybe, of whom there are fewer."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.types import Array
from fairpca._rows.folds import row_numbers
from fairpca.estimators.gather import Gathered

_MANY = 0.25
"""Share of repeated rows from which intervals are too narrow by more than a few per cent."""

_BY_CHANCE = 0.1
"""Copies that a row may have by chance for repeated rows to be worth a word: a table of a few
categories has the same row often, though each is another person."""


class Repeats(NamedTuple):
    """How many rows are in the data more than once.

    Attributes
    ----------
    rows : int
        Rows that have the same values as another one.
    different : int
        How many different rows there are.
    of : int
        How many rows there are.
    """

    rows: int
    different: int
    of: int


def repeats(gathered: Gathered) -> Repeats | None:
    """Repeated rows, if there are many and chance does not explain them."""
    rows, chosen = gathered.rows, None
    if gathered.codes is not None:
        used = np.asarray(gathered.codes) >= 0
        used &= True if gathered.weights is None else np.asarray(gathered.weights) > 0.0
        chosen = None if used.all() else np.flatnonzero(used)
    _, counts = np.unique(row_numbers(rows, chosen), return_counts=True)
    n, repeated = int(counts.sum()), int(counts[counts > 1].sum())
    if repeated < _MANY * n or _copies_by_chance(rows, chosen, n) > _BY_CHANCE:
        return None
    return Repeats(repeated, len(counts), n)


def _copies_by_chance(rows: Any, chosen: NDArray[np.intp] | None, n: int) -> float:
    """Copies that a row would have if columns had nothing to do with each other.

    Columns of two values do not count: several of them may stand for one column of text.
    """
    rows = rows.tocsc() if scipy.sparse.issparse(rows) else rows
    copies = float(n - 1)
    for j in range(rows.shape[1]):
        column: Array = rows[:, [j]].toarray()[:, 0] if scipy.sparse.issparse(rows) else rows[:, j]
        _, counts = np.unique(column if chosen is None else column[chosen], return_counts=True)
        if len(counts) > 2:
            copies *= float((counts * (counts - 1.0)).sum()) / (n * (n - 1.0))
        if copies <= _BY_CHANCE:
            break
    return copies

"""Rows that are in the data more than once: the same people, maybe, of whom there are fewer."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.types import Array
from fairpca.data import GroupedData
from fairpca.folds import column_numbers, row_numbers

_MANY = 0.25
"""Share of repeated rows from which intervals are too narrow by more than a few per cent."""

_BY_CHANCE = 0.1
"""Copies that a row may have by chance for repeated rows to be worth a word: a table of a few
categories has the same row often, though each is another person."""

_ALONE = 0.1
"""Share of the different rows that one column alone may tell apart: of rows that are copies, any
column can be left out, whereas people who are alike by chance differ in their age, say."""


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


def repeats(grouped_data: GroupedData) -> Repeats | None:
    """Repeated rows, if there are many and chance does not explain them."""
    rows, chosen = grouped_data.rows, None
    if grouped_data.codes is not None:
        used = np.asarray(grouped_data.codes) >= 0
        used &= True if grouped_data.weights is None else np.asarray(grouped_data.weights) > 0.0
        chosen = None if used.all() else np.flatnonzero(used)
    numbers, first, counts = np.unique(
        row_numbers(rows, chosen), return_index=True, return_counts=True
    )
    n, repeated = int(counts.sum()), int(counts[counts > 1].sum())
    if repeated < _MANY * n:
        return None
    # Copies that a row would have if columns had nothing to do with each other. Columns of two
    # values do not count, as several of them may stand for one column of text.
    copies = float(n - 1)
    for j, column in enumerate(_columns(rows, chosen)):
        _, alike = np.unique(column, return_counts=True)
        if len(alike) > 2:
            copies *= float((alike * (alike - 1.0)).sum()) / (n * (n - 1.0))
        left = len(np.unique(numbers - column_numbers(column[first], j)))
        if left < (1.0 - _ALONE) * len(numbers):
            return None
    return Repeats(repeated, len(counts), n) if copies <= _BY_CHANCE else None


def _columns(rows: Any, chosen: NDArray[np.intp] | None) -> Iterator[Array]:
    sparse = scipy.sparse.issparse(rows)
    rows = rows.tocsc() if sparse else rows
    for j in range(rows.shape[1]):
        column = rows[:, [j]].toarray()[:, 0] if sparse else rows[:, j]
        yield column if chosen is None else column[chosen]

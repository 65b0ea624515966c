"""Reading a packaged file into a table of numeric columns."""

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

FOLDER = resources.files("fairpca.datasets") / "data"

Levels = Mapping[int, str]
"""What each code of a column means."""


@dataclass(frozen=True, eq=False)
class Table:
    """All rows of a data set, with what is needed to choose rows and name groups.

    Loaders keep it, and hand out copies of the rows that are asked for.

    Attributes
    ----------
    columns : mapping of names to arrays of shape (n,)
    levels : mapping of names to Levels
        Of the categorical columns.
    attributes : mapping of names to pairs
        Of the sensitive attributes: the column that holds it, and its group labels.
    target : integer array of shape (n,)
    target_name, target_names : str, sequence of str
    is_test : boolean array of shape (n,)
        Rows of the test part.
    description : str
    """

    columns: Mapping[str, NDArray[np.float64]]
    levels: Mapping[str, Levels]
    attributes: Mapping[str, tuple[str, Levels]]
    target: NDArray[np.int64]
    target_name: str
    target_names: Sequence[str]
    is_test: NDArray[np.bool_]
    description: str


def read_rows(filename: str) -> list[list[str]]:
    """Return the cells of a gzipped, comma-separated file of this package, line by line."""
    text = gzip.decompress((FOLDER / filename).read_bytes()).decode("ascii")
    # Both of UCI's Adult files end in an empty line, which csv reports as an empty row.
    return [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if row]

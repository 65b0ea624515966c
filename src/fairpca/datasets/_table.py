"""Reading a packaged file into a table of numeric columns."""

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Column:
    """One feature; `levels` names the level behind each code and is None for a numeric column."""

    name: str
    values: NDArray[np.float64]
    levels: Mapping[int, str] | None = None


@dataclass(frozen=True, eq=False)
class Attribute:
    """A sensitive attribute: the column that holds it and the group label of each code."""

    column: str
    labels: Mapping[int, str]


@dataclass(frozen=True, eq=False)
class Table:
    """All rows of a data set, with what is needed to choose rows and name groups.

    Tables are cached by the loaders, so every array in them has to be read-only (see `frozen`).
    """

    columns: Sequence[Column]
    target: NDArray[np.int64]
    target_name: str
    target_names: Sequence[str]
    attributes: Mapping[str, Attribute]
    is_test: NDArray[np.bool_]
    is_unclear: NDArray[np.bool_]
    """Rows with a missing or undocumented value, which the user may ask to drop."""
    description: str


def read_rows(filename: str) -> list[list[str]]:
    """Return the cells of a gzipped, comma-separated file of this package, line by line."""
    text = gzip.decompress(_packaged(filename).read_bytes()).decode("ascii")
    # Both of UCI's Adult files end in an empty line, which csv reports as an empty row.
    return [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if row]


def read_text(filename: str) -> str:
    """Return the text of a file of this package."""
    return str(_packaged(filename).read_text(encoding="ascii"))


def _packaged(filename: str) -> Any:
    return resources.files("fairpca.datasets") / "data" / filename


def frozen(values: Any, dtype: type) -> NDArray[Any]:
    """Return the values as a new read-only array."""
    array: NDArray[Any] = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array

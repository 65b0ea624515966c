"""From a packaged file to a table of numeric columns, and to the Bunch that a loader returns."""

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from fairpca.text import listed
from fairpca.validation import check_choice, import_pandas

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


def make_bunch(
    table: Table,
    subset: str,
    sensitive: str | Sequence[str],
    encoding: str,
    keep_sensitive: bool,
    as_frame: bool,
) -> Bunch:
    """Check the options that all data sets share, then select, encode and wrap the data."""
    check_choice("subset", subset, ("train", "test", "all"))
    check_choice("encoding", encoding, ("codes", "onehot", "numeric"))
    check_choice("keep_sensitive", keep_sensitive, (True, False))
    check_choice("as_frame", as_frame, (True, False))
    names = (sensitive,) if isinstance(sensitive, str) else sensitive
    known = list(table.attributes)
    good = isinstance(names, tuple | list) and all(name in known for name in names)
    if not good or not 0 < len(names) == len(set(names)):
        raise ValueError(
            f"sensitive must be one of {listed(known)}, or a sequence of some of them "
            f"without repeats, got {sensitive!r}."
        )
    pandas = import_pandas() if as_frame else None

    rows = np.arange(len(table.target))
    if subset != "all":
        rows = np.flatnonzero(table.is_test == (subset == "test"))
    chosen = [table.attributes[name] for name in names]
    hidden = set() if keep_sensitive else {column for column, _ in chosen}
    data, feature_names = _encode(table, hidden, rows, encoding)
    groups = np.empty((len(rows), len(names)), dtype=object)
    for j, (column, labels) in enumerate(chosen):
        groups[:, j] = [labels[code] for code in table.columns[column][rows].tolist()]

    bunch = Bunch(
        data=data,
        target=table.target[rows],
        sensitive_features=groups if len(names) > 1 else groups[:, 0],
        feature_names=feature_names,
        target_names=list(table.target_names),
        DESCR=table.description,
    )
    if pandas is not None:
        bunch.data = pandas.DataFrame(data, columns=feature_names)
        bunch.target = pandas.Series(bunch.target, name=table.target_name)
        frame = pandas.DataFrame(groups, columns=list(names))
        bunch.sensitive_features = frame if len(names) > 1 else frame[names[0]]
    return bunch


def _encode(
    table: Table, hidden: set[str], rows: NDArray[np.intp], encoding: str
) -> tuple[NDArray[np.float64], list[str]]:
    # The columns made here depend on the levels of the whole table, never on the chosen rows, so
    # that a model fitted on one subset can be applied to another.
    encoded: dict[str, NDArray[Any]] = {}
    for name, column in table.columns.items():
        if name in hidden:
            continue
        values, levels = column[rows], table.levels.get(name)
        if levels is None or encoding == "codes":
            encoded[name] = values
        elif encoding == "onehot":
            encoded |= {f"{name}={level}": values == code for code, level in levels.items()}
    return np.column_stack([*encoded.values()]).astype(np.float64, copy=False), [*encoded]

"""Packaged files as tables of numeric columns, and the Bunch that a loader makes of one."""

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

SUBSETS = ("train", "test", "all")
ENCODINGS = ("codes", "onehot", "numeric")


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

    def bunch(
        self,
        subset: str,
        sensitive: str | Sequence[str],
        encoding: str,
        *,
        keep_sensitive: bool,
        as_frame: bool,
        drop_unclear: bool,
    ) -> Bunch:
        """Check the options that all data sets share, then select, encode and wrap the data."""
        check_choice("subset", subset, SUBSETS)
        check_choice("encoding", encoding, ENCODINGS)
        check_choice("keep_sensitive", keep_sensitive, (True, False))
        check_choice("as_frame", as_frame, (True, False))
        names = _sensitive_names(sensitive, tuple(self.attributes))
        pandas = import_pandas() if as_frame else None

        wanted = np.ones(len(self.target), dtype=bool)
        if subset != "all":
            wanted &= self.is_test == (subset == "test")
        if drop_unclear:
            wanted &= ~self.is_unclear
        hidden = set() if keep_sensitive else {self.attributes[name].column for name in names}
        columns = [column for column in self.columns if column.name not in hidden]
        data, feature_names = _encode(columns, wanted, encoding)
        values = {column.name: column.values[wanted].tolist() for column in self.columns}
        groups = np.empty((len(data), len(names)), dtype=object)
        for j, attribute in enumerate(self.attributes[name] for name in names):
            groups[:, j] = [attribute.labels[code] for code in values[attribute.column]]

        found = Bunch(
            data=data,
            target=self.target[wanted],
            sensitive_features=groups if len(names) > 1 else groups[:, 0],
            feature_names=feature_names,
            target_names=list(self.target_names),
            DESCR=self.description,
        )
        if pandas is not None:
            found.data = pandas.DataFrame(data, columns=feature_names)
            found.target = pandas.Series(found.target, name=self.target_name)
            frame = pandas.DataFrame(groups, columns=list(names))
            found.sensitive_features = frame if len(names) > 1 else frame[names[0]]
        return found


def _sensitive_names(sensitive: str | Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    names = (sensitive,) if isinstance(sensitive, str) else sensitive
    try:
        names = tuple(names)
        valid = 0 < len(names) == len(set(names)) and set(names) <= set(known)
    except TypeError:  # not a sequence, or one of something other than names
        valid = False
    if not valid:
        raise ValueError(
            f"sensitive must be one of {listed(known)}, or a sequence of some of them "
            f"without repeats, got {sensitive!r}."
        )
    return tuple(names)


def _encode(
    columns: Sequence[Column], rows: NDArray[np.bool_], encoding: str
) -> tuple[NDArray[np.float64], list[str]]:
    # The columns made here depend on the levels of the whole table, never on the chosen rows, so
    # that a model fitted on one subset can be applied to another.
    names: list[str] = []
    encoded: list[NDArray[np.float64]] = []
    for column in columns:
        values = column.values[rows]
        if column.levels is None or encoding == "codes":
            names.append(column.name)
            encoded.append(values)
        elif encoding == "onehot":
            for code, level in column.levels.items():
                names.append(f"{column.name}={level}")
                encoded.append((values == code).astype(np.float64))
    return np.column_stack(encoded), names


def read_rows(filename: str) -> list[list[str]]:
    """The cells of a gzipped, comma-separated file of this package, line by line."""
    text = gzip.decompress(_packaged(filename).read_bytes()).decode("ascii")
    # Both of UCI's Adult files end in an empty line, which csv reports as an empty row.
    return [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if row]


def read_text(filename: str) -> str:
    """The text of a file of this package."""
    return str(_packaged(filename).read_text(encoding="ascii"))


def _packaged(filename: str) -> Any:
    return resources.files("fairpca.datasets") / "data" / filename


def frozen(values: Any, dtype: type) -> NDArray[Any]:
    """The values as a new read-only array."""
    array: NDArray[Any] = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array

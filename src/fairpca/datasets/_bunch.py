"""From a table and the user's options to the Bunch that a loader returns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from fairpca.datasets._table import Table
from fairpca.text import listed
from fairpca.validation import check_choice, import_pandas

SUBSETS = ("train", "test", "all")
ENCODINGS = ("codes", "onehot", "numeric")


def make_bunch(
    table: Table,
    subset: str,
    sensitive: str | Sequence[str],
    encoding: str,
    keep_sensitive: bool,
    as_frame: bool,
) -> Bunch:
    """Check the options that all data sets share, then select, encode and wrap the data."""
    check_choice("subset", subset, SUBSETS)
    check_choice("encoding", encoding, ENCODINGS)
    check_choice("keep_sensitive", keep_sensitive, (True, False))
    check_choice("as_frame", as_frame, (True, False))
    names = _sensitive_names(sensitive, tuple(table.attributes))
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

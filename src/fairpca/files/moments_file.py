"""Files of moments (suffix ``.moments``), in the manner of model files and without pickle.

The header (see `fairpca.files.archive`) has these keys beside the common ones:

=================  ============================================================================
``format``         "fairpca moments"
``version``        1; a reader refuses versions that are newer than its own
``labels``         the groups: texts, numbers and truth values as they are, intersections as
                   lists, dates, times, decimal numbers, infinities and folds as
                   ``{kind: text}``
``feature_names``  names of the columns, or null
``group_names``    names of the sensitive columns, or null; older files have none
``group_orders``   for each sensitive column its ordered categories or null, or null for all;
                   older files have none
``n_dropped``      rows left out for want of a label; older files have none
``pass``           what a pass over files has read so far (see `fairpca.sources`), or null
=================  ============================================================================

The arrays are ``count`` (int64), ``weight``, ``mean`` and ``scatter``, and ``weight_squares`` where
rows have weights.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from fairpca._linalg.types import Array
from fairpca.files.archive import COUNTS, FLOATS, FileFormat, shown_source
from fairpca.files.checks import (
    MOST_ROWS,
    check_finite,
    check_positive,
    checked_texts,
    checked_whole,
    quoted,
    require,
    taking_for_damage,
)
from fairpca.folds import N_FOLDS
from fairpca.groups import Fold, warn_of_small_groups

# Whether matrices can be scatters: symmetric and positive semi-definite, up to rounding.

_MOST_FACTORED = 1000
"""Columns up to which a matrix is factored, which takes about as long as reading it. Of larger ones
(at 5,000 columns that would be seconds for each group) only the diagonal and each pair of columns
are looked at: no entry may be larger than the variances of its two columns allow."""

_BLOCK = 256
"""Rows of a matrix that are looked at together, so that the check takes little memory."""

_ROUNDING = 1e-6
"""What scatters may miss, relative to the sizes of their columns."""

_MEAN_SHARE = 1e-5
"""How far the mean of a column counts as its size, squared: sums of squares are rounded by 1e-11 of
those of the raw column, which for columns far from zero is more than 1e-6 of their scatter."""

_TINY = 1e-150
"""Columns of smaller size have squares that underflow, and are taken to have this one."""


def check_scatters(scatter: Array, mean: Array, weight: Array, called: list[str]) -> None:
    """Refuse scatters of shape (k, d, d) that no rows have; the others stay as they are."""
    with np.errstate(all="ignore"):  # of numbers near the largest there are
        for matrix, centre, total, name in zip(scatter, mean, weight, called, strict=True):
            diagonal = np.diagonal(matrix)
            squares = np.maximum(diagonal, 0.0) + _MEAN_SHARE * total * centre**2
            sizes = np.maximum(np.sqrt(squares), _TINY)
            what = f"the scatter of its group {name}"
            require(
                (diagonal >= -_ROUNDING * sizes**2).all(),
                f"{what} has a negative sum of squares",
            )
            for start in range(0, len(matrix), _BLOCK):
                block = slice(start, start + _BLOCK)
                room = sizes[block, None] * sizes
                differences = np.abs(matrix[block] - matrix[:, block].T)
                require(
                    (differences <= _ROUNDING * room).all(), f"{what} is not the same both ways"
                )
                require(
                    (np.abs(matrix[block]) <= (1.0 + _ROUNDING) * room).all(),
                    f"{what} has entries that are larger than its sums of squares allow",
                )
            if 2 < len(matrix) <= _MOST_FACTORED:
                scaled = matrix / sizes[:, None]
                scaled /= sizes
                scaled.flat[:: len(matrix) + 1] += _ROUNDING
                failed = lapack.dpotrf(scaled.T, overwrite_a=True)[1]
                require(failed == 0, f"{what} is not positive semi-definite, as all scatters are")


_ARRAYS = {
    "count": (COUNTS, 1),
    "weight": (FLOATS, 1),
    "mean": (FLOATS, 2),
    "scatter": (FLOATS, 3),
    "weight_squares": (FLOATS, 1),
}

FILE = FileFormat("fairpca moments", 1, "file of moments", _ARRAYS)

_KINDS: tuple[tuple[str, type, Any], ...] = (
    ("datetime", datetime, datetime.fromisoformat),  # before date, as each of them is one
    ("date", date, date.fromisoformat),
    ("time", time, time.fromisoformat),
    ("decimal", Decimal, Decimal),
    ("float", float, float),
    ("fold", Fold, Fold),
)
"""Labels that JSON does not have: what they are called, their type, and how text becomes one."""


@dataclass(frozen=True, eq=False)
class StoredMoments:
    """What a file of moments holds."""

    labels: tuple[Hashable, ...]
    count: NDArray[np.int64]
    weight: Array
    mean: Array
    scatter: Array
    weight_squares: Array | None
    feature_names: tuple[str, ...] | None
    group_names: tuple[str, ...] | None
    group_orders: tuple[tuple[Hashable, ...] | None, ...] | None
    n_dropped: int


def save(path: str | Path, moments: Any) -> None:
    """Write the moments that a user saves, with a warning if they tell of single rows."""
    if not moments.is_finite:
        raise ValueError("Moments that are not finite cannot be saved.")
    warn_of_small_groups("file of moments", moments.group_texts, moments.count)
    write(path, moments)


def write(path: str | Path, stored: Any, reading: dict[str, Any] | None = None) -> None:
    """Write moments to a file, with what has been read if they are those of a pass."""
    FILE.write(path, *_parts(stored, reading))


def read(source: str | Path | bytes) -> tuple[StoredMoments, dict[str, Any] | None]:
    """The moments of a file or its bytes, and what had been read if they are those of a pass."""
    header, arrays = FILE.read(source)
    with taking_for_damage(shown_source(source)):
        missing = next((name for name in _ARRAYS if name not in {*arrays, "weight_squares"}), None)
        require(missing is None, f"its array {missing} is missing")
        stored = _restored(header, {"weight_squares": None, **arrays})
        _check_values(stored)
        reading = header["pass"]
        require(reading is None or isinstance(reading, dict), "its list of files read is no table")
        return stored, reading


def _restored(header: dict[str, Any], arrays: dict[str, Any]) -> StoredMoments:
    """What a file holds, as far as the texts and the shapes can be right."""
    k, d = arrays["mean"].shape
    shapes = {"count": (k,), "weight": (k,), "weight_squares": (k,), "scatter": (k, d, d)}
    for name, shape in shapes.items():
        array = arrays[name]
        fits = array is None or array.shape == shape
        require(fits, f"its array {name} is of another shape than the means of its groups")
    labels = checked_labels(header["labels"], "groups")
    n = len(labels)
    require(n == k, f"the number of its groups is {n}, and that of their means {k}")
    widths = {len(label) if isinstance(label, tuple) else 1 for label in labels}
    require(len(widths) <= 1, "its groups go by different numbers of sensitive columns")
    folds = {isinstance(label, tuple) and isinstance(label[-1], Fold) for label in labels}
    require(len(folds) <= 1, "some of its groups are in folds and others are not")
    names, group_names = header["feature_names"], header.get("group_names")
    orders, n_columns = header.get("group_orders"), widths.pop() if widths else None
    if orders is not None:
        require(isinstance(orders, list), "its orders of categories are no list")
        fits = n_columns is None or len(orders) == n_columns
        require(fits, "its orders of categories are not one for each sensitive column")
        orders = tuple(
            None if order is None else checked_labels(order, "categories") for order in orders
        )
    return StoredMoments(
        labels=labels,
        # As in a data frame, two columns may have the same name.
        feature_names=None
        if names is None
        else checked_texts(names, "column names", d, different=False),
        group_names=None
        if group_names is None
        else checked_texts(group_names, "names of sensitive columns", n_columns),
        group_orders=orders,
        n_dropped=checked_whole(header.get("n_dropped", 0), "number of rows left out", 0),
        **arrays,
    )


def _check_values(stored: StoredMoments) -> None:
    """Refuse numbers that no rows have."""
    counts = stored.count
    possible = ((counts >= 1) & (counts <= MOST_ROWS)).all()
    require(possible, "its numbers of rows are not all from 1 on")
    check_positive(stored.weight, "sums of weights")
    if stored.weight_squares is not None:
        check_positive(stored.weight_squares, "sums of squared weights")
    check_finite(stored.mean, "means of groups")
    check_finite(stored.scatter, "scatters of groups")
    called = [quoted(label) for label in stored.labels]
    check_scatters(stored.scatter, stored.mean, stored.weight, called)


def checked_labels(stored: Any, what: str) -> tuple[Hashable, ...]:
    """The labels of a list, if they are what a file has and no two are the same."""
    require(isinstance(stored, list), f"its {what} are no list")
    labels = tuple(map(_checked_label, stored))
    require(len(set(labels)) == len(labels), f"two of its {what} have the same label")
    return labels


def _checked_label(stored: Any) -> Hashable:
    parts = stored if isinstance(stored, list) else [stored]
    inside = any(isinstance(part, list) for part in parts) or not parts
    label = None if inside else label_from_data(stored)
    # Only what would be written so: no other spelling, and nothing that is unlike itself.
    good = not inside and label == label and label_as_data(label) == stored
    made = label if isinstance(label, tuple) else (label,)
    folds = [part for part in made if isinstance(part, Fold)]
    good = good and all(-1 <= fold < N_FOLDS for fold in folds)
    good = good and all(part is made[-1] and len(made) > 1 for part in folds)
    require(good, f"{quoted(stored)} can be no label of a group")
    return label


def pack(stored: Any) -> bytes:
    """Moments as the bytes of such a file."""
    return FILE.pack(*_parts(stored, None))


def unpack(data: bytes) -> StoredMoments:
    """The moments that `pack` made these bytes of."""
    return read(data)[0]


def _parts(stored: Any, reading: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    header = {
        "labels": [label_as_data(label) for label in stored.labels],
        "feature_names": None if stored.feature_names is None else list(stored.feature_names),
        "group_names": None if stored.group_names is None else list(stored.group_names),
        "group_orders": None
        if stored.group_orders is None
        else [order and [label_as_data(label) for label in order] for order in stored.group_orders],
        "n_dropped": int(stored.n_dropped),
        "pass": reading,
    }
    names = ["count", "weight", "mean", "scatter"]
    names += [] if stored.weight_squares is None else ["weight_squares"]
    return header, {name: getattr(stored, name) for name in names}


def label_as_data(label: Hashable) -> Any:
    """A label as JSON has it, from which it can be had back."""
    if isinstance(label, tuple):
        return [label_as_data(part) for part in label]
    value = label.item() if isinstance(label, np.generic) else label
    if value is None or (isinstance(value, str | bool | int) and not isinstance(value, Fold)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    for kind, type_, _ in _KINDS:
        if isinstance(value, type_):
            return {kind: value.isoformat() if hasattr(value, "isoformat") else str(value)}
    raise TypeError(
        f"A group's label of the type {type(label).__name__} cannot be written to a file: make "
        "texts or numbers of the sensitive features."
    )


def label_from_data(stored: Any) -> Hashable:
    """The label that `label_as_data` made this of."""
    if isinstance(stored, list):
        return tuple(map(label_from_data, stored))
    if isinstance(stored, dict):
        ((found, text),) = stored.items()
        made: Hashable = {kind: make for kind, _, make in _KINDS}[found](text)
        return made
    label: Hashable = stored
    return label

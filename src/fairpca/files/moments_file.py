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

import math
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.types import Array
from fairpca._rows.labels import Fold
from fairpca.files.archive import BYTES, FileFormat, taking_for_damage

FILE = FileFormat("fairpca moments", 1, "file of moments")

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


def write(path: str | Path, stored: Any, reading: dict[str, Any] | None = None) -> None:
    """Write moments to a file, with what has been read if they are those of a pass."""
    FILE.write(path, *_parts(stored, reading))


def read(source: str | Path | bytes) -> tuple[StoredMoments, dict[str, Any] | None]:
    """The moments of a file or its bytes, and what had been read if they are those of a pass."""
    header, arrays = FILE.read(source)
    with taking_for_damage(BYTES if isinstance(source, bytes) else repr(str(source))):
        names, group_names = header["feature_names"], header.get("group_names")
        orders = header.get("group_orders")
        stored = StoredMoments(
            labels=tuple(map(label_from_data, header["labels"])),
            feature_names=None if names is None else tuple(map(str, names)),
            group_names=None if group_names is None else tuple(map(str, group_names)),
            group_orders=None if orders is None else tuple(map(_order, orders)),
            n_dropped=int(header.get("n_dropped", 0)),
            **{"weight_squares": None, **arrays},
        )
        k, d = stored.mean.shape
        squares = stored.weight if stored.weight_squares is None else stored.weight_squares
        fits = [
            len(stored.labels) == len(set(stored.labels)) == k,
            stored.count.shape == stored.weight.shape == (k,),
            stored.scatter.shape == (k, d, d),
            names is None or len(names) == d,
            stored.count.dtype == np.int64 and stored.mean.dtype == np.float64,
            stored.scatter.dtype == stored.weight.dtype == np.float64,
            bool((stored.count >= 1).all() and (stored.weight > 0).all()),
            squares.shape == (k,) and squares.dtype == np.float64 and bool((squares > 0).all()),
            bool(np.isfinite(stored.mean).all() and np.isfinite(stored.scatter).all()),
        ]
        if not all(fits):
            raise ValueError("the parts cannot be moments")
        return stored, header["pass"]


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


def _order(stored: list[Any] | None) -> tuple[Hashable, ...] | None:
    return None if stored is None else tuple(map(label_from_data, stored))


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

"""Folds of rows, by what the rows hold: wherever rows come from, the same row is in the same fold.

A row's number is the sum of the bits of its values, each times an odd constant of its column,
modulo 2^64. Zeros add nothing, so sparse rows need not be filled. Rows that are the same are in one
fold: a row that is there twice is as good as one of twice the weight.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.backends import device_library, namespace, to_host
from fairpca._rows.groups import Groups
from fairpca._rows.labels import Fold, Labels, Orders

N_FOLDS = 5

_LARGE = 200
"""Rows for each column from which a group's covariance is known so well that its rows need not be
held out: its own subspace fits them too well by less than a hundredth of their variance."""

_BLOCK_VALUES = 2**17
"""Values that are looked at together: they stay in the processor's cache."""

_WHOLE = -1
"""The fold of groups that are not divided into folds."""

Bits = NDArray[np.uint64]


def in_folds(groups: Groups, rows: Any) -> Groups:
    """The parts of groups that lie in one fold each, as groups with the fold as one more column.

    The rows are an array or sparse matrix of shape (n, d), an array of a device, or a list of
    columns, without missing values.
    """
    return _parted(groups, row_folds(rows))


def in_needed_folds(groups: Groups, rows: Any, weights: Any = None) -> Groups:
    """The same, where large groups are one part each; as they are if all groups are large.

    Not for some of the rows: a group that is small in all parts may be large.
    """
    codes = np.asarray(to_host(groups.codes) if device_library(groups.codes) else groups.codes)
    effective: NDArray[np.float64] = np.bincount(codes).astype(np.float64)
    if weights is not None:
        weights = to_host(weights) if device_library(weights) else weights
        total, squares = (np.bincount(codes, weights**power) for power in (1, 2))
        effective = total**2 / np.where(squares > 0.0, squares, 1.0)
    small = ~are_large(effective, rows.shape[1])
    if not small.any():
        return groups
    chosen = np.flatnonzero(small[codes])
    folds = np.full(len(codes), _WHOLE, dtype=np.int64)
    folds[chosen] = row_folds(rows, chosen)
    return _parted(groups, folds)


def _parted(groups: Groups, folds: NDArray[np.int64]) -> Groups:
    codes: Any = groups.codes
    on_device = device_library(codes) is not None
    folds = folds - _WHOLE
    if on_device:
        folds = namespace(codes).asarray(folds, device=codes.device)
    width = N_FOLDS + 1
    parts = codes * width + folds
    found, parts = _compact(parts, len(groups.labels) * width)
    labels = tuple(
        (*as_tuple(groups.labels[part // width]), Fold(part % width + _WHOLE)) for part in found
    )
    names = None if groups.names is None else (*groups.names, "fold")
    orders = None if groups.orders is None else (*groups.orders, None)
    return replace(groups, labels=labels, codes=parts, names=names, orders=orders)


def are_large(effective_count: NDArray[np.float64], d: int) -> NDArray[np.bool_]:
    """Which groups are so large that their rows need not be held out; (k,)."""
    return np.asarray(effective_count >= _LARGE * d)


def has_folds(labels: Labels) -> bool:
    """Whether these are parts of groups that lie in one fold each."""
    return bool(labels) and isinstance(labels[0], tuple) and isinstance(labels[0][-1], Fold)


def without_fold(label: Hashable) -> Hashable:
    """The label of the group that a part with this label is of; any other label as it is."""
    if not isinstance(label, tuple) or not isinstance(label[-1], Fold):
        return label
    return label[0] if len(label) == 2 else label[:-1]


def of_groups(names: tuple[str, ...] | None, orders: Orders | None) -> dict[str, Any]:
    """The names and orders of the sensitive columns without that of the folds."""
    return {"group_names": names and names[:-1], "group_orders": orders and orders[:-1]}


def as_tuple(label: Hashable) -> tuple[Hashable, ...]:
    """The label of an intersection as it is, any other as a tuple of one."""
    return label if isinstance(label, tuple) else (label,)


def row_folds(rows: Any, chosen: NDArray[np.intp] | None = None) -> NDArray[np.int64]:
    """The fold of each row, or of the chosen ones; (n,)."""
    bits = row_numbers(rows, chosen)
    bits ^= bits >> np.uint64(32)
    bits *= _constants(1, first=-1)[0]
    return np.asarray((bits >> np.uint64(33)) % np.uint64(N_FOLDS), dtype=np.int64)


def row_numbers(rows: Any, chosen: NDArray[np.intp] | None = None) -> Bits:
    """The number of each row, or of the chosen ones: the same where all values are; (n,)."""
    if isinstance(rows, list):
        bits = _of_columns(rows)
        bits = bits if chosen is None else bits[chosen]
    elif device_library(rows) is not None:
        bits = _of_device(rows, chosen)
    elif scipy.sparse.issparse(rows):
        bits = _of_sparse(rows if chosen is None else rows[chosen])
    else:
        bits = _of_rows(rows, chosen)
    return bits


def column_numbers(column: Any, j: int) -> Bits:
    """What the values of column j add to the numbers of their rows; (n,)."""
    return np.asarray(_bits(column) * _constants(1, first=j)[0])


def _of_rows(rows: Any, chosen: NDArray[np.intp] | None) -> Bits:
    n = rows.shape[0] if chosen is None else len(chosen)
    constants = _constants(rows.shape[1])
    bits = np.empty(n, dtype=np.uint64)
    step = max(_BLOCK_VALUES // rows.shape[1], 1)
    for begin in range(0, n, step):
        part = slice(begin, begin + step)
        block = rows[part] if chosen is None else rows[chosen[part]]
        bits[part] = np.einsum("ij,j->i", _bits(block), constants)
    return bits


def _of_columns(columns: Sequence[Any]) -> Bits:
    bits = np.zeros(len(columns[0]), dtype=np.uint64)
    for column, constant in zip(columns, _constants(len(columns)), strict=True):
        bits += _bits(column) * constant
    return bits


def _of_sparse(rows: Any) -> Bits:
    rows = rows.tocsr(copy=False)
    products = _bits(rows.data) * _constants(rows.shape[1])[rows.indices]
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(products, dtype=np.uint64)])
    bits: Bits = np.diff(totals[rows.indptr])  # wraps around as the sums do
    return bits


def _of_device(rows: Any, chosen: NDArray[np.intp] | None) -> Bits:
    """The same on the rows' device, where 64-bit integers have a sign but wrap around as well."""
    xp = namespace(rows)
    constants = xp.asarray(_constants(rows.shape[1]).view(np.int64), device=rows.device)
    n = rows.shape[0] if chosen is None else len(chosen)
    step = max(2**25 // rows.shape[1], 1)
    parts = [np.zeros(0, np.uint64)]
    for begin in range(0, n, step):
        if chosen is None:
            block = rows[begin : begin + step, :]
        else:
            members = xp.asarray(chosen[begin : begin + step], device=rows.device)
            block = xp.take(rows, members, axis=0)
        block = xp.astype(block, xp.float64) + 0.0
        products = block.view(xp.int64) * constants
        parts.append(to_host(xp.sum(products, axis=1, dtype=xp.int64)).view(np.uint64))
    return np.concatenate(parts)


def _bits(values: Any) -> Bits:
    """The bits of numbers as float64, of which there is one zero."""
    return np.ascontiguousarray(np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)


def _constants(n: int, first: int = 0) -> Bits:
    """Odd numbers that look random, one for each column (the sequence of splitmix64)."""
    with np.errstate(over="ignore"):
        z = (np.arange(first, first + n, dtype=np.int64).astype(np.uint64) + np.uint64(1)) * (
            np.uint64(0x9E3779B97F4A7C15)
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))) | np.uint64(1)


def _compact(parts: Any, most: int) -> tuple[list[int], Any]:
    """Which numbers occur, and the position of each number among them."""
    if device_library(parts) is not None:
        values, positions = namespace(parts).unique_inverse(parts)
        return [int(value) for value in to_host(values)], positions
    found = np.flatnonzero(np.bincount(parts, minlength=most))
    positions = np.zeros(most, dtype=np.int64)
    positions[found] = np.arange(len(found))
    return found.tolist(), positions[parts]


def labels_without_folds(labels: Iterable[Hashable]) -> Labels:
    """The labels of the groups that parts are of, in their order."""
    return tuple(dict.fromkeys(map(without_fold, labels)))

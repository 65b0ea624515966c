"""From an Arrow record batch to moments: columns into blocks sorted by group, a product for each.

A block holds a column of the table in each of its rows, as Arrow does: sorting its rows by group is
then one gather for each column, within the processor's cache, and no row is ever put together.
Blocks are centred only where a mean is so far from zero that digits would be lost.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow

from fairpca._linalg.types import Array
from fairpca.folds import in_folds
from fairpca.groups import Codes
from fairpca.moments import GroupMoments, MomentSum
from fairpca.moments.sums import NEAR
from fairpca.tables.columns import Columns, label_groups

_BLOCK_VALUES = 2**20
"""Values in a block: 8 MB, which is large enough that Python's share of the time is small."""


@dataclass(frozen=True)
class Batch:
    """Some rows, which columns count, and where they are from, for messages.

    That is a name, or nothing, and the number of rows before.
    """

    rows: Any
    columns: Columns
    where: str
    before: int


def batch_moments(batch: Batch, missing_labels: str, folds: bool = False) -> GroupMoments:
    """Moments of the rows of a batch, by group, and by fold if that is asked for."""
    try:
        rows, columns = batch.rows, batch.columns
        values = [_numbers(rows, name, batch.before) for name in columns.features]
        weights = _weights(rows, columns.weight, batch.before)
        groups = label_groups(rows, columns.sensitive, missing_labels)
        groups = in_folds(groups, values) if folds and groups.labels else groups
        with np.errstate(invalid="ignore", over="ignore"):
            moments = _sum(values, groups.labels, groups.codes, groups.weights(weights))
        if not moments.is_finite:
            _explain(columns.features, values, batch.before)
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{batch.where}: {error}" if batch.where else str(error)) from error
    return replace(moments, feature_names=columns.features, **groups.about)


def batch_numbers(batch: Batch) -> Array:
    """The features of a batch as an array of numbers, all of them finite."""
    names = batch.columns.features
    try:
        values = [_numbers(batch.rows, name, batch.before) for name in names]
        table = np.column_stack([np.asarray(column, dtype=np.float64) for column in values])
        if not np.isfinite(table).all():
            _explain(names, values, batch.before)
    except ValueError as error:
        raise ValueError(f"{batch.where}: {error}" if batch.where else str(error)) from error
    return table


def _sum(
    values: list[Any], labels: tuple[Hashable, ...], codes: Codes, weights: Array | None
) -> GroupMoments:
    total = MomentSum()
    n, d, k = len(codes), len(values), len(labels)
    step = max(_BLOCK_VALUES // d, 3 * d)
    buffer = np.empty((d, min(step, n)))
    small = codes.astype(np.uint8 if k <= 256 else np.uint16)  # which sort in linear time
    centre = False
    for start in range(0, n if k else 0, step):
        rows = slice(start, min(start + step, n))
        counts = np.bincount(small[rows], minlength=k)
        sort = np.count_nonzero(counts) > 1
        order = np.argsort(small[rows], kind="stable") if sort else None
        block = buffer[:, : rows.stop - start]
        for row, column in zip(block, values, strict=True):
            _fill(row, column[rows], order)
        ordered = None if weights is None else weights[rows]
        if ordered is not None and order is not None:
            ordered = ordered[order]
        stops = np.cumsum(counts)
        for label, first, stop in zip(labels, stops - counts, stops, strict=True):
            if first == stop:
                continue
            part = block[:, first:stop]
            if ordered is None:
                mean, scatter, centre = _centred_scatter(part, None, centre)
                total.add_group(label, stop - first, float(stop - first), mean, scatter)
            elif (ordered[first:stop] > 0).any():
                w = ordered[first:stop]
                mean, scatter, centre = _centred_scatter(part, w, centre)
                sums = (int(np.count_nonzero(w)), float(w.sum()), mean, scatter)
                total.add_group(label, *sums, float(w @ w))
    if total.n_groups:
        return total.moments()
    return GroupMoments(
        (), np.zeros(0, np.int64), np.zeros(0), np.zeros((0, d)), np.zeros((0, d, d))
    )


def _fill(row: Array, column: Any, order: Any) -> None:
    """Write a column into a row of the block, in an order."""
    if order is None:
        row[...] = column
    elif column.dtype == np.float64:
        # The order holds positions in the column; "clip" only spares NumPy a second buffer.
        column.take(order, out=row, mode="clip")
    else:
        row[...] = column.take(order)


def _centred_scatter(block: Array, w: Array | None, centre: bool) -> tuple[Array, Array, bool]:
    """Mean and scatter of the columns of a block, which is overwritten.

    Also returns whether it had to be centred first; `centre` does so without a trial, which costs
    less if it is true of the next block too.
    """
    weight = float(block.shape[1] if w is None else w.sum())
    mean: Array = block @ (np.ones(block.shape[1]) if w is None else w) / weight
    roots = None if w is None else np.sqrt(w)
    if roots is not None and not centre:
        block *= roots
    if not centre:
        scatter = block @ block.T
        squares = weight * mean**2
        left = np.maximum(scatter.diagonal() - squares, 0.0)
        if not (squares > NEAR * left).any():
            scatter -= np.outer(weight * mean, mean)
            return mean, scatter, False
        block -= mean[:, None] if roots is None else np.outer(mean, roots)
    else:
        block -= mean[:, None]
        if roots is not None:
            block *= roots
    return mean, block @ block.T, True


def _numbers(rows: Any, name: str, before: int) -> Any:
    """A column as an array of numbers, without a copy where its type allows that."""
    column = rows.column(name)
    if column.null_count:
        _refuse_missing(name, before + int(np.argmax(column.is_null().to_numpy(False))))
    kind = column.type
    if pyarrow.types.is_decimal(kind):
        column = column.cast(pyarrow.float64())
    return column.to_numpy(zero_copy_only=False)


def _weights(rows: Any, name: str | None, before: int) -> Array | None:
    if name is None:
        return None
    weights = np.asarray(_numbers(rows, name, before), dtype=np.float64)
    bad = ~(weights >= 0.0) | ~np.isfinite(weights)
    if bad.any():
        raise ValueError(
            f"The weight in column {name!r} is negative or not finite in row "
            f"{before + int(np.argmax(bad)) + 1} (the first is 1)."
        )
    return weights


def _refuse_missing(name: str, row: int) -> None:
    raise ValueError(
        f"The value in column {name!r} is missing or infinite in row {row + 1} (the first is 1): "
        "fill it in, or leave out that row or column."
    )


def _explain(names: tuple[str, ...], values: list[Any], before: int) -> None:
    """Raise the error that says why moments are not finite."""
    for name, column in zip(names, values, strict=True):
        bad = ~np.isfinite(column)
        if bad.any():
            _refuse_missing(name, before + int(np.argmax(bad)))
    raise ValueError("Values are too large to be squared: rescale the columns.")

"""From rows to the sums that moments are made of: one pass, in blocks, on all cores.

Rows are measured from a shift, so that a column with a large mean and a small deviation keeps its
digits. A shift taken from a sample of the rows is good enough for nearly all data; where it turns
out not to be (groups with far-apart means), a second pass uses each group's own mean.

With few columns it takes longer to gather the rows of a group than to sum them. So those of a group
that has most rows are not gathered: its sums are those of all rows minus those of the others.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.backends import device_library, namespace, to_host
from fairpca._linalg.dense import dense_blocks
from fairpca._linalg.device import DeviceStack, FactorStack, diagonals, few_rows
from fairpca._linalg.krylov import FEW_COLUMNS
from fairpca._linalg.threads import blas_threads, in_threads, one_blas_thread
from fairpca._linalg.types import Array
from fairpca.folds import in_folds
from fairpca.groups import Codes, Groups, Labels, encode_groups
from fairpca.validation import check_device_rows, check_weights

_BLOCK_BYTES = 2**20
"""Size of the row blocks: they stay in the processor's cache between the steps on them."""

_THREADED_VALUES, _THREADED_COLUMNS = 2**22, 600
"""Blocks are shared out to threads for tables of at least this many values and at most this many
columns; with more columns the matrix product uses all cores well by itself."""

NEAR, _FAR = 1e4, 1e5
"""Squared mean over variance, up to which no shift is needed and from which it was a bad one.
The relative error of a variance is a few times this ratio times the rounding unit, some 1e-10 at
most. The same holds for what was subtracted to find it."""

_MOST_ROWS = 0.5
"""The sums of a group with more than this share of the rows are found by subtraction, if there are
few columns; with more the products take longer than gathering rows."""

_FEW_GROUPS = 8
"""Up to this many groups are counted one by one, each in a tenth of the time of all at once."""

_BY_COLUMNS = 2**17
"""Values of a table from which it pays to sum its columns as they lie in memory. A copy of a small
one by rows costs next to nothing, and gives the same digits as any other order."""

_FEW_COLUMNS_BYTES = 2**22
"""Their size where there are few columns: with less in a block the calls of NumPy take as long as
what they do, and threads wait for each other between them."""


QUICK_COLUMNS = 32
"""Up to this number of columns a product of different matrices is quicker than one with itself."""

_OFTEN = 0.1
"""Share of the rows that have an entry in a column from which it is multiplied as a dense one; and
of all entries, from which all columns are."""

_LANES = 8
"""Numbers that a processor computes with at once: blocks of a multiple take the least time."""

SMALL_PRODUCT = 10**6
"""Multiplications up to which OpenBLAS computes a product of matrices without packing them first,
which takes as long as the product itself where there are few columns."""


def group_sums(
    X: Any, codes: Codes, k: int, weights: Array | None
) -> tuple[NDArray[np.int64], Array, Array, Any]:
    """Return count, weight, mean and scatter about the mean of each of k groups.

    Groups without weight have a mean and a scatter of zero. Those of few rows in many columns are
    kept as these.
    """
    d, few = X.shape[1], np.zeros(k, dtype=bool)
    if d > FEW_COLUMNS:
        few = few_rows(np.bincount(codes[codes >= 0], minlength=k), d)
    if not few.any():
        return _summed(X, codes, k, weights)
    others = np.flatnonzero(~few)
    position = np.full(k + 1, -1)  # the last is that of rows in no group
    position[others] = np.arange(len(others))
    count, weight, mean = np.zeros(k, np.int64), np.zeros(k), np.zeros((k, d))
    scatter: dict[int, Array] = {}
    if len(others):
        # With one group all rows would be taken for its own: an empty one beside it prevents that.
        sums = _summed(X, position[codes], max(len(others), 2), weights)
        count[others], weight[others], mean[others] = (part[: len(others)] for part in sums[:3])
        scatter = dict(zip(others.tolist(), sums[3], strict=False))
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(k + 1))
    for group in np.flatnonzero(few).tolist():
        members = order[ends[group] : ends[group + 1]]
        w = np.ones(len(members)) if weights is None else weights[members]
        count[group], weight[group] = np.count_nonzero(w), w.sum()
        mean[group], scatter[group] = _centred(X[members], w)
    return count, weight, mean, FactorStack([scatter[group] for group in range(k)])


def _centred(rows: Any, weights: Array) -> tuple[Array, Array]:
    """The mean of rows, and these minus it, times the roots of their weights."""
    rows = np.array(rows.toarray() if scipy.sparse.issparse(rows) else rows, dtype=np.float64)
    first, total = rows[:1].copy(), float(weights.sum())
    with np.errstate(invalid="ignore", over="ignore"):
        rows -= first  # so that columns that are constant keep nothing of rounding
        mean = weights @ rows / total if total > 0.0 else 0.0 * weights @ rows
        rows -= mean
        rows *= np.sqrt(weights)[:, None]
    return first[0] + mean if total > 0.0 else mean, rows


def _summed(
    X: Any, codes: Codes, k: int, weights: Array | None
) -> tuple[NDArray[np.int64], Array, Array, Array]:
    """The same, always as arrays."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        shift = np.repeat(_sample_shift(X)[None], k, axis=0)
        sums = _pass(X, codes, weights, shift, _largest(X, codes, k))
        means, scatters, lost = sums.about_means()
        if lost.any():
            values, constant = _constant(X, codes, lost)
            if (lost & ~constant).any():
                sums, constant = _pass(X, codes, weights, means), np.zeros_like(lost)
                means, scatters, _ = sums.about_means()
            for group, column in zip(*constant.nonzero(), strict=True):
                means[group, column] = values[group, column]
                scatters[group, column] = scatters[group, :, column] = 0.0
        return sums.count, sums.weight, means, scatters


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums of the rows minus a shift, and of their products; of each group."""

    shift: Array
    count: NDArray[np.int64]
    weight: Array
    first: Array
    second: Array
    subtracted: Array
    """Diagonals of what the sums of products were subtracted from, if they were."""

    @property
    def parts(self) -> tuple[NDArray[Any], ...]:
        """What adds up."""
        return self.count, self.weight, self.first, self.second

    def about_means(self) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Means, scatters about them, and where these lost digits; of groups without weight, zeros.

        Digits are lost where a mean is far from the shift, or others had much; of each group and
        column, (k, d). The scatters take over the memory of the sums.
        """
        there = self.weight[:, None] > 0
        offsets = np.divide(
            self.first, self.weight[:, None], where=there, out=np.zeros_like(self.first)
        )
        squares = np.einsum("kii->ki", self.second).copy()
        for scatter, first, offset in zip(self.second, self.first, offsets, strict=True):
            scatter -= np.outer(first, offset)
        lost = np.zeros(offsets.shape, dtype=bool)
        if np.isfinite(squares).all():
            variances = np.maximum(squares - self.first * offsets, 0.0)
            lost = (self.first * offsets > _FAR * variances) & (offsets != 0)
            lost |= self.subtracted > _FAR * variances
        return np.where(there, self.shift + offsets, 0.0), self.second, lost


def _largest(X: Any, codes: Codes, k: int) -> int | None:
    """The group that has most rows, if it pays to subtract and every row is in a group."""
    if k == 1 or X.shape[1] > QUICK_COLUMNS or X.shape[0] == 0:
        return None
    if k <= _FEW_GROUPS:
        counts = [np.count_nonzero(codes == group) for group in range(k)]
        if sum(counts) < len(codes):
            return None
    elif codes.min() < 0:
        return None
    else:
        counts = np.bincount(codes, minlength=k).tolist()
    most = max(counts)
    return counts.index(most) if most > _MOST_ROWS * len(codes) else None


def _constant(X: Any, codes: Codes, asked: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    """Which of these columns have the same value in all rows of a group, as a sensitive one has.

    Nothing varies there, so that no digits were lost either. Returns the values, too, of those.
    """
    first, constant = np.zeros(asked.shape), np.zeros_like(asked)
    if scipy.sparse.issparse(X):
        return first, constant
    start = np.zeros(len(asked), dtype=np.intp)
    for group in np.flatnonzero(asked.any(axis=1)):
        start[group] = (codes == group).argmax()
    for column in np.flatnonzero(asked.any(axis=0)):
        values = X[:, column]
        first[:, column] = values[start]
        differ = values != values[start].take(codes)
        constant[:, column] = asked[:, column]
        if differ.any():
            varying = np.unique(codes[differ])
            constant[varying[varying >= 0], column] = False
        if (constant[:, column] != asked[:, column]).any():
            break  # all rows will be summed again anyway
    return first, constant


def _sample_shift(X: Any) -> Array:
    """Column means of some rows, or zeros where the data lies around zero as it is."""
    if X.shape[0] == 0:
        return np.zeros(X.shape[1])
    sample = X[:: max(1, X.shape[0] // 256)]
    rows = np.asarray(sample.toarray() if scipy.sparse.issparse(X) else sample, dtype=np.float64)
    mean = rows.sum(axis=0) / len(rows)
    deviations = rows - mean
    needed = mean**2 > NEAR / len(rows) * np.einsum("ij,ij->j", deviations, deviations)
    return mean if needed.any() and np.isfinite(mean).all() else np.zeros(X.shape[1])


def _pass(
    X: Any, codes: Codes, weights: Array | None, shift: Array, largest: int | None = None
) -> _Sums:
    """Sum all rows; the largest group by subtraction, which needs the same shift for all."""
    n, d = X.shape
    sparse = scipy.sparse.issparse(X) and X.nnz <= _OFTEN * n * d
    if sparse and d > QUICK_COLUMNS and not shift.any():
        return _sparse_sums(X, codes, weights, shift)
    n_threads = worker_threads(d) if n * d >= _THREADED_VALUES else 1
    summed = partial(_sum_rows, X, codes, weights, shift, largest)
    if n_threads == 1:
        with one_blas_thread() if d <= QUICK_COLUMNS else nullcontext():
            sums = summed(slice(0, n))
    else:
        ends = np.linspace(0, n, n_threads + 1).astype(int).tolist()
        sums, *others = in_threads(summed, map(slice, ends[:-1], ends[1:]), n_threads)
        for other in others:
            for total, part in zip(sums.parts, other.parts, strict=True):
                total += part
    if largest is not None:  # which has the sums of all rows so far
        sums.subtracted[largest] = np.diagonal(sums.second[largest])
        for group in range(len(shift)):
            if group != largest:
                for total in sums.parts:
                    total[largest] -= total[group]
    return sums


def _sparse_sums(X: Any, codes: Codes, weights: Array | None, shift: Array) -> _Sums:
    """Sum sparse rows that are not shifted.

    Columns in which many rows have an entry are multiplied as dense ones, with each other and with
    the others; the others with each other as sparse ones.
    """
    k, d = shift.shape
    sums = _Sums(
        shift, np.zeros(k, np.int64), np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d)), shift
    )
    is_often = np.bincount(X.indices, minlength=d) > _OFTEN * X.shape[0]
    often = np.flatnonzero(is_often)

    def add(group: int) -> None:
        members = np.flatnonzero(codes == group)
        rows, w = X[members].astype(np.float64), np.ones(len(members))
        if weights is not None:
            w = weights[members]
        sums.count[group], sums.weight[group] = np.count_nonzero(w), w.sum()
        sums.first[group] = rows.T @ w
        rows.data *= np.repeat(np.sqrt(w), np.diff(rows.indptr))
        dense = rows[:, often]
        rows.data[is_often[rows.indices]] = 0.0
        rows.eliminate_zeros()
        second, mixed = sums.second[group], np.zeros((d, len(often)))
        (rows.T.tocsr() @ rows).toarray(out=second)
        for part, block in dense_blocks(dense) if dense.nnz else ():
            mixed += rows[part].T @ block
            mixed[often] += block.T @ block
        second[:, often], second[often] = mixed, mixed.T

    in_threads(add, range(k))
    return sums


def _sum_rows(
    X: Any,
    codes: Codes,
    weights: Array | None,
    shift: Array,
    everyone: int | None,
    chosen: slice,
) -> _Sums:
    """Sum the chosen rows; those of all groups in the place of one, if it is given."""
    start, stop = chosen.start, chosen.stop
    if scipy.sparse.issparse(X) and len(shift) > 1 and everyone is None:
        # Cheap to bring into order, so that a block has rows of few groups: sums of products are
        # as large as products are expensive.
        order = start + np.argsort(codes[start:stop], kind="stable")
        X, codes = X[order], codes[order]
        weights = None if weights is None else weights[order]
        start, stop = 0, len(order)
    k, d = shift.shape
    count, weight, second = np.zeros(k, np.int64), np.zeros(k), np.zeros((k, d, d))
    sums = _Sums(shift, count, weight, np.zeros((k, d)), second, np.zeros((k, d)))
    step = max((_FEW_COLUMNS_BYTES if d <= QUICK_COLUMNS else _BLOCK_BYTES) // (8 * d), 3 * d)
    shifted, sparse = bool(shift.any()), scipy.sparse.issparse(X)
    product, started = np.empty((d, d)), np.zeros(k, dtype=bool)
    # Columns that lie together are summed as they are.
    by_columns = not sparse and d <= QUICK_COLUMNS and X.size >= _BY_COLUMNS
    by_columns = by_columns and X.flags.fnc and X.dtype == np.float64
    buffer = np.empty((min(step, stop - start), d), order="F" if by_columns else "C")
    ordered, ones = buffer if k == 1 or by_columns else np.empty_like(buffer), np.ones(len(buffer))
    for begin in range(start, stop, step):
        rows = slice(begin, min(begin + step, stop))
        part = X[rows].toarray() if sparse else X[rows]
        in_order = by_columns or (part.flags.c_contiguous and part.dtype == np.float64)
        if k > 1 and not in_order:
            # Rows that do not lie together are gathered much faster from a copy in which they do.
            ordered[: len(part)] = part
            part = ordered[: len(part)]
        part_codes = codes[rows]
        for group in range(k):
            whole = k == 1 or group == everyone
            members = None if whole else np.flatnonzero(part_codes == group)
            if members is not None and len(members) == 0:
                continue
            change = shifted or weights is not None
            block = _take(part, members, buffer if change or not whole else None)
            if shifted:
                block -= shift[group]
            if weights is None:
                sums.count[group] += len(block)
                sums.weight[group] += len(block)
                sums.first[group] += ones[: len(block)] @ block
            else:
                w = weights[rows] if members is None else weights[rows][members]
                sums.count[group] += np.count_nonzero(w)
                sums.weight[group] += w.sum()
                sums.first[group] += w @ block
                block *= np.sqrt(w)[:, None]
            if started[group]:
                sums.second[group] += column_products(block, product)
            else:
                column_products(block, sums.second[group])
            started[group] = True
    return sums


def _take(part: Any, members: NDArray[np.intp] | None, buffer: Array | None) -> Array:
    """Some rows as float64, all if members is None: in the buffer, or without one as they are."""
    if buffer is None:
        rows: Array = part.astype(np.float64, copy=False)
        return rows
    if members is None:
        block = buffer[: len(part)]
        block[...] = part
        return block
    # The members are positions in the part; "clip" only spares NumPy a second buffer.
    if buffer.flags.c_contiguous:
        return part.take(members, axis=0, out=buffer[: len(members)], mode="clip")  # type: ignore[no-any-return]
    block = buffer.T.reshape(-1)[: len(members) * len(buffer.T)].reshape(-1, len(members)).T
    for values, taken in zip(part.T, block.T, strict=True):
        values.take(members, out=taken, mode="clip")
    return block


def column_products(rows: Array, out: Array | None = None) -> Array:
    """``rows^T rows``, of one matrix or of each of a stack; (…, d, d)."""
    d = rows.shape[-1]
    out = np.empty((*rows.shape[:-2], d, d)) if out is None else out
    turned = np.swapaxes(rows, -1, -2)
    if d > QUICK_COLUMNS:
        return np.matmul(turned, rows, out=out)
    # Some columns with all, then the others with each other: little more than half of a symmetric
    # matrix. NumPy leaves the product of a matrix with itself to a routine that computes the half
    # but packs its blocks first, which takes longer: so the last column is left out on one side.
    first = _LANES * -(-d // (2 * _LANES)) if d > _LANES else d // 2
    n, step = rows.shape[-2], SMALL_PRODUCT // (d * d)
    whole = n - n % step if n > step else 0
    parts = rows[..., :whole, :].reshape(*rows.shape[:-2], whole // step, step, d)
    for these, those in (slice(first), slice(None)), (slice(first, d - 1), slice(first, None)):
        part = out[..., these, those]
        np.matmul(turned[..., these, whole:], rows[..., whole:, those], out=part)
        if whole:  # many small products in one call
            products = np.swapaxes(parts[..., these], -1, -2) @ parts[..., those]
            part += products.sum(axis=-3)
    out[..., first:, :first] = np.swapaxes(out[..., :first, first:], -1, -2)
    out[..., -1, first:-1] = out[..., first:-1, -1]
    out[..., -1, -1] = np.einsum("...i,...i", rows[..., -1], rows[..., -1])
    return out


def worker_threads(d: int) -> int:
    """How many threads rows of d columns are shared out to: those that BLAS may use, or one."""
    if d > _THREADED_COLUMNS:
        return 1
    return blas_threads()


# The sums that moments are made of, from rows on a device: one pass.
# Sums are kept in float64 whatever the rows are in, so that the certificate has all its digits.
# The products in float64 are where nearly all the time goes; on a GPU for data centres float32
# would be no faster.

_DEVICE_BLOCK_BYTES = 2**30
"""Size of the blocks of rows in float64."""

_PANEL, _MOST_PANELS = 256, 8
"""Columns of a panel, or a multiple of them, and most panels: a product of rows with themselves is
formed panel by panel, its upper half only, as long as panels are wide enough for the device to be
busy. Panels that begin anywhere else in memory take a third longer."""


def device_sums(
    X: Any,
    sensitive_features: Any,
    sample_weight: Any = None,
    *,
    missing_labels: str = "error",
    folds: bool | str = False,
) -> tuple[Groups, tuple[Labels, NDArray[np.int64], Array, Array, Any, Array | None]]:
    """Groups of rows on a device; and labels and the sums of moments by group.

    The scatters stay there. See `GroupMoments.from_rows`; raises ValueError where the sums are not
    finite.
    """
    X = check_device_rows(X)
    xp = namespace(X)
    groups = _encode(X, sensitive_features, missing_labels)
    weights = to_host(sample_weight) if device_library(sample_weight) else sample_weight
    weights = groups.weights(check_weights(weights, X.shape[0]))
    weights = None if weights is None else xp.asarray(weights, device=X.device)
    if folds:
        groups = in_folds(groups, X, weights, needed=folds == "needed")
    labels, codes = groups.labels, groups.codes
    k = len(labels)
    shift = _shift(X)
    order = xp.argsort(codes) if k > 1 else None
    ends = [0, X.shape[0]] if k == 1 else np.cumsum([0, *_counts(codes, k)]).tolist()
    count, weight, squares = np.zeros(k, dtype=np.int64), np.zeros(k), np.zeros(k)
    first = xp.zeros((k, X.shape[1]), dtype=xp.float64, device=X.device)
    second = xp.zeros((k, X.shape[1], X.shape[1]), dtype=xp.float64, device=X.device)
    step = max(_DEVICE_BLOCK_BYTES // (8 * X.shape[1]), 1)
    for group in range(k):
        for begin in range(ends[group], ends[group + 1], step):
            stop = min(begin + step, ends[group + 1])
            members = slice(begin, stop) if order is None else order[begin:stop]
            block = X[members, :] if order is None else xp.take(X, members, axis=0)
            block = xp.astype(block, xp.float64, copy=shift is not None or weights is not None)
            if shift is not None:
                block -= shift
            if weights is None:
                count[group] += stop - begin
                weight[group] += stop - begin
                first[group] += xp.sum(block, axis=0)
            else:
                part = weights[members]
                count[group] += int(xp.sum(xp.astype(part > 0, xp.int64)))
                weight[group] += float(xp.sum(part))
                squares[group] += float(xp.sum(part**2))
                first[group] += part @ block
                block *= xp.sqrt(part)[:, None]
            _add_product(second[group], block)
    offsets = np.zeros((k, X.shape[1]))
    some = weight > 0
    offsets[some] = to_host(first)[some] / weight[some, None]
    for group in np.flatnonzero(some).tolist():
        part = second[group]
        part[...] = xp.triu(part) + xp.triu(part, k=1).T  # the upper triangle to the lower
        offset = xp.asarray(offsets[group], device=X.device)
        part -= float(weight[group]) * (offset[:, None] * offset[None, :])
    mean = offsets if shift is None else offsets + to_host(shift)
    # No entry of a scatter is larger than the largest on its diagonal.
    stack = DeviceStack(second)
    if not (np.isfinite(mean).all() and np.isfinite(diagonals(stack)).all()):
        if bool(xp.all(xp.isfinite(X))):
            raise ValueError("X has values that are too large to be squared: rescale its columns.")
        raise ValueError("Input X contains NaN or infinity.")
    if not some.all():
        # Rows without weight count for nothing, and so does a group of them alone.
        kept = np.flatnonzero(some)
        stack = DeviceStack(xp.stack([second[int(group)] for group in kept]))
        labels = tuple(labels[group] for group in kept)
        count, weight, squares, mean = count[kept], weight[kept], squares[kept], mean[kept]
    return groups, (labels, count, weight, mean, stack, None if weights is None else squares)


def _encode(X: Any, sensitive_features: Any, missing_labels: str) -> Groups:
    """The groups, with codes on the device."""
    labels = sensitive_features
    labels = to_host(labels) if device_library(labels) is not None else labels
    groups = encode_groups(labels, X.shape[0], missing_labels)
    codes = np.asarray(groups.codes, dtype=np.int64)
    return replace(groups, codes=namespace(X).asarray(codes, device=X.device))


def _counts(codes: Any, k: int) -> list[int]:
    xp = namespace(codes)
    return [int(xp.sum(xp.astype(codes == group, xp.int64))) for group in range(k)]


def _shift(X: Any) -> Any:
    """Column means of some rows, or None where the data lies around zero as it is."""
    xp = namespace(X)
    sample = xp.astype(X[:: max(1, X.shape[0] // 256), :], xp.float64)
    mean = xp.mean(sample, axis=0)
    needed = mean**2 > NEAR * xp.var(sample, axis=0)
    return mean if bool(xp.any(needed) & xp.all(xp.isfinite(mean))) else None


def _add_product(total: Any, block: Any) -> None:
    """Add ``block^T block`` to the upper panels of a matrix."""
    d = block.shape[1]
    step = _PANEL * -(-d // (_PANEL * _MOST_PANELS))
    for begin in range(0, d, step):
        end = min(begin + step, d)
        total[begin:end, begin:] += block[:, begin:end].T @ block[:, begin:]

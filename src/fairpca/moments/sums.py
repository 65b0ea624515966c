"""From rows to the sums that moments are made of, in blocks: on all cores, or on a device.

Rows are measured from the first of their group, so that a column with a large mean and a small
deviation keeps its digits, and one that is constant in a group, as a sensitive one is, has exactly
no scatter. Where that row turns out to lie very far from the others, a second pass measures them
from the means.

Sums are kept in float64 whatever the rows are in, so that the certificate has all its digits. On a
device the products in float64 are where nearly all the time goes.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.backends import NUMPY, Backend, device_library
from fairpca._linalg.dense import dense_blocks
from fairpca._linalg.device import DeviceBackend, DeviceStack, FactorStack, few_rows
from fairpca._linalg.threads import blas_threads, in_threads, one_blas_thread
from fairpca._linalg.types import Array
from fairpca.groups import Codes

_BLOCK_BYTES, _DEVICE_BLOCK_BYTES = 2**20, 2**30
"""Size of the blocks of rows in float64. On the host they stay in the processor's cache between the
steps on them."""

_ROWS_OF_GROUP = 128
"""Rows that a block has for each group at least, on average: with fewer the calls of NumPy take as
long as what they do."""

_THREADED_VALUES, _THREADED_COLUMNS = 2**22, 600
"""Blocks are shared out to threads for tables of at least this many values and at most this many
columns; with more columns the matrix product uses all cores well by itself."""

_NEAR, _FAR = 1e4, 1e5
"""Squared mean over variance, up to which rows are summed as they are, and from which they were
measured from a bad place. The relative error of a variance is a few times this ratio times the
rounding unit, some 1e-10 at most."""

_SAMPLED = 256
"""Rows of the sample by which it is decided whether to shift the others."""

_OFTEN = 0.1
"""Share of the rows that have an entry in a column from which it is multiplied as a dense one; and
of all entries, from which all columns are."""

_FEW_COLUMNS = 32
"""Up to this many columns the threads of a matrix product save nothing, and sparse rows are quicker
as dense ones."""


def group_sums(
    X: Any, codes: Codes, k: int, weights: Array | None
) -> tuple[NDArray[np.int64], Array, Array, Any]:
    """Return count, weight, mean and scatter about the mean of each of k groups.

    Rows with the code k are in none of them. Groups have rows with a weight, or no rows: then their
    mean and scatter are zero. The scatters stay on the device that the rows are on. Those of few
    rows in many columns are kept as these.
    """
    n_rows = np.bincount(codes, minlength=k)[:k]
    count, weight = n_rows, n_rows.astype(np.float64)
    if weights is not None:
        count = np.bincount(codes[weights > 0.0], minlength=k)[:k]
        weight = np.bincount(codes, weights, minlength=k)[:k].astype(np.float64)
    few = few_rows(n_rows, X.shape[1])
    if device_library(X) is not None or not few.any():
        return count, weight, *_summed(X, codes, weight, weights)
    others = np.flatnonzero(~few)
    mean = np.zeros((k, X.shape[1]))
    scatter = dict.fromkeys(range(k), np.zeros((0, X.shape[1])))
    if len(others):
        position = np.full(k + 1, len(others))
        position[others] = np.arange(len(others))
        mean[others], scatters = _summed(X, position[codes], weight[others], weights)
        scatter |= zip(others.tolist(), scatters, strict=True)
    for group in np.flatnonzero(few & (n_rows > 0)).tolist():
        members = np.flatnonzero(codes == group)
        w = np.ones(len(members)) if weights is None else weights[members]
        mean[group], scatter[group] = _centred(X[members], w)
    return count, weight, mean, FactorStack([*scatter.values()])


def _centred(rows: Any, weights: Array) -> tuple[Array, Array]:
    """The mean of rows, and these minus it, times the roots of their weights."""
    rows = np.array(rows.toarray() if scipy.sparse.issparse(rows) else rows, dtype=np.float64)
    first = rows[:1].copy()
    with np.errstate(invalid="ignore", over="ignore"):
        rows -= first  # so that columns that are constant keep nothing of rounding
        mean = weights @ rows / weights.sum()
        rows -= mean
        rows *= np.sqrt(weights)[:, None]
    return first[0] + mean, rows


def _summed(X: Any, codes: Codes, weight: Array, weights: Array | None) -> tuple[Array, Any]:
    """Means, and scatters as arrays, of groups of these weights."""
    backend = NUMPY if device_library(X) is None else DeviceBackend(X)
    shift = np.zeros((len(weight), X.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):
        if not scipy.sparse.issparse(X) and _lies_far_away(X, codes, backend):
            first_rows = [int((codes == group).argmax()) for group in range(len(weight))]
            shift[:] = backend.host(backend.double(X[first_rows])) * (weight > 0.0)[:, None]
        for _ in range(2):
            first, second = _pass(X, codes, weights, shift, backend)
            offsets = first / np.where(weight > 0.0, weight, 1.0)[:, None]
            squares = weight[:, None] * offsets**2
            diagonals = np.array([backend.host(part.diagonal()) for part in second])
            for scatter, w, offset in zip(second, weight.tolist(), offsets, strict=True):
                there = backend.put(offset)
                scatter -= w * (there[:, None] * there)
            mean = shift + offsets
            lost = (squares > _FAR * np.maximum(diagonals - squares, 0.0)) & (offsets != 0.0)
            if not (lost.any() and np.isfinite(diagonals).all()):
                break
            shift = mean
    return mean, second if backend is NUMPY else DeviceStack(second)


def _lies_far_away(X: Any, codes: Codes, backend: Backend) -> bool:
    """Whether in some rows a group's mean is far from zero, beside its deviation."""
    some = np.arange(0, X.shape[0], max(1, X.shape[0] // _SAMPLED))
    some = some[np.argsort(codes[some], kind="stable")]
    sample = backend.host(backend.double(X[some]))
    _, starts, count = np.unique(codes[some], return_index=True, return_counts=True)
    means, squares = (np.add.reduceat(sample**p, starts) / count[:, None] for p in (1, 2))
    return bool((means**2 > _NEAR * (squares - means**2))[count > 1].any())


def _pass(
    X: Any, codes: Codes, weights: Array | None, shift: Array, backend: Backend
) -> tuple[Array, Any]:
    """Sums of the rows minus the shift of their group, and of their products, by group."""
    n, d = X.shape
    sparse = scipy.sparse.issparse(X) and X.nnz <= _OFTEN * n * d
    if sparse and d > _FEW_COLUMNS and not shift.any():
        return _sparse_sums(X, codes, weights, len(shift))
    summed = partial(_sum_rows, X, codes, weights, shift, backend)
    threaded = backend is NUMPY and n * d >= _THREADED_VALUES
    n_threads = worker_threads(d) if threaded else 1
    if n_threads == 1:
        with one_blas_thread() if d <= _FEW_COLUMNS else nullcontext():
            return summed(slice(0, n))
    ends = np.linspace(0, n, n_threads + 1).astype(int).tolist()
    sums, *others = in_threads(summed, map(slice, ends[:-1], ends[1:]), n_threads)
    for other in others:
        for total, part in zip(sums, other, strict=True):
            total += part
    return sums


def _sparse_sums(X: Any, codes: Codes, weights: Array | None, k: int) -> tuple[Array, Array]:
    """Sums of sparse rows, and of their products.

    Columns in which many rows have an entry are multiplied as dense ones, with each other and with
    the others; the others with each other as sparse ones.
    """
    d = X.shape[1]
    first, second = np.zeros((k, d)), np.zeros((k, d, d))
    is_often = np.bincount(X.indices, minlength=d) > _OFTEN * X.shape[0]
    often = np.flatnonzero(is_often)

    def add(group: int) -> None:
        members = np.flatnonzero(codes == group)
        rows, w = X[members].astype(np.float64), np.ones(len(members))
        if weights is not None:
            w = weights[members]
        first[group] = rows.T @ w
        rows.data *= np.repeat(np.sqrt(w), np.diff(rows.indptr))
        dense = rows[:, often]
        rows.data[is_often[rows.indices]] = 0.0
        rows.eliminate_zeros()
        total, mixed = second[group], np.zeros((d, len(often)))
        (rows.T.tocsr() @ rows).toarray(out=total)
        for part, block in dense_blocks(dense) if dense.nnz else ():
            mixed += rows[part].T @ block
            mixed[often] += block.T @ block
        total[:, often], total[often] = mixed, mixed.T

    in_threads(add, range(k))
    return first, second


def _sum_rows(
    X: Any,
    codes: Codes,
    weights: Array | None,
    shift: Array,
    backend: Backend,
    chosen: slice,
) -> tuple[Array, Any]:
    """The same of the chosen rows, in dense blocks."""
    k, d = shift.shape
    on_host, shifted = backend is NUMPY, bool(shift.any())
    first, second, product = np.zeros((k, d)), backend.zeros(k, d, d), backend.zeros(d, d)
    step = (_BLOCK_BYTES if on_host else _DEVICE_BLOCK_BYTES) // (8 * d)
    step = min(max(step, 3 * d, _ROWS_OF_GROUP * k), chosen.stop - chosen.start)
    together, gathered = np.empty((2, step if on_host else 0, d))
    ones = np.ones(step)
    for begin in range(chosen.start, chosen.stop, step):
        rows = slice(begin, min(begin + step, chosen.stop))
        part = X[rows].toarray() if scipy.sparse.issparse(X) else X[rows]
        if on_host and not (part.flags.c_contiguous and part.dtype == np.float64):
            # Rows that lie together are gathered much faster.
            together[: len(part)] = part
            part = together[: len(part)]
        for group in range(k):
            members = np.flatnonzero(codes[rows] == group)
            if len(members) == 0:
                continue
            if on_host:  # "clip" only spares it a second buffer
                block = part.take(members, axis=0, out=gathered[: len(members)], mode="clip")
            else:
                block = backend.double(part[members])
            if shifted:
                block -= backend.put(shift[group])
            w = ones[: len(members)] if weights is None else weights[rows][members]
            first[group] += backend.host(backend.put(w) @ block)
            if weights is not None:
                block *= backend.put(np.sqrt(w))[:, None]
            second[group] += backend.products(block, product)
    return first, second


def worker_threads(d: int) -> int:
    """How many threads rows of d columns are shared out to: those that BLAS may use, or one."""
    return 1 if d > _THREADED_COLUMNS else blas_threads()

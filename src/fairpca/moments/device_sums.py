"""The sums that moments are made of, from rows on a device: one pass.

Sums are kept in float64 whatever the rows are in, so that the certificate has all its digits. The
products in float64 are where nearly all the time goes; on a GPU for data centres float32 would be
no faster.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.backends import device_library, namespace, to_host
from fairpca._linalg.device import DeviceStack, diagonals
from fairpca._linalg.types import Array
from fairpca.folds import in_folds, in_needed_folds
from fairpca.groups import UNGROUPED, Groups, Labels, encode_groups, refuse_measurements
from fairpca.moments.sums import NEAR
from fairpca.validation import check_device_rows, check_weights

_BLOCK_BYTES = 2**30
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
    weights = _check_weights(X, sample_weight, groups)
    if folds:
        needed = folds == "needed"
        groups = in_needed_folds(groups, X, weights) if needed else in_folds(groups, X)
    labels, codes = groups.labels, groups.codes
    k = len(labels)
    shift = _shift(X)
    order = xp.argsort(codes) if k > 1 else None
    ends = [0, X.shape[0]] if k == 1 else np.cumsum([0, *_counts(codes, k)]).tolist()
    count, weight, squares = np.zeros(k, dtype=np.int64), np.zeros(k), np.zeros(k)
    first = xp.zeros((k, X.shape[1]), dtype=xp.float64, device=X.device)
    second = xp.zeros((k, X.shape[1], X.shape[1]), dtype=xp.float64, device=X.device)
    step = max(_BLOCK_BYTES // (8 * X.shape[1]), 1)
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
    xp = namespace(X)
    n = X.shape[0]
    if sensitive_features is None:
        return Groups(UNGROUPED, xp.zeros(n, dtype=xp.int64, device=X.device))
    library = device_library(sensitive_features)
    if library is not None:
        given = sensitive_features
        if (
            library == device_library(X)
            and tuple(given.shape) == (n,)
            and xp.isdtype(given.dtype, ("integral", "bool"))
        ):
            values, codes = xp.unique_inverse(xp.asarray(given, device=X.device))
            labels = tuple(to_host(values).tolist())
            refuse_measurements(labels)
            return Groups(labels, codes)
        sensitive_features = to_host(given)
    groups = encode_groups(sensitive_features, n, missing_labels)
    codes = xp.asarray(np.asarray(groups.codes, dtype=np.int64), device=X.device)
    return replace(groups, codes=codes)


def _check_weights(X: Any, sample_weight: Any, groups: Groups) -> Any:
    on_host = to_host(sample_weight) if device_library(sample_weight) else sample_weight
    weights = groups.weights(check_weights(on_host, X.shape[0]))
    return None if weights is None else namespace(X).asarray(weights, device=X.device)


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

"""Moments of rows on a device, in one pass.

Sums are kept in float64 whatever the rows are in, so that the certificate has all its digits. The
products in float64 are where nearly all the time goes; on a GPU for data centres float32 would be
no faster.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.device import DeviceMatrices
from fairpca._linalg.library import (
    device_library,
    is_cpu,
    namespace,
    to_device,
    to_host,
)
from fairpca._linalg.types import Array
from fairpca._rows.checks import check_device_rows, check_weights
from fairpca._rows.groups import UNGROUPED, encode_groups
from fairpca.moments import GroupMoments

_BLOCK_BYTES = 2**30
"""Size of the blocks of rows in float64."""

_PANEL = 256
"""Columns of a panel: a product of rows with themselves is formed panel by panel, its upper half
only, as long as panels are wide enough for the device to be busy."""

_NUMPY_SOLVES_ON_CPU = True
"""On the CPU PyTorch's threads and NumPy's wait for each other, far longer than they work."""

_NEAR = 1e4
"""Squared mean over variance up to which no shift is needed (see `fairpca._rows.sums`)."""


class DeviceMoments(GroupMoments):
    """Moments whose scatters stay on the device; NumPy gets them only if it asks."""

    on_device: Any

    def __init__(
        self,
        labels: tuple[Hashable, ...],
        count: NDArray[np.int64],
        weight: Array,
        mean: Array,
        on_device: Any,
    ) -> None:
        for name, value in (
            ("labels", labels),
            ("count", count),
            ("weight", weight),
            ("mean", mean),
            ("on_device", on_device),
            ("feature_names", None),
        ):
            object.__setattr__(self, name, value)

    @cached_property
    def scatter(self) -> Array:
        """Weighted sum of ``(x - mean)(x - mean)^T``, as a NumPy array; (k, d, d)."""
        return to_host(self.on_device)

    @property
    def is_finite(self) -> bool:
        """Whether all sums are finite: an entry of a scatter is no larger than its diagonal's."""
        xp = namespace(self.on_device)
        diagonals = [xp.linalg.diagonal(part) for part in self.on_device]
        fine = all(np.isfinite(to_host(diagonal)).all() for diagonal in diagonals)
        return bool(fine and np.isfinite(self.mean).all())

    def operators(self, loss: str, centering: str) -> Any:
        """The groups' matrices, by what they do: on the device, unless that is the CPU."""
        if is_cpu(self.on_device) and _NUMPY_SOLVES_ON_CPU:
            return super().operators(loss, centering)
        return DeviceMatrices(self, self.on_device, loss, centering)


def device_moments(
    X: Any, sensitive_features: Any, sample_weight: Any = None, missing_labels: str = "error"
) -> DeviceMoments:
    """Moments by group of rows on a device; see `GroupMoments.from_rows`.

    Raises ValueError where they are not finite.
    """
    X = check_device_rows(X)
    xp = namespace(X)
    wide = xp.zeros(0, dtype=xp.float64, device=X.device)
    labels, codes = _encode(X, sensitive_features, missing_labels)
    weights = _check_weights(X, sample_weight)
    k = len(labels)
    shift = _shift(X)
    order = xp.argsort(codes) if k > 1 else None
    ends = [0, X.shape[0]] if k == 1 else np.cumsum([0, *_counts(codes, k)]).tolist()
    count, weight = np.zeros(k, dtype=np.int64), np.zeros(k)
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
                first[group] += part @ block
                block *= xp.sqrt(part)[:, None]
            _add_product(second[group], block)
    offsets = np.zeros((k, X.shape[1]))
    some = weight > 0
    offsets[some] = to_host(first)[some] / weight[some, None]
    for group in np.flatnonzero(some).tolist():
        part = second[group]
        _mirror(part, xp)
        offset = to_device(offsets[group], wide)
        part -= float(weight[group]) * (offset[:, None] * offset[None, :])
    mean = offsets if shift is None else offsets + to_host(shift)
    moments = DeviceMoments(tuple(labels), count, weight, mean, second)
    if not moments.is_finite:
        if bool(xp.all(xp.isfinite(X))):
            raise ValueError("X has values that are too large to be squared: rescale its columns.")
        raise ValueError("Input X contains NaN or infinity.")
    return moments if some.all() else _without_empty(moments, some)


def _encode(X: Any, sensitive_features: Any, missing_labels: str) -> tuple[Any, Any]:
    """The labels and, on the device, each row's position among them."""
    xp = namespace(X)
    n = X.shape[0]
    if sensitive_features is None:
        return UNGROUPED, xp.zeros(n, dtype=xp.int64, device=X.device)
    if device_library(sensitive_features) is not None:
        given = _check_length(sensitive_features, n)
        kinds = ("integral", "bool")
        if (
            given.ndim == 1
            and xp.isdtype(given.dtype, kinds)
            and device_library(X) == (device_library(given))
        ):
            values, codes = xp.unique_inverse(xp.asarray(given, device=X.device))
            return tuple(to_host(values).tolist()), codes
        sensitive_features = to_host(given)
    labels, codes = encode_groups(sensitive_features, n, missing_labels)
    return labels, xp.asarray(np.asarray(codes, dtype=np.int64), device=X.device)


def _check_length(array: Any, n_rows: int) -> Any:
    """Raise ValueError unless there is one entry for each row."""
    if array.ndim == 0 or array.shape[0] != n_rows:
        length = array.shape[0] if array.ndim else 1
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, length]}; "
            "sensitive_features needs one label for each row of X."
        )
    return array


def _check_weights(X: Any, sample_weight: Any) -> Any:
    if sample_weight is None:
        return None
    on_host = to_host(sample_weight) if device_library(sample_weight) else sample_weight
    return namespace(X).asarray(check_weights(on_host, X.shape[0]), device=X.device)


def _counts(codes: Any, k: int) -> list[int]:
    xp = namespace(codes)
    return [int(xp.sum(xp.astype(codes == group, xp.int64))) for group in range(k)]


def _shift(X: Any) -> Any:
    """Column means of some rows, or None where the data lies around zero as it is."""
    xp = namespace(X)
    sample = xp.astype(X[:: max(1, X.shape[0] // 256), :], xp.float64)
    mean = xp.mean(sample, axis=0)
    needed = mean**2 > _NEAR * xp.var(sample, axis=0)
    return mean if bool(xp.any(needed) & xp.all(xp.isfinite(mean))) else None


def _add_product(total: Any, block: Any) -> None:
    """Add ``block^T block`` to the upper panels of a matrix."""
    d = block.shape[1]
    for begin in range(0, d, max(_PANEL, -(-d // 8))):
        end = min(begin + max(_PANEL, -(-d // 8)), d)
        total[begin:end, begin:] += block[:, begin:end].T @ block[:, begin:]


def _mirror(matrix: Any, xp: Any) -> None:
    """Copy the upper triangle to the lower."""
    upper = xp.triu(matrix)
    matrix[...] = upper + xp.triu(matrix, k=1).T


def _without_empty(moments: DeviceMoments, some: NDArray[np.bool_]) -> DeviceMoments:
    """The groups that have weight."""
    kept = np.flatnonzero(some)
    xp = namespace(moments.on_device)
    scatter = xp.stack([moments.on_device[int(group)] for group in kept])
    labels = tuple(moments.labels[group] for group in kept)
    return DeviceMoments(
        labels, moments.count[kept], moments.weight[kept], moments.mean[kept], scatter
    )

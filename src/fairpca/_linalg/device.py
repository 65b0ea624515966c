"""Scatters and matrices of many columns on a device, by PyTorch or CuPy."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.backends import Backend, is_cpu, namespace, to_host
from fairpca._linalg.operators import ScatterMatrices, ScatterSum
from fairpca._linalg.types import Array

_NUMPY_SOLVES_ON_CPU = True
"""On the CPU PyTorch's threads and NumPy's wait for each other, far longer than they work."""

_QUICK_AT_ONCE = 1536
"""Up to so many columns a GPU has all eigenvalues sooner than an iteration and a proof."""


class DeviceStack(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that stays on a device, and of which NumPy gets a copy when it first asks.

    Whatever is done with it that NumPy knows is done with the copy; `array` is what the device has.
    """

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """As NumPy has it; nothing is copied."""
        return tuple(self.array.shape)

    @property
    def nbytes(self) -> int:
        """As NumPy has it; nothing is copied."""
        return int(self.array.nbytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return DeviceStack, (self.array,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._host, dtype=dtype) if copy else np.asarray(self._host, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        inputs = tuple(x._host if isinstance(x, DeviceStack) else x for x in inputs)
        return getattr(ufunc, method)(*inputs, **options)

    def __getitem__(self, key: Any) -> Any:
        return self._host[key]

    def __len__(self) -> int:
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # protocols that are looked for, not numbers
            raise AttributeError(name)
        return getattr(self._host, name)

    @cached_property
    def _host(self) -> NDArray[Any]:
        return to_host(self.array)


def diagonals(stack: Any) -> Array:
    """The diagonals of matrices, (k, d), from wherever they are."""
    if isinstance(stack, DeviceStack):
        return np.array([to_host(part.diagonal()) for part in stack.array])
    on_host: Array = np.einsum("kii->ki", stack)
    return on_host


def rescaled(stack: Any, factors: Array) -> Any:
    """The matrices ``diag(factors) @ A_i @ diag(factors)``, wherever they are."""
    if isinstance(stack, DeviceStack):
        there = DeviceBackend(stack.array).put(factors)
        return DeviceStack(stack.array * there[:, None] * there)
    return stack * factors[:, None] * factors


def inner_products(stack: Any, offsets: Array, weight: Array) -> Array:
    """Inner products of the matrices ``stack[i] / weight[i] + offsets[i] offsets[i]^T``; (m, m).

    The sum of the products of their entries, that is, wherever they are.
    """
    array, there, scales = stack, offsets, 1.0 / weight
    if isinstance(stack, DeviceStack):
        put = DeviceBackend(stack.array).put
        array, there, scales = stack.array, put(offsets), put(scales)
    matrices = array * scales[:, None, None]
    flat = matrices.reshape(len(weight), -1)
    own, across = flat @ flat.T, (there.T * (matrices @ there.T)).sum(axis=1)
    if isinstance(stack, DeviceStack):
        own, across = to_host(own), to_host(across)
    products: Array = own + across + across.T + (offsets @ offsets.T) ** 2
    return products


def united_scatters(stack: Any, parts: NDArray[np.bool_], weight: Array, mean: Array) -> Any:
    """Scatters of groups that are made of others, and their means, wherever the scatters are.

    `parts` has, for each new group, which of the old ones are in it; (new, old).
    """
    scatters, means = [], []
    for chosen in map(np.flatnonzero, parts):
        w, first = weight[chosen], mean[chosen[0]]
        # From one of the means, so that no digits are lost where all of them are large.
        means.append(first + w @ (mean[chosen] - first) / w.sum())
        offsets = mean[chosen] - means[-1]
        between = (offsets * w[:, None]).T @ offsets
        if isinstance(stack, DeviceStack):
            scatters.append(sum((stack.array[int(j)] for j in chosen[1:]), stack.array[chosen[0]]))
            scatters[-1] = scatters[-1] + DeviceBackend(stack.array).put(between)
        else:
            scatters.append(stack[chosen].sum(axis=0) + between)
    if isinstance(stack, DeviceStack):
        return DeviceStack(namespace(stack.array).stack(scatters)), np.array(means)
    return np.array(scatters), np.array(means)


def blended_scatters(
    stack: Any, offsets: Array, weight: Array, own: Array, new_weight: Array
) -> Any:
    """Scatters of groups with a share of their own matrix and the rest of the mean matrix.

    A group's own matrix is its scatter about the center, which is `offsets` away, over its weight;
    the mean matrix is their weighted mean.
    """
    xp: Any = np
    put: Any = np.asarray
    array: Any = stack
    if isinstance(stack, DeviceStack):
        backend = DeviceBackend(stack.array)
        xp, put, array = backend.xp, backend.put, stack.array
    there = put(offsets * np.sqrt(weight)[:, None])
    about = array + there[:, :, None] * there[:, None, :]
    pooled = xp.sum(about, axis=0) / float(weight.sum())
    about *= put(own / weight)[:, None, None]
    about += put(1.0 - own)[:, None, None] * pooled
    about *= put(new_weight)[:, None, None]
    return DeviceStack(about) if isinstance(stack, DeviceStack) else about


def scatter_matrices(
    scatter: Any, offsets: Array, weight: Array, loss: str = "mean", centering: str = "global"
) -> ScatterMatrices:
    """The matrices of groups, on the device if their scatters are there, unless that is the CPU.

    `offsets` are the groups' means minus that of all rows; `weight` is that of their rows.
    """
    scales = np.ones(len(weight)) if loss == "sum" else 1.0 / weight
    shares = scales * weight if centering == "global" else 0.0 * weight
    if not isinstance(scatter, DeviceStack) or (is_cpu(scatter.array) and _NUMPY_SOLVES_ON_CPU):
        return ScatterMatrices(np.ascontiguousarray(scatter), offsets, scales, shares)
    backend = DeviceBackend(scatter.array)
    return DeviceMatrices(scatter.array, offsets, scales, shares, backend)


class DeviceBackend(Backend):
    """Arrays of the library and on the device of another array."""

    def __init__(self, like: Any) -> None:
        self.xp, self._device = namespace(like), like.device

    def put(self, array: NDArray[Any]) -> Any:
        return self.xp.asarray(np.ascontiguousarray(array), device=self._device)

    def host(self, array: Any) -> NDArray[Any]:
        return to_host(array)

    def empty(self, d: int, width: int) -> Any:
        return self.xp.empty((d, width), dtype=self.xp.float64, device=self._device)

    def image(self, matrix: Any, block: Any) -> Any:
        return matrix @ block

    def eigh(self, matrix: Any) -> tuple[Array, Any]:
        values, vectors = self.xp.linalg.eigh(matrix)
        return self.host(values)[::-1].copy(), self.xp.flip(vectors, axis=1)


class DeviceMatrices(ScatterMatrices):
    """Matrices whose weighted sums are formed and factorised on the device."""

    def weighted_sum(self, weights: Array) -> DeviceSum:
        return DeviceSum(self, weights)


class DeviceSum(ScatterSum):
    """A weighted sum on the device."""

    @property
    def at_once(self) -> bool:  # type: ignore[override]
        return self.d <= _QUICK_AT_ONCE and not is_cpu(self._groups.scatter)

    def disproof(self, vectors: Any, drops: Array, level: float) -> Any:
        xp, rest = self.backend.xp, self.whole()
        rest *= -1.0
        rest += (vectors * self.backend.put(drops)) @ vectors.T
        rest += level * xp.eye(self.d, dtype=rest.dtype, device=rest.device)
        if self._is_positive(rest):
            return None
        values, directions = xp.linalg.eigh(rest)
        return None if float(values[0]) > 0.0 else directions[:, :1]

    def leading(self, r: int) -> tuple[Array, Any]:
        values, vectors = self.backend.eigh(self.whole())
        return values[:r], vectors[:, :r]

    def _is_positive(self, matrix: Any) -> bool:
        # PyTorch raises where a factorisation fails, CuPy gives nan.
        linalg = self.backend.xp.linalg
        try:
            factor = linalg.cholesky(matrix)
        except (RuntimeError, np.linalg.LinAlgError):
            return False
        return bool(np.isfinite(self.backend.host(linalg.diagonal(factor))).all())

    def _combined(self, weights: Array, out: Any = None) -> Any:
        scaled, scatter = weights * self._groups.scales, self._groups.scatter
        total = float(scaled[0]) * scatter[0]
        for scale, part in zip(scaled[1:].tolist(), scatter[1:], strict=True):
            total += scale * part
        return total

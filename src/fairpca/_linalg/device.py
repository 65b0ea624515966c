"""Scatters and matrices of many columns: as arrays, of few rows as these, or on a device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import daxpy, dsyrk

from fairpca._linalg import krylov
from fairpca._linalg.backends import NUMPY, Backend, is_cpu, namespace, to_host
from fairpca._linalg.dense import failed_pivot, some_eigenpairs
from fairpca._linalg.threads import in_threads
from fairpca._linalg.types import Array, Tall

# The matrices of groups with many columns, known by what they do.
# Beyond a few hundred columns the exact solver touches a matrix of shape (d, d) in few ways: a
# product with a block of columns, its trace, and one factorisation as the last proof (or all
# eigenvalues at once, where a device is quicker at that). They are here, written once for every
# array library; what is peculiar to a device is in `fairpca._linalg.device`.


_MOST_KEPT = 3
"""Bases, before the last, of which it is remembered what groups keep: PCA's and that of the
solution are asked for several times each."""


_FEW_ROWS = 8
"""A group with at most one row for this many columns is kept as its rows: then its eigenvectors are
those of a small matrix, and it still takes little to add its scatter to others."""


def few_rows(count: Any, d: int) -> Any:
    """Whether a group has so few rows that these are kept in place of its scatter."""
    return (d > krylov.FEW_COLUMNS) & (_FEW_ROWS * count <= d)


class ScatterMatrices:
    """The groups' matrices as their scatters and rank-one corrections; nothing is copied.

    Group i has ``A_i = scatter_i * scale_i + offset_i offset_i^T * share_i``. A part of `scatter`
    with fewer rows than columns is a factor F of ``scatter_i = F^T F``.
    """

    def __init__(
        self, scatter: Any, offsets: Array, scales: Array, shares: Array, backend: Backend = NUMPY
    ) -> None:
        self.scatter, self.scales, self.shares, self.backend = scatter, scales, shares, backend
        self.k, self.d = offsets.shape
        self.offsets = backend.put(offsets)
        self._squares = np.einsum("kj,kj->k", offsets, offsets)
        self._kept: list[tuple[Array, Array]] = []

    @cached_property
    def traces(self) -> Array:
        sums = np.array(
            [float(np.vdot(p, p) if _is_factor(p) else p.trace()) for p in self.scatter]
        )
        traces: Array = sums * self.scales + self._squares * self.shares
        return traces

    @cached_property
    def stack(self) -> Array:
        return np.array([self.dense(unit) for unit in np.eye(self.k)])

    def own_pairs(self, r: int, near: Array) -> list[tuple[Array, Array]]:
        # Disparities are measured from these, so that they are the best has to be certain.
        start, host = self.backend.put(near), self.backend.host

        def own(unit: Array) -> tuple[Array, Array]:
            found = krylov.proven_pairs(self.weighted_sum(unit), r, start)
            return found.values, host(found.vectors)

        return in_threads(own, np.eye(self.k), None if self.backend is NUMPY else 1)

    def leading(self, weights: Array, r: int) -> tuple[Array, Array]:
        found = krylov.found_pairs(self.weighted_sum(weights), r)
        return found.values, self.backend.host(found.vectors)

    def leading_sum_bound(self, weights: Array, r: int, near: Array | None = None) -> float:
        start = None if near is None else self.backend.put(near)
        return krylov.leading_sum_bound(self.weighted_sum(weights), r, start)

    def weighted_sum(self, weights: Array) -> ScatterSum:
        return (ScatterSum if self.backend is NUMPY else DeviceSum)(self, weights)

    def dense(self, weights: Array) -> Array:
        return self.backend.host(self.weighted_sum(weights).whole())

    def images(self, block: Tall) -> list[Tall]:
        return [self.weighted_sum(unit).image(block) for unit in np.eye(self.k)]

    def kept(self, basis: Array, weighted: Array) -> Array:
        for known, found in self._kept if weighted is basis else ():
            if np.array_equal(known, basis):
                return found.copy()
        backend, xp = self.backend, self.backend.xp
        block, other = backend.put(basis), backend.put(weighted)
        images = (
            part.T @ (part @ block) if _is_factor(part) else backend.image(part, block)
            for part in self.scatter
        )
        sums = backend.host(xp.stack([xp.sum(image * other) for image in images]))
        sides = [backend.host(self.offsets @ side) for side in (block, other)]
        kept: Array = sums * self.scales + np.einsum("ka,ka->k", *sides) * self.shares
        if weighted is basis:
            self._kept = [(basis.copy(), kept.copy()), *self._kept[:_MOST_KEPT]]
        return kept

    def kept_by_each(self, bases: Sequence[Array]) -> Array:
        groups = zip(np.eye(self.k), map(self.backend.put, bases), strict=True)
        sums = [(self.weighted_sum(unit).image(basis) * basis).sum() for unit, basis in groups]
        return np.array([float(kept) for kept in sums])


class ScatterSum:
    """``sum_i weights_i * A_i`` as a `Matrix`: that of the scatters lives as long as this object.

    It takes one array of shape (d, d), made when it is first needed: never for a single group's
    products. What has few rows F, signs s included, stays apart as ``F^T diag(s) F``: the offsets,
    and the rows of groups that are kept as these.
    """

    def __init__(self, groups: ScatterMatrices, weights: Array) -> None:
        self._groups, self.d, self.backend = groups, groups.d, groups.backend
        self.size = float(np.abs(weights) @ groups.traces)
        some = np.flatnonzero(weights).tolist()
        scaled = (weights * groups.scales).tolist()
        self._whole = [
            (groups.scatter[i], scaled[i]) for i in some if not _is_factor(groups.scatter[i])
        ]
        few = [(groups.scatter[i], scaled[i]) for i in some if _is_factor(groups.scatter[i])]
        shares = (weights * groups.shares).tolist()
        parts = few + [(groups.offsets[i : i + 1], shares[i]) for i in some]
        sizes = [len(part) for part, _ in parts]
        self.rows, end = self.backend.empty(self.d, sum(sizes)).T, 0
        for (part, weight), size in zip(parts, sizes, strict=True):
            self.rows[end : end + size], end = part * abs(weight) ** 0.5, end + size
        self._signs = self.backend.put(np.repeat(np.sign([weight for _, weight in parts]), sizes))
        if 2 * len(self.rows) > self.d:  # better one matrix more
            product = self.backend.zeros(self.d, self.d)
            self._add_rows(product)
            self._whole.append((product, 1.0))
            self.rows, self._signs = self.rows[:0], self._signs[:0]
        self.is_factored = not (self._whole or (weights < 0.0).any())
        """Whether this is known by few rows."""
        self.at_once = self.is_factored and len(self.rows) <= krylov.FEW_COLUMNS
        self._sum: Any = None

    def image(self, block: Tall) -> Tall:
        if self.is_factored:
            return self.rows.T @ (self.rows @ block)
        if len(self._whole) == 1:
            scatter, factor = self._whole[0]
            image = self.backend.image(scatter, block)
            image *= factor
        else:
            if self._sum is None:
                self._sum = self._combined()
            image = self.backend.image(self._sum, block)
        image += self.rows.T @ (self._signs[:, None] * (self.rows @ block))
        return image

    def disproof(self, vectors: Array, drops: Array, level: float) -> Array | None:
        rest = self._combined() if self._sum is None else self._sum
        self._sum = None  # the factorisation takes its memory
        np.negative(rest, out=rest)
        for sign in (1.0, -1.0):
            rows = self.rows[self._signs == sign]
            if len(rows):
                dsyrk(-sign, rows.T, beta=1.0, c=rest.T, lower=1, overwrite_c=1)
        return failed_pivot(rest.T, vectors, drops, level)

    def leading(self, r: int) -> tuple[Array, Tall]:
        if not self.is_factored:
            return some_eigenpairs(self.whole(), r)
        # From the products of few rows; vectors without variance are any that are orthogonal.
        values, turn = self.backend.eigh(self.rows @ self.rows.T)
        few = min(r, len(values))
        vectors = np.pad(self.rows.T @ turn[:, :few], ((0, 0), (0, r - few)))
        return np.pad(np.maximum(values[:few], 0.0), (0, r - few)), self.backend.qr(vectors)[0]

    def whole(self, out: Any = None) -> Tall:
        """The matrix as an array of its own, in the memory that is given or in new one."""
        total = self._combined(out)
        self._add_rows(total)
        return total

    def _combined(self, out: Any = None) -> Any:
        """The sum of the matrices that are whole, in the given memory."""
        out = np.empty((self.d, self.d)) if out is None else out
        if not self._whole:
            out[...] = 0.0
        for number, (scatter, factor) in enumerate(self._whole):
            if number == 0:
                np.multiply(scatter, factor, out=out)
            else:
                daxpy(scatter.reshape(-1), out.reshape(-1), a=factor)
        return out

    def _add_rows(self, total: Any) -> None:
        """Add the product of the rows: BLAS computes half of that of a matrix with itself."""
        plus, minus = self.rows[self._signs > 0.0], self.rows[self._signs < 0.0]
        if len(plus):
            total += plus.T @ plus
        if len(minus):
            total -= minus.T @ minus


_NUMPY_SOLVES_ON_CPU = True
"""On the CPU PyTorch's threads and NumPy's wait for each other, far longer than they work."""

_QUICK_AT_ONCE = 1536
"""Up to this many columns a GPU has all eigenvalues sooner than an iteration and a proof."""


class LazyStack(np.lib.mixins.NDArrayOperatorsMixin):
    """Matrices that are kept in another form until NumPy first asks for them.

    Whatever is done with them that NumPy knows is done with a copy.
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._host, dtype=dtype) if copy else np.asarray(self._host, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        inputs = tuple(x._host if isinstance(x, LazyStack) else x for x in inputs)
        return getattr(ufunc, method)(*inputs, **options)

    def __getitem__(self, key: Any) -> Any:
        return self._host[key]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # protocols that are looked for, not numbers
            raise AttributeError(name)
        return getattr(self._host, name)

    @cached_property
    def _host(self) -> NDArray[Any]:
        raise NotImplementedError


class DeviceStack(LazyStack):
    """An array that stays on a device; `array` is what the device has."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.nbytes = array, tuple(array.shape), int(array.nbytes)

    @cached_property
    def _host(self) -> NDArray[Any]:
        return to_host(self.array)


class FactorStack(LazyStack):
    """Scatters, of which those of few rows are kept as the centred rows F of ``F^T F``.

    A part with fewer rows than columns is such a factor; the others are scatters.
    """

    def __init__(self, parts: Sequence[Array]) -> None:
        d = parts[0].shape[1]
        self.parts, self.shape = list(parts), (len(parts), d, d)
        self.nbytes = sum(part.nbytes for part in parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return np.asarray, (self._host,)  # a file shall not have the rows

    def __getitem__(self, key: Any) -> Any:
        return _scatter(self.parts[key]) if isinstance(key, int | np.integer) else self._host[key]

    @cached_property
    def _host(self) -> NDArray[Any]:
        return np.array([_scatter(part) for part in self.parts])


def _is_factor(part: Any) -> bool:
    """Whether this is not a scatter but a factor."""
    return bool(part.shape[0] < part.shape[1])


def _scatter(part: Array) -> Array:
    """A scatter, of it or its factor."""
    return part.T @ part if _is_factor(part) else part


def diagonals(stack: Any) -> Array:
    """The diagonals of matrices, (k, d), from wherever they are."""
    if isinstance(stack, DeviceStack):
        return np.array([to_host(part.diagonal()) for part in stack.array])
    if isinstance(stack, FactorStack):
        each = (
            np.einsum("ij,ij->j", part, part) if _is_factor(part) else np.diagonal(part)
            for part in stack.parts
        )
        return np.array(list(each))
    on_host: Array = np.einsum("kii->ki", stack)
    return on_host


def rescaled(stack: Any, factors: Array) -> Any:
    """The matrices ``diag(factors) @ A_i @ diag(factors)``, wherever they are."""
    if isinstance(stack, DeviceStack):
        there = DeviceBackend(stack.array).put(factors)
        return DeviceStack(stack.array * there[:, None] * there)
    return stack * factors[:, None] * factors


def joined_stacks(first: Any, second: Any) -> Any:
    """The scatters of both, which are not on a device; nothing is copied."""
    parts = [getattr(stack, "parts", stack) for stack in (first, second)]
    return FactorStack([*parts[0], *parts[1]])


def padded_scatters(stack: Any, more: int) -> Any:
    """The scatters with this many columns of zeros added."""
    if isinstance(stack, FactorStack):
        below = (0 if _is_factor(part) else more for part in stack.parts)
        parts = zip(stack.parts, below, strict=True)
        return FactorStack([np.pad(part, ((0, rows), (0, more))) for part, rows in parts])
    return np.pad(stack, ((0, 0), (0, more), (0, more)))


def united_scatters(stack: Any, parts: NDArray[Any], weight: Array, mean: Array) -> Any:
    """Scatters of groups that are made of others, and their means, wherever the scatters are.

    `parts` has, for each new group, which of the old ones are in it, or which share; (new, old).
    """
    on_device, factored = isinstance(stack, DeviceStack), isinstance(stack, FactorStack)
    backend = DeviceBackend(stack.array) if on_device else NUMPY
    old = stack.array if on_device else stack.parts if factored else stack
    scatters = backend.zeros(len(parts), *stack.shape[1:])
    means, kept = [], []
    for i, chosen in enumerate(map(np.flatnonzero, parts)):
        shares, w, first = parts[i, chosen], weight[chosen], mean[chosen[0]]
        # From one of the means, so that no digits are lost where all of them are large.
        means.append(first + (shares * w) @ (mean[chosen] - first) / (shares @ w))
        offsets = mean[chosen] - means[-1]
        if factored:
            some = [old[j] for j in chosen]
            united = ScatterMatrices(some, offsets, shares, shares * w).weighted_sum(
                np.ones(len(w))
            )
            few = united.is_factored and few_rows(len(united.rows), united.d)
            kept.append(united.rows if few else united.whole(scatters[i]))
            continue
        scatters[i] += backend.put((offsets * (shares * w)[:, None]).T @ offsets)
        for j, share in zip(chosen.tolist(), shares.tolist(), strict=True):
            scatters[i] += old[j] if share == 1.0 else share * old[j]
    if any(map(_is_factor, kept)):
        return FactorStack(kept), np.array(means)
    return DeviceStack(scatters) if on_device else scatters, np.array(means)


def scatter_matrices(
    scatter: Any,
    offsets: Array,
    weight: Array,
    aggregation: str = "mean",
    which: NDArray[np.intp] | None = None,
) -> ScatterMatrices:
    """The matrices of groups, on the device if their scatters are there, unless that is the CPU.

    `offsets` are the groups' means minus the point that rows are measured from; `weight` is that of
    their rows. With `which` their scatters are at these positions; sums of several need all.
    """
    scales = np.ones(len(weight)) if aggregation == "sum" else 1.0 / weight
    shares = scales * weight
    on_device = isinstance(scatter, DeviceStack)
    on_device = on_device and not (is_cpu(scatter.array) and _NUMPY_SOLVES_ON_CPU)
    if isinstance(scatter, FactorStack):
        stack: Any = scatter.parts
    else:
        stack = scatter.array if on_device else np.ascontiguousarray(scatter)
    parts = stack if which is None else [stack[i] for i in which.tolist()]
    backend = DeviceBackend(stack) if on_device else NUMPY
    return ScatterMatrices(parts, offsets, scales, shares, backend)


_PANEL, _MOST_PANELS = 256, 8
"""Columns of a panel, or a multiple of them, and most panels: a product of rows with themselves is
formed panel by panel, its upper half only, as long as panels are wide enough for the device to be
busy. Panels that begin anywhere else in memory take a third longer."""


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

    def zeros(self, *shape: int) -> Any:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self._device)

    def double(self, rows: Any) -> Any:
        return self.xp.astype(rows, self.xp.float64, copy=False)

    def products(self, rows: Any, out: Any) -> Any:
        d = rows.shape[1]
        step = _PANEL * -(-d // (_PANEL * _MOST_PANELS))
        for begin in range(0, d, step):
            out[begin : begin + step, begin:] = rows[:, begin : begin + step].T @ rows[:, begin:]
        return self.xp.triu(out) + self.xp.triu(out, k=1).T

    def image(self, matrix: Any, block: Any) -> Any:
        return matrix @ block

    def eigh(self, matrix: Any) -> tuple[Array, Any]:
        values, vectors = self.xp.linalg.eigh(matrix)
        return self.host(values)[::-1].copy(), self.xp.flip(vectors, axis=1)


class DeviceSum(ScatterSum):
    """A weighted sum on the device."""

    def __init__(self, groups: ScatterMatrices, weights: Array) -> None:
        super().__init__(groups, weights)
        self.at_once = self.d <= _QUICK_AT_ONCE and not is_cpu(groups.scatter[0])

    def disproof(self, vectors: Any, drops: Array, level: float) -> Any:
        xp, rest = self.backend.xp, self.whole()
        rest *= -1.0
        rest += (vectors * self.backend.put(drops)) @ vectors.T
        rest += level * xp.eye(self.d, dtype=rest.dtype, device=rest.device)
        try:  # PyTorch raises where a factorisation fails, CuPy gives nan
            pivots = self.backend.host(xp.linalg.diagonal(xp.linalg.cholesky(rest)))
        except (RuntimeError, np.linalg.LinAlgError):
            pivots = np.full(1, np.nan)
        if np.isfinite(pivots).all():
            return None
        values, directions = xp.linalg.eigh(rest)
        return None if float(values[0]) > 0.0 else directions[:, :1]

    def leading(self, r: int) -> tuple[Array, Any]:
        values, vectors = self.backend.eigh(self.whole())
        return values[:r], vectors[:, :r]

    def _combined(self, out: Any = None) -> Any:
        total = self.backend.zeros(self.d, self.d) if out is None else out
        for scatter, factor in self._whole:
            total += factor * scatter
        return total

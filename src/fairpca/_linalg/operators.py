"""The matrices of groups with many columns, known by what they do.

Beyond a few hundred columns the exact solver touches a matrix of shape (d, d) in few ways: a
product with a block of columns, its trace, and one factorisation as the last proof (or all
eigenvalues at once, where a device is quicker at that). They are here, written once for every
array library; what is peculiar to a device is in `fairpca._linalg.device`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

from fairpca._linalg import krylov
from fairpca._linalg.backends import NUMPY, Backend
from fairpca._linalg.dense import failed_pivot, some_eigenpairs
from fairpca._linalg.types import Array, Tall


class ScatterMatrices:
    """The groups' matrices as their scatters and rank-one corrections; nothing is copied.

    Group i has ``A_i = scatter_i * scale_i + offset_i offset_i^T * share_i``.
    """

    def __init__(
        self, scatter: Any, offsets: Array, scales: Array, shares: Array, backend: Backend = NUMPY
    ) -> None:
        self.scatter, self.scales, self.shares, self.backend = scatter, scales, shares, backend
        self.k, self.d = offsets.shape
        self.offsets = backend.put(offsets)
        self._squares = np.einsum("kj,kj->k", offsets, offsets)

    @cached_property
    def traces(self) -> Array:
        sums = np.array([float(part.trace()) for part in self.scatter])
        traces: Array = sums * self.scales + self._squares * self.shares
        return traces

    @cached_property
    def stack(self) -> Array:
        return np.array([self.dense(unit) for unit in np.eye(self.k)])

    def own_pairs(self, r: int, near: Array) -> list[tuple[Array, Array]]:
        # Disparities are measured from these, so that they are the best has to be certain.
        start, host = self.backend.put(near), self.backend.host
        groups = (self.weighted_sum(unit) for unit in np.eye(self.k))
        pairs = (krylov.proven_pairs(group, r, start) for group in groups)
        return [(found.values, host(found.vectors)) for found in pairs]

    def leading(self, weights: Array, r: int) -> tuple[Array, Array]:
        values, vectors = krylov.leading_eigenpairs(self.weighted_sum(weights), r)
        return values, self.backend.host(vectors)

    def leading_sum_bound(self, weights: Array, r: int, near: Array | None = None) -> float:
        start = None if near is None else self.backend.put(near)
        return krylov.leading_sum_bound(self.weighted_sum(weights), r, start)

    def weighted_sum(self, weights: Array) -> ScatterSum:
        return ScatterSum(self, weights)

    def dense(self, weights: Array) -> Array:
        return self.backend.host(self.weighted_sum(weights).whole())

    def images(self, block: Tall) -> list[Tall]:
        return [self.weighted_sum(unit).image(block) for unit in np.eye(self.k)]

    def kept(self, basis: Array, weighted: Array) -> Array:
        backend, xp = self.backend, self.backend.xp
        block, other = backend.put(basis), backend.put(weighted)
        images = (backend.image(part, block) for part in self.scatter)
        sums = backend.host(xp.stack([xp.sum(image * other) for image in images]))
        sides = [backend.host(self.offsets @ side) for side in (block, other)]
        kept: Array = sums * self.scales + np.einsum("ka,ka->k", *sides) * self.shares
        return kept


class ScatterSum:
    """``sum_i weights_i * A_i`` as a `Matrix`: that of the scatters lives as long as this object.

    It takes one array of shape (d, d), made when it is first needed: never for a single group's
    products.
    """

    at_once = False

    def __init__(self, groups: ScatterMatrices, weights: Array) -> None:
        self._groups, self._weights = groups, weights
        self.d, self.backend = groups.d, groups.backend
        self.size = float(np.abs(weights) @ groups.traces)
        self._sum: Any = None

    def image(self, block: Tall) -> Tall:
        groups, some = self._groups, np.flatnonzero(self._weights)
        if len(some) == 1:
            only = int(some[0])
            image = self.backend.image(groups.scatter[only], block)
            image *= float(self._weights[only] * groups.scales[only])
        else:
            if self._sum is None:
                self._sum = self._combined(self._weights)
            image = self.backend.image(self._sum, block)
        image += groups.offsets.T @ (self._shares * (groups.offsets @ block))
        return image

    def disproof(self, vectors: Array, drops: Array, level: float) -> Array | None:
        rest = self._combined(-self._weights, self._sum)
        self._sum = None  # the factorisation takes its memory
        shares = self._weights * self._groups.shares
        for sign in (1.0, -1.0):
            factor = self._groups.offsets.T * np.sqrt(np.maximum(sign * shares, 0.0))
            dsyrk(-sign, factor, beta=1.0, c=rest.T, lower=1, overwrite_c=1)
        return failed_pivot(rest.T, vectors, drops, level)

    def leading(self, r: int) -> tuple[Array, Tall]:
        return some_eigenpairs(self.whole(), r)

    def leading_sum(self, r: int) -> float:
        return float(self.leading(r)[0][:r].sum())

    def whole(self) -> Tall:
        """The matrix as an array of its own."""
        offsets = self._groups.offsets
        total = self._combined(self._weights)
        total += offsets.T @ (self._shares * offsets)
        return total

    @cached_property
    def _shares(self) -> Any:
        return self.backend.put(self._weights * self._groups.shares)[:, None]

    def _combined(self, weights: Array, out: Any = None) -> Any:
        """A weighted sum of the scatters, in the memory that is given or in new one."""
        groups = self._groups
        out = np.empty((self.d, self.d)) if out is None else out
        flat = groups.scatter.reshape(groups.k, -1)
        np.matmul(weights * groups.scales, flat, out=out.reshape(-1))
        return out

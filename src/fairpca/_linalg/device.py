"""Matrices of many columns on a device: what `operators` does, by PyTorch or CuPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.library import is_cpu, namespace, to_host
from fairpca._linalg.operators import scales_and_shares
from fairpca._linalg.types import Array

if TYPE_CHECKING:
    from fairpca.moments import GroupMoments


class DeviceMatrices:
    """The groups' matrices; tall arrays are those of the device. See `GroupMatrices`."""

    def __init__(self, moments: GroupMoments, scatter: Any, loss: str, centering: str) -> None:
        self.xp, self._scatter = namespace(scatter), scatter
        self.k, self.d, _ = scatter.shape
        self._scales, self._shares = scales_and_shares(moments, loss, centering)
        offsets = moments.mean - moments.total_mean
        self._squares = np.einsum("kj,kj->k", offsets, offsets)
        self._offsets = self.tall(offsets)
        # A GPU has all eigenvalues of a small matrix at once sooner than an iteration and a proof.
        self.quick_at_once = 0 if is_cpu(scatter) else 1536
        self._sum: Any = None
        self._sum_weights: Array | None = None

    def empty(self, width: int) -> Any:
        """A tall array to be written into."""
        xp = self.xp
        return xp.empty((self.d, width), dtype=xp.float64, device=self._scatter.device)

    def tall(self, array: NDArray[Any]) -> Any:
        """A NumPy array on the device."""
        return self.xp.asarray(np.ascontiguousarray(array), device=self._scatter.device)

    def host(self, array: Any) -> Array:
        """The NumPy array of one on the device."""
        return to_host(array)

    def qr(self, block: Any) -> tuple[Any, Array]:
        """Orthonormal columns, and the triangle as a NumPy array."""
        columns, triangle = self.xp.linalg.qr(block)
        return columns, self.host(triangle)

    def full_qr(self, block: Any) -> Any:
        """Orthonormal columns that span the whole space, those of the block first."""
        return self.xp.linalg.qr(block, mode="complete")[0]

    def eigh(self, matrix: Any) -> tuple[Array, Any]:
        """All eigenvalues, largest first, as a NumPy array, and their eigenvectors."""
        values, vectors = self.xp.linalg.eigh(matrix)
        return self.host(values)[::-1].copy(), self.xp.flip(vectors, axis=1)

    def stack(self, matrices: list[Any]) -> Any:
        """Matrices of one shape in one array."""
        return self.xp.stack(matrices)

    def traces(self) -> Array:
        """Trace of each group's matrix; (k,)."""
        sums = np.array([float(self.xp.linalg.trace(part)) for part in self._scatter])
        traces: Array = sums * self._scales + self._squares * self._shares
        return traces

    def images(self, block: Any) -> list[Any]:
        """The product of each group's matrix with a block of columns."""
        return [self.image(unit, block) for unit in np.eye(self.k)]

    def image(self, weights: Array, block: Any) -> Any:
        """The product of a weighted sum with a block of columns."""
        some = np.flatnonzero(weights)
        if len(some) == 1:
            only = int(some[0])
            image = self._scatter[only] @ block
            image *= float(weights[only] * self._scales[only])
        else:
            image = self._formed(weights) @ block
        shares = self.tall(weights * self._shares)
        image += self._offsets.T @ (shares[:, None] * (self._offsets @ block))
        return image

    def kept(self, basis: Array, weighted: Array) -> Array:
        """``tr(A_i basis weighted^T)`` for each group; (k,)."""
        block, other = self.tall(basis), self.tall(weighted)
        parts = [self.xp.sum((part @ block) * other) for part in self._scatter]
        sides = [self.host(self._offsets @ side) for side in (block, other)]
        sums = self.host(self.xp.stack(parts))
        kept: Array = sums * self._scales + np.einsum("ka,ka->k", *sides) * self._shares
        return kept

    def disproof(self, weights: Array, vectors: Any, drops: Array, level: float) -> Any:
        """See `Matrix.disproof`, for a weighted sum."""
        rest = self._with_offsets(weights)
        rest *= -1.0
        scaled = vectors * self.tall(drops)
        rest += scaled @ vectors.T
        rest += level * self.xp.eye(self.d, dtype=rest.dtype, device=rest.device)
        if self._is_positive(rest):
            return None
        values, directions = self.xp.linalg.eigh(rest)
        return None if float(values[0]) > 0.0 else directions[:, :1]

    def leading(self, weights: Array, r: int) -> tuple[Array, Any]:
        """The r largest eigenvalues of a weighted sum and their eigenvectors, at once."""
        values, vectors = self.eigh(self._with_offsets(weights))
        return values[:r], vectors[:, :r]

    def dense(self, weights: Array) -> Array:
        """A weighted sum as a NumPy array."""
        return self.host(self._with_offsets(weights))

    def release(self) -> None:
        """Give back the memory of the last weighted sum."""
        self._sum = self._sum_weights = None

    def _is_positive(self, matrix: Any) -> bool:
        # PyTorch raises where a factorisation fails, CuPy gives nan.
        try:
            factor = self.xp.linalg.cholesky(matrix)
        except (RuntimeError, np.linalg.LinAlgError):
            return False
        return bool(np.isfinite(self.host(self.xp.linalg.diagonal(factor))).all())

    def _formed(self, weights: Array) -> Any:
        if self._sum_weights is None or not np.array_equal(self._sum_weights, weights):
            self._sum, self._sum_weights = self._combined(weights), weights.copy()
        return self._sum

    def _combined(self, weights: Array) -> Any:
        """The weighted sum of the scatters."""
        total = float(weights[0] * self._scales[0]) * self._scatter[0]
        for i in range(1, self.k):
            total += float(weights[i] * self._scales[i]) * self._scatter[i]
        return total

    def _with_offsets(self, weights: Array) -> Any:
        """The whole weighted sum, in memory of its own."""
        total = self._combined(weights)
        shares = self.tall(weights * self._shares)
        total += self._offsets.T @ (shares[:, None] * self._offsets)
        return total

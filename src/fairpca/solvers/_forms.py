"""The quadratic forms of a problem, whole or restricted to a subspace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairpca.linalg import Array, complement, eigh_descending
from fairpca.problem import Problem


@dataclass(frozen=True, eq=False)
class Forms:
    """Disparities ``E_i(U) = gains_i - tr(U^T A_i U)`` and the weights of the total loss."""

    matrices: Array
    gains: Array
    weights: Array
    r: int

    @classmethod
    def of(cls, problem: Problem) -> Forms:
        """The forms of a problem; nothing is copied."""
        return cls(problem.matrices, problem.own_gains, problem.weights, problem.n_components)

    @property
    def k(self) -> int:
        """Number of groups."""
        return len(self.matrices)

    @property
    def d(self) -> int:
        """Dimension of the space."""
        return int(self.matrices.shape[1])

    @cached_property
    def scale(self) -> float:
        """The largest trace: what rounding errors and steps are relative to."""
        return float(np.trace(self.matrices, axis1=1, axis2=2).max())

    def combine(self, weights: Array) -> Array:
        """Return ``sum_i weights_i * A_i``."""
        matrix: Array = (weights @ self.matrices.reshape(self.k, -1)).reshape(self.d, self.d)
        return matrix

    def eigenpairs(self, weights: Array) -> tuple[Array, Any]:
        """All eigenvalues of ``sum_i weights_i * A_i``, largest first, and their eigenvectors.

        The eigenvectors may be on a device: they are for `rotated` and `host`.
        """
        return eigh_descending(self.combine(weights))

    def eigh(self, matrix: Array) -> tuple[Array, Array]:
        """Eigenvalues of a matrix of about this size, smallest first, and their eigenvectors."""
        values, vectors = np.linalg.eigh(matrix)
        return values, vectors

    def complement(self, basis: Array) -> tuple[Array, Array]:
        """Orthonormal bases of the span of some columns, and of what is orthogonal to it."""
        return complement(basis)

    def rotated(self, vectors: Any, n: int) -> Array:
        """``V_n^T A_i V``, where V_n are the first n vectors; (k, n, d)."""
        rotated: Array = (vectors[:, :n].T @ self.matrices) @ vectors
        return rotated

    def host(self, vectors: Any) -> Array:
        """Eigenvectors as a NumPy array."""
        array: Array = vectors
        return array

    def disparities(self, basis: Array) -> Array:
        """Disparity of each group in the span of the basis."""
        disparities: Array = self.gains - np.einsum("kia,ia->k", self.matrices @ basis, basis)
        return disparities


@dataclass(frozen=True, eq=False)
class DeviceForms(Forms):
    """Forms that are on a device as well, where their eigenvectors are found and used."""

    on_device: Any
    operators: Any

    def eigenpairs(self, weights: Array) -> tuple[Array, Any]:
        """As for `Forms`."""
        total = float(weights[0]) * self.on_device[0]
        for weight, matrix in zip(weights[1:], self.on_device[1:], strict=True):
            total += float(weight) * matrix
        return self.operators.eigh(total)  # type: ignore[no-any-return]

    def eigh(self, matrix: Array) -> tuple[Array, Array]:
        """As for `Forms`."""
        values, vectors = self.operators.eigh(self.operators.tall(matrix))
        return values[::-1], self.host(vectors)[:, ::-1]

    def complement(self, basis: Array) -> tuple[Array, Array]:
        """As for `Forms`."""
        columns = self.host(self.operators.full_qr(self.operators.tall(basis)))
        r = basis.shape[1]
        return columns[:, :r], columns[:, r:]

    def rotated(self, vectors: Any, n: int) -> Array:
        """As for `Forms`."""
        return self.host((vectors[:, :n].T @ self.on_device) @ vectors)

    def host(self, vectors: Any) -> Array:
        """As for `Forms`."""
        array: Array = self.operators.host(vectors)
        return array


def forms_of(problem: Problem, matrices: list[Any]) -> Forms:
    """The forms of a problem with other matrices, of the kind of its operators' tall arrays."""
    operators = problem.operators
    rest = (problem.own_gains, problem.weights, problem.n_components)
    host = np.array([operators.host(matrix) for matrix in matrices])
    if isinstance(matrices[0], np.ndarray):
        return Forms(host, *rest)
    return DeviceForms(host, *rest, on_device=operators.stack(matrices), operators=operators)

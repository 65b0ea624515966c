"""The quadratic forms of a problem, whole or restricted to a subspace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.dense import complement, eigh_descending
from fairpca._linalg.types import Array
from fairpca.problem import Problem


@dataclass(frozen=True, eq=False)
class Forms:
    """Disparities ``E_i(U) = gains_i - tr(U^T A_i U)`` and the weights of the total loss.

    The matrices are `stored`, (k, d, d), in the library that also holds their eigenvectors.
    """

    stored: Any
    gains: Array
    weights: Array
    r: int

    @classmethod
    def of(cls, problem: Problem) -> Forms:
        """The forms of a problem; nothing is copied."""
        return cls(problem.matrices, problem.own_gains, problem.weights, problem.n_components)

    @property
    def matrices(self) -> Array:
        """The matrices as a NumPy array; (k, d, d)."""
        matrices: Array = self.stored
        return matrices

    @property
    def k(self) -> int:
        """Number of groups."""
        return len(self.gains)

    @property
    def d(self) -> int:
        """Dimension of the space."""
        return int(self.stored.shape[1])

    @cached_property
    def scale(self) -> float:
        """The largest trace: what rounding errors and steps are relative to."""
        return float(np.trace(self.matrices, axis1=1, axis2=2).max())

    def combine(self, weights: Array) -> Array:
        """Return ``sum_i weights_i * A_i``."""
        matrix: Array = (weights @ self.matrices.reshape(self.k, -1)).reshape(self.d, self.d)
        return matrix

    def image(self, weights: Array, basis: Array) -> Array:
        """Return ``sum_i weights_i * A_i @ basis``."""
        return self.combine(weights) @ basis

    def spectrum(self, weights: Array) -> Spectrum:
        """All eigenpairs of ``sum_i weights_i * A_i``; those of the last weights are remembered."""
        key = weights.tobytes()
        if key not in self._spectra:
            self._spectra.clear()
            self._spectra[key] = Spectrum(self.stored, *self._eigenpairs(weights))
        return self._spectra[key]

    @cached_property
    def _spectra(self) -> dict[bytes, Spectrum]:
        return {}

    def _eigenpairs(self, weights: Array) -> tuple[Array, Any]:
        return eigh_descending(self.combine(weights))

    def eigh(self, matrix: Array) -> tuple[Array, Array]:
        """Eigenvalues of a matrix of about this size, smallest first, and their eigenvectors."""
        values, vectors = np.linalg.eigh(matrix)
        return values, vectors

    def complement(self, basis: Array) -> tuple[Array, Array]:
        """Orthonormal bases of the span of some columns, and of what is orthogonal to it."""
        return complement(basis)

    def disparities(self, basis: Array) -> Array:
        """Disparity of each group in the span of the basis."""
        disparities: Array = self.gains - np.einsum("kia,ia->k", self.matrices @ basis, basis)
        return disparities

    @property
    def xp(self) -> Any:
        """The array library in which the matrices are stored."""
        return np

    def put(self, array: NDArray[Any]) -> Any:
        """A NumPy array in that library."""
        return array

    def host(self, array: Any) -> Array:
        """An array of that library as a NumPy array."""
        on_host: Array = array
        return on_host


@dataclass(frozen=True, eq=False)
class DeviceForms(Forms):
    """Forms on a device, where their eigenvectors are found and used."""

    operators: Any

    @cached_property
    def matrices(self) -> Array:
        """As for `Forms`: fetched from the device, once, if it is asked for."""
        return self.host(self.stored)

    @cached_property
    def scale(self) -> float:
        """As for `Forms`."""
        return float(self.host(self.xp.linalg.trace(self.stored)).max())

    def image(self, weights: Array, basis: Array) -> Array:
        """As for `Forms`."""
        return self.host(self._combined(weights) @ self.put(basis))

    def _eigenpairs(self, weights: Array) -> tuple[Array, Any]:
        pairs: tuple[Array, Any] = self.operators.eigh(self._combined(weights))
        return pairs

    def _combined(self, weights: Array) -> Any:
        flat = self.put(weights) @ self.stored.reshape(self.k, -1)
        return flat.reshape(self.d, self.d)

    def eigh(self, matrix: Array) -> tuple[Array, Array]:
        """As for `Forms`."""
        values, vectors = self.operators.eigh(self.put(matrix))
        return values[::-1], self.host(vectors)[:, ::-1]

    def complement(self, basis: Array) -> tuple[Array, Array]:
        """As for `Forms`."""
        columns = self.host(self.operators.full_qr(self.put(basis)))
        r = basis.shape[1]
        return columns[:, :r], columns[:, r:]

    def disparities(self, basis: Array) -> Array:
        """As for `Forms`."""
        there = self.put(basis)
        kept = self.xp.sum((self.stored @ there) * there, axis=(1, 2))
        disparities: Array = self.gains - self.host(kept)
        return disparities

    @property
    def xp(self) -> Any:
        """As for `Forms`."""
        return self.operators.xp

    def put(self, array: NDArray[Any]) -> Any:
        """As for `Forms`."""
        return self.operators.tall(array)

    def host(self, array: Any) -> Array:
        """As for `Forms`."""
        on_host: Array = self.operators.host(array)
        return on_host


class Spectrum:
    """Eigenpairs of a weighted sum, largest first, and the groups' matrices in their basis.

    The values are a NumPy array; the vectors are stored as the matrices are.
    """

    def __init__(self, stored: Any, values: Array, vectors: Any) -> None:
        self.values, self.vectors = values, vectors
        self._stored = stored
        self._rows: Any = None

    def rows(self, n: int) -> Any:
        """``V_n^T A_i V``, where V_n are the first n vectors; (k, n, d)."""
        if self._rows is None or self._rows.shape[1] < n:
            self._rows = (self.vectors[:, :n].T @ self._stored) @ self.vectors
        return self._rows[:, :n, :]


def forms_of(problem: Problem, matrices: list[Any]) -> Forms:
    """The forms of a problem with other matrices, of the kind of its operators' tall arrays."""
    rest = (problem.own_gains, problem.weights, problem.n_components)
    if isinstance(matrices[0], np.ndarray):
        return Forms(np.array(matrices), *rest)
    operators = problem.operators
    return DeviceForms(operators.stack(matrices), *rest, operators=operators)

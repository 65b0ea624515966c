"""The quadratic forms of a problem, whole or restricted to a subspace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairpca.linalg import Array
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

    def disparities(self, basis: Array) -> Array:
        """Disparity of each group in the span of the basis."""
        disparities: Array = self.gains - np.einsum("kia,ia->k", self.matrices @ basis, basis)
        return disparities

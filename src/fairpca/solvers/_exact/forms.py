"""The quadratic forms of a problem, whole or restricted to a subspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from fairpca._linalg.backends import NUMPY, Backend
from fairpca._linalg.bound_cache import BoundCache
from fairpca._linalg.threads import threads_for
from fairpca._linalg.types import Array
from fairpca.problem import Problem, group_matrices
from fairpca.solvers._exact.effort import Effort


@dataclass(frozen=True, eq=False)
class Forms:
    """Measures ``e_i(U) = constants_i - tr(U^T A_i U)`` and the weights of the total loss.

    The matrices are `stored`, (k, d, d), in the library that also holds their eigenvectors; they
    are those of the groups divided by the units of the measure. The total loss is in units of
    `AffineMeasure.loss_unit`.
    """

    stored: Any
    constants: Array
    weights: Array
    r: int
    backend: Backend = NUMPY
    size: float | None = None
    """What rounding errors and steps are relative to, if not the largest trace."""
    _spectra: dict[bytes, Spectrum] = field(default_factory=dict, init=False)

    @classmethod
    def from_problem(cls, problem: Problem) -> Forms:
        """The forms of a problem; nothing is copied unless the measure has units."""
        affine, matrices = problem.affine, problem.matrices
        if (affine.units != 1.0).any():
            matrices = matrices / affine.units[:, None, None]
        return cls(matrices, affine.constants, affine.loss_weights, problem.n_components)

    @classmethod
    def restricted(cls, problem: Problem, matrices: Sequence[Any]) -> Forms:
        """The forms of a problem with other matrices, in the library that its own are in."""
        backend, affine = group_matrices(problem).backend, problem.affine
        parts = zip(matrices, affine.units, strict=True)
        stack = backend.xp.stack([m if unit == 1.0 else m / float(unit) for m, unit in parts])
        return cls(stack, affine.constants, affine.loss_weights, problem.n_components, backend)

    @cached_property
    def matrices(self) -> Array:
        """The matrices as a NumPy array, (k, d, d): copied from a device, once, if asked for."""
        return self.backend.host(self.stored)

    @cached_property
    def k(self) -> int:
        """Number of groups."""
        return len(self.constants)

    @cached_property
    def d(self) -> int:
        """Dimension of the space."""
        return int(self.stored.shape[1])

    @cached_property
    def scale(self) -> float:
        """What rounding errors and steps are relative to."""
        return self.size or max(float(part.trace()) for part in self.stored)

    def weighted_sum(self, weights: Array) -> Any:
        """Return ``sum_i weights_i * A_i``, in the library of the matrices."""
        flat = self.backend.put(weights) @ self.stored.reshape(len(weights), -1)
        return flat.reshape(self.stored.shape[1:])

    def image(self, weights: Array, basis: Array) -> Array:
        """Return ``sum_i weights_i * A_i @ basis``."""
        return self.backend.host(self.weighted_sum(weights) @ self.backend.put(basis))

    def spectrum(self, weights: Array) -> Spectrum:
        """All eigenpairs of ``sum_i weights_i * A_i``; those of the last weights are remembered."""
        key = weights.tobytes()
        if key not in self._spectra:
            self._spectra.clear()
            pairs = self.backend.eigh(self.weighted_sum(weights))
            self._spectra[key] = Spectrum(self.stored, *pairs)
        return self._spectra[key]

    def images(self, basis: Array) -> Any:
        """``A_i @ basis`` for each group, (k, d, r), in the library of the matrices."""
        return self.stored @ self.backend.put(basis)

    def measures(self, basis: Array, images: Any = None) -> Array:
        """Measure of each group in the span of the basis, whose images may be known."""
        images = self.images(basis) if images is None else images
        kept = self.backend.xp.einsum("kia,ia->k", images, self.backend.put(basis))
        measures: Array = self.constants - self.backend.host(kept)
        return measures

    def slopes(self, rest: Array, images: Any) -> Array:
        """Derivatives of the measures by a step from a basis, with these images, into the rest."""
        return -2.0 * self.backend.host(self.backend.put(rest).T @ images).reshape(self.k, -1)


@dataclass(eq=False)
class Spectrum:
    """Eigenpairs of a weighted sum, largest first, and the groups' matrices in their basis.

    The values are a NumPy array; the vectors are stored as the matrices are.
    """

    _stored: Any
    values: Array
    vectors: Any
    _rows: Any = None

    def rows(self, n: int) -> Any:
        """``V_n^T A_i V``, where V_n are the first n vectors; (k, n, d)."""
        if self._rows is None or self._rows.shape[1] < n:
            self._rows = (self.vectors[:, :n].T @ self._stored) @ self.vectors
        return self._rows[:, :n, :]


class Weighted(Protocol):
    """A dual result: what matters here are its weights and its cost."""

    @property
    def weights(self) -> Array:
        """Weights of the groups' matrices."""

    @property
    def n_eigen(self) -> int:
        """Eigenproblems solved."""

    @property
    def is_tied(self) -> bool:
        """Whether no subspace belongs to it that could be wanted to all digits."""


Dual = TypeVar("Dual", bound=Weighted)


def invariant_directions(problem: Problem) -> Array:
    """Eigenvectors of all rows' matrix that turn with the coordinates, signs included.

    So random starts are the same subspaces in whatever coordinates and order of groups.
    """
    vectors = problem.total_eigenpairs[1]
    if vectors.shape[0] > vectors.shape[1]:
        return np.eye(len(vectors))
    turned = vectors.T @ problem.matrices @ vectors
    units = np.trace(turned, axis1=1, axis2=2)[:, None, None]
    turned = np.divide(turned, units, out=np.zeros_like(turned), where=units > 0.0)
    mixed = np.einsum("k,kab,kbc->ac", problem.affine.loss_weights, turned, turned)
    signs = np.ones(len(mixed))
    for a in range(1, len(mixed)):
        b = int(np.abs(mixed[a, :a]).argmax())
        signs[a] = signs[b] * (1.0 if mixed[a, b] >= 0.0 else -1.0)
    return vectors * signs


class WholeSpace:
    """Where a search takes place, here the whole space; `forms` are those of the problem in it.

    `n_eigen` counts the eigenproblems, `bounds` are what was proven on the way, and `effort` says
    when a search is to stop.
    """

    is_whole = True

    def __init__(self, problem: Problem, bounds: BoundCache) -> None:
        self.n_eigen, self.bounds = problem.n_groups + 1, bounds
        self.forms = Forms.from_problem(problem)
        self._problem = problem
        self.effort = Effort()

    @cached_property
    def _directions(self) -> Array:
        return invariant_directions(self._problem)

    def lift(self, basis: Array) -> Array:
        """A basis in the search space, in the coordinates of the whole space."""
        return basis

    def lower(self, basis: Array) -> Array:
        """A basis of the whole space, inside the search space, in its coordinates."""
        return basis

    def shaped(self, noise: Array) -> Array:
        """Noise for random starts, in directions and of sizes that are those of the matrices."""
        return np.asarray(self._directions @ noise)

    def widen(self) -> bool:
        """Let more directions in, for searches that leave a gap; returns whether there are any."""
        return False

    def settle(
        self, solve: Callable[[Forms], Dual], suffices: Callable[[Dual], bool] | None = None
    ) -> Dual:
        """Solve a dual problem so that its solution is exact in the whole space.

        Or, in a part of it, so that it `suffices`.
        """
        with threads_for(self.forms.d):
            dual = solve(self.forms)
        self.n_eigen += dual.n_eigen
        return dual

"""Where the search takes place: the whole space, or for many columns a subspace that suffices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np

from fairpca.linalg import Array, eigh_descending, extend_span, leading_eigenpairs
from fairpca.problem import Problem
from fairpca.solvers._forms import Forms

_WHOLE_LIMIT = 120
"""Up to this many columns nothing is gained by searching in a subspace."""

_MAX_ROUNDS = 30


class Weighted(Protocol):
    """A dual result: what matters here are its weights and its cost."""

    @property
    def weights(self) -> Array:
        """Weights of the groups' matrices."""

    @property
    def n_eigen(self) -> int:
        """Eigenproblems solved."""


Dual = TypeVar("Dual", bound=Weighted)


class SearchSpace:
    """Forms restricted to a subspace that grows until dual solutions in it are exact.

    It starts with the leading eigenvectors of the groups and of the total. A dual solution
    found in the subspace is checked with one eigenproblem in the whole space; as long as the
    r largest eigenvalues there sum to more, their eigenvectors are added. Values and slopes of the
    dual function then agree at that point, so few rounds are needed.
    """

    def __init__(self, problem: Problem) -> None:
        self._whole = Forms.of(problem)
        self._basis: Array | None = None
        self.forms = self._whole
        self.n_eigen = problem.n_groups + 1
        if self._whole.d > max(_WHOLE_LIMIT, 2 * (problem.n_groups + 1) * problem.n_components):
            self._basis = problem.least_loss_basis
            self._images = self._whole.matrices @ self._basis
            for own in problem.own_subspaces:
                self._add(own)
            if self._basis.shape[1] == problem.n_components:  # all groups agree: no room to search
                self._basis = None
            else:
                self._restrict()

    @property
    def is_whole(self) -> bool:
        """Whether the search takes place in the whole space."""
        return self._basis is None

    def lift(self, basis: Array) -> Array:
        """A basis in the search space, in the coordinates of the whole space."""
        return basis if self._basis is None else self._basis @ basis

    def lower(self, basis: Array) -> Array:
        """A basis of the whole space, inside the search space, in its coordinates."""
        return basis if self._basis is None else self._basis.T @ basis

    def settle(self, solve: Callable[[Forms], Dual]) -> Dual:
        """Solve a dual problem so that its solution is exact in the whole space."""
        for round_ in range(1, _MAX_ROUNDS + 1):
            dual = solve(self.forms)
            self.n_eigen += dual.n_eigen
            if self._basis is None or round_ == _MAX_ROUNDS:
                break
            inner, turn = eigh_descending(self.forms.combine(dual.weights))
            start = self._basis @ turn[:, : self._whole.r]
            values, vectors = leading_eigenpairs(
                self._whole.combine(dual.weights), self._whole.r, start
            )
            self.n_eigen += 1
            missed = float(values.sum() - inner[: self._whole.r].sum())
            if missed <= 1e-13 * self._whole.scale * max(1.0, float(np.abs(dual.weights).sum())):
                break
            self._add(vectors)
            self._restrict()
        return dual

    def _add(self, vectors: Array) -> None:
        assert self._basis is not None
        new = extend_span(self._basis, vectors)
        self._basis = np.hstack([self._basis, new])
        self._images = np.concatenate([self._images, self._whole.matrices @ new], axis=2)

    def _restrict(self) -> None:
        """Express the forms in the coordinates of the basis."""
        assert self._basis is not None
        inner = self._basis.T @ self._images
        self.forms = replace(self._whole, matrices=(inner + inner.transpose(0, 2, 1)) / 2)

"""Where the search takes place: the whole space, or for many columns a subspace that suffices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from fairpca.linalg import Array, join_spans, leading_eigenpairs
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

    It starts with the groups' own leading eigenvectors and those of ordinary PCA. A dual solution
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
            self._take(join_spans(*problem.own_subspaces, problem.pca_basis))

    def lift(self, basis: Array) -> Array:
        """A basis in the search space, in the coordinates of the whole space."""
        return basis if self._basis is None else self._basis @ basis

    def lower(self, basis: Array) -> Array:
        """A basis of the whole space, inside the search space, in its coordinates."""
        return basis if self._basis is None else self._basis.T @ basis

    def settle(self, solve: Callable[[Forms], Dual]) -> Dual:
        """Solve a dual problem so that its solution is exact in the whole space."""
        for _ in range(_MAX_ROUNDS):
            dual = solve(self.forms)
            self.n_eigen += dual.n_eigen
            if self._basis is None:
                break
            values, vectors = leading_eigenpairs(self._whole.combine(dual.weights), self._whole.r)
            self.n_eigen += 1
            inner = np.linalg.eigvalsh(self.forms.combine(dual.weights))
            missed = float(values.sum() - inner[::-1][: self._whole.r].sum())
            if missed <= 1e-13 * self._whole.scale * max(1.0, float(np.abs(dual.weights).sum())):
                break
            self._take(join_spans(self._basis, vectors))
        return dual

    def _take(self, basis: Array) -> None:
        self._basis = basis
        self.forms = self._whole.restrict(basis)

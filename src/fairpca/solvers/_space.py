"""Where the search takes place: the whole space, or for many columns a subspace that suffices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from fairpca._krylov import Pairs, all_pairs, found_pairs
from fairpca.linalg import Array
from fairpca.problem import Problem
from fairpca.solvers._forms import Forms, forms_of

_WHOLE_LIMIT = 120
"""Up to this many columns nothing is gained by searching in a subspace."""

_MORE_VECTORS = 8
"""Vectors beside the r leading ones that the eigensolver begins with."""

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
    dual function then agree at that point, so few rounds are needed. With many columns the last
    check is a proof, so that a direction that the eigensolver has missed is found, and added too.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._basis: Any = None
        self._images: list[Any] = []
        self.n_eigen = problem.n_groups + 1
        r = problem.n_components
        if problem.moments.n_features > max(_WHOLE_LIMIT, 2 * (problem.n_groups + 1) * r):
            matrices = problem.operators
            self._basis = matrices.tall(problem.least_loss_basis)
            self._images = matrices.images(self._basis)
            for own in problem.own_subspaces:
                self._add(matrices.tall(own))
            if self._basis.shape[1] == r:  # all groups agree: no room to search
                self._basis = None
        if self._basis is None:
            self.forms = Forms.of(problem)
        else:
            self._restrict()

    @property
    def is_whole(self) -> bool:
        """Whether the search takes place in the whole space."""
        return self._basis is None

    def lift(self, basis: Array) -> Array:
        """A basis in the search space, in the coordinates of the whole space."""
        if self._basis is None:
            return basis
        matrices = self._problem.operators
        lifted: Array = matrices.host(self._basis @ matrices.tall(basis))
        return lifted

    def lower(self, basis: Array) -> Array:
        """A basis of the whole space, inside the search space, in its coordinates."""
        if self._basis is None:
            return basis
        matrices = self._problem.operators
        lowered: Array = matrices.host(self._basis.T @ matrices.tall(basis))
        return lowered

    def settle(self, solve: Callable[[Forms], Dual]) -> Dual:
        """Solve a dual problem so that its solution is exact in the whole space."""
        for round_ in range(1, _MAX_ROUNDS + 1):
            dual = solve(self.forms)
            self.n_eigen += dual.n_eigen
            if self._basis is None or round_ == _MAX_ROUNDS:
                break
            vectors = self._missing(dual.weights)
            if vectors is None:
                break
            self._add(vectors)
            self._restrict()
        return dual

    def _missing(self, weights: Array) -> Any:
        """The leading eigenvectors in the whole space, or None if the search space has them."""
        problem, r = self._problem, self._problem.n_components
        inner, pairs = self.forms.eigenpairs(weights)
        enough = float(inner[:r].sum()) + 1e-13 * self._scale * max(1.0, np.abs(weights).sum())
        start = self._basis @ pairs[:, : r + _MORE_VECTORS]

        def falls_short(pairs: Pairs) -> bool:
            self.n_eigen += 1
            return bool(pairs.values.sum() > enough)

        matrix = problem.combination(weights)
        if not problem.is_large:
            found = all_pairs(matrix, r)
            return found.vectors if falls_short(found) else None
        found = found_pairs(matrix, r, start, trust=True, beyond=enough)
        if falls_short(found):
            return found.vectors
        found = problem.prove(weights, found=found)
        return found.vectors if falls_short(found) else None

    def _add(self, vectors: Any) -> None:
        """Let the basis span the vectors as well."""
        matrices = self._problem.operators
        for _ in range(2):  # twice is enough for orthogonality to rounding
            vectors = vectors - self._basis @ (self._basis.T @ vectors)
        columns, triangle = matrices.qr(vectors)
        turn, sizes, _ = np.linalg.svd(triangle)
        # A direction that is nearly in the span already is mostly rounding: clean what is kept.
        columns = columns @ matrices.tall(turn[:, sizes > 1e-10])
        if columns.shape[1] == 0:
            return
        new = matrices.qr(columns - self._basis @ (self._basis.T @ columns))[0]
        before, width = self._basis.shape[1], new.shape[1]
        self._basis = _joined(matrices.empty(before + width), self._basis, new)
        self._images = [
            _joined(matrices.empty(before + width), image, more)
            for image, more in zip(self._images, matrices.images(new), strict=True)
        ]

    def _restrict(self) -> None:
        """Express the forms in the coordinates of the basis."""
        problem = self._problem
        parts = [self._basis.T @ image for image in self._images]
        self.forms = forms_of(problem, [(part + part.T) / 2 for part in parts])
        self._scale = float(problem.traces.max())


def _joined(whole: Any, first: Any, second: Any) -> Any:
    """Two blocks of columns beside each other, in an array made for them."""
    whole[:, : first.shape[1]], whole[:, first.shape[1] :] = first, second
    return whole

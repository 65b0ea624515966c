"""Where the search takes place: the whole space, or for many columns a subspace that suffices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.linalg

from fairpca._linalg.krylov import Pairs, all_pairs, confirmed_pairs, found_pairs
from fairpca._linalg.types import Array
from fairpca.problem import Problem
from fairpca.solvers._exact.forms import Forms, forms_of

_WHOLE_LIMIT = 120
"""Up to this many columns nothing is gained by searching in a subspace."""

_MORE_VECTORS = 8
"""Vectors beside the r leading ones that the eigensolver begins with."""

_NEW = 1e-10
"""Distance from the span of others at which a vector is a direction of its own."""

_MAX_ROUNDS = 30

_POLISHING_ROUNDS = 3
"""Rounds that only bring the eigenvectors nearer, not the sum of the eigenvalues."""


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


class SearchSpace:
    """Forms restricted to a subspace that grows until dual solutions in it are exact.

    It starts with the leading eigenvectors of the groups and of the total. A dual solution
    found in the subspace is checked with one eigenproblem in the whole space; as long as the
    r largest eigenvalues there sum to more, or the eigenvectors differ, these are added. Values and
    slopes of the dual function then agree at that point, so few rounds are needed. With many
    columns the last check is a proof, so that a direction that the eigensolver has missed is found,
    and added too.
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
            self._add(matrices.tall(np.hstack(problem.own_subspaces)))
            if self._basis.shape[1] == r:  # all groups agree: no room to search
                self._basis = None
        if self._basis is None:
            self.forms = Forms.of(problem)
        else:
            self._restrict()

    @property
    def is_large(self) -> bool:
        """Whether there are so many columns that what is found has to be proven."""
        return self._problem.is_large

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
        polishing = _POLISHING_ROUNDS
        for round_ in range(1, _MAX_ROUNDS + 1):
            dual = solve(self.forms)
            self.n_eigen += dual.n_eigen
            if self._basis is None or round_ == _MAX_ROUNDS:
                break
            found, exact = self._leading(dual.weights)
            short = self._falls_short(dual.weights, found)
            polish = polishing > 0 and not (short or exact or dual.is_tied)
            polishing -= int(polish)
            grown = (short or polish) and self._add(found.vectors)
            if short and dual.is_tied:
                # Tied eigenvectors trade places from round to round: let the next ones in as well.
                grown = self._add(found.beside) or grown
            if not grown and self.is_large:
                # The search space has all that was found; it remains to prove that this is all.
                found = self._problem.prove(dual.weights, found=found)
                self.n_eigen += 1
                grown = self._falls_short(dual.weights, found) and self._add(found.vectors)
            if not grown:
                break
            self._restrict()
        return dual

    def _leading(self, weights: Array) -> tuple[Pairs, bool]:
        """Leading eigenpairs in the whole space, and whether the search space has the vectors."""
        problem, r = self._problem, self._problem.n_components
        start = self._basis @ self.forms.spectrum(weights).vectors[:, : r + _MORE_VECTORS]
        matrix = problem.combination(weights)
        self.n_eigen += 1
        confirmed = confirmed_pairs(matrix, r, start)
        exact = confirmed is not None
        if not self.is_large:
            return all_pairs(matrix, r), exact
        enough = self._enough(weights)
        return confirmed or found_pairs(matrix, r, start, beyond=enough), exact

    def _falls_short(self, weights: Array, found: Pairs) -> bool:
        """Whether the eigenvalues that were found sum to more than those in the search space."""
        return bool(found.values.sum() > self._enough(weights))

    def _enough(self, weights: Array) -> float:
        inside = self.forms.spectrum(weights).values[: self._problem.n_components]
        return float(inside.sum()) + 1e-13 * self._scale * max(1.0, float(np.abs(weights).sum()))

    def _add(self, vectors: Any) -> bool:
        """Let the basis span the vectors as well; returns whether it did not before."""
        matrices = self._problem.operators
        for _ in range(2):  # twice is enough for orthogonality to rounding
            vectors = vectors - self._basis @ (self._basis.T @ vectors)
        columns, triangle = matrices.qr(vectors)
        if np.abs(np.diag(triangle)).min() <= _NEW:
            # A direction that is nearly in the span already is mostly rounding: keep the others.
            turn, sizes, _ = scipy.linalg.qr(triangle, pivoting=True, check_finite=False)
            columns = columns @ matrices.tall(turn[:, np.abs(np.diag(sizes)) > _NEW])
        if columns.shape[1] == 0:
            return False
        new = matrices.qr(columns - self._basis @ (self._basis.T @ columns))[0]
        before, width = self._basis.shape[1], new.shape[1]
        self._basis = _joined(matrices.empty(before + width), self._basis, new)
        self._images = [
            _joined(matrices.empty(before + width), image, more)
            for image, more in zip(self._images, matrices.images(new), strict=True)
        ]
        return True

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

"""Where the search takes place with many columns: a subspace that suffices.

docs/exact_solver.md, section 14.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from fairpca._linalg.bound_cache import BoundCache
from fairpca._linalg.krylov import Pairs, all_pairs, confirmed_pairs, found_pairs, proven_pairs
from fairpca._linalg.types import Array
from fairpca.problem import Problem, group_matrices
from fairpca.solvers._exact.effort import EXPENSIVE, Effort
from fairpca.solvers._exact.forms import Dual, Forms, Weighted, WholeSpace

WHOLE_LIMIT = EXPENSIVE
"""Up to this many columns nothing is gained by searching in a subspace."""

_MORE_VECTORS = 8
"""Vectors beside the r leading ones that the eigensolver begins with."""

_NEW, _NEW_DIGITS = 1e-10, 1e-8
"""Distance from the span of others at which a vector is a direction of its own, and at which one
brings digits that are worth a round."""

_MISSING = 1e-13
"""What the eigenvalues in the search space may lack, relative to what is weighed: rounding."""

_MAX_ROUNDS = 30
"""Rounds after which the last dual solution is taken as it is; a handful is usual."""

_POLISHING_ROUNDS = 1
"""Rounds that only bring the eigenvectors nearer, not the sum of the eigenvalues: after one, bases
agree with those of the whole space to 1e-7, of which values have twice the digits."""


_POWERS = 4
"""Products with a group's matrix that bring out where it has variance."""


class SearchSpace(WholeSpace):
    """Forms restricted to a subspace that grows until dual solutions in it are exact.

    It starts with the leading eigenvectors of the groups and of the total. A dual solution
    found in the subspace is checked with one eigenproblem in the whole space; as long as the
    r largest eigenvalues there sum to more, or the eigenvectors differ, these are added. Values and
    slopes of the dual function then agree at that point, so few rounds are needed. With many
    columns the last check is a proof, so that a direction that the eigensolver has missed is found,
    and added too.
    """

    is_whole = False
    is_wide = False

    def __init__(self, problem: Problem, bounds: BoundCache) -> None:
        self._problem, self._matrices = problem, group_matrices(problem)
        self.n_eigen, self.bounds, self.effort = problem.n_groups + 1, bounds, Effort()
        self._backend = self._matrices.backend
        self._basis = self._backend.put(problem.least_loss_basis)
        self._images = list(self._matrices.images(self._basis))
        # Where all groups agree there is no room to search.
        self.has_room = self._add(self._backend.put(np.hstack(problem.own_subspaces)))
        self._restrict()

    def lift(self, basis: Array) -> Array:
        """A basis in the search space, in the coordinates of the whole space."""
        return self._backend.host(self._basis @ self._backend.put(basis))

    def lower(self, basis: Array) -> Array:
        """A basis of the whole space, inside the search space, in its coordinates."""
        return self._backend.host(self._basis.T @ self._backend.put(basis))

    def shaped(self, noise: Array) -> Array:
        """As it is: the basis is made of eigenvectors already."""
        return noise

    def settle(
        self, solve: Callable[[Forms], Dual], suffices: Callable[[Dual], bool] | None = None
    ) -> Dual:
        """Solve a dual problem so that its solution is exact in the whole space, or `suffices`."""
        polishing = _POLISHING_ROUNDS
        for left in reversed(range(_MAX_ROUNDS)):
            dual = super().settle(solve)
            if self.effort.is_over() or (suffices is not None and suffices(dual)):
                break
            polished = self._grow(dual, may_polish=polishing > 0) if left else None
            if polished is None:
                break
            polishing -= int(polished)
            self._restrict()
        return dual

    def widen(self) -> bool:
        """Let in what the dual does without: of each group r directions with much variance outside.

        Returns whether there were any; only the first time, so that it ends.
        """
        if self.is_wide:
            return False
        self.is_wide = True
        k, r = self._problem.n_groups, self._problem.n_components
        rng = np.random.default_rng(0)
        block = self._backend.put(rng.standard_normal((self._basis.shape[0], k * r)))
        for _ in range(_POWERS):
            block = self._backend.qr(block - self._basis @ (self._basis.T @ block))[0]
            for i, image in enumerate(self._matrices.images(block)):
                block[:, i * r : (i + 1) * r] = image[:, i * r : (i + 1) * r]
        grown = self._add(block)
        self._restrict()
        return grown

    def _grow(self, dual: Weighted, *, may_polish: bool) -> bool | None:
        """Add what a dual solution lacks: whether only for its digits, or None if nothing is."""
        weights, r = dual.weights, self._problem.n_components
        matrix = self._matrices.weighted_sum(weights / self._problem.affine.units)
        start = self._basis @ self.forms.spectrum(weights).vectors[:, : r + _MORE_VECTORS]
        self.n_eigen += 1
        # Where all eigenvectors at once are quick, it takes longer to see whether these are exact.
        confirmed = None if matrix.at_once else confirmed_pairs(matrix, r, start)
        if self._problem.is_large:
            found = confirmed or found_pairs(matrix, r, start, beyond=self._enough(weights))
        else:
            found = all_pairs(matrix, r)
        short = self._falls_short(weights, found)
        polish = may_polish and not (short or confirmed is not None or dual.is_tied)
        grown = (short or polish) and self._add(found.vectors, _NEW if short else _NEW_DIGITS)
        if short and dual.is_tied:
            # Tied eigenvectors trade places from round to round: let the next ones in as well.
            grown = self._add(found.beside) or grown
        if not grown and self._problem.is_large:
            # The search space has all that was found; it remains to prove that this is all.
            found = proven_pairs(matrix, r, found=found)
            assert found.bound is not None
            self.bounds.add(weights, found.bound)
            self.n_eigen += 1
            grown = self._falls_short(weights, found) and self._add(found.vectors)
        return polish if grown else None

    def _falls_short(self, weights: Array, found: Pairs) -> bool:
        """Whether the eigenvalues that were found sum to more than those in the search space."""
        return bool(found.values.sum() > self._enough(weights))

    def _enough(self, weights: Array) -> float:
        inside = self.forms.spectrum(weights).values[: self._problem.n_components]
        return float(inside.sum()) + _MISSING * self._scale * max(1.0, float(np.abs(weights).sum()))

    def _add(self, vectors: Any, least: float = _NEW) -> bool:
        """Let the basis span what of the vectors is at `least` so far; returns if there is any."""
        for _ in range(2):  # twice is enough for orthogonality to rounding
            vectors = vectors - self._basis @ (self._basis.T @ vectors)
        columns, triangle = self._backend.qr(vectors)
        if np.abs(np.diag(triangle)).min() <= least:
            # A direction that is nearly in the span already is mostly rounding: keep the others.
            turn, sizes, _ = scipy.linalg.qr(triangle, pivoting=True, check_finite=False)
            columns = columns @ self._backend.put(turn[:, np.abs(np.diag(sizes)) > least])
        if columns.shape[1] == 0:
            return False
        new = self._backend.qr(columns - self._basis @ (self._basis.T @ columns))[0]
        self._basis = self._joined(self._basis, new)
        images = zip(self._images, self._matrices.images(new), strict=True)
        self._images = [self._joined(image, more) for image, more in images]
        return True

    def _restrict(self) -> None:
        """Express the forms in the coordinates of the basis."""
        problem = self._problem
        parts = [self._basis.T @ image for image in self._images]
        self.forms = Forms.restricted(problem, [(part + part.T) / 2 for part in parts])
        self._scale = float(problem.affine.traces.max())

    def _joined(self, first: Any, second: Any) -> Any:
        """Two blocks of columns beside each other."""
        width = first.shape[1]
        whole = self._backend.empty(len(first), width + second.shape[1])
        whole[:, :width], whole[:, width:] = first, second
        return whole

"""Where the exact solver searches, and how long: quadratic forms, search spaces, effort.

The quadratic forms of a problem, whole or restricted to a subspace. With many columns the search
takes place in a subspace that suffices; where losses are far smaller than traces, among what is
left out: docs/exact_solver.md, sections 14 and 17.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.linalg

from fairpca._linalg.backends import NUMPY, Backend
from fairpca._linalg.graded import GradedBackend, GradedLosses
from fairpca._linalg.krylov import (
    EXTRA_VECTORS,
    Pairs,
    all_pairs,
    found_pairs,
    proven_pairs,
)
from fairpca._linalg.threads import threads_for
from fairpca._linalg.types import ACCURACY, ROUNDING, Array
from fairpca.criteria import CLOSED_GAP
from fairpca.measures import SUM_ROUNDING
from fairpca.problem import EXPENSIVE, Problem

WHOLE_LIMIT = EXPENSIVE
"""Up to this many columns nothing is gained by searching in a subspace."""

_NEW = 1e-10
"""Distance from the span of others at which a vector is a direction of its own."""

_POWERS = 4
"""Products with a group's matrix that bring out where it has variance."""


class Effort:
    """What a search asks when it could stop, and tells when it has found something.

    Parameters
    ----------
    gap : float
        Gap, relative to the value, that is small enough.
    seconds : float or None
        The time that there is, from now on; None is all that it takes.
    progress : callable or None
        Told the best `bound` and `value` so far; returns whether to stop.
    most : int
        How often it is told, at the most.

    Attributes
    ----------
    stopped_by : str
        What has stopped the search before its end: "time limit", "callback", or nothing.
    """

    def __init__(
        self,
        gap: float = CLOSED_GAP,
        seconds: float | None = None,
        progress: Callable[..., bool] | None = None,
        most: int = 0,
    ) -> None:
        self.gap, self.stopped_by = gap, ""
        self._end = np.inf if seconds is None else time.monotonic() + seconds
        self._progress, self._left = progress, most

    def is_over(self) -> bool:
        """Whether to stop with what there is; once it is so, it stays so."""
        if not self.stopped_by and self._end < np.inf and time.monotonic() >= self._end:
            self.stopped_by = "time limit"
        return bool(self.stopped_by)

    def tell(self, **found: Any) -> None:
        """Say what has been found so far."""
        if self._progress is None or self._left == 0:
            return
        self._left -= 1
        if self._progress(**found):
            self.stopped_by = self.stopped_by or "callback"


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
    rounding: float
    """What rounding takes from a bound for each unit of weight."""
    backend: Backend = NUMPY
    size: float | None = None
    """What rounding errors and steps are relative to, if not the largest trace."""
    seen: list[Any] = field(default_factory=list, init=False)
    """What a root-find for two groups has seen, by weight."""
    _spectra: dict[bytes, Spectrum] = field(default_factory=dict, init=False)

    @classmethod
    def from_problem(cls, problem: Problem, parts: list[Any] | None = None) -> Forms:
        """The forms of a problem, or of `parts` of its matrices, which are in their library.

        Nothing is copied unless the measure has units.
        """
        affine, matrices, backend = problem.affine, problem.group_matrices, NUMPY
        if parts is None:
            stack = matrices.stack
        else:
            backend = matrices.backend
            # They are symmetric, and transposed in the order in which sums are taken.
            stack = backend.xp.stack([part.T for part in parts])
        if (affine.units != 1.0).any():
            stack = stack / backend.put(affine.units)[:, None, None]
        r = problem.n_components
        # Of many columns a sum of eigenvalues is proven with a margin for each.
        rounding = (r * ROUNDING if problem.is_large else SUM_ROUNDING) * affine.traces.max()
        return cls(stack, affine.constants, affine.loss_weights, r, float(rounding), backend)

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

    def noise(self, weights: Array) -> float:
        """What rounding takes from a bound with these weights."""
        return self.rounding * float(np.abs(weights).sum())

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


class Weighted:
    """What a search ends with: weights of the groups' matrices, and what they cost."""

    weights: Array
    n_eigen: int = 0
    """Eigenproblems of whole matrices."""
    is_tied: bool = False
    """Whether an eigenvector is occupied in part, so that no subspace belongs to the weights."""


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

    `n_eigen` counts the eigenproblems, and `effort` says when a search is to stop.
    """

    is_whole = True

    minmax_measures: Array | None = None
    """Measures of the best subspace found for "minmax", which knows no tolerance."""

    def __init__(self, problem: Problem) -> None:
        self.n_eigen = problem.n_groups + 1
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

    def solve(
        self, solve_in: Callable[[Forms], Dual], suffices: Callable[[Dual], bool] | None = None
    ) -> Dual:
        """Solve a dual problem so that its solution is exact in the whole space.

        Or, in a part of it, so that it `suffices`.
        """
        dual = solve_in(self.forms)
        self.n_eigen += dual.n_eigen
        return dual


class SearchSpace(WholeSpace):
    """Forms restricted to a subspace that grows until dual solutions in it are exact.

    It starts with the leading eigenvectors of the total and of the groups: of all of these, or,
    where they are many, of those whose measures are farthest from the mean, which most likely
    decide. A dual solution found in the subspace is checked with one eigenproblem in the whole
    space; as long as the r largest eigenvalues there sum to more, or the eigenvectors differ, these
    are added. Values and slopes of the dual function then agree at that point, so few rounds are
    needed. With many columns the last check is a proof, so that a direction that the eigensolver
    has missed is found, and added too.
    """

    is_whole = False
    is_wide = False

    def __init__(self, problem: Problem) -> None:
        self._problem, self._matrices = problem, problem.group_matrices
        self.n_eigen, self.effort = problem.n_groups + 1, Effort()
        self._backend = self._matrices.backend
        self._basis = self._backend.put(problem.least_loss_basis)
        self._products = [self._backend.empty(0, 0)] * problem.n_groups  # with the basis
        measures, weights = problem.affine.of_losses(problem.least_losses), problem.affine.weights
        far = np.argsort(-np.abs(measures - weights @ measures / weights.sum()), kind="stable")
        first, own = _first_groups(problem), problem.own_subspaces
        self._others = [own[i] for i in sorted(far[first:])]
        # Where all groups agree there is no room to search.
        self.has_room = self._add_own([own[i] for i in sorted(far[:first])])
        self.has_room = self.has_room or self._add_others()
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

    def solve(
        self, solve_in: Callable[[Forms], Dual], suffices: Callable[[Dual], bool] | None = None
    ) -> Dual:
        """Solve a dual problem so that its solution is exact in the whole space, or `suffices`."""
        # One round may only bring the eigenvectors nearer, not the sum of the eigenvalues: after it
        # bases agree with those of the whole space to 1e-7, of which values have twice the digits.
        may_polish = True
        while True:  # each round adds at least one direction, or is the last
            with threads_for(self.forms.d):
                dual = super().solve(solve_in)
            if self.effort.is_over() or (suffices is not None and suffices(dual)):
                break
            polished = self._grow(dual, may_polish=may_polish)
            if polished is None:
                break
            may_polish = may_polish and not polished
            self._restrict()
        return dual

    def widen(self) -> bool:
        """Let in what the dual does without; returns whether there was anything.

        First the groups' own subspaces that are still left out, then, once, of each group r
        directions with much variance outside.
        """
        k, r = self._problem.n_groups, self._problem.n_components
        if self._add_others():
            self._restrict()
            return True
        if self.is_wide or 2 * (k + 1) * r >= self._problem.n_features:
            return False
        self.is_wide = True
        rng = np.random.default_rng(0)
        block = self._backend.put(rng.standard_normal((self._basis.shape[0], k * r)))
        for _ in range(_POWERS):
            block = self._backend.qr(block - self._basis @ (self._basis.T @ block))[0]
            for i, image in enumerate(self._matrices.images(block)):
                block[:, i * r : (i + 1) * r] = image[:, i * r : (i + 1) * r]
        grown = self._add(block)
        self._restrict()
        return grown

    def _add_others(self) -> bool:
        """Let in the own subspaces that are not in yet; returns whether they bring anything."""
        others, self._others = self._others, []
        return self._add_own(others) if others else False

    def _add_own(self, subspaces: Sequence[Array]) -> bool:
        return self._add(self._backend.put(np.hstack(subspaces)))

    def _grow(self, dual: Weighted, *, may_polish: bool) -> bool | None:
        """Add what a dual solution lacks: whether only for its digits, or None if nothing is."""
        weights, r = dual.weights, self._problem.n_components
        matrix = self._matrices.weighted_sum(weights / self._problem.affine.units)
        start = self._basis @ self.forms.spectrum(weights).vectors[:, : r + EXTRA_VECTORS]
        self.n_eigen += 1
        if self._problem.is_large:
            found = found_pairs(matrix, r, start, beyond=self._enough(weights))
        else:
            found = all_pairs(matrix, r)
        short = self._falls_short(weights, found)
        polish = may_polish and not (short or dual.is_tied)
        grown = (short or polish) and self._add(found.vectors)
        if short and dual.is_tied:
            # Tied eigenvectors trade places from round to round: let the next ones in as well.
            grown = self._add(found.beside) or grown
        if not grown and self._problem.is_large:
            # The search space has all that was found; it remains to prove that this is all.
            found = proven_pairs(matrix, r, found=found)
            assert found.bound is not None
            self._problem.remember_bound(weights / self._problem.affine.units, found.bound)
            self.n_eigen += 1
            grown = self._falls_short(weights, found) and self._add(found.vectors)
        return polish if grown else None

    def _falls_short(self, weights: Array, found: Pairs) -> bool:
        """Whether the eigenvalues that were found sum to more than those in the search space."""
        return bool(found.values.sum() > self._enough(weights))

    def _enough(self, weights: Array) -> float:
        inside = self.forms.spectrum(weights).values[: self._problem.n_components]
        return float(inside.sum()) + ACCURACY * self._scale * max(1.0, float(np.abs(weights).sum()))

    def _add(self, vectors: Any) -> bool:
        """Let the basis span what of the vectors is new; returns if there is any."""
        for _ in range(2):  # twice is enough for orthogonality to rounding
            vectors = vectors - self._basis @ (self._basis.T @ vectors)
        columns, triangle = self._backend.qr(vectors)
        if np.abs(np.diag(triangle)).min() <= _NEW:
            # A direction that is nearly in the span already is mostly rounding: keep the others.
            turn, sizes, _ = scipy.linalg.qr(triangle, pivoting=True, check_finite=False)
            columns = columns @ self._backend.put(turn[:, np.abs(np.diag(sizes)) > _NEW])
        if columns.shape[1] == 0:
            return False
        new = self._backend.qr(columns - self._basis @ (self._basis.T @ columns))[0]
        before = self._basis
        self._basis = self._backend.empty(len(before), before.shape[1] + new.shape[1])
        self._basis[:, : before.shape[1]], self._basis[:, before.shape[1] :] = before, new
        return True

    def _restrict(self) -> None:
        """Express the forms in the coordinates of the basis."""
        problem, basis, backend = self._problem, self._basis, self._backend
        n, before = basis.shape[1], self._products[0].shape[0]
        for i, image in enumerate(self._matrices.images(basis[:, before:])):
            new = basis.T @ image
            products = backend.empty(n, n)
            products[:before, :before] = self._products[i]
            products[:before, before:], products[before:, :before] = new[:before], new[:before].T
            products[before:, before:] = (new[before:] + new[before:].T) / 2
            self._products[i] = products
        self.forms = Forms.from_problem(problem, self._products)
        self._scale = float(problem.affine.traces.max())


class LeftOutSpace(WholeSpace):
    """The whole space, in coordinates in which matrices are graded, searched for what is left out.

    Bases in it are of what is left out; those of the whole space are of what is kept.
    """

    def __init__(self, problem: Problem, parts: GradedLosses) -> None:
        self.n_eigen, self.effort = problem.n_groups + 1, Effort()
        self._turn = invariant_directions(problem)
        affine = problem.affine
        values = problem.total_eigenpairs[0]
        level = max(float(values[problem.n_components]), np.finfo(float).tiny)
        self._sizes = np.sqrt(level / np.maximum(values, level))
        self.forms = Forms(
            -parts.turned(self._turn) / affine.units[:, None, None],
            -affine.offsets,
            affine.loss_weights,
            problem.n_features - problem.n_components,
            SUM_ROUNDING * affine.scale,
            GradedBackend(),
            size=affine.scale,
        )

    def shaped(self, noise: Array) -> Array:
        """Noise that has little of directions in which much would be lost."""
        return noise * self._sizes[:, None]

    def lift(self, basis: Array) -> Array:
        """What is kept where this is left out, in the coordinates of the whole space."""
        return np.asarray(self._turn @ NUMPY.complement(basis)[1])

    def lower(self, basis: Array) -> Array:
        """What is left out where this is kept, in the coordinates of the search."""
        return NUMPY.complement(self._turn.T @ basis)[1]


def _first_groups(problem: Problem) -> int:
    """With how many groups' own subspaces a search begins: all, unless these are many columns.

    On a device wide products are as quick, and further rounds are not.
    """
    k, r = problem.n_groups, problem.n_components
    if (k + 1) * r <= 2 * WHOLE_LIMIT or problem.group_matrices.backend is not NUMPY:
        return k
    return min(k, max(WHOLE_LIMIT // r - 1, 1))


def search_space(problem: Problem) -> WholeSpace:
    """Where the search takes place: the whole space, or for many columns one that suffices."""
    if (parts := problem.graded_losses) is not None:
        return LeftOutSpace(problem, parts)
    if problem.n_features > WHOLE_LIMIT:
        first = (_first_groups(problem) + 1) * problem.n_components
        space = SearchSpace(problem) if problem.n_features > 2 * first else None
        if space is not None and space.has_room:
            return space
    return WholeSpace(problem)

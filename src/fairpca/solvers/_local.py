"""Local search on the manifold of subspaces: an augmented Lagrangian with Newton steps.

A step X, of shape (d - r, r), moves a basis U to the span of ``U + N X``, where N is orthonormal
to U. The measures then change by ``G_i . X`` with ``G_i = -2 N^T A_i U``, and the Lagrangian
with weights w has the second derivative ``X -> 2 (X U^T A(w) U - N^T A(w) N X)``. In the
eigenbases of the two diagonal blocks that is diagonal, so a Newton step costs two
eigendecompositions and an m x m system, m at most twice the number of groups:
docs/exact_solver.md, section 10.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairpca._linalg.backends import NUMPY
from fairpca._linalg.threads import threads_for
from fairpca._linalg.types import ACCURACY, NEGLIGIBLE, Array
from fairpca.criteria import OPTIMAL_GAP, Criterion
from fairpca.problem import Problem
from fairpca.solvers._dual import ARMIJO, SHORTEST_STEP, VALUE_ROUNDING, DualResult
from fairpca.solvers._space import Effort, Forms, Weighted, WholeSpace

_MAX_STEPS = 150
"""The most steps of a search: those that converge take 10 to 50."""

_FIRST_RHO, _RHO_FACTOR, _LAST_RHO = 10.0, 5.0, 1e9
"""Where the penalty rho begins, how it grows, and where it ends; times 1 / the largest trace."""

_CREEPING = 40
"""How often steps on the first inner problem have been halved when a firm penalty hinders the
search, as it does where many groups have nearly the largest measure, and is made soft."""

_INNER_SHARE = 0.03
"""The slope is small enough to move the weights when it is this share of the residual."""

_FALLS_WELL, _HARDLY_FALLS = 0.25, 0.9
"""Share of the residual that a move of the weights may leave without a larger rho; and the share
from which, at the largest rho, it is of no use to go on."""

_STALLED = 1e-3
"""What is missed, relative to the largest trace, at the end of a search that has stalled, not gone
elsewhere."""

_DAMPING, _DAMPED = 1e-3, 10.0
"""Where the damping of these steps begins, relative to what is missed, and by what it changes."""

_LONGEST_STEP = 2.0
"""Norm of a step: beyond it the span of ``U + N X`` hardly changes any more."""

_CURVED = 1e-6
"""How large the least curvature is beside the largest where an end is isolated. To see that saves
four fifths of the eigenproblems where equality is impossible with many columns."""

_FIRST_SHIFT, _SHIFT_FACTOR = 1e-3, 4.0
"""Shifts of the curvature that are tried, relative to the largest one."""

_NEAR = 1e-2
"""A gap, relative to the value, beyond which every start counts."""

_LITTLE_LEFT = 10.0
"""How many times the gap that is small enough is not worth more than one start that brings nothing,
nor a wider search space."""

_FIRMNESS = (1.0, 100.0)
"""How firm the searches are, in pairs: soft ones end in few places, and those are good ones."""

_IN_TURN = 2 * len(_FIRMNESS)
"""How many random starts in a row lie near the relaxed solution, and how many anywhere: as many as
there are kinds of searches."""

_NOISE = (0.3, 0.1)
"""Sizes, in turn, of the noise that is added to the relaxed projector; its eigenvalues are at
most 1."""


@dataclass(frozen=True, eq=False)
class LocalResult(Weighted):
    """Where a search ended, with the weights of its Lagrangian."""

    basis: Array
    weights: Array
    measures: Array
    n_iter: int


def refine(
    forms: Forms,
    criterion: Criterion,
    basis: Array,
    weights: Array,
    firmness: float = 1.0,
    effort: Effort | None = None,
) -> LocalResult:
    """Minimise the criterion from a basis and weights nearby.

    The penalty begins as many times as large as `firmness` says: a firm one stays near the basis,
    a soft one goes where the weights lead.
    """
    search = _SubspaceDescent(forms, criterion, basis, criterion.start(weights), firmness)
    residual, soft_rho, last_rho = np.inf, _FIRST_RHO / forms.scale, _LAST_RHO / forms.scale
    steps = inner_steps = 0
    while steps < _MAX_STEPS and not (effort is not None and effort.is_over()):
        now = search.residual
        small = max(NEGLIGIBLE * forms.scale, _INNER_SHARE * min(now, residual))
        if search.slope() > small and search.newton_step():
            steps, inner_steps = steps + 1, inner_steps + 1
            creeps = search.n_halved >= _CREEPING and residual == np.inf
            if creeps and search.rho > soft_rho:
                search.rho = soft_rho
                search.move_weights(search.state)
            continue
        # The inner problem is solved, or can be solved no better: move the weights.
        if now <= ACCURACY * forms.scale:
            break
        if search.rho >= last_rho and now > _HARDLY_FALLS * residual:
            break
        # Near the end, where one step solves it, a larger rho makes the residual fall faster.
        if now > _FALLS_WELL * residual or inner_steps <= 1:
            search.rho = min(_RHO_FACTOR * search.rho, last_rho)
        residual, steps, inner_steps = now, steps + 1, 0
        search.move_weights(search.moved)
    search.close()
    return LocalResult(search.basis, criterion.net(search.moved), search.measures, steps)


def is_isolated(forms: Forms, criterion: Criterion, basis: Array, weights: Array) -> bool:
    """Whether no subspace beside one where a search has ended is as good: it curves upwards."""
    search = _SubspaceDescent(forms, criterion, basis, criterion.start(weights), _FIRMNESS[-1])
    search.diagonalise()
    return search.shifted(search.outer(), -_CURVED)[-1]


class _SubspaceDescent:
    """A basis that moves, with the smoothed criterion at it."""

    def __init__(
        self, forms: Forms, criterion: Criterion, basis: Array, state: Array, firmness: float = 1.0
    ) -> None:
        self.forms, self.criterion = forms, criterion
        self.rho = firmness * _FIRST_RHO / forms.scale
        self.n_halved = 0
        self.basis = forms.backend.orthonormal(basis)
        self.images = forms.images(self.basis)
        self.measures = forms.measures(self.basis, self.images)
        self.move_weights(state)

    def move_weights(self, state: Array) -> None:
        """Smooth the criterion at another dual state."""
        self.state = state
        smooth = self.criterion.smooth(self.measures, state, self.rho)
        self.moved, self.value, self.factor = smooth

    @property
    def residual(self) -> float:
        """How far the criterion is from being met exactly at the present weights."""
        return float(np.linalg.norm(self.moved - self.state)) / self.rho

    def slope(self) -> float:
        """Norm of the slope."""
        if self.forms.size is not None:
            self.diagonalise()
            return float(np.linalg.norm(self.gradient / np.sqrt(self.metric)))
        # No eigenproblem is needed to see it.
        image = self.forms.backend.host(self._image(self.criterion.net(self.moved)))
        return 2.0 * float(np.linalg.norm(image - self.basis @ (self.basis.T @ image)))

    def _image(self, net: Array) -> Any:
        """What the weighted sum of the matrices makes of the basis, in their library."""
        flat = self.forms.backend.put(net) @ self.images.reshape(len(net), -1)
        return flat.reshape(self.basis.shape)

    def diagonalise(self) -> None:
        """Find bases of the subspace and its complement in which the curvature is diagonal."""
        net, backend = self.criterion.net(self.moved), self.forms.backend
        image = self._image(net)
        inside, turn = np.linalg.eigh(self.basis.T @ backend.host(image))
        self.basis, self.images = self.basis @ turn, self.images @ backend.put(turn)
        basis, image = backend.put(self.basis), image @ backend.put(turn)
        matrix = self.forms.weighted_sum(net)
        # The eigenvectors of the matrix in what is orthogonal to U are a basis of that as well; a
        # large negative multiple of U U^T makes U come last.
        below = 2.0 * float(backend.xp.linalg.norm(matrix)) or self.forms.scale
        half = image - basis * backend.put((inside - below) / 2.0)
        outside, vectors = backend.eigh(matrix - basis @ half.T - half @ basis.T)
        outside, self.rest = outside[: -len(inside)], backend.host(vectors)[:, : -len(inside)]
        self.jacobian = self.forms.slopes(self.rest, self.images)
        self.curvature = 2.0 * (inside[None, :] - outside[:, None]).ravel()
        self.gradient = net @ self.jacobian
        if self.forms.size is None:
            self.metric = np.full(len(self.curvature), 1.0)
            return
        # Directions whose matrices differ by orders of magnitude are measured each by its own.
        sizes = (np.abs(inside)[None, :] + np.abs(outside)[:, None]).ravel()
        least = max(np.finfo(float).eps ** 2 * float(sizes.max()), np.finfo(float).tiny)
        self.metric = 2.0 * np.maximum(sizes, least) / self.forms.scale

    def newton_step(self) -> bool:
        """Move to a better subspace; False when there is none within rounding."""
        if self.forms.size is None:
            self.diagonalise()
        step = self._direction()
        slope = float(self.gradient @ step)
        if not slope < 0:
            step = -self.gradient / self.metric
            slope = float(self.gradient @ step)
        size = float(np.linalg.norm(step))
        if size == 0.0:
            return False
        length = min(1.0, _LONGEST_STEP / size)
        shape = (self.rest.shape[1], self.basis.shape[1])
        rounding = VALUE_ROUNDING * self.forms.scale
        # A change that is promised, but smaller than the value's own rounding, cannot be seen.
        unseen = max(rounding, np.finfo(float).eps * abs(self.value))
        while length > SHORTEST_STEP:
            moved = self.basis + self.rest @ (length * step).reshape(shape)
            basis = self.forms.backend.orthonormal(moved)
            images = self.forms.images(basis)
            measures = self.forms.measures(basis, images)
            smooth = self.criterion.smooth(measures, self.state, self.rho)
            if smooth[1] <= self.value + ARMIJO * length * slope + rounding:
                self.basis, self.images, self.measures = basis, images, measures
                self.moved, self.value, self.factor = smooth
                return True
            length /= 2
            self.n_halved += 1
            if -length * slope <= unseen:
                break
        return False

    def close(self) -> None:
        """Go where nothing is missed, by the method of Levenberg and Marquardt.

        Where measures nearly depend on each other the augmented Lagrangian stalls before that.
        """
        scale, damping = self.forms.scale, _DAMPING
        missed = self.criterion.missed(self.measures)
        left = float(np.linalg.norm(missed))
        if not ACCURACY * scale < left <= _STALLED * scale:
            return
        self.diagonalise()
        shape = (self.rest.shape[1], self.basis.shape[1])
        for _ in range(_MAX_STEPS):
            slopes = self.jacobian / np.sqrt(self.metric) * (missed != 0.0)[:, None]
            if (missed != 0.0).all():
                slopes -= slopes.mean(axis=0)
            inner = slopes @ slopes.T + damping * left * scale * np.eye(len(missed))
            step = slopes.T @ np.linalg.lstsq(inner, -missed, rcond=None)[0] / np.sqrt(self.metric)
            moved = self.basis + self.rest @ step.reshape(shape)
            basis = self.forms.backend.orthonormal(moved)
            images = self.forms.images(basis)
            measures = self.forms.measures(basis, images)
            now = self.criterion.missed(measures)
            if not float(np.linalg.norm(now)) < left:
                damping *= _DAMPED
                if damping > 1.0 / _DAMPING**2:
                    break
                continue
            damping /= _DAMPED
            missed, left = now, float(np.linalg.norm(now))
            self.basis, self.images, self.measures = basis, images, measures
            if left <= ACCURACY * scale:
                break
            self.diagonalise()

    def outer(self) -> Array:
        """The factor B of the part of the curvature that comes from the measures."""
        outer = self.jacobian.T @ self.factor
        if outer.shape[1] > len(outer):  # of many groups: as many columns give the same B B^T
            outer = np.asarray(np.linalg.qr(outer.T, mode="r")).T
        return np.asarray(outer)

    def shifted(self, outer: Array, shift: float) -> tuple[Array, Array, bool]:
        """``D``, ``I + B^T D^-1 B``, and whether ``D + B B^T`` is positive; D has a shift.

        The matrix has as many negative eigenvalues as the diagonal D has, minus those of
        ``I + B^T D^-1 B``, so that it is not factorised.
        """
        # With all eigenvalues tied there is no curvature, only rounding.
        rounding = max(np.finfo(float).eps * self.forms.scale, np.finfo(float).tiny)
        largest = self.metric * max(float(np.abs(self.curvature / self.metric).max()), rounding)
        zero, diagonal = ACCURACY * largest, self.curvature + shift * largest
        diagonal = np.where(np.abs(diagonal) < zero, zero, diagonal)
        inner = np.eye(outer.shape[1]) + outer.T @ (outer / diagonal[:, None])
        negative = int((np.linalg.eigvalsh(inner) < 0).sum())
        return diagonal, inner, negative == int((diagonal < 0).sum())

    def _direction(self) -> Array:
        """Solve ``(D + B B^T) x = -gradient`` with a shift of D that makes the matrix positive."""
        outer, shift = self.outer(), 0.0
        while True:
            diagonal, inner, positive = self.shifted(outer, shift)
            # With a shift of 1 all of D is positive.
            if positive or shift > 1.0:
                break
            shift = max(_SHIFT_FACTOR * shift, _FIRST_SHIFT)
        newton = -self.gradient / diagonal
        correction = np.linalg.lstsq(inner, outer.T @ newton, rcond=None)[0]
        step: Array = newton - (outer / diagonal[:, None]) @ correction
        return step


def refine_in(
    space: WholeSpace,
    goal: Criterion,
    start: Array,
    weights: Array,
    firmness: float = 1.0,
) -> LocalResult:
    """A local search inside the space, from and to coordinates of the whole space."""
    below = space.lower(start)
    with threads_for(space.forms.d):
        inside = refine(space.forms, goal, below, weights, firmness, space.effort)
    return replace(inside, basis=space.lift(inside.basis))


class MultiStart:
    """Local searches on one problem, with a record of each added to a history."""

    def __init__(
        self,
        problem: Problem,
        n_starts: int,
        random_state: int | None,
        history: list[dict[str, Any]],
    ) -> None:
        self.problem, self.n_starts = problem, n_starts
        self.random_state, self.history = random_state, history

    @cached_property
    def rng(self) -> np.random.Generator:
        """What random starts are drawn from, made when the first is."""
        # None is a fixed seed too: an exact solver should repeat itself.
        return np.random.default_rng(self.random_state or 0)

    @cached_property
    def _own_span(self) -> Array:
        """What the groups' own subspaces span."""
        vectors, sizes, _ = np.linalg.svd(np.hstack(self.problem.own_subspaces), False)
        return np.asarray(vectors[:, sizes > NEGLIGIBLE * sizes[0]])

    def _among_own(self, start: Array) -> Array:
        """What the groups' own subspaces have of a random one: of many columns few matter."""
        inside = self._own_span @ (self._own_span.T @ start)
        return np.linalg.qr(inside)[0] if self._own_span.shape[1] > start.shape[1] else start

    def best(
        self,
        space: WholeSpace,
        goal: Criterion,
        dual: DualResult,
        *,
        most: int | None = None,
        first: Iterable[Array] = (),
        then: Iterable[Array] = (),
    ) -> LocalResult:
        """The best of several local searches, or the first whose value is low enough.

        They begin at the `first` bases, at the relaxed solution, at those that come `then`, and at
        random ones.
        Bases are in the coordinates of the whole space, which do not change when the search space
        grows.
        """
        starts = self._all_starts(space, dual, most, first, then)
        best = self._best_of(starts, space, goal, dual)
        enough = goal.enough(dual.value, _LITTLE_LEFT * space.effort.gap)
        while goal.value(best.measures) > enough and not space.effort.is_over() and space.widen():
            starts = self._all_starts(space, dual, most, [best.basis], ())
            wide = self._best_of(starts, space, goal, dual)
            best = min(best, wide, key=lambda local: goal.value(local.measures))
        return best

    def _best_of(
        self,
        starts: Iterable[Array],
        space: WholeSpace,
        goal: Criterion,
        dual: DualResult,
    ) -> LocalResult:
        best, lowest, in_vain = None, np.inf, 0
        ends: list[float] = []  # those of unmet conditions, which are infinite, count one by one
        enough = goal.enough(dual.value, space.effort.gap)
        nearly = goal.enough(dual.value, _LITTLE_LEFT * space.effort.gap)
        near, expensive = goal.enough(dual.value, _NEAR), self.problem.is_expensive
        for number, start in enumerate(starts):
            weights = dual.weights
            if number % 2:
                # The weights of the relaxed solution draw all starts to the same few ends.
                weights = goal.weights_at(space.forms.measures(space.lower(start)), weights)
            local = refine_in(space, goal, start, weights, _FIRMNESS[number // 2 % 2])
            reached = self.record(goal, local)
            same = max(OPTIMAL_GAP * abs(reached), NEGLIGIBLE * goal.scale)
            in_vain = 0 if reached < lowest - same else in_vain + 1
            if best is None or reached < lowest:
                best, lowest = local, reached
            if reached == np.inf or not any(abs(reached - end) <= same for end in ends):
                ends.append(reached)
            space.effort.tell(**self._told(goal, dual.value, lowest))
            patience = 1 if lowest <= nearly else _IN_TURN
            given_up = expensive and lowest < np.inf and in_vain >= patience
            seen = (expensive or lowest <= near) and _all_seen(len(ends), number + 1)
            if lowest <= enough or given_up or seen or space.effort.is_over():
                break
        assert best is not None
        return best

    def _told(self, goal: Criterion, bound: float, value: float) -> dict[str, float]:
        """Bound and value as the certificate will have them, if this is what it is about."""
        if value == np.inf or goal.name != self.problem.goal.name:
            return {}
        return {"bound": goal.shown(bound), "value": goal.shown(value)}

    def record(self, goal: Criterion, local: LocalResult) -> float:
        """Add a local search to the history; returns its value."""
        reached = goal.value(local.measures)
        self.history.append(
            {
                "criterion": goal.name,
                "value": reached,
                "spread": float(np.ptp(local.measures)),
                "steps": local.n_iter,
            }
        )
        return reached

    def _all_starts(
        self,
        space: WholeSpace,
        dual: DualResult,
        most: int | None,
        first: Iterable[Array],
        then: Iterable[Array],
    ) -> Iterator[Array]:
        """Those that are given, the relaxed solution, others near it, and any."""
        yield from first
        forms = space.forms
        order = np.argsort(-dual.occupation)
        # The space may have grown since, by further coordinates.
        vectors = np.pad(dual.vectors, ((0, forms.d - len(dual.vectors)), (0, 0)))
        yield space.lift(vectors[:, order[: forms.r]])
        yield from then
        relaxed = (vectors * dual.occupation) @ vectors.T
        n_starts = self.n_starts if most is None else min(self.n_starts, most)
        for number in range(1, n_starts):
            noise = self.rng.standard_normal((forms.d, forms.d))
            if number // _IN_TURN % 2 == 0:
                noise = space.shaped(space.shaped(noise + noise.T).T) / 2
                shaken = relaxed + _NOISE[number % 2] * noise
                yield space.lift(NUMPY.eigh(shaken)[1][:, : forms.r])
            else:
                start = space.lift(np.linalg.qr(space.shaped(noise[:, : forms.r]))[0])
                yield start if number % 3 else self._among_own(start)


def _all_seen(n_ends: int, n_searches: int) -> bool:
    """Whether searches from random starts have most likely seen all ends that there are.

    After n searches with w different ends ``w (n - 1) / (n - w - 2)`` ends are to be expected in
    all (Boender and Rinnooy Kan, 1987).
    """
    left = n_searches - n_ends - 2
    return left > 0 and n_ends * (n_searches - 1) < (n_ends + 0.5) * left

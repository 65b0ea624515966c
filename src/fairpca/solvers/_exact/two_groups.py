"""Two groups: the exact optimum by a root-find in one weight, whatever the eigenvalues.

For w in [0, 1] let U(w) span the r leading eigenvectors of ``w A_1 + (1 - w) A_2``. The dual
function ``g(w) = w c_1 + (1 - w) c_2 - sum of the r largest eigenvalues`` is concave with slope
``E_1 - E_2`` at U(w), so a subspace in which that difference has a wanted value, and which is
optimal for its w, is globally optimal. At w = 0 the slope is not negative (the second group has
its own best subspace), at w = 1 not positive: a root is always bracketed. Where an eigenvalue
crossing makes the slope jump across the wanted value, the subspaces on both sides are optimal for
the same w, and so is every point of the geodesic between them; one of them has the wanted value:
docs/exact_solver.md, section 12.
"""

from bisect import insort
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import brentq

from fairpca._linalg.dense import Geodesic
from fairpca._linalg.types import Array
from fairpca.problem import Problem
from fairpca.solvers._exact.dual import VALUE_ROUNDING
from fairpca.solvers._exact.space import Forms, WholeSpace

_MAX_STEPS = 100
"""The most eigenproblems: 8 to 12 are usual, and halving alone takes 50."""

_SLOPE_TOLERANCE = 1e-14
"""Error of the difference of the disparities that is rounding, relative to the largest trace."""

_TO_ROUNDING: dict[str, Any] = {"xtol": 1e-16, "rtol": 1e-15, "maxiter": 200}
"""Brent's method, as exact as it can be; bisection alone would take 53 steps."""

_CHECKED_STEPS = 4
"""So many steps have to halve the bracket, or a halving follows."""


@dataclass(frozen=True, eq=False)
class TwoGroupResult:
    """An optimal basis and the weights for which it is optimal; `n_eigen` counts the work."""

    basis: Array
    weights: Array
    n_eigen: int
    is_tied: bool = False
    """For two groups there is always a subspace that attains the bound."""


@dataclass(frozen=True, eq=False)
class _Point:
    w: float
    basis: Array
    dual: float
    slope: float
    curvature: float
    """Derivative of the slope; zero when it is not known."""

    def above(self, target: float) -> tuple[float, float]:
        """Value and slope of the dual minus ``target * w``, of which the maximum is wanted."""
        return self.dual - target * self.w, self.slope - target


@dataclass(eq=False)
class SeenWeights:
    """Weights that were tried for one tolerance, to bracket the root for the next.

    What was found holds for the forms that it was found with, and is forgotten with others.
    """

    _forms: Forms | None = None
    middle: _Point | None = None
    _points: list[_Point] = field(default_factory=list)

    def look_at(self, forms: Forms) -> None:
        """Forget what was found with other forms."""
        if self._forms is not forms:
            self._forms, self.middle, self._points = forms, None, []

    def add(self, point: _Point) -> None:
        """Remember a point, by its weight."""
        insort(self._points, point, key=lambda known: known.w)

    def bracket(self, target: float) -> tuple[_Point, _Point] | None:
        """Neighbours between which the slope falls to the target, if any."""
        # In this order the slopes fall, up to rounding where eigenvalues cross.
        for low, high in pairwise(self._points):
            if low.slope > target >= high.slope:
                return low, high
        return None


def has_root(problem: Problem) -> bool:
    """Whether this is solved by a root-find: two groups, each with a disparity of 0 of its own."""
    goal = problem.goal
    plain = goal.measure == "disparity" and problem.measured_by is None
    return problem.n_groups == 2 and plain and goal.has_root


def solve_two_groups(
    problem: Problem, space: WholeSpace, seen: SeenWeights | None = None
) -> TwoGroupResult:
    """Find the least total loss with ``|E_1 - E_2| <= tolerance``; min-max has the same optimum.

    What was `seen` on the way to other tolerances is used again. Returns weights of the dual, which
    sum to 1 for min-max and otherwise to the sum of the problem's.
    """
    values, vectors = problem.total_eigenpairs
    # The eigenpairs of the total matrix, if all are known, save a computation.
    all_known = space.is_whole and len(values) == problem.moments.n_features
    total = None
    if all_known and problem.graded_losses is None:
        total = values / problem.affine.loss_unit, vectors
    seen = SeenWeights() if seen is None else seen

    def solve_in(forms: Forms) -> TwoGroupResult:
        first, second = problem.own_subspaces
        own = (space.lower(first), space.lower(second))
        return _find_root(forms, problem.goal.tolerance, own, total, seen)

    found = space.solve(solve_in)
    loss_weights = problem.goal.minimises_loss
    return found if loss_weights else replace(found, weights=found.weights / found.weights.sum())


def _find_root(
    forms: Forms,
    tolerance: float,
    own_bases: tuple[Array, Array],
    total: tuple[Array, Array] | None,
    seen: SeenWeights,
) -> TwoGroupResult:
    size = float(forms.weights.sum())
    known = None if total is None else (total[0] / size, total[1])
    seen.look_at(forms)
    middle, n_eigen = seen.middle, 0
    if middle is None:
        middle = seen.middle = _evaluate(forms, float(forms.weights[0]) / size, known)
        n_eigen = 1 if known is None else 0
    if abs(middle.slope) <= tolerance:
        return TwoGroupResult(middle.basis, forms.weights, n_eigen)
    target = tolerance if middle.slope > 0 else -tolerance
    bracket = seen.bracket(target)
    if bracket is None:
        if middle.slope > 0:
            bracket = middle, _at_end(forms, 1.0, own_bases[0])
        else:
            bracket = _at_end(forms, 0.0, own_bases[1]), middle
        for point in bracket:
            seen.add(point)
    low, high = bracket
    small = _SLOPE_TOLERANCE * forms.scale
    last_width = 2.0
    tried = [low, high]
    for step in range(_MAX_STEPS):
        best = min((low, high), key=lambda point: abs(point.slope - target))
        if abs(best.slope - target) <= small or _is_kink(low, high, target, forms.scale):
            break
        other = next(point for point in reversed(tried) if point is not best)
        w = _next_weight(low, high, best, other, target)
        if step % _CHECKED_STEPS == _CHECKED_STEPS - 1:
            if high.w - low.w > last_width / 2:
                w = (low.w + high.w) / 2
            last_width = high.w - low.w
        point = _evaluate(forms, w)
        tried.append(point)
        seen.add(point)
        n_eigen += 1
        low, high = (point, high) if point.slope > target else (low, point)
    basis = best.basis
    if abs(best.slope - target) > small:
        basis = _cross(forms, low.basis, high.basis, target)
    top = max((low, high), key=lambda point: point.above(target)[0])
    return TwoGroupResult(basis, size * np.array([top.w, 1.0 - top.w]), n_eigen)


def _evaluate(forms: Forms, w: float, known: tuple[Array, Array] | None = None) -> _Point:
    weights = np.array([w, 1.0 - w])
    if known is None:
        spectrum = forms.spectrum(weights)
        known = spectrum.values, forms.backend.host(spectrum.vectors)
    values, vectors = known
    basis, rest = vectors[:, : forms.r], vectors[:, forms.r :]
    images = forms.images(basis)
    first, second = forms.measures(basis, images)
    difference = rest.T @ forms.backend.host(images[0] - images[1])
    gaps = values[None, : forms.r] - values[forms.r :, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = difference**2 / gaps
    curvature = -2.0 * float(np.where(difference == 0, 0.0, terms).sum())
    return _Point(
        w,
        basis,
        float(weights @ forms.constants - values[: forms.r].sum()),
        float(first - second),
        curvature if np.isfinite(curvature) else 0.0,
    )


def _at_end(forms: Forms, w: float, basis: Array) -> _Point:
    """The point w = 0 or 1, where a group's own subspace is optimal and known already."""
    first, second = forms.measures(basis)
    dual = float(first) if w == 1.0 else float(second)  # zero up to rounding
    return _Point(w, basis, dual, float(first - second), 0.0)


def _next_weight(low: _Point, high: _Point, best: _Point, other: _Point, target: float) -> float:
    """The first of these that stays inside the bracket.

    From the best and the last other point, the weight as a cubic polynomial of the slope; Newton's
    step; where the tangents of the bracket's ends meet; its middle.
    """
    if best.curvature < 0:
        steps = [best.w - (best.slope - target) / best.curvature]
        if other.curvature < 0 and other.slope != best.slope:
            steps.insert(0, _cubic(best, other, target))
        for w in steps:
            if low.w < w < high.w:
                return w
    w = _tangents_meet(low, high, target)
    return w if low.w < w < high.w else (low.w + high.w) / 2


def _cubic(best: _Point, other: _Point, target: float) -> float:
    """The weight for a slope, by the polynomial with the weights and derivatives of two points."""
    width, secant = other.slope - best.slope, other.w - best.w
    t = (target - best.slope) / width
    here, there = width / best.curvature - secant, width / other.curvature - secant
    return best.w + t * secant + t * (1.0 - t) * ((1.0 - t) * here - t * there)


def _tangents_meet(low: _Point, high: _Point, target: float) -> float:
    (at_low, rise), (at_high, fall) = low.above(target), high.above(target)
    if not rise > fall:  # both ends lie within rounding of the target
        return (low.w + high.w) / 2
    return low.w + (at_high - at_low - fall * (high.w - low.w)) / (rise - fall)


def _is_kink(low: _Point, high: _Point, target: float, scale: float) -> bool:
    """Whether the tangents at both ends leave no room for a larger dual value at either end."""
    if high.w - low.w <= 4 * np.finfo(float).eps:
        return True
    w = min(max(_tangents_meet(low, high, target), low.w), high.w)
    (at_low, rise), (at_high, _) = low.above(target), high.above(target)
    return at_low + rise * (w - low.w) - max(at_low, at_high) <= VALUE_ROUNDING * scale


def _cross(forms: Forms, low: Array, high: Array, target: float) -> Array:
    """The point on the geodesic between two subspaces where the slope has its wanted value."""
    path = Geodesic(low, high)

    def excess(t: float) -> float:
        first, second = forms.measures(path(t))
        return float(first - second) - target

    start, end = excess(0.0), excess(1.0)
    if start <= 0 or end >= 0:  # both ends lie within rounding of the target
        return path(0.0) if abs(start) <= abs(end) else path(1.0)
    return path(float(brentq(excess, 0.0, 1.0, **_TO_ROUNDING)))

"""Two groups: the exact optimum by a root-find in one weight, whatever the eigenvalues.

For w in [0, 1] let U(w) span the r leading eigenvectors of ``w A_1 + (1 - w) A_2``. The dual
function ``g(w) = w c_1 + (1 - w) c_2 - sum of the r largest eigenvalues`` is concave with slope
``E_1 - E_2`` at U(w), so a subspace in which that difference has a wanted value, and which is
optimal for its w, is globally optimal. At w = 0 the slope is not negative (the second group has
its own best subspace), at w = 1 not positive: a root is always bracketed. Where an eigenvalue
crossing makes the slope jump across the wanted value, the subspaces on both sides are optimal for
the same w, and so is every point of the geodesic between them; one of them has the wanted value.
A soft maximum adds a cost to the dual, temperature times the divergence of w from the first group's
share of the total loss, so that the wanted value depends on w: docs/exact_solver.md, section 12.
"""

from bisect import insort
from dataclasses import dataclass
from itertools import count, pairwise

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from fairpca._linalg.dense import Geodesic
from fairpca._linalg.types import ROUNDING, Array
from fairpca.measures import EPS
from fairpca.problem import Problem
from fairpca.solvers._dual import VALUE_ROUNDING
from fairpca.solvers._space import Forms, Weighted, WholeSpace

_PAYS = 0.1
"""A step pays that leaves no more than this of the slope's error."""

_CHECKED_STEPS = 4
"""This many steps have to halve the bracket, or a halving follows."""


@dataclass(frozen=True, eq=False)
class TwoGroupResult(Weighted):
    """A basis and the weights for which it is optimal: there always is one."""

    basis: Array
    weights: Array
    n_eigen: int


@dataclass(frozen=True, eq=False)
class _Point:
    w: float
    basis: Array
    dual: float
    slope: float
    curvature: float = 0.0
    """Derivative of the slope; zero when it is not known."""
    cost_slope: float = 0.0
    """What the slope lacks of the difference of the measures, by the cost of a soft maximum."""


def has_root(problem: Problem) -> bool:
    """Whether this is solved by a root-find: two groups, and a root that is surely bracketed."""
    goal = problem.goal
    # A subclass may minimise something else: what it has not from itself does not count.
    has = bool(vars(type(goal)).get("has_root", False))
    return problem.n_groups == 2 and has and (problem.affine.is_own or goal.heat > 0.0)


def find_root(problem: Problem, space: WholeSpace, forms: Forms) -> TwoGroupResult:
    """Find the least total loss with ``|E_1 - E_2| <= tolerance``; min-max has the same optimum.

    Of a soft maximum the optimum. The weights of the dual sum to 1 for these two, and otherwise to
    the sum of the problem's. What was found for other tolerances, with the same forms, brackets the
    root for this one.
    """
    goal, n_eigen, share = problem.goal, 0, float(forms.weights[0] / forms.weights.sum())
    tolerance, size = goal.tolerance, float(forms.weights.sum()) if goal.minimises_loss else 1.0
    soft = goal.heat
    if not forms.seen:
        known, (values, vectors) = None, problem.total_eigenpairs
        if space.is_whole and vectors.shape[1] == len(vectors) and problem.graded_losses is None:
            # The eigenpairs of the total matrix save a computation.
            known = values / float(problem.affine.weights.sum()), vectors
        forms.seen.append(_evaluate(forms, share, soft, known))
        n_eigen = int(known is None)
        if soft > 0.0:
            # The root is between the share and the weight that the measures there have.
            far = expit(np.log(share / (1.0 - share)) + forms.seen[0].slope / soft)
            far = min(max(float(far), np.finfo(float).tiny), 1.0 - EPS)
            insort(forms.seen, _evaluate(forms, far, soft), key=lambda seen: seen.w)
            n_eigen += 1
        else:
            # At 0 and 1 a group's own subspace is optimal, which is known already.
            first, second = map(space.lower, problem.own_subspaces)
            for w, basis in ((0.0, second), (1.0, first)):
                measures = forms.measures(basis)
                dual, slope = float(measures[int(w == 0.0)]), float(measures[0] - measures[1])
                forms.seen.insert(2 * int(w), _Point(w, basis, dual, slope))
    middle = next(point for point in forms.seen if point.w == share)
    if abs(middle.slope) <= tolerance:
        return TwoGroupResult(middle.basis, size * np.array([share, 1.0 - share]), n_eigen)
    target = tolerance if middle.slope > 0 else -tolerance
    # In this order the slopes fall, up to rounding where eigenvalues cross.
    brackets = (ends for ends in pairwise(forms.seen) if ends[0].slope > target >= ends[1].slope)
    ends = (middle, forms.seen[-1]) if middle.slope > 0 else (forms.seen[0], middle)
    low, high = next(brackets, ends)
    tried, last_width, last_error = [low, high], 2.0, np.inf
    scale = max(forms.scale, soft)
    small = ROUNDING * scale
    for step in count():  # halvings bring the bracket down
        best = min((low, high), key=lambda point: abs(point.slope - target))
        error = abs(best.slope - target)
        crossing, room = _tangents(low, high, target)
        # Values settle before weights do: where no value can be gained, steps go on while they pay.
        is_kink = room <= VALUE_ROUNDING * scale and error > _PAYS * last_error
        if not error > small or is_kink or high.w - low.w <= 4 * EPS:
            break
        last_error = error
        other = next(point for point in reversed(tried) if point is not best)
        w = _next_weight(low, high, best, other, target, crossing)
        if step % _CHECKED_STEPS == _CHECKED_STEPS - 1:
            if high.w - low.w > last_width / 2:
                w = (low.w + high.w) / 2
            last_width = high.w - low.w
        point = _evaluate(forms, w, soft)
        tried.append(point)
        insort(forms.seen, point, key=lambda seen: seen.w)
        n_eigen += 1
        low, high = (point, high) if point.slope > target else (low, point)
    basis, top = best.basis, max((low, high), key=lambda point: point.dual - target * point.w)
    if top.dual - best.dual - target * (top.w - best.w) <= VALUE_ROUNDING * scale:
        top = best
    if abs(best.slope - target) > small:
        basis = _cross(forms, low.basis, high.basis, target + top.cost_slope)
    return TwoGroupResult(basis, size * np.array([top.w, 1.0 - top.w]), n_eigen)


def _evaluate(
    forms: Forms, w: float, soft: float = 0.0, known: tuple[Array, Array] | None = None
) -> _Point:
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
    dual, slope = float(weights @ forms.constants - values[: forms.r].sum()), float(first - second)
    cost_slope = 0.0
    if soft > 0.0:  # what a weight costs in the dual of a soft maximum, and the derivatives of that
        ratios = np.log(weights / (forms.weights / forms.weights.sum()))
        cost_slope = soft * float(ratios[0] - ratios[1])
        dual -= soft * float(weights @ ratios)
        slope -= cost_slope
        curvature -= soft / (w * (1.0 - w))
    curvature = curvature if np.isfinite(curvature) else 0.0
    return _Point(w, basis, dual, slope, curvature, cost_slope)


def _tangents(low: _Point, high: _Point, target: float) -> tuple[float, float]:
    """Where the tangents at both ends meet, and how much larger than there the dual can be inside.

    Of the dual minus ``target * w``, of which the maximum is wanted.
    """
    at_low, at_high = low.dual - target * low.w, high.dual - target * high.w
    rise, fall, width = low.slope - target, high.slope - target, high.w - low.w
    w = low.w + width / 2
    if rise > fall:  # else both ends lie within rounding of the target
        w = low.w + (at_high - at_low - fall * width) / (rise - fall)
    inside = min(max(w, low.w), high.w)
    return w, at_low + rise * (inside - low.w) - max(at_low, at_high)


def _next_weight(
    low: _Point, high: _Point, best: _Point, other: _Point, target: float, crossing: float
) -> float:
    """The first of these that stays inside the bracket.

    From the best and the last other point, the weight as a cubic polynomial of the slope; Newton's
    step; where the tangents of the bracket's ends meet; its middle.
    """
    steps = [crossing]
    if best.curvature < 0:
        steps.insert(0, best.w - (best.slope - target) / best.curvature)
        if other.curvature < 0 and other.slope != best.slope:
            # By the polynomial with the weights and derivatives of both points.
            width, secant = other.slope - best.slope, other.w - best.w
            t = (target - best.slope) / width
            here, there = width / best.curvature - secant, width / other.curvature - secant
            bend = (1.0 - t) * ((1.0 - t) * here - t * there)
            steps.insert(0, best.w + t * secant + t * bend)
    return next((w for w in steps if low.w < w < high.w), (low.w + high.w) / 2)


def _cross(forms: Forms, low: Array, high: Array, target: float) -> Array:
    """The point on the geodesic between two subspaces where the slope has its wanted value."""
    path = Geodesic(low, high)
    turned, normal = forms.images(path.start), forms.images(path.normal)
    turned, normal = (forms.backend.host(part[0] - part[1]) for part in (turned, normal))
    # What the first group keeps more than the second, as each column turns towards its normal.
    sides = (path.start, turned), (path.start, normal), (path.normal, normal)
    here, between, there = (np.einsum("ia,ia->a", one, other) for one, other in sides)
    apart = float(forms.constants[0] - forms.constants[1]) - target

    def excess(t: float) -> float:
        c, s = np.cos(t * path.angles), np.sin(t * path.angles)
        return apart - float((c * c * here + 2.0 * c * s * between + s * s * there).sum())

    start, end = excess(0.0), excess(1.0)
    if start <= 0 or end >= 0:  # both ends lie within rounding of the target
        return path(0.0) if abs(start) <= abs(end) else path(1.0)
    return path(float(brentq(excess, 0.0, 1.0, xtol=EPS, rtol=4 * EPS)))

"""The dual of the relaxed problem, for any number of groups.

Relax the projector P to the Fantope ``{0 <= P <= I, tr P = r}``. Each criterion is then the
maximum, over weights w in a simple polyhedron, of the concave function

    w . c  -  sigma_r(A(w))  -  cost(w),        A(w) = sum_i w_i A_i,

where sigma_r sums the r largest eigenvalues. It is made smooth by an entropy, and the polyhedron
gets a logarithmic barrier; Newton's method follows both to mu = 0. At the end the weights prove the
bound, and the relaxed projector shows which eigenvectors are tied. docs/exact_solver.md, sections
2 to 8, derives all of it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from fairpca._linalg.types import ROUNDING, Array
from fairpca.criteria import WARM_MU, Criterion, Domain
from fairpca.measures import EPS
from fairpca.problem import EXPENSIVE
from fairpca.solvers._space import Effort, Forms, Spectrum, Weighted, WholeSpace

_SATURATED = 40.0
"""Eigenvalues this many mu from the level are occupied fully or not at all: exp(-40) < 1e-17;
and the level lies at most as far outside of them."""

ARMIJO = 1e-4
"""Share of the promised change of a value that a step has to bring: the usual choice."""

SHORTEST_STEP = 1e-8
"""Share of a Newton step below which no shorter one is tried: only rounding is left."""

VALUE_ROUNDING = 1e-15
"""Difference of values that is rounding, relative to the largest trace."""

_FIRST_MU, _MU_FACTOR, _LAST_MU = 1.0, 0.2, 1e-12
"""Where mu begins, what it is multiplied with at a time, and where it ends."""

_EXPENSIVE_FIRST_MU, _EXPENSIVE_MU_FACTOR = 0.008, 0.05
"""The same in many dimensions, if there are bounds: a larger mu occupies more eigenvectors, each of
which costs, and smaller steps take a fifth more evaluations."""

_SLACK = 0.1
"""Share of the gap that is small enough that the dual may leave: in many dimensions a sixth of the
evaluations are those after that."""

_NEAR = 3
"""Evaluations at one mu from which on solutions are extrapolated, without which it takes half as
many more in many dimensions, or with many groups; always to do so takes a tenth more in few."""

_SMALL_STEP = 0.8
"""Factor of mu from which no smaller steps are tried."""

_NEWTON_STEPS = 12
"""The most steps at one mu, and of polishing, which converges quadratically or not."""

_NEGLIGIBLE_GAIN = 1e-3
"""Rise of the smoothed value, relative to mu, that is not worth a step: smoothing itself changes
the value by about mu."""

_GOOD_SLOPE = 2e-13
"""Norm of a slope, relative to the largest trace, that is rounding."""

_FAR = 1e9
"""A gain that no step has, relative to the largest trace."""

_TO_BOUNDARY = 0.99
"""The longest step, relative to that which reaches the boundary of the domain."""

_IN_PART = 1e-3
"""Occupations at least this far from 0 and 1 are those of tied eigenvectors."""


@dataclass(frozen=True, eq=False)
class SmoothedSum:
    """The smoothed sum at some weights and mu, by how far each eigenvector is occupied."""

    spectrum: Spectrum
    p: Array
    """How far each eigenvector is occupied: its eigenvalue in the relaxed projector."""
    q: Array
    """``1 - p``, with all its digits."""
    x: Array
    """How many mu each eigenvalue is above the level."""
    mu: float

    @property
    def is_saturated(self) -> bool:
        """Whether every eigenvector is occupied fully or not at all."""
        return bool((np.abs(self.x) > _SATURATED).all())

    @property
    def sigma(self) -> float:
        """The smoothed sum of the r largest eigenvalues: section 4."""
        entropy = float((xlogy(self.p, self.p) + xlogy(self.q, self.q)).sum())
        return float(self.p @ self.spectrum.values) - self.mu * entropy

    def derivatives(self, forms: Forms) -> tuple[Array, Array]:
        """First and second derivatives of sigma by the weights, (k,) and (k, k): section 5."""
        xp, host = forms.backend.xp, forms.backend.host
        # Pairs of empty eigenvectors have no slope, so that only the others' rows are needed.
        n = int(np.count_nonzero(self.p > EPS**2))
        rows = self.spectrum.rows(n)
        values, p, q = forms.backend.put(np.array([self.spectrum.values, self.p, self.q]))
        # (p_a - p_b) / (value_a - value_b) = p_a q_b (1 - exp(-x)) / x / mu for value_a > value_b.
        x = abs(values[:n, None] - values[None, :]) / -self.mu - np.finfo(float).tiny
        slopes = xp.expm1(x) / x
        slopes *= 1.0 / self.mu
        slopes *= xp.maximum(p[:n, None], p[None, :])
        slopes *= xp.maximum(q[:n, None], q[None, :])
        slopes[:, n:] *= 2.0  # for their mirror images
        curvature = host((rows * slopes).reshape(forms.k, -1) @ rows.reshape(forms.k, -1).T)
        # Entry (a, a) of n rows of d numbers each is number a * (d + 1).
        diagonal = host(rows.reshape(forms.k, -1)[:, : n * (forms.d + 1) : forms.d + 1])
        own = self.p[:n] * self.q[:n] / self.mu
        if own.sum() > 0:  # the level moves so that the occupation still sums to r
            moved = diagonal @ own
            curvature = curvature - np.outer(moved, moved) / own.sum()
        return diagonal @ self.p[:n], curvature


def smoothed_sum(spectrum: Spectrum, r: int, mu: float) -> SmoothedSum:
    """Find the level at which the occupation sums to r, by a safeguarded Newton method."""
    # Measured from the middle of the gap, so that tied eigenvalues keep their digits.
    values = spectrum.values - (spectrum.values[r - 1] + spectrum.values[r]) / 2
    low, high = float(values[-1]) - _SATURATED * mu, float(values[0]) + _SATURATED * mu
    level = 0.0
    while True:  # the bracket shrinks with each step
        x = (values - level) / mu
        p, q = expit(x), expit(-x)
        excess = float(p[r:].sum() - q[:r].sum())
        if not abs(excess) > ROUNDING * r:  # also if it is no number
            break
        if excess > 0:
            low = level
        else:
            high = level
        slope = float(p @ q) / mu
        trial = level + excess / slope if slope > 0 else np.inf
        trial = trial if low < trial < high else (low + high) / 2
        if trial == level:  # there is no number in between
            break
        level = trial
    return SmoothedSum(spectrum, p, q, x, mu)


@dataclass(frozen=True, eq=False)
class DualResult(Weighted):
    """The best weights found and the relaxed projector ``vectors * occupation @ vectors.T``."""

    weights: Array
    value: float
    vectors: Array
    occupation: Array
    above_limit: bool
    n_eigen: int
    is_tied: bool


def mu_unit(forms: Forms) -> float:
    """What mu is relative to: the mean eigenvalue of the group with the largest trace."""
    return forms.scale / forms.d


def maximise_dual(
    forms: Forms,
    domain: Domain,
    limit: float = np.inf,
    *,
    first_mu: float = _FIRST_MU,
    effort: Effort | None = None,
) -> DualResult:
    """Maximise over the domain; stop as soon as the value is above the limit.

    A start that is near the solution allows for a small mu to begin with: see `WARM_MU`.
    """
    search = _DualAscent(forms, domain, Effort() if effort is None else effort)
    search.follow(first_mu, limit)
    return DualResult(
        search.best_weights,
        search.best,
        forms.backend.host(search.smoothed.spectrum.vectors),
        search.smoothed.p,
        search.best > limit,
        search.n_eigen,
        search.is_tied,
    )


class _DualAscent:
    """Newton's method at one mu after the other, remembering the best exact dual value."""

    def __init__(self, forms: Forms, domain: Domain, effort: Effort) -> None:
        self.forms, self.domain, self.effort = forms, domain, effort
        self.best = -np.inf
        self.best_weights = domain.weights(domain.start)
        self.n_eigen = 0
        self._unbalanced = np.linalg.pinv(domain.balance) @ domain.balance
        self._spectrum: Spectrum | None = None

    def follow(self, mu: float, limit: float) -> None:
        """Let mu fall by a factor at a time; all mu here are relative to `mu_unit`: section 7."""
        unit, z = mu_unit(self.forms), self.domain.start
        factor = _EXPENSIVE_MU_FACTOR if self.forms.d > EXPENSIVE else _MU_FACTOR
        known: list[tuple[Array, float]] = []
        far = False
        while True:
            before = self.n_eigen
            # Where every mu takes a step or two anyway, looking ahead takes more than it saves.
            z = self._extrapolate(known, z, mu, unit) if far else z
            z, converged = self.newton(z, mu * unit, limit)
            far = far or self.n_eigen > before + _NEAR
            if self.best > limit or self.effort.is_over():
                return
            if converged:
                known = [*known[-1:], (z, mu)]
            elif known and factor < _SMALL_STEP:
                # Tied eigenvalues turned quickly in between: go back, and on in smaller steps.
                factor = float(np.sqrt(factor))
                z, mu = known[-1][0], max(known[-1][1] * factor, _LAST_MU)
                continue
            # With no barrier and no eigenvalue near the level nothing depends on mu any more.
            is_smooth = self.smoothed.is_saturated and converged and not self.domain.bounded
            if mu <= _LAST_MU or (is_smooth and self.polish(z, mu * unit)):
                return
            if converged and self._suffices(mu * unit):
                return
            mu = max(mu * factor, _LAST_MU)

    def _suffices(self, mu: float) -> bool:
        """Whether smoothing and barrier take so little from the value that it is not worth a step.

        With few columns steps are cheap. Without a barrier, and unless eigenvalues are tied, the
        solution itself is not far.
        """
        if self.forms.d <= EXPENSIVE or not (self.domain.bounded or self.is_tied):
            return False
        taken = self.smoothed.sigma - float(self.smoothed.spectrum.values[: self.forms.r].sum())
        barrier = mu * len(self.domain.start) if self.domain.bounded else 0.0
        return taken + barrier <= _SLACK * self.effort.gap * abs(self.best)

    @property
    def is_tied(self) -> bool:
        """Whether an eigenvector is occupied in part."""
        occupation = self.smoothed.p
        return bool((np.minimum(occupation, 1.0 - occupation) > _IN_PART).any())

    def _extrapolate(
        self, known: list[tuple[Array, float]], z: Array, mu: float, unit: float
    ) -> Array:
        """Where two solutions lead, if that is better: near zero they depend on mu linearly."""
        if len(known) < 2:
            return z
        (z0, mu0), (z1, mu1) = known
        step = (z1 - z0) * ((mu - mu1) / (mu1 - mu0))
        there = z1 + self._longest(z1, step) * step
        before = self._value(z1, mu * unit)[0]
        return there if self._value(there, mu * unit)[0] > before else z1

    def newton(self, z: Array, mu: float, limit: float) -> tuple[Array, bool]:
        """Maximise the smooth function; returns z and whether it converged."""
        # Large weights, as at the edge of what is possible, are rounded by more.
        size = max(1.0, float(np.abs(self.domain.weights(z)).sum()))
        noise, converged = VALUE_ROUNDING * self.forms.scale * size, False
        value, smoothed = self._value(z, mu)
        for _ in range(_NEWTON_STEPS):
            gradient, hessian = self._derivatives(z, mu, smoothed)
            if self._is_lost(gradient, hessian):
                break
            step = self._newton_step(gradient, hessian)
            gain = float(gradient @ step)
            if not gain > max(_NEGLIGIBLE_GAIN * mu, noise):
                converged = True
                break
            length = self._longest(z, step)
            # A step whose gain is only rounding is none.
            shortest = max(noise / gain, SHORTEST_STEP)
            while length > shortest:
                trial, trial_sum = self._value(z + length * step, mu)
                if trial >= value + ARMIJO * length * gain:
                    break
                length /= 2
            else:
                break
            z, value, smoothed = z + length * step, trial, trial_sum
            if self.best > limit or self.effort.is_over():
                break
        self.smoothed = smoothed
        return z, converged

    def polish(self, z: Array, mu: float) -> bool:
        """Newton's method for a slope of zero, which still falls when the value no longer rises.

        For a domain without bounds and a z at which nothing depends on mu (section 8). The last
        weights count, to which the vectors belong, though another value may be larger by rounding.
        Returns whether the slope is gone.
        """
        smoothed = self._value(z, mu)[1]
        gradient, hessian = self._derivatives(z, 0.0, smoothed)
        left = float(np.linalg.norm(gradient))
        for _ in range(_NEWTON_STEPS):
            if self._is_lost(gradient, hessian) or self.effort.is_over():
                break
            trial = z + self._newton_step(gradient, hessian)
            there = self._value(trial, mu)[1]
            gradient, hessian = self._derivatives(trial, 0.0, there)
            smaller = float(np.linalg.norm(gradient))
            if not (smaller < left and there.is_saturated):  # a larger one: rounding, or a tie
                break
            z, smoothed, left = trial, there, smaller
        self.smoothed, self.best_weights = smoothed, self.domain.weights(z)
        kept = float(smoothed.spectrum.values[: self.forms.r].sum())
        linear = float(self.best_weights @ self.forms.constants - self.domain.least_cost(z))
        self.best = linear - kept
        return left <= _GOOD_SLOPE * self.forms.scale

    def _value(self, z: Array, mu: float) -> tuple[float, SmoothedSum]:
        weights = self.domain.weights(z)
        spectrum = self.forms.spectrum(weights)
        # A new mu begins where the last one ended: the same matrix.
        if spectrum is not self._spectrum:
            self._spectrum = spectrum
            self.n_eigen += 1
        smoothed = smoothed_sum(spectrum, self.forms.r, mu)
        linear = float(weights @ self.forms.constants - self.domain.least_cost(z))
        # Less what rounding makes of large weights, or noise would pass for progress.
        exact = linear - float(spectrum.values[: self.forms.r].sum()) - self.forms.noise(weights)
        if exact > self.best:
            self.best, self.best_weights = exact, weights
        smooth = float(weights @ self.forms.constants) - self.domain.whole_cost(z) - smoothed.sigma
        if self.domain.bounded:
            smooth += mu * float(np.log(z).sum())
        return smooth, smoothed

    def _derivatives(self, z: Array, mu: float, smoothed: SmoothedSum) -> tuple[Array, Array]:
        kept, curvature = smoothed.derivatives(self.forms)
        slopes, curves = self.domain.cost_slopes(z)
        gradient, hessian = self.forms.constants - kept, curvature
        if not self.domain.simplex:  # where z are not the weights themselves
            directions = self.domain.directions
            gradient, hessian = directions.T @ gradient, directions.T @ hessian @ directions
        gradient = gradient - slopes
        if self.domain.bounded:
            gradient += mu / z
            curves = curves + mu / z**2
        hessian[np.diag_indices_from(hessian)] += curves
        return gradient, hessian

    def _is_lost(self, gradient: Array, hessian: Array) -> bool:
        """Whether there is a slope without curvature, so that no Newton step makes sense.

        Between the points where eigenvalues cross the dual function can be linear.
        """
        least = _FAR * self.forms.scale * float(np.trace(hessian))
        return not self.domain.bounded and float(gradient @ gradient) > least

    def _newton_step(self, gradient: Array, hessian: Array) -> Array:
        n, m = len(gradient), len(self.domain.balance)
        system = np.zeros((n + m, n + m))
        system[:n, :n] = hessian
        # A Hessian can be singular.
        system[np.arange(n), np.arange(n)] += ROUNDING * np.trace(hessian)
        system[:n, n:] = self.domain.balance.T
        system[n:, :n] = self.domain.balance
        right = np.concatenate([gradient, np.zeros(m)])
        try:
            solved = np.linalg.solve(system, right)
        except np.linalg.LinAlgError:
            solved = np.linalg.lstsq(system, right, rcond=None)[0]
        step: Array = solved[:n]
        # The system is ill-conditioned near the boundary; the balance has to hold all the same.
        return step - self._unbalanced @ step

    def _longest(self, z: Array, step: Array) -> float:
        falling = step < 0
        if not self.domain.bounded or not falling.any():
            return 1.0
        with np.errstate(over="ignore"):  # where a step is next to nothing
            longest = float((-z[falling] / step[falling]).min())
        return min(1.0, _TO_BOUNDARY * longest)


def solve_dual(
    space: WholeSpace,
    goal: Criterion,
    limit: float = np.inf,
    near: Array | None = None,
    first_mu: float | None = None,
    *,
    suspected: bool = False,
) -> DualResult:
    """The dual solution of a goal; `near` are weights that are thought to be nearly best.

    If `suspected`, a value above the limit is not brought down by letting the search space grow.
    """
    last: DualResult | None = None

    def solve_in(forms: Forms) -> DualResult:
        nonlocal last
        # Where eigenvalues are tied, solutions jump from one search space to the next, and weights
        # without bound may have grown too far in the last.
        jumps = last is None or last.is_tied or goal.minimises_loss
        start = near if last is None or jumps else last.weights
        domain = goal.domain(start, unit=mu_unit(forms))
        usual = _FIRST_MU if start is None else WARM_MU
        if start is None and forms.d > EXPENSIVE and domain.bounded:
            usual = _EXPENSIVE_FIRST_MU
        mu = usual if first_mu is None else first_mu
        last = maximise_dual(forms, domain, limit, first_mu=mu, effort=space.effort)
        return last

    return space.solve(solve_in, (lambda dual: dual.above_limit) if suspected else None)

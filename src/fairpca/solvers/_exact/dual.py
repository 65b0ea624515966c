"""The dual of the relaxed problem, for any number of groups.

Relax the projector P to the Fantope ``{0 <= P <= I, tr P = r}``. Each criterion is then the
maximum, over weights w in a simple polyhedron, of the concave function

    w . c  -  sigma_r(A(w))  -  cost(w),        A(w) = sum_i w_i A_i,

where sigma_r sums the r largest eigenvalues. sigma_r is not smooth where eigenvalues tie, so the
Fantope gets an entropy: ``sigma_mu(M) = max_P <M, P> + mu * entropy(P)`` has the same eigenvectors
as M, occupied by the Fermi function, and derivatives in closed form. The polyhedron gets a
logarithmic barrier, and Newton's method follows both to mu = 0. At the end the weights prove the
bound, and the relaxed projector shows which eigenvectors are tied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from fairpca._linalg.types import Array
from fairpca.solvers._exact.forms import Forms, Spectrum

WARM_MU = 1e-3
"""Where mu begins near the solution, relative to the mean eigenvalue."""

_FIRST_MU, _MU_FACTOR, _LAST_MU = 1.0, 0.2, 1e-12
"""Where mu begins elsewhere, what it falls by at a time, and where it ends."""

_FREE_FIRST_MU, _FREE_MU_FACTOR = 3.0, 0.05
"""The same where evaluations are dear and no barrier asks for small steps."""

_SMALL_STEP = 0.6
"""Factor of mu from which no smaller steps are tried."""

_NEWTON_STEPS, _POLISHING_STEPS = 12, 5
_SLOPE_TOLERANCE, _FAR = 2e-15, 1e9
"""The slope that counts as zero, and a gain that no step has, relative to the largest trace."""

_DEAR, _DEAR_LAST_MU = 120, 1e-9
"""Dimension from which evaluations are dear, and where mu ends there: the rest is rounding."""

_EMPTY, _IN_PART = 1e-30, 1e-3
"""Occupations up to the first are none; from the second they are those of tied eigenvectors."""

_SATURATED = 40.0
"""Eigenvalues this many mu above or below the level are occupied fully or not at all."""


@dataclass(frozen=True, eq=False)
class Domain:
    """Weights ``offset + directions @ z`` at ``cost . z``.

    If bounded, z is not negative and ``balance @ z`` stays as it is at the start.
    """

    offset: Array
    directions: Array
    cost: Array
    balance: Array
    start: Array
    bounded: bool

    def weights(self, z: Array) -> Array:
        """The weights of the groups' matrices."""
        weights: Array = self.offset + self.directions @ z
        return weights


def equal_domain(forms: Forms, tolerance: float, near: Array | None = None) -> Domain:
    """Least total loss with all pairwise disparities within the tolerance.

    Weights that are thought to be `near` the best make the start, to begin with at `WARM_MU`.
    """
    k = forms.k
    if tolerance == 0.0:
        # Free multipliers that sum to zero: an orthonormal basis of that hyperplane.
        plane = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, :-1]]))[0][:, 1:]
        none = np.zeros((0, k - 1))
        start = np.zeros(k - 1) if near is None else plane.T @ (near - forms.weights)
        return Domain(forms.weights, plane, np.zeros(k - 1), none, start, False)
    cost = np.concatenate([np.full(k, tolerance), np.zeros(k)])
    balance = np.concatenate([np.ones(k), -np.ones(k)])[None]
    start = np.full(2 * k, forms.weights.mean())
    if near is not None:
        multipliers = near - forms.weights
        parts = np.concatenate([np.maximum(multipliers, 0.0), np.maximum(-multipliers, 0.0)])
        # As far from the boundary as the barrier of a warm start keeps what is not needed.
        start = parts + min(WARM_MU * _unit(forms) / tolerance, float(forms.weights.mean()))
    return Domain(forms.weights, _signed(k), cost, balance, start, True)


def minmax_domain(forms: Forms) -> Domain:
    """Least largest disparity: weights on the simplex."""
    k = forms.k
    return Domain(np.zeros(k), np.eye(k), np.zeros(k), np.ones((1, k)), np.full(k, 1.0 / k), True)


def ceiling_domain(forms: Forms, bounds: Array) -> Domain:
    """Least total loss with every disparity at most a bound of its own."""
    k = forms.k
    start = np.full(k, forms.weights.mean())
    return Domain(forms.weights, np.eye(k), bounds, np.zeros((0, k)), start, True)


def spread_domain(forms: Forms) -> Domain:
    """Least spread: the difference of two points of the simplex."""
    k = forms.k
    balance = np.zeros((2, 2 * k))
    balance[0, :k] = balance[1, k:] = 1.0
    return Domain(np.zeros(k), _signed(k), np.zeros(2 * k), balance, np.full(2 * k, 1.0 / k), True)


def _signed(k: int) -> Array:
    return np.hstack([np.eye(k), -np.eye(k)])


@dataclass(frozen=True, eq=False)
class DualResult:
    """The best weights found and the relaxed projector ``vectors * occupation @ vectors.T``."""

    weights: Array
    value: float
    vectors: Array
    occupation: Array
    n_eigen: int
    above_limit: bool
    smooth_at: float | None
    """The mu, relative to the eigenvalues' mean, from which nothing depended on it; or None."""
    is_rough: bool
    """Whether it could have been polished, and was not."""

    @property
    def is_tied(self) -> bool:
        """Whether an eigenvector is occupied in part."""
        return bool((np.minimum(self.occupation, 1.0 - self.occupation) > _IN_PART).any())


def maximise_dual(
    forms: Forms,
    domain: Domain,
    limit: float = np.inf,
    *,
    first_mu: float | None = None,
    polish: bool = True,
) -> DualResult:
    """Maximise over the domain; stop as soon as the value is above the limit.

    A start that is near the solution allows for a small mu to begin with: see `WARM_MU`. To
    `polish` the weights is for those who want the subspace as well as the value.
    """
    search = _Search(forms, domain)
    smooth_at = None
    if first_mu is None and forms.d > _DEAR and not domain.bounded:
        # In large steps first, which is all that is needed unless eigenvalues are tied.
        smooth_at = search.follow(_FREE_FIRST_MU, _FREE_MU_FACTOR, limit, polish=polish, bold=True)
    if smooth_at is None and not search.best > limit:
        first_mu = _FIRST_MU if first_mu is None else first_mu
        smooth_at = search.follow(first_mu, _MU_FACTOR, limit, polish=polish)
    return DualResult(
        search.best_weights,
        search.best,
        forms.backend.host(search.vectors),
        search.occupation,
        search.n_eigen,
        search.best > limit,
        smooth_at,
        smooth_at is not None and not polish,
    )


def _unit(forms: Forms) -> float:
    """What the steps of mu are relative to."""
    return forms.scale / forms.d


class _Search:
    """Newton's method at one mu after the other, remembering the best exact dual value."""

    def __init__(self, forms: Forms, domain: Domain) -> None:
        self.forms, self.domain = forms, domain
        self.best = -np.inf
        self.best_weights = domain.weights(domain.start)
        self.vectors: Any = None
        self.occupation = np.empty(0)
        self.n_eigen = 0
        self.converged = False
        self._unbalanced = np.linalg.pinv(domain.balance) @ domain.balance
        self._spectrum: Spectrum | None = None

    def follow(
        self, mu: float, factor: float, limit: float, *, polish: bool, bold: bool = False
    ) -> float | None:
        """Let mu fall by a factor at a time; returns the one from which nothing depends on it.

        All mu here are relative to the mean eigenvalue. None where it mattered to the end; if
        `bold`, where a solution could not be followed to the next mu as well.
        """
        unit, z = _unit(self.forms), self.domain.start
        last = _DEAR_LAST_MU if self.forms.d > _DEAR else _LAST_MU
        known: tuple[Array, float] | None = None
        while True:
            z, saturated = self.newton(z, mu * unit, limit)
            if self.best > limit or (bold and not self.converged):
                return None
            if self.converged:
                known = z, mu
            elif known is not None and factor < _SMALL_STEP and not self.domain.bounded:
                # Tied eigenvalues turned quickly in between: go back, and on in smaller steps.
                factor = float(np.sqrt(factor))
                z, mu = known[0], max(known[1] * factor, last)
                continue
            # With no barrier and no eigenvalue near the level nothing depends on mu any more.
            if saturated and self.converged and not self.domain.bounded:
                if not polish or self.polish(z, mu * unit) or mu <= last:
                    return mu
            elif mu <= last:
                return None
            mu = max(mu * factor, last)

    def newton(self, z: Array, mu: float, limit: float) -> tuple[Array, bool]:
        """Maximise the smooth function; returns z and whether all eigenvalues are saturated."""
        noise = 1e-15 * self.forms.scale
        self.converged = False
        value, occupied = self._value(z, mu)
        for _ in range(_NEWTON_STEPS):
            gradient, hessian = self._derivatives(z, mu, occupied)
            if self._is_lost(gradient, hessian):
                break
            step = self._newton_step(gradient, hessian)
            gain = float(gradient @ step)
            if not gain > max(1e-3 * mu, noise):
                self.converged = True
                break
            length = self._longest(z, step)
            # In many dimensions evaluations are dear: none for what would drown in rounding.
            shortest = noise / gain if self.forms.d > _DEAR else 0.0
            while length > max(shortest, 1e-8):
                trial, trial_occupied = self._value(z + length * step, mu)
                if trial >= value + 1e-4 * length * gain:
                    break
                length /= 2
            else:
                break
            z, value, occupied = z + length * step, trial, trial_occupied
            if self.best > limit:
                break
        self.vectors, self.occupation = occupied.spectrum.vectors, occupied.p
        return z, occupied.is_saturated

    def polish(self, z: Array, mu: float) -> bool:
        """Newton's method for a slope of zero, which still falls when the value no longer rises.

        For a z at which no eigenvalues are tied, and without a barrier. The slopes are then the
        disparities' differences, and their digits those of the subspace. Returns whether it ended
        where rounding allows no better.
        """
        gradient, hessian = self._derivatives(z, mu, self._value(z, mu)[1])
        left = float(np.linalg.norm(gradient))
        for _ in range(_POLISHING_STEPS):
            if left <= _SLOPE_TOLERANCE * self.forms.scale or self._is_lost(gradient, hessian):
                break
            trial = z + self._newton_step(gradient, hessian)
            occupied = self._value(trial, mu)[1]
            gradient, hessian = self._derivatives(trial, mu, occupied)
            smaller = float(np.linalg.norm(gradient))
            if not (smaller < 0.5 * left and occupied.is_saturated):
                break
            z, left = trial, smaller
            self.vectors, self.occupation = occupied.spectrum.vectors, occupied.p
        # Values differ by rounding only; those of the last z belong to the vectors.
        self.best_weights = self.domain.weights(z)
        spectrum = self.forms.spectrum(self.best_weights)
        kept = float(spectrum.values[: self.forms.r].sum())
        self.best = float(self.best_weights @ self.forms.gains) - kept
        return left <= 1e2 * _SLOPE_TOLERANCE * self.forms.scale

    def _value(self, z: Array, mu: float) -> tuple[float, _Occupied]:
        weights = self.domain.weights(z)
        spectrum = self.forms.spectrum(weights)
        # A new mu begins where the last one ended: the same matrix.
        if spectrum is not self._spectrum:
            self._spectrum = spectrum
            self.n_eigen += 1
        occupied = _occupy(spectrum, self.forms.r, mu)
        linear = float(weights @ self.forms.gains - self._cost(z, weights))
        exact = linear - float(occupied.values[: self.forms.r].sum())
        if exact > self.best:
            self.best, self.best_weights = exact, weights
        smooth = float(weights @ self.forms.gains - self.domain.cost @ z) - occupied.sigma
        if self.domain.bounded:
            smooth += mu * float(np.log(z).sum())
        return smooth, occupied

    def _cost(self, z: Array, weights: Array) -> float:
        """The cost of the cheapest z with these weights: positive and negative part, no more."""
        if not self.domain.cost.any():
            return 0.0
        k = self.forms.k
        return float(self.domain.cost[:k] @ np.maximum(weights - self.domain.offset, 0.0))

    def _derivatives(self, z: Array, mu: float, occupied: _Occupied) -> tuple[Array, Array]:
        kept, curvature = occupied.derivatives(self.forms)
        directions = self.domain.directions
        gradient = directions.T @ (self.forms.gains - kept) - self.domain.cost
        hessian = directions.T @ curvature @ directions
        if self.domain.bounded:
            gradient = gradient + mu / z
            hessian = hessian + np.diag(mu / z**2)
        return gradient, hessian

    def _is_lost(self, gradient: Array, hessian: Array) -> bool:
        """Whether there is a slope without curvature, by which a step would be out of all bounds.

        Between the points where eigenvalues cross the dual function can be linear.
        """
        least = _FAR * self.forms.scale * float(np.trace(hessian))
        return not self.domain.bounded and float(gradient @ gradient) > least

    def _newton_step(self, gradient: Array, hessian: Array) -> Array:
        n, m = len(gradient), len(self.domain.balance)
        system = np.zeros((n + m, n + m))
        system[:n, :n] = hessian
        system[:n, :n] += 1e-14 * np.trace(hessian) * np.eye(n)
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
        return min(1.0, 0.99 * float((-z[falling] / step[falling]).min()))


@dataclass(frozen=True, eq=False)
class _Occupied:
    """How far each eigenvector of A(w) is occupied at mu."""

    spectrum: Spectrum
    p: Array
    q: Array
    x: Array
    """How many mu each eigenvalue is above the level."""
    mu: float

    @property
    def values(self) -> Array:
        """Eigenvalues, largest first."""
        return self.spectrum.values

    @property
    def is_saturated(self) -> bool:
        """Whether every eigenvector is occupied fully or not at all."""
        return bool((np.abs(self.x) > _SATURATED).all())

    @property
    def sigma(self) -> float:
        """The smoothed sum of the r largest eigenvalues."""
        entropy = float((xlogy(self.p, self.p) + xlogy(self.q, self.q)).sum())
        return float(self.p @ self.values) - self.mu * entropy

    def derivatives(self, forms: Forms) -> tuple[Array, Array]:
        """First and second derivatives of sigma by the weights: (k,) and (k, k)."""
        xp, host = forms.backend.xp, forms.backend.host
        # Pairs of empty eigenvectors have no slope, so that only the others' rows are needed.
        n = int(np.count_nonzero(self.p > _EMPTY))
        rows = self.spectrum.rows(n)
        values, p, q = forms.backend.put(np.array([self.values, self.p, self.q]))
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


def _occupy(spectrum: Spectrum, r: int, mu: float) -> _Occupied:
    """Find the level at which the occupation sums to r."""
    # Measured from the middle of the gap, so that tied eigenvalues keep their digits.
    values = spectrum.values - (spectrum.values[r - 1] + spectrum.values[r]) / 2
    low, high = float(values[-1]) - 50 * mu, float(values[0]) + 50 * mu
    level = 0.0
    for _ in range(100):
        x = (values - level) / mu
        p, q = expit(x), expit(-x)
        excess = float(p[r:].sum() - q[:r].sum())
        if abs(excess) <= 1e-14 * r:
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
    return _Occupied(spectrum, p, q, x, mu)

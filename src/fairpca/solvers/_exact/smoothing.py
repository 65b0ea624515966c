"""The sum of the r largest eigenvalues, made smooth by an entropy of the relaxed projector.

docs/exact_solver.md, sections 4 to 6.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from fairpca._linalg.types import Array
from fairpca.solvers._exact.forms import Forms, Spectrum

_EMPTY = 1e-30
"""Occupations up to this are none: their share of a derivative is far below rounding."""

_SATURATED = 40.0
"""Eigenvalues this many mu from the level are occupied fully or not at all: exp(-40) < 1e-17."""

_FAR_LEVEL = 50.0
"""The level lies at most this many mu outside the eigenvalues: exp(-50) times d is below any r."""

_MISSING = 1e-14
"""Error of the number of occupied eigenvectors that is rounding, relative to r."""

_LEVEL_STEPS = 100
"""The most steps to the level; a handful is usual."""


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
        n = int(np.count_nonzero(self.p > _EMPTY))
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
    low, high = float(values[-1]) - _FAR_LEVEL * mu, float(values[0]) + _FAR_LEVEL * mu
    level = 0.0
    for _ in range(_LEVEL_STEPS):
        x = (values - level) / mu
        p, q = expit(x), expit(-x)
        excess = float(p[r:].sum() - q[:r].sum())
        if abs(excess) <= _MISSING * r:
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

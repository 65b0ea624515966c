"""Over which weights the dual is maximised: one polyhedron for each criterion.

docs/exact_solver.md, section 3.
"""

from dataclasses import dataclass

import numpy as np

from fairpca._linalg.types import Array
from fairpca.solvers._exact.forms import Forms

WARM_MU = 1e-3
"""Where mu begins near the solution, relative to `mu_unit`: what is left to move is small."""

RESUMED_MU = 1e-5
"""Where it begins when the search space has grown, and the solution hardly moves."""


@dataclass(frozen=True, eq=False)
class Domain:
    """Weights ``offset + directions @ z`` at ``cost . z``.

    If bounded, z is not negative and ``balance @ z`` stays as it is at the start. If signed, z is
    a positive and a negative part, of which only the first has a cost. If it is a simplex, z are
    the weights, and sum to 1.
    """

    offset: Array
    directions: Array
    cost: Array
    balance: Array
    start: Array
    bounded: bool = True
    signed: bool = False
    simplex: bool = False

    def weights(self, z: Array) -> Array:
        """The weights of the groups' matrices."""
        weights: Array = self.offset + self.directions @ z
        return weights

    def least_cost(self, z: Array) -> float:
        """The cost of the cheapest z with the same weights: of both parts only the difference."""
        if self.signed:
            k = len(self.offset)
            return float(self.cost[:k] @ np.maximum(z[:k] - z[k:], 0.0))
        return float(self.cost @ z)


def equal_domain(forms: Forms, tolerance: float, near: Array | None = None) -> Domain:
    """Least total loss with all measures within the tolerance of each other.

    Weights that are thought to be `near` the best make the start, to begin with at `WARM_MU`.
    """
    k = forms.k
    if tolerance == 0.0:
        # Free multipliers that sum to zero: an orthonormal basis of that hyperplane.
        plane = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, :-1]]))[0][:, 1:]
        none = np.zeros((0, k - 1))
        start = np.zeros(k - 1) if near is None else plane.T @ (near - forms.weights)
        return Domain(forms.weights, plane, np.zeros(k - 1), none, start, bounded=False)
    cost = np.concatenate([np.full(k, tolerance), np.zeros(k)])
    balance = np.concatenate([np.ones(k), -np.ones(k)])[None]
    start = np.full(2 * k, forms.weights.mean())
    if near is not None:
        multipliers = near - forms.weights
        parts = np.concatenate([np.maximum(multipliers, 0.0), np.maximum(-multipliers, 0.0)])
        # As far from the boundary as the barrier of a warm start keeps what is not needed.
        start = parts + min(WARM_MU * mu_unit(forms) / tolerance, float(forms.weights.mean()))
    return Domain(forms.weights, _signed(k), cost, balance, start, signed=True)


def minmax_domain(
    forms: Forms, bounds: Array | None = None, near: Array | None = None, mu: float = WARM_MU
) -> Domain:
    """Least largest measure, or least largest excess over bounds: weights on the simplex.

    What is thought to be `near` the best makes the start, to begin with at this mu.
    """
    k = forms.k
    cost, start = np.zeros(k) if bounds is None else bounds, np.full(k, 1.0 / k)
    if near is not None:
        start = (1.0 - mu) * near / near.sum() + mu * start
    return Domain(np.zeros(k), np.eye(k), cost, np.ones((1, k)), start, simplex=True)


def ceiling_domain(forms: Forms, bounds: Array, near: Array | None = None) -> Domain:
    """Least total loss with every measure at most a bound of its own; `near` is as above."""
    k = forms.k
    start = np.full(k, forms.weights.mean())
    if near is not None:
        start = np.maximum(near - forms.weights, 0.0) + WARM_MU * start
    return Domain(forms.weights, np.eye(k), bounds, np.zeros((0, k)), start)


def budget_domain(forms: Forms, budget: float) -> Domain:
    """Least largest measure with ``weights . e`` within a budget: a simplex, and a price."""
    k = forms.k
    directions = np.hstack([np.eye(k), forms.weights[:, None]])
    cost, balance = np.append(np.zeros(k), budget), np.append(np.ones(k), 0.0)[None]
    start = np.append(np.full(k, 1.0 / k), 1.0 / float(forms.weights.sum()))
    return Domain(np.zeros(k), directions, cost, balance, start)


def spread_domain(forms: Forms, near: Array | None = None, mu: float = WARM_MU) -> Domain:
    """Least spread: the difference of two points of the simplex; `near` is as above."""
    k = forms.k
    balance = np.zeros((2, 2 * k))
    balance[0, :k] = balance[1, k:] = 1.0
    start = np.full(2 * k, 1.0 / k)
    if near is not None:
        parts = np.array([np.maximum(near, 0.0), np.maximum(-near, 0.0)])
        parts /= parts.sum(axis=1, keepdims=True)
        start = (1.0 - mu) * parts.ravel() + mu * start
    return Domain(np.zeros(k), _signed(k), np.zeros(2 * k), balance, start)


def mu_unit(forms: Forms) -> float:
    """What mu is relative to: the mean eigenvalue of the group with the largest trace."""
    return forms.scale / forms.d


def _signed(k: int) -> Array:
    return np.hstack([np.eye(k), -np.eye(k)])

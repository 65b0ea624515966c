"""The criteria as convex functions of the measures, made smooth for the local search.

Each criterion is ``phi(E) = max_w w . E - phi*(w)``. The augmented Lagrangian replaces it by
``max_w w . E - phi*(w) - |w - w0|^2 / (2 rho)``, which is smooth, exact at w0 = the optimal
weights, and solved in closed form: docs/exact_solver.md, section 9. `smooth` returns the maximiser,
the value, and a factor R of the derivative ``R R^T`` of the maximiser by E. Where only differences
of measures matter, these are what a large rho is multiplied with: it would cost digits else.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from fairpca._linalg.types import Array

Smooth = tuple[Array, float, Array]


class Criterion(ABC):
    """What the local search needs to know; the dual state is the groups' weights unless said."""

    def start(self, weights: Array) -> Array:
        """Dual state from the weights that a dual search found."""
        return weights

    def net(self, state: Array) -> Array:
        """The weights of the groups in a dual state."""
        return state

    def missed(self, measures: Array) -> Array:
        """How far each measure is from what is asked for; 0 if nothing is asked of it alone."""
        return np.zeros(len(measures))

    @abstractmethod
    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """Maximiser, value and derivative factor at this state."""


@dataclass(frozen=True, eq=False)
class Equal(Criterion):
    """Least total loss with all measures within the tolerance of each other."""

    weights: Array
    tolerance: float

    def missed(self, measures: Array) -> Array:
        """From the band as wide as the tolerance around which they lie."""
        middle = (measures.max() + measures.min()) / 2
        if self.tolerance == 0.0:
            middle = measures.mean()
        half = self.tolerance / 2
        return measures - np.clip(measures, middle - half, middle + half)

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """Soft-threshold the shifted multipliers so that they sum to zero."""
        target = state - self.weights + rho * (measures - measures.mean())
        dead = rho * self.tolerance
        level = target.mean() if dead == 0.0 else _balance(target, dead)
        over, under = np.maximum(target - level - dead, 0.0), np.minimum(target - level, 0.0)
        multipliers = over + under
        moved = self.weights + multipliers
        value = float(
            moved @ measures - self.tolerance * over.sum() - _square(moved - state) / (2 * rho)
        )
        active = np.ones(len(state), dtype=bool) if dead == 0.0 else multipliers != 0
        return moved, value, _centred(active, rho)


@dataclass(frozen=True, eq=False)
class Ceiling(Criterion):
    """Least total loss with every measure at most a bound of its own."""

    weights: Array
    bounds: Array

    def missed(self, measures: Array) -> Array:
        """What exceeds the bounds."""
        return np.maximum(measures - self.bounds, 0.0)

    def start(self, weights: Array) -> Array:
        """As they are, but none below that of the total loss."""
        return np.maximum(weights, self.weights)

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """Multipliers grow with the excess, and are not negative."""
        multipliers = np.maximum(state - self.weights + rho * (measures - self.bounds), 0.0)
        moved = self.weights + multipliers
        value = float(
            moved @ measures - multipliers @ self.bounds - _square(moved - state) / (2 * rho)
        )
        return moved, value, np.sqrt(rho) * np.eye(len(state))[:, multipliers > 0]


@dataclass(frozen=True, eq=False)
class MinMax(Criterion):
    """Least largest measure, or least largest excess over bounds."""

    bounds: Array | float = 0.0

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """Project on the simplex."""
        excess = measures - self.bounds
        moved = project_on_simplex(state + rho * (excess - excess.max()))
        value = float(moved @ excess - _square(moved - state) / (2 * rho))
        return moved, value, _centred(moved > 0, rho)


@dataclass(frozen=True, eq=False)
class Budget(Criterion):
    """Least largest measure with ``weights . e`` within a budget.

    The dual state is a point of the simplex, and behind it the price of the budget.
    """

    weights: Array
    budget: float

    def start(self, weights: Array) -> Array:
        """What the weights have beyond a sum of one is the price's."""
        price = max(float(weights.sum()) - 1.0, 0.0) / float(self.weights.sum())
        return np.append(project_on_simplex(weights - price * self.weights), price)

    def net(self, state: Array) -> Array:
        """The point, and the price times the weights of the total loss."""
        net: Array = state[:-1] + state[-1] * self.weights
        return net

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """Project on the simplex; the price grows with what is over the budget."""
        over = float(self.weights @ measures) - self.budget
        moved = np.append(
            project_on_simplex(state[:-1] + rho * (measures - measures.max())),
            max(state[-1] + rho * over, 0.0),
        )
        value = float(moved[:-1] @ measures) + moved[-1] * over
        value -= _square(moved - state) / (2 * rho)
        factor = _centred(moved[:-1] > 0, rho)
        if moved[-1] > 0:
            factor = np.hstack([factor, np.sqrt(rho) * self.weights[:, None]])
        return moved, value, factor


class Spread(Criterion):
    """Least difference between the largest and the smallest measure."""

    def start(self, weights: Array) -> Array:
        """Two points of the simplex whose difference is near the weights, scaled."""
        size = max(float(np.maximum(weights, 0.0).sum()), np.finfo(float).tiny)
        return np.array([project_on_simplex(weights / size), project_on_simplex(-weights / size)])

    def net(self, state: Array) -> Array:
        """Weight of the largest minus that of the smallest."""
        net: Array = state[0] - state[1]
        return net

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """Project both points on the simplex."""
        largest = project_on_simplex(state[0] + rho * (measures - measures.max()))
        smallest = project_on_simplex(state[1] - rho * (measures - measures.min()))
        moved = np.array([largest, smallest])
        value = float((largest - smallest) @ measures - _square(moved - state) / (2 * rho))
        return moved, value, np.hstack([_centred(largest > 0, rho), _centred(smallest > 0, rho)])


def project_on_simplex(point: Array) -> Array:
    """The nearest point with non-negative entries that sum to one."""
    point = point - point.max()  # so that one is not lost beside large numbers
    falling = np.sort(point)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(point) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    nearest: Array = np.maximum(point - excess[last], 0.0)
    return nearest


def _balance(target: Array, dead: float) -> float:
    """The level at which what lies above level + dead equals what lies below level."""
    breaks = np.sort(np.concatenate([target, target - dead]))
    above = np.maximum(target[None] - breaks[:, None] - dead, 0.0).sum(axis=1)
    below = np.maximum(breaks[:, None] - target[None], 0.0).sum(axis=1)
    rest = above - below  # falls from positive to negative; linear between the breaks
    return float(np.interp(0.0, -rest, breaks))


def _centred(active: np.typing.NDArray[np.bool_], rho: float) -> Array:
    """Factor of rho times the projector on what sums to zero over the active groups."""
    projector = np.diag(active.astype(float))
    projector -= np.outer(active, active) / max(int(active.sum()), 1)
    factor: Array = np.sqrt(rho) * projector[:, active]
    return factor


def _square(vector: Array) -> float:
    return float((vector**2).sum())

"""What a search is for: a domain for the dual, a criterion for the local search, and a value.

docs/exact_solver.md, sections 3, 9 and 11.
"""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from fairpca._linalg.types import Array
from fairpca.certificate import EQUAL
from fairpca.problem import Problem
from fairpca.solvers._exact.criteria import Budget, Ceiling, Criterion, Equal, MinMax, Spread
from fairpca.solvers._exact.domains import (
    WARM_MU,
    Domain,
    budget_domain,
    ceiling_domain,
    equal_domain,
    minmax_domain,
    spread_domain,
)
from fairpca.solvers._exact.effort import CLOSED_GAP
from fairpca.solvers._exact.forms import Forms

_ROUNDING_GAP = 1e-13
"""Gap, relative to tr(A), at which a search ends: rounding alone can cause it."""

_OVER_BUDGET = 1e-12
"""Share of tr(A) by which a total loss may exceed its budget: rounding alone can cause it."""

_ABOVE_ALL = 1e-6
"""Share of tr(A) by which a bound has to exceed the largest loss, so that rounding does not."""


class Goal(ABC):
    """Something to be minimised, in one of the units that follow."""

    criterion: Criterion
    limit = np.inf
    """A dual value above it proves that no subspace does what is asked for."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.measured = problem, problem.measured

    @property
    def scale(self) -> float:
        """What tolerances of the value are relative to."""
        return self.measured.scale

    resumes = False
    """Whether it begins where it ended when the search space has grown, with a barrier too."""

    @abstractmethod
    def domain(self, forms: Forms, near: Array | None = None, mu: float = WARM_MU) -> Domain:
        """Over which weights the dual is maximised; the best may be near some, to begin at mu."""

    @abstractmethod
    def value(self, measures: Array) -> float:
        """What is minimised, or infinity where what is asked for is not met."""

    def enough(self, bound: float, gap: float = CLOSED_GAP) -> float:
        """A value so near its bound that no further start is needed."""
        return bound + max(gap * abs(bound), _ROUNDING_GAP * self.scale)

    def shown(self, value: float) -> float:
        """A value, or a bound, as certificates have it."""
        return value

    def weights_at(self, measures: Array, weights: Array) -> Array:
        """Weights to begin a search with where these are the measures, or those of the dual."""
        return weights

    def multipliers(self, weights: Array) -> Array:
        """What proves the bound, from the weights of the dual."""
        return weights

    def weights(self, multipliers: Array) -> Array:
        """The weights, from what proves the bound."""
        return multipliers


class LeastLoss(Goal):
    """Least total loss under some condition; values are ``loss_weights . e`` of `Measured`."""

    allowance = 0.0
    """The value of what is nearest up to which the condition is met."""

    @property
    def scale(self) -> float:
        return self.problem.stake / self.measured.loss_unit

    @cached_property
    def limit(self) -> float:  # type: ignore[override]
        """No measure exceeds its constant, for nobody keeps less than nothing."""
        most = float(self.measured.loss_weights @ self.measured.constants)
        return most + _ABOVE_ALL * self.scale

    def value(self, measures: Array) -> float:
        # Half of what is allowed, so that what was found counts as met when it is judged.
        met = self.is_met(measures, 0.5)
        return float(self.measured.loss_weights @ measures) if met else np.inf

    def is_met(self, measures: Array, share: float = 1.0) -> bool:
        """Whether so much, at the most, of what is negligible is missing."""
        negligible = max(self.problem.negligible_spread, EQUAL * float(np.abs(measures).max()))
        return self.miss(measures) <= share * negligible

    @abstractmethod
    def miss(self, measures: Array) -> float:
        """How far the measures are from what is asked for: positive if they are."""

    @abstractmethod
    def missing(self, measures: Array) -> Array:
        """Multipliers that see how far the measures are from it: a proof where no others are."""

    @abstractmethod
    def cost(self, weights: Array) -> float:
        """What the condition takes from the value of the dual."""

    @abstractmethod
    def nearest(self) -> Goal:
        """To come as near to what is asked for as can be."""

    def is_impossible(self, bound: float) -> bool:
        """Whether a bound on the value of what is nearest proves that nothing is near enough."""
        return bound - self.allowance > self.problem.negligible_spread

    @abstractmethod
    def loosened(self, miss: float) -> "LeastLoss":
        """The same where so much may be missing."""

    def enough(self, bound: float, gap: float = CLOSED_GAP) -> float:
        total = abs(self.measured.base / self.measured.loss_unit + bound)
        return bound + max(gap * total, _ROUNDING_GAP * self.scale)

    def shown(self, value: float) -> float:
        return self.measured.base + self.measured.loss_unit * value

    def multipliers(self, weights: Array) -> Array:
        return weights * self.measured.loss_unit - self.measured.weights

    def weights(self, multipliers: Array) -> Array:
        return self.measured.loss_weights + multipliers / self.measured.loss_unit


class EqualGoal(LeastLoss):
    """Least total loss with measures within a tolerance of each other."""

    def __init__(self, problem: Problem, tolerance: float) -> None:
        super().__init__(problem)
        self.tolerance = self.allowance = tolerance
        self.criterion = Equal(self.measured.loss_weights, tolerance)

    def domain(self, forms: Forms, near: Array | None = None, mu: float = WARM_MU) -> Domain:
        return equal_domain(forms, self.tolerance, near)

    def miss(self, measures: Array) -> float:
        return float(np.ptp(measures)) - self.tolerance

    def missing(self, measures: Array) -> Array:
        return _furthest_apart(measures)

    def cost(self, weights: Array) -> float:
        return self.tolerance * float(np.maximum(weights - self.measured.loss_weights, 0.0).sum())

    def nearest(self) -> Goal:
        return SpreadGoal(self.problem, self.tolerance)

    def loosened(self, miss: float) -> "LeastLoss":
        return EqualGoal(self.problem, self.tolerance + miss)


class CeilingGoal(LeastLoss):
    """Least total loss with every measure at most a cap of its own."""

    def __init__(self, problem: Problem, caps: Array) -> None:
        super().__init__(problem)
        self.caps = caps
        self.criterion = Ceiling(self.measured.loss_weights, caps)

    def domain(self, forms: Forms, near: Array | None = None, mu: float = WARM_MU) -> Domain:
        return ceiling_domain(forms, self.caps, near)

    def miss(self, measures: Array) -> float:
        return float((measures - self.caps).max())

    def missing(self, measures: Array) -> Array:
        multipliers = np.zeros(len(measures))
        multipliers[np.argmax(measures - self.caps)] = 1.0
        return multipliers

    def cost(self, weights: Array) -> float:
        return float(self.caps @ (weights - self.measured.loss_weights))

    def nearest(self) -> Goal:
        return MinMaxGoal(self.problem, self.caps)

    def loosened(self, miss: float) -> "LeastLoss":
        return CeilingGoal(self.problem, self.caps + miss)


class MinMaxGoal(Goal):
    """Least largest measure, or least largest excess over caps."""

    resumes = True

    def __init__(self, problem: Problem, caps: Array | None = None) -> None:
        super().__init__(problem)
        self.caps = caps
        self.criterion = MinMax() if caps is None else MinMax(caps)

    def domain(self, forms: Forms, near: Array | None = None, mu: float = WARM_MU) -> Domain:
        return minmax_domain(forms, self.caps, near, mu)

    def value(self, measures: Array) -> float:
        return float((measures if self.caps is None else measures - self.caps).max())

    def enough(self, bound: float, gap: float = CLOSED_GAP) -> float:
        if self.caps is None:
            return super().enough(bound, gap)
        # Whoever is within the caps is near enough.
        return max(bound * (1.0 + gap), 0.0) + self.problem.negligible_spread / 2

    def weights_at(self, measures: Array, weights: Array) -> Array:
        """All on the worst-off group."""
        worst = np.zeros(len(weights))
        worst[int((measures if self.caps is None else measures - self.caps).argmax())] = 1.0
        return worst


class BudgetGoal(Goal):
    """Least largest measure with a limited total loss."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.budget = (problem.most_loss - self.measured.base) / self.measured.loss_unit
        self.criterion = Budget(self.measured.loss_weights, self.budget)

    def domain(self, forms: Forms, near: Array | None = None, mu: float = WARM_MU) -> Domain:
        return budget_domain(forms, self.budget)

    def weights_at(self, measures: Array, weights: Array) -> Array:
        """The same price of the budget, and all else on the worst-off group."""
        _, price = self.measured.split(weights)
        worst = price * self.measured.weights
        worst[int(measures.argmax())] += 1.0
        return worst

    def value(self, measures: Array) -> float:
        over = float(self.measured.loss_weights @ measures) - self.budget
        # No less than what local searches call zero, however small the stake is.
        searched = _ROUNDING_GAP * float(self.measured.traces.max())
        most = max(_OVER_BUDGET * self.problem.stake / self.measured.loss_unit, searched)
        return float(measures.max()) if over <= most else np.inf


class SpreadGoal(Goal):
    """Least spread, where that of the tolerance is enough."""

    resumes = True

    def __init__(self, problem: Problem, tolerance: float) -> None:
        super().__init__(problem)
        self.tolerance, self.criterion = tolerance, Spread()

    def domain(self, forms: Forms, near: Array | None = None, mu: float = WARM_MU) -> Domain:
        return spread_domain(forms, near, mu)

    def value(self, measures: Array) -> float:
        return float(np.ptp(measures))

    def weights_at(self, measures: Array, weights: Array) -> Array:
        """All on the two groups that are furthest apart."""
        return _furthest_apart(measures)

    def enough(self, bound: float, gap: float = CLOSED_GAP) -> float:
        return max(bound * (1.0 + gap), self.tolerance) + self.problem.negligible_spread


def _furthest_apart(measures: Array) -> Array:
    """1 for the group with the largest measure, -1 for that with the smallest."""
    weights = np.zeros(len(measures))
    weights[np.argmax(measures)] += 1.0
    weights[np.argmin(measures)] -= 1.0
    return weights


def goal_of(problem: Problem) -> Goal:
    """What a problem asks for."""
    if problem.goal == "equal":
        return EqualGoal(problem, problem.tolerance)
    if problem.goal == "bounds":
        return CeilingGoal(problem, problem.caps)
    return MinMaxGoal(problem) if problem.goal == "minmax" else BudgetGoal(problem)

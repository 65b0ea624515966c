"""Criteria: notions of fairness, one class each.

A criterion is a small object with parameters, such as ``Equal(tolerance=0.1)``. Applied to a
problem (`Criterion.applied_to`), it is everything that solvers and certificates need: what is
minimised and under which condition, the weights over which the dual is maximised, a smooth form for
the local search, the bound that multipliers prove, and the sentences of its certificates. Duals,
smooth forms and bounds are derived in docs/exact_solver.md, sections 3, 9 and 16.

To add a criterion, write a class here. One that minimises a convex function of the measures derives
from `Criterion`, as `MinMax` does; one that minimises the total loss under a condition derives from
`LeastLoss`, as `Equal` does. A line in `CRITERIA` gives it a name. tests/test_criteria.py has one.
"""

# ruff: noqa: D102  (methods that override documented ones)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import Parameter, signature
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import kl_div, logsumexp, softmax
from sklearn.base import BaseEstimator

from fairpca._linalg.types import ACCURACY, NEGLIGIBLE, Array
from fairpca.groups import per_group
from fairpca.measures import EPS, MEASURES, AffineMeasure, Measure, check_measure
from fairpca.validation import check_number

if TYPE_CHECKING:
    from fairpca.moments import GroupMoments
    from fairpca.problem import Problem

OPTIMAL_GAP = 1e-7
"""Gap, relative to the value, up to which a solution counts as optimal."""

CLOSED_GAP = OPTIMAL_GAP / 10
"""Gap, relative to the value, at which a search ends: well within what counts as optimal."""

WARM_MU = 1e-3
"""Where mu begins near the solution, relative to its unit: what is left to move is small."""

_CLEARLY = 1e-6
"""A difference, relative to what it is one of, that rounding does not make."""

FINDINGS: dict[str, dict[str, str]] = {}
"""The sentences of certificates, by `Certificate.goal` and status; each criterion adds its own."""

_OWNERS: dict[str, str] = {}
"""Which class has a name, so that no other replaces its sentences."""

_Kind = TypeVar("_Kind", bound="Criterion")

Smooth = tuple[Array, float, Array]
"""Maximiser, value, and a factor R of the derivative ``R R^T`` of the maximiser by the measures."""


@dataclass(frozen=True, eq=False)
class Domain:
    """Weights ``offset + directions @ z``, over which a dual is maximised, and what they cost.

    The dual is ``min_P sum_i weights_i e_i(P) - cost``: the value of a criterion is the largest of
    sums of measures with weights, less what these cost. `MinMax` has the simplex at no cost.

    Attributes
    ----------
    offset : array of shape (k,)
    directions : array of shape (k, n)
        They make the weights of the k groups of the n numbers z that are searched.
    cost : array of shape (n,)
        What a unit of each z costs.
    balance : array of shape (m, n)
        ``balance @ z`` stays what it is at the start, if z is bounded.
    start : array of shape (n,)
        Where the search begins; positive, if z is bounded.
    bounded : bool, default=True
        Whether z is kept from being negative, by a barrier.
    signed : bool, default=False
        Whether z is a positive and a negative part of the same k numbers, of which only the first
        has a cost; where both are positive, only their difference counts.
    simplex : bool, default=False
        Whether z are the weights themselves, and sum to 1.
    temperature : float, default=0.0
    prior : array of shape (k,), default=None
        The first k of z, which sum to 1, also cost ``temperature * KL(z, prior)``.
    """

    offset: Array
    directions: Array
    cost: Array
    balance: Array
    start: Array
    bounded: bool = True
    signed: bool = False
    simplex: bool = False
    temperature: float = 0.0
    prior: Array | None = None

    @classmethod
    def at(cls, weights: Array) -> Domain:
        """These weights alone."""
        nothing = np.zeros((len(weights), 0)), np.zeros(0), np.zeros((0, 0)), np.zeros(0)
        return cls(weights, *nothing, bounded=False)

    def weights(self, z: Array) -> Array:
        """The weights of the groups' matrices."""
        return np.asarray(self.offset + self.directions @ z)

    def least_cost(self, z: Array) -> float:
        """The cost of the cheapest z with the same weights: of both parts only the difference."""
        if self.signed:
            k = len(self.offset)
            return float(self.cost[:k] @ np.maximum(z[:k] - z[k:], 0.0))
        return self.whole_cost(z)

    def whole_cost(self, z: Array) -> float:
        """The cost of z itself."""
        cost = float(self.cost @ z)
        if self.prior is None:
            return cost
        return cost + self.temperature * divergence(z[: len(self.prior)], self.prior)

    def cost_slopes(self, z: Array) -> tuple[Array, Array]:
        """First and second derivatives of the cost, the latter a diagonal."""
        slopes, curves = self.cost.copy(), np.zeros(len(z))
        if self.prior is not None:
            k = len(self.prior)
            slopes[:k] += self.temperature * (np.log(z[:k] / self.prior) + 1.0)
            curves[:k] = self.temperature / z[:k]
        return slopes, curves


@dataclass(frozen=True)
class Judgement:
    """How a subspace does by a criterion.

    Attributes
    ----------
    value : float
        What is minimised.
    violation : float
        How far the subspace is from the condition, not below zero; 0 where there is none.
    is_met : bool
        Whether the condition is met, up to what counts as rounding.
    slack : float
        What the condition is relaxed by in a bound that speaks of subspaces like this one.
    allowed : float
        The violation up to which a condition is not proven impossible.
    """

    value: float
    violation: float = 0.0
    is_met: bool = True
    slack: float = 0.0
    allowed: float = 0.0


class Criterion(BaseEstimator, ABC):
    """One notion of fairness. A subclass minimises a function of the measures.

    The function is convex and does not fall when a measure rises. A subclass has to have `value`,
    `domain`, `bound`, `smooth`, `name` and `findings`; all else has a default that is right for any
    such function that rises by c where all measures do (see `no_worse`), and may be replaced by
    something quicker or more exact.

    Parameters
    ----------
    measure : str, default="disparity"
        The quantity that fairness is judged on: see `MinMax`.
    """

    name: ClassVar[str]
    """What certificates call it: `Certificate.goal`."""

    findings: ClassVar[dict[str, str]]
    """The sentence for each status of a certificate; see `fairpca.certificate` for the numbers."""

    has_root: ClassVar[bool] = False
    """Whether a root-find in one weight solves two groups' disparities: the optimum is where both
    are equal, or, for `SoftMinMax`, where their weights fit. A subclass has to say so itself."""

    is_smooth: ClassVar[bool] = False
    """Whether the weights of a subspace follow from its measures, without loss of digits."""

    adapts_to_chance: ClassVar[bool] = False
    """Whether it acts on every difference between the groups of these rows, however small."""

    covers_mixtures: ClassVar[bool] = False
    """Whether the value for disparities holds for all mixtures of the groups too."""

    estimates_noise: bool = False
    """Whether `FairPCA` sets a parameter from standard errors that it estimates from the rows."""

    has_rivals: ClassVar[bool] = False
    """Whether published methods come near it, with its usual parameters."""

    minimises_loss: ClassVar[bool] = False
    """Whether the value is the total loss, and not in the units of the measure."""

    plain_reason: ClassVar[str] = "the least total loss of all has the least possible value"

    tolerance: float = 0.0
    max_extra_loss: float | None = None
    heat: float = 0.0
    """The temperature of a soft maximum."""

    limit: float = np.inf
    """A dual value above it proves that no subspace meets the condition."""

    problem: Problem
    affine: AffineMeasure

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "findings" in vars(cls) and "name" not in vars(cls):
            raise TypeError(f"{cls.__name__} has findings of its own, so it needs a name too.")
        if "name" in vars(cls) and hasattr(cls, "findings"):
            own = f"{cls.__module__}.{cls.__qualname__}"
            if (owner := _OWNERS.setdefault(cls.name, own)) != own:
                raise TypeError(f"{cls.__name__} needs another name: {owner} has {cls.name!r}.")
            FINDINGS[cls.name] = cls.findings

    def __init__(self, measure: str = "disparity") -> None:
        self.measure = measure

    # --- Parameters -----------------------------------------------------------

    @property
    def measured(self) -> Measure:
        """The measure by its name."""
        return MEASURES[self.measure]

    def validate(self, moments: GroupMoments | None = None) -> None:
        """Raise ValueError for wrong parameters, or such as do not fit the groups."""
        check_measure(self.measure)
        extra = self.max_extra_loss
        if extra is not None:
            if isinstance(extra, bool) or not isinstance(extra, Real):
                raise ValueError(f"max_extra_loss must be a number, got {extra!r}.")
            check_number("max_extra_loss", extra, least=0.0)

    @property
    def is_approached(self) -> bool:
        """Whether published methods that have a criterion of their own come near this one."""
        if not self.has_rivals:
            return False
        usual = {p.name: p.default for p in signature(type(self)).parameters.values()}
        return all(
            value == usual[name] or usual[name] is Parameter.empty
            for name, value in self.get_params().items()
            if name != "tolerance"
        )

    def for_groups(self, problem: Problem, some: NDArray[np.bool_]) -> Criterion:
        """The same for some of the groups of a problem."""
        return self

    def applied_to(self, problem: Problem, affine: AffineMeasure) -> Criterion:
        """A copy bound to a problem, and to the numbers of its measure there."""
        return self.of_kind(type(self), problem=problem, affine=affine)

    def of_kind(self, kind: type[_Kind], **attributes: Any) -> _Kind:
        """A copy of a class, with other attributes."""
        copy = kind.__new__(kind)
        copy.__dict__.update(self.__dict__ | attributes)
        return copy

    # --- What is minimised ----------------------------------------------------

    @abstractmethod
    def value(self, measures: Array) -> float:
        """What is minimised, or infinity where the condition is violated."""

    @property
    def least(self) -> float:
        """No subspace has a smaller value, as no measure is below its floor."""
        return self.value(self.affine.floor)

    def judge(self, measures: Array, total_loss: float) -> Judgement:
        """How a subspace does with these measures."""
        # Smaller than the least possible only by rounding.
        return Judgement(max(self.value(measures), self.least))

    @property
    def scale(self) -> float:
        """What tolerances of the value are relative to."""
        return self.affine.scale

    def enough(self, bound: float, gap: float = CLOSED_GAP) -> float:
        """A value so near its bound that no further start is needed."""
        return bound + max(gap * abs(bound), ACCURACY * self.scale)

    def shown(self, value: float) -> float:
        """A value, or a bound, as certificates have it."""
        return value

    def shortfall(self, measures: Array) -> float:
        """How far the least total loss of all, with these measures, may be from the answer."""
        return self.value(measures) - self.least

    def no_worse(self, measures: Array) -> Array:
        """Measures up to which every subspace is as good as one with these; (k,)."""
        value = self.value(measures)
        return np.asarray(measures + (self.enough(value) - value))

    def direct_basis(self) -> Array | None:
        """The answer, where one eigenproblem gives it."""
        return None

    # --- Duality --------------------------------------------------------------

    @abstractmethod
    def domain(self, near: Array | None = None, unit: float = 1.0) -> Domain:
        """The weights over which the dual is maximised, and where the search begins.

        Without `near` it begins in the middle. `near` are weights of the groups, (k,), that are
        thought to be nearly the best; they may lie on the boundary, or outside, so that a share of
        the middle is kept (`WARM_MU`). `unit` is that of the dual's value.
        """

    @abstractmethod
    def bound(self, multipliers: Array, slack: float, start: Array | None) -> float:
        """Lower bound on the value that multipliers prove: see `Problem.dual_bound`."""

    def violation_bound(self, multipliers: Array) -> float:
        """Lower bound on the violation of any subspace: see `Problem.violation_bound`."""
        return 0.0

    def multipliers(self, weights: Array) -> Array:
        """What proves the bound, from the weights of the dual."""
        return weights

    def weights_from(self, multipliers: Array) -> Array:
        """The weights, from what proves the bound."""
        return multipliers

    def weights_at(self, measures: Array, weights: Array) -> Array:
        """Weights to begin a search with where these are the measures, or those of the dual."""
        return weights

    def plain_multipliers(self) -> Array:
        """What proves the bound where nothing has to be searched for."""
        # Those of a subspace whose measures are the least of all.
        floor = self.affine.floor
        start = self.start(np.full(len(floor), 1.0 / len(floor)))
        size = max(float(np.abs(floor).max()), self.scale, np.finfo(float).tiny / EPS)
        return self.net(self.smooth(floor, start, 1.0 / (CLOSED_GAP * size))[0])

    def violation_proof(self, measures: Array) -> Array | None:
        """What proves that nothing comes nearer, where the only basis violates the condition."""
        return None

    # --- The local search -----------------------------------------------------
    # Its dual state is an array of any shape, which only `start`, `net` and `smooth` look into:
    # for most criteria the weights of the groups, as these defaults have it.

    def start(self, weights: Array) -> Array:
        """Dual state from the weights that a dual search found; the weights unless said."""
        return weights

    def net(self, state: Array) -> Array:
        """The weights of the groups in a dual state."""
        return state

    def missed(self, measures: Array) -> Array:
        """How far each measure is from its condition; 0 if there is none on it alone."""
        return np.zeros(len(measures))

    @abstractmethod
    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """The augmented Lagrangian at this state.

        With ``phi(E) = max_w w . E - phi*(w)`` the value, that is
        ``max_w w . E - phi*(w) - |w - state|^2 / (2 rho)``, solved in closed form. Where only
        differences of measures matter, these are what a large rho is multiplied with: else it
        would cost digits.
        """


class MinMax(Criterion):
    """Minimise the largest measure of a group; ties are broken by total loss.

    The criterion of Samadi et al. (2018), on disparities. It always has a solution.

    Parameters
    ----------
    measure : str, default="disparity"
        The quantity that fairness is judged on. "disparity" is a group's reconstruction loss
        minus that of its own PCA, "loss" the reconstruction loss itself, "kept_variance" what the
        group keeps (of which the smallest is maximised). "relative_disparity", "share_lost" and
        "share_kept" are the same divided by the group's variance.
    max_extra_loss : float or None, default=None
        Choose among subspaces whose total loss exceeds ordinary PCA's, the least of all, by at
        most this share: 0.01 is one per cent more, 0 leaves PCA itself.

    See Also
    --------
    fairpca.FairPCA : Takes it as `criterion`.

    Examples
    --------
    >>> from fairpca import FairPCA, MinMax
    >>> FairPCA(2, criterion=MinMax(measure="share_lost", max_extra_loss=0.01))
    FairPCA(criterion=MinMax(max_extra_loss=0.01, measure='share_lost'),
            n_components=2)
    """

    name = "minmax"
    plain_reason = "the least total loss of all is best for the worst-off group"
    has_root = covers_mixtures = adapts_to_chance = has_rivals = True
    findings: ClassVar[dict[str, str]] = {
        "optimal": "Proven optimal: in every {subspace} some group has a {noun} of at least "
        "{at_least}, and here none has more than {at_most}.",
        "optimal, kept": "Proven optimal: in every {subspace} some group has a {noun} of at most "
        "{can_keep}, and here none has less than {keeps}.",
        "bounded": "No group has a {noun} above {at_most}; no {subspace} can bring the largest one "
        "below {at_least}.",
        "bounded, kept": "No group has a {noun} below {keeps}; no {subspace} can bring the "
        "smallest one above {can_keep}.",
        "relaxed": "No group has a {noun} above {at_most}; in a subspace of {r} dimensions some "
        "group has at least {at_least}.",
        "relaxed, kept": "Every group has a {noun} of at least {keeps}; in a subspace of {r} "
        "dimensions some group has at most {can_keep}.",
    }

    def __init__(self, measure: str = "disparity", max_extra_loss: float | None = None) -> None:
        self.measure = measure
        self.max_extra_loss = max_extra_loss

    def applied_to(self, problem: Problem, affine: AffineMeasure) -> Criterion:
        kind = type(self) if self.max_extra_loss is None else _MinMaxWithinBudget
        return self.of_kind(kind, problem=problem, affine=affine)

    def value(self, measures: Array) -> float:
        return float(measures.max())

    def no_worse(self, measures: Array) -> Array:
        return np.full(len(measures), self.enough(self.value(measures)))

    def domain(self, near: Array | None = None, unit: float = 1.0) -> Domain:
        return _simplex(len(self.affine.weights), near)

    def bound(self, multipliers: Array, slack: float, start: Array | None) -> float:
        positive = np.maximum(multipliers, 0.0)
        if not positive.any():
            return self.least
        least = self.problem.least_weighted(positive / positive.sum(), start)
        return max(least - 4 * EPS * self.affine.scale, self.least)

    def weights_at(self, measures: Array, weights: Array) -> Array:
        """All on the worst-off group."""
        return np.asarray(np.eye(len(measures))[measures.argmax()])

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """Project on the simplex."""
        moved = project_on_simplex(state + rho * (measures - measures.max()))
        value = float(moved @ measures - np.square(moved - state).sum() / (2 * rho))
        return moved, value, _centred(moved > 0, rho)

    def point_cost(self, point: Array) -> float:
        """What a point of the simplex costs in the dual."""
        return 0.0


class _WithinBudget(Criterion):
    """A criterion with a limited total loss, in front of the criterion itself.

    The dual state is a point of the simplex, and behind it the price of the budget.
    """

    has_root = covers_mixtures = False
    point_cost: Callable[[Array], float]

    @cached_property
    def loss_budget(self) -> float:
        """The total loss that is allowed."""
        least = float(self.problem.weights @ self.problem.least_losses)
        return least * (1.0 + float(self.max_extra_loss or 0.0))

    @cached_property
    def _budget(self) -> float:
        """The same as a limit on ``loss_weights . e``."""
        return (self.loss_budget - self.affine.base) / self.affine.loss_unit

    def _over(self, measures: Array) -> float:
        return float(self.affine.loss_weights @ measures) - self._budget

    @cached_property
    def _turn(self) -> float:
        """How far rounding turns the subspace of least total loss, if no other is in the budget.

        Infinite where others are.
        """
        problem, r = self.problem, self.problem.n_components
        values = problem.total_eigenpairs[0]
        alone = len(values) > r and values[r - 1] - values[r] > _CLEARLY * values[0]
        if alone and not self.max_extra_loss:
            return float(16 * EPS * values[0] / (values[r - 1] - values[r]))
        return np.inf

    def direct_basis(self) -> Array | None:
        return self.problem.least_loss_basis if self._turn < np.inf else None

    def plain_multipliers(self) -> Array:
        if self._turn < np.inf:  # a price of the budget beside which nothing else counts
            return self.affine.weights
        return super().plain_multipliers()

    def without_budget(self, measures: Array) -> float:
        """The value, whatever the total loss."""
        return super().value(measures)  # type: ignore[safe-super]

    def value(self, measures: Array) -> float:
        # No less than what local searches call zero, however small the losses are.
        searched = ACCURACY * float(self.affine.traces.max())
        most = max(NEGLIGIBLE * self.problem.loss_scale / self.affine.loss_unit, searched)
        return self.without_budget(measures) if self._over(measures) <= most else np.inf

    def judge(self, measures: Array, total_loss: float) -> Judgement:
        value = max(self.without_budget(measures), self.least)
        return Judgement(value, slack=max(total_loss - self.loss_budget, 0.0))

    def domain(self, near: Array | None = None, unit: float = 1.0) -> Domain:
        weights, free = self.affine.loss_weights, super().domain()  # type: ignore[safe-super]
        directions = np.hstack([np.eye(len(weights)), weights[:, None]])
        return replace(
            free,
            directions=directions,
            cost=np.append(free.cost, self._budget),
            balance=np.append(np.ones(len(weights)), 0.0)[None],
            start=np.append(free.start, 1.0 / float(weights.sum())),
            simplex=False,
        )

    def bound(self, multipliers: Array, slack: float, start: Array | None) -> float:
        affine, positive = self.affine, np.maximum(multipliers, 0.0)
        if self._turn < np.inf and slack <= 4 * EPS * self.problem.loss_scale:
            value = self.without_budget(affine.of_losses(self.problem.least_losses))
            return max(value - self._turn * affine.scale, self.least)
        if not positive.any():
            return self.least
        point, price = self._split(positive)
        least = self.problem.least_weighted(point + price * affine.weights, start)
        base = affine.base - 4 * EPS * self.problem.loss_scale
        least -= 4 * EPS * affine.scale + price * (self.loss_budget + slack - base)
        return max(least - self.point_cost(point), self.least)

    def _split(self, weights: Array) -> tuple[Array, float]:
        """Non-negative weights, as those of a point of the simplex and a price times `weights`."""
        price = max(float(weights.sum()) - 1.0, 0.0) / float(self.affine.weights.sum())
        rest = np.maximum(weights - price * self.affine.weights, 0.0)
        # The price of something that is all price leaves the simplex nothing but rounding.
        point = rest if rest.sum() > 0.0 else np.ones(len(weights))
        return point / point.sum(), price

    def weights_at(self, measures: Array, weights: Array) -> Array:
        """The same price of the budget, and the point that belongs to the measures."""
        point, price = self._split(weights)
        inside = super().weights_at(measures, point)
        return np.asarray(price * self.affine.weights + inside)

    def start(self, weights: Array) -> Array:
        """What the weights have beyond a sum of one is the price's."""
        loss_weights = self.affine.loss_weights
        price = max(float(weights.sum()) - 1.0, 0.0) / float(loss_weights.sum())
        return np.append(project_on_simplex(weights - price * loss_weights), price)

    def net(self, state: Array) -> Array:
        """The point, and the price times the weights of the total loss."""
        return np.asarray(state[:-1] + state[-1] * self.affine.loss_weights)

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """The criterion's own; the price grows with what is over the budget."""
        point, value, factor = super().smooth(measures, state[:-1], rho)  # type: ignore[safe-super]
        over = self._over(measures)
        price = max(state[-1] + rho * over, 0.0)
        if price > 0:
            factor = np.hstack([factor, np.sqrt(rho) * self.affine.loss_weights[:, None]])
        value += price * over - (price - state[-1]) ** 2 / (2 * rho)
        return np.append(point, price), value, factor


class _MinMaxWithinBudget(_WithinBudget, MinMax):
    """`MinMax` with a limited total loss."""

    name = "max_extra_loss"


class SoftMinMax(Criterion):
    """Minimise a soft maximum of the groups' measures, made for new data.

    The largest of several noisy numbers is mostly noise, and a small group's own PCA overfits. So
    the disparities are measured from baselines whose bias is reduced by cross-fitting, and the
    maximum is a soft one, ``T log sum_i p_i exp(e_i / T)``, with p_i the share of group i in the
    total loss. Differences well below the temperature T are left as they are with ordinary PCA,
    larger ones are acted on increasingly. The result is PCA of rows that are reweighted by group.

    Parameters
    ----------
    measure : str, default="disparity"
        The quantity that fairness is judged on: see `MinMax`.
    standard_errors : float, default=2.0
        The scale of differences between groups, in standard errors. Differences well below it are
        left as they are; larger ones are acted on increasingly, without a threshold. At twice this
        number the worst-off group's rows weigh as much as all rows together do without a
        difference. `FairPCA` estimates the standard errors from folds of the rows. 0 acts on every
        difference, which is `MinMax` from baselines with less bias; infinity gives ordinary PCA.
    max_extra_loss : float or None, default=None
        Choose among subspaces whose total loss exceeds ordinary PCA's, the least of all, by at
        most this share: 0.01 is one per cent more, 0 leaves PCA itself.
    temperature : float or None, default=None
        The temperature itself, in the units of the measure, instead; measures are then those of
        the rows at hand. None: from the standard errors.

    See Also
    --------
    fairpca.MinMax : The largest measure itself.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA, SoftMinMax
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:60] = X[:60, ::-1]
    >>> groups = ["a"] * 60 + ["b"] * 240
    >>> fair = FairPCA(2, criterion=SoftMinMax()).fit(X, sensitive_features=groups)
    >>> fair.certificate_.status
    'optimal'
    """

    name = "soft"
    has_root = is_smooth = has_rivals = True
    findings: ClassVar[dict[str, str]] = {
        "optimal": "Proven optimal: the soft maximum of the groups' {plural} is {at_most}, and no "
        "{subspace} has a smaller one.",
        "optimal, kept": "Proven optimal: the soft minimum of the groups' {plural} is {keeps}, and "
        "no {subspace} has a larger one.",
        "bounded": "The soft maximum of the groups' {plural} is {at_most}; no {subspace} has a "
        "smaller one than {at_least}.",
        "bounded, kept": "The soft minimum of the groups' {plural} is {keeps}; no {subspace} has a "
        "larger one than {can_keep}.",
        "relaxed": "The soft maximum of the groups' {plural} is {at_most}; in a subspace of {r} "
        "dimensions it is at least {at_least}.",
        "relaxed, kept": "The soft minimum of the groups' {plural} is {keeps}; in a subspace of "
        "{r} dimensions it is at most {can_keep}.",
    }

    def __init__(
        self,
        measure: str = "disparity",
        standard_errors: float = 2.0,
        max_extra_loss: float | None = None,
        temperature: float | None = None,
    ) -> None:
        self.measure = measure
        self.standard_errors = standard_errors
        self.max_extra_loss = max_extra_loss
        self.temperature = temperature

    def validate(self, moments: GroupMoments | None = None) -> None:
        super().validate(moments)
        for name in ("standard_errors", "temperature"):
            given = getattr(self, name)
            if given is None and name == "temperature":
                continue
            number = isinstance(given, Real) and not isinstance(given, bool)
            if not (number and float(given) >= 0.0):
                raise ValueError(f"{name} must be a number of at least 0, got {given!r}.")

    @property
    def estimates_noise(self) -> bool:  # type: ignore[override]
        return self.temperature is None

    def applied_to(self, problem: Problem, affine: AffineMeasure) -> Criterion:
        if self.temperature is None and 0.0 < self.standard_errors < np.inf:
            raise ValueError(
                "SoftMinMax needs a temperature here: FairPCA finds one by cross-fitting, and a "
                "Problem has to be given one, SoftMinMax(temperature=…)."
            )
        within = self.max_extra_loss is not None
        kind: type[Criterion] = _SoftWithinBudget if within else SoftMinMax
        if self.heat == 0.0:
            kind = _MinMaxWithinBudget if within else MinMax
        if self.heat == np.inf:  # ordinary PCA, which is within any budget
            kind = _SoftWithoutLimit
        return self.of_kind(kind, problem=problem, affine=affine)

    @cached_property
    def prior(self) -> Array:
        """The groups' shares in the total loss: an infinite temperature gives ordinary PCA."""
        weights: Array = self.affine.weights
        return np.asarray(weights / weights.sum())

    @property
    def heat(self) -> float:  # type: ignore[override]
        """The temperature; without one it is 0 or infinite, as the standard errors are."""
        return float(self.standard_errors if self.temperature is None else self.temperature)

    def value(self, measures: Array) -> float:
        # From the largest, so that small temperatures keep their digits.
        most = measures.max()
        below = (measures - most) / self.heat
        if below.min() < -1.0:
            excess = logsumexp(below, b=self.prior)
        else:  # so do large ones
            excess = np.log1p(self.prior @ np.expm1(below))
        return float(most + self.heat * excess)

    def weights_of(self, measures: Array) -> Array:
        """The weights that a subspace with these measures has: the slopes of the value; (k,)."""
        with np.errstate(divide="ignore"):  # of groups without a share
            return np.asarray(softmax(measures / self.heat + np.log(self.prior)))

    def domain(self, near: Array | None = None, unit: float = 1.0) -> Domain:
        # Groups without a share in the total loss, which have no variance, get next to nothing.
        prior = np.maximum(self.prior, np.finfo(float).tiny)
        found = _simplex(len(prior), prior if near is None else near)
        return replace(found, temperature=self.heat, prior=prior)

    def bound(self, multipliers: Array, slack: float, start: Array | None) -> float:
        weights = np.where(self.prior > 0.0, np.maximum(multipliers, 0.0), 0.0)
        weights = weights / weights.sum() if weights.any() else self.prior
        cost = self.heat * divergence(weights, self.prior)
        least = self.problem.least_weighted(weights, start) - cost
        return least - 8 * EPS * (self.affine.scale + cost)

    def weights_at(self, measures: Array, weights: Array) -> Array:
        return self.weights_of(measures)

    def plain_multipliers(self) -> Array:
        return self.weights_of(self.affine.of_losses(self.problem.least_losses))

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """The value itself, which is smooth whatever the state."""
        weights = self.weights_of(measures)
        roots = np.sqrt(weights)
        factor = (np.diag(roots) - np.outer(weights, roots)) / np.sqrt(self.heat)
        return weights, self.value(measures), factor

    def point_cost(self, point: Array) -> float:
        """What a point of the simplex costs in the dual, with its rounding."""
        cost = self.heat * divergence(point, self.prior)
        return cost + 8 * EPS * cost


class _SoftWithinBudget(_WithinBudget, SoftMinMax):
    """`SoftMinMax` with a limited total loss."""

    name = "soft max_extra_loss"


class LeastLoss(Criterion):
    """Minimise the total loss under a condition on the measures.

    Searches use values ``loss_weights . e``, in the units of the measures.
    """

    minimises_loss = True
    plain_reason = "the least total loss of all meets the criterion"

    @abstractmethod
    def cost(self, weights: Array) -> float:
        """What the condition takes from the value of the dual."""

    @abstractmethod
    def nearest(self) -> Criterion:
        """What is minimised to come as near to the condition as can be, within the tolerance."""

    @abstractmethod
    def relaxed_by(self, amount: float) -> LeastLoss:
        """The same with a violation of this amount allowed."""

    def judge(self, measures: Array, total_loss: float) -> Judgement:
        reached = max(self.nearest().value(measures), 0.0)
        allowed, slack = self.tolerance + self.negligible(measures), reached - self.tolerance
        return Judgement(total_loss, reached, reached <= allowed, max(slack, 0.0), allowed)

    def violation(self, measures: Array) -> float:
        """How far the measures are from the condition: positive if they violate it."""
        return self.nearest().value(measures) - self.tolerance

    def violation_bound(self, multipliers: Array) -> float:
        return self.nearest().bound(multipliers, 0.0, None)

    def is_impossible(self, nearest: float) -> bool:
        """Whether a bound on the value of `nearest` proves that no subspace is near enough."""
        return nearest - self.tolerance > self.problem.negligible_spread

    def is_met(self, measures: Array, share: float = 1.0) -> bool:
        """Whether the violation is at most this share of what is negligible."""
        return self.violation(measures) <= share * self.negligible(measures)

    def negligible(self, measures: Array) -> float:
        """The violation that counts as none."""
        return max(self.problem.negligible_spread, CLOSED_GAP * float(np.abs(measures).max()))

    @property
    def scale(self) -> float:
        return self.problem.loss_scale / self.affine.loss_unit

    @cached_property
    def limit(self) -> float:  # type: ignore[override]
        """No measure exceeds its constant, as no group keeps a negative variance."""
        most = float(self.affine.loss_weights @ self.affine.constants)
        return most + _CLEARLY * self.scale

    def value(self, measures: Array) -> float:
        # Half of what is negligible, so that what was found counts as met when it is judged.
        met = self.is_met(measures, 0.5)
        return float(self.affine.loss_weights @ measures) if met else np.inf

    def shortfall(self, measures: Array) -> float:
        return self.violation(measures)

    def enough(self, bound: float, gap: float = CLOSED_GAP) -> float:
        total = abs(self.affine.base / self.affine.loss_unit + bound)
        return bound + max(gap * total, ACCURACY * self.scale)

    def shown(self, value: float) -> float:
        return self.affine.base + self.affine.loss_unit * value

    def multipliers(self, weights: Array) -> Array:
        return weights * self.affine.loss_unit - self.affine.weights

    def weights_from(self, multipliers: Array) -> Array:
        return self.affine.loss_weights + multipliers / self.affine.loss_unit

    def plain_multipliers(self) -> Array:
        return np.zeros(len(self.affine.weights))

    def violation_proof(self, measures: Array) -> Array | None:
        violated = self.violation(measures) > self.problem.negligible_spread
        return self.nearest().weights_at(measures, measures) if violated else None

    @property
    def _base(self) -> float:
        """The total loss at measures of zero, less what rounding can make of it."""
        return self.affine.base - 4 * EPS * self.problem.loss_scale


class Equal(LeastLoss):
    """Minimise the total loss among subspaces in which all groups have the same measure.

    The definition of Kamani et al. (2022). For two groups it agrees with `MinMax`; for more, such
    a subspace need not exist, and may leave every group worse off than ordinary PCA.

    Parameters
    ----------
    tolerance : float, default=0.0
        How far apart the measures of two groups may lie, in their units.
    measure : str, default="disparity"
        The quantity that fairness is judged on: see `MinMax`.

    See Also
    --------
    fairpca.FairPCA : Takes it as `criterion`.

    Examples
    --------
    >>> from fairpca import Equal, FairPCA
    >>> FairPCA(2, criterion=Equal(tolerance=0.1))
    FairPCA(criterion=Equal(tolerance=0.1), n_components=2)
    """

    name = "equal"
    has_root = adapts_to_chance = has_rivals = True
    findings: ClassVar[dict[str, str]] = {
        "optimal": "Proven optimal: all groups have {within} at a total loss of {loss}, and no "
        "subspace of this dimension that does the same loses less.",
        "bounded": "All groups have {within}, at a total loss of {loss}; no subspace of this "
        "dimension that does the same can lower it by more than {gap} %.",
        "infeasible": "Proven impossible: in every subspace of this dimension the {plural} of two "
        "groups differ by at least {least_violation}. The smallest difference that was found is "
        "{spread}.",
        "unresolved": "No subspace of this dimension with {within} was found, and none is proven "
        "impossible. The smallest difference that was found is {spread}.",
        "relaxed": "{Plural} differ by {spread} at a total loss of {at_most}; a subspace of {r} "
        "dimensions in which they differ by no more loses at least {at_least}.",
    }

    def __init__(self, tolerance: float = 0.0, measure: str = "disparity") -> None:
        super().__init__(measure)
        self.tolerance = tolerance

    def validate(self, moments: GroupMoments | None = None) -> None:
        super().validate(moments)
        check_number("tolerance", self.tolerance, least=0.0)

    def cost(self, weights: Array) -> float:
        over = np.maximum(weights - self.affine.loss_weights, 0.0)
        return self.tolerance * float(over.sum())

    def nearest(self) -> Criterion:
        return self.of_kind(_Spread)

    def relaxed_by(self, amount: float) -> LeastLoss:
        return self.of_kind(type(self), tolerance=self.tolerance + amount)

    def domain(self, near: Array | None = None, unit: float = 1.0) -> Domain:
        weights = self.affine.loss_weights
        k = len(weights)
        if self.tolerance == 0.0:
            # Free multipliers that sum to zero: an orthonormal basis of that hyperplane.
            plane = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, :-1]]))[0][:, 1:]
            start = np.zeros(k - 1) if near is None else plane.T @ (near - weights)
            free = np.zeros(k - 1), np.zeros((0, k - 1)), start
            return Domain(weights, plane, *free, bounded=False)
        cost = np.concatenate([np.full(k, self.tolerance), np.zeros(k)])
        balance = np.concatenate([np.ones(k), -np.ones(k)])[None]
        start = np.full(2 * k, weights.mean())
        if near is not None:
            multipliers = near - weights
            parts = np.concatenate([np.maximum(multipliers, 0.0), np.maximum(-multipliers, 0.0)])
            # As far from the boundary as the barrier of a warm start keeps what is not needed.
            start = parts + min(WARM_MU * unit / self.tolerance, float(weights.mean()))
        directions = np.hstack([np.eye(k), -np.eye(k)])
        return Domain(weights, directions, cost, balance, start, signed=True)

    def bound(self, multipliers: Array, slack: float, start: Array | None) -> float:
        values = multipliers - multipliers.mean()
        cost = (self.tolerance + slack) * float(np.maximum(values, 0.0).sum())
        least = self.problem.least_weighted(self.affine.weights + values, start)
        return self._base + least - cost

    def missed(self, measures: Array) -> Array:
        """From the band as wide as the tolerance around which they lie."""
        middle = (measures.max() + measures.min()) / 2
        if self.tolerance == 0.0:
            middle = measures.mean()
        half = self.tolerance / 2
        return measures - np.clip(measures, middle - half, middle + half)

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """Soft-threshold the shifted multipliers so that they sum to zero."""
        weights = self.affine.loss_weights
        target = state - weights + rho * (measures - measures.mean())
        dead = rho * self.tolerance
        level = target.mean() if dead == 0.0 else _balance(target, dead)
        over, under = np.maximum(target - level - dead, 0.0), np.minimum(target - level, 0.0)
        multipliers = over + under
        moved = weights + multipliers
        value = float(moved @ measures - self.tolerance * over.sum())
        value -= float(np.square(moved - state).sum()) / (2 * rho)
        active = np.ones(len(state), dtype=bool) if dead == 0.0 else multipliers != 0
        return moved, value, _centred(active, rho)


class AtMost(LeastLoss):
    """Minimise the total loss among subspaces in which no group's measure exceeds its bound.

    Parameters
    ----------
    bounds : float, mapping or array-like of shape (k,)
        One number for all groups, one for each in the order of ``group_table_.labels``, or some by
        label, which leaves the other groups without a bound. With ``measure="kept_variance"`` and
        "share_kept" they are lower bounds on what each group keeps.
    measure : str, default="disparity"
        The quantity that is bounded: see `MinMax`.

    See Also
    --------
    fairpca.FairPCA : Takes it as `criterion`.

    Examples
    --------
    >>> from fairpca import AtMost, FairPCA
    >>> FairPCA(2, criterion=AtMost({"Female": 0.6}))
    FairPCA(criterion=AtMost(bounds={'Female': 0.6}), n_components=2)
    """

    name = "bounds"
    plain_reason = "the least total loss of all meets the bounds"
    findings: ClassVar[dict[str, str]] = {
        "optimal": "Proven optimal: all bounds are met at a total loss of {loss}, and no subspace "
        "of this dimension that does the same loses less.",
        "bounded": "All bounds are met, at a total loss of {loss}; no subspace of this dimension "
        "that does the same can lower it by more than {gap} %.",
        "infeasible": "Proven impossible: in every subspace of this dimension some group misses "
        "its bound by at least {least_violation}. Here none misses it by more than {violation}, "
        "the smallest that was found.",
        "unresolved": "No subspace of this dimension that meets all bounds was found, and none is "
        "proven impossible. Here none misses it by more than {violation}, the smallest that was "
        "found.",
    }

    def __init__(self, bounds: Any, measure: str = "disparity") -> None:
        super().__init__(measure)
        self.bounds = bounds

    def validate(self, moments: GroupMoments | None = None) -> None:
        super().validate(moments)
        if moments is not None:
            self._per_group(moments)

    def _per_group(self, moments: GroupMoments) -> Array:
        kept, names = self.measured.is_kept, moments.group_names
        other = 0.0 if kept else np.inf
        numbers = per_group(moments.labels, "bounds", self.bounds, names, other)
        if kept and not np.isfinite(numbers).all():
            raise ValueError(f"bounds on what groups keep must be finite, got {self.bounds!r}.")
        return numbers

    def for_groups(self, problem: Problem, some: NDArray[np.bool_]) -> Criterion:
        """The same for some of the groups of a problem."""
        bounds = self._per_group(problem.moments)
        return self.of_kind(type(self), bounds=bounds[some])

    def applied_to(self, problem: Problem, affine: AffineMeasure) -> Criterion:
        bounds = self._per_group(problem.moments)
        # No group keeps a negative variance, so no measure exceeds this limit.
        most = affine.constants + affine.scale
        upper_bounds = np.minimum(self.measured.sign * bounds, most)
        return self.of_kind(type(self), problem=problem, affine=affine, upper_bounds=upper_bounds)

    upper_bounds: Array
    """What no measure may exceed; (k,)."""

    def cost(self, weights: Array) -> float:
        return float(self.upper_bounds @ (weights - self.affine.loss_weights))

    def nearest(self) -> Criterion:
        return self.of_kind(_LargestExcess)

    def relaxed_by(self, amount: float) -> LeastLoss:
        return self.of_kind(type(self), upper_bounds=self.upper_bounds + amount)

    def domain(self, near: Array | None = None, unit: float = 1.0) -> Domain:
        weights = self.affine.loss_weights
        k = len(weights)
        start = np.full(k, weights.mean())
        if near is not None:
            start = np.maximum(near - weights, 0.0) + WARM_MU * start
        return Domain(weights, np.eye(k), self.upper_bounds, np.zeros((0, k)), start)

    def bound(self, multipliers: Array, slack: float, start: Array | None) -> float:
        positive = np.maximum(multipliers, 0.0)
        least = self.problem.least_weighted(self.affine.weights + positive, start)
        return self._base + least - float(positive @ (self.upper_bounds + slack))

    def missed(self, measures: Array) -> Array:
        """What exceeds the bounds."""
        return np.maximum(measures - self.upper_bounds, 0.0)

    def start(self, weights: Array) -> Array:
        """As they are, but none below that of the total loss."""
        return np.maximum(weights, self.affine.loss_weights)

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """Multipliers grow with the excess, and are not negative."""
        weights, excess = self.affine.loss_weights, measures - self.upper_bounds
        multipliers = np.maximum(state - weights + rho * excess, 0.0)
        moved = weights + multipliers
        value = float(moved @ measures - multipliers @ self.upper_bounds)
        value -= float(np.square(moved - state).sum()) / (2 * rho)
        return moved, value, np.sqrt(rho) * np.eye(len(state))[:, multipliers > 0]


class _Average(Criterion):
    """Minimise a weighted mean of the measures, which takes one eigenproblem."""

    @property
    def shares(self) -> Array:
        """The weights of the groups, which sum to one."""
        return np.asarray(self.affine.weights / self.affine.weights.sum())

    def value(self, measures: Array) -> float:
        return float(self.shares @ measures)

    def judge(self, measures: Array, total_loss: float) -> Judgement:
        return Judgement(self.value(measures))

    def direct_basis(self) -> Array | None:
        return self.problem.weighted_basis(self.shares / self.affine.units)

    def domain(self, near: Array | None = None, unit: float = 1.0) -> Domain:
        return Domain.at(self.shares)

    def bound(self, multipliers: Array, slack: float, start: Array | None) -> float:
        """Whatever the multipliers: the weights are known."""
        rounding = 4 * EPS * self.affine.scale
        return self.problem.least_weighted(self.shares, start) - rounding

    def plain_multipliers(self) -> Array:
        return self.shares

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        return self.shares, self.value(measures), np.zeros((len(measures), 0))


class _SoftWithoutLimit(_Average, SoftMinMax):
    """`SoftMinMax` at an infinite temperature: ordinary PCA."""

    def direct_basis(self) -> Array | None:
        return self.problem.least_loss_basis


class Balanced(_Average):
    """Minimise the mean of the groups' losses: each group weighs the same, whatever its size.

    This takes one eigenproblem: PCA with rows reweighted so that all groups count alike, measured
    from the mean of all rows. It is what practitioners often do, and ignores which group is worst
    off.

    See Also
    --------
    fairpca.FairPCA : Takes it as `criterion`.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> FairPCA(2, criterion="balanced")
    FairPCA(criterion='balanced', n_components=2)
    """

    name = "balanced"
    measure = "loss"
    findings: ClassVar[dict[str, str]] = {
        "optimal": "Proven optimal: the mean of the groups' losses is {at_most}, and no subspace "
        "of this dimension has a smaller one.",
        "bounded": "The mean of the groups' losses is {at_most}; no subspace of this dimension has "
        "a smaller one than {at_least}.",
        "relaxed": "The mean of the groups' losses is {at_most}; in a subspace of {r} dimensions "
        "it is at least {at_least}.",
    }

    def __init__(self) -> None:
        pass

    @property
    def shares(self) -> Array:
        return np.full(len(self.affine.weights), 1.0 / len(self.affine.weights))


class _LargestExcess(MinMax):
    """Minimise the largest excess over upper bounds: how near any subspace comes to `AtMost`."""

    name = "excess"
    has_root = covers_mixtures = False
    upper_bounds: Array

    def value(self, measures: Array) -> float:
        return super().value(measures - self.upper_bounds)

    def enough(self, bound: float, gap: float = CLOSED_GAP) -> float:
        # A subspace within the bounds is near enough.
        return max(bound * (1.0 + gap), 0.0) + self.problem.negligible_spread / 2

    def domain(self, near: Array | None = None, unit: float = 1.0) -> Domain:
        return replace(super().domain(near, unit), cost=self.upper_bounds)

    def bound(self, multipliers: Array, slack: float, start: Array | None) -> float:
        """On the largest excess: the positive parts are scaled to sum to one."""
        positive = np.maximum(multipliers, 0.0)
        size = float(positive.sum())
        if size == 0.0:
            return 0.0
        least = self.problem.least_weighted(positive, start)
        return (least - float(positive @ self.upper_bounds)) / size

    def weights_at(self, measures: Array, weights: Array) -> Array:
        return super().weights_at(measures - self.upper_bounds, weights)

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        return super().smooth(measures - self.upper_bounds, state, rho)


class _Spread(MinMax):
    """Minimise the spread, of which the tolerance is enough: how near any comes to `Equal`.

    The dual state are two points of the simplex: the weights of the largest measure, and those of
    the largest of all with a minus sign.
    """

    name = "spread"
    has_root = covers_mixtures = False

    def value(self, measures: Array) -> float:
        return float(np.ptp(measures))

    def enough(self, bound: float, gap: float = CLOSED_GAP) -> float:
        return max(bound * (1.0 + gap), self.tolerance) + self.problem.negligible_spread

    def domain(self, near: Array | None = None, unit: float = 1.0) -> Domain:
        """The difference of two points of the simplex."""
        k = len(self.affine.weights)
        balance = np.zeros((2, 2 * k))
        balance[0, :k] = balance[1, k:] = 1.0
        start = np.full(2 * k, 1.0 / k)
        if near is not None:
            parts = np.array([np.maximum(near, 0.0), np.maximum(-near, 0.0)])
            parts /= parts.sum(axis=1, keepdims=True)
            start = (1.0 - WARM_MU) * parts.ravel() + WARM_MU * start
        directions = np.hstack([np.eye(k), -np.eye(k)])
        return Domain(np.zeros(k), directions, np.zeros(2 * k), balance, start)

    def bound(self, multipliers: Array, slack: float, start: Array | None) -> float:
        """On the spread: the multipliers less their mean, positive parts scaled to sum to one."""
        values = multipliers - multipliers.mean()
        size = float(np.maximum(values, 0.0).sum())
        if size == 0.0:
            return 0.0
        return self.problem.least_weighted(values, start) / size

    def weights_at(self, measures: Array, weights: Array) -> Array:
        """1 for the group with the largest measure, -1 for that with the smallest."""
        groups = np.eye(len(measures))
        return np.asarray(groups[measures.argmax()] - groups[measures.argmin()])

    def start(self, weights: Array) -> Array:
        """Two points of the simplex whose difference is near the weights, scaled."""
        size = max(float(np.maximum(weights, 0.0).sum()), np.finfo(float).tiny)
        return np.array([project_on_simplex(weights / size), project_on_simplex(-weights / size)])

    def net(self, state: Array) -> Array:
        """Weight of the largest minus that of the smallest."""
        return np.asarray(state[0] - state[1])

    def smooth(self, measures: Array, state: Array, rho: float) -> Smooth:
        """Project both points on the simplex."""
        largest, most, first = super().smooth(measures, state[0], rho)
        smallest, least, second = super().smooth(-measures, state[1], rho)
        return np.array([largest, smallest]), most + least, np.hstack([first, second])


CRITERIA: dict[str, type[Criterion]] = {
    "soft": SoftMinMax,
    "minmax": MinMax,
    "equal": Equal,
    "balanced": Balanced,
}
"""The criteria that work without parameters, by the name that `FairPCA` takes."""


def as_criterion(given: Any, moments: GroupMoments | None = None) -> Criterion:
    """The criterion of a name, or the object itself, validated; ValueError for anything else."""
    if isinstance(given, str) and given in CRITERIA:
        return CRITERIA[given]()
    if isinstance(given, type) and issubclass(given, Criterion):
        parameters = signature(given).parameters.values()
        needed = ", ".join(one.name for one in parameters if one.default is one.empty)
        raise ValueError(
            f"criterion must be an instance, not the class {given.__name__}: write "
            f"criterion={given.__name__}({needed})."
        )
    if not isinstance(given, Criterion):
        names = ", ".join(map(repr, CRITERIA))
        raise ValueError(
            f"criterion must be one of {names}, or an object such as AtMost(0.5), got {given!r}."
        )
    given.validate(moments)
    return given


def divergence(weights: Array, prior: Array) -> float:
    """Kullback and Leibler's divergence of weights from a prior, both of which sum to one."""
    # Of nearly equal weights from their differences, as logarithms of ratios would cancel.
    near = np.abs(weights - prior) < prior / 2.0
    more = np.where(near, weights - prior, 0.0) / np.where(near, prior, 1.0)
    small = prior * ((1.0 + more) * np.log1p(more) - more)
    return float(np.where(near, small, kl_div(weights, prior)).sum())


def project_on_simplex(point: Array) -> Array:
    """The nearest point with non-negative entries that sum to one."""
    point = point - point.max()  # so that one is not lost beside large numbers
    falling = np.sort(point)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(point) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    return np.asarray(np.maximum(point - excess[last], 0.0))


def _simplex(k: int, near: Array | None) -> Domain:
    start = np.full(k, 1.0 / k)
    if near is not None:
        start = (1.0 - WARM_MU) * near / near.sum() + WARM_MU * start
    return Domain(np.zeros(k), np.eye(k), np.zeros(k), np.ones((1, k)), start, simplex=True)


def _balance(target: Array, dead: float) -> float:
    """The level at which what lies above level + dead equals what lies below level."""
    breaks = np.sort(np.concatenate([target, target - dead]))
    above = np.maximum(target[None] - breaks[:, None] - dead, 0.0).sum(axis=1)
    below = np.maximum(breaks[:, None] - target[None], 0.0).sum(axis=1)
    rest = above - below  # falls from positive to negative; linear between the breaks
    return float(np.interp(0.0, -rest, breaks))


def _centred(active: NDArray[np.bool_], rho: float) -> Array:
    """Factor of rho times the projector on what sums to zero over the active groups."""
    projector = np.diag(active.astype(float))
    projector -= np.outer(active, active) / max(int(active.sum()), 1)
    return np.asarray(np.sqrt(rho) * projector[:, active])

"""The constrained form: least total loss with every group's disparity below a given number."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_seed, check_whole_number
from fairpca._rows.text import label_text
from fairpca.exceptions import FairnessWarning
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._conclude import conclude
from fairpca.solvers._exact.criteria import Ceiling, Criterion, MinMax
from fairpca.solvers._exact.domains import ceiling_domain, minmax_domain
from fairpca.solvers._exact.dual import DualResult, maximise_dual
from fairpca.solvers._exact.local import LocalResult
from fairpca.solvers._exact.multistart import CLOSED_GAP, MultiStart, loss_limit, own_total
from fairpca.solvers._per_group import per_group
from fairpca.solvers.exact import search_space

_WITHIN = "least total loss found within the bounds"


@dataclass(frozen=True)
class EpsilonConstraint:
    """Minimise the total loss subject to ``E_i <= epsilon_i`` for every group.

    One of the two relaxations that Kamani et al. argue against (their equation 8, after Donini et
    al., 2018): the bounds have to be chosen by hand, and nothing makes the disparities equal.
    It is solved on the manifold of subspaces by an augmented Lagrangian, from the solution of
    the convex relaxation and from random starts; ``history`` has the dual bound and the gap.

    Parameters
    ----------
    epsilon : float, mapping or array-like of shape (k,), default=None
        Largest disparity of each group: one number for all, or one for each, by label or in the
        order of the sorted labels. None is the mean of the groups' disparities with ordinary PCA,
        so that those above it have to fall. When no subspace within the bounds is found, the one
        found to exceed them least is returned, with a warning.
    n_starts : int, default=10
        The most starts of the local search; it stops at the first that closes the gap. With more
        than 300 columns it also ends after eight starts in a row that bring nothing.
    random_state : int or None, default=None
        Seed of the random starts. None is a fixed seed too.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.solvers import EpsilonConstraint
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> fair = FairPCA(2, solver=EpsilonConstraint([8.0, 9.0])).fit(X, sensitive_features=groups)
    >>> bool((fair.group_table_.disparity <= [8.0 + 1e-9, 9.0 + 1e-9]).all())
    True
    """

    epsilon: Any = None
    n_starts: int = 10
    random_state: int | None = None

    name = "epsilon-constraint"

    def __post_init__(self) -> None:
        check_whole_number("n_starts", self.n_starts)
        check_seed(self.random_state)

    def solve(self, problem: Problem) -> Solution:
        """Find the subspace, bound its loss and certify it."""
        epsilon = self._bounds(problem)
        run = _ConstrainedRun(problem, epsilon, self)
        found = run.find()
        over = problem.disparities(found.basis) - epsilon
        excess = float(over.max())
        if found.bound is None:
            worst = label_text(problem.moments.labels[int(over.argmax())])
            warnings.warn(
                f"{self.name}: {found.message} ({worst!r} is {excess:.3g} above its bound).",
                FairnessWarning,
                stacklevel=4,
            )
        gap = None if found.bound is None else problem.total_loss(found.basis) - found.bound
        return conclude(
            self,
            problem,
            found.basis,
            message=found.message,
            n_iter=sum(record["steps"] for record in run.search.history),
            n_eigen=run.n_eigen,
            epsilon=epsilon,
            excess=max(excess, 0.0),
            bound=found.bound,
            gap=None if gap is None else max(gap, 0.0),
        )

    def _bounds(self, problem: Problem) -> Array:
        if self.epsilon is None:
            mean = float(problem.disparities(problem.pca_basis).mean())
            return np.full(problem.n_groups, max(mean, 0.0))
        # No disparity exceeds what a group can keep; a number replaces an infinite bound.
        return np.minimum(
            per_group(problem, "epsilon", self.epsilon), problem.own_gains + problem.scale
        )


@dataclass(frozen=True, eq=False)
class _Finding:
    """A basis, a lower bound of its total loss if it meets the bounds, and how it was found."""

    basis: Array
    bound: float | None
    message: str


class _ConstrainedRun:
    """One run on one problem."""

    def __init__(self, problem: Problem, epsilon: Array, solver: EpsilonConstraint) -> None:
        self.problem, self.epsilon = problem, epsilon
        self.search = MultiStart(problem, solver.n_starts, solver.random_state, [], near=False)
        self.n_eigen = problem.n_groups + 1

    def find(self) -> _Finding:
        problem = self.problem
        plain = problem.least_loss_basis
        if self._is_met(problem.disparities(plain)):
            message = "the least total loss of all meets the bounds"
            return _Finding(plain, problem.total_loss(plain), message)
        self.space = search_space(problem)
        found = self._searched(self.epsilon)
        self.n_eigen = self.space.n_eigen
        return found

    def _searched(self, epsilon: Array) -> _Finding:
        problem, limit = self.problem, loss_limit(self.problem)
        dual = self.space.settle(
            lambda forms: maximise_dual(forms, ceiling_domain(forms, epsilon), limit)
        )
        bound = own_total(problem) + dual.value
        if not dual.above_limit:
            found = self._best(Ceiling(problem.weights, epsilon), dual, self._value)
            if self._is_met(found.disparities):
                return _Finding(found.basis, bound, _WITHIN)
        excess = self.space.settle(
            lambda forms: maximise_dual(forms, minmax_domain(forms, epsilon))
        )
        nearest = self._best(MinMax(epsilon), excess, lambda e: float((e - epsilon).max()))
        if self._is_met(problem.disparities(nearest.basis)) and not dual.above_limit:
            return _Finding(nearest.basis, bound, _WITHIN)
        impossible = excess.value > problem.negligible_spread
        proven = "no subspace meets" if impossible else "found no subspace within"
        message = f"{proven} the bounds; the smallest excess found is returned"
        return _Finding(nearest.basis, None, message)

    def _is_met(self, disparities: Array) -> bool:
        return bool((disparities <= self.epsilon + self.problem.negligible_spread).all())

    def _value(self, disparities: Array) -> float:
        return float(self.problem.weights @ disparities) if self._is_met(disparities) else np.inf

    def _best(
        self, criterion: Criterion, dual: DualResult, value: Callable[[Array], float]
    ) -> LocalResult:
        close = dual.value + CLOSED_GAP * self.problem.scale
        return self.search.best(self.space, criterion, dual, value=value, enough=close)

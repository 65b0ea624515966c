"""The two relaxations that Kamani et al. argue against: bounded and weighted disparities."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca.criteria import AtMost
from fairpca.exceptions import FairnessWarning
from fairpca.groups import per_group
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers.conclude import conclude
from fairpca.solvers.exact import ExactSolver
from fairpca.validation import check_seed, check_whole_number


@dataclass(frozen=True)
class EpsilonConstraint:
    """Minimise the total loss subject to ``E_i <= epsilon_i`` for every group.

    One of the two relaxations that Kamani et al. argue against (their equation 8, after Donini et
    al., 2018): the bounds have to be chosen by hand, and nothing makes the disparities equal. It is
    what the criterion `AtMost` asks for, judged by the problem's own criterion, as other published
    methods are; ``history`` has the dual bound and the gap.

    Parameters
    ----------
    epsilon : float, mapping or array-like of shape (k,), default=None
        Largest disparity of each group: one number for all, or one for each, by label or in the
        order of the sorted labels. None is the mean of the groups' disparities with ordinary PCA,
        so that those above it have to fall. When no subspace within the bounds is found, the one
        found to exceed them least is returned, with a warning.
    n_starts : int, default=10
        The most starts of the local search: see `ExactSolver`.
    random_state : int or None, default=None
        Seed of the random starts. None is a fixed seed too.

    See Also
    --------
    fairpca.solvers.Lagrangian : The weighted form.

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
    has_own_criterion = True

    def __post_init__(self) -> None:
        check_whole_number("n_starts", self.n_starts)
        check_seed(self.random_state)

    def solve(self, problem: Problem) -> Solution:
        """Find the subspace, bound its loss and certify it."""
        epsilon = self.epsilon
        if epsilon is None:
            mean = float(problem.disparities(problem.pca_basis).mean())
            epsilon = np.full(problem.n_groups, max(mean, 0.0))
        goal = AtMost(epsilon, problem.goal.measure)
        bounded = problem.with_criterion(goal)
        found = ExactSolver(self.n_starts, self.random_state).solve(bounded)
        certificate = found.certificate
        met = certificate.status in ("optimal", "bounded")
        if not met:
            warnings.warn(f"{self.name}: {certificate}", FairnessWarning, stacklevel=4)
        return conclude(
            self,
            problem,
            found.basis,
            message=found.message,
            n_iter=found.n_iter,
            n_eigen=found.n_eigen,
            epsilon=goal.applied_to(bounded, bounded.affine).upper_bounds,
            excess=certificate.violation,
            bound=certificate.lower_bound if met else None,
            gap=certificate.gap if met else None,
        )


@dataclass(frozen=True)
class Lagrangian:
    """Minimise ``L(U) + sum_i multipliers_i * E_i(U)``: ordinary PCA with groups weighted anew.

    One of the two relaxations that Kamani et al. argue against (their section 4.1): the right
    multipliers are as hard to find as the solution. With any given ones the minimum is the global
    one, of a problem that need not be the one meant.

    Parameters
    ----------
    multipliers : float, mapping or array-like of shape (k,), default=None
        Non-negative weights of the groups' disparities: one number for all, or one for each, by
        label or in the order of the sorted labels. None is 1 for every group, so that each counts
        as much as the total loss.

    See Also
    --------
    fairpca.solvers.EpsilonConstraint : The constrained form.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.solvers import Lagrangian
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> fair = FairPCA(2, solver=Lagrangian({"a": 5.0, "b": 0.0})).fit(X, sensitive_features=groups)
    >>> bool(fair.group_table_.disparity[0] < fair.group_table_.pca_disparity[0])
    True
    """

    multipliers: Any = None

    name = "lagrangian"
    has_own_criterion = True

    def solve(self, problem: Problem) -> Solution:
        """Solve the weighted PCA and certify the result."""
        given = np.ones(problem.n_groups)
        if self.multipliers is not None:
            given = per_group(problem.moments.labels, "multipliers", self.multipliers)
        if not np.isfinite(given).all():
            raise ValueError(f"multipliers must be finite, got {self.multipliers!r}.")
        basis = problem.weighted_basis(problem.weights + given)
        value = problem.total_loss(basis) + float(given @ problem.disparities(basis))
        found: dict[str, Any] = {"multipliers": given, "objective": value}
        return conclude(self, problem, basis, message="one weighted PCA", n_iter=1, **found)

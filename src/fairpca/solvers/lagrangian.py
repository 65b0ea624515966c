"""Lagrangian scalarisation: the groups' disparities added to the total loss, with given weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.dense import leading_eigenpairs
from fairpca.groups import per_group
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers.conclude import conclude


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

    def solve(self, problem: Problem) -> Solution:
        """Solve the weighted PCA and certify the result."""
        given = np.ones(problem.n_groups)
        if self.multipliers is not None:
            given = per_group(problem.moments.labels, "multipliers", self.multipliers)
        if not np.isfinite(given).all():
            raise ValueError(f"multipliers must be finite, got {self.multipliers!r}.")
        matrix = problem.weighted_sum(problem.weights + given)
        basis = leading_eigenpairs(matrix, problem.n_components)[1]
        value = problem.total_loss(basis) + float(given @ problem.disparities(basis))
        found: dict[str, Any] = {"multipliers": given, "objective": value}
        return conclude(self, problem, basis, message="one weighted PCA", n_iter=1, **found)

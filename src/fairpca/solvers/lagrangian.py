"""Lagrangian scalarisation: the groups' disparities added to the total loss, with given weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairpca._validation import check_seed
from fairpca.linalg import leading_eigenpairs
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._conclude import conclude


@dataclass(frozen=True)
class Lagrangian:
    """Minimise ``L(U) + sum_i multipliers_i * E_i(U)``: ordinary PCA with groups weighted anew.

    One of the two relaxations that Kamani et al. argue against (their section 3.1): the right
    multipliers are as hard to find as the solution. With any given ones the minimum is the global
    one, of a problem that need not be the one meant.

    Parameters
    ----------
    multipliers : array-like of shape (k,), default=None
        Non-negative weights of the groups' disparities, in the order of the sorted labels; None is
        1 for every group, so that each counts as much as the total loss.
    random_state : int or None, default=None
        Ignored: nothing is random.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.solvers import Lagrangian
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> fair = FairPCA(2, solver=Lagrangian([5.0, 0.0])).fit(X, sensitive_features=groups)
    >>> bool(fair.group_table_.disparity[0] < fair.group_table_.pca_disparity[0])
    True
    """

    multipliers: ArrayLike | None = None
    random_state: int | None = None

    name = "lagrangian"

    def __post_init__(self) -> None:
        check_seed(self.random_state)

    def solve(self, problem: Problem) -> Solution:
        """Solve the weighted PCA and certify the result."""
        k = problem.n_groups
        given = np.ones(k) if self.multipliers is None else np.asarray(self.multipliers, float)
        if given.shape != (k,) or not (np.isfinite(given).all() and (given >= 0).all()):
            raise ValueError(
                f"multipliers must be one non-negative number for each of the {k} groups, got "
                f"{self.multipliers!r}."
            )
        basis = leading_eigenpairs(problem.combine(problem.weights + given), problem.n_components)[
            1
        ]
        value = problem.total_loss(basis) + float(given @ problem.disparities(basis))
        return conclude(
            problem,
            basis,
            solver=self.name,
            message="one weighted PCA",
            n_iter=1,
            n_eigen=k + 1,
            history={"multipliers": given, "objective": value},
        )

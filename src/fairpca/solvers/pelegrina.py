"""u-FPCA and c-FPCA of Pelegrina and Duarte: a search over one weight between two groups."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.constants import golden

from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import NEGLIGIBLE, Array
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers.conclude import conclude

_RATIO = 1.0 / golden

_LAST_WIDTH = 1e-6
"""Width of the interval at which the search ends."""


@dataclass(frozen=True)
class PelegrinaFPCA:
    """Search for the weight at which the losses of two groups differ least.

    With A the second moment of all rows and ``D = A_worse - A_better``, where "worse" is the group
    that loses more with ordinary PCA, the subspaces searched are those of ordinary PCA on
    ``weight * A + (1 - weight) * D`` (Pelegrina and Duarte, "A Novel Approach for Fair Principal
    Component Analysis Based on Eigendecomposition", 2024). The search minimises the
    difference of the losses (the paper squares it); it does not limit what that costs.

    Golden-section search finds the minimum of a function with one valley. This function need not
    have one: it jumps where two eigenvalues cross, and several weights can give a local minimum.

    Parameters
    ----------
    constrained : bool, default=False
        Whether no group may lose more than the worse one does with ordinary PCA (c-FPCA), or not
        (u-FPCA).

    See Also
    --------
    fairpca.ExactSolver : Finds the fairest subspace, with a proof.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> fair = FairPCA(2, solver="u-fpca").fit(X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> bool(np.ptp(fair.group_table_.loss) < 1e-2)
    True
    """

    constrained: bool = False

    has_own_criterion = True

    @property
    def name(self) -> str:
        """Name in `SOLVERS`."""
        return "c-fpca" if self.constrained else "u-fpca"

    def solve(self, problem: Problem) -> Solution:
        """Search for the weight and certify the subspace."""
        if problem.n_groups > 2:
            raise ValueError(
                f"{self.name} is a method for two groups, and there are {problem.n_groups}: "
                "choose another solver, such as 'exact', or merge groups."
            )
        path = _Path(problem, constrained=self.constrained)
        if problem.n_groups == 2:
            path.golden_section(0.0, 1.0)
        found: dict[str, Any] = {"weight": path.weight, "difference": path.value}
        message = f"weight {path.weight:.6g}"
        return conclude(self, problem, path.basis, message=message, n_iter=path.n_eigen, **found)


class _Path:
    """Subspaces by weight, and the best one seen; ordinary PCA, at weight 1, is the first."""

    def __init__(self, problem: Problem, *, constrained: bool) -> None:
        self.problem, self.constrained = problem, constrained
        self.n_eigen = 0
        self.value, self.weight, self.basis = np.inf, 1.0, problem.least_loss_basis
        losses = problem.traces - problem.kept(self.basis)
        self.ceiling = float(losses.max()) * (1 + NEGLIGIBLE)
        worse = int(np.argmax(losses))
        self.total = self.difference = problem.total_matrix
        if problem.n_groups == 2:
            self.difference = problem.matrices[worse] - problem.matrices[1 - worse]
        self._keep(1.0, self.basis)

    def evaluate(self, weight: float) -> float:
        """Difference of the groups at a weight; infinite where the ceiling is broken."""
        matrix = weight * self.total + (1.0 - weight) * self.difference
        self.n_eigen += 1
        return self._keep(weight, leading_eigenpairs(matrix, self.problem.n_components)[1])

    def golden_section(self, low: float, high: float) -> None:
        """Shrink the interval towards the smaller of two inner values; a tie goes to PCA."""
        left, right = high - _RATIO * (high - low), low + _RATIO * (high - low)
        at_left, at_right = self.evaluate(left), self.evaluate(right)
        while high - low > _LAST_WIDTH:
            if at_left < at_right:
                high, right, at_right = right, left, at_left
                left = high - _RATIO * (high - low)
                at_left = self.evaluate(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + _RATIO * (high - low)
                at_right = self.evaluate(right)

    def _keep(self, weight: float, basis: Array) -> float:
        losses = self.problem.traces - self.problem.kept(basis)
        if self.constrained and losses.max() > self.ceiling:
            return np.inf
        value = float(np.ptp(losses))
        if value < self.value:
            self.value, self.weight, self.basis = value, weight, basis
        return value

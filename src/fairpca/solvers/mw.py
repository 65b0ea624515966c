"""Multiplicative weights for the relaxation of Samadi et al. (2018): one eigenproblem a step."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._iterating import Progress, check_stopping, iterate
from fairpca.solvers._rounding import ROUNDINGS
from fairpca.solvers.conclude import conclude, conclude_relaxed
from fairpca.validation import check_choice


@dataclass(frozen=True)
class MultiplicativeWeights:
    """Minimise the largest disparity by raising the weights of groups that lose much, then round.

    Each step solves ordinary PCA with the groups weighted, and multiplies their weights by the
    exponential of their disparities (Samadi et al., 2018). The average of the projectors tends to
    the solution of the semidefinite relaxation. A fixed step can stall far from it, so the step
    adapts by itself: it is AdaHedge's (De Rooij, Van Erven, Grünwald and Koolen, 2014). The
    criterion is "minmax" whatever the problem's is; the certificate answers for the problem's.

    Parameters
    ----------
    rounding : {"lp", "iterative"}, default="lp"
        How the average becomes few dimensions: see `SDPRelaxation`.
    extra_dimensions : bool, default=True
        Whether more than r dimensions may be used: see `SDPRelaxation`.
    iterate : {"average", "last"}, default="average"
        Whether to return the average, rounded, or the last weighted PCA, which has r dimensions
        and no guarantee.
    tol : float, default=1e-4
        Duality gap, relative to tr(A), at which to stop.
    max_iter : int, default=20000
        The most steps; a warning says when they did not suffice.

    See Also
    --------
    fairpca.solvers.SDPRelaxation : The same relaxation by a convex solver.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> fair = FairPCA(2, solver="mw").fit(X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> fair.solution_.history["gap"] < 1e-4 * 28
    True
    """

    rounding: str = "lp"
    extra_dimensions: bool = True
    iterate: str = "average"
    tol: float = 1e-4
    max_iter: int = 20_000

    def __post_init__(self) -> None:
        check_choice("rounding", self.rounding, ROUNDINGS)
        check_choice("iterate", self.iterate, ("average", "last"))
        check_stopping(self.tol, self.max_iter)

    @property
    def name(self) -> str:
        """Name in `SOLVERS`."""
        return "mw" if self.rounding == "lp" else "mw-iterative"

    @property
    def n_steps(self) -> int:
        """The most steps, for progress bars."""
        return self.max_iter

    def solve(self, problem: Problem, progress: Progress | None = None) -> Solution:
        """Approach the relaxation, round it and certify the result."""
        game = _Game(problem)
        message = iterate(self, game.step, problem.scale, progress)
        about: dict[str, Any] = {
            "message": message,
            "n_iter": game.n_steps,
            "relaxed_value": game.value,
            "bound": game.bound,
            "gap": game.gap,
            "weights": game.weights,
            "gaps": np.array(game.gaps),
        }
        if self.iterate == "average":
            return conclude_relaxed(self, problem, game.average, **about)
        assert game.basis is not None
        return conclude(self, problem, game.basis, relaxed=game.average, **about)


class _Game:
    """The groups' weights against the projector that answers them best."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        k, d = problem.n_groups, problem.moments.n_features
        self.weights = np.full(k, 1.0 / k)
        self.average = np.zeros((d, d))
        self.basis: Array | None = None
        self.bound = -np.inf
        self.gaps: list[float] = []
        self.n_steps = 0
        self._sum = np.zeros(k)
        self._mixability = 0.0

    @property
    def value(self) -> float:
        """Largest disparity of the average."""
        return float(self._sum.max()) / self.n_steps

    @property
    def gap(self) -> float:
        """How far the average can be from the best."""
        return max(self.value - self.bound, 0.0)

    def step(self) -> float:
        """Answer the weights, then move them; returns the gap."""
        problem = self.problem
        # Large matrices are solved iteratively, and the last answer is a good start.
        combined = problem.weighted_sum(self.weights)
        _, basis = leading_eigenpairs(combined, problem.n_components, self.basis)
        self.basis = basis
        disparities = problem.disparities(basis)
        self.bound = max(self.bound, float(self.weights @ disparities))
        self.n_steps += 1
        self.average += (basis @ basis.T - self.average) / self.n_steps
        self._sum += disparities
        self.gaps.append(self.gap)
        self._mixability += self._loss_of_mixing(disparities)
        if self._mixability > 0.0:
            rate = np.log(problem.n_groups) / self._mixability
            raised = np.exp(rate * (self._sum - self._sum.max()))
            self.weights = raised / raised.sum()
        return self.gap

    def _loss_of_mixing(self, disparities: Array) -> float:
        """What the weights lose to their soft maximum: AdaHedge lowers its rate by the sum."""
        largest = float(disparities.max())
        mean = float(self.weights @ disparities)
        if self._mixability == 0.0:
            return largest - mean
        rate = np.log(self.problem.n_groups) / self._mixability
        soft = np.log(self.weights @ np.exp(rate * (disparities - largest))) / rate
        return max(largest + float(soft) - mean, 0.0)

"""Nash social welfare (Tantipongpipat et al., 2019), one of the methods to compare with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.measures import EPS
from fairpca.problem import Problem
from fairpca.solution import Progress, Solution
from fairpca.solvers.relaxation import ROUNDINGS, conclude_relaxed, iterate
from fairpca.validation import check_choice, check_number, check_whole_number


@dataclass(frozen=True)
class NashWelfare:
    """Maximise the product of what the groups keep (Nash social welfare).

    A compromise between total and fairness that does not depend on the groups' units: to double
    what one group keeps is worth halving what another does. Its criterion is its own whatever the
    problem's is; the certificate answers for the problem's.

    Parameters
    ----------
    rounding : {"iterative", "lp"}, default="iterative"
        How the relaxed solution becomes few dimensions: see `SDPRelaxation`.
    extra_dimensions : bool, default=True
        Whether more than r dimensions may be used: see `SDPRelaxation`.
    tol : float, default=1e-6
        Duality gap at which to stop, in the logarithm of the product.
    max_iter : int, default=5000
        The most steps.

    See Also
    --------
    fairpca.solvers.SDPRelaxation : What the roundings do.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from studies.nash_welfare import NashWelfare
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> fair = FairPCA(2, solver=NashWelfare()).fit(X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> fair.solution_.history["gap"] <= 1e-6
    True
    """

    rounding: str = "iterative"
    extra_dimensions: bool = True
    tol: float = 1e-6
    max_iter: int = 5000

    name = "nash"
    has_own_criterion = True

    def __post_init__(self) -> None:
        check_choice("rounding", self.rounding, ROUNDINGS)
        check_number("tol", self.tol, least=0.0)
        check_whole_number("max_iter", self.max_iter)

    @property
    def n_steps(self) -> int:
        """The most steps, for progress bars."""
        return self.max_iter

    def solve(self, problem: Problem, progress: Progress | None = None) -> Solution:
        """Maximise the welfare over relaxed projectors, round and certify the result."""
        ascent = _NashAscent(problem, self.tol)
        message = iterate(self, ascent.step, 1.0, progress)
        return conclude_relaxed(
            self,
            problem,
            ascent.relaxed,
            offsets=ascent.kept,
            message=message,
            n_iter=ascent.n_iter,
            kept=ascent.kept,
            welfare=ascent.value,
            bound=ascent.bound,
            gap=max(ascent.bound - ascent.value, 0.0),
        )


class _NashAscent:
    """Frank-Wolfe steps over relaxed projectors, and a bound on the welfare.

    Each step linearises the welfare: the best relaxed projector for its slopes w is ordinary PCA of
    ``sum_i w_i A_i``, and ``w . (what that keeps - what is kept)`` bounds what is left to gain.
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol, self.n_iter = problem, tol, 0
        d, r, self.bound = problem.n_features, problem.n_components, np.inf
        self.relaxed, self.kept = np.eye(d) * (r / d), problem.traces * (r / d)
        # A group without variance keeps nothing whatever is done.
        self._some = problem.traces > 0

    @property
    def value(self) -> float:
        """The welfare: the sum of the logarithms."""
        return float(np.log(self.kept[self._some]).sum())

    def step(self) -> float:
        """Take a step; returns the gap."""
        problem, kept = self.problem, self.kept[self._some]
        slopes = np.zeros(problem.n_groups)
        slopes[self._some] = 1.0 / kept
        basis = leading_eigenpairs(problem.weighted_sum(slopes), problem.n_components)[1]
        self.n_iter += 1
        # What is kept can be negative by rounding, and then has no logarithm.
        step = np.maximum(problem.kept(basis), 0.0) - self.kept
        gap = max(float(slopes @ step), 0.0)
        self.bound = self.value + gap
        if gap > self.tol:
            length = _line_search(kept, step[self._some])
            self.relaxed += length * (basis @ basis.T - self.relaxed)
            self.kept = self.kept + length * step
        return gap


def _line_search(kept: Array, step: Array) -> float:
    """The length in (0, 1] at which the sum of the logarithms is largest."""

    def slope(length: float) -> float:
        # At length 1 a group may keep nothing: the slope is then as good as infinite.
        return float((step / np.maximum(kept + length * step, EPS * kept)).sum())

    return 1.0 if slope(1.0) >= 0.0 else float(brentq(slope, 0.0, 1.0))

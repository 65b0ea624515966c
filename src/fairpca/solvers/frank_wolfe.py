"""Welfare of the variances that groups keep: Nash's product, by Frank-Wolfe.

Tantipongpipat, Samadi, Singh, Morgenstern and Vempala, "Multi-Criteria Dimensionality Reduction
with Applications to Fairness" (2019), maximise a concave function of what the groups keep,
``v_i = tr(A_i P)``. Each step here linearises it: the best relaxed projector for the slopes w is
ordinary PCA of ``sum_i w_i A_i``, and ``w . (its v - the present v)`` bounds what is left to gain.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._iterating import Progress, check_stopping, iterate
from fairpca.solvers._rounding import ROUNDINGS
from fairpca.solvers.conclude import conclude_relaxed
from fairpca.validation import check_choice

_NOTHING = 1e-16
"""Share of what a group keeps that counts as nothing; it is not zero, to have a logarithm."""

_LENGTH_ERROR = 1e-14
"""Error of the length of a step: that of rounding."""


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
    fairpca.objectives.NashObjective : The same as an objective of Pareto descent.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> fair = FairPCA(2, solver="nash").fit(X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> fair.solution_.history["gap"] <= 1e-6
    True
    """

    rounding: str = "iterative"
    extra_dimensions: bool = True
    tol: float = 1e-6
    max_iter: int = 5000

    name = "nash"

    def __post_init__(self) -> None:
        check_choice("rounding", self.rounding, ROUNDINGS)
        check_stopping(self.tol, self.max_iter)

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
    """Frank-Wolfe steps over relaxed projectors, and a bound on the welfare."""

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol, self.n_iter = problem, tol, 0
        # A group without variance keeps nothing whatever is done.
        self.some = problem.traces > 0
        d, self.bound = problem.moments.n_features, np.inf
        self.relaxed = np.eye(d) * (problem.n_components / d)
        self._keep(problem.traces * (problem.n_components / d))

    def step(self) -> float:
        """Take a step; returns the gap."""
        some, slopes = self.some, 1.0 / self.kept[self.some]
        basis = self._answer(slopes)
        # What is kept can be negative by rounding, and then has no logarithm.
        step = np.maximum(self.problem.kept(basis), 0.0) - self.kept
        gap = max(float(slopes @ step[some]), 0.0)
        self.bound = self.value + gap
        if gap > self.tol:
            length = _line_search(self.kept[some], step[some])
            self.relaxed += length * (basis @ basis.T - self.relaxed)
            self._keep(self.kept + length * step)
        return gap

    def _keep(self, kept: Array) -> None:
        self.kept = kept
        self.value = float(np.log(kept[self.some]).sum())

    def _answer(self, slopes: Array) -> Array:
        """Basis of the best projector for slopes of the groups that have variance."""
        every = np.zeros(self.problem.n_groups)
        every[self.some] = slopes
        self.n_iter += 1
        return leading_eigenpairs(self.problem.weighted_sum(every), self.problem.n_components)[1]


def _line_search(kept: Array, step: Array) -> float:
    """The length in (0, 1] at which the sum of the logarithms is largest."""

    def slope(length: float) -> float:
        # At length 1 a group may keep nothing: the slope is then as good as infinite.
        return float((step / np.maximum(kept + length * step, _NOTHING * kept)).sum())

    return 1.0 if slope(1.0) >= 0.0 else float(brentq(slope, 0.0, 1.0, xtol=_LENGTH_ERROR))

"""Welfare of the variances that groups keep: Nash's product and the least one, by Frank-Wolfe.

Tantipongpipat, Samadi, Singh, Morgenstern and Vempala, "Multi-Criteria Dimensionality Reduction
with Applications to Fairness" (2019), maximise a concave function of what the groups keep,
``v_i = tr(A_i P)``. Each step here linearises it: the best relaxed projector for the slopes w is
ordinary PCA of ``sum_i w_i A_i``, and ``w . (its v - the present v)`` bounds what is left to gain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca._rows.checks import check_choice
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._conclude import conclude_relaxed
from fairpca.solvers._iterating import Progress, check_stopping, iterate
from fairpca.solvers._rounding import ROUNDINGS, least_largest

_NOTHING = 1e-16
"""Share of what a group keeps that counts as nothing; it is not zero, to have a logarithm."""

_LENGTH_ERROR = 1e-14
"""Error of the length of a step: that of rounding."""


@dataclass(frozen=True)
class _Welfare:
    rounding: str = "iterative"
    extra_dimensions: bool = True
    tol: float = 1e-6
    max_iter: int = 5000

    name = ""

    def __post_init__(self) -> None:
        check_choice("rounding", self.rounding, ROUNDINGS)
        check_stopping(self.tol, self.max_iter)

    @property
    def n_steps(self) -> int:
        """The most steps, for progress bars."""
        return self.max_iter

    def solve(self, problem: Problem, progress: Progress | None = None) -> Solution:
        """Maximise the welfare over relaxed projectors, round and certify the result."""
        ascent = self._ascent(problem)
        message = iterate(self, ascent.step, ascent.unit, progress)
        return conclude_relaxed(
            self,
            problem,
            ascent.relaxed(),
            offsets=ascent.offsets,
            message=message,
            n_iter=ascent.n_iter,
            kept=ascent.kept,
            welfare=ascent.value,
            bound=ascent.bound,
            gap=max(ascent.bound - ascent.value, 0.0),
        )

    def _ascent(self, problem: Problem) -> _Ascent:
        raise NotImplementedError


@dataclass(frozen=True)
class NashWelfare(_Welfare):
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

    name = "nash"

    def _ascent(self, problem: Problem) -> _Ascent:
        return _NashAscent(problem, self.tol)


@dataclass(frozen=True)
class MaxMinVariance(_Welfare):
    """Maximise the least variance that a group keeps.

    What "Fair PCA" means in Tantipongpipat et al. (2019). Groups are compared by what they keep,
    not by what they lose beyond their own PCA: a group with little variance decides alone, one with
    none is left out. Its criterion is its own whatever the problem's is; the certificate answers
    for the problem's.

    A minimum has no gradient, so each step of Frank-Wolfe is fully corrective (column generation):
    a linear program mixes all projectors found so far in the best way, and its multipliers are
    the next slopes.

    Parameters
    ----------
    rounding : {"iterative", "lp"}, default="iterative"
        How the relaxed solution becomes few dimensions: see `SDPRelaxation`.
    extra_dimensions : bool, default=True
        Whether more than r dimensions may be used: see `SDPRelaxation`.
    tol : float, default=1e-6
        Duality gap, relative to tr(A), at which to stop.
    max_iter : int, default=5000
        The most steps.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> fair = FairPCA(2, solver="max-min-variance").fit(X, sensitive_features=groups)
    >>> kept = fair.solution_.history["kept"]
    >>> bool(np.ptp(kept) < 1e-3)
    True
    """

    name = "max-min-variance"

    def _ascent(self, problem: Problem) -> _Ascent:
        return _MaxMinAscent(problem)


class _Ascent:
    """Frank-Wolfe steps over relaxed projectors, and a bound on the welfare."""

    unit = 1.0
    """What the gap is relative to."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.n_iter = problem, 0
        # A group without variance keeps nothing whatever is done.
        self.some = problem.traces > 0
        self.kept = self.offsets = problem.traces * 0.0
        self.value, self.bound = 0.0, np.inf

    def step(self) -> float:
        """Take a step; returns the gap."""
        raise NotImplementedError

    def relaxed(self) -> Array:
        """The projector that was reached."""
        raise NotImplementedError

    def _answer(self, slopes: Array) -> Array:
        """Basis of the best projector for slopes of the groups that have variance."""
        every = np.zeros(self.problem.n_groups)
        every[self.some] = slopes
        self.n_iter += 1
        return leading_eigenpairs(self.problem.weighted_sum(every), self.problem.n_components)[1]


class _NashAscent(_Ascent):
    """The rounding may lower least what each group keeps."""

    def __init__(self, problem: Problem, tol: float) -> None:
        super().__init__(problem)
        self.tol, d = tol, problem.moments.n_features
        self._relaxed = np.eye(d) * (problem.n_components / d)
        self._keep(problem.traces * (problem.n_components / d))

    def step(self) -> float:
        some, slopes = self.some, 1.0 / self.kept[self.some]
        basis = self._answer(slopes)
        # What is kept can be negative by rounding, and then has no logarithm.
        step = np.maximum(self.problem.kept(basis), 0.0) - self.kept
        gap = max(float(slopes @ step[some]), 0.0)
        self.bound = self.value + gap
        if gap > self.tol:
            length = _line_search(self.kept[some], step[some])
            self._relaxed += length * (basis @ basis.T - self._relaxed)
            self._keep(self.kept + length * step)
        return gap

    def relaxed(self) -> Array:
        return self._relaxed

    def _keep(self, kept: Array) -> None:
        self.kept = self.offsets = kept
        self.value = float(np.log(kept[self.some]).sum())


class _MaxMinAscent(_Ascent):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        # A group without variance must not be the worst off, or no other would be held.
        self.offsets = np.where(self.some, 0.0, -problem.traces.max())
        self.some = self.some if self.some.any() else ~self.some
        self.unit = problem.scale or 1.0
        self._slopes = np.full(int(self.some.sum()), 1.0 / self.some.sum())
        self._bases: list[Array] = []
        self._all_kept: list[Array] = []

    def step(self) -> float:
        self._bases.append(self._answer(self._slopes))
        self._all_kept.append(self.problem.kept(self._bases[-1]))
        self.bound = min(self.bound, float(self._slopes @ self._all_kept[-1][self.some]))
        kept = np.array(self._all_kept)
        self._mixture, self._slopes = _best_mixture(kept[:, self.some] / self.unit)
        self.kept = self._mixture @ kept
        self.value = float(self.kept[self.some].min())
        return self.bound - self.value

    def relaxed(self) -> Array:
        parts = zip(self._mixture, self._bases, strict=True)
        relaxed: Array = sum(weight * (basis @ basis.T) for weight, basis in parts)
        return relaxed


def _line_search(kept: Array, step: Array) -> float:
    """The length in (0, 1] at which the sum of the logarithms is largest."""

    def slope(length: float) -> float:
        # At length 1 a group may keep nothing: the slope is then as good as infinite.
        return float((step / np.maximum(kept + length * step, _NOTHING * kept)).sum())

    return 1.0 if slope(1.0) >= 0.0 else float(brentq(slope, 0.0, 1.0, xtol=_LENGTH_ERROR))


def _best_mixture(kept: Array) -> tuple[Array, Array]:
    """Weights of the rows whose mixture has the largest least entry, and its multipliers."""
    found = least_largest(kept.T, np.zeros(kept.shape[1]), 1.0, None)
    mixture, multipliers = (np.maximum(part, 0.0) for part in found)
    return mixture / mixture.sum(), multipliers / multipliers.sum()

"""Welfare of the variances that groups keep: Nash's product and the least one, by Frank-Wolfe.

Tantipongpipat, Samadi, Singh, Morgenstern and Vempala, "Multi-Criteria Dimensionality Reduction
with Applications to Fairness" (2019), maximise a concave function of what the groups keep,
``v_i = tr(A_i P)``. Each step here linearises it: the best relaxed projector for the slopes w is
ordinary PCA of ``sum_i w_i A_i``, and ``w . (its v - the present v)`` bounds what is left to gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca._rows.checks import check_choice
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._conclude import conclude
from fairpca.solvers._iterating import (
    CLOSED,
    STOPPED,
    TOO_MANY,
    Progress,
    check_stopping,
    warn_if_unfinished,
)
from fairpca.solvers._rounding import ROUNDINGS, linear_program, round_relaxed


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
        found = self._maximise(problem, progress)
        warn_if_unfinished(self.name, found.message, found.bound - found.value, self._unit(problem))
        basis, shares = round_relaxed(
            problem,
            found.relaxed,
            self.rounding,
            extra_dimensions=self.extra_dimensions,
            offsets=self._offsets(problem, found),
        )
        return conclude(
            problem,
            basis,
            shares=shares,
            solver=self.name,
            message=found.message,
            n_iter=found.n_iter,
            n_eigen=problem.n_groups + found.n_iter,
            history={
                "relaxed": found.relaxed,
                "kept": found.kept,
                "welfare": found.value,
                "bound": found.bound,
                "gap": max(found.bound - found.value, 0.0),
            },
        )

    def _maximise(self, problem: Problem, progress: Progress | None) -> _Found:
        raise NotImplementedError

    def _offsets(self, problem: Problem, found: _Found) -> Array:
        """What the rounding may lower least: see `round_relaxed`."""
        raise NotImplementedError

    def _unit(self, problem: Problem) -> float:
        """What the gap is relative to."""
        return problem.scale or 1.0


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

    def _maximise(self, problem: Problem, progress: Progress | None) -> _Found:
        d, r = problem.moments.n_features, problem.n_components
        relaxed = np.eye(d) * (r / d)
        # A group without variance keeps nothing whatever is done.
        some = problem.traces > 0
        kept = problem.traces * (r / d)
        message, n_iter, gap = (TOO_MANY if some.any() else CLOSED), 0, 0.0
        while n_iter < self.max_iter and some.any():
            slopes = np.zeros(problem.n_groups)
            slopes[some] = 1.0 / kept[some]
            basis = leading_eigenpairs(problem.weighted_sum(slopes), r)[1]
            n_iter += 1
            # What is kept can be negative by rounding, and then has no logarithm.
            step = np.maximum(problem.kept(basis), 0.0) - kept
            gap = max(float(slopes @ step), 0.0)
            if gap <= self.tol:
                message = CLOSED
                break
            if progress is not None and progress():
                message = STOPPED
                break
            length = _line_search(kept[some], step[some])
            relaxed += length * (basis @ basis.T - relaxed)
            kept = kept + length * step
        value = float(np.log(kept[some]).sum())
        return _Found(relaxed, kept, value, value + gap, n_iter, message)

    def _offsets(self, problem: Problem, found: _Found) -> Array:
        return found.kept

    def _unit(self, problem: Problem) -> float:
        return 1.0


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

    def _maximise(self, problem: Problem, progress: Progress | None) -> _Found:
        k, unit = problem.n_groups, problem.scale or 1.0
        # A group without variance keeps nothing whatever is done, and would decide alone.
        some = problem.traces > 0 if problem.traces.any() else np.full(k, True)
        slopes = some / some.sum()
        bases: list[Array] = []
        kept: list[Array] = []
        bound, message = np.inf, TOO_MANY
        while len(bases) < self.max_iter:
            basis = leading_eigenpairs(problem.weighted_sum(slopes), problem.n_components)[1]
            bases.append(basis)
            kept.append(problem.kept(basis))
            bound = min(bound, float(slopes @ kept[-1]))
            mixture, multipliers = _best_mixture(np.array(kept)[:, some] / unit)
            slopes = np.zeros(k)
            slopes[some] = multipliers
            value = float((mixture @ np.array(kept))[some].min())
            if bound - value <= self.tol * unit:
                message = CLOSED
                break
            if progress is not None and progress():
                message = STOPPED
                break
        relaxed = sum(
            share * (basis @ basis.T) for share, basis in zip(mixture, bases, strict=True)
        )
        return _Found(relaxed, mixture @ np.array(kept), value, bound, len(bases), message)

    def _offsets(self, problem: Problem, found: _Found) -> Array:
        # A group without variance must not be the worst off, or no other would be held.
        return np.where(problem.traces > 0, 0.0, -problem.traces.max())


@dataclass(frozen=True, eq=False)
class _Found:
    relaxed: Any
    kept: Array
    value: float
    bound: float
    n_iter: int
    message: str


def _line_search(kept: Array, step: Array) -> float:
    """The length in (0, 1] at which the sum of the logarithms is largest."""

    def slope(length: float) -> float:
        # At length 1 a group may keep nothing: the slope is then as good as infinite.
        return float((step / np.maximum(kept + length * step, 1e-16 * kept)).sum())

    return 1.0 if slope(1.0) >= 0.0 else float(brentq(slope, 0.0, 1.0, xtol=1e-14))


def _best_mixture(kept: Array) -> tuple[Array, Array]:
    """Shares of the rows whose mixture has the largest least entry, and its multipliers."""
    n, k = kept.shape
    found = linear_program(
        np.append(np.zeros(n), -1.0),
        A_ub=np.column_stack([-kept.T, np.ones(k)]),
        b_ub=np.zeros(k),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * n + [(None, None)],
    )
    multipliers = np.maximum(-found.ineqlin.marginals, 0.0)
    mixture = np.maximum(found.x[:n], 0.0)
    return mixture / mixture.sum(), multipliers / multipliers.sum()

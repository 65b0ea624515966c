"""The constrained form: least total loss with every group's disparity below a given number."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairpca._linalg.dense import qr_factor
from fairpca._linalg.types import Array
from fairpca._rows.checks import check_seed, check_whole_number
from fairpca._rows.text import label_text
from fairpca.certificate import OPTIMAL_GAP
from fairpca.exceptions import FairnessWarning
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._conclude import conclude
from fairpca.solvers._exact.criteria import Ceiling, Criterion, MinMax
from fairpca.solvers._exact.dual import DualResult, ceiling_domain, maximise_dual, minmax_domain
from fairpca.solvers._exact.forms import Forms
from fairpca.solvers._exact.local import LocalResult, refine
from fairpca.solvers._exact.space import SearchSpace
from fairpca.solvers._per_group import per_group

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
        The most starts of the local search; it stops at the first that closes the gap.
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
        search = _Search(problem, epsilon, self)
        basis, bound, message = search.run()
        over = problem.disparities(basis) - epsilon
        excess = float(over.max())
        if bound is None:
            worst = label_text(problem.moments.labels[int(over.argmax())])
            warnings.warn(
                f"{self.name}: {message} ({worst!r} is {excess:.3g} above its bound).",
                FairnessWarning,
                stacklevel=4,
            )
        loss = problem.total_loss(basis)
        return conclude(
            problem,
            basis,
            solver=self.name,
            message=message,
            n_iter=search.n_iter,
            n_eigen=search.n_eigen,
            history={
                "epsilon": epsilon,
                "excess": max(excess, 0.0),
                "bound": bound,
                "gap": None if bound is None else max(loss - bound, 0.0),
            },
        )

    def _bounds(self, problem: Problem) -> Array:
        if self.epsilon is None:
            mean = float(problem.disparities(problem.pca_basis).mean())
            return np.full(problem.n_groups, max(mean, 0.0))
        # No disparity exceeds what a group can keep; a number replaces an infinite bound.
        return np.minimum(
            per_group(problem, "epsilon", self.epsilon), problem.own_gains + problem.scale
        )


class _Search:
    def __init__(self, problem: Problem, epsilon: Array, solver: EpsilonConstraint) -> None:
        self.problem, self.epsilon, self.n_starts = problem, epsilon, solver.n_starts
        self.rng = np.random.default_rng(solver.random_state or 0)
        self.slack = problem.negligible_spread
        self.n_iter, self.n_eigen = 0, problem.n_groups + 1

    def run(self) -> tuple[Array, float | None, str]:
        """The basis, a lower bound of its total loss if it meets the bounds, and the message."""
        problem, epsilon = self.problem, self.epsilon
        floor = float(problem.weights @ (problem.traces - problem.own_gains))
        plain = problem.least_loss_basis
        if (problem.disparities(plain) <= epsilon + self.slack).all():
            return plain, problem.total_loss(plain), "the least total loss of all meets the bounds"
        self.space = SearchSpace(problem)
        limit = 1.000001 * float(problem.weights @ problem.own_gains)
        dual = self.space.settle(
            lambda forms: maximise_dual(forms, ceiling_domain(forms, epsilon), limit)
        )
        if not dual.above_limit:
            found = self._best(
                Ceiling(problem.weights, epsilon), dual, self.space.forms, self._value
            )
            if (found.disparities <= epsilon + self.slack).all():
                self.n_eigen = self.space.n_eigen
                return found.basis, floor + dual.value, _WITHIN
        excess = self.space.settle(
            lambda forms: maximise_dual(_shifted(forms, epsilon), minmax_domain(forms))
        )
        nearest = self._best(
            MinMax(), excess, _shifted(self.space.forms, epsilon), lambda e: float(e.max())
        )
        self.n_eigen = self.space.n_eigen
        met = (problem.disparities(nearest.basis) <= epsilon + self.slack).all()
        if met and not dual.above_limit:
            return nearest.basis, floor + dual.value, _WITHIN
        proven = "no subspace meets" if excess.value > self.slack else "found no subspace within"
        return nearest.basis, None, f"{proven} the bounds; the smallest excess found is returned"

    def _value(self, disparities: Array) -> float:
        excess = float((disparities - self.epsilon).max())
        return np.inf if excess > self.slack else float(self.problem.weights @ disparities)

    def _best(
        self,
        criterion: Criterion,
        dual: DualResult,
        forms: Forms,
        value: Callable[[Array], float],
    ) -> LocalResult:
        best, lowest = None, np.inf
        for start in self._starts(dual):
            inside = refine(forms, criterion, self.space.lower(start), dual.weights)
            self.n_iter += inside.n_iter
            reached = value(inside.disparities)
            if best is None or reached < lowest:
                best = replace(inside, basis=self.space.lift(inside.basis))
                lowest = reached
            if lowest <= dual.value + OPTIMAL_GAP / 10 * self.problem.scale:
                break
        assert best is not None
        return best

    def _starts(self, dual: DualResult) -> Iterator[Array]:
        r = self.problem.n_components
        order = np.argsort(-dual.occupation)
        yield self.space.lift(dual.vectors[:, order[:r]])
        d = self.space.forms.d
        for _ in range(1, self.n_starts):
            yield self.space.lift(qr_factor(self.rng.standard_normal((d, r))))


def _shifted(forms: Forms, epsilon: Array) -> Forms:
    """Forms whose disparities are the excess over the bounds."""
    return replace(forms, gains=forms.gains - epsilon)

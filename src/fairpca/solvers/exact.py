"""The exact solver: global optimum for two groups, and a certificate for any number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from fairpca.linalg import Array, eigh_descending
from fairpca.problem import Problem
from fairpca.solution import OPTIMAL_GAP, Certificate, Solution, certify
from fairpca.solvers._criteria import Criterion, Equal, MinMax, Spread
from fairpca.solvers._dual import (
    DualResult,
    equal_domain,
    maximise_dual,
    minmax_domain,
    spread_domain,
)
from fairpca.solvers._forms import Forms
from fairpca.solvers._local import LocalResult, refine
from fairpca.solvers._space import SearchSpace
from fairpca.solvers._two_groups import TwoGroupResult, solve_two_groups

_FEASIBILITY = 1e-10
"""Spread, relative to tr(A), that counts as none."""


@dataclass(frozen=True)
class ExactSolver:
    """Maximise the dual of the relaxed problem, then find a subspace that attains it.

    Two groups are solved to global optimality in every case. For more, the dual gives a bound
    that no subspace beats; a local search from several starts, first from the relaxed solution,
    then from random ones, finds a subspace, and the certificate says how far it can be from the
    best. It stops at the first start that closes the gap.

    Parameters
    ----------
    n_starts : int, default=40
        The most starts of the local search, for more than two groups.
    random_state : int or None, default=None
        Seed of the starts. None is a fixed seed too: an exact solver should repeat itself.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import ExactSolver, GroupMoments, Problem
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> problem = Problem(GroupMoments.from_rows(X, ["a"] * 100 + ["b"] * 200), n_components=2)
    >>> solution = ExactSolver().solve(problem)
    >>> solution.certificate.status
    'optimal'
    >>> bool(abs(solution.disparities[0] - solution.disparities[1]) < 1e-9)
    True
    """

    n_starts: int = 40
    random_state: int | None = None

    name = "exact"

    def __post_init__(self) -> None:
        if self.n_starts < 1:
            raise ValueError(f"n_starts must be at least 1, got {self.n_starts!r}.")

    def solve(self, problem: Problem) -> Solution:
        """Find the subspace and certify it."""
        search = _Search(problem, self.n_starts, np.random.default_rng(self.random_state or 0))
        basis, certificate, message = search.run()
        return Solution(
            basis=basis,
            group_losses=problem.group_losses(basis),
            disparities=certificate.disparities,
            total_loss=problem.total_loss(basis),
            certificate=certificate,
            solver=self.name,
            n_iter=search.n_iter,
            n_eigen=search.n_eigen,
            message=message,
            history={"starts": tuple(search.history)},
        )


class _Search:
    """One run on one problem."""

    def __init__(self, problem: Problem, n_starts: int, rng: np.random.Generator) -> None:
        self.problem, self.n_starts, self.rng = problem, n_starts, rng
        self.n_iter = 0
        self.n_eigen = problem.n_groups + 1
        self.history: list[dict[str, float]] = []
        traces = problem.traces
        self.feasibility = max(_FEASIBILITY * problem.scale, 1e-13 * float(traces.max()))

    def run(self) -> tuple[Array, Certificate, str]:
        problem = self.problem
        nothing = np.zeros(problem.n_groups)
        if problem.n_components == problem.moments.n_features:
            basis = np.eye(problem.n_components)
            return self._done(basis, self._pca_multipliers(), "the whole space loses nothing")
        basis = problem.pca_basis
        if problem.n_groups == 1:
            return self._done(basis, self._pca_multipliers(), "one group: ordinary PCA")
        # Ordinary PCA has the least total loss of all, so if it is fair it is the answer.
        spread = problem.spread(basis)
        if problem.criterion == "equal" and spread <= problem.tolerance + 1e-2 * self.feasibility:
            return self._done(basis, nothing, "ordinary PCA meets the criterion")
        self.space = SearchSpace(problem)
        try:
            if problem.n_groups == 2:
                return self._two_groups()
            if problem.criterion == "minmax":
                return self._minmax()
            return self._equal()
        finally:
            self.n_eigen = self.space.n_eigen

    def _done(
        self, basis: Array, multipliers: Array, message: str, **proofs: Array | None
    ) -> tuple[Array, Certificate, str]:
        certificate = certify(
            self.problem, basis, multipliers, feasibility=self.feasibility, **proofs
        )
        return basis, certificate, message

    def _pca_multipliers(self) -> Array:
        k = self.problem.n_groups
        return np.full(k, 1.0 / k) if self.problem.criterion == "minmax" else np.zeros(k)

    def _two_groups(self) -> tuple[Array, Certificate, str]:
        problem = self.problem
        # Min-max and equality have the same solution for two groups.
        tolerance = 0.0 if problem.criterion == "minmax" else problem.tolerance
        first, second = problem.own_subspaces

        def solve(forms: Forms) -> TwoGroupResult:
            own = (self.space.lower(first), self.space.lower(second))
            return solve_two_groups(forms, tolerance, own)

        result = self.space.settle(solve)
        multipliers = result.weights - problem.weights
        if problem.criterion == "minmax":
            multipliers = result.weights / result.weights.sum()
        return self._done(self.space.lift(result.basis), multipliers, "root found")

    def _minmax(self) -> tuple[Array, Certificate, str]:
        dual, local = self._least_largest(self.n_starts)
        return self._done(self.space.lift(local.basis), dual.weights, self._stopped(local))

    def _least_largest(self, n_starts: int) -> tuple[DualResult, LocalResult]:
        dual = self.space.settle(lambda forms: maximise_dual(forms, minmax_domain(forms)))
        close = OPTIMAL_GAP / 10 * self.problem.total_loss(self.problem.pca_basis)
        local = self._search(
            MinMax(),
            dual,
            n_starts,
            value=lambda disparities: float(disparities.max()),
            enough=dual.value + max(close, 1e-13 * self.problem.scale),
        )
        return dual, local

    def _equal(self) -> tuple[Array, Certificate, str]:
        problem = self.problem
        # No disparity exceeds what a group could keep, so a bound above that proves that no
        # subspace is feasible.
        limit = 1.000001 * float(problem.weights @ problem.own_gains)
        dual = self.space.settle(
            lambda forms: maximise_dual(forms, equal_domain(forms, problem.tolerance), limit)
        )
        if not dual.above_limit:
            local = self._least_loss(dual, problem.tolerance)
            if np.ptp(local.disparities) <= problem.tolerance + self.feasibility:
                return self._finish_equal(local, dual.weights - problem.weights, None)
        return self._fall_back()

    def _fall_back(self) -> tuple[Array, Certificate, str]:
        """No equal subspace was found: the smallest spread, then the least loss at that spread."""
        problem = self.problem
        proof = self.space.settle(lambda forms: maximise_dual(forms, spread_domain(forms)))
        nearest = self._search(
            Spread(),
            proof,
            self.n_starts,
            value=lambda disparities: float(np.ptp(disparities)),
            enough=max(proof.value, problem.tolerance) + self.feasibility,
        )
        reached = max(float(np.ptp(nearest.disparities)), problem.tolerance)
        allowed = reached + self.feasibility / 2
        dual = self.space.settle(lambda forms: maximise_dual(forms, equal_domain(forms, allowed)))
        local = self._refine(Equal(problem.weights, allowed), nearest.basis, dual.weights)
        if (
            np.ptp(local.disparities) > allowed + self.feasibility / 2
            or problem.weights @ local.disparities > problem.weights @ nearest.disparities
        ):
            local = nearest
        return self._finish_equal(local, dual.weights - problem.weights, proof.weights)

    def _least_loss(self, dual: DualResult, tolerance: float) -> LocalResult:
        problem = self.problem
        floor = float(problem.weights @ (problem.traces - problem.own_gains))

        def value(disparities: Array) -> float:
            if np.ptp(disparities) > tolerance + self.feasibility:
                return np.inf
            return float(problem.weights @ disparities)

        close = max(OPTIMAL_GAP / 10 * (floor + dual.value), 1e-13 * problem.scale)
        return self._search(
            Equal(problem.weights, tolerance),
            dual,
            self.n_starts,
            value=value,
            enough=dual.value + close,
        )

    def _finish_equal(
        self, local: LocalResult, multipliers: Array, proof: Array | None
    ) -> tuple[Array, Certificate, str]:
        basis = self.space.lift(local.basis)
        message = self._stopped(local)
        multipliers = self._stronger(multipliers, local.weights - self.problem.weights)
        found = self._done(basis, multipliers, message, spread_multipliers=proof)
        weights = self.problem.weights + multipliers
        if found[1].status == "optimal" and (weights >= 0).all():
            return found  # then the same subspace minimises the largest disparity
        better = self._least_largest(min(self.n_starts, 10))[1].disparities
        if (found[1].disparities - better).min() > self.feasibility:
            found = (basis, replace(found[1], minmax_disparities=better), message)
        return found

    def _stronger(self, first: Array, second: Array) -> Array:
        """Of two proofs, the one of the larger bound."""
        second = second - second.mean()
        bound = self.problem.dual_bound
        return first if bound(first) >= bound(second) else second

    def _search(
        self,
        criterion: Criterion,
        dual: DualResult,
        n_starts: int,
        *,
        value: Callable[[Array], float],
        enough: float,
    ) -> LocalResult:
        """The best of several local searches, or the first that is good enough."""
        best, lowest = None, np.inf
        for number, start in enumerate(self._starts(dual, n_starts)):
            local = self._refine(criterion, start, dual.weights)
            reached = value(local.disparities)
            self.history.append(
                {
                    "start": number,
                    "value": reached,
                    "spread": float(np.ptp(local.disparities)),
                    "steps": local.n_iter,
                }
            )
            if best is None or reached < lowest:
                best, lowest = local, reached
            if lowest <= enough:
                break
        assert best is not None
        return best

    def _refine(self, criterion: Criterion, basis: Array, weights: Array) -> LocalResult:
        local = refine(self.space.forms, criterion, basis, weights)
        self.n_iter += local.n_iter
        return local

    def _starts(self, dual: DualResult, n_starts: int) -> Iterator[Array]:
        """First the relaxed solution, then others near it, then any."""
        forms = self.space.forms
        order = np.argsort(-dual.occupation)
        yield dual.vectors[:, order[: forms.r]]
        relaxed = (dual.vectors * dual.occupation) @ dual.vectors.T
        for number in range(1, n_starts):
            noise = self.rng.standard_normal((forms.d, forms.d))
            if number < n_starts // 2:
                size = 0.1 if number % 2 else 0.3
                yield eigh_descending(relaxed + size * (noise + noise.T) / 2)[1][:, : forms.r]
            else:
                yield np.linalg.qr(noise[:, : forms.r])[0]

    def _stopped(self, local: LocalResult) -> str:
        n = len(self.history)
        return f"best of {n} local searches" if n > 1 else "first local search closed the gap"

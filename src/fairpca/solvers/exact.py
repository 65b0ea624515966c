"""The exact solver: global optimum for two groups, and a certificate for any number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from fairpca._linalg.dense import eigh_descending
from fairpca._linalg.types import Array
from fairpca._rows.checks import check_seed, check_whole_number
from fairpca.certificate import OPTIMAL_GAP, Certificate, certify
from fairpca.problem import KeptBounds, Problem
from fairpca.solution import Solution
from fairpca.solvers._exact.criteria import Criterion, Equal, MinMax, Spread
from fairpca.solvers._exact.dual import (
    WARM_MU,
    DualResult,
    equal_domain,
    maximise_dual,
    minmax_domain,
    spread_domain,
)
from fairpca.solvers._exact.forms import Forms
from fairpca.solvers._exact.local import LocalResult, refine
from fairpca.solvers._exact.space import SearchSpace
from fairpca.solvers._exact.two_groups import SeenWeights, TwoGroupResult, solve_two_groups

_PATIENCE = 8
"""With many columns, the starts in a row that bring nothing before the search gives up."""

_SMOOTH = 1e-6
"""From this mu on nothing depends on it where no eigenvalues are tied, to the eye of rounding."""

_EDGE_MU = 0.3
"""Where mu begins at a tolerance that is only just possible."""


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
        The most starts of the local search, for more than two groups. With more than 300 columns
        it also ends after eight starts in a row that bring nothing.
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
        check_whole_number("n_starts", self.n_starts)
        check_seed(self.random_state)

    def solve(self, problem: Problem) -> Solution:
        """Find the subspace and certify it."""
        return solve_near(problem, self)


class Workspace:
    """What solutions of one problem at several tolerances share."""

    def __init__(self, problem: Problem) -> None:
        self.space = SearchSpace(problem)
        self.seen = SeenWeights()
        self.minmax_disparities: Array | None = None
        """Disparities of the best subspace found for "minmax", which knows no tolerance."""


def solve_near(
    problem: Problem,
    solver: ExactSolver,
    shared: Workspace | None = None,
    neighbours: Sequence[Solution] = (),
) -> Solution:
    """Solve a problem beside its solutions at other tolerances, the nearest first.

    That is quicker than without them, and with `shared` what was found on the way is used again.
    """
    rng = np.random.default_rng(solver.random_state or 0)
    search = _Search(problem, solver.n_starts, rng, shared)
    basis, certificate, message = search.run(neighbours)
    kept = problem.kept(basis)
    return Solution(
        basis=basis,
        group_losses=np.maximum(problem.traces - kept, 0.0),
        disparities=certificate.disparities,
        total_loss=float(problem.weights @ (problem.traces - kept)),
        certificate=certificate,
        solver=solver.name,
        n_iter=search.n_iter,
        n_eigen=search.n_eigen,
        message=message,
        history={"starts": tuple(search.history)},
    )


def prove(problem: Problem, known: KeptBounds | None = None) -> Array:
    """Multipliers that prove the best bound of the relaxation: see `Problem.dual_bound`.

    The relaxation has to be feasible, as it is when a subspace within the tolerance is known. What
    is proven on the way is added to the bounds that are `known`.
    """
    if _without_search(problem) is not None:
        return _plain_multipliers(problem)
    space = SearchSpace(problem, known)
    if problem.n_groups == 2:
        return _two_group_multipliers(problem, _settle_two_groups(problem, space).weights)
    if problem.criterion == "minmax":
        return space.settle(lambda forms: maximise_dual(forms, minmax_domain(forms))).weights
    return _settle_equal(space, problem.tolerance).weights - problem.weights


def _settle_equal(
    space: SearchSpace,
    tolerance: float,
    limit: float = np.inf,
    near: Array | None = None,
    first_mu: float | None = None,
) -> DualResult:
    """The dual of the least total loss; `near` are weights that are thought to be nearly best."""
    first_mu = WARM_MU if near is not None else first_mu
    last: DualResult | None = None

    def solve(forms: Forms) -> DualResult:
        nonlocal last
        # The first of several rounds is hardly ever the last: it need not be exact.
        polish, spent = space.is_whole or last is not None, 0
        if last is not None and last.smooth_at is not None and last.smooth_at >= _SMOOTH:
            # The solution in the space before is near.
            domain = equal_domain(forms, tolerance, last.weights)
            last = maximise_dual(forms, domain, limit, first_mu=last.smooth_at, polish=polish)
            if last.smooth_at is not None:
                return last
            spent = last.n_eigen
        # Where eigenvalues are tied, solutions jump from one space to the next.
        domain = equal_domain(forms, tolerance, near)
        last = maximise_dual(forms, domain, limit, first_mu=first_mu, polish=polish)
        return replace(last, n_eigen=last.n_eigen + spent)

    found = space.settle(solve)
    return space.settle(solve) if found.is_rough else found


def _without_search(problem: Problem) -> tuple[Array, str] | None:
    """The answer and the reason, where nothing has to be searched for."""
    if problem.n_components == problem.moments.n_features:
        return np.eye(problem.n_components), "the whole space loses nothing"
    # The least total loss of all: if it is fair, it is the answer.
    basis = problem.least_loss_basis
    if problem.n_groups == 1:
        return basis, "one group: ordinary PCA"
    slack = 1e-2 * problem.negligible_spread
    disparities = problem.disparities(basis)
    if problem.criterion == "equal" and np.ptp(disparities) <= problem.tolerance + slack:
        return basis, "the least total loss of all meets the criterion"
    if disparities.max() <= 1e-14 * float(problem.traces.max()):
        return basis, "the least total loss of all is best for every group"
    return None


def nobody_worse_off(better: Array, disparities: Array, level: float) -> bool:
    """Whether none of the better disparities is larger, and some are smaller, beyond rounding."""
    gains = disparities - better
    return bool(gains.min() >= -level and gains.max() > 10 * level)


def _plain_multipliers(problem: Problem) -> Array:
    """What proves the bound where nothing has to be searched for."""
    k = problem.n_groups
    return np.full(k, 1.0 / k) if problem.criterion == "minmax" else np.zeros(k)


def _settle_two_groups(
    problem: Problem, space: SearchSpace, seen: SeenWeights | None = None
) -> TwoGroupResult:
    # Min-max and equality have the same solution for two groups.
    tolerance = 0.0 if problem.criterion == "minmax" else problem.tolerance
    first, second = problem.own_subspaces

    total = problem.total_eigenpairs if space.is_whole else None
    if total is not None and len(total[0]) < problem.moments.n_features:
        total = None

    def solve(forms: Forms) -> TwoGroupResult:
        own = (space.lower(first), space.lower(second))
        return solve_two_groups(forms, tolerance, own, total, seen)

    return space.settle(solve)


def _two_group_multipliers(problem: Problem, weights: Array) -> Array:
    if problem.criterion == "minmax":
        scaled: Array = weights / weights.sum()
        return scaled
    return weights - problem.weights


class _Search:
    """One run on one problem."""

    def __init__(
        self,
        problem: Problem,
        n_starts: int,
        rng: np.random.Generator,
        shared: Workspace | None = None,
    ) -> None:
        self.problem, self.n_starts, self.rng, self.shared = problem, n_starts, rng, shared
        self.n_iter = 0
        self.n_eigen = problem.n_groups + 1
        self.history: list[dict[str, Any]] = []
        self.feasibility = problem.negligible_spread

    def run(self, neighbours: Sequence[Solution] = ()) -> tuple[Array, Certificate, str]:
        problem = self.problem
        found = _without_search(problem)
        if found is not None:
            return self._done(found[0], _plain_multipliers(problem), found[1])
        before = 0 if self.shared is None else self.shared.space.n_eigen
        self.shared = Workspace(problem) if self.shared is None else self.shared
        self.space = self.shared.space
        try:
            if problem.n_groups == 2:
                return self._two_groups(self.shared.seen)
            if problem.criterion == "minmax":
                return self._minmax()
            return self._equal(neighbours)
        finally:
            self.n_eigen = self.space.n_eigen - before

    def _done(
        self, basis: Array, multipliers: Array, message: str, **proofs: Array | None
    ) -> tuple[Array, Certificate, str]:
        known = None if self.shared is None else self.shared.space.bounds
        certificate = certify(self.problem, basis, multipliers, known=known, **proofs)
        return basis, certificate, message

    def _two_groups(self, seen: SeenWeights) -> tuple[Array, Certificate, str]:
        result = _settle_two_groups(self.problem, self.space, seen)
        multipliers = _two_group_multipliers(self.problem, result.weights)
        return self._done(self.space.lift(result.basis), multipliers, "root found")

    def _minmax(self) -> tuple[Array, Certificate, str]:
        dual, local = self._least_largest(self.n_starts)
        return self._done(local.basis, dual.weights, self._searched())

    def _least_largest(self, n_starts: int) -> tuple[DualResult, LocalResult]:
        dual = self.space.settle(lambda forms: maximise_dual(forms, minmax_domain(forms)))
        close = max(OPTIMAL_GAP / 10 * dual.value, 1e-13 * self.problem.scale)
        local = self._search(
            MinMax(),
            dual,
            self._starts(dual, n_starts),
            value=lambda disparities: float(disparities.max()),
            enough=dual.value + close,
        )
        return dual, local

    def _equal(self, neighbours: Sequence[Solution]) -> tuple[Array, Certificate, str]:
        problem = self.problem
        if neighbours:
            found = self._beside(neighbours[0])
            if found is not None:
                return found
        # No disparity exceeds what a group could keep, so a bound above that proves that no
        # subspace is feasible.
        limit = 1.000001 * float(problem.weights @ problem.own_gains)
        near = problem.weights + neighbours[0].certificate.multipliers if neighbours else None
        dual = _settle_equal(self.space, problem.tolerance, limit, near)
        if not dual.above_limit:
            known = [neighbour.basis for neighbour in neighbours]
            starts = chain(known, self._starts(dual, self.n_starts))
            local = self._least_loss(dual, problem.tolerance, starts)
            if np.ptp(local.disparities) <= problem.tolerance + self.feasibility:
                return self._finish_equal(local, dual, None)
        return self._fall_back()

    def _beside(self, neighbour: Solution) -> tuple[Array, Certificate, str] | None:
        """Search from a neighbour only; None unless its own weights prove what it finds.

        Near an optimum whose bound is attained the local search finds the dual solution as well,
        so the dual search, which is most of the work, can be left out.
        """
        problem = self.problem
        criterion = Equal(problem.weights, problem.tolerance)
        weights = problem.weights + neighbour.certificate.multipliers

        def search(forms: Forms) -> LocalResult:
            return refine(forms, criterion, self.space.lower(neighbour.basis), weights)

        local = self.space.settle(search)
        local = replace(local, basis=self.space.lift(local.basis))
        self._record(criterion, local, float(problem.weights @ local.disparities))
        if np.ptp(local.disparities) > problem.tolerance + self.feasibility:
            return None
        multipliers = local.weights - problem.weights
        found = self._done(local.basis, multipliers, "followed from a neighbouring tolerance")
        return self._compared(found) if found[1].status == "optimal" else None

    def _fall_back(self) -> tuple[Array, Certificate, str]:
        """No equal subspace was found: the smallest spread, then the least loss at that spread."""
        problem = self.problem
        proof = self.space.settle(lambda forms: maximise_dual(forms, spread_domain(forms)))
        nearest = self._search(
            Spread(),
            proof,
            self._starts(proof, self.n_starts),
            value=lambda disparities: float(np.ptp(disparities)),
            enough=max(proof.value, problem.tolerance) + self.feasibility,
        )
        reached = max(float(np.ptp(nearest.disparities)), problem.tolerance)
        allowed = reached + self.feasibility / 2
        # At the edge of what is possible the weights grow without bound, and the barrier with them.
        dual = _settle_equal(self.space, allowed, first_mu=_EDGE_MU)
        starts = chain([nearest.basis], self._starts(dual, min(self.n_starts, 5)))
        local = self._least_loss(dual, allowed, starts)
        if (
            np.ptp(local.disparities) > allowed + self.feasibility / 2
            or problem.weights @ local.disparities > problem.weights @ nearest.disparities
        ):
            local = nearest
        return self._finish_equal(local, dual, proof.weights)

    def _least_loss(
        self, dual: DualResult, tolerance: float, starts: Iterable[Array]
    ) -> LocalResult:
        problem = self.problem
        floor = float(problem.weights @ (problem.traces - problem.own_gains))

        def value(disparities: Array) -> float:
            if np.ptp(disparities) > tolerance + self.feasibility / 2:
                return np.inf
            return float(problem.weights @ disparities)

        close = max(OPTIMAL_GAP / 10 * (floor + dual.value), 1e-13 * problem.scale)
        return self._search(
            Equal(problem.weights, tolerance),
            dual,
            starts,
            value=value,
            enough=dual.value + close,
        )

    def _finish_equal(
        self, local: LocalResult, dual: DualResult, proof: Array | None
    ) -> tuple[Array, Certificate, str]:
        # Two proofs are at hand: that of the dual search and that of the local one. The second is
        # only worth its eigenproblem where the first leaves a gap.
        found = self._judged(local, dual.weights, proof)
        if found[1].gap > OPTIMAL_GAP / 10 * found[1].value:
            other = self._judged(local, local.weights, proof)
            found = max((found, other), key=lambda judged: judged[1].lower_bound)
        return self._compared(found)

    def _judged(
        self, local: LocalResult, weights: Array, proof: Array | None
    ) -> tuple[Array, Certificate, str]:
        multipliers = weights - self.problem.weights
        return self._done(local.basis, multipliers, self._searched(), spread_multipliers=proof)

    def _compared(self, found: tuple[Array, Certificate, str]) -> tuple[Array, Certificate, str]:
        """Add a subspace in which nobody is worse off, if minimising the largest finds one."""
        basis, certificate, message = found
        positive = (self.problem.weights + certificate.multipliers >= 0).all()
        if certificate.status == "optimal" and positive:
            # Then the weights are also a proof for the least largest disparity: nothing to gain.
            return found
        assert self.shared is not None
        better = self.shared.minmax_disparities
        if better is None:
            better = self._least_largest(min(self.n_starts, 10))[1].disparities
            self.shared.minmax_disparities = better
        if nobody_worse_off(better, certificate.disparities, self.feasibility):
            found = (basis, replace(certificate, minmax_disparities=better), message)
        return found

    def _search(
        self,
        criterion: Criterion,
        dual: DualResult,
        starts: Iterable[Array],
        *,
        value: Callable[[Array], float],
        enough: float,
    ) -> LocalResult:
        """The best of several local searches, or the first that is good enough.

        Starts and results are in the coordinates of the whole space, which do not change when the
        search space grows.
        """
        best, lowest, in_vain = None, np.inf, 0
        for start in starts:
            inside = refine(self.space.forms, criterion, self.space.lower(start), dual.weights)
            local = replace(inside, basis=self.space.lift(inside.basis))
            reached = value(local.disparities)
            self._record(criterion, local, reached)
            in_vain = 0 if reached < lowest - 1e-9 * self.problem.scale else in_vain + 1
            if best is None or reached < lowest:
                best, lowest = local, reached
            if lowest <= enough or (self.problem.is_large and in_vain == _PATIENCE):
                break
        assert best is not None
        return best

    def _record(self, criterion: Criterion, local: LocalResult, reached: float) -> None:
        self.n_iter += local.n_iter
        self.history.append(
            {
                "criterion": type(criterion).__name__,
                "value": reached,
                "spread": float(np.ptp(local.disparities)),
                "steps": local.n_iter,
            }
        )

    def _starts(self, dual: DualResult, n_starts: int) -> Iterator[Array]:
        """First the relaxed solution, then others near it, then any."""
        forms = self.space.forms
        order = np.argsort(-dual.occupation)
        yield self.space.lift(dual.vectors[:, order[: forms.r]])
        relaxed = (dual.vectors * dual.occupation) @ dual.vectors.T
        for number in range(1, n_starts):
            noise = self.rng.standard_normal((forms.d, forms.d))
            if number < n_starts // 2:
                size = 0.1 if number % 2 else 0.3
                near = eigh_descending(relaxed + size * (noise + noise.T) / 2)[1]
                yield self.space.lift(near[:, : forms.r])
            else:
                yield self.space.lift(np.linalg.qr(noise[:, : forms.r])[0])

    def _searched(self) -> str:
        return f"best of {len(self.history)} local searches"

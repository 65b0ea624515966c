"""One run of the exact solver: which searches it takes, and in which order.

docs/exact_solver.md, sections 11 and 13.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairpca._linalg.types import Array
from fairpca.certificate import Certificate, certify
from fairpca.problem import KeptBounds, Problem
from fairpca.solution import Solution
from fairpca.solvers._exact import relaxed
from fairpca.solvers._exact.criteria import Equal, MinMax, Spread
from fairpca.solvers._exact.domains import spread_domain
from fairpca.solvers._exact.dual import DualResult, maximise_dual
from fairpca.solvers._exact.forms import Forms
from fairpca.solvers._exact.local import LocalResult, refine
from fairpca.solvers._exact.multistart import CLOSED_GAP, MultiStart, enough, loss_limit, own_total
from fairpca.solvers._exact.space import SearchSpace
from fairpca.solvers._exact.two_groups import SeenWeights

MOST_STARTS = 40
"""The most starts, unless said otherwise: random ones near the end rarely find better."""

_EDGE_MU = 0.3
"""Where mu begins at a tolerance that is only just possible."""

_EDGE_STARTS = 5
"""Starts for the least loss at the smallest spread, which leaves little room to search."""

_COMPARED_STARTS = 10
"""Starts of the min-max search that an equal solution is compared with."""

_CLEAR_GAIN = 10.0
"""By how many negligible spreads somebody has to gain for a subspace to be called better."""


class Workspace:
    """What solutions of one problem at several tolerances share."""

    def __init__(self, problem: Problem) -> None:
        self.space = SearchSpace(problem)
        self.seen = SeenWeights()
        self.minmax_disparities: Array | None = None
        """Disparities of the best subspace found for "minmax", which knows no tolerance."""


@dataclass(frozen=True, eq=False)
class Finding:
    """A subspace, what is proven of it, and how it was found."""

    basis: Array
    certificate: Certificate
    message: str


def solve_near(
    problem: Problem,
    n_starts: int,
    random_state: int | None,
    shared: Workspace | None = None,
    neighbours: Sequence[Solution] = (),
) -> Solution:
    """Solve a problem beside its solutions at other tolerances, the nearest first.

    That is quicker than without them, and with `shared` what was found on the way is used again.
    """
    run = _ExactRun(problem, n_starts, random_state, shared)
    found = run.find(neighbours)
    return Solution.certified(
        problem,
        found.basis,
        found.certificate,
        solver="exact",
        n_iter=run.search.n_iter,
        n_eigen=run.n_eigen,
        message=found.message,
        history={"starts": tuple(run.search.history)},
    )


def with_minmax(problem: Problem, certificate: Certificate, better: Array | None) -> Certificate:
    """The certificate, with disparities in which nobody is worse off and some are better off."""
    if better is None:
        return certificate
    gains, level = certificate.disparities - better, problem.negligible_spread
    if gains.min() < -level or gains.max() <= _CLEAR_GAIN * level:
        return certificate
    return replace(certificate, minmax_disparities=better)


class _ExactRun:
    """One run on one problem."""

    def __init__(
        self, problem: Problem, n_starts: int, random_state: int | None, shared: Workspace | None
    ) -> None:
        self.problem, self.shared = problem, shared
        self.search = MultiStart(problem, n_starts, random_state)
        self.known: KeptBounds | None = None
        self.n_eigen = problem.n_groups + 1
        self.negligible = problem.negligible_spread

    def find(self, neighbours: Sequence[Solution]) -> Finding:
        """The best subspace that is found, certified."""
        problem = self.problem
        if (plain := relaxed.without_search(problem)) is not None:
            return self._certified(plain[0], relaxed.plain_multipliers(problem), plain[1])
        before = 0 if self.shared is None else self.shared.space.n_eigen
        self.work = Workspace(problem) if self.shared is None else self.shared
        self.space, self.known = self.work.space, self.work.space.bounds
        try:
            if problem.n_groups == 2:
                return self._two_groups()
            if problem.criterion == "minmax":
                return self._minmax()
            return self._equal(neighbours)
        finally:
            self.n_eigen = self.space.n_eigen - before

    def _certified(
        self, basis: Array, multipliers: Array, message: str, proof: Array | None = None
    ) -> Finding:
        certificate = certify(
            self.problem, basis, multipliers, spread_multipliers=proof, known=self.known
        )
        return Finding(basis, certificate, message)

    def _two_groups(self) -> Finding:
        result = relaxed.settle_two_groups(self.problem, self.space, self.work.seen)
        multipliers = relaxed.two_group_multipliers(self.problem, result.weights)
        return self._certified(self.space.lift(result.basis), multipliers, "root found")

    def _minmax(self) -> Finding:
        dual, local = self._least_largest()
        return self._certified(local.basis, dual.weights, self._searched())

    def _least_largest(self, most: int | None = None) -> tuple[DualResult, LocalResult]:
        dual = relaxed.settle_minmax(self.space)
        local = self.search.best(
            self.space,
            MinMax(),
            dual,
            value=lambda disparities: float(disparities.max()),
            enough=enough(self.problem, dual.value),
            most=most,
        )
        return dual, local

    def _equal(self, neighbours: Sequence[Solution]) -> Finding:
        problem, near = self.problem, None
        if neighbours:
            if (found := self._beside(neighbours[0])) is not None:
                return found
            near = problem.weights + neighbours[0].certificate.multipliers
        dual = relaxed.settle_equal(self.space, problem.tolerance, loss_limit(problem), near)
        if not dual.above_limit:
            known = [neighbour.basis for neighbour in neighbours]
            local = self._least_loss(dual, problem.tolerance, known)
            if np.ptp(local.disparities) <= problem.tolerance + self.negligible:
                return self._finish_equal(local, dual)
        return self._fall_back()

    def _beside(self, neighbour: Solution) -> Finding | None:
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
        self.search.record(criterion, local, float(problem.weights @ local.disparities))
        if np.ptp(local.disparities) > problem.tolerance + self.negligible:
            return None
        basis, multipliers = self.space.lift(local.basis), local.weights - problem.weights
        found = self._certified(basis, multipliers, "followed from a neighbouring tolerance")
        return self._compared(found) if found.certificate.status == "optimal" else None

    def _fall_back(self) -> Finding:
        """No equal subspace was found: the smallest spread, then the least loss at that spread."""
        problem = self.problem
        proof = self.space.settle(lambda forms: maximise_dual(forms, spread_domain(forms)))
        nearest = self.search.best(
            self.space,
            Spread(),
            proof,
            value=lambda disparities: float(np.ptp(disparities)),
            enough=max(proof.value, problem.tolerance) + self.negligible,
        )
        reached = max(float(np.ptp(nearest.disparities)), problem.tolerance)
        allowed = reached + self.negligible / 2
        # At the edge of what is possible the weights grow without bound, and the barrier with them.
        dual = relaxed.settle_equal(self.space, allowed, first_mu=_EDGE_MU)
        local = self._least_loss(dual, allowed, [nearest.basis], _EDGE_STARTS)
        unfair = np.ptp(local.disparities) > allowed + self.negligible / 2
        if unfair or problem.weights @ local.disparities > problem.weights @ nearest.disparities:
            local = nearest
        return self._finish_equal(local, dual, proof.weights)

    def _least_loss(
        self, dual: DualResult, tolerance: float, first: list[Array], most: int | None = None
    ) -> LocalResult:
        problem = self.problem

        def value(disparities: Array) -> float:
            if np.ptp(disparities) > tolerance + self.negligible / 2:
                return np.inf
            return float(problem.weights @ disparities)

        return self.search.best(
            self.space,
            Equal(problem.weights, tolerance),
            dual,
            value=value,
            enough=enough(problem, dual.value, own_total(problem)),
            most=most,
            first=first,
        )

    def _finish_equal(
        self, local: LocalResult, dual: DualResult, proof: Array | None = None
    ) -> Finding:
        # Two proofs are at hand: that of the dual search and that of the local one. The second is
        # only worth its eigenproblem where the first leaves a gap.
        def judged(weights: Array) -> Finding:
            multipliers = weights - self.problem.weights
            return self._certified(local.basis, multipliers, self._searched(), proof)

        found = judged(dual.weights)
        if found.certificate.gap > CLOSED_GAP * found.certificate.value:
            both = (found, judged(local.weights))
            found = max(both, key=lambda finding: finding.certificate.lower_bound)
        return self._compared(found)

    def _compared(self, found: Finding) -> Finding:
        """Add a subspace in which nobody is worse off, if minimising the largest finds one."""
        certificate = found.certificate
        positive = (self.problem.weights + certificate.multipliers >= 0).all()
        if certificate.status == "optimal" and positive:
            # Then the weights are also a proof for the least largest disparity: nothing to gain.
            return found
        better = self.work.minmax_disparities
        if better is None:
            better = self._least_largest(_COMPARED_STARTS)[1].disparities
            self.work.minmax_disparities = better
        return replace(found, certificate=with_minmax(self.problem, certificate, better))

    def _searched(self) -> str:
        return f"best of {len(self.search.history)} local searches"

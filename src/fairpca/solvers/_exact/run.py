"""Which searches an exact solution takes, and in which order.

docs/exact_solver.md, sections 11 and 13.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from fairpca._linalg.bound_cache import BoundCache
from fairpca._linalg.types import Array
from fairpca.certificate import Certificate, certify
from fairpca.criteria import CLOSED_GAP, OPTIMAL_GAP, AtMost, Criterion, Equal, LeastLoss, MinMax
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._exact import space as subspaces
from fairpca.solvers._exact.dual import DualResult
from fairpca.solvers._exact.edge import edge_ascents, edge_weights
from fairpca.solvers._exact.effort import Effort, is_expensive
from fairpca.solvers._exact.forms import Forms, WholeSpace
from fairpca.solvers._exact.left_out import LeftOutSpace
from fairpca.solvers._exact.local import LocalResult, is_isolated, refine
from fairpca.solvers._exact.multistart import MultiStart, refine_in
from fairpca.solvers._exact.plain import without_search
from fairpca.solvers._exact.relaxed import solve_dual
from fairpca.solvers._exact.two_groups import (
    SeenWeights,
    settle_two_groups,
    two_group_multipliers,
)

_EDGE_STARTS = 5
"""Starts for the least loss at the smallest spread, which leaves little room to search."""

_EDGE_ROOM = 1000.0
"""Negligible spreads of room that the first of these starts is found with."""

_ROOM_GAINS = 2.0
"""How many times what a negligible spread can bring has to be gained for another subspace."""

_COMPARED_STARTS = 10
"""Starts of the min-max search that an equal solution is compared with."""

_LITTLE_GAIN = 1e-3
"""The gap, relative to the value, up to which that search begins at the equal solution alone."""

_NEARLY_CLOSED, _PERHAPS_CLOSED = 1e-4, 1e-2
"""A gap, relative to the value, that better weights may close; and where the local search has found
better ones than the ascent, which then has not come to its end."""

_CLEAR_GAIN = 10.0
"""By how many negligible spreads somebody has to gain for a subspace to be called better."""


@dataclass(eq=False)
class Workspace:
    """What solutions of one problem at several tolerances share."""

    space: WholeSpace
    seen: SeenWeights = field(default_factory=SeenWeights)
    minmax_measures: Array | None = None
    """Measures of the best subspace found for "minmax", which knows no tolerance."""


@dataclass(frozen=True, eq=False)
class CertifiedBasis:
    """A subspace, what is proven of it, and how it was found."""

    basis: Array
    certificate: Certificate
    message: str


@dataclass(eq=False)
class ExactRun:
    """One run on one problem."""

    problem: Problem
    n_starts: int
    random_state: int | None
    shared: Workspace | None
    effort: Effort = field(default_factory=Effort)
    history: list[dict[str, Any]] = field(default_factory=list)
    known: BoundCache | None = None
    n_eigen: int = 0

    @cached_property
    def search(self) -> MultiStart:
        """Local searches, which two groups do without."""
        return MultiStart(self.problem, self.n_starts, self.random_state, self.history)

    def find(self, neighbours: Sequence[Solution]) -> CertifiedBasis:
        """The best subspace that is found, certified."""
        problem = self.problem
        self.n_eigen = problem.n_groups + 1
        if (plain := without_search(problem)) is not None:
            goal = problem.goal
            proof = goal.violation_proof(problem.measures(plain[0]))
            return self._certified(plain[0], goal.plain_multipliers(), plain[1], proof)
        before = 0 if self.shared is None else self.shared.space.n_eigen
        self.work = Workspace(search_space(problem)) if self.shared is None else self.shared
        self.space, self.known = self.work.space, self.work.space.bounds
        self.space.effort = self.effort
        try:
            if has_root(problem):
                return self._two_groups()
            goal = problem.goal
            if isinstance(goal, LeastLoss):
                return self._least_loss(goal, neighbours)
            return self._least_largest(goal)
        finally:
            self.n_eigen = self.space.n_eigen - before

    def _certified(
        self, basis: Array, multipliers: Array, message: str, proof: Array | None = None
    ) -> CertifiedBasis:
        certificate = certify(
            self.problem, basis, multipliers, violation_multipliers=proof, known=self.known
        )
        status, stopped_by = certificate.status, self.effort.stopped_by
        if status == "bounded" and certificate.relative_gap <= self.effort.gap:
            stopped_by = "gap"
        if status not in ("optimal", "infeasible"):
            certificate = replace(certificate, stopped_by=stopped_by)
        return CertifiedBasis(basis, certificate, message)

    def _two_groups(self) -> CertifiedBasis:
        result = settle_two_groups(self.problem, self.space, self.work.seen)
        multipliers = two_group_multipliers(self.problem, result.weights)
        return self._certified(self.space.lift(result.basis), multipliers, "root found")

    def _least_largest(self, goal: Criterion) -> CertifiedBasis:
        dual, best = self._search_largest(goal)
        found = self._proven(goal, best, dual)
        if found.certificate.status != "optimal" or not dual.is_tied:
            return found
        # Tied eigenvalues leave a choice: the least total loss.
        level = np.full(self.problem.n_groups, goal.enough(goal.value(best.measures)))
        any_bounds = AtMost(0.0, goal.measure).applied_to(self.problem)
        cheaper = any_bounds.with_upper_bounds(level)
        dual_of = solve_dual(self.space, cheaper)
        local = self.search.best(self.space, cheaper, dual_of, most=1, first=[best.basis])
        if not cheaper.value(local.measures) < cheaper.value(best.measures):
            return found
        return self._proven(goal, local, dual)

    def _search_largest(
        self, goal: Criterion, most: int | None = None
    ) -> tuple[DualResult, LocalResult]:
        dual, plain = solve_dual(self.space, goal), [self.problem.pca_basis]
        if self.problem.centering == "group":
            plain.append(self.problem.least_loss_basis)
        best = self.search.best(self.space, goal, dual, most=most, then=plain)
        # Whatever the searches end with, the worst-off group is no worse off than with PCA, and the
        # total loss is within its limit.
        ends = [LocalResult(one, dual.weights, self.problem.measures(one), 0) for one in plain]
        return dual, min(best, *ends, key=lambda found: goal.value(found.measures))

    def _least_loss(self, goal: LeastLoss, neighbours: Sequence[Solution]) -> CertifiedBasis:
        near = None
        if neighbours:
            near = self._weights_of(goal, neighbours[0])
            if (found := self._beside(goal, neighbours[0].basis, near)) is not None:
                return found
        dual = solve_dual(self.space, goal, goal.limit, near, suspected=True)
        proof = None
        if dual.above_limit:
            # In a part of the space it can be where in all of it it is not: how near any comes
            # decides, and takes a far smaller part.
            proof = solve_dual(self.space, goal.nearest())
            if not (self.space.is_whole or goal.is_impossible(proof.value)):
                dual = solve_dual(self.space, goal, goal.limit, near)
        if not dual.above_limit:
            known = [neighbour.basis for neighbour in neighbours]
            local = self.search.best(self.space, goal, dual, first=known)
            if not neighbours and goal.value(local.measures) > goal.enough(dual.value):
                local = self._from_stricter(goal, local)
            if goal.is_met(local.measures):
                return self._compared(self._proven(goal, local, dual))
        return self._fall_back(goal, proof)

    def _from_stricter(self, goal: LeastLoss, found: LocalResult) -> LocalResult:
        """The best of what was found, of equal measures, and of a search that begins there."""
        if not isinstance(goal, Equal) or goal.tolerance == 0.0:
            return found
        strict = goal.strictest()
        dual = solve_dual(self.space, strict, strict.limit)
        if dual.above_limit:
            return found
        equal = self.search.best(self.space, strict, dual)
        start = strict.weights_at(equal.measures, dual.weights)
        freer = refine_in(self.space, goal, equal.basis, start)
        self.search.record(goal, freer)
        return min(found, equal, freer, key=lambda local: goal.value(local.measures))

    def _weights_of(self, goal: LeastLoss, neighbour: Solution) -> Array:
        """The weights of a neighbour; those of the total loss where it was after another goal."""
        multipliers = neighbour.certificate.multipliers
        same = neighbour.certificate.goal == goal.name
        return goal.weights_from(multipliers if same else np.zeros(len(multipliers)))

    def _beside(self, goal: LeastLoss, start: Array, weights: Array) -> CertifiedBasis | None:
        """Search from a neighbour only; None unless its own weights prove what it finds.

        Near an optimum whose bound is attained the local search finds the dual solution as well,
        so the dual search, which is most of the work, can be left out.
        """

        def search(forms: Forms) -> LocalResult:
            below = self.space.lower(start)
            return refine(forms, goal, below, weights, effort=self.effort)

        local = self.space.settle(search)
        self.search.record(goal, local)
        if not goal.is_met(local.measures):
            return None
        basis, multipliers = self.space.lift(local.basis), goal.multipliers(local.weights)
        found = self._certified(basis, multipliers, "followed from a neighbouring point")
        status, gap = found.certificate.status, found.certificate.relative_gap
        settled = status == "optimal" or (status == "bounded" and gap <= self.effort.gap)
        return self._compared(found) if settled else None

    def _fall_back(self, goal: LeastLoss, proof: DualResult | None) -> CertifiedBasis:
        """What is asked for was not found: come near, then the least loss as near as that.

        What is proven of how near any subspace comes may be known.
        """
        negligible = self.problem.negligible_spread
        after = goal.nearest()
        proof = solve_dual(self.space, after) if proof is None else proof
        nearest = self.search.best(self.space, after, proof)
        if not goal.is_impossible(proof.value) and not self.effort.is_over():
            # Neither found nor impossible: other starts may come nearer.
            again = self.search.best(self.space, after, proof, first=[nearest.basis])
            nearest = min(nearest, again, key=lambda local: after.value(local.measures))
        least = max(goal.violation(nearest.measures), 0.0)
        exactly, allowed = goal.relaxed_by(least), goal.relaxed_by(least + negligible / 2)
        proven = after.value(nearest.measures) <= after.enough(proof.value, self.effort.gap)
        alone = proven and not proof.is_tied
        ascents = edge_ascents(
            self.space, exactly, allowed, proof.weights, alone=alone, few=is_expensive(self.problem)
        )
        known = edge_weights(self.space, exactly, proof.weights)
        if alone or self._is_isolated(after, nearest):
            # No other subspace comes so near.
            others = chain(known[1:], (dual.weights for dual in ascents))
            found = self._best_proof(goal, nearest, known[:1], others, proof.weights)
            return self._compared(found)
        dual = next(ascents)
        local = self._least_loss_at_edge(goal, least, nearest, dual)
        others = chain(known, (dual.weights for dual in ascents))
        return self._compared(self._proven(goal, local, dual, others, proof.weights))

    def _is_isolated(self, goal: Criterion, nearest: LocalResult) -> bool:
        """Whether none beside it comes so near; only looked at where searches are expensive."""
        if not is_expensive(self.problem):
            return False
        basis = self.space.lower(nearest.basis)
        return is_isolated(self.space.forms, goal, basis, nearest.weights)

    def _least_loss_at_edge(
        self, goal: LeastLoss, least: float, nearest: LocalResult, dual: DualResult
    ) -> LocalResult:
        """The least loss of several searches that come as near as what is nearest."""
        negligible, loss = self.problem.negligible_spread, self.problem.affine.weights
        allowed = goal.relaxed_by(least + negligible / 2)
        # A search along the edge creeps; one with more room does not, and ends near the same place.
        roomier = goal.relaxed_by(least + _EDGE_ROOM * negligible)
        unweighted = goal.weights_from(np.zeros(self.problem.n_groups))
        near = refine_in(self.space, roomier, nearest.basis, unweighted)
        first = [near.basis, nearest.basis]
        local = self.search.best(self.space, allowed, dual, most=_EDGE_STARTS, first=first)
        unfair = allowed.violation(local.measures) > negligible / 2
        # At the edge the loss can fall with the root of the room. What the little that is allowed
        # here brings is no better subspace, and rounding would decide how much of it is found.
        room_gain = max(float(loss @ (nearest.measures - near.measures)), 0.0)
        gain = float(loss @ (nearest.measures - local.measures))
        if unfair or gain <= _ROOM_GAINS * room_gain / np.sqrt(_EDGE_ROOM):
            return nearest
        return local

    def _proven(
        self,
        goal: Criterion,
        local: LocalResult,
        dual: DualResult,
        others: Iterable[Array] = (),
        proof: Array | None = None,
    ) -> CertifiedBasis:
        # Between the two, a bound is no worse than the worse of theirs, up to rounding.
        known = [dual.weights, local.weights, (dual.weights + local.weights) / 2]
        found = self._best_proof(goal, local, known, others, proof)
        left, proof_of_dual = found.certificate.relative_gap, goal.multipliers(dual.weights)
        ended = np.array_equal(found.certificate.multipliers, proof_of_dual)
        # What is impossible has no best weights: they grow without bound.
        most = _NEARLY_CLOSED if ended or proof is not None else _PERHAPS_CLOSED
        if is_expensive(self.problem) or not OPTIMAL_GAP < left <= most:
            return found
        # The weights may only lack digits, of which an ascent near them brings some.
        nearer = solve_dual(self.space, goal, goal.limit, local.weights)
        more = self._best_proof(goal, local, [nearer.weights], (), proof)
        return max(found, more, key=lambda finding: finding.certificate.lower_bound)

    def _best_proof(
        self,
        goal: Criterion,
        local: LocalResult,
        known: Sequence[Array],
        others: Iterable[Array] = (),
        proof: Array | None = None,
    ) -> CertifiedBasis:
        """The best of several proofs: further ones only where those before leave a gap.

        Each of the `others` takes a search, which serves to reach the gap that is small enough.
        """

        def judged(weights: Array) -> CertifiedBasis:
            multipliers = goal.multipliers(weights)
            return self._certified(local.basis, multipliers, self._searched(), proof)

        found = judged(known[0])
        for proofs, enough in (
            (known[1:2], CLOSED_GAP),
            (known[2:], OPTIMAL_GAP / 2),
            (others, max(OPTIMAL_GAP / 2, self.effort.gap)),
        ):
            left = iter(proofs)
            while found.certificate.gap > enough * found.certificate.value:
                weights = next(left, None)
                if weights is None:
                    break
                more = judged(weights)
                found = max(found, more, key=lambda finding: finding.certificate.lower_bound)
        return found

    def _compared(self, found: CertifiedBasis) -> CertifiedBasis:
        """Add a subspace in which nobody is worse off, if minimising the largest finds one."""
        certificate = found.certificate
        if certificate.goal != "equal":
            return found
        positive = (self.problem.affine.weights + certificate.multipliers > 0).all()
        if certificate.status == "optimal" and positive:
            # Then the weights are also a proof for the least largest measure: nothing to gain.
            return found
        better = self.work.minmax_measures
        if better is None and not self.effort.is_over():
            goal = MinMax(self.problem.goal.measure).applied_to(self.problem)
            # Weights that are positive prove what all groups can gain together.
            little = positive and certificate.relative_gap <= _LITTLE_GAIN
            if little or is_expensive(self.problem):
                start = goal.weights_at(certificate.measures, certificate.multipliers)
                local = refine_in(self.space, goal, found.basis, start)
                self.search.record(goal, local)
            else:
                local = self._search_largest(goal, _COMPARED_STARTS)[1]
            self.work.minmax_measures = better = local.measures
        return replace(found, certificate=with_minmax(self.problem, certificate, better))

    def _searched(self) -> str:
        return f"best of {len(self.history)} local searches"


def search_space(problem: Problem, known: BoundCache | None = None) -> WholeSpace:
    """Where the search takes place: the whole space, or for many columns one that suffices."""
    known = BoundCache() if known is None else known
    if (parts := problem.graded_losses) is not None:
        return LeftOutSpace(problem, known, parts)
    n, r = problem.moments.n_features, problem.n_components
    if n > max(subspaces.WHOLE_LIMIT, 2 * (problem.n_groups + 1) * r):
        space = subspaces.SearchSpace(problem, known)
        if space.has_room:
            return space
    return WholeSpace(problem, known)


def has_root(problem: Problem) -> bool:
    """Whether this is solved by a root-find: two groups, each with a disparity of 0 of its own."""
    goal = problem.goal
    plain = goal.measure == "disparity" and problem.measured_by is None
    return problem.n_groups == 2 and plain and goal.has_root


def with_minmax(problem: Problem, certificate: Certificate, better: Array | None) -> Certificate:
    """The certificate, with measures in which nobody is worse off and some are better off."""
    if better is None or certificate.goal != "equal":
        return certificate
    gains, level = certificate.measures - better, problem.negligible_spread
    if gains.min() < -level or gains.max() <= _CLEAR_GAIN * level:
        return certificate
    return replace(certificate, minmax_measures=better)

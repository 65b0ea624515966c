"""The exact solver: global optimum for two groups, and a certificate for any number.

`solve_near` is the whole run, from top to bottom: which searches are made, in which order, and why.
docs/exact_solver.md, sections 11 and 13. What it calls is below it, and in the files beside it
whose names begin with an underscore: the spaces in which searches take place, the search for the
best weights of the dual, local searches for a subspace, and the root-find for two groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from scipy.optimize import brentq

from fairpca._linalg.dense import Geodesic
from fairpca._linalg.threads import threads_for
from fairpca._linalg.types import Array
from fairpca.certificate import ROUNDINGS, Certificate, certify
from fairpca.criteria import (
    CLOSED_GAP,
    OPTIMAL_GAP,
    WARM_MU,
    AtMost,
    Criterion,
    Equal,
    LeastLoss,
    MinMax,
)
from fairpca.problem import Problem
from fairpca.solution import Progress, Solution
from fairpca.solvers._dual import DualResult, solve_dual
from fairpca.solvers._local import LocalResult, MultiStart, is_isolated, refine, refine_in
from fairpca.solvers._space import Effort, Forms, WholeSpace, search_space
from fairpca.solvers._two_groups import find_root, has_root
from fairpca.validation import check_number, check_seed, check_whole_number

_EXPENSIVE_GAP = 1e-5
"""The gap at which a search ends where starts are expensive, unless said otherwise: a thousandth of
a per cent is far below what rows can tell."""

_SURELY_FAIR = 0.5
"""Share of the negligible spread by which the least total loss of all may miss the criterion: below
1, so that what is taken without a search counts as fair when it is judged."""

FEW_STARTS = 5
"""Starts where one that is nearly the best is known: beside the neighbours on a front, for the
least loss at the smallest spread, and for min-max beside an equal solution."""

_EDGE_ROOM = 1000.0
"""Negligible spreads of room that the first of these starts is found with."""

_ROOM_GAINS = 2.0
"""How many times what a negligible spread can bring has to be gained for another subspace."""

_TIMES, _TRIED = np.logspace(0, 8, 17), 4
"""How many times the weights that prove the edge of what is possible are tried, and how many of
these are worth a proof: with half as many of each, gaps are up to four times as large."""

_KNOWN_MU = 1e-7
"""Where mu begins, at first, if weights are nearly known: with `WARM_MU` alone gaps are up to forty
times as large."""


@dataclass(frozen=True)
class ExactSolver:
    """Maximise the dual of the relaxed problem, then find a subspace that attains it.

    Two groups are solved to global optimality in every case. For more, the dual gives a bound
    that no subspace beats; a local search from several starts, first from the relaxed solution,
    then from random ones, finds a subspace, and the certificate says how far it can be from the
    best. It stops at the first start that closes the gap. docs/exact_solver.md derives all of it.

    Parameters
    ----------
    n_starts : int, default=40
        The most starts of the local search, for more than two groups. It ends before that when
        most likely no other end is left to be found, and with more than 120 columns after four
        starts in a row that bring nothing.
    random_state : int or None, default=None
        Seed of the starts. None is a fixed seed too: an exact solver should repeat itself.
    gap : float or None, default=None
        The search ends as soon as the value is proven to be within this share of the best possible.
        None is 1e-8 with up to 120 columns, and 1e-5 with more, where every start is expensive; 0
        is 1e-8 too. "Optimal" are values within 1e-7, whatever was asked for.
    time_limit : float or None, default=None
        Seconds after which the search ends with the best that it has, and what is proven of it. For
        more than two groups: these are solved before any limit matters.

    See Also
    --------
    fairpca.FairPCA : Uses it by default.
    fairpca.ParetoDescent : The gradient method of Kamani et al.

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
    gap: float | None = None
    time_limit: float | None = None

    name = "exact"

    def __post_init__(self) -> None:
        check_whole_number("n_starts", self.n_starts)
        check_seed(self.random_state)
        for name in ("gap", "time_limit"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), least=0.0)

    @property
    def n_steps(self) -> int:
        """The most searches of which progress is told."""
        return 2 * self.n_starts

    def solve(self, problem: Problem, progress: Progress | None = None) -> Solution:
        """Find the subspace and certify it.

        `progress` is called after each local search with the best `bound` and `value` so far, and
        returns whether to stop.
        """
        effort = self.effort(problem, progress)
        return solve_near(problem, self.n_starts, self.random_state, effort=effort)

    def effort(self, problem: Problem, progress: Progress | None = None) -> Effort:
        """When searches end; the time begins now."""
        usual = _EXPENSIVE_GAP if problem.is_expensive else CLOSED_GAP
        gap = usual if self.gap is None else max(float(self.gap), CLOSED_GAP)
        return Effort(gap, self.time_limit, progress, self.n_steps)


def best_multipliers(problem: Problem) -> Array:
    """Multipliers that prove the best bound of the relaxation: see `Problem.dual_bound`.

    The relaxation has to be feasible, as it is when a subspace within the tolerance is known.
    """
    goal = problem.goal
    if without_search(problem) is not None:
        return goal.plain_multipliers()
    space = search_space(problem)
    if has_root(problem):
        return goal.multipliers(space.solve(partial(find_root, problem, space)).weights)
    return goal.multipliers(solve_dual(space, goal).weights)


def solve_near(
    problem: Problem,
    n_starts: int,
    random_state: int | None,
    shared: WholeSpace | None = None,
    neighbours: Sequence[Solution] = (),
    effort: Effort | None = None,
) -> Solution:
    """Solve a problem, perhaps beside its solutions at other tolerances, the nearest first.

    That is quicker than without them, and with `shared` what was found on the way is used again.
    """
    goal, effort = problem.goal, effort or Effort()
    history: list[dict[str, Any]] = []
    n_eigen = problem.n_groups + 1
    with threads_for(problem.n_features):
        # 1. Where the least total loss of all is fair, or one eigenproblem gives the answer,
        #    nothing has to be searched for.
        if (plain := without_search(problem)) is not None:
            basis, message = plain
            proof = goal.violation_proof(problem.measures(basis))
            found = _certified(problem, effort, basis, goal.plain_multipliers(), message, proof)
        else:
            is_root = has_root(problem)
            space = search_space(problem) if shared is None else shared
            space.effort, before = effort, 0 if shared is None else space.n_eigen
            # 2. Two groups: the dual is a function of one weight, and its root has a subspace that
            #    attains the bound, whatever the eigenvalues. No local search is needed.
            if is_root:
                root = space.solve(partial(find_root, problem, space))
                multipliers, basis = goal.multipliers(root.weights), space.lift(root.basis)
                found = _certified(problem, effort, basis, multipliers, "root found")
            else:
                run = ExactRun(problem, n_starts, random_state, space)
                # 3. The least total loss under a condition, which may be impossible to meet.
                if isinstance(goal, LeastLoss):
                    found = run.least_loss(goal, neighbours)
                # 4. The least value without a condition: the dual, then local searches until the
                #    gap is closed.
                else:
                    found = run.least_value(goal)
                history = run.history
            n_eigen = space.n_eigen - before
    return certified_solution(
        problem,
        found.basis,
        found.certificate,
        solver="exact",
        n_iter=sum(record["steps"] for record in history),
        n_eigen=n_eigen,
        message=found.message,
        history={"starts": tuple(history)},
    )


def without_search(problem: Problem) -> tuple[Array, str] | None:
    """The answer and the reason, where nothing has to be searched for."""
    if problem.n_components == problem.n_features:
        return np.eye(problem.n_components), "the whole space loses nothing"
    # The least total loss of all: if it is fair, it is the answer.
    basis = problem.least_loss_basis
    if problem.n_groups == 1:
        return basis, "one group: ordinary PCA"
    if not problem.traces.any():
        return basis, "no group has any variance"
    goal = problem.goal
    if (direct := goal.direct_basis()) is not None:
        return direct, "one eigenproblem"
    negligible = problem.negligible_spread
    measures = problem.affine.of_losses(problem.least_losses)
    is_fair = goal.shortfall(measures) <= _SURELY_FAIR * negligible
    return (basis, goal.plain_reason) if is_fair else None


@dataclass(frozen=True, eq=False)
class CertifiedBasis:
    """A subspace, what is proven of it, and how it was found."""

    basis: Array
    certificate: Certificate
    message: str


def _certified(
    problem: Problem,
    effort: Effort,
    basis: Array,
    multipliers: Array,
    message: str,
    proof: Array | None = None,
) -> CertifiedBasis:
    """What the multipliers prove of a subspace, and what has stopped the search for others."""
    certificate = certify(problem, basis, multipliers, violation_multipliers=proof)
    status, stopped_by = certificate.status, effort.stopped_by
    if status == "bounded" and certificate.relative_gap <= effort.gap:
        stopped_by = "gap"
    if status not in ("optimal", "infeasible"):
        certificate = replace(certificate, stopped_by=stopped_by)
    return CertifiedBasis(basis, certificate, message)


class ExactRun:
    """One run on one problem that has to be searched: what its searches share."""

    def __init__(
        self,
        problem: Problem,
        n_starts: int,
        random_state: int | None,
        space: WholeSpace,
    ) -> None:
        self.problem, self.space, self.effort = problem, space, space.effort
        self.history: list[dict[str, Any]] = []
        self.search = MultiStart(problem, n_starts, random_state, self.history)

    def least_value(self, goal: Criterion) -> CertifiedBasis:
        """The subspace of least value; of several the one that loses least."""
        dual, best = self._search_value(goal)
        found = self._proven(goal, best, dual)
        if found.certificate.status != "optimal" or not dual.is_tied:
            return found
        # Tied eigenvalues leave a choice: the least total loss.
        upper_bounds = goal.no_worse(best.measures)
        cheaper = goal.of_kind(AtMost, upper_bounds=upper_bounds)
        dual_of = solve_dual(self.space, cheaper)
        local = self.search.best(self.space, cheaper, dual_of, most=1, first=[best.basis])
        if not cheaper.value(local.measures) < cheaper.value(best.measures):
            return found
        return self._proven(goal, local, dual)

    def _search_value(
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

    def least_loss(self, goal: LeastLoss, neighbours: Sequence[Solution]) -> CertifiedBasis:
        """The least total loss under the condition, or as near to it as a subspace was found."""
        near = None
        if neighbours:
            # Those of the total loss where the neighbour was after another goal.
            certificate = neighbours[0].certificate
            near = goal.weights_from(certificate.multipliers * (certificate.goal == goal.name))
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
            if goal.is_met(local.measures):
                return self._compared(self._proven(goal, local, dual))
        return self._fall_back(goal, proof)

    def _towards_pca(self, goal: LeastLoss, found: CertifiedBasis) -> CertifiedBasis:
        """As near to ordinary PCA as one that meets the condition can turn on a straight way.

        Searches from both sides may end at axes that all groups share, and miss what lies between.
        """
        if found.certificate.status != "bounded" or self.problem.is_expensive:
            return found
        path = Geodesic(self.problem.least_loss_basis, found.basis)

        def excess(t: float) -> float:
            return goal.violation(self.problem.measures(path(t)))

        if not excess(0.0) > 0.0 > excess(1.0):
            return found
        basis, multipliers = path(float(brentq(excess, 0.0, 1.0))), found.certificate.multipliers
        nearer = _certified(self.problem, self.effort, basis, multipliers, found.message)
        return min(found, nearer, key=lambda one: one.certificate.value)

    def _beside(self, goal: LeastLoss, start: Array, weights: Array) -> CertifiedBasis | None:
        """Search from a neighbour only; None unless its own weights prove what it finds.

        Near an optimum whose bound is attained the local search finds the dual solution as well,
        so the dual search, which is most of the work, can be left out.
        """

        def search(forms: Forms) -> LocalResult:
            below = self.space.lower(start)
            return refine(forms, goal, below, weights, effort=self.effort)

        local = self.space.solve(search)
        self.search.record(goal, local)
        if not goal.is_met(local.measures):
            return None
        basis, multipliers = self.space.lift(local.basis), goal.multipliers(local.weights)
        found = _certified(
            self.problem, self.effort, basis, multipliers, "followed from a neighbouring point"
        )
        status, gap = found.certificate.status, found.certificate.relative_gap
        is_proven = status == "optimal" or (status == "bounded" and gap <= self.effort.gap)
        return self._compared(found) if is_proven else None

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
        ascents = _edge_ascents(
            self.space, exactly, allowed, proof.weights, alone=alone, few=self.problem.is_expensive
        )
        known = _edge_weights(self.space, exactly, proof.weights)
        if not alone and self.problem.is_expensive:
            below = self.space.lower(nearest.basis)
            alone = is_isolated(self.space.forms, after, below, nearest.weights)
        if alone:
            # No other subspace comes so near.
            others = chain(known[1:], (dual.weights for dual in ascents))
            found = self._best_proof(goal, nearest, known[:1], others, proof.weights)
            return self._compared(found)
        dual = next(ascents)
        local = self._least_loss_at_edge(goal, least, nearest, dual)
        others = chain(known, (dual.weights for dual in ascents))
        return self._compared(self._proven(goal, local, dual, others, proof.weights))

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
        local = self.search.best(self.space, allowed, dual, most=FEW_STARTS, first=first)
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
        if goal.is_smooth:
            measures = self.problem.measures(local.basis)
            known = [goal.weights_at(measures, local.weights), *known]
        found = self._best_proof(goal, local, known, others, proof)
        if self.problem.is_expensive or not found.certificate.relative_gap > OPTIMAL_GAP:
            return found
        # The weights may only lack digits, of which an ascent near them brings some.
        nearer = solve_dual(self.space, goal, goal.limit, local.weights)
        more = self._best_proof(goal, local, [nearer.weights], (), proof)
        return max(found, more, key=lambda one: one.certificate.lower_bound)

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

        def prove(weights: Array) -> CertifiedBasis:
            message = f"best of {len(self.history)} local searches"
            return _certified(
                self.problem, self.effort, local.basis, goal.multipliers(weights), message, proof
            )

        found = prove(known[0])
        for proofs, enough in (
            (known[1:2], CLOSED_GAP),
            (known[2:], OPTIMAL_GAP / 2),
            (others, max(OPTIMAL_GAP / 2, self.effort.gap)),
        ):
            left = iter(proofs)
            while found.certificate.gap > enough * abs(found.certificate.value):
                weights = next(left, None)
                if weights is None:
                    break
                more = prove(weights)
                found = max(found, more, key=lambda one: one.certificate.lower_bound)
        return found

    def _compared(self, found: CertifiedBasis) -> CertifiedBasis:
        """Add a subspace in which nobody is worse off, if minimising the largest finds one."""
        if isinstance(self.problem.goal, LeastLoss):
            found = self._towards_pca(self.problem.goal, found)
        certificate = found.certificate
        if not isinstance(self.problem.goal, Equal):
            return found
        positive = (self.problem.affine.weights + certificate.multipliers > 0).all()
        if certificate.status == "optimal" and positive:
            # Then the weights are also a proof for the smallest largest measure: nothing to gain.
            return found
        better = self.space.minmax_measures
        if better is None and not self.effort.is_over():
            goal = MinMax(self.problem.goal.measure).applied_to(self.problem, self.problem.affine)
            if self.problem.is_expensive:
                start = goal.weights_at(certificate.measures, certificate.multipliers)
                local = refine_in(self.space, goal, found.basis, start)
                self.search.record(goal, local)
            else:
                local = self._search_value(goal, FEW_STARTS)[1]
            self.space.minmax_measures = better = local.measures
        return replace(found, certificate=with_minmax(self.problem, certificate, better))


def _edge_weights(space: WholeSpace, goal: LeastLoss, proof: Array) -> list[Array]:
    """Weights for the total loss with several times those that prove the edge, the best first.

    Larger ones leave less of a gap, and lose more to rounding.
    """

    def value(weights: Array) -> float:
        kept = float(space.forms.spectrum(weights).values[: space.forms.r].sum())
        linear = float(weights @ space.forms.constants) - goal.cost(weights)
        return linear - kept - space.forms.noise(weights)

    ahead = [space.forms.weights + times * proof for times in _TIMES]
    space.n_eigen += len(ahead)
    return sorted(ahead, key=value, reverse=True)[:_TRIED]


def _edge_ascents(
    space: WholeSpace,
    exactly: LeastLoss,
    allowed: LeastLoss,
    proof: Array,
    *,
    alone: bool,
    few: bool,
) -> Iterator[DualResult]:
    """Dual solutions at the edge, where some room is allowed or none, one after the other.

    Ascents begin with many times the weights of the proof. Unless one subspace is `alone` at the
    edge, other weights matter as well, and the first begins far away. Rounding decides how far they
    come, and the best one counts. With `few`, where they are expensive, only the first is tried.
    """
    cold: list[Any] = [(allowed, None, None)]
    warm = [
        (goal, weights, mu)
        for goal in (exactly, allowed)
        for best in [_edge_weights(space, goal, proof)[:2]]
        for mu in (_KNOWN_MU, WARM_MU)
        for weights in sorted(best, key=lambda one: -float(np.abs(one).sum()))
    ]
    ways = [*warm, *cold] if alone else [*cold, *warm]
    highest: DualResult | None = None
    for goal, near, mu in ways[:1] if few else ways:
        dual = solve_dual(space, goal, near=near, first_mu=mu)
        if goal is allowed and (highest is None or dual.value > highest.value):
            highest = dual
        yield dual
    if highest is not None and not few:
        yield solve_dual(space, allowed, near=highest.weights)


def with_minmax(problem: Problem, certificate: Certificate, better: Array | None) -> Certificate:
    """The certificate, with measures in which nobody is worse off and some are better off."""
    if better is None or not isinstance(problem.goal, Equal):
        return certificate
    gains, level = certificate.measures - better, problem.negligible_spread
    if gains.min() < -level or gains.max() <= ROUNDINGS * level:
        return certificate
    # Rounding is no gain.
    better = np.where(np.abs(gains) <= problem.rounding, certificate.measures, better)
    return replace(certificate, minmax_measures=better)


def certified_solution(
    problem: Problem,
    basis: Array,
    certificate: Certificate,
    retention: Array | None = None,
    **about: Any,
) -> Solution:
    """The solution that a certified basis is; `about` are the solver's own attributes."""
    losses = problem.group_losses(basis, retention)
    return Solution(
        basis=basis,
        group_losses=losses,
        disparities=losses - problem.own_losses,
        total_loss=float(problem.weights @ losses),
        certificate=certificate,
        retention=retention,
        **about,
    )

"""The exact solver: global optimum for two groups, and a certificate for any number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairpca._linalg.bound_cache import BoundCache
from fairpca._linalg.threads import threads_for
from fairpca._linalg.types import Array
from fairpca.certificate import Certificate
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._exact.effort import Effort, small_enough
from fairpca.solvers._exact.plain import without_search
from fairpca.solvers._exact.relaxed import solve_dual
from fairpca.solvers._exact.run import ExactRun, Workspace, has_root, search_space
from fairpca.solvers._exact.two_groups import settle_two_groups, two_group_multipliers
from fairpca.solvers._exact.units import in_safe_unit
from fairpca.solvers._iterating import Progress
from fairpca.validation import check_number, check_seed, check_whole_number

MOST_STARTS = 40
"""The most starts, unless said otherwise: random ones near the end rarely find better."""


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
        starts in a row that bring nothing (with more than 300 after two).
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

    n_starts: int = MOST_STARTS
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
        gap = small_enough(problem, self.gap)
        effort = Effort(gap, self.time_limit, progress, self.n_steps)
        solve = partial(
            solve_near, n_starts=self.n_starts, random_state=self.random_state, effort=effort
        )
        return in_safe_unit(problem, solve)


def best_multipliers(problem: Problem, known: BoundCache | None = None) -> Array:
    """Multipliers that prove the best bound of the relaxation: see `Problem.dual_bound`.

    The relaxation has to be feasible, as it is when a subspace within the tolerance is known. What
    is proven on the way is added to the bounds that are `known`.
    """
    if without_search(problem) is not None:
        return problem.goal.plain_multipliers()
    space, goal = search_space(problem, known), problem.goal
    if has_root(problem):
        return two_group_multipliers(problem, settle_two_groups(problem, space).weights)
    return goal.multipliers(solve_dual(space, goal).weights)


def solve_near(
    problem: Problem,
    n_starts: int,
    random_state: int | None,
    shared: Workspace | None = None,
    neighbours: Sequence[Solution] = (),
    effort: Effort | None = None,
) -> Solution:
    """Solve a problem beside its solutions at other tolerances, the nearest first.

    That is quicker than without them, and with `shared` what was found on the way is used again.
    """
    run = ExactRun(problem, n_starts, random_state, shared, effort or Effort())
    with threads_for(problem.moments.n_features):
        found = run.find(neighbours)
    return certified_solution(
        problem,
        found.basis,
        found.certificate,
        solver="exact",
        n_iter=sum(record["steps"] for record in run.history),
        n_eigen=run.n_eigen,
        message=found.message,
        history={"starts": tuple(run.history)},
    )


def certified_solution(
    problem: Problem,
    basis: Array,
    certificate: Certificate,
    retention: Array | None = None,
    **about: Any,
) -> Solution:
    """The solution that a certified basis is; `about` are the solver's own attributes."""
    return Solution(
        basis=basis,
        group_losses=problem.group_losses(basis, retention),
        disparities=problem.disparities(basis, retention),
        total_loss=problem.total_loss(basis, retention),
        certificate=certificate,
        retention=retention,
        **about,
    )

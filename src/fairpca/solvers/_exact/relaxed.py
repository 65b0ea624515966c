"""What can be proven of a problem: the best weights of its relaxation.

docs/exact_solver.md, sections 2, 3 and 12.
"""

from dataclasses import replace

import numpy as np

from fairpca._linalg.types import Array
from fairpca.certificate import ROUNDING_GROUP
from fairpca.problem import KeptBounds, Problem
from fairpca.solvers._exact.domains import WARM_MU, equal_domain, minmax_domain
from fairpca.solvers._exact.dual import DualResult, maximise_dual
from fairpca.solvers._exact.forms import Forms
from fairpca.solvers._exact.space import SearchSpace
from fairpca.solvers._exact.two_groups import SeenWeights, TwoGroupResult, solve_two_groups

_SMOOTH = 1e-6
"""A mu from which on nothing depends on it, up to rounding, where no eigenvalues are tied."""

_SURELY_FAIR = 1e-2
"""Share of the negligible spread by which the least total loss of all may miss the tolerance.

It is far below 1, so that what is taken without a search is clearly fair.
"""


def best_multipliers(problem: Problem, known: KeptBounds | None = None) -> Array:
    """Multipliers that prove the best bound of the relaxation: see `Problem.dual_bound`.

    The relaxation has to be feasible, as it is when a subspace within the tolerance is known. What
    is proven on the way is added to the bounds that are `known`.
    """
    if without_search(problem) is not None:
        return plain_multipliers(problem)
    space = SearchSpace(problem, known)
    if problem.n_groups == 2:
        return two_group_multipliers(problem, settle_two_groups(problem, space).weights)
    if problem.criterion == "minmax":
        return settle_minmax(space).weights
    return settle_equal(space, problem.tolerance).weights - problem.weights


def without_search(problem: Problem) -> tuple[Array, str] | None:
    """The answer and the reason, where nothing has to be searched for."""
    if problem.n_components == problem.moments.n_features:
        return np.eye(problem.n_components), "the whole space loses nothing"
    # The least total loss of all: if it is fair, it is the answer.
    basis = problem.least_loss_basis
    if problem.n_groups == 1:
        return basis, "one group: ordinary PCA"
    slack = _SURELY_FAIR * problem.negligible_spread
    disparities = problem.disparities(basis)
    if problem.criterion == "equal" and np.ptp(disparities) <= problem.tolerance + slack:
        return basis, "the least total loss of all meets the criterion"
    if disparities.max() <= ROUNDING_GROUP * float(problem.traces.max()):
        return basis, "the least total loss of all is best for every group"
    return None


def plain_multipliers(problem: Problem) -> Array:
    """What proves the bound where nothing has to be searched for."""
    k = problem.n_groups
    return np.full(k, 1.0 / k) if problem.criterion == "minmax" else np.zeros(k)


def settle_minmax(space: SearchSpace) -> DualResult:
    """The dual of the least largest disparity."""
    return space.settle(lambda forms: maximise_dual(forms, minmax_domain(forms)))


def settle_equal(
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
        # Of several rounds the first is rarely the last: it need not be exact.
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


def settle_two_groups(
    problem: Problem, space: SearchSpace, seen: SeenWeights | None = None
) -> TwoGroupResult:
    """The optimum for two groups; min-max and equality have the same."""
    tolerance = 0.0 if problem.criterion == "minmax" else problem.tolerance
    first, second = problem.own_subspaces
    total = problem.total_eigenpairs if space.is_whole else None
    if total is not None and len(total[0]) < problem.moments.n_features:
        total = None

    def solve(forms: Forms) -> TwoGroupResult:
        own = (space.lower(first), space.lower(second))
        return solve_two_groups(forms, tolerance, own, total, seen)

    return space.settle(solve)


def two_group_multipliers(problem: Problem, weights: Array) -> Array:
    """What proves the bound at the best weights of two groups."""
    if problem.criterion == "minmax":
        scaled: Array = weights / weights.sum()
        return scaled
    return weights - problem.weights

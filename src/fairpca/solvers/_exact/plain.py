"""Where nothing has to be searched for: the answer, and what proves it.

docs/exact_solver.md, section 11.
"""

import numpy as np

from fairpca._linalg.types import Array
from fairpca.problem import Problem
from fairpca.solvers._exact.goals import LeastLoss, goal_of

_SURELY_FAIR, _NOBODY_GAINS = 1e-2, 0.5
"""Share of the negligible spread by which the least total loss of all may miss what is asked for:
far below 1, so that what is taken without a search is clearly fair; and where no group can gain as
much as half of it, so that there is nothing to search for but rounding.
"""


def without_search(problem: Problem) -> tuple[Array, str] | None:
    """The answer and the reason, where nothing has to be searched for."""
    if problem.n_components == problem.moments.n_features:
        return np.eye(problem.n_components), "the whole space loses nothing"
    # The least total loss of all: if it is fair, it is the answer.
    basis = problem.least_loss_basis
    if problem.n_groups == 1:
        return basis, "one group: ordinary PCA"
    if not problem.traces.any():
        return basis, "no group has any variance"
    measures, negligible = problem.measures(basis), problem.negligible_spread
    at_best = (measures <= problem.measured.floor + _NOBODY_GAINS * negligible).all()
    slack = (_NOBODY_GAINS if at_best else _SURELY_FAIR) * negligible
    if problem.goal == "equal" and np.ptp(measures) <= problem.tolerance + slack:
        return basis, "the least total loss of all meets the criterion"
    if problem.goal == "bounds" and (measures <= problem.caps + slack).all():
        return basis, "the least total loss of all meets the bounds"
    if problem.goal in ("equal", "bounds"):
        return None
    if measures.max() <= problem.measured.least + slack:
        return basis, "the least total loss of all is best for the worst-off group"
    return None


def plain_multipliers(problem: Problem) -> Array:
    """What proves the bound where nothing has to be searched for."""
    worst = np.zeros(problem.n_groups)
    if problem.goal in ("minmax", "max_extra_loss"):
        # The group that cannot do better in a subspace of its own.
        worst[int(np.argmax(problem.measured.floor))] = 1.0
    return worst


def plain_proof(problem: Problem, basis: Array) -> Array | None:
    """What proves that nothing else can come nearer, where the only basis misses what is asked."""
    goal, measures = goal_of(problem), problem.measures(basis)
    if isinstance(goal, LeastLoss) and goal.miss(measures) > problem.negligible_spread:
        return goal.missing(measures)
    return None

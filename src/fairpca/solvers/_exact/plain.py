"""Where nothing has to be searched for: the answer, and what proves it.

docs/exact_solver.md, section 11.
"""

import numpy as np

from fairpca._linalg.types import Array
from fairpca.problem import Problem

_SURELY_FAIR, _NOBODY_GAINS = 1e-2, 0.5
"""Share of the negligible spread by which the least total loss of all may miss the criterion: far
below 1, so that what is taken without a search is clearly fair; and where no group can gain as much
as half of it, so that there is nothing to search for but rounding.
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
    goal = problem.goal
    if (direct := goal.direct_basis()) is not None:
        return direct, "one eigenproblem"
    measures, negligible = problem.measures(basis), problem.negligible_spread
    at_best = (measures <= problem.affine.floor + _NOBODY_GAINS * negligible).all()
    slack = (_NOBODY_GAINS if at_best else _SURELY_FAIR) * negligible
    return (basis, goal.plain_reason) if goal.shortfall(measures) <= slack else None

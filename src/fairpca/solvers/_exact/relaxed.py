"""The best weights of the relaxation.

docs/exact_solver.md, sections 2 and 3.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.criteria import WARM_MU, Criterion
from fairpca.solvers._exact.dual import DualResult, maximise_dual, mu_unit
from fairpca.solvers._exact.forms import Forms, WholeSpace

_RESUMED_MU = 1e-5
"""Where mu begins when the search space has grown, and the solution hardly moves."""

_SMOOTH = 1e-6
"""A mu from which on nothing depends on it, up to rounding, where no eigenvalues are tied."""


_SLACK = 0.1
"""Share of the gap that is small enough that the dual may leave."""


def solve_dual(
    space: WholeSpace,
    goal: Criterion,
    limit: float = np.inf,
    near: Array | None = None,
    first_mu: float | None = None,
    *,
    suspected: bool = False,
) -> DualResult:
    """The dual solution of a goal; `near` are weights that are thought to be nearly best.

    If `suspected`, a value above the limit is not brought down by letting the search space grow.
    """
    first_mu = WARM_MU if near is not None and first_mu is None else first_mu
    last: DualResult | None = None

    def slack(value: float) -> float:
        return _SLACK * (goal.enough(value, space.effort.gap) - value)

    def solve(forms: Forms) -> DualResult:
        nonlocal last
        # Of several rounds the first is rarely the last: it need not be exact.
        how: dict[str, Any] = {
            "polish": space.is_whole or last is not None,
            "effort": space.effort,
            "slack": slack,
        }
        spent = 0
        if last is not None and last.smooth_at is not None and last.smooth_at >= _SMOOTH:
            # The solution in the space before is near.
            domain = goal.domain(last.weights, unit=mu_unit(forms))
            last = maximise_dual(forms, domain, limit, first_mu=last.smooth_at, **how)
            if last.smooth_at is not None:
                return last
            spent = last.n_eigen
        elif last is not None and goal.resumes and not last.is_tied:
            near_mu = 0.0 if last.is_polished else _RESUMED_MU
            domain = goal.domain(last.weights, near_mu, mu_unit(forms))
            how["at_end"] = last.is_polished
            last = maximise_dual(forms, domain, limit, first_mu=_RESUMED_MU, **how)
            return last
        # Where eigenvalues are tied, solutions jump from one space to the next.
        domain = goal.domain(near, unit=mu_unit(forms))
        last = maximise_dual(forms, domain, limit, first_mu=first_mu, **how)
        return replace(last, n_eigen=last.n_eigen + spent)

    found = space.settle(solve, (lambda dual: dual.above_limit) if suspected else None)
    return space.settle(solve) if found.is_rough and not space.effort.is_over() else found

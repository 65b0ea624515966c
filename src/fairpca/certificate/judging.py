"""certify: judge a subspace by what multipliers prove.

What the bounds are computed from: docs/exact_solver.md, section 16.
"""

import numpy as np

from fairpca._linalg.kept_bounds import KeptBounds
from fairpca._linalg.types import Array
from fairpca.certificate.record import Certificate
from fairpca.certificate.words import NOUNS
from fairpca.exceptions import warn_user
from fairpca.problem import Problem

OPTIMAL_GAP = 1e-7
"""Gap, relative to the value, up to which a solution counts as optimal."""

EQUAL = 1e-8
"""Spread, relative to the largest measure, that counts as none."""

EQUAL_WORD = 1e-7
"""Spread, relative to the largest measure, up to which measures are called equal."""

_NO_CHANGE = 1e-9
"""Part of a group's variance below which it is neither better nor worse off, as in `GroupTable`."""

_NOTHING = 10.0
"""A value of at most so many times what rounding can cause is nothing."""


def certify(
    problem: Problem,
    basis: Array,
    multipliers: Array,
    *,
    miss_multipliers: Array | None = None,
    retention: Array | None = None,
    known: KeptBounds | None = None,
) -> Certificate:
    """Judge a subspace by the bounds that the multipliers prove, wherever both come from.

    `retention` says what is kept along each column of the basis (see `Solution`); bounds that are
    `known` need not be proven again (see `Problem.dual_bound`).
    """
    measured, measures = problem.measured, problem.measures(basis, retention)
    # The largest that they can be, where the groups' own subspaces are only known nearly.
    at_most = measures + measured.errors
    spread = float(at_most.max() - measures.min())
    total_loss = problem.total_loss(basis, retention)
    goal = problem.goal
    negligible = max(problem.negligible_spread, EQUAL * float(np.abs(measures).max()))
    miss, allowed, slack = 0.0, negligible, 0.0
    if goal == "equal":
        miss, allowed = spread, problem.tolerance + negligible
        slack = max(spread - problem.tolerance, 0.0)
    elif goal == "bounds":
        miss = slack = max(float((at_most - problem.caps).max()), 0.0)
    elif goal == "max_extra_loss":
        slack = max(total_loss - problem.most_loss, 0.0)
    # The bound speaks of subspaces that are as far from what was asked for as this one, or less so.
    bound = problem.dual_bound(multipliers, slack, start=basis, known=known)
    none = np.zeros(problem.n_groups)
    if goal in ("equal", "bounds") and bound < problem.total_loss(problem.least_loss_basis):
        # No subspace loses less than this, whatever is asked for.
        least = problem.dual_bound(none, slack, known=known)
        bound, multipliers = (least, none) if least > bound else (bound, multipliers)
    if goal in ("equal", "bounds"):
        value = total_loss
        exact_miss = float(np.ptp(measures)) if goal == "equal" else miss
        met = exact_miss <= allowed
    else:
        value, met = max(float(at_most.max()), measured.least), True  # smaller only by rounding
    rounding = problem.rounding * (1.0 if goal not in ("equal", "bounds") else measured.loss_unit)
    gap, miss_bound = max(value - bound, 0.0), 0.0
    if miss_multipliers is not None:
        miss_bound = max(problem.miss_bound(miss_multipliers, known=known), 0.0)
    if basis.shape[1] > problem.n_components:
        status = "relaxed"
    elif met:
        nothing = abs(value) <= _NOTHING * rounding
        status = "optimal" if nothing or gap <= OPTIMAL_GAP * abs(value) else "bounded"
    else:
        status = "infeasible" if miss_bound > allowed else "unresolved"
    sizes = measured.traces if problem.lost_parts is None else measured.scale
    change = measures - problem.measures(problem.pca_basis)
    plain = problem.measure == "disparity" and problem.measured_by is None
    means = problem.loss == "mean" and problem.centering == "global"
    return Certificate(
        status=status,
        goal=goal,
        value=value,
        lower_bound=bound,
        gap=gap,
        relative_gap=gap / abs(value) if abs(value) > rounding else 0.0,
        rounding=rounding,
        said_spread=_said_spread(problem, measures, spread),
        spread=spread,
        miss=miss,
        miss_bound=miss_bound,
        tolerance=problem.tolerance,
        multipliers=multipliers,
        measures=measures,
        change_from_pca=np.where(np.abs(change) <= _NO_CHANGE * sizes, 0.0, change),
        n_components=problem.n_components,
        n_dimensions=basis.shape[1],
        measure=NOUNS[problem.measure, bool(problem.relative)],
        own_error=float(problem.own_errors.max()) if plain else 0.0,
        covers_mixtures=plain and means and goal == "minmax" and problem.own_bases is None,
        pca_is_least=problem.centering == "global",
        extra_loss=problem.max_extra_loss,
        miss_multipliers=miss_multipliers,
    )


def _said_spread(problem: Problem, measures: Array, spread: float) -> float:
    """The spread beyond what was asked for, if the measures may not be called equal; else 0."""
    size = float(np.abs(measures).max())
    if spread - problem.tolerance <= EQUAL_WORD * size:
        return 0.0
    # All are nothing but rounding, unless columns are so different that nobody can tell.
    zero = problem.lost_parts is None and max(spread, size) <= _NOTHING * problem.rounding
    return 0.0 if zero else spread


def warn_of_certificate(certificate: Certificate) -> None:
    """Warn where what was asked for was not found, or every one of several groups is worse off."""
    worse = certificate.all_worse_off and len(certificate.measures) > 1
    if worse or certificate.status in ("infeasible", "unresolved"):
        warn_user(str(certificate))

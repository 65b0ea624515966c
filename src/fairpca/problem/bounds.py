"""What multipliers prove of all subspaces: docs/exact_solver.md, section 16."""

# ruff: noqa: D102

from collections.abc import Hashable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from fairpca._linalg.graded import LostParts
from fairpca._linalg.kept_bounds import KeptBounds
from fairpca._linalg.measured import EPS, Measured
from fairpca._linalg.types import Array, GroupMatrices
from fairpca._rows.per_group import per_group


class Posed(Protocol):
    """What is asked of a `Problem` here, where each of these is explained."""

    @property
    def tolerance(self) -> float: ...
    @property
    def n_components(self) -> int: ...
    @property
    def goal(self) -> str: ...
    @property
    def is_large(self) -> bool: ...
    @property
    def stake(self) -> float: ...
    @property
    def most_loss(self) -> float: ...
    @property
    def caps(self) -> Array: ...
    @property
    def measured(self) -> Measured: ...
    @property
    def lost_parts(self) -> LostParts | None: ...
    @property
    def total_eigenpairs(self) -> tuple[Array, Array]: ...
    def least_weighted(
        self, weights: Array, start: Array | None = None, known: KeptBounds | None = None
    ) -> float: ...


def checked_bounds(
    given: Any, labels: tuple[Hashable, ...], names: tuple[str, ...] | None, measure: str
) -> Array:
    """The bounds that were given, one for each group, or ValueError."""
    others = 0.0 if measure == "variance" else np.inf
    bounds = per_group(labels, "bounds", given, names, others)
    if measure == "variance" and not np.isfinite(bounds).all():
        raise ValueError(f"bounds on what groups keep must be finite, got {given!r}.")
    return bounds


def checked(multipliers: ArrayLike, n_groups: int) -> Array:
    """The multipliers as an array, or ValueError."""
    values = np.asarray(multipliers, dtype=np.float64)
    if values.shape != (n_groups,) or not np.isfinite(values).all():
        raise ValueError(
            f"multipliers must be one finite number for each of the {n_groups} groups, "
            f"got {multipliers!r}."
        )
    return values


def least_weighted(
    problem: Posed,
    matrices: GroupMatrices,
    weights: Array,
    start: Array | None,
    known: KeptBounds | None,
) -> float:
    """As `Problem.least_weighted` says."""
    measured = problem.measured
    if problem.lost_parts is not None:
        turn, offsets = problem.total_eigenpairs[1], measured.offsets
        least = problem.lost_parts.least(weights / measured.units, turn)
        return least - float(weights @ offsets + 4 * EPS * np.abs(weights) @ np.abs(offsets))
    known = known if problem.is_large else None  # few columns are as quick as a look-up
    kept = None if known is None else known.find(weights, measured.traces)
    if kept is None:
        inner = weights / measured.units
        kept = matrices.leading_sum_bound(inner, problem.n_components, start)
        if known is not None:
            known.add(weights, kept)
    # Less the rounding of sums and eigenvalues, so that the bound holds as printed.
    most = weights @ measured.constants - 16 * EPS * np.abs(weights) @ measured.sizes
    return float(most) - kept


def dual_bound(
    problem: Posed,
    values: Array,
    slack: float,
    start: Array | None,
    known: KeptBounds | None,
) -> float:
    """As `Problem.dual_bound` says."""
    measured, goal = problem.measured, problem.goal
    # The values themselves are rounded too: total losses, or measures.
    base, rounding = measured.base - 4 * EPS * problem.stake, 4 * EPS * measured.scale
    if goal == "equal":
        values = values - values.mean()
        cost = (problem.tolerance + slack) * float(np.maximum(values, 0.0).sum())
        least = problem.least_weighted(measured.weights + values, start, known)
        return base + least - cost - measured.doubt(values)
    positive = np.maximum(values, 0.0)
    if goal == "bounds":
        least = problem.least_weighted(measured.weights + positive, start, known)
        # Constants may be larger than stated; the caps are on what was measured.
        return base + least - float(positive @ (problem.caps + slack))
    if not positive.any():
        return measured.least
    if goal == "minmax":
        weights = positive / positive.sum()
        return max(problem.least_weighted(weights, start, known) - rounding, measured.least)
    weights, price = measured.split(positive)
    least = problem.least_weighted(weights + price * measured.weights, start, known) - rounding
    return max(least - price * (problem.most_loss + slack - base), measured.least)


def miss_bound(problem: Posed, values: Array, known: KeptBounds | None) -> float:
    """As `Problem.miss_bound` says."""
    values = values - values.mean() if problem.goal == "equal" else np.maximum(values, 0.0)
    size = float(np.maximum(values, 0.0).sum())
    if size == 0.0:
        return 0.0
    least = problem.least_weighted(values, None, known)
    if problem.goal == "bounds":
        return (least - float(values @ problem.caps)) / size
    return (least - problem.measured.doubt(values)) / size

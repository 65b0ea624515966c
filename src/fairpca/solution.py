"""What a solver returns: Solution, with the Certificate that says how good it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairpca.linalg import Array
from fairpca.problem import Problem

OPTIMAL_GAP = 1e-7
"""Gap, relative to the total loss, up to which a solution counts as optimal."""

_ROUNDING_GAP = 1e-12
"""Gap, relative to tr(A), that rounding alone can cause."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """How good a subspace is, and the proof.

    Attributes
    ----------
    status : {"optimal", "bounded", "infeasible", "unresolved"}
        "optimal": the criterion is met and no subspace of this dimension does better.
        "bounded": the criterion is met, and no subspace is better by more than `gap`.
        "infeasible": no subspace has disparities within the tolerance, which is proven; the one
        returned has the smallest spread that was found, and the least total loss at that spread.
        "unresolved": the proof of impossibility fails, yet no subspace with disparities within
        the tolerance was found; what is returned is as for "infeasible".
    criterion : {"equal", "minmax"}
        What was asked for.
    value : float
        What was achieved: the total loss ("equal") or the largest disparity ("minmax").
    lower_bound : float
        No subspace has a smaller value; for "equal", none whose spread is at most the larger of
        `spread` and `tolerance`.
    gap : float
        ``value - lower_bound``, not below zero.
    relative_gap : float
        The gap divided by the total loss.
    spread : float
        Largest difference between the disparities of two groups that was achieved.
    spread_bound : float
        No subspace has a smaller spread. Zero unless equality is impossible.
    tolerance : float
        The spread that was asked for.
    multipliers : array of shape (k,)
        The proof of the bound: see `Problem.dual_bound`.
    spread_multipliers : array of shape (k,) or None
        The proof of `spread_bound`: see `Problem.spread_bound`.
    minmax_disparities : array of shape (k,) or None
        Disparities of a subspace in which no group is worse off than in the one returned, and all
        or some are better off, when the criterion is "equal" and such a subspace was found by
        minimising the largest disparity. Equality can level down.
    disparities : array of shape (k,)
        Disparities of the subspace returned.
    """

    status: str
    criterion: str
    value: float
    lower_bound: float
    gap: float
    relative_gap: float
    spread: float
    spread_bound: float
    tolerance: float
    multipliers: Array
    disparities: Array
    spread_multipliers: Array | None = None
    minmax_disparities: Array | None = None

    @property
    def levels_down(self) -> float:
        """How much every group would gain, at the least, under "minmax"; 0 if some would not."""
        if self.minmax_disparities is None:
            return 0.0
        return float((self.disparities - self.minmax_disparities).min())

    def __str__(self) -> str:
        return " ".join(self.sentences())

    def sentences(self) -> list[str]:
        """The certificate in plain words."""
        return [self._finding(), *self._levelling()]

    def _finding(self) -> str:
        if self.criterion == "minmax":
            if self.status == "optimal":
                return (
                    f"Proven optimal: in every subspace of this dimension some group has a "
                    f"disparity of at least {self.value:.6g}, and here none has more."
                )
            return (
                f"No group has a disparity above {self.value:.6g}; no subspace of this dimension "
                f"can bring the largest one below {self.lower_bound:.6g}."
            )
        within = (
            "equal disparities"
            if self.tolerance == 0
            else f"disparities within {self.tolerance:.6g} of each other"
        )
        if self.status == "optimal":
            return (
                f"Proven optimal: no subspace of this dimension that gives all groups {within} "
                f"has a smaller total loss than {self.value:.6g}."
            )
        if self.status == "bounded":
            return (
                f"All groups have {within}; the total loss, {self.value:.6g}, is at most "
                f"{100 * self.relative_gap:.2g} % above the smallest possible."
            )
        if self.status == "infeasible":
            return (
                f"Proven impossible: in every subspace of this dimension the disparities of two "
                f"groups differ by at least {self.spread_bound:.6g}. Returned is the smallest "
                f"difference found, {self.spread:.6g}."
            )
        return (
            f"No subspace of this dimension with {within} was found, and none is proven "
            f"impossible. Returned is the smallest difference found, {self.spread:.6g}."
        )

    def _levelling(self) -> list[str]:
        if self.minmax_disparities is None:
            return []
        most = float((self.disparities - self.minmax_disparities).max())
        return [
            "Equality levels down here: criterion='minmax' leaves no group worse off and lowers "
            f"the groups' disparities by {self.levels_down:.6g} to {most:.6g}."
        ]


@dataclass(frozen=True, eq=False)
class Solution:
    """A subspace, what it costs each group, and its certificate.

    Attributes
    ----------
    basis : array of shape (d, r)
        Orthonormal columns that span the subspace.
    group_losses : array of shape (k,)
        Reconstruction loss of each group.
    disparities : array of shape (k,)
        What each group loses beyond its own best subspace.
    total_loss : float
        Weighted sum of the groups' losses.
    certificate : Certificate
        How good the subspace is, and the proof.
    solver : str
        Name of the solver.
    n_iter : int
        Iterations, in the solver's own counting.
    n_eigen : int
        Eigenproblems solved, those of the groups and of ordinary PCA included.
    message : str
        Why the solver stopped.
    history : dict
        What the solver recorded on its way.
    """

    basis: Array
    group_losses: Array
    disparities: Array
    total_loss: float
    certificate: Certificate
    solver: str
    n_iter: int
    n_eigen: int
    message: str
    history: dict[str, Any] = field(default_factory=dict)


def certify(
    problem: Problem,
    basis: Array,
    multipliers: Array,
    *,
    spread_multipliers: Array | None = None,
    minmax_disparities: Array | None = None,
    feasibility: float = 0.0,
) -> Certificate:
    """Judge a subspace by the bounds that the multipliers prove, wherever both come from.

    `feasibility` is the rounding within which a spread counts as within the tolerance.
    """
    disparities = problem.disparities(basis)
    spread = float(np.ptp(disparities))
    total_loss = problem.total_loss(basis)
    if problem.criterion == "minmax":
        value = float(disparities.max())
        bound = problem.dual_bound(multipliers, start=basis)
    else:
        value = total_loss
        # The bound speaks of subspaces that are as unequal as this one, or less so.
        bound = problem.dual_bound(multipliers, max(problem.tolerance, spread), start=basis)
    gap = max(value - bound, 0.0)
    spread_bound = 0.0
    if spread_multipliers is not None:
        spread_bound = max(problem.spread_bound(spread_multipliers), 0.0)
    if problem.criterion == "minmax" or spread <= problem.tolerance + feasibility:
        closed = gap <= max(OPTIMAL_GAP * total_loss, _ROUNDING_GAP * problem.scale)
        status = "optimal" if closed else "bounded"
    elif spread_bound > problem.tolerance + feasibility:
        status = "infeasible"
    else:
        status = "unresolved"
    return Certificate(
        status=status,
        criterion=problem.criterion,
        value=value,
        lower_bound=bound,
        gap=gap,
        relative_gap=gap / total_loss if total_loss > _ROUNDING_GAP * problem.scale else 0.0,
        spread=spread,
        spread_bound=spread_bound,
        tolerance=problem.tolerance,
        multipliers=multipliers,
        disparities=disparities,
        spread_multipliers=spread_multipliers,
        minmax_disparities=minmax_disparities,
    )

"""Certificate: how good a subspace is, what proves it, and both in words.

What the bounds are computed from: docs/exact_solver.md, section 16.
"""

import decimal
import html
from dataclasses import dataclass

import numpy as np

from fairpca._linalg.types import Array
from fairpca.problem import KeptBounds, Problem

OPTIMAL_GAP = 1e-7
"""Gap, relative to the value, up to which a solution counts as optimal."""

ROUNDING_TOTAL, ROUNDING_GROUP = 1e-12, 1e-14
"""Gap, relative to tr(A) and to the largest trace of a group, that rounding alone can cause."""


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """How good a subspace is, and the proof. Print it to read it in words.

    Attributes
    ----------
    status : {"optimal", "bounded", "infeasible", "unresolved", "relaxed"}
        "optimal": the criterion is met, and no subspace of this dimension does better by more
        than rounding (1e-7 of `value`, 1e-12 of tr(A), or 1e-14 of a group's own trace).
        "bounded": the criterion is met, and no subspace does better by more than `gap`.
        "infeasible": no subspace has disparities within the tolerance, which is proven; the one
        returned has the smallest spread that was found, and the least total loss that was found
        at that spread.
        "unresolved": the proof of impossibility fails, yet no subspace with disparities within
        the tolerance was found; what is returned is as for "infeasible".
        "relaxed": more dimensions are used than were asked for, as the published methods that
        round a semidefinite relaxation do; the bounds are those of the dimension asked for.
        Disparities count as within the tolerance up to 1e-10 of tr(A).
    criterion : {"equal", "minmax"}
        What was asked for. "minmax" is always met, so it never ends as "infeasible" or
        "unresolved".
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
        The spread that was asked for. A solver that only approaches it, as `ParetoDescent` does,
        has the spread that it reached here, so that its certificate measures the rest: how far
        the total loss is from the smallest possible at that spread.
    multipliers : array of shape (k,)
        The proof of the bound: `Problem.dual_bound` recomputes it from them, with the larger of
        `spread` and `tolerance` as its tolerance.
    disparities : array of shape (k,)
        Disparities of the subspace returned.
    n_components : int
        The dimension that was asked for, of which the bounds speak.
    n_dimensions : int
        The dimension that is used.
    own_error : float
        By how much disparities can be larger than stated, because the groups' own subspaces are
        only known nearly (`Problem(own_bases=...)`). `value`, `gap` and `spread` allow for it.
    requested_tolerance : float or None
        The spread that was asked for, where `tolerance` is that which was reached.
    spread_multipliers : array of shape (k,) or None
        The proof of `spread_bound`: see `Problem.spread_bound`.
    minmax_disparities : array of shape (k,) or None
        Disparities of a subspace that was found by minimising the largest one, when in it no
        group is worse off than in the subspace returned, and some are better off; else None. With
        more than two groups, equality can level down in this way.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import ExactSolver, GroupMoments, Problem
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> certificate = ExactSolver().solve(problem).certificate
    >>> certificate
    Proven optimal: all groups have equal disparities at a total loss of 0.9, and no subspace of
    this dimension that does the same loses less.
    >>> round(problem.dual_bound(certificate.multipliers), 9)
    0.9
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
    n_components: int
    n_dimensions: int
    own_error: float = 0.0
    requested_tolerance: float | None = None
    spread_multipliers: Array | None = None
    minmax_disparities: Array | None = None

    @property
    def least_gain(self) -> float:
        """How much every group would gain, at the least, in the subspace found for "minmax"."""
        if self.minmax_disparities is None:
            return 0.0
        return max(float((self.disparities - self.minmax_disparities).min()), 0.0)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return " ".join(self.sentences())

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences())

    def sentences(self) -> list[str]:
        """The certificate in plain words; bounds are rounded to the safe side."""
        if len(self.disparities) == 1:
            return ["One group: the result is that of ordinary PCA."]
        asked, met = self.requested_tolerance, self.status in ("optimal", "bounded")
        equal, levels_down = self.criterion == "equal", self.minmax_disparities is not None
        apart = self.spread_bound > _SAYS_NOTHING * max(self.spread, self.tolerance)
        finding = f"{self.criterion}, {self.status}"
        said = {
            "extra dimensions": self.status == "relaxed",
            finding if finding in _SENTENCES else "equal, unresolved": True,
            "least spread": equal and met and apart,
            "unmet": equal and asked is not None and self.tolerance > asked,
            "levels down": levels_down and met,
            "alternative": levels_down and not met,
            "doubt": self.own_error > 0.0,
        }
        facts = self._facts()
        return [_SENTENCES[name].format(**facts) for name, holds in said.items() if holds]

    def _facts(self) -> dict[str, object]:
        apart = self.tolerance if self.own_error == 0 else max(self.tolerance, self.spread)
        most = 0.0
        if self.minmax_disparities is not None:
            most = float((self.disparities - self.minmax_disparities).max())
        return {
            "within": _within(rounded(apart, 6, up=True)),
            "asked": _within(f"{self.requested_tolerance or 0:g}").capitalize(),
            "at_most": rounded(self.value, 6, up=True),
            "at_least": rounded(self.lower_bound, 6, up=False),
            "loss": f"{self.value:.6g}",
            "gap": rounded(100 * self.relative_gap, 2, up=True),
            "spread": f"{self.spread:.6g}",
            "least_spread": rounded(self.spread_bound, 6, up=False),
            "gains": f"{self.least_gain:.3g} to {most:.3g}",
            "error": rounded(self.own_error, 2, up=True),
            "r": self.n_components,
            "used": self.n_dimensions,
            "more": self.n_dimensions - self.n_components,
        }


_SAYS_NOTHING = 1e-9
"""A bound on the spread, relative to the spread, that is not worth a sentence."""

_LEVELS = (
    "with criterion='minmax' no group is worse off, and disparities are lower by {gains}, though "
    "not equal."
)

_SENTENCES = {
    "extra dimensions": "Uses {used} dimensions, {more} more than the {r} asked for.",
    "minmax, relaxed": "No group has a disparity above {at_most}; in a subspace of {r} dimensions "
    "some group has at least {at_least}.",
    "equal, relaxed": "Disparities differ by {spread} at a total loss of {at_most}; a subspace of "
    "{r} dimensions in which they differ by no more loses at least {at_least}.",
    "minmax, optimal": "Proven optimal: in every subspace of this dimension some group has a "
    "disparity of at least {at_least}, and here none has more than {at_most}.",
    "minmax, bounded": "No group has a disparity above {at_most}; no subspace of this dimension "
    "can bring the largest one below {at_least}.",
    "equal, optimal": "Proven optimal: all groups have {within} at a total loss of {loss}, and no "
    "subspace of this dimension that does the same loses less.",
    "equal, bounded": "All groups have {within}, at a total loss of {loss}; no subspace of this "
    "dimension that does the same can lower it by more than {gap} %.",
    "equal, infeasible": "Proven impossible: in every subspace of this dimension the disparities "
    "of two groups differ by at least {least_spread}. The smallest difference that was found is "
    "{spread}.",
    "equal, unresolved": "No subspace of this dimension with {within} was found, and none is "
    "proven impossible. The smallest difference that was found is {spread}.",
    "least spread": "In every subspace of this dimension the disparities of two groups differ by "
    "at least {least_spread}.",
    "unmet": "{asked} were not reached: this solver has a criterion of its own.",
    "levels down": f"Equality levels down here: {_LEVELS}",
    "alternative": f"There is an alternative: {_LEVELS}",
    "doubt": "The groups' own subspaces are only known nearly: their disparities can be larger "
    "than measured by {error}, for which all this allows.",
}


def _within(apart: str) -> str:
    return "equal disparities" if apart == "0" else f"disparities within {apart} of each other"


def rounded(number: float, digits: int, *, up: bool) -> str:
    """The number to so many significant digits, not below it (up) or not above it."""
    context = decimal.Context(
        prec=digits, rounding=decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    )
    return f"{context.create_decimal_from_float(number).normalize(context):g}"


def certify(
    problem: Problem,
    basis: Array,
    multipliers: Array,
    *,
    spread_multipliers: Array | None = None,
    retention: Array | None = None,
    known: KeptBounds | None = None,
) -> Certificate:
    """Judge a subspace by the bounds that the multipliers prove, wherever both come from.

    `retention` says what is kept along each column of the basis (see `Solution`); bounds that are
    `known` need not be proven again (see `Problem.dual_bound`).
    """
    kept = problem.kept(basis, retention)
    disparities = problem.own_gains - kept
    # The largest that they can be, where the groups' own subspaces are only known nearly.
    at_most = disparities + problem.own_errors
    spread = float(at_most.max() - disparities.min())
    rounding = max(ROUNDING_TOTAL * problem.scale, ROUNDING_GROUP * float(problem.traces.max()))
    total_loss = float(problem.weights @ (problem.traces - kept))
    if problem.criterion == "minmax":
        value = max(float(at_most.max()), 0.0)  # negative only by rounding
        bound = problem.dual_bound(multipliers, start=basis, known=known)
    else:
        value = total_loss
        # The bound speaks of subspaces that are as unequal as this one, or less so.
        reached = max(problem.tolerance, spread)
        bound = problem.dual_bound(multipliers, reached, start=basis, known=known)
    gap = max(value - bound, 0.0)
    within = problem.tolerance + problem.negligible_spread
    spread_bound = 0.0
    if spread_multipliers is not None:
        spread_bound = max(problem.spread_bound(spread_multipliers, known=known), 0.0)
    if basis.shape[1] > problem.n_components:
        status = "relaxed"
    elif problem.criterion == "minmax" or np.ptp(disparities) <= within:
        closed = gap <= max(OPTIMAL_GAP * value, rounding)
        status = "optimal" if closed else "bounded"
    elif spread_bound > within:
        status = "infeasible"
    else:
        status = "unresolved"
    return Certificate(
        status=status,
        criterion=problem.criterion,
        value=value,
        lower_bound=bound,
        gap=gap,
        relative_gap=gap / total_loss if total_loss > rounding else 0.0,
        spread=spread,
        spread_bound=spread_bound,
        tolerance=problem.tolerance,
        multipliers=multipliers,
        disparities=disparities,
        n_components=problem.n_components,
        n_dimensions=basis.shape[1],
        own_error=float(problem.own_errors.max()),
        spread_multipliers=spread_multipliers,
    )

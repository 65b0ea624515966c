"""Certificate: how good a subspace is, what proves it, and both in words.

The bounds are derived in docs/exact_solver.md, section 16. Sentences are rendered from records
(`Statement`), so that numbers can be checked without reading text.
"""

from __future__ import annotations

import decimal
import html
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fairpca._linalg.types import Array
from fairpca.criteria import FINDINGS, OPTIMAL_GAP
from fairpca.exceptions import warn_user
from fairpca.measures import BY_NOUN, NO_VARIANCE
from fairpca.problem import Problem


class Spoken:
    """Prints its sentences."""

    @abstractmethod
    def sentences(self) -> list[str]:
        """Its sentences."""

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return " ".join(self.sentences())

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences())


@dataclass(frozen=True, repr=False)
class NotCertified(Spoken):
    """Nothing is proven about a subspace. Printing shows the reason.

    Attributes
    ----------
    reason : str
        Why there is no proof.
    status : str
        "not certified".

    See Also
    --------
    fairpca.Certificate : Returned by the other solvers.

    Examples
    --------
    >>> from fairpca.certificate import NotCertified
    >>> NotCertified("it was not asked for")
    Not certified: it was not asked for. Nothing is proven about how good this subspace is.
    """

    reason: str
    status: str = "not certified"

    def sentences(self) -> list[str]:
        """The same in plain words."""
        return [
            f"Not certified: {self.reason}.",
            "Nothing is proven about how good this subspace is.",
        ]


_TOO_LITTLE = 1e-9
"""Part of a number that is not worth a word: of a group's variance, as in `GroupTable`, below which
it is neither better nor worse off, and of the spread for a bound on it."""

_WRONG = 1e-5
"""A bound that exceeds a value by more than this, relative to their scale, is no rounding."""

ROUNDINGS = 10.0
"""How many times what rounding can cause is still rounding, be it a value or a gain."""

_LEVELS = (
    "another subspace, found for {other}, leaves no group worse off than here, and {plural} are "
    "{lower} there by {gains}, though not equal."
)

_TEMPLATES = {
    "one group": "One group: the result is that of ordinary PCA.",
    "all worse off": "Every group is worse off than with ordinary PCA, by {changes}.",
    "extra dimensions": "Uses {used} dimensions, {more} more than the {r} asked for.",
    "least spread": "In every subspace of this dimension the {plural} of two groups differ by "
    "at least {least_violation}.",
    "unmet": "{asked} were not reached: this solver has a criterion of its own.",
    "levels down": f"Equality levels down here: {_LEVELS}",
    "alternative": f"There is an alternative: {_LEVELS}",
    "rounded": "Rounding can move these numbers by about {rounding}, which leaves the rest open: "
    "where one column varies far more than others, standardise the columns.",
    "stopped by gap": "The search ended there: the gap is as small as was asked for.",
    "stopped by time limit": "The search ended at its time limit, and may do better with more.",
    "stopped by callback": "The search was stopped by a callback, and may do better if it goes on.",
}


@dataclass(frozen=True)
class Statement:
    """One statement of a certificate: its kind, and the numbers and words that it is made of."""

    kind: str
    numbers: dict[str, object]

    def __str__(self) -> str:
        goal, _, status = self.kind.partition(", ")
        template = _TEMPLATES.get(self.kind) or FINDINGS[goal][status]
        return template.format(**self.numbers)


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Spoken):
    """How near to optimal a subspace is, and the proof. Prints as text.

    Attributes
    ----------
    status : {"optimal", "bounded", "infeasible", "unresolved", "relaxed"}
        "optimal": the criterion is met, and no subspace of this dimension does better by more
        than 1e-7 of `value` (or than rounding, where that leaves nothing of it).
        "bounded": the criterion is met, and no subspace does better by more than `gap`.
        "infeasible": no subspace has measures within the tolerance or the bounds, which is
        proven; the one returned misses them by the least that was found, and has the least total
        loss that was found as near to them.
        "unresolved": the proof of impossibility fails, yet no subspace with measures within the
        tolerance or the bounds was found; what is returned is as for "infeasible".
        "relaxed": more dimensions are used than were asked for, as the published methods that
        round a semidefinite relaxation do; the bounds are those of the dimension asked for.
        Measures count as within the tolerance or the bounds up to 1e-10 of tr(A), or of what is
        lost with ordinary PCA where that is less than a thousandth of tr(A).
    goal : str
        The criterion: "minmax" and "max_extra_loss" (`MinMax` without and with a limit on the total
        loss), "soft" and "soft max_extra_loss" (`SoftMinMax`), "equal" (`Equal`), "bounds"
        (`AtMost`) or "balanced" (`Balanced`). Only "equal" and "bounds" can end as "infeasible" or
        "unresolved".
    value : float
        What was achieved: the total loss ("equal", "bounds"), the largest measure of a group
        ("minmax", "max_extra_loss"), their soft maximum ("soft", "soft max_extra_loss"), or the
        mean of their losses ("balanced").
    lower_bound : float
        No subspace has a smaller value, among those with no larger violation.
    gap : float
        ``value - lower_bound``, not below zero.
    relative_gap : float
        The gap divided by the value.
    rounding : float
        How far rounding can move the value: with columns of very different variance, not little.
    stated_spread : float
        The spread, where measures are within what was asked for and may yet not be called equal:
        they differ by more than 1e-7 of the largest, beyond rounding error. Else 0.
    spread : float
        Largest difference between the measures of two groups that was achieved.
    violation : float
        Violation of the condition, in the units of the measure: its spread
        ("equal"), or the largest excess of a group over its bound ("bounds"), not below zero.
    violation_bound : float
        No subspace has a smaller one. Zero unless the condition is impossible.
    tolerance : float
        The requested spread. A solver that only approaches it, as `ParetoDescent` does,
        has the spread that it reached here, so that its certificate measures the rest: how far
        the total loss is from the smallest possible at that spread.
    multipliers : array of shape (k,)
        The proof of the bound: `Problem.dual_bound` recomputes it from them.
    measures : array of shape (k,)
        What each group has of the measure, in the subspace returned.
    change_from_pca : array of shape (k,)
        How much larger the measures are than with ordinary PCA: positive numbers are groups that
        are worse off, and changes that count as none are zero.
    n_components : int
        The requested dimension, to which the bounds refer.
    n_dimensions : int
        The dimension that is used.
    requested_tolerance : float or None
        The requested spread, where `tolerance` is that which was reached.
    violation_multipliers : array of shape (k,) or None
        The proof of `violation_bound`: see `Problem.violation_bound`.
    minmax_measures : array of shape (k,) or None
        Measures of a subspace that was found by minimising the largest one, when in it no group is
        worse off than in the subspace returned, and some are better off; else None. With more than
        two groups, equality can level down in this way.
    measure : str
        What was measured, in words: "disparity", "loss", "kept variance", "relative disparity",
        "share lost" or "share kept". Kept variance is negative in all numbers above.
    covers_mixtures : bool
        Whether `value` and `lower_bound` hold for all mixtures of the groups too: the disparity of
        a mixture from its own best subspace, measured from the fitted mean, is at most `value`.
    extra_loss : float or None
        Limit on the extra loss, as a share of the least total loss, where there is one.
    temperature : float
        That of the soft maximum ("soft"), which is in the bound; 0 for other criteria.
    variance : float
        The variance of all rows, in the unit of the value; 0 where that is a share already, or
        nothing but rounding.
    stopped_by : {"", "gap", "time limit", "callback"}
        Why the search stopped early, if it did: the gap is as small as was asked for, or
        time was up, or a callback asked for it.

    See Also
    --------
    fairpca.ExactSolver : Its subspaces come with the tightest ones.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import ExactSolver, GroupMoments, Problem
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> certificate = ExactSolver().solve(problem).certificate
    >>> certificate
    Proven optimal: in every subspace of this dimension some group has a disparity of at least
    0.9, and here none has more than 0.9 (18 % of the variance of all rows).
    """

    status: str
    goal: str
    value: float
    lower_bound: float
    gap: float
    relative_gap: float
    rounding: float
    stated_spread: float
    spread: float
    violation: float
    violation_bound: float
    tolerance: float
    multipliers: Array
    measures: Array
    change_from_pca: Array
    n_components: int
    n_dimensions: int
    measure: str = "disparity"
    covers_mixtures: bool = False
    extra_loss: float | None = None
    requested_tolerance: float | None = None
    violation_multipliers: Array | None = None
    minmax_measures: Array | None = None
    temperature: float = 0.0
    variance: float = 0.0
    stopped_by: str = ""

    @property
    def least_gain(self) -> float:
        """How much every group would gain, at the least, in the subspace found for "minmax"."""
        if self.minmax_measures is None:
            return 0.0
        return max(float((self.measures - self.minmax_measures).min()), 0.0)

    @property
    def all_worse_off(self) -> bool:
        """Whether every group is worse off than with ordinary PCA."""
        return bool((self.change_from_pca > 0.0).all())

    def sentences(self) -> list[str]:
        """The certificate in plain words; bounds are rounded to the safe side."""
        return [str(statement) for statement in self.statements()]

    def statements(self) -> list[Statement]:
        """What the sentences state, as records."""
        numbers, met = self._numbers(), self.status in ("optimal", "bounded")
        finding = f"{self.goal}, {self.status}"
        if BY_NOUN[self.measure].is_kept and f"{self.status}, kept" in FINDINGS[self.goal]:
            finding += ", kept"
        changed = bool(self.change_from_pca.any())
        if len(self.measures) == 1 and not changed:
            violated = self.status in ("infeasible", "unresolved")
            return [Statement(kind, numbers) for kind in ("one group", finding)[: 1 + violated]]
        equal, levels_down = self.goal == "equal", self.minmax_measures is not None
        asked, rounding = self.requested_tolerance, ROUNDINGS * self.rounding
        unequal = equal and self.stated_spread > 0.0
        apart = self.violation_bound > _TOO_LITTLE * max(self.spread, self.tolerance)
        holds = {
            "all worse off": self.all_worse_off,
            "extra dimensions": self.status == "relaxed",
            finding: True,
            f"stopped by {self.stopped_by}": bool(self.stopped_by),
            "least spread": equal and met and apart,
            "unmet": equal and asked is not None and self.tolerance > asked,
            "levels down": levels_down and met,
            "alternative": levels_down and not met,
            "rounded": met and (unequal or (self.status == "bounded" and self.gap <= rounding)),
        }
        return [Statement(kind, numbers) for kind, is_true in holds.items() if is_true]

    def _numbers(self) -> dict[str, object]:
        """What the sentences are filled with."""
        measure, change = BY_NOUN[self.measure], self.change_from_pca
        apart, met = self.tolerance, self.status in ("optimal", "bounded")
        if met and self.stated_spread > 0.0:
            apart = max(apart, self.spread)
        asked = f"{self.requested_tolerance or 0:g}"
        subspace = "subspace of this dimension"
        if self.extra_loss is not None:
            extra = f"{100 * self.extra_loss:g}"
            subspace += f" that loses at most {extra} % more than the least total loss"
        most = 0.0
        if self.minmax_measures is not None:
            most = float((self.measures - self.minmax_measures).max())

        share = ""
        if met and self.variance > 0.0:
            # What is kept is the negative of what is minimised; a soft maximum may be below 0.
            shown = abs(self.value) if measure.is_kept else self.value
            share = f" ({100 * shown / self.variance:.3g} % of the variance of all rows)"

        def limit(number: float, *, up: bool) -> str:
            # An optimum is known up to rounding, so that there is no safe side.
            near = self.status == "optimal"
            return f"{number + 0.0:.6g}" if near else rounded(number, 6, up=up)

        def within(apart: str) -> str:
            if apart == "0":
                return f"equal {measure.plural}"
            return f"{measure.plural} within {apart} of each other"

        return {
            "noun": measure.noun,
            "plural": measure.plural,
            "Plural": measure.plural.capitalize(),
            "within": within(rounded(apart, 6, up=True)),
            "asked": within(asked).capitalize(),
            "at_most": limit(self.value, up=True) + share,
            "at_least": limit(self.lower_bound, up=False),
            "keeps": limit(-self.value, up=False) + share,
            "can_keep": limit(-self.lower_bound, up=True),
            "loss": f"{self.value:.6g}{share}",
            "gap": rounded(100 * self.relative_gap, 2, up=True),
            "spread": f"{self.spread:.6g}",
            "violation": f"{self.violation:.6g}",
            "least_violation": rounded(self.violation_bound, 6, up=False),
            "other": f"criterion={measure.minmax}",
            "lower": "higher" if measure.is_kept else "lower",
            "gains": f"{self.least_gain:.3g} to {most:.3g}",
            "changes": f"{change.min():.3g} to {change.max():.3g}",
            "subspace": subspace,
            "rounding": rounded(ROUNDINGS * self.rounding, 1, up=True),
            "r": self.n_components,
            "used": self.n_dimensions,
            "more": self.n_dimensions - self.n_components,
        }


def certify(
    problem: Problem,
    basis: Array,
    multipliers: Array,
    *,
    violation_multipliers: Array | None = None,
    retention: Array | None = None,
) -> Certificate:
    """Judge a subspace by the bounds that the multipliers prove, wherever both come from.

    `retention` says what is kept along each column of the basis (see `Solution`).
    """
    goal, affine, measure = problem.goal, problem.affine, problem.criterion.measured
    losses, rounding_of_measures = problem.group_losses(basis, retention), problem.rounding
    pca_losses, least_loss = problem.pca_losses, float(problem.weights @ problem.least_losses)
    measures, pca_measures = affine.of_losses(losses), affine.of_losses(pca_losses)
    spread = float(np.ptp(measures))
    judged, scale = goal.judge(measures, float(problem.weights @ losses)), goal.scale
    # The bound speaks of subspaces that violate the condition as much as this one, or less.
    bound = goal.bound(np.asarray(multipliers, dtype=np.float64), judged.slack, basis)
    if goal.minimises_loss and bound < least_loss:
        # No subspace loses less than this, whatever the condition.
        none = np.zeros(problem.n_groups)
        least = goal.bound(none, judged.slack, None)
        bound, multipliers = (least, none) if least > bound else (bound, multipliers)
    value = judged.value
    rounding = rounding_of_measures * (affine.loss_unit if goal.minimises_loss else 1.0)
    size = max(abs(value), scale * (affine.loss_unit if goal.minimises_loss else 1.0))
    if bound - value > _WRONG * size:
        raise RuntimeError(
            f"{type(goal).__name__}.bound gave {bound:.6g}, above the value {value:.6g} that was "
            "found: one of the two formulas is wrong."
        )
    gap, violation_bound = max(value - bound, 0.0), 0.0
    if violation_multipliers is not None:
        violation_bound = max(problem.violation_bound(violation_multipliers), 0.0)
    nothing = abs(value) <= ROUNDINGS * rounding
    if basis.shape[1] > problem.n_components:
        status = "relaxed"
    elif judged.is_met:
        status = "optimal" if nothing or gap <= OPTIMAL_GAP * abs(value) else "bounded"
    else:
        status = "infeasible" if violation_bound > judged.allowed else "unresolved"
    # Nothing changes for a group without variance.
    least = np.maximum(_TOO_LITTLE * affine.traces, NO_VARIANCE * affine.traces.max())
    if problem.graded_losses is not None:
        least = max(_TOO_LITTLE * affine.scale, rounding_of_measures)
    change = measures - pca_measures
    # The spread beyond what was asked for, if the measures may not be called equal.
    size, stated_spread = float(np.abs(measures).max()), 0.0
    if spread - goal.tolerance > OPTIMAL_GAP * size:
        # All may be rounding, unless columns are so different that it cannot decide.
        zero = (
            problem.graded_losses is None and max(spread, size) <= ROUNDINGS * rounding_of_measures
        )
        stated_spread = 0.0 if zero else spread
    means = problem.aggregation == "mean" and problem.centering == "global"
    return Certificate(
        status=status,
        goal=goal.name,
        value=value,
        lower_bound=bound,
        gap=gap,
        relative_gap=gap / abs(value) if abs(value) > rounding else 0.0,
        rounding=rounding,
        stated_spread=stated_spread,
        spread=spread,
        violation=judged.violation,
        violation_bound=violation_bound,
        tolerance=goal.tolerance,
        multipliers=multipliers,
        measures=measures,
        change_from_pca=np.where(np.abs(change) <= least, 0.0, change),
        n_components=problem.n_components,
        n_dimensions=basis.shape[1],
        measure=measure.noun,
        covers_mixtures=affine.is_own and means and goal.covers_mixtures,
        extra_loss=goal.max_extra_loss,
        temperature=goal.heat,
        variance=0.0
        if nothing or (measure.relative and not goal.minimises_loss)
        else problem.scale,
        violation_multipliers=violation_multipliers,
    )


def warn_of_certificate(certificate: Certificate) -> None:
    """Warn where the condition was not met, or every one of several groups is worse off."""
    worse = certificate.all_worse_off and len(certificate.measures) > 1
    if worse or certificate.status in ("infeasible", "unresolved"):
        warn_user(str(certificate))


_LONGEST = 10**6
"""Numbers from which on a power of ten is easier to read than zeros."""


def rounded(number: float, digits: int, *, up: bool) -> str:
    """The number to this number of significant digits, not below it (up) or not above it."""
    if float(text := f"{number:.{digits}g}") == number:  # such as 0.1, which is a little more
        return text
    context = decimal.Context(
        prec=digits, rounding=decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    )
    found = context.create_decimal_from_float(number).normalize(context)
    return f"{found:f}" if 1 <= abs(found) < _LONGEST else f"{found:g}"

"""What a report says in words: the finding, the part of chance, and what to be warned of."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairpca._linalg.types import Array
from fairpca.certificate import rounded
from fairpca.front import ParetoFront
from fairpca.problem import Problem
from fairpca.report._names import in_quotes
from fairpca.report._numbers import number, percent, rows, times
from fairpca.report._resampling import Intervals, few_rows

_NEXT_TO_NOTHING = 1e-3
"""Of the largest disparity: a smaller one is not worth a ratio."""

_SLIGHTLY = 1.05
"""Ratio up to which a group loses only slightly more."""

_DOMINANT = 0.5
"""Share of the total variance above which one column decides nearly everything."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What the words are made from."""

    front: ParetoFront
    groups: list[str]
    features: list[str]
    intervals: Intervals | None

    @property
    def problem(self) -> Problem:
        """What was asked."""
        return self.front.problem

    @cached_property
    def pca_disparities(self) -> Array:
        """Disparities with ordinary PCA."""
        return self.problem.disparities(self.problem.pca_basis)

    @cached_property
    def difference(self) -> tuple[float, float] | None:
        """Interval of the largest difference with ordinary PCA, if one is known."""
        if self.intervals is None or self.worst == self.best:
            return None
        found = self.intervals.of_difference(self.pca_disparities, 0, self.worst, self.best)
        return found if np.isfinite(found).all() else None

    @property
    def worst(self) -> int:
        """The group that loses most with ordinary PCA beyond what it must."""
        return int(self.pca_disparities.argmax())

    @property
    def best(self) -> int:
        """The group that loses least with ordinary PCA beyond what it must."""
        return int(self.pca_disparities.argmin())

    @property
    def worst_and_best(self) -> tuple[str, str]:
        """The names of these two groups, in quotes."""
        return in_quotes(self.groups[self.worst]), in_quotes(self.groups[self.best])

    @property
    def pca_spread(self) -> float:
        """Largest difference between the groups with ordinary PCA."""
        return float(np.ptp(self.pca_disparities))

    @property
    def pca_is_fair(self) -> bool:
        """Whether ordinary PCA treats the groups alike, up to rounding."""
        return self.pca_spread <= self.problem.negligible_spread

    @property
    def baseline(self) -> str:
        """What the first point is: losses from the groups' own means are another matter."""
        return "ordinary PCA" if self.problem.centering == "global" else "the least total loss"

    @property
    def equality(self) -> str:
        """Whether equal disparities were found ("found"), are "impossible", or neither."""
        level = self.problem.negligible_spread
        if self.front.spread[-1] <= level:
            return "found"
        return "impossible" if self.front.spread_bound > level else "unknown"

    @property
    def dimensions(self) -> str:
        """The dimension of the subspaces."""
        r = self.problem.n_components
        return f"{r} dimension{'s' if r > 1 else ''}"


def finding(facts: Facts) -> list[str]:
    """The result in a few sentences for everyone."""
    if len(facts.groups) == 1:
        return ["There is one group only: ordinary PCA is as fair as can be."]
    if facts.problem.scale == 0.0:
        return ["The columns do not vary: there is nothing to lose, and nothing to share out."]
    if facts.pca_is_fair:
        return [
            "With ordinary PCA every group already has the same disparity: nothing has to be "
            "changed."
        ]
    doubt = [] if facts.difference is None or facts.difference[0] > 0.0 else chance(facts)
    return [_who_pays(facts), _what_fairness_costs(facts), *_on_the_way(facts), *doubt]


def _who_pays(facts: Facts) -> str:
    most, least = facts.pca_disparities[facts.worst], facts.pca_disparities[facts.best]
    worst, best = facts.worst_and_best
    if least <= _NEXT_TO_NOTHING * most:
        return (
            f"With ordinary PCA, the group {worst} loses {number(most)} more than it must, the "
            f"group {best} next to nothing."
        )
    if most < _SLIGHTLY * least:
        return (
            f"With ordinary PCA, the group {worst} loses slightly more than the group {best}, "
            f"beyond what each must lose: {number(most)} against {number(least)}."
        )
    return (
        f"With ordinary PCA, the group {worst} loses {times(most / least)} times as much as the "
        f"group {best}, beyond what each must lose."
    )


def _what_fairness_costs(facts: Facts) -> str:
    front = facts.front
    certificate = front[-1].certificate
    cost = f"{percent(float(front.extra_loss[-1]))} more loss in total than {facts.baseline}"
    same = "has the same disparity"
    if facts.equality == "found":
        proof = ", and it is proven that none is cheaper."
        if certificate.status != "optimal":
            gap = percent(certificate.relative_gap, up=True)
            proof = f"; it is proven that none is cheaper by more than {gap}."
        return (
            f"A fair subspace of {facts.dimensions} exists, in which every group {same}. It costs "
            f"{cost}{proof}"
        )
    where = f"subspace of {facts.dimensions} in which every group {same}"
    none = f"No {where} was found."
    if facts.equality == "impossible":
        none = f"It is proven that there is no {where}."
    cut = 1.0 - float(front.spread[-1]) / facts.pca_spread
    if len(front) == 1 or cut <= 0.0:
        return f"{none} None fairer than ordinary PCA was found."
    return (
        f"{none} The fairest one found cuts the difference between groups by "
        f"{percent(cut, up=False)} and costs {cost}."
    )


def _on_the_way(facts: Facts) -> Iterator[str]:
    point = facts.front.select(max_extra_loss=0.01)
    cut = 1.0 - float(facts.front.spread[point]) / facts.pca_spread
    if facts.front.extra_loss[-1] > 0.01 and cut >= 0.05:
        yield (
            "At most 1 % more loss already cuts the difference between groups by "
            f"{percent(cut, up=False)}."
        )


def chance(facts: Facts) -> list[str]:
    """Whether the rows at hand can tell who loses most; nothing where that is not known."""
    if facts.difference is None or facts.pca_is_fair:
        return []
    low, high = facts.difference
    worst, best = facts.worst_and_best
    if low > 0.0:
        return [
            f"With ordinary PCA, {worst} loses more than {best}, beyond what each must, by "
            f"{number(low)} to {number(high)}: hardly by chance."
        ]
    return [
        f"These rows cannot tell who loses more with ordinary PCA: {worst} could lose up to "
        f"{number(high)} more than {best}, or up to {number(-low)} less."
    ]


def warnings(facts: Facts) -> list[dict[str, str]]:
    """What a reader should know before using the result; each with a title and a text."""
    kinds = [_small_groups, _no_equality, _levelling_down, _sums, _dominant_column]
    if len(facts.groups) == 1:
        kinds = [_dominant_column]
    return [{"title": title, "text": text} for kind in kinds for title, text in kind(facts)]


def _small_groups(facts: Facts) -> Iterator[tuple[str, str]]:
    count, few = facts.problem.moments.count, few_rows(facts.problem.n_components)
    small = [int(i) for i in np.argsort(count, kind="stable") if count[i] < few]
    names = [f"{in_quotes(facts.groups[i])} ({rows(int(count[i]))})" for i in small[:5]]
    more = f" and {len(small) - 5} more" if len(small) > 5 else ""
    if small:
        yield (
            "Small groups",
            f"{', '.join(names)}{more}: fewer than {few} rows say little about what a group "
            "loses, and a PCA of its own fits them too well, which makes its disparity look too "
            "large. No interval is given for them. Consider merging groups.",
        )


def _no_equality(facts: Facts) -> Iterator[tuple[str, str]]:
    end = "the right end of the slider is" if len(facts.front) > 1 else "shown is"
    if facts.equality == "impossible":
        yield (
            "Equality is impossible",
            "In every subspace of this dimension the disparities of two groups differ by at "
            f"least {rounded(facts.front.spread_bound, 4, up=False)}: this is proven; {end} "
            "the smallest difference that was found. Another number of dimensions, or other "
            "groups, may allow equality.",
        )
    if facts.equality == "unknown":
        yield (
            "Equality was not found",
            "No subspace of this dimension with equal disparities was found, and none is "
            f"proven impossible; {end} the smallest difference that was found.",
        )


def _levelling_down(facts: Facts) -> Iterator[tuple[str, str]]:
    certificate = facts.front[-1].certificate
    if certificate.minmax_disparities is None:
        return
    gains = certificate.disparities - certificate.minmax_disparities
    everyone = "every group is" if gains.min() > 0 else "no group is worse off, and some are"
    yield (
        "Equality levels down" if facts.equality == "found" else "There is an alternative",
        f"In another subspace {everyone} better off than at the fairest point, by "
        f"{number(max(float(gains.min()), 0.0))} to {number(float(gains.max()))}, though not "
        "by the same amount. FairPCA(criterion='minmax') finds it. Whether equality is worth "
        "this is for people to decide.",
    )


def _sums(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.problem.loss == "sum":
        yield (
            "Sums, not averages",
            "Losses are added up over the rows of a group. Equal sums mean that each row of a "
            "small group loses more than each row of a large one.",
        )


def _dominant_column(facts: Facts) -> Iterator[tuple[str, str]]:
    variances = np.diag(facts.problem.moments.total_covariance())
    total, column = float(variances.sum()), int(variances.argmax())
    if len(variances) >= 3 and variances[column] > _DOMINANT * total:
        yield (
            "One column decides",
            f"The column {in_quotes(facts.features[column])} has "
            f"{percent(float(variances[column]) / total)} of the variance of all columns together, "
            "so the result is mostly about it. Standardise the columns first, unless they are all "
            "in the same units.",
        )

"""What a report says in words: the finding, the part of chance, and what to be warned of."""

from collections.abc import Iterator

import numpy as np

from fairpca.certificate import rounded
from fairpca.front import ParetoFront
from fairpca.report._resampling import Intervals, few_rows
from fairpca.report._text import in_quotes, number, percent, rows, times

_NEXT_TO_NOTHING = 1e-3
"""Of the largest disparity: a smaller one is not worth a ratio."""

_SLIGHTLY = 1.05
"""Ratio up to which a group loses only slightly more."""

_DOMINANT = 0.5
"""Share of the total variance above which one column decides nearly everything."""


class Facts:
    """What the words are made from.

    Parameters
    ----------
    front : ParetoFront
        What was found.
    groups, features : list of str
        Names as they are shown.
    intervals : Intervals or None
        Of the disparities with ordinary PCA and at each point.

    Attributes
    ----------
    pca_disparities : array of shape (k,)
        Disparities with ordinary PCA; `pca_spread` is the largest difference between them, and
        `pca_is_fair` says that there is none, up to rounding.
    worst, best : int
        The groups that lose most and least with ordinary PCA beyond what they must.
    difference : pair of float, or None
        Interval of the difference between these two, if one is known.
    equality : {"found", "impossible", "unknown"}
        Whether equal disparities were found, or are proven impossible.
    baseline : str
        What the first point is: losses from the groups' own means are another matter.
    """

    def __init__(
        self,
        front: ParetoFront,
        groups: list[str],
        features: list[str],
        intervals: Intervals | None,
    ) -> None:
        self.front, self.groups, self.features = front, groups, features
        self.problem = problem = front.problem
        self.pca_disparities = problem.disparities(problem.pca_basis)
        self.worst, self.best = (
            int(self.pca_disparities.argmax()),
            int(self.pca_disparities.argmin()),
        )
        self.pca_spread = float(np.ptp(self.pca_disparities))
        self.pca_is_fair = self.pca_spread <= problem.negligible_spread
        self.difference = None
        if intervals is not None and self.worst != self.best:
            found = intervals.of_difference(self.pca_disparities, 0, self.worst, self.best)
            self.difference = found if np.isfinite(found).all() else None
        self.equality = "unknown"
        if front.spread[-1] <= problem.negligible_spread:
            self.equality = "found"
        elif front.unfairness_bound > problem.negligible_spread:
            self.equality = "impossible"
        self.baseline = "ordinary PCA" if problem.centering == "global" else "the least total loss"


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
    found = [_who_pays(facts), _what_fairness_costs(facts)]
    cheap = facts.front.select(max_extra_loss=0.01)
    cut = 1.0 - float(facts.front.spread[cheap]) / facts.pca_spread
    if facts.front.extra_loss[-1] > 0.01 and cut >= 0.05:
        found.append(
            "At most 1 % more loss already cuts the difference between groups by "
            f"{percent(cut, up=False)}."
        )
    if facts.difference is not None and facts.difference[0] <= 0.0:
        found += chance(facts)
    return found


def _who_pays(facts: Facts) -> str:
    most, least = facts.pca_disparities[facts.worst], facts.pca_disparities[facts.best]
    worst, best = (in_quotes(facts.groups[i]) for i in (facts.worst, facts.best))
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
    front, r = facts.front, facts.problem.n_components
    certificate = front[-1].certificate
    dimensions = f"{r} dimension{'s' if r > 1 else ''}"
    cost = f"{percent(float(front.extra_loss[-1]))} more loss in total than {facts.baseline}"
    same = "has the same disparity"
    if facts.equality == "found":
        proof = ", and it is proven that none is cheaper."
        if certificate.status != "optimal":
            gap = percent(certificate.relative_gap, up=True)
            proof = f"; it is proven that none is cheaper by more than {gap}."
        return (
            f"A fair subspace of {dimensions} exists, in which every group {same}. It costs "
            f"{cost}{proof}"
        )
    where = f"subspace of {dimensions} in which every group {same}"
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


def chance(facts: Facts) -> list[str]:
    """Whether the rows at hand can tell who loses most; nothing where that is not known."""
    if facts.difference is None or facts.pca_is_fair:
        return []
    low, high = facts.difference
    worst, best = (in_quotes(facts.groups[i]) for i in (facts.worst, facts.best))
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
    found: list[tuple[str, str]] = []
    if len(facts.groups) > 1:
        found += [*_small_groups(facts), *_about_equality(facts)]
        if facts.problem.loss == "sum":
            found.append(
                (
                    "Sums, not averages",
                    "Losses are added up over the rows of a group. Equal sums mean that each row "
                    "of a small group loses more than each row of a large one.",
                )
            )
    found += _dominant_column(facts)
    return [{"title": title, "text": text} for title, text in found]


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


def _about_equality(facts: Facts) -> Iterator[tuple[str, str]]:
    end = "the right end of the slider is" if len(facts.front) > 1 else "shown is"
    if facts.equality == "impossible":
        yield (
            "Equality is impossible",
            "In every subspace of this dimension the disparities of two groups differ by at "
            f"least {rounded(facts.front.unfairness_bound, 4, up=False)}: this is proven; {end} "
            "the smallest difference that was found. Another number of dimensions, or other "
            "groups, may allow equality.",
        )
    if facts.equality == "unknown":
        yield (
            "Equality was not found",
            "No subspace of this dimension with equal disparities was found, and none is "
            f"proven impossible; {end} the smallest difference that was found.",
        )
    certificate = facts.front[-1].certificate
    if certificate.minmax_measures is None:
        return
    gains = certificate.measures - certificate.minmax_measures
    than = "off than at the fairest point"
    nobody = f"no group is worse {than}, and some are better off"
    everyone = f"every group is better {than}" if gains.min() > 0 else nobody
    yield (
        "Equality levels down" if facts.equality == "found" else "There is an alternative",
        f"In another subspace {everyone}, by "
        f"{number(max(float(gains.min()), 0.0))} to {number(float(gains.max()))}, though not "
        "by the same amount. FairPCA(criterion='minmax') finds it. Whether equality is worth "
        "this is for people to decide.",
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

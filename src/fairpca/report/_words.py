"""What a report says in words: the finding, and what to be warned of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairpca.front import ParetoFront
from fairpca.linalg import Array
from fairpca.report._names import isolated
from fairpca.solvers.exact import feasibility

_FEW_ROWS, _FEW_ROWS_PER_DIMENSION = 30, 5
_NEXT_TO_NOTHING = 1e-3
"""Of the largest disparity: a smaller one is not worth a ratio."""

_DOMINANT = 0.5
"""Share of the total variance above which one column decides nearly everything."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What the words are made from."""

    front: ParetoFront
    groups: list[str]
    features: list[str]
    pca_disparities: Array
    pca_total_loss: float
    pca_difference: tuple[float, float] | None

    @property
    def worst(self) -> int:
        """The group that loses most with ordinary PCA beyond what it must."""
        return int(self.pca_disparities.argmax())

    @property
    def best(self) -> int:
        """The group that loses least with ordinary PCA beyond what it must."""
        return int(self.pca_disparities.argmin())

    @property
    def pca_spread(self) -> float:
        """Largest difference between the groups with ordinary PCA."""
        return float(np.ptp(self.pca_disparities))

    @property
    def pca_is_fair(self) -> bool:
        """Whether ordinary PCA treats the groups alike, but for rounding."""
        return self.pca_spread <= feasibility(self.front.problem)

    @property
    def equality(self) -> str:
        """Whether equal disparities were found ("found"), are "impossible", or neither."""
        level = feasibility(self.front.problem)
        if self.front.spread[-1] <= level:
            return "found"
        return "impossible" if self.front.spread_bound > level else "unknown"

    def extra_loss(self, point: int) -> float:
        """How much more a point loses than ordinary PCA, relative to it."""
        loss = float(self.front.total_loss[point])
        return loss / self.pca_total_loss - 1.0 if self.pca_total_loss > 0.0 else 0.0


def finding(facts: Facts) -> list[str]:
    """The result in a few sentences for everyone."""
    if len(facts.groups) == 1:
        return ["There is one group only: ordinary PCA is as fair as can be."]
    if facts.pca_is_fair:
        return ["Ordinary PCA already takes the same from every group: nothing has to be changed."]
    return [_who_pays(facts), _what_fairness_costs(facts), *_on_the_way(facts), *_chance(facts)]


def _who_pays(facts: Facts) -> str:
    most, least = facts.pca_disparities[facts.worst], facts.pca_disparities[facts.best]
    worst, best = isolated(facts.groups[facts.worst]), isolated(facts.groups[facts.best])
    if least <= _NEXT_TO_NOTHING * most:
        return (
            f"With ordinary PCA, the group {worst} loses {most:.3g} more than it must, the group "
            f"{best} next to nothing."
        )
    return (
        f"With ordinary PCA, the group {worst} loses {most / least:.2g} times as much as the group "
        f"{best}, beyond what each must lose."
    )


def _what_fairness_costs(facts: Facts) -> str:
    front = facts.front
    fairest = len(front) - 1
    certificate = front[fairest].certificate
    r = front.problem.n_components
    dimensions = f"{r} dimension{'s' if r > 1 else ''}"
    cost = f"costs {percent(facts.extra_loss(fairest))} more loss in total"
    if facts.equality == "found" and certificate.status == "optimal":
        return (
            f"A fair subspace of {dimensions} exists, in which every group gives up the same. It "
            f"{cost}, and it is proven that none is cheaper."
        )
    if facts.equality == "found":
        return (
            f"A fair subspace of {dimensions} exists, in which every group gives up the same. It "
            f"{cost}; it is proven that none is cheaper by more than "
            f"{percent(certificate.relative_gap)}."
        )
    proven = facts.equality == "impossible"
    word, found = ("It is proven that no", "") if proven else ("No", " was found that")
    none = f"{word} subspace of {dimensions}{found} takes the same from every group."
    cut = 1.0 - float(front.spread[fairest]) / facts.pca_spread
    if cut <= 0.0:
        return f"{none} None fairer than ordinary PCA was found."
    return (
        f"{none} The fairest one found cuts the difference between groups by {percent(cut)} and "
        f"{cost}."
    )


def _on_the_way(facts: Facts) -> list[str]:
    if facts.extra_loss(len(facts.front) - 1) <= 0.01:
        return []
    point = facts.front.select(max_extra_loss=0.01)
    cut = 1.0 - float(facts.front.spread[point]) / facts.pca_spread
    if cut < 0.05:
        return []
    return [f"At most 1 % more loss already cuts the difference between groups by {percent(cut)}."]


def _chance(facts: Facts) -> list[str]:
    if facts.pca_difference is None or not np.isfinite(facts.pca_difference).all():
        return []
    low, high = facts.pca_difference
    if low > 0.0:
        return []
    return [
        "The difference with ordinary PCA may be chance: with so few rows it could lie anywhere "
        f"between {low:.3g} and {high:.3g}."
    ]


def warnings(facts: Facts) -> list[dict[str, str]]:
    """What a reader should know before using the result; each with a title and a text."""
    found = [
        *_small_groups(facts),
        *_no_equality(facts),
        *_levelling_down(facts),
        *_dominant_column(facts),
    ]
    return [{"title": title, "text": text} for title, text in found]


def _small_groups(facts: Facts) -> list[tuple[str, str]]:
    r, count = facts.front.problem.n_components, facts.front.problem.moments.count
    few = max(_FEW_ROWS, _FEW_ROWS_PER_DIMENSION * r)
    small = [i for i in np.argsort(count, kind="stable") if count[i] < few]
    if not small or len(facts.groups) == 1:
        return []
    names = [f"{isolated(facts.groups[i])} ({count[i]:,} rows)" for i in small[:5]]
    more = f" and {len(small) - 5} more" if len(small) > 5 else ""
    return [
        (
            "Small groups",
            f"{', '.join(names)}{more}: so few rows say little about what such a group loses, and "
            "a PCA of its own fits them too well, which makes its disparity look too large. Read "
            "the intervals, and think of merging groups.",
        )
    ]


def _no_equality(facts: Facts) -> list[tuple[str, str]]:
    if facts.equality == "impossible":
        return [
            (
                "Equality is impossible",
                "In every subspace of this dimension the disparities of two groups differ by at "
                f"least {facts.front.spread_bound:.4g}: this is proven. The right end of the "
                "slider is the smallest difference that was found. Another number of dimensions, "
                "or other groups, may allow equality.",
            )
        ]
    if facts.equality == "unknown":
        return [
            (
                "Equality was not found",
                "No subspace of this dimension with equal disparities was found, and none is "
                "proven impossible. The right end of the slider is the smallest difference found.",
            )
        ]
    return []


def _levelling_down(facts: Facts) -> list[tuple[str, str]]:
    certificate = facts.front[-1].certificate
    better = certificate.minmax_disparities
    if better is None:
        return []
    gains = certificate.disparities - better
    everyone = "every group is" if gains.min() > 0 else "no group is worse off, and some are"
    return [
        (
            "Equality levels down",
            f"In another subspace {everyone} better off than at the fairest point, by "
            f"{max(gains.min(), 0.0):.3g} to {gains.max():.3g}, though not by the same amount. "
            "FairPCA(criterion='minmax') finds it. Whether equality is worth this is for "
            "people to decide.",
        )
    ]


def _dominant_column(facts: Facts) -> list[tuple[str, str]]:
    variances = np.diag(facts.front.problem.moments.total_covariance())
    total, column = float(variances.sum()), int(variances.argmax())
    if len(variances) < 3 or not variances[column] > _DOMINANT * total:
        return []
    return [
        (
            "One column decides",
            f"The column {isolated(facts.features[column])} has "
            f"{percent(float(variances[column]) / total)} of the variance of all columns together, "
            "so the result is mostly about it. Standardise the columns first, unless they are all "
            "in the same units.",
        )
    ]


def percent(share: float) -> str:
    """A share as per cent, with two or three figures."""
    value = max(100.0 * share, 0.0)
    if 0.0 < value < 0.001:
        return "less than 0.001 %"
    if value >= 1e4:
        return f"{value:,.0f} %"
    return f"{value:.{2 if value < 1.0 else 3}g} %"

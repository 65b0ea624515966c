"""What a reader of a report should be warned of."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fairpca.generalization.bootstrap import few_rows
from fairpca.generalization.cautions import cautions
from fairpca.report._facts import Facts
from fairpca.report._text import and_more, in_quotes, rows

_NO_GAIN = 1e-4
"""Of the difference between groups with ordinary PCA: a smaller gain is no alternative."""


def warnings(facts: Facts) -> list[dict[str, str]]:
    """What a reader should know before using the result; each with a title and a text."""
    if len(facts.groups) == 1:
        return []
    named: dict[str, Any] = {"groups": facts.groups, "features": facts.data.features}
    found: list[tuple[str, str]] = [
        *_small_groups(facts),
        *_repeated(facts),
        *(_about_equality(facts) if facts.front.over == "spread" else []),
        *cautions(facts.problem, facts.indistinct, **named, quoted=in_quotes),
    ]
    return [{"title": title, "text": text} for title, text in found]


def _small_groups(facts: Facts) -> Iterator[tuple[str, str]]:
    count, few = facts.problem.moments.count, few_rows(facts.problem.n_components)
    small = [int(i) for i in np.argsort(count, kind="stable") if count[i] < few]
    names = [f"{in_quotes(facts.groups[i])} ({rows(int(count[i]))})" for i in small]
    if small:
        decides = ""
        if int(facts.pca_measures.argmax()) in small and not facts.pca_is_fair:
            decides = (
                f" The {facts.measured.worst} is that of such a group, so what is called fairest "
                "here is decided by very few rows: merge small groups."
            )
        yield (
            "Small groups",
            f"{and_more(names, 5)}: fewer than {few} rows say little about what a group "
            f"{facts.measured.verb}. No interval is given for them, and the finding does not "
            f"compare them.{decides}",
        )


def _repeated(facts: Facts) -> Iterator[tuple[str, str]]:
    found = facts.data.repeated
    if found is not None:
        yield (
            "Rows are repeated",
            f"{found.rows:,} of {rows(found.of)} have the same values as another one: only "
            f"{found.different:,} are different. If several rows are of one person, or copies, the "
            "intervals are too narrow, and differences between groups may be chance: keep one row "
            "for each person.",
        )


def _about_equality(facts: Facts) -> Iterator[tuple[str, str]]:
    end = "the right end of the slider is" if len(facts.front) > 1 else "shown is"
    measured = facts.measured
    if facts.equality == "impossible":
        yield (
            "Equality is impossible",
            f"In every subspace of this dimension two groups differ in their {measured.noun} by at "
            f"least {measured.amount(facts.front.unfairness_bound, up=False)}: this is proven; "
            f"{end} the smallest difference that was found. Another number of dimensions, or other "
            "groups, may allow equality.",
        )
    if facts.equality == "unknown":
        yield (
            "Equality was not found",
            f"No subspace of this dimension in which every group has the same {measured.noun} was "
            f"found, and none is proven impossible; {end} the smallest difference that was found.",
        )
    if facts.levels_down:
        yield (
            "Every group is worse off than with ordinary PCA",
            "The most equal point has its price: each of the groups is worse off than with "
            f"ordinary PCA. A report over the {measured.worst}, which is the default, never does.",
        )
    certificate = facts.front[-1].certificate
    if certificate.minmax_measures is None:
        return
    gains = certificate.measures - certificate.minmax_measures
    if gains.max() <= _NO_GAIN * facts.pca_spread:
        return
    gains = np.where(gains <= _NO_GAIN * facts.pca_spread, 0.0, gains)
    than = "off than at the most equal point"
    nobody = f"no group is worse {than}, and some are better off"
    everyone = f"every group is better {than}" if gains.min() > 0 else nobody
    yield (
        "Equality levels down" if facts.equality == "found" else "There is an alternative",
        f"In another subspace {everyone}, by {measured.amount(max(float(gains.min()), 0.0))} to "
        f"{measured.amount(float(gains.max()))}{measured.of}, though not by the same amount. "
        "FairPCA(criterion='minmax') finds it. Whether equality is worth this is for people to "
        "decide.",
    )

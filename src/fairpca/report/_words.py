"""What a report says in words: the finding, who pays for it, the part of chance, and warnings."""

from collections.abc import Iterator

import numpy as np

from fairpca.generalization.bootstrap import few_rows
from fairpca.generalization.cautions import dominant_column
from fairpca.report._facts import Facts
from fairpca.report._text import and_more, in_quotes, percent, rows, times

_NEXT_TO_NOTHING = 1e-3
"""Of the largest disparity: a smaller one is not worth a ratio."""

_SLIGHTLY = 1.05
"""Ratio up to which a group loses only slightly more."""

_VAGUE = 4.0
"""A ratio whose interval ends are further apart than so many times is not stated."""

_CHEAP, _WORTH_IT = 0.01, 0.05
"""Extra loss that is called cheap, and what it must save at the least to be worth a sentence."""


def finding(facts: Facts) -> list[str]:
    """The result in a few sentences for everyone; what the rows cannot tell is not said."""
    if facts.problem.scale == 0.0:
        return [
            f"The columns of {facts.data.quoted} do not vary: there is nothing to lose, and "
            "nothing to share out."
        ]
    if len(facts.groups) == 1:
        return ["There is one group only: ordinary PCA is as fair as can be."]
    if facts.pca_is_fair:
        return [
            f"{_with_pca(facts)} every group already has the same {facts.measured.noun}: nothing "
            "has to be changed."
        ]
    cost = _what_equality_costs if facts.front.over == "spread" else _what_fairness_costs
    last = len(facts.front) - 1
    sure = facts.evidence == "sure"
    found = [] if sure else chance(facts)
    found += [_in_short(facts)] if facts.levels_down else []
    found += [_who_pays(facts)] if sure else []
    found += [cost(facts)]
    found += [_in_short(facts)] if not facts.levels_down and last > 0 else []
    return found + _what_is_cheap(facts) + (_if_repeated(facts) if sure else [])


def _if_repeated(facts: Facts) -> list[str]:
    found = facts.data.repeated
    if found is None:
        return []
    return [
        f"{found.rows:,} of {rows(found.of)} are repeated: if these are the same people, "
        "differences between groups may be chance."
    ]


def n_leads(facts: Facts) -> int:
    """How many of these sentences are the headline: none that few rows decide."""
    few = not facts.enough[int(facts.pca_measures.argmax())]
    return 1 if few or facts.evidence != "sure" else 2


def _with_pca(facts: Facts) -> str:
    """The beginning of a sentence about ordinary PCA of this data."""
    grouped = f" {facts.data.grouped}," if facts.data.grouped else ""
    return f"With ordinary PCA of {facts.data.quoted},{grouped}"


def compared(facts: Facts, point: int) -> str:
    """Who is better and who is worse off than with ordinary PCA at a point."""
    measured, certificate = facts.measured, facts.front[point].certificate
    change = certificate.change_from_pca
    better, worse, k = int((change < 0.0).sum()), int((change > 0.0).sum()), len(change)
    last = point == len(facts.front) - 1
    where = f"At the {facts.fairest} point," if last else f"At point {point},"
    if not better and not worse:
        return f"{where} no group is better or worse off than with ordinary PCA."
    if worse == k:
        return (
            f"{where} every group is worse off than with ordinary PCA, by "
            f"{measured.amount(float(change.min()))} to {measured.amount(float(change.max()))}"
            f"{measured.of}."
        )
    said = (
        f"{where} {better or 'none'} of {k} groups {'are' if better > 1 else 'is'} better off than "
        f"with ordinary PCA and {worse or 'none'} {'are' if worse > 1 else 'is'} worse off."
    )
    rises, falls = ("falls", "rises") if measured.is_kept else ("rises", "falls")
    for there, i, how, moves in (
        (better, int(change.argmin()), "gains", falls),
        (worse, int(change.argmax()), "pays", rises),
    ):
        if there:
            most = " the most" if there > 1 else ""
            said += (
                f" The group {in_quotes(facts.groups[i])} {how}{most}: its {measured.noun} {moves} "
                f"by {measured.amount(float(change[i]))}{measured.of}."
            )
    if better and worse and certificate.pca_is_least:
        said += " Some group always pays, because ordinary PCA has the least total loss."
    return said


def _in_short(facts: Facts) -> str:
    """The same of the fairest point, without the names."""
    amount, its = facts.measured.amount, facts.measured.of
    of = its.replace("its", "their")
    certificate = facts.front[-1].certificate
    change = certificate.change_from_pca
    if facts.levels_down:
        equal = "equal" if facts.equality == "found" else "as equal as can be"
        return (
            f"Making the groups {equal} leaves every one of them worse off than ordinary PCA does, "
            f"by {amount(float(change.min()))} to {amount(float(change.max()))}{of}."
        )
    parts = []
    for sizes, how in ((-change[change < 0.0], "better"), (change[change > 0.0], "worse")):
        verb, up_to, whose = ("are", "up to ", of) if len(sizes) > 1 else ("is", "", its)
        if len(sizes):
            by = f"by {up_to}{amount(float(sizes.max()))}{whose}"
            parts.append(f"{len(sizes)} {verb} {how} off than with ordinary PCA, {by}")
    if not parts:
        return "No group is better or worse off than with ordinary PCA."
    first, *rest = parts
    said = f"Of {len(change)} groups, {first}"
    said += "".join(f", and {part.replace(' than with ordinary PCA', '')}" for part in rest)
    always = ": some group always is, because ordinary PCA has the least total loss"
    return f"{said}{always if rest and certificate.pca_is_least else ''}."


def _who_pays(facts: Facts) -> str:
    measured, start = facts.measured, _with_pca(facts)
    shown = measured.shown(facts.pca_measures)
    most, least = float(shown[facts.worst]), float(shown[facts.best])
    worst, best = (in_quotes(facts.groups[i]) for i in (facts.worst, facts.best))
    if measured.measure.baseline != "own":
        a_variance = "a variance of " if measured.is_kept and not measured.is_relative else ""
        return (
            f"{start} the group {worst} {measured.verb} {a_variance}"
            f"{measured.amount(most)}{measured.of}, the group {best} {measured.amount(least)}."
        )
    if least <= _NEXT_TO_NOTHING * most:
        return (
            f"{start} the group {worst} loses {measured.amount(most)}{measured.of} more "
            f"than it must, the group {best} next to nothing."
        )
    if most < _SLIGHTLY * least:
        return (
            f"{start} the group {worst} loses slightly more than the group {best}, "
            f"beyond what each must lose: {measured.amount(most)} against "
            f"{measured.amount(least)}{measured.of}."
        )
    if not facts.significant[facts.best] or (facts.difference and not _is_known(facts.ratios)):
        return (
            f"{start} the group {worst} loses more than the group {best}, beyond what each must "
            f"lose: {measured.amount(most)} against {measured.amount(least)}{measured.of}."
        )
    share = ", as a share of its variance" if measured.is_relative else ""
    return (
        f"{start} the group {worst} loses {times(most / least)} times as much as the "
        f"group {best}, beyond what each must lose{share}."
    )


def _is_known(ratios: tuple[float, float] | None) -> bool:
    """Whether a ratio is known well enough to be a finding."""
    return ratios is not None and ratios[1] <= _VAGUE * ratios[0]


def _what_fairness_costs(facts: Facts) -> str:
    """Of the fairest point over the largest measure."""
    front, measured, of = facts.front, facts.measured, facts.measured.of
    certificate, kept = front[-1].certificate, facts.measured.is_kept
    proven = certificate.status == "optimal"
    first = int(facts.pca_measures.argmax())
    with_pca = measured.amount(float(facts.pca_measures[first]))
    if len(front) == 1:
        if not proven:
            return "No subspace fairer than ordinary PCA was found."
        least = measured.amount(float(front.largest[-1]), up=kept)
        than = f"at most {least}{of}" if kept else f"at least {least}{of}{measured.beyond}"
        return (
            f"It is proven that ordinary PCA is as fair as can be: in every subspace of "
            f"{_dimensions(facts)} some group {measured.verb} {than}."
        )
    after = measured.amount(float(front.largest[-1]), up=not kept)
    instead = f"instead of {with_pca} with ordinary PCA"
    if after == with_pca:
        instead = f"hardly {'more' if kept else 'less'} than with ordinary PCA"
    if not facts.enough[first]:
        instead += f" (in a group of {rows(int(facts.problem.moments.count[first]))})"
    no_group = f"no group loses more than {after}{of}{measured.beyond}, {instead}"
    if kept:
        no_group = f"every group keeps at least {after}{of}, {instead}"
    proof = ", and it is proven that no subspace of this dimension is fairer."
    if not proven:
        bound = measured.amount(certificate.lower_bound, up=kept)
        proof = f"; it is proven that none can bring this {'above' if kept else 'below'} {bound}."
    return (
        f"In the fairest subspace of {_dimensions(facts)} {no_group}. It costs "
        f"{_cost(facts)}{proof}"
    )


def _what_is_cheap(facts: Facts) -> list[str]:
    """What one per cent more loss is good for, where fairness costs more."""
    front, measured = facts.front, facts.measured
    if front.extra_loss[-1] <= _CHEAP:
        return []
    levels, cheap = front.unfairness, front.select(max_extra_loss=_CHEAP)
    if front.over == "spread":
        cut = 1.0 - float(levels[cheap]) / facts.pca_spread
        word = f"cuts the difference between groups by {percent(cut, up=False)}"
    else:
        cut = float((levels[0] - levels[cheap]) / (levels[0] - levels[-1]))
        ends = (measured.amount(float(levels[i])) for i in (0, cheap))
        word = f"takes the {measured.worst} from {' to '.join(ends)}"
    return [f"At most {percent(_CHEAP)} more loss already {word}."] if cut >= _WORTH_IT else []


def _dimensions(facts: Facts) -> str:
    r = facts.problem.n_components
    return f"{r} dimension{'s' if r > 1 else ''}"


def _cost(facts: Facts) -> str:
    extra = percent(float(facts.front.extra_loss[-1]))
    return f"{extra} more loss in total than ordinary PCA"


def _what_equality_costs(facts: Facts) -> str:
    """Of the fairest point over the spread."""
    front, certificate = facts.front, facts.front[-1].certificate
    same, dimensions = f"has the same {facts.measured.noun}", _dimensions(facts)
    if facts.equality == "found":
        proof = ", and it is proven that none is cheaper."
        if certificate.status != "optimal":
            gap = percent(certificate.relative_gap, up=True)
            proof = f"; it is proven that none is cheaper by more than {gap}."
        return (
            f"A subspace of {dimensions} exists in which every group {same}. It costs "
            f"{_cost(facts)}{proof}"
        )
    where = f"subspace of {dimensions} in which every group {same}"
    none = f"No {where} was found."
    if facts.equality == "impossible":
        none = f"It is proven that there is no {where}."
    cut = 1.0 - float(front.spread[-1]) / facts.pca_spread
    if len(front) == 1 or cut <= 0.0:
        return f"{none} None in which groups differ less than with ordinary PCA was found."
    return (
        f"{none} The most equal one found cuts the difference between groups by "
        f"{percent(cut, up=False)} and costs {_cost(facts)}."
    )


def spoken(facts: Facts, point: int) -> str:
    """A point in a few words, for the slider."""
    front, measured = facts.front, facts.measured
    name = measured.worst if front.over == "largest" else "difference between groups"
    least = front[point].certificate.goal == "minmax"
    found, proof = "the cheapest", "at this difference"
    if front.over == "largest":
        proof = f"with no {'smaller' if measured.is_kept else 'larger'} {measured.noun}"
    if least:
        found, proof = "the fairest", "in this dimension"
    if front[point].certificate.status == "optimal":
        proof = f"proven to be {found} {proof}"
    else:
        proof = f"{found} found {proof}"
    return (
        f"{name} {measured.amount(float(front.unfairness[point]))}, "
        f"{percent(float(front.extra_loss[point]))} more loss than ordinary PCA, {proof}"
    )


def chance(facts: Facts) -> list[str]:
    """Whether the rows at hand can tell who is worst off; nothing where that is not known."""
    if facts.pca_is_fair:
        return []
    measured = facts.measured
    worst, best = (in_quotes(facts.groups[i]) for i in (facts.worst, facts.best))
    more, less = ("less", "more") if measured.is_kept else ("more", "less")
    does, must = measured.verb, ", beyond what each must" if measured.beyond else ""
    if facts.evidence == "sure":
        if facts.difference is None:
            return []
        low, high = facts.difference
        if_people = ", if each row is another person" if facts.data.repeated else ""
        return [
            f"With ordinary PCA, {worst} {does} {more} than {best}{must}, by "
            f"{measured.amount(low)} to {measured.amount(high)}{measured.of}: hardly by chance"
            f"{if_people}."
        ]
    grouped = f", {facts.data.grouped}," if facts.data.grouped else ""
    cannot = f"The rows of {facts.data.quoted}{grouped} cannot tell who {does} {more} with "
    cannot += f"ordinary PCA{must}"
    if facts.evidence == "few":
        enough, k = int(facts.enough.sum()), len(facts.groups)
        one = "only one has" if enough else "none has"
        return [
            f"{cannot}: of {k} groups {one} the {few_rows(facts.problem.n_components)} rows that a "
            "comparison needs."
        ]
    if facts.difference is None or facts.difference[0] > 0.0:
        return [f"{cannot}: groups of as many rows drawn at random could differ as much."]
    do, (low, high) = does.removesuffix("s"), facts.difference
    return [
        f"{cannot}: {worst} could {do} up to {measured.amount(high)}{measured.of} {more} than "
        f"{best}, or up to {measured.amount(low)} {less}."
    ]


_NO_GAIN = 1e-4
"""Of the difference between groups with ordinary PCA: a smaller gain is no alternative."""


def warnings(facts: Facts) -> list[dict[str, str]]:
    """What a reader should know before using the result; each with a title and a text."""
    if len(facts.groups) == 1:
        return []
    found: list[tuple[str, str]] = [
        *_small_groups(facts),
        *_repeated(facts),
        *(_about_equality(facts) if facts.front.over == "spread" else []),
        *_not_significant(facts),
        *_one_column(facts),
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


def _not_significant(facts: Facts) -> Iterator[tuple[str, str]]:
    alike = [int(i) for i in np.flatnonzero(~facts.significant)]
    if not alike or facts.pca_is_fair:
        return
    noun, count = facts.measured.noun, facts.problem.moments.count
    by_chance = "as large" if facts.measured.measure.baseline == "own" else "as different"
    if len(alike) == len(facts.groups):
        start = "These rows have no significant difference between the groups: with"
    else:
        alike.sort(key=lambda i: int(count[i]))
        names = [f"{in_quotes(facts.groups[i])} ({rows(int(count[i]))})" for i in alike]
        start = f"Of {and_more(names, 5)} the {noun} is not significant: with"
    yield (
        "No significant difference",
        f"{start} ordinary PCA, random groups of the same sizes have one {by_chance} (permutation "
        "test, 5 % level, adjusted for the number of groups). What is fair to such a group here "
        "may not be on new data: merge small groups, or use ordinary PCA.",
    )


def _one_column(facts: Facts) -> Iterator[tuple[str, str]]:
    text = dominant_column(facts.problem.moments, facts.data.features, in_quotes)
    if text is not None:
        yield "One column decides", text


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

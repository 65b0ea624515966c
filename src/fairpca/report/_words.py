"""What a report says in words: the finding, who pays for it, the part of chance, and warnings."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairpca.generalization.bootstrap import few_rows
from fairpca.generalization.cautions import dominant_column
from fairpca.group_table import NO_CHANGE, GroupTable
from fairpca.inspection.compare import Comparison
from fairpca.report._facts import Facts
from fairpca.report._names import in_quotes, number, percent
from fairpca.text import in_rows, joined

_MANY_FILLED = 0.2
"""Share of filled-in values of a column from which on a reader should know of them."""

_MOST_ROWS = 0.5
"""Share of the rows from which on a group is most of them."""


def headline(facts: Facts, comparison: Comparison | None) -> str:
    """What the groups lose that lose most and least with PCA, on held-out rows if known."""
    if facts.problem.scale == 0.0:
        return (
            f"The columns of {facts.data.quoted} do not vary: there is nothing to lose, and "
            "nothing to share out."
        )
    problem, where = facts.problem, ""
    some = np.where(problem.traces > 0.0, problem.traces, np.inf)
    lost = problem.group_losses(problem.pca_basis) / some
    if comparison is not None:
        lost, where = comparison.share_lost.value[0], ", on rows held out of the fit"
    shown = np.flatnonzero(facts.enough if facts.enough.sum() > 1 else problem.traces > 0.0)
    worst, best = shown[lost[shown].argmax()], shown[lost[shown].argmin()]
    most, least = (f"{100.0 * lost[i]:.1f}" for i in (worst, best))
    start = f"Ordinary PCA with {facts.dimensions} loses {most} %"
    beyond = "" if comparison is None else _beyond_own(facts, comparison)
    if least == most:
        whose = "all rows" if len(facts.groups) == 1 else "every group"
        return f"{start} of the variance of {whose}{where}.{beyond}"
    names = [in_quotes(facts.groups[i]) for i in (worst, best)]
    start, end = f"{start} of the variance of {names[0]}", f"{least} % of that of {names[1]}"
    which = "" if len(shown) == 2 else f", the most and the least of {len(shown)} groups"
    return f"{start} and {end}{which}{where}.{beyond}"


def _beyond_own(facts: Facts, comparison: Comparison) -> str:
    """The disparity of the worst-off group on held-out rows, if that of some group is clear."""
    group, clear = comparison.largest_disparity_group, comparison.disparity.low[0] > NO_CHANGE
    if not (facts.measure.is_disparity and clear.any()):
        return ""
    points, low, high = (f"{100.0 * part[0]:.1f}" for part in comparison.disparity.of(group))
    return (
        f" {in_quotes(facts.groups[group[0]])} {'loses' if clear[group[0]] else 'may lose'} "
        f"{points} points more than with a PCA of its own (95 % interval {low} to {high})."
    )


def finding(facts: Facts) -> list[str]:
    """What was found in these rows; no case is made for differences that may be chance."""
    if facts.problem.scale == 0.0:
        return []
    if len(facts.groups) == 1:
        return ["There is one group only: ordinary PCA is as fair as can be."]
    if facts.pca_is_fair:
        return [
            f"{_with_pca(facts)} every group already has the same {facts.measure.noun}: nothing "
            "has to be changed."
        ]
    sure = facts.evidence == "sure"
    found = [_who_pays(facts)] if sure else chance(facts)
    if sure and not facts.use_pca:
        found.append(_what_fairness_costs(facts))
    return found


def _with_pca(facts: Facts) -> str:
    """The beginning of a sentence about ordinary PCA of this data."""
    grouped = f" {facts.data.grouped}," if facts.data.grouped else ""
    return f"With ordinary PCA of {facts.data.quoted},{grouped}"


def compared(facts: Facts, point: int) -> str:
    """Who is better and who is worse off than with ordinary PCA at a point."""
    table = GroupTable.from_problem(facts.problem, facts.front[point].group_losses, "fair")
    return replace(table, labels=tuple(facts.groups), group_names=None).sentences()


def _who_pays(facts: Facts) -> str:
    """What the groups that are worst and best off lose with ordinary PCA."""
    pair = facts.worst, facts.best
    worst, best = (f"the group {in_quotes(facts.groups[i])}" for i in pair)
    most, least = (float(abs(facts.pca_measures[i])) for i in pair)
    more = " more than it must" if facts.beyond else ""
    said = (
        f"{_with_pca(facts)} {worst} {facts.verb} {facts.amount(most, facts.worst)} of its "
        f"variance{more}, {best} {facts.amount(least, facts.best)}."
    )
    shares = [facts.pca_measures[i] / facts.problem.traces[i] for i in pair]
    if not facts.measure.relative and shares[0] < shares[1]:
        said += f" Fairness is judged on squared units: {number(most)} against {number(least)}."
    return said


def _what_fairness_costs(facts: Facts) -> str:
    """Of the fairest point."""
    front, kept = facts.front, facts.measure.is_kept
    certificate = front[-1].certificate
    proven = certificate.status == "optimal"
    first, last = int(front.worst_group[0]), int(front.worst_group[-1])
    of_last = f"of the variance of {in_quotes(facts.groups[last])}"
    if len(front) == 1:
        if not proven:
            return "No subspace fairer than ordinary PCA was found."
        least = facts.amount(front.largest[-1], None, up=kept)
        of = " of its variance" if facts.measure.relative else ""
        side = "at most" if kept else "at least"
        return (
            f"It is proven that ordinary PCA is as fair as can be: in every subspace of "
            f"{facts.dimensions} some group {facts.verb} {side} {least}{of}{facts.beyond}."
        )
    with_pca = facts.amount(float(facts.pca_measures[first]), first)
    after = facts.amount(front.largest[-1], last)
    of_first = "" if first == last else f" of that of {in_quotes(facts.groups[first])}"
    instead = f"instead of {with_pca}{of_first} with ordinary PCA"
    if after == with_pca and first == last:
        instead = f"hardly {'more' if kept else 'less'} than with ordinary PCA"
    if not facts.enough[first]:
        instead += f" (in a group of {in_rows(int(facts.problem.moments.count[first]))})"
    proof = ", and it is proven that no subspace of this dimension is fairer."
    if not proven:
        bound = facts.amount(certificate.lower_bound, last, up=kept)
        proof = f"; it is proven that none can bring this {'above' if kept else 'below'} {bound}."
    return (
        f"With min-max PCA of {facts.dimensions} the {front.worst_name} is {after} {of_last}, "
        f"{instead}. It costs {facts.cost}{proof}"
    )


def spoken(facts: Facts, point: int) -> str:
    """A point in a few words, for the slider."""
    front, group = facts.front, int(facts.front.worst_group[point])
    of = f" of the variance of {in_quotes(facts.groups[group])}"
    proven = front[point].certificate.status == "optimal"
    return (
        f"{front.worst_name} {facts.amount(front.largest[point], group)}{of}, "
        f"{percent(front.extra_loss[point])} more loss than ordinary PCA, "
        f"{'proven optimal' if proven else 'the best that was found'}"
    )


def proof(facts: Facts, point: int) -> list[str]:
    """What is proven of a point, and what its squared units are in per cent."""
    solution, group = facts.front[point], int(facts.front.worst_group[point])
    statements = solution.certificate.statements()
    # Of ordinary PCA alone only its own condition is proven, which nobody asked for.
    said = [str(each) for each in statements if each.kind != "all worse off" and not facts.use_pca]
    units = []
    if not facts.measure.relative and facts.problem.traces[group] > 0.0:
        most = facts.front.largest[point]
        share = facts.amount(most, group)
        units.append(
            f"A {facts.measure.noun} of {number(abs(most))} is {share} of the variance of "
            f"{in_quotes(facts.groups[group])}, the worst-off group here."
        )
    if facts.problem.scale > 0.0:
        loss = solution.total_loss
        share = percent(loss / float(facts.problem.weights @ facts.problem.traces))
        units.append(f"A total loss of {number(loss)} is {share} of the variance of all rows.")
    return said + units


def chance(facts: Facts) -> list[str]:
    """Whether the difference between groups is significant; nothing where that is not known."""
    if facts.pca_is_fair:
        return []
    worst, best = (in_quotes(facts.groups[i]) for i in (facts.worst, facts.best))
    more, less = ("less", "more") if facts.measure.is_kept else ("more", "less")
    does, must = facts.verb, ", beyond what each must" if facts.beyond else ""
    low, high = (facts.amount(end, facts.worst) for end in facts.difference or (0.0, 0.0))
    if facts.evidence == "sure":
        if facts.difference is None:
            return []
        return [
            f"With ordinary PCA, {worst} {does} {more} than {best}{must}, by {low} to {high} of "
            f"the variance of {worst}: hardly by chance."
        ]
    rows = f"the rows of {facts.data.quoted}"
    rows += f", {facts.data.grouped}," if facts.data.grouped else ""
    if facts.evidence == "few":
        enough, k = int(facts.enough.sum()), len(facts.groups)
        one = "only one has" if enough else "none has"
        return [
            f"{rows[0].upper()}{rows[1:]} are too few for a comparison of groups: of {k} groups "
            f"{one} the {few_rows(facts.problem.n_components)} rows that it needs."
        ]
    start = f"In {rows} no group {does} significantly {more} than another with ordinary PCA{must}"
    if facts.difference is None or facts.difference[0] > 0.0:
        return [f"{start}: groups of as many rows drawn at random could differ as much."]
    said = [
        f"{start}: {worst} could {does.removesuffix('s')} up to {high} of its variance {more} "
        f"than {best}, or up to {low} {less}."
    ]
    others = [in_quotes(facts.groups[i]) for i in np.flatnonzero(facts.significant)]
    if others and facts.beyond:
        verb, they = ("has", "it has") if len(others) == 1 else ("have", "they have")
        said.append(
            f"{joined(others)} {verb} a larger disparity than random groups of as many rows "
            f"(permutation test, 5 % level): {they} axes of their own."
        )
    return said


def warnings(facts: Facts, disparate: NDArray[np.bool_] | None = None) -> list[dict[str, str]]:
    """What a reader should know before using the result; each with a title and a text.

    `disparate` are groups with a clear disparity on held-out rows, which is not chance either.
    """
    if len(facts.groups) == 1:
        return []
    found = [*_small_groups(facts)]
    again = facts.data.repeated
    if again is not None:
        text = (
            f"{again.rows:,} of {in_rows(again.of)} have the same values as another one: only "
            f"{again.different:,} are different. If several rows are of one person, or copies, the "
            "intervals are too narrow, and differences between groups may be chance: keep one row "
            "for each person."
        )
        found.append(("Rows are repeated", text))
    found += _not_significant(facts, disparate)
    found += _filled_in(facts)
    dominant = dominant_column(facts.problem.moments, facts.data.features, in_quotes)
    found += [("One column decides", dominant)] if dominant is not None else []
    return [{"title": title, "text": text} for title, text in found]


def _small_groups(facts: Facts) -> Iterator[tuple[str, str]]:
    count, few = facts.problem.moments.count, few_rows(facts.problem.n_components)
    small = [int(i) for i in np.argsort(count, kind="stable") if count[i] < few]
    names = [f"{in_quotes(facts.groups[i])} ({in_rows(int(count[i]))})" for i in small]
    if small:
        decides = ""
        if int(facts.pca_measures.argmax()) in small and len(facts.front) > 1:
            decides = (
                f" The {facts.front.worst_name} is that of such a group, so min-max PCA is "
                "decided by very few rows: merge small groups."
            )
        yield (
            "Small groups",
            f"{joined(names)}: fewer than {few} rows say little about what a group "
            f"{facts.verb}. No bootstrap interval is given for them, and the finding does not "
            f"compare them.{decides}",
        )


def _filled_in(facts: Facts) -> Iterator[tuple[str, str]]:
    n = facts.problem.moments.n_rows
    outcomes = [each for each in facts.data.outcomes if each.n_missing > _MANY_FILLED * n]
    if outcomes:
        names = [f"{in_quotes(each.name)} ({percent(each.n_missing / n)})" for each in outcomes]
        yield (
            "Many values are filled in",
            f"Many values are missing in {joined(names)}, and a column that is largely filled in "
            "hardly varies: leave such columns out.",
        )


def _not_significant(
    facts: Facts, disparate: NDArray[np.bool_] | None
) -> Iterator[tuple[str, str]]:
    known = facts.significant if disparate is None else facts.significant | disparate
    if known.any():  # that the best-off group, or most of the rows, have none misleads nobody
        known = known | (facts.problem.weights > _MOST_ROWS)
        known[facts.best] = True
    alike = [int(i) for i in np.flatnonzero(~known)]
    if not alike or facts.pca_is_fair:
        return
    noun, count = facts.measure.noun, facts.problem.moments.count
    by_chance = "as large" if facts.beyond else "as different"
    if len(alike) == len(facts.groups):
        start = "These rows have no significant difference between the groups: with"
    else:
        alike.sort(key=lambda i: int(count[i]))
        names = [f"{in_quotes(facts.groups[i])} ({in_rows(int(count[i]))})" for i in alike]
        start = f"Of {joined(names)} the {noun} is not significant: with"
    yield (
        "No significant difference" if not known.any() else "Not significant",
        f"{start} ordinary PCA, random groups of the same sizes have one {by_chance} (permutation "
        "test, 5 % level, adjusted for the number of groups). What is fair to such a group here "
        "may not be on new data: merge small groups, or use ordinary PCA.",
    )

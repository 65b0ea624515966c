"""What to know before relying on a result: said by fit, audit, fronts, reports and the program."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.device import diagonals
from fairpca.data import GroupedData
from fairpca.exceptions import warn_user
from fairpca.generalization.chance import indistinct_groups
from fairpca.group_table import GroupTable
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.text import listed, quote, short_text

BEGINNING = "Read with care: "
"""How the warning of cautions begins, for filters."""

_DOMINANT = 0.5
"""Share of the total variance above which one column decides nearly everything."""

TO_FIT = (
    ': merge small groups, or use FairPCA(shrinkage="auto"), which trusts a group as far as its '
    "rows go."
)
TRIED = ", though no shrinkage did clearly better on held-out rows: merge small groups."
TO_MERGE = ": merge small groups, or fit more rows."
TO_AUDIT = ": merge small groups, or audit more rows."
"""What to do about groups whose measures may be chance."""

_NAMED = 5
"""So many groups are named, the smallest ones; of others the number is given."""


class Caution(NamedTuple):
    """Something to know before relying on a result."""

    title: str
    text: str


def cautions(
    problem: Problem,
    indistinct: NDArray[np.bool_],
    *,
    groups: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    quoted: Callable[[str], str] = quote,
    advice: str = TO_FIT,
    columns: bool = True,
) -> list[Caution]:
    """What to know before relying on what is found for a problem; nothing of a single group.

    Parameters
    ----------
    problem : Problem
    indistinct : boolean array of shape (k,)
        Groups that the rows cannot tell from chance, as `indistinct_groups` finds them.
    groups, features : sequence of str, default=None
        What the groups and the columns are called, if not as in the moments.
    quoted : callable, default=quote
        Makes a name part of a sentence.
    advice : str, default=TO_FIT
        What to do about groups that the rows cannot tell from chance.
    columns : bool, default=True
        Whether the columns are those of a table, of which one may decide everything.

    Returns
    -------
    list of Caution

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.generalization.cautions import cautions
    >>> X = np.random.default_rng(0).normal(size=(300, 3)) * [3, 1, 1]
    >>> problem = Problem(GroupMoments.from_rows(X, np.repeat(["a", "b"], 150)), 2)
    >>> [caution.title for caution in cautions(problem, np.array([False, True]))]
    ['May be chance', 'One column decides']
    """
    moments = problem.moments
    if problem.n_groups == 1:
        return []
    groups = [short_text(name) for name in moments.group_texts] if groups is None else groups
    found = []
    if indistinct.any():
        text = _chance(problem, indistinct, groups, quoted) + advice
        found.append(Caution("May be chance", text))
    if problem.aggregation == "sum":
        found.append(
            Caution(
                "Sums, not averages",
                "Losses are added up over the rows of a group. With equal sums each row of a small "
                "group loses more than each row of a large one.",
            )
        )
    if columns:
        found += _dominant_column(moments, features or moments.feature_names, quoted)
    return found


def warn_of_cautions(
    problem: Problem,
    table: GroupTable,
    grouped_data: GroupedData | None = None,
    *,
    shrunk: bool = False,
    advice: str = TO_FIT,
    choice: str | None = None,
    columns: bool = True,
) -> None:
    """Give all cautions of a problem in one warning.

    Parameters
    ----------
    problem : Problem
    table : GroupTable
        What the groups lose.
    grouped_data : GroupedData, default=None
        The rows, if they are at hand: see `indistinct_groups`.
    shrunk : bool, default=False
        Whether what chance makes of groups is allowed for, so that it need not be said.
    advice, columns
        As for `cautions`.
    choice : str, default=None
        What is to be said of the shrinkage that was chosen.
    """
    if problem.n_groups == 1:
        return
    indistinct = np.zeros(problem.n_groups, dtype=bool)
    if not shrunk:
        indistinct = indistinct_groups(problem, table, grouped_data)
    found = cautions(problem, indistinct, advice=advice, columns=columns)
    texts = [caution.text for caution in found]
    texts = [choice, *texts] if choice else texts
    if texts:
        warn_user(BEGINNING + " ".join(texts))


def warn_of_one_group(moments: GroupMoments) -> None:
    """Warn of a single group, to which nobody can be compared."""
    if len(moments.labels) == 1:
        warn_user(
            f"sensitive_features has one group only, {moments.group_texts[0]!r}: the result is "
            "that of ordinary PCA."
        )


def warn_of_groups(moments: GroupMoments) -> None:
    """Warn of groups of which a result says little, where there is no problem to judge them by."""
    warn_of_one_group(moments)
    if (moments.count == 1).any():
        single = [moments.group_texts[i] for i in np.flatnonzero(moments.count == 1)]
        warn_user(
            f"Groups with a single row: {listed(single, _NAMED)}. What is found of such a group "
            "says little; consider merging it with another."
        )


def _chance(
    problem: Problem,
    indistinct: NDArray[np.bool_],
    groups: Sequence[str],
    quoted: Callable[[str], str],
) -> str:
    count, noun = problem.moments.count, problem.goal.measured.noun
    chosen = [int(i) for i in np.argsort(count, kind="stable") if indistinct[i]]
    names = [
        f"{quoted(groups[i])} ({count[i]:,} row{'' if count[i] == 1 else 's'})" for i in chosen
    ]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    named = ", ".join(names[:_NAMED]) + more
    if problem.goal.measured.baseline == "own":
        drawn = "as many rows drawn at random from the whole table could have as much"
    else:
        drawn = "random rows of the same number vary by as much as the groups differ"
    whose = f"every group, {named}," if indistinct.all() else f"each of {named}"
    whose = named if len(names) == 1 else whose
    return (
        f"The {noun} of {whose} may be chance: {drawn}. Fairness to such a group may not reach "
        "people outside these rows"
    )


def _dominant_column(
    moments: GroupMoments, features: Sequence[str] | None, quoted: Callable[[str], str]
) -> Iterator[Caution]:
    # As many columns as rows may be coordinates in the space that wide rows span.
    if not 3 <= moments.n_features < moments.n_rows:
        return
    variances = diagonals(moments.scatter).sum(axis=0) + moments.weight @ moments.offsets**2
    total, column = float(variances.sum()), int(variances.argmax())
    if variances[column] > _DOMINANT * total:
        named = "Column" if features is None else "The column"
        name = str(column) if features is None else quoted(short_text(str(features[column])))
        yield Caution(
            "One column decides",
            f"{named} {name} has {100.0 * float(variances[column]) / total:.3g} % of "
            "the variance of all columns together, so the result is mostly about it. Standardise "
            "the columns first, unless they are all in the same units.",
        )

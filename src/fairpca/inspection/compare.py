"""compare: PCA, PCA with more components, balanced and fair PCA, judged on held-out rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from fairpca._linalg.threads import threads_for
from fairpca._linalg.types import Array
from fairpca.criteria import Balanced, Criterion, MinMax, as_criterion
from fairpca.data import GroupedData, check_moments, prepare_data
from fairpca.folds import N_FOLDS
from fairpca.generalization.bootstrap import CONFIDENCE
from fairpca.generalization.cautions import dominant_column
from fairpca.generalization.cross_fit import FoldProblems
from fairpca.generalization.noise import SamplingNoise, debiased_gains
from fairpca.group_table import NO_CHANGE
from fairpca.groups import GROUPINGS
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.solvers import ExactSolver
from fairpca.text import (
    Printed,
    TextTable,
    formatted,
    joined,
    label_text,
    listed,
    most_of,
    quote,
    short_text,
    short_texts,
)
from fairpca.validation import (
    Progress,
    check_choice,
    check_flag,
    check_whole_number,
    import_pandas,
)

_FEWEST_ROWS = 30
"""Rows below which a group has no interval: folds of fewer than six show their spread poorly."""

_SOLVER = ExactSolver(gap=1e-2, n_starts=2)
"""Finds the fair subspaces of folds: so near the best that the rest is far below the noise."""

_MATTERS = 0.1
"""Part of what a group loses with PCA from which on a gain that cannot be ruled out matters."""

_MOST_NAMES = 3
"""Groups that a verdict names, those with the largest changes."""

_FAIR = "fair PCA"


@dataclass(frozen=True, eq=False)
class HeldOutEstimate:
    """A number of each group with each method, estimated on held-out rows, with intervals.

    Attributes
    ----------
    value : array of shape (m, k)
        The estimates.
    low, high : arrays of shape (m, k)
        Intervals that hold for all groups of a method together with about 95 % confidence; nan
        for groups with fewer than 30 rows.
    error : array of shape (m, k)
        Standard errors of the estimates.

    See Also
    --------
    fairpca.compare : Makes them.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import compare
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> found = compare(X, sensitive_features=["a"] * 100 + ["b"] * 200, n_components=2)
    >>> found.share_lost.value.shape
    (6, 2)
    """

    value: Array
    low: Array
    high: Array
    error: Array

    @property
    def reach(self) -> Array:
        """How far the intervals reach; (m, k)."""
        return np.maximum(self.high - self.value, self.value - self.low)

    def of(self, groups: NDArray[np.intp]) -> list[Array]:
        """Estimate and ends of the interval of one group for each method; (m,) each."""
        return [part[np.arange(len(groups)), groups] for part in (self.value, self.low, self.high)]


@dataclass(frozen=True)
class Verdict:
    """The answer of a comparison: its kind, and the numbers that it is made of.

    Printed, it is a sentence or two.

    Attributes
    ----------
    kind : str
        The rule that holds, see `compare`: "one group", "more components", "trade", "gain",
        "unclear", "no gain" or "no difference".
    numbers : dict
        `n_components` and `n_groups`; `more_components`, those with which PCA serves the most
        groups as well as fair PCA, or None; `worse_with_more`, the groups that it serves worse,
        each with its shares lost with fair PCA and with this PCA; `worst_lost`, the largest share
        that a group loses with this PCA and with fair PCA; `significant`, the groups with a clear
        disparity with PCA; `unfairest`, the group with the largest estimate, that and its interval;
        `helped` and `hurt`, the groups that fair PCA clearly helps and costs, each with its shares
        lost with PCA and with fair PCA; `possible`, the group with the largest disparity, or if
        only others may gain much the one that may most, and the interval of the change of its
        share lost with fair PCA, or None where fewer than two groups have one;
        `largest_disparity`, `largest_share` and `total_lost`, with PCA and with fair PCA;
        `one_more`, the largest disparity with PCA and with one more component, or None;
        `not_judged`, the groups without an interval.
    decimals : int
        Of the per cents in the sentences.

    See Also
    --------
    fairpca.compare : Has the rules.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import compare
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> compare(X, sensitive_features=["a"] * 100 + ["b"] * 200, n_components=2).verdict.kind
    'no difference'
    """

    kind: str
    numbers: dict[str, Any]
    decimals: int = 1

    def __repr__(self) -> str:
        numbers, largest, disparate, perhaps = self.numbers, "", "", ""
        if numbers["unfairest"] is not None:
            group, *shares = numbers["unfairest"]
            share, low, high = (_percent(each, self.decimals) for each in shares)
            largest = (
                f" (the largest estimate is that of {_name(group)}: {share} % of its variance, "
                f"interval {low} to {high})"
            )
        if apart := numbers["significant"]:
            verb = "has" if len(apart) == 1 else "have"
            disparate = f"{listed(apart, _MOST_NAMES)} {verb} a clear disparity, but "
        if numbers["possible"] is not None:
            group, *ends = numbers["possible"]
            low, high = (f"{100.0 * end:+.{self.decimals}f}" for end in ends)
            perhaps = (
                f": it changes the share that {_name(group)} loses by {low} to {high} percentage "
                f"points ({100 * CONFIDENCE:.0f} % interval)"
            )
        costs, serves = self._named(numbers["hurt"]), self._serves()
        trade = (
            f"helps {self._named(numbers['helped'])} and costs {costs or 'no group clearly'}. The "
            f"largest disparity goes from {self._both('largest_disparity', ' to ')} % of a group's "
            f"variance, the largest share lost from {self._both('largest_share', ' to ')} %, the "
            f"total loss from {self._both('total_lost', ' to ')} % of all variance."
        )
        one_more = numbers["one_more"]
        if one_more is not None and one_more[1] < one_more[0]:
            another = (
                f" PCA with {_components(numbers['n_components'] + 1)} lowers the largest "
                f"disparity from {self._both('one_more', ' to ')} % of a group's variance."
            )
        else:
            another = ""
        r, and_costs = _components(numbers["n_components"]), f" and costs {costs}" if costs else ""
        text = {
            "one group": "There is one group only: use PCA.",
            "no difference": f"Use PCA: no group has a clear disparity on held-out rows{largest}.",
            "no gain": f"Use PCA: {disparate}fair PCA with {r} does not clearly help any "
            f"group{and_costs}.{another}",
            "unclear": f"The rows do not show whether fair PCA with {r} helps{perhaps}."
            f"{f' It costs {costs}.' if costs else ''}",
            "more components": f"{serves} If you must keep {r}: fair PCA {trade}",
            "gain": f"Use fair PCA: it {trade}",
            "trade": f"Fair PCA {trade}",
        }[self.kind]
        parts, few = [text], numbers["not_judged"]
        is_open = self.kind == "unclear" and not numbers["worse_with_more"]
        if serves and (is_open or self.kind in ("gain", "trade")):
            parts.append(serves)
        if few:
            parts.append(f"Too few rows to be judged: {listed(few, _MOST_NAMES)}.")
        return " ".join(parts)

    def _serves(self) -> str:
        """How PCA with more components serves the groups, beside fair PCA."""
        numbers = self.numbers
        more, worse, k = (
            numbers[name] for name in ("more_components", "worse_with_more", "n_groups")
        )
        if more is None:
            return ""
        if worse:
            return (
                f"PCA with {_components(more)} serves {k - len(worse)} of {k} groups at least as "
                f"well; {self._named(worse)} {'loses' if len(worse) == 1 else 'lose'} more than "
                "with fair PCA."
            )
        return (
            f"PCA with {_components(more)} serves every group at least as well as fair PCA with "
            f"{numbers['n_components']} (the largest share that a group loses: "
            f"{self._both('worst_lost', ' instead of ')} %)."
        )

    def _both(self, name: str, between: str) -> str:
        """Two shares in per cent."""
        return between.join(_percent(share, self.decimals) for share in self.numbers[name])

    def _named(self, changes: Sequence[tuple[str, float, float]]) -> str:
        """Some groups, each with its shares lost with two methods."""
        texts = []
        for name, *shares in changes:
            before, after = (_percent(share, self.decimals) for share in shares)
            texts.append(f"{_name(name)} ({before} → {after} % lost)")
        return joined(texts, _MOST_NAMES)


def _components(r: int) -> str:
    return f"{r} component{'' if r == 1 else 's'}"


def _name(group: str) -> str:
    """A group in a sentence."""
    return quote(short_text(group))


def _percent(share: float, decimals: int) -> str:
    return formatted(100.0 * share, f".{decimals}f")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Printed):
    """What groups lose on held-out rows with PCA, balanced PCA and fair PCA.

    Print it for the verdict and two tables; `compare` makes it. The first of the m methods is PCA,
    with which the others are compared.

    Attributes
    ----------
    methods : tuple of m str
        What the methods are called.
    dimensions : tuple of m int
        Their numbers of components.
    labels : tuple of length k
        The groups.
    count : integer array of shape (k,)
        Their rows.
    share_lost : HeldOutEstimate
        The share of each group's variance that is lost.
    change : HeldOutEstimate
        By how much that share is larger than with PCA; negative numbers are gains.
    beyond_fair : HeldOutEstimate
        By how much that share is larger than with fair PCA.
    disparity : HeldOutEstimate
        What each group loses beyond its own PCA of `n_components` dimensions, as a share of its
        variance; about 0 where its own PCA would do no better.
    total_lost : array of shape (m,)
        The share of the variance of all rows that is lost.
    variance : array of shape (k,)
        The variance of each group's held-out rows, of which those are shares.
    group_names : tuple of str or None
        Names of the sensitive columns, if they are known.
    notes : tuple of str
        Further notes, such as that one column has most of the variance.

    See Also
    --------
    fairpca.plotting.ComparisonDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import compare
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> found = compare(X, sensitive_features=["a"] * 100 + ["b"] * 200, n_components=2)
    >>> found.better_off(found.methods.index("fair PCA"))
    ('a',)
    """

    methods: tuple[str, ...]
    dimensions: tuple[int, ...]
    labels: tuple[Hashable, ...]
    count: NDArray[np.int64]
    share_lost: HeldOutEstimate
    change: HeldOutEstimate
    beyond_fair: HeldOutEstimate
    disparity: HeldOutEstimate
    total_lost: Array
    variance: Array
    group_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> list[str]:
        """What the groups are called."""
        return [label_text(label, self.group_names) for label in self.labels]

    @property
    def worst_group(self) -> NDArray[np.intp]:
        """Position of the group that loses the largest share; (m,)."""
        return np.asarray(self.share_lost.value.argmax(axis=1))

    @property
    def worst_lost(self) -> Array:
        """The largest share that a group loses; (m,)."""
        return np.asarray(self.share_lost.value.max(axis=1))

    @property
    def largest_disparity(self) -> Array:
        """The largest disparity of a group, as a share of its variance; (m,)."""
        return self.disparity.of(self.largest_disparity_group)[0]

    @property
    def largest_disparity_group(self) -> NDArray[np.intp]:
        """Position of the group that has it, of those with intervals if there are any; (m,)."""
        judged = ~np.isnan(self.disparity.low[0])
        values = self.disparity.value
        return np.asarray(np.where(judged | ~judged.any(), values, -np.inf).argmax(axis=1))

    @property
    def clear_change(self) -> NDArray[np.int64]:
        """-1 where a group clearly loses less than with PCA, 1 where more, and else 0; (m, k).

        The interval of its change is below or above 0.
        """
        return 1 * (self.change.low > NO_CHANGE) - (self.change.high < -NO_CHANGE)

    def better_off(self, method: int) -> tuple[Hashable, ...]:
        """The groups that clearly lose less than with PCA."""
        return tuple(self.labels[i] for i in np.flatnonzero(self.clear_change[method] < 0))

    def worse_off(self, method: int) -> tuple[Hashable, ...]:
        """The groups that clearly lose more than with PCA."""
        return tuple(self.labels[i] for i in np.flatnonzero(self.clear_change[method] > 0))

    @cached_property
    def verdict(self) -> Verdict:
        """The answer, by the rules that `compare` states."""
        fair, shares = self.methods.index(_FAIR), self.share_lost.value
        clear, few = self.clear_change, np.isnan(self.change.low[fair])
        helped, hurt = (self._moved(clear[fair] == sign, 0, fair) for sign in (-1, 1))
        significant = self.disparity.low[0] > NO_CHANGE
        # Whom PCA with more components serves worse than fair PCA, by the estimates.
        worse = self.beyond_fair.value > NO_CHANGE
        larger = range(1, self.methods.count("PCA"))
        more = min(larger, key=lambda j: int(worse[j].sum()), default=None)
        worse_with_more = [] if more is None else self._moved(worse[more], fair, more)
        # Nobody can gain more than what is lost.
        gains = np.where(few, 0.0, np.clip(-self.change.low[fair], 0.0, shares[0]))
        judged, worst = int((~few).sum()), int(self.largest_disparity_group[0])
        possible = gains > _MATTERS * shares[0] + NO_CHANGE
        # The worst-off group, unless it is another's gain that cannot be ruled out.
        open_group = int(gains.argmax()) if possible.any() and not possible[worst] else worst
        change = [float(end[fair, open_group]) for end in (self.change.low, self.change.high)]
        ends = np.clip(change, -shares[0, open_group], 1.0 - shares[0, open_group]).tolist()
        estimate = [float(part[0]) for part in self.disparity.of(self.largest_disparity_group)]
        there = estimate[0] > NO_CHANGE and not few[worst]
        if len(self.labels) == 1:
            kind = "one group"
        elif helped:
            serves_all = more is not None and not worse_with_more
            kind = "more components" if serves_all else "trade" if hurt else "gain"
        elif judged < 2 or possible.any():
            kind = "unclear"
        elif hurt or significant.any():
            kind = "no gain"
        else:
            kind = "no difference"
        numbers = {
            "n_components": self.dimensions[0],
            "n_groups": len(self.labels),
            "more_components": None if more is None else self.dimensions[more],
            "worse_with_more": worse_with_more,
            "worst_lost": tuple(self.worst_lost[[fair if more is None else more, fair]].tolist()),
            "significant": self._texts(significant),
            "unfairest": (self.groups[worst], *estimate) if there else None,
            "helped": helped,
            "hurt": hurt,
            "possible": (self.groups[open_group], *ends) if judged > 1 else None,
            "largest_share": tuple(self.worst_lost[[0, fair]].tolist()),
            "one_more": tuple(self.largest_disparity[[0, 1]].tolist()) if more else None,
            "largest_disparity": tuple(self.largest_disparity[[0, fair]].tolist()),
            "total_lost": tuple(self.total_lost[[0, fair]].tolist()),
            "not_judged": self._texts(few),
        }
        return Verdict(kind, numbers, self._decimals)

    @property
    def _decimals(self) -> int:
        """Of per cents: one, or more where no group loses a tenth, or a hundredth, with PCA."""
        return 1 + int((self.worst_lost[0] < [0.1, 0.01]).sum())

    def _texts(self, some: NDArray[np.bool_]) -> list[str]:
        return [self.groups[i] for i in np.flatnonzero(some)]

    def _moved(
        self, some: NDArray[np.bool_], before: int, after: int
    ) -> list[tuple[str, float, float]]:
        """Groups with their shares lost with two methods, the largest difference first."""
        shares = self.share_lost.value[[before, after]].T
        order = sorted(np.flatnonzero(some), key=lambda i: -float(np.ptp(shares[i])))
        return [(self.groups[i], *shares[i].tolist()) for i in order]

    def __len__(self) -> int:
        return len(self.methods)

    def summary(self) -> dict[str, list[Any]]:
        """The first table: columns by name, as lists with one entry for each method."""
        texts, every, clear = self.groups, range(len(self)), self.clear_change
        unfair = self.largest_disparity_group
        lost, low, high = self.share_lost.of(self.worst_group)
        disparity, disparity_low, disparity_high = self.disparity.of(unfair)
        return {
            "method": list(self.methods),
            "components": list(self.dimensions),
            "worst group": [texts[i] for i in self.worst_group],
            "worst share lost": lost.tolist(),
            "worst low": low.tolist(),
            "worst high": high.tolist(),
            "largest disparity": disparity.tolist(),
            "disparity low": disparity_low.tolist(),
            "disparity high": disparity_high.tolist(),
            "group with largest disparity": [texts[i] for i in unfair],
            "total share lost": self.total_lost.tolist(),
            "better off": [self._texts(clear[i] < 0) for i in every],
            "worse off": [self._texts(clear[i] > 0) for i in every],
        }

    def to_dict(self) -> dict[str, list[Any]]:
        """All numbers: columns by name, with one entry for each method and group."""
        m, k = len(self), len(self.labels)
        columns: dict[str, list[Any]] = {
            "method": [name for name in self.methods for _ in range(k)],
            "components": [r for r in self.dimensions for _ in range(k)],
            "group": self.groups * m,
            "rows": self.count.tolist() * m,
            "variance": self.variance.tolist() * m,
        }
        for name in ("share_lost", "change", "disparity"):
            found, words = getattr(self, name), name.replace("_", " ")
            columns[words] = found.value.ravel().tolist()
            columns[f"{words} low"] = found.low.ravel().tolist()
            columns[f"{words} high"] = found.high.ravel().tolist()
        return columns

    def to_frame(self) -> Any:
        """The same as a pandas data frame."""
        return import_pandas().DataFrame(self.to_dict())

    def text_parts(self) -> list[TextTable | str]:
        """What is printed: the verdict, a table of the methods and one of the groups."""
        groups, left_out = self._group_table()
        note = (
            f"All of it is about held-out rows: each method was fitted to about {N_FOLDS - 1} of "
            f"{N_FOLDS} rows at a time and judged on the others, so all lose slightly more than if "
            "fitted to all rows. Losses are in per cent of a group's variance, its mean squared "
            "distance from the mean of all rows. A disparity is what a group loses beyond its own "
            f"PCA with {_components(self.dimensions[0])}; with more it can be below 0. Intervals "
            f"({100 * CONFIDENCE:.0f} %) hold for all groups of a method together, and are wide, "
            f"as they come from {N_FOLDS} folds. * marks a difference from PCA whose interval "
            "excludes 0; better/worse off counts these. (With more components of PCA no group "
            "loses more.) "
            "Balanced PCA gives each group the same weight; min-max PCA minimises the largest "
            "disparity of the training rows. The largest share is lost by "
            f"{self._worst(self.worst_group)}, and the largest disparity is that of "
            f"{self._worst(self.largest_disparity_group)}."
        )
        rest = filter(None, [left_out, *self.notes, note])
        return [str(self.verdict), "", self._method_table(), "", groups, "", *rest]

    def _worst(self, places: NDArray[np.intp]) -> str:
        """Which groups are at these places with PCA and with fair PCA."""
        first, second = (_name(self.groups[places[i]]) for i in (0, self.methods.index(_FAIR)))
        if first == second:
            return f"{first} with PCA and with fair PCA"
        return f"{first} with PCA and {second} with fair PCA"

    def _interval(self, value: float, low: float, high: float) -> str:
        """A share in per cent, with its interval if there is one."""
        text, *ends = (_percent(share, self._decimals) for share in (value, low, high))
        return text if np.isnan(low) else f"{text} ({' to '.join(ends)})"

    def _method_table(self) -> TextTable:
        interval = f"({100 * CONFIDENCE:.0f} % interval)"
        head = ["method,\ncomponents", f"largest % lost\n{interval}"]
        head += [f"largest disparity, %\n{interval}", "total\n% lost", "better/\nworse off"]
        lost = self.share_lost.of(self.worst_group)
        disparity, clear = self.disparity.of(self.largest_disparity_group), self.clear_change
        body = [
            [
                f"{name}, {self.dimensions[i]}",
                *(self._interval(*(part[i] for part in parts)) for parts in (lost, disparity)),
                _percent(self.total_lost[i], self._decimals),
                f"{(clear[i] < 0).sum()}/{(clear[i] > 0).sum()}" if i else "",
            ]
            for i, name in enumerate(self.methods)
        ]
        return TextTable(head, body)

    def _group_table(self) -> tuple[TextTable, str]:
        """The table of groups, and what is said of those that it leaves out."""
        interval = f"({100 * CONFIDENCE:.0f} % interval)"
        head = ["group", "rows", f"PCA, {self.dimensions[0]}: % lost\n{interval}"]
        head += [
            f"{name}, {r}\nchange"
            for name, r in zip(self.methods[1:], self.dimensions[1:], strict=True)
        ]
        shown, left_out = most_of(self.disparity.value[0])
        texts, clear, body, lost = short_texts(self.groups), self.clear_change, [], self.share_lost
        for i in shown:
            with_pca = self._interval(*(part[0, i] for part in (lost.value, lost.low, lost.high)))
            row = [texts[i], f"{self.count[i]:,}", with_pca]
            for j in range(1, len(self)):
                text, reach = (
                    _percent(part[j, i], self._decimals)
                    for part in (self.change.value, self.change.reach)
                )
                text += "" if np.isnan(self.change.low[j, i]) else f" ± {reach}"
                row.append(text + ("*" if clear[j, i] else " "))
            body.append(row)
        return TextTable(head, body), left_out


def compare(
    X: Any,
    *,
    n_components: int,
    sensitive_features: Any = None,
    criterion: str | Criterion = "soft",
    sample_weight: ArrayLike | None = None,
    groups: str = "intersections",
    keep_sensitive: bool = False,
    missing_labels: str = "error",
) -> Comparison:
    """Compare held-out losses of the groups with PCA and with fair PCA, with a verdict.

    PCA is compared with PCA of one and two more components, with balanced PCA (`Balanced`), with
    fair PCA, and with plain min-max (`MinMax`). The rows are divided into five folds, and a method
    that is fitted to four of them is judged on the fifth.

    Parameters
    ----------
    X : as for `FairPCA.fit`, or GroupMoments
        The rows: arrays, data frames, sparse matrices, or rows of Dask, Spark, PyTorch or CuPy.
        Or moments by group and fold: ``GroupMoments.from_rows(…, folds=True)`` or
        ``read_moments(…, folds=True)``.
    n_components : int
        Number of components, at least 1.
    sensitive_features : as for `FairPCA.fit`
        The groups; None with moments, which have them.
    criterion : str or Criterion, default="soft"
        What fair PCA minimises: see `FairPCA`. ``MinMax("share_lost")``, say, is about shares lost
        instead of disparities.
    sample_weight : as for `FairPCA.fit`
        The weights of the rows; None with moments.
    groups, keep_sensitive, missing_labels : as for `FairPCA`
        How several sensitive columns define groups, whether they stay among the features, and
        what is done with missing labels.

    Returns
    -------
    Comparison
        Print it; its `verdict` is the answer, and `fairpca.plotting.ComparisonDisplay` draws it.

    See Also
    --------
    fairpca.audit : Judges a reduction that is already in use.
    fairpca.metrics.WorstGroupScorer : Scores whole pipelines on held-out rows.

    Notes
    -----
    A change, or a disparity, is *clear* where its interval excludes 0. The verdict is the first of
    these that holds:

    1. *one group*: there is a single group.
    2. *more components*: fair PCA clearly helps some groups, but PCA with one or two more
       components serves each group at least as well: none loses more than with fair PCA, by the
       estimates.
    3. *trade*: it clearly helps some groups and clearly costs others.
    4. *gain*: it clearly helps some groups and clearly costs none.
    5. *unclear*: fewer than two groups have intervals, or by these it could lower what some group
       loses by more than a tenth.
    6. *no gain*: some group has a clear disparity with PCA, or clearly loses more with fair PCA
       than with PCA.
    7. *no difference*: none of these.

    The verdicts 3 and 4 name PCA with one or two more components too: the one that serves the most
    groups as well as fair PCA, by the rule of 2, and the groups that it serves worse.

    Intervals are made of the five folds: Student's t with 4 degrees of freedom for a ratio of sums,
    as wide as Nadeau and Bengio (2003) ask for, since training rows overlap, and with Bonferroni's
    correction for the groups. Rows of all groups are held out, also of large ones. Their training
    rows are those of the other folds, as are the temperature and the baselines of `SoftMinMax`.
    Disparities are measured from a weighted mean of what the group's own PCA loses in sample, which
    is too little, and held out, which is too much. Their intervals reach down to where they would
    with the latter alone: PCA itself loses more of held-out rows than of others, so that groups of
    one population have positive estimates.

    References
    ----------
    C. Nadeau and Y. Bengio (2003): Inference for the generalization error. Machine Learning 52.

    Examples
    --------
    >>> from fairpca import compare
    >>> from fairpca.datasets import load_adult
    >>> from sklearn.preprocessing import StandardScaler
    >>> adult = load_adult(as_frame=False)
    >>> X = StandardScaler().fit_transform(adult.data)
    >>> found = compare(X, sensitive_features=adult.sensitive_features, n_components=2)
    >>> for method, r, lost in zip(found.methods, found.dimensions, found.total_lost):
    ...     print(f"{method}, {r} components: {lost:.1%} lost")
    PCA, 2 components: 74.8% lost
    PCA, 3 components: 65.8% lost
    PCA, 4 components: 57.9% lost
    balanced PCA, 2 components: 75.1% lost
    fair PCA, 2 components: 75.1% lost
    min-max PCA, 2 components: 75.2% lost
    >>> print(found.verdict)
    PCA with 3 components serves every group at least as well as fair PCA with 2 (the largest share
    that a group loses: 67.5 instead of 77.9 %). If you must keep 2 components: fair PCA helps
    'Female' (71.9 → 70.2 % lost) and costs 'Male' (76.5 → 77.9 % lost). The largest disparity goes
    from 4.5 to 2.8 % of a group's variance, the largest share lost from 76.5 to 77.9 %, the total
    loss from 74.8 to 75.1 % of all variance.
    """
    check_whole_number("n_components", n_components)
    check_choice("groups", groups, GROUPINGS[:-1])
    check_flag("keep_sensitive", keep_sensitive)
    criterion = as_criterion(criterion)
    if isinstance(X, GroupMoments):
        if sensitive_features is not None or sample_weight is not None:
            raise ValueError(
                "Moments have groups and weights: leave out sensitive_features and sample_weight."
            )
        if not X.has_folds:
            raise ValueError(
                "compare needs moments by fold: take them with folds=True, as "
                "GroupMoments.from_rows and read_moments do."
            )
        check_moments(X, n_components)
        grouped_data = GroupedData.from_moments(X, groups)
    elif sensitive_features is None:
        raise ValueError("compare needs groups: pass sensitive_features=….")
    else:
        grouped_data = prepare_data(
            X,
            sensitive_features,
            sample_weight,
            missing_labels,
            groups=groups,
            keep_sensitive=keep_sensitive,
            n_components=n_components,
            reduce_wide=True,
            in_place=True,
            folds="all",
        )
    return comparison_of(grouped_data, n_components, criterion, groups)


def comparison_of(
    grouped_data: GroupedData,
    n_components: int,
    criterion: Criterion,
    groups: str,
    progress: Progress | None = None,
) -> Comparison:
    """The comparison for rows that `prepare_data` has summed up by group and fold."""
    cells = grouped_data.cells
    if cells is None:
        raise ValueError("There are no folds.")
    if n_components > cells.n_features:  # of wide rows, the space that they span
        raise ValueError(
            f"n_components={n_components} is more than the {cells.n_features} dimensions that the "
            "rows span."
        )
    methods = _methods(n_components, cells.n_features, criterion)
    problem = Problem(grouped_data.moments, n_components, criterion)
    with threads_for(cells.n_features):
        sums = HeldOutSums.of_folds(cells, groups, problem, methods, progress)
    fair = [method.name for method in methods].index(_FAIR)
    # A row that is projected on more components loses no more.
    nested = np.array([[method.name == "PCA"] for method in methods])
    return Comparison(
        methods=tuple(method.name for method in methods),
        dimensions=tuple(method.n_components for method in methods),
        labels=problem.moments.labels,
        count=problem.moments.count,
        share_lost=sums.estimate(sums.losses, 0.0, 1.0),
        change=sums.estimate(sums.losses - sums.losses[0], most=np.where(nested, 0.0, np.inf)),
        beyond_fair=sums.estimate(sums.losses - sums.losses[fair]),
        disparity=sums.disparity(),
        total_lost=sums.total_lost,
        variance=sums.variance.sum(axis=0),
        group_names=problem.moments.group_names,
        notes=tuple(filter(None, [dominant_column(problem.moments)])),
    )


@dataclass(frozen=True)
class Method:
    """A way to find a subspace: PCA without a criterion, else the best one by the criterion."""

    name: str
    n_components: int
    criterion: Criterion | None = None

    def basis(self, training: Problem, cells: GroupMoments, groups: str) -> Array:
        """The subspace of training rows, from their moments by group, and by group and fold."""
        # That of the training problem is for the groups that have rows there.
        criterion = training.criterion if self.name == _FAIR else self.criterion
        if criterion is None:
            same = self.n_components == training.n_components
            return (
                training if same else replace(training, n_components=self.n_components)
            ).pca_basis
        problem = training.with_criterion(criterion)
        if criterion.estimates_noise:
            problem = SamplingNoise.of_problem(problem, cells, groups).debiased()
        return _SOLVER.solve(problem).basis


def _methods(r: int, most: int, criterion: Criterion) -> list[Method]:
    """The methods of a comparison; no subspace has more than `most` dimensions."""
    chosen = [Method("PCA", r)]
    chosen += [Method("PCA", r + more) for more in (1, 2) if r + more <= most]
    fair = Method(_FAIR, r, criterion)
    others = (
        Method("balanced PCA", r, Balanced()),
        Method("min-max PCA", r, MinMax(criterion.measure)),
    )
    balanced, minmax = (
        [] if repr(other.criterion) == repr(criterion) else [other] for other in others
    )
    return [*chosen, *balanced, fair, *minmax]


@dataclass(frozen=True, eq=False)
class HeldOutSums:
    """What the rows of J folds have and lose, over the whole weight of their group.

    Attributes
    ----------
    variance : array of shape (J, k)
        What the rows lose if nothing is kept.
    losses : array of shape (m, J, k)
        What they lose in the subspaces that methods find without them.
    own, own_held_out : arrays of shape (J, k)
        What they would lose with their group's own PCA, with the bias reduced, and with that of the
        rows of the other folds.
    weights : array of shape (k,)
        What the groups' losses are multiplied with in the total loss.
    rows : array of shape (k,)
        How many rows of equal weight say as much about each group as its rows do.
    """

    variance: Array
    losses: Array
    own: Array
    own_held_out: Array
    weights: Array
    rows: Array

    @classmethod
    def of_folds(
        cls,
        cells: GroupMoments,
        groups: str,
        problem: Problem,
        methods: Sequence[Method],
        progress: Progress | None = None,
    ) -> HeldOutSums:
        """Fit the methods to all folds but one, for each fold, and sum up what it loses."""
        folds = FoldProblems(cells, groups, problem, hold_out_large=True, n_folds=N_FOLDS)
        if folds.not_held_out.any():
            raise ValueError(
                "compare holds out rows of all groups: take moments with folds=True, not 'needed'."
            )
        if not folds.numbers:
            raise ValueError("There are too few different rows to hold some of them out.")
        bases = []
        for done, fold in enumerate(folds.numbers):
            if progress is not None:
                progress("comparing methods on held-out rows", done, len(folds.numbers))
            training, others = folds.training(fold), folds.training_cells(fold)
            bases.append([method.basis(training, others, groups) for method in methods])
        variance = folds.traces
        losses = np.array([variance - folds.kept(each) for each in zip(*bases, strict=True)])
        kept = np.array([folds.own_kept_in_sample(), folds.own_kept()])
        total = kept.sum(axis=1)
        gains = debiased_gains(problem.moments, len(folds.numbers), *total)
        # Each fold has its share of the gains: the mean of its shares of both sums.
        shares = (kept / np.where(total > 0.0, total, 1.0)[:, None]).mean(axis=0)
        own, own_held_out = variance - [gains * shares, kept[1]]
        effective = np.minimum(problem.moments.effective_count, problem.moments.count)
        found = np.maximum(losses, 0.0)
        return cls(variance, found, own, own_held_out, problem.weights, effective)

    @property
    def total_lost(self) -> Array:
        """The share of the variance of all rows that is lost; (m,)."""
        total = float(self.variance.sum(axis=0) @ self.weights)
        lost: Array = self.losses.sum(axis=1) @ self.weights
        return lost / (total if total > 0.0 else 1.0)

    def disparity(self) -> HeldOutEstimate:
        """The estimates of disparities, whose intervals reach down to those with `own_held_out`."""
        found = self.estimate(self.losses - self.own)
        least = self.estimate(self.losses - self.own_held_out).low
        return replace(found, low=np.minimum(found.low, least))

    def estimate(
        self, sums: Array, least: float = -np.inf, most: float | Array = np.inf
    ) -> HeldOutEstimate:
        """The ratios of sums over folds, (m, J, k), to the groups' variances, with intervals.

        The variance of a ratio is that of the sums minus what they are expected to be. No ratio is
        below `least` or above `most`.
        """
        variance = self.variance.sum(axis=0)
        variance = np.where(variance > 0.0, variance, 1.0)
        value = sums.sum(axis=1) / variance
        deviations = sums - value[:, None] * self.variance
        there = (self.variance > 0.0).sum(axis=0)
        freedom = np.maximum(there - 1, 1)
        squares = there / freedom * np.square(deviations).sum(axis=1)
        overlap = 1.0 + there / freedom  # Nadeau and Bengio's, for folds of equal size
        errors = np.sqrt(squares * overlap) / variance
        one_side = (1.0 - CONFIDENCE) / (2.0 * len(self.rows))
        reach = stdtrit(freedom, 1.0 - one_side) * errors
        reach = np.where((self.rows < _FEWEST_ROWS) | (there < 2), np.nan, reach)
        low, high = value - reach, value + reach
        return HeldOutEstimate(value, np.maximum(low, least), np.minimum(high, most), errors)

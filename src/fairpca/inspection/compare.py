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
    joined,
    label_text,
    listed,
    most_of,
    short_text,
    short_texts,
)
from fairpca.validation import check_choice, check_flag, check_whole_number, import_pandas

_FEWEST_ROWS = 20
"""Rows below which a group has no interval: folds of fewer than four say little of their spread."""

_SOLVER = ExactSolver(gap=1e-3, n_starts=8)
"""Finds the fair subspaces of folds: so near the best that the rest is far below the noise."""

_MORE = (1, 2)
"""How many more components PCA is given."""

_MATTERS = 0.1
"""Part of what a group loses with PCA from which on a gain that cannot be ruled out matters."""

_MOST_NAMES = 3
"""Groups that a verdict names, those with the largest changes."""

_FAIR = "fair PCA"

_DECIMALS = ((0.1, 1), (0.01, 2), (0.0, 3))
"""Decimals of per cents in tables, by the largest share that a group loses with PCA."""


@dataclass(frozen=True, eq=False)
class HeldOutEstimate:
    """A number of each group with each method, estimated on held-out rows, with intervals.

    Attributes
    ----------
    value : array of shape (m, k)
        The estimates.
    low, high : arrays of shape (m, k)
        Intervals that hold for all groups of a method together with about 95 % confidence; nan
        for groups with fewer than 20 rows.
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
        `n_components`; `more_components`, those with which PCA serves every group as well, or None;
        `alternative`, those with which it clearly helps every group and serves most as well, and
        the other groups, each with its shares lost with fair PCA and with this PCA, or None;
        `significant`, the groups with a significant disparity with PCA; `helped` and `hurt`, the
        groups that fair PCA clearly helps and costs, each with its shares lost with PCA and with
        fair PCA; `possible_gain`, a group and by how much fair PCA could lower its share lost, by
        the intervals, or None where fewer than two groups have one; `largest_disparity` and
        `total_lost`, as in `Comparison`, with PCA and with fair PCA; `not_judged`, the groups
        without an interval.

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

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        numbers = self.numbers
        more, costs = numbers["more_components"], _named(numbers["hurt"])
        perhaps = ""
        if numbers["possible_gain"] is not None:
            group, gain = numbers["possible_gain"]
            perhaps = (
                f": it could lower the share that {_name(group)} loses by up to "
                f"{100.0 * gain:.2g} percentage points ({100 * CONFIDENCE:.0f} % interval)"
            )
            if more is not None:
                perhaps += f". PCA with {more} components serves every group at least as well"
        text = _VERDICTS[self.kind].format(
            r=numbers["n_components"],
            more=more,
            unfair=_significant(numbers["significant"]),
            helps=_named(numbers["helped"]),
            costs=costs or "no group significantly",
            and_costs=f" and costs {costs}" if costs else "",
            it_costs=f" It costs {costs}." if costs else "",
            perhaps=perhaps,
            largest_disparity=_moves(*numbers["largest_disparity"]),
            total_lost=_moves(*numbers["total_lost"]),
        )
        parts, few = [text[0].upper() + text[1:]], numbers["not_judged"]
        if self.kind in ("trade", "gain") and numbers["alternative"] is not None:
            components, worse = numbers["alternative"]
            verb = "loses" if len(worse) == 1 else "lose"
            parts.append(
                f"PCA with {components} components serves every group better than with "
                f"{numbers['n_components']}; {_named(worse)} {verb} more than with fair PCA."
            )
        elif self.kind == "no gain" and numbers["alternative"] is not None:
            parts.append(
                f"PCA with {numbers['alternative'][0]} components serves every group better."
            )
        if few:
            parts.append(f"Too few rows to be judged: {listed(few, _MOST_NAMES)}.")
        return " ".join(parts)


def _significant(groups: Sequence[str]) -> str:
    """Which groups have a significant disparity, as the beginning of a sentence."""
    verb = "has" if len(groups) == 1 else "have"
    return f"{listed(groups, _MOST_NAMES)} {verb} a significant disparity, but " if groups else ""


_TRADE = (
    "helps {helps} and costs {costs}; the largest disparity {largest_disparity}, the total loss "
    "{total_lost}."
)

_VERDICTS = {
    "one group": "There is one group only: use PCA.",
    "no difference": "No group has a significant disparity: use PCA.",
    "no gain": "{unfair}fair PCA with {r} components helps no group significantly{and_costs}: use "
    "PCA.",
    "unclear": "The rows do not show whether fair PCA with {r} components helps{perhaps}."
    "{it_costs}",
    "more components": "PCA with {more} components serves every group at least as well as fair PCA "
    f"with {{r}}. If it has to be {{r}}: fair PCA {_TRADE}",
    "gain": f"Use fair PCA: it {_TRADE}",
    "trade": f"Fair PCA {_TRADE}",
}


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
    def worst_interval(self) -> tuple[Array, Array]:
        """Where that lies, whichever group has it, if all groups have intervals; (m,) each.

        All of the groups' intervals hold together, so the largest share is between the largest of
        their lower ends and the largest of their upper ends.
        """
        return self.share_lost.low.max(axis=1), self.share_lost.high.max(axis=1)

    @property
    def largest_disparity(self) -> Array:
        """The largest disparity of a group, in squared units of the columns; (m,)."""
        return np.asarray((self.disparity.value * self.variance).max(axis=1))

    @property
    def largest_disparity_group(self) -> NDArray[np.intp]:
        """Position of the group that has it; (m,)."""
        return np.asarray((self.disparity.value * self.variance).argmax(axis=1))

    @property
    def clear_change(self) -> NDArray[np.int64]:
        """-1 where a group clearly loses less than with PCA, 1 where more, and else 0; (m, k).

        The interval of its change is below or above 0.
        """
        less, more = self.change.high < -NO_CHANGE, self.change.low > NO_CHANGE
        return np.where(less, -1, np.where(more, 1, 0))

    def better_off(self, method: int) -> tuple[Hashable, ...]:
        """The groups that clearly lose less than with PCA."""
        return tuple(self.labels[i] for i in np.flatnonzero(self.clear_change[method] < 0))

    def worse_off(self, method: int) -> tuple[Hashable, ...]:
        """The groups that clearly lose more than with PCA."""
        return tuple(self.labels[i] for i in np.flatnonzero(self.clear_change[method] > 0))

    @cached_property
    def verdict(self) -> Verdict:
        """The answer, by the rules that `compare` states."""
        fair, r, shares = self.methods.index(_FAIR), self.dimensions[0], self.share_lost.value
        clear, few = self.clear_change, np.isnan(self.change.low[fair])
        helped, hurt = (self._moved(clear[fair] == sign, 0, fair) for sign in (-1, 1))
        significant = self.disparity.low[0] > NO_CHANGE
        # Whom PCA with more components serves worse than fair PCA, by more than a standard error.
        worse = self.beyond_fair.value - self.beyond_fair.error > NO_CHANGE
        larger = range(1, self.methods.count("PCA"))
        enough = [self.dimensions[j] for j in larger if not worse[j].any()]
        helped_by = (clear < 0) | (few & (self.change.value < 0.0))
        helping = [j for j in larger if helped_by[j].all() and worse[j].mean() <= 0.5]
        alternative = None
        if helping:
            j = min(helping, key=lambda j: int(worse[j].sum()))
            alternative = self.dimensions[j], self._moved(worse[j], fair, j)
        # Nobody can gain more than what is lost.
        gains = np.where(few, 0.0, np.clip(-self.change.low[fair], 0.0, shares[0]))
        judged = int((~few).sum())
        gainer = int((gains / np.maximum(shares[0], NO_CHANGE)).argmax())
        possible = (self.groups[gainer], float(gains[gainer])) if judged > 1 else None
        if len(self.labels) == 1:
            kind = "one group"
        elif helped:
            kind = "more components" if enough else "trade" if hurt else "gain"
        elif judged < 2 or (gains > _MATTERS * shares[0] + NO_CHANGE).any():
            kind = "unclear"
        elif hurt or significant.any():
            kind = "no gain"
        else:
            kind = "no difference"
        numbers = {
            "n_components": r,
            "more_components": enough[0] if enough else None,
            "alternative": alternative,
            "significant": self._texts(significant),
            "helped": helped,
            "hurt": hurt,
            "possible_gain": possible,
            "largest_disparity": tuple(self.largest_disparity[[0, fair]].tolist()),
            "total_lost": tuple(self.total_lost[[0, fair]].tolist()),
            "not_judged": self._texts(few),
        }
        return Verdict(kind, numbers)

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
        low, high = self.worst_interval
        texts, every, clear = self.groups, range(len(self)), self.clear_change
        unfair = self.largest_disparity_group
        return {
            "method": list(self.methods),
            "components": list(self.dimensions),
            "worst group": [texts[i] for i in self.worst_group],
            "worst share lost": self.worst_lost.tolist(),
            "worst low": low.tolist(),
            "worst high": high.tolist(),
            "largest disparity": self.largest_disparity.tolist(),
            "share of variance": self.disparity.value[every, unfair].tolist(),
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
            f"fitted to all rows. Intervals ({100 * CONFIDENCE:.0f} %) hold for all groups of a "
            "method together. * is a clear difference from PCA; better and worse off are those. A "
            f"disparity is what a group loses beyond its own PCA with {self.dimensions[0]} "
            "components, in per cent of its variance; with more components it can be below 0. The "
            f"largest one is that of {self._unfairest()}."
        )
        rest = [left_out, note] if left_out else [note]
        return [str(self.verdict), "", self._method_table(), "", groups, "", *rest]

    def _unfairest(self) -> str:
        """Which group has the largest disparity, with PCA and with fair PCA."""
        unfair, fair = self.largest_disparity_group, self.methods.index(_FAIR)
        first, second = (_name(self.groups[unfair[i]]) for i in (0, fair))
        if first == second:
            return f"{first} with PCA and with fair PCA"
        return f"{first} with PCA and of {second} with fair PCA"

    def _percent(self, share: float) -> str:
        """A share in per cent, without the sign of a zero."""
        most = float(self.worst_lost[0])
        decimals = next(digits for least, digits in _DECIMALS if most >= least)
        text = f"{100.0 * share:.{decimals}f}"
        return text if float(text) else text.lstrip("-")

    def _with_reach(self, found: HeldOutEstimate, method: int, group: int) -> str:
        text, reach = self._percent(found.value[method, group]), found.reach[method, group]
        return text if np.isnan(reach) else f"{text} ± {self._percent(reach)}"

    def _method_table(self) -> TextTable:
        head = ["method,\ncomponents", "largest\n% lost"]
        head += [f"{100 * CONFIDENCE:.0f} %\ninterval", "largest\ndisparity, %"]
        head += ["total\n% lost", "better/\nworse off"]
        clear, unfair, percent = self.clear_change, self.largest_disparity_group, self._percent
        low, high = self.worst_interval
        body = [
            [
                f"{name}, {r}",
                percent(self.worst_lost[i]),
                "" if np.isnan(low[i]) else f"{percent(low[i])} to {percent(high[i])}",
                self._with_reach(self.disparity, i, unfair[i]),
                percent(self.total_lost[i]),
                f"{(clear[i] < 0).sum()}/{(clear[i] > 0).sum()}" if i else "",
            ]
            for i, (name, r) in enumerate(zip(self.methods, self.dimensions, strict=True))
        ]
        return TextTable(head, body)

    def _group_table(self) -> tuple[TextTable, str]:
        """The table of groups, and what is said of those that it leaves out."""
        head = ["group", "rows", f"PCA, {self.dimensions[0]}\n% lost"]
        head += [
            f"{name}, {r}\nchange"
            for name, r in zip(self.methods[1:], self.dimensions[1:], strict=True)
        ]
        shown, left_out = most_of(self.disparity.value[0])
        texts, clear, body = short_texts(self.groups), self.clear_change, []
        for i in shown:
            row = [texts[i], f"{self.count[i]:,}", self._with_reach(self.share_lost, 0, i)]
            for j in range(1, len(self)):
                row.append(self._with_reach(self.change, j, i) + ("*" if clear[j, i] else " "))
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
    """Say whether fair PCA is needed: what groups lose on held-out rows with it, and without.

    PCA is compared with PCA of one and two more components, with balanced PCA (`Balanced`), with
    fair PCA, and with the largest measure as small as can be (`MinMax`). The rows are divided into
    five folds, and a method that is fitted to four of them is judged on the fifth.

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
        What fair PCA minimises: see `FairPCA`.
    sample_weight : as for `FairPCA.fit`
        The weights of the rows; None with moments.
    groups, keep_sensitive, missing_labels : as for `FairPCA`
        What several sensitive columns make groups of, whether they stay among the features, and
        what is done with missing labels.

    Returns
    -------
    Comparison
        Print it; `Comparison.verdict` is the answer and `Comparison.plot` the picture.

    See Also
    --------
    fairpca.audit : Judges a reduction that is already in use.
    fairpca.metrics.held_out_losses : Held-out losses of one reduction for several dimensions.

    Notes
    -----
    A change is *clear*, and a disparity *significant*, where its interval excludes 0. The verdict
    is the first of these that holds:

    1. *one group*: there is a single group.
    2. *more components*: fair PCA clearly helps some groups, but with PCA of one or two more
       components no group loses more, by the estimates and up to one standard error.
    3. *trade*: it clearly helps some groups and clearly costs others.
    4. *gain*: it clearly helps some groups and clearly costs none.
    5. *unclear*: fewer than two groups have intervals, or by these it could lower what some group
       loses by more than a tenth.
    6. *no gain*: some group has a significant disparity with PCA, or clearly loses more with fair
       PCA than with PCA.
    7. *no difference*: none of these.

    The verdicts 3 and 4 name PCA of one or two more components too, where it clearly helps every
    group (by the estimate where there is no interval) and serves at least half of the groups as
    well as fair PCA does, by the rule of 2.

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
    PCA with 3 components serves every group at least as well as fair PCA with 2. If it has to be 2:
    fair PCA helps Female (71.9 → 70.2 % lost) and costs Male (76.5 → 77.9 % lost); the largest
    disparity falls by 37 %, the total loss rises by 0.34 %.
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
    grouped_data: GroupedData, n_components: int, criterion: Criterion, groups: str
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
        sums = HeldOutSums.of_folds(cells, groups, problem, methods)
    fair = [method.name for method in methods].index(_FAIR)
    return Comparison(
        methods=tuple(method.name for method in methods),
        dimensions=tuple(method.n_components for method in methods),
        labels=problem.moments.labels,
        count=problem.moments.count,
        share_lost=sums.estimate(sums.losses, 0.0, 1.0),
        change=sums.estimate(sums.losses - sums.losses[0]),
        beyond_fair=sums.estimate(sums.losses - sums.losses[fair]),
        disparity=sums.disparity(),
        total_lost=sums.total_lost,
        variance=sums.variance.sum(axis=0),
        group_names=problem.moments.group_names,
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
    chosen += [Method("PCA", r + more) for more in _MORE if r + more <= most]
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
        cls, cells: GroupMoments, groups: str, problem: Problem, methods: Sequence[Method]
    ) -> HeldOutSums:
        """Fit the methods to all folds but one, for each fold, and sum up what it loses."""
        folds = FoldProblems(cells, groups, problem, hold_out_large=True)
        if folds.not_held_out.any():
            raise ValueError(
                "compare holds out rows of all groups: take moments with folds=True, not 'needed'."
            )
        if not folds.numbers:
            raise ValueError("There are too few different rows to hold some of them out.")
        bases = []
        for fold in folds.numbers:
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
        self, sums: Array, least: float = -np.inf, most: float = np.inf
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


def _arrow(before: float, after: float) -> str:
    """Two shares in per cent, with as many decimals as their difference needs."""
    apart = 100.0 * abs(after - before)
    decimals = 1 if apart >= 0.2 else 2 if apart >= 0.02 else 3
    return f"{100.0 * before:.{decimals}f} → {100.0 * after:.{decimals}f}"


def _moves(before: float, after: float) -> str:
    """How a number changes, in per cent of it."""
    if not before > 0.0:
        return "is not above 0 with PCA"
    change = 100.0 * (after / before - 1.0)
    return f"{'falls' if change < 0.0 else 'rises'} by {abs(change):.2g} %"


def _name(group: str) -> str:
    """A group in a sentence."""
    text = short_text(group)
    return text if any(map(str.isalpha, text)) else f"group {text}"


def _named(changes: Sequence[tuple[str, float, float]]) -> str:
    """Some groups, with what they lose with PCA and with fair PCA."""
    texts = [f"{_name(name)} ({_arrow(*shares)} % lost)" for name, *shares in changes]
    return joined(texts, _MOST_NAMES)

"""Pictures, as Display classes in scikit-learn's manner; they need the extra ``fairpca[plot]``.

Each class holds the numbers of one picture and draws them with `plot`. Other looks are set on the
axes, `ax_`.
Colours are those of the report and can be told apart by colour-blind readers, markers differ as
well, and every group is shown with its number of rows. Names are drawn with the fonts of
matplotlib's ``rcParams["font.family"]``: add one for Chinese, say.
"""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairpca.group_table import GroupTable
from fairpca.inspection.compare import Comparison
from fairpca.inspection.pareto_front import ParetoFront
from fairpca.inspection.pipelines import find_reduction
from fairpca.text import group_name

__all__ = ["ComparisonDisplay", "DisparityDisplay", "FrontDisplay"]

PCA_COLOR, FAIR_COLOR, OWN_COLOR, INK = "#b04a00", "#0067a3", "#868f99", "#1b1f24"
"""One colour for one thing in every picture, and in the report (`report/templates/page.css`)."""

_WIDTH, _LEGEND = 7.5, 2.5
"""Inches of a picture without its legend, and of one beside it."""


_ROW = 0.8
"""The height of a group's row in a comparison, where 1 is the distance of two rows."""

_METHODS = {
    "balanced PCA": (OWN_COLOR, "^"),
    "fair PCA": (FAIR_COLOR, "D"),
    "min-max PCA": (INK, "v"),
}
"""Colour and marker of the methods of a comparison that are not PCA."""

_FAINT = "#9aa0a6"
"""Colour of what a group loses by itself in a comparison."""

_TITLE = 84
"""Letters on a line of the verdict above a comparison."""


@dataclass(eq=False)
class Display:
    """A picture on one pair of axes."""

    ax_: Any = field(init=False, default=None, repr=False)
    figure_: Any = field(init=False, default=None, repr=False)
    _is_own: bool = field(init=False, default=False, repr=False)

    def _on(self, ax: Any, height: float = 4.5) -> Any:
        """The axes to draw on: those that are given, or new ones."""
        self._is_own = ax is None
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError("Pictures need matplotlib: install `fairpca[plot]`.") from error
            _, ax = plt.subplots(figsize=(_WIDTH, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _add_legend(self, *, beside: bool = False) -> None:
        """A legend: in a figure of our own above the axes or beside them, else inside of them."""
        if not self._is_own:
            # Not where matplotlib finds room, as what is drawn next would not know of it.
            self.ax_.legend(loc="upper right", framealpha=0.7, fontsize="small")
        elif beside:
            self.figure_.set_figwidth(_WIDTH + _LEGEND)
            self.ax_.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        else:
            above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 3}
            self.ax_.legend(frameon=False, borderpad=0.2, **above)


@dataclass(eq=False)
class DisparityDisplay(Display):
    """What each group loses beyond its own PCA: with ordinary PCA, and with another reduction.

    In per cent of the group's variance.

    Parameters
    ----------
    table : GroupTable
        The numbers.
    name : str or None, default=None
        What the reduction is called; None is what the table calls it.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    See Also
    --------
    fairpca.GroupTable : Has the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.plotting import DisparityDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> fair = FairPCA(2).fit(X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> display = DisparityDisplay.from_estimator(fair)
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['a (100 rows)', 'b (200 rows)']
    """

    table: GroupTable
    name: str | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> DisparityDisplay:
        """Draw what each group loses with a fitted `FairPCA`, alone or in a pipeline."""
        reduction = find_reduction(estimator, "DisparityDisplay", ("transform",)).reduction
        check_is_fitted(reduction)
        if not hasattr(reduction, "group_table_"):
            raise TypeError(
                f"{type(reduction).__name__} has no table of groups: draw what audit returns, "
                "DisparityDisplay(audit(…)).plot()."
            )
        return cls(reduction.group_table_, "fair PCA").plot(ax=ax)

    def plot(self, *, ax: Any = None) -> DisparityDisplay:
        """Draw two bars for each group."""
        table = self.table
        ax = self._on(ax, height=1.2 + 0.6 * len(table.labels))
        places = np.arange(len(table.labels))
        for shift, values, color, name in (
            (-0.2, table.pca_disparity, PCA_COLOR, "ordinary PCA"),
            (0.2, table.disparity, FAIR_COLOR, self.name or table.name),
        ):
            shares = 100.0 * table.share_of(values)
            ax.barh(places + shift, shares, height=0.38, color=color, label=name)
        pairs = zip(table.labels, table.count, strict=True)
        ax.set_yticks(places, [_plain_text(i, table.group_names, n) for i, n in pairs])
        ax.set_ylim(len(places) - 0.4, -0.6)  # from above
        ax.set_xlabel("loss beyond own PCA (% of the group's variance)")
        self._add_legend()
        return self


@dataclass(eq=False)
class FrontDisplay(Display):
    """The exact trade-off between total loss and unfairness.

    What is kept is drawn without a minus sign. The largest disparity is drawn in per cent of the
    variance of the group that has it at the first point, other measures likewise.

    Parameters
    ----------
    front : ParetoFront
        The points, from ordinary PCA to the fairest.
    chosen : int or None, default=None
        A point to mark.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    See Also
    --------
    fairpca.pareto_front : Finds the front.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import pareto_front
    >>> from fairpca.plotting import FrontDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> front = pareto_front(X, sensitive_features=groups, n_components=2, n_points=5)
    >>> display = FrontDisplay(front, chosen=front.select(knee=True)).plot()
    >>> display.ax_.get_ylabel()
    'total loss above ordinary PCA (%)'
    """

    front: ParetoFront
    chosen: int | None = None

    def plot(self, *, ax: Any = None) -> FrontDisplay:
        """Draw the points as a line; ordinary PCA and the fairest subspace are named."""
        ax, front, problem = self._on(ax), self.front, self.front.problem
        measured, moments, worst = problem.goal.measured, problem.moments, front.worst_group[0]
        unit, scale = "squared units of X", 1.0
        if measured.relative:
            unit, scale = "% of its variance", 100.0
        elif front.over == "largest" and problem.traces[worst] > 0.0:
            name = _plain_text(moments.labels[worst], moments.group_names)
            unit, scale = f"% of {name}'s variance", 100.0 / problem.traces[worst]
        what = f"{front.worst_name} {'by' if measured.is_kept else 'of'} a group"
        if front.over == "spread":
            what = f"largest difference in {measured.noun} between two groups"
            unit = unit.replace("% of its", "% of their")
        levels, extra = scale * np.abs(front.unfairness), 100.0 * front.extra_loss
        ax.plot(levels, extra, color=FAIR_COLOR, marker=".")
        for place, color, marker, name in (
            (0, PCA_COLOR, "o", "ordinary PCA"),
            (len(levels) - 1, FAIR_COLOR, "s", "fairest subspace"),
            (self.chosen, INK, "D", "chosen"),
        ):
            if place is not None:
                point = levels[place], extra[place]
                ax.plot(*point, marker, color=color, label=name, markersize=9)
        ax.set_xlabel(f"{what} ({unit})")
        ax.set_ylabel("total loss above ordinary PCA (%)")
        self._add_legend()
        return self


@dataclass(eq=False)
class ComparisonDisplay(Display):
    """The share of its variance that each group loses on held-out rows, by method.

    PCA is a line through the row of its group, with its interval below it. The others are points,
    each with the interval of its difference from PCA, filled where that difference is clear. A grey
    line is what the group loses with its own PCA. The group with the largest disparity is on top.

    Parameters
    ----------
    comparison : Comparison
        The numbers.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    See Also
    --------
    fairpca.compare : Has the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import compare
    >>> from fairpca.plotting import ComparisonDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> found = compare(X, sensitive_features=["a"] * 100 + ["b"] * 200, n_components=2)
    >>> display = ComparisonDisplay(found).plot()
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['a (100 rows)', 'b (200 rows)']
    """

    comparison: Comparison

    def plot(self, *, ax: Any = None) -> ComparisonDisplay:
        """Draw a row for each group."""
        found = self.comparison
        k, m = len(found.labels), len(found)
        step, half = _ROW / (m + 1), _ROW / 2
        ax = self._on(ax, height=2.2 + (0.25 + 0.17 * m) * k)
        order = np.argsort(-found.disparity.value[0], kind="stable")
        lost, places = 100.0 * found.share_lost.value[:, order], np.arange(k)
        own = lost[0] - 100.0 * found.disparity.value[0, order]
        for at, color, name in (
            (lost[0], PCA_COLOR, f"PCA, {found.dimensions[0]} components, and its interval"),
            (own, _FAINT, "the group's own PCA"),
        ):
            width = {"linewidth": 2 if at is own else 1.5}
            ax.vlines(at, places - half, places + half, color=color, label=name, **width)
        for j in range(1, m + 1):
            # Last PCA itself, whose interval is not that of a difference.
            method, estimate = (j, found.change) if j < m else (0, found.share_lost)
            name, r = found.methods[method], found.dimensions[method]
            color, marker = _METHODS.get(name, (PCA_COLOR, "os"[j % 2 - 1]))
            clear = found.clear_change[method, order] != 0
            where = places - half + j * step
            reach = 100.0 * np.nan_to_num(estimate.reach[method, order])
            bars = {"color": color, "linestyle": "", "elinewidth": 1.2, "capsize": 2.5}
            if method == 0:
                ax.errorbar(lost[0], where, xerr=reach, **bars)
                continue
            ax.errorbar(lost[method], where, xerr=reach, **bars)
            label = f"PCA, {r} components" if name == "PCA" else name
            for some, face in ((clear, color), (~clear, "white")):
                ax.plot(
                    lost[method][some],
                    where[some],
                    linestyle="",
                    marker=marker,
                    color=color,
                    markerfacecolor=face,
                    clip_on=False,
                    label=label if face == color else "_",  # the legend shows the filled one
                )
        names = found.group_names
        shown = [_plain_text(found.labels[i], names, found.count[i]) for i in order]
        ax.set_yticks(places, shown)
        ax.set_ylim(k - 0.5, -0.5)  # from above
        ax.set_xlabel(
            "share of variance lost on held-out rows (%)\n"
            "bars: 95 % interval of the difference from PCA; filled: a clear difference"
        )
        ax.set_xlim(left=max(ax.get_xlim()[0], 0.0))
        ax.set_title(textwrap.fill(str(found.verdict), _TITLE), loc="left", fontsize="small")
        self._add_legend(beside=True)
        return self


def _plain_text(label: Hashable, names: Sequence[str] | None, count: int | None = None) -> str:
    """A label as plain text: short, on one line, with no formula in it; and its number of rows."""
    text = group_name(label, names).replace("$", r"\$")
    text = f" {text}" if text.startswith("_") else text  # which a legend would leave out
    return text if count is None else f"{text} ({count:,} rows)"

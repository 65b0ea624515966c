"""Curves and bars: losses by group, fronts, convergence and held-out losses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairpca._linalg.types import Array
from fairpca.fair_pca import FairPCA
from fairpca.group_table import GroupTable
from fairpca.inspection.audit import audit
from fairpca.inspection.compare import Comparison
from fairpca.inspection.front import ParetoFront
from fairpca.inspection.held_out import HeldOutLosses, held_out_losses
from fairpca.inspection.pipelines import find_reduction
from fairpca.plotting._style import (
    CHOSEN_COLOR,
    FAIR_COLOR,
    GROUP_COLORS,
    GROUP_MARKERS,
    INK,
    OWN_COLOR,
    PCA_COLOR,
    Display,
    Style,
    panels,
    styled,
    with_rows,
    wrapped,
)
from fairpca.validation import check_rows, check_whole_number

_TITLE = 32
"""Letters in a line of a panel's title: the narrowest panels have room for as many."""

_ROW = 0.8
"""The height of a group's row in a comparison, where 1 is the distance of two rows."""

_METHODS = {
    "balanced PCA": (OWN_COLOR, "^"),
    "fair PCA": (FAIR_COLOR, "D"),
    "min-max PCA": (INK, "v"),
}
"""Colour and marker of the methods of a comparison that are not PCA."""

_SHIFT = 0.06
"""How far, in dimensions, the points of two curves stand apart, so that both intervals are seen."""


@dataclass(eq=False)
class DisparityDisplay(Display):
    """What each group loses beyond its own PCA: with ordinary PCA, and with another reduction.

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
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
        bar_kw: Style = None,
    ) -> DisparityDisplay:
        """Draw what each group loses with a fitted reduction, alone or in a pipeline.

        Without rows it is the table of a `FairPCA`; with rows, that of any reduction, as `audit`
        makes it.
        """
        reduction = find_reduction(estimator, "DisparityDisplay").reduction
        check_is_fitted(reduction)
        name = type(reduction).__name__
        if X is not None:
            known = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
            display = cls(audit(estimator, X, **known, n_resamples=0), name)
        elif hasattr(reduction, "group_table_"):
            display = cls(reduction.group_table_, "fair PCA")
        else:
            raise TypeError(f"{name} has no table of groups: pass X and sensitive_features, too.")
        return display.plot(ax=ax, bar_kw=bar_kw)

    @classmethod
    def from_table(
        cls, table: GroupTable, *, ax: Any = None, bar_kw: Style = None
    ) -> DisparityDisplay:
        """Draw a table, such as `audit` returns."""
        return cls(table).plot(ax=ax, bar_kw=bar_kw)

    def plot(self, *, ax: Any = None, bar_kw: Style = None) -> DisparityDisplay:
        """Draw two bars for each group; `bar_kw` goes to matplotlib's ``barh``."""
        table = self.table
        ax = self._on(ax, height=1.2 + 0.6 * len(table.labels))
        places = np.arange(len(table.labels))
        for shift, values, color, name in (
            (-0.2, table.pca_disparity, PCA_COLOR, "ordinary PCA"),
            (0.2, table.disparity, FAIR_COLOR, self.name or table.name),
        ):
            defaults = {"height": 0.38, "color": color, "label": name}
            ax.barh(places + shift, values, **styled("Rectangle", defaults, bar_kw))
        pairs = zip(table.labels, table.count, strict=True)
        ax.set_yticks(places, [with_rows(*pair, table.group_names) for pair in pairs])
        ax.set_ylim(len(places) - 0.4, -0.6)  # from above
        ax.set_xlabel("loss beyond own PCA (squared units of X)")
        self._name_things()
        return self


@dataclass(eq=False)
class LossDisplay:
    """Reconstruction loss of each group by the number of dimensions.

    Parameters
    ----------
    dimensions : sequence of int
        The numbers of dimensions.
    tables : sequence of GroupTable
        The numbers for each.
    name : str, default="fair PCA"
        What the reduction is called.

    Attributes
    ----------
    axes_ : array of matplotlib Axes
        One for each group.
    figure_ : matplotlib Figure
        Their figure.

    See Also
    --------
    fairpca.plotting.HeldOutLossDisplay : The same on held-out rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.plotting import LossDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> display = LossDisplay.from_estimator(FairPCA(), X, sensitive_features=groups)
    >>> display.dimensions
    (1, 2, 3, 4)
    """

    dimensions: Sequence[int]
    tables: Sequence[GroupTable]
    name: str = "fair PCA"
    axes_: Any = field(init=False, default=None)
    figure_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        sensitive_features: Any,
        sample_weight: ArrayLike | None = None,
        dimensions: Sequence[int] | None = None,
        axes: Any = None,
        line_kw: Style = None,
    ) -> LossDisplay:
        """Fit copies of a reduction for several numbers of dimensions, all by default, and draw.

        It is a `FairPCA`, or any other with ``n_components`` and ``inverse_transform``; in a
        fitted pipeline, the rows go through the steps before it.
        """
        step = find_reduction(estimator, "LossDisplay")
        if "n_components" not in step.reduction.get_params():
            raise TypeError(f"{type(step.reduction).__name__} has no n_components to be varied.")
        rows = step.rows(X)
        if dimensions is None:
            dimensions = range(1, check_rows(rows).shape[1] + 1)
        for r in dimensions:
            check_whole_number("dimensions", r)
        known = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        tables = [_fitted_table(step.reduction, int(r), rows, known) for r in dimensions]
        fair = isinstance(step.reduction, FairPCA)
        name = "fair PCA" if fair else type(step.reduction).__name__
        return cls(tuple(dimensions), tables, name).plot(axes=axes, line_kw=line_kw)

    def plot(self, *, axes: Any = None, line_kw: Style = None) -> LossDisplay:
        """Draw one panel for each group; `line_kw` goes to matplotlib's ``plot``."""
        table = self.tables[0]
        pairs = zip(table.labels, table.count, strict=True)
        titles = [wrapped(with_rows(*pair, table.group_names), _TITLE) for pair in pairs]
        about = "dimensions", "loss per row (squared units of X)"
        self.figure_, self.axes_ = panels(axes, titles, *about)
        for i, ax in enumerate(self.axes_):
            for loss, color, style, marker, label in (
                ("pca_loss", PCA_COLOR, "-", "o", "ordinary PCA"),
                ("loss", FAIR_COLOR, "-", "s", self.name),
                ("own_loss", OWN_COLOR, ":", "", "own PCA"),
            ):
                values = [getattr(table, loss)[i] for table in self.tables]
                defaults = {"linestyle": style, "marker": marker, "color": color, "label": label}
                ax.plot(self.dimensions, values, **styled("Line2D", defaults, line_kw))
            ax.xaxis.get_major_locator().set_params(integer=True)
        for ax in self.axes_:  # once all are drawn, as they may share a scale
            ax.set_ylim(bottom=0)
        if axes is None:
            lines = self.axes_[0].get_legend_handles_labels()
            self.figure_.legend(*lines, loc="outside upper left", ncols=3, frameon=False)
        else:
            self.axes_[0].legend(frameon=False)
        return self


@dataclass(eq=False)
class FrontDisplay(Display):
    """The exact trade-off between total loss and unfairness.

    Parameters
    ----------
    unfairness, total_loss : arrays of shape (n_points,)
        The points, from ordinary PCA to the fairest.
    chosen : int or None, default=None
        A point to mark.
    name : str, default="largest disparity of a group"
        What the unfairness is.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    See Also
    --------
    fairpca.pareto_front : Finds the front.

    Examples
    --------
    >>> from fairpca.plotting import FrontDisplay
    >>> display = FrontDisplay([0.5, 0.2, 0.0], [10.0, 10.1, 10.5], chosen=1).plot()
    >>> display.ax_.get_ylabel()
    'total loss above ordinary PCA (%)'
    """

    unfairness: ArrayLike
    total_loss: ArrayLike
    chosen: int | None = None
    name: str = "largest disparity of a group"

    @classmethod
    def from_front(
        cls,
        front: ParetoFront,
        *,
        chosen: int | None = None,
        ax: Any = None,
        line_kw: Style = None,
    ) -> FrontDisplay:
        """Draw a `ParetoFront`; what is kept is drawn without a minus sign."""
        levels, kept = np.abs(front.unfairness), front.problem.goal.measured.is_kept
        name = f"{front.worst_name} {'by' if kept else 'of'} a group"
        if front.over == "spread":
            name = f"largest difference in {front[0].certificate.measure} between two groups"
        return cls(levels, front.total_loss, chosen, name).plot(ax=ax, line_kw=line_kw)

    def plot(self, *, ax: Any = None, line_kw: Style = None) -> FrontDisplay:
        """Draw the points as a line; ordinary PCA and the fairest subspace are named.

        `line_kw` goes to matplotlib's ``plot`` for the line.
        """
        ax = self._on(ax)
        levels, loss = np.asarray(self.unfairness, float), np.asarray(self.total_loss, float)
        extra = 100.0 * (loss - loss[0]) / (loss[0] if loss[0] > 0 else 1.0)
        defaults = {"color": FAIR_COLOR, "marker": "."}
        ax.plot(levels, extra, **styled("Line2D", defaults, line_kw))
        for place, color, marker, name in (
            (0, PCA_COLOR, "o", "ordinary PCA"),
            (len(levels) - 1, FAIR_COLOR, "s", "fairest subspace"),
            (self.chosen, CHOSEN_COLOR, "D", "chosen"),
        ):
            if place is not None:
                point = levels[place], extra[place]
                ax.plot(*point, marker, color=color, label=name, markersize=9)
        ax.set_xlabel(self.name)
        ax.set_ylabel("total loss above ordinary PCA (%)")
        self._name_things()
        return self


@dataclass(eq=False)
class ConvergenceDisplay(Display):
    """How a solver of many steps approached its end.

    Parameters
    ----------
    curves : dict of str to array
        What fell, by name.
    ylabel : str
        What it is.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    See Also
    --------
    fairpca.ParetoDescent : Records what is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.plotting import ConvergenceDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> fair = FairPCA(2, solver="pareto").fit(X, sensitive_features=groups)
    >>> ConvergenceDisplay.from_estimator(fair).ax_.get_ylabel()
    'norm of the common descent direction'
    """

    curves: dict[str, Array]
    ylabel: str

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, line_kw: Style = None
    ) -> ConvergenceDisplay:
        """Draw what the solver of a fitted `FairPCA`, alone or in a pipeline, recorded."""
        reduction = find_reduction(estimator, "ConvergenceDisplay").reduction
        check_is_fitted(reduction)
        if not hasattr(reduction, "solution_"):
            raise TypeError(f"{type(reduction).__name__} has no solver whose steps can be drawn.")
        solution = reduction.solution_
        if "runs" in solution.history:
            runs = solution.history["runs"]
            curves = {f"start {i + 1}": run.norms for i, run in enumerate(runs)}
            display = cls(curves, "norm of the common descent direction")
        elif "gaps" in solution.history:
            display = cls({"duality gap": solution.history["gaps"]}, "duality gap")
        else:
            raise ValueError(
                f"The solver {solution.solver!r} keeps no record of its steps; 'pareto' and 'mw' "
                "do."
            )
        return display.plot(ax=ax, line_kw=line_kw)

    def plot(self, *, ax: Any = None, line_kw: Style = None) -> ConvergenceDisplay:
        """Draw the curves on a logarithmic scale; `line_kw` goes to matplotlib's ``plot``."""
        ax = self._on(ax)
        for i, (name, values) in enumerate(self.curves.items()):
            positive = np.where(np.asarray(values) > 0, values, np.nan)  # zero has no logarithm
            steps, color = np.arange(1, len(positive) + 1), GROUP_COLORS[i % len(GROUP_COLORS)]
            dashes = ("-", "--", ":", "-.")[i // len(GROUP_COLORS) % 4]
            look = {"color": color, "linestyle": dashes, "label": name}
            ax.plot(steps, positive, **styled("Line2D", look, line_kw))
        ax.set(yscale="log", xlabel="step", ylabel=self.ylabel)
        if len(self.curves) > 1:
            self._name_groups()
        return self


@dataclass(eq=False)
class HeldOutLossDisplay(Display):
    """What the worst-off group loses on held-out rows, by the number of dimensions.

    The marker of a point says which group that is. Intervals allow for the group having been
    picked: see `fairpca.metrics.held_out_losses`.

    Parameters
    ----------
    losses : HeldOutLosses
        The numbers.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    See Also
    --------
    fairpca.metrics.held_out_losses : Has the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.plotting import HeldOutLossDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> display = HeldOutLossDisplay.from_estimator(
    ...     FairPCA(criterion="minmax"), X, sensitive_features=groups, dimensions=range(1, 4)
    ... )
    >>> display.losses.reduction.worst.round(2)
    array([4.11, 2.52, 1.55])
    """

    losses: HeldOutLosses

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any,
        dimensions: Iterable[int],
        sample_weight: ArrayLike | None = None,
        cv: Any = 5,
        measure: str | None = None,
        relative: bool | None = None,
        random_state: int | None = None,
        ax: Any = None,
        line_kw: Style = None,
    ) -> HeldOutLossDisplay:
        """Cross-validate as `fairpca.metrics.held_out_losses` does, and draw."""
        losses = held_out_losses(
            estimator,
            X,
            y,
            sensitive_features=sensitive_features,
            dimensions=dimensions,
            sample_weight=sample_weight,
            cv=cv,
            measure=measure,
            relative=relative,
            random_state=random_state,
        )
        return cls(losses).plot(ax=ax, line_kw=line_kw)

    def plot(self, *, ax: Any = None, line_kw: Style = None) -> HeldOutLossDisplay:
        """Draw two curves with intervals; `line_kw` goes to matplotlib's ``errorbar``."""
        ax, losses = self._on(ax), self.losses
        worst: set[int] = set()
        handles = []
        ours = "fair PCA" if losses.name == "fair" else losses.name
        for curve, shift, color, name in (
            (losses.pca, -_SHIFT, PCA_COLOR, "ordinary PCA"),
            (losses.reduction, _SHIFT, FAIR_COLOR, ours),
        ):
            low, high = curve.worst_interval
            places = np.array(losses.dimensions) + shift
            style = styled("Line2D", {"color": color, "label": name}, line_kw)
            ends = np.maximum([curve.worst - low, high - curve.worst], 0.0)
            handles.append(ax.errorbar(places, curve.worst, yerr=ends, capsize=3, **style))
            for group in np.unique(curve.worst_group).tolist():
                here = curve.worst_group == group
                marker = GROUP_MARKERS[group % len(GROUP_MARKERS)]
                points = {"linestyle": "", "marker": marker, "color": style["color"]}
                ax.plot(places[here], curve.worst[here], **points)
                worst.add(group)
        for group in sorted(worst):  # what the markers mean, in the legend alone
            marker = GROUP_MARKERS[group % len(GROUP_MARKERS)]
            name = with_rows(losses.groups[group], losses.count[group])
            handles += ax.plot([], [], linestyle="", marker=marker, color=OWN_COLOR, label=name)
        ax.set_ylim(bottom=min(ax.get_ylim()[0], 0.0) if losses.measure == "disparity" else 0.0)
        ax.xaxis.get_major_locator().set_params(integer=True)
        unit = "share of its variance" if losses.relative else "squared units of X"
        ax.set(xlabel="dimensions", ylabel=f"worst-off group's held-out {losses.measure} ({unit})")
        self._name_groups(handles=handles)
        return self


@dataclass(eq=False)
class ComparisonDisplay(Display):
    """The share of its variance that each group loses on held-out rows, by method.

    PCA is a line with a band, its interval. The others are points, each with the interval of its
    difference from PCA: where that does not reach the line, the difference is clear.

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
    >>> display = ComparisonDisplay.from_comparison(found)
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['a (100 rows)', 'b (200 rows)']
    """

    comparison: Comparison

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, *, ax: Any = None, point_kw: Style = None
    ) -> ComparisonDisplay:
        """Draw what `fairpca.compare` returns."""
        return cls(comparison).plot(ax=ax, point_kw=point_kw)

    def plot(self, *, ax: Any = None, point_kw: Style = None) -> ComparisonDisplay:
        """Draw a row for each group; `point_kw` goes to matplotlib's ``errorbar``."""
        found = self.comparison
        k, others = len(found.labels), len(found) - 1
        step = _ROW / (others + 1)
        ax = self._on(ax, height=1.6 + (0.25 + 0.17 * others) * k)
        lost, places = 100.0 * found.share_lost.value, np.arange(k)
        low, high = 100.0 * found.share_lost.low[0], 100.0 * found.share_lost.high[0]
        half = np.full(k, _ROW / 2)
        band = {"color": PCA_COLOR, "alpha": 0.15, "linewidth": 0}
        ax.barh(places, high - low, 2 * half, low, **band)
        name = f"PCA, {found.dimensions[0]} components,\nand its interval"
        ax.vlines(lost[0], places - half, places + half, color=PCA_COLOR, linewidth=2, label=name)
        for j in range(1, others + 1):
            name, r = found.methods[j], found.dimensions[j]
            label = f"PCA, {r} components" if name == "PCA" else name
            color, marker = _METHODS.get(name, (PCA_COLOR, "os"[j % 2 - 1]))
            reach = 100.0 * np.nan_to_num(found.change.reach[j])
            shifted = places - half + j * step
            defaults = {
                "linestyle": "",
                "marker": marker,
                "color": color,
                "markerfacecolor": "white" if name == "PCA" else color,
                "label": label,
            }
            style = styled("Line2D", defaults, point_kw)
            ax.errorbar(lost[j], shifted, xerr=reach, elinewidth=1.2, capsize=2.5, **style)
        pairs = zip(found.labels, found.count.tolist(), strict=True)
        ax.set_yticks(places, [with_rows(*pair, found.group_names) for pair in pairs])
        ax.set_ylim(k - 0.5, -0.5)  # from above
        ax.set_xlabel(
            "share of variance lost on held-out rows (%)\n"
            "bars: 95 % interval of the difference from PCA, the line"
        )
        ax.set_xlim(left=max(ax.get_xlim()[0], 0.0))
        self._name_groups()
        return self


def _fitted_table(
    reduction: Any, n_components: int, rows: Any, known: dict[str, Any]
) -> GroupTable:
    """What the groups lose with a copy of a reduction, fitted to the rows."""
    copy = clone(reduction).set_params(n_components=n_components)
    copy.fit(rows, **{name: known[name] for name in known if has_fit_parameter(copy, name)})
    if hasattr(copy, "group_table_"):
        table: GroupTable = copy.group_table_
        return table
    return audit(copy, rows, **known, n_resamples=0)

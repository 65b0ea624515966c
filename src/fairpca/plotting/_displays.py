"""Curves and bars: the displays of losses by group, of a front and of convergence."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_rows, check_whole_number
from fairpca._rows.text import group_name
from fairpca.table import GroupTable

PCA_COLOR, FAIR_COLOR, OWN_COLOR, CHOSEN_COLOR = "#000000", "#0072B2", "#777777", "#D55E00"
"""One colour for one thing in every picture."""

GROUP_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


@dataclass(eq=False)
class Display:
    """A picture on one pair of axes."""

    ax_: Any = field(init=False, default=None, repr=False)
    figure_: Any = field(init=False, default=None, repr=False)

    def _on(self, ax: Any, height: float = 4.5) -> Any:
        """The axes to draw on: those that are given, or new ones."""
        if ax is None:
            _, ax = _pyplot().subplots(figsize=(7.5, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


@dataclass(eq=False)
class DisparityDisplay(Display):
    """What each group loses beyond its own PCA: with ordinary PCA, and with the fair subspace.

    Parameters
    ----------
    table : GroupTable
        The numbers.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

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

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> DisparityDisplay:
        """Draw the table of a fitted `FairPCA`."""
        check_is_fitted(estimator)
        if not hasattr(estimator, "group_table_"):
            raise TypeError(
                f"{type(estimator).__name__} has no table of groups: draw "
                "DisparityDisplay.from_table(audit(...)) instead."
            )
        return cls(estimator.group_table_).plot(ax=ax)

    @classmethod
    def from_table(cls, table: GroupTable, *, ax: Any = None) -> DisparityDisplay:
        """Draw a table, such as `audit` returns."""
        return cls(table).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> DisparityDisplay:
        """Draw two bars for each group."""
        table = self.table
        ax = self._on(ax, height=1.2 + 0.6 * len(table.labels))
        places = np.arange(len(table.labels))
        for shift, values, color, name in (
            (-0.2, table.pca_disparity, PCA_COLOR, "ordinary PCA"),
            (0.2, table.disparity, FAIR_COLOR, table.name),
        ):
            ax.barh(places + shift, values, height=0.38, color=color, label=name)
        ax.set_yticks(places, list(map(with_rows, table.labels, table.count)))
        ax.invert_yaxis()
        ax.set_xlabel("loss beyond own PCA (squared units of X)")
        ax.legend(frameon=False)
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

    Attributes
    ----------
    axes_ : array of matplotlib Axes
        One for each group.
    figure_ : matplotlib Figure
        Their figure.

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
    ) -> LossDisplay:
        """Fit copies of a `FairPCA` for several numbers of dimensions, all by default, and draw."""
        if dimensions is None:
            dimensions = range(1, check_rows(X).shape[1] + 1)
        for r in dimensions:
            check_whole_number("dimensions", r)
        copies = (clone(estimator).set_params(n_components=int(r)) for r in dimensions)
        known = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        tables = [copy.fit(X, **known).group_table_ for copy in copies]
        return cls(tuple(dimensions), tables).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> LossDisplay:
        """Draw one panel for each group."""
        labels, counts = self.tables[0].labels, self.tables[0].count
        self.figure_, self.axes_ = _panels(axes, len(labels))
        for i, ax in enumerate(self.axes_):
            for loss, color, style, name in (
                ("pca_loss", PCA_COLOR, "o-", "ordinary PCA"),
                ("loss", FAIR_COLOR, "s-", "fair PCA"),
                ("own_loss", OWN_COLOR, ":", "own PCA"),
            ):
                values = [getattr(table, loss)[i] for table in self.tables]
                ax.plot(self.dimensions, values, style, color=color, label=name)
            ax.set(xlabel="dimensions", ylabel="loss per row (squared units of X)")
            ax.set_title(with_rows(labels[i], counts[i]))
            ax.set_ylim(bottom=0)
        self.axes_[0].legend(frameon=False)
        return self


@dataclass(eq=False)
class FrontDisplay(Display):
    """The exact trade-off between total loss and spread.

    Parameters
    ----------
    spread, total_loss : arrays of shape (n_points,)
        The points, from ordinary PCA to the fairest.
    chosen : int or None, default=None
        A point to mark.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from fairpca.plotting import FrontDisplay
    >>> display = FrontDisplay([0.5, 0.2, 0.0], [10.0, 10.1, 10.5], chosen=1).plot()
    >>> display.ax_.get_ylabel()
    'total loss above ordinary PCA (%)'
    """

    spread: ArrayLike
    total_loss: ArrayLike
    chosen: int | None = None

    @classmethod
    def from_front(cls, front: Any, *, chosen: int | None = None, ax: Any = None) -> FrontDisplay:
        """Draw a `ParetoFront`."""
        return cls(front.spread, front.total_loss, chosen).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> FrontDisplay:
        """Draw the points as a line; ordinary PCA and the fairest subspace are named."""
        ax = self._on(ax)
        spread, loss = np.asarray(self.spread, float), np.asarray(self.total_loss, float)
        extra = 100.0 * (loss - loss[0]) / (loss[0] if loss[0] > 0 else 1.0)
        ax.plot(spread, extra, color=FAIR_COLOR, marker=".")
        for place, color, marker, name in (
            (0, PCA_COLOR, "o", "ordinary PCA"),
            (len(spread) - 1, FAIR_COLOR, "s", "fairest subspace"),
            (self.chosen, CHOSEN_COLOR, "D", "chosen"),
        ):
            if place is not None:
                point = spread[place], extra[place]
                ax.plot(*point, marker, color=color, label=name, markersize=9)
        ax.set_xlabel("largest difference between two groups' disparities")
        ax.set_ylabel("total loss above ordinary PCA (%)")
        ax.legend(frameon=False)
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
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ConvergenceDisplay:
        """Draw what the solver of a fitted `FairPCA` recorded."""
        check_is_fitted(estimator, "solution_")
        solution = estimator.solution_
        if "runs" in solution.history:
            runs = solution.history["runs"]
            curves = {f"start {i + 1}": run.norms for i, run in enumerate(runs)}
            return cls(curves, "norm of the common descent direction").plot(ax=ax)
        if "gaps" in solution.history:
            return cls({"duality gap": solution.history["gaps"]}, "duality gap").plot(ax=ax)
        raise ValueError(
            f"The solver {solution.solver!r} keeps no record of its steps; 'pareto' and 'mw' do."
        )

    def plot(self, *, ax: Any = None) -> ConvergenceDisplay:
        """Draw the curves on a logarithmic scale."""
        ax = self._on(ax)
        for i, (name, values) in enumerate(self.curves.items()):
            positive = np.where(np.asarray(values) > 0, values, np.nan)  # zero has no logarithm
            steps, color = np.arange(1, len(positive) + 1), GROUP_COLORS[i % len(GROUP_COLORS)]
            ax.plot(steps, positive, color=color, label=name)
        ax.set(yscale="log", xlabel="step", ylabel=self.ylabel)
        if 1 < len(self.curves) <= len(GROUP_COLORS):
            ax.legend(frameon=False)
        return self


def _panels(axes: Any, n: int) -> tuple[Any, Any]:
    """A figure and n of its axes: those that are given, or new ones."""
    if axes is not None:
        given = np.ravel(np.asarray(axes, dtype=object))
        if len(given) != n:
            raise ValueError(f"axes must be one for each of the {n} groups, got {len(given)}.")
        return given[0].figure, given
    columns = min(n, 3)
    rows = -(-n // columns)
    size = (4.5 * columns, 3.6 * rows)
    figure, made = _pyplot().subplots(
        rows, columns, figsize=size, squeeze=False, layout="constrained"
    )
    for ax in made.ravel()[n:]:
        ax.set_visible(False)
    return figure, made.ravel()[:n]


def plain_text(label: Hashable) -> str:
    """A label as plain text: short, on one line, and with no formula in it."""
    return group_name(label).replace("$", r"\$")


def with_rows(label: Hashable, count: int) -> str:
    """A group and its number of rows."""
    return f"{plain_text(label)} ({count:,} rows)"


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: install `fairpca[plot]`.") from error
    return plt

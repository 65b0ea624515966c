"""Pictures, as Display classes in scikit-learn's manner; they need the extra ``fairpca[plot]``.

Each class holds the numbers of one picture, is made by a ``from_...`` method that also draws it,
and draws itself again with `plot`. Colours can be told apart by colour-blind readers, markers
differ as well, and every group is shown with its number of rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_rows, check_whole_number
from fairpca._rows.groups import encode_groups
from fairpca._rows.text import group_name
from fairpca.table import GroupTable

__all__ = [
    "BiplotDisplay",
    "ConvergenceDisplay",
    "DisparityDisplay",
    "FrontDisplay",
    "LossDisplay",
]

PCA_COLOR, FAIR_COLOR, OWN_COLOR = "#000000", "#0072B2", "#777777"
"""One colour for one thing in every picture."""

_GROUP_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_GROUP_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*")


@dataclass(eq=False)
class DisparityDisplay:
    """What each group loses beyond its own PCA: with ordinary PCA, and with the fair subspace.

    Parameters
    ----------
    table : GroupTable
        The numbers.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of these axes.

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
    ax_: Any = dataclass_field(init=False, default=None)
    figure_: Any = dataclass_field(init=False, default=None)

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
        self.figure_, self.ax_ = _axes(ax, height=1.2 + 0.6 * len(self.table.labels))
        places = np.arange(len(self.table.labels))
        for shift, values, color, name in (
            (-0.2, self.table.pca_disparity, PCA_COLOR, "ordinary PCA"),
            (0.2, self.table.disparity, FAIR_COLOR, self.table.name),
        ):
            self.ax_.barh(places + shift, values, height=0.38, color=color, label=name)
        names = [
            f"{_text(label)} ({count:,} rows)"
            for label, count in zip(self.table.labels, self.table.count, strict=True)
        ]
        self.ax_.set_yticks(places, names)
        self.ax_.invert_yaxis()
        self.ax_.set_xlabel("loss beyond own PCA (squared units of X)")
        self.ax_.legend(frameon=False)
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
    axes_: Any = dataclass_field(init=False, default=None)
    figure_: Any = dataclass_field(init=False, default=None)

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
        tables = [
            clone(estimator)
            .set_params(n_components=int(r))
            .fit(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
            .group_table_
            for r in dimensions
        ]
        return cls(tuple(dimensions), tables).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> LossDisplay:
        """Draw one panel for each group."""
        labels, counts = self.tables[0].labels, self.tables[0].count
        self.figure_, self.axes_ = _panels(axes, len(labels))
        for i, ax in enumerate(self.axes_):
            for values, color, line, marker, name in (
                ([t.pca_loss[i] for t in self.tables], PCA_COLOR, "-", "o", "ordinary PCA"),
                ([t.loss[i] for t in self.tables], FAIR_COLOR, "-", "s", "fair PCA"),
                ([t.own_loss[i] for t in self.tables], OWN_COLOR, ":", "", "own PCA"),
            ):
                ax.plot(
                    self.dimensions, values, color=color, linestyle=line, marker=marker, label=name
                )
            ax.set_title(f"{_text(labels[i])} ({counts[i]:,} rows)")
            ax.set_xlabel("dimensions")
            ax.set_ylabel("loss per row (squared units of X)")
            ax.set_ylim(bottom=0)
        self.axes_[0].legend(frameon=False)
        return self


@dataclass(eq=False)
class FrontDisplay:
    """The exact trade-off between total loss and spread.

    Parameters
    ----------
    spread, total_loss : arrays of shape (n_points,)
        The points, from ordinary PCA to the fairest.
    chosen : int or None, default=None
        A point to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of these axes.

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
    ax_: Any = dataclass_field(init=False, default=None)
    figure_: Any = dataclass_field(init=False, default=None)

    @classmethod
    def from_front(cls, front: Any, *, chosen: int | None = None, ax: Any = None) -> FrontDisplay:
        """Draw a `ParetoFront`."""
        return cls(front.spread, front.total_loss, chosen).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> FrontDisplay:
        """Draw the points as a line; ordinary PCA and the fairest subspace are named."""
        self.figure_, self.ax_ = _axes(ax)
        spread, loss = np.asarray(self.spread, float), np.asarray(self.total_loss, float)
        least = loss[0] if loss[0] > 0 else 1.0
        extra = 100.0 * (loss - loss[0]) / least
        self.ax_.plot(spread, extra, color=FAIR_COLOR, marker=".")
        for place, color, marker, name in (
            (0, PCA_COLOR, "o", "ordinary PCA"),
            (len(spread) - 1, FAIR_COLOR, "s", "fairest subspace"),
            (self.chosen, "#D55E00", "D", "chosen"),
        ):
            if place is not None:
                self.ax_.plot(
                    spread[place], extra[place], marker, color=color, label=name, markersize=9
                )
        self.ax_.set_xlabel("largest difference between two groups' disparities")
        self.ax_.set_ylabel("total loss above ordinary PCA (%)")
        self.ax_.legend(frameon=False)
        return self


@dataclass(eq=False)
class ConvergenceDisplay:
    """How a solver of many steps approached its end.

    Parameters
    ----------
    curves : dict of str to array
        What fell, by name.
    ylabel : str
        What it is.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of these axes.

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
    ax_: Any = dataclass_field(init=False, default=None)
    figure_: Any = dataclass_field(init=False, default=None)

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
        self.figure_, self.ax_ = _axes(ax)
        for i, (name, values) in enumerate(self.curves.items()):
            shown = np.where(np.asarray(values) > 0, values, np.nan)  # zero has no logarithm
            color = _GROUP_COLORS[i % len(_GROUP_COLORS)]
            self.ax_.plot(np.arange(1, len(shown) + 1), shown, color=color, label=name)
        self.ax_.set_yscale("log")
        self.ax_.set_xlabel("step")
        self.ax_.set_ylabel(self.ylabel)
        if 1 < len(self.curves) <= len(_GROUP_COLORS):
            self.ax_.legend(frameon=False)
        return self


@dataclass(eq=False)
class BiplotDisplay:
    """Rows on two components, by group, and the columns that the components are made of.

    Parameters
    ----------
    scores : array of shape (n, 2)
        Rows on the two components.
    codes : integer array of shape (n,)
        The group of each row.
    labels : sequence of length k
        The groups.
    counts : sequence of length k
        Rows of each group, of which only some may be drawn.
    loadings : array of shape (d, 2)
        Entries of the two components.
    columns : sequence of d str
        Names of the columns.
    components : tuple of two int
        Which components these are, from 0.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of these axes.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.plotting import BiplotDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> fair = FairPCA(2).fit(X, sensitive_features=groups)
    >>> display = BiplotDisplay.from_estimator(fair, X, sensitive_features=groups)
    >>> display.ax_.get_xlabel()[:11]
    'component 1'
    """

    scores: Array
    codes: NDArray[np.integer[Any]]
    labels: Sequence[Hashable]
    counts: Sequence[int]
    loadings: Array
    columns: Sequence[str]
    components: tuple[int, int] = (0, 1)
    shares: tuple[float, float] | None = None
    ax_: Any = dataclass_field(init=False, default=None)
    figure_: Any = dataclass_field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        sensitive_features: Any,
        components: tuple[int, int] = (0, 1),
        max_points: int = 2000,
        n_arrows: int = 8,
        random_state: int | None = None,
        ax: Any = None,
    ) -> BiplotDisplay:
        """Project rows with a fitted reduction and draw them.

        Of more than `max_points` rows a sample is drawn, with as many rows of every group as far as
        it has them, so that small groups are seen.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "components_"):
            raise TypeError(f"{type(estimator).__name__} has no components to draw.")
        check_whole_number("max_points", max_points)
        n = len(estimator.components_)
        if n < 2:
            raise ValueError("A biplot needs two components, and there is one.")
        whole = all(isinstance(c, Integral) and 0 <= c < n for c in components)
        if len(components) != 2 or not whole:
            raise ValueError(
                f"components must be two integers from 0 to {n - 1}, got {components!r}."
            )
        scores = np.asarray(estimator.transform(X), dtype=float)[:, list(components)]
        labels, codes = encode_groups(sensitive_features, len(scores))
        counts = np.bincount(codes, minlength=len(labels))
        if len(scores) > max_points:
            drawn = _sample(codes, max(max_points // len(labels), 1), random_state)
            scores, codes = scores[drawn], codes[drawn]
        loadings = estimator.components_[list(components)].T
        columns = getattr(estimator, "feature_names_in_", None)
        if columns is None:
            columns = [f"column {j}" for j in range(len(loadings))]
        ratio = estimator.explained_variance_ratio_
        shares = (float(ratio[components[0]]), float(ratio[components[1]]))
        chosen = (components[0], components[1])
        display = cls(scores, codes, labels, counts.tolist(), loadings, columns, chosen, shares)
        return display.plot(n_arrows=n_arrows, ax=ax)

    def plot(self, *, n_arrows: int = 8, ax: Any = None) -> BiplotDisplay:
        """Draw the rows and the longest arrows."""
        self.figure_, self.ax_ = _axes(ax, height=5.5)
        for i in np.argsort(-np.asarray(self.counts), kind="stable"):  # small groups on top
            label, count = self.labels[i], self.counts[i]
            rows = self.scores[self.codes == i]
            self.ax_.scatter(
                rows[:, 0],
                rows[:, 1],
                s=14,
                alpha=0.5,
                linewidths=0,
                color=_GROUP_COLORS[i % len(_GROUP_COLORS)],
                marker=_GROUP_MARKERS[i % len(_GROUP_MARKERS)],
                label=f"{_text(label)} ({count:,} rows)",
            )
        spans = np.abs(self.scores).max(axis=0, initial=0.0)
        lengths = np.linalg.norm(self.loadings, axis=1)
        longest = np.abs(self.loadings).max(axis=0, initial=0.0)
        reach = float((spans / np.where(longest > 0, longest, 1.0)).min()) or 1.0
        for j in np.argsort(-lengths, kind="stable")[:n_arrows]:
            end = self.loadings[j] * reach
            self.ax_.annotate(
                "", end, (0.0, 0.0), arrowprops={"arrowstyle": "->", "color": "#444444"}
            )
            self.ax_.text(
                *(1.08 * end),
                _text(self.columns[j]),
                ha="center",
                va="center",
                bbox={"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "pad": 1},
            )
            self.ax_.update_datalim([1.15 * end])
        self.ax_.autoscale_view()
        for axis, component, place in (
            (self.ax_.xaxis, self.components[0], 0),
            (self.ax_.yaxis, self.components[1], 1),
        ):
            name = f"component {component + 1}"
            if self.shares is not None:
                name += f" ({100 * self.shares[place]:.0f} % of variance)"
            axis.set_label_text(name)
        self.ax_.legend(frameon=False, markerscale=2)
        return self


def _sample(codes: NDArray[np.integer[Any]], most: int, seed: int | None) -> NDArray[np.intp]:
    """Positions of at most so many rows of each group."""
    rng = np.random.default_rng(seed or 0)
    parts = []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        parts.append(rng.choice(rows, min(most, len(rows)), replace=False))
    return np.sort(np.concatenate(parts))


def _text(label: Hashable) -> str:
    """A label as plain text: short, on one line, and with no formula in it."""
    return group_name(label).replace("$", r"\$")


def _axes(ax: Any, height: float = 4.5) -> tuple[Any, Any]:
    if ax is not None:
        return ax.figure, ax
    figure, axes = _pyplot().subplots(figsize=(7.5, height), layout="constrained")
    return figure, axes


def _panels(axes: Any, n: int) -> tuple[Any, Any]:
    if axes is not None:
        given = np.ravel(np.asarray(axes, dtype=object))
        if len(given) != n:
            raise ValueError(f"axes must be one for each of the {n} groups, got {len(given)}.")
        return given[0].figure, given
    columns = min(n, 3)
    figure, made = _pyplot().subplots(
        -(-n // columns),
        columns,
        figsize=(4.5 * columns, 3.6 * -(-n // columns)),
        squeeze=False,
        layout="constrained",
    )
    for ax in made.ravel()[n:]:
        ax.set_visible(False)
    return figure, made.ravel()[:n]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: install `fairpca[plot]`.") from error
    return plt

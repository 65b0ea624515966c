"""Rows and columns on two components: BiplotDisplay."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.types import Array
from fairpca.groups import Codes, chosen_columns, encode_groups, named_columns
from fairpca.inspection.pipelines import find_reduction
from fairpca.plotting._style import (
    GROUP_COLORS,
    GROUP_MARKERS,
    Display,
    Style,
    plain_text,
    styled,
    with_rows,
    wrapped,
)
from fairpca.text import label_text
from fairpca.validation import check_same_index, check_whole_number

_GAP = 3.0
"""Points between the end of an arrow and its label."""

_LABEL = 22
"""Letters in a line of a label, so that a long name does not need half of the picture."""

_ROUNDS = 4
"""How often labels are placed: each round shows how much room they need, and makes it."""

_REACH = 12
"""How far up or down a label may go to find a place, in halves of its height."""

_HIDDEN = 0.5
"""Square pixels of other things that a label may hide: less is rounding."""


@dataclass(eq=False)
class BiplotDisplay(Display):
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
    variance_shares : sequence of two float, default=None
        Their shares of the variance.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    See Also
    --------
    fairpca.plotting.DisparityDisplay : What the groups lose.

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
    codes: Codes
    labels: Sequence[Hashable]
    counts: Sequence[int]
    loadings: Array
    columns: Sequence[str]
    components: tuple[int, int] = (0, 1)
    variance_shares: Sequence[float] | None = None

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
        scatter_kw: Style = None,
        arrow_kw: Style = None,
        text_kw: Style = None,
    ) -> BiplotDisplay:
        """Project rows with a fitted reduction that has ``components_`` and draw them.

        In a pipeline it is the last step that has them; rows go through the steps before it.

        Of more than `max_points` rows a sample is drawn, with as many rows of every group as far as
        it has them, so that small groups are seen.
        """
        check_is_fitted(estimator)
        step = find_reduction(estimator, "BiplotDisplay", ("transform", "components_"))
        reduction = step.reduction
        check_whole_number("max_points", max_points)
        n = len(reduction.components_)
        if n < 2:
            raise ValueError("A biplot needs two components, and there is one.")
        whole = all(isinstance(c, Integral) and 0 <= c < n for c in components)
        if not whole or np.shape(components) != (2,):
            raise ValueError(
                f"components must be two integers from 0 to {n - 1}, got {components!r}."
            )
        check_same_index(X, sensitive_features=sensitive_features)
        names = named_columns(X, sensitive_features)
        given = chosen_columns(X, names) if names else sensitive_features
        scores = np.asarray(reduction.transform(step.rows(X)), dtype=float)[:, list(components)]
        groups = encode_groups(given, len(scores))
        labels, codes = groups.labels, groups.codes
        counts = np.bincount(codes, minlength=len(labels))
        if len(scores) > max_points:
            drawn = _sample(codes, max(max_points // len(labels), 1), random_state)
            scores, codes = scores[drawn], codes[drawn]
        loadings = reduction.components_[list(components)].T
        columns = step.columns or [f"column {j}" for j in range(len(loadings))]
        ratio = getattr(reduction, "explained_variance_ratio_", None)
        shares = None if ratio is None else [float(ratio[c]) for c in components]
        texts = [label_text(label, groups.names) for label in labels]
        display = cls(scores, codes, texts, counts.tolist(), loadings, columns, components, shares)
        styles = {"scatter_kw": scatter_kw, "arrow_kw": arrow_kw, "text_kw": text_kw}
        return display.plot(n_arrows=n_arrows, ax=ax, **styles)

    def plot(
        self,
        *,
        n_arrows: int = 8,
        ax: Any = None,
        scatter_kw: Style = None,
        arrow_kw: Style = None,
        text_kw: Style = None,
    ) -> BiplotDisplay:
        """Draw the rows and the longest arrows, with labels that do not hide one another.

        `scatter_kw` goes to matplotlib's ``scatter``, `arrow_kw` into the ``arrowprops`` of its
        ``annotate``, and `text_kw` to its ``text``.
        """
        ax = self._on(ax, height=5.5)
        for i in np.argsort(-np.asarray(self.counts), kind="stable"):  # small groups on top
            color = GROUP_COLORS[i % len(GROUP_COLORS)]
            marker = GROUP_MARKERS[i % len(GROUP_MARKERS)]
            style = {"s": 14, "alpha": 0.5, "linewidths": 0, "color": color, "marker": marker}
            style["label"] = with_rows(self.labels[i], self.counts[i])
            rows = self.scores[self.codes == i].T
            ax.scatter(*rows, **styled("PathCollection", style, scatter_kw))
        spans = np.abs(self.scores).max(axis=0, initial=0.0)
        longest = np.abs(self.loadings).max(axis=0, initial=0.0)
        reach = float((spans / np.where(longest > 0, longest, 1.0)).min()) or 1.0
        lengths = np.linalg.norm(self.loadings, axis=1)
        longest_first = np.argsort(-lengths, kind="stable")[:n_arrows]
        arrows = {"arrowstyle": "->", "color": "#444444"} | dict(arrow_kw or {})
        box = {"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "pad": 1}
        words = styled("Text", {"ha": "center", "va": "center", "bbox": box}, text_kw)
        ends, texts = self.loadings[longest_first] * reach, []
        for j, end in zip(longest_first, ends, strict=True):
            ax.annotate("", end, (0.0, 0.0), arrowprops=arrows)
            name = wrapped(plain_text(self.columns[j]), _LABEL)
            texts.append(ax.text(*end, name, **words))
        ax.update_datalim(ends)
        ax.autoscale_view()
        for place, axis in enumerate((ax.xaxis, ax.yaxis)):
            name = f"component {self.components[place] + 1}"
            if self.variance_shares is not None:
                name += f" ({100 * self.variance_shares[place]:.0f} % of variance)"
            axis.set_label_text(name)
        self._say_what_is_drawn()
        self._name_groups(markerscale=2)
        _place(ax, texts, ends)
        return self

    def _say_what_is_drawn(self) -> None:
        """Say above the rows that they are a sample, and of what."""
        shown, there = len(self.scores), int(np.sum(self.counts))
        if shown < there:
            most = int(np.bincount(self.codes).max(initial=0))
            self.ax_.set_title(
                f"{shown:,} of {there:,} rows are drawn: at most {most:,} of each group, at random",
                fontsize="small",
                loc="left",
            )


def _place(ax: Any, texts: Sequence[Any], ends: Array) -> None:
    """Put labels beyond the ends of their arrows, the first ones first, where they hide no other.

    A label whose place is taken goes to the nearest free one above or below; where there is none,
    it is left out.
    """
    if not texts:
        return
    # All but the last time show how much room the labels need.
    for turn in range(_ROUNDS):
        ax.figure.canvas.figure.draw_without_rendering()  # so that the axes have their size
        origin, *tips = ax.transData.transform(np.vstack([np.zeros(2), ends]))
        back, taken = ax.transData.inverted(), [ax.get_legend().get_window_extent().extents]
        for text, tip in zip(texts, tips, strict=True):
            text.set_visible(True)  # as it has no size otherwise
            extent = text.get_window_extent()
            size, middle = np.array(extent.size), np.array([extent.x0, extent.y0]) + extent.size / 2
            anchor = ax.transData.transform(text.get_position()) - middle
            way = (tip - origin) / max(float(np.linalg.norm(tip - origin)), 1.0)
            near = tip + (size / 2 + _GAP) * way
            steps = sorted(range(-_REACH, _REACH + 1), key=abs)
            centres = near + np.outer(steps, [0.0, size[1] / 2])
            boxes = np.hstack([centres - size / 2, centres + size / 2])
            hidden = np.sum([_overlaps(boxes, other) for other in taken], axis=0)
            best = int(np.argmin(hidden))
            text.set_position(back.transform(centres[best] + anchor))
            text.set_visible(hidden[best] <= _HIDDEN)
            taken += [boxes[best]] if hidden[best] <= _HIDDEN else []
        if turn < _ROUNDS - 1:
            ax.update_datalim(back.transform(np.reshape(taken[1:], (-1, 2))))
            ax.autoscale_view()


def _overlaps(boxes: Array, other: Array) -> Array:
    """The areas that boxes (left, bottom, right, top) share with another."""
    sides = np.minimum(boxes[:, 2:], other[2:]) - np.maximum(boxes[:, :2], other[:2])
    areas: Array = np.maximum(sides, 0.0).prod(axis=1)
    return areas


def _sample(codes: Codes, most: int, seed: int | None) -> NDArray[np.intp]:
    """Positions of at most this many rows of each group."""
    rng = np.random.default_rng(seed or 0)
    parts = []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        parts.append(rng.choice(rows, min(most, len(rows)), replace=False))
    return np.sort(np.concatenate(parts))

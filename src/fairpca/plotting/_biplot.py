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
from fairpca._rows.checks import check_whole_number
from fairpca._rows.groups import Codes, encode_groups
from fairpca.plotting._displays import GROUP_COLORS, Display, plain_text, with_rows

_GROUP_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*")


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
        shares = [float(estimator.explained_variance_ratio_[c]) for c in components]
        display = cls(scores, codes, labels, counts.tolist(), loadings, columns, components, shares)
        return display.plot(n_arrows=n_arrows, ax=ax)

    def plot(self, *, n_arrows: int = 8, ax: Any = None) -> BiplotDisplay:
        """Draw the rows and the longest arrows."""
        ax = self._on(ax, height=5.5)
        for i in np.argsort(-np.asarray(self.counts), kind="stable"):  # small groups on top
            color = GROUP_COLORS[i % len(GROUP_COLORS)]
            marker = _GROUP_MARKERS[i % len(_GROUP_MARKERS)]
            style = {"s": 14, "alpha": 0.5, "linewidths": 0, "color": color, "marker": marker}
            name = with_rows(self.labels[i], self.counts[i])
            ax.scatter(*self.scores[self.codes == i].T, label=name, **style)
        spans = np.abs(self.scores).max(axis=0, initial=0.0)
        longest = np.abs(self.loadings).max(axis=0, initial=0.0)
        reach = float((spans / np.where(longest > 0, longest, 1.0)).min()) or 1.0
        lengths = np.linalg.norm(self.loadings, axis=1)
        for j in np.argsort(-lengths, kind="stable")[:n_arrows]:
            end = self.loadings[j] * reach
            ax.annotate("", end, (0.0, 0.0), arrowprops={"arrowstyle": "->", "color": "#444444"})
            box = {"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "pad": 1}
            ax.text(*(1.08 * end), plain_text(self.columns[j]), ha="center", va="center", bbox=box)
            ax.update_datalim([1.15 * end])
        ax.autoscale_view()
        for place, axis in enumerate((ax.xaxis, ax.yaxis)):
            name = f"component {self.components[place] + 1}"
            if self.variance_shares is not None:
                name += f" ({100 * self.variance_shares[place]:.0f} % of variance)"
            axis.set_label_text(name)
        ax.legend(frameon=False, markerscale=2)
        return self


def _sample(codes: Codes, most: int, seed: int | None) -> NDArray[np.intp]:
    """Positions of at most so many rows of each group."""
    rng = np.random.default_rng(seed or 0)
    parts = []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        parts.append(rng.choice(rows, min(most, len(rows)), replace=False))
    return np.sort(np.concatenate(parts))

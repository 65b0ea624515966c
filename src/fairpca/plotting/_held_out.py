"""HeldOutLossDisplay: the worst group's loss on held-out rows by the number of dimensions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairpca.metrics import HeldOutLosses, held_out_losses
from fairpca.plotting._names import with_rows
from fairpca.plotting._style import (
    FAIR_COLOR,
    GROUP_MARKERS,
    OWN_COLOR,
    PCA_COLOR,
    Display,
    Style,
    styled,
)

_SHIFT = 0.06
"""How far, in dimensions, the points of two curves stand apart, so that both intervals are seen."""


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
    ...     FairPCA(), X, sensitive_features=groups, dimensions=range(1, 4)
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

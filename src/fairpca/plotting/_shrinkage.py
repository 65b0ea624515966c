"""The display of what shrinkage does to groups on rows held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairpca.certificate.words import NOUNS
from fairpca.estimators.cross_fit import CrossFit
from fairpca.estimators.pipelines import find_reduction
from fairpca.plotting._names import with_rows
from fairpca.plotting._style import (
    CHOSEN_COLOR,
    GROUP_COLORS,
    GROUP_MARKERS,
    INK,
    Display,
    Style,
    styled,
)


@dataclass(eq=False)
class ShrinkageDisplay(Display):
    """What each group has on rows held out, for every amount of shrinkage, and what was chosen.

    Parameters
    ----------
    judged : CrossFit
        The numbers.
    noun : str, default="disparity"
        What was measured.
    goal : str, default="minmax"
        What was asked for, as in `Problem.goal`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    See Also
    --------
    fairpca.estimators.cross_fit.CrossFit : Has the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.plotting import ShrinkageDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> fair = FairPCA(2, shrinkage="auto").fit(X, sensitive_features=["a"] * 280 + ["b"] * 20)
    >>> ShrinkageDisplay.from_estimator(fair).ax_.get_xlabel()
    'shrinkage in rows'
    """

    judged: CrossFit
    noun: str = "disparity"
    goal: str = "minmax"

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, line_kw: Style = None
    ) -> ShrinkageDisplay:
        """Draw how a `FairPCA`, alone or in a pipeline, came to its shrinkage."""
        reduction = find_reduction(estimator, "ShrinkageDisplay").reduction
        check_is_fitted(reduction)
        if not hasattr(reduction, "cross_fit_"):
            raise ValueError(
                'There is nothing to draw: no rows were held out. FairPCA(shrinkage="auto") does '
                "so where some group is not large."
            )
        noun = NOUNS[reduction.measure, bool(reduction.relative)]
        goal = reduction.certificate_.goal
        return cls(reduction.cross_fit_, noun, goal).plot(ax=ax, line_kw=line_kw)

    @property
    def _scored(self) -> str:
        known = {"equal": "largest difference", "bounds": "largest excess over a bound"}
        return known.get(self.goal, f"largest {self.noun}")

    def plot(self, *, ax: Any = None, line_kw: Style = None) -> ShrinkageDisplay:
        """Draw a curve for each group; `line_kw` goes to matplotlib's ``plot``."""
        judged, ax = self.judged, self._on(ax)
        names = ["ordinary\nPCA" if np.isinf(n0) else f"{n0:g}" for n0 in judged.candidates]
        places = np.arange(len(names))
        curves = judged.measures.T
        for i, (label, count, values) in enumerate(
            zip(judged.labels, judged.count, curves, strict=True)
        ):
            look = {
                "color": GROUP_COLORS[i % len(GROUP_COLORS)],
                "marker": GROUP_MARKERS[i % len(GROUP_MARKERS)],
                "label": with_rows(label, int(count), judged.group_names),
                "alpha": 0.8,
            }
            ax.plot(places, values, **styled("Line2D", look, line_kw))
        ax.errorbar(
            places,
            judged.scores,
            2.0 * judged.score_errors,
            color=INK,
            linewidth=4,
            elinewidth=1.2,
            capsize=4,
            alpha=0.35,
            label=f"{self._scored}, ± 2 standard errors\nof the difference from the least",
            zorder=1,
        )
        ax.axhline(judged.scores.min(), color=INK, linestyle=":", linewidth=1, zorder=0)
        out = [j for j, n0 in enumerate(judged.candidates) if n0 not in judged.possible]
        if out:
            ax.plot(places[out], judged.scores[out], "x", color=INK, label="clearly worse")
        chosen = judged.candidates.index(judged.shrinkage)
        ax.axvline(chosen, color=CHOSEN_COLOR, linestyle="--", label="chosen", zorder=0)
        ax.set(xlabel="shrinkage in rows", ylabel=f"{self.noun} on rows held out")
        ax.set_xticks(places, names)
        self._name_groups(fontsize="small")
        return self

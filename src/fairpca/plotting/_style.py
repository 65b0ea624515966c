"""What all displays share: colours, axes to draw on, keywords of matplotlib, names of groups."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairpca._rows.text import group_name

PCA_COLOR, FAIR_COLOR, OWN_COLOR, CHOSEN_COLOR = "#000000", "#0072B2", "#777777", "#D55E00"
"""One colour for one thing in every picture."""

Style = Mapping[str, Any] | None
"""Keywords of matplotlib, which replace those of a display."""

GROUP_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GROUP_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*")


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


def styled(artist: str, defaults: Mapping[str, Any], given: Style) -> dict[str, Any]:
    """Keywords for matplotlib: those given, under any of their names, replace the defaults."""
    from matplotlib import cbook, collections, lines, patches, text

    kinds = (lines.Line2D, patches.Rectangle, collections.PathCollection, text.Text)
    kind = next(kind for kind in kinds if kind.__name__ == artist)
    wanted: dict[str, Any] = cbook.normalize_kwargs(dict(given or {}), kind)
    if "c" in wanted:  # of a scatter, where it is no other name of "color" but excludes it
        defaults = {name: value for name, value in defaults.items() if name != "color"}
    return cbook.normalize_kwargs(dict(defaults), kind) | wanted


def panels(axes: Any, n: int) -> tuple[Any, Any]:
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


def plain_text(label: Hashable, names: Sequence[str] | None = None) -> str:
    """A label as plain text: short, on one line, and with no formula in it."""
    return group_name(label, names).replace("$", r"\$")


def with_rows(label: Hashable, count: int, names: Sequence[str] | None = None) -> str:
    """A group and its number of rows."""
    return f"{plain_text(label, names)} ({count:,} rows)"


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: install `fairpca[plot]`.") from error
    return plt

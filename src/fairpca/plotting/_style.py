"""What all displays share: colours, axes to draw on, legends and names."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairpca.text import group_name

PCA_COLOR, FAIR_COLOR, OWN_COLOR, INK = "#b04a00", "#0067a3", "#868f99", "#1b1f24"
"""One colour for one thing in every picture, and in the report (`report/templates/page.css`)."""

_WIDTH = 7.5
"""Inches of a picture without its legend."""


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

    def _name_things(self) -> None:
        """A legend of a few things that are no groups: above axes of our own."""
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 3, "borderpad": 0.2}
        self.ax_.legend(frameon=False, **(above if self._is_own else {}))

    def _name_groups(self, handles: Sequence[Any] | None = None) -> None:
        """A legend with groups, in a figure of our own to the right of the axes."""
        ax, figure = self.ax_, self.figure_
        handles = handles or ax.get_legend_handles_labels()[0]
        if not self._is_own:
            # Not where matplotlib finds room, as what is drawn next would not know of it.
            ax.legend(handles=handles, loc="upper right", framealpha=0.7, fontsize="small")
            return
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
        legend = ax.legend(handles=handles, **beside)
        figure.draw_without_rendering()
        figure.set_figwidth(_WIDTH + legend.get_window_extent().width / figure.dpi)


def plain_text(label: Hashable, names: Sequence[str] | None = None) -> str:
    """A label as plain text: short, on one line, and with no formula in it."""
    text = group_name(label, names).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # which a legend would leave out


def with_rows(label: Hashable, count: int, names: Sequence[str] | None = None) -> str:
    """A group and its number of rows."""
    return f"{plain_text(label, names)} ({count:,} rows)"

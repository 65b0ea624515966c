"""What all figures share: sizes that stay legible at half size, one look for one method."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from studies.reproduction.methods import look

_SETTINGS: Any = {
    "font.size": 13,
    "axes.titlesize": 14,
    "axes.labelsize": 13,
    "legend.fontsize": 12,
    "lines.linewidth": 2,
    "lines.markersize": 6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "fairpca",
}


def panels(
    rows: int, columns: int, width: float = 5.0, height: float = 4.0
) -> tuple[Figure, list[Axes]]:
    """A figure with a grid of axes, row by row."""
    with mpl.rc_context(_SETTINGS):
        figure, axes = plt.subplots(
            rows, columns, figsize=(width * columns, height * rows), squeeze=False
        )
    return figure, list(axes.ravel())


def curve(ax: Axes, part: pd.DataFrame, y: str, method: str, x: str = "r") -> None:
    """One method's values by dimension."""
    style = look(method)
    part = part.sort_values(x)
    hollow: dict[str, Any] = {"fillstyle": "none", "markersize": 12, "linewidth": 1, "zorder": 3}
    ax.plot(
        part[x],
        part[y],
        color=style.color,
        marker=style.marker or None,
        linestyle=style.line,
        label=style.label,
        **(hollow if style.hollow else {}),
    )


def legend_below(figure: Figure, ax: Axes, columns: int = 3) -> None:
    """One legend for all panels."""
    handles, labels = ax.get_legend_handles_labels()
    with mpl.rc_context(_SETTINGS):
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(_SETTINGS):
        figure.savefig(folder / f"{name}.png", dpi=110)
        figure.set_layout_engine("none")  # as it is laid out by now
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def only(frame: pd.DataFrame, **choices: object) -> pd.DataFrame:
    """The rows with these values."""
    for column, value in choices.items():
        frame = frame[frame[column.replace("_", " ")] == value]
    return frame


def present(frame: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Those of the methods that the frame has."""
    return [name for name in names if (frame["method"] == name).any()]

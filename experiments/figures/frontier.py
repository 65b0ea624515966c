"""End points of many starts, in the plane of spread and total loss, beside the exact frontier."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from experiments.figures.style import legend_below, only, panels
from experiments.methods import EXACT, PARETO, PCA, look


def draw(frame: pd.DataFrame) -> Figure:
    """One panel for each dimension."""
    dimensions = sorted(frame["r"].unique())
    figure, axes = panels(1, len(dimensions), width=5.2, height=4.6)
    for ax, r in zip(axes, dimensions, strict=True):
        part = only(frame, r=r)
        line = only(part, kind="frontier").sort_values("spread")
        ends = only(part, kind="start")
        ax.plot(line["spread"], line["total loss"], color=look(EXACT).color, label="exact frontier")
        ax.plot(
            ends["spread"],
            ends["total loss"],
            look(PARETO).marker,
            color=look(PARETO).color,
            fillstyle="none",
            linestyle="none",
            label="ends of Pareto descent (20 starts)",
        )
        plain = line.iloc[-1]
        ax.plot(
            plain["spread"],
            plain["total loss"],
            look(PCA).marker,
            color=look(PCA).color,
            linestyle="none",
            label=look(PCA).label,
        )
        ax.set_title(f"Adult by sex, r = {r}")
        ax.set_xlabel("spread of disparities (squared units)")
        ax.set_ylabel("total loss (squared units)")
    legend_below(figure, axes[0])
    return figure

"""End points of many starts, in the plane of spread and total loss, beside the exact frontier."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from studies.reproduction.methods import EXACT, PARETO, PCA, PRINTED, look
from studies.reproduction.plots.style import legend_below, only, panels


def draw(frame: pd.DataFrame) -> Figure:
    """One panel for each data set and dimension."""
    cases = [(data, r) for data in frame["data"].unique() for r in sorted(frame["r"].unique())]
    columns = frame["r"].nunique()
    figure, axes = panels(-(-len(cases) // columns), columns, width=5.4, height=4.6)
    for ax, (data, r) in zip(axes, cases, strict=True):
        part = only(frame, data=data, r=r)
        line = only(part, kind="frontier").sort_values("spread")
        ax.plot(line["spread"], line["total loss"], color=look(EXACT).color, label="exact frontier")
        for method in (PRINTED, PARETO):
            ends = only(part, kind="start", method=method)
            ax.plot(
                ends["spread"],
                ends["total loss"],
                look(method).marker,
                color=look(method).color,
                fillstyle="none",
                linestyle="none",
                markersize=9,
                label=f"{look(method).label.removesuffix(', pairwise')}, {len(ends)} random starts",
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
        # Starts that end far above would hide the frontier.
        low, high = line["total loss"].min(), line["total loss"].max()
        top = high + 1.0 * (high - low)
        ax.set_ylim(low - 0.15 * (high - low), top)
        above = int((only(part, kind="start")["total loss"] > top).sum())
        if above:
            words = f"{above} starts end above"
            ax.text(0.98, 0.96, words, ha="right", va="top", transform=ax.transAxes, fontsize=12)
        ax.set_title(f"{data} by sex, r = {r}")
        ax.set_xlabel("spread of disparities (squared units)")
        ax.set_ylabel("total loss (squared units)")
    legend_below(figure, axes[0], 2)
    return figure

"""Reconstruction loss, or disparity, of each group by dimension, and the total or the average."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from studies.reproduction.methods import EXACT, OWN, PARETO, PCA, PRINTED
from studies.reproduction.plots.style import curve, legend_below, only, panels, present
from studies.reproduction.sweep import by_setting

_SHOWN = (PCA, PRINTED, PARETO, EXACT)


def draw(frame: pd.DataFrame, data: str, sensitive: str, quantity: str = "group loss") -> Figure:
    """One panel for each group and one for all; `quantity` is "group loss" or "disparity"."""
    frame = only(frame, data=data, sensitive=sensitive)
    losses = quantity == "group loss"
    groups = frame.drop_duplicates("group").sort_values("rows", ascending=False)
    columns = 3
    figure, axes = panels(-(-(len(groups) + 1) // columns), columns)
    for ax, name, rows in zip(axes, groups["group"], groups["rows"], strict=False):
        part = frame[frame["group"] == name]
        for method in present(part, _SHOWN):
            curve(ax, part[part["method"] == method], quantity, method)
        if losses:
            curve(ax, part[part["method"] == PCA], "own loss", OWN)
        ax.set_title(f"{name} ({rows:,} rows)")
    last = axes[len(groups)]
    whole = by_setting(frame)
    for method in present(whole, _SHOWN):
        value = "total loss" if losses else "mean disparity"
        curve(last, whole[whole["method"] == method], value, method)
    last.set_title("all rows" if losses else "average over groups, unweighted")
    for ax in axes[: len(groups) + 1]:
        ax.set_xlabel("dimensions r")
        ax.set_ylabel("loss per row (squared units)" if losses else "disparity (squared units)")
        ax.set_ylim(bottom=0)
    for ax in axes[len(groups) + 1 :]:
        ax.set_visible(False)
    legend_below(figure, axes[0], 4)
    figure.suptitle(
        f"{data} by {sensitive}: " + ("reconstruction loss" if losses else "loss beyond own PCA")
    )
    return figure

"""Average disparity and total loss by dimension, for the methods that the paper compares."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from studies.reproduction.methods import MAIN, PCA, look
from studies.reproduction.plots.style import curve, legend_below, only, panels, present
from studies.reproduction.sweep import by_setting

BINARY = (("Adult", "sex"), ("Credit", "sex"))


def draw_disparity(frame: pd.DataFrame) -> Figure:
    """Unweighted mean of the disparities above, mean absolute pairwise difference below."""
    figure, axes = panels(2, 2, width=6.0)
    whole = by_setting(frame)
    for row, (measure, words) in enumerate(
        (
            ("mean disparity", "mean disparity"),
            ("mean pairwise", "mean |difference of disparities|"),
        )
    ):
        for column, (data, sensitive) in enumerate(BINARY):
            ax = axes[2 * row + column]
            part = only(whole, data=data, sensitive=sensitive)
            for method in present(part, MAIN):
                curve(ax, part[part["method"] == method], measure, method)
            ax.set_title(f"{data} by {sensitive}")
            ax.set_xlabel("dimensions r")
            ax.set_ylabel(f"{words}\n(squared units)")
            ax.set_ylim(bottom=0)
    legend_below(figure, axes[0])
    return figure


def draw_total(frame: pd.DataFrame) -> Figure:
    """The price of fairness: total loss above that of ordinary PCA, in per cent."""
    figure, axes = panels(1, 2, width=6.0, height=4.5)
    whole = by_setting(frame)
    for ax, (data, sensitive) in zip(axes, BINARY, strict=True):
        part = only(whole, data=data, sensitive=sensitive)
        plain = part[part["method"] == PCA].set_index("r")["total loss"]
        part = part.assign(price=100 * (part["total loss"] / part["r"].map(plain) - 1))
        for method in present(part, MAIN):
            curve(ax, part[part["method"] == method], "price", method)
        ax.set_title(f"{data} by {sensitive}")
        ax.set_xlabel("dimensions r")
        ax.set_ylabel("total loss above PCA's (%)")
    legend_below(figure, axes[0])
    return figure


def draw_every_method(frame: pd.DataFrame, r: int) -> Figure:
    """All methods at one dimension: largest disparity against total loss."""
    tasks = frame[["data", "sensitive"]].drop_duplicates().itertuples(index=False)
    figure, axes = panels(2, 2, width=6.5, height=4.5)
    names: dict[str, Any] = {}
    for ax, (data, sensitive) in zip(axes, tasks, strict=False):
        part = only(by_setting(frame), data=data, sensitive=sensitive, r=r)
        for _, line in part.iterrows():
            style = look(line["method"])
            names[style.label] = ax.scatter(
                line["total loss"],
                line["largest disparity"],
                s=220 if style.hollow else 90,
                marker=style.marker,
                facecolors="none" if style.hollow else style.color,
                edgecolors=style.color if style.hollow else "black",
                linewidths=1.5 if style.hollow else 0.5,
            )
        ax.set_yscale("log")
        ax.set_title(f"{data} by {sensitive}, r = {r}")
        ax.set_xlabel("total loss (squared units)")
        ax.set_ylabel("largest disparity\n(squared units)")
    figure.legend(
        list(names.values()),
        list(names),
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=12,
    )
    return figure

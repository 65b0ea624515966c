"""Time to the same fairness against columns, dimensions, groups and rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from studies.reproduction.complexity import SHARE
from studies.reproduction.methods import look
from studies.reproduction.plots.style import panels

_WORDS = {"d": "columns d", "r": "dimensions r", "k": "groups k", "n": "rows n"}


def draw(frame: pd.DataFrame) -> Figure:
    """Solver time on a logarithmic scale; only methods that reached the target appear."""
    figure, axes = panels(2, 2, width=6.5, height=4.5)
    seen = {}
    for ax, (axis, part) in zip(axes, frame.groupby("axis", sort=False), strict=False):
        for method in dict.fromkeys(part["method"]):
            one = part[(part["method"] == method) & np.isfinite(part["seconds"])]
            if one.empty:
                continue
            style = look(method)
            medians = one.groupby(axis)["seconds"].median()
            (line,) = ax.plot(
                medians.index, medians, color=style.color, marker=style.marker, linestyle="-"
            )
            seen[style.label] = line
        ax.set_xscale("log")
        ax.set_yscale("log")
        sizes = sorted(part[axis].unique())
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
        ax.minorticks_off()
        ax.set_xlabel(_WORDS[axis])
        ax.set_ylabel("seconds")
    figure.suptitle(
        f"Solver time until {100 * (1 - SHARE):.0f} % of the way from PCA to the least largest "
        "disparity"
    )
    lines = list(seen.values())
    figure.legend(
        lines, list(seen), loc="outside lower center", ncols=3, frameon=False, fontsize=12
    )
    return figure

"""Accuracy, true positive rates and their difference after each reduction, with intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from studies.reproduction.data import REFERENCE
from studies.reproduction.downstream import DATA, REDUCTIONS
from studies.reproduction.methods import look
from studies.reproduction.plots.style import only, panels

_NAMES = {
    "none": "all columns",
    "PCA": "PCA",
    "printed": "printed",
    "pareto": "our default",
    "exact": "exact",
    "sdp": "SDP",
}


def draw(frame: pd.DataFrame) -> Figure:
    """One row of panels for each data set, reference preprocessing; bars are 95 % intervals."""
    figure, axes = panels(len(DATA), 3, width=5.2)
    for row, data in enumerate(DATA):
        part = only(frame, data=data, preprocessing=REFERENCE).set_index("reduction")
        shown = [name for name in REDUCTIONS if name in part.index]
        part = part.loc[shown].dropna(axis=1, how="all")
        places = np.arange(len(shown))
        colors = [look(name).color if name != "none" else "#777777" for name in shown]
        accuracy, rates, difference = axes[3 * row : 3 * row + 3]
        for ax, measure in ((accuracy, "accuracy"), (difference, "DEO")):
            for x, name, color in zip(places, shown, colors, strict=True):
                ax.errorbar(
                    x,
                    part.loc[name, measure],
                    part.loc[name, f"{measure} ±"],
                    fmt="o",
                    color=color,
                    capsize=5,
                )
        groups = [c for c in part.columns if c.startswith("TPR") and not c.endswith("±")]
        for shift, measure, marker in zip((-0.12, 0.12), groups, "s^", strict=True):
            rates.errorbar(
                places + shift,
                part[measure],
                part[f"{measure} ±"],
                fmt=marker,
                capsize=5,
                color="#0072B2" if marker == "s" else "#D55E00",
                label=measure.removeprefix("TPR "),
            )
        rates.legend(frameon=False)
        for ax, words in (
            (accuracy, "accuracy on test rows"),
            (rates, "true positive rate"),
            (difference, "difference of equal opportunity"),
        ):
            ax.set_xticks(places, [_NAMES[name] for name in shown], rotation=30, ha="right")
            ax.set_ylabel(words)
            ax.set_title(f"{data} by sex")
            ax.margins(x=0.15, y=0.25)
    return figure


def draw_preprocessings(frame: pd.DataFrame) -> Figure:
    """DEO after fair reductions less DEO after PCA, same seeds, for every preprocessing."""
    shown = DATA[:2]  # the third data set has one preprocessing alone
    figure, axes = panels(1, len(shown), width=7.0, height=5.5)
    for ax, data in zip(axes, shown, strict=True):
        part = only(frame, data=data)
        names = list(dict.fromkeys(part["preprocessing"]))
        compared = ("printed", "pareto", "exact", "sdp")
        for shift, method in zip((-0.3, -0.1, 0.1, 0.3), compared, strict=True):
            style = look(method)
            one = part[part["reduction"] == method]
            y = [names.index(name) + shift for name in one["preprocessing"]]
            ax.errorbar(
                one["DEO minus PCA"],
                y,
                xerr=one["DEO minus PCA ±"],
                fmt=style.marker,
                color=style.color,
                capsize=4,
                label=style.label,
            )
        ax.axvline(0.0, color="black", linewidth=1)
        ax.locator_params(axis="x", nbins=5)
        ax.set_yticks(range(len(names)), names if data == DATA[0] else [""] * len(names))
        ax.invert_yaxis()
        ax.set_title(f"{data} by sex")
        ax.set_xlabel("DEO after fair reduction less DEO after PCA\n(negative: fairer)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=12)
    return figure

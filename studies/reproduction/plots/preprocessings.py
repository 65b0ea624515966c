"""What depends on how the data were prepared: who pays for PCA, and the price of fairness."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from studies.reproduction.methods import EXACT, PCA, look
from studies.reproduction.plots.style import only, panels
from studies.reproduction.sweep import by_setting

_RS = {2: "o", 5: "s", 10: "^"}


def draw(frame: pd.DataFrame) -> Figure:
    """Left: disparity of women less that of men with PCA, of their sum. Right: price of it."""
    figure, axes = panels(2, 2, width=7.0, height=4.6)
    for row, data in enumerate(("Adult", "Credit")):
        part = only(frame, data=data, sensitive="sex", loss="mean")
        if part.empty:
            axes[2 * row].set_visible(False)
            axes[2 * row + 1].set_visible(False)
            continue
        names = list(dict.fromkeys(part["preprocessing"]))
        left, right = axes[2 * row], axes[2 * row + 1]
        for shift, (r, marker) in zip((-0.2, 0.0, 0.2), _RS.items(), strict=True):
            at = part[part["r"] == r]
            y = [names.index(name) + shift for name in names if (at["preprocessing"] == name).any()]
            if not y:
                continue
            left.plot(who_pays(at), y, marker, color=look(PCA).color, label=f"r = {r}")
            right.plot(price(at), y, marker, color=look(EXACT).color, label=f"r = {r}")
        left.axvline(0.0, color="black", linewidth=1)
        left.set_yticks(range(len(names)), names)
        right.set_yticks(range(len(names)), [""] * len(names))
        left.set_xlabel("share of PCA's disparities: women less men\n(positive: women pay)")
        right.set_xlabel("total loss of fair PCA above PCA's (%)")
        for ax in (left, right):
            ax.invert_yaxis()
            ax.set_title(f"{data} by sex")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=12)
    return figure


def who_pays(frame: pd.DataFrame) -> list[float]:
    """(E_women - E_men) / (E_women + E_men) with PCA, by preprocessing."""
    values = []
    for _, part in frame[frame["method"] == PCA].groupby("preprocessing", sort=False):
        e = part.assign(group=part["group"].str.lower()).set_index("group")["disparity"]
        values.append(float((e["female"] - e["male"]) / (e["female"] + e["male"])))
    return values


def price(frame: pd.DataFrame) -> list[float]:
    """Total loss of the exact solver above that of PCA, in per cent, by preprocessing."""
    values = []
    for _, part in by_setting(frame).groupby("preprocessing", sort=False):
        loss = part.set_index("method")["total loss"]
        values.append(float(100 * (loss[EXACT] / loss[PCA] - 1)))
    return values

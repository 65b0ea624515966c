"""Make the pictures of held-out rows: ``python docs/held_out_pictures.py``.

The first of the README is of studies/genomes.json, which ``python -m studies.genomes`` writes. Its
second is of UCI's two parts of Adult: one for the fit, the other to judge it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, GroupTable, audit
from fairpca.datasets import load_adult

DOCS = Path(__file__).parent
sys.path.append(str(DOCS.parent))

from studies.genomes import DATA, interval  # noqa: E402

FAIR, PLAIN, OWN, SHUFFLED, GRID = "#D55E00", "#333333", "#009E73", "#8c8c8c", "#e5e5e5"

METHODS = {
    "LDA of 50 components": ("LDA (supervised)", "#009E73", "s", "--"),
    "minmax, share": ("fair PCA by share lost", FAIR, "o", "-"),
    "PCA": ("PCA", PLAIN, "D", "-"),
    "minmax, share, shuffled labels": ("fair PCA, shuffled labels", SHUFFLED, "v", ":"),
}
"""Methods of the study: their names here, colours, markers and lines."""

PANELS = {
    "accuracy": ("Regions of held-out people recognised\n(balanced accuracy, %)", 50),
    "worst": ("The region recognised worst\n(recall, %)", 0),
}
"""Figures of the study: their titles here, and where the axis begins."""

_SHIFT = 1.018
"""Factor between the places of neighbouring methods, so that their intervals can be seen."""


def genomes(data: dict[str, Any]) -> Any:
    """Means of ten halves of HGDP with 95 % intervals, by the number of components."""
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.7))
    dimensions = sorted(data["regions"]["PCA"], key=int)
    for ax, (what, (title, lowest)) in zip(panels, PANELS.items(), strict=True):
        for i, (method, (name, color, marker, line)) in enumerate(METHODS.items()):
            found = [interval(data["regions"][method][r][what], halves=True) for r in dimensions]
            ax.errorbar(
                [int(r) * _SHIFT ** (i - 1.5) for r in dimensions],
                [100 * mean for mean, _ in found],
                [100 * half for _, half in found],
                color=color,
                marker=marker,
                markersize=4.5,
                linestyle=line,
                linewidth=1.6,
                elinewidth=0.8,
                label=name,
            )
        ax.set_xscale("log")
        ax.set_xticks([int(r) for r in dimensions], dimensions)
        ax.minorticks_off()
        ax.set_xlabel("number of components")
        ax.set_title(title, fontsize=10)
        ax.grid(axis="y", color=GRID, linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_ylim(lowest, 102)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=4, fontsize=9)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    return figure


def adult_by_race() -> GroupTable:
    """Losses of UCI's test part, of fits to its training part with five components."""
    train, test = (
        load_adult(subset=part, sensitive="race", keep_sensitive=False)
        for part in ("train", "test")
    )
    scale = StandardScaler().fit(train.data.drop(columns="fnlwgt"))
    X, new = (scale.transform(part.data.drop(columns="fnlwgt")) for part in (train, test))
    fair = FairPCA(5).fit(X, sensitive_features=train.sensitive_features)
    people = test.sensitive_features
    return audit(fair, new, sensitive_features=people, baseline="training", n_resamples=0)


def adult(table: GroupTable) -> Any:
    """For each group the shares lost with PCA, fair PCA and the group's own PCA; largest first."""
    order = np.argsort(-table.share_of(table.pca_loss))[::-1]
    places = np.arange(len(order))
    figure, ax = plt.subplots(figsize=(8, 2.6))
    losses = {
        "its own PCA": (table.own_loss, OWN, "|"),
        "fair PCA": (table.loss, FAIR, "o"),
        "PCA": (table.pca_loss, PLAIN, "D"),
    }
    shares = {name: 100 * table.share_of(loss)[order] for name, (loss, _, _) in losses.items()}
    ax.hlines(places, shares["its own PCA"], shares["PCA"], color=SHUFFLED, linewidth=1.2)
    for name, (_, color, marker) in losses.items():
        size = 14 if marker == "|" else 6
        style = {"markersize": size, "markeredgewidth": 2.5 if marker == "|" else 1.0}
        ax.plot(shares[name], places, marker, color=color, label=name, **style)
    names = [f"{table.labels[i]}, {table.count[i]:,} people" for i in order]
    ax.set_yticks(places, names)
    ax.set_ylim(-0.6, len(order) - 0.4)
    ax.set_xlabel("variance of held-out people that is lost with five components, %")
    ax.grid(axis="x", color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.tight_layout()
    return figure


def main() -> None:
    """Write docs/genomes.png and docs/adult.png."""
    figures = {
        "genomes.png": genomes(json.loads(DATA.read_text(encoding="utf-8"))),
        "adult.png": adult(adult_by_race()),
    }
    for name, figure in figures.items():
        figure.savefig(DOCS / name, dpi=200, facecolor="white")


if __name__ == "__main__":
    main()

"""Make the pictures of held-out rows: ``python docs/held_out_pictures.py``.

The first of the README is of UCI's two parts of Adult: one for the fits, the other to judge them.
Its second is of studies/genomes.json, which ``python -m studies.genomes`` writes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, audit
from fairpca.datasets import load_adult

DOCS = Path(__file__).parent
sys.path.append(str(DOCS.parent))

from studies.genomes import DATA, interval  # noqa: E402

Array = NDArray[np.float64]

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

RACES = ("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White")

ADULT: dict[str, tuple[FairPCA, str, str, str]] = {
    "PCA": (FairPCA(5, groups=None), PLAIN, "D", PLAIN),
    "fair PCA": (FairPCA(5), FAIR, "o", FAIR),
    "balanced PCA": (FairPCA(5, criterion="balanced"), SHUFFLED, "s", SHUFFLED),
    "PCA with 6 components": (FairPCA(6, groups=None), PLAIN, "D", "white"),
}
"""Methods for Adult, with colours, markers and what fills these."""

OWN_PCA = "its own PCA"

N_RESAMPLES = 1000

_PLACES = (0.24, 0.08, -0.08, -0.24)
"""Where methods are beside the middle of their group."""

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


def adult_by_race() -> dict[str, Array]:
    """Shares of UCI's test part that are lost, in per cent, with fits to its training part.

    For each method the share of each group and the ends of its interval, (k, 3); for `OWN_PCA` the
    share alone, (k,). `"people"` has the numbers of people, `"total"` what all lose with `METHODS`.
    """
    train, test = (
        load_adult(subset=part, sensitive="race", keep_sensitive=False)
        for part in ("train", "test")
    )
    scale = StandardScaler().fit(train.data.drop(columns="fnlwgt"))
    X, new = (scale.transform(part.data.drop(columns="fnlwgt")) for part in (train, test))
    groups, rng, found, totals = (
        np.asarray(test.sensitive_features),
        np.random.default_rng(0),
        {},
        [],
    )
    members = [groups == label for label in RACES]
    for name, (fair, *_) in ADULT.items():
        fair.fit(X, sensitive_features=train.sensitive_features)
        table = audit(fair, new, sensitive_features=groups, baseline="training", n_resamples=0)
        errors = np.square(new - fair.inverse_transform(fair.transform(new))).sum(axis=1)
        distances = np.square(new - fair.mean_).sum(axis=1)
        shares = []
        for some in members:
            drawn = rng.integers(some.sum(), size=(N_RESAMPLES, some.sum()))
            resampled = errors[some][drawn].sum(axis=1) / distances[some][drawn].sum(axis=1)
            ends = np.quantile(resampled, [0.025, 0.975])
            shares.append([errors[some].sum() / distances[some].sum(), *ends])
        found[name] = 100 * np.array(shares)
        totals.append(100 * errors.sum() / distances.sum())
        if name == "fair PCA":
            own = 100 * table.share_of(table.own_loss)
            found[OWN_PCA] = own[[table.labels.index(label) for label in RACES]]
    people = np.array([some.sum() for some in members])
    return found | {"people": people, "total": np.array(totals)}


def adult(found: dict[str, Array]) -> Any:
    """For each group the shares lost with each method, and with its own PCA; largest first."""
    order = np.argsort(found["PCA"][:, 0])
    places = np.arange(len(order), dtype=float)
    figure, ax = plt.subplots(figsize=(8, 3.4))
    for (name, (_, color, marker, face)), shift in zip(ADULT.items(), _PLACES, strict=True):
        share, low, high = found[name][order].T
        ax.errorbar(
            share,
            places + shift,
            xerr=[share - low, high - share],
            fmt=marker,
            color=color,
            markerfacecolor=face,
            markersize=5.5,
            elinewidth=0.9,
            label=name,
        )
    own = found[OWN_PCA][order]
    ax.vlines(own, places - 0.38, places + 0.38, color=OWN, linewidth=2.5, label=OWN_PCA)
    for place in places[1:]:
        ax.axhline(place - 0.5, color=GRID, linewidth=0.8)
    names = [f"{RACES[i]}\n{found['people'][i]:,} people" for i in order]
    ax.set_yticks(places, names)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.5, len(order) - 0.5)
    ax.set_xlabel("variance of held-out people that is lost, %")
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

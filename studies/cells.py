"""Cells: what fair PCA does for rare types and small batches, beside what this field uses already.

Run ``python -m studies.cells`` to run every scenario below and rewrite studies/cells.md from
studies/cells.json (about 15 minutes on one core); ``page`` runs nothing, and names of scenarios run
these alone. It needs

    pip install scanpy leidenalg scranpy harmonypy rdata
    apt-get install r-bioc-hsmmsinglecell

Where a package is missing, its scenarios and methods keep the figures that they have.

**The protocol, written down before anything was run.** Of each scenario 12 splits. Real cells are
cut in half within each type: one half is fitted to, perhaps after it was thinned, the other half is
judged as it is. Simulated cells are drawn from a known model twice: the cells of the fit, and as
many new cells of each batch and type as are judged. Expression is log-normalised, and not scaled.
All methods have r = 10 components but those with one and two more, see the same cells and, where
they take groups, the same groups.

Scenarios on real cells (scanpy's pbmc68k_reduced: 700 cells, 765 genes, ten types; the muscle cells
of r-bioc-hsmmsinglecell: 271 cells, the 1,000 genes of largest variance, four time points):

- *types*: groups are the ten types, as they are.
- *lineages*: groups are five lineages (myeloid, T, B, NK, progenitors).
- *rare NK*, *rare B*, *rare cytotoxic T*: groups are the types, and that type is thinned to six
  cells in the half that is fitted to.
- *myeloid majority*: groups are the types, and all but dendritic cells and monocytes are thinned to
  a quarter there, at least four cells.
- *muscle*: groups are the hours of culture, thinned to eight cells at 72 hours.

Scenarios on simulated cells (gamma-Poisson counts of 300 genes; five types that differ in a tenth of
the genes, of 40, 30, 15, 10 and 5 %; batches of 1,200, 120 and 40 cells whose genes are shifted by
factors with a logarithm of deviation 0.2; eight programmes vary from cell to cell):

- *batches differ*: each batch has five of the programmes for itself, and three are shared.
- *batches alike*: all share all programmes. Here is nothing to gain.
- *type in a small batch*: as *batches alike*, but the rarest type is in the smallest batch alone,
  where it is a fifth of the cells.

Methods: PCA; PCA with one and two more components; *balanced* (each group counts the same, about
the mean of all cells); *downsampled* (PCA of as many cells of each group as the smallest has, at
least ten where there are as many; centred on all cells of the fit); *scran* (scranpy's run_pca
with the groups as blocks, policy "equal": residuals within blocks, each block counting the same) and
*scran, variable* (its default policy, which up to 1,000 cells a block counts every cell the same);
*averaged own subspaces* (the leading directions of the mean of the groups' own projections);
*Harmony* on PCA's coordinates of all cells, where groups are batches (of types it would remove what
is looked for; it has no loadings, so nothing is known of what is lost); ours: *soft* (the default),
*minmax*, *soft, share* (SoftMinMax("share_lost")).

Judged on the other cells:

- *worst share lost*: the largest share of its variance that a group loses.
- *total loss*: change in the loss of all judged cells together.
- *rare recall, neighbours*: of the cells of a rare type, those of whose five nearest neighbours
  among the judged cells (itself left out) most are of its type; ties do not count. Mean of the rare
  types: those that have at most a tenth of the cells of the fit and at least six judged cells.
- *rare recall, Leiden*: the same of those in a cluster in which most cells are of their type, by
  scanpy's neighbours (15) and Leiden (resolution 1) on the judged cells.
- *mixing*, where groups are batches: of a cell's 15 nearest neighbours of its type, the share from
  other batches, over what it would be if batches were mixed; 1 is mixed.

*Clearly* better or worse than PCA is a mean difference of more than two standard errors. Splits of
the same cells share rows, so their squared standard error is (1/J + 1) times the variance (Nadeau
and Bengio, with as many judged as fitted); simulated splits are independent, 1/J times.

What is hoped for of *soft*, against PCA: the worst share lost clearly smaller in at least three of
ten scenarios and clearly larger in none; rare recall by neighbours clearly larger in at least two
and clearly smaller in none; nothing clearly changed in *batches alike*; and in at least one
scenario better than PCA with one more component in both.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from fairpca import FairPCA, Loadings, SoftMinMax

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

TARGET = Path(__file__).with_name("cells.md")
DATA = Path(__file__).with_name("cells.json")

N_SPLITS, R, FIRST_SEED = 12, 10, 41_000
K_RECALL, K_MIXING, LEAST_JUDGED, RARE = 5, 15, 6, 0.1

LINEAGES = {
    "Dendritic": "myeloid",
    "CD14+ Monocyte": "myeloid",
    "CD19+ B": "B",
    "CD56+ NK": "NK",
    "CD34+": "progenitors",
}
"""Lineages of the types of pbmc68k_reduced; all others are T cells."""


@dataclass(frozen=True)
class Split:
    """Cells to be fitted to and cells to be judged, with their groups and types."""

    X: Array
    groups: Labels
    types: Labels
    new: Array
    new_groups: Labels
    new_types: Labels

    @property
    def rare(self) -> list[str]:
        """The types that count as rare."""
        names, counts = np.unique(self.new_types, return_counts=True)
        judged = names[counts >= LEAST_JUDGED]
        return [name for name in judged if (self.types == name).mean() <= RARE]


# --- Real cells -----------------------------------------------------------------------------------


@cache
def blood() -> tuple[Array, Labels]:
    """Log-normalised counts of scanpy's 700 blood cells, and their types."""
    import scanpy

    cells = scanpy.datasets.pbmc68k_reduced()
    return np.asarray(cells.raw.X.todense(), dtype=np.float64), np.asarray(
        cells.obs["bulk_labels"], dtype=str
    )


@cache
def muscle() -> tuple[Array, Labels]:
    """Muscle cells of four time points: the genes of largest variance, log-transformed."""
    import rdata

    library = Path(os.environ.get("R_LIBS_SITE", "/usr/lib/R/site-library"))
    folder = library / "HSMMSingleCell" / "data"
    read = {
        name: _r_object(rdata, folder, name) for name in ("HSMM_expr_matrix", "HSMM_sample_sheet")
    }
    X = np.log1p(np.asarray(read["HSMM_expr_matrix"], dtype=np.float64).T)
    hours = np.asarray(read["HSMM_sample_sheet"]["Hours"], dtype=str)
    return X[:, np.argsort(-X.var(axis=0), kind="stable")[:1000]], hours


def _r_object(rdata: Any, folder: Path, name: str) -> Any:
    (path,) = folder.glob(f"{name}.[rR][dD]a*")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rdata.read_rda(path)[name]


def real_split(
    cells: Callable[[], tuple[Array, Labels]],
    seed: int,
    groups_of: Callable[[Labels], Labels] = lambda types: types,
    thinned: Callable[[str, int], int] = lambda name, count: count,
) -> Split:
    """Halves of real cells, drawn by type; of the first some types are thinned."""
    X, types = cells()
    rng = np.random.default_rng(seed)
    first, second = [], []
    for name in np.unique(types):
        members = rng.permutation(np.flatnonzero(types == name))
        half = len(members) // 2 + int(rng.random() < 0.5) * (len(members) % 2)
        first += members[: min(half, thinned(str(name), half))].tolist()
        second += members[half:].tolist()
    groups = groups_of(types)
    return Split(X[first], groups[first], types[first], X[second], groups[second], types[second])


def lineages(types: Labels) -> Labels:
    """The lineage of each cell."""
    return np.array([LINEAGES.get(name, "T") for name in types])


def _rare(rare: str, left: int, name: str, count: int) -> int:
    return left if name == rare else count


def _quarter(name: str, count: int) -> int:
    return count if LINEAGES.get(name) == "myeloid" else max(count // 4, 4)


# --- Simulated cells ------------------------------------------------------------------------------

BATCHES, JUDGED = (1200, 120, 40), 250
TYPE_SHARES = (0.40, 0.30, 0.15, 0.10, 0.05)
N_GENES, N_PROGRAMMES, N_SHARED = 300, 8, 3


def simulated_split(seed: int, programmes: str = "shared", small_type: bool = False) -> Split:
    """Cells of three batches of a known model, and new ones, as many of each batch."""
    rng = np.random.default_rng(seed)
    base = rng.gamma(0.6, 1.0, N_GENES) + 0.02
    marked = rng.random((len(TYPE_SHARES), N_GENES)) < 0.1
    types = np.exp(marked * rng.normal(0.0, 1.0, marked.shape))
    shifts = np.exp(rng.normal(0.0, 0.2, (len(BATCHES), N_GENES)))
    used = rng.random((len(BATCHES), N_PROGRAMMES, N_GENES)) < 0.1
    effects = used * rng.normal(0.0, 0.5, used.shape)
    shared = N_PROGRAMMES if programmes == "shared" else N_SHARED
    effects[1:, :shared] = effects[0, :shared]

    def draw(sizes: Iterable[int]) -> tuple[Array, Labels, Labels]:
        rows, groups, names = [], [], []
        for b, size in enumerate(sizes):
            shares = np.array(TYPE_SHARES)
            if small_type:
                shares[-1] = 0.2 if b == len(BATCHES) - 1 else 0.0
            kinds = rng.choice(len(shares), size, p=shares / shares.sum())
            activity = rng.normal(size=(size, N_PROGRAMMES)) @ effects[b]
            rates = base * types[kinds] * shifts[b] * np.exp(activity)
            depth = rng.lognormal(0.0, 0.3, size) * 500
            counts = rng.poisson(rates / rates.sum(axis=1, keepdims=True) * depth[:, None])
            rows.append(np.log1p(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1) * 500))
            groups += [f"batch {b + 1}"] * size
            names += [f"type {kind + 1}" for kind in kinds]
        return np.vstack(rows), np.array(groups), np.array(names)

    return Split(*draw(BATCHES), *draw([JUDGED] * len(BATCHES)))


SCENARIOS: dict[str, Callable[[int], Split]] = {
    "types": partial(real_split, blood),
    "lineages": partial(real_split, blood, groups_of=lineages),
    "rare NK": partial(real_split, blood, thinned=partial(_rare, "CD56+ NK", 6)),
    "rare B": partial(real_split, blood, thinned=partial(_rare, "CD19+ B", 6)),
    "rare cytotoxic T": partial(real_split, blood, thinned=partial(_rare, "CD8+ Cytotoxic T", 6)),
    "myeloid majority": partial(real_split, blood, thinned=_quarter),
    "muscle": partial(real_split, muscle, thinned=partial(_rare, "72", 8)),
    "batches differ": partial(simulated_split, programmes="own"),
    "batches alike": simulated_split,
    "type in a small batch": partial(simulated_split, small_type=True),
}

SIMULATED = ("batches differ", "batches alike", "type in a small batch")


# --- The methods: a mean and components; Harmony has coordinates alone -----------------------------


def _pca(split: Split, r: int = R) -> Loadings:
    mean = split.X.mean(axis=0)
    return Loadings(np.linalg.svd(split.X - mean, full_matrices=False)[2][:r], mean)


def _fair(criterion: Any, split: Split) -> Loadings:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fair = FairPCA(R, criterion=criterion).fit(split.X, sensitive_features=split.groups)
    return Loadings(fair.components_, fair.mean_)


def _downsampled(split: Split) -> Loadings:
    names, counts = np.unique(split.groups, return_counts=True)
    rng, size = np.random.default_rng(0), max(int(counts.min()), 10)
    some = [rng.permutation(np.flatnonzero(split.groups == name))[:size] for name in names]
    rows = split.X[np.concatenate(some)]
    axes = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:R]
    return Loadings(axes, split.X.mean(axis=0))


def _averaged(split: Split) -> Loadings:
    mean, bases = split.X.mean(axis=0), []
    for name in np.unique(split.groups):
        _, sizes, axes = np.linalg.svd(split.X[split.groups == name] - mean, full_matrices=False)
        bases.append(axes[:R][sizes[:R] > 1e-9 * sizes[0]])
    return Loadings(np.linalg.svd(np.vstack(bases), full_matrices=False)[2][:R], mean)


def _scran(policy: str, split: Split) -> Loadings:
    import scranpy

    found = scranpy.run_pca(
        np.ascontiguousarray(split.X.T),
        number=R,
        block=split.groups.tolist(),
        block_weight_policy=policy,
    )
    return Loadings(np.asarray(found["rotation"]).T, split.X.mean(axis=0))


METHODS: dict[str, Callable[[Split], Loadings]] = {
    "PCA": _pca,
    "PCA, one more": partial(_pca, r=R + 1),
    "PCA, two more": partial(_pca, r=R + 2),
    "balanced": partial(_fair, "balanced"),
    "downsampled": _downsampled,
    "scran": partial(_scran, "equal"),
    "scran, variable": partial(_scran, "variable"),
    "averaged own subspaces": _averaged,
    "soft": partial(_fair, "soft"),
    "minmax": partial(_fair, "minmax"),
    "soft, share": partial(_fair, SoftMinMax("share_lost")),
}

HARMONY = "Harmony"


def harmonised(split: Split) -> Array:
    """Harmony's coordinates of the judged cells, from PCA's of all cells."""
    import harmonypy
    import pandas

    pca = _pca(split)
    both = np.vstack([pca.transform(split.X), pca.transform(split.new)])
    about = pandas.DataFrame({"batch": np.concatenate([split.groups, split.new_groups])})
    found = harmonypy.run_harmony(both, about, ["batch"], verbose=False).Z_corr
    found = np.asarray(found)
    found = found if len(found) == len(both) else found.T
    return found[len(split.X) :]


# --- What is judged -------------------------------------------------------------------------------


def lost(split: Split, loadings: Loadings) -> tuple[float, float]:
    """The largest share of its variance that a group loses, and the mean loss of all."""
    centred = split.new - split.X.mean(axis=0)
    squares = np.square(centred).sum(axis=1)
    losses = squares - np.square(centred @ loadings.components_.T).sum(axis=1)
    of = [split.new_groups == name for name in np.unique(split.new_groups)]
    return max(losses[some].sum() / squares[some].sum() for some in of), losses.mean()


def neighbours(Z: Array, k: int) -> NDArray[np.intp]:
    """The k nearest other cells of each."""
    found: NDArray[np.intp] = (
        NearestNeighbors(n_neighbors=k).fit(Z).kneighbors(return_distance=False)
    )
    return found


def recall(split: Split, Z: Array) -> float:
    """Mean recall of the rare types by nearest neighbours."""
    near = split.new_types[neighbours(Z, K_RECALL)]
    own = (near == split.new_types[:, None]).sum(axis=1)
    names = np.unique(split.new_types)
    most = np.array([(near == name).sum(axis=1) * (split.new_types != name) for name in names])
    right = own > most.max(axis=0)
    return float(np.mean([right[split.new_types == name].mean() for name in split.rare]))


def leiden_recall(split: Split, Z: Array) -> float:
    """Mean recall of the rare types by Leiden's clusters."""
    import anndata
    import scanpy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = anndata.AnnData(np.zeros((len(Z), 1)), obsm={"Z": Z.astype(np.float32)})
        scanpy.pp.neighbors(cells, n_neighbors=15, use_rep="Z", random_state=0)
        scanpy.tl.leiden(
            cells, resolution=1.0, flavor="igraph", n_iterations=2, directed=False, random_state=0
        )
    clusters, right = np.asarray(cells.obs["leiden"]), np.zeros(len(Z), dtype=bool)
    for cluster in np.unique(clusters):
        some = clusters == cluster
        names, counts = np.unique(split.new_types[some], return_counts=True)
        right |= some & (split.new_types == names[counts.argmax()])
    return float(np.mean([right[split.new_types == name].mean() for name in split.rare]))


def mixing(split: Split, Z: Array) -> float:
    """How well batches are mixed within types: 1 is as by chance."""
    found = []
    for name in np.unique(split.new_types):
        some = np.flatnonzero(split.new_types == name)
        batch = split.new_groups[some]
        if len(some) <= K_MIXING or len(np.unique(batch)) < 2:
            continue
        others = (batch[neighbours(Z[some], K_MIXING)] != batch[:, None]).mean(axis=1)
        found += (others / (batch[:, None] != batch).mean(axis=1)).tolist()
    return float(np.mean(found))


def judged(scenario: str, seed: int) -> dict[str, dict[str, float]]:
    """What each method does on one split."""
    split, found = SCENARIOS[scenario](seed), {}
    base = lost(split, METHODS["PCA"](split))[1]

    def of_coordinates(Z: Array) -> dict[str, float]:
        figures = {"recall": recall(split, Z), "leiden": leiden_recall(split, Z)}
        return figures | ({"mixing": mixing(split, Z)} if scenario in SIMULATED else {})

    for name, method in METHODS.items():
        if name.startswith("scran") and find_spec("scranpy") is None:
            continue
        loadings = method(split)
        worst, loss = lost(split, loadings)
        figures = {"worst": worst, "loss": loss / base - 1.0}
        found[name] = figures | of_coordinates(np.asarray(loadings.transform(split.new)))
    if scenario in SIMULATED and find_spec("harmonypy") is not None:
        found[HARMONY] = of_coordinates(harmonised(split))
    return found


def run(scenario: str) -> dict[str, dict[str, list[float]]]:
    """All splits of a scenario: of each method and figure the values by split."""
    splits = [judged(scenario, FIRST_SEED + i) for i in range(N_SPLITS)]
    return {
        name: {
            figure: [round(float(split[name][figure]), 5) for split in splits]
            for figure in splits[0][name]
        }
        for name in splits[0]
    }


# --- The page -------------------------------------------------------------------------------------

FIGURES = {
    "worst": "worst share lost, %",
    "recall": "rare recall, neighbours, %",
    "leiden": "rare recall, Leiden, %",
    "mixing": "mixing",
    "loss": "total loss, %",
}
BETTER = {"worst": -1, "recall": 1, "leiden": 1, "mixing": 1, "loss": -1}
"""Whether more is better."""


def difference(scenario: str, figures: list[float], base: list[float]) -> tuple[float, float]:
    """Mean difference from PCA and two standard errors."""
    differences = np.subtract(figures, base)
    share = 1.0 / len(differences) + (0.0 if scenario in SIMULATED else 1.0)
    return float(differences.mean()), 2.0 * float(np.sqrt(share * differences.var(ddof=1)))


def verdict(scenario: str, found: dict[str, Any], name: str, figure: str, to: str = "PCA") -> int:
    """1 for clearly better than another method, -1 for clearly worse, else 0."""
    if figure not in found[name] or figure not in found[to]:
        return 0
    mean, error = difference(scenario, found[name][figure], found[to][figure])
    return BETTER[figure] * int(np.sign(mean)) * int(abs(mean) > max(error, 1e-9))


def targets(data: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """What was hoped for, what was found, and whether that is met."""

    def count(figure: str, sign: int) -> int:
        return sum(verdict(s, found, "soft", figure) == sign for s, found in data.items())

    both = [
        scenario
        for scenario, found in data.items()
        if all(
            verdict(scenario, found, "soft", f, "PCA, one more") == 1 for f in ("worst", "recall")
        )
    ]
    alike = data.get("batches alike", {})
    changed = [
        FIGURES[figure]
        for figure in FIGURES
        if alike and figure != "loss" and verdict("batches alike", alike, "soft", figure)
    ]
    lines = [
        ("worst share lost clearly smaller: at least 3", count("worst", 1), count("worst", 1) >= 3),
        ("worst share lost clearly larger: none", count("worst", -1), count("worst", -1) == 0),
        ("rare recall clearly larger: at least 2", count("recall", 1), count("recall", 1) >= 2),
        ("rare recall clearly smaller: none", count("recall", -1), count("recall", -1) == 0),
        (
            "nothing clearly changed in *batches alike*",
            ", ".join(changed) or "nothing",
            not changed,
        ),
        (
            "better than one more component in both: at least 1",
            ", ".join(both) or "none",
            bool(both),
        ),
    ]
    return [(hope, str(value), met) for hope, value, met in lines]


def _cell(scenario: str, found: dict[str, Any], name: str, figure: str) -> str:
    if figure not in found[name]:
        return "–"
    times, form = (1.0, ".2f") if figure == "mixing" else (100.0, ".1f")
    mean = times * float(np.mean(found[name][figure]))
    if figure == "loss":
        return f"{mean:+{form}}"
    if name == "PCA":
        return f"{mean:{form}}"
    change, error = (
        times * x for x in difference(scenario, found[name][figure], found["PCA"][figure])
    )
    mark = {1: " **better**", -1: " worse", 0: ""}[verdict(scenario, found, name, figure)]
    return f"{mean:{form}} ({change:+{form}} ± {error:{form}}){mark}"


def _reading(data: dict[str, Any]) -> list[str]:
    """What helps and what does not, in words."""
    real = [scenario for scenario in data if scenario not in SIMULATED]

    def better(name: str, figure: str, sign: int = 1, of: Iterable[str] = tuple(data)) -> int:
        return sum(verdict(scenario, data[scenario], name, figure) == sign for scenario in of)

    def mean(scenario: str, name: str, figure: str) -> str:
        return f"{100.0 * float(np.mean(data[scenario][name][figure])):.1f} %"

    return [
        f"**On real cells the default does not help.** In these {len(real)} scenarios it makes rare types "
        f"clearly easier to find in {better('soft', 'recall', of=real)} and lowers the worst share lost in "
        f"{better('soft', 'worst', of=real)}; it raises that in {better('soft', 'worst', -1, real)}, by at most "
        f"{max(100.0 * difference(s, data[s]['soft']['worst'], data[s]['PCA']['worst'])[0] for s in real):.1f} "
        "points. It stays near ordinary PCA, because differences of this size are not significant in a few hundred cells. "
        "Methods that trust small groups do harm here: minmax, balanced and downsampled PCA raise the worst "
        f"share lost in {better('minmax', 'worst', -1, real)}, {better('balanced', 'worst', -1, real)} and "
        f"{better('downsampled', 'worst', -1, real)} of them.",
        "",
        "**Where batches truly differ it helps those that are small**, in what is lost: the worst share falls from "
        f"{mean('batches differ', 'PCA', 'worst')} to {mean('batches differ', 'soft', 'worst')} "
        f"(two more ordinary components: {mean('batches differ', 'PCA, two more', 'worst')}). Rare types are found no "
        "better for it: what is kept are the batches' own programmes, and these also set batches apart, so "
        "batches mix less. One or two more ordinary components lower the worst share in "
        f"{better('PCA, one more', 'worst')} of {len(data)} scenarios and are the first thing to try.",
        "",
        "**A rare type that is in a small batch alone** is found by neighbours better with minmax, balanced and "
        f"downsampled PCA ({mean('type in a small batch', 'minmax', 'recall')}, "
        f"{mean('type in a small batch', 'balanced', 'recall')} and "
        f"{mean('type in a small batch', 'downsampled', 'recall')} against "
        f"{mean('type in a small batch', 'PCA', 'recall')}), at the price of mixing, and not with the default. "
        "Harmony mixes batches best and loses some of that type. Blocks of scran are made for batches: with types as "
        "blocks, what differs between types is taken out, and it is no remedy.",
    ]


def page(data: dict[str, Any]) -> str:
    """The page of all scenarios."""
    names = list(dict.fromkeys(name for found in data.values() for name in found))
    lines = [
        "# Cells: rare types and small batches",
        "",
        "What fair PCA does for single cells, on cells that no method was fitted to, beside what this "
        "field uses already. Made by `python -m studies.cells`, whose head has the protocol as it was "
        "written before anything was run: scenarios, methods, figures and targets.",
        "",
        f"{N_SPLITS} splits for each scenario, r = {R}. In brackets the mean difference from PCA and "
        "two standard errors; *better* and *worse* are differences beyond these.",
        "",
        "## In short",
        "",
        *(_reading(data) if list(data) == list(SCENARIOS) else []),
        "",
        "Scenarios in which a method is clearly better / clearly worse than PCA:",
        "",
        "| method | "
        + " | ".join(
            FIGURES[f].split(",")[0]
            if f != "leiden" and f != "recall"
            else FIGURES[f].removesuffix(", %")
            for f in FIGURES
        )
        + " |",
        "|---" * (len(FIGURES) + 1) + "|",
    ]
    for name in names[1:]:
        cells = []
        for figure in FIGURES:
            there = [
                verdict(s, found, name, figure)
                for s, found in data.items()
                if name in found and figure in found[name]
            ]
            cells.append(f"{there.count(1)} / {there.count(-1)} of {len(there)}" if there else "–")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "## Targets", "", "| hoped for of `soft` | found | |", "|---|---|---|"]
    lines += [
        f"| {hope} | {value} | {'met' if met else '**missed**'} |"
        for hope, value, met in targets(data)
    ]
    for scenario, found in data.items():
        figures = [f for f in FIGURES if f in found["PCA"]]
        lines += ["", f"## {scenario[0].upper()}{scenario[1:]}", ""]
        lines += ["| method | " + " | ".join(FIGURES[f] for f in figures) + " |"]
        lines += ["|---" * (len(figures) + 1) + "|"]
        lines += [
            f"| {name} | {' | '.join(_cell(scenario, found, name, f) for f in figures)} |"
            for name in found
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the scenarios that are named, or all, and write the page."""
    asked = sys.argv[1:] or list(SCENARIOS)
    data = json.loads(DATA.read_text("utf-8")) if DATA.exists() else {}
    for scenario in [] if asked == ["page"] else asked:
        try:
            data[scenario] = data.get(scenario, {}) | run(scenario)
        except (ImportError, ValueError) as error:
            if isinstance(error, ImportError) or scenario == "muscle":
                print(f"{scenario}: not run, {error}")
                continue
            raise
        print(scenario, flush=True)
        data = {name: data[name] for name in SCENARIOS if name in data}
        DATA.write_text(json.dumps(data, indent=0) + "\n", encoding="utf-8")
    TARGET.write_text(page(data), encoding="utf-8")


if __name__ == "__main__":
    main()

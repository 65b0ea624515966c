"""Genomes and words: what a fair reduction shows of people who were not in the fit.

Run ``python -m studies.genomes`` to fit everything and rewrite studies/genomes.md and its picture
(40 minutes on one core); parts by name (``regions``, ``breeds``, ``small``, ``words``, ``rule``,
``gaps``) are run alone, and ``page`` runs nothing. Data come from packages and are not kept here:

    pip install rdata msprime wordllama wordfreq
    apt-get install r-cran-adegenet

Methods, dimensions, splits, what is judged, and `EXPECTED` were written down before any of this
was run. Earlier experiments, and a trial of the time that fits take, had other splits of the same
tables and other simulated genomes. Four things were changed before the first run: five simulated
genomes of each history instead of ten, to save time; other seeds for the splits than those of the
trial; downsampling, which leaves the other rows out of the neighbours too, was added beside the
projection of all rows on a balanced sample's components; and all methods get rows by their
coordinates in the space that the fitted ones span, which changes no distance and saves most of
the time.

Two parts were written when the figures of the regions were known, and none of the others: `rule`,
on whether people of the fit can choose the measure, and `gaps`, on held-out people of whom some
loci are missing.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from fairpca import FairPCA, MinMax, SoftMinMax
from studies.new_data import _r_file, _words, halves

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

DATA = Path(__file__).with_name("genomes.json")
TARGET = Path(__file__).with_name("genomes.md")
PICTURE = Path(__file__).with_name("genomes.png")

N_SPLITS, FIRST_SPLIT = 10, 100
"""Halves of the rows, drawn by group: one is fitted to, the other judged, for all methods alike."""

REGION_DIMENSIONS = (2, 3, 4, 5, 6, 8, 10, 15)
WORD_DIMENSIONS = (2, 5, 10, 20)

N_NEIGHBOURS = 5
"""Neighbours among the rows of the fit, in the reduced space, that recognise a held-out row."""

LDA_COMPONENTS = 50
"""Ordinary components that the supervised rival, linear discriminant analysis, begins with."""

SMALL = (10, 20, 50)
"""People of the small population in the fit; as many as a hundred are held out."""

SEEDS = 5
N_VARIANTS, LEAST_FREQUENCY = 5000, 0.01
"""Variants of a simulated genome, drawn from those with a minor allele of at least this share."""

TESTED = 2000
"""Variants that are tested for association with a phenotype that depends on no gene."""

MEDIAN_CHI2 = 0.4549364

EXPECTED = """
- Regions: with `minmax, share` and 4 or 5 components, balanced accuracy and worst recall are clearly better than with PCA of as many, and at r = 2, 10 and 15 they are not. Measured by disparity, no criterion is better at any r. LDA is better than all with six components.
- The populations within regions are recognised no better than with PCA.
- Small populations: with 20 people in the fit, `soft` and `minmax` tell them from their neighbours better than PCA does, in every history; the criteria of the share lost do not.
- Inflation: no expectation.
- Words: the worst language's share lost is smaller with the criteria of the share, by at most a tenth, and retrieval changes by less than two percentage points.
"""


# --- Methods: from rows and labels to a function that reduces rows --------------------


def _pca(X: Array, labels: Labels, r: int, seed: int) -> Any:
    return PCA(r, svd_solver="covariance_eigh" if X.shape[1] < len(X) else "full").fit(X)


def _balanced_sample(X: Array, labels: Labels, r: int, seed: int) -> Any:
    """PCA of as many rows of each group as the smallest has."""
    rng = np.random.default_rng(seed)
    names, counts = np.unique(labels, return_counts=True)
    some = np.concatenate(
        [rng.choice(np.flatnonzero(labels == name), counts.min(), replace=False) for name in names]
    )
    model = _pca(X[some], labels[some], min(r, len(some) - 1), seed)
    model.sample_ = some
    return model


class _Discriminant:
    """Linear discriminant analysis of ordinary components."""

    def __init__(self, X: Array, labels: Labels, r: int) -> None:
        self._pca = _pca(X, labels, min(LDA_COMPONENTS, *X.shape), 0)
        n = min(r, len(np.unique(labels)) - 1)
        self._lda = LinearDiscriminantAnalysis(n_components=n)
        self._lda.fit(self._pca.transform(X), labels)

    def transform(self, X: Array) -> Array:
        return np.asarray(self._lda.transform(self._pca.transform(X)))


def _lda(X: Array, labels: Labels, r: int, seed: int) -> Any:
    return _Discriminant(X, labels, r)


def _fair(criterion: Any, *, shuffled: bool = False) -> Callable[..., Any]:
    def fit(X: Array, labels: Labels, r: int, seed: int) -> Any:
        if shuffled:
            labels = np.random.default_rng(seed).permutation(labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return FairPCA(r, criterion=criterion).fit(X, sensitive_features=labels)

    return fit


METHODS: dict[str, Callable[..., Any]] = {
    "PCA": _pca,
    "balanced PCA": _fair("balanced"),
    "PCA of a balanced sample": _balanced_sample,
    "downsampling": _balanced_sample,
    "soft": _fair(SoftMinMax()),
    "soft, share": _fair(SoftMinMax("share_lost")),
    "minmax": _fair(MinMax()),
    "minmax, share": _fair(MinMax("share_lost")),
    "minmax, share, shuffled labels": _fair(MinMax("share_lost"), shuffled=True),
    "LDA of 50 components": _lda,
}
SHORT = ("PCA", "balanced PCA", "soft", "soft, share", "minmax", "minmax, share")


# --- Tables ---------------------------------------------------------------------------


def alleles(name: str) -> tuple[Array, Labels, Labels]:
    """Counts of alleles with gaps, the group of each individual, and a finer one."""
    found = _r_file("adegenet", name)
    table = np.asarray(found.tab, dtype=np.float64)
    if name == "microbov":
        breeds = np.asarray(found.other["breed"], dtype=str)
        return table, breeds, breeds
    population = np.asarray(found.pop, dtype=int) - 1
    regions = found.other["popInfo"]["Region"].to_numpy().astype(str)[population]
    return table, regions, population.astype(str)


def filled(X: Array, chosen: NDArray[np.bool_]) -> Array:
    """Gaps as the mean of the column over the chosen rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a column without a value there
        means = np.nan_to_num(np.nanmean(X[chosen], axis=0))
    return np.where(np.isnan(X), means, X)


# --- What the other half shows --------------------------------------------------------


def in_their_span(fitted: Array, others: Array) -> tuple[Array, Array, Array]:
    """Coordinates of both by the principal axes of the fitted, and what they leave of others.

    The last is the square of each row's distance from the space that the fitted rows span.
    """
    mean = fitted.mean(axis=0)
    fitted, others = fitted - mean, others - mean
    values, turn = np.linalg.eigh(fitted @ fitted.T)
    some = values > 1e-9 * values[-1]
    values, turn = values[some][::-1], turn[:, some][:, ::-1]
    inside = (others @ fitted.T) @ (turn / np.sqrt(values))
    outside = np.square(others).sum(axis=1) - np.square(inside).sum(axis=1)
    return turn * np.sqrt(values), inside, np.maximum(outside, 0.0)


def share_lost(model: Any, X: Array, labels: Labels, outside: Array) -> float:
    """The largest share of a group's second moments about the training mean that is lost."""
    if isinstance(model, _Discriminant):
        return float("nan")  # it has no inverse
    left = np.square(X - model.inverse_transform(model.transform(X))).sum(axis=1) + outside
    whole = np.square(X).sum(axis=1) + outside
    return max(
        float(left[labels == name].sum() / whole[labels == name].sum())
        for name in np.unique(labels)
    )


def recognised(
    model: Any, name: str, train: tuple[Array, Labels], test: tuple[Array, Labels]
) -> tuple[float, float]:
    """Balanced accuracy of nearest neighbours in the reduced space, and the worst recall."""
    rows, labels = train
    if name == "downsampling":
        rows, labels = rows[model.sample_], labels[model.sample_]
    neighbours = KNeighborsClassifier(N_NEIGHBOURS).fit(model.transform(rows), labels)
    found = neighbours.predict(model.transform(test[0]))
    known = np.unique(test[1])
    recalls = recall_score(test[1], found, labels=known, average=None, zero_division=0.0)
    return float(np.mean(recalls)), float(np.min(recalls))


def judged_half(
    table: tuple[Array, Labels, Labels], seed: int, dimensions: tuple[int, ...]
) -> dict[tuple[str, int], dict[str, float]]:
    """What each method, fitted to one half, shows of the other; by method and dimension."""
    X, groups, finer = table
    chosen = halves(groups, FIRST_SPLIT + seed)
    X, other = filled(X, chosen), ~chosen
    fitted, others, outside = in_their_span(X[chosen], X[other])
    known = np.isin(finer[other], finer[chosen])
    result = {}
    for r in dimensions:
        for name, fit in METHODS.items():
            model = fit(fitted, groups[chosen], r, seed)
            train, test = (fitted, groups[chosen]), (others, groups[other])
            accuracy, worst = recognised(model, name, train, test)
            train, test = (fitted, finer[chosen]), (others[known], finer[other][known])
            fine, _ = recognised(model, name, train, test)
            lost = share_lost(model, others, groups[other], outside)
            figures = {"accuracy": accuracy, "worst": worst, "finer": fine, "lost": lost}
            result[name, r] = figures
    return result


def run_table(name: str, dimensions: tuple[int, ...]) -> dict[str, Any]:
    """All methods, dimensions and splits of one table."""
    return _halved(alleles(name), dimensions)


def _halved(table: tuple[Array, Labels, Labels], dimensions: tuple[int, ...]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for seed in range(N_SPLITS):
        for (method, r), figures in judged_half(table, seed, dimensions).items():
            here = result.setdefault(method, {}).setdefault(str(r), {})
            for what, value in figures.items():
                here.setdefault(what, []).append(None if np.isnan(value) else round(value, 5))
        print("split", seed + 1, "of", N_SPLITS, flush=True)
    return result


# --- Small populations in simulated genomes -------------------------------------------


def _out_of_africa() -> Any:
    """Four populations; the youngest split, of CHB and JPT, is 9,000 years old.

    Sizes, growth, times and migration are those of table 4 of Jouganous et al. (2017), "Inferring
    the joint demographic history of multiple populations", doi 10.1534/genetics.117.200493.
    """
    msprime = import_module("msprime")
    history, (africa, split, asia, japan) = msprime.Demography(), (12310, 4103, 1586, 310)
    history.add_population(name="YRI", initial_size=23721)
    for name, size, growth, since in (
        ("CEU", 2512, 0.0016, asia),
        ("CHB", 1019, 0.0026, asia),
        ("JPT", 4384, 0.0129, japan),
    ):
        history.add_population(
            name=name,
            initial_size=size * np.exp(growth * since),
            growth_rate=growth,
            initially_active=True,
        )
    history.add_population(name="OOA", initial_size=2831)
    history.add_population(name="all", initial_size=23721)
    for one, other, rate in (
        ("YRI", "CEU", 1.14e-5),
        ("YRI", "CHB", 0.56e-5),
        ("CEU", "CHB", 4.75e-5),
        ("CHB", "JPT", 3.3e-5),
    ):
        history.set_symmetric_migration_rate([one, other], rate)
    history.add_population_split(time=japan, derived=["JPT"], ancestral="CHB")
    history.add_population_split(time=asia, derived=["CEU", "CHB"], ancestral="OOA")
    history.add_symmetric_migration_rate_change(asia, ["YRI", "OOA"], 16.8e-5)
    history.add_population_split(time=split, derived=["YRI", "OOA"], ancestral="all")
    history.add_population_parameters_change(time=africa, population="all", initial_size=11293)
    return history


def _recent_split() -> Any:
    """Four populations of equal size from a tree; two of them have parted 100 generations ago."""
    msprime = import_module("msprime")
    history = msprime.Demography()
    for name in ("YRI", "CEU", "CHB", "JPT", "east", "north", "all"):
        history.add_population(name=name, initial_size=10_000)
    history.add_population_split(time=100, derived=["CHB", "JPT"], ancestral="east")
    history.add_population_split(time=1000, derived=["CEU", "east"], ancestral="north")
    history.add_population_split(time=2000, derived=["YRI", "north"], ancestral="all")
    return history


def _stepping_stones() -> Any:
    """Four populations in a row, of which neighbours exchange people, since 2,000 generations."""
    msprime = import_module("msprime")
    history = msprime.Demography()
    names = ["YRI", "CEU", "CHB", "JPT"]
    for name in (*names, "all"):
        history.add_population(name=name, initial_size=5_000)
    for one, other in pairwise(names):
        history.set_symmetric_migration_rate([one, other], 1e-3)
    history.add_population_split(time=2000, derived=names, ancestral="all")
    return history


HISTORIES: dict[str, Callable[[], Any]] = {
    "out of Africa": _out_of_africa,
    "recent split": _recent_split,
    "stepping stones": _stepping_stones,
}
"""Histories of four populations. The last is the small one, the one before its neighbour."""

FITTED = {"YRI": 60, "CEU": 600, "CHB": 200}
HELD_OUT = 100


def genotypes(history: str, seed: int) -> tuple[Array, Labels]:
    """Dosages of enough people of each population, and the population of each."""
    msprime = import_module("msprime")
    samples = {name: n + HELD_OUT for name, n in {**FITTED, "JPT": max(SMALL)}.items()}
    trees = msprime.sim_ancestry(
        samples,
        demography=HISTORIES[history](),
        sequence_length=2e7,
        recombination_rate=1e-8,
        random_seed=seed + 1,
    )
    trees = msprime.sim_mutations(
        trees, rate=1.4e-8, random_seed=seed + 1, model=msprime.BinaryMutationModel()
    )
    rng = np.random.default_rng(seed)
    kept = []
    for variant in trees.variants():
        dosage = variant.genotypes.reshape(-1, 2).sum(axis=1)
        share = dosage.mean() / 2
        if min(share, 1 - share) >= LEAST_FREQUENCY:
            kept.append(dosage.astype(np.int8))
    some = rng.choice(len(kept), min(N_VARIANTS, len(kept)), replace=False)
    names = {i: trees.population(i).metadata["name"] for i in range(trees.num_populations)}
    labels = np.array(
        [names[trees.node(trees.individual(i).nodes[0]).population] for i in range(len(kept[0]))]
    )
    return np.array(kept)[np.sort(some)].T.astype(np.float64), labels


def patterson(X: Array, chosen: NDArray[np.bool_]) -> Array:
    """Dosages over the standard deviation that the allele's frequency implies (Patterson 2006)."""
    share = (1.0 + X[chosen].sum(axis=0)) / (2.0 + 2.0 * chosen.sum())
    scaled: Array = (X - 2 * share) / np.sqrt(share * (1 - share))
    return scaled


def people_of(
    labels: Labels, n_small: int, order: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Who is fitted to, and who judges: as many held-out people of CHB and of JPT."""
    chosen = np.zeros(len(labels), dtype=bool)
    for name, n in {**FITTED, "JPT": n_small}.items():
        chosen[order[labels[order] == name][:n]] = True
    other = ~chosen & np.isin(labels, ["CHB", "JPT"])
    for name in ("CHB", "JPT"):  # the last in the order
        other[order[labels[order] == name][:-HELD_OUT]] = False
    return chosen, other


def judged_genomes(history: str, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """For each size of the small population and each method: what is seen of it, and inflation."""
    X, labels = genotypes(history, seed)
    rng = np.random.default_rng(seed)
    effects = {name: float(rng.normal()) for name in np.unique(labels)}
    order = rng.permutation(len(labels))
    result: dict[str, dict[str, dict[str, float]]] = {}
    for n_small in SMALL:
        chosen, other = people_of(labels, n_small, order)
        scaled = patterson(X, chosen)
        phenotype = np.array([effects[name] for name in labels[chosen]])
        phenotype = phenotype + rng.normal(size=len(phenotype))
        tested = scaled[chosen][:, :TESTED]
        inside, others, _ = in_their_span(scaled[chosen], scaled[other])
        fitted, judged = (inside, labels[chosen]), (others, labels[other])
        here = result.setdefault(str(n_small), {})
        here["no components"] = {"inflation": _inflation(inside[:, :0], tested, phenotype)}
        for method, fit in METHODS.items():
            if method == "downsampling":
                continue  # a discriminant of the reduced rows is another question
            model = fit(*fitted, 3, seed)
            here[method] = {
                "auc": _told_apart(model, fitted, judged),
                "inflation": _inflation(model.transform(inside), tested, phenotype),
            }
    return result


def _told_apart(model: Any, train: tuple[Array, Labels], test: tuple[Array, Labels]) -> float:
    """AUC of the small population against its neighbour, by a discriminant of the reduced rows."""
    pair = np.isin(train[1], ["CHB", "JPT"])
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=[0.5, 0.5])
    lda.fit(model.transform(train[0][pair]), train[1][pair] == "JPT")
    return float(roc_auc_score(test[1] == "JPT", lda.decision_function(model.transform(test[0]))))


def _inflation(covariates: Array, variants: Array, phenotype: Array) -> float:
    """Median of the association tests' chi-squares over that without any association."""
    design = np.column_stack([np.ones(len(phenotype)), covariates])
    basis = np.linalg.qr(design)[0]

    def residual(values: Array) -> Array:
        left: Array = values - basis @ (basis.T @ values)
        return left

    y, g = residual(phenotype), residual(variants)
    squares = np.square(g).sum(axis=0)
    some = squares > 1e-9 * np.square(variants).sum(axis=0)
    r2 = np.square(g.T @ y)[some] / (squares[some] * float(y @ y))
    degrees = len(y) - design.shape[1] - 1
    return float(np.median(degrees * r2 / (1 - r2)) / MEDIAN_CHI2)


def run_small() -> dict[str, Any]:
    """All histories and seeds."""
    result: dict[str, Any] = {}
    for history, seed in product(HISTORIES, range(SEEDS)):
        print(history, seed, flush=True)
        for n_small, methods in judged_genomes(history, seed).items():
            for method, figures in methods.items():
                here = result.setdefault(history, {}).setdefault(n_small, {})
                for what, value in figures.items():
                    here.setdefault(method, {}).setdefault(what, []).append(round(value, 4))
    return result


# --- Words by language ----------------------------------------------------------------


def run_words() -> dict[str, Any]:
    """All methods, dimensions and splits of the words; the languages are the finer groups too."""
    rows, labels = _words()
    names = np.asarray(labels, dtype=str)
    return _halved((np.asarray(rows), names, names), WORD_DIMENSIONS)


# --- Choosing the measure by people of the fit ----------------------------------------

CANDIDATES = ("PCA", "soft", "soft, share", "minmax", "minmax, share")
RULE_DIMENSIONS = (2, 4, 6, 10, 15)


def chosen_method(X: Array, labels: Labels, r: int, seed: int) -> str:
    """The candidate that is best at recognising the groups of one half by the other, and back.

    They are recognised by a discriminant of the reduced rows with equal priors, for which a group
    of ten counts as much as one of a thousand. The first of those that are equally good.
    """
    first = halves(labels, seed)
    found = []
    for name in CANDIDATES:
        scores = []
        for fitted in (first, ~first):
            inside, others, _ = in_their_span(X[fitted], X[~fitted])
            model = METHODS[name](inside, labels[fitted], r, seed)
            scores.append(discriminated(model, inside, labels[fitted], others, labels[~fitted]))
        found.append(np.mean(scores))
    return CANDIDATES[int(np.argmax(found))]


def discriminated(model: Any, X: Array, labels: Labels, others: Array, known: Labels) -> float:
    """Balanced accuracy of a discriminant of the reduced rows with equal priors."""
    k = len(np.unique(labels))
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=np.full(k, 1 / k))
    found = lda.fit(model.transform(X), labels).predict(model.transform(others))
    return float(recall_score(known, found, average="macro", zero_division=0.0))


def run_rule() -> dict[str, Any]:
    """What would be chosen in each half that was fitted to, of tables and of genomes."""
    result: dict[str, Any] = {}
    for part, name in (("regions", "eHGDP"), ("breeds", "microbov")):
        X, groups, _ = alleles(name)
        for seed, r in product(range(N_SPLITS), RULE_DIMENSIONS):
            chosen = halves(groups, FIRST_SPLIT + seed)
            rows = filled(X, chosen)[chosen]
            found = chosen_method(rows, groups[chosen], r, seed)
            result.setdefault(part, {}).setdefault(str(r), []).append(found)
        print(part, flush=True)
    for history, seed in product(HISTORIES, range(SEEDS)):
        X, labels = genotypes(history, seed)
        for n_small in SMALL[1:]:
            order = np.random.default_rng(seed).permutation(len(labels))
            chosen, _ = people_of(labels, n_small, order)
            found = chosen_method(patterson(X, chosen)[chosen], labels[chosen], 3, seed)
            result.setdefault(history, {}).setdefault(str(n_small), []).append(found)
        print(history, seed, flush=True)
    return result


# --- Held-out people of whom some loci are missing -------------------------------------

HIDDEN = (0.0, 0.25, 0.5, 0.75, 0.9)
"""Shares of the loci that are hidden of each held-out person."""

GAPS_DIMENSION = 5


def run_gaps() -> dict[str, Any]:
    """How well the region is recognised, and how far people are from where they belong."""
    X, groups, _ = alleles("eHGDP")
    loci = np.asarray(getattr(_r_file("adegenet", "eHGDP"), "loc.fac").codes, dtype=np.intp)
    n_loci = int(loci.max()) + 1
    result: dict[str, Any] = {}
    for seed in range(N_SPLITS):
        rng, chosen = np.random.default_rng(seed), halves(groups, FIRST_SPLIT + seed)
        varying = np.nanstd(X[chosen], axis=0) > 0
        train, test = X[chosen][:, varying], X[~chosen][:, varying]
        fits = {
            "PCA": FairPCA(GAPS_DIMENSION, groups=None, missing_values="mean").fit(train),
            "minmax, share": _filled_fair(train, groups[chosen]),
        }
        order = rng.random((len(test), n_loci)).argsort(axis=1).argsort(axis=1)
        for name, model in fits.items():
            whole = model.transform(test)
            neighbours = KNeighborsClassifier(N_NEIGHBOURS).fit(
                model.transform(train), groups[chosen]
            )
            spread = np.square(whole - whole.mean(axis=0)).sum()
            for share in HIDDEN:
                hidden = (order < share * n_loci)[:, loci[varying]]
                gappy = np.where(hidden, np.nan, test)
                means = np.where(np.isnan(gappy), model.mean_, gappy)
                for how, rows in (("least squares", gappy), ("means", means)):
                    reduced = model.transform(rows)
                    recalls = recall_score(
                        groups[~chosen], neighbours.predict(reduced), average=None
                    )
                    here = result.setdefault(name, {}).setdefault(how, {})
                    figures = {
                        "accuracy": np.mean(recalls),
                        "error": np.square(reduced - whole).sum() / spread,
                    }
                    for what, value in figures.items():
                        at = here.setdefault(what, {}).setdefault(str(share), [])
                        at.append(round(float(value), 5))
        print("gaps", seed, flush=True)
    return result


def _filled_fair(X: Array, labels: Labels) -> FairPCA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fair = FairPCA(GAPS_DIMENSION, criterion=MinMax("share_lost"), missing_values="mean")
        return fair.fit(X, sensitive_features=labels)


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "regions": lambda: run_table("eHGDP", REGION_DIMENSIONS),
    "breeds": lambda: run_table("microbov", REGION_DIMENSIONS),
    "small": run_small,
    "words": run_words,
    "rule": run_rule,
    "gaps": run_gaps,
}


# --- The page -------------------------------------------------------------------------

SHOWN = {
    "accuracy": "Balanced accuracy",
    "worst": "Recall of the group that is recognised worst",
    "lost": "Largest share of its variance that a group loses",
}


def interval(values: Any, *, halves: bool) -> tuple[float, float]:
    """Mean, and half of its 95 % interval; halves of one table share rows (Nadeau and Bengio)."""
    found = np.asarray(values, dtype=np.float64)
    n = len(found)
    factor = 1 / n + (1.0 if halves else 0.0)
    half = scipy.stats.t.ppf(0.975, n - 1) * np.sqrt(found.var(ddof=1) * factor)
    return float(found.mean()), float(half)


def against(found: dict[str, Any], method: str, *keys: str) -> tuple[float, float]:
    """The difference from PCA, and half of its interval."""
    one, pca = (_at(found[name], *keys) for name in (method, "PCA"))
    return interval(np.subtract(one, pca), halves=True)


def _at(found: Any, *keys: str) -> Any:
    for key in keys:
        found = found[key]
    return found


def _cell(mean: float, difference: tuple[float, float] | None, digits: int = 1) -> str:
    if np.isnan(mean):
        return ""
    text = f"{100 * mean:.{digits}f}"
    if difference is None:
        return text
    change, half = (100 * part for part in difference)
    text += f" ({change:+.{digits}f} ± {half:.{digits}f})"
    return f"**{text}**" if abs(change) > half else text


def table_lines(found: dict[str, Any], what: str) -> list[str]:
    """One figure of all methods by the number of components, in per cent."""
    dimensions = list(found["PCA"])
    dimensions.sort(key=int)
    lines = [f"| | {' | '.join(f'r = {r}' for r in dimensions)} |", "|---" * (len(dimensions) + 1)]
    lines[1] += "|"
    for method in [name for name in METHODS if name in found]:
        cells = []
        for r in dimensions:
            values = found[method][r][what]
            there = values[0] is not None
            differs = method != "PCA" and there
            cells.append(
                _cell(
                    float(np.mean(values)) if there else float("nan"),
                    against(found, method, r, what) if differs else None,
                )
            )
        if any(cells):
            lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def small_lines(found: dict[str, Any], what: str) -> list[str]:
    """AUC or inflation in the simulated genomes: mean and range over the seeds."""
    columns = [(history, str(n)) for history in HISTORIES for n in SMALL]
    heads = [f"{history}, {n}" for history, n in columns]
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    names = [*(["no components"] if what == "inflation" else []), *METHODS]
    for method in names:
        if method not in found[columns[0][0]][columns[0][1]]:
            continue
        cells = []
        for history, n in columns:
            here = found[history][n]
            values = np.asarray(here[method][what])
            text = f"{values.mean():.2f} ({values.min():.2f}–{values.max():.2f})"
            if what == "auc" and method != "PCA":
                mean, half = interval(values - here["PCA"][what], halves=False)
                text = f"**{text}**" if abs(mean) > half else text
            cells.append(text)
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def choices(data: dict[str, Any]) -> list[tuple[str, tuple[float, float], list[str]]]:
    """Each case of the rule: its name, the difference from PCA, and the cells of its row."""
    found = []
    for case, keys in data["rule"].items():
        for key, names in sorted(keys.items(), key=lambda item: int(item[0])):
            if case in HISTORIES:
                title, values, halved = f"{case}, {key} people", data["small"][case][key], False
                figures = {name: values[name]["auc"] for name in CANDIDATES}
            else:
                title, halved = f"{case}, r = {key}", True
                figures = {name: data[case][name][key]["accuracy"] for name in CANDIDATES}
            chosen = [figures[name][i] for i, name in enumerate(names)]
            change = interval(np.subtract(chosen, figures["PCA"]), halves=halved)
            means = [float(np.mean(figures[name])) for name in CANDIDATES]
            cells = [_counts(names), _cell(float(np.mean(chosen)), change)]
            cells += [_cell(mean, None) for mean in means]
            found.append((title, change, cells))
    return found


def rule_lines(data: dict[str, Any]) -> list[str]:
    """What was chosen by the people of the fit, and what that shows of others."""
    heads = ["", "chosen", "of the chosen", *CANDIDATES]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return [*lines, *(f"| {title} | {' | '.join(cells)} |" for title, _, cells in choices(data))]


def _counts(names: list[str]) -> str:
    return ", ".join(f"{name} {names.count(name)}" for name in CANDIDATES if name in names)


def gap_lines(found: dict[str, Any]) -> list[str]:
    """Balanced accuracy and distances for people of whom some loci are missing."""
    heads = [f"{100 * share:.0f} % hidden" for share in HIDDEN]
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for name, ways in found.items():
        for how, figures in ways.items():
            cells = [
                f"{100 * np.mean(figures['accuracy'][str(share)]):.1f} "
                f"({100 * np.mean(figures['error'][str(share)]):.1f})"
                for share in HIDDEN
            ]
            lines.append(f"| {name}, {how} | {' | '.join(cells)} |")
    return lines


HEAD = """# Genomes and words: what is recognised of other people

A reduction is fitted to one half of the people, and the other half judges it: is the region of a held-out person recognised by the five nearest people of the fit? Made by `python -m studies.genomes`, whose head has the packages that the data come from, and what was changed when.

Fair PCA (`soft`, `minmax`; by disparity, or by the share of a group's variance that is lost) stands beside ordinary PCA and

- **balanced PCA**: each group weighs the same;
- **PCA of a balanced sample**: as many people of each group as the smallest has, and all others projected on it;
- **downsampling**: the same, with the others left out of the neighbours too;
- **shuffled labels**: the fit has wrong labels, a control;
- **LDA of 50 components**: linear discriminant analysis, a supervised rival, which has at most as many dimensions as there are groups, less one.

Fair PCA has the labels of the people of the fit, as LDA has; PCA has not. Figures are means of ten halves in per cent, and in brackets the difference from PCA with its 95 % interval (Nadeau and Bengio 2003, for halves that share rows); bold where that excludes zero, which one in twenty does by chance.
"""

PICTURE_TEXT = "Means of ten halves, with their standard deviations; the last panel has the means of three histories with five genomes each."

TABLES = {
    "regions": (
        "Regions of people",
        "HGDP: 1,350 people, 8,170 alleles of 678 microsatellites, 4 % of them missing (means of the fit in the gaps); seven regions of 30 (Oceania) to 431 people (America).",
    ),
    "breeds": (
        "Breeds of cattle",
        "704 animals, 373 alleles of 30 microsatellites; 15 breeds of 30 to 61 animals.",
    ),
    "words": (
        "Words by language",
        "Vectors of 256 dimensions of the 500 most frequent words of eight languages (wordllama, wordfreq). Accuracy is that of retrieval: whether the neighbours among the words of the fit are of the same language.",
    ),
}

FINER = "The population, of 79, that the nearest people are of, balanced accuracy in per cent:"

SMALL_TEXT = f"""Simulated genomes: {N_VARIANTS:,} variants, Patterson's scaling, r = 3; 600, 200 and 60 people of three populations in the fit, and {", ".join(map(str, SMALL[:-1]))} or {SMALL[-1]} of a fourth, a neighbour of the second. The histories are a model of the spread out of Africa (Jouganous et al. 2017), a split 100 generations ago, and neighbours that exchange people. AUC with which {HELD_OUT} held-out people of the small population are told from as many of its neighbour by a discriminant of the reduced rows; mean and range of {SEEDS} genomes, bold where the difference from PCA is clear (a t-interval of 95 %).
"""

INFLATION_TEXT = f"""Confounding: a phenotype that differs by population and depends on no gene is tested for association with {TESTED:,} variants, with the three components as covariates. Genomic inflation (1 is right):
"""

RULE_TEXT = """Can the people of the fit choose the measure? Of five candidates, the one that is best at recognising the groups of one half of them by the other (a discriminant with equal priors). Balanced accuracy of held-out people, or the AUC of the small population, in per cent:
"""

GAPS_TEXT = f"""HGDP, {GAPS_DIMENSION} components: a share of the loci of each held-out person is hidden, and the person is placed by least squares on the alleles that are there, as `FairPCA(missing_values="mean")` does, or with column means in the gaps. Balanced accuracy of the region, and in brackets the squared distance from the place of the whole person, as a share of the variance on the map; both in per cent:
"""


EXPECTED_FOUND = """What was expected of four, five and fifteen components, of the populations, of LDA and of the words came out. Missed: with ten components the gain in accuracy is clear (that in the worst recall is not); with two, `soft` and `minmax` by disparity are clearly better than PCA; after a recent split neither helps a small population, and out of Africa `soft` needs 50 people where `minmax` needs ten."""


def reading(data: dict[str, Any]) -> str:
    """What the figures say, in words, and a rule."""
    regions, small = data["regions"], data["small"]

    def share(part: Any, method: str, r: int, what: str = "accuracy") -> str:
        return f"{100 * np.mean(part[method][str(r)][what]):.0f}"

    def auc(history: str, n: int, method: str) -> str:
        return f"{np.mean(small[history][str(n)][method]['auc']):.2f}"

    def worse(method: str) -> str:
        some = [
            r
            for r in REGION_DIMENSIONS[1:]
            if sum(against(regions, method, str(r), "accuracy")) < 0.0
        ]
        return f"{method} is clearly worse than PCA with {', '.join(map(str, some))}"

    def chosen(sign: int | None) -> str:
        found = [change for _, change, _ in choices(data)]
        some = [sign is None or sign * mean > half for mean, half in found]
        return str(sum(some))

    def hidden(how: str) -> str:
        return f"{100 * np.mean(data['gaps']['PCA'][how]['accuracy']['0.5']):.0f}"

    def inflation(method: str) -> str:
        values = [
            np.mean(small[history][str(n)][method]["inflation"])
            for history in HISTORIES
            for n in SMALL
        ]
        return f"{min(values):.2f} to {max(values):.2f}"

    ours, lda = "minmax, share", "LDA of 50 components"
    lost = [
        100 * (np.mean(data["words"]["PCA"][r]["lost"]) - np.mean(data["words"][ours][r]["lost"]))
        for r in data["words"]["PCA"]
    ]
    retrieval = [
        100 * (np.mean(data["words"][m][r]["accuracy"]) - np.mean(found["accuracy"]))
        for r, found in data["words"]["PCA"].items()
        for m in (ours, "soft, share", "soft")
    ]
    return f"""## What this says

- **Regions of unequal size: a large gain, by the share lost.** With four components and `{ours}`, the region of {share(regions, ours, 4)} % of held-out people is recognised (regions weigh the same), with PCA that of {share(regions, "PCA", 4)} %; of the worst region {share(regions, ours, 4, "worst")} % instead of {share(regions, "PCA", 4, "worst")} %. PCA needs ten to fifteen components for that ({share(regions, "PCA", 10)} and {share(regions, "PCA", 15)} %). `soft, share` gains nearly as much. With fifteen components nothing is gained, and the *populations* within the regions are recognised no better at any number: the gain is what the labels of the fit are about. With shuffled labels the figure for four components is {share(regions, "minmax, share, shuffled labels", 4)} %.
- **LDA is the rival to beat** where recognising the groups is all that is wanted. It has {share(regions, lda, 4)} % with four components and {share(regions, lda, 6)} % from six on, and does more for breeds and after a recent split than any fair map. It has no inverse, and no more dimensions than groups, less one.
- **Balancing and downsampling: good for two components, and costly beyond.** With two, balanced PCA recognises {share(regions, "balanced PCA", 2)} %, PCA of a balanced sample {share(regions, "PCA of a balanced sample", 2)} %, PCA {share(regions, "PCA", 2)} % and `soft, share` {share(regions, "soft, share", 2)} %. With more, {worse("balanced PCA")}, {worse("PCA of a balanced sample")}, {worse("downsampling")}, and none of them is clearly better. Each small group's own variation takes the components. The same happens to `minmax` by disparity: {worse("minmax")}, and the worst region is not recognised at all with ten.
- **Groups of equal size: nothing.** Breeds of cattle are recognised no better by any fair map, and by `{ours}` clearly worse with few components. What `{ours}` promises, that the largest share lost is smaller, holds on held-out rows all the same.
- **Small populations: by disparity, where PCA does not see them.** In the genomes out of Africa, 20 people of a small population are told from their neighbours with an AUC of {auc("out of Africa", 20, "minmax")} by `minmax` and {auc("out of Africa", 20, "soft")} by `soft` ({auc("out of Africa", 20, "PCA")} with PCA, {auc("out of Africa", 20, lda)} with LDA); among stepping stones both are at {auc("stepping stones", 20, "soft")} ({auc("stepping stones", 20, "PCA")}). After a split 100 generations ago neither is clearly better ({auc("recent split", 20, "minmax")} and {auc("recent split", 20, "soft")} against {auc("recent split", 20, "PCA")}; LDA {auc("recent split", 20, lda)}). The share lost is the wrong measure here, at chance or below PCA.
- **Covariates of an association test: PCA.** Inflation is {inflation("PCA")} with PCA and {inflation("soft")} with `soft`, but {inflation("minmax")} with `minmax` and {inflation(ours)} with `{ours}`, which let go of axes that matter for large groups.
- **Words: modest.** The largest share that a language loses is {min(lost):.1f} to {max(lost):.1f} percentage points smaller, and retrieval changes by {min(retrieval):+.1f} to {max(retrieval):+.1f} points.
- **Missing loci: least squares.** With half of the loci hidden, the region of {hidden("least squares")} % is recognised with PCA's five components by least squares, and of {hidden("means")} % with means in the gaps, which draw people to the middle of the map.

**A rule.** For covariates take PCA or `soft`. Where all groups should be seen: if they are of about equal size, PCA. If not, fit PCA, the disparity and the share lost to one half of your people, let a discriminant with equal priors recognise the groups of the other half, and take what does best. Chosen in this way ([below](#choosing-the-measure)) the measure was clearly better than PCA in {chosen(1)} of {chosen(None)} cases and clearly worse in {chosen(-1)}. As a first guess, take the share lost where a few groups are far apart and unequally diverse, and the disparity where a small group lies beside a large one.
"""


def page(data: dict[str, Any]) -> str:
    """The page of all figures."""
    lines = [HEAD, reading(data), "![What the other half shows](genomes.png)\n", PICTURE_TEXT]
    for part, (title, text) in TABLES.items():
        lines += [f"\n## {title}\n", text]
        for what, name in SHOWN.items():
            lines += [f"\n{name}, in per cent:\n", *table_lines(data[part], what)]
        if part == "regions":
            lines += [f"\n{FINER}\n", *table_lines(data[part], "finer")]
    lines += ["\n## Small populations in simulated genomes\n", SMALL_TEXT]
    lines += [*small_lines(data["small"], "auc"), f"\n{INFLATION_TEXT}"]
    lines += small_lines(data["small"], "inflation")
    lines += ["\n## Choosing the measure\n", RULE_TEXT, *rule_lines(data)]
    lines += ["\n## People of whom some loci are missing\n", GAPS_TEXT, *gap_lines(data["gaps"])]
    lines += ["\n## What had been expected\n", EXPECTED.strip(), f"\n{EXPECTED_FOUND}"]
    return "\n".join(lines) + "\n"


def draw_picture(data: dict[str, Any]) -> None:
    """Regions by the number of components, and small populations by their size."""
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(11, 3.8))
    styles = {
        "PCA": ("#555555", "o"),
        "PCA of a balanced sample": ("#CC79A7", "x"),
        "soft": ("#0072B2", "s"),
        "minmax": ("#56B4E9", "P"),
        "soft, share": ("#E69F00", "^"),
        "minmax, share": ("#D55E00", "D"),
        "LDA of 50 components": ("#009E73", "v"),
    }
    for ax, what in zip(panels, ("accuracy", "worst"), strict=False):
        for i, (method, (color, marker)) in enumerate(styles.items()):
            found = data["regions"][method]
            places = [int(r) * 1.02 ** (i - 2.5) for r in found]
            means = [100 * np.mean(found[r][what]) for r in found]
            order = np.argsort(places)
            spread = [100 * np.std(found[r][what], ddof=1) for r in found]
            ax.errorbar(
                np.asarray(places)[order],
                np.asarray(means)[order],
                np.asarray(spread)[order],
                color=color,
                marker=marker,
                markersize=4,
                linewidth=1.2,
                elinewidth=0.6,
                label=method,
            )
        ax.set_xscale("log")
        ax.set_xticks(REGION_DIMENSIONS, [str(r) for r in REGION_DIMENSIONS])
        ax.minorticks_off()
        ax.set_xlabel("components")
        ax.set_ylabel(f"{'balanced accuracy' if what == 'accuracy' else 'worst recall'}, %")
    panels[0].set_title("Regions of held-out people")
    panels[1].set_title("The region recognised worst")
    for i, (method, (color, marker)) in enumerate(styles.items()):
        means = [
            np.mean([data["small"][h][str(n)][method]["auc"] for h in HISTORIES]) for n in SMALL
        ]
        places = np.asarray(SMALL) * 1.02 ** (i - 2.5)
        panels[2].plot(places, means, color=color, marker=marker, markersize=4, linewidth=1.2)
    panels[2].set_xscale("log")
    panels[2].set_xticks(SMALL, [str(n) for n in SMALL])
    panels[2].minorticks_off()
    panels[2].set_xlabel("people of the small population in the fit")
    panels[2].set_ylabel("AUC against its neighbour, held out")
    panels[2].set_title("Simulated genomes, r = 3")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=7, fontsize=8)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(PICTURE, dpi=150)


def main() -> None:
    """Run the parts named, or all, and write what they found and the page."""
    data = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    for part in sys.argv[1:] or PARTS:
        if part == "page":
            continue
        try:
            data[part] = PARTS[part]()
        except (ImportError, FileNotFoundError) as error:
            print(f"{part} is left out: {error}", flush=True)
            continue
        DATA.write_text(dumped(data), encoding="utf-8")
    TARGET.write_text(page(data), encoding="utf-8")
    draw_picture(data)


def dumped(data: dict[str, Any]) -> str:
    """The data as the file has them: each list in one line."""
    text = json.dumps(data, indent=1, sort_keys=True)
    return re.sub(r"\[[^][]*\]", lambda found: " ".join(found[0].split()), text) + "\n"


if __name__ == "__main__":
    main()

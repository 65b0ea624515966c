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
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from fairpca import FairPCA, MinMax, SoftMinMax
from studies.new_data import _r_file, _words, halves

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

DATA, TARGET, PICTURE = (
    Path(__file__).with_name(f"genomes{ending}") for ending in (".json", ".md", ".png")
)

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


def main() -> None:
    """Run the parts named, or all, and write what they found."""
    data = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    for part in sys.argv[1:] or PARTS:
        if part != "page":
            data[part] = PARTS[part]()
            DATA.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

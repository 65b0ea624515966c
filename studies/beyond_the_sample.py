"""Rows that no subspace was fitted to: ordinary PCA, plain min-max and min-max with shrinkage.

Run ``python -m studies.beyond_the_sample`` to rewrite studies/beyond_the_sample_figures.md and the
picture of docs/beyond_the_sample.md (about an hour on two cores; parts by name, such as
``populations``, ``bias``, ``real``, ``growing``, take less, and the page is made of what the last
run of each part left in studies/beyond_the_sample_data.json).
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # comes with scikit-learn
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from fairpca import ExactSolver, FairPCA, GroupMoments, Problem
from fairpca.datasets import load_adult, load_credit

Array = NDArray[np.float64]

TARGET = Path(__file__).with_name("beyond_the_sample_figures.md")
DATA = Path(__file__).with_name("beyond_the_sample_data.json")
PICTURE = Path(__file__).with_name("beyond_the_sample.png")

METHODS: dict[str, float | str] = {"PCA": np.inf, "plain": 0, "auto": "auto"}
"""The shrinkage of each method."""

N_DRAWS, N_BIAS_DRAWS, N_GROWING_DRAWS, N_SPLITS = 50, 100, 20, 10

FIRST_SEED = 10_000
"""Smaller ones served to set the numbers in the choice of "auto"."""

RATIOS = (0.5, 1, 2, 5, 20)
"""Rows of the small group for each column, where biases are measured."""

GROWING = (10, 30, 100, 300, 1000, 3000, 10_000)
"""Rows of the small group in the picture."""

FRACTIONS, DIMENSIONS = (0.03, 0.1, 0.3), (2, 5, 10)

GROUPINGS: dict[str, tuple[Callable[..., Any], Any]] = {
    "Adult, sex": (load_adult, "sex"),
    "Adult, race": (load_adult, "race"),
    "Adult, sex × race": (load_adult, ("sex", "race")),  # noqa: RUF001
    "Credit, sex": (load_credit, "sex"),
    "Credit, marriage": (load_credit, "marriage"),
    "Credit, education": (load_credit, "education"),
    "Credit, sex × marriage": (load_credit, ("sex", "marriage")),  # noqa: RUF001
}


@dataclass(frozen=True)
class Family:
    """Populations Σ_i = (1 - apart) C + apart C_i, each Q diag(5/j) Qᵀ with a random Q."""

    name: str
    apart: float
    sizes: tuple[int, ...] = (2000, 300, 60, 20)
    d: int = 20
    r: int = 5
    heavy: bool = False

    def covariances(self, rng: np.random.Generator) -> list[Array]:
        """Covariances of the groups."""
        shared, *own = (self._one(rng) for _ in range(len(self.sizes) + 1))
        return [(1 - self.apart) * shared + self.apart * one for one in own]

    def _one(self, rng: np.random.Generator) -> Array:
        turn = np.linalg.qr(rng.normal(size=(self.d, self.d)))[0]
        covariance: Array = turn @ np.diag(5.0 / np.arange(1, self.d + 1)) @ turn.T
        return covariance

    def rows(
        self, covariances: list[Array], rng: np.random.Generator
    ) -> tuple[Array, NDArray[np.int64]]:
        """Rows with mean 0 and their groups; with heavy tails those of Student's t_5."""
        parts = []
        for covariance, n in zip(covariances, self.sizes, strict=True):
            part = rng.normal(size=(n, self.d)) @ np.linalg.cholesky(covariance).T
            if self.heavy:
                part *= np.sqrt(3.0 / rng.chisquare(5, size=(n, 1)))
            parts.append(part)
        return np.vstack(parts), np.repeat(np.arange(len(self.sizes)), self.sizes)


FAMILIES = (
    Family("equal covariances", 0.0),
    Family("30 % different", 0.3),
    Family("70 % different", 0.7),
    Family("30 % different, heavy tails", 0.3, heavy=True),
    Family("equal covariances, heavy tails", 0.0, heavy=True),
    Family("50 % different, eight groups", 0.5, (3000, 1000, 300, 200, 100, 60, 30, 15)),
    Family("30 % different, 60 columns", 0.3, d=60),
)

HEAD = """# Beyond the sample: the figures

How groups fare on people that no subspace was fitted to, with ordinary PCA, with plain min-max
(`shrinkage=0`, the default) and with `shrinkage="auto"`. What this means, in five minutes, is on
[the page about it](../docs/beyond_the_sample.md). Made by `python -m studies.beyond_the_sample`.

The three numbers in the choice of "auto" (a twentieth of the credible amount, one standard error of
the groups' differences, two of the scores) were set by other draws and other splits than these:
40 draws (seeds 5000 to 5039) of these seven families and of seven others, four splits (seeds 100 to
103) of Adult and Credit, and 64 draws with more columns than rows. The seeds here begin at 10,000,
and nothing was changed after they were seen.
"""


def population_disparities(covariances: list[Array], components: Array) -> Array:
    """What the population of each group loses beyond its own best subspace."""
    r = len(components)
    own = [np.linalg.eigvalsh(covariance)[-r:].sum() for covariance in covariances]
    kept = [np.trace(components @ covariance @ components.T) for covariance in covariances]
    disparities: Array = np.array(own) - np.array(kept)
    return disparities


def fitted(X: Array, groups: Any, r: int, method: str) -> FairPCA:
    """A method's fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FairPCA(r, shrinkage=METHODS[method]).fit(X, sensitive_features=groups)


def population_draw(family: Family, seed: int) -> dict[str, float]:
    """Largest population disparity of each method, of one draw, and with known covariances."""
    rng = np.random.default_rng(seed)
    covariances = family.covariances(rng)
    X, groups = family.rows(covariances, rng)
    found: dict[str, float] = {}
    for method in METHODS:
        fair = fitted(X, groups, family.r, method)
        found[method] = float(population_disparities(covariances, fair.components_).max())
    weights = np.array(family.sizes, dtype=float)
    scatter = np.array([n * covariance for n, covariance in zip(weights, covariances, strict=True)])
    labels = tuple(range(len(weights)))
    known = GroupMoments(labels, weights.astype(int), weights, np.zeros(scatter.shape[:2]), scatter)
    basis = ExactSolver().solve(Problem(known, family.r)).basis
    found["known"] = float(population_disparities(covariances, basis.T).max())
    return found


def bias_draw(apart: float, ratio: float, seed: int) -> dict[str, float]:
    """Errors of estimates for a small group beside a large one, of one draw."""
    family = Family("", apart, (2000, round(20 * ratio)))
    rng = np.random.default_rng(seed)
    covariances = family.covariances(rng)
    X, groups = family.rows(covariances, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        moments = GroupMoments.from_rows(X, groups, folds=True)
        fair = FairPCA(family.r).fit_moments(moments)
    own = np.linalg.eigvalsh(covariances[1])[::-1]
    own_loss = own[family.r :].sum()
    truth = population_disparities(covariances, fair.components_)[1]
    found = fair.cross_fit_
    return {
        "own in sample": found.own_loss_in_sample[1] - own_loss,
        "own held out": found.own_loss_held_out[1] - own_loss,
        "own estimate": found.own_loss[1] - own_loss,
        "disparity in sample": fair.group_table_.disparity[1] - truth,
        "disparity estimate": found.disparity[1] - truth,
        "own loss": own_loss,
        "disparity": truth,
    }


def real_case(grouping: str, fraction: float, r: int, seed: int) -> dict[str, float]:
    """Largest disparity of each method on held-out rows, of one split."""
    load, sensitive = GROUPINGS[grouping]
    bunch = load(sensitive=sensitive, as_frame=False)
    labels = np.asarray(bunch.sensitive_features, dtype=object)
    texts = np.array([str(label) for label in labels])
    order = np.random.default_rng(seed).permutation(len(texts))
    n = int(fraction * len(texts))
    scaler = StandardScaler().fit(bunch.data[order[:n]])
    X, new = (scaler.transform(bunch.data[part]) for part in (order[:n], order[n:]))
    groups, new_groups = texts[order[:n]], texts[order[n:]]
    known = np.isin(new_groups, np.unique(groups))
    held_out = GroupMoments.from_rows(new[known] - X.mean(axis=0), new_groups[known])
    # About the training rows' mean, from which the reduction measures them.
    matrices = held_out.second_moments("group")
    matrices += held_out.mean[:, :, None] * held_out.mean[:, None, :]
    found: dict[str, float] = {}
    for method in METHODS:
        fair = fitted(X, groups, r, method)
        found[method] = float(population_disparities(list(matrices), fair.components_).max())
        if method == "auto":
            found["shrinkage"] = fair.shrinkage_
    return found


def growing_draw(apart: float, n: int, seed: int) -> dict[str, float]:
    """Largest disparity in sample and in the population as a small group grows."""
    family = Family("", apart, (10_000, n))
    rng = np.random.default_rng(seed)
    covariances = family.covariances(rng)
    X, groups = family.rows(covariances, rng)
    found: dict[str, float] = {}
    for method in METHODS:
        fair = fitted(X, groups, family.r, method)
        found[f"{method}, sample"] = float(fair.group_table_.disparity.max())
        truth = population_disparities(covariances, fair.components_)
        found[f"{method}, population"] = float(truth.max())
    return found


def all_of(work: Callable[..., dict[str, float]], *given: Any, n: int) -> list[dict[str, float]]:
    """Draws with n seeds, on all cores."""
    seeds = range(FIRST_SEED, FIRST_SEED + n)
    draws = Parallel(n_jobs=-1)(delayed(work)(*given, seed) for seed in seeds)
    print(work.__name__, *(getattr(part, "name", part) for part in given), flush=True)
    return list(draws)


def measured(parts: list[str]) -> dict[str, Any]:
    """All figures: those of the parts anew, others as they were."""
    data: dict[str, Any] = json.loads(DATA.read_text("utf-8")) if DATA.exists() else {}
    for part in parts:
        data[part] = {}
        for name, figures in MEASURES[part]():
            data[part][name] = figures
            DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return data


def _populations() -> Iterator[tuple[str, Any]]:
    for family in FAMILIES:
        draws = all_of(population_draw, family, n=N_DRAWS)
        yield family.name, _means(draws) | {"first draw": draws[0]}


def _bias() -> Iterator[tuple[str, Any]]:
    for apart in (0.0, 0.3, 0.7):
        for ratio in RATIOS:
            draws = all_of(bias_draw, apart, ratio, n=N_BIAS_DRAWS)
            yield f"{apart}, {ratio}", _means(draws)


def _real() -> Iterator[tuple[str, Any]]:
    for grouping in GROUPINGS:
        for fraction in FRACTIONS:
            for r in DIMENSIONS:
                draws = all_of(real_case, grouping, fraction, r, n=N_SPLITS)
                amounts = [f"{draw.pop('shrinkage'):g}" for draw in draws]
                yield f"{grouping}; {fraction}; {r}", _means(draws) | {"shrinkage": amounts}


def _growing() -> Iterator[tuple[str, Any]]:
    for apart in (0.0, 0.3):
        for n in GROWING:
            yield f"{apart}, {n}", _means(all_of(growing_draw, apart, n, n=N_GROWING_DRAWS))


MEASURES: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "populations": _populations,
    "bias": _bias,
    "growing": _growing,
    "real": _real,
}


def _means(draws: list[dict[str, float]]) -> dict[str, float]:
    """The mean of each figure over draws, in five digits."""
    return {name: float(f"{np.mean([draw[name] for draw in draws]):.5g}") for name in draws[0]}


def page(data: dict[str, Any]) -> str:
    """The page of all figures."""
    lines = [HEAD, *_population_lines(data["populations"]), *_bias_lines(data["bias"])]
    lines += _growing_lines(data["growing"])
    return "\n".join([*lines, *_real_lines(data["real"])]) + "\n"


def _population_lines(found: dict[str, Any]) -> list[str]:
    lines = [
        "\n## Known populations\n",
        "Group i has the covariance (1 - s) C + s C_i, where C and the C_i are Q diag(5/j) Qᵀ with "
        "Q uniformly random; s is 0, 0.3, 0.5 or 0.7. Rows are Gaussian with mean 0, or Student's "
        "t with 5 degrees of freedom (heavy tails). 20 columns, r = 5 and groups of 2000, 300, 60 "
        "and 20 rows unless said otherwise; eight groups have 3000, 1000, 300, 200, 100, 60, 30 "
        f"and 15. Shown is the largest *population* disparity of a group, the mean of {N_DRAWS} "
        "draws; *known* is the optimum if the populations were known.\n",
        "| populations | PCA | plain | auto | known | auto / better of both | auto / plain |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in found.items():
        better = min(row["PCA"], row["plain"])
        lines.append(
            f"| {name} | {row['PCA']:.3f} | {row['plain']:.3f} | {row['auto']:.3f} | "
            f"{max(row['known'], 0.0):.3f} | {row['auto'] / better:.2f} | "
            f"{row['auto'] / row['plain']:.2f} |"
        )
    return lines


def _bias_lines(found: dict[str, Any]) -> list[str]:
    lines = [
        "\n## Bias of the estimates\n",
        "A group of n rows beside one of 2,000, 20 columns, r = 5, plain min-max; the mean error "
        f"over {N_BIAS_DRAWS} draws. In sample, the own PCA loses too little and the disparity of "
        "the fitted subspace is off; the estimates are those of `cross_fit_`.\n",
        "| different by | rows / columns | own loss | in sample | held out | estimate | disparity "
        "| in sample | estimate |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in found.items():
        apart, ratio = name.split(", ")
        errors = [f"{row[key]:+.3f}" for key in ("own in sample", "own held out", "own estimate")]
        others = [f"{row[key]:+.3f}" for key in ("disparity in sample", "disparity estimate")]
        lines.append(
            f"| {float(apart):.0%} | {ratio} | {row['own loss']:.3f} | {' | '.join(errors)} | "
            f"{row['disparity']:.3f} | {' | '.join(others)} |"
        )
    return lines


def _growing_lines(found: dict[str, Any]) -> list[str]:
    lines = [
        "\n## As the small group grows\n",
        "Two groups, of 10,000 rows and of the number given, whose covariances differ by 30 % or "
        "not at all, 20 columns, r = 5; the largest disparity on the rows fitted to, and in the "
        f"population, the mean of {N_GROWING_DRAWS} draws.\n",
        "| different by | rows | PCA, sample | population | plain, sample | population "
        "| auto, sample | population |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in found.items():
        apart, n = name.split(", ")
        cells = [
            f"{row[f'{m}, {where}']:.3f}" for m in METHODS for where in ("sample", "population")
        ]
        lines.append(f"| {float(apart):.0%} | {int(n):,} | {' | '.join(cells)} |")
    return lines


def _real_lines(found: dict[str, Any]) -> list[str]:
    ratios = {name: row["auto"] / min(row["PCA"], row["plain"]) for name, row in found.items()}
    worse = [name for name, ratio in ratios.items() if ratio > 1.05]
    lines = [
        "\n## Adult and Credit\n",
        "Categories as integer codes, columns standardised by the training rows, a share of the "
        "rows for training and the others held out; the largest disparity of a group on the rows "
        f'held out, from their own best subspace, the mean of {N_SPLITS} splits; what "auto" '
        "chose, in rows.\n",
        f'In {len(found) - len(worse)} of {len(found)} cases "auto" is at most 1.05 times the '
        f"better of the two, in {sum(ratio < 1 for ratio in ratios.values())} better than both. "
        "The others are in bold, nearly all of Credit: its outliers make what groups differ by "
        "hard to tell from chance, so that more is shrunk than would be best.\n",
        "| groups | training | r | PCA | plain | auto | auto / better of both | chosen |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in found.items():
        grouping, fraction, r = name.split("; ")
        ratio = f"{ratios[name]:.2f}"
        ratio = f"**{ratio}**" if name in worse else ratio
        amounts = row["shrinkage"]
        chosen = {amount: amounts.count(amount) for amount in sorted(set(amounts), key=float)}
        said = ", ".join(f"{amount}: {n}" for amount, n in chosen.items()).replace("inf", "PCA")
        lines.append(
            f"| {grouping} | {float(fraction):.0%} | {r} | {row['PCA']:.3f} | {row['plain']:.3f} | "
            f"{row['auto']:.3f} | {ratio} | {said} |"
        )
    return lines


def draw_picture(found: dict[str, Any]) -> None:
    """Largest disparity in sample and in the population over the rows of the small group."""
    import matplotlib.pyplot as plt

    looks = {
        "PCA": ("ordinary PCA", "#767676", "o"),
        "plain": ("fair, no shrinkage", "#c44e2b", "s"),
        "auto": ('fair, shrinkage="auto"', "#1f6fb4", "D"),
    }
    kinds = {"0.0": "groups that are alike", "0.3": "groups that differ by 30 %"}
    places = {"sample": "on the rows of the fit", "population": "on people not in the table"}
    figure, axes = plt.subplots(2, 2, figsize=(10, 6.6), sharex=True, layout="constrained")
    for row, (apart, kind) in zip(axes, kinds.items(), strict=True):
        for axis, (where, place) in zip(row, places.items(), strict=True):
            for method, (label, color, marker) in looks.items():
                values = [found[f"{apart}, {n}"][f"{method}, {where}"] for n in GROWING]
                axis.plot(GROWING, values, color=color, marker=marker, label=label, alpha=0.85)
            axis.set_title(f"{kind}, {place}", fontsize=10.5)
            axis.set(xscale="log", ylim=(0, None))
            axis.grid(alpha=0.3)
        row[0].set(ylabel="largest disparity of a group")
    for axis in axes[1]:
        axis.set(xlabel="rows of the small group")
    axes[0, 1].legend(frameon=False)
    figure.savefig(PICTURE, dpi=130)
    plt.close(figure)


def main() -> None:
    """Measure what is asked for, and write the page and the picture."""
    data = measured(sys.argv[1:] or list(MEASURES))
    if set(data) == set(MEASURES):
        TARGET.write_text(page(data), encoding="utf-8")
        draw_picture(data["growing"])


if __name__ == "__main__":
    main()

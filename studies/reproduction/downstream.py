"""Does a fair reduction make a classifier fairer? Linear SVM on ten dimensions, on test rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from fairlearn.metrics import MetricFrame, equal_opportunity_difference, true_positive_rate
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fairpca import FairPCA, ParetoDescent
from studies.reproduction import methods
from studies.reproduction.data import PREPROCESSINGS, REFERENCE, prepared
from studies.reproduction.runner import Task, remembered

DIMENSION = 10
DATA = ("Adult", "Credit", "Diabetes")
REDUCTIONS = ("none", "PCA", "printed", "pareto", "exact", "sdp")
"""With "none" the classifier sees all columns."""

MEASURES = ("accuracy", "DEO")

_SDP_LIMIT = 60


def tasks(small: bool) -> list[Task]:
    """One task for each data set, preprocessing and seed."""
    names = [REFERENCE] if small else list(PREPROCESSINGS)
    seeds = range(2) if small else range(10)
    n_rows = 1500 if small else None
    return [
        Task(classify, (data, name, seed, n_rows), f"classifier on {data}, {name}, seed {seed}")
        for data in DATA
        for name in (names if data != "Diabetes" else [REFERENCE])
        for seed in seeds
    ]


@remembered
def classify(data: str, preprocessing: str, seed: int, n_rows: int | None) -> list[dict[str, Any]]:
    """Resample the training rows with a seed, reduce, train, and judge on all test rows.

    The difference of equal opportunity (DEO) is that of the true positive rates of both groups.
    """
    train = prepared(data, "sex", preprocessing, "train", n_rows)
    test = prepared(data, "sex", preprocessing, "test", n_rows)
    drawn = np.random.default_rng(seed).choice(len(train.X), len(train.X))
    X, groups, target = train.X[drawn], train.groups[drawn], train.target[drawn]
    r = min(DIMENSION, X.shape[1] - 1)
    records = []
    for name in REDUCTIONS:
        if name == "sdp" and X.shape[1] > _SDP_LIMIT:
            continue
        reduce, reduced = _reduced(name, r, X, groups, seed)
        model = make_pipeline(StandardScaler(), LinearSVC(dual=False, random_state=seed))
        predicted = model.fit(reduced, target).predict(reduce(test.X))
        rates = MetricFrame(
            metrics={"TPR": true_positive_rate, "accuracy": accuracy_score},
            y_true=test.target,
            y_pred=predicted,
            sensitive_features=test.groups,
        )
        records.append(
            {
                "data": data,
                "preprocessing": preprocessing,
                "seed": seed,
                "r": r,
                "reduction": name,
                "accuracy": rates.overall["accuracy"],
                "DEO": equal_opportunity_difference(
                    test.target, predicted, sensitive_features=test.groups
                ),
                **{f"TPR {group}": rate for group, rate in rates.by_group["TPR"].items()},
                **{f"accuracy {group}": a for group, a in rates.by_group["accuracy"].items()},
            }
        )
    return records


def _reduced(name: str, r: int, X: Any, groups: Any, seed: int) -> tuple[Any, Any]:
    if name == "none":
        return (lambda rows: rows), X
    if name == "PCA":
        model: Any = PCA(r).fit(X)
    else:
        solver: Any = name
        if name == "pareto":
            solver = ParetoDescent(random_state=seed)
        elif name == "printed":
            solver = methods.printed(methods.STEPS)
        model = FairPCA(r, criterion="equal", solver=solver).fit(X, sensitive_features=groups)
    return model.transform, model.transform(X)


def intervals(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean over the seeds of each measure, with the half-width of its 95 % interval.

    "minus PCA" is the paired difference from ordinary PCA with the same seed.
    """
    keys = ["data", "preprocessing", "reduction"]
    measures = [c for c in frame.columns if c.startswith(("accuracy", "DEO", "TPR"))]
    plain = frame[frame["reduction"] == "PCA"].set_index(["data", "preprocessing", "seed"])["DEO"]
    index = pd.MultiIndex.from_frame(frame[["data", "preprocessing", "seed"]])
    frame = frame.assign(**{"DEO minus PCA": frame["DEO"].to_numpy() - plain.loc[index].to_numpy()})
    rows = []
    for key, part in frame.groupby(keys, sort=False):
        row = dict(zip(keys, key, strict=True))
        for measure in [*measures, "DEO minus PCA"]:
            values = part[measure].dropna()
            if len(values) > 1:
                half = stats.t.ppf(0.975, len(values) - 1) * values.std() / np.sqrt(len(values))
                row[measure], row[f"{measure} ±"] = values.mean(), half
        rows.append(row)
    return pd.DataFrame(rows)

"""The data sets of the paper and a third one, prepared in several ways: the paper names none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import Bunch

from fairpca import GroupMoments
from fairpca._linalg.types import Array
from fairpca.datasets import load_adult, load_credit


def diabetes(
    *, subset: str, sensitive: str, encoding: str, keep_sensitive: bool, as_frame: bool
) -> Bunch:
    """Scikit-learn's 442 patients with diabetes, in the manner of `fairpca.datasets`.

    All ten columns are numbers, so that every encoding is the same. The target is whether the
    disease advanced by more than the median. Every third patient is a test row.
    """
    bunch = load_diabetes(scaled=False)
    groups = np.where(bunch.data[:, 1] == 2, "second", "first").astype(object)
    X = bunch.data if keep_sensitive else np.delete(bunch.data, 1, axis=1)
    test = np.arange(len(X)) % 3 == 0
    kept = {"train": ~test, "test": test, "all": np.ones(len(X), dtype=bool)}[subset]
    target = (bunch.target > np.median(bunch.target)).astype(np.int64)
    return Bunch(data=X[kept], sensitive_features=groups[kept], target=target[kept])


LOADERS: dict[str, Callable[..., Any]] = {
    "Adult": load_adult,
    "Credit": load_credit,
    "Diabetes": diabetes,
}

REFERENCE = "standardised codes"


@dataclass(frozen=True)
class Preprocessing:
    """How columns become numbers."""

    encoding: str = "codes"
    keep_sensitive: bool = True
    scaler: Callable[[], Any] | None = StandardScaler


PREPROCESSINGS = {
    REFERENCE: Preprocessing(),
    "without the sensitive column": Preprocessing(keep_sensitive=False),
    "codes from 0 to 1": Preprocessing(scaler=MinMaxScaler),
    "standardised one-hot": Preprocessing(encoding="onehot"),
    "numeric columns": Preprocessing(encoding="numeric"),
    "raw codes": Preprocessing(scaler=None),
}


@dataclass(frozen=True)
class Rows:
    """Prepared rows with their groups and targets."""

    X: Array
    groups: NDArray[np.object_]
    target: NDArray[np.int64]


@lru_cache(maxsize=8)
def prepared(
    data: str, sensitive: str, preprocessing: str, subset: str, n_rows: int | None = None
) -> Rows:
    """Rows of a data set; of `n_rows` of them, drawn with a fixed seed, if that is not None.

    Scaling is learned from the training part, or from all rows where these are asked for.
    """
    choice = PREPROCESSINGS[preprocessing]

    def load(part: str) -> Any:
        return LOADERS[data](
            subset=part,
            sensitive=sensitive,
            encoding=choice.encoding,
            keep_sensitive=choice.keep_sensitive,
            as_frame=False,
        )

    bunch = load(subset)
    X = bunch.data
    if choice.scaler is not None:
        known = bunch if subset != "test" else load("train")
        X = choice.scaler().fit(known.data).transform(X)
    groups, target = bunch.sensitive_features, bunch.target
    if n_rows is not None and n_rows < len(X):
        kept = np.random.default_rng(0).choice(len(X), n_rows, replace=False)
        X, groups, target = X[kept], groups[kept], target[kept]
    return Rows(X, groups, target)


@lru_cache(maxsize=32)
def moments_of(
    data: str,
    sensitive: str,
    preprocessing: str,
    n_rows: int | None = None,
    subset: str | None = None,
) -> GroupMoments:
    """Moments by group, of the part that the paper uses: Adult's training part, all of Credit."""
    subset = subset or ("train" if data == "Adult" else "all")
    rows = prepared(data, sensitive, preprocessing, subset, n_rows)
    return GroupMoments.from_rows(rows.X, rows.groups)


def mean_pairwise(disparities: Array) -> float:
    """Mean absolute difference between two groups' disparities, over all pairs."""
    first, second = np.triu_indices(len(disparities), 1)
    return float(np.abs(disparities[first] - disparities[second]).mean()) if len(first) else 0.0

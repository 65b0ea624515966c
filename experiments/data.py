"""The data sets of the paper, prepared in several ways, because the paper does not say in which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from fairpca import GroupMoments
from fairpca._linalg.types import Array
from fairpca.datasets import load_adult, load_credit

LOADERS: dict[str, Callable[..., Any]] = {"Adult": load_adult, "Credit": load_credit}

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
    data: str, sensitive: str, preprocessing: str, n_rows: int | None = None
) -> GroupMoments:
    """Moments by group of the part that the paper uses: Adult's training part, all of Credit."""
    rows = prepared(data, sensitive, preprocessing, "train" if data == "Adult" else "all", n_rows)
    return GroupMoments.from_rows(rows.X, rows.groups)

"""Rows and labels of pandas that are aligned differently are refused, wherever they come in."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import (
    FairPCA,
    GroupMoments,
    KernelFairPCA,
    StochasticFairPCA,
    audit,
    pareto_front,
)
from fairpca.comparators import ParityPCA
from fairpca.metrics import (
    WorstGroupScorer,
    disparity_error,
    reconstruction_error,
)
from fairpca.report import report

from texts import refused

RNG = np.random.default_rng(0)
INDEX = pd.Index([f"person {i}" for i in range(40)])
X = pd.DataFrame(RNG.normal(size=(40, 4)) * [3, 2, 1, 1], INDEX, columns=list("abcd"))
GROUPS = pd.Series(["f", "m"] * 20, INDEX, name="sex")
WEIGHTS = pd.Series(RNG.uniform(1, 2, 40), INDEX)
FAIR = FairPCA(2, criterion="minmax").fit(X, sensitive_features=GROUPS)
PIPELINE = make_pipeline(StandardScaler(), PCA(2)).fit(X)

LABELLED = {
    "fit": lambda g: FairPCA(2, criterion="minmax").fit(X, sensitive_features=g),
    "fit_transform": lambda g: FairPCA(2, criterion="minmax").fit_transform(
        X, sensitive_features=g
    ),
    "kernel": lambda g: KernelFairPCA(2).fit(X, sensitive_features=g),
    "stochastic": lambda g: StochasticFairPCA(2).fit(X, sensitive_features=g),
    "parity": lambda g: ParityPCA(2).fit(X, sensitive_features=g),
    "moments": lambda g: GroupMoments.from_rows(X, g),
    "front": lambda g: pareto_front(X, sensitive_features=g, n_components=2, n_points=3),
    "audit": lambda g: audit(FAIR, X, sensitive_features=g),
    "audit of a pipeline": lambda g: audit(PIPELINE, X, sensitive_features=g),
    "scorer": lambda g: WorstGroupScorer()(FAIR, X, sensitive_features=g),
    "report": lambda g: report(X, sensitive_features=g, n_components=2, n_resamples=0),
}

WEIGHTED = {
    "fit": lambda w: FairPCA(2, criterion="minmax").fit(
        X, sensitive_features=GROUPS, sample_weight=w
    ),
    "score": lambda w: FAIR.score(X, sample_weight=w),
    "moments": lambda w: GroupMoments.from_rows(X, GROUPS, sample_weight=w),
    "audit": lambda w: audit(FAIR, X, sensitive_features=GROUPS, sample_weight=w),
    "error": lambda w: reconstruction_error(X, X, sample_weight=w),
    "disparity": lambda w: disparity_error(X, X, n_components=1, mean=np.zeros(4), sample_weight=w),
}


@pytest.mark.parametrize("call", LABELLED.values(), ids=LABELLED)
def test_labels_in_another_order_are_refused(call):
    call(GROUPS)
    for given in (GROUPS[::-1], {"sex": GROUPS[::-1]}, GROUPS[::-1].to_frame()):
        with refused(ValueError, "sensitive_features.loc[X.index]"):
            call(given)
    call(GROUPS.to_numpy())


@pytest.mark.parametrize("call", WEIGHTED.values(), ids=WEIGHTED)
def test_weights_in_another_order_are_refused(call):
    call(WEIGHTS)
    with refused(ValueError, "sample_weight.loc["):
        call(WEIGHTS[::-1])
    call(WEIGHTS.to_numpy())


def test_reconstructions_in_another_order_are_refused():
    with refused(ValueError, "y_pred.loc["):
        reconstruction_error(X, X[::-1])


def test_another_index_is_refused_with_both_remedies():
    with refused(ValueError, "sensitive_features.to_numpy()"):
        FAIR.fit(X, sensitive_features=GROUPS.reset_index(drop=True))


def test_repeated_index_labels_are_taken_as_they_are():
    twice, groups = (pd.concat([part, part]) for part in (X, GROUPS))
    moments = GroupMoments.from_rows(twice, groups)
    np.testing.assert_array_equal(moments.count, [40, 40])
    with refused(ValueError, "pandas indexes"):
        GroupMoments.from_rows(twice, groups.iloc[::-1])


def test_a_wrong_length_is_reported_as_such():
    with refused(ValueError, "inconsistent numbers"):
        FairPCA(2, criterion="minmax").fit(X, sensitive_features=GROUPS[:-1])

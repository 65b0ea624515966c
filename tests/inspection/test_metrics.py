"""The metrics against raw numpy, and in fairlearn's MetricFrame."""

from functools import partial

import fairlearn.metrics as fairlearn_metrics
import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import FairPCA
from fairpca.metrics import (
    disparity_error,
    reconstruction_error,
)

from texts import refused

pytestmark = pytest.mark.contract  # fairlearn

# What old releases of fairlearn call in pandas is not for these tests to judge.
old_pandas_calls = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def rows_and_groups(n=90, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(3, 1, d)
    X[: n // 3] = X[: n // 3, ::-1] + rng.normal(size=d)
    return X, np.array(["a"] * (n // 3) + ["b"] * (n - n // 3))


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_against_raw_rows(weighted):
    X, _ = rows_and_groups()
    other = X + np.random.default_rng(1).normal(size=X.shape)
    weights = np.random.default_rng(2).uniform(0, 2, len(X)) if weighted else np.ones(len(X))
    given_weights = weights if weighted else None
    expected = sum(
        w * np.linalg.norm(a - b) ** 2 for w, a, b in zip(weights, X, other, strict=True)
    )
    error = reconstruction_error(X, other, sample_weight=given_weights)
    assert error == pytest.approx(expected / weights.sum(), rel=1e-12)
    mean = np.arange(5.0)
    tail = np.linalg.svd((X - mean) * np.sqrt(weights)[:, None], compute_uv=False)[2:]
    disparity = disparity_error(X, other, n_components=2, mean=mean, sample_weight=given_weights)
    assert disparity == pytest.approx((expected - (tail**2).sum()) / weights.sum(), rel=1e-10)


def test_own_pca_has_no_disparity():
    X, _ = rows_and_groups()
    pca = PCA(2).fit(X)
    back = pca.inverse_transform(pca.transform(X))
    assert disparity_error(X, back, n_components=2, mean=X.mean(axis=0)) == pytest.approx(
        0.0, abs=1e-12
    )
    assert disparity_error(X, X, n_components=5, mean=X.mean(axis=0)) == pytest.approx(
        0.0, abs=1e-12
    )


def test_integer_weights_are_repeated_rows():
    X, _ = rows_and_groups()
    other = X[::-1]
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    twice = np.repeat(X, weights, axis=0), np.repeat(other, weights, axis=0)
    for metric in (
        reconstruction_error,
        partial(disparity_error, n_components=2, mean=X.mean(axis=0)),
    ):
        assert metric(X, other, sample_weight=weights) == pytest.approx(metric(*twice), rel=1e-10)


@old_pandas_calls
@pytest.mark.parametrize("criterion", ["pca", "fair"])
def test_metric_frame_shows_the_table_of_fairpca(criterion):
    X, groups = rows_and_groups()
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    reduction = fair if criterion == "fair" else PCA(2).fit(X)
    table = fair.group_table_
    frame = fairlearn_metrics.MetricFrame(
        metrics={
            "loss": reconstruction_error,
            "disparity": partial(disparity_error, n_components=2, mean=X.mean(axis=0)),
        },
        y_true=X,
        y_pred=reduction.inverse_transform(reduction.transform(X)),
        sensitive_features=groups,
    )
    disparity = table.disparity if criterion == "fair" else table.pca_disparity
    loss = table.loss if criterion == "fair" else table.pca_loss
    assert frame.by_group.index.tolist() == list(table.labels)
    np.testing.assert_allclose(frame.by_group["disparity"].astype(float), disparity, rtol=1e-8)
    np.testing.assert_allclose(frame.by_group["loss"].astype(float), loss, rtol=1e-9)
    assert float(frame.difference()["disparity"]) == pytest.approx(np.ptp(disparity), abs=1e-9)


@old_pandas_calls
def test_metric_frame_with_weights():
    X, groups = rows_and_groups()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups, sample_weight=weights)
    frame = fairlearn_metrics.MetricFrame(
        metrics={"disparity": partial(disparity_error, n_components=2, mean=fair.mean_)},
        y_true=X,
        y_pred=fair.inverse_transform(fair.transform(X)),
        sensitive_features=groups,
        sample_params={"disparity": {"sample_weight": weights}},
    )
    np.testing.assert_allclose(
        frame.by_group["disparity"].astype(float), fair.group_table_.disparity, rtol=1e-8
    )


def test_rows_that_do_not_fit():
    X, _ = rows_and_groups()
    disparity = partial(disparity_error, n_components=2, mean=X.mean(axis=0))
    for metric in (reconstruction_error, disparity):
        with refused(ValueError, "inconsistent numbers"):
            metric(X, X[1:])
        with refused(ValueError, "5 columns", "y_pred 2"):
            metric(X, X[:, :2])
        with refused(ValueError, "y_pred", "NaN"):
            metric(X, np.full_like(X, np.nan))
        with refused(ValueError, "Negative values"):
            metric(X, X, sample_weight=-np.ones(len(X)))
        with refused(ValueError, "sample_weight"):
            metric(X, X, sample_weight=np.ones(3))


@pytest.mark.parametrize("n_components", [0, 6, -1])
def test_dimension_out_of_range(n_components):
    X, _ = rows_and_groups()
    with refused(ValueError, "columns, 5, got"):
        disparity_error(X, X, n_components=n_components, mean=X.mean(axis=0))


def test_mean_of_another_length():
    X, _ = rows_and_groups()
    with pytest.raises(ValueError):
        disparity_error(X, X, n_components=2, mean=np.zeros(4))
    with refused(ValueError, "mean"):
        disparity_error(X, X, n_components=2, mean=[0.0])

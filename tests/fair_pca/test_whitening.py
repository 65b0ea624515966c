"""PCA's other attributes: whitening, singular values, noise, covariance and precision."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.decomposition import PCA

from fairpca import FairPCA
from fairpca.comparators import ParityPCA
from fairpca.model_file import load_model, save_model

from devices import import_torch
from texts import refused


def rows_and_groups(n=150, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(3, 1, d)
    X[: n // 3] = X[: n // 3, ::-1] + rng.normal(size=d)
    return X + 5.0, np.array(["a"] * (n // 3) + ["b"] * (n - n // 3))


def whitened(X, groups, r=3, **options):
    return FairPCA(r, **{"criterion": "minmax", "whiten": True, **options}).fit(
        X, sensitive_features=groups
    )


def covariance(X, components, r):
    """Of probabilistic PCA, written down from its definition."""
    scatter = np.cov(X.T)
    projector = components.T @ components
    inside = projector @ scatter @ projector
    noise = np.trace(scatter - inside) / (len(scatter) - r)
    return inside + noise * (np.eye(len(scatter)) - projector)


@pytest.mark.filterwarnings("ignore::fairpca.FairnessWarning")
@pytest.mark.parametrize(
    ("n", "d", "r"), [(60, 6, 1), (60, 6, 4), (60, 6, 6), (12, 40, 3), (12, 40, 11), (30, 700, 5)]
)
@pytest.mark.parametrize("whiten", [False, True])
def test_one_group_has_the_attributes_of_pca(n, d, r, whiten):
    X, _ = rows_and_groups(n, d)
    fair, pca = (
        FairPCA(r, whiten=whiten, criterion="minmax").fit(X),
        PCA(r, whiten=whiten, svd_solver="full").fit(X),
    )
    scale = pca.explained_variance_[0]
    for name in ("explained_variance_", "singular_values_", "noise_variance_"):
        np.testing.assert_allclose(
            getattr(fair, name), getattr(pca, name), rtol=1e-10, atol=1e-13 * scale, err_msg=name
        )
    np.testing.assert_allclose(fair.transform(X), pca.transform(X), rtol=1e-10, atol=1e-10)
    reduced = np.random.default_rng(1).normal(size=(5, r))
    np.testing.assert_allclose(
        fair.inverse_transform(reduced), pca.inverse_transform(reduced), rtol=1e-10, atol=1e-10
    )
    plain = pca if not whiten else PCA(r, svd_solver="full").fit(X)
    atol = 1e-10 * scale
    np.testing.assert_allclose(fair.get_covariance(), plain.get_covariance(), atol=atol)
    if r == d or pca.noise_variance_ > 1e-10 * scale:  # else there is none
        inverse = plain.get_precision()
        np.testing.assert_allclose(fair.get_precision(), inverse, atol=1e-10 * inverse.max())


def test_whitened_columns_have_unit_variance_and_come_back():
    X, groups = rows_and_groups()
    fair, plain = (
        whitened(X, groups),
        FairPCA(3, criterion="minmax").fit(X, sensitive_features=groups),
    )
    reduced = fair.transform(X)
    np.testing.assert_allclose(np.cov(reduced.T), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(
        fair.inverse_transform(reduced), plain.inverse_transform(plain.transform(X)), atol=1e-10
    )
    assert fair.score(X) == pytest.approx(plain.score(X), rel=1e-12)
    for name in ("components_", "explained_variance_", "noise_variance_"):
        np.testing.assert_array_equal(getattr(fair, name), getattr(plain, name))


def test_noise_and_covariance_of_a_fair_subspace():
    X, groups = rows_and_groups()
    for r in (1, 3, 5):
        fair = FairPCA(r, criterion="minmax").fit(X, sensitive_features=groups)
        expected = covariance(X, fair.components_, r)
        np.testing.assert_allclose(fair.get_covariance(), expected, atol=1e-10)
        np.testing.assert_allclose(fair.get_precision(), np.linalg.inv(expected), atol=1e-10)
        left = X - fair.inverse_transform(fair.transform(X))
        assert fair.noise_variance_ == pytest.approx((left**2).sum() / (len(X) - 1) / (6 - r))
        total = np.sum((X - X.mean(axis=0)) ** 2)
        assert np.sum(fair.singular_values_**2) == pytest.approx(total - (left**2).sum())


def test_no_other_covariance_with_these_axes_fits_the_rows_better():
    # Also where a component has less variance than the mean of what is left out.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)) * [1.0, 3.0, 3.0, 3.0]
    fair = FairPCA(1, criterion="minmax").fit(X, sensitive_features=np.repeat(["a", "b"], 200))
    fair.components_ = np.eye(4)[:1]
    fair.explained_variance_ = X[:, :1].var(axis=0, ddof=1)
    fair.noise_variance_ = X[:, 1:].var(axis=0, ddof=1).mean()

    def likelihood(along, beside):
        matrix = np.diag([along, beside, beside, beside])
        scatter = np.cov(X.T)
        return -np.linalg.slogdet(matrix)[1] - np.trace(np.linalg.solve(matrix, scatter))

    along, beside = fair.get_covariance()[[0, 1], [0, 1]]
    assert along < beside
    best = likelihood(along, beside)
    for first in (0.9, 1.0, 1.1):
        for second in (0.9, 1.0, 1.1):
            if (first, second) != (1.0, 1.0):
                assert likelihood(along * first, beside * second) < best


def test_factors_of_projections_are_whitened_with_the_rest():
    angles = np.pi / 3 * np.arange(3)
    lines = np.column_stack([np.cos(angles), np.sin(angles)])
    X, groups = np.vstack([lines, -lines]), np.tile(["a", "b", "c"], 2)
    options = {"criterion": "minmax", "solver": "mw"}
    plain = FairPCA(1, **options).fit(X, sensitive_features=groups)
    assert plain.projection_factors_ is not None
    assert plain.noise_variance_ == 0.0
    fair = whitened(X, groups, 1, **options)
    reduced = fair.transform(X)
    np.testing.assert_allclose(reduced.var(axis=0, ddof=1), 1.0)
    np.testing.assert_allclose(
        fair.inverse_transform(reduced), plain.inverse_transform(plain.transform(X)), atol=1e-12
    )
    axes = np.diag(plain.components_ @ np.cov(X.T) @ plain.components_.T)
    model = plain.components_.T @ np.diag(axes) @ plain.components_
    np.testing.assert_allclose(plain.get_covariance(), model, atol=1e-12)


@pytest.mark.filterwarnings("ignore::fairpca.FairnessWarning")
def test_components_without_variance_give_finite_numbers_as_in_pca():
    X = np.random.default_rng(0).normal(size=(40, 2)) @ np.ones((2, 4))
    fair = FairPCA(3, whiten=True, criterion="minmax").fit(X)
    fair.explained_variance_[1:] = 0.0
    pca = PCA(3, whiten=True, svd_solver="full").fit(X)
    pca.components_, pca.mean_ = fair.components_, fair.mean_
    pca.explained_variance_ = fair.explained_variance_
    np.testing.assert_allclose(fair.transform(X), pca.transform(X), rtol=1e-12)
    restored = fair.inverse_transform(fair.transform(X))
    np.testing.assert_allclose(restored, X, atol=1e-10)
    with refused(np.linalg.LinAlgError, "no inverse"):
        fair.get_precision()


def test_covariance_of_all_dimensions_is_that_of_the_rows():
    X, groups = rows_and_groups()
    fair = FairPCA(6, criterion="minmax").fit(X, sensitive_features=groups)
    assert fair.noise_variance_ == 0.0
    np.testing.assert_allclose(fair.get_covariance(), np.cov(X.T), atol=1e-10)
    np.testing.assert_allclose(fair.get_precision(), np.linalg.inv(np.cov(X.T)), atol=1e-10)


def test_whole_weights_have_the_noise_of_their_covariance():
    X, groups = rows_and_groups()
    weights = np.random.default_rng(3).integers(1, 4, len(X))
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups, sample_weight=weights)
    scatter = np.cov(X.T, aweights=weights, ddof=0) * len(X) / (len(X) - 1)
    kept = np.trace(fair.components_ @ scatter @ fair.components_.T)
    assert fair.noise_variance_ == pytest.approx((np.trace(scatter) - kept) / 4)


@pytest.mark.parametrize(
    "convert",
    [lambda X: X.astype(np.float32), scipy.sparse.csr_matrix, pd.DataFrame],
    ids=["float32", "sparse", "pandas"],
)
def test_other_kinds_of_rows_are_whitened(convert):
    X, groups = rows_and_groups()
    expected = whitened(X, groups).transform(X)
    rows = convert(X)
    reduced = whitened(rows, groups).transform(rows)
    # Numbers near 8 in single precision, before the mean is taken from them.
    atol = 1e-5 if reduced.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(reduced, expected, atol=atol)


def test_rows_on_a_device_are_whitened():
    torch = import_torch()
    X, groups = rows_and_groups()
    fair = whitened(X, groups)
    reduced = fair.transform(torch.tensor(X))
    assert isinstance(reduced, torch.Tensor)
    np.testing.assert_allclose(reduced.numpy(), fair.transform(X), atol=1e-12)
    restored = fair.inverse_transform(reduced)
    np.testing.assert_allclose(
        restored.numpy(), fair.inverse_transform(fair.transform(X)), atol=1e-12
    )


@pytest.mark.parametrize("whiten", [True, np.True_])
def test_pickles_copies_and_model_files_are_whitened(tmp_path, whiten):
    X, groups = rows_and_groups()
    fair = FairPCA(3, whiten=whiten, criterion="minmax").fit(X, sensitive_features=groups)
    save_model(fair, tmp_path / "m.fairpca")
    assert clone(fair).whiten
    for back in (pickle.loads(pickle.dumps(fair)), load_model(tmp_path / "m.fairpca").fair_pca):
        assert back.whiten
        np.testing.assert_array_equal(back.transform(X), fair.transform(X))
        np.testing.assert_array_equal(back.singular_values_, fair.singular_values_)
        np.testing.assert_array_equal(back.get_covariance(), fair.get_covariance())


def test_parity_is_whitened_too():
    X, groups = rows_and_groups()
    parity = ParityPCA(3, whiten=True).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(np.cov(parity.transform(X).T), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(
        parity.get_covariance(), covariance(X, parity.components_, 3), atol=1e-10
    )
    with refused(ValueError, "whiten"):
        ParityPCA(3, whiten="yes").fit(X, sensitive_features=groups)


def test_whiten_is_yes_or_no():
    X, groups = rows_and_groups()
    with refused(ValueError, "whiten", "'yes'"):
        FairPCA(2, whiten="yes", criterion="minmax").fit(X, sensitive_features=groups)

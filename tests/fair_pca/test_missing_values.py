"""Missing values: refused, or column means at the fit and least squares afterwards."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairpca import FairPCA
from fairpca.model_file import load_model, save_model

from texts import refused

N, D, R = 300, 8, 3
GROUPS = np.repeat(["a", "b"], [100, 200])


def gappy_rows():
    """Rows near a subspace, without gaps and with them; a group has more of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, R)) @ rng.normal(size=(R, D)) + 0.1 * rng.normal(size=(N, D)) + 5.0
    gaps = rng.random((N, D)) < np.where(GROUPS == "a", 0.2, 0.05)[:, None]
    return X, np.where(gaps, np.nan, X)


def fitted(X, **options):
    return FairPCA(R, missing_values="mean", **options).fit(X, sensitive_features=GROUPS)


@parametrize_with_checks([FairPCA(missing_values="mean")])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_the_fit_is_that_of_rows_filled_by_column_means():
    _, gappy = gappy_rows()
    fair = fitted(gappy)
    filled = SimpleImputer().fit_transform(gappy)
    other = FairPCA(R).fit(filled, sensitive_features=GROUPS)
    np.testing.assert_allclose(fair.components_, other.components_, atol=1e-12)
    np.testing.assert_allclose(fair.mean_, np.nanmean(gappy, axis=0))
    shares = [np.isnan(gappy[name == GROUPS]).mean() for name in ("a", "b")]
    np.testing.assert_allclose(fair.filled_share_, shares)
    assert other.filled_share_ is None
    note = fair.group_table_.notes[-1]
    assert f"{100 * np.isnan(gappy).mean():.2g} %" in note
    assert f"'a' {100 * shares[0]:.2g} %" in note


def test_means_are_weighted():
    _, gappy = gappy_rows()
    weights = np.random.default_rng(1).integers(0, 3, N)
    fair = FairPCA(R, missing_values="mean")
    fair.fit(gappy, sensitive_features=GROUPS, sample_weight=weights)
    some = np.repeat(np.arange(N), weights)
    np.testing.assert_allclose(fair.mean_, np.nanmean(gappy[some], axis=0))
    shares = [np.isnan(gappy[some][name == GROUPS[some]]).mean() for name in ("a", "b")]
    np.testing.assert_allclose(fair.filled_share_, shares)


@pytest.mark.parametrize("whiten", [False, True])
def test_new_rows_are_fitted_by_least_squares(whiten):
    X, gappy = gappy_rows()
    fair = fitted(gappy, whiten=whiten)
    reduced = fair.transform(gappy)
    scale = np.sqrt(fair.explained_variance_) if whiten else 1.0
    for row, scores in zip(gappy, reduced, strict=True):
        there = ~np.isnan(row)
        centred, axes = (row - fair.mean_)[there], fair.components_[:, there].T
        expected = np.linalg.lstsq(axes, centred, rcond=1e-6)[0]
        np.testing.assert_allclose(scores * scale, expected, atol=1e-8)
    whole = ~np.isnan(gappy).any(axis=1)
    assert whole.sum() > 10
    np.testing.assert_allclose(reduced[whole], fair.transform(X[whole]), atol=1e-12)


def test_least_squares_lie_nearer_to_the_truth_than_means():
    X, gappy = gappy_rows()
    fair = fitted(gappy)
    filled = np.where(np.isnan(gappy), fair.mean_, gappy)
    truth = fair.transform(X)
    error = np.square(fair.transform(gappy) - truth).sum()
    assert error < 0.2 * np.square(fair.transform(filled) - truth).sum()


def test_what_a_row_does_not_determine_is_as_small_as_can_be():
    _, gappy = gappy_rows()
    fair = fitted(gappy)
    empty = np.full((1, D), np.nan)
    np.testing.assert_array_equal(fair.transform(empty), np.zeros((1, R)))
    one = empty.copy()
    one[0, 2] = 7.0
    expected = np.linalg.pinv(fair.components_[:, [2]].T) @ [7.0 - fair.mean_[2]]
    np.testing.assert_allclose(fair.transform(one)[0], expected, rtol=1e-9)


def _nullable(X):
    frame = pd.DataFrame(X, columns=list("stuvwxyz"))
    return frame.astype("Float64").mask(frame.isna())


def _polars(X):
    return pl.DataFrame(
        {f"c{j}": [None if np.isnan(x) else float(x) for x in X[:, j]] for j in range(D)}
    )


KINDS = {
    "sparse": scipy.sparse.csr_matrix,
    "columns": scipy.sparse.csc_array,
    "frame": lambda X: pd.DataFrame(X, columns=list("stuvwxyz")),
    "nullable": _nullable,
    "objects": lambda X: np.where(np.isnan(X), None, X.astype(object)),
    "masked": np.ma.masked_invalid,
    "polars": _polars,
    "arrow": lambda X: _polars(X).to_arrow(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_all_kinds(kind):
    _, gappy = gappy_rows()
    gappy[:, 3] = np.round(gappy[:, 3] - 5.0)  # of which some are zeros
    expected = fitted(gappy)
    table = KINDS[kind](gappy)
    before = table.copy() if hasattr(table, "copy") else table
    fair = fitted(table)
    np.testing.assert_allclose(fair.transform(table), expected.transform(gappy), atol=1e-9)
    np.testing.assert_allclose(fair.filled_share_, expected.filled_share_)
    if isinstance(table, np.ndarray) and not np.ma.isMaskedArray(table):
        assert (pd.isna(table) == pd.isna(before)).all()


def test_more_columns_than_rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 400)) + 0.3 * rng.normal(size=(60, 400))
    gappy = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    groups = np.repeat(["a", "b"], 30)
    fair = FairPCA(2, missing_values="mean").fit(gappy, sensitive_features=groups)
    other = FairPCA(2).fit(SimpleImputer().fit_transform(gappy), sensitive_features=groups)
    np.testing.assert_allclose(fair.components_, other.components_, atol=1e-9)


def test_groups_that_overlap_have_shares_of_their_own():
    _, gappy = gappy_rows()
    both = np.column_stack([GROUPS, np.tile(["x", "y"], N // 2)])
    fair = FairPCA(R, missing_values="mean", groups="marginals")
    fair.fit(gappy, sensitive_features=both)
    gaps = np.isnan(gappy)
    expected = [gaps[both[:, j] == name].mean() for j, name in ((0, "a"), (0, "b"), (1, "x"))]
    expected.append(gaps[both[:, 1] == "y"].mean())
    np.testing.assert_allclose(sorted(fair.filled_share_), sorted(expected))


def test_a_file_keeps_it(tmp_path):
    _, gappy = gappy_rows()
    fair = fitted(gappy)
    save_model(fair, tmp_path / "model.fairpca")
    again = load_model(tmp_path / "model.fairpca").fair_pca
    np.testing.assert_array_equal(again.transform(gappy), fair.transform(gappy))
    np.testing.assert_array_equal(again.filled_share_, fair.filled_share_)


def test_float32_stays():
    _, gappy = gappy_rows()
    assert fitted(gappy).transform(gappy.astype(np.float32)).dtype == np.float32


def test_in_a_pipeline_an_imputer_does_the_rest():
    _, gappy = gappy_rows()
    pipeline = make_pipeline(SimpleImputer(), FairPCA(R))
    pipeline.fit(gappy, fairpca__sensitive_features=GROUPS)
    np.testing.assert_allclose(pipeline[-1].components_, fitted(gappy).components_, atol=1e-12)


def test_what_cannot_be_done_is_refused():
    X, gappy = gappy_rows()
    with refused(ValueError, "NaN"):
        FairPCA(R).fit(gappy, sensitive_features=GROUPS)
    with refused(ValueError, "NaN"):
        FairPCA(R).fit(X, sensitive_features=GROUPS).transform(gappy)
    empty = gappy.copy()
    empty[:, 4] = np.nan
    with refused(ValueError, "no value", "4", "Leave"):
        fitted(empty)
    with refused(ValueError, "infinity"):
        FairPCA(R, missing_values="mean", groups=None).fit(np.where(np.isnan(gappy), np.inf, X))
    with refused(ValueError, "infinity"):
        fitted(gappy).transform(np.where(np.isnan(gappy), np.inf, X))
    with refused(ValueError, "missing_values", "mean"):
        FairPCA(R, missing_values="median").fit(X, sensitive_features=GROUPS)

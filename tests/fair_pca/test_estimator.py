"""FairPCA as an estimator: scikit-learn's contract, raw-row checks of results, and bad input."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairpca import (
    AtMost,
    Balanced,
    Equal,
    ExactSolver,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    MinMax,
    Problem,
)
from fairpca.datasets import load_credit

from texts import refused, warned

pytestmark = pytest.mark.contract  # scikit-learn: its checks, pipelines, routing, callbacks


def impossible_checks(estimator):
    """Checks that a whitened fit cannot pass, and why."""
    reason = "whitening divides by n - 1, n being the number of rows, whatever their weights"
    kinds = ("dense", "sparse") if estimator.whiten else ()
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}


# Without groups there is a warning, which Python's own filters let pass.
@pytest.mark.filterwarnings("ignore:.*here are no groups:fairpca.FairnessWarning")
@parametrize_with_checks(
    [
        FairPCA(),
        FairPCA(1),
        FairPCA(1, whiten=True),
        FairPCA(1, criterion="minmax"),
        FairPCA(criterion="equal"),
        FairPCA(1, criterion=Balanced()),
    ],
    expected_failed_checks=impossible_checks,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class NeverSolver:
    """Fails the test when it is asked to work."""

    def solve(self, problem):
        pytest.fail("the solver was called")


def two_groups(n=120, d=6, seed=0):
    """Two groups with different means and axes, in a ratio of one to two."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(3, 1, d)
    X[: n // 3] = X[: n // 3, ::-1] @ np.linalg.qr(rng.normal(size=(d, d)))[0] + rng.normal(size=d)
    order = rng.permutation(n)
    return X[order], np.array(["a"] * (n // 3) + ["b"] * (n - n // 3))[order]


def three_groups(n=150, d=6, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b", "c"], size=n, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(n, d))
    for label in "abc":
        X[groups == label] *= rng.uniform(0.8, 2.0, d)
    return X, groups


def fit_problem(X, groups, r, weights=None, **choices):
    """The estimator of a problem with choices that are no parameters of FairPCA."""
    problem = Problem(GroupMoments.from_rows(X, groups, sample_weight=weights), r, **choices)
    return FairPCA.from_solution(problem, ExactSolver().solve(problem))


def raw_losses(X, groups, components, centering="global", weights=None, aggregation="mean"):
    """Loss of each group by projecting its rows; in the order of sorted labels."""
    weights = np.ones(len(X)) if weights is None else weights
    found = []
    for label in sorted(set(groups)):
        rows, w = X[groups == label], weights[groups == label]
        center = np.average(X, axis=0, weights=weights)
        if centering == "group":
            center = np.average(rows, axis=0, weights=w)
        centred = rows - center
        error = np.square(centred - centred @ components.T @ components).sum(axis=1)
        found.append(w @ error if aggregation == "sum" else np.average(error, weights=w))
    return np.array(found)


def raw_own_losses(X, groups, r, centering="global", aggregation="mean"):
    found = []
    for label in sorted(set(groups)):
        rows = X[groups == label]
        centred = rows - (X if centering == "global" else rows).mean(axis=0)
        tail = np.linalg.svd(centred, compute_uv=False)[r:]
        found.append((tail**2).sum() / (1 if aggregation == "sum" else len(rows)))
    return np.array(found)


def projector(fitted):
    return fitted.components_.T @ fitted.components_


@pytest.fixture
def metadata_routing():
    before = sklearn.get_config()["enable_metadata_routing"]
    sklearn.set_config(enable_metadata_routing=True)
    yield
    sklearn.set_config(enable_metadata_routing=before)


# --- Within scikit-learn ------------------------------------------------------


def test_pipeline_with_a_step_parameter():
    X, groups = two_groups()
    pipe = Pipeline([("scale", StandardScaler()), ("fair", FairPCA(2, criterion="minmax"))])
    pipe.fit(X, fair__sensitive_features=groups)
    scaled = StandardScaler().fit_transform(X)
    alone = FairPCA(2, criterion="minmax").fit(scaled, sensitive_features=groups)
    assert pipe["fair"].group_table_.labels == ("a", "b")
    np.testing.assert_allclose(pipe.transform(X), alone.transform(scaled), atol=1e-10)
    reduced = Pipeline(
        [("scale", StandardScaler()), ("fair", FairPCA(2, criterion="minmax"))]
    ).fit_transform(X, fair__sensitive_features=groups)
    np.testing.assert_allclose(reduced, pipe.transform(X), atol=1e-10)


def test_grid_search_over_the_dimension():
    X, groups = two_groups()
    grid = GridSearchCV(FairPCA(criterion="minmax"), {"n_components": [1, 2, 4]}, cv=3)
    grid.fit(X, sensitive_features=groups)
    scores = grid.cv_results_["mean_test_score"]
    assert grid.best_params_ == {"n_components": 4}  # more dimensions lose less
    assert scores[0] < scores[1] < scores[2] < 0
    assert grid.best_estimator_.group_table_.labels == ("a", "b")


@pytest.mark.usefixtures("metadata_routing")
def test_routing_brings_the_groups_to_a_pipeline_without_a_request():
    X, groups = two_groups()
    pipe = Pipeline([("scale", StandardScaler()), ("fair", FairPCA(2, criterion="minmax"))])
    pipe.fit(X, sensitive_features=groups)
    scaled = StandardScaler().fit_transform(X)
    alone = FairPCA(2, criterion="minmax").fit(scaled, sensitive_features=groups)
    assert pipe["fair"].group_table_.labels == ("a", "b")
    np.testing.assert_allclose(projector(pipe["fair"]), projector(alone), atol=1e-10)


@pytest.mark.usefixtures("metadata_routing")
def test_routing_brings_the_groups_to_a_grid_search_without_a_request():
    X, groups = two_groups()
    for search, name in [
        (FairPCA(criterion="minmax"), "n_components"),
        (
            Pipeline([("scale", StandardScaler()), ("fair", FairPCA(criterion="minmax"))]),
            "fair__n_components",
        ),
    ]:
        grid = GridSearchCV(search, {name: [1, 3]}, cv=3).fit(X, sensitive_features=groups)
        best = grid.best_estimator_
        fair = best if isinstance(best, FairPCA) else best["fair"]
        assert fair.group_table_.labels == ("a", "b")
        assert np.isfinite(grid.cv_results_["mean_test_score"]).all()


def test_clone_and_parameters():
    solver, criterion = ExactSolver(n_starts=3), Equal(tolerance=0.5, measure="share_lost")
    fair = FairPCA(
        2,
        criterion=criterion,
        solver=solver,
        whiten=True,
        groups="both",
        keep_sensitive=True,
        missing_labels="group",
        missing_values="mean",
        random_state=3,
    )
    expected = {
        "n_components": 2,
        "criterion": criterion,
        "solver": solver,
        "whiten": True,
        "groups": "both",
        "keep_sensitive": True,
        "missing_labels": "group",
        "missing_values": "mean",
        "random_state": 3,
    }
    nested = {"criterion__tolerance": 0.5, "criterion__measure": "share_lost"}
    assert fair.get_params(deep=False) == expected
    assert fair.get_params() == expected | nested
    X, groups = two_groups()
    fair.fit(X, sensitive_features=groups)
    assert fair.get_params() == expected | nested
    copy = clone(fair)
    assert not hasattr(copy, "components_")
    assert copy.criterion is not criterion
    assert copy.get_params() == expected | nested | {"criterion": copy.criterion}
    assert copy.set_params(n_components=3).n_components == 3


def test_parameters_of_a_criterion_are_those_of_a_clone_alone():
    X, groups = three_groups()
    fair = FairPCA(2, criterion=MinMax())
    copy = clone(fair).set_params(criterion__max_extra_loss=0.01, criterion__measure="loss")
    assert fair.criterion.get_params() == {"measure": "disparity", "max_extra_loss": None}
    copy.fit(X, sensitive_features=groups)
    same = FairPCA(2, criterion=MinMax("loss", max_extra_loss=0.01))
    np.testing.assert_array_equal(
        copy.components_, same.fit(X, sensitive_features=groups).components_
    )
    copy.set_params(criterion="minmax").fit(X, sensitive_features=groups)
    fair.fit(X, sensitive_features=groups)
    np.testing.assert_array_equal(copy.components_, fair.components_)
    with refused(ValueError, "'tolerance'", "MinMax"):
        fair.set_params(criterion__tolerance=0.1)


def test_grid_search_over_a_parameter_of_the_criterion():
    X, groups = three_groups(n=600)
    grid = GridSearchCV(
        FairPCA(2, criterion=MinMax()), {"criterion__max_extra_loss": [0.0, 0.01, None]}, cv=3
    )
    grid.fit(X, sensitive_features=groups)
    scores = grid.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert len(set(scores)) == 3
    best = grid.best_estimator_
    assert best.criterion.max_extra_loss == grid.best_params_["criterion__max_extra_loss"]
    assert best.certificate_.extra_loss == best.criterion.max_extra_loss


@pytest.mark.parametrize(
    "criterion",
    ["minmax", MinMax("loss", 0.1), Equal(0.5), AtMost({"a": 20.0}), Balanced()],
    ids=str,
)
def test_pickle_round_trip(criterion):
    X, groups = two_groups()
    fair = FairPCA(2, criterion=criterion).fit(X, sensitive_features=groups)
    again = pickle.loads(pickle.dumps(fair))
    assert repr(again) == repr(fair)
    np.testing.assert_array_equal(again.transform(X), fair.transform(X))
    assert str(again.group_table_) == str(fair.group_table_)
    assert str(again.certificate_) == str(fair.certificate_)


def test_a_fitted_model_does_not_carry_the_groups_covariances():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((500, 100)), rng.integers(0, 2, 500)
    fair = FairPCA(3, criterion="minmax").fit(X, sensitive_features=groups)
    assert len(pickle.dumps(fair)) < 3 * 8 * fair.components_.size + 20_000


def test_names_out_and_pandas_output():
    X, groups = two_groups()
    fair = (
        FairPCA(2, criterion="minmax")
        .set_output(transform="pandas")
        .fit(X, sensitive_features=groups)
    )
    frame = fair.transform(pd.DataFrame(X, index=range(5, 125)).to_numpy())
    assert list(fair.get_feature_names_out()) == ["fairpca0", "fairpca1"]
    assert list(frame.columns) == ["fairpca0", "fairpca1"]
    plain = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups).transform(X)
    np.testing.assert_array_equal(frame.to_numpy(), plain)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_of_data_frames(frame):
    X, groups = two_groups()
    names = list("uvwxyz")
    data = frame(dict(zip(names, X.T, strict=True)))
    fair = FairPCA(2, criterion="minmax").fit(data, sensitive_features=groups)
    assert fair.feature_names_in_.tolist() == names
    np.testing.assert_allclose(
        fair.transform(data),
        FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups).transform(X),
        atol=1e-10,
    )
    other = frame(dict(zip([*names[:5], "other"], X.T, strict=True)))
    for method in (fair.transform, fair.score):
        with refused(ValueError, "feature names"):
            method(other)
        with refused(ValueError, "feature names"):
            method(data[names[::-1]])
        with pytest.raises(ValueError, match=r"The feature names should match|has 5 features"):
            method(data[names[:5]])


# --- Without groups it is PCA -------------------------------------------------


@pytest.mark.parametrize("r", [1, 3, 6])
def test_without_groups_it_is_pca(r):
    X, _ = two_groups()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fair = FairPCA(r, groups=None).fit(X)
    pca = PCA(r, svd_solver="full").fit(X)
    np.testing.assert_allclose(fair.mean_, pca.mean_, atol=1e-12)
    np.testing.assert_allclose(projector(fair), projector(pca), atol=1e-10)
    np.testing.assert_allclose(np.abs(fair.components_), np.abs(pca.components_), atol=1e-9)
    np.testing.assert_allclose(fair.explained_variance_, pca.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(
        fair.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-10
    )
    signs = np.sign((fair.components_ * pca.components_).sum(axis=1))
    np.testing.assert_allclose(fair.transform(X), pca.transform(X) * signs, atol=1e-9)
    np.testing.assert_allclose(
        fair.inverse_transform(fair.transform(X)),
        pca.inverse_transform(pca.transform(X)),
        atol=1e-9,
    )


def test_signs_without_groups_are_those_of_scikit_learn():
    X, _ = two_groups()
    np.testing.assert_allclose(
        FairPCA(3, groups=None).fit(X).components_,
        PCA(3, svd_solver="full").fit(X).components_,
        atol=1e-9,
    )


def test_one_label_only_warns_and_is_pca():
    X, _ = two_groups()
    with warned(FairnessWarning, "one group", "'only'") as caught:
        fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=["only"] * len(X))
    assert len(caught) == 1
    assert "ordinary PCA" in str(caught[0].message)
    np.testing.assert_allclose(projector(fair), projector(PCA(2).fit(X)), atol=1e-10)


# --- Results against raw rows -------------------------------------------------


@pytest.mark.parametrize("aggregation", ["mean", "sum"])
@pytest.mark.parametrize("centering", ["global", "group"])
@pytest.mark.parametrize("criterion", ["equal", "minmax"])
def test_table_and_equality_against_raw_rows(criterion, centering, aggregation):
    X, groups = two_groups()
    if (centering, aggregation) == ("global", "mean"):
        fair = FairPCA(2, criterion=criterion).fit(X, sensitive_features=groups)
    else:
        choices = {"centering": centering, "aggregation": aggregation}
        fair = fit_problem(X, groups, 2, criterion=criterion, **choices)
    table = fair.group_table_
    assert table.labels == ("a", "b")
    assert table.count.tolist() == [40, 80]
    own = raw_own_losses(X, groups, 2, centering, aggregation)
    losses = raw_losses(X, groups, fair.components_, centering, aggregation=aggregation)
    np.testing.assert_allclose(table.own_loss, own, rtol=1e-9)
    np.testing.assert_allclose(table.loss, losses, rtol=1e-9)
    np.testing.assert_allclose(table.disparity, losses - own, rtol=1e-7)
    assert np.ptp(losses - own) <= 1e-8 * losses.sum()
    assert fair.certificate_.status == "optimal"


def test_pca_columns_of_the_table_are_those_of_scikit_learn():
    X, groups = two_groups()
    table = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups).group_table_
    pca = PCA(2).fit(X)
    errors = np.square(X - pca.inverse_transform(pca.transform(X))).sum(axis=1)
    expected = [errors[groups == label].mean() for label in "ab"]
    np.testing.assert_allclose(table.pca_loss, expected, rtol=1e-9)
    own = raw_own_losses(X, groups, 2)
    np.testing.assert_allclose(table.pca_disparity, expected - own, rtol=1e-7)
    assert np.ptp(table.pca_disparity) > 0.1  # so that there is something to make fair


@pytest.mark.filterwarnings("ignore::fairpca.FairnessWarning")
@pytest.mark.parametrize("criterion", ["equal", "minmax"])
def test_transforms_and_scores_against_raw_rows(criterion):
    X, groups = three_groups()
    fair = FairPCA(3, criterion=criterion).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(fair.mean_, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(fair.components_ @ fair.components_.T, np.eye(3), atol=1e-12)
    new = np.random.default_rng(5).normal(size=(40, 6)) + 3.0
    reduced = (new - X.mean(axis=0)) @ fair.components_.T
    np.testing.assert_allclose(fair.transform(new), reduced, atol=1e-12)
    restored = reduced @ fair.components_ + X.mean(axis=0)
    np.testing.assert_allclose(fair.inverse_transform(reduced), restored, atol=1e-12)
    errors = np.square(new - restored).sum(axis=1)
    assert fair.score(new) == pytest.approx(-errors.mean(), rel=1e-10)
    weights = np.arange(40.0)
    expected = -np.average(errors, weights=weights)
    assert fair.score(new, sample_weight=weights) == pytest.approx(expected, rel=1e-10)


@pytest.mark.filterwarnings("ignore::fairpca.FairnessWarning")
@pytest.mark.parametrize("options", [None, {"aggregation": "sum"}, {"centering": "group"}])
@pytest.mark.parametrize("make", [two_groups, three_groups])
def test_components_carry_falling_uncorrelated_variance(make, options):
    X, groups = make()
    if options is None:
        fair = FairPCA(3, criterion="minmax").fit(X, sensitive_features=groups)
    else:
        fair = fit_problem(X, groups, 3, **options)
    scores = (X - X.mean(axis=0)) @ fair.components_.T
    covariance = np.cov(scores.T)
    np.testing.assert_allclose(covariance, np.diag(fair.explained_variance_), atol=1e-10)
    assert (np.diff(fair.explained_variance_) <= 0).all()
    ratio = scores.var(axis=0, ddof=1) / X.var(axis=0, ddof=1).sum()
    np.testing.assert_allclose(fair.explained_variance_ratio_, ratio, rtol=1e-10)
    largest = np.abs(fair.components_).argmax(axis=1)
    assert (fair.components_[np.arange(3), largest] > 0).all()


def test_fit_repeats_itself():
    X, groups = three_groups()
    first, second = (
        FairPCA(3, criterion="minmax").fit(X, sensitive_features=groups) for _ in range(2)
    )
    np.testing.assert_array_equal(first.components_, second.components_)


def test_order_of_rows_does_not_matter():
    X, groups = two_groups()
    order = np.random.default_rng(1).permutation(len(X))
    first = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    second = FairPCA(2, criterion="minmax").fit(X[order], sensitive_features=groups[order])
    np.testing.assert_allclose(projector(first), projector(second), atol=1e-8)


@pytest.mark.parametrize("order", ["C", "F"])
def test_input_is_left_alone(order):
    X, groups = two_groups()
    data, weights = np.array(X, order=order), np.full(len(X), 2.0)
    data.setflags(write=False)
    weights.setflags(write=False)
    fair = FairPCA(2, criterion="minmax").fit(
        data, sensitive_features=groups, sample_weight=weights
    )
    reduced = fair.transform(data)
    reduced.setflags(write=False)
    before = reduced.copy()
    fair.inverse_transform(reduced)
    fair.score(data, sample_weight=weights)
    np.testing.assert_array_equal(data, X)
    np.testing.assert_array_equal(reduced, before)


def test_float32_stays_float32():
    X, groups = two_groups()
    small = X.astype(np.float32)
    fair = FairPCA(2, criterion="minmax").fit(small, sensitive_features=groups)
    reduced = fair.transform(small)
    assert reduced.dtype == np.float32
    assert fair.inverse_transform(reduced).dtype == np.float32
    double = FairPCA(2, criterion="minmax").fit(small.astype(np.float64), sensitive_features=groups)
    np.testing.assert_allclose(projector(fair), projector(double), atol=1e-8)
    np.testing.assert_allclose(reduced, double.transform(small.astype(float)), atol=1e-4)
    assert fair.transform(X).dtype == np.float64
    assert fair.transform(X.astype(int)).dtype == np.float64


@pytest.mark.parametrize(
    "convert", [scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.csr_array]
)
def test_sparse_rows_give_what_dense_ones_give(convert):
    X, groups = two_groups()
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    dense = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    sparse = FairPCA(2, criterion="minmax").fit(convert(X), sensitive_features=groups)
    np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-9)
    np.testing.assert_allclose(sparse.transform(convert(X)), dense.transform(X), atol=1e-9)
    assert isinstance(sparse.transform(convert(X)), np.ndarray)
    assert sparse.score(convert(X)) == pytest.approx(dense.score(X), rel=1e-10)


@pytest.mark.parametrize("options", [None, {"aggregation": "sum"}, {"centering": "group"}])
def test_integer_weights_are_repeated_rows(options):
    X, groups = two_groups()
    weights = np.random.default_rng(3).integers(0, 4, len(X))
    rows, labels = np.repeat(X, weights, axis=0), np.repeat(groups, weights)
    if options is None:
        weighted = FairPCA(2, criterion="minmax").fit(
            X, sensitive_features=groups, sample_weight=weights
        )
        repeated = FairPCA(2, criterion="minmax").fit(rows, sensitive_features=labels)
    else:
        weighted = fit_problem(X, groups, 2, weights, **options)
        repeated = fit_problem(rows, labels, 2, **options)
    np.testing.assert_allclose(weighted.mean_, repeated.mean_, atol=1e-12)
    np.testing.assert_allclose(projector(weighted), projector(repeated), atol=1e-8)
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-7)
    np.testing.assert_allclose(
        weighted.explained_variance_ratio_, repeated.explained_variance_ratio_, rtol=1e-8
    )
    for column in ("own_loss", "pca_loss", "loss"):
        np.testing.assert_allclose(
            getattr(weighted.group_table_, column),
            getattr(repeated.group_table_, column),
            rtol=1e-8,
        )


def test_rows_without_weight_make_no_group_and_a_warning_says_so():
    X, groups = two_groups()
    labels = [*groups, "alone"]
    weights = np.append(np.ones(len(X)), 0.0)
    with warned(FairnessWarning, "'alone'", "left out"):
        fair = FairPCA(2, criterion="minmax").fit(
            np.vstack([X, X[:1]]), sensitive_features=labels, sample_weight=weights
        )
    plain = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    assert fair.group_table_.labels == ("a", "b")
    np.testing.assert_allclose(projector(fair), projector(plain), atol=1e-8)


def test_weights_that_leave_one_group_warn():
    X, groups = two_groups()
    with (
        warned(FairnessWarning, "'a'", "left out"),
        warned(FairnessWarning, "one group", "'b'"),
    ):
        FairPCA(2, criterion="minmax").fit(
            X, sensitive_features=groups, sample_weight=groups == "b"
        )


def test_scale_does_not_matter_for_two_groups():
    X, groups = two_groups()
    plain = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    for scale in (1e-8, 1e8):
        scaled = FairPCA(2, criterion="minmax").fit(X * scale, sensitive_features=groups)
        np.testing.assert_allclose(projector(scaled), projector(plain), atol=1e-7)
        np.testing.assert_allclose(
            scaled.group_table_.disparity / scale**2, plain.group_table_.disparity, rtol=1e-7
        )
        assert scaled.certificate_.status == plain.certificate_.status


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("criterion", ["equal", "minmax"])
def test_scale_does_not_matter_for_three_groups(criterion, scale):
    X, groups = three_groups()
    plain = FairPCA(3, criterion=criterion).fit(X, sensitive_features=groups)
    scaled = FairPCA(3, criterion=criterion).fit(X * scale, sensitive_features=groups)
    np.testing.assert_allclose(projector(scaled), projector(plain), atol=1e-5)


def test_constant_columns_are_fine():
    X, groups = two_groups()
    X[:, 2] = 7.0
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    np.testing.assert_allclose(fair.components_[:, 2], 0.0, atol=1e-9)
    np.testing.assert_allclose(fair.inverse_transform(fair.transform(X))[:, 2], 7.0)
    fair = FairPCA(2, criterion="minmax").fit(np.ones((20, 3)), sensitive_features=["a", "b"] * 10)
    np.testing.assert_allclose(fair.transform(np.ones((2, 3))), 0.0, atol=1e-12)
    np.testing.assert_array_equal(fair.explained_variance_ratio_, [0.0, 0.0])


# --- The dimension ------------------------------------------------------------


def test_no_dimension_means_the_rank_of_the_data():
    X, groups = two_groups()
    assert FairPCA(criterion="minmax").fit(X, sensitive_features=groups).n_components_ == 6
    X[:, 4] = X[:, 0] - X[:, 1]
    X[:, 5] = 3.0
    fair = FairPCA(criterion="minmax").fit(X, sensitive_features=groups)
    assert fair.n_components_ == np.linalg.matrix_rank(X - X.mean(axis=0)) == 4
    np.testing.assert_allclose(fair.inverse_transform(fair.transform(X)), X, atol=1e-7)
    assert FairPCA(groups=None).fit(X[:3]).n_components_ == 2


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.95, np.float32(0.6)])
@pytest.mark.parametrize("criterion", ["minmax", "balanced", MinMax("share_lost")], ids=str)
def test_share_is_the_smallest_dimension_at_which_the_worst_off_group_keeps_it(share, criterion):
    X, groups = two_groups()
    nothing = raw_losses(X, groups, np.zeros((1, 6)))
    for r in range(1, 7):
        fair = FairPCA(r, criterion=criterion).fit(X, sensitive_features=groups)
        kept = 1 - raw_losses(X, groups, fair.components_) / nothing
        if kept.min() >= share:
            break
    found = FairPCA(share, criterion=criterion).fit(X, sensitive_features=groups)
    assert found.n_components_ == r
    assert found.components_.shape == (r, 6)
    np.testing.assert_allclose(projector(found), projector(fair), atol=1e-8)


def test_share_without_groups_is_that_of_pca():
    X, _ = two_groups()
    for share in (0.3, 0.7, 0.9):
        expected = PCA(share, svd_solver="full").fit(X).n_components_
        assert FairPCA(share, groups=None).fit(X).n_components_ == expected


@pytest.mark.parametrize("tolerance", [0.01, 0.1, 0.3])
def test_tolerance_is_respected_and_used(tolerance):
    X, groups = two_groups()

    def spread_and_loss(fitted):
        losses = raw_losses(X, groups, fitted.components_)
        return np.ptp(losses - raw_own_losses(X, groups, 2)), losses @ [1 / 3, 2 / 3]

    _, strict_loss = spread_and_loss(
        FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    )
    pca_spread, pca_loss = spread_and_loss(PCA(2).fit(X))
    fair = FairPCA(2, criterion=Equal(tolerance * pca_spread))
    fair.fit(X, sensitive_features=groups)
    spread, loss = spread_and_loss(fair)
    assert spread <= tolerance * pca_spread + 1e-8
    assert pca_loss < loss < strict_loss
    # Less than the tolerance would be a waste: loss could still be lowered.
    assert spread == pytest.approx(tolerance * pca_spread, rel=1e-5)


def test_tolerance_wider_than_pcas_spread_gives_pca():
    X, groups = two_groups()
    fair = FairPCA(2, criterion=Equal(tolerance=1e3)).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(projector(fair), projector(PCA(2).fit(X)), atol=1e-9)


def test_intersections_of_several_columns():
    X, groups = two_groups()
    second = np.array(["x", "y"] * 60)
    frame = pd.DataFrame({"one": groups, "two": second})
    fair = FairPCA(3, criterion="minmax").fit(X, sensitive_features=frame)
    pairs = sorted(set(zip(groups, second, strict=True)))
    assert list(fair.group_table_.labels) == pairs
    joined = np.array([f"{a}{b}" for a, b in zip(groups, second, strict=True)])
    np.testing.assert_allclose(
        fair.group_table_.loss, raw_losses(X, joined, fair.components_), rtol=1e-9
    )


# --- Bad input ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 0}, "n_components 0"),
        ({"n_components": -1}, "n_components -1"),
        ({"n_components": 1.0}, "n_components 1.0"),
        ({"n_components": 0.0}, "n_components 0.0"),
        ({"n_components": 2.5}, "n_components 2.5"),
        ({"n_components": np.nan}, "n_components nan"),
        ({"n_components": True}, "n_components True"),
        ({"n_components": "three"}, "n_components 'three'"),
        ({"n_components": [2]}, "n_components [2]"),
        ({"criterion": "fair"}, "criterion 'fair'"),
        ({"criterion": None}, "criterion None"),
        ({"criterion": MinMax}, "class criterion=MinMax()."),
        ({"criterion": AtMost}, "class criterion=AtMost(bounds)."),
        ({"solver": "magic"}, "solver 'exact' 'pareto' 'magic'"),
        (
            {"missing_labels": "no"},
            "missing_labels 'error' 'group' 'drop' 'no'",
        ),
        ({"groups": "all"}, "groups 'intersections' 'marginals' 'both'"),
        ({"keep_sensitive": 1}, "keep_sensitive True 1"),
        ({"criterion": Equal(-1e-3)}, "tolerance -0.001"),
        ({"criterion": Equal(np.nan)}, "tolerance nan"),
        ({"criterion": Equal(np.inf)}, "tolerance inf"),
        ({"criterion": Equal("small")}, "tolerance 'small'"),
    ],
)
def test_wrong_parameters_are_refused_before_any_work(options, words, monkeypatch):
    monkeypatch.setattr(GroupMoments, "from_groups", lambda *_: pytest.fail("rows were read"))
    X, groups = two_groups()
    with refused(ValueError, *words.split()) as error:
        FairPCA(**options).fit(X, sensitive_features=groups)
    assert "\n" not in str(error.value)


def test_more_components_than_columns(monkeypatch):
    monkeypatch.setattr(GroupMoments, "from_groups", lambda *_: pytest.fail("rows were read"))
    X, groups = two_groups()
    with refused(ValueError, "n_components=7", "n_features=6"):
        FairPCA(7, criterion="minmax").fit(X, sensitive_features=groups)


def test_labels_of_another_length(monkeypatch):
    monkeypatch.setattr(GroupMoments, "from_groups", lambda *_: pytest.fail("rows were read"))
    X, groups = two_groups()
    with refused(ValueError, "inconsistent numbers", "[120, 119]", "sensitive_features"):
        FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups[1:])


def test_missing_labels_are_counted_and_both_choices_named():
    X, groups = two_groups()
    labels = [None, np.nan, *groups[2:]]
    with refused(ValueError, "2 missing", "120 rows", "missing_labels='group'"):
        FairPCA(2, solver=NeverSolver(), criterion="minmax").fit(X, sensitive_features=labels)
    fair = FairPCA(3, criterion="minmax", missing_labels="group")
    fair.fit(X, sensitive_features=labels)
    assert fair.group_table_.labels == ("a", "b", "(missing)")
    assert fair.group_table_.count[-1] == 2


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "NaN"),
        (np.inf, "infinity"),
        (1e200, "squared"),
    ],
)
def test_values_that_cannot_be_used(value, words):
    X, groups = two_groups()
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    X[3, 1] = value
    with refused(ValueError, *words.split()):
        FairPCA(2, solver=NeverSolver(), criterion="minmax").fit(X, sensitive_features=groups)
    with refused(ValueError, *words.split()):
        fair.score(X)
    if not np.isfinite(value):
        with refused(ValueError, *words.split()):
            fair.transform(X)


def test_groups_of_a_single_row_are_named():
    X, groups = two_groups()
    labels = ["lonely", *groups[1:]]
    with warned(FairnessWarning, "Too few", "'lonely' (1") as caught:
        FairPCA(3, criterion="minmax").fit(X, sensitive_features=labels)
    assert len(caught) == 1


def text_frames():
    X, _ = two_groups(n=6)
    numbers = X[:, 0].tolist()
    words = list("uvwxyz")
    return {
        "pandas": pd.DataFrame({"size": numbers, "town": words}),
        "pandas object": pd.DataFrame({"size": numbers, "town": pd.Series(words, dtype=object)}),
        "pandas string": pd.DataFrame({"size": numbers, "town": pd.Series(words, dtype="string")}),
        "pandas category": pd.DataFrame({"size": numbers, "town": pd.Categorical(words)}),
        "pandas date": pd.DataFrame({"size": numbers, "town": pd.to_datetime(["2020-01-01"] * 6)}),
        "polars": pl.DataFrame({"size": numbers, "town": words}),
        "polars category": pl.DataFrame(
            {"size": numbers, "town": pl.Series(words, dtype=pl.Categorical)}
        ),
    }


@pytest.mark.parametrize("kind", list(text_frames()))
def test_text_columns_of_frames_are_named(kind):
    data = text_frames()[kind]
    with refused(ValueError, "non-numeric", "'town'"):
        FairPCA(solver=NeverSolver(), criterion="minmax").fit(
            data, sensitive_features=list("ababab")
        )


def test_text_columns_of_arrays_are_numbered():
    data = np.array([[1.0, "x", 2.0], [2.0, "y", 1.0]], dtype=object)
    with refused(ValueError, "non-numeric columns: 1."):
        FairPCA(solver=NeverSolver(), criterion="minmax").fit(data)
    with refused(ValueError, "non-numeric columns: 0, 1."):
        FairPCA(solver=NeverSolver(), criterion="minmax").fit(np.array([["u", "v"], ["x", "y"]]))


def test_only_the_first_of_many_text_columns_are_named():
    frame = pl.DataFrame({f"c{i}": ["u", "v"] for i in range(8)})
    with refused(ValueError, "'c0'", "'c4' and 3 more."):
        FairPCA(solver=NeverSolver(), criterion="minmax").fit(frame)


def test_numbers_in_object_columns_are_fine():
    X, groups = two_groups()
    expected = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups).components_
    for data in (X.astype(object), pd.DataFrame(X).astype(object)):
        fair = FairPCA(2, criterion="minmax").fit(data, sensitive_features=groups)
        np.testing.assert_allclose(fair.components_, expected, atol=1e-9)


def test_nothing_works_before_fit():
    X, _ = two_groups()
    for call in (
        lambda: FairPCA(2, criterion="minmax").transform(X),
        lambda: FairPCA(2, criterion="minmax").inverse_transform(X[:, :2]),
        lambda: FairPCA(2, criterion="minmax").score(X),
        lambda: FairPCA(2, criterion="minmax").get_feature_names_out(),
    ):
        with pytest.raises(NotFittedError):
            call()


def test_inverse_transform_of_the_wrong_width():
    X, groups = two_groups()
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    with refused(ValueError, "3 columns", "FairPCA", "to 2"):
        fair.inverse_transform(X[:, :3])


def test_transform_of_the_wrong_width():
    X, groups = two_groups()
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    with refused(ValueError, "5 features", "FairPCA", "6 features"):
        fair.transform(X[:, :5])


def test_impossible_equality_is_said_once_with_what_was_returned():
    credit = load_credit(sensitive="marriage", as_frame=False)
    X = StandardScaler().fit_transform(credit.data)
    groups = credit.sensitive_features
    with pytest.warns(FairnessWarning) as caught:
        fair = FairPCA(2, criterion="equal").fit(X, sensitive_features=groups)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    disparities = raw_losses(X, groups, fair.components_) - raw_own_losses(X, groups, 2)
    text = str(caught[0].message)
    assert text.startswith("Proven impossible: in every subspace of this dimension")
    returned = re.search(r"The smallest difference that was found is (\d+\.\d+)\.", text)
    assert float(returned[1]) == pytest.approx(np.ptp(disparities), rel=1e-5)
    assert fair.certificate_.status == "infeasible"
    assert 0 < fair.certificate_.violation_bound <= np.ptp(disparities) + 1e-9


def test_a_solver_of_ones_own():
    class PlainSolver:
        def solve(self, problem):
            self.problem = problem
            return ExactSolver().solve(problem)

    X, groups = two_groups()
    solver, criterion = PlainSolver(), Equal(0.5, "loss")
    fair = FairPCA(2, criterion=criterion, solver=solver).fit(X, sensitive_features=groups)
    assert solver.problem.n_components == 2
    assert solver.problem.criterion is criterion
    assert fair.solution_.solver == "exact"


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.ma.array(np.ones((4, 2)), mask=np.eye(4, 2, dtype=bool)), "masked values"),
        (np.ones((4, 2)).astype("datetime64[D]"), "non-numeric columns: 0, 1"),
        (pd.DataFrame(), "X empty"),
        (pl.LazyFrame({"a": [1.0, 2.0]}), "lazy frame"),
    ],
)
def test_what_is_no_table_of_numbers(X, words):
    with refused(ValueError, *words.split()):
        FairPCA(1, criterion="minmax").fit(X)


@pytest.mark.parametrize("seed", ["x", -1, 2.5, True, np.random.default_rng(0)])
def test_a_seed_is_a_number(seed):
    X, groups = two_groups()
    with refused(ValueError, "random_state"):
        FairPCA(2, random_state=seed, criterion="minmax").fit(X, sensitive_features=groups)


def test_a_solver_class_is_not_a_solver():
    X, groups = two_groups()
    with refused(ValueError, "solver=ExactSolver()"):
        FairPCA(2, solver=ExactSolver, criterion="minmax").fit(X, sensitive_features=groups)


@pytest.mark.parametrize("weights", [["a"] * 120, [1e308] * 120])
def test_weights_that_are_no_weights(weights):
    X, groups = two_groups()
    with refused(ValueError, "sample_weight"):
        FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups, sample_weight=weights)


@pytest.mark.parametrize("centering", ["global", "group"])
def test_the_pca_columns_are_those_of_ordinary_pca(centering):
    X, groups = two_groups()
    table = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups).group_table_
    if centering == "group":
        table = fit_problem(X, groups, 2, centering="group").group_table_
    components = PCA(2).fit(X).components_
    for i, label in enumerate(table.labels):
        rows = X[groups == label]
        centred = rows - (X if centering == "global" else rows).mean(axis=0)
        left = np.square(centred - centred @ components.T @ components).sum(axis=1).mean()
        assert table.pca_loss[i] == pytest.approx(left, rel=1e-9)

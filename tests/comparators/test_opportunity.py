"""The projection for equal opportunity: equal means of positives, the contract, bad input."""

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairpca import FairnessWarning, FairPCA
from fairpca.comparators import EqualOpportunityProjection

from texts import refused, warned


class Grouped(EqualOpportunityProjection):
    """With groups and two classes, whatever scikit-learn's checks pass."""

    def fit(self, X, y=None, sample_weight=None):
        n = np.asarray(X).shape[0] if not hasattr(X, "shape") else X.shape[0]
        y = y if y is None else np.arange(n) // 2 % 2
        groups = np.arange(n) % 2
        return super().fit(X, y, sensitive_features=groups, sample_weight=sample_weight)


@pytest.mark.filterwarnings("ignore:There are no groups:fairpca.FairnessWarning")
@parametrize_with_checks([EqualOpportunityProjection()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# Its groups go by position, so these two, which move or drop rows, are about something else.
@parametrize_with_checks(
    [Grouped()],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "groups go by position",
        "check_sample_weight_equivalence_on_sparse_data": "groups go by position",
    },
)
def test_scikit_learn_checks_with_groups(estimator, check):
    check(estimator)


def people(k=2, n=40, d=8, seed=0):
    """n rows of each group on average, at least 3 positives in each, and weights."""
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(k).repeat(3), rng.integers(0, k, k * (n - 3))])
    y = np.concatenate([np.ones(3 * k, dtype=int), rng.integers(0, 2, k * (n - 3))])
    X = rng.normal(size=(len(y), d)) @ rng.normal(size=(d, d))
    X += rng.normal(size=(k, d))[groups] * y[:, None] + rng.normal(size=(k, d))[groups]
    return X, y, groups, rng.uniform(0.1, 2.0, len(y))


def positive_means(X, y, groups, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    some = [(groups == group) & (y == 1) for group in np.unique(groups)]
    return np.array([np.average(X[own], axis=0, weights=weights[own]) for own in some])


def fitted(X, y, groups, **choices):
    weights = choices.pop("sample_weight", None)
    projection = EqualOpportunityProjection(**choices)
    return projection.fit(X, y, sensitive_features=groups, sample_weight=weights)


# --- What it does -----------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 5, 20, 60]), st.booleans())
def test_the_positives_of_all_groups_have_the_same_mean(seed, k, weighted):
    rng = np.random.default_rng(seed)
    X, y, groups, weights = people(k, 12, k + 3, seed)
    weights = weights if weighted else None
    groups = np.char.mod("%02d", groups)
    X[:, 0] = 7e8  # constant
    X *= 10.0 ** rng.integers(-8, 9, X.shape[1])  # each column in units of its own
    projection = fitted(X, y, groups, sample_weight=weights)
    assert projection.directions_.shape == (k - 1, X.shape[1])
    left = projection.transform(X)
    spread = X.std(axis=0)
    apart = np.ptp(positive_means(left, y, groups, weights), axis=0)
    before = np.ptp(positive_means(X, y, groups, weights), axis=0)
    varying = spread > 0
    assert (apart[varying] <= 1e-9 * spread[varying]).all()
    assert (before[varying] > 1e-3 * spread[varying]).any()
    np.testing.assert_array_equal(left[:, ~varying], X[:, ~varying])


def test_nothing_but_these_directions_is_removed():
    X, y, groups, weights = people(4)
    projection = fitted(X, y, groups, sample_weight=weights)
    mean = np.average(X, axis=0, weights=weights)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    Z = (X - mean) / scale
    offsets = np.diff(positive_means(Z, y, groups, weights), axis=0)
    kept = scipy.linalg.null_space(offsets)
    np.testing.assert_allclose(
        (projection.transform(X) - mean) / scale, Z @ kept @ kept.T, atol=1e-12
    )
    along = Z - Z @ kept @ kept.T
    share = np.average((along**2).sum(axis=1), weights=weights) / X.shape[1]
    assert projection.variance_removed_ == pytest.approx(share)
    assert np.average(projection.transform(X), axis=0, weights=weights) == pytest.approx(mean)


def test_only_positives_count():
    X, y, groups, _ = people(3)
    moved = X + 5.0 * ((y == 0) * (groups == 1))[:, None]
    before, after = fitted(X, y, groups), fitted(moved, y, groups)
    np.testing.assert_array_equal(before.positive_means_, after.positive_means_)
    flipped = EqualOpportunityProjection(pos_label=0).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(flipped.positive_means_, positive_means(X, 1 - y, groups))


def test_weights_are_repetitions_and_rows_without_weight_are_no_rows():
    X, y, groups, _ = people(3)
    times = np.random.default_rng(1).integers(0, 4, len(y))
    some = np.repeat(np.arange(len(y)), times)
    weighted, repeated = (
        fitted(X, y, groups, sample_weight=times),
        fitted(X[some], y[some], groups[some]),
    )
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-10)
    without = np.where(groups == 2, 0.0, 1.0)
    projection = fitted(X, y, groups, sample_weight=without)
    assert projection.groups_ == (0, 1)
    assert len(projection.directions_) == 1


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_units_of_columns_do_not_matter(scale):
    X, y, groups, _ = people(3)
    units = np.where(np.arange(X.shape[1]) % 2, scale, 1.0)
    one, other = fitted(X, y, groups), fitted(X * units, y, groups)
    np.testing.assert_allclose(other.transform(X * units) / units, one.transform(X), atol=1e-9)


def test_columns_that_differ_by_rounding_are_left_alone():
    X, y, *_ = people()
    same = np.vstack([X, X]) + 1e9
    two = np.repeat([0, 1], len(X))
    projection = fitted(same, np.tile(y, 2), two)
    assert projection.directions_.shape == (0, X.shape[1])
    np.testing.assert_array_equal(projection.transform(same), same)
    assert projection.variance_removed_ == 0.0


# --- What goes in and out ---------------------------------------------------------------------


def test_frames_sparse_matrices_and_single_precision():
    X, y, groups, _ = people(3)
    expected = fitted(X, y, groups).transform(X)
    names = [f"column {j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names, index=np.arange(len(X))[::-1])
    projection = EqualOpportunityProjection().set_output(transform="pandas")
    found = projection.fit_transform(
        frame,
        pd.Series(y, index=frame.index),
        sensitive_features=pd.Series(groups, index=frame.index),
    )
    assert list(found.columns) == names == list(projection.get_feature_names_out())
    np.testing.assert_allclose(found.to_numpy(), expected, atol=1e-12)
    sparse = scipy.sparse.csr_array(X)
    left = fitted(sparse, y, groups).transform(sparse)
    assert isinstance(left, np.ndarray)
    np.testing.assert_allclose(left, expected, atol=1e-12)
    single = X.astype(np.float32)
    assert fitted(single, y, groups).transform(single).dtype == np.float32


@pytest.mark.parametrize(
    "of_classes",
    [
        lambda y: np.array(["no", "yes"])[y],
        lambda y: y.astype(bool),
        lambda y: pd.Series(y).map({0: "no", 1: "yes"}).astype("category"),
        lambda y: 2.0 * y - 1.0,
    ],
)
def test_the_larger_of_two_classes_is_that_of_the_positives(of_classes):
    X, y, groups, _ = people()
    expected = fitted(X, y, groups)
    projection = fitted(X, of_classes(y), groups)
    np.testing.assert_array_equal(projection.directions_, expected.directions_)
    assert projection.pos_label_ in ("yes", True, 1.0)


def test_of_several_classes_one_is_that_of_the_positives():
    X, y, groups, _ = people()
    classes = np.where(y == 1, 1, np.arange(len(y)) % 2 * 2)
    with refused(ValueError, "3 classes", "pos_label"):
        fitted(X, classes, groups)
    np.testing.assert_array_equal(
        fitted(X, classes, groups, pos_label=1).directions_, fitted(X, y, groups).directions_
    )
    with refused(ValueError, "pos_label=5", "0, 1, 2"):
        fitted(X, classes, groups, pos_label=5)


def test_a_group_without_positives_is_refused():
    X, y, groups, _ = people(3)
    y[groups == 1] = 0
    with refused(ValueError, "y == 1", "'1'", "merge"):
        fitted(X, y, groups)
    assert fitted(X, y, np.minimum(groups, 1)).groups_ == (0, 1)
    assert fitted(X, y, groups, pos_label=0).groups_ == (0, 1, 2)


def test_bad_input_is_refused():
    X, y, groups, _ = people()
    with refused(ValueError, "requires y to be passed"):
        EqualOpportunityProjection().fit(X, sensitive_features=groups)
    with refused(ValueError, "inconsistent"):
        fitted(X, y[1:], groups)
    with refused(ValueError, "one label for each row"):
        fitted(X, y, groups[1:])
    with pytest.raises(ValueError, match="continuous"):
        fitted(X, X[:, 0], groups)
    with pytest.raises(ValueError, match="NaN"):
        fitted(X, np.where(y == 0, np.nan, 1.0), groups)
    with refused(ValueError, "too large to be squared"):
        fitted(X * 1e200, y, groups)
    with refused(ValueError, "n_features=3", "4 groups", "merge"):
        fitted(*(part[:, :3] if part.ndim == 2 else part for part in people(4)[:3]))


def test_rows_of_other_names_are_refused():
    X, y, groups, weights = people()
    frame, other = pd.DataFrame(X).add_prefix("c"), np.arange(len(X)) + 1
    turned = pd.Series(y)[::-1]
    with refused(ValueError, "X and y", "y.loc"):
        fitted(frame, turned, groups)
    with refused(ValueError, "X and sensitive_features", "to_numpy"):
        fitted(frame, y, pd.Series(groups, index=other))
    with refused(ValueError, "X and sample_weight", "to_numpy"):
        fitted(frame, y, groups, sample_weight=pd.Series(weights, index=other))
    with refused(ValueError, "y and sensitive_features", "loc"):  # X has lost its names
        fitted(X, pd.Series(y), pd.Series(groups)[::-1])


def test_missing_labels():
    X, y, groups, _ = people()
    labels = np.where(np.arange(len(y)) % 5 == 0, None, groups.astype(object))
    with pytest.raises(ValueError, match="missing"):
        fitted(X, y, labels)
    with warned(FairnessWarning, "left out"):
        projection = fitted(X, y, labels, missing_labels="drop")
    there = np.arange(len(y)) % 5 > 0
    expected = fitted(X[there], y[there], groups[there])
    np.testing.assert_allclose(projection.transform(X), expected.transform(X), atol=1e-10)
    assert len(fitted(X, y, labels, missing_labels="group").groups_) == 3


def test_without_groups_nothing_is_removed():
    X, y, groups, _ = people()
    with warned(FairnessWarning, "nothing is removed"):
        projection = EqualOpportunityProjection().fit(X, y)
    np.testing.assert_array_equal(projection.transform(X), X)
    with warned(FairnessWarning, "nothing is removed"):
        fitted(X, y, 0 * groups)


def test_a_search_over_a_pipeline_with_routing():
    X, y, groups, _ = people(2, 200)
    pipe = make_pipeline(
        StandardScaler(), EqualOpportunityProjection(), FairPCA(2), LogisticRegression()
    )
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            pipe,
            {
                "fairpca__n_components": [2, 3],
                "equalopportunityprojection": ["passthrough", EqualOpportunityProjection()],
            },
            cv=3,
        ).fit(X, y, sensitive_features=groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    by_hand = make_pipeline(*[sklearn.clone(step) for _, step in best.steps])
    asked = {
        f"{name}__sensitive_features": groups
        for name, step in by_hand.steps
        if isinstance(step, (EqualOpportunityProjection, FairPCA))
    }
    np.testing.assert_array_equal(by_hand.fit(X, y, **asked).predict(X), search.predict(X))

"""WorstGroupScorer: by hand, and as scikit-learn's searches route groups to it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairpca import Equal, FairnessWarning, FairPCA, MinMax
from fairpca.metrics import WorstGroupScorer

from texts import refused, warned

pytestmark = pytest.mark.contract  # scikit-learn: scorers and routing

FOLDS = KFold(3, shuffle=True, random_state=0)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def data(counts=(60, 120), d=5, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.array(["a", "b", "c"], dtype=object)[: len(counts)], counts)
    X = rng.normal(size=(len(groups), d)) * np.linspace(3, 1, d) + rng.normal(size=d)
    X[groups == "a"] = X[groups == "a", ::-1] + 0.5
    return X, groups


MEASURES = [
    *("disparity", "relative_disparity", "loss", "share_lost", "kept_variance", "share_kept")
]


def by_hand(fitted, X, groups, weights=None, measure="disparity", training=None):
    """The score from the formula, group by group and row by row.

    `training` are the rows and groups of the fit, and its weights. Variances are measured from the
    mean of the fit, and for reductions of others from that of the rows.
    """
    weights = np.ones(len(X)) if weights is None else weights
    center = fitted.mean_ if isinstance(fitted, FairPCA) else weights @ X / weights.sum()
    back = (X - fitted.mean_) @ fitted.components_.T @ fitted.components_ + fitted.mean_
    worst = []
    for group in np.unique(groups):
        here = groups == group
        known = {"weights": weights[here]}
        lost = np.average(((X - back)[here] ** 2).sum(axis=1), **known)
        centred = (X - center)[here]
        variance = np.average((centred**2).sum(axis=1), **known)
        if "disparity" in measure:
            rows, labels, row_weights = (*training, np.ones(len(training[0])))[:3]
            roots = np.sqrt(row_weights[labels == group])[:, None]
            axes = np.linalg.svd((rows[labels == group] - fitted.mean_) * roots)[2]
            own = axes[: len(fitted.components_)]
            lost -= np.average(((centred - centred @ own.T @ own) ** 2).sum(axis=1), **known)
        value = variance - lost if "kept" in measure else -lost
        worst.append(value / (variance if measure.startswith(("rel", "share")) else 1))
    return min(worst)


def scores_by_hand(make, X, groups, folds, measure="disparity"):
    scores = []
    for train, test in folds:
        fair = make().fit(X[train], sensitive_features=groups[train])
        training = X[train], groups[train]
        scores.append(by_hand(fair, X[test], groups[test], measure=measure, training=training))
    return scores


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("weighted", [True, False])
def test_the_score_is_that_of_the_formula(measure, weighted):
    X, groups = data()
    new, labels = data(seed=1)
    weights = np.random.default_rng(2).uniform(0, 2, len(new)) if weighted else None
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    expected = by_hand(fair, new, labels, weights, measure, (X, groups))
    scorer = WorstGroupScorer(measure)
    known = {"sensitive_features": labels, "sample_weight": weights}
    assert scorer(fair, new, **known) == pytest.approx(expected, rel=1e-12)
    assert scorer.score(fair, new, None, **known) == pytest.approx(expected, rel=1e-12)
    sparse = scipy.sparse.csr_matrix(new)
    assert scorer(fair, sparse, **known) == pytest.approx(expected, rel=1e-12)
    whitened = FairPCA(2, whiten=True, criterion="minmax").fit(X, sensitive_features=groups)
    assert scorer(whitened, new, **known) == pytest.approx(expected, rel=1e-9)
    pca = PCA(2).fit(X)
    if "disparity" in measure:
        with refused(ValueError, "this PCA", "another measure"):
            scorer(pca, new, **known)
    else:
        expected = by_hand(pca, new, labels, weights, measure)
        assert scorer(pca, new, **known) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("criterion", "measure"),
    [
        ("soft", "disparity"),
        ("minmax", "disparity"),
        ("balanced", "loss"),
        *((MinMax(measure), measure) for measure in MEASURES),
        (Equal(measure="share_lost"), "share_lost"),
    ],
)
def test_by_default_it_scores_what_is_minimised(criterion, measure):
    X, groups = data()
    fair = FairPCA(2, criterion=criterion).fit(X, sensitive_features=groups)
    found = WorstGroupScorer()(fair, X, sensitive_features=groups)
    assert found == WorstGroupScorer(measure)(fair, X, sensitive_features=groups)
    assert found == pytest.approx(by_hand(fair, X, groups, None, measure, (X, groups)), rel=1e-9)
    if measure == "disparity":  # of the rows of the fit
        assert found == pytest.approx(-fair.group_table_.disparity.max(), rel=1e-9)
    pca = PCA(2).fit(X)
    kept = by_hand(pca, X, groups, measure="share_kept")
    assert WorstGroupScorer()(pca, X, sensitive_features=groups) == pytest.approx(kept)


def test_a_reduction_without_a_mean_is_measured_from_that_of_the_rows():
    X, groups = data()
    svd = TruncatedSVD(2, random_state=0).fit(X)
    errors = ((X - svd.inverse_transform(svd.transform(X))) ** 2).sum(axis=1)
    from_mean = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    kept = [1 - errors[groups == g].mean() / from_mean[groups == g].mean() for g in "ab"]
    score = WorstGroupScorer()(svd, X, sensitive_features=groups)
    assert score == pytest.approx(min(kept), rel=1e-10)


def test_overlapping_groups_are_those_of_the_fit():
    X, groups = data()
    both = np.column_stack([groups, np.array(["x", "y", "y"] * 60, dtype=object)])
    fair = FairPCA(2, groups="marginals", criterion="minmax").fit(X, sensitive_features=both)
    score = WorstGroupScorer()(fair, X, sensitive_features=both)
    expected = min(by_hand(fair, X, column, training=(X, column)) for column in both.T)
    assert score == pytest.approx(expected, rel=1e-12)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("measure", [None, "share_kept"])
def test_a_search_routes_the_groups_to_fit_and_to_the_score(measure):
    X, groups = data()
    search = GridSearchCV(
        FairPCA(criterion="minmax"),
        {"n_components": [1, 3]},
        scoring=WorstGroupScorer(measure),
        cv=FOLDS,
        error_score="raise",
    )
    search.fit(X, sensitive_features=groups)
    for i, r in enumerate([1, 3]):
        scores = [search.cv_results_[f"split{j}_test_score"][i] for j in range(3)]
        expected = scores_by_hand(
            lambda r=r: FairPCA(r, criterion="minmax"),
            X,
            groups,
            FOLDS.split(X),
            measure or "disparity",
        )
        np.testing.assert_allclose(scores, expected, rtol=1e-9)
    assert search.best_estimator_.group_table_.labels == ("a", "b")
    copy = clone(search)
    assert copy.scoring.measure is measure
    whole = search.score(X, sensitive_features=groups)
    best = search.best_estimator_
    expected = by_hand(best, X, groups, None, measure or "disparity", (X, groups))
    assert whole == pytest.approx(expected)


@pytest.mark.usefixtures("routing")
def test_a_pipeline_with_text_and_a_classifier_and_several_scores():
    X, groups = data()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("uvwxy"))
    frame["town"] = rng.choice(["here", "there"], len(X))
    target = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    columns = make_column_transformer(
        (OneHotEncoder(), ["town"]), (StandardScaler(), list("uvwxy"))
    )
    pipe = make_pipeline(columns, FairPCA(criterion="minmax"), LogisticRegression())
    scoring = {"accuracy": "accuracy", "worst": WorstGroupScorer(), "loss": WorstGroupScorer()}
    scoring["loss"].set_params(measure="loss")
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(
        pipe, {"fairpca__n_components": [2, 4]}, scoring=scoring, refit="accuracy", cv=folds
    )
    search.fit(frame, target, sensitive_features=pd.Series(groups, name="group"))
    expected = np.zeros((2, 2))
    for train, test in folds.split(frame, target):
        prepared = clone(columns).fit(frame.iloc[train])
        rows, new = (prepared.transform(frame.iloc[part]) for part in (train, test))
        for i, r in enumerate([2, 4]):
            fair = FairPCA(r, criterion="minmax").fit(rows, sensitive_features=groups[train])
            training = rows, groups[train]
            expected[0, i] += by_hand(fair, new, groups[test], training=training) / 3
            expected[1, i] += by_hand(fair, new, groups[test], measure="loss") / 3
    np.testing.assert_allclose(search.cv_results_["mean_test_worst"], expected[0], rtol=1e-8)
    np.testing.assert_allclose(search.cv_results_["mean_test_loss"], expected[1], rtol=1e-8)
    assert (search.cv_results_["mean_test_accuracy"] > 0.5).all()


@pytest.mark.usefixtures("routing")
def test_cross_validation_with_names_of_columns():
    X, groups = data()
    frame = pd.DataFrame(X, columns=list("uvwxy")).assign(group=groups)
    expected = scores_by_hand(lambda: FairPCA(2, criterion="minmax"), X, groups, FOLDS.split(X))
    for estimator, params in (
        (FairPCA(2, criterion="minmax"), {"sensitive_features": "group"}),
        (FairPCA(2, criterion="minmax"), {"sensitive_features": ["group"]}),
    ):
        options = {"scoring": WorstGroupScorer(), "cv": FOLDS, "params": params}
        scores = cross_val_score(estimator, frame, error_score="raise", **options)
        np.testing.assert_allclose(scores, expected, rtol=1e-9)
    found = cross_validate(
        make_pipeline(StandardScaler(), FairPCA(2, criterion="minmax")),
        frame.drop(columns="group"),
        scoring={"kept": WorstGroupScorer()},
        cv=FOLDS,
        params={"sensitive_features": groups},
        return_train_score=False,
        error_score="raise",
    )
    for (train, test), score in zip(FOLDS.split(X), found["test_kept"], strict=True):
        scaler = StandardScaler().fit(X[train])
        fair = FairPCA(2, criterion="minmax").fit(
            scaler.transform(X[train]), sensitive_features=groups[train]
        )
        training = scaler.transform(X[train]), groups[train]
        expected = by_hand(fair, scaler.transform(X[test]), groups[test], training=training)
        assert score == pytest.approx(expected, rel=1e-9)


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_where_they_are_asked_for():
    X, groups = data()
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    fair = FairPCA(2, criterion="minmax").set_fit_request(sample_weight=True)
    params = {"sensitive_features": groups, "sample_weight": weights}
    known = {"cv": FOLDS, "params": params, "error_score": "raise"}
    scorer = WorstGroupScorer().set_score_request(sample_weight=True)
    scores = cross_val_score(fair, X, scoring=scorer, **known)
    for (train, test), score in zip(FOLDS.split(X), scores, strict=True):
        fitted = FairPCA(2, criterion="minmax").fit(
            X[train], sensitive_features=groups[train], sample_weight=weights[train]
        )
        training = X[train], groups[train], weights[train]
        expected = by_hand(fitted, X[test], groups[test], weights[test], training=training)
        assert score == pytest.approx(expected, rel=1e-9)
    with refused(ValueError, "sample_weight"):
        cross_val_score(fair, X, scoring=WorstGroupScorer(), **known)


def test_without_routing_the_names_of_the_fit_are_enough():
    X, groups = data()
    frame = pd.DataFrame(X, columns=list("uvwxy")).assign(group=groups)
    search = GridSearchCV(
        FairPCA(criterion="minmax"),
        {"n_components": [2]},
        scoring={"worst": WorstGroupScorer(), "loss": WorstGroupScorer("loss")},
        refit="worst",
        cv=FOLDS,
        error_score="raise",
    )
    search.fit(frame, sensitive_features="group")
    expected = scores_by_hand(lambda: FairPCA(2, criterion="minmax"), X, groups, FOLDS.split(X))
    assert search.best_score_ == pytest.approx(np.mean(expected), rel=1e-9)


def test_without_routing_and_names_the_way_out_is_said():
    X, groups = data()
    search = GridSearchCV(
        FairPCA(criterion="minmax"),
        {"n_components": [2]},
        scoring=WorstGroupScorer(),
        error_score="raise",
        cv=FOLDS,
    )
    with refused(ValueError, "set_config(enable_metadata_routing=True)"):
        search.fit(X, sensitive_features=groups)
    # A feature of the same name need not hold the labels.
    frame = pd.DataFrame(X, columns=[*"uvwx", "group"])
    with refused(ValueError, "not given", "groups"):
        search.fit(frame, sensitive_features=pd.Series(groups, name="group"))


def test_groups_without_rows_are_named():
    X, groups = data((60, 120, 40))
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    some = groups != "c"
    with warned(FairnessWarning, "No rows", "'c'"):
        score = WorstGroupScorer()(fair, X[some], sensitive_features=groups[some])
    expected = by_hand(fair, X[some], groups[some], training=(X, groups))
    assert score == pytest.approx(expected, rel=1e-12)


def test_small_groups_are_named_and_unseen_ones_are_measured_from_ordinary_pca():
    X, groups = data((60, 120, 40))
    fair = FairPCA(2, criterion="minmax").fit(
        X[groups != "c"], sensitive_features=groups[groups != "c"]
    )
    labels = groups.copy()
    c = np.flatnonzero(groups == "c")
    labels[c[:9]], labels[c[9:]] = "d", "a"
    X[c[:9]] *= 30.0  # so that the small group decides
    with warned(FairnessWarning, "10 rows", "'d'", "noise"):
        score = WorstGroupScorer("loss")(fair, X, sensitive_features=labels)
    with warned(FairnessWarning, "10 rows", "'d'", "noise"):
        disparity = WorstGroupScorer()(fair, X, sensitive_features=labels)
    assert score == pytest.approx(by_hand(fair, X, labels, measure="loss"), rel=1e-10)
    axes = fair.baselines_.pca_basis
    centred = X[c[:9]] - fair.mean_
    own = np.square(centred - centred @ axes @ axes.T).sum(axis=1).mean()
    assert disparity == pytest.approx(score + own, rel=1e-10)


def test_a_group_without_variance_has_lost_nothing_of_it():
    X, groups = data()
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    X[groups == "a"] = fair.mean_
    score = WorstGroupScorer("share_kept")(fair, X, sensitive_features=groups)
    expected = by_hand(fair, X[groups == "b"], groups[groups == "b"], measure="share_kept")
    assert score == pytest.approx(expected, rel=1e-12)


def test_refusals():
    X, groups = data()
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    with refused(ValueError, "measure", "'no'"):
        WorstGroupScorer("no")(fair, X, sensitive_features=groups)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        WorstGroupScorer()(FairPCA(2, criterion="minmax"), X, sensitive_features=groups)
    with refused(TypeError, "WorstGroupScorer", "transform"):
        WorstGroupScorer()(LogisticRegression(), X, sensitive_features=groups)
    with refused(ValueError, "inconsistent numbers"):
        WorstGroupScorer()(fair, X, sensitive_features=groups[1:])
    dropping = FairPCA(2, missing_labels="drop", criterion="minmax").fit(
        X, sensitive_features=groups
    )
    labels = np.where(groups == "a", None, groups)
    known = {"sensitive_features": labels, "sample_weight": (groups == "a").astype(float)}
    with warned(FairnessWarning, "60 of 180"), refused(ValueError, "label", "sample_weight"):
        WorstGroupScorer()(dropping, X, **known)

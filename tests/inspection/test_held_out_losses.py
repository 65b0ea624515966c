"""held_out_losses: by hand, its intervals against draws of known populations, its refusals."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairpca import FairnessWarning, FairPCA, MinMax
from fairpca.metrics import held_out_losses

from texts import recorded, refused, warned

pytestmark = pytest.mark.untraced

FOLDS = KFold(4, shuffle=True, random_state=0)


def data(counts=(60, 120), d=5, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.array(["a", "b", "c", "d"], dtype=object)[: len(counts)], counts)
    X = rng.normal(size=(len(groups), d)) * np.linspace(3, 1, d) + rng.normal(size=d)
    X[groups == "a"] = X[groups == "a", ::-1] + 0.5
    return X, groups


def errors_by_hand(fitted, X):
    back = (X - fitted.mean_) @ fitted.components_.T @ fitted.components_ + fitted.mean_
    return ((X - back) ** 2).sum(axis=1), ((X - fitted.mean_) ** 2).sum(axis=1)


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_losses_are_pooled_over_the_folds_by_the_formula(relative, weighted):
    X, groups = data()
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X)) if weighted else np.ones(len(X))
    losses = held_out_losses(
        FairPCA(criterion="minmax"),
        X,
        sensitive_features=groups,
        dimensions=[3, 1],
        sample_weight=weights if weighted else None,
        cv=FOLDS,
        relative=relative,
    )
    assert losses.dimensions == (3, 1)
    assert losses.groups == ("a", "b")
    assert losses.count.tolist() == [60, 120]
    for i, r in enumerate([3, 1]):
        for name, curve in (("fair", losses.reduction), ("pca", losses.pca)):
            errors, units = np.empty((2, len(X)))
            for train, test in FOLDS.split(X):
                known = {"sample_weight": weights[train], "sensitive_features": groups[train]}
                fair = FairPCA(
                    r, groups=None if name == "pca" else "intersections", criterion="minmax"
                )
                errors[test], units[test] = errors_by_hand(fair.fit(X[train], **known), X[test])
            for j, group in enumerate("ab"):
                here = groups == group
                loss = np.average(errors[here], weights=weights[here])
                loss /= np.average(units[here], weights=weights[here]) if relative else 1.0
                assert curve.loss[i, j] == pytest.approx(loss, rel=1e-8)
                assert curve.low[i, j] < loss < curve.high[i, j]
    np.testing.assert_array_equal(losses.pca.worst, losses.pca.loss.max(axis=1))
    assert losses.reduction.worst_group.tolist() == losses.reduction.loss.argmax(axis=1).tolist()


def test_ordinary_pca_is_that_of_scikit_learn():
    X, groups = data()
    losses = held_out_losses(PCA(), X, sensitive_features=groups, dimensions=[1, 2, 5])
    np.testing.assert_allclose(losses.reduction.loss, losses.pca.loss, atol=1e-10)
    np.testing.assert_allclose(losses.reduction.high, losses.pca.high, atol=1e-8)
    assert losses.name == "PCA"


def test_the_interval_of_a_mean_is_students_and_holds_for_all_groups_together():
    X, groups = data((25, 120, 40))
    known = {"sensitive_features": groups, "dimensions": [2], "cv": FOLDS}
    losses = held_out_losses(FairPCA(criterion="minmax"), X, **known)
    errors = np.empty(len(X))
    for train, test in FOLDS.split(X):
        fair = FairPCA(2, criterion="minmax").fit(X[train], sensitive_features=groups[train])
        errors[test], _ = errors_by_hand(fair, X[test])
    # t quantiles at (1 + 0.95 ** (1 / 3)) / 2, for 24, 119 and 39 degrees of freedom, by simulation
    # of the definition: a normal over the root of a mean of squares.
    rng = np.random.default_rng(0)
    for j, group in enumerate("abc"):
        own = errors[groups == group]
        error = own.std(ddof=1) / np.sqrt(len(own))
        n = len(own) - 1
        t = rng.normal(size=400_000) / np.sqrt(rng.chisquare(n, size=400_000) / n)
        quantile = np.quantile(np.abs(t), 0.95 ** (1 / 3))
        assert losses.reduction.high[0, j] - own.mean() == pytest.approx(quantile * error, rel=0.01)
    low, high = losses.reduction.worst_interval
    assert low == losses.reduction.low.max()
    assert high == losses.reduction.high.max()


def test_the_interval_of_a_share_is_that_of_the_jackknife():
    X, groups = data((200, 300))
    known = {"sensitive_features": groups, "dimensions": [2], "cv": FOLDS}
    losses = held_out_losses(FairPCA(criterion="minmax"), X, **known, relative=True)
    errors, units = np.empty((2, len(X)))
    for train, test in FOLDS.split(X):
        fair = FairPCA(2, criterion="minmax").fit(X[train], sensitive_features=groups[train])
        errors[test], units[test] = errors_by_hand(fair, X[test])
    for j, group in enumerate("ab"):
        e, v = errors[groups == group], units[groups == group]
        left = (e.sum() - e) / (v.sum() - v)
        jackknife = np.sqrt((len(e) - 1) * np.mean((left - left.mean()) ** 2))
        reach = losses.reduction.high[0, j] - losses.reduction.loss[0, j]
        # 2.24 is the normal quantile for two intervals together, a little less than Student's.
        assert reach == pytest.approx(2.245 * jackknife, rel=0.02)


def test_the_interval_of_the_worst_group_holds_although_it_was_picked():
    # Alike groups: the worst of eight is picked by chance, and its own 95 % interval would miss.
    held = naive = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(320, 3)) * [3, 1, 1]
        labels = np.repeat([*"abcdefgh"], 40)
        losses = held_out_losses(PCA(), rows, sensitive_features=labels, dimensions=[1], cv=2)
        truth = 2.0  # beside the first direction, which is found up to a small tilt
        low, high = (end[0] for end in losses.reduction.worst_interval)
        held += low <= truth <= high
        i = losses.reduction.worst_group[0]
        reach = losses.reduction.high[0, i] - losses.reduction.worst[0]
        reach *= 2.02 / 2.88  # Student's quantiles for one interval, and for eight together
        naive += losses.reduction.worst[0] - reach <= truth
    assert held >= 184  # 92 %
    assert naive < 184


def test_folds_have_rows_of_every_group_and_depend_on_the_seed_alone():
    X, groups = data((10, 170))
    known = {"sensitive_features": groups, "dimensions": [2]}
    first = held_out_losses(FairPCA(criterion="minmax"), X, **known)
    again = held_out_losses(FairPCA(criterion="minmax"), X, **known, random_state=0)
    other = held_out_losses(FairPCA(criterion="minmax"), X, **known, random_state=1)
    np.testing.assert_array_equal(first.reduction.loss, again.reduction.loss)
    assert (first.reduction.loss != other.reduction.loss).all()


def test_pipelines_are_fitted_to_the_training_rows_up_to_the_reduction():
    X, groups = data()
    frame = pd.DataFrame(X, columns=list("uvwxy"))
    frame["town"] = np.random.default_rng(0).choice(["here", "there"], len(X))
    frame["group"] = groups
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["town"]),
        (StandardScaler(), list("uvwxy")),
        ("passthrough", ["group"]),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipe = make_pipeline(columns, FairPCA(criterion="minmax"), LogisticRegression())
    known = {"dimensions": [2], "cv": FOLDS}
    named = held_out_losses(pipe, frame, sensitive_features="group", **known)
    errors = np.empty(len(X))
    for train, test in FOLDS.split(X):
        scaler = StandardScaler().fit(X[train])
        rows = np.hstack([scaler.transform(X), pd.get_dummies(frame["town"]).to_numpy(float)])
        fair = FairPCA(2, criterion="minmax").fit(rows[train], sensitive_features=groups[train])
        errors[test], _ = errors_by_hand(fair, rows[test])
    expected = [errors[groups == group].mean() for group in "ab"]
    np.testing.assert_allclose(named.reduction.loss[0], expected, rtol=1e-8)
    dropped = make_pipeline(StandardScaler(), FairPCA(criterion="minmax"))
    same = held_out_losses(dropped, X, sensitive_features=groups, **known)
    sparse = held_out_losses(
        make_pipeline(StandardScaler(with_mean=False), FairPCA(criterion="minmax")),
        scipy.sparse.csr_matrix(X),
        sensitive_features=groups,
        **known,
    )
    np.testing.assert_allclose(same.reduction.loss, sparse.reduction.loss, rtol=1e-8)


def test_rows_held_out_never_or_several_times():
    X, groups = data()
    splits = [*ShuffleSplit(2, test_size=0.3, random_state=0).split(X)]
    known = {"sensitive_features": groups, "dimensions": [2]}
    losses = held_out_losses(FairPCA(criterion="minmax"), X, cv=splits, **known)
    errors, times = np.zeros((2, len(X)))
    for train, test in splits:
        fair = FairPCA(2, criterion="minmax").fit(X[train], sensitive_features=groups[train])
        errors[test] += errors_by_hand(fair, X[test])[0]
        times[test] += 1
    for j, group in enumerate("ab"):
        here = (groups == group) & (times > 0)
        assert losses.count[j] == here.sum()
        expected = (errors[here] / times[here]).mean()
        assert losses.reduction.loss[0, j] == pytest.approx(expected, rel=1e-9)
    households = np.arange(len(X)) // 3
    folds = GroupKFold(3).split(X, groups=households)
    assert held_out_losses(FairPCA(criterion="minmax"), X, cv=folds, **known).count.sum() == len(X)


@pytest.mark.parametrize("relative", [False, True])
def test_rows_without_labels_count_for_nothing(relative):
    X, groups = data((60, 120, 20))
    labels = np.where(groups == "c", None, groups)
    splits = [*FOLDS.split(X)]
    known = {"dimensions": [2], "relative": relative}
    fair = FairPCA(missing_labels="drop", criterion="minmax")
    losses = held_out_losses(fair, X, sensitive_features=labels, cv=splits, **known)
    some = groups != "c"  # the first rows, so that their positions stay
    kept = [(train[train < 180], test[test < 180]) for train, test in splits]
    expected = held_out_losses(
        FairPCA(criterion="minmax"), X[some], sensitive_features=groups[some], cv=kept, **known
    )
    part = [np.mean([len(train) for train, _ in s]) / n for s, n in ((splits, 200), (kept, 180))]
    assert part[0] == pytest.approx(part[1])
    for ours, theirs in ((losses.reduction, expected.reduction), (losses.pca, expected.pca)):
        np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-8)
        np.testing.assert_allclose(ours.high, theirs.high, rtol=1e-8)


def test_small_groups_are_one_and_a_single_row_is_left_out():
    X, groups = data((100, 60, 4, 5))
    known = {"dimensions": [2], "cv": FOLDS}
    with warned(FairnessWarning, "'c', 'd'", "as one"):
        losses = held_out_losses(FairPCA(groups=None), X, sensitive_features=groups, **known)
    assert losses.groups == ("a", "b", "2 small groups together")
    assert losses.count.tolist() == [100, 60, 9]
    merged = np.where(np.isin(groups, ["c", "d"]), "small", groups)
    with warned(FairnessWarning, "'small'", "noise"):
        same = held_out_losses(FairPCA(groups=None), X, sensitive_features=merged, **known)
    np.testing.assert_allclose(losses.reduction.high, same.reduction.high, rtol=1e-10)
    X, groups = data((100, 60, 1))
    with (
        warned(FairnessWarning, "noise"),
        warned(FairnessWarning, "left out", "'c'"),
    ):
        losses = held_out_losses(FairPCA(criterion="minmax"), X, sensitive_features=groups, **known)
    assert losses.groups == ("a", "b")
    assert np.isfinite(losses.reduction.high).all()


def test_the_table_prints_and_has_no_need_of_pandas():
    X, groups = data()
    known = {"sensitive_features": groups, "dimensions": [1, 2]}
    losses = held_out_losses(FairPCA(criterion=MinMax("share_lost")), X, **known)
    columns = losses.to_dict()
    assert columns["dimensions"] == [1, 2]
    assert columns["fair loss"] == losses.reduction.worst.tolist()
    assert columns["PCA high"] == losses.pca.worst_interval[1].tolist()
    assert set(columns["PCA worst group"]) <= {"a", "b"}
    text = str(losses)
    assert f"{columns['fair loss'][1]:.4f}" in text
    recorded(text, "Losses", "held-out", "shares")
    text = str(held_out_losses(FairPCA(criterion="minmax"), X, **known))
    recorded(text, "Losses", "squared units", "95 %")
    losses = held_out_losses(PCA(), X, **known)
    columns = losses.to_dict()
    assert columns["PCA loss"] == losses.reduction.worst.tolist()
    assert columns["ordinary PCA loss"] == losses.pca.worst.tolist()
    assert f"{columns['ordinary PCA loss'][1]:.4f}" in str(losses)
    text = str(held_out_losses(FairPCA(criterion="balanced"), X, **known))
    recorded(text, "Losses", "squared units", "95 %")


def test_refusals():
    X, groups = data()
    known = {"sensitive_features": groups}
    with refused(TypeError, "dimensions", "list", "got 2."):
        held_out_losses(FairPCA(criterion="minmax"), X, dimensions=2, **known)
    for dimensions, message in (
        ([], "dimensions one number"),
        ([1.5], "dimensions"),
        ([6], "n_components=6 n_features=5"),
    ):
        with refused(ValueError, *message.split()):
            held_out_losses(FairPCA(criterion="minmax"), X, dimensions=dimensions, **known)
    known["dimensions"] = [2]
    for options, message in (
        ({"cv": 1}, "cv integer 2 1"),
        ({"cv": 1000}, "cv=1000 180"),
        ({"random_state": -1}, "random_state"),
        ({"cv": []}, "cv no rows"),
        ({"relative": "share"}, "relative True False 'share'"),
        ({"cv": [(np.arange(180), np.array([0]))]}, "no group two"),
    ):
        with refused(ValueError, *message.split()):
            held_out_losses(FairPCA(criterion="minmax"), X, **known, **options)
    with refused(TypeError, "SelectKBest", "n_components"):
        held_out_losses(SelectKBest(), X, **known)
    with refused(ValueError, "inconsistent numbers"):
        held_out_losses(
            FairPCA(criterion="minmax"), X, sensitive_features=groups[1:], dimensions=[2]
        )
    svd = held_out_losses(TruncatedSVD(), X, **known)
    assert svd.name == "TruncatedSVD"

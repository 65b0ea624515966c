"""FairPCA from parts: partial_fit and fit_moments give what fit gives on all rows."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from fairpca import ExactSolver, FairnessWarning, FairPCA, GroupMoments

from same_fit import assert_same_fit
from texts import refused, warned


def rows_groups_weights(n, d, k, seed):
    """Groups with axes and means of their own, far-away means and scales in some cases."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, k, n)
    X = rng.normal(size=(n, d)) * np.linspace(3.0, 0.5, d)
    for g in range(1, k):
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        X[groups == g] = X[groups == g] @ turn + rng.normal(size=d)
    X *= rng.choice([1e-8, 1.0, 1e8])
    X += rng.choice([0.0, 1e3]) * X.std()
    return X, groups, rng.exponential(size=n)


def batches_of(n, rng):
    """All rows in a random order, cut at random places; single rows occur."""
    cuts = np.sort(rng.choice(np.arange(1, n), size=int(rng.integers(0, 6)), replace=False))
    return np.split(rng.permutation(n), cuts)


@pytest.mark.untraced  # the others run the same lines
@pytest.mark.parametrize("seed", range(100))
@pytest.mark.filterwarnings("ignore::fairpca.FairnessWarning")
def test_any_batches_give_the_fit_on_all_rows(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 4))
    X, groups, weights = rows_groups_weights(int(rng.integers(30, 120)), 5, k, seed)
    weights = weights if seed % 2 else None
    if seed % 3 == 0:
        groups = pd.DataFrame({"g": groups, "h": rng.choice(["u", "v"], len(X))})
    if seed % 5 == 0:
        groups = pd.DataFrame(groups).astype(object)
        groups.iloc[::7, 0] = None
    else:
        groups = pd.DataFrame(groups)
    # One eigenproblem for combinations, as many small groups take the exact solver long.
    solver = ExactSolver(n_starts=2) if seed % 3 and seed % 5 else "lagrangian"
    fair = FairPCA(2, missing_labels="group", solver=solver, criterion="minmax")
    reference = clone(fair).fit(X, sensitive_features=groups, sample_weight=weights)
    parts = []
    for batch in batches_of(len(X), rng):
        w = None if weights is None else weights[batch]
        fair.partial_fit(X[batch], sensitive_features=groups.iloc[batch], sample_weight=w)
        parts.append(
            GroupMoments.from_rows(
                X[batch], groups.iloc[batch], sample_weight=w, missing_labels="group"
            )
        )
    assert_same_fit(fair, reference)
    assert_same_fit(clone(fair).fit_moments(GroupMoments.merge(parts)), reference)


def test_groups_may_turn_up_late_and_rows_may_be_sparse():
    X, groups, _ = rows_groups_weights(90, 4, 3, 1)
    order = np.argsort(groups, kind="stable")
    X, groups = X[order], groups[order]
    fair = FairPCA(2, solver="lagrangian", criterion="minmax")
    with warned(FairnessWarning, "one group", "'0'"):
        fair.partial_fit(X[:10], sensitive_features=groups[:10])
    fair.partial_fit(scipy.sparse.csr_matrix(X[10:40]), sensitive_features=groups[10:40])
    fair.partial_fit(X[40:], sensitive_features=groups[40:])
    assert_same_fit(
        fair, FairPCA(2, solver="lagrangian", criterion="minmax").fit(X, sensitive_features=groups)
    )


def test_a_first_row_alone_is_kept_until_there_is_a_second():
    X, groups, _ = rows_groups_weights(20, 4, 2, 2)
    fair = FairPCA(1, criterion="minmax")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        fair.partial_fit(X[:1], sensitive_features=groups[:1])
    with pytest.raises(NotFittedError):
        fair.transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        fair.partial_fit(X[1:], sensitive_features=groups[1:])
        assert_same_fit(fair, FairPCA(1, criterion="minmax").fit(X, sensitive_features=groups))


def test_fit_starts_anew_and_so_does_partial_fit_after_it():
    X, groups, _ = rows_groups_weights(80, 4, 2, 3)
    fair = FairPCA(2, criterion="minmax").partial_fit(
        X[:40] + 100.0, sensitive_features=groups[:40]
    )
    fair.fit(X, sensitive_features=groups)
    assert_same_fit(fair, FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups))
    with warned(FairnessWarning, "partial_fit", "over"):
        fair.partial_fit(X[:40], sensitive_features=groups[:40])
    fair.partial_fit(X[40:], sensitive_features=groups[40:])
    assert_same_fit(fair, FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups))


def test_only_partial_fit_makes_pickles_larger_and_goes_on_after_one():
    X, groups, _ = rows_groups_weights(300, 30, 2, 4)
    fitted = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    size = len(pickle.dumps(fitted))
    moments = GroupMoments.from_rows(X, groups)
    assert len(pickle.dumps(FairPCA(2, criterion="minmax").fit_moments(moments))) == size
    partly = FairPCA(2, criterion="minmax").partial_fit(X[:150], sensitive_features=groups[:150])
    assert len(pickle.dumps(partly)) > size + 2 * 30 * 30 * 8
    partly = pickle.loads(pickle.dumps(partly))
    partly.partial_fit(X[150:], sensitive_features=groups[150:])
    assert_same_fit(partly, fitted)
    assert len(pickle.dumps(partly.fit(X, sensitive_features=groups))) < size + 100


class Interrupted:
    def solve(self, problem):
        raise KeyboardInterrupt


def test_a_batch_that_failed_can_be_given_again():
    X, groups, _ = rows_groups_weights(80, 4, 2, 5)
    fair = FairPCA(2, criterion="minmax").partial_fit(X[:40], sensitive_features=groups[:40])
    bad = X[40:].copy()
    bad[3, 1] = np.nan
    with refused(ValueError, "NaN"):
        fair.partial_fit(bad, sensitive_features=groups[40:])
    fair.set_params(solver=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        fair.partial_fit(X[40:], sensitive_features=groups[40:])
    fair.set_params(solver=ExactSolver())
    fair.partial_fit(X[40:], sensitive_features=groups[40:])
    assert_same_fit(fair, FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups))


def test_groups_in_all_calls_or_in_none():
    X, groups, _ = rows_groups_weights(40, 4, 2, 6)
    fair = FairPCA(2, criterion="minmax").partial_fit(X, sensitive_features=groups)
    with refused(ValueError, "had them"):
        fair.partial_fit(X)
    fair = FairPCA(2, groups=None).partial_fit(X)
    with refused(ValueError, "had none"):
        fair.partial_fit(X, sensitive_features=groups)


def test_names_of_columns_are_kept_and_checked():
    X, groups, _ = rows_groups_weights(40, 3, 2, 7)
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    fair = FairPCA(2, criterion="minmax").partial_fit(frame, sensitive_features=groups)
    assert fair.feature_names_in_.tolist() == ["u", "v", "w"]
    with refused(ValueError, "feature names"):
        fair.partial_fit(frame[["w", "v", "u"]], sensitive_features=groups)
    named = FairPCA(2, criterion="minmax").fit_moments(GroupMoments.from_rows(frame, groups))
    assert named.feature_names_in_.tolist() == ["u", "v", "w"]
    assert named.n_features_in_ == 3
    np.testing.assert_allclose(named.transform(frame), fair.transform(frame))
    named.fit_moments(GroupMoments.from_rows(X, groups))
    assert not hasattr(named, "feature_names_in_")


def test_routing_brings_the_groups_to_partial_fit():
    with sklearn.config_context(enable_metadata_routing=True):
        requests = FairPCA(criterion="minmax").get_metadata_routing().partial_fit.requests
    assert requests["sensitive_features"] is True


def test_fit_moments_warns_as_fit_does():
    X, groups, _ = rows_groups_weights(40, 3, 2, 8)
    one = GroupMoments.from_rows(X, np.zeros(40, int))
    with warned(FairnessWarning, "one group", "'0'") as caught:
        FairPCA(2, criterion="minmax").fit_moments(one)
    assert caught[0].filename == __file__
    with warned(FairnessWarning, "no groups") as caught:
        FairPCA(2, criterion="minmax").fit_moments(GroupMoments.from_rows(X))
    assert caught[0].filename == __file__
    FairPCA(2, groups=None).fit_moments(GroupMoments.from_rows(X))
    groups[groups == 1], groups[0] = 0, 1
    with warned(FairnessWarning, "Too few", "'1' (1"):
        FairPCA(2, criterion="minmax").fit_moments(GroupMoments.from_rows(X, groups))
    rng = np.random.default_rng(0)
    apart = np.concatenate(
        [rng.normal(size=(20, 3)) * s for s in ([9, 1, 1], [1, 9, 1], [1, 1, 1])]
    )
    with warned(FairnessWarning, "impossible") as caught:
        FairPCA(1, criterion="equal").fit_moments(
            GroupMoments.from_rows(apart, np.repeat([0, 1, 2], 20))
        )
    assert caught[0].filename == __file__


def test_fit_moments_refuses():
    X, groups, _ = rows_groups_weights(40, 3, 2, 9)
    moments = GroupMoments.from_rows(X, groups)
    with refused(TypeError, "GroupMoments", "ndarray", "use fit"):
        FairPCA(2, criterion="minmax").fit_moments(X)
    with refused(ValueError, "n_samples=1"):
        FairPCA(2, criterion="minmax").fit_moments(GroupMoments.from_rows(X[:1]))
    with refused(ValueError, "n_features=3"):
        FairPCA(4, criterion="minmax").fit_moments(moments)
    moments.mean[0, 0] = np.nan
    with refused(ValueError, "not finite"):
        FairPCA(2, criterion="minmax").fit_moments(moments)


def test_the_criterion_may_change_between_batches():
    X, labels = np.random.default_rng(0).normal(size=(90, 4)), np.tile(["a", "b", "c"], 30)
    fair = FairPCA(2).partial_fit(X[:60], sensitive_features=labels[:60])
    fair.set_params(criterion="minmax").partial_fit(X[60:], sensitive_features=labels[60:])
    assert_same_fit(fair, FairPCA(2, criterion="minmax").fit(X, sensitive_features=labels))
    fair = FairPCA(2, criterion="minmax").partial_fit(X[:60], sensitive_features=labels[:60])
    with refused(ValueError, "moments by fold"):
        fair.set_params(criterion="soft").partial_fit(X[60:], sensitive_features=labels[60:])


def test_a_series_with_the_name_of_a_feature_leaves_that_feature_where_it_is():
    X = np.random.default_rng(0).normal(size=(60, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(code=np.arange(60) % 2)
    fair = FairPCA(2)
    for part in (frame[:30], frame[30:]):
        fair.partial_fit(part, sensitive_features=part.code)
    assert_same_fit(fair, FairPCA(2).fit(frame, sensitive_features=frame.code))

"""FairPCA from moments of parts: fit_moments gives what fit gives on all rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

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
        parts.append(
            GroupMoments.from_rows(
                X[batch], groups.iloc[batch], sample_weight=w, missing_labels="group"
            )
        )
    assert_same_fit(fair.fit_moments(GroupMoments.merge(parts)), reference)


def test_groups_may_turn_up_late_and_rows_may_be_sparse():
    X, groups, _ = rows_groups_weights(90, 4, 3, 1)
    order = np.argsort(groups, kind="stable")
    X, groups = X[order], groups[order]
    moments = GroupMoments.from_rows(X[:10], groups[:10])
    moments += GroupMoments.from_rows(scipy.sparse.csr_matrix(X[10:40]), groups[10:40])
    moments += GroupMoments.from_rows(X[40:], groups[40:])
    fair = FairPCA(2, solver="lagrangian", criterion="minmax")
    assert_same_fit(clone(fair).fit_moments(moments), fair.fit(X, sensitive_features=groups))


def test_names_of_columns_are_kept_and_checked():
    X, groups, _ = rows_groups_weights(40, 3, 2, 7)
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    fair = FairPCA(2, criterion="minmax").fit(frame, sensitive_features=groups)
    named = FairPCA(2, criterion="minmax").fit_moments(GroupMoments.from_rows(frame, groups))
    assert named.feature_names_in_.tolist() == ["u", "v", "w"]
    assert named.n_features_in_ == 3
    np.testing.assert_allclose(named.transform(frame), fair.transform(frame))
    named.fit_moments(GroupMoments.from_rows(X, groups))
    assert not hasattr(named, "feature_names_in_")


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

"""audit: the table of reductions that others have fitted."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import NMF, PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import Isomap
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, Loadings, audit
from fairpca._linalg import dense

from texts import refused

pytestmark = pytest.mark.contract


def rows_and_groups(n=90, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(3, 1, d)
    X[: n // 3] = X[: n // 3, ::-1] + rng.normal(size=d)
    order = rng.permutation(n)
    return np.abs(X[order]), np.array(["a"] * (n // 3) + ["b"] * (n - n // 3))[order]


def raw_losses(estimator, X, groups):
    errors = np.square(X - estimator.inverse_transform(estimator.transform(X))).sum(axis=1)
    return [errors[groups == label].mean() for label in sorted(set(groups))]


REDUCTIONS = {
    "PCA": PCA(2),
    "whitened PCA": PCA(2, whiten=True),
    "TruncatedSVD": TruncatedSVD(2, random_state=0),
    "NMF": NMF(2, init="nndsvda", max_iter=2000, tol=1e-5),
    "FairPCA": FairPCA(2, groups=None),
}


@pytest.mark.parametrize("name", list(REDUCTIONS))
def test_losses_against_raw_rows(name):
    X, groups = rows_and_groups()
    reduction = REDUCTIONS[name].fit(X)
    table = audit(reduction, X, sensitive_features=groups)
    assert table.labels == ("a", "b")
    assert table.count.tolist() == [30, 60]
    np.testing.assert_allclose(table.loss, raw_losses(reduction, X, groups), rtol=1e-9)
    np.testing.assert_allclose(table.pca_loss, raw_losses(PCA(2).fit(X), X, groups), rtol=1e-9)
    for i, label in enumerate("ab"):
        tail = np.linalg.svd(X[groups == label] - X.mean(axis=0), compute_uv=False)[2:]
        own = (tail**2).sum() / (groups == label).sum()
        assert table.own_loss[i] == pytest.approx(own, rel=1e-9)
        assert table.disparity[i] == pytest.approx(table.loss[i] - own, rel=1e-7)


def test_audit_of_pca_is_what_fairpca_says_of_pca():
    X, groups = rows_and_groups()
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups).group_table_
    table = audit(PCA(2).fit(X), X, sensitive_features=groups)
    np.testing.assert_allclose(table.own_loss, fair.own_loss, rtol=1e-10)
    np.testing.assert_allclose(table.pca_loss, fair.pca_loss, rtol=1e-9)
    np.testing.assert_allclose(table.loss, fair.pca_loss, rtol=1e-9)
    np.testing.assert_allclose(table.disparity, fair.pca_disparity, rtol=1e-8)


def test_audit_of_fairpca_is_its_own_table():
    X, groups = rows_and_groups()
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    table = audit(fair, X, sensitive_features=groups)
    np.testing.assert_allclose(table.loss, fair.group_table_.loss, rtol=1e-9)
    np.testing.assert_allclose(table.disparity, fair.group_table_.disparity, rtol=1e-8)
    assert np.ptp(table.disparity) < 1e-8


def test_weights_count_rows_several_times():
    X, groups = rows_and_groups()
    weights = np.random.default_rng(5).integers(0, 4, len(X))
    pca = PCA(2).fit(X)
    weighted = audit(pca, X, sensitive_features=groups, sample_weight=weights)
    repeated = audit(
        pca, np.repeat(X, weights, axis=0), sensitive_features=np.repeat(groups, weights)
    )
    for column in ("loss", "own_loss", "pca_loss"):
        np.testing.assert_allclose(getattr(weighted, column), getattr(repeated, column), rtol=1e-9)


def test_a_reduction_that_is_no_estimator():
    class FirstColumns:
        def transform(self, X):
            return X[:, :2]

        def inverse_transform(self, reduced):
            return np.hstack([reduced, np.zeros((len(reduced), self.width - 2))])

    X, groups = rows_and_groups()
    reduction = FirstColumns()
    reduction.width = X.shape[1]
    table = audit(reduction, X, sensitive_features=groups)
    expected = [np.square(X[groups == label, 2:]).sum(axis=1).mean() for label in "ab"]
    np.testing.assert_allclose(table.loss, expected)


def test_new_rows_are_judged_by_themselves():
    X, _ = rows_and_groups()
    new, labels = rows_and_groups(seed=1)
    reduction = PCA(2).fit(X)
    table = audit(reduction, new, sensitive_features=labels)
    np.testing.assert_allclose(table.loss, raw_losses(reduction, new, labels), rtol=1e-9)
    np.testing.assert_allclose(table.pca_loss, raw_losses(PCA(2).fit(new), new, labels), rtol=1e-9)


def test_all_dimensions_lose_nothing():
    X, groups = rows_and_groups()
    table = audit(PCA(5).fit(X), X, sensitive_features=groups)
    for column in (table.own_loss, table.pca_loss, table.loss):
        np.testing.assert_allclose(column, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: pd.DataFrame(X, columns=list("vwxyz")),
        lambda X: pl.DataFrame(dict(zip("vwxyz", X.T, strict=True))),
        lambda X: X.tolist(),
        np.asfortranarray,
    ],
    ids=["pandas", "polars", "list", "F order"],
)
@pytest.mark.parametrize("make", [PCA, lambda r: FairPCA(r, groups=None)])
def test_other_kinds_of_rows(make, convert):
    X, groups = rows_and_groups()
    data = convert(X)
    table = audit(make(2).fit(data), data, sensitive_features=groups)
    np.testing.assert_allclose(table.loss, raw_losses(make(2).fit(X), X, groups), rtol=1e-9)


@pytest.mark.parametrize(
    "convert",
    [scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.coo_matrix],
    ids=["csr", "csc", "coo"],
)
@pytest.mark.parametrize("reduction", [TruncatedSVD(2, random_state=0), FairPCA(2, groups=None)])
def test_sparse_rows(reduction, convert):
    X, groups = rows_and_groups()
    X[X < 1.0] = 0.0
    reduction = reduction.fit(scipy.sparse.csr_matrix(X))
    table = audit(reduction, convert(X), sensitive_features=groups)
    np.testing.assert_allclose(table.loss, raw_losses(reduction, X, groups), rtol=1e-9)


def test_blocks_of_rows_change_nothing(monkeypatch):
    X, groups = rows_and_groups()
    reduction = PCA(2).fit(X)
    whole = audit(reduction, X, sensitive_features=groups)
    monkeypatch.setattr(dense, "BLOCK_VALUES", 35)  # seven rows at a time
    seen = []
    real = PCA.transform

    def watched(self, rows):
        seen.append(len(rows))
        return real(self, rows)

    monkeypatch.setattr(PCA, "transform", watched)
    parts = audit(reduction, X, sensitive_features=groups)
    assert max(seen) == 7
    assert sum(seen) == 90
    np.testing.assert_allclose(parts.loss, whole.loss, rtol=1e-12)


def test_input_is_left_alone():
    X, groups = rows_and_groups()
    data = X.copy()
    data.setflags(write=False)
    audit(PCA(2).fit(X), data, sensitive_features=groups)
    np.testing.assert_array_equal(data, X)


# --- Errors -------------------------------------------------------------------


@pytest.mark.parametrize(
    "reduction", [PCA(2), FairPCA(2, criterion="minmax"), NMF(2), TruncatedSVD(2)]
)
def test_a_reduction_that_is_not_fitted(reduction):
    X, groups = rows_and_groups()
    with pytest.raises(NotFittedError):
        audit(reduction, X, sensitive_features=groups)


def test_a_pipeline_is_judged_by_its_last_step():
    X, groups = rows_and_groups()
    pipe = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    whole = audit(pipe, X, sensitive_features=groups)
    last = audit(pipe[-1], pipe[:-1].transform(X), sensitive_features=groups)
    np.testing.assert_array_equal(whole.loss, last.loss)
    np.testing.assert_allclose(whole.loss, whole.pca_loss, rtol=1e-9)
    alone = audit(make_pipeline(PCA(2)).fit(X), X, sensitive_features=groups)
    np.testing.assert_allclose(alone.loss, alone.pca_loss, rtol=1e-9)


def test_the_reduction_in_a_pipeline_that_ends_in_a_classifier_is_found():
    X, groups = rows_and_groups()
    pipe = make_pipeline(
        StandardScaler(), PCA(2), "passthrough", StandardScaler(), LogisticRegression()
    ).fit(X, groups)
    rows = StandardScaler().fit_transform(X)
    expected = audit(PCA(2).fit(rows), rows, sensitive_features=groups)
    found = audit(pipe, X, sensitive_features=groups)
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-12)
    nested = make_pipeline(make_pipeline(StandardScaler(), PCA(2)), LogisticRegression())
    found = audit(nested.fit(X, groups), X, sensitive_features=groups)
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-12)
    # Of two reductions it is the last, on what the first has left.
    first = PCA(4).fit(rows)
    twice = audit(make_pipeline(first, PCA(2)).fit(rows), rows, sensitive_features=groups)
    left = first.transform(rows)
    expected = audit(PCA(2).fit(left), left, sensitive_features=groups)
    np.testing.assert_allclose(twice.variance, expected.variance, rtol=1e-12)


def test_a_pipeline_without_a_reduction():
    X, groups = rows_and_groups()
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, groups)
    with refused(TypeError, "audit", "transform and inverse_transform"):
        audit(pipe, X, sensitive_features=groups)


def test_a_pipeline_that_is_not_fitted():
    X, groups = rows_and_groups()
    with pytest.raises(NotFittedError):
        audit(make_pipeline(StandardScaler(), PCA(2)), X, sensitive_features=groups)


def test_a_reduction_without_a_way_back():
    X, groups = rows_and_groups()
    with refused(TypeError, "inverse_transform", "Isomap"):
        audit(Isomap(n_components=2).fit(X), X, sensitive_features=groups)
    with refused(TypeError, "'StandardScaler'", "'Isomap'"):
        audit(
            make_pipeline(StandardScaler(), Isomap(n_components=2)).fit(X),
            X,
            sensitive_features=groups,
        )
    with refused(TypeError, "transform", "str"):
        audit("PCA", X, sensitive_features=groups)


class Narrow(TransformerMixin, BaseEstimator):
    """Comes back with fewer columns than it was given."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return X[:, :2]

    def inverse_transform(self, X):
        return X


def test_a_way_back_to_another_shape():
    X, groups = rows_and_groups()
    with refused(ValueError, "inverse_transform", "(90, 2)"):
        audit(Narrow().fit(X), X, sensitive_features=groups)


def test_rows_of_another_width():
    X, groups = rows_and_groups()
    with refused(ValueError, "5 features"):
        audit(PCA(2).fit(X), X[:, :4], sensitive_features=groups)


def test_bad_labels_and_values():
    X, groups = rows_and_groups()
    pca = PCA(2).fit(X)
    with refused(ValueError, "inconsistent numbers"):
        audit(pca, X, sensitive_features=groups[1:])
    labels = [None, *groups[1:]]
    with refused(ValueError, "1 missing", "90 rows"):
        audit(pca, X, sensitive_features=labels)
    table = audit(pca, X, sensitive_features=labels, missing_labels="group")
    assert table.labels[-1] == "(missing)"
    assert table.count[-1] == 1
    with refused(ValueError, "missing_labels"):
        audit(pca, X, sensitive_features=groups, missing_labels="no")
    X[0, 0] = np.nan
    with refused(ValueError, "NaN"):
        audit(pca, X, sensitive_features=groups)


def test_a_fair_reduction_with_extra_dimensions_is_judged_by_the_dimension_asked_for():
    # Three lines in a plane: no single direction is as good for the worst-off as a bit of both.
    angles = np.pi / 3 * np.arange(3)
    lines = np.column_stack([np.cos(angles), np.sin(angles)])
    X = np.vstack([lines, -lines])
    groups = np.tile(["a", "b", "c"], 2)
    fair = FairPCA(1, criterion="minmax", solver="mw").fit(X, sensitive_features=groups)
    assert fair.n_components_ == 2
    table = audit(fair, X, sensitive_features=groups)
    np.testing.assert_allclose(table.disparity, fair.group_table_.disparity, atol=1e-12)


def test_groups_are_those_that_a_fair_reduction_was_fitted_for():
    rng = np.random.default_rng(0)
    X, columns = rng.normal(size=(200, 4)) * [3, 2, 1, 1], rng.integers(0, 2, (200, 2)).astype(str)
    fair = FairPCA(2, groups="marginals", criterion="minmax").fit(X, sensitive_features=columns)
    table = audit(fair, X, sensitive_features=columns)
    assert table.labels == fair.group_table_.labels
    np.testing.assert_allclose(table.loss, fair.group_table_.loss)
    assert len(audit(fair, X, sensitive_features=columns, groups="both")) == 8
    plain = PCA(2).fit(X)
    assert audit(plain, X, sensitive_features=columns).labels == tuple(
        (a, b) for a in "01" for b in "01"
    )


def test_loadings_are_judged_as_the_pca_that_they_are_from():
    X, groups = some_people(1), np.repeat(["a", "b"], [100, 200])
    pca = PCA(2).fit(X)
    scaled = pca.components_ * [[3.0], [0.5]]
    mixed = np.array([[1, 1], [1, -1]]) @ scaled  # another basis of the same span
    for components in (pca.components_, scaled, mixed):
        found = audit(Loadings(components, pca.mean_), X, sensitive_features=groups)
        expected = audit(pca, X, sensitive_features=groups)
        np.testing.assert_allclose(found.loss, expected.loss)
        np.testing.assert_allclose(found.intervals.disparity, expected.intervals.disparity)
    sparse = scipy.sparse.csr_array(X)
    found = audit(Loadings(pca.components_, pca.mean_), sparse, sensitive_features=groups)
    np.testing.assert_allclose(found.loss, expected.loss)


def test_loadings_that_cannot_be_meant_are_refused():
    with refused(ValueError, "transpose"):
        Loadings(np.eye(4)[:, :2], 0.0)
    with refused(ValueError, "mean", "4 columns"):
        Loadings(np.eye(4)[:2], np.zeros(3))
    with refused(ValueError, "dimension 1"):
        Loadings(np.ones((2, 4)), 0.0)


@pytest.mark.parametrize("n_columns", [6, 700])
def test_a_pca_is_judged_on_new_rows_by_its_training_rows(n_columns):
    X, groups = some_people(2, n_columns), np.repeat(["a", "b"], [100, 200])
    train = np.arange(300) % 2 == 0
    pca = PCA(2, svd_solver="full").fit(X[train])
    errors = np.square(X - pca.inverse_transform(pca.transform(X))).sum(axis=1)
    table = audit(
        pca,
        X[~train],
        sensitive_features=groups[~train],
        X_train=X[train],
        sensitive_train=groups[train],
    )
    assert not table.better_off
    assert not table.worse_off
    assert table.baseline == "training"
    for i, label in enumerate("ab"):
        new, own = ~train & (groups == label), X[train & (groups == label)] - pca.mean_
        assert table.loss[i] == pytest.approx(errors[new].mean())
        assert table.pca_loss[i] == pytest.approx(table.loss[i])
        axes = np.linalg.svd(own)[2][:2]
        rest = (X[new] - pca.mean_) @ (np.eye(n_columns) - axes.T @ axes)
        assert table.own_loss[i] == pytest.approx(np.square(rest).sum(axis=1).mean())
    # Without them PCA is refitted to the new rows, and everyone seems worse off.
    assert audit(pca, X[~train], sensitive_features=groups[~train]).change.max() > 0.0


def test_training_rows_of_a_table_have_their_groups_by_name():
    frame = pd.DataFrame(some_people(3), columns=list("abcdef"))
    frame["group"] = np.repeat(["x", "y"], [100, 200])
    train, new = frame.iloc[::2], frame.iloc[1::2]
    pipeline = make_pipeline(StandardScaler(), PCA(2)).fit(train.drop(columns="group"))
    table = audit(pipeline, new, sensitive_features="group", X_train=train)
    assert not table.better_off + table.worse_off
    rows = train.drop(columns="group").to_numpy(), new.drop(columns="group").to_numpy()
    scaler = StandardScaler().fit(rows[0])
    fair = FairPCA(2).fit(scaler.transform(rows[0]), sensitive_features=train["group"].to_numpy())
    known = audit(
        fair, scaler.transform(rows[1]), sensitive_features=list(new["group"]), baseline="training"
    )
    np.testing.assert_allclose(table.pca_loss, known.pca_loss)
    np.testing.assert_allclose(table.own_loss, known.own_loss)


def test_training_rows_and_their_groups_belong_together():
    X, groups = some_people(4), np.repeat(["a", "b"], [100, 200])
    pca = PCA(2).fit(X)
    with refused(ValueError, "X_train", "sensitive_train"):
        audit(pca, X, sensitive_features=groups, sensitive_train=groups)
    with refused(ValueError, "X_train", "sensitive_train"):
        audit(pca, X, sensitive_features=groups, X_train=X)
    with refused(ValueError, "X_train", "6"):
        audit(pca, X, sensitive_features=groups, X_train=X[:, :5], sensitive_train=groups)


def some_people(seed, n_columns=6):
    """A hundred rows that vary along some columns, and two hundred along others."""
    X = np.random.default_rng(seed).normal(size=(300, n_columns))
    X[:100, :3] *= [4, 3, 2]
    X[100:, 3:6] *= [4, 3, 2]
    return X

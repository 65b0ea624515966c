"""Permutation test: its statistic, its level, its power, and who reports it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, GroupMoments, MinMax, Problem, audit
from fairpca.data import prepare_data
from fairpca.datasets import load_adult
from fairpca.generalization.permutation_test import LEVEL, RowSample, permutation_test
from fairpca.report import report

pytestmark = pytest.mark.untraced

SCALES = np.sqrt(5 / np.arange(1, 9))


def run_test(
    X, groups, r=2, measure="disparity", seed=None, weights=None, grouping="intersections"
):
    data = prepare_data(X, groups, weights, groups=grouping)
    problem = data.problem(r, criterion=MinMax(measure))
    return permutation_test(problem, data, random_state=seed)


@pytest.mark.parametrize(
    "measure",
    ["disparity", "relative_disparity", "loss", "share_lost", "kept_variance", "share_kept"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_measures_of_permuted_labels_are_those_of_a_problem(measure, weighted):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(90, 8)) * SCALES + 3.0, np.repeat([0, 1, 2], [50, 30, 10])
    weights = rng.integers(1, 4, size=90).astype(float) if weighted else None
    data = prepare_data(X, groups, weights)
    problem = data.problem(3, criterion=MinMax(measure))
    sample = RowSample.from_data(problem, data, np.random.default_rng(1))
    order = np.random.default_rng(2).permutation(90)
    found = sample.measures(problem, order)
    # The sample has its own order of rows: the same rows are found by what they are.
    roots = sample.rows[order, -1]
    rows = sample.rows[order, :-2] / roots[:, None]
    moments = GroupMoments.from_rows(rows, groups, sample_weight=roots**2)
    other = Problem(moments, 3, MinMax(measure))
    # About the same mean: permuted rows have the mean of all rows.
    np.testing.assert_allclose(moments.total_mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(found, other.measures(problem.pca_basis), atol=1e-12)


def test_observed_statistic_is_that_of_the_problem():
    rng = np.random.default_rng(5)
    X, columns = rng.normal(size=(120, 6)), rng.integers(2, size=(120, 2))
    data = prepare_data(X, columns, groups="marginals")
    problem = data.problem(2)
    sample = RowSample.from_data(problem, data, np.random.default_rng(0))
    found = sample.measures(problem, np.arange(120))
    expected = problem.measures(problem.pca_basis) / problem.scale
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("sizes", "tails", "measure", "weighted"),
    [
        ([100, 100], None, "disparity", False),
        ([180, 15, 5], None, "disparity", False),
        ([150, 50], 4, "disparity", False),
        ([120, 60, 20], None, "share_lost", False),
        ([150, 50], None, "disparity", True),
    ],
)
def test_groups_that_are_alike_are_rejected_at_the_level(sizes, tails, measure, weighted):
    rng, n = np.random.default_rng(7), 120
    rejected = 0
    for seed in range(n):
        X = rng.normal(size=(200, 8)) if tails is None else rng.standard_t(tails, size=(200, 8))
        weights = rng.exponential(size=200) if weighted else None
        groups = np.repeat(np.arange(len(sizes)), sizes)
        test = run_test(X * SCALES, groups, measure=measure, seed=seed, weights=weights)
        rejected += bool(test.exceeds_null.any())
    # Binomial: 14 or more of 120 have a probability of 0.4 % at the level of 5 %.
    assert rejected < 14
    assert LEVEL == 0.05


def test_groups_that_differ_are_significant():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8)) * SCALES
    groups = np.repeat(["a", "b"], [250, 50])
    assert not run_test(X, groups).exceeds_null.any()
    X[250:] = X[250:, ::-1]
    assert run_test(X, groups).exceeds_null[1]
    assert run_test(X, groups).p_values[1] == 1 / 200


def test_adult_by_sex_and_shuffled():
    adult = load_adult(as_frame=False)
    X = StandardScaler().fit_transform(adult.data)
    assert run_test(X, adult.sensitive_features).exceeds_null.all()
    shuffled = np.random.default_rng(0).permutation(adult.sensitive_features)
    assert not run_test(X, shuffled).exceeds_null.any()


@pytest.mark.parametrize("scale", [1e-25, 1e-8, 1e25])
def test_units_do_not_matter(scale):
    X, labels = np.random.default_rng(0).normal(size=(120, 6)), np.repeat([0, 1, 2], [80, 30, 10])
    for measure in ("disparity", "loss", "share_lost"):
        large, plain = (run_test(rows, labels, measure=measure) for rows in (X * scale, X))
        np.testing.assert_array_equal(large.p_values, plain.p_values)


def test_degenerate_rows():
    groups = np.arange(50) < 9
    assert (run_test(np.ones((50, 4)), groups).p_values == 1.0).all()
    X = np.random.default_rng(0).normal(size=(50, 4))
    assert (run_test(X, groups, r=4).p_values == 1.0).all()  # nothing is lost
    assert run_test(X, np.arange(50) == 0).p_values[0] > LEVEL  # one row


def test_sparse_rows_and_many_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 150)) * (rng.random((200, 150)) < 0.2)
    groups = np.repeat([0, 1], 100)
    dense, sparse = run_test(X, groups), run_test(scipy.sparse.csr_array(X), groups)
    np.testing.assert_allclose(dense.statistic, sparse.statistic, rtol=1e-8)
    X[100:, :5] *= 20.0
    X[:100, 5:10] *= 19.0
    assert run_test(X, groups).exceeds_null.any()


def test_rows_without_weight_do_not_count():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(150, 5)), np.arange(150) % 2
    weights = np.ones(150)
    weights[100:] = 0.0
    data = prepare_data(X, groups, weights)
    sample = RowSample.from_data(data.problem(2), data, rng)
    assert sample.sizes.tolist() == [50, 50]


# --- Who reports it -----------------------------------------------------------


def three_groups():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 6)) * np.sqrt(3 / np.arange(1, 7))
    groups = np.repeat(["major", "other", "small"], [250, 110, 40])
    X[groups == "other"] = X[groups == "other"][:, ::-1]
    return X, groups


def test_audit_has_p_values_and_names_groups_without_a_significant_disparity():
    X, groups = three_groups()
    table = audit(PCA(2).fit(X), X, sensitive_features=groups)
    assert table.p_value[1] <= 0.05
    alike = [name for name, p in zip(table.labels, table.p_value, strict=True) if p > 0.05]
    assert alike
    assert table.to_frame()["PCA disparity p-value"].tolist() == table.p_value.tolist()
    (note,) = [text for text in table.notes if "permutation test" in text]
    assert [name for name in table.labels if f"{name} (" in note] == alike
    assert audit(PCA(2).fit(X), X, sensitive_features=groups, n_resamples=0).p_value is None
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    trained = audit(fair, X, sensitive_features=groups, baseline="training")
    assert trained.p_value is None
    one = audit(PCA(2).fit(X), X, sensitive_features=np.zeros(400))
    assert one.p_value is None


def test_audit_of_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(60, 300)), np.repeat(["a", "b"], 30)
    X[groups == "b", :3] *= 30.0
    X[groups == "a", 3:6] *= 30.0
    assert (audit(PCA(3).fit(X), X, sensitive_features=groups).p_value <= 0.05).all()


def test_report_says_where_there_is_no_significant_difference():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 5)), np.repeat(["a", "b"], 150)
    given = {"n_components": 2, "n_points": 2, "n_resamples": 20}
    alike = report(X, sensitive_features=groups, **given)
    titles = [each["title"] for each in alike.summary["warnings"]]
    assert "No significant difference" in titles
    X[150:] *= [9, 9, 1, 1, 1]
    X[:150] *= [1, 1, 1, 9, 9]
    titles = [
        each["title"] for each in report(X, sensitive_features=groups, **given).summary["warnings"]
    ]
    assert "No significant difference" not in titles


def test_fit_does_not_test(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr(RowSample, "from_data", refuse)
    X, groups = three_groups()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    data = replace(prepare_data(X, groups))
    with pytest.raises(AssertionError):
        permutation_test(data.problem(2), data)

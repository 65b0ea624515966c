"""prepare_data: one way from rows to moments, for every estimator and function."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.utils.validation import validate_data

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
from fairpca.data import GroupedData, prepare_data
from fairpca.moments import row_space
from fairpca.validation import check_rows

from devices import import_torch
from texts import refused, warned

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4)) * [3, 2, 1, 1]
GROUPS = np.array(["a", "b", "c"])[np.arange(60) % 3]


@pytest.mark.parametrize("kind", ["array", "frame", "csr"])
def test_the_record_holds_what_estimators_need(kind):
    given = {"array": np.asarray, "frame": pd.DataFrame, "csr": scipy.sparse.csr_array}[kind](X)
    if kind == "frame":
        given.columns = list("wxyz")
    weights = np.where(GROUPS == "b", 0.0, 2.0)
    with warned(FairnessWarning, "'b'", "left out"):
        grouped_data = prepare_data(given, GROUPS, weights)
    with warned(FairnessWarning, "'b'", "left out"):
        expected = GroupMoments.from_rows(X, GROUPS, sample_weight=weights)
    assert grouped_data.moments.labels == ("a", "c")
    np.testing.assert_allclose(grouped_data.moments.scatter, expected.scatter)
    # The group without weight has no place among the moments.
    np.testing.assert_array_equal(grouped_data.codes, np.array([0, -1, 1])[np.arange(60) % 3])
    np.testing.assert_array_equal(grouped_data.weights, weights)
    assert grouped_data.rows.shape == X.shape
    assert grouped_data.space is None
    assert grouped_data.n_features == 4
    names = tuple("wxyz") if kind == "frame" else None
    assert grouped_data.moments.feature_names == names
    problem = grouped_data.problem(2, aggregation="sum")
    assert (problem.n_components, problem.aggregation, problem.goal.name) == (2, "sum", "minmax")


def test_columns_are_recorded_on_the_estimator_or_nowhere():
    frame = pd.DataFrame(X, columns=list("wxyz"))
    estimator = FairPCA(2, criterion="minmax")
    prepare_data(frame, GROUPS, estimator=estimator)
    assert list(estimator.feature_names_in_) == list("wxyz")
    prepare_data(X, GROUPS, estimator=estimator)
    assert not hasattr(estimator, "feature_names_in_")
    assert estimator.n_features_in_ == 4
    with refused(TypeError, "string"):
        prepare_data(frame.rename(columns={"w": 0}), GROUPS)


@pytest.mark.parametrize(
    "given",
    [
        X,
        np.asfortranarray(X),
        X.astype(">f8"),
        X.astype(np.float32),
        np.ma.array(X),
        pd.DataFrame(X, columns=list("wxyz")),
        pd.DataFrame(X),
        X[:1],
        X[:, :0],
        X[0],
        X + 0j,
    ],
)
def test_rows_are_checked_as_scikit_learn_checks_them(given):
    # Of plain tables it is not asked: what is taken, refused and recorded is the same.
    def outcome(check):
        estimator = FairPCA(2, criterion="minmax").fit(
            pd.DataFrame(X, columns=list("abcd")), sensitive_features=GROUPS
        )
        try:
            rows = check(estimator)
        except ValueError as error:
            return str(error)
        names = getattr(estimator, "feature_names_in_", np.array([])).tolist()
        return type(rows), rows.dtype, rows.tolist(), estimator.n_features_in_, names

    kinds = {"dtype": [np.float64, np.float32], "ensure_min_samples": 2}
    expected = outcome(lambda estimator: validate_data(estimator, given, **kinds))
    assert outcome(lambda estimator: check_rows(given, estimator, ensure_min_samples=2)) == expected


def test_far_more_columns_than_rows(monkeypatch):
    monkeypatch.setattr(row_space, "FEW_COLUMNS", 5)
    wide = RNG.standard_normal((4, 12))
    grouped_data = prepare_data(wide, [0, 0, 1, 1], reduce_wide=True)
    assert grouped_data.moments.n_features == 4
    assert grouped_data.n_features == 12
    # Room for a subspace that leaves the span of the rows.
    assert grouped_data.problem(3).moments.n_features == 7
    assert grouped_data.problem(10).moments.n_features == 12
    assert grouped_data.dimensions(None) == [3]
    whole = prepare_data(wide, [0, 0, 1, 1])
    assert (whole.space, whole.dimensions(None)) == (None, [3])


def test_too_few_rows_and_too_many_components():
    with refused(ValueError, "minimum of 2"):
        prepare_data(X[:1])
    assert prepare_data(X[:1], least_rows=1).moments.count.tolist() == [1]
    with refused(ValueError, "n_components=5", "n_features=4"):
        prepare_data(X, n_components=5)
    prepare_data(X, n_components=0.5)


def test_rows_on_a_device_stay_there_or_are_copied():
    torch = import_torch()
    rows = torch.as_tensor(X)
    stayed, copied = (
        prepare_data(rows, GROUPS, estimator=FairPCA(criterion="minmax"), in_place=True),
        prepare_data(rows, GROUPS),
    )
    assert isinstance(stayed, GroupedData)
    assert stayed.rows.data_ptr() == rows.data_ptr()
    np.testing.assert_allclose(copied.rows, X)
    for grouped_data in (stayed, copied):
        np.testing.assert_allclose(grouped_data.moments.mean, prepare_data(X, GROUPS).moments.mean)


@pytest.mark.parametrize("criterion", [MinMax(), Equal(1.0), AtMost(2.0), Balanced()], ids=str)
def test_an_estimator_from_a_solution_is_that_of_a_fit(criterion):
    frame = pd.DataFrame(X, columns=list("wxyz"))
    fitted = FairPCA(2, criterion=criterion).fit(frame, sensitive_features=GROUPS)
    problem = Problem(GroupMoments.from_rows(frame, GROUPS), 2, criterion)
    made = FairPCA.from_solution(problem, ExactSolver().solve(problem), random_state=7)
    assert made.get_params() == fitted.get_params() | {"random_state": 7}
    for name in vars(fitted):
        if isinstance(getattr(fitted, name), np.ndarray):
            np.testing.assert_array_equal(getattr(made, name), getattr(fitted, name))
    assert str(made.group_table_) == str(fitted.group_table_)
    np.testing.assert_array_equal(made.transform(frame), fitted.transform(frame))

"""Figures measured independently of this library, and those that peers have published."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from fairpca import ExactSolver, FairPCA, GroupMoments, Problem
from fairpca.datasets import load_adult, load_credit

pytestmark = pytest.mark.contract  # the solver on NumPy and SciPy, against published figures

# Disparity of every group and total loss: standardised integer codes, all rows, global mean.
EQUAL = [
    (load_adult, "sex", 2, 0.401589, 10.520611),
    (load_adult, "sex", 5, 0.593320, 7.014580),
    (load_adult, "sex", 10, 0.457087, 2.451208),
    (load_adult, "race", 5, 1.145293, 7.294723),
    (load_adult, "race", 10, 0.855418, 2.664271),
    (load_credit, "sex", 2, 0.018194, 12.358858),
    (load_credit, "sex", 5, 0.233579, 8.310534),
    (load_credit, "sex", 10, 0.113578, 3.906057),
    (load_credit, "marriage", 5, 0.743203, 8.783914),
    (load_credit, "marriage", 10, 0.517842, 4.202601),
]


def fit(load, sensitive, r, **choices):
    bunch = load(sensitive=sensitive, as_frame=False)
    X = StandardScaler().fit_transform(bunch.data)
    return FairPCA(r, **choices).fit(X, sensitive_features=bunch.sensitive_features)


@pytest.mark.parametrize(("load", "sensitive", "r", "disparity", "total_loss"), EQUAL)
def test_equal_disparities_to_six_digits(load, sensitive, r, disparity, total_loss):
    fair = fit(load, sensitive, r, criterion="equal")
    np.testing.assert_allclose(fair.group_table_.disparity, disparity, rtol=0, atol=5.1e-7)
    np.testing.assert_allclose(fair.solution_.total_loss, total_loss, rtol=0, atol=5.1e-7)
    assert fair.certificate_.status == "optimal"


def test_ordinary_pca_on_adult():
    table = fit(load_adult, "sex", 2).group_table_
    np.testing.assert_allclose(table.pca_disparity, [0.7059, 0.1735], atol=5.1e-5)
    total = np.average(table.pca_loss, weights=table.count)
    assert total == pytest.approx(10.4686, abs=5.1e-5)


def test_minmax_on_adult_by_race():
    fair = fit(load_adult, "race", 2, criterion="minmax")
    expected = [2.04, 2.04, 1.47, 2.04, 2.04]
    np.testing.assert_allclose(fair.group_table_.disparity, expected, atol=5.1e-3)
    assert fair.certificate_.value <= 2.0355 + 5.1e-5


def test_equality_least_gain_on_adult_by_race():
    certificate = fit(load_adult, "race", 2, criterion="equal").certificate_
    assert certificate.value == pytest.approx(11.766509, abs=5.1e-7)
    assert certificate.measures == pytest.approx([2.104] * 5, abs=5.1e-4)
    assert certificate.least_gain == pytest.approx(2.104017 - 2.035509, abs=2e-6)


def largest_disparity(X, groups, r):
    """As published: with the means of the groups removed."""
    problem = Problem(GroupMoments.from_rows(X, groups), r, centering="group")
    return ExactSolver().solve(problem).certificate.value


# Largest disparity as published: group means removed, sensitive column left out.
@pytest.mark.parametrize(("r", "value"), [(2, 0.239919), (5, 0.453571), (10, 0.394827)])
def test_published_minmax_adult_by_sex(r, value):
    adult = load_adult(keep_sensitive=False, as_frame=False)
    X = StandardScaler().fit_transform(adult.data)
    assert X.shape[1] == 13
    found = largest_disparity(X, adult.sensitive_features, r)
    assert found == pytest.approx(value, abs=5.1e-7)


@pytest.mark.parametrize(("r", "value"), [(2, 0.022195), (5, 0.050333), (10, 0.283638)])
def test_published_minmax_credit_by_education(r, value):
    credit = load_credit(sensitive="education", keep_sensitive=False, as_frame=False)
    higher = np.isin(credit.sensitive_features, ["graduate school", "university"])
    X = StandardScaler().fit_transform(credit.data)
    assert X.shape[1] == 22
    assert largest_disparity(X, higher, r) == pytest.approx(value, abs=5.1e-7)

"""The theory of docs/downstream.md: what a reduction costs a predictor, and equal opportunity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from fairpca import FairPCA, GroupMoments, Problem
from fairpca.comparators import EqualOpportunityProjection


def risk(rows, y):
    """The least mean squared error of a linear predictor with intercept."""
    rows = np.column_stack([np.ones(len(y)), rows])
    return np.mean((y - rows @ np.linalg.lstsq(rows, y, rcond=None)[0]) ** 2)


def random_groups(seed):
    """Rows of two or three groups, a target, an orthonormal basis, and the mean of all rows."""
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(2, 4)), int(rng.integers(2, 6))
    rows, target = [], []
    for _ in range(k):
        X = rng.normal(size=(int(rng.integers(d + 5, 60)), d)) @ rng.normal(size=(d, d))
        rows.append(X + rng.normal(size=d))
        noise = rng.normal(size=len(X)) * rng.choice([0.0, 1.0])
        target.append(X @ rng.normal(size=d) + noise + np.sin(X[:, 0]))
    basis = np.linalg.qr(rng.normal(size=(d, int(rng.integers(1, d)))))[0]
    return rows, target, basis, np.vstack(rows).mean(axis=0)


# --- 1. A group's excess risk is bounded by its loss ------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_excess_risk_of_a_refitted_predictor_is_bounded_by_the_loss(seed):
    rows, target, basis, mean = random_groups(seed)
    for X, y in zip(rows, target, strict=True):
        excess = risk((X - mean) @ basis, y) - risk(X, y)
        weights = LinearRegression().fit(X, y).coef_
        rest = (X - mean) - (X - mean) @ basis @ basis.T
        lost = rest.T @ rest / len(X)
        own = weights @ lost @ weights
        largest = weights @ weights * np.linalg.eigvalsh(lost)[-1]
        rounding = 1e-9 * (1 + y.var())
        assert -rounding <= excess <= own + rounding
        assert own <= largest + rounding
        assert largest <= weights @ weights * np.trace(lost) + rounding


@pytest.mark.parametrize("r", [1, 2])
def test_the_loss_of_the_bound_is_that_of_the_table(r):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(200, 4)) * [3, 2, 1, 1], np.repeat(["a", "b"], [60, 140])
    X[groups == "a"] = X[groups == "a"][:, [2, 1, 0, 3]] + 1.0
    fair = FairPCA(r).fit(X, sensitive_features=groups)
    rest = X - fair.inverse_transform(fair.transform(X))
    losses = [np.square(rest[groups == group]).sum(axis=1).mean() for group in ("a", "b")]
    np.testing.assert_allclose(fair.group_table_.loss, losses)


def test_equal_disparities_promise_nothing():
    """Both groups have the disparity 0; one loses all of what can be predicted of it."""
    signs = np.array([[i, j] for i in (-1, 1) for j in (-1, 1)], dtype=float)
    X = np.vstack([signs, signs]) * [2.0, 1.0]
    groups, y = np.repeat(["a", "b"], 4), np.concatenate([X[:4, 0], X[4:, 1]])
    problem = Problem(GroupMoments.from_rows(X, groups), 1)
    basis = np.eye(2)[:, :1]
    np.testing.assert_allclose(problem.disparities(basis), [0.0, 0.0], atol=1e-12)
    excess = [
        risk(X[groups == group] @ basis, y[groups == group])
        - risk(X[groups == group], y[groups == group])
        for group in ("a", "b")
    ]
    np.testing.assert_allclose(excess, [0.0, 1.0], atol=1e-12)


@pytest.mark.parametrize(("share", "correlation"), [(0.5, 0.5), (0.9, 0.8)])
def test_a_pooled_predictor_can_break_the_bound(share, correlation):
    """Group b loses nothing, and yet a predictor for both groups gets worse for it."""
    n_a, n_b = round(200 * share), 200 - round(200 * share)
    s, e = np.array([-1, 1, -1, 1]), np.array([-1, -1, 1, 1])  # uncorrelated, variance 1
    t = correlation * s + np.sqrt(1 - correlation**2) * e
    X_a, X_b = np.column_stack([s, t]), np.column_stack([s, 0 * s])
    X = np.vstack([np.tile(X_a, (n_a // 4, 1)), np.tile(X_b, (n_b // 4, 1))])
    y, b = X.sum(axis=1), np.arange(len(X)) >= n_a // 4 * 4
    share = 1 - b.mean()
    pooled = LinearRegression().fit(X, y)
    assert np.mean((y - pooled.predict(X))[b] ** 2) == pytest.approx(0.0, abs=1e-12)
    reduced = LinearRegression().fit(X[:, :1], y)
    excess = np.mean((y - reduced.predict(X[:, :1]))[b] ** 2)
    assert np.mean(X[b, 1] ** 2) == 0.0  # its loss
    assert excess == pytest.approx((share * correlation) ** 2)
    assert risk(X[b, :1], y[b]) == pytest.approx(0.0, abs=1e-12)  # refitted


# --- 2. When the reduction costs nothing ------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_nothing_is_lost_where_the_subspace_has_the_weights_of_the_group(seed):
    rows, target, basis, _ = random_groups(seed)
    X, y = rows[0], target[0]
    weights = LinearRegression().fit(X, y).coef_
    wide = np.linalg.qr(np.column_stack([weights, basis]))[0][:, : basis.shape[1]]
    assert risk(X @ wide, y) - risk(X, y) == pytest.approx(0.0, abs=1e-9 * (1 + y.var()))
    without = wide - np.outer(weights, weights @ wide) / (weights @ weights)
    costs = risk(X @ without, y) - risk(X, y)
    assert costs > 1e-9 * y.var() or np.allclose(weights, 0.0)


def test_the_best_classifier_of_two_normal_classes_keeps_its_accuracy():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(4, 4))
    covariance, apart = root @ root.T, rng.normal(size=4)
    weights = np.linalg.solve(covariance, apart)

    def accuracy(basis):
        """Of the best classifier of the classes' distributions along the basis."""
        inside = np.linalg.solve(basis.T @ covariance @ basis, basis.T @ apart)
        return norm.cdf(np.sqrt(apart @ basis @ inside) / 2)

    full = accuracy(np.eye(4))
    with_weights = np.linalg.qr(np.column_stack([weights, rng.normal(size=4)]))[0]
    assert accuracy(with_weights) == pytest.approx(full, abs=1e-12)
    # The direction between the means is another one, and is not enough.
    assert accuracy(np.linalg.qr(apart[:, None])[0]) < full - 0.01


# --- 3. When equal opportunity follows --------------------------------------------------------


def normal_groups(n, seed, k=3, d=5):
    """Positives of k groups with a common covariance, and others; with their distributions."""
    rng = np.random.default_rng(seed)
    root, means = rng.normal(size=(d, d)), rng.normal(size=(k, d))
    groups, y = np.tile(np.arange(k), 2 * n), np.repeat([1, 0], k * n)
    X = rng.normal(size=(len(y), d)) @ root + means[groups] * y[:, None]
    return X, y, groups, means, root


def test_rates_are_equal_for_normal_positives_with_a_common_covariance():
    X, y, groups, means, root = normal_groups(50, 0)
    # As many rows as wanted of each group have its exact mean: shift the sample's.
    for i in range(3):
        some = (groups == i) & (y == 1)
        X[some] += means[i] - X[some].mean(axis=0)
    projection = EqualOpportunityProjection().fit(X, y, sensitive_features=groups)
    keep = projection.transform(np.eye(5)) - projection.transform(np.zeros((1, 5)))
    rng = np.random.default_rng(1)
    for _ in range(20):
        weights, threshold = keep @ rng.normal(size=5), rng.normal()
        deviation = np.linalg.norm(root @ weights)
        rates = norm.sf((threshold - means @ weights) / deviation)
        assert np.ptp(rates) < 1e-12
        assert np.ptp(norm.sf((threshold - means @ rng.normal(size=5)) / deviation)) > 1e-6


def test_rates_differ_where_positives_spread_differently():
    """Equal means alone are not enough: a score with twice the spread, and a threshold of 1."""
    n = 4000
    quantiles = norm.ppf((np.arange(n) + 0.5) / n)
    X = np.concatenate([quantiles, 2 * quantiles])[:, None]
    X = np.hstack([X, np.zeros_like(X)])
    groups = np.repeat(["a", "b"], n)
    projection = EqualOpportunityProjection(pos_label=1)
    left = projection.fit(X, np.ones(2 * n, dtype=int), sensitive_features=groups).transform(X)
    rates = [np.mean(left[groups == group, 0] > 1.0) for group in ("a", "b")]
    np.testing.assert_allclose(rates, norm.sf([1.0, 0.5]), atol=1e-3)


def test_all_erasers_of_the_same_directions_are_alike_to_a_linear_classifier():
    """The orthogonal one here and the oblique one of LEACE, before regularisation."""
    X, y, groups, *_ = normal_groups(100, 3)
    projection = EqualOpportunityProjection().fit(X, y, sensitive_features=groups)
    means = projection.positive_means_
    offsets = (means[1:] - means[0]).T
    inverse = np.linalg.inv(np.cov(X[y == 1].T))
    oblique = np.eye(5) - offsets @ np.linalg.solve(
        offsets.T @ inverse @ offsets, offsets.T @ inverse
    )
    orthogonal, other = projection.transform(X), X @ oblique.T
    assert not np.allclose(orthogonal - orthogonal.mean(axis=0), other - other.mean(axis=0))
    plain = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    one, two = (plain.fit(rows, y).predict_proba(rows)[:, 1] for rows in (orthogonal, other))
    np.testing.assert_allclose(one, two, atol=1e-4)


def test_what_is_left_of_a_difference_falls_with_the_positives():
    """Of estimated directions; as 1 / sqrt(n)."""

    def left(n):
        found = []
        for seed in range(20):
            X, y, groups, means, _ = normal_groups(n, seed)
            projection = EqualOpportunityProjection().fit(X, y, sensitive_features=groups)
            offsets = (means - means.mean(axis=0)) / projection.scale_
            rest = offsets - offsets @ projection.directions_.T @ projection.directions_
            found.append(np.linalg.norm(rest) / np.linalg.norm(offsets))
        return np.mean(found)

    few, many = left(50), left(800)
    assert many < 0.15
    assert few / many == pytest.approx(4.0, rel=0.25)

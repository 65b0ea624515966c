"""Columns of very different variance, and means far apart: words and bounds still hold."""

import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh

from fairpca import (
    Equal,
    ExactSolver,
    FairPCA,
    GroupMoments,
    MinMax,
    Problem,
    SoftMinMax,
    pareto_front,
)
from fairpca._linalg.graded import GradedLosses, graded_eigh
from fairpca.datasets import load_adult, load_credit

from problems import problem_of, random_matrices
from texts import refused

pytestmark = pytest.mark.untraced

TEN_EACH = np.repeat(np.arange(5), 10)


def solve(X, groups, r, n_starts=40, **choices):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ExactSolver(n_starts).solve(Problem(GroupMoments.from_rows(X, groups), r, **choices))


def rows_of_three_groups():
    rng = np.random.default_rng(0)
    groups = np.arange(150) % 3
    X = rng.normal(size=(150, 4)) * [3, 2, 1, 1]
    for group in range(3):
        X[groups == group] = X[groups == group] @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    return X, groups


def by_long_double(X, groups, basis):
    """Disparities of rows in a basis, in numbers of more digits; own losses by a search there.

    The own loss is the sum of the smallest eigenvalues of the group's scaled matrix, from the
    generalised problem that leaves the scales out of it.
    """
    rows = X.astype(np.longdouble)
    rows = rows - rows.mean(axis=0)
    rest = np.linalg.qr(basis, mode="complete")[0][:, basis.shape[1] :].astype(np.longdouble)
    found = []
    for name in np.unique(groups):
        part = rows[groups == name]
        loss = float(np.square(part @ rest).sum() / len(part))
        scales = np.sqrt(np.square(part).mean(axis=0))
        scaled = part / scales
        matrix = np.asarray(scaled.T @ scaled / len(part), dtype=float)
        # With y = D n, the least n' A n over n'n = 1 is that of y' B y over y' D^-2 y = 1.
        metric = np.diag(np.asarray(scales, dtype=float) ** -2.0)
        inverse = eigh(metric / metric.max(), matrix, eigvals_only=True)[::-1]
        smallest = 1.0 / (inverse[: rest.shape[1]] * metric.max())
        found.append(loss - float(smallest.sum()))
    return np.array(found)


@pytest.mark.parametrize("r", [14, 17, 19, 21, 22])
def test_credit_with_its_columns_as_they_are(r):
    credit = load_credit(as_frame=False, sensitive="sex")
    for criterion in ("equal", "minmax"):
        solution = solve(credit.data, credit.sensitive_features, r, criterion=criterion)
        assert solution.certificate.status == "optimal"
        first, second = solution.disparities
        assert first == pytest.approx(second, rel=1e-7)
    if r == 22:
        # One direction is left out: its disparities by numbers of more digits.
        expected = by_long_double(credit.data, credit.sensitive_features, solution.basis)
        assert_allclose(solution.disparities, expected, rtol=1e-5)
        assert first == pytest.approx(0.015067, rel=1e-4)


def test_adult_by_race_with_its_columns_as_they_are():
    adult = load_adult(as_frame=False, sensitive="race")
    solution = solve(adult.data, adult.sensitive_features, 10, criterion="equal")
    assert "equal disparities" in str(solution.certificate)
    assert np.ptp(solution.disparities) <= 1e-7 * solution.disparities.max()
    assert solution.disparities.max() < 1.9
    least = solve(adult.data, adult.sensitive_features, 10).certificate
    assert least.status == "optimal"
    assert least.value == pytest.approx(1.735013, rel=1e-6)


@pytest.mark.parametrize("criterion", ["equal", "minmax"])
@pytest.mark.parametrize(("exponent", "r"), [(3, 5), (3, 3), (8, 3), (8, 5)])
def test_scales_that_differ_by_orders_of_magnitude(exponent, r, criterion):
    X = np.random.default_rng(0).standard_normal((50, 6))
    X *= 10.0 ** np.linspace(-exponent, exponent, 6)
    solution = solve(X, TEN_EACH, r, n_starts=5, criterion=criterion)
    certificate = solution.certificate
    assert solution.total_loss >= 0.0
    assert (solution.group_losses >= 0.0).all()
    says_equal = "All groups have equal" in str(certificate) or "all groups have equal" in str(
        certificate
    )
    if says_equal:
        assert np.ptp(solution.disparities) <= 1e-6 * solution.disparities.max()
    if certificate.status == "optimal" and certificate.value > 10 * certificate.rounding:
        assert certificate.gap <= 1e-7 * certificate.value
    assert certificate.lower_bound <= certificate.value + certificate.rounding


def test_means_that_are_far_apart():
    X = np.random.default_rng(0).standard_normal((50, 6))
    near = X.copy()
    near[TEN_EACH > 2] += 3.0
    X[TEN_EACH > 2] += 3e5  # from 1e6 on rounding decides between "optimal" and "bounded"
    for criterion in ("equal", "minmax"):
        solution = solve(X, TEN_EACH, 3, criterion=criterion)
        assert solution.certificate.status == "optimal"
        assert np.ptp(solution.disparities) <= 1e-7 * solution.disparities.max()
    # What is lost has to leave the direction of the means out; the rest is near-independent of it.
    assert solution.total_loss == pytest.approx(2.3009203, rel=1e-5)


def test_a_wide_range_of_column_scales_does_not_stop_the_search():
    rng = np.random.default_rng(3)
    scales = 10.0 ** rng.uniform(-2, 2, 17)
    sizes = (60, 50, 40, 40, 30, 30, 20)
    X = (
        np.vstack(
            [
                rng.standard_normal((n, 17)) @ (np.eye(17) + 0.3 * rng.normal(size=(17, 17)))
                for n in sizes
            ]
        )
        * scales
    )
    groups = np.repeat(np.arange(7), sizes)
    solution = solve(X, groups, 16)
    certificate = solution.certificate
    assert certificate.gap <= 0.05 * certificate.value


@pytest.mark.parametrize("exponent", [0, 3, 6])
def test_small_eigenvalues_of_graded_matrices_keep_their_digits(exponent):
    rng = np.random.default_rng(1)
    d = 8
    scales = 10.0 ** np.linspace(0, exponent, d)
    inner = rng.normal(size=(d, 3 * d))
    inner = inner @ inner.T / (3 * d)
    matrix = scales[:, None] * inner * scales
    values, vectors = graded_eigh(matrix)
    assert (np.diff(values) <= 0).all()
    assert_allclose(vectors.T @ vectors, np.eye(d), atol=1e-13)
    # The other way round the smallest eigenvalues are the largest ones.
    metric = np.diag(scales**-2.0)
    inverse = eigh(metric, inner, eigvals_only=True)[::-1]
    assert_allclose(values[::-1][:3], 1.0 / inverse[:3], rtol=1e-9)


def test_the_least_weighted_loss_is_never_beaten():
    rng = np.random.default_rng(2)
    for trial in range(30):
        d, k = 5, 3
        r = 1 + trial % (d - 1)
        scales = 10.0 ** rng.uniform(-4, 4, d)
        rows = rng.normal(size=(k, 30, d)) @ (np.eye(d) + 0.5 * rng.normal(size=(k, d, d)))
        rows *= scales
        stack = rows.transpose(0, 2, 1) @ rows / 30
        offsets = rng.normal(size=(k, d)) * scales
        parts = GradedLosses(stack, offsets, r)
        weights = rng.normal(size=k) if trial % 2 else rng.dirichlet(np.ones(k))
        total = np.tensordot(np.ones(k) / k, stack, 1) + offsets.T @ offsets / k
        turn = np.linalg.eigh(total)[1][:, ::-1]
        least = parts.least(weights, turn)
        vectors = parts.eigenpairs(weights, turn)[1]
        reached = float(weights @ parts.losses(vectors[:, r:]))
        tries = [np.linalg.qr(rng.normal(size=(d, d - r)))[0] for _ in range(50)]
        tries += [
            np.linalg.qr(vectors[:, r:] + 1e-3 * rng.normal(size=(d, d - r)))[0] for _ in range(50)
        ]
        assert all(least <= float(weights @ parts.losses(rest)) for rest in tries)
        rest = vectors[:, r:]
        size, rounding = (
            np.abs(weights) @ parts.losses(rest),
            np.abs(weights) @ parts.rounding(rest),
        )
        assert reached - least <= 1e-8 * size + 2.0 * rounding


@pytest.mark.parametrize("measure", ["disparity", "loss", "variance"])
@pytest.mark.parametrize("relative", [False, True])
def test_where_ordinary_pca_loses_nothing(measure, relative):
    # Then losses have no size that anything could be relative to.
    rng = np.random.default_rng(0)
    matrices = np.zeros((4, 6, 6))
    for matrix in matrices:
        half = rng.standard_normal((2, 2))
        matrix[:2, :2] = half @ half.T
    choices = {"criterion": "minmax", "measure": measure, "relative": relative}
    found = ExactSolver().solve(problem_of(matrices, 3, **choices))
    assert found.certificate.status == "optimal"
    assert found.total_loss == pytest.approx(0.0, abs=1e-14)


def test_an_ascent_near_the_weights_of_the_local_search_closes_the_gap():
    # Eigenvalues are tied, and columns differ by orders of magnitude: the weights lack digits.
    rng = np.random.default_rng([311, 5])
    k, d, r = (int(rng.integers(low, high)) for low, high in ((3, 13), (3, 13), (1, 6)))
    matrices = random_matrices(rng, "integer diagonal", k, d)
    sizes = 10.0 ** rng.uniform(-2, 2, d)
    problem = problem_of(matrices * sizes[:, None] * sizes, r, criterion="equal")
    assert (k, d, r) == (4, 6, 4)
    assert ExactSolver(n_starts=10).solve(problem).certificate.status == "optimal"


def test_multipliers_do_not_run_away():
    diagonals = [(19.25, 22, 22), (8.25, 6.875, 11), (0.55, 3.3, 2.75), (0.9167, 0.9167, 3.667)]
    scatter = np.array([np.diag(diagonal) for diagonal in diagonals])
    moments = GroupMoments(tuple("abcd"), np.ones(4, int), np.ones(4), np.zeros((4, 3)), scatter)
    problem = Problem(moments, 1, criterion="equal")
    certificate = ExactSolver().solve(problem).certificate
    assert certificate.lower_bound >= problem.total_loss(problem.pca_basis) - 1e-9
    assert certificate.lower_bound > 18.0


def test_bounds_of_commuting_groups_are_not_below_what_pca_loses():
    rng = np.random.default_rng(7)
    for _ in range(10):
        k, d = int(rng.integers(3, 6)), int(rng.integers(3, 7))
        r = int(rng.integers(1, d))
        diagonals = rng.integers(1, 9, size=(k, d)) * rng.choice([1, 0.55, 2.75], size=(k, 1))
        scatter = np.array([np.diag(diagonal) for diagonal in diagonals])
        ones = np.ones(k)
        moments = GroupMoments(tuple(range(k)), ones.astype(int), ones, np.zeros((k, d)), scatter)
        problem = Problem(moments, r, criterion="equal")
        certificate = ExactSolver(n_starts=2).solve(problem).certificate
        least = problem.total_loss(problem.pca_basis)
        assert least - 1e-9 * problem.scale <= certificate.lower_bound
        assert certificate.lower_bound <= certificate.value + 1e-9 * problem.scale


@pytest.mark.parametrize("factor", [1e-28, 1e-8, 1e8, 1e25])
def test_endings_do_not_depend_on_the_unit_of_ill_scaled_rows(factor):
    X = np.random.default_rng(5).standard_normal((60, 5)) * [1e3, 30, 1, 0.1, 0.01]
    groups = np.repeat(np.arange(3), 20)
    X[groups == 1] = X[groups == 1] @ np.diag([1, 2, 0.5, 2, 0.5])
    for criterion in ("equal", "minmax"):
        plain = solve(X, groups, 3, criterion=criterion)
        scaled = solve(X * factor, groups, 3, criterion=criterion)
        assert scaled.certificate.status == plain.certificate.status
        assert_allclose(scaled.disparities / factor / factor, plain.disparities, rtol=1e-6)
        assert scaled.certificate.lower_bound <= scaled.certificate.value


@pytest.mark.parametrize("criterion", ["equal", "minmax"])
@pytest.mark.parametrize("last", [1e-7, 1e-3, 1.0])
def test_groups_that_are_alike_are_served_by_ordinary_pca(criterion, last):
    # Their disparities are rounding, which weights of 1e14 would make a bound of.
    rng = np.random.default_rng(434)
    for _ in range(20):
        turn = np.linalg.qr(rng.standard_normal((5, 5)))[0]
        matrix = (turn * [16.5, 2.8, 0.34, 0.12, last * 0.1]) @ turn.T
        noise = rng.standard_normal((4, 5, 5)) * 1e-16
        alike = [(matrix + matrix.T + wrong + wrong.T) / 2 for wrong in noise]
        problem = problem_of(alike, 4, rng.uniform(10, 70, 4), criterion=criterion)
        solution = ExactSolver().solve(problem)
        least = problem.total_loss(problem.pca_basis)
        assert problem.total_loss(solution.basis) == pytest.approx(least, rel=1e-6)
        assert solution.certificate.measures.max() <= 10 * problem.rounding
        assert solution.certificate.gap <= 10 * problem.rounding


@pytest.mark.parametrize("r", [2, 5])
@pytest.mark.parametrize("measure", ["kept_variance", "share_kept"])
def test_equality_of_what_two_groups_keep_is_found_where_pca_loses_next_to_nothing(measure, r):
    adult = load_adult(as_frame=False)
    found = solve(adult.data, adult.sensitive_features, r, criterion=Equal(measure=measure))
    certificate = found.certificate
    assert certificate.status in ("optimal", "bounded")
    assert certificate.relative_gap < 1e-6
    # What is kept is a difference of variances, which has no more digits than they have.
    moments = GroupMoments.from_rows(adult.data, adult.sensitive_features)
    variances = np.trace(moments.scatter, axis1=1, axis2=2) / moments.weight
    unit = 1.0 if measure == "share_kept" else variances.max()
    assert certificate.spread <= 50 * np.finfo(float).eps * unit


@pytest.mark.parametrize("exponent", [-498, -110, 110, 498])
def test_a_unit_too_far_from_one_is_refused(exponent):
    X, groups = rows_of_three_groups()
    for fit in (FairPCA(2).fit, partial(pareto_front, n_components=2)):
        with refused(ValueError, "largest variance", "multiply all columns"):
            fit(np.ldexp(X, exponent), sensitive_features=groups)


@pytest.mark.parametrize("exponent", [-95, -40, 95])
@pytest.mark.parametrize(
    "choices",
    [
        {"criterion": MinMax(max_extra_loss=0.05)},
        {"criterion": SoftMinMax("share_kept", max_extra_loss=0.01)},
        {"criterion": "soft"},
        {"criterion": "minmax", "solver": "pareto"},
        {"criterion": "equal", "solver": "sdp"},
    ],
    ids=str,
)
def test_no_option_depends_on_a_unit_far_from_one(choices, exponent):
    X, groups = rows_of_three_groups()
    plain = FairPCA(2, **choices).fit(X, sensitive_features=groups)
    far = FairPCA(2, **choices).fit(np.ldexp(X, exponent), sensitive_features=groups)
    assert_allclose(far.components_, plain.components_, atol=1e-9)
    of_measures = 2.0 ** (0 if "share" in plain.certificate_.measure else 2 * exponent)
    one, other = plain.certificate_, far.certificate_
    assert other.status == one.status
    for name in ("measures", "change_from_pca", "spread", "tolerance", "temperature"):
        expected = np.asarray(getattr(one, name)) * of_measures
        size = 1e-9 * np.abs(one.measures).max() * of_measures
        assert_allclose(getattr(other, name), expected, rtol=1e-9, atol=size)
    unit = 2.0 ** (2 * exponent) if one.goal == "equal" else of_measures
    for name in ("value", "lower_bound", "gap"):
        expected = pytest.approx(
            getattr(one, name) * unit, rel=1e-6, abs=1e-8 * abs(one.value) * unit
        )
        assert getattr(other, name) == expected
    assert far.solution_.total_loss == pytest.approx(
        plain.solution_.total_loss * 2.0 ** (2 * exponent), rel=1e-9
    )


@pytest.mark.parametrize("exponent", [-95, 95])
@pytest.mark.parametrize(
    "criterion", [MinMax(), Equal(), MinMax("share_lost"), Equal(measure="kept_variance")], ids=str
)
def test_no_front_depends_on_a_unit_far_from_one(criterion, exponent):
    X, groups = rows_of_three_groups()
    options = {"sensitive_features": groups, "n_components": 2, "n_points": 5}
    plain = pareto_front(X, criterion=criterion, **options)
    far = pareto_front(np.ldexp(X, exponent), criterion=criterion, **options)
    unit = 2.0 ** (2 * exponent)
    of_measures = 1.0 if criterion.measure == "share_lost" else unit
    assert len(far) == len(plain)
    assert_allclose(far.total_loss / unit, plain.total_loss, rtol=1e-9)
    assert_allclose(far.extra_loss, plain.extra_loss, atol=1e-9)
    assert_allclose(far.measures / of_measures, plain.measures, rtol=1e-7, atol=1e-9)
    for one, other in zip(plain, far, strict=True):
        assert other.certificate.status == one.certificate.status
        limited = one.certificate.goal != "minmax"
        value = pytest.approx(one.certificate.value * (unit if limited else of_measures), rel=1e-9)
        assert other.certificate.value == value
        assert other.certificate.lower_bound <= other.certificate.value * (1 + 1e-12)

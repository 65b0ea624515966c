"""Least largest measures, bounds and limited losses: brute force, and an SDP by another program."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from fairpca import AtMost, ExactSolver, GroupMoments, MinMax, Problem, SoftMinMax

from measured import (
    ALL,
    constants_and_units,
    every_measure,
    measures_of,
    posed,
    random_bases,
    scaled_matrices,
)
from problems import random_matrices
from texts import refused

pytestmark = pytest.mark.untraced

CLOSED_GAP = 1e-8
"""Where the search ends, relative to values of at most 1."""


def lines_of_the_plane(n=20_001):
    angles = np.linspace(0, np.pi, n)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)[:, :, None]


def relaxed_by_cvxpy(problem, caps=None, budget=None):
    """Least largest measure, or with caps the least total loss, over relaxed projectors."""
    d = problem.moments.n_features
    constants, units = constants_and_units(problem)
    P = cp.Variable((d, d), symmetric=True)
    kept = cp.hstack([cp.trace(matrix @ P) for matrix in problem.matrices])
    measures = cp.multiply(1 / units, constants - kept)
    loss = problem.weights @ (np.trace(problem.matrices, axis1=1, axis2=2) - kept)
    constraints = [P >> 0, np.eye(d) - P >> 0, cp.trace(P) == problem.n_components]
    constraints += [] if caps is None else [measures <= caps]
    constraints += [] if budget is None else [loss <= budget]
    goal = cp.max(measures) if caps is None else loss
    program = cp.Problem(cp.Minimize(goal), constraints)
    with warnings.catch_warnings():
        # "May be inaccurate" is judged by whether the values agree.
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        return program.solve(solver=cp.CLARABEL)


# Against an SDP


@every_measure
def test_bounds_agree_with_an_sdp(measure, relative):
    rng = np.random.default_rng([7, len(measure), relative])
    for kind, k, d in (("general", 3, 5), ("low rank", 4, 6), ("block", 5, 8), ("general", 2, 4)):
        matrices = scaled_matrices(rng, kind, k, d)
        r, weights = int(rng.integers(1, d)), 100 * rng.dirichlet(np.ones(k)) + 1
        problem = posed(matrices, r, measure, relative, weights)
        certificate = ExactSolver(n_starts=4).solve(problem).certificate
        least = relaxed_by_cvxpy(problem)
        assert certificate.lower_bound == pytest.approx(least, abs=1e-6)
        # Half-way between the fairest and ordinary PCA, in both directions.
        plain, total = (one[0] for one in measures_of(problem, problem.pca_basis[None]))
        caps = np.full(k, (max(least, certificate.value) + plain.max()) / 2)
        sign = -1 if measure == "variance" else 1
        if (sign * caps >= 0).all():
            bounded = problem.with_criterion(AtMost(sign * caps, problem.goal.measure))
            found = ExactSolver(n_starts=4).solve(bounded).certificate
            assert found.lower_bound == pytest.approx(relaxed_by_cvxpy(problem, caps), abs=1e-6)
        limited = posed(matrices, r, measure, relative, weights, max_extra_loss=0.03)
        found = ExactSolver(n_starts=4).solve(limited).certificate
        expected = relaxed_by_cvxpy(limited, budget=1.03 * total)
        assert found.lower_bound == pytest.approx(expected, abs=1e-6)


# Against all lines of the plane


@every_measure
def test_minmax_bounds_and_limits_in_the_plane(measure, relative):
    rng, lines = np.random.default_rng([8, len(measure), relative]), lines_of_the_plane()
    compared = 0
    for number, k in enumerate((2, 3, 3, 3)):
        kind = ("general", "diagonal", "low rank", "permuted")[number]
        matrices = scaled_matrices(rng, kind, k, 2)
        problem = posed(matrices, 1, measure, relative, 100 * rng.dirichlet(np.ones(k)) + 1)
        values, totals = measures_of(problem, lines)
        largest = values.max(axis=1)
        found = ExactSolver(n_starts=6).solve(problem).certificate
        assert found.value >= found.lower_bound
        assert found.lower_bound <= largest.min()
        assert found.value == pytest.approx(largest.min(), abs=1e-3)
        assert found.value <= largest.min() + CLOSED_GAP

        level = 0.7 * largest.min() + 0.3 * largest[np.argmin(totals)]
        if level > largest.min() + 1e-3:
            compared += 1
            solution = ExactSolver(n_starts=6).solve(
                problem.with_criterion(AtMost(abs(level), problem.goal.measure))
            )
            found, best = solution.certificate, totals[largest <= level].min()
            assert found.status in ("optimal", "bounded")
            assert (found.measures <= level + problem.negligible_spread).all()
            assert found.lower_bound <= best
            assert found.lower_bound <= found.value <= best + CLOSED_GAP
            assert found.value >= totals[largest <= level + 1e-3].min() - 1e-3

        share = 0.3 * float(totals[np.argmin(largest)] / totals.min() - 1)
        limited = posed(
            matrices, 1, measure, relative, problem.moments.weight, max_extra_loss=share
        )
        solution = ExactSolver(n_starts=6).solve(limited)
        found = solution.certificate
        best = largest[totals <= (1 + share) * totals.min()].min()
        assert solution.total_loss <= (1 + share) * totals.min() + 1e-9
        assert found.lower_bound <= best
        assert found.lower_bound <= found.value <= best + CLOSED_GAP
    assert compared


@pytest.mark.parametrize("relative", [False, True])
def test_bounds_on_what_is_kept_are_met_or_proven_impossible(relative):
    rng = np.random.default_rng(9)
    problem = posed(scaled_matrices(rng, "general", 3, 5), 2, "variance", relative)
    best = ExactSolver().solve(problem).certificate
    assert best.status == "optimal"
    for share in (0.5, 0.999):
        least = -share * best.value
        solution = ExactSolver().solve(problem.with_criterion(AtMost(least, problem.goal.measure)))
        kept = -measures_of(problem, solution.basis[None])[0][0]
        assert solution.certificate.status == "optimal"
        assert kept.min() >= least - 1e-9
    certificate = (
        ExactSolver()
        .solve(problem.with_criterion(AtMost(-1.5 * best.value, problem.goal.measure)))
        .certificate
    )
    assert certificate.status == "infeasible"
    assert certificate.violation_bound == pytest.approx(-0.5 * best.value, rel=1e-6)


@every_measure
def test_impossible_bounds_are_proven(measure, relative):
    rng = np.random.default_rng(10)
    for k in (2, 3, 5):
        problem = posed(scaled_matrices(rng, "general", k, 5), 2, measure, relative)
        best = ExactSolver(n_starts=2).solve(problem).certificate
        harsh = 2 * best.lower_bound if measure == "variance" else 0.5 * best.lower_bound
        bounded = problem.with_criterion(
            AtMost(abs(harsh) * rng.uniform(0.95, 1.05, k), problem.goal.measure)
        )
        certificate = ExactSolver(n_starts=2).solve(bounded).certificate
        misses = (
            measures_of(problem, random_bases(rng, 2000, 5, 2))[0] - bounded.goal.upper_bounds
        ).max(axis=1)
        assert certificate.status == "infeasible"
        assert 0 < certificate.violation_bound <= certificate.violation <= misses.min()
        proven = bounded.violation_bound(certificate.violation_multipliers)
        assert certificate.violation_bound == pytest.approx(proven)
        assert certificate.violation == pytest.approx(
            (certificate.measures - bounded.goal.upper_bounds).max()
        )


def test_impossible_bounds_are_proven_where_there_is_no_choice():
    matrix = np.diag([3.0, 2.0, 1.0])
    for matrices, r, bound in (([matrix], 1, 3.5), ([matrix, matrix / 2], 3, 3.5)):
        problem = posed(matrices, r, "variance", bounds=bound)
        certificate = ExactSolver().solve(problem).certificate
        assert certificate.status == "infeasible"
        assert certificate.violation == pytest.approx(0.5)
        assert certificate.violation_bound == pytest.approx(0.5)
        assert "Proven impossible" in str(certificate)
    equal = posed([matrix, matrix / 2], 3, "variance", criterion="equal")
    certificate = ExactSolver().solve(equal).certificate
    assert certificate.status == "infeasible"
    assert certificate.violation_bound == pytest.approx(3.0)


def test_endless_bounds_bind_nobody_or_are_refused():
    matrices = scaled_matrices(np.random.default_rng(11), "general", 3, 5)
    for measure, relative in ALL[:4]:
        solution = ExactSolver().solve(posed(matrices, 2, measure, relative, bounds=np.inf))
        assert solution.certificate.status == "optimal"
        values = np.linalg.eigvalsh(matrices.mean(axis=0))
        assert solution.total_loss == pytest.approx(values[:-2].sum())
    with refused(ValueError, "bounds", "finite"):
        posed(matrices, 2, "variance", bounds=[1.0, np.inf, 1.0])


# Limited total loss


@every_measure
def test_what_may_be_lost_in_addition_is_not_exceeded(measure, relative):
    rng = np.random.default_rng(12)
    matrices, before = random_matrices(rng, "other scales", 4, 6), np.inf
    least = np.linalg.eigvalsh(matrices.mean(axis=0))[:-2].sum()
    bases = random_bases(rng, 5000, 6, 2)
    for share in (0.0, 0.05, 2.0):
        problem = posed(matrices, 2, measure, relative, max_extra_loss=share)
        solution = ExactSolver(n_starts=3).solve(problem)
        certificate = solution.certificate
        assert solution.total_loss <= (1 + share) * least + 1e-11 * problem.scale
        assert certificate.lower_bound <= before
        before = certificate.value
        measures, totals = measures_of(problem, bases)
        cheap = measures[totals <= (1 + share) * least]
        assert (cheap.max(axis=1, initial=-np.inf) >= certificate.lower_bound).all()
    assert len(cheap) > 0
    free = ExactSolver(n_starts=3).solve(posed(matrices, 2, measure, relative)).certificate
    assert free.lower_bound <= certificate.value


@pytest.mark.parametrize("centering", ["global", "group"])
def test_nothing_in_addition_leaves_the_least_total_loss(centering):
    rng = np.random.default_rng(13)
    groups = np.arange(300) % 3
    X = rng.standard_normal((300, 5)) * rng.uniform(0.2, 2, (3, 5))[groups] + groups[:, None]
    moments = GroupMoments.from_rows(X, groups)
    problem = Problem(moments, 2, MinMax(max_extra_loss=0.0), centering=centering)
    solution = ExactSolver(n_starts=4).solve(problem)
    least = problem.total_loss(problem.least_loss_basis)
    assert solution.total_loss == pytest.approx(least, rel=1e-11)


@pytest.mark.parametrize("centering", ["global", "group"])
@pytest.mark.parametrize("aggregation", ["mean", "sum"])
@pytest.mark.parametrize(
    "criterion",
    [
        MinMax(max_extra_loss=0.0),
        MinMax("kept_variance", max_extra_loss=0.0),
        SoftMinMax(temperature=0.3, max_extra_loss=0.0),
        SoftMinMax(temperature=np.inf),
        SoftMinMax(standard_errors=np.inf, max_extra_loss=0.0),
    ],
    ids=str,
)
def test_where_nothing_else_is_allowed_the_least_loss_is_proven_optimal(
    criterion, aggregation, centering
):
    rng = np.random.default_rng(0)
    for k in (2, 3):
        groups = np.arange(200) % k
        X = rng.normal(size=(200, 6)) * rng.uniform(0.3, 3, 6) + groups[:, None]
        X[groups == 1] = X[groups == 1] @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
        moments = GroupMoments.from_rows(X, groups)
        problem = Problem(moments, 2, criterion, aggregation=aggregation, centering=centering)
        solution = ExactSolver().solve(problem)
        certificate = solution.certificate
        # The subspace, the loss and the changes, from the rows alone.
        rows = X - X.mean(axis=0)
        within = rows.copy()
        for group in range(k):
            within[groups == group] -= within[groups == group].mean(axis=0)
        lost = within if centering == "group" else rows
        per = np.ones(200) if aggregation == "sum" else np.full(200, 1 / 200)
        best = np.linalg.eigh((lost * per[:, None]).T @ lost)[1][:, -2:]
        pca = np.linalg.eigh(rows.T @ rows)[1][:, -2:]
        assert_allclose(solution.basis @ solution.basis.T, best @ best.T, atol=1e-8)
        assert certificate.status == "optimal"
        sizes = np.bincount(groups) if aggregation == "mean" else np.ones(k)
        kept = [
            np.bincount(groups, ((lost @ basis) ** 2).sum(axis=1)) / sizes for basis in (pca, best)
        ]
        assert_allclose(certificate.change_from_pca, kept[0] - kept[1], atol=1e-7 * kept[0].max())
        assert certificate.change_from_pca.any() == (centering != "global")
        assert problem.dual_bound(certificate.multipliers) == certificate.lower_bound


def test_nothing_in_addition_leaves_a_choice_where_eigenvalues_are_equal():
    # Every line loses the same in total: the one in the middle is the fairest.
    problem = posed([np.diag([2.0, 1.0]), np.diag([1.0, 2.0])], 1, max_extra_loss=0.0)
    certificate = ExactSolver().solve(problem).certificate
    assert certificate.value == pytest.approx(0.5, abs=1e-8)
    assert certificate.lower_bound == pytest.approx(0.5, abs=1e-7)


# The unit of the rows


@every_measure
def test_no_goal_depends_on_the_unit_of_the_rows(measure, relative):
    rng = np.random.default_rng(14)
    for k in (2, 4):
        matrices = scaled_matrices(rng, "general", k, 6)
        free = posed(matrices, 2, measure, relative)
        plain = free.measures(free.pca_basis)
        middle = (ExactSolver(n_starts=4).solve(free).certificate.value + plain.max()) / 2
        found = {}
        for factor in (1.0, 1e-14, 1e14):
            unit = 1.0 if relative else factor
            asked = {
                "equal": {"criterion": "equal"},
                "nearly equal": {"criterion": "equal", "tolerance": 0.3 * unit * np.ptp(plain)},
                "bounds": {"bounds": unit * abs(middle)},
                "limit": {"max_extra_loss": 0.05},
            }
            for goal, choices in asked.items():
                problem = posed(factor * matrices, 2, measure, relative, **choices)
                certificate = ExactSolver(n_starts=4).solve(problem).certificate
                size = unit if goal == "limit" else factor
                first = found.setdefault(goal, certificate)
                assert certificate.status == first.status
                # Where the bound is not attained, rounding decides how far the ascent comes.
                digits = 1e-8 if first.status == "optimal" else 1e-5
                for name in ("value", "lower_bound"):
                    expected = pytest.approx(getattr(first, name), rel=digits)
                    assert getattr(certificate, name) / size == expected
        assert [certificate.status for certificate in found.values()].count("optimal") >= 2

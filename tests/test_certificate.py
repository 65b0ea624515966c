"""The certificate in numbers and in words."""

import re

import numpy as np
import pytest

from fairpca import ExactSolver, FairnessWarning, FairPCA
from fairpca.certificate import certify
from fairpca.datasets import load_credit
from fairpca.solvers import SOLVERS

from problems import problem_of, random_basis, random_matrices, random_problem

LINES_AT_ODDS = [np.diag([2.0, 1.0]), [[1.5, 0.5], [0.5, 1.5]], [[1.5, -0.5], [-0.5, 1.5]]]


def some_problem(**choices):
    matrices = random_matrices(np.random.default_rng(0), "general", 3, 6)
    return problem_of(matrices, 2, [10.0, 30.0, 60.0], **choices)


def test_a_poor_subspace_gets_a_large_but_valid_gap():
    problem = some_problem(tolerance=1e9)
    best = ExactSolver().solve(problem)
    assert best.certificate.status == "optimal"
    poor = random_basis(np.random.default_rng(1), 6, 2)
    certificate = certify(problem, poor, best.certificate.multipliers)
    assert certificate.status == "bounded"
    assert certificate.gap >= problem.total_loss(poor) - best.total_loss > 0
    assert certificate.relative_gap == pytest.approx(certificate.gap / problem.total_loss(poor))
    percent = float(re.search(r"by more than ([\d.]+) %", str(certificate))[1])
    assert 0 <= percent - 100 * certificate.relative_gap <= 1


def test_any_multipliers_give_a_valid_bound():
    problem = some_problem()
    best = ExactSolver().solve(problem)
    rng = np.random.default_rng(2)
    for _ in range(50):
        multipliers = rng.standard_normal(3) * 10 ** rng.uniform(-3, 3)
        assert problem.dual_bound(multipliers) <= best.certificate.value + 1e-12 * problem.scale


def test_the_bound_can_be_recomputed_from_the_multipliers():
    for criterion in ("equal", "minmax"):
        problem = some_problem(criterion=criterion)
        certificate = ExactSolver().solve(problem).certificate
        recomputed = problem.dual_bound(
            certificate.multipliers, max(certificate.spread, problem.tolerance)
        )
        assert recomputed == pytest.approx(certificate.lower_bound, rel=1e-12)


def test_words_for_an_optimum():
    certificate = ExactSolver().solve(some_problem()).certificate
    assert str(certificate).startswith("Proven optimal")
    assert f"{certificate.value:.6g}" in str(certificate)
    within = ExactSolver().solve(some_problem(tolerance=0.5)).certificate
    assert "within 0.5 of each other" in str(within)


def test_words_for_minmax():
    problem = some_problem(criterion="minmax")
    best = ExactSolver().solve(problem)
    assert str(best.certificate).startswith("Proven optimal: in every subspace")
    poor = random_basis(np.random.default_rng(3), 6, 2)
    certificate = certify(problem, poor, best.certificate.multipliers)
    assert certificate.status == "bounded"
    assert str(certificate).startswith("No group has a disparity above")


def test_unresolved_warns_once_and_says_what_was_returned():
    rng = np.random.default_rng(4)
    groups = np.repeat([0, 1, 2], 400)
    X = np.vstack([_rows_with_moment(rng, moment) for moment in LINES_AT_ODDS])
    with pytest.warns(FairnessWarning) as caught:
        fair = FairPCA(1).fit(X, sensitive_features=groups)
    assert fair.certificate_.status == "unresolved"
    (warning,) = caught
    assert "none is proven impossible" in str(warning.message)
    assert f"{fair.certificate_.spread:.6g}" in str(warning.message)


def test_infeasible_reports_the_distance_to_the_proof():
    credit = load_credit(sensitive="marriage", as_frame=False)
    X = credit.data / credit.data.std(axis=0)
    with pytest.warns(FairnessWarning, match="Proven impossible"):
        fair = FairPCA(2).fit(X, sensitive_features=credit.sensitive_features)
    certificate = fair.certificate_
    assert certificate.status == "infeasible"
    assert certificate.spread_multipliers is not None
    # The proof is reached here: the smallest spread of the relaxation is attained.
    assert 0 <= certificate.spread - certificate.spread_bound <= 1e-6


def test_nothing_is_lost_when_nothing_varies_or_all_is_kept():
    flat = problem_of(np.zeros((3, 4, 4)), 2)
    certificate = ExactSolver().solve(flat).certificate
    assert (certificate.status, certificate.relative_gap) == ("optimal", 0.0)
    matrices = random_matrices(np.random.default_rng(5), "general", 3, 4)
    for criterion in ("equal", "minmax"):
        solution = ExactSolver().solve(problem_of(matrices, 4, criterion=criterion))
        assert solution.certificate.status == "optimal"
        assert np.abs(solution.disparities).max() <= 1e-12 * np.abs(matrices).max() * 10


def test_a_wrong_number_of_starts_is_refused():
    with pytest.raises(ValueError, match="n_starts"):
        ExactSolver(n_starts=0)


def _rows_with_moment(rng, moment):
    """Rows with mean zero and exactly this second moment."""
    rows = rng.standard_normal((400, 2))
    rows -= rows.mean(axis=0)
    have = np.linalg.cholesky(rows.T @ rows / len(rows))
    return rows @ np.linalg.inv(have).T @ np.linalg.cholesky(np.asarray(moment)).T


def test_a_solver_of_its_own_criterion_says_that_equality_is_not_met():
    problem = random_problem(np.random.default_rng(0), "general", 2, 5, 2)
    certificate = SOLVERS["lagrangian"]().solve(problem).certificate
    assert certificate.requested_tolerance == 0.0
    assert "Equal disparities were not reached" in str(certificate)
    loose = SOLVERS["lagrangian"]().solve(problem.with_tolerance(1e6)).certificate
    assert loose.requested_tolerance is None
    assert "not reached" not in str(loose)
    near = SOLVERS["lagrangian"]().solve(problem.with_tolerance(1e-3)).certificate
    assert "Disparities within 0.001 of each other were not reached" in str(near)

"""Searching in a growing subspace gives what searching in the whole space gives."""

import numpy as np
import pytest

from fairpca import ExactSolver
from fairpca.solvers import _space as space
from fairpca.solvers.exact import best_multipliers

from problems import problem_of, random_matrices

pytestmark = pytest.mark.untraced


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("criterion", ["equal", "minmax"])
def test_same_solution_as_in_the_whole_space(monkeypatch, k, criterion):
    rng = np.random.default_rng(k)
    falling = np.arange(1, 61) ** -0.7
    matrices = random_matrices(rng, "general", k, 60) * falling[:, None] * falling[None, :]
    problem = problem_of(matrices, 3, criterion=criterion)
    whole = ExactSolver(n_starts=5).solve(problem)
    monkeypatch.setattr(space, "WHOLE_LIMIT", 10)
    part = ExactSolver(n_starts=5).solve(problem_of(matrices, 3, criterion=criterion))
    assert part.certificate.status == whole.certificate.status == "optimal"
    assert part.total_loss == pytest.approx(whole.total_loss, abs=1e-9 * problem.scale)
    np.testing.assert_allclose(part.disparities, whole.disparities, atol=1e-8 * problem.scale)


@pytest.mark.parametrize("kind", ["diagonal", "integer diagonal", "block", "commuting"])
def test_tied_eigenvalues_in_many_columns(kind):
    rng = np.random.default_rng(9)
    problem = problem_of(random_matrices(rng, kind, 2, 200), 5, [30.0, 70.0])
    certificate = ExactSolver().solve(problem).certificate
    assert certificate.status == "optimal"
    assert certificate.spread <= 1e-9 * problem.scale
    assert certificate.gap <= 1e-9 * problem.scale


@pytest.mark.parametrize("kind", ["diagonal", "integer diagonal", "permuted", "commuting"])
@pytest.mark.parametrize("criterion", ["equal", "minmax"])
def test_bounds_of_tied_groups_are_those_of_the_whole_space(monkeypatch, kind, criterion):
    for k, r, seed in ((3, 1, 0), (3, 2, 1), (4, 5, 2)):
        matrices = random_matrices(np.random.default_rng([k, seed]), kind, k, 124)
        bounds = []
        for limit in (120, 10**9):
            monkeypatch.setattr(space, "WHOLE_LIMIT", limit)
            problem = problem_of(matrices, r, criterion=criterion)
            bounds.append(problem.dual_bound(best_multipliers(problem)))
        assert bounds[0] == pytest.approx(bounds[1], abs=1e-7 * problem.scale)


def test_hundreds_of_columns_and_three_groups():
    rng = np.random.default_rng(10)
    falling = np.arange(1, 501) ** -0.8
    matrices = random_matrices(rng, "general", 3, 500) * falling[:, None] * falling[None, :]
    problem = problem_of(matrices, 8)
    certificate = ExactSolver(n_starts=5).solve(problem).certificate
    assert certificate.status in ("optimal", "bounded")
    assert certificate.spread <= 1e-8 * problem.scale
    assert certificate.relative_gap <= 1e-2


def test_a_wrong_but_stationary_subspace_is_not_taken_for_optimal():
    # Both groups' own axes are eigenvectors for every weight; the third axis serves both better.
    first, second = np.full(400, 0.01), np.full(400, 0.01)
    first[:3], second[:3] = (10.0, 0.0, 7.0), (0.0, 10.0, 7.0)
    problem = problem_of([np.diag(first), np.diag(second)], 1, [90.0, 10.0])
    solution = ExactSolver().solve(problem)
    np.testing.assert_allclose(solution.disparities, 3.0, atol=1e-9)
    assert solution.certificate.status == "optimal"
    assert solution.certificate.lower_bound == pytest.approx(
        problem.dual_bound(solution.certificate.multipliers), abs=1e-9
    )


@pytest.mark.parametrize("k", [2, 3])
def test_bounds_hold_with_hundreds_of_columns(k):
    rng = np.random.default_rng(11)
    for kind in ("general", "integer diagonal", "block", "commuting"):
        problem = problem_of(random_matrices(rng, kind, k, 320), 3)
        certificate = ExactSolver(n_starts=3).solve(problem).certificate
        weights = problem.weights + certificate.multipliers - certificate.multipliers.mean()
        values = np.linalg.eigvalsh(np.tensordot(weights, problem.matrices, 1))[-3:]
        slack = max(certificate.spread, 0.0) * np.maximum(certificate.multipliers, 0).sum()
        dense = problem.weights @ problem.traces + weights @ problem.own_gains - values.sum()
        dense -= problem.weights @ problem.own_gains + slack
        assert certificate.lower_bound <= dense + 1e-12 * problem.scale
        assert certificate.lower_bound >= dense - 1e-9 * problem.scale


def test_impossible_equality_in_many_columns():
    rng = np.random.default_rng(12)
    endings = set()
    for _ in range(8):
        k, r = int(rng.integers(3, 6)), int(rng.integers(1, 4))
        problem = problem_of(random_matrices(rng, "low rank", k, 130), r)
        certificate = ExactSolver(n_starts=3).solve(problem).certificate
        endings.add(certificate.status)
        assert certificate.spread >= certificate.violation_bound
        assert certificate.value >= certificate.lower_bound
    assert "infeasible" in endings


def test_bounds_that_are_just_attainable_in_many_columns():
    rng = np.random.default_rng(1)
    sizes = np.array([rng.permutation(np.arange(1, 331) ** -0.4) for _ in range(3)])
    noise = rng.standard_normal((3, 330, 330)) / 40
    matrices = np.eye(330) + noise + noise.transpose(0, 2, 1)
    matrices = matrices * sizes[:, :, None] * sizes[:, None]
    fair = ExactSolver().solve(problem_of(matrices, 32, criterion="minmax")).certificate
    caps = fair.measures * (1 + 1e-4)
    problem = problem_of(matrices, 32, criterion="minmax", bounds=caps)
    certificate = ExactSolver().solve(problem).certificate
    assert certificate.status == "optimal"
    assert (certificate.measures <= caps * (1 + 1e-9)).all()

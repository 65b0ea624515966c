"""Searching in a growing subspace gives what searching in the whole space gives."""

import numpy as np
import pytest

from fairpca import ExactSolver
from fairpca.solvers import _space

from problems import problem_of, random_matrices


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("criterion", ["equal", "minmax"])
def test_same_solution_as_in_the_whole_space(monkeypatch, k, criterion):
    rng = np.random.default_rng(k)
    falling = np.arange(1, 61) ** -0.7
    matrices = random_matrices(rng, "general", k, 60) * falling[:, None] * falling[None, :]
    problem = problem_of(matrices, 3, criterion=criterion)
    whole = ExactSolver(n_starts=5).solve(problem)
    monkeypatch.setattr(_space, "_WHOLE_LIMIT", 10)
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


@pytest.mark.slow
def test_hundreds_of_columns_and_three_groups():
    rng = np.random.default_rng(10)
    falling = np.arange(1, 501) ** -0.8
    matrices = random_matrices(rng, "general", 3, 500) * falling[:, None] * falling[None, :]
    problem = problem_of(matrices, 8)
    certificate = ExactSolver(n_starts=5).solve(problem).certificate
    assert certificate.status in ("optimal", "bounded")
    assert certificate.spread <= 1e-8 * problem.scale
    assert certificate.relative_gap <= 1e-2

"""Two groups: global optimality in every case, against brute force and duality."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from fairpca import ExactSolver, FairPCA
from fairpca._linalg.dense import Geodesic

from problems import KINDS, problem_of, random_basis, random_matrices, random_problem

pytestmark = pytest.mark.untraced


def check_optimal(problem):
    """Feasible and certified to 1e-9 of tr(A), from an orthonormal basis."""
    solution = ExactSolver().solve(problem)
    certificate = solution.certificate
    r = problem.n_components
    assert np.abs(solution.basis.T @ solution.basis - np.eye(r)).max() < 1e-12
    assert certificate.status == "optimal"
    assert certificate.spread <= problem.goal.tolerance + 1e-9 * problem.scale
    assert certificate.gap <= 1e-9 * problem.scale
    assert certificate.value >= certificate.lower_bound
    return solution


@pytest.mark.parametrize("kind", KINDS)
def test_random_problems_are_solved_to_optimality(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for number in range(400 if kind == "general" else 100):
        d = int(rng.choice([2, 2, 3, 4, 7, 12, 20, 40]))
        r = int(rng.integers(1, d))
        loss = "sum" if number % 5 == 4 else "mean"
        scale = 10.0 ** rng.uniform(-16, 16) if number % 4 == 3 else 1.0
        problem = random_problem(rng, kind, 2, d, r, scale=scale, loss=loss)
        check_optimal(problem)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tolerance_is_met_at_the_least_loss(kind):
    rng = np.random.default_rng(100 + KINDS.index(kind))
    for _ in range(20):
        d = int(rng.choice([2, 3, 5, 9]))
        matrices = random_matrices(rng, kind, 2, d)
        r = int(rng.integers(1, d))
        unfair = problem_of(matrices, r, [30.0, 70.0])
        tolerance = rng.uniform(0, 1.2) * unfair.spread(unfair.pca_basis)
        problem = problem_of(matrices, r, [30.0, 70.0], tolerance=tolerance)
        tight, loose = check_optimal(unfair), check_optimal(problem)
        assert loose.total_loss <= tight.total_loss + 1e-9 * problem.scale


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_no_line_in_the_plane_is_better(kind, tolerance):
    rng = np.random.default_rng(200 + KINDS.index(kind))
    angles = np.linspace(0, np.pi, 20_001)
    lines = np.array([np.cos(angles), np.sin(angles)])
    for _ in range(5):
        matrices = random_matrices(rng, kind, 2, 2)
        problem = problem_of(matrices, 1, [20.0, 80.0], tolerance=tolerance)
        solution = check_optimal(problem)
        kept = np.einsum("kij,ia,ja->ka", problem.matrices, lines, lines)
        disparities = problem.own_gains[:, None] - kept
        losses = problem.weights @ (problem.traces[:, None] - kept)
        fair = np.abs(disparities[0] - disparities[1]) <= tolerance
        if fair.any():
            assert solution.total_loss <= losses[fair].min() + 1e-12 * problem.scale
        # The grid comes close to the optimum too, so the solution is not too good to be true.
        slack = 4e-4 * problem.traces.max()
        near = np.abs(disparities[0] - disparities[1]) <= tolerance + slack
        assert losses[near].min() <= solution.total_loss + slack


def test_the_optimum_may_lie_between_two_eigenvectors():
    # Only two subspaces are eigenvectors for some weight, and neither is fair.
    matrices = [np.diag([3.0, 1.0, 0.5]), np.diag([1.0, 2.5, 0.4])]
    solution = check_optimal(problem_of(matrices, 1))
    # On the circle between them: 3 - 3c - s = 2.5 - c - 2.5 s with c + s = 1, so c = 4 / 7.
    np.testing.assert_allclose(solution.disparities, 6 / 7, atol=1e-12)


def test_equal_points_on_random_geodesics_never_beat_the_bound():
    rng = np.random.default_rng(3)
    found = 0
    while found < 1000:
        kind = KINDS[found % len(KINDS)]
        d = int(rng.integers(2, 9))
        r = int(rng.integers(1, d))
        problem = random_problem(rng, kind, 2, d, r)
        bound = ExactSolver().solve(problem).certificate.lower_bound

        def difference(basis, problem=problem):
            first, second = problem.disparities(basis)
            return first - second

        for _ in range(10):
            path = Geodesic(random_basis(rng, d, r), random_basis(rng, d, r))
            if difference(path(0.0)) * difference(path(1.0)) >= 0:
                continue
            t = brentq(lambda t, path=path: difference(path(t)), 0.0, 1.0, xtol=1e-15)
            assert problem.total_loss(path(t)) >= bound - 1e-9 * problem.scale
            found += 1


def test_minmax_and_equality_agree():
    rng = np.random.default_rng(4)
    for kind in KINDS:
        matrices = random_matrices(rng, kind, 2, 6)
        equal = check_optimal(problem_of(matrices, 2, [10.0, 90.0]))
        minmax = ExactSolver().solve(problem_of(matrices, 2, [10.0, 90.0], criterion="minmax"))
        assert minmax.certificate.status == "optimal"
        scale = np.trace(matrices, axis1=1, axis2=2).max()
        assert minmax.certificate.value == pytest.approx(equal.disparities.max(), abs=1e-9 * scale)


def test_few_eigenproblems_are_needed():
    rng = np.random.default_rng(5)
    counts = [
        ExactSolver().solve(random_problem(rng, "general", 2, 20, 5)).n_eigen for _ in range(50)
    ]
    assert np.median(counts) <= 12


@pytest.mark.parametrize("criterion", ["minmax", "soft"])
def test_weights_are_known_to_rounding(criterion):
    """Values are flat at the optimum: that they agree to rounding says nothing of the weights."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(80, 5)) @ rng.normal(size=(5, 5))
        groups = rng.integers(2, size=80)
        X[groups == 1] = X[groups == 1] @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
        order = rng.permutation(80)
        fair = FairPCA(2, criterion=criterion).fit(X, sensitive_features=groups)
        again = FairPCA(2, criterion=criterion).fit(X[order], sensitive_features=groups[order])
        weights = fair.certificate_.multipliers
        assert_allclose(again.certificate_.multipliers, weights, rtol=0, atol=1e-12)

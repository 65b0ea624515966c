"""More than two groups: endings, validity of bounds, brute force, and an SDP by another program."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

from fairpca import ExactSolver
from fairpca.solvers._dual import maximise_dual
from fairpca.solvers._space import Forms

from alone import domain, equal, minmax, spread
from problems import KINDS, problem_of, random_basis, random_matrices, random_problem

pytestmark = [pytest.mark.untraced, pytest.mark.long]


def check_valid(problem, solution, rng):
    """What must hold for every ending."""
    certificate = solution.certificate
    r, d = problem.n_components, problem.moments.n_features
    assert np.abs(solution.basis.T @ solution.basis - np.eye(r)).max() < 1e-11
    np.testing.assert_allclose(
        solution.disparities, problem.disparities(solution.basis), atol=1e-12 * problem.scale
    )
    feasible = 1e-8 * problem.scale
    if certificate.status in ("optimal", "bounded") and problem.goal.name == "equal":
        assert certificate.spread <= problem.goal.tolerance + feasible
    if certificate.status == "infeasible":
        assert certificate.spread >= certificate.violation_bound > problem.goal.tolerance
    if certificate.status == "unresolved":
        assert certificate.spread > problem.goal.tolerance
    assert certificate.value >= certificate.lower_bound
    for _ in range(20):
        other = random_basis(rng, d, r)
        disparities = problem.disparities(other)
        spread = np.ptp(disparities)
        if problem.goal.name == "minmax":
            assert disparities.max() >= certificate.lower_bound
        elif spread <= max(certificate.spread, problem.goal.tolerance):
            assert problem.total_loss(other) >= certificate.lower_bound
        assert spread >= certificate.violation_bound


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("criterion", ["equal", "minmax"])
def test_every_ending_is_valid(kind, criterion):
    rng = np.random.default_rng(KINDS.index(kind))
    for number, k in enumerate([3, 3, 4, 5, 8]):
        d = int(rng.integers(2, 11))
        r = int(rng.integers(1, d))
        scale = [1.0, 1e-16, 1e16][number % 3]
        problem = random_problem(rng, kind, k, d, r, scale=scale, criterion=criterion)
        check_valid(problem, ExactSolver(n_starts=6).solve(problem), rng)


@pytest.mark.parametrize("k", [1, 3, 7, 12, 20])
def test_any_number_of_groups(k):
    rng = np.random.default_rng(k)
    problem = random_problem(rng, "general", k, 8, 3)
    solution = ExactSolver(n_starts=4).solve(problem)
    check_valid(problem, solution, rng)
    if k == 1:
        assert solution.certificate.status == "optimal"
        assert solution.total_loss == pytest.approx(problem.total_loss(problem.pca_basis))


def test_a_tolerance_is_met():
    rng = np.random.default_rng(1)
    for _ in range(10):
        matrices = random_matrices(rng, "general", 4, 7)
        unfair = problem_of(matrices, 3)
        looser = 0.0
        for share in (0.8, 0.4, 0.1):
            tolerance = share * unfair.spread(unfair.pca_basis)
            problem = problem_of(matrices, 3, tolerance=tolerance)
            solution = ExactSolver(n_starts=8).solve(problem)
            check_valid(problem, solution, rng)
            # What meets a tight tolerance meets a loose one too, so it cannot beat its bound.
            assert solution.total_loss >= looser
            looser = solution.certificate.lower_bound


def test_relaxation_feasible_but_no_line_equal_is_unresolved():
    matrices = [np.diag([2.0, 1.0]), [[1.5, 0.5], [0.5, 1.5]], [[1.5, -0.5], [-0.5, 1.5]]]
    problem = problem_of(matrices, 1)
    certificate = ExactSolver().solve(problem).certificate
    assert certificate.status == "unresolved"
    assert certificate.violation_bound <= 1e-9
    # Brute force over all lines: no spread is under 0.5, and the one returned is the smallest.
    angles = np.linspace(0, np.pi, 100_001)
    lines = np.array([np.cos(angles), np.sin(angles)])
    kept = np.einsum("kij,ia,ja->ka", problem.matrices, lines, lines)
    smallest = np.ptp(problem.own_gains[:, None] - kept, axis=0).min()
    assert smallest >= 0.5
    assert certificate.spread == pytest.approx(smallest, abs=1e-4)


@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize("kind", ["general", "diagonal", "low rank"])
def test_minmax_is_the_best_of_all_subspaces_of_space(kind, r):
    # In three dimensions a line, or the line orthogonal to a plane, is a point on the sphere.
    rng = np.random.default_rng(r)
    z, turn = np.meshgrid(np.linspace(0, 1, 301), np.linspace(0, 2 * np.pi, 901))
    rim = np.sqrt(1 - z**2)
    lines = np.array([rim * np.cos(turn), rim * np.sin(turn), z]).reshape(3, -1)
    for k in (3, 4, 5):
        problem = problem_of(random_matrices(rng, kind, k, 3), r, criterion="minmax")
        solution = ExactSolver().solve(problem)
        along = np.einsum("kij,ia,ja->ka", problem.matrices, lines, lines)
        kept = along if r == 1 else problem.traces[:, None] - along
        best = (problem.own_gains[:, None] - kept).max(axis=0).min()
        assert solution.certificate.value <= best + 1e-9 * problem.scale
        assert best <= solution.certificate.value + 0.02 * problem.traces.max()


def sdp_value(problem, kind, tolerance=0.0):
    """The relaxed problem as a semidefinite program, by Clarabel."""
    d, k = problem.moments.n_features, problem.n_groups
    P = cp.Variable((d, d), symmetric=True)
    disparities = cp.hstack(
        [
            gain - cp.trace(matrix @ P)
            for gain, matrix in zip(problem.own_gains, problem.matrices, strict=True)
        ]
    )
    constraints = [P >> 0, np.eye(d) - P >> 0, cp.trace(P) == problem.n_components]
    spread = cp.max(disparities) - cp.min(disparities)
    if kind == "equal":
        objective = problem.weights @ disparities
        # Equality as such: "spread <= 0" has no interior, which interior-point methods need.
        constraints.append(
            spread <= tolerance if tolerance else disparities == cp.Variable() * np.ones(k)
        )
    else:
        objective = spread if kind == "spread" else cp.max(disparities)
    program = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        # "May be inaccurate" is judged by whether the values agree.
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL)
    return program.value, program.status


def sdp_problems(n):
    rng = np.random.default_rng(8)
    for number in range(n):
        k = int(rng.integers(3, 8))
        d = int(rng.choice([3, 5, 8, 12, 20], p=[0.3, 0.3, 0.2, 0.1, 0.1]))
        r = int(rng.integers(1, d))
        kind = ("general", "other scales", "low rank", "block")[number % 4]
        matrices = random_matrices(rng, kind, k, d)
        yield problem_of(matrices / np.trace(matrices, axis1=1, axis2=2).max(), r)


def test_smallest_spread_agrees_with_an_sdp():
    infeasible = 0
    for problem in sdp_problems(30):
        forms = Forms.from_problem(problem)
        found = maximise_dual(forms, domain(forms, spread(forms.k)))
        value, _ = sdp_value(problem, "spread")
        assert found.value == pytest.approx(value, abs=1e-6)
        infeasible += value > 1e-3
    assert 3 <= infeasible <= 27


def test_dual_value_agrees_with_an_sdp():
    above = said = 0
    for number, problem in enumerate(sdp_problems(40)):
        forms = Forms.from_problem(problem)
        least = maximise_dual(forms, domain(forms, spread(forms.k))).value
        tolerance = 0.0 if number % 2 and least < 1e-7 else 1.1 * least + 0.01
        limit = 1.000001 * float(problem.weights @ problem.own_gains)
        found = maximise_dual(forms, domain(forms, equal(forms.weights, tolerance)), limit)
        value, _ = sdp_value(problem, "equal", tolerance)
        assert found.value == pytest.approx(value, abs=1e-6)
        if least > 1e-3:
            # With less tolerance than that it is impossible: both programs have to say so.
            above += 1
            assert maximise_dual(forms, domain(forms, equal(forms.weights, 0.0)), limit).above_limit
            halved = domain(forms, equal(forms.weights, 0.5 * least))
            assert maximise_dual(forms, halved, limit).above_limit
            try:
                _, status = sdp_value(problem, "equal", 0.5 * least)
            except cp.SolverError:
                continue  # it finds no feasible point either, but fails to say why
            assert "infeasible" in status
            said += 1
    assert above >= 4
    assert said >= above / 2


def test_minmax_value_agrees_with_an_sdp():
    for problem in sdp_problems(30):
        forms = Forms.from_problem(problem)
        found = maximise_dual(forms, domain(forms, minmax(forms.k)))
        assert found.value == pytest.approx(sdp_value(problem, "minmax")[0], abs=1e-6)


def test_equality_that_levels_down_is_reported_with_many_columns():
    # There the search for a subspace in which nobody is worse off begins at the equal one.
    rng = np.random.default_rng(0)
    reported = 0
    for _ in range(10):
        matrices = np.zeros((3, 125, 125))
        matrices[:, :5, :5] = random_problem(rng, "general", 3, 5, 2).matrices
        matrices[:, range(5, 125), range(5, 125)] = rng.uniform(0.01, 0.1, 3)[:, None]
        problem = problem_of(matrices, 2, criterion="equal")
        certificate = ExactSolver(n_starts=8).solve(problem).certificate
        least = ExactSolver(n_starts=8).solve(problem_of(matrices, 2, criterion="minmax"))
        if (certificate.measures - least.certificate.measures).min() < 1e-6 * problem.scale:
            continue
        reported += 1
        found = certificate.minmax_measures
        assert (found < certificate.measures).all()
        assert found.max() == pytest.approx(least.certificate.measures.max(), rel=1e-6)
    assert reported >= 3


def test_equality_that_levels_down_is_reported():
    # Serving the third group costs the others; equality makes them all as badly off as it is.
    rng = np.random.default_rng(0)
    reported = 0
    for _ in range(20):
        problem = random_problem(rng, "other scales", 3, 5, 2)
        certificate = ExactSolver(n_starts=8).solve(problem).certificate
        if certificate.minmax_measures is None:
            assert certificate.least_gain == 0.0
            continue
        reported += 1
        gains = certificate.measures - certificate.minmax_measures
        assert gains.min() >= -1e-9 * problem.scale
        assert gains.max() > 0
        assert certificate.least_gain == pytest.approx(max(gains.min(), 0))
        met = certificate.status in ("optimal", "bounded")
        kinds = {statement.kind for statement in certificate.statements()}
        assert kinds & {"levels down", "alternative"} == {"levels down" if met else "alternative"}
        least_largest = ExactSolver().solve(
            problem_of(problem.matrices, 2, problem.moments.weight, criterion="minmax")
        )
        assert certificate.minmax_measures.max() == pytest.approx(
            least_largest.certificate.value, abs=1e-6 * problem.scale
        )
    assert reported >= 3


@pytest.mark.parametrize("d", [5, 130])
def test_groups_that_agree_or_do_not_vary(d):
    for matrices in ([np.eye(d) * i for i in (1, 2, 3)], np.zeros((3, d, d))):
        for criterion in ("equal", "minmax"):
            problem = problem_of(matrices, 2, criterion=criterion)
            certificate = ExactSolver().solve(problem).certificate
            assert certificate.status == "optimal"
            assert np.abs(certificate.measures).max() <= 1e-12 * max(problem.scale, 1)


@pytest.mark.parametrize("factor", [1e-55, 1e-16, 1e16, 1e55])
def test_the_unit_of_the_columns_does_not_matter(factor):
    for seed in range(3):
        matrices = random_matrices(np.random.default_rng(seed), "general", 4, 6)
        reference = ExactSolver(n_starts=4).solve(problem_of(matrices, 3))
        solution = ExactSolver(n_starts=4).solve(problem_of(factor * matrices, 3))
        assert solution.certificate.status == reference.certificate.status
        assert solution.total_loss / factor == pytest.approx(reference.total_loss, rel=1e-9)


def test_no_steps_are_taken_for_what_large_weights_are_rounded_by():
    # At the edge of what is possible weights of 1e6 are: each step was halved to the end, 16,000
    # eigenproblems in all.
    rng = np.random.default_rng([14, 99])
    k, d, r = int(rng.integers(3, 30)), int(rng.integers(40, 110)), int(rng.integers(2, 13))
    matrices = []
    for _ in range(k):
        n = int(rng.integers(r + 1, 2 * d))
        X = rng.standard_normal((n, d))
        X *= rng.permutation(np.arange(1, d + 1)) ** -rng.uniform(0, 1)
        matrices.append(X.T @ X / n)
    solution = ExactSolver().solve(problem_of(matrices, r))
    assert solution.certificate.status == "infeasible"
    assert solution.certificate.relative_gap <= 2e-7
    assert solution.n_eigen <= 2000

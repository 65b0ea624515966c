"""Nash welfare and the smallest kept variance: against brute force, another program, and chance."""

import math

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from fairpca import ExactSolver
from fairpca.solvers import SOLVERS
from studies.nash_welfare import NashWelfare

from problems import KINDS, problem_of, random_basis, random_matrices, random_problem
from texts import refused, warned

pytestmark = pytest.mark.untraced


def variances(problem, basis):
    return np.einsum("kij,ia,ja->k", problem.matrices, basis, basis)


def welfare_by_cvxpy(problem, kind):
    d = problem.moments.n_features
    units = problem.traces if kind == "nash" else np.full(problem.n_groups, problem.scale)
    P = cp.Variable((d, d), symmetric=True)
    kept = cp.hstack([cp.trace(A / u @ P) for A, u in zip(problem.matrices, units, strict=True)])
    goal = cp.sum(cp.log(kept)) if kind == "nash" else cp.min(kept)
    constraints = [P >> 0, np.eye(d) - P >> 0, cp.trace(P) == problem.n_components]
    value = cp.Problem(cp.Maximize(goal), constraints).solve(solver=cp.CLARABEL)
    return value + np.log(units).sum() if kind == "nash" else value * units[0]


def test_nash_is_the_best_of_all_relaxed_projectors_of_the_plane():
    # With d = 2 and r = 1, share and angle are all that a relaxed projector has.
    rng = np.random.default_rng(0)
    share, angle = np.meshgrid(np.linspace(0.5, 1, 201), np.linspace(0, np.pi, 401))
    for kind in ("general", "diagonal", "permuted", "low rank"):
        problem = problem_of(random_matrices(rng, kind, 3, 2), 1)
        found = NashWelfare().solve(problem).history
        first = np.array([np.cos(angle), np.sin(angle)])
        second = np.array([-np.sin(angle), np.cos(angle)])
        kept = sum(
            part * np.einsum("kij,iab,jab->kab", problem.matrices, line, line)
            for part, line in ((share, first), (1 - share, second))
        )
        with np.errstate(divide="ignore"):
            best = np.log(np.maximum(kept, 0)).sum(axis=0).max()
        assert best <= found["bound"]
        assert found["welfare"] <= best + 1e-3


@pytest.mark.parametrize("kind", ["general", "low rank", "other scales"])
@pytest.mark.parametrize("k", [2, 4])
def test_nash_agrees_with_another_program(kind, k):
    rng = np.random.default_rng(k)
    problem = random_problem(rng, kind, k, 6, 2)
    solution = NashWelfare().solve(problem)
    found = solution.history
    value = welfare_by_cvxpy(problem, "nash")
    assert solution.message == "duality gap closed"
    assert found["welfare"] == pytest.approx(value, abs=1e-5)
    assert found["welfare"] - 1e-7 <= value <= found["bound"] + 1e-7
    kept = np.einsum("kij,ij->k", problem.matrices, found["relaxed"])
    assert found["welfare"] == pytest.approx(np.log(kept).sum(), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_kept_variance_agrees_with_another_program(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    problem = random_problem(rng, kind, 4, 6, 2, criterion="minmax", measure="variance")
    solution = ExactSolver().solve(problem)
    certificate, value = solution.certificate, welfare_by_cvxpy(problem, "max-min")
    assert -certificate.lower_bound == pytest.approx(value, abs=1e-5 * problem.scale)
    kept = variances(problem, solution.basis)
    assert -certificate.value == pytest.approx(kept.min(), abs=1e-12 * problem.traces.max())
    assert kept.min() <= value + 1e-5 * problem.scale
    assert_allclose(-certificate.measures, kept, atol=1e-12 * problem.traces.max())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("steps", [1, 20])
def test_no_subspace_beats_the_bound(steps):
    rng = np.random.default_rng(1)
    for kind in ("general", "low rank", "block", "other scales"):
        problem = random_problem(rng, kind, 3, 5, 2)
        bound = NashWelfare(max_iter=steps).solve(problem).history["bound"]
        for _ in range(250):
            kept = np.maximum(variances(problem, random_basis(rng, 5, 2)), 1e-300)
            assert np.log(kept).sum() <= bound + 1e-12 * problem.scale


def test_no_subspace_of_the_plane_keeps_more_of_every_group():
    rng, angle = np.random.default_rng(1), np.linspace(0, np.pi, 20_001)
    lines = np.array([np.cos(angle), np.sin(angle)])
    for kind in ("general", "low rank", "block", "other scales"):
        problem = random_problem(rng, kind, 3, 2, 1, criterion="minmax", measure="variance")
        kept = np.einsum("kij,ia,ja->ka", problem.matrices, lines, lines).min(axis=0).max()
        certificate = ExactSolver().solve(problem).certificate
        assert kept <= -certificate.lower_bound
        assert kept == pytest.approx(-certificate.value, abs=1e-6 * problem.traces.max())


def test_nash_does_not_depend_on_units():
    rng = np.random.default_rng(2)
    matrices = random_matrices(rng, "general", 3, 5)
    scaled = matrices * np.array([1000.0, 1.0, 1.0])[:, None, None]
    first = NashWelfare().solve(problem_of(matrices, 2)).history
    second = NashWelfare().solve(problem_of(scaled, 2)).history
    assert_allclose(first["relaxed"], second["relaxed"], atol=1e-5)
    assert second["welfare"] - first["welfare"] == pytest.approx(math.log(1000), abs=1e-9)


def test_rounding_keeps_the_welfare_in_few_dimensions():
    rng = np.random.default_rng(3)
    for number, kind in enumerate(KINDS):
        k, d = 2 + number % 5, int(rng.integers(2, 8))
        problem = random_problem(rng, kind, k, d, int(rng.integers(1, d)))
        r = problem.n_components
        extra = {"lp": k - 1, "iterative": math.floor(math.sqrt(2 * k + 0.25) - 1.5)}
        for rounding, most in extra.items():
            solution = NashWelfare(rounding=rounding, max_iter=300).solve(problem)
            assert r <= solution.basis.shape[1] <= r + most
            kept = problem.kept(solution.basis, solution.retention)
            assert (kept >= solution.history["kept"] - 1e-5 * problem.traces.max()).all()
            cut = NashWelfare(rounding=rounding, extra_dimensions=False, max_iter=300).solve(
                problem
            )
            assert cut.basis.shape[1] == r


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_groups_that_keep_nothing_on_the_way():
    # Subspaces orthogonal to a group are tried; what it keeps in them is rounding of either sign.
    rng = np.random.default_rng(4)
    for _ in range(10):
        axes = random_basis(rng, 4, 4)[:, [0, 1, 2, 3, 0, 1]] * rng.uniform(0.3, 3, 6)
        problem = problem_of(axes.T[:, :, None] * axes.T[:, None, :], 3)
        found = NashWelfare(max_iter=50).solve(problem).history
        assert found["kept"].min() > 0
        assert np.isfinite(found["welfare"])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_group_that_does_not_vary_decides_nothing(place):
    rng = np.random.default_rng(5)
    matrices = random_matrices(rng, "general", 2, 5)
    # What is kept has half as many digits as the welfare, so the gap is closed well.
    exactly = NashWelfare(tol=1e-10)
    varied = exactly.solve(problem_of(matrices, 2))
    padded = problem_of(np.insert(matrices, place, 0.0, axis=0), 2)
    constant = exactly.solve(padded)
    assert constant.history["welfare"] == pytest.approx(varied.history["welfare"], abs=1e-5)
    kept = np.delete(padded.kept(constant.basis, constant.retention), place)
    assert_allclose(kept, varied.history["kept"], rtol=1e-4)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_group_that_does_not_vary_is_not_the_one_that_keeps_the_least_share(place):
    rng = np.random.default_rng(5)
    matrices = random_matrices(rng, "general", 2, 5)
    choices = {"criterion": "minmax", "measure": "variance", "relative": True}
    varied = ExactSolver().solve(problem_of(matrices, 2, **choices)).certificate
    padded = problem_of(np.insert(matrices, place, 0.0, axis=0), 2, **choices)
    constant = ExactSolver().solve(padded).certificate
    assert (varied.status, constant.status) == ("optimal", "optimal")
    assert constant.value == pytest.approx(varied.value, rel=1e-7)
    assert_allclose(np.delete(constant.measures, place), varied.measures, rtol=1e-6)


def test_nothing_varies():
    solution = NashWelfare().solve(problem_of(np.zeros((2, 3, 3)), 1))
    assert solution.basis.shape == (3, 1)
    assert solution.message == "duality gap closed"
    assert_allclose(solution.disparities, 0.0)
    for relative in (False, True):
        flat = problem_of(
            np.zeros((2, 3, 3)), 1, criterion="minmax", measure="variance", relative=relative
        )
        certificate = ExactSolver().solve(flat).certificate
        value = -1.0 if relative else 0.0  # nothing, or all of nothing
        assert (certificate.status, certificate.value) == ("optimal", value)


@pytest.mark.parametrize("name", SOLVERS)
def test_one_group_is_ordinary_pca(name):
    rng = np.random.default_rng(6)
    for criterion in ("equal", "minmax"):
        problem = random_problem(rng, "general", 1, 6, 2, criterion=criterion)
        solution = SOLVERS[name]().solve(problem)
        eigenvalues = np.linalg.eigvalsh(problem.matrices[0])
        assert solution.basis.shape == (6, 2)
        assert solution.total_loss == pytest.approx(
            eigenvalues[:-2].sum(), abs=1e-7 * problem.scale
        )


def test_stopping():
    problem = random_problem(np.random.default_rng(7), "general", 4, 6, 2)
    with warned(ConvergenceWarning, "all its steps"):
        few = NashWelfare(max_iter=2, tol=0.0).solve(problem)
    assert few.n_iter == 2
    assert few.message == "most steps reached"
    stopped = NashWelfare(tol=0.0).solve(problem, lambda: True)
    assert stopped.n_iter == 1
    assert stopped.message == "stopped by a callback"
    assert NashWelfare(max_iter=9).n_steps == 9


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"rounding": "up"}, "'lp' 'iterative'"),
        ({"tol": -1.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_wrong_choices_are_refused(choice, words):
    with refused(ValueError, *words.split()):
        NashWelfare(**choice)

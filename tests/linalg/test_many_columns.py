"""Many columns: what the iteration finds, what the proof sees, and what is copied."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from fairpca import ExactSolver, FairPCA, GroupMoments, Problem
from fairpca._linalg import krylov
from fairpca._linalg.dense import DenseMatrix
from fairpca._linalg.device import ScatterSum, scatter_matrices
from fairpca._linalg.krylov import found_pairs, leading_pairs, leading_sum_bound, proven_pairs

from problems import KINDS, problem_of, random_basis, random_matrices, random_problem

pytestmark = pytest.mark.untraced

D = 130


@pytest.fixture
def _large(monkeypatch):
    """Let small matrices take the way of large ones."""
    monkeypatch.setattr(krylov, "FEW_COLUMNS", 20)


def solved_both_ways(monkeypatch, make, **solver):
    """Solutions by iteration and by full eigendecompositions."""
    solutions = []
    for limit in (20, 10**9):
        monkeypatch.setattr(krylov, "FEW_COLUMNS", limit)
        problem = make()
        assert problem.is_large == (limit == 20)
        solutions.append(ExactSolver(**solver).solve(problem))
    return solutions


def moments_of(rng, k, d):
    codes = np.arange(6 * d) % k
    X = rng.standard_normal((6 * d, d)) * np.arange(1, d + 1) ** -0.5
    X += rng.standard_normal((k, d))[codes]
    return GroupMoments.from_rows(X, codes, sample_weight=rng.uniform(0.5, 2, len(X)))


@pytest.mark.parametrize("aggregation", ["mean", "sum"])
@pytest.mark.parametrize("centering", ["global", "group"])
def test_operators_do_what_the_matrices_do(aggregation, centering):
    rng = np.random.default_rng(0)
    moments = moments_of(rng, 3, 20)
    dense = Problem(moments, 2, aggregation=aggregation, centering=centering).matrices
    offsets = moments.offsets if centering == "global" else np.zeros((3, 20))
    operators = scatter_matrices(moments.scatter, offsets, moments.weight, aggregation)
    block = rng.standard_normal((20, 4))
    size = np.abs(dense).max()
    np.testing.assert_allclose(operators.traces, np.trace(dense, axis1=1, axis2=2), rtol=1e-12)
    np.testing.assert_allclose(operators.images(block), dense @ block, atol=1e-12 * size)
    for weights in ([0.2, 0.5, 0.3], [1.0, -2.0, 0.5], [0.0, 3.0, 0.0]):
        weights = np.array(weights)
        matrix = np.tensordot(weights, dense, 1)
        np.testing.assert_allclose(operators.dense(weights), matrix, atol=1e-12 * size)
        total = operators.weighted_sum(weights)
        for _ in range(2):  # the second time after the factorisation took the memory
            image = total.image(block)
            np.testing.assert_allclose(image, matrix @ block, atol=1e-11 * size)
            values, vectors = np.linalg.eigh(matrix)
            top, drops = vectors[:, -3:], values[-3:] - values[-3]
            level = values[-3] + 1e-9 * size
            assert total.disproof(top, drops, level) is None
            seen = total.disproof(top, drops, values[-3] - 1e-3 * size)
            lowered = matrix - (top * drops) @ top.T
            assert float((seen.T @ lowered @ seen).item()) >= values[-3] - 1e-3 * size


@pytest.mark.parametrize("criterion", ["equal", "minmax"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_groups_as_by_full_eigendecompositions(monkeypatch, kind, criterion):
    for r in (1, 4):
        seed = [ord(kind[0]), len(kind), r]

        def make(seed=seed, r=r):
            rng = np.random.default_rng(seed)
            return random_problem(rng, kind, 2, D, r, criterion=criterion)

        large, dense = solved_both_ways(monkeypatch, make)
        scale = max(make().traces.max(), make().scale)
        assert large.certificate.status == dense.certificate.status == "optimal"
        assert large.total_loss == pytest.approx(dense.total_loss, abs=1e-9 * scale)
        np.testing.assert_allclose(large.disparities, dense.disparities, atol=1e-8 * scale)
        assert large.certificate.lower_bound == pytest.approx(
            dense.certificate.lower_bound, abs=1e-9 * scale
        )


@pytest.mark.parametrize(
    "choices", [{"criterion": "equal"}, {"aggregation": "sum"}, {"centering": "group"}], ids=str
)
@pytest.mark.parametrize("k", [2, 3])
def test_moments_with_means_as_by_full_eigendecompositions(monkeypatch, k, choices):
    moments = moments_of(np.random.default_rng(k), k, D)
    before = moments.scatter.copy()
    large, dense = solved_both_ways(monkeypatch, lambda: Problem(moments, 4, **choices), n_starts=1)
    np.testing.assert_array_equal(moments.scatter, before)
    scale = Problem(moments, 4, **choices).scale
    assert large.certificate.status == dense.certificate.status
    assert large.total_loss == pytest.approx(dense.total_loss, abs=1e-8 * scale)
    assert large.certificate.lower_bound == pytest.approx(
        dense.certificate.lower_bound, abs=1e-8 * scale
    )


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("criterion", ["equal", "minmax"])
def test_no_matrix_is_decomposed_as_a_whole(monkeypatch, k, criterion):
    def refuse(*_):
        raise AssertionError("all eigenvalues of a large matrix")

    for name in ("leading", "whole"):
        monkeypatch.setattr(ScatterSum, name, refuse)
    problem = Problem(moments_of(np.random.default_rng(k), k, 320), 4, criterion=criterion)
    solution = ExactSolver(n_starts=2).solve(problem)
    assert solution.certificate.lower_bound <= solution.certificate.value
    assert solution.n_eigen > k


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("decay", [0.25, 0.5, 1.0])
def test_the_subspace_is_that_of_full_eigendecompositions(monkeypatch, k, decay):
    rng = np.random.default_rng([k, int(4 * decay)])
    d, r = 340, 6
    X = rng.standard_normal((4 * d, d)) * np.arange(1, d + 1) ** (-decay / 2)
    codes = np.arange(len(X)) % k
    for group in range(k):
        members = codes == group
        own = 0.5 * rng.standard_normal((3, d)) / np.sqrt(d)
        X[members] += rng.standard_normal((members.sum(), 3)) @ own
    moments = GroupMoments.from_rows(X, codes)
    bases = []
    for limit in (300, 10**9):
        monkeypatch.setattr(krylov, "FEW_COLUMNS", limit)
        problem = Problem(moments, r, criterion="equal")
        solution = ExactSolver().solve(problem)
        assert solution.certificate.status == "optimal"
        bases.append(solution.basis)
        # At its weights no other subspace keeps as much: the optimum is unique, and this is it.
        weights = problem.weights + solution.certificate.multipliers
        values, vectors = np.linalg.eigh(problem.weighted_sum(weights))
        assert values[-r] - values[-r - 1] > 1e-5 * problem.scale
        assert subspace_angles(solution.basis, vectors[:, -r:]).max() <= 1e-7
    assert subspace_angles(*bases).max() <= 1e-7


@pytest.mark.usefixtures("_large")
def test_random_bounds_are_those_of_full_eigendecompositions():
    rng = np.random.default_rng(1)
    for kind in ("general", "low rank", "commuting", "other scales"):
        problem = random_problem(rng, kind, 3, D, 3)
        for _ in range(3):
            multipliers = rng.standard_normal(3)
            multipliers -= multipliers.mean()
            weights = problem.weights + multipliers
            values = np.linalg.eigvalsh(np.tensordot(weights, problem.matrices, 1))[-3:]
            exact = problem.scale + multipliers @ problem.own_gains - values.sum()
            size = np.abs(weights) @ problem.traces + problem.scale
            assert -1e-11 * size <= problem.dual_bound(multipliers) - exact <= 1e-14 * size


@pytest.fixture
def _blind(monkeypatch):
    """An iteration whose random vectors have nothing of the first axis."""
    whole = krylov._Iteration._random

    def blind(self, width):
        block = whole(self, width)
        block[0] = 0.0
        return block

    monkeypatch.setattr(krylov._Iteration, "_random", blind)


def hiding(rng, d, along):
    """Two groups with an eigenvector along the first axis, and the rest orthogonal to it."""
    matrices = random_matrices(rng, "general", 2, d)
    matrices[:, 0] = matrices[:, :, 0] = 0.0
    matrices[:, 0, 0] = np.array(along) * np.linalg.eigvalsh(matrices[0])[-1]
    return matrices


@pytest.mark.usefixtures("_large", "_blind")
def test_a_hidden_eigenvector_is_missed_by_iteration_and_found_by_proof():
    rng = np.random.default_rng(2)
    matrix = hiding(rng, D, [2.0, 2.0])[0]
    exact = np.linalg.eigvalsh(matrix)[::-1]
    assert leading_pairs(DenseMatrix(matrix), 3).values[0] == pytest.approx(exact[1])
    proven = proven_pairs(DenseMatrix(matrix), 3)
    np.testing.assert_allclose(proven.values, exact[:3], rtol=1e-10)
    assert 0 <= leading_sum_bound(DenseMatrix(matrix), 3) - exact[:3].sum() <= 1e-11 * exact.sum()


@pytest.mark.usefixtures("_blind")
@pytest.mark.parametrize("along", [(2.0, 0.0), (0.0, 2.0), (2.0, 2.0), (0.9, 0.8)], ids=str)
def test_no_certificate_is_issued_past_a_hidden_direction(monkeypatch, along):
    def make():
        return problem_of(hiding(np.random.default_rng(3), D, along), 2, [60.0, 40.0])

    large, dense = solved_both_ways(monkeypatch, make)
    scale = make().scale
    assert large.certificate.lower_bound <= dense.certificate.lower_bound + 1e-10 * scale
    # The proof does not only see what was missed: the search goes on with it.
    assert large.certificate.status == dense.certificate.status == "optimal"
    np.testing.assert_allclose(large.disparities, dense.disparities, atol=1e-8 * scale)
    assert large.total_loss == pytest.approx(dense.total_loss, abs=1e-9 * scale)


@pytest.mark.usefixtures("_large")
def test_iteration_that_does_not_converge_is_replaced(monkeypatch):
    monkeypatch.setattr(krylov, "_MOST_RESTARTS", 1)
    rng = np.random.default_rng(4)
    problem = problem_of(random_matrices(rng, "general", 2, D), 3)
    assert leading_pairs(DenseMatrix(problem.matrices[0]), 3) is None
    exact = np.linalg.eigvalsh(problem.matrices[0])[::-1][:3]
    for pairs in (found_pairs, proven_pairs):
        found = pairs(DenseMatrix(problem.matrices[0]), 3)
        np.testing.assert_allclose(found.values, exact, rtol=1e-10)
    assert ExactSolver().solve(problem).certificate.status == "optimal"


@pytest.mark.usefixtures("_large")
def test_a_proof_serves_weights_that_differ_by_rounding_only(monkeypatch):
    problem = problem_of(random_matrices(np.random.default_rng(5), "general", 2, D), 3)
    multipliers = np.array([0.1, -0.1])
    first = problem.dual_bound(multipliers)
    monkeypatch.setattr(ScatterSum, "disproof", None)
    near = problem.dual_bound(multipliers * (1 + 1e-15))
    assert near <= first + 1e-13 * problem.scale
    with pytest.raises(TypeError):
        problem.dual_bound(multipliers * 1.001)
    with pytest.raises(TypeError):  # another problem has nothing to remember
        replace(problem).dual_bound(multipliers)


@pytest.mark.usefixtures("_large")
def test_quantities_of_a_basis():
    rng = np.random.default_rng(6)
    problem = random_problem(rng, "general", 3, D, 2)
    basis, shares = random_basis(rng, D, 2), np.array([0.5, 0.9])
    assert problem.is_large
    inner = np.einsum("ia,kij,jb->kab", basis, problem.matrices, basis)
    kept = np.einsum("kaa->ka", inner)
    size = problem.traces.max()
    np.testing.assert_allclose(problem.kept(basis), kept.sum(axis=1), atol=1e-12 * size)
    np.testing.assert_allclose(problem.kept(basis, shares), kept @ shares, atol=1e-12 * size)
    weights = rng.standard_normal(3)
    np.testing.assert_allclose(
        problem.weighted_sum(weights), np.tensordot(weights, problem.matrices, 1), atol=1e-12 * size
    )


def test_the_scatters_are_not_copied():
    rng = np.random.default_rng(7)
    d = 700
    moments = GroupMoments.from_rows(rng.standard_normal((900, d)), np.arange(900) % 4)
    tracemalloc.start()
    certificate = ExactSolver(n_starts=1).solve(Problem(moments, 2)).certificate
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert certificate.status in ("optimal", "bounded")
    assert peak < 2.5 * 8 * d * d  # one weighted sum, and some tall arrays


@pytest.mark.parametrize("choices", [{}, {"centering": "group"}, {"aggregation": "sum"}], ids=str)
def test_the_estimator_does_the_same_both_ways(monkeypatch, choices):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((400, D)) * np.arange(1, D + 1) ** -0.5
    codes = np.arange(400) % 2
    X[codes == 1] = X[codes == 1][:, ::-1]
    fits = []
    for limit in (20, 10**9):
        monkeypatch.setattr(krylov, "FEW_COLUMNS", limit)
        if choices:
            problem = Problem(GroupMoments.from_rows(X, codes), 3, **choices)
            fits.append(FairPCA.from_solution(problem, ExactSolver().solve(problem)))
        else:
            fits.append(FairPCA(3, criterion="minmax").fit(X, sensitive_features=codes))
    large, dense = fits
    np.testing.assert_allclose(large.explained_variance_, dense.explained_variance_, atol=1e-8)
    np.testing.assert_allclose(
        large.explained_variance_ratio_, dense.explained_variance_ratio_, atol=1e-9
    )
    np.testing.assert_allclose(large.group_table_.pca_loss, dense.group_table_.pca_loss, rtol=1e-9)
    np.testing.assert_allclose(large.components_, dense.components_, atol=1e-7)

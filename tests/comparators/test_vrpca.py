"""VR-PCA: the subspaces that it finds, and a certificate that allows for what it misses."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from fairpca import Equal, ExactSolver, FairnessWarning, FairPCA, GroupMoments, Problem
from fairpca.comparators import VRPCA

from problems import problem_of, random_basis, random_matrices
from texts import refused, warned


def separated_rows(rng, n=600, d=8, k=2, r=3):
    """Rows of k groups, each with r directions that carry most of its variance."""
    groups = rng.integers(0, k, n)
    X = rng.standard_normal((n, d))
    sizes = np.r_[np.linspace(5, 3, r), np.linspace(1.0, 0.3, d - r)]
    for group in range(k):
        some = groups == group
        X[some] = X[some] * sizes @ random_basis(rng, d, d).T + rng.standard_normal(d)
    return X, groups


def recipe(vrpca, X, groups, r, *, weights=None, **choices):
    """The steps of the docstring of `VRPCA`."""
    moments = GroupMoments.from_rows(X, groups, sample_weight=weights)
    codes = np.array([{g: i for i, g in enumerate(moments.labels)}.get(g, -1) for g in groups])
    mean = moments.mean if choices.get("centering") == "group" else moments.total_mean
    centers = np.broadcast_to(mean, moments.mean.shape)
    own_bases = vrpca.subspaces(X, codes, centers, r, weights)
    problem = Problem(moments, r, own_bases=own_bases, **choices)
    return problem, ExactSolver().solve(problem)


def leading(matrix, r):
    return np.linalg.eigh(matrix)[1][:, -r:]


def largest_angle(first, second):
    return np.linalg.norm(second - first @ (first.T @ second), 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 3])
def test_subspaces_are_those_of_the_eigenvectors(weighted, r):
    rng = np.random.default_rng(r)
    X, groups = separated_rows(rng, r=r)
    weights = rng.uniform(0.2, 2, len(X)) if weighted else None
    centers = rng.standard_normal((2, 8)) * 0.2
    found = VRPCA(tol=1e-7).subspaces(X, groups, centers, r, weights)
    for code, basis in enumerate(found):
        rows = X[groups == code] - centers[code]
        mass = np.ones(len(rows)) if weights is None else weights[groups == code]
        assert_allclose(basis.T @ basis, np.eye(r), atol=1e-12)
        assert largest_angle(basis, leading((rows.T * mass) @ rows, r)) <= 1e-5


def test_sparse_rows_give_the_same():
    rng = np.random.default_rng(2)
    X, groups = separated_rows(rng)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    centers = np.array([X[groups == code].mean(axis=0) for code in (0, 1)])
    dense = VRPCA().subspaces(X, groups, centers, 3)
    sparse = VRPCA().subspaces(scipy.sparse.csr_array(X), groups, centers, 3)
    for first, second in zip(dense, sparse, strict=True):
        assert_allclose(first, second, atol=1e-9)


def test_other_rows_are_left_out_and_seeds_repeat():
    rng = np.random.default_rng(3)
    X, groups = separated_rows(rng)
    centers = np.zeros((2, 8))
    codes = np.where(rng.random(len(X)) < 0.2, -1, groups)
    kept = codes >= 0
    some = VRPCA(random_state=4).subspaces(X, codes, centers, 2)
    same = VRPCA(random_state=4).subspaces(X[kept], codes[kept], centers, 2)
    assert all(np.array_equal(a, b) for a, b in zip(some, same, strict=True))
    other = VRPCA(random_state=5).subspaces(X, codes, centers, 2)
    assert not np.array_equal(some[0], other[0])


def test_batches_of_one_row_and_steps_of_ones_own():
    rng = np.random.default_rng(4)
    X, groups = separated_rows(rng, n=200)
    size = (X**2).sum(axis=1).mean()
    for choice in ({"batch_size": 1}, {"step_size": 0.5 / size}):
        (basis,) = VRPCA(**choice).subspaces(X, 0 * groups, np.zeros((1, 8)), 1)
        assert largest_angle(basis, leading(X.T @ X, 1)) <= 1e-4


def test_rows_without_variance_and_fewer_rows_than_dimensions():
    flat = np.ones((5, 3))
    (basis,) = VRPCA().subspaces(flat, np.zeros(5, int), np.ones((1, 3)), 2)
    assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)
    rows = np.array([[3.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])
    (basis,) = VRPCA().subspaces(rows, np.zeros(2, int), np.zeros((1, 4)), 3)
    assert_allclose(rows @ basis @ basis.T, rows, atol=1e-5)


@pytest.mark.parametrize("criterion", ["equal", "minmax"])
@pytest.mark.parametrize("centering", ["global", "group"])
@pytest.mark.parametrize("loss", ["mean", "sum"])
def test_the_recipe_finds_what_is_found_with_eigenvalues(criterion, centering, loss):
    rng = np.random.default_rng(5)
    X, groups = separated_rows(rng)
    choices = {"criterion": criterion, "centering": centering, "aggregation": loss}
    posed = Problem(GroupMoments.from_rows(X, groups), 3, **choices)
    exact = FairPCA.from_solution(posed, ExactSolver().solve(posed))
    problem, solution = recipe(VRPCA(tol=1e-9), X, groups, 3, **choices)
    found = FairPCA.from_solution(problem, solution)
    size = exact.group_table_.loss.max()
    assert_allclose(found.group_table_.loss, exact.group_table_.loss, atol=1e-6 * size)
    assert_allclose(found.group_table_.disparity, exact.group_table_.disparity, atol=1e-6 * size)
    assert found.criterion.name == criterion
    assert found.certificate_.status == "optimal"
    assert found.certificate_.own_error <= 1e-6 * size
    # What was missed lies within what is certified, and so do the disparities.
    missed = found.group_table_.own_loss - exact.group_table_.own_loss
    assert (missed >= -1e-12 * size).all()
    assert (missed <= problem.own_errors + 1e-12 * size).all()


def rough_problem(rng, k, **choices):
    X, groups = separated_rows(rng, k=k)
    exact = Problem(GroupMoments.from_rows(X, groups), 3, **choices)
    centering = choices.get("centering", "global")
    mean = exact.moments.mean if centering == "group" else exact.moments.total_mean
    rough = VRPCA(max_epochs=1, step_size=1e-6)
    bases = rough.subspaces(X, groups, np.broadcast_to(mean, (k, 8)), 3)
    return exact, Problem(exact.moments, 3, own_bases=bases, **choices)


@pytest.mark.parametrize("criterion", ["equal", "minmax"])
@pytest.mark.parametrize("centering", ["global", "group"])
@pytest.mark.parametrize(("loss", "k"), [("mean", 2), ("sum", 2), ("mean", 3)])
def test_the_certificate_allows_for_what_is_missed(criterion, centering, loss, k):
    rng = np.random.default_rng(6)
    exact, rough = rough_problem(rng, k, criterion=criterion, centering=centering, aggregation=loss)
    true_gains = np.linalg.eigvalsh(exact.matrices)[:, -3:].sum(axis=1)
    missed = true_gains - rough.own_gains
    rounding = 1e-12 * exact.traces.max()
    assert missed.max() > 1e-4 * exact.traces.max()
    assert (missed >= -rounding).all()
    assert (rough.own_errors >= missed - rounding).all()

    solution = ExactSolver().solve(rough)
    certificate = solution.certificate
    assert certificate.own_error >= missed.max() - rounding
    kept = np.einsum("kij,ia,ja->k", exact.matrices, solution.basis, solution.basis)
    true = true_gains - kept
    assert (true >= solution.disparities - rounding).all()
    assert (true <= solution.disparities + certificate.own_error + rounding).all()
    assert np.ptp(true) <= certificate.spread + rounding
    assert "only known nearly" in str(certificate).replace("\n", " ")
    as_fair = exact if criterion == "minmax" else exact.with_criterion(Equal(certificate.spread))
    best = ExactSolver().solve(as_fair)
    assert certificate.lower_bound <= best.certificate.value + rounding
    if criterion == "minmax":
        assert certificate.value >= true.max() - rounding
    # Nothing among random subspaces contradicts it either.
    for _ in range(200):
        basis = random_basis(rng, 8, 3)
        disparities = exact.disparities(basis)
        if criterion == "minmax":
            assert disparities.max() >= certificate.lower_bound
        elif np.ptp(disparities) <= certificate.spread:
            assert exact.total_loss(basis) >= certificate.lower_bound


def test_bounds_of_any_multipliers_allow_for_what_is_missed():
    rng = np.random.default_rng(7)
    exact, rough = rough_problem(rng, 3, criterion="equal")
    for _ in range(100):
        multipliers = rng.standard_normal(3)
        for tolerance in (0.0, 1.0):
            bound = rough.dual_bound(multipliers, tolerance)
            assert bound <= exact.dual_bound(multipliers, tolerance) + 1e-9
        assert rough.violation_bound(multipliers) <= exact.violation_bound(multipliers) + 1e-9
    exact, rough = rough_problem(rng, 3, criterion="minmax")
    for _ in range(100):
        multipliers = rng.dirichlet(np.ones(3))
        assert rough.dual_bound(multipliers) <= exact.dual_bound(multipliers) + 1e-9


def test_groups_without_weight_are_left_out():
    rng = np.random.default_rng(8)
    X, groups = separated_rows(rng, k=3)
    for gone in (0, 1, 2):
        weight = np.where(groups == gone, 0.0, 1.0)
        with warned(FairnessWarning, repr(str(gone)), "sample_weight", "left out"):
            problem, some = recipe(VRPCA(), X, groups, 2, weights=weight)
        kept = groups != gone
        _, without = recipe(VRPCA(), X[kept], groups[kept], 2)
        assert list(problem.moments.labels) == [g for g in range(3) if g != gone]
        assert_allclose(some.group_losses, without.group_losses, rtol=1e-6)


def test_the_recipe_with_sparse_rows():
    X, groups = separated_rows(np.random.default_rng(9))
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    _, dense = recipe(VRPCA(), X, groups, 2)
    _, sparse = recipe(VRPCA(), scipy.sparse.csr_array(X), groups, 2)
    assert_allclose(dense.group_losses, sparse.group_losses, rtol=1e-6)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"tol": -1.0}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"step_size": 0.0}, "step_size"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_wrong_choices_are_refused(choice, words):
    with refused(ValueError, *words.split()):
        VRPCA(**choice)


def test_wrong_own_bases_are_refused():
    rng = np.random.default_rng(11)
    moments = problem_of(random_matrices(rng, "general", 2, 4), 2).moments
    right = random_basis(rng, 4, 2)
    for wrong in ((right,), (right, right, right), (right, right.T), (right, right[:, :1])):
        with refused(ValueError, "2 arrays"):
            Problem(moments, 2, own_bases=wrong)
    # A group cannot keep more than it has, as it would along columns that are too long.
    with refused(ValueError, "orthonormal"):
        Problem(moments, 2, own_bases=(right, 2 * right))

"""The semidefinite relaxation and multiplicative weights: values, ranks, and what is returned."""

import math
import sys

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, GroupMoments, Problem
from fairpca.datasets import load_adult, load_credit
from fairpca.solvers import MultiplicativeWeights, SDPRelaxation
from fairpca.solvers._dual import maximise_dual
from fairpca.solvers._space import Forms
from fairpca.solvers.exact import best_multipliers
from fairpca.solvers.relaxation import project_on_fantope, round_relaxed
from studies.real_data import real_moments

from alone import domain, minmax
from problems import KINDS, problem_of, random_basis, random_problem
from texts import numbers_in, recorded, refused, warned

pytestmark = pytest.mark.untraced


def proven_bound(problem):
    return problem.dual_bound(best_multipliers(problem))


def relaxed_value(problem, projector):
    kept = np.einsum("kij,ij->k", problem.matrices, projector)
    return float((problem.own_gains - kept).max())


# The value of the relaxation


@pytest.mark.contract  # cvxpy, Clarabel
@pytest.mark.parametrize("kind", KINDS)
def test_the_sdp_attains_the_bound_of_the_dual(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for scale in (1.0, 10.0 ** rng.integers(-8, 9)):
        k, d = int(rng.integers(2, 7)), int(rng.integers(2, 13))
        r = int(rng.integers(1, d + 1))
        problem = random_problem(rng, kind, k, d, r, scale=scale, criterion="minmax")
        found = SDPRelaxation().solve(problem).history
        assert found["relaxed_value"] == pytest.approx(
            relaxed_value(problem, found["relaxed"]), abs=1e-12 * problem.traces.max()
        )
        assert found["relaxed_value"] == pytest.approx(
            proven_bound(problem), abs=1e-5 * problem.scale
        )


@pytest.mark.contract  # SCS
@pytest.mark.parametrize(("d", "backend", "used"), [(8, "scs", "scs"), (61, "auto", "scs")])
def test_the_other_backend(d, backend, used):
    rng = np.random.default_rng(d)
    for kind in ("general", "diagonal"):
        problem = random_problem(rng, kind, 3, d, 3, criterion="minmax")
        solution = SDPRelaxation(backend=backend).solve(problem)
        assert used in solution.message
        assert solution.history["relaxed_value"] == pytest.approx(
            proven_bound(problem), abs=1e-5 * problem.scale
        )


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(0, 10_000), st.floats(-3, 3))
def test_the_projection_on_relaxed_projectors_is_the_nearest(d, seed, size):
    rng = np.random.default_rng(seed)
    r = int(rng.integers(1, d + 1))
    noise = rng.standard_normal((d, d)) * 10**size
    matrix = (noise + noise.T) / 2
    nearest = project_on_fantope(matrix, r)
    values = np.linalg.eigvalsh(nearest)
    assert values.min() >= -1e-12
    assert values.max() <= 1 + 1e-12
    assert np.trace(nearest) == pytest.approx(r)
    # Nearest in a convex set: what is left points away from every member of it.
    rest = matrix - nearest
    farthest = np.linalg.eigvalsh(rest)[-r:].sum()
    assert farthest <= np.vdot(rest, nearest) + 1e-9 * max(np.abs(matrix).max(), 1)


# Multiplicative weights


@pytest.fixture(scope="module")
def by_race():
    return real_moments("Adult, race")


@pytest.mark.parametrize("r", [2, 5, 10])
def test_multiplicative_weights_approach_the_sdp(by_race, r):
    problem = Problem(by_race, r, criterion="minmax")
    found = MultiplicativeWeights().solve(problem).history
    sdp = SDPRelaxation().solve(problem).history["relaxed_value"]
    assert found["relaxed_value"] == pytest.approx(sdp, abs=1e-3 * problem.scale)
    assert found["relaxed_value"] == pytest.approx(relaxed_value(problem, found["relaxed"]))
    assert found["bound"] <= proven_bound(problem) + 1e-12 * problem.scale
    assert found["gap"] == found["relaxed_value"] - found["bound"]
    assert found["gap"] <= 1e-4 * problem.scale
    assert found["gaps"][-1] == found["gap"]


def plain_multiplicative_weights(problem, step, n_steps):
    """The published loop; returns its gaps."""
    weights = np.full(problem.n_groups, 1.0 / problem.n_groups)
    total, bound, gaps = np.zeros(problem.n_groups), -np.inf, []
    for number in range(1, n_steps + 1):
        vectors = np.linalg.eigh(np.tensordot(weights, problem.matrices, 1))[1]
        disparities = problem.disparities(vectors[:, -problem.n_components :])
        bound = max(bound, float(weights @ disparities))
        total += disparities
        gaps.append(total.max() / number - bound)
        weights = weights * np.exp(step * disparities)
        weights /= weights.sum()
    return np.array(gaps)


def test_a_fixed_step_stalls_where_the_adaptive_one_does_not(by_race):
    problem = Problem(by_race, 2, criterion="minmax")
    with warned(ConvergenceWarning, "all its steps"):
        adaptive = MultiplicativeWeights(tol=0.0, max_iter=1500).solve(problem).history["gaps"]
    plain = plain_multiplicative_weights(problem, 1.0, 1500)
    assert len(adaptive) == 1500
    assert plain[1000:].min() > 3e-2
    assert plain[-1] > 10 * adaptive[-1]


def test_stopping(by_race):
    problem = Problem(by_race, 5, criterion="equal")
    with warned(ConvergenceWarning, "max_iter"):
        few = MultiplicativeWeights(max_iter=7).solve(problem)
    assert few.n_iter == len(few.history["gaps"]) == 7
    assert few.message == "most steps reached"
    closed = MultiplicativeWeights(tol=1e-2).solve(problem)
    gaps = closed.history["gaps"] / problem.scale
    assert closed.message == "duality gap closed"
    assert gaps[-1] <= 1e-2 < gaps[:-1].min()
    calls = []
    stopped = MultiplicativeWeights().solve(
        problem, lambda: bool(calls.append(1) or len(calls) > 4)
    )
    assert stopped.n_iter == 5
    assert stopped.message == "stopped by a callback"


def test_the_last_iterate_has_the_dimension_asked_for(by_race):
    for r in (2, 5):
        problem = Problem(by_race, r, criterion="equal")
        last = MultiplicativeWeights(iterate="last", tol=1e-2).solve(problem)
        assert last.basis.shape == (14, r)
        assert last.retention is None
        assert last.certificate.status != "relaxed"


# Rounding


def check_rounding(problem, relaxed):
    r, k = problem.n_components, problem.n_groups
    most = {"lp": r + k - 1, "iterative": r + math.floor(math.sqrt(2 * k + 0.25) - 1.5)}
    allowed = relaxed_value(problem, relaxed) + 1e-5 * problem.traces.max()
    for rounding, dimensions in most.items():
        basis, retention = round_relaxed(problem, relaxed, rounding, extra_dimensions=True)
        n = basis.shape[1]
        assert r <= n <= dimensions
        assert (retention is None) == (n == r)
        assert_allclose(basis.T @ basis, np.eye(n), atol=1e-11)
        if retention is not None:
            assert retention.sum() == pytest.approx(r, abs=1e-5)
            assert retention.min() > 0
            assert retention.max() <= 1
        assert problem.disparities(basis, retention).max() <= allowed
        basis, retention = round_relaxed(problem, relaxed, rounding, extra_dimensions=False)
        assert basis.shape[1] == r
        assert retention is None
        assert_allclose(basis.T @ basis, np.eye(r), atol=1e-11)


def rounding_problems(n, seed):
    rng = np.random.default_rng(seed)
    for number in range(n):
        k, d = int(rng.integers(2, 11)), int(rng.integers(2, 13))
        r = int(rng.integers(1, d + 1))
        yield rng, random_problem(rng, KINDS[number % len(KINDS)], k, d, r)


def random_shares(rng, d, r):
    retention = rng.dirichlet(np.full(d, rng.choice([0.2, 1.0, 5.0]))) * r
    while retention.max() > 1 and r < d:
        over = np.maximum(retention - 1, 0).sum()
        retention = np.minimum(retention, 1)
        retention[retention < 1] += over / (retention < 1).sum()
    return retention if r < d else np.ones(d)


def test_ranks_and_disparities_after_rounding_any_point():
    for number, (rng, problem) in enumerate(rounding_problems(350, seed=0)):
        d, r = problem.moments.n_features, problem.n_components
        if number % 2 or r == d:
            vectors, retention = random_basis(rng, d, d), random_shares(rng, d, r)
            relaxed = (vectors * retention) @ vectors.T
        else:  # an average of weighted PCAs, as multiplicative weights have it
            relaxed = np.zeros((d, d))
            for _ in range(20):
                weighted = problem.weighted_sum(rng.dirichlet(np.ones(problem.n_groups)))
                basis = np.linalg.eigh(weighted)[1][:, -r:]
                relaxed += basis @ basis.T / 20
        check_rounding(problem, relaxed)


def test_ranks_and_disparities_after_rounding_relaxed_optima():
    for _, problem in rounding_problems(150, seed=1):
        r = problem.n_components
        if r == problem.moments.n_features:
            continue
        forms = Forms.from_problem(problem)
        dual = maximise_dual(forms, domain(forms, minmax(forms.k)))
        # Where eigenvalues tie exactly, too.
        assert dual.occupation.sum() == pytest.approx(r, abs=1e-12 * r)
        check_rounding(problem, (dual.vectors * dual.occupation) @ dual.vectors.T)


# As many lines with equal angles as there can be: v v^T - I/d are the vertices of a simplex.
GOLDEN = (1 + math.sqrt(5)) / 2
LINES = {
    2: [[math.cos(t), math.sin(t)] for t in (0, math.pi / 3, 2 * math.pi / 3)],
    3: [np.roll([0, sign, GOLDEN], turn) for sign in (1, -1) for turn in range(3)],
}


def equiangular_matrices(d):
    lines = np.array(LINES[d], dtype=float)
    lines /= np.linalg.norm(lines, axis=1)[:, None]
    return 3 * np.eye(d) + lines[:, :, None] * lines[:, None, :]


@pytest.mark.contract  # HiGHS
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("rounding", ["lp", "iterative"])
def test_equiangular_lines_need_every_extra_dimension(d, rounding):
    problem = problem_of(equiangular_matrices(d), 1, criterion="minmax")
    solution = SDPRelaxation(rounding=rounding).solve(problem)
    assert_allclose(solution.history["relaxed"], np.eye(d) / d, atol=1e-6)
    assert solution.basis.shape[1] == d
    assert_allclose(solution.retention, 1 / d, atol=1e-5)
    assert solution.disparities.max() == pytest.approx(1 - 1 / d, abs=1e-6)
    assert solution.history["relaxed_value"] == pytest.approx(1 - 1 / d, abs=1e-6)
    # No single direction does as well.
    z, turn = np.meshgrid(np.linspace(0, 1, 201) if d == 3 else 0.0, np.linspace(0, 6.2832, 801))
    rim = np.sqrt(1 - z**2)
    directions = np.array([rim * np.cos(turn), rim * np.sin(turn), z]).reshape(3, -1)[:d]
    kept = np.einsum("kij,ia,ja->ka", problem.matrices, directions, directions)
    single = (problem.own_gains[:, None] - kept).max(axis=0).min()
    assert single > 1 - 1 / d + 0.1
    cut = SDPRelaxation(rounding=rounding, extra_dimensions=False).solve(problem)
    assert cut.basis.shape[1] == 1
    assert cut.certificate.value >= single - 1e-2


def test_two_groups_need_no_extra_dimension():
    rng = np.random.default_rng(2)
    for kind in KINDS:
        d = int(rng.integers(2, 10))
        problem = random_problem(rng, kind, 2, d, int(rng.integers(1, d)), criterion="minmax")
        solution = SDPRelaxation(rounding="iterative").solve(problem)
        assert solution.basis.shape[1] == problem.n_components
        assert solution.certificate.gap <= 1e-5 * problem.scale


# Published values


def published_problem(name, r):
    if name == "adult":
        bunch = load_adult(keep_sensitive=False, as_frame=False)
        groups = bunch.sensitive_features
    else:
        bunch = load_credit(sensitive="education", keep_sensitive=False, as_frame=False)
        groups = np.isin(bunch.sensitive_features, ["graduate school", "university"])
    moments = GroupMoments.from_rows(StandardScaler().fit_transform(bunch.data), groups)
    return Problem(moments, r, criterion="minmax", centering="group")


@pytest.mark.parametrize(
    ("name", "r", "value"),
    [
        ("adult", 2, 0.239919),
        ("adult", 5, 0.453571),
        ("adult", 10, 0.394827),
        ("credit", 2, 0.022195),
        ("credit", 5, 0.050333),
        ("credit", 10, 0.283638),
    ],
)
def test_published_values(name, r, value):
    problem = published_problem(name, r)
    for solver, accuracy in ((SDPRelaxation(), 1e-5), (MultiplicativeWeights(tol=1e-5), 1e-4)):
        solution = solver.solve(problem)
        found = solution.history["relaxed_value"]
        assert found == pytest.approx(value, abs=accuracy * problem.scale)
        assert solution.disparities.max() <= found + 1e-6 * problem.scale
        assert r <= solution.basis.shape[1] <= r + 1


# The estimator


def rows_with_moments(matrices):
    """Rows about zero whose groups have exactly these second moments, and their groups."""
    d = len(matrices[0])
    halves = [math.sqrt(d) * np.linalg.cholesky(matrix).T for matrix in matrices]
    X = np.vstack([np.vstack([half, -half]) for half in halves])
    return X, np.repeat(np.arange(len(matrices)), 2 * d)


def simulated_rows():
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 4, 600)
    X = rng.standard_normal((600, 7)) * rng.uniform(0.2, 3, (4, 7))[groups]
    return X, groups


@pytest.mark.parametrize("solver", ["sdp", "sdp-iterative", "mw", "mw-iterative"])
@pytest.mark.parametrize("criterion", ["equal", "minmax"])
@pytest.mark.parametrize("data", ["equiangular", "simulated"])
def test_reconstructions_lose_what_the_table_says(solver, criterion, data):
    X, groups = (
        rows_with_moments(equiangular_matrices(3)) if data != "simulated" else (simulated_rows())
    )
    r = 1 if data == "equiangular" else 3
    fair = FairPCA(r, solver=solver, criterion=criterion).fit(X, sensitive_features=groups)
    reduced = fair.transform(X)
    errors = ((X - fair.inverse_transform(reduced)) ** 2).sum(axis=1)
    by_group = [errors[groups == group].mean() for group in np.unique(groups)]
    assert_allclose(by_group, fair.group_table_.loss, rtol=1e-10)
    assert fair.score(X) == pytest.approx(-errors.mean())
    assert fair.n_components_ == reduced.shape[1] == fair.solution_.basis.shape[1]
    assert_allclose(fair.components_ @ fair.components_.T, np.eye(fair.n_components_), atol=1e-10)
    assert_allclose(reduced.var(axis=0, ddof=1), fair.explained_variance_, atol=1e-10)
    certificate = fair.certificate_
    if data == "equiangular":
        assert fair.n_components_ == 3
        assert certificate.status == "relaxed"
        said = recorded(str(certificate), "a disparity" if criterion == "minmax" else "differ")
        assert numbers_in(said)[:3] == [3, 2, 1]  # dimensions, how many more, asked for
        assert certificate.lower_bound <= certificate.value
    else:
        assert (certificate.status == "relaxed") == (fair.n_components_ > 3)


def test_without_cvxpy_only_the_sdp_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    for name in ("sdp", "sdp-iterative"):
        with refused(ImportError, "fairpca[sdp]"):
            FairPCA(2, solver=name, criterion="minmax").fit("not even rows")
    X, groups = simulated_rows()
    fair = FairPCA(2, solver="mw", criterion="minmax").fit(X, sensitive_features=groups)
    assert fair.solution_.solver == "mw"


@pytest.mark.contract
def test_a_failing_backend_is_reported_in_one_sentence(monkeypatch):
    problem = random_problem(np.random.default_rng(4), "general", 3, 4, 2)

    def fail(self, *args, **options):
        raise cp.error.SolverError(
            "Solver 'CLARABEL' failed. Try another solver, or solve with verbose=True for more "
            "information."
        )

    monkeypatch.setattr(cp.Problem, "solve", fail)
    with refused(RuntimeError, "'clarabel'", "not solve") as caught:
        SDPRelaxation().solve(problem)
    assert str(caught.value).count(".") == 1
    assert str(caught.value).endswith(".")


def test_a_program_without_a_result_is_reported(monkeypatch):
    problem = random_problem(np.random.default_rng(0), "general", 2, 4, 2)
    monkeypatch.setattr(cp.Problem, "solve", lambda self, **options: None)
    with refused(RuntimeError, "None"):
        SDPRelaxation().solve(problem)


@pytest.mark.parametrize(
    ("solver", "choice", "words"),
    [
        (SDPRelaxation, {"rounding": "up"}, "'lp' 'iterative'"),
        (SDPRelaxation, {"backend": "mosek"}, "'auto' 'clarabel' 'scs'"),
        (MultiplicativeWeights, {"rounding": "up"}, "'lp' 'iterative'"),
        (MultiplicativeWeights, {"iterate": "first"}, "'average' 'last'"),
        (MultiplicativeWeights, {"tol": -1.0}, "tol"),
        (MultiplicativeWeights, {"tol": math.nan}, "tol"),
        (MultiplicativeWeights, {"max_iter": 0}, "max_iter"),
        (MultiplicativeWeights, {"max_iter": 2.5}, "max_iter"),
        (MultiplicativeWeights, {"tol": "small"}, "tol"),
    ],
)
def test_wrong_choices_are_refused(solver, choice, words):
    with refused(ValueError, *words.split()):
        solver(**choice)

"""The paper's algorithm: its lemma, its theorems, and where it ends on real data."""

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from fairpca import Equal, ExactSolver, FairPCA, GroupMoments, MinMax, ParetoDescent, Problem
from fairpca._linalg.dense import min_norm_point, polar_factor, qr_factor
from fairpca.data import prepare_data
from fairpca.datasets import load_adult, load_credit
from fairpca.objectives import MeanDistance, PaperObjectives, TotalLoss
from fairpca.solvers.pareto import ARMIJO, descend, non_dominated
from studies import many_groups

from problems import KINDS, problem_of, random_basis, random_problem
from texts import refused, warned

pytestmark = pytest.mark.untraced


def unwarned(solver, problem):
    """The solution of a run that may end less fair than ordinary PCA, which does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solver.solve(problem)


def real_problem(load, sensitive, r):
    bunch = load(sensitive=sensitive, as_frame=False)
    X = StandardScaler().fit_transform(bunch.data)
    return Problem(GroupMoments.from_rows(X, bunch.sensitive_features), r, criterion="equal")


# The direction


def test_the_direction_is_a_descent_direction_for_all_objectives():
    rng = np.random.default_rng(0)
    for number in range(1000):
        k = int(rng.integers(2, 7))
        d = int(rng.integers(2, 9))
        r = int(rng.integers(1, d))
        problem = random_problem(rng, KINDS[number % len(KINDS)], k, d, r)
        basis = random_basis(rng, d, r)
        kind = ("pairwise", "single")[number % 2]
        _, gradients = PaperObjectives(kind).evaluate(problem, basis)
        flat = gradients.reshape(len(gradients), -1)
        flat = flat / np.maximum(np.linalg.norm(flat, axis=1), 1e-300)[:, None]
        weights = min_norm_point(flat)
        direction = -weights @ flat
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert (flat @ direction <= -(direction @ direction) + 1e-10).all()


@pytest.mark.parametrize("m", [1, 2, 3, 7, 30])
def test_the_min_norm_point_agrees_with_another_program(m):
    rng = np.random.default_rng(m)
    for _ in range(5):
        vectors = rng.standard_normal((m, 12)) + 0.4
        found = min_norm_point(vectors) @ vectors
        weights = cp.Variable(m)
        goal = cp.Minimize(cp.sum_squares(vectors.T @ weights))
        cp.Problem(goal, [weights >= 0, cp.sum(weights) == 1]).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-14, tol_gap_rel=1e-14, tol_feas=1e-14
        )
        assert_allclose(found, weights.value @ vectors, atol=1e-8)


def test_the_min_norm_point_of_two_hundred_vectors():
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((200, 500)) + 0.3
    weights = min_norm_point(vectors)
    nearest = weights @ vectors
    # The definition: every vector lies beyond the hyperplane through the point.
    assert (vectors @ nearest >= nearest @ nearest * (1 - 1e-10)).all()
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)


def test_the_min_norm_point_of_opposite_equal_and_zero_vectors():
    assert_allclose(min_norm_point(np.array([[1.0, 0.0], [-3.0, 0.0]])), [0.75, 0.25])
    assert_allclose(min_norm_point(np.zeros((3, 4))) @ np.zeros((3, 4)), 0.0)
    same = np.ones((4, 3))
    assert_allclose(min_norm_point(same) @ same, 1.0)
    with_zero = np.vstack([np.zeros(3), np.eye(3)])
    assert_allclose(min_norm_point(with_zero) @ with_zero, 0.0, atol=1e-12)


def test_retractions_give_orthonormal_bases_of_the_same_span():
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((7, 3))
    for retract in (polar_factor, qr_factor):
        basis = retract(matrix)
        assert_allclose(basis.T @ basis, np.eye(3), atol=1e-14)
        assert_allclose(basis @ basis.T @ matrix, matrix, atol=1e-12)
        assert_allclose(retract(basis), basis, atol=1e-14)


# The theorems


@pytest.mark.parametrize("objectives", ["pairwise", "single"])
def test_backtracking_never_increases_an_objective(objectives):
    rng = np.random.default_rng(3)
    for kind in ("general", "other scales", "block"):
        problem = random_problem(rng, kind, 3, 7, 2)
        solver = ParetoDescent(
            objectives,
            step="backtracking",
            normalize=False,
            step_size=1.0 / problem.scale,
            max_iter=200,
            tol=0.0,
        )
        (run,) = unwarned(solver, problem).history["runs"]
        assert len(run.steps) > 5
        assert (np.diff(run.values, axis=0) <= 0).all()
        # Summing Armijo's condition: the paper's non-convex theorem rests on this.
        promised = ARMIJO * (run.steps * run.norms[: len(run.steps)] ** 2).sum()
        fallen = run.values[0] - run.values[-1]
        assert (promised <= fallen + 1e-12 * np.abs(run.values[0])).all()


def test_averaged_excess_on_convex_quadratics():
    # f_i(x) = |x - c_i|^2 / 2 in a flat space: Pareto efficient points are the centres' hull.
    rng = np.random.default_rng(4)
    for m, n, steps in ((2, 5, 100), (4, 3, 400), (6, 10, 1000)):
        centres = rng.standard_normal((m, n))
        start = rng.standard_normal(n) * 3

        def values_of(x, centres=centres):
            return 0.5 * np.square(x - centres).sum(axis=1)

        def evaluate(x, centres=centres, values_of=values_of):
            return values_of(x), x - centres

        efficient = rng.dirichlet(np.ones(m)) @ centres
        distance = np.linalg.norm(start - efficient)
        # The largest gradient on the path; starting from an overestimate it is found in a few runs.
        largest = 10.0 * np.linalg.norm(start - centres, axis=1).max()
        for _ in range(5):
            path = [start]
            run = descend(
                evaluate,
                values_of,
                start,
                retract=lambda x, path=path: path.append(x) or x,
                step="constant",
                step_size=distance / (largest * np.sqrt(steps)),
                normalize=False,
                armijo=1e-4,
                zero=np.zeros(m),
                tol=0.0,
                max_iter=steps,
            )
            seen = max(np.linalg.norm(x - centres, axis=1).max() for x in path)
            if np.isclose(seen, largest, rtol=1e-6):
                break
            largest = seen
        excess = run.values[: len(run.multipliers)] - values_of(efficient)
        averaged = (run.multipliers * excess).sum() / len(run.multipliers)
        assert averaged <= distance * largest / np.sqrt(steps)


def test_stationary_points_are_recognised():
    problem = real_problem(load_adult, "sex", 5)
    solution = ParetoDescent(random_state=1).solve(problem)
    (run,) = solution.history["runs"]
    assert run.stationary
    assert "Pareto stationary" in solution.message
    assert run.norms[-1] <= 1e-7
    # Ordinary PCA is one: its total loss cannot fall, so it does not move.
    with warned(ConvergenceWarning, "took no step", "another start"):
        still = ParetoDescent(start="pca").solve(problem)
    assert still.n_iter == 0
    assert_allclose(still.disparities, problem.disparities(problem.pca_basis))


# Where it ends on real data


@pytest.mark.parametrize("load", [load_adult, load_credit])
@pytest.mark.parametrize("r", [2, 5, 10])
def test_ends_on_the_frontier_of_two_groups(load, r):
    problem = real_problem(load, "sex", r)
    excess = []
    for seed in range(1, 21):
        end = ParetoDescent(random_state=seed).solve(problem)
        frontier = ExactSolver().solve(problem.with_criterion(Equal(np.ptp(end.disparities))))
        excess.append(end.total_loss / frontier.total_loss - 1)
        assert end.certificate.relative_gap == pytest.approx(max(excess[-1], 0), abs=1e-7)
    # In units of the frontier's own height: that of Credit is only 0.002 % of the loss at r = 2.
    plain = problem.total_loss(problem.pca_basis)
    height = ExactSolver().solve(problem).total_loss / plain - 1
    assert min(excess) >= -1e-6 * height
    assert max(excess) <= 1e-3 * height


@pytest.mark.parametrize("r", [5, 10])
def test_five_groups_become_nearly_equal(r):
    problem = real_problem(load_adult, "race", r)
    end = ParetoDescent(n_restarts=10).solve(problem)
    unfair = problem.spread(problem.pca_basis)
    assert np.ptp(end.disparities) <= 0.01 * unfair


def test_backtracking_ends_at_fair_subspaces_above_the_frontier():
    # With psi = z^2 / 2 every fair subspace is stationary, whatever it loses: the penalty's
    # gradient is zero there. Backtracking stops at the first one that it meets.
    problem = real_problem(load_adult, "sex", 2)
    frontier = ExactSolver().solve(problem).total_loss
    excess = []
    for seed in range(1, 11):
        end = unwarned(ParetoDescent(step="backtracking", random_state=seed), problem)
        assert np.ptp(end.disparities) <= 1e-3 * problem.spread(problem.pca_basis)
        excess.append(end.total_loss / frontier - 1)
    assert np.median(excess) >= 0.02
    assert max(excess) <= 1.0


def test_the_euclidean_form_as_printed():
    problem = real_problem(load_adult, "sex", 10)
    end = ParetoDescent.as_printed().solve(problem)
    assert np.ptp(end.disparities) <= 0.01
    assert end.total_loss <= 1.01 * ExactSolver().solve(problem).total_loss
    # With steps 1/sqrt(t) its direction does not vanish.
    assert end.history["runs"][0].norms[-1] > 0.1


def test_alpha_changes_euclidean_directions_only():
    problem = real_problem(load_adult, "sex", 5)
    plain = ParetoDescent(step="sqrt", max_iter=50, tol=0.0, random_state=1)
    printed = ParetoDescent.as_printed("random", 50, random_state=1)
    for alpha in (2.0, "auto", "pairs"):
        ends = [unwarned(replace(plain, alpha=a), problem).disparities for a in (0.0, alpha)]
        assert_allclose(*ends)
        ends = [unwarned(replace(printed, alpha=a), problem).disparities for a in (0.0, alpha)]
        assert not np.allclose(*ends)


# Everything around it


def test_histories_restarts_and_repeatability():
    problem = random_problem(np.random.default_rng(5), "general", 3, 6, 2)
    solver = ParetoDescent(
        "pairwise", n_restarts=4, max_iter=60, tol=0.0, step="sqrt", random_state=7
    )
    first, second = unwarned(solver, problem), unwarned(solver, problem)
    assert np.array_equal(first.basis, second.basis)
    runs = first.history["runs"]
    assert len(runs) == 4
    assert first.history["objectives"] == ("total loss", "0 - 1", "0 - 2", "1 - 2")
    for run in runs:
        assert run.values.shape == (len(run.steps) + 1, 4)
        assert len(run.norms) == len(run.multipliers)
        assert_allclose(run.multipliers.sum(axis=1), 1)
        assert_allclose(run.steps, 1 / np.sqrt(np.arange(1, len(run.steps) + 1)))
    ends = np.array([run.values[-1] for run in runs])
    best = first.history["best"]
    assert non_dominated(ends)[best]
    spreads = [problem.spread(run.point) for run in runs]
    assert spreads[best] == min(
        s for s, keep in zip(spreads, non_dominated(ends), strict=True) if keep
    )


def test_many_starts_leave_a_front_that_nothing_dominates():
    problem = real_problem(load_adult, "sex", 2)
    runs = unwarned(ParetoDescent(n_restarts=12, max_iter=300), problem).history["runs"]
    ends = np.array([run.values[-1] for run in runs])
    losses, differences = ends[non_dominated(ends)].T
    assert len(losses) >= 2
    assert (np.argsort(losses) == np.argsort(-differences)).all()


def test_dominance():
    values = np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0], [1.0, 2.0], [0.5, 9.0]])
    assert non_dominated(values).tolist() == [True, True, False, True, True]


def test_objectives_of_ones_own():
    rng = np.random.default_rng(6)
    groups = rng.integers(0, 2, 400)
    X = rng.standard_normal((400, 5)) * [1, 1, 2, 2, 3]
    X[groups == 1, 4] += 4.0
    problem = Problem(GroupMoments.from_rows(X, groups), 2)
    end = ParetoDescent([TotalLoss(), MeanDistance()], random_state=3).solve(problem)
    assert end.history["objectives"] == ("total loss", "mean distance")
    distance = MeanDistance().value
    assert distance(problem, end.basis) < distance(problem, problem.pca_basis)


@pytest.mark.filterwarnings("ignore:The result of Pareto descent is less fair")
@pytest.mark.parametrize("solver", ["pareto", ParetoDescent("single", n_restarts=2)])
def test_in_the_estimator(solver):
    adult = load_adult(as_frame=False)
    X = StandardScaler().fit_transform(adult.data)
    fair = FairPCA(3, solver=solver, random_state=1, criterion="minmax")
    fair.fit(X, sensitive_features=adult.sensitive_features)
    assert fair.solution_.solver == "pareto"
    assert fair.certificate_.lower_bound <= fair.solution_.total_loss
    assert fair.solution_.n_iter > 0
    # Single disparities are each to be small, not equal: only pairwise ones promise fairness.
    if solver == "pareto":
        assert np.ptp(fair.group_table_.disparity) < np.ptp(fair.group_table_.pca_disparity)


@pytest.mark.filterwarnings("ignore:Every group is worse off:fairpca.FairnessWarning")
def test_a_listener_hears_every_step_of_every_run():
    X = np.random.default_rng(7).standard_normal((200, 5))
    groups = np.arange(200) % 2
    X *= np.where(groups == 1, 1, -1)[:, None] * np.arange(-2, 3) + 3
    data, heard = prepare_data(X, groups), []
    solver = ParetoDescent(max_iter=6, tol=0.0)

    def listener(*steps):
        heard.append(steps)

    FairPCA(2, solver=solver, criterion="minmax").fit_data(data, listener)
    run = [(step, 6) for step in range(1, 7)]
    assert heard == run
    # A share tries one dimension after the other, and the steps of each are counted from one.
    heard.clear()
    share = FairPCA(0.7, solver=solver, criterion="minmax").fit_data(data, listener)
    assert share.n_components_ == 4
    assert heard == run * 3
    heard.clear()
    FairPCA(2, criterion="minmax").fit_data(data, listener)
    assert heard == []


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"objectives": "triple"}, "'pairwise' 'single'"),
        ({"objectives": []}, "at least one"),
        ({"penalty": "cubic"}, "'squared'"),
        ({"geometry": "flat"}, "'riemannian' 'euclidean'"),
        ({"step": "huge"}, "'adaptive' 'sqrt' 'constant' 'backtracking' 'equation 16'"),
        ({"geometry": "euclidean"}, "step='sqrt' ParetoDescent.as_printed"),
        ({"alpha": "pairs", "objectives": "single"}, "objectives='pairwise'"),
        ({"start": "zero"}, "'random' 'pca'"),
        ({"alpha": "best"}, "'auto'"),
        ({"step_size": 0.0}, "step_size"),
        ({"tol": -1.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_restarts": 0}, "n_restarts"),
    ],
)
def test_wrong_choices_are_refused(choice, words):
    with refused(ValueError, *words.split()):
        ParetoDescent(**choice)


def test_a_start_of_ones_own():
    problem = random_problem(np.random.default_rng(8), "general", 2, 5, 2)
    given = np.random.default_rng(9).standard_normal((5, 2))
    run = unwarned(ParetoDescent(start=given, max_iter=3, tol=0.0), problem).history["runs"][0]
    expected = PaperObjectives().values(problem, polar_factor(given))
    assert_allclose(run.values[0], expected)
    for wrong in (np.ones((5, 2)), np.ones((4, 2)), np.ones(5)):
        with refused(ValueError, "start", "shape"):
            ParetoDescent(start=wrong).solve(problem)


@pytest.mark.parametrize("criterion", ["equal", "minmax"])
def test_data_that_does_not_vary(criterion):
    flat = problem_of(np.zeros((3, 4, 4)), 2, criterion=criterion)
    end = ParetoDescent(max_iter=5).solve(flat)
    assert end.certificate.status == "optimal"
    assert end.n_iter == 0


def test_an_exponential_that_no_number_holds_is_refused():
    X = np.random.default_rng(0).normal(size=(200, 5)) * [30, 25, 20, 15, 10]
    X[140:] = 3.0 * X[140:, ::-1]
    problem = Problem(GroupMoments.from_rows(X, ["a"] * 140 + ["b"] * 60), 2)
    with refused(ValueError, "standardise", "penalty='squared'"):
        ParetoDescent(penalty="exponential").solve(problem)


# Whether it converges, and what it says if it does not


@pytest.mark.parametrize(
    ("load", "sensitive"),
    [
        (load_adult, "sex"),
        (load_adult, "race"),
        (load_credit, "sex"),
        (load_credit, "marriage"),
        (load_credit, "education"),
    ],
)
@pytest.mark.parametrize("r", [2, 5])
def test_the_default_converges_on_real_rows(load, sensitive, r):
    problem = real_problem(load, sensitive, r)
    for seed in (1, 2):
        (run,) = unwarned(ParetoDescent(random_state=seed), problem).history["runs"]
        assert run.stationary
        assert problem.spread(run.point) < problem.spread(problem.pca_basis)


@pytest.mark.parametrize("kind", KINDS)
def test_where_the_default_ends_nothing_nearby_is_better(kind):
    rng = np.random.default_rng(6)
    vector = PaperObjectives()
    for k, d, r in ((2, 5, 2), (3, 6, 3), (5, 8, 3)):
        problem = random_problem(rng, kind, k, d, r, criterion="equal")
        end = unwarned(ParetoDescent(random_state=1), problem)
        (run,) = end.history["runs"]
        assert_allclose(end.basis.T @ end.basis, np.eye(r), atol=1e-12)
        assert end.certificate.lower_bound <= end.total_loss + 1e-9 * problem.scale
        if not run.stationary:
            continue
        here = vector.values(problem, end.basis)
        units = np.append(problem.scale, np.full(len(here) - 1, problem.scale**2))
        for length in (1e-1, 1e-2, 1e-3):
            for _ in range(50):
                near = polar_factor(end.basis + length * rng.standard_normal((d, r)))
                change = (vector.values(problem, near) - here) / units
                assert change.max() >= -1e-8 * length


def test_groups_that_are_alike_end_at_ordinary_pca():
    matrix = random_problem(np.random.default_rng(10), "general", 1, 6, 2).matrices[0]
    problem = problem_of([matrix, matrix], 2, criterion="equal")
    end = ParetoDescent().solve(problem)  # no warning
    assert end.history["runs"][0].stationary
    assert end.total_loss == pytest.approx(problem.total_loss(problem.pca_basis), rel=1e-9)


@pytest.mark.parametrize("factor", [2.0**-27, 0.001, 2.0**27])
def test_the_unit_of_the_rows_does_not_matter(factor):
    bunch = load_adult(as_frame=False)
    X = StandardScaler().fit_transform(bunch.data)[::20]
    ends = []
    for unit in (1.0, factor):
        moments = GroupMoments.from_rows(X * unit, bunch.sensitive_features[::20])
        end = ParetoDescent(random_state=1).solve(Problem(moments, 3, criterion="equal"))
        assert end.history["runs"][0].stationary
        ends.append(end.basis @ end.basis.T)
    assert_allclose(ends[0], ends[1], atol=1e-6)


def test_steps_that_do_not_suffice_are_said():
    problem = real_problem(load_adult, "sex", 5)
    with warned(ConvergenceWarning, "20 steps", "Pareto"):
        ParetoDescent(max_iter=20).solve(problem)


def test_a_stationary_point_far_from_the_front_is_said():
    # Twelve groups: neighbours one by one stall, and the exact solver finds what is missed.
    problem = many_groups.problem_of("Credit, marriage × education", 5)  # noqa: RUF001
    with warned(ConvergenceWarning, "far from the front", "objectives='pooled'", "less fair"):
        end = ParetoDescent("adjacent", random_state=1).solve(problem)
    assert end.history["runs"][0].stationary
    better = ExactSolver().solve(problem.with_criterion(Equal(np.ptp(end.disparities))))
    assert better.total_loss < 0.99 * end.total_loss


def test_where_no_step_is_taken_or_the_end_is_far_pooling_is_a_remedy_unless_it_was_done():
    # 63 groups: a random subspace is Pareto stationary for neighbours, so that nothing moves.
    problem = many_groups.problem_of("Adult, education × race × sex", 5)  # noqa: RUF001
    for kind in ("adjacent", "pairwise"):
        with warned(ConvergenceWarning, "took no step", "far from the front", "'pooled'"):
            end = ParetoDescent(kind, random_state=1).solve(problem)
        assert end.n_iter == 0
        assert end.certificate.relative_gap > 0.1
    # The default moves, and ends on its own front, which is not that of the largest difference.
    solver = ParetoDescent(random_state=1)
    end = solver.solve(problem)  # no warning
    assert end.history["objectives"] == ("total loss", "all pairs")
    assert solver._room(problem, end.history["runs"][0], end) < 1e-3
    assert end.certificate.relative_gap > 0.01
    with warned(ConvergenceWarning, "took no step", "Take another start."):
        ParetoDescent(start="pca").solve(problem)


def test_a_result_that_is_less_fair_than_pca_is_said():
    problem = real_problem(load_credit, "sex", 2)
    with warned(ConvergenceWarning, "less fair", "PCA"):
        ParetoDescent(max_iter=3).solve(problem)


# Many groups


def test_pairs_neighbours_and_a_linear_program_agree_on_common_directions():
    found = [many_groups.agree(*one) for one in many_groups.random_bases(200)]
    assert {exists for exists, *_ in found} == {True, False}
    assert all(same for _, same, _ in found)
    assert max(apart for *_, apart in found) <= 1e-10


@pytest.mark.parametrize("name", ["Adult, race × sex", "Credit, marriage × education"])  # noqa: RUF001
def test_pooled_differences_end_on_their_front_and_below_ordinary_pca(name):
    problem = many_groups.problem_of(name, 5)
    plain = problem.disparities(problem.pca_basis).max()
    for seed in (1, 2, 3):
        solver = ParetoDescent(random_state=seed)
        assert unwarned(solver, problem).history["objectives"] == ("total loss", "all pairs")
        (largest, *_), room = many_groups.run(problem, solver)
        assert largest < 0.4 * plain
        assert -1e-12 <= room <= 0.05


def test_a_row_of_the_page_of_many_groups_recomputed():
    page = many_groups.TARGET.read_text(encoding="utf-8").splitlines()
    row = many_groups.cases((("Adult, race", 5),)).splitlines()[-1].split(" | ")
    (committed,) = [line.split(" | ") for line in page if line.startswith(row[0])]
    assert committed[:6] == row[:6]  # the pooled objective and the printed form end less exactly


def test_the_room_of_pooled_differences_is_a_bound():
    # In the plane every line is tried.
    rng = np.random.default_rng(3)
    lines = [np.array([[np.cos(a)], [np.sin(a)]]) for a in np.linspace(0, np.pi, 20_001)[:-1]]
    for _ in range(10):
        problem = random_problem(rng, "general", 6, 2, 1, criterion="equal")
        solver, vector = ParetoDescent(random_state=1), PaperObjectives("pooled")
        end = unwarned(solver, problem)
        run = end.history["runs"][0]
        values = np.array([vector.values(problem, line) for line in lines])
        total, pooled = vector.values(problem, end.basis)
        least = values[values[:, 1] <= pooled * (1 + 1e-12), 0].min(initial=total)
        assert run.stationary
        assert 1.0 - least / total <= solver._room(problem, run, end) + 1e-12


def test_a_smooth_maximum_of_ones_own_ends_on_the_front_of_the_largest_disparity():
    class LargestDisparity:
        name = "largest disparity"

        def __init__(self, temperature):
            self.temperature = temperature

        def value(self, problem, basis):
            return self.temperature * logsumexp(problem.disparities(basis) / self.temperature)

        def gradient(self, problem, basis):
            weights = softmax(problem.disparities(basis) / self.temperature)
            return -2.0 * np.tensordot(weights, problem.matrices, 1) @ basis

    problem = many_groups.problem_of("Adult, education", 5)
    temperature = 0.003 * problem.spread(problem.pca_basis)
    solvers = [
        ParetoDescent(objectives, random_state=1)
        for objectives in ([TotalLoss(), LargestDisparity(temperature)], "pooled")
    ]
    above = []
    for solver in solvers:
        end = unwarned(solver, problem)
        extra = end.total_loss / problem.total_loss(problem.pca_basis) - 1.0
        least = ExactSolver().solve(problem.with_criterion(MinMax(max_extra_loss=extra)))
        above.append(end.disparities.max() / least.disparities.max() - 1.0)
    assert abs(above[0]) < 0.01
    assert above[1] > 0.05


def test_the_default_is_adjacent_up_to_five_groups():
    rng = np.random.default_rng(4)
    for k, last in ((5, "largest 4 - 5"), (6, "all pairs")):
        problem = random_problem(rng, "general", k, 6, 2)
        assert unwarned(ParetoDescent(), problem).history["objectives"][-1] == last
        pairs = unwarned(ParetoDescent(alpha=0.1), problem).history["objectives"]
        assert len(pairs) == 1 + k * (k - 1) // 2


def test_groups_that_are_equal_count_as_one():
    rng = np.random.default_rng(5)
    first, second = random_problem(rng, "general", 2, 6, 2).matrices
    twice = problem_of([first, second, second], 2, [100, 50, 50], criterion="equal")
    once = problem_of([first, second], 2, [100, 100], criterion="equal")
    ends = [unwarned(ParetoDescent("adjacent", random_state=1), one) for one in (twice, once)]
    assert ends[0].history["runs"][0].stationary
    assert len(ends[0].history["runs"][0].steps) > 0
    for end in ends:
        assert end.certificate.relative_gap < 1e-6
    assert ends[0].disparities[1] == pytest.approx(ends[0].disparities[2], abs=1e-9)


# Theorems 1 and 3


def test_a_pareto_optimal_subspace_exists_where_equality_is_impossible():
    # In the plane every line is tried. Theorem 1 promises a point that nothing dominates, not one
    # at which the groups are equal.
    angles = np.linspace(0, np.pi, 20_001)[:-1]
    rng = np.random.default_rng(7)
    vector, impossible = PaperObjectives(), 0
    for _ in range(10):
        problem = random_problem(rng, "general", 3, 2, 1, criterion="equal")
        lines = [np.array([[np.cos(a)], [np.sin(a)]]) for a in angles[::20]]
        values = np.array([vector.values(problem, line) for line in lines])
        assert non_dominated(values).any()
        least = min(problem.spread(line) for line in lines)
        if ExactSolver().solve(problem).certificate.status != "infeasible":
            continue
        impossible += 1
        assert least > 1e-6 * problem.scale
        end = unwarned(ParetoDescent(n_restarts=3), problem)
        here = vector.values(problem, end.basis)
        # The appendix's program: no subspace improves the sum without making one objective worse.
        better = (values <= here + 1e-12).all(axis=1) & (values < here - 1e-4 * here.max()).any(
            axis=1
        )
        assert not better.any()
    assert impossible >= 3


def test_convex_objectives_end_where_the_program_of_the_appendix_has_the_value_zero():
    # f_i = |x - c_i|^2 / 2: the most that can be gained in all, and nothing lost, from the end.
    rng = np.random.default_rng(8)
    centres = rng.standard_normal((3, 4))

    def values_of(x):
        return 0.5 * np.square(x - centres).sum(axis=1)

    def end(start):
        return descend(
            lambda x: (values_of(x), x - centres),
            values_of,
            start,
            retract=lambda x: x,
            step="backtracking",
            step_size=1.0,
            normalize=False,
            armijo=1e-4,
            zero=np.zeros(3),
            tol=1e-10,
            max_iter=2000,
        ).point

    for _ in range(3):
        here = end(3.0 * rng.standard_normal(4))
        x = cp.Variable(4)
        after = cp.hstack([cp.sum_squares(x - centre) / 2 for centre in centres])
        program = cp.Problem(cp.Minimize(cp.sum(after)), [after <= values_of(here)])
        program.solve(solver=cp.CLARABEL)
        assert values_of(here).sum() - program.value <= 1e-4  # of 10 to 30, to the solver's digits


def test_no_step_is_shorter_than_theorem_3_says():
    # Quadratics with Lipschitz constants L_i: steps are at least (1 - beta) / max L_i, or 1.
    rng = np.random.default_rng(9)
    for largest in (0.5, 3.0, 40.0):
        centres, curvatures = rng.standard_normal((3, 4)), rng.uniform(0.1, largest, (3, 4))
        curvatures[0, 0] = largest

        def values_of(x, centres=centres, curvatures=curvatures):
            return 0.5 * (curvatures * np.square(x - centres)).sum(axis=1)

        for armijo in (1e-4, 0.3):
            run = descend(
                lambda x, c=centres, h=curvatures, f=values_of: (f(x), h * (x - c)),
                values_of,
                3.0 * rng.standard_normal(4),
                retract=lambda x: x,
                step="backtracking",
                step_size=1.0,
                normalize=False,
                armijo=armijo,
                zero=np.zeros(3),
                tol=1e-6,
                max_iter=200,
            )
            assert len(run.steps) > 1
            assert run.steps.min() >= min(1.0, (1.0 - armijo) / largest) - 1e-12

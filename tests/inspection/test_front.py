"""The trade-off between total loss and fairness: brute force, duality, properties, choices.

Of the front over the spread; that over the largest measure is in test_front_largest.py.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.preprocessing import StandardScaler

from fairpca import (
    AtMost,
    Equal,
    ExactSolver,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    MinMax,
    ParetoFront,
    Problem,
    pareto_front,
)
from fairpca.datasets import load_adult, load_credit
from fairpca.report import report
from fairpca.solvers import _space as space
from fairpca.solvers._space import search_space
from fairpca.solvers.front_sweep import _come_back, _Spread
from said import piped

from asked import front_over
from devices import import_torch
from problems import KINDS, problem_of, random_basis, random_matrices, random_problem
from texts import recorded, refused, warned

pytestmark = pytest.mark.untraced

spread_front = partial(front_over, over="spread")
spread_front_of_rows = partial(pareto_front, criterion="equal")


def rows_and_groups(k=2, n=240, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(3, 1, d)
    groups = rng.integers(0, k, n)
    for group in range(k):
        X[groups == group] = X[groups == group] @ random_basis(rng, d, d)
    return X, np.array([f"group {group}" for group in groups])


def lines_in(d):
    """Directions that cover the circle or the sphere."""
    if d == 2:
        angles = np.linspace(0, np.pi, 20_001)
        return np.array([np.cos(angles), np.sin(angles)]), 4e-4
    z, turn = np.meshgrid(np.linspace(0, 1, 301), np.linspace(0, 2 * np.pi, 901))
    rim = np.sqrt(1 - z**2)
    return np.array([rim * np.cos(turn), rim * np.sin(turn), z]).reshape(3, -1), 2e-2


def check_front(front, n_points):
    """What holds for every front; returns what rounding may do to a loss."""
    problem, scale = front.problem, front.problem.scale
    level = problem.negligible_spread
    assert len(front) == len(front.solutions) == n_points or len(front) == 1
    # In the whole space the solver has a basis of its own, so rounding differs.
    least = problem.least_loss_basis
    assert front.spread[0] == pytest.approx(problem.spread(least), abs=1e-12 * problem.traces.max())
    assert front.total_loss[0] == pytest.approx(problem.total_loss(least), abs=1e-12 * scale)
    tolerances = np.array([solution.certificate.tolerance for solution in front])
    np.testing.assert_allclose(np.diff(tolerances, 2), 0.0, atol=1e-12 * (scale + tolerances[0]))
    for solution, tolerance in zip(front, tolerances, strict=True):
        certificate = solution.certificate
        r = problem.n_components
        assert np.abs(solution.basis.T @ solution.basis - np.eye(r)).max() < 1e-11
        assert certificate.status in ("optimal", "bounded")
        assert problem.spread(solution.basis) <= tolerance + level
        np.testing.assert_array_equal(solution.disparities, problem.disparities(solution.basis))
        assert solution.total_loss == problem.total_loss(solution.basis)
        assert solution.total_loss >= certificate.lower_bound
        # The proof is its own: anyone can compute the bound from the multipliers.
        within = problem.with_criterion(Equal(tolerance))
        slack = max(certificate.spread - tolerance, 0.0)
        bound = within.dual_bound(certificate.multipliers, slack)
        assert bound == pytest.approx(certificate.lower_bound, abs=1e-9 * scale)
    assert (np.diff(front.total_loss) >= -1e-12 * scale).all()
    assert (np.diff(front.spread) <= level).all()
    assert front.spread[-1] >= front.unfairness_bound
    return max(1e-9 * scale, level)


@pytest.mark.parametrize("kind", KINDS)
def test_two_groups_are_convex_falling_and_proven(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for number in range(8):
        d = int(rng.choice([2, 3, 5, 9]))
        scale = 10.0 ** rng.uniform(-12, 12) if number % 4 == 3 else 1.0
        loss = "sum" if number % 3 == 2 else "mean"
        problem = random_problem(rng, kind, 2, d, int(rng.integers(1, d)), scale=scale, loss=loss)
        front = spread_front(problem, 9)
        rounding = check_front(front, 9)
        for certificate in (solution.certificate for solution in front):
            rounded = certificate.gap <= 10 * certificate.rounding
            assert certificate.status == "optimal" or rounded
        assert front.spread[-1] <= rounding
        assert (np.diff(front.total_loss, 2) >= -rounding).all()
        # Each point is what the solver finds alone.
        for solution in front.solutions[1::3]:
            alone = ExactSolver().solve(
                problem.with_criterion(Equal(solution.certificate.tolerance))
            )
            assert solution.total_loss == pytest.approx(alone.total_loss, abs=rounding)


@pytest.mark.parametrize("kind", KINDS)
def test_more_groups_are_not_dominated_and_not_below_their_bounds(kind):
    number = KINDS.index(kind)
    rng = np.random.default_rng(50 + number)
    d = 3 + number % 4
    r = int(rng.integers(1, d))
    problem = random_problem(rng, kind, 3 + number % 3, d, r)
    front = spread_front(problem, 4)
    check_front(front, 4)
    for _ in range(100):
        other = random_basis(rng, d, r)
        assert problem.spread(other) >= front.unfairness_bound
        for solution in front:
            certificate = solution.certificate
            if problem.spread(other) <= max(certificate.tolerance, certificate.spread):
                assert problem.total_loss(other) >= certificate.lower_bound


@pytest.mark.parametrize(("d", "k"), [(2, 2), (3, 2), (3, 3)])
def test_no_line_is_better(d, k):
    rng = np.random.default_rng(d)
    lines, coarseness = lines_in(d)
    for kind in ("general", "diagonal", "low rank", "repeated eigenvalues"):
        problem = problem_of(random_matrices(rng, kind, k, d), 1, rng.uniform(20, 80, k))
        front = spread_front(problem, 7)
        kept = np.einsum("kij,ia,ja->ka", problem.matrices, lines, lines)
        spreads = np.ptp(problem.own_gains[:, None] - kept, axis=0)
        losses = problem.weights @ (problem.traces[:, None] - kept)
        slack = coarseness * problem.traces.max()
        assert front.spread[-1] <= spreads.min() + 1e-9 * problem.scale
        for spread, total_loss in zip(front.spread, front.total_loss, strict=True):
            fair = spreads <= spread
            if fair.any():
                assert total_loss <= losses[fair].min() + 1e-9 * problem.scale
            # The grid comes close, so the front is not too good to be true.
            assert losses[spreads <= spread + slack].min() <= total_loss + slack


def test_segments_inside_a_tied_eigenspace():
    matrices = [np.diag([3.0, 1.0, 0.5]), np.diag([1.0, 2.5, 0.4])]
    front = spread_front(problem_of(matrices, 1), 12)
    # Between the first two axes, with the share c of the first, the disparities are 2 - 2c and
    # 1.5 c, and 4.2 - 2 c - 1.75 (1 - c) is lost.
    spread = np.linspace(1.5, 0.0, 12)
    c = (spread + 2) / 3.5
    np.testing.assert_allclose(front.spread, spread, atol=1e-12)
    np.testing.assert_allclose(front.disparities, np.column_stack([2 - 2 * c, 1.5 * c]), atol=1e-12)
    np.testing.assert_allclose(front.total_loss, 2.45 - 0.25 * c, atol=1e-12)
    np.testing.assert_allclose(front.disparities[-1], 6 / 7, atol=1e-12)


def test_impossible_equality_ends_at_the_smallest_spread():
    # With the share s of the second axis the disparities are 2 s, 1 - s and s.
    matrices = [np.diag([3.0, 1.0]), np.diag([1.0, 2.0]), np.diag([5.0, 4.0])]
    problem = problem_of(matrices, 1)
    front = spread_front(problem, 6)
    check_front(front, 6)
    np.testing.assert_allclose(front.spread, np.linspace(1, 1 / 3, 6), atol=1e-8)
    np.testing.assert_allclose(front.total_loss, 7 / 3 + (1 - front.spread) / 3, atol=1e-8)
    assert front.unfairness_bound == pytest.approx(1 / 3, abs=1e-8)
    assert front.estimator(-1).criterion.tolerance == front.spread[-1]
    certificate = front[-1].certificate
    assert (
        problem.with_criterion(Equal(0.0)).violation_bound(certificate.violation_multipliers)
        == front.unfairness_bound
    )
    recorded(str(certificate), "differ", "at least 0.333333")
    recorded(piped(front), "differ", "at least 0.333333")


def test_an_unfair_least_loss_can_be_the_fairest_found():
    # The groups' own lines lie at 0, 45 and -45 degrees: no line is fairer than the first.
    matrices = [np.diag([2.0, 1.0]), [[1.5, 0.5], [0.5, 1.5]], [[1.5, -0.5], [-0.5, 1.5]]]
    front = spread_front(problem_of(matrices, 1), 3)
    check_front(front, 3)
    np.testing.assert_allclose(front.disparities, [[0.0, 0.5, 0.5]], atol=1e-9)
    # Equality is not proven impossible, so nothing says that it is.
    assert front.unfairness_bound <= 1e-9
    assert "at least" not in recorded(piped(front))


def test_where_the_least_loss_is_fairest_there_is_one_point():
    same = [np.diag([3.0, 2.0, 1.0])] * 3
    for problem in (problem_of(same, 1), problem_of(same[:1], 1), problem_of(same, 3)):
        front = spread_front(problem)
        assert len(front) == 1
        assert front.select(knee=True) == front.select(max_spread=0.0) == 0
        assert front.extra_loss.tolist() == [0.0]


@pytest.mark.parametrize("k", [2, 3])
def test_many_columns_are_searched_in_a_subspace(k):
    rng = np.random.default_rng(3)
    scales = [np.diag(rng.permutation(np.geomspace(10, 0.01, 140))) for _ in range(k)]
    turns = [np.linalg.qr(np.eye(140) + 0.02 * rng.standard_normal((140, 140)))[0] for _ in scales]
    matrices = [turn @ scale @ turn.T for turn, scale in zip(turns, scales, strict=True)]
    front = spread_front(problem_of(matrices, 2, rng.uniform(10, 90, k)), 5)
    rounding = check_front(front, 5)
    for solution in front.solutions[1::2]:
        alone = ExactSolver().solve(
            front.problem.with_criterion(Equal(solution.certificate.tolerance))
        )
        assert solution.total_loss == pytest.approx(alone.total_loss, abs=rounding)


def test_a_dominated_point_takes_the_subspace_of_the_fairer_one():
    problem = random_problem(np.random.default_rng(0), "general", 3, 6, 2)
    front = spread_front(problem, 6)
    fairest = front[-1]
    points = list(front.solutions)
    costlier = fairest.total_loss + 1.0
    for i, status in ((2, "optimal"), (3, "optimal")):
        turned = replace(points[i].certificate, status=status)
        bad = next(
            basis
            for basis in (random_basis(np.random.default_rng(s), 6, 2) for s in range(10_000))
            if problem.total_loss(basis) > fairest.total_loss
        )
        points[i] = replace(points[i], basis=bad, total_loss=costlier, certificate=turned)
    levels = np.array([solution.certificate.tolerance for solution in front])
    _come_back(_Spread(problem), points, levels, search_space(problem))
    repaired = ParetoFront(front.problem, tuple(points))
    assert (np.diff(repaired.total_loss) >= 0).all()
    for i in (2, 3):
        assert points[i].basis is points[4].basis
        assert points[i].certificate.tolerance == front[i].certificate.tolerance
        assert points[i].total_loss >= points[i].certificate.lower_bound
        # Refitting with the tolerance of the point would not give this subspace; its spread does.
        assert repaired.estimator(i).criterion.tolerance == repaired.spread[i] < front.spread[i]


@pytest.mark.parametrize(
    ("load", "sensitive", "r"),
    [(load_adult, "sex", 5), (load_credit, "sex", 10), (load_adult, "race", 5)],
)
def test_real_data(load, sensitive, r):
    data = load(sensitive=sensitive)
    X = StandardScaler().set_output(transform="pandas").fit_transform(data.data)
    front = spread_front_of_rows(X, sensitive_features=data.sensitive_features, n_components=r)
    rounding = check_front(front, 50)
    assert {solution.certificate.status for solution in front} == {"optimal"}
    assert front.spread[-1] <= rounding
    assert (np.diff(front.total_loss, 2) >= -rounding).all()
    for i in (0, 17, 49):
        fair = front.estimator(i)
        refit = FairPCA(**fair.get_params(deep=False)).fit(
            X, sensitive_features=data.sensitive_features
        )
        assert fair.certificate_.tolerance == refit.criterion.tolerance
        np.testing.assert_allclose(fair.components_, refit.components_, atol=1e-7)
        np.testing.assert_allclose(fair.explained_variance_, refit.explained_variance_, rtol=1e-7)
        assert str(fair.group_table_) == str(refit.group_table_)
        assert fair.certificate_.status == refit.certificate_.status
        assert vars(fair).keys() == vars(refit).keys()
        np.testing.assert_array_equal(fair.feature_names_in_, refit.feature_names_in_)
        np.testing.assert_allclose(fair.transform(X), refit.transform(X), atol=1e-6)


def test_neighbours_save_eigenproblems():
    rng = np.random.default_rng(5)
    problem = random_problem(rng, "general", 2, 20, 5)
    front = spread_front(problem)
    assert sum(solution.n_eigen for solution in front.solutions[1:-1]) <= 4 * 48


def test_choices_reach_the_problem_and_the_estimator():
    X, groups = rows_and_groups(k=3)
    weights = np.random.default_rng(0).uniform(0, 2, len(X))
    before = X.copy(), weights.copy(), groups.copy()
    given = {"solver": ExactSolver(random_state=3), "missing_labels": "group"}
    front = spread_front_of_rows(
        X, sensitive_features=groups, n_components=2, n_points=3, sample_weight=weights, **given
    )
    for array, copy in zip((X, weights, groups), before, strict=True):
        np.testing.assert_array_equal(array, copy)
    check_front(front, 3)
    fair = front.estimator(1)
    assert (fair.random_state, fair.missing_labels) == (3, "group")
    assert not hasattr(fair, "feature_names_in_")
    refit = FairPCA(**fair.get_params(deep=False))
    refit.fit(X, sensitive_features=groups, sample_weight=weights)
    assert fair.solution_.total_loss == pytest.approx(refit.solution_.total_loss, rel=1e-7)
    np.testing.assert_allclose(fair.components_, refit.components_, atol=1e-7)


def test_rows_of_any_kind_give_the_same_front():
    X, groups = rows_and_groups()
    front = spread_front_of_rows(X, sensitive_features=groups, n_components=2, n_points=5)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    for rows in (frame, scipy.sparse.csr_array(X), X.tolist()):
        other = spread_front_of_rows(rows, sensitive_features=groups, n_components=2, n_points=5)
        np.testing.assert_allclose(other.total_loss, front.total_loss, rtol=1e-9)
    moments = GroupMoments.from_rows(frame, groups)
    other = spread_front(Problem(moments, 2, Equal(1.0)), 5)
    np.testing.assert_allclose(other.spread, front.spread, atol=1e-9)
    assert other.problem.goal.tolerance == 0.0
    assert list(other.estimator(1).feature_names_in_) == list("abcdef")
    assert other.estimator(1).transform(frame).shape == (240, 2)


def test_one_group_warns_and_missing_labels_can_be_a_group():
    X, groups = rows_and_groups()
    with warned(FairnessWarning, "one group"):
        front = spread_front_of_rows(X, sensitive_features=["a"] * len(X), n_components=2)
    assert len(front) == 1
    labels = [None if i < 40 else group for i, group in enumerate(groups)]
    given = {"n_components": 2, "n_points": 2, "sensitive_features": labels}
    assert spread_front_of_rows(X, missing_labels="group", **given).problem.n_groups == 3
    with refused(ValueError, "40 missing"):
        spread_front_of_rows(X, **given)


@pytest.mark.parametrize("k", [2, 3])
def test_progress_is_told_of_every_point(k):
    X, groups = rows_and_groups(k)
    told = []
    given = {"sensitive_features": groups, "n_components": 2, "n_points": 4}
    front = spread_front_of_rows(X, **given, progress=lambda *what: told.append(what))
    points = [("finding the points of the front", done, 4) for done in range(5)]
    assert told[0] == points[0]
    assert told[-4:] == points[1:]
    # Two groups take no search.
    n = 0 if k == 2 else len(front[-1].history["starts"])
    fairest = [("finding the fairest point of the front", 1 + done, 80) for done in range(n)]
    assert told[1:-4] == fairest
    assert (front.total_loss == spread_front_of_rows(X, **given).total_loss).all()


def test_progress_is_told_before_the_dimension_of_a_share_is_known():
    X, groups = rows_and_groups(3)
    told = []
    given = {"sensitive_features": groups, "n_components": 0.6, "n_points": 2}
    pareto_front(X, **given, progress=lambda *what: told.append(what))
    assert told[0] == ("finding the dimension: search", 1, 80)
    assert told[-1] == ("finding the points of the front", 2, 2)


def test_progress_ends_where_there_is_one_point():
    same = [np.diag([3.0, 2.0])] * 2
    # The second as in test_an_unfair_least_loss_can_be_the_fairest_found.
    late = [np.diag([2.0, 1.0]), [[1.5, 0.5], [0.5, 1.5]], [[1.5, -0.5], [-0.5, 1.5]]]
    for matrices in (same, late):
        told = []
        spread_front(
            problem_of(matrices, 1), 9, progress=lambda *what, told=told: told.append(what[1:])
        )
        assert told[0] == (0, 9)
        assert told[-1] == (1, 1)


def gapped_problem():
    """Ten groups of which no search closes the gap."""
    rng, matrices = np.random.default_rng(1), []
    for _ in range(10):
        turn = np.linalg.qr(rng.standard_normal((8, 8)))[0]
        matrices.append((turn / np.arange(1, 9)) @ turn.T)
    return problem_of(matrices, 3)


@pytest.mark.parametrize("over", ["largest", "spread"])
def test_a_front_when_time_is_up_has_what_is_known_and_says_so(over, monkeypatch):
    problem, now = gapped_problem(), [0.0]
    monkeypatch.setattr(space.time, "monotonic", lambda: now[0])

    def pass_time(what, done, total):
        now[0] = float(what.startswith("finding the points") and done >= 3)

    best = front_over(problem, 8, over=over)
    hurried = front_over(
        problem, 8, over=over, solver=ExactSolver(time_limit=1.0), progress=pass_time
    )
    assert (hurried.total_loss[:3] == best.total_loss[:3]).all()
    assert hurried.total_loss[-1] == best.total_loss[-1]
    assert (np.diff(hurried.unfairness) <= problem.negligible_spread).all()
    # The others have the subspace of the fairest, and a proof of what it is worth there.
    for found, searched in zip(hurried.solutions[3:-1], best.solutions[3:-1], strict=True):
        assert found.total_loss == pytest.approx(hurried.total_loss[-1], rel=1e-14)
        assert found.certificate.status == "bounded"
        assert found.certificate.stopped_by == "time limit"
        assert found.certificate.lower_bound <= searched.total_loss
        assert searched.total_loss <= found.total_loss * (1 + 1e-14)
        assert found.certificate.tolerance == searched.certificate.tolerance


def test_a_front_without_any_time_is_its_first_point_with_what_is_proven():
    problem = gapped_problem()
    (only,) = front_over(problem, 8, solver=ExactSolver(time_limit=0.0))
    assert only.certificate.status == "bounded"
    assert only.certificate.stopped_by == "time limit"
    best = front_over(problem, 2)
    assert only.certificate.lower_bound <= best.largest[-1] <= only.certificate.value


def test_a_front_with_a_gap_that_is_enough_takes_fewer_searches():
    problem = gapped_problem()
    loose, best = (front_over(problem, 4, solver=ExactSolver(gap=gap)) for gap in (0.1, None))
    assert loose[-1].certificate.stopped_by == "gap"
    assert loose.relative_gap.max() <= 0.1
    n_searches = [sum(len(s.history["starts"]) for s in front) for front in (loose, best)]
    assert n_searches[0] < n_searches[1] / 3


@pytest.fixture(scope="module", params=["minmax", "equal"])
def front(request):
    X, groups = rows_and_groups(seed=4)
    given = {"sensitive_features": groups, "n_components": 2, "n_points": 21}
    return pareto_front(X, criterion=request.param, **given)


def test_sequence(front):
    assert len(front) == 21
    assert front[0] is front.solutions[0]
    assert front[-1] is front.solutions[20]
    assert list(front) == list(front.solutions)


def test_select_by_index(front):
    assert front.select(3) == front.select(index=3) == 3
    assert front.select(-1) == 20
    with refused(IndexError, "21 points"):
        front.select(21)
    with refused(ValueError, "index", "integer"):
        front.select(1.5)


def test_select_by_spread_is_the_cheapest_within(front):
    for allowed in (0.0, *front.spread, front.spread[3] + 1e-6, 1e9):
        chosen = front.select(max_spread=allowed)
        within = front.spread <= allowed + front.problem.negligible_spread
        assert within[chosen]
        assert front.total_loss[chosen] == front.total_loss[within].min()
    assert front.select(max_spread=front.spread[7]) == 7
    with refused(ValueError, "max_spread", "at least 0"):
        front.select(max_spread=-1.0)
    short = ParetoFront(front.problem, front.solutions[:5], front.over)
    with refused(ValueError, "No point", "spread of at most 0"):
        short.select(max_spread=0.0)


def test_select_by_the_largest_measure_is_the_cheapest_within(front):
    for i in (0, 7, 20):
        assert front.select(max_largest=front.largest[i]) == i
    with refused(ValueError, "No point", "disparity of at most 0"):
        front.select(max_largest=0.0)


def test_select_by_extra_loss_is_the_fairest_within(front):
    for allowed in (0.0, 0.001, 0.01, *front.extra_loss, 10.0):
        chosen = front.select(max_extra_loss=allowed)
        assert front.total_loss[chosen] <= (1 + allowed) * front.total_loss[0] * (1 + 1e-15)
        if chosen < 20:
            assert front.total_loss[chosen + 1] > (1 + allowed) * front.total_loss[0]
    with refused(ValueError, "max_extra_loss"):
        front.select(max_extra_loss=-0.1)


def test_the_knee_is_farthest_from_the_chord(front):
    first, last = (np.array([front.unfairness[i], front.total_loss[i]]) for i in (0, -1))
    size = np.abs(last - first)
    along = (last - first) / size
    below = [
        np.cross([*along, 0.0], [*((np.array([s, t]) - first) / size), 0.0])[2]
        for s, t in zip(front.unfairness, front.total_loss, strict=True)
    ]
    knee = front.select(knee=True)
    assert knee == int(np.argmax(np.abs(below)))
    assert 0 < knee < 20


@pytest.mark.parametrize(
    "wishes", [{}, {"index": 0, "knee": True}, {"max_spread": 1, "max_largest": 1}]
)
def test_exactly_one_wish(front, wishes):
    for method in (front.select, front.estimator):
        with refused(ValueError, "one of index"):
            method(**wishes)


def test_estimator_takes_the_same_wishes(front):
    for wish in ({"index": 4}, {"max_spread": 0.3}, {"max_extra_loss": 0.01}, {"knee": True}):
        assert front.estimator(**wish).solution_ is front[front.select(**wish)]


def test_tables(front):
    columns = front.to_dict()
    assert list(columns)[-2:] == ["disparity of group 0", "disparity of group 1"]
    frame = front.to_frame()
    assert frame.shape == (21, 9)
    assert frame.index.name == "point"
    np.testing.assert_array_equal(frame["total loss"], front.total_loss)
    np.testing.assert_array_equal(frame["relative gap"], front.relative_gap)
    # Where groups are worst off alike, of either.
    alike = front.measures >= front.largest[:, None] * (1.0 - 1e-9)
    shares = front.measures / front.problem.traces
    off = np.abs(shares - frame["share of its variance"].to_numpy()[:, None])
    assert np.where(alike, off, np.inf).min(axis=1).max() < 1e-9
    lines = repr(front).splitlines()
    assert lines[1].split()[0] == "point"
    assert [line.split()[0] for line in lines[3:11]] == "0 3 6 9 11 14 17 20".split()
    assert len({len(line) for line in lines[1:12]}) == 1
    recorded(" ".join(lines[12:]), "8 of 21 points", "21 of 21 points", "optimal")
    assert max(map(len, lines)) <= 80


def test_html_is_escaped():
    X, groups = rows_and_groups()
    page = pareto_front(X, sensitive_features=groups, n_components=2, n_points=3)._repr_html_()
    assert page.count("<tr>") == 4
    alone = ParetoFront.from_problem(Problem(GroupMoments.from_rows(X), 2))
    certificate = replace(alone[0].certificate, status="<script>")
    bad = replace(alone, solutions=(replace(alone[0], certificate=certificate),))
    assert "<script>" not in bad._repr_html_()


def test_labels_that_look_alike_keep_their_columns():
    problem = problem_of([np.diag([3.0, 1.0]), np.diag([1.0, 2.0])], 1)
    moments = replace(problem.moments, labels=(1, "1"))
    columns = ParetoFront.from_problem(replace(problem, moments=moments), 2).to_dict()
    assert list(columns)[-2:] == ["disparity of 1", "disparity of '1'"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1.0}, "share between 0 1 1.0"),
        ({"n_components": True}, "n_components"),
        ({"n_components": None}, "n_components"),
        ({"n_components": 7}, "n_features=6"),
        ({"n_points": 0}, "n_points"),
        ({"n_points": 2.5}, "n_points"),
        ({"criterion": "sum"}, "criterion"),
        ({"criterion": MinMax("range")}, "measure"),
        ({"criterion": AtMost(1.0)}, "MinMax() Equal() AtMost"),
        ({"criterion": "balanced"}, "MinMax() Equal() Balanced"),
        ({"solver": "exact"}, "ExactSolver"),
        ({"missing_labels": "no"}, "missing_labels"),
        ({"sensitive_features": None}, "sensitive_features"),
        ({"sample_weight": -1.0}, "Negative values"),
        ({"progress": True}, "progress"),
        ({"X": np.full((240, 6), np.nan)}, "NaN"),
    ],
)
def test_bad_input_is_one_sentence(wrong, message):
    X, groups = rows_and_groups()
    given = {"X": X, "sensitive_features": groups, "n_components": 2, **wrong}
    with refused(ValueError, *message.split()):
        pareto_front(**given)


def test_bad_problems_are_refused():
    problem = problem_of([np.diag([3.0, 1.0]), np.diag([1.0, 2.0])], 1)
    with refused(ValueError, "front leads"):
        ParetoFront.from_problem(problem.with_criterion(AtMost(1.0)))
    with refused(ValueError, "n_points"):
        ParetoFront.from_problem(problem, 0)
    with refused(ValueError, "progress"):
        ParetoFront.from_problem(problem, progress="bar")


def test_warnings_of_groups_point_at_the_caller():
    X, _ = rows_and_groups()
    one_row = np.where(np.arange(len(X)) == 0, "few", "many")
    for make in (pareto_front, report):
        with warned(FairnessWarning, "Too few", "'few' (1") as caught:
            make(X, sensitive_features=one_row, n_components=2, n_points=2)
        assert caught[0].filename == __file__


def test_rows_on_a_device_are_copied():
    torch = import_torch()
    X, groups = rows_and_groups()
    options = {"sensitive_features": groups, "n_components": 2, "n_points": 3}
    copied = pareto_front(torch.as_tensor(X).requires_grad_(), **options)
    np.testing.assert_allclose(copied.total_loss, pareto_front(X, **options).total_loss)

"""The front over the largest measure: from ordinary PCA to min-max, never levelling down."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from fairpca import AtMost, ExactSolver, FairPCA, MinMax, pareto_front
from fairpca.datasets import load_adult

from asked import asked, front_over
from problems import KINDS, problem_of, random_basis, random_problem
from texts import refused

pytestmark = pytest.mark.untraced

MEASURES = [
    (measure, relative) for measure in ("disparity", "loss", "variance") for relative in (0, 1)
]


def bound_of(problem, level):
    return max(problem.goal.measured.sign * level, 0.0)


def check_front(front, n_points):
    """What holds for every front over the largest measure."""
    problem, scale = front.problem, front.problem.scale
    level = problem.negligible_spread
    assert len(front) in (1, n_points)
    pca = problem.measures(problem.least_loss_basis).max()
    if len(front) > 1:
        assert front.largest[0] == pytest.approx(pca, abs=level)
        assert front.total_loss[0] == pytest.approx(
            problem.total_loss(problem.least_loss_basis), abs=1e-12 * scale
        )
    levels = np.linspace(pca, front.largest[-1], len(front))
    for solution, measures, most in zip(front, front.measures, levels, strict=True):
        certificate = solution.certificate
        np.testing.assert_allclose(measures, problem.measures(solution.basis), atol=1e-12 * scale)
        assert certificate.status in ("optimal", "bounded")
        # Nobody is above the level, and the worst off is never worse off than with PCA.
        assert measures.max() <= most + level
        assert measures.max() <= pca + level
        assert not certificate.all_worse_off
    assert (np.diff(front.total_loss) >= -1e-12 * scale).all()
    if all(solution.certificate.status == "optimal" for solution in front):
        assert (np.diff(front.total_loss, 2) >= -1e-9 * scale).all()
    # The last point is that of min-max.
    assert front[-1].certificate.goal == "minmax"
    alone = ExactSolver().solve(problem.with_criterion(MinMax(problem.goal.measure)))
    unit = max(abs(alone.certificate.value), level)
    assert front.largest[-1] == pytest.approx(alone.certificate.value, abs=1e-7 * unit)
    assert front.unfairness_bound <= front.largest[-1] + level


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize(("measure", "relative"), MEASURES)
def test_every_measure(measure, relative, k):
    rng = np.random.default_rng(k)
    for kind in (KINDS[0], KINDS[k]):
        d = int(rng.choice([3, 5, 8]))
        r = int(rng.integers(1, d))
        choices = {"measure": measure, "relative": bool(relative)}
        problem = random_problem(rng, kind, k, d, r, **choices)
        front = front_over(problem, 6)
        check_front(front, 6)
        for solution in front.solutions[1:-1:2]:
            bound = bound_of(problem, solution.certificate.measures.max())
            alone = ExactSolver().solve(problem.with_criterion(AtMost(bound, problem.goal.measure)))
            gap = solution.certificate.relative_gap + alone.certificate.relative_gap
            assert solution.total_loss == pytest.approx(alone.total_loss, rel=gap + 1e-9)
        for _ in range(100):
            other = random_basis(rng, d, r)
            largest = problem.measures(other).max()
            assert largest >= front.unfairness_bound
            for solution in front.solutions[:-1]:
                if largest <= solution.certificate.measures.max():
                    assert problem.total_loss(other) >= solution.certificate.lower_bound


@pytest.mark.parametrize("k", [2, 3])
def test_many_columns(k):
    rng = np.random.default_rng(3)
    scales = [np.diag(rng.permutation(np.geomspace(10, 0.01, 140))) for _ in range(k)]
    turns = [np.linalg.qr(np.eye(140) + 0.02 * rng.standard_normal((140, 140)))[0] for _ in scales]
    matrices = [turn @ scale @ turn.T for turn, scale in zip(turns, scales, strict=True)]
    check_front(front_over(problem_of(matrices, 2, rng.uniform(10, 90, k)), 5), 5)


def test_three_lines_by_hand():
    # With the share s of the second axis the disparities are 2 s, 1 - s and s: PCA has s = 0, and
    # the largest disparity, 1 - s, falls until it meets 2 s at s = 1/3.
    matrices = [np.diag([3.0, 1.0]), np.diag([1.0, 2.0]), np.diag([5.0, 4.0])]
    front = front_over(problem_of(matrices, 1), 5)
    check_front(front, 5)
    s = np.linspace(0, 1 / 3, 5)
    np.testing.assert_allclose(front.largest, 1 - s, atol=1e-8)
    np.testing.assert_allclose(front.measures, np.column_stack([2 * s, 1 - s, s]), atol=1e-8)
    np.testing.assert_allclose(front.total_loss, 7 / 3 + 2 * s / 3, atol=1e-8)
    assert front.unfairness_bound == pytest.approx(2 / 3, abs=1e-8)
    assert front.unfairness is front.largest


def test_no_group_pays_for_equality_alone():
    """Adult by race without its column: the spread levels all down, the largest does not."""
    adult = load_adult(sensitive="race", keep_sensitive=False, as_frame=False)
    X = StandardScaler().fit_transform(adult.data)
    given = {"sensitive_features": adult.sensitive_features, "n_components": 6, "n_points": 3}
    level, largest = (pareto_front(X, criterion=name, **given) for name in ("equal", "minmax"))
    assert level[-1].certificate.all_worse_off
    check_front(largest, 3)
    assert (largest.measures[-1] < level.measures[-1] - 0.4).all()


@pytest.mark.parametrize(
    ("sensitive", "choices"),
    [
        ("sex", {}),
        ("race", {}),
        ("race", {"relative": True}),
        ("race", {"measure": "loss", "relative": True}),
        ("race", {"measure": "variance"}),
    ],
)
def test_points_are_those_of_single_fits(sensitive, choices):
    adult = load_adult(sensitive=sensitive)
    X = StandardScaler().set_output(transform="pandas").fit_transform(adult.data)
    given = {"sensitive_features": adult.sensitive_features}
    front = pareto_front(X, n_components=5, n_points=11, criterion=asked(**choices), **given)
    check_front(front, 11)
    for i in (0, 4, 10):
        fair = front.estimator(i)
        refit = FairPCA(**fair.get_params(deep=False)).fit(X, **given)
        assert fair.solution_.total_loss == pytest.approx(refit.solution_.total_loss, rel=1e-7)
        np.testing.assert_allclose(
            fair.certificate_.measures, refit.certificate_.measures, rtol=1e-7
        )
        assert fair.certificate_.status == refit.certificate_.status
        assert fair.certificate_.goal == refit.certificate_.goal
        assert vars(fair).keys() == vars(refit).keys()
    # One number, so that it can be fitted to rows with other groups, too.
    assert isinstance(front.estimator(4).criterion.bounds, float)
    assert isinstance(front.estimator(10).criterion, MinMax)


@pytest.mark.parametrize("name", ["minmax", "equal"])
@pytest.mark.parametrize("measure", ["disparity", "loss"])
def test_a_share_is_the_dimension_of_the_estimator(name, measure):
    adult = load_adult(sensitive="race", as_frame=False)
    X = StandardScaler().fit_transform(adult.data)
    given = {"sensitive_features": adult.sensitive_features}
    criterion = asked(name, measure=measure)
    front = pareto_front(X, n_components=0.8, n_points=2, criterion=criterion, **given)
    fair = FairPCA(0.8, criterion=criterion).fit(X, **given)
    assert front.problem.n_components == fair.n_components_
    kept = 1 - front[-1].group_losses / front.problem.traces
    assert (kept >= 0.8).all()


def test_what_every_group_is_to_keep_is_asked_for_as_a_bound_is():
    matrices = [np.diag([3.0, 1.0]), np.diag([1.0, 2.0]), np.diag([5.0, 4.0])]
    problem = problem_of(matrices, 1, measure="variance")
    front = front_over(problem, 6)
    least = -front.measures.max(axis=1)
    asked_for = float((least[2] + least[3]) / 2)
    chosen = front.select(max_largest=asked_for)
    assert chosen == 3
    bounded = ExactSolver().solve(problem.with_criterion(AtMost(asked_for, "kept_variance")))
    assert -bounded.certificate.measures.max() == pytest.approx(asked_for)
    assert least[chosen] >= asked_for > least[chosen - 1]
    assert front.select(max_largest=0.0) == 0
    with refused(ValueError, "No point", "kept variance of at least 10: the largest is 1.66667"):
        front.select(max_largest=10.0)


def test_what_is_kept_is_shown_without_a_minus_sign():
    matrices = [np.diag([3.0, 1.0]), np.diag([1.0, 2.0]), np.diag([5.0, 4.0])]
    problem = problem_of(matrices, 1, measure="variance")
    front = front_over(problem, 4)
    columns = front.to_dict()
    assert next(iter(columns)) == "least kept variance"
    np.testing.assert_array_equal(columns["least kept variance"], -front.largest)
    np.testing.assert_array_equal(columns["kept variance of 2"], -front.measures[:, 2])
    numbers = [line for line in str(front).splitlines() if set(line) != {"-"}]
    assert len(numbers) < len(str(front).splitlines())
    assert " -" not in "\n".join(numbers)

"""The certificate in numbers and in words."""

import re
import warnings

import numpy as np
import pytest

from fairpca import (
    AtMost,
    Equal,
    ExactSolver,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    MinMax,
    Problem,
)
from fairpca.certificate import certify, rounded
from fairpca.datasets import load_credit
from fairpca.solvers import SOLVERS

from problems import problem_of, random_basis, random_matrices, random_problem
from texts import numbers_in, recorded, refused, warned

pytestmark = pytest.mark.untraced

LINES_AT_ODDS = [np.diag([2.0, 1.0]), [[1.5, 0.5], [0.5, 1.5]], [[1.5, -0.5], [-0.5, 1.5]]]


def kinds(certificate):
    """Of what kinds its statements are."""
    return {statement.kind for statement in certificate.statements()}


def some_problem(**choices):
    matrices = random_matrices(np.random.default_rng(0), "general", 3, 6)
    return problem_of(matrices, 2, [10.0, 30.0, 60.0], **choices)


def test_a_poor_subspace_gets_a_large_but_valid_gap():
    problem = some_problem(tolerance=1e9)
    best = ExactSolver().solve(problem)
    assert best.certificate.status == "optimal"
    poor = random_basis(np.random.default_rng(1), 6, 2)
    certificate = certify(problem, poor, best.certificate.multipliers)
    assert certificate.status == "bounded"
    assert certificate.gap >= problem.total_loss(poor) - best.total_loss > 0
    assert certificate.relative_gap == pytest.approx(certificate.gap / problem.total_loss(poor))
    percent = float(re.search(r"than ([\d.]+) %", recorded(str(certificate), "lower it"))[1])
    assert 0 <= percent - 100 * certificate.relative_gap <= 1


def test_any_multipliers_give_a_valid_bound():
    problem = some_problem()
    best = ExactSolver().solve(problem)
    rng = np.random.default_rng(2)
    for _ in range(50):
        multipliers = rng.standard_normal(3) * 10 ** rng.uniform(-3, 3)
        assert problem.dual_bound(multipliers) <= best.certificate.value + 1e-12 * problem.scale


def test_the_bound_can_be_recomputed_from_the_multipliers():
    for criterion in ("equal", "minmax"):
        problem = some_problem(criterion=criterion)
        certificate = ExactSolver().solve(problem).certificate
        recomputed = problem.dual_bound(
            certificate.multipliers, max(certificate.spread - problem.goal.tolerance, 0.0)
        )
        assert recomputed == pytest.approx(certificate.lower_bound, rel=1e-12)


def test_words_for_an_optimum():
    certificate = ExactSolver().solve(some_problem()).certificate
    recorded(str(certificate), "Proven optimal", f"{certificate.value:.6g}")
    within = ExactSolver().solve(some_problem(tolerance=0.5)).certificate
    recorded(str(within), "within 0.5")


def test_words_for_minmax():
    problem = some_problem(criterion="minmax")
    best = ExactSolver().solve(problem)
    recorded(str(best.certificate), "Proven optimal")
    poor = random_basis(np.random.default_rng(3), 6, 2)
    certificate = certify(problem, poor, best.certificate.multipliers)
    assert certificate.status == "bounded"
    assert "Proven optimal" not in recorded(str(certificate), "above", "largest")


def test_unresolved_warns_once_and_says_what_was_returned():
    rng = np.random.default_rng(4)
    groups = np.repeat([0, 1, 2], 400)
    X = np.vstack([_rows_with_moment(rng, moment) for moment in LINES_AT_ODDS])
    with warned(FairnessWarning, "none is proven impossible") as caught:
        fair = FairPCA(1, criterion="equal").fit(X, sensitive_features=groups)
    assert fair.certificate_.status == "unresolved"
    (warning,) = caught
    assert f"{fair.certificate_.spread:.6g}" in str(warning.message)
    # What was not found is what was asked for, and not the difference that was found.
    assert "with equal disparities was found" in str(warning.message)


def test_infeasible_reports_the_distance_to_the_proof():
    credit = load_credit(sensitive="marriage", as_frame=False)
    X = credit.data / credit.data.std(axis=0)
    with warned(FairnessWarning, "impossible"):
        fair = FairPCA(2, criterion="equal").fit(X, sensitive_features=credit.sensitive_features)
    certificate = fair.certificate_
    assert certificate.status == "infeasible"
    assert certificate.violation_multipliers is not None
    # The proof is reached here: the smallest spread of the relaxation is attained.
    assert 0 <= certificate.spread - certificate.violation_bound <= 1e-6


def test_nothing_is_lost_when_nothing_varies_or_all_is_kept():
    flat = problem_of(np.zeros((3, 4, 4)), 2)
    certificate = ExactSolver().solve(flat).certificate
    assert (certificate.status, certificate.relative_gap) == ("optimal", 0.0)
    matrices = random_matrices(np.random.default_rng(5), "general", 3, 4)
    for criterion in ("equal", "minmax"):
        solution = ExactSolver().solve(problem_of(matrices, 4, criterion=criterion))
        assert solution.certificate.status == "optimal"
        assert np.abs(solution.disparities).max() <= 1e-12 * np.abs(matrices).max() * 10


def test_a_wrong_number_of_starts_is_refused():
    with refused(ValueError, "n_starts"):
        ExactSolver(n_starts=0)


def _rows_with_moment(rng, moment):
    """Rows with mean zero and exactly this second moment."""
    rows = rng.standard_normal((400, 2))
    rows -= rows.mean(axis=0)
    have = np.linalg.cholesky(rows.T @ rows / len(rows))
    return rows @ np.linalg.inv(have).T @ np.linalg.cholesky(np.asarray(moment)).T


def test_a_solver_of_its_own_criterion_says_that_equality_is_not_met():
    problem = random_problem(np.random.default_rng(0), "general", 2, 5, 2)
    certificate = SOLVERS["lagrangian"]().solve(problem).certificate
    assert certificate.requested_tolerance == 0.0
    assert "unmet" in kinds(certificate)
    recorded(str(certificate), "Equal", "not reached")
    loose = SOLVERS["lagrangian"]().solve(problem.with_criterion(Equal(1e6))).certificate
    assert loose.requested_tolerance is None
    assert "unmet" not in kinds(loose)
    near = SOLVERS["lagrangian"]().solve(problem.with_criterion(Equal(1e-3))).certificate
    assert "unmet" in kinds(near)
    recorded(str(near), "within 0.001", "not reached")


# What is said for each goal and measure

MEASURES = {
    ("disparity", False): ("a disparity", "disparities"),
    ("disparity", True): ("a relative disparity", "relative disparities"),
    ("loss", False): ("a loss", "losses"),
    ("loss", True): ("a share lost", "shares lost"),
    ("variance", False): ("a kept variance", "kept variances"),
    ("variance", True): ("a share kept", "shares kept"),
}


@pytest.mark.parametrize(("measure", "relative"), MEASURES)
def test_words_for_every_goal_and_measure(measure, relative):
    choices = {"criterion": "minmax", "measure": measure, "relative": relative}
    one, many = MEASURES[measure, relative]
    poor = random_basis(np.random.default_rng(3), 6, 2)
    problem = some_problem(**choices)
    best = ExactSolver().solve(problem).certificate
    kept = measure == "variance"
    least, most = ("most", "less") if kept else ("least", "more")
    recorded(str(best), "Proven optimal", one, f"at {least}", f"{most} than")
    assert numbers_in(str(best))[:2] == [float(f"{abs(best.value):.6g}")] * 2
    assert best.covers_mixtures == (measure == "disparity")
    if not relative:
        assert numbers_in(str(best))[2] == pytest.approx(
            100 * abs(best.value) / best.variance, rel=5e-3
        )
    judged = certify(problem, poor, best.multipliers)
    way, end = ("below", "smallest one above") if kept else ("above", "largest one below")
    said = numbers_in(recorded(str(judged), f"{one} {way}", end))
    if not relative:
        del said[1]  # the share of the variance
    # Numbers are rounded to the safe side.
    assert said[0] == pytest.approx(abs(judged.value), rel=1e-5)
    assert said[1] == pytest.approx(abs(judged.lower_bound), rel=1e-5)
    assert (said[0] <= -judged.value) if kept else (said[0] >= judged.value)
    assert (said[1] >= -judged.lower_bound) if kept else (said[1] <= judged.lower_bound)

    limited = some_problem(**choices, max_extra_loss=0.05)
    found = ExactSolver().solve(limited).certificate
    recorded(str(found), one, "at most 5 % more", "least total loss")
    assert not found.covers_mixtures

    middle = (best.value + problem.measures(problem.pca_basis).max()) / 2
    met = (
        ExactSolver()
        .solve(problem.with_criterion(AtMost(abs(middle), problem.goal.measure)))
        .certificate
    )
    recorded(str(met), "Proven optimal", "bounds are met", f"{met.value:.6g}")
    harsh = abs(best.value) * (2.0 if kept else 0.5)
    missed = (
        ExactSolver().solve(problem.with_criterion(AtMost(harsh, problem.goal.measure))).certificate
    )
    recorded(str(missed), "Proven impossible", "bound", f"{missed.violation:.6g}")

    equal = ExactSolver().solve(some_problem(**choices | {"criterion": "equal"})).certificate
    recorded(str(equal), many)


def test_one_group_is_said_to_have_the_result_of_pca_only_where_it_has():
    problem = problem_of([np.diag([3.0, 1.0, 0.0])], 1)
    assert kinds(certify(problem, np.eye(3)[:, [0]], np.ones(1))) == {"one group"}
    poor = certify(problem, np.eye(3)[:, [1]], np.ones(1))
    assert "one group" not in kinds(poor)
    assert numbers_in(recorded(str(poor), "worse off than with ordinary PCA"))[:2] == [2.0, 2.0]


def test_words_when_every_group_is_worse_off():
    problem = problem_of([np.diag([3.0, 1.0, 0.0]), np.diag([2.0, 1.0, 0.0])], 1)
    poor = certify(problem, np.eye(3)[:, [2]], np.zeros(2))
    assert poor.all_worse_off
    assert numbers_in(recorded(str(poor), "Every group is worse off"))[:2] == [2.0, 3.0]


def test_numbers_above_one_have_no_power_of_ten():
    assert [rounded(x, 2, up=True) for x in (39.9, 99.5, 100.2)] == ["40", "100", "110"]
    assert [rounded(x, 2, up=False) for x in (30.0001, 3.456)] == ["30", "3.4"]
    assert rounded(1.01e-9, 2, up=True) == "1.1e-9"


def test_a_number_that_has_few_digits_is_not_rounded():
    for up in (False, True):
        assert [rounded(x, 6, up=up) for x in (0.1, 0.3, 12.5)] == ["0.1", "0.3", "12.5"]
    assert [rounded(1 / 3, 2, up=up) for up in (False, True)] == ["0.33", "0.34"]


def three_turned_groups():
    rng = np.random.default_rng(0)
    groups = np.arange(300) % 3
    X = rng.normal(size=(300, 4)) * [3, 2, 1, 1]
    X[groups == 1] = X[groups == 1][:, ::-1] * 1.5
    X[groups == 2] = X[groups == 2] @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    return X, groups


@pytest.mark.parametrize(("measure", "which"), [("kept_variance", "higher"), ("loss", "lower")])
def test_minmax_beside_equality_keeps_more_or_loses_less(measure, which):
    moments = GroupMoments.from_rows(*three_turned_groups())
    problem = Problem(moments, 2)
    if measure == "loss":  # here equal losses are larger than both groups have along the first axis
        problem = problem_of([np.diag([3.0, 2.0, 0.5]), np.diag([4.0, 1.0, 1.0])], 1)
    equal, other = (
        ExactSolver().solve(problem.with_criterion(criterion))
        for criterion in (Equal(measure=measure), MinMax(measure))
    )
    gains = equal.group_losses - other.group_losses
    assert gains.min() > 0.1
    (sentence,) = (str(one) for one in equal.certificate.statements() if one.kind == "levels down")
    recorded(sentence, f"are {which} there by")
    assert numbers_in(sentence) == pytest.approx([gains.min(), gains.max()], rel=1e-2)


@pytest.mark.parametrize("tolerance", [0.1, 0.3, 0.7, 1.1])
def test_a_tolerance_is_printed_as_it_was_given(tolerance):
    X, groups = three_turned_groups()
    fair = FairPCA(2, criterion=Equal(tolerance)).fit(X, sensitive_features=groups)
    assert f"within {tolerance} of each other" in str(fair.certificate_)


def test_rounding_of_a_group_without_variance_makes_nobody_worse_off():
    # One row of a and b each, and the mean of all is not exactly at that of a.
    X = np.array([[1e-17, 3e-17], [3.0, 1.0], [-3.0, -1.0], [1.0, -2.0], [-1.0, 2.0]])
    groups = ["a", "b", "b", "b", "b"]
    fair = FairPCA(1, criterion=Equal(1.0, "kept_variance"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = fair.fit(X, sensitive_features=groups).certificate_
    assert 0.0 < fair.group_table_.variance[0] < 1e-30
    assert certificate.change_from_pca[0] == 0.0
    assert certificate.change_from_pca[1] > 1.0
    assert not certificate.all_worse_off
    assert fair.group_table_.worse_off == ("b",)

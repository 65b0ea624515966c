"""The certificate in numbers and in words."""

import re

import numpy as np
import pytest

from fairpca import AtMost, Equal, ExactSolver, FairnessWarning, FairPCA
from fairpca.certificate import certify
from fairpca.datasets import load_credit
from fairpca.solvers import SOLVERS

from problems import problem_of, random_basis, random_matrices, random_problem
from texts import refused, warned

pytestmark = pytest.mark.untraced

LINES_AT_ODDS = [np.diag([2.0, 1.0]), [[1.5, 0.5], [0.5, 1.5]], [[1.5, -0.5], [-0.5, 1.5]]]


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
    percent = float(re.search(r"by more than ([\d.]+) %", str(certificate))[1])
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
    assert str(certificate).startswith("Proven optimal")
    assert f"{certificate.value:.6g}" in str(certificate)
    within = ExactSolver().solve(some_problem(tolerance=0.5)).certificate
    assert "within 0.5 of each other" in str(within)


def test_words_for_minmax():
    problem = some_problem(criterion="minmax")
    best = ExactSolver().solve(problem)
    assert str(best.certificate).startswith("Proven optimal: in every subspace")
    poor = random_basis(np.random.default_rng(3), 6, 2)
    certificate = certify(problem, poor, best.certificate.multipliers)
    assert certificate.status == "bounded"
    assert str(certificate).startswith("No group has a disparity above")


def test_unresolved_warns_once_and_says_what_was_returned():
    rng = np.random.default_rng(4)
    groups = np.repeat([0, 1, 2], 400)
    X = np.vstack([_rows_with_moment(rng, moment) for moment in LINES_AT_ODDS])
    with pytest.warns(FairnessWarning) as caught:
        fair = FairPCA(1, criterion="equal").fit(X, sensitive_features=groups)
    assert fair.certificate_.status == "unresolved"
    (warning,) = caught
    assert "none is proven impossible" in str(warning.message)
    assert f"{fair.certificate_.spread:.6g}" in str(warning.message)


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
    assert "Equal disparities were not reached" in str(certificate)
    loose = SOLVERS["lagrangian"]().solve(problem.with_criterion(Equal(1e6))).certificate
    assert loose.requested_tolerance is None
    assert "not reached" not in str(loose)
    near = SOLVERS["lagrangian"]().solve(problem.with_criterion(Equal(1e-3))).certificate
    assert "Disparities within 0.001 of each other were not reached" in str(near)


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
    number = f"{abs(best.value):.6g}"
    least, most = ("most", "less") if kept else ("least", "more")
    assert str(best).startswith(
        f"Proven optimal: in every subspace of this dimension some group has {one} of at {least} "
        f"{number}, and here none has {most} than {number}. Compared with ordinary PCA, "
    )
    assert ("For every mixture" in str(best)) == (measure == "disparity")
    judged = certify(problem, poor, best.multipliers)
    way, end = ("below", "smallest one above") if kept else ("above", "largest one below")
    assert str(judged).startswith(f"No group has {one} {way} ")
    assert f"no subspace of this dimension can bring the {end} " in str(judged)
    said = [abs(float(x)) for x in re.findall(r"(?:above|below) ([\d.]+\d)", str(judged))]
    # Numbers are rounded to the safe side.
    assert said[0] == pytest.approx(abs(judged.value), rel=1e-5)
    assert said[1] == pytest.approx(abs(judged.lower_bound), rel=1e-5)
    assert (said[0] <= -judged.value) if kept else (said[0] >= judged.value)
    assert (said[1] >= -judged.lower_bound) if kept else (said[1] <= judged.lower_bound)

    limited = some_problem(**choices, max_extra_loss=0.05)
    found = ExactSolver().solve(limited).certificate
    assert "of this dimension that lose at most 5 % more than the least total loss" in str(found)
    assert one in str(found)
    assert "For every mixture" not in str(found)

    middle = (best.value + problem.measures(problem.pca_basis).max()) / 2
    met = (
        ExactSolver()
        .solve(problem.with_criterion(AtMost(abs(middle), problem.goal.measure)))
        .certificate
    )
    assert str(met).startswith("Proven optimal: all bounds are met at a total loss of")
    harsh = abs(best.value) * (2.0 if kept else 0.5)
    missed = (
        ExactSolver().solve(problem.with_criterion(AtMost(harsh, problem.goal.measure))).certificate
    )
    assert str(missed).startswith(
        "Proven impossible: in every subspace of this dimension some group misses its bound by at "
    )
    assert f"Here none misses it by more than {missed.violation:.6g}" in str(missed)

    equal = ExactSolver().solve(some_problem(**choices | {"criterion": "equal"})).certificate
    assert many in str(equal)


def test_words_on_who_is_better_and_worse_off():
    problem = some_problem(criterion="minmax")
    solution = ExactSolver().solve(problem)
    certificate = solution.certificate
    change = problem.measures(solution.basis) - problem.measures(problem.pca_basis)
    better, worse = -change[change < 0], change[change > 0]
    assert len(better) + len(worse) == 3
    first = "one group is" if len(better) == 1 else f"{len(better)} groups are"
    assert f"Compared with ordinary PCA, {first} better off, by" in str(certificate)
    assert f"{better.max():.3g}" in str(certificate)
    assert f"{worse.max():.3g}: some group always is" in str(certificate)
    plain = certify(problem, problem.pca_basis, certificate.multipliers)
    assert "No group is better or worse off than with ordinary PCA." in str(plain)


def test_words_when_every_group_is_worse_off():
    problem = problem_of([np.diag([3.0, 1.0, 0.0]), np.diag([2.0, 1.0, 0.0])], 1)
    poor = certify(problem, np.eye(3)[:, [2]], np.zeros(2))
    assert poor.all_worse_off
    assert str(poor).startswith("Every group is worse off than with ordinary PCA, by 2 to 3.")
    assert "Compared with" not in str(poor)

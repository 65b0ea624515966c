"""The gap that is enough, and the time that there is."""

import numpy as np
import pytest

from fairpca import ExactSolver, FairPCA, Problem
from fairpca.data import prepare_data

from problems import problem_of, random_matrices
from texts import recorded, refused


def with_a_gap(criterion="minmax"):
    """Ten groups of which the relaxed solution is a mixture: no search closes the gap."""
    rng, matrices = np.random.default_rng(1), []
    for _ in range(10):
        turn = np.linalg.qr(rng.standard_normal((8, 8)))[0]
        matrices.append((turn / np.arange(1, 9)) @ turn.T)
    return problem_of(matrices, 3, criterion=criterion)


def n_searches(solution):
    return len(solution.history["starts"])


@pytest.mark.parametrize("criterion", ["minmax", "equal"])
def test_the_search_ends_at_the_gap_that_was_asked_for_and_says_so(criterion):
    problem = with_a_gap(criterion)
    closest = ExactSolver(6, gap=0).solve(problem)
    assert closest.certificate.status == "bounded"
    assert closest.certificate.stopped_by == ""
    enough = 2 * closest.certificate.relative_gap
    found = ExactSolver(6, gap=enough).solve(problem)
    assert found.certificate.relative_gap <= enough
    assert found.certificate.stopped_by == "gap"
    recorded(str(found.certificate), "ended", "gap", "asked for")
    assert n_searches(found) < n_searches(closest)
    # What is proven holds for what the longer search found, too.
    assert found.certificate.lower_bound <= closest.certificate.value * (1 + 1e-12)


def test_an_optimum_is_called_so_whatever_was_asked_for():
    problem = problem_of(random_matrices(np.random.default_rng(0), "general", 3, 6), 2)
    assert ExactSolver().solve(problem).certificate.status == "optimal"
    loose = ExactSolver(gap=0.5).solve(problem).certificate
    assert loose.status == "optimal"
    assert loose.stopped_by == ""


@pytest.mark.parametrize("criterion", ["minmax", "equal"])
def test_when_time_is_up_the_best_so_far_is_returned_with_what_is_proven(criterion):
    problem = with_a_gap(criterion)
    none = ExactSolver(6, time_limit=0.0).solve(problem)
    rest = ExactSolver(6).solve(problem)
    assert none.basis.shape == (8, 3)
    np.testing.assert_allclose(none.basis.T @ none.basis, np.eye(3), atol=1e-12)
    assert none.certificate.status in ("bounded", "unresolved")
    assert none.certificate.stopped_by == "time limit"
    recorded(str(none.certificate), "time limit")
    assert none.certificate.lower_bound <= rest.certificate.value * (1 + 1e-12)
    assert n_searches(none) < n_searches(rest)
    plenty = ExactSolver(6, time_limit=1e6).solve(problem)
    assert plenty.certificate.value == rest.certificate.value


@pytest.mark.parametrize("name", ["gap", "time_limit"])
@pytest.mark.parametrize("value", [-1, float("nan"), "1"])
def test_nonsense_is_refused(name, value):
    with refused(ValueError, name, "at least 0"):
        ExactSolver(**{name: value})


def test_progress_is_told_the_bound_and_the_value_and_may_stop_the_search():
    problem, told = with_a_gap(), []

    def progress(bound, value):
        told.append((bound, value))
        return len(told) == 3

    found = ExactSolver(6).solve(problem, progress)
    assert len(told) == n_searches(found) == 3
    assert found.certificate.stopped_by == "callback"
    bounds, values = np.array(told).T
    assert (bounds <= values).all()
    assert (np.diff(values) <= 0).all()
    assert values[-1] == pytest.approx(found.certificate.value, rel=1e-9)
    assert bounds[-1] == pytest.approx(found.certificate.lower_bound, rel=1e-6)


def test_the_total_loss_that_is_told_is_that_of_the_certificate():
    problem, told = with_a_gap("equal"), []
    found = ExactSolver(6).solve(problem, lambda **now: told.append(now))
    losses = [now["value"] for now in told if now]
    assert losses[-1] == pytest.approx(found.certificate.value, rel=1e-9)


def test_a_fit_tells_its_listener():
    rng, told = np.random.default_rng(0), []
    X = rng.standard_normal((400, 8)) @ rng.standard_normal((8, 8))
    codes = np.arange(400) % 12

    def listener(done, total, **found):
        told.append((done, total, *sorted(found)))

    FairPCA(3, criterion="minmax").fit_data(prepare_data(X, codes), listener)
    assert told[0] == (1, 80, "bound", "value")


def test_many_columns_end_at_a_hundredth_of_a_thousandth():
    # Beyond 120 columns 1e-5 is enough unless said; a gap that is larger stays as it is.
    rng = np.random.default_rng(5)
    core = random_matrices(rng, "general", 8, 6)
    wide = np.zeros((8, 310, 310))
    wide[:, :6, :6] = core
    problem = problem_of(wide, 2, criterion="minmax")
    assert isinstance(problem, Problem)
    usual, most = ExactSolver().solve(problem), ExactSolver(gap=0).solve(problem)
    assert usual.certificate.gap <= most.certificate.gap + 1e-5 * most.certificate.value

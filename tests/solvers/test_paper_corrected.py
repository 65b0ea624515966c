"""Sentences of the paper that do not hold as printed: each test fails if the sentence were true."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from fairpca import GroupMoments, ParetoDescent, Problem
from fairpca._linalg.dense import polar_factor
from fairpca.datasets import load_adult, load_credit
from fairpca.objectives import PaperObjectives, descent_direction
from fairpca.solvers.pareto import _appendix_alpha, descend

from problems import random_problem


def standardised(load, sensitive):
    bunch = load(sensitive=sensitive, as_frame=False)
    return StandardScaler().fit_transform(bunch.data), bunch.sensitive_features


def with_sums(load, sensitive, r=5):
    moments = GroupMoments.from_rows(*standardised(load, sensitive))
    return Problem(moments, r, criterion="equal", aggregation="sum")


def main_texts_gamma(matrices):
    """The smallest eigenvalue of a group minus the largest of another, where it is largest."""
    values = np.linalg.eigvalsh(matrices)
    return values[:, 0].max() - values[:, -1].min()


# Section 5.1, the regularisation


def test_gamma_of_the_main_text_can_be_positive():
    assert main_texts_gamma(np.array([10.0 * np.eye(3), np.eye(3)])) == 9.0
    assert_allclose(main_texts_gamma(with_sums(load_adult, "race").matrices), 2841.8, atol=0.1)
    # Usually it is not, and then asks for no regularisation at all.
    assert main_texts_gamma(with_sums(load_adult, "sex").matrices) < 0.0


def test_the_printed_alpha_does_not_make_the_total_loss_convex_with_sums():
    # tr(A) - tr(U'AU) + alpha |U|^2 is convex where alpha is the largest eigenvalue of A at least.
    problem = with_sums(load_adult, "sex")
    alpha = _appendix_alpha(problem, each_pair=False)
    assert alpha < 0.6 * np.linalg.eigvalsh(problem.total_matrix)[-1]


# Algorithm 1


@pytest.mark.parametrize(
    ("load", "sensitive"), [(load_adult, "sex"), (load_adult, "race"), (load_credit, "education")]
)
def test_the_direction_vanishes_with_the_line_search_and_not_with_the_printed_steps(
    load, sensitive
):
    # With equation 16 the first subspace whose differences are zero to rounding ends the run.
    problem = Problem(GroupMoments.from_rows(*standardised(load, sensitive)), 5, criterion="equal")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        searched, printed = (
            ParetoDescent.as_printed(**step).solve(problem).history["runs"][0]
            # How many steps it takes is decided by rounding: from 86 to more than 500.
            for step in ({"step": "equation 16", "max_iter": 2000}, {"max_iter": 300})
        )
    assert searched.stationary
    assert searched.norms[-1] == 0.0
    assert not printed.stationary
    assert printed.norms.min() > 0.04


@pytest.mark.parametrize(
    ("load", "sensitive", "least"),
    [
        (load_adult, "sex", 0.2),
        (load_adult, "race", 0.9),
        (load_credit, "sex", 0.1),
        (load_credit, "marriage", 0.2),
    ],
)
def test_lemma_1_does_not_survive_the_projection(load, sensitive, least):
    # What the projection leaves of a step, to first order, is its tangent part. Along the direction
    # every objective falls, along its tangent part some objective rises.
    problem = Problem(GroupMoments.from_rows(*standardised(load, sensitive)), 5, criterion="equal")
    basis = polar_factor(np.random.default_rng(0).normal(size=(problem.moments.n_features, 5)))
    rises, steps = 0, 300
    for t in range(1, steps + 1):
        _, gradients = PaperObjectives().evaluate(problem, basis)
        direction = descent_direction(gradients.reshape(len(gradients), -1))[0].reshape(basis.shape)
        assert np.einsum("mia,ia->m", gradients, direction).max() < 0.0
        turned = basis.T @ direction
        tangent = direction - basis @ (turned + turned.T) / 2.0
        rises += np.einsum("mia,ia->m", gradients, tangent).max() > 0.0
        basis = polar_factor(basis + direction / np.sqrt(t))
    assert rises >= least * steps


def test_the_program_of_appendix_b_has_the_solution_zero():
    # With epsilon in R+, as printed: nothing is less than zero, and D = 0 attains it.
    gradients = np.random.default_rng(0).normal(size=(3, 6))
    found = {}
    for positive in (True, False):
        direction, epsilon = cp.Variable(6), cp.Variable(nonneg=positive)
        goal = cp.Minimize(epsilon + cp.sum_squares(direction) / 2)
        cp.Problem(goal, [gradients @ direction <= epsilon]).solve(solver=cp.CLARABEL)
        found[positive] = direction.value
    # The solver's 1e-8 are of |D|^2 / 2.
    assert_allclose(found[True], 0.0, atol=1e-3)
    expected, _ = descent_direction(gradients, normalize=False)
    assert_allclose(found[False], expected, atol=1e-3)
    assert np.linalg.norm(expected) > 0.1


def test_the_third_condition_of_appendix_b_is_an_inequality():
    # Printed as tr(D'G_i) = epsilon for every i; where a multiplier is zero it is less.
    gradients = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 3.0]])
    direction, weights = descent_direction(gradients, normalize=False)
    slopes = gradients @ direction
    assert_allclose(weights, [0.5, 0.5, 0.0], atol=1e-12)
    assert_allclose(slopes, [-0.5, -0.5, -3.0])


# The theorems


def test_theorem_1_needs_more_than_convex_objectives_with_a_bound():
    # exp is convex and bounded below, and every x is dominated by x - 1. (Bounded on both sides, a
    # convex function on the whole space is constant.) For fair PCA orthonormal bases are a compact
    # set, and continuity suffices.
    x = np.linspace(-30.0, 30.0, 601)
    assert (np.exp(x - 1.0) < np.exp(x)).all()
    assert (np.exp(x - 1.0) + np.exp(x + 1.0) > 2.0 * np.exp(x)).all()


def test_theorem_3_is_false_for_algorithm_1():
    # The strongest reading: differences themselves, so that all objectives are quadratic, their
    # constants L exact and alpha >= gamma makes them convex; gradients as they are. On orthonormal
    # bases the normal part of each gradient, 2 alpha U and more, stays, so D does not vanish.
    problem = random_problem(np.random.default_rng(0), "general", 2, 6, 2)
    first, second = problem.matrices
    forms = np.array([-problem.total_matrix, second - first, first - second])
    alpha = max(float(-np.linalg.eigvalsh(forms).min()), main_texts_gamma(problem.matrices), 0.0)
    forms = 2.0 * (forms + 1.1 * alpha * np.eye(6))
    assert np.linalg.eigvalsh(forms).min() > 0.0  # convex
    constants = np.array([problem.traces @ problem.weights, 0.0, 0.0])

    def values(basis):
        return constants + 0.5 * np.einsum("ia,mij,ja->m", basis, forms, basis)

    steps, beta = 1000, 0.5
    run = descend(
        lambda basis: (values(basis), forms @ basis),
        values,
        polar_factor(np.random.default_rng(1).normal(size=(6, 2))),
        retract=polar_factor,
        step="equation 16",
        step_size=1.0,
        normalize=False,
        armijo=beta,
        zero=np.zeros(3),
        tol=0.0,
        max_iter=steps,
    )
    assert len(run.steps) == steps
    lipschitz = np.linalg.eigvalsh(forms).max()
    c = beta * min(1.0, (1.0 - beta) / lipschitz)
    # All values are positive, so that zero is a lower bound.
    assert run.values.min() > 0.0
    bound = np.sqrt(run.values[0].max() / (c * steps))
    assert run.norms.min() > 5.0 * bound


def test_theorem_2_bounds_no_single_objective():
    # |x|^2 / 2 and |x - c|^2 / 2, from a Pareto optimal point near c, against the optimum of the
    # first: D = 0, nothing moves, the weighted sum is no larger, and the first objective stays.
    centre = np.array([1.0, 0.0])
    start = 0.9 * centre
    gradients = np.array([start, start - centre])
    direction, weights = descent_direction(gradients, normalize=False)
    assert_allclose(direction, 0.0, atol=1e-15)
    excess = np.array([start @ start, (start - centre) @ (start - centre) - centre @ centre]) / 2.0
    assert weights @ excess <= 0.0
    # R = 0.9, and the gradients' lengths, which the proof calls L, are at most 1.
    steps = 10_000
    assert excess[0] > 50.0 * 0.9 / (2.0 * np.sqrt(steps))


def test_smoothness_with_a_squared_distance_holds_for_no_linear_gradient():
    # |grad f(U) - grad f(V)| <= L |U - V|^2, as printed: false for any L where U and V are close.
    matrix = np.diag([2.0, 1.0])
    apart = 1e-6 * np.ones((2, 1))
    moved = np.linalg.norm(matrix @ apart)
    assert moved <= 2.0 * np.linalg.norm(apart)
    assert moved > 1e5 * np.linalg.norm(apart) ** 2


# Definition 2


@pytest.mark.parametrize("aggregation", ["mean", "sum"])
def test_no_group_benefits(aggregation):
    # A disparity error is a loss minus the least possible loss.
    rng = np.random.default_rng(0)
    for kind in ("general", "low rank", "other scales", "diagonal"):
        problem = random_problem(rng, kind, 4, 7, 3, aggregation=aggregation)
        bases = [polar_factor(rng.normal(size=(7, 3))) for _ in range(50)]
        bases += [problem.pca_basis, *(np.linalg.eigh(A)[1][:, -3:] for A in problem.matrices)]
        disparities = np.array([problem.disparities(basis) for basis in bases])
        assert disparities.min() >= -1e-12 * problem.traces.max()

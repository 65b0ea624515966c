"""Every gradient against central differences, every value against its definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fairpca import GroupMoments, Problem
from fairpca.objectives import (
    LossDifference,
    MeanDistance,
    NashObjective,
    PaperObjectives,
    SeparateObjectives,
    SmallestVariance,
    TotalLoss,
)

from problems import random_basis

OTHERS = [TotalLoss(), SmallestVariance(), NashObjective(), LossDifference(), MeanDistance()]


def rows_and_groups(rng, k=4, d=6):
    groups = rng.integers(0, k, 300)
    X = rng.standard_normal((300, d)) * rng.uniform(0.2, 1.5, (k, d))[groups]
    return X + rng.standard_normal((k, d))[groups], groups


def problem_from_rows(rng, **choices):
    X, groups = rows_and_groups(rng)
    return Problem(GroupMoments.from_rows(X, groups), 2, **choices), X, groups


def central_differences(value, basis, h):
    """Derivative of each of several values by each entry of the basis."""
    slopes = []
    for i in range(basis.shape[0]):
        for j in range(basis.shape[1]):
            step = np.zeros_like(basis)
            step[i, j] = h
            slopes.append((value(basis + step) - value(basis - step)) / (2 * h))
    return np.array(slopes).T.reshape(-1, *basis.shape)


@pytest.mark.parametrize("centering", ["global", "group"])
@pytest.mark.parametrize("loss", ["mean", "sum"])
@pytest.mark.parametrize("penalty", ["squared", "absolute", "exponential"])
@pytest.mark.parametrize("disparity", ["pairwise", "single"])
def test_gradients_of_the_papers_objectives(disparity, penalty, loss, centering):
    rng = np.random.default_rng(0)
    X, groups = rows_and_groups(rng)
    if penalty == "exponential" and loss == "sum":
        X = X / 20  # the exponential of a sum over many rows leaves the range of numbers
    problem = Problem(GroupMoments.from_rows(X, groups), 2, loss=loss, centering=centering)
    objectives = PaperObjectives(disparity, penalty, alpha=0.3)
    basis = random_basis(rng, 6, 2)
    values, gradients = objectives.evaluate(problem, basis)
    k = problem.n_groups
    assert (
        len(values)
        == len(objectives.names(problem))
        == 1 + (k * (k - 1) // 2, k)[disparity == "single"]
    )
    assert_allclose(values, objectives.values(problem, basis), rtol=1e-14)
    expected = central_differences(lambda U: objectives.values(problem, U), basis, 1e-5)
    for found, wanted in zip(gradients, expected, strict=True):
        assert np.linalg.norm(found - wanted) <= 1e-6 * np.linalg.norm(wanted)


@pytest.mark.parametrize("objective", OTHERS, ids=lambda objective: objective.name)
@pytest.mark.parametrize("loss", ["mean", "sum"])
def test_gradients_of_other_objectives(objective, loss):
    rng = np.random.default_rng(1)
    problem, *_ = problem_from_rows(rng, loss=loss)
    basis = random_basis(rng, 6, 2)
    found = objective.gradient(problem, basis)
    (wanted,) = central_differences(lambda U: np.array([objective.value(problem, U)]), basis, 1e-5)
    assert np.linalg.norm(found - wanted) <= 1e-6 * np.linalg.norm(wanted)


def test_values_are_what_the_rows_say():
    problem, X, groups = problem_from_rows(np.random.default_rng(2))
    basis = random_basis(np.random.default_rng(3), 6, 2)
    centred = X - X.mean(axis=0)
    left = np.square(centred - centred @ basis @ basis.T).sum(axis=1)
    losses = np.array([left[groups == g].mean() for g in range(4)])
    kept = np.array([np.square(centred[groups == g] @ basis).sum(axis=1).mean() for g in range(4)])
    means = np.array([(X[groups == g] @ basis).mean(axis=0) for g in range(4)])
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    assert TotalLoss().value(problem, basis) == pytest.approx(left.mean())
    assert SmallestVariance().value(problem, basis) == pytest.approx(-kept.min())
    assert NashObjective().value(problem, basis) == pytest.approx(-np.log(np.prod(kept)))
    assert LossDifference().value(problem, basis) == pytest.approx(
        sum((losses[i] - losses[j]) ** 2 for i, j in pairs) / 2
    )
    assert MeanDistance().value(problem, basis) == pytest.approx(
        sum(np.square(means[i] - means[j]).sum() for i, j in pairs)
    )
    own = problem.own_losses
    values = PaperObjectives("pairwise", "absolute").values(problem, basis)
    assert_allclose(
        values[1:], [abs((losses - own)[i] - (losses - own)[j]) for i, j in pairs], atol=1e-12
    )


def test_objectives_written_one_by_one_become_a_vector():
    problem, *_ = problem_from_rows(np.random.default_rng(4))
    basis = random_basis(np.random.default_rng(5), 6, 2)
    vector = SeparateObjectives(OTHERS)
    values, gradients = vector.evaluate(problem, basis)
    assert vector.names(problem)[0] == "total loss"
    assert values[2] == NashObjective().value(problem, basis)
    assert_allclose(gradients[4], MeanDistance().gradient(problem, basis))


def test_unknown_choices_are_refused():
    with pytest.raises(ValueError, match="'squared', 'absolute', 'exponential'"):
        PaperObjectives(penalty="cubic")
    with pytest.raises(ValueError, match="'pairwise', 'single'"):
        PaperObjectives("triple")

"""Every gradient against central differences, every value against its definition."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fairpca import GroupMoments, Problem
from fairpca.objectives import (
    DISPARITIES,
    MeanDistance,
    PaperObjectives,
    SeparateObjectives,
    TotalLoss,
    descent_direction,
)

from devices import import_torch
from problems import random_basis
from texts import refused

OTHERS = [TotalLoss(), MeanDistance()]


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
@pytest.mark.parametrize("disparity", DISPARITIES)
def test_gradients_of_the_papers_objectives(disparity, penalty, loss, centering):
    if disparity == "pooled" and penalty != "squared":
        with refused(ValueError, "penalty='squared'"):
            PaperObjectives(disparity, penalty)
        return
    rng = np.random.default_rng(0)
    X, groups = rows_and_groups(rng)
    if penalty == "exponential" and loss == "sum":
        X = X / 20  # the exponential of a sum over many rows leaves the range of numbers
    problem = Problem(GroupMoments.from_rows(X, groups), 2, aggregation=loss, centering=centering)
    objectives = PaperObjectives(disparity, penalty, alpha=0.3)
    basis = random_basis(rng, 6, 2)
    values, gradients = objectives.evaluate(problem, basis)
    k = problem.n_groups
    numbers = {"pairwise": k * (k - 1) // 2, "adjacent": k - 1, "pooled": 1, "single": k}
    assert len(values) == len(objectives.names(problem)) == 1 + numbers[disparity]
    assert_allclose(values, objectives.values(problem, basis), rtol=1e-14)
    expected = central_differences(lambda U: objectives.values(problem, U), basis, 1e-5)
    for found, wanted in zip(gradients, expected, strict=True):
        assert np.linalg.norm(found - wanted) <= 1e-6 * np.linalg.norm(wanted)


@pytest.mark.parametrize("objective", OTHERS, ids=lambda objective: objective.name)
@pytest.mark.parametrize("loss", ["mean", "sum"])
def test_gradients_of_other_objectives(objective, loss):
    rng = np.random.default_rng(1)
    problem, *_ = problem_from_rows(rng, aggregation=loss)
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
    means = np.array([(X[groups == g] @ basis).mean(axis=0) for g in range(4)])
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    assert TotalLoss().value(problem, basis) == pytest.approx(left.mean())
    assert MeanDistance().value(problem, basis) == pytest.approx(
        sum(np.square(means[i] - means[j]).sum() for i, j in pairs)
    )
    own = problem.own_losses
    values = PaperObjectives("pairwise", "absolute").values(problem, basis)
    assert_allclose(
        values[1:], [abs((losses - own)[i] - (losses - own)[j]) for i, j in pairs], atol=1e-12
    )


def test_the_forms_of_pairwise_objectives_go_together():
    problem, *_ = problem_from_rows(np.random.default_rng(6))
    basis = random_basis(np.random.default_rng(7), 6, 2)
    vectors = [PaperObjectives(kind) for kind in ("pairwise", "adjacent", "pooled")]
    pairs, adjacent, pooled = (vector.evaluate(problem, basis) for vector in vectors)
    assert_allclose(pooled[0], [pairs[0][0], pairs[0][1:].sum()])
    assert_allclose(pooled[1], [pairs[1][0], pairs[1][1:].sum(axis=0)])
    ordered = np.sort(problem.disparities(basis))[::-1]
    assert_allclose(adjacent[0][1:], np.square(ordered[:-1] - ordered[1:]) / 2)
    names = [vector.names(problem) for vector in vectors]
    assert [len(some) for some in names] == [1 + 6, 1 + 3, 1 + 1]
    assert names[1][1] == "largest 1 - 2"


def test_objectives_written_one_by_one_become_a_vector():
    problem, *_ = problem_from_rows(np.random.default_rng(4))
    basis = random_basis(np.random.default_rng(5), 6, 2)
    vector = SeparateObjectives(OTHERS)
    values, gradients = vector.evaluate(problem, basis)
    assert vector.names(problem)[0] == "total loss"
    assert values[1] == MeanDistance().value(problem, basis)
    assert_allclose(gradients[1], MeanDistance().gradient(problem, basis))


def test_unknown_choices_are_refused():
    with refused(ValueError, "'squared', 'absolute', 'exponential'"):
        PaperObjectives(penalty="cubic")
    with refused(ValueError, "'pairwise', 'adjacent', 'pooled', 'single'"):
        PaperObjectives("triple")


def simplex_grid(m, parts):
    """All weights that are multiples of 1 / parts and sum to one."""
    bars = np.array(list(combinations(range(parts + m - 1), m - 1)))
    edges = np.pad(bars, ((0, 0), (1, 0)), constant_values=-1)
    edges = np.pad(edges, ((0, 0), (0, 1)), constant_values=parts + m - 1)
    return (np.diff(edges, axis=1) - 1) / parts


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("normalize", [True, False])
def test_no_combination_on_a_grid_is_shorter_than_the_descent_direction(m, normalize):
    rng = np.random.default_rng(m)
    for _ in range(20):
        gradients = rng.standard_normal((m, 5)) * rng.uniform(0.1, 10, (m, 1)) + 0.3
        direction, weights = descent_direction(gradients, normalize=normalize)
        rows = gradients
        if normalize:
            rows = gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
        assert weights.min() >= 0
        assert_allclose(weights.sum(), 1)
        assert_allclose(direction, -weights @ rows, atol=1e-12)
        lengths = np.linalg.norm(simplex_grid(m, 24) @ rows, axis=1)
        nearest = np.linalg.norm(rows, axis=1).max() * m / 24  # from any point to one of the grid
        assert lengths.min() - nearest <= np.linalg.norm(direction) <= lengths.min() + 1e-12


@pytest.mark.parametrize("m", [1, 2, 5, 20])
@pytest.mark.parametrize("normalize", [True, False])
def test_all_objectives_fall_along_the_descent_direction(m, normalize):
    rng = np.random.default_rng(m)
    centres, curvatures = rng.standard_normal((m, 40)) + 1, rng.uniform(0.1, 10, (m, 40))
    point = np.full(40, -1.0)

    def values(at):
        return 0.5 * (curvatures * np.square(at - centres)).sum(axis=1)

    gradients = curvatures * (point - centres)
    before = gradients.copy()
    direction, _ = descent_direction(gradients, normalize=normalize)
    assert_array_equal(gradients, before)
    h = 1e-6
    rates = (values(point + h * direction) - values(point - h * direction)) / (2 * h)
    if normalize:
        rates /= np.linalg.norm(gradients, axis=1)
    assert direction @ direction > 1e-3
    assert rates.max() <= -direction @ direction * (1 - 1e-6)


def test_descent_directions_where_the_answer_is_known():
    g = np.array([3.0, 4.0])
    direction, weights = descent_direction([g])  # one objective: the steepest way down
    assert_allclose(direction, -g / 5)
    assert_allclose(weights, [1.0])
    assert_allclose(descent_direction([g], normalize=False)[0], -g)
    assert_allclose(descent_direction([g, 7 * g])[0], -g / 5)  # parallel
    assert_allclose(descent_direction([g, 7 * g], normalize=False)[0], -g)
    assert_allclose(descent_direction([g, -7 * g])[0], 0, atol=1e-15)  # opposite
    # Unequal lengths: the point of the segment from (2, 0) to (0, 1) that is nearest to zero.
    assert_allclose(descent_direction([[2.0, 0], [0, 1.0]], normalize=False)[0], [-0.4, -0.8])


@pytest.mark.parametrize("others", [0, 1, 3])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_vanished_gradient_leaves_no_direction(others, normalize):
    gradients = np.random.default_rng(0).standard_normal((others + 1, 6)) + 2
    gradients[0] = 0.0
    direction, weights = descent_direction(gradients, normalize=normalize)
    assert_allclose(direction, 0, atol=1e-15)
    assert_allclose(weights, np.eye(others + 1)[0], atol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "p"), [(1, 7), (2, 50), (5, 3), (20, 3000)])
def test_tensors_have_the_direction_of_arrays(m, p, dtype):
    torch = import_torch()
    gradients = np.random.default_rng(p).standard_normal((m, p)) + 0.5
    gradients[m // 2] *= 100
    tensor = torch.tensor(gradients, dtype=getattr(torch, dtype), requires_grad=True)
    for normalize in (True, False):
        direction, weights = descent_direction(tensor, normalize=normalize)
        wanted, _ = descent_direction(gradients, normalize=normalize)
        assert direction.dtype == tensor.dtype
        assert direction.device == tensor.device
        assert not direction.requires_grad
        size = np.linalg.norm(gradients, axis=1).min() if not normalize else 1.0
        error = np.linalg.norm(direction.numpy() - wanted)
        assert error <= size * {"float32": 1e-4, "float64": 1e-7}[dtype]
        assert isinstance(weights, np.ndarray)
        assert_allclose(weights.sum(), 1)


def test_tensors_of_low_precision_keep_their_digits():
    # Products in float32 are all 1 or -1 here: they do not tell the first row from the third.
    torch = import_torch()
    rows = [[1.0, 2e-4], [-1.0, 1e-4], [1.0, 1e-4]]
    gradients = torch.tensor(rows, dtype=torch.float32)
    direction, weights = descent_direction(gradients, normalize=False)
    assert_allclose(weights, [0.0, 0.5, 0.5], atol=1e-6)
    assert_allclose(direction.numpy(), [0.0, -1e-4], atol=1e-6)


@pytest.mark.parametrize(
    ("gradients", "words"),
    [
        ([1.0, 2.0], "array shape"),
        (np.empty((0, 3)), "array shape"),
        ([[np.ones((2, 2)), np.ones(2)], [np.ones((2, 2)), np.ones(2)]], "flatten"),
        ([[1.0, np.nan]], "finite"),
        ([[1.0, np.inf], [1.0, 2.0]], "finite"),
    ],
)
def test_gradients_that_are_refused(gradients, words):
    with refused(ValueError, *words.split()):
        descent_direction(gradients)


def test_tensors_that_are_refused():
    torch = import_torch()
    with refused(ValueError, "float32", "float64", "torch.float16"):
        descent_direction(torch.ones((2, 3), dtype=torch.float16))
    with refused(ValueError, "finite"):
        descent_direction(torch.tensor([[1.0, float("nan")], [0.0, 1.0]]))
    with refused(ValueError, "shape"):
        descent_direction(torch.ones(3))


@pytest.mark.parametrize("normalize", [True, False])
def test_the_direction_of_huge_and_tiny_gradients_is_a_number(normalize):
    direction, weights = descent_direction([[1e-200, 0.0], [0.0, 1e200]], normalize=normalize)
    assert np.isfinite(direction).all()
    if normalize:
        np.testing.assert_allclose(direction, [-0.5, -0.5])
    else:
        np.testing.assert_allclose(weights, [1.0, 0.0], atol=1e-12)
    with refused(ValueError, "normalize"):
        descent_direction([[1.0]], normalize="no")

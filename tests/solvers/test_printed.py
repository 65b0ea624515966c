"""The paper's algorithm as printed, against a second implementation from its text alone."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from fairpca import GroupMoments, ParetoDescent, Problem
from fairpca._linalg.dense import polar_factor
from fairpca.datasets import load_adult, load_credit
from fairpca.objectives import PaperObjectives
from fairpca.solvers.pareto import ARMIJO, _appendix_alpha

from printed import pareto_fair_pca
from problems import random_problem

STEPS = 50

DATA = {
    "Adult by sex": (load_adult, "sex"),
    "Adult by race": (load_adult, "race"),
    "Credit by marriage": (load_credit, "marriage"),
}


@pytest.fixture(scope="module")
def tables():
    """Centred rows and labels of a tenth of each table, and of groups that were made up."""
    found = {}
    for name, (load, sensitive) in DATA.items():
        bunch = load(sensitive=sensitive, as_frame=False)
        labels = bunch.sensitive_features[::10]
        found[name] = StandardScaler().fit_transform(bunch.data[::10]), labels
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], [30, 50, 20])
    X = rng.normal(size=(100, 6)) * np.where(labels == "a", 2.0, 1.0)[:, None]
    X[labels == "b", :3] *= 3.0
    found["made up"] = X - X.mean(axis=0), labels
    return found


def run_both(table, start, r, **choices):
    """End points after every number of steps, of the library and of the second implementation."""
    X, labels = table
    loss = choices.pop("loss")
    problem = Problem(GroupMoments.from_rows(X, labels), r, criterion="equal", aggregation=loss)
    rng = np.random.default_rng(1)
    first = problem.pca_basis if start == "pca" else polar_factor(rng.normal(size=(X.shape[1], r)))
    alpha = choices.get("alpha", 0.0)
    ours = ParetoDescent.as_printed(first, STEPS, **choices)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = ours.solve(problem)
    groups = [X[labels == label] for label in problem.moments.labels]
    path = pareto_fair_pca(
        groups,
        first,
        STEPS,
        pairwise=choices.get("objectives", "pairwise") == "pairwise",
        psi=choices.get("penalty", "squared"),
        alpha=_appendix_alpha(problem, each_pair=alpha == "pairs") if alpha else 0.0,
        means=loss == "mean",
        beta=ARMIJO if choices.get("step") == "equation 16" else None,
    )
    (run,) = solution.history["runs"]
    vector = ours._vector(problem)
    return problem, run, path, [vector.values(problem, basis) for basis in path]


@pytest.mark.parametrize(
    ("name", "start", "r", "choices"),
    [
        ("Adult by sex", "pca", 2, {}),
        ("Adult by sex", "pca", 5, {"loss": "sum"}),
        ("Adult by sex", "random", 2, {}),
        ("Adult by sex", "random", 10, {"loss": "sum"}),
        ("Adult by sex", "random", 5, {"alpha": "auto"}),
        ("Adult by sex", "pca", 5, {"alpha": "pairs", "loss": "sum"}),
        ("Adult by sex", "pca", 5, {"objectives": "single"}),
        ("Adult by sex", "random", 5, {"penalty": "absolute"}),
        ("Adult by sex", "random", 3, {"step": "equation 16"}),
        ("Credit by marriage", "pca", 2, {}),
        ("Credit by marriage", "pca", 5, {"alpha": "pairs"}),
        ("Credit by marriage", "random", 5, {"objectives": "single", "loss": "sum"}),
        ("Credit by marriage", "random", 10, {"penalty": "absolute"}),
        ("Credit by marriage", "pca", 3, {"penalty": "exponential"}),
        ("Adult by race", "pca", 2, {}),
        ("made up", "random", 2, {}),
        ("made up", "random", 2, {"alpha": "auto", "loss": "sum"}),
        ("made up", "pca", 3, {"alpha": "pairs", "penalty": "absolute"}),
        ("made up", "pca", 2, {"objectives": "single", "penalty": "absolute"}),
        ("made up", "random", 3, {"objectives": "single", "penalty": "exponential"}),
        ("made up", "random", 3, {"step": "equation 16", "alpha": "auto"}),
    ],
)
def test_the_path_is_that_of_a_second_implementation(tables, name, start, r, choices):
    X, labels = tables[name]
    choices = {"loss": "mean", **choices}
    _, run, path, values = run_both((X, labels), start, r, **choices)
    assert len(run.steps) == STEPS
    # A path can be sensitive: the second implementation's own differs by so much if the last digit
    # of the rows is another.
    rng = np.random.default_rng(0)
    rounded = X * (1.0 + np.finfo(float).eps * rng.integers(-1, 2, X.shape))
    _, _, path_of_rounded, values_of_rounded = run_both((rounded, labels), start, r, **choices)
    least = 1e-10 * np.abs(values).max()
    moved = 10 * np.abs(np.array(values_of_rounded) - values).max()
    assert moved <= 1e-8 * np.abs(values).max()
    assert_allclose(run.values, values, rtol=1e-10, atol=max(least, moved))
    moved = 10 * np.abs(path_of_rounded[-1] - path[-1]).max()
    assert_allclose(run.point, path[-1], rtol=0, atol=max(1e-10, moved))


def test_as_printed_takes_exactly_as_many_steps_and_says_nothing():
    problem = random_problem(np.random.default_rng(2), "general", 3, 6, 2)
    for steps in (1, 7, 200):
        solution = ParetoDescent.as_printed(max_iter=steps).solve(problem)  # warnings are errors
        (run,) = solution.history["runs"]
        assert len(run.steps) == solution.n_iter == steps
        assert_allclose(run.steps, 1 / np.sqrt(np.arange(1, steps + 1)))
    assert ParetoDescent.as_printed() == ParetoDescent(
        "pairwise", geometry="euclidean", step="sqrt", start="pca", tol=0.0, max_iter=1000
    )


def test_equation_16_is_tested_before_the_projection():
    # Before it, U + eta D is longer than orthonormal, and keeps more: the condition asks for less.
    problem = random_problem(np.random.default_rng(3), "general", 2, 6, 2)
    start = polar_factor(np.random.default_rng(4).normal(size=(6, 2)))
    vector = PaperObjectives()
    solver = ParetoDescent.as_printed(start, 1, step="equation 16")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        (run,) = solver.solve(problem).history["runs"]
    (eta,) = run.steps
    values, gradients = vector.evaluate(problem, start)
    scaled = gradients / np.linalg.norm(gradients, axis=(1, 2), keepdims=True)
    direction = -np.tensordot(run.multipliers[0], scaled, axes=1)
    slopes = np.einsum("mia,ia->m", gradients, direction)

    def falls(length):
        trial = vector.values(problem, start + length * direction)
        return (trial <= values + ARMIJO * length * slopes).all()

    assert falls(eta)
    assert eta == 0.5 or not falls(2 * eta)


def test_the_appendix_does_not_make_penalised_differences_convex():
    # Along the line through a basis where the difference is large: its second derivative is
    # psi'(Delta) times that of Delta, which alpha, made for Delta itself, does not outweigh.
    bunch = load_adult(as_frame=False)
    X = 3.0 * StandardScaler().fit_transform(bunch.data)
    problem = Problem(GroupMoments.from_rows(X, bunch.sensitive_features), 5, criterion="equal")
    vector = PaperObjectives(alpha=_appendix_alpha(problem, each_pair=False))
    rng = np.random.default_rng(5)
    concave = 0
    for _ in range(20):
        basis = polar_factor(rng.normal(size=(14, 5)))
        for _ in range(10):
            way = rng.normal(size=(14, 5))
            ends = vector.values(problem, basis - 0.01 * way), vector.values(problem, basis)
            second = ends[0] - 2 * ends[1] + vector.values(problem, basis + 0.01 * way)
            concave += second[1] < 0
    assert concave > 20

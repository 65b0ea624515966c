"""Nested subspaces: prefixes, steps against brute force, and what nesting costs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import StandardScaler

from fairpca import AtMost, ExactSolver, FairPCA, GroupMoments, MinMax, Problem
from fairpca.datasets import load_adult, load_credit
from fairpca.solvers import Nested
from studies import price_of_nesting

from asked import asked
from texts import recorded, refused

pytestmark = pytest.mark.untraced

MEASURES = [(m, relative) for m in ("disparity", "loss", "variance") for relative in (False, True)]


def moments_of(seed, k, d):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(d + 2, 40, k)
    rows = [rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d) for n in sizes]
    return GroupMoments.from_rows(np.vstack(rows), np.repeat(np.arange(k), sizes))


def directions(d, n):
    """Unit vectors of two or three dimensions that lie close to each other."""
    if d == 2:
        angle = np.linspace(0.0, np.pi, n)
        return np.array([np.cos(angle), np.sin(angle)])
    index = np.arange(n) + 0.5  # a spiral on half of the sphere
    height, angle = index / n, np.pi * (1 + np.sqrt(5)) * index
    flat = np.sqrt(1 - height**2)
    return np.array([flat * np.cos(angle), flat * np.sin(angle), height])


@pytest.mark.parametrize(("measure", "relative"), MEASURES)
@pytest.mark.parametrize("k", [2, 3])
def test_prefixes_are_the_nested_subspaces_of_fewer_dimensions(k, measure, relative):
    moments, solver = moments_of(k, k, 5), ExactSolver(n_starts=2)
    whole = Nested(solver).solve(Problem(moments, 4, asked(measure=measure, relative=relative)))
    assert_allclose(whole.basis.T @ whole.basis, np.eye(4), atol=1e-12)
    for r in range(1, 4):
        part = Nested(solver).solve(Problem(moments, r, asked(measure=measure, relative=relative)))
        assert_allclose(whole.basis[:, :r], part.basis, rtol=0, atol=1e-12)
        problem = Problem(moments, r, asked(measure=measure, relative=relative))
        step = whole.history["steps"][r - 1]
        assert step.value == pytest.approx(problem.measures(part.basis).max(), abs=1e-12)
        free = solver.solve(problem).certificate
        assert step.free_value == free.value
        assert step.value >= free.lower_bound - 1e-9 * abs(free.lower_bound)


@pytest.mark.parametrize(("measure", "relative"), MEASURES)
@pytest.mark.parametrize(("d", "n", "allowed"), [(2, 20_001, 1e-3), (3, 40_000, 4e-2)])
@pytest.mark.parametrize("k", [2, 3])
def test_each_step_is_the_best_that_brute_force_finds(k, d, n, allowed, measure, relative):
    moments = moments_of(10 * d + k, k, d)
    found = Nested().solve(Problem(moments, d - 1, asked(measure=measure, relative=relative)))
    for j, step in enumerate(found.history["steps"], start=1):
        problem = Problem(moments, j, asked(measure=measure, relative=relative))
        before = found.basis[:, : j - 1]
        if j == 1:
            candidates = directions(d, n)
        else:  # a circle in what is left of three dimensions
            rest = np.linalg.svd(before, full_matrices=True)[0][:, j - 1 :]
            candidates = rest @ directions(2, n)
        kept = np.einsum("in,kij,jn->kn", candidates, problem.matrices, candidates)
        kept += problem.kept(before)[:, None]
        units, constants = problem.affine.units[:, None], problem.affine.constants[:, None]
        best = float((constants - kept / units).max(axis=0).min())
        scale = problem.affine.scale
        # Nothing on the grid is below the bound, and what was found is as good as the grid.
        assert step.certificate.lower_bound <= best + 1e-9 * scale
        assert step.value <= best + 1e-9 * scale
        assert step.value >= best - allowed * scale


def test_components_keep_the_order_of_the_steps():
    X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    X[:100] = X[:100, ::-1]
    groups = ["a"] * 100 + ["b"] * 200
    long, short = (
        FairPCA(r, nested=True, criterion="minmax").fit(X, sensitive_features=groups)
        for r in (4, 2)
    )
    assert_allclose(long.components_[:2], short.components_, rtol=0, atol=1e-12)
    assert_allclose(long.transform(X)[:, :2], short.transform(X), rtol=0, atol=1e-12)
    assert_allclose(long.explained_variance_, long.transform(X).var(axis=0, ddof=1))
    assert len(long.nesting_) == 4
    assert long.nesting_.price[0] == pytest.approx(0.0, abs=1e-9)
    assert list(long.nesting_.to_frame().index) == [1, 2, 3, 4]
    assert "free optimum" in str(long.nesting_)
    assert "<table>" in long.nesting_._repr_html_()
    recorded(str(long.certificate_), "nested")
    assert not hasattr(long.set_params(nested=False).fit(X, sensitive_features=groups), "nesting_")


@pytest.mark.parametrize(
    ("load", "sensitive"), [(load_adult, "sex"), (load_adult, "race"), (load_credit, "sex")]
)
def test_the_price_on_real_data(load, sensitive):
    data = load(sensitive=sensitive, as_frame=False)
    X = StandardScaler().fit_transform(data.data)
    fair = FairPCA(6, nested=True, criterion="minmax").fit(
        X, sensitive_features=data.sensitive_features
    )
    table = fair.nesting_
    assert (table.value >= table.free_bound * (1 - 1e-9)).all()
    assert table.price[0] <= 1e-9
    # Measured: 0.04 (Adult by sex), 0.19 (by race) and 0.02 (Credit by sex) at the most.
    assert 0.0 < table.price.max() < 0.25


def test_the_page_shows_what_the_script_finds():
    page = price_of_nesting.TARGET.read_text(encoding="utf-8").splitlines()
    found = price_of_nesting.nesting("Adult, sex", price_of_nesting.N_COMPONENTS)
    assert set(price_of_nesting.lines("Adult, sex", found)) <= set(page)


@pytest.mark.parametrize(
    "choices",
    [
        {"criterion": "equal"},
        {"criterion": "balanced"},
        {"criterion": AtMost(1.0)},
        {"criterion": MinMax(max_extra_loss=0.1)},
        {"solver": "pareto"},
    ],
)
def test_what_cannot_be_nested_is_refused(choices):
    with refused(ValueError, "nested=True"):
        FairPCA(2, nested=True, **choices).fit(np.eye(5), sensitive_features=list("aabbb"))


def test_many_columns_and_the_whole_space():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 700)) * np.linspace(3, 0.1, 700)
    groups = np.repeat(["a", "b", "c"], 10)
    long, short = (
        FairPCA(r, nested=True, criterion="minmax").fit(X, sensitive_features=groups)
        for r in (3, 2)
    )
    assert_allclose(abs(np.diag(long.components_ @ short.components_.T)), 1.0, atol=1e-9)
    whole = Nested().solve(Problem(moments_of(0, 3, 4), 4))
    assert whole.history["steps"][-1].value == pytest.approx(0.0, abs=1e-9)

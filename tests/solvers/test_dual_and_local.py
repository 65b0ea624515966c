"""The parts of the exact solver, against finite differences and definitions."""

import numpy as np
import pytest

from fairpca._linalg.backends import NUMPY
from fairpca.criteria import project_on_simplex
from fairpca.solvers._dual import maximise_dual, smoothed_sum
from fairpca.solvers._local import _all_seen, _SubspaceDescent, refine
from fairpca.solvers._space import Effort, Forms

from alone import at_most, domain, equal, excess, minmax, spread, within_budget
from problems import problem_of, random_basis, random_problem


def occupied_at(forms, weights, mu):
    return smoothed_sum(forms.spectrum(weights), forms.r, mu)


def forms_of(rng, k=4, d=7, r=3, kind="general"):
    return Forms.from_problem(random_problem(rng, kind, k, d, r))


@pytest.mark.parametrize("mu", [10.0, 0.3, 0.01])
def test_derivatives_of_the_smoothed_eigenvalue_sum(mu):
    rng = np.random.default_rng(0)
    forms = forms_of(rng)
    weights = rng.standard_normal(4)
    kept, curvature = occupied_at(forms, weights, mu).derivatives(forms)
    h = 1e-5
    for i in range(4):
        step = h * np.eye(4)[i]
        ahead, behind = (occupied_at(forms, weights + s, mu) for s in (step, -step))
        slope = (ahead.sigma - behind.sigma) / (2 * h)
        assert slope == pytest.approx(kept[i], rel=1e-6)
        change = (ahead.derivatives(forms)[0] - behind.derivatives(forms)[0]) / (2 * h)
        np.testing.assert_allclose(change, curvature[i], rtol=1e-5, atol=1e-5)


def test_derivatives_hold_where_eigenvalues_are_tied():
    rng = np.random.default_rng(1)
    forms = forms_of(rng, kind="integer diagonal")
    weights = np.ones(4)
    kept, curvature = occupied_at(forms, weights, 0.5).derivatives(forms)
    step = 1e-5 * rng.standard_normal(4)
    ahead, behind = (occupied_at(forms, weights + s, 0.5) for s in (step, -step))
    assert ahead.sigma - behind.sigma == pytest.approx(2 * kept @ step, rel=1e-5)
    change = ahead.derivatives(forms)[0] - behind.derivatives(forms)[0]
    np.testing.assert_allclose(change, 2 * curvature @ step, rtol=1e-4, atol=1e-9)


def test_smoothing_is_above_by_at_most_the_entropy():
    rng = np.random.default_rng(2)
    forms = forms_of(rng)
    weights = rng.standard_normal(4)
    exact = np.linalg.eigvalsh(forms.weighted_sum(weights))[-3:].sum()
    for mu in (1.0, 1e-3, 1e-9):
        occupied = occupied_at(forms, weights, mu)
        assert occupied.p.sum() == pytest.approx(3, abs=1e-9)
        assert -1e-9 <= occupied.sigma - exact <= mu * forms.d * np.log(2) + 1e-9


def criteria(forms):
    k = forms.k
    return {
        "equal": (equal(forms.weights), forms.weights),
        "equal within": (equal(forms.weights, 0.7), forms.weights),
        "minmax": (minmax(k), np.full(k, 1 / k)),
        "excess": (excess(np.linspace(0, 1, k)), np.full(k, 1 / k)),
        "ceiling": (at_most(forms.weights, np.full(k, 2.0)), 2 * forms.weights),
        "budget": (within_budget(forms.weights, 2.0), np.full(k, 1 / k) + 0.5 * forms.weights),
        "spread": (spread(k), np.linspace(-1, 1, k)),
    }


@pytest.mark.parametrize(
    "name", ["equal", "equal within", "minmax", "excess", "ceiling", "budget", "spread"]
)
def test_the_smoothed_criterion_has_the_weights_as_slope(name):
    rng = np.random.default_rng(3)
    forms = forms_of(rng)
    criterion, weights = criteria(forms)[name]
    state = criterion.start(weights)
    disparities = rng.uniform(0, 5, 4)
    moved, _, factor = criterion.smooth(disparities, state, 0.3)
    h = 1e-6
    for i in range(4):
        step = h * np.eye(4)[i]
        ahead, behind = (criterion.smooth(disparities + s, state, 0.3) for s in (step, -step))
        slope = (ahead[1] - behind[1]) / (2 * h)
        assert slope == pytest.approx(criterion.net(moved)[i], abs=1e-6)
        change = (criterion.net(ahead[0]) - criterion.net(behind[0])) / (2 * h)
        np.testing.assert_allclose(change, (factor @ factor.T)[i], atol=1e-6)


def test_multipliers_of_equality_sum_to_zero():
    rng = np.random.default_rng(4)
    for tolerance in (0.0, 0.1, 2.0):
        weights = rng.dirichlet(np.ones(6))
        moved, *_ = equal(weights, tolerance).smooth(rng.uniform(0, 5, 6), weights, 2.0)
        assert (moved - weights).sum() == pytest.approx(0, abs=1e-12)


def test_projection_on_the_simplex_is_the_nearest_point():
    rng = np.random.default_rng(5)
    for _ in range(50):
        point = rng.standard_normal(5) * 3
        nearest = project_on_simplex(point)
        assert nearest.min() >= 0
        assert nearest.sum() == pytest.approx(1)
        others = rng.dirichlet(np.ones(5), size=200)
        assert (np.linalg.norm(others - point, axis=1) >= np.linalg.norm(nearest - point)).all()


def test_slope_and_curvature_on_the_manifold():
    rng = np.random.default_rng(6)
    forms = forms_of(rng)
    search = _SubspaceDescent(
        forms, minmax(4), random_basis(rng, 7, 3), np.array([0.4, 0.3, 0.2, 0.1])
    )
    search.diagonalise()
    net = search.moved
    step = rng.standard_normal(12)

    def lagrangian(t):
        basis, _ = NUMPY.complement(search.basis + search.rest @ (t * step).reshape(4, 3))
        return forms.measures(basis)

    h = 1e-4
    ahead, here, behind = lagrangian(h), lagrangian(0.0), lagrangian(-h)
    np.testing.assert_allclose((ahead - behind) / (2 * h), search.jacobian @ step, rtol=1e-5)
    second = net @ (ahead - 2 * here + behind) / h**2
    assert second == pytest.approx((search.curvature * step) @ step, rel=1e-4)


@pytest.mark.parametrize("kind", ["general", "integer diagonal"])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("weights", [[0.4, 0.3, 0.2, 0.1], [2.0, -1.0, 1.0, -3.0], [0.0] * 4])
def test_the_bases_of_a_search_diagonalise_both_blocks(kind, size, weights):
    rng = np.random.default_rng(13)
    matrices = size * random_problem(rng, kind, 4, 7, 3).matrices
    forms = Forms.from_problem(problem_of(matrices, 3))
    search = _SubspaceDescent(forms, minmax(4), random_basis(rng, 7, 3), np.full(4, 0.25))
    search.moved = np.array(weights)
    span = search.basis @ search.basis.T
    search.diagonalise()
    both = np.column_stack([search.basis, search.rest])
    np.testing.assert_allclose(both.T @ both, np.eye(7), rtol=0, atol=1e-13)
    np.testing.assert_allclose(search.basis @ search.basis.T, span, rtol=0, atol=1e-13)
    matrix = np.tensordot(search.moved, matrices, 1)
    inside, outside = (part.T @ matrix @ part for part in (search.basis, search.rest))
    curvature = 2.0 * (np.diag(inside)[None, :] - np.diag(outside)[:, None])
    rounding = 1e-12 * float(np.abs(matrices).max())
    np.testing.assert_allclose(search.curvature, curvature.ravel(), rtol=0, atol=rounding)
    for block in (inside, outside):
        np.testing.assert_allclose(block, np.diag(np.diag(block)), rtol=0, atol=rounding)


def test_a_local_search_ends_at_a_fair_and_stationary_point():
    rng = np.random.default_rng(7)
    fair = 0
    for _ in range(20):
        forms = forms_of(rng, k=3, d=8, r=3)
        criterion = equal(forms.weights)
        local = refine(forms, criterion, random_basis(rng, 8, 3), forms.weights)
        if np.ptp(local.measures) > 1e-6 * forms.scale:
            continue  # there need not be an equal subspace
        fair += 1
        basis, rest = NUMPY.complement(local.basis)
        slope = rest.T @ forms.weighted_sum(local.weights) @ basis
        assert np.abs(slope).max() <= 1e-8 * forms.scale
    assert fair >= 5


def test_a_firm_search_among_many_groups_converges():
    # With a firm penalty it creeps from kink to kink, and would not in 150 steps.
    rng = np.random.default_rng(11)
    turns = [np.linalg.qr(rng.standard_normal((20, 20)))[0] for _ in range(20)]
    matrices = [(turn / np.arange(1, 21)) @ turn.T for turn in turns]
    forms = Forms.from_problem(problem_of(matrices, 5))
    for _ in range(4):
        start = random_basis(rng, 20, 5)
        worst = np.eye(20)[int(forms.measures(start).argmax())]
        local = refine(forms, minmax(4), start, worst, firmness=100.0)
        basis, rest = NUMPY.complement(local.basis)
        slope = rest.T @ forms.weighted_sum(local.weights) @ basis
        assert np.abs(slope).max() <= 1e-8 * forms.scale
        largest = local.measures.max()
        assert local.measures[local.weights > 1e-6] == pytest.approx(largest, abs=1e-9)


def test_the_slope_is_that_of_the_turned_bases():
    rng = np.random.default_rng(12)
    forms = forms_of(rng)
    start = random_basis(rng, 7, 3)
    search = _SubspaceDescent(forms, minmax(4), start, np.array([0.4, 0.3, 0.2, 0.1]))
    before = search.slope()
    search.diagonalise()
    assert before == pytest.approx(float(np.linalg.norm(search.gradient)), rel=1e-12)
    assert search.slope() == pytest.approx(before, rel=1e-12)


def test_searches_end_when_most_likely_no_end_is_left():
    def least(n_ends):
        return next(n for n in range(1, 100) if _all_seen(n_ends, n))

    assert [least(n_ends) for n_ends in (1, 2, 3, 4)] == [8, 17, 30, 47]


@pytest.mark.parametrize(("k", "d", "r"), [(3, 9, 3), (4, 30, 8), (5, 140, 20)])
def test_polished_weights_make_the_disparities_equal(k, d, r):
    rng = np.random.default_rng([k, d])
    smooth = 0
    for _ in range(10):
        forms = forms_of(rng, k, d, r)
        exact = maximise_dual(forms, domain(forms, equal(forms.weights)))
        if exact.is_tied or exact.above_limit:
            continue
        smooth += 1
        values, vectors = np.linalg.eigh(forms.weighted_sum(exact.weights))
        assert exact.value == pytest.approx(exact.weights @ forms.constants - values[-r:].sum())
        disparities = forms.measures(vectors[:, -r:])
        assert np.ptp(disparities) <= 1e-13 * forms.scale
        # A local search has nothing to do there, and comes back to it from nearby.
        criterion = equal(forms.weights)
        settled = refine(forms, criterion, vectors[:, -r:], exact.weights)
        assert settled.n_iter == 0
        nearby = np.linalg.qr(vectors[:, -r:] + 1e-3 * rng.standard_normal((d, r)))[0]
        searched = refine(forms, criterion, nearby, exact.weights)
        assert searched.n_iter > 0
        np.testing.assert_allclose(
            searched.basis @ searched.basis.T, settled.basis @ settled.basis.T, atol=1e-7
        )
    assert smooth >= 3


def permuted_forms(k, d, r, seed=0):
    """Groups with the same spectrum, each along other axes, and a little beside them."""
    rng = np.random.default_rng(seed)
    falling = np.arange(1, d + 1) ** -0.4
    sizes = np.array([rng.permutation(falling) for _ in range(k)])
    noise = rng.standard_normal((k, d, d)) / 300
    matrices = (np.eye(d) + noise + noise.transpose(0, 2, 1)) * sizes[:, :, None] * sizes[:, None]
    return Forms.from_problem(problem_of(matrices, r))


@pytest.mark.parametrize("seed", range(3))
def test_inside_of_the_simplex_a_local_search_ends_at_once_where_all_measures_are_equal(seed):
    forms = permuted_forms(4, 130, 20, seed)
    dual = maximise_dual(forms, domain(forms, minmax(forms.k)), effort=Effort(gap=0.0))
    assert dual.weights.min() > 0.01
    assert dual.weights.sum() == pytest.approx(1.0, abs=1e-12)
    basis = dual.vectors[:, : forms.r]
    local = refine(forms, excess(np.zeros(4)), basis, dual.weights)
    assert local.n_iter <= 8
    assert np.ptp(local.measures) <= 1e-11 * forms.scale
    assert dual.value == pytest.approx(local.measures.max(), abs=1e-9 * forms.scale)


def test_the_value_counts_what_bounds_cost():
    forms, bounds = permuted_forms(4, 130, 20), np.array([1.1, 1.11, 1.09, 1.1])
    dual = maximise_dual(forms, domain(forms, excess(bounds)))
    kept = np.linalg.eigvalsh(forms.weighted_sum(dual.weights))[-forms.r :].sum()
    expected = dual.weights @ (forms.constants - bounds) - kept
    assert dual.value == pytest.approx(expected, abs=1e-12 * forms.scale)


def test_no_weights_prove_more_than_the_optimum_where_they_could_grow_without_bound():
    # Bounds that one subspace just attains: its loss is the optimum, and no bound may exceed it.
    forms = permuted_forms(4, 130, 20)
    weights = np.array([0.27, 0.30, 0.35, 0.29])
    basis = np.linalg.eigh(forms.weighted_sum(weights))[1][:, -forms.r :]
    caps = forms.measures(basis)
    dual = maximise_dual(forms, domain(forms, at_most(forms.weights, caps)))
    assert dual.value <= forms.weights @ caps + 1e-12 * forms.scale
    assert dual.value == pytest.approx(forms.weights @ caps, rel=1e-6)

"""The soft maximum: its value and bounds, its limits, its noise, and what it does on new data."""

import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from fairpca import (
    ExactSolver,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    KernelFairPCA,
    MinMax,
    Problem,
    SoftMinMax,
    pareto_front,
)
from fairpca.cli import main
from fairpca.datasets import load_adult
from fairpca.generalization.noise import SamplingNoise
from fairpca.measures import MEASURES
from fairpca.model_file import load_model, save_model

from people import people
from texts import recorded, refused, warned

pytestmark = pytest.mark.untraced


def same_subspace(one, other, atol=1e-7):
    assert_allclose(one.T @ one, other.T @ other, atol=atol)


def soft_max(measures, prior, temperature):
    most = measures.max(axis=-1, keepdims=True)
    inside = (prior * np.exp((measures - most) / temperature)).sum(axis=-1)
    return most[..., 0] + temperature * np.log(inside)


def random_problem(rng, k, d, r, criterion):
    rows = [
        rng.normal(size=(d + 20, d))
        * rng.permutation(np.arange(1, d + 1) ** -0.8)
        * rng.uniform(0.5, 2)
        for _ in range(k)
    ]
    return Problem(
        GroupMoments.from_rows(np.vstack(rows), np.repeat(np.arange(k), d + 20)), r, criterion
    )


def lines_of_the_plane(problem):
    """Measures (n, k) and total losses (n,) of all lines, those at the limit of a budget too."""
    values, vectors = np.linalg.eigh(problem.total_matrix)
    limit = np.pi / 2
    if problem.goal.max_extra_loss is not None:
        # The total loss at an angle from PCA: least + (values[1] - values[0]) * sin(angle)^2.
        share = problem.goal.max_extra_loss * values[0] / (values[1] - values[0])
        limit = np.arcsin(np.sqrt(min(share, 1.0)))
    angles = np.linspace(-limit, limit, 20_001)
    lines = vectors[:, ::-1] @ np.array([np.cos(angles), np.sin(angles)])
    kept = np.einsum("an,kab,bn->nk", lines, problem.matrices, lines)
    measures = problem.affine.constants - kept / problem.affine.units
    return measures, (problem.traces - kept) @ problem.weights


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("budget", [None, 0.001, 0.03, 0.3])
def test_value_and_bound_against_all_lines_of_a_plane(measure, budget):
    rng = np.random.default_rng(0)
    for k in (2, 3, 6):
        for temperature in (1e-3, 0.1, 3.0):
            criterion = SoftMinMax(measure, max_extra_loss=budget, temperature=temperature)
            problem = random_problem(rng, k, 2, 1, criterion)
            measures, losses = lines_of_the_plane(problem)
            weights = problem.weights * problem.affine.units
            values = soft_max(measures, weights / weights.sum(), temperature)
            solution = ExactSolver().solve(problem)
            found = solution.certificate
            assert found.lower_bound <= found.value
            assert found.lower_bound <= values.min() + 1e-12
            assert found.value <= values.min() + 1e-6
            slack = 0.0
            if budget is not None:
                allowed = (1 + budget) * np.linalg.eigvalsh(problem.total_matrix)[0]
                assert losses.max() <= allowed * (1 + 1e-9)
                assert solution.total_loss <= allowed * (1 + 1e-9)
                slack = max(solution.total_loss - allowed, 0.0)
            bound = problem.dual_bound(found.multipliers, slack)
            assert bound == pytest.approx(found.lower_bound, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("temperature", [0.0, 1e-3, 0.1, 10.0, np.inf])
def test_without_any_extra_loss_it_is_pca(temperature):
    criterion = SoftMinMax(max_extra_loss=0, temperature=temperature)
    problem = random_problem(np.random.default_rng(11), 3, 6, 2, criterion)
    found = ExactSolver().solve(problem)
    same_subspace(found.basis.T, problem.pca_basis.T, atol=1e-5)
    assert found.certificate.lower_bound <= found.certificate.value
    # A budget that does not bind changes nothing.
    free, wide = (
        ExactSolver().solve(problem.with_criterion(SoftMinMax(temperature=temperature, **more)))
        for more in ({}, {"max_extra_loss": 10.0})
    )
    same_subspace(free.basis.T, wide.basis.T, atol=1e-5)
    assert_allclose(wide.certificate.value, free.certificate.value, rtol=1e-7)


@pytest.mark.parametrize("budget", [None, 0.001, 0.05])
@pytest.mark.parametrize("measure", ["disparity", "share_lost", "kept_variance"])
def test_no_temperature_is_the_largest_measure(budget, measure):
    rng = np.random.default_rng(12)
    for k in (2, 4):
        plain = random_problem(rng, k, 5, 2, MinMax(measure, budget))
        given = plain.traces * rng.uniform(0.5, 1.0, size=k), rng.uniform(0.5, 2.0, size=k)
        problem = replace(plain, measured_by=given)
        least = ExactSolver().solve(problem)
        criterion = SoftMinMax(measure, max_extra_loss=budget, temperature=0.0)
        found = ExactSolver().solve(problem.with_criterion(criterion))
        measures = (given[0] - problem.kept(found.basis)) / given[1]
        assert_allclose(found.certificate.value, measures.max(), rtol=1e-12)
        assert found.certificate.value == least.certificate.value
        assert found.certificate.lower_bound == least.certificate.lower_bound
        assert np.array_equal(found.basis, least.basis)
        # It is where small temperatures go.
        cold = problem.with_criterion(criterion.set_params(temperature=1e-5))
        found = ExactSolver().solve(cold).certificate
        assert found.measures.max() <= least.certificate.value + 1e-3
        assert found.value <= least.certificate.value <= found.value + 1e-3


def test_no_weights_prove_too_much():
    rng, n_within = np.random.default_rng(1), 0
    for i in range(200):
        k, d = int(rng.integers(2, 6)), int(rng.integers(2, 7))
        budget = None if i % 2 else 10.0 ** rng.uniform(-3, 0)
        temperature = (0.0, np.inf)[i % 40 // 20] if i % 20 < 2 else 10.0 ** rng.uniform(-3, 6)
        measure = list(MEASURES)[i % len(MEASURES)]
        criterion = SoftMinMax(measure, max_extra_loss=budget, temperature=temperature)
        problem = random_problem(rng, k, d, int(rng.integers(1, d)), criterion)
        if i % 3 == 0:
            given = problem.traces * rng.uniform(size=k), rng.uniform(0.5, 2.0, size=k)
            problem = replace(problem, measured_by=given)
        prior = problem.weights * problem.affine.units
        prior, shape = prior / prior.sum(), problem.pca_basis.shape
        pca, limit = problem.total_loss(problem.pca_basis), np.inf
        if budget is not None and temperature < np.inf:
            limit = pca * (1.0 + budget)
        least, beyond = np.inf, []
        for _ in range(60):
            # Any subspace, or one near PCA, within most budgets.
            near = problem.pca_basis + 10.0 ** rng.uniform(-3, 1) * rng.normal(size=shape)
            basis = np.linalg.qr(near)[0]
            measures, loss = problem.measures(basis), problem.total_loss(basis)
            value = np.dot(prior, measures) if temperature == np.inf else measures.max()
            if 0.0 < temperature < np.inf:
                value = precise_soft_max(measures, prior, temperature)
            if loss <= limit:
                least, n_within = min(least, value), n_within + 1
            else:
                beyond.append((value, loss - limit))
        small = 1e-12 * problem.affine.scale
        for weights in rng.dirichlet(np.ones(k), size=10) * 10.0 ** rng.uniform(-1, 2, (10, 1)):
            assert problem.dual_bound(weights) <= least + small
            # With as much slack, of subspaces beyond the budget too.
            for value, slack in beyond[:3]:
                assert problem.dual_bound(weights, slack) <= value + small
        if i % 4 < 2:
            found = ExactSolver().solve(problem).certificate
            assert found.lower_bound <= found.value <= least + 1e-9
            assert_allclose(found.value, problem.goal.value(found.measures), rtol=1e-9, atol=small)
    assert n_within > 60 * 100


def precise_soft_max(measures, prior, temperature):
    """With long numbers, as the logarithm is multiplied by the temperature."""
    below = (measures - measures.max()).astype(np.longdouble) / np.longdouble(temperature)
    prior = prior.astype(np.longdouble) / prior.astype(np.longdouble).sum()
    return float(measures.max() + temperature * np.log(np.sum(prior * np.exp(below))))


@pytest.mark.parametrize("temperature", [1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("budget", [None, 0.1])
def test_no_digits_are_lost_where_it_is_hot(temperature, budget):
    criterion = SoftMinMax(max_extra_loss=budget, temperature=temperature)
    problem = random_problem(np.random.default_rng(13), 3, 6, 2, criterion)
    found, prior = ExactSolver().solve(problem).certificate, problem.weights
    # To the second order it is the mean and half the variance over the temperature.
    mean = prior @ found.measures
    variance = prior @ np.square(found.measures - mean)
    expected = mean + variance / (2.0 * temperature)
    assert found.value == pytest.approx(expected, abs=10.0 / temperature**2 + 1e-13)
    assert found.value - 1e-11 <= found.lower_bound <= found.value


def test_slopes_by_finite_differences():
    problem = random_problem(np.random.default_rng(2), 4, 5, 2, SoftMinMax(temperature=0.3))
    goal, at = problem.goal, np.array([0.3, 1.0, 0.2, 0.9])
    weights, value, factor = goal.smooth(at, goal.prior, 1.0)
    assert value == goal.value(at)
    step = 1e-6 * np.eye(4)
    slopes = [(goal.value(at + e) - goal.value(at - e)) / 2e-6 for e in step]
    assert_allclose(weights, slopes, atol=1e-8)
    curves = [(goal.weights_of(at + e) - goal.weights_of(at - e)) / 2e-6 for e in step]
    assert_allclose(factor @ factor.T, curves, atol=1e-6)


def test_optimal_weights_are_those_of_the_measures():
    rng = np.random.default_rng(3)
    for _ in range(10):
        problem = random_problem(rng, 3, 6, 2, SoftMinMax(temperature=0.2))
        found = ExactSolver().solve(problem)
        if found.certificate.status == "optimal":
            weights = problem.goal.weights_of(found.certificate.measures)
            assert_allclose(found.certificate.multipliers, weights, atol=1e-10)
            same_subspace(found.basis.T, problem.weighted_basis(weights).T, atol=1e-6)


def test_limits_are_pca_and_minmax():
    problem = random_problem(np.random.default_rng(4), 3, 6, 2, SoftMinMax(temperature=np.inf))
    same_subspace(ExactSolver().solve(problem).basis.T, problem.pca_basis.T)
    warm = problem.with_criterion(SoftMinMax(temperature=1e6))
    same_subspace(ExactSolver().solve(warm).basis.T, problem.pca_basis.T, atol=1e-4)
    cold = problem.with_criterion(SoftMinMax(temperature=1e-5))
    least = ExactSolver().solve(problem.with_criterion(MinMax())).certificate
    found = ExactSolver().solve(cold).certificate
    assert found.measures.max() <= least.value + 1e-4
    assert found.value <= least.value <= found.value + 1e-4


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("measure", ["disparity", "share_lost"])
def test_units_do_not_matter(scale, measure):
    rng = np.random.default_rng(5)
    X, groups = rng.normal(size=(200, 6)) * [3, 2, 1, 1, 1, 1], np.arange(200) % 3
    X[groups == 1] = X[groups == 1][:, ::-1]
    fits = [
        FairPCA(2, criterion=SoftMinMax(measure)).fit(rows, sensitive_features=groups)
        for rows in (X, X * scale)
    ]
    same_subspace(fits[0].components_, fits[1].components_, atol=1e-5)


def test_groups_that_are_alike_get_pca():
    rng = np.random.default_rng(6)
    X, groups = (
        rng.normal(size=(400, 8)) * np.sqrt(5 / np.arange(1, 9)),
        np.repeat([0, 1, 2], [300, 80, 20]),
    )
    soft, plain = (
        FairPCA(3, criterion=c).fit(X, sensitive_features=groups) for c in ("soft", "minmax")
    )
    people = rng.normal(size=(50_000, 8)) * np.sqrt(5 / np.arange(1, 9))
    loss = [
        np.square(people - f.inverse_transform(f.transform(people))).sum(axis=1).mean()
        for f in (PCA(3).fit(X), soft, plain)
    ]
    assert loss[1] < loss[0] * 1.005
    assert loss[2] > loss[0] * 1.02


def test_groups_that_differ_are_served():
    rng = np.random.default_rng(7)
    X, groups = (
        rng.normal(size=(2000, 8)) * np.sqrt(5 / np.arange(1, 9)),
        np.repeat([0, 1], [1700, 300]),
    )
    X[1700:] = X[1700:, ::-1]
    table = FairPCA(3, criterion="soft").fit(X, sensitive_features=groups).group_table_
    assert table.disparity[1] < 0.6 * table.pca_disparity[1]


def test_noise_is_that_of_repeated_samples():
    # One population of two groups: the own loss is known, and so is how measures vary.
    scales, n = np.sqrt(5 / np.arange(1, 7)), (400, 60)
    groups, losses, spread, errors = np.repeat([0, 1], n), [], [], []
    for seed in range(40):
        X = np.random.default_rng(seed).normal(size=(sum(n), 6)) * scales
        cells = GroupMoments.from_rows(X, groups, folds=True)
        problem = Problem(cells.without_folds(), 2, MinMax("loss"))
        noise = SamplingNoise.of_problem(problem, cells, "intersections")
        losses.append(noise.own_losses)
        errors.append(noise.standard_errors)
        spread.append(problem.measures(problem.pca_basis))
    truth = float((scales**2)[2:].sum())
    assert abs(np.mean(losses, axis=0) - truth).max() < 0.04 * truth
    ratio = np.mean(errors, axis=0) / np.std(spread, axis=0)
    assert (ratio > 0.8).all()
    assert (ratio < 2.0).all()


def test_moments_files_and_batches_give_the_same():
    rng = np.random.default_rng(8)
    X, groups = rng.normal(size=(300, 5)) * [3, 2, 1, 1, 1], np.arange(300) % 3
    X[groups == 2] = X[groups == 2][:, ::-1]
    fair = FairPCA(2, criterion="soft").fit(X, sensitive_features=groups)
    again = FairPCA(2, criterion="soft").fit_moments(GroupMoments.from_rows(X, groups, folds=True))
    same_subspace(fair.components_, again.components_, atol=1e-10)
    with refused(ValueError, "moments by fold"):
        FairPCA(2, criterion="soft").fit_moments(GroupMoments.from_rows(X, groups))
    given = SoftMinMax(temperature=0.5)
    plain = FairPCA(2, criterion=given).fit_moments(GroupMoments.from_rows(X, groups))
    same_subspace(
        plain.components_, FairPCA(2, criterion=given).fit(X, sensitive_features=groups).components_
    )


def test_overlapping_groups_weights_and_wide_rows():
    rng = np.random.default_rng(9)
    X, columns = rng.normal(size=(200, 5)), rng.integers(2, size=(200, 2))
    weights = rng.exponential(size=200)
    for groups in ("marginals", "both"):
        fair = FairPCA(2, criterion="soft", groups=groups)
        fair.fit(X, sensitive_features=columns, sample_weight=weights)
        assert fair.certificate_.status in ("optimal", "bounded")
    wide = rng.normal(size=(60, 300))
    wide[30:, :3] *= 20.0
    fair = FairPCA(3, criterion="soft").fit(wide, sensitive_features=np.repeat([0, 1], 30))
    assert fair.certificate_.status in ("optimal", "bounded")
    alone = FairPCA(2, criterion="soft", groups=None).fit(X)
    same_subspace(alone.components_, PCA(2).fit(X).components_)


def test_files_and_refusals(tmp_path):
    adult = load_adult(as_frame=False, sensitive="race", keep_sensitive=False)
    X = StandardScaler().fit_transform(adult.data)
    fair = FairPCA(5, criterion=SoftMinMax(standard_errors=1.0)).fit(
        X, sensitive_features=adult.sensitive_features
    )
    save_model(fair, tmp_path / "soft.fairpca")
    back = load_model(tmp_path / "soft.fairpca").fair_pca
    assert back.criterion.standard_errors == 1.0
    assert str(back.certificate_) == str(fair.certificate_)
    for wrong in (-1.0, "2", True, None, np.nan):
        with refused(ValueError, "standard_errors"):
            FairPCA(2, criterion=SoftMinMax(standard_errors=wrong)).fit(X)
    for wrong in (-1.0, "2", True, np.nan):
        with refused(ValueError, "temperature"):
            FairPCA(2, criterion=SoftMinMax(temperature=wrong)).fit(X)
    with refused(ValueError, "max_extra_loss"):
        FairPCA(2, criterion=SoftMinMax(max_extra_loss=-0.1)).fit(X)
    with refused(ValueError, "needs a temperature"):
        ExactSolver().solve(
            Problem(GroupMoments.from_rows(X[:50], np.arange(50) % 2), 2, SoftMinMax())
        )
    with refused(ValueError, "temperature"):
        KernelFairPCA(2, criterion="soft").fit(X[:60], sensitive_features=np.arange(60) % 2)
    with refused(ValueError, "SoftMinMax"):
        pareto_front(
            X, sensitive_features=adult.sensitive_features, n_components=2, criterion="soft"
        )


@pytest.mark.parametrize("command", ["fit", "audit"])
def test_program(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    people(400).to_csv("people.csv", index=False)
    given = [command, "people.csv", "--sensitive", "sex", "--n-components", "2", "--json"]
    given += ["--criterion", "soft"]
    found = []
    for more in ([], ["--stream"]):
        assert main([*given, *more]) == 0
        found.append(json.loads(capsys.readouterr().out)["certificate"])
    assert found[0]["goal"] == "soft"
    assert found[1]["value"] == pytest.approx(found[0]["value"], rel=1e-9)


def test_sentences():
    problem = random_problem(np.random.default_rng(10), 3, 4, 2, SoftMinMax(temperature=0.1))
    found = ExactSolver().solve(problem).certificate
    assert found.goal == "soft"
    assert found.sentences()[0].startswith(("Proven optimal", "The soft maximum"))


def test_a_fit_has_what_proves_it():
    """The bound from the multipliers, the temperature and the debiased baselines."""
    rng = np.random.default_rng(5)
    X, groups = rng.normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1], np.repeat(["a", "b", "c"], 100)
    X[:100], X[100:200] = X[:100, ::-1], np.roll(X[100:200], 2, axis=1)
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    certificate, table = fair.certificate_, fair.group_table_
    assert 0.0 < certificate.temperature < np.inf
    criterion = SoftMinMax(temperature=certificate.temperature)
    problem = Problem(GroupMoments.from_rows(X, groups), 2, criterion=criterion)
    constants = table.variance - table.held_out.own_loss
    debiased = problem.measured_from(constants, np.ones(3))
    bound = debiased.dual_bound(certificate.multipliers)
    assert bound == pytest.approx(certificate.lower_bound, rel=1e-9)
    assert debiased.goal.value(certificate.measures) == pytest.approx(certificate.value, rel=1e-9)
    # By hand: w . c - the sum of the largest eigenvalues - T KL(w, p), with groups of one size.
    w = certificate.multipliers / certificate.multipliers.sum()
    values = np.linalg.eigvalsh(np.tensordot(w, problem.matrices, 1))[-2:].sum()
    cost = certificate.temperature * (w @ np.log(3 * w))
    assert w @ constants - values - cost == pytest.approx(certificate.lower_bound, rel=1e-9)


@pytest.mark.parametrize("size", [1e3, 1e5, 1e6, 1e8])
def test_a_column_that_dwarfs_the_others(size):
    """Losses are those of exact sums; where standard errors are lost to rounding, this is PCA."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(240, 6)) * [3, 2, 1.5, 1, 1, 1], np.repeat([*"abc"], [150, 70, 20])
    X[groups == "b"] = X[groups == "b"][:, [1, 0, 3, 2, 4, 5]]
    X[:, 5] *= size
    expected = warned(FairnessWarning, "'minmax'", "rounding", "standardise")
    with expected if size >= 1e6 else nullcontext():
        fair = FairPCA(2).fit(X, sensitive_features=groups)
    Z = X.astype(np.longdouble) - X.astype(np.longdouble).mean(axis=0)
    basis = fair.components_.astype(np.longdouble)
    squares = np.square(Z - Z @ basis.T @ basis).sum(axis=1)
    lost = [float(squares[groups == group].mean()) for group in "abc"]
    assert_allclose(fair.group_table_.loss, lost, rtol=1e-3 if size == 1e5 else 1e-5)
    assert (fair.group_table_.disparity > -1e-3).all()
    if size >= 1e6:
        plain = FairPCA(2, groups=None).fit(X)
        same_subspace(fair.components_, plain.components_)


def test_a_soft_maximum_below_zero_keeps_its_sign():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 4)) * [3, 2, 1, 1], rng.integers(0, 3, 300)
    certificate = FairPCA(2).fit(X, sensitive_features=groups).certificate_
    assert certificate.value < 0.0
    share = 100 * certificate.value / certificate.variance
    recorded(str(certificate), f"{certificate.value:.6g} ({share:.3g} %")


@pytest.mark.parametrize("scale", [1e-29, 1e29])
def test_units_near_the_smallest_and_largest_that_are_taken(scale):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(90, 4)) * [3, 2, 1, 1], np.repeat([*"ab"], [60, 30])
    X[groups == "b"] = X[groups == "b"][:, ::-1]
    fair = FairPCA(2).fit(scale * X, sensitive_features=groups)
    assert fair.certificate_.status == "optimal"

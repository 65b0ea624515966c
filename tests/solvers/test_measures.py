"""The six measures: definitions, what was once assumed of their sign, and what holds for all."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fairpca import AtMost, Equal, ExactSolver, GroupMoments, MinMax, Problem
from fairpca.certificate import certify

from asked import asked
from measured import (
    ALL,
    constants_and_units,
    every_measure,
    measures_of,
    posed,
    random_bases,
    scaled_matrices,
)
from problems import random_basis, random_matrices

pytestmark = pytest.mark.untraced

# Definitions


@every_measure
def test_measures_are_what_they_are_defined_as(measure, relative):
    rng = np.random.default_rng(0)
    problem = posed(random_matrices(rng, "other scales", 3, 5), 2, measure, relative)
    bases = random_bases(rng, 50, 5, 2)
    expected, totals = measures_of(problem, bases)
    for basis, values, total in zip(bases, expected, totals, strict=True):
        assert_allclose(problem.measures(basis), values, rtol=1e-9, atol=1e-12)
        assert problem.spread(basis) == pytest.approx(np.ptp(values), rel=1e-9)
        # The total loss is affine in the measures, whatever their constants and units.
        affine = problem.affine.base + problem.affine.weights @ values
        assert affine == pytest.approx(total, rel=1e-9)
        assert (values >= problem.affine.floor - 1e-12 * abs(values)).all()


def test_constants_and_units_can_be_given():
    matrices = scaled_matrices(np.random.default_rng(1), "general", 3, 5)
    named = posed(matrices, 2, "disparity", relative=True)
    given = posed(matrices, 2, measured_by=(named.own_gains, named.traces))
    first, second = ExactSolver().solve(named).certificate, ExactSolver().solve(given).certificate
    assert_allclose(second.measures, first.measures, atol=1e-8)
    assert second.lower_bound == pytest.approx(first.lower_bound, abs=1e-8)
    more = np.array([0.0, 0.0, 5.0])
    shifted = posed(matrices, 2, measured_by=(named.own_gains + more, np.ones(3)))
    # The third group is worst off whatever is done, so it gets its own subspace.
    assert ExactSolver().solve(shifted).certificate.value == pytest.approx(5.0, abs=1e-9)


# Where measures were once assumed not to be negative


@pytest.mark.parametrize("relative", [False, True])
def test_the_bound_on_what_is_kept_is_not_clipped_at_zero(relative):
    rng = np.random.default_rng(2)
    problem = posed(scaled_matrices(rng, "general", 3, 5), 2, "variance", relative)
    measures = measures_of(problem, random_bases(rng, 2000, 5, 2))[0]
    multipliers = rng.dirichlet(np.ones(3), size=50)
    for bound in [problem.dual_bound(w) for w in multipliers] + [problem.dual_bound(np.zeros(3))]:
        assert bound < 0.0
        assert (measures.max(axis=1) >= bound).all()
    # Nobody keeps more than in a subspace of its own, which needs no multipliers.
    own = np.linalg.eigvalsh(problem.matrices)[:, -2:].sum(axis=1) / constants_and_units(problem)[1]
    assert problem.dual_bound(np.zeros(3)) == pytest.approx(-own.min(), rel=1e-9)
    assert certify(problem, random_basis(rng, 5, 2), multipliers[0]).value < 0.0


@every_measure
def test_a_random_basis_is_not_called_optimal(measure, relative):
    rng = np.random.default_rng(3)
    for k in (2, 4):
        problem = posed(scaled_matrices(rng, "general", k, 6), 2, measure, relative)
        best = ExactSolver().solve(problem).certificate
        for _ in range(5):
            basis = random_basis(rng, 6, 2)
            for multipliers in (best.multipliers, np.zeros(k), np.ones(k)):
                found = certify(problem, basis, multipliers)
                assert found.status == "bounded"
                assert found.value == pytest.approx(measures_of(problem, basis[None])[0].max())
                assert found.gap >= found.value - best.value > 1e-3
                assert found.relative_gap == pytest.approx(found.gap / abs(found.value))


def test_two_groups_that_equality_would_level_down():
    # On the first axis 2.5 and 2 are lost; where both lose the same it is 2.75.
    matrices = [np.diag([3.0, 2.0, 0.5]), np.diag([4.0, 1.0, 1.0])]
    solution = ExactSolver().solve(posed(matrices, 1, "loss"))
    assert solution.certificate.status == "optimal"
    assert_allclose(solution.group_losses, [2.5, 2.0], atol=1e-9)
    equal = ExactSolver().solve(posed(matrices, 1, "loss", criterion="equal"))
    assert equal.certificate.status == "optimal"
    assert_allclose(equal.group_losses, 2.75, atol=1e-8)
    for r in (1, 2):
        bases = random_bases(np.random.default_rng(4), 200_000, 3, r)
        for measure, relative in ALL:
            problem = posed(matrices, r, measure, relative)
            found = ExactSolver().solve(problem).certificate
            best = measures_of(problem, bases)[0].max(axis=1).min()
            assert found.status == "optimal"
            assert found.lower_bound <= best
            assert found.value <= best + 1e-9
            assert found.value >= best - 0.02


@every_measure
def test_where_nothing_has_to_be_searched_for(measure, relative):
    rng = np.random.default_rng(5)
    matrix = scaled_matrices(rng, "general", 1, 4)[0]
    for matrices, r in (([matrix], 2), ([matrix, 3 * matrix, 0.1 * matrix], 2), ([matrix] * 2, 4)):
        problem = posed(matrices, r, measure, relative)
        solution = ExactSolver().solve(problem)
        certificate = solution.certificate
        assert certificate.status == "optimal"
        assert solution.message != "root found"
        assert "search" not in solution.message
        assert certificate.value == pytest.approx(problem.measures(problem.pca_basis).max())
        recomputed = problem.dual_bound(certificate.multipliers)
        assert recomputed == pytest.approx(certificate.value, abs=1e-12)
        # The multipliers prove it alone, without what is known of each group.
        alone = problem.least_weighted(certificate.multipliers)
        assert alone == pytest.approx(certificate.value, abs=1e-12)


@every_measure
@pytest.mark.parametrize("place", [0, 2])
def test_a_group_without_variance(measure, relative, place):
    """It loses nothing and keeps all of nothing, so others decide; but of variance it keeps 0."""
    matrices = scaled_matrices(np.random.default_rng(6), "general", 3, 5)
    without = ExactSolver().solve(posed(matrices, 2, measure, relative)).certificate
    problem = posed(np.insert(matrices, place, 0.0, axis=0), 2, measure, relative)
    solution = ExactSolver().solve(problem)
    certificate = solution.certificate
    assert certificate.status == without.status == "optimal"
    if measure == "variance" and not relative:
        assert certificate.value == certificate.measures[place] == 0.0
        assert solution.total_loss == pytest.approx(problem.total_loss(problem.pca_basis))
        return
    assert certificate.value == pytest.approx(without.value, rel=1e-7)
    assert_allclose(np.delete(certificate.measures, place), without.measures, atol=1e-6)
    assert certificate.measures[place] == (-1.0 if measure == "variance" else 0.0)


def test_what_a_group_without_variance_keeps():
    """Two rows of a lie at the mean of all rows, and b keeps 16, 4 or 0 along the three axes."""
    X = np.array([[0.0, 0, 0]] * 2 + [[4, 0, 0], [-4, 0, 0], [0, 2, 0], [0, -2, 0]])

    def solved(criterion):
        moments = GroupMoments.from_rows(X, list("aabbbb"))
        return ExactSolver().solve(Problem(moments, 1, criterion=criterion)).certificate

    equal = solved(Equal(measure="kept_variance"))
    assert equal.status == "optimal"
    assert_allclose(equal.measures, 0.0, atol=1e-12)
    bounded = solved(AtMost({"a": 0.1}, "kept_variance"))
    assert bounded.status == "infeasible"
    assert bounded.violation_bound == pytest.approx(0.1, rel=1e-3)
    largest = solved(MinMax("kept_variance"))
    assert largest.status == "optimal"
    assert largest.value == 0.0


# What holds for every measure


@every_measure
def test_equality_of_any_measure(measure, relative):
    rng = np.random.default_rng(14)
    endings = set()
    for k in (2, 3, 4):
        matrices = scaled_matrices(rng, "general", k, 6)
        problem = posed(matrices, 3, measure, relative, criterion="equal")
        certificate = ExactSolver(n_starts=3).solve(problem).certificate
        endings.add(certificate.status)
        measures, totals = measures_of(problem, random_bases(rng, 2000, 6, 3))
        spreads = np.ptp(measures, axis=1)
        assert (spreads >= certificate.violation_bound).all()
        as_fair = spreads <= certificate.spread
        assert (totals[as_fair] >= certificate.lower_bound).all()
        if certificate.status in ("optimal", "bounded"):
            assert np.ptp(certificate.measures) <= 1e-9
    assert endings & {"optimal", "bounded"}


@every_measure
def test_the_worst_off_group_is_no_worse_off_than_with_ordinary_pca(measure, relative):
    rng = np.random.default_rng(15)
    for number in range(8):
        kind = ("general", "low rank", "integer diagonal", "other scales")[number % 4]
        k, d = int(rng.integers(2, 8)), int(rng.integers(2, 7))
        matrices, weights = random_matrices(rng, kind, k, d), 100 * rng.dirichlet(np.ones(k)) + 1
        r = int(rng.integers(1, d))
        for limits in ({}, {"max_extra_loss": 0.05}):
            problem = posed(matrices, r, measure, relative, weights, **limits)
            # With one start, for the searches may find what they will.
            certificate = ExactSolver(n_starts=1).solve(problem).certificate
            plain = problem.measures(problem.pca_basis)
            assert certificate.value <= plain.max() + 1e-12 * problem.affine.traces.max()
            assert not certificate.all_worse_off
            change = certificate.measures - plain
            assert_allclose(certificate.change_from_pca, change, atol=problem.negligible_spread)


@pytest.mark.parametrize("relative", [False, True])
def test_mixtures_are_no_worse_off_than_the_worst_off_group(relative):
    rng = np.random.default_rng(16)
    problem = posed(scaled_matrices(rng, "general", 4, 6), 2, "disparity", relative)
    solution = ExactSolver().solve(problem)
    assert solution.certificate.covers_mixtures
    units = constants_and_units(problem)[1]
    for shares in rng.dirichlet(np.full(4, 0.5), size=500):
        mixture = np.tensordot(shares / units, problem.matrices, 1)
        kept = np.trace(solution.basis.T @ mixture @ solution.basis)
        apart = np.linalg.eigvalsh(mixture)[-2:].sum() - kept
        assert apart <= solution.certificate.value + 1e-12


@every_measure
@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_shares_do_not_depend_on_the_unit_of_the_rows(measure, relative, factor):
    rng = np.random.default_rng(17)
    groups = np.arange(200) % 4
    X = rng.standard_normal((200, 5)) * rng.uniform(0.2, 2, (4, 5))[groups]
    found = []
    for rows in (X, factor * X):
        moments = GroupMoments.from_rows(rows, groups)
        problem = Problem(moments, 2, asked(measure=measure, relative=relative))
        found.append(ExactSolver(n_starts=4).solve(problem).certificate)
    unit = 1.0 if relative else factor**2
    first, second = found
    assert first.status == second.status
    assert_allclose(second.measures / unit, first.measures, rtol=1e-9)
    assert second.lower_bound / unit == pytest.approx(first.lower_bound, rel=1e-9)


@every_measure
def test_from_one_to_fifty_groups(measure, relative):
    rng = np.random.default_rng(18)
    for k in (1, 2, 3, 10, 50):
        problem = posed(scaled_matrices(rng, "general", k, 8), 3, measure, relative)
        certificate = ExactSolver(n_starts=2).solve(problem).certificate
        measures, _ = measures_of(problem, random_bases(rng, 200, 8, 3))
        assert certificate.value == pytest.approx(certificate.measures.max())
        assert certificate.lower_bound <= certificate.value <= measures.max(axis=1).min()


def test_tied_eigenvalues_leave_a_choice_to_the_total_loss():
    # The first group loses at least 1, on any line of the plane of the first two axes; most rows
    # lie along the third. Of the lines of that plane the second axis serves the second group best.
    matrices = [np.diag([1.0, 1.0, 0.0]), np.diag([0.1, 0.3, 0.0]), np.diag([0.0, 0.0, 0.9])]
    problem = posed(matrices, 1, "loss", weights=[10.0, 10.0, 80.0])
    solution = ExactSolver().solve(problem)
    assert np.abs(problem.pca_basis[:, 0]) == pytest.approx([0, 0, 1], abs=1e-9)
    assert solution.certificate.status == "optimal"
    assert solution.certificate.value == pytest.approx(1.0, abs=1e-7)
    assert_allclose(np.abs(solution.basis[:, 0]), [0, 1, 0], atol=1e-3)
    assert solution.total_loss == pytest.approx(0.1 * 1 + 0.1 * 0.1 + 0.8 * 0.9, abs=1e-6)


@pytest.mark.parametrize("tolerance", [0.0, 0.1, 1.5, 2.9, 3.0])
def test_equal_kept_variances_where_pca_loses_nothing(tolerance):
    """Along an axis at an angle to the first, a keeps 4 c and b keeps c, c the squared cosine.

    They differ by 3 c, and 2 - 2 c is lost.
    """
    moments = GroupMoments.from_rows(np.array([[2.0, 0], [-1, 0], [-1, 0]]), ["a", "b", "b"])
    problem = Problem(moments, 1, criterion=Equal(tolerance, "kept_variance"))
    certificate = ExactSolver().solve(problem).certificate
    assert certificate.status == "optimal"
    assert certificate.value == pytest.approx(2.0 - 2.0 * tolerance / 3.0, abs=1e-8)
    assert certificate.spread <= tolerance + 1e-8

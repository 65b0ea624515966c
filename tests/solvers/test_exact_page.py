"""docs/exact_solver.md: its formulas as printed, and the references of the code to it."""

import re
from pathlib import Path

import numpy as np
import pytest

from fairpca import AtMost
from fairpca.solvers._dual import smoothed_sum
from fairpca.solvers._space import Forms
from fairpca.solvers._two_groups import _evaluate

from measured import (
    constants_and_units,
    every_measure,
    measures_of,
    posed,
    random_bases,
    scaled_matrices,
)
from problems import random_basis, random_problem

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "exact_solver.md").read_text(encoding="utf-8")


def sections():
    return [int(number) for number in re.findall(r"^## (\d+)\. ", PAGE, re.M)]


def test_the_sections_are_numbered_and_listed():
    assert sections() == list(range(1, len(sections()) + 1))
    headings = re.findall(r"^## (\d+\. .+)$", PAGE, re.M)
    for heading in headings:
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        number, title = heading.split(". ", 1)
        assert f"{number}. [{title}](#{anchor})" in PAGE


def test_the_code_points_to_sections_that_exist_and_the_page_to_modules():
    package = ROOT / "src" / "fairpca"
    named = set()
    for path in package.rglob("*.py"):
        text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
        for listed in re.findall(r"docs/exact_solver\.md, sections? ([\d, toand]+)", text):
            for first, last in re.findall(r"(\d+)(?: to (\d+))?", listed):
                named.update(range(int(first), int(last or first) + 1))
    assert named == set(sections()) - {1}
    for module in re.findall(r"`(\w+\.py)`", PAGE):
        places = (package / "solvers" / module, package / module)
        assert any(place.exists() for place in places)


@pytest.mark.parametrize("kind", ["general", "integer diagonal"])
def test_the_hessian_as_printed_in_section_5(kind):
    rng = np.random.default_rng(0)
    forms = Forms.from_problem(random_problem(rng, kind, 4, 7, 3))
    weights, mu = np.array([0.5, 1.0, 0.25, 0.25]), 3.0
    values, vectors = np.linalg.eigh(forms.weighted_sum(weights))
    low, high = values[0] - 50, values[-1] + 50
    for _ in range(200):
        level = (low + high) / 2
        occupied = 1 / (1 + np.exp(-(values - level) / mu))
        low, high = (level, high) if occupied.sum() > 3 else (low, level)
    own = occupied * (1 - occupied) / mu
    apart = values[:, None] - values[None, :]
    tied = np.abs(apart) < 1e-9
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = (occupied[:, None] - occupied[None, :]) / apart
    slopes = np.where(tied, (own[:, None] + own[None, :]) / 2, slopes)
    inside = vectors.T @ forms.matrices @ vectors
    diagonal = np.einsum("kaa->ka", inside)
    hessian = np.einsum("ab,iab,jab->ij", slopes, inside, inside)
    hessian -= np.outer(diagonal @ own, diagonal @ own) / own.sum()
    smoothed = smoothed_sum(forms.spectrum(weights), 3, mu)
    kept, curvature = smoothed.derivatives(forms)
    np.testing.assert_allclose(kept, diagonal @ occupied, rtol=1e-10)
    np.testing.assert_allclose(curvature, hessian, rtol=1e-8, atol=1e-9)
    entropy = -(occupied * np.log(occupied) + (1 - occupied) * np.log(1 - occupied)).sum()
    assert smoothed.sigma == pytest.approx(occupied @ values + mu * entropy)


def test_negative_eigenvalues_are_counted_as_in_section_10():
    rng = np.random.default_rng(1)
    for _ in range(200):
        diagonal = rng.standard_normal(9)
        factor = rng.standard_normal((9, 3)) * rng.uniform(0, 3)
        whole = np.linalg.eigvalsh(np.diag(diagonal) + factor @ factor.T)
        small = np.linalg.eigvalsh(np.eye(3) + factor.T @ (factor / diagonal[:, None]))
        assert (whole < 0).sum() == (diagonal < 0).sum() - (small < 0).sum()


def test_the_derivative_of_the_slope_in_section_12():
    rng = np.random.default_rng(2)
    forms = Forms.from_problem(random_problem(rng, "general", 2, 8, 3))
    h = 1e-6
    for w in (0.2, 0.5, 0.9):
        here, ahead, behind = (_evaluate(forms, w + step) for step in (0, h, -h))
        assert (ahead.dual - behind.dual) / (2 * h) == pytest.approx(here.slope, rel=1e-5)
        assert (ahead.slope - behind.slope) / (2 * h) == pytest.approx(here.curvature, rel=1e-5)


def test_the_bound_of_section_15_holds_for_any_orthonormal_vectors():
    rng = np.random.default_rng(3)
    for _ in range(100):
        d, r = 12, 4
        matrix = rng.standard_normal((d, d))
        matrix = matrix + matrix.T
        vectors = random_basis(rng, d, r)
        values = np.sort(rng.standard_normal(r) * 4)[::-1]
        drops = values - values[-1]
        level = np.linalg.eigvalsh(matrix - (vectors * drops) @ vectors.T)[-1]
        assert np.linalg.eigvalsh(matrix)[-r:].sum() <= r * level + drops.sum() + 1e-9


def test_the_bounds_of_section_16():
    rng = np.random.default_rng(4)
    problem = random_problem(rng, "general", 4, 7, 3)
    c, p, r = problem.own_gains, problem.weights, problem.n_components

    def least(weights):
        combined = np.tensordot(weights, problem.matrices, 1)
        return weights @ c - np.linalg.eigvalsh(combined)[-r:].sum()

    multipliers = rng.standard_normal(4)
    centred = multipliers - multipliers.mean()
    positive = np.maximum(centred, 0).sum()
    equal = p @ (problem.traces - c) + least(p + centred) - 0.3 * positive
    assert problem.dual_bound(multipliers, 0.3) == pytest.approx(equal, rel=1e-12)
    assert problem.dual_bound(multipliers, 0.3) < equal
    assert problem.violation_bound(multipliers) == pytest.approx(
        least(centred / positive), rel=1e-12
    )
    for _ in range(50):
        basis = random_basis(rng, 7, r)
        assert problem.total_loss(basis) >= problem.dual_bound(multipliers, problem.spread(basis))
        assert problem.spread(basis) >= problem.violation_bound(multipliers)


@every_measure
def test_the_other_bounds_of_section_16(measure, relative):
    rng = np.random.default_rng([5, len(measure)])
    problem = posed(scaled_matrices(rng, "general", 4, 7), 3, measure, relative)
    constants, s = constants_and_units(problem)
    A, c, p = problem.matrices / s[:, None, None], constants / s, problem.weights * s
    base = problem.weights @ (problem.traces - constants)
    bases = random_bases(rng, 500, 7, 3)
    measures, totals = measures_of(problem, bases)

    def least(weights):
        return weights @ c - np.linalg.eigvalsh(np.tensordot(weights, A, 1))[-3:].sum()

    nu = rng.uniform(0, 1, 4)
    floor = (c - np.linalg.eigvalsh(A)[:, -3:].sum(axis=1)).max()
    expected = max(least(nu / nu.sum()), floor)
    assert problem.dual_bound(nu) == pytest.approx(expected, rel=1e-12)
    assert (measures.max(axis=1) >= problem.dual_bound(nu)).all()

    bounds = rng.uniform(0.5, 1, 4) * np.abs(np.median(measures, axis=0))
    bounded = problem.with_criterion(AtMost(bounds, problem.goal.measure))
    b, excess = bounded.goal.upper_bounds, (measures - bounded.goal.upper_bounds).max(axis=1)
    expected = base + least(p + nu) - nu @ (b + 0.1)
    assert bounded.dual_bound(nu, 0.1) == pytest.approx(expected, rel=1e-11)
    assert bounded.violation_bound(nu) == pytest.approx((least(nu) - nu @ b) / nu.sum(), rel=1e-11)
    assert (excess >= bounded.violation_bound(nu)).all()
    for total, slack in zip(totals, np.maximum(excess, 0), strict=True):
        assert total >= bounded.dual_bound(nu, slack)

    limited = posed(problem.matrices, 3, measure, relative, max_extra_loss=0.1)
    limit = 1.1 * np.linalg.eigvalsh(problem.total_matrix)[:4].sum()
    a, q = nu / nu.sum(), 0.01
    expected = least(a + q * p) - q * (limit + 0.2 - base)
    found = limited.dual_bound(a + q * p, 0.2)
    assert found == pytest.approx(max(expected, floor), rel=1e-10, abs=1e-13)
    for values, total in zip(measures, totals, strict=True):
        assert values.max() >= limited.dual_bound(a + q * p, max(total - limit, 0.0))

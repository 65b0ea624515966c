"""Rows with many more columns: through the space that they span it is the same as without it."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA

from fairpca import Equal, ExactSolver, FairPCA, GroupMoments, MinMax, Problem, audit
from fairpca.data import prepare_data
from fairpca.exceptions import FairnessWarning
from fairpca.moments import row_space

from texts import refused

pytestmark = pytest.mark.untraced


def wide_rows(rng, n, d, k=2):
    codes = np.arange(n) % k
    scales = np.arange(1, d + 1) ** -0.5
    X = rng.standard_normal((n, d)) * scales
    for i in range(1, k):
        X[codes == i] = X[codes == i][:, rng.permutation(d)] + 0.2 * rng.standard_normal(d)
    return X + 3.0, codes


def both_ways(monkeypatch, X, codes, *args, weights=None, **choices):
    """The fit in the space of the rows, and that with all columns."""
    fits = []
    for limit in (1, 10**9):
        monkeypatch.setattr(row_space, "FEW_COLUMNS", limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            fit = FairPCA(*args, **choices)
            fits.append(fit.fit(X, sensitive_features=codes, sample_weight=weights))
    return fits


def assert_same(reduced, direct, X, digits=1e-9):
    tr = np.square(np.asarray(X, dtype=float) - direct.mean_).sum(axis=1).mean()
    r, d = direct.components_.shape
    assert reduced.components_.shape == (r, d)
    assert reduced.solution_.basis.shape == (d, r)
    np.testing.assert_allclose(reduced.components_ @ reduced.components_.T, np.eye(r), atol=1e-10)
    np.testing.assert_allclose(reduced.mean_, direct.mean_, atol=1e-12)
    np.testing.assert_allclose(
        reduced.explained_variance_, direct.explained_variance_, atol=10 * digits * tr
    )
    np.testing.assert_allclose(
        reduced.explained_variance_ratio_, direct.explained_variance_ratio_, atol=10 * digits
    )
    for name in ("own_loss", "pca_loss", "loss"):
        left, right = (getattr(fit.group_table_, name) for fit in (reduced, direct))
        np.testing.assert_allclose(left, right, atol=digits * tr)
    mine, other = reduced.certificate_, direct.certificate_
    assert mine.status == other.status
    assert mine.lower_bound == pytest.approx(other.lower_bound, abs=digits * tr)
    assert mine.value == pytest.approx(other.value, abs=digits * tr)
    assert reduced.score(X) == pytest.approx(direct.score(X), abs=digits * tr)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(
    "criterion", ["minmax", Equal(tolerance=0.05), MinMax("share_lost"), "balanced"], ids=str
)
def test_same_as_with_all_columns(monkeypatch, k, criterion):
    rng = np.random.default_rng(k)
    X, codes = wide_rows(rng, 24, 60, k)
    reduced, direct = both_ways(monkeypatch, X, codes, 3, criterion=criterion)
    assert_same(reduced, direct, X)
    np.testing.assert_allclose(np.abs(reduced.transform(X)), np.abs(direct.transform(X)), atol=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("choices", [{"centering": "group"}, {"aggregation": "sum"}], ids=str)
def test_other_problems_are_the_same_as_with_all_columns(monkeypatch, k, choices):
    monkeypatch.setattr(row_space, "FEW_COLUMNS", 1)
    X, codes = wide_rows(np.random.default_rng(k), 24, 60, k)
    wide, whole = (
        prepare_data(X, codes, reduce_wide=reduce).problem(3, **choices) for reduce in (1, 0)
    )
    assert wide.moments.n_features < whole.moments.n_features == 60
    reduced, direct = (ExactSolver().solve(problem) for problem in (wide, whole))
    size = 1e-9 * whole.traces.max()
    np.testing.assert_allclose(wide.own_losses, whole.own_losses, atol=size)
    np.testing.assert_allclose(reduced.group_losses, direct.group_losses, atol=size)
    mine, other = reduced.certificate, direct.certificate
    assert mine.status == other.status
    assert mine.lower_bound == pytest.approx(other.lower_bound, abs=size)
    assert mine.value == pytest.approx(other.value, abs=size)


def test_same_with_weights_some_of_them_zero(monkeypatch):
    rng = np.random.default_rng(4)
    X, codes = wide_rows(rng, 30, 70, 3)
    weights = rng.uniform(0, 2, 30)
    weights[codes == 2] = 0.0
    weights[:3] = 0.0
    X[0] = 1e6  # a row without weight
    reduced, direct = both_ways(monkeypatch, X, codes, 4, weights=weights)
    np.testing.assert_allclose(reduced.mean_, direct.mean_, atol=1e-8)
    np.testing.assert_allclose(reduced.group_table_.loss, direct.group_table_.loss, rtol=1e-8)
    assert reduced.certificate_.status == direct.certificate_.status == "optimal"
    assert reduced.score(X, sample_weight=weights) == pytest.approx(
        direct.score(X, sample_weight=weights), rel=1e-8
    )


@pytest.mark.parametrize("n_components", [None, 0.8, 0.999, 1, 11, 15, 40])
def test_any_number_of_components(monkeypatch, n_components):
    rng = np.random.default_rng(5)
    X, codes = wide_rows(rng, 12, 40)
    X[3] = X[5]  # rows that repeat, columns that are constant
    X[:, 7] = 2.0
    reduced, direct = both_ways(monkeypatch, X, codes, n_components)
    assert_same(reduced, direct, X)


def test_groups_smaller_than_the_dimension(monkeypatch):
    rng = np.random.default_rng(6)
    X, _ = wide_rows(rng, 20, 50)
    codes = np.array([0] * 16 + [1] * 3 + [2])
    assert_same(*both_ways(monkeypatch, X, codes, 5), X)


def test_identical_rows_lose_nothing(monkeypatch):
    X = np.full((6, 20), 3.0)
    reduced, direct = both_ways(monkeypatch, X, np.arange(6) % 2, 2)
    assert_same(reduced, direct, X)


@pytest.mark.parametrize("kind", ["csr", "float32", "fortran", "far from zero"])
def test_other_kinds_of_rows(monkeypatch, kind):
    rng = np.random.default_rng(7)
    X, codes = wide_rows(rng, 20, 60)
    if kind == "csr":
        X[rng.random(X.shape) < 0.8] = 0.0
        given = scipy.sparse.csr_array(X)
    elif kind == "float32":
        given = X.astype(np.float32)
        X = given.astype(float)
    elif kind == "fortran":
        given = np.asfortranarray(X)
    else:
        X[:, ::2] += 1e6
        given = X
    before = given.copy()
    reduced, direct = both_ways(monkeypatch, given, codes, 3)
    assert (abs(given - before)).max() == 0
    np.testing.assert_allclose(reduced.group_table_.loss, direct.group_table_.loss, rtol=1e-6)
    np.testing.assert_allclose(
        np.abs(reduced.transform(given)), np.abs(direct.transform(given)), rtol=1e-3, atol=1e-4
    )
    assert reduced.certificate_.status == direct.certificate_.status == "optimal"


def test_the_best_subspace_may_lean_out_of_the_span_of_the_rows(monkeypatch):
    # Where equality means that all groups lose more than they have to, the fairest line leaves the
    # plane of the rows.
    leaning = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.zeros((9, 20))
        X[:, :2] = rng.standard_normal((9, 2)) * rng.uniform(0.2, 3, 2)
        codes = np.arange(9) % 3
        X -= X.mean(axis=0)
        solver = ExactSolver(n_starts=3)
        reduced, direct = both_ways(monkeypatch, X, codes, 1, criterion="equal", solver=solver)
        assert reduced.certificate_.status == direct.certificate_.status
        assert reduced.certificate_.value == pytest.approx(direct.certificate_.value, rel=1e-6)
        # By brute force over the lines of three dimensions, of which the rows span two.
        a, b = (grid.ravel() for grid in np.meshgrid(*[np.linspace(0, np.pi, 181)] * 2))
        lines = np.column_stack([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)])
        problem = Problem(GroupMoments.from_rows(X[:, :3], codes), 1)
        kept = np.einsum("ni,kij,nj->nk", lines, problem.matrices, lines)
        spread = np.ptp(problem.own_gains - kept, axis=1)
        loss = problem.weights @ problem.traces - kept @ problem.weights
        certificate = reduced.certificate_
        assert certificate.violation_bound <= spread.min() + 1e-9
        as_fair = spread <= certificate.spread
        if as_fair.any():
            assert certificate.lower_bound <= loss[as_fair].min() + 1e-9
        leaning += bool(np.abs(reduced.components_[:, 2:]).max() > 1e-3)
    assert leaning > 0


def test_values_that_are_not_finite_are_refused(monkeypatch):
    monkeypatch.setattr(row_space, "FEW_COLUMNS", 1)
    X, codes = wide_rows(np.random.default_rng(10), 10, 30)
    X[4, 5] = np.nan
    with refused(ValueError, "NaN"):
        FairPCA(2, criterion="minmax").fit(X, sensitive_features=codes)
    X[4, 5] = 1e300
    with refused(ValueError, "squared"):
        FairPCA(2, criterion="minmax").fit(X, sensitive_features=codes)


@pytest.mark.parametrize("work", ["fit", "audit"])
def test_memory_stays_near_that_of_the_rows(work):
    rng = np.random.default_rng(11)
    X = rng.standard_normal((100, 20_000))
    codes = np.arange(100) % 2
    fitted = PCA(5, svd_solver="full").fit(X)
    tracemalloc.start()
    if work == "fit":
        FairPCA(5, criterion="minmax").fit(X, sensitive_features=codes)
    else:
        audit(fitted, X, sensitive_features=codes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The audit restores rows in blocks, of which these are one.
    assert peak < (2 if work == "fit" else 4) * X.nbytes


@pytest.mark.parametrize("kind", ["array", "csr", "weights"])
def test_an_audit_is_that_with_all_columns(monkeypatch, kind):
    rng = np.random.default_rng(12)
    X, codes = wide_rows(rng, 25, 70, 3)
    weights = rng.uniform(0, 2, 25) if kind == "weights" else None
    given = scipy.sparse.csr_array(X) if kind == "csr" else X
    fitted = PCA(4).fit(X[:20])
    tables = []
    for limit in (1, 10**9):
        monkeypatch.setattr(row_space, "FEW_COLUMNS", limit)
        tables.append(audit(fitted, given, sensitive_features=codes, sample_weight=weights))
    for name in ("count", "own_loss", "pca_loss", "loss", "disparity"):
        np.testing.assert_allclose(*(getattr(table, name) for table in tables), atol=1e-9)
    X[3, 3] = np.inf
    for limit in (1, 10**9):
        monkeypatch.setattr(row_space, "FEW_COLUMNS", limit)
        with refused(ValueError, "infinity"):
            audit(fitted, X, sensitive_features=codes)

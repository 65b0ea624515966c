"""Bootstrap intervals: that they hold the truth, and are those of rows drawn one by one."""

import numpy as np
import pytest

from fairpca import GroupMoments, MinMax, Problem
from fairpca.data import GroupedData
from fairpca.generalization import bootstrap as resampling
from fairpca.generalization.bootstrap import BootstrapBlocks, difference_interval, measure_intervals
from studies import interval_coverage

pytestmark = pytest.mark.untraced


def two_groups(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6)) * [3, 3, 2, 2, 1, 1]
    X[: n // 3] = X[: n // 3, ::-1]
    return X, np.array(["a"] * (n // 3) + ["b"] * (n - n // 3))


def grouped_data(problem, X, codes, weights=None):
    return GroupedData(problem.moments, X, codes, weights)


@pytest.mark.parametrize(("n", "r"), [(30, 2), (200, 2), (25 * 2, 5)])
def test_intervals_cover_the_truth(n, r):
    """Rows from a known distribution: its disparity lies in 95 % of the intervals, nearly."""
    rng = np.random.default_rng(n)
    d, runs = 3 * r, 200
    spectrum = np.linspace(4.0, 0.2, d)
    covered = 0
    for _ in range(runs):
        basis = np.linalg.qr(np.eye(d)[:, :r] + 0.4 * rng.normal(size=(d, r)))[0]
        truth = spectrum[:r].sum() - np.trace(basis.T * spectrum @ basis)
        X = rng.normal(size=(n, d)) * np.sqrt(spectrum)
        problem = Problem(GroupMoments.from_rows(X), r, centering="group")
        found = measure_intervals(
            problem, grouped_data(problem, X, np.zeros(n, int)), [basis], 60, rng
        )
        covered += found.low[0, 0] <= truth <= found.high[0, 0]
    assert covered / runs >= 0.92


def test_the_largest_of_many_differences_is_not_called_sure():
    """Twelve groups of one distribution: picking the extremes must not make a finding."""
    rng = np.random.default_rng(0)
    sure = 0
    for _ in range(40):
        X = rng.normal(size=(480, 5)) * [2, 1.5, 1, 1, 1]
        codes = np.arange(480) % 12
        problem = Problem(GroupMoments.from_rows(X, codes), 2)
        found = measure_intervals(
            problem, grouped_data(problem, X, codes), [problem.pca_basis], 100, rng
        )
        disparities = problem.disparities(problem.pca_basis)
        extremes = disparities.argmax(), disparities.argmin()
        low, _ = difference_interval(disparities, found.draws[0], found.quantiles, *extremes)
        sure += low > 0
    assert sure <= 5  # of 40, at a nominal 2.5 %


@pytest.mark.parametrize("measure", ["disparity", "relative_disparity", "loss", "share_kept"])
def test_draws_are_those_of_rows_drawn_one_by_one(measure, monkeypatch):
    """Mean and spread of the draws against a plain bootstrap of weighted rows."""
    monkeypatch.setattr(resampling, "_PIECES", 40)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3)) * [2.0, 1.0, 1.0] + [5.0, 0.0, 1.0]
    X[80:, 0] += 2.0
    codes = np.repeat([0, 1], 80)
    weights = rng.uniform(0.5, 3.0, 160)
    weights[::10] = 0.0
    moments = GroupMoments.from_rows(X, codes, sample_weight=weights)
    problem = Problem(moments, 1, MinMax(measure))
    basis = np.linalg.qr(rng.normal(size=(3, 1)))[0]
    found = measure_intervals(problem, grouped_data(problem, X, codes, weights), [basis], 1500, rng)

    def measured(rows, row_weights):
        center = moments.total_mean
        matrix = np.cov((rows - center).T, aweights=row_weights, ddof=0)
        offset = np.average(rows, axis=0, weights=row_weights) - center
        matrix = matrix + np.outer(offset, offset)
        own, all_of_it = np.linalg.eigvalsh(matrix)[-1], np.trace(matrix)
        constants = {"loss": all_of_it, "share_kept": 0.0}
        value = constants.get(measure, own) - (basis.T @ matrix @ basis).item()
        relative = measure in ("relative_disparity", "share_kept")
        return value / all_of_it if relative else value

    for group in (0, 1):
        members = np.flatnonzero((codes == group) & (weights > 0))
        here = measured(X[members], weights[members])
        assert here == pytest.approx(problem.measures(basis)[group])
        drawn = [rng.choice(members, len(members)) for _ in range(1500)]
        plain = np.array([measured(X[rows], weights[rows]) for rows in drawn]) - here
        ours = found.draws[0, group]
        assert ours.std() == pytest.approx(plain.std(), rel=0.25)
        assert ours.mean() == pytest.approx(plain.mean(), abs=0.15 * plain.std())
    middle = (
        np.subtract(*problem.measures(basis)[[0, 1]])
        - np.subtract(found.draws[0, 0], found.draws[0, 1]).mean()
    )
    measures = problem.measures(basis)
    low, high = difference_interval(measures, found.draws[0], found.quantiles, 0, 1)
    assert (low + high) / 2 == pytest.approx(middle)
    ends = np.array([found.low[0], problem.measures(basis), found.high[0]])
    assert (ends <= 0).all() if measure == "share_kept" else (ends >= 0).all()
    assert (found.low < found.high).all()
    error = np.hypot(found.draws[0, 0].std(), found.draws[0, 1].std())
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.15)


def test_blocks_of_large_groups_give_the_same_intervals(monkeypatch):
    X, groups = two_groups(3000)
    codes = (groups == "b").astype(int)
    problem = Problem(GroupMoments.from_rows(X, groups), 2)
    widths = []
    for pieces in (5000, 150):
        monkeypatch.setattr(resampling, "_PIECES", pieces)
        found = measure_intervals(
            problem,
            grouped_data(problem, X, codes),
            [problem.pca_basis],
            1000,
            np.random.default_rng(0),
        )
        widths.append(found.high - found.low)
    np.testing.assert_allclose(widths[1], widths[0], rtol=0.2)


def test_intervals_with_many_columns(monkeypatch):
    """Looking for own subspaces among leading directions only changes little."""
    rng = np.random.default_rng(0)
    spectrum = 1.0 / np.arange(1, 41)
    X = rng.normal(size=(600, 40)) * np.sqrt(spectrum)
    X[:300, :4] = X[:300, 3::-1]
    codes = np.repeat([0, 1], 300)
    problem = Problem(GroupMoments.from_rows(X, codes), 3)
    bases = [problem.pca_basis, problem.own_subspaces[0]]
    found = []
    for columns in (100, 15):
        monkeypatch.setattr(resampling, "_COLUMNS", columns)
        monkeypatch.setattr(resampling, "_MORE_COLUMNS", 9)
        drawn = measure_intervals(
            problem, grouped_data(problem, X, codes), bases, 200, np.random.default_rng(0)
        )
        found.append(np.array([drawn.low, drawn.high]))
    width = found[0][1] - found[0][0]
    assert (width > 0).all()
    assert (np.abs(found[1] - found[0]) < 0.25 * width).all()


@pytest.mark.parametrize("sizes", [(150,), (1, 149), (40, 0, 60, 50)])
@pytest.mark.parametrize("pieces", [20, 400])
def test_rows_in_batches_of_any_size_are_drawn_alike(sizes, pieces, monkeypatch):
    monkeypatch.setattr(resampling, "_FEWEST_PIECES", 1)
    monkeypatch.setattr(resampling, "_PIECES", pieces)
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(150, 3)), rng.uniform(0.5, 2.0, 150)
    drawn = []
    for parts in ((150,), sizes):
        taken = BootstrapBlocks(150, 7, n_components=1, directions=np.eye(3))
        for part in np.split(np.arange(150), np.cumsum(parts)[:-1]):
            taken.add(X[part], weights[part], [X[part, 0]])
        (values,), own_gains = taken.resampled(30)
        drawn.append(np.array([values, own_gains]))
    np.testing.assert_allclose(drawn[1], drawn[0], atol=1e-13)
    assert (drawn[0].std(axis=1) > 0).all()


def test_few_heavy_rows_make_wide_intervals():
    """Weights count: two rows with nearly all of it say less than a hundred alike."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    quantiles = []
    for heavy in (1.0, 1e4):
        weights = np.where(np.arange(100) < 2, heavy, 1.0)
        taken = BootstrapBlocks(100, 0)
        taken.add(X, weights, [X[:, 0]])
        quantiles.append(taken.quantile)
    assert quantiles[0] == pytest.approx(1.984, abs=1e-3)  # Student's t, 99 degrees of freedom
    assert quantiles[1] > 10.0


def test_lines_of_the_table_of_coverage_are_found_again():
    page = interval_coverage.TARGET.read_text(encoding="utf-8").splitlines()
    for case in (
        interval_coverage.Case(20, 5, 0.3, "normal", 30),
        interval_coverage.Case(10, 2, 0.7, "t5", 60),
    ):
        found = interval_coverage.run(case)
        assert found.line(case) in page
    pooled = [line.split("|")[3:7] for line in page if line.startswith(("| normal", "| t5"))]
    assert len(pooled) == len(interval_coverage.TAILS) * len(interval_coverage.ROWS)
    assert np.array(pooled, dtype=float).min() >= 100 * interval_coverage.WANTED
    lines = [line for line in page if line.startswith(("| 10", "| 20"))]
    assert len(lines) == len([*interval_coverage.cases()])
    shares = np.array([[float(cell) for cell in line.split("|")[8:12]] for line in lines])
    # A share of 300 is known to 1.6 per cent only.
    assert (shares < 100 * interval_coverage.WANTED).sum() <= 1
    assert shares.min() >= 90.0

"""audit: intervals, and the training rows' own subspaces as what others are measured against."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy import stats
from sklearn.decomposition import NMF, PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, audit
from fairpca.moments import row_space

from texts import recorded, refused

pytestmark = pytest.mark.untraced


def people(n=240, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(3, 1, d)
    X[: n // 3] = X[: n // 3, ::-1] + 0.3
    return X, np.array(["a"] * (n // 3) + ["b"] * (n - n // 3))


def tail_loss(rows, weights, center, r):
    """What rows lose in their own best subspace of r dimensions about a centre."""
    matrix = (rows - center).T @ ((rows - center) * weights[:, None]) / weights.sum()
    return np.linalg.eigvalsh(matrix)[:-r].sum()


# --- Intervals -----------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_are_those_of_rows_drawn_one_by_one(weighted):
    X, groups = people()
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.2, 3.0, len(X)) if weighted else np.ones(len(X))
    center = np.average(X, axis=0, weights=weights)
    reduction, pca = PCA(2).fit(X[:100]), PCA(2).fit(X)
    given = {"sample_weight": weights} if weighted else {}
    table = audit(reduction, X, sensitive_features=groups, n_resamples=6000, **given)
    values, vectors = np.linalg.eigh((X - center).T @ ((X - center) * weights[:, None]))
    assert values[0] > 0
    errors = np.square(X - reduction.inverse_transform(reduction.transform(X))).sum(axis=1)
    others = np.square((X - center) @ vectors[:, :-2]).sum(axis=1)
    if not weighted:
        inside = pca.inverse_transform(pca.transform(X))
        np.testing.assert_allclose(others, np.square(X - inside).sum(axis=1))
    for i, label in enumerate("ab"):
        members = np.flatnonzero(groups == label)

        def measured(some):
            w = weights[some]
            loss, pca_loss = (np.average(part[some], weights=w) for part in (errors, others))
            return np.array([loss, loss - tail_loss(X[some], w, center, 2), loss - pca_loss])

        here = measured(members)
        drawn = np.array([measured(rng.choice(members, len(members))) for _ in range(6000)]) - here
        error, bias = drawn.std(axis=0), drawn.mean(axis=0)
        skew = stats.skew(drawn)
        rows = weights[members].sum() ** 2 / np.square(weights[members]).sum()
        t = stats.t.ppf(0.975, rows - 1)
        further = skew * (1 + 2 * t**2) / 6
        share = error[0] / here[0]
        # A projection leaves no group less than its own PCA does.
        middle, reach = max(here[1] - bias[1], 0.0), t * error[1] + abs(bias[1]) / 2
        expected = {
            "loss": here[0] * np.exp([-t * share, (t + 2.6 * max(further[0], 0.0)) * share]),
            "disparity": np.maximum(middle + np.array([-1, 1]) * reach, 0.0),
            "change": here[2]
            + error[2] * np.array([-t + 3 * min(further[2], 0.0), t + 3 * max(further[2], 0.0)]),
        }
        for name, ends in expected.items():
            found = getattr(table.intervals, name)[i]
            np.testing.assert_allclose(found, ends, atol=0.12 * np.ptp(ends), err_msg=name)


def test_intervals_are_shown_and_can_be_left_out():
    X, groups = people()
    pca = PCA(2).fit(X)
    table = audit(pca, X, sensitive_features=groups)
    plain = audit(pca, X, sensitive_features=groups, n_resamples=0)
    for name in ("loss", "own_loss", "pca_loss", "variance"):
        np.testing.assert_array_equal(getattr(table, name), getattr(plain, name))
    assert plain.intervals is None
    assert "interval" not in str(plain)
    assert not [name for name in plain.to_dict() if name.endswith(("low", "high"))]
    ends = table.intervals.disparity
    columns, frame = table.to_dict(), table.to_frame()
    for name in ("loss", "disparity", "change"):
        pair = getattr(table.intervals, name)
        assert columns[f"audited {name} low"] == pair[:, 0].tolist()
        assert frame[f"audited {name} high"].tolist() == pair[:, 1].tolist()
    for line, (low, high) in zip(
        str(table).splitlines()[3:5], table.intervals.loss / table.variance[:, None], strict=True
    ):
        assert f"{100 * low:.1f} to {100 * high:.1f}" in line
    low, high = table.intervals.difference
    percent = np.array([low, high]) * 100 / (table.count @ table.variance / table.count.sum())
    said = re.search(r"by ([\d.]+) to ([\d.]+) % of the variance of all rows", table.sentences())
    np.testing.assert_allclose([float(end) for end in said.groups()], percent, rtol=0.05)
    assert "95 % interval" in table._repr_html_()
    again = audit(pca, X, sensitive_features=groups)
    np.testing.assert_array_equal(again.intervals.disparity, ends)
    other = audit(pca, X, sensitive_features=groups, random_state=1)
    assert not np.array_equal(other.intervals.disparity, ends)


def test_whether_rows_tell_groups_apart_is_said():
    X, groups = people(3000)
    said = audit(PCA(2).fit(X), X, sensitive_features=groups)
    assert said.intervals.difference[0] > 0
    recorded(said.sentences(), "disparities of a and b differ significantly")
    rng = np.random.default_rng(0)
    same = audit(PCA(2).fit(X), X, sensitive_features=rng.integers(0, 3, len(X)))
    assert same.intervals.difference[0] < 0 < same.intervals.difference[1]
    recorded(same.sentences(), "do not differ significantly", "all pairs")


def test_the_largest_difference_has_no_interval_of_another_pair():
    X, groups = people(3000)
    groups = groups.astype(object)
    groups[:4] = "few"
    X[:4] = 9.0 * X[:4, ::-1]
    table = audit(PCA(2).fit(X), X, sensitive_features=groups)
    few = table.labels.index("few")
    assert table.disparity.argmax() == few
    assert few not in table.intervals.extremes
    recorded(table.sentences(), "disparities of a and b differ significantly")


def test_small_groups_have_no_interval_and_are_named():
    X, groups = people(300)
    groups = groups.astype(object)
    groups[:29] = "few"
    groups[29:59] = "enough"
    table = audit(PCA(2).fit(X), X, sensitive_features=groups)
    few = table.labels.index("few")
    for name in ("loss", "disparity", "change"):
        known = np.isfinite(getattr(table.intervals, name)).all(axis=1)
        assert known.tolist() == [label != "few" for label in table.labels]
    recorded(table.sentences(), "No interval", "few (29 rows)", "30 rows")
    (unknown,) = [line for line in str(table).splitlines() if "unknown" in line]
    assert unknown.startswith("few ")
    assert few not in table.intervals.extremes
    # Five rows for each dimension.
    wide = np.hstack([X, X[::-1]])
    table = audit(PCA(7).fit(wide), wide, sensitive_features=groups)
    assert np.isnan(table.intervals.loss[table.labels.index("enough")]).all()
    recorded(table.sentences(), "few (29 rows)", "enough (30 rows)", "35 rows")


def test_a_disparity_that_can_be_negative_has_such_an_interval():
    """NMF does not go through the mean, so a group can lose less than with its own PCA."""
    rng = np.random.default_rng(0)
    X = np.outer(rng.uniform(1, 3, 200), [1.0, 1.0, 1.0]) + rng.uniform(0, 0.1, (200, 3))
    groups = np.arange(200) % 2
    X[groups == 1, :2] *= 3.0
    table = audit(NMF(2, init="nndsvda", max_iter=2000).fit(X), X, sensitive_features=groups)
    assert (table.intervals.disparity[:, 0] < table.disparity).all()
    pca = audit(PCA(2).fit(X), X, sensitive_features=groups)
    assert (pca.intervals.disparity >= 0.0).all()


@pytest.mark.parametrize("kind", ["array", "csr", "weights"])
def test_wide_rows_have_the_intervals_of_all_columns(monkeypatch, kind):
    rng = np.random.default_rng(3)
    X, groups = rng.normal(size=(70, 150)) * np.linspace(2, 0.1, 150), np.arange(70) % 2
    weights = rng.uniform(0.5, 2.0, 70) if kind == "weights" else None
    fitted = PCA(3).fit(X)
    given = scipy.sparse.csr_array(X) if kind == "csr" else X
    found = []
    for limit in (1, 10**9):
        monkeypatch.setattr(row_space, "FEW_COLUMNS", limit)
        table = audit(fitted, given, sensitive_features=groups, sample_weight=weights)
        found.append(table.intervals.disparity)
    # Only so many directions of 150 columns are looked at.
    np.testing.assert_allclose(found[1], found[0], rtol=0.02)


# --- The training rows as the baseline ------------------------------------------


def training_losses(fitted_rows, fitted_groups, rows, r):
    """What rows lose in each training group's own subspace, and in that of all, from scratch."""
    mean = fitted_rows.mean(axis=0)

    def errors(some):
        basis = np.linalg.svd(some - mean)[2][:r].T
        left = (rows - mean) - (rows - mean) @ basis @ basis.T
        return np.square(left).sum(axis=1)

    own = {label: errors(fitted_rows[fitted_groups == label]) for label in set(fitted_groups)}
    return own, errors(fitted_rows), np.square(rows - mean).sum(axis=1)


@pytest.mark.parametrize("choices", [{}, {"criterion": "balanced"}])
@pytest.mark.parametrize("kind", ["array", "csr", "frame", "weights"])
def test_losses_against_the_subspaces_of_the_training_rows(choices, kind):
    X, groups = people()
    new, labels = people(180, seed=1)
    names = list("vwxyz")
    convert = {"csr": scipy.sparse.csr_matrix, "frame": lambda X: pd.DataFrame(X, columns=names)}
    convert = convert.get(kind, np.asarray)
    fair = FairPCA(2, **choices).fit(convert(X), sensitive_features=groups)
    weights = np.random.default_rng(2).uniform(0, 2, 180) if kind == "weights" else np.ones(180)
    table = audit(
        fair, convert(new), sensitive_features=labels, sample_weight=weights, baseline="training"
    )
    own, pca, squares = training_losses(X, groups, new, 2)
    kept = np.square((new - fair.mean_) @ fair.components_.T).sum(axis=1)
    for i, label in enumerate("ab"):
        here, w = labels == label, weights[labels == label]
        assert table.own_loss[i] == pytest.approx(np.average(own[label][here], weights=w))
        assert table.pca_loss[i] == pytest.approx(np.average(pca[here], weights=w))
        assert table.loss[i] == pytest.approx(np.average((squares - kept)[here], weights=w))
        assert table.variance[i] == pytest.approx(np.average(squares[here], weights=w))
        values = (squares - kept - own[label])[here]
        error = np.sqrt(np.square(w * (values - np.average(values, weights=w))).sum()) / w.sum()
        assert np.ptp(table.intervals.disparity[i]) > 3.6 * error
        assert np.ptp(table.intervals.disparity[i]) < 9.0 * error
    assert table.baseline == "training"


def test_the_baseline_is_said():
    X, groups = people()
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    new, labels = people(180, seed=1)
    table = audit(fair, new, sensitive_features=labels, baseline="training")
    assert str(table).splitlines()[1].split().count("training") == 2
    assert "ordinary PCA" not in recorded(table.sentences(), "training rows", "1 of 2 groups")
    assert {"training own PCA loss", "training PCA loss", "training PCA disparity"} <= {
        *table.to_dict()
    }
    rows = audit(fair, new, sensitive_features=labels)
    assert rows.baseline == "rows"
    assert "training" not in str(rows)
    # The least of all for these rows is less than what the training rows' subspaces leave.
    assert (rows.own_loss < table.own_loss).all()


def test_on_its_own_training_rows_both_baselines_are_one():
    X, groups = people()
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    tables = [audit(fair, X, sensitive_features=groups, baseline=b) for b in ("rows", "training")]
    for name in ("own_loss", "pca_loss", "loss", "variance", "disparity"):
        np.testing.assert_allclose(*(getattr(table, name) for table in tables), rtol=1e-9)


def test_groups_that_were_not_seen_or_have_few_training_rows():
    X, groups = people()
    groups = groups.astype(object)
    groups[:7] = "rare"
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    new, labels = people(240, seed=1)
    labels = labels.astype(object)
    labels[:40], labels[40:75] = "new", "rare"
    table = audit(fair, new, sensitive_features=labels, baseline="training")
    at = table.labels.index("new")
    assert np.isnan(table.own_loss[at])
    assert np.isfinite([table.loss[at], table.pca_loss[at], *table.intervals.loss[at]]).all()
    assert np.isnan(table.intervals.disparity[at]).all()
    recorded(table.sentences(), "new (40 rows)", "rare (7 rows)", "30 training rows")
    assert "nan" not in str(table) + table._repr_html_()
    (of_new,) = [line for line in str(table).splitlines() if line.startswith("new ")]
    assert of_new.split()[-1] == "unknown"


def test_groups_that_overlap_and_pipelines():
    rng = np.random.default_rng(0)
    X, columns = rng.normal(size=(200, 4)) * [3, 2, 1, 1], rng.integers(0, 2, (200, 2)).astype(str)
    pipe = make_pipeline(StandardScaler(), FairPCA(2, groups="marginals", criterion="minmax"))
    pipe.fit(X, fairpca__sensitive_features=columns)
    table = audit(pipe, X, sensitive_features=columns, baseline="training")
    expected = pipe[-1].group_table_
    assert table.labels == expected.labels
    np.testing.assert_allclose(table.own_loss, expected.own_loss)
    np.testing.assert_allclose(table.loss, expected.loss)


def test_what_is_asked_for_wrongly(monkeypatch):
    X, groups = people()
    known = {"sensitive_features": groups}
    fair = FairPCA(2, criterion="minmax").fit(X, **known)
    for wrong, match in (
        ({"baseline": "own"}, "baseline"),
        ({"n_resamples": 1}, "n_resamples 0 2"),
        ({"n_resamples": -1}, "n_resamples integer"),
        ({"random_state": "x"}, "random_state"),
    ):
        with refused(ValueError, *match.split()):
            audit(fair, X, **known, **wrong)
    with refused(ValueError, "PCA does not keep", "FairPCA"):
        audit(PCA(2).fit(X), X, **known, baseline="training")
    monkeypatch.setattr(row_space, "FEW_COLUMNS", 1)
    wide = np.random.default_rng(0).normal(size=(20, 60))
    fair = FairPCA(2, criterion="minmax").fit(wide, sensitive_features=np.arange(20) % 2)
    assert fair.baselines_ is None
    with refused(ValueError, "more columns"):
        audit(fair, wide, sensitive_features=np.arange(20) % 2, baseline="training")


def test_large_subspaces_are_not_kept(monkeypatch):
    X, groups = people()
    kept = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups).baselines_
    assert kept.own_bases.nbytes == 8 * 2 * 5 * 2
    monkeypatch.setattr("fairpca.fair_pca._MOST_BYTES", 8 * 2 * 5 * 2 - 1)
    assert FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups).baselines_ is None

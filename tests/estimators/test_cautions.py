"""Cautions: what fit, audit, fronts, reports and the program say of what a result rests on."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from fairpca import (
    ExactSolver,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    MinMax,
    Problem,
    audit,
    pareto_front,
)
from fairpca.data import prepare_data
from fairpca.datasets import load_adult, load_credit
from fairpca.generalization import chance
from fairpca.generalization.cautions import BEGINNING, cautions
from fairpca.generalization.chance import indistinct_groups
from fairpca.generalization.drawn import RandomGroups, SomeRows, often_drawn
from fairpca.group_table import GroupTable
from fairpca.report import report

pytestmark = pytest.mark.untraced


def said(run):
    """The cautions that a call gives, of which there is one warning at the most."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    found = [str(each.message) for each in caught if issubclass(each.category, FairnessWarning)]
    found = [text for text in found if text.startswith(BEGINNING)]
    assert len(found) <= 1
    return found[0].removeprefix(BEGINNING) if found else ""


def said_by_fit(X, labels, r=2, **choices):
    fair = FairPCA(r, **choices)
    return said(lambda: fair.fit(X, sensitive_features=labels))


def judged(X, groups, r, **choices):
    """Which groups of rows may be chance."""
    grouped_data = prepare_data(X, groups)
    problem = grouped_data.problem(r, **choices)
    return indistinct_groups(problem, pca_table(problem), grouped_data)


def pca_table(problem):
    return GroupTable.from_problem(problem, problem.group_losses(problem.pca_basis), "PCA")


def rows_of(spectrum, n, d, seed, tails=None):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) if tails is None else rng.standard_t(tails, size=(n, d))
    return rows * np.sqrt(spectrum_of(spectrum, d))


def spectrum_of(name, d):
    j = np.arange(1, d + 1)
    return {"flat": np.ones(d), "steep": 1 / j**2, "slow": 5 / j}[name]


def shared_out(n, shares):
    """Labels of n rows, in the order of the groups."""
    return np.searchsorted(np.cumsum(shares)[:-1] * n, np.arange(n), side="right")


SHARES = {
    "halves": [0.5, 0.5],
    "a tenth": [0.9, 0.1],
    "ten": [0.1] * 10,
    "large and small": [0.5, 0.2, 0.1, 0.1, 0.05, 0.02, 0.01, 0.01, 0.005, 0.005],
}


@pytest.fixture(scope="module")
def tables():
    return {
        name: StandardScaler().fit_transform(load(as_frame=False).data)
        for name, load in (("adult", load_adult), ("credit", load_credit))
    }


# --- Groups that are alike ----------------------------------------------------


@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize(
    ("spectrum", "d", "r", "tails"),
    [
        ("flat", 5, 1, None),
        ("steep", 5, 2, None),
        ("slow", 20, 5, None),
        ("steep", 60, 2, None),
        ("slow", 20, 5, 5),
    ],
)
def test_shuffled_groups_of_simulated_rows_may_be_chance(spectrum, d, r, tails, shares):
    rng = np.random.default_rng(0)
    X, groups = rows_of(spectrum, 600, d, 1, tails), shared_out(600, SHARES[shares])
    assert sum(judged(X, rng.permutation(groups), r).any() for _ in range(20)) >= 18


@pytest.mark.parametrize("shares", ["halves", "large and small"])
@pytest.mark.parametrize("table", ["adult", "credit"])
@pytest.mark.parametrize("n", [1000, 30_000])
def test_shuffled_groups_of_real_rows_are_warned_of(tables, table, n, shares):
    rng = np.random.default_rng(0)
    X = tables[table][rng.permutation(len(tables[table]))[:n]]
    groups = shared_out(n, SHARES[shares])
    solver = ExactSolver(n_starts=2)  # what is said hardly depends on it
    found = [said_by_fit(X, rng.permutation(groups), 5, solver=solver) for _ in range(20)]
    assert sum("may be chance" in text for text in found) >= 18


@pytest.mark.parametrize("measure", ["loss", "share_lost", "kept_variance", "share_kept"])
@pytest.mark.parametrize("shares", ["halves", "ten"])
def test_shuffled_groups_may_be_chance_by_other_measures(tables, measure, shares):
    rng = np.random.default_rng(0)
    X, groups = tables["adult"][::20], shared_out(len(tables["adult"][::20]), SHARES[shares])
    criterion = MinMax(measure)
    shuffled = (rng.permutation(groups) for _ in range(20))
    assert sum(judged(X, one, 2, criterion=criterion).any() for one in shuffled) >= 18
    # A group with far more variance in some columns is not.
    apart = X * np.where(groups[:, None] == 0, np.where(np.arange(14) < 3, 6.0, 1.0), 1.0)
    assert not judged(apart, groups, 2, criterion=criterion)[0]


@pytest.mark.parametrize(("spectrum", "d", "r"), [("slow", 5, 2), ("flat", 30, 3), ("slow", 60, 5)])
@pytest.mark.parametrize("n", [30, 300, 3000])
def test_what_chance_makes_is_what_random_groups_have(spectrum, d, r, n):
    # Against the mean of disparities of a group drawn from four times as many rows.
    expected, _ = chance._by_chance(spectrum_of(spectrum, d), r, np.array([1 / n - 1 / (4 * n)]))
    found = []
    for seed in range(20):
        X = rows_of(spectrum, 4 * n, d, seed)
        problem = Problem(GroupMoments.from_rows(X, np.arange(4 * n) < n), r)
        found.append(problem.disparities(problem.pca_basis)[1])
    assert 0.4 < np.mean(found) / expected[0] < 1.4


@pytest.mark.parametrize(
    ("n", "few", "far"), [(3000, 30, 0), (3000, 1500, 0), (40_000, 20_000, 0), (70_000, 30_000, 7)]
)
def test_drawn_groups_are_what_random_groups_have(n, few, far):
    # Heavy tails and nearly tied eigenvalues, of which formulas make too much; more rows than are
    # asked, some far out not among these; and rows without weight, which are not drawn.
    rng = np.random.default_rng(1)
    X = rng.standard_t(3, size=(n, 5)) * [2.0, 1.0, 1.0, 0.99, 0.5]
    X[1 : 3 * far : 3] *= 100.0  # every third row is asked
    left_out = rng.random(n) < 0.1
    X[left_out] *= 100.0
    weights = np.where(left_out, 0.0, rng.uniform(1.0, 2.0, n))
    found = []
    for _ in range(60):
        labels = rng.permutation(np.arange(n) < few)
        problem = Problem(GroupMoments.from_rows(X, labels, sample_weight=weights), 2)
        found.append(problem.disparities(problem.pca_basis)[1])
    grouped_data = prepare_data(X, labels, weights)
    problem = grouped_data.problem(2)
    unit = float(problem.total_eigenpairs[0].sum())
    rows = problem.moments.effective_count
    noise = 1.0 / rows[1:] - 1.0 / rows.sum()
    some = SomeRows(problem, grouped_data, unit)
    drawn = np.concatenate(list(RandomGroups.from_rows(some, 2).disparities(noise[0])))
    most = unit * np.sort(drawn)[-4]
    assert 0.8 <= np.mean(found <= most) <= 1.0
    assert np.quantile(found, 0.8) <= most <= 2.0 * np.max(found)
    # A level is reached often if four of these reach it.
    levels = np.append(np.sort(drawn)[[-1, -3, -4, 5]], 2.0 * drawn.max())
    often = often_drawn(some, 2, np.repeat(noise, 5), levels)
    assert often.tolist() == [False, False, True, True, False]


@pytest.mark.parametrize("tails", [None, 5, 3])
@pytest.mark.parametrize("shares", ["halves", "large and small"])
def test_what_chance_makes_at_most_is_more_than_random_groups_have(tails, shares):
    rng = np.random.default_rng(0)
    X, labels = rows_of("slow", 4000, 12, 2, tails), shared_out(4000, SHARES[shares])
    ratios = []
    for _ in range(30):
        grouped_data = prepare_data(X, rng.permutation(labels))
        problem = grouped_data.problem(4)
        values = problem.total_eigenpairs[0]
        unit = values.sum()
        rows = problem.moments.count
        groups = chance._Groups(
            problem, grouped_data, values / unit, unit, 1 / rows - 1 / rows.sum()
        )
        most = unit * groups._tails(groups._some_rows, near=False).most_by_chance(groups.noise)
        ratios.append(problem.disparities(problem.pca_basis) / most)
    assert np.max(ratios) < 1.0
    assert np.median(ratios) > 0.005  # of some use


def test_a_few_rows_far_out_are_missed_by_their_variance():
    # One row of several is asked, and none of those far out.
    X = rows_of("slow", 40_000, 6, 3)
    far = X.copy()
    far[3:4000:1000] *= 100.0
    for rows, typical in ((X, True), (far, False)):
        grouped_data = prepare_data(rows, np.arange(40_000) % 2)
        problem = grouped_data.problem(2)
        values = problem.total_eigenpairs[0]
        groups = chance._Groups(problem, grouped_data, values / values.sum(), values.sum(), None)
        assert (groups._tails(groups._some_rows, near=False) is not None) is typical


def test_groups_are_not_drawn_where_fourth_moments_settle_it(monkeypatch):
    monkeypatch.setattr(chance, "often_drawn", None)
    adult = load_adult(as_frame=False)
    X = StandardScaler().fit_transform(adult.data)
    for r in (2, 5, 10):
        assert not judged(X, adult.sensitive_features, r).any()


def test_the_edge_of_noise_is_that_of_random_matrices():
    # Of equal eigenvalues, (1 + sqrt(d / n))^2 is where sample eigenvalues end.
    d, n = 400, 1000
    expected, _ = chance._by_chance(np.ones(d + 1), 1, np.array([1 / n]))
    assert 1 + expected[0] == pytest.approx((1 + np.sqrt(d / n)) ** 2, rel=1e-9)


# --- Groups that differ -------------------------------------------------------


@pytest.mark.parametrize("r", [2, 5, 7, 10, 12])
def test_large_groups_of_adult_differ(r):
    for sensitive in ("sex", "race"):
        adult = load_adult(sensitive=sensitive, as_frame=False)
        X = StandardScaler().fit_transform(adult.data)
        text = said_by_fit(X, adult.sensitive_features, r)
        named = re.findall(r"'([\w-]+)' \(([\d,]+) rows\)", text)
        assert all(int(rows.replace(",", "")) < 1000 for _, rows in named)
        assert sensitive == "race" or not text


def test_a_group_with_other_directions_differs():
    X = np.random.default_rng(0).normal(size=(600, 6)) * [3, 3, 1, 1, 1, 1]
    groups = np.repeat(["a", "b"], 300)
    assert "may be chance" in said_by_fit(X, groups)
    X[groups == "b"] = X[groups == "b"][:, ::-1]
    assert said_by_fit(X, groups) == ""


def test_a_small_disparity_beside_large_ones_is_of_no_interest():
    X = np.random.default_rng(0).normal(size=(1000, 6)) * [3, 3, 1, 1, 1, 1]
    few = np.arange(1000) >= 900
    X[few] = X[few][:, ::-1]
    fair = FairPCA(2).fit(X, sensitive_features=few)
    problem = prepare_data(X, few).problem(2)
    assert fair.group_table_.pca_disparity[0] < 0.1 * fair.group_table_.disparity.max()
    assert not indistinct_groups(problem, fair.group_table_).any()


# --- Few rows, weights, other problems ----------------------------------------


def two_kinds(n=400):
    groups = np.where(np.arange(n) < n // 2, "a", "b").astype(object)
    scales = np.where(groups[:, None] == "a", [3, 3, 1, 1, 1, 1], [1, 1, 2, 2, 1, 1])
    X = np.random.default_rng(3).normal(size=(n, 6)) * scales
    return X, groups


def test_as_many_rows_as_dimensions_are_named_whatever_they_are():
    X, groups = two_kinds()
    groups[:3], X[:3] = "three", 100.0 * X[:3, ::-1]
    groups[3] = "one"
    text = said_by_fit(X, groups, 3)
    assert "The disparity of each of 'one' (1 row), 'three' (3 rows) may be chance" in text
    assert 'FairPCA(shrinkage="auto")' in text


def test_five_groups_are_named_and_the_others_counted():
    X, groups = two_kinds()
    groups[:16:2] = [f"small {i}" for i in range(8)]
    text = said_by_fit(X, groups)
    assert text.count("(1 row)") == 5
    n = judged(X, groups, 2).sum()
    assert n >= 8
    assert f"'small 4' (1 row) and {n - 5} more may be chance" in text


def test_shrinkage_allows_for_chance():
    X, few = np.random.default_rng(0).normal(size=(100, 5)), np.arange(100) < 9
    assert "may be chance" in said_by_fit(X, few, shrinkage=0.0)
    assert said_by_fit(X, few, shrinkage=10.0) == ""
    # Chosen by held-out rows: said once, together with all else.
    chosen = said_by_fit(X, few, shrinkage="auto")
    assert chosen.startswith("Ordinary PCA was chosen")
    assert "may be chance" not in chosen
    # What else there is to say is still said.
    X[:, 0] *= 9.0
    assert said_by_fit(X, few, shrinkage=10.0).startswith("Column 0 has")
    alone, both = (said_by_fit(X, few, shrinkage=n0) for n0 in (np.inf, "auto"))
    assert alone in both


@pytest.mark.parametrize("scale", [1e-100, 1e80, 1e100])
def test_no_unit_of_the_rows_is_too_large_or_small(scale):
    X, labels = np.random.default_rng(0).normal(size=(120, 6)), np.repeat([0, 1, 2], [80, 30, 10])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for measure in ("disparity", "loss", "share_lost"):
            large, plain = (
                judged(rows, labels, 2, criterion=MinMax(measure)) for rows in (X * scale, X)
            )
            assert (large == plain).all()


def test_weights_count_as_effective_rows():
    # All but 12 of the 200 rows of a group weigh next to nothing.
    X, groups = two_kinds()
    weights = np.where(np.arange(400) < 388, 1.0, 1e6)
    weights[:200] = weights[200:].sum() / 200
    for given, few in ((None, False), (weights, True)):
        moments = GroupMoments.from_rows(X, groups, sample_weight=given)
        assert moments.effective_count.round().tolist() == [200, 12 if few else 200]
        assert ("'b' (200 rows)" in said(lambda m=moments: FairPCA(2).fit_moments(m))) is few
        fair = FairPCA(2)
        text = said(lambda g=given, f=fair: f.fit(X, sensitive_features=groups, sample_weight=g))
        assert ("'b' (200 rows)" in text) is few


def test_rows_are_asked_with_their_weights():
    # Far more than normal, unless the rows that lie far out have no weight.
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(4000, 5)) * [3, 2, 1, 1, 1], np.arange(4000) % 2
    far = rng.random(4000) < 0.02
    X[far] *= 10.0
    for weights, least, most in ((None, 20.0, 60.0), (np.where(far, 0.0, 2.0), 1.0, 1.2)):
        grouped_data = prepare_data(X, labels, weights)
        problem = grouped_data.problem(2)
        values = problem.total_eigenpairs[0]
        unit = values.sum()
        groups = chance._Groups(problem, grouped_data, values / unit, unit, None)
        tails = groups._tails(groups._some_rows, near=False).pairs
        # Against all rows at once.
        some = np.ones(4000) if weights is None else weights / 2.0
        inside = np.square((X - np.average(X, axis=0, weights=some)) @ problem.total_eigenpairs[1])
        expected = (inside[:, :2] * some[:, None]).T @ inside[:, 2:] / some.sum()
        expected /= np.outer(values[:2], values[2:])
        np.testing.assert_allclose(tails, np.maximum(expected, 1.0), rtol=1e-9)
        assert least <= tails.mean() <= most


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"centering": "group"},
        {"aggregation": "sum"},
        {"criterion": MinMax("relative_disparity")},
    ],
    ids=str,
)
def test_other_problems_are_judged_by_the_same_rows(choices):
    X, groups = two_kinds()
    assert not judged(X, groups, 2, **choices).any()
    groups = np.random.default_rng(0).permutation(groups)
    assert judged(X, groups, 2, **choices).all()


def test_marginal_groups():
    X, kinds = two_kinds()
    rng = np.random.default_rng(1)
    columns = np.column_stack([kinds, rng.choice(["u", "v"], len(X))])
    assert said_by_fit(X, columns, groups="marginals") == ""
    text = said_by_fit(X, rng.permutation(columns), groups="marginals")
    assert text.startswith("The disparity of every group, 'column ")
    assert "'column 1=a' (200 rows)" in text
    # A column with one value has all rows, of which nobody is drawn.
    columns[:, 1] = "all"
    assert said_by_fit(X, columns, groups="marginals") == ""


def test_where_nothing_is_lost_nothing_is_said():
    X = np.random.default_rng(0).normal(size=(50, 4))
    assert said_by_fit(X, np.arange(50) < 3, 4) == ""
    assert said_by_fit(np.ones((50, 4)), np.arange(50) < 3, 2) == ""


def test_one_group_and_none_are_not_judged():
    X = np.random.default_rng(0).normal(size=(50, 4)) * [9, 1, 1, 1]
    assert said_by_fit(X, np.zeros(50, int)) == ""
    assert said_by_fit(X, np.arange(50) < 9, groups=None) == ""


@pytest.mark.parametrize("n", [300, 1000])
def test_many_columns(n):
    # More than those of which all eigenvalues are known; 300 rows are wide.
    X, groups = rows_of("slow", n, 601, 0), np.arange(n) % 3
    assert said_by_fit(X, groups).startswith("The disparity of every group, '")
    X[groups == 1] = X[groups == 1][:, ::-1]
    assert "'1'" not in said_by_fit(X, groups)


# --- What else is said, and by whom -------------------------------------------


def test_a_column_that_dominates_and_sums_are_said():
    X, groups = two_kinds()
    X[:, 2] *= 20.0
    text = said_by_fit(X, groups)
    share = 100 * X[:, 2].var() / X.var(axis=0).sum()
    assert f"Column 2 has {share:.3g} % of the variance of all columns" in text
    problem = Problem(GroupMoments.from_rows(X, groups), 2)
    none = np.zeros(2, dtype=bool)
    sums, column = cautions(replace(problem, aggregation="sum"), none)
    assert sums.text.startswith("Losses are added up over the rows of a group.")
    assert column.text in text
    found = cautions(problem, none, features=list("uvwxyz"), quoted=lambda name: f"<{name}>")
    assert [caution.title for caution in found] == ["One column decides"]
    assert found[0].text.startswith("The column <w> has")


def test_all_who_judge_the_same_rows_say_the_same():
    X = np.random.default_rng(0).normal(size=(300, 5)) * [3, 2, 1, 1, 1]
    groups = np.where(np.arange(300) < 20, "few", "many")
    by_fit = said_by_fit(X, groups)
    assert "'few' (20 rows)" in by_fit
    made = []
    given = {"sensitive_features": groups, "n_components": 2, "n_points": 3}
    assert said(lambda: pareto_front(X, **given)) == by_fit
    assert said(lambda: made.append(report(X, **given, n_resamples=0))) == by_fit
    titles = {each["title"]: each["text"] for each in made[0].summary["warnings"]}
    text = titles["May be chance"]
    assert text.replace("“", "'").replace("”", "'") in by_fit
    assert said(lambda: FairPCA(2).fit_moments(GroupMoments.from_rows(X, groups))) == by_fit
    # An audit has nothing to shrink: the same finding, with another advice.
    by_audit = said(lambda: audit(PCA(2).fit(X), X, sensitive_features=groups))
    finding, advice = by_audit.split(": merge small groups, or ")
    assert by_fit.startswith(finding)
    assert advice.startswith("audit more rows. Column 0 has")


def test_the_program_says_it_once(tmp_path, monkeypatch, capsys):
    import pandas

    from fairpca.cli import main

    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(200, 4))
    frame = pandas.DataFrame(X, columns=list("wxyz")).assign(sex=["f"] * 12 + ["m"] * 188)
    frame.to_csv("people.csv", index=False)
    on = ["people.csv", "--sensitive", "sex"]
    dimension = ["--n-components", "2"]
    for arguments in (
        ["fit", *on, *dimension, "--model", "m.fairpca", "--report", "r.html"],
        ["audit", *on, *dimension],
        ["audit", *on, "--model", "m.fairpca", "--json"],
        ["report", *on, *dimension, "--report", "r.html", "--force"],
        ["front", *on, *dimension],
    ):
        assert main(arguments) == 0
        shown = capsys.readouterr()
        assert shown.err.count("warning: Read with care: The disparity of") == 1
        assert shown.err.count("'f' (12 rows)") == 1
        assert "or use fairpca fit --shrinkage auto, which" in shown.err
        if "--json" in arguments:
            json.loads(shown.out)

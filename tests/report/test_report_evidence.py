"""The headline of a report says what the rows can tell, and not more."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from fairpca import FairnessWarning, MinMax, pareto_front
from fairpca.data import prepare_data
from fairpca.report import report
from fairpca.report._facts import repeats

from texts import recorded, warned


def people(sizes, seed=0, turned=(), scale=1.0):
    """Rows of six columns in groups of these sizes; groups that are turned have other axes."""
    rng = np.random.default_rng(seed)
    blocks = []
    for group, size in sizes.items():
        rows = rng.normal(size=(size, 6)) * [4, 3, 2, 1, 1, 1]
        blocks.append(rows[:, ::-1] if group in turned else rows)
    labels = np.repeat(list(sizes), list(sizes.values()))
    return scale * np.vstack(blocks), pd.Series(labels, name="town")


def made(sizes, seed=0, turned=(), scale=1.0, **choices):
    X, groups = people(sizes, seed, turned, scale)
    return report(X, sensitive_features=groups, **{"n_components": 2, "n_points": 3} | choices)


def test_who_pays_is_said_where_the_difference_is_significant():
    found = made({"a": 3000, "b": 1500, "c": 3000}, turned="b", data_name="people.csv").summary
    assert found["evidence"] == "sure"
    before = np.array(found["pca"]["measures"])
    worst, best = (found["resampling"][name] for name in ("worst", "best"))
    assert (worst, best) == (before.argmax(), before.argmin())
    words = ("“people.csv”", "“town”", "“b” loses", "% of its variance", "the group “c”")
    recorded(found["finding"][0], *words)
    recorded(found["chance"][0], "hardly by chance")


def test_repeated_rows_are_said():
    X, groups = people({"a": 40, "b": 40}, turned="b")
    X[40:] *= 2.0
    X, groups = np.repeat(X, 5, axis=0), groups.repeat(5)
    page = report(X, sensitive_features=groups, n_components=2, n_points=3)
    found = page.summary
    assert found["evidence"] == "sure"
    assert found["warnings"][0]["title"] == "Rows are repeated"
    recorded(found["warnings"][0]["text"], "400 of 400 rows", "only 80", "one row for each person")
    assert "Differences between groups may be chance here." in page.html()


def gathered_rows(X):
    return prepare_data(X, np.resize(["a", "b"], X.shape[0]))


def test_rows_are_not_said_to_be_repeated_where_that_is_no_wonder():
    rng = np.random.default_rng(0)
    once = np.column_stack([rng.integers(18, 80, 200), rng.integers(1, 17, 200)]).astype(float)
    twice = np.column_stack([once, rng.integers(0, 2, (200, 3)), rng.integers(0, 60, 200)])[
        np.r_[:200, :150]
    ]
    assert repeats(gathered_rows(twice)) == (300, 200, 350)
    assert repeats(gathered_rows(scipy.sparse.csr_array(twice))) == (300, 200, 350)
    assert repeats(gathered_rows(twice[:220])) is None  # few
    # Rows that are left out are not counted.
    labels = np.resize(["a", "b"], 350).astype(object)
    labels[220:] = None
    with warned(FairnessWarning, "130 of 350", "left out"):
        assert repeats(prepare_data(twice, labels, missing_labels="drop")) is None
    # Nor are people who are alike but for their age, though the columns tell much of each other.
    grade = rng.integers(0, 30, 3000)
    work = np.column_stack([rng.integers(18, 80, 3000), grade, grade**2, grade**3])
    assert len(np.unique(work, axis=0)) < 0.6 * len(work)
    assert repeats(gathered_rows(work.astype(float))) is None
    # Categories, and ages with categories, are the same in many people.
    assert repeats(gathered_rows(rng.integers(0, 2, (400, 6)).astype(float))) is None
    ages = np.column_stack([rng.integers(18, 80, 2000), rng.integers(0, 2, (2000, 2))])
    assert repeats(gathered_rows(ages.astype(float))) is None


@pytest.mark.parametrize("seed", range(4))
def test_no_case_is_made_for_what_may_be_chance(seed):
    page = made({"a": 60, "b": 40, "c": 50}, seed, data_name="few.parquet")
    found = page.summary
    assert found["evidence"] == "unsure"
    assert found["finding"] == found["chance"]
    words = ("“few.parquet”", "“town”", "no group loses significantly more")
    recorded(found["finding"][0], *words)
    assert found["start"] == 0  # ordinary PCA
    words = " ".join([*found["finding"], *found["chance"]])
    assert "hardly by chance" not in words
    html = page.html()
    assert html.count('<p class="lead">') == 1
    assert "Differences between groups may be chance here." in html


def test_no_headline_about_a_group_of_three_rows():
    X, groups = people({"a": 400, "b": 100, "three": 3}, turned=("b", "three"))
    X[-3:] *= 5.0
    found = report(X, sensitive_features=groups, n_components=2, n_points=3).summary
    assert np.argmax(found["pca"]["measures"]) == 2
    assert "name not shown" not in found["finding"][0]
    assert "name not shown" not in found["headline"]
    most = 100 * found["pca"]["measures"][2] / found["groups"][2]["variance"]
    recorded(found["finding"][1], f"{most:.3g} % with ordinary PCA", "a group of 3 rows")
    titles = {caution["title"]: caution["text"] for caution in found["warnings"]}
    recorded(
        titles["Small groups"],
        "“(name not shown)” (3 rows)",
        "largest disparity",
        "merge small groups",
    )
    # Nor is it the first thing that is seen.
    assert found["order"][-1] == 2


@pytest.mark.parametrize(
    ("sizes", "end"),
    [
        ({"a": 20, "b": 20}, "none has the 30 rows"),
        ({"a": 500, "b": 20}, "only one has the 30 rows"),
    ],
)
@pytest.mark.parametrize("n_resamples", [0, 20])
def test_too_few_rows_to_compare(sizes, end, n_resamples):
    found = made(sizes, turned="b", n_resamples=n_resamples).summary
    assert found["evidence"] == "few"
    recorded(found["finding"][0], "“town”", "too few for a comparison", end)


def test_other_measures_and_no_intervals():
    found = made({"a": 40, "b": 40}, n_resamples=0).summary
    recorded(found["finding"][0], "at random", "as much")
    found = made({"a": 40, "b": 40}, measure="share_kept").summary
    recorded(found["finding"][0], "no group keeps significantly less")


def test_a_gain_too_small_for_its_figures_is_said_to_be_small():
    # In the second group every direction has nearly the same variance.
    rng = np.random.default_rng(0)
    first, second = (rows - rows.mean(axis=0) for rows in rng.normal(size=(2, 500, 4)))
    second = np.linalg.qr(second)[0] * [1.0001, 1.0, 1.0, 1.0] * 500**0.5
    X = np.vstack([first * [3, 2, 1, 1], second])
    choices = {"measure": "share_kept", "n_components": 1, "n_resamples": 0}
    given = {"sensitive_features": ["a"] * 500 + ["b"] * 500, "n_points": 3}
    front = pareto_front(X, **given, criterion=MinMax("share_kept"), n_components=1)
    # As if there were no held-out rows, on which nobody gains.
    made = replace(report(X, **given, **choices), front=front, comparison=None)
    found = made.summary
    assert found["evidence"] == "sure"
    before, after = (f"{100 * x['largest']:.3g} %" for x in (found["pca"], found["points"][-1]))
    assert before == after
    words = (f"least share kept is {before} of the variance of “b”", "hardly more")
    recorded(found["finding"][1], *words)


def test_the_finding_counts_who_is_better_and_worse_off():
    found = made({"a": 3000, "b": 1500, "c": 3000}, turned="b").summary
    change = np.subtract(found["points"][-1]["measures"], found["pca"]["measures"])
    better, worse = int((change < 0).sum()), int((change > 0).sum())
    words = (f"{better} of 3 groups is better off", f"{worse} are worse off")
    recorded(found["points"][-1]["compared"], *words)


@pytest.mark.parametrize("scale", [1e9, 1e-9])
def test_the_unit_of_the_rows_changes_no_word(scale):
    def words(scale):
        found = made({"a": 300, "b": 300}, turned="b", scale=scale).summary
        return [found["evidence"], *(text.split(" loses")[0] for text in found["finding"][:1])]

    assert words(scale) == words(1.0)


@pytest.mark.parametrize("fill", [0.0, 0.1])
def test_columns_that_do_not_vary(fill):
    found = report(np.full((80, 3), fill), sensitive_features=[0, 1] * 40, n_components=1)
    recorded(found.summary["headline"], "do not vary")
    page = found.html()
    assert "one group" not in page
    assert "may be chance" not in page


def test_the_headline_has_the_losses_of_held_out_rows():
    page = made({"a": 3000, "b": 1500, "c": 3000}, turned="b")
    found, lost = page.summary, page.comparison.share_lost.value[0]
    disparity = page.comparison.disparity
    worst, best = int(lost.argmax()), int(lost.argmin())
    ends = (100 * each[0, 1] for each in (disparity.value, disparity.low, disparity.high))
    points, low, high = (f"{each:.1f}" for each in ends)
    names = [group["name"] for group in found["groups"]]
    text = recorded(found["headline"], "held out", "the most and the least of 3 groups")
    assert f"loses {100 * lost[worst]:.1f}" in text
    assert text.index(f"“{names[worst]}”") < text.index(f"“{names[best]}”")
    assert f"“b” loses {points} points more than with a PCA of its own" in text
    assert f"interval {low} to {high})" in text
    assert found["start"] == len(found["points"]) - 1
    alike = made({"a": 400, "b": 400, "c": 400}).summary
    assert "of its own" not in alike["headline"]
    # Of the worst-off group, also where only that of another one is clear.
    low = np.where(np.arange(3) == 1, -0.001, disparity.low)
    low[0, 0] = 0.001
    one = replace(page, comparison=replace(page.comparison, disparity=replace(disparity, low=low)))
    recorded(one.summary["headline"], f"“b” may lose {points} points more", "interval -0.1 to")


def test_the_difference_of_two_groups_is_within_their_intervals():
    found = made({"a": 300, "b": 200}, 3).summary
    low, high = found["resampling"]["difference"]
    worst, best = (found["resampling"][name] for name in ("worst", "best"))
    assert -found["pca"]["high"][best] <= low < high <= found["pca"]["high"][worst]


def test_of_columns_that_mirror_each_other_one_is_shown():
    X, groups = people({"a": 200, "b": 200}, turned="b")
    yes = (X[:, 0] > 0).astype(float)
    table = np.column_stack([X, 3 * yes, 3 - 3 * yes])
    table = pd.DataFrame(table, columns=[*"uvwxyz", "yes", "no"])
    found = report(table, sensitive_features=groups, n_components=3, n_points=2).summary
    for point in found["points"]:
        for component in point["components"]:
            names = [name for name, _ in component]
            assert ("yes" in names) + ("no" in names) == 1
            assert len(names) == 7


def test_a_majority_without_a_disparity_is_no_warning():
    """The group that PCA serves has none; that of the other is significant."""
    found = made({"a": 2000, "b": 300}, turned="b").summary
    assert found["evidence"] == "sure"
    assert not [each for each in found["warnings"] if "ignificant" in each["title"]]

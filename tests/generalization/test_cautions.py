"""What fit warns of: groups with too few rows; and the column that decides everything."""

import warnings

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import AtMost, FairnessWarning, FairPCA, GroupMoments, MinMax, audit, pareto_front
from fairpca.generalization.cautions import dominant_column
from fairpca.kernel import KernelFairPCA
from fairpca.report import report

from texts import recorded


def said(run):
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(each.message) for each in caught if issubclass(each.category, FairnessWarning)]


def said_by_fit(X, labels, r=2, **choices):
    return said(lambda: FairPCA(r, **choices).fit(X, sensitive_features=labels))


def two_kinds(n=400):
    groups = np.where(np.arange(n) < n // 2, "a", "b").astype(object)
    scales = np.where(groups[:, None] == "a", [3, 3, 1, 1, 1, 1], [1, 1, 2, 2, 1, 1])
    return np.random.default_rng(3).normal(size=(n, 6)) * scales, groups


@pytest.mark.parametrize("r", [1, 2, 3, 5])
def test_groups_need_more_rows_than_dimensions(r):
    X, groups = two_kinds()
    groups[:3], groups[3] = "three", "one"
    text = " ".join(said_by_fit(X, groups, r))
    assert ("'one' (1 row)" in text) == (r >= 1)
    assert ("'three' (3 rows)" in text) == (r >= 3)
    assert "'a'" not in text
    # The rule follows from what it says: the own PCA of such a group loses nothing.
    table = FairPCA(r, groups=None).fit(X, sensitive_features=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = FairPCA(r, criterion="minmax").fit(X, sensitive_features=groups).group_table_
    named = [f"'{label}'" in text for label in table.labels]
    assert named == (table.count <= r).tolist()


def test_groups_of_the_usual_size_are_not_warned_of():
    X = np.random.default_rng(0).normal(size=(60, 6)) * [9, 1, 1, 1, 1, 1]
    assert said_by_fit(X, np.arange(60) % 5) == []
    assert said_by_fit(X, np.arange(60) % 5, criterion=MinMax("loss")) == []


def test_weights_count_as_effective_rows():
    X, groups = two_kinds()
    groups[:5] = "few"
    weights = np.ones(400)
    weights[1:5] = 1e-6
    fair = FairPCA(2, criterion="minmax")
    assert said(lambda: fair.fit(X, sensitive_features=groups)) == []
    (text,) = said(lambda: fair.fit(X, sensitive_features=groups, sample_weight=weights))
    assert "'few' (5 rows, which weigh as 1)" in text
    # Whole weights stand for rows that are repeated, which are no more people.
    (text,) = said(
        lambda: fair.fit(X[3:], sensitive_features=groups[3:], sample_weight=np.full(397, 9.0))
    )
    assert "'few' (2 rows)" in text


def test_five_groups_are_named_and_the_others_counted():
    X, groups = two_kinds()
    groups[:16:2] = [f"small {i}" for i in range(8)]
    (text,) = said_by_fit(X, groups)
    assert text.count("(1 row)") == 5
    assert "3 more" in text


def test_where_nothing_can_be_lost_nothing_is_said():
    X = np.random.default_rng(0).normal(size=(50, 4))
    assert said_by_fit(X, np.arange(50) < 3, 4) == []
    assert said_by_fit(X, np.arange(50) < 2, groups=None) == []


def test_all_estimators_and_functions_warn_alike():
    X, groups = two_kinds(120)
    groups[:2] = "few"
    (by_fit,) = said_by_fit(X, groups)
    given = {"sensitive_features": groups, "n_components": 2, "n_points": 2}
    for run in (
        lambda: FairPCA(2, criterion="minmax").fit_moments(GroupMoments.from_rows(X, groups)),
        lambda: pareto_front(X, **given),
        lambda: report(X, **given, n_resamples=0),
        lambda: KernelFairPCA(2).fit(X, sensitive_features=groups),
        lambda: audit(PCA(2).fit(X), X, sensitive_features=groups),
    ):
        assert said(run) == [by_fit]


def test_one_column_with_most_of_the_variance():
    X, groups = two_kinds()
    assert dominant_column(GroupMoments.from_rows(X, groups)) is None
    X[:, 2] *= 20.0
    share = f"{100 * X[:, 2].var() / X.var(axis=0).sum():.3g} %"
    moments = GroupMoments.from_rows(X, groups)
    assert share in dominant_column(moments)
    named = dominant_column(moments, list("uvwxyz"), lambda name: f"<{name}>")
    assert named.startswith("The column <w> has")
    # In an audit, in a report, and below the table of a fit, which does not warn of it.
    assert said_by_fit(X, groups) == []
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    for table in (fair.group_table_, audit(PCA(2).fit(X), X, sensitive_features=groups)):
        assert any(share in note for note in table.notes)
    made = report(X, sensitive_features=groups, n_components=2, n_points=2, n_resamples=0)
    assert "One column decides" in [each["title"] for each in made.summary["warnings"]]


# --- Where chance explains the disparities --------------------------------------


def chance_note(seed, criterion, apart=False, r=2):
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(300, 6)) * np.sqrt(5 / np.arange(1, 7)), np.arange(300) % 3 // 2
    if apart:
        X[groups == 1, :4] = X[groups == 1, 3::-1]
    table = FairPCA(r, criterion=criterion).fit(X, sensitive_features=groups).group_table_
    for note in table.notes:
        recorded(note, "No group has a significant disparity", "default criterion")
    assert len(table.notes) == ("No group has a significant disparity" in str(table))
    return len(table.notes) == 1


@pytest.mark.parametrize(
    "criterion", ["minmax", MinMax("share_lost"), MinMax(max_extra_loss=0.01), "equal"]
)
def test_criteria_that_act_on_every_difference_are_noted_where_groups_are_alike(criterion):
    """Nearly always, whatever is measured; where they differ, never."""
    assert np.mean([chance_note(seed, criterion) for seed in range(60)]) > 0.8
    assert not any(chance_note(seed, criterion, apart=True) for seed in range(60))


@pytest.mark.parametrize("criterion", ["soft", "balanced", AtMost(100.0)])
def test_other_criteria_are_not_noted(criterion):
    assert chance_note(0, "minmax")
    assert not chance_note(0, criterion)
    assert not chance_note(0, "minmax", r=6)  # nothing is lost


def test_random_rotations_are_as_far_as_the_note_allows():
    """The limit against disparities of samples from one population, by brute force."""
    rng, values, n, r = np.random.default_rng(0), np.array([8.0, 4.0, 1.0, 0.5]), 80, 2
    found = []
    for _ in range(2000):
        matrix = np.cov((rng.normal(size=(n, 4)) * np.sqrt(values)).T, ddof=0)
        found.append(np.linalg.eigvalsh(matrix)[-r:].sum() - matrix[0, 0] - matrix[1, 1])
    means = np.outer(values[:r], values[r:]) / n / (values[:r, None] - values[r:])
    limit = means.sum() + 2.0 * np.sqrt(2.0 * np.square(means).sum())
    assert np.mean(found) == pytest.approx(means.sum(), rel=0.1)
    assert 0.01 < np.mean(np.array(found) > limit) < 0.08

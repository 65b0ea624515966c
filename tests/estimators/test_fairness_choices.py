"""Criterion, measure, bounds and extra loss as parameters of FairPCA, and what it says of them."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairnessWarning, FairPCA
from fairpca.datasets import load_adult
from fairpca.estimators.model_file import load_model, save_model

pytestmark = pytest.mark.untraced


@pytest.fixture(scope="module")
def by_race():
    """Adult by race, without the race column."""
    adult = load_adult(sensitive="race")
    X = StandardScaler().fit_transform(adult.data.drop(columns="race"))
    return X, adult.sensitive_features.to_numpy()


def rows_and_groups(seed=0):
    X = np.random.default_rng(seed).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    X[:100] = X[:100, ::-1]
    X[100:150] = X[100:150, [2, 3, 0, 1, 5, 4]]
    return X, np.repeat(["a", "b", "c"], [100, 50, 150])


def losses(X, groups, components):
    X = X - X.mean(axis=0)
    errors = np.square(X - X @ components.T @ components).sum(axis=1)
    return np.array([errors[groups == label].mean() for label in np.unique(groups)])


def own_losses(X, groups, r):
    X = X - X.mean(axis=0)
    parts = (X[groups == label] for label in np.unique(groups))
    return np.array([np.sort(np.linalg.eigvalsh(Z.T @ Z / len(Z)))[:-r].sum() for Z in parts])


def test_the_default_leaves_nobody_worse_off_than_the_worst_off_with_pca(by_race):
    X, groups = by_race
    for r in range(1, 13):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "Read with care: ")  # of small groups
            fair = FairPCA(r).fit(X, sensitive_features=groups)
        own = own_losses(X, groups, r)
        ours = losses(X, groups, fair.components_) - own
        pca = losses(X, groups, PCA(r).fit(X).components_) - own
        assert ours.max() <= pca.max() + 1e-9
        assert (ours < pca).any()
        assert fair.certificate_.goal == "minmax"
        assert fair.group_table_.n_worse_off < 5


@pytest.mark.parametrize("r", [6, 7])
def test_equality_that_leaves_all_worse_off_is_warned_of(by_race, r):
    X, groups = by_race
    with pytest.warns(FairnessWarning, match="Every group is worse off than with ordinary PCA"):
        fair = FairPCA(r, criterion="equal").fit(X, sensitive_features=groups)
    assert fair.certificate_.all_worse_off
    assert str(fair.certificate_).startswith("Every group is worse off than with ordinary PCA, by")
    assert "Every group is worse off than with ordinary PCA." in str(fair.group_table_)


def test_measures_are_what_they_are_called():
    X, groups = rows_and_groups()
    own, nothing = own_losses(X, groups, 2), losses(X, groups, np.zeros((1, 6)))
    fits = {
        (measure, relative): FairPCA(2, measure=measure, relative=relative).fit(
            X, sensitive_features=groups
        )
        for measure in ("disparity", "loss", "variance")
        for relative in (False, True)
    }
    constants = {"disparity": own, "loss": 0.0, "variance": nothing}
    for (measure, relative), fair in fits.items():
        units = nothing if relative else 1.0
        measured = {
            name: (losses(X, groups, other.components_) - constants[measure]) / units
            for name, other in fits.items()
        }
        mine = measured[measure, relative]
        assert_allclose(fair.certificate_.measures, mine, atol=1e-9)
        assert mine.max() <= min(other.max() for other in measured.values()) + 1e-9


def test_extra_loss_is_limited_in_pipelines_and_grids():
    X, groups = rows_and_groups()
    pca_loss = np.square(X - PCA(2).fit(X).inverse_transform(PCA(2).fit_transform(X))).sum() / 300
    last = np.inf
    for extra in (0.0, 0.01, 0.05, 1.0):
        fair = FairPCA(2, max_extra_loss=extra).fit(X, sensitive_features=groups)
        assert -fair.score(X) <= pca_loss * (1 + extra) * (1 + 1e-9)
        assert fair.certificate_.value <= last + 1e-9
        last = fair.certificate_.value
    assert last == pytest.approx(
        FairPCA(2).fit(X, sensitive_features=groups).certificate_.value, rel=1e-6
    )
    with config_context(enable_metadata_routing=True):
        classes = (X[:, 0] > 0).astype(int)
        folds = KFold(3, shuffle=True, random_state=0)
        pipeline = make_pipeline(FairPCA(2), LogisticRegression())
        grid = GridSearchCV(pipeline, {"fairpca__max_extra_loss": [None, 0.01, 0.1]}, cv=folds)
        grid.fit(X, classes, sensitive_features=groups)
        assert np.isfinite(grid.cv_results_["mean_test_score"]).all()


def test_bounds_hold_by_label_in_order_and_for_all():
    X, groups = rows_and_groups()
    plain = FairPCA(2).fit(X, sensitive_features=groups)
    most = plain.certificate_.value
    by_label = {"a": 1.1 * most, "b": 1.3 * most, "c": np.inf}
    found = [
        FairPCA(2, bounds=bounds).fit(X, sensitive_features=groups)
        for bounds in (by_label, list(by_label.values()), {"a": 1.1 * most, "b": 1.3 * most})
    ]
    for other in found[1:]:
        assert_allclose(found[0].components_, other.components_, atol=1e-9)
    series = FairPCA(2, bounds=pd.Series(by_label).iloc[::-1]).fit(X, sensitive_features=groups)
    assert_allclose(found[0].components_, series.components_, atol=1e-9)
    assert found[0].certificate_.goal == "bounds"
    disparity = found[0].group_table_.disparity
    assert (disparity[:2] <= [1.1 * most + 1e-8, 1.3 * most + 1e-8]).all()
    assert -found[0].score(X) < -plain.score(X)
    kept = FairPCA(2, measure="variance", bounds=1.0).fit(X, sensitive_features=groups)
    assert (kept.group_table_.variance - kept.group_table_.loss >= 1.0 - 1e-9).all()
    with pytest.warns(FairnessWarning, match="Proven impossible: .* some group misses its bound"):
        FairPCA(2, bounds=most / 2).fit(X, sensitive_features=groups)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"tolerance": 0.1}, "it needs criterion='equal'"),
        ({"measure": "regret"}, "measure must be one of 'disparity', 'loss', 'variance'"),
        ({"relative": "yes"}, "relative must be True or False"),
        ({"nested": 3}, "nested must be True or False"),
        ({"max_extra_loss": -0.1}, "max_extra_loss must be a number of at least 0"),
        ({"max_extra_loss": True}, "max_extra_loss must be a number"),
        ({"bounds": 1.0, "max_extra_loss": 0.1}, "cannot both be given"),
        ({"bounds": 1.0, "criterion": "equal"}, "bounds needs criterion='minmax'"),
        ({"max_extra_loss": 1.0, "criterion": "equal"}, "max_extra_loss needs criterion='minmax'"),
        (
            {"bounds": {"z": 1.0}},
            "bounds must name groups there are; unknown: 'z'",
        ),
        ({"bounds": [1.0, -1.0, 2.0]}, "bounds must be a number of at least 0"),
        ({"solver": "pareto", "measure": "loss"}, "criterion of its own, and cannot do measure"),
        ({"solver": "sdp", "bounds": 1.0}, "criterion of its own, and cannot do bounds"),
        ({"solver": "nash", "relative": True}, "criterion of its own, and cannot do relative"),
    ],
)
def test_wrong_choices_are_refused_in_one_sentence(choices, words):
    X, groups = rows_and_groups()
    with pytest.raises(ValueError, match=words) as caught:
        FairPCA(2, **choices).fit(X, sensitive_features=groups)
    assert "\n" not in str(caught.value)


def test_pareto_descent_is_judged_by_equality_whatever_the_criterion():
    X, groups = rows_and_groups()
    for criterion in ("minmax", "equal"):
        fair = FairPCA(2, solver="pareto", criterion=criterion, relative=np.False_)
        fair.fit(X, sensitive_features=groups)
        assert fair.certificate_.goal == "equal"
        assert fair.certificate_.tolerance == pytest.approx(fair.certificate_.spread)


@pytest.mark.parametrize(
    "choices",
    [
        {"measure": "variance", "relative": True},
        {"bounds": {"a": 20.0, "b": np.inf, "c": 20.0}},
        {"max_extra_loss": 0.05},
        {"nested": True},
        {"criterion": "equal", "tolerance": 1.0},
    ],
    ids=str,
)
def test_choices_survive_the_model_file(tmp_path, choices):
    X, groups = rows_and_groups()
    fair = FairPCA(2, **choices).fit(X, sensitive_features=groups)
    save_model(fair, tmp_path / "m.fairpca")
    again = load_model(tmp_path / "m.fairpca").fair_pca
    assert again.get_params() == fair.get_params()
    assert str(again.certificate_) == str(fair.certificate_)
    assert_allclose(again.transform(X), fair.transform(X))
    assert hasattr(again, "nesting_") == hasattr(fair, "nesting_")
    if fair.nested:
        assert str(again.nesting_) == str(fair.nesting_)
    refitted = again.fit(X, sensitive_features=groups)
    assert_allclose(refitted.components_, fair.components_, atol=1e-8)


def test_marginals_are_fair_to_groups_that_overlap():
    X, groups = rows_and_groups()
    sex = np.where(np.arange(300) % 3 == 0, "f", "m")
    both = np.column_stack([groups, sex])
    fair = FairPCA(2, groups="marginals").fit(X, sensitive_features=both)
    lost = losses(X, groups, fair.components_) - own_losses(X, groups, 2)
    by_sex = losses(X, sex, fair.components_) - own_losses(X, sex, 2)
    assert fair.certificate_.value == pytest.approx(max(lost.max(), by_sex.max()), rel=1e-9)
    assert -fair.score(X) == pytest.approx(fair.solution_.total_loss, rel=1e-9)
    assert json.dumps(fair.group_table_.to_dict())


def test_groups_are_bound_and_looked_up_by_the_names_that_are_shown():
    X, groups = rows_and_groups()
    frame = pd.DataFrame({"letter": groups, "sex": np.where(np.arange(300) % 3 == 0, "f", "m")})
    bounds = {"letter=a": 11.0, "sex=f": 12.0}
    fair = FairPCA(2, groups="marginals", bounds=bounds).fit(X, sensitive_features=frame)
    by_label = {("a", "(all)"): 11.0, ("(all)", "f"): 12.0}
    same = FairPCA(2, groups="marginals", bounds=by_label).fit(X, sensitive_features=frame)
    assert_allclose(fair.components_, same.components_, atol=1e-9)
    assert fair.group_table_["letter=a"] == fair.group_table_["a", "(all)"]


@pytest.mark.parametrize("measure", ["disparity", "loss", "variance"])
def test_rows_without_variance_end_with_a_sentence(measure):
    choices = {"measure": measure, "bounds": 1.0}
    if measure == "variance":
        with pytest.warns(FairnessWarning, match="Proven impossible"):
            FairPCA(1, **choices).fit(np.ones((6, 3)), sensitive_features=list("aabbcc"))
    else:
        fair = FairPCA(1, **choices).fit(np.ones((6, 3)), sensitive_features=list("aabbcc"))
        assert fair.certificate_.status == "optimal"


def test_certificate_and_table_agree_on_who_is_better_off():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [3, 2, 1]
    X[:100] = X[:100, ::-1]
    X[200:] *= 1e-6
    groups = np.repeat(list("abc"), 100)
    fair = FairPCA(1, measure="loss", centering="group").fit(X, sensitive_features=groups)
    assert_allclose(np.sign(fair.certificate_.change_from_pca), np.sign(fair.group_table_.change))


def test_a_model_file_takes_tables_with_the_sensitive_columns(tmp_path):
    X, groups = rows_and_groups()
    table = pd.DataFrame(X, columns=list("uvwxyz")).assign(group=groups)
    fair = FairPCA(2).fit(table, sensitive_features="group")
    save_model(fair, tmp_path / "m.fairpca")
    model = load_model(tmp_path / "m.fairpca")
    assert_allclose(model.transform(table), fair.transform(table))
    assert_allclose(model.transform(table.drop(columns="group")), fair.transform(table))

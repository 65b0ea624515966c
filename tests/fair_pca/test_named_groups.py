"""Groups as people have them: names of columns, marginals, dropped rows, and none at all."""

import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import (
    ExactSolver,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    Problem,
    audit,
    pareto_front,
)
from fairpca.model_file import load_model, save_model
from fairpca.report import report

from texts import refused, warned

pytestmark = pytest.mark.untraced

FEATURES = ["u", "v", "w", "x"]
KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
minmax = partial(FairPCA, criterion="minmax")  # with many groups equality can be impossible
every_kind = pytest.mark.parametrize("convert", KINDS.values(), ids=list(KINDS))


def people(n=160, seed=0):
    """A table with two sensitive columns of text between its numbers."""
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["f", "m"], n), rng.choice(["b", "n", "w"], n, p=[0.2, 0.3, 0.5])
    X = rng.normal(size=(n, 4)) * [3, 2, 1, 1]
    X[sex == "f"] = X[sex == "f"][:, [1, 0, 3, 2]]
    X[race == "b"] = X[race == "b"][:, ::-1] + 1
    frame = pd.DataFrame(X, columns=FEATURES)
    frame.insert(1, "sex", sex)
    frame["race"] = race
    return frame


def same_subspace(first, second, atol=1e-9):
    np.testing.assert_allclose(
        first.components_.T @ first.components_,
        second.components_.T @ second.components_,
        atol=atol,
    )


# --- Names of columns ---------------------------------------------------------


@every_kind
@pytest.mark.parametrize("names", ["race", ["race"], ["sex", "race"], ("race", "sex")])
def test_names_are_looked_up_and_left_out(convert, names):
    frame = people()
    chosen = [names] if isinstance(names, str) else list(names)
    rest = frame.drop(columns=chosen).select_dtypes("number")
    given = convert(frame[[*rest.columns, *chosen]])
    expected = minmax(2).fit(rest, sensitive_features=frame[chosen])
    fair = minmax(2).fit(given, sensitive_features=names)
    np.testing.assert_array_equal(fair.components_, expected.components_)
    assert fair.feature_names_in_.tolist() == list(rest.columns)
    assert fair.n_features_in_ == 4
    assert fair.sensitive_names_ == tuple(chosen)
    assert fair.group_table_.labels == expected.group_table_.labels
    assert fair.group_table_.to_dict()["group"] == expected.group_table_.to_dict()["group"]
    with_them, without = fair.transform(given), fair.transform(convert(rest))
    np.testing.assert_array_equal(with_them, without)
    assert fair.score(given) == fair.score(convert(rest))
    again = minmax(2).fit_transform(given, sensitive_features=names)
    np.testing.assert_array_equal(again, without)


@every_kind
def test_columns_may_stay_among_the_features(convert):
    frame = people()[FEATURES].assign(old=lambda f: (f["u"] > 0).astype(float))
    fair = minmax(2, keep_sensitive=True).fit(convert(frame), sensitive_features="old")
    assert fair.feature_names_in_.tolist() == [*FEATURES, "old"]
    expected = minmax(2).fit(frame, sensitive_features=frame["old"])
    same_subspace(fair, expected)
    assert fair.transform(convert(frame)).shape == (160, 2)
    with refused(ValueError, "feature names"):
        fair.transform(frame[FEATURES])


@every_kind
def test_a_name_that_is_no_column_is_one_sentence_with_near_names(convert):
    given = convert(people())
    with refused(ValueError, "'rase'", "near names", "'race'"):
        minmax(2).fit(given, sensitive_features="rase")
    with refused(ValueError, "'zebra'", "columns are 'u', 'sex'"):
        minmax(2).fit(given, sensitive_features=["sex", "zebra"])


@every_kind
def test_columns_of_text_that_are_not_named_are_refused(convert):
    with refused(ValueError, "non-numeric", "'sex'"):
        minmax(2).fit(convert(people()), sensitive_features="race")


def test_lists_of_labels_are_still_labels():
    frame = people()[FEATURES]
    labels = ["u", "v"] * 80  # names of columns, but one for each row
    fair = minmax(2).fit(frame, sensitive_features=labels)
    assert fair.group_table_.labels == ("u", "v")
    assert fair.n_features_in_ == 4
    with refused(ValueError, "inconsistent numbers"):
        minmax(2).fit(frame, sensitive_features=labels[1:])


def test_a_name_needs_a_table():
    frame = people()
    with refused(ValueError, "'race'", "no table"):
        minmax(2).fit(frame[FEATURES].to_numpy(), sensitive_features="race")


def test_the_table_stays_as_it_is():
    frame = people()
    before = frame.copy()
    fair = minmax(2).fit(frame, sensitive_features=["sex", "race"])
    fair.transform(frame)
    pd.testing.assert_frame_equal(frame, before)


@pytest.fixture
def metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("metadata_routing")
def test_a_routed_name_is_looked_up_in_the_table_that_reaches_the_step():
    frame = people()
    scale = make_column_transformer(
        (StandardScaler(), FEATURES), remainder="passthrough", verbose_feature_names_out=False
    )
    pipe = make_pipeline(scale.set_output(transform="pandas"), minmax(2))
    reduced = pipe.fit_transform(frame.drop(columns="sex"), sensitive_features="race")
    scaled = StandardScaler().fit_transform(frame[FEATURES])
    expected = minmax(2).fit(scaled, sensitive_features=frame["race"])
    np.testing.assert_allclose(reduced, expected.transform(scaled), atol=1e-9)
    pipe = make_pipeline(scale.set_output(transform="default"), minmax(2))
    with refused(ValueError, "no table", "set_output"):
        pipe.fit(frame.drop(columns="sex"), sensitive_features="race")


@pytest.mark.usefixtures("metadata_routing")
def test_a_grid_search_over_the_kind_of_groups():
    frame = people()
    grid = {"groups": [None, "intersections", "marginals"], "n_components": [1, 2]}
    search = GridSearchCV(minmax(), grid, cv=3, error_score="raise")
    search.fit(frame, sensitive_features=["sex", "race"])
    assert search.best_params_ == {"groups": None, "n_components": 2}  # PCA has the least loss
    assert search.best_estimator_.sensitive_names_ == ("sex", "race")
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_clones_pickles_and_model_files_keep_the_names(tmp_path):
    frame = people()
    fair = minmax(2, groups="marginals").fit(frame, sensitive_features=["sex", "race"])
    copy = clone(fair)
    assert copy.groups == "marginals"
    assert copy.sensitive_names_ == ()
    save_model(fair, tmp_path / "fair.fairpca")
    loaded = load_model(tmp_path / "fair.fairpca").fair_pca
    assert loaded.get_params() == fair.get_params()
    for same in (pickle.loads(pickle.dumps(fair)), loaded):
        assert same.sensitive_names_ == ("sex", "race")
        assert same.group_table_.to_dict()["group"][0] == "sex=f"
        np.testing.assert_array_equal(same.transform(frame), fair.transform(frame))


@every_kind
def test_audit_front_and_report_take_names(convert):
    frame = people()
    given, plain = convert(frame), frame[FEATURES]
    pca = PCA(2).fit(plain.to_numpy())
    named = {"sensitive_features": ["sex", "race"]}
    labels = {"sensitive_features": frame[["sex", "race"]]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has feature names")
        table = audit(pca, given, **named)
        expected = audit(pca, plain, **labels)
    assert str(table) == str(expected)
    assert table.to_dict()["group"][0] == "sex=f × race=b"  # noqa: RUF001
    options = {"n_components": 2, "n_points": 3}
    front = pareto_front(given, **named, **options)
    np.testing.assert_array_equal(
        front.total_loss, pareto_front(plain, **labels, **options).total_loss
    )
    assert front.estimator(0).transform(given).shape == (160, 2)
    assert front.estimator(0).sensitive_names_ == ("sex", "race")
    made = report(given, **named, **options, n_resamples=2)
    assert [group["name"] for group in made.summary["groups"]] == table.to_dict()["group"]
    assert made.summary["rows"] == 160


def test_audit_keeps_columns_that_are_features():
    frame = people()[FEATURES].assign(old=lambda f: (f["u"] > 0).astype(float))
    pca, unnamed = PCA(2).fit(frame), PCA(2).fit(frame.to_numpy())
    expected = str(audit(pca, frame, sensitive_features=frame["old"]))
    assert str(audit(pca, frame, sensitive_features="old")) == expected
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has feature names")
        table = audit(unnamed, frame, sensitive_features="old", keep_sensitive=True)
    assert str(table) == expected
    for wrong in ({"keep_sensitive": "yes"}, {"groups": "all"}):
        with refused(ValueError, "must be"):
            audit(pca, frame, sensitive_features="old", **wrong)


def test_audit_of_a_pipeline_takes_names_of_the_table_that_it_is_given():
    frame = people()
    pipe = make_pipeline(StandardScaler(), PCA(2)).fit(frame[FEATURES])
    table = audit(pipe, frame.drop(columns="sex"), sensitive_features="race")
    expected = audit(pipe, frame[FEATURES], sensitive_features=frame["race"])
    assert str(table) == str(expected)


# --- Marginals ----------------------------------------------------------------


@pytest.mark.parametrize("aggregation", ["mean", "sum"])
@pytest.mark.parametrize("groups", ["marginals", "both"])
def test_losses_and_the_total_are_those_of_the_rows(groups, aggregation):
    frame = people()
    X = frame[FEATURES].to_numpy()
    if aggregation == "mean":
        fair = minmax(2, groups=groups).fit(frame, sensitive_features=["sex", "race"])
    else:
        moments = GroupMoments.from_rows(frame[FEATURES], frame[["sex", "race"]])
        problem = Problem(moments.overlapping(groups), 2, aggregation="sum")
        fair = FairPCA.from_solution(problem, ExactSolver().solve(problem))
    errors = np.square(X - fair.inverse_transform(fair.transform(frame))).sum(axis=1)
    texts = fair.group_table_.to_dict()["group"]
    assert texts[:5] == ["sex=f", "sex=m", "race=b", "race=n", "race=w"]
    assert len(texts) == (5 if groups == "marginals" else 11)
    for i, label in enumerate(fair.group_table_.labels):
        own = np.ones(160, dtype=bool)
        for part, name in zip(label, ["sex", "race"], strict=True):
            own &= part == "(all)" or (frame[name] == part).to_numpy()
        assert fair.group_table_.count[i] == own.sum()
        expected = errors[own].mean() if aggregation == "mean" else errors[own].sum()
        assert fair.group_table_.loss[i] == pytest.approx(expected, rel=1e-10)
    total = errors.mean() if aggregation == "mean" else errors.sum()
    assert fair.solution_.total_loss == pytest.approx(total, rel=1e-10)
    pca = PCA(2, svd_solver="full").fit(X)
    lost = np.square(X - pca.inverse_transform(pca.transform(X))).sum(axis=1)
    women = lost[frame["sex"] == "f"]
    expected = women.mean() if aggregation == "mean" else women.sum()
    assert fair.group_table_.pca_loss[0] == pytest.approx(expected)
    np.testing.assert_allclose(fair.mean_, pca.mean_, atol=1e-12)
    variance = fair.transform(frame).var(axis=0, ddof=1)
    np.testing.assert_allclose(fair.explained_variance_, variance, rtol=1e-10)


def test_marginals_are_better_for_the_worst_off_of_them_than_intersections():
    frame = people()
    named = {"sensitive_features": ["sex", "race"]}
    fitted = {
        kind: minmax(2, groups=kind).fit(frame, **named) for kind in ("marginals", "intersections")
    }
    worst = {
        kind: audit(fair, frame, groups="marginals", **named).disparity.max()
        for kind, fair in fitted.items()
    }
    table = fitted["marginals"].group_table_
    assert worst["marginals"] == pytest.approx(table.disparity.max(), rel=1e-8)
    assert worst["marginals"] <= worst["intersections"] + 1e-9


def test_one_column_has_the_same_groups_whatever_is_asked_for():
    frame = people().drop(columns="sex")
    expected = minmax(2).fit(frame, sensitive_features="race")
    for groups in ("marginals", "both"):
        fair = minmax(2, groups=groups).fit(frame, sensitive_features="race")
        np.testing.assert_array_equal(fair.components_, expected.components_)
        assert fair.group_table_.labels == ("b", "n", "w")


def test_group_centring_has_no_total_loss_then():
    frame = people()
    moments = GroupMoments.from_rows(frame[FEATURES], frame[["sex", "race"]])
    with refused(ValueError, "centering='group'"):
        Problem(moments.overlapping("marginals"), 2, centering="group")


def test_moments_are_regrouped_as_the_parameter_says():
    frame = people()
    moments = GroupMoments.from_rows(frame[FEATURES], frame[["sex", "race"]])
    fair = minmax(2, groups="marginals").fit_moments(moments)
    named = minmax(2, groups="marginals").fit(frame, sensitive_features=["sex", "race"])
    same_subspace(fair, named)
    assert minmax(2).fit_moments(moments.overlapping("both")).group_table_.labels[0] == (
        "f",
        "(all)",
    )
    pca = minmax(2, groups=None).fit_moments(moments)
    same_subspace(pca, PCA(2).fit(frame[FEATURES]))


def test_front_and_report_by_marginals():
    frame = people()
    given = {"sensitive_features": ["sex", "race"], "n_components": 2, "n_points": 3}
    front = pareto_front(frame, groups="marginals", **given)
    assert front.estimator(-1).groups == "marginals"
    assert front.estimator(-1).group_table_.to_dict()["group"][-1] == "race=w"
    made = report(frame, groups="marginals", n_resamples=20, **given)
    assert made.summary["rows"] == 160
    assert sum(group["rows"] for group in made.summary["groups"]) == 2 * 160
    assert "groups='marginals'" in made.code
    # The rows of a group are drawn as if its column were the only one.
    alone = report(
        frame.drop(columns="race"),
        n_resamples=200,
        **given | {"sensitive_features": "sex"},
    )
    wide = report(frame, groups="marginals", n_resamples=200, **given)
    np.testing.assert_allclose(wide.intervals.high[0, :2], alone.intervals.high[0], rtol=0.2)


# --- Missing labels and numbers -----------------------------------------------


def test_rows_without_labels_are_left_out_with_one_warning():
    frame = people()
    frame.loc[::5, "race"] = None
    some = frame["race"].notna()
    expected = minmax(2).fit(frame[some], sensitive_features=["sex", "race"])
    with warned(FairnessWarning, "32 of 160", "left out") as caught:
        fair = minmax(2, missing_labels="drop").fit(frame, sensitive_features=["sex", "race"])
    assert ["rows are left out" in str(each.message) for each in caught].count(True) == 1
    assert caught[0].filename == __file__
    same_subspace(fair, expected)
    np.testing.assert_allclose(fair.mean_, expected.mean_, atol=1e-12)
    np.testing.assert_allclose(fair.explained_variance_, expected.explained_variance_, rtol=1e-9)
    assert fair.group_table_.count.tolist() == expected.group_table_.count.tolist()
    with warned(FairnessWarning, "32 of 160"):
        table = audit(expected, frame, sensitive_features="race", missing_labels="drop")
    wanted = audit(expected, frame[some], sensitive_features="race")
    np.testing.assert_allclose(table.loss, wanted.loss, rtol=1e-10)
    np.testing.assert_allclose(table.own_loss, wanted.own_loss, rtol=1e-10)


def test_too_few_labels_are_refused():
    X = people()[FEATURES]
    fair = minmax(2, missing_labels="drop")
    with refused(ValueError, "missing", "all of the 160"):
        fair.fit(X, sensitive_features=[None] * 160)
    with (
        warned(FairnessWarning, "159 of 160"),
        refused(ValueError, "Only 1"),
    ):
        fair.fit(X, sensitive_features=["a", *[None] * 159])


def test_ages_are_refused_and_bins_of_them_are_groups():
    frame = people().drop(columns=["sex", "race"])
    frame["age"] = np.random.default_rng(0).integers(17, 90, 160)
    with refused(ValueError, "different numbers", "'age'", "pandas.qcut"):
        minmax(2).fit(frame, sensitive_features="age")
    frame["age"] = pd.cut(frame["age"], [0, 30, 60, 100], labels=["young", "middle", "old"])
    fair = minmax(2).fit(frame, sensitive_features="age")
    assert fair.group_table_.labels == ("middle", "old", "young")


# --- No groups ----------------------------------------------------------------


def test_no_groups_is_never_silent():
    frame = people()
    X, groups = frame[FEATURES], frame["race"]
    with warned(FairnessWarning, "no groups", "sensitive_features=…") as caught:
        fair = minmax(2).fit(X)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "groups=None" in str(caught[0].message)
    with warned(FairnessWarning, "y is ignored") as caught:
        minmax(2).fit_transform(X, groups)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warned(FairnessWarning, "no groups") as caught:
        make_pipeline(StandardScaler(), minmax(2)).fit(X)
    assert caught[0].filename == __file__
    same_subspace(fair, PCA(2).fit(X))


def test_ordinary_pca_can_be_asked_for():
    frame = people()
    X, groups = frame[FEATURES], frame["race"]
    pca = PCA(2, svd_solver="full").fit(X)
    for fair in (
        minmax(2, groups=None).fit(X),
        minmax(2, groups=None).fit(X, groups),
        minmax(2, groups=None).fit(X, sensitive_features=groups),
        minmax(2, groups=None).fit(frame, sensitive_features=["sex", "race"]),
    ):
        np.testing.assert_allclose(fair.components_, pca.components_, atol=1e-9)
        assert fair.group_table_.labels == ("all",)
    minmax(2).fit(X, groups, sensitive_features=groups)  # y is silently ignored beside groups

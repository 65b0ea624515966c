"""Criteria as parameters of FairPCA, and what it says of them."""

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

from fairpca import (
    AtMost,
    Balanced,
    Equal,
    ExactSolver,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    MinMax,
    ParetoDescent,
    Problem,
)
from fairpca.datasets import load_adult
from fairpca.model_file import load_model, save_model
from fairpca.solvers import SOLVERS

from texts import recorded, refused, warned

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
            warnings.filterwarnings("ignore", "Too few rows to be judged")
            fair = FairPCA(r, criterion="minmax").fit(X, sensitive_features=groups)
        own = own_losses(X, groups, r)
        ours = losses(X, groups, fair.components_) - own
        pca = losses(X, groups, PCA(r).fit(X).components_) - own
        assert ours.max() <= pca.max() + 1e-9
        assert (ours < pca).any()
        assert fair.certificate_.goal == "minmax"
        assert len(fair.group_table_.worse_off) < 5


@pytest.mark.parametrize("r", [6, 7])
def test_equality_that_leaves_all_worse_off_is_warned_of(by_race, r):
    X, groups = by_race
    with warned(FairnessWarning, "Every group", "worse off"):
        fair = FairPCA(r, criterion="equal").fit(X, sensitive_features=groups)
    assert fair.certificate_.all_worse_off
    recorded(fair.group_table_.sentences(), "Every group is worse off")


def test_measures_are_what_they_are_called():
    X, groups = rows_and_groups()
    own, nothing = own_losses(X, groups, 2), losses(X, groups, np.zeros((1, 6)))
    constants_and_units = {
        "disparity": (own, 1.0),
        "relative_disparity": (own, nothing),
        "loss": (0.0, 1.0),
        "share_lost": (0.0, nothing),
        "kept_variance": (nothing, 1.0),
        "share_kept": (nothing, nothing),
    }
    fits = {
        measure: FairPCA(2, criterion=MinMax(measure)).fit(X, sensitive_features=groups)
        for measure in constants_and_units
    }
    for measure, (constants, units) in constants_and_units.items():
        fair = fits[measure]
        measured = {
            name: (losses(X, groups, other.components_) - constants) / units
            for name, other in fits.items()
        }
        mine = measured[measure]
        assert_allclose(fair.certificate_.measures, mine, atol=1e-9)
        assert mine.max() <= min(other.max() for other in measured.values()) + 1e-9


def test_extra_loss_is_limited_in_pipelines_and_grids():
    X, groups = rows_and_groups()
    pca_loss = np.square(X - PCA(2).fit(X).inverse_transform(PCA(2).fit_transform(X))).sum() / 300
    last = np.inf
    for extra in (0.0, 0.01, 0.05, 1.0):
        fair = FairPCA(2, criterion=MinMax(max_extra_loss=extra)).fit(X, sensitive_features=groups)
        assert -fair.score(X) <= pca_loss * (1 + extra) * (1 + 1e-9)
        assert fair.certificate_.value <= last + 1e-9
        last = fair.certificate_.value
    assert last == pytest.approx(
        FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups).certificate_.value,
        rel=1e-6,
    )
    with config_context(enable_metadata_routing=True):
        classes = (X[:, 0] > 0).astype(int)
        folds = KFold(3, shuffle=True, random_state=0)
        pipeline = make_pipeline(FairPCA(2, criterion=MinMax()), LogisticRegression())
        tried = {"fairpca__criterion__max_extra_loss": [None, 0.01, 0.1]}
        grid = GridSearchCV(pipeline, tried, cv=folds)
        grid.fit(X, classes, sensitive_features=groups)
        assert np.isfinite(grid.cv_results_["mean_test_score"]).all()


def test_bounds_hold_by_label_in_order_and_for_all():
    X, groups = rows_and_groups()
    plain = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    most = plain.certificate_.value
    by_label = {"a": 1.1 * most, "b": 1.3 * most, "c": np.inf}
    found = [
        FairPCA(2, criterion=AtMost(bounds)).fit(X, sensitive_features=groups)
        for bounds in (by_label, list(by_label.values()), {"a": 1.1 * most, "b": 1.3 * most})
    ]
    for other in found[1:]:
        assert_allclose(found[0].components_, other.components_, atol=1e-9)
    series = FairPCA(2, criterion=AtMost(pd.Series(by_label).iloc[::-1]))
    series.fit(X, sensitive_features=groups)
    assert_allclose(found[0].components_, series.components_, atol=1e-9)
    assert found[0].certificate_.goal == "bounds"
    disparity = found[0].group_table_.disparity
    assert (disparity[:2] <= [1.1 * most + 1e-8, 1.3 * most + 1e-8]).all()
    assert -found[0].score(X) < -plain.score(X)
    kept = FairPCA(2, criterion=AtMost(1.0, "kept_variance")).fit(X, sensitive_features=groups)
    assert (kept.group_table_.variance - kept.group_table_.loss >= 1.0 - 1e-9).all()
    with warned(FairnessWarning, "impossible", "bound"):
        FairPCA(2, criterion=AtMost(most / 2)).fit(X, sensitive_features=groups)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (
            {"criterion": MinMax("regret")},
            "measure 'disparity' 'relative_disparity' 'regret'",
        ),
        ({"criterion": AtMost(1.0, "gain")}, "measure 'disparity' 'gain'"),
        ({"criterion": Equal(measure=None)}, "measure 'disparity' None"),
        (
            {"criterion": MinMax(max_extra_loss=-0.1)},
            "max_extra_loss at least 0",
        ),
        ({"criterion": MinMax(max_extra_loss=True)}, "max_extra_loss"),
        (
            {"criterion": AtMost({"z": 1.0})},
            "bounds 'z'",
        ),
        ({"criterion": AtMost([1.0, -1.0, 2.0])}, "bounds"),
        ({"criterion": AtMost(None)}, "bounds"),
        (
            {"criterion": AtMost(np.inf, "share_kept")},
            "bounds keep finite inf",
        ),
    ],
)
def test_wrong_choices_are_refused_in_one_sentence(choices, words):
    X, groups = rows_and_groups()
    with refused(ValueError, *words.split()) as caught:
        FairPCA(2, **choices).fit(X, sensitive_features=groups)
    assert "\n" not in str(caught.value)


OTHERS = (
    MinMax("loss"),
    MinMax("relative_disparity"),
    MinMax(max_extra_loss=0.1),
    Equal(measure="share_lost"),
    AtMost(1.0),
    "balanced",
)


@pytest.mark.parametrize("solver", [*sorted(set(SOLVERS) - {"exact"}), ParetoDescent()], ids=str)
@pytest.mark.parametrize("criterion", OTHERS, ids=str)
def test_solvers_with_a_criterion_of_their_own_refuse_others(solver, criterion, monkeypatch):
    monkeypatch.setattr(GroupMoments, "from_groups", lambda *_: pytest.fail("rows were read"))
    X, groups = rows_and_groups()
    asked = "Balanced()" if criterion == "balanced" else repr(criterion)
    with refused(ValueError, f"solver={solver!r}", "criterion of its own", asked):
        FairPCA(2, solver=solver, criterion=criterion).fit(X, sensitive_features=groups)


def test_pareto_descent_is_judged_by_equality_whatever_the_criterion():
    X, groups = rows_and_groups()
    for criterion in ("minmax", "equal", MinMax(), Equal()):
        fair = FairPCA(2, solver="pareto", criterion=criterion)
        fair.fit(X, sensitive_features=groups)
        assert fair.certificate_.goal == "equal"
        assert fair.certificate_.tolerance == pytest.approx(fair.certificate_.spread)


@pytest.mark.parametrize(
    "choices",
    [
        {"criterion": MinMax("share_kept")},
        {"criterion": AtMost({"a": 20.0, "b": np.inf, "c": 20.0})},
        {"criterion": AtMost([20.0, np.inf, 20.0], "loss")},
        {"criterion": MinMax(max_extra_loss=0.05)},
        {"criterion": Equal(tolerance=1.0)},
        {"criterion": Balanced()},
        {"criterion": "balanced"},
    ],
    ids=str,
)
def test_choices_survive_the_model_file(tmp_path, choices):
    X, groups = rows_and_groups()
    fair = FairPCA(2, **choices).fit(X, sensitive_features=groups)
    save_model(fair, tmp_path / "m.fairpca")
    again = load_model(tmp_path / "m.fairpca").fair_pca
    assert repr(again) == repr(fair)
    given, kept = fair.get_params(), again.get_params()
    if not isinstance(fair.criterion, str):
        assert type(kept.pop("criterion")) is type(given.pop("criterion"))
    assert kept == given
    assert str(again.certificate_) == str(fair.certificate_)
    assert_allclose(again.transform(X), fair.transform(X))
    refitted = again.fit(X, sensitive_features=groups)
    assert_allclose(refitted.components_, fair.components_, atol=1e-8)


def balanced_basis(X, groups, r, weights):
    """The leading eigenvectors of the mean of the groups' second moments."""
    centred = X - np.average(X, axis=0, weights=weights)
    shares = np.array([weights[i] / weights[groups == groups[i]].sum() for i in range(len(X))])
    return np.linalg.eigh((centred * shares[:, None]).T @ centred)[1][:, -r:]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 2, 4])
def test_balanced_is_pca_of_rows_whose_groups_weigh_the_same(r, weighted):
    X, groups = rows_and_groups()
    X = X - X.mean(axis=0)
    weights = np.random.default_rng(3).uniform(0.1, 2.0, 300) if weighted else None
    fair = FairPCA(r, criterion="balanced")
    fair.fit(X, sensitive_features=groups, sample_weight=weights)
    basis = balanced_basis(X, groups, r, np.ones(300) if weights is None else weights)
    assert_allclose(fair.components_.T @ fair.components_, basis @ basis.T, atol=1e-9)
    assert fair.n_components_ == r
    assert fair.certificate_.value == pytest.approx(fair.group_table_.loss.mean(), rel=1e-12)


def test_balanced_is_scikit_learns_pca_of_repeated_rows():
    X, groups = rows_and_groups()
    for label in "abc":  # so that repeating rows leaves the mean where it is
        X[groups == label] -= X[groups == label].mean(axis=0)
    fair = FairPCA(2, criterion=Balanced()).fit(X, sensitive_features=groups)
    times = 300 // np.array([np.sum(groups == label) for label in groups])
    repeated, plain = (PCA(2).fit(rows) for rows in (np.repeat(X, times, axis=0), X))
    ours, theirs, pcas = (one.components_.T @ one.components_ for one in (fair, repeated, plain))
    assert_allclose(ours, theirs, atol=1e-9)
    assert np.abs(ours - pcas).max() > 0.01


@pytest.mark.parametrize("r", [1, 2, 5])
def test_balanced_is_proven_optimal_by_a_bound_that_can_be_recomputed(r):
    X, groups = rows_and_groups()
    fair = FairPCA(r, criterion="balanced").fit(X, sensitive_features=groups)
    certificate = fair.certificate_
    assert (certificate.status, certificate.goal) == ("optimal", "balanced")
    assert certificate.measure == "loss"
    problem = Problem(GroupMoments.from_rows(X, groups), r, "balanced")
    assert problem.dual_bound(certificate.multipliers) == certificate.lower_bound
    # By hand: the mean of the second moments loses its smallest eigenvalues at the least.
    centred = X - X.mean(axis=0)
    parts = [centred[groups == label] for label in "abc"]
    mean = sum(part.T @ part / len(part) for part in parts) / 3
    least = np.linalg.eigvalsh(mean)[: 6 - r].sum()
    assert certificate.lower_bound <= least + 1e-12
    assert certificate.lower_bound == pytest.approx(least, rel=1e-9)
    assert certificate.value == pytest.approx(losses(X, groups, fair.components_).mean(), rel=1e-9)
    assert certificate.value >= certificate.lower_bound
    others = np.linalg.qr(np.random.default_rng(0).normal(size=(1000, 6, r)))[0]
    assert all(losses(X, groups, basis.T).mean() >= certificate.lower_bound for basis in others)
    assert "the mean of the groups' losses" in str(certificate)


def test_marginals_are_fair_to_groups_that_overlap():
    X, groups = rows_and_groups()
    sex = np.where(np.arange(300) % 3 == 0, "f", "m")
    both = np.column_stack([groups, sex])
    fair = FairPCA(2, groups="marginals", criterion="minmax").fit(X, sensitive_features=both)
    lost = losses(X, groups, fair.components_) - own_losses(X, groups, 2)
    by_sex = losses(X, sex, fair.components_) - own_losses(X, sex, 2)
    assert fair.certificate_.value == pytest.approx(max(lost.max(), by_sex.max()), rel=1e-9)
    assert -fair.score(X) == pytest.approx(fair.solution_.total_loss, rel=1e-9)
    assert json.dumps(fair.group_table_.to_dict())


def test_groups_are_bound_and_looked_up_by_the_names_that_are_shown():
    X, groups = rows_and_groups()
    frame = pd.DataFrame({"letter": groups, "sex": np.where(np.arange(300) % 3 == 0, "f", "m")})
    bounds = {"letter=a": 11.0, "sex=f": 12.0}
    fair = FairPCA(2, groups="marginals", criterion=AtMost(bounds))
    fair.fit(X, sensitive_features=frame)
    by_label = {("a", "(all)"): 11.0, ("(all)", "f"): 12.0}
    same = FairPCA(2, groups="marginals", criterion=AtMost(by_label))
    same.fit(X, sensitive_features=frame)
    assert_allclose(fair.components_, same.components_, atol=1e-9)
    assert fair.group_table_["letter=a"] == fair.group_table_["a", "(all)"]


@pytest.mark.parametrize("measure", ["disparity", "loss", "kept_variance"])
def test_rows_without_variance_end_with_a_sentence(measure):
    X, groups = np.ones((6, 3)), list("aabbcc")
    fair = FairPCA(1, criterion=AtMost(1.0, measure))
    if measure == "kept_variance":
        with warned(FairnessWarning, "impossible"):
            fair.fit(X, sensitive_features=groups)
    else:
        fair.fit(X, sensitive_features=groups)
        assert fair.certificate_.status == "optimal"


def test_certificate_and_table_agree_on_who_is_better_off():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [3, 2, 1]
    X[:100] = X[:100, ::-1]
    X[200:] *= 1e-6
    groups = np.repeat(list("abc"), 100)
    problem = Problem(
        GroupMoments.from_rows(X, groups), 1, criterion=MinMax("loss"), centering="group"
    )
    fair = FairPCA.from_solution(problem, ExactSolver().solve(problem))
    assert_allclose(np.sign(fair.certificate_.change_from_pca), np.sign(fair.group_table_.change))


def test_a_model_file_takes_tables_with_the_sensitive_columns(tmp_path):
    X, groups = rows_and_groups()
    table = pd.DataFrame(X, columns=list("uvwxyz")).assign(group=groups)
    fair = FairPCA(2, criterion="minmax").fit(table, sensitive_features="group")
    save_model(fair, tmp_path / "m.fairpca")
    model = load_model(tmp_path / "m.fairpca")
    assert_allclose(model.transform(table), fair.transform(table))
    assert_allclose(model.transform(table.drop(columns="group")), fair.transform(table))

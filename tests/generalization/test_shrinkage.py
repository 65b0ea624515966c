"""Shrinkage, and what folds say of it."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from fairpca import (
    AtMost,
    ExactSolver,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    MinMax,
    Problem,
)
from fairpca import folds as rows_folds
from fairpca.data import prepare_data
from fairpca.datasets import load_adult
from fairpca.folds import N_FOLDS, row_folds
from fairpca.generalization import cross_fit
from fairpca.generalization.cross_fit import (
    CANDIDATES,
    chosen_shrinkage,
    shrunk_moments,
    shrunk_problem,
)
from fairpca.model_file import load_model, save_model
from fairpca.sources import read_moments

from devices import import_torch
from same_fit import assert_same_choice

pytestmark = pytest.mark.untraced

SIZES = (150, 60, 25, 12)


@pytest.fixture
def few(monkeypatch):
    """Three candidates, which take less than half the time of seven."""
    monkeypatch.setattr(cross_fit, "CANDIDATES", (0.0, 30.0, np.inf))


def drawn(seed=0, sizes=SIZES, d=6, apart=0.5):
    """Rows of groups whose covariances differ, not around zero, in a random order."""
    rng = np.random.default_rng(seed)
    shared = np.diag(5.0 / np.arange(1, d + 1))
    parts = []
    for n in sizes:
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        covariance = (1 - apart) * shared + apart * turn @ shared @ turn.T
        parts.append(rng.multivariate_normal(rng.normal(size=d), covariance, size=n))
    order = rng.permutation(sum(sizes))
    labels = np.repeat([chr(97 + i) for i in range(len(sizes))], sizes)
    return np.vstack(parts)[order], labels[order]


def same_subspace(first, second, tolerance=1e-7):
    cosines = np.linalg.svd(first @ second.T, compute_uv=False)
    assert len(first) == len(second)
    assert cosines.min() >= 1 - tolerance**2


def second_moments(X, labels, weights=None):
    """By group, about the mean of all rows, with the pooled one; from the rows."""
    weights = np.ones(len(X)) if weights is None else weights
    centred = X - np.average(X, axis=0, weights=weights)
    of = [centred[labels == label] for label in np.unique(labels)] + [centred]
    w = [weights[labels == label] for label in np.unique(labels)] + [weights]
    return [(rows.T * part) @ rows / part.sum() for rows, part in zip(of, w, strict=True)]


@pytest.mark.parametrize("n0", [0.5, 30, 1e6, np.inf])
@pytest.mark.parametrize("aggregation", ["mean", "sum"])
def test_matrices_are_shrunk_as_defined(n0, aggregation):
    X, labels = drawn()
    moments = GroupMoments.from_rows(X, labels)
    *own, pooled = second_moments(X, labels)
    shrunk = shrunk_moments(moments, n0, aggregation, "global")
    share = 0.0 if np.isinf(n0) else moments.count / (moments.count + n0)
    expected = [s * a + (1 - s) * pooled for s, a in zip(share + np.zeros(4), own, strict=True)]
    assert_allclose(shrunk.second_moments(), expected, atol=1e-12)
    assert_allclose(shrunk.total_mean, X.mean(axis=0), atol=1e-13)
    if aggregation == "mean":
        assert_allclose(shrunk.total_covariance(), pooled, atol=1e-12)
    else:
        assert_allclose(shrunk.weight, moments.weight)


def test_it_is_as_if_rows_of_all_were_in_every_group():
    X, labels = drawn()
    n0, n = 40.0, len(X)
    rows = [X, *([X] * len(SIZES))]
    groups = [labels, *(np.full(n, label) for label in "abcd")]
    weights = [np.ones(n), *([np.full(n, n0 / n)] * len(SIZES))]
    literal = FairPCA(2).fit(
        np.vstack(rows),
        sensitive_features=np.concatenate(groups),
        sample_weight=np.concatenate(weights),
    )
    fair = FairPCA(2, shrinkage=n0).fit(X, sensitive_features=labels)
    same_subspace(fair.components_, literal.components_)
    assert fair.certificate_.value == pytest.approx(literal.certificate_.value, rel=1e-9)
    assert fair.shrinkage_ == n0


def test_none_is_the_plain_problem_and_infinite_is_pca():
    X, labels = drawn()
    plain = FairPCA(2).fit(X, sensitive_features=labels)
    assert plain.shrinkage_ == 0.0
    same_subspace(
        FairPCA(2, shrinkage=1e-9).fit(X, sensitive_features=labels).components_,
        plain.components_,
        1e-5,
    )
    for criterion in ("minmax", "equal"):
        pca = FairPCA(2, shrinkage=np.inf, criterion=criterion).fit(X, sensitive_features=labels)
        same_subspace(pca.components_, PCA(2).fit(X).components_)
        assert "that of ordinary PCA" in str(pca.certificate_)
        assert_allclose(pca.group_table_.disparity, pca.group_table_.pca_disparity, atol=1e-9)


def test_the_certificate_is_about_the_shrunk_problem_and_the_table_about_the_rows():
    X, labels = drawn()
    fair = FairPCA(2, shrinkage=25).fit(X, sensitive_features=labels)
    certificate = fair.certificate_
    assert certificate.shrinkage == 25
    assert "as if each group had 25 more rows" in str(certificate)
    problem = Problem(GroupMoments.from_rows(X, labels), 2)
    posed, basis = shrunk_problem(problem, 25.0), fair.components_.T
    assert_allclose(certificate.measures, posed.measures(basis), atol=1e-9)
    assert posed.dual_bound(certificate.multipliers) == pytest.approx(certificate.lower_bound)
    assert certificate.value <= posed.measures(problem.pca_basis).max()
    assert_allclose(fair.group_table_.loss, problem.group_losses(basis), atol=1e-9)
    assert_allclose(fair.solution_.disparities, problem.disparities(basis), atol=1e-9)
    assert fair.solution_.total_loss == pytest.approx(problem.total_loss(basis))
    assert_allclose(fair.explained_variance_.sum(), fair.transform(X).var(axis=0, ddof=1).sum())


def held_out_traces(X, labels, weights=None):
    """What groups lose with nothing, rows of each fold measured from the mean of the others."""
    weights, folds, sums = np.ones(len(X)) if weights is None else weights, row_folds(X), 0.0
    for fold in range(N_FOLDS):
        center = np.average(X[folds != fold], axis=0, weights=weights[folds != fold])
        squares = weights * np.square(X - center).sum(axis=1) * (folds == fold)
        sums = sums + np.array([squares[labels == name].sum() for name in np.unique(labels)])
    return sums / np.array([weights[labels == name].sum() for name in np.unique(labels)])


def own_basis(mine, rows, r):
    """Components of a group's rows; where they have fewer than r, also of what all rows have left.

    All rows count as far as r components have them.
    """
    own = np.linalg.svd(mine, full_matrices=False)[2][:r]
    if len(own) < r:
        _, sizes, components = np.linalg.svd(rows, full_matrices=False)
        reduced = (components[:r].T * sizes[:r]) @ components[:r]  # a root of their second moments
        left = reduced - reduced @ own.T @ own
        own = np.vstack([own, np.linalg.svd(left)[2][: r - len(own)]])
    return own


def by_hand(X, labels, r, weights=None, **choices):
    """Scores and losses of `CrossFit`, by fits to rows and projections of rows."""
    folds, names = row_folds(X), np.unique(labels)
    weights = np.ones(len(X)) if weights is None else weights
    kept = np.zeros((len(cross_fit.CANDIDATES), len(names)))
    own_kept, traces, gains = np.zeros(len(names)), [], []
    mean = np.average(X, axis=0, weights=weights)
    for name in names:
        mine = labels == name
        matrix = np.cov((X - mean)[mine].T, aweights=weights[mine], ddof=0)
        offset = np.average(X[mine], axis=0, weights=weights[mine]) - mean
        values = np.linalg.eigvalsh(matrix + np.outer(offset, offset))[::-1]
        traces.append(values.sum())
        gains.append(values[:r].sum())
    for fold in range(N_FOLDS):
        train, test = folds != fold, folds == fold
        center = np.average(X[train], axis=0, weights=weights[train])

        def squares(components, chosen, center=center):
            return weights[chosen] @ np.square((X[chosen] - center) @ components.T).sum(axis=1)

        for j, n0 in enumerate(cross_fit.CANDIDATES):
            fair = FairPCA(r, shrinkage=n0, **choices).fit(
                X[train], sensitive_features=labels[train], sample_weight=weights[train]
            )
            for i, name in enumerate(names):
                kept[j, i] += squares(fair.components_, test & (labels == name))
        rows = (X[train] - center) * np.sqrt(weights[train])[:, None]
        for i, name in enumerate(names):
            mine = train & (labels == name)
            if not mine.any():
                mine = train
            centred = (X[mine] - center) * np.sqrt(weights[mine])[:, None]
            own_kept[i] += squares(own_basis(centred, rows, r), test & (labels == name))
    total = np.array([weights[labels == name].sum() for name in names])
    square = np.array([(weights[labels == name] ** 2).sum() for name in names])
    kept, own_kept = kept / total, own_kept / total
    traces, gains = np.array(traces), np.array(gains)
    share = np.where(total**2 / square >= 5 * X.shape[1], 5 / 9, 1 / 2)
    held_out = held_out_traces(X, labels, weights)
    own = share * (traces - gains) + (1 - share) * (held_out - own_kept)
    return held_out - kept, held_out - own_kept, own, traces, gains


@pytest.mark.parametrize("sizes", [(60, 25, 12), (60, 20, 3, 1)])
def test_moments_of_folds_give_what_fits_to_rows_give(sizes):
    X, labels = drawn(1, sizes, d=4)
    fair = FairPCA(2, shrinkage="auto").fit(X, sensitive_features=labels)
    losses, own_held_out, own, traces, gains = by_hand(X, labels, 2)
    found, scale = fair.cross_fit_, 1e-12 * traces.max()
    assert_allclose(found.measures, losses - own, rtol=0, atol=scale)
    assert_allclose(found.own_loss_in_sample, traces - gains, atol=scale)
    assert_allclose(found.own_loss_held_out, own_held_out, atol=scale)
    assert_allclose(found.pca_loss, losses[-1], atol=scale)
    chosen = CANDIDATES.index(fair.shrinkage_)
    assert_allclose(found.loss, losses[chosen], atol=scale)
    assert_allclose(found.disparity, (losses - own)[chosen], atol=scale)


@settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.sampled_from([(30, 6, 3, 1), (33, 5, 1, 1), (28, 4, 4, 4)]),
    r=st.integers(1, 3),
)
def test_so_they_do_however_rows_fall_into_folds(few, monkeypatch, seed, sizes, r):
    X, labels = drawn(4, sizes, d=4)
    folds = np.random.default_rng(seed).integers(N_FOLDS, size=40)
    fold_of = {row.tobytes(): fold for row, fold in zip(X, folds, strict=True)}

    def chosen_folds(rows, chosen=None):
        rows = rows if chosen is None else rows[chosen]
        return np.array([fold_of[row.tobytes()] for row in rows])

    with monkeypatch.context() as patched:
        patched.setattr(rows_folds, "row_folds", chosen_folds)
        patched.setitem(globals(), "row_folds", chosen_folds)
        fair = FairPCA(r, shrinkage="auto").fit(X, sensitive_features=labels)
        losses, own_held_out, own, traces, _ = by_hand(X, labels, r)
    found, scale = fair.cross_fit_, 1e-10 * traces.max()
    assert_allclose(found.own_loss_held_out, own_held_out, rtol=0, atol=scale)
    assert_allclose(found.pca_loss, losses[-1], rtol=0, atol=scale)
    assert_allclose(found.measures[-1], losses[-1] - own, rtol=0, atol=scale)


def test_weights_count_by_their_effective_rows(few):
    X, labels = drawn(2, (60, 25, 12), d=4)
    weights = np.random.default_rng(3).integers(1, 4, len(X)).astype(float)
    fair = FairPCA(2, shrinkage="auto").fit(X, sensitive_features=labels, sample_weight=weights)
    losses, _, own, traces, _ = by_hand(X, labels, 2, weights)
    assert_allclose(fair.cross_fit_.measures, losses - own, rtol=0, atol=1e-11 * traces.max())
    scaled = FairPCA(2, shrinkage="auto").fit(
        X, sensitive_features=labels, sample_weight=1e-3 * weights
    )
    assert_allclose(scaled.cross_fit_.measures, fair.cross_fit_.measures, atol=1e-10)
    # Rows that are there twice are in one fold, as one row of twice the weight is.
    twice = FairPCA(2, shrinkage=20).fit(
        np.vstack([X, X]), sensitive_features=np.append(labels, labels)
    )
    once = FairPCA(2, shrinkage=10).fit(X, sensitive_features=labels)
    same_subspace(twice.components_, once.components_)


def test_all_ways_to_give_rows_choose_the_same(few):
    X, labels = drawn(4, (80, 40, 15), d=4)
    fair = FairPCA(2, shrinkage="auto")
    expected = FairPCA(2, shrinkage="auto").fit(X, sensitive_features=labels)
    order = np.random.default_rng(5).permutation(len(X))
    assert_same_choice(fair.fit(X[order], sensitive_features=labels[order]), expected)
    assert_same_choice(fair.fit(np.asfortranarray(X), sensitive_features=labels), expected)
    assert_same_choice(fair.fit(scipy.sparse.csr_matrix(X), sensitive_features=labels), expected)
    moments = GroupMoments.from_rows(X, labels, folds=True)
    assert_same_choice(fair.fit_moments(moments), expected)
    parts = [GroupMoments.from_rows(X[i::3], labels[i::3], folds=True) for i in range(3)]
    assert_same_choice(fair.fit_moments(GroupMoments.merge(parts)), expected)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]).assign(group=labels)
    assert_same_choice(
        fair.fit_moments(read_moments(frame, sensitive_features="group", folds=True)), expected
    )
    assert_same_choice(fair.fit(frame, sensitive_features="group"), expected)
    batches = FairPCA(2, shrinkage="auto")
    for batch in np.array_split(order, 4):
        batches.partial_fit(X[batch], sensitive_features=labels[batch])
    assert_same_choice(batches, expected)


def test_rows_on_a_device_choose_the_same(few):
    torch = import_torch()
    X, labels = drawn(4, (80, 40, 15), d=4)
    expected = FairPCA(2, shrinkage="auto").fit(X, sensitive_features=labels)
    there = torch.from_numpy(X)
    assert_same_choice(FairPCA(2, shrinkage="auto").fit(there, sensitive_features=labels), expected)


def test_large_groups_are_not_held_out(few):
    X, labels = drawn(6, (3000, 2000), d=4)
    for way in ("rows", "moments"):
        fair = FairPCA(2, shrinkage="auto")
        if way == "rows":
            fair.fit(X, sensitive_features=labels)
        else:
            fair.fit_moments(GroupMoments.from_rows(X, labels, folds=True))
        assert fair.shrinkage_ == 0.0
        assert not hasattr(fair, "cross_fit_")
    X, labels = drawn(7, (3000, 40), d=4)
    fair = FairPCA(2, shrinkage="auto").fit(X, sensitive_features=labels)
    divided = FairPCA(2, shrinkage="auto").fit_moments(
        GroupMoments.from_rows(X, labels, folds=True)
    )
    assert_same_choice(divided, fair)
    assert "Large enough not to be held out: 'a'." in str(fair.cross_fit_)
    # Of the large group, losses are those of all its rows with each fold's subspace.
    assert fair.cross_fit_.own_loss_held_out[0] == pytest.approx(
        fair.cross_fit_.own_loss_in_sample[0], rel=1e-3
    )


@pytest.mark.parametrize(
    "choices",
    [
        {"criterion": "equal"},
        {"criterion": "balanced"},
        {"criterion": MinMax("share_lost")},
        {"criterion": MinMax("kept_variance")},
        {"criterion": AtMost(1.0)},
        {"criterion": AtMost({"a": 0.5, "d": 2.0})},
        {"criterion": MinMax(max_extra_loss=0.05)},
        {"nested": True},
        {"solver": "pareto"},
        {"solver": "mw"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:(Proven|Equality is|No subspace).*:UserWarning")
@pytest.mark.filterwarnings("ignore:Every group is worse off:UserWarning")
@pytest.mark.filterwarnings("ignore:The solver 'mw' used all its steps")
def test_everything_that_can_be_asked_for_can_be_shrunk(few, choices):
    X, labels = drawn(8, (80, 40, 15, 9), d=4)
    fair = FairPCA(2, shrinkage="auto", **choices).fit(X, sensitive_features=labels)
    found = fair.cross_fit_
    assert fair.shrinkage_ == found.shrinkage
    check_cross_fit(found, X, labels, fair.criterion)


@pytest.mark.parametrize("choices", [{"aggregation": "sum"}, {"centering": "group"}], ids=str)
def test_other_problems_can_be_shrunk(few, choices):
    X, labels = drawn(8, (80, 40, 15, 9), d=4)
    grouped_data = prepare_data(X, labels, folds="needed")
    problem = grouped_data.problem(2, **choices)
    n0, found = chosen_shrinkage("auto", grouped_data, "intersections", problem, ExactSolver())
    assert n0 == found.shrinkage
    check_cross_fit(found, X, labels, "minmax", **choices)


def check_cross_fit(found, X, labels, criterion, **choices):
    """Measures on held-out rows with ordinary PCA, and scores, by their definitions."""
    assert np.isfinite(found.measures).all()
    problem = Problem(GroupMoments.from_rows(X, labels), 2, criterion, **choices)
    loss = found.pca_loss
    measured = problem.goal.measured
    pca = {
        "own": loss - found.own_loss,
        "all": loss,
        "none": loss - held_out_traces(X, labels),
    }[measured.baseline]
    units = problem.traces if measured.relative else 1.0
    assert_allclose(found.measures[-1], pca / units, atol=1e-9 * problem.traces.max())
    assert (found.count >= 5).all()
    scores = found.measures.max(axis=1)
    if problem.goal.name == "equal":
        scores = np.ptp(found.measures, axis=1)
    elif problem.goal.name == "balanced":
        scores = found.measures.mean(axis=1)
    elif problem.goal.name == "bounds":
        bounds = criterion.bounds
        if isinstance(bounds, dict):
            bounds = [bounds.get(label, np.inf) for label in "abcd"]
        scores = (found.measures - bounds).max(axis=1)
    assert_allclose(found.scores, scores, atol=1e-12)


def test_overlapping_groups(few):
    X, labels = drawn(9, (80, 60, 40, 30))
    people = pd.DataFrame({"sex": np.isin(labels, ["a", "b"]), "old": np.isin(labels, ["a", "c"])})
    fair = FairPCA(2, shrinkage="auto", groups="marginals").fit(X, sensitive_features=people)
    found = fair.cross_fit_
    assert len(found.labels) == 4
    assert_allclose(found.own_loss_in_sample, fair.group_table_.own_loss, atol=1e-9)
    # A marginal group's held-out losses are the mean of those of its parts.
    both = FairPCA(2, shrinkage=np.inf, groups="both").fit_moments(
        GroupMoments.from_rows(X, people, folds=True)
    )
    loss = dict(zip(both.cross_fit_.labels, both.cross_fit_.pca_loss, strict=True))
    n = {(False, False): 30, (False, True): 40, (True, False): 60, (True, True): 80}
    women = (n[True, True] * loss[True, True] + n[True, False] * loss[True, False]) / 140
    assert loss[True, "(all)"] == pytest.approx(women, rel=1e-9)


@pytest.mark.parametrize("d", [60, 400])
def test_many_more_columns_than_rows(few, d):
    rng = np.random.default_rng(10)
    X = rng.normal(size=(90, d)) * np.sqrt(5 / np.arange(1, d + 1))
    labels = np.repeat(list("abc"), (50, 25, 15))
    fair = FairPCA(3, shrinkage="auto").fit(X, sensitive_features=labels)
    assert np.isinf(fair.shrinkage_)
    same_subspace(fair.components_, PCA(3).fit(X).components_)
    # Groups that differ so much that few rows tell.
    X[labels == "c"] = X[labels == "c", ::-1]
    fair = FairPCA(3, shrinkage="auto").fit(X, sensitive_features=labels)
    assert fair.shrinkage_ < np.inf
    assert fair.cross_fit_.disparity.max() < fair.cross_fit_.pca_disparity.max()


@pytest.mark.parametrize(
    ("scores", "errors", "credible", "chosen"),
    [
        ([1.0, 0.9, 0.8, 2.0], [0.0, 0.0, 0.0, 0.0], 0.0, 2),  # held-out rows tell
        ([1.0, 0.9, 0.8, 2.0], [0.11, 0.0, 0.0, 0.1], 0.0, 0),  # they tell no more
        ([1.0, 0.9, 0.8, 2.0], [0.09, 0.06, 0.0, 0.1], 0.0, 1),
        ([1.0, 0.9, 0.8, 0.9], [0.2, 0.2, 0.0, 0.2], np.inf, 3),
        ([1.0, 0.9, 0.8, 0.9], [0.2, 0.2, 0.0, 0.2], 18.0, 2),
        ([1.0, 0.9, 0.8, 0.9], [0.2, 0.2, 0.0, 0.2], 16.0, 1),
        ([1.0, 0.9, 0.8, 0.9], [0.2, 0.2, 0.0, 0.2], 5.0, 0),
        ([-1.0, -1.2, -1.1, -0.9], [0.0, 0.0, 0.0, 0.0], 30.0, 1),
    ],
)
def test_the_nearest_to_the_credible_amount_is_chosen_of_those_that_may_be_best(
    scores, errors, credible, chosen
):
    amounts = (0.0, 10.0, 30.0, np.inf)
    found = cross_fit._choice(np.array(scores), np.array(errors), amounts, credible)
    assert found == chosen


def test_errors_of_scores_are_those_of_the_jackknife(few):
    X, labels = drawn(19, (60, 30, 20), d=4)
    found = FairPCA(2, shrinkage="auto").fit(X, sensitive_features=labels).cross_fit_
    folds, losses = row_folds(X), []
    for fold in range(N_FOLDS):
        center = X[folds != fold].mean(axis=0)
        for n0 in found.candidates:
            fair = FairPCA(2, shrinkage=n0).fit(
                X[folds != fold], sensitive_features=labels[folds != fold]
            )
            left = (X - center) - (X - center) @ fair.components_.T @ fair.components_
            losses.append(np.square(left).sum(axis=1) * (folds == fold))
    losses = np.array(losses).reshape(N_FOLDS, len(found.candidates), len(X))
    scores = []
    for fold in range(N_FOLDS):
        there = losses.sum(axis=0)[:, folds != fold]
        means = [there[:, labels[folds != fold] == name].mean(axis=1) for name in "abc"]
        scores.append((np.array(means).T - found.own_loss).max(axis=1))
    gaps = np.array(scores) - np.array(scores)[:, [found.scores.argmin()]]
    errors = np.sqrt((N_FOLDS - 1) / N_FOLDS * np.square(gaps - gaps.mean(axis=0)).sum(axis=0))
    assert_allclose(found.score_errors, errors, atol=1e-10)
    assert (errors > 0.01).sum() == len(found.candidates) - 1


def test_groups_of_less_than_five_rows_have_no_say():
    X, labels = drawn(15, (60, 40, 4), d=4)
    found = FairPCA(2, shrinkage="auto").fit(X, sensitive_features=labels).cross_fit_
    assert_allclose(found.scores, found.measures[:, :2].max(axis=1))
    assert (found.measures[:, 2] > found.scores).any()


@pytest.mark.parametrize("centering", ["global", "group"])
def test_nobody_loses_anything_where_all_is_kept(few, centering):
    X, labels = drawn(17, (30, 20, 8), d=4)
    grouped_data = prepare_data(X, labels, folds="needed")
    problem = grouped_data.problem(4, centering=centering)
    _, found = chosen_shrinkage("auto", grouped_data, "intersections", problem, ExactSolver())
    for losses in (found.loss, found.pca_loss, found.own_loss, found.own_loss_held_out):
        assert_allclose(losses, 0.0, atol=1e-12)
    assert_allclose(found.measures, 0.0, atol=1e-12)


def test_problems_take_moments_with_folds_as_those_of_their_groups():
    X, labels = drawn(18)
    moments = GroupMoments.from_rows(X, labels, folds=True)
    assert Problem(moments, 2).moments.labels == tuple("abcd")
    with pytest.raises(ValueError, match="call without_folds"):
        moments.overlapping("marginals")


def test_choosing_pca_is_said():
    X, _ = drawn(11, (400,), d=12)
    labels = np.random.default_rng(0).permutation(np.repeat(list("abc"), (360, 25, 15)))
    fair = FairPCA(3, shrinkage="auto").fit(X, sensitive_features=labels)
    assert np.isinf(fair.shrinkage_)
    assert "Ordinary PCA was chosen" in str(fair.cross_fit_)
    assert str(fair.certificate_).startswith("Every group's covariance was replaced")
    same_subspace(fair.components_, PCA(3).fit(X).components_)


def test_one_group_and_rows_that_are_all_the_same():
    X, _ = drawn(12)
    with pytest.warns(UserWarning, match="one group only"):
        assert (
            FairPCA(2, shrinkage="auto").fit(X, sensitive_features=["a"] * len(X)).shrinkage_ == 0
        )
    assert FairPCA(2, shrinkage="auto", groups=None).fit(X).shrinkage_ == 0.0
    same = np.tile(X[:1], (20, 1))
    with pytest.warns(FairnessWarning, match="No rows could be held out"):
        fair = FairPCA(1, shrinkage="auto").fit(same, sensitive_features=["a", "b"] * 10)
    assert np.isinf(fair.shrinkage_)


@pytest.mark.parametrize("wrong", [-1, "automatic", True, np.nan, None])
def test_wrong_amounts_are_refused(wrong):
    X, labels = drawn()
    with pytest.raises(ValueError, match='shrinkage must be "auto" or a number of rows'):
        FairPCA(2, shrinkage=wrong).fit(X, sensitive_features=labels)


def test_moments_without_folds_are_refused():
    X, labels = drawn()
    with pytest.raises(ValueError, match="needs moments by fold: take them with folds=True"):
        FairPCA(2, shrinkage="auto").fit_moments(GroupMoments.from_rows(X, labels))


def test_moments_with_folds_serve_a_plain_fit_and_say_what_lies_beyond():
    X, labels = drawn(13)
    plain = FairPCA(2).fit(X, sensitive_features=labels)
    fair = FairPCA(2).fit_moments(GroupMoments.from_rows(X, labels, folds=True))
    same_subspace(fair.components_, plain.components_)
    assert fair.group_table_.labels == plain.group_table_.labels
    assert_allclose(fair.group_table_.held_out[1], fair.cross_fit_.disparity)
    assert_allclose(
        fair.group_table_["a"]["PCA disparity held out"], fair.cross_fit_.pca_disparity[0]
    )
    assert "fair disp." in str(fair.group_table_)
    assert plain.group_table_.held_out is None
    assert fair.cross_fit_.candidates == (0.0, np.inf)
    assert fair.cross_fit_.shrinkage == 0.0
    again = fair.fit(X, sensitive_features=labels)
    assert not hasattr(again, "cross_fit_")


def test_small_groups_of_adult_gain_nothing_from_their_noise():
    adult = load_adult(as_frame=False, sensitive="race")
    chosen = np.random.default_rng(0).permutation(len(adult.data))[:1500]
    X = (adult.data - adult.data.mean(axis=0)) / adult.data.std(axis=0)
    fair = FairPCA(5, shrinkage="auto").fit(
        X[chosen], sensitive_features=adult.sensitive_features[chosen]
    )
    found = fair.cross_fit_
    assert (found.own_loss_in_sample <= found.own_loss + 1e-9).all()
    assert (found.own_loss <= found.own_loss_held_out + 1e-9).all()


def test_the_largest_population_disparity_is_smaller_where_groups_are_alike():
    plain, auto = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.normal(size=(10, 10)))[0]
        covariance = turn @ np.diag(5.0 / np.arange(1, 11)) @ turn.T
        X = rng.multivariate_normal(np.zeros(10), covariance, size=460)
        labels = np.repeat(list("abc"), (400, 40, 20))
        best = np.linalg.eigvalsh(covariance)[::-1][:3].sum()
        for shrinkage, into in ((0, plain), ("auto", auto)):
            fair = FairPCA(3, shrinkage=shrinkage).fit(X, sensitive_features=labels)
            kept = np.trace(fair.components_ @ covariance @ fair.components_.T)
            into.append(best - kept)
    assert np.mean(auto) < 0.5 * np.mean(plain)


def test_exact_solver_serves_the_shrunk_problem_of_many_groups():
    X, labels = drawn(14, tuple(range(3, 23)), d=5)
    moments = GroupMoments.from_rows(X, labels)
    posed = shrunk_problem(Problem(moments, 2), 50.0)
    certificate = ExactSolver().solve(posed).certificate
    assert certificate.value <= posed.measures(posed.pca_basis).max() + 1e-9
    assert posed.dual_bound(certificate.multipliers) <= certificate.value + 1e-9


def test_models_keep_what_shrinkage_did(few, tmp_path):
    X, labels = drawn(16, (80, 30, 15), d=4)
    for shrinkage in ("auto", 20, np.inf):
        fair = FairPCA(2, shrinkage=shrinkage).fit(X, sensitive_features=labels)
        save_model(fair, tmp_path / "shrunk.fairpca")
        loaded = load_model(tmp_path / "shrunk.fairpca").reduction
        assert loaded.shrinkage == shrinkage
        assert loaded.shrinkage_ == fair.shrinkage_ == loaded.certificate_.shrinkage
        assert str(loaded.certificate_) == str(fair.certificate_)
        assert str(loaded.group_table_) == str(fair.group_table_)
        assert (loaded.group_table_.held_out is None) == (shrinkage != "auto")


def test_one_warning_however_many_dimensions_are_tried(few):
    X = np.random.default_rng(2).normal(size=(12, 200))
    with pytest.warns(FairnessWarning) as caught:
        FairPCA(0.9, shrinkage="auto").fit(X, sensitive_features=["a"] * 8 + ["b"] * 4)
    assert [str(each.message)[:7] for each in caught] == ["Too few"]


def test_solvers_warn_of_the_fit_alone(few):
    class Loud(ExactSolver):
        def solve(self, problem, progress=None):
            warnings.warn("So many rows.", FairnessWarning, stacklevel=1)
            return super().solve(problem)

    X, labels = drawn()
    with pytest.warns(FairnessWarning) as caught:
        FairPCA(2, shrinkage="auto", solver=Loud()).fit(X, sensitive_features=labels)
    assert ["So many rows." in str(each.message) for each in caught].count(True) == 1


def test_any_number_of_rows_is_a_shrinkage():
    X, labels = drawn()
    pca, most = (
        FairPCA(2, shrinkage=n0).fit(X, sensitive_features=labels) for n0 in (np.inf, 1e308)
    )
    assert_allclose(most.group_table_.loss, pca.group_table_.loss, rtol=1e-6)
    with pytest.raises(ValueError, match="a number of rows of at least 0"):
        FairPCA(2, shrinkage=np.array([1.0, 2.0])).fit(X, sensitive_features=labels)

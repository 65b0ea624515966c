"""The noise in the groups' measures, less biased baselines, and losses on held-out rows.

What comes from moments of folds is compared with PCA of the rows themselves, without each fold.
"""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from fairpca import (
    Balanced,
    ExactSolver,
    FairnessWarning,
    FairPCA,
    GroupMoments,
    MinMax,
    Problem,
    SoftMinMax,
    compare,
)
from fairpca import folds as rows_folds
from fairpca.data import prepare_data
from fairpca.folds import MOST_FOLDS, row_folds
from fairpca.generalization import noise as noise_module
from fairpca.generalization.noise import SamplingNoise
from fairpca.measures import MEASURES
from fairpca.model_file import load_model, save_model
from fairpca.sources import read_moments

from devices import import_torch
from same_fit import assert_same_choice
from texts import refused, warned

pytestmark = pytest.mark.untraced

SIZES = (150, 60, 25, 12)


@pytest.fixture
def temperatures(monkeypatch):
    """The temperatures of all fits, in their order."""
    found, debiased = [], SamplingNoise.debiased

    def recorded(noise):
        problem = debiased(noise)
        found.append(problem.criterion.temperature)
        return problem

    monkeypatch.setattr(SamplingNoise, "debiased", recorded)
    return found


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


def same_subspace(one, other, atol=1e-7):
    assert one.shape == other.shape
    assert_allclose(one.T @ one, other.T @ other, atol=atol)


def noise_of(X, columns, r, weights=None, criterion="soft", groups="intersections", **choices):
    """From moments of folds."""
    cells = GroupMoments.from_rows(X, columns, sample_weight=weights, folds=True)
    moments = cells.without_folds().overlapping(groups)
    return SamplingNoise.of_problem(Problem(moments, r, criterion, **choices), cells, groups)


def masks_of(labels, columns):
    """Rows of each group; a group of several columns may be of all values of some of them."""
    columns = np.asarray(columns)
    if columns.ndim == 1:
        return [columns == label for label in labels]
    return [
        np.all([c == v for c, v in zip(columns.T, label, strict=True) if v != "(all)"], axis=0)
        for label in labels
    ]


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


def by_hand(X, masks, r, weights=None, measure="disparity", prices=None, **choices):
    """The attributes of `SamplingNoise` and the temperature, from the rows.

    With weights of the groups, also what is lost with PCA of rows weighted so, the `fair_losses`.
    """
    measured = MEASURES[measure]
    sums, each = choices.get("aggregation") == "sum", choices.get("centering") == "group"
    weights, folds = np.ones(len(X)) if weights is None else weights, row_folds(X)
    k, n_features, everyone = len(masks), X.shape[1], np.ones(len(X), dtype=bool)
    total = np.array([weights[mask].sum() for mask in masks])
    n = total**2 / np.array([np.square(weights[mask]).sum() for mask in masks])
    per = np.ones(k) if sums else total

    def mean(chosen):
        return np.average(X[chosen], axis=0, weights=weights[chosen])

    def rows(chosen, center):
        return (X[chosen] - center) * np.sqrt(weights[chosen])[:, None]

    def all_rows(chosen):
        if not each:
            return rows(chosen, mean(chosen))
        return np.vstack([rows(chosen & mask, mean(chosen & mask)) for mask in masks])

    def lost(held_out, components):
        return np.square(held_out - held_out @ components.T @ components).sum()

    # With all rows.
    pca = np.linalg.svd(rows(everyone, mean(everyone)), full_matrices=False)[2][:r]
    centers = [mean(mask if each else everyone) for mask in masks]
    in_sample, plain, traces, normal = np.zeros((4, k))
    for i, mask in enumerate(masks):
        mine = rows(mask, centers[i])
        own = own_basis(mine, all_rows(everyone), r)
        in_sample[i], plain[i] = lost(mine, own) / per[i], lost(mine, pca) / per[i]
        traces[i] = np.square(mine).sum() / per[i]
        form = np.eye(n_features) - pca.T @ pca
        if measured.baseline == "own":
            form = own.T @ own - pca.T @ pca
        elif measure == "kept_variance":
            form = pca.T @ pca
        product = mine.T @ mine @ form / per[i]
        normal[i] = 2.0 * np.trace(product @ product) / n[i]  # of a quadratic form of normal rows
    units = traces if measured.relative else np.ones(k)
    # Without each fold.
    own_held_out, pca_held_out, fair = np.zeros((3, MOST_FOLDS, k))
    kept, own_kept, shares = np.zeros((3, MOST_FOLDS, k))
    for fold in np.unique(folds):
        train = folds != fold
        without = np.linalg.svd(rows(train, mean(train)), full_matrices=False)[2][:r]
        if prices is not None:
            parts = [(mask & train, price) for mask, price in zip(masks, prices, strict=True)]
            parts = [
                rows(part, mean(part if each else train))
                * np.sqrt(price / (1.0 if sums else weights[part].sum()))
                for part, price in parts
                if part.any()
            ]
            weighted = np.linalg.svd(np.vstack(parts), full_matrices=False)[2][:r]
        for i, mask in enumerate(masks):
            held_out = rows(mask & ~train, centers[i] if each else mean(train))
            part = mask & train
            own = without
            if part.any():
                center = mean(part if each else train)
                own = own_basis(rows(part, center), all_rows(train), r)
            own_held_out[fold, i] = lost(held_out, own) / per[i]
            pca_held_out[fold, i] = lost(held_out, without) / per[i]
            kept[fold, i] = np.square(held_out).sum() / per[i] - pca_held_out[fold, i]
            own_kept[fold, i] = np.square(held_out @ own.T).sum() / per[i]
            shares[fold, i] = weights[mask & ~train].sum() / total[i]
            if prices is not None:
                fair[fold, i] = lost(held_out, weighted) / per[i]
    noisy = -kept if measure == "kept_variance" else pca_held_out
    noisy = noisy - own_held_out if measured.baseline == "own" else noisy
    n_folds = len(np.unique(folds))
    variances = np.square(noisy - shares * noisy.sum(axis=0)).sum(axis=0) * n_folds / (n_folds - 1)
    variances = np.maximum.reduce([variances, (n * variances).mean() / n, normal])
    errors = np.sqrt(variances)
    power = np.where(n >= 5 * n_features, n_folds / (2 * n_folds - 1), 1 / 2)
    gains = (traces - in_sample) ** power * own_kept.sum(axis=0) ** (1 - power)
    own = np.maximum(traces - gains, in_sample)
    # The temperature, at two standard errors.
    measures = {"own": plain - own, "all": plain, "none": plain - traces}[measured.baseline] / units
    prior = units if sums else total * units
    worst = measures.argmax()
    shares = prior / prior.sum()
    excess = measures[worst] - shares @ measures
    enough = 4.0 * errors[worst] / units[worst]
    temperature = max(enough / np.log(1 / shares[worst]), 0.02 * excess)
    return SimpleNamespace(
        own_losses=own,
        pca_losses=pca_held_out.sum(axis=0),
        standard_errors=errors,
        fair_losses=fair.sum(axis=0),
        temperature=temperature,
        in_sample=in_sample,
        traces=traces,
    )


def assert_same_noise(noise, expected, tolerance=1e-11):
    scale = tolerance * expected.traces.max()
    for name in ("own_losses", "pca_losses", "standard_errors"):
        assert_allclose(getattr(noise, name), getattr(expected, name), rtol=0, atol=scale)


@pytest.mark.parametrize("sizes", [(60, 25, 12), (60, 20, 3, 1)])
@pytest.mark.parametrize("measure", MEASURES)
def test_moments_of_folds_give_what_pca_of_rows_gives(sizes, measure):
    X, labels = drawn(1, sizes, d=4)
    noise = noise_of(X, labels, 2, criterion=SoftMinMax(measure))
    expected = by_hand(X, masks_of("abcd"[: len(sizes)], labels), 2, measure=measure)
    assert_same_noise(noise, expected)
    debiased = noise.debiased()
    assert debiased.criterion.temperature == pytest.approx(expected.temperature, rel=1e-9)
    if MEASURES[measure].baseline == "own":
        assert_allclose(
            debiased.affine.constants * debiased.affine.units,
            expected.traces - expected.own_losses,
            rtol=1e-10,
        )
        assert (expected.own_losses[:3] > expected.in_sample[:3]).all()


@pytest.mark.parametrize("n_columns", [30, 3000])
def test_debiased_gains_are_near_those_of_the_population(n_columns):
    """One strong axis, and what it keeps; the arithmetic mean is too large.

    In 3,000 columns fifteen rows find a direction that keeps many times more in the sample.
    """
    strong, found, arithmetic = 40.0, [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(75, n_columns))
        X[:, 0] *= np.sqrt(strong)
        # In the space that the rows span, as in a fit.
        data = prepare_data(X, np.repeat(["a", "b"], [60, 15]), reduce_wide=True, folds="all")
        problem = data.problem(1, criterion="soft")
        noise = SamplingNoise.of_problem(problem, data.cells, "intersections")
        kept = noise.problem.traces - noise.own_losses
        found.append(kept[1])
        held_out = noise.folds.own_kept().sum(axis=0)
        arithmetic.append((noise.problem.own_gains[1] + held_out[1]) / 2)
    assert 0.75 * strong < np.mean(found) < 1.5 * strong
    if n_columns == 3000:
        assert np.mean(arithmetic) > 2 * strong


@pytest.mark.parametrize("choices", [{"aggregation": "sum"}, {"centering": "group"}], ids=str)
def test_other_problems(choices):
    X, labels = drawn(8, (80, 40, 15, 9), d=4)
    noise, prices = noise_of(X, labels, 2, **choices), np.array([0.1, 0.2, 0.3, 0.4])
    expected = by_hand(X, masks_of("abcd", labels), 2, prices=prices, **choices)
    assert_same_noise(noise, expected)
    assert noise.debiased().criterion.temperature == pytest.approx(expected.temperature, rel=1e-9)
    held_out = by_weights(noise, prices)
    assert_allclose(held_out.loss, expected.fair_losses, rtol=1e-9)


@settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.sampled_from([(30, 6, 3, 1), (33, 5, 1, 1), (28, 4, 4, 4)]),
    r=st.integers(1, 3),
    weighted=st.booleans(),
)
def test_so_they_do_however_rows_fall_into_folds(monkeypatch, seed, sizes, r, weighted):
    X, labels = drawn(4, sizes, d=4)
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=40) if weighted else None
    folds, prices = rng.integers(MOST_FOLDS, size=40), rng.dirichlet(np.ones(4))
    fold_of = {row.tobytes(): fold for row, fold in zip(X, folds, strict=True)}

    def chosen_folds(rows, chosen=None):
        rows = rows if chosen is None else rows[chosen]
        return np.array([fold_of[row.tobytes()] for row in rows])

    with monkeypatch.context() as patched:
        patched.setattr(rows_folds, "row_folds", chosen_folds)
        patched.setitem(globals(), "row_folds", chosen_folds)
        noise = noise_of(X, labels, r, weights)
        expected = by_hand(X, masks_of("abcd", labels), r, weights, prices=prices)
        held_out = by_weights(noise, prices)
    assert_same_noise(noise, expected, 1e-9)
    assert_allclose(held_out.loss, expected.fair_losses, rtol=0, atol=1e-9 * expected.traces.max())
    assert_allclose(held_out.pca_loss, noise.pca_losses)
    assert_allclose(held_out.own_loss, noise.own_losses)


def by_weights(noise, weights):
    """The losses on held-out rows by weights alone, however near to ties eigenvalues are."""
    basis = noise.problem.weighted_basis(weights)
    given = SimpleNamespace(certificate=SimpleNamespace(multipliers=weights), basis=basis)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise_module, "_TIED", np.inf)
        return noise.held_out(given)


@pytest.mark.parametrize("measure", ["disparity", "share_lost"])
def test_losses_on_held_out_rows_are_those_of_reweighted_pca(measure):
    X, labels = drawn(3, (90, 40, 20), d=5)
    weights = np.random.default_rng(0).exponential(size=len(X))
    fair = FairPCA(2, criterion=SoftMinMax(measure))
    fair.fit(X, sensitive_features=labels, sample_weight=weights)
    masks = masks_of("abc", labels)
    prices = fair.certificate_.multipliers
    if measure == "share_lost":
        prices = prices / fair.group_table_.variance
    expected = by_hand(X, masks, 2, weights, measure, prices)
    held_out = fair.group_table_.held_out
    assert_allclose(held_out.loss, expected.fair_losses, rtol=1e-9)
    assert_allclose(held_out.pca_loss, expected.pca_losses, rtol=1e-9)
    assert_allclose(held_out.own_loss, expected.own_losses, rtol=1e-9)
    assert_allclose(held_out.disparity, expected.fair_losses - expected.own_losses, atol=1e-9)
    assert_allclose(held_out.pca_disparity, expected.pca_losses - expected.own_losses, atol=1e-9)
    # With all rows the same weights give the subspace itself.
    center = np.average(X, axis=0, weights=weights)
    matrix = sum(
        price * ((X[mask] - center).T * weights[mask]) @ (X[mask] - center) / weights[mask].sum()
        for mask, price in zip(masks, prices, strict=True)
    )
    same_subspace(fair.components_, np.linalg.eigh(matrix)[1][:, -2:].T, 1e-5)


@pytest.mark.parametrize("groups", ["intersections", "both"])
def test_what_all_rows_lose_on_held_out_rows_has_the_weights_of_the_rows(groups):
    X, labels = drawn(3, (90, 40, 20), d=5)
    weights = np.where(labels == "c", 50.0, 1.0)
    columns = np.column_stack([labels, np.arange(len(X)) % 2]) if groups == "both" else labels
    fair = FairPCA(2, groups=groups)
    table = fair.fit(X, sensitive_features=columns, sample_weight=weights).group_table_
    # Those of the first column are all rows, each once.
    whole = [groups != "both" or (one[0] in "abc" and one[1] == "(all)") for one in table.labels]
    share = np.array([weights[labels == one].sum() for one in "abc"])
    lost = [share @ losses[whole] for losses in (table.held_out.pca_loss, table.held_out.loss)]
    percent = 100.0 * np.array(lost) / (share @ table.variance[whole])
    said = re.search(r"all rows together lose ([\d.]+) % and ([\d.]+) %", table.sentences())
    assert [float(one) for one in said.groups()] == pytest.approx(percent, abs=0.051)


@pytest.mark.parametrize(
    "criterion", [MinMax(), Balanced(), SoftMinMax(temperature=0.5), SoftMinMax()], ids=str
)
def test_a_weight_of_three_is_three_equal_rows_but_not_three_people(criterion):
    X, labels = drawn(3, (90, 40, 20), d=5)
    times = np.where(np.arange(len(X)) % 4 == 0, 3, 1)
    rows, groups = np.repeat(X, times, axis=0), np.repeat(labels, times)
    weighted = FairPCA(2, criterion=criterion).fit(
        X, sensitive_features=labels, sample_weight=times
    )
    repeated = FairPCA(2, criterion=criterion).fit(rows, sensitive_features=groups)
    one, other = weighted.group_table_, repeated.group_table_
    assert_allclose(one.variance, other.variance)
    assert_allclose(one.pca_loss, other.pca_loss)
    assert_allclose(one.own_loss, other.own_loss)
    temperatures = weighted.certificate_.temperature, repeated.certificate_.temperature
    if criterion.estimates_noise:
        # The folds are the same, and standard errors are not: of fewer effective rows.
        assert temperatures[0] != pytest.approx(temperatures[1], rel=1e-3)
        assert temperatures[0] == pytest.approx(temperatures[1], rel=0.2)
        assert_allclose(one.held_out.pca_loss, other.held_out.pca_loss)
    else:
        assert temperatures[0] == temperatures[1]
        same_subspace(weighted.components_, repeated.components_, 1e-7)


# --- Ways to give rows --------------------------------------------------------


@pytest.fixture
def gathered(temperatures):
    """Rows of groups, a fit to them, and a check that other fits are the same."""
    X, labels = drawn(4, (80, 40, 15), d=4)
    expected = FairPCA(2).fit(X, sensitive_features=labels)
    (temperature,) = temperatures

    def check(fair):
        assert_allclose(temperatures[-1], temperature, rtol=1e-10)
        assert_same_choice(fair, expected)

    return X, labels, check


def test_the_order_and_the_kind_of_the_table_do_not_matter(gathered):
    X, labels, check = gathered
    fair, order = FairPCA(2), np.random.default_rng(5).permutation(len(X))
    check(fair.fit(X[order], sensitive_features=labels[order]))
    check(fair.fit(np.asfortranarray(X), sensitive_features=labels))
    check(fair.fit(scipy.sparse.csr_matrix(X), sensitive_features=labels))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]).assign(group=labels)
    check(fair.fit(frame, sensitive_features="group"))


def test_moments_and_batches_do_not_matter(gathered):
    X, labels, check = gathered
    fair, order = FairPCA(2), np.random.default_rng(5).permutation(len(X))
    check(fair.fit_moments(GroupMoments.from_rows(X, labels, folds=True)))
    parts = [GroupMoments.from_rows(X[i::3], labels[i::3], folds=True) for i in range(3)]
    check(fair.fit_moments(GroupMoments.merge(parts)))
    batches = np.array_split(order, 4)
    parts = [GroupMoments.from_rows(X[some], labels[some], folds=True) for some in batches]
    check(fair.fit_moments(GroupMoments.merge(parts)))


def test_files_do_not_matter(gathered, tmp_path):
    X, labels, check = gathered
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]).assign(group=labels)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for source in (frame, tmp_path / "rows.parquet", tmp_path / "rows.csv"):
        moments = read_moments(source, sensitive_features="group", folds=True)
        check(FairPCA(2).fit_moments(moments))


def test_rows_on_a_device_do_not_matter(gathered):
    torch = import_torch()
    X, labels, check = gathered
    check(FairPCA(2).fit(torch.from_numpy(X), sensitive_features=labels))


# --- Which rows are held out ----------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_large_groups_are_not_held_out(temperatures):
    X, labels = drawn(6, (3000, 2000), d=4)
    moments = GroupMoments.from_rows(X, labels, folds=True)
    rows = FairPCA(2).fit(X, sensitive_features=labels)
    divided = FairPCA(2).fit_moments(moments)
    plain = FairPCA(2).fit_moments(moments.without_folds())
    for fair in (rows, divided, plain):
        assert fair.group_table_.held_out is None
        same_subspace(fair.components_, rows.components_, 1e-10)
    assert_allclose(temperatures, temperatures[0], rtol=1e-10)
    # The noise is that of normal rows, and baselines are those of all rows.
    assert_allclose(rows.certificate_.measures, rows.group_table_.disparity, atol=1e-9)
    noise = noise_of(X, labels, 2)
    center = X.mean(axis=0)
    for i, mask in enumerate(masks_of("ab", labels)):
        mine = X[mask] - center
        own = np.linalg.svd(mine, full_matrices=False)[2][:2]
        pca = PCA(2).fit(X).components_
        product = mine.T @ mine @ (own.T @ own - pca.T @ pca) / mask.sum()
        error = np.sqrt(2.0 * np.trace(product @ product) / mask.sum())
        assert noise.standard_errors[i] == pytest.approx(error, rel=1e-9)


def test_a_large_group_beside_a_small_one_is_judged_in_all_folds_alike():
    X, labels = drawn(7, (3000, 40), d=4)
    fair = FairPCA(2).fit(X, sensitive_features=labels)
    divided = FairPCA(2).fit_moments(GroupMoments.from_rows(X, labels, folds=True))
    assert_same_choice(divided, fair)
    held_out, folds, small = fair.group_table_.held_out, row_folds(X), labels == "b"
    losses = []
    for fold in np.unique(folds[small]):
        train = ~small | (folds != fold)
        center = X[train].mean(axis=0)
        components = PCA(2).fit(X[train]).components_
        part = X[~small] - center
        left = part - part @ components.T @ components
        losses.append(np.square(left).sum(axis=1).mean())
    assert held_out.pca_loss[0] == pytest.approx(np.mean(losses), rel=1e-9)
    assert held_out.own_loss[0] == pytest.approx(fair.group_table_.own_loss[0], rel=1e-3)


@pytest.mark.parametrize("groups", ["marginals", "both"])
def test_overlapping_groups(groups):
    X, labels = drawn(9, (80, 60, 40, 30), d=4)
    people = np.column_stack(
        [np.where(np.isin(labels, ["a", "b"]), "x", "y"), np.where(labels < "c", "u", "v")]
    )
    people[::7, 1] = "u"
    fair = FairPCA(2, groups=groups).fit(X, sensitive_features=people)
    weights = fair.certificate_.multipliers
    masks = masks_of(fair.group_table_.labels, people)
    assert len(masks) == (4 if groups == "marginals" else 7)
    assert [mask.sum() for mask in masks] == fair.group_table_.count.tolist()
    expected = by_hand(X, masks, 2, prices=weights)
    noise = noise_of(X, people, 2, groups=groups)
    assert_same_noise(noise, expected)
    assert noise.debiased().criterion.temperature == pytest.approx(expected.temperature, rel=1e-9)
    assert_allclose(fair.group_table_.held_out.loss, expected.fair_losses, rtol=1e-9)
    again = FairPCA(2, groups=groups).fit_moments(GroupMoments.from_rows(X, people, folds=True))
    assert_same_choice(again, fair)


# --- Weights --------------------------------------------------------------------


def test_weights_count_by_their_effective_rows():
    X, labels = drawn(2, (60, 25, 12), d=4)
    weights = np.random.default_rng(3).integers(1, 4, len(X)).astype(float)
    noise = noise_of(X, labels, 2, weights)
    assert_same_noise(noise, by_hand(X, masks_of("abc", labels), 2, weights))
    assert_same_noise(noise_of(X, labels, 2, 1e-3 * weights), as_expected(noise))
    # Rows that hardly weigh anything are hardly there.
    some = np.arange(len(X)) % 2 == 0
    half = noise_of(X, labels, 2, np.where(some, 1.0, 1e-9))
    few = by_hand(X[some], masks_of("abc", labels[some]), 2)
    assert_same_noise(half, few, 1e-6)
    assert (half.standard_errors > noise_of(X, labels, 2).standard_errors).all()


def as_expected(noise):
    """A noise as what another has to be."""
    names = ("own_losses", "pca_losses", "standard_errors")
    return SimpleNamespace(
        **{name: getattr(noise, name) for name in names}, traces=noise.problem.traces
    )


def test_a_row_of_weight_zero_is_missing(temperatures):
    X, labels = drawn(2, (60, 25, 12), d=4)
    weights = np.random.default_rng(3).integers(0, 3, len(X)).astype(float)
    some = weights > 0
    given = FairPCA(2).fit(X, sensitive_features=labels, sample_weight=weights)
    left = FairPCA(2).fit(X[some], sensitive_features=labels[some], sample_weight=weights[some])
    assert_same_choice(given, left)
    assert temperatures[0] == pytest.approx(temperatures[1], rel=1e-10)


def test_a_row_that_is_there_twice_is_never_judged_by_its_copy():
    X, labels = drawn(2, (60, 25, 12), d=4)
    once, twice = noise_of(X, labels, 2), noise_of(np.vstack([X, X]), np.append(labels, labels), 2)
    assert_allclose(twice.pca_losses, once.pca_losses, rtol=1e-10)
    # As many rows are weighed against each other in folds, however often they are there.
    assert (twice.standard_errors <= once.standard_errors * (1 + 1e-9)).all()
    assert (twice.standard_errors > once.standard_errors * np.sqrt(0.4999)).all()


# --- Odd tables -----------------------------------------------------------------


def test_many_more_columns_than_rows(temperatures, monkeypatch):
    monkeypatch.setattr(noise_module, "_TIED", np.inf)
    rng, d = np.random.default_rng(10), 400
    X = rng.normal(size=(90, d)) * np.sqrt(5 / np.arange(1, d + 1))
    labels = np.repeat(list("abc"), (50, 25, 15))
    alike = FairPCA(3).fit(X, sensitive_features=labels)
    pca = PCA(3).fit(X).components_
    # Groups that differ so much that few rows tell.
    X[labels == "c"] = X[labels == "c", ::-1]
    apart = FairPCA(3).fit(X, sensitive_features=labels)
    held_out = apart.group_table_.held_out
    assert held_out.disparity.max() < held_out.pca_disparity.max()
    moved = [
        np.linalg.norm(fair.components_.T @ fair.components_ - other.T @ other)
        for fair, other in ((alike, pca), (apart, PCA(3).fit(X).components_))
    ]
    assert moved[0] < 0.5 * moved[1]
    # The rows' own space, in which the search is, gives what all columns give.
    expected = by_hand(X, masks_of("abc", labels), 3, prices=apart.certificate_.multipliers)
    assert temperatures[1] == pytest.approx(expected.temperature, rel=1e-8)
    assert_allclose(held_out.loss, expected.fair_losses, rtol=1e-8)
    assert_allclose(held_out.own_loss, expected.own_losses, rtol=1e-8)


def test_a_constant_column_has_no_component():
    X, labels = drawn(5, (60, 25, 12), d=4)
    X = np.column_stack([X, np.full(len(X), 7.0)])
    noise = noise_of(X, labels, 2)
    assert_same_noise(noise, by_hand(X, masks_of("abc", labels), 2))
    fair = FairPCA(2).fit(X, sensitive_features=labels)
    assert_allclose(fair.components_[:, -1], 0.0, atol=1e-9)


@pytest.mark.filterwarnings("error")
def test_rows_that_are_all_the_same():
    X, _ = drawn(12)
    same = FairPCA(1).fit(np.tile(X[:1], (20, 1)), sensitive_features=["a", "b"] * 10)
    assert np.abs(same.group_table_.loss).max() < 1e-20
    assert same.certificate_.status == "optimal"
    assert same.group_table_.held_out is None
    # Of one group alone.
    X[:40] = X[0]
    fair = FairPCA(2).fit(X, sensitive_features=np.repeat(["a", "b"], [40, len(X) - 40]))
    assert np.isfinite(fair.group_table_.held_out.loss).all()
    assert fair.certificate_.status == "optimal"


def test_one_group_gets_pca(temperatures):
    X, _ = drawn(12)
    with warned(UserWarning, "one group"):
        one = FairPCA(2).fit(X, sensitive_features=["a"] * len(X))
    none = FairPCA(2, groups=None).fit(X)
    for fair in (one, none):
        same_subspace(fair.components_, PCA(2).fit(X).components_)
        assert fair.certificate_.status == "optimal"
    assert temperatures == [np.inf, np.inf]


@pytest.mark.parametrize("centering", ["global", "group"])
def test_nobody_loses_anything_where_all_is_kept(centering):
    X, labels = drawn(17, (30, 20, 8), d=4)
    noise = noise_of(X, labels, 4, centering=centering)
    for losses in (noise.own_losses, noise.pca_losses, noise.standard_errors):
        assert_allclose(losses, 0.0, atol=1e-6)
    debiased = noise.debiased()
    assert debiased.criterion.temperature == np.inf
    held_out = noise.held_out(ExactSolver().solve(debiased))
    assert_allclose(held_out.loss, 0.0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-29, 1e-8, 1e8, 1e29])
@pytest.mark.parametrize("measure", ["disparity", "share_lost", "kept_variance"])
def test_units_of_the_rows_do_not_matter(scale, measure, temperatures):
    X, labels = drawn(3, (60, 25, 12), d=4)
    unit = 2.0 ** round(np.log2(scale))
    found = [
        FairPCA(2, criterion=SoftMinMax(measure)).fit(rows, sensitive_features=labels)
        for rows in (X, X * unit)
    ]
    same_subspace(found[0].components_, found[1].components_, 1e-9)
    square = 1.0 if MEASURES[measure].relative else unit**2
    assert temperatures[1] / square == pytest.approx(temperatures[0], rel=1e-9)


# --- Fits -----------------------------------------------------------------------


def test_the_certificate_is_about_less_biased_baselines_and_the_table_about_the_rows():
    X, labels = drawn()
    fair = FairPCA(2).fit(X, sensitive_features=labels)
    problem, basis = Problem(GroupMoments.from_rows(X, labels), 2), fair.components_.T
    noise = noise_of(X, labels, 2)
    debiased, certificate = noise.debiased(), fair.certificate_
    assert_allclose(certificate.measures, problem.group_losses(basis) - noise.own_losses, atol=1e-9)
    assert debiased.dual_bound(certificate.multipliers) == pytest.approx(certificate.lower_bound)
    assert certificate.value <= debiased.goal.value(debiased.measures(problem.pca_basis))
    assert_allclose(fair.group_table_.loss, problem.group_losses(basis), atol=1e-9)
    assert_allclose(fair.solution_.disparities, problem.disparities(basis), atol=1e-9)
    assert_allclose(fair.group_table_.disparity, problem.disparities(basis), atol=1e-9)
    assert fair.solution_.total_loss == pytest.approx(problem.total_loss(basis))


def test_no_standard_errors_are_the_largest_measure_from_less_biased_baselines():
    X, labels = drawn(1, (60, 25, 12), d=4)
    expected = by_hand(X, masks_of("abc", labels), 2)
    given = expected.traces - expected.own_losses, np.ones(3)
    problem = Problem(GroupMoments.from_rows(X, labels), 2, "minmax", measured_by=given)
    least = ExactSolver().solve(problem)
    fair = FairPCA(2, criterion=SoftMinMax(standard_errors=0)).fit(X, sensitive_features=labels)
    assert fair.certificate_.value == pytest.approx(least.certificate.value, rel=1e-9)
    assert fair.certificate_.goal == "minmax"
    same_subspace(fair.components_, least.basis.T, 1e-6)
    assert fair.group_table_.held_out is not None
    plain = FairPCA(2, criterion="minmax").fit(X, sensitive_features=labels)
    assert np.abs(plain.group_table_.loss - fair.group_table_.loss).max() > 0.01
    # Of large groups the baselines are those of the rows.
    X, labels = drawn(6, (3000, 2000), d=4)
    first, second = (
        FairPCA(2, criterion=criterion).fit(X, sensitive_features=labels)
        for criterion in (SoftMinMax(standard_errors=0), MinMax())
    )
    same_subspace(first.components_, second.components_, 1e-6)


@pytest.mark.parametrize("measure", ["disparity", "share_lost"])
@pytest.mark.parametrize("seed", range(4))
def test_more_standard_errors_leave_less_total_loss(seed, measure):
    X, labels = drawn(seed, (60, 40, 25, 12)[: 2 + seed], d=5, apart=1.0)
    losses = []
    for number in (0, 0.5, 1, 2, 4, 8, np.inf):
        criterion = SoftMinMax(measure, standard_errors=number)
        fair = FairPCA(2, criterion=criterion).fit(X, sensitive_features=labels)
        losses.append(fair.solution_.total_loss)
    assert (np.diff(losses) <= 1e-9 * losses[0]).all()
    assert losses[-1] < losses[0] * 0.9999
    pca = PCA(2).fit(X)
    same_subspace(fair.components_, pca.components_)
    left = X - pca.inverse_transform(pca.transform(X))
    assert losses[-1] == pytest.approx(np.square(left).sum(axis=1).mean(), rel=1e-10)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("budget", [None, 0.01])
@pytest.mark.parametrize("n", [2, 0.8])
def test_everything_that_can_be_asked_for(measure, budget, n):
    X, labels = drawn(8, (80, 40, 15, 9), d=4)
    criterion = SoftMinMax(measure, max_extra_loss=budget)
    fair = FairPCA(n, criterion=criterion).fit(X, sensitive_features=labels)
    found, r = fair.certificate_, fair.n_components_
    expected = by_hand(X, masks_of("abcd", labels), r, measure=measure)
    units = expected.traces if MEASURES[measure].relative else np.ones(4)
    baselines = {"own": expected.own_losses, "all": np.zeros(4), "none": expected.traces}
    loss = fair.group_table_.loss
    assert_allclose(
        found.measures, (loss - baselines[MEASURES[measure].baseline]) / units, atol=1e-9
    )
    prior = fair.group_table_.count * units / (fair.group_table_.count @ units)
    inside = prior @ np.exp((found.measures - found.measures.max()) / expected.temperature)
    value = found.measures.max() + expected.temperature * np.log(inside)
    assert found.value == pytest.approx(value, rel=1e-8, abs=1e-8)
    assert found.lower_bound <= found.value + 1e-12
    if budget is not None:
        pca = Problem(GroupMoments.from_rows(X, labels), r)
        assert fair.solution_.total_loss <= (1 + budget) * pca.total_loss(pca.pca_basis) + 1e-9


def test_the_largest_population_disparity_is_smaller_where_groups_are_alike():
    plain, soft = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.normal(size=(10, 10)))[0]
        covariance = turn @ np.diag(5.0 / np.arange(1, 11)) @ turn.T
        X = rng.multivariate_normal(np.zeros(10), covariance, size=460)
        labels = np.repeat(list("abc"), (400, 40, 20))
        best = np.linalg.eigvalsh(covariance)[::-1][:3].sum()
        for criterion, into in (("minmax", plain), ("soft", soft)):
            fair = FairPCA(3, criterion=criterion).fit(X, sensitive_features=labels)
            kept = np.trace(fair.components_ @ covariance @ fair.components_.T)
            into.append(best - kept)
    assert np.mean(soft) < 0.5 * np.mean(plain)


def test_many_small_groups():
    X, labels = drawn(14, tuple(range(3, 23)), d=5)
    debiased = noise_of(X, labels, 2).debiased()
    certificate = ExactSolver().solve(debiased).certificate
    assert certificate.value <= debiased.goal.value(debiased.measures(debiased.pca_basis)) + 1e-12
    assert debiased.dual_bound(certificate.multipliers) <= certificate.value


def test_problems_take_moments_with_folds_as_those_of_their_groups():
    X, labels = drawn(18)
    moments = GroupMoments.from_rows(X, labels, folds=True)
    problem, plain = Problem(moments, 2), Problem(GroupMoments.from_rows(X, labels), 2)
    assert problem.moments.labels == tuple("abcd")
    assert_allclose(problem.matrices, plain.matrices, atol=1e-12)
    with refused(ValueError, "without_folds"):
        moments.overlapping("marginals")


def test_moments_with_folds_serve_other_criteria():
    X, labels = drawn(13)
    plain = FairPCA(2, criterion="minmax").fit(X, sensitive_features=labels)
    fair = FairPCA(2, criterion="minmax")
    fair.fit_moments(GroupMoments.from_rows(X, labels, folds=True))
    same_subspace(fair.components_, plain.components_)
    assert fair.group_table_.labels == plain.group_table_.labels
    assert fair.group_table_.held_out is None
    fair.set_params(criterion="soft").fit(X, sensitive_features=labels)
    assert fair.group_table_.held_out is not None
    fair.set_params(criterion="minmax").fit(X, sensitive_features=labels)
    assert fair.group_table_.held_out is None


def test_moments_without_folds_are_refused():
    X, labels = drawn()
    moments = GroupMoments.from_rows(X, labels)
    with refused(ValueError, "moments by fold", "folds=True"):
        FairPCA(2).fit_moments(moments)
    problem = Problem(moments, 2, "soft")
    with refused(ValueError, "moments by fold"):
        SamplingNoise.of_problem(problem, None, "intersections")


@pytest.mark.parametrize("criterion", ["soft", SoftMinMax("share_lost", 1.0, 0.05), "minmax"])
def test_models_keep_what_was_held_out(criterion, tmp_path):
    X, labels = drawn(16, (80, 30, 15), d=4)
    fair = FairPCA(2, criterion=criterion).fit(X, sensitive_features=labels)
    save_model(fair, tmp_path / "soft.fairpca")
    loaded = load_model(tmp_path / "soft.fairpca").reduction
    assert repr(loaded.criterion) == repr(fair.criterion)
    assert str(loaded.certificate_) == str(fair.certificate_)
    assert str(loaded.group_table_) == str(fair.group_table_)
    found, expected = loaded.group_table_.held_out, fair.group_table_.held_out
    assert (expected is None) == (criterion == "minmax")
    if expected is not None:
        for name in ("pca_loss", "loss", "own_loss", "disparity"):
            assert np.array_equal(getattr(found, name), getattr(expected, name))
        numbers = loaded.group_table_["a"]
        assert numbers["fair loss held out"] == expected.loss[0]


def test_one_warning_however_many_dimensions_are_tried(temperatures):
    X = np.random.default_rng(2).normal(size=(12, 200))
    with pytest.warns(FairnessWarning) as caught:
        FairPCA(0.9).fit(X, sensitive_features=["a"] * 8 + ["b"] * 4)
    assert [str(each.message)[:7] for each in caught] == ["Too few"]
    assert len(temperatures) > 1


@pytest.mark.parametrize(("seed", "r"), [(1, 3), (1, 4), (5, 4)])
def test_held_out_losses_are_right_where_eigenvalues_are_nearly_tied(seed, r):
    """There weights alone do not determine a subspace; `compare` fits each fold by itself."""
    rng, sizes = np.random.default_rng(seed), [9000, 900, 300]
    spreads = [
        [3, 2.5, 2, 1, 1, 1, 1, 1],
        [1, 1, 1, 3, 2.5, 2, 1, 1],
        [2, 1, 1, 2, 1, 1, 2, 1],
    ]
    X = np.vstack([rng.normal(size=(n, 8)) * s for n, s in zip(sizes, spreads, strict=True)])
    groups = np.repeat(["north", "east", "south"], sizes)
    table = FairPCA(r).fit(X, sensitive_features=groups).group_table_
    compared = compare(X, sensitive_features=groups, n_components=r)
    fair = compared.share_lost.value[compared.methods.index("fair PCA")]
    np.testing.assert_allclose(table.share_of(table.held_out.loss), fair, atol=0.015)

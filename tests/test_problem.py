"""Problem: losses and disparities against raw rows, and bounds that no subspace may break."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import AtMost, Equal, GroupMoments, MinMax, Problem

from texts import refused

LOSSES = ["mean", "sum"]
CENTERINGS = ["global", "group"]
LABELS = ("a", "b", "c")


class Rows:
    """Raw rows in three groups with different shapes and means, and weights or none."""

    def __init__(self, weighted, d=5, n=90, seed=0):
        rng = np.random.default_rng(seed)
        self.groups = rng.choice(LABELS, size=n, p=[0.6, 0.3, 0.1])
        self.X = rng.normal(size=(n, d))
        for label in LABELS:
            members = self.groups == label
            mix = rng.normal(size=(d, d)) * rng.uniform(0.2, 3.0, d)
            self.X[members] = self.X[members] @ mix + rng.normal(size=d)
        self.weights = rng.uniform(0.1, 3.0, n) if weighted else None

    def problem(self, r=2, **options):
        moments = GroupMoments.from_rows(self.X, self.groups, sample_weight=self.weights)
        return Problem(moments, r, **options)

    def centred(self, centering):
        """Rows and weights of each group, the rows minus their centre."""
        weights = np.ones(len(self.X)) if self.weights is None else self.weights
        center = np.average(self.X, axis=0, weights=weights)
        for label in LABELS:
            rows, w = self.X[self.groups == label], weights[self.groups == label]
            own = np.average(rows, axis=0, weights=w)
            yield rows - (center if centering == "global" else own), w

    def losses(self, basis, loss, centering):
        """Loss of each group, by projecting its rows."""
        found = []
        for rows, w in self.centred(centering):
            error = np.square(rows - rows @ basis @ basis.T).sum(axis=1)
            found.append(w @ error if loss == "sum" else np.average(error, weights=w))
        return np.array(found)

    def own_losses(self, r, loss, centering):
        """Loss of each group in its own best subspace, from the singular values of its rows."""
        found = []
        for rows, w in self.centred(centering):
            tail = np.linalg.svd(rows * np.sqrt(w)[:, None], compute_uv=False)[r:]
            found.append((tail**2).sum() / (1.0 if loss == "sum" else w.sum()))
        return np.array(found)


def random_bases(count, d, r, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(count, d, r)))[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centering", CENTERINGS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("r", [1, 2, 4, 5])
def test_losses_and_disparities_match_raw_rows(r, loss, centering, weighted):
    data = Rows(weighted)
    problem = data.problem(r, aggregation=loss, centering=centering)
    own = data.own_losses(r, loss, centering)
    scale = 1e-11 * problem.scale
    np.testing.assert_allclose(problem.own_losses, own, atol=scale)
    for basis in random_bases(5, 5, r):
        losses = data.losses(basis, loss, centering)
        np.testing.assert_allclose(problem.group_losses(basis), losses, atol=scale)
        np.testing.assert_allclose(problem.disparities(basis), losses - own, atol=scale)
        assert (problem.disparities(basis) >= -scale).all()
        assert problem.spread(basis) == pytest.approx(np.ptp(losses - own), abs=scale)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centering", CENTERINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_total_loss_is_the_weighted_sum_of_the_losses(loss, centering, weighted):
    data = Rows(weighted)
    problem = data.problem(aggregation=loss, centering=centering)
    w = np.ones(90) if data.weights is None else data.weights
    for basis in random_bases(5, 5, 2):
        losses = data.losses(basis, loss, centering)
        shares = np.array([w[data.groups == label].sum() for label in LABELS]) / w.sum()
        expected = losses.sum() if loss == "sum" else shares @ losses
        assert problem.total_loss(basis) == pytest.approx(expected, rel=1e-11)
        assert problem.weights @ problem.group_losses(basis) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("r", [1, 2, 3])
def test_own_losses_are_those_of_scikit_learns_pca_on_the_group(r):
    data = Rows(weighted=False)
    problem = data.problem(r, centering="group")
    for i, label in enumerate(LABELS):
        rows = data.X[data.groups == label]
        pca = PCA(r).fit(rows)
        error = np.square(rows - pca.inverse_transform(pca.transform(rows))).sum(axis=1).mean()
        assert problem.own_losses[i] == pytest.approx(error, rel=1e-10)
        basis = problem.own_subspaces[i]
        np.testing.assert_allclose(basis @ basis.T, pca.components_.T @ pca.components_, atol=1e-10)


@pytest.mark.parametrize("centering", CENTERINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_random_subspace_loses_less_than_the_least_loss_basis(loss, centering):
    problem = Rows(weighted=True).problem(aggregation=loss, centering=centering)
    least = problem.total_loss(problem.least_loss_basis)
    assert all(problem.total_loss(basis) >= least for basis in random_bases(500, 5, 2))
    pca = problem.total_loss(problem.pca_basis)
    if centering == "global":
        assert pca == least
    else:  # PCA measures rows from the mean of all of them
        assert pca > least + 1e-3 * problem.scale


def test_problems_that_differ_in_tolerance_share_what_was_computed():
    problem = Rows(weighted=True).problem()
    gains, vectors = problem.own_gains, problem.total_eigenpairs[1]
    other = problem.with_criterion(Equal(0.5))
    assert (problem.goal.tolerance, other.goal.tolerance) == (0.0, 0.5)
    assert (problem.goal.name, other.goal.name) == ("minmax", "equal")
    assert other.own_gains is gains
    assert other.total_eigenpairs[1] is vectors
    # Another choice is another problem.
    centred = replace(other, centering="group")
    assert centred.goal.tolerance == 0.5
    assert np.abs(centred.own_gains - gains).max() > 1e-3 * problem.scale


def test_pca_basis_is_that_of_scikit_learn():
    data = Rows(weighted=False)
    basis = data.problem(2).pca_basis
    components = PCA(2).fit(data.X).components_
    np.testing.assert_allclose(basis @ basis.T, components.T @ components, atol=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 0}, "n_components 5, 0"),
        ({"n_components": 6}, "n_components 5, 6"),
        ({"n_components": 1.5}, "n_components"),
        ({"criterion": "fair"}, "criterion"),
        ({"criterion": MinMax}, "criterion instance MinMax"),
        ({"criterion": 3}, "criterion"),
        ({"aggregation": "max"}, "aggregation 'mean' 'sum' 'max'"),
        ({"centering": "none"}, "centering 'global' 'group' 'none'"),
        ({"criterion": Equal(-0.1)}, "tolerance -0.1"),
        ({"criterion": Equal(np.nan)}, "tolerance nan"),
        ({"criterion": Equal(np.inf)}, "tolerance inf"),
        ({"criterion": MinMax("gain")}, "measure 'disparity' 'gain'"),
        ({"criterion": AtMost(-1.0)}, "bounds"),
        ({"criterion": AtMost({"z": 1.0})}, "bounds 'z'"),
        (
            {"criterion": MinMax(max_extra_loss=-0.1)},
            "max_extra_loss -0.1",
        ),
        (
            {"criterion": MinMax(max_extra_loss=True)},
            "max_extra_loss True",
        ),
    ],
)
def test_wrong_choices(options, words):
    moments = Rows(weighted=False).problem().moments
    with refused(ValueError, *words.split()):
        Problem(**{"moments": moments, "n_components": 2, **options})


# --- Bounds -------------------------------------------------------------------


def total_losses_and_disparities(data, bases, loss, centering):
    """For each basis, straight from second moments of the raw rows."""
    r = bases.shape[2]
    matrices, losses = [], []
    for rows, w in data.centred(centering):
        size = 1.0 if loss == "sum" else w.sum()
        matrices.append((rows * w[:, None]).T @ rows / size)
    matrices = np.array(matrices)
    kept = np.einsum("kij,nia,nja->nk", matrices, bases, bases, optimize=True)
    losses = np.trace(matrices, axis1=1, axis2=2) - kept
    w = np.ones(90) if data.weights is None else data.weights
    shares = np.array([w[data.groups == label].sum() for label in LABELS]) / w.sum()
    total = losses.sum(axis=1) if loss == "sum" else losses @ shares
    return total, losses - data.own_losses(r, loss, centering), matrices, shares


@pytest.mark.parametrize(
    ("loss", "centering", "weighted"), [("mean", "global", False), ("sum", "group", True)]
)
def test_dual_bounds_hold_for_ten_thousand_random_pairs(loss, centering, weighted):
    data = Rows(weighted)
    problem = data.problem(2, criterion="equal", aggregation=loss, centering=centering)
    bases = random_bases(10_000, 5, 2)
    total, disparities, _, _ = total_losses_and_disparities(data, bases, loss, centering)
    rng = np.random.default_rng(1)
    multipliers = rng.normal(size=(10_000, 3)) * 10.0 ** rng.uniform(-3, 1, size=(10_000, 1))
    multipliers -= multipliers.mean(axis=1, keepdims=True)
    bounds = np.array([problem.dual_bound(nu) for nu in multipliers])
    assert (total + (multipliers * disparities).sum(axis=1) >= bounds).all()
    # Whatever the multipliers, no subspace as unequal as this one can lose less than the bound.
    spreads = np.ptp(disparities, axis=1)
    for i in range(0, 10_000, 10):
        assert total[i] >= problem.dual_bound(multipliers[i], spreads[i])
    least_spread = np.array([problem.violation_bound(nu) for nu in multipliers])
    assert (spreads >= least_spread).all()
    assert problem.violation_bound(np.zeros(3)) == 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_minmax_bounds_hold_for_ten_thousand_random_pairs(loss):
    data = Rows(weighted=True)
    problem = data.problem(2, aggregation=loss, criterion="minmax")
    bases = random_bases(10_000, 5, 2)
    _, disparities, _, _ = total_losses_and_disparities(data, bases, loss, "global")
    weights = np.random.default_rng(1).dirichlet([0.5] * 3, size=10_000)
    bounds = np.array([problem.dual_bound(w) for w in weights])
    weighted = (weights * disparities).sum(axis=1)
    assert (weighted >= bounds).all()
    assert (disparities.max(axis=1) >= bounds).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("criterion", ["equal", "minmax"])
def test_bounds_are_attained_by_the_leading_eigenvectors(loss, criterion):
    data = Rows(weighted=True)
    problem = data.problem(2, aggregation=loss, criterion=criterion)
    rng = np.random.default_rng(2)
    for _ in range(50):
        nu = rng.normal(size=3)
        nu -= nu.mean()
        w = rng.dirichlet([1.0] * 3)
        _, _, matrices, shares = total_losses_and_disparities(
            data, np.eye(5)[None, :, :2], loss, "global"
        )
        base = np.ones(3) if loss == "sum" else shares
        combined = np.einsum("k,kij->ij", w if criterion == "minmax" else base + nu, matrices)
        basis = np.linalg.eigh(combined)[1][:, -2:]
        total, disparities, _, _ = total_losses_and_disparities(data, basis[None], loss, "global")
        if criterion == "minmax":
            reached, bound = w @ disparities[0], problem.dual_bound(w)
        else:
            reached, bound = total[0] + nu @ disparities[0], problem.dual_bound(nu)
        assert reached == pytest.approx(bound, abs=1e-12 * problem.scale * 3)


def test_violation_bound_is_attained_where_two_groups_cannot_be_nearer():
    # In one dimension of two, with E_b - E_a = 2 - 4 sin^2, multipliers (-1, 1) prove -2.
    X = np.array([[2.0, 0], [-2, 0], [0, 2], [0, -2], [0, 2.0], [0, -2]])
    problem = Problem(GroupMoments.from_rows(X, list("aabbbb")), 1, criterion="equal")
    angles = np.linspace(0, np.pi, 1001)
    bases = np.stack([np.cos(angles), np.sin(angles)], axis=1)[:, :, None]
    differences = np.array([np.diff(problem.disparities(basis))[0] for basis in bases])
    bound = problem.violation_bound(np.array([-3.0, 3.0]))
    assert bound == pytest.approx(differences.min(), abs=1e-12)
    assert (differences >= bound).all()


def test_tolerance_lowers_the_bound_by_its_price():
    problem = Rows(weighted=False).problem(2, criterion="equal")
    nu = np.array([0.4, -0.1, -0.3])
    exact, within = problem.dual_bound(nu), problem.with_criterion(Equal(0.25))
    assert within.dual_bound(nu) == pytest.approx(exact - 0.25 * 0.4, abs=1e-12)
    # What is missed beyond the tolerance has the same price.
    assert within.dual_bound(nu, 0.1) == pytest.approx(exact - 0.35 * 0.4, abs=1e-12)

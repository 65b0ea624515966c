"""The shrinkage that differences between groups and between folds suggest."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fairpca import FairPCA, GroupMoments, Problem
from fairpca._linalg.device import DeviceStack, inner_products
from fairpca.folds import N_FOLDS, row_folds
from fairpca.generalization import cross_fit as credibility
from fairpca.generalization.cross_fit import FoldProblems, credible_shrinkage

from devices import import_torch

pytestmark = pytest.mark.untraced


def credible(X, labels, **choices):
    cells = GroupMoments.from_rows(X, labels, folds=True)
    problem = Problem(cells.without_folds(), 1, **choices)
    return credible_shrinkage(FoldProblems(cells, "intersections", problem), problem)


def by_hand(X, labels, centering, folds):
    """The same from rows: σ², and the matrices' distances beyond what it explains."""

    def variances(rows):
        names = np.unique(labels[rows])
        chance, means, n = [], [], []
        for name in names:
            mine = rows & (labels == name)
            center = (X[labels == name] if centering == "group" else X).mean(axis=0)
            squares = (X - center)[:, :, None] * (X - center)[:, None, :]
            means.append(squares[mine].mean(axis=0))
            n.append(mine.sum())
            parts = [mine & (folds == fold) for fold in set(folds[mine].tolist())]
            apart = [p.sum() * np.square(squares[p].mean(axis=0) - means[-1]).sum() for p in parts]
            chance.append(sum(apart) / (len(parts) - 1))
        n, means = np.array(n), np.array(means)
        pooled = np.tensordot(n / n.sum(), means, 1)
        between = n @ np.square(means - pooled).sum(axis=(1, 2))
        between -= (1 - n / n.sum()) @ chance
        return np.median(chance), between / (n.sum() - (n**2).sum() / n.sum())

    chance, apart = variances(np.ones(len(X), dtype=bool))
    without = [variances(folds != fold)[1] for fold in range(N_FOLDS)]
    apart -= np.std(without) * np.sqrt(N_FOLDS - 1)
    return credibility._RESERVE * chance / apart if apart > 0 else np.inf


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8, 1e100])
@pytest.mark.parametrize("centering", ["global", "group"])
def test_it_is_what_rows_give(centering, scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(140, 3)) * [3, 2, 1] + [5, 0, 0]
    labels = np.repeat(list("abc"), (80, 40, 20))
    X[labels == "b"] = X[labels == "b"][:, [1, 0, 2]]
    X[labels == "c"] *= 1.5
    expected = by_hand(X, labels, centering, row_folds(X * scale))
    assert 0.05 < expected < 50
    assert credible(X * scale, labels, centering=centering) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("known", [8.0, 20.0])
def test_it_is_the_ratio_of_known_variances(known, monkeypatch):
    # One column: the matrix of a row is its square. With x = s·z, z normal, the variance of x² is
    # 2 s⁴ in a population, and groups' s² are drawn with a variance that makes the ratio known.
    monkeypatch.setattr(credibility, "_RESERVE", 1.0)
    rng, found = np.random.default_rng(1), []
    for _ in range(7):
        squares = np.maximum(5.0 + np.sqrt(50.0 / known) * rng.normal(size=100), 0.01)
        labels = np.repeat(np.arange(100), 60).astype(str)
        X = np.sqrt(squares)[labels.astype(int)] * rng.normal(size=6000)
        found.append(credible(np.column_stack([X, np.zeros(6000)]), labels, centering="group"))
    assert np.median(found) == pytest.approx(known, rel=0.35)


def test_groups_that_are_alike_are_not_told_apart_and_others_are():
    rng, alike, different = np.random.default_rng(2), [], []
    labels = np.repeat(list("abcd"), (500, 100, 40, 20))
    for _ in range(20):
        X = rng.normal(size=(660, 8)) * np.sqrt(5 / np.arange(1, 9))
        alike.append(credible(X, labels))
        X[labels == "c"] = X[labels == "c"][:, ::-1]
        different.append(credible(X, labels))
    assert np.mean(np.array(alike) > 100) > 0.8
    assert np.mean(np.array(different) < 10) > 0.8


def test_inner_products_of_matrices_wherever_they_are():
    rng = np.random.default_rng(3)
    scatter, offsets, weight = (
        rng.normal(size=(5, 4, 4)),
        rng.normal(size=(5, 4)),
        rng.uniform(size=5),
    )
    scatter = scatter @ scatter.transpose(0, 2, 1)
    matrices = scatter / weight[:, None, None] + offsets[:, :, None] * offsets[:, None, :]
    expected = np.einsum("iab,jab->ij", matrices, matrices)
    assert_allclose(inner_products(scatter, offsets, weight), expected, rtol=1e-12)
    there = DeviceStack(import_torch().from_numpy(scatter))
    assert_allclose(inner_products(there, offsets, weight), expected, rtol=1e-12)


@pytest.mark.parametrize("sizes", [(40, 1), (40, 2, 1), (6, 5), (1, 1, 1), (50, 1, 1, 1, 1)])
def test_groups_of_a_few_rows(sizes):
    X = np.random.default_rng(4).normal(size=(sum(sizes), 3))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    assert credible(X, labels) > 0.0
    FairPCA(1, shrinkage="auto").fit(X, sensitive_features=labels)

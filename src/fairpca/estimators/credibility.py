"""How much the rows of groups say of their populations: the shrinkage that this suggests.

Matrices of groups differ because their populations do, and because rows are drawn at random. What
chance contributes is seen from the folds of a group, which differ by chance alone; the rest is due
to the populations. With σ² the variance of the matrix of one row, and τ² that of the populations'
matrices, the shrunk matrices (n_i A_i + n0 A) / (n_i + n0) are nearest to those of the populations
with n0 = σ²/τ². Bühlmann and Straub's credibility (1970) is this for numbers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.device import diagonals, inner_products
from fairpca._linalg.types import Array
from fairpca.estimators.fold_problems import FoldProblems
from fairpca.problem import Problem

_RESERVE = 0.05
"""Part of σ²/τ² that is taken: for the worst-off group, whose matrix is far from the others', what
too much shrinkage hides weighs more than what too little of it leaves to chance."""


def credible_shrinkage(folds: FoldProblems, problem: Problem) -> float:
    """The shrinkage, in rows, that differences between groups and between folds suggest.

    Infinity where groups differ by no more than chance may make them.
    """
    moments, group_of, fold_of = folds.parts()
    center = moments.total_mean
    if problem.centering == "group":
        center = problem.moments.mean[group_of]
    offsets = moments.mean - center
    size = (
        diagonals(moments.scatter).sum(axis=1) / moments.weight + (offsets**2).sum(axis=1)
    ).max()
    if not size > 0.0:
        return np.inf
    # Over their size, so that no number is too large or too small for its square.
    products = inner_products(moments.scatter, offsets / np.sqrt(size), moments.weight * size)
    parts = _Parts(products, moments.weight, moments.effective_count, group_of, fold_of >= 0)
    by_chance, apart = parts.variances()
    without = [parts[fold_of != fold].variances()[1] for fold in folds.numbers]
    without = [variance for variance in without if np.isfinite(variance)]
    if len(without) > 1:
        # The jackknife's standard error: only what exceeds it counts as a difference.
        apart -= np.sqrt((len(without) - 1) * np.var(without))
    return float(_RESERVE * by_chance / apart) if apart > 0.0 else np.inf


@dataclass(frozen=True)
class _Parts:
    """Parts of groups: the inner products of their matrices, and what each is."""

    products: Array
    weight: Array
    n: Array
    group: NDArray[np.int64]
    folded: NDArray[np.bool_]

    def __getitem__(self, kept: NDArray[np.bool_]) -> "_Parts":
        products = self.products[kept][:, kept]
        return _Parts(
            products, self.weight[kept], self.n[kept], self.group[kept], self.folded[kept]
        )

    def variances(self) -> tuple[float, float]:
        """That of one row's matrix about its population's, and that of the populations' matrices.

        NaN where there are not two folds of a group, or two groups.
        """
        groups = np.unique(self.group)
        members = self.group == groups[:, None]
        known = [(i, here) for i, here in enumerate(members & self.folded) if here.sum() > 1]
        if not known or len(groups) < 2:
            return np.nan, np.nan
        by_chance = np.array([self._variance_of_folds(here) for _, here in known])
        chance = np.full(len(groups), by_chance.mean())
        chance[[i for i, _ in known]] = by_chance
        means, n = self._means(members), members @ self.n
        share = n / n.sum()
        between = n @ self._squared(means - share @ means) - (1.0 - share) @ chance
        return float(np.median(by_chance)), float(between / (n.sum() * (1.0 - share @ share)))

    def _variance_of_folds(self, here: NDArray[np.bool_]) -> float:
        distances = self._squared(np.eye(len(here))[here] - self._means(here[None]))
        return float(self.n[here] @ distances / (here.sum() - 1))

    def _means(self, members: NDArray[np.bool_]) -> Array:
        """The combinations of parts that are the mean matrices of these; (groups, parts)."""
        weights = members * self.weight
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def _squared(self, combinations: Array) -> Array:
        """The sums of the squared entries of combinations of the parts' matrices."""
        squares = (combinations @ self.products * combinations).sum(axis=1)
        return np.asarray(np.maximum(squares, 0.0))

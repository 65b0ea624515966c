"""Sums of the errors of held-out rows over folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca._rows.checks import check_rows
from fairpca.estimators.fair_pca import FairPCA
from fairpca.metrics._scored import ScoredGroups, centred_blocks, row_errors

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Rows to fit to, and rows that are held out."""


_MANY_ROWS = 5
"""Rows for each column from which on a group's own PCA errs as it does with very many."""


class HeldOutSums:
    """Errors of rows over the folds in which they are held out.

    Parameters
    ----------
    groups : ScoredGroups
        The groups of all n rows.
    held_out : ScoredGroups
        The same with those rows that are ever held out.
    dimensions : sequence of m int
        Numbers of dimensions.
    own : bool
        Whether the groups' own PCAs are judged too.
    """

    def __init__(
        self, groups: ScoredGroups, held_out: ScoredGroups, dimensions: Sequence[int], *, own: bool
    ) -> None:
        self._groups, self._held_out, self._dimensions = groups, held_out, dimensions
        n = groups.weights.shape[1]
        self._places = np.array(dimensions) - 1
        self._errors = np.zeros((2, len(dimensions), n))  # of the reduction, and of ordinary PCA
        self._distances = np.zeros(n)
        counts = held_out.count.tolist() if own else []
        self._own = [np.zeros((len(dimensions), count)) for count in counts]
        self._fitted = np.zeros((len(counts), len(dimensions)))
        self._shares = np.full(len(counts), 0.5)

    def add(
        self, reduction: Any, rows: tuple[Any, Any], split: Split, known: dict[str, Any]
    ) -> None:
        """Fit copies of a reduction to the training rows, and judge them by those held out."""
        train, test = rows
        weights = {name: known[name] for name in known if name == "sample_weight"}
        pca = FairPCA(max(self._dimensions), groups=None).fit(train, **weights)
        there = check_rows(test)
        distances, errors = self._left(there, pca.mean_, pca.components_)
        self._distances[split[1]] += distances
        self._errors[1][:, split[1]] += errors
        for i, r in enumerate(self._dimensions):
            copy = clone(reduction).set_params(n_components=r)
            copy.fit(train, **{k: known[k] for k in known if has_fit_parameter(copy, k)})
            self._errors[0][i, split[1]] += row_errors(copy, test)[0]
        if self._own:
            self._add_own(check_rows(train), there, pca.mean_, split)

    def _add_own(self, train: Any, test: Any, center: Array, split: Split) -> None:
        """The same for each group's own PCA, from the mean of all rows."""
        for i, own in enumerate(self._own):
            members, weights = self._groups.members(i)
            fit, fit_at = _places(split[0], members)
            new, new_at = _places(split[1], self._held_out.members(i)[0])
            if len(fit) == 0:
                raise ValueError(
                    f"The group {self._groups.texts[i]!r} has no training rows in a fold, so its "
                    "own PCA is not known there: take fewer folds, or measure='loss'."
                )
            if len(new):
                axes = self._own_axes(train[fit], weights[fit_at], center)
                own[:, new_at] += self._left(test[new], center, axes)[1]

    def add_fitted_own(self, rows: Any, sample_weight: Array | None, part: float) -> None:
        """What groups lose with their own PCAs of all rows; `part` of them trains in a fold.

        That is too little, by about a constant over the rows of the group, and what is lost when
        held out too much, by that constant over the rows that train: weights of 1 and `part` make
        up for both. With few rows for the columns the second is less than that, and the mean of
        both is better.
        """
        rows = check_rows(rows)
        portions = np.ones(rows.shape[0]) if sample_weight is None else sample_weight
        center = portions @ rows / portions.sum()
        for i in range(len(self._own)):
            members, weights = self._groups.members(i)
            axes = self._own_axes(rows[members], weights, center)
            errors = self._left(rows[members], center, axes)[1]
            self._fitted[i] = errors @ weights / weights.sum()
            if len(members) >= _MANY_ROWS * rows.shape[1]:
                self._shares[i] = 1.0 / (1.0 + part)

    def means(self, times: NDArray[np.int64]) -> tuple[Array, Array, list[Array]]:
        """Errors, squared distances from the mean, and errors with the own PCA of each group.

        The last are between those held out and the mean of those of fitted rows.
        """
        own = []
        for i, held_out in enumerate(self._own):
            members, _ = self._held_out.members(i)
            share, fitted = self._shares[i], self._fitted[i][:, None]
            own.append(share * fitted + (1.0 - share) * held_out / times[members])
        return self._errors / times, self._distances / times, own

    def _own_axes(self, rows: Any, weights: Array, center: Array) -> Array:
        """The leading axes of rows about a centre, as many as there are dimensions to try."""
        n, d = rows.shape
        most = max(self._dimensions)
        roots = np.sqrt(weights)[:, None]
        if n <= d:
            ((_, block),) = centred_blocks(rows, center, whole=True)
            return np.linalg.svd(block * roots, full_matrices=False)[2][:most]
        matrix = np.zeros((d, d))
        for part, block in centred_blocks(rows, center):
            block *= roots[part]
            matrix += block.T @ block
        return np.asarray(leading_eigenpairs(matrix, most)[1].T)

    def _left(self, rows: Any, center: Array, axes: Array) -> tuple[Array, Array]:
        """Squared distances of rows from a centre, and what the first axes leave of them; (m, n).

        There can be fewer axes than dimensions: the others are of no use to the rows they are of.
        """
        distances, places = np.empty(rows.shape[0]), np.minimum(self._places, len(axes) - 1)
        left = np.empty((len(places), rows.shape[0]))
        for part, block in centred_blocks(rows, center):
            distances[part] = np.square(block).sum(axis=1)
            kept = np.cumsum(np.square(block @ axes.T), axis=1)
            left[:, part] = np.maximum(distances[part] - kept[:, places].T, 0.0)
        return distances, left


def _places(rows: NDArray[np.intp], members: NDArray[np.integer[Any]]) -> tuple[Any, Any]:
    """Where those that are in both stand in each."""
    _, first, second = np.intersect1d(rows, members, assume_unique=True, return_indices=True)
    return first, second

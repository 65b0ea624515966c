"""Permutation test of the differences between groups in this sample.

The null hypothesis is that the group of a row is independent of its values and of its weight. Then
every assignment of the labels to the rows is equally likely. Random ones give the null distribution
of the groups' measures with ordinary PCA, which does not depend on the labels.

Measures of small groups vary more, so each group is standardised by its own null distribution. A
disparity is significant where it is larger than by chance; any other measure where it is smaller or
larger. The p-values are adjusted for the number of groups, with the largest statistic of each
permutation (Westfall and Young, 1993): if no group differs, one is called significant in at most
one of 20 samples.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.types import NEGLIGIBLE, Array
from fairpca.data import GroupedData
from fairpca.generalization.bootstrap import (
    SEED,
    centred_blocks,
    leading_directions,
)
from fairpca.measures import AffineMeasure
from fairpca.problem import Problem

N_PERMUTATIONS = 199
"""The smallest p-value is one over this number plus one."""

LEVEL = 0.05
"""Significance level."""

_MOST_VALUES = 2**19
"""Numbers of the rows that are permuted at most; of more rows, a random sample."""


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """Result of a permutation test.

    Attributes
    ----------
    statistic : array of shape (k,)
        Measures of the groups, standardised by the mean and standard deviation of the null
        distribution.
    p_values : array of shape (k,)
        Adjusted for the number of groups.
    """

    statistic: Array
    p_values: Array

    @property
    def exceeds_null(self) -> NDArray[np.bool_]:
        """Groups with a significant difference, at the level of 5 %; (k,)."""
        return np.asarray(self.p_values <= LEVEL)


@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows that are permuted, one part of the table after the other.

    Attributes
    ----------
    rows : array of shape (n, m + 2)
        Deviations from the mean of all rows along m directions, the distance that is left, and 1;
        all times the square root of the weight.
    basis : array of shape (m, r)
        Ordinary PCA.
    sizes : integer array of shape (n_parts,)
        Number of rows of each part.
    parts : boolean array of shape (k, n_parts), or None
        The parts that each group consists of; None where each is a group.
    """

    rows: Array
    basis: Array
    sizes: NDArray[np.int64]
    parts: NDArray[np.bool_] | None

    @classmethod
    def from_data(
        cls, problem: Problem, grouped_data: GroupedData, rng: np.random.Generator
    ) -> Self:
        """Rows with a positive weight, or a random sample of them."""
        codes, given = np.asarray(grouped_data.codes), grouped_data.weights
        weights = np.ones(len(codes)) if given is None else given
        directions = leading_directions(problem.total_matrix, problem.pca_basis, SEED)
        order = rng.permutation(np.flatnonzero((codes >= 0) & (weights > 0.0)))
        order = order[: _MOST_VALUES // directions.shape[1]]
        order = order[np.argsort(codes[order], kind="stable")]
        rows = []
        for _, block, weight in centred_blocks(grouped_data, order, problem.moments.total_mean):
            block *= np.sqrt(weight / problem.scale)[:, None]
            inside = block @ directions
            left = np.square(block).sum(axis=1) - np.square(inside).sum(axis=1)
            rows.append(np.column_stack([inside, np.sqrt(np.maximum(left, 0.0)), np.sqrt(weight)]))
        parts = grouped_data.parts
        n_parts = problem.n_groups if parts is None else parts.shape[1]
        sizes = np.bincount(codes[order], minlength=n_parts)
        return cls(np.vstack(rows), directions.T @ problem.pca_basis, sizes, parts)

    @cached_property
    def total(self) -> Array:
        """Second moment of all rows."""
        return np.asarray(self.rows.T @ self.rows)

    def measures(self, problem: Problem, order: NDArray[np.intp]) -> Array:
        """Measures of the groups if the rows of the parts are these; (k,)."""
        members, largest = np.split(order, np.cumsum(self.sizes)[:-1]), self.sizes.argmax()
        members[largest] = order[:0]  # which is what the others leave
        second = np.array([block.T @ block for block in (self.rows[some] for some in members)])
        second[largest] = self.total - second.sum(axis=0)
        if self.parts is not None:
            second = np.tensordot(1.0 * self.parts, second, axes=1)
        weight = np.where(second[:, -1, -1] > 0.0, second[:, -1, -1], 1.0)  # none in the sample
        second = second[:, :-1, :-1] / weight[:, None, None]
        inside = second[:, :-1, :-1]
        kept = (inside @ self.basis * self.basis).sum(axis=(1, 2))
        own = np.linalg.eigvalsh(inside)[:, -problem.n_components :].sum(axis=1)
        given = np.trace(second, axis1=1, axis2=2), own, weight / weight.sum()
        affine = AffineMeasure.of(problem.criterion.measured, *given)
        return affine.values(kept)


def permutation_test(
    problem: Problem,
    grouped_data: GroupedData,
    random_state: int | None = None,
) -> PermutationTest:
    """Test whether the measures of groups with ordinary PCA differ beyond chance.

    Parameters
    ----------
    problem : Problem
        Dimension and measure.
    grouped_data : GroupedData
        The rows, as the moments of the problem have them.
    random_state : int or None, default=None
        Seed; None is a fixed seed too.

    Returns
    -------
    PermutationTest

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.data import prepare_data
    >>> from fairpca.generalization.permutation_test import permutation_test
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> grouped_data = prepare_data(X, ["a"] * 100 + ["b"] * 200)
    >>> permutation_test(grouped_data.problem(2), grouped_data).p_values
    array([0.005, 0.005])
    """
    k = problem.n_groups
    if problem.scale == 0.0:
        return PermutationTest(np.zeros(k), np.ones(k))
    rng = np.random.default_rng(SEED if random_state is None else random_state)
    sample = RowSample.from_data(problem, grouped_data, rng)
    observed = np.arange(len(sample.rows))
    orders = (rng.permutation(len(observed)) for _ in range(N_PERMUTATIONS))
    measures = np.array([sample.measures(problem, order) for order in (observed, *orders)])
    # With the observed labels, which under the null hypothesis are one permutation of many.
    spread = measures.std(axis=0)
    varies = spread > NEGLIGIBLE  # else they are tied
    statistics = np.where(varies, measures - measures.mean(axis=0), 0.0)
    statistics /= np.where(varies, spread, 1.0)
    if not problem.criterion.measured.is_disparity:
        statistics = np.abs(statistics)
    largest, ties = statistics[1:].max(axis=1), 1e-9 * (1.0 + np.abs(statistics[0]))
    as_large = (largest[:, None] >= statistics[0] - ties).sum(axis=0)
    return PermutationTest(statistics[0], (1.0 + as_large) / (1.0 + N_PERMUTATIONS))

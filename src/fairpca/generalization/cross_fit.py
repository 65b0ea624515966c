"""Cross-fitting: what groups lose in subspaces that were found without the rows they are judged by.

Moments of folds add up, so this takes no further pass over the rows. The matrices of training rows
are sums of those of the folds, formed one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg import krylov
from fairpca._linalg.dense import DenseMatrices
from fairpca._linalg.device import (
    DeviceStack,
    LazyStack,
    ScatterSum,
    diagonals,
    joined_stacks,
    scatter_matrices,
)
from fairpca._linalg.threads import in_threads
from fairpca._linalg.types import Array
from fairpca.data import padded
from fairpca.folds import are_large
from fairpca.groups import Fold, groups_of_parts, overlapping
from fairpca.moments import GroupMoments
from fairpca.problem import NO_VARIANCE, GroupMatrices, Problem, filled, group_matrices

_ACCURACY = 1e-8
"""Part of the variance by which sums of eigenvalues may be off, with many columns. Held-out
losses then have five digits or more, while sampling leaves them two."""

_Sum = tuple[Array, Array, int, Array]
"""A sum of groups without a fold: what the parts' means are measured from, how often each group is
there, the fold, and where an iteration for its eigenvectors begins."""


class FoldProblems:
    """The parts of groups that lie in one fold each, and what is found without each fold.

    Large groups are in all training rows and judged by all their rows, as their in-sample
    losses are nearly right, unless `hold_out_large` is set. With `n_folds`, folds are joined into
    this number of them.

    Rows are judged over the whole weight of their group, unless losses are sums. They are measured
    from the mean of the training rows; with groups that are centred each on its own mean, from that
    of all rows of the group, since that of a few would be off by more than what is looked for.

    Attributes
    ----------
    numbers : list of J int
        The folds that have rows; none where nothing would be left without them.
    not_held_out : boolean array of shape (k,)
        Which groups have no row in any fold.
    shares : array of shape (J, k)
        The share of each group's weight that is judged in each of the folds.
    """

    def __init__(
        self,
        cells: GroupMoments,
        groups: str | None,
        problem: Problem,
        *,
        hold_out_large: bool = False,
        n_folds: int | None = None,
    ) -> None:
        # Wide rows may have columns of zeros added to the space that they span.
        self._divided = cells = padded(cells, problem.n_features)
        self._groups, self._problem, self._n_folds = groups, problem, n_folds
        self._cells = cells = _joined(cells, n_folds, join_large=not hold_out_large)
        plain, group_of, self._fold = groups_of_parts(cells.labels)
        _, made = overlapping(plain, groups)
        made = np.eye(len(plain), dtype=bool) if made is None else made
        self._members: NDArray[np.bool_] = made[:, group_of]
        self.not_held_out = ~(self._members & (self._fold >= 0)).any(axis=1)
        found = sorted(set(self._fold.tolist()) - {-1})
        self.numbers = found if len(found) > 1 or (self._fold == -1).any() else []
        # Parts in no fold are judged in all alike.
        wanted = np.array(self.numbers, dtype=np.intp)[:, None]
        self._is_training = self._fold != wanted
        inside = np.where(self._fold == -1, 1.0 / max(len(wanted), 1), self._fold == wanted)
        weights = self._members * cells.weight
        self._weight: Array = weights.sum(axis=1)
        self.shares: Array = inside @ weights.T / self._weight
        # Which part is judged in which fold, as one of which group, and which share of it.
        judged = np.nonzero(inside[:, None, :] * self._members)
        self._judged_fold, self._judged_group, self._judged_part = judged
        self._judged_share: Array = inside[judged[0], judged[2]]
        # From here on means are measured from that of all rows.
        origin = problem.moments.total_mean
        self._means: Array = cells.mean - origin
        self._own_centers: Array | None = None
        if problem.centering == "group":
            self._own_centers = problem.moments.mean - origin
        counted = np.where(self._is_training, weights.sum(axis=0), 0.0)
        self._centers: Array = counted @ self._means / counted.sum(axis=1, keepdims=True)
        """Means of the training rows; (J, d)."""
        if not problem.is_large and isinstance(cells.scatter, LazyStack):
            self._cells = replace(cells, scatter=np.asarray(cells.scatter))
        self._traces: Array = diagonals(self._cells.scatter).sum(axis=1)

    def training(self, fold: int) -> Problem:
        """The problem of all rows but those of a fold; groups without a row are not in it."""
        problem, here = self._problem, self._members & (self._fold != fold)
        some = here.any(axis=1)
        labels = [label for label, x in zip(problem.moments.labels, some, strict=True) if x]
        moments = replace(
            self._cells.united(labels, here[some]),
            group_names=problem.moments.group_names,
        )
        return replace(
            problem, moments=moments, criterion=problem.criterion.for_groups(problem, some)
        )

    def training_cells(self, fold: int) -> GroupMoments:
        """The moments by group and fold of all rows but those of a fold, divided as they were."""
        cells = self._divided
        kept = np.flatnonzero(_joined_folds(cells, self._n_folds) != fold)
        labels = [cells.labels[i] for i in kept]
        return cells.united(labels, np.eye(len(cells.labels), dtype=bool)[kept])

    def with_fewer_folds(self, n_folds: int) -> FoldProblems:
        """The same with folds joined into this number of them."""
        return FoldProblems(self._divided, self._groups, self._problem, n_folds=n_folds)

    @property
    def traces(self) -> Array:
        """What the rows of each fold lose if nothing is kept; (J, k)."""
        return self._sums(self._judged.traces)

    @property
    def pca_bases(self) -> list[Array]:
        """Ordinary PCA of the training rows of each fold."""
        return [found.pca for found in self._found]

    def kept(self, bases: Sequence[Array]) -> Array:
        """What the rows of each fold keep in a subspace of its training rows; (J, k)."""
        used = [
            # Any basis stands for one that has columns of zeros.
            np.pad(found.pca, ((0, 0), (0, basis.shape[1] - found.pca.shape[1])))
            if found.spans
            else basis
            for basis, found in zip(bases, self._found, strict=True)
        ]
        return self._sums(self._judged.kept_by_each([used[j] for j in self._judged_fold]))

    def own_kept(self) -> Array:
        """The same, each group in its own subspace, without one in that of PCA; (J, k)."""
        where = zip(self._judged_fold, self._judged_group, strict=True)
        return self._sums(self._judged.kept_by_each([self._found[j].own[i] for j, i in where]))

    def own_kept_in_sample(self) -> Array:
        """The same in the subspaces of all rows; (J, k)."""
        own = self._problem.own_subspaces
        return self._sums(self._judged.kept_by_each([own[i] for i in self._judged_group]))

    def weighted_bases(self, weights: Array) -> list[Array]:
        """The leading eigenvectors of the groups' weighted matrices, of training rows."""
        sums = []
        for j, found in enumerate(self._found):
            sizes = (self._members & self._is_training[j]) @ self._cells.weight
            per = 1.0 if self._problem.aggregation == "sum" else np.where(sizes > 0.0, sizes, 1.0)
            sums.append((found.centers, weights / per, j, found.pca))
        return [basis for _, basis in self._leading(sums)]

    @cached_property
    def _found(self) -> list[_Training]:
        """What is found without each fold."""
        sums, problem = [], self._problem
        everyone, groups = np.ones(problem.n_groups), np.eye(problem.n_groups)
        for j, center in enumerate(self._centers):
            inside, centers = self._members & self._is_training[j], center
            if self._own_centers is not None:
                weights = inside * self._cells.weight
                sizes = weights.sum(axis=1, keepdims=True)
                means = weights @ self._means / np.where(sizes > 0.0, sizes, 1.0)
                centers = means[self._members.argmax(axis=0)]
            sums += [(centers, everyone, j, problem.least_loss_basis)]
            each = zip(groups, problem.own_subspaces, strict=True)
            sums += [(centers, group, j, own) for group, own in each]
            if self._own_centers is not None:
                sums += [(center, everyone, j, problem.pca_basis)]
        pairs, n = self._leading(sums), len(sums) // len(self.numbers)
        begins = range(0, len(sums), n)
        return [self._solved(sums[i : i + n], pairs[i : i + n]) for i in begins]

    def _solved(self, sums: Sequence[_Sum], pairs: Sequence[tuple[Array, Array]]) -> _Training:
        """What is found without a fold, by the sums over all parts, and over those of each group.

        Last, where groups have centers of their own, over all parts about the center of all.
        """
        (centers, _, j, _), cells, r = sums[0], self._cells, self._problem.n_components
        (values, basis), k = pairs[0], self._problem.n_groups
        inside = self._members & self._is_training[j]
        traces = self._traces + cells.weight * np.square(self._means - centers).sum(axis=1)
        known = values > NO_VARIANCE * float(inside.sum(axis=0) @ traces)
        if not known.all():  # directions beyond these would be arbitrary
            space = basis * known
            return _Training(centers, space, [space] * k, spans=True)
        pca, lows = pairs[-1][1] if len(pairs) > k + 1 else basis, self._members @ traces
        counts = (inside @ cells.count).tolist()
        ranks = [
            min(count, int((found > NO_VARIANCE * low).sum()))
            for count, low, (found, _) in zip(counts, lows, pairs[1:], strict=False)
        ]
        own: Sequence[Array] = [vectors for _, vectors in pairs[1 : k + 1]]
        if min(ranks) < r:
            own = filled(own, ranks, basis, values)
        return _Training(centers, pca, [own[i] if n else pca for i, n in enumerate(counts)])

    def _leading(self, sums: Sequence[_Sum]) -> list[tuple[Array, Array]]:
        """The r largest eigenvalues of sums of the parts' second moments, and eigenvectors.

        With many columns iterations begin at the starts, and what they find is not proven.
        """
        cells: Any = self._cells
        r = self._problem.n_components
        inside: Array = np.array([v for _, v, _, _ in sums]) @ self._members.astype(np.float64)
        inside *= self._is_training[[j for _, _, j, _ in sums]]
        if not self._problem.is_large:
            stack = np.tensordot(inside, cells.scatter, 1)
            for matrix, weights, (centers, *_) in zip(stack, inside, sums, strict=True):
                some = np.flatnonzero(weights)
                offsets = self._means[some] - (centers if centers.ndim == 1 else centers[some])
                matrix += (offsets * (weights * cells.weight)[some, None]).T @ offsets
            return DenseMatrices(stack).own_pairs(r, sums[0][3])
        # Unless the rows are few, it takes less time to subtract those that are in the fold.
        moments, members, stack = self._problem.moments, self._members, cells.scatter
        k = 0 if isinstance(stack, DeviceStack) else len(members)
        stack = joined_stacks(moments.scatter, stack) if k else stack
        means = np.vstack([(moments.mean - moments.total_mean)[:k], self._means])
        sizes = np.concatenate([moments.weight[:k], cells.weight])

        def combined(weights: Array, centers: Array) -> ScatterSum:
            some = np.flatnonzero(weights)
            offsets = (means - centers)[some]
            parts = scatter_matrices(stack, offsets, sizes[some], "sum", some)
            return parts.weighted_sum(weights[some])

        def solved(one: tuple[_Sum, Array]) -> tuple[Array, Array]:
            (centers, groups, _, start), left = one
            if not left.any():  # a group without a row
                return np.zeros(r), start
            if centers.ndim > 1:
                centers = np.vstack([centers[members.argmax(axis=1)[:k]], centers])
            matrix = combined(np.concatenate([np.zeros(k), left]), centers)
            fold = groups @ members - left
            if k and not matrix.is_factored and fold @ self._traces <= left @ self._traces:
                matrix = combined(np.concatenate([groups, -fold]), centers)
            begin, host = matrix.backend.put(start), matrix.backend.host
            pairs = krylov.found_pairs(matrix, r, begin, accuracy=_ACCURACY)
            return pairs.values, host(pairs.vectors)

        return in_threads(solved, zip(sums, inside, strict=True), None if k else 1)

    @cached_property
    def _judged(self) -> GroupMatrices:
        """Second moments of what is judged, from the training rows' mean or the groups' own."""
        cells, parts = self._cells, self._judged_part
        at = self._centers[self._judged_fold]
        if self._own_centers is not None:
            at = self._own_centers[self._judged_group]
        offsets, weight = self._means[parts] - at, cells.weight[parts]
        if self._problem.is_large:
            return scatter_matrices(cells.scatter, offsets, weight, "sum", parts)
        return group_matrices(cells.scatter[parts], offsets, weight, "sum", is_large=False)

    def _sums(self, values: Array) -> Array:
        """Sums over what is judged of each fold and group; (J, k)."""
        n_folds, k = self.shares.shape
        where = self._judged_fold * k + self._judged_group
        sums = np.bincount(where, values * self._judged_share, n_folds * k).astype(np.float64)
        per = np.ones(k) if self._problem.aggregation == "sum" else self._weight
        return np.asarray(sums.reshape(n_folds, k) / per)


def _joined_folds(cells: GroupMoments, n_folds: int | None) -> NDArray[np.intp]:
    """The fold of each part where folds are joined into this number of them; (n_parts,)."""
    folds = groups_of_parts(cells.labels)[2]
    return folds if n_folds is None else np.where(folds < 0, folds, folds % n_folds)


def _joined(cells: GroupMoments, n_folds: int | None, *, join_large: bool) -> GroupMoments:
    """The same moments in fewer folds, and large groups whole, if they were divided or not."""
    _, group_of, folds = groups_of_parts(cells.labels)
    joined = _joined_folds(cells, n_folds)
    if join_large:
        squares = cells.weight**2 / cells.effective_count
        effective = np.bincount(group_of, cells.weight) ** 2 / np.bincount(group_of, squares)
        joined = np.where(are_large(effective, cells.n_features)[group_of], -1, joined)
    if (joined == folds).all():
        return cells
    found, part_of = np.unique([group_of, joined], axis=1, return_inverse=True)
    parts = np.arange(found.shape[1])[:, None] == part_of.reshape(-1)
    labels: list[Any] = [cells.labels[one] for one in parts.argmax(axis=1)]
    labels = [(*label[:-1], Fold(fold)) for label, fold in zip(labels, found[1], strict=True)]
    return cells.united(labels, parts)


@dataclass(frozen=True, eq=False)
class _Training:
    """What is found without a fold: ordinary PCA, and each group's own.

    Parts are measured from the centers. Where all rows span less than r dimensions, the other
    columns of these are zero, and any other basis stands for them too: `spans`.
    """

    centers: Array
    pca: Array
    own: list[Array]
    spans: bool = False

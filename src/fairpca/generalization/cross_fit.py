"""Cross-fitting: what groups lose in subspaces that were found without the rows they are judged by.

Moments of folds add up, so this takes no further pass over the rows. The matrices of training rows
are sums of those of the folds, formed one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg import krylov
from fairpca._linalg.dense import DenseMatrices
from fairpca._linalg.device import DeviceStack, ScatterMatrices, scatter_matrices
from fairpca._linalg.types import Array, GroupMatrices
from fairpca.data import padded
from fairpca.folds import are_large, groups_of_parts
from fairpca.groups import overlapping
from fairpca.moments import GroupMoments
from fairpca.problem import NO_VARIANCE, Problem, filled, group_matrices

_ACCURACY = 1e-10
"""Part of the variance by which sums of eigenvalues may be off, with many columns. Held-out
losses then have five digits or more, while sampling leaves them two."""


class FoldProblems:
    """The parts of groups that lie in one fold each, and what is found without each fold.

    Large groups are in all training rows and judged by all their rows, as their in-sample
    losses are nearly right, unless `hold_out_large` is set.

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
    ) -> None:
        # Wide rows may have columns of zeros added to the space that they span.
        self._cells = cells = padded(cells, problem.moments.n_features)
        self._problem = problem
        plain, group_of, self._fold = groups_of_parts(cells.labels)
        _, made = overlapping(plain, groups, (cells.group_orders or ())[:-1] or None)
        made = np.eye(len(plain), dtype=bool) if made is None else made
        self._members: NDArray[np.bool_] = made[:, group_of]
        if not hold_out_large:
            # Groups that are large are not held out, whether they were divided or not.
            squares = cells.weight**2 / cells.effective_count
            weight = np.bincount(group_of, cells.weight)
            effective = weight**2 / np.bincount(group_of, squares)
            self._fold[are_large(effective, cells.n_features)[group_of]] = -1
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
        if not problem.is_large and isinstance(cells.scatter, DeviceStack):
            self._cells = replace(cells, scatter=np.asarray(cells.scatter))

    def training(self, fold: int) -> Problem:
        """The problem of all rows but those of a fold; groups without a row are not in it."""
        problem, here = self._problem, self._members & (self._fold != fold)
        some = here.any(axis=1)
        labels = [label for label, x in zip(problem.moments.labels, some, strict=True) if x]
        moments = replace(
            self._cells.united(labels, here[some]),
            group_names=problem.moments.group_names,
            group_orders=problem.moments.group_orders,
        )
        return replace(
            problem, moments=moments, criterion=problem.criterion.for_groups(problem, some)
        )

    def training_cells(self, fold: int) -> GroupMoments:
        """The moments by group and fold of all rows but those of a fold."""
        kept = np.flatnonzero(self._fold != fold)
        labels = [self._cells.labels[i] for i in kept]
        return self._cells.united(labels, np.eye(len(self._fold), dtype=bool)[kept])

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
        used = [found.used(basis) for found, basis in zip(self._found, bases, strict=True)]
        return self._sums(self._judged.kept_by_each([used[j] for j in self._judged_fold]))

    def own_kept(self) -> Array:
        """The same, each group in its own subspace, without one in that of PCA; (J, k)."""
        where = zip(self._judged_fold, self._judged_group, strict=True)
        return self._sums(self._judged.kept_by_each([self._found[j].own[i] for j, i in where]))

    def own_kept_in_sample(self) -> Array:
        """The same in the subspaces of all rows, and measured from the mean of all; (J, k)."""
        own = self._problem.own_subspaces
        judged = self._judged_from(np.zeros_like(self._centers))
        return self._sums(judged.kept_by_each([own[i] for i in self._judged_group]))

    def weighted_bases(self, weights: Array) -> list[Array]:
        """The leading eigenvectors of the groups' weighted matrices, of training rows."""
        found = []
        for fold, each in zip(self._is_training, self._found, strict=True):
            inside = self._members & fold
            sizes = inside @ self._cells.weight
            per = 1.0 if self._problem.aggregation == "sum" else np.where(sizes > 0.0, sizes, 1.0)
            pairs = self._leading(each.matrices, (weights / per @ inside)[None], [each.pca])
            found.append(pairs[0][1])
        return found

    @cached_property
    def _found(self) -> list[_Training]:
        """What is found without each fold."""
        return [self._solve(j) for j in range(len(self.numbers))]

    def _solve(self, j: int) -> _Training:
        problem, cells, r = self._problem, self._cells, self._problem.n_components
        inside, start = self._members & self._is_training[j], problem.least_loss_basis
        everyone, some = inside.sum(axis=0).astype(np.float64), np.flatnonzero(inside.any(axis=1))
        about_all = about = self._about(np.broadcast_to(self._centers[j], self._means.shape))
        if self._own_centers is not None:
            weights = inside * cells.weight
            sizes = weights.sum(axis=1, keepdims=True)
            means = weights @ self._means / np.where(sizes > 0.0, sizes, 1.0)
            about = self._about(means[self._members.argmax(axis=0)])
        sums = np.vstack([everyone, inside[some]])
        starts = [start, *(problem.own_subspaces[i] for i in some)]
        (values, basis), *leading = self._leading(about, sums, starts)
        known = values > NO_VARIANCE * float(everyone @ about.traces)
        if not known.all():  # directions beyond these would be arbitrary
            space = basis * known
            return _Training(about, space, [space] * problem.n_groups, spans=True)
        pca = basis
        if about_all is not about:
            pca = self._leading(about_all, everyone[None], [problem.pca_basis])[0][1]
        lows = NO_VARIANCE * (self._members[some] @ about.traces)
        ranks = np.minimum(inside[some] @ cells.count, r)
        pairs = zip(leading, lows, strict=True)
        ranks = np.minimum(ranks, [int((found > low).sum()) for (found, _), low in pairs])
        own = [pca] * problem.n_groups
        bases = filled([vectors for _, vectors in leading], ranks, basis, values)
        for i, found in zip(some, bases, strict=True):
            own[i] = found
        return _Training(about, pca, own)

    def _about(self, centers: Array) -> ScatterMatrices:
        """Second moments of all parts about these centers."""
        cells = self._cells
        return scatter_matrices(cells.scatter, self._means - centers, cells.weight, "sum")

    def _leading(
        self, matrices: ScatterMatrices, weights: Array, starts: Sequence[Array]
    ) -> list[tuple[Array, Array]]:
        """The r largest eigenvalues of sums of the parts' matrices, and eigenvectors.

        With many columns iterations begin at the starts, and what they find is not proven.
        """
        r = self._problem.n_components
        sums = map(matrices.weighted_sum, weights.astype(np.float64))
        if not self._problem.is_large:
            return DenseMatrices(np.array([each.whole() for each in sums])).own_pairs(r, starts[0])
        put, host = matrices.backend.put, matrices.backend.host
        pairs = (
            krylov.found_pairs(each, r, put(at), accuracy=_ACCURACY)
            for each, at in zip(sums, starts, strict=True)
        )
        return [(found.values, host(found.vectors)) for found in pairs]

    @cached_property
    def _judged(self) -> GroupMatrices:
        return self._judged_from(self._centers)

    def _judged_from(self, centers: Array) -> GroupMatrices:
        """Second moments of what is judged, about one center for each fold, or the groups' own."""
        cells, parts = self._cells, self._judged_part
        at = centers[self._judged_fold]
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


@dataclass(frozen=True, eq=False)
class _Training:
    """What is found without a fold: ordinary PCA, and each group's own.

    Where all rows span less than r dimensions, the other columns of these are zero, and any other
    basis stands for them too: `spans`.
    """

    matrices: ScatterMatrices
    pca: Array
    own: list[Array]
    spans: bool = False

    def used(self, basis: Array) -> Array:
        """The basis that is judged where this one was found."""
        if not self.spans:
            return basis
        return np.pad(self.pca, ((0, 0), (0, basis.shape[1] - self.pca.shape[1])))

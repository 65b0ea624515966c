"""Cross-fitting: what groups lose in subspaces that were found without the rows they are judged by.

Moments of folds add up, so this takes no further pass over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.device import ScatterMatrices, united_scatters
from fairpca._linalg.types import Array, GroupMatrices
from fairpca.data import padded
from fairpca.folds import are_large, groups_of_parts
from fairpca.groups import overlapping
from fairpca.moments import GroupMoments
from fairpca.problem import NO_VARIANCE, Problem, group_matrices

_KEPT_BYTES = 2**24
"""Problems of training rows are kept for further questions if moments by fold take no more."""


class FoldProblems:
    """The parts of groups that lie in one fold each, and problems of all folds but one.

    Large groups are in all training problems and judged by all their rows, as their in-sample
    losses are nearly right, unless `hold_out_large` is set.

    Attributes
    ----------
    numbers : list of int
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
        self._known: dict[int, HeldOutRows] = {}
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
        weights = self._members * cells.weight
        self._weight: Array = weights.sum(axis=1)
        inside = np.reshape([self._in_fold(j) for j in self.numbers], (-1, len(group_of)))
        self.shares: Array = inside @ weights.T / self._weight

    def _in_fold(self, fold: int) -> Array:
        """1 for parts in the fold, 0 for others; those in no fold are judged in all alike."""
        return np.where(self._fold == -1, 1.0 / len(self.numbers), self._fold == fold)

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

    def held_out(self, fold: int) -> HeldOutRows:
        """The rows of a fold, as the problem of the others judges them."""
        if fold in self._known:
            return self._known[fold]
        found = self.judged(fold, self.training(fold))
        if self._cells.scatter.nbytes <= _KEPT_BYTES:
            self._known[fold] = found
        return found

    def judged(self, fold: int, by: Problem) -> HeldOutRows:
        """The rows of a fold, as a problem judges them.

        They are measured from the mean of its rows; with groups that are centred each on its own
        mean, from that of all rows of the group, since that of a few would be off by more than what
        is looked for.
        """
        cells, problem = self._cells, self._problem
        parts = self._members * self._in_fold(fold)
        there = np.asarray(parts.any(axis=1))
        scatter, mean = united_scatters(cells.scatter, parts[there], cells.weight, cells.mean)
        own_centers = by.centering == "group"
        offsets = mean - (problem.moments.mean[there] if own_centers else by.moments.total_mean)
        weight = parts[there] @ cells.weight
        matrices = group_matrices(scatter, offsets, weight, "sum", is_large=problem.is_large)
        per = np.ones(problem.n_groups) if problem.aggregation == "sum" else self._weight
        return HeldOutRows(problem, by, there, matrices, per)


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """The rows of a fold, as a problem judges them: what they have, over all of their group.

    Attributes
    ----------
    training : Problem
        Judges them, and was found without them, unless it is that of all rows.
    """

    _problem: Problem
    training: Problem
    _there: NDArray[np.bool_]
    _matrices: GroupMatrices
    _per: Array

    @property
    def traces(self) -> Array:
        """What they lose if nothing is kept; (k,)."""
        return self._over_groups(self._matrices.traces)

    def kept(self, basis: Array) -> Array:
        """What they keep in a subspace of the training rows; (k,)."""
        basis = self._known_basis if self._known_basis is not None else basis
        return self._over_groups(self._matrices.kept(basis, basis))

    def own_kept(self) -> Array:
        """The same, each group in its own subspace; without one, in that of ordinary PCA; (k,)."""
        if self._known_basis is not None:
            return self.kept(self._known_basis)
        own = dict(zip(self.training.moments.labels, self._own_bases(), strict=True))
        labels, pca = self._problem.moments.labels, self.training.pca_basis
        bases = [own.get(labels[i], pca) for i in np.flatnonzero(self._there)]
        return self._over_groups(self._matrices.kept_by_each(bases))

    @cached_property
    def _known_basis(self) -> Array | None:
        """The space of the training rows, where they span no more dimensions than are wanted.

        Directions beyond it would be arbitrary.
        """
        training = self.training
        values, vectors = (part[..., : training.n_components] for part in training.total_eigenpairs)
        known = values > NO_VARIANCE * training.scale
        return None if known.all() else vectors[:, known]

    def _own_bases(self) -> Sequence[Array]:
        """The groups' own subspaces; with many columns those near the ones of all rows."""
        training, problem = self.training, self._problem
        matrices = training.group_matrices
        if training is problem or not isinstance(matrices, ScatterMatrices):
            return training.own_subspaces
        known = dict(zip(problem.moments.labels, problem.own_subspaces, strict=True))
        starts = [known[label] for label in training.moments.labels]
        found = matrices.own_pairs_near(training.n_components, starts)
        pairs = zip(found, NO_VARIANCE * training.traces, strict=True)
        # Groups that vary in fewer dimensions are completed by what all rows have.
        whole = all(values[-1] > low for (values, _), low in pairs)
        return [vectors for _, vectors in found] if whole else training.own_subspaces

    def _over_groups(self, sums: Array) -> Array:
        """Sums over the rows of each group, per weight unless losses are sums."""
        found = np.zeros(len(self._per))
        found[self._there] = sums
        return found / self._per

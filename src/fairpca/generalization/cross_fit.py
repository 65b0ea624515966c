"""Cross-fitting: what groups lose in subspaces that were found without the rows they are judged by.

Moments of folds add up, so this takes no further pass over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.device import ScatterMatrices, chosen_scatters, scatter_matrices
from fairpca._linalg.types import Array
from fairpca.data import padded
from fairpca.folds import are_large, labels_without_folds, of_groups, without_fold
from fairpca.groups import overlapping
from fairpca.moments import GroupMoments
from fairpca.problem import NO_VARIANCE, Problem

_KEPT_BYTES = 2**24
"""Problems of training rows are kept for further questions if moments by fold take no more."""


class FoldProblems:
    """The parts of groups that lie in one fold each, and problems of all folds but one.

    Large groups are in all training problems and judged by all their rows, as their in-sample
    losses are nearly right, unless `hold_out_large` is set.
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
        cells = padded(cells, problem.moments.n_features)
        self._cells, self._problem = cells, problem
        self._trainings: dict[int, Problem] = {}
        plain = labels_without_folds(cells.labels)
        orders = of_groups(cells.group_names, cells.group_orders)["group_orders"]
        _, parts = overlapping(plain, groups, orders)
        self._group_of = np.array([plain.index(without_fold(label)) for label in cells.labels])
        parts = np.eye(len(plain), dtype=bool) if parts is None else parts
        self._members = parts[:, self._group_of]
        self._fold = np.array([int(label[-1]) for label in cells.labels])  # type: ignore[index]
        if hold_out_large:
            return
        # Groups that are large are not held out, whether they were divided or not.
        squares = cells.weight**2 / cells.effective_count
        weight = np.bincount(self._group_of, cells.weight)
        effective = weight**2 / np.bincount(self._group_of, squares)
        self._fold[are_large(effective, cells.n_features)[self._group_of]] = -1

    @property
    def not_held_out(self) -> NDArray[np.bool_]:
        """Which groups have no row in any fold; (k,)."""
        return np.asarray(~(self._members & (self._fold >= 0)).any(axis=1))

    @cached_property
    def numbers(self) -> list[int]:
        """The folds that have rows; none where nothing would be left without them."""
        found = sorted(set(self._fold.tolist()) - {-1})
        return found if len(found) > 1 or (self._fold == -1).any() else []

    def parts(self) -> tuple[GroupMoments, NDArray[np.int64], NDArray[np.int64]]:
        """Moments of each group by fold, and the group and the fold of each part; -1 is none."""
        chosen, group_of, fold_of = [], [], []
        for i, members in enumerate(self._members):
            for fold in (-1, *self.numbers):
                here = members & (self._fold == fold)
                if here.any():
                    chosen.append(here)
                    group_of.append(i)
                    fold_of.append(fold)
        moments = self._cells.united(range(len(chosen)), np.array(chosen))
        return moments, np.array(group_of), np.array(fold_of)

    def share(self, fold: int) -> Array:
        """The share of each group's weight that is judged in a fold; (k,)."""
        weight = self._members * self._cells.weight
        return np.asarray(weight @ self._in_fold(fold) / weight.sum(axis=1))

    def _in_fold(self, fold: int) -> Array:
        """1 for parts in the fold, 0 for others; those in no fold are judged in all alike."""
        return np.where(self._fold == -1, 1.0 / len(self.numbers), self._fold == fold)

    def training(self, fold: int) -> Problem:
        """The problem of all rows but those of a fold; groups without a row are not in it."""
        known = self._trainings.get(fold)
        if known is None:
            known = self._training(fold)
            if self._cells.scatter.nbytes <= _KEPT_BYTES:
                self._trainings[fold] = known
        return known

    def _training(self, fold: int) -> Problem:
        problem, here = self._problem, self._members & (self._fold != fold)
        some = here.any(axis=1)
        labels = [label for label, x in zip(problem.moments.labels, some, strict=True) if x]
        moments = replace(
            self._cells.united(labels, here[some]),
            group_names=problem.moments.group_names,
            group_orders=problem.moments.group_orders,
        )
        criterion = problem.criterion.for_groups(problem, some)
        return replace(problem, moments=moments, criterion=criterion)

    def training_cells(self, fold: int) -> GroupMoments:
        """The moments by group and fold of all rows but those of a fold."""
        kept = np.flatnonzero(self._fold != fold)
        labels = [self._cells.labels[i] for i in kept]
        return self._cells.united(labels, np.eye(len(self._fold), dtype=bool)[kept])

    def centers(self, training: Problem) -> Array:
        """From where each group's held-out rows are measured; (k, d).

        That is the mean of the training rows; of groups that are centred each on its own mean, the
        mean of all their rows, since that of a few would be off by more than what is looked for.
        """
        if training.centering == "group":
            return self._problem.moments.mean
        return np.tile(training.moments.total_mean, (self._problem.n_groups, 1))

    def traces(self, fold: int, centers: Array) -> Array:
        """What rows of a fold lose if nothing is kept, over the whole weight of their group."""
        return self.kept(fold, None, centers)

    def kept(self, fold: int, basis: Array | None, centers: Array) -> Array:
        """The same of what they keep in a subspace."""
        if self._problem.centering == "group":
            found = [self._kept_by(i, fold, basis, center) for i, center in enumerate(centers)]
            return self._shares(np.array(found))
        return self._shares(self._members @ self._sums(fold, basis, centers[0]))

    def pca_kept(self, fold: int, training: Problem, centers: Array) -> Array:
        """The same with ordinary PCA of the training rows."""
        return self.kept(fold, known_basis(training, training.pca_basis), centers)

    def own_kept(self, fold: int, training: Problem, centers: Array) -> Array:
        """The same, each group in its own subspace; without one, in that of ordinary PCA."""
        own = dict(zip(training.moments.labels, self._own_bases(training), strict=True))
        kept = np.zeros(self._problem.n_groups)
        for i, label in enumerate(self._problem.moments.labels):
            basis = known_basis(training, own.get(label, training.pca_basis))
            kept[i] = self._kept_by(i, fold, basis, centers[i])
        return self._shares(kept)

    def _own_bases(self, training: Problem) -> Sequence[Array]:
        """The groups' own subspaces; with many columns those near the ones of all rows."""
        matrices = training.group_matrices
        if not isinstance(matrices, ScatterMatrices):
            return training.own_subspaces
        problem = self._problem
        known = dict(zip(problem.moments.labels, problem.own_subspaces, strict=True))
        starts = [known[label] for label in training.moments.labels]
        found = matrices.own_pairs_near(training.n_components, starts)
        pairs = zip(found, NO_VARIANCE * training.traces, strict=True)
        # Groups that vary in fewer dimensions are completed by what all rows have.
        whole = all(values[-1] > low for (values, _), low in pairs)
        return [vectors for _, vectors in found] if whole else training.own_subspaces

    def _kept_by(self, group: int, fold: int, basis: Array | None, center: Array) -> float:
        return float(self._sums(fold, basis, center, self._members[group]).sum())

    def _sums(
        self, fold: int, basis: Array | None, center: Array, some: NDArray[np.bool_] | None = None
    ) -> Array:
        """What each part, of all or some, keeps in a fold; of one in no fold, its share of it.

        Without a basis, all that there is.
        """
        cells, shares = self._cells, self._in_fold(fold)
        shares = shares if some is None else np.where(some, shares, 0.0)
        sums, chosen = np.zeros(len(shares)), np.flatnonzero(shares)
        if len(chosen):
            matrices = scatter_matrices(
                chosen_scatters(cells.scatter, chosen),
                cells.mean[chosen] - center,
                cells.weight[chosen],
                "sum",
            )
            kept = matrices.traces if basis is None else matrices.kept(basis, basis)
            sums[chosen] = kept * shares[chosen]
        return sums

    def _shares(self, sums: Array) -> Array:
        """Sums over the rows of each group, per weight unless losses are sums."""
        if self._problem.aggregation == "sum":
            return sums
        return np.asarray(sums / (self._members @ self._cells.weight))


def known_basis(training: Problem, basis: Array) -> Array:
    """A basis, or where the training rows span no more dimensions, the space that they span.

    Directions beyond it would be arbitrary.
    """
    values, vectors = (part[..., : training.n_components] for part in training.total_eigenpairs)
    known = values > NO_VARIANCE * training.scale
    return basis if known.all() else vectors[:, known]

"""Judge: what groups lose with a reduction, from blocks of their rows, and how sure that is."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.text import formatted, group_name, number_format
from fairpca._rows.words import BASELINES as BASELINES
from fairpca.estimators.baselines import Baselines, baselines_of
from fairpca.estimators.resampling import (
    SEED,
    Drawn,
    Pieces,
    centred_blocks,
    difference_interval,
    few_rows,
    group_seeds,
    loss_ends,
    mean_ends,
    own_pieces,
    unbiased_ends,
)
from fairpca.group_table import GroupIntervals, GroupTable
from fairpca.moments import GroupMoments
from fairpca.problem import Problem

_ORTHONORMAL = 1e-6
"""How far the products of components may be from those of orthonormal ones."""

_N_VALUES = 4
"""Numbers that are summed up for each row: those of `Judge._values`."""

_MOST_NAMES = 5
"""Groups that a sentence names."""


class Judge:
    """Takes the rows of each group, with their errors, and makes the table of an audit.

    Parameters
    ----------
    estimator : object
        The reduction.
    moments : GroupMoments
        Of the rows, or of their coordinates in the space that they span.
    r : int
        Its dimension, unless a fair reduction was asked for another, by which it is judged.
    baseline, n_resamples, random_state
        As for `audit`.

    Attributes
    ----------
    problem : Problem or None
        That of the rows; None where they are measured against the training rows.
    """

    def __init__(
        self,
        estimator: Any,
        moments: GroupMoments,
        r: int,
        *,
        baseline: str = "rows",
        n_resamples: int = 0,
        random_state: int | None = None,
    ) -> None:
        r = getattr(getattr(estimator, "certificate_", None), "n_components", r)
        k = len(moments.labels)
        self._moments, self._baseline, self._n_resamples = moments, baseline, n_resamples
        self._known: Baselines | None = None
        self.problem: Problem | None = None
        if baseline == "training":
            self._known = baselines_of(estimator)
            self._center, r = self._known.mean, self._known.n_components
            self._of_training = [self._known.position(label) for label in moments.labels]
        else:
            self.problem = Problem(moments, min(r, moments.n_features))
            self._center = moments.total_mean
        # A projection from the mean of all rows leaves no group less than its own PCA does.
        self._least = 0.0 if baseline == "rows" and _is_projection(estimator) else -np.inf
        self._least_rows, self._effective = few_rows(r), moments.effective_count
        self._loss_sums, self._sums = np.zeros(k), np.zeros((_N_VALUES, k))
        self._draws, self._quantiles = np.full((3, k, n_resamples), np.nan), np.full(k, np.nan)
        rng = np.random.default_rng(SEED if random_state is None else random_state)
        self._seeds = group_seeds(rng, k)
        self._pieces: dict[int, Pieces] = {}

    def _pieces_of(self, group: int) -> Pieces | None:
        """Where the rows of a group are summed up to be drawn anew; None if they are not."""
        n_rows, seed = int(self._moments.count[group]), self._seeds[group]
        if not self._n_resamples or self._effective[group] < self._least_rows:
            return None
        if group not in self._pieces:
            self._pieces[group] = (
                Pieces(self._center, _N_VALUES, n_rows, seed)
                if self.problem is None
                else own_pieces(self.problem, group, _N_VALUES, seed)
            )
        return self._pieces[group]

    def add(
        self, group: int, rows: Any, members: Any, errors: Array, weights: Array | None = None
    ) -> None:
        """Take those of some rows that are members of a group.

        Rows are as the moments have them, or, to be measured against the training rows, as the
        reduction has; `errors` are its squared ones.
        """
        pieces = self._pieces_of(group)
        weighted = errors[members] if weights is None else errors[members] * weights[members]
        self._loss_sums[group] += float(weighted.sum())
        if pieces is None and self._known is None:  # all else is known from the moments
            return
        for some, block, weight in centred_blocks(rows, members, weights, self._center):
            values = self._values(group, block, errors[some])
            self._sums[:, group] += values @ weight
            if pieces is not None:
                pieces.add(block, weight, values)

    def _values(self, group: int, block: Array, errors: Array) -> Array:
        """Of each row its square and its errors: with the reduction, PCA and the own PCA."""
        squares, own = np.square(block).sum(axis=1), np.full(len(block), np.nan)
        if self.problem is not None:
            pca_basis = self.problem.pca_basis
        elif self._known is not None:
            pca_basis, position = self._known.pca_basis, self._of_training[group]
            if position is not None:
                own = squares - np.square(block @ self._known.own_bases[position]).sum(axis=1)
        return np.array([squares, errors, squares - np.square(block @ pca_basis).sum(axis=1), own])

    def finish(self, group: int) -> None:
        """Draw the rows of a group anew, all of which have been taken."""
        pieces = self._pieces.pop(group, None)
        if pieces is not None:
            self._draws[:, group] = pieces.draws(self._n_resamples, self._measured)
            self._quantiles[group] = pieces.quantile

    def _measured(self, drawn: Drawn) -> Array:
        """Loss, disparity, and change from ordinary PCA."""
        squares, loss, pca, own = drawn.values
        if self._known is None:
            own = squares - drawn.own_gains(False)
        return np.array([loss, loss - own, loss - pca])

    def table(self) -> GroupTable:
        """The table of all that was taken."""
        moments, loss = self._moments, self._loss_sums / self._moments.weight
        if self.problem is not None:
            variance, own = self.problem.traces, self.problem.own_losses
            pca = self.problem.group_losses(self.problem.pca_basis)
        else:
            variance, _, pca, own = np.maximum(self._sums / moments.weight, 0.0)
        intervals = self._intervals(loss, own, pca) if self._n_resamples else None
        return GroupTable(
            name="audited",
            labels=moments.labels,
            count=moments.count,
            own_loss=own,
            pca_loss=pca,
            loss=loss,
            variance=variance,
            group_names=moments.group_names,
            baseline=self._baseline,
            intervals=intervals,
            notes=tuple(self._notes(loss - own, intervals)),
        )

    def _intervals(self, loss: Array, own: Array, pca: Array) -> GroupIntervals:
        quantiles, disparity, draws = self._quantiles, loss - own, self._draws
        of_loss = loss_ends(loss, draws[0], quantiles)
        of_disparity = (
            unbiased_ends(disparity, draws[1], quantiles, self._least, np.inf)
            if self._known is None
            else mean_ends(disparity, draws[1], quantiles)  # nothing was fitted to these rows
        )
        of_change = mean_ends(loss - pca, draws[2], quantiles)
        known = np.flatnonzero(np.isfinite(of_disparity[0]))
        extremes = difference = None
        if len(known) > 1:
            order = known[np.argsort(disparity[known], kind="stable")]
            i, j = int(order[-1]), int(order[0])
            extremes = (i, j)
            difference = difference_interval(disparity, draws[1], quantiles, i, j)
        return GroupIntervals(
            loss=np.column_stack(of_loss),
            disparity=np.column_stack(of_disparity),
            change=np.column_stack(of_change),
            extremes=extremes,
            difference=difference,
            n_resamples=self._n_resamples,
            least_rows=self._least_rows,
        )

    def _notes(self, disparity: Array, intervals: GroupIntervals | None) -> list[str]:
        """What is to be said below the table."""
        notes, few = [], self._least_rows
        count = self._moments.count
        if self._known is not None:
            notes.append(
                "PCA and own PCA are those of the training rows, about their mean; losses are "
                "those of the rows that were given."
            )
            unseen = [i for i, known in enumerate(self._of_training) if known is None]
            if unseen:
                notes.append(
                    f"Not among the training groups, so without an own PCA: {self._listed(unseen)}."
                )
            rows = [0 if i is None else int(self._known.count[i]) for i in self._of_training]
            small = [i for i, n in enumerate(rows) if 0 < n < few]
            if small:
                names = self._listed(small, rows)
                notes.append(f"The own PCA of {names} is from fewer than {few} training rows.")
        if intervals is None:
            return notes
        if intervals.extremes is not None and intervals.difference is not None:
            notes.append(self._of_difference(disparity, intervals.extremes, intervals.difference))
        small = [i for i in range(len(count)) if self._effective[i] < few]
        if small:
            notes.append(f"No interval is given for {self._listed(small)}: fewer than {few} rows.")
        return notes

    def _of_difference(
        self, disparity: Array, extremes: tuple[int, int], ends: tuple[float, float]
    ) -> str:
        form = number_format([np.abs(ends), np.abs(disparity[list(extremes)])])
        low, high = (formatted(end, form) for end in ends)
        worst, best = map(self._name, extremes)
        family = ", for all pairs of groups together" if len(disparity) > 2 else ""
        if ends[0] > 0.0:
            return (
                f"The rows tell the disparities of {worst} and {best} apart: they differ by {low} "
                f"to {high} (95 % interval{family})."
            )
        return (
            f"The rows cannot tell the disparities of {worst} and {best} apart: their difference "
            f"may be anything from {low} to {high} (95 % interval{family})."
        )

    def _name(self, group: int) -> str:
        return group_name(self._moments.labels[group], self._moments.group_names)

    def _listed(self, groups: Sequence[int], count: Sequence[int] | None = None) -> str:
        """Groups with their rows, the smallest first."""
        rows = self._moments.count if count is None else np.array(count)
        groups = sorted(groups, key=lambda i: int(rows[i]))
        shown = [
            f"{self._name(i)} ({rows[i]:,} row{'' if rows[i] == 1 else 's'})"
            for i in groups[:_MOST_NAMES]
        ]
        more = len(groups) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")


def _is_projection(estimator: Any) -> bool:
    """Whether rows minus `mean_` are projected on orthonormal `components_`."""
    components, mean = (getattr(estimator, name, None) for name in ("components_", "mean_"))
    if components is None or mean is None or getattr(components, "ndim", 0) != 2:
        return False
    products = components @ components.T
    return bool(np.abs(products - np.eye(len(products))).max() < _ORTHONORMAL)

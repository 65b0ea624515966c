"""Cross-fitting: what groups lose in subspaces that were found without the rows they are judged by.

Moments of folds add up, so all of this takes no further pass over the rows. The own subspace of a
group fits its rows too well, and on rows held out too badly, being found with fewer rows; the truth
lies between, and a weighted mean of the two is nearly without bias.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from fairpca._linalg.device import scatter_matrices
from fairpca._linalg.types import Array
from fairpca._rows.folds import N_FOLDS, are_large, labels_without_folds, of_groups, without_fold
from fairpca._rows.labels import overlapping
from fairpca._rows.text import (
    formatted,
    html_table,
    label_text,
    listed,
    number_format,
    text_table,
)
from fairpca.estimators.gather import Gathered
from fairpca.estimators.shrinkage import shrunk_problem
from fairpca.exceptions import FairnessWarning
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.solvers import Solver

CANDIDATES = (0.0, 10.0, 30.0, 100.0, 300.0, 1000.0, np.inf)
"""Amounts of shrinkage, in rows, among which "auto" chooses; the last gives ordinary PCA."""

_FEWEST = 5
"""Rows below which a group has no say in the choice: its few rows would be held out one by one."""

_WORTHWHILE = 0.1
"""Part by which shrinkage has to improve the score to be chosen: less is noise in most cases."""

_WORTHWHILE_IF_WIDE = 0.25
"""The same where every group has fewer rows than columns, in comparison with ordinary PCA: scores
are noisier there, and PCA, which all rows serve, is the safer choice."""

_ENOUGH = 5
"""Rows for each column from which the bias falls as one over the number of rows, so that the biases
of n rows in sample and of 4/5 n rows held out cancel with weights of 5/9 and 4/9."""


@dataclass(frozen=True, eq=False, repr=False)
class CrossFit:
    """What groups lose beyond the rows that the subspaces were found with. Print it.

    Attributes
    ----------
    labels : tuple of length k
        The groups.
    count : integer array of shape (k,)
        Rows of each group.
    shrinkage : float
        The amount that was chosen, or given, in rows.
    candidates : tuple of m float
        The amounts that were tried.
    scores : array of shape (m,)
        What is to be small, of each of them: the largest measure of a group on held-out rows, their
        largest difference ("equal"), or the largest excess over a bound. Groups of fewer than five
        rows do not count.
    measures : array of shape (m, k)
        The measures that these are of; disparities from `own_loss`, unless another was chosen.
    own_loss_in_sample, own_loss_held_out : arrays of shape (k,)
        Loss of each group with its own PCA, on the rows that it was found with, which is too small
        in expectation, and on held-out rows, which is too large.
    own_loss : array of shape (k,)
        The estimate between the two.
    loss, pca_loss : arrays of shape (k,)
        Loss of each group on held-out rows, with the subspace and with ordinary PCA.
    group_names : tuple of str or None
        Names of the sensitive columns, where they have any.
    not_held_out : boolean array of shape (k,), or None
        The groups that are so large that their rows were not held out: their losses are those of
        all their rows in the subspaces of the folds.
    """

    labels: tuple[Hashable, ...]
    count: NDArray[np.int64]
    shrinkage: float
    candidates: tuple[float, ...]
    scores: Array
    measures: Array
    own_loss_in_sample: Array
    own_loss_held_out: Array
    own_loss: Array
    loss: Array
    pca_loss: Array
    group_names: tuple[str, ...] | None = None
    not_held_out: NDArray[np.bool_] | None = None

    @property
    def disparity(self) -> Array:
        """What each group loses beyond its own PCA, estimated for rows not seen; (k,)."""
        return self.loss - self.own_loss

    @property
    def pca_disparity(self) -> Array:
        """The same with ordinary PCA; (k,)."""
        return self.pca_loss - self.own_loss

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, as lists."""
        return {
            "group": [label_text(label, self.group_names) for label in self.labels],
            "rows": self.count.tolist(),
            "own PCA loss in sample": self.own_loss_in_sample.tolist(),
            "own PCA loss held out": self.own_loss_held_out.tolist(),
            "own PCA loss estimate": self.own_loss.tolist(),
            "PCA loss held out": self.pca_loss.tolist(),
            "fair loss held out": self.loss.tolist(),
            "PCA disparity estimate": self.pca_disparity.tolist(),
            "fair disparity estimate": self.disparity.tolist(),
        }

    @property
    def caution(self) -> str | None:
        """What to know before relying on the choice, if ordinary PCA was chosen."""
        return self._choice if np.isinf(self.shrinkage) else None

    def sentences(self) -> list[str]:
        """What was chosen and what was not held out, in words."""
        said = [] if len(self.candidates) < len(CANDIDATES) else [self._choice]
        if self.not_held_out is not None and self.not_held_out.any():
            names = [
                label_text(label, self.group_names)
                for label, large in zip(self.labels, self.not_held_out, strict=True)
                if large
            ]
            said.append(f"Large enough not to be held out: {listed(names, 5)}.")
        return said

    @property
    def _choice(self) -> str:
        if np.isinf(self.shrinkage):
            return (
                "Ordinary PCA was chosen: from so few rows of the small groups nothing better can "
                "be learnt for the worst-off group, as held-out rows show."
            )
        if self.shrinkage == 0.0:
            return "No shrinkage was chosen: none did clearly better on held-out rows."
        n0 = f"{self.shrinkage:g}"
        return f"A shrinkage of {n0} rows was chosen: it did best on held-out rows."

    def __repr__(self) -> str:
        return "\n".join([text_table(*self._cells()), *self.sentences()])

    def _repr_html_(self) -> str:
        return html_table(*self._cells()) + "".join(f"<p>{text}</p>" for text in self.sentences())

    def _cells(self) -> tuple[list[str], list[list[str]], list[str]]:
        columns = self.to_dict()
        form = number_format([np.array(c) for name, c in columns.items() if "loss" in name])
        heads = [
            name.replace(" loss ", " loss\n").replace(" disparity ", " disparity\n")
            for name in columns
        ]
        rows = [
            [group, f"{count:,}", *(formatted(value, form) for value in values)]
            for group, count, *values in zip(*columns.values(), strict=True)
        ]
        largest = [formatted(float(d.max()), form) for d in (self.pca_disparity, self.disparity)]
        return heads, rows, ["largest", *[""] * 6, *largest]


def cross_fit(
    cells: GroupMoments,
    groups: str | None,
    problem: Problem,
    solver: Solver,
    candidates: Sequence[float],
    shrinkage: float | None = None,
) -> CrossFit | None:
    """Judge amounts of shrinkage on held-out rows.

    Parameters
    ----------
    cells : GroupMoments
        By group and fold, of intersections.
    groups : str or None
        What groups the problem has, as for `FairPCA`.
    problem : Problem
        That of all rows.
    solver : Solver
    candidates : sequence of float
        Amounts in rising order, the last infinite.
    shrinkage : float, default=None
        The amount among them that is given; None chooses the best.

    Returns
    -------
    CrossFit or None
        None where no rows can be held out: all groups are large, or all rows are the same.
    """
    folds = _Folds(cells, groups, problem)
    if not folds.numbers:
        return None
    k, m = problem.n_groups, len(candidates)
    kept, own_kept, traces = np.zeros((m, k)), np.zeros(k), np.zeros(k)
    with warnings.catch_warnings():
        # What solvers say of parts of the rows, they say of all rows too.
        warnings.simplefilter("ignore", FairnessWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        for fold in folds.numbers:
            training = folds.training(fold)
            centers = folds.centers(training)
            traces += folds.traces(fold, centers)
            own_kept += folds.own_kept(fold, training, centers)
            for j, n0 in enumerate(candidates):
                found = solver.solve(shrunk_problem(training, n0))
                factors = 1.0 if found.retention is None else found.retention
                kept[j] += folds.kept(fold, found.basis, centers, factors)
    n = problem.moments.effective_count
    share = np.where(n >= _ENOUGH * problem.moments.n_features, N_FOLDS / (2 * N_FOLDS - 1), 0.5)
    in_sample, held_out = problem.traces - problem.own_gains, traces - own_kept
    own = share * in_sample + (1.0 - share) * held_out
    measures = np.array([_measures(problem, own, traces - row, row) for row in kept])
    counted = n >= min(_FEWEST, n.max())
    scores = np.array([_score(problem, row, counted) for row in measures])
    if shrinkage is None:
        sizes = np.abs(measures[:, counted]).max(axis=1) if problem.goal == "bounds" else scores
        best = _choice(scores, np.abs(sizes), bool(n.max() < problem.moments.n_features))
    else:
        best = list(candidates).index(shrinkage)
    return CrossFit(
        labels=problem.moments.labels,
        count=problem.moments.count,
        shrinkage=float(candidates[best]),
        candidates=tuple(map(float, candidates)),
        scores=scores,
        measures=measures,
        own_loss_in_sample=in_sample,
        own_loss_held_out=held_out,
        own_loss=own,
        loss=traces - kept[best],
        pca_loss=traces - kept[-1],
        group_names=problem.moments.group_names,
        not_held_out=folds.not_held_out,
    )


def chosen_shrinkage(
    asked: float | str, gathered: Gathered, groups: str | None, problem: Problem, solver: Solver
) -> tuple[float, CrossFit | None]:
    """The shrinkage of a fit in rows, and what it does on held-out rows, where that is known."""
    moments, cells = gathered.moments, gathered.cells
    automatic = asked == "auto"
    if cells is None or len(moments.labels) == 1:
        large = are_large(moments.effective_count, moments.n_features).all()
        if automatic and not large and len(moments.labels) > 1:
            raise ValueError(
                'shrinkage="auto" needs moments by fold: take them with folds=True, as '
                "GroupMoments.from_rows and read_moments do, or give shrinkage as a number of rows."
            )
        return (0.0 if automatic else float(asked)), None
    if automatic:
        judged = cross_fit(cells, groups, problem, solver, CANDIDATES)
        if judged is None:
            large = are_large(moments.effective_count, moments.n_features).all()
            return (0.0 if large else np.inf), None
        return judged.shrinkage, judged
    candidates = (float(asked),) if np.isinf(float(asked)) else (float(asked), np.inf)
    return float(asked), cross_fit(cells, groups, problem, solver, candidates, float(asked))


def _measures(problem: Problem, own: Array, loss: Array, kept: Array) -> Array:
    """The measure of each group that loses and keeps so much on held-out rows."""
    measured = {"disparity": loss - own, "loss": loss}.get(problem.measure, -kept)
    measures: Array = measured / problem.measured.units
    return measures


def _score(problem: Problem, measures: Array, counted: NDArray[np.bool_]) -> float:
    """What is to be small on held-out rows, by what is asked for."""
    if problem.goal == "equal":
        return float(np.ptp(measures[counted]))
    if problem.goal == "bounds":
        return float((measures - problem.caps)[counted].max())
    return float(measures[counted].max())


def _choice(scores: Array, sizes: Array, wide: bool) -> int:
    """The amount with the least score, or where that is hardly less none, or PCA if wide.

    What is hardly less is judged by the sizes of what the scores are of.
    """
    # Among equals the most shrinkage, and with it the least fitted to these rows.
    best = len(scores) - 1 - int(scores[::-1].argmin())
    other, least = (len(scores) - 1, _WORTHWHILE_IF_WIDE) if wide else (0, _WORTHWHILE)
    gain = scores[other] - scores[best]
    return best if gain > least * sizes[other] else other


class _Folds:
    """The parts of groups that lie in one fold each, and problems of all folds but one."""

    def __init__(self, cells: GroupMoments, groups: str | None, problem: Problem) -> None:
        self._cells, self._problem = cells, problem
        plain = labels_without_folds(cells.labels)
        orders = of_groups(cells.group_names, cells.group_orders)["group_orders"]
        _, parts = overlapping(plain, groups, orders)
        self._group_of = np.array([plain.index(without_fold(label)) for label in cells.labels])
        parts = np.eye(len(plain), dtype=bool) if parts is None else parts
        self._members = parts[:, self._group_of]
        self._fold = np.array([int(label[-1]) for label in cells.labels])  # type: ignore[index]
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
        bounds = None if problem.bounds is None else problem.bounds[some]
        return replace(problem, moments=moments, bounds=bounds)

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

    def kept(self, fold: int, basis: Array | None, centers: Array, factors: Any = 1.0) -> Array:
        """The same of what they keep in a subspace."""
        if self._problem.centering == "group":
            rows = [self._sums(fold, basis, center, factors) for center in centers]
        else:
            rows = [self._sums(fold, basis, centers[0], factors)] * len(centers)
        return self._shares(np.array(rows))

    def own_kept(self, fold: int, training: Problem, centers: Array) -> Array:
        """The same, each group in its own subspace; without one, in that of ordinary PCA."""
        own = dict(zip(training.moments.labels, training.own_subspaces, strict=True))
        rows = []
        for label, center in zip(self._problem.moments.labels, centers, strict=True):
            basis = own.get(label, training.pca_basis)
            rows.append(self._sums(fold, basis, center))
        return self._shares(np.array(rows))

    def _sums(self, fold: int, basis: Array | None, center: Array, factors: Any = 1.0) -> Array:
        """What each part keeps if it is in the fold; of one that is in none, its share of it.

        Without a basis, all that there is.
        """
        cells = self._cells
        offsets = cells.mean - center
        matrices = scatter_matrices(cells.scatter, offsets, cells.weight, "sum", "global")
        kept: Array = matrices.traces if basis is None else matrices.kept(basis, basis * factors)
        return kept * np.where(self._fold == -1, 1.0 / len(self.numbers), self._fold == fold)

    def _shares(self, sums: Array) -> Array:
        """The sums over each group's parts, (k, n_parts) or the same for all, per weight."""
        total = (self._members * sums).sum(axis=1)
        if self._problem.loss == "sum":
            return np.asarray(total)
        return np.asarray(total / (self._members @ self._cells.weight))

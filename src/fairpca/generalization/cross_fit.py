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
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from fairpca._linalg.device import blended_scatters, diagonals, inner_products, scatter_matrices
from fairpca._linalg.types import Array
from fairpca.data import GroupedData
from fairpca.exceptions import FairnessWarning, warn_user
from fairpca.folds import N_FOLDS, are_large, labels_without_folds, of_groups, without_fold
from fairpca.groups import overlapping
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers import Solver
from fairpca.text import (
    TextTable,
    formatted,
    html_table,
    label_text,
    laid_out,
    listed,
    most_of,
    number_format,
    short_texts,
)

# Problems of all rows but those of a fold, and what the rows of the fold keep and lose there.


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
        self._cells, self._problem = cells, problem
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
        return kept * self._in_fold(fold)

    def _shares(self, sums: Array) -> Array:
        """The sums over each group's parts, (k, n_parts) or the same for all, per weight."""
        total = (self._members * sums).sum(axis=1)
        if self._problem.aggregation == "sum":
            return np.asarray(total)
        return np.asarray(total / (self._members @ self._cells.weight))


# How much the rows of groups say of their populations: the shrinkage that this suggests.
# Matrices of groups differ because their populations do, and because rows are drawn at random.
# What chance contributes is seen from the folds of a group, which differ by chance alone; the
# rest is due to the populations. With σ² the variance of the matrix of one row, and τ² that of
# the populations' matrices, the shrunk matrices (n_i A_i + n0 A) / (n_i + n0) are nearest to
# those of the populations with n0 = σ²/τ². Bühlmann and Straub's credibility (1970) is this for
# numbers.

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

    def __getitem__(self, kept: NDArray[np.bool_]) -> _Parts:
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


# Shrinkage: the groups' covariances drawn towards that of all rows, so that noise counts less.
# With n_i rows and a shrinkage of n0 rows, group i gets the matrix ``A_i(n0) = (n_i A_i + n0 A)
# / (n_i + n0)``: as if n0 further rows of it had been drawn from all rows. n0 = 0 leaves the
# problem as it is, and with n0 = inf all groups are the same, which gives ordinary PCA. With
# weights in proportion to n_i + n0 the weighted mean of the matrices is A still, so the total
# loss is that of the rows.


def check_shrinkage(shrinkage: object, name: str = "shrinkage") -> None:
    """Raise ValueError unless this is "auto" or a number of rows."""
    if isinstance(shrinkage, str):
        known = shrinkage == "auto"
    else:
        number = isinstance(shrinkage, Real) and not isinstance(shrinkage, bool)
        known = number and float(shrinkage) >= 0.0  # type: ignore[arg-type]
    if not known:
        raise ValueError(
            f'{name} must be "auto" or a number of rows of at least 0 (not a share; infinity '
            f"gives ordinary PCA), got {shrinkage!r}."
        )


def shrunk_moments(
    moments: GroupMoments, n0: float, aggregation: str, centering: str
) -> GroupMoments:
    """Moments whose groups have the shrunk matrices; all means are that of all rows.

    Parameters
    ----------
    moments : GroupMoments
    n0 : float
        Shrinkage in rows of equal weight; infinity gives every group the same matrix.
    aggregation, centering : str
        As for `Problem`. With "sum" a group's loss stays that of as many rows as it has, so that
        the total loss is only nearly that of the rows.
    """
    n, weight = moments.effective_count, moments.weight
    own = np.zeros(len(n)) if np.isinf(n0) else n / (n + n0)
    if aggregation == "mean":
        # Over 1 + n0, which makes no difference, so that no n0 is too large.
        grown = weight / n * (1.0 if np.isinf(n0) else (n + n0) / (1.0 + n0))
        weight = grown * (weight.sum() / grown.sum())
    offsets = moments.offsets if centering == "global" else np.zeros_like(moments.mean)
    scatter = blended_scatters(moments.scatter, offsets, moments.weight, own, weight)
    mean = np.tile(moments.total_mean, (len(weight), 1))
    return replace(moments, weight=weight, mean=mean, scatter=scatter, weight_squares=None)


def shrunk_problem(problem: Problem, n0: float) -> Problem:
    """The problem with its groups' matrices shrunk."""
    if n0 == 0.0:
        return problem
    moments = shrunk_moments(problem.moments, n0, problem.aggregation, problem.centering)
    return replace(problem, moments=moments)


def unshrunk(solution: Solution, problem: Problem, n0: float) -> Solution:
    """The solution with the losses that it has in the problem itself.

    Its certificate is still about the shrunk problem, and says so.
    """
    where = (solution.basis, solution.retention)
    return replace(
        solution,
        group_losses=problem.group_losses(*where),
        disparities=problem.disparities(*where),
        total_loss=problem.total_loss(*where),
        certificate=replace(solution.certificate, shrinkage=float(n0)),
    )


CANDIDATES = (0.0, 10.0, 30.0, 100.0, 300.0, 1000.0, np.inf)
"""Amounts of shrinkage, in rows, among which "auto" chooses; the last gives ordinary PCA."""

_FEWEST = 5
"""Rows below which a group has no say in the choice: its few rows would be held out one by one."""

_SAME_SCORE = 1e-9
"""Difference of scores, relative to the largest, that is rounding: they count as equal."""

_UNTOLD = 2.0
"""Standard errors up to which a score may exceed the least one and still be as good: held-out rows
do not tell which of these amounts is the best."""

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
        What is to be small: the largest measure of a group on held-out rows, their difference
        ("equal"), or excess over a bound. Groups of fewer than five rows do not count.
    score_errors : array of shape (m,)
        Standard errors of the scores' differences from the least of them: within two of these,
        held-out rows do not tell which amount is the better.
    credible : float
        The amount that the differences between groups and between folds suggest. "auto" takes the
        nearest to it, by ratio, among the amounts that may be the best on held-out rows.
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

    See Also
    --------
    fairpca.plotting.ShrinkageDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> X = np.random.default_rng(0).normal(size=(320, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:20] = X[:20, ::-1]
    >>> fair = FairPCA(2, shrinkage="auto").fit(X, sensitive_features=["a"] * 20 + ["b"] * 300)
    >>> fair.cross_fit_.disparity.shape
    (2,)
    """

    labels: tuple[Hashable, ...]
    count: NDArray[np.int64]
    shrinkage: float
    candidates: tuple[float, ...]
    scores: Array
    score_errors: Array
    credible: float
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
    def possible(self) -> tuple[float, ...]:
        """The amounts that may be the best, as far as held-out rows tell."""
        return tuple(self.candidates[j] for j in _possible(self.scores, self.score_errors))

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
        others = [f"{n0:g}" for n0 in self.possible if np.isfinite(n0)]
        others += ["ordinary PCA"] if np.inf in self.possible else []
        why = "it did best on held-out rows"
        if len(others) > 1:
            known = np.isfinite(self.credible)
            rows = f"{float(f'{self.credible:.2g}'):g}" if known else ""
            near = f"it is the nearest to the {rows} rows that the groups' differences"
            alike = "the groups differ by no more than chance may make them"
            why = (
                f"held-out rows cannot tell {' and '.join((', '.join(others[:-1]), others[-1]))} "
                f"apart, and {f'{near} suggest' if known else alike}"
            )
        if np.isinf(self.shrinkage):
            return (
                "Ordinary PCA was chosen, as nothing better can be learnt from these rows for the "
                f"worst-off group: {why}."
            )
        n0 = "No shrinkage" if self.shrinkage == 0.0 else f"A shrinkage of {self.shrinkage:g} rows"
        return f"{n0} was chosen: {why}."

    def __repr__(self) -> str:
        return laid_out(self.text_parts())

    def text_parts(self) -> list[TextTable | str]:
        """What is printed: the table, and the sentences below it."""
        head, rows, foot = self._cells()
        shown, left = most_of(np.maximum(self.disparity, self.pca_disparity))
        table = TextTable(head, [rows[i] for i in shown], foot, units=(1, 3, 2, 2))
        return [table, *filter(None, [left]), *self.sentences()]

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
            for group, (_, count, *values) in zip(
                short_texts(columns["group"]), zip(*columns.values(), strict=True), strict=True
            )
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
    folds = FoldProblems(cells, groups, problem)
    if not folds.numbers:
        return None
    shape = len(folds.numbers), len(candidates), problem.n_groups
    kept_by_fold, traces_by_fold = np.zeros(shape), np.zeros((shape[0], shape[2]))
    own_kept = np.zeros(problem.n_groups)
    with warnings.catch_warnings():
        # What solvers say of parts of the rows, they say of all rows too.
        warnings.simplefilter("ignore", FairnessWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        for i, fold in enumerate(folds.numbers):
            training = folds.training(fold)
            centers = folds.centers(training)
            traces_by_fold[i] = folds.traces(fold, centers)
            own_kept += folds.own_kept(fold, training, centers)
            for j, n0 in enumerate(candidates):
                found = solver.solve(shrunk_problem(training, n0))
                factors = 1.0 if found.retention is None else found.retention
                kept_by_fold[i, j] = folds.kept(fold, found.basis, centers, factors)
    kept, traces = kept_by_fold.sum(axis=0), traces_by_fold.sum(axis=0)
    n = problem.moments.effective_count
    share = np.where(n >= _ENOUGH * problem.moments.n_features, N_FOLDS / (2 * N_FOLDS - 1), 0.5)
    in_sample, held_out = problem.traces - problem.own_gains, traces - own_kept
    own = share * in_sample + (1.0 - share) * held_out
    counted = n >= min(_FEWEST, n.max())

    def judged(kept: Array, traces: Array, counted: NDArray[np.bool_]) -> tuple[Array, Array]:
        measures = np.array([_measures(problem, own, traces - row, row) for row in kept])
        return measures, np.array([problem.goal.score(row, counted) for row in measures])

    measures, scores = judged(kept, traces, counted)
    # The same without each fold, whose share of each group's rows is missing.
    others = []
    for i, fold in enumerate(folds.numbers):
        left = 1.0 - folds.share(fold)
        some = counted & (left > 1e-9)
        if some.any():
            grown = np.where(some, left, 1.0)
            without = (kept - kept_by_fold[i]) / grown, (traces - traces_by_fold[i]) / grown
            others.append(judged(*without, some)[1])
    errors = _errors(scores, np.array(others))
    credible = credible_shrinkage(folds, problem)
    if shrinkage is None:
        best = _choice(scores, errors, candidates, credible)
    else:
        best = list(candidates).index(shrinkage)
    return CrossFit(
        labels=problem.moments.labels,
        count=problem.moments.count,
        shrinkage=float(candidates[best]),
        candidates=tuple(map(float, candidates)),
        scores=scores,
        score_errors=errors,
        credible=credible,
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
    asked: float | str,
    grouped_data: GroupedData,
    groups: str | None,
    problem: Problem,
    solver: Solver,
) -> tuple[float, CrossFit | None]:
    """The shrinkage of a fit in rows, and what it does on held-out rows, where that is known."""
    moments, cells = grouped_data.moments, grouped_data.cells
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
            if are_large(moments.effective_count, moments.n_features).all():
                return 0.0, None
            warn_user(
                'No rows could be held out for shrinkage="auto": all fall into one fold, as equal '
                "rows do. Ordinary PCA was chosen."
            )
            return np.inf, None
        return judged.shrinkage, judged
    candidates = (float(asked),) if np.isinf(float(asked)) else (float(asked), np.inf)
    return float(asked), cross_fit(cells, groups, problem, solver, candidates, float(asked))


def _measures(problem: Problem, own: Array, loss: Array, kept: Array) -> Array:
    """The measure of each group that loses and keeps so much on held-out rows."""
    baseline = problem.goal.measured.baseline
    measured = {"own": loss - own, "all": loss, "none": -kept}[baseline]
    return np.asarray(measured / problem.affine.units)


def _least(scores: Array) -> int:
    """The amount with the least score; among equals the most shrinkage, which fits rows least."""
    equal = scores <= scores.min() + _rounding(scores)
    return int(np.flatnonzero(equal)[-1])


def _errors(scores: Array, others: Array) -> Array:
    """Standard errors of differences from the least score, by those without each fold.

    That is the jackknife; zero where there are not two folds.
    """
    if len(others) < 2:
        return np.zeros(len(scores))
    gaps = others - others[:, [_least(scores)]]
    errors: Array = np.sqrt((len(gaps) - 1) * gaps.var(axis=0))
    return errors


def _possible(scores: Array, errors: Array) -> NDArray[np.int64]:
    """The amounts that may be the best: held-out rows do not tell them from the one that is."""
    return np.flatnonzero(scores - scores.min() <= _UNTOLD * errors + _rounding(scores))


def _rounding(scores: Array) -> float:
    """What rounding can make of a difference of scores."""
    return _SAME_SCORE * float(np.abs(scores).max())


def _choice(scores: Array, errors: Array, candidates: Sequence[float], credible: float) -> int:
    """The amount that is nearest to the credible one, among those that may be the best."""
    possible = _possible(scores, errors)
    # Nearest by ratio; below and above all finite amounts lie none and all.
    wanted, *levels = np.log(np.clip([credible, *candidates], 3.0, 3000.0))
    return int(possible[np.abs(np.array(levels)[possible] - wanted).argmin()])

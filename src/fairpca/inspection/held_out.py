"""held_out_losses: what groups lose on rows that were held out, for several dimensions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
import scipy.stats
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, has_fit_parameter

from fairpca._linalg.dense import dense_blocks, leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.criteria import as_criterion
from fairpca.exceptions import FairnessWarning, warn_user
from fairpca.fair_pca import FairPCA
from fairpca.generalization.bootstrap import CONFIDENCE
from fairpca.groups import chosen_columns, named_columns, without_columns
from fairpca.inspection.pipelines import Step, find_reduction
from fairpca.inspection.scoring import ScoredGroups, row_errors
from fairpca.measures import MEASURES, check_measure
from fairpca.text import (
    MOST_NAMES,
    Printed,
    TextTable,
    formatted,
    listed,
    number_format,
    short_text,
)
from fairpca.validation import (
    check_rows,
    check_same_index,
    check_seed,
    check_weights,
    check_whole_number,
)

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Rows to fit to, and rows that are held out."""


@dataclass(frozen=True, eq=False)
class LossCurve:
    """What groups lose on held-out rows with one reduction, for m dimensions.

    Attributes
    ----------
    loss : array of shape (m, k)
        Loss or disparity of each group over the held-out rows of all folds.
    low, high : arrays of shape (m, k)
        Intervals that hold for all groups together with about 95 % confidence.

    See Also
    --------
    fairpca.metrics.held_out_losses : Measures one.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.metrics import held_out_losses
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> held_out = held_out_losses(FairPCA(), X, sensitive_features=groups, dimensions=[1, 2])
    >>> held_out.reduction.worst.shape
    (2,)
    """

    loss: Array
    low: Array
    high: Array

    @property
    def worst(self) -> Array:
        """The largest loss of a group; (m,)."""
        return np.asarray(self.loss.max(axis=1))

    @property
    def worst_group(self) -> NDArray[np.intp]:
        """Position of the group that has it; (m,)."""
        return np.asarray(self.loss.argmax(axis=1))

    @property
    def worst_interval(self) -> tuple[Array, Array]:
        """Where the largest loss lies, whichever group has it; (m,) each.

        The groups' intervals hold together, so the largest of the true losses is between the
        largest of their lower ends and the largest of their upper ends. That a group was picked
        for its large loss is allowed for.
        """
        return np.asarray(self.low.max(axis=1)), np.asarray(self.high.max(axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class HeldOutLosses(Printed):
    """Held-out losses of the groups for several dimensions, beside those of ordinary PCA.

    Attributes
    ----------
    dimensions : tuple of m int
        The numbers of dimensions.
    groups : tuple of k str
        The groups; those with fewer than ten rows are one.
    count : integer array of shape (k,)
        Held-out rows of each group.
    reduction, pca : LossCurve
        What they lose with the reduction, and with ordinary PCA fitted to the same rows.
    measure : {"loss", "disparity"}
        What is measured.
    relative : bool
        Whether that is in shares of the groups' variances.
    name : str
        What the reduction is called.

    See Also
    --------
    fairpca.metrics.held_out_losses : Measures them.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.metrics import held_out_losses
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> held_out = held_out_losses(FairPCA(), X, sensitive_features=groups, dimensions=[1, 2])
    >>> held_out.groups
    ('a', 'b')
    """

    dimensions: tuple[int, ...]
    groups: tuple[str, ...]
    count: NDArray[np.int64]
    reduction: LossCurve
    pca: LossCurve
    measure: str
    relative: bool
    name: str

    def to_dict(self) -> dict[str, list[Any]]:
        """The worst group for each dimension, with its loss and interval, by columns."""
        columns: dict[str, list[Any]] = {"dimensions": list(self.dimensions)}
        ordinary = "ordinary PCA" if self.name == "PCA" else "PCA"
        for name, curve in ((self.name, self.reduction), (ordinary, self.pca)):
            low, high = curve.worst_interval
            columns[f"{name} worst group"] = [self.groups[i] for i in curve.worst_group]
            columns[f"{name} {self.measure}"] = curve.worst.tolist()
            columns[f"{name} low"], columns[f"{name} high"] = low.tolist(), high.tolist()
        return columns

    def text_parts(self) -> list[TextTable | str]:
        """What is printed: the table, and what it is of."""
        columns = self.to_dict()
        numbers = [column for name, column in columns.items() if name.endswith("high")]
        form = ".4f" if self.relative else number_format(numbers)
        cells = [
            [formatted(v, form) if isinstance(v, float) else short_text(str(v)) for v in column]
            for column in columns.values()
        ]
        heads = [*("\n".join(name.rsplit(" ", 1)) for name in columns)]
        unit = "shares of the group's variance" if self.relative else "squared units of X"
        what = {"loss": "Losses", "disparity": "Disparities"}[self.measure]
        said = f"{what} on held-out rows, in {unit}; intervals of about 95 %."
        return [TextTable(heads, [*zip(*cells, strict=True)], units=(4, 4)), said]


def held_out_losses(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any,
    dimensions: Iterable[int],
    sample_weight: ArrayLike | None = None,
    cv: Any = 5,
    measure: str | None = None,
    random_state: int | None = None,
) -> HeldOutLosses:
    """What each group loses on rows that a reduction was not fitted to, for several dimensions.

    Copies are fitted to the training rows of each fold, and each group's loss is pooled over the
    rows held out in all folds *before* the worst group is picked. (The mean over folds of each
    fold's worst group is too large: small groups are worst by chance, a different one each time.)

    The intervals come from the spread of the held-out rows' errors, by Student's distribution, and
    are widened to hold for all groups together (Šidák). They are about the losses of the subspaces
    that were fitted, and do not allow for other training rows. Two curves are measured on the same
    rows, so they can differ significantly although intervals overlap.

    Parameters
    ----------
    estimator : FairPCA, or any other transformer with ``n_components``, or Pipeline
        It need not be fitted. In a pipeline, the steps before the reduction are fitted to the
        training rows too, and those after it are left out.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        All rows, to be split into folds.
    y : array-like of shape (n_samples,), default=None
        For steps before the reduction that use it.
    sensitive_features : str, list of str or array-like
        The group of each row, or names of columns of X, which the reduction then leaves out unless
        its ``keep_sensitive`` is True.
    dimensions : iterable of int
        Values of ``n_components`` to try.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights of the rows, for the reduction, as far as it takes them, and the
        losses.
    cv : int, splitter or iterable of (train, test), default=5
        A number makes folds of random rows with as many of every group as can be. Rows of one
        household, say, belong in one fold: pass ``GroupKFold().split(X, groups=households)``.
    measure : str or None, default=None
        One of the measures of `MinMax`; of what is kept, what is lost instead. None is that of the
        criterion of a `FairPCA`, and "loss" for other reductions. A disparity is the held-out loss
        minus an estimate of what the group's own PCA would lose: the mean of what it loses of the
        training rows that it is fitted to, which is too little, and of held-out rows, which is too
        much. Variances are measured from the fitted mean.
    random_state : int or None, default=None
        Seed of the folds; None is a fixed seed too.

    Returns
    -------
    HeldOutLosses
        It prints as a table; `fairpca.plotting.HeldOutLossDisplay` draws it.

    See Also
    --------
    fairpca.metrics.WorstGroupScorer : A scorer for searches.
    fairpca.plotting.HeldOutLossDisplay : Draws them.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_adult
    >>> from fairpca.metrics import held_out_losses
    >>> adult = load_adult(sensitive="race", as_frame=False)
    >>> pipe = make_pipeline(StandardScaler(), FairPCA(criterion="minmax"))
    >>> losses = held_out_losses(
    ...     pipe, adult.data, sensitive_features=adult.sensitive_features, dimensions=[2, 5]
    ... )
    >>> losses.reduction.worst.round(2), losses.pca.worst.round(2)
    (array([2.07, 1.29]), array([16.99, 12.18]))
    """
    step = find_reduction(estimator, "held_out_losses")
    reduction = step.reduction
    if "n_components" not in reduction.get_params():
        raise TypeError(f"{type(reduction).__name__} has no n_components to be varied.")
    if not isinstance(dimensions, Iterable):
        raise TypeError(f"dimensions must be a list of numbers, like [2, 4], got {dimensions!r}.")
    dimensions = tuple(dimensions)
    if not dimensions:
        raise ValueError("dimensions must be one number of components or more, got none.")
    for r in dimensions:
        check_whole_number("dimensions", r)
    judged = MEASURES["loss"]
    if measure is not None:
        judged = check_measure(measure)
    elif (criterion := getattr(reduction, "criterion", None)) is not None:
        judged = as_criterion(criterion).measured
    check_seed(random_state)
    check_same_index(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
    n = _num_samples(X)
    weights = check_weights(sample_weight, n)
    names = named_columns(X, sensitive_features)
    given = chosen_columns(X, names) if names else sensitive_features
    groups = ScoredGroups.of_rows(reduction, given, n, weights)
    unlabelled = np.asarray(groups.weights.sum(axis=0)).ravel() == 0.0
    if unlabelled.any():  # and left out: ordinary PCA is fitted to the same rows
        weights = np.where(unlabelled, 0.0, 1.0 if weights is None else weights)
    left_out = () if getattr(reduction, "keep_sensitive", False) else names
    splits = [*_splits(cv, X, y, groups, random_state)]
    times = sum((np.bincount(test, minlength=n) for _, test in splits), np.zeros(n, dtype=np.int64))
    if not times.any():
        raise ValueError("cv holds out no rows.")
    groups, held_out = _with_spread(groups, groups.held_out(times > 0))
    sums = _HeldOutSums(groups, held_out, dimensions, own=judged.is_disparity)
    for train, test in splits:
        parts = _prepared(step, X, y, train, test, left_out)
        known = {"sensitive_features": _safe_indexing(given, train)}
        if weights is not None:
            known["sample_weight"] = weights[train]
        with warnings.catch_warnings():
            # What they say of parts of the rows, the fit to all of them says too.
            warnings.simplefilter("ignore", FairnessWarning)
            sums.add(reduction, parts, (train, test), known)
    errors, distances, own = sums.means(np.maximum(times, 1))  # for rows held out several times
    ours, pca = (
        _curve(held_out, part, distances, own, relative=judged.relative) for part in errors
    )
    name = "fair" if isinstance(reduction, FairPCA) else type(reduction).__name__
    return HeldOutLosses(
        dimensions=tuple(int(r) for r in dimensions),
        groups=held_out.texts,
        count=held_out.count,
        reduction=ours,
        pca=pca,
        measure="disparity" if judged.is_disparity else "loss",
        relative=judged.relative,
        name=name,
    )


class _HeldOutSums:
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
        """The same for each group's own PCA, from the mean of all rows; of both parts of the rows.

        It loses too little of the rows that it was fitted to, and of others too much by as much.
        """
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
                fitted = self._left(train[fit], center, axes)[1]
                fitted = np.average(fitted, axis=1, weights=weights[fit_at])
                own[:, new_at] += (fitted[:, None] + self._left(test[new], center, axes)[1]) / 2.0

    def means(self, times: NDArray[np.int64]) -> tuple[Array, Array, list[Array]]:
        """Errors, squared distances from the mean, and errors with the own PCA of each group."""
        own = [each / times[self._held_out.members(i)[0]] for i, each in enumerate(self._own)]
        return self._errors / times, self._distances / times, own

    def _own_axes(self, rows: Any, weights: Array, center: Array) -> Array:
        """The leading axes of rows about a centre, as many as there are dimensions to try."""
        n, d = rows.shape
        most = max(self._dimensions)
        roots = np.sqrt(weights)[:, None]
        if n <= d:
            centred = (rows.toarray() if scipy.sparse.issparse(rows) else rows) - center
            return np.linalg.svd(centred * roots, full_matrices=False)[2][:most]
        matrix = np.zeros((d, d))
        for part, block in dense_blocks(rows):
            weighted = (block - center) * roots[part]
            matrix += weighted.T @ weighted
        return np.asarray(leading_eigenpairs(matrix, most)[1].T)

    def _left(self, rows: Any, center: Array, axes: Array) -> tuple[Array, Array]:
        """Squared distances of rows from a centre, and what the first axes leave of them; (m, n).

        There can be fewer axes than dimensions: the others are of no use to the rows they are of.
        """
        distances, places = np.empty(rows.shape[0]), np.minimum(self._places, len(axes) - 1)
        left = np.empty((len(places), rows.shape[0]))
        for part, block in dense_blocks(rows):
            centred = block - center
            distances[part] = np.square(centred).sum(axis=1)
            kept = np.cumsum(np.square(centred @ axes.T), axis=1)
            left[:, part] = np.maximum(distances[part] - kept[:, places].T, 0.0)
        return distances, left


def _places(rows: NDArray[np.intp], members: NDArray[np.integer[Any]]) -> tuple[Any, Any]:
    """Where those that are in both stand in each."""
    _, first, second = np.intersect1d(rows, members, assume_unique=True, return_indices=True)
    return first, second


def _splits(
    cv: Any, X: Any, y: Any, groups: ScoredGroups, random_state: int | None
) -> Iterator[Split]:
    if not isinstance(cv, Integral):
        yield from check_cv(cv).split(X, y)
        return
    check_whole_number("cv", cv, least=2)
    n = groups.weights.shape[1]
    if cv > n:
        raise ValueError(f"cv={cv} must be at most the number of rows, {n}.")
    # Rows in random order, one group after the other, are dealt to the folds in turn.
    order = np.random.default_rng(random_state or 0).permutation(n)
    member = np.asarray((groups.weights > 0.0).argmax(axis=0)).ravel()
    order = order[np.argsort(member[order], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % cv
    for i in range(cv):
        yield np.flatnonzero(fold != i), np.flatnonzero(fold == i)


def _prepared(
    step: Step, X: Any, y: Any, train: Any, test: Any, left_out: Sequence[str]
) -> tuple[Any, Any]:
    """The two parts of the rows as they reach the reduction."""
    fitted_to, held_out = _safe_indexing(X, train), _safe_indexing(X, test)
    target = None if y is None else _safe_indexing(y, train)
    for before in step.before:
        copy = clone(before)
        fitted_to, held_out = copy.fit_transform(fitted_to, target), copy.transform(held_out)
    return without_columns(fitted_to, left_out), without_columns(held_out, left_out)


def _with_spread(groups: ScoredGroups, held_out: ScoredGroups) -> tuple[ScoredGroups, ScoredGroups]:
    """The groups of which a spread can be told, which takes two held-out rows."""
    there = np.flatnonzero(held_out.count > 1)
    if len(there) == 0:
        raise ValueError("There are too few held-out rows: no group has two of them.")
    if len(there) < len(groups.texts):
        few = listed([groups.texts[i] for i in np.flatnonzero(held_out.count <= 1)], MOST_NAMES)
        warn_user(f"Groups with fewer than two held-out rows are left out: {few}.")
    return groups.only(there), held_out.only(there)


def _curve(
    groups: ScoredGroups, errors: Array, distances: Array, own: list[Array], *, relative: bool
) -> LossCurve:
    """What groups lose, with intervals, from the errors of rows for each of m dimensions, (m, n).

    A loss is a ratio of weighted sums of errors e and units v, which are 1 or squared distances
    from the mean; its variance is that of the sum of e - loss v, over the square of that of v.
    """
    loss, reach = np.zeros((2, len(errors), len(groups.texts)))
    each = CONFIDENCE ** (1.0 / len(groups.texts))  # Šidák: so that all hold together
    for i in range(len(groups.texts)):
        rows, weights = groups.members(i)
        beyond = errors[:, rows] - (own[i] if own else 0.0)
        units = distances[rows] if relative else np.ones(len(rows))
        total = float(weights @ units)
        if total == 0.0:
            continue  # a group without variance loses nothing of it
        loss[:, i] = beyond @ weights / total
        squares = np.square(beyond - loss[:, i, None] * units) @ np.square(weights)
        n = weights.sum() ** 2 / np.square(weights).sum()  # rows that count as much
        freedom = max(n - 1.0, np.finfo(float).eps)
        quantile = scipy.stats.t.ppf((1.0 + each) / 2.0, freedom)
        reach[:, i] = quantile * np.sqrt(squares * (n / freedom)) / total
    low, high = loss - reach, loss + reach
    if not own:  # a loss is not negative, and a projection loses no more than all
        most = np.maximum(loss, 1.0 if relative else np.inf)
        low, high = np.maximum(low, 0.0), np.minimum(high, most)
    return LossCurve(loss, low, high)

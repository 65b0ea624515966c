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

from fairpca._linalg.dense import dense_blocks
from fairpca._linalg.types import Array
from fairpca.criteria import as_criterion
from fairpca.exceptions import FairnessWarning, warn_user
from fairpca.fair_pca import FairPCA
from fairpca.generalization.bootstrap import CONFIDENCE
from fairpca.groups import chosen_columns, named_columns, without_columns
from fairpca.inspection.pipelines import Step, find_reduction
from fairpca.inspection.scoring import ScoredGroups, row_errors
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
    check_flag,
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
        Loss of each group over the held-out rows of all folds.
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
    relative : bool
        Whether losses are shares of the groups' variances.
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
    relative: bool
    name: str

    def to_dict(self) -> dict[str, list[Any]]:
        """The worst group for each dimension, with its loss and interval, by columns."""
        columns: dict[str, list[Any]] = {"dimensions": list(self.dimensions)}
        ordinary = "ordinary PCA" if self.name == "PCA" else "PCA"
        for name, curve in ((self.name, self.reduction), (ordinary, self.pca)):
            low, high = curve.worst_interval
            columns[f"{name} worst group"] = [self.groups[i] for i in curve.worst_group]
            columns[f"{name} loss"] = curve.worst.tolist()
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
        said = f"Losses on held-out rows, in {unit}; intervals of about 95 %."
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
    relative: bool | None = None,
    random_state: int | None = None,
) -> HeldOutLosses:
    """Cross-validated loss of each group, for several dimensions.

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
        A number makes folds of random rows with stratified by group. Rows of one
        household, say, belong in one fold: pass ``GroupKFold().split(X, groups=households)``.
    relative : bool or None, default=None
        Whether losses are shares of the groups' variances, from the fitted mean. None does as the
        measure of the criterion of a `FairPCA`, and gives squared units for other reductions.
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
    >>> from fairpca import FairPCA, MinMax
    >>> from fairpca.datasets import load_adult
    >>> from fairpca.metrics import held_out_losses
    >>> adult = load_adult(sensitive="race", as_frame=False)
    >>> pipe = make_pipeline(StandardScaler(), FairPCA(criterion=MinMax("share_lost")))
    >>> losses = held_out_losses(
    ...     pipe, adult.data, sensitive_features=adult.sensitive_features, dimensions=[2, 5]
    ... )
    >>> losses.reduction.worst.round(2), losses.pca.worst.round(2)
    (array([0.76, 0.51]), array([0.87, 0.56]))
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
    if relative is None:
        criterion = getattr(reduction, "criterion", None)
        relative = criterion is not None and as_criterion(criterion).measured.relative
    check_flag("relative", relative)
    check_seed(random_state)
    check_same_index(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
    n = _num_samples(X)
    weights = check_weights(sample_weight, n)
    if sensitive_features is None:
        raise ValueError("sensitive_features must name the group of each row, got None.")
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
    held_out = _with_spread(groups.held_out(times > 0))
    errors, distances = np.zeros((2, len(dimensions), n)), np.zeros(n)
    for train, test in splits:
        parts = _prepared(step, X, y, train, test, left_out)
        known = {"sensitive_features": _safe_indexing(given, train)}
        if weights is not None:
            known["sample_weight"] = weights[train]
        with warnings.catch_warnings():
            # What they say of parts of the rows, the fit to all of them says too.
            warnings.simplefilter("ignore", FairnessWarning)
            here, from_mean = _fold_errors(reduction, dimensions, *parts, known)
        errors[:, :, test] += here
        distances[test] += from_mean
    times = np.maximum(times, 1)  # for rows held out several times
    ours, pca = (
        _curve(held_out, part / times, distances / times, relative=relative) for part in errors
    )
    name = "fair" if isinstance(reduction, FairPCA) else type(reduction).__name__
    return HeldOutLosses(
        dimensions=tuple(int(r) for r in dimensions),
        groups=held_out.texts,
        count=held_out.count,
        reduction=ours,
        pca=pca,
        relative=relative,
        name=name,
    )


def _fold_errors(
    reduction: Any, dimensions: Sequence[int], train: Any, test: Any, known: dict[str, Any]
) -> tuple[Array, Array]:
    """Errors of held-out rows with the reduction and with ordinary PCA, and their distances.

    The errors are of shape (2, m, n), for m dimensions; squared distances are from the fitted mean.
    """
    weights = {name: known[name] for name in known if name == "sample_weight"}
    pca = FairPCA(max(dimensions), groups=None).fit(train, **weights)
    rows = check_rows(test)
    errors, distances = np.empty((2, len(dimensions), rows.shape[0])), np.empty(rows.shape[0])
    for part, block in dense_blocks(rows):
        centred = block - pca.mean_
        distances[part] = np.square(centred).sum(axis=1)
        kept = np.cumsum(np.square(centred @ pca.components_.T), axis=1)
        left = distances[part] - kept[:, np.array(dimensions) - 1].T
        errors[1][:, part] = np.maximum(left, 0.0)
    for i, r in enumerate(dimensions):
        copy = clone(reduction).set_params(n_components=r)
        copy.fit(train, **{name: known[name] for name in known if has_fit_parameter(copy, name)})
        errors[0, i] = row_errors(copy, test)[0]
    return errors, distances


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


def _with_spread(held_out: ScoredGroups) -> ScoredGroups:
    """The groups with at least two held-out rows, which takes two held-out rows."""
    there = np.flatnonzero(held_out.count > 1)
    if len(there) == 0:
        raise ValueError("There are too few held-out rows: no group has two of them.")
    if len(there) < len(held_out.texts):
        few = listed([held_out.texts[i] for i in np.flatnonzero(held_out.count <= 1)], MOST_NAMES)
        warn_user(f"Groups with fewer than two held-out rows are left out: {few}.")
    return held_out.only(there)


def _curve(groups: ScoredGroups, errors: Array, distances: Array, *, relative: bool) -> LossCurve:
    """What groups lose, with intervals, from the errors of rows for each of m dimensions, (m, n).

    A loss is a ratio of weighted sums of errors e and units v, which are 1 or squared distances
    from the mean; its variance is that of the sum of e - loss v, over the square of that of v.
    """
    loss, reach = np.zeros((2, len(errors), len(groups.texts)))
    each = CONFIDENCE ** (1.0 / len(groups.texts))  # Šidák: so that all hold together
    for i in range(len(groups.texts)):
        rows, weights = groups.members(i)
        lost = errors[:, rows]
        units = distances[rows] if relative else np.ones(len(rows))
        total = float(weights @ units)
        if total == 0.0:
            continue  # a group without variance loses nothing of it
        loss[:, i] = lost @ weights / total
        squares = np.square(lost - loss[:, i, None] * units) @ np.square(weights)
        n = weights.sum() ** 2 / np.square(weights).sum()  # rows that count as much
        freedom = max(n - 1.0, np.finfo(float).eps)
        quantile = scipy.stats.t.ppf((1.0 + each) / 2.0, freedom)
        reach[:, i] = quantile * np.sqrt(squares * (n / freedom)) / total
    # A loss is not negative, and a projection loses no more than all.
    most = np.maximum(loss, 1.0 if relative else np.inf)
    return LossCurve(loss, np.maximum(loss - reach, 0.0), np.minimum(loss + reach, most))

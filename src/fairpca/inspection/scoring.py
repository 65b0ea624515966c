"""Errors of reconstruction, and a scorer by the worst-off group."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.dense import dense_blocks, leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.criteria import as_criterion
from fairpca.exceptions import warn_user
from fairpca.fair_pca import FairPCA
from fairpca.generalization.bootstrap import NO_VARIANCE
from fairpca.groups import chosen_columns, encode_groups, named_columns, overlapping, table_names
from fairpca.inspection.audit import entering, squared_errors
from fairpca.inspection.pipelines import find_reduction
from fairpca.measures import MEASURES, Measure, check_measure
from fairpca.text import MOST_NAMES, label_text, listed
from fairpca.validation import check_rows, check_same_index, check_weights

_FEW_ROWS = 10
"""Groups with fewer rows are scored together: even normal errors in one direction then have a mean
square that is off by sqrt(2 / 10), nearly half of it, so the worst group would be chance."""


def reconstruction_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Mean squared distance between rows and their reconstructions.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples, n_features)
        The rows, and the rows after a reduction and back.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights of the rows.

    Returns
    -------
    float

    See Also
    --------
    fairpca.metrics.disparity_error : Minus what the rows' own PCA loses.

    Examples
    --------
    >>> from fairpca.metrics import reconstruction_error
    >>> reconstruction_error([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [3.0, 4.0]])
    2.0
    """
    check_same_index(y_true, y_pred=y_pred, sample_weight=sample_weight)
    true, pred = _checked(y_true, y_pred)
    errors = np.square(true - pred).sum(axis=1)
    return float(np.average(errors, weights=check_weights(sample_weight, len(true))))


def disparity_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    n_components: int,
    mean: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Reconstruction error minus that of the rows' own PCA in as many dimensions.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples, n_features)
        The rows of a group, and the same rows after a reduction and back.
    n_components : int
        Number of dimensions of the reduction.
    mean : array-like of shape (n_features,)
        Where the rows' own PCA is centred: the mean of all rows, of all groups, for disparities
        as `FairPCA` defines them.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights of the rows.

    Returns
    -------
    float

    See Also
    --------
    fairpca.metrics.reconstruction_error : The loss itself.

    Examples
    --------
    >>> from fairpca.metrics import disparity_error
    >>> rows = [[3.0, 0.0], [0.0, 1.0]]
    >>> disparity_error(rows, [[0.0, 0.0], [0.0, 1.0]], n_components=1, mean=[0.0, 0.0])
    4.0
    """
    check_same_index(y_true, y_pred=y_pred, sample_weight=sample_weight)
    true, _ = _checked(y_true, y_pred)
    if not 1 <= n_components <= true.shape[1]:
        raise ValueError(
            f"n_components must be from 1 to the number of columns, {true.shape[1]}, "
            f"got {n_components}."
        )
    weights = check_weights(sample_weight, len(true))
    weights = np.ones(len(true)) if weights is None else weights
    center = np.asarray(mean, dtype=np.float64)
    if center.shape != true.shape[1:]:
        raise ValueError(
            f"mean must be one number for each of the {true.shape[1]} columns, "
            f"got shape {center.shape}."
        )
    centred = true - center
    matrix = (centred.T * weights) @ centred / weights.sum()
    kept = leading_eigenpairs(matrix, n_components)[0].sum()
    own = max(float(np.trace(matrix) - kept), 0.0)
    return reconstruction_error(y_true, y_pred, sample_weight=sample_weight) - own


def _checked(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Array, Array]:
    true = check_array(y_true, dtype=np.float64, input_name="y_true")
    pred = check_array(y_pred, dtype=np.float64, input_name="y_pred")
    check_consistent_length(true, pred)
    if true.shape != pred.shape:
        raise ValueError(
            f"y_true has {true.shape[1]} columns and y_pred {pred.shape[1]}: bring the rows back "
            "with inverse_transform first."
        )
    return true, pred


class WorstGroupScorer(BaseEstimator):
    """Held-out score of the worst-off group; more is better.

    A scorer for ``scoring=`` of `GridSearchCV`, `cross_validate` and the like. It judges the
    reduction, alone or inside a pipeline, which may end in a classifier, by what
    ``inverse_transform(transform(X))`` loses of the rows as they reach it. The score is minus the
    largest measure of a group: by default that of the criterion of the `FairPCA`, the disparity.

    With metadata routing (``sklearn.set_config(enable_metadata_routing=True)``), the
    `sensitive_features` that a search is given go to `FairPCA` and to this scorer. Without, the
    scorer finds the groups only if `FairPCA` was fitted by names of columns of a data frame.

    Groups with fewer than ten rows in a fold are scored as one group, and groups of the fit with
    none are left out of its score; a warning names them.

    Parameters
    ----------
    measure : str or None, default=None
        One of the measures of `MinMax`. None is that of the criterion of a `FairPCA`, and
        "share_kept" for other reductions. A disparity is measured from the own PCA of the group's
        training rows, as by `audit` with ``baseline="training"``; it falls with the number of
        components as every loss does. Variances are measured from the fitted mean.

    See Also
    --------
    fairpca.compare : Losses pooled over folds, before the worst group is picked.

    Examples
    --------
    >>> import numpy as np
    >>> import sklearn
    >>> from sklearn.model_selection import GridSearchCV
    >>> from fairpca import FairPCA, MinMax
    >>> from fairpca.metrics import WorstGroupScorer
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(["a", "b"], [100, 200])
    >>> X = rng.normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> order = rng.permutation(300)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(
    ...         FairPCA(2, criterion=MinMax()),
    ...         {"criterion__max_extra_loss": [0, 0.05, None]},
    ...         scoring=WorstGroupScorer(),
    ...     ).fit(X[order], sensitive_features=groups[order])
    >>> search.cv_results_["mean_test_score"].round(3)
    array([-3.195, -2.744, -2.744])
    """

    # The groups are requested by default, as FairPCA requests them.
    __metadata_request__score: ClassVar[dict[str, Any]] = {
        "estimator": UNUSED,
        "sensitive_features": True,
    }

    def __init__(self, measure: str | None = None) -> None:
        self.measure = measure

    def score(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score a fitted reduction, or a fitted pipeline with one; calling the scorer is the same.

        Parameters
        ----------
        estimator : fitted transformer with ``inverse_transform``, or Pipeline
            What is scored.
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            The rows to score, as they enter the estimator.
        y : ignored
        sensitive_features : str, list of str or array-like, default=None
            The group of each row, or names of columns of X. None looks for the columns that a
            `FairPCA` was fitted by.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows. With metadata routing, ask for them with
            ``set_score_request(sample_weight=True)``.

        Returns
        -------
        float
        """
        step = find_reduction(estimator, type(self).__name__)
        measure = MEASURES["share_kept"]
        if self.measure is not None:
            measure = check_measure(self.measure)
        elif isinstance(step.reduction, FairPCA):
            measure = as_criterion(step.reduction.criterion).measured
        check_is_fitted(step.reduction)
        if sensitive_features is None:
            sensitive_features = _fitted_names(step.reduction, X)
        check_same_index(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
        names = named_columns(X, sensitive_features)
        given = chosen_columns(X, names) if names else sensitive_features
        rows = entering(step.rows(entering(X, estimator, names)), step.reduction, names)
        n = rows.shape[0] if hasattr(rows, "shape") else len(rows)
        weights = check_weights(sample_weight, n)
        groups = ScoredGroups.of_rows(step.reduction, given, n, weights)
        _warn_of_absent(step.reduction, groups)
        errors, distances = row_errors(step.reduction, rows, weights)
        own = np.zeros(len(groups.texts))
        if measure.is_disparity:
            own = groups.own_lost(step.reduction, check_rows(rows))
        return -float(groups.measures(measure, errors, distances, own).max())

    def __call__(self, estimator: Any, X: Any, y: Any = None, **known: Any) -> float:
        """Score a fitted estimator, as scikit-learn calls scorers."""
        return self.score(estimator, X, y, **known)

    def _accept_sample_weight(self) -> bool:
        # What scikit-learn asks of scorers where metadata routing is off.
        return True


def _fitted_names(reduction: Any, X: Any) -> list[str]:
    """The columns that a reduction was fitted by, where X has them; else raise ValueError."""
    names = list(getattr(reduction, "sensitive_names_", ()))
    columns, features = table_names(X) or (), getattr(reduction, "feature_names_in_", None)
    # A feature with the name of a sensitive column need not hold its labels: ages, say, and bins.
    if names and features is not None and not {*names} & {*features} and {*names} <= {*columns}:
        return names
    raise ValueError(
        "WorstGroupScorer was not given the groups of the rows: turn metadata routing on with "
        "sklearn.set_config(enable_metadata_routing=True) and pass sensitive_features=… to the "
        "search's fit (to cross_validate in params={'sensitive_features': …}), or let FairPCA "
        "take them from columns of a data frame by name."
    )


def _warn_of_absent(reduction: Any, groups: ScoredGroups) -> None:
    """Warn of groups of the fit without any row to score."""
    table = getattr(reduction, "group_table_", None)
    if table is None or reduction.groups is None:
        return
    absent = [label for label in table.labels if label not in groups.labels]
    if absent:
        texts = listed([label_text(label, table.group_names) for label in absent], MOST_NAMES)
        warn_user(
            f"No rows to score in the groups {texts}: the score is the worst of the others. Take "
            "fewer folds, or folds with rows of every group (StratifiedKFold by group)."
        )


@dataclass(frozen=True, eq=False)
class ScoredGroups:
    """Groups of rows, small ones as one.

    Attributes
    ----------
    labels : tuple of length k
        The groups that have rows, before small ones are put together.
    texts : tuple of length at most k
        What the groups are called that are scored.
    count : integer array
        Rows of each with a positive weight.
    weights : CSR matrix with a row for each of these groups
        Weight of each row of X in the group.
    by_label : CSR matrix with a row for each of the labels
        The same before small groups are put together.
    """

    labels: tuple[Hashable, ...]
    texts: tuple[str, ...]
    count: NDArray[np.int64]
    weights: Any
    by_label: Any

    @classmethod
    def of_rows(
        cls, reduction: Any, given: Any, n: int, sample_weight: Array | None
    ) -> ScoredGroups:
        """The groups that a reduction is for, with these sensitive features."""
        groups = encode_groups(given, n, getattr(reduction, "missing_labels", "error"))
        weights = groups.weights(np.ones(n) if sample_weight is None else sample_weight)
        kept = np.flatnonzero(weights > 0.0)
        shape = (len(groups.labels), n)
        matrix = scipy.sparse.csr_array((weights[kept], (groups.codes[kept], kept)), shape=shape)
        kind = getattr(reduction, "groups", None) or "intersections"
        labels, parts = overlapping(groups.labels, kind)
        if parts is not None:
            matrix = scipy.sparse.csr_array(parts.astype(np.float64)) @ matrix
        matrix.sort_indices()
        count = np.diff(matrix.indptr)
        there = np.flatnonzero(count)
        if len(there) == 0:
            raise ValueError("There are no rows to score: none has a label and a positive weight.")
        names = tuple(labels[i] for i in there)
        texts = tuple(label_text(label, groups.names) for label in names)
        return cls(names, texts, count[there], matrix[there], matrix[there])._small_as_one()

    def _small_as_one(self) -> ScoredGroups:
        small = self.count < _FEW_ROWS
        if not small.any():
            return self
        names = [self.texts[i] for i in np.flatnonzero(small)]
        what = f"Fewer than {_FEW_ROWS} rows to score in"
        if len(names) == 1:
            warn_user(f"{what} the group {names[0]!r}: what it loses on them is mostly noise.")
            return self
        groups = listed(names, MOST_NAMES)
        warn_user(f"{what} each of the groups {groups}: they are scored as one group.")
        texts = tuple(self.texts[i] for i in np.flatnonzero(~small))
        texts = (*texts, f"{len(names)} small groups together")
        weights = _put_together(self.weights, small)
        return replace(self, texts=texts, count=np.diff(weights.indptr), weights=weights)

    def own_lost(self, reduction: Any, rows: Any) -> Array:
        """What each group loses in sum with the own PCA of its training rows; (k,).

        A group that was not among these has that of all of them.
        """
        known = getattr(reduction, "baselines_", None)
        if known is None:
            raise ValueError(
                "A score by disparities needs each training group's own PCA, which this "
                f"{type(reduction).__name__} has not kept: take another measure, as in "
                "WorstGroupScorer('share_lost')."
            )
        lost = self.by_label.copy()
        for label, begin, end in zip(self.labels, lost.indptr[:-1], lost.indptr[1:], strict=True):
            position = known.position(label)
            basis = known.pca_basis if position is None else known.own_bases[position]
            for part, block in dense_blocks(rows[lost.indices[begin:end]]):
                centred = block - known.mean
                left = np.square(centred).sum(axis=1) - np.square(centred @ basis).sum(axis=1)
                lost.data[begin:end][part] *= left
        few = np.diff(lost.indptr) < _FEW_ROWS
        together = lost if len(self.texts) == len(self.labels) else _put_together(lost, few)
        return np.asarray(together.sum(axis=1))

    def measures(self, measure: Measure, errors: Array, distances: Array, own: Array) -> Array:
        """The measures of groups whose rows lose this with the reduction and with nothing; (k,)."""
        lost, variance = self.weights @ errors - own, self.weights @ distances
        unit = variance if measure.relative else np.asarray(self.weights.sum(axis=1))
        some = variance > NO_VARIANCE * variance.max(initial=0.0)
        loss = np.divide(lost, unit, where=some | (not measure.relative), out=np.zeros_like(lost))
        if not measure.is_kept:
            return np.asarray(loss)
        return np.asarray(loss - (1.0 if measure.relative else variance / unit))


def _put_together(weights: Any, small: NDArray[np.bool_]) -> Any:
    """A matrix with a row for each group, those of small groups as one row, the last.

    A row of X that is in several of them, as in overlapping groups, counts once.
    """
    union = weights[np.flatnonzero(small)].max(axis=0).toarray().reshape(1, -1)
    rest = weights[np.flatnonzero(~small)]
    return scipy.sparse.vstack([rest, scipy.sparse.csr_array(union)], format="csr")


def row_errors(reduction: Any, X: Any, weights: Array | None = None) -> tuple[Array, Array]:
    """Squared distances of rows from their reconstructions and from the fitted mean; (n,) each.

    A reduction without a mean gets that of these rows.
    """
    rows = check_rows(X)
    # Sparse rows that have been checked are in a format that can be cut.
    errors, _ = squared_errors(reduction, rows if scipy.sparse.issparse(X) else X, rows)
    center = getattr(reduction, "mean_", None)
    if center is None:
        portions = np.ones(rows.shape[0]) if weights is None else weights
        center = portions @ rows / portions.sum()
    distances = np.empty(rows.shape[0])
    for part, block in dense_blocks(rows):
        distances[part] = np.square(block - center).sum(axis=1)
    return errors, distances

"""Metrics of reconstruction that fit fairlearn's MetricFrame, and a scorer by the worst-off group.

`reconstruction_error` and `disparity_error` compare rows (`y_true`) with the rows after a
reduction and back (`y_pred`). In a ``MetricFrame`` by group, ``disparity_error`` is each group's
disparity and ``.difference()`` the largest pairwise one.

`WorstGroupScorer` is a scorer for scikit-learn's searches and cross-validation.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.criteria import as_criterion
from fairpca.exceptions import warn_user
from fairpca.fair_pca import FairPCA
from fairpca.group_table import GroupTable
from fairpca.groups import table_names
from fairpca.inspection.audit import audit
from fairpca.inspection.pipelines import find_reduction
from fairpca.measures import MEASURES, AffineMeasure, check_measure
from fairpca.text import MOST_NAMES, label_text, listed
from fairpca.validation import check_same_index, check_weights

__all__ = ["WorstGroupScorer", "disparity_error", "reconstruction_error"]

_FEW_ROWS = 10
"""Groups with fewer rows are warned of: even normal errors in one direction then have a mean square
that is off by sqrt(2 / 10), nearly half of it, so the worst group is chance."""


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

    Groups of the fit without a row in a fold are left out of its score. A warning names them, and
    those with fewer than ten rows.

    Parameters
    ----------
    measure : str or None, default=None
        One of the measures of `MinMax`. None is that of the criterion of a `FairPCA`, and
        "share_kept" for other reductions. A disparity is measured from the own PCA of the group's
        training rows, as by `audit` with ``baseline="training"``; it falls with the number of
        components as every loss does. Variances are measured from the mean of the training rows,
        and for other reductions than `FairPCA` from that of the rows that are scored.

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
        reduction = find_reduction(estimator, type(self).__name__).reduction
        measure = MEASURES["share_kept"]
        if self.measure is not None:
            measure = check_measure(self.measure)
        elif isinstance(reduction, FairPCA):
            measure = as_criterion(reduction.criterion).measured
        check_is_fitted(reduction)
        known = getattr(reduction, "baselines_", None)
        if measure.is_disparity and known is None:
            raise ValueError(
                "A score by disparities needs each training group's own PCA, which this "
                f"{type(reduction).__name__} has not kept: take another measure, as in "
                "WorstGroupScorer('share_lost')."
            )
        table = audit(
            estimator,
            X,
            sensitive_features=_fitted_names(reduction, X)
            if sensitive_features is None
            else sensitive_features,
            sample_weight=sample_weight,
            missing_labels=getattr(reduction, "missing_labels", "error"),
            baseline="rows" if known is None else "training",
            n_resamples=0,
        )
        _warn_of_groups(reduction, table)
        # A group that was not among the training rows is measured from ordinary PCA of these.
        own = np.where(np.isnan(table.own_loss), table.pca_loss, table.own_loss)
        affine = AffineMeasure.of(measure, table.variance, table.variance - own, np.ones(len(own)))
        return -float(affine.values(table.variance - table.loss).max())

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


def _warn_of_groups(reduction: Any, table: GroupTable) -> None:
    """Warn of groups of the fit without any row to score, and of those with few."""
    fitted: Any = getattr(reduction, "group_table_", ())
    texts = table.group_texts()
    absent = [label for label in fitted if label not in table.labels]
    if absent and reduction.groups is not None:
        names = listed([label_text(label, fitted.group_names) for label in absent], MOST_NAMES)
        warn_user(
            f"No rows to score in the groups {names}: the score is the worst of the others. Take "
            "fewer folds, or folds with rows of every group (StratifiedKFold by group)."
        )
    few = [text for text, count in zip(texts, table.count, strict=True) if count < _FEW_ROWS]
    if few:
        warn_user(
            f"Fewer than {_FEW_ROWS} rows to score in the groups {listed(few, MOST_NAMES)}: what "
            "these lose is mostly noise. Merge small groups, or take fewer folds."
        )

"""Equal opportunity: a projection after which the positives of all groups have the same mean."""

from __future__ import annotations

from itertools import compress
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from fairpca._linalg.types import Array
from fairpca.comparators.parity import directions_between
from fairpca.exceptions import warn_user
from fairpca.groups import encode_groups, warn_of_dropped
from fairpca.text import label_text, listed
from fairpca.validation import check_rows, check_same_index, check_weights, explain_not_finite

_NAMED = 5
"""Groups that are named in a message; of others the number is given."""

_ROUNDING = 16 * float(np.finfo(float).eps)
"""Of a mean, in proportion to itself."""

_NOTHING_LEFT = 1e-9
"""Share of the rows' variance that is rounding."""


class EqualOpportunityProjection(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Removes the directions in which the positives of the groups differ.

    Positives are the rows with ``y == pos_label``. For k groups their means differ in at most k - 1
    directions. Without these, the positives of all groups have the same mean, and so has every
    linear score of them. The number of columns stays the same, so any reduction and any classifier
    can follow; a linear one cannot bring the directions back.

    The price comes first: accuracy, above all that of the worst-off group, can fall, and where the
    sensitive feature or a stand-in for it is among the columns, it is used at prediction, which
    the law may forbid. With several small groups the directions are poorly estimated, and true
    positive rates can lie further apart than before.

    Parameters
    ----------
    pos_label : label, default=None
        The class whose rows are the positives; all others are the rest. None is the larger of two
        classes, and is refused where there are more.
    missing_labels : {"error", "group", "drop"}, default="error"
        Whether missing sensitive features are an error or a group of their own, or their rows are
        left out of the fit, with a warning.

    Attributes
    ----------
    directions_ : array of shape (n_directions, n_features_in_)
        Orthonormal directions that are removed, for columns divided by `scale_`.
    mean_ : array of shape (n_features_in_,)
        Mean of all rows, which stays what it is.
    scale_ : array of shape (n_features_in_,)
        Standard deviation of each column over all rows; 1 for constant columns.
    variance_removed_ : float
        Share of the variance of all rows, columns standardised, that lies in the directions.
    groups_ : tuple of length k
        The labels of the groups.
    n_positives_ : integer array of shape (k,)
        Positives of each group; those without weight do not count.
    positive_means_ : array of shape (k, n_features_in_)
        Mean of the positives of each group before; `transform` of it is that after.
    pos_label_ : label
        The class of the positives; None without groups.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, when they are strings.

    See Also
    --------
    fairpca.comparators.ParityPCA : Equal means of all rows, whatever y.

    Notes
    -----
    With Z the standardised rows and V the directions, Z becomes ``Z - Z V^T V``; dividing a column
    by a number changes nothing. A score ``w^T x`` of the result has the same mean for the positives
    of every group. If these are also normal with a common covariance, it has the same distribution,
    so that every threshold gives all groups the same true positive rate. docs/downstream.md has
    the proofs. The idea is that of null-space fair PCA [1]_, here conditioned on y.

    References
    ----------
    .. [1] M. Kleindessner, M. Donini, C. Russell and M. B. Zafar, "Efficient fair PCA for fair
       representation learning", AISTATS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.comparators import EqualOpportunityProjection
    >>> rng = np.random.default_rng(0)
    >>> groups, y = np.repeat(["a", "b"], 200), rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 3))
    >>> X[(groups == "a") & (y == 1), 0] += 1.0
    >>> projection = EqualOpportunityProjection().fit(X, y, sensitive_features=groups)
    >>> means = projection.transform(X[(groups == "a") & (y == 1)]).mean(axis=0)
    >>> np.allclose(means, projection.transform(X[(groups == "b") & (y == 1)]).mean(axis=0))
    True
    >>> len(projection.directions_), round(projection.variance_removed_, 3)
    (1, 0.335)
    """

    # Without this, metadata routing would ask every user to request it.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    def __init__(self, *, pos_label: Any = None, missing_labels: str = "error") -> None:
        self.pos_label = pos_label
        self.missing_labels = missing_labels

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Numeric and without missing values.
        y : array-like of shape (n_samples,)
            The class of each row.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, m), default=None
            The group of each row; several columns make groups of their intersections. With None
            nothing is removed.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows.

        Returns
        -------
        self : object
        """
        if y is None:
            raise ValueError(
                "EqualOpportunityProjection requires y to be passed, but the target y is None."
            )
        check_same_index(X, y=y, sample_weight=sample_weight, sensitive_features=sensitive_features)
        # Behind another step of a pipeline X may have lost its index.
        check_same_index(y, called="y", sensitive_features=sensitive_features)
        rows = check_rows(X, self, ensure_min_samples=2, finite=True)
        n, d = rows.shape
        check_consistent_length(rows, y)
        found = encode_groups(sensitive_features, n, self.missing_labels)
        warn_of_dropped(found.n_dropped, n)
        weights = found.weights(check_weights(sample_weight, n))
        with np.errstate(over="ignore", invalid="ignore"):  # explained below
            scaler = StandardScaler(with_mean=False).fit(rows, sample_weight=weights)
        if not np.isfinite(scaler.var_).all():
            explain_not_finite(rows, self)
        self.mean_, deviations = scaler.mean_, np.sqrt(np.maximum(scaler.var_, 0.0))
        # scikit-learn has a scale of 1 for columns that are constant up to rounding.
        varying = (scaler.scale_ == deviations) & (deviations > _ROUNDING * np.abs(self.mean_))
        self.scale_ = np.where(varying, deviations, 1.0)
        weights = np.ones(n) if weights is None else weights
        self.pos_label_, positive = None, np.ones(n, dtype=bool)
        if sensitive_features is not None:
            self.pos_label_, positive = self._positives(y)
        count = np.bincount(found.codes[positive & (weights > 0.0)], minlength=len(found.labels))
        there = np.bincount(found.codes, weights, len(found.labels)) > 0.0
        names = [label_text(label, found.names) for label in found.labels]
        empty = [name for name, i, c in zip(names, there, count, strict=True) if i and c == 0]
        if empty:
            raise ValueError(
                f"No row with y == {self.pos_label_!r} in {listed(empty, _NAMED)}: merge such "
                "groups with others, or leave their rows out."
            )
        if there.sum() < 2:
            warn_user("There are no groups to compare, so nothing is removed.")
        self.groups_ = tuple(compress(found.labels, there))
        self.n_positives_ = count[there]
        members = csr_array((weights * positive, (found.codes, np.arange(n))), (len(names), n))
        members = members[there] / members[there].sum(axis=1)[:, None]
        self.positive_means_ = _dense(members @ rows).astype(np.float64)
        scaled = np.where(varying, self.positive_means_ / self.scale_, 0.0)
        # A mean is stored with an error in proportion to itself, not to the spread about it.
        rounding = _ROUNDING * float(np.linalg.norm(scaled))
        self.directions_ = directions_between(scaled - scaled[0], d, rounding)
        along = rows @ (self.directions_ / self.scale_).T
        centred = along - np.average(along, axis=0, weights=weights)
        lost = np.average(np.square(centred).sum(axis=1), weights=weights)
        self.variance_removed_ = float(lost / max(int(varying.sum()), 1))
        if self.variance_removed_ > 1.0 - _NOTHING_LEFT:
            raise ValueError(
                f"The positives of {len(self.groups_)} groups differ in every direction of the "
                f"rows (n_features={d}), so nothing would be left: merge groups, or add columns."
            )
        return self

    def transform(self, X: Any) -> Array:
        """Remove the directions from rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows with the columns of the fit; their groups are not asked for.

        Returns
        -------
        array of shape (n_samples, n_features_in_)
            Dense.
        """
        check_is_fitted(self)
        rows = _dense(check_rows(X, self, reset=False, finite=True))
        along = (rows - self.mean_) @ (self.directions_ / self.scale_).T
        left: Array = rows - along @ (self.directions_ * self.scale_)
        return left.astype(rows.dtype, copy=False)

    def _positives(self, y: Any) -> tuple[Any, NDArray[np.bool_]]:
        """The class of the positives, and which rows are."""
        values = column_or_1d(y, warn=True)
        assert_all_finite(values, input_name="y")
        check_classification_targets(values)
        classes = np.unique(values)
        label = self.pos_label
        if label is None and len(classes) != 2:
            raise ValueError(
                f"y has {len(classes)} classes, not 2: pass pos_label, the class whose rows are "
                "the positives; the rows of all others are the rest."
            )
        if label is None:
            label = classes.tolist()[1]
        positive = np.asarray(values == label)
        if not positive.any():
            raise ValueError(
                f"pos_label={label!r} is no class of y: {listed(classes.tolist(), 5)}."
            )
        return label, positive

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _dense(rows: Any) -> Array:
    """The same as an array."""
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


__all__ = ["EqualOpportunityProjection"]

"""LinearReduction: what every estimator that projects rows on components has in common."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import assert_all_finite, check_array, check_is_fitted

from fairpca._linalg.dense import eigh_descending, fix_signs
from fairpca._linalg.device import scatter_matrices
from fairpca._linalg.library import device_library, to_device
from fairpca._linalg.types import Array
from fairpca._rows.checks import (
    check_device_rows,
    check_rows,
    check_weights,
    explain_not_finite,
    refuse_distributed,
)
from fairpca._rows.groups import Codes, encode_groups
from fairpca._rows.row_space import RowSpace, is_wide, spanned_space
from fairpca._rows.text import label_text, listed
from fairpca.exceptions import FairnessWarning
from fairpca.moments import GroupMoments

_BLOCK_VALUES = 2**22


@dataclass(frozen=True, eq=False)
class Projection:
    """What `transform` does to checked rows: little enough to be sent to where rows are."""

    components: Array
    mean: Array
    shrinkage: Array | None

    def __call__(self, rows: Any) -> Array:
        """The reduced rows."""
        # Two products instead of centred rows: no centred copy, and sparse rows stay sparse.
        scores = rows @ self.components.T - self.mean @ self.components.T
        if self.shrinkage is not None:
            scores *= self.shrinkage
        reduced: Array = scores.astype(rows.dtype, copy=False)
        return reduced

    def on_device(self, rows: Any) -> Any:
        """The same for rows on a device."""
        components = to_device(self.components.T, rows)
        scores = rows @ components - to_device(self.mean @ self.components.T, rows)
        return scores if self.shrinkage is None else scores * to_device(self.shrinkage, rows)


class LinearReduction(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Rows less `mean_`, projected on `components_`, and back.

    A subclass gathers moments, finds a basis and calls `_set_components`. Its parameters include
    `missing_labels`.
    """

    # Without this, metadata routing would ask every user to request it.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    n_components: Any
    missing_labels: str
    components_: Array
    mean_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    n_components_: int
    shrinkage_: Array | None = None

    def transform(self, X: Any) -> Array:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components_)
            Of PyTorch and CuPy on the device, and in the precision, of the rows.
        """
        check_is_fitted(self)
        if device_library(X) is not None:
            rows = check_device_rows(X, type(self).__name__, self.n_features_in_, finite=True)
            projected: Array = self._projection.on_device(rows)
            return projected
        rows = check_rows(X, self, reset=False)
        assert_all_finite(
            rows.data if hasattr(rows, "toarray") else rows,
            estimator_name=type(self).__name__,
            input_name="X",
        )
        return self._projection(rows)

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Bring reduced rows back to the original columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_)

        Returns
        -------
        array of shape (n_samples, n_features_in_)
        """
        check_is_fitted(self)
        refuse_distributed(X)
        on_device = device_library(X) is not None
        if on_device:
            reduced = check_device_rows(X, finite=True)
        else:
            reduced = check_array(X, dtype=[np.float64, np.float32])
        if reduced.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {reduced.shape[1]} columns, but this {type(self).__name__} reduces to "
                f"{self.n_components_}."
            )
        if on_device:
            components, mean = (to_device(part, reduced) for part in (self.components_, self.mean_))
            lifted: Array = reduced @ components + mean
            return lifted
        restored: Array = (reduced @ self.components_ + self.mean_).astype(
            reduced.dtype, copy=False
        )
        return restored

    def score(self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None) -> float:
        """Minus the reconstruction error, averaged over the rows: higher is better.

        The error of a row is its squared distance from its reconstruction, summed over columns.
        Fairness does not enter, so a search by this score prefers more components and more
        tolerance.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if device_library(X) is not None:
            rows = check_device_rows(X, type(self).__name__, self.n_features_in_, finite=True)
            moments = GroupMoments.from_rows(rows, sample_weight=sample_weight)
        else:
            rows = check_rows(X, self, reset=False)
            weights = check_weights(sample_weight, rows.shape[0])
            if is_wide(*rows.shape):
                return -self._mean_error(rows, weights)
            codes = np.zeros(rows.shape[0], np.int8)
            moments = GroupMoments.from_codes(rows, codes, ["all"], weights)
            if not moments.is_finite:
                explain_not_finite(rows, self)
        offset = moments.mean[0] - self.mean_
        matrix = moments.scatter[0] / moments.weight[0] + np.outer(offset, offset)
        kept = np.einsum("ij,ij->i", self.components_ @ matrix, self.components_)
        if self.shrinkage_ is not None:
            kept *= 1.0 - (1.0 - self.shrinkage_) ** 2
        return -max(float(np.trace(matrix) - kept.sum()), 0.0)

    def _mean_error(self, rows: Any, weights: Array | None) -> float:
        """The reconstruction error row by row, for fewer rows than columns."""
        total, weight = 0.0, np.ones(rows.shape[0]) if weights is None else weights
        shrinkage = np.ones(self.n_components_) if self.shrinkage_ is None else self.shrinkage_
        for part in gen_batches(rows.shape[0], max(1, _BLOCK_VALUES // rows.shape[1])):
            block = rows[part].toarray() if hasattr(rows, "toarray") else rows[part]
            centred = block - self.mean_
            kept = (centred @ self.components_.T) ** 2 @ (1.0 - (1.0 - shrinkage) ** 2)
            total += float(weight[part] @ (np.einsum("ij,ij->i", centred, centred) - kept))
        if not np.isfinite(total):
            explain_not_finite(rows, self)
        return max(total / float(weight.sum()), 0.0)

    def _gather(
        self,
        rows: Any,
        sensitive_features: Any,
        sample_weight: ArrayLike | None,
        *,
        reduce_wide: bool = False,
    ) -> tuple[GroupMoments, Codes, Array | None, RowSpace | None]:
        """Moments by group of rows that `check_rows` has seen, each row's group, and the weights.

        Groups whose rows all have no weight are left out of the moments; their rows have group -1.
        If asked for, moments of rows with far more columns are those of their coordinates in the
        space that they span, which comes last.
        """
        labels, codes = encode_groups(sensitive_features, rows.shape[0], self.missing_labels)
        weights = check_weights(sample_weight, rows.shape[0])
        space = spanned_space(rows, weights, self) if reduce_wide else None
        coordinates = rows if space is None else space.rows
        moments = GroupMoments.from_codes(coordinates, codes, labels, weights)
        if not moments.is_finite:
            explain_not_finite(rows, self)
        if sensitive_features is not None:
            warn_of_groups(moments)
        if len(moments.labels) < len(labels):
            position = {label: i for i, label in enumerate(moments.labels)}
            codes = np.array([position.get(label, -1) for label in labels])[codes]
        return moments, codes, weights, space

    def _set_components(
        self,
        basis: Array,
        moments: GroupMoments,
        *,
        shares: Array | None = None,
        covariance: Array | None = None,
        space: RowSpace | None = None,
    ) -> None:
        """Set what is fitted from a basis, turned to principal axes.

        With `shares`, what is kept of the variance along each column of the basis: a column that
        keeps the share s is shortened to ``1 - sqrt(1 - s)``, so that the rows lose ``1 - s`` of
        their variance along it. `covariance` is that of all rows, where it is at hand; `space` is
        where basis and moments live, if not in the columns of the rows.
        """
        if covariance is None:
            parts = scatter_matrices(moments.scatter, moments.offsets, moments.weight)
            portions, backend = moments.weight / moments.weight.sum(), parts.backend
            image = parts.weighted_sum(portions).image(backend.put(basis))
            inner = basis.T @ backend.host(image)
            total = float(portions @ parts.traces)
        else:
            inner, total = basis.T @ covariance @ basis, float(np.trace(covariance))
        if shares is None:
            variances, turn = eigh_descending((inner + inner.T) / 2)
            variances, basis = np.maximum(variances, 0.0), basis @ turn
            self.shrinkage_ = None
        else:
            shrinkage = 1.0 - np.sqrt(1.0 - shares)
            variances = np.diag(inner) * shrinkage**2
            order = np.argsort(-variances, kind="stable")
            variances, basis = variances[order], basis[:, order]
            self.shrinkage_ = shrinkage[order]
        mean = moments.total_mean
        if space is not None:
            basis, mean = space.lift(basis), space.lift_point(moments.total_mean)
        n = int(moments.count.sum())
        self.mean_ = mean
        self.components_ = np.ascontiguousarray(fix_signs(basis).T)
        self.n_components_ = basis.shape[1]
        self.explained_variance_ = variances * (n / max(n - 1, 1))
        self.explained_variance_ratio_ = (
            variances / total if total > 0 else np.zeros(len(variances))
        )

    def _check_dimension(self, d: float) -> None:
        n = self.n_components
        if isinstance(n, Integral) and int(n) > d:
            raise ValueError(f"n_components={n!r} must be between 1 and n_features={d}.")

    @property
    def _projection(self) -> Projection:
        return Projection(self.components_, self.mean_, self.shrinkage_)

    def __sklearn_is_fitted__(self) -> bool:
        # The number of columns is known before there is a subspace.
        return hasattr(self, "components_")

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def warn_of_groups(moments: GroupMoments, *, stacklevel: int = 4) -> None:
    """Warn of groups that make the result say little; for the caller of the caller's caller."""
    names = [label_text(label) for label in moments.labels]
    if len(names) == 1:
        warnings.warn(
            f"sensitive_features has one group only, {names[0]!r}: the result is that of "
            "ordinary PCA.",
            FairnessWarning,
            stacklevel=stacklevel,
        )
    single = [name for name, count in zip(names, moments.count, strict=True) if count == 1]
    if single:
        warnings.warn(
            f"Groups with a single row: {listed(single, 5)}. What is found of such a group says "
            "little; think of merging it.",
            FairnessWarning,
            stacklevel=stacklevel,
        )

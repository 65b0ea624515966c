"""LinearReduction: what every estimator that projects rows on components has in common.

Its components are the axes of a subspace: a basis turned, ordered and signed as PCA does it.
"""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from fairpca._linalg.backends import NUMPY, device_library, to_device
from fairpca._linalg.dense import dense_blocks, fix_signs
from fairpca._linalg.device import DeviceBackend, scatter_matrices
from fairpca._linalg.projection import Projection
from fairpca._linalg.threads import threads_for
from fairpca._linalg.types import Array
from fairpca.criteria import Criterion, as_criterion
from fairpca.data import GroupedData, prepare_data
from fairpca.groups import without_columns
from fairpca.moments.row_space import RowSpace
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.validation import (
    check_device_rows,
    check_rows,
    check_same_index,
    check_weights,
    explain_not_finite,
    refuse_distributed,
)


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """What an estimator shows of its subspace; the names are those of its fitted attributes.

    Attributes
    ----------
    components : array of shape (r, d)
        Orthonormal rows, by falling explained variance.
    mean : array of shape (d,)
        Mean of all rows.
    explained_variance, explained_variance_ratio : arrays of shape (r,)
        Variance along each component, with ``n - 1`` in the denominator, and its share.
    singular_values : array of shape (r,)
        ``sqrt((n - 1) * explained_variance)``.
    noise_variance : float
        Mean variance in the directions that are left out.
    projection_factors : array of shape (r,) or None
        What projections on the components are multiplied with, if they are.
    """

    components: Array
    mean: Array
    explained_variance: Array
    explained_variance_ratio: Array
    singular_values: Array
    noise_variance: float
    projection_factors: Array | None


class Reduction(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A reduction to `n_components_` columns by groups, as scikit-learn wants to know it."""

    # Without this, metadata routing would ask every user to request it.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    n_components: Any
    missing_labels: str
    groups: str | None = "intersections"
    keep_sensitive: bool = False
    missing_values: str = "error"
    sensitive_names_: tuple[str, ...] = ()
    explained_variance_: Array
    explained_variance_ratio_: Array
    projection_factors_: Array | None = None
    n_components_: int

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of a criterion, such as ``criterion__max_extra_loss``.

        Parameters
        ----------
        **params : dict
            By name. A criterion that is given by its name becomes an object where a parameter of
            its own is set.

        Returns
        -------
        self : object
        """
        given = getattr(self, "criterion", None)
        nested = any(name.startswith("criterion__") for name in params)
        if nested and isinstance(given, str) and "criterion" not in params:
            self.criterion: str | Criterion = as_criterion(given)
        return super().set_params(**params)  # type: ignore[no-any-return]

    @property
    def _retention(self) -> Array:
        """What is kept of the rows' variance along each component."""
        given = self.projection_factors_
        factors = np.ones(self.n_components_) if given is None else given
        retention: Array = 1.0 - (1.0 - factors) ** 2
        return retention

    def _check_new(self, X: Any) -> Any:
        """Rows that were not fitted to: finite, and with the columns of the fit."""
        check_is_fitted(self)
        finite = True if self.missing_values == "error" else "allow-nan"
        return check_rows(self._without_sensitive(X), self, reset=False, finite=finite)

    def _without_sensitive(self, X: Any) -> Any:
        """A table without the columns that made the groups, unless they are features."""
        features = {*getattr(self, "feature_names_in_", ())}
        return without_columns(X, [name for name in self.sensitive_names_ if name not in features])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing_values != "error"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class LinearReduction(Reduction):
    """Rows minus `mean_`, projected on `components_`, and back.

    A subclass gathers moments, finds a basis and calls `_set_axes`.
    """

    whiten: bool
    components_: Array
    mean_: Array
    singular_values_: Array
    noise_variance_: float

    def transform(self, X: Any) -> Any:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows with the columns of the fit.

        Returns
        -------
        array of shape (n_samples, n_components_)
            Of PyTorch and CuPy on the device, and in the precision, of the rows.
        """
        check_is_fitted(self)
        if device_library(X) is not None:
            return self._projection.on_device(self._check_device_rows(X))
        rows = self._check_new(X)
        if self.missing_values == "error":
            return self._projection(rows)
        return self._projection.least_squares(rows)

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Bring reduced rows back to the original columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_)
            Reduced rows.

        Returns
        -------
        array of shape (n_samples, n_features_in_)
        """
        check_is_fitted(self)
        refuse_distributed(X)
        components, mean = self.components_, self.mean_
        if self.whiten:
            components = components * np.sqrt(self.explained_variance_)[:, None]
        if device_library(X) is not None:
            reduced = check_device_rows(X, finite=True)
            components, mean = (to_device(part, reduced) for part in (components, mean))
        else:
            reduced = check_array(X, dtype=[np.float64, np.float32])
        if reduced.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {reduced.shape[1]} columns, but this {type(self).__name__} reduces to "
                f"{self.n_components_}."
            )
        restored: Array = reduced @ components + mean
        # What PyTorch makes is in this precision already.
        return (
            restored.astype(reduced.dtype, copy=False) if hasattr(restored, "astype") else restored
        )

    def score(self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None) -> float:
        """Minus the reconstruction error, averaged over the rows: higher is better.

        The error of a row is its squared distance from its reconstruction, summed over columns.
        Fairness does not enter, so a search by this score prefers more components and more
        tolerance.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows with the columns of the fit.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        check_same_index(X, sample_weight=sample_weight)
        if device_library(X) is None:
            rows = check_rows(self._without_sensitive(X), self, reset=False)
            backend = NUMPY
        else:
            rows = self._check_device_rows(X)
            backend = DeviceBackend(rows)
        weights = check_weights(sample_weight, rows.shape[0])
        weights = np.ones(rows.shape[0]) if weights is None else weights
        mean, total = backend.put(self.mean_), 0.0
        kept = backend.put(self.components_.T * np.sqrt(self._retention))
        for part, block in dense_blocks(rows):
            with np.errstate(invalid="ignore", over="ignore"):  # explained below
                centred = backend.double(block) - mean
                errors = (centred * centred).sum(1) - ((centred @ kept) ** 2).sum(1)
                total += float(weights[part] @ backend.host(errors))
        if not np.isfinite(total):
            explain_not_finite(rows, self)
        return -max(total / float(weights.sum()), 0.0)

    def get_covariance(self) -> Array:
        """The covariance of the rows according to the model that the components are.

        The variance along each component is the rows' own, and in every direction orthogonal to
        all of them it is `noise_variance_`. Of the normal distributions of this form it is the one
        that fits the rows best, whatever the subspace (probabilistic PCA with these axes); for the
        components of PCA it is what PCA's method gives. `whiten` does not enter.

        Returns
        -------
        array of shape (n_features_in_, n_features_in_)
        """
        check_is_fitted(self)
        factors = 1.0 if self.projection_factors_ is None else self.projection_factors_
        beyond = self.explained_variance_ / factors**2 - self.noise_variance_
        covariance: Array = (self.components_.T * beyond) @ self.components_
        covariance[np.diag_indices_from(covariance)] += self.noise_variance_
        return covariance

    def get_precision(self) -> Array:
        """The inverse of `get_covariance`.

        Returns
        -------
        array of shape (n_features_in_, n_features_in_)
        """
        covariance = self.get_covariance()
        if np.linalg.matrix_rank(covariance, hermitian=True) < len(covariance):
            raise np.linalg.LinAlgError(
                "The model's covariance has no inverse: there is no variance along a component, or "
                "none is left beside them. Fit fewer components, or more rows."
            )
        return np.asarray(np.linalg.inv(covariance), dtype=np.float64)

    def _prepare(
        self, X: Any, sensitive_features: Any, sample_weight: Any, **options: Any
    ) -> GroupedData:
        """Rows as this estimator is fitted to them; options are as for `prepare_data`."""
        known = (X, sensitive_features, sample_weight, self.missing_labels)
        chosen = {"groups": self.groups, "keep_sensitive": self.keep_sensitive} | options
        return prepare_data(*known, n_components=self.n_components, estimator=self, **chosen)

    def _set_axes(self, axes: PrincipalAxes) -> None:
        """Set what is fitted; subclasses do so with the axes of what they found."""
        for field in fields(axes):
            setattr(self, f"{field.name}_", getattr(axes, field.name))
        self.n_components_ = len(axes.components)

    @property
    def _projection(self) -> Projection:
        factors = self.projection_factors_
        if self.whiten:
            scale = np.sqrt(self.explained_variance_)
            # As PCA does: components without variance give large numbers, not infinite ones.
            whitening = 1.0 / np.maximum(scale, np.finfo(np.float64).eps)
            factors = whitening if factors is None else factors * whitening
        return Projection(self.components_, self.mean_, factors)

    def _check_device_rows(self, X: Any) -> Any:
        return check_device_rows(X, type(self).__name__, self.n_features_in_, finite=True)

    def __sklearn_is_fitted__(self) -> bool:
        # The number of columns is known before there is a subspace.
        return hasattr(self, "components_")


def axes_of_products(
    basis: Array,
    inner: Array,
    total: float,
    mean: Array,
    n: int,
    *,
    retention: Array | None = None,
    space: RowSpace | None = None,
) -> PrincipalAxes:
    """The axes of the subspace that a basis spans.

    `inner` is ``basis^T C basis`` with the covariance C of n rows, and `total` its trace. With
    `retention`, what is kept of the variance along each column of the basis: a column that keeps
    the share s is shortened to ``1 - sqrt(1 - s)``, so that the rows lose ``1 - s`` of their
    variance along it. `space` is where the basis lives, if not in the columns of the rows.
    """
    if retention is None:
        with threads_for(len(inner)):
            variances, turn = NUMPY.eigh((inner + inner.T) / 2)
        along = variances = np.maximum(variances, 0.0)
        basis, factors = basis @ turn, None
    else:
        factors, along = 1.0 - np.sqrt(1.0 - retention), np.diag(inner)
        variances = along * factors**2
        order = np.argsort(-variances, kind="stable")
        variances, basis, factors = variances[order], basis[:, order], factors[order]
    if space is not None:
        basis, mean = space.lift(basis), space.lift_point(mean)
    d, r = basis.shape
    unbiased, left = n / max(n - 1, 1), min(n, d) - r
    return PrincipalAxes(
        components=np.ascontiguousarray(fix_signs(basis).T),
        mean=mean,
        explained_variance=variances * unbiased,
        explained_variance_ratio=variances / total if total > 0 else np.zeros(r),
        singular_values=np.sqrt(variances * n),
        noise_variance=max(total - float(along.sum()), 0.0) * unbiased / left if left > 0 else 0.0,
        projection_factors=factors,
    )


def solution_axes(
    problem: Problem, solution: Solution, space: RowSpace | None = None
) -> PrincipalAxes:
    """The axes of a solution; `space` is where the problem is posed, if not in all columns."""
    moments, basis = problem.moments, solution.basis
    if problem.aggregation == "mean" and problem.centering == "global" and not problem.is_large:
        covariance = problem.total_matrix
        inner, total = basis.T @ covariance @ basis, float(np.trace(covariance))
    else:
        parts = scatter_matrices(moments.scatter, moments.offsets, moments.weight)
        portions, backend = moments.weight / moments.weight.sum(), parts.backend
        image = parts.weighted_sum(portions).image(backend.put(basis))
        inner, total = basis.T @ backend.host(image), float(portions @ parts.traces)
    return axes_of_products(
        basis,
        inner,
        total,
        moments.total_mean,
        moments.n_rows,
        retention=solution.retention,
        space=space,
    )

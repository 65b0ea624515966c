"""KernelParityPCA: the same means for all groups in the feature space of a kernel."""

import os
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.validation import assert_all_finite, check_is_fitted

from fairpca._linalg.dense import eigh_descending, fix_signs
from fairpca._linalg.types import Array
from fairpca._rows.checks import (
    check_choice,
    check_number,
    check_rows,
    check_whole_number,
    explain_not_finite,
)
from fairpca._rows.groups import Codes, Groups, encode_groups, warn_of_dropped
from fairpca._rows.labels import Labels
from fairpca._rows.named import chosen_columns, named_columns, without_columns
from fairpca.estimators.base import Reduction
from fairpca.estimators.cautions import warn_of_groups
from fairpca.estimators.gather import warn_of_no_groups
from fairpca.moments import GroupMoments
from fairpca.parity._spaces import (
    check_dimensions_left,
    directions_without,
    leading_basis,
    parity_gaps,
)

_KERNELS = ("linear", "poly", "rbf", "sigmoid", "cosine", "precomputed")

_RANGE = 1e-10
"""Eigenvalues of the kernel matrix below this share of the largest count as zero: coefficients
divide by their roots, which would leave less than ten digits of the projection."""

_INDEFINITE = 1e-5
"""Share of the largest eigenvalue beyond which a negative one is more than rounding, even that of
a single-precision matrix."""


class KernelParityPCA(Reduction):
    """Kernel principal component analysis after which all groups have the same mean.

    This is `ParityPCA` in the feature space of a kernel: of all projections there in which the
    groups' means coincide, it finds the one that keeps the most variance.

    Fitting holds several matrices with a number for each *pair* of training rows (a gigabyte each
    for 11,000 rows), and its time grows with the cube of their number. Rows have no weights, and
    there is no way back to the columns.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, at most the rank of the centred kernel matrix minus the dimensions
        in which the groups' means differ.
    kernel : {"linear", "poly", "rbf", "sigmoid", "cosine", "precomputed"} or callable, \
            default="rbf"
        As for scikit-learn's `KernelPCA`. With "precomputed", `fit` takes the kernel matrix of the
        training rows and `transform` that between new rows and training rows. A callable takes two
        rows and returns a number.
    gamma : float or None, default=None
        Coefficient of "rbf", "poly" and "sigmoid"; None is one over the number of columns.
    degree : float, default=3
        Degree of "poly".
    coef0 : float, default=1
        Independent term of "poly" and "sigmoid".
    kernel_params : dict or None, default=None
        Further arguments of a callable.
    missing_labels : {"error", "group", "drop"}, default="error"
        Whether missing sensitive features are an error or a group of their own, or their rows are
        left out, with a warning.

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples, n_components_)
        What the centred kernel between rows and training rows is multiplied by; each column is a
        direction of unit length in the feature space.
    explained_variance_ : array of shape (n_components_,)
        Variance of the training rows along each component, with ``n - 1`` in the denominator.
    explained_variance_ratio_ : array of shape (n_components_,)
        The same, as a share of the total variance in the feature space.
    n_components_ : int
        Number of components.
    mean_gap_ : float
        Largest distance between the projected means of two groups.
    covariance_gap_ : float
        Largest spectral norm of the difference between the projected covariances of two groups.
    X_fit_ : array or sparse matrix of shape (n_samples, n_features_in_), or None
        The training rows; None with a precomputed kernel.
    gamma_ : float
        The coefficient that was used.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, when they are strings.

    See Also
    --------
    ParityPCA : The same for the rows themselves, with weights and matched covariances.

    Notes
    -----
    With K the centred kernel matrix and Z the centred indicators of the groups, the coefficients
    satisfy ``Z^T K alpha = 0`` and ``alpha^T K alpha = I``, and make the trace of
    ``alpha^T K K alpha`` as large as possible [1]_. With ``K = V diag(l) V^T``, the rows of
    ``V diag(l)^(1/2)`` are coordinates of the training rows in the feature space, and `ParityPCA`
    of those gives the same projection without dividing by small eigenvalues on the way.

    References
    ----------
    .. [1] M. Kleindessner, M. Donini, C. Russell and M. B. Zafar, "Efficient fair PCA for fair
       representation learning", AISTATS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.parity import KernelParityPCA
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(["a", "b"], 50)
    >>> X = rng.normal(size=(100, 4)) + 2.0 * (groups == "a")[:, None]
    >>> parity = KernelParityPCA(2, gamma=0.1).fit(X, sensitive_features=groups)
    >>> reduced = parity.transform(X)
    >>> np.allclose(reduced[groups == "a"].mean(axis=0), reduced[groups == "b"].mean(axis=0))
    True
    """

    dual_coef_: Array
    mean_gap_: float
    covariance_gap_: float
    X_fit_: Any
    gamma_: float

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str | Callable[..., float] = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        missing_labels: str = "error",
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.missing_labels = missing_labels

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> Self:
        """Find the coefficients.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Numeric and without missing values; with a precomputed kernel its matrix.
        y : ignored
            Do not pass the groups here: without `sensitive_features` the result is that of
            ordinary kernel PCA.
        sensitive_features : str, list of str or array-like of shape (n_samples,) or (n_samples, m)
            The group of each row, or names of columns of a table; several columns make groups of
            their intersections. Columns that are named are no features.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        names = named_columns(X, sensitive_features)
        if names:
            sensitive_features = chosen_columns(X, names)
        rows = self._check_rows(without_columns(X, names), reset=True, ensure_min_samples=2)
        _check_memory(rows.shape[0])
        groups = encode_groups(sensitive_features, rows.shape[0], self.missing_labels)
        rows, labels, codes = self._kept(rows, groups)
        self.gamma_ = 1.0 / rows.shape[1] if self.gamma is None else float(self.gamma)
        # A copy: what the caller does to X later must not change the kernel.
        self.X_fit_ = None if self.kernel == "precomputed" else rows.astype(np.float64)
        kernel = self._kernel_of_training_rows(rows)
        self._centerer = KernelCenterer().set_output(transform="default").fit(kernel)
        # Beside the kernel before it is centred, small eigenvalues are rounding of that step.
        rounding = len(kernel) * np.finfo(float).eps * float(np.abs(kernel).max())
        values, vectors = _numerical_range(self._centerer.transform(kernel), rounding)
        coordinates = vectors * np.sqrt(values)
        basis = self._find_basis(coordinates, values, codes, len(labels))
        self.dual_coef_ = fix_signs(vectors @ (basis / np.sqrt(values)[:, None]))
        self.n_components_ = basis.shape[1]
        projected = coordinates @ basis
        moments = GroupMoments.from_codes(projected, codes, labels)
        if sensitive_features is not None:
            warn_of_groups(replace(moments, group_names=groups.names))
        else:
            warn_of_no_groups(y, "use scikit-learn's KernelPCA if ordinary kernel PCA is wanted")
        self.mean_gap_, self.covariance_gap_ = parity_gaps(moments, np.eye(self.n_components_))
        self.explained_variance_ = projected.var(axis=0, ddof=1)
        total = values.sum() / (len(kernel) - 1)
        self.explained_variance_ratio_ = self.explained_variance_ / total
        return self

    def transform(self, X: Any) -> Array:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            With a precomputed kernel, the kernel between these rows and the training rows.

        Returns
        -------
        array of shape (n_samples, n_components_)
        """
        check_is_fitted(self)
        rows = self._check_rows(self._without_sensitive(X), reset=False)
        kernel = self._centerer.transform(self._kernel_matrix(rows, self.X_fit_))
        projected: Array = (kernel @ self.dual_coef_).astype(rows.dtype, copy=False)
        return projected

    def _check_parameters(self) -> None:
        check_whole_number("n_components", self.n_components)
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, _KERNELS)
        if self.gamma is not None:
            check_number("gamma", self.gamma, least=0.0)
        check_number("degree", self.degree, least=0.0)
        if not (isinstance(self.coef0, Real) and np.isfinite(float(self.coef0))):
            raise ValueError(f"coef0 must be a finite number, got {self.coef0!r}.")
        if not (self.kernel_params is None or isinstance(self.kernel_params, dict)):
            raise ValueError(f"kernel_params must be None or a dict, got {self.kernel_params!r}.")

    def _kept(self, rows: Any, groups: Groups) -> tuple[Any, Labels, Codes]:
        """The rows that are not left out, the labels and the codes of these rows."""
        self.sensitive_names_ = groups.names or ()
        if groups.kept is None:
            return rows, groups.labels, groups.codes
        if self.kernel == "precomputed":
            raise ValueError(
                "Rows of a precomputed kernel cannot be left out here: leave out those whose "
                "sensitive features are missing, and their columns, before."
            )
        warn_of_dropped(groups.n_dropped, rows.shape[0])
        return rows[groups.kept], groups.labels, groups.codes[groups.kept]

    def _check_rows(self, X: Any, *, reset: bool, ensure_min_samples: int = 1) -> Any:
        rows = check_rows(X, self, reset=reset, ensure_min_samples=ensure_min_samples)
        assert_all_finite(rows, estimator_name=type(self).__name__, input_name="X")
        return rows

    def _kernel_of_training_rows(self, rows: Any) -> Array:
        if self.kernel == "precomputed" and rows.shape[0] != rows.shape[1]:
            raise ValueError(f"A precomputed kernel must be a square matrix, got {rows.shape}.")
        with np.errstate(over="ignore", invalid="ignore"):
            kernel = self._kernel_matrix(rows, self.X_fit_)
        if not np.isfinite(kernel).all():
            explain_not_finite(rows, self)
        if not np.allclose(kernel, kernel.T, rtol=0.0, atol=_INDEFINITE * np.abs(kernel).max()):
            raise ValueError("The kernel matrix of the training rows is not symmetric.")
        return kernel

    def _kernel_matrix(self, rows: Any, others: Any) -> Array:
        """The kernel between rows and others, in double precision."""
        if self.kernel == "precomputed":
            matrix = rows.toarray() if hasattr(rows, "toarray") else rows
            return np.asarray(matrix, dtype=np.float64)
        if callable(self.kernel):
            options = self.kernel_params or {}
        else:
            options = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        double = rows.astype(np.float64, copy=False)
        return np.asarray(
            pairwise_kernels(double, others, metric=self.kernel, filter_params=True, **options)
        )

    def _find_basis(self, coordinates: Array, values: Array, codes: Codes, k: int) -> Array:
        """Orthonormal directions among the training rows' coordinates in the feature space."""
        r, rank = int(self.n_components), len(values)
        means = np.array([coordinates[codes == group].mean(axis=0) for group in range(k)])
        offsets = means - coordinates.mean(axis=0)
        space = directions_without(offsets, float(np.sqrt(values.sum() / len(coordinates))))
        source = f"the centred kernel matrix has rank {rank}"
        check_dimensions_left(r, space.shape[1], rank, source, k)
        return leading_basis(space, np.diag(values), r)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _check_memory(n: int) -> None:
    """Raise MemoryError where the kernel matrix and its eigenvectors do not fit."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not known on this system
        return
    needed = 4 * 8 * n * n
    if needed > free:
        raise MemoryError(
            f"The kernel matrix of {n:,} rows needs about {needed / 1e9:.0f} GB in all, and "
            f"{free / 1e9:.0f} GB are free: fit a sample of the rows."
        )


def _numerical_range(kernel: Array, rounding: float) -> tuple[Array, Array]:
    """Eigenvalues of a positive semidefinite matrix that are not zero, and their eigenvectors."""
    values, vectors = eigh_descending(kernel)
    if values[-1] < -max(_INDEFINITE * values[0], rounding):
        raise ValueError(
            "The centred kernel matrix is not positive semidefinite: its smallest eigenvalue is "
            f"{values[-1]:.3g}, its largest {values[0]:.3g}."
        )
    kept = values > max(_RANGE * values[0], rounding)
    return values[kept], vectors[:, kept]

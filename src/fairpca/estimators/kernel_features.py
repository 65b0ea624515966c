"""Kernels: their parameters, their matrices, and where rows lie in their feature space.

A kernel k is the inner product of features, ``k(x, y) = <f(x), f(y)>``, which are never written
down. Let K be the kernel matrix of some training rows, the landmarks, centred so that it has the
inner products of their features minus the mean feature, and ``K = V diag(l) V^T`` without the
eigenvalues that are rounding. Then the centred features of the landmarks span a space with the
orthonormal basis ``F^T V diag(l)^(-1/2)``, where F has these features as rows. In this basis a row
x has the coordinates ``k_c(x) V diag(l)^(-1/2)``, where ``k_c(x)`` is its centred kernel with the
landmarks; for the landmarks themselves these are the rows of ``V diag(l)^(1/2)``, without a
division. Lengths and angles in the span are those of the coordinates, so whatever is linear in the
feature space can be done with them.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import KernelCenterer
from sklearn.utils import gen_batches
from sklearn.utils.validation import assert_all_finite, check_is_fitted

from fairpca._linalg.dense import eigh_descending
from fairpca._linalg.types import Array
from fairpca._rows.checks import (
    check_choice,
    check_number,
    check_rows,
    check_same_index,
    explain_not_finite,
)
from fairpca._rows.codes import Codes
from fairpca._rows.groups import Groups, encode_groups, warn_of_dropped
from fairpca._rows.named import chosen_columns, named_columns, without_columns
from fairpca.estimators.base import Reduction

_KERNELS = ("linear", "poly", "rbf", "sigmoid", "cosine", "precomputed")

_RANGE = 1e-10
"""Eigenvalues of the kernel matrix below this share of the largest count as zero: coefficients
divide by their roots, which would leave less than ten digits of the projection."""

_INDEFINITE = 1e-5
"""Share of the largest eigenvalue beyond which a negative one is more than rounding, even that of
a single-precision matrix."""

_BLOCK_VALUES = 2**22
"""Numbers of a kernel matrix that are computed at once: 32 MB."""

_DIAGONAL_ROWS = 32
"""The kernel of rows with themselves is the diagonal of a matrix of so many: next to nothing beside
the kernel with the landmarks, and no formula is needed for each kernel."""

KERNEL_MATRICES = 4
"""Kernel matrices that are in memory at once: the kernel, centred, its eigenvectors, workspace."""


class KernelReduction(Reduction):
    """A reduction in the feature space of a kernel, in the span of its landmarks.

    A subclass reads rows, asks for `_span` and sets `dual_coef_`.
    """

    kernel: str | Callable[..., float]
    gamma: float | None
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    dual_coef_: Array
    X_fit_: Any
    gamma_: float

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
        rows = self._check_new(X)
        projected = np.empty((rows.shape[0], self.n_components_), dtype=rows.dtype)
        for part, kernel in self._kernels(rows):
            projected[part] = self._project(self._centred(kernel))
        return projected

    def _project(self, kernel: Array) -> Array:
        """The components of rows whose centred kernel with the landmarks is given."""
        return np.asarray(kernel @ self.dual_coef_)

    def _check_kernel(self) -> None:
        """Raise ValueError for parameters that make no kernel."""
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, _KERNELS)
        if self.gamma is not None:
            check_number("gamma", self.gamma, least=0.0)
        check_number("degree", self.degree, least=0.0)
        if not (isinstance(self.coef0, Real) and np.isfinite(float(self.coef0))):
            raise ValueError(f"coef0 must be a finite number, got {self.coef0!r}.")
        if not (self.kernel_params is None or isinstance(self.kernel_params, dict)):
            raise ValueError(f"kernel_params must be None or a dict, got {self.kernel_params!r}.")

    def _read(self, X: Any, sensitive_features: Any) -> tuple[Any, Groups]:
        """Checked rows and their groups, without the rows that are left out."""
        check_same_index(X, sensitive_features=sensitive_features)
        names = named_columns(X, sensitive_features)
        if names:
            sensitive_features = chosen_columns(X, names)
        features = X if self.keep_sensitive else without_columns(X, names)
        rows = self._check_rows(features, reset=True, ensure_min_samples=2)
        groups = encode_groups(sensitive_features, rows.shape[0], self.missing_labels)
        self.sensitive_names_ = groups.names or ()
        if groups.kept is None:
            return rows, groups
        if self.kernel == "precomputed":
            raise ValueError(
                "Rows of a precomputed kernel cannot be left out here: leave out those whose "
                "sensitive features are missing, and their columns, before."
            )
        warn_of_dropped(groups.n_dropped, rows.shape[0])
        return rows[groups.kept], replace(groups, codes=groups.codes[groups.kept], kept=None)

    def _check_new(self, X: Any) -> Any:
        """Rows that were not fitted to, checked."""
        check_is_fitted(self)
        return self._check_rows(self._without_sensitive(X), reset=False)

    def _check_rows(self, X: Any, *, reset: bool, ensure_min_samples: int = 1) -> Any:
        rows = check_rows(X, self, reset=reset, ensure_min_samples=ensure_min_samples)
        assert_all_finite(rows, estimator_name=type(self).__name__, input_name="X")
        return rows

    def _span(self, landmarks: Any) -> tuple[Array, Array]:
        """Eigenvalues l and eigenvectors V of the landmarks' centred kernel; they are kept."""
        self.gamma_ = 1.0 / landmarks.shape[1] if self.gamma is None else float(self.gamma)
        # A copy: what the caller does to X later must not change the kernel.
        self.X_fit_ = None if self.kernel == "precomputed" else landmarks.astype(np.float64)
        kernel = self._kernel_of_landmarks(landmarks)
        self._centerer = KernelCenterer().set_output(transform="default").fit(kernel)
        # Beside the kernel before it is centred, small eigenvalues are rounding of that step.
        rounding = len(kernel) * np.finfo(float).eps * float(np.abs(kernel).max())
        return _numerical_range(self._centred(kernel), rounding)

    def _kernel_of_landmarks(self, landmarks: Any) -> Array:
        n, d = landmarks.shape
        if self.kernel == "precomputed" and n != d:
            raise ValueError(f"A precomputed kernel must be a square matrix, got {(n, d)}.")
        kernel = self._finite_kernel(landmarks)
        if not np.allclose(kernel, kernel.T, rtol=0.0, atol=_INDEFINITE * np.abs(kernel).max()):
            raise ValueError("The kernel matrix of the training rows is not symmetric.")
        return kernel

    def _kernels(self, rows: Any) -> Iterator[tuple[slice, Array]]:
        """The kernel between rows and landmarks, block by block."""
        n_landmarks = len(self._centerer.K_fit_rows_)
        for part in gen_batches(rows.shape[0], max(1, _BLOCK_VALUES // n_landmarks)):
            yield part, self._finite_kernel(rows[part])

    def _finite_kernel(self, rows: Any) -> Array:
        """The kernel between rows and landmarks; refused where numbers are too large for it."""
        with np.errstate(over="ignore", invalid="ignore"):
            kernel = self._kernel_matrix(rows, self.X_fit_)
        if np.isnan(kernel).any() and self.kernel == "poly" and self.degree % 1 != 0:
            raise ValueError(
                f"degree={self.degree!r} is a fraction, and some products of rows are negative, so "
                "that their powers are no numbers: take a whole degree."
            )
        if not np.isfinite(kernel).all():
            explain_not_finite(rows, self)
        return kernel

    def _centred(self, kernel: Array) -> Array:
        """The inner products after the landmarks' mean feature is taken off."""
        return np.asarray(self._centerer.transform(kernel))

    def _squares(self, rows: Any, kernel: Array) -> Array:
        """Squared distances of rows' features from the landmarks' mean feature."""
        own = np.empty(rows.shape[0])
        for part in gen_batches(rows.shape[0], _DIAGONAL_ROWS):
            block = rows[part].astype(np.float64, copy=False)
            own[part] = np.diagonal(self._kernel_matrix(block, block))
        return np.asarray(own - 2.0 * kernel.mean(axis=1) + self._centerer.K_fit_all_)

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        # The landmarks are known before there are components.
        return hasattr(self, "dual_coef_")


def check_memory(n: int, n_matrices: int = KERNEL_MATRICES, way_out: str = "fit a sample") -> None:
    """Raise MemoryError where so many matrices of n rows and columns do not fit."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not known on this system
        return
    needed = 8 * n_matrices * n * n
    if needed > free:
        raise MemoryError(
            f"The kernel matrix of {n:,} rows needs about {needed / 1e9:.0f} GB in all, and "
            f"{free / 1e9:.0f} GB are free: {way_out} of the rows."
        )


def draw_landmarks(codes: Codes, n: int, least: int, seed: int) -> NDArray[np.intp]:
    """Positions of n rows, drawn at random within each group, in the order of the rows.

    Half of them are shared equally, the others go by the number of rows; each group has at least
    `least`, or all of its rows. A small group with few landmarks would be judged by what other
    groups' rows span, and what it could keep by itself would not be seen.
    """
    count = np.bincount(codes)
    needed = np.minimum(count, least).sum()
    if needed > n:
        raise ValueError(
            f"n_landmarks={n} is too few: {len(count)} groups need {needed} of them, "
            f"n_components={least} each or all of their rows."
        )
    given = np.minimum(count, max(least, n // (2 * len(count))))
    while given.sum() < n:  # the next one goes where a landmark stands for the most rows
        given[np.argmax(count / (given + 1))] += 1
    rng = np.random.default_rng(seed)
    drawn = [
        rng.choice(np.flatnonzero(codes == group), size, replace=False)
        for group, size in enumerate(given)
    ]
    return np.sort(np.concatenate(drawn))


def _numerical_range(kernel: Array, rounding: float) -> tuple[Array, Array]:
    """Eigenvalues of a positive semidefinite matrix that are not zero, and their eigenvectors."""
    values, vectors = eigh_descending(kernel)
    if values[-1] < -max(_INDEFINITE * values[0], rounding):
        raise ValueError(
            "The centred kernel matrix is not positive semidefinite: its smallest eigenvalue is "
            f"{values[-1]:.3g}, its largest {values[0]:.3g}. If the kernel is one that should be, "
            "columns far from zero cost its digits: centre them first."
        )
    kept = values > max(_RANGE * values[0], rounding)
    return values[kept], vectors[:, kept]

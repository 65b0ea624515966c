"""KernelParityPCA: the same means for all groups in the feature space of a kernel."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from fairpca._linalg.dense import fix_signs
from fairpca._linalg.types import Array
from fairpca.data import warn_of_no_groups
from fairpca.generalization.cautions import warn_of_groups
from fairpca.groups import Codes
from fairpca.kernel import KernelReduction, check_memory
from fairpca.moments import GroupMoments
from fairpca.parity._spaces import (
    check_dimensions_left,
    directions_without,
    leading_basis,
    parity_gaps,
)
from fairpca.validation import check_whole_number


class KernelParityPCA(KernelReduction):
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
    fairpca.parity.ParityPCA : The same for the rows themselves, also with weights.

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

    mean_gap_: float
    covariance_gap_: float

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
        check_whole_number("n_components", self.n_components)
        self._check_kernel()
        rows, groups = self._read(X, sensitive_features)
        check_memory(rows.shape[0])
        labels, codes = groups.labels, groups.codes
        values, vectors = self._span(rows)
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
        total = values.sum() / (len(coordinates) - 1)
        self.explained_variance_ratio_ = self.explained_variance_ / total
        return self

    def _find_basis(self, coordinates: Array, values: Array, codes: Codes, k: int) -> Array:
        """Orthonormal directions among the training rows' coordinates in the feature space."""
        r, rank = int(self.n_components), len(values)
        means = np.array([coordinates[codes == group].mean(axis=0) for group in range(k)])
        offsets = means - coordinates.mean(axis=0)
        space = directions_without(offsets, float(np.sqrt(values.sum() / len(coordinates))))
        source = f"the centred kernel matrix has rank {rank}"
        check_dimensions_left(r, space.shape[1], rank, source, k)
        return leading_basis(space, np.diag(values), r)

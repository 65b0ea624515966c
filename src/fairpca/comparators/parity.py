"""Demographic parity: projections in which the groups look alike.

`FairPCA` shares the loss among the groups; `ParityPCA` gives all groups the same projected mean,
and with ``match="covariance"`` similar projected covariances too. Other differences remain, and a
classifier can use them.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fairpca._linalg.backends import NUMPY
from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.base import LinearReduction, axes_of_products
from fairpca.data import numerical_rank, warn_of_no_groups
from fairpca.generalization.cautions import warn_of_groups
from fairpca.moments import GroupMoments
from fairpca.validation import check_choice, check_flag, check_whole_number

_EQUAL_MEANS = 1e-12
"""Means that are closer than this share of the rows' spread are equal: what is left of their
difference is below what the means of a million rows have as rounding errors."""


class ParityPCA(LinearReduction):
    """Principal component analysis after which all groups have the same mean.

    Among the subspaces of `n_components` dimensions in which the projected means of all groups
    coincide, this finds the one that keeps the most variance. What tells the groups apart by their
    means alone, as a linear discriminant does, then finds nothing in the projected rows.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the subspace: a number from 1 to the number of columns minus the dimensions
        in which the groups' means differ (at most the number of groups minus one), or None for
        the numerical rank of what is left then.
    match : {"mean", "covariance"}, default="mean"
        "mean" makes the groups' projected means equal; "covariance" also brings their projected
        covariances nearer to each other, at the cost of variance: components are chosen among
        those directions along which the covariances differ least, as many as lie halfway, rounded
        down, between `n_components` and all directions with equal means.
    whiten : bool, default=False
        Whether `transform` divides each column by the root of its `explained_variance_`, as PCA's
        does, and `inverse_transform` multiplies it back.
    missing_labels : {"error", "group", "drop"}, default="error"
        Whether missing sensitive features are an error or a group of their own, or their rows are
        left out, with a warning.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features_in_)
        Orthonormal rows that span the subspace, by falling explained variance.
    mean_ : array of shape (n_features_in_,)
        Mean of all rows.
    explained_variance_ : array of shape (n_components_,)
        Variance along each component, with ``n - 1`` in the denominator as in PCA, n being the
        number of rows with a positive weight.
    explained_variance_ratio_ : array of shape (n_components_,)
        The same, as a share of the total variance.
    singular_values_ : array of shape (n_components_,)
        ``sqrt((n - 1) * explained_variance_)``, as in PCA.
    noise_variance_ : float
        Mean variance in the directions that are left out: what the components do not explain,
        divided by ``min(n, n_features_in_) - n_components_``; 0 where none is left out.
    n_components_ : int
        Dimension of the subspace.
    mean_gap_ : float
        Largest distance between the projected means of two groups; not a number without groups.
    covariance_gap_ : float
        Largest spectral norm of the difference between the projected covariances of two groups.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, when they are strings.

    See Also
    --------
    fairpca.comparators.EqualOpportunityProjection : Equal means of the positives alone.

    Notes
    -----
    With R an orthonormal basis of what is orthogonal to the differences of the groups' means, and C
    the covariance of all rows, the subspace is spanned by R times the leading eigenvectors of
    ``R^T C R`` [1]_. Differences below 1e-12 of the rows' spread count as none. For k groups with
    covariances S_i, the candidates are R times the eigenvectors with the smallest eigenvalues of
    the sum of ``(R^T (S_i - S_j) R)^2`` over all pairs.

    References
    ----------
    .. [1] M. Kleindessner, M. Donini, C. Russell and M. B. Zafar, "Efficient fair PCA for fair
       representation learning", AISTATS 2023.

    Examples
    --------
    >>> from fairpca.datasets import load_adult
    >>> from fairpca.comparators import ParityPCA
    >>> from sklearn.preprocessing import StandardScaler
    >>> adult = load_adult(as_frame=False)
    >>> X = StandardScaler().fit_transform(adult.data)
    >>> parity = ParityPCA(5).fit(X, sensitive_features=adult.sensitive_features)
    >>> parity.mean_gap_ < 1e-10
    True
    >>> similar = ParityPCA(5, match="covariance").fit(
    ...     X, sensitive_features=adult.sensitive_features
    ... )
    >>> round(parity.covariance_gap_, 2), round(similar.covariance_gap_, 2)
    (0.64, 0.23)
    """

    mean_gap_: float
    covariance_gap_: float

    def __init__(
        self,
        n_components: int | None = None,
        *,
        match: str = "mean",
        whiten: bool = False,
        missing_labels: str = "error",
    ) -> None:
        self.n_components = n_components
        self.match = match
        self.whiten = whiten
        self.missing_labels = missing_labels

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the subspace.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight : as for `FairPCA.fit`
            Rows are in memory.

        Returns
        -------
        self : object
        """
        check_whole_number("n_components", self.n_components, optional=True)
        check_flag("whiten", self.whiten)
        check_choice("match", self.match, ("mean", "covariance"))
        moments = self._prepare(X, sensitive_features, sample_weight).moments
        if sensitive_features is None:
            warn_of_no_groups(y, "use scikit-learn's PCA if ordinary PCA is wanted")
        else:
            warn_of_groups(moments)
        covariance = moments.total_covariance()
        basis = self._find_basis(moments, covariance)
        inner, total = basis.T @ covariance @ basis, float(np.trace(covariance))
        mean, n = moments.total_mean, moments.n_rows
        self._set_axes(axes_of_products(basis, inner, total, mean, n))
        self.mean_gap_, self.covariance_gap_ = parity_gaps(moments, basis)
        if sensitive_features is None:  # nothing is known of any group
            self.mean_gap_ = self.covariance_gap_ = float("nan")
        return self

    def _find_basis(self, moments: GroupMoments, covariance: Array) -> Array:
        """Orthonormal columns that span the subspace; `covariance` is that of all rows."""
        space = equal_mean_space(moments)
        whole, left = space.shape
        r = 1 if self.n_components is None else int(self.n_components)
        if r > left:
            why = f"there are {whole} columns"
            if left < whole:
                why += f", and the means of {len(moments.labels)} groups differ in {whole - left} "
                why += "dimensions of these"
            raise ValueError(
                f"n_components={r} is more than the number of dimensions that are left, {left}: "
                f"{why}."
            )
        if self.n_components is None:
            r = numerical_rank(covariance, space)
        if self.match == "covariance" and len(moments.labels) > 1:
            space = similar_covariance_space(moments, space, (r + left) // 2)
        return np.asarray(space @ leading_eigenpairs(space.T @ covariance @ space, r)[1])


def equal_mean_space(moments: GroupMoments) -> Array:
    """Return an orthonormal basis of all directions in which the groups have the same mean."""
    # A mean is stored with an error in proportion to itself, not to the spread about it.
    largest = float(np.linalg.norm(moments.mean, axis=1).max())
    rounding = 16 * np.finfo(float).eps * largest
    variance = np.trace(moments.total_covariance())
    return NUMPY.complement(directions_between(moments.offsets, variance, rounding).T)[1]


def directions_between(offsets: Array, variance: float, rounding: float = 0.0) -> Array:
    """Return orthonormal rows that span the rows of `offsets`, without those that are rounding.

    `variance` is that of the rows of data that the offsets are means of, in all columns together.
    """
    _, sizes, directions = np.linalg.svd(offsets, full_matrices=False)
    level = _EQUAL_MEANS * np.sqrt(max(variance, 0.0)) + rounding
    return np.asarray(directions[sizes > level])


def similar_covariance_space(moments: GroupMoments, space: Array, n_directions: int) -> Array:
    """Return the directions inside a space in which the groups' covariances differ least.

    These are the eigenvectors of the smallest eigenvalues of the sum, over all pairs of groups, of
    the squared difference of their covariances. That sum is k times the sum of the squared
    differences from the covariances' plain average. Its eigenvectors are the right singular
    vectors of those differences on top of each other, which spares squaring them; for two groups
    they are the eigenvectors of the difference with the eigenvalues nearest to zero.
    """
    covariances = projected_covariances(moments, space)
    differences = covariances - covariances.mean(axis=0)
    triangle = np.linalg.qr(differences.reshape(-1, space.shape[1]), mode="r")
    directions = np.linalg.svd(triangle)[2]  # by falling difference
    return np.asarray(space @ directions[len(directions) - n_directions :].T)


def parity_gaps(moments: GroupMoments, basis: Array) -> tuple[float, float]:
    """Return the largest difference between two groups' projected means, and covariances.

    The first is a distance, the second a spectral norm.
    """
    means = moments.mean @ basis
    covariances = projected_covariances(moments, basis)
    mean_gap = covariance_gap = 0.0
    for i in range(1, len(means)):
        distances = np.linalg.norm(means[:i] - means[i], axis=1)
        mean_gap = max(mean_gap, float(distances.max()))
        differences = np.linalg.eigvalsh(covariances[:i] - covariances[i])
        covariance_gap = max(covariance_gap, float(np.abs(differences).max()))
    return mean_gap, covariance_gap


def projected_covariances(moments: GroupMoments, basis: Array) -> Array:
    """Covariance of each group about its own mean, in the coordinates of a basis; (k, r, r)."""
    return np.asarray(basis.T @ moments.scatter @ basis / moments.weight[:, None, None])

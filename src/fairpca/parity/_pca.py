"""ParityPCA: PCA among the directions in which all groups have the same mean."""

from fairpca._linalg.types import Array
from fairpca.moments import GroupMoments
from fairpca.parity._base import LinearParity
from fairpca.parity._spaces import equal_mean_space, leading_basis, similar_covariance_space
from fairpca.validation import check_choice, check_whole_number


class ParityPCA(LinearParity):
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
        covariances nearer to each other, at the cost of variance.
    n_candidates : int or None, default=None
        With ``match="covariance"``: how many of the directions with equal means are kept, those
        along which the groups' covariances differ least, before the components are chosen in their
        span. From `n_components`, for the most similar covariances, to the number of directions
        with equal means, which is the same as ``match="mean"``. None is halfway between the two,
        rounded down.
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
    fairpca.parity.KernelParityPCA : The same in the feature space of a kernel.
    fairpca.parity.ConvexParityPCA : With a tolerance for the means and a price for the covariances.

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
    >>> from fairpca.parity import ParityPCA
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

    def __init__(
        self,
        n_components: int | None = None,
        *,
        match: str = "mean",
        n_candidates: int | None = None,
        whiten: bool = False,
        missing_labels: str = "error",
    ) -> None:
        self.n_components = n_components
        self.match = match
        self.n_candidates = n_candidates
        self.whiten = whiten
        self.missing_labels = missing_labels

    def _check_parameters(self, *, grouped: bool) -> None:
        check_choice("match", self.match, ("mean", "covariance"))
        check_whole_number("n_candidates", self.n_candidates, optional=True)
        if self.n_candidates is None:
            return
        if self.match != "covariance":
            raise ValueError("n_candidates is only used with match='covariance'.")
        if self.n_components is not None and self.n_candidates < self.n_components:
            raise ValueError(
                f"n_candidates={self.n_candidates} must be at least "
                f"n_components={self.n_components}."
            )

    def _find_basis(self, moments: GroupMoments, covariance: Array) -> Array:
        space = equal_mean_space(moments)
        r = self._dimension_in(space, moments, covariance)
        if self.match == "covariance":
            left = space.shape[1]
            n_candidates = (r + left) // 2 if self.n_candidates is None else self.n_candidates
            if n_candidates > left:
                raise ValueError(
                    f"n_candidates={n_candidates} is more than the number of directions in which "
                    f"all groups have the same mean, {left}."
                )
            r = min(r, n_candidates)  # without n_components there may be fewer candidates
            space = similar_covariance_space(moments, space, n_candidates)
        return leading_basis(space, covariance, r)

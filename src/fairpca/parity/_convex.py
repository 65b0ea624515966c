"""ConvexParityPCA: means within a tolerance and a price on covariances, by convex relaxation."""

from numbers import Real

import numpy as np

from fairpca._linalg.dense import eigh_descending
from fairpca._linalg.sdp import BACKENDS, import_cvxpy
from fairpca._linalg.types import Array
from fairpca.moments import GroupMoments
from fairpca.parity._base import LinearParity
from fairpca.parity._relaxation import Relaxation
from fairpca.parity._spaces import (
    directions_without,
    equal_mean_space,
    parity_gaps,
    projected_covariances,
    spread_of,
)
from fairpca.validation import check_choice, check_number


class ConvexParityPCA(LinearParity):
    """Principal component analysis that trades variance for groups that look alike.

    Where `ParityPCA` makes the groups' projected means equal, this lets them differ by a
    tolerance, and it puts a price on differences between their projected covariances. It solves a
    relaxed problem, in which the projector on the subspace may be any symmetric matrix P with
    eigenvalues from 0 to 1 that sum to `n_components`, and returns the subspace of P's leading
    eigenvectors.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the subspace; None is the numerical rank of the rows in the directions in
        which the means differ by nothing that the tolerance forbids.
    mean_tolerance : float, default=0.0
        How far apart the projected means of two groups may lie, in the units of the rows; infinity
        does not bound them. With 0 they are equal. With a positive tolerance the *relaxed* means
        are within it: when P is not a projector, those of the rounded subspace can lie further
        apart, and `mean_gap_` says how far.
    covariance_penalty : float, default=0.0
        Price of differences between the groups' covariances: how much variance may be given up to
        lower the relaxed bound on them by one. The higher it is, the more P is drawn out over
        many directions.
    backend : {"auto", "clarabel", "scs"}, default="auto"
        Solver of the semidefinite program. "auto" is Clarabel while its matrix inequalities have
        at most 60 columns, and SCS for larger ones; a covariance penalty doubles the number.
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
    relaxed_projector_ : array of shape (n_features_in_, n_features_in_)
        The solution P of the relaxed problem.
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
    fairpca.parity.ParityPCA : The same without tolerance and price, without a semidefinite program.

    Notes
    -----
    With C the covariance of all rows, P maximises ``<C, P> - covariance_penalty * t``, where for
    every pair of groups with means m and covariances S [1]_

    - ``f^T P f`` is at most the square of the tolerance, f being ``m_i - m_j``;
    - no eigenvalue of ``P (Q + phi I) P`` or ``P (-Q + phi I) P`` is above t, Q being
      ``S_i - S_j`` and phi the largest spectral norm of such a Q. For a projector P, t is phi more
      than the largest spectral norm of the ``P Q P``.

    The second condition is a linear matrix inequality with twice as many columns as X, two for
    every pair of groups. Without penalty, no program is solved when the tolerance is 0 (the
    solution is that of `ParityPCA`) or PCA keeps to it. A penalty, or a tolerance that is neither 0
    nor infinite, needs cvxpy: install ``fairpca[sdp]``.

    References
    ----------
    .. [1] M. Olfat and A. Aswani, "Convex formulations for fair principal component analysis",
       AAAI 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.parity import ConvexParityPCA
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(["a", "b"], 50)
    >>> X = rng.normal(size=(100, 4)) + 2.0 * (groups == "a")[:, None]
    >>> for tolerance in (0.0, 1.0, np.inf):
    ...     parity = ConvexParityPCA(1, mean_tolerance=tolerance).fit(X, sensitive_features=groups)
    ...     print(f"{parity.mean_gap_:.3f} {parity.explained_variance_ratio_.sum():.3f}")
    0.000 0.141
    1.000 0.178
    4.206 0.660
    """

    relaxed_projector_: Array

    def __init__(
        self,
        n_components: int | None = None,
        *,
        mean_tolerance: float = 0.0,
        covariance_penalty: float = 0.0,
        backend: str = "auto",
        whiten: bool = False,
        missing_labels: str = "error",
    ) -> None:
        self.n_components = n_components
        self.mean_tolerance = mean_tolerance
        self.covariance_penalty = covariance_penalty
        self.backend = backend
        self.whiten = whiten
        self.missing_labels = missing_labels

    def _check_parameters(self, *, grouped: bool) -> None:
        tolerance, penalty = self.mean_tolerance, self.covariance_penalty
        if not (isinstance(tolerance, Real) and float(tolerance) >= 0.0):
            raise ValueError(f"mean_tolerance must be a number of at least 0, got {tolerance!r}.")
        check_number("covariance_penalty", penalty, least=0.0)
        check_choice("backend", self.backend, BACKENDS)
        if grouped and (penalty > 0 or 0.0 < tolerance < np.inf):
            import_cvxpy()  # so that its absence is known before the rows are read

    def _find_basis(self, moments: GroupMoments, covariance: Array) -> Array:
        relaxation, space = self._relaxation(moments, covariance)
        leading = relaxation.pca_basis()
        if leading is not None:
            basis: Array = space @ leading
            self.relaxed_projector_ = basis @ basis.T
            return basis
        if relaxation.r == space.shape[1]:
            raise relaxation.too_tight()
        inner, _ = relaxation.solve(self.backend)
        self.relaxed_projector_ = space @ inner @ space.T
        return np.asarray(space @ eigh_descending(inner)[1][:, : relaxation.r])

    def _relaxation(self, moments: GroupMoments, covariance: Array) -> tuple[Relaxation, Array]:
        """The problem in the coordinates of a space, and an orthonormal basis of that space.

        Without tolerance this is the space in which the means are equal, so that they stay equal
        however inaccurate the solver; with one it is everything.
        """
        d = len(covariance)
        space, far = np.eye(d), np.empty((0, d))
        undisputed = space
        if self.mean_tolerance == 0.0:
            space = undisputed = equal_mean_space(moments)
        elif self.mean_tolerance < np.inf:
            differences = _pair_differences(moments.mean)
            far = differences[np.linalg.norm(differences, axis=1) > self.mean_tolerance]
            undisputed = directions_without(far, spread_of(covariance))
        searched = undisputed if self.n_components is None else space
        penalised = self.covariance_penalty > 0.0
        relaxation = Relaxation(
            covariance=space.T @ covariance @ space,
            r=self._dimension_in(searched, moments, covariance),
            mean_differences=far @ space,
            mean_tolerance=float(self.mean_tolerance),
            covariance_differences=_pair_differences(projected_covariances(moments, space))
            if penalised
            else np.empty((0, *space.T.shape)),
            shift=parity_gaps(moments, np.eye(d))[1] if penalised else 0.0,
            penalty=float(self.covariance_penalty),
        )
        return relaxation, space


def _pair_differences(values: Array) -> Array:
    """Differences between the values of every pair of groups."""
    first, second = np.triu_indices(len(values), 1)
    return np.asarray(values[first] - values[second])

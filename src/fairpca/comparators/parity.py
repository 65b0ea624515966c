"""Demographic parity: projections in which the groups look alike.

`FairPCA` shares the loss among the groups; the estimators here make the projected groups alike in
their means, and if wanted in their covariances. Other differences remain, and a classifier can
use them.
`ParityPCA` gives all groups the same projected mean, and with ``match="covariance"`` similar
projected covariances too; `KernelParityPCA` does the former in the feature space of a kernel;
`ConvexParityPCA` trades both against the variance that is kept, in a semidefinite program.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fairpca._linalg.backends import NUMPY
from fairpca._linalg.dense import fix_signs, leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.base import LinearReduction, axes_of_products
from fairpca.data import warn_of_no_groups
from fairpca.generalization.cautions import warn_of_groups
from fairpca.kernel import KernelReduction, check_memory
from fairpca.moments import GroupMoments
from fairpca.solvers.relaxation import BACKENDS, choose_backend, failure, import_cvxpy, run_program
from fairpca.validation import check_choice, check_number, check_whole_number

# Subspaces in which groups look alike, and how much they still differ in a projection.

_EQUAL_MEANS = 1e-12
"""Means that are closer than this share of the rows' spread are equal: what is left of their
difference is below what the means of a million rows have as rounding errors."""


def equal_mean_space(moments: GroupMoments) -> Array:
    """Return an orthonormal basis of all directions in which the groups have the same mean."""
    # A mean is stored with an error in proportion to itself, not to the spread about it.
    largest = float(np.linalg.norm(moments.mean, axis=1).max())
    rounding = 16 * np.finfo(float).eps * largest
    return directions_without(moments.offsets, np.trace(moments.total_covariance()), rounding)


def directions_without(offsets: Array, variance: float, rounding: float = 0.0) -> Array:
    """Return an orthonormal basis of what is orthogonal to the rows of `offsets`.

    Combinations of these that are zero up to rounding, for rows of data with this total variance,
    do not cost a dimension.
    """
    return NUMPY.complement(directions_between(offsets, variance, rounding).T)[1]


def directions_between(offsets: Array, variance: float, rounding: float = 0.0) -> Array:
    """Return orthonormal rows that span the rows of `offsets`, without those that are rounding."""
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


def leading_basis(space: Array, covariance: Array, r: int) -> Array:
    """Return the r orthonormal directions of a space that keep the most variance."""
    return np.asarray(space @ leading_eigenpairs(space.T @ covariance @ space, r)[1])


def numerical_rank(space: Array, covariance: Array) -> int:
    """Dimensions of a space along which the rows vary by more than rounding, but at least 1."""
    variances = np.linalg.eigvalsh(space.T @ covariance @ space)
    # The rounding errors are those of the whole covariance, of which the space may hold little.
    level = np.linalg.norm(covariance, 2) * len(covariance) * np.finfo(float).eps
    return max(int((variances > level).sum()), 1)


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


def check_dimensions_left(r: int, left: int, whole: int, source: str, n_groups: int) -> None:
    """Raise ValueError when there are fewer than r dimensions in which the means are equal.

    `source` says why there are `whole` dimensions to begin with.
    """
    if r <= left:
        return
    why = source
    if left < whole:
        why += f", and the means of {n_groups} groups differ in {whole - left} dimensions of these"
    raise ValueError(
        f"n_components={r} is more than the number of dimensions that are left, {left}: {why}."
    )


# The semidefinite program of Olfat and Aswani, scaled for the solvers; their results checked.

_ACCURACY = 1e-5
"""How far a solver's result may violate the conditions, each scaled to a size of about one."""

_OPTIONS: dict[str, dict[str, Any]] = {
    # The program is scaled already: with their own scaling on top, Clarabel breaks down on the
    # larger ones, and SCS hardly converges.
    "clarabel": {"equilibrate_enable": False},
    "scs": {"normalize": False, "eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 10_000},
}


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Maximise ``<covariance, P> - price * t`` over ``0 <= P <= I`` with trace r.

    For every unit vector u among the directions ``u^T P u`` is at most its limit, and for every
    factor M ``P M M^T P <= t I``.

    Attributes
    ----------
    covariance : array of shape (m, m)
    r : int
    directions : array of shape (p, m)
        Of the differences between groups' means.
    limits : array of shape (p,)
        Squares of their tolerance, as shares of the squared length of each difference.
    factors : list of arrays of shape (m, m)
        With ``M M^T = I + Q`` and ``I - Q`` for every difference Q of covariances, in units of the
        longest; none where these have no price, or are the same up to rounding.
    price : float
        Of t, in these units.
    """

    covariance: Array
    r: int
    directions: Array
    limits: Array
    factors: list[Array]
    price: float

    def pca_basis(self) -> Array | None:
        """The leading eigenvectors of the covariance where they solve it, else None."""
        if self.factors and self.r < len(self.covariance):  # else P = I, whatever it costs
            return None
        basis = leading_eigenpairs(self.covariance, self.r)[1]
        kept = np.square(self.directions @ basis).sum(axis=1)
        return basis if (kept <= self.limits).all() else None

    def solve(self, backend: str) -> tuple[Array, float] | None:
        """Return P and t, which is zero where it has no price; None if there is no such P."""
        cvxpy, m = import_cvxpy(), len(self.covariance)
        backend = choose_backend(backend, m * (2 if self.factors else 1))
        identity = np.eye(m)
        P, t = cvxpy.Variable((m, m), PSD=True), cvxpy.Variable()
        conditions = [identity - P >> 0, cvxpy.trace(P) == self.r]
        known = zip(self.directions, self.limits, strict=True)
        conditions += [u @ P @ u <= limit for u, limit in known]
        size = (float(np.trace(self.covariance)) + self.price) / m
        gain = cvxpy.sum(cvxpy.multiply(self.covariance / size, P))
        if self.factors:
            gain -= self.price / size * t
        for factor in self.factors:
            block = cvxpy.bmat([[t * identity, P @ factor], [factor.T @ P, identity]])
            conditions.append(block >> 0)
        program = cvxpy.Problem(cvxpy.Maximize(gain), conditions)
        run_program(program, backend, **_OPTIONS[backend])
        if len(self.directions) and program.status.startswith("infeasible"):
            return None
        if P.value is None:
            raise failure(backend, f"it ended as {program.status!r}")
        projector, bound = (P.value + P.value.T) / 2, float(t.value if self.factors else 0.0)
        violation = self._violation(projector, bound)
        if not violation <= _ACCURACY:
            raise failure(backend, f"its result violates a condition by {violation:.1g}")
        return projector, bound

    def _violation(self, projector: Array, bound: float) -> float:
        """The largest violation of a condition."""
        values = np.linalg.eigvalsh(projector)
        found = [-values[0], values[-1] - 1.0, abs(values.sum() - self.r) / self.r]
        found.extend(((self.directions @ projector) * self.directions).sum(axis=1) - self.limits)
        found.extend(np.linalg.norm(projector @ M, 2) ** 2 - bound for M in self.factors)
        return float(np.max(found))


# What the two estimators that project the rows themselves have in common.


class LinearParity(LinearReduction):
    """A reduction that a subclass finds from the moments alone, and what is left of the groups."""

    mean_gap_: float
    covariance_gap_: float

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
        check_choice("whiten", self.whiten, (True, False))
        grouped = sensitive_features is not None
        self._check_parameters(grouped=grouped)
        moments = self._prepare(X, sensitive_features, sample_weight).moments
        if grouped:
            warn_of_groups(moments)
        else:
            warn_of_no_groups(y, "use scikit-learn's PCA if ordinary PCA is wanted")
        covariance = moments.total_covariance()
        basis = self._find_basis(moments, covariance)
        inner, total = basis.T @ covariance @ basis, float(np.trace(covariance))
        mean, n = moments.total_mean, moments.n_rows
        self._set_axes(axes_of_products(basis, inner, total, mean, n))
        self.mean_gap_, self.covariance_gap_ = parity_gaps(moments, basis)
        if not grouped:  # nothing is known of any group
            self.mean_gap_ = self.covariance_gap_ = float("nan")
        return self

    @abstractmethod
    def _check_parameters(self, *, grouped: bool) -> None:
        """Refuse wrong parameters before any work."""

    @abstractmethod
    def _find_basis(self, moments: GroupMoments, covariance: Array) -> Array:
        """Orthonormal columns that span the subspace; `covariance` is that of all rows."""

    def _dimension_in(self, space: Array, moments: GroupMoments, covariance: Array) -> int:
        """The number of components: as asked for, or as many as the space has variance for."""
        whole, left = space.shape
        least = 1 if self.n_components is None else int(self.n_components)
        check_dimensions_left(least, left, whole, f"there are {whole} columns", len(moments.labels))
        return numerical_rank(space, covariance) if self.n_components is None else least


# ParityPCA: PCA among the directions in which all groups have the same mean.


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
    fairpca.comparators.KernelParityPCA : The same in the feature space of a kernel.
    fairpca.comparators.ConvexParityPCA : With a tolerance for means, a price for covariances.

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
    fairpca.comparators.ParityPCA : The same without tolerance, price and semidefinite program.

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
    >>> from fairpca.comparators import ConvexParityPCA
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
        # In all of the dimensions there is but one P, which PCA has found too far from the means.
        solved = relaxation.solve(self.backend) if relaxation.r < space.shape[1] else None
        if solved is None:
            raise ValueError(
                f"No subspace of n_components={relaxation.r} dimensions, relaxed or not, keeps "
                f"the groups' means within mean_tolerance={self.mean_tolerance:g}: take fewer "
                "dimensions or a larger tolerance."
            )
        self.relaxed_projector_ = space @ solved[0] @ space.T
        return np.asarray(space @ NUMPY.eigh(solved[0])[1][:, : relaxation.r])

    def _relaxation(self, moments: GroupMoments, covariance: Array) -> tuple[Relaxation, Array]:
        """The problem in the coordinates of a space, and an orthonormal basis of that space.

        Without tolerance this is the space in which the means are equal, so that they stay equal
        however inaccurate the solver; with one it is everything.
        """
        d, tolerance = len(covariance), float(self.mean_tolerance)
        space, far = np.eye(d), np.empty((0, d))
        undisputed = space
        if tolerance == 0.0:
            space = undisputed = equal_mean_space(moments)
        elif tolerance < np.inf:
            # Others cannot come to lie too far apart: P shortens vectors.
            far = _pair_differences(moments.mean)
            far = far[np.linalg.norm(far, axis=1) > tolerance]
            undisputed = directions_without(far, np.trace(covariance))
        inside = space.T @ covariance @ space
        lengths, factors = np.linalg.norm(far, axis=1), []
        longest = parity_gaps(moments, np.eye(d))[1] if self.covariance_penalty > 0.0 else 0.0
        if longest > 1e-12 * np.trace(inside):
            differences = _pair_differences(projected_covariances(moments, space)) / longest
            factors = [
                vectors * np.sqrt(np.maximum(1.0 + sign * values, 0.0))
                for values, vectors in zip(*np.linalg.eigh(differences), strict=True)
                for sign in (1.0, -1.0)
            ]
        searched = undisputed if self.n_components is None else space
        relaxation = Relaxation(
            covariance=inside,
            r=self._dimension_in(searched, moments, covariance),
            directions=far @ space / lengths[:, None],
            limits=(tolerance / lengths) ** 2,
            factors=factors,
            price=float(self.covariance_penalty) * longest if factors else 0.0,
        )
        return relaxation, space


def _pair_differences(values: Array) -> Array:
    """Differences between the values of every pair of groups."""
    first, second = np.triu_indices(len(values), 1)
    return np.asarray(values[first] - values[second])


# KernelParityPCA: the same means for all groups in the feature space of a kernel.


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
    fairpca.comparators.ParityPCA : The same for the rows themselves, also with weights.

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
    >>> from fairpca.comparators import KernelParityPCA
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
        values, vectors = self._span(rows)
        coordinates, k = vectors * np.sqrt(values), len(groups.labels)
        means = np.array([coordinates[groups.codes == i].mean(axis=0) for i in range(k)])
        space = directions_without(
            means - coordinates.mean(axis=0), values.sum() / len(coordinates)
        )
        source = f"the centred kernel matrix has rank {len(values)}"
        check_dimensions_left(self.n_components, space.shape[1], len(values), source, k)
        basis = leading_basis(space, np.diag(values), self.n_components)
        self.dual_coef_ = fix_signs(vectors @ (basis / np.sqrt(values)[:, None]))
        self.n_components_ = basis.shape[1]
        projected = coordinates @ basis
        moments = GroupMoments.from_groups(projected, groups)
        if sensitive_features is not None:
            warn_of_groups(moments)
        else:
            warn_of_no_groups(y, "use scikit-learn's KernelPCA if ordinary kernel PCA is wanted")
        self.mean_gap_, self.covariance_gap_ = parity_gaps(moments, np.eye(self.n_components_))
        self.explained_variance_ = projected.var(axis=0, ddof=1)
        total = values.sum() / (len(projected) - 1)
        self.explained_variance_ratio_ = self.explained_variance_ / total
        return self


__all__ = ["ConvexParityPCA", "KernelParityPCA", "ParityPCA"]

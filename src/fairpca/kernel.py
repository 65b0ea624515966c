"""KernelFairPCA: fair PCA in the feature space of a kernel, exact and certified.

In the coordinates of `fairpca.kernel`, fair PCA in the feature space is fair
PCA of ordinary rows: a group's loss, its own best subspace and its disparity are the same numbers.
So the moments of the coordinates pose a `Problem`, and its solution and certificate are those of
the feature space, among subspaces of the landmarks' span.

With fewer landmarks (Nyström's method) features have a part outside the span, which nothing here
can keep. Let c be the point of the span next to the mean feature of all rows; rows are measured
from it. A row with the coordinates z loses ``|z - c|^2 - |U^T (z - c)|^2`` in the span and
``k_c(x, x) - |z|^2`` outside, and both add up to the squared distance from its reconstruction. The
problem is posed with the former; `landmark_share_` tells the latter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import gen_batches

from fairpca._linalg.backends import NUMPY
from fairpca._linalg.dense import BLOCK_VALUES
from fairpca._linalg.types import Array
from fairpca.base import Reduction, solution_axes
from fairpca.certificate import Certificate, warn_of_certificate
from fairpca.criteria import Criterion
from fairpca.data import GroupedData, prepare_rows, warn_of_no_groups
from fairpca.fair_pca import checked_choices
from fairpca.generalization.cautions import warn_of_few_rows, warn_of_one_group
from fairpca.group_table import NO_CHANGE, GroupTable
from fairpca.groups import Codes, Groups, warn_of_dropped
from fairpca.moments import GroupMoments, MomentSum
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers import Solver
from fairpca.text import short_text
from fairpca.validation import (
    check_choice,
    check_number,
    check_whole_number,
    explain_not_finite,
)

# Kernels: their parameters, their matrices, and where rows lie in their feature space.
# A kernel k is the inner product of features, ``k(x, y) = <f(x), f(y)>``, which are never
# written down. Let K be the kernel matrix of some training rows, the landmarks, centred so that
# it has the inner products of their features minus the mean feature, and ``K = V diag(l) V^T``
# without the eigenvalues that are rounding. Then the centred features of the landmarks span a
# space with the orthonormal basis ``F^T V diag(l)^(-1/2)``, where F has these features as rows.
# In this basis a row x has the coordinates ``k_c(x) V diag(l)^(-1/2)``, where ``k_c(x)`` is its
# centred kernel with the landmarks; for the landmarks themselves these are the rows of ``V
# diag(l)^(1/2)``, without a division. Lengths and angles in the span are those of the
# coordinates, so whatever is linear in the feature space can be done with them.

_KERNELS = ("linear", "poly", "rbf", "sigmoid", "cosine")

_RANGE = 1e-10
"""Eigenvalues of the kernel matrix below this share of the largest count as zero: coefficients
divide by their roots, which would leave less than ten digits of the projection."""

_INDEFINITE = 1e-5
"""Share of the largest eigenvalue beyond which a negative one is more than rounding, even that of
a single-precision matrix."""

_DIAGONAL_ROWS = 32
"""The kernel of rows with themselves is the diagonal of a matrix of this side: little beside
the kernel with the landmarks, and no formula is needed for each kernel."""

_KERNEL_MATRICES = 4
"""Kernel matrices that are in memory at once: the kernel, centred, its eigenvectors, workspace."""


def check_memory(n: int, n_matrices: int) -> None:
    """Raise MemoryError where this many matrices of n rows and columns do not fit."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not known on this system
        return
    needed = 8 * n_matrices * n * n
    if needed > free:
        raise MemoryError(
            f"The kernel matrix of {n:,} rows needs about {needed / 1e9:.0f} GB in all, and "
            f"{free / 1e9:.0f} GB are free: set n_landmarks to a part of the rows."
        )


def draw_landmarks(codes: Codes, n: int, least: int, seed: int) -> NDArray[np.intp]:
    """Positions of n rows, sampled at random within each group, in the order of the rows.

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


class KernelFairPCA(Reduction):
    """Kernel principal component analysis that is fair to the worst-off group.

    This is `FairPCA` in the feature space of a kernel: of all subspaces of `n_components`
    dimensions there, it finds the one with the smallest largest disparity of a group, with a
    certificate of how near to optimal it is. Losses are squared distances in the feature space.

    With all rows as landmarks, fitting holds a matrix with a number for each *pair* of training
    rows, several times and twice more for each group, and its time grows with the cube of their
    number: set `n_landmarks` for more than some thousand rows. Rows have no weights, and there is
    no way back to the columns.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, at most the rank of the landmarks' centred kernel matrix.
    kernel : {"linear", "poly", "rbf", "sigmoid", "cosine"} or callable, default="rbf"
        As for scikit-learn's `KernelPCA`. A callable takes two rows and returns a number.
    gamma : float or None, default=None
        Coefficient of "rbf", "poly" and "sigmoid"; None is one over the number of columns.
    degree : float, default=3
        Degree of "poly".
    coef0 : float, default=1
        Independent term of "poly" and "sigmoid".
    n_landmarks : int or None, default=None
        How many training rows span the space in which components are looked for; None takes all.
        They are sampled at random within each group. Half of them are shared equally among the
        groups, so that small ones are spanned too, and the others go by their numbers of rows;
        each group has at least `n_components`, or all of its rows.
    criterion, solver : as for `FairPCA`
        Criterion and solver.
    groups, keep_sensitive, missing_labels : as for `FairPCA`
        What sensitive columns make groups of, whether they are features too, and what becomes of
        rows without labels.
    random_state : int or None, default=None
        Seed for the landmarks, and for what is random in a solver that is given by name; None is a
        fixed seed too.

    Attributes
    ----------
    group_table_ : GroupTable
        For each group its count, its loss with its own kernel PCA, with ordinary kernel PCA and
        with this subspace, in the landmarks' span. Print it.
    certificate_ : Certificate
        Proof of how near to optimal the subspace is, among those of the landmarks' span. Print it.
    solution_ : Solution
        What the solver returned; its basis is in coordinates of that span.
    dual_coef_ : array of shape (n_landmarks, n_components_)
        What the centred kernel between rows and landmarks is multiplied by; each column is a
        direction of unit length in the feature space, by falling explained variance.
    explained_variance_ : array of shape (n_components_,)
        Variance of the training rows along each component, with ``n - 1`` in the denominator.
    explained_variance_ratio_ : array of shape (n_components_,)
        The same, as a share of the total variance in the feature space.
    n_components_ : int
        Number of components.
    projection_factors_ : array of shape (n_components_,) or None
        Factors applied to the projections on the components, where a solver uses more
        dimensions than asked for; else None.
    landmark_share_ : array of shape (k,)
        Share of each group's variance in the feature space that lies in the landmarks' span, in
        the order of ``group_table_.labels``; 1 where all rows are landmarks.
    X_fit_ : array or sparse matrix of shape (n_landmarks, n_features_in_)
        The landmarks.
    gamma_ : float
        The coefficient that was used.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, when they are strings.
    sensitive_names_ : tuple of str
        Names of the sensitive columns, as far as they are known.

    See Also
    --------
    fairpca.FairPCA : The same for the rows themselves, with weights.

    Notes
    -----
    The certificate is about subspaces of the landmarks' span. If all rows are landmarks, none
    outside it has a smaller largest measure: directions outside keep nothing of any training row.
    For ``criterion="equal"`` one that is partly outside could waste what a group would keep, but
    new rows could not be projected on it.

    Examples
    --------
    A large group on a ring, and a small one on a smaller ring inside it:

    >>> import numpy as np
    >>> from fairpca import KernelFairPCA
    >>> rng = np.random.default_rng(0)
    >>> angles, groups = rng.uniform(0, 2 * np.pi, 250), np.repeat(["a", "b"], [200, 50])
    >>> X = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> X = X * np.where(groups == "a", 1.0, 0.3)[:, None] + 0.1 * rng.normal(size=X.shape)
    >>> fair = KernelFairPCA(2, gamma=2.0).fit(X, sensitive_features=groups)
    >>> fair.group_table_.pca_disparity.round(3)
    array([0.004, 0.418])
    >>> fair.group_table_.disparity.round(3)
    array([0.119, 0.119])
    >>> fair.certificate_.status
    'optimal'
    >>> bool(np.isclose(fair.reconstruction_errors(X).mean(), fair.solution_.total_loss))
    True
    """

    group_table_: GroupTable
    certificate_: Certificate
    solution_: Solution
    landmark_share_: Array
    dual_coef_: Array
    X_fit_: Any
    gamma_: float

    whiten = False  # a choice that FairPCA has, for the checks that both share

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str | Callable[..., float] = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        n_landmarks: int | None = None,
        criterion: str | Criterion = "minmax",
        solver: str | Solver = "exact",
        groups: str | None = "intersections",
        keep_sensitive: bool = False,
        missing_labels: str = "error",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.criterion = criterion
        self.solver = solver
        self.groups = groups
        self.keep_sensitive = keep_sensitive
        self.missing_labels = missing_labels
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> Self:
        """Find the fair subspace.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Numeric and without missing values.
        y : ignored
            Do not pass the groups here: without `sensitive_features` the result is that of
            ordinary kernel PCA, with a warning unless ``groups=None`` asks for it.
        sensitive_features : str, list of str or array-like of shape (n_samples,) or (n_samples, m)
            The group of each row, or names of columns of a table; several columns make groups as
            `groups` says.

        Returns
        -------
        self : object
        """
        solver = self._check_parameters()
        rows, groups, n_dropped = prepare_rows(X, sensitive_features, self)
        warn_of_dropped(n_dropped, rows.shape[0] + n_dropped)
        chosen = self._chosen_landmarks(rows, groups)
        values, vectors = self._span(rows if chosen is None else rows[chosen])
        if self.n_components > len(values):
            raise ValueError(
                f"n_components={self.n_components!r} is more than the rank of the centred kernel "
                f"matrix of {len(vectors):,} rows, {len(values)}: ask for fewer."
            )
        roots = np.sqrt(values)
        to_span = vectors / roots
        if chosen is None:
            outside = np.zeros(len(vectors))
            moments = GroupMoments.from_groups(vectors * roots, groups)
        else:
            moments, outside = self._mapped(rows, groups, to_span)
        if not moments.is_finite:
            explain_not_finite(rows, self)
        grouped_data = GroupedData(moments, codes=groups.codes).grouped(self.groups)
        if self.groups is not None:
            if sensitive_features is None:
                warn_of_no_groups(y, "set groups=None if ordinary kernel PCA is wanted")
            else:
                warn_of_one_group(grouped_data.moments)
        problem = grouped_data.problem(int(self.n_components), criterion=self.criterion)
        solution = solver.solve(problem)
        self._set_fitted(problem, solution, to_span)
        self._set_shares(problem, grouped_data.group_sums(outside) / grouped_data.moments.count)
        warn_of_certificate(solution.certificate)
        warn_of_few_rows(problem)
        return self

    def transform(self, X: Any) -> Array:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows with the columns of the fit.

        Returns
        -------
        array of shape (n_samples, n_components_)
        """
        rows = self._check_new(X)
        projected = np.empty((rows.shape[0], self.n_components_), dtype=rows.dtype)
        factors = 1.0 if self.projection_factors_ is None else self.projection_factors_
        for part, kernel, _ in self._centred_kernels(rows):
            projected[part] = (kernel @ self.dual_coef_ - self._offset) * factors
        return projected

    def reconstruction_errors(self, X: Any) -> Array:
        """Squared distances of rows from their reconstructions in the feature space.

        On the training rows of a group their mean is its loss, plus what lies outside the
        landmarks' span.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Rows as they enter `fit`.

        Returns
        -------
        array of shape (n_samples,)
        """
        rows = self._check_new(X)
        errors = np.empty(rows.shape[0])
        for part, kernel, mean in self._centred_kernels(rows):
            from_center = self._squares(rows[part], mean) + self._center_square
            from_center -= 2.0 * kernel @ self._center_coef
            kept = (kernel @ self.dual_coef_ - self._offset) ** 2 @ self._retention
            errors[part] = np.maximum(from_center - kept, 0.0)
        return errors

    def _check_parameters(self) -> Solver:
        check_whole_number("n_components", self.n_components)
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, _KERNELS)
        if self.gamma is not None:
            check_number("gamma", self.gamma, least=0.0)
        check_number("degree", self.degree, least=0.0)
        if not (isinstance(self.coef0, Real) and np.isfinite(float(self.coef0))):
            raise ValueError(f"coef0 must be a finite number, got {self.coef0!r}.")
        least = int(self.n_components)
        check_whole_number("n_landmarks", self.n_landmarks, least=least, optional=True)
        return checked_choices(self)[0]

    def _span(self, landmarks: Any) -> tuple[Array, Array]:
        """Eigenvalues l and eigenvectors V of the landmarks' centred kernel; they are kept."""
        n, d = landmarks.shape
        self.gamma_ = 1.0 / d if self.gamma is None else float(self.gamma)
        # A copy: what the caller does to X later must not change the kernel.
        self.X_fit_ = landmarks.astype(np.float64)
        kernel = self._kernel_matrix(landmarks, self.X_fit_)
        largest = float(np.abs(kernel).max())
        if not np.allclose(kernel, kernel.T, rtol=0.0, atol=_INDEFINITE * largest):
            raise ValueError("The kernel matrix of the training rows is not symmetric.")
        self._landmark_means = kernel.mean(axis=0)
        values, vectors = NUMPY.eigh(self._centred(kernel)[0])
        # Beside the kernel before it is centred, small eigenvalues are rounding of that step.
        rounding = n * np.finfo(float).eps * largest
        if values[-1] < -max(_INDEFINITE * values[0], rounding):
            raise ValueError(
                "The centred kernel matrix is not positive semidefinite: its smallest eigenvalue "
                f"is {values[-1]:.3g}, its largest {values[0]:.3g}. If the kernel is one that "
                "should be, columns far from zero cost its digits: centre them first."
            )
        kept = values > max(_RANGE * values[0], rounding)
        return values[kept], vectors[:, kept]

    def _centred_kernels(self, rows: Any) -> Iterator[tuple[slice, Array, Array]]:
        """What `_centred` returns of rows, block by block, and which rows are in a block."""
        step = max(1, BLOCK_VALUES // len(self._landmark_means))
        for part in gen_batches(rows.shape[0], step):
            yield part, *self._centred(self._kernel_matrix(rows[part], self.X_fit_))

    def _centred(self, kernel: Array) -> tuple[Array, Array]:
        """Inner products with the landmarks after their mean feature is taken off, and with it."""
        mean = kernel.mean(axis=1)
        centred = kernel - self._landmark_means
        centred -= (mean - self._landmark_means.mean())[:, None]
        return centred, mean

    def _kernel_matrix(self, rows: Any, others: Any) -> Array:
        """The kernel between rows and others; refused where numbers are too large for it."""
        options: dict[str, Any] = {}
        if not callable(self.kernel):
            options = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        double = rows.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            kernel = np.asarray(
                pairwise_kernels(double, others, metric=self.kernel, filter_params=True, **options)
            )
        if np.isnan(kernel).any() and self.kernel == "poly" and self.degree % 1 != 0:
            raise ValueError(
                f"degree={self.degree!r} is a fraction, and some products of rows are negative, so "
                "that their powers are no numbers: take a whole degree."
            )
        if not np.isfinite(kernel).all():
            explain_not_finite(rows, self)
        return kernel

    def _squares(self, rows: Any, mean: Array) -> Array:
        """Squared distances of rows' features from the landmarks' mean feature.

        `mean` has the rows' inner products with that.
        """
        own = np.empty(rows.shape[0])
        for part in gen_batches(rows.shape[0], _DIAGONAL_ROWS):
            block = rows[part].astype(np.float64, copy=False)
            own[part] = np.diagonal(self._kernel_matrix(block, block))
        return np.asarray(own - 2.0 * mean + self._landmark_means.mean())

    def __sklearn_is_fitted__(self) -> bool:
        # The landmarks are known before there are components.
        return hasattr(self, "dual_coef_")

    def _chosen_landmarks(self, rows: Any, groups: Groups) -> NDArray[np.intp] | None:
        """Positions of the landmarks; None for all rows."""
        n, m, k = rows.shape[0], self.n_landmarks, len(groups.labels)
        if m is not None and m > n:
            raise ValueError(f"n_landmarks={m} is more than the {n:,} rows: leave it out for all.")
        # Two for each group: its moments, and its matrix in the problem.
        check_memory(m or n, _KERNEL_MATRICES + 2 * k)
        if m is None or m == n:
            return None
        codes = np.zeros_like(groups.codes) if self.groups is None else groups.codes
        return draw_landmarks(codes, m, int(self.n_components), self.random_state or 0)

    def _mapped(self, rows: Any, groups: Groups, to_span: Array) -> tuple[GroupMoments, Array]:
        """Moments of all rows' coordinates, and each row's square outside the landmarks' span."""
        total, outside = MomentSum(), np.empty(rows.shape[0])
        for part, kernel, mean in self._centred_kernels(rows):
            with np.errstate(over="ignore", invalid="ignore"):  # the moments will tell
                coordinates = kernel @ to_span
                inside = np.einsum("ij,ij->i", coordinates, coordinates)
                outside[part] = np.maximum(self._squares(rows[part], mean) - inside, 0.0)
            here = replace(groups, codes=groups.codes[part])
            total.add(GroupMoments.from_groups(coordinates, here))
        return total.moments(), outside

    def _set_fitted(self, problem: Problem, solution: Solution, to_span: Array) -> None:
        axes = solution_axes(problem, solution)
        self.dual_coef_ = to_span @ axes.components.T
        self.n_components_ = len(axes.components)
        self.explained_variance_ = axes.explained_variance
        self.explained_variance_ratio_ = axes.explained_variance_ratio
        self.projection_factors_ = axes.projection_factors
        self._offset = axes.components @ axes.mean
        self._center_coef, self._center_square = to_span @ axes.mean, float(axes.mean @ axes.mean)
        self.solution_, self.certificate_ = solution, solution.certificate
        self.group_table_ = GroupTable.from_problem(problem, solution.group_losses, "fair")

    def _set_shares(self, problem: Problem, outside: Array) -> None:
        """Say how much of each group's variance lies outside the landmarks' span."""
        variance = problem.traces + outside
        shares = np.ones(problem.n_groups)
        np.divide(problem.traces, variance, out=shares, where=variance > 0.0)
        self.landmark_share_ = shares
        whole = problem.scale + float(problem.weights @ outside)
        self.explained_variance_ratio_ *= problem.scale / whole
        worst = int(shares.argmin())
        if 1.0 - shares[worst] > NO_CHANGE:
            name = short_text(problem.moments.group_texts[worst])
            note = (
                f"Losses are those in the span of {len(self.dual_coef_):,} landmarks: outside it "
                f"lies {100.0 * (1.0 - shares[worst]):.2g} % of the variance of {name} in the "
                "feature space, and no larger share of any other group's."
            )
            self.group_table_ = replace(self.group_table_, notes=(note,))

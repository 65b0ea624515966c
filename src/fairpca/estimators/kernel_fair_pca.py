"""KernelFairPCA: fair PCA in the feature space of a kernel, exact and certified.

In the coordinates of `fairpca.estimators.kernel_features`, fair PCA in the feature space is fair
PCA of ordinary rows: a group's loss, its own best subspace and its disparity are the same numbers.
So the moments of the coordinates pose a `Problem`, and its solution and certificate are those of
the feature space, among subspaces of the landmarks' span.

With fewer landmarks (Nyström's method) features have a part outside the span, which nothing here
can keep. Let c be the point of the span next to the mean feature of all rows; rows are measured
from it. A row with the coordinates z loses ``|z - c|^2 - |U^T (z - c)|^2`` in the span and
``k_c(x, x) - |z|^2`` outside, and both add up to the squared distance from its reconstruction. The
problem is posed with the former; `landmark_share_` tells the latter.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_whole_number, explain_not_finite
from fairpca._rows.groups import Groups
from fairpca._rows.text import short_text
from fairpca.certificate import Certificate, warn_of_certificate
from fairpca.criteria import Criterion
from fairpca.estimators.base import solution_axes
from fairpca.estimators.cautions import TO_MERGE, warn_of_cautions, warn_of_one_group
from fairpca.estimators.fair_pca import checked_solver
from fairpca.estimators.gather import Gathered, warn_of_no_groups
from fairpca.estimators.kernel_features import (
    KERNEL_MATRICES,
    check_memory,
    draw_landmarks,
)
from fairpca.estimators.kernel_preimages import PreimageReduction
from fairpca.group_table import GroupTable
from fairpca.moments import GroupMoments, MomentSum
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers import Solver

_NO_SHARE = 1e-9
"""Share of a group's variance outside the landmarks' span that is not worth a word."""


class KernelFairPCA(PreimageReduction):
    """Kernel principal component analysis that is fair to the worst-off group.

    This is `FairPCA` in the feature space of a kernel: of all subspaces of `n_components`
    dimensions there, it finds the one in which the largest disparity of a group is as small as can
    be, and says how good that provably is. Losses are squared distances in the feature space.

    With all rows as landmarks, fitting holds a matrix with a number for each *pair* of training
    rows, several times and twice more for each group, and its time grows with the cube of their
    number: set `n_landmarks` for more than some thousand rows. Rows have no weights.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, at most the rank of the landmarks' centred kernel matrix.
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
    n_landmarks : int or None, default=None
        How many training rows span the space in which components are looked for; None takes all.
        They are drawn at random within each group. Half of them are shared equally among the
        groups, so that small ones are spanned too, and the others go by their numbers of rows;
        each group has at least `n_components`, or all of its rows.
    criterion, solver : as for `FairPCA`
        What is asked for and who finds it.
    fit_inverse_transform : bool, default=False
        Whether `inverse_transform` is learned.
    alpha : float, default=1.0
        Ridge penalty of that regression.
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
        How good the subspace provably is, among those of the landmarks' span. Print it.
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
        What the projections on the components are multiplied with, where a solver uses more
        dimensions than asked for; else None.
    landmark_share_ : array of shape (k,)
        Share of each group's variance in the feature space that lies in the landmarks' span, in
        the order of ``group_table_.labels``; 1 where all rows are landmarks.
    X_fit_ : array or sparse matrix of shape (n_landmarks, n_features_in_), or None
        The landmarks; None with a precomputed kernel.
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
    fairpca.parity.KernelParityPCA : All groups have the same mean in the feature space.

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

    # Choices of FairPCA that there are not here, for the checks that both share.
    nested, shrinkage, whiten = False, 0, False

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str | Callable[..., float] = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        n_landmarks: int | None = None,
        criterion: str | Criterion = "minmax",
        solver: str | Solver = "exact",
        fit_inverse_transform: bool = False,
        alpha: float = 1.0,
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
        self.kernel_params = kernel_params
        self.n_landmarks = n_landmarks
        self.criterion = criterion
        self.solver = solver
        self.fit_inverse_transform = fit_inverse_transform
        self.alpha = alpha
        self.groups = groups
        self.keep_sensitive = keep_sensitive
        self.missing_labels = missing_labels
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> Self:
        """Find the fair subspace.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Numeric and without missing values; with a precomputed kernel its matrix.
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
        rows, groups = self._read(X, sensitive_features)
        self._check_dense(rows)
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
            coordinates, outside = vectors * roots, np.zeros(len(vectors))
            moments = GroupMoments.from_groups(coordinates, groups)
        else:
            coordinates = None
            moments, outside = self._mapped(rows, groups, to_span)
        if not moments.is_finite:
            explain_not_finite(rows, self)
        gathered = Gathered(moments, coordinates, groups.codes).grouped(self.groups)
        if self.groups is not None:
            if sensitive_features is None:
                warn_of_no_groups(y, "set groups=None if ordinary kernel PCA is wanted")
            else:
                warn_of_one_group(gathered.moments)
        problem = gathered.problem(int(self.n_components), criterion=self.criterion)
        solution = solver.solve(problem)
        self._set_fitted(problem, solution, to_span)
        self._set_shares(problem, gathered.group_sums(outside) / gathered.moments.count)
        self._learn_preimages()
        warn_of_certificate(solution.certificate)
        warn_of_cautions(problem, self.group_table_, gathered, advice=TO_MERGE, columns=False)
        return self

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
        if self.kernel == "precomputed":
            raise ValueError(
                "reconstruction_errors needs the kernel of each row with itself, which is not in a "
                "precomputed kernel with the training rows: fit with the name of a kernel."
            )
        errors = np.empty(rows.shape[0])
        for part, kernel in self._kernels(rows):
            centred = self._centred(kernel)
            from_center = self._squares(rows[part], kernel) + self._center_square
            from_center -= 2.0 * centred @ self._center_coef
            kept = (centred @ self.dual_coef_ - self._offset) ** 2 @ self._retention
            errors[part] = np.maximum(from_center - kept, 0.0)
        return errors

    def _project(self, kernel: Array) -> Array:
        projected: Array = kernel @ self.dual_coef_ - self._offset
        factors = self.projection_factors_
        return projected if factors is None else projected * factors

    def _check_parameters(self) -> Solver:
        check_whole_number("n_components", self.n_components)
        self._check_kernel()
        least = int(self.n_components)
        check_whole_number("n_landmarks", self.n_landmarks, least=least, optional=True)
        if self.n_landmarks is not None and self.kernel == "precomputed":
            raise ValueError("n_landmarks needs rows, not a precomputed kernel: leave it out.")
        self._check_preimages()
        return checked_solver(self)

    def _chosen_landmarks(self, rows: Any, groups: Groups) -> NDArray[np.intp] | None:
        """Positions of the landmarks; None for all rows."""
        n, m, k = rows.shape[0], self.n_landmarks, len(groups.labels)
        if m is not None and m > n:
            raise ValueError(f"n_landmarks={m} is more than the {n:,} rows: leave it out for all.")
        # Two for each group: its moments, and its matrix in the problem.
        check_memory(m or n, KERNEL_MATRICES + 2 * k, "set n_landmarks to a part")
        if m is None or m == n:
            return None
        codes = np.zeros_like(groups.codes) if self.groups is None else groups.codes
        return draw_landmarks(codes, m, int(self.n_components), self.random_state or 0)

    def _mapped(self, rows: Any, groups: Groups, to_span: Array) -> tuple[GroupMoments, Array]:
        """Moments of all rows' coordinates, and each row's square outside the landmarks' span."""
        total, outside = MomentSum(), np.empty(rows.shape[0])
        for part, kernel in self._kernels(rows):
            with np.errstate(over="ignore", invalid="ignore"):  # the moments will tell
                coordinates = self._centred(kernel) @ to_span
                inside = np.einsum("ij,ij->i", coordinates, coordinates)
                outside[part] = np.maximum(self._squares(rows[part], kernel) - inside, 0.0)
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
        if 1.0 - shares[worst] > _NO_SHARE:
            name = short_text(problem.moments.group_texts[worst])
            note = (
                f"Losses are those in the span of {len(self.dual_coef_):,} landmarks: outside it "
                f"lies {100.0 * (1.0 - shares[worst]):.2g} % of the variance of {name} in the "
                "feature space, and no larger share of any other group's."
            )
            self.group_table_ = replace(self.group_table_, notes=(note,))

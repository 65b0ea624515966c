"""FairPCA, the scikit-learn estimator: it validates, dispatches and sets attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import assert_all_finite, check_array, check_is_fitted

from fairpca._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from fairpca._groups import encode_groups, label_text
from fairpca._validation import (
    check_choice,
    check_rows,
    check_seed,
    check_weights,
    explain_not_finite,
    listed,
)
from fairpca.exceptions import FairnessWarning
from fairpca.linalg import Array, eigh_descending, rotate_to_principal_axes
from fairpca.moments import GroupMoments
from fairpca.problem import CENTERINGS, CRITERIA, LOSSES, Problem
from fairpca.solution import Certificate, Solution
from fairpca.solvers import SOLVERS, Solver
from fairpca.table import GroupTable


class FairPCA(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Principal component analysis in which every group gives up the same.

    Ordinary PCA fits the majority. This finds the subspace of `n_components` dimensions in which
    the *disparity* of every group (its reconstruction loss less what it would lose with its own
    PCA) is equal, at the least total loss, and says how good the result provably is.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Dimension of the subspace: a number from 1 to the number of columns; a share in (0, 1),
        meaning the smallest dimension at which the worst-off group keeps that share of its
        variance (about the centre that `centering` names); or None for the numerical rank.
    criterion : {"equal", "minmax"}, default="equal"
        "equal" asks for equal disparities at the least total loss, "minmax" for the least largest
        disparity. They agree for two groups.
    tolerance : float, default=0.0
        How far apart the disparities of two groups may lie, in the units of the loss; only used
        by "equal".
    loss : {"mean", "sum"}, default="mean"
        Whether a group's loss is the mean over its rows or the sum (the formula of Kamani et al.,
        which lets a small group bear a large loss per row).
    centering : {"global", "group"}, default="global"
        Whether losses are measured from the mean of all rows or of each group. `mean_` and
        `transform` always use the mean of all rows, so with "group" the losses are not those of
        ``inverse_transform(transform(X))``.
    solver : {"auto", "exact", "pareto"} or object with ``solve(problem)``, default="auto"
        "exact" finds the optimum, with a proof (`ExactSolver`); "pareto" is the gradient method of
        Kamani et al., which ends near it (`ParetoDescent`); "auto" is "exact".
    missing_labels : {"error", "group"}, default="error"
        Whether missing sensitive features are an error or a group of their own.
    random_state : int or None, default=None
        Seed for what is random in a solver that is given by name; None is a fixed seed too. A
        solver that is given as an object has its own.

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
    n_components_ : int
        Dimension of the subspace.
    group_table_ : GroupTable
        For each group its count, its loss with its own PCA, with ordinary PCA and with this
        subspace, and its disparity with both. Print it.
    certificate_ : Certificate
        How good the subspace provably is. Print it.
    solution_ : Solution
        What the solver returned.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, when they are strings.

    See Also
    --------
    fairpca.audit : The same table for a reduction that is already in use.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_adult
    >>> from sklearn.preprocessing import StandardScaler
    >>> adult = load_adult()
    >>> X = StandardScaler().set_output(transform="pandas").fit_transform(adult.data)
    >>> fair = FairPCA(5).fit(X, sensitive_features=adult.sensitive_features)
    >>> fair.certificate_.status
    'optimal'
    >>> fair.group_table_.pca_disparity.round(4)
    array([0.6887, 0.5436])
    >>> fair.group_table_.disparity.round(4)
    array([0.5933, 0.5933])
    """

    # Without this, metadata routing would ask every user to request it.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    components_: Array
    mean_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    n_components_: int
    group_table_: GroupTable
    certificate_: Certificate
    solution_: Solution

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        criterion: str = "equal",
        tolerance: float = 0.0,
        loss: str = "mean",
        centering: str = "global",
        solver: str | Solver = "auto",
        missing_labels: str = "error",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.tolerance = tolerance
        self.loss = loss
        self.centering = centering
        self.solver = solver
        self.missing_labels = missing_labels
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> FairPCA:
        """Find the fair subspace.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Numeric and without missing values.
        y : ignored
            Do not pass the groups here: without `sensitive_features` the result is that of
            ordinary PCA.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, m), default=None
            The group of each row; several columns make groups of their intersections.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows.

        Returns
        -------
        self : FairPCA
        """
        solver = self._check_parameters()
        rows = check_rows(X, self, reset=True, ensure_min_samples=2)
        self._check_dimension(rows.shape[1])
        labels, codes = encode_groups(sensitive_features, rows.shape[0], self.missing_labels)
        weights = check_weights(sample_weight, rows.shape[0])
        moments = GroupMoments.from_codes(rows, codes, labels, weights)
        if not moments.is_finite:
            explain_not_finite(rows, self)
        if sensitive_features is not None:
            _warn_of_groups(moments)
        problem, solution = self._run(moments, solver)
        self._set_fitted(problem, solution)
        if solution.certificate.status in ("infeasible", "unresolved"):
            warnings.warn(str(solution.certificate), FairnessWarning, stacklevel=2)
        return self

    def transform(self, X: Any) -> Array:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components_)
        """
        check_is_fitted(self)
        rows = check_rows(X, self, reset=False)
        assert_all_finite(
            rows.data if hasattr(rows, "toarray") else rows,
            estimator_name=type(self).__name__,
            input_name="X",
        )
        # Two products instead of centred rows: no centred copy, and sparse rows stay sparse.
        scores = rows @ self.components_.T - self.mean_ @ self.components_.T
        reduced: Array = scores.astype(rows.dtype, copy=False)
        return reduced

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Bring reduced rows back to the original columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_)

        Returns
        -------
        array of shape (n_samples, n_features_in_)
        """
        check_is_fitted(self)
        reduced = check_array(X, dtype=[np.float64, np.float32])
        if reduced.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {reduced.shape[1]} columns, but this FairPCA reduces to "
                f"{self.n_components_}."
            )
        restored: Array = (reduced @ self.components_ + self.mean_).astype(
            reduced.dtype, copy=False
        )
        return restored

    def score(self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None) -> float:
        """Minus the reconstruction error, averaged over the rows: higher is better.

        The error of a row is its squared distance from its reconstruction, summed over columns.
        Fairness does not enter, so a search by this score prefers more components and more
        tolerance.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        rows = check_rows(X, self, reset=False)
        weights = check_weights(sample_weight, rows.shape[0])
        moments = GroupMoments.from_codes(rows, np.zeros(rows.shape[0], np.int8), ["all"], weights)
        if not moments.is_finite:
            explain_not_finite(rows, self)
        offset = moments.mean[0] - self.mean_
        matrix = moments.scatter[0] / moments.weight[0] + np.outer(offset, offset)
        kept = np.einsum("ij,ij->", self.components_ @ matrix, self.components_)
        return -max(float(np.trace(matrix) - kept), 0.0)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_parameters(self) -> Solver:
        """Refuse wrong parameters before any work; returns the solver."""
        n = self.n_components
        whole = isinstance(n, Integral) and not isinstance(n, bool)
        share = isinstance(n, Real) and not isinstance(n, Integral)
        if not (n is None or (whole and n >= 1) or (share and 0.0 < float(n) < 1.0)):
            raise ValueError(
                "n_components must be None, an integer of at least 1, or a share strictly "
                f"between 0 and 1, got {n!r}."
            )
        check_choice("criterion", self.criterion, CRITERIA)
        check_choice("loss", self.loss, LOSSES)
        check_choice("centering", self.centering, CENTERINGS)
        if not (isinstance(self.tolerance, Real) and 0.0 <= float(self.tolerance) < np.inf):
            raise ValueError(f"tolerance must be a number of at least 0, got {self.tolerance!r}.")
        check_seed(self.random_state)
        if isinstance(self.solver, type):
            raise ValueError(
                f"solver must be an instance, not the class {self.solver.__name__}: write "
                f"solver={self.solver.__name__}()."
            )
        if hasattr(self.solver, "solve"):
            return self.solver
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        name = "exact" if self.solver == "auto" else self.solver
        solver: Solver = SOLVERS[name](random_state=self.random_state)
        return solver

    def _check_dimension(self, d: int) -> None:
        if isinstance(self.n_components, Integral) and self.n_components > d:
            raise ValueError(
                f"n_components={self.n_components!r} must be between 1 and n_features={d}."
            )

    @with_callbacks  # type: ignore[untyped-decorator]
    def _run(self, moments: GroupMoments, solver: Solver) -> tuple[Problem, Solution]:
        task = FitTask(self, getattr(solver, "n_steps", 0))
        solve = partial(solver.solve, progress=task.progress) if task.progress else solver.solve
        solved = self._solve(moments, solve)
        task.end()
        return solved

    def _solve(
        self, moments: GroupMoments, solve: Callable[[Problem], Solution]
    ) -> tuple[Problem, Solution]:
        n = self.n_components
        if n is None or isinstance(n, Integral):
            problem = self._problem(moments, _numerical_rank(moments) if n is None else int(n))
            return problem, solve(problem)
        # In no subspace does a group keep more than in its own, so start where that is enough.
        for r in range(
            _least_dimension(self._problem(moments, 1), float(n)), moments.n_features + 1
        ):
            problem = self._problem(moments, r)
            solution = solve(problem)
            kept = problem.traces - solution.group_losses
            if (kept >= float(n) * problem.traces).all():
                break
        return problem, solution

    def _problem(self, moments: GroupMoments, r: int) -> Problem:
        return Problem(
            moments,
            r,
            criterion=self.criterion,
            tolerance=float(self.tolerance),
            loss=self.loss,
            centering=self.centering,
        )

    def _set_fitted(self, problem: Problem, solution: Solution) -> None:
        moments = problem.moments
        if problem.loss == "mean" and problem.centering == "global":
            covariance = problem.total_matrix
        else:
            covariance = moments.total_covariance()
        variances, basis = rotate_to_principal_axes(solution.basis, covariance)
        n = int(moments.count.sum())
        total = float(np.trace(covariance))
        self.solution_ = solution
        self.certificate_ = solution.certificate
        self.group_table_ = GroupTable.of(problem, solution.group_losses, "fair")
        self.mean_ = moments.total_mean
        self.components_ = np.ascontiguousarray(basis.T)
        self.n_components_ = problem.n_components
        self.explained_variance_ = variances * (n / max(n - 1, 1))
        self.explained_variance_ratio_ = (
            variances / total if total > 0 else np.zeros(len(variances))
        )


def _warn_of_groups(moments: GroupMoments) -> None:
    names = [label_text(label) for label in moments.labels]
    if len(names) == 1:
        warnings.warn(
            f"sensitive_features has one group only, {names[0]!r}: the result is that of "
            "ordinary PCA.",
            FairnessWarning,
            stacklevel=3,
        )
    single = [name for name, count in zip(names, moments.count, strict=True) if count == 1]
    if single:
        warnings.warn(
            f"Groups with a single row: {listed(single, 5)}. A row loses nothing in its "
            "own subspace, so the disparity of such a group says little; think of merging it.",
            FairnessWarning,
            stacklevel=3,
        )


def _numerical_rank(moments: GroupMoments) -> int:
    values, _ = eigh_descending(moments.total_covariance())
    level = values[0] * len(values) * np.finfo(float).eps
    return max(int((values > level).sum()), 1)


def _least_dimension(problem: Problem, share: float) -> int:
    """The smallest r at which every group keeps the share of its variance in its own subspace."""
    values = np.maximum(np.linalg.eigvalsh(problem.matrices)[:, ::-1], 0.0)
    kept = np.cumsum(values, axis=1)
    enough = (kept >= (1 - 1e-12) * share * problem.traces[:, None]).all(axis=0)
    return int(np.argmax(enough)) + 1

"""FairPCA, the scikit-learn estimator: it validates, dispatches and sets attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fairpca._linalg.dense import eigh_descending
from fairpca._linalg.library import cluster_library, device_library, to_host
from fairpca._rows.checks import (
    check_choice,
    check_device_rows,
    check_rows,
    check_seed,
    check_weights,
    explain_not_finite,
)
from fairpca._rows.groups import UNGROUPED, encode_groups
from fairpca._rows.row_space import RowSpace
from fairpca.certificate import Certificate
from fairpca.estimators.base import LinearReduction, warn_of_groups
from fairpca.estimators.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from fairpca.estimators.distributed import (
    DistributedTransform,
    distributed_moments,
    most_features,
)
from fairpca.exceptions import FairnessWarning
from fairpca.moments import GroupMoments
from fairpca.problem import CENTERINGS, CRITERIA, LOSSES, Problem
from fairpca.solution import Solution
from fairpca.solvers import SOLVERS, Solver
from fairpca.table import GroupTable
from fairpca.vrpca import VRPCA


@dataclass(frozen=True, eq=False)
class _Taken:
    """What `partial_fit` has taken in: moments, and whether they are by sensitive features."""

    moments: GroupMoments
    grouped: bool


class FairPCA(CallbackSupportMixin, DistributedTransform, LinearReduction):
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
    solver : str or object with ``solve(problem)``, default="auto"
        "exact" finds the optimum, with a proof (`ExactSolver`); "auto" is "exact". "pareto" is the
        gradient method of Kamani et al., which ends near it (`ParetoDescent`). The others are
        published methods to compare with, each with a criterion of its own: "sdp", "mw",
        "sdp-iterative", "mw-iterative", "epsilon-constraint", "lagrangian", "nash",
        "max-min-variance", "u-fpca", "c-fpca" (see `fairpca.solvers`). Some of them use more
        dimensions than asked for: `n_components_` says how many.
    own_pca : "exact" or VRPCA, default="exact"
        How each group's own subspace is found: by its eigenvalues, or by a stochastic method on
        the rows (`fairpca.vrpca.VRPCA`), whose error enters the certificate.
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
        Variance of each column of ``transform(X)``, with ``n - 1`` in the denominator as in PCA, n
        being the number of rows with a positive weight.
    explained_variance_ratio_ : array of shape (n_components_,)
        The same, as a share of the total variance.
    n_components_ : int
        Dimension of the subspace.
    shrinkage_ : array of shape (n_components_,) or None
        What the projections on the components are multiplied with, where a solver uses more
        dimensions than asked for (the columns of ``transform(X)`` are then correlated); else None.
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

    # Without this, metadata routing would ask every user to request it, as for fit.
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

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
        own_pca: str | VRPCA = "exact",
        missing_labels: str = "error",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.tolerance = tolerance
        self.loss = loss
        self.centering = centering
        self.solver = solver
        self.own_pca = own_pca
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
            Numeric and without missing values. Or an array or data frame of Dask, or a data frame
            of Spark: nothing but moments leaves the cluster (see `fairpca.sources.dask_moments`
            and `fairpca.sources.spark_moments`). Or an array of PyTorch or CuPy: the moments, and
            with many columns the large matrices of the search, stay on its device.
        y : ignored
            Do not pass the groups here: without `sensitive_features` the result is that of
            ordinary PCA.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, m), default=None
            The group of each row; several columns make groups of their intersections. With Dask a
            collection with the same partitions, or with Dask or Spark names of columns of X.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows; a Dask collection or a name as above.

        Returns
        -------
        self : FairPCA
        """
        solver = self._check_parameters()
        if cluster_library(X) is not None or device_library(X) is not None:
            self._refuse_own_pca("a fit to rows of Dask, Spark, PyTorch or CuPy")
            moments = self._gather_where_they_are(X, sensitive_features, sample_weight)
            self._check_moments(moments)
            if sensitive_features is not None:
                warn_of_groups(moments, stacklevel=3)
            self._finish(moments, solver, partial(self._problem, moments))
            return self
        rows = check_rows(X, self, reset=True, ensure_min_samples=2)
        self._check_dimension(rows.shape[1])
        moments, codes, weights, space = self._gather(
            rows, sensitive_features, sample_weight, reduce_wide=True
        )

        def pose(r: int) -> Problem:
            known, source = moments, rows
            if space is not None:
                width = min(moments.n_features + r, rows.shape[1])
                known, source = moments.padded(width), space.padded_rows(width)
            problem = self._problem(known, r)
            if isinstance(self.own_pca, str):
                return problem
            centers = np.where(self.centering == "group", known.mean, known.total_mean)
            return replace(
                problem, own_bases=self.own_pca.subspaces(source, codes, centers, r, weights)
            )

        self._finish(moments, solver, pose, space=space)
        return self

    def fit_moments(self, moments: GroupMoments) -> FairPCA:
        """Find the fair subspace of rows of which only the moments are at hand.

        The result is that of `fit` on those rows: `GroupMoments` are all that it keeps of them.
        They come from parts of the data, files (`fairpca.sources`) or other places.

        Parameters
        ----------
        moments : GroupMoments
            Of at least two rows. Their `feature_names`, if any, become `feature_names_in_`.

        Returns
        -------
        self : FairPCA

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import FairPCA, GroupMoments
        >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
        >>> groups = np.repeat(["a", "b"], 150)
        >>> halves = (GroupMoments.from_rows(X[i::2], groups[i::2]) for i in range(2))
        >>> fair = FairPCA(2).fit_moments(GroupMoments.merge(halves))
        >>> fair.group_table_.count.tolist()
        [150, 150]
        """
        if not isinstance(moments, GroupMoments):
            raise TypeError(
                f"fit_moments takes GroupMoments, not a {type(moments).__name__}: use fit for rows."
            )
        solver = self._check_parameters()
        self._refuse_own_pca("fit_moments")
        self._check_moments(moments)
        if moments.labels != UNGROUPED:
            warn_of_groups(moments, stacklevel=3)
        self._finish(moments, solver, partial(self._problem, moments))
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> FairPCA:
        """Take in some more rows and find the fair subspace of all rows so far.

        After any batches the subspace is that of `fit` on all of their rows: what is kept between
        calls are their moments, which add exactly. New groups may turn up at any time. Each call
        finds the subspace anew; where only the last one matters, add `GroupMoments` and call
        `fit_moments` once. `fit` and `fit_moments` start anew and keep no moments (they would
        make every pickle larger), so `partial_fit` after one of them starts anew too, and warns.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Numeric and without missing values. Of a first row alone there is no subspace yet: the
            estimator is fitted from the second one on.
        y : ignored
        sensitive_features : array-like of shape (n_samples,) or (n_samples, m), default=None
            The group of each row; several columns make groups of their intersections. All calls
            give them, or none.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows.

        Returns
        -------
        self : FairPCA

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import FairPCA
        >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
        >>> groups = np.repeat(["a", "b", "c"], 100)
        >>> fair = FairPCA(2)
        >>> for batch in np.split(np.random.default_rng(1).permutation(300), 3):
        ...     fair = fair.partial_fit(X[batch], sensitive_features=groups[batch])
        >>> fair.group_table_.count.tolist()
        [100, 100, 100]
        """
        solver = self._check_parameters()
        self._refuse_own_pca("partial_fit")
        before: _Taken | None = getattr(self, "_taken", None)
        if before is None and hasattr(self, "components_"):
            warnings.warn(
                "partial_fit starts anew: fit and fit_moments keep no moments that it could add "
                "to. To go on from other rows, add their GroupMoments and call fit_moments.",
                FairnessWarning,
                stacklevel=2,
            )
        grouped = sensitive_features is not None
        if before is not None and before.grouped != grouped:
            raise ValueError(
                "sensitive_features must be given in all calls of partial_fit or in none, and "
                f"earlier calls had {'none' if grouped else 'them'}."
            )
        if device_library(X) is not None:
            X = to_host(X)
        rows = check_rows(X, self, reset=before is None)
        self._check_dimension(rows.shape[1])
        labels, codes = encode_groups(sensitive_features, rows.shape[0], self.missing_labels)
        weights = check_weights(sample_weight, rows.shape[0])
        moments = GroupMoments.from_codes(rows, codes, labels, weights)
        if not moments.is_finite:
            explain_not_finite(rows, self)
        if before is not None:
            moments = before.moments + moments
        if moments.count.sum() >= 2:
            if grouped:
                warn_of_groups(moments, stacklevel=3)
            self._finish(moments, solver, partial(self._problem, moments), grouped=grouped)
        else:
            self._taken = _Taken(moments, grouped)
        return self

    def _gather_where_they_are(
        self, X: Any, sensitive_features: Any, sample_weight: Any
    ) -> GroupMoments:
        """Moments of rows on a cluster or a device: nothing else leaves it."""
        if cluster_library(X) is None:
            rows = check_device_rows(X, at_least=2)
            self._check_dimension(rows.shape[1])
            return GroupMoments.from_rows(
                rows,
                sensitive_features,
                sample_weight=sample_weight,
                missing_labels=self.missing_labels,
            )
        self._check_dimension(most_features(X))
        moments: GroupMoments = distributed_moments(
            X,
            sensitive_features,
            sample_weight=sample_weight,
            missing_labels=self.missing_labels,
        )
        return moments

    def _check_moments(self, moments: GroupMoments) -> None:
        """Refuse moments without a fit, and record their columns."""
        n = int(moments.count.sum())
        if n < 2:
            raise ValueError(f"The moments are those of n_samples={n}; a minimum of 2 is required.")
        if not moments.is_finite:
            raise ValueError("The moments are not finite: some of their rows were not.")
        self._check_dimension(moments.n_features)
        self.n_features_in_ = moments.n_features
        if moments.feature_names is not None:
            self.feature_names_in_ = np.array(moments.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _finish(
        self,
        moments: GroupMoments,
        solver: Solver,
        pose: Callable[[int], Problem],
        *,
        grouped: bool | None = None,
        space: RowSpace | None = None,
    ) -> None:
        """Solve and set what is fitted; for `partial_fit`, whether there are groups is given.

        `space` is where the moments live, if not in the columns of the rows.
        """
        problem, solution = self._run(moments, solver, pose)
        self._set_fitted(problem, solution, space)
        # Together with the rest, so that a call that is interrupted can be made again. Only
        # partial_fit keeps moments: others would make their pickles larger for nothing.
        self.__dict__.pop("_taken", None)
        if grouped is not None:
            self._taken = _Taken(moments, grouped)
        if solution.certificate.status in ("infeasible", "unresolved"):
            warnings.warn(str(solution.certificate), FairnessWarning, stacklevel=3)

    def _refuse_own_pca(self, method: str) -> None:
        if not isinstance(self.own_pca, str):
            raise ValueError(f"own_pca=VRPCA() needs all rows, which {method} does not have.")

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
        exact = isinstance(self.own_pca, str) and self.own_pca == "exact"
        if not (exact or isinstance(self.own_pca, VRPCA)):
            raise ValueError(f"own_pca must be 'exact' or a VRPCA(), got {self.own_pca!r}.")
        if isinstance(self.solver, type | partial):
            made = getattr(self.solver, "func", self.solver).__name__
            raise ValueError(
                f"solver must be an instance, not the class {made}: write solver={made}()."
            )
        if hasattr(self.solver, "solve"):
            return self.solver
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        name = "exact" if self.solver == "auto" else self.solver
        make = SOLVERS[name]
        known = {field.name for field in fields(getattr(make, "func", make))}
        seed = {"random_state": self.random_state} if "random_state" in known else {}
        solver: Solver = make(**seed)
        return solver

    @with_callbacks  # type: ignore[untyped-decorator]
    def _run(
        self, moments: GroupMoments, solver: Solver, pose: Callable[[int], Problem]
    ) -> tuple[Problem, Solution]:
        task = FitTask(self, getattr(solver, "n_steps", 0))

        def solve(problem: Problem) -> Solution:
            progress = task.steps()
            # Solvers without steps need not know of progress.
            return solver.solve(problem, progress) if progress else solver.solve(problem)

        solved = self._solve(moments, solve, pose)
        task.end()
        return solved

    def _solve(
        self,
        moments: GroupMoments,
        solve: Callable[[Problem], Solution],
        pose: Callable[[int], Problem],
    ) -> tuple[Problem, Solution]:
        n = self.n_components
        if n is None or isinstance(n, Integral):
            problem = pose(self._numerical_rank(moments) if n is None else int(n))
            return problem, solve(problem)
        # In no subspace does a group keep more than in its own, so start where that is enough.
        for r in range(
            _least_dimension(self._problem(moments, 1), float(n)), moments.n_features + 1
        ):
            problem = pose(r)
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

    def _numerical_rank(self, moments: GroupMoments) -> int:
        values, _ = eigh_descending(moments.total_covariance())
        level = values[0] * self.n_features_in_ * np.finfo(float).eps
        return max(int((values > level).sum()), 1)

    def _set_fitted(
        self, problem: Problem, solution: Solution, space: RowSpace | None = None
    ) -> None:
        """Set what is fitted; `space` is where the problem was posed, if not in all columns."""
        at_hand = problem.loss == "mean" and problem.centering == "global" and not problem.is_large
        self._set_components(
            solution.basis,
            problem.moments,
            shares=solution.retention,
            covariance=problem.total_matrix if at_hand else None,
            space=space,
        )
        if space is not None:
            solution = replace(solution, basis=space.lift(solution.basis))
        self.solution_ = solution
        self.certificate_ = solution.certificate
        self.group_table_ = GroupTable.of(problem, solution.group_losses, "fair")


def _least_dimension(problem: Problem, share: float) -> int:
    """The smallest r at which every group keeps the share of its variance in its own subspace."""
    values = np.maximum(np.linalg.eigvalsh(problem.matrices)[:, ::-1], 0.0)
    kept = np.cumsum(values, axis=1)
    enough = (kept >= (1 - 1e-12) * share * problem.traces[:, None]).all(axis=0)
    return int(np.argmax(enough)) + 1

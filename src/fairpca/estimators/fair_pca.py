"""FairPCA, the scikit-learn estimator: it validates, dispatches and sets attributes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairpca._rows.checks import check_choice, check_seed
from fairpca._rows.choices import CENTERINGS, LOSSES, check_fairness
from fairpca._rows.groups import UNGROUPED
from fairpca._rows.row_space import RowSpace
from fairpca.certificate import Certificate
from fairpca.estimators.base import LinearReduction, solution_axes
from fairpca.estimators.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from fairpca.estimators.distributed import DistributedTransform
from fairpca.estimators.gather import (
    Gathered,
    check_dimension,
    check_moments,
    record_columns,
    warn_of_groups,
)
from fairpca.estimators.nesting import NestingTable
from fairpca.estimators.partial import PartialFit, Taken
from fairpca.exceptions import FairnessWarning
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers import SOLVERS, Nested, Solver, check_nested, has_own_criterion
from fairpca.table import GroupTable

_FAIRNESS = ("criterion", "tolerance", "measure", "relative", "bounds", "max_extra_loss")
_CHOICES = (*_FAIRNESS, "loss", "centering")
"""Parameters that are those of a `Problem`."""

_ROUNDING = 1e-12
"""Part of a group's variance that sums of eigenvalues may lack."""


class FairPCA(CallbackSupportMixin, PartialFit, DistributedTransform, LinearReduction):
    """Principal component analysis that is fair to the worst-off group.

    Ordinary PCA fits the majority. This finds the subspace of `n_components` dimensions in which
    the largest *disparity* of a group (its reconstruction loss minus what it would lose with its
    own PCA) is as small as can be, and says how good the result provably is.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Dimension of the subspace: a number from 1 to the number of columns; a share in (0, 1),
        meaning the smallest dimension at which the worst-off group keeps that share of its
        variance (about the centre that `centering` names); or None for the numerical rank.
    criterion : {"minmax", "equal"}, default="minmax"
        "minmax" asks for the least largest disparity, and where that leaves a choice for the least
        total loss. "equal" asks for equal disparities at the least total loss, the definition of
        Kamani et al. For two groups they agree; for more, equality can leave every group worse off
        than ordinary PCA.
    tolerance : float, default=0.0
        How far apart the disparities of two groups may lie, in their units; only for "equal".
    measure : {"disparity", "loss", "variance"}, default="disparity"
        What stands in the place of the disparity above: the disparity itself, the reconstruction
        loss, or minus the variance that a group keeps.
    relative : bool, default=False
        Whether it is divided by the group's variance, which makes it a share, without a unit.
    bounds : float, mapping or array-like of shape (k,), default=None
        Ask for the least total loss with no group's measure above its bound: one number for all
        groups, or one for each, by label or in the order of the sorted labels. With
        ``measure="variance"`` bounds are what each group keeps at the least.
    max_extra_loss : float, default=None
        Ask for the least largest measure among subspaces that lose at most this share more than
        the least total loss, which is ordinary PCA's: 0.01 is one per cent more.
    nested : bool, default=False
        Whether the first j components are to be a fair subspace of j dimensions for every j. Each
        component is then the best given those before it, and they keep this order. `nesting_` says
        what that costs.
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
        "u-fpca", "c-fpca" (see `fairpca.solvers`). Some of them use more
        dimensions than asked for: `n_components_` says how many.
    whiten : bool, default=False
        Whether `transform` divides each column by the root of its `explained_variance_`, as PCA's
        does, and `inverse_transform` multiplies it back.
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
        Variance of each column of ``transform(X)`` before whitening, with ``n - 1`` in the
        denominator as in PCA, n being the number of rows with a positive weight.
    explained_variance_ratio_ : array of shape (n_components_,)
        The same, as a share of the total variance.
    singular_values_ : array of shape (n_components_,)
        ``sqrt((n - 1) * explained_variance_)``, as in PCA.
    noise_variance_ : float
        Mean variance in the directions that are left out: what the components do not explain,
        divided by ``min(n, n_features_in_) - n_components_``; 0 where none is left out.
    n_components_ : int
        Dimension of the subspace.
    projection_factors_ : array of shape (n_components_,) or None
        What the projections on the components are multiplied with, where a solver uses more
        dimensions than asked for (the columns of ``transform(X)`` are then correlated); else None.
    group_table_ : GroupTable
        For each group its count, its loss with its own PCA, with ordinary PCA and with this
        subspace, and its disparity with both. Print it.
    certificate_ : Certificate
        How good the subspace provably is. Print it.
    nesting_ : NestingTable
        What nesting costs for each number of components; only with ``nested=True``. Print it.
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

    group_table_: GroupTable
    certificate_: Certificate
    solution_: Solution

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        criterion: str = "minmax",
        tolerance: float = 0.0,
        measure: str = "disparity",
        relative: bool = False,
        bounds: Any = None,
        max_extra_loss: float | None = None,
        nested: bool = False,
        loss: str = "mean",
        centering: str = "global",
        solver: str | Solver = "auto",
        whiten: bool = False,
        missing_labels: str = "error",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.tolerance = tolerance
        self.measure = measure
        self.relative = relative
        self.bounds = bounds
        self.max_extra_loss = max_extra_loss
        self.nested = nested
        self.loss = loss
        self.centering = centering
        self.solver = solver
        self.whiten = whiten
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
            of Spark: nothing but moments leaves the cluster (see `fairpca.sources.read_moments`).
            Or an array of PyTorch or CuPy: the moments, and with many columns the large matrices of
            the search, stay on its device.
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
        gathered = self._gather(
            X, sensitive_features, sample_weight, reduce_wide=True, in_place=True
        )
        self._finish(gathered, solver, grouped=sensitive_features is not None)
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
        gathered = Gathered(moments)
        solver = self._check_gathered(gathered)
        self._finish(gathered, solver, grouped=moments.labels != UNGROUPED)
        return self

    def fit_gathered(self, gathered: Gathered) -> FairPCA:
        """Find the fair subspace of rows that `gather` has checked and summed up already.

        For those who gather once and fit several times; `fit` and `fit_moments` are for the rest.

        Parameters
        ----------
        gathered : Gathered

        Returns
        -------
        self : FairPCA
        """
        solver = self._check_gathered(gathered)
        self._finish(gathered, solver, grouped=gathered.moments.labels != UNGROUPED)
        return self

    @classmethod
    def from_solution(
        cls,
        problem: Problem,
        solution: Solution,
        *,
        missing_labels: str = "error",
        random_state: int | None = None,
    ) -> FairPCA:
        """The estimator of a problem that a solver has solved already.

        Parameters
        ----------
        problem : Problem
            Its dimension and choices become parameters.
        solution : Solution
            What a solver returned for it.
        missing_labels, random_state
            Parameters for fitting to other rows.

        Returns
        -------
        FairPCA
            Fitted; to fit it anew takes the solver "auto".

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import ExactSolver, FairPCA, GroupMoments, Problem
        >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
        >>> problem = Problem(GroupMoments.from_rows(X, np.repeat(["a", "b"], 150)), 2)
        >>> FairPCA.from_solution(problem, ExactSolver().solve(problem)).transform(X).shape
        (300, 2)
        """
        choices = {name: getattr(problem, name) for name in _CHOICES}
        others: dict[str, Any] = {"missing_labels": missing_labels, "random_state": random_state}
        fair = cls(problem.n_components, **choices, **others)
        record_columns(fair, problem.moments)
        fair._set_fitted(problem, solution)
        return fair

    def _finish(
        self, gathered: Gathered, solver: Solver, *, grouped: bool, taken: Taken | None = None
    ) -> None:
        """Solve and set what is fitted; `grouped` says whether there are sensitive features."""
        if grouped:
            warn_of_groups(gathered.moments, stacklevel=4)
        problem, solution = self._run(gathered, solver)
        self._set_fitted(problem, solution, gathered.space)
        # Together with the rest, so that a call that is interrupted can be made again. Only
        # partial_fit keeps moments: others would make their pickles larger for nothing.
        self.__dict__.pop("_taken", None)
        if taken is not None:
            self._taken = taken
        worse = solution.certificate.all_worse_off and len(gathered.moments.labels) > 1
        if worse or solution.certificate.status in ("infeasible", "unresolved"):
            warnings.warn(str(solution.certificate), FairnessWarning, stacklevel=3)

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
        check_fairness(*(getattr(self, name) for name in _FAIRNESS))
        check_choice("loss", self.loss, LOSSES)
        check_choice("centering", self.centering, CENTERINGS)
        check_choice("whiten", self.whiten, (True, False))
        check_seed(self.random_state)
        given: Any = self.solver
        if isinstance(given, type | partial):
            made: Any = getattr(given, "func", given)
            raise ValueError(
                f"solver must be an instance, not the class {made.__name__}: write "
                f"solver={made.__name__}()."
            )
        if not hasattr(given, "solve"):
            check_choice("solver", given, ("auto", *SOLVERS))
            make: Any = SOLVERS["exact" if given == "auto" else given]
            known = {field.name for field in fields(getattr(make, "func", make))}
            seed = {"random_state": self.random_state} if "random_state" in known else {}
            given = make(**seed)
        solver: Solver = given
        check_choice("nested", self.nested, (True, False))
        if self.nested:
            limited = self.bounds is not None or self.max_extra_loss is not None
            check_nested("limited" if limited else self.criterion, solver)
            nested: Any = Nested(solver)
            return nested  # type: ignore[no-any-return]
        asked = [
            name
            for name, holds in {
                "measure": self.measure != "disparity",
                "relative": bool(self.relative),
                "bounds": self.bounds is not None,
                "max_extra_loss": self.max_extra_loss is not None,
            }.items()
            if holds
        ]
        if asked and has_own_criterion(solver):
            raise ValueError(
                f"solver={self.solver!r} has a criterion of its own, and cannot do "
                f"{' and '.join(asked)}: leave them out, or use solver='exact'."
            )
        return solver

    def _check_gathered(self, gathered: Gathered) -> Solver:
        """The same for rows that are summed up already, whose columns are recorded."""
        solver = self._check_parameters()
        check_moments(gathered.moments, None)
        check_dimension(self.n_components, gathered.n_features)
        record_columns(self, gathered)
        return solver

    @with_callbacks  # type: ignore[untyped-decorator]
    def _run(self, gathered: Gathered, solver: Solver) -> tuple[Problem, Solution]:
        n_steps, n = getattr(solver, "n_steps", 0), self.n_components
        task = FitTask(self, n_steps) if n_steps else None
        share = None if n is None or isinstance(n, Integral) else float(n)
        choices = {name: getattr(self, name) for name in _CHOICES}
        choices["tolerance"] = float(self.tolerance)
        for r in self._dimensions(gathered, choices):
            problem = gathered.problem(r, **choices)
            progress = None if task is None else task.steps()
            # Solvers without steps need not know of progress.
            solution = solver.solve(problem, progress) if progress else solver.solve(problem)
            kept = problem.traces - solution.group_losses
            if share is None or (kept >= share * problem.traces).all():
                break
        if task is not None:
            task.end()
        return problem, solution

    def _dimensions(self, gathered: Gathered, choices: dict[str, Any]) -> Sequence[int]:
        """The dimensions to try: the first in which every group keeps its share is the answer."""
        n = self.n_components
        if n is None or isinstance(n, Integral):
            return [gathered.numerical_rank() if n is None else int(n)]
        # In no subspace does a group keep more than in its own, so start where that is enough.
        problem = gathered.problem(1, **choices)
        values = np.maximum(np.linalg.eigvalsh(problem.matrices)[:, ::-1], 0.0)
        needed = (1 - _ROUNDING) * float(n) * problem.traces[:, None]
        enough = (np.cumsum(values, axis=1) >= needed).all(axis=0)
        return range(int(np.argmax(enough)) + 1, gathered.moments.n_features + 1)

    def _set_fitted(
        self, problem: Problem, solution: Solution, space: RowSpace | None = None
    ) -> None:
        """Set what is fitted; `space` is where the problem was posed, if not in all columns."""
        self._set_axes(solution_axes(problem, solution, space))
        if space is not None:
            solution = replace(solution, basis=space.lift(solution.basis))
        self.solution_ = solution
        self.certificate_ = solution.certificate
        self.__dict__.pop("nesting_", None)
        if solution.is_ordered:
            self.nesting_ = NestingTable.from_steps(solution.history["steps"])
        self.group_table_ = GroupTable.from_problem(problem, solution.group_losses, "fair")

"""FairPCA, the scikit-learn estimator: it validates, dispatches and sets attributes."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

from numpy.typing import ArrayLike

from fairpca._linalg.threads import threads_for
from fairpca._rows.labels import grouping_of
from fairpca._rows.row_space import RowSpace
from fairpca.certificate import Certificate, warn_of_certificate
from fairpca.estimators.base import LinearReduction, solution_axes
from fairpca.estimators.baselines import Baselines
from fairpca.estimators.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from fairpca.estimators.cautions import TO_FIT, TRIED, warn_of_cautions, warn_of_one_group
from fairpca.estimators.choices import PROBLEM_CHOICES, checked_solver
from fairpca.estimators.cross_fit import CrossFit, chosen_shrinkage
from fairpca.estimators.distributed import DistributedTransform
from fairpca.estimators.gather import (
    Gathered,
    check_dimension,
    check_moments,
    record_columns,
    warn_of_no_groups,
)
from fairpca.estimators.nesting import NestingTable
from fairpca.estimators.partial import MomentsFit, Taken
from fairpca.estimators.shrinkage import shrunk_problem, unshrunk
from fairpca.group_table import GroupTable
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers import Solver


class FairPCA(CallbackSupportMixin, MomentsFit, DistributedTransform, LinearReduction):
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
        groups, one for each in the order of ``group_table_.labels``, or some by label, which leaves
        the other groups without a bound. With ``measure="variance"`` bounds are what each group
        keeps at the least.
    max_extra_loss : float, default=None
        Ask for the least largest measure among subspaces whose total loss exceeds ordinary PCA's,
        the least of all, by at most this share: 0.01 is one per cent more, 0 leaves PCA itself.
    nested : bool, default=False
        Whether the first j components are to be a fair subspace of j dimensions for every j. Each
        component is then the best given those before it, and they keep this order. `nesting_` says
        what that costs.
    shrinkage : float or "auto", default=0
        How far each group's covariance is drawn towards that of all rows, in rows: as if so many
        further rows of the group had been drawn from all rows. Small groups are then not fitted to
        their noise. 0 is exactly fair to the rows at hand, `numpy.inf` is ordinary PCA, and "auto"
        chooses by rows held out, in five folds, and by what groups differ beyond chance.
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
        "u-fpca", "c-fpca" (see `fairpca.solvers`): `n_components_` has their dimension.
    whiten : bool, default=False
        Whether `transform` divides each column by the root of its `explained_variance_`, as PCA's
        does, and `inverse_transform` multiplies it back.
    groups : {"intersections", "marginals", "both"} or None, default="intersections"
        What several sensitive columns make groups of: their intersections, such as Black women;
        marginal groups, such as all women and all Black people, in which each row is in one group
        for each column; or both. The total loss counts each row once. None asks for ordinary
        PCA: sensitive features are not used.
    keep_sensitive : bool, default=False
        Whether columns of X that `sensitive_features` names stay among the features.
    missing_labels : {"error", "group", "drop"}, default="error"
        Whether missing sensitive features are an error or a group of their own, or their rows are
        left out, with a warning.
    random_state : int or None, default=None
        Seed for what is random in a solver that is given by name; None is a fixed seed too. A
        solver that is given as an object has its own.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features_in_)
        Orthonormal rows that span the subspace, by falling explained variance; nested ones in the
        order in which they were found.
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
    shrinkage_ : float
        The shrinkage that was used, in rows.
    cross_fit_ : CrossFit
        What each group loses on rows held out, for each amount of shrinkage, and the estimate of
        its disparity beyond the rows at hand; only where "auto" had groups small enough to need
        it, or moments with folds were given. Print it.
    nesting_ : NestingTable
        What nesting costs for each number of components; only with ``nested=True``. Print it.
    solution_ : Solution
        What the solver returned.
    baselines_ : Baselines or None
        Each group's own subspace and that of ordinary PCA, for ``audit(…, baseline="training")``;
        None where they would be large, or there are far more columns than rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, when they are strings.
    sensitive_names_ : tuple of str
        Names of the sensitive columns, as far as they are known. `transform` takes tables with
        these columns and without them.

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
    baselines_: Baselines | None

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
        shrinkage: float | str = 0,
        loss: str = "mean",
        centering: str = "global",
        solver: str | Solver = "auto",
        whiten: bool = False,
        groups: str | None = "intersections",
        keep_sensitive: bool = False,
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
        self.shrinkage = shrinkage
        self.loss = loss
        self.centering = centering
        self.solver = solver
        self.whiten = whiten
        self.groups = groups
        self.keep_sensitive = keep_sensitive
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
            ordinary PCA, with a warning unless ``groups=None`` asks for it.
        sensitive_features : str, list of str or array-like of shape (n_samples,) or (n_samples, m)
            The group of each row; several columns make groups as `groups` says. Or names of
            columns of X, which is then a table of pandas, Polars, pyarrow, Dask or Spark; in a
            pipeline, of the table that reaches this step. With Dask also a collection with the
            same partitions. A column of more than 50 different numbers, or 20 with fractions, is
            refused: bin it, or pass codes as text or as a category.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows; a Dask collection or a name as above.

        Returns
        -------
        self : FairPCA
        """
        solver = self._check_parameters()
        folds = "needed" if self._needs_folds(sensitive_features is not None) else None
        gathered = self._gather(
            X, sensitive_features, sample_weight, reduce_wide=True, in_place=True, folds=folds
        )
        self._finish(gathered, solver, grouped=sensitive_features is not None, y=y)
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
        missing_labels, random_state : str, int or None
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
        choices = {name: getattr(problem, name) for name in PROBLEM_CHOICES}
        others: dict[str, Any] = {"missing_labels": missing_labels, "random_state": random_state}
        features, sensitive = problem.moments.feature_names, problem.moments.group_names
        others["groups"] = grouping_of(problem.moments.labels)
        others["keep_sensitive"] = not set(features or ()).isdisjoint(sensitive or ())
        fair = cls(problem.n_components, **choices, **others)
        record_columns(fair, problem.moments)
        fair._set_fitted(problem, solution)
        return fair

    def _finish(
        self,
        gathered: Gathered,
        solver: Solver,
        *,
        grouped: bool,
        y: Any = None,
        taken: Taken | None = None,
        first: bool = True,
    ) -> None:
        """Solve and set what is fitted; where groups are not given, the first batch warns."""
        if self.groups is not None:
            if grouped:
                warn_of_one_group(gathered.moments)
            elif first:
                warn_of_no_groups(y, "set groups=None if ordinary PCA is wanted")
        with threads_for(gathered.moments.n_features):
            problem, solution, judged = self._run(gathered, solver)
            self._set_fitted(problem, solution, gathered.space, judged)
            # Together with the rest, so that a call that is interrupted can be made again. Only
            # partial_fit keeps moments: others would make their pickles larger for nothing.
            self.__dict__.pop("_taken", None)
            if taken is not None:
                self._taken = taken
            warn_of_certificate(solution.certificate)
            advice = TRIED if self.shrinkage == "auto" else TO_FIT
            said = {"advice": advice, "choice": judged and judged.caution}
            shrunk = self.shrinkage_ > 0.0
            warn_of_cautions(problem, self.group_table_, gathered, shrunk=shrunk, **said)

    def _check_parameters(self) -> Solver:
        return checked_solver(self)

    def _check_gathered(self, gathered: Gathered) -> Solver:
        """The same for rows that are summed up already, whose columns are recorded."""
        solver = self._check_parameters()
        check_moments(gathered.moments, None)
        check_dimension(self.n_components, gathered.n_features)
        record_columns(self, gathered)
        return solver

    @with_callbacks  # type: ignore[untyped-decorator]
    def _run(self, gathered: Gathered, solver: Solver) -> tuple[Problem, Solution, CrossFit | None]:
        n_steps, n = getattr(solver, "n_steps", 0), self.n_components
        task = FitTask(self, n_steps) if n_steps else None
        share = None if n is None or isinstance(n, Integral) else float(n)
        choices = {name: getattr(self, name) for name in PROBLEM_CHOICES}
        choices["tolerance"] = float(self.tolerance)
        for r in gathered.dimensions(n, **choices):
            problem = gathered.problem(r, **choices)
            n0, judged = chosen_shrinkage(self.shrinkage, gathered, self.groups, problem, solver)
            progress = None if task is None else task.steps()
            # Solvers without steps need not know of progress.
            posed = shrunk_problem(problem, n0)
            solution = solver.solve(posed, progress) if progress else solver.solve(posed)
            if n0 > 0.0:
                solution = unshrunk(solution, problem, n0)
            kept = problem.traces - solution.group_losses
            if share is None or (kept >= share * problem.traces).all():
                break
        if task is not None:
            task.end()
        return problem, solution, judged

    def _needs_folds(self, grouped: bool) -> bool:
        """Whether rows are to be held out, where there are sensitive features."""
        return grouped and self.groups is not None and self.shrinkage == "auto"

    def _set_fitted(
        self,
        problem: Problem,
        solution: Solution,
        space: RowSpace | None = None,
        judged: CrossFit | None = None,
    ) -> None:
        """Set what is fitted; `space` is where the problem was posed, if not in all columns."""
        self._set_axes(solution_axes(problem, solution, space))
        if space is not None:
            solution = replace(solution, basis=space.lift(solution.basis))
        self.solution_ = solution
        self.certificate_ = solution.certificate
        self.shrinkage_ = solution.certificate.shrinkage
        # To take subspaces back to far more columns would cost a tenth of the fit.
        self.baselines_ = Baselines.of_problem(problem) if space is None else None
        for name in ("nesting_", "cross_fit_"):
            self.__dict__.pop(name, None)
        if judged is not None:
            self.cross_fit_ = judged
        if solution.is_ordered:
            self.nesting_ = NestingTable.from_steps(solution.history["steps"])
        beyond = None if judged is None else (judged.pca_disparity, judged.disparity)
        table = GroupTable.from_problem(problem, solution.group_losses, "fair")
        self.group_table_ = replace(table, held_out=beyond)

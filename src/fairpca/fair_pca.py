"""FairPCA, the scikit-learn estimator: it validates, dispatches and sets attributes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import count
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpca._linalg.backends import cluster_library
from fairpca._linalg.threads import threads_for
from fairpca._linalg.types import Array
from fairpca.base import LinearReduction, solution_axes
from fairpca.certificate import Certificate, warn_of_certificate
from fairpca.criteria import Criterion, MinMax, as_criterion
from fairpca.data import (
    GroupedData,
    check_dimension,
    check_moments,
    record_columns,
    warn_of_no_groups,
)
from fairpca.generalization.cautions import (
    chance_notes,
    dominant_column,
    filled_notes,
    warn_of_few_rows,
    warn_of_one_group,
)
from fairpca.generalization.noise import SamplingNoise
from fairpca.group_table import GroupTable, HeldOut
from fairpca.groups import GROUPINGS, UNGROUPED, grouping_of
from fairpca.moments import GroupMoments
from fairpca.moments.row_space import RowSpace
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers import SOLVERS, Solver
from fairpca.text import label_text
from fairpca.validation import (
    MISSING_VALUES,
    check_choice,
    check_components,
    check_flag,
    check_seed,
)

Listener = Callable[..., None]
"""Called after each step of a solver: how many of how many are done, and by name its results."""


# Baselines: the subspaces of the rows that a model was fitted to, for judging it by others.

_MOST_BYTES = 2**24
"""Baselines that take more memory are not kept."""


@dataclass(frozen=True, eq=False)
class Baselines:
    """Each training group's own best subspace and that of ordinary PCA; set by `FairPCA`.

    ``audit(model, X_new, baseline="training", …)`` measures new rows against them.

    Attributes
    ----------
    labels : tuple of length k
        The training groups.
    count : integer array of shape (k,)
        Their training rows.
    own_bases : array of shape (k, d, r)
        Each group's own best subspace, about the mean of all training rows.
    pca_basis : array of shape (d, r)
        That of ordinary PCA on all training rows.
    mean : array of shape (d,)
        Mean of all training rows.
    """

    labels: tuple[Hashable, ...]
    count: NDArray[np.int64]
    own_bases: Array
    pca_basis: Array
    mean: Array

    @classmethod
    def of_problem(cls, problem: Problem, space: RowSpace | None = None) -> Baselines:
        """Baselines of a problem; free if the problem has been solved.

        `space` is where it is posed, if not in all columns. Losses of new rows are measured from
        the mean of all rows: with other centres the subspaces are found again.
        """
        if problem.centering != "global":
            problem = replace(problem, centering="global")
        moments = problem.moments
        own, pca, mean = list(problem.own_subspaces), problem.pca_basis, moments.total_mean
        if space is not None:
            own, pca = [space.lift(basis) for basis in own], space.lift(pca)
            mean = space.lift_point(mean)
        return cls(moments.labels, moments.count, np.stack(own), np.ascontiguousarray(pca), mean)

    @property
    def n_components(self) -> int:
        """Dimension of the subspaces."""
        return int(self.pca_basis.shape[1])

    def position(self, label: Hashable) -> int | None:
        """Which of the training groups this is, by its label or as it is shown; None for none."""
        if label in self.labels:
            return self.labels.index(label)
        texts = [label_text(known) for known in self.labels]
        shown = label_text(label)
        return texts.index(shown) if texts.count(shown) == 1 else None


def baselines_of(estimator: Any) -> Baselines:
    """Training baselines of a fitted model; ValueError if it has none."""
    name, instead = type(estimator).__name__, "use baseline='rows'"
    if not hasattr(estimator, "baselines_"):
        raise ValueError(
            f"baseline='training' needs each training group's own subspace, which {name} does not "
            f"keep: fit a FairPCA to the training rows and audit that, or {instead}."
        )
    found: Baselines | None = estimator.baselines_
    if found is None:
        raise ValueError(
            f"baseline='training' needs each training group's own subspace, which this {name} has "
            "not kept: its file was written without them (see save_model), or it was fitted to far "
            f"more columns than rows, or they would take more than {_MOST_BYTES >> 20} MB; "
            f"{instead}."
        )
    return found


class ClusterTransform:
    """`transform` that leaves the rows of Dask and Spark where they are.

    A base class, so that it is not wrapped by what scikit-learn's `set_output` asks for: that would
    collect all rows.
    """

    def transform(self, X: Any) -> Any:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Or an array or data frame of Dask, or a data frame of Spark. Those two take the columns
            of the fit by their names and leave others out.

        Returns
        -------
        array of shape (n_samples, n_components_)
            Of Dask and Spark what was given: nothing is computed until its rows are asked for.
        """
        if cluster_library(X) is None:
            return super().transform(X)  # type: ignore[misc]
        from fairpca.sources import transform_distributed

        return transform_distributed(self, X)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and project the same rows on the components.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Or of Dask or Spark, as in `fit`.
        y : ignored
        **fit_params : dict
            What `fit` takes, such as ``sensitive_features``.

        Returns
        -------
        array of shape (n_samples, n_components_)
            What `transform` returns.
        """
        if cluster_library(X) is None:
            return super().fit_transform(X, y, **fit_params)  # type: ignore[misc]
        return self.fit(X, y, **fit_params).transform(X)  # type: ignore[attr-defined]


class FairPCA(ClusterTransform, LinearReduction):
    """Principal component analysis that is fair to the worst-off group.

    Ordinary PCA fits the majority. This finds the subspace of `n_components` dimensions that lowers
    the largest *disparity* of a group (its reconstruction loss minus that with its own PCA), as far
    as differences between groups are significant, with a certificate of how near to optimal it is.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Dimension of the subspace: a number from 1 to the number of columns; a share in (0, 1),
        meaning the smallest dimension at which every group keeps that share of its variance with
        this criterion; or None for the numerical rank.
    criterion : {"soft", "minmax", "equal", "balanced"} or Criterion, default="soft"
        The notion of fairness. "soft" is made for new data: it hardly acts on differences between
        groups well below two standard errors, and increasingly on larger ones (`SoftMinMax`).
        "minmax" minimises the largest disparity in these rows; ties are broken by total loss
        (`MinMax`). "equal" asks for equal disparities at the least total loss, the definition of
        Kamani et al. (`Equal`). "balanced" gives every group the same weight (`Balanced`). As
        objects they have parameters: the number of standard errors, the measure that fairness is
        judged on, a tolerance, a limit on the extra loss, and bounds for single groups (`AtMost`).
    solver : str or object with ``solve(problem)``, default="exact"
        "exact" finds the optimum, with a proof (`ExactSolver`). "pareto" is the
        gradient method of Kamani et al., which ends near it (`ParetoDescent`). The others are
        published methods to compare with. All but "exact" have a criterion of their own, which
        replaces the default one: "sdp", "mw",
        "sdp-iterative", "mw-iterative", "epsilon-constraint", "lagrangian",
        "u-fpca", "c-fpca" (see `fairpca.solvers`): `n_components_` has their dimension.
    whiten : bool, default=False
        Whether `transform` divides each column by the root of its `explained_variance_`, as PCA's
        does, and `inverse_transform` multiplies it back.
    groups : {"intersections", "marginals", "both"} or None, default="intersections"
        How several sensitive columns define groups: their intersections, such as Black women;
        marginal groups, such as all women and all Black people, in which each row is in one group
        for each column; or both. The total loss counts each row once. None asks for ordinary
        PCA: sensitive features are not used.
    keep_sensitive : bool, default=False
        Whether columns of X that `sensitive_features` names stay among the features.
    missing_labels : {"error", "group", "drop"}, default="error"
        Whether missing sensitive features are an error or a group of their own, or their rows are
        left out, with a warning.
    missing_values : {"error", "mean"}, default="error"
        Whether missing values (nan, None, masked ones) are an error, or take the mean of their
        column at the fit. `transform` then fits rows by least squares on the columns in which
        they have values.
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
        Factors applied to the projections on the components, where a solver uses more
        dimensions than asked for (the columns of ``transform(X)`` are then correlated); else None.
    group_table_ : GroupTable
        For each group its count, its loss with its own PCA, with ordinary PCA and with this
        subspace, and its disparity with both. Print it.
    certificate_ : Certificate
        Proof of how near to optimal the subspace is. Print it.
    solution_ : Solution
        What the solver returned.
    filled_share_ : array of shape (n_groups,) or None
        Share of each group's values that were missing and are column means in the fit; None with
        ``missing_values="error"``, and of moments.
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
    array([0.5989, 0.5903])
    """

    group_table_: GroupTable
    certificate_: Certificate
    solution_: Solution
    baselines_: Baselines | None
    filled_share_: Array | None

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        criterion: str | Criterion = "soft",
        solver: str | Solver = "exact",
        whiten: bool = False,
        groups: str | None = "intersections",
        keep_sensitive: bool = False,
        missing_labels: str = "error",
        missing_values: str = "error",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.solver = solver
        self.whiten = whiten
        self.groups = groups
        self.keep_sensitive = keep_sensitive
        self.missing_labels = missing_labels
        self.missing_values = missing_values
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
            Numeric, and without missing values unless `missing_values` fills them. Or an array or
            data frame of Dask, or a data frame of Spark: nothing but moments leaves the cluster
            (see `fairpca.sources.read_moments`). Or an array of PyTorch or CuPy: the moments, and
            with many columns the large matrices of the search, stay on its device.
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
        choices = checked_choices(self)
        given = sensitive_features is not None and self.groups is not None
        options: dict[str, Any] = {"reduce_wide": True, "in_place": True}
        options["folds"] = "needed" if given and choices[1].estimates_noise else None
        grouped_data = self._prepare(X, sensitive_features, sample_weight, **options)
        self._finish(grouped_data, choices, y=y)
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
        >>> halves = (GroupMoments.from_rows(X[i::2], groups[i::2], folds=True) for i in range(2))
        >>> fair = FairPCA(2).fit_moments(GroupMoments.merge(halves))
        >>> fair.group_table_.count.tolist()
        [150, 150]
        """
        if not isinstance(moments, GroupMoments):
            raise TypeError(
                f"fit_moments takes GroupMoments, not a {type(moments).__name__}: use fit for rows."
            )
        return self.fit_data(GroupedData.from_moments(moments))

    def fit_data(self, grouped_data: GroupedData, listener: Listener | None = None) -> FairPCA:
        """Find the fair subspace of rows that `prepare_data` has checked and summed up already.

        Parameters
        ----------
        grouped_data : GroupedData
            What it returned.
        listener : callable, default=None
            Told after each step of a solver how many of how many are done, and by name what the
            solver reports of them.

        Returns
        -------
        self : FairPCA
        """
        grouped_data = grouped_data.grouped(self.groups)
        choices = checked_choices(self)
        check_moments(grouped_data.moments, None)
        check_dimension(self.n_components, grouped_data.n_features)
        record_columns(self, grouped_data)
        self._finish(grouped_data, choices, listener=listener)
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
            Its dimension and criterion become parameters.
        solution : Solution
            What a solver returned for it.
        missing_labels, random_state : str, int or None
            Parameters for fitting to other rows.

        Returns
        -------
        FairPCA
            Fitted. Its solver is "exact", and a further `fit` takes mean losses about the mean of
            all rows, regardless of the problem's settings.

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import ExactSolver, FairPCA, GroupMoments, Problem
        >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
        >>> problem = Problem(GroupMoments.from_rows(X, np.repeat(["a", "b"], 150)), 2)
        >>> FairPCA.from_solution(problem, ExactSolver().solve(problem)).transform(X).shape
        (300, 2)
        """
        others: dict[str, Any] = {"missing_labels": missing_labels, "random_state": random_state}
        features, sensitive = problem.moments.feature_names, problem.moments.group_names
        others["groups"] = grouping_of(problem.moments.labels)
        others["keep_sensitive"] = not set(features or ()).isdisjoint(sensitive or ())
        fair = cls(problem.n_components, criterion=problem.criterion, **others)
        record_columns(fair, GroupedData(problem.moments))
        fair._set_fitted(problem, solution)
        return fair

    def _finish(
        self,
        grouped_data: GroupedData,
        choices: tuple[Solver, Criterion],
        *,
        y: Any = None,
        listener: Listener | None = None,
    ) -> None:
        """Solve and set what is fitted."""
        if self.groups is not None:
            if grouped_data.moments.labels != UNGROUPED:
                warn_of_one_group(grouped_data.moments)
            else:
                warn_of_no_groups(y, "set groups=None if ordinary PCA is wanted")
        solver, criterion = choices
        n, noise = self.n_components, None
        share = None if n is None or isinstance(n, Integral) else float(n)
        with threads_for(grouped_data.moments.n_features):
            for r in grouped_data.dimensions(n):
                problem = solved = grouped_data.problem(r, criterion=criterion)
                if criterion.estimates_noise:
                    noise = SamplingNoise.of_problem(problem, grouped_data.cells, self.groups)
                    solved = noise.debiased()
                solution = _solve(solver, solved, listener)
                kept = problem.traces - solution.group_losses
                if share is None or (kept >= share * problem.traces).all():
                    break
            held_out = None if noise is None else noise.held_out(solution)
            if noise is not None:
                problem = problem.with_criterion(solved.criterion)
            filled = grouped_data.missing_shares()
            self._set_fitted(problem, solution, grouped_data.space, held_out, filled)
            warn_of_certificate(solution.certificate)
            warn_of_few_rows(problem)

    def _set_fitted(
        self,
        problem: Problem,
        solution: Solution,
        space: RowSpace | None = None,
        held_out: HeldOut | None = None,
        filled_share: Array | None = None,
    ) -> None:
        """Set what is fitted; `space` is where the problem was posed, if not in all columns."""
        self._set_axes(solution_axes(problem, solution, space))
        if space is not None:
            solution = replace(solution, basis=space.lift(solution.basis))
        self.solution_ = solution
        self.certificate_ = solution.certificate
        self.filled_share_ = filled_share
        # To take subspaces back to far more columns would cost a tenth of the fit.
        small = 8 * problem.n_groups * problem.n_features * problem.n_components <= _MOST_BYTES
        self.baselines_ = Baselines.of_problem(problem) if small and space is None else None
        table = GroupTable.from_problem(problem, solution.group_losses, "fair")
        dominant = None if space is not None else dominant_column(problem.moments)
        notes = chance_notes(problem) + filled_notes(problem, filled_share)
        notes = notes if dominant is None else (dominant, *notes)
        self.group_table_ = replace(table, held_out=held_out, notes=notes)


def checked_choices(fair: Any) -> tuple[Solver, Criterion]:
    """The solver and the criterion of an estimator; wrong parameters are refused before any work.

    The criterion is that of certificates, where a solver has one of its own.
    """
    check_components(fair.n_components, optional=True)
    criterion = as_criterion(fair.criterion)
    for name in ("whiten", "keep_sensitive"):
        check_flag(name, getattr(fair, name))
    check_choice("groups", fair.groups, GROUPINGS)
    check_choice("missing_values", fair.missing_values, MISSING_VALUES)
    check_seed(fair.random_state)
    solver: Any = _named_solver(fair.solver, fair.random_state)
    if getattr(solver, "has_own_criterion", False):
        if not criterion.is_approached:
            raise ValueError(
                f"solver={fair.solver!r} has a criterion of its own, and cannot do {criterion!r}: "
                "leave out one or the other."
            )
        criterion = MinMax() if criterion.estimates_noise else criterion
    return solver, criterion


def _solve(solver: Solver, problem: Problem, listener: Listener | None) -> Solution:
    """What a solver finds; a listener is called after each step."""
    n_steps = getattr(solver, "n_steps", 0)
    if listener is None or n_steps == 0:
        return solver.solve(problem)
    done = count(1)

    def step(**found: float) -> bool:
        listener(next(done), n_steps, **found)
        return False

    return solver.solve(problem, step)


def _named_solver(given: Any, random_state: int | None) -> Any:
    if isinstance(given, type | partial):
        made: Any = getattr(given, "func", given)
        raise ValueError(
            f"solver must be an instance, not the class {made.__name__}: write "
            f"solver={made.__name__}()."
        )
    if hasattr(given, "solve"):
        return given
    check_choice("solver", given, tuple(SOLVERS))
    make: Any = SOLVERS[given]
    known = {field.name for field in fields(getattr(make, "func", make))}
    return make(random_state=random_state) if "random_state" in known else make()

"""audit: each group's loss with a reduction that is already in use, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.dense import NEARLY_ORTHONORMAL, dense_blocks
from fairpca._linalg.types import Array
from fairpca.choices import BASELINES
from fairpca.data import GroupedData, prepare_data
from fairpca.fair_pca import Baselines, baselines_of
from fairpca.generalization.bootstrap import (
    SEED,
    BootstrapBlocks,
    centred_blocks,
    check_resamples,
    difference_interval,
    few_rows,
    group_seeds,
    loss_ends,
    mean_ends,
    own_blocks,
    unbiased_ends,
)
from fairpca.generalization.cautions import dominant_column, warn_of_few_rows
from fairpca.generalization.permutation_test import PermutationTest, permutation_test
from fairpca.group_table import GroupIntervals, GroupTable
from fairpca.groups import GROUPINGS, chosen_columns, named_columns, without_columns
from fairpca.inspection.pipelines import find_reduction
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.text import formatted, group_name, in_rows, joined
from fairpca.validation import (
    check_choice,
    check_flag,
    check_same_index,
    check_whole_number,
)


@dataclass(frozen=True, eq=False)
class Loadings:
    """Components and a mean from elsewhere, to be judged by `audit` as a fitted PCA is.

    Rows minus the mean are projected on the subspace that the components span, so that these need
    be neither orthogonal nor of unit length: loadings that were scaled, or of which some columns
    are missing, are judged by what their span keeps.

    Parameters
    ----------
    components : array-like of shape (r, d)
        One row for each component, as in `components_` of scikit-learn's PCA: loadings that have a
        row for each column of the data, such as ``adata.varm["PCs"]`` or the weights of PLINK and
        smartpca, are to be transposed.
    mean : array-like of shape (d,) or float
        Subtracted from the rows: the mean of the rows that the components were found
        with; 0 where nothing was.

    Attributes
    ----------
    components_ : array of shape (r, d)
        Orthonormal rows with the same span.
    mean_ : array of shape (d,)

    See Also
    --------
    fairpca.audit : Judges them.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import Loadings, audit
    >>> X = np.random.default_rng(0).normal(size=(300, 3)) * [3, 2, 1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> loadings = Loadings([[5.0, 0.0, 0.0], [0.0, 2.0, 0.0]], X.mean(axis=0))
    >>> table = audit(loadings, X, sensitive_features=groups, n_resamples=0)
    >>> bool(np.allclose(table.loss[0], np.square(X[:100, 2] - X[:, 2].mean()).mean()))
    True
    """

    components: ArrayLike
    mean: ArrayLike
    components_: Array = field(init=False, repr=False)
    mean_: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        components = check_array(self.components, dtype=np.float64, input_name="components")
        mean = np.asarray(self.mean, dtype=np.float64)
        r, d = components.shape
        if mean.shape not in ((), (d,)):
            raise ValueError(
                f"mean must be a number or have an entry for each of the {d} columns of the "
                f"components, got shape {mean.shape}."
            )
        if r > d:
            raise ValueError(
                f"There are {r} components of {d} columns: if each row is a column of the data, "
                "pass the transpose, loadings.T."
            )
        _, sizes, rows = np.linalg.svd(components, full_matrices=False)
        rank = int((sizes > sizes[0] * d * np.finfo(np.float64).eps).sum())
        if rank < r:
            raise ValueError(
                f"The {r} components span a space of dimension {rank}: leave out those that are "
                "zero or depend on others."
            )
        object.__setattr__(self, "components_", rows)
        object.__setattr__(self, "mean_", np.broadcast_to(mean, d))

    def transform(self, X: Any) -> Any:
        """Project rows on `components_`."""
        return check_array(X, accept_sparse="csr") @ self.components_.T - (
            self.components_ @ self.mean_
        )

    def inverse_transform(self, X: Any) -> Any:
        """Bring projected rows back to the original columns."""
        return X @ self.components_ + self.mean_


def audit(
    estimator: Any,
    X: Any,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    groups: str | None = None,
    keep_sensitive: bool = False,
    missing_labels: str = "error",
    baseline: str = "rows",
    X_train: Any = None,
    sensitive_train: Any = None,
    n_resamples: int = 200,
    random_state: int | None = None,
) -> GroupTable:
    """Compare each group's loss with a fitted reduction with that of its own PCA.

    Parameters
    ----------
    estimator : fitted transformer with ``inverse_transform``, or Loadings
        PCA, TruncatedSVD, NMF, FairPCA, … Of a scikit-learn pipeline, which may end in a
        classifier, the last step with `inverse_transform` that is not a scaler is audited, on the
        rows that reach it.
        Components without a transformer, from a file or another program, are passed as `Loadings`.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Rows to judge it by. They may be others than those it was fitted to.
    sensitive_features, sample_weight : as for `FairPCA.fit`
        The groups, for which there is no default, and weights. Names are those of columns of X.
    groups : {"intersections", "marginals", "both"} or None, default=None
        How several sensitive columns define groups. None takes the groups that a `FairPCA` was
        fitted for, and intersections for other reductions.
    keep_sensitive, missing_labels : as for `FairPCA`
        Sensitive columns that were features at the fit, by name, stay so.
    baseline : {"rows", "training"}, default="rows"
        Baselines of the losses, in as many dimensions as the reduction has: "rows" fits
        each group's own PCA and ordinary PCA to X. "training" reuses those of the rows that a
        `FairPCA` was fitted to, about their mean, so that nothing is fitted to X. Groups that were
        not among them then have no disparity.
    X_train, sensitive_train : as X and sensitive_features, default=None
        The rows that any other reduction was fitted to, and their groups, which can be left out
        where `sensitive_features` names columns. X is then new, and the baselines are those of
        these rows, as with ``baseline="training"``.
    n_resamples : int, default=200
        How often the rows of each group are resampled (bootstrap) for the intervals; 0 leaves the
        intervals and the permutation test out. Groups of fewer than 30 rows, or 5 for each
        dimension, have no interval.
    random_state : int or None, default=None
        Seed of the resampling and of the test; None is a fixed seed too.

    Returns
    -------
    GroupTable
        It prints as a table, with 95 % intervals of the disparities; `GroupTable.intervals` has
        more of them. They hold for the reduction as it is: where X is what it was fitted to, they
        do not allow for that. A disparity can be negative when the reduction is no projection from
        the same centre, and so can lose less than the group's own PCA.

    See Also
    --------
    fairpca.report.report : The same for everyone, with the fair subspace beside it.

    Examples
    --------
    >>> from fairpca import audit
    >>> from fairpca.datasets import load_adult
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.preprocessing import StandardScaler
    >>> adult = load_adult(as_frame=False)
    >>> X = StandardScaler().fit_transform(adult.data)
    >>> print(audit(PCA(2).fit(X), X, sensitive_features=adult.sensitive_features))
                    % lost   % lost  95 % interval   % lost
    group     rows     PCA  audited        audited  own PCA
    -------------------------------------------------------
    Female  10,771    71.8     71.8   70.4 to 73.4     67.4
    Male    21,790    76.5     76.5   75.0 to 78.1     75.2
    -------------------------------------------------------
    Every group is as well off as with ordinary PCA. The disparities of Female and
    Male differ significantly, by 3.3 to 4.4 % of the variance of all rows (95 %
    interval).
    """
    check_choice("groups", groups, GROUPINGS)
    check_flag("keep_sensitive", keep_sensitive)
    check_choice("baseline", baseline, BASELINES)
    check_whole_number("random_state", random_state, least=0, optional=True)
    n_resamples = check_resamples(n_resamples)
    if sensitive_train is not None and X_train is None:
        raise ValueError("sensitive_train has the groups of X_train, which is missing: pass both.")
    check_same_index(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
    # Labels are those of the table that is given, whatever a pipeline makes of it.
    names = named_columns(X, sensitive_features)
    sensitive_features = chosen_columns(X, names) if names else sensitive_features
    left_out = () if keep_sensitive else names
    X = entering(X, estimator, left_out)
    step = find_reduction(estimator, "audit")
    estimator = step.reduction
    if isinstance(estimator, BaseEstimator):
        check_is_fitted(estimator)
    groups = groups or getattr(estimator, "groups", None) or "intersections"
    known = None
    if X_train is not None:
        baseline = "training"
        if names:
            sensitive_train = chosen_columns(X_train, named_columns(X_train, list(names)))
        X_train = entering(step.rows(entering(X_train, estimator, left_out)), estimator, left_out)
    elif baseline == "training":
        known = baselines_of(estimator)  # before any work
    X = entering(step.rows(X), estimator, left_out)
    prepared: dict[str, Any] = {"groups": groups, "reduce_wide": True}
    grouped_data = prepare_data(
        X, sensitive_features, sample_weight, missing_labels, least_rows=1, **prepared
    )
    # What groups lose in subspaces of their own is the same in the space that the rows span. That
    # itself is as large as the rows, and no longer needed.
    in_space = grouped_data.space is not None and baseline == "rows"
    rows = grouped_data.space.rows if in_space else grouped_data.rows  # type: ignore[union-attr]
    grouped_data = replace(grouped_data, space=None)
    # Sparse rows that have been checked are in a format that can be cut.
    source = grouped_data.rows if scipy.sparse.issparse(X) else X
    errors, r = squared_errors(estimator, source, grouped_data.rows)
    if X_train is not None:
        if sensitive_train is None:
            raise ValueError("X_train needs the groups of its rows: pass sensitive_train.")
        training = prepare_data(X_train, sensitive_train, None, missing_labels, **prepared)
        d = grouped_data.rows.shape[1]
        if training.n_features != d:
            raise ValueError(f"X_train has {training.n_features} columns, and X has {d}.")
        known = Baselines.of_problem(training.problem(r), training.space)
    chosen: dict[str, Any] = {"known": known, "n_resamples": n_resamples}
    auditor = Auditor(estimator, grouped_data.moments, r, **chosen, random_state=random_state)
    grouped_data = replace(grouped_data, rows=rows)
    for group in range(len(grouped_data.moments.labels)):
        auditor.add(group, grouped_data, errors)
        auditor.finish(group)
    return auditor.table(grouped_data)


def entering(X: Any, estimator: Any, names: Sequence[str]) -> Any:
    """A table without these columns, and those that made the groups, unless they are features."""
    features = {*getattr(estimator, "feature_names_in_", ())}
    names = (*names, *getattr(estimator, "sensitive_names_", ()))
    return without_columns(X, [name for name in names if name not in features])


def squared_errors(estimator: Any, X: Any, rows: Any) -> tuple[Array, int]:
    """Squared reconstruction error of each row, and the number of dimensions."""
    errors = np.empty(rows.shape[0])
    for part, block in dense_blocks(rows):
        # scikit-learn indexes tables of pyarrow from 1.7 on.
        some = X[part] if type(X).__module__.startswith("pyarrow") else _safe_indexing(X, part)
        reduced = estimator.transform(some)
        restored = estimator.inverse_transform(reduced)
        restored = check_array(restored, dtype=np.float64, accept_sparse=True)
        restored = restored.toarray() if scipy.sparse.issparse(restored) else restored
        if restored.shape != block.shape:
            raise ValueError(
                f"inverse_transform gave shape {restored.shape} for rows of shape {block.shape}: "
                "audit needs the rows as they go into the reduction."
            )
        errors[part] = np.square(block - restored).sum(axis=1)
    return errors, int(reduced.shape[1])


class Auditor:
    """Takes the rows of each group, with their errors, and makes the table of an audit.

    Parameters
    ----------
    estimator : object
        The reduction.
    moments : GroupMoments
        Of the rows, or of their coordinates in the space that they span.
    r : int
        Its dimension, unless a fair reduction was asked for another, by which it is judged.
    known : Baselines or None
        What the rows are measured against, unless that is fitted to them.
    n_resamples, random_state
        As for `audit`.

    Attributes
    ----------
    problem : Problem or None
        That of the rows; None where they are measured against the training rows.
    """

    def __init__(
        self,
        estimator: Any,
        moments: GroupMoments,
        r: int,
        *,
        known: Baselines | None = None,
        n_resamples: int = 0,
        random_state: int | None = None,
    ) -> None:
        r = getattr(getattr(estimator, "certificate_", None), "n_components", r)
        k = len(moments.labels)
        self._moments, self._known, self._n_resamples = moments, known, n_resamples
        self._names = [group_name(label, moments.group_names) for label in moments.labels]
        self.problem: Problem | None = None
        if known is not None:
            self._center, r = known.mean, known.n_components
            self._of_training = [known.position(label) for label in moments.labels]
        else:
            self.problem = Problem(moments, min(r, moments.n_features))
            self._center = moments.total_mean
        # A projection from the mean of all rows leaves no group less than its own PCA does.
        self._least = 0.0 if known is None and _is_projection(estimator) else -np.inf
        self._least_rows, self._effective = few_rows(r), moments.effective_count
        self._sums = np.zeros((4, k))  # of the values of rows
        self._draws, self._quantiles = np.full((3, k, n_resamples), np.nan), np.full(k, np.nan)
        rng = np.random.default_rng(SEED if random_state is None else random_state)
        self._seeds, self._seed = group_seeds(rng, k), random_state
        self._blocks: dict[int, BootstrapBlocks] = {}

    def add(self, group: int, grouped_data: GroupedData, errors: Array) -> None:
        """Take those of some rows that are members of a group.

        Rows are as the moments have them, or, to be measured against the training rows, as the
        reduction has; `errors` are its squared ones.
        """
        enough = self._n_resamples and self._effective[group] >= self._least_rows
        if enough and group not in self._blocks:
            n_rows, seed = int(self._moments.count[group]), self._seeds[group]
            self._blocks[group] = (
                BootstrapBlocks(n_rows, seed)
                if self.problem is None
                else own_blocks(self.problem, group, seed)
            )
        blocks, members = self._blocks.get(group), np.flatnonzero(grouped_data.members(group))
        for some, block, weight in centred_blocks(grouped_data, members, self._center):
            values = self._values(group, block, errors[some])
            self._sums[:, group] += values @ weight
            if blocks is not None:
                blocks.add(block, weight, values)

    def _values(self, group: int, block: Array, errors: Array) -> Array:
        """Of each row its square and its errors: with the reduction, PCA and the own PCA."""
        squares, own = np.square(block).sum(axis=1), np.full(len(block), np.nan)
        if self.problem is not None:
            pca_basis = self.problem.pca_basis
        elif self._known is not None:
            pca_basis, position = self._known.pca_basis, self._of_training[group]
            if position is not None:
                own = squares - np.square(block @ self._known.own_bases[position]).sum(axis=1)
        return np.array([squares, errors, squares - np.square(block @ pca_basis).sum(axis=1), own])

    def finish(self, group: int) -> None:
        """Resample the rows of a group, all of which have been taken."""
        blocks = self._blocks.pop(group, None)
        if blocks is not None:
            (squares, loss, pca, own), own_gains = blocks.resampled(self._n_resamples)
            own = own if self._known is not None else squares - own_gains
            measures = np.array([loss, loss - own, loss - pca])
            self._draws[:, group] = measures[:, 1:] - measures[:, :1]
            self._quantiles[group] = blocks.quantile

    def table(self, grouped_data: GroupedData | None = None) -> GroupTable:
        """The table of all that was taken; with the rows of the problem there is a test as well."""
        moments, test = self._moments, None
        variance, loss, pca, own = np.maximum(self._sums / moments.weight, 0.0)
        if self.problem is not None:
            variance, own = self.problem.traces, self.problem.own_losses
            pca = self.problem.group_losses(self.problem.pca_basis)
            warn_of_few_rows(self.problem)
            if grouped_data is not None and self._n_resamples and len(moments.labels) > 1:
                test = permutation_test(self.problem, grouped_data, random_state=self._seed)
        intervals = self._intervals(loss, own, pca) if self._n_resamples else None
        return GroupTable(
            name="audited",
            labels=moments.labels,
            count=moments.count,
            own_loss=own,
            pca_loss=pca,
            loss=loss,
            variance=variance,
            group_names=moments.group_names,
            baseline="rows" if self._known is None else "training",
            intervals=intervals,
            p_value=None if test is None else test.p_values,
            notes=tuple(self._notes(variance, intervals, test)),
            weight=moments.weight,
        )

    def _intervals(self, loss: Array, own: Array, pca: Array) -> GroupIntervals:
        quantiles, disparity, draws = self._quantiles, loss - own, self._draws
        of_loss = loss_ends(loss, draws[0], quantiles)
        of_disparity = (
            unbiased_ends(disparity, draws[1], quantiles, self._least, np.inf)
            if self._known is None
            else mean_ends(disparity, draws[1], quantiles)  # nothing was fitted to these rows
        )
        of_change = mean_ends(loss - pca, draws[2], quantiles)
        known = np.flatnonzero(np.isfinite(of_disparity[0]))
        extremes = difference = None
        if len(known) > 1:
            order = known[np.argsort(disparity[known], kind="stable")]
            i, j = int(order[-1]), int(order[0])
            extremes = (i, j)
            difference = difference_interval(disparity, draws[1], quantiles, i, j)
        return GroupIntervals(
            loss=np.column_stack(of_loss),
            disparity=np.column_stack(of_disparity),
            change=np.column_stack(of_change),
            extremes=extremes,
            difference=difference,
        )

    def _notes(
        self, variance: Array, intervals: GroupIntervals | None, test: PermutationTest | None
    ) -> list[str]:
        """Notes below the table."""
        notes, few = [], self._least_rows
        count = self._moments.count
        if self._known is not None:
            notes.append(
                "PCA and own PCA are those of the training rows, about their mean; losses are "
                "those of the rows that were given."
            )
            unseen = [i for i, known in enumerate(self._of_training) if known is None]
            if unseen:
                notes.append(
                    f"Not among the training groups, so without an own PCA: {self._listed(unseen)}."
                )
            rows = [0 if i is None else int(self._known.count[i]) for i in self._of_training]
            small = [i for i, n in enumerate(rows) if 0 < n < few]
            if small:
                names = self._listed(small, rows)
                notes.append(f"The own PCA of {names} is from fewer than {few} training rows.")
        if test is not None:
            notes += self._of_test(test)
        if self._known is None:
            column = dominant_column(self._moments)
            notes += [] if column is None else [column]
        if intervals is None:
            return notes
        extremes, ends = intervals.extremes, intervals.difference
        if extremes is not None and ends is not None:
            notes.append(self._of_difference(extremes, ends, variance))
        small = [i for i in range(len(count)) if self._effective[i] < few]
        if small:
            notes.append(f"No interval is given for {self._listed(small)}: fewer than {few} rows.")
        return notes

    def _of_difference(
        self, extremes: tuple[int, int], ends: tuple[float, float], variance: Array
    ) -> str:
        """Whether the largest and the smallest disparity differ, in per cent of all variance."""
        weight = self._moments.weight
        whole = float(weight @ variance / weight.sum()) or 1.0
        low, high = (formatted(100.0 * end / whole, ".2g") for end in ends)
        pair = f"The disparities of {' and '.join(self._names[i] for i in extremes)}"
        family = ", for all pairs of groups together" if len(variance) > 2 else ""
        interval = f"of the variance of all rows (95 % interval{family})."
        if ends[0] > 0.0:
            return f"{pair} differ significantly, by {low} to {high} % {interval}"
        return (
            f"{pair} do not differ significantly: their difference is between {low} and {high} % "
            f"{interval}"
        )

    def _of_test(self, test: PermutationTest) -> list[str]:
        """Groups whose disparity with ordinary PCA is not significant."""
        alike = [int(i) for i in np.flatnonzero(~test.exceeds_null)]
        if not alike:
            return []
        one = "These rows have no significant difference between the groups"
        if len(alike) < len(test.p_values):
            one = f"The disparity of {self._listed(alike)} is not significant"
        return [
            f"{one}: with ordinary PCA, random groups of the same sizes have disparities as large "
            "(permutation test, 5 % level, adjusted for the number of groups)."
        ]

    def _listed(self, groups: Sequence[int], count: Sequence[int] | None = None) -> str:
        """Groups with their rows, the smallest first."""
        rows = self._moments.count if count is None else np.array(count)
        groups = sorted(groups, key=lambda i: int(rows[i]))
        return joined([f"{self._names[i]} ({in_rows(rows[i])})" for i in groups])


def _is_projection(estimator: Any) -> bool:
    """Whether rows minus `mean_` are projected on orthonormal `components_`."""
    components, mean = (getattr(estimator, name, None) for name in ("components_", "mean_"))
    if components is None or mean is None or getattr(components, "ndim", 0) != 2:
        return False
    products = components @ components.T
    return bool(np.abs(products - np.eye(len(products))).max() < NEARLY_ORTHONORMAL)

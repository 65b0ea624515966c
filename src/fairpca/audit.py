"""audit: who pays for a reduction that is already in use."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_array, gen_batches
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.types import Array
from fairpca._rows.checks import (
    check_choice,
    check_flag,
    check_same_index,
    check_whole_number,
)
from fairpca._rows.labels import GROUPINGS
from fairpca._rows.named import chosen_columns, named_columns, without_columns
from fairpca.estimators.audited import BASELINES, Judge
from fairpca.estimators.baselines import baselines_of
from fairpca.estimators.cautions import TO_AUDIT, warn_of_cautions
from fairpca.estimators.gather import gather
from fairpca.estimators.pipelines import find_reduction
from fairpca.estimators.resampling import check_resamples
from fairpca.group_table import GroupTable

_BLOCK_VALUES = 2**22


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
    n_resamples: int = 200,
    random_state: int | None = None,
) -> GroupTable:
    """Show what each group loses with a fitted reduction, and would lose with its own PCA.

    Parameters
    ----------
    estimator : fitted transformer with ``inverse_transform``
        PCA, TruncatedSVD, NMF, FairPCA, … Of a scikit-learn pipeline, which may end in a
        classifier, the last such step that is no scaling is judged, on the rows that reach it.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Rows to judge it by. They may be others than those it was fitted to.
    sensitive_features, sample_weight : as for `FairPCA.fit`
        The groups, for which there is no default, and weights. Names are those of columns of X.
    groups : {"intersections", "marginals", "both"} or None, default=None
        What several sensitive columns make groups of. None takes the groups that a `FairPCA` was
        fitted for, and intersections for other reductions.
    keep_sensitive, missing_labels : as for `FairPCA`
        Sensitive columns that were features at the fit, by name, stay so.
    baseline : {"rows", "training"}, default="rows"
        What the losses are compared with, in as many dimensions as the reduction has: "rows" finds
        each group's own PCA and ordinary PCA anew, from X. "training" takes those of the rows that
        a `FairPCA` was fitted to, about their mean, so that nothing is fitted to X. Groups that
        were not among them then have no disparity.
    n_resamples : int, default=200
        How often the rows of each group are drawn anew for intervals; 0 leaves the intervals out.
        Groups of fewer than 30 rows, or 5 for each dimension, have none.
    random_state : int or None, default=None
        Seed of the draws; None is a fixed seed too.

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
                                          own PCA      PCA     PCA  audited  audited
    group                 rows  variance     loss     loss  % lost     loss   % lost
    --------------------------------------------------------------------------------
    Female              10,771   15.7237  10.5906  11.2964    71.8  11.2964     71.8
    Male                21,790   13.1480   9.8859  10.0595    76.5  10.0595     76.5
    --------------------------------------------------------------------------------
    <BLANKLINE>
                              PCA    audited  audited disparity
    group               disparity  disparity      95 % interval
    -----------------------------------------------------------
    Female                 0.7059     0.7059   0.6467 to 0.7561
    Male                   0.1735     0.1735   0.0999 to 0.2231
    -----------------------------------------------------------
    largest difference     0.5323     0.5323   0.4588 to 0.6210
    Every group is as well off as with ordinary PCA. The rows tell the disparities
    of Female and Male apart: they differ by 0.4588 to 0.6210 (95 % interval).
    """
    check_choice("groups", groups, GROUPINGS)
    check_flag("keep_sensitive", keep_sensitive)
    check_choice("baseline", baseline, BASELINES)
    check_whole_number("random_state", random_state, least=0, optional=True)
    n_resamples = check_resamples(n_resamples)
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
    if baseline == "training":
        baselines_of(estimator)  # before any work
    X = entering(step.rows(X), estimator, left_out)
    gathered = gather(
        X,
        sensitive_features,
        sample_weight,
        missing_labels,
        groups=groups or getattr(estimator, "groups", None) or "intersections",
        least_rows=1,
        reduce_wide=True,
    )
    # What groups lose in subspaces of their own is the same in the space that the rows span. That
    # itself is as large as the rows, and no longer needed.
    in_space = gathered.space is not None and baseline == "rows"
    rows = gathered.space.rows if in_space else gathered.rows  # type: ignore[union-attr]
    gathered = replace(gathered, space=None)
    # Sparse rows that have been checked are in a format that can be cut.
    source = gathered.rows if scipy.sparse.issparse(X) else X
    errors, r = squared_errors(estimator, source, gathered.rows)
    chosen: dict[str, Any] = {"baseline": baseline, "n_resamples": n_resamples}
    judge = Judge(estimator, gathered.moments, r, **chosen, random_state=random_state)
    for group in range(len(gathered.moments.labels)):
        members = np.flatnonzero(gathered.members(group))
        judge.add(group, rows, members, errors, gathered.weights)
        judge.finish(group)
    table = judge.table()
    if judge.problem is not None:
        at_hand = None if in_space else gathered
        warn_of_cautions(judge.problem, table, at_hand, advice=TO_AUDIT)
    return table


def entering(X: Any, estimator: Any, names: Sequence[str]) -> Any:
    """A table without these columns, and those that made the groups, unless they are features."""
    features = {*getattr(estimator, "feature_names_in_", ())}
    names = (*names, *getattr(estimator, "sensitive_names_", ()))
    return without_columns(X, [name for name in names if name not in features])


def squared_errors(estimator: Any, X: Any, rows: Any) -> tuple[Array, int]:
    """Squared reconstruction error of each row, and the number of dimensions."""
    n, d = rows.shape
    errors = np.empty(n)
    for part in gen_batches(n, max(1, _BLOCK_VALUES // d)):
        reduced = estimator.transform(_safe_indexing(X, part))
        restored = estimator.inverse_transform(reduced)
        restored = check_array(restored, dtype=np.float64, accept_sparse=True)
        restored, block = (
            a.toarray() if hasattr(a, "toarray") else a for a in (restored, rows[part])
        )
        if restored.shape != block.shape:
            raise ValueError(
                f"inverse_transform gave shape {restored.shape} for rows of shape {block.shape}: "
                "audit needs the rows as they go into the reduction."
            )
        errors[part] = np.square(block - restored).sum(axis=1)
    return errors, int(reduced.shape[1])

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
from fairpca._rows.checks import check_choice, check_flag
from fairpca._rows.labels import GROUPINGS
from fairpca._rows.named import chosen_columns, named_columns, without_columns
from fairpca.estimators.gather import gather
from fairpca.estimators.pipelines import find_reduction
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.table import GroupTable

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
) -> GroupTable:
    """Show what each group loses with a fitted reduction, and would lose with its own PCA.

    Parameters
    ----------
    estimator : fitted transformer with ``inverse_transform``
        PCA, TruncatedSVD, NMF, FairPCA, … Of a scikit-learn pipeline, which may end in a
        classifier, the last such step that is no scaling is judged, on the rows that reach it.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        Rows to judge it by. The losses with each group's own PCA and with ordinary PCA, in as many
        dimensions as the reduction has, come from these rows.
    sensitive_features, sample_weight, keep_sensitive, missing_labels
        As for `FairPCA` and its `fit`; there is no default for the first, and names are those of
        columns of X. Those that were features at the fit, by name, stay so.
    groups : {"intersections", "marginals", "both"} or None, default=None
        What several sensitive columns make groups of. None takes the groups that a `FairPCA` was
        fitted for, and intersections for other reductions.

    Returns
    -------
    GroupTable
        It prints as a table. A disparity can be negative when the reduction is no projection from
        the same centre, and so can lose less than the group's own PCA.

    Examples
    --------
    >>> from fairpca import audit
    >>> from fairpca.datasets import load_adult
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.preprocessing import StandardScaler
    >>> adult = load_adult(as_frame=False)
    >>> X = StandardScaler().fit_transform(adult.data)
    >>> print(audit(PCA(2).fit(X), X, sensitive_features=adult.sensitive_features))
                                          own PCA      PCA     PCA  audited  audited        PCA    audited
    group                 rows  variance     loss     loss  % lost     loss   % lost  disparity  disparity
    ------------------------------------------------------------------------------------------------------
    Female              10,771   15.7237  10.5906  11.2964    71.8  11.2964     71.8     0.7059     0.7059
    Male                21,790   13.1480   9.8859  10.0595    76.5  10.0595     76.5     0.1735     0.1735
    ------------------------------------------------------------------------------------------------------
    largest difference                                                                   0.5323     0.5323
    Every group is as well off as with ordinary PCA.
    """
    check_choice("groups", groups, GROUPINGS)
    check_flag("keep_sensitive", keep_sensitive)
    # Labels are those of the table that is given, whatever a pipeline makes of it.
    names = named_columns(X, sensitive_features)
    sensitive_features = chosen_columns(X, names) if names else sensitive_features
    left_out = () if keep_sensitive else names
    X = without_columns(X, _no_features(estimator, left_out))
    step = find_reduction(estimator, "audit")
    estimator = step.reduction
    if isinstance(estimator, BaseEstimator):
        check_is_fitted(estimator)
    X = without_columns(step.rows(X), _no_features(estimator, left_out))
    gathered = gather(
        X,
        sensitive_features,
        sample_weight,
        missing_labels,
        groups=groups or getattr(estimator, "groups", None) or "intersections",
        least_rows=1,
        reduce_wide=True,
    )
    # What groups lose in subspaces of their own is the same in the space that the rows span: that
    # is as large as the rows, and no longer needed.
    gathered = replace(gathered, space=None)
    # Sparse rows that have been checked are in a format that can be cut.
    source = gathered.rows if scipy.sparse.issparse(X) else X
    errors, r = squared_errors(estimator, source, gathered.rows)
    return audited_table(estimator, gathered.moments, gathered.group_sums(errors), r)


def _no_features(estimator: Any, left_out: Sequence[str]) -> list[str]:
    """Columns that are left out, or made the groups at the fit, unless they are features."""
    features = {*getattr(estimator, "feature_names_in_", ())}
    names = (*left_out, *getattr(estimator, "sensitive_names_", ()))
    return [name for name in names if name not in features]


def audited_table(estimator: Any, moments: GroupMoments, sums: Array, r: int) -> GroupTable:
    """The table of a reduction to r columns, from the sum of each group's squared errors."""
    loss = sums / moments.weight
    # A fair reduction may use more dimensions than it was asked for, by which it is judged.
    r = getattr(getattr(estimator, "certificate_", None), "n_components", r)
    problem = Problem(moments, min(r, moments.n_features))
    return GroupTable.from_problem(problem, loss, "audited", subspace=False)


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

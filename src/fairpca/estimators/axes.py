"""The axes of a subspace: a basis turned, ordered and signed as PCA does it."""

from dataclasses import dataclass

import numpy as np

from fairpca._linalg.dense import eigh_descending, fix_signs
from fairpca._linalg.device import scatter_matrices
from fairpca._linalg.types import Array
from fairpca._rows.row_space import RowSpace
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.solution import Solution


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """What an estimator shows of its subspace; the names are those of its fitted attributes.

    Attributes
    ----------
    components : array of shape (r, d)
        Orthonormal rows, by falling explained variance.
    mean : array of shape (d,)
        Mean of all rows.
    explained_variance, explained_variance_ratio : arrays of shape (r,)
        Variance along each component, with ``n - 1`` in the denominator, and its share.
    shrinkage : array of shape (r,) or None
        What projections on the components are multiplied with, if they are.
    """

    components: Array
    mean: Array
    explained_variance: Array
    explained_variance_ratio: Array
    shrinkage: Array | None


def principal_axes(
    basis: Array,
    moments: GroupMoments,
    covariance: Array | None = None,
    retention: Array | None = None,
    space: RowSpace | None = None,
) -> PrincipalAxes:
    """The axes of the subspace that a basis spans.

    With `retention`, what is kept of the variance along each column of the basis: a column that
    keeps the share s is shortened to ``1 - sqrt(1 - s)``, so that the rows lose ``1 - s`` of
    their variance along it. `covariance` is that of all rows, where it is at hand; `space` is
    where basis and moments live, if not in the columns of the rows.
    """
    if covariance is None:
        parts = scatter_matrices(moments.scatter, moments.offsets, moments.weight)
        portions, backend = moments.weight / moments.weight.sum(), parts.backend
        image = parts.weighted_sum(portions).image(backend.put(basis))
        inner, total = basis.T @ backend.host(image), float(portions @ parts.traces)
    else:
        inner, total = basis.T @ covariance @ basis, float(np.trace(covariance))
    if retention is None:
        variances, turn = eigh_descending((inner + inner.T) / 2)
        variances, basis, shrinkage = np.maximum(variances, 0.0), basis @ turn, None
    else:
        shrinkage = 1.0 - np.sqrt(1.0 - retention)
        variances = np.diag(inner) * shrinkage**2
        order = np.argsort(-variances, kind="stable")
        variances, basis, shrinkage = variances[order], basis[:, order], shrinkage[order]
    mean = moments.total_mean
    if space is not None:
        basis, mean = space.lift(basis), space.lift_point(mean)
    n = int(moments.count.sum())
    return PrincipalAxes(
        np.ascontiguousarray(fix_signs(basis).T),
        mean,
        variances * (n / max(n - 1, 1)),
        variances / total if total > 0 else np.zeros(len(variances)),
        shrinkage,
    )


def solution_axes(
    problem: Problem, solution: Solution, space: RowSpace | None = None
) -> PrincipalAxes:
    """The axes of a solution; `space` is where the problem is posed, if not in all columns."""
    at_hand = problem.loss == "mean" and problem.centering == "global" and not problem.is_large
    covariance = problem.total_matrix if at_hand else None
    return principal_axes(solution.basis, problem.moments, covariance, solution.retention, space)

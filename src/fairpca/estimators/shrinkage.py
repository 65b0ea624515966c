"""Shrinkage: the groups' covariances drawn towards that of all rows, so that noise counts less.

With n_i rows and a shrinkage of n0 rows, group i gets the matrix
``A_i(n0) = (n_i A_i + n0 A) / (n_i + n0)``: as if n0 further rows of it had been drawn from all
rows. n0 = 0 leaves the problem as it is, and with n0 = inf all groups are the same, which gives
ordinary PCA. With weights in proportion to n_i + n0 the weighted mean of the matrices is A still,
so the total loss is that of the rows.
"""

from dataclasses import replace
from numbers import Real

import numpy as np

from fairpca._linalg.device import blended_scatters
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.solution import Solution


def check_shrinkage(shrinkage: object, name: str = "shrinkage") -> None:
    """Raise ValueError unless this is "auto" or a number of rows."""
    if isinstance(shrinkage, str):
        known = shrinkage == "auto"
    else:
        number = isinstance(shrinkage, Real) and not isinstance(shrinkage, bool)
        known = number and float(shrinkage) >= 0.0  # type: ignore[arg-type]
    if not known:
        raise ValueError(
            f'{name} must be "auto" or a number of rows of at least 0 (not a share; infinity '
            f"gives ordinary PCA), got {shrinkage!r}."
        )


def shrunk_moments(
    moments: GroupMoments, n0: float, aggregation: str, centering: str
) -> GroupMoments:
    """Moments whose groups have the shrunk matrices; all means are that of all rows.

    Parameters
    ----------
    moments : GroupMoments
    n0 : float
        Shrinkage in rows of equal weight; infinity gives every group the same matrix.
    aggregation, centering : str
        As for `Problem`. With "sum" a group's loss stays that of as many rows as it has, so that
        the total loss is only nearly that of the rows.
    """
    n, weight = moments.effective_count, moments.weight
    own = np.zeros(len(n)) if np.isinf(n0) else n / (n + n0)
    if aggregation == "mean":
        # Over 1 + n0, which makes no difference, so that no n0 is too large.
        grown = weight / n * (1.0 if np.isinf(n0) else (n + n0) / (1.0 + n0))
        weight = grown * (weight.sum() / grown.sum())
    offsets = moments.offsets if centering == "global" else np.zeros_like(moments.mean)
    scatter = blended_scatters(moments.scatter, offsets, moments.weight, own, weight)
    mean = np.tile(moments.total_mean, (len(weight), 1))
    return replace(moments, weight=weight, mean=mean, scatter=scatter, weight_squares=None)


def shrunk_problem(problem: Problem, n0: float) -> Problem:
    """The problem with its groups' matrices shrunk."""
    if n0 == 0.0:
        return problem
    moments = shrunk_moments(problem.moments, n0, problem.aggregation, problem.centering)
    return replace(problem, moments=moments)


def unshrunk(solution: Solution, problem: Problem, n0: float) -> Solution:
    """The solution with the losses that it has in the problem itself.

    Its certificate is still about the shrunk problem, and says so.
    """
    where = (solution.basis, solution.retention)
    return replace(
        solution,
        group_losses=problem.group_losses(*where),
        disparities=problem.disparities(*where),
        total_loss=problem.total_loss(*where),
        certificate=replace(solution.certificate, shrinkage=float(n0)),
    )

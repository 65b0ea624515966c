"""Subspaces in which groups look alike, and how much they still differ in a projection."""

import numpy as np

from fairpca._linalg.dense import complement, leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.moments import GroupMoments

_EQUAL_MEANS = 1e-12
"""Means that are closer than this share of the rows' spread are equal: what is left of their
difference is below what the means of a million rows have as rounding errors."""


def equal_mean_space(moments: GroupMoments) -> Array:
    """Return an orthonormal basis of all directions in which the groups have the same mean."""
    offsets = moments.mean - moments.total_mean
    # A mean is stored with an error in proportion to itself, not to the spread about it.
    largest = float(np.linalg.norm(moments.mean, axis=1).max())
    rounding = 16 * np.finfo(float).eps * largest
    return directions_without(offsets, spread_of(moments.total_covariance()), rounding)


def directions_without(offsets: Array, spread: float, rounding: float = 0.0) -> Array:
    """Return an orthonormal basis of what is orthogonal to the rows of `offsets`.

    Combinations of rows that are zero up to rounding, for rows of data that spread this far, do
    not cost a dimension.
    """
    _, sizes, directions = np.linalg.svd(offsets, full_matrices=False)
    return complement(directions[sizes > _EQUAL_MEANS * spread + rounding].T)[1]


def spread_of(covariance: Array) -> float:
    """Root mean square of the rows' distances from their mean."""
    return float(np.sqrt(max(np.trace(covariance), 0.0)))


def similar_covariance_space(moments: GroupMoments, space: Array, n_directions: int) -> Array:
    """Return the directions inside a space in which the groups' covariances differ least.

    These are the eigenvectors of the smallest eigenvalues of the sum, over all pairs of groups, of
    the squared difference of their covariances. That sum is k times the sum of the squared
    differences from the covariances' plain average. Its eigenvectors are the right singular
    vectors of those differences on top of each other, which spares squaring them; for two groups
    they are the eigenvectors of the difference with the eigenvalues nearest to zero.
    """
    covariances = projected_covariances(moments, space)
    differences = covariances - covariances.mean(axis=0)
    triangle = np.linalg.qr(differences.reshape(-1, space.shape[1]), mode="r")
    directions = np.linalg.svd(triangle)[2]  # by falling difference
    return np.asarray(space @ directions[len(directions) - n_directions :].T)


def leading_basis(space: Array, covariance: Array, r: int) -> Array:
    """Return the r orthonormal directions of a space that keep the most variance."""
    return np.asarray(space @ leading_eigenpairs(space.T @ covariance @ space, r)[1])


def numerical_rank(space: Array, covariance: Array) -> int:
    """Dimensions of a space along which the rows vary by more than rounding, but at least 1."""
    variances = np.linalg.eigvalsh(space.T @ covariance @ space)
    # The rounding errors are those of the whole covariance, of which the space may hold little.
    level = np.linalg.norm(covariance, 2) * len(covariance) * np.finfo(float).eps
    return max(int((variances > level).sum()), 1)


def parity_gaps(moments: GroupMoments, basis: Array) -> tuple[float, float]:
    """Return the largest difference between two groups' projected means, and covariances.

    The first is a distance, the second a spectral norm.
    """
    means = moments.mean @ basis
    covariances = projected_covariances(moments, basis)
    mean_gap = covariance_gap = 0.0
    for i in range(1, len(means)):
        distances = np.linalg.norm(means[:i] - means[i], axis=1)
        mean_gap = max(mean_gap, float(distances.max()))
        differences = np.linalg.eigvalsh(covariances[:i] - covariances[i])
        covariance_gap = max(covariance_gap, float(np.abs(differences).max()))
    return mean_gap, covariance_gap


def projected_covariances(moments: GroupMoments, basis: Array) -> Array:
    """Covariance of each group about its own mean, in the coordinates of a basis; (k, r, r)."""
    return np.asarray(basis.T @ moments.scatter @ basis / moments.weight[:, None, None])


def check_dimensions_left(r: int, left: int, whole: int, source: str, n_groups: int) -> None:
    """Raise ValueError when there are fewer than r dimensions in which the means are equal.

    `source` says why there are `whole` dimensions to begin with.
    """
    if r <= left:
        return
    why = source
    if left < whole:
        why += f", and the means of {n_groups} groups differ in {whole - left} dimensions of these"
    raise ValueError(
        f"n_components={r} is more than the number of dimensions that are left, {left}: {why}."
    )

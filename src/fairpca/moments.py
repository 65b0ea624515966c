"""GroupMoments: all that is kept of the data, and how arrays become it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpca._accumulate import group_sums
from fairpca._groups import encode_groups, sorted_labels
from fairpca._validation import (
    check_rows,
    check_weights,
    column_names,
    explain_not_finite,
)
from fairpca.linalg import Array


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """Count, weight, mean and scatter of each group.

    Two of them add to the moments of all their rows together, exactly (Chan, Golub and LeVeque,
    1983), so data can be taken in parts, in any order, from any place.

    Attributes
    ----------
    labels : tuple of length k
        The groups, in sorted order.
    count : integer array of shape (k,)
        Rows of each group.
    weight : array of shape (k,)
        Sum of the sample weights of each group; the count when there were none.
    mean : array of shape (k, d)
        Weighted mean of each group.
    scatter : array of shape (k, d, d)
        Weighted sum of ``(x - mean)(x - mean)^T`` over the rows of each group.
    feature_names : tuple of d str, or None
        Names of the columns, when they came from a data frame with names.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 8.0]])
    >>> moments = GroupMoments.from_rows(X, ["a", "b", "a"])
    >>> moments.labels, moments.count.tolist()
    (('a', 'b'), [2, 1])
    >>> parts = GroupMoments.from_rows(X[:1], ["a"]) + GroupMoments.from_rows(X[1:], ["b", "a"])
    >>> np.allclose(parts.scatter, moments.scatter)
    True
    """

    labels: tuple[Hashable, ...]
    count: NDArray[np.int64]
    weight: Array
    mean: Array
    scatter: Array
    feature_names: tuple[str, ...] | None = None

    @classmethod
    def from_rows(
        cls,
        X: Any,
        sensitive_features: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        missing_labels: str = "error",
    ) -> GroupMoments:
        """Moments of an array, a data frame or a SciPy sparse matrix, by group.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, d)
            Numeric and without missing values. It is read in blocks of rows, once; twice if the
            means of groups lie very far apart.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            The group of each row; several columns make groups of their intersections. None puts
            all rows in one group.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of the rows.
        missing_labels : {"error", "group"}, default="error"
            Whether missing sensitive features are an error or a group of their own.

        Returns
        -------
        GroupMoments
        """
        rows = check_rows(X)
        labels, codes = encode_groups(sensitive_features, rows.shape[0], missing_labels)
        moments = cls.from_codes(rows, codes, labels, check_weights(sample_weight, rows.shape[0]))
        if not moments.is_finite:
            explain_not_finite(rows)
        return replace(moments, feature_names=column_names(X))

    @classmethod
    def from_codes(
        cls,
        X: Any,
        codes: NDArray[np.integer[Any]],
        labels: Sequence[Hashable],
        sample_weight: Array | None = None,
    ) -> GroupMoments:
        """Moments of checked rows whose groups are given as positions in `labels`."""
        count, weight, mean, scatter = group_sums(X, codes, len(labels), sample_weight)
        if sample_weight is not None and not weight.all():
            # Rows without weight count for nothing, and so does a group of them alone.
            some = weight > 0
            labels = [label for label, there in zip(labels, some, strict=True) if there]
            count, weight, mean, scatter = count[some], weight[some], mean[some], scatter[some]
        return cls(tuple(labels), count, weight, mean, scatter)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.mean.shape[1])

    @property
    def is_finite(self) -> bool:
        """Whether all sums are finite; a missing or infinite value anywhere makes this False."""
        return bool(np.isfinite(self.mean).all() and np.isfinite(self.scatter).all())

    @property
    def total_mean(self) -> Array:
        """Weighted mean of all rows."""
        mean: Array = self.weight @ self.mean / self.weight.sum()
        return mean

    def total_covariance(self) -> Array:
        """Mean of ``(x - mean)(x - mean)^T`` over all rows, weighted; (d, d)."""
        offset = self.mean - self.total_mean
        scatter = self.scatter.sum(axis=0) + (offset * self.weight[:, None]).T @ offset
        covariance: Array = scatter / self.weight.sum()
        return covariance

    def second_moments(self, centering: str = "global") -> Array:
        """Mean of ``(x - center)(x - center)^T`` in each group, shape (k, d, d).

        The center is the mean of all rows ("global") or the group's own ("group").
        """
        matrices = np.empty_like(self.scatter)
        offsets = self.mean - self.total_mean
        for i, offset in enumerate(offsets):
            np.divide(self.scatter[i], self.weight[i], out=matrices[i])
            if centering == "global":
                matrices[i] += np.outer(offset, offset)
        return matrices

    def __add__(self, other: GroupMoments) -> GroupMoments:
        if not isinstance(other, GroupMoments):
            return NotImplemented
        if self.n_features != other.n_features:
            raise ValueError(
                f"Moments of {self.n_features} and of {other.n_features} columns cannot be added."
            )
        names = self.feature_names or other.feature_names
        if other.feature_names not in (None, names):
            raise ValueError(
                "Moments of differently named columns cannot be added: bring the columns of both "
                "into the same order and give them the same names."
            )
        labels = sorted_labels(set(self.labels) | set(other.labels))
        k, d = len(labels), self.n_features
        count = np.zeros(k, dtype=np.int64)
        weight, mean, scatter = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
        position = {label: i for i, label in enumerate(labels)}
        for part in (self, other):
            for j, label in enumerate(part.labels):
                i = position[label]
                count[i] += part.count[j]
                _merge(weight, mean, scatter, i, part.weight[j], part.mean[j], part.scatter[j])
        return GroupMoments(labels, count, weight, mean, scatter, names)


def _merge(
    weight: Array, mean: Array, scatter: Array, i: int, w: float, m: Array, s: Array
) -> None:
    """Add (w, m, s) to the i-th moments in place."""
    if w == 0.0:
        return
    total = weight[i] + w
    shift = m - mean[i]
    scatter[i] += s
    if weight[i] > 0.0:
        scatter[i] += np.outer(shift * (weight[i] * w / total), shift)
    mean[i] += shift * (w / total)
    weight[i] = total

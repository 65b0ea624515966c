"""GroupMoments: all that is kept of the data, and how arrays become it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpca._linalg.backends import device_library
from fairpca._linalg.device import diagonals, rescaled, united_scatters
from fairpca._linalg.types import Array
from fairpca.files import moments_file as _moments_file
from fairpca.folds import in_folds
from fairpca.groups import (
    Groups,
    are_parts,
    encode_groups,
    groups_of_parts,
    n_partitions,
    overlapping,
    refuse_ambiguous,
    sorted_labels,
    warn_of_dropped,
    warn_of_weightless,
)
from fairpca.moments.sums import group_sums
from fairpca.text import label_text
from fairpca.validation import (
    check_device_rows,
    check_rows,
    check_same_index,
    check_weights,
    column_names,
    explain_not_finite,
)

# Sums of groups' moments that grow in place.


class MomentSum:
    """A sum of moments that grows in place."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, _Group] = {}
        self._n_features: int | None = None
        self._names: tuple[str, ...] | None = None
        self._group_names: tuple[str, ...] | None = None
        self._weighted = False
        self._has_folds: bool | None = None
        self.n_dropped = 0

    def add(self, part: GroupMoments) -> None:
        """Add moments, which stay as they are; nothing changes if they do not fit."""
        if self._n_features not in (None, part.n_features):
            raise ValueError(
                f"Moments of {self._n_features} and of {part.n_features} columns cannot be added."
            )
        if self._groups and part.labels and self._has_folds not in (None, part.has_folds):
            raise ValueError(
                "Moments with folds and moments without cannot be added: take all of them with "
                "folds=True, or call without_folds() on those that have them."
            )
        for what, known, given in (
            ("columns", self._names, part.feature_names),
            ("sensitive columns", self._group_names, part.group_names),
        ):
            if None not in (known, given) and known != given:
                raise ValueError(
                    f"Moments of differently named {what} cannot be added: bring the {what} of "
                    "both into the same order and give them the same names."
                )
        if self._groups and part.labels and n_partitions(self._groups) != part.n_partitions:
            raise ValueError(
                "Moments of groups that overlap and of others cannot be added: add those of the "
                "intersections, and call overlapping() on the sum."
            )
        self._n_features = part.n_features
        self._has_folds = part.has_folds if part.labels else self._has_folds
        self._names = self._names or part.feature_names
        self._group_names = self._group_names or part.group_names
        self.n_dropped += part.n_dropped
        self._weighted |= part.weight_squares is not None
        squares = part.weight_squares
        if squares is None:  # all weights of a group are the same
            squares = part.weight**2 / np.maximum(part.count, 1)
        for j, label in enumerate(part.labels):
            mean, scatter, weight = part.mean[j], part.scatter[j], float(part.weight[j])
            if label not in self._groups:
                nothing = np.zeros(len(mean)), np.zeros(scatter.shape)
                self._groups[label] = _Group(0, 0.0, 0.0, *nothing)
            group = self._groups[label]
            group.count += int(part.count[j])
            group.weight_square += float(squares[j])
            total, shift = group.weight + weight, mean - group.mean
            group.scatter += scatter
            if group.weight > 0.0 < weight:
                group.scatter += np.outer(shift * (group.weight * weight / total), shift)
            group.mean += shift * (weight / total if total > 0.0 else 0.0)
            group.weight = total

    @property
    def n_groups(self) -> int:
        """How many groups there are so far; those in folds count once."""
        groups = self._groups
        return len(groups_of_parts(groups)[0] if are_parts(groups) else groups)

    def moments(self) -> GroupMoments:
        """The sum so far."""
        if self._n_features is None:
            raise ValueError("There are no moments to merge: the list of parts is empty.")
        labels = sorted_labels(self._groups)
        refuse_ambiguous(labels)
        groups = [self._groups[label] for label in labels]
        shape = (len(groups), self._n_features, self._n_features)
        squares = np.array([group.weight_square for group in groups])
        return GroupMoments(
            labels=labels,
            count=np.array([group.count for group in groups], dtype=np.int64),
            weight=np.array([group.weight for group in groups], dtype=np.float64),
            mean=np.array([group.mean for group in groups]).reshape(shape[:2]),
            scatter=np.array([group.scatter for group in groups]).reshape(shape),
            weight_squares=squares if self._weighted else None,
            feature_names=self._names,
            group_names=self._group_names,
            n_dropped=self.n_dropped,
        )


@dataclass(eq=False)
class _Group:
    """Moments of one group, to be added to."""

    count: int
    weight: float
    weight_square: float
    mean: Array
    scatter: Array


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """Count, weight, mean and scatter of each group.

    Two of them add to the moments of all their rows together, exactly (Chan, Golub and LeVeque,
    1983), so data can be taken in parts, in any order, from any place.

    Attributes
    ----------
    labels : tuple of length k
        The groups, in sorted order. Of several sensitive columns they are tuples, in which "(all)"
        stands for a column that a group does not go by.
    count : integer array of shape (k,)
        Rows of each group.
    weight : array of shape (k,)
        Sum of the sample weights of each group; the count when there were none.
    mean : array of shape (k, d)
        Weighted mean of each group.
    scatter : array of shape (k, d, d)
        Weighted sum of ``(x - mean)(x - mean)^T`` over the rows of each group. Of rows on a GPU it
        stays there, and of few rows in many columns it is kept as these: it does what an array
        does, and NumPy gets a copy when it first asks.
    weight_squares : array of shape (k,), or None
        Sum of the squared sample weights of each group; None when there were none, or all rows of
        a group have the same.
    feature_names : tuple of d str, or None
        Names of the columns, when they came from a data frame with names.
    group_names : tuple of str, or None
        Names of the sensitive columns, when they are known.
    n_dropped : int
        Rows that are left out because a sensitive feature of theirs was missing.

    See Also
    --------
    fairpca.sources.read_moments : Those of files, streams and clusters.

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
    weight_squares: Array | None = None
    feature_names: tuple[str, ...] | None = None
    group_names: tuple[str, ...] | None = None
    n_dropped: int = 0

    @classmethod
    def from_rows(
        cls,
        X: Any,
        sensitive_features: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        missing_labels: str = "error",
        folds: bool | str = False,
    ) -> GroupMoments:
        """Moments of an array, a data frame or a SciPy sparse matrix, by group.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, d)
            Numeric and without missing values. It is read in blocks of rows, once; twice if the
            first row of a group lies very far from its others.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            The group of each row; several columns make groups of their intersections. None puts
            all rows in one group.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of the rows.
        missing_labels : {"error", "group", "drop"}, default="error"
            Whether missing sensitive features are an error, a group of their own, or left out.
        folds : bool or "needed", default=False
            Whether each group is kept by fold too, which the default criterion of `FairPCA`
            needs where groups are small: a row's part depends on its values alone, and is the last
            in a label. "needed" leaves large groups whole, which is not for moments that are to be
            added.

        Returns
        -------
        GroupMoments
        """
        check_same_index(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
        rows = check_rows(X) if device_library(X) is None else check_device_rows(X)
        groups = encode_groups(sensitive_features, rows.shape[0], missing_labels)
        warn_of_dropped(groups.n_dropped, rows.shape[0])
        weights = check_weights(sample_weight, rows.shape[0])
        moments = cls.from_groups(rows, groups, weights, folds)
        if not moments.is_finite:
            explain_not_finite(rows)
        warn_of_weightless(groups.labels, moments.labels, groups.names)
        return replace(moments, feature_names=column_names(X))

    @classmethod
    def from_groups(
        cls,
        X: Any,
        groups: Groups,
        sample_weight: Array | None = None,
        folds: bool | str = False,
    ) -> GroupMoments:
        """Moments of checked rows whose groups are encoded; folds are as for `from_rows`."""
        if folds and groups.labels:
            groups = in_folds(groups, X, sample_weight, needed=folds == "needed")
        weights, labels, codes = groups.weights(sample_weight), groups.labels, groups.codes
        about: dict[str, Any] = {"group_names": groups.names, "n_dropped": groups.n_dropped}
        if weights is not None:
            there = np.bincount(codes, weights, len(labels)) > 0.0
            if not there.all():
                # Rows without weight count for nothing, and so does a group of them alone.
                labels = tuple(compress(labels, there))
                codes = np.where(there, np.cumsum(there) - 1, len(labels))[codes]
        if not (labels and X.shape[0]):
            d, none = X.shape[1], np.zeros(0)
            empty = none.astype(np.int64), none, np.zeros((0, d)), np.zeros((0, d, d))
            return cls((), *empty, **about)
        sums = group_sums(X, codes, len(labels), weights)
        if weights is not None:
            about["weight_squares"] = np.bincount(codes, weights**2, len(labels))[: len(labels)]
        return cls(labels, *sums, **about)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.mean.shape[1])

    @property
    def n_partitions(self) -> int:
        """How many of the groups each row is in: more than 1 where groups overlap."""
        return n_partitions(self.labels)

    @property
    def n_rows(self) -> int:
        """Number of rows, each counted once."""
        return int(self.count.sum()) // n_partitions(self.labels)

    @property
    def effective_count(self) -> Array:
        """How many rows of equal weight say as much about each group as its rows do; (k,)."""
        if self.weight_squares is None:
            return self.count.astype(np.float64)
        effective: Array = self.weight**2 / self.weight_squares
        return effective

    @property
    def group_texts(self) -> list[str]:
        """What the groups are called, such as "Female", or "sex=Female" of several columns."""
        return [label_text(label, self.group_names) for label in self.labels]

    @property
    def is_finite(self) -> bool:
        """Whether all sums are finite; a missing or infinite value anywhere makes this False."""
        # No entry of a scatter is larger than the largest on its diagonal.
        return bool(np.isfinite(self.mean).all() and np.isfinite(diagonals(self.scatter)).all())

    @property
    def total_mean(self) -> Array:
        """Weighted mean of all rows."""
        mean: Array = self.weight @ self.mean / self.weight.sum()
        return mean

    @property
    def offsets(self) -> Array:
        """Means of the groups minus that of all rows; (k, d)."""
        return np.asarray(self.mean - self.weight @ self.mean / self.weight.sum())

    def total_covariance(self) -> Array:
        """Mean of ``(x - mean)(x - mean)^T`` over all rows, weighted; (d, d)."""
        offsets = self.offsets
        scatter = self.scatter.sum(axis=0) + (offsets * self.weight[:, None]).T @ offsets
        covariance: Array = scatter / self.weight.sum()
        return covariance

    def standardized(self) -> GroupMoments:
        """Moments of the same rows with every column brought to mean 0 and variance 1.

        These are the columns that scikit-learn's `StandardScaler` makes of all rows: minus
        `total_mean`, over the root of the diagonal of `total_covariance`. Columns that are
        constant, up to rounding, become 0.

        Returns
        -------
        GroupMoments

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import GroupMoments
        >>> X = np.array([[1.0, 100.0], [2.0, 300.0], [3.0, 200.0]])
        >>> GroupMoments.from_rows(X).standardized().total_covariance().round(4)
        array([[1. , 0.5],
               [0.5, 1. ]])
        """
        mean, offsets = self.total_mean, self.offsets
        squares = diagonals(self.scatter).sum(axis=0) + self.weight @ offsets**2
        variance = squares / self.weight.sum()
        # The error of the variance of as many equal numbers, as StandardScaler has it.
        n, eps = float(self.n_rows), float(np.finfo(float).eps)
        constant = variance <= n * eps * variance + (n * mean * eps) ** 2
        factors = np.where(constant, 0.0, 1.0 / np.sqrt(np.where(constant, 1.0, variance)))
        return replace(self, mean=offsets * factors, scatter=rescaled(self.scatter, factors))

    def overlapping(self, groups: str | None) -> GroupMoments:
        """Moments of other groups of the same rows, of which a row may be in several.

        Parameters
        ----------
        groups : {"marginals", "both", "intersections", None}
            "marginals" makes a group of all rows with one value in one sensitive column (all
            women, all Black people, …); "both" has these and the intersections. Of one column
            all three are the same. None puts all rows in one group.

        Returns
        -------
        GroupMoments

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import GroupMoments
        >>> people = {"sex": ["f", "f", "m", "m"], "age": ["old", "young", "old", "old"]}
        >>> moments = GroupMoments.from_rows(np.eye(4), people).overlapping("marginals")
        >>> dict(zip(moments.group_texts, moments.count.tolist()))
        {'sex=f': 2, 'sex=m': 2, 'age=old': 3, 'age=young': 1}
        """
        if self.has_folds:
            raise ValueError("These moments are kept by fold: call without_folds() first.")
        labels, parts = overlapping(self.labels, groups)
        return self if parts is None else self.united(labels, parts)

    @property
    def has_folds(self) -> bool:
        """Whether each group is kept in parts, one for each fold."""
        return are_parts(self.labels)

    def without_folds(self) -> GroupMoments:
        """Moments of the same rows by group alone."""
        if not are_parts(self.labels):
            return self
        labels, group_of, _ = groups_of_parts(self.labels)
        names = self.group_names
        united = self.united(labels, np.arange(len(labels))[:, None] == group_of)
        return replace(united, group_names=names and names[:-1])

    def united(self, labels: Sequence[Hashable], parts: NDArray[np.bool_]) -> GroupMoments:
        """Moments of other groups, each made of some of these: `parts` is (new, old)."""
        scatter, mean = united_scatters(self.scatter, parts, self.weight, self.mean)
        sums: dict[str, Any] = {"count": parts @ self.count, "weight": parts @ self.weight}
        if self.weight_squares is not None:
            sums["weight_squares"] = parts @ self.weight_squares
        return replace(self, labels=tuple(labels), mean=mean, scatter=scatter, **sums)

    def __sizeof__(self) -> int:
        # For Dask's scheduler, which goes by the sizes of what it moves.
        arrays = (self.count, self.weight, self.mean, self.scatter)
        return object.__sizeof__(self) + sum(array.nbytes for array in arrays)

    def __add__(self, other: GroupMoments) -> GroupMoments:
        if not isinstance(other, GroupMoments):
            return NotImplemented
        return GroupMoments.merge((self, other))

    @classmethod
    def merge(cls, parts: Iterable[GroupMoments]) -> GroupMoments:
        """Moments of all the rows of many parts together.

        The parts are added in place and one after another, so an iterator over very many of them
        needs no more memory than two.

        There is at least one part. Groups may occur in some of them only; columns must be the same.
        """
        total = MomentSum()
        for part in parts:
            total.add(part)
        return total.moments()

    def save(self, path: str | Path) -> None:
        """Write the moments to a file that holds no code; it is whole or not there.

        The name has the suffix ``.moments`` by custom. A group of few rows gives them away:
        docs/privacy.md says what a file reveals.
        """
        _moments_file.save(path, self)

    @classmethod
    def load(cls, path: str | Path) -> GroupMoments:
        """Read what `save` wrote, or the checkpoint of a pass over files.

        Nothing in the file is run. The checksums guard against damage, not against someone who
        changes the numbers on purpose. What is no file of moments, or a damaged one, or one of a
        newer version, is refused (ValueError).
        """
        return cls(**_moments_file.read(path)[0])

    def to_bytes(self) -> bytes:
        """The bytes of the file that `save` writes, to be sent from one place to another."""
        if not self.is_finite:
            raise ValueError("Moments that are not finite cannot be sent.")
        return _moments_file.pack(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> GroupMoments:
        """The moments that `to_bytes` made these bytes of; nothing in them is run.

        Parameters
        ----------
        data : bytes
            What is no moments, or damaged, or of a newer version, is refused (ValueError).

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import GroupMoments
        >>> sent = GroupMoments.from_rows(np.eye(3), ["f", "m", "f"]).to_bytes()
        >>> GroupMoments.from_bytes(sent).labels
        ('f', 'm')
        """
        return cls(**_moments_file.read(data)[0])

"""Sums of groups' moments that grow in place."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.folds import has_folds, labels_without_folds
from fairpca._rows.labels import (
    Orders,
    merged_orders,
    n_partitions,
    refuse_ambiguous,
    sorted_labels,
)


class GroupSum:
    """A sum of the moments of groups; parts are anything with the attributes of moments."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, _Group] = {}
        self._n_features: int | None = None
        self._names: tuple[str, ...] | None = None
        self._group_names: tuple[str, ...] | None = None
        self._orders: Orders | None = None
        self._weighted = False
        self.n_dropped = 0

    def add(self, part: Any) -> None:
        """Add moments, which stay as they are; nothing changes if they do not fit."""
        if self._n_features not in (None, part.n_features):
            raise ValueError(
                f"Moments of {self._n_features} and of {part.n_features} columns cannot be added."
            )
        known = tuple(self._groups)
        if known and part.labels and has_folds(known) != has_folds(part.labels):
            raise ValueError(
                "Moments with folds and moments without cannot be added: take all of them with "
                "folds=True, or call without_folds() on those that have them."
            )
        _refuse_other_names("columns", self._names, part.feature_names)
        _refuse_other_names("sensitive columns", self._group_names, part.group_names)
        if self._groups and part.labels and n_partitions(self._groups) != part.n_partitions:
            raise ValueError(
                "Moments of groups that overlap and of others cannot be added: add those of the "
                "intersections, and call overlapping() on the sum."
            )
        self._orders = merged_orders(self._orders, part.group_orders)
        self._n_features = part.n_features
        self._names = self._names or part.feature_names
        self._group_names = self._group_names or part.group_names
        self.n_dropped += part.n_dropped
        squares = part.weight_squares
        for j, label in enumerate(part.labels):
            sums = (part.count[j], part.weight[j], part.mean[j], part.scatter[j])
            self.add_group(label, *sums, None if squares is None else float(squares[j]))

    def add_group(
        self,
        label: Hashable,
        count: int,
        weight: float,
        mean: Array,
        scatter: Array,
        weight_square: float | None = None,
    ) -> None:
        """Add the moments of some rows of one group, with the sum of their squared weights.

        None stands for weights that are all the same.
        """
        self._n_features = len(mean)
        if label not in self._groups:
            self._groups[label] = _Group(0, 0.0, 0.0, np.zeros(len(mean)), np.zeros(scatter.shape))
        if weight > 0.0:
            self._weighted |= weight_square is not None
            square = float(weight) ** 2 / int(count) if weight_square is None else weight_square
            self._groups[label].add(count, weight, square, mean, scatter)

    @property
    def n_groups(self) -> int:
        """How many groups there are so far; those in folds count once."""
        return len(labels_without_folds(self._groups))

    def fields(self) -> dict[str, Any]:
        """The sum so far, as the fields of moments."""
        if self._n_features is None:
            raise ValueError("There are no moments to merge: the list of parts is empty.")
        labels = sorted_labels(self._groups, self._orders)
        refuse_ambiguous(labels)
        groups = [self._groups[label] for label in labels]
        shape = (len(groups), self._n_features, self._n_features)
        return {
            "labels": labels,
            "count": np.array([group.count for group in groups], dtype=np.int64),
            "weight": np.array([group.weight for group in groups], dtype=np.float64),
            "mean": np.array([group.mean for group in groups]).reshape(shape[:2]),
            "scatter": np.array([group.scatter for group in groups]).reshape(shape),
            "weight_squares": np.array([group.weight_square for group in groups])
            if self._weighted
            else None,
            "feature_names": self._names,
            "group_names": self._group_names,
            "group_orders": self._orders,
            "n_dropped": self.n_dropped,
        }


def _refuse_other_names(
    what: str, first: tuple[str, ...] | None, second: tuple[str, ...] | None
) -> None:
    if None not in (first, second) and first != second:
        raise ValueError(
            f"Moments of differently named {what} cannot be added: bring the {what} of both into "
            "the same order and give them the same names."
        )


@dataclass(eq=False)
class _Group:
    """Moments of one group, to be added to."""

    count: int
    weight: float
    weight_square: float
    mean: Array
    scatter: Array

    def add(
        self, count: int, weight: float, weight_square: float, mean: Array, scatter: Array
    ) -> None:
        self.count += int(count)
        self.weight_square += weight_square
        total = self.weight + float(weight)
        shift = mean - self.mean
        self.scatter += scatter
        if self.weight > 0.0:
            self.scatter += np.outer(shift * (self.weight * weight / total), shift)
        self.mean += shift * (weight / total)
        self.weight = total

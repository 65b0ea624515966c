"""A preparation that is learned from the batches of a table, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_choice
from fairpca.moments import GroupMoments
from fairpca.tables.preparation import (
    ENCODINGS,
    MOST_CATEGORIES,
    Preparation,
    column_values,
    columns_to_reduce,
    quoted,
    refuse_huge,
    settle_columns,
    text_categories,
)


class GradualPreparation:
    """What `Preparation.learn` learns from a whole table, less the scales, from its batches.

    The parameters are those of `Preparation.learn`, with the names of the table's columns.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        sensitive: Sequence[str] = (),
        drop: Sequence[str] = (),
        encode: str = "onehot",
        keep_sensitive: bool = False,
    ) -> None:
        check_choice("encode", encode, ENCODINGS)
        self.used = columns_to_reduce(names, sensitive, drop, keep_sensitive)
        self._names, self._sensitive, self._encode = tuple(names), tuple(sensitive), encode
        self._texts: dict[str, set[str]] = {}
        self._numbers: set[str] = set()

    def see(self, batch: Any) -> None:
        """Take in the texts of a batch; a column that has no text yet need not be there again."""
        for name in batch.columns:
            source = column_values(batch, name)
            categories = text_categories(source, name)
            if categories is not None:
                self._texts.setdefault(name, set()).update(categories)
                self._refuse_many(name)
            elif not source.isna().all():  # nothing at all is no sign of numbers
                self._numbers.add(name)
            if name in self._texts and name in self._numbers:
                raise ValueError(
                    f"Column {quoted([name])} holds neither numbers alone nor text alone: turn it "
                    "into one of them, or drop it."
                )

    def _refuse_many(self, name: str) -> None:
        # At once, as the texts of a column that names each row may not fit into memory.
        if self._encode == "onehot" and len(self._texts[name]) > MOST_CATEGORIES:
            raise ValueError(
                f"Column {quoted([name])} has more than {MOST_CATEGORIES:,} different texts, too "
                "many for a column each: drop it, or encode text as codes."
            )

    def unscaled(self) -> Preparation:
        """The preparation so far, which leaves columns in their own units."""
        found = {
            name: tuple(sorted(self._texts[name])) if name in self._texts else None
            for name in self.used
        }
        return Preparation.unscaled(
            settle_columns(found, self._encode),
            ignored=tuple(name for name in self._names if name not in self.used),
            sensitive=self._sensitive,
        )


def standardizing(
    plain: Preparation, moments: GroupMoments, origin: Array, low: Array, high: Array
) -> tuple[Preparation, GroupMoments]:
    """The preparation that also standardises, and the moments of what it makes of the same rows.

    Parameters
    ----------
    plain : Preparation
        One that leaves columns in their own units.
    moments : GroupMoments
        Of the rows that it made, less the origin; they may have overflown.
    origin : array of shape (n_outputs,)
        A row somewhere among them, from which they are measured so that no digits are lost.
    low, high : arrays of shape (n_outputs,)
        The least and the largest value of each column, also less the origin.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = moments.total_mean
        squares = np.einsum("kii->i", moments.scatter)
        variance = (squares + moments.weight @ (moments.mean - mean) ** 2) / moments.weight.sum()
    constant = low == high
    refuse_huge(plain.feature_names, ~constant & ~np.isfinite(variance))
    mean, variance = np.where(constant, low, mean), np.where(constant, 0.0, variance)
    means = origin + mean
    # Where the variance is no more than rounding, StandardScaler does not divide by it either.
    n, eps = float(moments.count.sum()), float(np.finfo(float).eps)
    rounding = variance <= n * eps * variance + (n * means * eps) ** 2
    scales = np.where(rounding, 1.0, np.sqrt(variance))
    factors = np.where(constant, 0.0, 1.0 / scales)
    scaled = replace(
        moments,
        mean=np.where(constant, 0.0, moments.mean - mean) * factors,
        scatter=moments.scatter * factors[:, None] * factors,
    )
    return replace(plain, means=means, scales=scales), scaled

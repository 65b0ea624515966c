"""From an Arrow record batch to its rows of numbers, and to their moments."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow

from fairpca._linalg.threads import one_blas_thread
from fairpca._linalg.types import Array
from fairpca.groups import check_number_of_groups
from fairpca.moments import GroupMoments, MomentSum
from fairpca.tables.columns import Columns, label_groups
from fairpca.tables.reading import cut


@dataclass(frozen=True)
class Batch:
    """Some rows, which columns count, and where they are from, for messages.

    That is a name, or nothing, and the number of rows before.
    """

    rows: Any
    columns: Columns
    where: str
    before: int

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Name the place in whatever goes wrong with the rows in the body."""
        try:
            yield
        except (ValueError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{self.where}: {error}" if self.where else str(error)) from error


def in_parts(
    batches: Iterable[Any], columns: Columns, where: str, names: Sequence[str] | None = None
) -> Iterator[Batch]:
    """The rows of a partition, in parts that are not too large, perhaps with other names."""
    before = 0
    for batch in batches:
        named = batch if names is None else pyarrow.RecordBatch.from_arrays(batch.columns, names)
        for part in cut(named):
            yield Batch(part, columns, where, before)
            before += part.num_rows


def sum_batches(
    batches: Iterable[Any],
    columns: Columns,
    where: str,
    missing_labels: str,
    folds: bool,
    names: Sequence[str] | None = None,
) -> GroupMoments | None:
    """Moments of all batches of a partition, or None if it has no rows."""
    total = MomentSum()
    with one_blas_thread():  # a task has one core
        for batch in in_parts(batches, columns, where, names):
            total.add(batch_moments(batch, missing_labels, folds))
            check_number_of_groups(total.n_groups)
    return total.moments() if total.n_groups or total.n_dropped else None


def batch_moments(batch: Batch, missing_labels: str, folds: bool = False) -> GroupMoments:
    """Moments of the rows of a batch, by group, and by fold if that is asked for."""
    with batch.naming():
        numbers, weights = _numbers(batch, batch.columns.features), None
        if batch.columns.weight is not None:
            weights = _numbers(batch, [batch.columns.weight])[:, 0]
            bad = ~(weights >= 0.0) | ~np.isfinite(weights)
            if bad.any():
                raise ValueError(
                    f"The weight in column {batch.columns.weight!r} is missing, negative or not "
                    f"finite in row {batch.before + int(np.argmax(bad)) + 1} (the first is 1)."
                )
        groups = label_groups(batch.rows, batch.columns.sensitive, missing_labels)
        with np.errstate(invalid="ignore", over="ignore"):
            moments = GroupMoments.from_groups(numbers, groups, weights, folds)
        if not moments.is_finite:
            _check_finite(batch, numbers)
            raise ValueError("Values are too large to be squared: rescale the columns.")
    return replace(moments, feature_names=batch.columns.features)


def batch_numbers(batch: Batch) -> Array:
    """The features of a batch as an array of numbers, all of them finite."""
    with batch.naming():
        numbers = _numbers(batch, batch.columns.features)
        _check_finite(batch, numbers)
    return numbers


def _numbers(batch: Batch, names: Sequence[str]) -> Array:
    """Columns of numbers, one by one as Arrow has them; those that are missing are nan."""
    numbers = np.empty((batch.rows.num_rows, len(names)), order="F")
    for j, name in enumerate(names):
        column = batch.rows.column(name)
        if pyarrow.types.is_decimal(column.type):
            column = column.cast(pyarrow.float64())
        numbers[:, j] = column.to_numpy(zero_copy_only=False)
    return numbers


def _check_finite(batch: Batch, numbers: Array) -> None:
    for name, column in zip(batch.columns.features, numbers.T, strict=True):
        bad = ~np.isfinite(column)
        if bad.any():
            raise ValueError(
                f"The value in column {name!r} is missing or infinite in row "
                f"{batch.before + int(np.argmax(bad)) + 1} (the first is 1): fill it in, or leave "
                "out that row or column."
            )

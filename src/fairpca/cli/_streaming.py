"""Commands on tables that are read in batches, since they may not fit into memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairpca import FairPCA, GroupMoments, GroupTable, ParetoFront
from fairpca._linalg.types import Array
from fairpca._rows.groups import check_number_of_groups, encode_groups
from fairpca.audit import audited_table, squared_errors
from fairpca.cli._batch_writing import write_batches
from fairpca.cli._batches import TableBatches
from fairpca.cli._fitting import (
    ColumnOptions,
    find_dimension_of_moments,
    refuse_missing_labels,
    rows_without_label,
    sensitive_columns,
    unique,
)
from fairpca.cli._models import check_columns
from fairpca.cli._reduced import check_carried, reduced_table
from fairpca.cli._terminal import BadInputError, refusing, stage
from fairpca.estimators.gather import warn_of_groups
from fairpca.moments import MomentSum
from fairpca.problem import Problem
from fairpca.tables.gradual import GradualPreparation, standardizing
from fairpca.tables.preparation import Preparation, missing_sentence, refuse_huge, require_columns

STREAM_BYTES = 2**30
"""Files that are larger are read in batches, unless the user says otherwise."""


def reads_in_batches(path: Path, stream: bool | None, report: Path | None = None) -> bool:
    """Whether a table is read in batches: as the user says, or by the size of its file."""
    if stream and report is not None:
        raise BadInputError(
            "a report resamples the rows, which it needs in memory: leave out --report or --stream."
        )
    if stream is None:
        return report is None and path.is_file() and path.stat().st_size > STREAM_BYTES
    return stream


@dataclass(frozen=True, eq=False)
class StreamedTable:
    """What has been made of a table in batches: moments of the prepared columns, by group."""

    batches: TableBatches
    preparation: Preparation
    moments: GroupMoments

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.moments.count.sum())


def open_batches(
    path: Path,
    columns: ColumnOptions,
    missing_labels: str,
    carry: Sequence[str] = (),
    output: Path | None = None,
) -> StreamedTable:
    """Learn how to prepare a table, and find the moments of what it becomes."""
    table = TableBatches(path)
    check_carried(table.names, carry, output)
    table.check_carried(carry, output)
    sensitive = columns.sensitive
    with refusing():
        learner = GradualPreparation(
            table.names,
            sensitive=sensitive,
            drop=columns.drop,
            encode=columns.encode,
            keep_sensitive=columns.keep_sensitive,
        )
    shown = unique([*sensitive, *carry])
    table.learn_types(read=unique([*learner.used, *shown]), shown=shown)
    texts = table.not_numeric(learner.used)
    if texts:
        doing = "learning the columns of text"
        with stage(doing) as progress, refusing():
            for frame in table.frames(progress, doing, texts):
                learner.see(frame)
    with refusing():
        plain = learner.unscaled()
    sums = _Sums(missing_labels, shift=True)
    doing = "preparing the columns"
    with stage(doing) as progress:
        needed = unique([*learner.used, *sensitive])
        frames = table.frames(progress, doing, needed, len(plain.means))
        for frame, rows in _prepared(frames, plain, sensitive, missing_labels):
            sums.add(rows, sensitive_columns(frame, sensitive))
    moments = sums.total.moments()
    with refusing():
        if columns.standardize:
            scaled = standardizing(plain, moments, sums.origin, sums.low, sums.high)
            return StreamedTable(table, *scaled)
        _refuse_overflow(plain, moments)
    return StreamedTable(table, plain, replace(moments, mean=sums.origin + moments.mean))


def front_of_batches(
    streamed: StreamedTable, dimension: int | float, points: int, missing_labels: str
) -> ParetoFront:
    """What `pareto_front` finds, from moments."""
    r = find_dimension_of_moments(streamed.moments, dimension, missing_labels)
    with stage("finding the points of the front") as progress, refusing():
        warn_of_groups(streamed.moments, stacklevel=4)
        front = ParetoFront.from_problem(Problem(streamed.moments, r), points, progress=progress)
    return replace(front, missing_labels=missing_labels)


def audit_batches(
    path: Path,
    reduction: FairPCA,
    preparation: Preparation,
    sensitive: Sequence[str],
    drop: Sequence[str],
    missing_labels: str,
) -> tuple[GroupTable, GroupMoments]:
    """What each group of a table loses with a model, and the moments of the prepared columns."""
    table = TableBatches(path, preparation.text_columns)
    with refusing():
        require_columns(table.names, sensitive)
    check_columns(preparation, table.names, drop, sensitive)
    names = _names(preparation)
    table.learn_types(read=unique([*names, *sensitive]), shown=sensitive)
    sums, r = _Sums(missing_labels, shift=False), 0
    losses: dict[Hashable, float] = defaultdict(float)
    doing = "auditing the model"
    with stage(doing) as progress:
        needed = unique([*names, *sensitive])
        frames = table.frames(progress, doing, needed, len(preparation.means))
        for frame, rows in _prepared(frames, preparation, sensitive, missing_labels):
            labels, codes = sums.add(rows, sensitive_columns(frame, sensitive))
            with refusing():
                errors, r = squared_errors(reduction, rows, rows)
            for label, loss in zip(labels, np.bincount(codes, errors, len(labels)), strict=True):
                losses[label] += float(loss)
    moments = sums.total.moments()
    with refusing():
        _refuse_overflow(preparation, moments)
        return audited_table(reduction, moments, losses, r), moments


def transform_batches(
    path: Path,
    reduction: FairPCA,
    preparation: Preparation,
    drop: Sequence[str],
    carry: Sequence[str],
    output: Path,
) -> int:
    """Reduce a new table into a file and return how many rows it has."""
    table = TableBatches(path, preparation.text_columns)
    check_carried(table.names, carry, output)
    table.check_carried(carry, output)
    check_columns(preparation, table.names, drop, carry)
    table.learn_types(read=unique([*_names(preparation), *carry]), shown=carry)
    return reduce_batches(table, reduction, preparation, carry, output)


def reduce_batches(
    table: TableBatches,
    reduction: FairPCA,
    preparation: Preparation,
    carry: Sequence[str],
    output: Path,
) -> int:
    """Write the reduced table and return how many rows it has; the types have been learned."""
    doing = f"reducing the rows into {output.name}"
    needed = unique([*_names(preparation), *carry])
    with stage(doing) as progress:
        frames = table.frames(progress, doing, needed, len(preparation.means))
        reduced = (
            reduced_table(reduction, rows, frame, carry)
            for frame, rows in _prepared(frames, preparation)
        )
        return write_batches(reduced, output, table.arrow_types(carry))


def _names(preparation: Preparation) -> list[str]:
    return [column.name for column in preparation.columns]


def _prepared(
    frames: Iterator[Any],
    preparation: Preparation,
    sensitive: Sequence[str] = (),
    missing_labels: str = "group",
) -> Iterator[tuple[Any, Array]]:
    """Each data frame with its prepared columns.

    From the first that lacks values on there are none: what the table lacks is counted to its end,
    and then refused.
    """
    names = _names(preparation)
    missing: Counter[str] = Counter()
    n_rows = unlabelled = 0
    for frame in frames:
        with refusing():
            rows, lacking = preparation.apply_counting(frame[names])
        missing.update(lacking)
        n_rows += len(frame)
        if missing_labels == "error":
            unlabelled += rows_without_label(frame, sensitive)
        if not missing and not unlabelled:
            yield frame, rows
    refuse_missing_labels(unlabelled, n_rows)
    if missing:
        raise BadInputError(missing_sentence({n: missing[n] for n in names if n in missing}))


class _Sums:
    """Moments of rows by group, and the least and the largest value of each column.

    If asked for, all are those of the rows less the first one, the origin: a column with a large
    mean and a small deviation then keeps its digits as the groups are added up.
    """

    def __init__(self, missing_labels: str, *, shift: bool) -> None:
        self.total = MomentSum()
        self._missing_labels, self._shift = missing_labels, shift
        self.origin: Array = np.zeros(0)
        self.low: Array = np.zeros(0)
        self.high: Array = np.zeros(0)

    def add(self, rows: Array, groups: Any) -> tuple[tuple[Hashable, ...], Any]:
        """Add some rows; the labels of their groups, and the position of each row's among them."""
        first = self.total.n_groups == 0
        if first:
            self.origin = rows[0].copy() if self._shift else np.zeros(rows.shape[1])
        if self._shift:
            rows = rows - self.origin
        low, high = rows.min(axis=0), rows.max(axis=0)
        self.low = low if first else np.minimum(self.low, low)
        self.high = high if first else np.maximum(self.high, high)
        with refusing(), np.errstate(over="ignore", invalid="ignore"):
            labels, codes = encode_groups(groups, len(rows), self._missing_labels)
            self.total.add(GroupMoments.from_codes(rows, codes, labels))
            check_number_of_groups(self.total.n_groups)
        return labels, codes


def _refuse_overflow(preparation: Preparation, moments: GroupMoments) -> None:
    finite = np.isfinite(moments.scatter).all(axis=(0, 1)) & np.isfinite(moments.mean).all(axis=0)
    refuse_huge(preparation.feature_names, np.logical_not(finite).tolist())

"""Spark: moments of data frames that are spread over a cluster, and their transform.

It works on classic sessions and through Spark Connect: all that is asked of Spark is `mapInArrow`.
Each partition sends one row with its moments, as the bytes of a file of moments. A second stage
merges these, so that the driver does not get as many matrices as there are partitions.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fairpca.moments import GroupMoments, MomentSum
from fairpca.tables.columns import (
    ColumnChoice,
    Columns,
    check_column_names,
    require_columns,
)

_SENT = "task long, moments binary"
"""What a task sends: its number, or the first of those that it merged, and moments."""

_REFUSAL = re.compile(r"^(?:\w+\.)*(ValueError|TypeError): (Partition \d+: .*)$", re.MULTILINE)
"""The sentence with which a task refuses its rows, in all that Spark says of a failed task."""


def moments(
    frame: Any, choice: ColumnChoice, missing_labels: str, folds: bool
) -> list[GroupMoments]:
    """Moments of parts of a Spark data frame.

    Nothing but moments leaves the executors, which need fairpca too.
    """
    _require_spark(frame)
    columns = choice.columns(_schema(frame))

    def sum_partition(batches: Iterable[Any]) -> Iterator[Any]:
        """One row with the moments of all batches of a partition, or none if it has no rows."""
        from fairpca.sources.record_batches import sum_batches

        where, names = f"Partition {_task()}", columns.names
        found = sum_batches(batches, columns, where, missing_labels, folds, names)
        if found is not None:
            yield _sent(_task(), found)

    sums = _selected(frame, columns.names).mapInArrow(sum_partition, _SENT)
    # By a column and without a number of partitions, so that Spark settles on one by their sizes.
    merged = sums.repartition("task").sortWithinPartitions("task").mapInArrow(_merge, _SENT)
    from pyspark.errors import PythonException

    try:
        rows = sorted(merged.collect(), key=lambda row: row.task)
    except PythonException as error:  # a task that refuses its rows does so in its own words
        refusal = _REFUSAL.search(str(error))
        if refusal is None:
            raise
        kind = TypeError if refusal[1] == "TypeError" else ValueError
        raise kind(refusal[2]) from error
    return [GroupMoments.from_bytes(bytes(row.moments)) for row in rows]


def transform(fair: Any, frame: Any, keep: Sequence[str]) -> Any:
    """The rows of a Spark data frame, projected on the components where they lie, lazily."""
    _require_spark(frame)
    if not hasattr(fair, "feature_names_in_"):
        raise ValueError(
            f"This {type(fair).__name__} was fitted to columns without names, so it is not known "
            "which columns of the data frame they are: fit it to a data frame."
        )
    columns = Columns(tuple(map(str, fair.feature_names_in_)), (), None, False)
    made = [str(name) for name in fair.get_feature_names_out()]
    require_columns(check_column_names(frame.columns), [*keep, *columns.features])
    columns.check(_schema(frame))
    projection = fair._projection
    needed = list(dict.fromkeys([*keep, *columns.features]))

    def reduce_partition(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        from fairpca.sources.record_batches import batch_numbers, in_parts

        for batch in in_parts(batches, columns, f"Partition {_task()}", needed):
            parts = [batch.rows.column(name) for name in keep]
            parts += [pyarrow.array(column) for column in projection(batch_numbers(batch)).T]
            yield pyarrow.RecordBatch.from_arrays(parts, names=[*keep, *made])

    from pyspark.sql.types import DoubleType, StructField, StructType

    kinds = {field.name: field for field in frame.schema.fields}
    fields = [kinds[name] for name in keep]
    fields += [StructField(name, DoubleType(), False) for name in made]
    return _selected(frame, needed).mapInArrow(reduce_partition, StructType(fields))


def _merge(batches: Iterable[Any]) -> Iterator[Any]:
    """One row with the moments of all rows that were sent to this task, or none."""
    total, first = MomentSum(), None
    for batch in batches:
        for task, data in zip(batch.column("task"), batch.column("moments"), strict=True):
            first = task.as_py() if first is None else first
            total.add(GroupMoments.from_bytes(data.as_py()))
    if first is not None:
        yield _sent(first, total.moments())


def _sent(task: int, moments: GroupMoments) -> Any:
    import pyarrow

    return pyarrow.RecordBatch.from_arrays(
        [pyarrow.array([task], pyarrow.int64()), pyarrow.array([moments.to_bytes()])],
        names=["task", "moments"],
    )


def _task() -> int:
    """The number of the partition that this process works on."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    return int(context.partitionId())


def _schema(frame: Any) -> Any:
    """The columns as Arrow has them, as far as it matters which hold numbers."""
    import pyarrow
    from pyspark.sql.types import BooleanType, NullType, NumericType

    numeric = NumericType, BooleanType, NullType
    return pyarrow.schema(
        (field.name, pyarrow.float64() if isinstance(field.dataType, numeric) else pyarrow.string())
        for field in frame.schema.fields
    )


def _selected(frame: Any, names: list[str]) -> Any:
    """These columns, numbered: `mapInArrow` does not take every name that a column may have."""
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    return frame.select(*quoted).toDF(*(f"_{i}" for i in range(len(names))))


def _require_spark(frame: Any) -> None:
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Spark data frames need pyspark and pyarrow: install `fairpca[spark]`."
        ) from error
    # Of the class: for a data frame of Spark Connect any name might be that of a column.
    if hasattr(type(frame), "to_spark"):
        raise TypeError("This is a data frame of pandas on Spark: pass its to_spark().")
    if not hasattr(type(frame), "mapInArrow"):
        raise TypeError(f"Expected a data frame of Spark, not a {type(frame).__name__}.")

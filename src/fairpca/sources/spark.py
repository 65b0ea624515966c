"""Spark: moments of data frames that are spread over a cluster, and their transform.

It works on classic sessions and through Spark Connect: all that is asked of Spark is `mapInArrow`.
Each partition sends one row with its moments, as the bytes of a file of moments. A second stage
merges these, so that the driver does not get as many matrices as there are partitions.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fairpca._linalg.threads import one_blas_thread
from fairpca.groups import check_number_of_groups
from fairpca.moments import GroupMoments, MomentSum
from fairpca.tables.columns import ColumnChoice, Columns, check_column_names, require_columns

_SENT = "task long, moments binary"
"""What a task sends: its number, or the first of those that it merged, and moments."""

_REFUSAL = re.compile(r"^(?:\w+\.)*(ValueError|TypeError): (Partition \d+: .*)$", re.MULTILINE)
"""The sentence with which a task refuses its rows, in all that Spark says of a failed task."""


def moments(
    frame: Any,
    sensitive_features: str | Sequence[str] | None,
    features: Sequence[str] | None,
    sample_weight: str | None,
    keep_sensitive: bool,
    options: tuple[str, bool],
) -> list[GroupMoments]:
    """Moments of parts of a Spark data frame; `read_moments` has the parameters.

    The options are `missing_labels` and `folds`. Nothing but moments leaves the executors, which
    need fairpca too.
    """
    _require_spark(frame)
    if any(hasattr(given, "shape") for given in (sensitive_features, sample_weight)):
        raise TypeError(
            "sensitive_features and sample_weight must be names of columns of the data frame."
        )
    choice = ColumnChoice.of(features, sensitive_features, sample_weight, keep_sensitive)
    columns = choice.columns(_schema(frame))

    def sum_partition(batches: Iterable[Any]) -> Iterator[Any]:
        """One row with the moments of all batches of a partition, or none if it has no rows."""
        from fairpca.sources.record_batches import batch_moments

        total = MomentSum()
        with one_blas_thread():  # a task has one core
            for batch in _parts(batches, columns.names, columns):
                total.add(batch_moments(batch, *options))
                check_number_of_groups(total.n_groups)
        if total.n_groups or total.n_dropped:
            yield _sent(_task(), total.moments())

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

        from fairpca.sources.record_batches import batch_numbers

        for batch in _parts(batches, needed, columns):
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


def _parts(batches: Iterable[Any], names: list[str], columns: Any) -> Iterator[Any]:
    """The batches of a partition, in parts that are not too large, with names for the columns."""
    import pyarrow

    from fairpca.sources.record_batches import Batch
    from fairpca.tables.reading import cut

    where, before = f"Partition {_task()}", 0
    for batch in batches:
        for part in cut(pyarrow.RecordBatch.from_arrays(batch.columns, names=names)):
            yield Batch(part, columns, where, before)
            before += part.num_rows


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
    from pyspark.sql import types

    known = {
        types.BooleanType: pyarrow.bool_(),
        types.NullType: pyarrow.null(),
        types.DateType: pyarrow.date32(),
        types.TimestampType: pyarrow.timestamp("us"),
        types.BinaryType: pyarrow.binary(),
    }
    columns = []
    for field in frame.schema.fields:
        kind = known.get(type(field.dataType), pyarrow.string())
        numeric = isinstance(field.dataType, types.NumericType)
        columns.append((field.name, pyarrow.float64() if numeric else kind))
    return pyarrow.schema(columns)


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

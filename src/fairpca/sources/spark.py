"""Spark: moments of data frames that are spread over a cluster, and their transform.

It works on classic sessions and through Spark Connect: all that is asked of Spark is `mapInArrow`.
Each partition sends one row with its moments, as the bytes of a file of moments. A second stage
merges these, so that the driver does not get as many matrices as there are partitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fairpca._rows.checks import check_choice
from fairpca._rows.groups import check_number_of_groups
from fairpca._rows.projection import Projection
from fairpca._rows.sums import one_blas_thread
from fairpca._rows.text import listed
from fairpca.moments import GroupMoments, MomentSum
from fairpca.tables.preparation import check_column_names, require_columns

_SENT = "task long, moments binary"
"""What a task sends: its number, or the first of those that it merged, and moments."""

_REFUSAL = re.compile(r"^(?:\w+\.)*(ValueError|TypeError): (Partition \d+: .*)$", re.MULTILINE)
"""The sentence with which a task refuses its rows, in all that Spark says of a failed task."""


def spark_moments(
    frame: Any,
    *,
    sensitive_features: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    missing_labels: str = "error",
) -> GroupMoments:
    """Moments of a Spark data frame, by group.

    Nothing but moments leaves the executors, which need fairpca too. ``FairPCA.fit_moments`` makes
    the model; ``FairPCA.fit`` does both.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Of a classic session or of Spark Connect.
    sensitive_features : str or sequence of str, default=None
        The column that makes the groups; several make groups of their intersections.
    features : sequence of str, default=None
        The columns to reduce, numeric and without missing values. None takes all numeric ones that
        are not named otherwise.
    sample_weight : str, default=None
        The column with non-negative weights of the rows.
    missing_labels : {"error", "group"}, default="error"
        Whether missing sensitive features are an error or a group of their own.

    Returns
    -------
    GroupMoments

    Raises
    ------
    ValueError
        If a column is lacking, holds text where numbers belong, or has missing values; the sentence
        names the partition.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.sources import spark_moments
    >>> frame = spark.read.parquet("people/")  # doctest: +SKIP
    >>> moments = spark_moments(frame, sensitive_features="sex")  # doctest: +SKIP
    >>> fair = FairPCA(5).fit_moments(moments)  # doctest: +SKIP
    """
    _require_spark(frame)
    from fairpca.sources.columns import Choice

    check_choice("missing_labels", missing_labels, ("error", "group"))
    if any(hasattr(given, "shape") for given in (sensitive_features, sample_weight)):
        raise TypeError(
            "sensitive_features and sample_weight must be names of columns of the data frame."
        )
    columns = Choice.of(features, sensitive_features, sample_weight).columns(_schema(frame))

    def sum_partition(batches: Iterable[Any]) -> Iterator[Any]:
        return _sum_partition(batches, columns, missing_labels)

    sums = _selected(frame, columns.names).mapInArrow(sum_partition, _SENT)
    # By a column and without a number of partitions, so that Spark settles on one by their sizes.
    merged = sums.repartition("task").sortWithinPartitions("task").mapInArrow(_merge, _SENT)
    rows = sorted(_collected(merged), key=lambda row: row.task)
    if not rows:
        raise ValueError("There are no rows, or none with a positive weight.")
    moments = GroupMoments.merge(GroupMoments.from_bytes(bytes(row.moments)) for row in rows)
    check_number_of_groups(len(moments.labels))
    return moments


def spark_transform(fair: Any, frame: Any, *, keep: str | Sequence[str] = ()) -> Any:
    """The rows of a Spark data frame, projected on the components where they lie.

    Nothing is computed until the rows are asked for. ``fair.transform(frame)`` is the same with no
    other columns.

    Parameters
    ----------
    fair : FairPCA
        Fitted to columns with names; these are taken from the data frame.
    frame : pyspark.sql.DataFrame
        Of a classic session or of Spark Connect.
    keep : str or sequence of str, default=()
        Other columns to keep, before the reduced ones.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns to keep, and those that ``fair.get_feature_names_out()`` names.

    Examples
    --------
    >>> from fairpca.sources import spark_transform
    >>> reduced = spark_transform(fair, frame, keep="id")  # doctest: +SKIP
    """
    _require_spark(frame)
    from sklearn.utils.validation import check_is_fitted

    from fairpca.sources.columns import Columns

    check_is_fitted(fair)
    if not hasattr(fair, "feature_names_in_"):
        raise ValueError(
            f"This {type(fair).__name__} was fitted to columns without names, so it is not known "
            "which columns of the data frame they are: fit it to a data frame."
        )
    features = tuple(map(str, fair.feature_names_in_))
    kept = [keep] if isinstance(keep, str) else list(keep)
    made = [str(name) for name in fair.get_feature_names_out()]
    require_columns(check_column_names(frame.columns), [*kept, *features])
    taken = [name for name in made if name.lower() in {name.lower() for name in kept}]
    if taken:
        raise ValueError(f"Columns to keep have names of reduced ones: {listed(taken, 5)}.")
    Columns(features, (), None, False).check(_schema(frame))
    projection: Projection = fair._projection
    needed = list(dict.fromkeys([*kept, *features]))

    def reduce_partition(batches: Iterable[Any]) -> Iterator[Any]:
        return _reduce_partition(batches, needed, features, kept, projection, made)

    from pyspark.sql.types import DoubleType, StructField, StructType

    kinds = {field.name: field for field in frame.schema.fields}
    fields = [kinds[name] for name in kept]
    fields += [StructField(name, DoubleType(), False) for name in made]
    return _selected(frame, needed).mapInArrow(reduce_partition, StructType(fields))


def _sum_partition(batches: Iterable[Any], columns: Any, missing_labels: str) -> Iterator[Any]:
    """One row with the moments of all batches of a partition, or none if it has no rows."""
    from fairpca.sources.blocks import batch_moments

    total = MomentSum()
    with one_blas_thread():  # a task has one core
        for batch in _parts(batches, columns.names):
            total.add(batch_moments(batch, columns, missing_labels))
            check_number_of_groups(total.n_groups)
    if total.n_groups:
        yield _sent(_task(), total.moments())


def _merge(batches: Iterable[Any]) -> Iterator[Any]:
    """One row with the moments of all rows that were sent to this task, or none."""
    total, first = MomentSum(), None
    for batch in batches:
        for task, data in zip(batch.column("task"), batch.column("moments"), strict=True):
            first = task.as_py() if first is None else first
            total.add(GroupMoments.from_bytes(data.as_py()))
    if first is not None:
        yield _sent(first, total.moments())


def _reduce_partition(
    batches: Iterable[Any],
    names: list[str],
    features: tuple[str, ...],
    kept: list[str],
    projection: Projection,
    made: list[str],
) -> Iterator[Any]:
    import pyarrow

    from fairpca.sources.blocks import batch_numbers

    for batch in _parts(batches, names):
        reduced = projection(batch_numbers(batch, features))
        columns = [batch.rows.column(name) for name in kept]
        columns += [pyarrow.array(column) for column in reduced.T]
        yield pyarrow.RecordBatch.from_arrays(columns, names=[*kept, *made])


def _parts(batches: Iterable[Any], names: list[str]) -> Iterator[Any]:
    """The batches of a partition, in parts that are not too large, with names for the columns."""
    import pyarrow

    from fairpca.sources.blocks import Batch
    from fairpca.sources.files import cut

    where, before = f"Partition {_task()}", 0
    for batch in batches:
        for part in cut(pyarrow.RecordBatch.from_arrays(batch.columns, names=names)):
            yield Batch(part, where, before)
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


def _collected(frame: Any) -> list[Any]:
    """The rows of a small data frame; what a task refuses is said in its own words."""
    from pyspark.errors import PythonException

    try:
        rows: list[Any] = frame.collect()
        return rows
    except PythonException as error:
        refusal = _REFUSAL.search(str(error))
        if refusal is None:
            raise
        kind: Callable[[str], Exception] = TypeError if refusal[1] == "TypeError" else ValueError
        raise kind(refusal[2]) from error


def _schema(frame: Any) -> Any:
    """The columns as Arrow has them, as far as it matters which hold numbers."""
    import pyarrow
    from pyspark.sql import types

    def kind(spark: Any) -> Any:
        if isinstance(spark, types.NumericType):
            return pyarrow.float64()
        known = {
            types.BooleanType: pyarrow.bool_(),
            types.NullType: pyarrow.null(),
            types.DateType: pyarrow.date32(),
            types.TimestampType: pyarrow.timestamp("us"),
            types.BinaryType: pyarrow.binary(),
        }
        return known.get(type(spark), pyarrow.string())

    return pyarrow.schema([(field.name, kind(field.dataType)) for field in frame.schema.fields])


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

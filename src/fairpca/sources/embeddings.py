"""Embeddings: vectors in a list column of Parquet or Arrow, with groups in columns beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.moments import GroupMoments
from fairpca.sources.one_pass import read_moments
from fairpca.tables.columns import require_columns


def read_embeddings(
    source: Any,
    vectors: str = "embedding",
    *,
    sensitive_features: str | Sequence[str] | None = None,
    unit_length: bool = False,
    missing_labels: str = "error",
    folds: bool = False,
) -> GroupMoments:
    """Moments of embeddings, by group, in one pass and a batch at a time.

    Parameters
    ----------
    source : path, list of paths, or table
        Files that end in .parquet, .arrow or .feather, or a folder of them; or a Table,
        RecordBatch, RecordBatchReader or Dataset of pyarrow.
    vectors : str, default="embedding"
        The list column, with as many numbers in each row.
    sensitive_features : str or sequence of str, default=None
        The column that makes the groups, such as the language or the topic.
    unit_length : bool, default=False
        Whether each vector is divided by its length.
    missing_labels : {"error", "group", "drop"}, default="error"
        As for `FairPCA`.
    folds : bool, default=False
        Whether each group is kept by fold too, which the default criterion of `FairPCA` needs
        where groups are small.

    Returns
    -------
    GroupMoments

    See Also
    --------
    fairpca.sources.embedding_rows : The vectors themselves, for `transform`.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow
    >>> from fairpca import FairPCA
    >>> from fairpca.sources import embedding_rows, read_embeddings
    >>> vectors = np.random.default_rng(0).normal(size=(300, 8)) * np.arange(8, 0, -1)
    >>> language = ["en"] * 200 + ["sw"] * 100
    >>> table = pyarrow.table({"embedding": list(vectors), "language": language})
    >>> options = {"sensitive_features": "language", "unit_length": True, "folds": True}
    >>> fair = FairPCA(2).fit_moments(read_embeddings(table, **options))
    >>> fair.transform(embedding_rows(table, unit_length=True)).shape
    (300, 2)
    """
    import pyarrow

    given = [sensitive_features] if isinstance(sensitive_features, str) else sensitive_features
    names = list(given or ())

    def tables() -> Iterator[Any]:
        for batch in _batches(source, [vectors, *names]):
            rows = embedding_rows(batch, vectors, unit_length=unit_length)
            columns = {f"{vectors} {j}": column for j, column in enumerate(rows.T)}
            yield pyarrow.table(columns | {name: batch.column(name) for name in names})

    options: dict[str, Any] = {"missing_labels": missing_labels, "folds": folds}
    moments = read_moments(tables(), sensitive_features=names, **options)
    return replace(moments, feature_names=None)


def embedding_rows(table: Any, vectors: str = "embedding", *, unit_length: bool = False) -> Array:
    """The vectors in a list column as an array.

    Parameters
    ----------
    table : Table or RecordBatch of pyarrow
        The rows.
    vectors : str, default="embedding"
        The list column.
    unit_length : bool, default=False
        Whether each vector is divided by its length.

    Returns
    -------
    array of shape (n_rows, n_numbers)

    See Also
    --------
    fairpca.sources.read_embeddings : Their moments.

    Examples
    --------
    >>> import pyarrow
    >>> from fairpca.sources import embedding_rows
    >>> embedding_rows(pyarrow.table({"embedding": [[3.0, 4.0], [0.0, 2.0]]}), unit_length=True)
    array([[0.6, 0.8],
           [0. , 1. ]])
    """
    import pyarrow.compute

    require_columns(table.schema.names, [vectors])
    column = table.column(vectors)
    if isinstance(column, pyarrow.ChunkedArray):
        column = pyarrow.concat_arrays(column.chunks) if column.num_chunks else column
    if "list" not in str(column.type):
        raise ValueError(f"Column {vectors!r} has no lists of numbers, but {column.type}.")
    lengths = np.unique(pyarrow.compute.list_value_length(column).to_numpy(zero_copy_only=False))
    if column.null_count or len(lengths) != 1 or column.flatten().null_count:
        raise ValueError(
            f"Column {vectors!r} must have the same number of values in each row, none missing."
        )
    numbers = np.asarray(column.flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
    rows = numbers.reshape(len(column), int(lengths[0]))
    if not unit_length:
        return rows
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not norms.all():
        raise ValueError(f"Column {vectors!r} has vectors of length 0, which have no direction.")
    unit: Array = rows / norms
    return unit


def _batches(source: Any, names: list[str]) -> Iterator[Any]:
    from fairpca.sources.checkpoints import list_files, stream_batches

    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, list | tuple):
        for file in list_files(paths):
            table = file.open()
            require_columns(table.schema.names, names)
            yield from (batch for batch, _ in table.batches(names) if batch.num_rows)
    else:
        require_columns(source.schema.names, names)
        yield from (batch.select(names) for batch in stream_batches(source))

"""Dask: moments of arrays and data frames that are spread over a cluster, and their transform.

Each partition becomes moments where it lies (of data frames in one task with what reads it), and
moments are merged in a tree: no worker holds many of them, and the client gets one.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite

from fairpca._linalg.projection import Projection
from fairpca._linalg.types import Array
from fairpca.groups import check_number_of_groups, encode_groups
from fairpca.moments import GroupMoments
from fairpca.tables.columns import ColumnChoice, Columns, require_columns
from fairpca.validation import check_rows, check_weights, explain_not_finite, refuse_text_columns

_FAN_IN = 8
"""How many moments are merged in one task."""

_WHERE = "In one of the partitions"


def frame_moments(
    frame: Any, choice: ColumnChoice, missing_labels: str, folds: bool
) -> list[GroupMoments]:
    """Moments of a Dask data frame, in one part or in none if it has no rows."""
    import pandas
    import pyarrow

    if frame.ndim != 2:
        raise ValueError("X is a series of Dask, not a table: pass a data frame.")
    columns = choice.columns(pyarrow.Schema.from_pandas(frame._meta_nonempty, False))
    work = partial(_of_frame, columns=columns, missing_labels=missing_labels, folds=folds)
    options = {"meta": pandas.Series(dtype=object), "enforce_metadata": False}
    # One expression, so that of a file only the columns that are needed are read, and once.
    return _merged_in_a_tree(frame[columns.names].map_partitions(work, **options).to_delayed())


def _of_frame(
    rows: Any, *, columns: Columns, missing_labels: str, folds: bool
) -> GroupMoments | None:
    """Moments of one partition, or None if it has no rows."""
    import pyarrow

    from fairpca.sources.record_batches import sum_batches

    batches = pyarrow.Table.from_pandas(rows, preserve_index=False).to_batches()
    return sum_batches(batches, columns, _WHERE, missing_labels, folds)


def array_moments(
    X: Any, sensitive_features: Any, sample_weight: Any, missing_labels: str, folds: bool
) -> list[GroupMoments]:
    """Moments of a Dask array, in one part or in none if it has no rows.

    Arrays may be chunked along both axes, and lengths of chunks may be unknown.
    """
    import dask

    _check_array(X)
    parts = [_chunks(X)]
    for what, other in (
        ("sensitive_features", sensitive_features),
        ("sample_weight", sample_weight),
    ):
        if other is not None and not is_array(other):
            raise TypeError(
                f"{what} must be a Dask array with the same chunks of rows as X, not a "
                f"{type(other).__name__}: make one of it, for example with dask.array.from_array."
            )
        if other is not None and other.ndim not in (1, 2):
            raise ValueError(
                "sensitive_features must have one or two dimensions and sample_weight one, got "
                f"shape {other.shape}."
            )
        none = [None] * len(parts[0])
        parts.append(none if other is None else _chunks(_in_chunks_of(X, other)))
    work = dask.delayed(partial(_of_array, missing_labels=missing_labels, folds=folds), pure=True)
    return _merged_in_a_tree(list(map(work, *parts)))


def _of_array(
    X: Any, sensitive_features: Any, sample_weight: Any, *, missing_labels: str, folds: bool
) -> GroupMoments | None:
    """Moments of one chunk of rows, or None if it has no rows."""
    n = len(X)
    if n == 0:
        return None
    try:
        groups = encode_groups(sensitive_features, n, missing_labels, may_be_empty=True)
        weights = check_weights(sample_weight, n, may_be_zero=True)
        rows = check_rows(X)
        moments = GroupMoments.from_groups(rows, groups, weights, folds)
        if not moments.is_finite:
            explain_not_finite(rows)
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{_WHERE}: {error}") from error
    return moments


def _merged_in_a_tree(parts: list[Any]) -> list[GroupMoments]:
    """What delayed moments add up to."""
    import dask

    merge = dask.delayed(_merged, pure=True)
    while len(parts) > 1:
        parts = [merge(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    found = parts[0].compute()
    return [] if found is None else [found]


def _merged(parts: list[GroupMoments | None]) -> GroupMoments | None:
    there = [part for part in parts if part is not None]
    if not there:
        return None
    moments = GroupMoments.merge(there)
    check_number_of_groups(len(moments.labels))
    return moments


def transform(fair: Any, X: Any, keep: Sequence[str]) -> Any:
    """The rows of a Dask array or data frame, projected on the components where they lie, lazily.

    A data frame keeps its index and divisions, an array its chunks of rows.
    """
    projection: Projection = fair._projection
    if hasattr(type(X), "divisions"):
        known = list(getattr(fair, "feature_names_in_", [n for n in X.columns if n not in keep]))
        require_columns([str(name) for name in X.columns], [*keep, *known])
        _check_width(fair, len(known))
        refuse_text_columns(X._meta[known])
        names = fair.get_feature_names_out()
        work = partial(_reduced_frame, projection=projection, names=names, known=known, keep=keep)
        X = X[list(dict.fromkeys([*keep, *known]))]
        return X.map_partitions(work, meta=work(X._meta))
    if keep:
        raise ValueError("Columns of a Dask array have no names: pass a Dask data frame.")
    _check_array(X)
    _check_width(fair, X.shape[1])
    work = partial(reduced_rows, projection=projection)
    made = work(np.zeros((0, X.shape[1]), dtype=X.dtype))
    chunks = (X.chunks[0], (fair.n_components_,))
    return X.rechunk({1: -1}).map_blocks(work, chunks=chunks, dtype=made.dtype, meta=made)


def reduced_rows(X: Any, *, projection: Projection) -> Array:
    """The rows of one partition, which may have none, projected on the components."""
    rows = check_rows(X, ensure_min_samples=0)
    assert_all_finite(rows, input_name="X")
    return projection(rows)


def _reduced_frame(
    X: Any, *, projection: Projection, names: Any, known: Sequence[str], keep: Sequence[str]
) -> Any:
    import pandas

    rows = reduced_rows(X[known], projection=projection)
    reduced = pandas.DataFrame(rows, index=X.index, columns=names)
    return pandas.concat([X[list(keep)], reduced], axis="columns") if keep else reduced


def _chunks(array: Any) -> list[Any]:
    """The chunks of rows of an array, with all columns, as delayed objects."""
    whole = array if array.ndim == 1 else array.rechunk({1: -1})
    return list(whole.to_delayed().ravel())


def _in_chunks_of(rows: Any, other: Any) -> Any:
    """The other array, with its rows in the chunks of the rows."""
    lengths = rows.shape[0], other.shape[0]
    if not np.isnan(lengths).any():
        if lengths[0] != lengths[1]:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {[*lengths]}."
            )
        return other if other.chunks[0] == rows.chunks[0] else other.rechunk({0: rows.chunks[0]})
    if rows.numblocks[0] != other.numblocks[0]:
        raise ValueError(
            f"X has {rows.numblocks[0]} chunks of rows and the other has {other.numblocks[0]}, of "
            "unknown lengths: call compute_chunk_sizes() on both."
        )
    return other


def is_array(part: Any) -> bool:
    """Whether this is a Dask array; of the class, as a Delayed has every attribute."""
    return hasattr(type(part), "numblocks") and hasattr(type(part), "chunks")


def _check_array(X: Any) -> None:
    if not is_array(X):
        raise TypeError(f"X must be a Dask array or a Dask data frame, not a {type(X).__name__}.")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: X has rows and columns.")
    if np.isnan(X.shape[1]):
        raise ValueError("The number of columns of X is unknown: call compute_chunk_sizes() on it.")


def _check_width(fair: Any, width: int) -> None:
    if width != fair.n_features_in_:
        raise ValueError(
            f"X has {width} features, but {type(fair).__name__} is expecting "
            f"{fair.n_features_in_} features as input."
        )

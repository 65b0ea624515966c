"""Dask: moments of arrays and data frames that are spread over a cluster, and their transform.

Each partition becomes moments where it lies (of data frames in one task with what reads it), and
moments are merged in a tree: no worker holds many of them, and the client gets one.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite

from fairpca._linalg.projection import Projection
from fairpca._linalg.types import Array
from fairpca.folds import in_folds
from fairpca.groups import check_number_of_groups, encode_groups
from fairpca.moments import GroupMoments
from fairpca.tables.columns import require_columns
from fairpca.validation import (
    check_rows,
    check_same_index,
    check_weights,
    column_names,
    explain_not_finite,
    numeric_columns,
    refuse_text_columns,
)

_FAN_IN = 8
"""How many moments are merged in one task."""


def moments(
    X: Any,
    sensitive_features: Any,
    features: Sequence[str] | None,
    sample_weight: Any,
    keep_sensitive: bool,
    options: tuple[str, bool],
) -> list[GroupMoments]:
    """Moments of a Dask array or data frame, in one part; `read_moments` has the parameters.

    The options are `missing_labels` and `folds`.

    Arrays may be chunked along both axes, and lengths of chunks may be unknown.
    """
    chosen = _chosen(X, sensitive_features, features, sample_weight, keep_sensitive)
    rows, sensitive, weights = chosen
    names = column_names(rows) if _is_frame(rows) else None
    group_names = column_names(sensitive) if _is_frame(sensitive) else None
    work = partial(partition_moments, options=options, names=names, group_names=group_names)
    if all(part is None or _is_frame(part) for part in (rows, sensitive, weights)):
        parts = _over_frames(work, rows, sensitive, weights)
    else:
        parts = _over_arrays(
            work, _as_array(rows), _as_array(sensitive, object), _as_array(weights)
        )
    return [_tree(parts).compute()]


def transform(fair: Any, X: Any, keep: Sequence[str]) -> Any:
    """The rows of a Dask array or data frame, projected on the components where they lie, lazily.

    A data frame keeps its index and divisions, an array its chunks of rows.
    """
    projection: Projection = fair._projection
    if _is_frame(X):
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


def partition_moments(
    X: Any,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    *,
    options: tuple[str, bool],
    names: tuple[str, ...] | None,
    group_names: tuple[str, ...] | None = None,
) -> GroupMoments:
    """Moments of one partition, which may have no rows, or none with weight."""
    missing_labels, folds = options
    try:
        check_same_index(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
        n, d = X.shape
        groups = encode_groups(sensitive_features, n, missing_labels, may_be_empty=True)
        groups = replace(groups, names=group_names or groups.names)
        weights = check_weights(sample_weight, n, may_be_zero=True)
        rows = check_rows(X) if n else np.zeros((0, d))
        groups = groups if n else replace(groups, labels=())
        groups = in_folds(groups, rows) if folds and groups.labels else groups
        moments = GroupMoments.from_groups(rows, groups, weights)
        if not moments.is_finite:
            explain_not_finite(rows)
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"In one of the partitions: {error}") from error
    return replace(moments, feature_names=names)


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


def _chosen(
    X: Any, sensitive: Any, features: Sequence[str] | None, weights: Any, keep_sensitive: bool
) -> tuple[Any, Any, Any]:
    """The rows, the sensitive features and the weights, all as collections or None."""
    if _is_frame(X):
        if X.ndim != 2:
            raise ValueError("X is a series of Dask, not a table: pass a data frame.")
        named = _names(sensitive) + _names(weights)
        require_columns([str(name) for name in X.columns], [*named, *(features or ())])
        if features is not None:
            chosen = list(features)
        elif named:
            others = _names(weights) if keep_sensitive else named
            chosen = [name for name in numeric_columns(X._meta) if name not in others]
        else:
            chosen = list(X.columns)
        if not chosen:
            raise ValueError("X has no numeric columns besides those for groups and weights.")
        rows = X if chosen == list(X.columns) else X[chosen]
        refuse_text_columns(rows._meta)
        if _names(sensitive):
            sensitive = X[_names(sensitive)]
        if isinstance(weights, str):
            weights = X[weights]
    else:
        _check_array(X)
        if _names(sensitive) or _names(weights) or features is not None:
            raise ValueError("Columns of a Dask array have no names: pass a Dask data frame.")
        rows = X
    return rows, _collection("sensitive_features", sensitive), _collection("sample_weight", weights)


def _collection(what: str, part: Any) -> Any:
    if part is None or _is_frame(part) or _is_array(part):
        return part
    raise TypeError(
        f"{what} must be a Dask collection with the same partitions as X, not a "
        f"{type(part).__name__}: make one of it, for example with dask.array.from_array."
    )


def _over_frames(work: Any, rows: Any, *others: Any) -> list[Any]:
    """Moments of each partition of data frames and series, as delayed objects."""
    import dask.dataframe
    import pandas

    for other in others:
        if other is None:
            continue
        known = rows.known_divisions and other.known_divisions
        if rows.npartitions != other.npartitions or (known and rows.divisions != other.divisions):
            raise ValueError(
                "X, sensitive_features and sample_weight must have the same partitions: take them "
                "from one data frame, or repartition() them alike."
            )
    # One expression, so that a file is read once for all of its columns that are needed.
    moments = dask.dataframe.map_partitions(
        work,
        rows,
        *others,
        meta=pandas.Series(dtype=object),
        enforce_metadata=False,
        align_dataframes=False,
    )
    return list(moments.to_delayed())


def _over_arrays(work: Any, rows: Any, *others: Any) -> list[Any]:
    """Moments of each chunk of rows of arrays, as delayed objects."""
    import dask

    parts = [_chunks(rows)]
    for other in others:
        if other is not None and other.ndim not in (1, 2):
            raise ValueError(
                "sensitive_features must have one or two dimensions and sample_weight one, got "
                f"shape {other.shape}."
            )
        none = [None] * len(parts[0])
        parts.append(none if other is None else _chunks(_in_chunks_of(rows, other)))
    return list(map(dask.delayed(work, pure=True), *parts))


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


def _tree(parts: list[Any]) -> Any:
    import dask

    merge = dask.delayed(_merged, pure=True)
    while len(parts) > 1:
        parts = [merge(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    return parts[0]


def _merged(parts: list[GroupMoments]) -> GroupMoments:
    moments = GroupMoments.merge(parts)
    check_number_of_groups(len(moments.labels))
    return moments


def _as_array(part: Any, kind: type = float) -> Any:
    """A data frame or series as an array: of plain numbers or objects, as arrays have no others."""
    return part.astype(kind).to_dask_array() if _is_frame(part) else part


def _is_frame(part: Any) -> bool:
    """Whether this is a data frame or a series; of the class, as a Delayed has every attribute."""
    return hasattr(type(part), "npartitions") and hasattr(type(part), "divisions")


def _is_array(part: Any) -> bool:
    return hasattr(type(part), "numblocks") and hasattr(type(part), "chunks")


def _names(chosen: Any) -> list[str]:
    """The names of columns that these are, if that is what they are."""
    names = [chosen] if isinstance(chosen, str) else chosen
    given = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    return list(names) if given else []


def _check_array(X: Any) -> None:
    if not _is_array(X):
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

"""Columns of a table by their names: those that make the groups, and those that are reduced."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from fairpca._linalg.backends import cluster_library
from fairpca._rows.text import listed

_MOST_NAMES = 5
"""How many names a message lists."""


def table_names(X: Any) -> list[Any] | None:
    """Names of the columns of a table of pandas, Polars or pyarrow; None for anything else."""
    if hasattr(X, "column_names"):  # pyarrow has arrays under "columns"
        return list(X.column_names)
    return list(X.columns) if hasattr(X, "columns") and hasattr(X, "shape") else None


def named_columns(X: Any, sensitive_features: Any) -> tuple[str, ...]:
    """The names, if that is what the sensitive features are, else ().

    A text is a name, and so is each of a list of texts that are all columns of the table. Raises
    ValueError for names that no column of X has.
    """
    given = sensitive_features
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return ()
    if cluster_library(X) is not None:
        return tuple(names)  # which `fairpca.sources` looks up
    columns = table_names(X)
    if columns is None:
        if not isinstance(given, str):
            return ()
        raise ValueError(
            f"sensitive_features={given!r} names a column, but X is no table with names: pass a "
            "data frame (in a pipeline, let the steps before make one with "
            "set_output(transform='pandas')), or the labels themselves."
        )
    absent = [name for name in names if name not in columns]
    repeated = len(set(names)) < len(names)
    if not absent and not repeated:
        return tuple(names)
    if not isinstance(given, str) and (repeated or len(names) == X.shape[0]):
        return ()  # labels, one for each row
    if len(names) > len(columns):
        return ()
    texts = [name for name in columns if isinstance(name, str)]
    near = [n for name in absent for n in get_close_matches(name, texts, _MOST_NAMES)]
    known = listed(near or texts, _MOST_NAMES)
    raise ValueError(
        f"X has no column {listed(absent, _MOST_NAMES)} that sensitive_features could name; "
        f"{'near names are' if near else 'its columns are'} {known}."
    )


def chosen_columns(X: Any, names: Sequence[str]) -> Any:
    """These columns of a table."""
    return X.select(list(names)) if hasattr(X, "column_names") else X[list(names)]


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """A table without these columns, as far as it has them; anything else as it is."""
    columns = table_names(X) if names else None
    there = [name for name in names if columns is not None and name in columns]
    if not there:
        return X
    if hasattr(X, "column_names"):
        return X.select([name for name in X.column_names if name not in there])
    return X.drop(columns=there) if hasattr(X, "iloc") else X.drop(there)

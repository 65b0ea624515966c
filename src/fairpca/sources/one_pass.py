"""read_moments: one pass over a source, in little memory: on all cores here, or on a cluster.

transform_distributed leaves the rows of Dask and Spark where they are.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.backends import cluster_library
from fairpca.groups import MISSING_LABELS, check_number_of_groups, warn_of_alike, warn_of_dropped
from fairpca.moments import GroupMoments, MomentSum
from fairpca.tables.columns import ColumnChoice, quoted
from fairpca.validation import Progress, check_choice


def read_moments(
    source: Any,
    *,
    sensitive_features: Any = None,
    features: Sequence[str] | None = None,
    sample_weight: Any = None,
    keep_sensitive: bool = False,
    missing_labels: str = "error",
    folds: bool = False,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> GroupMoments:
    """Moments of a table that need not fit into memory, by group.

    The source is read once, a batch of rows at a time, while the cores sum those before it. Of what
    is on a cluster, each partition is summed where it lies, and nothing but moments leaves it.
    ``FairPCA.fit_moments`` makes the model; it is that of ``FairPCA.fit`` on all rows.

    Parameters
    ----------
    source : path, list of paths, or table
        Files that end in .parquet, .csv, .csv.gz, .arrow or .feather; folders with such files,
        in subfolders too (names that begin with "." or "_" are left out); a data frame of pandas
        or Polars, also a lazy one; a Table, RecordBatchReader, Dataset or Scanner of pyarrow;
        a DuckDB relation or anything else with ``__arrow_c_stream__``; or an iterable of these.
        Or an array or data frame of Dask, or a data frame of Spark (classic or Connect).
    sensitive_features : str or sequence of str, default=None
        The column that makes the groups; several make groups of their intersections. In CSV files
        labels are text, as nothing there says otherwise, and only an empty cell is missing. Of a
        Dask array it is an array with the same rows.
    features : sequence of str, default=None
        The columns to reduce, numeric and without missing values. None takes all numeric ones of
        the first table that are not named otherwise, and refuses further tables with more, and
        columns of CSV files that nearly are, because of a slip. A warning names the columns that
        are left out because they hold no numbers.
    sample_weight : str, default=None
        The column with non-negative weights of the rows; of a Dask array an array.
    keep_sensitive : bool, default=False
        Whether the sensitive columns that are numeric are among the features where these are not
        named.
    missing_labels : {"error", "group", "drop"}, default="error"
        Whether missing sensitive features are an error or a group of their own, or their rows are
        left out, with a warning.
    folds : bool, default=False
        Whether each group is kept by fold too, which the default criterion of `FairPCA`
        needs where groups are small.
    checkpoint : str or Path, default=None
        A file of moments to keep what has been read of several files, written at least every few
        seconds between files and whenever the pass ends, by an error or Ctrl-C too. A pass that
        finds one goes on from there. Files it has must be there unchanged; further ones may come.
    progress : callable, default=None
        Called as ``progress(what, done, total)``: bytes where the source is files, else rows, with
        a total of 0. Clusters have their own ways to show it.

    Returns
    -------
    GroupMoments

    Raises
    ------
    ValueError
        If a table cannot be read, lacks a column, has other columns than the first, text where
        numbers belong, or missing values; the sentence names the file or the partition.

    See Also
    --------
    fairpca.GroupMoments : What is read.
    fairpca.sources.RowBatches : The rows themselves.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_credit
    >>> from fairpca.sources import read_moments
    >>> credit = load_credit()
    >>> frame = credit.data.assign(group=credit.sensitive_features)
    >>> moments = read_moments(frame, sensitive_features="group")
    >>> fair = FairPCA(3).fit_moments(moments)
    >>> fair.certificate_.status
    'optimal'
    """
    check_choice("missing_labels", missing_labels, MISSING_LABELS)
    paths = (source,) if isinstance(source, str | os.PathLike) else source
    is_files = isinstance(paths, list | tuple) and all(
        isinstance(path, str | os.PathLike) for path in paths
    )
    if checkpoint is not None and not is_files:
        raise ValueError("A checkpoint can only be kept of files.")
    library, given = cluster_library(source), (sensitive_features, sample_weight)
    is_array = library == "dask" and not hasattr(type(source), "divisions")
    if not is_array:
        if any(hasattr(one, "shape") for one in given):
            raise TypeError(
                "sensitive_features and sample_weight must be names of columns of the table: add "
                "their values to it as columns."
            )
        choice = ColumnChoice.of(features, *given, keep_sensitive)
    elif features is not None or any(isinstance(one, str | list | tuple) for one in given):
        raise ValueError("Columns of a Dask array have no names: pass a Dask data frame.")
    options = missing_labels, folds
    if library is None:
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise ImportError(
                "Files and Arrow streams need pyarrow: install `fairpca[files]`."
            ) from error
        from fairpca.sources.checkpoints import read_files, read_stream

        if is_files:
            total = read_files(source, choice, options, checkpoint, progress)
        else:
            total = read_stream(source, choice, options, progress)
    else:
        from fairpca.sources import dask, spark

        if is_array:
            parts = dask.array_moments(source, *given, *options)
        else:
            part_moments: Any = dask.frame_moments if library == "dask" else spark.moments
            parts = part_moments(source, choice, *options)
        total = MomentSum()
        for part in parts:
            total.add(part)
            check_number_of_groups(total.n_groups)
    if total.n_groups == 0:
        raise ValueError("There are no rows, or none with a positive weight and a label.")
    moments = total.moments()
    labels = [label if isinstance(label, tuple) else (label,) for label in moments.labels]
    by_column: Any = zip(*labels, strict=True)
    warn_of_alike(by_column)
    if moments.n_dropped:
        warn_of_dropped(moments.n_dropped, moments.n_dropped + moments.n_rows)
    return moments


def transform_distributed(fair: Any, X: Any, *, keep: str | Sequence[str] = ()) -> Any:
    """The rows of Dask or Spark, projected on the components where they lie.

    Nothing is computed until the rows are asked for. ``fair.transform(X)`` is the same with no
    other columns.

    Parameters
    ----------
    fair : FairPCA
        Fitted. Columns of data frames are taken by the names that they had at the fit.
    X : array or data frame of Dask, or data frame of Spark
        Of Spark, of a classic session or of Spark Connect.
    keep : str or sequence of str, default=()
        Other columns of a data frame to keep, before the reduced ones.

    Returns
    -------
    array or data frame, of the same library
        Of a data frame, the columns to keep and those that ``fair.get_feature_names_out()`` names.

    See Also
    --------
    fairpca.sources.read_moments : Reads what `FairPCA.fit_moments` takes.

    Examples
    --------
    >>> import dask.dataframe
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_credit
    >>> from fairpca.sources import transform_distributed
    >>> credit = load_credit()
    >>> frame = dask.dataframe.from_pandas(credit.data.assign(group=1), npartitions=4)
    >>> fair = FairPCA(2).fit(credit.data, sensitive_features=credit.sensitive_features)
    >>> list(transform_distributed(fair, frame, keep="group").columns)
    ['group', 'fairpca0', 'fairpca1']
    """
    library = cluster_library(X)
    if library is None:
        raise TypeError(f"X must be of Dask or Spark, not a {type(X).__name__}.")
    check_is_fitted(fair)
    kept = [keep] if isinstance(keep, str) else list(keep)
    lower = {name.lower() for name in kept}  # Spark does not tell them apart
    taken = [name for name in map(str, fair.get_feature_names_out()) if name.lower() in lower]
    if taken:
        raise ValueError(f"Columns to keep have names of reduced ones: {quoted(taken)}.")
    from fairpca.sources import dask, spark

    return (dask if library == "dask" else spark).transform(fair, X, kept)

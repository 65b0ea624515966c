"""transform_distributed: a transform that leaves the rows of Dask and Spark where they are."""

from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.library import cluster_library
from fairpca.tables.columns import quoted


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

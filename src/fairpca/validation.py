"""Checks of the user's input, made before any work."""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import validate_data

from fairpca._linalg.backends import (
    CLUSTER_LIBRARIES,
    cluster_library,
    device_library,
    namespace,
    to_host,
)
from fairpca._linalg.types import Array
from fairpca.text import listed

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""

_ARROW_NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool", "decimal", "null")
"""How the names of pyarrow's types of numbers begin; those without any value are taken for one."""

MISSING_VALUES = ("error", "mean")
"""What may become of missing values."""

_ACCEPT: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
}


def check_choice(name: str, value: object, known: Sequence[object]) -> None:
    """Raise ValueError unless the value is one of the known ones."""
    if isinstance(value, np.ndarray) or value not in known:
        raise ValueError(f"{name} must be one of {listed(known)}, got {value!r}.")


def check_flag(name: str, value: object) -> None:
    """Raise ValueError unless this is True or False."""
    if not (value is True or value is False or isinstance(value, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def check_seed(random_state: object) -> None:
    """Raise ValueError unless this is None or a seed."""
    check_whole_number("random_state", random_state, least=0, optional=True)


def check_whole_number(name: str, value: object, *, least: int = 1, optional: bool = False) -> None:
    """Raise ValueError unless this is an integer of at least so much, or an optional None."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not ((optional and value is None) or (whole and int(value) >= least)):  # type: ignore[call-overload]
        kind = "None or an integer" if optional else "an integer"
        raise ValueError(f"{name} must be {kind} of at least {least}, got {value!r}.")


def check_components(n: object, *, optional: bool = False) -> None:
    """Raise ValueError unless this is an integer of at least 1 or a share, or an optional None."""
    whole, number = isinstance(n, Integral) and not isinstance(n, bool), isinstance(n, Real)
    known = n >= 1 if whole else number and 0.0 < n < 1.0  # type: ignore[operator]
    if not ((optional and n is None) or known):
        kinds = "None, an integer of at least 1, or" if optional else "an integer of at least 1, or"
        raise ValueError(
            f"n_components must be {kinds} a share strictly between 0 and 1, got {n!r}."
        )


def check_number(name: str, value: object, *, least: float) -> None:
    """Raise ValueError unless this is a finite number of at least so much."""
    if not (isinstance(value, Real) and least <= float(value) < np.inf):
        raise ValueError(f"{name} must be a number of at least {least:g}, got {value!r}.")


def check_progress(progress: object) -> None:
    """Raise ValueError unless this is None or can be called."""
    if progress is not None and not callable(progress):
        raise ValueError(f"progress must be None or a function to call, got {progress!r}.")


def import_pandas() -> Any:
    """Return pandas, or say which extra brings it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "Data frames need pandas: install `fairpca[frames]`, or ask for arrays "
            "(as_frame=False, to_dict())."
        ) from error
    return pandas


def check_rows(
    X: Any,
    estimator: Any = None,
    *,
    reset: bool = True,
    ensure_min_samples: int = 1,
    finite: bool | str = False,
) -> Any:
    """Return X as a float array or CSR matrix; with an estimator, check or record its columns.

    Whether the values are finite is checked only if asked for: moments show it, which saves a pass
    over the data (see `explain_not_finite`). With "allow-nan" only infinite ones are refused.
    """
    frame, names, rows = False, None, X
    if type(X) is not np.ndarray:
        refuse_distributed(X)
        refuse_anndata(X)
        if hasattr(X, "collect"):
            raise ValueError("X is a lazy frame: call its collect() first.")
        if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
            if getattr(estimator, "missing_values", "error") == "error":
                raise ValueError("X has masked values: fill them in or leave those rows out.")
            X = rows = np.ma.filled(X.astype(np.float64), np.nan)
        if hasattr(X, "iloc") and hasattr(X, "columns"):
            frame = set(X.dtypes) == {np.dtype(float)}
            names = column_names(X) if frame else None
            rows = X.to_numpy() if names else X
    if getattr(X, "shape", None) == (0, 0):
        raise ValueError("X is empty: it has no rows and no columns.")
    accept = {"ensure_min_samples": ensure_min_samples, "ensure_all_finite": finite, **_ACCEPT}
    plain = type(rows) is np.ndarray and rows.ndim == 2 and rows.dtype == np.float64
    if reset and not finite and plain and len(rows) >= ensure_min_samples and rows.shape[1] > 0:
        # scikit-learn has nothing to find fault with, and takes a twentieth of a fit to see that.
        if estimator is not None:
            set_columns(estimator, rows.shape[1], names)
        return rows
    if frame:
        # Of the frame scikit-learn only sees names: it takes ten times as long to find the numbers.
        if estimator is not None:
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        return check_array(X.to_numpy(), estimator=estimator, input_name="X", **accept)
    refuse_text_columns(X)
    try:
        if estimator is None:
            return check_array(X, **accept)
        return validate_data(estimator, X, reset=reset, **accept)
    except (TypeError, OverflowError) as error:
        if not any(text in str(error) for text in ("float", "Cannot cast")):
            raise
        raise type(error)(f"X must be a table of numbers: {error}.") from error


def check_device_rows(
    X: Any,
    name: str = "FairPCA",
    n_features: int | None = None,
    *,
    at_least: int = 1,
    finite: bool = False,
) -> Any:
    """Rows as a two-dimensional array in float32 or float64, without their history."""
    X = X.detach() if hasattr(X, "detach") else X
    if getattr(X, "is_sparse", False):
        raise ValueError("X is a sparse tensor: pass its to_dense(), or a SciPy sparse matrix.")
    xp = namespace(X)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got an array with {X.ndim} dimensions instead.")
    n, d = X.shape
    if n < at_least or d < 1:
        raise ValueError(
            f"Found array with {n} sample(s) and {d} feature(s) while a minimum of {at_least} "
            f"sample(s) and 1 feature is required by {name}."
        )
    if n_features is not None and d != n_features:
        raise ValueError(f"X has {d} features, but {name} is expecting {n_features} features.")
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("Complex data not supported.")
    if X.dtype not in (xp.float32, xp.float64):
        # Half precision has too few digits for means, and integers have no fractions.
        X = xp.astype(X, xp.float32 if xp.isdtype(X.dtype, "real floating") else xp.float64)
    # The sum first: it needs no memory, and is finite unless a value is not, or numbers are huge.
    if finite and not bool(xp.isfinite(xp.sum(X))) and not bool(xp.all(xp.isfinite(X))):
        raise ValueError("Input X contains NaN or infinity.")
    return X


def column_names(X: Any) -> tuple[str, ...] | None:
    """Names of a data frame's columns when all are strings, else None."""
    names = tuple(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def explain_not_finite(X: Any, estimator: Any = None) -> None:
    """Raise the error that says why the moments of X are not finite."""
    name = None if estimator is None else type(estimator).__name__
    known = {} if estimator is None else estimator.get_params(deep=False)
    if device_library(X) is not None:
        check_device_rows(X, finite=True)
    else:
        values = X.data if hasattr(X, "toarray") else X
        if known.get("missing_values") == "error" and np.isnan(values).any():
            raise ValueError(
                f"Input X contains NaN. {name}(missing_values='mean') takes the means of columns "
                "for missing values; or fill them in before, or leave those rows out."
            )
        with np.errstate(invalid="ignore"):  # infinities of both signs
            assert_all_finite(values, estimator_name=name, input_name="X")
    raise ValueError("X has values that are too large to be squared: rescale its columns.")


def check_same_index(X: Any, *, called: str = "X", **others: Any) -> None:
    """Raise ValueError if two of pandas' objects have rows of different names, or another order.

    What is taken by position would silently belong to other rows.
    """
    if not (hasattr(X, "iloc") and hasattr(X, "reindex")):
        return
    index = X.index
    for name, given in others.items():
        for part in given.values() if isinstance(given, dict) else (given,):
            other = part.index if hasattr(part, "iloc") and hasattr(part, "reindex") else None
            if other is None or len(other) != len(index) or index.equals(other):
                continue  # lengths that differ are refused with all others
            unordered = len(index.intersection(other)) == len(index)
            raise ValueError(
                f"{called} and {name} have different pandas indexes: "
                + (
                    f"the same labels in another order; pass {name}.loc[{called}.index]."
                    if unordered
                    else f"if their rows are in the same order, pass {name}.to_numpy(); otherwise "
                    "bring both to the same rows first."
                )
            )


def check_weights(
    sample_weight: ArrayLike | None, n_rows: int, *, may_be_zero: bool = False
) -> Array | None:
    """Return the weights as a float64 array, or None; of a part of the rows all may be zero."""
    if sample_weight is None:
        return None
    given = sample_weight if device_library(sample_weight) is None else to_host(sample_weight)
    try:
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must be one number for each row: {error}.") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
    if not np.isfinite(weights).all():
        raise ValueError("Input sample_weight contains NaN or infinity.")
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise ValueError("sample_weight has values too large to be summed: rescale it.")
        squares = np.square(weights[weights > 0])
    if not np.isfinite(squares.sum()) or (squares < np.finfo(float).tiny).any():
        raise ValueError(
            "sample_weight has values too large or too small to be squared: rescale it, and make "
            "those 0 that are next to nothing."
        )
    if not (may_be_zero or (weights > 0).any()):
        raise ValueError("sample_weight is zero for every row: at least one must be positive.")
    return weights


def refuse_distributed(X: Any) -> None:
    """Raise TypeError for what is spread over a cluster: to make an array of it would gather it."""
    library = cluster_library(X)
    if library is not None:
        raise TypeError(
            f"X is a {type(X).__name__} of {CLUSTER_LIBRARIES[library]}, which only fit, transform "
            "and fit_transform of FairPCA leave where it is: bring its rows here first if they are "
            "few."
        )


def refuse_anndata(X: Any, key: Any = None) -> None:
    """Raise TypeError for cells with annotations, of which an estimator takes the matrix alone."""
    if hasattr(X, "obsm") and hasattr(X, "varm"):
        shown = repr(key) if isinstance(key, str | list | tuple) else "'batch'"
        raise TypeError(
            f"X is an AnnData: write fairpca.pp.pca(adata, key={shown}) to fit it, or "
            f"fairpca.pp.audit(adata, key={shown}) to judge the PCA that it has."
        )


def set_columns(estimator: Any, n_features: int, names: Sequence[str] | None) -> None:
    """Set number and names of an estimator's columns, as scikit-learn does."""
    estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def refuse_text_columns(X: Any) -> None:
    """Raise ValueError if columns hold no numbers."""
    names: list[Any] = []
    if hasattr(X, "dtypes") and hasattr(X, "columns"):  # a data frame of pandas or Polars
        for j, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
            plain = str(dtype) != "object" or not any(_is_text(value) for value in X.iloc[:, j])
            names += [name] * (not (plain and _is_numeric(dtype)))
    elif hasattr(X, "schema") and hasattr(X, "column_names"):  # a table of pyarrow
        names = [one.name for one in X.schema if not str(one.type).startswith(_ARROW_NUMBERS)]
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "mM":
        names = list(range(X.shape[1]))  # dates would be taken for numbers of nanoseconds
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUS":
        # Only text is refused here; for other objects scikit-learn has its own words.
        names = [j for j in range(X.shape[1]) if any(_is_text(value) for value in X[:, j])]
    if names:
        raise ValueError(
            f"X has non-numeric columns: {listed(names, 5)}. Encode them as numbers "
            "(for example with OneHotEncoder) or leave them out."
        )


def _is_numeric(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # Polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    # An object column may hold numbers; the conversion will tell.
    kind = getattr(dtype, "kind", "O")
    return kind in "biufc" or str(dtype) == "object"


def _is_text(value: Any) -> bool:
    if not isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False

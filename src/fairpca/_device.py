"""Arrays of PyTorch and CuPy, which may live on a GPU.

Neither library is imported here: an object of one of them shows that by the module of its class.
What is done with them is what the array API standard has, by array-api-compat.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LIBRARIES = ("torch", "cupy")


def device_library(X: Any) -> str | None:
    """The module among `LIBRARIES` that the class of X is from, or None."""
    root = type(X).__module__.partition(".")[0]
    return root if root in LIBRARIES else None


def namespace(X: Any) -> Any:
    """The array API's functions for X, or the extra that brings them."""
    try:
        from array_api_compat import array_namespace
    except ImportError as error:
        raise ImportError(
            "Arrays of PyTorch and CuPy need array-api-compat: install `fairpca[gpu]`, or pass "
            "NumPy arrays."
        ) from error
    return array_namespace(X)


def is_cpu(array: Any) -> bool:
    """Whether a device array lies in the CPU's memory."""
    return "cpu" in str(array.device).lower()


def to_host(array: Any) -> NDArray[Any]:
    """The NumPy array of a device array."""
    if hasattr(array, "detach"):  # PyTorch
        host: NDArray[Any] = array.detach().cpu().numpy()
        return host
    return array.get() if hasattr(array, "get") else np.asarray(array)


def to_device(array: Any, like: Any) -> Any:
    """A NumPy array beside another, in its precision."""
    xp = namespace(like)
    return xp.asarray(np.ascontiguousarray(array), dtype=like.dtype, device=like.device)


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
    if finite and not bool(xp.all(xp.isfinite(X))):
        raise ValueError("Input X contains NaN or infinity.")
    return X

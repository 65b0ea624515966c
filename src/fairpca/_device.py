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


def to_host(array: Any) -> NDArray[Any]:
    """The NumPy array of a device array."""
    if hasattr(array, "detach"):  # PyTorch
        host: NDArray[Any] = array.detach().cpu().numpy()
        return host
    return array.get() if hasattr(array, "get") else np.asarray(array)


def to_device(array: Any, like: Any, dtype: Any = None) -> Any:
    """A NumPy array, or one of the same library, beside another."""
    xp = namespace(like)
    return xp.asarray(array, dtype=dtype, device=like.device)


def check_device_rows(X: Any, at_least: int = 1) -> Any:
    """Rows as a two-dimensional array of floating point numbers, without their history."""
    X = X.detach() if hasattr(X, "detach") else X
    xp = namespace(X)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got an array with {X.ndim} dimensions instead.")
    n, d = X.shape
    if n < at_least or d < 1:
        raise ValueError(
            f"Found array with {n} sample(s) and {d} feature(s) (shape={tuple(X.shape)}) while a "
            f"minimum of {at_least} and 1 is required."
        )
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("Complex data not supported.")
    if X.dtype not in (xp.float32, xp.float64):
        # Half precision has too few digits for means; integers have no fractions.
        X = xp.astype(X, xp.float64 if not xp.isdtype(X.dtype, "real floating") else xp.float32)
    return X

"""Whose array is this? PyTorch and CuPy may keep it on a GPU, Dask and Spark on a cluster.

None of these libraries is imported here: an object shows where it is from by the module of its
class. What is done with arrays on a device is what the array API standard has, by array-api-compat.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

DEVICE_LIBRARIES = ("torch", "cupy")
"""Modules whose arrays may live on a GPU."""

CLUSTER_LIBRARIES = {"dask": "Dask", "pyspark": "Spark"}
"""Modules whose objects may be spread over a cluster, and what a user calls them."""


def device_library(X: Any) -> str | None:
    """The module among `DEVICE_LIBRARIES` that the class of X is from, or None."""
    root = type(X).__module__.partition(".")[0]
    return root if root in DEVICE_LIBRARIES else None


def cluster_library(X: Any) -> str | None:
    """The one of `CLUSTER_LIBRARIES` that the class of X or one of its bases is from, or None."""
    roots = {base.__module__.partition(".")[0] for base in type(X).__mro__}
    return next((name for name in CLUSTER_LIBRARIES if name in roots), None)


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

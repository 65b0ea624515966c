"""Whose array is this, and what is done with arrays whoever's they are.

PyTorch and CuPy may keep an array on a GPU, Dask and Spark on a cluster. None of these libraries is
imported here: an object shows where it is from by the module of its class. What is done with arrays
on a device is what the array API standard has, by array-api-compat.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.threads import threads_for

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


class Backend:
    """Small and tall arrays of the library that a matrix lives in: here those of NumPy.

    In every library they can be cut by columns, assigned to, transposed, added and multiplied with
    ``@``. Only `put` and `host` lead from NumPy to the library and back. Eigenvalues come largest
    first.
    """

    xp: Any = np

    put: Callable[[NDArray[Any]], Any] = staticmethod(np.asarray)
    """A NumPy array in this library."""

    host: Callable[[Any], NDArray[Any]] = staticmethod(np.asarray)
    """An array of this library as a NumPy array."""

    def empty(self, d: int, width: int) -> Any:
        """A tall array to be written into."""
        return np.empty((d, width), order="F")

    def zeros(self, *shape: int) -> Any:
        """Zeros to be written into, in double precision."""
        return np.zeros(shape)

    def double(self, rows: Any) -> Any:
        """Rows in double precision."""
        return rows.astype(np.float64, copy=False)

    def products(self, rows: Any, out: Any) -> Any:
        """``rows^T rows``, in the memory that is given."""
        return np.matmul(rows.T, rows, out=out)

    def image(self, matrix: Any, block: Any) -> Any:
        """The product of a symmetric matrix with a tall block."""
        # Transposed it takes two thirds of the time: then BLAS does not copy the matrix first.
        return (block.T @ matrix).T

    def qr(self, block: Any) -> tuple[Any, NDArray[Any]]:
        """Orthonormal columns, and the triangle as a NumPy array."""
        # NumPy's QR, not SciPy's: each has its own threads, and taking turns makes both wait.
        with threads_for(block.shape[1]):
            columns, triangle = self.xp.linalg.qr(block)
        return columns, self.host(triangle)

    def orthonormal(self, block: NDArray[Any]) -> NDArray[Any]:
        """An orthonormal basis, as a NumPy array, of the columns' span."""
        return self.host(self.xp.linalg.qr(self.put(block))[0])

    def complement(self, basis: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Orthonormal bases, as NumPy arrays, of the columns' span and of what is orthogonal."""
        columns = self.host(self.xp.linalg.qr(self.put(basis), mode="complete")[0])
        r = basis.shape[1]
        return columns[:, :r], columns[:, r:]

    def eigh(self, matrix: Any) -> tuple[NDArray[Any], Any]:
        """All eigenvalues, largest first, as a NumPy array, and their eigenvectors."""
        values, vectors = np.linalg.eigh(matrix)
        return values[::-1], np.ascontiguousarray(vectors[:, ::-1])


NUMPY = Backend()

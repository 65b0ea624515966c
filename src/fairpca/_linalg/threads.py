"""How many threads BLAS uses.

The threads of a small matrix product or eigenproblem save little time, and wait for each other
again and again. If another process keeps a core busy, each wait takes as long as the system lets
that one run, and a fit a hundred times as long as with one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any, ClassVar, TypeVar

from threadpoolctl import ThreadpoolController  # comes with scikit-learn

_FEW_COLUMNS = 1024
"""Matrices of at most this many rows and columns are small: their eigenproblems take two thirds of
the time with two threads on two idle cores, and many times as long beside a busy process."""


Result = TypeVar("Result")


def blas_threads() -> int:
    """How many threads BLAS may use."""
    return max((info["num_threads"] for info in _blas().info()), default=1)


def threads_for(n_columns: int) -> AbstractContextManager[None]:
    """Let matrices of this size be computed with by one thread if they are small."""
    return one_blas_thread() if n_columns <= _FEW_COLUMNS else nullcontext()


def in_threads(
    function: Callable[[Any], Result], items: Iterable[Any], n_threads: int | None = None
) -> list[Result]:
    """What a function makes of each item, on all cores, each with one thread of BLAS."""
    n_threads = blas_threads() if n_threads is None else n_threads
    if n_threads == 1:
        return list(map(function, items))
    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, items))


class _Limit:
    """How many bodies of `one_blas_thread` are being run, and the threads that there were before.

    The controller has a limit of its own, which takes as long as a small eigenproblem.
    """

    lock = Lock()
    users = 0
    before: ClassVar[list[tuple[Any, int]]] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let matrix products in the body use one thread each.

    The limit holds for the whole process, from the first body that begins to the last that ends.
    """
    with _Limit.lock:
        if _Limit.users == 0:
            _Limit.before = [(blas, blas.num_threads) for blas in _blas().lib_controllers]
            for blas, _ in _Limit.before:
                _set_threads(blas, 1)
        _Limit.users += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.users -= 1
            if _Limit.users == 0:
                for blas, n_threads in _Limit.before:
                    _set_threads(blas, n_threads)


def _set_threads(blas: Any, n_threads: int) -> None:
    """Set the number of a library's threads, from whatever thread of Python.

    Recent controllers of OpenBLAS listen to the first thread that sets a number only, so that a
    limit that another thread ends would stay.
    """
    release = getattr(blas, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    blas.set_num_threads(n_threads)
    if release is not None:
        release(force=True)


@cache
def _blas() -> ThreadpoolController:
    # Made once: it looks through all libraries of the process.
    return ThreadpoolController().select(user_api="blas")

"""Threads of BLAS: one for small matrices, and as many as before for all else."""

from threading import Event, Thread

import numpy as np
import pytest

from fairpca import FairPCA
from fairpca._linalg import threads
from fairpca._linalg.threads import blas_threads, one_blas_thread, threads_for


@pytest.fixture
def usual():
    """Two threads, if BLAS has more than one."""
    with threads._blas().limit(limits=2, user_api="blas"):
        yield blas_threads()


def test_small_matrices_are_for_one_thread(usual):
    with threads_for(60):
        assert blas_threads() == 1
        with one_blas_thread():  # inside another
            assert blas_threads() == 1
        assert blas_threads() == 1
    assert blas_threads() == usual
    with threads_for(3000):
        assert blas_threads() == usual


def test_the_limit_ends_with_an_error(usual):
    with pytest.raises(ZeroDivisionError), threads_for(60):
        raise ZeroDivisionError
    assert blas_threads() == usual


def test_a_fit_solves_with_one_thread_and_leaves_the_others(usual, monkeypatch):
    seen = []
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda a: (seen.append(blas_threads()), eigh(a))[1])
    X = np.random.default_rng(0).normal(size=(200, 6))
    FairPCA(2, criterion="minmax").fit(X, sensitive_features=np.arange(200) % 2)
    assert set(seen) == {1}
    assert blas_threads() == usual


def test_the_last_of_several_threads_ends_the_limit(usual):
    entered, leave, seen = Event(), Event(), []

    def other():
        with one_blas_thread():
            entered.set()
            leave.wait(10)
            seen.append(blas_threads())

    thread = Thread(target=other)
    with one_blas_thread():
        thread.start()
        assert entered.wait(10)
    leave.set()
    thread.join()
    assert seen == [1]
    assert blas_threads() == usual


def test_a_thread_limits_after_another_did(usual):
    with one_blas_thread():
        pass
    seen = []

    def other():
        with one_blas_thread():
            seen.append(blas_threads())

    thread = Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [1]
    assert blas_threads() == usual

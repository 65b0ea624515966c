"""Semidefinite programs: which solvers there are, and what becomes of their failures."""

import warnings
from typing import Any

BACKENDS = ("auto", "clarabel", "scs")

_CLARABEL_SIDE = 60
"""Up to this side of a matrix the interior-point solver is the quicker and more exact one."""


def import_cvxpy() -> Any:
    """Return cvxpy, or say which extra brings it."""
    try:
        import cvxpy
    except ImportError as error:
        raise ImportError("Semidefinite programs need cvxpy: install `fairpca[sdp]`.") from error
    return cvxpy


def choose_backend(backend: str, side: int) -> str:
    """The solver for programs whose largest matrix has this side."""
    if backend != "auto":
        return backend
    return "clarabel" if side <= _CLARABEL_SIDE else "scs"


def run_program(program: Any, backend: str, **options: Any) -> None:
    """Run a program of cvxpy; a breakdown of its solver is a RuntimeError.

    How accurate the result is, the caller has to measure: no warning says so.
    """
    cvxpy = import_cvxpy()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            program.solve(solver=backend.upper(), **options)
    except cvxpy.error.SolverError as error:
        raise failure(backend, "it broke down") from error


def failure(backend: str, reason: str) -> RuntimeError:
    """The error for a program that was not solved."""
    other = "scs" if backend == "clarabel" else "clarabel"
    return RuntimeError(
        f"The solver {backend!r} did not solve the semidefinite program ({reason}): try "
        f"backend={other!r} or other parameters."
    )

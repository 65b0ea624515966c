"""What solvers of many steps share: how they report progress, and how they end."""

import warnings
from collections.abc import Callable
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from fairpca.validation import check_number, check_whole_number

Progress = Callable[..., bool]
"""Called after each step of a solver, by name with what it has to say of it, such as the best
`bound` and `value` so far; returns whether to stop."""


def check_stopping(tol: object, max_iter: object) -> None:
    """Raise ValueError unless these are a tolerance and a number of steps."""
    check_number("tol", tol, least=0.0)
    check_whole_number("max_iter", max_iter)


def iterate(solver: Any, step: Callable[[], float], unit: float, progress: Progress | None) -> str:
    """Take steps, each of which returns the gap that is left; returns why they ended.

    The solver has a `name`, at most `max_iter` steps, and a tolerance `tol`, relative to the unit.
    """
    gap = 0.0
    for _ in range(solver.max_iter):
        gap = step()
        if gap <= solver.tol * unit:
            return "duality gap closed"
        if progress is not None and progress():
            return "stopped by a callback"
    warnings.warn(
        f"The solver {solver.name!r} used all its steps with a duality gap of {gap / unit:.1g} of "
        "the total variance left: raise max_iter, or tol to accept it.",
        ConvergenceWarning,
        stacklevel=5,
    )
    return "most steps reached"

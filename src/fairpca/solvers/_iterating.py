"""What solvers of many steps share: how they report progress, and how they end."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from sklearn.exceptions import ConvergenceWarning

from fairpca._rows.checks import check_number, check_whole_number

Progress = Callable[[], bool]
"""Called after each step of a solver; returns whether to stop."""

CLOSED, STOPPED, TOO_MANY = "duality gap closed", "stopped by a callback", "most steps reached"


def check_stopping(tol: object, max_iter: object) -> None:
    """Raise ValueError unless these are a tolerance and a number of steps."""
    check_number("tol", tol, least=0.0)
    check_whole_number("max_iter", max_iter)


def warn_if_unfinished(name: str, message: str, gap: float, unit: float) -> None:
    """Warn that the steps did not suffice."""
    if message == TOO_MANY:
        warnings.warn(
            f"The solver {name!r} used all its steps with a duality gap of {gap / unit:.1g} of the "
            "total variance left: raise max_iter, or tol to accept it.",
            ConvergenceWarning,
            stacklevel=5,
        )

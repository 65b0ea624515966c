"""Options of a front, and what they may be."""

from __future__ import annotations

from collections.abc import Callable

from fairpca._rows.checks import check_whole_number

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


def check_n_points(n_points: object) -> None:
    """Raise ValueError unless this is an integer of at least 2."""
    check_whole_number("n_points", n_points)
    if n_points == 1:
        raise ValueError("n_points must be at least 2: the two ends of the front.")


def check_progress(progress: object) -> None:
    """Raise ValueError unless this is None or can be called."""
    if progress is not None and not callable(progress):
        raise ValueError(f"progress must be None or a function to call, got {progress!r}.")

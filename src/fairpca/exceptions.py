"""Warnings of this library."""

import sys
import warnings

_NOT_THE_USER = {"fairpca", "sklearn"}
"""Packages whose lines no warning should point at."""


class FairnessWarning(UserWarning):
    """The result is not quite what was asked for, or should be read with care.

    See Also
    --------
    fairpca.Certificate : What is proven, also where a fit warns.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     fair = FairPCA(1).fit(np.eye(3))  # without groups
    >>> said[0].category.__name__
    'FairnessWarning'
    """


def warn_user(message: str) -> None:
    """Give a `FairnessWarning` that points at the line that called this library."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _NOT_THE_USER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, FairnessWarning, stacklevel=level)

"""Which kinds of fairness there are to choose from, and which choices go together."""

from numbers import Real
from typing import Any

import numpy as np

from fairpca._rows.checks import check_choice, check_number
from fairpca._rows.words import CRITERIA, MEASURES

LOSSES = ("mean", "sum")
CENTERINGS = ("global", "group")


def check_fairness(
    criterion: str,
    tolerance: float,
    measure: str,
    relative: bool,
    bounds: Any,
    max_extra_loss: float | None,
) -> None:
    """Raise ValueError for choices that are wrong, or that do not go together."""
    check_choice("criterion", criterion, CRITERIA)
    check_choice("measure", measure, MEASURES)
    check_number("tolerance", tolerance, least=0.0)
    if not isinstance(relative, bool | np.bool_):
        raise ValueError(f"relative must be True or False, got {relative!r}.")
    if max_extra_loss is not None:
        if isinstance(max_extra_loss, bool) or not isinstance(max_extra_loss, Real):
            raise ValueError(f"max_extra_loss must be a number, got {max_extra_loss!r}.")
        check_number("max_extra_loss", max_extra_loss, least=0.0)
    if criterion == "minmax" and float(tolerance) != 0.0:
        raise ValueError(
            f"tolerance={tolerance!r} is how far from equal groups may be: it needs "
            "criterion='equal'."
        )
    if bounds is not None and max_extra_loss is not None:
        raise ValueError("bounds and max_extra_loss cannot both be given: choose one.")
    if criterion == "equal" and not (bounds is None and max_extra_loss is None):
        name = "max_extra_loss" if bounds is None else "bounds"
        raise ValueError(f"{name} needs criterion='minmax', got criterion='equal'.")

"""Numbers that a user gives for each group."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.text import label_text, listed


def per_group(
    labels: Sequence[Hashable],
    name: str,
    given: Any,
    names: Sequence[str] | None = None,
    others: float | None = None,
) -> Array:
    """One non-negative number for each group, from a number, a sequence or a mapping by label.

    `names` are those of the sensitive columns, for the message where one is missing; `others` is
    the number of groups that a mapping leaves out, if it may.
    """
    if isinstance(given, Mapping):
        if others is not None:
            given = dict.fromkeys(labels, others) | dict(given)
        if set(given) != set(labels):
            missing = [label_text(label, names) for label in labels if label not in given]
            unknown = [key for key in given if key not in labels]
            wrong = [f"missing: {listed(missing, 5)}"] if missing else []
            wrong += [f"unknown: {listed(unknown, 5)}"] if unknown else []
            each = (
                "entries for groups that there are"
                if others is not None
                else "one entry for each group"
            )
            raise ValueError(f"{name} must have {each}; {'; '.join(wrong)}.")
        given = [given[label] for label in labels]
    try:
        numbers = np.broadcast_to(np.asarray(given, dtype=np.float64), (len(labels),)).copy()
    except (TypeError, ValueError):
        numbers = np.full(len(labels), np.nan)
    if not (numbers >= 0.0).all():
        raise ValueError(
            f"{name} must be a number of at least 0, or one for each of the {len(labels)} groups "
            f"(by label, or in the order of the sorted labels), got {given!r}."
        )
    return numbers

"""Numbers that a user gives for each group."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca._rows.labels import canonical
from fairpca._rows.text import label_text, listed


def per_group(
    labels: Sequence[Hashable],
    name: str,
    given: Any,
    names: Sequence[str] | None = None,
    others: float | None = None,
) -> Array:
    """One non-negative number for each group, from a number, a sequence or a mapping by label.

    A mapping, or a pandas Series, has labels or the texts that groups are shown by. `names` are
    those of the sensitive columns; `others` is the number of groups that it leaves out, if it may.
    """
    if hasattr(given, "to_dict") and hasattr(given, "index"):
        given = given.to_dict()
    if isinstance(given, Mapping):
        shown: dict[Hashable, Hashable] = {label_text(label, names): label for label in labels}
        known = ((canonical(key), number) for key, number in given.items())
        given = {key if key in labels else shown.get(key, key): number for key, number in known}
        if others is not None:
            given = dict.fromkeys(labels, others) | given
        if set(given) != set(labels):
            missing = [label_text(label, names) for label in labels if label not in given]
            unknown = [key for key in given if key not in labels]
            wrong = [f"missing: {listed(missing, 5)}"] if missing else []
            wrong += [f"unknown: {listed(unknown, 5)}"] if unknown else []
            what = "have one entry for each group" if others is None else "name groups there are"
            raise ValueError(f"{name} must {what}; {'; '.join(wrong)}.")
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

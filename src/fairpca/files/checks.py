"""Checks of what a file holds: each refusal is a clause that says which part cannot be, and why."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fairpca.text import short_text

MOST_ROWS = 2**53
"""Counts above this cannot all be told apart as float64, in which sums of rows are divided."""

_MISFIT = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What putting the parts of a forged file together can raise."""


class UnfitError(ValueError):
    """A part of a file cannot be what it should be; the message is a clause that says why."""


@contextmanager
def taking_for_damage(shown: str) -> Iterator[None]:
    """Take whatever fails in the body, which reads the parts of a file, for damage to it."""
    try:
        yield
    except UnfitError as error:
        raise ValueError(f"{shown} is damaged: {error}.") from error
    except _MISFIT as error:
        raise ValueError(f"{shown} is damaged: its parts do not fit together.") from error


def require(holds: bool | np.bool_, clause: str) -> None:
    """Raise UnfitError with this clause unless something holds."""
    if not holds:
        raise UnfitError(clause)


def quoted(value: object) -> str:
    """A value from a file as it stands in a message: on one line, and not long."""
    return short_text(repr(value))


def checked_texts(
    value: Any, what: str, n: int | None = None, *, different: bool = True
) -> tuple[str, ...]:
    """A list of texts, as many as there should be."""
    require(isinstance(value, list), f"its {what} are no list")
    wrong = [text for text in value if not isinstance(text, str)][:1]
    require(not wrong, f"of its {what}, {', '.join(map(quoted, wrong))} is no text")
    repeated = (text for text, count in Counter(value).items() if count > 1)
    twice = next(repeated, None) if different else None
    require(twice is None, f"of its {what}, {quoted(twice)} is there twice")
    require(n is None or len(value) == n, f"the number of its {what} is {len(value)}, not {n}")
    return tuple(value)

"""How the values of a column become numbers: what is kept of it, and what is said of its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.choices import IMPUTATIONS
from fairpca.groups import Codes, encode_column
from fairpca.tables.columns import MOST_NAMES, encode_arrow, encoded_text, numbers, quoted
from fairpca.tables.looks import look_of
from fairpca.tables.refusals import TableError, typed

KINDS = ("number", "onehot", "codes")
"""What a column of the table can become."""

POOL = "other (rare)"
"""What the categories with few rows are together."""


@dataclass(frozen=True)
class InputColumn:
    """A column of the table, and what becomes of it.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "onehot", "codes"}
        "number": it is taken as it is. "onehot": a 0/1 column for each category. "codes": the
        position of the category among all of them.
    categories : tuple of str
        The texts that occurred at the fit, sorted; empty for a column of numbers.
    pool : str
        The last of the categories, if it is what rare ones are together: their own names are not
        kept, so that any other text belongs to it. Empty without.
    fill : float, str or None
        What a missing value becomes; None if it is refused.
    """

    name: str
    kind: str = "number"
    categories: tuple[str, ...] = ()
    pool: str = ""
    fill: float | str | None = None

    @property
    def is_consistent(self) -> bool:
        """Whether pool and fill go with the categories, as they may not in a damaged file."""
        if self.kind == "number":
            return not self.pool and not isinstance(self.fill, str)
        pooled = not self.pool or self.categories[-1:] == (self.pool,)
        return pooled and (self.fill is None or self.fill in self.categories)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the columns that it becomes."""
        if self.kind == "onehot":
            return tuple(f"{self.name}={category}" for category in self.categories)
        return (self.name,)


@dataclass
class Tally:
    """How many values of which columns were missing, filled in, or of unknown categories."""

    missing: Counter[str] = field(default_factory=Counter)
    filled: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    def clear(self) -> None:
        """Begin anew, as the rows will pass by again."""
        for counts in (self.missing, self.filled, self.unknown):
            counts.clear()


def missing_error(counts: Mapping[str, int]) -> TableError:
    """What is said of columns with so many values that are missing."""
    shown = [f"{quoted([name])} ({count:,})" for name, count in counts.items()]
    more = f" and {len(shown) - MOST_NAMES} more columns" if len(shown) > MOST_NAMES else ""
    return TableError(
        f"Values are missing or infinite in {', '.join(shown[:MOST_NAMES])}{more}",
        "fill them in, or leave out those rows or columns",
        f"fill them in with --impute {'|'.join(IMPUTATIONS)}, leave out those rows with "
        f"--drop-missing, or those columns with {typed('--drop', [*counts][:MOST_NAMES])}",
    )


def encode_into(
    encoded: Array, source: Any, column: InputColumn, tally: Tally, unknown: str
) -> None:
    """Write the values of a column into the columns of numbers that it becomes, which are zero."""
    if column.kind == "number":
        found = encoded_text(source, column.name)
        if found is not None:
            raise _text_error(column.name, found[0])
        encoded[:, 0] = numbers(source)
        bad = ~np.isfinite(encoded[:, 0])
    else:
        codes = _positions(source, column, tally, unknown)
        bad = codes == -1
        if column.kind == "codes":
            encoded[:, 0] = codes
        else:
            rows = np.flatnonzero(codes >= 0)
            encoded[rows, codes[rows]] = 1.0
    if bad.any():
        counts = tally.missing if column.fill is None else tally.filled
        counts[column.name] += int(np.count_nonzero(bad))
        if column.fill is not None:
            _fill(encoded, bad, column)


def _fill(encoded: Array, bad: Any, column: InputColumn) -> None:
    """Write what missing values become."""
    if column.kind == "number":
        encoded[bad, 0] = float(column.fill or 0.0)
        return
    place = column.categories.index(str(column.fill))
    if column.kind == "codes":
        encoded[bad, 0] = place
    else:
        encoded[bad, place] = 1.0


def _text_error(name: str, labels: Sequence[Any]) -> TableError:
    odd = [str(label) for label in labels if look_of(str(label)) != "number"]
    such = f", such as {quoted(odd[:1])}" if odd else ""
    return TableError(
        f"Column {quoted([name])} holds text where the model needs numbers{such}",
        "correct it, or say how the table is written",
        "correct it, or say how the table is written with --missing-values or --decimal",
    )


def _positions(source: Any, column: InputColumn, tally: Tally, unknown: str) -> Codes:
    """The position of each row's category, -1 where it is missing, -2 where it is to be ignored."""
    encode = encode_arrow if hasattr(source, "dictionary_encode") else encode_column
    labels, codes = encode(source)
    place = {category: i for i, category in enumerate(column.categories)}
    # Text such as "2" that is alone in a new table may have been read as a number.
    texts = [
        str(int(label) if isinstance(label, float) and label.is_integer() else label)
        for label in labels
    ]
    new = [text for text in texts if text not in place]
    ignored = unknown == "ignore" and column.kind == "onehot"
    if new and not column.pool and not ignored:
        raise TableError(
            f"Column {quoted([column.name])} has values that did not occur at the fit: "
            f"{quoted(new)}",
            "correct them, or leave out those rows",
            "correct them, leave out those rows, or take them for none of the categories with "
            "--unknown-categories ignore"
            if column.kind == "onehot"
            else None,
        )
    other = place[column.pool] if column.pool else -2
    positions = np.array([*(place.get(text, other) for text in texts), -1], dtype=np.int64)[codes]
    if new:
        odd = np.array([*(text not in place for text in texts), False])[codes]
        tally.unknown[column.name] += int(np.count_nonzero(odd))
    return positions

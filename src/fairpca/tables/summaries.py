"""ColumnSummary: what is kept of a column as its batches pass by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.tables.columns import encoded_text, numbers, quoted
from fairpca.tables.looks import MOST_TEXTS, Looks, counts_rows
from fairpca.tables.refusals import TableError, typed

_MOST_VALUES = 100_000
"""Among how many different numbers the most frequent one is looked for."""

_LONG = 10_000_000
"""Whole numbers from here on, of 8 digits, may be dates, telephone numbers and other codes."""


@dataclass
class ColumnSummary:
    """What is kept of a column to judge, to encode, to fill in and to standardise it.

    That is mean, variance and range of the numbers of a column, or how often each text occurs.
    """

    name: str
    impute: str = ""
    min_rows: int = 1
    looks: Looks = field(default_factory=Looks)
    n_rows: int = 0
    n_missing: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of the deviations from the mean
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True
    rising: bool = True
    last: float = -np.inf
    values: Counter[float] = field(default_factory=Counter)
    median: float | None = None
    is_text: bool = False
    texts: Counter[str] | None = field(default_factory=Counter)

    def see(self, source: Any) -> None:
        """Take in the column of a batch, or raise ValueError if it has neither numbers nor text."""
        self.n_rows += len(source)
        encoded = encoded_text(source, self.name)
        if encoded is not None:
            labels, codes = encoded
            present = codes[codes >= 0]
            self.n_missing += len(codes) - len(present)
            counts = np.bincount(present, minlength=len(labels)).tolist()
            self._see_texts(dict(zip(map(str, labels), counts, strict=True)))
            return
        values = numbers(source)
        finite = np.isfinite(values)
        if not finite.all():
            values = values[finite]
            self.n_missing += len(finite) - len(values)
        if len(values) == 0:
            return
        share = len(values) / self.n_present
        with np.errstate(over="ignore", invalid="ignore"):
            here = values.mean()
            self.squares += np.square(values - here).sum()
            if share < 1.0:  # what the means so far and here differ by
                self.squares += np.square(here - self.mean) * (1.0 - share) * len(values)
            self.mean = here if share == 1.0 else self.mean + share * (here - self.mean)
        self.low = min(self.low, float(values.min()))
        self.high = max(self.high, float(values.max()))
        self.whole = self.whole and bool((values == np.round(values)).all())
        self.rising = self.rising and self.last < values[0] and bool((np.diff(values) > 0.0).all())
        self.last = float(values[-1])
        self._see_values(values, share == 1.0)

    @property
    def n_present(self) -> int:
        """How many values are not missing."""
        return self.n_rows - self.n_missing

    @property
    def is_constant(self) -> bool:
        """Whether all values are the same."""
        return len(self.texts or ()) == 1 if self.is_text else self.low == self.high

    @property
    def is_key(self) -> bool:
        """Whether it seems to be a number or key of the rows."""
        if self.is_text or not self.whole or self.n_missing:
            return False
        return counts_rows(self.name, self.n_rows, self.low, self.high, self.squares, self.rising)

    @property
    def n_digits(self) -> int:
        """How many digits its numbers have, if they are whole and long and all have as many."""
        if self.is_text or not self.whole or self.is_constant or self.low < _LONG:
            return 0
        low, high = f"{self.low:.0f}", f"{self.high:.0f}"
        return len(low) if len(low) == len(high) else 0

    def fill(self) -> float | str | None:
        """What missing values become, or None if they are refused.

        A number is told by at least `min_rows` rows, so that it is not that of a single person.
        """
        if not self.impute:
            return None
        if self.is_text:
            texts = self.texts or Counter({"": 0})
            return min(texts, key=lambda text: (-texts[text], text))
        most = min(self.values, key=lambda value: (-self.values[value], value), default=0.0)
        telling = self.values[most] if self.impute == "most-frequent" else self.n_present
        if telling < self.min_rows:
            if not self.n_missing:
                return None
            if self.n_present < self.min_rows:
                raise self._untypical(
                    f"fewer than {self.min_rows} numbers, too few to fill in the others", ""
                )
            raise self._untypical(
                f"no number that {self.min_rows} rows share, so that none is typical"
            )
        if self.impute == "mean":
            return self.low if self.low == self.high else float(self.mean)
        return self.median if self.impute == "median" else most

    def moments(self, fill: float | str | None) -> tuple[float, float]:
        """Mean and variance of the numbers, with what is filled in."""
        # The mean of equal numbers may differ from them by rounding, which should not be left.
        same = self.low == self.high
        mean, squares = (self.low, 0.0) if same else (self.mean, self.squares)
        if self.n_missing and isinstance(fill, float) and fill != mean:
            present = self.n_present / self.n_rows
            squares += self.n_present * (1.0 - present) * (fill - mean) ** 2
            mean = present * mean + (1.0 - present) * fill
        return mean, squares / self.n_rows

    def _see_texts(self, counts: Mapping[str, int]) -> None:
        self.is_text = True
        self.looks.see(counts)
        if self.texts is None:
            return
        self.texts.update(counts)
        if len(self.texts) > MOST_TEXTS:  # those of a column that names each row may not fit
            self.texts = None

    def _see_values(self, values: Array, first: bool) -> None:
        if self.impute == "median":
            if not first:
                raise TableError(
                    "A median needs all rows at once, and the table is read in batches",
                    "fill in the mean or the most frequent value",
                    "leave out --stream, or use --impute mean",
                )
            self.median = _middle(values, self.min_rows)
        if self.impute == "most-frequent":
            self.values.update(dict(zip(*_counted(values), strict=True)))
            if len(self.values) > _MOST_VALUES:
                raise self._untypical(
                    f"more than {_MOST_VALUES:,} different numbers, of which none is typical"
                )

    def _untypical(self, why: str, other: str = "use --impute mean, or ") -> TableError:
        """What is said of a column in which no number is typical."""
        return TableError(
            f"Column {quoted([self.name])} has {why}",
            "fill in the mean, or leave the column out" if other else "leave the column out",
            f"{other}leave the column out with {typed('--drop', [self.name])}",
        )


def _middle(values: Array, n: int) -> float:
    """The mean of the n numbers in the middle: for n = 1 the median.

    As with the median, there is one more where otherwise there would be no middle.
    """
    n = min(n, len(values))
    n += (len(values) - n) % 2
    start = (len(values) - n) // 2
    return float(np.sort(values)[start : start + n].mean())


def _counted(values: Array) -> tuple[list[float], list[int]]:
    found, counts = np.unique(values, return_counts=True)
    return found.tolist(), counts.tolist()

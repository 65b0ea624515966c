"""Which columns are refused, because they cannot be meant, and what is kept of them to tell.

A column of text is refused, with what to do about it, if

- nine in ten of its cells, or half of them with `MANY_NUMBERS` different ones, are numbers, and the
  others are not: a slip of the pen would make a 0/1 column of each number;
- nine in ten of its cells are numbers, of which some have the other decimal point, separators
  between thousands, or signs such as % and $;
- nine in ten of its cells are dates or times;
- nine in ten of its cells are different, as those of names and keys of people are;
- it has many different texts, of which most are rare, or more than `MOST_CATEGORIES`.

The last two also hold for columns that are said to be text: otherwise their texts, which are those
of single people, would be in the model.

A column of whole numbers is refused if it counts the rows (each number from the least to the
largest occurs once, or they increase from row to row without large steps), or is called an id and
has room for a number of its own in each row. Tables of fewer than `FEW_ROWS` rows tell too little
for that. So is one of whole numbers in a CSV file of which some, among the first rows, have zeros
in front, as codes have. Measurements are different in every row too: columns of other numbers are
never refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.tables.columns import (
    MISSING_WORDS,
    MOST_NAMES,
    TableError,
    date_error,
    encoded_text,
    numbers,
    quoted,
    typed,
    zeros_error,
)

Places = Callable[[str, Collection[str]], Mapping[str, str]]
"""Says where some cells of a column stand in a file."""

NEARLY_ALL = 0.9
"""The share of cells by which a column is judged: fewer than one in ten may be a slip."""

MANY_NUMBERS = 20
"""Different numbers that are no codes of categories, with words between them."""

FEW_ROWS = 10
"""In tables with fewer rows, different values in all rows say nothing."""

MANY_TEXTS = 20
"""Different texts, most of them rare, that are no categories any more."""

MOST_CATEGORIES = 1000
"""How many texts a column may have of which each becomes a column."""

MOST_TEXTS = 100_000
"""How many texts of a column are kept in memory, at most, until it is known what they are."""

_SHOWN = 3
"""How many cells a message shows."""

_SIGNS = "$€£¥%"
_SWAPPED = str.maketrans(".,", ",.")
_NUMBER = r"\d+(?:\.\d*)?|\.\d+"
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_PATTERNS = {
    "number": re.compile(rf"[+-]?(?:{_NUMBER})(?:[eE][+-]?\d+)?"),
    "other decimal": re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?"),
    "thousands": re.compile(
        r"[+-]?\d{1,3}(?:([,.'\u2019 \u00a0\u202f])\d{3})(?:\1\d{3})*(?:[.,]\d+)?"
    ),
    "sign": re.compile(rf"[+-]?[{_SIGNS}]?\s?[+-]?\d[\d., ]*\s?[{_SIGNS}]?"),
    "date": re.compile(
        r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d{2})"
        rf"|\d{{1,2}}\.?[ -](?:{_MONTHS})[a-z]*\.?,?[ -]\d{{2,4}}"
        rf"|(?:{_MONTHS})[a-z]*\.? \d{{1,2}},? \d{{4}}|(?:19|20)\d{{2}}-(?:0[1-9]|1[0-2]))"
        r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[ap]m)?(?:Z| ?[+-]\d{2}:?\d{2})?)?"
        r"|\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[ap]m)?",
        re.I,
    ),
    "dressed": re.compile(rf"(?:PT|[^\w\s]{{0,2}})\s?(?:{_NUMBER})\s?[^\d\s]{{0,6}}"),
}
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.I)
_ID = re.compile(r"(?i:(?:.*[^a-z])?(?:id|ids|uid|uuid|guid|ssn))|.*[a-z]I[dD]", re.S)


def classify_cell(text: str, decimal: str = ".") -> str:
    """What kind of text a cell has, where numbers have this decimal point.

    That is "number", "other decimal" (a number with the other decimal point), "thousands", "sign",
    "date", "dressed" (a number with a unit or in another spelling, or what may be one), "missing"
    (a word that is no value among numbers) or "text".
    """
    plain = text.strip()
    if text in MISSING_WORDS:
        return "missing"
    if not any(map(str.isdigit, plain)):
        return "number" if _INFINITE.fullmatch(plain) else "text"
    if decimal == ",":  # the pattern of a number has a point
        plain = plain.translate(_SWAPPED)
    for kind in ("number", "other decimal", "thousands", "sign"):
        if _PATTERNS[kind].fullmatch(plain) and (kind != "sign" or any(s in plain for s in _SIGNS)):
            return kind
    others = (kind for kind in ("date", "dressed") if _PATTERNS[kind].fullmatch(text.strip()))
    return next(others, "text")


@dataclass(frozen=True)
class ColumnChecker:
    """Refuses columns of text that cannot be meant as categories.

    Attributes
    ----------
    as_text : collection of str
        Columns that are text, although they look like numbers or dates.
    min_rows : int
        Categories with fewer rows are rare.
    places : callable, default=None
        Says where cells stand, for messages.
    """

    as_text: Collection[str] = ()
    min_rows: int = 1
    places: Places | None = None

    def check(self, column: ColumnSummary) -> None:
        """Raise TableError if a column of text cannot be meant as categories."""
        name, cells, texts = column.name, column.cells, column.texts
        odd = [text for text in texts or () if "\0" in text]
        if odd:
            raise zeros_error(name, self._shown(name, odd[:1]))
        judged = cells.total() - cells["missing"]
        refusal = self._too_different(name, texts, cells.total())
        few = refusal is None
        if judged and name not in self.as_text:
            self.check_numbers(column, few)
            if cells["date"] >= NEARLY_ALL * judged:
                shown = self._shown(name, column.examples["date"][:1])
                raise date_error(name, f", such as {shown}", few=few)
        if refusal is None:
            return
        if cells["dressed"] >= NEARLY_ALL * judged > 0:
            raise self._unadorned(column, "dressed", "units, or in another spelling", False)
        raise refusal

    def _too_different(self, name: str, texts: Counter[str] | None, n: int) -> TableError | None:
        """What is said of texts that cannot be categories, because they are too different."""
        if texts is None:
            return too_many(name, f"more than {MOST_TEXTS:,} different texts")
        if n >= FEW_ROWS and len(texts) >= NEARLY_ALL * n:
            every = "every row" if len(texts) == n else "nearly every row"
            return TableError(
                f"Column {quoted([name])} has a different text in {every} ({len(texts):,} in {n:,} "
                "rows), as names and keys of people are",
                "leave it out",
                f"leave it out with {typed('--drop', [name])}",
            )
        rare = [count for count in texts.values() if count < max(self.min_rows, 2)]
        if len(rare) > MANY_TEXTS and sum(rare) > n / 2:
            return too_many(
                name,
                f"{len(texts):,} different texts in {n:,} rows, most of which are in fewer than "
                f"{max(self.min_rows, 2)} rows",
            )
        return None

    def check_numbers(self, column: ColumnSummary, as_text: bool = True) -> None:
        """Refuse a column of text that is meant as numbers; `as_text`: it may be categories."""
        cells = column.cells
        n = cells.total() - cells["missing"]
        numbers, dressed = cells["number"], cells["other decimal"] + cells["thousands"]
        if dressed and numbers + dressed >= NEARLY_ALL * n:
            self._marks(column, as_text)
        if cells["sign"] and numbers + dressed + cells["sign"] >= NEARLY_ALL * n:
            raise self._unadorned(column, "sign", "signs", as_text)
        different = MANY_NUMBERS
        if column.texts is not None:
            found = (classify_cell(text, column.decimal) for text in column.texts)
            different = sum(kind == "number" for kind in found)
        if numbers == n:
            if different >= MANY_NUMBERS:  # of a Parquet file, say
                raise self._numbers_as_text(column.name, column.texts or (), as_text)
        elif numbers >= NEARLY_ALL * n or (numbers >= n / 2 and different >= MANY_NUMBERS):
            rest = (kind for kind in column.examples if kind not in ("number", "missing"))
            odd = [text for kind in rest for text in column.examples[kind]]
            raise self._slips(column.name, odd, n - numbers, n, as_text)

    def _slips(
        self, name: str, odd: Sequence[str], n_odd: int, n: int, as_text: bool
    ) -> TableError:
        odd, all_shown = odd[:_SHOWN], len(odd) <= _SHOWN
        what, them = f"{n_odd:,} cells that are no numbers, such as", "them"
        if n_odd == 1:
            what, them = "one cell that is no number,", "it"
        shown = self._shown(name, odd)
        if n_odd == 1 and shown.endswith("(line 2)"):
            them = "it, or remove that line if it has the units"
        # Of many with digits, each would have to be named.
        words = [
            text
            for text in odd
            if not any(map(str.isdigit, text))
            or (all_shown and classify_cell(text) in ("text", "dressed"))
        ]
        add = []
        if words:
            add.append(f"{typed('--missing-values', words)} if that means a missing value")
        if as_text:
            add.append(f"{typed('--as-text', [name])} if the numbers are names of categories")
        more = f"{', '.join(add)}, or " if add else ""
        return TableError(
            f"Column {quoted([name])} has {n - n_odd:,} numbers and {what} {shown}",
            f"correct {them}, or say that the column is text, or leave it out",
            f"correct {them}, or add {more}{typed('--drop', [name])} to leave the column out",
        )

    def _numbers_as_text(self, name: str, texts: Iterable[str], as_text: bool) -> TableError:
        # Characters that look like spaces, such as U+00A0, are what keeps numbers in a CSV file
        # from being read as such.
        odd = [text for text in texts if text.strip() != text.strip(" \t\r\n")][:1]
        where = {} if self.places is None else self.places(name, odd)
        such = [
            f", such as {text!a}{f' ({where[text]})' if text in where else ''}, with a "
            "character that cannot be seen"
            for text in odd
        ]
        return TableError(
            f"Column {quoted([name])} holds numbers as text{''.join(such)}",
            "turn them into numbers, or leave the column out",
            "turn them into numbers, or, if they are names of categories, add "
            f"{typed('--as-text', [name])}"
            if as_text
            else f"turn them into numbers, or leave the column out with {typed('--drop', [name])}",
        )

    def codes(self, name: str, example: str) -> TableError:
        """What is said of a column of whole numbers, some of which have zeros in front."""
        return TableError(
            f"Column {quoted([name])} has numbers with zeros in front, such as "
            f"{self._shown(name, [example])}, as codes have",
            "say that it is text, or that it is a measurement, or leave it out",
            f"add {typed('--as-text', [name])} if they are names of a few categories, "
            f"{typed('--as-number', [name])} if they are measured, or {typed('--drop', [name])} to "
            "leave the column out",
        )

    def _marks(self, column: ColumnSummary, as_text: bool) -> None:
        """Refuse numbers with the other decimal point, or with separators between thousands."""
        name, is_thousands = column.name, column.n_thousands == column.cells["other decimal"]
        if is_thousands and ("thousands" in column.examples or column.n_fractions > 0):
            kind = "thousands" if column.examples.get("thousands") else "other decimal"
            raise self._unadorned(column, kind, "separators between thousands", as_text)
        if column.n_fractions:  # then it is a slip
            return
        shown = self._shown(name, column.examples["other decimal"][:1])
        mark, add = "comma", "add --decimal ,"
        if column.decimal == ",":
            mark, add = "point", "leave out --decimal ,"
        instead = "; if it separates thousands, remove it" if is_thousands else ""
        raise TableError(
            f"Column {quoted([name])} has numbers with a {mark}, such as {shown}",
            f"write their decimals with the other mark{instead}",
            f"if it is a decimal {mark}, {add}{instead}; {typed('--drop', [name])} leaves the "
            "column out",
        )

    def _unadorned(self, column: ColumnSummary, kind: str, what: str, as_text: bool) -> TableError:
        name, add = column.name, ""
        if as_text:
            add = f"add {typed('--as-text', [name])} if they are names of categories, "
        return TableError(
            f"Column {quoted([name])} has numbers with {what}, such as "
            f"{self._shown(name, column.examples[kind][:1])}",
            "write the numbers alone, or leave the column out",
            f"write the numbers alone, {add}or leave the column out with {typed('--drop', [name])}",
        )

    def _shown(self, name: str, texts: Sequence[str]) -> str:
        """Some cells, and where they stand."""
        found = {} if self.places is None else self.places(name, texts)
        return ", ".join(
            (quoted([text]) if text.strip() else repr(text))
            + (f" ({found[text]})" if text in found else "")
            for text in texts
        )


def too_many(name: str, what: str) -> TableError:
    """What is said of a column with too many different texts."""
    return TableError(
        f"Column {quoted([name])} has {what}",
        "put them into fewer categories, or leave the column out",
        f"put them into fewer categories, or leave the column out with {typed('--drop', [name])}",
    )


def id_error(names: Iterable[str]) -> TableError:
    """What is said of columns that count the rows."""
    names = list(names)
    some = names[:MOST_NAMES]
    seems, it = ("Column {} seems", "it") if len(names) == 1 else ("Columns {} seem", "them")
    return TableError(
        f"{seems.format(quoted(names))} to number or name the rows, not to describe them",
        f"leave {it} out",
        f"leave {it} out with {typed('--drop', some)}, or say that it is a measurement with "
        f"{typed('--as-number', some[:1])}",
    )


_MOST_VALUES = 100_000
"""Among how many different numbers the most frequent one is looked for."""

_LONG = 10_000_000
"""Whole numbers from here on, of 8 digits, may be dates, telephone numbers and other codes."""


@dataclass
class ColumnSummary:
    """What is kept of a column to check, to encode, to fill in and to standardise it.

    That is mean, variance and range of the numbers of a column, or how often each text occurs, and
    what the texts look like.
    """

    name: str
    impute: str = ""
    min_rows: int = 1
    decimal: str = "."
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
    cells: Counter[str] = field(default_factory=Counter)  # by what they look like
    examples: dict[str, list[str]] = field(default_factory=dict)
    n_fractions: int = 0  # numbers in text with the decimal point that they should have
    n_thousands: int = 0  # of those with the other one, those that may have thousands instead

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
        n, width = self.n_rows, self.high - self.low + 1
        if self.is_text or not self.whole or self.n_missing or n < FEW_ROWS:
            return False
        # What the squares of the numbers from 1 to n, less their mean, add up to.
        once = width == n and abs(self.squares - n * (n * n - 1) / 12) <= 1e-9 * self.squares
        rising = self.rising and width <= 2 * n
        return once or rising or (width >= n and bool(_ID.fullmatch(self.name)))

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
        for text, count in counts.items():
            kind = classify_cell(text, self.decimal)
            self.cells[kind] += count
            if kind == "number" and self.decimal in text:
                self.n_fractions += count
            if kind == "other decimal" and _PATTERNS["thousands"].fullmatch(text.strip()):
                self.n_thousands += count
            shown = self.examples.setdefault(kind, [])
            if len(shown) <= _SHOWN and text not in shown:
                shown.append(text)
        if self.texts is not None:
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
            found, counts = np.unique(values, return_counts=True)
            self.values.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
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

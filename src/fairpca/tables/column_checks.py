"""What is kept of a column of a table, and which columns are refused because they cannot be meant.

A column of text is refused, with what to do about it, if

- nine in ten of its cells, or half of them with `MANY` different ones, are numbers, and the others
  are not: a slip of the pen would make a 0/1 column of each number;
- nine in ten of its cells are numbers, of which some have the other decimal point, separators
  between thousands, or signs such as % and $;
- nine in ten of its cells are dates or times;
- nine in ten of its cells are different, as those of names and keys of people are;
- it has more than `MANY` rare texts in more than half of its rows, or more than `MOST_CATEGORIES`.

The last two also hold for columns that are said to be text: otherwise their texts, which are those
of single people, would be in the model.

A column of whole numbers is refused if it is called a key, such as "id", "rownames" or "index", or
if no number occurs twice where chance would not allow that: of n whole numbers that are measured
independently, with w possible values, all are different with a probability of at most
(1 - 1/w) (1 - 2/w) ... (1 - (n-1)/w), that of equally likely values; others repeat more often.
`CHANCE` is the least that is believed. So 300 different incomes between 0 and 100,000 are
measurements (0.64), and 300 different numbers between 1 and 5,000 are not (0.0001). So is one of
whole numbers in a CSV file of which some, among the first rows, have zeros in front, as codes have,
and one that is called a survey weight. Other numbers that differ in every row are measurements.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.tables.columns import (
    MISSING_WORDS,
    TableError,
    date_error,
    encoded_text,
    numbers,
    quoted,
    typed,
)

NEARLY_ALL = 0.9
"""The share of cells by which a column is judged: fewer than one in ten may be a slip."""

MANY = 20
"""Different numbers, or rare texts, that are no categories any more."""

FEW_ROWS = 10
"""In tables with fewer rows, different values in all rows say nothing."""

CHANCE = 0.01
"""How likely different numbers in all rows must be to be taken for measurements."""

MOST_CATEGORIES = 1000
"""How many texts a column may have of which each becomes a column."""

MOST_KEPT = 100_000
"""How many values of a column are kept in memory, at most, until it is known what they are."""

_MANY_DIGITS = 8
"""This many digits may be a date, a telephone number or another code."""

_SHOWN = 3
"""How many cells a message shows."""

_SIGNS = "$€£¥%"
_SWAPPED = str.maketrans(".,", ",.")
_NUMBER = r"\d+(?:\.\d*)?|\.\d+"
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_PATTERNS = {
    "number": re.compile(rf"[+-]?(?:{_NUMBER})(?:[eE][+-]?\d+)?"),
    "either": re.compile(r"[+-]?\d{1,3},\d{3}"),
    "other decimal": re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?"),
    "dressed": re.compile(
        r"[+-]?\d{1,3}(?:([,.'\u2019 \u00a0\u202f])\d{3})(?:\1\d{3})*(?:[.,]\d+)?"
        rf"|[+-]?(?=.*[{_SIGNS}])[{_SIGNS}]?\s?[+-]?\d[\d., ]*\s?[{_SIGNS}]?"
    ),
    "date": re.compile(
        r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d{2})"
        rf"|\d{{1,2}}\.?[ -](?:{_MONTHS})[a-z]*\.?,?[ -]\d{{2,4}}"
        rf"|(?:{_MONTHS})[a-z]*\.? \d{{1,2}},? \d{{4}}|(?:19|20)\d{{2}}-(?:0[1-9]|1[0-2]))"
        r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[ap]m)?(?:Z| ?[+-]\d{2}:?\d{2})?)?"
        r"|\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[ap]m)?",
        re.I,
    ),
}
_DRESSED = {"either", "other decimal", "dressed"}
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.I)
_KEY = re.compile(
    r"(?i:(?:.*[^a-z])?(?:id|ids|uid|uuid|guid|ssn|rownames?|row[ ._]?(?:names?|number|no))"
    r"|index)|.*[a-z]I[dD]",
    re.S,
)
_UNNAMED = re.compile(r"(?:unnamed: \d+)?", re.I)
_WEIGHT = re.compile(
    r"(?:(?:fnl|final|samp(?:le|ling)?|surv(?:ey)?|design|person|per|house?hold|hh|pop(?:ulation)?"
    r"|p|prob|asec|analysis|freq(?:uency)?|case|post ?strat(?:ification)?)[ ._]*"
    r"(?:w|wt|wgt|wght|weights?)|wgt\w*|wt(?:fin|ss|sup)\w*)",
    re.I,
)


def classify_cell(text: str, decimal: str = ".") -> str:
    """What kind of text a cell has, where numbers have this decimal point.

    That is "number", "either" (a number with the other decimal point, or separators between
    thousands), "other decimal", "dressed" (with separators or signs), "date", "missing" (a word
    that is no value among numbers) or "text".
    """
    plain = text.strip()
    if text in MISSING_WORDS:
        return "missing"
    if not any(map(str.isdigit, plain)):
        return "number" if _INFINITE.fullmatch(plain) else "text"
    # The patterns of numbers have a point.
    swapped = plain.translate(_SWAPPED) if decimal == "," else plain
    for kind, pattern in _PATTERNS.items():
        if pattern.fullmatch(plain if kind == "date" else swapped):
            return kind
    return "text"


@dataclass(frozen=True)
class ColumnRules:
    """What is said of the columns of a table, by which they are checked and prepared.

    Attributes
    ----------
    sensitive : sequence of str, default=()
        The columns that make the groups; they do not enter.
    drop : sequence of str, default=()
        Further columns that do not enter, such as a target.
    standardize : {"numbers", "all", "none"}, default="numbers"
        Which columns are brought to mean 0 and variance 1 (constant ones to 0): all, or those that
        are not 0/1 columns, which stay as they are.
    impute : bool, default=False
        Whether missing and infinite numbers become the mean, here and in other tables, and missing
        text the most frequent one, or are refused.
    min_rows : int, default=1
        Categories with fewer rows become one, whose name alone is kept; and what is filled in
        is told by at least this number of rows.
    as_text, as_number : sequence of str, default=()
        Columns that are not checked: those of text with numbers or dates that are names of
        categories, and those of numbers that only seem to be keys or weights.
    decimal : {".", ","}, default="."
        The decimal point in text that may be numbers.
    codes : mapping, default={}
        Columns of numbers with zeros in front, as codes have, and such a number of each.
    """

    sensitive: Sequence[str] = ()
    drop: Sequence[str] = ()
    standardize: str = "numbers"
    impute: bool = False
    min_rows: int = 1
    as_text: Sequence[str] = ()
    as_number: Sequence[str] = ()
    decimal: str = "."
    codes: Mapping[str, str] = field(default_factory=dict)


@dataclass
class ColumnSummary:
    """What is kept of a column to check, to encode, to fill in and to standardise it.

    That is mean, variance and range of the numbers of a column, or how often each text occurs, and
    what the texts look like.
    """

    name: str
    rules: ColumnRules = field(default_factory=ColumnRules)
    n_rows: int = 0
    n_missing: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of the deviations from the mean
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True
    different: Array | None = field(default_factory=lambda: np.zeros(0))  # None: some are equal
    is_text: bool = False
    texts: Counter[str] | None = field(default_factory=Counter)
    cells: Counter[str] = field(default_factory=Counter)  # by what they look like
    examples: dict[str, list[str]] = field(default_factory=dict)
    n_fractions: int = 0  # numbers in text with the decimal point that they should have

    def see(self, source: Any) -> None:
        """Take in the column of a batch, or raise ValueError if it has neither numbers nor text."""
        n_before = self.n_rows - self.n_missing
        self.n_rows += len(source)
        encoded = encoded_text(source, self.name)
        if encoded is not None:
            labels, codes = encoded
            counts = np.bincount(codes + 1, minlength=len(labels) + 1).tolist()
            self.n_missing += counts[0]
            self._see_texts(dict(zip(map(str, labels), counts[1:], strict=True)))
            return
        values = numbers(source)
        finite = np.isfinite(values)
        if not finite.all():
            values = values[finite]
            self.n_missing += len(finite) - len(values)
        if len(values) == 0:
            return
        share = len(values) / (n_before + len(values))
        with np.errstate(over="ignore", invalid="ignore"):
            here = values.mean()
            self.squares += np.square(values - here).sum()
            if n_before:  # what the means so far and here differ by
                self.squares += np.square(here - self.mean) * (1.0 - share) * len(values)
            self.mean = here if not n_before else self.mean + share * (here - self.mean)
        self.low = min(self.low, float(values.min()))
        self.high = max(self.high, float(values.max()))
        self.whole = self.whole and bool((values == np.round(values)).all())
        if not self.whole:
            self.different = None
        elif self.different is not None and len(self.different) < MOST_KEPT:
            every = np.concatenate([self.different, values[:MOST_KEPT]])
            self.different = np.unique(every) if len(np.unique(every)) == len(every) else None

    def _see_texts(self, counts: Mapping[str, int]) -> None:
        self.is_text = True
        for text, count in counts.items():
            kind = classify_cell(text, self.rules.decimal)
            self.cells[kind] += count
            if kind == "number" and self.rules.decimal in text:
                self.n_fractions += count
            shown = self.examples.setdefault(kind, [])
            if len(shown) <= _SHOWN and text not in shown:
                shown.append(text)
        if self.texts is not None:
            self.texts.update(counts)
            if len(self.texts) > MOST_KEPT:  # those of a column that names each row may not fit
                self.texts = None

    def note_on_numbers(self) -> list[str]:
        """What a person should know of numbers that are all the same, or as long as codes are."""
        if self.low == self.high:
            return ["constant"]
        low, high = (len(f"{value:.0f}") for value in (self.low, self.high))
        if not self.whole or low != high or low < _MANY_DIGITS or self.low < 0.0:
            return []
        return [
            f"all have {low} digits, as codes, telephone numbers and dates do "
            f"({typed('--drop', [self.name])} leaves them out)"
        ]

    def refusal(self) -> TableError | None:
        """The reason and the remedy if the column looks like a mistake."""
        name, rules, n_present = self.name, self.rules, self.n_rows - self.n_missing
        as_text, as_number = name in rules.as_text, name in rules.as_number
        if _UNNAMED.fullmatch(name) and not as_text and not as_number:
            has = "has no name in the file, as an index that was written into it has"
            return self._refused(has, "name it, or leave it out")
        if n_present == 0:
            return self._refused("has no value at all", "leave it out")
        if self.is_text:
            return self._text_refusal(as_text, as_number)
        if self.n_missing and rules.impute and n_present < rules.min_rows:
            has = f"has fewer than {rules.min_rows} numbers, too few to fill in the others"
            return self._refused(has, "leave the column out")
        is_weight, zeros = _WEIGHT.fullmatch(name) is not None, rules.codes.get(name)
        if as_number or not (zeros is not None or is_weight or self._is_key()):
            return None
        measured = f"{typed('--as-number', [name])} takes it for a measurement"
        if zeros is not None:
            return self._refused(
                f"has numbers with zeros in front, such as {self._shown([zeros])}, as codes have",
                "leave it out, or say that it is text, or a measurement",
                f"{typed('--as-text', [name])} is for names of a few categories, and {measured}",
            )
        if is_weight:
            return self._refused(
                "seems to hold survey weights, which say how many people a row stands for",
                "use it as weights, or leave it out",
                f"{typed('--drop', [name])} leaves it out, and {measured}",
                weights=name,
            )
        has = "seems to number or name the rows, not to describe them"
        return self._refused(has, "leave it out", measured)

    def _refused(self, has: str, remedy: str, instead: str = "", **fix: Any) -> TableError:
        """The error that says this of the column; leaving it out helps, if nothing else is said."""
        problem = f"Column {quoted([self.name])} {has}"
        return TableError(problem, remedy, instead, **fix or {"drop": (self.name,)})

    def _is_key(self) -> bool:
        """Whether numbers seem to be those of the rows."""
        if not self.whole or self.n_rows < FEW_ROWS:
            return False
        width = self.high - self.low + 1.0
        if _KEY.fullmatch(self.name) and width >= FEW_ROWS:
            return True
        if self.different is None or len(self.different) < FEW_ROWS:
            return False
        return bool(np.log1p(-np.arange(len(self.different)) / width).sum() < np.log(CHANCE))

    def _text_refusal(self, as_text: bool, as_number: bool) -> TableError | None:
        cells, different = self.cells, self._too_different()
        judged = 0 if as_text else cells.total() - cells["missing"]
        found = self.slip(different is None) if judged else None
        if found is None and judged and cells["date"] >= NEARLY_ALL * judged:
            shown = self._shown(self.examples["date"][:1])
            found = date_error(self.name, f", such as {shown}", different is None)
        if found is None and different is None and as_number:
            has = "holds text, which cannot be taken for a measurement"
            return self._refused(has, "say that it is text, or leave it out")
        return found or different

    def _too_different(self) -> TableError | None:
        """What is said of texts that cannot be categories, because they are too different."""
        texts, n, least = self.texts, self.cells.total(), max(self.rules.min_rows, 2)
        rare = [count for count in (texts or {}).values() if count < least]
        remedy = "put them into fewer categories, or leave the column out"
        if texts is None:
            return self._refused(f"has more than {MOST_KEPT:,} different texts", remedy)
        if n >= FEW_ROWS and len(texts) >= NEARLY_ALL * n:
            every = "every row" if len(texts) == n else "nearly every row"
            has = f"has a different text in {every} ({len(texts):,} in {n:,} rows), as names, keys"
            return self._refused(f"{has} and numbers with units have", "leave it out")
        if len(rare) > MANY and sum(rare) > n / 2:
            has = f"has {len(texts):,} different texts in {n:,} rows, most of which are in fewer"
            return self._refused(f"{has} than {least} rows", remedy)
        return None

    def slip(self, few: bool = True) -> TableError | None:
        """What is said of a column of text that is meant as numbers; `few`: texts may be few."""
        cells, n = self.cells, self.cells.total() - self.cells["missing"]
        n_numbers, n_either = cells["number"], cells["either"]
        n_marked = n_either + cells["other decimal"]
        n_dressed = n_marked + cells["dressed"]
        if n_numbers == n:  # in a Parquet file, or with characters that cannot be seen
            odd = [text for text in self.texts or () if not text.isascii()][:1]
            such = f", such as {self._shown(odd)}" if odd else ""
            remedy = "turn them into numbers, or leave the column out"
            return (
                self._refused(f"holds numbers as text{such}", remedy) if self._is_many() else None
            )
        nearly_all = n_numbers + n_dressed >= NEARLY_ALL * n
        if n_marked == n_dressed > 0 and nearly_all and not self.n_fractions:
            return self._other_decimal(is_sure=n_either < n_marked)
        if nearly_all or (n_numbers >= n / 2 and self._is_many()):
            return self._odd_cells(n - n_numbers, n_numbers, few)
        return None

    def _is_many(self) -> bool:
        """Whether different numbers among the texts are no categories any more."""
        found = (classify_cell(text, self.rules.decimal) == "number" for text in self.texts or ())
        return self.texts is None or sum(found) >= MANY

    def _other_decimal(self, is_sure: bool) -> TableError:
        """What is said of numbers with the other decimal point, if that is what it is."""
        mark, option = ("comma", ",") if self.rules.decimal == "." else ("point", ".")
        examples = [*self.examples.get("other decimal", ()), *self.examples.get("either", ())]
        has = f"has numbers with a {mark}, such as {self._shown(examples[:1])}"
        remedy = "write their decimals with the other mark"
        if is_sure:
            leave = f"{typed('--drop', [self.name])} leaves the column out"
            return self._refused(has, remedy, leave, decimal=option)
        # What may be either is not guessed.
        remedy = f"{remedy}, or, if the {mark} separates thousands, remove it"
        return self._refused(has, remedy, f"--decimal {option} is for a decimal {mark}")

    def _odd_cells(self, n_odd: int, n_numbers: int, few: bool) -> TableError:
        """What is said of a column of numbers and a few other cells, or of numbers with signs."""
        kinds = {kind: texts for kind, texts in self.examples.items() if kind != "number"}
        odd = [text for kind, texts in kinds.items() if kind != "missing" for text in texts]
        are = "is no number" if n_odd == 1 else "are no numbers"
        has = f"{n_odd:,} cell{'s' * (n_odd > 1)} that {are}, such as {self._shown(odd[:_SHOWN])}"
        has = f"has {f'{n_numbers:,} numbers and ' * (n_numbers > 0)}{has}"
        instead = [f"{typed('--as-text', [self.name])} takes each for a category"] if few else []
        # A number that was mistyped is missing; of many of them, each would have to be named.
        few_odd = len(odd) <= _SHOWN or not any(map(str.isdigit, "".join(odd)))
        if not few_odd or not _DRESSED.isdisjoint(kinds):
            remedy = "correct that, or leave the column out"
            return self._refused(has, remedy, ", ".join(instead))
        instead.append(f"{typed('--drop', [self.name])} leaves the column out")
        remedy = "correct that, or say that it means a missing value"
        return self._refused(has, remedy, ", ".join(instead), missing_values=tuple(odd))

    def _shown(self, texts: Sequence[str]) -> str:
        """Some cells, with the spaces at their ends."""
        return ", ".join(quoted([t]) if t == t.strip() else ascii(t) for t in texts)

"""What columns look like, and which of them are refused because they cannot be meant.

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

from fairpca.tables.columns import MISSING_WORDS, MOST_NAMES, date_error, quoted, zeros_error
from fairpca.tables.refusals import TableError, typed

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
_LOOKS = {
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


def look_of(text: str, decimal: str = ".") -> str:
    """What a cell looks like, where numbers have this decimal point.

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
    for look in ("number", "other decimal", "thousands", "sign"):
        if _LOOKS[look].fullmatch(plain) and (look != "sign" or any(s in plain for s in _SIGNS)):
            return look
    others = (look for look in ("date", "dressed") if _LOOKS[look].fullmatch(text.strip()))
    return next(others, "text")


@dataclass
class Looks:
    """What the cells of a column of text look like, as its batches pass by."""

    decimal: str = "."
    cells: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    n_fractions: int = 0  # numbers with the decimal point that they should have
    n_thousands: int = 0  # of those with the other one, those that may have thousands instead

    def see(self, counts: Mapping[str, int]) -> None:
        """Take in the texts of a batch, and how often each occurs."""
        for text, count in counts.items():
            look = look_of(text, self.decimal)
            self.cells[look] += count
            if look == "number" and self.decimal in text:
                self.n_fractions += count
            if look == "other decimal" and _LOOKS["thousands"].fullmatch(text.strip()):
                self.n_thousands += count
            shown = self.examples.setdefault(look, [])
            if len(shown) <= _SHOWN and text not in shown:
                shown.append(text)


@dataclass(frozen=True)
class Judge:
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

    def text(self, name: str, looks: Looks, texts: Counter[str] | None) -> None:
        """Judge a column by its looks and its texts, which are None if there are too many."""
        odd = [text for text in texts or () if "\0" in text]
        if odd:
            raise zeros_error(name, self._shown(name, odd[:1]))
        n = looks.cells.total()
        judged = n - looks.cells["missing"]
        refusal = self._too_different(name, texts, n)
        if judged and name not in self.as_text:
            self.numbers(name, looks, texts, refusal is None)
            if looks.cells["date"] >= NEARLY_ALL * judged:
                shown = self._shown(name, looks.examples["date"][:1])
                raise date_error(name, f", such as {shown}", few=refusal is None)
        if refusal is not None and looks.cells["dressed"] >= NEARLY_ALL * judged > 0:
            shown = self._shown(name, looks.examples["dressed"][:1])
            raise _unadorned(name, "units, or in another spelling", shown, False)
        if refusal is not None:
            raise refusal

    def _too_different(self, name: str, texts: Counter[str] | None, n: int) -> TableError | None:
        """What is said of texts that cannot be categories, because they are too different."""
        if texts is None:
            return _too_many(name, f"more than {MOST_TEXTS:,} different texts")
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
            return _too_many(
                name,
                f"{len(texts):,} different texts in {n:,} rows, most of which are in fewer than "
                f"{max(self.min_rows, 2)} rows",
            )
        return None

    def numbers(
        self, name: str, looks: Looks, texts: Counter[str] | None, as_text: bool = True
    ) -> None:
        """Refuse a column of text that is meant as numbers; `as_text`: it may be categories."""
        cells = looks.cells
        n = cells.total() - cells["missing"]
        numbers, dressed = cells["number"], cells["other decimal"] + cells["thousands"]
        if dressed and numbers + dressed >= NEARLY_ALL * n:
            self._marks(name, looks, as_text)
        if cells["sign"] and numbers + dressed + cells["sign"] >= NEARLY_ALL * n:
            shown = self._shown(name, looks.examples["sign"][:1])
            raise _unadorned(name, "signs", shown, as_text)
        different = MANY_NUMBERS
        if texts is not None:
            different = sum(look_of(text, looks.decimal) == "number" for text in texts)
        if numbers == n:
            if different >= MANY_NUMBERS:  # of a Parquet file, say
                raise self._numbers_as_text(name, texts or (), as_text)
        elif numbers >= NEARLY_ALL * n or (numbers >= n / 2 and different >= MANY_NUMBERS):
            rest = (look for look in looks.examples if look not in ("number", "missing"))
            odd = [text for look in rest for text in looks.examples[look]]
            raise self._slips(name, odd, n - numbers, n, as_text)

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
            or (all_shown and look_of(text) in ("text", "dressed"))
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

    def _marks(self, name: str, looks: Looks, as_text: bool) -> None:
        """Refuse numbers with the other decimal point, or with separators between thousands."""
        other = looks.cells["other decimal"]
        thousands = "thousands" in looks.examples or looks.n_fractions > 0
        if looks.n_thousands == other and thousands:
            examples = looks.examples.get("thousands") or looks.examples["other decimal"]
            shown = self._shown(name, examples[:1])
            raise _unadorned(name, "separators between thousands", shown, as_text)
        if looks.n_fractions:  # then it is a slip
            return
        shown = self._shown(name, looks.examples["other decimal"][:1])
        mark = "comma" if looks.decimal == "." else "point"
        add = "add --decimal ," if looks.decimal == "." else "leave out --decimal ,"
        instead = "; if it separates thousands, remove it" if looks.n_thousands == other else ""
        raise TableError(
            f"Column {quoted([name])} has numbers with a {mark}, such as {shown}",
            f"write their decimals with the other mark{instead}",
            f"if it is a decimal {mark}, {add}{instead}; {typed('--drop', [name])} leaves the "
            "column out",
        )

    def _shown(self, name: str, texts: Sequence[str]) -> str:
        """Some cells, and where they stand."""
        found = {} if self.places is None else self.places(name, texts)
        return ", ".join(
            (quoted([text]) if text.strip() else repr(text))
            + (f" ({found[text]})" if text in found else "")
            for text in texts
        )


def check_categories(name: str, n_categories: int) -> None:
    """Raise TableError if a column has too many categories for a column each."""
    if n_categories > MOST_CATEGORIES:
        raise _too_many(name, f"{n_categories:,} different texts, too many for a column each")


def _unadorned(name: str, what: str, shown: str, as_text: bool) -> TableError:
    add = f"add {typed('--as-text', [name])} if they are names of categories, "
    return TableError(
        f"Column {quoted([name])} has numbers with {what}, such as {shown}",
        "write the numbers alone, or leave the column out",
        f"write the numbers alone, {add if as_text else ''}or leave the column out with "
        f"{typed('--drop', [name])}",
    )


def _too_many(name: str, what: str) -> TableError:
    return TableError(
        f"Column {quoted([name])} has {what}",
        "put them into fewer categories, or leave the column out",
        f"put them into fewer categories, or leave the column out with {typed('--drop', [name])}",
    )


def counts_rows(name: str, n: int, low: float, high: float, spread: float, rising: bool) -> bool:
    """Whether a column of whole numbers, none missing, is a number or key of the rows.

    Parameters
    ----------
    name : str
        Of the column.
    n : int
        How many there are.
    low, high, spread : float
        The least, the largest, and the sum of squared deviations from the mean.
    rising : bool
        Whether each is larger than the one before.
    """
    if n < FEW_ROWS:
        return False
    width = high - low + 1
    once = width == n and abs(spread - n * (n * n - 1) / 12) <= 1e-9 * spread
    return once or (rising and width <= 2 * n) or (width >= n and bool(_ID.fullmatch(name)))


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

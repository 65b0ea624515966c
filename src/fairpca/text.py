"""Text in the cells of a terminal: what is safe to print, how wide it is, and tables that fit."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Cells = Sequence[str]
Line = tuple[tuple[str, str], ...]
"""Pieces of a line, each with its part in the table: "", "head" or "worst"."""

WIDTH = 80
"""Columns of text whose reader's screen is not known: the narrowest that is usual."""

_LEFT_TO_RIGHT = "\u200e"
_WRITTEN = re.compile(
    "(?<=\\S)[\u200c\u200d](?=\\S)"  # join or part the letters of Persian, Indic scripts and emoji
    "|(?<=\U0001f3f4)[\U000e0061-\U000e007a\U000e0030-\U000e0039]+\U000e007f"  # flags of regions
)
"""Characters without a shape of their own that names are written with."""

_RIGHT_TO_LEFT = r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
_TURNED = re.compile(rf"{_RIGHT_TO_LEFT}(?:[^\w\n]*{_RIGHT_TO_LEFT})*")
"""Words in scripts that are written from right to left, with what stands between them."""

_GAP = "  "


def printable(line: str) -> str:
    """The line with characters that steer a terminal, or turn its direction, as escapes."""
    if line.isprintable():
        return line
    kept = [match.span() for match in _WRITTEN.finditer(line)]
    inside = {i for start, end in kept for i in range(start, end)}
    return "".join(
        c if c.isprintable() or i in inside else c.encode("unicode_escape").decode()
        for i, c in enumerate(line)
    )


def left_to_right(line: str) -> str:
    """The line with a mark behind words that are written from right to left.

    Without it, a terminal that turns such words would turn the numbers behind them, too.
    """
    return line if line.isascii() else _TURNED.sub(rf"\g<0>{_LEFT_TO_RIGHT}", line)


def cell_width(text: str) -> int:
    """How many cells of a terminal the text takes; joined emoji count one by one."""
    if text.isascii():
        return len(text)
    return sum(
        1 + (unicodedata.east_asian_width(c) in "WF")
        for c in unicodedata.normalize("NFC", text)
        if unicodedata.category(c) not in ("Mn", "Me", "Cf")
    )


def cut(text: str, width: int) -> str:
    """The text, which ends in … where it takes more cells."""
    if cell_width(text) <= width:
        return text
    end = 0
    while cell_width(text[: end + 1]) < width:
        end += 1
    return text[:end].rstrip("\u200d") + "…"  # which would join the next character


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most this many cells; words are never broken, so a long one may be longer."""
    lines, line, used = [], "", 0
    for word in text.split(" "):
        size = cell_width(word)
        if line and used + 1 + size > width:
            lines.append(line)
            line, used = word, size
        else:
            line, used = (f"{line} {word}", used + 1 + size) if line else (word, size)
    return [*lines, line]


@dataclass(frozen=True)
class TextTable:
    """A table to be printed: the first column to the left, the others to the right.

    One that is too wide is printed in parts, one below the other.

    Attributes
    ----------
    head : sequence of str
        A head may have several lines; shorter ones end on the last.
    body : sequence of rows
    worst : set of (row, column)
        Cells of the body that stand out where there is colour.
    """

    head: Cells
    body: Sequence[Cells]
    worst: frozenset[tuple[int, int]] = frozenset()

    def lines(self, width: int) -> list[Line]:
        """The lines, in as few parts as the width allows."""
        cells = [cell.split("\n") for cell in self.head]
        most = max(map(len, cells))
        heads = [*zip(*([""] * (most - len(cell)) + cell for cell in cells), strict=True)]
        rows = [*heads, *self.body]
        widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)]
        lines: list[Line] = []
        for columns in self._parts(widths, width):
            lines += [(("", ""),)] if lines else []
            lines += self._part(heads, [0, *columns], widths)
        return lines

    def _parts(self, widths: list[int], width: int) -> list[list[int]]:
        parts: list[list[int]] = [[]]
        for j in range(1, len(widths)):
            used = widths[0] + sum(len(_GAP) + widths[i] for i in [*parts[-1], j])
            if used > width and parts[-1]:
                parts.append([])
            parts[-1].append(j)
        return parts

    def _part(self, heads: Sequence[Cells], columns: list[int], widths: list[int]) -> list[Line]:
        def line(row: Cells, kind: str = "", i: int = -1) -> Line:
            pieces = []
            for j in columns:
                gap = " " * (widths[j] - cell_width(row[j]))
                cell = row[j] + gap if j == 0 else _GAP + gap + row[j]
                pieces.append((cell, "worst" if (i, j) in self.worst else kind))
            return tuple(pieces)

        rule: Line = (("-" * (sum(widths[j] + len(_GAP) for j in columns) - len(_GAP)), ""),)
        heads = [row for row in heads if any(row[j] for j in columns)]
        lines = [*(line(row, "head") for row in heads), rule]
        lines += [*(line(row, i=i) for i, row in enumerate(self.body)), rule]
        return lines


def laid_out(parts: Sequence[TextTable | str], width: int = WIDTH) -> str:
    """Tables and sentences as text of at most this many columns."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, TextTable):
            lines += ["".join(text for text, _ in line).rstrip() for line in part.lines(width)]
        else:
            lines += wrapped(printable(part), width)
    return "\n".join(map(left_to_right, lines))


# Names of groups and numbers as text, for messages and tables.

ALL = "(all)"
"""What a label has for columns that a group does not go by: ("Female", "(all)") are all women."""

_LONGEST_TEXT = 40
"""Cells of a name in tables and messages: longer ones are cut."""

MOST_ROWS = 40
"""Groups in a printed table: more would not stay on a screen."""

MOST_NAMES = 5
"""Names that a message lists."""

WHERE_ALL_ARE = "to_dict() and to_frame() have all"
"""Where the groups are that a printed table leaves out."""

_FIXED = (1e-3, 1e9)
"""Where numbers are written with decimals: smaller and larger ones would be rows of noughts."""


def label_text(label: Hashable, names: Sequence[str] | None = None) -> str:
    """How a group is called in tables: the parts of an intersection are joined.

    With `names`, those of several sensitive columns, each part has the name of its column.
    """
    if not isinstance(label, tuple):
        return str(label)
    several = names is not None and len(names) == len(label)
    parts = []
    for j, part in enumerate(label):
        if part == ALL:
            continue
        # A part alone needs a name: it may be a value of several columns.
        alone = label.count(ALL) > 0
        name = names[j] if names is not None and several else f"column {j + 1}" if alone else None
        parts.append(str(part) if name is None else f"{name}={part}")
    return " × ".join(parts)  # noqa: RUF001


def distinct_texts(labels: Sequence[Hashable], names: Sequence[str] | None = None) -> list[str]:
    """How groups are called where two must not be taken for one: 1 and "1", say."""
    texts = [label_text(label, names) for label in labels]
    return texts if len(set(texts)) == len(texts) else [repr(label) for label in labels]


def short_text(text: str) -> str:
    """The text on one line, safe to print, cut where it is long, for tables and messages."""
    return cut(printable(" ".join(text.split())), _LONGEST_TEXT)


def short_texts(texts: Sequence[str]) -> list[str]:
    """The same of several, with their ends where otherwise two would look alike."""
    short = [short_text(text) for text in texts]
    seen, half = Counter(short), _LONGEST_TEXT // 2
    for i, text in enumerate(texts):
        if seen[short[i]] > 1 and short[i].endswith("…"):
            line = printable(" ".join(text.split()))
            start = len(line) - half
            while cell_width(line[start:]) > half:
                start += 1
            short[i] = cut(line, half) + line[start:]
    return short


def group_name(label: Hashable, names: Sequence[str] | None = None) -> str:
    """A label as text on one line, cut short if it is very long."""
    return short_text(label_text(label, names))


def joined(texts: Sequence[str], most: int | None = MOST_NAMES) -> str:
    """The texts one after the other; beyond `most` of them only their number."""
    shown = texts[:most]
    more = f" and {len(texts) - len(shown)} more" if len(shown) < len(texts) else ""
    return ", ".join(shown) + more


def listed(names: Sequence[object], most: int | None = None) -> str:
    """The same of names, each in quotation marks."""
    return joined([quote(name) for name in names], most)


def in_rows(count: int) -> str:
    """A number of rows in words."""
    return f"{count:,} row{'' if count == 1 else 's'}"


def quote(name: object) -> str:
    """A name in quotation marks, safe to print.

    repr would also escape joined emoji, and once more what is an escape already.
    """
    if not isinstance(name, str) or (name.isprintable() and "\\" not in name):
        return repr(name)
    mark = '"' if "'" in name and '"' not in name else "'"
    return f"{mark}{printable(name)}{mark}"


def most_of(sizes: Sequence[float] | Any) -> tuple[list[int], str]:
    """Which rows of a table are printed: those with the largest sizes; and what is said of it."""
    k = len(sizes)
    if k <= MOST_ROWS:
        return list(range(k)), ""
    largest = sorted(range(k), key=lambda i: -sizes[i])[:MOST_ROWS]
    return sorted(largest), (
        f"The table has the {MOST_ROWS} groups with the largest disparities, of {k:,}; "
        f"{WHERE_ALL_ARE}."
    )


def number_format(columns: Iterable[Iterable[float]]) -> str:
    """Decimals that show four figures of the largest number; powers of ten beyond `_FIXED`."""
    largest = max((abs(value) for values in columns for value in values), default=0.0)
    if not math.isfinite(largest) or largest == 0.0:
        return ".4f"
    if not _FIXED[0] <= largest < _FIXED[1]:
        return ".3e"
    return f".{max(3 - math.floor(math.log10(largest)), 4)}f" if largest < 1e4 else ",.1f"


def formatted(value: float, form: str, least: float = math.inf) -> str:
    """The number in this form, without the sign of a zero.

    A number that is at least `least` is never shown as zero: it has two figures then.
    """
    text = f"{value:{form}}"
    if float(text.replace(",", "")) != 0.0:
        return text
    return f"{value:.2g}" if value != 0.0 and abs(value) >= least else text.lstrip("-")


def html_parts(parts: Sequence[TextTable | str]) -> str:
    """Tables and sentences as HTML, escaped; the first cell of each row of a table is a head."""
    shown = []
    for part in parts:
        if isinstance(part, str):
            shown += [f"<p>{html.escape(part)}</p>"] * bool(part)
            continue
        body = "".join(_html_row(row, "td") for row in part.body)
        head = f"<thead>{_html_row(part.head, 'th')}</thead>"
        shown.append(f"<table>{head}<tbody>{body}</tbody></table>")
    return "".join(shown)


class Printed:
    """What is printed, and shown in a notebook, as tables and sentences: its `text_parts`."""

    def text_parts(self) -> Sequence[TextTable | str]:
        """What is printed."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return laid_out(self.text_parts())

    def _repr_html_(self) -> str:
        return html_parts(self.text_parts())


def _html_row(cells: Cells, tag: str) -> str:
    name, *values = map(html.escape, cells)
    scope = "col" if tag == "th" else "row"
    rest = "".join(f'<{tag} style="text-align: right">{value}</{tag}>' for value in values)
    return f'<tr><th scope="{scope}" style="text-align: left">{name}</th>{rest}</tr>'

"""Names of groups and numbers as text, for messages and tables."""

import html
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from fairpca._rows.cells import Cells, cell_width, cut, printable

ALL = "(all)"
"""What a label has for columns that a group does not go by: ("Female", "(all)") are all women."""

_LONGEST_TEXT = 40
"""Cells of a name in tables and messages: longer ones are cut."""

MOST_ROWS = 40
"""Groups in a printed table: more would not stay on a screen."""

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
    return cut(_one_line(text), _LONGEST_TEXT)


def short_texts(texts: Sequence[str]) -> list[str]:
    """The same of several, with their ends where otherwise two would look alike."""
    short = [short_text(text) for text in texts]
    seen = Counter(short)
    return [
        _with_end(_one_line(text)) if seen[cut_text] > 1 and cut_text.endswith("…") else cut_text
        for text, cut_text in zip(texts, short, strict=True)
    ]


def _with_end(line: str) -> str:
    """A long line cut in the middle."""
    half = _LONGEST_TEXT // 2
    start = len(line) - half
    while cell_width(line[start:]) > half:
        start += 1
    return cut(line, half) + line[start:]


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def group_name(label: Hashable, names: Sequence[str] | None = None) -> str:
    """A label as text on one line, cut short if it is very long."""
    return short_text(label_text(label, names))


def listed(names: Sequence[object], most: int | None = None) -> str:
    """The names as text; beyond `most` of them only their number."""
    shown = names if most is None else names[:most]
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return ", ".join(map(quote, shown)) + more


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


def html_table(head: Cells, body: Sequence[Cells], foot: Cells | None = None) -> str:
    """The table as HTML, escaped; the first cell of each row is a head."""
    last = "" if foot is None else f"<tfoot>{_html_row(foot, 'td')}</tfoot>"
    return (
        f"<table><thead>{_html_row(head, 'th')}</thead>"
        f"<tbody>{''.join(_html_row(row, 'td') for row in body)}</tbody>{last}</table>"
    )


def _html_row(cells: Cells, tag: str) -> str:
    name, *values = map(html.escape, cells)
    scope = "col" if tag == "th" else "row"
    rest = "".join(f'<{tag} style="text-align: right">{value}</{tag}>' for value in values)
    return f'<tr><th scope="{scope}" style="text-align: left">{name}</th>{rest}</tr>'

"""Names of groups and numbers as text, for messages and tables."""

import html
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

Cells = Sequence[str]

ALL = "(all)"
"""What a label has for columns that a group does not go by: ("Female", "(all)") are all women."""

_LONGEST_TEXT = 40
"""Characters of a name in tables and messages: longer ones are cut."""


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
    """The text on one line, cut where it is long, for tables and messages."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 1] + "…"


def group_name(label: Hashable, names: Sequence[str] | None = None) -> str:
    """A label as text on one line, cut short if it is very long."""
    return short_text(label_text(label, names))


def listed(names: Sequence[object], most: int | None = None) -> str:
    """The names as text; beyond `most` of them only their number."""
    shown = names if most is None else names[:most]
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return ", ".join(repr(name) for name in shown) + more


def number_format(columns: Iterable[Iterable[float]]) -> str:
    """Decimals that show four figures of the largest number; powers of ten where it is tiny."""
    largest = max((abs(value) for values in columns for value in values), default=0.0)
    if not np.isfinite(largest) or largest == 0.0:
        return ".4f"
    if largest < 1e-12:
        return ".3e"
    return f".{max(3 - int(np.floor(np.log10(largest))), 4)}f" if largest < 1e4 else ".1f"


def formatted(value: float, form: str) -> str:
    """The number in this form, without the sign of a zero."""
    text = f"{value:{form}}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0.0 else text


def text_table(head: Cells, body: Sequence[Cells], foot: Cells | None = None) -> str:
    """The table as text: the first column to the left, the others to the right.

    A head may have several lines; shorter ones end on the last.
    """
    heads = _lines(head)
    rows = [*heads, *body] if foot is None else [*heads, *body, foot]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])])
        for first, *rest in rows
    ]
    rule = "-" * len(lines[0])
    first, last = len(heads), len(heads) + len(body)
    return "\n".join([*lines[:first], rule, *lines[first:last], rule, *lines[last:]])


def _lines(head: Cells) -> list[Cells]:
    """A head as rows of one line each."""
    cells = [cell.split("\n") for cell in head]
    most = max(map(len, cells))
    return list(zip(*([""] * (most - len(cell)) + cell for cell in cells), strict=True))


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

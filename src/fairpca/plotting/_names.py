"""Names of groups and columns as matplotlib can draw them.

What the fonts of ``rcParams["font.family"]`` lack is written as its code point rather than drawn as
an empty box: two names of boxes could not be told apart. Arabic and Hebrew are drawn by matplotlib
3.11 and newer, which join letters and order them; older versions get Hebrew and Arabic in the order
in which they are read, with letters that are not joined.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any

from fairpca._rows.text import group_name

_SHAPING = (3, 11)
"""The version of matplotlib from which on it shapes text."""

_LEFT_TO_RIGHT = "\u200e"
"""Keeps what stands beside a name from right to left, such as its number of rows, in its place."""

_DIRECTIONS = re.compile("[\u061c\u200d-\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks that turn the direction of what follows, as a name must not turn what stands beside it, and
that which joins emoji."""

_BACKWARDS = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc][\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc ]*"
)


def plain_text(label: Hashable, names: Sequence[str] | None = None) -> str:
    """A label as plain text: short, on one line, with no formula in it, as fonts can draw it."""
    text = _DIRECTIONS.sub("", group_name(label, names))
    text = "".join(char if _can_be_drawn(char) else _code(char) for char in text)
    if _BACKWARDS.search(text):
        text = f"{_LEFT_TO_RIGHT}{text}{_LEFT_TO_RIGHT}" if _shapes() else _as_read(text)
    # A legend leaves out what begins with an underscore.
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def with_rows(label: Hashable, count: int, names: Sequence[str] | None = None) -> str:
    """A group and its number of rows."""
    return f"{plain_text(label, names)} ({count:,} rows)"


def wrapped(text: str, width: int) -> str:
    """A text in lines of at most so many letters."""
    return "\n".join(textwrap.wrap(text, width)) or text


def _as_read(text: str) -> str:
    """The text with parts from right to left turned around, for what draws from left to right."""
    return _BACKWARDS.sub(lambda part: _turned(part[0]), text)


def _turned(part: str) -> str:
    return part.rstrip()[::-1] + " " * (len(part) - len(part.rstrip()))


def _code(char: str) -> str:
    """A character that cannot be drawn: its code point, or nothing if it only adorns others."""
    joins = unicodedata.category(char) in ("Cf", "Mn")
    return "" if joins else char.encode("unicode_escape", "surrogatepass").decode("ascii")


def _can_be_drawn(char: str) -> bool:
    return char == " " or any(font.get_char_index(ord(char)) for font in _fonts())


def _fonts() -> list[Any]:
    """The fonts in which text is drawn now."""
    from matplotlib.font_manager import FontProperties

    return [font for family in FontProperties().get_family() if (font := _font(family))]


@cache
def _font(family: str) -> Any:
    """The font of a family; None if it is not there."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    try:
        return get_font(findfont(FontProperties(family=[family]), fallback_to_default=False))
    except ValueError:
        return None


@cache
def _shapes() -> bool:
    """Whether matplotlib joins and orders letters."""
    import matplotlib as mpl

    return tuple(map(int, re.findall(r"\d+", mpl.__version__)[:2])) >= _SHAPING

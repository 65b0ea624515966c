"""What all displays share: colours, axes to draw on, keywords of matplotlib, legends and names.

What the fonts of ``rcParams["font.family"]`` lack is written as its code point rather than drawn as
an empty box: two names of boxes could not be told apart. Arabic and Hebrew are drawn by matplotlib
3.11 and newer, which join letters and order them; older versions get Hebrew and Arabic in the order
in which they are read, with letters that are not joined.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fairpca.text import group_name

PCA_COLOR, FAIR_COLOR, OWN_COLOR, INK = "#b04a00", "#0067a3", "#868f99", "#1b1f24"
"""One colour for one thing in every picture, and in the report (`report/templates/page.css`)."""

CHOSEN_COLOR = INK

Style = Mapping[str, Any] | None
"""Keywords of matplotlib, which replace those of a display."""

GROUP_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of groups, by Okabe and Ito, which colour-blind readers can tell apart."""

GROUP_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*")
"""As many are used as there are colours and three more, so that 70 groups look different."""

_WIDTH = 7.5
"""Inches of a picture without its legend."""

_LONGEST_LEGEND = 20
"""Groups in one column of a legend."""

_SHAPING = (3, 11)
"""The version of matplotlib from which on it shapes text."""

_LEFT_TO_RIGHT = "\u200e"
"""Keeps what stands beside a name from right to left, such as its number of rows, in its place."""

_DIRECTIONS = re.compile("[\u061c\u200d-\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks that turn the direction of what follows, as a name must not turn what stands beside it, and
that which joins emoji."""

_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_BACKWARDS = re.compile(f"[{_RIGHT_TO_LEFT}](?:[{_RIGHT_TO_LEFT} ]*[{_RIGHT_TO_LEFT}])?")
"""Words from right to left, with the spaces between them."""


@dataclass(eq=False)
class Display:
    """A picture on one pair of axes."""

    ax_: Any = field(init=False, default=None, repr=False)
    figure_: Any = field(init=False, default=None, repr=False)
    _is_own: bool = field(init=False, default=False, repr=False)

    def _on(self, ax: Any, height: float = 4.5) -> Any:
        """The axes to draw on: those that are given, or new ones."""
        self._is_own = ax is None
        if ax is None:
            _, ax = _pyplot().subplots(figsize=(_WIDTH, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _name_things(self, **options: Any) -> None:
        """A legend of a few things that are no groups: above axes of our own."""
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 3, "borderpad": 0.2}
        self.ax_.legend(frameon=False, **(above if self._is_own else {}) | options)

    def _name_groups(self, **options: Any) -> None:
        """A legend with groups, in a figure of our own to the right of the axes."""
        ax, figure = self.ax_, self.figure_
        n = len(options.get("handles") or ax.get_legend_handles_labels()[0])
        if not self._is_own:
            # Not where matplotlib finds room, as what is drawn next would not know of it.
            inside = {"framealpha": 0.7, "edgecolor": "none", "fontsize": "small"}
            ax.legend(loc="upper right", **inside | options)
            return
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
        options["ncols"] = -(-n // _LONGEST_LEGEND)
        legend = ax.legend(**beside | options)
        figure.draw_without_rendering()
        extent = legend.get_window_extent()
        figure.set_figwidth(_WIDTH + extent.width / figure.dpi)
        figure.set_figheight(max(figure.get_figheight(), extent.height / figure.dpi + 0.5))


def styled(artist: str, defaults: Mapping[str, Any], given: Style) -> dict[str, Any]:
    """Keywords for matplotlib: those given, under any of their names, replace the defaults."""
    from matplotlib import cbook, collections, lines, patches, text

    kinds = (lines.Line2D, patches.Rectangle, collections.PathCollection, text.Text)
    kind = next(kind for kind in kinds if kind.__name__ == artist)
    wanted: dict[str, Any] = cbook.normalize_kwargs(dict(given or {}), kind)
    if "c" in wanted:  # of a scatter, where it is no other name of "color" but excludes it
        defaults = {name: value for name, value in defaults.items() if name != "color"}
    return cbook.normalize_kwargs(dict(defaults), kind) | wanted


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: install `fairpca[plot]`.") from error
    return plt


def plain_text(label: Hashable, names: Sequence[str] | None = None) -> str:
    """A label as plain text: short, on one line, with no formula in it, as fonts can draw it."""
    text = _drawable(_DIRECTIONS.sub("", group_name(label, names)))
    if _BACKWARDS.search(text):
        # What does not shape text draws from left to right.
        text = (
            f"{_LEFT_TO_RIGHT}{text}{_LEFT_TO_RIGHT}"
            if _shapes()
            else _BACKWARDS.sub(lambda part: part[0][::-1], text)
        )
    # A legend leaves out what begins with an underscore.
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def with_rows(label: Hashable, count: int, names: Sequence[str] | None = None) -> str:
    """A group and its number of rows."""
    return f"{plain_text(label, names)} ({count:,} rows)"


def wrapped(text: str, width: int) -> str:
    """A text in lines of at most `width` letters."""
    return "\n".join(textwrap.wrap(text, width)) or text


def _drawable(text: str) -> str:
    """The text with code points for what the fonts lack, without what only adorns others."""
    from matplotlib.font_manager import FontProperties

    fonts = [font for family in FontProperties().get_family() if (font := _font(family))]
    chars = []
    for char in text:
        if char == " " or any(font.get_char_index(ord(char)) for font in fonts):
            chars.append(char)
        elif unicodedata.category(char) not in ("Cf", "Mn"):
            chars.append(char.encode("unicode_escape", "surrogatepass").decode("ascii"))
    return "".join(chars)


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

"""Names and numbers as a report shows them.

Text from outside is on one line, short, harmless and distinct. The page's script has the same rules
for numbers.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import count

from fairpca.certificate import rounded
from fairpca.text import short_texts

_JOINERS = "\u200c\u200d"
"""Format characters that emoji and some scripts need."""

_UNSEEN = dict.fromkeys(map(ord, _JOINERS))
_KEPT = "\n\t" + _JOINERS
_STEERING = ("Cc", "Cf", "Cs", "Co", "Cn")
"""Unicode's categories of characters that steer what stands beside them, or have no meaning."""

_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters that show nothing."""

_RAISED = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)
"""Digits of a power."""


def shown_names(names: Sequence[str]) -> list[str]:
    """The names, cut where they are long, numbered where they would look the same."""
    cleaned = short_texts([harmless(name) for name in names])
    cleaned = [name if name.strip(_JOINERS + _BLANK + " ") else "(no name)" for name in cleaned]
    looks = Counter(name.translate(_UNSEEN) for name in cleaned)
    used = {look for look, times_seen in looks.items() if times_seen == 1}
    shown = []
    for name in cleaned:
        if looks[name.translate(_UNSEEN)] > 1:
            numbered = (f"{name} ({number})" for number in count(1))
            name = next(other for other in numbered if other.translate(_UNSEEN) not in used)
            used.add(name.translate(_UNSEEN))
        shown.append(name)
    return shown


def in_quotes(name: str) -> str:
    """The name for the middle of a sentence: its direction and its words stay its own."""
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in name):
        name = f"\u2068{name}\u2069"
    return f"“{name}”"


def harmless(text: str) -> str:
    """The text without characters that steer, hide or turn around what stands beside them."""
    return "".join(
        c if c in _KEPT or unicodedata.category(c) not in _STEERING else "\ufffd" for c in text
    )


def number(value: float | None, rounding: float = 0.0) -> str:
    """Four figures; a dash for what is not known, zero for what rounding alone can be."""
    if value is None:
        return "–"  # noqa: RUF001
    size = abs(value)
    if size <= rounding:
        return "0"
    if 1e-5 <= size < 1e9:
        return f"{float(f'{value:.4g}'):,.10f}".rstrip("0").rstrip(".")
    mantissa, exponent = f"{value:.3e}".split("e")
    power = str(int(exponent)).translate(_RAISED)
    return f"{mantissa.rstrip('0').rstrip('.')}\u00a0\u00d7\u00a010{power}"


def percent(share: float, *, up: bool | None = None) -> str:
    """A share as per cent, with two or three figures; rounded to one side where `up` says so."""
    value = max(100.0 * share, 0.0)
    if 0.0 < value < 0.001 and up is not False:
        return "0.001 %" if up else "less than 0.001 %"
    figures = 2 if value < 1.0 else 3
    text = rounded(value, figures, up=up) if up is not None else f"{value:.{figures}g}"
    return f"{float(text):,.10f}".rstrip("0").rstrip(".") + " %"

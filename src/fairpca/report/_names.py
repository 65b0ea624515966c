"""Text from outside as it is shown: on one line, short, harmless and distinct."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import count

from fairpca._rows.text import short_text

_JOINERS = "\u200c\u200d"
"""Format characters that emoji and some scripts need."""

_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters that show nothing."""


def shown_names(names: Sequence[str]) -> list[str]:
    """The names, cut where they are long, numbered where they would look the same."""
    cleaned = [_name(name) for name in names]
    looks = Counter(map(_look, cleaned))
    used = {_look(name) for name in cleaned if looks[_look(name)] == 1}
    shown = []
    for name in cleaned:
        if looks[_look(name)] > 1:
            numbered = (f"{name} ({number})" for number in count(1))
            name = next(other for other in numbered if _look(other) not in used)
            used.add(_look(name))
        shown.append(name)
    return shown


def in_quotes(name: str) -> str:
    """The name for the middle of a sentence: its direction and its words stay its own."""
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in name):
        name = f"\u2068{name}\u2069"
    return f"“{name}”"


def harmless(text: str) -> str:
    """The text without characters that steer, hide or turn around what stands beside them."""
    return "".join("\ufffd" if _steers(character) else character for character in text)


def _name(text: str) -> str:
    name = short_text(harmless(" ".join(text.split())))
    return name if name.strip(_JOINERS + _BLANK + " ") else "(no name)"


def _look(name: str) -> str:
    return "".join(character for character in name if character not in _JOINERS)


def _steers(character: str) -> bool:
    if character in "\n\t" or character in _JOINERS:
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn")

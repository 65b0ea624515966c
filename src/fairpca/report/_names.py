"""Names from the data as they are shown: on one line, short, harmless and distinct."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from fairpca._groups import short_text

_JOINERS = "\u200c\u200d"
"""Format characters that emoji and some scripts need."""


def shown_names(names: Sequence[str]) -> list[str]:
    """The names, cut where they are long, numbered where they would look the same."""
    cleaned = [short_text("".join(map(_visible, name))) or "(no name)" for name in names]
    if len(set(cleaned)) == len(cleaned):
        return cleaned
    seen: dict[str, int] = {}
    numbered = []
    for name in cleaned:
        seen[name] = seen.get(name, 0) + 1
        numbered.append(name if cleaned.count(name) == 1 else f"{name} ({seen[name]})")
    return numbered


def isolated(name: str) -> str:
    """The name for the middle of a sentence, whose direction it must not turn."""
    if all(unicodedata.bidirectional(character) not in ("R", "AL", "AN") for character in name):
        return name
    return f"\u2068{name}\u2069"


def _visible(character: str) -> str:
    if character.isspace():
        return " "
    steers = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn")
    return "\ufffd" if steers and character not in _JOINERS else character

"""What is said of a table that is refused, for Python and for the program."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Sequence


class TableError(ValueError):
    """A table that is refused, in one sentence that ends in what can be done about it.

    Parameters
    ----------
    problem : str
        What is wrong, without a full stop. "It" at the beginning is the file.
    remedy : str
        What can be done, in words that are true for every reader of the message.
    in_options : str, default=None
        The same in the program's options; None if they have nothing to add.

    Attributes
    ----------
    in_options : str
        The sentence for those who called the program.
    """

    def __init__(self, problem: str, remedy: str, in_options: str | None = None) -> None:
        super().__init__(f"{problem}: {remedy}.")
        self.in_options = f"{problem}: {in_options or remedy}."
        self._parts: tuple[str, str, str | None] = (problem, remedy, in_options)

    @property
    def problem(self) -> str:
        """What is wrong, without the remedy."""
        return self._parts[0]

    def of_file(self, shown: str) -> TableError:
        """The same with the name of the file in front, or in the place of "It"."""
        problem, remedy, in_options = self._parts
        begin = f"{shown} {problem[3:]}" if problem.startswith("It ") else f"{shown}: {problem}"
        return TableError(begin, remedy, in_options)


def typed(option: str, values: Iterable[str]) -> str:
    """An option as it is typed in a shell, once for each value."""
    return " ".join(f"{option} {_quoted(value)}" for value in values)


def _quoted(value: str) -> str:
    """The value as one word of a shell, and of one line."""
    if not any(mark in value for mark in "\n\r\t"):
        return shlex.quote(value)
    for mark, written in {"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t"}.items():
        value = value.replace(mark, written)
    return f"$'{value}'"


def meant(name: str, known: Sequence[str]) -> str | None:
    """The name that someone who typed this one may have meant."""
    plain = {_plain(other): other for other in reversed(known)}
    close = difflib.get_close_matches(_plain(name), plain, 1, 0.75)
    return plain[close[0]] if close else None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum()) or name

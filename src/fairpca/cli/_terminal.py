"""What is said to the user: results, one-line errors, warnings, and signs of life."""

from __future__ import annotations

import json
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fairpca.cli._status_line import StatusLine, on_a_terminal
from fairpca.exceptions import FairnessWarning

_PATIENCE = 2.0
"""Seconds after which work that is still going on says what it does."""

_PATIENCE_ON_A_TERMINAL = 0.5
"""The same where the words go when the work is done."""

_line: StatusLine | None = None
"""What the terminal shows at the moment."""


class BadInputError(Exception):
    """The input is at fault; the message is one sentence for the user."""


@contextmanager
def refusing(where: str = "") -> Iterator[None]:
    """Take what the library refuses in the body for bad input."""
    try:
        yield
    except (ValueError, ImportError) as error:
        said = _in_options(str(error))
        raise BadInputError(f"{where}: {said}" if where else said) from error


def prepare_streams() -> None:
    """Let characters that the terminal cannot show be written as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print lines of a result."""
    print("\n".join(printable(line) for line in text.split("\n")))


def say_json(result: dict[str, Any]) -> None:
    """Print a result as JSON, in ASCII."""
    print(json.dumps(_finite(result), indent=2, allow_nan=False))


def complain(message: str) -> None:
    """Print one line on the error stream."""
    if _line is not None:
        _line.erase()
    print(_as_line(" ".join(message.split())), file=sys.stderr, flush=True)


def printable(line: str) -> str:
    """The line with characters that steer a terminal, or turn its direction, as escapes."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def show_warning(message: Warning | str, category: type[Warning], *where: Any, **how: Any) -> None:
    """Print the library's own warnings in one line; those of others are for programmers."""
    if issubclass(category, FairnessWarning):
        complain(f"warning: {_in_options(str(message))}")


@contextmanager
def stage(doing: str) -> Iterator[Callable[[str, int, int], None]]:
    """Say what is being done in the body, if it takes long.

    On a terminal that is a line which goes at the end, and which the body can change with what it
    is given here: a function of what is being done, how much of it is done, and how much there is.
    """
    if on_a_terminal():
        with _showing(doing) as line:
            yield lambda what, done, total: line.say(_as_line(f"{what} {done:,}/{total:,}"))
        return
    started = time.monotonic()
    timer = threading.Timer(_PATIENCE, complain, [f"{doing} …"])
    timer.daemon = True
    timer.start()
    try:
        yield lambda what, done, total: None
    finally:
        timer.cancel()
    seconds = time.monotonic() - started
    if seconds > _PATIENCE:
        complain(f"{doing} took {seconds:.0f} s.")


@contextmanager
def _showing(doing: str) -> Iterator[StatusLine]:
    global _line
    with StatusLine(_as_line(f"{doing} …"), _PATIENCE_ON_A_TERMINAL) as line:
        _line = line
        try:
            yield line
        finally:
            _line = None


def _in_options(message: str) -> str:
    """What the library says of a parameter as said of the option, which is what the user typed."""
    return re.sub(r"^sensitive_features\b", "--sensitive", message)


def _as_line(text: str) -> str:
    return f"fairpca: {printable(text)}"


def _finite(value: Any) -> Any:
    """The value with null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

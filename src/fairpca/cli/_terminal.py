"""What is said to the user: results, one-line errors, warnings, and signs of life."""

import json
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from fairpca.exceptions import FairnessWarning

_PATIENCE = 2.0
"""Seconds after which work that is still going on says what it does."""

_PATIENCE_ON_A_TERMINAL = 0.5
"""The same where the words go when the work is done."""

_shown: Live | None = None
_warned: list[str] = []
"""What the terminal shows at the moment."""


class BadInputError(Exception):
    """The input is at fault; the message is one sentence for the user."""


@contextmanager
def refusing(where: str = "") -> Iterator[None]:
    """Take what the library refuses in the body for bad input."""
    try:
        yield
    except (ValueError, ImportError) as error:
        said = _in_options(getattr(error, "in_options", str(error)))
        raise BadInputError(f"{where}: {said}" if where else said) from error


def say(text: str) -> None:
    """Print lines of a result."""
    print("\n".join(printable(line) for line in text.split("\n")))


def say_json(result: dict[str, Any]) -> None:
    """Print a result as JSON, in ASCII."""
    print(json.dumps(_finite(result), indent=2, allow_nan=False))


def show(
    as_json: bool,
    data: Callable[[], dict[str, Any]],
    words: Callable[[], Iterable[str]],
    **written: Path | None,
) -> None:
    """Print a result, as JSON or in words, and the files that were written."""
    if as_json:
        paths = {name: None if path is None else str(path) for name, path in written.items()}
        say_json(data() | paths | {"warnings": _warned})
        return
    for text in words():
        say(text)
    for name, path in written.items():
        if path is not None:
            say(f"{'Report' if name == 'report' else 'Written'}: {path}")


def complain(message: str) -> None:
    """Print one line on the error stream."""
    line = _as_line(" ".join(message.split()))
    if _shown is None:
        print(line, file=sys.stderr, flush=True)
    else:  # above the line that shows what is being done
        _shown.console.print(Text(line), soft_wrap=True)


def printable(line: str) -> str:
    """The line with characters that steer a terminal, or turn its direction, as escapes."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def forget_warnings() -> None:
    """Begin anew with what is said of a command in JSON."""
    _warned.clear()


def show_warning(message: Warning | str, category: type[Warning], *where: Any, **how: Any) -> None:
    """Print the library's own warnings in one line; those of others are for programmers."""
    if issubclass(category, FairnessWarning):
        text = _in_options(str(message))
        _warned.append(text)
        complain(f"warning: {text}")


@contextmanager
def stage(doing: str) -> Iterator[Callable[[str, int, int], None]]:
    """Say what is being done in the body, if it takes long.

    On a terminal that is a line which goes at the end, and which the body can change with what it
    is given here: a function of what is being done, how much of it is done, and how much there is.
    """
    global _shown
    started = time.monotonic()
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        console = Console(file=sys.stderr, force_terminal=True)
        _shown = Live(_cropped(f"{doing} …"), console=console, transient=True)
        timer = threading.Timer(_PATIENCE_ON_A_TERMINAL, _shown.start)
    else:
        timer = threading.Timer(_PATIENCE, complain, [f"{doing} …"])
    timer.daemon = True
    timer.start()

    def progress(what: str, done: int, total: int) -> None:
        if _shown is not None:
            _shown.update(_cropped(f"{what} {done:,}/{total:,}"))

    try:
        yield progress
    finally:
        timer.cancel()
        timer.join()
        line, _shown = _shown, None
        if line is not None:
            line.stop()
    seconds = time.monotonic() - started
    if line is None and seconds > _PATIENCE:
        complain(f"{doing} took {seconds:.0f} s.")


def _cropped(text: str) -> Text:
    """The text on one line: of a line that is broken in two only one half would go."""
    return Text(_as_line(text), no_wrap=True, overflow="crop")


def _in_options(message: str) -> str:
    """What the library says of a parameter as said of the option, which is what the user typed."""
    message = message.replace('FairPCA(shrinkage="auto")', "fairpca fit --shrinkage auto")
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

"""What is said to the user: results, one-line errors, warnings, and signs of life.

On a terminal, sentences wrap at spaces and tables fit its width, with colour unless NO_COLOR is
set. Elsewhere there is no colour, a sentence is one line, and tables have at most 80 columns.
"""

import json
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from fairpca.exceptions import FairnessWarning
from fairpca.text import (
    WHERE_ALL_ARE,
    WIDTH,
    Line,
    TextTable,
    left_to_right,
    listed,
    printable,
    wrapped,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text


_PATIENCE = 2.0
"""Seconds after which work that is still going on says what it does."""

_PATIENCE_ON_A_TERMINAL = 0.5
"""The same where the words go when the work is done."""

WIDEST = 120
"""Columns beyond which sentences and help do not go: longer lines are hard to read."""

STDOUT = "standard output"
"""What is named where that cannot be written to."""

_STYLES = {"head": "bold", "worst": "bold red", "refusal": "bold red", "warning": "bold yellow"}

_shown: "Live | None" = None
"""What the terminal shows at the moment."""

warned: list[str] = []
"""Of what a command has warned so far."""


class BadInputError(Exception):
    """The input is at fault; the message has a sentence on each line, and perhaps what to add."""


class Heading(str):
    """A line above what it is about."""


@contextmanager
def refusing() -> Iterator[None]:
    """Take what the library refuses in the body for bad input."""
    try:
        yield
    except (ValueError, ImportError) as error:
        raise refusal([error, *getattr(error, "also", ())]) from error


def refusal(errors: Sequence[Any], sure: bool = True) -> BadInputError:
    """What is said of what is refused and, of tables (`TableError`), what to add to be rid of it.

    `sure` says that the table can be used with that.
    """
    from fairpca.tables.columns import typed_options

    said = (in_options(getattr(each, "in_options", str(each))) for each in errors)
    lines = [re.sub(r"\s*\n\s*", " ", sentence) for sentence in said]
    if fix := fixes(errors):
        lines.append(f"{'add' if sure else 'then add'}: {typed_options(fix)}")
    return BadInputError("\n".join(dict.fromkeys(lines)))


def fixes(errors: Sequence[Any]) -> dict[str, Any]:
    """The options that help against errors; of one that takes many values all are kept."""
    found: dict[str, Any] = {}
    for error in errors:
        for name, value in getattr(error, "fix", {}).items():
            several = isinstance(value, tuple)
            found[name] = (*dict.fromkeys((*found.get(name, ()), *value)),) if several else value
    return found


@contextmanager
def to_stdout() -> Iterator[None]:
    """Let an error of the body say that it is one of writing the result."""
    try:
        yield
    except OSError as error:
        error.filename = STDOUT
        raise


def show(
    as_json: bool,
    data: Callable[[], dict[str, Any]],
    words: Iterable[TextTable | str],
    **files: Path | None,
) -> None:
    """Print a result, as JSON in ASCII or in words, and the files that were written."""
    if as_json:
        paths = {name: None if path is None else str(path) for name, path in files.items()}
        result = _finite(data() | paths | {"warnings": warned})
        with to_stdout():
            print(json.dumps(result, indent=2, allow_nan=False))
        return
    console = _console(sys.stdout)
    written_files = [
        f"{'Report' if name == 'report' else 'Written'}: {path}"
        for name, path in files.items()
        if path is not None
    ]
    for part in [*words, *written_files]:
        if isinstance(part, TextTable):
            lines = part.lines(console.width if console else WIDTH)
        else:
            style = "head" if isinstance(part, Heading) else ""
            lines = [((line, style),) for line in _lines(part, console)]
        with to_stdout():
            _print(lines, sys.stdout, console)


def complain(message: str, style: str = "") -> None:
    """Print a message on the error stream; on a terminal, in as many lines as its width needs."""
    console = _console(sys.stderr) if _shown is None else _shown.console
    above, *below = message.split("\n")
    first, *rest = _lines("\n".join([f"fairpca: {above}", *below]), console)
    # The name of the program, or with the word behind it that says what this is, stands out.
    end = len("fairpca: warning:" if message.startswith("warning: ") else "fairpca:")
    lines = [((first[:end], style), (first[end:], "")), *(((line, ""),) for line in rest)]
    _print(lines, sys.stderr, console)


def show_warning(message: Warning | str, category: type[Warning], *where: Any, **how: Any) -> None:
    """Print the library's own warnings in one line; those of others are for programmers."""
    if issubclass(category, FairnessWarning):
        text = " ".join(in_options(str(message)).split())
        warned.append(text)
        complain(f"warning: {text}", "warning")


@contextmanager
def stage(doing: str) -> Iterator[Callable[[str, int, int], None]]:
    """Say what is being done in the body, if it takes long.

    On a terminal that is a line which goes at the end, and which the body can change with what it
    is given here: a function of what is being done, how much of it is done, and how much there is.
    """
    global _shown
    started = time.monotonic()
    console = _console(sys.stderr)
    if console is not None:
        from rich.live import Live

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


def _console(stream: TextIO) -> "Console | None":
    """A console for a stream that is a terminal; None for others."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None
    from rich.console import Console

    # By itself, rich would take FORCE_COLOR for a terminal.
    return Console(file=stream, force_terminal=True, highlight=False, markup=False, emoji=False)


def _lines(text: str, console: "Console | None") -> list[str]:
    """Text as lines that are safe to print, and no wider than the console."""
    lines = [printable(line) for line in text.split("\n")]
    if console is None:
        return lines
    width = min(console.width, WIDEST)
    return [part for line in lines for part in wrapped(line, width)]


def _print(lines: Iterable[Line], stream: TextIO, console: "Console | None") -> None:
    if console is None:
        for line in lines:
            text = left_to_right("".join(text for text, _ in line).rstrip())
            print(text, file=stream, flush=stream is sys.stderr)
        return
    from rich.text import Text

    for line in lines:
        pieces = [(left_to_right(text), _STYLES.get(kind, "")) for text, kind in line]
        console.print(Text.assemble(*pieces), soft_wrap=True)


def _cropped(text: str) -> "Text":
    """The text on one line: of a line that is broken in two only one half would go."""
    from rich.text import Text

    return Text(f"fairpca: {printable(text)}", no_wrap=True, overflow="crop")


def in_options(message: str) -> str:
    """What the library says of parameters as said of options, which are what the user typed."""
    message = message.replace(WHERE_ALL_ARE, "--json has all")
    message = re.sub(r"criterion='(\w+)'", r"--criterion \1", message)
    message = re.sub(r"^sensitive_features\b", "--sensitive", message)
    name = re.match(r"(?:tolerance|standard_errors|n_resamples)\b", message)
    return message if name is None else f"--{name[0].replace('_', '-')}{message[name.end() :]}"


def _finite(value: Any) -> Any:
    """The value with lists for arrays, and null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


MODEL, REPORT = (".fairpca",), (".html",)
"""How files of models and of reports end."""


def check_destination(
    path: Path | None, suffixes: Sequence[str], *others: Path | None, force: bool = False
) -> None:
    """Refuse a file that could not or should not be written, before any work.

    Another suffix would be that of a file with something else, which should not be lost; nor should
    a file that is there already, unless `force` says so, or one of the others.
    """
    if path is None:
        return
    check_suffix(path, suffixes)
    target = Path(os.path.realpath(path))
    folder, given = target.parent, [other for other in others if other is not None]
    try:
        there = os.path.lexists(path) and bool(os.lstat(path))
        writable = os.access(folder, os.W_OK) and (not path.exists() or os.access(target, os.W_OK))
        wrong = {
            "lies in no folder that exists": not folder.is_dir(),
            "is a folder, not a file": path.is_dir(),
            "is named twice: it would be overwritten": str(target) in map(os.path.realpath, given),
            "is there already: name another file, or use --force instead": there and not force,
            "is not a regular file: name another one": path.exists() and not path.is_file(),
            "may not be written to: name another file": not writable,
        }
    except OSError as error:
        raise BadInputError(failure(error, "write", path)) from error
    for what, is_wrong in wrong.items():
        if is_wrong:
            raise BadInputError(f"{str(path)!r} {what}.")


def check_suffix(path: Path, known: Sequence[str]) -> None:
    """Refuse a file that does not end in one of these."""
    if path.name.lower().endswith(tuple(known)):
        return
    more = ": export files of other programs as CSV" if ".csv.gz" in known else ""
    raise BadInputError(f"{str(path)!r} must end in one of {listed(known)}{more}.")


def failure(error: OSError, verb: str = "use", path: object = None) -> str:
    """What an operating system refused, in one sentence."""
    path = error.filename if path is None else path
    reason = (error.strerror or str(error)).lower()
    return f"cannot {'go on' if path is None else f'{verb} {str(path)!r}'}: {reason}."

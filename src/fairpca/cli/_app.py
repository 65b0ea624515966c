"""The program: its commands, and how its failures end."""

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from fairpca._version import __version__
from fairpca.cli._commands import COMMANDS
from fairpca.cli._terminal import (
    STDOUT,
    WIDEST,
    BadInputError,
    complain,
    failure,
    show_warning,
    to_stdout,
    warned,
)
from fairpca.exceptions import FairnessWarning

FINE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

_HELP = """Fair principal component analysis of tables: who pays for PCA, a subspace that
serves the groups more fairly, and its proof.

Tables are CSV, Parquet or Arrow files. Sensitive columns make the groups.

\b
Examples:
  fairpca audit people.csv --sensitive sex --n-components 5
  fairpca compare people.csv --sensitive sex --n-components 5
  fairpca fit people.csv --sensitive sex --n-components 5 --model people.fairpca
  fairpca front people.csv --sensitive sex --n-components 5
  fairpca report people.csv --sensitive sex --n-components 5 --report people.html
  fairpca transform new.csv --model people.fairpca --output reduced.csv"""

_HYPHEN = "\u2011"
"""One at which lines are not broken."""


def run(arguments: Sequence[str]) -> int:
    """Run a command and return the exit code; nothing is raised."""
    # It may stand anywhere, and has to be known before anything can fail.
    debug = "--debug" in arguments
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # so that what it cannot show is written as escapes
            stream.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings(), _cleaning_up_when_ended():
        warned.clear()
        warnings.showwarning = show_warning
        warnings.simplefilter("always", FairnessWarning)
        given = [argument for argument in arguments if argument != "--debug"]
        try:
            code = typer.main.get_command(_PROGRAM).main(
                args=list(given),
                obj=given,  # for reports, which say how they were made
                prog_name="fairpca",
                standalone_mode=False,
            )
            if code == INTERRUPTED:  # which is what typer makes of Ctrl-C
                raise KeyboardInterrupt
            with to_stdout():
                sys.stdout.flush()
        except BaseException as error:
            if debug and not isinstance(error, SystemExit):
                traceback.print_exc()
            return _conclude(error)
    return FINE


@contextmanager
def _cleaning_up_when_ended() -> Iterator[None]:
    """Let a request to end the program clean up as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():  # which alone may ask for it
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _conclude(error: BaseException) -> int:
    """Say in one line what went wrong; the exit code."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__  # an import that failed by Ctrl-C, say
    if cause is not None:
        complain("interrupted; nothing was left half-written.")
        return INTERRUPTED
    if isinstance(error, SystemExit) and not error.code:  # completion is done with
        return FINE
    if isinstance(error, BrokenPipeError | SystemExit):  # typer makes the second of the first
        _give_up_on_stdout()
        return FAILED
    code = FAILED
    if isinstance(error, BadInputError):
        code, said = BAD_INPUT, str(error)
    elif hasattr(error, "format_message"):  # typer's errors of usage have no public base class
        usage: Any = error
        near = getattr(usage, "possibilities", None)
        said = f"{usage.message}; did you mean {near[0]}?" if near else usage.format_message()
        code, said = BAD_INPUT, f"{said.replace('Value error, ', '')} Try --help."
    elif isinstance(error, MemoryError):
        said = "there is not enough memory for this table."
    elif isinstance(error, OSError):
        said = failure(error, "write" if error.filename == STDOUT else "use")
        if error.filename == STDOUT:
            _give_up_on_stdout()
    else:
        said = f"{type(error).__name__}{f': {error}' if str(error) else ''}"
        said = f"internal error, {said} (--debug shows where)"
    complain(said, "refusal")
    return code


def _give_up_on_stdout() -> None:
    """Nobody reads any more: Python would complain again on the way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _WholeWords:
    """A command whose help is not broken at hyphens: options would be torn apart."""

    def get_help(self, context: Any) -> str:
        command: Any = self
        for part in (command, *command.params, *getattr(command, "commands", {}).values()):
            if getattr(part, "help", None):
                part.help = part.help.replace("-", _HYPHEN)
        text: str = super().get_help(context)  # type: ignore[misc]
        return text.replace(_HYPHEN, "-")


class _Group(_WholeWords, TyperGroup):
    pass


class _Command(_WholeWords, TyperCommand):
    pass


_PROGRAM = typer.Typer(
    cls=_Group,
    context_settings={"max_content_width": WIDEST},
    rich_markup_mode=None,  # plain help, which can be piped and searched
    pretty_exceptions_enable=False,
)


@_PROGRAM.callback(
    invoke_without_command=True,
    help=_HELP,
)
def _options_of_the_program(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error arose; may stand anywhere.")
    ] = False,
) -> None:
    if version:
        print(f"fairpca {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


for _command in COMMANDS:
    _PROGRAM.command(_command.__name__, cls=_Command)(_command)

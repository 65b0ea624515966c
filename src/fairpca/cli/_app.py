"""The program: its commands, and how its failures end."""

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any

import typer

from fairpca._version import __version__
from fairpca.cli import commands
from fairpca.cli._terminal import BadInputError, complain, forget_warnings, show_warning
from fairpca.exceptions import FairnessWarning

FINE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

_HELP = """Fair principal component analysis of tables: who pays for PCA, the subspace that is
fairest to the worst-off group, and its proof.

Tables are CSV, Parquet or Arrow files. Sensitive columns make the groups."""

_EXAMPLES = (
    "fairpca audit people.csv --sensitive sex --n-components 5",
    "fairpca fit people.csv --sensitive sex --n-components 5 --model people.fairpca",
    "fairpca transform new.csv --model people.fairpca --output reduced.csv",
    "fairpca front people.csv --sensitive sex --n-components 5 --max-extra-loss 0.01",
    "fairpca report people.csv --sensitive sex --n-components 5 --report people.html",
)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return the exit code; nothing is raised."""
    # It may stand anywhere, and has to be known before anything can fail.
    debug = "--debug" in arguments
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # so that what it cannot show is written as escapes
            stream.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings(), _cleaning_up_when_ended():
        forget_warnings()
        warnings.showwarning = show_warning
        warnings.simplefilter("always", FairnessWarning)
        given = [argument for argument in arguments if argument != "--debug"]
        try:
            program = typer.main.get_command(_application())
            code = program.main(
                args=list(given),
                obj=given,  # for reports, which say how they were made
                prog_name="fairpca",
                standalone_mode=False,
            )
            if code == INTERRUPTED:  # which is what typer makes of Ctrl-C
                raise KeyboardInterrupt
            sys.stdout.flush()
        except BaseException as error:
            if debug:
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
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted; nothing was left half-written.")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError | SystemExit):  # typer makes the second of the first
        # Nobody reads any more: Python would complain again on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    if isinstance(error, BadInputError):
        complain(str(error))
        return BAD_INPUT
    # typer's errors of usage have no public base class.
    if hasattr(error, "format_message"):
        complain(f"{error.format_message()} Try --help.")
        return BAD_INPUT
    if isinstance(error, MemoryError):
        complain("there is not enough memory for this table.")
        return FAILED
    said = f": {error}" if str(error) else ""
    complain(f"internal error, {type(error).__name__}{said} (--debug shows where)")
    return FAILED


def _application() -> typer.Typer:
    application = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,  # plain help, which can be piped and searched
        pretty_exceptions_enable=False,
    )
    application.callback(invoke_without_command=True, help=_HELP, epilog=_as_epilog(_EXAMPLES))(
        _options_of_the_program
    )
    for found in sorted(iter_modules(commands.__path__), key=lambda module: module.name):
        module: Any = import_module(f"{commands.__name__}.{found.name}")
        application.command(found.name, epilog=_as_epilog(module.EXAMPLES))(
            getattr(module, found.name)
        )
    return application


def _as_epilog(examples: Sequence[str]) -> str:
    # The backspace keeps the lines as they are.
    return "\n".join(["\b", "Examples:", *(f"  {example}" for example in examples)])


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

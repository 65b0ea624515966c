"""The command line ``fairpca``, in the extra ``fairpca[cli]``.

Each command is a function in `_commands.py`. Exit codes: 0 when all went well, 2 when the
input is at fault, 1 when the program is, and 130 when it was interrupted. Errors are one line on
the error stream.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec

_EXTRA = ("typer", "pandas", "pyarrow")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What stands behind the program's name; None takes it from the command line.

    Returns
    -------
    int

    Examples
    --------
    >>> from fairpca.cli import main
    >>> main(["--version"])
    fairpca 0.1.0
    0
    """
    try:
        missing = list(_EXTRA)
        for name in _EXTRA:
            with suppress(ImportError, ValueError):  # which say that it is there in part only
                if find_spec(name) is not None:
                    missing.remove(name)
        if missing:
            print(
                f"fairpca: the command line needs {', '.join(missing)}: install `fairpca[cli]`.",
                file=sys.stderr,
            )
            return 2
        from fairpca.cli._app import run
    except KeyboardInterrupt:  # before there was anything to be said about it
        return 130
    return run(sys.argv[1:] if arguments is None else arguments)

"""A real terminal for tests: tmux, with a server of its own."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

REQUIRED = "FAIRPCA_REQUIRE_TMUX"
_END = "(that was all)"
_PATIENCE = 120
_VIEWS = {"plain": [], "joined": ["-J"], "raw": ["-e"]}
_LOOP = """
while input() is not None:
    run()
    print({!r}, flush=True)
"""


@contextmanager
def screen(folder, code):
    """A function of a width: runs the code's function `run` on a screen of so many columns.

    It gives all lines that are shown, those that have left the screen too: "plain" as they are,
    "joined" with those in one piece that the terminal had to break, and "raw" with colours.
    """
    if shutil.which("tmux") is None:
        said = "no tmux found: nothing was looked at on a terminal"
        if os.environ.get(REQUIRED):
            pytest.fail(f"{said}, and {REQUIRED} is set")
        pytest.skip(said)
    server = ["tmux", "-u", "-f", os.devnull, "-S", str(folder / "socket")]
    given = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "LC_ALL": "C.UTF-8"}
    given = {name: value for name, value in given.items() if name not in ("NO_COLOR", "COLUMNS")}

    def tmux(*arguments):
        done = subprocess.run([*server, *arguments], env=given, capture_output=True, check=True)
        return done.stdout.decode("utf-8")

    def captured(*how):
        return tmux("capture-pane", "-p", "-S", "-", *how).split(_END)

    script = folder / "on_screen.py"
    script.write_text(f"{code}\n{_LOOP.format(_END)}", "utf-8")
    tmux(
        *["start-server", ";", "set", "-g", "history-limit", "5000", ";", "new-session", "-d"],
        *["-x", "80", "-y", "50", shlex.join([sys.executable, str(script)])],
    )
    runs = 0

    def show(width):
        nonlocal runs
        tmux("resize-window", "-x", str(width))
        tmux("send-keys", "Enter")
        runs += 1
        started = time.monotonic()
        while len(shown := captured()) <= runs:
            assert time.monotonic() < started + _PATIENCE, shown[-1]
            time.sleep(0.05)
        return {view: captured(*how)[runs - 1] for view, how in _VIEWS.items()}

    try:
        yield show
    finally:
        subprocess.run([*server, "kill-server"], env=given, capture_output=True)

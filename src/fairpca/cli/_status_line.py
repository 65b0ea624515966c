"""A line on the terminal that says what is being done, and goes when it is done."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import unicodedata
from types import TracebackType


class StatusLine:
    """A line on the error stream that a thread of its own keeps true, so that work is not slowed.

    Parameters
    ----------
    text : str
        What it says first.
    patience : float
        Seconds before it is shown for the first time: short work needs no words.
    pause : float, default=0.1
        Seconds between two looks at what there is to say.
    """

    def __init__(self, text: str, patience: float, pause: float = 0.1) -> None:
        self._text = text
        self._patience = patience
        self._pause = pause
        self._shown = ""
        self._writing = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_true, daemon=True)

    def __enter__(self) -> StatusLine:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self.erase()

    def say(self, text: str) -> None:
        """Show this from the next look on; it may be called as often as one likes."""
        self._text = text

    def erase(self) -> None:
        """Take the line away until the next look, so that another can be written."""
        with self._writing:
            self._write("")

    def _keep_true(self) -> None:
        wait = self._patience
        while not self._over.wait(wait):
            wait = self._pause
            with self._writing:
                self._write(_cut(self._text, shutil.get_terminal_size().columns - 1))

    def _write(self, text: str) -> None:
        if text == self._shown:
            return
        # Spaces rather than a terminal's own way to erase, which not all of them have.
        blank = " " * _cells(self._shown)
        sys.stderr.write(f"\r{blank}\r{text}")
        sys.stderr.flush()
        self._shown = text


def on_a_terminal() -> bool:
    """Whether the error stream is a terminal on which a line can be written again."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _cut(text: str, cells: int) -> str:
    """As much of the text as fits: of a line that is broken in two only one half would go."""
    while _cells(text) > cells:
        text = text[:-1]
    return text


def _cells(text: str) -> int:
    """How wide the text is at the most."""
    return sum(2 if unicodedata.east_asian_width(c) in "WFA" else 1 for c in text)

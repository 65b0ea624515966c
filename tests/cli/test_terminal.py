"""Signs of life: one line on a terminal, whole lines elsewhere."""

import io
import re
import sys
import threading

from rich.live import Live

from fairpca.cli import _terminal, main
from fairpca.report import N_POINTS

from people import FIT


def test_long_work_shows_signs_of_life_and_short_work_none(capsys, monkeypatch):
    with _terminal.stage("resting"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(_terminal, "_PATIENCE", 0.0)
    with _terminal.stage("working"):
        threading.Event().wait(0.2)
    assert capsys.readouterr().err == "fairpca: working …\nfairpca: working took 0 s.\n"


class Terminal(io.StringIO):
    """An error stream that says it is a terminal, and which lines it would show."""

    def isatty(self):
        return True

    def shows(self):
        lines, row, column = [[]], 0, 0
        for move, times, order, character in re.findall(
            r"(\x1b\[)([?\d]*)(\w)|([^\x1b])", self.getvalue()
        ):
            if move:
                row -= int(times or 1) if order == "A" else 0
                if order == "K":
                    lines[row] = []
            elif character == "\n":
                row, column = row + 1, 0
                lines += [[]] * (row == len(lines))
            elif character == "\r":
                column = 0
            else:
                lines[row] += [" "] * (column - len(lines[row]))
                lines[row][column : column + 1] = [character]
                column += 1
        return [text for line in lines if (text := "".join(line).rstrip())]

    def wait_for(self, text):
        for _ in range(500):
            if self.shows() and self.shows()[-1] == text:
                return
            threading.Event().wait(0.02)
        raise AssertionError(f"{self.shows()!r} is not {text!r}")


def on_a_terminal(monkeypatch):
    # Not a fixture: pytest sets the error stream anew between those and the test.
    monkeypatch.setattr(_terminal, "_PATIENCE_ON_A_TERMINAL", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_a_terminal_shows_one_line_that_goes_at_the_end(monkeypatch):
    terminal = on_a_terminal(monkeypatch)
    with _terminal.stage("working") as progress:
        terminal.wait_for("fairpca: working …")
        progress("finding", 12, 1050)
        terminal.wait_for("fairpca: finding 12/1,050")
        progress("\x1b[2J", 1, 2)
        terminal.wait_for("fairpca: \\x1b[2J 1/2")
        # What is wider than the terminal would be broken, and one half would stay.
        progress("家" * 40, 1, 2)
        terminal.wait_for("fairpca: " + "家" * 15)
        progress("end", 2, 2)
        terminal.wait_for("fairpca: end 2/2")
        _terminal.complain("a warning that is longer than the terminal is wide")
        terminal.wait_for("fairpca: end 2/2")
    assert terminal.shows() == ["fairpca: a warning that is longer than", "the terminal is wide"]


def test_nothing_is_drawn_where_the_error_stream_is_no_terminal(capsys):
    with _terminal.stage("working") as progress:
        progress("finding", 1, 2)
    assert capsys.readouterr().err == ""


def test_dumb_terminals_get_whole_lines(monkeypatch):
    terminal = on_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    with _terminal.stage("working") as progress:
        progress("finding", 1, 2)
    assert terminal.getvalue() == ""


def test_the_steps_of_a_slow_fit_are_shown(folder, monkeypatch):
    terminal = on_a_terminal(monkeypatch)
    said = []
    monkeypatch.setattr(Live, "update", lambda _, text: said.append(text.plain))
    several = ["--sensitive", "race", *FIT[:-2]]
    assert main(["fit", "people.csv", *several, "--criterion", "minmax"]) == 0
    doing = "fairpca: finding a fair subspace for 120 rows of 7 columns, best "
    steps = [text for text in said if text.startswith(doing)]
    assert steps[0].endswith(": step 1/80")
    assert ", none below " in steps[0]
    assert terminal.shows() == []


def test_the_points_of_a_front_are_counted(folder, monkeypatch):
    on_a_terminal(monkeypatch)
    said = []
    monkeypatch.setattr(Live, "update", lambda _, text: said.append(text.plain))
    assert main(["front", "people.csv", *FIT, "--points", "3"]) == 0
    doing = "fairpca: finding the points of the front"
    assert said[0] == "fairpca: learning the columns: 120 rows, per cent 100/100"
    assert said[-4:] == [f"{doing} {done}/3" for done in range(4)]
    assert main(["report", "people.csv", *FIT, "--report", "r.html"]) == 0
    assert f"{doing} {N_POINTS}/{N_POINTS}" in said
    assert said[-1].startswith("fairpca: resampling ")

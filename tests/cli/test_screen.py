"""What a person sees: the program on a real terminal, 80 and 120 columns wide."""

import contextlib
import io
import re
import tempfile
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len

from fairpca.cli import _terminal, main
from screen import screen

from hostile import HOSTILE, NAMES

MARK = "\u200e"
NEXT = ">>>"
FIT = ["--sensitive", "group", "--n-components", "2"]
WORLD = ["world.csv", *FIT, "--criterion", "balanced"]
COMMANDS = (
    ["audit", *WORLD],
    [
        "fit",
        "two.csv",
        *FIT,
        "--model",
        "m.fairpca",
        "--criterion",
        "minmax",
        "--force",
    ],
    ["transform", "two.csv", "--model", "m.fairpca", "--output", "r.csv", "--force"],
    ["audit", "two.csv", "--model", "m.fairpca", "--resamples", "20"],
    ["audit", "many.csv", *FIT, "--criterion", "balanced"],
    ["front", "two.csv", *FIT, "--points", "12", "--index", "3"],
    ["report", "two.csv", *FIT, "--report", "r.html", "--force"],
    ["audit", "huge.csv", *FIT, "--standardize", "none"],
    ["audit", "tiny.csv", *FIT, "--standardize", "none"],
    ["fit", "two.csv", *FIT, "--output", "two.csv", "--force"],
    ["fit", "two.csv", "--sensitive", "group,a", "--n-components", "2"],
)


def table(names, scale=1.0):
    """Rows of groups with covariances of their own."""
    rng = np.random.default_rng(0)
    codes = np.arange(30 * len(names)) % len(names)
    rows = rng.normal(size=(len(codes), 5)) * rng.uniform(0.5, 3, (len(names), 5))[codes]
    frame = pd.DataFrame(rows * scale, columns=[*"abcde"])
    return frame.assign(group=np.array(names, dtype=object)[codes])


@pytest.fixture(scope="module")
def seen():
    """What the commands show on either screen, and what they print elsewhere."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):  # short, for the socket
        world = table([*NAMES, *(name for name in HOSTILE if "\u200d" not in name)])
        world.loc[0, "group"] = "one row"
        world.to_csv("world.csv", index=False)
        table([f"hospital {i}" for i in range(60)]).to_csv("many.csv", index=False)
        for size, scale in (("two", 1.0), ("huge", 1e9), ("tiny", 1e-9)):
            table(["Amer-Indian-Eskimo", "White"], scale).to_csv(f"{size}.csv", index=False)
        code = (
            "import os\n"
            "from fairpca.cli import _terminal, main\n"
            f"os.chdir({name!r})\n"
            "_terminal._PATIENCE_ON_A_TERMINAL = 0.0\n"
            "def run():\n"
            f"    for command in {COMMANDS!r}:\n"
            f"        print({NEXT!r}, flush=True)\n"
            "        main(command)\n"
            "        os.environ['NO_COLOR'] = '1' if command[0] == 'transform' else ''\n"
        )
        with screen(Path(name), code) as show:
            found = {width: show(width) for width in (80, 120)}
        found["piped"] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_terminal, "_PATIENCE", 1e6)  # no signs of life, however slow this is
            for command in COMMANDS:
                said = io.StringIO()
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                    main(command)
                found["piped"].append(said.getvalue())
    return found


def of_commands(text):
    """What each command has shown; marks of direction, which tmux may drop, are left out."""
    return text.replace(MARK, "").split(NEXT)[1:]


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_is_wider_than_the_screen(seen, width):
    lines = seen[width]["joined"].splitlines()
    assert max(map(cell_len, lines)) <= width
    # The wide screen is made use of.
    assert (max(map(cell_len, lines)) > 80) == (width > 80)


@pytest.mark.parametrize("width", [80, 120])
def test_no_word_is_broken_and_no_sign_of_life_is_left(seen, width):
    shown = of_commands(seen[width]["plain"])
    assert len(shown) == len(COMMANDS)
    for text, piped in zip(shown, seen["piped"], strict=True):
        words = piped.replace(MARK, "").split()
        if width == 80:  # on which tables are as in a pipe
            assert text.split() == words
        else:
            rules = {word for word in text.split() if set(word) == {"-"}}
            assert {*text.split()} - rules <= {*words}


@pytest.mark.parametrize("width", [80, 120])
def test_columns_are_aligned(seen, width):
    tables = 0
    for text in of_commands(seen[width]["plain"]):
        for block in re.findall(r"^(-{20,})\n(.*?)\n\1$", text, re.DOTALL | re.MULTILINE):
            rule, rows = block
            assert {cell_len(line) for line in rows.splitlines()} == {len(rule)}
            tables += 1
    # There are none of refusals, of `transform`, and of a report that finds no need of fair PCA.
    assert tables >= len(COMMANDS) - 3


def test_colours_help_and_are_nowhere_else(seen):
    raw = seen[80]["raw"].split(NEXT)[1:]
    assert re.search(r"\x1b\[1m +% lost", raw[0])  # heads
    assert any("\x1b[33mfairpca: warning:" in text for text in raw)
    assert re.search(r"\x1b\[31m +\d", raw[0])  # who is worst off
    assert "\x1b[31mfairpca:" in raw[-1]  # a refusal
    # With NO_COLOR, which the command behind the first transform had.
    coloured = [bool(re.search(r"\x1b\[3[1-7]m", text)) for text in raw]
    after = [command[0] for command in COMMANDS].index("transform") + 1
    assert coloured[after] is False
    assert coloured[after + 1] is True
    assert "\x1b" not in "".join(seen["piped"])


def test_names_and_numbers_are_what_a_person_can_read(seen):
    world = seen[80]["plain"]
    for name in (*NAMES, "\\x1b[2J", "\\u202eevil\\u2066 שלום"):
        # Group names are in composed form; the names of columns are as they came.
        assert unicodedata.normalize("NFC", name) in unicodedata.normalize("NFC", world).replace(
            MARK, ""
        )
    shown = of_commands(world)
    sizes = [command[1] for command in COMMANDS]
    assert "e+18" in shown[sizes.index("huge.csv")]
    assert "e-18" in shown[sizes.index("tiny.csv")]
    many = " ".join(shown[sizes.index("many.csv")].split())
    assert (
        "The table has the 40 groups with the largest disparities, of 60; --json has all." in many
    )
    assert "The table has 8 of 12 points." in world

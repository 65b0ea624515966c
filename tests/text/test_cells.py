"""Text in the cells of a terminal: widths against rich's, what is escaped, and how lines break."""

import random
from itertools import pairwise

import pytest
from rich.cells import cell_len

from fairpca.text import (
    TextTable,
    cell_width,
    cut,
    formatted,
    laid_out,
    left_to_right,
    listed,
    number_format,
    printable,
    short_texts,
    wrapped,
)

from hostile import HOSTILE, NAMES


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_world_are_printed_as_they_are(name):
    assert printable(name) == name
    assert cell_width(name) == cell_len(name)
    assert listed([name]) == f"'{name}'"


def test_names_in_quotation_marks_are_escaped_once():
    (evil,) = short_texts(["\u202eevil"])
    assert listed([evil, "\u202eevil", "it's", 3]) == "'\\u202eevil', '\\u202eevil', \"it's\", 3"


def test_what_steers_a_terminal_is_escaped():
    assert printable("\x1b[2J") == "\\x1b[2J"
    assert printable("\u202eevil\u2066 שלום") == "\\u202eevil\\u2066 שלום"
    assert printable("a\u200fb\u200eb\x9bc\x07\udc80\ue000") == (
        "a\\u200fb\\u200eb\\x9bc\\x07\\udc80\\ue000"
    )
    # Joiners that join nothing, and letters of a flag without one.
    assert printable("\u200da \u200d b\u200c") == "\\u200da \\u200d b\\u200c"
    assert printable("\U000e0067\U000e007f") == "\\U000e0067\\U000e007f"
    england = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    assert printable(england) == england
    for name in HOSTILE:
        assert laid_out([name]).replace("\n", "").isprintable() or "👩" in name or "שלום" in name


def test_numbers_stay_behind_names_that_are_written_from_right_to_left():
    """A mark ends the turned run: once for all its words, and for none inside it."""
    assert left_to_right("עברית 12") == "עברית\u200e 12"
    assert left_to_right("عربي فصحى  5.0") == "عربي فصحى\u200e  5.0"
    assert left_to_right(f"{NAMES[2]} 1") == f"{NAMES[2]}\u200e 1"
    assert left_to_right("plain 日本 é") == "plain 日本 é"


def test_lines_break_at_spaces_alone():
    rng = random.Random(0)
    words = [rng.choice([*NAMES[3:], "a-b", "--max-extra-loss", "x" * 30]) for _ in range(300)]
    text = " ".join(words)
    for width in (20, 37, 80):
        lines = wrapped(text, width)
        assert " ".join(lines) == text
        assert all(cell_len(line) <= width or " " not in line for line in lines)
        # None could have taken the first word of the next.
        for line, after in pairwise(lines):
            assert cell_len(f"{line} {after.split(' ')[0]}") > width
    assert wrapped("", 5) == [""]


def test_long_names_are_cut_by_cells_and_stay_distinct():
    assert cut("日本語", 5) == "日本…"
    assert cut("👩\u200d👩\u200d👧", 4) == "👩…"
    assert cut("plain", 5) == "plain"
    north, south, other = short_texts(["家" * 30 + "north", "家" * 30 + "south", "y" * 50])
    assert north.endswith("家north")
    assert south.endswith("家south")
    assert other == "y" * 39 + "…"
    assert max(map(cell_len, (north, south, other))) <= 40


def test_a_wide_table_is_printed_in_parts():
    table = TextTable(["group", "one", "two\nlines"], [["a", "1" * 30, "2" * 30]])
    head, rule, row = "group" + " " * 29 + "one", "-" * 37, "a" + " " * 6 + "1" * 30
    first = [head, rule, row, rule]
    assert laid_out([table], 40).splitlines()[:5] == [*first, ""]
    assert len(laid_out([table], 40).splitlines()) == 5 + 5
    assert len(laid_out([table], 69).splitlines()) == 5


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (5e-18, "5.000e-18"),
        (5e-9, "5.000e-09"),
        (5e-3, "0.005000"),
        (5e3, "5000.0000"),
        (5e6, "5,000,000.0"),
        (5e9, "5.000e+09"),
        (0.0, "0.0000"),
    ],
)
def test_numbers_of_all_sizes_can_be_read(value, shown):
    assert formatted(value, number_format([[value, value / 3]])) == shown


def test_what_is_not_zero_is_not_shown_as_zero():
    shown = [formatted(value, ".4f", 1e-9) for value in (1e-6, -1e-6, 3e-12, -3e-12, 0.0)]
    assert shown == ["1e-06", "-1e-06", "0.0000", "0.0000", "0.0000"]

"""What tests ask of texts: a few words of each, and that none changes without a look at it.

A test names the words that tell a problem and its remedy from others: parameters, options, values.
The texts as a whole lie in texts.txt beside this, below the test that provokes them.
`python -m pytest --remake-texts` writes what the tests that it runs provoke: read the diff.
Numbers are `#` there, for they are checked by value, and folders `…`; texts of other libraries are
left out, as they change with these.
"""

import difflib
import re
import traceback
from collections import defaultdict
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

import fairpca

SNAPSHOT = Path(__file__).with_suffix(".txt")
OURS = Path(fairpca.__file__).parent
REMAKE = "--remake-texts"
_NUMBER = re.compile(r"(?<![\w#])(?<![A-Za-z]-)[-+\u2212]?\d+(,\d{3})*(\.\d+)?(e[-+]?\d+)?(?!\w)")


@contextmanager
def refused(kind, *words):
    """As pytest.raises, of an error whose text has all these words."""
    with pytest.raises(kind, match=_all_of(words)) as caught:
        yield caught
    if _ours(caught.value):
        recorded(_without_theirs(str(caught.value), caught.value.__cause__))


@contextmanager
def warned(kind, *words):
    """As pytest.warns, of a warning of ours whose text has all these words."""
    pattern = _all_of(words)
    with pytest.warns(kind, match=pattern) as caught:
        yield caught
    for one in caught:
        if issubclass(one.category, kind) and re.match(pattern, str(one.message)):
            recorded(str(one.message))


def recorded(text, *words):
    """The text itself; the running test fails if it lacks one of the words, or the snapshot it."""
    missing = [word for word in words if not re.match(_all_of([word]), text)]
    assert not missing, f"{missing} are not in {text!r}"
    now = _without_numbers(text.replace(str(_running.funcargs.get("tmp_path", "…")), "…"))
    if _running.config.getoption(REMAKE):
        _running.user_properties.append((REMAKE, now))
        return text
    known = read(SNAPSHOT).get(_test(_running.nodeid), [])
    if now not in known:
        (near,) = difflib.get_close_matches(now, known, 1, 0.0) or ["(none)"]
        raise AssertionError(
            f"This text\n\n{now}\n\nis not in {SNAPSHOT.name}, where the nearest of this test "
            f"is\n\n{near}\n\nIf it is as it should be, run this test with {REMAKE}."
        )
    return text


def numbers_in(text):
    """The numbers of a text, in their order, whatever it says of them."""
    return [float(found[0].replace(",", "")) for found in _NUMBER.finditer(text)]


@cache
def read(snapshot):
    """The texts of a snapshot, by test."""
    found, texts = {}, []
    for line in snapshot.read_text("utf-8").split("\n"):
        if line.startswith("  * "):
            texts.append(line[4:])
        elif line.startswith("    "):
            texts[-1] += f"\n{line[4:]}"
        elif line:
            texts = found[line] = []
    return found


def write(found):
    """Make `found`, texts by test, the snapshot."""
    blocks = []
    for test in sorted(found):
        texts = ["  * " + text.replace("\n", "\n    ") for text in sorted(set(found[test]))]
        blocks.append("\n".join([test, *texts]))
    SNAPSHOT.write_text("\n\n".join(blocks) + "\n", "utf-8")


def _all_of(words):
    """A pattern of the texts that have these words, and not as parts of longer ones."""
    whole = (re.sub(r"^(?=\w)|(?<=\w)$", r"\\b", re.escape(word)) for word in words)
    return "(?s)" + "".join(f"(?=.*{word})" for word in whole)


def _without_theirs(text, cause):
    """The text of an error, less the sentence that it has from another library's."""
    theirs = "" if cause is None or _ours(cause) else str(cause)
    return text.replace(theirs, "…") if " " in theirs else text


def _ours(error):
    """Whether a line of ours raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    return (
        bool(frames)
        and OURS in Path(frames[-1].filename).parents
        and frames[-1].line.startswith("raise")
    )


def _without_numbers(text):
    """What is the same on every machine; columns are set two spaces apart, and no line is empty."""
    for pattern, instead in (
        (r"(?<![\w.…])(/[\w.@+-]+)+/(?=[\w.])", "…/"),
        (r"\b0x[0-9a-fA-F]+", "0x…"),
        (r"\b(datetime64|timestamp)\[\w+\]", r"\1"),
        (r"\blarge_string\b", "string"),
        (_NUMBER, "#"),
        (r"-{4,}", "----"),
        (r"[ \n]*\n", "\n"),
        (r" {2,}", "  "),
    ):
        text = re.sub(pattern, instead, text)
    return text.strip()


def is_there(test):
    """Whether there is a test of this name in the snapshot."""
    path, _, name = test.partition("::")
    file = Path(__file__).parent / path
    return file.exists() and f"def {name}(" in file.read_text("utf-8")


def _test(nodeid):
    """Of a parametrised test all cases lie in one block."""
    return nodeid.partition("[")[0].removeprefix("tests/")


# --- What pytest calls --------------------------------------------------------

_running = None
_made, _incomplete = defaultdict(list), set()


def pytest_addoption(parser):
    parser.addoption(REMAKE, action="store_true", help=f"Write {SNAPSHOT.name} anew.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    global _running
    _running = item


def pytest_runtest_logreport(report):
    """Gather what each test has provoked; under pytest-xdist this runs where all reports arrive."""
    test = _test(report.nodeid)
    if not report.passed:
        _incomplete.add(test)
    if report.when == "teardown":
        _made[test] += [text for name, text in report.user_properties if name == REMAKE]


def pytest_sessionfinish(session):
    """Keep the texts of tests that did not run, or not in all of their cases."""
    if session.config.getoption(REMAKE) and not hasattr(session.config, "workerinput"):
        known = dict(read(SNAPSHOT))
        for test, texts in _made.items():
            known[test] = texts + (known.get(test, []) if test in _incomplete else [])
        write({test: texts for test, texts in known.items() if texts and is_there(test)})

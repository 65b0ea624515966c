"""The snapshot of texts itself: what it keeps of them, and what fails."""

import pytest

import texts
from texts import numbers_in, recorded, refused


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("between -1 and 1,000.5, got 1e-06", "between # and #, got #"),
        ("x1 is utf-8 of 3-4 rows, 20 %", "x1 is utf-8 of #-# rows, # %"),
        ("'/tmp/of/a-run.0/a.csv' and docs/privacy.md", "'…/a.csv' and docs/privacy.md"),
        ("an object at 0x7F3b", "an object at 0x…"),
        ("group     1\n-----------\n\na   2.50", "group  #\n----\na  #"),
    ],
)
def test_what_differs_from_run_to_run_is_left_out(text, kept):
    assert texts._without_numbers(text) == kept


def test_numbers_are_those_of_the_text():
    assert numbers_in("-1 to 1,000.5 for x1, 20 %") == [-1.0, 1000.5, 20.0]


def test_what_is_written_is_read(monkeypatch, tmp_path):
    monkeypatch.setattr(texts, "SNAPSHOT", tmp_path / "texts.txt")
    found = {"a.py::test_a": ["one", "two lines\n  of text"], "b.py::test_b": ["* three"]}
    texts.write(found)
    assert texts.read(texts.SNAPSHOT) == found


def test_a_text_that_has_changed_is_shown_beside_the_old_one(monkeypatch, tmp_path, request):
    monkeypatch.setattr(texts, "SNAPSHOT", tmp_path / "texts.txt")
    monkeypatch.setattr(request.config.option, "remake_texts", False)
    texts.write({request.node.nodeid.removeprefix("tests/"): ["# rows are left out.", "another"]})
    assert recorded("3 rows are left out.", "3 rows") == "3 rows are left out."
    with pytest.raises(AssertionError) as caught:
        recorded("3 rows are dropped.")
    for shown in ("# rows are dropped.", "# rows are left out.", texts.REMAKE):
        assert shown in str(caught.value)
    with pytest.raises(AssertionError, match="4 rows"):
        recorded("3 rows are left out.", "4 rows")


def test_words_are_whole_and_texts_of_others_are_not_kept():
    with pytest.raises(AssertionError), refused(ValueError, "tol"):
        raise ValueError("tolerance must be positive")
    with refused(ValueError, "tol", "at least 0"):
        raise ValueError("at least 0 is what tol\nmust be")


def test_all_texts_are_of_tests_that_there_are():
    assert [test for test in texts.read(texts.SNAPSHOT) if not texts.is_there(test)] == []

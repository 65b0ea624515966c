"""Messy tables: read as a person would read them, or refused once, with what to add."""

import json
import shlex
from pathlib import Path

import pytest

from fairpca.cli import main

from messy import CASES, ROWS, TYPED
from texts import recorded

TAMED = [case for case in CASES if case.add]


def audited(capsys, case, *more):
    """The error stream of an audit, and what became of the columns, if it came to that."""
    code = main(["audit", case.file, *TYPED, "--json", *case.typed, *more])
    out, err = capsys.readouterr()
    if code:
        assert (code, out) == (2, "")
        return err, None
    found = json.loads(out)
    parts = []
    for column in found["outcomes"]:
        count = f" {column['n_columns']}" if column["kind"] == "onehot" else ""
        note = f" ({column['note']})" if column["note"] else ""
        parts.append(f"{column['name']} {column['kind']}{count}{note}")
    if found["rows_left_out"]:
        parts.append(f"{found['rows_left_out']} rows left out")
    n_rows = found["rows"] + found["rows_left_out"]
    return err, ("; ".join(parts), found["added_by_auto"], n_rows)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_messy_table(tmp_path, monkeypatch, capsys, case):
    monkeypatch.chdir(tmp_path)
    Path(case.file).write_bytes(case.make())
    for more in ([], ["--stream"]):
        said, found = audited(capsys, case, *more)
        if case.add is None:
            assert found == (case.expected, "", ROWS)
            continue
        assert found is None
        *_, last = said.splitlines()
        add = last.removeprefix("add: ")
        assert (add if add != last else "") == case.add
        recorded(said.removeprefix("fairpca: ").rstrip("\n"))


@pytest.mark.parametrize("case", TAMED, ids=lambda case: case.name)
def test_what_a_refusal_offers_makes_the_table_run(tmp_path, monkeypatch, capsys, case):
    monkeypatch.chdir(tmp_path)
    Path(case.file).write_bytes(case.make())
    _, (typed, none, n_rows) = audited(capsys, case, *shlex.split(case.add))
    assert none == ""
    _, automatic = audited(capsys, case, "--auto")
    assert automatic == (typed, case.add, n_rows)


def test_there_are_many_and_no_two_have_one_name():
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
    assert len(TAMED) >= 40

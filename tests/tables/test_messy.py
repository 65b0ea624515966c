"""Messy tables: refused with a sentence that helps, or read as a person would read them."""

import json
from pathlib import Path

import pytest

from fairpca.cli._terminal import BadInputError
from fairpca.cli.commands.audit import audit

from messy import CASES, ROWS

REPEATABLE = {"drop", "missing_values", "as_text", "as_number"}


def outcome(capsys, case, **more):
    """What a person sees: the sentence that refuses the table, or what became of its columns."""
    chosen = dict(sensitive=["sex"], n_components="1", json=True, **more)
    words = iter(case.typed)
    for word in words:
        name = word.removeprefix("--").replace("-", "_")
        value = True if name == "drop_missing" else next(words)
        value = int(value) if name == "min_rows" else value
        chosen[name] = [value] if name in REPEATABLE else value
    try:
        audit(None, Path(case.file), **chosen)
    except BadInputError as error:
        assert capsys.readouterr().out == ""
        return str(error)
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] + found["rows_left_out"] == ROWS
    parts = []
    for column in found["outcomes"]:
        count = f" {column['n_columns']}" if column["kind"] in ("onehot", "codes") else ""
        note = f" ({column['note']})" if column["note"] else ""
        parts.append(f"{column['name']} {column['kind']}{count}{note}")
    if found["rows_left_out"]:
        parts.append(f"{found['rows_left_out']} rows left out")
    return "; ".join(parts)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_messy_table(tmp_path, monkeypatch, capsys, case):
    monkeypatch.chdir(tmp_path)
    Path(case.file).write_bytes(case.make())
    said = outcome(capsys, case)
    assert said == case.expected
    assert "\n" not in said
    assert outcome(capsys, case, stream=True) == case.expected


def test_there_are_many_and_no_two_have_one_name():
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)

"""Names and labels that would do harm to a terminal, a spreadsheet or a page."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairpca.cli import main
from fairpca.model_file import load_model
from said import without_cautions

from hostile import HOSTILE

pytestmark = pytest.mark.untraced


def test_names_and_labels_that_would_do_harm(folder, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=80) for name in HOSTILE})
    frame["label"] = np.resize(HOSTILE, 80)
    for suffix in ("csv", "parquet"):
        source = f"hostile.{suffix}"
        getattr(frame, f"to_{suffix}")(source, index=False)
        arguments = [
            source,
            "--sensitive",
            "label",
            "--n-components",
            "3",
            "--criterion",
            "balanced",
        ]
        carried = [argument for name in ("=1+1", "label") for argument in ("--carry", name)]
        outputs = ["--model", "h.fairpca", "--output", "h.csv", "--force", *carried]
        assert main(["fit", *arguments, *outputs]) == 0
        shown = capsys.readouterr()
        assert without_cautions(shown.err) == ""
        assert "\x1b" not in shown.out
        assert "\u202e" not in shown.out
        assert max(map(len, shown.out.splitlines())) < 400
        plain = tuple(" ".join(name.split()) for name in HOSTILE)
        assert load_model("h.fairpca").columns == (plain if suffix == "csv" else HOSTILE)
        text = Path("h.csv").read_text("utf-8")
        assert text.startswith("'=1+1,label,fairpca0")
        assert "'=1+1\n" not in text
        with open("h.csv", encoding="utf-8", newline="") as file:
            written = list(csv.DictReader(file))
        # Numbers stay numbers, negative ones too.
        assert [float(row["'=1+1"]) for row in written] == frame["=1+1"].tolist()
        assert {row["label"].lstrip("'") for row in written} == set(HOSTILE)
        assert main(["audit", *arguments, "--json"]) == 0
        groups = json.loads(capsys.readouterr().out)["groups"]
        assert {group["group"] for group in groups} == set(HOSTILE)
        assert main(["fit", *arguments[:4], "80", "--drop", HOSTILE[6]]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert len(said) < 400


def test_fronts_and_reports_of_names_that_would_do_harm(folder, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=80) for name in HOSTILE})
    frame["text"] = np.resize(HOSTILE, 80)
    for labels in (HOSTILE[:2], HOSTILE[6:]):
        frame.assign(label=rng.choice(labels, 80)).to_parquet("h.parquet")
        arguments = ["h.parquet", "--sensitive", "label", "--n-components", "3"]
        few = ["--points", "2", "--json"]
        assert main(["front", *arguments, *few]) == 0
        found = json.loads(capsys.readouterr().out)
        assert sorted(found["groups"]) == sorted(labels)
        assert set(HOSTILE) < set(found["columns"])
        title = ["--report", "h.html", "--force", "--title", HOSTILE[0]]
        for command in (["front", *arguments, "--index", "3"], ["report", *arguments, *title]):
            assert main(command) == 0
            shown = capsys.readouterr()
            assert without_cautions(shown.err) == ""
            assert "\x1b" not in shown.out
            assert max(map(len, re.split(r"\n|\. ", shown.out))) < 400
        assert "<script>alert" not in Path("h.html").read_text("utf-8")


def test_the_finding_of_a_report_has_names_from_right_to_left_as_they_are(folder, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 4)) * [4, 3, 2, 1], columns=list("abcd"))
    frame.iloc[:80] = frame.iloc[:80, ::-1].to_numpy()
    frame["town"] = np.repeat(["نساء من القرية", "שלום"], [80, 120])
    frame.to_csv("names.csv", index=False)
    typed = ["names.csv", "--sensitive", "town", "--n-components", "2", "--report", "names.html"]
    assert main(["report", *typed]) == 0
    out = capsys.readouterr().out
    assert "the group “نساء من القرية\u200e” loses" in out
    assert "\\u" not in out
    assert "\u2068" not in out

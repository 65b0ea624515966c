"""Wrong input: one line, exit code 2, and nothing is written."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairpca import FairPCA
from fairpca.cli import main
from fairpca.model_file import save_model
from fairpca.tables import writing
from said import complaint

from people import BAD, FIT, ON, contents, nameless_groups, people
from texts import recorded


def table(**changes):
    return people().assign(**changes)


def write_csv(text):
    return lambda: Path("bad.csv").write_bytes(text if isinstance(text, bytes) else text.encode())


def cut_parquet():
    Path("bad.parquet").write_bytes(Path("people.parquet").read_bytes()[:-20])


def cut_arrow():
    Path("bad.arrow").write_bytes(Path("people.arrow").read_bytes()[:400])


def holes():
    table(a=np.where(np.arange(120) < 3, np.nan, 1.0)).to_csv("bad.csv", index=False)


def dates():
    table(a=pd.Timestamp(0)).to_parquet("bad.parquet")


def reduced_names():
    table(fairpca0=1).to_csv("bad.csv", index=False)


def folder_in_the_way():
    Path("dir.csv").mkdir()


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (None, ["fit", "absent.csv", *ON], "no file 'absent.csv'"),
        (None, ["fit", ".", *ON], "'.' folder"),
        (write_csv(""), ["fit", BAD, *ON], "'bad.csv' empty"),
        (write_csv("a,sex\n"), ["fit", BAD, *ON], "'bad.csv' no rows"),
        (write_csv("a,sex\n1,f\n"), ["fit", BAD, *ON], "one row"),
        (write_csv("sex\nf\nm\n"), ["fit", BAD, *ON], "No columns left"),
        (write_csv("a,a,sex\n1,2,f\n"), ["fit", BAD, *ON], "name another 'a (2)'"),
        (write_csv(",a,sex\n0,1,f\n1,2,m\n"), ["fit", BAD, *ON], "no name --drop 'Unnamed: 0'"),
        (write_csv("a,sex\n1,f,3\n1,m,3\n"), ["fit", BAD, *ON], "'bad.csv' cannot read"),
        (write_csv("a,sex\n1,f\n1,m,3\n"), ["fit", BAD, *ON], "'bad.csv' cannot read"),
        (write_csv("a,sex\n1,\xe9\n".encode("latin-1")), ["fit", BAD, *ON], "UTF-8"),
        (cut_parquet, ["fit", "bad.parquet", *ON], "'bad.parquet' cannot read"),
        (cut_arrow, ["fit", "bad.arrow", *ON], "'bad.arrow' cannot read"),
        (write_csv("a"), ["fit", "people.xlsx", *ON], "no file 'people.xlsx'"),
        (None, ["fit", "m.fairpca", *ON], "'m.fairpca' end '.csv' '.parquet'"),
        (None, ["fit", "people.csv", "--n-components", "1"], "Missing option '--sensitive'"),
        (None, ["fit", "people.csv", *ON[:3], "many"], "--n-components"),
        (None, ["fit", "people.csv", *ON[:3], "1.5"], "--n-components"),
        (
            None,
            ["fit", "people.csv", *ON[:3], "99"],
            "--n-components 99 10",
        ),
        (None, ["fit", "people.csv", *ON, "--criterion", "best"], "--criterion"),
        (None, ["fit", "people.csv", *ON, "--tolerance", "-1"], "--tolerance"),
        (None, ["fit", "people.csv", *ON, "--missing-labels", "x"], "--missing-labels"),
        (None, ["fit", "people.csv", *ON, "--groups", "x"], "--groups"),
        (None, ["fit", "people.csv", *ON, "--drop", "z"], "no column 'z' 'a' 'b'"),
        (None, ["fit", "people.csv", *ON, "--carry", "a"], "--carry needs --output"),
        (None, ["fit", "people.csv", *ON, "--bogus"], "No such option"),
        (None, ["frobnicate"], "No such command 'frobnicate'"),
        (holes, ["fit", BAD, *ON], "Values missing infinite 'a' (3) fill them"),
        (nameless_groups, ["fit", BAD, *ON], "no value 7 120 rows"),
        (dates, ["fit", "bad.parquet", *ON], "'a' holds dates times"),
        (None, ["fit", "people.csv", *ON, "--output", "no/r.csv"], "no folder"),
        (None, ["fit", "people.csv", *ON, "--model", "no/m.fairpca"], "no folder"),
        (None, ["fit", "people.csv", *ON, "--output", "people.csv"], "named twice"),
        (None, ["fit", "people.csv", *ON, "--model", "new.csv"], "end '.fairpca'"),
        (None, ["transform", "new.csv", "--model", "m.fairpca", "--output", "new.csv"], "twice"),
        (None, ["fit", "people.csv", *ON, "--output", "r.txt"], "'r.txt' end"),
        (
            folder_in_the_way,
            ["fit", "people.csv", *ON, "--output", "dir.csv"],
            "'dir.csv' folder",
        ),
        (
            reduced_names,
            ["fit", BAD, *ON, "--carry", "fairpca0", "--output", "r.csv", "--model", "r.fairpca"],
            "'fairpca0' carried",
        ),
        *(
            # All of them before the table is read.
            (None, ["front", "absent.csv", *ON, *wrong], message)
            for wrong, message in [
                (["--criterion", "balanced"], "--criterion 'minmax' 'equal'"),
                (["--measure", "variance"], "--measure"),
                (["--gap", "-1"], "--gap 0 -1"),
                (["--time-limit", "-1"], "--time-limit 0 -1"),
                (["--index", "50"], "--index between -50 49 50 points 50"),
                (["--points", "1"], "--points 2"),
                (["--points", "few"], "Invalid value '--points'"),
                (["--missing-labels", "x"], "--missing-labels"),
                (["--model", "r.csv"], "end '.fairpca'"),
            ]
        ),
        *(
            (None, [command, "absent.csv", *ON, *wrong], message)
            for command in ("report",)
            for wrong, message in [
                (["--report", "r.htm"], "'r.htm' end '.html'"),
                (["--report", "no/r.html"], "no folder"),
            ]
        ),
        (None, ["report", "people.csv", *ON], "Missing option '--report'"),
        (
            None,
            ["report", "people.csv", *ON[:3], "99", "--report", "r.html"],
            "99 10",
        ),
        (None, ["front", "people.csv", *ON[:3], "99"], "--n-components 99"),
        (holes, ["report", BAD, *ON, "--report", "r.html"], "Values missing infinite"),
        (nameless_groups, ["front", BAD, *ON], "no value 7 120 rows"),
        *(
            (None, [command, "absent.csv", *ON, *wrong], message)
            for command in ("fit", "audit")
            for wrong, message in [
                (["--tolerance", "1"], "--tolerance --criterion soft"),
                (["--measure", "range"], "--measure"),
                (["--bound", "few"], "Invalid value '--bound'"),
                (["--max-extra-loss", "-1"], "--max-extra-loss 0"),
                (["--bound", "1", "--max-extra-loss", "0"], "--max-extra-loss --bound leave out"),
                (["--criterion", "equal", "--bound", "1"], "--bound criterion its own"),
                (["--criterion", "balanced", "--bound", "1"], "--bound criterion its own"),
                (
                    ["--criterion", "balanced", "--measure", "share_lost"],
                    "--measure --criterion balanced leave out",
                ),
                (["--gap", "-1"], "--gap 0 -1"),
                (["--time-limit", "nan"], "--time-limit 0 nan"),
            ]
        ),
        *(
            (None, [command, "absent.csv", *ON, "--report", "r.html", *wrong], message)
            for command in ("report",)
            for wrong, message in [
                (["--criterion", "equal"], "--criterion"),
                (["--measure", "range"], "--measure"),
                (["--gap", "-1"], "--gap 0 -1"),
            ]
        ),
        (None, ["audit", "people.csv"], "audit --sensitive --n-components"),
        (None, ["audit", "people.csv", "--model", "m.fairpca", *ON], "model its own"),
        (
            None,
            ["audit", "people.csv", "--model", "m.fairpca", "--criterion", "equal"],
            "--criterion equal for a fit leave out",
        ),
        (None, ["audit", "people.csv", "--model", "people.csv"], "no fairpca model file"),
        (
            None,
            ["audit", "people.csv", *ON, "--baseline", "training"],
            "audit --model",
        ),
        (None, ["audit", "people.csv", *ON, "--baseline", "own"], "--baseline"),
        (None, ["audit", "people.csv", *ON, "--resamples", "1"], "--n-resamples 0 2"),
        (None, ["audit", "people.csv", "--model", "."], "cannot read '.' directory"),
        (None, ["transform", "people.csv", "--model", "x", "--output", "r.csv"], "no file 'x'"),
    ],
)
def test_wrong_input(model, capsys, make, arguments, message):
    if make is not None:
        make()
    before = contents()
    complaint(capsys, arguments, *message.split())
    assert contents() == before


@pytest.mark.parametrize(
    ("frame", "more", "message"),
    [
        (table().drop(columns=["a", "job"]), [], "lacks 'a' 'job'"),
        (table(id=1), [], "not know 'id'"),
        (table(job="poet"), [], "'job' fit 'poet'"),
        (table(a="text"), [], "'a' text numbers"),
        (table(), ["--drop", "a"], "lacks 'a'"),
        (table(), ["--drop", "z"], "no column 'z'"),
        (table(fairpca0=1), ["--carry", "fairpca0"], "'fairpca0' carried"),
    ],
)
def test_tables_that_do_not_fit_the_model(model, capsys, frame, more, message):
    frame.to_csv("other.csv", index=False)
    arguments = ["transform", "other.csv", "--model", "m.fairpca", "--output", "r.csv"]
    complaint(capsys, [*arguments, *more], *message.split())
    assert not Path("r.csv").exists()


@pytest.mark.parametrize("more", [[], ["--stream"]])
def test_a_sensitive_column_of_many_numbers_is_refused(folder, capsys, more):
    people().assign(age=np.arange(120) % 70 + 18).to_csv("ages.csv", index=False)
    arguments = ["--sensitive", "age", "--n-components", "1", *more]
    complaint(capsys, ["fit", "ages.csv", *arguments], "'age'", "70 different numbers")
    people().assign(age=np.arange(120) % 70 + 18).to_parquet("ages.parquet")
    complaint(capsys, ["fit", "ages.parquet", *arguments], "'age'", "different numbers")


def test_models_without_names_or_groups_cannot_be_used_on_tables(folder, capsys):
    rows = people()[[*"abcd"]]
    fair = FairPCA(2).fit(rows, sensitive_features=people()["sex"])
    save_model(fair, "named.fairpca")
    table = rows.assign(sex=people()["sex"])
    table.to_csv("t.csv", index=False)
    complaint(capsys, ["audit", "t.csv", "--model", "named.fairpca"], "--sensitive")
    assert main(["audit", "t.csv", "--model", "named.fairpca", "--sensitive", "sex"]) == 0
    capsys.readouterr()
    save_model(FairPCA(2, groups=None).fit(rows.to_numpy()), "nameless.fairpca")
    nameless = ["transform", "t.csv", "--model", "nameless.fairpca", "--output", "r.csv"]
    complaint(capsys, nameless, "without names")


def test_points_that_no_front_has(folder, capsys):
    """They are known after the work only, and nothing is written then."""
    before = contents()
    people().assign(sex="f").to_csv("one.csv", index=False)
    arguments = [*ON, "--points", "2", "--model", "m.fairpca", "--output", "r.csv"]
    arguments += ["--small-groups", "keep"]
    assert main(["front", "one.csv", *arguments, "--index", "1"]) == 2
    recorded(capsys.readouterr().err, "one group", "no point 1", "ordinary PCA")
    Path("one.csv").unlink()
    assert contents() == before


def test_a_missing_jinja2_is_said_before_any_work(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    arguments = ["report", "absent.csv", *FIT, "--report", "r.html"]
    complaint(capsys, arguments, "jinja2", "fairpca[report]")


def test_a_report_that_fails_in_the_middle_leaves_the_old_one(folder, capsys, monkeypatch):
    Path("r.html").write_text("before")
    before = contents()
    report = ["people.csv", *FIT, "--report", "r.html", "--force"]
    monkeypatch.setattr("os.replace", lambda *_: _raise(OSError("no space left")))
    assert main(["report", *report]) == 1
    assert "no space left" in capsys.readouterr().err
    assert contents() == before


@pytest.mark.parametrize("failure", [OSError("no space left"), None])
def test_a_table_that_fails_in_the_middle_leaves_the_old_one(folder, capsys, monkeypatch, failure):
    """A full disk, or a request to end the program."""

    def write(suffix, file, schema):
        file.write(b"half")
        if failure is None:
            os.kill(os.getpid(), signal.SIGTERM)
        raise failure

    Path("r.csv").write_text("before")
    before = sorted(os.listdir())
    monkeypatch.setattr(writing, "_writer", write)
    code = main(["fit", "people.csv", *FIT, "--output", "r.csv", "--force"])
    assert code == (130 if failure is None else 1)
    assert sorted(os.listdir()) == before
    assert Path("r.csv").read_text() == "before"
    said = capsys.readouterr().err
    assert ("interrupted" if failure is None else "no space left") in said
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def _raise(failure):
    raise failure

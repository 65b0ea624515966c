"""Wrong input: one line, exit code 2, and nothing is written."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairpca import FairPCA
from fairpca.cli import _fitting, main
from fairpca.model_file import save_model
from fairpca.tables import writing
from said import without_cautions

from people import BAD, FIT, ON, contents, nameless_groups, people


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
        (None, ["fit", "absent.csv", *ON], "there is no file 'absent.csv'"),
        (None, ["fit", ".", *ON], "'.' is a folder"),
        (write_csv(""), ["fit", BAD, *ON], "'bad.csv' is empty"),
        (write_csv("a,sex\n"), ["fit", BAD, *ON], "'bad.csv' has no rows"),
        (write_csv("a,sex\n1,f\n"), ["fit", BAD, *ON], "one row"),
        (write_csv("sex\nf\nm\n"), ["fit", BAD, *ON], "No columns are left"),
        (write_csv("a,a,sex\n1,2,f\n"), ["fit", BAD, *ON], "Columns have the same name: 'a'"),
        (write_csv(",a,sex\n0,1,f\n1,2,m\n"), ["fit", BAD, *ON], "A column has no name"),
        (write_csv("a,sex\n1,f,3\n1,m,3\n"), ["fit", BAD, *ON], "'bad.csv' cannot be read"),
        (write_csv("a,sex\n1,f\n1,m,3\n"), ["fit", BAD, *ON], "'bad.csv' cannot be read"),
        (write_csv("a,sex\n1,\xe9\n".encode("latin-1")), ["fit", BAD, *ON], "is not in UTF-8"),
        (cut_parquet, ["fit", "bad.parquet", *ON], "'bad.parquet' cannot be read"),
        (cut_arrow, ["fit", "bad.arrow", *ON], "'bad.arrow' cannot be read"),
        (write_csv("a"), ["fit", "people.xlsx", *ON], "there is no file 'people.xlsx'"),
        (None, ["fit", "m.fairpca", *ON], "'m.fairpca' must end in one of '.csv', '.parquet'"),
        (None, ["fit", "people.csv", "--n-components", "1"], "Missing option '--sensitive'"),
        (None, ["fit", "people.csv", *ON[:3], "many"], "--n-components must be a whole number"),
        (None, ["fit", "people.csv", *ON[:3], "1.5"], "--n-components must be a whole number"),
        (
            None,
            ["fit", "people.csv", *ON[:3], "99"],
            "--n-components 99 is more than the 10",
        ),
        (None, ["fit", "people.csv", *ON, "--encode", "error"], "text where numbers belong: 'job'"),
        (None, ["fit", "people.csv", *ON, "--criterion", "best"], "--criterion must be one of"),
        (None, ["fit", "people.csv", *ON, "--solver", "magic"], "--solver must be one of"),
        (None, ["fit", "people.csv", *ON, "--tolerance", "-1"], "--tolerance must be a number"),
        (None, ["fit", "people.csv", *ON, "--missing-labels", "x"], "--missing-labels must be one"),
        (None, ["fit", "people.csv", *ON, "--groups", "x"], "--groups must be one of"),
        (None, ["fit", "people.csv", *ON, "--drop", "z"], "no column 'z'; it has 'a', 'b'"),
        (None, ["fit", "people.csv", *ON, "--carry", "a"], "--carry needs --output"),
        (None, ["fit", "people.csv", *ON, "--bogus"], "No such option"),
        (None, ["frobnicate"], "No such command 'frobnicate'"),
        (holes, ["fit", BAD, *ON], "Values are missing or infinite in 'a' (3): fill them in"),
        (nameless_groups, ["fit", BAD, *ON], "have no value in 7 of 120 rows"),
        (dates, ["fit", "bad.parquet", *ON], "'a' holds dates or times"),
        (None, ["fit", "people.csv", *ON, "--output", "no/r.csv"], "there is no folder"),
        (None, ["fit", "people.csv", *ON, "--model", "no/m.fairpca"], "there is no folder"),
        (None, ["fit", "people.csv", *ON, "--output", "people.csv"], "is named twice"),
        (None, ["fit", "people.csv", *ON, "--model", "new.csv"], "must end in one of '.fairpca'"),
        (None, ["transform", "new.csv", "--model", "m.fairpca", "--output", "new.csv"], "twice"),
        (None, ["fit", "people.csv", *ON, "--output", "r.txt"], "'r.txt' must end in one of"),
        (
            folder_in_the_way,
            ["fit", "people.csv", *ON, "--output", "dir.csv"],
            "'dir.csv' is a folder",
        ),
        (
            reduced_names,
            ["fit", BAD, *ON, "--carry", "fairpca0", "--output", "r.csv", "--model", "r.fairpca"],
            "'fairpca0' cannot be carried over",
        ),
        *(
            # All of them before the table is read.
            (None, ["front", "absent.csv", *ON, *wrong], message)
            for wrong, message in [
                (["--knee", "--index", "3"], "choose a point by one of --index, --max-largest"),
                (["--max-largest", "-1"], "--max-largest must be a number of at least 0, got -1"),
                (["--criterion", "balanced"], "--criterion must be one of 'minmax', 'equal', got"),
                (["--measure", "variance"], "--measure must be one of"),
                (["--gap", "-1"], "--gap must be a number of at least 0, got -1"),
                (["--time-limit", "-1"], "--time-limit must be a number of at least 0, got -1"),
                (["--max-spread", "1", "--max-extra-loss", "0"], "not by several"),
                (["--max-spread", "-1"], "--max-spread must be a number of at least 0, got -1"),
                (["--max-extra-loss", "nan"], "--max-extra-loss must be a number of at least 0"),
                (["--index", "50"], "--index must be between -50 and 49 for 50 points, got 50"),
                (["--points", "1"], "--points must be at least 2"),
                (["--points", "few"], "Invalid value for '--points'"),
                (["--encode", "x"], "--encode must be one of"),
                (["--missing-labels", "x"], "--missing-labels must be one of"),
                (["--points-output", "absent.csv"], "is named twice"),
                (["--points-output", "r.csv", "--output", "r.csv"], "is named twice"),
                (["--points-output", "r.html"], "'r.html' must end in one of '.csv'"),
                (["--model", "r.csv"], "must end in one of '.fairpca'"),
            ]
        ),
        *(
            (None, [command, "absent.csv", *ON, *wrong], message)
            for command in ("report", "fit", "audit")
            for wrong, message in [
                (["--report", "r.htm"], "'r.htm' must end in one of '.html'"),
                (["--report", "no/r.html"], "there is no folder"),
            ]
        ),
        (None, ["report", "people.csv", *ON], "Missing option '--report'"),
        (
            None,
            ["report", "people.csv", *ON[:3], "99", "--report", "r.html"],
            "is more than the 10",
        ),
        (None, ["front", "people.csv", *ON[:3], "99"], "--n-components 99 is more than"),
        (holes, ["report", BAD, *ON, "--report", "r.html"], "Values are missing or infinite"),
        (nameless_groups, ["front", BAD, *ON], "have no value in 7 of 120 rows"),
        (
            None,
            ["fit", "absent.csv", *ON, "--report", "r.html", "--max-extra-loss", "0.1"],
            "a report shows every trade-off, solved exactly",
        ),
        (
            None,
            ["fit", "absent.csv", *ON, "--report", "r.html", "--criterion", "balanced"],
            "--solver and --criterion balanced, or --report.",
        ),
        *(
            (None, [command, "absent.csv", *ON, *wrong], message)
            for command in ("fit", "audit")
            for wrong, message in [
                (["--tolerance", "1"], "--tolerance is how far from equal groups may be: it needs"),
                (["--measure", "range"], "--measure must be one of"),
                (["--bound", "few"], "--bound must be a number of at least 0, or LABEL=NUMBER"),
                (["--bound", "f=-1"], "--bound must be a number of at least 0, or LABEL=NUMBER"),
                (["--max-extra-loss", "-1"], "--max-extra-loss must be a number of at least 0"),
                (["--bound", "1", "--max-extra-loss", "0"], "choose one of --bound and"),
                (["--criterion", "equal", "--bound", "1"], "--bound is a criterion of its own"),
                (["--solver", "mw", "--measure", "loss"], "leave it out, or --measure."),
                (["--solver", "mw", "--criterion", "balanced"], "leave it out, or --criterion."),
                (["--criterion", "balanced", "--bound", "1"], "--bound is a criterion of its own"),
                (
                    ["--criterion", "balanced", "--measure", "share_lost"],
                    "--criterion balanced is judged by losses: leave it out, or --measure.",
                ),
                (["--gap", "-1"], "--gap must be a number of at least 0, got -1"),
                (["--time-limit", "nan"], "--time-limit must be a number of at least 0, got nan"),
                (
                    ["--solver", "pareto", "--gap", "0.1", "--time-limit", "1"],
                    "only the exact solver has a gap and a time limit: leave out --gap and "
                    "--time-limit, or --solver pareto.",
                ),
            ]
        ),
        *(
            (None, [command, "absent.csv", *ON, "--report", "r.html", *wrong], message)
            for command in ("report",)
            for wrong, message in [
                (["--criterion", "balanced"], "--criterion must be one of 'minmax', 'equal', got"),
                (["--measure", "range"], "--measure must be one of"),
                (["--gap", "-1"], "--gap must be a number of at least 0, got -1"),
            ]
        ),
        (None, ["fit", "people.csv", *ON, "--bound", "z=1"], "but the groups are 'f', 'm'"),
        (
            None,
            ["audit", "people.csv", "--model", "m.fairpca", "--report", "r.html"],
            "leave out --report or --model",
        ),
        (None, ["audit", "people.csv"], "an audit needs --sensitive and --n-components, or a"),
        (None, ["audit", "people.csv", "--model", "m.fairpca", *ON], "a model has its own"),
        (None, ["audit", "people.csv", "--model", "people.csv"], "is no fairpca model file"),
        (
            None,
            ["audit", "people.csv", *ON, "--baseline", "training"],
            "is for an audit of a --model",
        ),
        (None, ["audit", "people.csv", *ON, "--baseline", "own"], "--baseline must be one of"),
        (None, ["audit", "people.csv", *ON, "--resamples", "1"], "must be 0 or at least 2"),
        (None, ["audit", "people.csv", "--model", "."], "cannot read '.': it is a folder."),
        (None, ["transform", "people.csv", "--model", "x", "--output", "r.csv"], "no file 'x'"),
    ],
)
def test_wrong_input(model, capsys, make, arguments, message):
    if make is not None:
        make()
    before = contents()
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("fairpca: ")
    assert message in shown.err
    assert without_cautions(shown.err).count("\n") == 1
    assert contents() == before


@pytest.mark.parametrize(
    ("frame", "more", "message"),
    [
        (table().drop(columns=["a", "job"]), [], "lacks columns that the model needs: 'a', 'job'"),
        (table(id=1), [], "columns that the model does not know: 'id'"),
        (table(job="poet"), [], "'job' has values that did not occur at the fit: 'poet'"),
        (table(a="text"), [], "'a' holds text where the model needs numbers"),
        (table(), ["--drop", "a"], "lacks columns that the model needs: 'a'"),
        (table(), ["--drop", "z"], "no column 'z'"),
        (table(fairpca0=1), ["--carry", "fairpca0"], "'fairpca0' cannot be carried over"),
    ],
)
def test_tables_that_do_not_fit_the_model(model, capsys, frame, more, message):
    frame.to_csv("other.csv", index=False)
    arguments = ["transform", "other.csv", "--model", "m.fairpca", "--output", "r.csv"]
    assert main([*arguments, *more]) == 2
    assert message in capsys.readouterr().err
    assert not Path("r.csv").exists()


@pytest.mark.parametrize("more", [[], ["--stream"]])
def test_a_sensitive_column_of_many_numbers_is_refused(folder, capsys, more):
    people().assign(age=np.arange(120) % 70 + 18).to_csv("ages.csv", index=False)
    assert main(["fit", "ages.csv", "--sensitive", "age", "--n-components", "1", *more]) == 2
    assert "'age' has 70 different numbers, too many to be groups" in capsys.readouterr().err
    people().assign(age=np.arange(120) % 70 + 18).to_parquet("ages.parquet")
    assert main(["fit", "ages.parquet", "--sensitive", "age", "--n-components", "1", *more]) == 2
    assert "different numbers in the column 'age'" in capsys.readouterr().err


def test_models_without_names_or_groups_cannot_be_used_on_tables(folder, capsys):
    rows = people()[[*"abcd"]]
    fair = FairPCA(2).fit(rows, sensitive_features=people()["sex"])
    save_model(fair, "named.fairpca")
    table = rows.assign(sex=people()["sex"])
    table.to_csv("t.csv", index=False)
    assert main(["audit", "t.csv", "--model", "named.fairpca"]) == 2
    assert "does not say what is sensitive: use --sensitive" in capsys.readouterr().err
    assert main(["audit", "t.csv", "--model", "named.fairpca", "--sensitive", "sex"]) == 0
    save_model(FairPCA(2, groups=None).fit(rows.to_numpy()), "nameless.fairpca")
    assert main(["transform", "t.csv", "--model", "nameless.fairpca", "--output", "r.csv"]) == 2
    assert "without names" in capsys.readouterr().err


def test_points_that_no_front_has(folder, capsys):
    """They are known after the work only, and nothing is written then."""
    before = contents()
    people().assign(sex="f").to_csv("one.csv", index=False)
    arguments = [*ON, "--points", "2", "--model", "m.fairpca", "--output", "r.csv"]
    arguments += ["--small-groups", "keep"]
    assert main(["front", "one.csv", *arguments, "--index", "1"]) == 2
    said = capsys.readouterr().err
    assert "there is no point 1: ordinary PCA is as fair as can be here" in said
    # Covariances of diag(3, 1), diag(1, 2) and diag(5, 4): the smallest spread of a line is 1/3.
    variances = {"f": (3, 1), "m": (1, 2), "n": (5, 4)}
    lines = ["u,v,sex"]
    for sex, (first, second) in variances.items():
        a, b = np.sqrt([2 * first, 2 * second])
        lines += [f"{a},0,{sex}", f"{-a},0,{sex}", f"0,{b},{sex}", f"0,{-b},{sex}"]
    Path("three.csv").write_text("\n".join(lines))
    arguments.append("--no-standardize")
    equal = ["--criterion", "equal"]
    assert main(["front", "three.csv", *arguments, *equal, "--max-spread", "0"]) == 2
    said = capsys.readouterr().err
    assert "No point has a spread of at most 0: the smallest is 0.333333." in said
    assert without_cautions(said).count("\n") == 1
    assert main(["front", "three.csv", *arguments, "--max-largest", "0"]) == 2
    said = capsys.readouterr().err
    assert "No point has a largest disparity of at most 0: the smallest is 0.666667." in said
    assert without_cautions(said).count("\n") == 1
    Path("one.csv").unlink()
    Path("three.csv").unlink()
    assert contents() == before


@pytest.mark.parametrize("command", ["fit", "audit", "report"])
def test_a_missing_jinja2_is_said_before_any_work(folder, capsys, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    arguments = [command, "absent.csv", *FIT, "--report", "r.html"]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said == "fairpca: Reports need jinja2: install `fairpca[report]`.\n"


def test_a_report_that_fails_in_the_middle_leaves_the_old_one(folder, capsys, monkeypatch):
    Path("r.html").write_text("before")
    before = contents()
    report = ["people.csv", *FIT, "--report", "r.html", "--force"]
    monkeypatch.setattr(_fitting, "write_report", lambda *_: _raise(OSError("no space left")))
    assert main(["fit", *report]) == 1
    assert contents() == before
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

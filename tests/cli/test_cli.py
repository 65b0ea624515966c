"""The command line: what it prints and writes, and how it refuses."""

import csv
import html
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import feather
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairpca import FairPCA, audit, pareto_front
from fairpca.cli import _fitting, _status_line, _tables, _terminal, main
from fairpca.cli.commands import fit as fit_command
from fairpca.files.model_file import load_model, save_model
from fairpca.report import report

from hostile import HOSTILE

SCRIPT = shutil.which("fairpca", path=sysconfig.get_path("scripts"))


def people(n=120, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n, p=[0.3, 0.7])
    frame = pd.DataFrame(rng.normal(size=(n, 4)) * [3, 2, 1, 1], columns=[*"abcd"])
    frame.loc[sex == "f", [*"abcd"]] = frame.loc[sex == "f", [*"dcba"]].to_numpy()
    frame["job"] = rng.choice(["NA", "cook", "=smith"], n)
    frame["sex"] = sex
    frame["race"] = rng.choice(["x", "y"], n)
    frame["rich"] = rng.integers(0, 2, n)
    return frame


def prepared_by_hand(frame, new):
    """The columns a, b, c, d and job of a new table, encoded and scaled as in the first."""
    columns = ColumnTransformer(
        [
            ("numbers", "passthrough", [*"abcd"]),
            ("texts", OneHotEncoder(sparse_output=False), ["job"]),
        ]
    )
    scaler = StandardScaler().fit(columns.fit_transform(frame))
    return scaler.transform(columns.transform(frame)), scaler.transform(columns.transform(new))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the same table in all formats, another table and a model."""
    monkeypatch.chdir(tmp_path)
    frame = people()
    frame.to_csv("people.csv", index=False)
    frame.to_parquet("people.parquet")
    frame.to_feather("people.arrow")
    people(seed=1).to_csv("new.csv", index=False)
    return tmp_path


FIT = ["--sensitive", "sex", "--n-components", "2", "--target", "rich", "--drop", "race"]


@pytest.fixture
def model(folder, capsys):
    assert main(["fit", "people.csv", *FIT, "--model", "m.fairpca"]) == 0
    capsys.readouterr()
    return folder / "m.fairpca"


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """No signs of life, which would depend on how fast the tests run."""
    monkeypatch.setattr(_terminal, "_PATIENCE", 1e6)
    monkeypatch.setattr(_terminal, "_PATIENCE_ON_A_TERMINAL", 1e6)


def said_by(done):
    """The error stream without signs of life."""
    lines = done.stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not re.search(r" (…|took \d+ s\.)$", line))


def program(*arguments, command=(sys.executable, "-m", "fairpca"), **options):
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        **options,
    )


# The program, in a process of its own


def test_fit_transform_and_audit_are_what_python_gives(folder):
    """Each step by another way of starting it, from and to another format."""
    frame, new = people(), people(seed=1)
    script = [SCRIPT] if SCRIPT else [sys.executable, "-m", "fairpca"]
    done = program("fit", "people.csv", *FIT, "--model", "m.fairpca", "--output", "r.parquet")
    assert (done.returncode, said_by(done)) == (0, "")
    rows, new_rows = prepared_by_hand(frame, new)
    fair = FairPCA(2).fit(rows, sensitive_features=frame["sex"])
    assert f"\n{fair.group_table_}\n" in done.stdout
    assert str(fair.certificate_) in done.stdout
    np.testing.assert_allclose(pd.read_parquet("r.parquet"), fair.transform(rows), atol=1e-12)
    done = program(
        *["transform", "new.csv", "--model", "m.fairpca", "--output", "new.feather"],
        *["--carry", "job", "--json"],
        command=script,
    )
    assert (done.returncode, said_by(done)) == (0, "")
    assert json.loads(done.stdout)["rows"] == 120
    written = feather.read_feather("new.feather")
    assert written.columns.tolist() == ["job", "fairpca0", "fairpca1"]
    assert written["job"].tolist() == new["job"].tolist()
    expected = fair.transform(new_rows)
    np.testing.assert_allclose(written[["fairpca0", "fairpca1"]], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(load_model("m.fairpca").transform(new), expected, atol=1e-12)
    done = program("audit", "people.arrow", "--model", "m.fairpca", "--json")
    assert (done.returncode, said_by(done)) == (0, "")
    result = json.loads(done.stdout)
    table = audit(fair, rows, sensitive_features=frame["sex"])
    losses = [group["audited_loss"] for group in result["model"]["groups"]]
    np.testing.assert_allclose(losses, table.loss, rtol=1e-10)
    assert result["certificate"]["status"] == "optimal"
    np.testing.assert_allclose(result["total_loss"], fair.solution_.total_loss, rtol=1e-10)


def test_a_point_of_the_front_is_what_python_gives(folder):
    frame, new = people(), people(seed=1)
    done = program(
        *["front", "people.csv", *FIT, "--points", "7", "--max-extra-loss", "0.02"],
        *["--model", "m.fairpca", "--output", "r.parquet", "--points-output", "points.arrow"],
        command=[SCRIPT] if SCRIPT else [sys.executable, "-m", "fairpca"],
    )
    assert (done.returncode, said_by(done)) == (0, "")
    rows, new_rows = prepared_by_hand(frame, new)
    front = pareto_front(rows, sensitive_features=frame["sex"], n_components=2, n_points=7)
    chosen = front.select(max_extra_loss=0.02)
    assert 0 < chosen < 6
    fair = front.estimator(chosen)
    assert f"\n{front}\n" in done.stdout
    assert f"\nPoint {chosen}, of 7:\n\n{fair.group_table_}\n" in done.stdout
    assert str(fair.certificate_) in done.stdout
    reduced = pd.read_parquet("r.parquet")
    np.testing.assert_allclose(reduced, fair.transform(rows), rtol=0, atol=1e-12)
    points = feather.read_feather("points.arrow")
    assert points["point"].tolist() == list(range(7))
    pd.testing.assert_frame_equal(points.set_index("point"), front.to_frame(), rtol=0, atol=1e-9)
    done = program("transform", "new.csv", "--model", "m.fairpca", "--output", "new.feather")
    assert (done.returncode, said_by(done)) == (0, "")
    written = feather.read_feather("new.feather")
    np.testing.assert_allclose(written, fair.transform(new_rows), rtol=0, atol=1e-12)


def test_a_report_is_what_python_gives(folder):
    arguments = ["report", "people.parquet", *FIT, "--report", "r.html", "--title", "<Who>"]
    done = program(*arguments, command=[SCRIPT] if SCRIPT else [sys.executable, "-m", "fairpca"])
    assert (done.returncode, said_by(done)) == (0, "")
    rows, _ = prepared_by_hand(people(), people())
    columns = pd.DataFrame(rows, columns=[*"abcd", "job==smith", "job=NA", "job=cook"])
    made = report(columns, sensitive_features=people()["sex"], n_components=2)
    assert f"\n{made.front.estimator(-1).group_table_}\n" in done.stdout
    assert "\n".join(made.summary["finding"]) in done.stdout
    assert str(made.front[-1].certificate) in done.stdout
    assert done.stdout.endswith("\nReport: r.html\n")
    page = Path("r.html").read_text("utf-8")
    assert "<title>&lt;Who&gt;</title>" in page
    assert "job=cook" in page
    code = html.unescape(re.search(r'<code id="code">(.*?)</code>', page, re.DOTALL)[1])
    again, model = [line for line in code.splitlines() if line.startswith("fairpca ")]
    assert shlex.split(again) == ["fairpca", *arguments]
    # What the page shows for its slider makes the model of that point.
    assert model.endswith(" --index 49 --model model.fairpca")
    assert main(shlex.split(model)[1:]) == 0
    fair = made.front.estimator(49)
    np.testing.assert_allclose(
        load_model("model.fairpca").transform(people()), fair.transform(columns), atol=1e-12
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_every_command_reads_and_writes_every_format(folder, suffix):
    table, model = f"people.{suffix}", ["--model", "m.fairpca"]
    steps = [
        ["fit", table, *FIT, *model, "--output", f"r.{suffix}"],
        ["transform", table, *model, "--output", f"again.{suffix}"],
        ["audit", table, *model],
        ["front", table, *FIT, "--points", "3", "--output", f"fairest.{suffix}"],
        ["report", table, *FIT, "--report", "r.html"],
    ]
    for step in steps:
        done = program(*step)
        assert (done.returncode, said_by(done)) == (0, ""), step
    rows, _ = prepared_by_hand(people(), people())
    expected = FairPCA(2).fit(rows, sensitive_features=people()["sex"]).transform(rows)
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "arrow": feather.read_feather}[suffix]
    for name in ("r", "again", "fairest"):
        np.testing.assert_allclose(read(f"{name}.{suffix}"), expected, rtol=0, atol=1e-12)
    assert Path("r.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_bad_input_ends_with_one_line_and_code_2(folder):
    done = program("fit", "people.csv", "--sensitive", "gender", "--n-components", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert said_by(done).startswith("fairpca: The table has no column 'gender'")
    assert said_by(done).count("\n") == 1


def test_without_the_extra_one_line_names_it():
    code = (
        "import sys\n"
        "from importlib.abc import MetaPathFinder\n"
        "class Missing(MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('typer', 'pandas', 'pyarrow'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from fairpca.cli import main\n"
        "sys.exit(main())\n"
    )
    done = program(command=(sys.executable, "-c", code))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "fairpca: the command line needs typer, pandas, pyarrow: install `fairpca[cli]`.\n"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
def test_ctrl_c_while_writing_leaves_nothing_behind(folder):
    code = (
        "import sys, time\n"
        "from fairpca.cli import _tables, main\n"
        "def slow(frame, file):\n"
        "    file.write(b'half')\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
        "_tables._WRITERS['.csv'] = slow\n"
        f"sys.exit(main(['fit', 'people.csv', *{FIT!r}, '--output', 'r.csv']))\n"
    )
    before = sorted(os.listdir())
    running = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout.readline() == "writing\n"
    assert len(os.listdir()) == len(before) + 1
    running.send_signal(signal.SIGINT)
    out, said = running.communicate(timeout=30)
    assert (running.returncode, out) == (130, "")
    assert said.strip() == "fairpca: interrupted; nothing was left half-written."
    assert sorted(os.listdir()) == before


# The commands, in this process


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_all_formats_give_the_same(model, suffix, capsys):
    """All are read alike, and what is written can be read again."""
    expected = load_model(model).transform(people())
    output = f"reduced.{suffix}"
    assert main(["transform", f"people.{suffix}", "--model", str(model), "--output", output]) == 0
    assert capsys.readouterr().out == f"Reduced 120 rows to 2 columns.\nWritten: {output}\n"
    np.testing.assert_allclose(_tables.read_table(Path(output)), expected, atol=1e-12)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_fronts_and_reports_of_all_formats(folder, suffix, capsys):
    source, points = f"people.{suffix}", f"points.{suffix}"
    arguments = [*FIT, "--points", "3", "--points-output", points, "--json"]
    assert main(["front", source, *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    rows, _ = prepared_by_hand(people(), people())
    front = pareto_front(rows, sensitive_features=people()["sex"], n_components=2, n_points=3)
    assert found["groups"] == ["f", "m"]
    assert found["n_components"] == 2
    assert found["chosen"] is None
    disparities = [point["disparities"] for point in found["points"]]
    np.testing.assert_allclose(disparities, front.disparities, rtol=0, atol=1e-9)
    written = _tables.read_table(Path(points))
    assert written.columns.tolist() == ["point", *front.to_dict()]
    np.testing.assert_allclose(written["total loss"], front.total_loss, rtol=1e-12)
    assert main(["report", source, *FIT, "--report", "r.html", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["report"] == "r.html"
    np.testing.assert_allclose(found["total_loss"], front.total_loss[-1], rtol=1e-10)
    assert found["summary"]["dimensions"] == 2
    assert Path("r.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_a_share_finds_the_dimension_first(folder, capsys):
    share = [*FIT[:3], "0.6", *FIT[4:]]
    rows, _ = prepared_by_hand(people(), people())
    r = FairPCA(0.6).fit(rows, sensitive_features=people()["sex"]).n_components_
    assert r == 4
    arguments = ["front", "people.csv", *share, "--points", "2", "--output", "r.csv", "--json"]
    assert main([*arguments, "--carry", "rich"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_components"], found["chosen"]["point"]) == (r, 1)  # the fairest
    assert pd.read_csv("r.csv").columns.tolist() == ["rich", *(f"fairpca{i}" for i in range(r))]
    assert main(["report", "people.csv", *share, "--report", "r.html"]) == 0
    assert f"fair subspace of {r} dimensions" in capsys.readouterr().out


def test_every_way_to_choose_a_point(folder, capsys):
    rows, _ = prepared_by_hand(people(), people())
    front = pareto_front(rows, sensitive_features=people()["sex"], n_components=2, n_points=9)
    for wish, expected in [
        (["--index", "-2"], 7),
        (["--max-spread", "1.0"], front.select(max_spread=1.0)),
        (["--knee"], front.select(knee=True)),
    ]:
        assert main(["front", "people.csv", *FIT, "--points", "9", *wish, "--json"]) == 0
        chosen = json.loads(capsys.readouterr().out)["chosen"]
        assert chosen["point"] == expected
        np.testing.assert_allclose(chosen["total_loss"], front.total_loss[expected], rtol=1e-10)


def test_points_that_no_front_has(folder, capsys):
    """They are known after the work only, and nothing is written then."""
    before = contents()
    people().assign(sex="f").to_csv("one.csv", index=False)
    arguments = [*ON, "--points", "2", "--model", "m.fairpca", "--output", "r.csv"]
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
    assert main(["front", "three.csv", *arguments, "--max-spread", "0"]) == 2
    said = capsys.readouterr().err
    assert "No point has a spread of at most 0: the smallest is 0.333333." in said
    assert said.count("\n") == 1
    Path("one.csv").unlink()
    Path("three.csv").unlink()
    assert contents() == before


def test_fit_and_audit_write_reports_too(folder, capsys):
    for command in ("fit", "audit"):
        assert main([command, "people.arrow", *FIT, "--report", f"{command}.html"]) == 0
        assert capsys.readouterr().out.endswith(f"\nReport: {command}.html\n")
        page = Path(f"{command}.html").read_text("utf-8")
        assert f"fairpca {command} people.arrow --sensitive sex" in page
        assert main([command, "people.arrow", *FIT, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["report"] is None


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
    monkeypatch.setattr(fit_command, "write_report", lambda *_: _raise(OSError("no space left")))
    assert main(["fit", "people.csv", *FIT, "--report", "r.html"]) == 1
    assert contents() == before
    monkeypatch.setattr("os.replace", lambda *_: _raise(OSError("no space left")))
    assert main(["report", "people.csv", *FIT, "--report", "r.html"]) == 1
    assert "no space left" in capsys.readouterr().err
    assert contents() == before


def test_options_reach_the_fit(folder, capsys):
    arguments = ["--sensitive", "sex", "--sensitive", "race", "--n-components", "0.6", "--json"]
    arguments += ["--criterion", "minmax", "--no-standardize", "--encode", "codes"]
    arguments += ["--keep-sensitive", "--drop", "rich", "--model", "m.fairpca"]
    assert main(["fit", "people.parquet", *arguments]) == 0
    result = json.loads(capsys.readouterr().out)
    frame = people()
    codes = {
        name: frame[name].astype("category").cat.codes.astype(float)
        for name in ("job", "sex", "race")
    }
    rows = frame.drop(columns="rich").assign(**codes).to_numpy(float)
    fair = FairPCA(0.6, criterion="minmax").fit(rows, sensitive_features=frame[["sex", "race"]])
    assert [group["group"] for group in result["groups"]] == fair.group_table_.to_dict()["group"]
    assert result["n_components"] == fair.n_components_
    assert result["certificate"]["text"] == str(fair.certificate_)
    assert result["columns"] == [*"abcd", "job", "sex", "race"]
    assert load_model("m.fairpca").fair_pca.get_params() == fair.get_params()


def test_a_tolerance_and_a_solver_reach_the_fit(folder, capsys):
    arguments = ["fit", "people.csv", *FIT, "--tolerance", "0.25", "--solver", "pareto", "--json"]
    assert main(arguments) == 0
    certificate = json.loads(capsys.readouterr().out)["certificate"]
    assert certificate["requested_tolerance"] == 0.25


def test_the_results_as_data(model, capsys):
    fair = load_model(model).fair_pca
    assert main(["audit", "people.csv", "--model", "m.fairpca", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["rows"] == 120
    np.testing.assert_allclose(result["model"]["total_loss"], fair.solution_.total_loss)
    assert main(["audit", "people.csv", *FIT, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["model"] is None
    assert result["groups"][0]["group"] == "f"
    disparities = [group["fair_disparity"] for group in result["groups"]]
    np.testing.assert_allclose(disparities, fair.group_table_.disparity, atol=1e-9)
    arguments = ["transform", "new.csv", "--model", "m.fairpca", "--output", "r.csv", "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out) == {
        "command": "transform",
        "rows": 120,
        "n_components": 2,
        "model": "m.fairpca",
        "output": "r.csv",
    }


def test_one_group_is_ordinary_pca(folder, capsys):
    people().assign(sex="f").to_csv("bad.csv", index=False)
    assert main(["audit", BAD, *ON]) == 0
    shown = capsys.readouterr()
    assert "There is one group" in shown.out
    assert shown.err.startswith("fairpca: warning: --sensitive has one group only, 'f'")


def test_an_audit_in_words(model, capsys):
    assert main(["audit", "people.csv", *FIT]) == 0
    out = capsys.readouterr().out
    assert "PCA disparity" in out
    assert "With ordinary PCA, " in out
    assert "% more than ordinary PCA." in out
    assert "Proven optimal" in out
    arguments = ["audit", "new.csv", "--model", "m.fairpca", "--sensitive", "race"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "audited disparity" in out
    assert "fair disparity" in out
    assert "\nx " in out  # a group by race, not by sex


def test_help_has_examples_and_the_version_is_printed(capsys):
    assert main([]) == 0
    assert "fairpca audit people.csv" in capsys.readouterr().out
    for command in ("audit", "fit", "front", "report", "transform"):
        assert main([command, "--help"]) == 0
        shown = capsys.readouterr().out
        assert "Examples:" in shown
        assert f"fairpca {command} " in shown.split("Examples:")[1]
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("fairpca ")


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
            "--solver",
            "lagrangian",
        ]
        carried = [argument for name in ("=1+1", "label") for argument in ("--carry", name)]
        outputs = ["--model", "h.fairpca", "--output", "h.csv", *carried]
        assert main(["fit", *arguments, *outputs]) == 0
        shown = capsys.readouterr()
        assert shown.err == ""
        assert "\x1b" not in shown.out
        assert "\u202e" not in shown.out
        assert max(map(len, shown.out.splitlines())) < 400
        assert load_model("h.fairpca").columns == HOSTILE
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
        few = ["--points", "2", "--points-output", "points.csv", "--json"]
        assert main(["front", *arguments, *few]) == 0
        found = json.loads(capsys.readouterr().out)
        assert sorted(found["groups"]) == sorted(labels)
        assert set(HOSTILE) < set(found["columns"])
        with open("points.csv", encoding="utf-8", newline="") as file:
            assert {f"disparity of {name}" for name in labels} < {*next(csv.reader(file))}
        title = ["--report", "h.html", "--title", HOSTILE[0]]
        for command in (["front", *arguments, "--knee"], ["report", *arguments, *title]):
            assert main(command) == 0
            shown = capsys.readouterr()
            assert shown.err == ""
            assert "\x1b" not in shown.out
            assert max(map(len, shown.out.splitlines())) < 400
        assert "<script>alert" not in Path("h.html").read_text("utf-8")


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


def nameless_groups():
    people().assign(sex=np.where(np.arange(120) < 7, None, "f")).to_csv("bad.csv", index=False)


def dates():
    table(a=pd.Timestamp(0)).to_parquet("bad.parquet")


def reduced_names():
    table(fairpca0=1).to_csv("bad.csv", index=False)


def folder_in_the_way():
    Path("dir.csv").mkdir()


def contents():
    return {name: Path(name).is_file() and Path(name).read_bytes() for name in os.listdir()}


BAD, ON = "bad.csv", ["--sensitive", "sex", "--n-components", "1"]


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
        (write_csv("a,sex\n1,f,3\n1,m,3\n"), ["fit", BAD, *ON], "cannot read 'bad.csv'"),
        (write_csv("a,sex\n1,f\n1,m,3\n"), ["fit", BAD, *ON], "cannot read 'bad.csv'"),
        (write_csv("a,sex\n1,\xe9\n".encode("latin-1")), ["fit", BAD, *ON], "is not in UTF-8"),
        (cut_parquet, ["fit", "bad.parquet", *ON], "cannot read 'bad.parquet'"),
        (cut_arrow, ["fit", "bad.arrow", *ON], "cannot read 'bad.arrow'"),
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
        (None, ["fit", "people.csv", *ON, "--drop", "z"], "no column 'z'; it has 'a', 'b'"),
        (None, ["fit", "people.csv", *ON, "--carry", "a"], "--carry needs --output"),
        (None, ["fit", "people.csv", *ON, "--bogus"], "No such option"),
        (None, ["frobnicate"], "No such command 'frobnicate'"),
        (holes, ["fit", BAD, *ON], "Values are missing or infinite in 'a' (3): fill them in"),
        (nameless_groups, ["fit", BAD, *ON], "have no value in 7 of 120 rows"),
        (dates, ["fit", "bad.parquet", *ON], "'a' holds neither numbers alone nor text alone"),
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
                (["--knee", "--index", "3"], "choose a point by one of --index, --max-spread"),
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
            ["fit", "absent.csv", *ON, "--report", "r.html", "--criterion", "minmax"],
            "a report shows every tolerance, solved exactly",
        ),
        (
            None,
            ["audit", "people.csv", "--model", "m.fairpca", "--report", "r.html"],
            "leave out --report or --model",
        ),
        (None, ["audit", "people.csv"], "an audit needs --sensitive and --n-components, or a"),
        (None, ["audit", "people.csv", "--model", "m.fairpca", *ON], "a model has its own"),
        (None, ["audit", "people.csv", "--model", "people.csv"], "is no fairpca model file"),
        (None, ["audit", "people.csv", "--model", "."], "cannot read '.'"),
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
    assert shown.err.count("\n") == 1
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


def test_columns_that_do_not_belong_can_be_dropped_or_carried(model, capsys):
    table(id=range(120), other="x").to_csv("other.csv", index=False)
    arguments = ["transform", "other.csv", "--model", "m.fairpca", "--output", "r.csv"]
    assert main([*arguments, "--drop", "other", "--carry", "id", "--carry", "a"]) == 0
    written = pd.read_csv("r.csv")
    assert written.columns.tolist() == ["id", "a", "fairpca0", "fairpca1"]
    assert written["id"].tolist() == list(range(120))


def test_models_without_names_or_groups_cannot_be_used_on_tables(folder, capsys):
    rows = people()[[*"abcd"]]
    fair = FairPCA(2).fit(rows, sensitive_features=people()["sex"])
    save_model(fair, "named.fairpca")
    table = rows.assign(sex=people()["sex"])
    table.to_csv("t.csv", index=False)
    assert main(["audit", "t.csv", "--model", "named.fairpca"]) == 2
    assert "does not say what is sensitive: use --sensitive" in capsys.readouterr().err
    assert main(["audit", "t.csv", "--model", "named.fairpca", "--sensitive", "sex"]) == 0
    save_model(FairPCA(2).fit(rows.to_numpy()), "nameless.fairpca")
    assert main(["transform", "t.csv", "--model", "nameless.fairpca", "--output", "r.csv"]) == 2
    assert "without names" in capsys.readouterr().err


def test_words_for_missing_are_words_in_text_and_missing_in_numbers(folder):
    write_csv("job,code,n\nNone,01,1\nNA,02,NA\ncook,03,3\n")()
    frame = _tables.read_table(Path("bad.csv"), ["code"])
    assert frame["job"].tolist() == ["None", "NA", "cook"]
    assert frame["code"].tolist() == ["01", "02", "03"]
    assert frame["n"].isna().tolist() == [False, True, False]
    write_csv('\ufeffjob\ncook\n""\nNA\n')()
    frame = _tables.read_table(Path("bad.csv"))
    assert frame["job"].isna().tolist() == [False, True, False]


def test_missing_labels_can_be_a_group(folder, capsys):
    nameless_groups()
    assert main(["fit", BAD, *ON, "--missing-labels", "group"]) == 0
    assert "(missing)" in capsys.readouterr().out


def test_arrow_streams_and_indexes_can_be_read(folder):
    frame = people().set_axis([f"row {i}" for i in range(120)]).set_index("sex", append=True)
    table = pyarrow.Table.from_pandas(frame)
    assert "__index_level_0__" in table.column_names
    with pyarrow.ipc.new_stream("stream.arrow", table.schema) as writer:
        writer.write_table(table)
    read = _tables.read_table(Path("stream.arrow"))
    assert sorted(read.columns) == sorted(people().columns)
    assert read["sex"].tolist() == people()["sex"].tolist()


def test_what_fails_inside_ends_with_code_1(folder, capsys, monkeypatch):
    def fail(*_, **__):
        raise KeyError("odd")

    monkeypatch.setattr(FairPCA, "fit", fail)
    assert main(["fit", "people.csv", *FIT]) == 1
    shown = capsys.readouterr().err
    assert shown == "fairpca: internal error, KeyError: 'odd' (--debug shows where)\n"
    assert main(["fit", "--debug", "people.csv", *FIT]) == 1
    assert "Traceback" in capsys.readouterr().err
    for failure, code, said in [
        (MemoryError(), 1, "not enough memory"),
        (ImportError("Semidefinite programs need cvxpy: install `fairpca[sdp]`."), 2, "[sdp]"),
    ]:
        monkeypatch.setattr(FairPCA, "fit", lambda *_, failure=failure, **__: _raise(failure))
        assert main(["fit", "people.csv", *FIT]) == code
        assert said in capsys.readouterr().err


def _raise(failure):
    raise failure


@pytest.mark.parametrize("failure", [OSError("no space left"), None])
def test_a_table_that_fails_in_the_middle_leaves_the_old_one(folder, capsys, monkeypatch, failure):
    """A full disk, or a request to end the program."""

    def write(frame, file):
        file.write(b"half")
        if failure is None:
            os.kill(os.getpid(), signal.SIGTERM)
        raise failure

    Path("r.csv").write_text("before")
    before = sorted(os.listdir())
    monkeypatch.setitem(_tables._WRITERS, ".csv", write)
    code = main(["fit", "people.csv", *FIT, "--output", "r.csv"])
    assert code == (130 if failure is None else 1)
    assert sorted(os.listdir()) == before
    assert Path("r.csv").read_text() == "before"
    said = capsys.readouterr().err
    assert ("interrupted" if failure is None else "no space left") in said
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_long_work_shows_signs_of_life_and_short_work_none(capsys, monkeypatch):
    with _terminal.stage("resting"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(_terminal, "_PATIENCE", 0.0)
    with _terminal.stage("working"):
        threading.Event().wait(0.2)
    assert capsys.readouterr().err == "fairpca: working …\nfairpca: working took 0 s.\n"


class Terminal(io.StringIO):
    """An error stream that says it is a terminal, and what it would show."""

    def isatty(self):
        return True

    def shows(self):
        cells = []
        column = 0
        for character in self.getvalue():
            column = 0 if character == "\r" else column + 1
            if character != "\r":
                cells[column - 1 : column] = character
        return "".join(cells).rstrip()

    def wait_for(self, text):
        for _ in range(500):
            if self.shows() == text:
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
        before = terminal.getvalue()
        _terminal.complain("warning")
        assert terminal.getvalue()[len(before) :].startswith(
            "\r" + " " * 16 + "\rfairpca: warning\n"
        )
    assert terminal.getvalue().rpartition("\n")[2].replace("\r", " ").split("2/2")[-1].strip() == ""


def test_dumb_terminals_get_whole_lines(monkeypatch):
    terminal = on_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    with _terminal.stage("working") as progress:
        progress("finding", 1, 2)
    assert terminal.getvalue() == ""


def test_the_steps_of_a_slow_fit_are_shown(folder, monkeypatch):
    terminal = on_a_terminal(monkeypatch)
    said = []
    monkeypatch.setattr(_status_line.StatusLine, "say", lambda line, text: said.append(text))
    assert main(["fit", "people.csv", *FIT, "--solver", "pareto"]) == 0
    doing = "fairpca: finding a fair subspace for 120 rows of 7 columns: step"
    assert said[:2] == [f"{doing} 1/1,000", f"{doing} 2/1,000"]
    assert terminal.shows() == ""


def test_the_points_of_a_front_are_counted(folder, monkeypatch):
    on_a_terminal(monkeypatch)
    said = []
    monkeypatch.setattr(_status_line.StatusLine, "say", lambda line, text: said.append(text))
    assert main(["front", "people.csv", *FIT, "--points", "3"]) == 0
    doing = "fairpca: finding the points of the front"
    assert said == [f"{doing} {done}/3" for done in (1, 2, 3)]
    assert main(["report", "people.csv", *FIT, "--report", "r.html"]) == 0
    assert f"{doing} 50/50" in said
    assert said[-1].startswith("fairpca: drawing ")


def test_warnings_are_one_line_and_not_said_twice(folder, capsys):
    frame = people()
    frame.loc[0, "sex"] = "only one"
    frame.to_csv("bad.csv", index=False)
    assert main(["fit", BAD, *ON, "--solver", "lagrangian"]) == 0
    shown = capsys.readouterr()
    assert "fairpca: warning: Groups with a single row: 'only one'." in shown.err
    assert shown.err.count("\n") == 1
    assert "groups" in shown.out
    frame.loc[1:, "sex"] = "f"
    frame.to_csv("bad.csv", index=False)
    for arguments in (["front", BAD, *ON[:3], "0.5"], ["fit", BAD, *ON, "--report", "r.html"]):
        assert main(arguments) == 0
        shown = capsys.readouterr()
        assert shown.err.count("Groups with a single row: 'only one'.") == 1
        assert shown.err.count("\n") == 1


def test_it_can_run_outside_the_main_thread(folder):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["--version"])))
    thread.start()
    thread.join()
    assert codes == [0]


def test_numbers_that_json_does_not_have_are_null(capsys):
    _terminal.say_json({"a": [np.inf, 1.0], "b": (float("nan"),)})
    assert json.loads(capsys.readouterr().out) == {"a": [None, 1.0], "b": [None]}


@pytest.mark.parametrize(("text", "value"), [("5", 5), ("0.9", 0.9), ("1e-1", 0.1)])
def test_dimensions(text, value):
    assert _fitting.parse_dimension(text) == value
    assert type(_fitting.parse_dimension(text)) is type(value)

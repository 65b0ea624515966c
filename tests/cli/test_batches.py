"""Tables in batches: the same as in one batch, in little memory."""

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

from fairpca.cli import main
from fairpca.model_file import load_model
from fairpca.tables import reading
from fairpca.tables.preparation import PreparationLearner
from fairpca.tables.reading import Table
from said import complaint

from people import contents, read_table

SUFFIXES = ["csv", "parquet", "arrow"]


ROWS = 120


FIT = ["--sensitive", "sex", "--n-components", "2", "--target", "rich", "--drop", "word"]


def people(n=ROWS, seed=0):
    """Numbers of all kinds, some of them hard, and texts, some of which look like none."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n, p=[0.3, 0.7])
    frame = pd.DataFrame(rng.normal(size=(n, 4)) * [3, 2, 1, 1], columns=[*"abcd"])
    frame.loc[sex == "f", [*"abcd"]] = frame.loc[sex == "f", [*"dcba"]].to_numpy()
    frame["b"] = frame["b"].round(2) + 1e6
    frame["same"] = 0.1
    frame["count"] = rng.integers(0, 50, n)
    frame["flag"] = rng.random(n) < 0.5
    frame["job"] = np.sort(rng.choice(["NA", "cook", "=smith", "7"], n))  # not in every batch
    frame["sex"] = sex
    frame["race"] = rng.choice([1, 2], n)
    frame["rich"] = rng.integers(0, 2, n)
    frame["word"] = np.where(np.arange(n) % 3, "ä,b", None)
    return frame


def write(frame, path):
    if path.endswith(".csv"):
        frame.to_csv(path, index=False)
    elif path.endswith(".parquet"):
        frame.to_parquet(path, row_group_size=50)
    else:
        frame.to_feather(path, chunksize=50)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for suffix in SUFFIXES:
        write(people(), f"people.{suffix}")
    return tmp_path


@pytest.fixture
def small_batches(monkeypatch):
    """Batches of a few rows."""
    monkeypatch.setattr(reading, "_MOST_ROWS", 17)
    monkeypatch.setattr(reading, "BLOCK", 1000)


def run(capsys, *arguments):
    assert main([*map(str, arguments), "--json"]) == 0
    said = capsys.readouterr()
    return json.loads(said.out), said.err


def both(capsys, *arguments):
    """The results of one batch and of many, which must be the same."""
    in_memory, first = run(capsys, *arguments)
    contents = {path.name: read(path) for path in written()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_MOST_ROWS", 17)
        patch.setattr(reading, "BLOCK", 1000)
        forced = [] if arguments[0] == "audit" else ["--force"]
        streamed, second = run(capsys, *arguments, "--stream", *forced)
    assert first == second
    assert_same(streamed, in_memory)
    for name, content in contents.items():
        assert_same(read(Path(name)), content)
        Path(name).unlink()
    return streamed


def written():
    return [path for path in Path().iterdir() if path.name.startswith("made")]


def read(path):
    if path.suffix != ".fairpca":
        frame = read_table(path)
        schema = None
        if path.suffix == ".parquet":
            schema = pyarrow.parquet.read_schema(path)
        return frame, schema
    model = load_model(path)
    prepared = model.preparation
    return {
        "columns": repr(prepared.columns),
        "ignored": prepared.ignored,
        "means": prepared.means.tolist(),
        "scales": prepared.scales.tolist(),
        "components": model.fair_pca.components_.tolist(),
        "mean": model.fair_pca.mean_.tolist(),
        "certificate": str(model.fair_pca.certificate_),
    }


def assert_same(a, b, within=1e-9):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for name, value in a.items():
            # A bound is flat where it is best: that place is known to half the digits of the bound.
            assert_same(value, b[name], 1e-6 if "multipliers" in name else within)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y, within)
    elif isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b, rtol=1e-9, atol=1e-9)
    elif isinstance(a, pyarrow.Schema):
        assert a.equals(b, check_metadata=True)
    elif isinstance(a, float):
        assert a == pytest.approx(b, rel=within, abs=within)
    else:
        assert a == b


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "more",
    [
        ["--sensitive", "race", "--carry", "rich", "--carry", "word", "--carry", "flag"],
        ["--standardize", "all", "--carry", "job", "--weights", "count"],
        ["--standardize", "none", "--drop", "b", "--n-components", "0.9"],
        ["--standardize", "none", "--criterion", "minmax"],
    ],
)
def test_a_fit_and_what_it_writes(folder, capsys, suffix, more):
    files = ["--model", "made.fairpca", "--output", f"made.{suffix}"]
    both(capsys, "fit", f"people.{suffix}", *FIT, *more, *files)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_transform_and_audit_with_a_model(folder, capsys, suffix):
    run(capsys, "fit", "people.csv", *FIT, "--drop", "race", "--model", "m.fairpca")
    new = people(90, seed=1).assign(other=3)
    new.loc[80, "race"] = None  # which makes others of the whole numbers before it
    write(new, f"new.{suffix}")
    arguments = [f"new.{suffix}", "--model", "m.fairpca", "--drop", "other"]
    carried = ["--carry", "race", "--carry", "word", "--carry", "flag"]
    for output in ("made.csv", "made.parquet", "made.feather"):
        assert both(capsys, "transform", *arguments, *carried, "--output", output)["rows"] == 90
    both(capsys, "audit", *arguments)
    both(capsys, "audit", *arguments, "--baseline", "training", "--groups", "marginals")
    labels = both(capsys, "audit", *arguments, "--sensitive", "race", "--missing-labels", "group")
    assert [group["group"] for group in labels["model"]["groups"]] == [
        "1.0",
        "2.0",
        "(missing)",
    ]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_audit_and_a_front(folder, capsys, suffix):
    both(capsys, "audit", f"people.{suffix}", *FIT, "--criterion", "minmax")
    files = ["--model", "made.fairpca", "--output", "made.csv"]
    chosen = ["--points", "4", "--index", "1", "--n-components", "0.8"]
    both(capsys, "front", f"people.{suffix}", *FIT, *chosen, *files)


def test_words_are_the_same(folder, capsys, small_batches):
    said = []
    for stream in (["--stream"], []):
        assert main(["fit", "people.csv", *FIT, "--output", "made.csv", "--force", *stream]) == 0
        said.append(capsys.readouterr())
    assert said[0] == said[1]


def test_large_files_are_read_in_batches_unless_a_report_needs_them(folder, capsys, monkeypatch):
    kept = []
    init = Table.__init__
    monkeypatch.setattr(
        Table,
        "__init__",
        lambda self, *a, **how: init(self, *a, **how) or kept.append(self.in_memory),
    )
    assert main(["audit", "people.csv", *FIT]) == 0
    monkeypatch.setattr(reading, "IN_MEMORY", Path("people.csv").stat().st_size - 1)
    assert main(["audit", "people.csv", *FIT]) == 0
    assert main(["report", "people.csv", *FIT, "--report", "r.html"]) == 0
    assert kept == [True, False, True]
    capsys.readouterr()


def changed(**values):
    """The table with values in a middle batch."""
    frame = people().astype(dict.fromkeys(values, object))
    for name, value in values.items():
        frame.loc[60, name] = value
    return frame


def cut(path, share=0.6):
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: int(share * len(data))])


@pytest.mark.parametrize(
    ("suffix", "frame", "more", "message"),
    [
        (
            "csv",
            changed(a="many"),
            [],
            "no 'many' correct --missing-values",
        ),
        (
            "csv",
            changed(a=None, count=None),
            [],
            "infinite 'a' (1) 'count' (1) fill them --impute",
        ),
        ("parquet", changed(a=None, job=None), [], "infinite 'a' (1) 'job' (1) fill"),
        ("arrow", changed(a=float("inf")), [], "missing infinite 'a' (1) fill"),
        ("csv", changed(sex=None), [], "no value 1 120 rows"),
        ("parquet", changed(sex=None), [], "no value 1 120 rows"),
        ("csv", changed(a=1e200), [], "too large squared 'a'"),
        ("csv", changed(a=1e200), ["--standardize", "none"], "too large squared 'a'"),
        ("csv", people().iloc[:0], [], "no rows"),
        ("arrow", people().iloc[:0], [], "no rows"),
        ("csv", people().iloc[:1], [], "one row"),
        ("csv", people(), ["--n-components", "40"], "40 12 columns"),
        ("csv", people(), ["--sensitive", "gender"], "no column 'gender'"),
        ("csv", people(), ["--carry", "gender"], "no column 'gender'"),
        (
            "csv",
            people().assign(fairpca0=1),
            ["--drop", "fairpca0", "--carry", "fairpca0"],
            "'fairpca0' carried",
        ),
        (
            "csv",
            people(1100).assign(id=[f"x{i}" for i in range(1100)]),
            [],
            "'id' different text every row (1,100 1,100 rows)",
        ),
        (
            "csv",
            people(5005).assign(town=[f"x{i % 1001}" for i in range(5005)]),
            [],
            "'town' 1,001 different texts column each",
        ),
        ("parquet", people().assign(when=pd.Timestamp(0)), [], "'when' holds dates times"),
    ],
)
def test_wrong_input(folder, small_batches, capsys, suffix, frame, more, message):
    write(frame, f"bad.{suffix}")
    before = contents()
    files = ["--model", "made.fairpca", "--output", "made.csv"]
    arguments = ["fit", f"bad.{suffix}", *FIT, *more, *files, "--stream"]
    complaint(capsys, arguments, *message.split())
    assert contents() == before


@pytest.mark.parametrize("command", ["fit", "transform"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_that_are_cut_short(folder, small_batches, capsys, suffix, command):
    run(capsys, "fit", "people.csv", *FIT, "--drop", "race", "--model", "m.fairpca")
    if suffix == "csv":
        with open("people.csv", "a", encoding="utf-8") as file:
            file.write('1,2,3,"4')
    else:
        cut(f"people.{suffix}")
    before = contents()
    options = ["--model", "m.fairpca"] if command == "transform" else FIT
    arguments = [command, f"people.{suffix}", *options, "--output", "made.csv", "--stream"]
    complaint(capsys, arguments, f"'people.{suffix}'")
    assert contents() == before


@pytest.mark.parametrize("output", ["made.csv", "made.parquet", "made.arrow"])
@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (changed(a="many"), "'a' text numbers"),
        (changed(a=None), "missing infinite 'a' (1)"),
        (changed(job="king"), "fit 'king'"),
        (people().drop(columns="a"), "lacks 'a'"),
        (people().assign(more=1), "not know 'more'"),
    ],
)
def test_a_transform_that_fails_in_the_middle_leaves_the_old_table(
    folder, small_batches, capsys, frame, message, output
):
    run(capsys, "fit", "people.csv", *FIT, "--drop", "race", "--model", "m.fairpca")
    write(frame, "bad.csv")
    Path(output).write_text("old", "utf-8")
    before = contents()
    arguments = ["bad.csv", "--model", "m.fairpca", "--output", output, "--force", "--stream"]
    complaint(capsys, ["transform", *arguments], *message.split())
    assert contents() == before


def test_a_file_that_changes_between_two_passes_is_refused(folder, capsys, monkeypatch):
    learned = PreparationLearner.preparation

    def learn_and_change(self):
        write(people(seed=3), "people.csv")
        return learned(self)

    monkeypatch.setattr(PreparationLearner, "preparation", learn_and_change)
    complaint(capsys, ["audit", "people.csv", *FIT, "--stream"], "'people.csv'", "changed")


def test_columns_of_all_types_are_carried(folder, capsys):
    """Arrow files keep their types, except for dictionaries, whose values are written."""
    run(capsys, "fit", "people.csv", *FIT, "--drop", "race", "--model", "m.fairpca")
    kinds = {
        "price": pyarrow.array([Decimal("1.5")] * ROWS),
        "days": pyarrow.array([19_000] * ROWS, pyarrow.date32()),
        "time": pyarrow.array([0] * (ROWS - 1) + [3], pyarrow.timestamp("us")),
        "kind": pyarrow.array(["x", "y", None, "z"] * (ROWS // 4)).dictionary_encode(),
        "whole": pyarrow.array([1, None] * (ROWS // 2)),
    }
    table = pyarrow.Table.from_pandas(people())
    for name, column in kinds.items():
        table = table.append_column(name, column)
    pyarrow.parquet.write_table(table, "t.parquet")
    others = [word for name in kinds for word in ("--drop", name)]
    carried = [word for name in kinds for word in ("--carry", name)]
    for output in ("made.csv", "made.parquet", "made.arrow"):
        arguments = ["t.parquet", "--model", "m.fairpca", *others, "--output", output]
        both(capsys, "transform", *arguments, *carried)
    for output in ("made.csv", "made.parquet"):
        arguments = ["t.parquet", "--model", "m.fairpca", *others, "--output", output]
        run(capsys, "transform", *arguments, *carried)
    written = pyarrow.parquet.read_schema("made.parquet")
    for name, column in kinds.items():
        kind = pyarrow.string() if name == "kind" else column.type
        assert written.field(name).type == kind
    head, first = Path("made.csv").read_text("utf-8").splitlines()[:2]
    assert head == "price,days,time,kind,whole,fairpca0,fairpca1"
    assert first.startswith('1.5,2022-01-08,1970-01-01 00:00:00.000000,"x",1,')
    table = table.append_column("list", pyarrow.array([[1]] * ROWS))
    pyarrow.parquet.write_table(table, "t.parquet")
    arguments = ["t.parquet", "--model", "m.fairpca", *others, "--carry", "list"]
    wrong = ["transform", *arguments, "--output", "made.csv", "--force"]
    complaint(capsys, wrong, "CSV", "cannot hold")


# Progress and memory


def test_rows_are_counted(folder, small_batches):
    told = []
    table = Table(Path("people.parquet"), in_memory=False)
    for _ in table.batches(["a", "sex"], tell=lambda *a: told.append(a)):
        pass
    assert told[-1] == (120, 1.0)
    assert [rows for rows, _ in told[:3]] == [17, 34, 51]

"""Tables with many faults: all are said at once, and --auto adds what helps."""

import json
import shlex
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairpca import FairPCA, audit
from fairpca.cli import main
from fairpca.model_file import load_model
from said import complaint

from texts import recorded

ON = ["--sensitive", "sex", "--n-components", "2"]
N = 200
ADD = (
    "--drop 'Unnamed: 0' --drop id --drop name --drop date --drop empty --weights fnlwgt "
    "--impute --missing-labels drop"
)


def faulty():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": rng.permutation(3 * N)[:N]})
    frame["name"] = [f"person {i}" for i in range(N)]
    frame["age"] = rng.integers(18, 80, N)
    frame["income"] = rng.choice(190_000, N, replace=False) + 10_000
    frame["date"] = pd.date_range("2020-01-01", periods=N).astype(str)
    frame["married"] = rng.integers(0, 2, N)
    frame["job"] = rng.choice(["cook", "smith"], N)
    frame["x"] = np.where(np.arange(N) < 6, np.nan, rng.normal(size=N))
    frame["fnlwgt"] = rng.integers(1, 9, N)
    frame["empty"] = np.nan
    frame["mostly"] = np.where(rng.random(N) < 0.8, np.nan, rng.normal(size=N))
    frame["sex"] = np.where(np.arange(N) % 50 == 0, None, rng.choice(["f", "m"], N))
    return frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    faulty().to_csv("t.csv")
    return tmp_path


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_all_that_is_wrong_is_said_at_once_and_auto_adds_what_helps(folder, capsys, stream):
    fit = ["fit", "t.csv", *ON, "--json", *stream]
    said = complaint(capsys, fit, "'Unnamed: 0'", "'id'", "'date'", "'fnlwgt'", "4 of 200 rows")
    *sentences, last = said.splitlines()
    assert len(sentences) == 8
    assert last == f"add: {ADD}"
    assert main([*fit, *shlex.split(last.removeprefix("add: "))]) == 0
    by_hand, warned = capsys.readouterr()
    assert main([*fit, "--auto"]) == 0
    by_itself, again = capsys.readouterr()
    by_hand, by_itself = json.loads(by_hand), json.loads(by_itself)
    assert (by_hand.pop("added_by_auto"), by_hand.pop("problems")) == ("", [])
    assert by_itself.pop("added_by_auto") == ADD
    assert len(by_itself.pop("problems")) == 8
    assert by_itself == by_hand
    assert again == warned
    recorded(warned, "Most values", "'mostly' (79 %)", "leaving it out")
    assert by_hand["columns"] == ["age", "income", "married", "job", "x", "mostly"]
    assert (by_hand["rows"], by_hand["rows_left_out"]) == (196, 4)


def test_what_was_added_is_printed_and_later_tables_need_none_of_it(folder, capsys):
    files = ["--model", "m.fairpca", "--output", "r.csv"]
    assert main(["fit", "t.csv", *ON, "--auto", *files]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == f"--auto added {ADD}"
    recorded("\n".join(lines[:8]), "'id'", "dates", "survey weights", "no value")
    assert main(["transform", "t.csv", "--model", "m.fairpca", "--output", "all.csv"]) == 0
    capsys.readouterr()
    assert len(pd.read_csv("all.csv")) == N
    preparation = load_model("m.fairpca").preparation
    scales = dict(zip(preparation.feature_names, preparation.scales, strict=True))
    assert [scales[name] for name in ("married", "job=cook", "job=smith")] == [1.0, 1.0, 1.0]
    assert scales["income"] > 1e4


def test_what_cannot_be_mended_by_options_is_said_with_the_rest(folder, capsys):
    """The last line is then what is to be added as well."""
    wrong = ["fit", "t.csv", *ON[:3], "20"]
    said = complaint(capsys, wrong, "'id'", "--n-components 20", "7 columns")
    assert said.splitlines()[-1].startswith("then add: --drop 'Unnamed: 0'")
    complaint(capsys, [*wrong, "--auto"], "--n-components 20", "7 columns")


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_weights_count_as_in_python(folder, capsys, stream):
    frame = faulty().drop(columns=["id", "name", "date", "empty", "x", "mostly", "job"])
    frame = frame.assign(sex=np.resize(["f", "m", "m"], N))
    frame.to_csv("w.csv", index=False)
    on = ["w.csv", *ON, "--weights", "fnlwgt", "--standardize", "none", "--json", *stream]
    assert main(["fit", *on, "--criterion", "minmax", "--model", "m.fairpca"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = frame[["age", "income", "married"]].to_numpy(float)
    given = {"sensitive_features": frame["sex"], "sample_weight": frame["fnlwgt"]}
    fair = FairPCA(2, criterion="minmax").fit(rows, **given)
    assert found["total_loss"] == pytest.approx(fair.solution_.total_loss, rel=1e-9)
    weighted = {o["name"]: o["note"] for o in found["outcomes"]}["fnlwgt"]
    assert weighted == "the weights of the rows"
    audited = ["audit", "w.csv", "--model", "m.fairpca", "--weights", "fnlwgt", "--json", *stream]
    assert main(audited) == 0
    groups = json.loads(capsys.readouterr().out)["model"]["groups"]
    table = audit(fair, rows, **given)
    assert [g["audited_loss"] for g in groups] == pytest.approx(table.loss.tolist(), rel=1e-9)
    frame.assign(fnlwgt=-1).to_csv("w.csv", index=False)
    complaint(capsys, ["fit", *on], "weights", "'fnlwgt'", "at least 0")


def test_a_page_counts_weights(folder, capsys):
    on = ["t.csv", *ON, "--auto", "--report", "r.html", "--rows-shown", "0", "--json"]
    assert main(["report", *on]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["summary"]["rows"] == 196
    page = Path("r.html").read_text("utf-8")
    assert "the weights of the rows" in page
    assert "--weights fnlwgt" in page


def test_many_columns_that_lack_values_are_counted_and_repeated_names_dropped(folder, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 7)), columns=list("abcdefg"))
    frame["sex"] = np.resize(["f", "m"], 60)
    frame.iloc[0, :6] = np.nan
    frame.to_csv("t.csv", index=False)
    said = complaint(capsys, ["audit", "t.csv", *ON], "'e' (1) and 1 more:")
    assert said.splitlines()[-1] == "add: --impute"
    frame.to_csv("t.csv", index=False, header=[*"abcdef", "a", "sex"])
    said = complaint(capsys, ["audit", "t.csv", *ON], "'a (2)'")
    assert said.splitlines()[-1].startswith("add: --drop 'a (2)'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(["audit", "t.csv", *ON, "--auto"])
    assert "--auto added --drop 'a (2)'" in capsys.readouterr().out
    frame.iloc[0, 6] = np.nan
    frame.to_csv("t.csv", index=False)
    complaint(capsys, ["audit", "t.csv", *ON], "and 2 more:")


def test_a_dangling_link_is_replaced_where_that_is_forced(folder, capsys):
    Path("m.fairpca").symlink_to("nowhere.fairpca")
    fit = ["fit", "t.csv", *ON, "--auto", "--model", "m.fairpca"]
    complaint(capsys, fit, "there already", "--force")
    assert main([*fit, "--force"]) == 0
    assert Path("m.fairpca").is_symlink()
    assert load_model("nowhere.fairpca").fair_pca.n_components_ == 2

"""The commands: what they print and write is what Python gives."""

import html
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import feather
from sklearn.preprocessing import StandardScaler

from fairpca import AtMost, Balanced, Equal, FairPCA, MinMax, SoftMinMax, compare, pareto_front
from fairpca.cli import _options, _terminal, main
from fairpca.datasets import load_adult
from fairpca.model_file import load_model
from fairpca.report import N_POINTS, report
from said import complaint, piped

from people import BAD, FIT, ON, nameless_groups, people, prepared_by_hand, read_table
from texts import recorded

pytestmark = [pytest.mark.contract, pytest.mark.untraced]  # typer, rich, pyarrow


def proof(fair):
    """What is printed of a certificate below a table that says who is better and worse off."""
    said = fair.certificate_.sentences()
    return [sentence for sentence in said if not sentence.startswith("Compared with ordinary PCA")]


def run(capsys, *arguments):
    """What the program prints."""
    assert main([*arguments]) == 0, arguments
    said = capsys.readouterr()
    assert said.err == ""
    return said.out


def test_a_point_of_the_front_is_what_python_gives(folder, capsys):
    frame, new = people(), people(seed=1)
    rows, new_rows = prepared_by_hand(frame, new)
    front = pareto_front(rows, sensitive_features=frame["sex"], n_components=2, n_points=7)
    out = run(
        capsys,
        *["front", "people.csv", *FIT, "--points", "7", "--index", "3"],
        *["--model", "m.fairpca", "--output", "r.parquet"],
    )
    fair = front.estimator(3)
    assert f"\n{piped(front)}\n" in out
    assert f"\nPoint 3, of 7:\n\n{piped(fair.group_table_)}\n" in out
    assert "\n".join(proof(fair)) in out
    reduced = pd.read_parquet("r.parquet")
    np.testing.assert_allclose(reduced, fair.transform(rows), rtol=0, atol=1e-12)
    run(capsys, "transform", "new.csv", "--model", "m.fairpca", "--output", "new.feather")
    written = feather.read_feather("new.feather")
    np.testing.assert_allclose(written, fair.transform(new_rows), rtol=0, atol=1e-12)


def test_a_report_is_what_python_gives(folder, capsys):
    arguments = ["report", "people.parquet", *FIT, "--report", "r.html", "--title", "<Who>"]
    out = run(capsys, *arguments)
    rows, _ = prepared_by_hand(people(), people())
    columns = pd.DataFrame(rows, columns=[*"abcd", "job==smith", "job=NA", "job=cook"])
    given = {"n_components": 2, "data_name": "people.parquet"}
    made = report(columns, sensitive_features=people()["sex"], **given)
    table = replace(made.front.estimator(-1).group_table_, name="min-max")
    assert f"\n{piped(table)}\n" in out
    assert all(f"\n{sentence}\n" in out for sentence in made.sentences())
    assert "\n".join(proof(made.front.estimator(-1))) in out
    assert out.count("ompared with ordinary PCA") == 1  # below the table
    assert out.endswith("\nReport: r.html\n")
    page = Path("r.html").read_text("utf-8")
    assert "<title>&lt;Who&gt;</title>" in page
    assert "job=cook" in page
    code = html.unescape(re.search(r'<code id="code">(.*?)</code>', page, re.DOTALL)[1])
    again, model = [line for line in code.splitlines() if line.startswith("fairpca ")]
    assert shlex.split(again) == ["fairpca", *arguments]
    # What the page shows for its slider makes the model of that point.
    at = made.summary["start"]
    assert model.endswith(f" --index {at} --model model.fairpca")
    assert main(shlex.split(model)[1:]) == 0
    fair = made.front.estimator(at)
    np.testing.assert_allclose(
        load_model("model.fairpca").transform(people()), fair.transform(columns), atol=1e-12
    )


@pytest.mark.parametrize("batches", [[], ["--stream"]])
def test_a_comparison_is_what_python_gives(folder, batches, capsys):
    arguments = ["compare", "people.csv", *FIT, *batches]
    out = run(capsys, *arguments)
    rows, _ = prepared_by_hand(people(), people())
    made = compare(rows, sensitive_features=people()["sex"], n_components=2)
    assert str(made.verdict) in out
    found = json.loads(run(capsys, *arguments, "--json"))
    assert found["command"] == "compare"
    assert found["verdict"]["kind"] == made.verdict.kind
    assert found["verdict"]["text"] == str(made.verdict)
    lost = [entry["share_lost"] for entry in found["groups"]]
    np.testing.assert_allclose(lost, made.share_lost.value.ravel(), atol=1e-6)
    worst = [entry["worst_share_lost"] for entry in found["methods"]]
    np.testing.assert_allclose(worst, made.worst_lost, atol=1e-6)
    other = [*arguments, "--criterion", "balanced", "--json"]
    names = [entry["method"] for entry in json.loads(run(capsys, *other))["methods"]]
    assert names[-2:] == ["fair PCA", "min-max PCA"]
    wrong = ["compare", "people.csv", "--sensitive", "sex", "--n-components", "99"]
    complaint(capsys, wrong, "--n-components 99")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_every_command_reads_and_writes_every_format(folder, suffix, capsys):
    table, model = f"people.{suffix}", ["--model", "m.fairpca"]
    steps = [
        ["fit", table, *FIT, *model, "--output", f"r.{suffix}"],
        ["transform", table, *model, "--output", f"again.{suffix}"],
        ["audit", table, *model],
        ["compare", table, *FIT],
        ["front", table, *FIT, "--points", "3", "--output", f"fairest.{suffix}"],
        ["report", table, *FIT, "--report", "r.html"],
    ]
    for step in steps:
        run(capsys, *step)
    rows, _ = prepared_by_hand(people(), people())
    fits = {
        criterion: FairPCA(2, criterion=criterion).fit(rows, sensitive_features=people()["sex"])
        for criterion in ("soft", "minmax")
    }
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "arrow": feather.read_feather}[suffix]
    for name, criterion in (("r", "soft"), ("again", "soft"), ("fairest", "minmax")):
        expected = fits[criterion].transform(rows)
        np.testing.assert_allclose(read(f"{name}.{suffix}"), expected, rtol=0, atol=1e-12)
    assert Path("r.html").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("command", ["fit", "front"])
def test_whitened_models_and_tables(folder, command, capsys):
    model = ["--model", "m.fairpca"]
    run(capsys, command, "people.csv", *FIT, "--whiten", "--output", "r.csv", *model)
    run(capsys, "transform", "people.csv", *model, "--output", "again.csv")
    for name in ("r.csv", "again.csv"):
        np.testing.assert_allclose(np.cov(read_table(name).T), np.eye(2), atol=1e-10)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_all_formats_give_the_same(model, suffix, capsys):
    """All are read alike, and what is written can be read again."""
    expected = load_model(model).transform(people())
    output = f"reduced.{suffix}"
    assert main(["transform", f"people.{suffix}", "--model", str(model), "--output", output]) == 0
    out = capsys.readouterr().out
    columns = ("4 of numbers", "1 of text", "3 0/1 columns", "'sex'", "left out: 'race', 'rich'")
    recorded(out, *columns, "120 rows", "2 columns", f"Written: {output}")
    assert out.count("\n") == 3
    np.testing.assert_allclose(read_table(output), expected, atol=1e-12)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_fronts_and_reports_of_all_formats(folder, suffix, capsys):
    source = f"people.{suffix}"
    arguments = [*FIT, "--points", "3", "--json"]
    assert main(["front", source, *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    rows, _ = prepared_by_hand(people(), people())
    front = pareto_front(rows, sensitive_features=people()["sex"], n_components=2, n_points=3)
    assert found["groups"] == ["f", "m"]
    assert found["n_components"] == 2
    assert found["chosen"] is None
    disparities = [point["disparities"] for point in found["points"]]
    np.testing.assert_allclose(disparities, front.disparities, rtol=0, atol=1e-9)
    losses = [point["total_loss"] for point in found["points"]]
    np.testing.assert_allclose(losses, front.total_loss, rtol=1e-12)
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
    assert r == 3
    arguments = ["front", "people.csv", *share, "--points", "2", "--output", "r.csv", "--json"]
    assert main([*arguments, "--carry", "rich"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_components"], found["chosen"]["point"]) == (r, 1)  # the fairest
    assert pd.read_csv("r.csv").columns.tolist() == ["rich", *(f"fairpca{i}" for i in range(r))]
    assert main(["report", "people.csv", *share, "--report", "r.html"]) == 0
    assert f"PCA of {r} dimensions" in capsys.readouterr().out


def test_a_point_is_chosen_by_its_number(folder, capsys):
    rows, _ = prepared_by_hand(people(), people())
    front = pareto_front(rows, sensitive_features=people()["sex"], n_components=2, n_points=9)
    for wish, expected in [("-2", 7), ("4", 4)]:
        arguments = ["front", "people.csv", *FIT, "--points", "9", "--index", wish, "--json"]
        assert main(arguments) == 0
        chosen = json.loads(capsys.readouterr().out)["chosen"]
        assert chosen["point"] == expected
        np.testing.assert_allclose(chosen["total_loss"], front.total_loss[expected], rtol=1e-10)


def test_options_reach_the_fit(folder, capsys):
    arguments = ["--sensitive", "sex", "--sensitive", "race", "--n-components", "0.6", "--json"]
    arguments += ["--criterion", "equal", "--standardize", "none", "--drop", "job"]
    arguments += ["--drop", "rich", "--model", "m.fairpca"]
    assert main(["fit", "people.parquet", *arguments]) == 0
    result = json.loads(capsys.readouterr().out)
    frame = people()
    rows = frame[[*"abcd"]].to_numpy(float)
    fair = FairPCA(0.6, criterion=Equal()).fit(rows, sensitive_features=frame[["sex", "race"]])
    assert [group["group"] for group in result["groups"]] == fair.group_table_.to_dict()["group"]
    assert result["n_components"] == fair.n_components_
    assert result["certificate"]["text"] == str(fair.certificate_)
    assert result["columns"] == [*"abcd"]
    assert parameters(load_model("m.fairpca").fair_pca) == parameters(fair)


def parameters(fair):
    """Those of an estimator, and its criterion in words."""
    return fair.get_params() | {"criterion": repr(fair.criterion)}


def test_a_tolerance_reaches_the_fit(folder, capsys):
    arguments = ["fit", "people.csv", *FIT, "--criterion", "equal", "--tolerance", "0.25"]
    assert main([*arguments, "--model", "m.fairpca"]) == 0
    assert load_model("m.fairpca").fair_pca.criterion.tolerance == 0.25


def test_a_gap_and_a_time_limit_reach_the_search(folder, capsys):
    rng = np.random.default_rng(0)
    # Ten groups, each in directions of its own, and few dimensions: no search closes the gap.
    turns = [np.linalg.qr(rng.standard_normal((8, 8)))[0] for _ in range(10)]
    table = pd.DataFrame(np.vstack([rng.standard_normal((30, 8)) / range(1, 9) @ t for t in turns]))
    table = table.add_prefix("x").assign(group=np.repeat([f"g{i}" for i in range(10)], 30))
    table.to_csv("many.csv", index=False)
    on = ["many.csv", "--sensitive", "group", "--n-components", "3"]
    gap, at_gap = (
        ["--criterion", "minmax", "--gap", "0.9"],
        "The search ended there: the gap is as small as was asked for.",
    )
    for command, typed, said in (
        ("fit", gap, at_gap),
        ("fit", ["--time-limit", "0"], "The search ended at its time limit"),
        ("audit", [*gap, "--time-limit", "1000"], at_gap),
        ("front", [*gap, "--points", "3"], at_gap),
        ("front", ["--time-limit", "0"], "The search ended at its time limit"),
        ("report", [*gap[2:], "--time-limit", "1000", "--report", "r.html"], at_gap),
    ):
        assert main([command, *on, *typed]) == 0
        assert said in capsys.readouterr().out
    again = html.unescape(Path("r.html").read_text("utf-8"))
    assert "--n-components 3 --gap 0.9 --time-limit 1000.0 --points 21 --index" in again


@pytest.mark.parametrize(
    ("typed", "criterion"),
    [
        (["--measure", "share_lost"], SoftMinMax("share_lost")),
        (["--criterion", "minmax", "--measure", "kept_variance"], MinMax("kept_variance")),
        (["--max-extra-loss", "0.01"], SoftMinMax(max_extra_loss=0.01)),
        (["--criterion", "minmax", "--max-extra-loss", "0.01"], MinMax(max_extra_loss=0.01)),
        (["--standard-errors", "0"], SoftMinMax(standard_errors=0.0)),
        (["--bound", "2"], AtMost(2.0)),
        (["--measure", "kept_variance", "--bound", "1.5"], AtMost(1.5, "kept_variance")),
        (["--criterion", "balanced"], Balanced()),
    ],
)
def test_what_is_asked_for_reaches_the_fit_and_the_model(folder, capsys, typed, criterion):
    rows, _ = prepared_by_hand(people(), people())
    fair = FairPCA(2, criterion=criterion).fit(rows, sensitive_features=people()["sex"])
    assert main(["fit", "people.csv", *FIT, *typed, "--model", "m.fairpca", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["certificate"]
    certificate = fair.certificate_
    assert (found["goal"], found["measure"]) == (certificate.goal, certificate.measure)
    assert found["value"] == pytest.approx(certificate.value, rel=1e-7)
    np.testing.assert_allclose(found["measures"], certificate.measures, rtol=1e-6)
    np.testing.assert_allclose(found["change_from_pca"], certificate.change_from_pca, atol=1e-6)
    assert found["all_worse_off"] is False
    restored = load_model("m.fairpca").fair_pca
    assert parameters(restored) == parameters(fair)
    np.testing.assert_allclose(restored.transform(rows), fair.transform(rows), atol=1e-6)
    assert main(["audit", "people.csv", *FIT, *typed]) == 0
    assert certificate.sentences()[0] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "criterion"),
    [
        (["--criterion", "equal"], "equal"),
        (["--measure", "share_kept"], MinMax("share_kept")),
    ],
)
def test_other_fronts_and_reports(folder, capsys, typed, criterion):
    rows, _ = prepared_by_hand(people(), people())
    given = {"sensitive_features": people()["sex"], "n_components": 0.4, "n_points": 4}
    front = pareto_front(rows, criterion=criterion, **given)
    share = [*FIT[:3], "0.4", *FIT[4:]]
    wish = ["--index", "2"]
    assert main(["front", "people.csv", *share, "--points", "4", *typed, *wish, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["n_components"] == front.problem.n_components
    assert (found["over"], found["measure"]) == (front.over, front[0].certificate.measure)
    assert found["chosen"]["point"] == 2
    for name, expected in [
        ("largest", np.abs(front.largest)),
        ("spread", front.spread),
        ("measures", np.abs(front.measures)),
        ("worse_off", [0, 1, 1, 1]),
        ("better_off", [0, 1, 1, 1]),
    ]:
        values = [point[name] for point in found["points"]]
        np.testing.assert_allclose(values, expected, atol=1e-7)
    measure = ["--measure", front.problem.criterion.measure]
    arguments = ["report", "people.csv", *share, *measure, "--report", "r.html"]
    assert main(arguments) == 0
    named = {"n_points": N_POINTS, "data_name": "people.csv"}
    made = report(rows, measure=measure[1], **given | named)
    out = capsys.readouterr().out
    assert all(f"\n{sentence}\n" in out for sentence in made.sentences())
    page = Path("r.html").read_text("utf-8")
    code = html.unescape(re.search(r'<code id="code">(.*?)</code>', page, re.DOTALL)[1])
    again, command = [line for line in code.splitlines() if line.startswith("fairpca ")]
    assert shlex.split(again) == ["fairpca", *arguments]
    assert main(shlex.split(command)[1:]) == 0
    restored = load_model("model.fairpca").transform(people())
    shown = made.front.estimator(made.summary["start"])
    np.testing.assert_allclose(restored, shown.transform(rows), atol=1e-9)


def test_that_everyone_is_worse_off_comes_first(folder, capsys):
    adult = load_adult(sensitive="race", keep_sensitive=False)
    adult.data.assign(race=adult.sensitive_features.to_numpy()).to_csv("adult.csv", index=False)
    options = ["--sensitive", "race", "--n-components", "6", "--as-number", "fnlwgt"]
    assert main(["fit", "adult.csv", *options, "--criterion", "equal"]) == 0
    told = capsys.readouterr().out.split("-\n")[-1]
    assert "\nEvery group is worse off than with ordinary PCA, by " in told
    assert told.index("Every group is worse off than with ordinary PCA, by ") < told.index(
        "The fair subspace, "
    )
    assert told.count("Every group is worse off than with ordinary PCA, by ") == 1
    assert main(["fit", "adult.csv", *options]) == 0
    assert "Every group is worse off" not in capsys.readouterr().out


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
    assert 0.0 < result["groups"][0]["fair_share_lost"] < 1.0
    compared = result["compared_with_pca"]
    assert sorted([*compared["better_off"], *compared["worse_off"]]) == ["f", "m"]
    assert min(compared["largest_gain"], compared["largest_loss"]) > 0.0
    assert compared["text"].startswith("Compared with ordinary PCA, 1 of 2 groups")
    disparities = [group["fair_disparity"] for group in result["groups"]]
    np.testing.assert_allclose(disparities, fair.group_table_.disparity, atol=1e-9)
    arguments = ["transform", "new.csv", "--model", "m.fairpca", "--output", "r.csv", "--json"]
    assert main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert result.pop("prepared_columns") == [*"abcd", "job==smith", "job=NA", "job=cook"]
    assert [(o["name"], o["kind"], o["n_columns"]) for o in result.pop("outcomes")] == [
        *((name, "number", 1) for name in "abcd"),
        ("job", "onehot", 3),
        ("sex", "sensitive", 0),
        ("race", "left out", 0),
        ("rich", "left out", 0),
    ]
    assert result == {
        "command": "transform",
        "columns": [*"abcd", "job"],
        "rows": 120,
        "rows_left_out": 0,
        "added_by_auto": "",
        "problems": [],
        "n_components": 2,
        "model": "m.fairpca",
        "output": "r.csv",
        "warnings": [],
    }


def test_one_group_is_ordinary_pca(folder, capsys):
    people().assign(sex="f").to_csv("bad.csv", index=False)
    assert main(["audit", BAD, *ON]) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("fairpca: warning: --sensitive has one group only, 'f'")
    for _ in range(2):  # what is said of one command is not said of the next
        assert main(["audit", BAD, *ON, "--json"]) == 0
        (warned,) = json.loads(capsys.readouterr().out)["warnings"]
        assert warned.startswith("--sensitive has one group only, 'f'")


def test_an_audit_in_words(model, capsys):
    assert main(["audit", "people.csv", *FIT]) == 0
    out = capsys.readouterr().out
    assert "% lost  % lost" in out
    assert out.count("Compared with ordinary PCA") == 1
    recorded(out, "1 of 2 groups is better off", "% more than ordinary PCA", "Proven optimal")
    arguments = ["audit", "new.csv", "--model", "m.fairpca", "--sensitive", "race"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert re.search(r"PCA +audited", out)
    assert not re.search(r"PCA +fair", out)  # nothing is fitted that was not asked for
    assert "\nx " in out  # a group by race, not by sex


def test_an_audit_against_the_training_rows(model, capsys):
    arguments = ["audit", "new.csv", "--model", "m.fairpca"]
    assert main([*arguments, "--baseline", "training"]) == 0
    out = capsys.readouterr().out
    recorded(out, "own PCA", "than ordinary PCA of the training rows", "95 % interval")
    assert main([*arguments, "--resamples", "0"]) == 0
    out = capsys.readouterr().out
    assert "training" not in out
    assert "interval" not in out
    # Groups by another column were not there at the fit, and JSON has no nan.
    assert main([*arguments, "--baseline", "training", "--sensitive", "race", "--json"]) == 0
    result = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["model"]
    assert result["baseline"] == "training"
    assert {group["training_own_pca_loss"] for group in result["groups"]} == {None}
    recorded(result["compared_with_pca"]["text"], "Not among the training groups")


def test_columns_that_do_not_belong_can_be_dropped_or_carried(model, capsys):
    people().assign(id=range(120), other="x").to_csv("other.csv", index=False)
    arguments = ["transform", "other.csv", "--model", "m.fairpca", "--output", "r.csv"]
    assert main([*arguments, "--drop", "other", "--carry", "id", "--carry", "a"]) == 0
    written = pd.read_csv("r.csv")
    assert written.columns.tolist() == ["id", "a", "fairpca0", "fairpca1"]
    assert written["id"].tolist() == list(range(120))


def test_missing_labels_can_be_a_group(folder, capsys):
    nameless_groups()
    assert main(["fit", BAD, *ON, "--missing-labels", "group"]) == 0
    assert "(missing)" in capsys.readouterr().out


def test_missing_labels_can_be_dropped_with_one_warning(folder, capsys):
    frame = people()
    frame.loc[:6, "sex"] = None
    frame.to_csv("bad.csv", index=False)
    frame[7:].to_csv("good.csv", index=False)
    drop = ["--missing-labels", "drop", "--json"]
    for more in (["--standardize", "none"], ["--standardize", "none", "--stream"]):
        results = []
        for name in ("bad.csv", "good.csv"):
            assert main(["fit", name, *FIT, "--drop", "job", *more, *drop]) == 0
            said = capsys.readouterr()
            results.append(json.loads(said.out))
            left_out = said.err.count("7 of 120 rows are left out")
            assert left_out == (1 if name == "bad.csv" else 0)
        bad, good = results
        assert bad["groups"][0]["rows"] == good["groups"][0]["rows"]
        assert bad["total_loss"] == pytest.approx(good["total_loss"])
        assert (bad["rows"], bad["rows_left_out"]) == (113, 7)
    assert main(["report", "bad.csv", *FIT, *drop, "--report", "r.html"]) == 0
    assert capsys.readouterr().err.count("rows are left out") == 1


@pytest.mark.parametrize("more", [[], ["--stream"]])
def test_groups_of_each_column_alone(folder, capsys, more):
    two = ["--sensitive", "sex", "--sensitive", "race", "--n-components", "2", "--target", "rich"]
    arguments = ["people.csv", *two, "--groups", "marginals", "--json", *more]
    assert main(["fit", *arguments, "--criterion", "minmax", "--model", "m.fairpca"]) == 0
    found = json.loads(capsys.readouterr().out)
    texts = ["sex=f", "sex=m", "race=x", "race=y"]
    assert [group["group"] for group in found["groups"]] == texts
    assert sum(group["rows"] for group in found["groups"]) == 2 * 120
    audit = ["audit", "people.csv", "--model", "m.fairpca", "--target", "rich", "--json", *more]
    assert main([*audit, "--groups", "both"]) == 0
    audited = json.loads(capsys.readouterr().out)
    assert audited["rows"] == 120
    assert [group["group"] for group in audited["model"]["groups"][:4]] == texts
    assert audited["model"]["groups"][4]["group"] == "sex=f × race=x"  # noqa: RUF001
    for model, fitted in zip(audited["model"]["groups"], found["groups"], strict=False):
        assert model["audited_loss"] == pytest.approx(fitted["fair_loss"])
    assert audited["model"]["total_loss"] == pytest.approx(found["total_loss"])
    assert main(["front", *arguments, "--points", "3"]) == 0
    assert json.loads(capsys.readouterr().out)["groups"] == texts


def test_a_report_by_marginals_says_how_to_make_it_again(folder, capsys):
    two = ["--sensitive", "sex", "--sensitive", "race", "--n-components", "2", "--target", "rich"]
    made = ["report", "people.csv", *two, "--groups", "marginals", "--report", "r.html", "--json"]
    assert main(made) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert "fairpca front people.csv" in summary["code"]
    assert summary["code"].count("--groups marginals") == 2
    assert summary["rows"] == 120


def test_warnings_are_one_line_and_not_said_twice(folder, capsys):
    frame = people()
    frame.loc[0, "sex"] = "only one"
    frame.to_csv("bad.csv", index=False)
    assert main(["fit", BAD, *ON, "--criterion", "minmax"]) == 0
    shown = capsys.readouterr()
    assert "fairpca: warning: Too few rows to be judged: " in shown.err
    assert "'only one' (1 row)" in shown.err
    assert shown.err.count("\n") == 1
    assert "groups" in shown.out
    frame.loc[1:, "sex"] = "f"
    frame.to_csv("bad.csv", index=False)
    written = ["--model", "m.fairpca", "--small-groups", "keep"]
    # Of the fit, and of the file that is written.
    for arguments, n in ((["front", BAD, *ON[:3], "0.5"], 1), (["fit", BAD, *ON, *written], 2)):
        assert main(arguments) == 0
        shown = capsys.readouterr()
        assert shown.err.count("Too few rows to be judged: 'only one' (1 row)") == 1
        assert shown.err.count("before you share it") == n - 1
        assert shown.err.count("\n") == n


def test_numbers_that_json_does_not_have_are_null(capsys):
    _terminal.show(True, lambda: {"a": [np.inf, 1.0], "b": (float("nan"),)}, [])
    found = json.loads(capsys.readouterr().out)
    assert (found["a"], found["b"]) == ([None, 1.0], [None])


@pytest.mark.parametrize(("text", "value"), [("5", 5), ("0.9", 0.9), ("1e-1", 0.1)])
def test_dimensions(text, value):
    assert _options.parse_dimension(text) == value
    assert type(_options.parse_dimension(text)) is type(value)


def write_one_small_group():
    """The file small.csv of two groups, one of them of 20 rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcd"))
    frame["sex"] = np.repeat(["f", "m"], [100, 20])
    frame.to_csv("small.csv", index=False)


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_what_held_out_rows_show_is_in_json_and_in_words(folder, capsys, stream):
    write_one_small_group()
    fit = ["fit", "small.csv", "--sensitive", "sex", "--n-components", "2", *stream]
    assert main([*fit, "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["groups"]
    frame = pd.read_csv("small.csv")
    X = StandardScaler().fit_transform(frame.drop(columns="sex"))
    expected = FairPCA(2).fit(X, sensitive_features=frame["sex"]).group_table_.held_out
    for name, values in (("pca", expected.pca_loss), ("fair", expected.loss)):
        assert [group[f"{name}_loss_held_out"] for group in found] == pytest.approx(values)
    assert main(fit) == 0
    assert "On held-out rows" in " ".join(capsys.readouterr().out.split())
    for amount in ("0", "inf"):
        assert main([*fit, "--standard-errors", amount]) == 0


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_the_cost_of_fairness_is_of_weighted_rows(folder, capsys, stream):
    """Ordinary PCA has the least total loss, with weights too."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 4)) * [3, 2, 1, 1], columns=[*"abcd"])
    frame["sex"] = np.resize(["f", "m"], 400)
    frame.loc[frame["sex"] == "f", [*"abcd"]] = frame.loc[frame["sex"] == "f", [*"dcba"]].values
    weights = np.where(frame["sex"] == "f", 9.0, 1.0)
    frame.assign(w=weights).to_csv("w.csv", index=False)
    fit = ["fit", "w.csv", "--sensitive", "sex", "--n-components", "2", "--standardize", "none"]
    fit += ["--weights", "w", "--criterion", "minmax", *stream]
    assert main([*fit, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    X = frame[[*"abcd"]].to_numpy()
    values = np.linalg.eigvalsh(np.cov(X.T, aweights=weights, ddof=0))
    assert found["pca_total_loss"] == pytest.approx(values[:2].sum(), rel=1e-4)
    assert found["pca_total_loss"] < found["total_loss"]
    assert main(fit) == 0
    assert "% more than ordinary PCA" in capsys.readouterr().out

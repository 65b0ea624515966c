"""What a report says and shows of the data: columns, encodings, pictures; and what it keeps."""

import json
from inspect import signature
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from fairpca import FairnessWarning, GroupMoments, Problem, pareto_front
from fairpca.choices import MIN_ROWS
from fairpca.cli import main
from fairpca.data import prepare_data
from fairpca.report import report
from fairpca.report._names import shown_names
from fairpca.report._report import losses_by_dimension, places_of_rows
from fairpca.tables.preparation import POOL, ColumnOutcome

from texts import numbers_in, recorded, warned

QUICK = {"n_components": 2, "n_points": 2, "n_resamples": 0}


def rows_of(n=120, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(3.0, 1.0, d)
    X[: n // 2] = X[: n // 2, ::-1]
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(d)])


def halves(n=120, name="town"):
    return pd.Series(np.repeat(["a", "b"], n // 2), name=name)


def test_columns_of_numbers_tell_what_they_can():
    X = rows_of()
    X["same"] = 5.0
    X["wide"] = 100 * X["c0"]
    summary = report(X, sensitive_features=halves(), **QUICK).summary
    data = summary["data"]
    numbers, groups = data["about"]
    recorded(numbers, "6 columns")
    recorded(groups, "“town”", "not among the columns")
    assert data["among"] is False
    recorded(data["sentences"][2], "Without any variance", "“same”")
    share = X["wide"].var() / X.var().sum()
    (warning,) = summary["warnings"]
    recorded(warning["text"], "“wide” has", f"{100 * share:.3g} %")
    notes = {column["name"]: column["note"] for column in data["columns"]}
    assert [name for name in notes if notes[name]] == ["same"]
    assert notes["same"] == "does not vary"


@pytest.mark.parametrize("columns", [["town"], ["town=a", "town=b"], ["town_a", "town_b"]])
def test_an_attribute_among_the_columns_is_said(columns):
    X, groups = rows_of(), halves()
    for name in columns:
        X[name] = (groups == name[-1]).astype(float)
    data = report(X, sensitive_features=groups, **QUICK).summary["data"]
    recorded(data["about"][1], "“town”", "itself among the columns")
    both = pd.DataFrame({"town": groups, "age": ["x", "y"] * 60})
    data = report(X, sensitive_features=both, **QUICK).summary["data"]
    recorded(data["about"][1], "“town” and “age”", "themselves")
    data = report(X.to_numpy(), sensitive_features=groups.to_numpy(), **QUICK).summary["data"]
    assert data["among"] is None
    (only,) = data["about"]
    recorded(only, f"{4 + len(columns)} columns of numbers")


def test_what_became_of_a_table_is_told():
    X = rows_of(d=5)
    X.columns = ["age", "job=cook", "job=smith", "grade", "pay"]
    columns = [
        ColumnOutcome("age", "number", 1),
        ColumnOutcome("job", "onehot", 2, n_missing=3, note="filled in with the most frequent"),
        ColumnOutcome("grade", "number", 1),
        ColumnOutcome("pay", "number", 1),
        ColumnOutcome("town", "sensitive"),
        ColumnOutcome("id", "left out", note="unique\u202e in every row"),
    ]
    made = report(X, sensitive_features=halves(), columns=columns, data_name="folk.csv", **QUICK)
    data = made.summary["data"]
    reduced, groups, missing, left_out = data["sentences"]
    assert numbers_in(recorded(reduced, "numbers", "text")) == [3, 1, 2, 0, 1]
    recorded(groups, "“town”", "not among the columns")
    recorded(missing, "3 missing values in 1 column", "filled in")
    recorded(left_out, "left out", "“id”")
    assert [column["became"] for column in data["columns"]] == [
        "a number",
        "text, as 2 columns of 0 and 1",
        "a number",
        "a number",
        "makes the groups, is not reduced",
        "left out",
    ]
    shares = [column["share"] for column in data["columns"]]
    total = X.var().sum()
    assert shares[1] == pytest.approx(X[["job=cook", "job=smith"]].var().sum() / total)
    assert shares[4:] == [None, None]
    assert data["columns"][5]["note"] == "unique\ufffd in every row"
    assert made.html().count("filled in with the most frequent") == 2  # in the table, in the data
    # Columns of another table say nothing about this one.
    other = report(X, sensitive_features=halves(), columns=columns[:1], **QUICK).summary["data"]
    recorded(other["about"][0], "5 columns of numbers")


@pytest.mark.parametrize(
    ("left_out", "words"),
    [
        ({"with missing values": 0}, None),
        ({"with missing values": 1}, ("1 row with missing values",)),
        (
            {"with missing values": 1200, "without a label": 0, "in a group of fewer than 5": 4},
            ("1,204 rows", "1,200 with missing values", "4 in a group of fewer than 5"),
        ),
    ],
)
def test_rows_that_are_left_out_are_told(left_out, words):
    X = rows_of()
    columns = [ColumnOutcome(name, "number", 1) for name in X.columns]
    given = {"sensitive_features": halves(), "columns": columns, "left_out": left_out}
    made = report(X, **given, **QUICK)
    *left_out, missing = made.summary["data"]["sentences"][2:]
    recorded(missing, "No values are missing")
    assert len(left_out) == (words is not None)
    for said in left_out:
        recorded(said, *words)
        assert made.html().count(said) == 4  # twice to see, twice in the data


def test_rows_without_a_label_are_counted():
    groups = halves().astype(object)
    groups[:7] = None
    given = {"sensitive_features": groups, "missing_labels": "drop"}
    with warned(FairnessWarning, "7 of 120", "left out"):
        data = report(rows_of(), **given, **QUICK).summary["data"]
    recorded(data["about"][2], "7 rows", "label", "left out")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--drop-missing", "--small-groups", "pool", "--missing-labels", "drop"],
            [
                ("14 rows", "9 with missing", "5 without a label"),
                ("No values are missing", "other rows"),
            ],
        ),
        (
            ["--impute", "--small-groups", "pool", "--missing-labels", "group"],
            [("9 missing values in 1 column", "filled in")],
        ),
    ],
)
def test_the_program_tells_which_rows_are_left_out(tmp_path, monkeypatch, capsys, options, said):
    monkeypatch.chdir(tmp_path)
    X = rows_of(200)
    X["town"] = halves(200).astype(object)
    X.loc[:3, "town"], X.loc[197:, "town"], X.loc[100:104, "town"] = "x", "y", None
    X.loc[20:28, "c0"] = np.nan
    X.to_csv("folk.csv", index=False)
    typed = ["folk.csv", "--sensitive", "town", "--n-components", "2", "--rows-shown", "0"]
    assert main(["report", *typed, "--report", "folk.html", *options, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    for sentence, words in zip(summary["data"]["sentences"][2:], said, strict=True):
        recorded(sentence, *words)
    assert summary["rows"] == (186 if "--drop-missing" in options else 200)


def test_names_that_few_rows_have_are_not_shown():
    n = 300
    X, groups = rows_of(n), halves(n).astype(object)
    ids = pd.get_dummies(pd.Series([f"user-{i:03}" for i in range(n)]), dtype=float)
    ids.columns = [f"id={name}" for name in ids.columns]
    groups[:3] = "the mayor"
    X = pd.concat([1e-3 * X, ids], axis=1)
    given = {"sensitive_features": groups, "n_components": 2, "n_points": 2, "n_resamples": 0}
    made = report(X, **given)
    for text in (made.html(), made.json()):
        assert "user-" not in text
        assert "the mayor" not in text
        assert "id=(a rare value)" in text
    assert "Groups of fewer than 5 rows are shown without their names." in made.html()
    assert made.summary["rows_shown"]["groups_left_out"] == 1
    hidden = [group["name"] for group in made.summary["groups"]].index("(name not shown)")
    assert hidden not in made.summary["rows_shown"]["groups"]
    sparse = report(scipy.sparse.csr_array(X.to_numpy()), **given).json()
    assert "a rare value" in sparse


def test_the_page_on_privacy_has_the_numbers_of_reports():
    text = " ".join((Path(__file__).parents[2] / "docs" / "privacy.md").read_text().split())
    given = {name: option.default for name, option in signature(report).parameters.items()}
    assert f"a report shows up to {given['rows_shown']:,} rows as points in the first two" in text
    assert "`--rows-shown 0` leave them out" in text
    assert f"does not name groups and categories with fewer than {MIN_ROWS} rows" in text
    assert f'those with fewer than {MIN_ROWS} rows (`--min-rows`) only as "{POOL}"' in text


def test_long_names_are_told_apart_by_their_ends():
    start = "The ministry of the interior and of everything else, "
    assert shown_names([start + end for end in ("north", "south")]) == [
        "The ministry of the…erything else, north",
        "The ministry of the…erything else, south",
    ]
    (alone,) = shown_names([start])
    assert alone == start[:39] + "…"


@pytest.mark.parametrize("d", [6, 130])
def test_losses_by_dimension_are_those_of_ordinary_pca(d):
    X, groups = rows_of(400, d).to_numpy(), halves(400).to_numpy()
    moments = GroupMoments.from_rows(X, groups)
    found = losses_by_dimension(Problem(moments, 2), np.array([1, 0]))
    assert len(found["losses"][0]) == min(d, 30)
    for r in (1, 2, 5):
        problem = Problem(moments, r)
        expected = problem.group_losses(problem.pca_basis)[[1, 0]]
        np.testing.assert_allclose(found["losses"][:, r - 1], expected, rtol=1e-6)
        np.testing.assert_allclose(found["own"][:, r - 1], problem.own_losses[[1, 0]], rtol=1e-6)


def test_rows_lie_where_the_components_put_them():
    X, groups = rows_of(3000), np.repeat(["many", "some"], [2950, 50])
    front = pareto_front(X, sensitive_features=groups, n_components=2, n_points=3)
    grouped_data = prepare_data(X, groups)
    found = places_of_rows(front, grouped_data, 500, np.random.default_rng(0))
    codes = np.array(found["groups"])
    assert found["shown"] == len(codes) == len(found["places"][0])
    assert 498 <= len(codes) <= 500
    assert (codes == 1).sum() >= 35  # more than its share, so that it can be seen
    assert not found["all"]
    assert not found["evenly"]
    low, high = np.array(found["low"]), np.array(found["high"])
    for place, model in zip(
        found["places"], (front.estimator(0), front.estimator(-1)), strict=True
    ):
        shown = low + np.array(place) / found["steps"] * (high - low)
        all_rows = model.transform(X)[:, :2]
        step = (high - low) / found["steps"]
        inside = (np.array(place) > 0).all(axis=1) & (np.array(place) < found["steps"]).all(axis=1)
        # Every mark is a row of its group, to a step.
        for row, code in list(zip(shown[inside], codes[inside], strict=True))[:40]:
            own = all_rows[groups == ("many", "some")[code]]
            assert (np.abs(own - row) <= step).all(axis=1).any()
    for too_few in (0, 1):
        assert places_of_rows(front, grouped_data, too_few, np.random.default_rng(0)) is None
    assert (
        "Every mark is one row"
        not in report(X, sensitive_features=groups, rows_shown=0, **QUICK).html()
    )


def test_the_program_names_the_file_without_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "secret-client"
    folder.mkdir()
    X = rows_of(200)
    X["job/pay"] = np.resize(["cook", "smith", "clerk"], 200)
    X["town"] = halves(200)
    X.to_csv(folder / "folk.csv", index=False)
    typed = [str(folder / "folk.csv"), "--sensitive", "town", "--n-components", "2"]
    out = f"--report={folder / 'folk.html'}"
    assert main(["report", *typed, out, "--rows-shown", "20", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    page = (folder / "folk.html").read_text(encoding="utf-8")
    assert "secret-client" not in page
    assert "secret-client" not in json.dumps(summary)
    assert summary["data"]["name"] == "folk.csv"
    recorded(summary["finding"][0], "“folk.csv”", "“town”")
    assert "fairpca report folk.csv --sensitive town" in summary["code"]
    assert "--report=folk.html" in summary["code"]
    assert "fairpca front folk.csv" in summary["code"]
    recorded(summary["data"]["about"][0], "4 columns of numbers", "1 column of text", "3 columns")
    assert summary["rows_shown"]["shown"] == 20
    # A slash in the name of a column is not a folder.
    main(["report", *typed, out, "--drop", "job/pay", "--json", "--force"])
    assert "--drop job/pay" in json.loads(capsys.readouterr().out)["summary"]["code"]

"""How tables are read: what is filled in, left out, pooled and refused, and what is said of it."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA
from fairpca.cli import main
from fairpca.cli._options import TableOptions, changed
from fairpca.model_file import load_model
from fairpca.tables import reading
from fairpca.tables.columns import typed_options
from fairpca.tables.preparation import Preparation
from said import complaint, without_cautions
from studies.file_mutations import with_header

from texts import recorded, refused

ON = ["--sensitive", "sex", "--n-components", "2"]
N = 90


def people(seed=0, **more):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(N, 3)).round(3) * [3, 2, 1], columns=[*"abc"])
    frame["n"] = rng.integers(0, 7, N)
    frame["job"] = np.resize(["cook", "smith", "nurse", "cook"], N)
    frame["sex"] = np.resize(["f", "m", "m"], N)
    return frame.assign(**more)


def holes(seed=0):
    """The table without some values, in places that depend on nothing else."""
    frame = people(seed)
    rng = np.random.default_rng(9)
    for name in ("a", "n", "job"):
        frame.loc[rng.choice(N, 8, replace=False), name] = None
    return frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 700)


def run(capsys, *arguments):
    code = main([*arguments])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out, without_cautions(said.err)


def note(out, name, *words):
    """What is printed of a column."""
    (line,) = (line for line in out.splitlines() if line.startswith(f"  '{name}': "))
    recorded(line, *words)


def outcomes(out):
    return {outcome["name"]: outcome for outcome in json.loads(out)["outcomes"]}


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_what_is_filled_in_is_what_scikit_learn_fills_in(folder, capsys, small_blocks, stream):
    frame, new = holes(), holes(1)
    frame.to_csv("t.csv", index=False)
    new.to_csv("new.csv", index=False)
    fit = ["fit", "t.csv", *ON, "--impute", "--model", "m.fairpca", "--json", *stream]
    fit += ["--min-rows", "1"]
    found = outcomes(run(capsys, *fit)[0])
    run(capsys, "transform", "new.csv", "--model", "m.fairpca", "--output", "r.csv", *stream)
    numbers = SimpleImputer().fit(frame[[*"abcn"]])
    words = SimpleImputer(strategy="most_frequent", missing_values=np.nan)
    jobs = words.fit(frame[["job"]].astype(object).fillna(np.nan))

    def filled(table):
        texts = jobs.transform(table[["job"]].astype(object).fillna(np.nan)).ravel()
        encoded = [texts == job for job in ("cook", "nurse", "smith")]
        return np.column_stack([numbers.transform(table[[*"abcn"]]), *encoded]).astype(float)

    scaler = StandardScaler().fit(filled(frame))
    scaler.mean_[4:], scaler.scale_[4:] = 0.0, 1.0  # 0/1 columns stay as they are
    model = load_model("m.fairpca")
    np.testing.assert_allclose(model.preparation.means, scaler.mean_, atol=1e-12)
    np.testing.assert_allclose(model.preparation.scales, scaler.scale_, rtol=1e-12)
    fair = FairPCA(2).fit(scaler.transform(filled(frame)), sensitive_features=frame["sex"])
    expected = fair.transform(scaler.transform(filled(new)))
    np.testing.assert_allclose(pd.read_csv("r.csv"), expected, atol=1e-6)
    assert found["a"]["n_missing"] == found["job"]["n_missing"] == 8
    recorded(found["a"]["note"], "8 missing values", f"{numbers.statistics_[0]:.6g}")
    recorded(found["job"]["note"], "8 missing values", "'cook'")
    assert found["b"]["note"] == ""


def test_what_is_filled_in_is_no_single_persons_value(folder, capsys):
    holes().to_csv("t.csv", index=False)
    fit = ["fit", "t.csv", *ON, "--model", "m.fairpca", "--force", "--impute"]
    people(n=holes()["n"]).to_csv("t.csv", index=False)
    run(capsys, *fit)
    for column in load_model("m.fairpca").preparation.columns[:3]:
        values = people(n=holes()["n"])[column.name]
        assert column.fill is None or column.fill == pytest.approx(values.mean())
    people(job=["poet", "poet", *[None] * (N - 2)], a=[1.5, *[None] * (N - 1)]).to_csv(
        "t.csv", index=False
    )
    complaint(capsys, fit, "'a'", "fewer than 5", "--drop a")
    out, _ = run(capsys, *fit, "--drop", "a", "--json")
    recorded(outcomes(out)["job"]["note"], "constant", "1 rare", "88 missing", "'other (rare)'")


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_rows_that_lack_values_are_left_out(folder, capsys, small_blocks, stream):
    frame = holes().assign(key=[f"row {i}" for i in range(N)])
    frame.to_csv("t.csv", index=False)
    complete = frame.dropna()
    complete.to_csv("complete.csv", index=False)
    more = ["--drop", "key", "--carry", "key", "--json", *stream]
    found, _ = run(capsys, "fit", "t.csv", *ON, *more, "--drop-missing", "--output", "r.csv")
    expected, _ = run(capsys, "fit", "complete.csv", *ON, *more, "--output", "s.csv")
    found, expected = json.loads(found), json.loads(expected)
    left_out = N - len(complete)
    assert (found["rows"], found["rows_left_out"]) == (len(complete), left_out)
    assert found["total_loss"] == pytest.approx(expected["total_loss"], rel=1e-12)
    reduced = pd.read_csv("r.csv")
    assert reduced["key"].tolist() == complete["key"].tolist()
    pd.testing.assert_frame_equal(reduced, pd.read_csv("s.csv"), atol=1e-9)
    out, _ = run(capsys, "audit", "t.csv", *ON, "--drop", "key", "--drop-missing", *stream)
    recorded(next(line for line in out.splitlines() if f"{left_out} rows" in line), "missing")


def test_a_model_that_fills_in_nothing_refuses_what_is_missing(folder, capsys):
    people().to_csv("t.csv", index=False)
    holes().to_csv("new.csv", index=False)
    run(capsys, "fit", "t.csv", *ON, "--model", "m.fairpca")
    transform = ["transform", "new.csv", "--model", "m.fairpca", "--output", "r.csv"]
    complaint(capsys, transform, "'a' (8), 'n' (8), 'job' (8)", "missing", "fill")
    run(capsys, *transform, "--drop-missing")
    assert len(pd.read_csv("r.csv")) == len(holes().dropna())


RARE = ["poet", "king", "poet", "saint"]


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_rare_categories_are_pooled_and_their_names_are_not_kept(
    folder, capsys, small_blocks, stream
):
    jobs = [*RARE, *np.resize(["cook", "smith"], N - 4)]
    people(job=jobs).to_csv("t.csv", index=False)
    fit = ["fit", "t.csv", *ON, *stream]
    out, _ = run(capsys, *fit, "--model", "m.fairpca")
    words = ("4 of numbers", "1 of text", "3 0/1 columns", "groups: 'sex'")
    recorded(out.splitlines()[0], *words)
    note(out, "job", "3 rare", "'other (rare)'")
    kept = Path("m.fairpca").read_bytes()
    assert b"other (rare)" in kept
    assert not any(name.encode() in kept for name in RARE)
    preparation = load_model("m.fairpca").preparation
    assert preparation.feature_names[4:] == ("job=cook", "job=smith", "job=other (rare)")
    pooled = [str(name) if name in ("cook", "smith") else "other (rare)" for name in jobs]
    by_hand = pd.get_dummies(pd.Series(pooled), dtype=float)[["cook", "smith", "other (rare)"]]
    means = load_model("m.fairpca").fair_pca.mean_[4:]
    np.testing.assert_allclose(means, by_hand.mean(), rtol=1e-12)
    # A category that nobody has seen belongs to the rare ones.
    people(1, job=np.resize(["cook", "pilot"], N)).to_csv("new.csv", index=False)
    out, _ = run(capsys, "transform", "new.csv", "--model", "m.fairpca", "--output", "r.csv")
    note(out, "job", "45 values", "not known", "'other (rare)'")
    out, _ = run(capsys, *fit, "--min-rows", "1", "--json")
    assert outcomes(out)["job"]["n_columns"] == 5


def test_unknown_categories_can_be_ignored(folder, capsys):
    people().to_csv("t.csv", index=False)
    new = people(1, job=np.resize(["cook", "poet", "king"], N))
    new.to_csv("new.csv", index=False)
    run(capsys, "fit", "t.csv", *ON, "--model", "m.fairpca")
    transform = ["transform", "new.csv", "--model", "m.fairpca", "--output", "r.csv", "--force"]
    complaint(capsys, transform, "'job'", "'poet', 'king'", "--unknown-categories ignore")
    out, _ = run(capsys, *transform, "--unknown-categories", "ignore")
    note(out, "job", "60 values", "not known", "none of the categories")
    model = load_model("m.fairpca")
    encoded = np.column_stack(
        [new[[*"abcn"]], *(new["job"] == job for job in ("cook", "nurse", "smith"))]
    ).astype(float)
    rows = (encoded - model.preparation.means) / model.preparation.scales
    np.testing.assert_allclose(pd.read_csv("r.csv"), model.fair_pca.transform(rows), atol=1e-6)
    run(capsys, "audit", "new.csv", "--model", "m.fairpca", "--unknown-categories", "ignore")


SMALL = [*["x", "y", "x"], *["z"] * 3, *np.resize(["f", "m"], N - 6)]


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_small_groups_are_refused_where_something_is_kept(folder, capsys, small_blocks, stream):
    people(sex=SMALL).to_csv("t.csv", index=False)
    fit = ["fit", "t.csv", *ON, *stream, "--model", "m.fairpca", "--force"]
    front = ["front", "t.csv", *ON, *stream, "--model", "m.fairpca", "--points", "2", "--force"]
    pool, keep = (f"--small-groups {way}" for way in ("pool", "keep"))  # as they may be added
    complaint(capsys, front, "'x' (2), 'y' (1), 'z' (3)")
    complaint(capsys, fit, "'x' (2), 'y' (1), 'z' (3)", "fewer than 5", pool, keep)
    assert not Path("m.fairpca").exists()
    run(capsys, "fit", "t.csv", *ON, *stream)  # which writes nothing
    run(capsys, *fit, "--small-groups", "keep")
    assert load_model("m.fairpca").fair_pca.group_table_.labels == (*"fmxyz",)
    _, said = run(capsys, *fit, "--small-groups", "pool")
    recorded(said, "6 rows", "one group, 'other (small)'", "fewer than 5: 'x'")
    table = load_model("m.fairpca").fair_pca.group_table_
    assert dict(zip(table.labels, table.count, strict=True)) == {
        "f": 42,
        "m": 42,
        "other (small)": 6,
    }
    out, _ = run(capsys, "audit", "t.csv", "--model", "m.fairpca", "--small-groups", "pool")
    assert "other (small)" in out
    assert "\ny " not in out
    run(capsys, *fit, "--min-rows", "1")
    # One group alone cannot be put together with others.
    for more in (["--small-groups", "pool"], []):
        said = complaint(capsys, [*fit, "--min-rows", "2", *more], "'y' (1)", keep)
        assert pool not in said


def test_small_groups_of_several_columns(folder, capsys):
    race = [*["w"] * 4, *np.resize(["v", "u"], N - 4)]
    people(race=race).to_csv("t.csv", index=False)
    fit = [
        "fit",
        "t.csv",
        *ON,
        "--sensitive",
        "race",
        "--model",
        "m.fairpca",
        "--force",
        "--small-groups",
    ]
    small = "'sex=f × race=w' (2), 'sex=m × race=w' (2)"  # noqa: RUF001
    complaint(capsys, [*fit, "error"], small)
    complaint(capsys, [*fit, "pool"], small, "together")
    complaint(capsys, [*fit, "error", "--groups", "marginals"], "'race=w' (4)", "fewer than 5")
    people(race=[*["w", "t", "s", "w", "t"], *race[5:]]).to_csv("t.csv", index=False)
    run(capsys, *fit, "pool", "--groups", "marginals")
    labels = load_model("m.fairpca").fair_pca.group_table_.labels
    assert ("(all)", "other (small)") in labels
    assert ("f", "(all)") in labels
    assert len(labels) == 5


def test_missing_labels_stay_what_they_are_beside_small_groups(folder, capsys):
    sex = [*["x"] * 2, *["y"] * 3, *[None] * 6, *np.resize(["f", "m"], N - 11)]
    people(sex=sex).to_csv("t.csv", index=False)
    fit = ["fit", "t.csv", *ON, "--model", "m.fairpca", "--force", "--small-groups", "pool"]
    complaint(capsys, fit, "no value", "6 of 90")
    run(capsys, *fit, "--missing-labels", "group")
    assert load_model("m.fairpca").fair_pca.group_table_.labels == (
        "f",
        "m",
        "other (small)",
        "(missing)",
    )
    _, said = run(capsys, *fit, "--missing-labels", "drop")
    assert load_model("m.fairpca").fair_pca.group_table_.labels == ("f", "m", "other (small)")
    recorded(said, "6 of 90 rows", "missing", "5 rows are one group", "fewer than 5: 'x' (2)")


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_nothing_is_learned_from_rows_that_are_left_out(folder, capsys, small_blocks, stream):
    """From the means with and without a row, and how many there are, that row would follow."""
    more = ["--missing-labels", "drop"]
    jobs = ["king", *["poet"] * 5, *np.resize(["cook", "smith"], N - 6)]
    frame = people(sex=[None, *np.resize(["f", "m"], N - 1)], job=jobs)
    frame.loc[0, "a"] = 777.0  # what nobody may learn
    frame.loc[1, "sex"] = None
    frame.loc[1, "b"] = None  # nor does it matter what such a row lacks
    frame.to_csv("t.csv", index=False)
    kept = frame[2:]
    kept.to_csv("kept.csv", index=False)
    how = [*ON, *stream, "--force", "--json"]
    out, _ = run(capsys, "fit", "t.csv", *how, *more, "--model", "m.fairpca", "--output", "r.csv")
    run(capsys, "fit", "kept.csv", *how, "--model", "k.fairpca", "--output", "k.csv")
    assert (json.loads(out)["rows"], json.loads(out)["rows_left_out"]) == (N - 2, 2)
    found, expected = load_model("m.fairpca"), load_model("k.fairpca")
    assert found.preparation.columns == expected.preparation.columns  # "poet" is rare in the rest
    assert found.preparation.columns[4].pool
    np.testing.assert_allclose(found.preparation.means[:4], kept[[*"abcn"]].mean(), atol=1e-12)
    np.testing.assert_allclose(found.preparation.scales[:4], kept[[*"abcn"]].std(ddof=0))
    np.testing.assert_allclose(found.preparation.means, expected.preparation.means, atol=1e-12)
    np.testing.assert_allclose(found.fair_pca.mean_[:4], 0.0, atol=1e-12)  # standardised columns
    n, m, s = N - 1, found.preparation.means, found.preparation.scales
    recovered = n * m - (n - 1) * (m + s * found.fair_pca.mean_)
    assert abs(recovered[0] - 777.0) > 700.0
    pd.testing.assert_frame_equal(pd.read_csv("r.csv"), pd.read_csv("k.csv"), atol=1e-9)
    out, _ = run(capsys, "audit", "t.csv", "--model", "m.fairpca", *stream, *more, "--json")
    assert json.loads(out)["rows_left_out"] == 2


def test_a_table_without_any_label(folder, capsys):
    people(sex=None).to_csv("t.csv", index=False)
    complaint(capsys, ["fit", "t.csv", *ON, "--missing-labels", "drop"], "no value", "any row")


def test_small_groups_are_refused_in_reports(folder, capsys):
    people(sex=SMALL).to_csv("t.csv", index=False)
    arguments = ["report", "t.csv", *ON, "--report", "r.html"]
    complaint(capsys, arguments, "'x' (2), 'y' (1), 'z' (3)")
    run(capsys, *arguments, "--small-groups", "pool", "--missing-values", "?")
    page = Path("r.html").read_text("utf-8")
    # What can be typed for the model of a point is the same.
    assert (
        "--missing-values &#39;?&#39; --small-groups pool --n-components 2 --points 21 --index"
        in page
    )


def test_what_became_of_many_columns_is_short(folder, capsys):
    rng = np.random.default_rng(0)
    wide = {f"x{j}": rng.normal(size=N).round(2) for j in range(300)}
    same = {f"same{j}": [1] * N for j in range(8)}
    pd.concat([people(), pd.DataFrame(wide | same)], axis=1).to_csv("t.csv", index=False)
    arguments = ["t.csv", "--sensitive", "sex", "--n-components", "1"]
    out, _ = run(capsys, "audit", *arguments, "--drop", "x1", "--drop", "x2")
    columns, *notes = out.splitlines()[:7]
    recorded(columns, "310 of numbers", "1 of text", "groups: 'sex'", "left out: 'x1', 'x2'")
    recorded("\n".join(notes), *(f"'same{j}': constant" for j in range(5)), "3 more", "--json")
    assert len(outcomes(run(capsys, "audit", *arguments, "--json")[0])) == 314


def test_a_damaged_pool_or_fill_in_a_model_is_refused(folder, capsys):
    holes().assign(job=[*RARE, *holes()["job"][4:]]).to_csv("t.csv", index=False)
    run(capsys, "fit", "t.csv", *ON, "--impute", "--model", "m.fairpca")
    whole = Path("m.fairpca").read_bytes()
    for j, field, value in [(4, "pool", "cook"), (4, "fill", "poet"), (0, "fill", "many")]:

        def change(header, j=j, field=field, value=value):
            assert field in header["preparation"]["columns"][j]
            header["preparation"]["columns"][j][field] = value

        Path("bad.fairpca").write_bytes(with_header(change)(whole))
        with refused(ValueError, "bad.fairpca"):
            load_model("bad.fairpca")


def test_models_of_before_have_neither_pool_nor_fill(folder):
    learned = Preparation.learn(people(), sensitive=["sex"])
    assert [(column.pool, column.fill) for column in learned.columns] == [("", None)] * 5


def test_what_was_chosen_can_be_typed_again():
    assert changed(TableOptions()) == {}
    chosen = TableOptions(sep="\\t", missing_values=["?", "-"], drop_missing=True, min_rows=1)
    assert typed_options(changed(chosen)) == (
        "--sep '\t' --missing-values '?' --missing-values - --drop-missing --min-rows 1"
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--decimal", ";"], "--decimal"),
        (["--encoding", "base64"], "--encoding 'base64' utf-8, cp1252"),
        (["--min-rows", "0"], "--min-rows 1, 0."),
        (["--small-groups", "merge"], "--small-groups"),
        (["--as-text", "z"], "no column 'z'"),
        (["--as-number", "A"], "no column 'A' 'a'?"),
        (["--sensitive", "Sex"], "no column 'Sex' 'sex'?"),
        (["--target", "jobs"], "no column 'jobs' 'job'?"),
        (["--sensitive", "sex,job"], "no column 'sex,job': option repeated"),
        (["--carry", "Job", "--output", "r.csv"], "no column 'Job' 'job'?"),
    ],
)
def test_choices_that_cannot_be(folder, capsys, more, words):
    people().to_csv("t.csv", index=False)
    complaint(capsys, ["fit", "t.csv", *ON, *more], *words.split())


def test_columns_of_a_model_under_another_name(folder, capsys):
    people().to_csv("t.csv", index=False)
    people().rename(columns={"job": "Job"}).to_csv("new.csv", index=False)
    run(capsys, "fit", "t.csv", *ON, "--model", "m.fairpca")
    transform = ["transform", "new.csv", "--model", "m.fairpca", "--output", "r.csv"]
    complaint(capsys, transform, "lacks", "'job'", "'Job'")


def test_columns_that_a_model_does_not_know_can_be_dropped_as_is_said(folder, capsys):
    people().to_csv("t.csv", index=False)
    run(capsys, "fit", "t.csv", *ON, "--model", "m.fairpca")
    people(1, extra=1.5)[:1].to_csv("new.csv", index=False)
    transform = ["transform", "new.csv", "--model", "m.fairpca", "--output", "r.csv"]
    complaint(capsys, transform, "not know", "'extra'", "--drop extra")
    out, _ = run(capsys, *transform, "--drop", "extra")
    recorded("\n".join(out.splitlines()[-2:]), "1 row", "2 columns", "r.csv")


def test_a_table_of_text_with_another_suffix(folder, capsys):
    people().to_csv("t.txt", index=False)
    complaint(capsys, ["fit", "t.txt", *ON], "'.tsv.gz'", "as CSV")


def test_notes_on_labels_and_categories_are_printed(folder, capsys):
    jobs = ["Cook", "KING", "king", *np.resize(["cook", "NA"], N - 3)]
    sex = np.resize(["f", "m", "M", "n/a"], N)
    people(job=jobs, sex=sex).to_csv("t.csv", index=False)
    out, _ = run(capsys, "fit", "t.csv", *ON)
    # "KING" and "king" are rare, and not named.
    note(out, "job", "3 rare", "'NA'", "--missing-values NA", "'Cook' and 'cook' differ")
    note(out, "sex", "'n/a'", "--missing-values n/a", "'M' and 'm' differ")
    more = ["--missing-values", "n/a", "--missing-labels", "drop"]
    out, _ = run(capsys, "fit", "t.csv", *ON, *more, "--stream")
    note(out, "sex", "'M' and 'm' differ")
    assert "n/a" not in out
    people(job="cook").to_csv("t.csv", index=False)
    out, _ = run(capsys, "fit", "t.csv", *ON)
    recorded(out.splitlines()[0], "4 of numbers", "1 of text", "1 0/1 column")


@pytest.mark.parametrize("model_of", ["csv", "parquet"])
def test_white_space_in_names_and_models(folder, capsys, model_of):
    """In CSV files it is one space; other files have names as they stand."""
    frame = people().rename(columns={"a": " a\nb "})
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet", index=False)
    run(capsys, "fit", f"t.{model_of}", *ON, "--model", "m.fairpca")
    name = "a b" if model_of == "csv" else " a\nb "
    assert load_model("m.fairpca").preparation.columns[0].name == name
    run(capsys, "transform", f"t.{model_of}", "--model", "m.fairpca", "--output", "r.csv")
    assert len(pd.read_csv("r.csv")) == N

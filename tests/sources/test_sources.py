"""read_moments: every source gives the moments of its rows, in little memory."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

from fairpca import FairnessWarning, FairPCA, GroupMoments
from fairpca.sources import read_moments
from fairpca.tables import reading

from moments_of import (
    FEATURES,
    READ,
    WRITERS,
    assert_same,
    expected,
    table_of,
    write_arrow,
    write_csv,
    write_parquet,
)
from moments_of import small_batches as small_batches
from same_fit import assert_same_fit
from texts import refused, warned

pytestmark = [
    pytest.mark.filterwarnings("ignore:Columns without numbers are left out"),
    pytest.mark.contract,  # pyarrow, Polars, DuckDB
    pytest.mark.usefixtures("small_batches"),
]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("sensitive", ["sex", "class", ["sex", "class"]], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_files(name, sensitive, weighted, tmp_path):
    frame = table_of()
    WRITERS[name](frame, tmp_path / name)
    moments = read_moments(
        tmp_path / name,
        sensitive_features=sensitive,
        sample_weight="weight" if weighted else None,
        **READ,
    )
    assert_same(moments, expected(frame, sensitive, weighted))


def of_parts(frame):
    return (pa.RecordBatch.from_pandas(frame.iloc[i : i + 50]) for i in range(0, len(frame), 50))


def reader(frame):
    return pa.Table.from_pandas(frame).to_reader(max_chunksize=90)


class OnlyStream:
    """Has nothing but the Arrow interface."""

    def __init__(self, frame):
        self._table = pa.Table.from_pandas(frame)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def duck(frame):
    return duckdb.from_arrow(pa.Table.from_pandas(frame)).filter("true")


def categories(frame):
    return frame.assign(sex=frame["sex"].astype(pd.CategoricalDtype(["x", "m", "z", "f"])))


SOURCES = {
    "pandas": lambda frame: frame,
    "pandas with an index": lambda frame: frame.set_index(np.arange(len(frame)) * 7 % 300),
    "pandas categories": categories,
    "Polars": pl.from_pandas,
    "Polars categories": lambda f: pl.from_pandas(f).cast({"sex": pl.Categorical}),
    "Polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow table": pa.Table.from_pandas,
    "pyarrow batch": pa.RecordBatch.from_pandas,
    "pyarrow reader": reader,
    "pyarrow dataset": lambda f: pa.dataset.dataset(pa.Table.from_pandas(f)),
    "pyarrow scanner": lambda f: pa.dataset.dataset(pa.Table.from_pandas(f)).scanner(),
    "DuckDB": duck,
    "Arrow stream": OnlyStream,
    "Arrow stream of Polars": lambda f: OnlyPolars(pl.from_pandas(f)),
    "iterator of batches": of_parts,
    "list of frames": lambda frame: [frame.iloc[:120], pl.from_pandas(frame.iloc[120:])],
}


class OnlyPolars:
    """Polars' own stream, in which text is of another type."""

    def __init__(self, frame):
        self.__arrow_c_stream__ = frame.__arrow_c_stream__


@pytest.mark.parametrize("kind", SOURCES)
def test_streams(kind):
    frame = table_of()
    source = SOURCES[kind](frame)
    moments = read_moments(
        source, sensitive_features=["sex", "class"], sample_weight="weight", **READ
    )
    assert_same(moments, expected(frame, ["sex", "class"], True))


def test_folders_and_lists(tmp_path):
    frame = table_of(400)
    (tmp_path / "data" / "more").mkdir(parents=True)
    folder = tmp_path / "data"
    write_parquet(frame.iloc[:90], folder / "1.parquet")
    write_csv(frame.iloc[90:200], folder / "2.csv")
    write_arrow(frame.iloc[200:300][frame.columns[::-1]], folder / "3.arrow")  # another order
    write_parquet(frame.iloc[300:], folder / "more" / "4.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".2.csv.crc").touch()
    files = [str(folder / name) for name in ("1.parquet", "2.csv", "3.arrow", "more/4.parquet")]
    for source in (folder, str(folder), files, [folder / "more", *files[:3]]):
        moments = read_moments(source, sensitive_features="sex", **READ)
        assert_same(moments, expected(frame))


@pytest.mark.filterwarnings("default:Columns without numbers are left out")
@pytest.mark.parametrize("name", WRITERS)
def test_all_numeric_columns_are_features_unless_named_otherwise(name, tmp_path):
    frame = table_of()
    frame["whole"] = np.arange(len(frame)) % 7
    frame["yes"] = np.arange(len(frame)) % 2 == 0
    WRITERS[name](frame.set_index(frame.index[::-1]), tmp_path / name)
    with warned(FairnessWarning, "left out", "'class'"):
        moments = read_moments(tmp_path / name, sensitive_features="sex", sample_weight="weight")
    assert moments.feature_names == ("u", "v", "w", "whole", "yes")
    reference = GroupMoments.from_rows(
        frame[[*FEATURES, "whole", "yes"]].astype(float),
        frame["sex"],
        sample_weight=frame["weight"],
    )
    np.testing.assert_allclose(moments.scatter, reference.scatter, rtol=1e-10, atol=1e-9)
    kept = read_moments(tmp_path / name, features=["yes", "u"], sensitive_features=["sex", "class"],
                        missing_labels="group")  # fmt: skip
    assert kept.feature_names == ("yes", "u")


@pytest.mark.parametrize(
    "kind", ["int8", "uint64", "float32", "float16", "Float64", "Int32", "decimal", "bool"]
)
def test_numbers_of_other_types(kind):
    frame = table_of()
    whole = frame[FEATURES].clip(-5, 5).round().abs() if kind != "bool" else frame[FEATURES] > 0
    if kind == "decimal":
        column = pa.array(whole["u"].astype(int).tolist()).cast(pa.decimal128(20, 0))
        table = pa.table({"u": column, "v": frame["v"], "w": frame["w"], "sex": frame["sex"]})
        reference = frame.assign(u=whole["u"])
    else:
        reference = frame.assign(**{name: whole[name].astype(kind) for name in FEATURES})
        table = reference
        reference = reference.astype(dict.fromkeys(FEATURES, "float64"))
    assert_same(read_moments(table, sensitive_features="sex", **READ), expected(reference))


def test_labels_keep_their_type():
    table = pa.table(
        {"x": [1.0, 2.0, 3.0, 4.0], "g": [2, None, 1, 2], "h": [0.5, np.nan, 0.5, 1.0]}
    )
    read = read_moments(table, sensitive_features="g", features=["x"], missing_labels="group")
    assert read.labels == (1, 2, "(missing)")
    read = read_moments(table, sensitive_features="h", features=["x"], missing_labels="group")
    assert read.labels == (0.5, 1.0, "(missing)")
    both = read_moments(
        table, sensitive_features=["g", "h"], missing_labels="group", features=["x"]
    )
    frame = table.to_pandas().astype(object)
    frame["g"] = [2, None, 1, 2]
    reference = GroupMoments.from_rows(frame[["x"]], frame[["g", "h"]], missing_labels="group")
    assert both.labels == reference.labels
    assert read_moments(table, features=["x"]).labels == ("all",)


def test_csv_labels_are_text_and_only_nothing_is_missing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,g\n1,01\n2,NA\n3,\n4,01\n5,"a\nb"\n', encoding="utf-8-sig")
    moments = read_moments(path, sensitive_features="g", missing_labels="group")
    assert moments.labels == ("01", "NA", "a\nb", "(missing)")
    assert moments.feature_names == ("x",)


def test_a_csv_column_that_begins_with_whole_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,g\n" + "1,a\n" * 3000 + "0.5,b\n" * 3000)
    assert read_moments(path, sensitive_features="g").mean.tolist() == [[1.0], [0.5]]


def test_csv_files_with_a_head_alone(tmp_path):
    (tmp_path / "1.csv").write_text("x,y,g\n")
    (tmp_path / "2.csv").write_text("x,y,g\n1,t,a\n2,t,b\n")
    (tmp_path / "3.csv").write_text("x,y,g\n")
    moments = read_moments(tmp_path, sensitive_features="g")
    assert moments.count.tolist() == [1, 1]
    assert moments.feature_names == ("x",)
    with refused(ValueError, "no rows"):
        read_moments(tmp_path / "1.csv", sensitive_features="g")


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("weighted", [False, True])
def test_far_means_and_scales_keep_their_digits(mean, scale, weighted):
    frame = table_of(mean=mean * scale, scale=scale)
    weight = "weight" if weighted else None
    moments = read_moments(frame, sensitive_features="sex", sample_weight=weight, **READ)
    # No way to sum has a smaller error than that of the condition number, mean / deviation.
    rtol = 1e-11 + np.finfo(float).eps * mean
    assert_same(moments, expected(frame, "sex", weighted), rtol)


def test_means_that_drift_keep_their_digits():
    frame = table_of(2000)
    frame["u"] += np.linspace(-1e7, 1e7, len(frame))  # near zero at one time, far at another
    frame["v"] = np.where(frame["sex"] == "f", 1.0, frame["v"])  # constant in one group
    moments = read_moments(frame, sensitive_features="sex", **READ)
    assert_same(moments, expected(frame))
    assert moments.scatter[0, 1, 1] == 0.0


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    frame = table_of(1000)
    found = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr("fairpca.sources.checkpoints.worker_threads", lambda d, n=n_threads: n)
        found.append(read_moments(frame, sensitive_features="sex", **READ))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].scatter, other.scatter)
        np.testing.assert_array_equal(found[0].mean, other.mean)


def test_fits_from_every_source_are_the_fit_on_the_rows(tmp_path):
    frame = table_of(500)
    reference = FairPCA(2, criterion="minmax").fit(frame[FEATURES], sensitive_features=frame["sex"])
    for name, write in WRITERS.items():
        write(frame, tmp_path / name)
    sources = [tmp_path / name for name in WRITERS] + [SOURCES[kind](frame) for kind in SOURCES]
    for source in sources:
        fair = FairPCA(2, criterion="minmax").fit_moments(
            read_moments(source, sensitive_features="sex", features=FEATURES)
        )
        assert_same_fit(fair, reference)
        assert fair.feature_names_in_.tolist() == FEATURES


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.arrow"])
def test_memory_is_that_of_a_few_batches(name, tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(reading, "_BATCH_VALUES", 2**17)
    monkeypatch.setattr(reading, "BLOCK", 2**20)
    monkeypatch.setattr(reading, "_PARQUET_BYTES", 2**20)
    n, d = 200_000, 20
    values = np.random.default_rng(0).normal(size=(d, n))
    table = pa.table({f"x{j}": values[j] for j in range(d)})
    path = tmp_path / name
    if name == "a.parquet":
        pa.parquet.write_table(table, path, row_group_size=40_000, use_dictionary=False)
    elif name == "a.csv":
        pa.csv.write_csv(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=8000)
    del table
    before, most = pa.total_allocated_bytes(), []
    read_moments(path, progress=lambda *_: most.append(pa.total_allocated_bytes() - before))
    assert len(most) > 10
    assert max(most) < values.nbytes / 2


def test_progress_rises_to_the_end(tmp_path):
    frame = table_of(400)
    for i in range(3):
        write_parquet(frame, tmp_path / f"{i}.parquet")
    said = []
    read_moments(tmp_path, progress=lambda *what: said.append(what), **READ)
    assert {what for what, _, _ in said} == {f"reading {i}.parquet" for i in range(3)}
    done = [done for _, done, _ in said]
    assert done == sorted(done)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert said[-1][1:] == (size, size)
    read_moments(frame, progress=lambda *what: said.append(what), **READ)
    assert said[-1] == ("reading rows", 400, 0)


# --- Names, missing labels and numbers ----------------------------------------


def test_names_of_sensitive_columns(tmp_path):
    frame = table_of()
    order = ["never", "2nd", "1st"]
    frame["class"] = pd.Categorical(frame["class"].fillna("2nd"), order, ordered=True)
    write_parquet(frame, tmp_path / "people.parquet")
    for source in (tmp_path / "people.parquet", frame, pa.Table.from_pandas(frame)):
        moments = read_moments(source, sensitive_features=["sex", "class"], **READ)
        assert moments.group_names == ("sex", "class")
        assert moments.labels == (("f", "1st"), ("f", "2nd"), ("m", "1st"), ("m", "2nd"))
        assert moments.group_texts[0] == "sex=f × class=1st"  # noqa: RUF001
        assert moments.overlapping("marginals").group_texts[2:] == ["class=1st", "class=2nd"]


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_without_labels_are_left_out(weighted, tmp_path):
    frame = table_of()
    some = frame["class"].notna()
    write_csv(frame, tmp_path / "people.csv")
    options = {"features": FEATURES, "missing_labels": "drop"}
    options["sample_weight"] = "weight" if weighted else None
    with warned(FairnessWarning, f"{(~some).sum()} of", "left out") as caught:
        moments = read_moments(tmp_path / "people.csv", sensitive_features="class", **options)
    assert len(caught) == 1
    assert_same(moments, expected(frame[some], "class", weighted))
    assert moments.n_dropped == (~some).sum()


def test_files_without_any_label_count_in_a_checkpoint(tmp_path):
    frame = table_of()
    write_parquet(frame.assign(sex=None).astype({"sex": object}), tmp_path / "a.parquet")
    write_parquet(frame, tmp_path / "b.parquet")
    files, kept = [tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "kept.moments"
    options = {"sensitive_features": "sex", "features": FEATURES, "missing_labels": "drop"}
    for _ in range(2):
        with warned(FairnessWarning, "300 of 600"):
            moments = read_moments(files, checkpoint=kept, **options)
        assert moments.n_dropped == 300
        assert moments.count.sum() == 300


def test_numeric_groups_can_stay_among_the_features():
    frame = table_of()[FEATURES].assign(old=np.arange(300) % 2)
    assert read_moments(frame, sensitive_features="old").n_features == 3
    kept = read_moments(frame, sensitive_features="old", keep_sensitive=True)
    assert kept.feature_names == (*FEATURES, "old")


def test_a_column_of_many_numbers_is_refused():
    frame = table_of()[FEATURES].assign(age=np.arange(300) % 90)
    with refused(ValueError, "different numbers", "'age'", "pandas.qcut"):
        read_moments(frame.iloc[:120], sensitive_features="age")
    codes = frame.assign(age=frame["age"].astype(str))
    assert len(read_moments(codes, sensitive_features="age").labels) == 90

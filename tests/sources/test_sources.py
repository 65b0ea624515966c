"""read_moments: every source gives the moments of its rows, in little memory, or one sentence."""

import gzip
import os
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

from fairpca import FairPCA, GroupMoments
from fairpca.sources import blocks, files, read_moments
from fairpca.sources import checkpoint as checkpoint_module

from same_fit import assert_same_fit

FEATURES = ["u", "v", "w"]


def table_of(n=300, seed=0, mean=0.0, scale=1.0):
    """A frame with features, two sensitive columns with gaps in one, and weights."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)) * [3.0, 2.0, 1.0], columns=FEATURES)
    frame["sex"] = rng.choice(["f", "m"], n)
    frame.loc[frame["sex"] == "f", FEATURES] = frame.loc[frame["sex"] == "f", FEATURES[::-1]].values
    frame[FEATURES] = frame[FEATURES] * scale + mean
    frame["class"] = rng.choice(["1st", "2nd", None], n, p=[0.5, 0.3, 0.2])
    frame["weight"] = np.where(rng.random(n) < 0.2, 0.0, rng.exponential(size=n))
    return frame


def expected(frame, sensitive="sex", weighted=False):
    return GroupMoments.from_rows(
        frame[FEATURES],
        frame[sensitive],
        sample_weight=frame["weight"] if weighted else None,
        missing_labels="group",
    )


def assert_same(moments, reference, rtol=1e-11):
    assert moments.labels == reference.labels
    assert moments.feature_names == reference.feature_names == tuple(FEATURES)
    np.testing.assert_array_equal(moments.count, reference.count)
    np.testing.assert_allclose(moments.weight, reference.weight, rtol=rtol)
    for i in range(len(moments.labels)):
        size = np.sqrt(np.diag(reference.scatter[i]))
        mean = moments.mean[i] - reference.mean[i]
        assert (np.abs(mean) <= rtol * (size + np.abs(reference.mean[i]))).all()
        off = moments.scatter[i] - reference.scatter[i]
        assert (np.abs(off) <= rtol * np.outer(size, size)).all()


def write_parquet(frame, path):
    frame.to_parquet(path, row_group_size=70)


def write_csv(frame, path):
    frame.to_csv(path, index=False)


def write_gzip(frame, path):
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        frame.to_csv(file, index=False)


def write_arrow(frame, path):
    table = pa.Table.from_pandas(frame)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=80)


def write_stream(frame, path):
    table = pa.Table.from_pandas(frame)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=80)


WRITERS = {
    "a.parquet": write_parquet,
    "a.csv": write_csv,
    "a.csv.gz": write_gzip,
    "a.arrow": write_arrow,
    "a.feather": write_stream,
}
READ = {"features": FEATURES, "missing_labels": "group"}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Many batches and blocks from few rows."""
    monkeypatch.setattr(files, "_MOST_ROWS", 64)
    monkeypatch.setattr(files, "_CSV_BLOCK", 4096)
    monkeypatch.setattr(blocks, "_BLOCK_VALUES", 60)


# --- The same moments from every source ---------------------------------------


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


def test_a_lazy_frame_without_parts_is_refused_in_one_sentence():
    class Old:
        def collect(self):
            raise AssertionError

    with pytest.raises(ValueError, match=r"collect\(\) it first"):
        read_moments(Old())


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


@pytest.mark.parametrize("name", WRITERS)
def test_all_numeric_columns_are_features_unless_named_otherwise(name, tmp_path):
    frame = table_of()
    frame["whole"] = np.arange(len(frame)) % 7
    frame["yes"] = np.arange(len(frame)) % 2 == 0
    WRITERS[name](frame.set_index(frame.index[::-1]), tmp_path / name)
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
    with pytest.raises(ValueError, match="There are no rows"):
        read_moments(tmp_path / "1.csv", sensitive_features="g")


# --- Precision, order, memory -------------------------------------------------


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
        monkeypatch.setattr("fairpca.sources.reading.worker_threads", lambda d, n=n_threads: n)
        found.append(read_moments(frame, sensitive_features="sex", **READ))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].scatter, other.scatter)
        np.testing.assert_array_equal(found[0].mean, other.mean)


def test_fits_from_every_source_are_the_fit_on_the_rows(tmp_path):
    frame = table_of(500)
    reference = FairPCA(2).fit(frame[FEATURES], sensitive_features=frame["sex"])
    for name, write in WRITERS.items():
        write(frame, tmp_path / name)
    sources = [tmp_path / name for name in WRITERS] + [SOURCES[kind](frame) for kind in SOURCES]
    for source in sources:
        fair = FairPCA(2).fit_moments(
            read_moments(source, sensitive_features="sex", features=FEATURES)
        )
        assert_same_fit(fair, reference)
        assert fair.feature_names_in_.tolist() == FEATURES


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.arrow"])
def test_memory_is_that_of_a_few_batches(name, tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(files, "_BATCH_VALUES", 2**17)
    monkeypatch.setattr(files, "_CSV_BLOCK", 2**20)
    monkeypatch.setattr(files, "_PARQUET_BYTES", 2**20)
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
    assert said[-1] == ("reading rows", 400, 400)


# --- What is refused ----------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A folder of five files, and the frame that they hold."""
    frame = table_of(500)
    for i in range(5):
        write_parquet(frame.iloc[100 * i : 100 * (i + 1)], tmp_path / f"{i}.parquet")
    return tmp_path, frame


def refuse(source, words, error=ValueError, **options):
    with pytest.raises(error, match=words) as caught:
        read_moments(source, sensitive_features="sex", **options)
    assert "\n" not in str(caught.value)


def test_other_columns(folder):
    path, frame = folder
    part = frame.iloc[200:300]
    write_parquet(part.drop(columns="v"), path / "2.parquet")
    refuse(path, r"2\.parquet': The table has no column 'v'; it has 'u'")
    write_parquet(part.drop(columns="sex"), path / "2.parquet")
    refuse(path, r"2\.parquet': The table has no column 'sex'")
    write_parquet(part.assign(z=1.0), path / "2.parquet")
    refuse(path, r"2\.parquet': .* numeric columns that the first one has not: 'z'")
    assert_same(read_moments(path, sensitive_features="sex", **READ), expected(frame))
    write_parquet(part.assign(v="text"), path / "2.parquet")
    refuse(path, r"2\.parquet': Columns hold no numbers: 'v' \((large_)?string\)")
    refuse(frame, "has no column 'nothing'", features=["nothing"])
    refuse(frame, "Columns hold no numbers: 'class'", features=["u", "class"])
    refuse(frame, "names columns twice: 'u'", features=["u", "u"])
    refuse(frame, "at least one column", features=[])
    refuse(frame, "must be the name of a column", TypeError, sample_weight=[1.0])
    refuse(frame[["sex", "class"]], "no numeric columns")
    with pytest.raises(TypeError, match="names of columns, not the values"):
        read_moments(frame, sensitive_features=np.zeros(3))


@pytest.mark.parametrize("value", [None, np.nan, np.inf])
def test_missing_values(value, folder):
    path, frame = folder
    part = frame.iloc[200:300].copy()
    part.iloc[86, 1] = value
    write_parquet(part, path / "2.parquet")
    refuse(path, r"2\.parquet': The value in column 'v' is missing or infinite in row 87 ")
    refuse(part, "^The value in column 'v' is missing or infinite in row 87 ")


def test_missing_labels_and_weights(folder):
    path, frame = folder
    part = frame.iloc[200:300].copy()
    part.iloc[86, 3] = None
    write_parquet(part, path / "2.parquet")
    refuse(path, r"2\.parquet': sensitive_features has 1 missing values")
    refuse(path, "missing_labels must be one of", missing_labels="drop")
    for value in (-1.0, np.inf, None):
        part = frame.iloc[200:300].copy()
        part.iloc[86, 5] = value
        write_parquet(part, path / "2.parquet")
        refuse(path, r"2\.parquet': .*'weight' is .* in row 87 ", sample_weight="weight")
    refuse(frame.assign(weight=0.0), "none with a positive weight", sample_weight="weight")


def test_text_in_a_csv_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,sex\n" + "1,f\n" * 5000 + "many,m\n")
    refuse(path, r"a\.csv': Behind row 4,\d\d\d there is no table of numbers: .*'many'")
    path.write_text("x,sex\n" + "1,f\n" * 5000 + "1,m,3\n")
    refuse(path, r"a\.csv': Behind row .*Expected 2 columns, got 3")
    path.write_text("x,sex,x\n1,f,2\n")
    refuse(path, "Columns have the same name: 'x'")
    path.write_text("")
    refuse(path, r"a\.csv' cannot be read.*Empty CSV file")
    path.write_text("x,sex\n1,f\n,m\n")
    refuse(path, r"a\.csv': The value in column 'x' is missing or infinite in row 2 ")


def test_values_too_large_to_be_squared():
    frame = table_of()
    frame.loc[3, "u"] = 1e200
    refuse(frame, "too large to be squared")


def test_too_many_groups():
    refuse_all = pa.table({"x": np.arange(3000.0), "sex": np.arange(3000)})
    refuse(refuse_all, "more than the 1,000 groups", features=["x"])


def test_labels_that_are_no_labels():
    table = pa.table({"x": [1.0, 2.0], "sex": [[1], [2]]})
    refuse(table, r"plain labels such as text or numbers, not list", TypeError)


def test_paths_that_are_not_there_or_not_known(tmp_path):
    refuse(tmp_path / "none.parquet", "no file or folder", FileNotFoundError)
    refuse(tmp_path, "has no files")
    (tmp_path / "notes.txt").touch()
    refuse(tmp_path, r"must end in one of '\.parquet'.*notes\.txt")
    refuse([], "list of files is empty")
    write_parquet(table_of(), tmp_path / "a.parquet")
    refuse([tmp_path / "a.parquet", str(tmp_path / "a.parquet")], "named twice")
    refuse(7, "A int is no source of tables", TypeError)
    refuse(table_of(), "can only be kept of files", checkpoint=tmp_path / "c.moments")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather", "a.csv.gz"])
def test_files_cut_short(name, tmp_path):
    WRITERS[name](table_of(), tmp_path / name)
    data = (tmp_path / name).read_bytes()
    for share in (0.0, 0.3, 0.9):
        (tmp_path / name).write_bytes(data[: int(share * len(data))])
        refuse(tmp_path / name, rf"{name}' cannot be read, it may be damaged or cut short: ")


# --- Checkpoints --------------------------------------------------------------


def test_a_damaged_file_leaves_the_others_in_the_checkpoint(folder):
    path, frame = folder
    checkpoint = path.parent / f"{path.name}.moments"
    whole = (path / "3.parquet").read_bytes()
    (path / "3.parquet").write_bytes(whole[: len(whole) // 2])
    options = {"sensitive_features": "sex", "checkpoint": checkpoint, **READ}
    with pytest.raises(ValueError, match=r"3\.parquet' cannot be read"):
        read_moments(path, **options)
    assert_same(GroupMoments.load(checkpoint), expected(frame.iloc[:300]))
    (path / "3.parquet").write_bytes(whole)
    read = []
    moments = read_moments(path, progress=lambda what, *_: read.append(what), **options)
    assert_same(moments, expected(frame))
    assert set(read) == {"reading 3.parquet", "reading 4.parquet"}
    read.clear()
    again = read_moments(path, progress=lambda what, *_: read.append(what), **options)
    assert_same(again, expected(frame))
    assert not read


@pytest.mark.parametrize("place", [1, 4, 7, 9])
def test_a_pass_that_is_interrupted_goes_on(place, folder):
    path, frame = folder
    checkpoint = path.parent / f"{path.name}.moments"
    options = {"sensitive_features": ["sex", "class"], "sample_weight": "weight", **READ}
    calls = []

    def interrupt(*what):
        calls.append(what)
        if len(calls) == place:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_moments(path, checkpoint=checkpoint, progress=interrupt, **options)
    done = int(calls[-1][0].removeprefix("reading ")[0])  # the files before the one at hand
    reference = expected(frame.iloc[: 100 * done], ["sex", "class"], True) if done else None
    if reference is None:
        assert not checkpoint.exists()
    else:
        assert_same(GroupMoments.load(checkpoint), reference)
    moments = read_moments(path, checkpoint=checkpoint, **options)
    assert_same(moments, expected(frame, ["sex", "class"], True))


def test_the_checkpoint_is_written_during_the_pass(folder, monkeypatch):
    monkeypatch.setattr(checkpoint_module, "_PATIENCE", -1.0)
    path, _ = folder
    checkpoint = path.parent / f"{path.name}.moments"
    counts = []

    def look(*what):
        if checkpoint.exists():
            counts.append(int(GroupMoments.load(checkpoint).count.sum()))

    read_moments(path, checkpoint=checkpoint, progress=look)
    assert counts == sorted(counts)
    assert {100, 200, 300} <= set(counts)


def test_new_files_may_come_and_old_ones_must_stay(folder):
    path, frame = folder
    checkpoint = path.parent / f"{path.name}.moments"
    options = {"sensitive_features": "sex", "checkpoint": checkpoint, **READ}
    last = (path / "4.parquet").read_bytes()
    os.unlink(path / "4.parquet")
    assert_same(read_moments(path, **options), expected(frame.iloc[:400]))
    (path / "4.parquet").write_bytes(last)
    assert_same(read_moments(path, **options), expected(frame))
    with pytest.raises(ValueError, match="with other columns or options"):
        read_moments(path, **{**options, "sensitive_features": "class"})
    write_parquet(frame.iloc[:90], path / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet' has changed since the checkpoint"):
        read_moments(path, **options)
    os.unlink(path / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet', which is not among the files now"):
        read_moments(path, **options)
    expected(frame).save(checkpoint)
    with pytest.raises(ValueError, match="is no checkpoint of a pass"):
        read_moments(path, **options)
    checkpoint.write_bytes(b"PK")
    with pytest.raises(ValueError, match="damaged or cut short"):
        read_moments(path, **options)


def test_a_file_that_changes_while_it_is_read(folder):
    path, _ = folder

    def change(what, *_):
        if what == "reading 2.parquet":
            os.utime(path / "2.parquet", ns=(1, 1))

    refuse(path, r"2\.parquet' changed while it was read", progress=change)


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"install `fairpca\[files\]`"):
        read_moments("somewhere")

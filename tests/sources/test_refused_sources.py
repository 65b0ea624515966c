"""Sources that are refused, in one sentence that names the file."""

import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

from fairpca.sources import read_moments

from moments_of import (
    READ,
    WRITERS,
    assert_same,
    expected,
    five_files,
    table_of,
    write_parquet,
)
from moments_of import small_batches as small_batches
from texts import refused

pytestmark = [
    pytest.mark.usefixtures("small_batches"),
    pytest.mark.filterwarnings("ignore:Columns without numbers are left out"),
]


def refuse(source, words, error=ValueError, **options):
    with refused(error, *words.split()) as caught:
        read_moments(source, sensitive_features="sex", **options)
    assert "\n" not in str(caught.value)


def test_other_columns(tmp_path):
    path, frame = five_files(tmp_path)
    part = frame.iloc[200:300]
    write_parquet(part.drop(columns="v"), path / "2.parquet")
    refuse(path, "2.parquet': column 'v' 'u'")
    write_parquet(part.drop(columns="sex"), path / "2.parquet")
    refuse(path, "2.parquet': column 'sex'")
    write_parquet(part.assign(z=1.0), path / "2.parquet")
    refuse(path, "2.parquet': numeric 'z'")
    assert_same(read_moments(path, sensitive_features="sex", **READ), expected(frame))
    write_parquet(part.assign(v="text"), path / "2.parquet")
    refuse(path, "2.parquet': no numbers 'v'")
    refuse(frame, "no column 'nothing'", features=["nothing"])
    refuse(frame, "no numbers 'class'", features=["u", "class"])
    refuse(frame, "twice 'u'", features=["u", "u"])
    refuse(frame, "one column", features=[])
    refuse(frame, "sample_weight name column", TypeError, sample_weight=[1.0])
    refuse(frame[["sex", "class"]], "no numeric columns")
    with refused(TypeError, "names of columns"):
        read_moments(frame, sensitive_features=np.zeros(3))


@pytest.mark.parametrize("value", [None, np.nan, np.inf])
def test_missing_values(value, tmp_path):
    path, frame = five_files(tmp_path)
    part = frame.iloc[200:300].copy()
    part.iloc[86, 1] = value
    write_parquet(part, path / "2.parquet")
    refuse(path, "2.parquet': 'v' missing infinite row 87")
    refuse(part, "'v' missing infinite row 87")


def test_missing_labels_and_weights(tmp_path):
    path, frame = five_files(tmp_path)
    part = frame.iloc[200:300].copy()
    part.iloc[86, 3] = None
    write_parquet(part, path / "2.parquet")
    refuse(path, "2.parquet': sensitive_features 1 missing")
    refuse(path, "missing_labels", missing_labels="no")
    for value in (-1.0, np.inf, None):
        part = frame.iloc[200:300].copy()
        part.iloc[86, 5] = value
        write_parquet(part, path / "2.parquet")
        refuse(path, "2.parquet': 'weight' row 87", sample_weight="weight")
    refuse(frame.assign(weight=0.0), "none positive weight", sample_weight="weight")


def test_text_in_a_csv_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,sex\n" + "1,f\n" * 5000 + "many,m\n")
    refuse(path, "a.csv': After row 'x' type 'many'")
    path.write_text("x,sex\n" + "1,f\n" * 5000 + "1,m,3\n")
    refuse(path, "a.csv' 3 cells '1,m,3'")
    path.write_text("x,sex,x\n1,f,2\n")
    refuse(path, "same name: 'x'")
    path.write_text("")
    refuse(path, "a.csv' empty")
    path.write_text("x,sex\n1,f\n,m\n")
    refuse(path, "a.csv': 'x' missing row 2")


def test_values_too_large_to_be_squared():
    frame = table_of()
    frame.loc[3, "u"] = 1e200
    refuse(frame, "squared")


def test_too_many_groups():
    refuse_all = pa.table({"x": np.arange(3000.0), "sex": np.arange(3000).astype(str)})
    refuse(refuse_all, "1,000 groups", features=["x"])


def test_labels_that_are_no_labels():
    table = pa.table({"x": [1.0, 2.0], "sex": [[1], [2]]})
    refuse(table, "plain labels list", TypeError)


def test_paths_that_are_not_there_or_not_known(tmp_path):
    refuse(tmp_path / "none.parquet", "no file", FileNotFoundError)
    refuse(tmp_path, "no files")
    (tmp_path / "notes.txt").touch()
    refuse(tmp_path, "'.csv' notes.txt")
    refuse([], "files empty")
    write_parquet(table_of(), tmp_path / "a.parquet")
    refuse([tmp_path / "a.parquet", str(tmp_path / "a.parquet")], "named twice")
    refuse(7, "int source", TypeError)
    refuse(table_of(), "checkpoint files", checkpoint=tmp_path / "c.moments")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather", "a.csv.gz"])
def test_files_cut_short(name, tmp_path):
    WRITERS[name](table_of(), tmp_path / name)
    data = (tmp_path / name).read_bytes()
    for share in (0.3, 0.9):
        (tmp_path / name).write_bytes(data[: int(share * len(data))])
        refuse(tmp_path / name, f"{name}' cannot be read damaged")
    (tmp_path / name).write_bytes(b"")
    refuse(tmp_path / name, f"{name}' empty")


def test_a_file_that_changes_while_it_is_read(tmp_path):
    path, _ = five_files(tmp_path)

    def change(what, *_):
        if what == "reading 2.parquet":
            os.utime(path / "2.parquet", ns=(1, 1))

    refuse(path, "2.parquet' changed", progress=change)


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused(ImportError, "fairpca[files]"):
        read_moments("somewhere")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("1,5", "has 59 numbers and 1 cell that is no number, such as '1,5'"),
        ("n.a.", "has 59 numbers and 1 cell that is no number, such as 'n.a.'"),
    ],
)
def test_a_column_of_numbers_with_a_slip_is_not_left_out_without_a_word(tmp_path, cell, said):
    x = [f"{i}.25" for i in range(60)]
    x[1] = f'"{cell}"'
    rows = [f"{v},{i % 7},{'fm'[i % 2]},{'ab'[i % 2]}{i}" for i, v in enumerate(x)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,y,sex,name", *rows, ""]))
    with refused(ValueError, "features") as error:
        read_moments(path, sensitive_features="sex")
    assert str(error.value) == (
        f"{str(path)!r}: Column 'x' {said}: correct that, or name the features."
    )
    moments = read_moments(path, sensitive_features="sex", features=["y"])
    assert moments.n_rows == 60

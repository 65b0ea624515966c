"""A table with groups and weights, its moments, and files of it."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from fairpca import GroupMoments
from fairpca.tables import reading

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


@pytest.fixture
def small_batches(monkeypatch):
    """Many batches from few rows."""
    monkeypatch.setattr(reading, "_MOST_ROWS", 64)
    monkeypatch.setattr(reading, "BLOCK", 4096)


def five_files(folder):
    """Write five files into a folder; returns it, and the frame that they hold."""
    frame = table_of(500)
    for i in range(5):
        write_parquet(frame.iloc[100 * i : 100 * (i + 1)], folder / f"{i}.parquet")
    return folder, frame

"""The program on a table in batches: its memory does not grow with the rows."""

import tracemalloc

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

from fairpca.cli import main
from fairpca.tables import reading

pytestmark = pytest.mark.untraced

COLUMNS, FEW, MANY = [*"abcdefghijklmnop"], 5, 40


@pytest.fixture(scope="module")
def part():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 1000, (5_000, len(COLUMNS))), columns=COLUMNS)
    frame["job"] = rng.choice(["cook", "smith"], len(frame))
    frame["sex"] = rng.choice(["f", "m"], len(frame))
    return frame


def write(part, times, path):
    if path.suffix == ".csv":
        head, rows = part.to_csv(index=False).split("\n", 1)
        path.write_text(f"{head}\n{rows * times}", "utf-8")
        return
    writers = {".parquet": pyarrow.parquet.ParquetWriter, ".arrow": pyarrow.ipc.new_file}
    table = pyarrow.Table.from_pandas(part)
    with writers[path.suffix](str(path), table.schema) as file:
        for _ in range(times):
            file.write_table(table)


def peak_of(path, *options):
    """The largest memory of NumPy and Python, and that of Arrow, in bytes."""
    pool = pyarrow.proxy_memory_pool(pyarrow.default_memory_pool())
    before = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pool)
    tracemalloc.start()
    try:
        files = [str(path), "--output", str(path.with_stem("out")), "--force", *options]
        assert main(["fit", *files, "--sensitive", "sex", "--n-components", "2"]) == 0
        return tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pyarrow.set_memory_pool(before)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_memory_does_not_grow_with_the_rows(part, tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(reading, "_MOST_ROWS", 2**11)
    monkeypatch.setattr(reading, "BLOCK", 2**17)
    small, large = tmp_path / f"small.{suffix}", tmp_path / f"large.{suffix}"
    write(part, FEW, small)
    write(part, MANY, large)
    added = 8 * (MANY - FEW) * len(part) * len(COLUMNS)
    peak_of(small, "--stream")  # so that nothing is imported for the first time below
    # Threads that read ahead hold a few blocks, sometimes more of them than at other times.
    assert peak_of(large, "--stream") - peak_of(small, "--stream") < added / 2
    # What is measured does see rows that are kept.
    assert peak_of(large) - peak_of(small) > added

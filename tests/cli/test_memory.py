"""The program on a table in batches: its memory does not grow with the rows."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

MEASURE = """
import re
from pathlib import Path
from fairpca.cli import main
from fairpca.tables import csv_files, reading
reading._MOST_ROWS, csv_files.BLOCK = 2**11, 2**17
for size in ("small", "large"):
    for suffix in ("csv", "parquet", "arrow"):
        files = [f"{size}.{suffix}", "--output", f"out.{suffix}", "--stream"]
        assert main(["fit", *files, "--sensitive", "sex", "--n-components", "2"]) == 0
    status = Path("/proc/self/status").read_text()
    print("peak", re.search(r"VmHWM:\\s+(\\d+) kB", status)[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="says how much memory there was")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    columns, few, many = [*"abcdefghijklmnop"], 5, 40
    rng = np.random.default_rng(0)
    part = pd.DataFrame(rng.integers(0, 1000, (5_000, len(columns))), columns=columns)
    part["job"] = rng.choice(["cook", "smith"], len(part))
    part["sex"] = rng.choice(["f", "m"], len(part))
    head, rows = part.to_csv(index=False).split("\n", 1)
    table = pyarrow.Table.from_pandas(part)
    for size, times in (("small", few), ("large", many)):
        (tmp_path / f"{size}.csv").write_text(f"{head}\n{rows * times}", "utf-8")
        for suffix, writer in (
            ("parquet", pyarrow.parquet.ParquetWriter),
            ("arrow", pyarrow.ipc.new_file),
        ):
            with writer(str(tmp_path / f"{size}.{suffix}"), table.schema) as file:
                for _ in range(times):
                    file.write_table(table)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    peaks = [int(x.split()[1]) for x in done.stdout.splitlines() if x.startswith("peak")]
    # The numbers alone; in memory it grows by about seven times as much.
    assert 1024 * (peaks[1] - peaks[0]) < 8 * (many - few) * len(part) * len(columns), peaks

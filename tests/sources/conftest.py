"""What the tests of sources share."""

import pytest

from fairpca.sources import blocks
from fairpca.tables import csv_files, reading

from moments_of import table_of, write_parquet


@pytest.fixture
def small_batches(monkeypatch):
    """Many batches and blocks from few rows."""
    monkeypatch.setattr(reading, "_MOST_ROWS", 64)
    monkeypatch.setattr(csv_files, "BLOCK", 4096)
    monkeypatch.setattr(blocks, "_BLOCK_VALUES", 60)


@pytest.fixture
def folder(tmp_path):
    """A folder of five files, and the frame that they hold."""
    frame = table_of(500)
    for i in range(5):
        write_parquet(frame.iloc[100 * i : 100 * (i + 1)], tmp_path / f"{i}.parquet")
    return tmp_path, frame

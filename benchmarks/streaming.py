"""A fit from a Parquet file that need not fit into memory: time, memory, and growth with the rows.

Run ``make bench-large``. It writes files of 1, 3 and 10 million rows of 60 random columns and a
text column with four groups (5 GB of disk for the largest, each removed afterwards), and fits a
fair subspace of ten dimensions to each. The time is compared with that of reading 60 columns and
forming one product of all rows, in the same batches and threads but without groups; both are
taken in turn, in a process of their own, and the smallest of each counts. The memory is the largest
that this process had, Python and all libraries included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from fairpca import FairPCA, GroupMoments
from fairpca._linalg.threads import one_blas_thread
from fairpca._linalg.types import Array
from fairpca.moments.sums import worker_threads
from fairpca.sources import read_moments
from fairpca.sources.checkpoints import in_order
from fairpca.tables.reading import TableFile

N_COLUMNS, ROW_GROUP, N_COMPONENTS = 60, 250_000, 10
NAMES = [f"x{j}" for j in range(N_COLUMNS)]
BLOCK_VALUES = 2**20


def main() -> None:
    """Measure every size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 3, 10])
    parser.add_argument("--pairs", type=int, default=5, help="timed pairs of each size")
    parser.add_argument("--row-group", type=int, default=ROW_GROUP)
    parser.add_argument("--folder", help="where to write the files; a temporary one by default")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(Path(arguments.measure), arguments.pairs)))
        return
    head = f"{'rows':>12} {'read and fit':>13} {'solve':>8} {'read, X^T X':>12} {'ratio':>6}"
    print(f"{head} {'s per million':>14} {'peak memory':>12}", flush=True)
    for millions in arguments.millions:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            path = Path(folder) / "rows.parquet"
            n = int(1e6 * millions)
            write_rows(path, n, arguments.row_group)
            command = [
                sys.executable,
                __file__,
                "--measure",
                str(path),
                "--pairs",
                str(arguments.pairs),
            ]
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found = json.loads(said)
        print(
            f"{n:>12,} {found['fit']:>11.2f} s {found['solve']:>6.2f} s {found['product']:>10.2f} s"
            f" {found['fit'] / found['product']:>6.2f} {found['fit'] / millions:>14.3f}"
            f" {found['peak'] / 1e6:>9.0f} MB",
            flush=True,
        )


def write_rows(path: Path, n: int, row_group: int) -> None:
    """Rows of four groups with axes of their own, in random order."""
    rng = np.random.default_rng(0)
    kinds = [pyarrow.field(name, pyarrow.float64()) for name in NAMES]
    schema = pyarrow.schema([*kinds, pyarrow.field("group", pyarrow.string())])
    scales = 1.0 + 2.0 * rng.random((4, N_COLUMNS))
    with pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=["group"]) as writer:
        for start in range(0, n, row_group):
            size = min(row_group, n - start)
            codes = rng.choice(4, p=[0.5, 0.3, 0.15, 0.05], size=size)
            columns = rng.standard_normal((N_COLUMNS, size)) * scales[codes].T
            groups = np.array(["north", "east", "south", "west"])[codes]
            writer.write_table(pyarrow.table([*columns, groups], schema=schema), size)


def measure(path: Path, pairs: int) -> dict[str, float]:
    """Smallest times of a fit and of the plain product, and the largest memory of the fit."""
    fit = [timed(lambda: fit_file(path))]  # first, so that the memory is that of the fit alone
    peak = peak_memory()
    product = [timed(lambda: product_of_rows(path))]
    for _ in range(pairs - 1):
        fit.append(timed(lambda: fit_file(path)))
        product.append(timed(lambda: product_of_rows(path)))
    moments = read_moments(path, sensitive_features="group")
    check(path, moments)
    solve = min(timed(lambda: _fit(moments)) for _ in range(3))
    return {"fit": min(fit), "product": min(product), "solve": solve, "peak": peak}


def _fit(moments: GroupMoments) -> FairPCA:
    return FairPCA(N_COMPONENTS, criterion="equal").fit_moments(moments)


def fit_file(path: Path) -> FairPCA:
    """What is measured."""
    return _fit(read_moments(path, sensitive_features="group"))


def product_of_rows(path: Path) -> Array:
    """One product of all rows, without groups: the same batches, blocks and threads."""
    batches = (batch for batch, _ in TableFile.of(path).open().batches(NAMES))
    total = np.zeros((N_COLUMNS, N_COLUMNS))
    with one_blas_thread():
        for part in in_order(product_of_batch, batches, worker_threads(N_COLUMNS)):
            total += part
    return total


def product_of_batch(batch: Any) -> Array:
    """The product of the rows of one batch."""
    values = [batch.column(name).to_numpy() for name in NAMES]
    step = BLOCK_VALUES // N_COLUMNS
    block = np.empty((N_COLUMNS, step))
    total = np.zeros((N_COLUMNS, N_COLUMNS))
    for start in range(0, len(batch), step):
        size = min(step, len(batch) - start)
        for row, column in zip(block, values, strict=True):
            row[:size] = column[start : start + size]
        total += block[:, :size] @ block[:, :size].T
    return total


def check(path: Path, moments: GroupMoments) -> None:
    """Fail unless both ways have summed the same rows."""
    second = moments.scatter.sum(axis=0) + (moments.mean * moments.weight[:, None]).T @ moments.mean
    np.testing.assert_allclose(second, product_of_rows(path), rtol=1e-9, atol=1e-3)


def timed(work: Callable[[], object]) -> float:
    """Seconds that the work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_memory() -> float:
    """The most bytes that this process has had in memory."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike the next one it does not count the process that this one was made from.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024.0 * float(line.split()[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(most if sys.platform == "darwin" else 1024 * most)


if __name__ == "__main__":
    main()

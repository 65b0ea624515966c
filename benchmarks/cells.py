"""Time and memory of `fairpca.pp.pca` beside `sc.pp.pca`, scikit-learn's and scranpy's PCA.

``python benchmarks/cells.py [cells genes]`` (50,000 and 2,000): sparse counts, 5 % of them not
zero, of 12 types of 40 to 0.1 %, r = 50; sparse, dense and backed. It needs scanpy and scranpy, as
``make cells`` installs the first. Each is run in a process of its own; seconds are those of the
processor, so that other work on the machine does not count, and memory is the peak beyond that of
the rows.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from scipy.optimize import brentq

N_TYPES, N_SHARED, DENSITY, R = 12, 30, 0.05, 50


def written(path: Path, n: int, d: int) -> None:
    """Write log-normalised counts of a known model."""
    import anndata

    rng = np.random.default_rng(0)
    shares = np.geomspace(0.4, 0.001, N_TYPES)
    types = rng.choice(N_TYPES, n, p=shares / shares.sum())
    base, some = rng.gamma(0.3, 1.0, d), rng.random((N_TYPES, d)) < 0.08
    marked = np.exp(rng.normal(0.0, 1.2, (N_TYPES, d)) * some)
    shared = rng.normal(0.0, 0.8, (N_SHARED, d)) * (rng.random((N_SHARED, d)) < 0.1)
    blocks, depth = [], None
    for part in np.array_split(types, max(n // 5000, 1)):
        rates = base * marked[part] * np.exp(rng.normal(size=(len(part), N_SHARED)) @ shared)
        rates *= rng.lognormal(0.0, 0.4, len(part))[:, None] / rates.sum(axis=1, keepdims=True)
        if depth is None:
            depth = brentq(lambda t, at=rates: -np.expm1(-at * t).mean() - DENSITY, 1.0, 1e6)
        counts = rng.poisson(rates * depth)
        sums = np.maximum(counts.sum(axis=1, keepdims=True), 1)
        blocks.append(scipy.sparse.csr_matrix(np.log1p(counts * (np.median(sums) / sums))))
    adata = anndata.AnnData(scipy.sparse.vstack(blocks).tocsr().astype(np.float32))
    adata.obs["type"] = [f"type {code}" for code in types]
    adata.write_h5ad(path)


def _fair(adata: Any, **options: Any) -> None:
    from fairpca import pp

    pp.pca(adata, key="type", n_comps=R, **options)
    certificate = adata.uns["X_pca_fair"]["certificate"]
    print(f"({certificate['status']}, gap {certificate['relative_gap']:.0e})", end=" ")


def _scanpy(adata: Any, **options: Any) -> None:
    import scanpy

    scanpy.pp.pca(adata, n_comps=R, **options)


def _sklearn(adata: Any, **options: Any) -> None:
    from sklearn.decomposition import PCA

    PCA(R, **options).fit_transform(adata.X)


def _scranpy(adata: Any) -> None:
    import scranpy

    block = adata.obs["type"].astype(str).tolist()
    rows = scipy.sparse.csc_matrix(adata.X.T)
    scranpy.run_pca(rows, number=R, block=block, block_weight_policy="equal")


RUNS: dict[str, Callable[[Any], None]] = {
    "sparse: scikit-learn, arpack": lambda adata: _sklearn(adata, svd_solver="arpack"),
    "sparse: scikit-learn, covariance": lambda adata: _sklearn(adata, svd_solver="covariance_eigh"),
    "sparse: scanpy": _scanpy,
    "sparse: scranpy, blocks": _scranpy,
    "sparse: fairpca": _fair,
    "sparse: fairpca, minmax": lambda adata: _fair(adata, criterion="minmax"),
    "dense: scanpy": _scanpy,
    "dense: fairpca": _fair,
    "dense: fairpca, minmax": lambda adata: _fair(adata, criterion="minmax"),
    "backed: scanpy, chunked": lambda adata: _scanpy(adata, chunked=True, chunk_size=5000),
    "backed: fairpca, minmax": lambda adata: _fair(adata, criterion="minmax"),
}


def run(name: str, path: str) -> None:
    """Run one and print what it took."""
    import anndata

    warnings.simplefilter("ignore")
    adata = anndata.read_h5ad(path, backed="r" if name.startswith("backed") else None)
    if name.startswith("dense"):
        adata.X = adata.X.toarray()
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    wall = time.perf_counter()
    RUNS[name](adata)
    seconds, passed = time.process_time() - begin, time.perf_counter() - wall
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
    print(f"{name}: {seconds:.1f} s of the processor, {passed:.1f} s in all, {memory:.2f} GB")


def main() -> None:
    """Write the cells, and run each in a process of its own."""
    if len(sys.argv) == 4 and sys.argv[1] == "run":
        run(*sys.argv[2:])
        return
    n, d = map(int, sys.argv[1:] or (50_000, 2_000))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.h5ad"
        written(path, n, d)
        for name in RUNS:
            subprocess.run([sys.executable, __file__, "run", name, str(path)], check=False)


if __name__ == "__main__":
    main()

"""Fair PCA of genotypes from a .bed file beside scikit-allel's PCA: seconds and peak memory.

Run ``python benchmarks/genotypes.py`` (needs bed-reader and scikit-allel; a quarter of an hour on
one core, 6 GB of memory). Each reads the same file of 2,000 simulated people and 200,000 variants
in a process of its own: GenotypePCA in batches, for ten components with the default criterion,
with min-max and without groups; scikit-allel's exact and randomized PCA of all variants at once.
Seconds are those of the processor, so that other work on the machine counts little.
"""

import multiprocessing
import resource
import sys
import tempfile
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fairpca import FairPCA
from fairpca.genotypes import GenotypePCA

SIZES = (1400, 400, 150, 50)
N_VARIANTS, N_COMPONENTS = 200_000, 10
LABELS = np.repeat(["a", "b", "c", "d"], SIZES)


def write(path: Path, n_variants: int) -> None:
    """A file of four populations, with one per cent of the calls missing."""
    rng = np.random.default_rng(0)
    calls = np.empty((sum(SIZES), n_variants), dtype=np.int8, order="F")
    for start in range(0, n_variants, 5000):
        some = slice(start, min(start + 5000, n_variants))
        width = some.stop - some.start
        p = rng.uniform(0.05, 0.95, width) + 0.05 * rng.normal(size=(len(SIZES), width))
        part = rng.binomial(2, np.repeat(np.clip(p, 0.01, 0.99), SIZES, axis=0)).astype(np.int8)
        part[rng.random(part.shape) < 0.01] = -127
        calls[:, some] = part
    import_module("bed_reader").to_bed(path, calls)


def fair(path: Path, **options: Any) -> None:
    """Fit in batches."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        GenotypePCA(FairPCA(N_COMPONENTS, **options)).fit(path, LABELS)


def allel(path: Path, name: str) -> None:
    """PCA of all variants at once, with missing calls as the mean."""
    calls = import_module("bed_reader").open_bed(path).read(dtype="float32").T
    means = np.nanmean(calls, axis=1)
    gaps = np.isnan(calls)
    calls[gaps] = np.repeat(means, gaps.sum(axis=1))
    getattr(import_module("allel"), name)(calls, n_components=N_COMPONENTS, copy=False)


WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "GenotypePCA, PCA": (fair, {"groups": None}),
    "GenotypePCA, minmax": (fair, {"criterion": "minmax"}),
    "GenotypePCA, soft": (fair, {}),
    "scikit-allel, randomized_pca": (allel, {"name": "randomized_pca"}),
    "scikit-allel, pca": (allel, {"name": "pca"}),
}


def _measured(path: Path, way: str, found: Any) -> None:
    run, options = WAYS[way]
    start = time.process_time()
    run(path, **options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found.put((time.process_time() - start, peak))


def main() -> None:
    """Print a table."""
    n_variants = int(sys.argv[1]) if len(sys.argv) > 1 else N_VARIANTS
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "people.bed")
        write(path, n_variants)
        print(f"{sum(SIZES):,} people, {n_variants:,} variants, {N_COMPONENTS} components")
        for way in WAYS:
            found: Any = context.Queue()
            process = context.Process(target=_measured, args=(path, way, found))
            process.start()
            process.join()
            if process.exitcode == 0:
                seconds, peak = found.get()
                print(f"{way:30} {seconds:7.1f} s of the processor, {peak:7,.0f} MB", flush=True)
            else:
                print(f"{way:30} did not finish", flush=True)


if __name__ == "__main__":
    main()

"""StochasticFairPCA on a million sparse rows of 200,000 columns, streamed from disk.

Run ``python -m studies.stochastic_large FOLDER`` to write the data into a folder (0.5 GB), fit,
and write studies/stochastic_large.md (half an hour). The rows are like texts: three languages, of
which one has 90 % of the rows and one 2 %, each with words and topics of its own.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

import numpy as np
import scipy.sparse

from fairpca import StochasticFairPCA
from fairpca._linalg.types import Array

TARGET = Path(__file__).with_name("stochastic_large.md")
N_WORDS, WORDS_A_ROW, TOPICS = 200_000, 40, 12
SHARES = {"large": 0.90, "middle": 0.08, "small": 0.02}
ROWS_A_FILE, N_FILES, N_HELD_OUT = 50_000, 20, 50_000
R, PASSES = 10, 5

PAGE = """# A million rows of 200,000 columns

Made by `python -m studies.stochastic_large`. Synthetic texts: {n:,} sparse rows with {words:,}
columns ({nnz:.0f} different words in a row), in {files} files of {size:.1f} GB in all. Three
languages have 90 %, 8 % and 2 % of the rows, each with its own words and {topics} topics. The
groups' covariances would take {dense:,.0f} GB.

`StochasticFairPCA({r}, batch_size={batch}, n_passes={passes})` read the files once to count the
groups, {passes} times to learn and once to sum up losses. That took {minutes:.0f} minutes on one
core, and at most {memory:.1f} GB of memory, the program included.

What {r} components keep of each group's variance, on {held:,} further rows that the fit never saw:

| group | rows | PCA | fair | own PCA |
|---|---|---|---|---|
{rows}

The worst group's share goes from {before:.1f} % to {after:.1f} %, that of all rows from
{all_before:.1f} % to {all_after:.1f} %. PCA and own PCA were learnt from the same mini-batches.

What the fit itself says:

    {said}
"""


class Files:
    """Rows of the files and their groups, read anew each time."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("part-*.npz"))

    def __iter__(self) -> Iterator[tuple[scipy.sparse.csr_matrix, Array]]:
        for path in self.paths:
            yield scipy.sparse.load_npz(path), np.load(path.with_suffix(".groups.npy"))


def main(folder: Path) -> None:
    """Write the data, fit, and write the page."""
    languages = make_languages(np.random.default_rng(0))
    if not (folder / f"part-{N_FILES - 1:02d}.npz").exists():
        for part in range(N_FILES):
            rows, groups = sample(languages, ROWS_A_FILE, np.random.default_rng([1, part]))
            scipy.sparse.save_npz(folder / f"part-{part:02d}.npz", rows, compressed=False)
            np.save(folder / f"part-{part:02d}.groups.npy", groups)
    files, began = Files(folder), time.perf_counter()
    fair = StochasticFairPCA(R, batch_size=8192, n_passes=PASSES)
    fair.fit_batches(files)
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    held, groups = sample(languages, N_HELD_OUT, np.random.default_rng(2))
    centre, lines, kept_of_all = fair.mean_, [], []
    for label in (*SHARES, None):
        rows = held if label is None else held[groups == label]
        total = variance(rows, centre)
        spaces = [fair.pca_components_, fair.components_]
        spaces += [] if label is None else [fair.own_components_[label]]
        kept = [
            100 * float(np.square(rows @ space.T - centre @ space.T).sum(axis=1).mean()) / total
            for space in spaces
        ]
        if label is None:
            kept_of_all = kept
        else:
            cells = " | ".join(f"{share:.1f} %" for share in kept)
            lines.append((kept, f"| {label} | {rows.shape[0]:,} | {cells} |"))
    size = sum(path.stat().st_size for path in files.paths) / 1e9
    TARGET.write_text(
        PAGE.format(
            n=ROWS_A_FILE * N_FILES,
            words=N_WORDS,
            nnz=held.nnz / held.shape[0],
            files=N_FILES,
            size=size,
            topics=TOPICS,
            dense=len(SHARES) * 8 * N_WORDS**2 / 1e9,
            r=R,
            batch=8192,
            passes=PASSES,
            minutes=seconds / 60,
            memory=memory,
            held=N_HELD_OUT,
            rows="\n".join(line for _, line in lines),
            before=min(kept[0] for kept, _ in lines),
            after=min(kept[1] for kept, _ in lines),
            all_before=kept_of_all[0],
            all_after=kept_of_all[1],
            said="\n    ".join(
                [*str(fair.group_table_).splitlines(), "", *wrap(str(fair.certificate_), 96)]
            ),
        ),
        encoding="utf-8",
    )
    print(TARGET.read_text(encoding="utf-8"))


def variance(rows: scipy.sparse.csr_matrix, centre: Array) -> float:
    """Mean squared distance of rows from a point."""
    squares = rows.multiply(rows).sum() / rows.shape[0]
    mean = np.asarray(rows.mean(axis=0)).ravel()
    return float(squares - 2 * mean @ centre + centre @ centre)


def make_languages(rng: np.random.Generator) -> dict[str, list[Array]]:
    """For each language, cumulative chances of words in each of its topics."""
    languages = {}
    for i, label in enumerate(SHARES):
        words = np.zeros(N_WORDS)
        # Words of its own, and some that all languages have, by Zipf's law.
        own = rng.permutation(np.arange(i, N_WORDS, len(SHARES)))
        words[own] = 1.0 / np.arange(10, len(own) + 10)
        topics = []
        for _ in range(TOPICS):
            chances = words.copy()
            chances[rng.choice(own[:3000], 60, replace=False)] += 0.05
            topics.append(np.cumsum(chances / chances.sum()))
        languages[label] = topics
    return languages


def sample(
    languages: dict[str, list[Array]], n: int, rng: np.random.Generator
) -> tuple[scipy.sparse.csr_matrix, Array]:
    """Rows of words, counted and divided by the row's length, and their groups."""
    labels = np.array(list(SHARES))
    groups = labels[rng.choice(len(labels), n, p=list(SHARES.values()))]
    words = np.empty((n, WORDS_A_ROW), dtype=np.int64)
    topic = rng.integers(0, TOPICS, n)
    for label in labels:
        for t in range(TOPICS):
            some = np.flatnonzero((groups == label) & (topic == t))
            drawn = rng.random((len(some), WORDS_A_ROW))
            words[some] = np.searchsorted(languages[str(label)][t], drawn)
    words = np.minimum(words, N_WORDS - 1)
    starts = np.arange(0, n * WORDS_A_ROW + 1, WORDS_A_ROW)
    ones = np.ones(words.size)
    rows = scipy.sparse.csr_matrix((ones, words.ravel(), starts), shape=(n, N_WORDS))
    rows.sum_duplicates()
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scaled: scipy.sparse.csr_matrix = scipy.sparse.diags(1.0 / lengths) @ rows
    return scaled.tocsr(), groups


if __name__ == "__main__":
    main(Path(sys.argv[1]))

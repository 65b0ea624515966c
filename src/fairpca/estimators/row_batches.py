"""Mini-batches of rows, with a block for each group: of an array, or as a stream brings them.

Half of a batch of an array is drawn in proportion to the groups, for the total loss, and half in
equal parts, because what is said of small groups would be noise otherwise. Each group is drawn
without replacement, in an order that is new each time it has been through.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.backends import device_library, namespace
from fairpca._linalg.types import Array
from fairpca._rows.groups import Codes
from fairpca._rows.labels import check_number_of_groups, sorted_labels

Batch = tuple[list[Any], list[bool]]
"""A block of rows for each group, and whether it has all rows of the group."""

N_PARTS = 4
"""Parts of the rows that are held out: six pairs, of which products are averaged."""

MOST_HELD_OUT = 1000
"""The most rows of a group that are held out."""

_BLOCK_VALUES = 2**22
"""Numbers that a stream keeps of the rows of a group, and that are taken at once: 32 MB."""


class ArrayBatches:
    """Batches of rows in memory.

    Parameters
    ----------
    rows : array, CSR matrix or device array of shape (n, d)
    codes : integer array of shape (n,)
        The group of each row; others than 0 to k - 1 are left out.
    k : int
        Number of groups.
    size : int
        Rows of a batch.
    held_out : float
        Share of each group's rows that no batch has.
    rng : numpy.random.Generator
    """

    def __init__(
        self, rows: Any, codes: Codes, k: int, size: int, held_out: float, rng: np.random.Generator
    ) -> None:
        self._rows, self._rng = rows, rng
        members = [np.flatnonzero(codes == i) for i in range(k)]
        self.counts = np.array([len(some) for some in members])
        self.shares: Array = self.counts / self.counts.sum()
        aside = [_n_held_out(len(some), held_out) for some in members]
        mixed = [rng.permutation(some) for some in members]
        self._orders = [some[n:] for some, n in zip(mixed, aside, strict=True)]
        left = np.array([len(some) for some in self._orders])
        sizes = np.rint(size * (self.shares + 1.0 / k) / 2.0).astype(int)
        self._sizes = np.clip(sizes, 1, left)
        self._at = np.zeros(k, dtype=int)
        kept = [rows[some[:n]] if n else None for some, n in zip(mixed, aside, strict=True)]
        self.parts = [
            [None if own is None else as_double(own[p::N_PARTS]) for own in kept]
            for p in range(N_PARTS if any(aside) else 0)
        ]

    def one_pass(self) -> Iterator[Batch]:
        """Batches with as many rows in all as there are."""
        for _ in range(max(round(self.counts.sum() / self._sizes.sum()), 1)):
            yield [self._block(i) for i in range(len(self._sizes))], self._whole

    @property
    def _whole(self) -> list[bool]:
        return [size == len(some) for size, some in zip(self._sizes, self._orders, strict=True)]

    def _block(self, i: int) -> Any:
        size, order = self._sizes[i], self._orders[i]
        if self._at[i] + size > len(order):
            self._orders[i] = order = self._rng.permutation(order)
            self._at[i] = 0
        chosen = order[self._at[i] : self._at[i] + size]
        self._at[i] += size
        return as_double(self._rows[chosen])


class StreamBatches:
    """Batches of chunks of rows as they come; what is kept between chunks is bounded.

    A group that a batch has no rows of takes part by rows of it that came before, so that groups
    may come one after another. Rows are held out by their place in the stream, so they are the same
    in each pass over the same stream.

    Parameters
    ----------
    size : int
        Rows of a batch.
    held_out : float
        Share of rows that no batch has.
    seed : int
    """

    def __init__(self, size: int, held_out: float, seed: int) -> None:
        self._size, self._held_out, self._seed = size, held_out, seed
        self.labels: list[Hashable] = []
        self.counts = np.zeros(0, dtype=np.int64)
        self._kept: list[Any] = []
        self._aside: list[list[Any]] = []
        self._n_aside = np.zeros(0, dtype=np.int64)
        self._chunks = self._passes = 0

    @property
    def shares(self) -> Array:
        """Part of the rows that each group has."""
        shares: Array = self.counts / self.counts.sum()
        return shares

    @property
    def order(self) -> list[int]:
        """Positions of the groups in the order of their labels."""
        return [self.labels.index(label) for label in sorted_labels(self.labels)]

    def begin_pass(self) -> None:
        """Go back to the beginning of the stream."""
        self._passes += 1
        self._chunks, self._n_aside = 0, np.zeros_like(self._n_aside)

    @property
    def _first_pass(self) -> bool:
        return self._passes <= 1

    def codes(self, labels: Sequence[Hashable], codes: Codes) -> tuple[Codes, int]:
        """Positions of groups among those of the stream, and how many groups are new."""
        new = [label for label in labels if label not in self.labels]
        self.labels += new
        check_number_of_groups(len(self.labels))
        self.counts = np.append(self.counts, np.zeros(len(new), dtype=np.int64))
        self._n_aside = np.append(self._n_aside, np.zeros(len(new), dtype=np.int64))
        self._kept += [None] * len(new)
        self._aside += [[] for _ in new]
        place = np.array([self.labels.index(label) for label in labels], dtype=np.int64)
        return place[codes], len(new)

    def cut(self, rows: Any, codes: Codes) -> Iterator[Batch]:
        """The batches of a chunk, whose rows have these codes."""
        rng = np.random.default_rng([self._seed, self._chunks])
        self._chunks += 1
        if self._first_pass:
            self.counts = self.counts + np.bincount(codes, minlength=len(self.labels))
        used = self._hold_out(rows, codes, rng)
        # The order may differ from pass to pass; which rows are held out may not.
        rng = np.random.default_rng([self._seed, self._chunks, self._passes])
        used = rng.permutation(used)
        for start in range(0, len(used), self._size):
            some = used[start : start + self._size]
            blocks: list[Any] = []
            for i in range(len(self.labels)):
                own = some[codes[some] == i]
                if len(own):
                    blocks.append(as_double(rows[own]))
                    self._keep(i, blocks[-1])
                else:
                    blocks.append(self._kept[i])
            if all(block is not None for block in blocks):
                yield blocks, [False] * len(blocks)

    @property
    def parts(self) -> list[list[Any]]:
        """The rows that are held out, in parts with a block for each group, or None."""
        if not any(self._aside):
            return []
        return [
            [_stacked(rows[p::N_PARTS]) if len(rows) >= N_PARTS else None for rows in self._aside]
            for p in range(N_PARTS)
        ]

    def _hold_out(self, rows: Any, codes: Codes, rng: np.random.Generator) -> NDArray[np.int64]:
        """Put some rows aside; returns the positions of the others."""
        chosen = rng.random(len(codes)) < self._held_out
        # The first rows of a group are needed to begin with.
        for i in np.unique(codes[chosen]):
            own = np.flatnonzero(chosen & (codes == i))
            room = min(rows_at_once(rows), MOST_HELD_OUT) - int(self._n_aside[i])
            chosen[own[max(room, 0) :]] = False
            own = own[: max(room, 0)]
            self._n_aside[i] += len(own)
            if self._first_pass:
                self._aside[i] += [as_double(rows[j : j + 1]) for j in own]
        return np.flatnonzero(~chosen)

    def _keep(self, i: int, block: Any) -> None:
        if self._kept[i] is None or block.shape[0] >= min(self._kept[i].shape[0], self._size // 2):
            self._kept[i] = block[: rows_at_once(block)]


def _n_held_out(n: int, share: float) -> int:
    """Rows of a group to hold out: one for each part, or none."""
    wanted = min(int(share * n), MOST_HELD_OUT)
    return wanted if wanted >= N_PARTS else 0


def rows_at_once(rows: Any) -> int:
    """How many rows hold so many numbers that a stream may keep them, or take them at once."""
    per_row = rows.nnz / max(rows.shape[0], 1) if hasattr(rows, "tocsr") else rows.shape[1]
    return max(int(_BLOCK_VALUES // max(per_row, 1)), 1)


def as_double(rows: Any) -> Any:
    """Rows in double precision."""
    return rows.double() if hasattr(rows, "double") else rows.astype(np.float64, copy=False)


def _stacked(rows: list[Any]) -> Any:
    """Rows one below another."""
    if hasattr(rows[0], "tocsr"):
        return scipy.sparse.vstack(rows, format="csr")
    on_device = device_library(rows[0]) is not None
    return namespace(rows[0]).concat(rows) if on_device else np.concatenate(rows)

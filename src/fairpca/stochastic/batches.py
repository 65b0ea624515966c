"""Mini-batches of rows, with a block for each group: of an array, or as a stream brings them.

Half of a batch of an array is drawn in proportion to the groups, for the total loss, and half in
equal parts, because what is said of small groups would be noise otherwise. Each group is drawn
without replacement, in an order that is new each time it has been through.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.backends import device_library, namespace
from fairpca._linalg.types import Array
from fairpca.groups import Codes, check_number_of_groups
from fairpca.stochastic.tracked import AGAIN, PART, WHOLE

Batch = tuple[list[Any], list[str]]
"""A block of rows for each group, and what it is: see `fairpca.stochastic.tracked.PART`."""

N_PARTS = 4
"""Parts of the rows that are held out: six pairs, of which products are averaged."""

MOST_HELD_OUT = 1000
"""The most rows of a group that are held out."""

_FIRST_ROWS = 20
"""The first rows of a group, which a stream does not hold out."""

_MOST_BLOCKS = 32
"""The most blocks of a group that a stream keeps."""

_BLOCK_VALUES = 2**22
"""Numbers that a stream keeps of the rows of a group, and that are taken at once: 32 MB."""


class ArrayBatches:
    """Batches of rows in memory.

    Parameters
    ----------
    rows : array, CSR matrix or device array of shape (n, d)
    codes : integer array of shape (n,)
        The group of each row.
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
        self.is_uneven = False
        self._orders, held = [], []
        for i in range(k):
            mixed = rng.permutation(np.flatnonzero(codes == i))
            n = min(int(held_out * len(mixed)), MOST_HELD_OUT)
            n = n if n >= N_PARTS else 0  # one for each part, or none
            self._orders.append(mixed[n:])
            held.append(as_double(rows[mixed[:n]]) if n else None)
        self.parts = [
            [None if own is None else own[p::N_PARTS] for own in held]
            for p in range(N_PARTS if any(own is not None for own in held) else 0)
        ]
        self.counts = np.bincount(codes, minlength=k)
        self.shares: Array = self.counts / self.counts.sum()
        sizes = np.rint(size * (self.shares + 1.0 / k) / 2.0).astype(int)
        self._sizes = np.clip(sizes, 1, [len(order) for order in self._orders])
        self._at = np.zeros(k, dtype=int)

    def one_pass(self) -> Iterator[Batch]:
        """Batches with as many rows in all as there are."""
        sizes = zip(self._sizes, self._orders, strict=True)
        kinds = [WHOLE if size == len(order) else PART for size, order in sizes]
        for _ in range(max(round(self.counts.sum() / self._sizes.sum()), 1)):
            yield [self._block(i) for i in range(len(kinds))], kinds

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
    may come one after another; `is_uneven` says whether that, or a late group, has been seen. Rows
    are held out by their place in the stream, so they are the same in each pass over it.

    Parameters
    ----------
    size : int
        Rows of a batch.
    held_out : float
        Share of rows that no batch has.
    seed : int
    grouped : bool
        Whether rows come with sensitive features.
    """

    def __init__(self, size: int, held_out: float, seed: int, *, grouped: bool = True) -> None:
        self._size, self._held_out, self._seed = size, held_out, seed
        self.grouped, self.n_dropped, self.is_uneven = grouped, 0, False
        self.labels: list[Hashable] = []
        self._groups: list[_StreamedGroup] = []
        self._chunk_sizes: list[int] = []
        self._chunks = self._passes = 0

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each group."""
        return np.array([group.count for group in self._groups], dtype=np.int64)

    @property
    def shares(self) -> Array:
        """Part of the rows that each group has."""
        return np.asarray(self.counts / self.counts.sum())

    def begin_pass(self) -> None:
        """Go back to the beginning of the stream."""
        self._passes += 1
        self._chunks = 0
        for group in self._groups:
            group.n_seen = group.n_aside = 0

    @property
    def is_first_pass(self) -> bool:
        """Whether rows come for the first time."""
        return self._passes <= 1

    def codes(self, labels: Sequence[Hashable], codes: Codes) -> tuple[Codes, int]:
        """Positions of groups among those of the stream, and how many groups are new."""
        new = [label for label in labels if label not in self.labels]
        self.is_uneven = self.is_uneven or bool(new and self.labels)
        self.labels += new
        check_number_of_groups(len(self.labels))
        self._groups += [_StreamedGroup() for _ in new]
        place = np.array([self.labels.index(label) for label in labels], dtype=np.int64)
        return place[codes], len(new)

    def cut(self, rows: Any, codes: Codes) -> Iterator[Batch]:
        """The batches of a chunk, whose rows have these codes."""
        if self.is_first_pass:
            self._chunk_sizes.append(len(codes))
            for group, n in zip(self._groups, np.bincount(codes).tolist(), strict=False):
                group.count += n
        elif self._chunk_sizes[self._chunks : self._chunks + 1] != [len(codes)]:
            raise ValueError(
                "The chunks of this pass are not those of the first: give them in the same order "
                "each time, or rows that are held out would be learnt from."
            )
        used = self._hold_out(rows, codes)
        # The order may differ from pass to pass; which rows are held out may not.
        rng = np.random.default_rng([self._seed, self._chunks, self._passes])
        self._chunks += 1
        used = rng.permutation(used)
        # One row of each group that has had none yet comes first.
        own = codes[used]
        new = [int(np.argmax(own == i)) for i in np.unique(own) if not self._groups[i].kept]
        used = np.concatenate([used[new], np.delete(used, new)])
        for start in range(0, len(used), self._size):
            some = used[start : start + self._size]
            blocks: list[Any] = []
            kinds: list[str] = []
            for i, group in enumerate(self._groups):
                own = some[codes[some] == i]
                if len(own):
                    blocks.append(as_double(rows[own]))
                    group.keep(blocks[-1], rng)
                else:
                    blocks.append(group.kept[rng.integers(len(group.kept))])
                kinds.append(PART if len(own) else AGAIN)
            self.is_uneven = self.is_uneven or AGAIN in kinds
            yield blocks, kinds

    @property
    def parts(self) -> list[list[Any]]:
        """The rows that are held out, in parts with a block for each group, or None."""
        aside = [group.aside for group in self._groups]
        if not any(aside):
            return []
        return [
            [_stacked(rows[p::N_PARTS]) if len(rows) >= N_PARTS else None for rows in aside]
            for p in range(N_PARTS)
        ]

    def _hold_out(self, rows: Any, codes: Codes) -> NDArray[np.int64]:
        """Put some rows aside; returns the positions of the others."""
        rng = np.random.default_rng([self._seed, self._chunks])
        chosen = rng.random(len(codes)) < self._held_out
        for i in np.unique(codes):
            group, members = self._groups[i], np.flatnonzero(codes == i)
            # Its first rows are there to learn from.
            chosen[members[: max(_FIRST_ROWS - group.n_seen, 0)]] = False
            group.n_seen += len(members)
            own = members[chosen[members]]
            room = max(min(rows_at_once(rows), MOST_HELD_OUT) - group.n_aside, 0)
            chosen[own[room:]] = False
            group.n_aside += len(own[:room])
            if self.is_first_pass:
                group.aside += [as_double(rows[j : j + 1]) for j in own[:room]]
        return np.flatnonzero(~chosen)


@dataclass
class _StreamedGroup:
    """What a stream knows of a group.

    Attributes
    ----------
    count : int
        Its rows.
    n_seen, n_aside : int
        Rows of this pass so far, and how many of these are held out.
    aside : list
        The rows that are held out.
    kept, n_blocks : list and int
        Some blocks of its rows, of as many that came.
    """

    count: int = 0
    n_seen: int = 0
    n_aside: int = 0
    aside: list[Any] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    n_blocks: int = 0

    def keep(self, block: Any, rng: np.random.Generator) -> None:
        """Keep some blocks, of which each that came had the same chance."""
        most = rows_at_once(block)
        self.n_blocks += 1
        if len(self.kept) < min(max(most // block.shape[0], 1), _MOST_BLOCKS):
            self.kept.append(block[:most])
        elif (place := rng.integers(self.n_blocks)) < len(self.kept):
            self.kept[place] = block[:most]


def rows_at_once(rows: Any) -> int:
    """How many rows hold this many numbers that a stream may keep them, or take them at once."""
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

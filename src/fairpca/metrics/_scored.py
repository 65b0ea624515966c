"""Rows that are scored: their groups, and how far each lies from its reconstruction."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from fairpca._linalg.types import Array
from fairpca._rows.checks import check_rows
from fairpca._rows.groups import encode_groups
from fairpca._rows.labels import overlapping
from fairpca._rows.text import label_text, listed
from fairpca.exceptions import warn_user
from fairpca.inspection.audit import squared_errors

FEW_ROWS = 10
"""Groups with fewer rows are scored together: of so few, even normal errors in one direction have
a mean square that is off by sqrt(2 / 10), nearly half of it, so the worst group would be chance."""

_NO_VARIANCE = 1e-12
"""Variance of a group, relative to the largest one, that is rounding: nothing of it can be lost."""

_BLOCK_VALUES = 2**22
"""Numbers that are centred at once: 32 MB."""

_MOST_NAMES = 5
"""How many groups a message lists."""


@dataclass(frozen=True, eq=False)
class ScoredGroups:
    """Groups of rows, small ones as one.

    Attributes
    ----------
    labels : tuple of length k
        The groups that have rows, before small ones are put together.
    texts : tuple of length at most k
        What the groups are called that are scored.
    count : integer array
        Rows of each with a positive weight.
    weights : CSR matrix with a row for each of these groups
        Weight of each row of X in the group.
    """

    labels: tuple[Hashable, ...]
    texts: tuple[str, ...]
    count: NDArray[np.int64]
    weights: Any

    @classmethod
    def of_rows(
        cls, reduction: Any, given: Any, n: int, sample_weight: Array | None
    ) -> ScoredGroups:
        """The groups that a reduction is for, with these sensitive features."""
        groups = encode_groups(given, n, getattr(reduction, "missing_labels", "error"))
        weights = groups.weights(np.ones(n) if sample_weight is None else sample_weight)
        kept = np.flatnonzero(weights > 0.0)
        shape = (len(groups.labels), n)
        matrix = scipy.sparse.csr_array((weights[kept], (groups.codes[kept], kept)), shape=shape)
        kind = getattr(reduction, "groups", None) or "intersections"
        labels, parts = overlapping(groups.labels, kind, groups.orders)
        if parts is not None:
            matrix = scipy.sparse.csr_array(parts.astype(np.float64)) @ matrix
        matrix.sort_indices()
        count = np.diff(matrix.indptr)
        there = np.flatnonzero(count)
        if len(there) == 0:
            raise ValueError("There are no rows to score: none has a label and a positive weight.")
        names = tuple(labels[i] for i in there)
        texts = tuple(label_text(label, groups.names) for label in names)
        return cls(names, texts, count[there], matrix[there])._small_as_one()

    def _small_as_one(self) -> ScoredGroups:
        small = self.count < FEW_ROWS
        if not small.any():
            return self
        names = [self.texts[i] for i in np.flatnonzero(small)]
        what = f"Fewer than {FEW_ROWS} rows to score in"
        if len(names) == 1:
            warn_user(f"{what} the group {names[0]!r}: what it loses on them is mostly chance.")
            return self
        groups = listed(names, _MOST_NAMES)
        warn_user(f"{what} each of the groups {groups}: they are scored as one group.")
        # A row that is in several of them, as in overlapping groups, counts once.
        union = self.weights[np.flatnonzero(small)].max(axis=0).toarray().reshape(1, -1)
        rest = self.weights[np.flatnonzero(~small)]
        weights = scipy.sparse.vstack([rest, scipy.sparse.csr_array(union)], format="csr")
        texts = tuple(self.texts[i] for i in np.flatnonzero(~small))
        texts = (*texts, f"{len(names)} small groups together")
        return ScoredGroups(self.labels, texts, np.diff(weights.indptr), weights)

    def held_out(self, rows: NDArray[np.bool_]) -> ScoredGroups:
        """The same groups with some of the rows only."""
        weights = scipy.sparse.csr_array(self.weights.multiply(rows[None, :]))
        weights.eliminate_zeros()
        weights.sort_indices()
        return ScoredGroups(self.labels, self.texts, np.diff(weights.indptr), weights)

    def only(self, there: NDArray[np.intp]) -> ScoredGroups:
        """Some of the groups."""
        texts = tuple(self.texts[i] for i in there)
        return ScoredGroups(self.labels, texts, self.count[there], self.weights[there])

    def members(self, group: int) -> tuple[NDArray[np.integer[Any]], Array]:
        """The rows of a group, in order, and their weights."""
        part = slice(*self.weights.indptr[group : group + 2])
        return self.weights.indices[part], self.weights.data[part]

    def lost(self, errors: Array, distances: Array, *, relative: bool) -> Array:
        """What each group loses, on average or as a share of its variance; (k,)."""
        lost, variance = self.weights @ errors, self.weights @ distances
        if not relative:
            return np.asarray(lost / self.weights.sum(axis=1))
        some = variance > _NO_VARIANCE * variance.max(initial=0.0)
        return np.asarray(np.divide(lost, variance, where=some, out=np.zeros_like(lost)))


def row_errors(reduction: Any, X: Any, weights: Array | None = None) -> tuple[Array, Array]:
    """Squared distances of rows from their reconstructions and from the fitted mean; (n,) each.

    A reduction without a mean gets that of these rows.
    """
    rows = check_rows(X)
    # Sparse rows that have been checked are in a format that can be cut.
    errors, _ = squared_errors(reduction, rows if scipy.sparse.issparse(X) else X, rows)
    center = getattr(reduction, "mean_", None)
    if center is None:
        portions = np.ones(rows.shape[0]) if weights is None else weights
        center = portions @ rows / portions.sum()
    distances = np.empty(rows.shape[0])
    for part, block in centred_blocks(rows, center):
        distances[part] = np.square(block).sum(axis=1)
    return errors, distances


def centred_blocks(rows: Any, center: Array, *, whole: bool = False) -> Iterator[tuple[Any, Array]]:
    """Parts of rows, or all of them as one, as slices and as dense arrays about a centre."""
    size = rows.shape[0] if whole else _BLOCK_VALUES // rows.shape[1]
    for part in gen_batches(rows.shape[0], max(1, size)):
        block = rows[part]
        yield part, (block.toarray() if scipy.sparse.issparse(block) else block) - center

"""What groups keep in the last few subspaces that were asked for: most are asked for again."""

import numpy as np

from fairpca._linalg.types import Array, GroupMatrices

_REMEMBERED = 2
"""Subspaces: that of ordinary PCA and the one that is judged."""


class ProjectionCache:
    """What each group keeps in a subspace, remembered by the numbers of its basis."""

    def __init__(self, matrices: GroupMatrices) -> None:
        self._matrices = matrices
        self._last: tuple[tuple[Array, Array], ...] = ()

    def __call__(self, basis: Array, retention: Array | None = None) -> Array:
        """Return ``tr(A_i P)`` for each group, as `Problem.kept` has it; (k,)."""
        if retention is not None:
            return self._matrices.kept(basis, basis * retention)
        for known, kept in self._last:
            if np.array_equal(known, basis):
                return kept.copy()
        # A copy has one order in memory, so that the same numbers keep the same to the last digit.
        known = np.array(basis, order="C")
        kept = self._matrices.kept(known, known)
        self._last = ((known, kept.copy()), *self._last)[:_REMEMBERED]
        return kept

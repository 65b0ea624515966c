"""Projection: what `transform` does to checked rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import gen_batches

from fairpca._linalg.backends import to_device
from fairpca._linalg.types import Array

_BLOCK_VALUES = 2**17
"""Values that are projected together: their copy in double precision stays in the cache."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Rows minus `mean`, on `components`, times `factors`; small enough to be sent to the rows."""

    components: Array
    mean: Array
    factors: Array | None

    def __call__(self, rows: Any) -> Array:
        """The reduced rows."""
        n, d = rows.shape
        # Sparse rows make no copy, nor do rows in double precision.
        whole = scipy.sparse.issparse(rows) or rows.dtype == np.float64
        reduced: Array = np.empty((n, len(self.components)), rows.dtype)
        for part in gen_batches(n, max(n if whole else _BLOCK_VALUES // d, 1)):
            # Two products instead of centred rows: no centred copy, and sparse rows stay sparse.
            scores = rows[part] @ self.components.T
            scores -= self.mean @ self.components.T
            if self.factors is not None:
                scores *= self.factors
            reduced[part] = scores
        return reduced

    def on_device(self, rows: Any) -> Any:
        """The same for rows on a device."""
        components = to_device(self.components.T, rows)
        scores = rows @ components - to_device(self.mean @ self.components.T, rows)
        return scores if self.factors is None else scores * to_device(self.factors, rows)

"""Projection: what `transform` does to checked rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from fairpca._linalg.backends import to_device
from fairpca._linalg.dense import BLOCK_VALUES
from fairpca._linalg.types import Array

_BLOCK_VALUES = 2**17
"""Values that are projected together: their copy in double precision stays in the cache."""

_DETERMINED = 1e-10
"""Share of a direction's squared length that lies in the columns of a row that are there, below
which they say nothing of it."""


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
        step = max(n if whole else _BLOCK_VALUES // d, 1)
        for begin in range(0, n, step):  # a partition of a cluster may have no rows at all
            part = slice(begin, begin + step)
            # Two products instead of centred rows: no centred copy, and sparse rows stay sparse.
            scores = rows[part] @ self.components.T
            scores -= self.mean @ self.components.T
            if self.factors is not None:
                scores *= self.factors
            reduced[part] = scores
        return reduced

    def least_squares(self, rows: Any) -> Array:
        """The same for rows with missing values: what fits the values that are there best.

        Of all scores that fit them equally well, the smallest: a row without any value gets zeros.
        """
        reduced = np.empty((rows.shape[0], len(self.components)), dtype=rows.dtype)
        step = max(1, BLOCK_VALUES // rows.shape[1])
        for begin in range(0, rows.shape[0], step):
            part = slice(begin, begin + step)
            reduced[part] = self._fitted(rows[part])
        return reduced

    def _fitted(self, rows: Any) -> Array:
        known, gaps = without_gaps(rows)
        if gaps.nnz == 0:
            return self(rows)
        axes = self.components
        scores = known @ axes.T - self.mean @ axes.T + gaps @ (self.mean * axes).T
        some = np.flatnonzero(np.diff(gaps.indptr))
        products = axes @ axes.T - missing_products(gaps[some], axes)
        scores[some] = least_squares(products, scores[some])
        return np.asarray(scores if self.factors is None else scores * self.factors)

    def on_device(self, rows: Any) -> Any:
        """The same for rows on a device."""
        components = to_device(self.components.T, rows)
        scores = rows @ components - to_device(self.mean @ self.components.T, rows)
        return scores if self.factors is None else scores * to_device(self.factors, rows)


def without_gaps(rows: Any) -> tuple[Any, Any]:
    """A copy with zeros in the place of missing values, and a CSR matrix with ones there."""
    sparse = scipy.sparse.issparse(rows)
    known = rows.copy()
    values = known.data if sparse else known
    missing = np.isnan(values)
    values[missing] = 0.0
    if not sparse:
        return known, scipy.sparse.csr_matrix(missing, dtype=np.float64)
    parts = missing.astype(np.float64), rows.indices, rows.indptr
    gaps = scipy.sparse.csr_matrix(parts, shape=rows.shape, copy=True)
    gaps.eliminate_zeros()
    return known, gaps


def missing_products(gaps: Any, axes: Array) -> Array:
    """The axes' products with each other over the columns that a row lacks; (n, r, r)."""
    return np.stack([gaps @ (axis * axes).T for axis in axes], axis=1)


def least_squares(products: Array, right: Array) -> Array:
    """The smallest solution for each row of a system with its own positive semidefinite matrix."""
    values, turns = np.linalg.eigh(products)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > _DETERMINED)
    turned = np.einsum("nij,ni->nj", turns, right) * inverse
    return np.asarray(np.einsum("nij,nj->ni", turns, turned))

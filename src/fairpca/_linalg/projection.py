"""Projection: what `transform` does to checked rows."""

from dataclasses import dataclass
from typing import Any

from fairpca._linalg.backends import to_device
from fairpca._linalg.types import Array


@dataclass(frozen=True, eq=False)
class Projection:
    """Rows minus `mean`, on `components`, times `factors`; small enough to be sent to the rows."""

    components: Array
    mean: Array
    factors: Array | None

    def __call__(self, rows: Any) -> Array:
        """The reduced rows."""
        # Two products instead of centred rows: no centred copy, and sparse rows stay sparse.
        scores = rows @ self.components.T - self.mean @ self.components.T
        if self.factors is not None:
            scores *= self.factors
        reduced: Array = scores.astype(rows.dtype, copy=False)
        return reduced

    def on_device(self, rows: Any) -> Any:
        """The same for rows on a device."""
        components = to_device(self.components.T, rows)
        scores = rows @ components - to_device(self.mean @ self.components.T, rows)
        return scores if self.factors is None else scores * to_device(self.factors, rows)

"""Projection: what `transform` does to checked rows."""

from dataclasses import dataclass
from typing import Any

from fairpca._linalg.backends import to_device
from fairpca._linalg.types import Array


@dataclass(frozen=True, eq=False)
class Projection:
    """Rows minus `mean`, on `components`; little enough to be sent to where rows are."""

    components: Array
    mean: Array
    shrinkage: Array | None

    def __call__(self, rows: Any) -> Array:
        """The reduced rows."""
        # Two products instead of centred rows: no centred copy, and sparse rows stay sparse.
        scores = rows @ self.components.T - self.mean @ self.components.T
        if self.shrinkage is not None:
            scores *= self.shrinkage
        reduced: Array = scores.astype(rows.dtype, copy=False)
        return reduced

    def on_device(self, rows: Any) -> Any:
        """The same for rows on a device."""
        components = to_device(self.components.T, rows)
        scores = rows @ components - to_device(self.mean @ self.components.T, rows)
        return scores if self.shrinkage is None else scores * to_device(self.shrinkage, rows)

"""BoundCache: bounds on leading sums of eigenvalues that need not be proven twice."""

from dataclasses import dataclass, field

import numpy as np

from fairpca._linalg.types import Array

_SAME_WEIGHTS = 1e-14
"""Difference between weights, relative to what they weigh, at which they share a proof."""


@dataclass(frozen=True, eq=False)
class BoundCache:
    """The most that weighted sums of the matrices can keep, as far as it has been proven.

    With many columns a proof is expensive. A solver that needs the bounds of several subspaces, or
    of the same multipliers at several tolerances, passes one of these to `Problem.dual_bound`,
    which looks there first and adds what it proves.
    """

    _known: list[tuple[Array, float]] = field(default_factory=list)

    def add(self, weights: Array, bound: float) -> None:
        """Remember a bound."""
        self._known.append((weights.copy(), bound))

    def find(self, weights: Array, traces: Array) -> float | None:
        """The bound for these weights, or for others that differ by rounding only."""
        for proven, bound in self._known:
            # No group keeps more than its trace, so that nearby weights share a proof.
            apart = float(np.abs(weights - proven) @ traces)
            if apart <= _SAME_WEIGHTS * float(np.abs(weights) @ traces):
                return bound + apart
        return None

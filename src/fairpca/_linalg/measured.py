"""Measured: what fairness is judged by, as an affine function of what each group keeps."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairpca._linalg.types import Array

_NO_VARIANCE = 1e-30
"""Variance of a group, relative to the largest one, that is none: it has no shares."""

EPS = float(np.finfo(float).eps)

_ROUNDING = 16 * EPS
"""Error of a sum of eigenvalues, relative to the trace."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The measures ``e_i = constants_i - kept_i / units_i`` of groups.

    Attributes
    ----------
    constants, units : arrays of shape (k,)
        c_i / s_i and s_i.
    weights : array of shape (k,)
        What the measures are multiplied with in the total loss, ``base + weights . e``.
    traces : array of shape (k,)
        Traces of the matrices ``A_i / s_i``.
    base : float
        See `weights`.
    offsets : array of shape (k,)
        What is subtracted from losses over units to get the measures.
    scale : float
        What tolerances are relative to: tr(A) where the units are 1.
    errors : array of shape (k,)
        How much larger the constants can be.
    floor : array of shape (k,)
        No subspace has a smaller measure of each group.
    """

    constants: Array
    units: Array
    weights: Array
    traces: Array
    base: float
    scale: float
    errors: Array
    floor: Array
    offsets: Array

    def of_losses(self, losses: Array) -> Array:
        """The measures of groups that lose so much."""
        return losses / self.units - self.offsets

    def values(self, kept: Array) -> Array:
        """The measures of groups that keep so much."""
        return self.constants - kept / self.units

    def doubt(self, coefficients: Array) -> float:
        """How far ``coefficients . e`` can be below what it is with these constants."""
        return float(np.maximum(-coefficients, 0.0) @ self.errors)

    def split(self, weights: Array) -> tuple[Array, float]:
        """Non-negative weights, as those of a point of the simplex and a price times `weights`."""
        size = float(weights.sum())
        price = max(size - 1.0, 0.0) / float(self.weights.sum())
        rest = np.maximum(weights - price * self.weights, 0.0)
        # The price of something that is all price leaves the simplex nothing but rounding.
        point = rest if rest.sum() > 0.0 else np.ones(len(weights))
        return point / point.sum(), price

    @cached_property
    def loss_unit(self) -> float:
        """What searches divide the total loss by, so that it has the unit of the measures."""
        return float(self.weights.sum() / (self.weights / self.units).sum())

    @cached_property
    def loss_weights(self) -> Array:
        """The weights in those units: of the size of 1, whatever the unit of the rows."""
        weights: Array = self.weights / self.loss_unit
        return weights

    @cached_property
    def sizes(self) -> Array:
        """What rounding errors of the measures are relative to; (k,)."""
        return np.maximum(self.traces, np.abs(self.constants))

    @cached_property
    def least(self) -> float:
        """In every subspace some measure is at least this large."""
        return float(self.floor.max())


def measured(
    measure: str,
    relative: bool,
    traces: Array,
    own_gains: Array,
    own_errors: Array,
    weights: Array,
    given: tuple[Array, Array] | None = None,
    lost: tuple[Array, Array] | None = None,
) -> Measured:
    """The measures that a name stands for, or with `given` constants c_i and units s_i.

    `lost` is given where losses are far smaller than traces: those in the groups' own subspaces,
    more exact than the difference of traces and gains, and those with ordinary PCA.
    """
    k = len(traces)
    some = traces > _NO_VARIANCE * float(traces.max(initial=0.0))
    units = np.where(some, traces, 1.0) if relative else np.ones(k)
    # A group without variance keeps nothing whatever is done: it must not be the worst off.
    nothing = np.where(some, 0.0, -float((traces / units).max(initial=0.0)))
    constants = {"disparity": own_gains, "loss": traces, "variance": nothing}[measure]
    if given is not None:
        constants, units = given
    plain = measure == "disparity" and given is None
    offsets = traces - constants
    scale = float(weights @ (traces / units))
    if lost is not None:
        offsets = lost[0] if plain else offsets
        # Where nobody loses anything, what rounding makes of the variance is left.
        scale = max(float((lost[1] / units).max()), np.finfo(float).eps * scale)
    floor = (constants - own_gains - own_errors - _ROUNDING * traces) / units
    return Measured(
        constants=constants / units,
        units=units,
        weights=weights * units,
        traces=traces / units,
        base=float(weights @ offsets),
        scale=scale,
        errors=own_errors / units if plain else np.zeros(k),
        floor=np.zeros(k) if plain else floor,
        offsets=offsets / units,
    )

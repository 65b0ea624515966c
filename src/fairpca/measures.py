"""What fairness is judged on: a measure of each group, affine in what the group keeps."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._linalg.types import Array

NO_VARIANCE = 1e-30
"""Variance of a group, relative to the largest one, that counts as none: it has no shares."""

EPS = float(np.finfo(float).eps)

SUM_ROUNDING = 16 * EPS
"""What rounding can make of a sum of eigenvalues, relative to the largest trace and the weights."""


@dataclass(frozen=True)
class Measure:
    """A quantity that fairness can be judged on.

    Attributes
    ----------
    name : str
        The word for it in `measure=`.
    noun, plural : str
        The words for it in texts.
    baseline : {"own", "all", "none"}
        What is subtracted: what the group keeps in its own subspace (a disparity), all of its
        variance (a loss), or nothing (minus what it keeps).
    relative : bool
        If True, it is divided by the group's variance.
    """

    name: str
    noun: str
    plural: str
    baseline: str
    relative: bool

    @property
    def is_disparity(self) -> bool:
        """Whether it is measured from the group's own best subspace."""
        return self.baseline == "own"

    @property
    def is_kept(self) -> bool:
        """Whether more of it is better; it then has a minus sign."""
        return self.baseline == "none"

    @property
    def minmax(self) -> str:
        """What `criterion=` has to be to minimise the largest of it."""
        return "'minmax'" if self.name == "disparity" else f"MinMax({self.name!r})"

    @property
    def sign(self) -> float:
        """What a number is multiplied by to be shown."""
        return -1.0 if self.is_kept else 1.0


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("disparity", "disparity", "disparities", "own", False),
        Measure("relative_disparity", "relative disparity", "relative disparities", "own", True),
        Measure("loss", "loss", "losses", "all", False),
        Measure("share_lost", "share lost", "shares lost", "all", True),
        Measure("kept_variance", "kept variance", "kept variances", "none", False),
        Measure("share_kept", "share kept", "shares kept", "none", True),
    )
}

BY_NOUN = {measure.noun: measure for measure in MEASURES.values()}


@dataclass(frozen=True, eq=False)
class AffineMeasure:
    """The measures ``e_i = constants_i - kept_i / units_i`` of the groups of a problem.

    Attributes
    ----------
    constants, units : arrays of shape (k,)
        c_i / s_i and s_i.
    weights : array of shape (k,)
        What the measures are multiplied with in the total loss, ``base + weights . e``.
    loss_unit : float
        What searches divide the total loss by, so that it has the unit of the measures.
    loss_weights : array of shape (k,)
        The weights in those units: of the size of 1, whatever the unit of the rows.
    traces : array of shape (k,)
        Traces of the matrices ``A_i / s_i``.
    sizes : array of shape (k,)
        What rounding errors of the measures are relative to.
    base : float
        See `weights`.
    offsets : array of shape (k,)
        What is subtracted from losses over units to get the measures.
    scale : float
        What tolerances are relative to: tr(A) where the units are 1.
    floor : array of shape (k,)
        No subspace has a smaller measure of each group.
    is_own : bool
        Whether it is what groups lose beyond their own best subspaces.
    """

    constants: Array
    units: Array
    weights: Array
    loss_unit: float
    loss_weights: Array
    traces: Array
    sizes: Array
    base: float
    scale: float
    floor: Array
    offsets: Array
    is_own: bool

    @classmethod
    def of(
        cls,
        measure: Measure,
        traces: Array,
        own_gains: Array,
        weights: Array,
        given: tuple[Array, Array] | None = None,
        lost: tuple[Array, Array] | None = None,
    ) -> "AffineMeasure":
        """A measure of groups with these traces, own gains and weights.

        `given` are constants c_i and units s_i in place of those of the measure. `lost` is given
        where losses are far smaller than traces: those in the groups' own subspaces, more exact
        than the difference of traces and gains, and those with ordinary PCA.
        """
        k = len(traces)
        largest = float(traces.max(initial=0.0)) or 1.0
        some = traces > NO_VARIANCE * largest
        units = np.where(some, traces, largest) if measure.relative else np.ones(k)
        # A group without variance keeps nothing, but all of what it has: its share is 1.
        shift = np.where(some, 0.0, -units) if measure.relative else np.zeros(k)
        constants = {"own": own_gains, "all": traces, "none": shift}[measure.baseline]
        if given is not None:
            constants, units = given
        plain = measure.is_disparity and given is None
        offsets = traces - constants
        scale = float(weights @ (traces / units))
        if lost is not None:
            offsets = lost[0] if plain else offsets
            if not measure.is_kept:  # what is kept is large, however little is lost
                # Where nobody loses anything, what rounding makes of the variance is left.
                scale = max(float((lost[1] / units).max()), EPS * scale)
        floor = (constants - own_gains - SUM_ROUNDING * traces) / units
        loss_unit = float((weights * units).sum() / weights.sum())
        floor = np.zeros(k) if plain else floor
        return cls(
            constants=constants / units,
            units=units,
            weights=weights * units,
            loss_unit=loss_unit,
            loss_weights=weights * units / loss_unit,
            traces=traces / units,
            sizes=np.maximum(traces, np.abs(constants)) / units,
            base=float(weights @ offsets),
            scale=scale,
            floor=floor,
            offsets=offsets / units,
            is_own=plain,
        )

    def of_losses(self, losses: Array) -> Array:
        """The measures of groups that lose this much."""
        return losses / self.units - self.offsets

    def values(self, kept: Array) -> Array:
        """The measures of groups that keep this much."""
        return self.constants - kept / self.units


def check_measure(measure: Any) -> Measure:
    """The measure of this name, or ValueError."""
    if isinstance(measure, str) and measure in MEASURES:
        return MEASURES[measure]
    raise ValueError(f"measure must be one of {', '.join(map(repr, MEASURES))}, got {measure!r}.")

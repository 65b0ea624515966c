"""Descent for several objectives with steps that fit the curvature, for the paper's objectives.

A run begins with the paper's steps 1/sqrt(t), which are long: they carry it past the first fair
subspaces that it meets. Then each step is as long as the curvature along the last one says
(Barzilai and Borwein, 1988; for several objectives Morovati, Pourkarimi and Basirzadeh, 2016), and
is halved until no objective is above its largest value in the last few steps (Grippo, Lampariello
and Lucidi, 1986).

Where a difference of disparities is zero its penalty cannot fall, and no direction improves all
objectives: every fair subspace is stationary in that sense, whatever it loses. But others may still
be better in one objective and worse in none, so that they dominate it. Differences within reach of
zero are therefore *held* at zero, and the other objectives improve along the subspaces that keep
them there. A run ends where nothing improves in that sense either.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairpca._linalg.dense import direction_of
from fairpca._linalg.types import Array
from fairpca.objectives import Differences
from fairpca.solvers._descent import STATIONARY, STOPPED, Descent, descend

_EXPLORING = 200
"""Steps of the length 1/sqrt(t) at the beginning. After 100 some runs end less fair, after 300 none
ends fairer (Adult and Credit)."""

_MEMORY = 5
"""Steps among which the largest value of an objective is not to be exceeded."""

_WITHIN_REACH = 6
"""So often a step is halved because of differences alone before these are held at zero."""

_HALVINGS = 45
"""So often a step is halved before it is given up: its change is below rounding."""

_ROUNDING = 1e-14
"""Change of a value that is rounding, relative to tr(A)."""

_HELD = 1e-12
"""Difference that counts as zero, relative to tr(A)."""

_DEPENDENT = 1e-9
"""Singular value, relative to the largest, of slopes that depend on each other."""

_SHORTEST, _LONGEST = 1e-10, 10.0
"""Between these are the steps that the curvature asks for."""

_RETURNING = 5
"""The most steps back to where held differences are zero; Newton's method takes two or three."""


@dataclass(frozen=True, eq=False)
class _State:
    """A point with its objectives and differences; gradients are rows.

    `pulls` are what a direction is made of: gradients, where these are scaled to length one those
    of the distances of differences from zero, which have the same direction for every penalty.
    """

    point: Array
    values: Array
    gradients: Array
    pulls: Array
    differences: Array
    slopes: Array


@dataclass(frozen=True, eq=False)
class AdaptiveDescent:
    """How to descend; `unit` is tr(A), to which rounding is relative."""

    evaluate: Callable[[Array], tuple[Array, Array]]
    values_of: Callable[[Array], Array]
    differences: Callable[[Array], Differences | None]
    retract: Callable[[Array], Array]
    normalize: bool
    armijo: float
    zero: Array
    tol: float
    unit: float

    def run(
        self,
        start: Array,
        *,
        step_size: float,
        max_iter: int,
        progress: Callable[[], bool] | None = None,
    ) -> Descent:
        """Descend from a start until nothing improves or the steps are used up."""
        first = descend(
            self.evaluate,
            self.values_of,
            start,
            retract=self.retract,
            step="sqrt",
            step_size=step_size,
            normalize=self.normalize,
            armijo=self.armijo,
            zero=self.zero,
            tol=self.tol,
            max_iter=min(_EXPLORING, max_iter),
            progress=progress,
        )
        if first.message == STOPPED:
            return first
        state = self._state(first.point)
        held = np.zeros(len(state.differences), dtype=bool)
        values, norms, steps = list(first.values), list(first.norms), list(first.steps)
        weights = list(first.multipliers)
        long_step = length = step_size / math.sqrt(len(steps) + 1.0)
        recent, may_hold = [state.values], True
        zero = self.zero.copy()
        if self.normalize:
            # Scaled to length one, a gradient does not vanish where its objective is least.
            zero = np.maximum(zero, self.tol * self.unit)
            zero[len(zero) - len(held) :] = _ROUNDING * self.unit
        stationary, message = False, f"stopped after {max_iter} steps"
        for _ in range(len(steps), max_iter):
            held = self._held(state, held)
            active = self._active(held, len(state.values))
            projected = _along(state.pulls[active], state.slopes[held])
            direction, shares, divisors = direction_of(
                state.pulls[active],
                projected,
                normalize=self.normalize,
                zero=zero[active],
            )
            norms.append(math.sqrt(direction @ direction))
            weights.append(np.zeros(len(active)))
            weights[-1][active] = shares
            if norms[-1] <= self.tol:
                stationary, message = True, STATIONARY
                break
            trial, length, blocked = self._search(
                state, direction, length, np.max(recent, axis=0), held, may_hold
            )
            if blocked is not None:
                # These differences stand in the way: from here on they are held at zero.
                there = self._state(self._returned(state.point, held | blocked))
                may_hold = self._holds(there.differences, held | blocked)
                if may_hold:
                    state, held, length = there, held | blocked, long_step
                    recent = []
            elif trial is None:
                message = "stopped where rounding hides all improvement"
                break
            else:
                there, taken, may_hold = self._state(trial), length, True
                fitting = self._fitting(state, there, projected, shares / divisors, active, held)
                length = 2.0 * taken if fitting is None else fitting
                state = there
            recent = [*recent[1 - _MEMORY :], state.values]
            values.append(state.values)
            steps.append(0.0 if blocked is not None else taken)
            if progress is not None and progress():
                message = STOPPED
                break
        return Descent(
            state.point,
            np.array(values),
            np.array(norms),
            np.array(steps),
            np.array(weights),
            stationary,
            message,
        )

    def _state(self, point: Array) -> _State:
        values, gradients = self.evaluate(point)
        gradients = gradients.reshape(len(values), point.size)
        found = self.differences(point)
        if found is None:
            return _State(point, values, gradients, gradients, np.empty(0), gradients[:0])
        differences, slopes = found[0], found[1].reshape(-1, point.size)
        pulls = gradients
        if self.normalize:
            pulls = gradients.copy()
            pulls[len(values) - len(slopes) :] = np.sign(differences)[:, None] * slopes
        return _State(point, values, gradients, pulls, differences, slopes)

    def _held(self, state: _State, held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those that are held, those that are zero, and those that these leave no other choice."""
        sizes = np.abs(state.differences)
        held = held | (sizes <= _HELD * self.unit)
        if held.any() and not held.all():
            left = np.linalg.norm(_along(state.slopes, state.slopes[held]), axis=1)
            bound = left <= _DEPENDENT * np.linalg.norm(state.slopes, axis=1)
            held = held | (bound & (sizes <= len(held) * _HELD * self.unit))
        return held

    @staticmethod
    def _active(held: NDArray[np.bool_], m: int) -> NDArray[np.bool_]:
        """Which of m objectives are to improve: all but those whose differences are held."""
        active = np.ones(m, dtype=bool)
        active[m - len(held) :] = ~held
        return active

    def _search(
        self,
        state: _State,
        direction: Array,
        length: float,
        largest: Array,
        held: NDArray[np.bool_],
        may_hold: bool,
    ) -> tuple[Array | None, float, NDArray[np.bool_] | None]:
        """Shorten a step until no objective is above its largest value of late.

        Returns the new point, if there is one, the length, and the differences that alone are in
        the way of a step that has become short.
        """
        m, p = len(largest), len(held)
        active = self._active(held, m)
        falls = self.armijo * (state.gradients @ direction)
        # A penalty may be far smaller than what is lost in total.
        rounding = _ROUNDING * np.where(np.arange(m) < m - p, self.unit, np.abs(largest))
        step = direction.reshape(state.point.shape)
        for halved in range(_HALVINGS):
            trial = self._returned(self.retract(state.point + length * step), held)
            above = active & (self.values_of(trial) > largest + length * falls + rounding)
            if held.any():
                found = self.differences(trial)
                stays = found is not None and self._holds(found[0], held)
            else:
                stays = True
            if stays and not above.any():
                return trial, length, None
            if may_hold and halved >= _WITHIN_REACH and stays and not above[: m - p].any():
                return None, length, above[m - p :]
            length /= 2.0
        return None, length, None

    def _holds(self, differences: Array, held: NDArray[np.bool_]) -> bool:
        return bool((np.abs(differences[held]) <= _HELD * self.unit).all())

    def _returned(self, point: Array, held: NDArray[np.bool_]) -> Array:
        """The point, moved to where held differences are zero, by Newton's method."""
        if not held.any():
            return point
        for _ in range(_RETURNING):
            found = self.differences(point)
            if found is None:
                break
            missed, slopes = found[0][held], found[1][held].reshape(-1, point.size)
            if (np.abs(missed) <= _ROUNDING * self.unit).all():
                break
            back = np.linalg.lstsq(slopes, -missed, rcond=_DEPENDENT)[0]
            point = self.retract(point + back.reshape(point.shape))
        return point

    def _fitting(
        self,
        state: _State,
        there: _State,
        projected: Array,
        weights: Array,
        active: NDArray[np.bool_],
        held: NDArray[np.bool_],
    ) -> float | None:
        """The length that fits the curvature between two points; None where it is not positive."""
        moved = (there.point - state.point).ravel()
        change = weights @ (_along(there.pulls[active], there.slopes[held]) - projected)
        curvature = float(moved @ change)
        if curvature <= 0.0:
            return None
        return min(max(float(moved @ moved) / curvature, _SHORTEST), _LONGEST)


def _along(gradients: Array, slopes: Array) -> Array:
    """The parts of gradients that keep to where differences with these slopes do not change."""
    if not len(slopes):
        return gradients
    _, sizes, axes = np.linalg.svd(slopes, full_matrices=False)
    axes = axes[sizes > _DEPENDENT * sizes[0]]
    kept: Array = gradients - (gradients @ axes.T) @ axes
    return kept

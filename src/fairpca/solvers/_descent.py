"""Descent for several objectives at once: the loop of the paper's Algorithm 1.

It knows nothing of PCA: objectives and retraction are given, so it also runs in a flat space, where
the paper's theorems can be checked.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairpca._linalg.dense import direction_of
from fairpca._linalg.types import Array

_SHORTEST_STEP = 2.0**-60
"""Share of the first step at which backtracking gives up: far below rounding."""

STEPS = ("adaptive", "sqrt", "constant", "backtracking", "equation 16")
"""How steps are chosen; "adaptive" is in `_adaptive`, the others here."""

STOPPED = "stopped by a callback"
STATIONARY = "ended where no direction improves all objectives: Pareto stationary"


@dataclass(frozen=True, eq=False, repr=False)
class Descent:
    """Where a run ended and how it went.

    Attributes
    ----------
    point : array
        The last point.
    values : array of shape (steps + 1, m)
        Objectives at every point.
    norms : array of shape (evaluations,)
        Norm of the direction at every point at which it was found.
    steps : array of shape (steps,)
        Step lengths.
    multipliers : array of shape (evaluations, m)
        Weights of the gradients in the direction.
    stationary : bool
        Whether the run ended because no direction improves all objectives.
    message : str
        Why it ended.
    """

    point: Array
    values: Array
    norms: Array
    steps: Array
    multipliers: Array
    stationary: bool
    message: str

    def __repr__(self) -> str:
        return f"Descent({len(self.steps)} steps, message={self.message!r})"


def descend(
    evaluate: Callable[[Array], tuple[Array, Array]],
    values_of: Callable[[Array], Array],
    start: Array,
    *,
    retract: Callable[[Array], Array],
    step: str,
    step_size: float,
    normalize: bool,
    armijo: float,
    zero: Array,
    tol: float,
    max_iter: int,
    progress: Callable[[], bool] | None = None,
) -> Descent:
    """Follow the min-norm direction until it vanishes or the iterations are used up.

    Gradients with a norm of at most `zero`, one for each, count as zero: there an objective is at a
    stationary point of its own, and scaling rounding errors to length one would make them a
    direction.
    """
    point, shortest = start, step_size * _SHORTEST_STEP
    values, gradients = evaluate(point)
    m = len(values)
    record = [values]
    norms, steps, multipliers = [], [], []
    stationary, message = False, f"stopped after {max_iter} steps"
    searches = step in ("backtracking", "equation 16")
    # The paper tests its condition before it projects, and from p = 1.
    tested = _same if step == "equation 16" else retract
    first = step_size / 2.0 if step == "equation 16" else step_size
    for t in range(1, max_iter + 1):
        flat = gradients.reshape(m, -1)
        flat_direction, weights, _ = direction_of(flat, flat, normalize=normalize, zero=zero)
        norm = math.sqrt(flat_direction @ flat_direction)
        norms.append(norm)
        multipliers.append(weights)
        if norm <= tol:
            stationary, message = True, STATIONARY
            break
        direction = flat_direction.reshape(point.shape)
        length = first / math.sqrt(t) if step == "sqrt" else first
        if searches:
            # Halve the step until every objective falls as its slope promises.
            falls = armijo * (flat @ flat_direction)
            while length > shortest:
                if (values_of(tested(point + length * direction)) <= values + length * falls).all():
                    break
                length /= 2.0
            else:
                message = "stopped where no step improves all objectives enough"
                break
        point = retract(point + length * direction)
        steps.append(length)
        values, gradients = evaluate(point)
        record.append(values)
        if progress is not None and progress():
            message = STOPPED
            break
    return Descent(
        point,
        np.array(record),
        np.array(norms),
        np.array(steps),
        np.array(multipliers).reshape(-1, m),
        stationary,
        message,
    )


def _same(point: Array) -> Array:
    return point

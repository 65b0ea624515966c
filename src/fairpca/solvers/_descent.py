"""Descent for several objectives at once: the loop of the paper's Algorithm 1.

It knows nothing of PCA: objectives and retraction are given, so it also runs in a flat space, where
the paper's theorems can be checked.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairpca._linalg.dense import min_norm_point
from fairpca._linalg.types import Array

_SHORTEST_STEP = 2.0**-60
"""Share of the first step at which backtracking gives up: far below rounding."""


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
    zero: float,
    tol: float,
    max_iter: int,
    progress: Callable[[], bool] | None = None,
) -> Descent:
    """Follow the min-norm direction until it vanishes or the iterations are used up.

    Gradients with a norm of at most `zero` count as zero: there an objective is at a stationary
    point of its own, and scaling rounding errors to length one would make them a direction.
    """
    point, shortest = start, step_size * _SHORTEST_STEP
    values, gradients = evaluate(point)
    m = len(values)
    record = [values]
    norms, steps, multipliers = [], [], []
    stationary, message = False, f"stopped after {max_iter} steps"
    for t in range(1, max_iter + 1):
        flat = gradients.reshape(m, -1)
        sizes = np.sqrt(np.einsum("ij,ij->i", flat, flat))
        vanished = sizes <= zero
        divisors = sizes if normalize else np.ones(m)
        if vanished.any():
            divisors = np.where(vanished, np.inf, divisors)
        weights = min_norm_point(flat, divisors)
        flat_direction = -((weights / divisors) @ flat)
        norm = math.sqrt(flat_direction @ flat_direction)
        norms.append(norm)
        multipliers.append(weights)
        if norm <= tol:
            stationary, message = True, "Pareto stationary: no direction improves all objectives"
            break
        direction = flat_direction.reshape(point.shape)
        length = step_size / math.sqrt(t) if step == "sqrt" else step_size
        trial = retract(point + length * direction)
        if step == "backtracking":
            # Halve the step until every objective falls as its slope promises, once retracted.
            falls = armijo * (flat @ flat_direction)
            while not (values_of(trial) <= values + length * falls).all() and length > shortest:
                length /= 2.0
                trial = retract(point + length * direction)
            if length <= shortest:
                message = "no step improves all objectives enough"
                break
        point = trial
        steps.append(length)
        values, gradients = evaluate(point)
        record.append(values)
        if progress is not None and progress():
            message = "stopped by a callback"
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

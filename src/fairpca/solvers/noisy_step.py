"""A step of Pareto descent where the groups' matrices are known by a sample of their rows only.

All gradients of the paper's objectives are combinations of the k images ``A_i U``, so the direction
in which all objectives fall, and everything that is asked of it, follows from the k x k products of
these images' tangent parts. That is all that this module sees of the data: it costs the same for
any number of columns, and for arrays on any device.

Differences of disparities within reach of a step are *held* at zero, as in `_adaptive`, and a
Newton step leads back to zero: their signs are noise there, and following them would make the
basis tremble.
"""

from dataclasses import dataclass

import numpy as np

from fairpca._linalg.dense import direction_of
from fairpca._linalg.types import Array
from fairpca.objectives import pair_differences

_DEPENDENT = 1e-6
"""Singular value, relative to the largest, of slopes that depend on each other."""

_ROUNDING = 1e-12
"""Part of the largest product that is rounding."""


@dataclass(frozen=True, eq=False)
class NoisyStep:
    """Where to go from a basis; coefficients are those of the k tangent images.

    Attributes
    ----------
    step : array of shape (k,)
        The step, back to zero and onwards.
    direction : array of shape (k,)
        The direction in which all objectives that are not held fall, as long as a step of the power
        method for the total loss, times a number from 1 to 0: 0 where nothing improves.
    """

    step: Array
    direction: Array


def noisy_step(products: Array, disparities: Array, shares: Array, step_size: float) -> NoisyStep:
    """The step from a basis.

    Parameters
    ----------
    products : array of shape (k, k)
        Inner products of the tangent parts of the images ``A_i U``, in a metric in which the step
        of one, along minus half the gradient of the total loss, is one of the power method.
    disparities : array of shape (k,)
        What each group loses beyond its own best subspace.
    shares : array of shape (k,)
        Weights of the groups in the total loss.
    step_size : float
        Length of the step, in those of the power method.

    Returns
    -------
    NoisyStep
    """
    values, axes = np.linalg.eigh((products + products.T) / 2.0)
    values = np.where(values > _ROUNDING * max(values[-1], 0.0), values, 0.0)
    # The images in few coordinates: rows with the same products.
    images: Array = axes * np.sqrt(values)
    pairs = pair_differences(len(shares))
    differences = pairs @ disparities
    total, slopes = -(shares @ images), -2.0 * (pairs @ images)
    sizes = np.sqrt(np.einsum("ij,ij->i", slopes, slopes))
    length = step_size * float(np.linalg.norm(total))
    held = np.abs(differences) <= length * sizes
    pulls = np.vstack([total, np.sign(differences)[:, None] * slopes])
    pulls = pulls[np.concatenate([[True], ~held])]
    free, back = pulls, np.zeros(len(shares))
    if held.any():
        left, levels, right = np.linalg.svd(slopes[held], full_matrices=False)
        some = levels > _DEPENDENT * levels[0]
        right = right[some]
        free = pulls - (pulls @ right.T) @ right
        back = -((left[:, some].T @ differences[held]) / levels[some]) @ right
        # Newton's step is only right nearby.
        back *= min(1.0, length / max(float(np.linalg.norm(back)), np.finfo(float).tiny))
    zero = np.full(len(pulls), np.sqrt(_ROUNDING * max(float(values[-1]), 0.0)))
    direction, _, _ = direction_of(pulls, free, normalize=True, zero=zero)
    steps = np.array([back + length * direction, float(np.linalg.norm(total)) * direction])
    # From the few coordinates to coefficients of the images; what has no length has none.
    scale = np.divide(1.0, np.sqrt(values), out=np.zeros(len(values)), where=values > 0.0)
    return NoisyStep(*((steps * scale) @ axes.T))

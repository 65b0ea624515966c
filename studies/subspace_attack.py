"""An adversary: plain descent on the largest measure of a group, from many starts at once.

It knows nothing of the package: matrices and constants in, subspaces and values out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FIRST_STEP, LAST_STEP = 0.5, 1e-4
"""Lengths of the steps, between which they fall geometrically; a basis has length sqrt(r)."""

SHARPNESS = 0.2
"""The temperature at which the largest measure is smoothed, relative to the length of a step."""


def random_bases(rng: np.random.Generator, n: int, d: int, r: int) -> Array:
    """Orthonormal bases of n subspaces, uniformly at random; (n, d, r)."""
    return np.asarray(np.linalg.qr(rng.standard_normal((n, d, r)))[0])


def largest_measures(matrices: Array, constants: Array, bases: Array) -> Array:
    """The largest of ``constants_i - tr(U^T matrices_i U)``, for each basis."""
    largest: Array = _measures(matrices, constants, bases).max(axis=0)
    return largest


def attack(matrices: Array, constants: Array, starts: Array, n_steps: int) -> Array:
    """The smallest largest measure on the way from each start; (len(starts),).

    Each step follows the gradient of the measures, weighted by a softmax that becomes sharper, in
    the tangent space of the Stiefel manifold, and orthonormalises.
    """
    k, d, _ = matrices.shape
    unit = float(np.trace(matrices, axis1=1, axis2=2).max())
    flat = matrices.reshape(k, d * d)
    bases, best = starts, largest_measures(matrices, constants, starts)
    for step in np.geomspace(FIRST_STEP, LAST_STEP, n_steps):
        measures = _measures(matrices, constants, bases)
        weights = np.exp((measures - measures.max(axis=0)) / (SHARPNESS * step * unit))
        weights /= weights.sum(axis=0)
        pull = (weights.T @ flat).reshape(-1, d, d) @ bases
        pull -= bases @ (bases.transpose(0, 2, 1) @ pull)
        length = np.linalg.norm(pull, axis=(1, 2), keepdims=True)
        bases = np.linalg.qr(bases + step * pull / np.maximum(length, 1e-300))[0]
        best = np.minimum(best, largest_measures(matrices, constants, bases))
    return best


def _measures(matrices: Array, constants: Array, bases: Array) -> Array:
    projectors = (bases @ bases.transpose(0, 2, 1)).reshape(len(bases), -1)
    kept = matrices.reshape(len(matrices), -1) @ projectors.T
    return np.asarray(constants[:, None] - kept)

"""The direction of Pareto descent, for the gradients of any model."""

from typing import Any

import numpy as np

from fairpca._linalg.backends import device_library, to_device
from fairpca._linalg.dense import direction_of
from fairpca._linalg.device import DeviceBackend
from fairpca._linalg.types import Array
from fairpca.validation import check_flag


def descent_direction(gradients: Any, *, normalize: bool = True) -> tuple[Any, Array]:
    """The direction in which several objectives fall at once (equation 17 of the paper).

    It is minus the shortest combination of the gradients with weights that are not negative and
    sum to one. Along it every objective falls at a rate of at least its squared length; where it
    is zero no direction lowers all objectives, and the point is Pareto stationary. So it is where
    one of the gradients is zero. Nothing is known here of the model: only its gradients are given.

    Parameters
    ----------
    gradients : array-like or PyTorch or CuPy array of shape (m, p)
        In each row the gradient of an objective with respect to all p parameters. A tensor is in
        float32 or float64; it stays on its device, from which m x m numbers are taken.
    normalize : bool, default=True
        Whether gradients are scaled to length one first (the paper's Remark 1), so that the unit of
        an objective does not matter. What was said of the rates holds for the scaled gradients.

    Returns
    -------
    direction : array of shape (p,)
        What is added to the parameters, times the length of the step: on the device and in the
        precision of a tensor, else a NumPy array.
    weights : NumPy array of shape (m,)
        The weights of the gradients, scaled ones if `normalize`.

    Raises
    ------
    ValueError
        If gradients are not of this shape and precision, or not finite.

    See Also
    --------
    fairpca.ParetoDescent : Takes this direction at every step.

    Examples
    --------
    >>> from fairpca.objectives import descent_direction
    >>> direction, weights = descent_direction([[3.0, 0.0], [0.0, 0.1]])
    >>> direction, weights
    (array([-0.5, -0.5]), array([0.5, 0.5]))
    """
    check_flag("normalize", normalize)
    on_device = device_library(gradients) is not None
    if not on_device:
        try:
            gradients = np.asarray(gradients, dtype=np.float64)
        except (TypeError, ValueError):  # of several shapes, on a device, not numbers
            gradients = np.empty(0)
    if gradients.ndim != 2 or 0 in gradients.shape:
        raise ValueError(
            "gradients must be one array of shape (m, p) with the gradient of an objective in each "
            "row: flatten each of them, and stack them."
        )
    rows = gradients
    if on_device:
        gradients = gradients.detach() if hasattr(gradients, "detach") else gradients
        backend = DeviceBackend(gradients)
        if gradients.dtype not in (backend.xp.float32, backend.xp.float64):
            raise ValueError(
                f"gradients must be in float32 or float64, got {gradients.dtype}: convert them."
            )
        # The triangle has the same lengths and angles, and unlike products it loses no digits.
        rows = backend.qr(gradients.T)[1].T.astype(np.float64)
    if not np.isfinite(rows).all():
        raise ValueError(
            "gradients must be finite, but have NaN or infinity: take shorter steps, or look for "
            "an objective that is not defined at these parameters."
        )
    # By powers of two, so that no square is too large or too small for a number.
    largest = np.abs(rows).max(axis=1)
    units = 2.0 ** np.floor(np.log2(np.where(largest > 0.0, largest, 1.0)))
    units = units if normalize else np.full(len(rows), units[largest > 0.0].max(initial=0.0) or 1.0)
    rows = rows / units[:, None]
    zero = np.zeros(len(rows))
    direction, weights, divisors = direction_of(rows, rows, normalize=normalize, zero=zero)
    if on_device:
        factors = -weights / (divisors * units) if normalize else -weights
        return to_device(factors, gradients) @ gradients, weights
    return direction if normalize else direction * units[0], weights

"""What a subspace is judged by: the paper's objectives, others, and how to write one's own.

An objective is anything with a `name` and two methods, ``value(problem, basis)`` and
``gradient(problem, basis)``: a number to be minimised, and its derivative with respect to the
basis U, of the same shape. `ParetoDescent` takes a list of them. `descent_direction` is its
direction for the gradients of any other model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any, Protocol

import numpy as np

from fairpca._linalg.backends import device_library, to_device
from fairpca._linalg.dense import direction_of
from fairpca._linalg.device import DeviceBackend
from fairpca._linalg.types import Array
from fairpca.problem import Problem
from fairpca.validation import check_choice, check_flag

# The direction of Pareto descent, for the gradients of any model.


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


# Objectives that are ready to use, and what one of your own has to offer.


class Objective(Protocol):
    """Something to be minimised over subspaces.

    See Also
    --------
    fairpca.ParetoDescent : Takes a list of objectives.
    fairpca.objectives.TotalLoss : One of those that are here.

    Examples
    --------
    >>> import numpy as np
    >>> class LossOfTheFirst:
    ...     name = "loss of the first group"
    ...     def value(self, problem, basis):
    ...         return problem.group_losses(basis)[0]
    ...     def gradient(self, problem, basis):
    ...         return -2.0 * problem.matrices[0] @ basis
    >>> from fairpca import GroupMoments, ParetoDescent, Problem
    >>> from fairpca.objectives import TotalLoss
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> problem = Problem(GroupMoments.from_rows(X, ["a"] * 100 + ["b"] * 200), n_components=2)
    >>> solution = ParetoDescent(objectives=[TotalLoss(), LossOfTheFirst()]).solve(problem)
    >>> solution.basis.shape
    (4, 2)
    """

    @property
    def name(self) -> str:
        """How it is called in histories."""

    def value(self, problem: Problem, basis: Array) -> float:
        """The number to be minimised."""

    def gradient(self, problem: Problem, basis: Array) -> Array:
        """Its derivative with respect to the basis; (d, r)."""


@dataclass(frozen=True)
class TotalLoss:
    """The total reconstruction loss: ordinary PCA minimises it.

    Parameters
    ----------
    name : str, default="total loss"
        How it is called in histories.

    See Also
    --------
    fairpca.ParetoDescent, fairpca.objectives.Objective

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.objectives import TotalLoss
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> round(TotalLoss().value(problem, np.array([[0.8], [0.6]])), 4)
    1.94
    """

    name: str = "total loss"

    def value(self, problem: Problem, basis: Array) -> float:
        """Weighted sum of the groups' losses."""
        return problem.total_loss(basis)

    def gradient(self, problem: Problem, basis: Array) -> Array:
        """``-2 A U``."""
        gradient: Array = -2.0 * (problem.total_matrix @ basis)
        return gradient


@dataclass(frozen=True)
class MeanDistance:
    """Squared distances between the groups' means after the projection.

    Parameters
    ----------
    name : str, default="mean distance"
        How it is called in histories.

    See Also
    --------
    fairpca.ParetoDescent, fairpca.objectives.Objective

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.objectives import MeanDistance
    >>> X = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> round(MeanDistance().value(problem, np.array([[0.8], [0.6]])), 4)
    2.56
    """

    name: str = "mean distance"

    def value(self, problem: Problem, basis: Array) -> float:
        """``sum_{i<j} |U^T (mean_i - mean_j)|^2``."""
        return float(np.square(self._offsets(problem) @ basis).sum())

    def gradient(self, problem: Problem, basis: Array) -> Array:
        """``2 M^T M U`` with the means, minus their average, as rows of ``M / sqrt(k)``."""
        offsets = self._offsets(problem)
        gradient: Array = 2.0 * (offsets.T @ (offsets @ basis))
        return gradient

    @staticmethod
    def _offsets(problem: Problem) -> Array:
        means = problem.moments.mean
        # Over all pairs, squared differences sum to k times the squared deviations.
        offsets: Array = np.sqrt(len(means)) * (means - means.mean(axis=0))
        return offsets


Tangent = Callable[[Array, Array], Array]
"""Takes a basis and a stack of matrices to the parts of them that are tangent at the basis."""

Differences = tuple[Array, Array]
"""Numbers whose distance from zero objectives penalise, (p,), and their derivatives, (p, d, r)."""

Penalty = tuple[Callable[[Array], Array], Callable[[Array], Array]]

_MOST_EXPONENT = float(np.log(np.finfo(float).max))
"""From about here on the exponential is too large for a number."""


def _exponential(z: Array) -> Array:
    if z.min(initial=0.0) < -_MOST_EXPONENT:
        raise ValueError(
            f"penalty='exponential' cannot be computed where disparities are as large as here, "
            f"{-float(z.min()):.3g}: standardise the columns, or use penalty='squared'."
        )
    return np.asarray(np.exp(-z))


PENALTIES: dict[str, Penalty] = {
    "squared": (lambda z: 0.5 * z * z, lambda z: z),
    "absolute": (np.abs, np.sign),
    "exponential": (_exponential, lambda z: -_exponential(z)),
}
"""The paper's penalties psi and their derivatives.

"squared" and "absolute" are symmetric, and make sense with both kinds of disparity. "exponential"
rewards large values: on a signed pairwise disparity it favours one group over the other, and on a
single disparity it asks for *more* of it. It is here because the paper names it.
"""


DISPARITIES = ("pairwise", "adjacent", "pooled", "single")
"""What the paper's objectives can be of beside the total loss."""

FEW_GROUPS = 5
"""Up to this many groups differences are objectives of their own by default. With more, descent
mostly ends far from the front: studies/many_groups.md."""


@dataclass(frozen=True)
class PaperObjectives:
    """The paper's vector of objectives: the total loss and penalised disparities.

    With "pairwise" differences there are ``1 + k (k - 1) / 2`` objectives (equation 12), with
    "single" disparities ``1 + k`` (equation 9). Of groups sorted by their disparity every
    difference is a sum of "adjacent" ones, so that these k - 1 have the same directions in which
    all fall, where the penalty is symmetric and no two groups are equal. "pooled" is the sum over
    all pairs, one objective: subspaces at which neither it nor the total loss can fall without the
    other rising are Pareto optimal for the pairs too. `alpha` adds ``alpha |U|^2`` to each
    objective, as in equation 19: one number for all, or one for each.

    Parameters
    ----------
    disparity : {"pairwise", "adjacent", "pooled", "single"}, default="pairwise"
        What is penalised: differences of the disparities of all pairs of groups, of neighbours in
        the order of their disparities, all pairs in one objective (with the penalty "squared"), or
        each disparity.
    penalty : {"squared", "absolute", "exponential"}, default="squared"
        The paper's psi; see `PENALTIES`.
    alpha : float or array of shape (m,), default=0.0
        Weight of the squared norm of the basis.

    See Also
    --------
    fairpca.ParetoDescent : Minimises them.
    fairpca.objectives.Objective : How to write others.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.objectives import PaperObjectives
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> PaperObjectives().names(problem)
    ('total loss', 'a - b')
    >>> PaperObjectives().values(problem, np.array([[1.0], [0.0]])).tolist()
    [0.5, 0.5]
    """

    disparity: str = "pairwise"
    penalty: str = "squared"
    alpha: float | Array = 0.0

    def __post_init__(self) -> None:
        check_choice("disparity", self.disparity, DISPARITIES)
        check_choice("penalty", self.penalty, tuple(PENALTIES))
        if self.disparity == "pooled" and self.penalty != "squared":
            raise ValueError("Pooled differences go with penalty='squared', which is smooth.")

    def names(self, problem: Problem) -> tuple[str, ...]:
        """Names of the objectives, in order."""
        groups = problem.moments.group_texts
        if self.disparity == "single":
            others: Sequence[str] = groups
        elif self.disparity == "pooled":
            others = ["all pairs"]
        elif self.disparity == "adjacent":
            ranks = range(1, len(groups) + 1)
            others = [f"largest {i} - {j}" for i, j in pairwise(ranks)]
        else:
            others = [f"{first} - {second}" for first, second in combinations(groups, 2)]
        return ("total loss", *others)

    def values(self, problem: Problem, basis: Array) -> Array:
        """All values; (m,)."""
        kept = problem.kept(basis)
        disparities = problem.own_gains - kept
        return self._values(problem, kept, self._differences(disparities) @ disparities, basis)

    def evaluate(
        self, problem: Problem, basis: Array, tangent: Tangent | None = None
    ) -> tuple[Array, Array]:
        """All values, (m,), and gradients, (m, d, r), or their tangent parts."""
        images = problem.matrices @ basis
        kept = np.einsum("kia,ia->k", images, basis)
        disparities = problem.own_gains - kept
        matrix = self._differences(disparities)
        differences = matrix @ disparities
        # The chain rule: psi'(Delta) times the derivative of Delta, which is -2 (A_i - A_j) U.
        slopes = PENALTIES[self.penalty][1](differences)
        weights = np.vstack([problem.weights, self._pooled(slopes[:, None] * matrix)])
        # The tangent part is linear, so it is taken of the k images and not of the m gradients.
        parts = images if tangent is None else tangent(basis, images)
        gradients = (-2.0 * weights @ parts.reshape(len(parts), -1)).reshape(-1, *basis.shape)
        if self._has_alpha:
            pull = basis if tangent is None else tangent(basis, basis[None])[0]
            alphas = np.broadcast_to(self.alpha, (len(gradients),))
            gradients += 2.0 * np.multiply.outer(alphas, pull)
        return self._values(problem, kept, differences, basis), gradients

    def units(self, problem: Problem) -> Array:
        """What the gradients are measured in, by the unit of the rows; (m,)."""
        units = np.full(len(self.names(problem)), problem.scale)
        if self.penalty == "squared":
            units[1:] *= problem.scale
        return units

    def differences(
        self, problem: Problem, basis: Array, tangent: Tangent | None = None
    ) -> Differences | None:
        """What the last p objectives bring to zero, and its derivatives; None if nothing is."""
        if self.penalty == "exponential" or self.disparity == "pooled" or self._has_alpha:
            return None
        images = problem.matrices @ basis
        disparities = problem.own_gains - np.einsum("kia,ia->k", images, basis)
        matrix = self._differences(disparities)
        parts = images if tangent is None else tangent(basis, images)
        slopes = (-2.0 * matrix @ parts.reshape(len(parts), -1)).reshape(-1, *basis.shape)
        return matrix @ disparities, slopes

    def _values(self, problem: Problem, kept: Array, differences: Array, basis: Array) -> Array:
        total = problem.weights @ (problem.traces - kept)
        values = np.append(total, self._pooled(PENALTIES[self.penalty][0](differences)))
        if self._has_alpha:
            values += np.asarray(self.alpha) * float(np.square(basis).sum())
        return values

    @property
    def _has_alpha(self) -> bool:
        return bool(np.any(self.alpha))

    def _pooled(self, of_pairs: Array) -> Array:
        return of_pairs.sum(axis=0, keepdims=True) if self.disparity == "pooled" else of_pairs

    def _differences(self, disparities: Array) -> Array:
        """Matrix that takes the groups' disparities to those that are penalised."""
        if self.disparity == "adjacent":
            return adjacent_differences(disparities)
        k = len(disparities)
        if self.disparity == "pooled":  # the same sum of squares, from k numbers
            return float(np.sqrt(k)) * (np.eye(k) - 1.0 / k)
        return np.eye(k) if self.disparity == "single" else pair_differences(k)


@lru_cache
def pair_differences(k: int) -> Array:
    """Matrix that takes the disparities to the differences of all pairs i < j; (pairs, k)."""
    first, second = np.triu_indices(k, 1)
    matrix = np.eye(k)[first] - np.eye(k)[second]
    matrix.setflags(write=False)
    return matrix


def adjacent_differences(disparities: Array) -> Array:
    """Matrix that takes them to the differences of neighbours, the largest first; (k - 1, k)."""
    ordered: Array = np.eye(len(disparities))[np.argsort(-disparities, kind="stable")]
    return ordered[:-1] - ordered[1:]


@dataclass(frozen=True)
class SeparateObjectives:
    """A vector of objectives that were written one by one."""

    objectives: Sequence[Objective]

    def names(self, problem: Problem) -> tuple[str, ...]:
        """Names of the objectives, in order."""
        return tuple(objective.name for objective in self.objectives)

    def values(self, problem: Problem, basis: Array) -> Array:
        """All values; (m,)."""
        return np.array([objective.value(problem, basis) for objective in self.objectives])

    def evaluate(
        self, problem: Problem, basis: Array, tangent: Tangent | None = None
    ) -> tuple[Array, Array]:
        """All values, (m,), and gradients, (m, d, r), or their tangent parts."""
        gradients = np.array([objective.gradient(problem, basis) for objective in self.objectives])
        if tangent is not None:
            gradients = tangent(basis, gradients)
        return self.values(problem, basis), gradients

    def units(self, problem: Problem) -> Array:
        """That of the total loss for all; (m,)."""
        return np.full(len(self.objectives), problem.scale)

    def differences(
        self, problem: Problem, basis: Array, tangent: Tangent | None = None
    ) -> Differences | None:
        """None: of these objectives nothing is known."""
        return None


__all__ = [
    "DISPARITIES",
    "FEW_GROUPS",
    "PENALTIES",
    "Differences",
    "MeanDistance",
    "Objective",
    "PaperObjectives",
    "SeparateObjectives",
    "TotalLoss",
    "adjacent_differences",
    "descent_direction",
    "pair_differences",
]

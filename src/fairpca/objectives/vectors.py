"""Vectors of objectives: the paper's, and those that were written one by one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from fairpca._linalg.types import Array
from fairpca.objectives.single import Objective
from fairpca.problem import Problem
from fairpca.validation import check_choice

Tangent = Callable[[Array, Array], Array]
"""Takes a basis and a stack of matrices to the parts of them that are tangent at the basis."""

Differences = tuple[Array, Array]
"""Numbers whose distance from zero objectives penalise, (p,), and their derivatives, (p, d, r)."""

Penalty = tuple[Callable[[Array], Array], Callable[[Array], Array]]

_MOST_EXPONENT = 700.0
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


@dataclass(frozen=True)
class PaperObjectives:
    """The paper's vector of objectives: the total loss and penalised disparities.

    With "pairwise" disparities there are ``1 + k (k - 1) / 2`` objectives (equation 12), with
    "single" ones ``1 + k`` (equation 9). `alpha` adds ``alpha |U|^2`` to each, as in equation 19:
    one number for all, or one for each.

    Parameters
    ----------
    disparity : {"pairwise", "single"}, default="pairwise"
        Whether differences of two groups' disparities are penalised, or each disparity.
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
        check_choice("disparity", self.disparity, ("pairwise", "single"))
        check_choice("penalty", self.penalty, tuple(PENALTIES))

    def names(self, problem: Problem) -> tuple[str, ...]:
        """Names of the objectives, in order."""
        groups = problem.moments.group_texts
        pairs = [f"{first} - {second}" for first, second in combinations(groups, 2)]
        return ("total loss", *(groups if self.disparity == "single" else pairs))

    def values(self, problem: Problem, basis: Array) -> Array:
        """All values; (m,)."""
        kept = problem.kept(basis)
        disparities = self._differences(problem) @ (problem.own_gains - kept)
        return self._values(problem, kept, disparities, basis)

    def evaluate(
        self, problem: Problem, basis: Array, tangent: Tangent | None = None
    ) -> tuple[Array, Array]:
        """All values, (m,), and gradients, (m, d, r), or their tangent parts."""
        images = problem.matrices @ basis
        kept = np.einsum("kia,ia->k", images, basis)
        differences = self._differences(problem)
        disparities = differences @ (problem.own_gains - kept)
        # The chain rule: psi'(Delta) times the derivative of Delta, which is -2 (A_i - A_j) U.
        weights = np.empty((1 + len(differences), len(kept)))
        weights[0] = -2.0 * problem.weights
        slopes = PENALTIES[self.penalty][1](disparities)
        np.multiply(-2.0 * slopes[:, None], differences, out=weights[1:])
        # The tangent part is linear, so it is taken of the k images and not of the m gradients.
        parts = images if tangent is None else tangent(basis, images)
        gradients = (weights @ parts.reshape(len(parts), -1)).reshape(-1, *basis.shape)
        if self._has_alpha:
            pull = basis if tangent is None else tangent(basis, basis[None])[0]
            gradients += 2.0 * np.multiply.outer(self._alphas(len(gradients)), pull)
        return self._values(problem, kept, disparities, basis), gradients

    def units(self, problem: Problem) -> Array:
        """What the gradients are measured in, by the unit of the rows; (m,)."""
        units = np.full(1 + len(self._differences(problem)), problem.scale)
        if self.penalty == "squared":
            units[1:] *= problem.scale
        return units

    def differences(
        self, problem: Problem, basis: Array, tangent: Tangent | None = None
    ) -> Differences | None:
        """What the last p objectives bring to zero, and its derivatives; None if nothing is."""
        if self.penalty == "exponential" or self._has_alpha:
            return None
        images = problem.matrices @ basis
        kept = np.einsum("kia,ia->k", images, basis)
        matrix = self._differences(problem)
        parts = images if tangent is None else tangent(basis, images)
        slopes = (-2.0 * matrix @ parts.reshape(len(parts), -1)).reshape(-1, *basis.shape)
        return matrix @ (problem.own_gains - kept), slopes

    def _values(self, problem: Problem, kept: Array, disparities: Array, basis: Array) -> Array:
        values = np.empty(1 + len(disparities))
        values[0] = problem.weights @ (problem.traces - kept)
        values[1:] = PENALTIES[self.penalty][0](disparities)
        if self._has_alpha:
            values += self._alphas(len(values)) * float(np.square(basis).sum())
        return values

    @property
    def _has_alpha(self) -> bool:
        return not isinstance(self.alpha, float) or self.alpha != 0.0

    def _alphas(self, m: int) -> Array:
        return np.broadcast_to(np.asarray(self.alpha, dtype=np.float64), (m,))

    def _differences(self, problem: Problem) -> Array:
        """Matrix that takes the groups' disparities to those that are penalised."""
        if self.disparity == "pairwise":
            return pair_differences(problem.n_groups)
        return np.eye(problem.n_groups)


@lru_cache
def pair_differences(k: int) -> Array:
    """Matrix that takes the disparities to the differences of all pairs i < j; (pairs, k)."""
    first, second = np.triu_indices(k, 1)
    matrix = np.eye(k)[first] - np.eye(k)[second]
    matrix.setflags(write=False)
    return matrix


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

"""Objectives that are ready to use, and what one of your own has to offer."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fairpca._linalg.types import Array
from fairpca.problem import Problem


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
        return -2.0 * _product(problem.total_matrix, basis)


@dataclass(frozen=True)
class SmallestVariance:
    """Minus the variance that the group which keeps least keeps (max-min fairness).

    Parameters
    ----------
    name : str, default="smallest variance"
        How it is called in histories.

    See Also
    --------
    fairpca.ParetoDescent, fairpca.objectives.Objective

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.objectives import SmallestVariance
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> round(SmallestVariance().value(problem, np.array([[0.8], [0.6]])), 4)
    -0.36
    """

    name: str = "smallest variance"

    def value(self, problem: Problem, basis: Array) -> float:
        """Minus the smallest ``tr(A_i P)``."""
        return -float(problem.kept(basis).min())

    def gradient(self, problem: Problem, basis: Array) -> Array:
        """That of the group which keeps least; where groups tie, of the first of them."""
        return -2.0 * _product(problem.matrices[problem.kept(basis).argmin()], basis)


@dataclass(frozen=True)
class NashObjective:
    """Minus the sum of the logarithms of what the groups keep (Nash social welfare).

    Parameters
    ----------
    name : str, default="Nash welfare"
        How it is called in histories.

    See Also
    --------
    fairpca.ParetoDescent, fairpca.objectives.Objective

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.objectives import NashObjective
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> round(NashObjective().value(problem, np.array([[0.8], [0.6]])), 4)
    -0.7293
    """

    name: str = "Nash welfare"

    def value(self, problem: Problem, basis: Array) -> float:
        """``-sum_i log tr(A_i P)``."""
        return -float(np.log(problem.kept(basis)).sum())

    def gradient(self, problem: Problem, basis: Array) -> Array:
        """``-2 sum_i A_i U / tr(A_i P)``."""
        return -2.0 * _product(problem.weighted_sum(1.0 / problem.kept(basis)), basis)


@dataclass(frozen=True)
class LossDifference:
    """Squared differences of the groups' plain losses, whatever they would lose by themselves.

    Parameters
    ----------
    name : str, default="loss difference"
        How it is called in histories.

    See Also
    --------
    fairpca.ParetoDescent, fairpca.objectives.Objective

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.objectives import LossDifference
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = Problem(GroupMoments.from_rows(X, ["a", "a", "b", "b"]), n_components=1)
    >>> round(LossDifference().value(problem, np.array([[0.8], [0.6]])), 4)
    3.38
    """

    name: str = "loss difference"

    def value(self, problem: Problem, basis: Array) -> float:
        """Half the sum of ``(loss_i - loss_j)^2`` over all pairs."""
        losses = problem.traces - problem.kept(basis)
        return 0.5 * len(losses) * float(np.square(losses - losses.mean()).sum())

    def gradient(self, problem: Problem, basis: Array) -> Array:
        """``-2 k sum_i (loss_i - mean) A_i U``."""
        losses = problem.traces - problem.kept(basis)
        return -2.0 * len(losses) * _product(problem.weighted_sum(losses - losses.mean()), basis)


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
        return 2.0 * _product(offsets.T, offsets @ basis)

    @staticmethod
    def _offsets(problem: Problem) -> Array:
        means = problem.moments.mean
        # Over all pairs, squared differences sum to k times the squared deviations.
        offsets: Array = np.sqrt(len(means)) * (means - means.mean(axis=0))
        return offsets


def _product(matrix: Array, basis: Array) -> Array:
    product: Array = matrix @ basis
    return product

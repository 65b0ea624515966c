"""Nested: a fair subspace in which the first components are a fair subspace too.

Greedily, after Matakos, Ciaperoni and Mannila (2025): given the basis B of the first j dimensions,
choose u orthogonal to it so that the largest measure in the span of B and u, with the constants of
j + 1 dimensions, is the least. That is a problem of one dimension in the complement of B, with
constants that are smaller by what B keeps: docs/exact_solver.md, section 17.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairpca._linalg.types import Array
from fairpca.certificate import Certificate, certify
from fairpca.criteria import Criterion
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers.exact import ExactSolver, certified_solution


@dataclass(frozen=True, eq=False)
class NestedStep:
    """One more dimension.

    Attributes
    ----------
    value : float
        Largest measure in the dimensions so far.
    certificate : Certificate
        How good the last one provably is, given those before it.
    free_value, free_bound : float
        Largest measure in the best subspace of as many dimensions that was found, nested or not,
        and what it cannot be below.

    See Also
    --------
    fairpca.solvers.Nested : Makes them.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.solvers import Nested
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> problem = Problem(GroupMoments.from_rows(X, ["a"] * 100 + ["b"] * 200), n_components=2)
    >>> [step.certificate.status for step in Nested().solve(problem).history["steps"]]
    ['optimal', 'optimal']
    """

    value: float
    certificate: Certificate
    free_value: float
    free_bound: float

    @property
    def price(self) -> float:
        """What nesting costs: how much larger the largest measure is."""
        return max(self.value - self.free_value, 0.0)


@dataclass(frozen=True)
class Nested:
    """Add one dimension after the other, each the best given those before it.

    ``FairPCA(nested=True)`` uses it; ``history["steps"]`` has a `NestedStep` for each dimension.

    Parameters
    ----------
    solver : ExactSolver
        What each dimension is found with, and the best subspaces that are compared with.

    See Also
    --------
    fairpca.fair_pca.NestingTable : The price of nesting.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments, Problem
    >>> from fairpca.solvers import Nested
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> moments = GroupMoments.from_rows(X, ["a"] * 100 + ["b"] * 200)
    >>> three = Nested().solve(Problem(moments, 3))
    >>> two = Nested().solve(Problem(moments, 2))
    >>> bool(np.allclose(three.basis[:, :2], two.basis))
    True
    >>> [round(step.price, 3) for step in three.history["steps"]]
    [0.0, 0.032, 0.026]
    """

    solver: Any = field(default_factory=ExactSolver)

    name = "nested"

    def solve(self, problem: Problem) -> Solution:
        """Find the subspaces and certify them."""
        check_nested(problem.goal, self.solver)
        complement = _Complement(problem.moments)
        basis, steps, n_iter, n_eigen = np.zeros((problem.n_features, 0)), [], 0, 0
        for j in range(1, problem.n_components + 1):
            free_problem = replace(problem, n_components=j)
            free = self.solver.solve(free_problem)
            affine = free_problem.affine
            constants = affine.constants * affine.units - problem.kept(basis)
            step = replace(
                problem,
                moments=complement.moments,
                n_components=1,
                measured_by=(constants, affine.units),
            )
            found = self.solver.solve(step)
            basis = np.column_stack([basis, complement.lift(found.basis)])
            complement.remove(found.basis[:, 0])
            value = float(free_problem.measures(basis).max())
            least = (free.certificate.value, free.certificate.lower_bound)
            steps.append(NestedStep(value, found.certificate, *least))
            n_iter, n_eigen = n_iter + found.n_iter, n_eigen + found.n_eigen + free.n_eigen
        # The last of the free solutions is of the same dimension: its proof bounds this one too.
        certificate = certify(problem, basis, free.certificate.multipliers)
        certificate = replace(certificate, is_nested=True)
        return certified_solution(
            problem,
            basis,
            certificate,
            solver=self.name,
            n_iter=n_iter,
            n_eigen=n_eigen,
            message="each dimension was added to those before it",
            history={"steps": tuple(steps)},
            is_ordered=True,
        )


def check_nested(criterion: Criterion, solver: Any) -> None:
    """Raise ValueError for what cannot be nested."""
    if not criterion.can_be_nested:
        raise ValueError(
            "nested=True minimises the largest measure in each dimension: use "
            "criterion=MinMax(), without max_extra_loss."
        )
    if not isinstance(solver, ExactSolver):
        raise ValueError("nested=True needs solver='exact'.")


class _Complement:
    """Moments in what is left of the space, and the way back."""

    def __init__(self, moments: GroupMoments) -> None:
        self.moments = replace(moments, feature_names=None)
        self._axes = np.eye(moments.n_features)

    def lift(self, basis: Array) -> Array:
        """Columns in the coordinates of the whole space."""
        lifted: Array = self._axes @ basis
        return lifted

    def remove(self, direction: Array) -> None:
        """Leave a direction out: reflect it on the first axis, and drop that."""
        if len(direction) == 1:
            return
        vector = direction.copy()
        vector[0] += np.copysign(np.linalg.norm(direction), direction[0])
        vector /= np.linalg.norm(vector)
        scatter = [_reflected(_reflected(part, vector).T, vector) for part in self.moments.scatter]
        self.moments = replace(
            self.moments,
            mean=_reflected(self.moments.mean, vector)[:, 1:],
            scatter=np.array([part[1:, 1:] for part in scatter]),
        )
        self._axes = _reflected(self._axes, vector)[:, 1:]


def _reflected(rows: Any, vector: Array) -> Array:
    """Rows reflected at the hyperplane orthogonal to a vector of length one."""
    array = np.asarray(rows)
    return array - np.outer(array @ (2.0 * vector), vector)

"""Where the search takes place if losses are far smaller than traces: among what is left out.

A subspace is known by what is orthogonal to it. With the matrices -A_i and d - r dimensions the
same searches find that, from numbers of the size of the losses: docs/exact_solver.md, section 18.
"""

import numpy as np

from fairpca._linalg.bound_cache import BoundCache
from fairpca._linalg.dense import complement
from fairpca._linalg.graded import GradedBackend, GradedLosses
from fairpca._linalg.types import Array
from fairpca.problem import Problem
from fairpca.solvers._exact.effort import Effort
from fairpca.solvers._exact.forms import Forms, WholeSpace, invariant_directions


class LeftOutSpace(WholeSpace):
    """The whole space, in coordinates in which matrices are graded, searched for what is left out.

    Bases in it are of what is left out; those of the whole space are of what is kept.
    """

    def __init__(self, problem: Problem, bounds: BoundCache, parts: GradedLosses) -> None:
        self.n_eigen, self.bounds, self.effort = problem.n_groups + 1, bounds, Effort()
        self._turn = invariant_directions(problem)
        affine = problem.affine
        values = problem.total_eigenpairs[0]
        level = max(float(values[problem.n_components]), np.finfo(float).tiny)
        self._sizes = np.sqrt(level / np.maximum(values, level))
        self.forms = Forms(
            -parts.turned(self._turn) / affine.units[:, None, None],
            -affine.offsets,
            affine.loss_weights,
            problem.moments.n_features - problem.n_components,
            GradedBackend(),
            size=affine.scale,
        )

    def shaped(self, noise: Array) -> Array:
        """Noise that has little of directions in which much would be lost."""
        return noise * self._sizes[:, None]

    def lift(self, basis: Array) -> Array:
        """What is kept where this is left out, in the coordinates of the whole space."""
        return np.asarray(self._turn @ complement(basis)[1])

    def lower(self, basis: Array) -> Array:
        """What is left out where this is kept, in the coordinates of the search."""
        return complement(self._turn.T @ basis)[1]

"""Solution: what a solver returns."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairpca._linalg.types import Array
from fairpca.certificate import Certificate

Progress = Callable[..., bool]
"""Called after each step of a solver, by name with what it has to say of it, such as the best
`bound` and `value` so far; returns whether to stop."""


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A subspace, what it costs each group, and its certificate.

    Attributes
    ----------
    basis : array of shape (d, r)
        Orthonormal columns that span the subspace; more than r where a solver needs them.
    group_losses : array of shape (k,)
        Reconstruction loss of each group.
    disparities : array of shape (k,)
        What each group loses beyond its own best subspace.
    total_loss : float
        Weighted sum of the groups' losses.
    certificate : Certificate
        How good the subspace is, and the proof.
    solver : str
        Name of the solver.
    n_iter : int
        Iterations, in the solver's own counting.
    n_eigen : int
        Eigenproblems of the groups, of ordinary PCA and of the search for the dual solution.
    message : str
        Why the solver stopped.
    history : dict
        What the solver recorded on its way.
    retention : array of shape (n_dimensions,) or None
        What is kept of the variance along each column of the basis, where a solver uses more than
        r columns: between 0 and 1, with sum r. None keeps all.

    See Also
    --------
    fairpca.ExactSolver : Finds one.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import ExactSolver, GroupMoments, Problem
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> problem = Problem(GroupMoments.from_rows(X, ["a"] * 100 + ["b"] * 200), n_components=2)
    >>> solution = ExactSolver().solve(problem)
    >>> solution.basis.shape, solution.certificate.status
    ((4, 2), 'optimal')
    """

    basis: Array
    group_losses: Array
    disparities: Array
    total_loss: float
    certificate: Certificate
    solver: str
    n_iter: int
    n_eigen: int
    message: str
    history: dict[str, Any] = field(default_factory=dict)
    retention: Array | None = None

    def __repr__(self) -> str:
        d, r = self.basis.shape
        return (
            f"Solution(solver={self.solver!r}, {r} of {d} dimensions, "
            f"total_loss={self.total_loss:.6g}, status={self.certificate.status!r}, "
            f"message={self.message!r})"
        )

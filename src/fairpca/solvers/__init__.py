"""The algorithms, by name: each is a small dataclass with one method, ``solve(problem)``."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from fairpca.problem import Problem
from fairpca.solution import Progress, Solution
from fairpca.solvers.constrained import EpsilonConstraint, Lagrangian
from fairpca.solvers.exact import ExactSolver
from fairpca.solvers.front_sweep import end_of_front, sweep
from fairpca.solvers.pareto import ParetoDescent
from fairpca.solvers.pelegrina import PelegrinaFPCA
from fairpca.solvers.relaxation import MultiplicativeWeights, SDPRelaxation


class Solver(Protocol):
    """What an algorithm has to offer.

    See Also
    --------
    fairpca.ExactSolver : The default.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import ExactSolver, FairPCA
    >>> class Quick:
    ...     def solve(self, problem, progress=None):
    ...         return ExactSolver(n_starts=1).solve(problem)
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> fair = FairPCA(2, solver=Quick()).fit(X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> fair.certificate_.status
    'optimal'
    """

    def solve(self, problem: Problem, progress: Progress | None = None) -> Solution:
        """Find a subspace for the problem and certify it.

        A solver of many steps has an attribute `n_steps`, the most of them, calls `progress` after
        each, and stops with what it has when that returns True. Others need not take it. One that
        minimises something of its own, whatever the criterion, has ``has_own_criterion = True``.
        """


SOLVERS: dict[str, Callable[..., Any]] = {
    "exact": ExactSolver,
    "pareto": ParetoDescent,
    "sdp": SDPRelaxation,
    "sdp-iterative": partial(SDPRelaxation, rounding="iterative"),
    "mw": MultiplicativeWeights,
    "mw-iterative": partial(MultiplicativeWeights, rounding="iterative"),
    "epsilon-constraint": EpsilonConstraint,
    "lagrangian": Lagrangian,
    "u-fpca": PelegrinaFPCA,
    "c-fpca": partial(PelegrinaFPCA, constrained=True),
}
"""What makes a solver, by name; each works with its defaults."""

__all__ = [
    "SOLVERS",
    "EpsilonConstraint",
    "ExactSolver",
    "Lagrangian",
    "MultiplicativeWeights",
    "ParetoDescent",
    "PelegrinaFPCA",
    "Progress",
    "SDPRelaxation",
    "Solver",
    "end_of_front",
    "sweep",
]

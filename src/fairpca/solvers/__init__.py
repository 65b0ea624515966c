"""The algorithms, by name: each is a small dataclass with one method, ``solve(problem)``."""

from __future__ import annotations

from typing import Any, Protocol

from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers.exact import ExactSolver


class Solver(Protocol):
    """What an algorithm has to offer."""

    def solve(self, problem: Problem) -> Solution:
        """Find a subspace for the problem and certify it."""


SOLVERS: dict[str, Any] = {ExactSolver.name: ExactSolver}
"""Solver classes by name; each works with its defaults and takes a `random_state`."""

__all__ = ["SOLVERS", "ExactSolver", "Solver"]

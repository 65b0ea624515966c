"""The exact solver: global optimum for two groups, and a certificate for any number."""

from dataclasses import dataclass

from fairpca._rows.checks import check_seed, check_whole_number
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._exact.run import MOST_STARTS, solve_near


@dataclass(frozen=True)
class ExactSolver:
    """Maximise the dual of the relaxed problem, then find a subspace that attains it.

    Two groups are solved to global optimality in every case. For more, the dual gives a bound
    that no subspace beats; a local search from several starts, first from the relaxed solution,
    then from random ones, finds a subspace, and the certificate says how far it can be from the
    best. It stops at the first start that closes the gap. docs/exact_solver.md derives all of it.

    Parameters
    ----------
    n_starts : int, default=40
        The most starts of the local search, for more than two groups. With more than 300 columns
        it also ends after eight starts in a row that bring nothing.
    random_state : int or None, default=None
        Seed of the starts. None is a fixed seed too: an exact solver should repeat itself.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import ExactSolver, GroupMoments, Problem
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> problem = Problem(GroupMoments.from_rows(X, ["a"] * 100 + ["b"] * 200), n_components=2)
    >>> solution = ExactSolver().solve(problem)
    >>> solution.certificate.status
    'optimal'
    >>> bool(abs(solution.disparities[0] - solution.disparities[1]) < 1e-9)
    True
    """

    n_starts: int = MOST_STARTS
    random_state: int | None = None

    name = "exact"

    def __post_init__(self) -> None:
        check_whole_number("n_starts", self.n_starts)
        check_seed(self.random_state)

    def solve(self, problem: Problem) -> Solution:
        """Find the subspace and certify it."""
        return solve_near(problem, self.n_starts, self.random_state)

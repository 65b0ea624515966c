"""The semidefinite relaxation of Samadi et al. (2018), handed to a convex solver, and rounded."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairpca._linalg.sdp import BACKENDS, choose_backend, failure, import_cvxpy, run_program
from fairpca._linalg.types import Array
from fairpca.problem import Problem
from fairpca.solution import Solution
from fairpca.solvers._rounding import ROUNDINGS, project_on_fantope
from fairpca.solvers.conclude import conclude_relaxed
from fairpca.validation import check_choice

_OPTIONS: dict[str, dict[str, Any]] = {
    "clarabel": {},
    "scs": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 50_000},
}


@dataclass(frozen=True)
class SDPRelaxation:
    """Minimise the largest disparity over relaxed projectors, then round.

    The method of Samadi, Tantipongpipat, Morgenstern, Singh and Vempala, "The Price of Fair PCA:
    One Extra Dimension" (2018). Its criterion is "minmax" whatever the problem's is; the
    certificate answers for the problem's. Needs the extra ``fairpca[sdp]``.

    Parameters
    ----------
    rounding : {"lp", "iterative"}, default="lp"
        "lp" takes the vertex of a linear program, with at most r + k - 1 dimensions, as the 2018
        paper does; "iterative" goes to an extreme point of the relaxation, with at most
        ``r + floor(sqrt(2k + 1/4) - 3/2)`` (Morgenstern et al., 2019).
    extra_dimensions : bool, default=True
        Whether to use these dimensions, shortened so that the worst-off group loses no more than
        in the relaxation: what the papers return. Otherwise the result is cut to r dimensions:
        "lp" keeps the directions that are kept most, "iterative" gives up the groups' bounds one
        by one.
    backend : {"auto", "clarabel", "scs"}, default="auto"
        Solver of the semidefinite program; "auto" is Clarabel up to 60 columns, SCS above.

    See Also
    --------
    fairpca.solvers.MultiplicativeWeights : The same relaxation without a convex solver.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.solvers import SDPRelaxation
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> fair = FairPCA(2, solver=SDPRelaxation()).fit(X, sensitive_features=groups)
    >>> fair.n_components_ in (2, 3)
    True
    >>> exactly = SDPRelaxation(extra_dimensions=False)
    >>> FairPCA(2, solver=exactly).fit(X, sensitive_features=groups).n_components_
    2
    """

    rounding: str = "lp"
    extra_dimensions: bool = True
    backend: str = "auto"

    def __post_init__(self) -> None:
        check_choice("rounding", self.rounding, ROUNDINGS)
        check_choice("backend", self.backend, BACKENDS)
        import_cvxpy()

    @property
    def name(self) -> str:
        """Name in `SOLVERS`."""
        return "sdp" if self.rounding == "lp" else "sdp-iterative"

    def solve(self, problem: Problem) -> Solution:
        """Solve the relaxation, round it and certify the result."""
        relaxed, message = self._relax(problem)
        disparities = problem.own_gains - np.einsum("kij,ij->k", problem.matrices, relaxed)
        value = float(disparities.max())
        return conclude_relaxed(
            self, problem, relaxed, message=message, n_iter=0, relaxed_value=value
        )

    def _relax(self, problem: Problem) -> tuple[Array, str]:
        cvxpy = import_cvxpy()
        d, r = problem.moments.n_features, problem.n_components
        unit = float(problem.traces.max()) or 1.0
        projector = cvxpy.Variable((d, d), symmetric=True)
        largest = cvxpy.Variable()
        constraints = [projector >> 0, np.eye(d) - projector >> 0, cvxpy.trace(projector) == r]
        for matrix, gain in zip(problem.matrices / unit, problem.own_gains / unit, strict=True):
            constraints.append(gain - cvxpy.sum(cvxpy.multiply(matrix, projector)) <= largest)
        backend = choose_backend(self.backend, d)
        program = cvxpy.Problem(cvxpy.Minimize(largest), constraints)
        run_program(program, backend, **_OPTIONS[backend])
        if projector.value is None:
            raise failure(backend, f"it ended as {program.status!r}")
        if program.status != "optimal":
            warnings.warn(
                f"The semidefinite program ended as {program.status!r} with {backend}: the result "
                "is less exact than usual, and the certificate says how good it is.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return project_on_fantope(projector.value, r), f"{backend}: {program.status}"

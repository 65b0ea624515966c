"""The relaxation of Samadi et al. (2018), solved in three ways, and rounded to few dimensions.

The relaxation allows any P with ``0 <= P <= I`` and ``tr P = r``: directions that are only kept in
part. Two ways lead to few of them without a group losing more than the largest disparity (or
whatever `offsets` measures) was before:

- the vertex of a linear program over what is kept of P's own eigenvectors, which leaves at most
  ``r + k - 1`` directions (Samadi et al., 2018);
- moving P along symmetric matrices that change what every group keeps by the same amount, until
  no such matrix is left: an extreme point, with at most ``r + floor(sqrt(2k + 1/4) - 3/2)``
  directions (Morgenstern et al. and Tantipongpipat et al., 2019).

Both can be cut to exactly r directions, at a cost to the groups.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from fairpca._linalg.backends import NUMPY
from fairpca._linalg.dense import leading_eigenpairs
from fairpca._linalg.types import Array
from fairpca.problem import Problem
from fairpca.solution import Progress, Solution
from fairpca.solvers.conclude import conclude
from fairpca.validation import check_choice, check_number, check_whole_number

ROUNDINGS = ("lp", "iterative")
BACKENDS = ("auto", "clarabel", "scs")

_WHOLE = 1e-6
"""How near to 0 or 1 a retention counts as that: relaxed solutions have no more digits."""

_NO_RISE = 1e-9
"""Rise of what all groups keep, relative to the largest entry of a matrix, that is rounding."""

_CLARABEL_COLUMNS = 25
"""Up to this number of columns the interior-point solver is used: with 40 SCS takes an eighth of
the time (both have 1e-7)."""

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
        Solver of the semidefinite program; "auto" is Clarabel up to 25 columns, SCS above.

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

    has_own_criterion = True

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
        d, r = problem.n_features, problem.n_components
        unit = float(problem.traces.max()) or 1.0
        projector = cvxpy.Variable((d, d), symmetric=True)
        largest = cvxpy.Variable()
        constraints = [projector >> 0, np.eye(d) - projector >> 0, cvxpy.trace(projector) == r]
        for matrix, gain in zip(problem.matrices / unit, problem.own_gains / unit, strict=True):
            constraints.append(gain - cvxpy.sum(cvxpy.multiply(matrix, projector)) <= largest)
        backend = self.backend
        if backend == "auto":
            backend = "clarabel" if d <= _CLARABEL_COLUMNS else "scs"
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


@dataclass(frozen=True)
class MultiplicativeWeights:
    """Minimise the largest disparity by raising the weights of groups that lose much, then round.

    Each step solves ordinary PCA with the groups weighted, and multiplies their weights by the
    exponential of their disparities (Samadi et al., 2018). The average of the projectors tends to
    the solution of the semidefinite relaxation. A fixed step can stall far from it, so the step
    adapts by itself: it is AdaHedge's (De Rooij, Van Erven, Grünwald and Koolen, 2014). The
    criterion is "minmax" whatever the problem's is; the certificate answers for the problem's.

    Parameters
    ----------
    rounding : {"lp", "iterative"}, default="lp"
        How the average becomes few dimensions: see `SDPRelaxation`.
    extra_dimensions : bool, default=True
        Whether more than r dimensions may be used: see `SDPRelaxation`.
    iterate : {"average", "last"}, default="average"
        Whether to return the average, rounded, or the last weighted PCA, which has r dimensions
        and no guarantee.
    tol : float, default=1e-4
        Duality gap, relative to tr(A), at which to stop.
    max_iter : int, default=20000
        The most steps; a warning says when they did not suffice.

    See Also
    --------
    fairpca.solvers.SDPRelaxation : The same relaxation by a convex solver.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> X = np.random.default_rng(0).normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> fair = FairPCA(2, solver="mw").fit(X, sensitive_features=["a"] * 100 + ["b"] * 200)
    >>> fair.solution_.history["gap"] < 1e-4 * 28
    True
    """

    rounding: str = "lp"
    extra_dimensions: bool = True
    iterate: str = "average"
    tol: float = 1e-4
    max_iter: int = 20_000

    has_own_criterion = True

    def __post_init__(self) -> None:
        check_choice("rounding", self.rounding, ROUNDINGS)
        check_choice("iterate", self.iterate, ("average", "last"))
        check_number("tol", self.tol, least=0.0)
        check_whole_number("max_iter", self.max_iter)

    @property
    def name(self) -> str:
        """Name in `SOLVERS`."""
        return "mw" if self.rounding == "lp" else "mw-iterative"

    @property
    def n_steps(self) -> int:
        """The most steps, for progress bars."""
        return self.max_iter

    def solve(self, problem: Problem, progress: Progress | None = None) -> Solution:
        """Approach the relaxation, round it and certify the result."""
        game = _Game(problem)
        message = iterate(self, game.step, problem.scale, progress)
        about: dict[str, Any] = {
            "message": message,
            "n_iter": len(game.gaps),
            "relaxed_value": game.value,
            "bound": game.bound,
            "gap": game.gaps[-1],
            "weights": game.weights,
            "gaps": np.array(game.gaps),
        }
        if self.iterate == "average":
            return conclude_relaxed(self, problem, game.average, **about)
        return conclude(self, problem, game.basis, relaxed=game.average, **about)


class _Game:
    """The groups' weights against the projector that answers them best."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.basis = problem, problem.least_loss_basis
        k, d = problem.n_groups, problem.n_features
        self.weights, self.average = np.full(k, 1.0 / k), np.zeros((d, d))
        self.value, self.bound = np.inf, -np.inf
        self.gaps: list[float] = []
        self._sum, self._mixability = np.zeros(k), 0.0

    def step(self) -> float:
        """Answer the weights, then move them; returns the gap."""
        problem = self.problem
        # Large matrices are solved iteratively, and the last answer is a good start.
        combined = problem.weighted_sum(self.weights)
        self.basis = basis = leading_eigenpairs(combined, problem.n_components, self.basis)[1]
        disparities = problem.disparities(basis)
        mean, largest = float(self.weights @ disparities), float(disparities.max())
        n_steps = len(self.gaps) + 1
        self.average += (basis @ basis.T - self.average) / n_steps
        self._sum += disparities
        self.value, self.bound = float(self._sum.max()) / n_steps, max(self.bound, mean)
        self.gaps.append(max(self.value - self.bound, 0.0))
        # AdaHedge lowers its rate by what the weights have lost to their soft maximum.
        soft = largest
        if self._mixability > 0.0:
            rate = np.log(problem.n_groups) / self._mixability
            raised = np.exp(rate * (disparities - largest))
            soft += float(np.log(self.weights @ raised)) / rate
        self._mixability += max(soft - mean, 0.0)
        if self._mixability > 0.0:
            rate = np.log(problem.n_groups) / self._mixability
            raised = np.exp(rate * (self._sum - self._sum.max()))
            self.weights = raised / raised.sum()
        return self.gaps[-1]


def conclude_relaxed(
    solver: Any, problem: Problem, relaxed: Array, *, offsets: Array | None = None, **about: Any
) -> Solution:
    """The solution that a relaxed projector is, rounded as the solver's attributes say."""
    basis, retention = round_relaxed(
        problem, relaxed, solver.rounding, extra_dimensions=solver.extra_dimensions, offsets=offsets
    )
    return conclude(solver, problem, basis, retention, relaxed=relaxed, **about)


def iterate(solver: Any, step: Callable[[], float], unit: float, progress: Progress | None) -> str:
    """Take steps, each of which returns the gap that is left; returns why they ended."""
    gap = 0.0
    for _ in range(solver.max_iter):
        gap = step()
        if gap <= solver.tol * unit:
            return "duality gap closed"
        if progress is not None and progress():
            return "stopped by a callback"
    warnings.warn(
        f"The solver {solver.name!r} used all its steps with a duality gap of {gap / unit:.1g} of "
        "the total variance left: raise max_iter, or tol to accept it.",
        ConvergenceWarning,
        stacklevel=5,
    )
    return "most steps reached"


def round_relaxed(
    problem: Problem,
    relaxed: Array,
    rounding: str,
    *,
    extra_dimensions: bool,
    offsets: Array | None = None,
) -> tuple[Array, Array | None]:
    """A basis and the retention of its columns (see `Solution`), None where all are kept whole.

    The groups are held to ``offsets_i - tr(A_i P)``, the disparities by default.
    """
    offsets = problem.own_gains if offsets is None else offsets
    vectors, unit = NUMPY.eigh(relaxed)[1], float(problem.traces.max()) or 1.0
    kept = np.einsum("kia,ia->ka", problem.matrices @ vectors, vectors) / unit
    retention = _vertex(kept, offsets / unit, problem.n_components)
    if rounding == "lp" and not extra_dimensions:
        return vectors[:, np.argsort(-retention, kind="stable")[: problem.n_components]], None
    if rounding == "iterative":
        # From the vertex: a relaxed solution to few digits keeps every direction in part.
        vectors, retention = _extreme_point(
            problem, vectors, retention, offsets, whole=not extra_dimensions
        )
    used = retention > 0.0
    vectors, retention = vectors[:, used], retention[used]
    return (vectors, None) if len(retention) == problem.n_components else (vectors, retention)


def project_on_fantope(matrix: Array, r: int) -> Array:
    """The nearest symmetric matrix with eigenvalues between 0 and 1 that sum to r."""
    values, vectors = NUMPY.eigh((matrix + matrix.T) / 2)
    low, high = values[-1] - 1.0, values[0]
    for _ in range(100):
        level = (low + high) / 2
        if np.clip(values - level, 0.0, 1.0).sum() > r:
            low = level
        else:
            high = level
    nearest: Array = (vectors * np.clip(values - (low + high) / 2, 0.0, 1.0)) @ vectors.T
    return nearest


def _vertex(kept: Array, offsets: Array, r: int) -> Array:
    """A vertex x that minimises the largest ``offsets - kept @ x``, by the dual simplex method.

    The entries of x are from 0 to 1 and sum to r.
    """
    k, n = kept.shape
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.column_stack([-kept, -np.ones(k)]),
        b_ub=-offsets,
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[r],
        bounds=[(0.0, 1.0)] * n + [(None, None)],
        method="highs-ds",
    )
    if found.x is None:
        raise RuntimeError(f"A linear program could not be solved: {found.message}")
    return _snapped(found.x[:n])


def _extreme_point(
    problem: Problem, vectors: Array, retention: Array, offsets: Array, *, whole: bool
) -> tuple[Array, Array]:
    """Move to a point from which no direction is left that treats all groups alike.

    If `whole`, groups are given up one by one when none is left, until every direction is kept or
    not (iterative rounding): first those that would be best off if they kept nothing of what is
    split, then the one without which the next move costs least.
    """
    held = list(range(problem.n_groups))
    while True:
        split = (retention > 0.0) & (retention < 1.0)
        f = int(split.sum())
        if f == 1:  # only rounding keeps it from being whole, for the sum is
            retention = np.where(
                split, float((retention == 1.0).sum() < problem.n_components), retention
            )
            f = 0
        if f == 0:
            return vectors, retention
        inner = vectors[:, split].T @ (problem.matrices @ vectors[:, split])
        if f * (f + 1) // 2 > len(held):
            vectors, retention = _moved(vectors, retention, split, _common_direction(inner[held]))
            continue
        if not whole:
            return vectors, retention
        safe = offsets - problem.kept(vectors[:, retention == 1.0])
        held = sorted(held, key=lambda i: float(safe[i]))[-(f * (f + 1) // 2) :]
        moves = []
        for given_up in held:
            rest = [i for i in held if i != given_up]
            direction = _common_direction(inner[rest])
            for signed in (direction, -direction):
                state = _moved(vectors, retention, split, signed)
                value = float((offsets - problem.kept(*state)).max())
                moves.append((value, rest, state))
        _, held, (vectors, retention) = min(moves, key=lambda move: move[0])


def _common_direction(inner: Array) -> Array:
    """A symmetric matrix without trace that changes what all groups keep by the same amount.

    Of all such matrices, the one along which that amount rises fastest, if it rises at all.
    """
    m, f = len(inner), inner.shape[-1]
    rows, columns = np.triu_indices(f)
    # Coordinates in which the inner product is that of matrices.
    weights = np.where(rows == columns, 1.0, np.sqrt(2.0))
    coordinates = inner[:, rows, columns] * weights if m else np.zeros((0, len(rows)))
    size = float(np.abs(coordinates).max(initial=0.0)) or 1.0
    coordinates = coordinates / size
    trace = (rows == columns).astype(float)
    conditions = np.vstack([coordinates[1:] - coordinates[:1], trace])
    free = np.linalg.svd(conditions)[2][len(conditions) :]
    rise = free @ coordinates[0] if m else np.zeros(len(free))
    chosen = rise @ free if np.linalg.norm(rise) > _NO_RISE else free[-1]
    matrix = np.zeros((f, f))
    matrix[rows, columns] = matrix[columns, rows] = chosen / weights
    return matrix


def _moved(
    vectors: Array, retention: Array, split: NDArray[np.bool_], direction: Array
) -> tuple[Array, Array]:
    """Move what is kept in part along the direction until one of it is 0 or 1."""
    inside = retention[split]
    longest = np.inf
    for room, sign in ((inside, -1.0), (1.0 - inside, 1.0)):
        scaled = sign * direction / np.sqrt(np.outer(room, room))
        longest = min(
            longest, 1.0 / max(float(np.linalg.eigvalsh(scaled)[-1]), np.finfo(float).tiny)
        )
    values, turn = NUMPY.eigh(np.diag(inside) + longest * direction)
    moved = _snapped(np.clip(values, 0.0, 1.0))
    if ((moved > 0.0) & (moved < 1.0)).all():  # rounding kept it from arriving
        nearest = int(np.argmin(np.minimum(moved, 1.0 - moved)))
        moved[nearest] = round(moved[nearest])
    vectors, retention = vectors.copy(), retention.copy()
    vectors[:, split], retention[split] = vectors[:, split] @ turn, moved
    return vectors, retention


def _snapped(retention: Array) -> Array:
    return np.where(retention < _WHOLE, 0.0, np.where(retention > 1.0 - _WHOLE, 1.0, retention))


def import_cvxpy() -> Any:
    """Return cvxpy, or say which extra brings it."""
    try:
        import cvxpy
    except ImportError as error:
        raise ImportError("Semidefinite programs need cvxpy: install `fairpca[sdp]`.") from error
    return cvxpy


def run_program(program: Any, backend: str, **options: Any) -> None:
    """Run a program of cvxpy; a breakdown of its solver is a RuntimeError.

    How accurate the result is, the caller has to measure: no warning says so.
    """
    cvxpy = import_cvxpy()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            program.solve(solver=backend.upper(), **options)
    except cvxpy.error.SolverError as error:
        raise failure(backend, "it broke down") from error


def failure(backend: str, reason: str) -> RuntimeError:
    """The error for a program that was not solved."""
    other = "scs" if backend == "clarabel" else "clarabel"
    return RuntimeError(
        f"The solver {backend!r} did not solve the semidefinite program ({reason}): try "
        f"backend={other!r} or other parameters."
    )

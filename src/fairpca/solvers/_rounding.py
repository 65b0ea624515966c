"""From a relaxed projector to few dimensions, as the published methods do it.

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

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from fairpca._linalg.backends import NUMPY
from fairpca._linalg.types import Array
from fairpca.problem import Problem

ROUNDINGS = ("lp", "iterative")

_WHOLE = 1e-6
"""How near to 0 or 1 a retention counts as that: relaxed solutions have no more digits."""

_NO_RISE = 1e-9
"""Rise of what all groups keep, relative to the largest entry of a matrix, that is rounding."""


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
    vectors, retention = _lp_vertex(problem, relaxed, offsets)
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


def least_largest(
    kept: Array, offsets: Array, total: float, most: float | None
) -> tuple[Array, Array]:
    """A vertex x that minimises the largest ``offsets - kept @ x``, and its multipliers.

    The entries of x are from 0 to `most` and sum to the total; by the dual simplex method of HiGHS.
    """
    k, n = kept.shape
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.column_stack([-kept, -np.ones(k)]),
        b_ub=-offsets,
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[total],
        bounds=[(0.0, most)] * n + [(None, None)],
        method="highs-ds",
    )
    if found.x is None:
        raise RuntimeError(f"A linear program could not be solved: {found.message}")
    return found.x[:n], -found.ineqlin.marginals


def _lp_vertex(problem: Problem, relaxed: Array, offsets: Array) -> tuple[Array, Array]:
    """Retention of the eigenvectors at a vertex that minimises the largest ``offset - kept``."""
    _, vectors = NUMPY.eigh(relaxed)
    unit = float(problem.traces.max()) or 1.0
    kept = np.einsum("kia,ia->ka", problem.matrices @ vectors, vectors) / unit
    retention, _ = least_largest(kept, offsets / unit, problem.n_components, 1.0)
    return vectors, _snapped(retention)


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

"""What the pictures of a report are drawn from, beside the numbers of its tables."""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from fairpca._linalg.types import Array
from fairpca.base import solution_axes
from fairpca.data import GroupedData
from fairpca.inspection.front import ParetoFront
from fairpca.problem import Problem

_MOST_DIMENSIONS = 30
"""Dimensions up to which losses are shown, unless the report has more itself."""

_MOST_COLUMNS = 1000
"""Columns up to which more eigenvectors are found for this picture than the report needs."""

_MOST_WORK = 5e8
"""Groups times columns cubed up to which the groups' own PCA is found in every dimension."""

_SEEN = 40
"""Rows of a group that are drawn at the least, if it has them, so that it can be seen."""

_STEPS = 999
"""Places are rounded to this part of the picture's width: what a picture shows, not more."""

_TAIL = 0.005
"""Share of the rows on each side that may lie beyond the picture, so that few do not squeeze it."""


def losses_by_dimension(problem: Problem, shown: NDArray[np.int64]) -> dict[str, Any]:
    """Loss of some groups with ordinary PCA in 1, 2, … dimensions, and with PCAs of their own.

    `own` is None where that would take long.
    """
    vectors, d = problem.total_eigenpairs[1], problem.moments.n_features
    most = min(d, max(_MOST_DIMENSIONS, problem.n_components + 1))
    if vectors.shape[1] < most and d <= _MOST_COLUMNS:
        total = problem.weighted_sum(problem.weights)
        vectors = scipy.linalg.eigh(total, subset_by_index=[d - most, d - 1])[1][:, ::-1]
    most = min(most, vectors.shape[1])
    kept = np.cumsum([problem.kept(vectors[:, [j]]) for j in range(most)], axis=0)
    losses = np.maximum(problem.traces - kept, 0.0).T[shown]
    own = None
    if problem.n_groups * float(d) ** 3 <= _MOST_WORK:
        values = np.maximum(np.linalg.eigvalsh(problem.matrices[shown])[:, ::-1], 0.0)
        own = np.maximum(problem.traces[shown, None] - np.cumsum(values, axis=1), 0.0)[:, :most]
    return {"groups": shown, "losses": losses, "own": own}


def places_of_rows(
    front: ParetoFront,
    grouped_data: GroupedData,
    most: int,
    least_named: int,
    rng: np.random.Generator,
) -> dict[str, Any] | None:
    """Some rows in the first two components, with ordinary PCA and at the fairest point.

    Groups whose names are not shown have no rows here. None where there is nothing to show.
    """
    problem = front.problem
    count = problem.moments.count
    shown = np.flatnonzero(count >= least_named)
    if not most or not len(shown) or problem.scale == 0.0:
        return None
    even = most * count[shown] / count[shown].sum()
    quota = np.maximum(even, _SEEN)
    quota = np.minimum(np.floor(quota * min(1.0, most / quota.sum())), count[shown]).astype(int)
    if not quota.any():
        return None
    members, groups = [], []
    for group, size in zip(shown, quota, strict=True):
        own = np.flatnonzero(grouped_data.members(int(group)))
        members.append(np.sort(rng.choice(own, min(int(size), len(own)), replace=False)))
        groups += [int(group)] * len(members[-1])
    # Where groups overlap, a row has a mark for each of its own.
    n_shown = len(np.unique(np.concatenate(members)))
    chosen = rng.permutation(len(groups))  # so that no group lies on top of the others
    block = grouped_data.rows[np.concatenate(members)[chosen]]
    dense = block.toarray() if scipy.sparse.issparse(block) else np.asarray(block, np.float64)
    rows = dense - problem.moments.total_mean
    places = [rows @ _turned(problem.pca_basis[:, :2])]
    if len(front) > 1:
        places.append(rows @ solution_axes(problem, front[-1]).components[:2].T)
    ends = np.quantile(np.concatenate(places), [_TAIL, 1.0 - _TAIL], axis=0)
    middle, half = ends.mean(axis=0), 0.55 * np.maximum(np.ptp(ends, axis=0), 0.0)
    half = np.where(half > 0.0, half, 1.0)
    steps = [np.clip((place - middle + half) / (2.0 * half), 0.0, 1.0) * _STEPS for place in places]
    return {
        "groups": np.array(groups)[chosen],
        "places": [np.round(place).astype(int) for place in steps],
        "steps": _STEPS,
        "low": middle - half,
        "high": middle + half,
        "shown": n_shown,
        "all": n_shown == problem.moments.n_rows,
        "evenly": bool((even >= _SEEN).all() or (count == count[0]).all()),
        "groups_left_out": int((count < least_named).sum()),
    }


def _turned(basis: Array) -> Array:
    """The basis with the signs that PCA's components have: the largest entry is positive."""
    largest = np.abs(basis).argmax(axis=0)
    signs: Array = np.where(basis[largest, np.arange(basis.shape[1])] < 0.0, -1.0, 1.0)
    return basis * signs

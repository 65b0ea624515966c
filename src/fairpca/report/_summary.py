"""All that a report shows, as plain data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np

import fairpca
from fairpca._groups import label_text
from fairpca.front import ParetoFront, PosedRows
from fairpca.report._names import shown_names
from fairpca.report._resampling import Intervals, disparity_intervals
from fairpca.report._words import Facts, finding, warnings
from fairpca.solvers.exact import feasibility

_MOST_COMPONENTS, _MOST_LOADINGS = 10, 8
"""How many components are shown, and how many columns of each."""

_SEED = 0
"""Of the draws, where none is given."""


def intervals_of(
    posed: PosedRows,
    front: ParetoFront,
    n_resamples: int,
    progress: Callable[[int, int], None],
) -> Intervals | None:
    """Intervals of the disparities with ordinary PCA, first, and at each point; None if unasked."""
    if n_resamples == 0:
        return None
    return disparity_intervals(
        posed.problem,
        posed.rows,
        posed.codes,
        posed.weights,
        [posed.problem.pca_basis, *(solution.basis for solution in front)],
        n_resamples,
        np.random.default_rng(_SEED if front.random_state is None else front.random_state),
        progress,
    )


def summarise(
    front: ParetoFront, intervals: Intervals | None, *, title: str, code: str
) -> dict[str, Any]:
    """Everything that is in a report."""
    problem = front.problem
    moments = problem.moments
    groups = shown_names([label_text(label) for label in moments.labels])
    features = shown_names(_feature_names(front))
    pca_losses = problem.group_losses(problem.pca_basis)
    pca_disparities = problem.disparities(problem.pca_basis)
    worst, best = int(pca_disparities.argmax()), int(pca_disparities.argmin())
    difference = None
    if intervals is not None and worst != best:
        difference = intervals.of_difference(pca_disparities, 0, worst, best)
    pca_total_loss = problem.total_loss(problem.pca_basis)
    facts = Facts(front, groups, features, pca_disparities, pca_total_loss, difference)
    summary = {
        "title": title,
        "made_with": f"fairpca {fairpca.__version__}",
        "made_on": date.today().isoformat(),
        "rows": int(moments.count.sum()),
        "columns": moments.n_features,
        "dimensions": problem.n_components,
        "loss": problem.loss,
        "centering": problem.centering,
        "finding": finding(facts),
        "warnings": warnings(facts),
        "groups": [
            {
                "name": name,
                "rows": moments.count[i],
                "variance": problem.traces[i],
                "own_loss": problem.own_losses[i],
            }
            for i, name in enumerate(groups)
        ],
        "pca": {
            "total_loss": pca_total_loss,
            "spread": np.ptp(pca_disparities),
            "losses": pca_losses,
            "disparities": pca_disparities,
            **_interval(intervals, 0),
        },
        "points": [
            _point(front, i, features)
            | {"extra_loss": facts.extra_loss(i)}
            | _interval(intervals, i + 1)
            for i in range(len(front))
        ],
        "choices": {
            "least_loss": 0,
            "one_percent": front.select(max_extra_loss=0.01),
            "knee": front.select(knee=True),
            "fairest": len(front) - 1,
        },
        "spread_bound": front.spread_bound,
        "rounding": feasibility(problem),
        "minmax_disparities": front[-1].certificate.minmax_disparities,
        "resampling": {
            "draws": 0 if intervals is None else intervals.draws.shape[2],
            "worst": worst,
            "best": best,
            "difference": difference,
        },
        "code": code,
    }
    plain: dict[str, Any] = _plain(summary)
    return plain


def _feature_names(front: ParetoFront) -> list[str]:
    moments = front.problem.moments
    if moments.feature_names is not None:
        return list(moments.feature_names)
    return [f"column {j}" for j in range(moments.n_features)]


def _point(front: ParetoFront, i: int, features: list[str]) -> dict[str, Any]:
    solution = front[i]
    fair = front.estimator(i)
    components = []
    for component in fair.components_[:_MOST_COMPONENTS]:
        largest = np.argsort(-np.abs(component), kind="stable")[:_MOST_LOADINGS]
        components.append([[features[j], component[j]] for j in largest])
    return {
        "spread": front.spread[i],
        "total_loss": front.total_loss[i],
        "losses": solution.group_losses,
        "disparities": solution.disparities,
        "status": solution.certificate.status,
        "relative_gap": solution.certificate.relative_gap,
        "certificate": solution.certificate.sentences(),
        "explained_variance_ratio": fair.explained_variance_ratio_[:_MOST_COMPONENTS],
        "components": components,
    }


def _interval(intervals: Intervals | None, subspace: int) -> dict[str, Any]:
    if intervals is None:
        return {"low": None, "high": None}
    return {"low": intervals.low[subspace], "high": intervals.high[subspace]}


def _plain(value: Any) -> Any:
    """The value with lists for arrays, and None for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value

"""All that a report shows, as plain data."""

from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._version import __version__
from fairpca.base import solution_axes
from fairpca.generalization.bootstrap import Intervals
from fairpca.inspection.front import ParetoFront
from fairpca.report._cautions import warnings
from fairpca.report._data import DataFacts
from fairpca.report._facts import Facts
from fairpca.report._pictures import losses_by_dimension
from fairpca.report._text import shown_names
from fairpca.report._words import chance, compared, finding, n_leads, spoken
from fairpca.text import distinct_texts

_MOST_COMPONENTS, _MOST_LOADINGS = 10, 8
"""How many components are shown, and how many columns of each."""

MOST_GROUPS = 40
"""How many groups charts have rows for; the table has all."""


def summarise(
    front: ParetoFront,
    intervals: Intervals | None,
    indistinct: NDArray[np.bool_],
    *,
    title: str,
    code: str,
    data: DataFacts,
    least_named: int,
    places: dict[str, Any] | None,
) -> dict[str, Any]:
    """Everything that is in a report."""
    problem, moments = front.problem, front.problem.moments
    texts = distinct_texts(moments.labels, moments.group_names)
    groups = shown_names(
        [
            text if count >= least_named else "(name not shown)"
            for text, count in zip(texts, moments.count, strict=True)
        ]
    )
    facts = Facts(front, groups, data, intervals, indistinct)
    # Those of too few rows come last, whatever they lose.
    order = np.lexsort((-facts.pca_measures, ~facts.enough))
    measured = facts.measured
    ends: list[dict[str, Any]] = [{"low": None, "high": None}] * (len(front) + 1)
    if intervals is not None:
        low, high = measured.shown(intervals.low), measured.shown(intervals.high)
        low, high = (high, low) if measured.is_kept else (low, high)
        ends = [{"low": low[i], "high": high[i]} for i in range(len(front) + 1)]
    summary = {
        "title": title,
        "made_with": f"fairpca {__version__}",
        "made_on": date.today().isoformat(),
        "rows": moments.n_rows,
        "columns": moments.n_features,
        "varies": problem.scale > 0.0,
        "dimensions": problem.n_components,
        "weighted": not np.array_equal(moments.weight, moments.count),
        "over": front.over,
        "measure": {
            "noun": measured.noun,
            "worst": measured.worst,
            "meaning": measured.meaning,
            "axis": measured.axis,
            "from_own_pca": bool(measured.beyond),
            "relative": measured.is_relative,
            "kept": measured.is_kept,
            "rounding": problem.negligible_spread,
        },
        "data": {
            "name": data.name,
            "attributes": data.attributes,
            "among": data.among,
            "about": data.about(),
            "sentences": data.sentences(),
            "rows_left_out": data.left_out,
            "repeated": data.repeated and data.repeated._asdict(),
            **data.table(),
        },
        "finding": finding(facts),
        "n_leads": n_leads(facts),
        "evidence": facts.evidence,
        "least_named": least_named if (moments.count < least_named).any() else None,
        "chance": chance(facts),
        "warnings": warnings(facts),
        "equality": facts.equality,
        "fairest": facts.fairest,
        "levels_down": facts.levels_down,
        "groups": [
            dict(zip(("name", "rows", "variance", "own_loss", "enough"), group, strict=True))
            for group in zip(
                groups, moments.count, problem.traces, problem.own_losses, facts.enough, strict=True
            )
        ],
        "pca": {
            "total_loss": problem.total_loss(problem.pca_basis),
            "largest": abs(facts.pca_measures.max()),
            "spread": facts.pca_spread,
            "losses": problem.group_losses(problem.pca_basis),
            "disparities": problem.disparities(problem.pca_basis),
            "measures": measured.shown(facts.pca_measures),
            **ends[0],
        },
        "points": [_point(facts, i) | ends[i + 1] for i in range(len(front))],
        "order": order,
        "most_groups": MOST_GROUPS,
        "by_dimension": losses_by_dimension(problem, order[:MOST_GROUPS]),
        "rows_shown": places,
        "choices": {
            "least_loss": 0,
            "one_percent": front.select(max_extra_loss=0.01),
            "knee": front.select(knee=True),
            "fairest": len(front) - 1,
        },
        "unfairness_bound": _shown_bound(facts),
        "rounding": problem.negligible_spread * (problem.scale if measured.is_relative else 1.0),
        "resampling": {
            "draws": 0 if intervals is None else intervals.draws.shape[2],
            "worst": facts.worst,
            "best": facts.best,
            "difference": facts.difference,
        },
        "code": code,
    }
    plain: dict[str, Any] = _plain(summary)
    return plain


def _shown_bound(facts: Facts) -> float | None:
    """What no subspace can do better than, where that is not nothing."""
    bound = facts.front.unfairness_bound
    says_nothing = abs(bound) <= facts.problem.negligible_spread
    return None if says_nothing else facts.measured.level(bound)


def _point(facts: Facts, i: int) -> dict[str, Any]:
    front, measured = facts.front, facts.measured
    solution = front[i]
    axes = solution_axes(front.problem, solution)
    components = []
    for component in axes.components[:_MOST_COMPONENTS]:
        largest = np.argsort(-np.abs(component), kind="stable")[:_MOST_LOADINGS]
        components.append([[facts.data.features[j], component[j]] for j in largest])
    return {
        "unfairness": measured.level(front.unfairness[i]),
        "largest": abs(front.largest[i]),
        "spread": front.spread[i],
        "total_loss": front.total_loss[i],
        "extra_loss": front.extra_loss[i],
        "losses": solution.group_losses,
        "disparities": solution.disparities,
        "measures": measured.shown(front.measures[i]),
        "status": solution.certificate.status,
        "relative_gap": solution.certificate.relative_gap,
        "spoken": spoken(facts, i),
        "compared": compared(facts, i),
        "certificate": solution.certificate.sentences(),
        "explained_variance_ratio": axes.explained_variance_ratio[:_MOST_COMPONENTS],
        "components": components,
    }


def _plain(value: Any) -> Any:
    """The value with lists for arrays, and None for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value

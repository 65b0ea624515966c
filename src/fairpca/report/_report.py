"""report, and the Report that it makes: all that it shows as plain data, and as a page."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from fairpca._linalg.dense import fix_signs
from fairpca._version import __version__
from fairpca.base import solution_axes
from fairpca.choices import MIN_ROWS
from fairpca.criteria import MinMax, SoftMinMax
from fairpca.data import GroupedData
from fairpca.files.atomic import replacing
from fairpca.generalization.bootstrap import SEED, Intervals, check_resamples, measure_intervals
from fairpca.generalization.permutation_test import permutation_test
from fairpca.group_table import NO_CHANGE
from fairpca.groups import groups_of_parts
from fairpca.inspection.compare import Comparison, comparison_of
from fairpca.inspection.pareto_front import (
    ParetoFront,
    pareto_front,
    prepare_front,
    shown_measures,
)
from fairpca.measures import check_measure
from fairpca.problem import Problem
from fairpca.report._facts import DataFacts, Facts, amount, describe
from fairpca.report._names import harmless, number, percent, shown_names
from fairpca.report._words import chance, compared, finding, headline, proof, spoken, warnings
from fairpca.solvers import ExactSolver
from fairpca.tables.preparation import ColumnOutcome
from fairpca.text import MOST_ROWS, distinct_texts, in_rows
from fairpca.validation import Progress, check_progress, check_whole_number

_MOST_DIMENSIONS = 30
"""Dimensions up to which losses are shown, unless the report has more itself."""

_MOST_COLUMNS = 300
"""Columns up to which PCA, also of each group alone, is found in more dimensions than one."""

_SEEN = 40
"""Rows of a group that are drawn at the least, if it has them, so that it can be seen."""

_STEPS = 999
"""Places are rounded to this part of the picture's width: what a picture shows, not more."""

_TAIL = 0.005
"""Share of the rows on each side that may lie beyond the picture, so that few do not squeeze it."""


def losses_by_dimension(problem: Problem, shown: NDArray[np.int64]) -> dict[str, Any]:
    """Loss of some groups with ordinary PCA in 1, 2, … dimensions, and with PCAs of their own.

    With many columns there are fewer dimensions, and `own` is None.
    """
    vectors, d = problem.total_eigenpairs[1], problem.n_features
    most, own = min(d, max(_MOST_DIMENSIONS, problem.n_components + 1)), None
    if d <= _MOST_COLUMNS:
        vectors = np.linalg.eigh(problem.weighted_sum(problem.weights))[1][:, ::-1]
        values = np.maximum(np.linalg.eigvalsh(problem.matrices[shown])[:, ::-1], 0.0)
        own = np.maximum(problem.traces[shown, None] - np.cumsum(values, axis=1), 0.0)[:, :most]
    kept = np.cumsum([problem.kept(vector[:, None]) for vector in vectors.T[:most]], axis=0)
    losses = np.maximum(problem.traces - kept, 0.0).T[shown]
    return {"groups": shown, "losses": losses, "own": own}


def places_of_rows(
    front: ParetoFront,
    grouped_data: GroupedData,
    most: int,
    rng: np.random.Generator,
) -> dict[str, Any] | None:
    """Some rows in the first two components, with ordinary PCA and at the fairest point.

    Groups whose names are not shown have no rows here. None where there is nothing to show.
    """
    problem = front.problem
    count = problem.moments.count
    shown = np.flatnonzero(count >= MIN_ROWS)
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
    places = [rows @ fix_signs(problem.pca_basis[:, :2])]
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
        "groups_left_out": int((count < MIN_ROWS).sum()),
    }


_MOST_COMPONENTS, _MOST_LOADINGS = 10, 8
"""How many components are shown, and how many columns of each."""

_MIRRORED = 1e-9
"""Sum of the weights of two columns, in every component, below which one is shown for both: a 0/1
column for yes and one for no, say."""


def comparison_in(
    grouped_data: GroupedData, problem: Problem, groups: str, progress: Progress
) -> Comparison | None:
    """PCA, PCA with more components, balanced and fair PCA of the same rows, held out in folds.

    None where there is nothing to compare: one group, no variance, or rows of one fold.
    """
    cells = grouped_data.cells
    if problem.n_groups == 1 or problem.scale == 0.0 or cells is None:
        return None
    if np.ptp(groups_of_parts(cells.labels)[2]) == 0:
        return None
    criterion = SoftMinMax(problem.goal.measured.name)
    return comparison_of(grouped_data, problem.n_components, criterion, groups, progress)


def _compared_methods(found: Comparison, groups: list[str]) -> dict[str, Any]:
    """The comparison with names of groups as they are shown."""
    found = replace(found, labels=tuple(groups), group_names=None)
    _, low, high = found.share_lost.of(found.worst_group)
    _, least, most = found.disparity.of(found.largest_disparity_group)
    methods = []
    for j, value in enumerate(found.share_lost.value):
        # Of PCA its interval, of the others that of the difference from PCA.
        estimate = found.change if j else found.share_lost
        methods.append(
            {
                "name": found.methods[j],
                "dimensions": found.dimensions[j],
                "largest_lost": found.worst_lost[j],
                "largest_lost_interval": (low[j], high[j]),
                "largest_disparity": found.largest_disparity[j],
                "largest_disparity_interval": (least[j], most[j]),
                "largest_disparity_group": found.largest_disparity_group[j],
                "total_lost": found.total_lost[j],
                "better_off": len(found.better_off(j)),
                "worse_off": len(found.worse_off(j)),
                "lost": value,
                "low": value - estimate.value[j] + estimate.low[j],
                "high": value - estimate.value[j] + estimate.high[j],
            }
        )
    return {"kind": found.verdict.kind, "verdict": str(found.verdict), "methods": methods}


def summarise(report: Report) -> dict[str, Any]:
    """Everything that is in a report."""
    front, intervals = report.front, report.intervals
    use_pca = _says_pca(report.comparison)
    data, problem, moments = report.data, report.front.problem, report.front.problem.moments
    texts = distinct_texts(moments.labels, moments.group_names)
    groups = shown_names(
        [
            text if count >= MIN_ROWS else "(name not shown)"
            for text, count in zip(texts, moments.count, strict=True)
        ]
    )
    facts = Facts(front, groups, data, intervals, report.significant, use_pca)
    disparate = None
    if report.comparison is not None:
        disparate = report.comparison.disparity.low[0] > NO_CHANGE
    measure, shown = facts.measure, partial(shown_measures, problem)
    # The page begins at ordinary PCA where fair PCA is not known to help.
    helps = report.comparison is None or report.comparison.verdict.kind != "unclear"
    start = len(front) - 1 if helps and facts.evidence in ("sure", "alike") else 0
    # Those of too few rows come last, whatever they lose.
    order = np.lexsort((-facts.pca_measures, ~facts.enough))
    ends: list[dict[str, Any]] = [{"low": None, "high": None}] * (len(front) + 1)
    if intervals is not None:
        low, high = shown(intervals.low), shown(intervals.high)
        low, high = (high, low) if measure.is_kept else (low, high)
        ends = [{"low": low[i], "high": high[i]} for i in range(len(front) + 1)]
    unit = 1.0 if measure.relative or problem.scale == 0.0 else problem.scale
    # What no subspace can do better than, where that is not nothing.
    bound = None if use_pca else front.unfairness_bound
    if bound is not None and abs(bound) <= problem.negligible_spread:
        bound = None
    summary = {
        "title": report.title,
        "made_with": f"fairpca {__version__}",
        "made_on": date.today().isoformat(),
        "rows": moments.n_rows,
        "columns": moments.n_features,
        "varies": problem.scale > 0.0,
        "dimensions": problem.n_components,
        "weighted": not np.array_equal(moments.weight, moments.count),
        "measure": {
            "noun": measure.noun,
            "worst": front.worst_name,
            "meaning": facts.meaning,
            "axis": facts.axis,
            "from_own_pca": measure.is_disparity,
            "relative": measure.relative,
            "kept": measure.is_kept,
            "rounding": problem.negligible_spread / unit,
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
        "headline": headline(facts, report.comparison),
        "finding": finding(facts),
        "evidence": facts.evidence,
        "comparison": report.comparison and _compared_methods(report.comparison, groups),
        "least_named": MIN_ROWS if (moments.count < MIN_ROWS).any() else None,
        "use_pca": use_pca,
        "chance": chance(facts),
        "warnings": warnings(facts, disparate),
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
            "worst_group": facts.pca_measures.argmax(),
            "losses": problem.group_losses(problem.pca_basis),
            "disparities": problem.disparities(problem.pca_basis),
            "measures": shown(facts.pca_measures),
            **ends[0],
        },
        "points": [_point(facts, i) | ends[i + 1] for i in range(len(front))],
        "order": order,
        "most_groups": MOST_ROWS,
        "by_dimension": losses_by_dimension(problem, order[:MOST_ROWS]),
        "rows_shown": report.places,
        "choices": {
            "least_loss": 0,
            "one_percent": front.select(max_extra_loss=0.01),
            "knee": front.select(knee=True),
            "fairest": len(front) - 1,
        },
        "start": start,
        "unfairness_bound": None if bound is None else measure.sign * bound,
        "rounding": problem.negligible_spread * (problem.scale if measure.relative else 1.0),
        "resampling": {
            "draws": 0 if intervals is None else intervals.draws.shape[2],
            "worst": facts.worst,
            "best": facts.best,
            "difference": facts.difference,
        },
        "code": harmless(report.code),
    }
    plain: dict[str, Any] = _plain(summary)
    return plain


def _says_pca(comparison: Comparison | None) -> bool:
    """Whether held-out rows make no case for fair PCA."""
    return comparison is not None and comparison.verdict.kind in ("no difference", "no gain")


def _point(facts: Facts, i: int) -> dict[str, Any]:
    front, solution = facts.front, facts.front[i]
    axes = solution_axes(front.problem, solution)
    components = []
    for component in axes.components[:_MOST_COMPONENTS]:
        largest: list[int] = []
        for j in np.argsort(-np.abs(component), kind="stable").tolist():
            mirrored = np.abs(axes.components[:, largest] + axes.components[:, [j]]).max(axis=0)
            if not (mirrored <= _MIRRORED).any():
                largest.append(j)
            if len(largest) == _MOST_LOADINGS:
                break
        components.append([[facts.data.features[j], component[j]] for j in largest])
    return {
        "unfairness": facts.measure.sign * front.largest[i],
        "largest": abs(front.largest[i]),
        "spread": front.spread[i],
        "worst_group": front.worst_group[i],
        "total_loss": front.total_loss[i],
        "extra_loss": front.extra_loss[i],
        "losses": solution.group_losses,
        "disparities": solution.disparities,
        "measures": shown_measures(front.problem, front.measures[i]),
        "status": solution.certificate.status,
        "relative_gap": solution.certificate.relative_gap,
        "spoken": spoken(facts, i),
        "compared": compared(facts, i),
        "certificate": proof(facts, i),
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


def _breakable(name: str) -> Any:
    """A name as markup that breaks behind its separators first."""
    markup = import_jinja2().utils.markupsafe
    parts = re.split(r"(?<=[_./:=-])(?=.)", name)
    return markup.Markup("<wbr>").join(markup.escape(part) for part in parts)


_TITLE = "Who pays for PCA?"

N_POINTS = 21
"""Points of the slider: enough to see the curve, of which each takes a search."""

_SCRIPTS = (
    "basics",
    "reading",
    "frames",
    "groups",
    "front",
    "dimensions",
    "methods",
    "rows",
    "components",
    "table",
    "files",
    "page",
)
"""Parts of the page's one script, in this order."""

_FIGURES = 7
"""Significant figures of the numbers that charts are drawn from."""


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """Who pays for PCA, what fairness costs, and how sure that is; made by `report`.

    Attributes
    ----------
    front : ParetoFront
        The trade-off that the report shows; `front.estimator` gives the model of a point.
    intervals : Intervals or None
        Bootstrap intervals of the measures with ordinary PCA, first, and at each point.
    title : str
        Head of the page.
    code : str
        What the page shows under "Reproduce this"; ``{point}`` in it stands for the number of
        the point that the slider is at.
    significant : boolean array of shape (k,)
        Groups that differ significantly from random ones with ordinary PCA.
    data : DataFacts
        What there is to say about the columns.
    places : dict or None
        Some rows in the first two components, if they are shown.
    comparison : Comparison or None
        What groups lose on held-out rows with PCA, PCA of more components, balanced and fair PCA.

    See Also
    --------
    fairpca.report.report : Makes one.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.report import report
    >>> X = np.random.default_rng(0).normal(size=(300, 4)) * [3, 2, 1, 1]
    >>> X[:100] = X[:100, ::-1]
    >>> groups = ["a"] * 100 + ["b"] * 200
    >>> found = report(X, sensitive_features=groups, n_components=2, n_points=3, n_resamples=0)
    >>> found.html().startswith("<!DOCTYPE html>")
    True
    """

    front: ParetoFront
    intervals: Intervals | None
    title: str
    code: str
    significant: NDArray[np.bool_]
    data: DataFacts
    places: dict[str, Any] | None
    comparison: Comparison | None

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All that the report shows, as plain data; made once."""
        return summarise(self)

    def sentences(self) -> list[str]:
        """What PCA loses, whether fair PCA is needed, and what was found in these rows."""
        found = self.summary["comparison"]
        needed = [f"Is fair PCA needed? {found['verdict']}"] if found else []
        return [self.summary["headline"], *needed, *self.summary["finding"]]

    def html(self) -> str:
        """The report as one HTML page that needs nothing else, neither files nor a network."""
        jinja2 = import_jinja2()
        environment = jinja2.Environment(
            autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        relative = self.summary["measure"]["relative"]
        environment.filters["number"] = partial(number, rounding=self.summary["rounding"])
        environment.filters["amount"] = partial(amount, self.front.problem)
        environment.filters["level"] = percent if relative else environment.filters["number"]
        environment.filters["rows"] = in_rows
        environment.filters["percent"] = percent
        environment.filters["share"] = lambda part: f"{100 * part:.1f} %".replace("-", "\u2212")
        environment.filters["tied"] = lambda text: text.replace(" %", "\u00a0%")
        environment.filters["breakable"] = _breakable
        templates = files("fairpca.report") / "templates"
        page, style, *parts = (
            (templates / name).read_text(encoding="utf-8")
            for name in ("page.html", "page.css", *(f"{name}.js" for name in _SCRIPTS))
        )
        script = "\n".join(['"use strict";', "(() => {", *parts, "})();"])
        safe = jinja2.utils.markupsafe.Markup
        short = json.loads(
            json.dumps(self.summary),
            parse_float=lambda text: float(f"{float(text):.{_FIGURES}g}"),
        )
        data = json.dumps(short, allow_nan=False, separators=(",", ":"))  # in ASCII
        for mark in "&<>":  # which could end the script element that it stands in
            data = data.replace(mark, f"\\u{ord(mark):04x}")
        filled: str = environment.from_string(page).render(
            summary=self.summary,
            start=self.summary["points"][self.summary["start"]],
            style=safe(style),
            script=safe(script),
            # The browser runs this one script and none that data could smuggle in.
            script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            data=safe(data),
        )
        return filled

    def write_html(self, path: str | Path) -> None:
        """Write the page; a file that is there already is replaced only once all is written.

        Parameters
        ----------
        path : str or Path
            Where to; the suffix is usually .html.
        """
        page = self.html().encode()
        with replacing(path) as file:
            file.write(page)

    def open(self) -> None:
        """Show the page in the web browser."""
        path = Path(tempfile.mkdtemp(prefix="fairpca-report-")) / "report.html"
        self.write_html(path)
        webbrowser.open(path.as_uri())

    def json(self) -> str:
        """The summary as JSON."""
        return json.dumps(self.summary, indent=2, allow_nan=False)

    def __repr__(self) -> str:
        return "\n".join([*self.sentences(), "(html(), write_html(path), open(), json())"])

    def _repr_html_(self) -> str:
        # A frame, so that neither the page nor the notebook changes the other's style.
        page = html.escape(self.html(), quote=True)
        frame = (
            f'<iframe srcdoc="{page}" title="{html.escape(self.title, quote=True)}" '
            f'sandbox="allow-scripts" style="width: 100%; height: 900px; border: 0">'
            "</iframe>"
        )
        # Letters by their numbers: a page that does not say how it is encoded is guessed at.
        return frame.encode("ascii", "xmlcharrefreplace").decode("ascii")


def report(
    X: Any,
    *,
    sensitive_features: Any,
    n_components: int | float,
    title: str = _TITLE,
    n_points: int = N_POINTS,
    n_resamples: int = 200,
    measure: str = "disparity",
    sample_weight: ArrayLike | None = None,
    groups: str = "intersections",
    keep_sensitive: bool = False,
    missing_labels: str = "error",
    solver: ExactSolver | None = None,
    data_name: str | None = None,
    columns: Sequence[ColumnOutcome] | None = None,
    left_out: Mapping[str, int] | None = None,
    rows_shown: int = 1000,
    progress: Progress | None = None,
) -> Report:
    """Find out who pays for PCA, what fairness costs and how sure that is, for one page.

    The page also says whether fair PCA is needed at all, by what groups lose on held-out rows with
    PCA, PCA of more components, balanced and fair PCA: see `fairpca.compare`. Where by these PCA is
    to be used, the page has no trade-off, which would be about noise: its front is one point, PCA.
    Groups and categories of fewer than five rows are not shown by name, and no row of such a group
    is shown: a name that few people have may tell who they are.

    Parameters
    ----------
    X, sensitive_features, n_components : as for `pareto_front`
        Rows in memory, their groups, and the dimension.
    title : str, default="Who pays for PCA?"
        Head of the page.
    n_points : int, default=21
        How many points the slider has.
    n_resamples : int, default=200
        Number of bootstrap resamples for the intervals; 0 leaves the intervals out. Groups of
        fewer than 30 rows, or 5 for each dimension, have none.
    measure : str, default="disparity"
        What groups are judged by: see `MinMax`, to which the slider leads.
    sample_weight, groups, keep_sensitive, missing_labels : as for `pareto_front`
        Weights of the rows, and what the sensitive columns make groups of.
    solver : as for `pareto_front`
        When the search for the points ends. Its `random_state` is that of all draws.
    data_name : str, default=None
        What the data set is called; None is "this data".
    columns : sequence of ColumnOutcome, default=None
        What became of each column of the table that X was made from, those that enter first; the
        program gives this. None says what the columns of X themselves tell.
    left_out : mapping of str to int, default=None
        How many rows of the table the report is not about, by which they are, as in
        ``{"with missing values": 12}``; None counts the rows of X without a label.
    rows_shown : int, default=1000
        How many rows the page shows in the first two components, as marks without names, drawn
        at random; 0 leaves this picture of single rows out.
    progress : callable, default=None
        Called with what is being done, how many parts of it are, and how many there are.

    Returns
    -------
    Report

    See Also
    --------
    fairpca.pareto_front : The front that the report shows.
    fairpca.compare : The comparison on held-out rows that the report shows.
    fairpca.audit : The table of groups, for a reduction that is in use.

    Examples
    --------
    >>> from fairpca.datasets import load_adult
    >>> from fairpca.report import report
    >>> from sklearn.preprocessing import StandardScaler
    >>> adult = load_adult(keep_sensitive=False)
    >>> X = adult.data.drop(columns="fnlwgt")
    >>> X = StandardScaler().set_output(transform="pandas").fit_transform(X)
    >>> found = report(X, sensitive_features=adult.sensitive_features, n_components=5, n_points=5)
    >>> found
    Ordinary PCA with 5 dimensions loses 50.3 % of the variance of “Female” and 43.4 % of that of
    “Male”, on rows held out of the fit. “Female” loses 9.9 points more than with a PCA of its own
    (95 % interval 7.5 to 12.3).
    Is fair PCA needed? PCA with 6 components serves every group at least as well as fair PCA with 5
    (the largest share that a group loses: 44.3 instead of 46.9 %). If you must keep 5 components:
    fair PCA helps 'Female' (50.3 → 45.2 % lost) and costs 'Male' (43.4 → 46.9 % lost). The largest
    disparity goes from 9.9 to 4.9 % of a group's variance, the largest share lost from 50.3 to
    46.9 %, the total loss from 45.8 to 46.3 % of all variance.
    With ordinary PCA of this data, grouped by “sex”, the group “Female” loses 9.62 % of its
    variance more than it must, the group “Male” 0.7 %.
    With min-max PCA of 5 dimensions the largest disparity is 4.4 % of the variance of “Female”,
    instead of 9.62 % with ordinary PCA. It costs 1.86 % more loss in total than ordinary PCA, and
    it is proven that no subspace of this dimension is fairer.
    (html(), write_html(path), open(), json())
    >>> found.write_html("report.html")  # doctest: +SKIP
    """
    import_jinja2()
    n_resamples = check_resamples(n_resamples)
    check_whole_number("rows_shown", rows_shown, least=0)
    for which, count in (left_out or {}).items():
        check_whole_number(f"left_out[{which!r}]", count, least=0)
    named = "" if data_name is None else data_name
    for name, text in (("title", title), ("data_name", named)):
        if not isinstance(text, str):
            raise ValueError(f"{name} must be text, got {text!r}.")
    if not title.strip():
        raise ValueError("title must not be empty.")
    check_progress(progress)
    tell = progress or (lambda *what: None)
    tell("reading the rows", 0, 1)
    solver = solver or ExactSolver()
    grouped_data, problem = prepare_front(
        X,
        n_points,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        progress=progress,
        n_components=n_components,
        criterion=MinMax(check_measure(measure).name),
        groups=groups,
        keep_sensitive=keep_sensitive,
        missing_labels=missing_labels,
        solver=solver,
        folds="all",
    )
    comparison = comparison_in(grouped_data, problem, groups, tell)
    front = ParetoFront.from_problem(
        problem,
        1 if _says_pca(comparison) else n_points,
        missing_labels=missing_labels,
        solver=solver,
        progress=progress,
    )
    draws = partial(np.random.default_rng, solver.random_state or SEED)
    intervals = None
    if n_resamples > 0:
        bases = [problem.pca_basis, *(solution.basis for solution in front)]
        doing = partial(tell, "resampling the rows of groups")
        intervals = measure_intervals(problem, grouped_data, bases, n_resamples, draws(), doing)
    test = permutation_test(problem, grouped_data, random_state=solver.random_state)
    given: dict[str, Any] = {
        "n_components": n_components,
        "n_points": n_points,
        "groups": groups,
        "keep_sensitive": keep_sensitive,
        "missing_labels": missing_labels,
        "solver": solver,
        "measure": measure,
        "n_resamples": n_resamples,
        "title": title,
        "data_name": data_name,
        "rows_shown": rows_shown,
    }
    return Report(
        front=front,
        intervals=intervals,
        title=harmless(title),
        code=_python_code(given, weighted=sample_weight is not None),
        significant=test.exceeds_null,
        data=describe(grouped_data, problem.moments, data_name, columns, left_out),
        places=places_of_rows(front, grouped_data, rows_shown, draws()),
        comparison=comparison,
    )


def import_jinja2() -> Any:
    """Return jinja2, or say which extra brings it."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("Reports need jinja2: install `fairpca[report]`.") from error
    return jinja2


def _python_code(given: dict[str, Any], weighted: bool) -> str:
    """Code that makes the same report, and the model of a point."""
    defaults = {name: each.default for name, each in signature(report).parameters.items()}
    defaults |= {"solver": ExactSolver(), "n_points": None}  # which fronts have more of
    texts = {
        name: f", {name}={value.item() if isinstance(value, np.generic) else value!r}"
        for name, value in given.items()
        if value != defaults[name]
    }
    texts |= {"sample_weight": ", sample_weight=weights"} if weighted else {}
    front = "".join(
        text for name, text in texts.items() if name in signature(pareto_front).parameters
    )
    if "measure" in texts:
        front += f", criterion=MinMax({given['measure']!r})"
    imported = [name for name in ("ExactSolver", "MinMax") if f"={name}(" in front]
    return (
        "# X: the columns; groups: the sensitive column\n"
        f"from fairpca import {', '.join([*imported, 'pareto_front'])}\n"
        "from fairpca.report import report\n\n"
        f"report(X, sensitive_features=groups{''.join(texts.values())}).open()\n\n"
        "# the subspace at the point that is shown, as a model to keep\n"
        f"front = pareto_front(X, sensitive_features=groups{front})\n"
        "fair = front.estimator({point})\n"
        "reduced = fair.transform(X)"
    )

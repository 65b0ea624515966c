"""From prepared columns and options to a fair subspace, a front, an audit, or a report."""

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from fairpca import Comparison, FairPCA, GroupTable, ParetoFront
from fairpca.cli._options import FitOptions, changed
from fairpca.cli._prepared import PreparedTable, row_weights
from fairpca.cli._terminal import refusing, show_warning, stage
from fairpca.fair_pca import baselines_of
from fairpca.inspection.audit import Auditor, squared_errors
from fairpca.inspection.compare import comparison_of
from fairpca.inspection.pareto_front import front_problem
from fairpca.report import N_POINTS, Report
from fairpca.report import report as make_report
from fairpca.tables.columns import label_groups, typed_options
from fairpca.validation import check_whole_number


def fit_fair(prepared: PreparedTable, n_components: int | float, options: FitOptions) -> FairPCA:
    """Find the fair subspace of prepared columns."""
    from fairpca import ExactSolver

    d = len(prepared.preparation.means)
    doing = f"finding a fair subspace for {prepared.n_rows:,} rows of {d} columns"
    with (
        stage(doing) as progress,
        refusing(),
        warnings.catch_warnings(record=True, action="always") as caught,
    ):
        fair = FairPCA(
            n_components,
            missing_labels=prepared.options.missing_labels,
            groups=prepared.options.grouping,
            criterion=options.make_criterion(),
            solver=ExactSolver(gap=options.gap, time_limit=options.time_limit),
        )

        def tell(
            done: int, total: int, bound: float | None = None, value: float | None = None
        ) -> None:
            found = f", best {value:.5g}, none below {bound:.5g}" if value is not None else ""
            progress(f"{doing}{found}: step", done, total)

        fair.fit_data(prepared.grouped_data(reduce_wide=True), tell)
    for warning in caught:
        # The certificate is shown with the result, and need not be said twice.
        if str(warning.message) != str(fair.certificate_):
            show_warning(warning.message, warning.category)
    return fair


@refusing()
def find_front(
    prepared: PreparedTable, dimension: int | float, points: int, options: FitOptions
) -> ParetoFront:
    """Find the front of prepared columns; of the options the measure and the limits count."""
    from fairpca import ExactSolver

    with stage("finding the points of the front") as progress:
        solver = ExactSolver(gap=options.gap, time_limit=options.time_limit)
        criterion = options.make_criterion()
        grouped_data = prepared.grouped_data().grouped(prepared.options.grouping)
        problem = front_problem(grouped_data, dimension, criterion, solver, progress)
        labels = prepared.options.missing_labels
        return ParetoFront.from_problem(
            problem, points, missing_labels=labels, solver=solver, progress=progress
        )


@refusing()
def compare_methods(prepared: PreparedTable, n_components: int, options: FitOptions) -> Comparison:
    """Compare methods on held-out rows; of the options the criterion and the measure count."""
    check_whole_number("--n-components", n_components)
    with stage("comparing methods on held-out rows") as progress:
        criterion, groups = options.make_criterion(), prepared.options.grouping
        grouped_data = prepared.grouped_data(reduce_wide=True).grouped(groups)
        return comparison_of(grouped_data, n_components, criterion, groups, progress)


@refusing()
def audit_prepared(prepared: PreparedTable, reduction: FairPCA, **chosen: Any) -> GroupTable:
    """What each group loses with a reduction of prepared columns; choices are as for `audit`."""
    options = prepared.options
    grouped_data = prepared.grouped_data(reduce_wide=True)
    position = {label: i for i, label in enumerate(grouped_data.moments.labels)}
    space, grouped_data = grouped_data.space, grouped_data.grouped(options.grouping)
    known = baselines_of(reduction) if chosen.pop("baseline") == "training" else None
    r = reduction.n_components_
    auditor = Auditor(reduction, grouped_data.moments, r, known=known, **chosen)
    every, start = range(len(grouped_data.moments.labels)), 0
    columns = [*options.sensitive, *options.weighted]
    for batch, rows in prepared.batches("auditing the model", columns):
        labelled = prepared.regrouping.labelled(batch)
        groups = label_groups(labelled, options.sensitive, options.missing_labels)
        errors, _ = squared_errors(reduction, rows, rows)
        # Of a batch without any label there are codes, but no groups.
        codes = np.array([*(position.get(label, -1) for label in groups.labels), -1])[groups.codes]
        codes = codes if groups.kept is None else np.where(groups.kept, codes, -1)
        if space is not None and known is None:
            rows = space.rows[start : start + len(rows)]
        start += len(rows)
        weights = row_weights(batch, options.weights) if options.weights else None
        some = replace(grouped_data, rows=rows, codes=codes, weights=weights)
        for group in every:
            auditor.add(group, some, errors)
    for group in every:
        auditor.finish(group)
    return auditor.table()


def report_on(
    prepared: PreparedTable,
    n_components: int | float,
    choices: FitOptions,
    table: Path,
    typed: Sequence[str],
    **shown: Any,
) -> Report:
    """Make the report on a prepared table; `shown` are further parameters of `report`.

    The page shows the name of the table's file and the arguments that the program was called with,
    both without folders.
    """
    from fairpca import ExactSolver

    rows = pandas.DataFrame(prepared.rows, columns=list(prepared.preparation.feature_names))
    chosen = {**changed(prepared.options), "n_components": n_components, **changed(choices)}
    again = shlex.join(["fairpca", *map(_without_folder, typed)])
    front = f"fairpca front {shlex.quote(table.name)} {typed_options(chosen)}"
    with stage("making the report") as progress, refusing():
        made = make_report(
            rows,
            sensitive_features=prepared.groups,
            sample_weight=prepared.weights,
            n_components=n_components,
            measure=choices.measure,
            groups=prepared.options.grouping,
            missing_labels=prepared.options.missing_labels,
            solver=ExactSolver(gap=choices.gap, time_limit=choices.time_limit),
            data_name=table.name,
            columns=prepared.outcomes,
            left_out={
                "with missing values": prepared.table.n_dropped,
                "without a label": prepared.table.n_unlabelled,
            },
            progress=progress,
            **shown,
        )
    # The words "{point}" are the report's, for the number of the point.
    return replace(
        made,
        code=f"{again}\n\n# the subspace at the slider, as a model to keep\n"
        f"{front} --points {N_POINTS} --index {{point}} --model model.fairpca",
    )


def _without_folder(argument: str) -> str:
    """The argument without the folder of a file, which may say whose it is."""
    option, equals, value = argument.partition("=")
    if not (equals and option.startswith("--")):
        option, equals, value = "", "", argument
    path = Path(value)
    # A column may have a slash in its name; a file that was read or written has a folder.
    is_file = path.parent != Path() and path.parent.is_dir()
    return f"{option}{equals}{path.name}" if is_file else argument

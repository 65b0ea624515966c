"""From prepared columns and options to a fair subspace, a front, an audit, or a report."""

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from fairpca import Comparison, FairPCA, GroupTable, ParetoFront
from fairpca.cli._options import OF_ONE_SUBSPACE, FitOptions, arguments
from fairpca.cli._prepared import PreparedTable
from fairpca.cli._terminal import (
    REPORT,
    BadInputError,
    check_destination,
    refusing,
    show_warning,
    stage,
    written,
)
from fairpca.fair_pca import baselines_of, listening
from fairpca.inspection.audit import Auditor, squared_errors
from fairpca.inspection.compare import comparison_of
from fairpca.inspection.pareto_front import front_of
from fairpca.report import Report, import_jinja2
from fairpca.report import report as make_report
from fairpca.tables.columns import label_groups
from fairpca.validation import check_whole_number

_STANDARD_INPUT = Path("-")
"""How the program is told to read a table from there; it has no name of its own."""


def fit_fair(prepared: PreparedTable, n_components: int | float, options: FitOptions) -> FairPCA:
    """Find the fair subspace of prepared columns."""
    _check_shape(prepared, n_components)
    d = len(prepared.preparation.means)
    doing = f"finding a fair subspace for {prepared.n_rows:,} rows of {d} columns"
    with (
        stage(doing) as progress,
        listening(partial(_tell_step, progress, doing)),
        refusing(),
        warnings.catch_warnings(record=True, action="always") as caught,
    ):
        grouped_data = prepared.grouped_data(reduce_wide=True)
        fair = FairPCA(
            n_components,
            missing_labels=prepared.options.missing_labels,
            groups=prepared.options.groups,
            **options.parameters(grouped_data.moments),
        )
        fair.fit_data(grouped_data)
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
    _check_shape(prepared, dimension)
    with stage("finding the points of the front") as progress:
        return front_of(
            prepared.grouped_data(),
            dimension,
            points,
            progress,
            criterion=options.front_criterion,
            missing_labels=prepared.options.missing_labels,
            gap=options.gap,
            time_limit=options.time_limit,
        )


@refusing()
def compare_methods(prepared: PreparedTable, n_components: int, options: FitOptions) -> Comparison:
    """Compare methods on held-out rows; of the options the criterion and the measure count."""
    check_whole_number("--n-components", n_components)
    _check_shape(prepared, n_components)
    criterion, groups = options.criterion_for(), prepared.options.groups
    with stage("comparing methods on held-out rows"):
        grouped_data = prepared.grouped_data(reduce_wide=True)
        return comparison_of(grouped_data, n_components, criterion, groups)


@refusing()
def audit_prepared(prepared: PreparedTable, reduction: FairPCA, **chosen: Any) -> GroupTable:
    """What each group loses with a reduction of prepared columns; choices are as for `audit`."""
    grouped_data = prepared.grouped_data("intersections", reduce_wide=True)
    position = {label: i for i, label in enumerate(grouped_data.moments.labels)}
    space, grouped_data = grouped_data.space, grouped_data.grouped(prepared.options.groups)
    known = baselines_of(reduction) if chosen.pop("baseline") == "training" else None
    r = reduction.n_components_
    auditor = Auditor(reduction, grouped_data.moments, r, known=known, **chosen)
    every, start = range(len(grouped_data.moments.labels)), 0
    for batch, rows in prepared.batches("auditing the model", prepared.options.sensitive):
        labelled = prepared.regrouping.labelled(batch)
        groups = label_groups(labelled, prepared.options.sensitive, prepared.options.missing_labels)
        errors, _ = squared_errors(reduction, rows, rows)
        # Of a batch without any label there are codes, but no groups.
        codes = np.array([*(position.get(label, -1) for label in groups.labels), -1])[groups.codes]
        codes = codes if groups.kept is None else np.where(groups.kept, codes, -1)
        if space is not None and known is None:
            rows = space.rows[start : start + len(rows)]
        start += len(rows)
        some = replace(grouped_data, rows=rows, codes=codes, weights=None)
        for group in every:
            auditor.add(group, some, errors)
    for group in every:
        auditor.finish(group)
    return auditor.table()


def check_report(
    path: Path | None, choices: FitOptions, *others: Path | None, force: bool = False
) -> None:
    """Refuse a report that could not be written, or would not be about what was asked."""
    if path is None:
        return
    check_destination(path, REPORT, *others, force=force)
    with refusing():
        import_jinja2()
    if choices.chosen(*OF_ONE_SUBSPACE) or choices.criterion == "balanced":
        raise BadInputError(
            "a report shows every trade-off, solved exactly: leave out --tolerance, --bound, "
            "--max-extra-loss, --standard-errors, --nested, --solver and --criterion balanced, or "
            "--report."
        )


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
    both without folders. Of the choices the measure and the limits count, and the criterion, which
    says what unfairness is.
    """
    _check_shape(prepared, n_components)
    rows = pandas.DataFrame(prepared.rows, columns=list(prepared.preparation.feature_names))
    options = [*arguments(prepared.options), "--n-components", str(n_components)]
    again = shlex.join(["fairpca", *map(_without_folder, typed)])
    front = shlex.join(["fairpca", "front", table.name, *options, *arguments(choices)])
    with stage("making the report") as progress, refusing():
        return make_report(
            rows,
            sensitive_features=prepared.groups,
            n_components=n_components,
            criterion=choices.front_criterion,
            groups=prepared.options.groups,
            missing_labels=prepared.options.missing_labels,
            gap=choices.gap,
            time_limit=choices.time_limit,
            data_name=None if table == _STANDARD_INPUT else table.name,
            columns=prepared.outcomes,
            left_out=_left_out(prepared),
            # The words "{point}" are the report's, for the number of the point.
            code=f"{again}\n\n# the subspace at the slider, as a model to keep\n"
            f"{front} --index {{point}} --model model.fairpca",
            progress=progress,
            **shown,
        )


def _left_out(prepared: PreparedTable) -> dict[str, int]:
    """How many rows of a table in memory the report is not about, by which they are."""
    regrouping = prepared.regrouping
    small, which = 0, ""
    if regrouping.drops:
        small, n = regrouping.n_rows, len(regrouping.changes)
        # What small margins have in common are not groups that can be counted.
        one = "in a group" if n == 1 else f"in {n:,} groups"
        one = one if prepared.options.groups == "intersections" else "in groups"
        which = f"{one} of fewer than {prepared.options.min_rows} rows"
    return {
        "with missing values": prepared.table.n_dropped,
        "without a label": prepared.n_unlabelled,
        which: small,
    }


def write_report(report: Report, path: Path) -> None:
    """Write a report to a file, which is whole or not there."""
    with stage(f"writing {path.name}"):
        report.write_html(path)
    written.append(path)


def _check_shape(prepared: PreparedTable, n_components: int | float) -> None:
    """Refuse more dimensions than there are columns, and a single row."""
    d = len(prepared.preparation.means)
    if prepared.n_rows < 2:
        raise BadInputError("the table has one row: a fair subspace needs at least two.")
    if n_components > d:
        raise BadInputError(
            f"--n-components {n_components} is more than the {d} columns that there are."
        )


def _tell_step(
    progress: Any,
    doing: str,
    done: int,
    total: int,
    bound: float | None = None,
    value: float | None = None,
) -> None:
    """Say how far a solver is: the step, and the best found so far with what bounds it."""
    found = f", best {value:.5g}, none below {bound:.5g}" if value is not None else ""
    progress(f"{doing}{found}: step", done, total)


def _without_folder(argument: str) -> str:
    """The argument without the folder of a file, which may say whose it is."""
    option, equals, value = argument.partition("=")
    if not (equals and option.startswith("--")):
        option, equals, value = "", "", argument
    path = Path(value)
    # A column may have a slash in its name; a file that was read or written has a folder.
    is_file = path.parent != Path() and path.parent.is_dir()
    return f"{option}{equals}{path.name}" if is_file else argument

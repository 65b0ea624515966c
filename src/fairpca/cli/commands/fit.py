"""``fairpca fit``."""

from __future__ import annotations

import typer

from fairpca.cli import _findings as findings
from fairpca.cli import _options as options
from fairpca.cli._fitting import (
    ColumnOptions,
    FitOptions,
    fit_fair,
    fit_fair_moments,
    parse_dimension,
    prepare_table,
    unique,
)
from fairpca.cli._reduced import check_carried, reduced_table
from fairpca.cli._reporting import check_report, commands_for, report_on, write_report
from fairpca.cli._streaming import open_batches, reads_in_batches, reduce_batches
from fairpca.cli._tables import (
    check_model_destination,
    check_table_destination,
    read_table,
    write_table,
)
from fairpca.cli._terminal import say, say_json
from fairpca.files.model_file import save_model

EXAMPLES = (
    "fairpca fit people.csv --sensitive sex --n-components 5 --model people.fairpca",
    "fairpca fit people.parquet --sensitive sex --sensitive race --n-components 0.9 \\",
    "    --target income --carry income --output reduced.parquet",
    "fairpca fit people.csv --sensitive race --n-components 5 --criterion minmax --json",
)


def fit(
    context: typer.Context,
    table: options.Table,
    sensitive: options.Sensitive,
    n_components: options.Dimension,
    target: options.Target = [],  # noqa: B006 (typer reads it, nobody changes it)
    drop: options.Drop = [],  # noqa: B006
    encode: options.Encode = "onehot",
    standardize: options.Standardize = True,
    keep_sensitive: options.KeepSensitive = False,
    criterion: options.Criterion = "equal",
    tolerance: options.Tolerance = 0.0,
    solver: options.Solver = "auto",
    missing_labels: options.MissingLabels = "error",
    model: options.Model = None,
    output: options.Output = None,
    carry: options.Carry = [],  # noqa: B006
    report: options.Report = None,
    stream: options.Stream = None,
    json: options.Json = False,
) -> None:
    """Find a subspace in which every group gives up the same.

    Prints what each group loses and how good the subspace provably is, and writes the model, the
    reduced table, a report, or all of them.
    """
    dimension = parse_dimension(n_components)
    columns = ColumnOptions(
        unique(sensitive), unique([*target, *drop]), encode, standardize, keep_sensitive
    )
    choices = FitOptions(criterion, tolerance, solver, missing_labels)
    check_model_destination(model, table, output)
    check_table_destination(output, table)
    check_report(report, choices, table)
    if reads_in_batches(table, stream, report):
        streamed = open_batches(table, columns, missing_labels, carry, output)
        preparation, n_rows = streamed.preparation, streamed.n_rows
        fair = fit_fair_moments(streamed.moments, dimension, choices)
        if output is not None:
            reduce_batches(streamed.batches, fair, preparation, carry, output)
        if model is not None:
            save_model(fair, model, preparation=preparation)
    else:
        frame = read_table(table)
        check_carried(list(frame.columns), carry, output)
        prepared = prepare_table(frame, columns, missing_labels)
        preparation, n_rows = prepared.preparation, len(frame)
        fair = fit_fair(prepared.rows, prepared.groups, dimension, choices)
        # Before anything is written, as it may yet be refused.
        reduced = None if output is None else reduced_table(fair, prepared.rows, frame, carry)
        page = None
        if report is not None:
            r = int(fair.n_components_)
            code = commands_for(context.obj, table, columns, r, missing_labels)
            page = report_on(prepared, r, missing_labels, code=code, warn=False)
        if model is not None:
            save_model(fair, model, preparation=preparation)
        if output is not None:
            write_table(reduced, output)
        if page is not None and report is not None:
            write_report(page, report)
    if json:
        say_json(
            {
                "command": "fit",
                **findings.table_as_data(preparation, n_rows),
                **findings.as_data(fair),
                "model": None if model is None else str(model),
                "output": None if output is None else str(output),
                "report": None if report is None else str(report),
            }
        )
        return
    say(findings.columns_sentence(preparation))
    say(f"\n{fair.group_table_}\n")
    say(findings.who_pays(fair.group_table_))
    say(findings.cost(fair))
    say(findings.in_options(str(fair.certificate_)))
    for written in (model, output):
        if written is not None:
            say(f"Written: {written}")
    if report is not None:
        say(f"Report: {report}")

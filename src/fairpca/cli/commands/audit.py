"""``fairpca audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fairpca import FairPCA, GroupTable
from fairpca import audit as audit_reduction
from fairpca.cli import _findings as findings
from fairpca.cli import _options as options
from fairpca.cli._fitting import (
    ColumnOptions,
    FitOptions,
    fit_fair,
    fit_fair_moments,
    groups_of,
    parse_dimension,
    prepare_table,
    unique,
)
from fairpca.cli._models import apply_preparation, read_model
from fairpca.cli._reporting import check_report, commands_for, report_on, write_report
from fairpca.cli._streaming import audit_batches, open_batches, reads_in_batches
from fairpca.cli._tables import read_table
from fairpca.cli._terminal import BadInputError, refusing, say, say_json, stage

EXAMPLES = (
    "fairpca audit people.csv --sensitive sex --n-components 5",
    "fairpca audit people.csv --sensitive sex --sensitive race --n-components 5 --json",
    "fairpca audit new.parquet --model people.fairpca",
)


def audit(
    context: typer.Context,
    table: options.Table,
    sensitive: Annotated[
        list[str],
        typer.Option(
            "--sensitive",
            metavar="COLUMN",
            help=f"{options.SENSITIVE_HELP} Those of the fit, where a model is audited.",
        ),
    ] = [],  # noqa: B006 (typer reads it, nobody changes it)
    n_components: Annotated[
        str | None,
        typer.Option(
            "--n-components",
            metavar="5|0.9",
            help=f"{options.DIMENSION_HELP} That of the model, where one is audited.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="FILE",
            help="Audit this model instead of ordinary PCA; it also says how columns are prepared.",
        ),
    ] = None,
    target: options.Target = [],  # noqa: B006
    drop: options.Drop = [],  # noqa: B006
    encode: options.Encode = "onehot",
    standardize: options.Standardize = True,
    keep_sensitive: options.KeepSensitive = False,
    criterion: options.Criterion = "equal",
    tolerance: options.Tolerance = 0.0,
    solver: options.Solver = "auto",
    missing_labels: options.MissingLabels = "error",
    report: options.Report = None,
    stream: options.Stream = None,
    json: options.Json = False,
) -> None:
    """Show who pays for ordinary PCA, or for a model, and what a fair subspace would cost.

    A group's loss is the squared distance between a row and its reconstruction, averaged over its
    rows; its disparity is what it loses beyond a PCA of its own. Nothing but a report is written.
    """
    choices = FitOptions(criterion, tolerance, solver, missing_labels)
    names, unused = unique(sensitive), unique([*target, *drop])
    in_batches = reads_in_batches(table, stream, report)
    if model is not None:
        if n_components is not None:
            raise BadInputError(
                "a model has its own dimension: leave out --n-components or --model."
            )
        if report is not None:
            raise BadInputError(
                "a report is about ordinary PCA and fair subspaces: leave out --report or --model."
            )
        audited, fair = _audit_model(table, model, names, unused, choices, in_batches)
    elif not names or n_components is None:
        raise BadInputError("an audit needs --sensitive and --n-components, or a --model.")
    else:
        columns = ColumnOptions(names, unused, encode, standardize, keep_sensitive)
        dimension = parse_dimension(n_components)
        check_report(report, choices, table)
        audited = None
        if in_batches:
            moments = open_batches(table, columns, missing_labels).moments
            fair = fit_fair_moments(moments, dimension, choices)
        else:
            prepared = prepare_table(read_table(table), columns, missing_labels)
            fair = fit_fair(prepared.rows, prepared.groups, dimension, choices)
        if report is not None:
            r = int(fair.n_components_)
            code = commands_for(context.obj, table, columns, r, missing_labels)
            page = report_on(prepared, r, missing_labels, code=code, warn=False)
            write_report(page, report)
    if json:
        say_json(_as_data(audited, fair) | {"report": None if report is None else str(report)})
        return
    say(_in_words(audited, fair))
    if report is not None:
        say(f"Report: {report}")


def _audit_model(
    table: Path,
    path: Path,
    sensitive: tuple[str, ...],
    unused: tuple[str, ...],
    choices: FitOptions,
    in_batches: bool,
) -> tuple[GroupTable, FairPCA]:
    """What the groups of a table lose with a model, and a fair subspace of as many dimensions."""
    model, preparation = read_model(path)
    names = sensitive or preparation.sensitive
    if not names:
        raise BadInputError(f"{str(path)!r} does not say what is sensitive: use --sensitive.")
    r = model.fair_pca.certificate_.n_components
    if in_batches:
        audited, moments = audit_batches(
            table, model.reduction, preparation, names, unused, choices.missing_labels
        )
        return audited, fit_fair_moments(moments, r, choices)
    frame = read_table(table, preparation.text_columns)
    groups = groups_of(frame, names, choices.missing_labels)
    rows = apply_preparation(preparation, frame, unused, carry=names)
    fair = fit_fair(rows, groups, r, choices)
    with stage("auditing the model"), refusing():
        audited = audit_reduction(
            model.reduction,
            rows,
            sensitive_features=groups,
            missing_labels=choices.missing_labels,
        )
    return audited, fair


def _as_data(audited: GroupTable | None, fair: FairPCA) -> dict[str, Any]:
    model = None
    if audited is not None:
        model = {
            "total_loss": findings.total(audited, audited.loss),
            "groups": findings.groups_as_data(audited),
        }
    return {
        "command": "audit",
        "rows": int(fair.group_table_.count.sum()),
        "model": model,
        **findings.as_data(fair),
    }


def _in_words(audited: GroupTable | None, fair: FairPCA) -> str:
    lines = []
    if audited is not None:
        lines += [f"The model on this table:\n\n{audited}\n", findings.model_cost(audited)]
        lines += ["", "A fair subspace fitted to this table:", ""]
    lines += [f"{fair.group_table_}\n", findings.who_pays(fair.group_table_), findings.cost(fair)]
    return "\n".join([*lines, findings.in_options(str(fair.certificate_))])

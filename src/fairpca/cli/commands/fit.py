"""``fairpca fit``."""

import typer

from fairpca.cli import _findings as findings
from fairpca.cli import _options as options
from fairpca.cli._fitting import check_report, fit_fair, report_on, write_report
from fairpca.cli._options import (
    MODEL,
    ColumnOptions,
    FitOptions,
    check_destination,
    parse_dimension,
)
from fairpca.cli._prepared import prepare_table, reduce_table
from fairpca.cli._terminal import show
from fairpca.estimators.model_file import write_model
from fairpca.tables.writing import SUFFIXES

EXAMPLES = (
    "fairpca fit people.csv --sensitive sex --n-components 5 --model people.fairpca",
    "fairpca fit people.parquet --sensitive sex --sensitive race --n-components 0.9 \\",
    "    --target income --carry income --output reduced.parquet",
    "fairpca fit people.csv --sensitive race --n-components 5 --max-extra-loss 0.01 --json",
    "fairpca fit people.csv --sensitive sex --n-components 5 --measure loss --relative \\",
    "    --bound 0.5 --bound Female=0.4",
    "fairpca fit people.csv --sensitive race --n-components 5 --criterion equal --tolerance 0.1",
    "fairpca fit people.csv --sensitive hospital --n-components 5 --shrinkage auto",
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
    criterion: options.Criterion = "minmax",
    tolerance: options.Tolerance = 0.0,
    measure: options.Measure = "disparity",
    relative: options.Relative = False,
    bound: options.Bound = [],  # noqa: B006
    max_extra_loss: options.MaxExtraLoss = None,
    nested: options.Nested = False,
    shrinkage: options.Shrinkage = "0",
    solver: options.Solver = "auto",
    whiten: options.Whiten = False,
    missing_labels: options.MissingLabels = "error",
    groups: options.Groups = "intersections",
    model: options.Model = None,
    output: options.Output = None,
    carry: options.Carry = [],  # noqa: B006
    report: options.Report = None,
    stream: options.Stream = False,
    json: options.Json = False,
) -> None:
    """Find the subspace that is fairest to the worst-off group.

    A group's disparity is what it loses beyond a PCA of its own; the largest one is as small as can
    be, unless --criterion, --measure, --bound or --max-extra-loss ask for something else. Prints
    what each group loses and how good the subspace provably is, and writes the model, the reduced
    table, a report, or all of them.
    """
    dimension = parse_dimension(n_components)
    columns = ColumnOptions(sensitive, [*target, *drop], encode, standardize, keep_sensitive)
    choices = FitOptions(
        criterion,
        tolerance,
        measure,
        relative,
        bound,
        max_extra_loss,
        solver,
        missing_labels,
        groups,
        nested,
        shrinkage,
    )
    check_destination(model, MODEL, table, output)
    check_destination(output, SUFFIXES, table)
    check_report(report, choices, table)
    prepared = prepare_table(
        table,
        columns,
        missing_labels,
        groups=groups,
        carry=carry,
        output=output,
        stream=stream,
        whole=report is not None,
        folds=shrinkage == "auto",
    )
    preparation = prepared.preparation
    fair = fit_fair(prepared, dimension, choices).set_params(whiten=whiten)
    page = None
    if report is not None:  # before anything is written, as it may yet be refused
        r, typed = int(fair.n_components_), context.obj
        page = report_on(prepared, r, choices, columns, table, typed, warn=False)
    if output is not None:
        reduce_table(prepared, fair, carry, output)
    if model is not None:
        write_model(fair, model, preparation)
    if page is not None and report is not None:
        write_report(page, report)
    show(
        json,
        lambda: {
            "command": "fit",
            **findings.table_as_data(prepared),
            **findings.as_data(fair),
            **({"nesting": fair.nesting_.to_dict()} if nested else {}),
            **findings.held_out_as_data(fair),
        },
        lambda: [
            findings.columns_sentence(preparation),
            f"\n{fair.group_table_}\n",
            *findings.of_subspace(fair),
            *([f"\n{fair.nesting_}\n"] if nested else []),
            *([f"\n{fair.cross_fit_}\n"] if hasattr(fair, "cross_fit_") else []),
        ],
        model=model,
        output=output,
        report=report,
    )

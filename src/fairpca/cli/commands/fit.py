"""``fairpca fit``."""

import warnings

import typer

from fairpca.cli import _options as options
from fairpca.cli._options import (
    FitOptions,
    OutputOptions,
    TableOptions,
    parse_dimension,
    with_options,
)
from fairpca.cli._terminal import show, written

EXAMPLES = (
    "fairpca fit people.csv --sensitive sex --n-components 5 --model people.fairpca",
    "fairpca fit people.parquet --sensitive sex --sensitive race --n-components 0.9"
    " --target income --carry income --output reduced.parquet",
    "fairpca fit people.csv --sensitive race --n-components 5 --max-extra-loss 0.01 --json",
    "fairpca fit people.csv --sensitive sex --n-components 5 --measure share_lost"
    " --bound 0.5 --bound Female=0.4",
    "fairpca fit people.csv --sensitive race --n-components 5 --criterion equal --tolerance 0.1",
    "fairpca fit people.csv --sensitive hospital --n-components 5 --standard-errors 1",
)


@with_options(
    files=OutputOptions,
    how=TableOptions,
    choices=FitOptions,
    required={"sensitive"},
    without={"unknown_categories"},
)
def fit(
    context: typer.Context,
    table: options.Table,
    how: TableOptions,
    choices: FitOptions,
    files: OutputOptions,
    n_components: options.Dimension,
) -> None:
    """Find the subspace that is fairest to the worst-off group.

    A group's disparity is what it loses beyond a PCA of its own. Large ones are brought down, where
    new data would show them too; --criterion, --measure, --bound and --max-extra-loss ask for
    something else. Prints
    what each group loses and how good the subspace provably is, and writes the model, the reduced
    table, a report, or all of them.
    """
    from fairpca.cli import _findings as findings
    from fairpca.cli._fitting import check_report, fit_fair, report_on, write_report
    from fairpca.cli._prepared import prepare_table, reduce_table
    from fairpca.model_file import write_model

    dimension = parse_dimension(n_components)
    files.check(table)
    check_report(files.report, choices, table, force=files.force)
    prepared = prepare_table(
        table,
        how,
        carry=files.carry,
        whole=files.report is not None,
        folds=choices.folds,
        kept=files.model is not None or files.report is not None,
    )
    fair = fit_fair(prepared, dimension, choices).set_params(whiten=files.whiten)
    page = None
    if files.report is not None:  # before anything is written, as it may yet be refused
        with warnings.catch_warnings(action="ignore"):  # its warnings are those of the fit
            page = report_on(prepared, int(fair.n_components_), choices, table, context.obj)
    if files.output is not None:
        reduce_table(prepared, fair, files.carry, files.output)
    if files.model is not None:
        write_model(fair, files.model, prepared.preparation)
        written.append(files.model)
    if page is not None and files.report is not None:
        write_report(page, files.report)
    show(
        files.json,
        lambda: {
            "command": "fit",
            **findings.table_as_data(prepared),
            **findings.as_data(fair),
            **({"nesting": fair.nesting_.to_dict()} if choices.nested else {}),
        },
        lambda: [
            findings.columns_sentence(prepared),
            *findings.shown(fair.group_table_),
            *findings.of_subspace(fair),
            *(findings.shown(fair.nesting_) if choices.nested else []),
        ],
        model=files.model,
        output=files.output,
        report=files.report,
    )

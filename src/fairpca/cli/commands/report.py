"""``fairpca report``."""

from pathlib import Path
from typing import Annotated

import typer

from fairpca.choices import MIN_ROWS
from fairpca.cli import _options as options
from fairpca.cli._options import FitOptions, TableOptions, check_front, chosen, parse_dimension
from fairpca.cli._terminal import show

EXAMPLES = (
    "fairpca report people.csv --sensitive sex --n-components 5 --report people.html",
    "fairpca report people.parquet --sensitive sex --sensitive race --n-components 0.9"
    ' --target income --report people.html --title "Who pays?"',
    "fairpca report people.csv --sensitive race --n-components 5 --measure share_kept"
    " --report people.html",
)


def report(
    context: typer.Context,
    table: options.Table,
    sensitive: options.Sensitive,
    n_components: options.Dimension,
    report: Annotated[
        Path,
        options.file_option("--report", help="Where to; the suffix is .html."),
    ],
    title: Annotated[str | None, typer.Option(help="Head of the page.")] = None,
    rows_shown: Annotated[
        int,
        typer.Option(
            min=0,
            help="How many rows the page shows as marks, drawn at random; 0 shows no single rows.",
        ),
    ] = 1000,
    target: options.Target = [],  # noqa: B006 (typer reads it, nobody changes it)
    drop: options.Drop = [],  # noqa: B006
    encode: options.Encode = "onehot",
    standardize: options.Standardize = True,
    keep_sensitive: options.KeepSensitive = False,
    criterion: options.FrontCriterion = "minmax",
    measure: options.Measure = "disparity",
    gap: options.Gap = None,
    time_limit: options.TimeLimit = None,
    missing_labels: options.MissingLabels = "error",
    sep: options.Sep = "",
    decimal: options.Decimal = ".",
    encoding: options.Encoding = "utf-8",
    missing_values: options.MissingValues = [],  # noqa: B006
    drop_missing: options.DropMissing = False,
    as_text: options.AsText = [],  # noqa: B006
    as_number: options.AsNumber = [],  # noqa: B006
    impute: options.Impute = "",
    min_rows: options.MinRows = MIN_ROWS,
    small_groups: options.SmallGroups = None,
    groups: options.Groups = "intersections",
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Write a page for everyone: who pays for PCA, what fairness costs, and how sure that is.

    The page needs nothing else, neither files nor a network. It has the finding in plain words, a
    slider from ordinary PCA to the fairest subspace, and the proof.
    """
    given = locals()
    from fairpca.cli import _findings as findings
    from fairpca.cli._fitting import check_report, report_on, write_report
    from fairpca.cli._prepared import prepare_table

    how = chosen(TableOptions, given)
    dimension = parse_dimension(n_components)
    check_front(criterion)
    choices = chosen(FitOptions, given)
    check_report(report, choices, table, force=force)
    prepared = prepare_table(table, how, whole=True, kept=True)
    shown = {"rows_shown": rows_shown} | ({} if title is None else {"title": title})
    made = report_on(prepared, dimension, choices, table, context.obj, **shown)
    write_report(made, report)
    fair = made.front.estimator(-1)
    show(
        json,
        lambda: {
            "command": "report",
            **findings.table_as_data(prepared),
            **findings.as_data(fair),
            "summary": made.summary,
        },
        lambda: [
            findings.columns_sentence(prepared),
            *findings.shown(fair.group_table_),
            *findings.of_report(made.summary["finding"]),
            *findings.proof(fair),
        ],
        report=report,
    )

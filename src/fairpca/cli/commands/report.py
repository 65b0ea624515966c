"""``fairpca report``."""

from pathlib import Path
from typing import Annotated

import typer

from fairpca.cli import _options as options
from fairpca.cli._options import (
    OF_ONE_SUBSPACE,
    FitOptions,
    TableOptions,
    check_front,
    parse_dimension,
    with_options,
)
from fairpca.cli._terminal import show

EXAMPLES = (
    "fairpca report people.csv --sensitive sex --n-components 5 --report people.html",
    "fairpca report people.parquet --sensitive sex --sensitive race --n-components 0.9"
    ' --target income --report people.html --title "Who pays?"',
    "fairpca report people.csv --sensitive race --n-components 5 --measure share_kept"
    " --report people.html",
)


@with_options(
    how=TableOptions,
    choices=FitOptions,
    required={"sensitive"},
    without={*OF_ONE_SUBSPACE, "unknown_categories", "stream"},
)
def report(
    context: typer.Context,
    table: options.Table,
    how: TableOptions,
    choices: FitOptions,
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
    criterion: options.FrontCriterion = "minmax",
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Write a page for everyone: who pays for PCA, what fairness costs, and how sure that is.

    The page needs nothing else, neither files nor a network. It has the finding in plain words, a
    slider from ordinary PCA to the fairest subspace, and the proof.
    """
    from fairpca.cli import _findings as findings
    from fairpca.cli._fitting import check_report, report_on, write_report
    from fairpca.cli._prepared import prepare_table

    dimension = parse_dimension(n_components)
    check_front(criterion)
    check_report(report, choices, table, force=force)
    prepared = prepare_table(table, how, whole=True, kept=True)
    shown = {"rows_shown": rows_shown} | ({} if title is None else {"title": title})
    made = report_on(prepared, dimension, choices, table, context.obj, **shown)
    write_report(made, report)
    fair = made.front.estimator(-1)
    groups = findings.shown(fair.group_table_)
    # What the table has said already, the finding need not say below it.
    sentences = [each for each in findings.of_report(made.sentences()) if each not in groups]
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
            *groups,
            *sentences,
            *findings.proof(fair),
        ],
        report=report,
    )

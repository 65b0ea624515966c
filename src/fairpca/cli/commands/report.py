"""``fairpca report``."""

from dataclasses import dataclass
from pathlib import Path

import typer

from fairpca.cli import _options as options
from fairpca.cli._options import (
    OF_ONE_SUBSPACE,
    FrontOptions,
    ResultOptions,
    TableOptions,
    option,
    parse_dimension,
    with_options,
)
from fairpca.cli._terminal import REPORT, check_destination, refusing, show, stage

EXAMPLES = (
    "fairpca report people.csv --sensitive sex --n-components 5 --report people.html",
    "fairpca report people.parquet --sensitive sex --sensitive race --n-components 0.9"
    ' --target income --report people.html --title "Who pays?"',
    "fairpca report people.csv --sensitive race --n-components 5 --measure share_kept"
    " --report people.html",
)


@dataclass(frozen=True)
class PageOptions(ResultOptions):
    """What a page shows, and where it is written."""

    report: Path = option(Path(), "Where to; the suffix is .html.", metavar="FILE")
    title: str | None = option(None, "Head of the page.")
    rows_shown: int = option(
        1000,
        "How many rows the page shows as marks, drawn at random; 0 shows no single rows.",
        min=0,
    )


@with_options(
    page=PageOptions,
    how=TableOptions,
    choices=FrontOptions,
    required={"sensitive", "report"},
    without={*OF_ONE_SUBSPACE, "unknown_categories", "stream"},
)
def report(
    context: typer.Context,
    table: options.Table,
    how: TableOptions,
    choices: FrontOptions,
    page: PageOptions,
    n_components: options.Dimension,
) -> None:
    """Write a page for everyone: who pays for PCA, what fairness costs, and how sure that is.

    The page needs nothing else, neither files nor a network. It has the finding in plain words, a
    slider from ordinary PCA to the fairest subspace, and the proof.
    """
    from fairpca.cli import _findings as findings
    from fairpca.cli._fitting import report_on
    from fairpca.cli._prepared import prepare_table
    from fairpca.report import import_jinja2

    dimension = parse_dimension(n_components)
    check_destination(page.report, REPORT, table, force=page.force)
    with refusing():
        import_jinja2()
    prepared = prepare_table(table, how, dimension, whole=True, kept=True)
    shown = {"rows_shown": page.rows_shown} | ({} if page.title is None else {"title": page.title})
    made = report_on(prepared, dimension, choices, table, context.obj, **shown)
    with stage(f"writing {page.report.name}"):
        made.write_html(page.report)
    fair = made.front.estimator(-1)
    shown_table = findings.shown(fair.group_table_)
    # What the table has said already, the finding need not say below it.
    sentences = [each for each in findings.of_report(made.sentences()) if each not in shown_table]
    show(
        page.json,
        lambda: {
            "command": "report",
            **findings.table_as_data(prepared),
            **findings.as_data(fair),
            "summary": made.summary,
        },
        lambda: [
            findings.columns_sentence(prepared),
            *shown_table,
            *sentences,
            *findings.proof(fair),
        ],
        report=page.report,
    )

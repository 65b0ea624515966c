"""``fairpca compare``."""

from typing import Annotated

import typer

from fairpca.cli import _options as options
from fairpca.cli._options import (
    OF_ONE_SUBSPACE,
    FitOptions,
    ResultOptions,
    TableOptions,
    with_options,
)
from fairpca.cli._terminal import show

EXAMPLES = (
    "fairpca compare people.csv --sensitive sex --n-components 5",
    "fairpca compare people.parquet --sensitive sex --sensitive race --n-components 5 --json",
)


@with_options(
    how=TableOptions,
    choices=FitOptions,
    printed=ResultOptions,
    required={"sensitive"},
    without={*OF_ONE_SUBSPACE, "gap", "time_limit", "unknown_categories", "force"},
)
def compare(
    table: options.Table,
    how: TableOptions,
    choices: FitOptions,
    printed: ResultOptions,
    n_components: Annotated[
        int,
        typer.Option("--n-components", metavar="N", help="The number of columns to reduce to."),
    ],
) -> None:
    """Say whether fair PCA is needed: what each group loses on held-out rows, and with what else.

    PCA is compared with PCA of one and two more components, with balanced PCA, with fair PCA, and
    with the largest disparity as small as can be. Nothing is written.
    """
    from fairpca.cli import _findings as findings
    from fairpca.cli._fitting import compare_methods
    from fairpca.cli._prepared import prepare_table

    prepared = prepare_table(table, how, n_components, folds="all")
    found = compare_methods(prepared, n_components, choices)
    show(
        printed.json,
        lambda: {
            "command": "compare",
            **findings.table_as_data(prepared),
            **findings.comparison_as_data(found),
        },
        lambda: [*findings.shown(found)[1:], findings.columns_sentence(prepared)],
    )

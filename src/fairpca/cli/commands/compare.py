"""``fairpca compare``."""

from __future__ import annotations

from typing import Annotated

import typer

from fairpca.choices import MIN_ROWS
from fairpca.cli import _options as options
from fairpca.cli._options import FitOptions, TableOptions, chosen
from fairpca.cli._terminal import show

EXAMPLES = (
    "fairpca compare people.csv --sensitive sex --n-components 5",
    "fairpca compare people.parquet --sensitive sex --sensitive race --n-components 5 --json",
)


def compare(
    table: options.Table,
    sensitive: options.Sensitive,
    n_components: Annotated[
        int,
        typer.Option("--n-components", metavar="N", help="The number of columns to reduce to."),
    ],
    target: options.Target = [],  # noqa: B006 (typer reads it, nobody changes it)
    drop: options.Drop = [],  # noqa: B006
    encode: options.Encode = "onehot",
    standardize: options.Standardize = True,
    keep_sensitive: options.KeepSensitive = False,
    criterion: options.Criterion = "soft",
    measure: options.Measure = "disparity",
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
    stream: options.Stream = False,
    json: options.Json = False,
) -> None:
    """Say whether fair PCA is needed: what each group loses on held-out rows, and with what else.

    PCA is compared with PCA of one and two more components, with balanced PCA, with fair PCA, and
    with the largest disparity as small as can be. Nothing is written.
    """
    given = locals()
    from fairpca.cli import _findings as findings
    from fairpca.cli._fitting import compare_methods
    from fairpca.cli._prepared import prepare_table

    how, choices = chosen(TableOptions, given), chosen(FitOptions, given)
    prepared = prepare_table(table, how, folds="all")
    found = compare_methods(prepared, n_components, choices)
    show(
        json,
        lambda: {
            "command": "compare",
            **findings.table_as_data(prepared),
            **findings.comparison_as_data(found),
        },
        lambda: [findings.columns_sentence(prepared), *findings.shown(found)[:-1]],
    )

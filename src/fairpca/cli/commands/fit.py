"""``fairpca fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairpca.cli import _findings as findings
from fairpca.cli import _options as options
from fairpca.cli._fitting import ColumnOptions, FitOptions, fit_table, parse_dimension, unique
from fairpca.cli._reduced import check_carried, reduced_table
from fairpca.cli._tables import (
    check_model_destination,
    check_table_destination,
    read_table,
    write_table,
)
from fairpca.cli._terminal import say, say_json
from fairpca.model_file import save_model

EXAMPLES = (
    "fairpca fit people.csv --sensitive sex --n-components 5 --model people.fairpca",
    "fairpca fit people.parquet --sensitive sex --sensitive race --n-components 0.9 \\",
    "    --target income --carry income --output reduced.parquet",
    "fairpca fit people.csv --sensitive race --n-components 5 --criterion minmax --json",
)


def fit(
    table: options.Table,
    sensitive: Annotated[
        list[str],
        typer.Option("--sensitive", metavar="COLUMN", help=options.SENSITIVE_HELP),
    ],
    n_components: Annotated[
        str, typer.Option("--n-components", metavar="5|0.9", help=options.DIMENSION_HELP)
    ],
    target: options.Target = [],  # noqa: B006 (typer reads it, nobody changes it)
    drop: options.Drop = [],  # noqa: B006
    encode: options.Encode = "onehot",
    standardize: options.Standardize = True,
    keep_sensitive: options.KeepSensitive = False,
    criterion: options.Criterion = "equal",
    tolerance: options.Tolerance = 0.0,
    solver: options.Solver = "auto",
    missing_labels: options.MissingLabels = "error",
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="FILE", help="Write the model; the suffix is .fairpca."),
    ] = None,
    output: options.Output = None,
    carry: options.Carry = [],  # noqa: B006
    json: options.Json = False,
) -> None:
    """Find a subspace in which every group gives up the same.

    Prints what each group loses and how good the subspace provably is, and writes the model, the
    reduced table, or both.
    """
    dimension = parse_dimension(n_components)
    check_model_destination(model, table, output)
    check_table_destination(output, table)
    frame = read_table(table)
    check_carried(frame, carry, output)
    columns = ColumnOptions(
        unique(sensitive), unique([*target, *drop]), encode, standardize, keep_sensitive
    )
    choices = FitOptions(criterion, tolerance, solver, missing_labels)
    fitted = fit_table(frame, dimension, columns, choices)
    fair, preparation = fitted.fair, fitted.preparation
    # Before anything is written, as it may yet be refused.
    reduced = None if output is None else reduced_table(fair, fitted.rows, frame, carry)
    if model is not None:
        save_model(fair, model, preparation=preparation)
    if output is not None:
        write_table(reduced, output)
    if json:
        say_json(
            {
                "command": "fit",
                "rows": len(frame),
                "columns": [column.name for column in preparation.columns],
                "prepared_columns": list(preparation.feature_names),
                **findings.as_data(fair),
                "model": None if model is None else str(model),
                "output": None if output is None else str(output),
            }
        )
        return
    say(findings.columns_sentence(preparation))
    say(f"\n{fair.group_table_}\n")
    say(findings.who_pays(fair.group_table_))
    say(findings.cost(fair))
    say(str(fair.certificate_))
    for written in (model, output):
        if written is not None:
            say(f"Written: {written}")

"""``fairpca transform``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairpca.cli import _options as options
from fairpca.cli._models import apply_preparation, read_model
from fairpca.cli._reduced import check_carried, reduced_table
from fairpca.cli._streaming import reads_in_batches, transform_batches
from fairpca.cli._tables import check_table_destination, read_table, write_table
from fairpca.cli._terminal import say, say_json, stage

EXAMPLES = (
    "fairpca transform new.csv --model people.fairpca --output reduced.csv",
    "fairpca transform new.parquet --model people.fairpca --carry id --output reduced.arrow",
)


def transform(
    table: options.Table,
    model: Annotated[
        Path, typer.Option("--model", metavar="FILE", help="What `fairpca fit` wrote.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Where to write the reduced table, by suffix as for `fairpca fit`.",
        ),
    ],
    drop: options.Drop = [],  # noqa: B006 (typer reads it, nobody changes it)
    carry: options.Carry = [],  # noqa: B006
    stream: options.Stream = None,
    json: options.Json = False,
) -> None:
    """Reduce a new table with a model.

    The table needs the columns of the fit, in any order. Those that were sensitive, targets or
    dropped then may be there; others are refused unless they are dropped or carried here.
    """
    check_table_destination(output, table, model)
    fitted, preparation = read_model(model)
    if reads_in_batches(table, stream):
        n_rows = transform_batches(table, fitted.reduction, preparation, drop, carry, output)
    else:
        frame = read_table(table, preparation.text_columns)
        check_carried(list(frame.columns), carry, output)
        with stage("reducing the rows"):
            rows = apply_preparation(preparation, frame, drop, carry)
            reduced = reduced_table(fitted.reduction, rows, frame, carry)
        write_table(reduced, output)
        n_rows = len(frame)
    r = fitted.fair_pca.n_components_
    if json:
        say_json(
            {
                "command": "transform",
                "rows": n_rows,
                "n_components": r,
                "model": str(model),
                "output": str(output),
            }
        )
        return
    say(f"Reduced {n_rows:,} rows to {r} columns.\nWritten: {output}")

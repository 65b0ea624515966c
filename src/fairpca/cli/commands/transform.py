"""``fairpca transform``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairpca.cli import _options as options
from fairpca.cli._models import apply_preparation, read_model
from fairpca.cli._reduced import check_carried, reduced_table
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
    json: options.Json = False,
) -> None:
    """Reduce a new table with a model.

    The table needs the columns of the fit, in any order. Those that were sensitive, targets or
    dropped then may be there; others are refused unless they are dropped or carried here.
    """
    check_table_destination(output, table, model)
    fitted, preparation = read_model(model)
    frame = read_table(table, preparation.text_columns)
    check_carried(frame, carry, output)
    with stage("reducing the rows"):
        rows = apply_preparation(preparation, frame, drop, carry)
        reduced = reduced_table(fitted.reduction, rows, frame, carry)
    write_table(reduced, output)
    r = fitted.fair_pca.n_components_
    if json:
        say_json(
            {
                "command": "transform",
                "rows": len(frame),
                "n_components": r,
                "model": str(model),
                "output": str(output),
            }
        )
        return
    say(f"Reduced {len(frame):,} rows to {r} columns.\nWritten: {output}")

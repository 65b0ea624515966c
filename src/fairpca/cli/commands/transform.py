"""``fairpca transform``."""

from pathlib import Path
from typing import Annotated

import typer

from fairpca.cli import _options as options
from fairpca.cli._options import OutputOptions, TableOptions, with_options
from fairpca.cli._terminal import show

EXAMPLES = (
    "fairpca transform new.csv --model people.fairpca --output reduced.csv",
    "fairpca transform new.parquet --model people.fairpca --carry id --output reduced.arrow",
)


_OPTIONS = (
    *("drop", "auto", "sep", "decimal", "encoding", "missing_values", "drop_missing"),
    *("unknown_categories", "stream", "output", "carry", "force", "json"),
)


@with_options(files=OutputOptions, how=TableOptions, only=_OPTIONS, required={"output"})
def transform(
    table: options.Table,
    how: TableOptions,
    files: OutputOptions,
    model: Annotated[
        Path, typer.Option("--model", metavar="FILE", help="What `fairpca fit` wrote.")
    ],
) -> None:
    """Reduce a new table with a model.

    The table needs the columns of the fit, in any order. Those that were sensitive, targets or
    dropped then may be there; others are refused unless they are dropped or carried here.
    """
    from fairpca.cli import _findings as findings
    from fairpca.cli._prepared import open_with_model, read_model, reduce_table

    assert files.output is not None  # which is required
    files.check(table, model)
    fitted, preparation = read_model(model)
    opened = open_with_model(table, preparation, how, files.carry)
    n_rows = reduce_table(opened, fitted.reduction, files.carry, files.output)
    r = fitted.fair_pca.n_components_
    show(
        files.json,
        lambda: {
            "command": "transform",
            **findings.table_as_data(opened),
            "rows": n_rows,
            "n_components": r,
            "model": str(model),
        },
        lambda: [
            findings.columns_sentence(opened),
            f"Reduced {n_rows:,} row{'s' * (n_rows != 1)} to {r} column{'s' * (r != 1)}.",
        ],
        output=files.output,
    )

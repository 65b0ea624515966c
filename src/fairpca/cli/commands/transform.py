"""``fairpca transform``."""

from pathlib import Path
from typing import Annotated

from fairpca.choices import WRITABLE
from fairpca.cli import _options as options
from fairpca.cli._options import TableOptions, with_options
from fairpca.cli._terminal import check_destination, show

EXAMPLES = (
    "fairpca transform new.csv --model people.fairpca --output reduced.csv",
    "fairpca transform new.parquet --model people.fairpca --carry id --output reduced.arrow",
)


_READING = (
    *("drop", "sep", "decimal", "encoding", "missing_values", "drop_missing"),
    *("unknown_categories", "stream"),
)


@with_options(how=TableOptions, only=_READING)
def transform(
    table: options.Table,
    how: TableOptions,
    model: Annotated[Path, options.file_option("--model", help="What `fairpca fit` wrote.")],
    output: Annotated[
        Path,
        options.file_option(
            "--output", help="Where to write the reduced table, as for `fairpca fit`."
        ),
    ],
    carry: options.Carry = [],  # noqa: B006
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Reduce a new table with a model.

    The table needs the columns of the fit, in any order. Those that were sensitive, targets or
    dropped then may be there; others are refused unless they are dropped or carried here.
    """
    from fairpca.cli import _findings as findings
    from fairpca.cli._prepared import open_with_model, read_model, reduce_table

    check_destination(output, WRITABLE, table, model, force=force)
    fitted, preparation = read_model(model)
    opened = open_with_model(table, preparation, how, carry)
    n_rows = reduce_table(opened, fitted.reduction, carry, output)
    r = fitted.fair_pca.n_components_
    show(
        json,
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
        output=output,
    )

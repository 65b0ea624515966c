"""``fairpca front``."""

from pathlib import Path
from typing import Annotated, Any

import pyarrow
import typer

from fairpca import FairPCA, ParetoFront
from fairpca.cli import _findings as findings
from fairpca.cli import _options as options
from fairpca.cli._fitting import find_front
from fairpca.cli._options import ColumnOptions, FitOptions, parse_dimension
from fairpca.cli._paths import MODEL, check_destination
from fairpca.cli._points import PointChoice
from fairpca.cli._prepared import prepare_table, reduce_table
from fairpca.cli._terminal import BadInputError, say, say_json, stage
from fairpca.estimators.model_file import save_model
from fairpca.tables.writing import SUFFIXES, write_batches

EXAMPLES = (
    "fairpca front people.csv --sensitive sex --n-components 5",
    "fairpca front people.csv --sensitive race --n-components 5 --max-extra-loss 0.01 \\",
    "    --model people.fairpca --output reduced.csv",
    "fairpca front people.parquet --sensitive sex --n-components 0.9 --points 20 \\",
    "    --points-output front.csv",
)


def front(
    table: options.Table,
    sensitive: options.Sensitive,
    n_components: options.Dimension,
    points: Annotated[
        int, typer.Option(metavar="N", help="How many points, evenly spaced in spread.")
    ] = 50,
    index: Annotated[
        int | None,
        typer.Option(
            metavar="I", help="Choose a point by its number; negative ones count from the fairest."
        ),
    ] = None,
    max_spread: Annotated[
        float | None,
        typer.Option(metavar="S", help="Choose the cheapest point whose spread is no larger."),
    ] = None,
    max_extra_loss: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Choose the fairest point that loses no more than this share beyond the first: "
            "0.01 is one per cent more.",
        ),
    ] = None,
    knee: Annotated[
        bool,
        typer.Option(
            "--knee", help="Choose the point farthest below the line from the first to the last."
        ),
    ] = False,
    target: options.Target = [],  # noqa: B006 (typer reads it, nobody changes it)
    drop: options.Drop = [],  # noqa: B006
    encode: options.Encode = "onehot",
    standardize: options.Standardize = True,
    keep_sensitive: options.KeepSensitive = False,
    missing_labels: options.MissingLabels = "error",
    model: options.Model = None,
    output: options.Output = None,
    carry: options.Carry = [],  # noqa: B006
    points_output: Annotated[
        Path | None,
        options.file_option("--points-output", "Write the table of all points, as for --output."),
    ] = None,
    stream: options.Stream = False,
    json: options.Json = False,
) -> None:
    """Find every trade-off between total loss and equality, from PCA to the fairest subspace.

    The spread of a point is the largest difference between the disparities of two groups; its total
    loss is the least at which that can be had. A model or a reduced table is that of the chosen
    point: the fairest, unless another one is chosen.
    """
    dimension = parse_dimension(n_components)
    if points < 2:
        raise BadInputError(f"--points must be at least 2, the two ends, got {points}.")
    choice = PointChoice(index, max_spread, max_extra_loss, knee)
    choice.check(points)
    FitOptions(missing_labels=missing_labels)  # which refuses a wrong one
    check_destination(model, MODEL, table, output, points_output)
    check_destination(output, SUFFIXES, table, points_output)
    check_destination(points_output, SUFFIXES, table)
    columns = ColumnOptions(sensitive, [*target, *drop], encode, standardize, keep_sensitive)
    needed = model is not None or output is not None
    prepared = prepare_table(
        table, columns, missing_labels, carry=carry, output=output, stream=stream
    )
    found = find_front(prepared, dimension, points, missing_labels)
    chosen = choice.among(found, needed)
    fair = None if chosen is None else found.estimator(chosen)
    if fair is not None and output is not None:
        reduce_table(prepared, fair, carry, output)
    if fair is not None and model is not None:
        save_model(fair, model, preparation=prepared.preparation)
    if points_output is not None:
        with stage(f"writing {points_output.name}"):
            columns_of = {"point": list(range(len(found))), **found.to_dict()}
            write_batches(pyarrow.table(columns_of).to_batches(), points_output)
    if json:
        say_json(
            {
                "command": "front",
                **findings.table_as_data(prepared),
                **_as_data(found),
                "chosen": None if fair is None else {"point": chosen, **findings.as_data(fair)},
                **findings.paths_as_data(model=model, output=output, points_output=points_output),
            }
        )
        return
    say(findings.columns_sentence(prepared.preparation))
    say(f"\n{findings.in_options(str(found))}")
    if fair is not None and chosen is not None:
        say(_chosen_in_words(found, chosen, fair))
    for written in (model, output, points_output):
        if written is not None:
            say(f"Written: {written}")


def _as_data(found: ParetoFront) -> dict[str, Any]:
    columns = found.to_dict()
    names = ["spread", "total loss", "extra loss", "relative gap", "status"]
    return {
        "n_components": found.problem.n_components,
        "spread_bound": found.spread_bound,
        "groups": found.estimator(-1).group_table_.to_dict()["group"],
        "points": [
            {name.replace(" ", "_"): columns[name][i] for name in names}
            | {"disparities": found.disparities[i].tolist()}
            for i in range(len(found))
        ],
    }


def _chosen_in_words(found: ParetoFront, chosen: int, fair: FairPCA) -> str:
    fairest = chosen == len(found) - 1
    lines = [
        f"\nPoint {chosen}, {'the fairest' if fairest else f'of {len(found)}'}:",
        f"\n{fair.group_table_}\n",
        findings.cost(fair),
    ]
    # The certificate of the fairest stands below the front already.
    return "\n".join(lines if fairest else [*lines, findings.in_options(str(fair.certificate_))])

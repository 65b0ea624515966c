"""``fairpca front``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fairpca import FairPCA, ParetoFront, pareto_front
from fairpca.cli import _findings as findings
from fairpca.cli import _options as options
from fairpca.cli._fitting import (
    ColumnOptions,
    PreparedTable,
    check_missing_labels,
    find_dimension,
    parse_dimension,
    prepare_table,
    unique,
)
from fairpca.cli._points import Choice
from fairpca.cli._reduced import check_carried, reduced_table
from fairpca.cli._streaming import (
    front_of_batches,
    open_batches,
    reads_in_batches,
    reduce_batches,
)
from fairpca.cli._tables import (
    check_model_destination,
    check_table_destination,
    read_table,
    write_table,
)
from fairpca.cli._terminal import BadInputError, refusing, say, say_json, stage
from fairpca.files.model_file import save_model

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
        typer.Option(
            "--points-output",
            metavar="FILE",
            help="Write the table of all points, by suffix as for --output.",
        ),
    ] = None,
    stream: options.Stream = None,
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
    choice = Choice(index, max_spread, max_extra_loss, knee)
    choice.check(points)
    check_missing_labels(missing_labels)
    check_model_destination(model, table, output, points_output)
    check_table_destination(output, table, points_output)
    check_table_destination(points_output, table)
    columns = ColumnOptions(
        unique(sensitive), unique([*target, *drop]), encode, standardize, keep_sensitive
    )
    needed = model is not None or output is not None
    if reads_in_batches(table, stream):
        streamed = open_batches(table, columns, missing_labels, carry, output)
        preparation, n_rows = streamed.preparation, streamed.n_rows
        found = front_of_batches(streamed, dimension, points, missing_labels)
        chosen = choice.among(found, needed)
        fair = None if chosen is None else found.estimator(chosen)
        if fair is not None and output is not None:
            reduce_batches(streamed.batches, fair, preparation, carry, output)
    else:
        frame = read_table(table)
        check_carried(list(frame.columns), carry, output)
        prepared = prepare_table(frame, columns, missing_labels)
        preparation, n_rows = prepared.preparation, len(frame)
        found = _find(prepared, dimension, points, missing_labels)
        chosen = choice.among(found, needed)
        fair = None if chosen is None else found.estimator(chosen)
        if fair is not None and output is not None:
            write_table(reduced_table(fair, prepared.rows, frame, carry), output)
    if fair is not None and model is not None:
        save_model(fair, model, preparation=preparation)
    if points_output is not None:
        write_table(found.to_frame().reset_index(), points_output)
    if json:
        say_json(
            {
                "command": "front",
                **findings.table_as_data(preparation, n_rows),
                **_as_data(found),
                "chosen": None if fair is None else {"point": chosen, **findings.as_data(fair)},
                "model": None if model is None else str(model),
                "output": None if output is None else str(output),
                "points_output": None if points_output is None else str(points_output),
            }
        )
        return
    say(findings.columns_sentence(preparation))
    say(f"\n{findings.in_options(str(found))}")
    if fair is not None and chosen is not None:
        say(_chosen_in_words(found, chosen, fair))
    for written in (model, output, points_output):
        if written is not None:
            say(f"Written: {written}")


def _find(
    prepared: PreparedTable, dimension: int | float, points: int, missing_labels: str
) -> ParetoFront:
    r = find_dimension(prepared.rows, prepared.groups, dimension, missing_labels)
    with stage("finding the points of the front") as progress, refusing():
        return pareto_front(
            prepared.rows,
            sensitive_features=prepared.groups,
            n_components=r,
            n_points=points,
            missing_labels=missing_labels,
            progress=progress,
        )


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

"""``fairpca front``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairpca.choices import WRITABLE
from fairpca.cli import _options as options
from fairpca.cli._options import (
    OF_ONE_SUBSPACE,
    FrontOptions,
    OutputOptions,
    TableOptions,
    option,
    parse_dimension,
    with_options,
)
from fairpca.cli._terminal import (
    BadInputError,
    Heading,
    check_destination,
    refusing,
    show,
    stage,
    written,
)

if TYPE_CHECKING:
    from fairpca import FairPCA, ParetoFront
    from fairpca.text import TextTable

EXAMPLES = (
    "fairpca front people.csv --sensitive sex --n-components 5",
    "fairpca front people.csv --sensitive race --n-components 5 --max-extra-loss 0.01"
    " --model people.fairpca --output reduced.csv",
    "fairpca front people.parquet --sensitive sex --n-components 0.9 --points 20"
    " --points-output front.csv",
    "fairpca front people.csv --sensitive race --n-components 5 --criterion equal --max-spread 0.5",
)


@dataclass(frozen=True)
class PointOptions:
    """The points of a front: how many, which one is chosen, and where they are written."""

    points: int = option(50, "How many points, evenly spaced in unfairness.", metavar="N")
    index: int | None = option(
        None,
        "Choose a point by its number; negative ones count from the fairest.",
        metavar="I",
    )
    max_largest: float | None = option(
        None,
        "Choose the cheapest point whose largest disparity is no larger; with --measure "
        "kept_variance or share_kept, in which every group keeps that much.",
        metavar="E",
    )
    max_spread: float | None = option(
        None, "Choose the cheapest point whose spread is no larger.", metavar="S"
    )
    extra_loss: float | None = option(
        None,
        "Choose the fairest point that loses no more than this share beyond the first: 0.01 is one "
        "per cent more.",
        metavar="SHARE",
        names=["--max-extra-loss"],
    )
    knee: bool = option(
        False, "Choose the point farthest below the line from the first to the last."
    )
    points_output: Path | None = option(
        None, "Write the table of all points, as for --output.", metavar="FILE"
    )

    @refusing()
    def __post_init__(self) -> None:
        from fairpca.validation import check_number

        n = self.points
        if n < 2:
            raise BadInputError(f"--points must be at least 2, the two ends, got {n}.")
        if len(self.wish) > 1:
            raise BadInputError(
                "choose a point by one of --index, --max-largest, --max-spread, --max-extra-loss "
                "and --knee, not by several."
            )
        for name, value in self.wish.items():
            if name.startswith("max_"):
                check_number(f"--{name.replace('_', '-')}", value, least=0.0)
        if not -n <= (self.index or 0) < n:
            raise BadInputError(
                f"--index must be between {-n} and {n - 1} for {n} points, got {self.index}."
            )

    @property
    def wish(self) -> dict[str, Any]:
        """What is asked of the chosen point, as for `ParetoFront.select`."""
        limits = {"max_largest": self.max_largest, "max_spread": self.max_spread}
        wish = {"index": self.index, **limits, "max_extra_loss": self.extra_loss}
        wish["knee"] = self.knee or None
        return {name: value for name, value in wish.items() if value is not None}


@with_options(
    wanted=PointOptions,
    files=OutputOptions,
    how=TableOptions,
    choices=FrontOptions,
    required={"sensitive"},
    without={*OF_ONE_SUBSPACE, "unknown_categories", "report"},
)
def front(
    table: options.Table,
    how: TableOptions,
    choices: FrontOptions,
    wanted: PointOptions,
    files: OutputOptions,
    n_components: options.Dimension,
) -> None:
    """Find every trade-off between total loss and fairness, from PCA to the fairest subspace.

    The total loss of a point is the least at which its largest disparity can be had or, with
    --criterion equal, its largest difference between the disparities of two groups. A model or a
    reduced table is that of the chosen point: the fairest, unless another one is chosen.
    """
    import pyarrow

    from fairpca.cli import _findings as findings
    from fairpca.cli._fitting import find_front
    from fairpca.cli._prepared import prepare_table, reduce_table
    from fairpca.model_file import write_model
    from fairpca.tables.writing import write_batches

    dimension = parse_dimension(n_components)
    points_output, needed = wanted.points_output, bool(files.model or files.output)
    files.check(table, points_output)
    check_destination(points_output, WRITABLE, table, force=files.force)
    prepared = prepare_table(table, how, carry=files.carry, kept=files.model is not None)
    found = find_front(prepared, dimension, wanted.points, choices)
    wish = wanted.wish
    if wanted.max_largest is not None and found.problem.goal.measured.is_kept:
        wish["max_largest"] = -wanted.max_largest  # as measures are
    point = _chosen(found, wish, needed)
    fair = None if point is None else found.estimator(point).set_params(whiten=files.whiten)
    if fair is not None and files.output is not None:
        reduce_table(prepared, fair, files.carry, files.output)
    if fair is not None and files.model is not None:
        write_model(fair, files.model, prepared.preparation)
        written.append(files.model)
    if points_output is not None:
        with stage(f"writing {points_output.name}"):
            columns_of = {"point": list(range(len(found))), **found.to_dict()}
            write_batches(pyarrow.table(columns_of).to_batches(), points_output)
        written.append(points_output)
    show(
        files.json,
        lambda: {
            "command": "front",
            **findings.table_as_data(prepared),
            **_as_data(found),
            "chosen": None if fair is None else {"point": point, **findings.as_data(fair)},
        },
        lambda: [
            findings.columns_sentence(prepared),
            *findings.shown(found)[:-1],
            *_chosen_in_words(found, point, fair),
        ],
        model=files.model,
        output=files.output,
        points_output=points_output,
    )


def _chosen(front: ParetoFront, wish: dict[str, Any], needed: bool) -> int | None:
    """The number of the point; without a wish the fairest if one is needed, else None."""
    if not wish:
        return len(front) - 1 if needed else None
    try:
        with refusing():
            return front.select(**wish)
    except IndexError as error:
        raise BadInputError(
            f"there is no point {wish['index']}: ordinary PCA is as fair as can be here, and the "
            "front has that one point, 0."
        ) from error


def _as_data(found: ParetoFront) -> dict[str, Any]:
    from fairpca.inspection.pareto_front import shown_measures

    columns, bound = found.to_dict(), found.unfairness_bound
    worst, *names = list(columns)[: -found.problem.n_groups]
    return {
        "n_components": found.problem.n_components,
        "over": found.over,
        "measure": found[0].certificate.measure,
        "unfairness_bound": abs(bound) if found.over == "largest" else bound,
        "groups": found.estimator(-1).group_table_.to_dict()["group"],
        "points": [
            {name.replace(" ", "_"): columns[name][i] for name in names}
            | {
                "largest": columns[worst][i],
                "measures": shown_measures(found.problem, found.measures)[i].tolist(),
                "disparities": found.disparities[i].tolist(),
                "worse_off": int((found[i].certificate.change_from_pca > 0.0).sum()),
                "better_off": int((found[i].certificate.change_from_pca < 0.0).sum()),
            }
            for i in range(len(found))
        ],
    }


def _chosen_in_words(
    found: ParetoFront, chosen: int | None, fair: FairPCA | None
) -> list[TextTable | str]:
    from fairpca.cli import _findings as findings

    if chosen is None or fair is None:
        return []
    fairest = chosen == len(found) - 1
    lines = [
        Heading(f"\nPoint {chosen}, {'the fairest' if fairest else f'of {len(found)}'}:"),
        *findings.shown(fair.group_table_),
        findings.cost(fair),
    ]
    # The certificate of the fairest stands below the front already.
    return lines if fairest else [*lines, *findings.proof(fair)]

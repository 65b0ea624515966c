"""``fairpca front``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
from fairpca.cli._terminal import BadInputError, Heading, refusing, show

if TYPE_CHECKING:
    from fairpca import ParetoFront

EXAMPLES = (
    "fairpca front people.csv --sensitive sex --n-components 5",
    "fairpca front people.csv --sensitive race --n-components 5 --max-extra-loss 0.01"
    " --model people.fairpca --output reduced.csv",
    "fairpca front people.parquet --sensitive sex --n-components 0.9 --points 20 --json",
    "fairpca front people.csv --sensitive race --n-components 5 --criterion equal --index 30",
)


@dataclass(frozen=True)
class PointOptions:
    """The points of a front: how many, and which one is chosen."""

    points: int = option(50, "How many points, evenly spaced in unfairness.", metavar="N", min=2)
    index: int | None = option(
        None,
        "Choose a point by its number; negative ones count from the fairest.",
        metavar="I",
    )
    extra_loss: float | None = option(
        None,
        "Choose the fairest point that loses no more than this share beyond the first: 0.01 is one "
        "per cent more.",
        metavar="SHARE",
        names=["--max-extra-loss"],
    )

    @refusing()
    def __post_init__(self) -> None:
        from fairpca.validation import check_number

        if self.index is not None and self.extra_loss is not None:
            raise BadInputError("choose a point by one of --index and --max-extra-loss, not both.")
        if self.extra_loss is not None:
            check_number("--max-extra-loss", self.extra_loss, least=0.0)
        if not -self.points <= (self.index or 0) < self.points:
            raise BadInputError(
                f"--index must be between {-self.points} and {self.points - 1} for {self.points} "
                f"points, got {self.index}."
            )


@with_options(
    wanted=PointOptions,
    files=OutputOptions,
    how=TableOptions,
    choices=FrontOptions,
    required={"sensitive"},
    without={*OF_ONE_SUBSPACE, "unknown_categories"},
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
    from fairpca.cli import _findings as findings
    from fairpca.cli._fitting import find_front
    from fairpca.cli._prepared import prepare_table

    dimension, kept = parse_dimension(n_components), files.model is not None
    files.check(table)
    prepared = prepare_table(table, how, dimension, carry=files.carry, kept=kept)
    found = find_front(prepared, dimension, wanted.points, choices)
    point, fair = _chosen(found, wanted, needed=kept or files.output is not None), None
    if point is not None:
        fair = found.estimator(point).set_params(whiten=files.whiten)
        findings.write(prepared, fair, files)
    of_point: list[Any] = []
    if point is not None and fair is not None:
        fairest = point == len(found) - 1
        of_point = [
            Heading(f"\nPoint {point}, {'the fairest' if fairest else f'of {len(found)}'}:"),
            *findings.shown(fair.group_table_),
            findings.cost(fair),
            # The certificate of the fairest stands below the front already.
            *([] if fairest else findings.proof(fair)),
        ]
    show(
        files.json,
        lambda: {
            "command": "front",
            **findings.table_as_data(prepared),
            **findings.front_as_data(found),
            "chosen": None if fair is None else {"point": point, **findings.as_data(fair)},
        },
        lambda: [findings.columns_sentence(prepared), *findings.shown(found)[:-1], *of_point],
        model=files.model,
        output=files.output,
    )


def _chosen(front: ParetoFront, wanted: PointOptions, needed: bool) -> int | None:
    """The number of the point; without a wish the fairest if one is needed, else None."""
    if wanted.extra_loss is not None:
        with refusing():
            return front.select(max_extra_loss=wanted.extra_loss)
    if wanted.index is None:
        return len(front) - 1 if needed else None
    if not -len(front) <= wanted.index < len(front):
        raise BadInputError(
            f"there is no point {wanted.index}: ordinary PCA is as fair as can be here, and the "
            "front has that one point, 0."
        )
    return wanted.index % len(front)

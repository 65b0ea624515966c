"""``fairpca audit``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairpca.choices import BASELINES
from fairpca.cli import _options as options
from fairpca.cli._options import (
    DIMENSION_TEXT,
    FitOptions,
    ResultOptions,
    TableOptions,
    option,
    parse_dimension,
    with_options,
)
from fairpca.cli._terminal import BadInputError, Heading, refusing, show

if TYPE_CHECKING:
    from fairpca import FairPCA, GroupTable

EXAMPLES = (
    "fairpca audit people.csv --sensitive sex --n-components 5",
    "fairpca audit people.csv --sensitive sex --sensitive race --n-components 5 --json",
    "fairpca audit people.csv --sensitive race --n-components 5 --measure share_lost",
    "fairpca audit new.parquet --model people.fairpca",
    "fairpca audit new.parquet --model people.fairpca --baseline training",
)


@dataclass(frozen=True)
class AuditOptions(ResultOptions):
    """What is audited, and what it is compared with."""

    n_components: str | None = option(None, DIMENSION_TEXT, metavar="5|0.9")
    model: Path | None = option(
        None,
        "Audit this model instead of ordinary PCA; it also says how columns are prepared, and "
        "without --sensitive which make the groups.",
        metavar="FILE",
    )
    baseline: str = option(
        "rows",
        "What a model's losses are compared with: PCA of this table and of its groups, or of the "
        "rows that the model was fitted to.",
        BASELINES,
    )
    resamples: int = option(
        200,
        "How often rows are resampled for the intervals of a model's audit; 0 leaves the intervals "
        "out.",
        metavar="N",
    )

    @refusing()
    def __post_init__(self) -> None:
        from fairpca.generalization.bootstrap import check_resamples

        check_resamples(self.resamples)
        if self.model is None and self.baseline != "rows":
            raise BadInputError("--baseline training is for an audit of a --model.")
        if self.model is not None and self.n_components is not None:
            raise BadInputError(
                "a model has its own dimension: leave out --n-components or --model."
            )


@with_options(asked=AuditOptions, how=TableOptions, choices=FitOptions, without={"nested", "force"})
def audit(
    table: options.Table, how: TableOptions, choices: FitOptions, asked: AuditOptions
) -> None:
    """Show who pays for ordinary PCA, or for a model, and what a fair subspace would cost.

    A group's loss is the squared distance between a row and its reconstruction, averaged over its
    rows; its disparity is what it loses beyond a PCA of its own. Nothing is written.
    """
    from fairpca.cli import _findings as findings
    from fairpca.cli._fitting import audit_prepared, fit_fair
    from fairpca.cli._prepared import prepare_table, prepare_with_model, read_model
    from fairpca.fair_pca import baselines_of

    audited: GroupTable | None = None
    fair: FairPCA | None = None
    if asked.model is None:
        if not how.sensitive or asked.n_components is None:
            raise BadInputError("an audit needs --sensitive and --n-components, or a --model.")
        dimension = parse_dimension(asked.n_components)
        prepared = prepare_table(table, how, dimension, folds=choices.folds)
        fair = fit_fair(prepared, dimension, choices)
    else:
        loaded, preparation = read_model(asked.model)
        sensitive = how.sensitive or preparation.sensitive
        how = replace(how, sensitive=sensitive, groups=how.groups or loaded.fair_pca.groups or "")
        if not sensitive:
            raise BadInputError(
                f"{str(asked.model)!r} does not say what is sensitive: use --sensitive to do so."
            )
        if asked.baseline == "training":
            with refusing():
                baselines_of(loaded.fair_pca)
        prepared = prepare_with_model(table, preparation, how, choices.folds)
        chosen = {"baseline": asked.baseline, "n_resamples": asked.resamples}
        audited = audit_prepared(prepared, loaded.reduction, **chosen)
        # Nothing is fitted to rows that are compared with those of the training.
        if asked.baseline == "rows":
            fair = fit_fair(prepared, loaded.fair_pca.certificate_.n_components, choices)
    of_fair: list[Any] = []
    if fair is not None:
        of_fair = [*findings.shown(fair.group_table_)[1:], *findings.of_subspace(fair)]
    if audited is not None:
        heading = [Heading("\nA fair subspace fitted to this table:\n")] if of_fair else []
        of_fair = [*findings.of_model(audited), *heading, *of_fair]
    show(
        asked.json,
        lambda: {
            "command": "audit",
            **findings.table_as_data(prepared),
            "model": None if audited is None else findings.model_as_data(audited),
            **({} if fair is None else findings.as_data(fair)),
        },
        lambda: [f"{findings.columns_sentence(prepared)}\n", *of_fair],
    )

"""``fairpca audit``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fairpca.choices import BASELINES
from fairpca.cli import _options as options
from fairpca.cli._options import (
    DIMENSION_TEXT,
    REPORT_TEXT,
    FitOptions,
    ModelTableOptions,
    ResultOptions,
    check_words,
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

_REFITTED = "\nA fair subspace fitted to this table:\n"


@dataclass(frozen=True)
class AuditOptions(ResultOptions):
    """What is audited, what it is compared with, and what is written of it."""

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
        words=BASELINES,
    )
    resamples: int = option(
        200,
        "How often rows are resampled for the intervals of a model's audit; 0 leaves the intervals "
        "out.",
        metavar="N",
    )
    report: Path | None = option(None, REPORT_TEXT, metavar="FILE")

    @refusing()
    def __post_init__(self) -> None:
        from fairpca.generalization.bootstrap import check_resamples

        check_words(self)
        check_resamples(self.resamples)
        if self.model is None and self.baseline != "rows":
            raise BadInputError("--baseline training is for an audit of a --model.")
        if self.model is not None and self.n_components is not None:
            raise BadInputError(
                "a model has its own dimension: leave out --n-components or --model."
            )
        if self.model is not None and self.report is not None:
            raise BadInputError(
                "a report is about ordinary PCA and fair subspaces: leave out --report or --model."
            )


@with_options(asked=AuditOptions, how=ModelTableOptions, choices=FitOptions, without={"nested"})
def audit(
    context: typer.Context,
    table: options.Table,
    how: ModelTableOptions,
    choices: FitOptions,
    asked: AuditOptions,
) -> None:
    """Show who pays for ordinary PCA, or for a model, and what a fair subspace would cost.

    A group's loss is the squared distance between a row and its reconstruction, averaged over its
    rows; its disparity is what it loses beyond a PCA of its own. Nothing but a report is written.
    """
    from fairpca.cli import _findings as findings
    from fairpca.cli._fitting import (
        audit_prepared,
        check_report,
        fit_fair,
        report_on,
        write_report,
    )
    from fairpca.cli._prepared import prepare_table, prepare_with_model, read_model
    from fairpca.fair_pca import baselines_of

    model, report, baseline = asked.model, asked.report, asked.baseline
    audited: GroupTable | None = None
    fair: FairPCA | None = None
    if model is not None:
        loaded, preparation = read_model(model)
        how = replace(
            how,
            sensitive=how.sensitive or [*preparation.sensitive],
            # those that the model was fitted for
            groups=how.groups or loaded.fair_pca.groups or "intersections",
        )
        if not how.sensitive:
            raise BadInputError(f"{str(model)!r} does not say what is sensitive: use --sensitive.")
        if baseline == "training":
            with refusing():
                baselines_of(loaded.fair_pca)
        prepared = prepare_with_model(table, preparation, how, choices.folds)
        audited = audit_prepared(
            prepared, loaded.reduction, baseline=baseline, n_resamples=asked.resamples
        )
        # Nothing is fitted to rows that are compared with those of the training.
        if baseline == "rows":
            fair = fit_fair(prepared, loaded.fair_pca.certificate_.n_components, choices)
    elif not how.sensitive or asked.n_components is None:
        raise BadInputError("an audit needs --sensitive and --n-components, or a --model.")
    else:
        dimension = parse_dimension(asked.n_components)
        check_report(report, choices, table, force=asked.force)
        how = replace(how, groups=how.groups or "intersections")
        whole = report is not None
        prepared = prepare_table(table, how, whole=whole, kept=whole, folds=choices.folds)
        fair = fit_fair(prepared, dimension, choices)
        if report is not None:
            with warnings.catch_warnings(action="ignore"):  # its warnings are those of the fit
                page = report_on(prepared, int(fair.n_components_), choices, table, context.obj)
            write_report(page, report)
    show(
        asked.json,
        lambda: {
            "command": "audit",
            **findings.table_as_data(prepared),
            "model": None if audited is None else findings.model_as_data(audited),
            **({} if fair is None else findings.as_data(fair)),
        },
        lambda: [
            f"{findings.columns_sentence(prepared)}\n",
            *([] if audited is None else findings.of_model(audited)),
            *([] if audited is None or fair is None else [Heading(_REFITTED)]),
            *(
                []
                if fair is None
                else [*findings.shown(fair.group_table_)[1:], *findings.of_subspace(fair)]
            ),
        ],
        report=report,
    )

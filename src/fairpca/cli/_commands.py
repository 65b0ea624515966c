"""The commands of the program: functions whose docstrings are their help, with examples.

A new one is a function here, and a name in `COMMANDS`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairpca.choices import BASELINES
from fairpca.cli._options import (
    DIMENSION,
    DIMENSION_TEXT,
    OF_ONE_SUBSPACE,
    Dimension,
    FitOptions,
    FrontOptions,
    OutputOptions,
    ResultOptions,
    Table,
    TableOptions,
    changed,
    option,
    with_options,
)
from fairpca.cli._terminal import (
    REPORT,
    BadInputError,
    Heading,
    check_destination,
    refusing,
    stage,
)

if TYPE_CHECKING:
    from fairpca import ParetoFront


@dataclass(frozen=True)
class AuditOptions(ResultOptions):
    """What is audited, and what it is compared with."""

    n_components: float | None = option(None, DIMENSION_TEXT, **DIMENSION)
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


@with_options(without={"force"})
def audit(table: Table, how: TableOptions, choices: FitOptions, asked: AuditOptions) -> None:
    """Show who pays for ordinary PCA, and what a fair subspace would cost; or audit a model.

    A group's loss is the squared distance between a row and its reconstruction, averaged over its
    rows; its disparity is what it loses beyond a PCA of its own. Nothing is written.

    For example:
      fairpca audit people.csv --sensitive sex --n-components 5
      fairpca audit new.parquet --model people.fairpca
      fairpca audit new.parquet --model people.fairpca --baseline training
    """
    from fairpca.cli import _findings, _fitting, _prepared
    from fairpca.fair_pca import baselines_of
    from fairpca.tables.columns import typed_options

    if asked.model is None:
        if not how.sensitive or asked.n_components is None:
            raise BadInputError("an audit needs --sensitive and --n-components, or a --model.")
        prepared = _prepared.prepare_table(table, how, asked.n_components, folds=choices.folds)
        fair = _fitting.fit_fair(prepared, asked.n_components, choices)
        audited, words = None, _findings.of_fit(fair)
    else:
        if changed(choices):
            raise BadInputError(
                f"{typed_options(changed(choices))} is for a fit: leave it out, or --model."
            )
        loaded, preparation = _prepared.read_model(asked.model)
        sensitive = how.sensitive or preparation.sensitive
        how = replace(how, sensitive=sensitive, groups=how.groups or loaded.fair_pca.groups or "")
        if not sensitive:
            raise BadInputError(
                f"{str(asked.model)!r} does not say what is sensitive: use --sensitive to do so."
            )
        if asked.baseline == "training":
            with refusing():
                baselines_of(loaded.fair_pca)
        prepared = _prepared.prepare_with_model(table, preparation, how)
        chosen = {"baseline": asked.baseline, "n_resamples": asked.resamples}
        audited = _fitting.audit_prepared(prepared, loaded.reduction, **chosen)
        fair, words = None, _findings.of_model(audited)
    _findings.show_result(
        "audit",
        prepared,
        asked,
        lambda: {
            "model": None if audited is None else _findings.model_as_data(audited),
            **({} if fair is None else _findings.as_data(fair)),
        },
        words,
    )


@with_options(
    required={"sensitive"},
    without={*OF_ONE_SUBSPACE, "gap", "time_limit", "unknown_categories", "force"},
)
def compare(
    table: Table,
    how: TableOptions,
    choices: FitOptions,
    printed: ResultOptions,
    n_components: Annotated[
        int,
        typer.Option("--n-components", metavar="N", help="The number of columns to reduce to."),
    ],
) -> None:
    """Say whether fair PCA is needed: what each group loses on held-out rows, and with what else.

    PCA is compared with PCA of one and two more components, with balanced PCA, with fair PCA, and
    with the largest disparity as small as can be. Nothing is written.

    For example:
      fairpca compare people.csv --sensitive sex --n-components 5
      fairpca compare people.csv --sensitive sex --n-components 5 --json
    """
    from fairpca.cli import _findings, _fitting, _prepared

    prepared = _prepared.prepare_table(table, how, n_components, folds="all")
    found = _fitting.compare_methods(prepared, n_components, choices)
    data, words = partial(_findings.comparison_as_data, found), _findings.shown(found)
    _findings.show_result("compare", prepared, printed, data, words[:-1])


@with_options(
    required={"sensitive"},
    without={"unknown_categories"},
)
def fit(
    table: Table,
    how: TableOptions,
    choices: FitOptions,
    files: OutputOptions,
    n_components: Dimension,
) -> None:
    """Find a subspace that serves the groups more fairly than PCA, and prove how good it is.

    A group's disparity is what it loses beyond a PCA of its own. Large ones are brought down, where
    new data would show them too; --criterion, --measure, --bound and --max-extra-loss ask for
    something else. Prints what each group loses and how good the subspace provably is, and writes
    the model, the reduced table, or both.

    For example:
      fairpca fit people.csv --sensitive sex --n-components 5
      fairpca fit people.csv --sensitive sex --n-components 5 --model m.fairpca
      fairpca fit people.csv --sensitive race --n-components 0.9 --output r.csv
      fairpca fit people.csv --sensitive sex --n-components 5 --bound 0.5
      fairpca fit people.csv --sensitive sex --n-components 5 --criterion equal
    """
    from fairpca.cli import _findings, _fitting, _prepared

    files.check(table)
    prepared = _prepared.prepare_table(
        table,
        how,
        n_components,
        carry=files.carry,
        folds=choices.folds,
        keeps="" if files.model is None else "model",
    )
    fair = _fitting.fit_fair(prepared, n_components, choices).set_params(whiten=files.whiten)
    _findings.write(prepared, fair, files)
    data, words = partial(_findings.as_data, fair), _findings.of_fit(fair)
    written = {"model": files.model, "output": files.output}
    _findings.show_result("fit", prepared, files, data, words, **written)


@dataclass(frozen=True)
class PointOptions:
    """The points of a front: how many, and which one is chosen."""

    points: int = option(50, "How many points, evenly spaced in unfairness.", metavar="N", min=2)
    index: int | None = option(
        None,
        "Choose a point by its number; negative ones count from the fairest.",
        metavar="I",
    )

    def __post_init__(self) -> None:
        if not -self.points <= (self.index or 0) < self.points:
            raise BadInputError(
                f"--index must be between {-self.points} and {self.points - 1} for {self.points} "
                f"points, got {self.index}."
            )


@with_options(
    required={"sensitive"},
    without={*OF_ONE_SUBSPACE, "unknown_categories"},
)
def front(
    table: Table,
    how: TableOptions,
    choices: FrontOptions,
    wanted: PointOptions,
    files: OutputOptions,
    n_components: Dimension,
) -> None:
    """Find every trade-off between total loss and fairness, from PCA to the fairest subspace.

    The total loss of a point is the least at which its largest disparity can be had or, with
    --criterion equal, its largest difference between the disparities of two groups. A model or a
    reduced table is that of the chosen point: the fairest, unless another one is chosen.

    For example:
      fairpca front people.csv --sensitive sex --n-components 5
      fairpca front people.csv --sensitive sex --n-components 5 --criterion equal
      fairpca front people.csv --sensitive sex --n-components 5 --index 20
    """
    from fairpca.cli import _findings, _fitting, _prepared

    keeps = "" if files.model is None else "model"
    files.check(table)
    prepared = _prepared.prepare_table(table, how, n_components, carry=files.carry, keeps=keeps)
    found = _fitting.find_front(prepared, n_components, wanted.points, choices)
    point = _chosen(found, wanted, needed=bool(keeps) or files.output is not None)
    words, fair = _findings.shown(found)[:-1], None
    if point is not None:
        fair = found.estimator(point).set_params(whiten=files.whiten)
        _findings.write(prepared, fair, files)
        fairest = point == len(found) - 1
        words += [
            Heading(f"\nPoint {point}, {'the fairest' if fairest else f'of {len(found)}'}:"),
            # The certificate of the fairest stands below the front already.
            *_findings.of_fit(fair, proven=not fairest),
        ]
    _findings.show_result(
        "front",
        prepared,
        files,
        lambda: {
            **_findings.front_as_data(found),
            "chosen": None if fair is None else {"point": point, **_findings.as_data(fair)},
        },
        words,
        model=files.model,
        output=files.output,
    )


def _chosen(front: ParetoFront, wanted: PointOptions, needed: bool) -> int | None:
    """The number of the point; without a wish the fairest if one is needed, else None."""
    if wanted.index is None:
        return len(front) - 1 if needed else None
    if not -len(front) <= wanted.index < len(front):
        raise BadInputError(
            f"there is no point {wanted.index}: ordinary PCA is as fair as can be here, and the "
            "front has that one point, 0."
        )
    return wanted.index % len(front)


@dataclass(frozen=True)
class PageOptions(ResultOptions):
    """What a page shows, and where it is written."""

    report: Path = option(Path(), "Where to; the suffix is .html.", metavar="FILE")
    title: str | None = option(None, "Head of the page.")
    rows_shown: int = option(
        1000,
        "How many rows the page shows as marks, drawn at random; 0 shows no single rows.",
        min=0,
    )


@with_options(
    required={"sensitive", "report"},
    without={*OF_ONE_SUBSPACE, "criterion", "unknown_categories", "stream"},
)
def report(
    context: typer.Context,
    table: Table,
    how: TableOptions,
    choices: FrontOptions,
    page: PageOptions,
    n_components: Dimension,
) -> None:
    """Write a page for everyone: who pays for PCA, what fairness costs, and how sure that is.

    The page needs nothing else, neither files nor a network. It shows what each group loses on
    held-out rows, whether fair PCA is needed, a slider from ordinary PCA to the fairest subspace of
    these rows, and the proof.

    For example:
      fairpca report people.csv --sensitive sex --n-components 5 --report p.html
      fairpca report people.csv --sensitive race --n-components 5 --report p.html
    """
    from fairpca.cli import _findings, _fitting, _prepared
    from fairpca.report import import_jinja2

    check_destination(page.report, REPORT, table, force=page.force)
    with refusing():
        import_jinja2()
    prepared = _prepared.prepare_table(table, how, n_components, keeps="report")
    shown = {"rows_shown": page.rows_shown} | ({} if page.title is None else {"title": page.title})
    made = _fitting.report_on(prepared, n_components, choices, table, context.obj, **shown)
    with stage(f"writing {page.report.name}"):
        made.write_html(page.report)
    fair = made.front.estimator(-1)
    # Where the verdict is to use PCA there is no other subspace to be shown.
    has_others = len(made.front) > 1
    # Not the default's subspace.
    named = replace(fair.group_table_, name="min-max")
    shown_table = _findings.shown(named) if has_others else []
    # Unicode's marks of a name's direction are for the page; what the table has said is not
    # repeated below it.
    marks = dict.fromkeys(map(ord, "\u2068\u2069"))
    sentences = [each.translate(marks) for each in made.sentences()]
    sentences = [each for each in sentences if each not in shown_table]
    words = [*shown_table, *sentences, *(_findings.proof(fair) if has_others else [])]
    _findings.show_result(
        "report",
        prepared,
        page,
        lambda: {**_findings.as_data(fair), "summary": made.summary},
        words,
        report=page.report,
    )


_OF_TRANSFORM = (
    *("drop", "auto", "sep", "decimal", "encoding", "missing_values", "drop_missing"),
    *("unknown_categories", "stream", "output", "carry", "force", "json"),
)


@with_options(only=_OF_TRANSFORM, required={"output"})
def transform(
    table: Table,
    how: TableOptions,
    files: OutputOptions,
    model: Annotated[
        Path, typer.Option("--model", metavar="FILE", help="What `fairpca fit` wrote.")
    ],
) -> None:
    """Reduce a new table with a model.

    The table needs the columns of the fit, in any order. Those that were sensitive, targets or
    dropped then may be there; others are refused unless they are dropped or carried here.

    For example:
      fairpca transform new.csv --model people.fairpca --output reduced.csv
      fairpca transform new.csv --model people.fairpca --carry id --output r.arrow
    """
    from fairpca.cli import _findings, _prepared

    assert files.output is not None  # which is required
    files.check(table, model)
    fitted, preparation = _prepared.read_model(model)
    opened = _prepared.prepare_with_model(table, preparation, how, carry=files.carry, read=False)
    n_rows = _prepared.reduce_table(opened, fitted.reduction, files.carry, files.output)
    r = fitted.fair_pca.n_components_
    data = {"rows": n_rows, "n_components": r, "model": str(model)}
    words = [f"Reduced {n_rows:,} row{'s' * (n_rows != 1)} to {r} column{'s' * (r != 1)}."]
    _findings.show_result("transform", opened, files, lambda: data, words, output=files.output)


COMMANDS = (audit, compare, fit, front, report, transform)

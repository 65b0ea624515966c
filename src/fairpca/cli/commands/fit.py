"""``fairpca fit``."""

from fairpca.cli import _options as options
from fairpca.cli._options import (
    FitOptions,
    OutputOptions,
    TableOptions,
    parse_dimension,
    with_options,
)
from fairpca.cli._terminal import show

EXAMPLES = (
    "fairpca fit people.csv --sensitive sex --n-components 5 --model people.fairpca",
    "fairpca fit people.parquet --sensitive sex --sensitive race --n-components 0.9"
    " --target income --carry income --output reduced.parquet",
    "fairpca fit people.csv --sensitive race --n-components 5 --max-extra-loss 0.01 --json",
    "fairpca fit people.csv --sensitive sex --n-components 5 --measure share_lost --bound 0.5",
    "fairpca fit people.csv --sensitive race --n-components 5 --criterion equal --tolerance 0.1",
    "fairpca fit people.csv --sensitive hospital --n-components 5 --standard-errors 1",
)


@with_options(
    files=OutputOptions,
    how=TableOptions,
    choices=FitOptions,
    required={"sensitive"},
    without={"unknown_categories"},
)
def fit(
    table: options.Table,
    how: TableOptions,
    choices: FitOptions,
    files: OutputOptions,
    n_components: options.Dimension,
) -> None:
    """Find the subspace that is fairest to the worst-off group.

    A group's disparity is what it loses beyond a PCA of its own. Large ones are brought down, where
    new data would show them too; --criterion, --measure, --bound and --max-extra-loss ask for
    something else. Prints what each group loses and how good the subspace provably is, and writes
    the model, the reduced table, or both.
    """
    from fairpca.cli import _findings as findings
    from fairpca.cli._fitting import fit_fair
    from fairpca.cli._prepared import prepare_table

    dimension = parse_dimension(n_components)
    files.check(table)
    prepared = prepare_table(
        table,
        how,
        dimension,
        carry=files.carry,
        folds=choices.folds,
        kept=files.model is not None,
    )
    fair = fit_fair(prepared, dimension, choices).set_params(whiten=files.whiten)
    findings.write(prepared, fair, files)
    show(
        files.json,
        lambda: {
            "command": "fit",
            **findings.table_as_data(prepared),
            **findings.as_data(fair),
            **({"nesting": fair.nesting_.to_dict()} if choices.nested else {}),
        },
        lambda: [
            findings.columns_sentence(prepared),
            *findings.shown(fair.group_table_),
            *findings.of_subspace(fair),
            *(findings.shown(fair.nesting_) if choices.nested else []),
        ],
        model=files.model,
        output=files.output,
    )

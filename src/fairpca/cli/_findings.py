"""What was found, in words and as data, and the files in which it is written."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from fairpca import Comparison, FairPCA, GroupTable, ParetoFront
from fairpca._linalg.types import Array
from fairpca.cli._options import OutputOptions, ResultOptions
from fairpca.cli._prepared import PreparedTable, reduce_table
from fairpca.cli._terminal import in_options, show
from fairpca.inspection.pareto_front import shown_measures
from fairpca.model_file import save_model
from fairpca.tables.columns import quoted
from fairpca.text import MOST_NAMES, TextTable


def write(prepared: PreparedTable, fair: FairPCA, files: OutputOptions) -> None:
    """Write the reduced table and the model, where these are asked for."""
    if files.output is not None:
        reduce_table(prepared, fair, files.carry, files.output)
    if files.model is not None:
        save_model(fair, files.model, preparation=prepared.preparation)


def show_result(
    command: str,
    prepared: PreparedTable,
    options: ResultOptions,
    data: Callable[[], dict[str, Any]],
    words: Sequence[TextTable | str],
    **files: Path | None,
) -> None:
    """Print what a command has found, as data or in words, and the files that it has written."""
    show(
        options.json,
        lambda: {"command": command, **table_as_data(prepared), **data()},
        [columns_sentence(prepared), *words],
        **files,
    )


def columns_sentence(prepared: PreparedTable) -> str:
    """What became of the table's columns: in few words, however many there are."""
    outcomes = prepared.outcomes
    by_kind: dict[str, list[Any]] = {}
    for outcome in outcomes:
        by_kind.setdefault(outcome.kind, []).append(outcome)
    parts = [f"{len(by_kind['number'])} of numbers"] if "number" in by_kind else []
    made = sum(outcome.n_columns for outcome in by_kind.get("onehot", ()))
    if made:
        parts.append(f"{len(by_kind['onehot'])} of text as {made} 0/1 column{'s' * (made > 1)}")
    said = [" and ".join(parts)]
    for kind, word in (("sensitive", "for groups"), ("left out", "left out")):
        names = [outcome.name for outcome in by_kind.get(kind, ())]
        said += [f"{word}: {quoted(names)}"] if names else []
    noted = [outcome for outcome in outcomes if outcome.note]
    shown = [f"{quoted([o.name])}: {o.note}" for o in noted[:MOST_NAMES]]
    more, n_dropped = len(noted) - len(shown), prepared.table.n_dropped
    lines = [f"Columns: {'; '.join(said)}.", *shown]
    if more:
        lines.append(f"and notes on {more} more column{'s' * (more > 1)}, which --json has")
    if n_dropped:
        rows = "row is" if n_dropped == 1 else "rows are"
        lines.append(f"{n_dropped:,} {rows} left out, because values are missing")
    automatic = [f"--auto added {prepared.added}", *prepared.problems] if prepared.problems else []
    return "\n".join("\n  ".join(part) for part in (automatic, lines) if part)


def shown(result: Any) -> list[TextTable | str]:
    """A result of the library as it is printed, in the program's words, between empty lines."""
    parts = result.text_parts()
    return ["", *(in_options(part) if isinstance(part, str) else part for part in parts), ""]


def of_fit(fair: FairPCA, *, proven: bool = True) -> list[TextTable | str]:
    """What each group loses, what the fair subspace costs and, if `proven`, how good it is.

    That every group is worse off than with ordinary PCA, where it is so, comes first.
    """
    said = proof(fair) if proven else []
    n = int(fair.certificate_.all_worse_off and len(said) > 1)
    what = f"The fair subspace, of dimension {fair.n_components_},"
    costs = _cost(what, fair.group_table_, fair.solution_.total_loss)
    return [*shown(fair.group_table_), *said[:n], costs, *said[n:]]


def proof(fair: FairPCA) -> list[str]:
    """How good the subspace is, sentence by sentence, to stand below the table of groups."""
    return [in_options(sentence) for sentence in fair.certificate_.sentences()]


def _cost(what: str, table: GroupTable, loss: float) -> str:
    """What a subspace costs in total, beside ordinary PCA."""
    ordinary = total(table, table.pca_loss)
    change = 100.0 * (loss / ordinary - 1.0) if ordinary > 0.0 else 0.0
    word = "more" if change >= 0.0 else "less"
    compared = f"{loss:.6g}, {abs(change):.2f} % {word} than ordinary PCA"
    rows = " of the training rows" if table.baseline == "training" else ""
    return f"{what} has a total loss of {compared}{rows}."


def of_model(audited: GroupTable) -> list[TextTable | str]:
    """What each group loses with an audited model, and what that costs in total."""
    return [*shown(audited), _cost("The model", audited, total(audited, audited.loss))]


def total(table: GroupTable, losses: Array) -> float:
    """The mean loss of all rows, from the groups' mean losses."""
    return float(np.average(losses, weights=table.weight))


def table_as_data(prepared: PreparedTable) -> dict[str, Any]:
    """What was read, for JSON."""
    return {
        "rows": prepared.n_rows,
        "columns": [column.name for column in prepared.preparation.columns],
        "prepared_columns": list(prepared.preparation.feature_names),
        "outcomes": [asdict(outcome) for outcome in prepared.outcomes],
        "rows_left_out": prepared.table.n_dropped + prepared.table.n_unlabelled,
        "added_by_auto": prepared.added,
        "problems": list(prepared.problems),
    }


def as_data(fair: FairPCA) -> dict[str, Any]:
    """A fitted subspace as plain data, for JSON."""
    return {
        "n_components": fair.n_components_,
        "pca_total_loss": total(fair.group_table_, fair.group_table_.pca_loss),
        "total_loss": float(fair.solution_.total_loss),
        "explained_variance_ratio": fair.explained_variance_ratio_,
        "groups": columns_as_data(fair.group_table_.to_dict()),
        "compared_with_pca": _compared_as_data(fair.group_table_),
        "certificate": asdict(fair.certificate_)
        | {"all_worse_off": fair.certificate_.all_worse_off, "text": str(fair.certificate_)},
    }


def comparison_as_data(found: Comparison) -> dict[str, Any]:
    """A comparison of methods as plain data, for JSON."""
    return {
        "methods": columns_as_data(found.summary()),
        "groups": columns_as_data(found.to_dict()),
        "verdict": {
            "kind": found.verdict.kind,
            **found.verdict.numbers,
            "text": str(found.verdict),
        },
    }


def model_as_data(audited: GroupTable) -> dict[str, Any]:
    """An audited model as plain data, for JSON."""
    return {
        "total_loss": total(audited, audited.loss),
        "baseline": audited.baseline,
        "groups": columns_as_data(audited.to_dict()),
        "difference_interval": audited.intervals and audited.intervals.difference,
        "compared_with_pca": _compared_as_data(audited),
    }


def _compared_as_data(table: GroupTable) -> dict[str, Any]:
    """Who is better and who is worse off than with ordinary PCA."""
    names = dict(zip(table.labels, table.to_dict()["group"], strict=True))
    return {
        "better_off": [names[label] for label in table.better_off],
        "worse_off": [names[label] for label in table.worse_off],
        "largest_gain": max(-float(table.change.min()), 0.0),
        "largest_loss": max(float(table.change.max()), 0.0),
        "text": table.sentences(),
    }


def front_as_data(found: ParetoFront) -> dict[str, Any]:
    """A front as plain data, for JSON."""
    columns, bound = found.to_dict(), found.unfairness_bound
    worst, *names = list(columns)[: -found.problem.n_groups]
    measures = shown_measures(found.problem, found.measures)
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
                "measures": measures[i].tolist(),
                "disparities": found.disparities[i].tolist(),
                "worse_off": int((found[i].certificate.change_from_pca > 0.0).sum()),
                "better_off": int((found[i].certificate.change_from_pca < 0.0).sum()),
            }
            for i in range(len(found))
        ],
    }


def columns_as_data(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Columns as one entry for each row."""
    names = [name.replace(" ", "_").lower() for name in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]

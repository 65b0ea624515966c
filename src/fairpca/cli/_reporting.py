"""Reports on the command line."""

import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas

from fairpca.cli._options import ColumnOptions, FitOptions
from fairpca.cli._paths import REPORT, check_destination
from fairpca.cli._prepared import PreparedTable
from fairpca.cli._terminal import BadInputError, refusing, stage
from fairpca.report import Report, import_jinja2
from fairpca.report import report as make_report


def check_report(path: Path | None, choices: FitOptions, *others: Path | None) -> None:
    """Refuse a report that could not be written, or would not be about what was asked."""
    if path is None:
        return
    check_destination(path, REPORT, *others)
    with refusing():
        import_jinja2()
    exact = choices.solver in ("auto", "exact")
    if choices.criterion != "equal" or choices.tolerance != 0.0 or not exact:
        raise BadInputError(
            "a report shows every tolerance, solved exactly: leave out --criterion, --tolerance "
            "and --solver, or --report."
        )


def report_on(
    prepared: PreparedTable,
    n_components: int,
    missing_labels: str,
    *,
    code: str,
    title: str | None = None,
    warn: bool = True,
) -> Report:
    """Make the report on a prepared table; `warn` unless its warnings have been said already."""
    named: dict[str, Any] = {} if title is None else {"title": title}
    columns = pandas.DataFrame(prepared.rows, columns=list(prepared.preparation.feature_names))
    with stage("making the report") as progress, refusing(), warnings.catch_warnings():
        if not warn:
            warnings.simplefilter("ignore")
        return make_report(
            columns,
            sensitive_features=prepared.groups,
            n_components=n_components,
            missing_labels=missing_labels,
            code=code,
            progress=progress,
            **named,
        )


def write_report(report: Report, path: Path) -> None:
    """Write a report to a file, which is whole or not there."""
    with stage(f"writing {path.name}"):
        report.write_html(path)


def commands_for(
    arguments: Sequence[str],
    table: Path,
    columns: ColumnOptions,
    n_components: int,
    missing_labels: str,
) -> str:
    """What a reader can type to make the report again, and the model of the point at its slider."""
    # The words "{point}" are the report's, for the number of the point.
    model = " --index {point} --model model.fairpca"
    options: list[Any] = [table]
    options += _repeated("--sensitive", columns.sensitive)
    options += ["--n-components", n_components]
    options += _repeated("--drop", columns.drop)
    options += ["--encode", columns.encode] if columns.encode != "onehot" else []
    options += [] if columns.standardize else ["--no-standardize"]
    options += ["--keep-sensitive"] if columns.keep_sensitive else []
    options += ["--missing-labels", missing_labels] if missing_labels != "error" else []
    return (
        f"{shlex.join(['fairpca', *arguments])}\n\n"
        "# the subspace at the slider, as a model to keep\n"
        f"{shlex.join(['fairpca', 'front', *map(str, options)])}{model}"
    )


def _repeated(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]

"""From a table and options to prepared columns, groups and a fair subspace."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairpca import FairPCA
from fairpca._callbacks import listening
from fairpca.cli._terminal import BadInputError, refusing, show_warning, stage
from fairpca.linalg import Array
from fairpca.preparation import Preparation, require_columns


@dataclass(frozen=True)
class FitOptions:
    """What a user can choose about the subspace."""

    criterion: str
    tolerance: float
    solver: str
    missing_labels: str


@dataclass(frozen=True)
class ColumnOptions:
    """What a user can choose about the columns; the parameters of `Preparation.learn`."""

    sensitive: tuple[str, ...]
    drop: tuple[str, ...]
    encode: str
    standardize: bool
    keep_sensitive: bool


@dataclass(frozen=True, eq=False)
class TableFit:
    """A fair subspace of a table, and the columns that it was found for."""

    preparation: Preparation
    rows: Array
    fair: FairPCA


def parse_dimension(text: str) -> int | float:
    """A number of columns, or a share."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise BadInputError(f"--n-components must be a number such as 5 or 0.9, got {text!r}.")


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once."""
    return tuple(dict.fromkeys(names))


def groups_of(frame: Any, sensitive: Sequence[str], missing_labels: str) -> Any:
    """The sensitive columns, for `FairPCA` and `audit`."""
    with refusing():
        require_columns(list(frame.columns), sensitive)
    missing = [name for name in sensitive if frame[name].isna().any()]
    if missing and missing_labels == "error":
        count = int(frame[list(sensitive)].isna().any(axis=1).sum())
        raise BadInputError(
            f"the sensitive columns have no value in {count:,} of {len(frame):,} rows: leave those "
            "rows out, or make them a group with --missing-labels group."
        )
    return frame[list(sensitive)] if len(sensitive) > 1 else frame[sensitive[0]]


def fit_table(
    frame: Any, n_components: int | float, columns: ColumnOptions, options: FitOptions
) -> TableFit:
    """Learn how to prepare a table, and find its fair subspace."""
    groups = groups_of(frame, columns.sensitive, options.missing_labels)
    with stage("preparing the columns"), refusing():
        preparation = Preparation.learn(frame, **vars(columns))
        rows = preparation.apply(frame)
    return TableFit(preparation, rows, fit_fair(rows, groups, n_components, options))


def fit_fair(rows: Array, groups: Any, n_components: int | float, options: FitOptions) -> FairPCA:
    """Find the fair subspace of prepared columns."""
    n, d = rows.shape
    if n < 2:
        raise BadInputError("the table has one row: a fair subspace needs at least two.")
    fair = FairPCA(
        n_components,
        criterion=options.criterion,
        tolerance=options.tolerance,
        solver=options.solver,
        missing_labels=options.missing_labels,
    )
    doing = f"finding a fair subspace for {n:,} rows of {d} columns"
    with (
        stage(doing) as progress,
        listening(partial(progress, f"{doing}: step")),
        refusing(),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        fair.fit(rows, sensitive_features=groups)
    for warning in caught:
        # The certificate is shown with the result, and need not be said twice.
        if str(warning.message) != str(fair.certificate_):
            show_warning(warning.message, warning.category)
    return fair

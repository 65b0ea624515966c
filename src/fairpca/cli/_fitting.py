"""From a table and options to prepared columns, groups and a fair subspace."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairpca import FairPCA, GroupMoments
from fairpca._linalg.types import Array
from fairpca._rows.groups import MISSING_LABELS
from fairpca._rows.text import listed
from fairpca.cli._terminal import BadInputError, refusing, show_warning, stage
from fairpca.estimators.callbacks import listening
from fairpca.problem import CRITERIA
from fairpca.solvers import SOLVERS
from fairpca.tables.preparation import ENCODINGS, Preparation, require_columns


@dataclass(frozen=True)
class FitOptions:
    """What a user can choose about the subspace; wrong choices are refused here."""

    criterion: str
    tolerance: float
    solver: str
    missing_labels: str

    def __post_init__(self) -> None:
        require_choice("--criterion", self.criterion, CRITERIA)
        require_number("--tolerance", self.tolerance)
        require_choice("--solver", self.solver, ("auto", *SOLVERS))
        check_missing_labels(self.missing_labels)


@dataclass(frozen=True)
class ColumnOptions:
    """What a user can choose about the columns; the parameters of `Preparation.learn`."""

    sensitive: tuple[str, ...]
    drop: tuple[str, ...]
    encode: str
    standardize: bool
    keep_sensitive: bool

    def __post_init__(self) -> None:
        require_choice("--encode", self.encode, ENCODINGS)


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """The columns of numbers that a table became, and the groups of its rows."""

    preparation: Preparation
    rows: Array
    groups: Any


def parse_dimension(text: str) -> int | float:
    """A number of columns, or a share."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if value > 0 and (kind is int or value < 1):
            return value
    raise BadInputError(
        "--n-components must be a whole number of at least 1 such as 5, or a share between 0 and 1 "
        f"such as 0.9, got {text!r}."
    )


def check_missing_labels(missing_labels: str) -> None:
    """Refuse what the option does not know."""
    require_choice("--missing-labels", missing_labels, MISSING_LABELS)


def require_choice(option: str, value: str, known: Collection[str]) -> None:
    """Refuse a value that an option does not know."""
    if value not in known:
        raise BadInputError(f"{option} must be one of {listed(list(known))}, got {value!r}.")


def require_number(option: str, value: float | None) -> None:
    """Refuse a value that is negative, infinite or none."""
    if value is not None and not 0.0 <= value < float("inf"):
        raise BadInputError(f"{option} must be a number of at least 0, got {value:g}.")


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once."""
    return tuple(dict.fromkeys(names))


def groups_of(frame: Any, sensitive: Sequence[str], missing_labels: str) -> Any:
    """The sensitive columns, for `FairPCA` and `audit`."""
    with refusing():
        require_columns(list(frame.columns), sensitive)
    if missing_labels == "error":
        refuse_missing_labels(rows_without_label(frame, sensitive), len(frame))
    return sensitive_columns(frame, sensitive)


def sensitive_columns(frame: Any, sensitive: Sequence[str]) -> Any:
    """The sensitive columns: a frame, or a column if there is one."""
    return frame[list(sensitive)] if len(sensitive) > 1 else frame[sensitive[0]]


def rows_without_label(frame: Any, sensitive: Sequence[str]) -> int:
    """How many rows lack a value in a sensitive column."""
    return int(frame[list(sensitive)].isna().any(axis=1).sum())


def refuse_missing_labels(count: int, n_rows: int) -> None:
    """Refuse rows that lack a value in a sensitive column, if there are any."""
    if count:
        raise BadInputError(
            f"the sensitive columns have no value in {count:,} of {n_rows:,} rows: leave those "
            "rows out, or make them a group with --missing-labels group."
        )


def prepare_table(frame: Any, columns: ColumnOptions, missing_labels: str) -> PreparedTable:
    """Learn how to prepare a table, and do it."""
    groups = groups_of(frame, columns.sensitive, missing_labels)
    with stage("preparing the columns"), refusing():
        preparation = Preparation.learn(frame, **vars(columns))
        return PreparedTable(preparation, preparation.apply(frame), groups)


def fit_fair(rows: Array, groups: Any, n_components: int | float, options: FitOptions) -> FairPCA:
    """Find the fair subspace of prepared columns."""
    return _fit_and_warn(_of_rows(rows, groups), rows.shape, n_components, options)


def fit_fair_moments(
    moments: GroupMoments, n_components: int | float, options: FitOptions
) -> FairPCA:
    """Find the fair subspace of prepared columns of which the moments are known."""
    return _fit_and_warn(_of_moments(moments), _shape(moments), n_components, options)


def find_dimension(rows: Array, groups: Any, n_components: int | float, missing_labels: str) -> int:
    """The dimension itself, or the smallest in which a fair subspace keeps the share."""
    return _find_dimension(_of_rows(rows, groups), rows.shape, n_components, missing_labels)


def find_dimension_of_moments(
    moments: GroupMoments, n_components: int | float, missing_labels: str
) -> int:
    """The same, from moments."""
    return _find_dimension(_of_moments(moments), _shape(moments), n_components, missing_labels)


Fitting = Callable[[FairPCA], object]
"""Fits an estimator to what is at hand."""


def _of_rows(rows: Array, groups: Any) -> Fitting:
    return lambda fair: fair.fit(rows, sensitive_features=groups)


def _of_moments(moments: GroupMoments) -> Fitting:
    return lambda fair: fair.fit_moments(moments)


def _shape(moments: GroupMoments) -> tuple[int, int]:
    return int(moments.count.sum()), moments.n_features


def _find_dimension(
    fitting: Fitting, shape: tuple[int, ...], n_components: int | float, missing_labels: str
) -> int:
    if isinstance(n_components, int):
        _check_shape(shape, n_components)
        return n_components
    # What it warns of, what comes next will warn of too.
    fair, _ = _fit(fitting, shape, n_components, FitOptions("equal", 0.0, "auto", missing_labels))
    return int(fair.n_components_)


def _check_shape(shape: tuple[int, ...], n_components: int | float) -> None:
    """Refuse more dimensions than there are columns, and a single row."""
    n, d = shape
    if n < 2:
        raise BadInputError("the table has one row: a fair subspace needs at least two.")
    if n_components > d:
        raise BadInputError(
            f"--n-components {n_components} is more than the {d} columns that there are."
        )


def _fit_and_warn(
    fitting: Fitting, shape: tuple[int, ...], n_components: int | float, options: FitOptions
) -> FairPCA:
    fair, caught = _fit(fitting, shape, n_components, options)
    for warning in caught:
        # The certificate is shown with the result, and need not be said twice.
        if str(warning.message) != str(fair.certificate_):
            show_warning(warning.message, warning.category)
    return fair


def _fit(
    fitting: Fitting, shape: tuple[int, ...], n_components: int | float, options: FitOptions
) -> tuple[FairPCA, list[warnings.WarningMessage]]:
    _check_shape(shape, n_components)
    n, d = shape
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
        fitting(fair)
    return fair, caught

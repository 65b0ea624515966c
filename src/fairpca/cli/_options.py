"""Options that several commands have, and what they may be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from fairpca.choices import (
    CRITERIA,
    FRONTS,
    GROUPINGS,
    MEASURES,
    MIN_ROWS,
    MISSING_LABELS,
    READABLE,
    SMALL_GROUPS,
    STANDARDIZATIONS,
    UNKNOWN,
    WRITABLE,
)
from fairpca.cli._terminal import MODEL, BadInputError, check_destination, refusing

if TYPE_CHECKING:
    from fairpca.criteria import Criterion as FairnessCriterion
    from fairpca.tables.column_checks import ColumnRules


def option(default: Any, text: str, words: Sequence[str] = (), **how: Any) -> Any:
    """A field of which `with_options` makes an option: default, help, the words that it takes."""
    return field(default=default, metadata={"help": text, "words": words, **how})


Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help=f"A file that ends in {', '.join(READABLE)}. Columns that cannot be meant, such as "
        "dates, keys of the rows and numbers with a slip, are refused with what to do about them.",
    ),
]


def parse_dimension(text: str) -> int | float:
    """A number of columns, or a share."""
    try:
        value = int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        value = 0.0
    if not (value >= 1 if isinstance(value, int) else 0.0 < value < 1.0):
        raise BadInputError(
            "--n-components must be a whole number of at least 1 such as 5, or a share between 0 "
            f"and 1 such as 0.9, got {text!r}."
        )
    return value


DIMENSION_TEXT = (
    "The number of columns to reduce to, or a share: the fewest at which the worst-off group keeps "
    "that share of its variance."
)
DIMENSION: dict[str, Any] = {"metavar": "5|0.9", "parser": parse_dimension}
Dimension = Annotated[float, typer.Option("--n-components", help=DIMENSION_TEXT, **DIMENSION)]


@dataclass(frozen=True)
class ResultOptions:
    """How what is found is printed, and whether what is written replaces what is there."""

    force: bool = option(False, "Replace files that are there already.")
    json: bool = option(False, "Print the result as JSON.")


@dataclass(frozen=True)
class OutputOptions(ResultOptions):
    """What is written of a subspace."""

    whiten: bool = option(False, "Divide each reduced column by its standard deviation.")
    model: Path | None = option(None, "Write the model; the suffix is .fairpca.", metavar="FILE")
    output: Path | None = option(
        None,
        "Write the reduced table; the suffix is .csv, .parquet, .arrow or .feather. In a CSV file, "
        "text that a spreadsheet would run gets a ' in front.",
        metavar="FILE",
    )
    carry: Sequence[str] = option(
        (), "Copy a column into the output table; repeat for several.", metavar="COLUMN"
    )

    def check(self, *others: Path | None) -> None:
        """Refuse what could not be written, before any work, and columns to be carried nowhere."""
        check_destination(self.model, MODEL, self.output, *others, force=self.force)
        check_destination(self.output, WRITABLE, *others, force=self.force)
        if self.carry and self.output is None:
            raise BadInputError("--carry needs --output, the table to carry columns into.")


@dataclass(frozen=True)
class FitOptions:
    """What a user can choose about the subspace; the parameters of `FairPCA`."""

    criterion: str = option(
        "soft",
        "Act on differences between groups that new data will show too (soft), minimise the "
        "largest disparity in these rows (minmax), ask for equal disparities at the least total "
        "loss (equal), which can leave every group worse off than ordinary PCA, or give every "
        "group the same weight, whatever its size (balanced).",
        CRITERIA,
    )
    tolerance: float = option(
        0.0, "How far apart disparities may lie; only with --criterion equal."
    )
    measure: str = option(
        "disparity",
        "What fairness is judged by: disparity, the loss beyond a PCA of the group's own; "
        "loss; kept_variance; or the same as shares of the group's variance, "
        "relative_disparity, share_lost, share_kept.",
        MEASURES,
        metavar="NAME",
    )
    bound: float | None = option(
        None,
        "Ask for the least total loss with no group above this bound (with --measure "
        "kept_variance or share_kept: below it).",
        metavar="NUMBER",
    )
    max_extra_loss: float | None = option(
        None,
        "Ask for the fairest subspace that loses at most this share more than ordinary PCA: "
        "0.01 is one per cent more.",
        metavar="SHARE",
    )
    standard_errors: float = option(
        2.0,
        "Differences between groups well below this many standard errors hardly count, larger ones "
        "increasingly: 0 acts on every difference, and with large numbers the result is ordinary "
        "PCA; only with --criterion soft.",
        metavar="NUMBER",
    )
    gap: float | None = option(
        None,
        "End the exact solver's search once the value is proven to be within this share of "
        "the best possible: 0.001 is a tenth of a per cent.",
        metavar="SHARE",
    )
    time_limit: float | None = option(
        None,
        "End the exact solver's search after this number of seconds, with the best it has and "
        "what is proven of it; a share as --n-components takes several searches.",
        metavar="SECONDS",
    )

    @refusing()
    def __post_init__(self) -> None:
        from fairpca.validation import check_number

        for name in ("bound", "max_extra_loss", "gap", "time_limit"):
            if getattr(self, name) is not None:
                check_number(f"--{name.replace('_', '-')}", getattr(self, name), least=0.0)
        if self.bound is not None and self.criterion != type(self).criterion:
            raise BadInputError("--bound is a criterion of its own: leave out --criterion.")
        self.make_criterion().validate()

    @property
    def folds(self) -> str | None:
        """Whether rows are to be held out: as for `prepare_data`."""
        return "needed" if self.criterion == "soft" and self.bound is None else None

    def make_criterion(self) -> FairnessCriterion:
        """The criterion that is asked for; its parameters are options of the same names."""
        from fairpca.criteria import CRITERIA, AtMost

        kind: Any = CRITERIA[self.criterion] if self.bound is None else AtMost
        known = signature(kind).parameters
        parameters = {name: getattr(self, name) for name in _OF_CRITERIA if name in known}
        if odd := sorted({*changed(self)}.intersection(_OF_CRITERIA).difference(known)):
            typed = " and ".join(f"--{name.replace('_', '-')}" for name in odd)
            named = f"--criterion {self.criterion}" if self.bound is None else "--bound"
            raise BadInputError(f"{typed} cannot be had with {named}: leave out one of them.")
        made: FairnessCriterion = kind(*(() if self.bound is None else (self.bound,)), **parameters)
        return made


@dataclass(frozen=True)
class FrontOptions(FitOptions):
    """The same of a front, which leads to one of two criteria."""

    criterion: str = option(
        "minmax",
        "What is traded for total loss: the largest disparity of a group (minmax), or the largest "
        "difference between two groups (equal).",
        FRONTS,
    )


@dataclass(frozen=True)
class TableOptions:
    """What a user can choose about how a table is read, its columns, and its groups."""

    sensitive: Sequence[str] = option(
        (),
        "A column that makes the groups; several make groups as --groups says.",
        metavar="COLUMN",
    )
    target: Sequence[str] = option(
        (), "A column to be predicted later, which is left out too; repeatable.", metavar="COLUMN"
    )
    weights: str = option(
        "",
        "A column of weights, such as how many people a row of a survey stands for; columns are "
        "standardised without it.",
        metavar="COLUMN",
    )
    drop: Sequence[str] = option((), "Leave a column out; repeat for several.", metavar="COLUMN")
    auto: bool = option(
        False,
        "Add what a refusal of this table would offer to add, and say so: identifiers, dates and "
        "free text are left out, missing values filled in, survey weights used as such.",
    )
    standardize: str = option(
        "numbers",
        "Which columns are brought to mean 0 and variance 1 (constant ones to 0): those that are "
        "not 0/1, all, or none.",
        STANDARDIZATIONS,
    )
    missing_labels: str = option(
        "error",
        "Whether missing values in a sensitive column are an error or a group, or their rows "
        "are left out.",
        MISSING_LABELS,
    )
    groups: str = option(
        "",
        "What several sensitive columns make groups of: their combinations (the default), or each "
        "of their values alone (all women, all Black people, …), or both.",
        GROUPINGS[:-1],
    )
    sep: str = option(
        "", "What separates the cells of a CSV file; tab or \\t is a tab.", metavar="CHARACTER"
    )
    decimal: str = option(".", "The decimal point of a CSV file.", (".", ","))
    encoding: str = option(
        "utf-8", "That of a CSV file: utf-8, cp1252, latin-1, utf-16, …", metavar="NAME"
    )
    missing_values: Sequence[str] = option(
        (),
        "A further word for a missing value in a CSV file, such as '?'; repeatable. Empty "
        "cells are missing, and among numbers NA, N/A, NaN, null, None and the like; in text "
        "and labels these are words.",
        metavar="WORD",
    )
    drop_missing: bool = option(False, "Leave out rows that lack a value in a column that enters.")
    as_text: Sequence[str] = option(
        (),
        "Take a column of numbers or dates for names of categories; repeatable.",
        metavar="COLUMN",
    )
    as_number: Sequence[str] = option(
        (),
        "Take a column of numbers for a measurement that seems to be a key or a weight, or has "
        "zeros in front as codes have; repeatable.",
        metavar="COLUMN",
    )
    impute: bool = option(
        False,
        "Fill in missing and infinite numbers with the column's mean, and missing text with the "
        "most frequent one, here and in tables that a model is used on.",
    )
    min_rows: int = option(
        MIN_ROWS,
        "Categories with fewer rows become one, called 'other (rare)', whose parts are not "
        "kept; groups with fewer are small (--small-groups). 1 keeps all.",
        metavar="N",
    )
    small_groups: str = option(
        "",
        "Refuse groups with fewer rows than --min-rows (error), make them one group, or keep "
        "them. Without it they are refused where a model or a report is written, and "
        "kept elsewhere.",
        SMALL_GROUPS,
    )
    unknown_categories: str = option(
        "error",
        "Whether categories that did not occur at the fit are refused, or are 0 in all "
        "columns of theirs. Where rare ones were pooled at the fit, they belong to these.",
        UNKNOWN,
    )
    stream: bool = option(
        False,
        "Read the table in batches, which takes less memory, even if it is no larger than 1 GiB.",
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, list | tuple):
                object.__setattr__(self, one.name, tuple(dict.fromkeys(value)))
        if self.sep in ("\\t", "tab"):
            object.__setattr__(self, "sep", "\t")
        if len(self.sep) > 1 or not self.sep.isascii() or self.sep in ('"', "\n", "\r"):
            raise BadInputError(f"--sep must be one character such as ';', got {self.sep!r}.")
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError):
            raise BadInputError(
                f"--encoding {self.encoding!r} is not known; utf-8, cp1252, latin-1 and utf-16 are."
            ) from None
        if self.impute and self.drop_missing:
            raise BadInputError("choose one of --impute and --drop-missing, not both.")
        if self.min_rows < 1:
            raise BadInputError(f"--min-rows must be at least 1, got {self.min_rows}.")

    @property
    def unused(self) -> tuple[str, ...]:
        """The columns that are left out."""
        return (*self.target, *self.drop, *self.weighted)

    @property
    def weighted(self) -> tuple[str, ...]:
        """The column of weights, if there is one."""
        return (self.weights,) if self.weights else ()

    @property
    def grouping(self) -> str:
        """What several sensitive columns make groups of."""
        return self.groups or "intersections"

    def rules(self, table: Any) -> ColumnRules:
        """What is said of the columns of a table (`fairpca.tables.reading.Table`)."""
        from fairpca.tables.column_checks import ColumnRules

        same = [one.name for one in fields(ColumnRules) if hasattr(self, one.name)]
        found = {name: getattr(self, name) for name in same} | {"drop": self.unused}
        return ColumnRules(**found, codes=table.codes)

    def adding(self, more: dict[str, Any]) -> TableOptions:
        """The same with further options."""
        merged: dict[str, Any] = {
            name: (*getattr(self, name), *value) if isinstance(value, tuple) else value
            for name, value in more.items()
        }
        return replace(self, **merged)


def changed(options: TableOptions | FitOptions) -> dict[str, Any]:
    """The options that differ from their defaults, by name."""
    values = {one.name: (getattr(options, one.name), one.default) for one in fields(options)}
    return {name: value for name, (value, default) in values.items() if value != default}


_OF_CRITERIA = ("tolerance", "measure", "max_extra_loss", "standard_errors")
"""Options that are parameters of a criterion."""

OF_ONE_SUBSPACE = ("tolerance", "bound", "max_extra_loss", "standard_errors")
"""Options that say nothing of a front."""

Command = Callable[..., None]


def with_options(
    only: Collection[str] = (),
    without: Collection[str] = (),
    required: Collection[str] = (),
) -> Callable[[Command], Command]:
    """Give a command that takes dataclasses options that are their fields.

    Of all fields these are `only` some, or those `without` some.
    """

    def decorate(command: Command) -> Command:
        own = signature(command, eval_str=True).parameters
        kinds: dict[str, Any] = {
            name: each.annotation for name, each in own.items() if is_dataclass(each.annotation)
        }
        parameters = [parameter for name, parameter in own.items() if name not in kinds]
        taken: dict[str, list[str]] = {}
        for name, kind in kinds.items():
            every = [one for one in fields(kind) if one.name not in without]
            options = [one for one in every if not only or one.name in only]
            taken[name] = [one.name for one in options]
            hints = get_type_hints(kind)
            parameters += [
                _parameter(one, hints[one.name], one.name in required) for one in options
            ]
        last = {one.name for one in fields(ResultOptions)}
        parameters.sort(key=lambda one: (one.name not in required, one.name in last))

        def run(*arguments: Any, **given: Any) -> None:
            passed = {name: value for name, value in given.items() if name in own}
            for name, kind in kinds.items():
                known = {one: given[one] for one in taken[name] if given.get(one) is not None}
                passed[name] = kind(**known)
            command(*arguments, **passed)

        # The backspace keeps the lines of the examples as they are.
        run.__doc__ = str(command.__doc__).replace("For example:", "\b\n    Examples:")
        run.__name__ = command.__name__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__signature__ = Signature(  # type: ignore[attr-defined]
            [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
        )
        return run

    return decorate


def _parameter(one: Field[Any], type_: Any, required: bool) -> Parameter:
    """The parameter of a command that a field is."""
    how, default = dict(one.metadata), one.default
    words = tuple(how.pop("words"))
    if words:
        # A word that stands for the absence of one cannot be typed.
        type_, default = Literal[words] | None, default or None
        how.setdefault("metavar", "|".join(words))
    elif default == ():
        type_, default = list[str], []
    return Parameter(
        one.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if required else default,
        annotation=Annotated[type_, typer.Option(f"--{one.name.replace('_', '-')}", **how)],
    )

"""Options that several commands have, and what they may be."""

from __future__ import annotations

import codecs
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from fairpca.choices import (
    CRITERIA,
    ENCODINGS,
    FRONTS,
    GROUPINGS,
    IMPUTATIONS,
    MEASURES,
    MIN_ROWS,
    MISSING_LABELS,
    READABLE,
    SMALL_GROUPS,
    SOLVER_NAMES,
    UNKNOWN,
)
from fairpca.cli._terminal import BadInputError, refusing
from fairpca.text import ALL, listed

if TYPE_CHECKING:
    from fairpca.criteria import Criterion as FairnessCriterion
    from fairpca.moments import GroupMoments


Chosen = TypeVar("Chosen", "TableOptions", "FitOptions")


def choice_option(words: Sequence[object], text: str, *, metavar: str | None = None) -> Any:
    """An option that takes one of these words, which a shell can complete."""
    texts = [str(word) for word in words]
    return typer.Option(metavar=metavar or "|".join(texts), help=text, autocompletion=lambda: texts)


column_option = partial(typer.Option, metavar="COLUMN")
file_option = partial(typer.Option, metavar="FILE")
_DIMENSION = typer.Option(
    "--n-components",
    metavar="5|0.9",
    help="The number of columns to reduce to, or a share: the fewest at which the worst-off group "
    "keeps that share of its variance.",
)
_SENSITIVE = "A column that makes the groups; several make groups as --groups says."
_KEEP = "Whether the sensitive columns are reduced with the others; new tables then need them too."
_ENCODE = (
    "Columns of text become a 0/1 column for each category, or one of codes (positions in sorted "
    "order), or are an error."
)
_CRITERION = (
    "Act on differences between groups that new data will show too (soft), minimise the largest "
    "disparity in these rows (minmax), ask for equal disparities at the least total loss (equal), "
    "which can leave every group worse off than ordinary PCA, or give every group the same weight, "
    "whatever its size (balanced)."
)
_MEASURE = (
    "What fairness is judged by: disparity, the loss beyond a PCA of the group's own; loss; "
    "kept_variance; or the same as shares of the group's variance, relative_disparity, share_lost, "
    "share_kept."
)
_BOUND = (
    "Ask for the least total loss with no group above its bound (with --measure kept_variance or "
    "share_kept: below it); LABEL=NUMBER is for one group, and a number alone for all that are not "
    "named."
)
_EXTRA = (
    "Ask for the fairest subspace that loses at most this share more than ordinary PCA: 0.01 is "
    "one per cent more."
)
_STANDARD_ERRORS = (
    "How many standard errors a difference between groups must exceed to be acted on: 0 acts on "
    "every difference, and with large numbers the result is ordinary PCA; only with --criterion "
    "soft."
)
_GAP = (
    "End the exact solver's search once the value is proven to be within this share of the best "
    "possible: 0.001 is a tenth of a per cent."
)
_TIME_LIMIT = (
    "End the exact solver's search after so many seconds, with the best that it has and what is "
    "proven of it; a share as --n-components takes several searches."
)
_FRONT = (
    "What is traded for total loss: the largest disparity of a group (minmax), or the largest "
    "difference between two groups (equal)."
)
_MISSING = (
    "Whether missing values in a sensitive column are an error or a group, or their rows are left "
    "out."
)
_GROUPS = (
    "What several sensitive columns make groups of: their combinations, or each of their values "
    "alone (all women, all Black people, …), or both."
)
_OUTPUT = (
    "Write the reduced table; the suffix is .csv, .parquet, .arrow or .feather. In a CSV file, "
    "text that a spreadsheet would run gets a ' in front."
)
_STREAM = "Read the table in batches, which takes less memory, even if it is no larger than 1 GiB."

Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help=f"A file that ends in {', '.join(READABLE)}; - is the standard input. Columns that "
        "cannot be meant, such as dates, keys of the rows and numbers with a slip, are refused "
        "with what to do about them.",
    ),
]
Sensitive = Annotated[list[str], column_option("--sensitive", help=_SENSITIVE)]
Dimension = Annotated[str, _DIMENSION]
OptionalDimension = Annotated[str | None, _DIMENSION]
Drop = Annotated[list[str], column_option("--drop", help="Leave a column out; repeat for several.")]
Target = Annotated[
    list[str],
    column_option(
        "--target", help="A column to be predicted later, which is left out too; repeatable."
    ),
]
Carry = Annotated[
    list[str],
    column_option("--carry", help="Copy a column into the output table; repeat for several."),
]
Encode = Annotated[str, choice_option(ENCODINGS, _ENCODE)]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize/--no-standardize",
        help="Bring columns to mean 0 and variance 1 (constant ones to 0).",
    ),
]
KeepSensitive = Annotated[bool, typer.Option("--keep-sensitive/--drop-sensitive", help=_KEEP)]
Criterion = Annotated[str, choice_option(CRITERIA, _CRITERION)]
Tolerance = Annotated[
    float, typer.Option(help="How far apart disparities may lie; only with --criterion equal.")
]
Measure = Annotated[str, choice_option(MEASURES, _MEASURE, metavar="NAME")]
Bound = Annotated[list[str], typer.Option("--bound", metavar="[LABEL=]NUMBER", help=_BOUND)]
MaxExtraLoss = Annotated[float | None, typer.Option(metavar="SHARE", help=_EXTRA)]
FrontCriterion = Annotated[str, choice_option(FRONTS, _FRONT)]
Nested = Annotated[
    bool,
    typer.Option(
        "--nested", help="Let the first components be a fair subspace too, however many are kept."
    ),
]
StandardErrors = Annotated[float, typer.Option(metavar="NUMBER", help=_STANDARD_ERRORS)]
Whiten = Annotated[
    bool,
    typer.Option("--whiten", help="Divide each reduced column by its standard deviation."),
]
Solver = Annotated[
    str, choice_option(SOLVER_NAMES, f"One of {', '.join(SOLVER_NAMES)}.", metavar="NAME")
]
Gap = Annotated[float | None, typer.Option(metavar="SHARE", help=_GAP)]
TimeLimit = Annotated[float | None, typer.Option(metavar="SECONDS", help=_TIME_LIMIT)]
MissingLabels = Annotated[str, choice_option(MISSING_LABELS, _MISSING)]
Groups = Annotated[str, choice_option(GROUPINGS[:-1], _GROUPS)]
OptionalGroups = Annotated[
    str | None,
    choice_option(GROUPINGS[:-1], f"{_GROUPS} Without it those of the model, or combinations."),
]
Model = Annotated[
    Path | None, file_option("--model", help="Write the model; the suffix is .fairpca.")
]
Output = Annotated[Path | None, file_option("--output", help=_OUTPUT)]
Report = Annotated[
    Path | None,
    file_option("--report", help="Write a page, as `fairpca report` does; the suffix is .html."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]
Stream = Annotated[bool, typer.Option("--stream", help=_STREAM)]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@dataclass(frozen=True)
class FitOptions:
    """What a user can choose about the subspace; the parameters of `FairPCA`."""

    criterion: str = "soft"
    tolerance: float = 0.0
    measure: str = "disparity"
    bound: Sequence[str] = ()
    max_extra_loss: float | None = None
    solver: str = "exact"
    nested: bool = False
    standard_errors: float = 2.0
    gap: float | None = None
    time_limit: float | None = None

    @refusing()
    def __post_init__(self) -> None:
        from fairpca.validation import check_choice, check_number

        check_choice("--criterion", self.criterion, CRITERIA)
        check_number("--tolerance", self.tolerance, least=0.0)
        check_choice("--measure", self.measure, MEASURES)
        limits = {"--gap": self.gap, "--time-limit": self.time_limit}
        for name, limit in {"--max-extra-loss": self.max_extra_loss, **limits}.items():
            if limit is not None:
                check_number(name, limit, least=0.0)
        check_choice("--solver", self.solver, SOLVER_NAMES)
        for text in self.bound:
            _parse_bound(text)
        check_number("--standard-errors", self.standard_errors, least=0.0)
        if self.criterion != "equal" and self.tolerance != 0.0:
            raise BadInputError(
                "--tolerance is how far from equal groups may be: it needs --criterion equal."
            )
        if self.criterion != "soft" and self.standard_errors != 2.0:
            raise BadInputError("--standard-errors needs --criterion soft, which is the default.")
        if self.bound and self.max_extra_loss is not None:
            raise BadInputError("choose one of --bound and --max-extra-loss, not both.")
        if self.criterion == "balanced" and self.measure != "disparity":
            raise BadInputError(
                "--criterion balanced is judged by losses: leave it out, or --measure."
            )
        if self.bound and self.criterion != "soft":
            raise BadInputError("--bound is a criterion of its own: leave out --criterion.")
        if self.max_extra_loss is not None and self.criterion not in ("soft", "minmax"):
            raise BadInputError("--max-extra-loss needs --criterion soft or minmax.")
        given = {
            "--bound": bool(self.bound),
            "--max-extra-loss": self.max_extra_loss is not None,
        }
        if self.nested and (self.criterion != "minmax" or any(given.values()) or not self.is_exact):
            raise BadInputError(
                "--nested minimises the largest measure in each dimension: it needs --criterion "
                "minmax, without --bound, --max-extra-loss and --solver."
            )
        given |= {"--measure": self.measure != "disparity"}
        given |= {"--criterion": self.criterion == "balanced"}
        given |= {"--standard-errors": self.standard_errors != 2.0}
        if any(given.values()) and not self.is_exact:
            names = " and ".join(name for name, is_given in given.items() if is_given)
            raise BadInputError(
                f"--solver {self.solver} has a criterion of its own: leave it out, or {names}."
            )
        if self.is_limited and not self.is_exact:
            names = " and ".join(name for name, limit in limits.items() if limit is not None)
            raise BadInputError(
                f"only the exact solver has a gap and a time limit: leave out {names}, or "
                f"--solver {self.solver}."
            )

    @property
    def is_exact(self) -> bool:
        """Whether the solver is the exact one."""
        return self.solver == "exact"

    @property
    def is_limited(self) -> bool:
        """Whether the search is to end at a gap or a time limit."""
        return self.gap is not None or self.time_limit is not None

    @property
    def folds(self) -> str | None:
        """Whether rows are to be held out: as for `prepare_data`."""
        needed = self.criterion == "soft" and self.is_exact and not self.bound
        return "needed" if needed else None

    def criterion_for(self, moments: GroupMoments | None = None) -> FairnessCriterion:
        """The criterion, for these groups where bounds name some."""
        from fairpca.criteria import CRITERIA as KINDS
        from fairpca.criteria import AtMost, Equal, MinMax, SoftMinMax

        if self.bound and moments is not None:
            return AtMost(_bounds(self.bound, self.measure, moments), self.measure)
        if self.criterion == "equal":
            return Equal(self.tolerance, self.measure)
        if self.criterion == "soft":
            return SoftMinMax(self.measure, self.standard_errors, self.max_extra_loss)
        if self.criterion == "minmax":
            return MinMax(self.measure, self.max_extra_loss)
        return KINDS[self.criterion]()

    @property
    def front_criterion(self) -> FairnessCriterion:
        """What a front is over: the largest measure in these rows, unless equality is asked for."""
        from fairpca.criteria import MinMax

        return MinMax(self.measure) if self.criterion == "soft" else self.criterion_for()

    def parameters(self, moments: GroupMoments) -> dict[str, Any]:
        """The parameters of `FairPCA` for these groups."""
        chosen: dict[str, Any] = {"solver": self.solver, "nested": self.nested}
        chosen["criterion"] = self.criterion_for(moments)
        if self.is_limited:
            from fairpca import ExactSolver

            chosen["solver"] = ExactSolver(gap=self.gap, time_limit=self.time_limit)
        return chosen


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once."""
    return tuple(dict.fromkeys(names))


@refusing()
def check_front(criterion: str) -> None:
    """Refuse a criterion that no front leads to."""
    from fairpca.validation import check_choice

    check_choice("--criterion", criterion, FRONTS)


def check_carry(carry: Sequence[str], output: Path | None) -> None:
    """Refuse columns to be carried to nowhere."""
    if carry and output is None:
        raise BadInputError("--carry needs --output, the table to carry columns into.")


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


def _parse_bound(text: str) -> tuple[str | None, float]:
    """The group that is named, if any, and its bound."""
    *label, number = text.rsplit("=", 1)
    try:
        bound = float(number)
    except ValueError:
        bound = -1.0
    if not bound >= 0.0:
        raise BadInputError(
            f"--bound must be a number of at least 0, or LABEL=NUMBER, got {text!r}."
        )
    return label[0] if label else None, bound


def _bounds(given: Sequence[str], measure: str, moments: GroupMoments) -> Any:
    """One bound for all groups, or one for each by its label."""
    parsed = [_parse_bound(text) for text in given]
    if len({text for text, _ in parsed}) < len(parsed):
        raise BadInputError("--bound is given twice for the same groups: leave one out.")
    named = {text: bound for text, bound in parsed if text is not None}
    others = 0.0 if measure in ("kept_variance", "share_kept") else float("inf")
    others = next((bound for text, bound in parsed if text is None), others)
    if not named:
        return others
    labels, typed = moments.labels, dict[str, Hashable]()
    for label, text in zip(labels, moments.group_texts, strict=True):
        typed |= dict.fromkeys((text, _with_commas(label, moments.group_names)), label)
        if not (isinstance(label, tuple) and ALL in label):
            typed[_with_commas(label)] = label
    unknown = [text for text in named if text not in typed]
    if unknown:
        known = listed([_with_commas(label, moments.group_names) for label in labels], 10)
        raise BadInputError(f"--bound names {listed(unknown, 5)}, but the groups are {known}.")
    return dict.fromkeys(labels, others) | {typed[text]: named[text] for text in named}


def _with_commas(label: Hashable, names: Sequence[str] | None = None) -> str:
    """A group as it can be typed: the parts of an intersection with commas between them."""
    parts = label if isinstance(label, tuple) else (label,)
    heads = [f"{name}=" for name in names or ()] if len(names or ()) == len(parts) > 1 else []
    heads = heads or [""] * len(parts)
    texts = (f"{head}{part}" for head, part in zip(heads, parts, strict=True) if part != ALL)
    return ",".join(texts)


_TABS = ("\\t", "tab")
"""How people type a tab."""

_IMPUTE = (
    "Fill in missing and infinite numbers, here and in tables that a model is used on; missing "
    "text becomes the most frequent one. So that no single person's number is kept, the median is "
    "the mean of the --min-rows middle ones, and the most frequent number one of so many rows."
)
_MIN_ROWS = (
    "Categories with fewer rows become one, called 'other (rare)', whose parts are not kept; "
    "groups with fewer are small (--small-groups). 1 keeps all."
)
_SMALL = (
    "Refuse groups with fewer rows than --min-rows, make them one group, leave them out, or keep "
    "them. Without it they are refused where a model or a report is written, and kept elsewhere."
)
_UNKNOWN = (
    "Whether categories that did not occur at the fit are refused, or are 0 in all columns of "
    "theirs. Where rare ones were pooled at the fit, they belong to these."
)

Sep = Annotated[
    str,
    typer.Option(
        metavar="CHARACTER",
        help="What separates the cells of a CSV file; tab or \\t is a tab.",
    ),
]
Decimal = Annotated[str, typer.Option(metavar=".|,", help="The decimal point of a CSV file.")]
Encoding = Annotated[
    str,
    typer.Option(metavar="NAME", help="That of a CSV file: utf-8, cp1252, latin-1, utf-16, …"),
]
MissingValues = Annotated[
    list[str],
    typer.Option(
        "--missing-values",
        metavar="WORD",
        help="A further word for a missing value in a CSV file, such as '?'; repeatable. Empty "
        "cells are missing, and among numbers NA, N/A, NaN, null, None and the like; in text and "
        "labels these are words.",
    ),
]
AsText = Annotated[
    list[str],
    column_option(
        "--as-text", help="Take a column of numbers or dates for names of categories; repeatable."
    ),
]
AsNumber = Annotated[
    list[str],
    column_option(
        "--as-number",
        help="Take a column of numbers for a measurement that seems to count the rows, or has "
        "zeros in front as codes have; repeatable.",
    ),
]
Impute = Annotated[str, choice_option(IMPUTATIONS, _IMPUTE)]
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing", help="Leave out rows that lack a value in a column that enters."
    ),
]
MinRows = Annotated[int, typer.Option("--min-rows", metavar="N", help=_MIN_ROWS)]
SmallGroups = Annotated[str | None, choice_option(SMALL_GROUPS, _SMALL)]
UnknownCategories = Annotated[str, choice_option(UNKNOWN, _UNKNOWN)]


@dataclass(frozen=True)
class TableOptions:
    """What a user can choose about how a table is read, its columns, and its groups."""

    sensitive: Sequence[str] = ()
    target: Sequence[str] = ()
    drop: Sequence[str] = ()
    encode: str = "onehot"
    standardize: bool = True
    keep_sensitive: bool = False
    missing_labels: str = "error"
    groups: str = "intersections"
    sep: str = ""
    decimal: str = "."
    encoding: str = "utf-8"
    missing_values: Sequence[str] = ()
    drop_missing: bool = False
    as_text: Sequence[str] = ()
    as_number: Sequence[str] = ()
    impute: str = ""
    min_rows: int = MIN_ROWS
    small_groups: str | None = None
    unknown_categories: str = "error"
    stream: bool = False

    @refusing()
    def __post_init__(self) -> None:
        from fairpca.validation import check_choice

        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list | tuple):
                object.__setattr__(self, field.name, unique(value))
        if self.sep in _TABS:
            object.__setattr__(self, "sep", "\t")
        if len(self.sep) > 1 or not self.sep.isascii() or self.sep in ('"', "\n", "\r"):
            raise BadInputError(f"--sep must be one character such as ';', got {self.sep!r}.")
        check_choice("--encode", self.encode, ENCODINGS)
        check_choice("--missing-labels", self.missing_labels, MISSING_LABELS)
        check_choice("--groups", self.groups, GROUPINGS[:-1])
        check_choice("--decimal", self.decimal, (".", ","))
        try:
            codecs.lookup(self.encoding)
            "".encode(self.encoding)  # some codecs are not for text
        except (LookupError, ValueError, UnicodeError):
            raise BadInputError(
                f"--encoding {self.encoding!r} is not known; utf-8, cp1252, latin-1 and utf-16 are."
            ) from None
        if self.impute:
            check_choice("--impute", self.impute, IMPUTATIONS)
        if self.impute and self.drop_missing:
            raise BadInputError("choose one of --impute and --drop-missing, not both.")
        if self.min_rows < 1:
            raise BadInputError(f"--min-rows must be at least 1, got {self.min_rows}.")
        if self.small_groups is not None:
            check_choice("--small-groups", self.small_groups, SMALL_GROUPS)
        check_choice("--unknown-categories", self.unknown_categories, UNKNOWN)

    @property
    def unused(self) -> tuple[str, ...]:
        """The columns that are left out."""
        return unique([*self.target, *self.drop])

    def learning(self) -> dict[str, Any]:
        """The parameters of a `PreparationLearner`."""
        names = ["sensitive", "encode", "standardize", "keep_sensitive", "as_text", "as_number"]
        names += ["impute", "min_rows", "decimal"]
        return {name: getattr(self, name) for name in names} | {"drop": self.unused}


def chosen(kind: type[Chosen], given: Mapping[str, Any]) -> Chosen:
    """The options of a kind among all that a command was given."""
    names = (field.name for field in fields(kind))
    return kind(**{name: given[name] for name in names if given.get(name) is not None})


def arguments(options: TableOptions | FitOptions) -> list[str]:
    """What can be typed to choose the same again."""
    typed: list[str] = []
    for field in fields(options):
        value, option = getattr(options, field.name), field.name.replace("_", "-")
        if isinstance(value, bool):
            said = f"--{option}" if value else f"--no-{option}"
            typed += [] if value is field.default else [said]
        elif isinstance(value, list | tuple):
            typed += [word for part in value for word in (f"--{option}", part)]
        elif value != field.default:
            typed += [f"--{option}", "tab" if value == "\t" else str(value)]
    return typed

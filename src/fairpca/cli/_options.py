"""Options that several commands have, and what they may be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import Field, dataclass, field, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

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
    WRITABLE,
)
from fairpca.cli._terminal import MODEL, BadInputError, check_destination, refusing
from fairpca.text import ALL, listed

if TYPE_CHECKING:
    from fairpca.criteria import Criterion as FairnessCriterion
    from fairpca.moments import GroupMoments


def choice_option(
    words: Sequence[object], text: str, names: Sequence[str] = (), metavar: str | None = None
) -> Any:
    """An option that takes one of these words, if there are any, which a shell can complete."""
    texts = [str(word) for word in words]
    metavar = metavar or "|".join(texts) or None
    complete = (lambda: texts) if texts else None
    return typer.Option(*names, metavar=metavar, help=text, autocompletion=complete)


def option(default: Any, text: str, **how: Any) -> Any:
    """A field of which `with_options` makes an option: its default, its help, and more of it."""
    return field(default=default, metadata={"text": text, "words": (), **how})


DIMENSION_TEXT = (
    "The number of columns to reduce to, or a share: the fewest at which the worst-off group keeps "
    "that share of its variance."
)
_GROUPS = (
    "What several sensitive columns make groups of: their combinations, or each of their values "
    "alone (all women, all Black people, …), or both."
)
REPORT_TEXT = "Write the page of `fairpca report`; the suffix is .html."

Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help=f"A file that ends in {', '.join(READABLE)}; - is the standard input. Columns that "
        "cannot be meant, such as dates, keys of the rows and numbers with a slip, are refused "
        "with what to do about them.",
    ),
]
Dimension = Annotated[str, typer.Option("--n-components", metavar="5|0.9", help=DIMENSION_TEXT)]


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
    report: Path | None = option(None, REPORT_TEXT, metavar="FILE")

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
        words=CRITERIA,
    )
    tolerance: float = option(
        0.0, "How far apart disparities may lie; only with --criterion equal."
    )
    measure: str = option(
        "disparity",
        "What fairness is judged by: disparity, the loss beyond a PCA of the group's own; "
        "loss; kept_variance; or the same as shares of the group's variance, "
        "relative_disparity, share_lost, share_kept.",
        words=MEASURES,
        metavar="NAME",
    )
    bound: Sequence[str] = option(
        (),
        "Ask for the least total loss with no group above its bound (with --measure "
        "kept_variance or share_kept: below it); LABEL=NUMBER is for one group, and a number "
        "alone for all that are not named.",
        metavar="[LABEL=]NUMBER",
    )
    max_extra_loss: float | None = option(
        None,
        "Ask for the fairest subspace that loses at most this share more than ordinary PCA: "
        "0.01 is one per cent more.",
        metavar="SHARE",
    )
    solver: str = option(
        "exact", f"One of {', '.join(SOLVER_NAMES)}.", words=SOLVER_NAMES, metavar="NAME"
    )
    nested: bool = option(
        False, "Let the first components be a fair subspace too, however many are kept."
    )
    standard_errors: float = option(
        2.0,
        "How many standard errors a difference between groups must exceed to be acted on: 0 acts "
        "on every difference, and with large numbers the result is ordinary PCA; only with "
        "--criterion soft.",
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

        object.__setattr__(self, "bound", tuple(self.bound))
        check_words(self)
        for name in ("tolerance", "max_extra_loss", "gap", "time_limit"):
            if getattr(self, name) is not None:
                check_number(f"--{name.replace('_', '-')}", getattr(self, name), least=0.0)
        for text in self.bound:
            _parse_bound(text)
        soft, balanced = self.criterion == "soft", self.criterion == "balanced"
        # A solver with a criterion of its own takes none of these.
        criterion = self.chosen("bound", "max_extra_loss", "measure")
        criterion += ["--criterion"] if balanced else []
        criterion += self.chosen("standard_errors")
        limits = self.chosen("gap", "time_limit")
        another = self.chosen("bound", "max_extra_loss", "solver") or self.criterion != "minmax"
        for is_wrong, words in (
            (
                not self.standard_errors >= 0.0,
                f"--standard-errors must be a number of at least 0, got {self.standard_errors}.",
            ),
            (
                self.chosen("tolerance") and self.criterion != "equal",
                "--tolerance is how far from equal groups may be: it needs --criterion equal.",
            ),
            (
                self.chosen("standard_errors") and not soft,
                "--standard-errors needs --criterion soft, which is the default.",
            ),
            (
                len(self.chosen("bound", "max_extra_loss")) == 2,
                "choose one of --bound and --max-extra-loss, not both.",
            ),
            (
                balanced and self.chosen("measure"),
                "--criterion balanced is judged by losses: leave it out, or --measure.",
            ),
            (
                self.bound and not soft,
                "--bound is a criterion of its own: leave out --criterion.",
            ),
            (
                self.chosen("max_extra_loss") and self.criterion not in ("soft", "minmax"),
                "--max-extra-loss needs --criterion soft or minmax.",
            ),
            (
                self.nested and another,
                "--nested minimises the largest measure in each dimension: it needs --criterion "
                "minmax, without --bound, --max-extra-loss and --solver.",
            ),
            (
                self.solver != "exact" and criterion,
                f"--solver {self.solver} has a criterion of its own: leave it out, or "
                f"{' and '.join(criterion)}.",
            ),
            (
                self.solver != "exact" and limits,
                f"only the exact solver has a gap and a time limit: leave out "
                f"{' and '.join(limits)}, or --solver {self.solver}.",
            ),
        ):
            if is_wrong:
                raise BadInputError(words)

    def chosen(self, *names: str) -> list[str]:
        """Those of some options that differ from their defaults, as they are typed."""
        defaults = {one.name: one.default for one in fields(self)}
        different = (name for name in names if getattr(self, name) != defaults[name])
        return [f"--{name.replace('_', '-')}" for name in different]

    @property
    def folds(self) -> str | None:
        """Whether rows are to be held out: as for `prepare_data`."""
        needed = self.criterion == "soft" and not self.chosen("solver", "bound")
        return "needed" if needed else None

    def criterion_for(self, moments: GroupMoments | None = None) -> FairnessCriterion:
        """The criterion, for these groups where bounds name some."""
        from fairpca.criteria import AtMost, Balanced, Equal, MinMax, SoftMinMax

        if self.bound and moments is not None:
            return AtMost(_bounds(self.bound, self.measure, moments), self.measure)
        criteria: dict[str, FairnessCriterion] = {
            "soft": SoftMinMax(self.measure, self.standard_errors, self.max_extra_loss),
            "minmax": MinMax(self.measure, self.max_extra_loss),
            "equal": Equal(self.tolerance, self.measure),
            "balanced": Balanced(),
        }
        return criteria[self.criterion]

    @property
    def front_criterion(self) -> FairnessCriterion:
        """What a front is over: the largest measure in these rows, unless equality is asked for."""
        from fairpca.criteria import MinMax

        return MinMax(self.measure) if self.criterion == "soft" else self.criterion_for()

    def parameters(self, moments: GroupMoments) -> dict[str, Any]:
        """The parameters of `FairPCA` for these groups."""
        chosen: dict[str, Any] = {"solver": self.solver, "nested": self.nested}
        chosen["criterion"] = self.criterion_for(moments)
        if self.chosen("gap", "time_limit"):
            from fairpca import ExactSolver

            chosen["solver"] = ExactSolver(gap=self.gap, time_limit=self.time_limit)
        return chosen


@dataclass(frozen=True)
class FrontOptions(FitOptions):
    """The same of a front, which leads to one of two criteria."""

    criterion: str = option(
        "minmax",
        "What is traded for total loss: the largest disparity of a group (minmax), or the largest "
        "difference between two groups (equal).",
        words=FRONTS,
    )


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once."""
    return tuple(dict.fromkeys(names))


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
    drop: Sequence[str] = option((), "Leave a column out; repeat for several.", metavar="COLUMN")
    encode: str = option(
        "onehot",
        "Columns of text become a 0/1 column for each category, or one of codes (positions in "
        "sorted order), or are an error.",
        words=ENCODINGS,
    )
    standardize: bool = option(True, "Bring columns to mean 0 and variance 1 (constant ones to 0).")
    keep_sensitive: bool = option(
        False,
        "Whether the sensitive columns are reduced with the others; new tables then need them too.",
        names=["--keep-sensitive/--drop-sensitive"],
    )
    missing_labels: str = option(
        "error",
        "Whether missing values in a sensitive column are an error or a group, or their rows "
        "are left out.",
        words=MISSING_LABELS,
    )
    groups: str = option("intersections", _GROUPS, words=GROUPINGS[:-1])
    sep: str = option(
        "", "What separates the cells of a CSV file; tab or \\t is a tab.", metavar="CHARACTER"
    )
    decimal: str = option(".", "The decimal point of a CSV file.", words=(".", ","))
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
        "Take a column of numbers for a measurement that seems to count the rows, or has "
        "zeros in front as codes have; repeatable.",
        metavar="COLUMN",
    )
    impute: str = option(
        "",
        "Fill in missing and infinite numbers, here and in tables that a model is used on; "
        "missing text becomes the most frequent one. So that no single person's number is "
        "kept, the median is the mean of the --min-rows middle ones, and the most frequent "
        "number has to be in as many rows.",
        words=IMPUTATIONS,
    )
    min_rows: int = option(
        MIN_ROWS,
        "Categories with fewer rows become one, called 'other (rare)', whose parts are not "
        "kept; groups with fewer are small (--small-groups). 1 keeps all.",
        metavar="N",
    )
    small_groups: str | None = option(
        None,
        "Refuse groups with fewer rows than --min-rows, make them one group, leave them out, "
        "or keep them. Without it they are refused where a model or a report is written, and "
        "kept elsewhere.",
        words=SMALL_GROUPS,
    )
    unknown_categories: str = option(
        "error",
        "Whether categories that did not occur at the fit are refused, or are 0 in all "
        "columns of theirs. Where rare ones were pooled at the fit, they belong to these.",
        words=UNKNOWN,
    )
    stream: bool = option(
        False,
        "Read the table in batches, which takes less memory, even if it is no larger than 1 GiB.",
    )

    @refusing()
    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, list | tuple):
                object.__setattr__(self, option.name, unique(value))
        check_words(self)
        if self.sep in _TABS:
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
        return unique([*self.target, *self.drop])

    def learning(self) -> dict[str, Any]:
        """The parameters of a `PreparationLearner`."""
        names = ["sensitive", "encode", "standardize", "keep_sensitive", "as_text", "as_number"]
        names += ["impute", "min_rows", "decimal"]
        return {name: getattr(self, name) for name in names} | {"drop": self.unused}


@dataclass(frozen=True)
class ModelTableOptions(TableOptions):
    """The same of a table that a model may be used on, which has groups of its own."""

    groups: str = option(
        "", f"{_GROUPS} Without it those of the model, or combinations.", words=GROUPINGS[:-1]
    )


OF_ONE_SUBSPACE = (
    *("tolerance", "bound", "max_extra_loss", "standard_errors", "solver", "nested"),
)
"""Options that say nothing of a front."""

Command = Callable[..., None]


def with_options(
    only: Collection[str] = (),
    without: Collection[str] = (),
    required: Collection[str] = (),
    **kinds: type[Any],
) -> Callable[[Command], Command]:
    """Give a command the options that are fields of `kinds`, and it these."""

    def decorate(command: Command) -> Command:
        own = dict(signature(command, eval_str=True).parameters)
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

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__signature__ = Signature(  # type: ignore[attr-defined]
            [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
        )
        return run

    return decorate


def _parameter(one: Field[Any], type_: Any, required: bool) -> Parameter:
    """The parameter of a command that a field is."""
    how, name = dict(one.metadata), one.name.replace("_", "-")
    if one.default is False:
        how.setdefault("names", [f"--{name}"])
    type_, default = (list[str], []) if one.default == () else (type_, one.default)
    return Parameter(
        one.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if required else default,
        annotation=Annotated[type_, choice_option(**how)],
    )


@refusing()
def check_words(options: Any) -> None:
    """Refuse options that are none of their words."""
    from fairpca.validation import check_choice

    for one in fields(options):
        value, words = getattr(options, one.name), one.metadata["words"]
        if words and value != one.default:
            check_choice(f"--{one.name.replace('_', '-')}", value, words)


def arguments(options: TableOptions | FitOptions) -> list[str]:
    """What can be typed to choose the same again."""
    typed: list[str] = []
    for one in fields(options):
        value, option = getattr(options, one.name), one.name.replace("_", "-")
        if isinstance(value, bool):
            said = f"--{option}" if value else f"--no-{option}"
            typed += [] if value is one.default else [said]
        elif isinstance(value, list | tuple):
            typed += [word for part in value for word in (f"--{option}", part)]
        elif value != one.default:
            typed += [f"--{option}", "tab" if value == "\t" else str(value)]
    return typed

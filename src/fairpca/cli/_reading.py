"""Options about how a table is read, which all commands have, and what they may be."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairpca.choices import IMPUTATIONS, MIN_ROWS, SMALL_GROUPS, UNKNOWN
from fairpca.cli._options import choice_option, column_option, unique
from fairpca.cli._terminal import BadInputError, refusing

if TYPE_CHECKING:  # the help needs none of the library
    from fairpca.tables.csv_files import CsvRules

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
class ReadingOptions:
    """What a user can choose about how a table is read."""

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

    @refusing()
    def __post_init__(self) -> None:
        from fairpca.validation import check_choice

        if self.sep in _TABS:
            object.__setattr__(self, "sep", "\t")
        if len(self.sep) > 1 or not self.sep.isascii() or self.sep in ('"', "\n", "\r"):
            raise BadInputError(f"--sep must be one character such as ';', got {self.sep!r}.")
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
        for name in ("missing_values", "as_text", "as_number"):
            object.__setattr__(self, name, unique(getattr(self, name)))

    @property
    def rules(self) -> CsvRules:
        """How a CSV file is written."""
        from fairpca.tables.csv_files import CsvRules

        encoding = codecs.lookup(self.encoding).name
        return CsvRules(self.sep, self.decimal, encoding, tuple(self.missing_values))

    def learning(self) -> dict[str, Any]:
        """The parameters of a `PreparationLearner`."""
        names = ("as_text", "as_number", "impute", "min_rows", "decimal")
        return {name: getattr(self, name) for name in names}

    def arguments(self) -> list[str]:
        """What can be typed to choose the same again."""
        typed: list[str] = []
        for field in fields(self):
            value, option = getattr(self, field.name), f"--{field.name.replace('_', '-')}"
            if value is True:
                typed.append(option)
            elif isinstance(value, tuple):
                typed += [word for part in value for word in (option, part)]
            elif value != field.default:
                typed += [option, "tab" if value == "\t" else str(value)]
        return typed

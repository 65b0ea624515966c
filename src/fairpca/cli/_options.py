"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairpca.problem import CRITERIA
from fairpca.solvers import SOLVERS
from fairpca.tables.preparation import ENCODINGS

DIMENSION_HELP = (
    "The number of columns to reduce to, or a share: the fewest at which the worst-off group keeps "
    "that share of its variance."
)
SENSITIVE_HELP = "A column that makes the groups; several make groups of their combinations."

Table = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A .csv, .parquet, .arrow or .feather file.")
]
Sensitive = Annotated[list[str], typer.Option("--sensitive", metavar="COLUMN", help=SENSITIVE_HELP)]
Dimension = Annotated[str, typer.Option("--n-components", metavar="5|0.9", help=DIMENSION_HELP)]
Drop = Annotated[
    list[str],
    typer.Option("--drop", metavar="COLUMN", help="Leave a column out; repeat for several."),
]
Target = Annotated[
    list[str],
    typer.Option(
        "--target",
        metavar="COLUMN",
        help="A column to be predicted later, which is left out too; repeat for several.",
    ),
]
Carry = Annotated[
    list[str],
    typer.Option(
        "--carry",
        metavar="COLUMN",
        help="Copy a column into the output table; repeat for several.",
    ),
]
Encode = Annotated[
    str,
    typer.Option(
        metavar="|".join(ENCODINGS),
        help="Columns of text become a 0/1 column for each category, or one of codes (positions "
        "in sorted order), or are an error.",
    ),
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize/--no-standardize",
        help="Bring columns to mean 0 and variance 1 (constant ones to 0).",
    ),
]
KeepSensitive = Annotated[
    bool,
    typer.Option(
        "--keep-sensitive/--drop-sensitive",
        help="Whether the sensitive columns are reduced with the others; new tables then need "
        "them too.",
    ),
]
Criterion = Annotated[
    str,
    typer.Option(
        metavar="|".join(CRITERIA),
        help="Equal disparities at the least total loss, or the least largest disparity.",
    ),
]
Tolerance = Annotated[
    float, typer.Option(help="How far apart disparities may lie, with --criterion equal.")
]
Solver = Annotated[str, typer.Option(metavar="NAME", help=f"One of auto, {', '.join(SOLVERS)}.")]
MissingLabels = Annotated[
    str,
    typer.Option(
        metavar="error|group",
        help="Whether missing values in a sensitive column are an error or a group.",
    ),
]
Model = Annotated[
    Path | None,
    typer.Option("--model", metavar="FILE", help="Write the model; the suffix is .fairpca."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write the reduced table; the suffix is .csv, .parquet, .arrow or .feather. In a CSV "
        "file, text that a spreadsheet would run gets a ' in front.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a page for everyone, as `fairpca report` does; the suffix is .html.",
    ),
]
Stream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--no-stream",
        help="Read the table in batches, or all of it into memory; without a word, files of more "
        "than 1 GiB are read in batches.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

"""What groups of UCI Adult lose with PCA, by sex and by race, and what a fair subspace changes.

Run ``make demo``, or ``python examples/demo.py`` if ``fairpca[cli]`` is installed. The demo runs
the program ``fairpca`` on a CSV file.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from fairpca.cli import main
from fairpca.datasets import load_adult

OPTIONS = (
    *("--n-components", 5, "--target", "income"),
    *("--drop", "fnlwgt"),  # a survey weight: how many people a row stands for
    *("--min-rows", 1),  # a column for every country, even if one person is from it
    "--force",  # to replace what an earlier run has left
)
FOLDER = Path("demo-output")


def run(folder: Path = FOLDER) -> dict[str, Path]:
    """Print who pays by sex and by race, and return where the reports are."""
    folder.mkdir(exist_ok=True)
    table = folder / "adult.csv"
    adult_with_words().to_csv(table, index=False)
    print(
        "UCI Adult: 5 standardised columns of numbers, and a 0/1 column for each category of\n"
        "the others; the column that makes the groups is left out. A group's loss is the\n"
        "squared distance between a row and its reconstruction, averaged over its rows. Its\n"
        "disparity is its loss minus its loss with a PCA of its own."
    )
    reports = {}
    for sensitive in ("sex", "race"):
        reports[sensitive] = folder / f"adult-by-{sensitive}.html"
        _show("report", table, "--sensitive", sensitive, *OPTIONS, "--report", reports[sensitive])
    print("\nOpen the reports in a web browser; they need nothing else.")
    return reports


def adult_with_words() -> Any:
    """Adult as UCI publishes it, with the names of the categories, as a data frame."""
    adult = load_adult(encoding="onehot")
    frame = load_adult().data
    for name in frame:
        levels = [column for column in adult.data if column.startswith(f"{name}=")]
        if levels:
            frame[name] = adult.data[levels].idxmax(axis=1).str.removeprefix(f"{name}=")
    frame["income"] = adult.target.map(dict(enumerate(adult.target_names)))
    return frame


def _show(*arguments: object) -> None:
    """Run the program as its user would, and show how."""
    words = [str(argument) for argument in arguments]
    print(f"\n$ {shlex.join([_program(), *words])}\n", flush=True)
    code = main(words)
    if code != 0:
        sys.exit(code)


def _program() -> str:
    """What to type for the program from this folder."""
    installed = Path(sys.prefix, "bin", "fairpca")
    if installed.exists() and installed.is_relative_to(Path.cwd()):
        return str(installed.relative_to(Path.cwd()))
    return "fairpca"


if __name__ == "__main__":
    run()

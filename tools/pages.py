"""Rewrites what the pages print: ``python -m tools.pages [names]``, paths within docs.

Runs the python blocks of a page in order and puts what they print into the text block that follows.
README.md is a name too. A block that raises stops it, and the page stays as it is. Read the diff: a
number that changed needs a reason.
"""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib
import sklearn

DOCS = Path(__file__).parents[1] / "docs"

PAGES = (
    "index.md",
    "custom_objective.md",
    "downstream.md",
    "fairlearn.md",
    "federated.md",
    "genomes.md",
    "large_data.md",
    "which_method.md",
    *(f"guide/{page.name}" for page in sorted((DOCS / "guide").glob("*.md"))),
)
"""The pages whose blocks are run, by the tests too."""

_BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)


def rewritten(page: str) -> str:
    """The text of a page with what its blocks print now."""
    printed, scope = io.StringIO(), {"__name__": "__main__"}

    def replaced(block: re.Match[str]) -> str:
        nonlocal printed
        if block[1] == "text":
            shown, printed = printed.getvalue(), io.StringIO()
            return f"```text\n{shown}```"
        with redirect_stdout(printed):
            exec(block[2], scope)
        return block[0]

    with sklearn.config_context(), warnings.catch_warnings():  # which a page may change
        warnings.simplefilter("error")
        text = _BLOCK.sub(replaced, page)
    if printed.getvalue():
        raise ValueError(f"No text block follows what prints {printed.getvalue()!r}.")
    return text


def main(names: list[str]) -> None:
    """Rewrite pages, all of them if none is named."""
    matplotlib.use("agg")
    os.environ["COLUMNS"] = "80"
    for name in names or ["../README.md", *PAGES]:
        path = DOCS / ("../README.md" if name == "README.md" else name)
        before = path.read_text(encoding="utf-8")
        after = rewritten(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"{name}: changed")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Count how the house is built: run ``python -m tools.house`` for a table.

Lines are those of code alone. A branch on a criterion or measure is a comparison with one of their
names outside of `criteria` and `measures`. Constants are numbers at module level, those in tuples
and dictionaries counted one by one.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import fairpca
from tools.journeys import array_journey, counted, program_journey

ROOT = Path(fairpca.__file__).parent
_WORDS = {
    *("soft", "minmax", "equal", "bounds", "max_extra_loss", "balanced"),
    *("disparity", "relative_disparity", "loss", "share_lost", "kept_variance", "share_kept"),
    *("own", "all", "none", "variance"),
}
_CLASSES = {"MinMax", "SoftMinMax", "LeastLoss", "Equal", "AtMost", "Balanced"}
_HOMES = {"criteria.py", "measures.py"}
_MOST_PARAMETERS = 6


def modules() -> dict[str, Path]:
    """The modules of the package by their names."""
    names = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def code_lines(text: str) -> int:
    """Lines with code: neither blank, nor comments, nor docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT):
            continue
        if token.type in (tokenize.DEDENT, tokenize.ENDMARKER):
            continue
        lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            lines.difference_update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    return len(lines)


def criterion_branches(tree: ast.AST) -> int:
    """Comparisons with the name of a criterion or measure, and questions for its class."""
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and bool(_CLASSES & set(_names(node.args[1])))
        for node in ast.walk(tree)
    ) + sum(
        any(isinstance(part, ast.Constant) and part.value in _WORDS for part in ast.walk(node))
        and any("goal" in name or "measure" in name or "criterion" in name for name in _names(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
    )


def _names(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        if isinstance(part, ast.Attribute):
            yield part.attr


def constants(tree: ast.Module) -> int:
    """Numbers at module level."""
    found = 0
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if value is not None:
            found += sum(
                isinstance(part, ast.Constant)
                and isinstance(part.value, int | float)
                and not isinstance(part.value, bool)
                for part in ast.walk(value)
            )
    return found


def imports(tree: ast.AST, known: set[str]) -> set[str]:
    """Modules of the package that a module imports, also inside of functions."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairpca"):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found & known


def main() -> None:
    """Print the table."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in modules().items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    functions = [
        node
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    importers = Counter(
        name for own, tree in trees.items() for name in imports(tree, set(trees)) if name != own
    )
    packages = {name for name, path in modules().items() if path.name == "__init__.py"}
    single = sum(importers[name] == 1 for name in trees if name not in packages)
    last = Counter(re.sub("^_", "", name.rpartition(".")[2]) for name in trees)
    many = sum(
        len([*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs])
        - bool(node.args.args and node.args.args[0].arg in ("self", "cls"))
        > _MOST_PARAMETERS
        for node in functions
    )
    outside = sum(
        criterion_branches(tree)
        for name, tree in trees.items()
        if modules()[name].name not in _HOMES
    )
    fit, plain = counted(array_journey()), counted(array_journey("minmax"))
    program = counted(program_journey("fit"))
    rows = {
        "functions / files passed by `fit`, two groups": f"{fit.functions} / {fit.files}",
        "switches between files on the way; depth": f"{fit.switches} ; {fit.depth}",
        "functions / files with plain min-max": f"{plain.functions} / {plain.files}",
        "switches between files; depth": f"{plain.switches} ; {plain.depth}",
        "functions passed by the program's `fit x.csv`": program.functions,
        "code lines of src": f"{sum(map(code_lines, texts.values())):,}",
        "functions": f"{len(functions):,}",
        "modules": len(trees),
        "branches on a criterion or measure outside its class": outside,
        "modules with a single importer": single,
        "names of modules used twice": sum(n > 1 for n in last.values()) - (last["fairpca"] > 1),
        "numeric constants at module level": sum(map(constants, trees.values())),
        "functions with more than six parameters": many,
    }
    for what, number in rows.items():
        sys.stdout.write(f"| {what} | {number} |\n")


if __name__ == "__main__":
    main()

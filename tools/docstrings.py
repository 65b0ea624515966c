"""Check the docstrings of what the API reference lists: `python -m tools.docstrings`.

They are numpydoc's own checks, for every name in docs/api/index.md and the methods that it has. A
method of which one sentence says all needs no sections; whoever begins them says them all.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from numpydoc.docscrape import NumpyDocString, get_doc_object
from numpydoc.validate import validate

REFERENCE = Path(__file__).parents[1] / "docs" / "api" / "index.md"

NOT_ASKED = {
    "ES01",  # a paragraph after the summary: where there is more to say
    "GL02",  # where the quotes of one line end
    "PR06",  # integers, of NumPy, are not only Python's int
    "RT02",  # a result may have a name
    "SA04",  # a sentence in "See Also": where the name does not say it
    "SS05",  # a summary may also say what a thing is
}

NOT_ASKED_OF_METHODS = {"EX01", "SA01"}
"""Examples, and where to read on, stand in the docstring of the class."""

SAYS_ALL = {
    "PR07": 'Parameter "y" has',  # "y : ignored"
    "RT03": "Return value has no description",  # "self : FairPCA", or a shape
}
"""What needs no further sentence, by the code and the beginning of the complaint."""


def public_names(reference: Path = REFERENCE) -> list[str]:
    """The names that the reference lists."""
    listed = reference.read_text(encoding="utf-8")
    return re.findall(r"^   (fairpca\.[\w.]+)$", listed, re.MULTILINE)


def complaints(name: str) -> Iterator[str]:
    """What is wrong with the docstring of a public name, and with those of its methods."""
    thing = _found(name)
    yield from _complaints_of(name, thing, NOT_ASKED)
    for method in _methods(thing) if inspect.isclass(thing) else ():
        member, where = getattr(thing, method), f"{name}.{method}"
        written = inspect.getdoc(member) or ""
        if re.search(r"^-{3,}$", written, re.MULTILINE):
            yield from _complaints_of(where, member, NOT_ASKED | NOT_ASKED_OF_METHODS)
        elif not written:
            yield f"{where}: no docstring"


def _found(name: str) -> Any:
    home, _, last = name.rpartition(".")
    return getattr(import_module(home), last)


def _methods(kind: type) -> Iterator[str]:
    """Its public methods and properties, without those of other libraries' classes."""
    for name, member in inspect.getmembers(kind):
        function = member.fget if isinstance(member, property) else member
        home = getattr(function, "__module__", None) or ""
        if not name.startswith("_") and callable(function) and home.startswith("fairpca"):
            yield name


def _complaints_of(name: str, thing: Any, not_asked: set[str]) -> Iterator[str]:
    found = validate(get_doc_object(thing))  # not its name, which a module may share
    documented = NumpyDocString(found["docstring"])
    fields = {name for each in documented["Attributes"] for name in each.name.split(", ")}
    for code, said in found["errors"]:
        of_fields = code == "PR01" and set(re.findall(r"'(\w+)'", said)) <= fields
        if not (code in not_asked or of_fields or said.startswith(SAYS_ALL.get(code, "\0"))):
            yield f"{name}: {code} {said}"
    for section in documented["See Also"]:
        for other, _ in section[0]:
            if not _is_there(other):
                yield f'{name}: "See Also" names {other}, which is not there'


def _is_there(name: str) -> bool:
    """Whether a reader finds this, by its full name."""
    try:
        _found(name)
    except (AttributeError, ImportError, ValueError):
        return False
    return True


if __name__ == "__main__":
    said = [each for name in public_names() for each in complaints(name)]
    print("\n".join(said) or "Docstrings: each says what it has to.")
    sys.exit(bool(said))

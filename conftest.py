"""Which tests run first, and which ones without counting lines: marks in the test files say so."""

import sys
from collections.abc import Generator
from importlib.util import find_spec

import pytest

pytest_plugins = ["texts"]

# `make cells` has anndata; `make test` not, since anndata needs an older pandas.
collect_ignore = [] if find_spec("anndata") else ["src/fairpca/pp.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, so that no worker is left with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Count no lines while an untraced test runs, its fixtures included.

    pytest-cov's own marker has no effect in the processes of pytest-xdist.
    """
    tracer = sys.gettrace()
    if item.get_closest_marker("untraced"):
        sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)

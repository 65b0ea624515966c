"""PyTorch for tests: without it they are skipped, or fail where it has to be there."""

import importlib
import os

import pytest

REQUIRED = "FAIRPCA_REQUIRE_TORCH"


def missing(library):
    """Skip a test of arrays on a device, or fail if the environment says that it has to run."""
    said = f"not installed: {library}: nothing was tried with PyTorch (install `fairpca[gpu]`)"
    if os.environ.get(REQUIRED):
        pytest.fail(f"{said}, and {REQUIRED} is set")
    pytest.skip(said)


def import_torch():
    """PyTorch, with what the library needs beside it."""
    try:
        importlib.import_module("array_api_compat")
        return importlib.import_module("torch")
    except ImportError as error:
        missing(error.name)

"""Which tests run with the oldest dependencies, too."""

from pathlib import Path

import pytest

CONTRACT = (
    "cli/",  # typer, rich, pyarrow
    "datasets/",  # pandas
    "estimators/",  # scikit-learn: its checks, pipelines, routing, callbacks
    "experiments/test_figures.py",  # the solver on NumPy and SciPy, published figures
    "files/",  # NumPy's formats
    "linalg/test_linalg.py",  # LAPACK as SciPy wraps it
    "parity/",  # scikit-learn, cvxpy
    "report/",  # jinja2, a browser
    "rows/test_groups.py",  # labels of pandas, Polars and NumPy
    "solvers/test_relaxations.py",  # cvxpy, Clarabel, SCS, HiGHS
    "solvers/test_two_groups.py",
    "sources/",  # pyarrow, Polars, DuckDB, Dask, Spark
    "test_audit.py",
    "test_metrics.py",  # fairlearn
    "test_plotting.py",  # matplotlib
    "test_table.py",
)
"""Tests of what the library asks of others: what works with their oldest versions and their newest
works in between. The mathematics is the library's own, and is tested with the newest alone."""


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            place = item.path.relative_to(here).as_posix()
            if place.startswith(CONTRACT):
                item.add_marker(pytest.mark.contract)

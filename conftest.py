"""Which tests run with the oldest dependencies too, and which ones first, or untraced."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent / "tests"

CONTRACT = (
    "cli/test_commands.py",  # typer, rich, pyarrow
    "cli/test_program.py::test_fit_transform_and_audit_are_what_python_gives",
    "estimators/test_estimator.py",  # scikit-learn: its checks, pipelines, routing, callbacks
    "experiments/test_figures.py",  # the solver on NumPy and SciPy, against published figures
    "inspection/test_audit.py",
    "inspection/test_metrics.py",  # fairlearn
    "inspection/test_worst_group.py",  # scikit-learn: scorers and routing
    "linalg/test_linalg.py",  # LAPACK as SciPy wraps it
    "report/test_report_page.py::test_page_is_quiet_fits_and_is_accessible",  # jinja2, a browser
    "report/test_report_page.py::test_hostile_names_are_only_text",
    "rows/test_groups.py",  # labels of pandas, Polars and NumPy
    "solvers/test_relaxations.py::test_the_sdp_attains_the_bound_of_the_dual",  # cvxpy, Clarabel
    "solvers/test_relaxations.py::test_the_other_backend",  # SCS
    "solvers/test_relaxations.py::test_equiangular_lines_need_every_extra_dimension",  # HiGHS
    "solvers/test_relaxations.py::test_a_failing_backend_is_reported_in_one_sentence",
    "sources/test_clusters.py",  # Dask and Spark
    "sources/test_dask.py::test_a_cluster_gives_the_fit_on_all_rows",
    "sources/test_dask.py::test_frames_and_arrays_together",
    "sources/test_dask.py::test_a_refusal_on_a_worker_is_one_sentence_here",
    "sources/test_sources.py",  # pyarrow, Polars, DuckDB
    "sources/test_spark.py::test_the_fit_is_that_on_all_rows[classic]",
    "sources/test_spark.py::test_transform_is_lazy_and_keeps_what_it_is_told[connect]",
    "sources/test_spark.py::test_refusals_before_any_work",
    "tables/test_csv_files.py",
    "test_plotting.py",  # matplotlib
)
"""Tests of what the library asks of others: what works with their oldest versions and their newest
works in between. The mathematics is the library's own, and is tested with the newest alone."""


LONGEST = (
    "sources/test_spark.py",
    "experiments/test_experiments.py",
    "solvers/test_many_groups.py",
    "report/test_report_page.py",
    "report/test_report_pictures.py",
)
"""Files that take longest. They go first, so that no worker is left with one at the end."""

UNTRACED = (
    "cli/test_commands.py",
    "cli/test_hostile_names.py",
    "cli/test_memory.py",
    "docs/test_site.py",
    "estimators/test_beyond_the_sample.py",
    "estimators/test_cautions.py",
    "estimators/test_credibility.py",
    "estimators/test_fairness_choices.py",
    "estimators/test_named_groups.py",
    "estimators/test_resampling.py",
    "estimators/test_shrinkage.py",
    "experiments/test_experiments.py",
    "files/test_fuzzed_files.py",
    "inspection/test_audit_intervals.py",
    "inspection/test_front.py",
    "inspection/test_front_largest.py",
    "inspection/test_held_out_losses.py",
    "linalg/test_many_columns.py",
    "report/test_report_page.py",
    "report/test_report_pictures.py",
    "rows/test_groups.py",
    "rows/test_row_space.py",
    "solvers/test_constrained.py",
    "solvers/test_criteria_page.py",
    "solvers/test_goals.py",
    "solvers/test_hard_problems.py",
    "solvers/test_ill_scaled.py",
    "solvers/test_many_groups.py",
    "solvers/test_measures.py",
    "solvers/test_nested.py",
    "solvers/test_pareto.py",
    "solvers/test_raw_columns.py",
    "solvers/test_real_cases.py",
    "solvers/test_relaxations.py",
    "solvers/test_rivals.py",
    "solvers/test_search_space.py",
    "solvers/test_two_groups.py",
    "solvers/test_welfare.py",
    "solvers/test_worst_case_pca.py",
    "test_certificate.py",
    "test_gallery.py",
    "test_project.py",
)
"""Files that solve many problems, whose lines are not counted: counting takes about as long as the
tests themselves, and others run the same lines."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the contract, and put the longest files first."""
    longest = [TESTS / file for file in LONGEST]
    items.sort(key=lambda item: item.path not in longest)
    for item in items:
        if item.path.is_relative_to(TESTS):
            file = item.path.relative_to(TESTS).as_posix()
            names = (f"{file}::{getattr(item, 'originalname', '')}", f"{file}::{item.name}")
            if file in CONTRACT or any(name in CONTRACT for name in names):
                item.add_marker(pytest.mark.contract)
            if file in UNTRACED:
                item.add_marker(pytest.mark.untraced)


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


def pytest_configure() -> None:
    """Refuse a list that has gone out of date."""
    lost = []
    for place in (*CONTRACT, *LONGEST, *UNTRACED):
        file, _, test = place.partition("::")
        path = TESTS / file
        function = test.partition("[")[0]
        if not path.exists() or f"def {function}" not in path.read_text(encoding="utf-8"):
            lost.append(place)
    assert not lost, f"conftest.py names tests that are not there: {lost}"

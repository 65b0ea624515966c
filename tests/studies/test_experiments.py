"""Every experiment in small, and the committed page of claims."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from fairpca import ParetoDescent
from fairpca.solvers import SOLVERS, ExactSolver
from studies.reproduction import __main__ as main
from studies.reproduction import claims, complexity, downstream, methods, runner, sweep
from studies.reproduction.plots.style import only

pytestmark = [pytest.mark.untraced, pytest.mark.long]

# On one worker, because they share one small run.
COMMITTED = Path(__file__).parents[2] / "studies" / "reproduction"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A folder with everything that the small run writes."""
    folder = tmp_path_factory.mktemp("reproduction")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "CACHE", folder / "cache")
        patch.setattr(methods, "STEPS", 200)
        main.reproduce(folder, small=True, n_jobs=1, quiet=True)
        remembered = main.compute(small=True, n_jobs=1, quiet=True)
    for name, frame in remembered.items():
        written = (folder / "tables" / f"{name}.csv").read_text(encoding="utf-8")
        assert frame.to_csv(index=False, float_format="%.8g") == written
    return folder


def test_every_figure_is_drawn_as_picture_and_vector(small):
    pictures = {path.stem for path in (small / "figures").glob("*.png")}
    assert pictures == {path.stem for path in (small / "figures").glob("*.svg")}
    assert {"average_disparity", "total_loss", "classifier", "times", "frontier"} <= pictures
    for path in (small / "figures").glob("*.png"):
        pixels = imread(path)[..., :3]
        assert (pixels < 0.9).any(axis=2).mean() > 0.005, f"{path.name} is nearly blank"


def test_every_claim_gets_a_verdict_and_its_figures_exist(small):
    page = (small / "claims.md").read_text(encoding="utf-8")
    sections = page.split("\n## ")[1:]
    for i in range(1, len(claims.JUDGES) + 1):
        assert sections[i - 1].startswith(f"{i}. ")
        parts = re.findall(rf"^\| {i}[a-h] \|.*\| \*\*(.*?)\*\* \(\d+ of \d+\) \|", page, re.M)
        assert len(parts) >= 2  # in the summary, and in the section
        assert set(parts) <= set(claims.VERDICTS)
    for name in re.findall(r"\(figures/(\w+)\.png\)", page):
        assert (small / "figures" / f"{name}.png").exists()


def test_what_is_judged_as_printed_is_as_printed(small):
    table = pd.read_csv(small / "tables" / "methods.csv")
    row = only(table, data="Adult", sensitive="sex", method=methods.PRINTED).iloc[0]
    problem = sweep.Setting("Adult", "sex", n_rows=1500).problem(2)
    solution = ParetoDescent.as_printed(max_iter=200).solve(problem)
    assert row["total loss"] == pytest.approx(solution.total_loss, rel=1e-7)
    assert row["spread"] == pytest.approx(np.ptp(solution.disparities), rel=1e-6)


def test_tables_hold_every_registered_method(small):
    found = pd.read_csv(small / "tables" / "methods.csv")
    assert set(found["method"]) == set(methods.methods())
    assert set(SOLVERS) < set(found["method"])


def test_a_solver_that_is_registered_later_appears_by_itself(monkeypatch):
    monkeypatch.setitem(SOLVERS, "later", ExactSolver)
    assert "later" in methods.methods()
    assert methods.look("later").label == "later"
    labels = [task.arguments[2] for task in sweep.reference_tasks(small=True)]
    assert "later" in labels
    assert any(task.arguments[2] == "later" for task in complexity.tasks(small=True))


def test_results_are_remembered_until_the_code_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "CACHE", tmp_path)
    calls = []

    @runner.remembered
    def work(number):
        calls.append(number)
        return number + 1

    assert [work(1), work(1), work(2)] == [2, 2, 3]
    assert calls == [1, 2]
    monkeypatch.setattr(runner, "source_digest", lambda: "other")
    assert work(1) == 2
    assert calls == [1, 2, 1]


def test_intervals_are_those_of_a_t_test():
    frame = pd.DataFrame(
        {
            "data": "Adult",
            "preprocessing": "p",
            "seed": [0, 1, 2, 0, 1, 2],
            "reduction": ["PCA"] * 3 + ["exact"] * 3,
            "accuracy": 0.8,
            "DEO": [0.2, 0.3, 0.4, 0.1, 0.2, 0.4],
        }
    )
    table = downstream.intervals(frame).set_index("reduction")
    assert table.loc["PCA", "DEO minus PCA"] == 0.0
    assert table.loc["exact", "DEO minus PCA"] == pytest.approx(-0.2 / 3)
    # Differences -0.1, -0.1, 0: standard error 0.0333, t quantile 4.303.
    assert table.loc["exact", "DEO minus PCA ±"] == pytest.approx(4.302653 / 30)


def test_exponents_are_slopes_on_logarithmic_scales():
    sizes = np.array([10, 20, 40])
    frame = pd.DataFrame({"method": "m", "axis": "d", "d": sizes, "seconds": 1e-6 * sizes**2.5})
    assert complexity.exponents(frame)["exponent"][0] == pytest.approx(2.5)


def test_verdicts_are_strict():
    counts = {20: 0, 19: 1, 18: 1, 17: 2, 3: 2, 2: 3, 1: 3, 0: 4}
    for n, level in counts.items():
        assert claims.verdict(pd.Series([True] * n + [False] * (20 - n))) == claims.VERDICTS[level]


def test_the_committed_page_follows_from_the_committed_tables():
    page = claims.page(claims.Evidence.read(COMMITTED / "tables"))
    assert page == (COMMITTED / "claims.md").read_text(encoding="utf-8")


def test_committed_figures_are_complete():
    page = (COMMITTED / "claims.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\(figures/(\w+)\.png\)", page))
    assert len(shown) >= 9
    for name in shown:
        for suffix in (".png", ".svg"):
            assert (COMMITTED / "figures" / f"{name}{suffix}").stat().st_size > 5000

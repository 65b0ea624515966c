"""The gallery: every example runs without a warning and draws."""

import runpy
import warnings
from pathlib import Path

import pytest
import sklearn
from matplotlib import pyplot as plt

pytestmark = pytest.mark.untraced

GALLERY = Path(__file__).parents[1] / "examples" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(example, monkeypatch, capsys):
    drawn = []
    monkeypatch.setattr(plt, "show", lambda: drawn.extend(plt.get_fignums()))
    try:
        with warnings.catch_warnings(), sklearn.config_context():  # which an example may change
            runpy.run_path(str(example))
    finally:
        plt.close("all")
    assert drawn
    assert capsys.readouterr().out

"""The Display classes: what they show, where they draw, and labels that are not harmless."""

import sys
from importlib.resources import files

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import Equal, FairPCA, KernelFairPCA, MinMax, audit, pareto_front, plotting
from fairpca.comparators import ParityPCA
from fairpca.plotting import (
    DisparityDisplay,
    FrontDisplay,
)

from texts import refused

pytestmark = pytest.mark.contract  # matplotlib

mpl.use("Agg")

HOSTILE = ["$x^{2$", "<script>alert(1)</script>", "=1+1", "a\nb" * 5000, "עברית", "🙂", "%s %d"]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 5)) * [3, 2, 1, 1, 0.5]
    X[:60] = X[:60, ::-1]
    return X, np.array(["few"] * 60 + ["many"] * 180)


def drawn(figure):
    """The picture as pixels, which also shows that it can be drawn."""
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())


def test_disparities_are_the_lengths_of_the_bars(data):
    X, groups = data
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    display = DisparityDisplay.from_estimator(fair)
    plain, equal = display.ax_.containers
    table = fair.group_table_
    for bars, disparity in ((plain, table.pca_disparity), (equal, table.disparity)):
        widths = np.array([bar.get_width() for bar in bars])
        np.testing.assert_allclose(widths, 100 * disparity / table.variance)
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == ["few (60 rows)", "many (180 rows)"]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["ordinary PCA", "fair PCA"]
    table = audit(PCA(2).fit(X), X, sensitive_features=groups)
    audited = DisparityDisplay(table).plot()
    assert [text.get_text() for text in audited.ax_.get_legend().get_texts()] == [
        "ordinary PCA",
        "audited",
    ]


@pytest.mark.parametrize(
    ("criterion", "name"),
    [
        ("minmax", "largest disparity of a group (% of few's variance)"),
        (
            MinMax("relative_disparity"),
            "largest relative disparity of a group (% of its variance)",
        ),
        (MinMax("share_kept"), "least share kept by a group (% of its variance)"),
        ("equal", "largest difference in disparity between two groups (squared units of X)"),
        (
            Equal(measure="share_lost"),
            "largest difference in share lost between two groups (% of their variance)",
        ),
    ],
    ids=str,
)
def test_a_computed_front_is_drawn_from_pca_to_the_fairest(data, criterion, name):
    X, groups = data
    given = {"sensitive_features": groups, "n_components": 2, "n_points": 7}
    front = pareto_front(X, criterion=criterion, **given)
    display = FrontDisplay(front, chosen=front.select(knee=True)).plot()
    line = display.ax_.get_lines()[0]
    unit = 1.0 if "squared" in name else 100.0
    unit /= front.problem.traces[0] if "few" in name else 1.0
    np.testing.assert_allclose(line.get_xdata(), unit * np.abs(front.unfairness))
    np.testing.assert_allclose(line.get_ydata(), 100 * front.extra_loss, atol=1e-12)
    assert display.ax_.get_xlabel() == name
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["ordinary PCA", "fairest subspace", "chosen"]


def test_pictures_go_where_they_are_told(data):
    X, groups = data
    fair = FairPCA(2, solver="pareto", criterion="minmax").fit(X, sensitive_features=groups)
    front = pareto_front(X, sensitive_features=groups, n_components=2, n_points=3)
    figure, axes = plt.subplots(1, 3)
    for ax, make in zip(
        axes.ravel(),
        (
            lambda ax: DisparityDisplay.from_estimator(fair, ax=ax),
            lambda ax: DisparityDisplay(fair.group_table_).plot(ax=ax),
            lambda ax: FrontDisplay(front).plot(ax=ax),
        ),
        strict=True,
    ):
        display = make(ax)
        assert display.ax_ is ax
        assert display.figure_ is figure


def in_pipeline(reduction, X, groups):
    """The reduction in a pipeline that scales before and predicts after it."""
    frame = pd.DataFrame(X, columns=list("pqrst"))
    pipe = make_pipeline(StandardScaler(), reduction, LogisticRegression())
    routed = {}
    if isinstance(reduction, FairPCA):
        routed = {f"{pipe.steps[1][0]}__sensitive_features": groups}
    return pipe.fit(frame, groups, **routed), StandardScaler().fit_transform(X)


def test_the_reduction_in_a_pipeline_is_shown(data):
    X, groups = data
    pipe, rows = in_pipeline(FairPCA(2, solver="pareto", criterion="minmax"), X, groups)
    fair = FairPCA(2, solver="pareto", criterion="minmax").fit(rows, sensitive_features=groups)
    bars = DisparityDisplay.from_estimator(pipe)
    np.testing.assert_allclose(bars.table.disparity, fair.group_table_.disparity)
    with pytest.raises(NotFittedError):
        DisparityDisplay.from_estimator(clone(pipe))


@pytest.mark.parametrize(
    "reduction",
    [PCA(3), TruncatedSVD(3, random_state=0), ParityPCA(3), FastICA(3, random_state=0, tol=0.1)],
    ids=lambda reduction: type(reduction).__name__,
)
def test_any_reduction_is_shown(data, reduction):
    X, groups = data
    name, known = type(reduction).__name__, {"sensitive_features": groups}
    fitted = reduction.fit(X, **known) if isinstance(reduction, ParityPCA) else reduction.fit(X)
    bars = DisparityDisplay(audit(fitted, X, **known), name).plot()
    legend = [text.get_text() for text in bars.ax_.get_legend().get_texts()]
    assert legend == ["ordinary PCA", name]


@pytest.mark.filterwarnings("ignore:Glyph")  # of matplotlib, whose font has no smiling face
def test_labels_that_are_not_harmless_are_drawn_as_they_are():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.array(HOSTILE, dtype=object), 30)
    X = rng.normal(size=(len(groups), 7)) * rng.uniform(1, 3, 7)
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    display = DisparityDisplay.from_estimator(fair)
    assert (drawn(display.figure_)[..., :3] < 128).any()
    names = display.ax_.get_yticklabels()
    assert any(r"\$x^{2\$" in name.get_text() for name in names)


def test_the_colours_are_those_of_the_report():
    css = (files("fairpca.report") / "templates" / "page.css").read_text(encoding="utf-8")
    light = css[: css.index("prefers-color-scheme: dark")]
    for color in (plotting.PCA_COLOR, plotting.FAIR_COLOR, plotting.OWN_COLOR, plotting.INK):
        assert color in light


def test_wrong_input_is_refused(data):
    X, groups = data
    with pytest.raises(NotFittedError):
        DisparityDisplay.from_estimator(FairPCA(criterion="minmax"))
    parity = ParityPCA(2).fit(X, sensitive_features=groups)
    with refused(TypeError, "ParityPCA", "table", "audit"):
        DisparityDisplay.from_estimator(parity)
    kernel = KernelFairPCA(2).fit(X, sensitive_features=groups)
    assert DisparityDisplay.from_estimator(kernel).table is kernel.group_table_


def test_without_matplotlib_the_extra_is_named(data, monkeypatch):
    X, groups = data
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with refused(ImportError, "fairpca[plot]"):
        DisparityDisplay.from_estimator(fair)

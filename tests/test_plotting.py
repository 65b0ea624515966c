"""The Display classes: what they show, where they draw, and labels that are not harmless."""

import itertools
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

from fairpca import Equal, FairPCA, KernelFairPCA, MinMax, audit, pareto_front
from fairpca.comparators import ParityPCA
from fairpca.metrics import held_out_losses
from fairpca.plotting import (
    BiplotDisplay,
    DisparityDisplay,
    FrontDisplay,
    HeldOutLossDisplay,
    _style,
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
    audited = DisparityDisplay.from_table(table)
    assert [text.get_text() for text in audited.ax_.get_legend().get_texts()] == [
        "ordinary PCA",
        "audited",
    ]


def test_the_front_is_shown_in_per_cent_of_ordinary_pca():
    display = FrontDisplay([0.5, 0.2, 0.0], [10.0, 10.1, 10.5], chosen=1).plot()
    line = display.ax_.get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), [0.0, 1.0, 5.0])
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["ordinary PCA", "fairest subspace", "chosen"]


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
    display = FrontDisplay.from_front(front, chosen=front.select(knee=True))
    line = display.ax_.get_lines()[0]
    unit = 1.0 if "squared" in name else 100.0
    unit /= front.problem.traces[0] if "few" in name else 1.0
    np.testing.assert_allclose(line.get_xdata(), unit * np.abs(front.unfairness))
    np.testing.assert_allclose(line.get_ydata(), 100 * front.extra_loss, atol=1e-12)
    assert display.ax_.get_xlabel() == name


def test_the_biplot_shows_rows_by_group_and_the_longest_arrows(data):
    X, groups = data
    frame = pd.DataFrame(X, columns=list("pqrst"))
    fair = FairPCA(3, criterion="minmax").fit(frame, sensitive_features=groups)
    display = BiplotDisplay.from_estimator(
        fair, frame, sensitive_features=groups, components=(0, 2), n_arrows=2
    )
    scores = fair.transform(frame)
    many, few = display.ax_.collections  # the small group on top
    np.testing.assert_allclose(many.get_offsets(), scores[groups == "many"][:, [0, 2]])
    np.testing.assert_allclose(few.get_offsets(), scores[groups == "few"][:, [0, 2]])
    longest = np.argsort(-np.linalg.norm(fair.components_[[0, 2]], axis=0))[:2]
    shown = [text for text in display.ax_.texts if text.get_text()]
    assert [text.get_text() for text in shown] == ["pqrst"[j] for j in longest]
    (left, right), (low, high) = display.ax_.get_xlim(), display.ax_.get_ylim()
    for text in shown:
        x, y = text.get_position()
        assert left <= x <= right
        assert low <= y <= high
    assert display.ax_.get_ylabel().startswith("component 3 (")
    sampled = BiplotDisplay.from_estimator(fair, frame, sensitive_features=groups, max_points=50)
    assert np.bincount(sampled.codes).tolist() == [25, 25]
    names = [text.get_text() for text in sampled.ax_.get_legend().get_texts()]
    assert names == ["many (180 rows)", "few (60 rows)"]


def test_pictures_go_where_they_are_told(data):
    X, groups = data
    fair = FairPCA(2, solver="pareto", criterion="minmax").fit(X, sensitive_features=groups)
    figure, axes = plt.subplots(2, 2)
    for ax, make in zip(
        axes.ravel(),
        (
            lambda ax: DisparityDisplay.from_estimator(fair, ax=ax),
            lambda ax: DisparityDisplay.from_table(fair.group_table_, ax=ax),
            lambda ax: FrontDisplay([1.0, 0.0], [1.0, 2.0]).plot(ax=ax),
            lambda ax: BiplotDisplay.from_estimator(fair, X, sensitive_features=groups, ax=ax),
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
    return pipe.fit(frame, groups, **routed), frame, StandardScaler().fit_transform(X)


def test_the_reduction_in_a_pipeline_is_shown(data):
    X, groups = data
    pipe, frame, rows = in_pipeline(FairPCA(2, solver="pareto", criterion="minmax"), X, groups)
    fair = FairPCA(2, solver="pareto", criterion="minmax").fit(rows, sensitive_features=groups)
    bars = DisparityDisplay.from_estimator(pipe)
    np.testing.assert_allclose(bars.table.disparity, fair.group_table_.disparity)
    biplot = BiplotDisplay.from_estimator(pipe, frame, sensitive_features=groups)
    np.testing.assert_allclose(biplot.scores, fair.transform(rows), atol=1e-12)
    assert biplot.columns == list("pqrst")
    with pytest.raises(NotFittedError):
        BiplotDisplay.from_estimator(clone(pipe), frame, sensitive_features=groups)


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
    biplot = BiplotDisplay.from_estimator(fitted, X, **known)
    np.testing.assert_array_equal(biplot.scores, fitted.transform(X)[:, :2])
    assert ("% of variance" in biplot.ax_.get_xlabel()) == (name != "FastICA")


def test_held_out_losses_are_drawn_as_they_are(data):
    X, groups = data
    known = {"sensitive_features": groups, "dimensions": [1, 2, 3]}
    for fair, label in (
        (FairPCA(criterion="minmax"), "held-out loss (squared units of X)"),
        (FairPCA(criterion=MinMax("share_kept")), "held-out loss (% of its variance)"),
    ):
        display = HeldOutLossDisplay.from_losses(held_out_losses(fair, X, **known))
        assert label in display.ax_.get_ylabel()
        losses = display.losses
        bars = display.ax_.containers
        assert [bar.get_label() for bar in bars] == ["ordinary PCA", "fair PCA"]
        unit = 100.0 if losses.relative else 1.0
        for bar, curve in zip(bars, (losses.pca, losses.reduction), strict=True):
            line, _, (segments,) = bar
            np.testing.assert_allclose(line.get_ydata(), unit * curve.worst)
            ends = np.array([segment[:, 1] for segment in segments.get_segments()])
            np.testing.assert_allclose(ends.T, unit * np.array(curve.worst_interval))
        names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        worst = {*losses.pca.worst_group, *losses.reduction.worst_group}
        expected = [f"{losses.groups[i]} ({losses.count[i]:,} rows)" for i in sorted(worst)]
        assert names == ["ordinary PCA", "fair PCA", *expected]
        assert (drawn(display.figure_)[..., :3] < 128).any()
    red = HeldOutLossDisplay(losses).plot(ax=plt.subplots()[1], line_kw={"c": "red"})
    assert {line.get_color() for line in red.ax_.get_lines()[:1]} == {"red"}
    other = HeldOutLossDisplay.from_losses(held_out_losses(PCA(), X, **known))
    assert other.ax_.get_legend().get_texts()[1].get_text() == "PCA"


def test_style_keywords_replace_the_defaults_under_any_name(data):
    X, groups = data
    fair = FairPCA(2, solver="pareto", criterion="minmax").fit(X, sensitive_features=groups)
    red = mpl.colors.to_rgba("red")
    bars = DisparityDisplay.from_estimator(fair, bar_kw={"fc": "red", "height": 0.1})
    assert {bar.get_facecolor() for bar in bars.ax_.patches} == {red}
    assert bars.ax_.patches[0].get_height() == pytest.approx(0.1)
    table = DisparityDisplay.from_table(fair.group_table_, bar_kw={"hatch": "/"})
    assert table.ax_.patches[0].get_hatch() == "/"
    front = FrontDisplay([1.0, 0.0], [1.0, 2.0]).plot(line_kw={"ls": "--", "c": "red"})
    assert front.ax_.get_lines()[0].get_linestyle() == "--"
    assert front.ax_.get_lines()[0].get_color() == "red"
    biplot = BiplotDisplay.from_estimator(
        fair,
        X,
        sensitive_features=groups,
        scatter_kw={"c": "red", "s": 3},
        arrow_kw={"color": "red"},
        text_kw={"size": 5},
    )
    assert biplot.ax_.collections[0].get_sizes().tolist() == [3]
    np.testing.assert_array_equal(biplot.ax_.collections[0].get_facecolor()[0][:3], red[:3])
    arrow, label = biplot.ax_.texts[:2]
    assert arrow.arrow_patch.get_edgecolor() == red
    assert label.get_fontsize() == 5


def test_labels_of_a_biplot_do_not_hide_one_another():
    rng = np.random.default_rng(0)
    # Eight columns that are nearly the same, so that their arrows have nearly the same ends.
    X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 1)) + 0.1 * rng.normal(size=(200, 8))
    frame = pd.DataFrame(X, columns=[f"a long name {j}" for j in range(8)])
    fair = FairPCA(2, criterion="minmax").fit(frame, sensitive_features=["a", "b"] * 100)
    display = BiplotDisplay.from_estimator(fair, frame, sensitive_features=["a", "b"] * 100)
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.texts if text.get_text()]
    assert len(boxes) == 8
    for first, second in itertools.combinations(boxes, 2):
        assert not first.overlaps(second)


def test_labels_that_are_not_harmless_are_drawn_as_they_are():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.array(HOSTILE, dtype=object), 30)
    frame = pd.DataFrame(
        rng.normal(size=(len(groups), len(HOSTILE))) * rng.uniform(1, 3, len(HOSTILE)),
        columns=HOSTILE,
    )
    fair = FairPCA(2, criterion="minmax").fit(frame, sensitive_features=groups)
    for display in (
        DisparityDisplay.from_estimator(fair),
        BiplotDisplay.from_estimator(fair, frame, sensitive_features=groups),
    ):
        assert (drawn(display.figure_)[..., :3] < 128).any()
    names = DisparityDisplay.from_estimator(fair).ax_.get_yticklabels()
    assert any(r"\$x^{2\$" in name.get_text() for name in names)


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def named(*names):
    """Rows of groups that are called so."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30 * len(names), 4)) * [3, 2, 1, 1]
    X[:30] = X[:30, ::-1]
    return X, np.repeat(np.array(names, dtype=object), 30)


def test_groups_that_begin_with_an_underscore_are_in_the_legends():
    X, groups = named("_hidden", "__x", "seen")
    expected = [" __x (30 rows)", " _hidden (30 rows)", "seen (30 rows)"]
    fair = FairPCA(2, criterion="soft").fit(X, sensitive_features=groups)
    assert sorted(legend_of(BiplotDisplay.from_estimator(fair, X, sensitive_features=groups))) == (
        expected
    )
    known = {"sensitive_features": groups, "dimensions": [1]}
    losses = held_out_losses(FairPCA(criterion="minmax"), X, **known)
    assert set(legend_of(HeldOutLossDisplay.from_losses(losses))[2:]) <= set(expected)
    ax = plt.subplots()[1]
    inside = BiplotDisplay.from_estimator(fair, X, sensitive_features=groups, ax=ax)
    assert sorted(legend_of(inside)) == expected


def test_names_are_drawn_by_the_fonts_at_hand_and_turn_nothing_around(monkeypatch):
    mark = "\u200e"
    monkeypatch.setattr(_style, "_shapes", lambda: True)
    assert _style.with_rows("ذكر كبير", 90) == f"{mark}ذكر كبير{mark} (90 rows)"
    assert _style.with_rows("\u202eevil\u2066", 3) == "\\u202eevil\\u2066 (3 rows)"
    # What no font has is its code point, and what joins nothing is left out.
    assert _style.plain_text("女 👩\u200d👧 \x1b[2J") == "\\u5973 \\U0001f469\\U0001f467 \\x1b[2J"
    monkeypatch.setattr(_style, "_shapes", lambda: False)
    assert _style.with_rows("אבג דה", 90) == "הד גבא (90 rows)"
    assert _style.plain_text("sex=אבג and x") == "sex=גבא and x"


@pytest.mark.skipif(not _style._shapes(), reason="needs a matplotlib that shapes text")
def test_arabic_letters_are_joined_and_the_rows_stay_behind_the_name():
    figure, ax = plt.subplots()
    widths = [
        ax.text(0, 0, text).get_window_extent(figure.canvas.get_renderer()).width
        for text in ("ببب", "ب ب ب", "ب\u200cب\u200cب")
    ]
    assert widths[0] < widths[2]  # joined letters are narrower than those that are kept apart
    assert widths[0] < widths[1]


def test_the_colours_are_those_of_the_report():
    css = (files("fairpca.report") / "templates" / "page.css").read_text(encoding="utf-8")
    light = css[: css.index("prefers-color-scheme: dark")]
    for color in (_style.PCA_COLOR, _style.FAIR_COLOR, _style.OWN_COLOR, _style.INK):
        assert color in light
    looks = set(itertools.product(range(7), range(10)))
    assert {(i % len(_style.GROUP_COLORS), i % len(_style.GROUP_MARKERS)) for i in range(70)} == (
        looks
    )


def test_forty_groups_have_a_legend_that_fits():
    X, groups = named(*(f"group {i}" for i in range(40)))
    fitted = PCA(2).fit(X)
    display = BiplotDisplay.from_estimator(fitted, X, sensitive_features=groups, max_points=400)
    assert display.ax_.get_title(loc="left") == (
        "400 of 1,200 rows are drawn: at most 10 of each group, at random"
    )
    assert len(legend_of(display)) == 40
    display.figure_.canvas.draw()
    inside, legend = display.figure_.bbox, display.ax_.get_legend().get_window_extent()
    assert inside.x0 <= legend.x0
    assert legend.x1 <= inside.x1
    assert inside.y0 <= legend.y0
    assert legend.x0 >= display.ax_.get_window_extent().x1  # beside the rows, not over them


def test_a_biplot_of_all_rows_says_nothing_of_a_sample(data):
    X, groups = data
    display = BiplotDisplay.from_estimator(PCA(2).fit(X), X, sensitive_features=groups)
    assert display.ax_.get_title(loc="left") == ""


def test_labels_for_which_there_is_no_room_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 30))
    names = [f"a name that needs much room, number {j}" for j in range(30)]
    fitted, figure = PCA(2).fit(X), plt.figure(figsize=(3, 3))
    display = BiplotDisplay(
        fitted.transform(X), np.zeros(40, int), ["all"], [40], fitted.components_.T, names
    ).plot(n_arrows=30, ax=figure.subplots())
    figure.canvas.draw()
    shown = [text for text in display.ax_.texts if text.get_text() and text.get_visible()]
    assert 5 < len(shown) < 30
    for first, second in itertools.combinations([t.get_window_extent() for t in shown], 2):
        width = min(first.x1, second.x1) - max(first.x0, second.x0)
        height = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert min(width, height) < 1.0


def test_wrong_input_is_refused(data):
    X, groups = data
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    with pytest.raises(NotFittedError):
        DisparityDisplay.from_estimator(FairPCA(criterion="minmax"))
    with refused(ValueError, "two integers", "0 to 1"):
        BiplotDisplay.from_estimator(fair, X, sensitive_features=groups, components=(0, 5))
    one = FairPCA(1, criterion="minmax").fit(X, sensitive_features=groups)
    with refused(ValueError, "two components"):
        BiplotDisplay.from_estimator(one, X, sensitive_features=groups)
    parity = ParityPCA(2).fit(X, sensitive_features=groups)
    with refused(TypeError, "ParityPCA", "table", "audit"):
        DisparityDisplay.from_estimator(parity)
    kernel = KernelFairPCA(2).fit(X, sensitive_features=groups)
    assert DisparityDisplay.from_estimator(kernel).table is kernel.group_table_
    with refused(TypeError, "components_", "KernelFairPCA"):
        BiplotDisplay.from_estimator(kernel, X, sensitive_features=groups)
    with refused(TypeError, "aliases"):
        FrontDisplay([1.0, 0.0], [1.0, 2.0]).plot(line_kw={"c": "red", "color": "blue"})


def test_without_matplotlib_the_extra_is_named(data, monkeypatch):
    X, groups = data
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with refused(ImportError, "fairpca[plot]"):
        DisparityDisplay.from_estimator(fair)

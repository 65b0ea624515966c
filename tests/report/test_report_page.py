"""The report in a real browser."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairpca import FairnessWarning
from fairpca.report import report
from fairpca.report._names import shown_names

from browser import Visit, running_browser
from hostile import HOSTILE
from texts import warned

pytestmark = [pytest.mark.untraced, pytest.mark.long]

CHARTS = ("#measures", "#front", "#dimensions", "#components")
"""Those that the slider moves; it does not move the rows and what is about held-out rows."""


@pytest.fixture(scope="module")
def browser():
    with running_browser() as started:
        yield started


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A report of three groups, in which equality has a price."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1], columns=list("abcdef"))
    X.iloc[:60] = X.iloc[:60, ::-1].to_numpy()
    X.iloc[60:80, :3] *= 2.0
    groups = ["small"] * 60 + ["tiny"] * 20 + ["large"] * 220
    path = tmp_path_factory.mktemp("report") / "report.html"
    report(X, sensitive_features=groups, n_components=2, n_points=9).write_html(path)
    return path


@pytest.mark.contract  # jinja2, a browser
@pytest.mark.parametrize(
    ("width", "scheme"),
    [(1280, "light"), (1000, "dark"), (768, "light"), (400, "dark"), (320, "light")],
)
def test_page_is_quiet_fits_and_is_accessible(browser, path, width, scheme):
    visit = Visit(browser, path, width=width, scheme=scheme)
    visit.assert_quiet()
    inside = "document.documentElement.scrollWidth <= window.innerWidth"
    assert visit.page.evaluate(inside), "the page is wider than the window"
    paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", paper)[:3])) / (3 * 255)
    assert brightness > 0.9 if scheme == "light" else brightness < 0.2
    assert visit.page.locator(".warning h3").first.inner_text() == "Small groups"
    for chart in (*CHARTS, "#glance", "#methods"):
        assert visit.page.locator(chart).is_visible()
        assert visit.page.locator(f"{chart} svg").count() > 0
    assert visit.findings() == []
    visit.assert_quiet()
    visit.context.close()


def test_a_check_that_finds_nothing_would_find_something(browser, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text(
        "<html><body style='color: #999; background: #aaa'><img src='data:,'><input>"
        "<button></button>pale<script>console.log('loud')</script></body></html>"
    )
    visit = Visit(browser, path)
    assert len(visit.findings()) >= 3
    with pytest.raises(AssertionError):
        visit.assert_quiet()
    visit.context.close()


def test_slider_moves_everything_by_keyboard(browser, path):
    visit = Visit(browser, path)
    places = (*CHARTS, "#groups", "#certificate", "#code", "#readout", "#compared")
    before = {place: visit.markup(place) for place in places}
    assert "estimator(8)" in visit.text("#code")
    # Only keys, from the top of the page.
    for _ in range(40):
        visit.page.keyboard.press("Tab")
        if visit.page.evaluate("document.activeElement.id") == "slider":
            break
    else:
        pytest.fail("the slider cannot be reached with the Tab key")
    visit.page.keyboard.press("ArrowLeft")
    after = {place: visit.markup(place) for place in places}
    assert [place for place in places if after[place] == before[place]] == []
    assert "estimator(7)" in visit.text("#code")
    spoken = visit.page.locator("#slider").get_attribute("aria-valuetext")
    assert spoken.startswith("Point 7: largest disparity ")
    visit.page.keyboard.press("Home")
    assert "estimator(0)" in visit.text("#code")
    visit.page.keyboard.press("End")
    assert {place: visit.markup(place) for place in places} == before
    visit.assert_quiet()
    visit.context.close()


def test_the_page_shows_the_numbers_of_the_point(browser, path):
    visit = Visit(browser, path)
    summary = visit.page.evaluate("JSON.parse(document.getElementById('summary').textContent)")
    places = {}
    for point in (3, 0):
        visit.page.locator("#slider").fill(str(point))
        shown = visit.page.locator("#groups [data-show=measure]").all_inner_texts()
        squared = summary["points"][point]["measures"]
        variance = [group["variance"] for group in summary["groups"]]
        expected = 100 * np.divide(squared, variance)
        found = [float(text.removesuffix(" %")) for text in shown]
        np.testing.assert_allclose(found, expected, rtol=5e-3)
        shown = visit.page.locator("#groups [data-show=squared]").all_inner_texts()
        np.testing.assert_allclose([float(text) for text in shown], squared, rtol=1e-3)
        here = visit.page.locator("#here")
        places[point] = [float(here.get_attribute(name)) for name in ("cx", "cy")]
    marks = marks_of(visit)
    levels = [summary["points"][point]["largest"] for point in (3, 0)]
    per_cent = 100 * np.divide(levels, variance[summary["pca"]["worst_group"]])
    np.testing.assert_allclose(marks([places[3][0], places[0][0]]), per_cent, rtol=1e-6)
    assert places[3][1] < places[0][1]  # more loss is higher up
    # Numbers that came with the page and numbers that its script wrote have one form.
    before, after = (f"#groups tbody td:nth-child({place})" for place in (6, 7))
    came, written = (visit.page.locator(cells).all_inner_texts() for cells in (before, after))
    assert came == written
    assert len(came) == 3
    # At the left end the marks of ordinary PCA and of the slider lie on each other.
    for ring, dot in zip(
        visit.page.locator("#measures circle.pca").all()[:3],
        visit.page.locator("#measures circle.chosen-fill").all()[:3],
        strict=True,
    ):
        assert float(ring.get_attribute("cx")) == pytest.approx(float(dot.get_attribute("cx")))
    visit.context.close()


def marks_of(visit):
    """What the places along the front's axis stand for, by its labels."""
    labels = visit.page.locator("#front text[text-anchor=middle]").all()
    known = [(each.get_attribute("x"), each.text_content()) for each in labels]
    x, value = np.array([pair for pair in known if re.fullmatch(r"[\d.]+", pair[1])], float).T
    assert len(x) >= 3
    slope, start = np.polyfit(x, value, 1)
    return lambda places: slope * np.array(places) + start


@pytest.mark.parametrize(
    "measure", ["share_kept", "kept_variance", "share_lost", "relative_disparity"]
)
def test_other_measures(browser, tmp_path, measure):
    """What is kept is shown as it is, and all as per cent of the groups' variances."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1]
    X[:100] = X[:100, ::-1]
    path = tmp_path / "report.html"
    groups = np.repeat(["a", "b"], [100, 200])
    made = report(X, sensitive_features=groups, n_components=2, n_points=5, measure=measure)
    made.write_html(path)
    visit = Visit(browser, path)
    visit.assert_quiet()
    relative = measure != "kept_variance"
    variance = [1.0, 1.0] if relative else made.front.problem.traces
    level_unit = 100 / variance[made.summary["pca"]["worst_group"]]
    before = visit.page.locator("#groups").inner_text()
    for point in (2, 4):
        visit.page.locator("#slider").fill(str(point))
        shown = visit.page.locator("#groups [data-show=measure]").all_inner_texts()
        values = [float(text.removesuffix(" %")) for text in shown]
        expected = 100 * np.divide(made.summary["points"][point]["measures"], variance)
        np.testing.assert_allclose(values, expected, rtol=5e-3)
        here = float(visit.page.locator("#here").get_attribute("cx"))
        level = made.front.unfairness[point]
        assert marks_of(visit)(here) == pytest.approx(level_unit * abs(level), rel=1e-6, abs=1e-6)
        assert made.summary["points"][point]["spoken"] in visit.text("#readout")
        assert visit.text("#compared") == made.summary["points"][point]["compared"]
    # What came with the page is what its script writes at the same point.
    assert visit.page.locator("#groups").inner_text() == before
    assert (
        visit.page.get_by_role("button", name="min-max PCA").get_attribute("aria-pressed") == "true"
    )
    bound = visit.page.locator("#front text", has_text="proven: not").all_text_contents()
    kept = measure in ("kept_variance", "share_kept")
    assert bound == [f"proven: not {'above' if kept else 'below'}"]
    assert visit.findings() == []
    visit.assert_quiet()
    visit.context.close()


def test_full_points_are_proven(browser, tmp_path):
    """In the picture, and at the slider too."""
    X, groups = np.random.default_rng(1).normal(size=(180, 3)), np.repeat(["x", "y", "z"], 60)
    X *= np.repeat([[3, 1, 0.1], [0.1, 3, 1], [1, 0.1, 3]], 60, axis=0)
    made = report(X, sensitive_features=groups, n_components=1, n_points=4)
    first, second, *others = made.front.solutions
    bound = 0.99 * second.certificate.lower_bound
    less = replace(second.certificate, status="bounded", lower_bound=bound)
    ends = (first, replace(second, certificate=less), *others)
    made = replace(made, front=replace(made.front, solutions=ends))
    path = tmp_path / "report.html"
    made.write_html(path)
    visit = Visit(browser, path)
    proven = [point["status"] == "optimal" for point in made.summary["points"]]
    assert set(proven) == {True, False}
    fill = "mark => getComputedStyle(mark).fill"
    paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    marks = visit.page.locator("#front circle[r='3']")
    for point, full in enumerate(proven):
        visit.page.locator("#slider").fill(str(point))
        for mark in (visit.page.locator("#here"), marks.nth(point)):
            assert (mark.evaluate(fill) != paper) == full, point
    visit.assert_quiet()
    visit.context.close()


def test_buttons_and_points_choose(browser, path):
    visit = Visit(browser, path)
    visit.page.get_by_role("button", name="ordinary PCA the least").click()
    assert visit.page.locator("#slider").input_value() == "0"
    pressed = visit.page.locator("button[aria-pressed=true]").all_inner_texts()
    assert pressed[0].startswith("ordinary PCA")
    assert "0 % more loss" in visit.text("#spoken")
    visit.page.locator("#front circle.target").nth(4).click()
    assert visit.page.locator("#slider").input_value() == "4"
    visit.context.close()


def test_printed_page_has_no_controls(browser, path):
    visit = Visit(browser, path, scheme="dark")
    visit.page.emulate_media(media="print")
    assert not visit.page.locator("#slider").is_visible()
    assert visit.page.locator("#measures svg").is_visible()
    paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    # The table is as wide as the paper allows, not wider.
    visit.page.set_viewport_size({"width": 700, "height": 900})
    visit.page.emulate_media(media="print")
    assert visit.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert visit.page.locator("#groups").bounding_box()["width"] < 700
    assert len(visit.page.pdf()) > 10_000
    visit.context.close()


@pytest.mark.contract
@pytest.mark.parametrize("labels", [HOSTILE[:4], HOSTILE[4:]])
def test_hostile_names_are_only_text(browser, tmp_path, labels):
    rng = np.random.default_rng(1)
    d = len(HOSTILE)
    X = rng.normal(size=(800, d)) * np.linspace(3.0, 1.0, d)
    X[:400] = X[:400, ::-1]
    X = pd.DataFrame(X, columns=list(HOSTILE))
    made = report(
        X,
        sensitive_features=np.repeat(np.array(labels, dtype=object), 200),
        n_components=2,
        n_points=3,
        n_resamples=10,
        title="</title><script>alert('title')</script>",
    )
    made = replace(made, code="</code></pre><script>alert('code')</script> {point}")
    path = tmp_path / "hostile.html"
    made.write_html(path)
    visit = Visit(browser, path)
    visit.assert_quiet()
    names = visit.page.locator("#groups tbody th").all_inner_texts()
    assert sorted(names) == sorted(shown_names(labels))
    assert visit.page.title() == "</title><script>alert('title')</script>"
    assert visit.text("h1") == "</title><script>alert('title')</script>"
    assert visit.text("#code") == "</code></pre><script>alert('code')</script> 0"
    assert visit.page.locator("script").count() == 2
    visit.page.locator("#slider").fill("2")
    assert visit.page.locator("script").count() == 2
    assert visit.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    inside = "texts => texts.every(text => text.getBoundingClientRect().left >= 0)"
    assert visit.page.locator("#measures text").evaluate_all(inside)
    assert visit.findings() == []
    visit.assert_quiet()
    visit.context.close()


def test_notebook_frame_shows_the_page(browser, tmp_path):
    X = np.random.default_rng(2).normal(size=(60, 3))
    made = report(X, sensitive_features=["a", "b"] * 30, n_components=1, n_points=3)
    outside = tmp_path / "notebook.html"
    outside.write_text(f"<!DOCTYPE html><title>n</title>{made._repr_html_()}", encoding="utf-8")
    visit = Visit(browser, outside)
    frame = visit.page.frame_locator("iframe")
    lead = frame.locator("#finding p").first.inner_text()
    assert lead.replace("\u00a0", " ") == made.summary["headline"]
    assert frame.locator("#glance svg").count() == 1
    assert visit.said == []
    visit.context.close()


def test_one_group_and_many_groups(browser, tmp_path):
    X = np.tile(np.random.default_rng(3).normal(size=(11, 4)), (45, 1))
    with warned(FairnessWarning, "one group"):
        alone = report(X, sensitive_features=["all"] * 495, n_components=2)
    many = report(X, sensitive_features=np.arange(495) // 11, n_components=2)
    for made in (alone, many):
        path = tmp_path / "page.html"
        made.write_html(path)
        visit = Visit(browser, path)
        visit.assert_quiet()
        assert visit.page.locator("#measures svg").is_visible()
        assert visit.page.locator("#groups tbody tr").count() == len(made.summary["groups"])
        assert visit.findings() == []
        visit.context.close()
    assert many.summary["groups"][44]["rows"] == 11

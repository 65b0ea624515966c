"""Reading, sorting, choosing and taking away in a real browser, and reports of any data."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

from fairpca.report import report
from fairpca.report._names import percent

from browser import Visit, running_browser
from hostile import HOSTILE

pytestmark = [pytest.mark.untraced, pytest.mark.long]

SHEET = 1009  # pixels of A4 between margins of 15 mm


@pytest.fixture(scope="module")
def browser():
    with running_browser() as started:
        yield started


def rows_in_groups(names, n=40, d=8, scale=1.0, columns=None, seed=0):
    # Two kinds of groups, so that no search is needed, however many there are.
    rows = np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(3.0, 1.0, d)
    X = np.vstack([1.03**i * rows[:, :: (-1) ** i] for i in range(len(names))])
    columns = columns or [f"column {j}" for j in range(d)]
    return pd.DataFrame(scale * X, columns=columns), np.repeat(np.array(names, dtype=object), n)


def made(X, groups, **choices):
    groups = pd.Series(groups, name="town")
    given = {"n_components": 2, "n_points": 3, "n_resamples": 10, "data_name": "folk.csv"}
    return report(X, sensitive_features=groups, **given | choices)


@pytest.fixture(scope="module")
def visit(browser, tmp_path_factory):
    """A page of five groups, one of them with a name that a spreadsheet would compute."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    X, groups = rows_in_groups(["a", "=1+1", "c", 'd "x", y', "e"], 60)
    made(X, groups, n_points=5).write_html(path)
    opened = Visit(browser, path, width=1280)
    yield opened
    opened.assert_quiet()
    opened.context.close()


def data_of(visit):
    return visit.page.evaluate("JSON.parse(document.getElementById('summary').textContent)")


def test_a_picture_is_above_the_fold_at_every_width(visit):
    for width in (1280, 1000):
        visit.page.set_viewport_size({"width": width, "height": 800})
        box = visit.page.locator("#glance").bounding_box()
        assert box["y"] + box["height"] < 800
    visit.page.set_viewport_size({"width": 1280, "height": 800})


def test_values_are_read_with_the_pointer_and_by_keyboard(visit):
    page, summary = visit.page, data_of(visit)
    tip = page.locator(".tip")
    for chart in ("#glance", "#measures", "#front", "#methods", "#dimensions"):
        page.locator(chart).focus()
        page.keyboard.press("ArrowRight")
        assert tip.is_visible()
        first = tip.inner_text()
        assert page.locator("#spoken").inner_text() == first
        page.keyboard.press("End")
        assert tip.inner_text() != first
        page.keyboard.press("Home")
        assert tip.inner_text() == first
        page.keyboard.press("Escape")
        assert not tip.is_visible()
    worst = summary["order"][0]
    page.locator("#glance").focus()
    page.keyboard.press("ArrowRight")
    name = summary["groups"][worst]["name"]
    before = summary["comparison"]["methods"][0]
    lost, low, high = (f"{100 * before[which][worst]:.1f} %" for which in ("lost", "low", "high"))
    interval = f"(95 % interval {low} to {high})"
    assert tip.inner_text() == f"{name}, 60 rows: loses {lost} {interval} with ordinary PCA"
    page.keyboard.press("Tab")
    assert not tip.is_visible()
    page.locator("#measures").scroll_into_view_if_needed()
    mark = page.locator("#measures circle.chosen-fill").first.bounding_box()
    page.mouse.move(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
    assert tip.inner_text().startswith(f"{name}, 60 rows: disparity ")
    page.mouse.move(5, 5)
    assert not tip.is_visible()


def test_the_table_sorts_by_keyboard_too(visit):
    page, summary = visit.page, data_of(visit)
    names = "#groups tbody th"
    before = page.locator(names).all_inner_texts()
    head = page.locator("#groups th[data-sort=before]")
    head.locator("button").focus()
    page.keyboard.press("Enter")
    shares = [
        100 * measure / group["variance"]
        for group, measure in zip(summary["groups"], summary["pca"]["measures"], strict=True)
    ]
    expected = [summary["groups"][i] for i in np.argsort(np.negative(shares), kind="stable")]
    assert page.locator(names).all_inner_texts() == [group["name"] for group in expected]
    assert head.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert page.locator(names).all_inner_texts() == [group["name"] for group in expected[::-1]]
    assert head.get_attribute("aria-sort") == "ascending"
    # The numbers of another point stay with their groups.
    page.locator("#slider").fill("2")
    shown = dict(
        zip(
            page.locator(names).all_inner_texts(),
            page.locator("#groups [data-show=measure]").all_inner_texts(),
            strict=True,
        )
    )
    for group, value in zip(summary["groups"], summary["points"][2]["measures"], strict=True):
        share = 100 * value / group["variance"]
        assert float(shown[group["name"]].removesuffix(" %")) == pytest.approx(share, rel=5e-3)
    page.locator("#groups th[data-sort=group] button").click()
    assert page.locator("#groups th[aria-sort]").count() == 1
    assert sorted(page.locator(names).all_inner_texts()) == sorted(before)
    page.locator("#slider").fill("4")


def test_units_and_groups_can_be_chosen(visit):
    page, summary = visit.page, data_of(visit)
    worst = summary["order"][0]
    group = summary["groups"][worst]
    lost = [
        100 * each["losses"][worst] / group["variance"]
        for each in (summary["pca"], summary["points"][-1])
    ]
    page.locator("#slider").fill("4")
    page.get_by_label("share of the variance that is lost").check()
    words = page.locator("#measures").get_attribute("aria-label")
    assert (
        f"{group['name']}: {lost[0]:.1f} % with ordinary PCA, {lost[1]:.1f} % at the slider"
        in words
    )
    assert page.locator("#measures text", has_text="% of the group's variance that is lost").count()
    assert page.locator("#dimensions").get_attribute("aria-label").startswith("share lost of each")
    page.get_by_label("disparity, in squared units").check()
    words = page.locator("#measures").get_attribute("aria-label")
    assert f"{group['name']}: {summary['pca']['measures'][worst]:.4g} with ordinary PCA" in words
    page.get_by_label("disparity", exact=True).check()
    assert page.locator(".chart .strong").count() == 0
    page.locator("#emphasis-rows").select_option("c")
    assert (
        page.locator("#emphasis-dimensions").input_value()
        == page.locator("#emphasis-rows").input_value()
    )
    assert page.locator("#dimensions .strong").count() >= 1
    assert page.locator("#rows .strong").count() == 2
    page.locator("#emphasis-rows").select_option("")


def test_links_lead_to_sections_and_presets_say_what_they_are(visit):
    page, summary = visit.page, data_of(visit)
    for link in page.locator("nav a").all():
        assert page.locator(f"h2{link.get_attribute('href')}").count() == 1
    texts = page.locator("button[data-point]").all_inner_texts()
    names = ["least_loss", "one_percent", "knee", "fairest"]
    points = [summary["choices"][name] for name in names]
    # A point is offered once: here at most 1 % more loss leads to the fairest.
    assert points[1] == points[3]
    names.remove("one_percent")
    for text, name in zip(texts, names, strict=True):
        point = summary["points"][summary["choices"][name]]
        share = point["unfairness"] / summary["groups"][point["worst_group"]]["variance"]
        worst = summary["groups"][point["worst_group"]]["name"]
        assert f"largest disparity {percent(share)} of the variance of “{worst}”, " in text


def test_code_and_numbers_can_be_taken_away(visit):
    page, summary = visit.page, data_of(visit)
    page.locator("#copy").click()
    page.locator("#copied:not(:empty)").wait_for()
    assert visit.text("#copied").startswith(("Copied", "Selected"))
    taken = {}
    for kind in ("json", "csv"):
        with page.expect_download() as waiting:
            page.locator(f"[data-download={kind}]").click()
        assert waiting.value.suggested_filename == f"fairpca-report.{kind}"
        taken[kind] = waiting.value.path().read_bytes().decode("utf-8-sig")
    assert json.loads(taken["json"]) == summary
    table = list(csv.DictReader(taken["csv"].splitlines()))
    assert len(table) == 6 * 5  # ordinary PCA and five points, of five groups
    assert {row["group"] for row in table} == {"a", "'=1+1", "c", 'd "x", y', "e"}
    last = [float(row["loss"]) for row in table if row["point"] == "4"]
    assert last == summary["points"][4]["losses"]
    visit.requested[:] = [url for url in visit.requested if not url.startswith("blob:")]


def test_a_notebook_offers_no_files(browser, tmp_path):
    X, groups = rows_in_groups(["a", "b"])
    outside = tmp_path / "notebook.html"
    frame = made(X, groups)._repr_html_()
    outside.write_text(f"<!DOCTYPE html><title>n</title>{frame}", encoding="utf-8")
    visit = Visit(browser, outside)
    inside = visit.page.frame_locator("iframe")
    inside.locator("#copy").click()
    inside.locator("#copied", has_text="Selected").or_(
        inside.locator("#copied", has_text="Copied")
    ).wait_for()
    assert not inside.locator("[data-download=json]").is_visible()
    assert [text for text in visit.said if "lipboard" not in text] == []
    visit.context.close()


LONG = "The ministry of the interior and of everything else, "


def any_data():
    """Reports of data that pages have broken on; of what has nothing to do with each other, two in
    one, for a browser takes seconds for each page."""
    X, groups = rows_in_groups(["a", "b"])
    yield "twelve", made(*rows_in_groups([f"group {i}" for i in range(12)]))
    yield "forty", made(*rows_in_groups([f"group {i}" for i in range(40)], 30))
    tiny = groups.copy()
    tiny[:3] = "three"
    small = 1e-9 * X * np.where(tiny == "three", 4.0, 1.0)[:, None]
    yield "three rows, and 1e-9", made(small, tiny)
    rng = np.random.default_rng(0)
    flat = np.vstack([rng.normal(size=(60, 2)) * size for size in ([3, 0.1], [0.1, 3], [6, 0.1])])
    yield (
        "infeasible",
        made(flat, np.repeat(["x", "y", "z"], 60), n_components=1),
    )
    yield "500 columns", made(*rows_in_groups(["a", "b"], 60, 500))
    columns = list(HOSTILE)
    yield (
        "hostile",
        made(*rows_in_groups(HOSTILE, columns=columns), title=HOSTILE[0], data_name=HOSTILE[3]),
    )
    arabic = ["ذكر من المدينة", "أنثى من القرية", "שלום עולם"]
    yield "right to left", made(*rows_in_groups(arabic), data_name="سكان.csv")
    yield "zeros", made(0.0 * X, groups)
    long = [LONG + end for end in ("north", "south", "east")]
    yield "long names, and 1e9", made(*rows_in_groups(long, scale=1e9))


@pytest.mark.filterwarnings("ignore::fairpca.FairnessWarning")
def test_reports_of_any_data(browser, tmp_path):
    """Quiet, accessible and within the window at every width; each chart on one sheet of paper."""
    for i, (name, found) in enumerate(any_data()):
        path = tmp_path / "page.html"
        found.write_html(path)
        visit = Visit(browser, path, width=1280, scheme=("light", "dark")[i % 2])
        page = visit.page
        for width in (1280, 1000, 768, 400, 320):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
            outside = page.locator("main svg text").evaluate_all(
                "(texts, width) => texts.filter(text => { const box = text.getBoundingClientRect();"
                " return box.left < -1 || box.right > width + 1; }).map(text => text.textContent)",
                width,
            )
            assert outside == [], (name, width)
            labels = page.locator("#glance text[text-anchor=end], #glance text:not([text-anchor])")
            assert "NaN" not in page.locator("main").inner_html(), name
            assert labels.count() > 0, name
        assert visit.findings() == [], name
        # The bars of components can be seen, however many columns there are.
        if name != "zeros":
            bars = page.locator("#components tbody tr:first-child rect").evaluate_all(
                "bars => bars.map(bar => bar.getBoundingClientRect().width)"
            )
            assert min(bars) > 20, name
        page.set_viewport_size({"width": 680, "height": 1000})
        page.emulate_media(media="print")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        kept = page.locator(".keep, figure, .warning, .component, details.words").evaluate_all(
            "parts => parts.map(part => part.getBoundingClientRect().height)"
        )
        assert max(kept) <= SHEET, name
        assert not page.locator("nav").is_visible()
        visit.assert_quiet()
        visit.context.close()

"""The documentation's site as `make docs` has built it: links, search, and pages in a browser."""

import os
import re
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest

import fairpca
import fairpca.comparators
import fairpca.datasets
import fairpca.metrics
import fairpca.plotting
import fairpca.sources
from tools import pages as printed_pages

from browser import Visit, running_browser

pytestmark = pytest.mark.untraced

DOCS = Path(__file__).parents[2] / "docs"
STUDIES = DOCS.parent / "studies"
SITE = DOCS / "_build" / "html"
REQUIRED = "FAIRPCA_REQUIRE_SITE"

PAGES = ("index.html", "guide/index.html", "gallery/index.html", "api/generated/fairpca.audit.html")
"""One of each kind, to be opened in both widths and both themes."""

OTHERS = ("api/index.html", "studies/criteria.html", "exact_solver.html", "search.html")
"""To be opened once, with the pages of the guide and an example."""


@pytest.fixture(scope="module")
def site() -> Path:
    if not (SITE / "index.html").exists():
        said = "no site in docs/_build/html, which `make docs` builds: it was not opened"
        if os.environ.get(REQUIRED):
            pytest.fail(f"{said}, and {REQUIRED} is set")
        pytest.skip(said)
    return SITE


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *said: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Of a local server of files, with a slash at its end."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=site)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    with running_browser() as started:
        yield started


class Page(HTMLParser):
    """What a page links to, what it loads, and the names of its places."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value for name, value in attributes if value}
        self.places |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.add(named["href"])
        elif tag == "link" and named.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.add(named["href"])
        elif "src" in named:
            self.loaded.add(named["src"])


def broken_links(site: Path) -> list[str]:
    """What leads nowhere, apart from the theme's own templates in _static."""
    files = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    broken = []
    for path, page in pages.items():
        for link in sorted(page.links | page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    broken.append(f"{path.relative_to(site)} loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.is_file() or (
                place and target in pages and place not in pages[target].places
            ):
                broken.append(f"{path.relative_to(site)} links to {link}")
    return broken


def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    assert broken_links(site.resolve()) == []


def test_broken_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="here">A</h1><a href="#here"></a><a href="#gone"></a><a href="b.html"></a>'
        '<a href="https://example.org"></a><script src="https://example.org/s.js"></script>'
    )
    assert broken_links(tmp_path) == [
        "a.html links to #gone",
        "a.html links to b.html",
        "a.html loads https://example.org/s.js",
    ]


def test_every_page_of_the_repository_is_one_of_the_site(site):
    written = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")}
    written |= {path.relative_to(DOCS.parent).with_suffix("") for path in STUDIES.rglob("*.md")}
    assert [str(page) for page in written if not (site / f"{page}.html").exists()] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_pages_are_quiet_fit_and_are_accessible(browser, site, address, width, scheme):
    pages = PAGES
    if (width, scheme) == (400, "dark"):
        pages += OTHERS
        written = [*site.glob("guide/*.html"), *sorted(site.glob("gallery/plot_*.html"))[:1]]
        pages += tuple(path.relative_to(site).as_posix() for path in written)
    for page in dict.fromkeys(pages):
        visit = Visit(browser, f"{address}{page}", width=width, scheme=scheme)
        assert [said for said in visit.said if not said.startswith("[PST]")] == [], page
        assert [asked for asked in visit.requested if not asked.startswith(address)] == [], page
        inside = "document.documentElement.scrollWidth <= window.innerWidth"
        assert visit.page.evaluate(inside), f"{page} is wider than the window"
        paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", paper)[:3])) / (3 * 255)
        assert brightness > 0.9 if scheme == "light" else brightness < 0.2
        assert visit.findings() == [], page
        visit.context.close()


@pytest.mark.parametrize(
    ("words", "page"),
    [("soft maximum temperature", "new_data.html"), ("audit", "fairpca.audit.html")],
)
def test_search_finds_pages(browser, address, words, page):
    visit = Visit(browser, f"{address}index.html")
    visit.page.keyboard.press("Control+k")
    visit.page.keyboard.type(words)
    visit.page.keyboard.press("Enter")
    visit.page.locator(f'#search-results a[href*="{page}"]').first.wait_for()
    assert "search.html" in visit.page.url
    visit.context.close()


@pytest.mark.parametrize("name", ["", "comparators", "datasets", "metrics", "plotting", "sources"])
def test_the_reference_has_every_public_name(name):
    module = getattr(fairpca, name) if name else fairpca
    listed = re.findall(r"^   (fairpca\.[\w.]+)$", (DOCS / "api" / "index.md").read_text(), re.M)
    assert {f"{module.__name__}.{public}" for public in module.__all__} <= set(listed)
    assert len(listed) == len(set(listed))


def test_every_page_with_code_is_run_by_a_test():
    """Those of the guide are, all together."""
    tests = "".join(path.read_text("utf-8") for path in DOCS.parent.glob("tests/**/test_*.py"))
    written = [*DOCS.glob("*.md"), *STUDIES.rglob("*.md")]
    pages = [path for path in written if "```python" in path.read_text("utf-8")]
    names = [page.name for page in pages if page.name not in printed_pages.PAGES]
    assert [name for name in names if f'"{name}"' not in tests] == []

"""A real browser for tests of pages; where there is none they say so, or fail if so asked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

REQUIRED = "FAIRPCA_REQUIRE_BROWSER"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def running_browser() -> Iterator[Any]:
    """Start Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, _NAMES)), None)
        if found is None and Path(playwright.chromium.executable_path).exists():
            found = playwright.chromium.executable_path
        if found is None:
            said = f"no browser found, tried {', '.join(_NAMES)}: the page was not opened"
            if os.environ.get(REQUIRED):
                pytest.fail(f"{said}, and {REQUIRED} is set")
            pytest.skip(said)
        browser = playwright.chromium.launch(executable_path=found, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page that was opened, and all that it did."""

    def __init__(
        self, browser: Any, place: Path | str, *, width: int = 1000, scheme: str = "light"
    ) -> None:
        """Open a file, without any network, or an address."""
        self.context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme=scheme,
            offline=isinstance(place, Path),
        )
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.requested: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.on("dialog", self._dismiss)
        self.address = place.as_uri() if isinstance(place, Path) else place
        self.page.goto(self.address)

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def markup(self, selector: str) -> str:
        return self.page.locator(selector).evaluate("element => element.innerHTML")

    def findings(self) -> list[str]:
        """What axe finds, be it serious or not; `Axe` brings its own script."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [f"{each['id']}: {[node['html'][:200] for node in each['nodes']]}" for each in found]

    def assert_quiet(self) -> None:
        """Nothing on the console, nothing asked of any network, no dialog."""
        assert self.said == []
        assert self.requested == [self.address]
        assert self.dialogs == []

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from front.mcp.site import HttpServer, Site
from front.review.browser import BROWSER, WAIT_MILLISECONDS


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "root").mkdir()
    return Site(root=tmp_path / "root", state=tmp_path / "state")


@pytest.fixture
def server(site: Site) -> Iterator[HttpServer]:
    with site.serve("serve", "--port", "0", "--mode", "default") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of somebody who was never here."""
    with browser.new_context() as person:
        page = person.new_page()
        page.set_default_timeout(WAIT_MILLISECONDS)
        yield page

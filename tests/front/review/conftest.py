from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

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


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(WAIT_MILLISECONDS)
        yield page
        browser.close()

"""The review page of a real server, in a real browser."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Dialog, Page, expect, sync_playwright

from front.mcp.site import HttpServer, Site
from spec.marks import requirement

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


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
        yield browser.new_page()
        browser.close()


class Agent(threading.Thread):
    """Calls one tool, and waits for its answer as long as it takes."""

    def __init__(self, server: HttpServer, tool: str, **arguments: Any) -> None:
        super().__init__(daemon=True)
        self._server, self._call = server, {"name": tool, "arguments": arguments}
        self.result: dict[str, Any] = {}
        self.start()

    def run(self) -> None:
        headers = {"Authorization": f"Bearer {self._server.token}"}
        self.result = self._server.rpc("tools/call", self._call, headers=headers)[2]["result"]

    def text(self) -> str:
        self.join(30)
        assert self.result, "the call is still waiting"
        return self.result["content"][0]["text"]


def sign_in(page: Page, server: HttpServer) -> None:
    page.goto(f"http://127.0.0.1:{server.port}/#{server.token}")
    expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()


@needs_browser
@requirement("front:serve:page", "claude:permission:channels")
def test_a_change_is_asked_about_allowed_looked_at_and_undone(site: Site, server: HttpServer, page: Page) -> None:
    sign_in(page, server)
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert page.url.endswith("/"), "the token does not stay in the address"

    agent = Agent(server, "create_file", path="notes.txt", content="one\ntwo\n", reason="for the demo")
    question = page.locator("article.question")
    expect(question).to_contain_text("notes.txt")
    expect(question).to_contain_text("for the demo")
    expect(question.locator(".added").nth(1)).to_have_text("+one")
    assert not (site.root / "notes.txt").exists()

    question.get_by_role("button", name="Allow", exact=True).click()
    assert "notes.txt" in agent.text()
    assert site.get("notes.txt") == b"one\ntwo\n"

    page.get_by_role("link", name="notes.txt").click()
    expect(page.locator("pre.diff")).to_contain_text("+two")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_have_text("Undone.")
    assert not (site.root / "notes.txt").exists()
    assert site.log("notes.txt") == [("create", True), ("undo", True)]


@needs_browser
@requirement("claude:permission:user_modified")
def test_a_person_may_change_the_content_first(site: Site, server: HttpServer, page: Page) -> None:
    sign_in(page, server)
    agent = Agent(server, "create_file", path="a.txt", content="the agent's\n")

    page.get_by_text("Change it first").click()
    box = page.locator("textarea")
    expect(box).to_have_value("the agent's\n")
    box.fill("the person's\nown\n")
    page.get_by_role("button", name="Allow", exact=True).click()

    assert "changed the content first" in agent.text()
    assert site.get("a.txt") == b"the person's\nown\n"


@needs_browser
def test_a_refusal_and_its_reason_reach_the_agent(site: Site, server: HttpServer, page: Page) -> None:
    site.put("a.txt", "old\n")
    sign_in(page, server)
    agent = Agent(server, "create_file", path="b.txt", content="x")

    page.get_by_label("What the agent should hear").fill("Write tests first.")
    page.get_by_role("button", name="Refuse").click()

    assert "Write tests first" in agent.text()
    assert agent.result["isError"]
    assert not (site.root / "b.txt").exists()


@needs_browser
def test_what_agents_write_is_shown_and_never_run(site: Site, server: HttpServer, page: Page) -> None:
    alarms = list[str]()

    def alarm(dialog: Dialog) -> None:
        alarms.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", alarm)
    sign_in(page, server)
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    agent = Agent(server, "create_file", path="<b>.txt", content=f"</textarea>{evil}\n", reason=evil)

    expect(page.locator("article.question")).to_contain_text(evil)
    page.get_by_role("button", name="Allow", exact=True).click()
    agent.text()
    page.get_by_role("link", name="<b>.txt").click()
    expect(page.locator("pre.diff")).to_contain_text(evil)
    assert alarms == []
    assert site.get("<b>.txt") == f"</textarea>{evil}\n".encode()


@requirement("front:serve:page")
def test_the_page_is_closed_without_the_token(server: HttpServer) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://127.0.0.1:{server.port}"}

    status, headers, body = server.send("GET", "/")
    assert (status, b"Sign in" in body) == (401, True)
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert server.send("POST", "/review/sign-in", body=b"token=wrong", headers=form)[0] == 401
    for path in ("/review/state", "/review/change/x"):
        assert server.send("GET", path)[0] == 401
    for path in ("/review/change/x/undo", "/review/question/x"):
        assert server.send("POST", path, headers=form)[0] == 401


def test_a_change_must_come_from_the_page_itself(server: HttpServer) -> None:
    origin = {"Origin": f"http://127.0.0.1:{server.port}"}
    form = {"Content-Type": "application/x-www-form-urlencoded", **origin}
    _, headers, _ = server.send("POST", "/review/sign-in", body=f"token={server.token}".encode(), headers=form)
    cookie = {"Cookie": headers["set-cookie"].partition(";")[0]}

    assert "httponly" in headers["set-cookie"].casefold()
    assert "samesite=strict" in headers["set-cookie"].casefold()
    assert server.send("GET", "/", headers=cookie)[0] == 200
    assert server.send("POST", "/review/change/x/undo", headers=cookie)[0] == 403
    foreign = {**cookie, "Origin": "http://evil.example"}
    assert server.send("POST", "/review/change/x/undo", headers=foreign)[0] == 403
    assert server.send("GET", "/", headers={**cookie, "Host": "evil.example"})[0] == 421
    assert server.send("POST", "/review/change/x/undo", headers={**cookie, **origin})[0] == 303
    assert server.send("POST", "/review/change/x/burn", headers={**cookie, **origin})[0] == 404

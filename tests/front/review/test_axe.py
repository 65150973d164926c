"""axe-core looks at every page, light and dark."""

import pytest
from playwright.sync_api import Page, expect

from front.mcp.site import HttpServer, Site
from front.review.browser import AXE, needs_axe, needs_browser
from front.review.test_page import Agent, sign_in
from front.review.test_parts import LINES, OLD
from front.review.test_truth import open_questions
from spec.marks import requirement
from surehold.errors import AlreadyExists
from waiting import wait_until

_RUN = (
    "axe.run().then((found) => found.violations.map((one) => `${one.id}: ${one.nodes.map((n) => n.html).join(' ')}`))"
)


def check(page: Page, what: str) -> list[str]:
    """Return what axe-core finds on the page that is open, in both colour schemes."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = list[str]()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found += (f"{what}, {scheme}: {one[:400]}" for one in page.evaluate(_RUN))
    return found


@needs_browser
@needs_axe
@requirement("approval:page:axe")
def test_axe_finds_nothing_on_any_page(site: Site, server: HttpServer, page: Page) -> None:
    with site.open() as workspace:
        session = workspace.session(agent="demo")
        with session.turn("Change many things"):
            session.create("src/a.py", 'def f():\n    """Text."""\n    return 1  # one\n')
            session.edit("src/a.py", ("return 1", "return 'two'"), reason="because")
            session.create("a.txt", OLD)
            session.edit("a.txt", (LINES[4], "LINE 5\n"), (LINES[35], "line 36\nmore\n"))
            session.create("gone.txt", "x\n")
            session.delete("gone.txt")
            with pytest.raises(AlreadyExists):
                session.create("a.txt", "x")
        changes = {entry.change.path: entry.change_id for entry in workspace.history.log() if entry.ok}
        refused = next(entry.change_id for entry in workspace.history.log() if not entry.ok)
        workspace.history.undo(session.create("b.txt", "x").change_id)
    base = f"http://127.0.0.1:{server.port}"
    Agent(server, "create_file", path="long.txt", content=("x" * 1000 + "\n") * 70)
    Agent(server, "create_file", path="new.py", content="import os\n")
    names = wait_until(lambda: found if len(found := open_questions(server)) == 2 else [], "not both ask")
    page.goto(base)
    found = check(page, "sign in")
    sign_in(page, server)
    expect(page.locator("article.question")).to_have_count(2)
    expect(page.get_by_role("button", name="Refuse").last).to_be_enabled()
    found += check(page, "overview")
    page.keyboard.press("?")
    found += check(page, "keys")
    for path in (
        *(f"/review/question/{name}?page=1" for name in names),
        *(f"/review/session/{session.id}{more}" for more in ("", "?view=split")),
        *(f"/review/change/{change}" for change in (*changes.values(), refused)),
        *(
            "/review/sessions",
            "/review/changes",
            "/review/changes?text=nothing",
            "/review/trash",
            "/review/file?path=a.txt",
        ),
        "/review/change/none",
    ):
        page.goto(f"{base}{path}")
        found += check(page, path)
    assert "\n".join(found) == ""

"""The review page of a real server, in a real browser."""

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.sync_api import Dialog, Page, expect

from front.mcp.site import HttpServer, Site, sha_of, text_of
from front.review.browser import needs_browser
from spec.marks import requirement
from surehold.text.rewrite import WriteText
from surehold.workspace.proposal import Absent, Proposal
from waiting import HANG_SECONDS, wait_until


class Agent(threading.Thread):
    """Calls one tool, and waits for its answer as long as it takes."""

    def __init__(self, server: HttpServer, tool: str, **arguments: Any) -> None:
        super().__init__(daemon=True)
        self._server, self._call = server, {"name": tool, "arguments": arguments}
        self.result: dict[str, Any] = {}
        self.start()

    def run(self) -> None:
        headers = {"Authorization": f"Bearer {self._server.token}"}
        self.result = self._server.rpc("tools/call", self._call, headers=headers, seconds=None)[2]["result"]

    def text(self) -> str:
        self.join(HANG_SECONDS)
        assert self.result, "the call is still waiting"
        return self.result["content"][0]["text"]


def sign_in(page: Page, server: HttpServer) -> None:
    page.goto(f"http://127.0.0.1:{server.port}/#{server.token}")
    expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()


def cookie_of(server: HttpServer) -> dict[str, str]:
    """Sign in without a browser."""
    own = {"Origin": f"http://127.0.0.1:{server.port}"}
    _, headers, _ = server.send("POST", "/review/sign-in", body=f"token={server.token}".encode(), headers=own)
    return {"Cookie": headers["set-cookie"].partition(";")[0]}


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
    expect(question.locator(".header").nth(1)).to_have_text("+++ notes.txt")
    expect(question.locator(".added").nth(0)).to_have_text("+one")
    assert not (site.root / "notes.txt").exists()

    question.get_by_role("button", name="Allow", exact=True).click()
    assert "notes.txt" in agent.text()
    assert site.get("notes.txt") == b"one\ntwo\n"

    page.get_by_role("link", name="notes.txt").click()
    expect(page.locator(".diff")).to_contain_text("+two")
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

    page.get_by_label("Note to the agent").fill("Write tests first.")
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
    expect(page.locator(".diff")).to_contain_text(evil)
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


@needs_browser
def test_everything_that_would_happen_is_said_in_the_question(site: Site, server: HttpServer, page: Page) -> None:
    site.put("a.txt", "old\n")
    site.put("run.sh", "x\n")
    sign_in(page, server)
    move = Agent(server, "move_file", fromPath="a.txt", toPath="b/<c>.txt", expectedSha256=sha_of(server, "a.txt"))
    question = page.locator("article.question")

    expect(question.get_by_role("heading")).to_have_text("raw-http wants to move a.txt to b/<c>.txt")
    page.get_by_role("button", name="Refuse").click()
    move.text()

    patch = (
        "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
        "diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n"
    )
    modes = Agent(server, "apply_patch", patch=patch)
    expect(question.get_by_role("listitem")).to_have_text(["change run.sh, with mode 0755", "create n, with mode 0755"])
    page.get_by_role("button", name="Allow", exact=True).click()
    assert "n" in modes.text()
    assert (site.root / "n").stat().st_mode & 0o777 == 0o755

    Agent(server, "create_file", path="long.txt", content="".join(f"line {i}\n" for i in range(20_000)))
    expect(question).to_contain_text("1 file, +20,000 −0 lines, 0 → 208,890 bytes.")
    expect(question).to_contain_text("lines of this change are not shown whole here.")


@needs_browser
def test_a_question_is_not_answered_by_a_click_that_came_too_early(server: HttpServer, page: Page) -> None:
    page.clock.install()
    page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))  # from here on the test says how time passes
    agents = [Agent(server, "create_file", path=name, content="x") for name in "12"]
    cookie = cookie_of(server)
    wait_until(lambda: len(server.send("GET", "/review/state", headers=cookie)[2].split()) == 3, "not both ask")
    sign_in(page, server)
    questions, allow = page.locator("article.question"), page.get_by_role("button", name="Allow", exact=True)
    expect(questions).to_have_count(2)
    expect(allow.first).to_be_disabled()

    page.clock.run_for(600)
    allow.first.click()
    page.wait_for_selector(".notice")
    expect(questions).to_have_count(1)
    expect(allow).to_be_disabled()
    allow.click(force=True)

    page.clock.run_for(600)
    page.get_by_role("button", name="Refuse").click()
    assert all(agent.text() for agent in agents)
    assert sorted(agent.result["isError"] for agent in agents) == [False, True], "the early click answered"


@needs_browser
def test_the_token_leaves_the_address_also_of_somebody_who_is_signed_in(server: HttpServer, page: Page) -> None:
    for _ in range(2):
        sign_in(page, server)
        page.wait_for_url(f"http://127.0.0.1:{server.port}/")
        page.goto("about:blank")


@needs_browser
def test_a_page_on_another_port_keeps_its_own_sign_in(site: Site, server: HttpServer, page: Page) -> None:
    sign_in(page, server)
    with site.serve("serve", "--port", "0") as other:
        sign_in(page, other)
        page.goto(f"http://127.0.0.1:{server.port}/")
        expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()


def test_a_page_that_may_call_the_server_is_not_the_review_page(site: Site) -> None:
    friend = "http://localhost:6274"
    with site.serve("serve", "--port", "0", "--allow-origin", friend) as server:
        own = {"Origin": f"http://127.0.0.1:{server.port}"}
        cookie = cookie_of(server)

        assert server.send("POST", "/review/change/x/undo", headers={**cookie, "Origin": friend})[0] == 403
        assert server.send("POST", "/review/change/x/undo", headers={**cookie, **own})[0] == 303


def test_reading_goes_on_while_many_questions_wait(site: Site, server: HttpServer) -> None:
    site.put("a.txt", "here\n")
    agents = [Agent(server, "create_file", path=f"{number}", content="x") for number in range(60)]
    wait_until(lambda: sum(bool(one.result) for one in agents) == 60 - 16, "the others were not refused")

    assert "here" in text_of(server.call("read_file", {"path": "a.txt"}))
    server.stop()
    for one in agents:
        assert one.text().startswith("Nothing was written.")
    assert [path.name for path in site.root.iterdir()] == ["a.txt"]


def test_a_change_of_many_files_is_one_row_and_does_not_come_again(site: Site, server: HttpServer) -> None:
    with site.open() as workspace:
        session = workspace.session()
        for number in range(50):
            session.create(f"first {number}", "x")
        session.apply(*(Proposal(path=f"{k}", edit=WriteText("x"), proof=Absent()) for k in range(250)))
    cookie = cookie_of(server)

    newest = server.send("GET", "/", headers=cookie)[2].decode()
    assert newest.count("<tr") == 1 + 50
    assert newest.count("<code>0, 1, 2, 3") == 1
    older = re.search(r'href="(/\?before=\d+)"', newest)
    assert older
    rest = server.send("GET", older[1], headers=cookie)[2].decode()
    assert rest.count("<tr") == 1 + 1
    assert "<code>first 0</code>" in rest
    assert server.send("GET", f"/?before={'9' * 5000}", headers=cookie)[0] == 200


@needs_browser
def test_news_do_not_take_away_what_was_typed(server: HttpServer, page: Page) -> None:
    sign_in(page, server)
    Agent(server, "create_file", path="1", content="x")
    note = page.get_by_label("Note to the agent").first
    note.fill("Half a sen")
    note.blur()
    Agent(server, "create_file", path="2", content="x")
    expect(page.locator("article.question")).to_have_count(2)

    expect(note).to_have_value("Half a sen")


@needs_browser
@requirement("history:page:keys")
def test_a_review_is_done_with_the_keyboard_alone(site: Site, server: HttpServer, page: Page) -> None:
    page.goto(f"http://127.0.0.1:{server.port}/")
    expect(page.get_by_label("Token")).to_be_focused()  # the browser sets the focus after the page has loaded
    page.keyboard.type(server.token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()
    wanted, unwanted = (Agent(server, "create_file", path=name, content="x\n") for name in ("yes.txt", "no.txt"))
    cards = page.locator("article.question")
    expect(cards).to_have_count(2)

    while cards.count():
        left = cards.count()
        expect(cards.first.get_by_role("button", name="Allow", exact=True)).to_be_enabled()
        page.keyboard.press("j")
        here = page.locator("article.question.here")
        expect(here).to_have_count(1)
        page.keyboard.press("y" if "yes.txt" in here.inner_text() else "n")
        page.keyboard.press("Enter")
        expect(cards).to_have_count(left - 1)
    assert "yes.txt" in wanted.text()
    assert "not allowed" in unwanted.text()
    assert ((site.root / "yes.txt").exists(), (site.root / "no.txt").exists()) == (True, False)

    row = page.locator("#change-rows tr", has_text="yes.txt")
    for _ in range(100):
        if row.locator("button:focus").count():
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Undone.")
    assert not (site.root / "yes.txt").exists()

"""The pages of the history, in a real browser: conversations, undo of parts, filters, files, trash, keys, live news."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from front.mcp.site import HttpServer, Site
from front.review.browser import WAIT_MILLISECONDS, needs_browser
from front.review.test_page import cookie_of, sign_in
from spec.marks import requirement
from surehold.app import Settings, open_workspace
from surehold.errors import SureholdError
from surehold.front.review.diff_markup import PageRoom, find_difference, number_rows, render_diff
from surehold.front.review.file_markup import render_counts
from surehold.front.review.markup import render_sentence
from surehold.library.session import AgentSession
from surehold.library.workspace import AgentWorkspace

pytestmark = needs_browser
DATES = "def parse(text):\n    return text\n\n\ndef show(day):\n    return str(day)\n"


@pytest.fixture
def agent(site: Site) -> Iterator[AgentSession]:
    """Two turns of one agent: it makes a file, edits it, and edits it again."""
    with open_workspace(site.root, settings=Settings(state_dir=site.state)) as workspace:
        session = workspace.session(agent="claude <b>")
        with session.turn("Add a parser"):
            made = session.create_file("src/dates.py", DATES)
            done = session.edit_file(
                "src/dates.py",
                [("return text", "return text.strip()")],
                expected_sha256=made.sha256,
                reason="blanks & tabs",
            )
        with session.turn("Write <script>alert(1)</script> notes"):
            session.create_file("notes.md", "# Notes\n")
            session.edit_file("src/dates.py", [("str(day)", "repr(day)")], expected_sha256=done.after_sha256)
        yield session


def open_conversation(page: Page, server: HttpServer) -> None:
    sign_in(page, server)
    page.locator("#conversation-rows a").first.click()
    expect(page.get_by_role("heading", name="Turns")).to_be_visible()
    page.wait_for_load_state()  # the script runs, and hears keys


@requirement("history:page:conversation")
def test_a_conversation_is_one_page_with_turns_reasons_and_one_diff_per_file(
    agent: AgentSession, server: HttpServer, page: Page
) -> None:
    del agent
    open_conversation(page, server)

    expect(page.get_by_role("heading", name="claude <b>", exact=True)).to_be_visible()
    expect(page.locator(".turn h2")).to_have_text(["Add a parser", "Write <script>alert(1)</script> notes"])
    expect(page.locator(".turn").first).to_contain_text("blanks & tabs")
    expect(page.locator("article.file")).to_have_count(2)
    file = page.locator("article.file").nth(1)
    expect(file.locator(".counts")).to_have_text("+6 −0")
    expect(file.locator(".added").nth(1)).to_have_text("+    return text.strip()\n")
    expect(file.locator(".added").nth(1)).to_have_attribute("data-new", "2")

    page.get_by_role("link", name="Side by side").click()
    expect(page.locator(".split .added")).to_have_count(7)
    page.get_by_role("link", name="One column").click()
    expect(page.locator(".diff")).to_have_count(2)


def test_large_numbers_of_lines_are_written_as_those_of_changes_are() -> None:
    shown = '<span class="counts"><b class="plus">+25,000</b> <b class="minus">−1,003</b></span>'
    assert render_counts(25_000, 1_003) == shown


@requirement("history:page:conversation")
def test_a_command_by_itself_is_a_conversation_too(site: Site, server: HttpServer, page: Page) -> None:
    with open_workspace(site.root, settings=Settings(state_dir=site.state)) as workspace:
        workspace.run(["sh", "-c", "echo 1 > made.txt"], agent="runner")

    open_conversation(page, server)

    expect(page.get_by_role("heading", name="runner", exact=True)).to_be_visible()
    expect(page.locator("article.file")).to_have_count(1)


@requirement("history:page:undo")
def test_parts_of_a_conversation_are_undone_as_one_change_each(
    agent: AgentSession, site: Site, server: HttpServer, page: Page
) -> None:
    del agent
    open_conversation(page, server)
    edit = page.locator(".turn").first.locator("li").nth(1)
    edit.get_by_role("button", name="Undo everything after this").click()
    expect(page.get_by_role("status")).to_have_text("Undone.")
    assert site.get("src/dates.py") == DATES.replace("return text", "return text.strip()").encode()
    assert not (site.root / "notes.md").exists()

    page.get_by_role("button", name="Redo").or_(page.get_by_role("button", name="Undo")).first.click()
    expect(page.get_by_role("status")).to_be_visible()
    assert (site.root / "notes.md").exists()

    page.goto(f"http://127.0.0.1:{server.port}/")
    page.locator("#conversation-rows a").last.click()
    page.locator("article.file").nth(1).get_by_role("button", name="Undo this file").click()
    expect(page.get_by_role("status")).to_have_text("Undone.")
    assert sorted(path.name for path in site.root.rglob("*") if path.is_file()) == ["notes.md"]


@requirement("history:page:undo")
def test_what_cannot_be_undone_is_said_and_the_rest_is_offered(
    agent: AgentSession, site: Site, server: HttpServer, page: Page
) -> None:
    del agent
    file = site.root / "src" / "dates.py"
    file.write_text(file.read_text().replace("repr(day)", "ascii(day)"))
    open_conversation(page, server)
    page.get_by_role("button", name="Undo this conversation").click()
    expect(page.get_by_role("heading", name="It cannot all be undone")).to_be_visible()
    assert (site.root / "notes.md").exists()

    page.get_by_role("button", name="Undo what can be undone").click()
    expect(page.get_by_role("status")).to_have_text("Undone.")
    assert not (site.root / "notes.md").exists()
    assert b"ascii(day)" in site.get("src/dates.py")


@requirement("history:page:find")
def test_changes_are_found_by_agent_path_text_time_and_refusal(
    agent: AgentSession, server: HttpServer, page: Page
) -> None:
    refused = agent.answer("create_file", {"path": "notes.md", "content": "x"})
    assert not refused.ok
    sign_in(page, server)
    page.get_by_role("link", name="Find changes").click()
    rows = page.locator("#change-rows tr")
    expect(rows).to_have_count(5)

    for query, count in (
        ("text=strip", 1),
        ("path=src", 3),
        ("agent=claude&path=notes.md", 2),
        ("refused=1", 1),
        ("since=1h&text=Notes", 2),
    ):
        page.goto(f"http://127.0.0.1:{server.port}/review/changes?{query}")
        expect(rows).to_have_count(count)
    page.goto(f"http://127.0.0.1:{server.port}/review/changes?since=noon")
    expect(page.get_by_role("status")).to_contain_text("is not a time")
    expect(page.get_by_role("button", name="Find")).to_be_visible()


@requirement("history:page:file")
def test_a_file_shows_its_changes_and_who_wrote_each_line(agent: AgentSession, server: HttpServer, page: Page) -> None:
    del agent
    sign_in(page, server)
    page.goto(f"http://127.0.0.1:{server.port}/review/file?path=src/dates.py")
    expect(page.locator("#change-rows tr")).to_have_count(3)
    expect(page.locator(".blame > span")).to_have_count(6)
    expect(page.locator(".blame > span").nth(1)).to_contain_text("claude <b>")
    page.goto(f"http://127.0.0.1:{server.port}/review/file?path=../etc/passwd")
    expect(page.get_by_role("status")).to_be_visible()


@requirement("history:page:list", "history:page:file")
def test_lists_say_why_how_much_and_what_came_from_outside(
    agent: AgentSession, site: Site, server: HttpServer, page: Page
) -> None:
    file = site.root / "src" / "dates.py"
    file.write_text(file.read_text() + "# by hand\n")
    agent.read_file("src/dates.py")  # notices it
    sign_in(page, server)
    for address in ("/", "/review/changes", "/review/file?path=src/dates.py"):
        page.goto(f"http://127.0.0.1:{server.port}{address}")
        outside, edited = page.locator("#change-rows tr").first, page.locator("#change-rows tr").nth(-2)
        expect(outside.locator("td").nth(1)).to_have_text("outside")
        expect(outside.locator(".counts")).to_have_text("+1 −0")
        expect(outside.get_by_role("button")).to_have_text("Undo")
        expect(edited.locator(".reason")).to_have_text("blanks & tabs")
        expect(edited.locator(".counts")).to_have_text("+1 −1")
    expect(page).to_have_title("root: src/dates.py · Surehold")
    page.locator("#change-rows tr").first.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("Undone")
    assert b"# by hand" not in site.get("src/dates.py")


@requirement("history:page:change")
def test_a_refused_call_is_not_shown_as_if_it_had_done_something(
    agent: AgentSession, server: HttpServer, page: Page
) -> None:
    found = agent.read_file("notes.md")
    for old, sha256 in (("nowhere", found.sha256), ("# Notes", "0" * 64)):
        with pytest.raises(SureholdError):
            agent.edit_file("notes.md", [(old, "# News")], expected_sha256=sha256)
    sign_in(page, server)
    page.locator("#change-rows a", has_text="notes.md").nth(1).click()
    expect(page.locator("main")).to_contain_text("the call was refused before it was known what it would change")
    expect(page.get_by_role("heading", name="What it")).to_have_count(0)
    expect(page.get_by_role("link", name="Side by side")).to_have_count(0)


@requirement("history:page:change")
def test_directories_of_which_only_the_times_changed_are_not_listed(
    agent: AgentSession, server: HttpServer, page: Page
) -> None:
    assert isinstance(agent.workspace, AgentWorkspace)
    agent.workspace.run(["sh", "-c", "echo x > src/new.txt"])
    sign_in(page, server)
    link = page.locator("#change-rows a").first
    expect(link).to_have_text("src/new.txt")
    link.click()
    expect(page.locator("article.file")).to_have_count(1)


@requirement("history:page:conversation")
def test_after_the_newest_change_there_is_nothing_to_undo(agent: AgentSession, server: HttpServer, page: Page) -> None:
    del agent
    open_conversation(page, server)
    expect(page.get_by_role("button", name="Undo everything after this")).to_have_count(3)
    expect(page.locator(".turn li").last.get_by_role("button")).to_have_count(0)


@requirement("history:page:trash")
def test_a_deleted_file_comes_back_from_the_trash(
    agent: AgentSession, site: Site, server: HttpServer, page: Page
) -> None:
    found = agent.read_file("notes.md")
    agent.delete_file("notes.md", expected_sha256=found.sha256)
    sign_in(page, server)
    page.get_by_role("link", name="Trash").click()
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("status")).to_have_text("Restored.")
    assert site.get("notes.md") == b"# Notes\n"
    page.get_by_role("link", name="Trash").click()
    expect(page.get_by_text("The trash is empty.")).to_be_visible()


@requirement("history:page:live")
def test_news_come_by_themselves_and_leave_scroll_and_focus_alone(
    agent: AgentSession, server: HttpServer, page: Page
) -> None:
    for number in range(20):
        agent.create_file(f"old-{number}.txt", "x\n")
    sign_in(page, server)
    link = page.locator("#change-rows a").last
    link.focus()
    link.scroll_into_view_if_needed()
    place = "document.activeElement.getBoundingClientRect().top"
    before = page.evaluate(place)
    for number in range(10):
        agent.create_file(f"new-{number}.txt", "x\n")
        expect(page.locator("#change-rows")).to_contain_text(f"new-{number}.txt")
    assert page.evaluate("document.activeElement.textContent") == link.text_content()
    assert abs(page.evaluate(place) - before) < 2


@requirement("history:page:live")
def test_the_row_that_is_read_stays_when_news_push_it_off_the_list(
    agent: AgentSession, server: HttpServer, page: Page
) -> None:
    for number in range(60):
        agent.create_file(f"old-{number}.txt", "x\n")
    sign_in(page, server)
    link = page.locator("#change-rows a").last
    link.focus()
    link.scroll_into_view_if_needed()
    shown, rows = page.evaluate("document.activeElement.textContent"), page.locator("#change-rows tr").count()
    place = "document.activeElement.getBoundingClientRect().top"
    before = page.evaluate(place)
    for number in range(3):
        agent.create_file(f"new-{number}.txt", "x\n")
        expect(page.locator("#change-rows")).to_contain_text(f"new-{number}.txt")
    assert page.evaluate("document.activeElement.textContent") == shown
    assert abs(page.evaluate(place) - before) < 2

    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    agent.create_file("new-3.txt", "x\n")
    expect(page.locator("#change-rows")).to_contain_text("new-3.txt")
    expect(page.locator("#change-rows tr")).to_have_count(rows)


@requirement("history:page:keys")
def test_keys_go_from_card_to_card_and_to_their_buttons(agent: AgentSession, server: HttpServer, page: Page) -> None:
    del agent
    open_conversation(page, server)
    page.keyboard.press("j")
    expect(page.locator(".here")).to_contain_text("create")
    page.keyboard.press("j")
    expect(page.locator(".here")).to_contain_text("edit")
    page.keyboard.press("k")
    page.keyboard.press("u")
    expect(page.locator("button:focus")).to_have_text("Undo everything after this")
    page.keyboard.press("?")
    expect(page.locator("dialog#keys")).to_be_visible()


@requirement("history:page:no_script")
def test_reading_and_undoing_need_no_script(
    agent: AgentSession, site: Site, server: HttpServer, browser: Browser
) -> None:
    with browser.new_context(java_script_enabled=False) as person:
        page = person.new_page()
        page.set_default_timeout(WAIT_MILLISECONDS)
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.get_by_label("Token").fill(server.token)
        page.get_by_role("button", name="Sign in").click()
        page.locator("#conversation-rows a").first.click()
        page.get_by_role("button", name="Undo this conversation").click()
        expect(page.get_by_role("status")).to_have_text("Undone.")
    assert [path for path in site.root.rglob("*") if path.is_file()] == []
    assert agent.id


def test_what_names_nothing_is_said_and_changes_nothing(agent: AgentSession, site: Site, server: HttpServer) -> None:
    cookie, own = cookie_of(server), {"Origin": f"http://127.0.0.1:{server.port}"}
    assert server.send("GET", "/review/session/unknown", headers=cookie)[0] == 404
    assert server.send("GET", "/review/session/unknown")[0] == 401
    assert server.send("GET", "/review/events")[0] == 401
    for path, body in (
        ("/review/undo", b""),
        ("/review/undo", b"session=unknown"),
        ("/review/restore", b"item=unknown"),
    ):
        assert server.send("POST", path, body=body, headers={**cookie, **own})[0] == 303
        assert server.send("POST", path, body=body, headers=cookie)[0] == 403
    last = f"session={agent.id}&after={agent.workspace.history.log()[0].change_id}".encode()
    assert server.send("POST", "/review/undo", body=last, headers={**cookie, **own})[0] == 303
    assert (site.root / "notes.md").exists()


def test_a_long_diff_is_shown_in_parts(tmp_path: Path) -> None:
    del tmp_path
    diff = "--- a\n+++ a\n@@ -0,0 +1,50000 @@\n" + "+x\n" * 50_000

    first = render_diff(diff, more="/there?first=", room=PageRoom(rows=2000))
    assert len(re.findall('class="added"', first)) == 1997
    assert '<a href="/there?first=2000">Go on</a>' in first
    assert "48,003 more rows" in first
    assert 'data-new="1998"' in render_diff(diff, first=2000, more="/there?first=", room=PageRoom())


@requirement("approval:shown:escaped")
def test_names_that_our_sentences_quote_are_shown_as_code() -> None:
    shown = render_sentence("The mode default asks before `<b>\u202e.py` and `b.py` are changed; ` alone stays.")
    assert shown == (
        "The mode default asks before <code>&lt;b&gt;\\u202e.py</code> and <code>b.py</code> are changed; ` alone stays."
    )


@requirement("approval:shown:no_room")
def test_a_diff_on_the_page_shows_what_takes_no_room() -> None:
    shown = render_diff("--- a\u2060\n+++ a\u2060\n@@ -1 +1 @@\n-x\n+x\u200b 👩\u200d🚀\n")
    assert r"+x<mark>\u200b 👩" in shown.replace("\u200d🚀", "")
    assert "\u200b" not in shown
    assert "👩\u200d🚀" in shown


def test_words_are_marked_between_what_is_common() -> None:
    assert find_difference("return one(two)", "return one(three)") == ((11, 14), (11, 16))
    assert find_difference("same", "same words here") is not None
    assert find_difference("alpha", "omega beta") is None
    assert find_difference("", "x") is None
    shown = render_diff("--- a\n+++ a\n@@ -1 +1 @@\n-return <old> x\n+return <new> x\n")
    assert "-return &lt;<mark>old</mark>&gt; x" in shown
    assert [row.old for row in number_rows("--- a\n+++ a\n@@ -7,2 +9,1 @@\n x\n-y\n") if row.kind == "removed"] == [8]

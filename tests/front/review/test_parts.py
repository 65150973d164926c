"""Parts of a change: one hunk is undone, or left out of what is allowed; equal lines open; code has colours."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from front.mcp.site import HttpServer, Site, sha_of
from front.review.browser import needs_browser
from front.review.test_page import Agent, sign_in
from spec.marks import requirement
from surehold import Workspace
from surehold.errors import NotFound, StaleFile, SureholdError, UndoConflict
from surehold.front.review.diff_markup import FileSides, render_diff
from surehold.front.review.history_pages import HistoryPages
from surehold.text.plan import diff_between
from surehold.text.snapshot import Snapshot
from surehold.workspace.past.net_diff import diff_of_entry
from surehold.workspace.proposal import CallAuthor
from surehold.workspace.undo.part import ChangedText, undo_part

LINES = [f"line {number}\n" for number in range(1, 41)]
OLD = "".join(LINES)
NEW = OLD.replace("line 5\n", "LINE 5\n").replace("line 20\n", "").replace("line 36\n", "line 36\nmore\n")
CALL = CallAuthor(agent="reviewer").make_call("undo_part", "edit")


def changed(before: str, after: str) -> ChangedText:
    sides = Snapshot(before.encode()), Snapshot(after.encode())
    diff = diff_between(*sides, from_name="a.txt", to_name="a.txt").text
    return ChangedText(key="a.txt", before=sides[0], after=sides[1], diff=diff)


@requirement("history:page:parts")
def test_taking_parts_back_in_any_order_gives_what_was_before() -> None:
    text = changed(OLD, NEW)
    assert text.part_count == 3
    assert text.without_parts(frozenset({0, 1, 2})) == OLD.encode()
    assert text.without_parts(frozenset()) == NEW.encode()
    assert text.without_parts(frozenset({1})) == NEW.replace("line 19\n", "line 19\nline 20\n").encode()
    for before, after in (("a", "b\n"), ("a\n", "a"), ("", "x"), ("x\ny", "y"), (OLD + "end", NEW + "end\n")):
        one = changed(before, after)
        assert one.without_parts(frozenset(range(one.part_count))) == before.encode()


@pytest.fixture
def workspace(site: Site) -> Iterator[Workspace]:
    with site.open() as opened:
        yield opened


@pytest.fixture
def edited(workspace: Workspace) -> ChangedText:
    session = workspace.session(agent="demo")
    session.create("a.txt", OLD)
    session.edit("a.txt", ("line 5\n", "LINE 5\n"), ("line 20\n", ""), ("line 36\n", "line 36\nmore\n"))
    net = diff_of_entry(workspace, workspace.history.log()[0])
    assert net
    return ChangedText(key=net.key, before=net.before, after=net.after, diff=net.diff)


@requirement("history:page:parts")
def test_a_part_is_undone_beside_later_work_and_can_be_redone(workspace: Workspace, edited: ChangedText) -> None:
    session = workspace.session(agent="other")
    session.edit("a.txt", ("line 30\n", "later\n"))

    receipt = undo_part(workspace, edited, 1, CALL)
    assert workspace.read("a.txt").text == NEW.replace("line 19\n", "line 19\nline 20\n").replace("line 30", "later")
    workspace.history.undo(receipt.change_id)
    assert workspace.read("a.txt").text == NEW.replace("line 30", "later")


@requirement("history:page:parts")
def test_a_part_that_later_work_touched_is_refused_and_nothing_changes(
    workspace: Workspace, edited: ChangedText
) -> None:
    workspace.session().edit("a.txt", ("LINE 5\n", "Line five\n"))
    before = workspace.read("a.txt").data
    with pytest.raises(UndoConflict, match="later changes touch the same lines"):
        undo_part(workspace, edited, 0, CALL)
    with pytest.raises(NotFound):
        undo_part(workspace, edited, 3, CALL)
    assert workspace.read("a.txt").data == before


@requirement("history:page:parts")
def test_a_part_of_what_a_conversation_did_is_undone_as_it_was_shown(workspace: Workspace) -> None:
    workspace.session(agent="person").create("a.txt", OLD)
    session = workspace.session(agent="demo")
    session.edit("a.txt", ("line 5\n", "LINE 5\n"))
    session.edit("a.txt", ("line 36\n", "line 36\nmore\n"))
    pages = HistoryPages(workspace)
    shown = "".join(pages.conversation(session.id, split=False, file="", first_row=0))
    forms = re.findall(r'<form method="post" action="/review/part"[^>]*>(.*?)<button', shown)
    first, second = (dict(re.findall(r'name="(\w+)" value="([^"]*)"', one)) for one in forms)

    assert pages.undo_part(second)
    assert workspace.read("a.txt").text == OLD.replace("line 5\n", "LINE 5\n")
    with pytest.raises(StaleFile, match="changed since this page was made"):
        pages.undo_part(first)
    for wrong in ({}, {**first, "path": "b"}, {"change": "nothing", "path": "a.txt"}, {**first, "session": "none"}):
        with pytest.raises(SureholdError):
            pages.undo_part(wrong)
    assert workspace.read("a.txt").text == OLD.replace("line 5\n", "LINE 5\n")


@requirement("history:page:folded")
def test_equal_lines_between_hunks_can_be_opened_and_are_numbered_on_both_sides() -> None:
    text = changed(OLD, NEW)
    for split in (False, True):
        shown = render_diff(text.diff, split=split, sides=FileSides(name="a.txt", before=text.before, after=text.after))
        assert shown.count("<details") == 4
        assert "<summary>1 equal line</summary>" in shown
        assert '<span class="same" data-old="9" data-new="9"> line 9\n</span>' in shown
        assert '<span class="same" data-old="40" data-new="40"> line 40\n</span>' in shown
    long = "".join(f"{number}\n" for number in range(5000))
    one = changed(f"first\n{long}", f"FIRST\n{long}last\n")
    shown = render_diff(one.diff, sides=FileSides(name="a", before=one.before, after=one.after))
    assert "<summary>4,994 equal lines</summary>" in shown
    assert "… 4,594 lines are not shown …" in shown


@requirement("history:page:colours")
def test_code_has_colours_and_nothing_else_is_markup() -> None:
    before = 'def f():\n    return "<b>"  # <i>\n'
    after = 'def f():\n    """Two\n    lines."""\n    return "é<b>" + 1  # <i>\n'
    text = changed(before, after)
    shown = render_diff(text.diff, sides=FileSides(name="a.py", before=text.before, after=text.after))
    assert '<i class="keyword">def</i> f():' in shown
    assert '+    <i class="string">&quot;&quot;&quot;Two</i>' in shown
    assert '+<i class="string">    lines.&quot;&quot;&quot;</i>' in shown
    assert (
        '<i class="string">&quot;é&lt;b&gt;&quot;</i> + <i class="number">1</i>  <i class="comment"># &lt;i&gt;</i>'
        in shown
    )
    evil = changed("x = 1\n", "x = '\u202e' # \x1b\n")
    shown = render_diff(evil.diff, sides=FileSides(name="a.py", before=evil.before, after=evil.after))
    assert "\u202e" not in shown
    plain = render_diff(text.diff, sides=FileSides(name="a.unknown", before=text.before, after=text.after))
    assert "<i " not in plain


@needs_browser
@requirement("history:page:parts", "approval:page:parts")
def test_parts_are_left_out_of_what_is_allowed_and_undone_later(site: Site, server: HttpServer, page: Page) -> None:
    site.put("a.txt", OLD)
    sign_in(page, server)
    edits = [{"oldText": "line 5\n", "newText": "LINE 5\n"}, {"oldText": "line 36\n", "newText": "line 36\nmore\n"}]
    agent = Agent(server, "edit_file", path="a.txt", edits=edits, expectedSha256=sha_of(server, "a.txt"))
    question = page.locator("article.question")
    expect(question.get_by_label("take this part")).to_have_count(2)
    question.get_by_label("take this part").nth(0).uncheck()
    question.get_by_role("button", name="Allow", exact=True).click()
    assert "changed the content first" in agent.text()
    assert site.get("a.txt") == OLD.replace("line 36\n", "line 36\nmore\n").encode()

    agent = Agent(
        server,
        "edit_file",
        path="a.txt",
        edits=[edits[0], {"oldText": "line 30\n", "newText": "x\n"}],
        expectedSha256=sha_of(server, "a.txt"),
    )
    for box in range(2):
        question.get_by_label("take this part").nth(box).uncheck()
    question.get_by_role("button", name="Allow", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Nothing was decided. No part was chosen.")
    question.get_by_role("button", name="Allow", exact=True).click()
    agent.text()
    expect(page.locator("#change-rows tr")).to_have_count(2)
    page.locator("#change-rows a", has_text="a.txt").first.click()
    page.locator("details.fold summary").first.click()
    expect(page.get_by_text("line 1", exact=True)).to_be_visible()
    page.get_by_role("button", name="Undo this part").first.click()
    expect(page.get_by_role("status")).to_have_text("This part was undone.")
    assert site.get("a.txt") == OLD.replace("line 36\n", "line 36\nmore\n").replace("line 30\n", "x\n").encode()

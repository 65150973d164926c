"""The gate with other settings, and with a person who is asked."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dialects.claude.desk import numbered
from spec.marks import requirement
from surehold.dialects.claude.edit import edit
from surehold.dialects.claude.write import write
from surehold.tools.call import Answer, CallContext
from surehold.workspace.access.permission import Approval, Approver, PermissionRequest
from surehold.workspace.session import Session
from surehold.workspace.settings import ReadGateSettings
from surehold.workspace.workspace import Workspace
from workspaces import real_workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file.txt").write_text(numbered(40))
    return tmp_path / "root"


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with real_workspace(root) as opened:
        yield opened


def editing(session: Session, old: str, new: str, *, gate: ReadGateSettings | None = None, **arguments: Any) -> Answer:
    context = CallContext(session=session, gate=gate or ReadGateSettings())
    return edit.call(context, {"file_path": "file.txt", "old_string": old, "new_string": new, **arguments})


def writing(session: Session, content: str, *, gate: ReadGateSettings | None = None) -> Answer:
    return write.call(
        CallContext(session=session, gate=gate or ReadGateSettings()), {"file_path": "file.txt", "content": content}
    )


def kind(answer: Answer) -> str:
    assert not answer.ok, answer.text
    return str(answer.data["error"]["kind"])


@requirement("claude:gate:settings")
def test_the_gate_is_strict_and_rejects_unless_it_is_told_otherwise(workspace: Workspace) -> None:
    context = CallContext(session=workspace.session())

    assert (context.gate or context.session.workspace.gate) == ReadGateSettings(
        require_read="strict", on_stale="reject"
    )


@requirement("claude:gate:lines_seen", "claude:refusal:shape")
def test_a_refusal_lists_the_unseen_lines_and_counts_them_where_they_are_many(workspace: Workspace, root: Path) -> None:
    session = workspace.session()
    session.page("file.txt", start=1, count=20)
    told = editing(session, "line 30\nline 31\n", "x\n")
    details = told.data["error"]["details"]
    assert (kind(told), details["unseen_lines"], "unseen_ranges" in details) == ("partially_read", ["30-31"], False)

    (root / "file.txt").write_text("this\nother\n" * 60)
    session.page("file.txt", start=1, count=1)
    details = editing(session, "this", "that", replace_all=True).data["error"]["details"]
    assert (details["unseen_lines"], details["unseen_ranges"]) == ([str(n) for n in range(3, 103, 2)], 59)


@requirement("claude:gate:settings")
def test_matched_lets_an_exact_and_unique_text_of_an_unread_file_be_edited(workspace: Workspace, root: Path) -> None:
    session, gate = workspace.session(), ReadGateSettings(require_read="matched")

    assert kind(editing(session, "line 1", "x", gate=gate)) == "not_unique"
    assert kind(editing(session, "line 1", "x", gate=gate, replace_all=True)) == "not_read"
    assert kind(writing(session, "x", gate=gate)) == "not_read"
    assert editing(session, "line 30\n", "thirty\n", gate=gate).ok
    assert (root / "file.txt").read_text() == numbered(40).replace("line 30\n", "thirty\n")


@requirement("claude:gate:settings")
def test_matched_wants_the_exact_text(workspace: Workspace, root: Path) -> None:
    (root / "file.txt").write_text("it’s here\n")

    assert (
        kind(editing(workspace.session(), "it's here", "x", gate=ReadGateSettings(require_read="matched")))
        == "not_read"
    )


@requirement("claude:gate:settings")
def test_off_asks_nothing(workspace: Workspace, root: Path) -> None:
    session, gate = workspace.session(), ReadGateSettings(require_read="off")

    assert editing(session, "line 2\n", "two\n", gate=gate).ok
    (root / "file.txt").write_text("changed\n")
    assert writing(session, "new\n", gate=gate).ok
    (root / "file.txt").unlink()
    assert writing(session, "again\n", gate=gate).data["type"] == "create"


@requirement("claude:gate:settings")
def test_rebase_goes_on_in_lines_that_are_provably_the_same(workspace: Workspace, root: Path) -> None:
    session, gate = workspace.session(), ReadGateSettings(on_stale="rebase")
    session.read("file.txt")
    changed = "first\n" + numbered(40).replace("line 20\n", "twenty\n")
    (root / "file.txt").write_text(changed)

    assert kind(editing(session, "line 30\n", "thirty\n")) == "stale"
    other = workspace.session()
    other.read("file.txt")
    (root / "file.txt").write_text("zero\n" + changed)
    assert editing(other, "line 30\n", "thirty\n", gate=gate).ok
    assert (root / "file.txt").read_text() == "zero\n" + changed.replace("line 30\n", "thirty\n")


@requirement("claude:gate:settings")
def test_rebase_refuses_lines_that_changed_or_that_could_be_others(workspace: Workspace, root: Path) -> None:
    session, gate = workspace.session(), ReadGateSettings(on_stale="rebase")
    (root / "file.txt").write_text("a block\n}\nanother block\n}\n")
    session.read("file.txt")
    (root / "file.txt").write_text("another block\n}\n")

    assert kind(editing(session, "}\n", "end\n", gate=gate)) == "stale"
    other = workspace.session()
    other.read("file.txt")
    (root / "file.txt").write_text("another BLOCK\n}\n")
    assert kind(editing(other, "another BLOCK", "x", gate=gate)) == "stale"


@requirement("claude:gate:settings")
def test_rebase_is_for_edits_alone(workspace: Workspace, root: Path) -> None:
    session = workspace.session()
    session.read("file.txt")
    (root / "file.txt").write_text("first\n" + numbered(40))

    assert kind(writing(session, "x\n", gate=ReadGateSettings(on_stale="rebase"))) == "stale"


def test_another_session_that_wrote_the_file_is_not_taken_for_a_formatter(workspace: Workspace) -> None:
    one, other = workspace.session(), workspace.session()
    one.read("file.txt")
    other.read("file.txt")
    assert editing(one, "line 2\n", "two\n").ok
    assert kind(editing(other, "line 30\n", "thirty\n")) == "stale"
    assert editing(other, "line 30\n", "thirty\n").ok

    assert kind(editing(one, "line 40\n", "forty\n")) == "stale"
    assert editing(one, "line 40\n", "forty\n").ok


def edit_one(session: Session) -> Answer:
    return editing(session, "line 2\n", "two\n")


def write_all(session: Session) -> Answer:
    return writing(session, "new\n")


def asking(workspace: Workspace, approver: Approver) -> Session:
    return workspace.session(mode="default", approver=approver)


@requirement("claude:gate:checked_again")
@pytest.mark.parametrize("change", [edit_one, write_all])
def test_11_a_file_that_is_saved_while_somebody_is_asked_is_not_overwritten(
    workspace: Workspace, root: Path, change: Callable[[Session], Answer]
) -> None:
    def saves_meanwhile(request: PermissionRequest) -> Approval:
        assert request.files[0].path == "file.txt"
        (root / "file.txt").write_text(numbered(41))
        return Approval(allowed=True)

    session = asking(workspace, saves_meanwhile)
    session.read("file.txt")

    refused = change(session)

    assert kind(refused) == "stale"
    assert "+line 41" in refused.data["error"]["details"]["changes_since"]
    assert (root / "file.txt").read_text() == numbered(41)


@requirement("claude:gate:checked_again")
def test_nobody_is_asked_about_a_change_that_the_gate_refuses(workspace: Workspace) -> None:
    def never(request: PermissionRequest) -> Approval:
        raise AssertionError(f"asked: {request.why}")

    assert kind(editing(asking(workspace, never), "line 2\n", "two\n")) == "not_read"


def test_what_a_person_wrote_instead_is_told(workspace: Workspace, root: Path) -> None:
    def other_words(request: PermissionRequest) -> Approval:
        return Approval(allowed=True, contents={request.files[0].path: "a person\nwrote this\n"})

    session = asking(workspace, other_words)
    session.read("file.txt")
    edited = editing(session, "line 2\n", "two\n")
    (root / "new").mkdir()
    written = write.call(CallContext(session=session), {"file_path": "new/file.txt", "content": "mine\n"})

    assert edited.data["userModified"] is True
    assert "file.txt as the person who allowed it wanted.\n" in edited.text
    assert "A person changed the content" in edited.text
    assert "+wrote this" in edited.text
    assert (root / "file.txt").read_text() == "a person\nwrote this\n"
    assert written.data["userModified"] is True
    assert (root / "new" / "file.txt").read_text() == "a person\nwrote this\n"
    assert "wrote this" in written.text

"""What an editor is shown of a call: titles, places, differences, and the two spellings."""

from pathlib import Path
from typing import Any

import pytest
from acp.schema import SessionNotification

from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.front.acp.events import FileDiff, FileLocation, ToolEvent, cut_texts, to_acp_update, to_contract_update
from surehold.front.acp.file_diffs import preview_changes
from surehold.front.acp.locations import call_title, changed_locations, requested_locations
from surehold.library.families import tool_named
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.proposal import ChangeRecord
from surehold.workspace.session import Session

ROOT = "/project"
Json = dict[str, Any]


def yes(request: PermissionRequest) -> Approval:
    return Approval(allowed=True)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "root").mkdir()
    settings = Settings(state_dir=tmp_path / "state", durability="none")
    return open_workspace(tmp_path / "root", settings=settings).session(agent="test", mode="acceptEdits")


TITLES: list[tuple[str, Json, str]] = [
    ("read_file", {"path": "src/a.py", "startLine": 10, "endLine": 60}, "Read src/a.py:10-60"),
    ("read_file", {"path": "/project/src/a.py", "startLine": 10}, "Read src/a.py:10-"),
    ("read_file", {"file_path": "src/a.py", "endLine": 5}, "Read src/a.py:1-5"),
    ("read_file", {"path": "/elsewhere/a.py"}, "Read /elsewhere/a.py"),
    ("read_text_file", {"path": "/project/a.py", "line": 10, "limit": 5}, "Read a.py:10-14"),
    ("Read", {"file_path": "/project/a.py", "offset": 3}, "Read a.py:3-"),
    ("list_directory", {"path": "src"}, "List src"),
    ("list_directory", {}, "List ."),
    ("search_files", {"query": "TODO"}, "Search `TODO`"),
    ("search_files", {"query": "TODO", "root": "src"}, "Search `TODO` in src"),
    ("glob", {"pattern": "**/*.py"}, "Find `**/*.py`"),
    ("edit_file", {"path": "a.py", "edits": [{}, {}, {}]}, "Edit a.py (3 edits)"),
    ("edit", {"path": "a.py", "operations": [{}]}, "Edit a.py (1 operation)"),
    ("edit_file", {"path": "a.py", "edits": [{}], "dryRun": True}, "Edit a.py (1 edit) (dry run)"),
    ("create_file", {"path": "a.py", "content": ""}, "Create a.py"),
    ("write_file", {"path": "a.py", "content": ""}, "Write a.py"),
    ("delete_file", {"path": "a.py"}, "Delete a.py"),
    ("move_file", {"fromPath": "a.py", "toPath": "b.py"}, "Move a.py to b.py"),
    ("restore_file", {"trashId": "x", "targetPath": "a.py"}, "Restore a.py"),
    ("apply_patch", {"patch": "…"}, "Apply a patch"),
    ("read_file", {"path": "a\x1b[2J\u202e.py"}, "Read a\\x1b[2J\\u202e.py"),
    ("read_file", {"path": "x" * 500}, f"Read {'x' * 154}…"),
    ("read_file", {"path": 7, "startLine": True}, "Read"),
]


@pytest.mark.parametrize(("tool", "arguments", "expected"), TITLES)
def test_a_title_says_what_is_about_to_happen(tool: str, arguments: Json, expected: str) -> None:
    assert call_title(tool_named(tool), arguments, roots=(ROOT,)) == expected


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("read_file", {"path": "src/../a.py", "startLine": 10}, [("/project/a.py", 10)]),
        ("read_file", {"path": "/other/a.py"}, [("/other/a.py", None)]),
        ("read_text_file", {"path": "/project/a.py", "line": 10}, [("/project/a.py", 10)]),
        ("Grep", {"pattern": "x", "path": "src", "offset": 250}, [("/project/src", None)]),
        ("glob", {"pattern": "*"}, [("/project", None)]),
        ("move_file", {"fromPath": "a", "toPath": "b"}, [("/project/a", None), ("/project/b", None)]),
        ("restore_file", {"trashId": "x"}, []),
        (
            "apply_patch",
            {"patch": "*** Begin Patch\n*** Add File: new.txt\n+x\n*** Delete File: old.txt\n*** End Patch\n"},
            [("/project/new.txt", None), ("/project/old.txt", None)],
        ),
        ("apply_patch", {"patch": "nonsense"}, []),
    ],
)
def test_the_places_of_a_call_are_absolute(tool: str, arguments: Json, expected: list[tuple[str, int | None]]) -> None:
    found = requested_locations(tool_named(tool), arguments, root=ROOT)

    assert found == tuple(FileLocation(path=path, line=line) for path, line in expected)


def test_a_small_file_is_shown_whole(session: Session) -> None:
    session.create("a.txt", "one\ntwo\n")
    receipt = session.edit("a.txt", ("two", "three"))

    assert preview_changes(receipt.files, root=ROOT).diffs == (
        FileDiff(path="/project/a.txt", old="one\ntwo\n", new="one\nthree\n"),
    )
    assert changed_locations(receipt.files, root=ROOT) == (FileLocation(path="/project/a.txt", line=2),)


def test_a_new_file_has_no_old_text_and_a_deleted_one_no_new(session: Session) -> None:
    made = session.create("a.txt", "one\n")
    gone = session.delete("a.txt", expected_sha256=made.files[0].after_sha256 or "")

    assert preview_changes(made.files, root=ROOT).diffs == (FileDiff(path="/project/a.txt", old=None, new="one\n"),)
    assert preview_changes(gone.files, root=ROOT).diffs == (FileDiff(path="/project/a.txt", old="one\n", new=""),)


def test_a_file_that_only_moved_has_no_difference_and_two_places(session: Session) -> None:
    session.create("a.txt", "one\n")
    receipt = session.move("a.txt", "b.txt")

    assert preview_changes(receipt.files, root=ROOT).diffs == ()
    assert changed_locations(receipt.files, root=ROOT) == (
        FileLocation(path="/project/a.txt"),
        FileLocation(path="/project/b.txt"),
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_large_file_is_shown_as_its_hunks(session: Session, tmp_path: Path, encoding: str) -> None:
    rows = [f"line {number} ü" for number in range(1, 5001)]
    path = tmp_path / "root" / "a.txt"
    path.write_bytes("\n".join([*rows, ""]).encode(encoding))
    receipt = session.edit("a.txt", ("line 10 ü", "line ten"), ("line 4000 ü\n", ""))

    first, second = preview_changes(receipt.files, root=ROOT).diffs
    assert first == FileDiff(
        path="/project/a.txt",
        old="".join(f"line {number} ü\n" for number in range(7, 14)),
        new="".join("line ten\n" if number == 10 else f"line {number} ü\n" for number in range(7, 14)),
        old_start=7,
        new_start=7,
    )
    assert (second.old_start, second.new_start) == (3997, 3997)
    assert second.old == "".join(f"line {number} ü\n" for number in range(3997, 4004))
    assert second.new == "".join(f"line {number} ü\n" for number in range(3997, 4004) if number != 4000)


def test_the_first_line_of_a_large_file_is_shown_without_its_byte_order_mark(session: Session, tmp_path: Path) -> None:
    (tmp_path / "root" / "a.txt").write_bytes(("one\n" + "x\n" * 20_000).encode("utf-8-sig"))
    receipt = session.edit("a.txt", ("one", "two"))

    (diff,) = preview_changes(receipt.files, root=ROOT).diffs
    assert (diff.old, diff.new) == ("one\nx\nx\nx\n", "two\nx\nx\nx\n")


def test_a_difference_that_is_too_large_is_said_in_words(session: Session) -> None:
    receipt = session.create("a.txt", "x" * 600_000)

    found = preview_changes(receipt.files, root=ROOT)
    assert (found.diffs, found.notes) == ((), ("The diff of a.txt is too large to be shown here.",))


def test_the_differences_in_many_files_fit_into_one_message(session: Session) -> None:
    made = [session.create(f"{number}.txt", "x" * 500_000).files[0] for number in range(10)]

    found = preview_changes(made, root=ROOT)
    assert len(found.diffs) == 8
    assert found.notes == ("The diffs of 2 more files are too large to be shown here.",)


def test_bytes_that_are_no_text_are_said_in_words(session: Session, tmp_path: Path) -> None:
    (tmp_path / "root" / "a.bin").write_bytes(b"\0\1\2")
    sha256 = session.read("a.bin").sha256
    receipt = session.delete("a.bin", expected_sha256=sha256)

    found = preview_changes(receipt.files, root=ROOT)
    assert (found.diffs, found.notes) == ((), ("a.bin is binary (3 → 0 bytes).",))


def test_a_record_keeps_what_a_session_did_and_what_it_restored(session: Session) -> None:
    free = list[str]()
    record = ChangeRecord(on_free=lambda: free.append("free"))
    recorded = session.with_approver(yes).with_record(record)
    made = recorded.create("a.txt", "one\n")
    gone = recorded.delete("a.txt", expected_sha256=made.files[0].after_sha256 or "")
    back = recorded.restore(gone.files[0].change.trash_id)
    session.create("b.txt", "not recorded\n")

    assert record.receipts == [made, gone, back]
    assert record.change_ids == (made.change_id, gone.change_id, back.change_id)
    assert len(free) == 3
    assert (recorded.id, recorded.agent) == (session.id, session.agent)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("short", "short"),
        ("x" * 12, "x" * 10 + "\n[2 more bytes are not shown]"),
        ("ü" * 6, "ü" * 5 + "\n[2 more bytes are not shown]"),
        ({"a": ["x" * 12, 7, None]}, {"a": ["x" * 10 + "\n[2 more bytes are not shown]", 7, None]}),
    ],
)
def test_long_texts_are_cut_and_marked(value: Any, expected: Any) -> None:
    assert cut_texts(value, 10) == expected


EVENTS = [
    ToolEvent(
        call_id="call-1",
        status="pending",
        title="multi_edit_text_file (3 edits)",
        kind="edit",
        locations=(FileLocation(path="/test/config.toml", line=3),),
        raw_input={"path": "/test/config.toml", "edits": []},
    ),
    ToolEvent(call_id="call-1", status="in_progress"),
    ToolEvent(
        call_id="call-1",
        status="completed",
        locations=(FileLocation(path="/test/config.toml", line=2),),
        raw_output={
            "success": True,
            "diff": "--- config.toml\n",
            "applied_count": 3,
            "line_ranges": [],
            "_meta": {"n": None},
        },
        text="3 edits",
        diff="--- config.toml\n",
        diffs=(FileDiff(path="/test/config.toml", old=None, new="x"), FileDiff(path="/a", old="", new="", old_start=7)),
        content=({"type": "image", "data": "AA==", "mimeType": "image/png"},),
        change_id="change-1",
    ),
    ToolEvent(call_id="call-1", status="failed", raw_output={"error": {"code": -32010}}, text="Nothing was written."),
]


@requirement("multi_edit:acp:v1_schema")
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.status)
def test_every_event_survives_the_schema_of_version_1_unchanged(event: ToolEvent) -> None:
    update = to_acp_update(event)

    read = SessionNotification.model_validate({"sessionId": "s", "update": update})
    spelled = read.model_dump(mode="json", by_alias=True, exclude_unset=True)["update"]
    assert spelled == update  # what the schema does not know, it would have dropped


@requirement("multi_edit:acp:contract_dialect")
def test_the_contract_spelling_is_that_of_the_contract() -> None:
    begin, running, end, failed = map(to_contract_update, EVENTS)

    assert begin == {
        "type": "toolCall",
        "id": "call-1",
        "kind": "edit",
        "status": "pending",
        "title": "multi_edit_text_file (3 edits)",
        "locations": [{"path": "/test/config.toml"}],
        "rawInput": {"path": "/test/config.toml", "edits": []},
    }
    assert running == {"type": "toolCallUpdate", "id": "call-1", "fields": {"status": "in_progress"}}
    assert end == {
        "type": "toolCallUpdate",
        "id": "call-1",
        "fields": {
            "status": "completed",
            "rawOutput": {"success": True, "diff": "--- config.toml\n", "applied_count": 3, "line_ranges": []},
            "content": [{"type": "text", "text": "--- config.toml\n"}],
        },
    }
    assert failed == {
        "type": "toolCallUpdate",
        "id": "call-1",
        "fields": {
            "status": "failed",
            "rawOutput": {"error": {"code": -32010}},
            "content": [{"type": "text", "text": "Nothing was written."}],
        },
    }


def test_what_leaves_is_valid_utf_8_whatever_a_file_is_called() -> None:
    event = ToolEvent(call_id="1", status="pending", title="x", locations=(FileLocation(path="/a\udcff"),))

    for spell in (to_acp_update, to_contract_update):
        assert spell(event)["locations"] == [{"path": "/a\\xff"}]

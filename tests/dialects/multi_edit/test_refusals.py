"""Every row of the contract's table of errors, in both kinds of errors and in the library; and what comes with them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dialects.multi_edit.ways import Desk, Library, Way
from spec.marks import requirement
from surehold.stores.base import LedgerQuery
from surehold.text.plan import Span
from surehold.text.quoted.sequential import StagedText
from surehold.text.snapshot import Snapshot
from surehold.workspace.access.permission import Approval, PermissionRequest

OUTSIDE = "/etc/hostname"


def one(old: str = "x", new: str = "y") -> dict[str, Any]:
    return {"edits": [{"old_string": old, "new_string": new}]}


@requirement("multi_edit:error:file_not_found", "multi_edit:error:default_plane", "multi_edit:error:contract_plane")
def test_a_missing_file_is_named(desk: Desk) -> None:
    told = desk.multi_edit("missing.txt", ("x", "y")).told

    assert told == (-32001, f"File not found: {desk.path('missing.txt')}")


IN_THE_LIBRARY = """
import json, os, sys
from pathlib import Path
from surehold import Settings, open_workspace

def answers(root, calls):
    with open_workspace(root / "files", settings=Settings(state_dir=root / "state")) as workspace:
        session = workspace.session(agent="test")
        return [session.answer(tool, arguments).data for tool, arguments in calls]

root, calls = Path(sys.argv[1]), json.loads(sys.argv[2])
"""
AS_NOBODY = """
if not os.geteuid():  # root is denied nothing
    (root / "first" / "files").mkdir(parents=True)
    # Nobody may not read the modules, so they are all loaded before: those of refusals, and those of a change.
    answers(root / "first", [*calls, ["create_file", {"path": "new.txt", "content": "x"}]])
    os.setgid(65534); os.setuid(65534)
"""
PRINTED = "print(json.dumps(answers(root, calls)))"


@requirement("multi_edit:error:permission_denied", "multi_edit:sibling:write_text_file")
def test_what_the_operating_system_denies_is_denied() -> None:
    with tempfile.TemporaryDirectory() as folder:  # not below tmp_path, whose parents nobody may enter
        files = Path(folder, "files")
        (files / "closed").mkdir(parents=True)
        (files / "secret.txt").write_text("x")
        (files / "fixed.txt").write_text("x")
        for path, mode in ((folder, 0o777), (files, 0o777), (files / "secret.txt", 0), (files / "fixed.txt", 0o444)):
            Path(path).chmod(mode)
        (files / "closed").chmod(0o555)
        calls = [
            ("multi_edit_text_file", {"path": f"{files}/secret.txt", **one()}),
            ("multi_edit_text_file", {"path": f"{files}/fixed.txt", **one()}),
            ("read_text_file", {"path": f"{files}/secret.txt"}),
            ("write_text_file", {"path": f"{files}/closed/a.txt", "content": "x"}),
        ]

        command = [sys.executable, "-c", IN_THE_LIBRARY + AS_NOBODY + PRINTED, folder, json.dumps(calls)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)

        errors = [row["error"] for row in json.loads(done.stdout)]
        assert (files / "fixed.txt").read_text() == "x"
    assert [(error["code"], error["message"]) for error in errors] == [
        (-32002, f"Permission denied: {arguments['path']}") for _, arguments in calls
    ]


ON_A_SMALL_DISK = """
mount -t tmpfs -o size=16k tmpfs "$1/files" || exit 77
echo x > "$1/files/a.txt"
"$2" -c "$3" "$1" "$4"
mount -o remount,ro "$1/files" || exit 77
"$2" -c "$3" "$1" "$5"
cat "$1/files/a.txt"; ls "$1/files"
"""


@requirement("multi_edit:sibling:write_text_file")
@pytest.mark.skipif(not shutil.which("unshare"), reason="nothing can be mounted here")
def test_a_full_disk_and_a_read_only_one_have_their_own_words(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    old, new = f"{tmp_path}/files/a.txt", f"{tmp_path}/files/new.txt"
    large = "y" * 30_000
    full = [
        ("write_text_file", {"path": new, "content": large}),
        ("multi_edit_text_file", {"path": old, **one(new=large)}),
        ("edit_text_file", {"path": old, "old_string": "x", "new_string": large}),
    ]
    words = [sys.executable, IN_THE_LIBRARY + PRINTED, json.dumps(full), json.dumps([("write_text_file", full[0][1])])]
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", ON_A_SMALL_DISK, "sh", str(tmp_path), *words]

    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)

    if done.returncode == 77 or not done.stdout:
        pytest.skip("nothing can be mounted here")
    no_space, fixed, *left = done.stdout.splitlines()
    assert [(row["error"]["code"], row["error"]["message"]) for row in json.loads(no_space)] == [
        (-32005, f"Disk full: cannot write 30000 bytes to {new}"),
        (-32005, f"Disk full: cannot write to {old}"),
        (-32005, f"Disk full: cannot write to {old}"),
    ]
    assert [(row["error"]["code"], row["error"]["message"]) for row in json.loads(fixed)] == [
        (-32002, f"Read-only filesystem: {new}")
    ]
    assert left == ["x", "a.txt"]


@requirement("multi_edit:error:permission_denied")
def test_a_protected_file_is_denied_and_the_rule_is_named(desk: Desk) -> None:
    Path(desk.path(".git")).mkdir()
    desk.put(".git/config", "x")

    reply = desk.multi_edit(".git/config", ("x", "y"))

    assert reply.told == (-32002, f"Permission denied: {desk.path('.git/config')}")
    assert reply.error["data"]["kind"] == "permission_denied"
    assert desk.get(".git/config") == b"x"


@requirement("multi_edit:error:outside_roots")
@pytest.mark.parametrize("path", [OUTSIDE, "/", "/proc/self/mem"])
def test_a_path_outside_of_the_roots_is_denied(desk: Desk, path: str) -> None:
    reply = desk.way.call("multi_edit_text_file", {"path": path, **one()})

    assert reply.told == (-32002, f"Permission denied: {path}")


@requirement("multi_edit:error:outside_roots")
def test_a_link_that_leads_out_of_the_roots_is_denied(desk: Desk) -> None:
    Path(desk.path("link.txt")).symlink_to(OUTSIDE)

    assert desk.multi_edit("link.txt", ("x", "y")).told == (-32002, f"Permission denied: {desk.path('link.txt')}")


@requirement("multi_edit:error:relative_path")
@pytest.mark.parametrize("path", ["file.txt", "./file.txt", "~/file.txt", ""])
def test_a_relative_path_is_refused_before_anything_else(desk: Desk, path: str) -> None:
    reply = desk.way.call("multi_edit_text_file", {"path": path, "edits": []})

    assert reply.told == (-32600, f"Path must be absolute: {path}")


def test_an_empty_array_is_refused_before_the_file_is_looked_at(desk: Desk) -> None:
    assert desk.multi_edit("missing.txt").told == (-32600, "Edits array cannot be empty")


@requirement("multi_edit:error:binary")
def test_a_binary_file_is_refused(desk: Desk) -> None:
    desk.put("image.png", b"\x89PNG\0\0\0x")

    assert desk.multi_edit("image.png", ("x", "y")).told == (
        -32004,
        f"Cannot edit binary file: {desk.path('image.png')}",
    )


def test_a_directory_and_a_pipe_are_no_files(desk: Desk) -> None:
    Path(desk.path("folder")).mkdir()
    os.mkfifo(desk.path("pipe"))

    assert desk.multi_edit("folder", ("x", "y")).told == (-32003, f"{desk.path('folder')} is a directory")
    assert desk.multi_edit("pipe", ("x", "y")).told == (-32003, f"{desk.path('pipe')} is not a file")


@requirement("multi_edit:error:conflict")
@pytest.mark.parametrize(
    "edits",
    [(("ab", "x"), ("bc", "y")), (("b", "x"), ("abc", "y")), (("abc", "x"), ("b", "y")), (("bc", "x"), ("ab", "y"))],
    ids=["behind", "inside", "around", "before"],
)
def test_a_string_of_which_another_edit_took_a_part_is_a_conflict(
    desk: Desk, edits: tuple[tuple[str, str], tuple[str, str]]
) -> None:
    desk.put("file.txt", "abc\n")

    assert desk.multi_edit("file.txt", *edits).told == (-32012, "Edit 1 conflicts with edit 0")
    assert desk.get("file.txt") == b"abc\n"


@requirement("multi_edit:error:conflict")
def test_the_edit_that_took_the_part_is_named_and_not_one_that_came_later(desk: Desk) -> None:
    desk.put("file.txt", "one two three\n")

    reply = desk.multi_edit("file.txt", ("one", "1"), ("two", "2"), ("2", "zwei"), ("two three", "x"))

    assert reply.told == (-32012, "Edit 3 conflicts with edit 1")
    assert reply.error["data"]["prior_index"] == 1


@requirement("multi_edit:error:conflict")
def test_a_string_that_stood_twice_before_one_was_replaced_is_not_found_but_no_conflict(desk: Desk) -> None:
    desk.put("file.txt", "ab ab b\n")

    told = desk.multi_edit("file.txt", ("ab ab", "x"), ("ab", "y")).told

    assert told == (-32010, "Edit 1: String not found: ab")


@requirement("multi_edit:edit:unique")
def test_text_that_overlaps_itself_stands_twice(desk: Desk) -> None:
    desk.put("file.txt", "aaa")

    assert desk.multi_edit("file.txt", ("aa", "b")).told == (-32011, "Edit 0: String appears 2 times: aa")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("", "x", "Edit 0: old_string cannot be empty"), ("x", "x", "Edit 0: old_string and new_string are identical")],
)
def test_edits_that_say_nothing_are_invalid_requests(desk: Desk, old: str, new: str, message: str) -> None:
    desk.put("file.txt", "x")

    assert desk.multi_edit("file.txt", (old, new)).told == (-32600, message)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"edits": []}, "`path`"),
        ({"path": "/x"}, "`edits`"),
        ({"path": "/x", "edits": "all"}, "`edits`"),
        ({"path": 7, "edits": []}, "`path`"),
        ({"path": "/x", "edits": [{"old_string": "a"}]}, "`new_string` of edit 0"),
        (
            {"path": "/x", "edits": [{"old_string": "a", "new_string": "b", "replace_all": True}]},
            "`replace_all` of edit 0",
        ),
    ],
)
def test_arguments_that_cannot_be_used_are_named(desk: Desk, arguments: dict[str, Any], named: str) -> None:
    code, message = desk.way.call("multi_edit_text_file", arguments).told

    assert code == -32602
    assert message.startswith(f"`multi_edit_text_file` cannot use {named}:")


def test_a_long_string_is_cut_in_the_message_and_whole_in_the_data(desk: Desk) -> None:
    desk.put("file.txt", "x")
    long = "y" * 5_000

    reply = desk.multi_edit("file.txt", (long, "z"))

    assert reply.told == (-32010, f"Edit 0: String not found: {'y' * 200}…")
    assert reply.error["data"]["old_string"] == long


def test_ten_megabytes_that_are_not_there_are_refused_with_a_small_answer(desk: Desk) -> None:
    desk.put("file.txt", "x\n" * 1000)

    reply = desk.multi_edit("file.txt", ("y" * 10_000_000, "z"))

    assert reply.told[0] == -32010
    assert len(json.dumps(reply.error)) < 50_000


def test_a_zero_byte_is_not_written(desk: Desk) -> None:
    desk.put("file.txt", "x")

    reply = desk.multi_edit("file.txt", ("x", "a\0b"))

    assert reply.error["data"]["reason"] == "zero_byte"
    assert desk.get("file.txt") == b"x"


@requirement("promise:refusal:carries_data")
def test_a_refusal_carries_what_the_next_call_needs(desk: Desk) -> None:
    desk.put("file.txt", "def f():\n\treturn 1\n")

    data = desk.multi_edit("file.txt", ("    return 1", "    return 2")).error["data"]

    assert data["kind"] == "old_text_not_found"
    assert data["closest"] == [{"line": 2, "text": "\treturn 1"}]
    assert data["suggested_action"]


@requirement("multi_edit:error:default_plane")
def test_the_text_of_a_refusal_begins_with_the_message_and_says_that_nothing_was_written(served: Desk) -> None:
    served.put("file.txt", "x\ny\nx\n")

    reply = served.multi_edit("file.txt", ("x", "z"))

    assert reply.text.split("\n") == [
        "Edit 0: String appears 2 times: x",
        "Nothing was written. Include more of the lines around it in old_string, so that it occurs only once.",
        "lines: 1, 3",
    ]


def test_a_wrong_sha256_is_refused_and_the_right_one_is_not(desk: Desk) -> None:
    sha = desk.put("file.txt", "one\n")

    told = desk.multi_edit("file.txt", ("one", "two"), expected_sha256="0" * 64).told

    assert told == (-32009, f"File changed since it was read: {desk.path('file.txt')}")
    assert desk.multi_edit("file.txt", ("one", "two"), expected_sha256=sha).result["success"] is True


def test_every_refusal_is_in_the_ledger_once(ways: dict[str, tuple[Way, Path]]) -> None:
    way, root = ways["library"]
    (root / "noted.txt").write_text("x")
    desk = Desk(way, root)

    desk.multi_edit("noted.txt", ("nope", "y"))
    desk.multi_edit("noted.txt")
    desk.way.call("multi_edit_text_file", {"path": "noted.txt", "edits": []})

    assert isinstance(way, Library)
    kinds = [entry.error_kind for entry in way.workspace.store.list_entries(LedgerQuery(limit=3))]
    assert kinds == ["command_failed", "command_failed", "old_text_not_found"]


def test_a_file_that_another_program_changes_meanwhile_keeps_what_that_program_wrote(
    ways: dict[str, tuple[Way, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    way, root = ways["library"]
    file, saved = root / "shared.txt", root / "saved.txt"
    file.write_text("one two\n")
    splice = StagedText.replace_spans

    def meddled(staged: StagedText, after: Snapshot, spans: Sequence[Span], owners: Sequence[int]) -> None:
        saved.write_text("theirs\n")
        saved.replace(file)  # a program that opens the file itself waits until the edit is over
        splice(staged, after, spans, owners)

    monkeypatch.setattr(StagedText, "replace_spans", meddled)

    reply = Desk(way, root).multi_edit("shared.txt", ("one", "1"), ("two", "2"))

    assert reply.told == (-32010, "Edit 0: String not found: one")
    assert file.read_text() == "theirs\n"


def test_content_that_a_person_wanted_instead_is_what_the_diff_shows(ways: dict[str, tuple[Way, Path]]) -> None:
    way, root = ways["library"]
    assert isinstance(way, Library)
    (root / "asked.txt").write_text("one\n")

    def approver(request: PermissionRequest) -> Approval:
        return Approval(allowed=True, contents={one.path: "another\n" for one in request.files})

    session = way.workspace.session(agent="test", mode="default", approver=approver)
    edits = [{"old_string": "one", "new_string": "two"}]
    answer = session.answer("multi_edit_text_file", {"path": str(root / "asked.txt"), "edits": edits})

    assert (root / "asked.txt").read_text() == "another\n"
    assert answer.structured == {
        "success": True,
        "diff": "--- asked.txt\n+++ asked.txt\n@@ -1 +1 @@\n-one\n+another\n",
        "applied_count": 0,
        "line_ranges": [],
    }
    assert len(answer.data["_meta"]["warnings"]) == 1
    assert answer.text.startswith("Written as the person who allowed it wanted.\n")


def test_a_refused_permission_is_a_permission_denied(ways: dict[str, tuple[Way, Path]]) -> None:
    way, root = ways["library"]
    assert isinstance(way, Library)
    (root / "asked.txt").write_text("one\n")
    session = way.workspace.session(agent="test", mode="plan")

    edits = [{"old_string": "one", "new_string": "two"}]
    answer = session.answer("multi_edit_text_file", {"path": str(root / "asked.txt"), "edits": edits})

    assert answer.data["error"]["code"] == -32002
    assert answer.data["error"]["message"] == f"Permission denied: {root / 'asked.txt'}"
    assert answer.data["error"]["data"]["reason"] == "plan_mode"


@pytest.mark.parametrize("start", ["", "/"])
def test_a_path_of_a_megabyte_is_refused_with_a_small_answer(desk: Desk, start: str) -> None:
    reply = desk.way.call("multi_edit_text_file", {"path": start + "x" * 1_000_000, **one()})

    assert len(json.dumps(reply.error)) < 2_000
    assert reply.error["data"]["path"] == f"{start}{'x' * (200 - len(start))}…"

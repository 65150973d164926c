import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialects.place import Place, sha256
from front.mcp.client import ServerEnded, StdioClient, surehold
from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.dialects.files.apply_patch import apply_patch
from surehold.tools.call import CallContext
from waiting import wait_until

GIT = """\
diff --git a/{0}/old.txt b/{0}/new.txt
similarity index 50%
rename from {0}/old.txt
rename to {0}/new.txt
--- a/{0}/old.txt
+++ b/{0}/new.txt
@@ -1,2 +1,2 @@
 one
-two
+TWO
diff --git a/{0}/run.sh b/{0}/run.sh
old mode 100644
new mode 100755
diff --git a/{0}/gone.txt b/{0}/gone.txt
deleted file mode 100644
--- a/{0}/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/{0}/fresh.txt b/{0}/fresh.txt
new file mode 100755
--- /dev/null
+++ b/{0}/fresh.txt
@@ -0,0 +1 @@
+hi
"""


def envelope(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


@requirement("files:apply_patch:envelope", "files:apply_patch:changed_files", "files:apply_patch:format")
def test_an_envelope_adds_updates_deletes_and_moves(place: Place) -> None:
    before = {
        name: place.put(name, data)
        for name, data in {
            "a.py": b"def f():\r\n    return 1\r\n",
            "b.py": b"x = 1\n",
            "c.py": b"bye\n",
            "d.png": b"\0\1",
        }.items()
    }
    patch = envelope(
        f"*** Update File: {place.path('a.py')}",
        "@@ def f():",
        "-    return 1",
        "+    return 2",
        f"*** Update File: {place.path('b.py')}",
        f"*** Move to: {place.path('sub/b.py')}",
        "@@",
        "-x = 1",
        "+x = 2",
        f"*** Delete File: {place.path('c.py')}",
        f"*** Move File: {place.path('d.png')} -> {place.path('e.png')}",
        f"*** Add File: {place.path('new.py')}",
        "+one",
        "+two",
    )

    unquoted = {place.path(name): before[name] for name in ("c.py", "d.png")}
    data = place.call("apply_patch", patch=patch, expectedSha256ByPath=unquoted).data

    assert place.get("a.py") == b"def f():\r\n    return 2\r\n"
    assert (place.get("sub/b.py"), place.get("e.png"), place.get("new.py")) == (b"x = 2\n", b"\0\1", b"one\ntwo\n")
    assert [place.file(name).exists() for name in ("b.py", "c.py", "d.png")] == [False] * 3
    rows = {Path(row["path"]).name: row for row in data["changedFiles"]}
    assert (data["format"], [row["operation"] for row in data["changedFiles"]]) == (
        "envelope",
        ["update", "move", "delete", "move", "add"],
    )
    assert {name: rows[name].get("beforeSha256") for name in before} == before
    assert rows["a.py"]["afterSha256"] == sha256(place.get("a.py"))
    assert rows["b.py"]["toPath"] == place.path("sub/b.py")
    assert "-    return 1\r\n+    return 2\r\n" in rows["a.py"]["diff"]
    assert place.call("restore_file", trashedPath=rows["c.py"]["trashedTo"]).ok
    assert data["hunkCount"] >= 3


@requirement("files:apply_patch:unified")
def test_a_unified_diff_is_applied(place: Place) -> None:
    place.put("a.txt", b"one\ntwo\nthree\n")
    name = place.path("a.txt")
    patch = f"--- a/{name}\n+++ b/{name}\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"

    data = place.call("apply_patch", patch=patch).data

    assert (data["format"], data["hunkCount"], place.get("a.txt")) == ("unified", 1, b"one\nTWO\nthree\n")


@requirement("files:apply_patch:git")
def test_a_git_diff_renames_deletes_creates_and_changes_modes(place: Place) -> None:
    place.put("old.txt", b"one\ntwo\n")
    place.put("run.sh", b"true\n")
    place.file("run.sh").chmod(0o600)
    place.put("gone.txt", b"bye\n")

    data = place.call("apply_patch", patch=GIT.format(place.name)).data

    assert data["format"] == "git"
    assert [row["operation"] for row in data["changedFiles"]] == ["move", "update", "delete", "add"]
    assert (place.get("new.txt"), place.get("fresh.txt")) == (b"one\nTWO\n", b"hi\n")
    assert not place.file("gone.txt").exists()
    assert stat.S_IMODE(place.file("run.sh").stat().st_mode) == 0o700
    assert stat.S_IMODE(place.file("fresh.txt").stat().st_mode) == 0o755


@requirement("files:apply_patch:exact", "files:apply_patch:apply_error")
def test_context_that_does_not_stand_there_exactly_or_stands_twice_is_refused(place: Place) -> None:
    place.put("a.txt", b"x\ny\nx\ny\n")
    path = place.path("a.txt")

    near = place.call("apply_patch", patch=envelope(f"*** Update File: {path}", "@@", "- y", "+z"))
    twice = place.call("apply_patch", patch=envelope(f"*** Update File: {path}", "@@", " x", "-y", "+z"))

    assert [(a.error["kind"], a.error["path"], a.error["details"]["hunk"]) for a in (near, twice)] == [
        ("patch_apply_error", path, 0)
    ] * 2
    assert twice.error["reason"] == "context_ambiguous"
    assert place.get("a.txt") == b"x\ny\nx\ny\n"


@requirement("files:apply_patch:parse_error")
@pytest.mark.parametrize(
    ("patch", "line"),
    [
        ("", None),
        ("   \n", None),
        ("*** Begin Patch\n*** End Patch\n", None),
        ("*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n", None),
        ("*** Begin Patch\n*** Frobnicate File: a\n*** End Patch\n", 2),
        ("*** Begin Patch\n*** Add File: a\nno plus\n*** End Patch\n", 3),
        ("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n", None),
        ("hello", 1),
    ],
)
def test_what_is_no_patch_is_refused_with_the_line_and_what_was_expected(
    place: Place, patch: str, line: int | None
) -> None:
    error = place.call("apply_patch", patch=patch).error

    assert (error["kind"], bool(error["details"]["expected"])) == ("patch_parse_error", True)
    assert line is None or error["details"]["line"] == line
    assert str(error["details"]["line"]) in error["message"]


def test_a_path_twice_is_refused(place: Place) -> None:
    place.put("a.txt", b"x\n")
    path = place.path("a.txt")
    patch = envelope(f"*** Update File: {path}", "@@", "-x", "+y", f"*** Delete File: {path}")
    other_spelling = envelope(f"*** Update File: {path}", "@@", "-x", "+y", f"*** Delete File: ./{path}")

    answers = [place.call("apply_patch", patch=one) for one in (patch, other_spelling)]

    assert [answer.error["reason"] for answer in answers] == ["duplicate_path"] * 2
    assert place.get("a.txt") == b"x\n"


def test_a_patch_that_leaves_the_root_is_refused(place: Place) -> None:
    for path in ("../outside.txt", "/etc/surehold-test", f"{place.name}/../../outside.txt"):
        answer = place.call("apply_patch", patch=envelope(f"*** Add File: {path}", "+x"))

        assert answer.error["kind"] == "outside_workspace"


@requirement("files:stale:patch_sentinel")
def test_the_empty_sha256_says_that_an_added_file_must_not_exist(place: Place) -> None:
    path = place.path("new.txt")
    patch = envelope(f"*** Add File: {path}", "+x")

    other = place.call("apply_patch", patch=patch, expectedSha256ByPath={path: "0" * 64})
    absent = place.call("apply_patch", patch=patch, expectedSha256ByPath={path: ""})
    there = place.call("apply_patch", patch=patch, expectedSha256ByPath={path: ""})

    assert (other.error["kind"], other.error["reason"]) == ("stale_file", "sentinel_mismatch")
    assert absent.ok
    assert there.error["kind"] == "already_exists"


@requirement("files:stale:patch_sentinel")
def test_the_empty_sha256_for_a_file_that_is_updated_is_stale(place: Place) -> None:
    place.put("a.txt", b"x\n")
    path = place.path("a.txt")
    patch = envelope(f"*** Update File: {path}", "@@", "-x", "+y")

    assert place.call("apply_patch", patch=patch, expectedSha256ByPath={path: ""}).error["kind"] == "stale_file"
    assert place.get("a.txt") == b"x\n"


@requirement("files:stale:patch_absent_key")
def test_a_path_that_is_not_in_the_map_is_not_checked(place: Place) -> None:
    digest = place.put("a.txt", b"x\n")
    place.put("b.txt", b"changed meanwhile\nx\n")
    patch = envelope(
        f"*** Update File: {place.path('a.txt')}",
        "@@",
        "-x",
        "+y",
        f"*** Update File: {place.path('b.txt')}",
        "@@",
        "-x",
        "+y",
    )

    answer = place.call("apply_patch", patch=patch, expectedSha256ByPath={f"./{place.path('a.txt')}": digest})

    assert answer.ok
    assert place.get("b.txt") == b"changed meanwhile\ny\n"


@requirement("files:stale:patch_foreign_key")
def test_a_key_that_the_patch_does_not_touch_is_an_error(place: Place) -> None:
    place.put("a.txt", b"x\n")
    patch = envelope(f"*** Update File: {place.path('a.txt')}", "@@", "-x", "+y")

    error = place.call("apply_patch", patch=patch, expectedSha256ByPath={place.path("b.txt"): "0" * 64}).error

    assert (error["kind"], error["reason"]) == ("patch_apply_error", "unknown_expected_path")
    assert place.get("a.txt") == b"x\n"


def test_a_patch_that_deletes_what_changed_is_stale(place: Place) -> None:
    seen = place.put("a.txt", b"x\n")
    place.put("a.txt", b"precious\n")
    patch = envelope(f"*** Delete File: {place.path('a.txt')}")

    answer = place.call("apply_patch", patch=patch, expectedSha256ByPath={place.path("a.txt"): seen})

    assert answer.error["kind"] == "stale_file"
    assert place.get("a.txt") == b"precious\n"


def delete_in_envelope(path: str) -> str:
    return envelope(f"*** Delete File: {path}")


def delete_in_git(path: str) -> str:
    return f"diff --git a/{path} b/{path}\ndeleted file mode 100644\nindex 1234567..0000000\n"


def move_in_envelope(path: str) -> str:
    return envelope(f"*** Move File: {path} -> {path}.moved")


def move_in_git(path: str) -> str:
    return f"diff --git a/{path} b/{path}.moved\nsimilarity index 100%\nrename from {path}\nrename to {path}.moved\n"


def move_with_an_added_line(path: str) -> str:
    return envelope(f"*** Update File: {path}", f"*** Move to: {path}.moved", "@@", "+added", "*** End of File")


unquoted = pytest.mark.parametrize(
    "write_patch", [delete_in_envelope, delete_in_git, move_in_envelope, move_in_git, move_with_an_added_line]
)


@requirement("files:stale:patch_unquoted")
@unquoted
def test_a_file_that_was_never_shown_is_neither_deleted_nor_moved(
    place: Place, write_patch: Callable[[str], str]
) -> None:
    seen = place.put("a.txt", b"precious\n")
    patch = write_patch(place.path("a.txt"))

    answer = place.call("apply_patch", patch=patch)
    one_by_one = place.call("apply_patch", patch=patch, atomic=False)

    assert (answer.error["kind"], answer.error["reason"]) == ("stale_file", "not_seen")
    assert "expectedSha256ByPath" in answer.error["suggestedNextAction"]
    assert (one_by_one.error["kind"], one_by_one.error["reason"]) == ("stale_file", "not_seen")
    assert place.get("a.txt") == b"precious\n"
    assert not place.file("a.txt.moved").exists()
    assert place.call("apply_patch", patch=patch, expectedSha256ByPath={place.path("a.txt"): seen}).ok
    assert not place.file("a.txt").exists()


@requirement("files:stale:patch_unquoted")
@unquoted
def test_a_file_is_deleted_or_moved_after_it_was_shown_but_not_after_it_changed(
    place: Place, write_patch: Callable[[str], str]
) -> None:
    place.put("a.txt", b"one\n")
    patch = write_patch(place.path("a.txt"))
    place.on("read_file", "a.txt")
    changed = place.put("a.txt", b"two\n")

    answer = place.call("apply_patch", patch=patch)

    assert (answer.error["kind"], answer.error["reason"]) == ("stale_file", "changed_since")
    assert (answer.error["details"]["expectedSha256"], answer.error["details"]["actualSha256"]) == (
        sha256(b"one\n"),
        changed,
    )
    assert place.get("a.txt") == b"two\n"
    place.on("read_file", "a.txt")
    assert place.call("apply_patch", patch=patch).ok
    assert not place.file("a.txt").exists()


@requirement("files:stale:patch_unquoted")
def test_a_deletion_that_quotes_every_line_is_its_own_proof(place: Place) -> None:
    place.put("a.txt", b"one\ntwo\n")
    place.put("empty.txt", b"")
    name = place.path("a.txt")

    assert place.call("apply_patch", patch=f"--- a/{name}\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n").ok
    assert place.call("apply_patch", patch=delete_in_git(place.path("empty.txt"))).ok
    assert not place.file("a.txt").exists()
    assert not place.file("empty.txt").exists()


def three_files(place: Place, third: str) -> str:
    for name in ("a", "b", "c"):
        place.put(name, b"old\n")
    return envelope(
        *(row for name in ("a", "b") for row in (f"*** Update File: {place.path(name)}", "@@", "-old", f"+new {name}")),
        f"*** Update File: {place.path('c')}",
        "@@",
        f"-{third}",
        "+new c",
    )


@requirement("files:apply_patch:atomic")
def test_a_patch_whose_third_file_fails_leaves_all_three_untouched(place: Place) -> None:
    answer = place.call("apply_patch", patch=three_files(place, "something else"))

    assert (answer.error["kind"], answer.error["path"]) == ("patch_apply_error", place.path("c"))
    assert answer.text.startswith("Nothing was written. ")
    assert [place.get(name) for name in ("a", "b", "c")] == [b"old\n"] * 3


def test_a_dry_run_of_a_patch_shows_every_difference_and_writes_nothing(place: Place) -> None:
    answer = place.call("apply_patch", patch=three_files(place, "old"), dryRun=True)

    assert [row["diff"].count("+new") for row in answer.data["changedFiles"]] == [1, 1, 1]
    assert "+new c" in answer.text
    assert [place.get(name) for name in ("a", "b", "c")] == [b"old\n"] * 3


def test_without_atomic_each_file_stands_for_itself(place: Place) -> None:
    answer = place.call("apply_patch", patch=three_files(place, "something else"), atomic=False)

    assert answer.ok is False
    data: dict[str, Any] = answer.result["data"]
    assert [row["path"] for row in data["changedFiles"]] == [place.path("a"), place.path("b")]
    assert [(row["path"], row["error"]["kind"]) for row in data["failedFiles"]] == [
        (place.path("c"), "patch_apply_error")
    ]
    assert len(data["changeIds"]) == 2
    assert [place.get(name) for name in ("a", "b", "c")] == [b"new a\n", b"new b\n", b"old\n"]


def test_a_patch_that_was_applied_already_says_so(place: Place) -> None:
    place.put("a.txt", b"above\nx\n")
    patch = envelope(f"*** Update File: {place.path('a.txt')}", "@@", " above", "-x", "+y")
    place.call("apply_patch", patch=patch)

    error = place.call("apply_patch", patch=patch).error

    assert (error["kind"], error["details"]["alreadyApplied"]) == ("patch_apply_error", True)


@requirement("files:apply_patch:atomic")
def test_a_server_killed_in_the_middle_of_a_patch_leaves_all_or_none_after_recovery(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    names = [f"f{n}" for n in range(40)]
    outcomes = set[str]()
    for attempt, seen in enumerate((None, "f0", "f1", "f12", "f25", "f9")):  # in the order in which they are replaced
        for name in names:
            (root / name).write_text("old\n")
        patch = envelope(*(r for name in names for r in (f"*** Update File: {name}", "@@", "-old", f"+new {attempt}")))
        client = StdioClient(surehold("mcp", root, "--state-dir", state))
        client.call("read_file", {"path": "f0"})
        if seen is None:
            os.kill(client.process.pid, signal.SIGSTOP)
        client.start_call("apply_patch", {"patch": patch})
        wait_until(lambda seen=seen: seen is None or (root / seen).read_text() != "old\n")
        os.kill(client.process.pid, signal.SIGKILL)
        client.process.wait()
        with pytest.raises((ServerEnded, OSError)):
            client.call("read_file", {"path": "f0"})
        client.close()
        recover = [sys.executable, "-m", "surehold", "--root", str(root), "--state-dir", str(state), "recover"]
        subprocess.run(recover, check=True, capture_output=True)

        texts = {(root / name).read_text() for name in names}
        assert texts in ({"old\n"}, {f"new {attempt}\n"})
        assert sorted(path.name for path in root.iterdir()) == sorted(names)
        outcomes |= texts

    assert "old\n" in outcomes


def test_a_patch_that_failed_in_part_says_what_went_wrong_and_what_is_there(place: Place) -> None:
    answer = place.call("apply_patch", patch=three_files(place, "olb"), atomic=False)

    assert (answer.result["error"]["kind"], answer.raw["structuredContent"]["error"]["kind"]) == (
        "patch_apply_error",
    ) * 2
    assert "1 of 3 files" in answer.result["error"]["message"]
    for change_id in answer.result["data"]["changeIds"]:
        assert change_id in answer.text
    assert answer.text.startswith("2 files changed; 1 file failed")


def test_a_patch_that_had_nothing_to_do_does_not_say_that_it_was_applied(place: Place) -> None:
    digest = place.put("a.txt", b"x\n")
    place.on("read_file", "a.txt")
    path = place.path("a.txt")
    call = {"patch": envelope(f"*** Update File: {path}", "@@", "-x", "+y"), "expectedSha256ByPath": {path: digest}}

    first, second = place.call("apply_patch", **call), place.call("apply_patch", **call)

    assert first.text.startswith("Patch applied: 1 file, 1 hunk")
    assert second.text.startswith("Nothing had to be written")
    assert (second.data["alreadyApplied"], second.data["changeId"]) == (True, "")


def test_an_anchor_reaches_only_as_far_as_what_it_opens(place: Place) -> None:
    place.put("a.py", b"def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 1\n    return x\n")
    patch = envelope(
        f"*** Update File: {place.path('a.py')}", "@@ def a():", "-    x = 1", "+    x = 2", "     return x"
    )

    assert place.call("apply_patch", patch=patch).ok
    assert place.get("a.py") == b"def a():\n    x = 2\n    return x\n\n\ndef b():\n    x = 1\n    return x\n"


def test_a_refused_patch_is_in_the_log_with_the_path_it_is_about(place: Place) -> None:
    place.put("a.txt", b"x\n")
    place.call("apply_patch", patch=envelope(f"*** Add File: {place.path('../../outside')}", "+x"))

    assert "outside" in place.shell("log", "--all", "--json")


@pytest.mark.parametrize("tool", ["create_file", "apply_patch", "move_file"])
def test_a_directory_where_a_file_is_to_be_exists_already(place: Place, tool: str) -> None:
    digest = place.put("a.txt", b"x\n")
    place.put("d/inner.txt", b"y\n")
    calls: dict[str, dict[str, Any]] = {
        "create_file": {"path": place.path("d"), "content": "x"},
        "apply_patch": {"patch": envelope(f"*** Add File: {place.path('d')}", "+x")},
        "move_file": {"fromPath": place.path("a.txt"), "toPath": place.path("d"), "expectedSha256": digest},
    }

    error = place.call(tool, **calls[tool]).error

    assert (error["kind"], error["reason"]) == ("already_exists", "directory")


def test_a_call_that_is_cancelled_between_its_files_says_what_was_changed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name in ("a", "b", "c"):
        (root / name).write_text("old\n")
    patch = envelope(*(r for name in ("a", "b", "c") for r in (f"*** Update File: {name}", "@@", "-old", "+new")))
    settings = Settings(state_dir=tmp_path / "state", durability="none")
    with open_workspace(root, settings=settings) as workspace:
        context = CallContext(session=workspace.session(), cancelled=lambda: (root / "a").read_text() == "new\n")
        answer = apply_patch.call(context, {"patch": patch, "atomic": False})

    assert answer.ok is False
    assert [row["path"] for row in answer.data["data"]["changedFiles"]] == ["a"]
    assert [(row["path"], row["error"]["reason"]) for row in answer.data["data"]["failedFiles"]] == [
        ("b", "cancelled"),
        ("c", "cancelled"),
    ]
    assert [(root / name).read_text() for name in ("a", "b", "c")] == ["new\n", "old\n", "old\n"]

import sqlite3
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from dialects.place import Place
from front.mcp.client import StdioClient, surehold
from spec.marks import requirement


@requirement("files:audit:every_call")
def test_every_modifying_call_is_in_the_log_failed_ones_too(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")
    place.on("edit_file", "a.txt", expectedSha256=digest, edits=[{"oldText": "one", "newText": "1"}], reason="why not")
    place.on("write_file", "a.txt", expectedSha256=digest, content="x")
    place.on("write_file", "a.txt", content="x")
    place.on("read_file", "a.txt")

    refused_early, refused, edited = place.entries()

    assert (edited["tool"], edited["operation"], edited["ok"], edited["reason"]) == (
        "edit_file",
        "edit",
        True,
        "why not",
    )
    assert (edited["before"]["sha256"], edited["agent"], edited["path"]) == (digest, "claude-code", place.path("a.txt"))
    assert (refused["tool"], refused["ok"], refused["error_kind"]) == ("write_file", False, "stale_file")
    assert (refused_early["tool"], refused_early["error_kind"]) == ("write_file", "command_failed")
    assert datetime.fromisoformat(edited["timestamp"]).tzinfo
    assert len({row["session"] for row in (refused_early, refused, edited)}) == 1
    assert edited["seq"] < refused["seq"] < refused_early["seq"]
    assert (refused["previous_hash"], refused_early["previous_hash"]) == (edited["hash"], refused["hash"])
    assert "-one\n+1" in place.shell("show", edited["change_id"])


@requirement("files:audit:every_call")
def test_a_change_of_an_agent_is_undone_by_a_person(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")
    change = place.on("edit_file", "a.txt", expectedSha256=digest, edits=[{"oldText": "one", "newText": "1"}]).data[
        "changeId"
    ]

    place.shell("undo", change)

    assert place.get("a.txt") == b"one\n"


@requirement("files:audit:verify")
def test_an_altered_entry_is_named(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    with StdioClient(surehold("mcp", root, "--state-dir", state)) as client:
        for name in ("a", "b", "c"):
            client.call("create_file", {"path": name, "content": name})
    with sqlite3.connect(state / "state.db") as database:
        database.execute("DROP TRIGGER entries_are_never_changed")
        database.execute("UPDATE entries SET body = replace(body, 'create_file', 'nobody') WHERE seq = 2")
    database.close()

    command = [sys.executable, "-m", "surehold", "--root", str(root), "--state-dir", str(state), "verify"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)

    assert said.returncode == 1
    assert "entry 2" in (said.stdout + said.stderr).lower()

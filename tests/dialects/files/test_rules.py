"""What a rule hides stays hidden, by every way in."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialects.place import Outcome, Place, sha256
from front.mcp.client import RpcFailed, StdioClient, surehold
from spec.marks import requirement

SECRET = "SECRET=hunter2\n"


@pytest.fixture
def hiding(tmp_path: Path) -> Iterator[Place]:
    """A workspace in which `.env` was written and deleted once, and is denied now."""
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    with StdioClient(surehold("mcp", root, "--state-dir", state)) as client:
        client.call("create_file", {"path": ".env", "content": SECRET})
        client.call("create_file", {"path": "a.txt", "content": "plain\n"})
    with StdioClient(surehold("mcp", root, "--state-dir", state, "--deny", ".env")) as client:
        yield Place(client, root, state, ".")


def test_a_stale_refusal_shows_only_versions_that_this_session_was_shown_of_this_file(hiding: Place) -> None:
    answer = hiding.call("write_file", path="a.txt", content="w", expectedSha256=sha256(SECRET.encode()))

    assert answer.error["kind"] == "stale_file"
    assert "hunter2" not in json.dumps(answer.raw)
    assert "changesSince" not in answer.error["details"]


def test_the_log_does_not_name_what_is_denied(hiding: Place) -> None:
    log = hiding.client.request("resources/read", {"uri": "surehold://log"})["contents"][0]["text"]

    assert "a.txt" in log
    assert ".env" not in log
    assert sha256(SECRET.encode()) not in log


def test_a_denied_file_does_not_come_back_from_the_trash_under_another_name(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    with StdioClient(surehold("mcp", root, "--state-dir", state)) as client:
        made = Outcome(client.call("create_file", {"path": ".env", "content": SECRET})).data
        gone = Outcome(client.call("delete_file", {"path": ".env", "expectedSha256": made["sha256"]})).data
    with StdioClient(surehold("mcp", root, "--state-dir", state, "--deny", ".env")) as client:
        for dry_run in (True, False):
            arguments = {"trashId": gone["trashId"], "targetPath": "leak.txt", "dryRun": dry_run}
            answer = Outcome(client.call("restore_file", arguments))

            assert answer.error["kind"] == "permission_denied"
            assert "hunter2" not in json.dumps(answer.raw)

    assert not (root / "leak.txt").exists()


def test_what_may_not_be_read_may_not_be_watched(hiding: Place) -> None:
    for path in (hiding.root / ".env", Path("/etc/passwd")):
        with pytest.raises(RpcFailed):
            hiding.client.request("resources/subscribe", {"uri": path.as_uri()})


@requirement("files:path:roots")
def test_a_link_is_neither_deleted_nor_moved_in_place_of_its_file(place: Place) -> None:
    digest = place.put("real.txt", b"one\n")
    place.file("link.txt").symlink_to("real.txt")

    deleted = place.on("delete_file", "link.txt", expectedSha256=digest)
    moved = place.call("move_file", fromPath=place.path("link.txt"), toPath=place.path("b.txt"), expectedSha256=digest)
    edited = place.on("edit_file", "link.txt", expectedSha256=digest, edits=[{"oldText": "one", "newText": "1"}])

    assert [answer.error["reason"] for answer in (deleted, moved)] == ["is_a_symlink"] * 2
    assert place.path("real.txt") in deleted.error["suggestedNextAction"]
    assert edited.data["path"] == place.path("real.txt")
    assert (place.get("real.txt"), place.file("link.txt").is_symlink()) == (b"1\n", True)


def test_names_that_are_not_utf8_are_reached_as_they_are_shown(place: Place) -> None:
    raw = bytes(place.file("x").parent) + b"/bad\xff.txt"
    Path(raw.decode("utf-8", "surrogateescape")).write_bytes(b"one\n")

    (entry,) = place.call("list_directory", path=place.name).data["entries"]
    read = place.on("read_file", entry["relativePath"])
    edited = place.on(
        "edit_file",
        entry["relativePath"],
        expectedSha256=read.data["sha256"],
        edits=[{"oldText": "one", "newText": "1"}],
    )

    assert entry["relativePath"] == "bad\\xff.txt"
    assert edited.ok
    assert Path(raw.decode("utf-8", "surrogateescape")).read_bytes() == b"1\n"

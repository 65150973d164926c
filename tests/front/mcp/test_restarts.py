"""What an agent meets when its server ends and another one is started."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from front.mcp.client import Json, StdioClient, surehold
from front.mcp.site import Site
from spec.marks import requirement
from waiting import wait_until

HANDLER = "def handle_{0}(request):\n    check(request)\n    return None\n\n"
BEFORE = "".join(HANDLER.format(name) for name in ("save", "delete", "list"))
AFTER = HANDLER.format("login") + BEFORE
PER_CALL = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"
"""A parent of its own for a server."""


def kill(client: StdioClient) -> None:
    client.process.kill()
    client.wait()


def has_sightings(site: Site, name: str) -> bool:
    with closing(sqlite3.connect(site.state / "state.db")) as database:
        found = database.execute("SELECT count(*) FROM sightings WHERE path = ?", (name.encode(),))
        return bool(found.fetchone()[0])


def close(client: StdioClient) -> None:
    assert client.close() == 0


def start_below_other_parent(site: Site, *flags: str) -> StdioClient:
    return StdioClient(["-c", PER_CALL, *surehold("mcp", site.root, "--state-dir", site.state, *flags)])


def call_once(site: Site, tool: str, arguments: Json, *flags: str, **more: Any) -> Json:
    """Start a server for this call alone, as some hosts do."""
    with site.start("--tools", "all", *flags, **more) as server:
        return server.call(tool, arguments)


def read_and_edit(site: Site) -> tuple[Json, Json]:
    """Return the calls that read a file and then change it."""
    path = str(site.put("a.txt", "one\ntwo\n"))
    return {"file_path": path}, {"file_path": path, "old_string": "two", "new_string": "TWO"}


def is_refused(result: Json, kind: str) -> bool:
    return bool(result.get("isError")) and kind in result["content"][0]["text"]


def anchors_of(server: StdioClient, name: str) -> dict[int, str]:
    """Read a file with hashes; return the anchor of every line."""
    text = server.call("read_file", {"path": name, "hashes": True})["content"][0]["text"]
    rows = [row.partition("|")[0].rstrip("!~") for row in text.splitlines() if "#" in row.partition("|")[0]]
    return {int(anchor.partition("#")[0]): anchor for anchor in rows if anchor.partition("#")[0].isdigit()}


def operation_for(spelling: str, anchors: dict[int, str]) -> Json:
    """Return an operation on `return None` of the second handler, or on it and the line before."""
    number, _, rest = anchors[7].partition("#")
    hash_, _, nth = rest.partition(".")
    single: dict[str, Json] = {
        "number, hash and occurrence": {"hash": f"{number}#{hash_}.{nth}"},
        "number and hash": {"hash": f"{number}#{hash_}"},
        "hash and occurrence": {"hash": f"{hash_}.{nth}"},
        "fields": {"hash": hash_, "line": int(number), "occurrence": int(nth)},
    }
    if spelling in single:
        return {"op": "replace_line", "content": "    return True", **single[spelling]}
    ends = anchors[6], anchors[7]
    if spelling == "range without numbers":
        ends = tuple(end.partition("#")[2] for end in ends)
    return {"op": "replace_range", "start_hash": ends[0], "end_hash": ends[1], "content": "    return True"}


SPELLINGS = (
    "number, hash and occurrence",
    "number and hash",
    "hash and occurrence",
    "fields",
    "range",
    "range without numbers",
)
DELETE = HANDLER.format("delete")
RIGHT = {
    AFTER.replace(DELETE, DELETE.replace("None", "True")),
    AFTER.replace(DELETE, DELETE.replace("    check(request)\n    return None", "    return True")),
}


@requirement("anchored:moved_on:no_sighting", "anchored:moved_on:no_sighting_retry", "session:stdio:died")
@pytest.mark.parametrize(
    ("end", "start"),
    [(kill, Site.start), (close, Site.start), (kill, start_below_other_parent)],
    ids=["killed", "closed", "other parent"],
)
def test_an_anchor_of_an_earlier_server_never_changes_another_block(
    site: Site, end: Callable[[StdioClient], None], start: Callable[[Site], StdioClient]
) -> None:
    names = {spelling: f"{spelling.replace(' ', '-')}.py" for spelling in SPELLINGS}
    first, sent = site.start(), dict[str, Json]()
    for spelling, name in names.items():
        site.put(name, BEFORE)
        sent[spelling] = operation_for(spelling, anchors_of(first, name))
    end(first)
    for name in names.values():
        site.put(name, AFTER)

    with start(site) as second:
        for spelling, name in names.items():
            answer = second.call("edit", {"path": name, "operations": [sent[spelling]]})
            now = site.get(name).decode()
            if not answer.get("isError"):
                assert now in RIGHT, (spelling, now)
                continue
            assert now == AFTER
            fresh = fresh_anchors(answer)
            retried = second.call("edit", {"path": name, "operations": [renewed(sent[spelling], fresh)]})
            assert not retried.get("isError"), retried
            assert site.get(name).decode() in RIGHT


def fresh_anchors(answer: Json) -> dict[str, str]:
    """Return the anchors of the rows that a refusal shows around the second handler, by what they are for."""
    rows: list[str] = answer["structuredContent"]["details"]["fresh_rows"]
    at = next(number for number, row in enumerate(rows) if row.endswith("def handle_delete(request):"))
    first, last = (row.partition("|")[0].rstrip("!~") for row in rows[at + 1 : at + 3])
    return {"hash": last, "start_hash": first, "end_hash": last}


def renewed(operation: Json, fresh: dict[str, str]) -> Json:
    kept = {name: value for name, value in operation.items() if name in {"op", "content"}}
    return kept | {name: anchor for name, anchor in fresh.items() if name in operation}


@requirement("session:store:at_once")
@pytest.mark.parametrize("attempt", range(3))
def test_an_anchor_shown_right_before_a_kill_never_changes_another_block(site: Site, attempt: int) -> None:
    """The session knows both versions, the second one since a moment ago; then the first one comes back."""
    names = {spelling: f"{spelling.replace(' ', '-')}-{attempt}.py" for spelling in SPELLINGS}
    for spelling, name in names.items():
        site.put(name, AFTER)
        first = site.start()
        anchors_of(first, name)
        wait_until(lambda name=name: has_sightings(site, name))
        site.put(name, BEFORE)
        sent = operation_for(spelling, anchors_of(first, name))
        kill(first)
        site.put(name, AFTER)

        with site.start() as second:
            answer = second.call("edit", {"path": name, "operations": [sent]})
            if answer.get("isError"):
                assert site.get(name).decode() == AFTER
                last = AFTER.splitlines().index("def handle_delete(request):") + 3
                fresh = anchors_of(second, name)
                by_field = {"hash": fresh[last], "start_hash": fresh[last - 1], "end_hash": fresh[last]}
                retried = renewed(sent, by_field)
                answer = second.call("edit", {"path": name, "operations": [retried]})
            assert not answer.get("isError"), answer
            assert site.get(name).decode() in RIGHT, (spelling, site.get(name))


@requirement("session:stdio:died")
def test_a_server_goes_on_after_one_that_was_killed(site: Site) -> None:
    read, edit = read_and_edit(site)
    first = site.start("--tools", "all")
    first.call("Read", read)
    wait_until(lambda: has_sightings(site, "a.txt"))  # they are written a moment after they are shown
    kill(first)

    with site.start("--tools", "all", client="another") as other:
        assert is_refused(other.call("Edit", edit), "not_read")
    with start_below_other_parent(site, "--tools", "all") as foreign:
        assert is_refused(foreign.call("Edit", edit), "not_read")
    with site.start("--tools", "all") as second:
        assert not second.call("Edit", edit).get("isError")
    assert site.get("a.txt") == b"one\nTWO\n"


@requirement("session:stdio:process", "session:stdio:way_out")
def test_a_server_after_one_that_ended_properly_is_a_session_of_its_own(site: Site) -> None:
    read, edit = read_and_edit(site)
    call_once(site, "Read", read)

    refused = call_once(site, "Edit", edit)

    assert is_refused(refused, "not_read")
    action = refused["structuredContent"]["error"]["suggested_action"]
    assert action.startswith("Read it first, then send the same call again.")
    for way_out in ("--session", "SUREHOLD_SESSION", "--require-read matched", "--require-read off"):
        assert way_out in action


@requirement("session:stdio:per_call")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_host_that_starts_a_server_for_each_call_has_one_session_from_the_third_on(site: Site, version: Any) -> None:
    read, edit = read_and_edit(site)
    call_once(site, "Read", read, version=version)
    assert is_refused(call_once(site, "Edit", edit, version=version), "not_read")

    assert not call_once(site, "Edit", edit, version=version).get("isError")
    other = str(site.put("b.txt", "one\n"))
    call_once(site, "Read", {"file_path": other}, version=version)
    again = {"file_path": other, "old_string": "one", "new_string": "ONE"}
    assert not call_once(site, "Edit", again, version=version).get("isError")


@requirement("session:stdio:per_call")
def test_servers_that_only_listed_the_tools_count(site: Site) -> None:
    read, edit = read_and_edit(site)
    with site.start("--tools", "all") as listing:
        listing.request("tools/list")

    call_once(site, "Read", read)

    assert not call_once(site, "Edit", edit).get("isError")


@requirement("session:stdio:living")
def test_two_servers_of_one_parent_at_the_same_time_are_two_sessions(site: Site) -> None:
    read, edit = read_and_edit(site)
    for _ in range(2):
        call_once(site, "Glob", {"pattern": "*"})

    with site.start("--tools", "all") as first, site.start("--tools", "all") as second:
        first.call("Read", read)
        assert is_refused(second.call("Edit", edit), "not_read")
        assert not first.call("Edit", edit).get("isError")


@requirement("session:stdio:named")
def test_a_session_is_named_by_an_option_or_the_environment(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    read, edit = read_and_edit(site)
    call_once(site, "Read", read, "--session", "my agent")
    assert not call_once(site, "Edit", edit, "--session", "my agent").get("isError")

    back = {**edit, "old_string": "TWO", "new_string": "two"}
    assert is_refused(call_once(site, "Edit", back, "--session", "another"), "not_read")
    monkeypatch.setenv("SUREHOLD_SESSION", "my agent")
    assert not call_once(site, "Edit", back).get("isError")
    with site.open() as workspace:
        assert {entry.call.session for entry in workspace.history.log() if entry.ok} == {"my agent"}


@requirement("session:stdio:named")
@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (("--session", "a\nb"), 1, "This cannot be the name of a session."),
        (("--session", "a", "--http", "127.0.0.1:0"), 2, "--session is for stdio"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused_and_http_takes_none(
    site: Site, flags: tuple[str, ...], code: int, said: str
) -> None:
    command = [sys.executable, *surehold("mcp", site.root, "--state-dir", site.state, *flags)]

    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    assert (ended.returncode, said in ended.stderr) == (code, True), ended.stderr

"""Which session a call belongs to, and that it outlives the server."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from front.mcp.client import StdioClient, Version
from front.mcp.site import Site
from spec.marks import requirement
from surehold import Workspace
from surehold.errors import InvalidArgument
from surehold.front.mcp.sessions import Caller, SessionRegistry, session_id
from surehold.stores.base import LedgerQuery

if TYPE_CHECKING:
    from surehold.workspace.session import Session


def sessions_of(site: Site) -> dict[str, tuple[str, str]]:
    with site.open() as workspace:
        return {e.change.path: (e.call.session, e.call.agent) for e in workspace.store.list_entries(LedgerQuery())}


@requirement("session:stdio:process")
def test_a_process_is_a_session_and_the_agent_is_the_client(site: Site) -> None:
    for name, client in (("a", "claude-code"), ("b", "gemini-cli")):
        with site.start(client=client) as server:
            server.call("create_file", {"path": f"{name}1.txt", "content": ""})
            server.call("create_file", {"path": f"{name}2.txt", "content": ""})
    found = sessions_of(site)

    assert found["a1.txt"] == found["a2.txt"]
    assert found["b1.txt"] == found["b2.txt"]
    assert found["a1.txt"][0] != found["b1.txt"][0]
    assert (found["a1.txt"][1], found["b1.txt"][1]) == ("claude-code", "gemini-cli")


@requirement("session:stdio:process")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_client_whose_name_has_line_breaks_is_recorded_in_one_line(site: Site, version: Version) -> None:
    with site.start(client="two\nlines\0 \x1b[31m", version=version) as server:
        server.call("create_file", {"path": "a.txt", "content": ""})

    assert sessions_of(site)["a.txt"][1] == r"two\nlines\x00 \x1b[31m"


@requirement("session:http:handle")
def test_what_a_session_saw_survives_the_server(site: Site) -> None:
    site.put("a.txt", "one\n")

    def read(server: StdioClient, handle: str = "") -> str:
        meta = {"surehold/session": handle} if handle else None
        return server.call("read_file", {"path": "a.txt"}, meta=meta)["_meta"]["surehold/session"]

    with site.start(version="2026-07-28") as first:
        handle = read(first)
        assert read(first) == handle
    with site.start(version="2026-07-28") as second:
        fresh = read(second)
        assert fresh != handle
        assert read(second, handle) == handle
    with site.open() as workspace:
        (sighting,) = workspace.store.list_sightings(session_id(handle), "a.txt")
        workspace.session(id=session_id(handle)).write("a.txt", "two\n")  # allowed, since that session read it

    assert sighting.whole
    assert site.get("a.txt") == b"two\n"


@pytest.fixture
def workspace(site: Site) -> Iterator[Workspace]:
    with site.open() as opened:
        yield opened


def id_of(sessions: SessionRegistry, caller: Caller, handle: str = "") -> str:
    session: Session = sessions.find_session(caller, handle=handle).session
    return session.id


@requirement("session:http:handle", "session:http:principal", "session:http:session_id", "session:stdio:process")
def test_handle_before_connection_before_principal_before_a_new_session(workspace: Workspace) -> None:
    sessions = SessionRegistry(workspace)
    alone = sessions.find_session(Caller(era="stateless"))
    by_token = Caller(principal="p")
    by_both = Caller(principal="p", connection="c")

    assert id_of(sessions, by_token) == id_of(sessions, by_token) != id_of(sessions, Caller(principal="q"))
    assert id_of(sessions, by_both) == id_of(sessions, Caller(connection="c")) != id_of(sessions, by_token)
    assert id_of(sessions, by_both, alone.handle) == alone.session.id
    assert id_of(sessions, Caller(connection="c", handle=alone.handle)) == alone.session.id
    assert id_of(sessions, Caller()) != id_of(sessions, Caller())


@requirement("session:http:principal")
def test_clients_of_other_names_under_one_token_have_other_sessions(workspace: Workspace) -> None:
    sessions = SessionRegistry(workspace)
    first, other = (Caller(era="stateless", principal="p", client=name) for name in ("a", "b"))

    assert id_of(sessions, first) == id_of(sessions, first) != id_of(sessions, other)
    assert sessions.find_session(first).session.agent == "a"


@requirement("session:http:claimed", "session:http:handle")
def test_a_handle_that_came_back_separates_clients_of_one_name_and_token(workspace: Workspace) -> None:
    sessions = SessionRegistry(workspace)
    caller = Caller(era="stateless", principal="p", client="a")
    first = sessions.find_session(caller)

    assert len(first.handle) >= 32
    assert id_of(sessions, caller) == first.session.id
    assert [id_of(sessions, caller, first.handle) for _ in range(2)] == [first.session.id] * 2
    second = sessions.find_session(caller)
    assert id_of(sessions, caller) == second.session.id != first.session.id

    restarted = SessionRegistry(workspace)
    assert id_of(restarted, caller) == second.session.id
    assert id_of(restarted, caller, first.handle) == first.session.id
    assert id_of(restarted, caller, second.handle) == second.session.id
    assert id_of(restarted, caller) not in {first.session.id, second.session.id}


def test_the_answer_to_a_question_belongs_to_the_session_that_was_asked(workspace: Workspace) -> None:
    sessions = SessionRegistry(workspace)
    caller = Caller(era="stateless", principal="p", client="a")
    asked = sessions.find_session(caller)
    id_of(sessions, caller, asked.handle)

    assert sessions.find_session(caller, otherwise=asked.handle).session.id == asked.session.id


def test_the_word_new_begins_a_session_and_guesses_do_not(workspace: Workspace) -> None:
    sessions = SessionRegistry(workspace)
    first, second = (sessions.find_session(Caller(connection="c", handle="new")) for _ in range(2))

    assert first.session.id != second.session.id
    assert workspace.store.find_session(first.session.id) is not None
    for guess in ("guess", first.session.id, "principal p"):
        with pytest.raises(InvalidArgument, match="No session has this handle"):
            sessions.find_session(Caller(), handle=guess)


def test_handles_are_long_and_never_twice(workspace: Workspace) -> None:
    handles = {SessionRegistry(workspace).find_session(Caller()).handle for _ in range(100)}
    assert len(handles) == 100
    assert min(map(len, handles)) >= 32


def test_the_store_keeps_no_handle(workspace: Workspace, site: Site) -> None:
    handle = SessionRegistry(workspace).find_session(Caller()).handle
    files = [path for path in Path(site.state).rglob("*") if path.is_file()]
    assert files
    assert not any(handle.encode() in path.read_bytes() for path in files)

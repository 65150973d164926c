"""Streamable HTTP: who may come in, in both eras."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from front.mcp.client import Json, surehold
from front.mcp.site import HttpServer, Site, data_of, text_of
from spec.marks import requirement
from waiting import HANG_SECONDS, wait_until


@pytest.fixture(scope="module")
def open_door(shared: Site) -> Iterator[HttpServer]:
    """A server on loopback without a token."""
    with shared.serve(
        "mcp", "--http", ":0", "--allow-host", "files.example", "--allow-origin", "https://page.example"
    ) as one:
        yield one


@pytest.fixture(scope="module")
def odd(shared: Site) -> Iterator[HttpServer]:
    """Our server with the odd tools of the tests."""
    with shared.serve_odd() as one:
        yield one


@pytest.fixture(scope="module")
def locked(shared: Site) -> Iterator[HttpServer]:
    """What `surehold serve` starts."""
    with shared.serve("serve", "--port", "0") as one:
        yield one


@requirement("front:mcp:http", "front:mcp:eras")
def test_both_eras_are_served_at_one_address(shared: Site, open_door: HttpServer) -> None:
    shared.put("a.txt", "one\n")
    old = open_door.initialize("2025-06-18")

    legacy = open_door.call("read_file", {"path": "a.txt"}, era="2025-06-18", headers=old)
    modern = open_door.call("read_file", {"path": "a.txt"})

    assert text_of(legacy) == text_of(modern)
    assert text_of(modern).endswith("one\n")
    status, headers, _ = open_door.rpc("tools/list")
    assert (status, headers["content-type"]) == (200, "application/json")


@requirement("front:mcp:http")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_client_of_the_sdk_edits_over_http(shared: Site, locked: HttpServer, mode: str) -> None:
    shared.put("sdk.txt", "one\n")
    url = f"http://{locked.host}:{locked.port}/mcp"

    async def work() -> str:
        headers = {"Authorization": f"Bearer {locked.token}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http_client,
            Client(streamable_http_client(url, http_client=http_client), mode=mode) as client,  # type: ignore[arg-type]
        ):
            read = await client.call_tool("read_file", {"path": "sdk.txt"})
            sha = (read.meta or {})["surehold/result"]["data"]["sha256"]
            edit = {"oldText": "one", "newText": "two"}
            done = await client.call_tool("edit_file", {"path": "sdk.txt", "expectedSha256": sha, "edits": [edit]})
            return done.structured_content["data"]["changeId"]

    assert anyio.run(work)
    assert shared.get("sdk.txt") == b"two\n"


@requirement("front:mcp:safe_http")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Host": "127.0.0.1:PORT.evil.example"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "LOCALHOST:PORT"}, 200),
        ({"Host": "[::1]:PORT"}, 200),
        ({"Host": "files.example"}, 200),
        ({"Host": "files.example:8443"}, 200),
        ({"Host": "notfiles.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Origin": "http://localhost:PORT"}, 200),
        ({"Origin": "https://page.example"}, 200),
        ({"Origin": "https://page.example.evil"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/", "/mcp"])
def test_foreign_hosts_and_origins_are_refused_everywhere(
    open_door: HttpServer, headers: dict[str, str], status: int, path: str
) -> None:
    sent = {name: value.replace("PORT", str(open_door.port)) for name, value in headers.items()}
    if path == "/":
        assert open_door.send("GET", "/", headers=sent)[0] == status
    else:
        assert open_door.rpc("tools/list", headers=sent)[0] == status


@requirement("front:mcp:safe_http")
def test_two_hosts_in_one_request_are_refused(open_door: HttpServer) -> None:
    connection = http.client.HTTPConnection(open_door.host, open_door.port, timeout=HANG_SECONDS)
    connection.putrequest("GET", "/", skip_host=True)
    connection.putheader("Host", f"localhost:{open_door.port}")
    connection.putheader("Host", "evil.example")
    connection.endheaders()

    assert connection.getresponse().status in {400, 421}
    connection.close()


def test_a_page_that_is_allowed_may_ask_before_it_calls(open_door: HttpServer) -> None:
    ask = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    status, headers, _ = open_door.send("OPTIONS", headers=ask)

    assert (status, headers["access-control-allow-origin"]) == (200, "https://page.example")


@requirement("front:serve:mcp", "front:mcp:safe_http")
@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("", 401),
        ("Bearer wrong", 401),
        ("Basic TOKEN", 401),
        ("TOKEN", 401),
        ("Bearer TOKENx", 401),
        ("bearer TOKEN", 200),
    ],
)
def test_serve_wants_its_token(locked: HttpServer, authorization: str, status: int) -> None:
    sent = {"Authorization": authorization.replace("TOKEN", locked.token)}
    got, headers, _ = locked.rpc("tools/list", headers=sent)

    assert got == status
    assert headers.get("www-authenticate", "").startswith("Bearer") is (status == 401)


@requirement("front:serve:mcp")
def test_serve_prints_its_token_once_as_settings_for_a_client(locked: HttpServer) -> None:
    settings = json.loads(locked.said[locked.said.index("{") :].splitlines()[0])["mcpServers"]["surehold"]

    assert settings["url"] == f"http://127.0.0.1:{locked.port}/mcp"
    assert settings["headers"] == {"Authorization": f"Bearer {locked.token}"}
    assert len(locked.token) >= 32
    assert locked.said.count(locked.token) == 1
    status, _, body = locked.send("GET", "/")
    assert (status, b"Sign in" in body, locked.token.encode() in body) == (401, True, False)
    assert locked.rpc("tools/list", headers={"Origin": "http://evil.example"})[0] == 403


@requirement("front:mcp:safe_http")
@pytest.mark.parametrize("words", [["mcp", "--http", "0.0.0.0:0"], ["serve", "--host", "0.0.0.0", "--port", "0"]])
def test_other_machines_are_served_only_with_a_token(site: Site, words: list[str]) -> None:
    command = [sys.executable, *surehold(words[0], site.root, "--state-dir", site.state, *words[1:])]
    kept = {name: value for name, value in os.environ.items() if name != "SUREHOLD_TOKEN"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS, env=kept)

    assert done.returncode == 2
    assert "needs a token" in done.stderr
    assert "Traceback" not in done.stderr


@requirement("front:mcp:safe_http")
def test_a_token_from_a_file_or_the_environment_is_enforced_on_loopback_too(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-a-file\n")
    with site.serve("mcp", "--http", "127.0.0.1:0", "--token-file", str(file)) as one:
        assert one.rpc("tools/list")[0] == 401
        assert one.rpc("tools/list", headers={"Authorization": "Bearer from-a-file"})[0] == 200
    with site.serve("mcp", "--http", "0.0.0.0:0", environment={"SUREHOLD_TOKEN": "from-env"}) as one:
        sent = {"Host": f"localhost:{one.port}"}
        assert one.rpc("tools/list", headers=sent)[0] == 401
        assert one.rpc("tools/list", headers={**sent, "Authorization": "Bearer from-env"})[0] == 200
        assert one.rpc("tools/list", headers={"Host": "evil", "Authorization": "Bearer from-env"})[0] == 421


@requirement("front:mcp:http")
def test_a_request_may_have_64_mib_and_not_more(shared: Site, open_door: HttpServer) -> None:
    text = "0123456789abcde\n" * 655_360
    done = open_door.call("create_file", {"path": "large.txt", "content": text})
    assert done["isError"] is False
    assert shared.get("large.txt") == text.encode()

    sent = {"Content-Type": "application/json", "Content-Length": str((64 << 20) + 1)}
    connection = http.client.HTTPConnection(open_door.host, open_door.port, timeout=HANG_SECONDS)
    connection.putrequest("POST", "/mcp")
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


@requirement("session:http:session_id")
def test_two_older_sessions_are_apart_and_an_unknown_one_is_refused(shared: Site, open_door: HttpServer) -> None:
    shared.put("apart.txt", "one\n")
    first, second = open_door.initialize(), open_door.initialize()
    era = {"era": "2025-11-25"}
    for session in (first, second):
        open_door.call(
            "create_file", {"path": f"{session['Mcp-Session-Id']}.txt", "content": "x"}, headers=session, **era
        )
    with shared.open() as workspace:
        ids = {
            entry.call.session
            for entry in workspace.history.log()
            if entry.change.path.removesuffix(".txt") in {first["Mcp-Session-Id"], second["Mcp-Session-Id"]}
        }

    assert len(ids) == 2
    assert open_door.rpc("tools/list", headers={"Mcp-Session-Id": "f" * 32}, era="2025-11-25")[0] == 404


@requirement("session:http:handle")
def test_a_stateless_client_comes_back_with_the_handle_it_was_given(shared: Site, open_door: HttpServer) -> None:
    shared.put("handle.txt", "one\n")
    first = open_door.call("read_file", {"path": "handle.txt"})["_meta"]["surehold/session"]
    other = open_door.call("read_file", {"path": "handle.txt"})["_meta"]["surehold/session"]
    by_meta = open_door.call("create_file", {"path": "m1.txt", "content": ""}, meta={"surehold/session": first})
    by_argument = open_door.call("create_file", {"path": "m2.txt", "content": "", "session": first})

    assert first != other
    assert len(first) >= 32
    assert by_meta["_meta"]["surehold/session"] == by_argument["_meta"]["surehold/session"] == first
    assert "warnings" not in data_of(by_argument)["data"] or data_of(by_argument)["data"]["warnings"] == []
    with shared.open() as workspace:
        mine = {e.change.path: e.call.session for e in workspace.history.log()}
    assert mine["m1.txt"] == mine["m2.txt"] != first  # the log does not give the handle away


@requirement("session:http:handle")
def test_a_handle_that_nobody_was_given_is_refused(open_door: HttpServer) -> None:
    for handle in ("guess", "new-ish", "mcp-0123"):
        result = open_door.call("read_file", {"path": "handle.txt", "session": handle})
        assert (result["isError"], data_of(result)["error"]["reason"]) == (True, "unknown_session")


@requirement("session:http:principal", "session:http:handle")
def test_without_a_handle_the_token_names_the_session(shared: Site, locked: HttpServer) -> None:
    shared.put("who.txt", "one\n")
    plain = [locked.call("create_file", {"path": f"p{n}.txt", "content": ""}) for n in range(2)]
    apart = locked.call("create_file", {"path": "p2.txt", "content": "", "session": "new"})
    with shared.open() as workspace:
        mine = {e.change.path: e.call.session for e in workspace.history.log()}

    handles = {result["_meta"]["surehold/session"] for result in plain}
    assert len(handles) == 1
    assert mine["p0.txt"] == mine["p1.txt"] != mine["p2.txt"]
    assert apart["_meta"]["surehold/session"] not in handles


@requirement("session:http:principal", "session:http:claimed", "session:sighting:own_only")
def test_clients_that_share_a_token_do_not_share_what_they_read(shared: Site) -> None:
    shared.put("theirs.txt", "one\n")
    edit = {"file_path": f"{shared.root}/theirs.txt", "old_string": "one", "new_string": "two"}
    with shared.serve("serve", "--port", "0", "--tools", "all") as server:

        def call(client: str, tool: str, arguments: Json) -> Json:
            meta = {"io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"}}
            return server.call(tool, arguments, meta=meta)

        read = call("agent-a", "Read", {"file_path": edit["file_path"]})
        other_name = call("agent-b", "Edit", edit)
        handle = read["_meta"]["surehold/session"]
        call("agent-a", "Glob", {"pattern": "*.txt", "session": handle})
        same_name = call("agent-a", "Edit", edit)
        reader = call("agent-a", "Edit", {**edit, "session": handle})

    assert [one["isError"] for one in (other_name, same_name, reader)] == [True, True, False]
    assert shared.get("theirs.txt") == b"two\n"


def test_sigterm_ends_it_also_with_open_streams(site: Site) -> None:
    with site.serve("mcp", "--http", "127.0.0.1:0") as one:
        session = one.initialize()
        stream = http.client.HTTPConnection(one.host, one.port, timeout=HANG_SECONDS)
        stream.request("GET", "/mcp", headers={**session, "Accept": "text/event-stream"})
        with stream.getresponse() as answer:
            assert answer.status == 200
            code = one.stop()
        stream.close()

    assert code == 0
    assert "Traceback" not in one.said
    with socket.create_server((one.host, one.port)):
        pass  # the port is free again


def test_a_port_that_is_taken_is_said(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, *surehold("mcp", site.root, "--state-dir", site.state, "--http", str(port))]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS)

    assert done.returncode == 1
    assert f"Cannot listen on 127.0.0.1:{port}" in done.stderr


@requirement("front:mcp:http")
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_progress_is_streamed_and_a_silent_call_is_answered_in_one_piece(odd: HttpServer, era: str) -> None:
    session = odd.initialize() if era == "2025-11-25" else {}
    odd.call("stepwise", {"steps": 5000}, era=era, headers=session, meta={"progressToken": "mine"})
    told = [event["params"] for event in odd.events if event.get("method") == "notifications/progress"]
    result = odd.call("surrogates", {}, era=era, headers=session)

    assert len(told) > 1
    assert {event["progressToken"] for event in told} == {"mine"}
    assert text_of(result) == r"name-\xff half \ud83d whole 😀"


@requirement("front:mcp:cancel")
@pytest.mark.parametrize("tool", ["stubborn_write", "slow_plan", "late_write"])
def test_a_client_that_hangs_up_in_the_middle_of_a_write_leaves_all_of_it_or_nothing(
    shared: Site, odd: HttpServer, tool: str
) -> None:
    connection = http.client.HTTPConnection(odd.host, odd.port, timeout=HANG_SECONDS)
    envelope: Json = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params: Json = {"name": tool, "arguments": {"path": f"{tool}.txt"}, "_meta": envelope}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    connection.request("POST", "/mcp", body=body, headers=headers)
    wait_until((shared.root / f"{tool}.began").exists, "it never began")
    connection.close()
    wait_until((shared.root / f"{tool}.cancelled").exists, "the hang-up was never noticed")
    shared.put(f"{tool}.go", "")

    wait_until(lambda: shared.log(f"{tool}.txt"), "the ledger never heard of it")
    happens = tool == "stubborn_write"
    assert shared.log(f"{tool}.txt") == [("create", happens)]
    assert (shared.root / f"{tool}.txt").exists() is happens
    assert not happens or shared.get(f"{tool}.txt") == b"whole\n" * 100_000


@requirement("front:mcp:resources")
def test_an_older_session_hears_of_changes_on_its_stream(shared: Site, open_door: HttpServer) -> None:
    address = shared.put("streamed.txt", "one\n").as_uri()
    session = open_door.initialize()
    stream = http.client.HTTPConnection(open_door.host, open_door.port, timeout=HANG_SECONDS)
    stream.request("GET", "/mcp", headers={**session, "Accept": "text/event-stream"})
    answer = stream.getresponse()
    open_door.rpc("resources/subscribe", {"uri": address}, era="2025-11-25", headers=session)
    shared.put("streamed.txt", "two\n")
    line = b""
    while not line.startswith(b"data: {"):
        line = answer.readline()
    answer.close()
    stream.close()

    assert json.loads(line[6:]) == {
        "jsonrpc": "2.0",
        "method": "notifications/resources/updated",
        "params": {"uri": address},
    }


def test_sigint_ends_it_with_130(site: Site) -> None:
    with site.serve("mcp", "--http", ":0") as one:
        assert one.rpc("tools/list")[0] == 200
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(HANG_SECONDS) == 130
        _, errors = one.process.communicate()
    assert b"Traceback" not in errors


@requirement("front:mcp:cancel")
def test_a_write_under_way_at_sigterm_is_waited_for(site: Site) -> None:
    with site.serve_odd() as one:
        writing = threading.Thread(target=_ask_in_vain, args=(one, "stubborn_write", "new.txt"))
        writing.start()
        wait_until((site.root / "new.began").exists, "it never began")
        one.process.terminate()
        wait_until((site.root / "new.cancelled").exists, "the signal was never noticed")
        assert one.process.poll() is None
        site.put("new.go", "")
        _, errors = one.process.communicate(timeout=HANG_SECONDS)
        writing.join()

    assert (one.process.returncode, b"Traceback" in errors) == (0, False), errors.decode()
    assert site.get("new.txt") == b"whole\n" * 100_000
    assert site.log("new.txt") == [("create", True)]


def _ask_in_vain(server: HttpServer, tool: str, name: str) -> None:
    with suppress(OSError, http.client.HTTPException):
        server.rpc("tools/call", {"name": tool, "arguments": {"path": name}})


@requirement("front:mcp:robust")
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_half_a_character_over_http_is_answered_and_never_written(
    shared: Site, open_door: HttpServer, era: str
) -> None:
    session = open_door.initialize() if era == "2025-11-25" else {}
    arguments = {"path": f"half-{era}.txt", "content": "\ud83d"}  # the raw client sends it as an escape
    status, _, answer = open_door.rpc(
        "tools/call", {"name": "create_file", "arguments": arguments}, era=era, headers=session
    )

    assert "lone_surrogate" in json.dumps(answer) if status == 200 else "error" in answer
    assert not (shared.root / f"half-{era}.txt").exists()
    assert open_door.call("glob", {"pattern": "*"}, era=era, headers=session)["isError"] is False

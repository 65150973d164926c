"""Reads over HTTP that are answered at once, by one JSON document: everything around them is as if the SDK had answered."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest
from starlette.types import Message, Receive, Scope, Send

from front.mcp.client import Json
from front.mcp.site import HttpServer, Site
from spec.marks import requirement
from surehold.front.mcp.sdk.direct_reads import DirectReads
from waiting import HANG_SECONDS, wait_until

if TYPE_CHECKING:
    from surehold.front.mcp.sdk.server import BoundServer

ERA = "2025-11-25"
HELLO: Json = {"protocolVersion": ERA, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
READ: Json = {"name": "read_file", "arguments": {"path": "a.txt"}}


@pytest.fixture(scope="module")
def door(shared: Site) -> Iterator[HttpServer]:
    with shared.serve("mcp", "--http", ":0") as one:
        yield one


@pytest.fixture(scope="module")
def odd(shared: Site) -> Iterator[HttpServer]:
    with shared.serve_odd() as one:
        yield one


def kind_of(headers: dict[str, str]) -> str:
    return headers["content-type"].partition(";")[0]


@requirement("front:mcp:http_plain")
def test_a_plain_read_is_one_document_and_says_what_a_stream_says(shared: Site, door: HttpServer) -> None:
    shared.put("a.txt", "one\ntwo\n")
    session = door.initialize(ERA)
    _, plain_headers, plain = door.rpc("tools/call", READ, era=ERA, headers=session)
    _, stream_headers, streamed = door.rpc(
        "tools/call", {**READ, "_meta": {"progressToken": 1}}, era=ERA, headers=session
    )

    assert (kind_of(plain_headers), kind_of(stream_headers)) == ("application/json", "text/event-stream")
    assert plain_headers["mcp-session-id"] == session["Mcp-Session-Id"]
    assert plain == streamed


@requirement("front:mcp:http_plain")
@pytest.mark.parametrize(
    "params",
    [
        {"name": "no_such_tool", "arguments": {}},
        {"name": "read_file", "arguments": {"path": "missing.txt"}},
        {"name": "read_file", "arguments": {"path": "../outside"}},
        {"name": "read_file", "arguments": {"wrong": 1}},
        {"name": "read_file", "arguments": []},
        {"name": "read_file"},
        {"name": 7},
        {},
    ],
)
def test_a_read_that_fails_says_what_the_sdk_says(door: HttpServer, params: Json) -> None:
    session = door.initialize(ERA)
    token = {"_meta": {"progressToken": 1}}

    assert (
        door.rpc("tools/call", params, era=ERA, headers=session)[2]
        == door.rpc("tools/call", {**params, **token}, era=ERA, headers=session)[2]
    )


@requirement("front:mcp:http_plain")
def test_a_change_is_a_stream_since_a_question_may_come_first(shared: Site, door: HttpServer) -> None:
    session = door.initialize(ERA)
    new: Json = {"name": "create_file", "arguments": {"path": "new.txt", "content": "x\n"}}
    _, headers, answer = door.rpc("tools/call", new, era=ERA, headers=session)

    assert kind_of(headers) == "text/event-stream"
    assert answer["result"]["isError"] is False
    assert shared.get("new.txt") == b"x\n"


@requirement("front:mcp:http_plain", "front:mcp:cancel")
def test_a_plain_read_that_is_cancelled_ends_and_is_answered_so(shared: Site, odd: HttpServer) -> None:
    session = odd.initialize(ERA)
    answers = list[Json]()
    look: Json = {"name": "endless", "arguments": {"path": "seen.txt"}}
    asking = threading.Thread(target=lambda: answers.append(odd.rpc("tools/call", look, era=ERA, headers=session)[2]))
    asking.start()
    wait_until((shared.root / "seen.began").exists, "it never began")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    sent = {**session, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    odd.send("POST", body=json.dumps(cancel).encode(), headers=sent)
    asking.join(HANG_SECONDS)

    assert answers == [{"jsonrpc": "2.0", "id": 1, "error": {"code": -32800, "message": "Request cancelled"}}]
    wait_until((shared.root / "seen.txt").exists, "it goes on")


@requirement("front:mcp:http_plain")
def test_a_session_that_was_ended_is_not_answered(door: HttpServer) -> None:
    session = door.initialize(ERA)
    assert door.rpc("tools/call", READ, era=ERA, headers=session)[0] == 200
    assert door.send("DELETE", headers=session)[0] == 200

    assert door.rpc("tools/call", READ, era=ERA, headers=session)[0] == 404


class Library:
    """An application that opens a session, as the SDK's does, and notes what it is asked."""

    def __init__(self) -> None:
        self.bodies = list[Json]()
        self.status = 200

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        self.bodies.append(json.loads((await receive())["body"]))
        await send({"type": "http.response.start", "status": self.status, "headers": [(b"mcp-session-id", b"s1")]})
        await send({"type": "http.response.body", "body": b""})


def post(app: DirectReads, message: Json, *, session: str = "") -> None:
    body = json.dumps(message).encode()
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(body)),
        **({"mcp-session-id": session} if session else {}),
    }
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(_: Message) -> None:
        pass

    asyncio.run(app({"type": "http", "path": "/mcp", "method": "POST", "headers": raw}, receive, send))


@requirement("front:mcp:http_plain", "front:mcp:session_limits")
def test_the_library_hears_of_a_session_before_it_would_forget_it() -> None:
    library = Library()
    app = DirectReads(library, cast("BoundServer", cast("Any", None)), path="/mcp", most=10, idle_seconds=0)
    post(app, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO})
    post(app, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": READ}, session="s1")

    assert [body["method"] for body in library.bodies] == ["initialize", "tools/call"]

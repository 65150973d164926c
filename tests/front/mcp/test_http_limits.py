"""What strangers and forgetful clients cannot do to a server over HTTP: keep others out, or fill its memory or its log."""

import asyncio
import http.client
import json
import logging
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send
from uvicorn.server import ServerState

from front.mcp.site import HttpServer, Site, text_of
from spec.marks import requirement
from surehold.front.mcp.sdk.http import SessionLimit
from surehold.front.shared.http_server import ConnectionLimits, LimitedConnection, RepeatFilter, open_port
from surehold.front.shared.http_settings import HttpSettings
from waiting import HANG_SECONDS, wait_until
from warm import cold

HALF_REQUEST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Le"
STRANGERS = 1_100


@pytest.fixture
def narrow(site: Site) -> Iterator[HttpServer]:
    """A server with as many descriptors as most systems give a program, and with a token."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        with cold():  # a process that was there before has the limits of before
            server = site.serve("serve", "--port", "0")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * STRANGERS), hard))
    with server:
        yield server
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _connect(server: HttpServer) -> socket.socket:
    return socket.create_connection((server.host, server.port), timeout=HANG_SECONDS)


def _is_closed(stranger: socket.socket) -> bool:
    stranger.setblocking(False)
    try:
        return stranger.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def _open_descriptors(server: HttpServer) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


_HEAD = "POST /mcp HTTP/1.1\r\nHost: {0.host}:{0.port}\r\nAuthorization: Bearer {0.token}\r\nContent-Type: application/json\r\n"
_ACCEPT = "Accept: application/json, text/event-stream\r\n"
_LONG_DRAIN = ("--drain-seconds", "100000")


@requirement("front:mcp:ends")
@pytest.mark.parametrize(
    "words", [("mcp", "--http", "127.0.0.1:0"), ("serve", "--port", "0", *_LONG_DRAIN)], ids=" ".join
)
def test_a_server_that_is_told_to_end_does_not_wait_for_the_rest_of_a_request(
    site: Site, words: tuple[str, ...]
) -> None:
    with site.serve(*words) as server, _connect(server) as half:
        half.sendall(f"{_HEAD.format(server)}{_ACCEPT}Content-Length: 100\r\nExpect: 100-continue\r\n\r\n".encode())
        assert half.recv(100).startswith(b"HTTP/1.1 100")  # it waits for the body
        half.sendall(b"{")

        assert server.stop() == 0
    assert "Traceback" not in server.said


@requirement("front:mcp:ends")
def test_a_server_ends_while_two_questions_have_one_request_id(site: Site) -> None:
    with site.serve("serve", "--port", "0", "--mode", "default", *_LONG_DRAIN) as server, ExitStack() as stack:
        (session,) = server.initialize().values()
        for name in ("a.txt", "b.txt"):
            params = {"name": "create_file", "arguments": {"path": name, "content": "x"}}
            body = json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})
            head = f"{_HEAD.format(server)}{_ACCEPT}Mcp-Session-Id: {session}\r\nContent-Length: {len(body)}\r\n\r\n"
            stack.enter_context(_connect(server)).sendall((head + body).encode())
        with site.open() as workspace:
            wait_until(lambda: len(workspace.store.questions.list_all()) == 2)

        assert server.stop() == 0


@requirement("front:mcp:connection_limits")
def test_half_requests_keep_no_client_out(site: Site, narrow: HttpServer) -> None:
    site.put("a.txt", "one\n")
    with ExitStack() as stack:
        strangers = [stack.enter_context(_connect(narrow)) for _ in range(STRANGERS)]
        for stranger in strangers:
            try:
                stranger.sendall(HALF_REQUEST)
            except ConnectionError:
                continue

        assert text_of(narrow.call("read_file", {"path": "a.txt"})).endswith("one\n")
        wait_until(lambda: _open_descriptors(narrow) < 512)
        assert sum(map(_is_closed, strangers)) >= STRANGERS - 256
        assert text_of(narrow.call("read_file", {"path": "a.txt"})).endswith("one\n")
    narrow.stop()
    assert "Traceback" not in narrow.said


@requirement("front:mcp:connection_limits")
def test_a_request_that_never_arrives_is_not_waited_for(site: Site) -> None:
    half_body = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n12"
    with site.serve("serve", "--port", "0") as server, ExitStack() as stack:
        strangers = [stack.enter_context(_connect(server)) for _ in range(3)]
        for stranger, sent in zip(strangers, (b"", HALF_REQUEST, half_body), strict=True):
            stranger.sendall(sent)

        answers = [b"".join(iter(partial(one.recv, 1 << 16), b"")) for one in strangers]  # until the server closes them

    assert answers[:2] == [b"", b""]
    assert answers[2].startswith(b"HTTP/1.1 4")


@requirement("front:mcp:session_limits")
def test_a_session_that_is_forgotten_begins_again(site: Site) -> None:
    site.put("a.txt", "one\n")
    with site.serve_odd(sessions=3) as server:
        first, *others = (server.initialize() for _ in range(4))

        assert server.rpc("tools/list", era="2025-11-25", headers=first)[0] == 404
        assert [server.rpc("tools/list", era="2025-11-25", headers=one)[0] for one in others] == [200] * 3
        again = server.initialize()
        assert server.rpc("tools/list", era="2025-11-25", headers=again)[0] == 200
        assert server.rpc("tools/list", era="2025-11-25", headers=others[0])[0] == 404


@requirement("front:mcp:session_limits")
def test_a_session_with_a_running_call_is_not_forgotten() -> None:
    ended = list[str]()
    release = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        name = headers.get("mcp-session-id", "")
        if scope["method"] == "DELETE":
            ended.append(name)
        elif name:
            await release.wait()
        answer = {} if name else {"mcp-session-id": headers["new"]}
        await PlainTextResponse("", headers=answer)(scope, receive, send)

    gone = list[str]()
    limited = SessionLimit(app, path="/mcp", most=2, tell_gone=gone.append, gone_seconds=3600)

    async def ask(**headers: str) -> None:
        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Message) -> None:
            pass

        sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        await limited({"type": "http", "path": "/mcp", "method": "POST", "headers": sent}, receive, send)

    async def work() -> None:
        await ask(new="a")
        running = asyncio.create_task(ask(mcp_session_id="a"))
        await asyncio.sleep(0)
        await ask(new="b")
        await ask(new="c")
        assert ended == ["b"]
        release.set()
        await running
        await ask(new="d")
        assert ended == gone == ["b", "c"]

    asyncio.run(work())


def _open_stream(server: HttpServer, session: dict[str, str]) -> http.client.HTTPConnection:
    """Open the request on which a client hears of news."""
    stream = http.client.HTTPConnection(server.host, server.port, timeout=HANG_SECONDS)
    stream.request("GET", "/mcp", headers={**session, "Accept": "text/event-stream"})
    assert stream.getresponse().status == 200
    return stream


@requirement("front:mcp:subscriptions_end")
@pytest.mark.parametrize("way", ["the connection breaks", "the session is deleted", "the session is forgotten"])
def test_what_a_client_subscribed_to_is_watched_no_longer_when_it_is_gone(site: Site, way: str) -> None:
    vanished, alive = (site.put(name, "one\n").as_uri() for name in ("vanished.txt", "alive.txt"))
    gone_seconds = 0.1 if way == "the connection breaks" else 3600
    with site.serve_odd(sessions=2, gone_seconds=gone_seconds) as server:
        sessions = [server.initialize(), server.initialize()]
        streams = [_open_stream(server, session) for session in sessions]
        for session, address in zip(sessions, (vanished, alive), strict=True):
            server.rpc("resources/subscribe", {"uri": address}, era="2025-11-25", headers=session)

        def looks_at(address: str) -> int:
            return int(server.call("count_looks", {"path": address})["content"][0]["text"])

        def is_watched_no_longer() -> bool:
            before = looks_at(vanished)
            others = looks_at(alive)
            wait_until(lambda: looks_at(alive) >= others + 3, "the other resource is not watched")
            return looks_at(vanished) == before

        assert not is_watched_no_longer()
        if way == "the session is deleted":
            server.send("DELETE", headers=sessions[0])
        else:
            streams[0].close()
        if way == "the session is forgotten":
            wait_until(lambda: (server.initialize(), is_watched_no_longer())[1], "its subscription goes on")
        wait_until(is_watched_no_longer, "its subscription goes on")
        assert looks_at(vanished) > 1
        for stream in streams:
            stream.close()


@requirement("front:mcp:quiet_log")
def test_the_same_error_is_logged_once() -> None:
    repeats, seen = RepeatFilter(), list[bool]()
    for text in ("no more files\nTraceback 1", "no more files\nTraceback 2", "another"):
        record = logging.LogRecord("asyncio", logging.ERROR, "", 0, text, None, None)
        seen.append(repeats.filter(record))

    assert seen == [True, False, True]


def test_the_parts_of_an_answer_do_not_wait_for_each_other() -> None:
    """Else each would wait until the client has confirmed the previous one, which clients delay by 40 ms."""
    options = list[int]()

    class Looking(LimitedConnection):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            accepted = transport.get_extra_info("socket")
            options.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            self.drop()

    async def accept_one() -> None:
        listener, settings = open_port(HttpSettings(port=0))
        config = uvicorn.Config(PlainTextResponse("ok"), log_config=None)
        config.load()
        made = partial(Looking, config, ServerState(), {}, limits=ConnectionLimits())
        async with await asyncio.get_running_loop().create_server(made, sock=listener):
            reader, writer = await asyncio.open_connection(settings.host, settings.port)
            with suppress(ConnectionError):
                await reader.read()
            writer.close()

    asyncio.run(accept_one())

    assert options == [1]

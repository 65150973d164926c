"""How one worker passes a request on to the one that has its session; the other one is a socket of the test."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio
import pytest
from starlette.types import Message, Scope

from front.mcp.site import Site
from spec.marks import requirement
from surehold.front.mcp.sdk.workers import WorkerPlace, WorkerRouter
from waiting import HANG_SECONDS

Worker = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]
"""Tells whether it keeps the connection until it was answered."""
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def pass_on(folder: Path, worker: Worker, *pieces: bytes, headers: Sequence[tuple[bytes, bytes]] = ()) -> list[Message]:
    """Send a request with a body in pieces to a router, for a session of the other worker; return what it answers."""
    sent = list[Message]()

    async def own_app(*_: object) -> None:
        raise AssertionError("It belongs to the other worker.")

    async def run() -> None:
        left = [{"type": "http.request", "body": one, "more_body": True} for one in pieces]
        left += [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Message:
            if left:
                return left.pop(0)
            await anyio.sleep_forever()
            raise AssertionError

        async def send(message: Message) -> None:
            sent.append(message)

        scope: Scope = {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(b"host", b"here"), (b"mcp-session-id", b"abc.w1"), *headers],
        }
        place = WorkerPlace(index=0, count=2, folder=folder)
        answered = asyncio.Event()

        async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if await worker(reader, writer):
                await answered.wait()
            writer.close()

        with anyio.fail_after(HANG_SECONDS):
            async with await asyncio.start_unix_server(work, place.address_of(1)) as door:
                await WorkerRouter(own_app, place, path="/mcp")(scope, receive, send)
                answered.set()
                door.close()
                await door.wait_closed()

    anyio.run(run)
    return sent


@requirement("fleet:workers:lost")
def test_a_worker_that_dies_before_it_answers_is_a_bad_gateway(short_folder: Path) -> None:
    async def die(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> bool:
        await reader.readuntil(b"\r\n\r\n")
        return False

    start, body = pass_on(short_folder, die)

    assert start["status"] == 502
    assert body["body"].startswith(b"The process that has this session ended before it answered")


@requirement("fleet:workers:lost")
def test_an_answer_that_breaks_off_is_not_passed_on_as_a_whole_one(short_folder: Path) -> None:
    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"3\r\nhal\r\n")
        await writer.drain()
        return False

    sent = pass_on(short_folder, begin)

    assert [one.get("status") or one["body"] for one in sent] == [200, b"hal"]
    assert sent[-1]["more_body"]


@requirement("fleet:workers:passed_on")
def test_a_body_is_passed_on_as_it_comes_and_the_answer_may_come_first(short_folder: Path) -> None:
    seen = list[bytes]()

    async def refuse_early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        seen.append(await reader.readexactly(10))
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        await writer.drain()
        return True  # the rest is never read, so that no one could collect it first

    endless = (b"more" * 50_000,) * 100
    sent = pass_on(
        short_folder,
        refuse_early,
        b"first",
        *endless,
        headers=[(b"transfer-encoding", b"chunked"), (b"origin", b"http://a")],
    )

    assert [one.get("status") or one["body"] for one in sent] == [413, b"no", b""]
    assert seen[1] == b"5\r\nfirst\r\n"
    assert b"origin" not in seen[0].lower()


@pytest.fixture
def short_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("w")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs several workers")
@requirement("fleet:workers:passed_on")
def test_no_worker_takes_a_body_for_another_one_before_the_token_was_checked(site: Site) -> None:
    with site.serve("serve", "--port", "0", "--workers", "2", "--allow-origin", "http://a.example") as server:
        for index in (0, 1) * 4:  # which worker takes the connection is not ours to choose
            with socket.create_connection((server.host, server.port), timeout=HANG_SECONDS) as link:
                head = f"POST /mcp HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nMcp-Session-Id: abc.w{index}\r\n"
                link.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n".encode())
                assert link.recv(12) == b"HTTP/1.1 401"
        headers = server.initialize()
        for _ in range(8):
            status, got, _ = server.rpc("ping", era="2025-11-25", headers={**headers, "Origin": "http://a.example"})
            assert (status, got["access-control-allow-origin"]) == (200, "http://a.example")

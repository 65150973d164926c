"""Several processes that serve one port: the first one watches over the others, and replaces those that end unexpectedly.

1. The port is opened once, and every worker takes connections from it.
2. A session of the older protocol is in the memory of one worker. Its name says in which, and the others pass its requests on.
3. A request is passed on after its token was checked, and its body as it comes: nothing of it is kept on the way.
4. When the watching process dies, its workers end as if they were told to.
"""

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import anyio
import h11
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SESSION_HEADER = "mcp-session-id"
_QUICK_SECONDS = 2.0
_MAX_QUICK_ENDS = 5
_PAUSE_SECONDS = 0.2
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_AWAITED_SIGNALS = {*_ENDING_SIGNALS, signal.SIGCHLD, signal.SIGALRM}
_ENDING_SECONDS = 10.0
"""How long a worker may take to end after its calls have had their time."""
_READ_BYTES = 1 << 16
_LOST_ANSWER = (
    "The process that has this session ended before it answered; the history says whether it changed anything.\n"
)
_SAME_EVERYWHERE = ("surehold_info", "surehold_ready", "surehold_open_intents")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlace:
    """Which worker this is, of how many, and where they reach each other."""

    index: int
    count: int
    folder: Path

    def address_of(self, index: int) -> str:
        return str(self.folder / str(index))

    def listen(self) -> socket.socket:
        """Open the door for the other workers."""
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        Path(self.address_of(self.index)).unlink(missing_ok=True)
        door.bind(self.address_of(self.index))
        door.listen(64)
        return door


def run_workers(count: int, serve: Callable[[WorkerPlace], int], *, drain_seconds: float) -> int:
    """Serve in so many processes until a signal ends them; return the exit code."""
    folder = Path(tempfile.mkdtemp(prefix="surehold-workers-"))
    try:
        return _WorkerWatch(count, folder, serve, drain_seconds + _ENDING_SECONDS).watch()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _WorkerWatch:
    def __init__(self, count: int, folder: Path, serve: Callable[[WorkerPlace], int], patience: float) -> None:
        self._count, self._folder, self._serve, self._patience = count, folder, serve, patience
        self._workers = dict[int, tuple[int, float]]()
        """The index of each process, and when it was started."""
        self._alive, self._held = os.pipe()  # the workers read the end of it when this process is gone
        self._is_ending, self._code, self._quick_ends = False, 0, 0

    def watch(self) -> int:
        """Start the workers, and wait for what happens: no signal can come in between and be noticed too late."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED_SIGNALS)
        for index in range(self._count):
            self._start(index)
        while self._workers:
            number = signal.sigwait(_AWAITED_SIGNALS)
            if number == signal.SIGCHLD:
                self._replace_ended()
            elif number == signal.SIGALRM:
                self._kill_rest()
            else:
                self._code = 130 if number == signal.SIGINT else 0
                self._end(number)
        return self._code

    def _replace_ended(self) -> None:
        while self._workers:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            index, began = self._workers.pop(pid)
            if self._is_ending:  # one that was still starting may end in any way
                continue
            self._quick_ends = self._quick_ends + 1 if time.monotonic() - began < _QUICK_SECONDS else 0
            if self._quick_ends >= _MAX_QUICK_ENDS:
                self._code = 1
                self._end(signal.SIGTERM)
                continue
            time.sleep(_PAUSE_SECONDS)
            self._start(index)

    def _end(self, number: int) -> None:
        if not self._is_ending:
            signal.setitimer(signal.ITIMER_REAL, self._patience)
        self._is_ending = True
        for pid in self._workers:  # those that have ended are there until they are waited for
            os.kill(pid, number)

    def _kill_rest(self) -> None:
        """Kill what cannot end by itself, as a process that was stopped; the history settles what it was about to write."""
        if not self._is_ending:  # the alarm is of someone else
            return
        for pid, (index, _) in self._workers.items():
            sys.stderr.write(f"surehold: worker {index} did not end in time and was killed.\n")
            os.kill(pid, signal.SIGKILL)

    def _start(self, index: int) -> None:
        pid = os.fork()
        if pid:
            self._workers[pid] = (index, time.monotonic())
            return
        for number in _ENDING_SIGNALS:
            signal.signal(number, _end_at_once)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED_SIGNALS)
        code = 1
        try:
            os.close(self._held)
            threading.Thread(target=self._end_with_parent, daemon=True).start()
            code = self._serve(WorkerPlace(index=index, count=self._count, folder=self._folder))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        finally:
            self._remove_address(index)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _remove_address(self, index: int) -> None:
        """Remove its address, and the last worker the folder: the watching process may be gone."""
        with suppress(OSError):
            (self._folder / str(index)).unlink(missing_ok=True)
            self._folder.rmdir()

    def _end_with_parent(self) -> None:
        os.read(self._alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)


def _end_at_once(_number: int, _frame: object) -> None:
    """End a worker that is still starting and has served no one: an exception could get lost on its way out."""
    os._exit(0)


class WorkerRouter:
    """Marks the names of sessions with the worker that has them, and passes requests on to it."""

    def __init__(self, app: ASGIApp, place: WorkerPlace, *, path: str) -> None:
        self._app, self._place, self._path = app, place, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or str(scope["path"]).rstrip("/") != self._path:
            await self._app(scope, receive, send)
            return
        name, mark, number = Headers(scope=scope).get(_SESSION_HEADER, "").rpartition(".w")
        if mark and number.isdigit() and int(number) < self._place.count:
            if int(number) != self._place.index:
                await self._pass_on(int(number), scope, receive, send)
                return
            headers = [one for one in scope["headers"] if one[0] != _SESSION_HEADER.encode()]
            scope = {**scope, "headers": [*headers, (_SESSION_HEADER.encode(), name.encode("latin-1"))]}

        async def mark_session(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if opened := headers.get(_SESSION_HEADER):
                    headers[_SESSION_HEADER] = f"{opened}.w{self._place.index}"
            await send(message)

        await self._app(scope, receive, mark_session)

    async def _pass_on(self, index: int, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reader, writer = await asyncio.open_unix_connection(self._place.address_of(index))
        except OSError:  # it is being replaced, and its sessions are gone
            await PlainTextResponse("This session is gone.\n", HTTPStatus.NOT_FOUND)(scope, receive, send)
            return
        link = h11.Connection(our_role=h11.CLIENT)
        try:
            writer.write(link.send(_as_request(scope)) or b"")
            async with anyio.create_task_group() as group:
                group.start_soon(_pass_body, link, receive, writer, group.cancel_scope.cancel)
                if not await _pass_answer(link, reader, send):
                    await PlainTextResponse(_LOST_ANSWER, HTTPStatus.BAD_GATEWAY)(scope, receive, send)
                group.cancel_scope.cancel()
        finally:
            writer.transport.abort()  # what it did not take it does not want


def _as_request(scope: Scope) -> h11.Request:
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    # The origin was checked here, and is answered to here.
    headers = [one for one in scope["headers"] if one[0] not in {b"connection", b"expect", b"origin"}]
    target = str(scope["path"]).encode() + query
    return h11.Request(method=scope["method"], target=target, headers=[*headers, (b"connection", b"close")])


async def _pass_body(
    link: h11.Connection, receive: Receive, writer: asyncio.StreamWriter, end: Callable[[], None]
) -> None:
    """Pass the body of a request on as it comes, so that the worker that answers decides how much it takes; then wait for the client to go."""
    more = True
    while (message := await receive())["type"] != "http.disconnect":
        if not more:
            continue
        more = message.get("more_body", False)
        try:
            writer.write(link.send(h11.Data(data=message.get("body", b""))) or b"")
            writer.write((b"" if more else link.send(h11.EndOfMessage())) or b"")
            await writer.drain()
        except (OSError, h11.LocalProtocolError):  # it was answered before its end
            more = False
    end()


async def _pass_answer(link: h11.Connection, reader: asyncio.StreamReader, send: Send) -> bool:
    """Send an answer on as it comes; False if none came. One that breaks off is not ended, so that the client knows."""
    began = False
    with suppress(OSError, h11.RemoteProtocolError):  # the worker died
        while True:
            event = link.next_event()
            match event:
                case h11.NEED_DATA:
                    link.receive_data(await reader.read(_READ_BYTES))
                case h11.Response():
                    began = True
                    headers = [(bytes(name), bytes(value)) for name, value in event.headers if name != b"date"]
                    await send({"type": "http.response.start", "status": event.status_code, "headers": headers})
                case h11.Data():
                    await send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
                case h11.EndOfMessage() | h11.ConnectionClosed() | h11.PAUSED:
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    break
                case _:
                    pass
    return began


async def ask_others(place: WorkerPlace, path: str) -> list[str]:
    """Return what the other workers answer to a plain request; those that do not answer are left out."""
    found = list[str]()
    for index in range(place.count):
        if index == place.index:
            continue
        try:
            with anyio.fail_after(2):
                reader, writer = await asyncio.open_unix_connection(place.address_of(index))
                writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                answer = await reader.read(-1)
                writer.close()
        except (OSError, TimeoutError):
            continue
        found.append(answer.partition(b"\r\n\r\n")[2].decode())
    return found


def add_up(texts: list[str]) -> str:
    """Return the metrics of all workers as those of one server; the samples of a metric stay together."""
    heads, samples = dict[str, list[str]](), dict[str, dict[str, float]]()
    for text in texts:
        family = ""
        for row in text.splitlines():
            if row.startswith("# HELP"):
                family = row.split(" ")[2]
                heads.setdefault(family, [row])
            elif row.startswith("#"):
                heads[family][1:] = [row]
            else:
                name, _, value = row.rpartition(" ")
                known = samples.setdefault(family, {})
                both = (known.get(name, 0.0), float(value))
                known[name] = max(both) if family in _SAME_EVERYWHERE else sum(both)
    rows = list[str]()
    for family, head in heads.items():
        values = samples.get(family, {})
        rows += head + [f"{name} {int(value) if value.is_integer() else value}" for name, value in values.items()]
    return "\n".join(rows) + "\n"

"""Limits of the HTTP server: on connections, on the time that a request may take to arrive, on sessions and on log lines.

1. A request must arrive within some seconds, however slowly it drips. This does not depend on a token.
2. When too many connections are open, the one that has waited longest for a request is closed. Half requests keep no
   client out.
3. When too many sessions are open, the one that was idle longest is forgotten. Its client begins another one, and reads
   again. Without any open request for a minute, not even the one that listens for news, its client counts as gone.
4. The same error is logged once a minute.
"""

import asyncio
import logging
import resource
import socket
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import h11
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

BACKLOG = 64
"""Connections that are taken at once; those that are closed for them need a moment to go."""
_MAX_CONNECTIONS = 512
_DESCRIPTORS_PER_CONNECTION = 4
"""A connection takes one; the rest is for files, and for connections that are about to be closed."""
_HEAD_SECONDS = 10.0
_BODY_SECONDS = 60.0
_LOG_SECONDS = 60.0
_SESSION_HEADER = "mcp-session-id"


class ConnectionLimits:
    """The connections of a server that wait for a request, the longest waiting one first."""

    def __init__(self) -> None:
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.most = max(min(_MAX_CONNECTIONS, descriptors // _DESCRIPTORS_PER_CONNECTION), 1)
        self.waiting = OrderedDict["LimitedConnection", None]()


class LimitedConnection(H11Protocol):
    """A connection that is closed when its next request does not arrive in time, or when others need its place."""

    def __init__(self, *args: Any, limits: ConnectionLimits, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        self._in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        _send_at_once(transport)
        self._await_request()
        if len(self.connections) > self._limits.most:
            next(iter(self._limits.waiting)).drop()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note_progress()

    def on_response_complete(self) -> None:
        self._await_request()
        super().on_response_complete()
        self._note_progress()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def drop(self) -> None:
        self._stop_waiting()
        self.transport.abort()

    def _await_request(self) -> None:
        self._stop_waiting()
        self._in_body = False
        self._limits.waiting[self] = None
        self._timer = self.loop.call_later(_HEAD_SECONDS, self.drop)

    def _stop_waiting(self) -> None:
        self._limits.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _note_progress(self) -> None:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        answered = cycle is None or cycle.response_complete
        if self.conn.their_state is h11.SEND_BODY and not answered and not self._in_body and self._timer is not None:
            self._timer.cancel()
            self._timer, self._in_body = self.loop.call_later(_BODY_SECONDS, self.drop), True
        elif self.conn.their_state not in {h11.IDLE, h11.SEND_BODY} and not answered:
            self._stop_waiting()


def _send_at_once(transport: asyncio.Transport) -> None:
    """Let the parts of an answer leave without waiting until the client has confirmed the previous one, up to 40 ms each.

    The event loop does this by itself only for sockets that name their protocol; those of `socket.create_server` do not.
    """
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.family in {socket.AF_INET, socket.AF_INET6}:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class SessionLimit:
    """Forgets the session that was idle longest when one more is opened than may be in memory; tells of clients that are gone."""

    def __init__(
        self, app: ASGIApp, *, path: str, most: int, tell_gone: Callable[[str], None], gone_seconds: float
    ) -> None:
        self._app, self._path, self._most = app, path, most
        self._tell_gone, self._gone_seconds = tell_gone, gone_seconds
        self._idle = OrderedDict[str, asyncio.TimerHandle]()
        self._busy = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or str(scope["path"]).rstrip("/") != self._path:
            await self._app(scope, receive, send)
            return
        name = Headers(scope=scope).get(_SESSION_HEADER, "")
        if name not in self._idle and name not in self._busy:
            await self._pass_on(scope, receive, send)
            return
        if name in self._idle:
            self._idle.pop(name).cancel()
        self._busy[name] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            if scope["method"] == "DELETE":
                self._busy.pop(name, None)
                self._tell_gone(name)
            elif self._busy[name] > 1:
                self._busy[name] -= 1
            elif self._busy.pop(name, None):
                self._note_idle(name)

    def _note_idle(self, name: str) -> None:
        self._idle[name] = asyncio.get_running_loop().call_later(self._gone_seconds, self._tell_gone, name)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request without a session, which may open one."""

        async def note_session(message: Message) -> None:
            accepted = message["type"] == "http.response.start" and message["status"] < HTTPStatus.BAD_REQUEST
            if accepted and (opened := Headers(scope=message).get(_SESSION_HEADER)):
                self._note_idle(opened)
            await send(message)

        await self._app(scope, receive, note_session)
        while self._idle and len(self._idle) + len(self._busy) > self._most:
            oldest, timer = self._idle.popitem(last=False)
            timer.cancel()
            self._tell_gone(oldest)
            await self._end_session(oldest, scope)

    async def _end_session(self, name: str, scope: Scope) -> None:
        """End a session as its client would: by a request to delete it."""

        async def receive_nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send_nowhere(_: Message) -> None:
            pass

        headers = [(_SESSION_HEADER.encode(), name.encode("latin-1"))]
        await self._app({**scope, "method": "DELETE", "headers": headers}, receive_nothing, send_nowhere)


class RepeatFilter(logging.Filter):
    """Drops log records whose first line was logged a moment ago."""

    def __init__(self) -> None:
        super().__init__()
        self._logged = dict[str, float]()

    def filter(self, record: logging.LogRecord) -> bool:
        line, now = record.getMessage().partition("\n")[0], time.monotonic()
        recent = now - self._logged.get(line, -_LOG_SECONDS) < _LOG_SECONDS
        if not recent:
            self._logged = {line: at for line, at in self._logged.items() if now - at < _LOG_SECONDS}
            self._logged[line] = now
        return not recent

"""Serves MCP over streamable HTTP at `/mcp`, with a check of the token and a limit of sessions.

1. With a token, every request to the protected path must carry it, else 401.
2. When too many sessions are open, the one that was idle longest is forgotten. Its client begins another one, and reads
   again. Without any open request for a minute, not even the one that listens for news, its client counts as gone.
"""

import asyncio
import hashlib
import hmac
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus

import anyio
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surehold.front.mcp.sdk.direct_reads import SESSION_HEADER, DirectReads
from surehold.front.mcp.sdk.operations import ServerOperations
from surehold.front.mcp.sdk.server import DISCONNECTED_KEY, PRINCIPAL_KEY, BoundServer, ShutdownSignals
from surehold.front.mcp.sdk.workers import WorkerRouter
from surehold.front.shared.http_server import SameSiteCheck, make_http_server
from surehold.front.shared.http_settings import HttpSettings


class TokenCheck:
    """Refuses requests to the protected paths that do not carry the token."""

    def __init__(self, app: ASGIApp, token: str, protected: Iterable[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._principal = hashlib.sha256(self._token).hexdigest()
        self._protected = tuple(protected)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and str(scope["path"]).rstrip("/") in self._protected:
            if not self._is_valid_token(Headers(scope=scope).get("authorization", "")):
                challenge = {"WWW-Authenticate": 'Bearer realm="surehold"'}
                response = PlainTextResponse("Send the token: Authorization: Bearer …\n", 401, challenge)
                await response(scope, receive, send)
                return
            scope[PRINCIPAL_KEY] = self._principal
        await self._app(scope, receive, send)

    def _is_valid_token(self, authorization: str) -> bool:
        scheme, _, sent = authorization.partition(" ")
        right = hmac.compare_digest(sent.strip().encode("utf-8", "replace"), self._token)
        return right and scheme.casefold() == "bearer"


class DisconnectWatch:
    """Notices while a request is answered that its client has closed the connection, also when the client was killed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        watching: asyncio.Future[Message] | None = None

        async def receive_and_watch() -> Message:
            nonlocal watching
            if watching is not None:  # the body is complete: all that can come is the end
                return await asyncio.shield(watching)
            message = await receive()
            if not message.get("more_body"):
                watching = asyncio.ensure_future(receive())
            return message

        scope[DISCONNECTED_KEY] = lambda: watching is not None and watching.done()
        try:
            await self._app(scope, receive_and_watch, send)
        finally:
            if watching is not None:
                watching.cancel()


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
        name = Headers(scope=scope).get(SESSION_HEADER, "")
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
            if accepted and (opened := Headers(scope=message).get(SESSION_HEADER)):
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

        headers = [(SESSION_HEADER.encode(), name.encode("latin-1"))]
        await self._app({**scope, "method": "DELETE", "headers": headers}, receive_nothing, send_nowhere)


MCP_PATH = "/mcp"
_MAX_REQUEST_BYTES = 64 << 20
_WELCOME_TEXT = """Surehold: file tools for AI agents that never lose an edit.

This is its MCP server. Clients connect to /mcp (streamable HTTP).
"""


def make_app(
    bound: BoundServer, settings: HttpSettings, routes: Sequence[Route] = (), operations: ServerOperations | None = None
) -> ASGIApp:
    """Return the application that serves a bound server with these settings, and maybe a page beside it."""
    app: ASGIApp = bound.server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        max_request_body_size=_MAX_REQUEST_BYTES,
        session_idle_timeout=settings.session_hours * 3600,
        max_sessions=2 * settings.max_sessions,  # more than are kept, since those with a running call are
        host="",  # our own checks guard everything, not only this path
        custom_starlette_routes=[*(routes or [Route("/", _welcome_page)])],
    )
    idle_seconds = settings.session_hours * 3600
    app = DirectReads(app, bound, path=MCP_PATH, most=2 * settings.max_sessions, idle_seconds=idle_seconds)
    app = SessionLimit(
        app,
        path=MCP_PATH,
        most=settings.max_sessions,
        tell_gone=bound.forget_client,
        gone_seconds=settings.gone_seconds,
    )
    app = DisconnectWatch(app)
    if operations and operations.place:
        app = WorkerRouter(app, operations.place, path=MCP_PATH)
    if settings.token:
        app = TokenCheck(app, settings.token, [MCP_PATH])
    if settings.allow_origins:
        app = CORSMiddleware(
            app,
            allow_origins=list(settings.allow_origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["Mcp-Session-Id"],
        )
    app = SameSiteCheck(app, settings)
    return operations.wrap(app) if operations else app


async def _welcome_page(_: Request) -> PlainTextResponse:
    return PlainTextResponse(_WELCOME_TEXT)


def serve_http(
    bound: BoundServer,
    listener: socket.socket,
    settings: HttpSettings,
    *,
    routes: Sequence[Route] = (),
    operations: ServerOperations | None = None,
) -> int:
    """Serve until a signal ends it; return the exit code."""
    app = make_app(bound, settings, routes, operations)
    return anyio.run(_serve_app, bound, listener, app, operations, settings.drain_seconds)


async def _serve_app(
    bound: BoundServer, listener: socket.socket, app: ASGIApp, operations: ServerOperations | None, patience: float
) -> int:
    server = make_http_server(app, lifespan="on")
    ending = ShutdownSignals()
    listeners = [listener, operations.place.listen()] if operations and operations.place else [listener]

    async def stop_when_asked() -> None:
        await ending.asked.wait()
        bound.approvals.close()
        if operations is not None and not ending.code:  # a person at the keyboard does not wait
            await operations.drain(patience, bound.calls)
        bound.listening.close()
        server.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(ending.watch_signals)
        group.start_soon(stop_when_asked)
        await server.serve(sockets=listeners)
        group.cancel_scope.cancel()
    return ending.code

"""Serves MCP over streamable HTTP at `/mcp`, with checks of host, origin and token.

1. The Host header must be ours, else 421: a web page cannot reach us through a name of its own (DNS rebinding).
2. An Origin must be ours or allowed, else 403: other web pages cannot call us from a browser.
3. With a token, every request to the protected path must carry it, else 401.
"""

import asyncio
import hashlib
import hmac
import logging
import os
import socket
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import uvicorn
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surehold.errors import InvalidArgument
from surehold.front.mcp.options import LOOPBACK_HOSTS, HttpSettings, url_host
from surehold.front.mcp.sdk.http_limits import BACKLOG, ConnectionLimits, LimitedConnection, RepeatFilter, SessionLimit
from surehold.front.mcp.sdk.server import DISCONNECTED_KEY, PRINCIPAL_KEY, BoundServer, ShutdownSignals


class SameSiteCheck:
    """Refuses requests that come through a foreign name or from a foreign page."""

    def __init__(self, app: ASGIApp, settings: HttpSettings) -> None:
        self._app = app
        names = {url_host(name) for name in (*LOOPBACK_HOSTS, settings.host)}
        self._hosts = {f"{name}:{settings.port}" for name in names} | ({*names} if settings.port == 80 else set[str]())  # noqa: PLR2004 - the default port is left out
        self._any_port = frozenset(name.casefold() for name in settings.allow_hosts)
        self._origins = {f"http://{host}" for host in self._hosts} | set(settings.allow_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not self._is_own_host(headers.getlist("host")):
                await PlainTextResponse("This Host is not served here.\n", 421)(scope, receive, send)
                return
            origin = headers.get("origin")
            if origin is not None and origin not in self._origins:
                await PlainTextResponse("Requests from this Origin are not allowed.\n", 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_own_host(self, hosts: list[str]) -> bool:
        if len(hosts) != 1:
            return False
        host = hosts[0].casefold()
        return host in self._hosts or host in self._any_port or _strip_port(host) in self._any_port


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


def _strip_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


MCP_PATH = "/mcp"
_MAX_REQUEST_BYTES = 64 << 20
_SHUTDOWN_SECONDS = 1
_WELCOME_TEXT = """Surehold: file tools for AI agents that never lose an edit.

This is its MCP server. Clients connect to /mcp (streamable HTTP).
"""


def make_app(bound: BoundServer, settings: HttpSettings, routes: Sequence[Route] = ()) -> ASGIApp:
    """Return the application that serves a bound server with these settings, and maybe a page beside it."""
    app: ASGIApp = bound.server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        max_request_body_size=_MAX_REQUEST_BYTES,
        session_idle_timeout=settings.session_hours * 3600,
        max_sessions=2 * settings.max_sessions,  # more than are kept, since those with a running call are
        host="",  # our own checks guard everything, not only this path
        custom_starlette_routes=[*(routes or [Route("/", _welcome_page)])],
    )
    app = SessionLimit(
        app,
        path=MCP_PATH,
        most=settings.max_sessions,
        tell_gone=bound.forget_client,
        gone_seconds=settings.gone_seconds,
    )
    app = DisconnectWatch(app)
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
    return SameSiteCheck(app, settings)


async def _welcome_page(_: Request) -> PlainTextResponse:
    return PlainTextResponse(_WELCOME_TEXT)


def open_port(settings: HttpSettings) -> tuple[socket.socket, HttpSettings]:
    """Open the port; return it with the settings as they came out, since port 0 means any."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        message = f"Cannot listen on {settings.address}: {reason}."
        action = "Choose another address or port; port 0 takes any that is free."
        raise InvalidArgument(message, reason="cannot_listen", action=action) from None
    return listener, replace(settings, port=listener.getsockname()[1])


def serve_http(
    bound: BoundServer, listener: socket.socket, settings: HttpSettings, *, routes: Sequence[Route] = ()
) -> int:
    """Serve until a signal ends it; return the exit code."""
    return anyio.run(_serve_app, bound, listener, make_app(bound, settings, routes))


async def _serve_app(bound: BoundServer, listener: socket.socket, app: ASGIApp) -> int:
    logging.getLogger("uvicorn.error").addFilter(_is_real_error)
    repeats = RepeatFilter()
    for name in ("uvicorn.error", "asyncio", "mcp"):
        logging.getLogger(name).addFilter(repeats)
    protocol: Any = partial(LimitedConnection, limits=ConnectionLimits())
    config = uvicorn.Config(
        app,
        http=protocol,
        backlog=BACKLOG,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        lifespan="on",
        ws="none",
    )
    server = _SignalFreeServer(config)
    ending = ShutdownSignals()
    async with anyio.create_task_group() as group:
        group.start_soon(ending.watch_signals)
        group.start_soon(_stop_when_asked, ending, server, bound)
        await server.serve(sockets=[listener])
        group.cancel_scope.cancel()
    return ending.code


def _is_real_error(record: logging.LogRecord) -> bool:
    """Tell real trouble from streams that are still open when the server ends."""
    kind = record.exc_info[0] if record.exc_info else None
    cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
    return not cancelled and not record.getMessage().startswith("Cancel ")


async def _stop_when_asked(ending: ShutdownSignals, server: uvicorn.Server, bound: BoundServer) -> None:
    await ending.asked.wait()
    bound.approvals.close()
    bound.listening.close()
    server.should_exit = True


class _SignalFreeServer(uvicorn.Server):
    """Leaves signals to us, so that the exit code is ours too."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

"""An HTTP server on one port: who may send requests to it, and how many, and how slowly.

1. The Host header must be ours, else 421: a web page cannot reach us through a name of its own (DNS rebinding).
2. An Origin must be ours or allowed, else 403: other web pages cannot call us from a browser.
3. A request must arrive within some seconds, however slowly it drips. This does not depend on a token.
4. When too many connections are open, the one that has waited longest for a request is closed. Half requests keep no
   client out.
5. The same error is logged once a minute.
"""

import asyncio
import logging
import os
import resource
import socket
import time
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal, cast

import h11
import uvicorn
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from surehold.errors import InvalidArgument
from surehold.front.shared.http_settings import LOOPBACK_HOSTS, CertificateFiles, HttpSettings, url_host

_BACKLOG = 64
"""Connections that are taken at once; those that are closed for them need a moment to go."""
_MAX_CONNECTIONS = 512
_DESCRIPTORS_PER_CONNECTION = 4
"""A connection takes one; the rest is for files, and for connections that are about to be closed."""
_HEAD_SECONDS = 10.0
_BODY_SECONDS = 60.0
_LOG_SECONDS = 60.0
_SHUTDOWN_SECONDS = 1


class SameSiteCheck:
    """Refuses requests that come through a foreign name or from a foreign page."""

    def __init__(self, app: ASGIApp, settings: HttpSettings) -> None:
        self._app = app
        names = {url_host(name) for name in (*LOOPBACK_HOSTS, settings.host)}
        self._hosts = {f"{name}:{settings.port}" for name in names} | ({*names} if settings.port == 80 else set[str]())  # noqa: PLR2004 - the default port is left out
        self._any_port = frozenset(name.casefold() for name in settings.allow_hosts)
        self._origins = {f"{settings.scheme}://{host}" for host in self._hosts} | set(settings.allow_origins)

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


def _strip_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


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
        self.is_in_body = False

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
        self.is_in_body = False
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
        if self.conn.their_state is h11.SEND_BODY and not answered and not self.is_in_body and self._timer is not None:
            self._timer.cancel()
            self._timer, self.is_in_body = self.loop.call_later(_BODY_SECONDS, self.drop), True
        elif self.conn.their_state not in {h11.IDLE, h11.SEND_BODY} and not answered:
            self._stop_waiting()


def _send_at_once(transport: asyncio.Transport) -> None:
    """Let the parts of an answer leave without waiting until the client has confirmed the previous one, up to 40 ms each.

    The event loop does this by itself only for sockets that name their protocol; those of `socket.create_server` do not.
    """
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.family in {socket.AF_INET, socket.AF_INET6}:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


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


def make_http_server(
    app: ASGIApp, *, lifespan: Literal["on", "off"] = "off", certificate: CertificateFiles | None = None
) -> uvicorn.Server:
    """Return a server of an application, with our limits; it leaves signals alone. With a certificate it speaks TLS."""
    repeats = RepeatFilter()
    for name in ("uvicorn.error", "mcp.server.streamable_http", "asyncio", "mcp"):
        logging.getLogger(name).addFilter(_is_real_error)
        logging.getLogger(name).addFilter(repeats)
    limits = ConnectionLimits()
    protocol: Any = partial(LimitedConnection, limits=limits)
    config = uvicorn.Config(
        app,
        http=protocol,
        backlog=_BACKLOG,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        lifespan=lifespan,
        ws="none",
        ssl_certfile=certificate.certificate if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
    )
    return _LimitedServer(config, limits)


def _is_real_error(record: logging.LogRecord) -> bool:
    """Tell real trouble from requests that end halfway, and from streams that are still open when the server ends."""
    kind = record.exc_info[0] if record.exc_info else None
    cancelled = kind is not None and issubclass(kind, (asyncio.CancelledError, ClientDisconnect))
    return not cancelled and not record.getMessage().startswith("Cancel ")


class _LimitedServer(uvicorn.Server):
    """Leaves signals to us, so that the exit code is ours too, and ends without waiting for half requests."""

    def __init__(self, config: uvicorn.Config, limits: ConnectionLimits) -> None:
        super().__init__(config)
        self._limits = limits

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for connection in [one for one in self._limits.waiting if one.is_in_body]:
            connection.drop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

"""MCP over streamable HTTP at `/mcp`."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import anyio
import uvicorn
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from surehold.errors import InvalidArgument
from surehold.front.mcp.binding import Bound
from surehold.front.mcp.door import Door
from surehold.front.mcp.doorway import SameSite, TokenCheck
from surehold.front.mcp.ending import Ending

PATH = "/mcp"
_LARGEST_REQUEST = 64 << 20
_MOMENT = 1
_WELCOME = """Surehold: file tools for AI agents that never lose an edit.

This is its MCP server. Clients connect to /mcp (streamable HTTP).
"""


def make_app(bound: Bound, door: Door, routes: Sequence[Route] = ()) -> ASGIApp:
    """Return the application that serves a bound server behind this door, and maybe a page beside it."""
    app: ASGIApp = bound.server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=_LARGEST_REQUEST,
        host="",  # our own checks stand in front of everything, not only of this path
        custom_starlette_routes=[*(routes or [Route("/", _welcome)])],
    )
    if door.token:
        app = TokenCheck(app, door.token, [PATH])
    if door.allow_origins:
        app = CORSMiddleware(
            app,
            allow_origins=list(door.allow_origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["Mcp-Session-Id"],
        )
    return SameSite(app, door)


async def _welcome(_: Request) -> PlainTextResponse:
    return PlainTextResponse(_WELCOME)


def listen(door: Door) -> tuple[socket.socket, Door]:
    """Open the port; return it with the door as it came out, since port 0 means any."""
    family = socket.AF_INET6 if ":" in door.host else socket.AF_INET
    try:
        place = socket.create_server((door.host, door.port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise InvalidArgument(
            f"Cannot listen on {door.address}: {reason}.",
            reason="cannot_listen",
            action="Choose another address or port; port 0 takes any that is free.",
        ) from None
    return place, replace(door, port=place.getsockname()[1])


def serve_http(
    bound: Bound,
    place: socket.socket,
    door: Door,
    *,
    routes: Sequence[Route] = (),
    farewell: Callable[[], None] = lambda: None,
) -> int:
    """Serve until a signal ends it; return the exit code. The farewell ends what still waits for a person."""
    return anyio.run(_serve, bound, place, make_app(bound, door, routes), farewell)


async def _serve(bound: Bound, place: socket.socket, app: ASGIApp, farewell: Callable[[], None]) -> int:
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_MOMENT,
        lifespan="on",
        ws="none",
    )
    server = _Server(config)
    ending = Ending()
    async with anyio.create_task_group() as group:
        group.start_soon(ending.run)
        group.start_soon(_stop, ending, server, bound, farewell)
        await server.serve(sockets=[place])
        group.cancel_scope.cancel()
    return ending.code


def _is_news(record: logging.LogRecord) -> bool:
    """Tell real trouble from streams that are still open when the server ends."""
    kind = record.exc_info[0] if record.exc_info else None
    cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
    return not cancelled and not record.getMessage().startswith("Cancel ")


async def _stop(ending: Ending, server: uvicorn.Server, bound: Bound, farewell: Callable[[], None]) -> None:
    await ending.asked.wait()
    farewell()
    bound.desk.close()
    bound.listening.close()
    server.should_exit = True


class _Server(uvicorn.Server):
    """Leaves signals to us, so that the exit code is ours too."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

"""Serves MCP over standard input and output.

1. While it serves, descriptor 0 is empty and descriptor 1 is standard error: what a library prints never reaches the
   client.
2. A client that neither reads nor disconnects cannot keep the server from ending.
3. It ends when the client closes its end, or on SIGTERM, SIGINT, SIGHUP or SIGQUIT. Running calls get a moment; changes get as long as
   they need.
4. Some hosts send half of a character as an escape. The SDK's parser refuses such a line, and the client would wait
   forever; so lone surrogates become U+FFFD, and the request says that it was repaired.
"""

import json
import re
from contextlib import suppress
from typing import Any, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from surehold.front.mcp.results import REPAIRED_KEY
from surehold.front.mcp.server import BoundServer, ShutdownSignals
from surehold.front.shared.sanitize import ensure_utf8
from surehold.front.shared.stdio_lines import StdioDescriptors, StdioLines
from surehold.tools.spec import Json

_SURROGATE_ESCAPES = re.compile(
    rb"\\\\"  # a backslash that is content
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_INVALID_REQUEST = -32600
_MAX_DIGITS = 4_000
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


def parse_line(line: bytes) -> JSONRPCMessage | tuple[JSONRPCError, ...]:
    """Return the message in a line; if it has none, what to answer at once."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _repair_line(line) or _error_replies(line)


def _repair_line(line: bytes) -> JSONRPCMessage | None:
    whole, halves = _SURROGATE_ESCAPES.subn(lambda match: b"\\ufffd" if match["half"] else match[0], line)
    if not halves or whole == line:
        return None
    try:
        message = jsonrpc_message_adapter.validate_json(whole, by_name=False)
    except ValidationError:
        return None
    if isinstance(message, JSONRPCRequest) and message.params is not None:
        meta = message.params.get("_meta")
        known = cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}
        message.params["_meta"] = {**known, REPAIRED_KEY: True}
    return message


def _parse_number(digits: str) -> int | float:
    """Read a number of any length; Python refuses very long ones, and the client would wait for an answer."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float("inf")


def _error_replies(line: bytes) -> tuple[JSONRPCError, ...]:
    """Return an error for every request in a line that is a batch or malformed: the client may wait for an answer."""
    try:
        found = json.loads(line, parse_int=_parse_number)
    except (ValueError, RecursionError):
        found = _outermost_members(line)
    batch = isinstance(found, list)
    why = "Send one message per line; batches are not served." if batch else "This is not a JSON-RPC 2.0 request."
    requests = cast("list[Any]", found) if batch else [found]
    objects = [cast("dict[str, Any]", one) for one in requests if isinstance(one, dict)]
    ids = [one["id"] for one in objects if "method" in one and type(one.get("id")) in {int, str}]
    error = ErrorData(code=_INVALID_REQUEST, message=why)
    return tuple(JSONRPCError(jsonrpc="2.0", id=each, error=error) for each in ids)


def _outermost_members(line: bytes) -> Json:
    """Return the plain members of an object that cannot be parsed: what is nested too deep, or cut off, has an id too."""
    members, depth, key = dict[str, Any](), 0, b""
    for token in _TOKEN.findall(line):
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
        elif depth == 1 and token not in b":,":
            if key:
                with suppress(ValueError):
                    members[json.loads(key)] = json.loads(token, parse_int=_parse_number)
            key = b"" if key else token
        if depth == 1 and token == b",":
            key = b""
    return members


_GRACE_SECONDS = 1.0
"""Seconds that running reads still get when the server ends."""
_FLUSH_SECONDS = 2.0
_SETTLE_SECONDS = 0.05
"""Seconds until everything that was read has been handed on."""


def serve_stdio(bound: BoundServer, pipes: StdioDescriptors) -> int:
    """Serve one client until it leaves; return the exit code."""
    return anyio.run(_serve_client, bound, pipes)


async def _serve_client(bound: BoundServer, pipes: StdioDescriptors) -> int:
    ending, lines = ShutdownSignals(), StdioLines(pipes.incoming, pipes.outgoing)
    incoming, to_read = anyio.create_memory_object_stream[SessionMessage | Exception]()
    to_write, outgoing = anyio.create_memory_object_stream[SessionMessage]()
    async with anyio.create_task_group() as group:
        written = anyio.Event()
        group.start_soon(ending.watch_signals)
        group.start_soon(_write_messages, lines, outgoing, written, ending)
        group.start_soon(_read_messages, lines, incoming, to_write.clone(), bound, ending)
        await bound.server.run(to_read, to_write, bound.server.create_initialization_options())
        with anyio.move_on_after(_FLUSH_SECONDS):
            await written.wait()
        group.cancel_scope.cancel()
    return ending.code


async def _read_messages(
    lines: StdioLines,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    replies: MemoryObjectSendStream[SessionMessage],
    bound: BoundServer,
    ending: ShutdownSignals,
) -> None:
    async with incoming, replies:
        async with anyio.create_task_group() as group:
            group.start_soon(ending.cancel_when_asked, group.cancel_scope)
            async for line in lines.read_lines():
                found = parse_line(line)
                if not isinstance(found, tuple):
                    await incoming.send(SessionMessage(found))
                    continue
                for reply in found:
                    await replies.send(SessionMessage(reply))
            group.cancel_scope.cancel()
        await _finish_calls(lines, bound)


async def _finish_calls(lines: StdioLines, bound: BoundServer) -> None:
    """Let calls end whose answers the client still reads; open questions are withdrawn."""
    await anyio.sleep(_SETTLE_SECONDS)
    bound.approvals.close()
    end = anyio.current_time() + _GRACE_SECONDS
    while bound.calls.under_way and lines.has_reader and (bound.calls.is_changing or anyio.current_time() < end):  # noqa: ASYNC110 - three things to wait for
        await anyio.sleep(_SETTLE_SECONDS)
    bound.listening.close()
    await anyio.sleep(_SETTLE_SECONDS)


async def _write_messages(
    lines: StdioLines,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    written: anyio.Event,
    ending: ShutdownSignals,
) -> None:
    try:
        async with outgoing:
            async for message in outgoing:
                await lines.write_line(_encode_message(message.message))
    except OSError:  # the client has left
        ending.asked.set()
    finally:
        written.set()


def _encode_message(message: JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:  # a lone surrogate in a message of the SDK, which repeats the client's text
        return json.dumps(ensure_utf8(message.model_dump(by_alias=True, exclude_unset=True))).encode()

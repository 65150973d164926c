"""Serves MCP over standard input and output.

1. While it serves, descriptor 0 is empty and descriptor 1 is standard error: what a library prints never reaches the
   client.
2. A client that neither reads nor disconnects cannot keep the server from ending.
3. It ends when the client closes its end, or on SIGTERM or SIGINT. Running calls get a moment; changes get as long as
   they need.
4. Some hosts send half of a character as an escape. The SDK's parser refuses such a line, and the client would wait
   forever;
   so lone surrogates become U+FFFD, and the request says that it was repaired.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from surehold.front.mcp.results import MENDED_KEY
from surehold.front.mcp.server import BoundServer, ShutdownSignals
from surehold.front.shared.sanitize import ensure_utf8
from surehold.front.shared.stdio_lines import StdioDescriptors, StdioLines

_SURROGATE_ESCAPES = re.compile(
    rb"\\\\"  # a backslash that is content
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_INVALID_REQUEST = -32600
_MAX_DIGITS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLine:
    """What a line came to."""

    message: JSONRPCMessage | None = None
    replies: tuple[JSONRPCError, ...] = ()
    """What to answer at once, to requests that are not even requests."""


def parse_line(line: bytes) -> ParsedLine:
    """Read one line."""
    try:
        return ParsedLine(message=jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        pass
    mended = _repair_line(line)
    if mended is not None:
        return ParsedLine(message=mended)
    return ParsedLine(replies=_error_replies(line))


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
        message.params["_meta"] = {**known, MENDED_KEY: True}
    return message


def _parse_number(digits: str) -> int | float:
    """Read a number of any length; Python refuses very long ones, and the client would wait for an answer."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float("inf")


def _error_replies(line: bytes) -> tuple[JSONRPCError, ...]:
    """Return an error for every request in the line that somebody may wait for: a batch, or a malformed one."""
    try:
        found = json.loads(line, parse_int=_parse_number)
    except (ValueError, RecursionError):
        return ()
    batch = isinstance(found, list)
    why = "Send one message per line; batches are not served." if batch else "This is no request of JSON-RPC 2.0."
    requests = cast("list[Any]", found) if batch else [found]
    objects = [cast("dict[str, Any]", one) for one in requests if isinstance(one, dict)]
    ids = [one["id"] for one in objects if "method" in one and type(one.get("id")) in {int, str}]
    error = ErrorData(code=_INVALID_REQUEST, message=why)
    return tuple(JSONRPCError(jsonrpc="2.0", id=each, error=error) for each in ids)


_GRACE_SECONDS = 1.0
"""Seconds that looks under way may still take when the server ends."""
_FLUSH_SECONDS = 2.0
_SETTLE_SECONDS = 0.05
"""Seconds until everything that was read has reached its place."""

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]


def serve_stdio(bound: BoundServer, pipes: StdioDescriptors) -> int:
    """Serve one client until it leaves; return the exit code."""
    return anyio.run(_serve_client, bound, pipes)


async def _serve_client(bound: BoundServer, pipes: StdioDescriptors) -> int:
    ending, pump = ShutdownSignals(), StdioLines(pipes.incoming, pipes.outgoing)
    incoming, to_read = anyio.create_memory_object_stream[SessionMessage | Exception]()
    to_write, outgoing = anyio.create_memory_object_stream[SessionMessage]()
    async with anyio.create_task_group() as group:
        written = anyio.Event()
        group.start_soon(ending.watch_signals)
        group.start_soon(_write_messages, pump, outgoing, written, ending)
        group.start_soon(_read_messages, pump, incoming, to_write.clone(), bound, ending)
        await bound.server.run(to_read, to_write, bound.server.create_initialization_options())
        with anyio.move_on_after(_FLUSH_SECONDS):
            await written.wait()
        group.cancel_scope.cancel()
    return ending.code


async def _read_messages(
    pump: StdioLines,
    incoming: Incoming,
    replies: MemoryObjectSendStream[SessionMessage],
    bound: BoundServer,
    ending: ShutdownSignals,
) -> None:
    async with incoming, replies:
        async with anyio.create_task_group() as group:
            group.start_soon(ending.cancel_when_asked, group.cancel_scope)
            async for line in pump.read_lines():
                found = parse_line(line)
                for reply in found.replies:
                    await replies.send(SessionMessage(reply))
                if found.message is not None:
                    await incoming.send(SessionMessage(found.message))
            group.cancel_scope.cancel()
        await _finish_calls(pump, bound)


async def _finish_calls(pump: StdioLines, bound: BoundServer) -> None:
    """Let calls end whose answers somebody still reads; their questions nobody answers any more."""
    await anyio.sleep(_SETTLE_SECONDS)
    bound.desk.close()
    end = anyio.current_time() + _GRACE_SECONDS
    while bound.calls.under_way and pump.has_reader and (bound.calls.is_changing or anyio.current_time() < end):  # noqa: ASYNC110 - three things to wait for
        await anyio.sleep(_SETTLE_SECONDS)
    bound.listening.close()
    await anyio.sleep(_SETTLE_SECONDS)


async def _write_messages(pump: StdioLines, outgoing: Outgoing, written: anyio.Event, ending: ShutdownSignals) -> None:
    try:
        async with outgoing:
            async for message in outgoing:
                await pump.write_line(_encode_message(message.message))
    except OSError:  # nobody reads any more
        ending.asked.set()
    finally:
        written.set()


def _encode_message(message: JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:  # a surrogate that came past the adapter: the SDK's own words about the client's
        return json.dumps(ensure_utf8(message.model_dump(by_alias=True, exclude_unset=True))).encode()

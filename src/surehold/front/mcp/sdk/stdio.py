"""Serves MCP over standard input and output through the SDK: the reference that our own loop is compared with.

It behaves like `stdio.py` in everything that a client can see, and takes ten times as long to start. The SDK's parser
refuses half of a character, and the client would wait forever; such lines are repaired here too.
"""

import json

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from surehold.front.mcp.json_rpc import error_replies, mark_repaired, repair_halves
from surehold.front.mcp.sdk.server import BoundServer, ShutdownSignals
from surehold.front.shared.event_loop import StdioLines
from surehold.front.shared.stdio_lines import StdioDescriptors
from surehold.text.escape import ensure_utf8


def parse_line(line: bytes) -> JSONRPCMessage | tuple[JSONRPCError, ...]:
    """Return the message in a line; if it has none, what to answer at once."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _repair_line(line) or tuple(JSONRPCError.model_validate(reply) for reply in error_replies(line))


def _repair_line(line: bytes) -> JSONRPCMessage | None:
    whole = repair_halves(line)
    if whole is None:
        return None
    try:
        message = jsonrpc_message_adapter.validate_json(whole, by_name=False)
    except ValidationError:
        return None
    if isinstance(message, JSONRPCRequest) and message.params is not None:
        mark_repaired(message.params)
    return message


_GRACE_SECONDS = 1.0
"""Seconds that running reads still get when the server ends."""
_FLUSH_SECONDS = 2.0
_SETTLE_SECONDS = 0.05
"""Seconds until everything that was read has been handed on."""


def serve_through_sdk(bound: BoundServer, pipes: StdioDescriptors) -> int:
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
    end = anyio.current_time() + _GRACE_SECONDS
    while bound.is_listening() and lines.has_reader and anyio.current_time() < end:  # noqa: ASYNC110 - three things to wait for
        await anyio.sleep(_SETTLE_SECONDS)
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

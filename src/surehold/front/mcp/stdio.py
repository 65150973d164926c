"""MCP over standard input and output.

1. While it serves, descriptor 0 is empty and descriptor 1 is standard error: what a library prints never reaches the
   client.
2. A client that neither reads nor goes away cannot keep the server from ending.
3. It ends when the client closes its end, or on SIGTERM or SIGINT. Calls that are under way get a moment; changes get as
   long as they need.
"""

import json

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage

from surehold.front.mcp.binding import Bound
from surehold.front.mcp.ending import Ending
from surehold.front.mcp.mending import received
from surehold.front.mcp.pipes import Pipes
from surehold.front.mcp.pump import Pump
from surehold.front.mcp.strings import valid

_MOMENT = 1.0
"""Seconds that looks under way may still take when the server ends."""
_FLUSH = 2.0
_SETTLE = 0.05
"""Seconds until everything that was read has reached its place."""

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]


def serve_stdio(bound: Bound, pipes: Pipes) -> int:
    """Serve one client until it leaves; return the exit code."""
    return anyio.run(_serve, bound, pipes)


async def _serve(bound: Bound, pipes: Pipes) -> int:
    ending, pump = Ending(), Pump(pipes.incoming, pipes.outgoing)
    incoming, to_read = anyio.create_memory_object_stream[SessionMessage | Exception]()
    to_write, outgoing = anyio.create_memory_object_stream[SessionMessage]()
    async with anyio.create_task_group() as group:
        written = anyio.Event()
        group.start_soon(ending.run)
        group.start_soon(_write, pump, outgoing, written, ending)
        group.start_soon(_read, pump, incoming, to_write.clone(), bound, ending)
        await bound.server.run(to_read, to_write, bound.server.create_initialization_options())
        with anyio.move_on_after(_FLUSH):
            await written.wait()
        group.cancel_scope.cancel()
    return ending.code


async def _read(
    pump: Pump, incoming: Incoming, replies: MemoryObjectSendStream[SessionMessage], bound: Bound, ending: Ending
) -> None:
    async with incoming, replies:
        async with anyio.create_task_group() as group:
            group.start_soon(ending.cancel, group.cancel_scope)
            async for line in pump.lines():
                found = received(line)
                for reply in found.replies:
                    await replies.send(SessionMessage(reply))
                if found.message is not None:
                    await incoming.send(SessionMessage(found.message))
            group.cancel_scope.cancel()
        await _finish(pump, bound)


async def _finish(pump: Pump, bound: Bound) -> None:
    """Let calls end whose answers somebody still reads; their questions nobody answers any more."""
    await anyio.sleep(_SETTLE)
    bound.desk.close()
    end = anyio.current_time() + _MOMENT
    while bound.calls.under_way and pump.is_read and (bound.calls.changing or anyio.current_time() < end):  # noqa: ASYNC110 - three things to wait for
        await anyio.sleep(_SETTLE)
    bound.listening.close()
    await anyio.sleep(_SETTLE)


async def _write(pump: Pump, outgoing: Outgoing, written: anyio.Event, ending: Ending) -> None:
    try:
        async with outgoing:
            async for message in outgoing:
                await pump.write(_spelled(message.message))
    except OSError:  # nobody reads any more
        ending.asked.set()
    finally:
        written.set()


def _spelled(message: JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:  # a surrogate that came past the adapter: the SDK's own words about the client's
        return json.dumps(valid(message.model_dump(by_alias=True, exclude_unset=True))).encode()

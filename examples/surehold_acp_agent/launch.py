"""Starts the agent on standard input and output, and runs it until it ends.

1. A line that is not a message gets an error, and the next line is read: one bad line does not end a session.
2. It ends when the client closes its end, or on SIGTERM or SIGINT. A question that is open then counts as refused.
3. A change that has begun is completed first.
"""

import asyncio
import json
import logging
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

from acp import run_agent

from surehold import __version__
from surehold.errors import InvalidArgument
from surehold.front.shared.event_loop import StdioLines
from surehold.front.shared.stdio_lines import StdioDescriptors, claim_stdio
from surehold.library.families import tools_of
from surehold.text.escape import escape_text
from surehold_acp_agent.agent import AgentOptions, SureholdAgent
from surehold_acp_agent.conversation import check_roots

if TYPE_CHECKING:
    from acp.interfaces import Agent


Json = dict[str, Any]
_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


class MessageStream:
    """A stream of messages in both directions."""

    def __init__(self, lines: StdioLines) -> None:
        self._lines = lines
        self._incoming = lines.read_lines()
        self._ended = asyncio.Event()

    async def send(self, message: Json) -> None:
        """Send a message; only a request needs to know that the client has left."""
        try:
            await self._lines.write_line(json.dumps(message, separators=(",", ":"), default=str).encode())
        except OSError:
            self.end_input()
            if "method" in message and "id" in message:
                raise ConnectionError("The client has left.") from None

    async def receive(self) -> Json | None:
        """Return the next message; None when there will be none."""
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            while True:
                line = asyncio.ensure_future(anext(self._incoming, None))
                await asyncio.wait({line, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not line.done():
                    line.cancel()
                    return None
                if (found := line.result()) is None:
                    return None
                if found.strip() and (message := await self._parse_message(found)) is not None:
                    return message
        finally:
            ended.cancel()

    async def close(self) -> None:
        """Send no more; what was sent has left already."""
        self.end_input()

    def end_input(self) -> None:
        """Take nothing more in."""
        self._ended.set()

    async def _parse_message(self, line: bytes) -> Json | None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            await self._send_error(_PARSE_ERROR, "This line is not JSON.")
            return None
        if not isinstance(found, dict):
            await self._send_error(_INVALID_REQUEST, "Send one message per line.")
            return None
        message = cast("Json", found)
        if not isinstance(message.get("id"), (int, str, type(None))):
            await self._send_error(_INVALID_REQUEST, "An id is a number or a text.")
            return None
        if "error" in message and not isinstance(message["error"], dict):
            message["error"] = {"code": _INVALID_REQUEST, "message": str(message["error"])}
        return message

    async def _send_error(self, code: int, why: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why}})


_INTERRUPTED_EXIT_CODE = 130
_MAX_CALL_THREADS = 64
"""Calls that may wait for their people at the same time; each holds a thread."""


def launch_agent(profile: AgentOptions, *, tools: str) -> int:
    """Serve one client until it leaves; return the exit code."""
    found = tools_of(tools)
    check_roots(profile.roots)
    try:
        pipes = claim_stdio()
    except InvalidArgument as error:
        error.action = "Let an editor start it."
        raise
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="surehold: %(message)s")
    agent = SureholdAgent(profile, {one.name: one for one in found})
    where = ", ".join(map(escape_text, profile.roots)) or "the directory of each session"
    sys.stderr.write(f"surehold {__version__}: {len(found)} tools on {where} (mode {profile.mode}); Ctrl-C ends it.\n")
    sys.stderr.flush()
    try:
        return asyncio.run(_serve_client(agent, pipes))  # waits for the threads of its calls
    finally:
        agent.close()


async def _serve_client(agent: SureholdAgent, pipes: StdioDescriptors) -> int:
    pipe, codes = MessageStream(StdioLines(pipes.incoming, pipes.outgoing)), list[int]()
    loop = asyncio.get_running_loop()

    def stop_serving(code: int) -> None:
        codes.append(code)
        pipe.end_input()

    loop.set_default_executor(ThreadPoolExecutor(_MAX_CALL_THREADS, "call"))
    loop.add_signal_handler(signal.SIGTERM, stop_serving, 0)
    loop.add_signal_handler(signal.SIGINT, stop_serving, _INTERRUPTED_EXIT_CODE)
    await run_agent(cast("Agent", agent), pipe)
    return codes[0] if codes else 0

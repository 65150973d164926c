"""Messages over two descriptors, for the package's connection.

1. A line that is no message gets an error, and the next line is read: one bad line does not end a session.
2. It ends when the client closes either end, or when it is told to.
"""

import asyncio
import json
from typing import Any, cast

from surehold.front.mcp.pump import Pump

Json = dict[str, Any]
_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


class Pipe:
    """A stream of messages in both directions."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._lines = pump.lines()
        self._ended = asyncio.Event()

    async def send(self, message: Json) -> None:
        """Send a message; only a request needs to know that nobody reads it."""
        try:
            await self._pump.write(json.dumps(message, separators=(",", ":"), default=str).encode())
        except OSError:
            self.end()
            if "method" in message and "id" in message:
                raise ConnectionError("Nobody reads any more.") from None

    async def receive(self) -> Json | None:
        """Return the next message; None when there will be none."""
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            while True:
                line = asyncio.ensure_future(anext(self._lines, None))
                await asyncio.wait({line, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not line.done():
                    line.cancel()
                    return None
                if (found := line.result()) is None:
                    return None
                if found.strip() and (message := await self._message(found)) is not None:
                    return message
        finally:
            ended.cancel()

    async def close(self) -> None:
        """Send no more; what was sent has left already."""
        self.end()

    def end(self) -> None:
        """Take nothing more in."""
        self._ended.set()

    async def _message(self, line: bytes) -> Json | None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            await self._complain(_PARSE_ERROR, "This line is no JSON.")
            return None
        if not isinstance(found, dict):
            await self._complain(_INVALID_REQUEST, "Send one message per line.")
            return None
        message = cast("Json", found)
        if not isinstance(message.get("id"), (int, str, type(None))):
            await self._complain(_INVALID_REQUEST, "An id is a number or a text.")
            return None
        if "error" in message and not isinstance(message["error"], dict):
            message["error"] = {"code": _INVALID_REQUEST, "message": str(message["error"])}
        return message

    async def _complain(self, code: int, why: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why}})

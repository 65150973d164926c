"""The smallest useful MCP client: starts `surehold mcp`, shakes hands, and calls tools. One JSON message per line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

Json = dict[str, Any]


def data_of(result: Json) -> Json:
    """Return what a program reads of a result; of a change it is what the model is shown too."""
    return result.get("_meta", {}).get("surehold/result") or result["structuredContent"]


class Client:
    """One server process, and the conversation with it."""

    def __init__(self, root: Path, *, name: str) -> None:
        self._last = 0
        self.process = subprocess.Popen(
            (sys.executable, "-m", "surehold", "mcp", root.name),
            cwd=root.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        asks: Json = {"experimental": {"surehold/result": {}}}  # for the data of every answer, in its `_meta`
        hello = {"protocolVersion": "2025-11-25", "capabilities": asks, "clientInfo": {"name": name, "version": "1"}}
        self.greeting = self.request("initialize", hello)
        self._send(method="notifications/initialized")

    def list_tools(self) -> list[Json]:
        """Return the tools that the server offers."""
        return self.request("tools/list")["tools"]

    def call(self, tool: str, arguments: Json) -> Json:
        """Call a tool; a refusal is a result too, with `isError`."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def request(self, method: str, params: Json | None = None) -> Json:
        """Send a request and return its result."""
        number = self.begin(method, params)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == number:
                return message["result"]
        raise ConnectionError(f"The server ended with exit code {self.process.wait()}.")

    def begin(self, method: str, params: Json | None = None) -> int:
        """Send a request without waiting for its result."""
        self._last += 1
        self._send(id=self._last, method=method, params=params or {})
        return self._last

    def headline(self) -> str:
        """Return the line that the server writes to its standard error when it starts."""
        assert self.process.stderr is not None
        return self.process.stderr.readline().rstrip("\n")

    def kill(self) -> None:
        """End the server as `kill -9` does: at once, wherever it is."""
        self.process.kill()
        self.process.wait()

    def close(self) -> int:
        """Hang up, and return the exit code of the server."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

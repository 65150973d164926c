"""A client that speaks raw JSON-RPC to a real server process, in either era of the protocol."""

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Self

from waiting import HANG_SECONDS, wait_until

Json = dict[str, Any]
Version = Literal["2025-06-18", "2025-11-25", "2026-07-28"]
MODERN = "2026-07-28"


class ServerEnded(Exception):
    """The server closed its end while a call was waiting."""


class RpcFailed(Exception):
    """The server answered with a protocol error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class StdioClient:
    """Starts a server and speaks with it over pipes.

    `command` are the words after `python`; `surehold(...)` makes those of the real program.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        version: Version = "2025-11-25",
        client: str = "claude-code",
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        capabilities: Json | None = None,
        handshake: bool = True,
    ) -> None:
        self.version: str = version
        self.capabilities: Json = capabilities or {}
        self.client = client
        self.heard = list[Json]()
        """Every message, in the order in which it came."""
        self.notifications = list[Json]()
        self.reads = threading.Event()
        """Cleared while this client does not read."""
        self.reads.set()
        self.junk = list[bytes]()
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            cwd=cwd,
        )
        self._answers = dict[int | str, Json]()
        self._changed = threading.Condition()
        self._last = 0
        self._ended = False
        self._wake = os.pipe()
        self._stderr = list[bytes]()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()
        if handshake:
            self.opening = self.open()

    # Speaking.
    def open(self) -> Json:
        """Shake hands, or discover, as the version asks."""
        if self.version == MODERN:
            return self.request("server/discover")
        hello = {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "clientInfo": {"name": self.client, "version": "1"},
        }
        opening = self.request("initialize", hello)
        self.notify("notifications/initialized")
        return opening

    def request(self, method: str, params: Json | None = None) -> Json:
        """Send a request and return its result."""
        return self.answer(self.start(method, params))

    def call(self, tool: str, arguments: Json | None = None, *, meta: Json | None = None) -> Json:
        """Call a tool and return its result."""
        return self.answer(self.start_call(tool, arguments, meta=meta))

    def start_call(self, tool: str, arguments: Json | None = None, *, meta: Json | None = None) -> int:
        """Send a call without waiting for its result."""
        params: Json = {"name": tool, "arguments": arguments or {}}
        return self.start("tools/call", {**params, "_meta": meta} if meta else params)

    def start(self, method: str, params: Json | None = None) -> int:
        """Send a request without waiting; return its id."""
        self._last += 1
        message: Json = {"jsonrpc": "2.0", "id": self._last, "method": method}
        params = self._enveloped(params)
        self.send({**message, "params": params} if params is not None else message)
        return self._last

    def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        message: Json = {"jsonrpc": "2.0", "method": method}
        self.send({**message, "params": params} if params is not None else message)

    def cancel(self, request: int) -> None:
        """Take a request back."""
        self.notify("notifications/cancelled", {"requestId": request})

    def send(self, message: Any) -> None:
        """Send any JSON on a line of its own."""
        self.send_line(json.dumps(message).encode())

    def send_line(self, line: bytes) -> None:
        """Send any bytes on a line of their own."""
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    # Listening.
    def answer(self, request: int | str) -> Json:
        """Return the result of a request that was started before."""
        message = self.raw_answer(request)
        if "error" in message:
            raise RpcFailed(message["error"])
        return message["result"]

    def raw_answer(self, request: int | str) -> Json:
        """Return the whole message that answers a request."""
        with self._changed:
            if not self._changed.wait_for(lambda: request in self._answers or self._ended, HANG_SECONDS):
                raise TimeoutError(f"No answer to {request}.")
            if request not in self._answers:
                raise ServerEnded(self.errors())
            return self._answers.pop(request)

    def reaction_to(self, request: int | str) -> Json:
        """Return the answer to a request, or what acknowledges that it listens from now on."""

        def acknowledged() -> Json | None:
            notes = (
                note for note in self.notifications if note["method"] == "notifications/subscriptions/acknowledged"
            )
            name = "io.modelcontextprotocol/subscriptionId"
            return next((note for note in notes if note["params"]["_meta"][name] == request), None)

        with self._changed:
            if not self._changed.wait_for(
                lambda: request in self._answers or acknowledged() or self._ended, HANG_SECONDS
            ):
                raise TimeoutError(f"No reaction to {request}.")
            if (note := acknowledged()) is not None:
                return note
        return self.raw_answer(request)

    def is_answered(self, request: int) -> bool:
        """Tell whether an answer has come."""
        with self._changed:
            return request in self._answers

    def wait_for(self, condition: Callable[[list[Json]], bool]) -> list[Json]:
        """Wait until the notifications so far satisfy a condition, and return them."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self.notifications), HANG_SECONDS):
                raise TimeoutError(f"Not among the notifications: {self.notifications}")
            return list(self.notifications)

    def errors(self) -> str:
        """Return what the server said on standard error so far."""
        return b"".join(self._stderr).decode(errors="backslashreplace")

    def wait_for_error(self, text: str) -> str:
        """Wait until standard error holds a text."""
        wait_until(lambda: text in self.errors(), f"standard error never held {text!r}")
        return self.errors()

    # Leaving.
    def hang_up(self) -> None:
        """Close our end of both pipes, as a client that crashed."""
        assert self.process.stdin
        assert self.process.stdout
        os.write(self._wake[1], b"!")  # a pipe that is being read cannot be closed
        self._threads[0].join()
        self.process.stdin.close()
        self.process.stdout.close()

    def close(self) -> int:
        """Close the server's input, wait for its end, and return its exit code."""
        if self.process.stdin:
            with suppress(OSError):
                self.process.stdin.close()
        return self.wait()

    def wait(self) -> int:
        """Wait for the end of the server, and return its exit code."""
        try:
            code = self.process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        for thread in self._threads:
            thread.join(HANG_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                with suppress(OSError):
                    pipe.close()
        for end in self._wake:
            os.close(end)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enveloped(self, params: Json | None) -> Json | None:
        if self.version != MODERN:
            return params
        given = params or {}
        envelope = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": self.client, "version": "1"},
        }
        return {**given, "_meta": {**envelope, **given.get("_meta", {})}}

    def _read(self) -> None:
        assert self.process.stdout
        pipe, rest = self.process.stdout.fileno(), list[bytes]()
        while True:
            ready, _, _ = select.select([pipe, self._wake[0]], [], [])
            self.reads.wait()
            chunk = b"" if self._wake[0] in ready else os.read(pipe, 1 << 16)
            if not chunk:
                break
            *whole, last = chunk.split(b"\n")
            for line in whole:
                self._take(b"".join((*rest, line)))
                rest.clear()
            rest.append(last)
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            self.junk.append(line)
            return
        with self._changed:
            self.heard.append(message)
            if "method" in message:
                self.notifications.append(message)
            else:
                self._answers[message.get("id")] = message
            self._changed.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr
        with suppress(ValueError, OSError):
            for line in self.process.stderr:
                self._stderr.append(line)


def surehold(*words: str | Path, meta: bool = True) -> list[str]:
    """Return the words that start the real program; a server then gives its data to programs, as most tests want it."""
    serves = meta and words[:1] in {("mcp",), ("serve",)}
    return ["-m", "surehold", *map(str, words), *(["--meta"] if serves else [])]


def data_of(result: Json) -> Json:
    """Return what a program reads of a result: its own data, or what a model is shown where that is all of it."""
    meta = result.get("_meta", {})
    return meta["surehold/result"] if "surehold/result" in meta else result["structuredContent"]

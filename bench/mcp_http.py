"""Calls over HTTP: one session beside a server on stdio, and what a call costs when many sessions are open."""

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mcp_client import Json, Refused, connected, ours
from sample import NAME, scratch, source
from table import Row
from timing import interleave

_CALLS = 200
_SESSIONS = 200
_ROUNDS = 5
"""How often each of many sessions calls."""
_TOKEN = "a-token-that-is-long-enough-for-a-bench"
_ADDRESS = re.compile(rb"http://127\.0\.0\.1:(\d+)/mcp")


class HttpSession:
    """One session over one connection that is kept open, as plain as can be."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._headers = {
            "Authorization": f"Bearer {_TOKEN}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        self._number = 0
        info = {"name": "bench", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Json) -> Json:
        self._number += 1
        answer = self._post({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        data = next(row.removeprefix(b"data: ") for row in answer.splitlines() if row.startswith((b"data: {", b"{")))
        message = json.loads(data)
        if "error" in message or message["result"].get("isError"):
            raise Refused(message)
        return message["result"]

    def read(self, _: int) -> None:
        self.request("tools/call", {"name": "read_file", "arguments": {"path": NAME}})

    def close(self) -> None:
        self._connection.close()

    def _post(self, message: Json) -> bytes:
        body = json.dumps(message).encode()
        try:
            response = self._exchange(body)
        except ConnectionError:  # the server closes connections that are idle for long
            self._connection.close()
            response = self._exchange(body)
        if session := response.getheader("mcp-session-id"):
            self._headers["Mcp-Session-Id"] = session
        return response.read()

    def _exchange(self, body: bytes) -> http.client.HTTPResponse:
        self._connection.request("POST", "/mcp", body, self._headers)
        return self._connection.getresponse()


@contextmanager
def _serving(root: Path, state: Path) -> Generator[tuple[int, int]]:
    """Serve over HTTP; yield the port and the process id."""
    token = state.with_name("token")
    token.touch(mode=0o600)
    token.write_text(_TOKEN, encoding="utf-8")
    program = str(Path(sys.executable).with_name("surehold"))
    options = ("--port", "0", "--token-file", str(token), "--state-dir", str(state))
    process = subprocess.Popen((program, "serve", str(root), *options), stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        address = next(filter(None, map(_ADDRESS.search, process.stderr)))
        yield int(address[1]), process.pid
    finally:
        process.terminate()
        process.wait()


def rows() -> list[Row]:
    with scratch() as folder:
        root = folder / "root"
        root.mkdir()
        (root / NAME).write_text(source(2_000), encoding="utf-8")
        with _serving(root, folder / "http") as (port, process), connected(ours(root, folder / "stdio")) as stdio:
            session = HttpSession(port)
            arguments: Json = {"path": NAME}
            pair = interleave(lambda _: stdio.call("read_file", arguments), session.read, repeat=_CALLS)
            alone = _cpu_per_call(process, [session] * _SESSIONS)
            many = [HttpSession(port) for _ in range(_SESSIONS)]
            crowded = _cpu_per_call(process, many)
            for each in (session, *many):
                each.close()
    return [
        Row(
            name="a call over HTTP, one session",
            measured=pair.ratio,
            goal=1 / 0.6,
            note=f"of one over stdio: {pair.note}",
        ),
        Row(
            name=f"processor time of a call, {_SESSIONS} sessions",
            measured=crowded / alone,
            goal=1.2,
            note=f"of one session: {alone * 1e3:.2f} → {crowded * 1e3:.2f} ms",
        ),
    ]


def _cpu_per_call(process: int, sessions: list[HttpSession]) -> float:
    """Let the sessions call in turns; return what the server spent on each call, in seconds."""
    for each in sessions[:1]:
        each.read(0)
    before = _cpu_seconds(process)
    for number in range(_ROUNDS):
        for each in sessions:
            each.read(number)
    return (_cpu_seconds(process) - before) / (_ROUNDS * len(sessions))


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

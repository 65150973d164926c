"""A client as plain as can be, the same for every server: one line out, one line in."""

import json
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_HOME = Path(__file__).parents[1]
_PEERS = _HOME / ".conformance" / "peers" / "node_modules"
_REFERENCE = "@modelcontextprotocol/server-filesystem"
_OTHER = "fast-filesystem-mcp"
EMPTY = (sys.executable, str(_HOME / "bench" / "mcp_empty.py"))
"""A plain loop over lines of JSON, with one tool that gives back its text."""


def ours(root: Path, state: Path) -> tuple[str, ...]:
    return (str(Path(sys.executable).with_name("surehold")), "mcp", str(root), "--state-dir", str(state), "--meta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another file server from npm, and how it spells an edit."""

    name: str
    program: Path
    edit_tool: str

    def command(self, root: Path) -> tuple[str, ...]:
        return ("node", str(self.program), str(root))

    def edit(self, path: Path, old: str, new: str) -> Json:
        if self.edit_tool == "edit_file":
            return {"path": str(path), "edits": [{"oldText": old, "newText": new}]}
        return {"path": str(path), "old_text": old, "new_text": new}


@cache
def peers() -> tuple[Peer, ...] | str:
    """Return the peers, installed when they were not; or the reason why there are none."""
    done = subprocess.run(
        ["sh", str(_HOME / "scripts" / "conformance-setup.sh"), "peers"], check=False, capture_output=True, text=True
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
    return (
        Peer(name="reference server", program=_PEERS / _REFERENCE / "dist" / "index.js", edit_tool="edit_file"),
        Peer(name=_OTHER, program=_PEERS / _OTHER / "dist" / "index.js", edit_tool="fast_edit_block"),
    )


def npx(root: Path) -> tuple[str, ...]:
    """The reference server as its users start it."""
    manifest = json.loads((_PEERS / _REFERENCE / "package.json").read_text(encoding="utf-8"))
    return ("npx", "-y", f"{_REFERENCE}@{manifest['version']}", str(root))


class Refused(Exception):
    """A server answered with an error."""


class McpClient:
    """One server process, and requests to it one after the other."""

    def __init__(self, command: tuple[str, ...], *, cwd: Path | None = None) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd
        )
        self.number = 0
        info = {"name": "bench", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Json | None = None) -> Json:
        self.number += 1
        self._send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}})
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if not line.startswith(b"{"):
                continue  # some peers print a greeting
            message = json.loads(line)
            if message.get("id") == self.number:
                if "error" in message:
                    raise Refused(message["error"])
                return message["result"]
        raise Refused(f"{method}: the server is gone, exit code {self.process.wait()}")

    def call(self, tool: str, arguments: Json) -> Json:
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise Refused(result["content"])
        return result

    def memory(self, what: str) -> float:
        """Return VmRSS (now) or VmHWM (the peak) of the server, in MB."""
        rows = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(row.split()[1]) for row in rows if row.startswith(what)) / 1024

    def processor_seconds(self) -> float:
        """Return what the server's threads have used so far."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text(encoding="utf-8").split()[0]) for task in tasks) / 1e9

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()

    def _send(self, message: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


@contextmanager
def connected(command: tuple[str, ...], *, cwd: Path | None = None) -> Generator[McpClient]:
    """Start a server, shake hands, and end it."""
    client = McpClient(command, cwd=cwd)
    try:
        yield client
    finally:
        client.close()


def seconds_to_list(command: tuple[str, ...], cwd: Path) -> float:
    """Start a server; return how long it took until it had listed its tools. How it ends does not count."""
    began = time.perf_counter()
    with connected(command, cwd=cwd) as client:
        assert client.request("tools/list")["tools"]
        return time.perf_counter() - began

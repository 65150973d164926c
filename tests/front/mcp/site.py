"""A scratch workspace, and real servers on it."""

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from front.mcp.client import MODERN, Json, StdioClient, Version, surehold
from front.mcp.client import data_of as program_data
from surehold import Settings, Workspace, open_workspace
from surehold.stores.base import LedgerQuery
from waiting import HANG_SECONDS

ODD = Path(__file__).parent / "odd_server.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One root, one state directory, and ways to look at them from outside."""

    root: Path
    state: Path

    def start(
        self,
        *flags: str,
        version: Version = "2025-11-25",
        client: str = "claude-code",
        capabilities: Json | None = None,
    ) -> StdioClient:
        """Start the real program on this workspace."""
        command = surehold("mcp", self.root, "--state-dir", self.state, *flags)
        return StdioClient(command, version=version, client=client, capabilities=capabilities)

    def start_odd(self, version: Version = "2025-11-25") -> StdioClient:
        """Start our server with the odd tools of the tests."""
        return StdioClient([str(ODD), str(self.root), str(self.state)], version=version)

    def serve(self, *words: str, environment: Mapping[str, str] | None = None) -> "HttpServer":
        """Start the real program over HTTP."""
        command = surehold(*words[:1], self.root, "--state-dir", self.state, *words[1:])
        prints_token = words[0] == "serve" and not environment and "--token-file" not in words
        return HttpServer(command, environment, lines=2 if prints_token else 1)

    def serve_odd(self, *, sessions: int = 1000, gone_seconds: float = 60) -> "HttpServer":
        """Start our server with the odd tools of the tests, over HTTP."""
        return HttpServer([str(ODD), str(self.root), str(self.state), "http", str(sessions), str(gone_seconds)])

    def put(self, name: str, text: str | bytes) -> Path:
        """Write a file behind the server's back."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def get(self, name: str) -> bytes:
        """Read a file behind the server's back."""
        return (self.root / name).read_bytes()

    def open(self) -> Workspace:
        """Open the workspace in this process, beside the server."""
        return open_workspace(self.root, settings=Settings(state_dir=self.state))

    def log(self, name: str) -> list[tuple[str, bool]]:
        """Return what the ledger says about a file, oldest first: operation, and whether it happened."""
        with self.open() as workspace:
            return [
                (entry.call.operation, entry.ok)
                for entry in reversed(workspace.store.list_entries(LedgerQuery(path=name)))
            ]

    def messages(self, name: str) -> list[str]:
        """Return what the ledger says why changes of a file did not happen."""
        with self.open() as workspace:
            return [entry.message for entry in workspace.store.list_entries(LedgerQuery(path=name))]


class HttpServer:
    """A server process that speaks HTTP, and a raw client of it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None, *, lines: int = 1) -> None:
        kept = {name: value for name, value in os.environ.items() if name != "SUREHOLD_TOKEN"}
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**kept, **(environment or {})},
        )
        assert self.process.stderr
        self.said = "".join(self.process.stderr.readline().decode() for _ in range(lines))
        found = re.search(r"http://(.*?):(\d+)/mcp", self.said)
        assert found, self.said
        self.host, self.port = found[1], int(found[2])
        self.events = list[Json]()
        """Everything that came in answer to the last request, when it was a stream."""
        token = re.search(r"Bearer ([\w-]+)", self.said)
        self.token = token[1] if token else ""

    def send(
        self,
        method: str,
        path: str = "/mcp",
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        seconds: float | None = HANG_SECONDS,
    ) -> tuple[int, dict[str, str], bytes]:
        """Send one request; return status, headers and body. Without seconds, wait for the answer as long as it takes."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=seconds)
        try:
            connection.request(method, path, body=body, headers=dict(headers or {}))
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def rpc(
        self,
        method: str,
        params: Json | None = None,
        *,
        era: str = MODERN,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = HANG_SECONDS,
    ) -> tuple[int, dict[str, str], Json]:
        """Send one JSON-RPC request; return status, headers and the answer, from JSON or from a stream."""
        body: Json = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params or {})}
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if era == MODERN:
            envelope = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "raw-http", "version": "1"},
            }
            body["params"]["_meta"] = {**envelope, **body["params"].get("_meta", {})}
            sent |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            if name := body["params"].get("name") or body["params"].get("uri"):
                sent["Mcp-Name"] = name
        elif method != "initialize":
            sent["MCP-Protocol-Version"] = era
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        data, sent = json.dumps(body).encode(), {**sent, **(headers or {})}
        status, got, raw = self.send("POST", body=data, headers=sent, seconds=seconds)
        self.events = _events(raw) if got.get("content-type", "").startswith("text/event-stream") else []
        if self.events:
            return status, got, self.events[-1]
        return status, got, json.loads(raw) if "json" in got.get("content-type", "") else {"text": raw.decode()}

    def call(self, tool: str, arguments: Json, **how: Any) -> Json:
        """Call a tool and return its result."""
        meta = how.pop("meta", None)
        params: Json = {"name": tool, "arguments": arguments}
        status, _, answer = self.rpc("tools/call", {**params, "_meta": meta} if meta else params, **how)
        assert status == 200, answer
        return answer["result"]

    def initialize(self, version: str = "2025-11-25") -> dict[str, str]:
        """Shake hands in the older era; return the headers that name the session."""
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old-http", "version": "1"}}
        status, headers, _ = self.rpc("initialize", hello, era=version)
        assert status == 200
        return {"Mcp-Session-Id": headers["mcp-session-id"]}

    def stop(self) -> int:
        """Send SIGTERM; return the exit code."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=HANG_SECONDS)
        self.said += errors.decode()
        return self.process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()


def _events(raw: bytes) -> list[Json]:
    return [json.loads(line[5:]) for line in raw.decode().splitlines() if line.startswith("data:") and line[5:].strip()]


def text_of(result: Json) -> str:
    """Return what a model reads."""
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")


def data_of(result: Json) -> Json:
    """Return what a program reads."""
    return program_data(result)


def sha_of(client: StdioClient | HttpServer, name: str) -> str:
    """Read a file through the server and return its sha256."""
    return data_of(client.call("read_file", {"path": name}))["data"]["sha256"]
